//! Two workers with an N3 and an N6 port between gNBs and a data network, and what must hold of everything they do.

use crate::frames::{GNB_MAC, N3_MAC, N6_MAC, ROUTER_MAC};
use crate::requests::{GNB, GNB_IPV6};
use crate::sent::{self, Judge};
use crate::translation::{Bindings, Scheme};
use crate::{Input, inspected, witness};
use counters::Count;
use datapath::inspect::Inspected;
use datapath::nat::{Plan, PoolCounters, Protocol};
use datapath::{
    Burst, CheckSource, Command, Config, Counters, Datapath, Event, HandedOff, Outbox, Places, Slice, Token,
    Transition,
};
use datapath::{Fib, Interface, Rib, Roles};
use io::mem::{FrameSize, MemFrame, MemPool};
use io::{Frame, FramePool};
use ipnet::IpNet;
use packet::IpProtocol;
use session::rules::Rules;
use session::store::{DirectoryChange, Store};
use session::{SHARDS, ShardId};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4};
use std::sync::Arc;
use tables::{MeterConfig, Nanos, SharedMarker};

/// The UPF's address towards the data network.
pub const N6: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
/// The same in IPv6.
pub const N6_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 6, 0, 0, 0, 0, 1);
/// Where SMFs reach the UPF.
pub const N4: Ipv4Addr = Ipv4Addr::new(192, 168, 99, 1);
/// A server behind the data network's router.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 7);
/// The same in IPv6.
pub const SERVER_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x5e, 0, 0, 0, 0, 7);
/// What a route over N3 leads to: gNBs behind a router.
pub const FARTHER: Ipv4Addr = Ipv4Addr::new(192, 88, 99, 7);
/// The same in IPv6.
pub const FARTHER_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x33, 0, 0, 0, 0, 7);
/// Far ends of tunnels, at most.
pub const FAR_ENDS: u16 = 4;
/// Where UEs' addresses are.
pub const UE_POOLS: [&str; 7] = [
    "10.45.0.0/24",
    "10.46.0.0/30",
    "2001:db8:45::/58",
    "2001:db8:56::/52",
    "172.16.0.0/24",
    "2001:db8:99::/48",
    "100.64.0.9/32",
];
/// Frames that exist at a time, at most: a leak is felt soon.
const FRAMES: usize = 256;
/// Of them, so many may be held for want of fragments or neighbours: an eighth, by both workers together.
const HELD: usize = FRAMES / 8;
/// Packets that a worker buffers, beside those that came with shards.
const BUFFERED: usize = 16;

/// Of orders about the witness.
const WITNESS: Token = Token(u64::MAX);

/// As long as a frame may wait for a neighbour, and a little longer: three questions, one a second.
pub const WAIT: u64 = 5 * Nanos::SECOND;

/// Rules that workers have, or had.
pub struct Passing {
    /// They.
    pub rules: Arc<Rules>,
    /// When others followed, or none.
    ended: Option<Nanos>,
}

struct Worker {
    datapath: Datapath<MemFrame>,
    out: Outbox<MemFrame>,
    /// Frames given to it from ports.
    injected: u64,
    /// Frames taken from its outbox.
    transmitted: u64,
}

/// The user plane of one UPF.
pub struct UserPlane {
    workers: [Worker; 2],
    /// Which worker has a shard, once it has been needed.
    owners: Vec<Option<usize>>,
    /// Those shards.
    needed: Vec<ShardId>,
    pool: MemPool,
    /// Rules that are in force or were until lately: a packet that waited for a neighbour left by them, though others have
    /// followed already.
    passing: Vec<Passing>,
    /// What the control side would be told.
    pub events: Vec<Event>,
    /// The time.
    pub now: Nanos,
    /// The network as it is configured.
    rib: Rib,
    /// What is translated, as each worker was told.
    schemes: [Arc<Scheme>; 2],
    /// And as one was told until then: a packet that waited for a neighbour left by that.
    former: Vec<(Arc<Scheme>, Nanos)>,
    /// Who has not been told of the last change yet.
    untold: Option<(usize, Arc<Fib>, Arc<Scheme>)>,
    /// Whether ever a session's rules passed on what another UPF sent: strangers' packets, too.
    passed_on: bool,
    /// Whether a shard changed hands between workers who had been told of different plans: it goes by its own until it is looked at.
    strayed: bool,
    /// What UEs were given of public endpoints.
    bindings: Bindings,
    /// Public endpoints that packets came from: protocol, address, port. The latest.
    pub public: VecDeque<(IpProtocol, Ipv4Addr, u16)>,
    /// Whom the workers asked for, and on which port. The latest.
    pub asked: VecDeque<(u16, IpAddr)>,
    /// Where UEs' addresses are.
    pools: Vec<IpNet>,
    /// Since frames were looked at last: nothing (`None`), or whether all that happened is that some came from the data network.
    from_outside: Option<bool>,
    /// A shard changed hands, and what it buffers with it.
    moved: bool,
    /// Frames of the witness's that left, by port.
    served: [u64; 2],
    /// From where tunnels' packets may come.
    check_source: CheckSource,
    /// Whether somebody looks into packets.
    inspected: bool,
}

/// One of the ways to check from where tunnels' packets come: as often one of them as none.
pub fn check_source(octet: u8) -> CheckSource {
    match octet % 4 {
        2 => CheckSource::Learn,
        3 => CheckSource::Strict,
        _ => CheckSource::Off,
    }
}

/// Public endpoints that are remembered, and neighbours.
const REMEMBERED: usize = 8;

impl UserPlane {
    /// Nothing has happened yet. `inspected`: somebody looks into packets, and rules ask for that.
    pub fn new(check_source: CheckSource, inspected: bool) -> Self {
        Self::with(check_source, Scheme::default(), inspected)
    }

    /// The same, with translation on N6.
    pub fn translating(check_source: CheckSource, inspected: bool) -> Self {
        Self::with(check_source, Scheme::first(), inspected)
    }

    fn with(check_source: CheckSource, scheme: Scheme, inspected: bool) -> Self {
        let mut rib = Rib::new();
        let interface = |port, mac, addresses: [&str; 2], roles| Interface {
            name: format!("if{port}"),
            port,
            vlan: None,
            mac,
            mtu: 1400,
            roles,
            addresses: addresses.iter().map(|text| text.parse().expect("an address")).collect(),
            network_instances: Vec::new(),
        };
        let n3 = Roles { n3: true, n9: true, n6: false };
        let n6 = Roles { n6: true, ..Roles::default() };
        let at3 = rib.add_interface(interface(0, N3_MAC, ["192.168.10.1/24", "2001:db8:3::1/64"], n3));
        let at6 = rib.add_interface(interface(1, N6_MAC, ["198.51.100.1/24", "2001:db8:6::1/64"], n6));
        let (at3, at6) = (at3.expect("room"), at6.expect("room"));
        let router = IpAddr::from([198, 51, 100, 254]);
        let router6 = IpAddr::from(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 9));
        for (destination, gateway) in [("0.0.0.0/0", router), ("::/0", router6)] {
            rib.add_route(destination.parse().expect("a network"), at6, Some(gateway)).expect("one family");
            rib.fix(at6, gateway, ROUTER_MAC);
        }
        // The second policy of sessions leads there, too, and what is on the link.
        let by_policy = vec![[None, None], [Some((at6, router)), Some((at6, router6))]];
        rib.steer(by_policy).expect("routers of both families");
        for (destination, gateway) in
            [("192.88.99.0/24", IpAddr::from(GNB)), ("2001:db8:33::/48", GNB_IPV6.into())]
        {
            rib.add_route(destination.parse().expect("a network"), at3, Some(gateway)).expect("one family");
        }
        // The gNB's IPv6 address is left to be found.
        rib.fix(at3, GNB.into(), GNB_MAC);
        rib.fix(at3, witness::GNB.into(), witness::GNB_MAC);
        let pools = UE_POOLS.map(|pool| pool.parse().expect("a network")).to_vec();
        pools.iter().for_each(|pool| rib.add_ue_pool(*pool));
        rib.protect(N4.into());
        rib.translate(Arc::new(scheme.after(&Plan::default())));
        let scheme = Arc::new(scheme);
        let fib = rib.fib();
        // Both workers draw on what there is of the slice: some packets are beyond it.
        let meter = |rate_bps| MeterConfig { rate_bps, burst_bytes: 3_000 };
        let marker = Arc::new(SharedMarker::new(meter(8_000), meter(64_000)));
        let slice = Slice { uplink: Some(Arc::clone(&marker)), downlink: Some(marker) };
        let inspection = inspected.then(inspected::inspection);
        let shared = Config { buffered: Places::new(BUFFERED), inspection, ..Config::new(fib) };
        let worker = |_| {
            let config = Config {
                check_source,
                slices: vec![slice.clone()],
                prefixes: crate::requests::config().prefix_lengths(),
                // The witness has one of its own.
                peers: FAR_ENDS + 1,
                neighbours: 16,
                neighbour_queue: 3,
                held_frames: HELD / 2,
                reassemblies: 12,
                fragment_flows: 8,
                ..shared.clone()
            };
            Worker { datapath: Datapath::new(config), out: Outbox::new(2), injected: 0, transmitted: 0 }
        };
        let mut plane = Self {
            workers: [0, 1].map(worker),
            owners: vec![None; SHARDS],
            needed: Vec::new(),
            pool: MemPool::new(FRAMES, FrameSize::Standard),
            passing: Vec::new(),
            events: Vec::new(),
            now: Nanos(Nanos::SECOND),
            rib,
            schemes: [Arc::clone(&scheme), scheme],
            former: Vec::new(),
            untold: None,
            strayed: false,
            passed_on: false,
            bindings: Bindings::default(),
            public: VecDeque::new(),
            asked: VecDeque::new(),
            pools,
            from_outside: None,
            moved: false,
            served: [0; 2],
            check_source,
            inspected,
        };
        let (rules, query) = (Arc::new(witness::rules()), Box::default());
        let install = Command::Install { token: WITNESS, rules, transition: Transition::default(), query };
        plane.post(witness::place().shard, install);
        plane.forget_witness();
        plane
    }

    /// Nobody but us is told of it.
    fn forget_witness(&mut self) {
        for worker in &mut self.workers {
            worker.out.events.retain(|event| !matches!(event, Event::Applied { token: WITNESS, .. }));
        }
    }

    fn owner(&mut self, shard: ShardId) -> usize {
        let owner = &mut self.owners[shard.index()];
        *owner.get_or_insert_with(|| {
            let at = shard.index() % 2;
            let datapath = &mut self.workers[at].datapath;
            let empty = datapath.new_shard(shard);
            assert!(datapath.adopt(empty).is_none());
            self.needed.push(shard);
            at
        })
    }

    /// For the owner of a shard.
    pub fn post(&mut self, shard: ShardId, mut command: Command) {
        let at = self.owner(shard);
        if let Command::Install { token, rules, .. } | Command::Restore { token, rules, .. } = &mut command
            && self.inspected
            && *token != WITNESS
        {
            *rules = inspected::asking(rules);
        }
        self.from_outside = Some(false);
        self.supersede(&command);
        let Worker { datapath, out, .. } = &mut self.workers[at];
        datapath.apply(self.now, command, out, &mut self.pool);
    }

    /// The same, and what comes of it: N4 doesn't hear of that.
    pub fn ask(&mut self, shard: ShardId, command: Command) -> Event {
        self.post(shard, command);
        let at = self.owner(shard);
        let events = &mut self.workers[at].out.events;
        let answer = events.iter().rposition(|event| {
            matches!(
                event,
                Event::Exported { .. }
                    | Event::Restored { .. }
                    | Event::Refused { .. }
                    | Event::Applied { .. }
            )
        });
        events.remove(answer.expect("every order is answered"))
    }

    /// What this order puts into force, and out of it.
    fn supersede(&mut self, command: &Command) {
        let place = match command {
            Command::Install { rules, .. } | Command::Restore { rules, .. } => rules.place,
            Command::Remove { session, .. } => *session,
            _ => return,
        };
        for passing in &mut self.passing {
            if passing.rules.place == place {
                passing.ended.get_or_insert(self.now);
            }
        }
        if let Command::Install { rules, .. } | Command::Restore { rules, .. } = command {
            self.passed_on |= sent::passes_on(rules);
            self.passing.push(Passing { rules: Arc::clone(rules), ended: None });
        }
    }

    /// For every worker.
    pub fn broadcast(&mut self, command: impl Fn() -> Command) {
        self.from_outside = Some(false);
        for Worker { datapath, out, .. } in &mut self.workers {
            datapath.apply(self.now, command(), out, &mut self.pool);
        }
    }

    /// For every worker.
    pub fn announce(&mut self, change: DirectoryChange) {
        match change {
            DirectoryChange::Tunnel { teid, place } => self.broadcast(|| Command::Directory { teid, place }),
            DirectoryChange::Address { prefix, session } => {
                self.broadcast(|| Command::AddressDirectory { prefix, session });
            }
        }
    }

    /// What is translated changes: one worker is told at once, the other one with it or when time has passed.
    pub fn reconfigure(&mut self, input: &mut Input<'_>) {
        let (mut scheme, how) = (Scheme::of(input.u8()), input.u8());
        if how & 4 != 0
            && let Some((protocol, address, port)) = self.public.front()
            && let Some(protocol) = Protocol::of(protocol.0)
        {
            scheme = scheme.forwarding(protocol, SocketAddrV4::new(*address, *port));
        }
        let scheme = Arc::new(scheme);
        self.tell_untold();
        let before = self.rib.fib().nat().cloned().unwrap_or_default();
        self.rib.translate(Arc::new(scheme.after(&before)));
        let (first, fib) = (usize::from(how & 1), self.rib.fib());
        self.tell(first, Arc::clone(&fib), Arc::clone(&scheme));
        self.untold = Some((1 - first, fib, scheme));
        if how & 2 == 0 {
            self.tell_untold();
        }
    }

    fn tell_untold(&mut self) {
        if let Some((at, fib, scheme)) = self.untold.take() {
            self.tell(at, fib, scheme);
        }
    }

    fn tell(&mut self, at: usize, fib: Arc<Fib>, scheme: Arc<Scheme>) {
        self.from_outside = Some(false);
        self.former.push((std::mem::replace(&mut self.schemes[at], scheme), self.now));
        let Worker { datapath, out, .. } = &mut self.workers[at];
        datapath.apply(self.now, Command::Fib(fib), out, &mut self.pool);
    }

    /// Gives a shard to the other worker.
    pub fn move_shard(&mut self, shard: ShardId) {
        let from = self.owner(shard);
        let state = self.workers[from].datapath.release(shard).expect("it is the owner's");
        assert!(self.workers[1 - from].datapath.adopt(state).is_none());
        self.owners[shard.index()] = Some(1 - from);
        self.moved = true;
        self.strayed |= self.untold.is_some();
    }

    /// Lets time pass, a second at a time at most: who is asked for once a second is given up after three, not after three calls.
    pub fn pass(&mut self, nanos: u64) {
        self.tell_untold();
        self.from_outside = Some(false);
        let end = self.now.plus(nanos);
        loop {
            self.now = end.min(self.now.plus(Nanos::SECOND));
            for Worker { datapath, out, .. } in &mut self.workers {
                datapath.tick(self.now, out, &mut self.pool);
            }
            if self.now == end {
                break;
            }
        }
    }

    /// Frames that arrive at a port in one burst, at the worker that polls this queue.
    pub fn receive(&mut self, worker: usize, port: u16, packets: &[Vec<u8>]) {
        // Two bursts that are under way at once, where there are packets for two.
        let (first, second) = packets.split_at(packets.len().div_ceil(2));
        let mut bursts = [first, second]
            .map(|packets| Burst::of(packets.iter().filter_map(|packet| self.frame(packet)).collect()));
        self.from_outside = Some(port == 1 && self.from_outside.unwrap_or(true));
        let Worker { datapath, out, injected, .. } = &mut self.workers[worker];
        for burst in &mut bursts {
            *injected += burst.frames.len() as u64;
            datapath.begin(self.now, port, burst, out);
        }
        for burst in &mut bursts {
            datapath.finish(self.now, burst, out, &mut self.pool);
            assert!(burst.frames.is_empty());
        }
    }

    fn frame(&mut self, packet: &[u8]) -> Option<MemFrame> {
        let mut frame = self.pool.alloc()?;
        if !frame.append(packet.len()) {
            return None;
        }
        frame.bytes_mut().copy_from_slice(packet);
        Some(frame)
    }

    /// What the workers left behind is brought on its way, and everything is looked at. `store` is what the SMFs were told.
    pub fn settle(&mut self, store: &Store) {
        // To the owner of a session, from there to that of another UE's; and again where a public address leads to either.
        for round in 0.. {
            assert!(round < 16, "frames are handed to and fro");
            // Workers who were told of different plans may take each other for the one whom a public address leads to.
            if round == 8 {
                self.tell_untold();
            }
            let mut quiet = true;
            for at in 0..2 {
                let mut handed: [Vec<HandedOff<MemFrame>>; 2] = Default::default();
                let mut hand_off = std::mem::take(&mut self.workers[at].out.hand_off);
                for (shard, packet) in hand_off.drain() {
                    handed[self.owner(shard)].push(packet);
                }
                for (owner, packets) in handed.into_iter().enumerate() {
                    if packets.is_empty() {
                        continue;
                    }
                    quiet = false;
                    let Worker { datapath, out, .. } = &mut self.workers[owner];
                    datapath.process_handed_off(self.now, packets, &mut Burst::new(), out, &mut self.pool);
                }
            }
            if quiet {
                break;
            }
        }
        self.share_neighbours();
        let schemes = self.schemes.each_ref().map(|scheme| &**scheme);
        // What a worker did before it was told just now is judged here, too.
        let replaced =
            self.former.iter().filter(|(_, until)| *until == self.now).map(|(scheme, _)| &**scheme);
        let lately: Vec<&Scheme> = schemes.into_iter().chain(replaced).collect();
        for worker in &mut self.workers {
            worker.out.events.retain(|event| match event {
                Event::Nat(told) => {
                    self.bindings.told(self.now, told, &lately);
                    false
                }
                _ => true,
            });
        }
        if let Some(plan) = self.rib.fib().nat().filter(|_| self.untold.is_none() && !self.strayed) {
            let places: Vec<usize> = plan.placed().map(|(place, _)| place).collect();
            let place = self.bindings.in_the_way(schemes[0], &places);
            assert_eq!(place, None, "an endpoint is forwarded and somebody else's: {:?}", self.bindings);
        }
        let former: Vec<&Scheme> = self.former.iter().map(|(scheme, _)| &**scheme).collect();
        let judge = Judge {
            store,
            passing: &self.passing,
            schemes: &lately,
            former: &former,
            bindings: &self.bindings,
            now: self.now,
            pools: &self.pools,
            from_outside: self.from_outside.take().unwrap_or(false),
        };
        for worker in &mut self.workers {
            for (port, frames) in worker.out.transmit.iter_mut().enumerate() {
                for frame in frames.drain(..) {
                    worker.transmitted += 1;
                    self.served[port] += u64::from(witness::is_its(port, frame.bytes()));
                    remember(&mut self.public, judge.sent(port, frame.bytes()));
                    remember(&mut self.asked, sent::asked(frame.bytes()).map(|target| (port as u16, target)));
                }
            }
            self.events.append(&mut worker.out.events);
        }
        let now = self.now;
        self.passing.retain(|passing| passing.ended.is_none_or(|at| now < at.plus(WAIT)));
        self.former.retain(|(_, until)| now < until.plus(WAIT));
        self.bindings.forget(Nanos(now.0.saturating_sub(WAIT)));
        self.check();
    }

    /// What one worker learned the other hears.
    fn share_neighbours(&mut self) {
        for at in 0..2 {
            let events = std::mem::take(&mut self.workers[at].out.events);
            let (learned, others): (Vec<_>, Vec<_>) =
                events.into_iter().partition(|event| matches!(event, Event::Neighbour { .. }));
            self.workers[at].out.events = others;
            for event in learned {
                let Event::Neighbour { interface, address, mac, confirmed } = event else { continue };
                for Worker { datapath, out, .. } in &mut self.workers {
                    let command = Command::Neighbour { interface, address, mac, confirmed };
                    datapath.apply(self.now, command, out, &mut self.pool);
                }
            }
        }
    }

    /// Whatever is held and buffered, a session that has nothing to do with it is served.
    pub fn serves(&mut self, store: &Store) {
        self.tell_untold();
        // An SMF may have chosen its TEID.
        let tunnel = witness::tunnel();
        self.broadcast(|| Command::Directory { teid: tunnel.teid, place: Some(tunnel.place) });
        for (worker, port, frame) in [(0, 0, witness::uplink()), (1, 1, witness::downlink())] {
            assert!(self.pool.in_use() < FRAMES, "no buffer is left: {:?}", self.counters());
            let before = self.served;
            self.receive(worker, port, &[frame]);
            self.settle(store);
            let mut after = before;
            after[usize::from(1 - port)] += 1;
            assert_eq!(self.served, after, "the witness is not served: {:?}", self.counters());
        }
        let before = self.served;
        self.receive(1, 0, &[witness::intrusion()]);
        self.settle(store);
        let intruded = self.served != before;
        assert!(!intruded || self.check_source != CheckSource::Strict, "a stranger spoke for the witness");
    }

    /// Every frame is accounted for.
    fn check(&self) {
        let mut waiting = 0;
        for worker in &self.workers {
            let counters = worker.datapath.counters();
            assert_eq!(counters.balance(), 0, "{counters:?}");
            assert_eq!(counters.received, worker.injected);
            assert_eq!(counters.sent, worker.transmitted);
            assert!(counters.held <= HELD as u64 / 2, "too much is held: {counters:?}");
            waiting += counters.buffered + counters.held;
            let shards = self.needed.iter().filter_map(|id| worker.datapath.shard(*id));
            assert_eq!(counters.buffered, shards.map(|shard| shard.buffered() as u64).sum::<u64>());
        }
        let Counters { buffered, nat, .. } = self.counters();
        let sum = |count: fn(&PoolCounters) -> u64| nat.iter().map(count).sum::<u64>();
        let given = (sum(PoolCounters::mappings), sum(PoolCounters::blocks));
        assert_eq!(given, self.bindings.counts(), "the log of bindings tells something else");
        let has_session = |ue: Ipv4Addr| {
            let mut installed = self.passing.iter().filter(|passing| passing.ended.is_none());
            installed.any(|passing| sent::is_ues(&passing.rules, ue.into()))
        };
        let stranger = self.bindings.ues().find(|ue| !self.passed_on && !has_session(*ue));
        assert_eq!(stranger, None, "it has no session, and a public endpoint all the same");
        assert!(buffered <= BUFFERED as u64, "{buffered} packets are buffered");
        assert_eq!(self.pool.in_use() as u64, waiting, "frames are held that nobody counts");
    }

    /// All workers' counters.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.workers.iter().for_each(|worker| sum.merge(worker.datapath.counters()));
        sum
    }

    /// Sessions that shards have, beside the witness's.
    pub fn sessions(&self) -> usize {
        self.all_sessions() - 1
    }

    fn all_sessions(&self) -> usize {
        let shards =
            self.workers.iter().flat_map(|w| self.needed.iter().filter_map(|id| w.datapath.shard(*id)));
        shards.map(|shard| shard.len()).sum()
    }

    /// No session is left: then, after a while, no frame is.
    pub fn end(mut self, store: &Store) {
        let witness = witness::place();
        self.post(witness.shard, Command::Remove { token: WITNESS, session: witness });
        for _ in 0..40 {
            self.pass(Nanos::SECOND);
            self.settle(store);
        }
        assert_eq!(self.all_sessions(), 0);
        let counters = self.counters();
        assert_eq!((counters.buffered, counters.held), (0, 0));
        // What is known of conversations goes with their flows.
        assert!(self.workers.iter().all(|worker| worker.datapath.inspected() == Inspected::default()));
        assert!(self.passed_on || self.bindings.counts() == (0, 0), "{:?}", self.bindings);
        assert_eq!(self.pool.in_use(), 0);
    }
}

/// Puts something new before what is remembered, of which the oldest is forgotten.
fn remember<T: PartialEq>(known: &mut VecDeque<T>, new: Option<T>) {
    if let Some(new) = new.filter(|new| !known.contains(new)) {
        known.truncate(REMEMBERED - 1);
        known.push_front(new);
    }
}
