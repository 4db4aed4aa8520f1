//! All stages in one: packets in, results out.
//!
//! ```
//! use dpi::{Event, Inspector, Options, Packet, Protocol};
//! use packet::{IpPacket, PacketBuilder};
//! use packet::tcp::TcpHeader;
//! use tables::Nanos;
//!
//! let mut inspector = Inspector::new(Options::default(), 0x5eed, Nanos(0));
//! let bytes = PacketBuilder::new()
//!     .ipv4([10, 0, 0, 1].into(), [198, 51, 100, 1].into())
//!     .tcp(TcpHeader { source_port: 40_000, destination_port: 22, ..TcpHeader::default() })
//!     .build(b"SSH-2.0-example\r\n");
//! inspector.push(Nanos(1), &Packet { ip: IpPacket::parse(&bytes)?, bytes: &bytes, tunnel: None });
//! let results: Vec<_> = std::iter::from_fn(|| inspector.poll()).collect();
//! assert!(results.iter().any(|it| matches!(it,
//!     Event::Classified { verdict, .. } if verdict.protocol == Some(Protocol::Ssh))));
//! # Ok::<(), packet::Malformed>(())
//! ```

use crate::Protocol;
use crate::classify::assembly;
use crate::classify::transport::{Transport, carrier};
use crate::classify::{
    Carrier, End, Evidence, Limits, Packet, Progress, Reason, Room, Sheet, Shown, Side, Step, Verdict,
};
use crate::decode::{Decoded, Mask};
use crate::knowledge::Knowledge;
use crate::kpi::flow::Measures;
use crate::kpi::rate::Rate;
use crate::protocols::{dns, ip};
use crate::signatures::{ApplicationId, Bundle};
use crate::track::examined::{Examinations, Examined};
use crate::track::flow::{Ends, Flow, Key, Line, Standing, Summary, Timeouts};
use crate::track::names::Said;
use crate::track::subscriber::{Identity, Prefix, Subscribers, is_of_source, private};
use crate::track::watched::{Watch, Watching};

use std::collections::VecDeque;
use std::sync::Arc;
use tables::{FlowProbe, FlowTable, Lookup, Nanos, Probe};

/// How subscribers are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum By {
    /// By their addresses.
    #[default]
    Address,
    /// By the tunnels that their packets come in; without one, by address. Each direction of a tunnel is a subscriber of its own.
    Tunnel,
}

/// What an inspector may use, and how it goes about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Flows that are known at a time.
    pub flows: u32,
    /// Of these, flows that are looked into.
    pub examinations: u32,
    /// Subscribers that are known at a time.
    pub subscribers: u32,
    /// Networks that subscribers have.
    pub home: Vec<Prefix>,
    /// How they are told apart.
    pub by: By,
    /// So much of a flow is looked at.
    pub limits: Limits,
    /// How long a flow without packets is kept.
    pub timeouts: Timeouts,
    /// Whether what messages say is told ([`Event::Found`]).
    pub tells_names: bool,
    /// Whether messages are decoded ([`Event::Decoded`]).
    pub decodes: bool,
    /// Whether flows are measured ([`Event::Measured`]).
    pub measures: bool,
    /// Flows that are decoded or measured at a time; beyond, the one that is idle for longest is not any more.
    pub watched: u32,
    /// Hides parties in what is told of messages.
    pub mask: Option<Mask>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            flows: 1 << 20,
            examinations: 1 << 17,
            subscribers: 1 << 17,
            home: private(),
            by: By::default(),
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            tells_names: false,
            decodes: false,
            measures: false,
            watched: 1 << 16,
            mask: None,
        }
    }
}

impl Options {
    /// Bytes of memory that an inspector takes with these, at most: what [`Inspector::memory`] never goes beyond.
    pub const fn most_memory(&self) -> usize {
        let found = if self.tells_names { size_of::<Sheet>() } else { 0 };
        let decoded = if self.decodes { DECODED } else { 0 };
        let watched = if self.decodes || self.measures {
            Watching::most_memory(self.watched, self.subscribers)
        } else {
            0
        };
        let result = if decoded > found { decoded } else { found };
        watched
            + SMALL
            + self.flows as usize * FLOW
            + Examinations::most_memory(self.examinations)
            + Subscribers::most_memory(self.subscribers)
            + (self.assemblies() + 1) * assembly::LARGEST
            + RESULTS * (size_of::<Event>() + result)
    }

    /// Flows of which a message may be put together at a time.
    const fn assemblies(&self) -> usize {
        let share = self.examinations as usize / FLOWS_AN_ASSEMBLY;
        if share > LEAST_ASSEMBLIES { share } else { LEAST_ASSEMBLIES }
    }
}

/// Why a flow has ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cause {
    /// No packet came for long, or both sides have closed it.
    Timeout,
    /// Others needed its place.
    Evicted,
    /// A new connection between the same ends took its place.
    Replaced,
    /// The inspector was asked to end all.
    Flushed,
}

/// A result.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// Something was found written in a message.
    Found {
        /// Of this flow.
        flow: Flow,
        /// What.
        sheet: Box<Sheet>,
    },
    /// A message was decoded ([`Options::decodes`]).
    Decoded {
        /// Of this flow.
        flow: Flow,
        /// When its last packet came.
        at: Nanos,
        /// What it says.
        decoded: Box<Decoded>,
    },
    /// A flow has its verdict. Once a flow.
    Classified {
        /// This flow.
        flow: Flow,
        /// What it is.
        verdict: Verdict,
    },
    /// A flow that was measured ends, or others needed its place ([`Options::measures`]). At most once a flow, before [`Self::Ended`].
    Measured {
        /// This flow.
        flow: Flow,
        /// How it fared.
        measures: Box<Measures>,
        /// The best second of all its subscriber's flows so far, in octets.
        subscriber_best: u64,
    },
    /// A flow is forgotten. Once a flow, after its verdict.
    Ended {
        /// This flow.
        flow: Flow,
        /// What it was.
        verdict: Verdict,
        /// What it carried.
        summary: Summary,
        /// Why it ended.
        cause: Cause,
    },
}

/// What was done.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Packets that were pushed.
    pub packets: u64,
    /// Of these, packets that were looked into.
    pub looked_into: u64,
    /// Flows that began.
    pub flows: u64,
    /// Flows that were given up for others.
    pub evicted: u64,
    /// Examinations that were ended early, with what was known, for others.
    pub cut_short: u64,
    /// Packets that belong to no flow: there are too many, or no more subscribers.
    pub untracked: u64,
    /// Results that nobody polled in time.
    pub lost_results: u64,
}

/// Results that wait for being polled.
const RESULTS: usize = 4096;
/// Packets of a burst whose look-ups overlap.
pub const BURST: usize = 32;
/// Of 8 KiB each: with a flow's own, they stay under 512 bytes a flow that is looked into.
const FLOWS_AN_ASSEMBLY: usize = 128;
/// Where few flows are looked into.
const LEAST_ASSEMBLIES: usize = 16;
/// Bytes that a flow takes in its table at most, the index and what is reserved ahead included.
const FLOW: usize = 136;
/// Bytes that a decoded message takes at most.
const DECODED: usize = 24 * 1024;
/// What tables take before there is much in them.
const SMALL: usize = 64 * 1024;

/// When the second that is going on is over: for those who ask at the end.
const fn later(now: Nanos) -> Nanos {
    now.plus(Nanos::SECOND)
}

/// Inspects packets: one for each worker, made in its thread so that its memory lies beside it.
#[derive(Debug)]
pub struct Inspector {
    options: Options,
    knowledge: Arc<Knowledge>,
    flows: FlowTable<Key, Line>,
    subscribers: Subscribers,
    examinations: Examinations,
    room: Room,
    results: VecDeque<Event>,
    /// Flows that have ended, while they are told of.
    ended: Vec<(Key, Line)>,
    counters: Counters,
    /// What is decoded and measured, if anything is.
    watching: Option<Box<Watching>>,
}

/// A packet on its way through the phases of look-ups.
#[derive(Clone, Copy)]
struct Pending {
    from_subscriber: bool,
    identity: Identity,
    ends: Ends,
    subscriber: Probe,
    key: Option<Key>,
    flow: FlowProbe,
    /// Its subscriber is known, and its flow isn't.
    is_new: bool,
}

impl Inspector {
    /// With the recognisers and the signatures that are built in. The seed should be random.
    pub fn new(options: Options, seed: u64, now: Nanos) -> Self {
        Self::with(options, Arc::new(Knowledge::new(Bundle::built_in())), seed, now)
    }

    /// With knowledge that others share.
    pub fn with(options: Options, knowledge: Arc<Knowledge>, seed: u64, now: Nanos) -> Self {
        let Options { decodes, measures, watched, .. } = options;
        let watching =
            || Box::new(Watching::new(watched, seed, decodes, measures, options.mask.clone(), now));
        Self {
            watching: (decodes || measures).then(watching),
            flows: FlowTable::new(seed, options.flows, now),
            subscribers: Subscribers::new(seed, options.subscribers),
            examinations: Examinations::new(options.examinations),
            room: Room::new(options.assemblies()),
            results: VecDeque::new(),
            ended: Vec::new(),
            counters: Counters::default(),
            knowledge,
            options,
        }
    }

    /// What was done.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Flows that are known, and of these, those that are looked into.
    pub fn flows(&self) -> (usize, usize) {
        (self.flows.len(), self.examinations.len())
    }

    /// Subscribers that are known.
    pub const fn subscribers(&self) -> &Subscribers {
        &self.subscribers
    }

    /// Bytes of memory: under [`Options::most_memory`], whatever comes. Knowledge, which all workers share, is not counted.
    pub fn memory(&self) -> usize {
        let boxed = self.results.iter().map(|it| match it {
            Event::Found { .. } => size_of::<Sheet>(),
            Event::Decoded { .. } => DECODED,
            Event::Measured { .. } => size_of::<Measures>(),
            Event::Classified { .. } | Event::Ended { .. } => 0,
        });
        let watching = self.watching.as_ref().map_or(0, |it| it.memory());
        boxed.sum::<usize>()
            + watching
            + self.flows.memory()
            + self.subscribers.memory()
            + self.examinations.memory()
            + self.room.memory()
            + self.results.capacity() * size_of::<Event>()
    }

    /// Messages that are being put together.
    pub const fn assemblies(&self) -> usize {
        self.room.lent()
    }

    /// From now on, every question that is asked is written down: [`Self::asked`].
    pub fn explain(&mut self) {
        self.room.trace.get_or_insert_default();
    }

    /// Which recognisers were asked since the last call, and what they said.
    pub fn asked(&mut self) -> Vec<Step> {
        self.room.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The next result.
    pub fn poll(&mut self) -> Option<Event> {
        self.results.pop_front()
    }

    /// One packet.
    pub fn push(&mut self, now: Nanos, packet: &Packet<'_>) {
        let mut pending = self.orient(packet);
        self.locate(&mut pending);
        self.serve(now, packet, &mut pending);
    }

    /// Packets, in their order; their look-ups overlap.
    pub fn push_burst(&mut self, now: Nanos, packets: &[Packet<'_>]) {
        for packets in packets.chunks(BURST) {
            let mut pending = [const { None }; BURST];
            for (pending, packet) in pending.iter_mut().zip(packets) {
                *pending = Some(self.orient(packet));
            }
            for pending in pending.iter_mut().flatten() {
                self.locate(pending);
            }
            for pending in pending.iter_mut().flatten() {
                if let Some(key) = &pending.key {
                    self.flows.step(&mut pending.flow, key);
                }
            }
            let mut all_known = true;
            for pending in pending.iter_mut().flatten() {
                pending.is_new = !self.expect(pending);
                all_known &= !pending.is_new;
            }
            if !all_known {
                self.expect_names(&pending);
            }
            let forgotten = self.subscribers.forgotten();
            for (pending, packet) in pending.iter_mut().flatten().zip(packets) {
                if self.subscribers.forgotten() != forgotten {
                    // An earlier packet's subscriber may have got this one's number.
                    pending.key = None;
                }
                self.serve(now, packet, pending);
            }
        }
    }

    /// Whose packet is it?
    #[inline]
    fn orient(&self, packet: &Packet<'_>) -> Pending {
        let key = packet.ip.key;
        let (source_port, destination_port) = key.ports.map_or((0, 0), |it| (it.source, it.destination));
        let from_subscriber =
            is_of_source(&self.options.home, key.source, key.destination, (source_port, destination_port));
        let ends = if from_subscriber {
            Ends {
                subscriber: key.source,
                peer: key.destination,
                subscriber_port: source_port,
                peer_port: destination_port,
                protocol: key.protocol,
            }
        } else {
            Ends {
                subscriber: key.destination,
                peer: key.source,
                subscriber_port: destination_port,
                peer_port: source_port,
                protocol: key.protocol,
            }
        };
        let identity = match (self.options.by, packet.tunnel) {
            (By::Tunnel, Some(tunnel)) => Identity::tunnel(tunnel),
            _ => Identity::address(ends.subscriber),
        };
        let subscriber = self.subscribers.prepare(identity);
        Pending {
            from_subscriber,
            identity,
            ends,
            subscriber,
            key: None,
            flow: FlowProbe::default(),
            is_new: false,
        }
    }

    /// Between whom it is, the subscriber first.
    pub fn ends(&self, packet: &Packet<'_>) -> Ends {
        self.orient(packet).ends
    }

    /// Which flow's is it?
    #[inline]
    fn locate(&self, pending: &mut Pending) {
        if let Some(number) = self.subscribers.find(pending.subscriber, pending.identity) {
            let key = Key::new(number, &pending.ends);
            pending.flow = self.flows.prepare(&key);
            pending.key = Some(key);
        }
    }

    /// Asks for the examination of a flow that is looked into: with its line, that is where a packet's cost lies. False: the flow isn't known;
    /// what is needed to enter it is asked for.
    #[inline]
    fn expect(&mut self, pending: &Pending) -> bool {
        let Some(key) = &pending.key else { return true };
        if let Some(line) = self.flows.confirm(pending.flow, key) {
            if let Standing::Open(number) = line.standing {
                self.examinations.prefetch(number);
            }
            return true;
        }
        self.flows.expect(pending.flow);
        self.subscribers.prefetch(key.subscriber);
        false
    }

    /// Asks for what subscribers of new flows have asked the names of: what is needed of them should be there by now.
    #[inline(never)]
    fn expect_names(&mut self, pending: &[Option<Pending>]) {
        for key in pending.iter().flatten().filter(|it| it.is_new).filter_map(|it| it.key) {
            if let Some(subscriber) = self.subscribers.get(key.subscriber) {
                subscriber.names.prefetch();
            }
        }
    }

    fn serve(&mut self, now: Nanos, packet: &Packet<'_>, pending: &mut Pending) {
        self.counters.packets += 1;
        if pending.key.is_none() {
            // Perhaps an earlier packet of the burst has brought its subscriber.
            self.locate(pending);
        }
        let transport = Transport::read(packet);
        if let Some(key) = pending.key
            && let Some(line) = self.flows.confirm(pending.flow, &key)
        {
            if !(line.is_closed() && transport.is_opening()) {
                line.count(now, pending.from_subscriber, packet.ip.total_len);
                line.see(pending.from_subscriber, transport.is_fin, transport.is_reset);
                let is_earlier = line.keep(pending.ends.protocol, self.options.timeouts);
                let (standing, side) = (line.standing, line.side(pending.from_subscriber));
                if is_earlier {
                    self.flows.reschedule(&key);
                }
                if let Standing::Open(number) = standing {
                    let sender = (pending.from_subscriber, side);
                    self.look(now, number, key, packet, &transport, sender);
                }
                if self.watching.is_some() {
                    self.watch(now, key, packet, &transport, side, false);
                }
                return;
            }
            // The same ends are used once more.
            if let Some(line) = self.flows.remove(&key) {
                self.end(now, key, line, Cause::Replaced);
            }
        }
        self.begin(now, packet, pending, &transport);
    }

    /// A flow's first packet.
    fn begin(&mut self, now: Nanos, packet: &Packet<'_>, pending: &mut Pending, transport: &Transport<'_>) {
        let known = pending.key.map(|key| key.subscriber);
        let added =
            known.or_else(|| self.subscribers.add(now, pending.identity, pending.ends.subscriber).ok());
        let Some(subscriber) = added else {
            self.counters.untracked += 1;
            return;
        };
        if known.is_none()
            && let Some(watching) = &mut self.watching
        {
            watching.rates.forget(subscriber);
        }
        let key = Key::new(subscriber, &pending.ends);
        let subscriber_is_client =
            pending.from_subscriber == transport.comes_from_client(packet, &self.knowledge.classifier);
        let standing = if transport.carrier.is_some() { self.examine(key) } else { Verdict::UNKNOWN.into() };
        let mut line = Line::new(now, standing, subscriber_is_client);
        line.count(now, pending.from_subscriber, packet.ip.total_len);
        line.see(pending.from_subscriber, transport.is_fin, transport.is_reset);
        line.keep(pending.ends.protocol, self.options.timeouts);
        let side = line.side(pending.from_subscriber);
        self.subscribers.join(subscriber);
        let Ok(evicted) = self.flows.insert(key, line) else {
            self.counters.untracked += 1;
            self.subscribers.leave(now, subscriber);
            if let Standing::Open(number) = standing {
                self.examinations.end(number);
            }
            return;
        };
        self.counters.flows += 1;
        if let Some((key, line)) = evicted {
            self.counters.evicted += 1;
            self.end(now, key, line, Cause::Evicted);
        }
        match standing {
            Standing::Open(number) => {
                self.foresee(number, subscriber, &pending.ends);
                self.look(now, number, key, packet, transport, (pending.from_subscriber, side));
            }
            Standing::Known { .. } => {
                let protocol = ip::of_ip(pending.ends.protocol.0, transport.payload);
                let reason = if protocol.is_some() { Reason::Header } else { Reason::Silent };
                self.settle(key, Verdict { protocol, reason, ..Verdict::UNKNOWN });
            }
        }
        if self.watching.is_some() {
            self.watch(now, key, packet, transport, side, true);
        }
    }

    /// Decodes and measures a packet.
    fn watch(
        &mut self,
        now: Nanos,
        key: Key,
        packet: &Packet<'_>,
        transport: &Transport<'_>,
        side: Side,
        is_first: bool,
    ) {
        let Some(mut watching) = self.watching.take() else { return };
        let known = self.flows.get(&key).map(|line| (line.standing, line.verdict()));
        let protocol = match known {
            Some((Standing::Open(number), _)) => {
                self.examinations.get_mut(number).and_then(|it| it.examination.found())
            }
            Some((_, verdict)) => verdict.and_then(|it| it.protocol),
            None => None,
        };
        let ports = packet.ip.key.ports.map_or((0, 0), |it| (it.source, it.destination));
        let watch = Watch {
            packet,
            transport,
            side,
            server_port: if side == Side::Client { ports.1 } else { ports.0 },
            protocol,
            is_known: known.is_some_and(|it| it.1.is_some()),
            application: known.and_then(|it| it.1).and_then(|it| it.application),
            is_first,
        };
        let evicted = watching.see(now, key, &watch);
        while let Some(decoded) = watching.poll() {
            if let Some(flow) = self.flow(key) {
                self.tell(Event::Decoded { flow, at: now, decoded: Box::new(decoded) });
            }
        }
        if let Some((key, watched)) = evicted {
            let application = self.flows.get(&key).and_then(Line::verdict).and_then(|it| it.application);
            let measures = watching.part(now, watched, application);
            self.tell_measures(now, key, measures, &watching);
        }
        self.watching = Some(watching);
    }

    fn tell_measures(&mut self, now: Nanos, key: Key, measures: Option<Box<Measures>>, watching: &Watching) {
        if let (Some(measures), Some(flow)) = (measures, self.flow(key)) {
            let subscriber_best = watching.rates.subscriber(key.subscriber).best(later(now));
            self.tell(Event::Measured { flow, measures, subscriber_best });
        }
    }

    /// Flows that go on: what is known of each so far. For those who show what happens now.
    pub fn going_on(&self) -> impl Iterator<Item = (Flow, Verdict, Summary, Option<&Measures>)> {
        self.flows.iter().filter_map(|(key, line)| {
            let measures = self.watching.as_ref().and_then(|it| it.measures(key));
            let verdict = match line.standing {
                Standing::Open(number) => self.examinations.get(number).map(Self::so_far),
                Standing::Known { .. } => line.verdict(),
            };
            Some((self.flow(*key)?, verdict?, line.summary(), measures))
        })
    }

    /// What is known of a flow that is looked into.
    fn so_far(examined: &Examined) -> Verdict {
        let protocol = examined.examination.found();
        let reason = if protocol.is_some() { Reason::Parser } else { Reason::Silent };
        Verdict { protocol, reason, application: examined.application.application(), ..Verdict::UNKNOWN }
    }

    /// Throughput of an application, or of flows without one, if flows are measured.
    pub fn rate_of(&self, application: Option<ApplicationId>) -> Rate {
        self.watching.as_ref().map(|it| it.rates.application(application)).unwrap_or_default()
    }

    /// A place for a flow that is looked into. If there is none, the one that has taken longest gets the verdict that it has so far.
    fn examine(&mut self, key: Key) -> Standing {
        let begun = self.examinations.begin(key).or_else(|full| {
            let oldest = self.examinations.oldest().ok_or(full)?;
            if let Some(line) = self.flows.get(&oldest)
                && let Standing::Open(number) = line.standing
            {
                self.counters.cut_short += 1;
                self.conclude(number, oldest);
            }
            self.examinations.begin(key)
        });
        begun.map_or_else(|_| Verdict::UNKNOWN.into(), Standing::Open)
    }

    /// What can be said before anything was seen: whose address the subscriber was told this is.
    fn foresee(&mut self, number: u32, subscriber: u32, ends: &Ends) {
        let application = self.subscribers.get(subscriber).and_then(|it| it.names.application(ends.peer));
        if let Some(application) = application
            && let Some(examined) = self.examinations.get_mut(number)
        {
            examined.application.weigh(application, Evidence::Memory);
        }
    }

    /// Looks into a packet of a flow that has no verdict.
    fn look(
        &mut self,
        now: Nanos,
        number: u32,
        key: Key,
        packet: &Packet<'_>,
        transport: &Transport<'_>,
        (from_subscriber, side): (bool, Side),
    ) {
        let Some(carrier) = transport.carrier else { return };
        // Acknowledgements say nothing; a SYN says where a stream begins.
        if transport.payload.is_empty() && !transport.is_syn {
            return;
        }
        let ip = packet.ip.key;
        let (source, destination) = ip.ports.map_or((0, 0), |it| (it.source, it.destination));
        let sender = End { address: ip.source, port: source };
        let receiver = End { address: ip.destination, port: destination };
        let (client, server) = if side == Side::Client { (sender, receiver) } else { (receiver, sender) };
        let shown = Shown {
            now,
            carrier,
            side,
            client,
            server,
            segment: transport.segment,
            payload: transport.payload,
        };
        let Some(examined) = self.examinations.get_mut(number) else { return };
        self.counters.looked_into += u64::from(!transport.payload.is_empty());
        self.room.seek_ja4(self.knowledge.bundle.has_ja4s());
        let progress = examined.examination.step(
            &self.knowledge.classifier,
            &self.options.limits,
            &mut self.room,
            &shown,
        );
        examined.application.read(&self.knowledge, carrier, transport.payload, &self.room.desk.sheet);
        // An answer to what was asked says which addresses the subscriber is going to use.
        if examined.examination.found() == Some(Protocol::Dns)
            && carrier == Carrier::Udp
            && let Some(message) = dns::Message::parse(transport.payload)
        {
            let host = self.room.desk.sheet.host.bytes();
            let (port, resolver) = if from_subscriber { (source, receiver) } else { (destination, sender) };
            let said = Said { message, host, from_subscriber, port, resolver };
            let subscriber = self.subscribers.get_mut(key.subscriber);
            self.knowledge.follow(&said, |_| subscriber.map(|it| &mut it.names));
        }
        if self.options.tells_names && !self.room.desk.sheet.is_empty() {
            let mut sheet = Box::new(self.room.desk.sheet);
            if let Some(mask) = &self.options.mask {
                mask.hide_found(&mut sheet);
            }
            if let Some(flow) = self.flow(key) {
                self.tell(Event::Found { flow, sheet });
            }
        }
        if progress == Progress::Ends {
            self.conclude(number, key);
        }
    }

    /// From now on, this is known. Flows under way go on; what is known of them by number holds if the new signatures were laid over the old ones.
    pub fn adopt(&mut self, knowledge: Arc<Knowledge>) {
        self.knowledge = knowledge;
    }

    /// What is known.
    pub fn knowledge(&self) -> &Arc<Knowledge> {
        &self.knowledge
    }

    /// An examination ends with what is known.
    fn conclude(&mut self, number: u32, key: Key) {
        if let Some(verdict) = self.verdict(number, key) {
            self.settle(key, verdict);
        }
    }

    fn verdict(&mut self, number: u32, key: Key) -> Option<Verdict> {
        let mut examined = self.examinations.end(number)?;
        let subscriber = self.subscribers.get(key.subscriber)?.address();
        let ends = key.ends(subscriber);
        let carrier = carrier(ends.protocol)?;
        let line = self.flows.get(&key);
        let server = if line.is_none_or(|it| it.side(true) == Side::Client) {
            End { address: ends.peer, port: ends.peer_port }
        } else {
            End { address: ends.subscriber, port: ends.subscriber_port }
        };
        let Knowledge { classifier, .. } = &*self.knowledge;
        let verdict = examined.examination.conclude(classifier, &mut self.room, carrier, server.port);
        Some(examined.application.complete(verdict, &self.knowledge, carrier, server))
    }

    fn settle(&mut self, key: Key, verdict: Verdict) {
        if let Some(line) = self.flows.get_mut(&key) {
            line.standing = verdict.into();
        }
        if let Some(flow) = self.flow(key) {
            self.tell(Event::Classified { flow, verdict });
        }
    }

    fn flow(&self, key: Key) -> Option<Flow> {
        let subscriber = self.subscribers.get(key.subscriber)?;
        Some(Flow { ends: key.ends(subscriber.address()), tunnel: subscriber.tunnel() })
    }

    /// A flow has left the table.
    fn end(&mut self, now: Nanos, key: Key, line: Line, cause: Cause) {
        let flow = self.flow(key);
        let verdict = match line.standing {
            Standing::Known { .. } => line.verdict(),
            Standing::Open(number) => {
                let verdict = self.verdict(number, key);
                if let (Some(flow), Some(verdict)) = (flow, verdict) {
                    self.tell(Event::Classified { flow, verdict });
                }
                verdict
            }
        };
        if let Some(mut watching) = self.watching.take() {
            let measures = watching.end(now, &key, verdict.and_then(|it| it.application));
            self.tell_measures(now, key, measures, &watching);
            self.watching = Some(watching);
        }
        self.subscribers.leave(now, key.subscriber);
        if let (Some(flow), Some(verdict)) = (flow, verdict) {
            self.tell(Event::Ended { flow, verdict, summary: line.summary(), cause });
        }
    }

    fn tell(&mut self, event: Event) {
        if self.results.len() < RESULTS {
            self.results.push_back(event);
        } else {
            self.counters.lost_results += 1;
        }
    }

    /// Ends what is due. To be called every now and then, and after packets with later times.
    pub fn tick(&mut self, now: Nanos) {
        let mut ended = std::mem::take(&mut self.ended);
        let subscribers = &self.subscribers;
        self.flows.expire(now, &mut |key, line| {
            subscribers.prefetch(key.subscriber);
            ended.push((key, line));
        });
        for (key, line) in ended.drain(..) {
            self.end(now, key, line, Cause::Timeout);
        }
        self.ended = ended;
        self.subscribers.expire(now);
    }

    /// Ends a flow, whichever: for those who are about to leave. False: there is none any more.
    pub fn flush_one(&mut self, now: Nanos) -> bool {
        let Some((key, line)) = self.flows.evict() else { return false };
        self.end(now, key, line, Cause::Flushed);
        true
    }
}
