//! One worker's state, and the order in which a burst meets it.

use crate::command::Event;
use crate::config::CheckSource;
use crate::costs::{Laps, Stage, StageCosts};
use crate::counters::{Counters, InterfaceCounters, Traffic};
use crate::hand_off::{self, HandedOff};
use crate::inspect::Inspected;
use crate::lookups::Batch;
use crate::meta::{self, Kind, Meta};
use crate::mirror::Taps;
use crate::nat;
use crate::network::peer::NO_PEER;
use crate::network::{Context, Network};
use crate::outbox::Outbox;
use crate::stages::burst::Burst;
use crate::stages::parse::{self, Arrival};
use crate::state::carried::Carried;
use crate::state::conversation::Conversations;
use crate::state::directory::Directory;
use crate::state::export::{Export, Ledger};
use crate::state::flow::{Flow, Key, Lookup};
use crate::state::fragment::{FirstFragments, FragmentFlows, Reassembly};
use crate::state::limits::Rates;
use crate::state::load::ShardLoads;
use crate::state::overload::Overload;
use crate::state::room::Room;
use crate::state::shard::Shard;
use crate::state::slice::{Share, SliceTraffic};
use crate::{Config, Reason};
use io::{BURST, Frame, FramePool};
use packet::rss;
use session::{SHARDS, ShardId};
use std::net::IpAddr;
use std::sync::Arc;
use tables::clock::Tsc;
use tables::{Nanos, Piece, Supply, Wish};

/// Rounds of packets that arise from other packets (to another UE, or an answer to a UE) in one call. A packet from a
/// UE to a UE takes one, the ICMP error about it another.
const ROUNDS: usize = 4;

/// Shards whose flows one tick looks over: all of them in sixteen.
const SWEPT: usize = SHARDS / 16;

/// One worker's share of the user plane: the shards it owns, and its copies of everything else.
///
/// All methods take the time and leave their results in an [`Outbox`]; nothing blocks, logs or waits.
#[derive(Debug)]
pub struct Datapath<F: Frame> {
    pub(crate) config: Config,
    pub(crate) shards: Vec<Option<Box<Shard<F>>>>,
    pub(crate) network: Network<F>,
    pub(crate) directory: Directory,
    pub(crate) counters: Counters,
    pub(crate) rates: Rates,
    pub(crate) reassembly: Reassembly<F>,
    pub(crate) fragment_flows: FragmentFlows,
    /// Who wants copies.
    pub(crate) taps: Taps,
    /// What is translated on N6.
    pub(crate) nat: Option<Arc<nat::Plan>>,
    /// Shards that came since the last burst, whose translations may go by another plan.
    pub(crate) newcomers: Vec<ShardId>,
    /// Ports of first fragments, for the translation of others.
    pub(crate) nat_fragments: FirstFragments<u16>,
    /// Internal frames that arose in this call.
    pub(crate) arisen: Vec<F>,
    /// What frames of our own making go through the stages in that arise beside a burst; empty between calls.
    aside: Burst<F>,
    /// Sessions here whose rules have records of their own.
    pub(crate) divided: usize,
    overload: Overload,
    /// For flows.
    pub(crate) room: Room,
    /// Memory for more of them.
    pub(crate) supply: Supply<Key, Flow>,
    /// What is told of flows.
    pub(crate) export: Export,
    /// What applications' traffic came to.
    pub(crate) carried: Carried,
    /// Its shares of slices, uplink and downlink of each in turn.
    pub(crate) slices: Vec<Share>,
    /// Shards whose flows are looked over next.
    sweep: usize,
    /// Which packets are sampled.
    sampled: u32,
    shard_loads: ShardLoads,
    /// What stages cost, while somebody asks.
    laps: Option<Box<Laps>>,
    /// What they cost when somebody asked last.
    stage_costs: StageCosts,
    /// Of the last outer IPv4 header.
    pub(crate) identification: u16,
    /// Reused by everything that builds packets of our own.
    pub(crate) scratch: Vec<u8>,
}

impl<F: Frame> Datapath<F> {
    /// A worker without shards.
    pub fn new(config: Config) -> Self {
        let network = Network::new(&config);
        let mut datapath = Self {
            shards: (0..SHARDS).map(|_| None).collect(),
            directory: Directory::new(config.seed, config.teids, config.prefixes.clone()),
            counters: Counters::default(),
            rates: Rates::new(&config),
            reassembly: Reassembly::new(config.reassemblies, config.fragment_timeout),
            fragment_flows: FragmentFlows::new(config.fragment_flows, config.fragment_timeout),
            taps: Taps::default(),
            nat: config.fib.nat().cloned(),
            newcomers: Vec::new(),
            nat_fragments: FirstFragments::new(config.fragment_flows, config.fragment_timeout),
            arisen: Vec::with_capacity(BURST),
            aside: Burst::new(),
            sampled: 0,
            shard_loads: ShardLoads::default(),
            laps: None,
            stage_costs: StageCosts::default(),
            divided: 0,
            overload: Overload::default(),
            room: Room::new(config.flows),
            supply: Supply::new(config.flow_supply),
            export: Export::new(config.export),
            carried: Carried::default(),
            slices: Share::of(&config.slices),
            sweep: 0,
            scratch: Vec::with_capacity(2048),
            identification: 0,
            network,
            config,
        };
        datapath.size_counters();
        datapath
    }

    pub(crate) fn size_counters(&mut self) {
        let interfaces = self.network.fib.interfaces().len();
        let pools = self.nat.as_ref().map_or(0, |plan| plan.names().count());
        if self.counters.nat.len() < pools {
            self.counters.nat.resize(pools, nat::PoolCounters::default());
        }
        if self.counters.interfaces.len() < interfaces {
            self.counters.interfaces.resize(interfaces, InterfaceCounters::default());
        }
    }

    /// Takes over a shard, with its sessions and their buffered packets. A shard that was here under the same number is
    /// returned. Takes as long as the shard's sessions have different peers, unless it comes from workers whose peers have other
    /// numbers ([`Config::peer_numbers`]): then all sessions are gone through.
    pub fn adopt(&mut self, mut shard: Box<Shard<F>>) -> Option<Box<Shard<F>>> {
        let network = &mut self.network;
        if let Some(luggage) = shard.luggage.take() {
            let mut strange = false;
            for (address, number, users) in &luggage.peers {
                strange |= network.acquire_peers(*address, *users) != Some(*number);
            }
            if strange {
                for (address, _, users) in &luggage.peers {
                    network.release_peers(*address, *users);
                }
                // A peer too many leaves the FAR without a way: its packets are dropped and counted.
                shard.relink(|address| network.acquire_peer(address).unwrap_or(NO_PEER));
            }
        }
        let index = shard.id().index();
        match (&self.nat, &shard.nat) {
            (Some(plan), None) => shard.nat = Some(Self::translations(&self.config, plan, shard.id())),
            (Some(_), Some(_)) => self.newcomers.push(shard.id()),
            (None, _) => {}
        }
        if shard.conversations.is_none() {
            shard.conversations = Self::conversations_of(&self.config, shard.id());
        }
        let before = self.release(shard.id());
        self.counters.buffered += shard.buffered() as u64;
        // The frames come with the shard.
        self.counters.handed_in += shard.buffered() as u64;
        self.divided += shard.divided();
        self.room.come(shard.id(), shard.flows.len());
        // It may come from before a change of limits.
        shard.flows.set_limit(self.config.flows);
        shard.check_sources(self.config.check_source);
        shard.flows.join(&mut self.supply);
        if let Some(place) = self.shards.get_mut(index) {
            *place = Some(shard);
        }
        before
    }

    /// Gives a shard away.
    pub fn release(&mut self, id: ShardId) -> Option<Box<Shard<F>>> {
        let mut shard = self.shards.get_mut(id.index())?.take()?;
        shard.luggage = Some(self.network.peers.pack(shard.peers()));
        self.counters.buffered -= shard.buffered() as u64;
        self.counters.handed_out += shard.buffered() as u64;
        self.divided -= shard.divided();
        self.room.go(id);
        shard.flows.leave(&mut self.supply);
        Some(shard)
    }

    /// Shards that are here.
    pub fn owned(&self) -> usize {
        self.shards.iter().flatten().count()
    }

    /// An empty shard with this worker's limits.
    pub fn new_shard(&self, id: ShardId) -> Box<Shard<F>> {
        let seed = self.config.seed ^ (id.index() as u64) << 48;
        let Config { sessions_per_shard, flows, meter_burst, .. } = self.config;
        let mut shard = Shard::new(id, sessions_per_shard, flows, meter_burst, seed);
        shard.prefixes = self.config.prefixes.clone();
        shard.flows.reserve(self.config.flows_reserved_per_shard);
        shard.nat = self.nat.as_ref().map(|plan| Self::translations(&self.config, plan, id));
        shard.conversations = Self::conversations_of(&self.config, id);
        Box::new(shard)
    }

    fn conversations_of(config: &Config, id: ShardId) -> Option<Box<Conversations>> {
        let seed = config.seed.rotate_left(24) ^ (id.index() as u64) << 48;
        config.inspection.as_ref().map(|inspection| Box::new(Conversations::new(inspection, seed)))
    }

    /// What is known of conversations, and asked, in all its shards.
    pub fn inspected(&self) -> Inspected {
        let each = self.shards.iter().flatten().filter_map(|shard| shard.conversations.as_ref());
        each.map(|conversations| conversations.count()).fold(Inspected::default(), |sum, next| Inspected {
            conversations: sum.conversations + next.conversations,
            open: sum.open + next.open,
            flows: sum.flows + next.flows,
        })
    }

    /// Whether this worker owns the shard.
    pub fn owns(&self, id: ShardId) -> bool {
        self.shards.get(id.index()).is_some_and(Option::is_some)
    }

    /// The shard, if it is here.
    pub fn shard(&self, id: ShardId) -> Option<&Shard<F>> {
        self.shards.get(id.index())?.as_deref()
    }

    /// What this worker counted.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What this worker counted of each slice: uplink, downlink.
    pub fn slices(&self) -> impl ExactSizeIterator<Item = [SliceTraffic; 2]> + '_ {
        let (pairs, _) = self.slices.as_chunks::<2>();
        pairs.iter().map(|[up, down]| [up.traffic, down.traffic])
    }

    /// For the engine, which learns what became of the outbox.
    pub const fn counters_mut(&mut self) -> &mut Counters {
        &mut self.counters
    }

    /// Which shards keep this worker busy, readable by others at any time.
    pub const fn shard_loads(&self) -> &ShardLoads {
        &self.shard_loads
    }

    /// What the stages cost since somebody asked, or when somebody asked last.
    pub fn stage_costs(&self) -> StageCosts {
        self.laps.as_ref().map_or(self.stage_costs, |laps| laps.costs())
    }

    /// Counts what stages cost until then; while it does already, it goes on.
    pub(crate) fn count_stages(&mut self, now: Nanos, clock: Tsc, until: Nanos) {
        match &mut self.laps {
            Some(laps) if !laps.is_over(now) => laps.extend(until),
            laps => *laps = Some(Box::new(Laps::new(clock, until))),
        }
    }

    #[inline(always)]
    fn end_of(&mut self, stage: Stage) {
        if let Some(laps) = &mut self.laps {
            laps.end(stage);
        }
    }

    /// Sessions in this worker's shards.
    pub fn sessions(&self) -> usize {
        self.shards.iter().flatten().map(|shard| shard.len()).sum()
    }

    /// Bytes of memory that flow entries take, and what is ready for more.
    pub fn flow_memory(&self) -> usize {
        let tables: usize = self.shards.iter().flatten().map(|shard| shard.flows.memory()).sum();
        tables + self.supply.memory()
    }

    /// A piece of memory that flow tables will need: to be made on another thread ([`FlowMemory::make`]), and brought.
    pub fn wish(&mut self) -> Option<Wish> {
        self.supply.wish()
    }

    /// Brings what was wished for.
    pub fn stock(&mut self, memory: FlowMemory) {
        self.supply.stock(memory.0);
    }

    /// The shard that a UE address belongs to, unless the address directory says otherwise, or UEs have more than a /64 there (then:
    /// [`session::addresses::shard_of_ipv6`]).
    pub fn shard_of(address: IpAddr) -> ShardId {
        ShardId::from_hash(rss::ue_hash(address))
    }

    /// So many quarters of the queue that a port's bursts come from are full, if that is known ([`io::RxQueue::quarters`]): in overload,
    /// whether new flows may begin depends on it. To be told with each burst that is full.
    pub fn queue_fills(&mut self, port: u16, quarters: Option<u8>) {
        self.overload.fills(port, quarters);
    }

    /// Processes frames that arrived at a port, and leaves the burst empty: [`Self::begin`] and [`Self::finish`] in a row.
    pub fn process<P: FramePool<Frame = F>>(
        &mut self,
        now: Nanos,
        port: u16,
        burst: &mut Burst<F>,
        out: &mut Outbox<F>,
        pool: &mut P,
    ) {
        self.begin(now, port, burst, out);
        self.finish(now, burst, out, pool);
    }

    /// Reads frames that arrived at a port, and asks for what they need first. Until [`Self::finish`], which has to come, other bursts
    /// may begin and finish, and nothing else may happen here. Those of one port finish in the order in which they began.
    pub fn begin(&mut self, now: Nanos, port: u16, burst: &mut Burst<F>, out: &mut Outbox<F>) {
        self.read(now, port, burst, out);
        self.look_up(burst);
    }

    /// The first part of [`Self::begin`]: reads the frames. What they need is asked for by [`Self::look_up`], or of a device
    /// by [`Self::question`]: one of these has to follow.
    pub fn read(&mut self, now: Nanos, port: u16, burst: &mut Burst<F>, out: &mut Outbox<F>) {
        burst.strangers = self.overload.allows(port, burst.frames.len(), self.config.new_flows_in_overload);
        self.arrive(now, port, burst, out);
    }

    /// As [`Self::begin`], for a queue that the port steers to ahead of its ordinary one, of which these bursts say
    /// nothing.
    pub fn begin_steered(&mut self, now: Nanos, port: u16, burst: &mut Burst<F>, out: &mut Outbox<F>) {
        burst.strangers = self.overload.allows_beside(port, self.config.new_flows_in_overload);
        self.arrive(now, port, burst, out);
        self.look_up(burst);
    }

    fn arrive(&mut self, now: Nanos, port: u16, burst: &mut Burst<F>, out: &mut Outbox<F>) {
        self.begin_stages(now, burst.frames.len());
        let Burst { frames, metas, .. } = burst;
        self.counters.received += frames.len() as u64;
        let into_tunnels = self.network.ingress.leads_into_tunnels(port);
        for frame in frames.iter() {
            frame.prefetch(into_tunnels);
        }
        let (network, counters) = (&self.network, &mut self.counters);
        metas.resize(frames.len(), Meta::EMPTY);
        // A port has one interface, mostly: counted in registers until another one turns up.
        let (mut interface, mut traffic) = (meta::NONE, Traffic::default());
        let arrival = Arrival::at(network, port);
        for (meta, frame) in metas.iter_mut().zip(frames.iter()) {
            arrival.parse_into(frame.bytes(), meta);
            if meta.interface != interface {
                counters.arrived(interface, traffic);
                (interface, traffic) = (meta.interface, Traffic::default());
            }
            traffic.add(frame.len());
        }
        counters.arrived(interface, traffic);
        self.end_of(Stage::Parse);
        self.translate(now, burst, out);
        if burst.mixed {
            self.divide(burst);
        }
    }

    #[inline(always)]
    fn begin_stages(&mut self, now: Nanos, packets: usize) {
        if let Some(laps) = &mut self.laps {
            if laps.is_over(now) {
                (self.stage_costs, self.laps) = (laps.costs(), None);
            } else {
                laps.begin(packets);
            }
        }
    }

    /// The stages of a burst whose frames are parsed, up to where look-ups are asked for.
    fn find(&mut self, now: Nanos, burst: &mut Burst<F>, out: &mut Outbox<F>) {
        self.translate(now, burst, out);
        self.look_up(burst);
    }

    #[inline(always)]
    fn translate(&mut self, now: Nanos, burst: &mut Burst<F>, out: &mut Outbox<F>) {
        if self.nat.is_some() {
            self.follow_newcomers(now, &mut out.events);
            self.translate_in(now, burst);
            self.end_of(Stage::TranslateIn);
        }
    }

    /// The second part of [`Self::begin`]: asks memory for what a burst needs that was read.
    #[inline]
    pub fn look_up(&mut self, burst: &mut Burst<F>) {
        self.locate(burst);
        self.end_of(Stage::Locate);
    }

    /// Decides over the frames of a burst that has begun, and leaves it empty.
    pub fn finish<P: FramePool<Frame = F>>(
        &mut self,
        now: Nanos,
        burst: &mut Burst<F>,
        out: &mut Outbox<F>,
        pool: &mut P,
    ) {
        let mut cx = Context { now, out, pool, strangers: burst.strangers };
        if let Some(laps) = &mut self.laps {
            laps.resume();
        }
        self.decide(&mut cx, burst);
        self.settle(&mut cx, burst);
    }

    /// As [`Self::finish`], for a burst whose look-ups a device was asked for. `batch` is what came back; without one, they
    /// are done here. What becomes of the frames is the same either way. Between [`Self::question`] and this, other bursts may begin and finish, and nothing
    /// else may happen here: who has something else to do finishes all bursts that are under way first.
    pub fn finish_answered<P: FramePool<Frame = F>>(
        &mut self,
        now: Nanos,
        burst: &mut Burst<F>,
        batch: Option<&Batch>,
        out: &mut Outbox<F>,
        pool: &mut P,
    ) {
        if let Some(laps) = &mut self.laps {
            laps.resume();
        }
        self.counters.under_way -= burst.hints.come();
        match batch {
            Some(batch) => self.hear(burst, &batch.answers),
            None => self.locate(burst),
        }
        self.end_of(Stage::Locate);
        self.finish(now, burst, out, pool);
    }

    /// Processes frames that another worker handed over ([`Outbox::hand_off`]). A frame whose shard isn't here, because it has just
    /// moved, is handed on.
    pub fn process_handed_off<P: FramePool<Frame = F>>(
        &mut self,
        now: Nanos,
        packets: impl IntoIterator<Item = HandedOff<F>>,
        burst: &mut Burst<F>,
        out: &mut Outbox<F>,
        pool: &mut P,
    ) {
        self.arrive_handed_off(now, packets, burst);
        self.process_arrived(now, burst, out, pool);
    }

    /// The first part of [`Self::process_handed_off`]: what is known of the frames. [`Self::process_arrived`] has to follow.
    pub fn arrive_handed_off(
        &mut self,
        now: Nanos,
        packets: impl IntoIterator<Item = HandedOff<F>>,
        burst: &mut Burst<F>,
    ) {
        let Burst { frames, metas, .. } = burst;
        for HandedOff { meta, frame } in packets {
            frame.prefetch_from_afar(meta.kind != Kind::Tunnel);
            metas.push(meta);
            frames.push(frame);
        }
        self.begin_stages(now, frames.len());
        self.counters.handed_in += frames.len() as u64;
        for (meta, frame) in metas.iter_mut().zip(frames) {
            if hand_off::is_read(meta) {
                // Where it is, this worker knows better.
                meta.slot = Meta::EMPTY.slot;
            } else {
                let port = self.network.port(meta.interface);
                *meta = Arrival::at(&self.network, port).handed_off(true).parse(frame.bytes());
            }
        }
        self.end_of(Stage::Parse);
    }

    /// As [`Self::read`], for frames that [have arrived](Self::arrive_handed_off) from another worker.
    pub fn read_arrived(&mut self, now: Nanos, burst: &mut Burst<F>, out: &mut Outbox<F>) {
        // They were received already: overload is not their affair.
        burst.strangers = u32::MAX;
        self.translate(now, burst, out);
    }

    /// The second part of [`Self::process_handed_off`].
    pub fn process_arrived<P: FramePool<Frame = F>>(
        &mut self,
        now: Nanos,
        burst: &mut Burst<F>,
        out: &mut Outbox<F>,
        pool: &mut P,
    ) {
        self.read_arrived(now, burst, out);
        self.look_up(burst);
        self.finish(now, burst, out, pool);
    }

    /// The stages from where what was looked up has arrived.
    fn decide<P: FramePool<Frame = F>>(&mut self, cx: &mut Context<'_, F, P>, burst: &mut Burst<F>) {
        self.located(burst);
        if burst.hints.are_heard() {
            Self::judge_sessions(burst);
        }
        if burst.away {
            self.set_apart(burst);
        }
        self.counters.handed_out += burst.leaving.len() as u64;
        cx.out.hand_off.append(&mut burst.leaving);
        self.sample(burst);
        self.end_of(Stage::Locate);
        if self.config.check_source != CheckSource::Off {
            self.check_sources(cx.now, burst);
            self.end_of(Stage::CheckSource);
        }
        if self.divided > 0 {
            self.look_closer(burst, cx.strangers);
            self.end_of(Stage::LookCloser);
        }
        if self.nat.is_some() {
            self.fetch_mappings(burst);
            self.end_of(Stage::TranslateOut);
        }
        let served = self.serve_first(cx, burst);
        self.end_of(Stage::Serve);
        let Burst { frames, metas, lookups, hints, .. } = burst;
        for (at, (meta, frame)) in (served..).zip(metas.iter().skip(served).zip(frames.drain(..))) {
            let lookup = lookups.get(at).and_then(Option::as_ref);
            // Its record has said no to the first of them already, unless that was left for its mirrors' sake.
            let unserved = if at == served && !self.is_mirrored(meta) {
                Err(frame)
            } else {
                self.serve_one(cx, meta, lookup, frame, None)
            };
            if let Err(frame) = unserved {
                // Who has begun goes on: what is known of a flow under question was paid for, and little is left to be done. But it takes a place.
                let waits = lookup.is_some_and(|lookup| !lookup.is_settled()) && !cx.admits_stranger();
                if waits && lookup.is_some_and(Lookup::is_stranger) {
                    self.counters.drop(Reason::NewFlowInOverload);
                } else {
                    self.dispatch(cx, meta, lookup, frame);
                }
            }
        }
        metas.clear();
        lookups.clear();
        hints.clear();
        self.end_of(Stage::Judge);
    }

    /// Counts one packet of each burst for all, for whoever wants to know which shards are busy.
    #[inline(always)]
    fn sample(&mut self, Burst { metas, .. }: &Burst<F>) {
        self.sampled = self.sampled.wrapping_add(0x9e37_79b9);
        // Any packet of the burst, as likely as any other.
        let at = ((u64::from(self.sampled) * metas.len() as u64) >> 32) as usize;
        if let Some(meta) = metas.get(at)
            && matches!(meta.kind, Kind::Tunnel | Kind::Plain)
        {
            self.shard_loads.add(meta.shard, metas.len() as u64);
        }
    }

    /// Whatever a record didn't serve.
    #[inline(never)]
    fn dispatch<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        lookup: Option<&Lookup>,
        frame: F,
    ) {
        match meta.kind {
            // `set_apart` has left none of another worker's users, but it has left our own packets.
            Kind::Tunnel | Kind::Plain if !self.has(meta.shard) => self.local(cx, meta, frame),
            Kind::Tunnel | Kind::Plain => self.unserved(cx, meta, lookup, frame),
            Kind::Public => {
                self.counters.handed_out += 1;
                cx.out.hand_off.push(meta, frame);
            }
            Kind::Bad(reason) => self.counters.drop(reason),
            Kind::Signalling => self.signalling(cx, meta, &frame),
            Kind::UnknownExtension(_) => self.unknown_extension(cx, meta, &frame),
            Kind::Arp => self.arp(cx, meta, frame),
            Kind::Local => self.local(cx, meta, frame),
            Kind::OuterFragment => self.outer_fragment(cx, meta, frame),
        }
    }

    /// Processes a frame of our own making as if it had just arrived.
    pub(crate) fn again<P: FramePool<Frame = F>>(&mut self, cx: &mut Context<'_, F, P>, port: u16, frame: F) {
        let mut burst = std::mem::take(&mut self.aside);
        burst.metas.push(Arrival::at(&self.network, port).parse(frame.bytes()));
        burst.frames.push(frame);
        self.find(cx.now, &mut burst, cx.out);
        self.decide(cx, &mut burst);
        self.aside = burst;
    }

    /// Processes the internal frames that arose beside any burst.
    pub(crate) fn settle_aside<P: FramePool<Frame = F>>(&mut self, cx: &mut Context<'_, F, P>) {
        let mut burst = std::mem::take(&mut self.aside);
        self.settle(cx, &mut burst);
        self.aside = burst;
    }

    /// Processes the internal frames that arose, and those that arise from them, and sees to it that not too many are held. The
    /// burst, which is empty, is what they go through the stages in.
    fn settle<P: FramePool<Frame = F>>(&mut self, cx: &mut Context<'_, F, P>, burst: &mut Burst<F>) {
        for _ in 0..ROUNDS {
            if self.arisen.is_empty() {
                break;
            }
            std::mem::swap(&mut burst.frames, &mut self.arisen);
            burst.metas.extend(
                burst.frames.iter().map(|frame| parse::internal(&self.config.prefixes, frame.bytes())),
            );
            self.find(cx.now, burst, cx.out);
            self.decide(cx, burst);
        }
        for frame in self.arisen.drain(..) {
            self.counters.drop(Reason::TtlExpired);
            drop(frame);
        }
        self.keep_budget();
    }

    pub(crate) fn shard_mut(&mut self, id: ShardId) -> Option<&mut Shard<F>> {
        self.shards.get_mut(id.index())?.as_deref_mut()
    }

    /// Regular work: unanswered solicitations, fragments that wait too long, flows that ended. Call about every millisecond.
    pub fn tick<P: FramePool<Frame = F>>(&mut self, now: Nanos, out: &mut Outbox<F>, pool: &mut P) {
        let mut cx = Context { now, out, pool, strangers: u32::MAX };
        self.network.tick(&mut cx, &mut self.counters);
        self.reassembly.expire(now, &mut self.counters);
        for _ in 0..SWEPT {
            if let Some(Some(shard)) = self.shards.get_mut(self.sweep) {
                let (export, counters) = (&mut self.export, &mut self.counters.flows);
                let mut ledger = Ledger { now, export, counters, room: &mut self.room };
                shard.sweep_flows(&mut ledger);
                shard.purge_flows(&mut ledger);
                shard.tell_carried(&mut self.carried);
                if let Some(conversations) = &mut shard.conversations
                    && !conversations.detections.is_empty()
                {
                    let told = std::mem::take(&mut conversations.detections);
                    let ended = told.iter().filter(|detection| !detection.begins).count();
                    self.counters.inspection.ended += ended as u64;
                    cx.out.events.push(Event::Applications(told.into()));
                }
                let nat_ledger =
                    &mut nat::Ledger { now, events: &mut cx.out.events, counters: &mut self.counters.nat };
                if let Some(state) = &mut shard.nat {
                    state.expire(nat_ledger);
                }
            }
            self.sweep = (self.sweep + 1) % SHARDS;
        }
        self.look_back(now);
        self.count_carried(now, &mut cx.out.events);
        self.export.flush(|records| cx.out.events.push(Event::Flows(records)));
        self.counters.flows.memory = self.supply.counters();
    }
}

/// Memory for more flows, which was written to.
#[derive(Debug)]
pub struct FlowMemory(Piece<Key, Flow>);

impl FlowMemory {
    /// Takes as long as the system does to find it.
    pub fn make(wish: Wish) -> Self {
        Self(wish.make())
    }
}
