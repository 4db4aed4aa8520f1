//! The fast datapath against the naive one: random rules, random packets, rules that change between packets. Every byte sent,
//! every drop reason, every counter and every report must agree.
#![allow(clippy::unwrap_used, clippy::wrong_self_convention)]

mod random;

use crate::reference::inspect::Told;
use crate::reference::{Reference, Said, World, inspect};
use crate::rig::ThirdOctet;
use crate::rig::asked::Asked;
use datapath::command::{Command, Event, Token, Transition};
use datapath::inspect::{Budget, Detection, Inspected, Inspection};
use datapath::lookups::Worth;
use datapath::{Burst, CheckSource, Config, Counters, Datapath, Outbox, Places, Reason, Slice};
use datapath::{Interface, Rib, Roles};
use io::Frame;
use io::mem::{FrameSize, MemFrame, MemPool};
use packet::tcp::{TcpFlags, TcpView};
use packet::{Dscp, IpPacket, MacAddr, Qfi};
use pfcp::FarId;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use session::config::PoolConfig;
use session::rules::*;
use session::usage::Trigger;
use session::{PrefixLength, PrefixLengths, SessionRef, ShardId, TeidKey};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use tables::{MeterConfig, Nanos, SharedMarker};

const N3: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const N6: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const ROUTER: MacAddr = MacAddr([2, 9, 0, 0, 0, 1]);
const GNB: MacAddr = MacAddr([2, 9, 0, 0, 0, 2]);
const SESSIONS: usize = 4;
/// Frames that are kept to come again.
const RECENT: usize = 40;
/// Flows in a shard: few, so that some have to go.
const FLOWS: u32 = 12;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn peers() -> HashMap<IpAddr, MacAddr> {
    let at = |n| MacAddr([2, 9, 0, 0, 1, n]);
    [("192.0.2.7", at(1)), ("192.0.2.8", at(2)), ("2001:db8:3::7", at(3))]
        .into_iter()
        .map(|(address, mac)| (ip(address), mac))
        .collect()
}

/// Servers on N6's own link.
fn hosts() -> HashMap<IpAddr, MacAddr> {
    let at = |n| MacAddr([2, 9, 0, 0, 2, n]);
    [("203.0.113.9", at(1)), ("2001:db8:6::9", at(2))]
        .into_iter()
        .map(|(address, mac)| (ip(address), mac))
        .collect()
}

/// Routers on N6's link that policies lead to: of IPv4 and IPv6.
const SERVICES: [(&str, MacAddr); 2] =
    [("203.0.113.40", MacAddr([2, 9, 0, 0, 3, 1])), ("2001:db8:6::40", MacAddr([2, 9, 0, 0, 3, 2]))];

/// UEs of one pool have a /56 each.
fn lengths() -> PrefixLengths {
    PrefixLengths::of(&[PoolConfig {
        ipv6: vec!["2001:db8:56::/48".parse().unwrap()],
        ipv6_length: PrefixLength::new(56).unwrap(),
        ..PoolConfig::default()
    }])
}

struct Bench {
    /// Frames that may come again.
    recent: VecDeque<(usize, Vec<u8>)>,
    rng: StdRng,
    config: Config,
    fast: Datapath<MemFrame>,
    out: Outbox<MemFrame>,
    pool: MemPool,
    slow: Reference,
    now: Nanos,
    ues: Vec<Ue>,
    teids: TeidKey,
    token: u64,
    packets: usize,
    kinds: BTreeMap<&'static str, usize>,
    /// All frames that the fast one sent, by port.
    sent: [Vec<Vec<u8>>; 2],
    /// What it told of applications.
    told: Vec<Detection>,
    /// Its bursts' look-ups are asked of a device.
    asked: Option<Asked>,
    /// Of all frames that the fast one sent, as they are.
    digest: DefaultHasher,
}

/// What stays the same of a session: its place and addresses.
struct Ue {
    place: SessionRef,
    ipv4: Option<Ipv4Addr>,
    ipv6: Option<ipnet::Ipv6Net>,
    framed: Vec<ipnet::Ipv4Net>,
    tunnels: Vec<Tunnel>,
    live: bool,
}

impl Bench {
    /// `flows`: how many a session may have.
    fn new(seed: u64, flows: u32, inspected: bool) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut rib = Rib::new();
        let interface = |port, mac, addresses: [&str; 2], mtu, roles| Interface {
            name: format!("if{port}"),
            port,
            vlan: None,
            mac,
            mtu,
            roles,
            addresses: addresses.iter().map(|a| a.parse().unwrap()).collect(),
            network_instances: Vec::new(),
        };
        let n3 = Roles { n3: true, ..Roles::default() };
        let n6 = Roles { n6: true, ..Roles::default() };
        let addresses3 = ["192.0.2.1/24", "2001:db8:3::1/64"];
        let addresses6 = ["203.0.113.1/24", "2001:db8:6::1/64"];
        rib.add_interface(interface(0, N3, addresses3, 1500, n3)).unwrap();
        rib.add_interface(interface(1, N6, addresses6, 1400, n6)).unwrap();
        rib.add_route("0.0.0.0/0".parse().unwrap(), 1, Some(ip("203.0.113.254"))).unwrap();
        rib.add_route("::/0".parse().unwrap(), 1, Some(ip("fe80::99"))).unwrap();
        let pools: Vec<ipnet::IpNet> =
            ["10.45.0.0/16", "2001:db8:45::/48", "2001:db8:56::/48", "172.16.0.0/12"]
                .iter()
                .map(|p| p.parse().unwrap())
                .collect();
        for pool in &pools {
            rib.add_ue_pool(*pool);
        }
        let isolated: Vec<ipnet::IpNet> =
            if rng.random_range(0..4) == 0 { vec!["172.16.0.0/12".parse().unwrap()] } else { Vec::new() };
        for pool in &isolated {
            rib.isolate(*pool);
        }
        rib.protect(ip("192.0.2.100"));
        rib.fix(1, ip("203.0.113.254"), ROUTER);
        rib.fix(1, ip("fe80::99"), ROUTER);
        for (address, mac) in peers() {
            rib.fix(0, address, mac);
        }
        for (address, mac) in hosts() {
            rib.fix(1, address, mac);
        }
        let [v4, v6] = SERVICES.map(|(address, mac)| {
            rib.fix(1, ip(address), mac);
            Some((1, ip(address)))
        });
        rib.steer(vec![[v4, v6], [v4, None], [None, v6]]).unwrap();
        rib.serve(0, 2);
        rib.serve(1, 1);
        let fib = rib.fib();
        let teids = TeidKey::new([(); 4].map(|()| rng.random()));
        let checks = [CheckSource::Off, CheckSource::Off, CheckSource::Learn, CheckSource::Strict];
        let check_source = checks[rng.random_range(0..checks.len())];
        let mut config = Config {
            icmp_rate: 1 << 30,
            application_rate: 1 << 30,
            redirect_rate: 1 << 30,
            error_rate: 1 << 30,
            buffered: Places::new(20),
            check_source,
            flows: FLOWS * SESSIONS as u32 / 4,
            flows_per_session: flows,
            flow_idle: 1,
            teids,
            prefixes: lengths(),
            ..Config::new(fib)
        };
        if inspected {
            // No flow is lost: conversations last as long as their flows, of which the naive one knows nothing.
            let (packets, bytes) = inspect::BUDGET;
            let budget = Budget { packets, bytes };
            config.inspection = Some(Inspection::new(ThirdOctet, budget, Places::new(1000)));
            (config.flows, config.flows_per_session, config.flow_idle) = (1 << 20, 1 << 20, 32_767);
        }
        // Half of the runs have tables for QFI and DSCP; assured forwarding among it, so that yellow shows.
        let (mut dscp_by_qfi, mut qfi_by_dscp) = (HashMap::new(), HashMap::new());
        let mark_inner = rng.random();
        if rng.random() {
            for (qfi, dscp) in [(0, 46), (1, 10), (2, 34), (3, 0)] {
                let (flow, dscp_name) = (Qfi::from_wire(qfi), Dscp::new(dscp).unwrap());
                config.marking.set_outer(flow, dscp_name);
                if mark_inner {
                    config.marking.set_inner(flow, dscp_name);
                }
                dscp_by_qfi.insert(qfi, dscp << 2);
            }
            for (dscp, qfi) in [(0, 1), (8, 2)] {
                config.marking.set_qfi(Dscp::new(dscp).unwrap(), Qfi::from_wire(qfi));
                qfi_by_dscp.insert(dscp, qfi);
            }
        }
        let mark_inner = mark_inner && !dscp_by_qfi.is_empty();
        // One slice is limited in one direction, the other only counted.
        let meter = |rate_bps| MeterConfig { rate_bps, burst_bytes: 3000 };
        let limited = Some(Arc::new(SharedMarker::new(meter(4_000), meter(40_000))));
        config.slices = vec![Slice { uplink: limited, downlink: None }, Slice::default()];
        let v4 = |text: &str| text.parse::<Ipv4Addr>().unwrap();
        let v6 = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        let own = ["192.0.2.1", "2001:db8:3::1", "203.0.113.1", "2001:db8:6::1", "192.0.2.100"];
        let world = World {
            n3_mac: N3,
            n6_mac: N6,
            n3: (v4("192.0.2.1"), v6("2001:db8:3::1")),
            n6: (v4("203.0.113.1"), v6("2001:db8:6::1")),
            n3_mtu: 1500,
            n6_mtu: 1400,
            peers: peers(),
            hosts: hosts(),
            router: ROUTER,
            radio: addresses3.iter().map(|net| net.parse().unwrap()).collect(),
            policies: {
                let [v4, v6] = SERVICES.map(|(_, mac)| Some(mac));
                [(1, [v4, v6]), (2, [v4, None]), (3, [None, v6])].into()
            },
            instances: vec![0, 1],
            own: own.iter().map(|a| ip(a)).collect(),
            pools,
            delegated: ("2001:db8:56::/48".parse().unwrap(), 56),
            isolated,
            links: ["192.0.2.0/24", "203.0.113.0/24"].map(|net| net.parse().unwrap()).into(),
            check_source,
            inspected,
            buffered_packets: 20,
            meter_burst: config.meter_burst,
            dscp_by_qfi,
            qfi_by_dscp,
            mark_inner,
            slices: vec![[Some([(4_000, 3000), (40_000, 3000)]), None], [None, None]],
        };
        let mut fast = Datapath::new(config.clone());
        for id in ShardId::all() {
            let shard = fast.new_shard(id);
            fast.adopt(shard);
        }
        let mut bench = Self {
            config,
            fast,
            out: Outbox::new(2),
            pool: MemPool::new(4096, FrameSize::Standard),
            slow: Reference::new(world),
            now: Nanos(rng.random_range(1..Nanos::SECOND * 100)),
            ues: Vec::new(),
            teids,
            token: 0,
            packets: 0,
            kinds: BTreeMap::new(),
            sent: Default::default(),
            told: Vec::new(),
            asked: None,
            digest: DefaultHasher::new(),
            recent: VecDeque::new(),
            rng,
        };
        for i in 0..SESSIONS {
            bench.add_ue(i as u32);
        }
        bench
    }

    fn apply_fast(&mut self, command: Command) {
        self.fast.apply(self.now, command, &mut self.out, &mut self.pool);
    }

    fn modify(&mut self) {
        let ue = self.rng.random_range(0..SESSIONS);
        self.token += 1;
        let token = Token(self.token);
        let place = self.ues[ue].place;
        match self.rng.random_range(0..10) {
            0 => {
                self.apply_fast(Command::Remove { token, session: place });
                let usage = self.slow.remove(place);
                self.expect_applied(token, usage);
                self.ues[ue].live = false;
            }
            1 | 2 => {
                let trigger = self.pick(&[Trigger::Periodic, Trigger::Immediate]);
                let query = Command::Query { token, session: place, urrs: Box::default(), trigger };
                self.apply_fast(query);
                let usage = self.slow.query(place, trigger);
                self.expect_applied(token, usage);
            }
            _ => {
                let found = self.ues[ue].live;
                let mut rules = self.rules(ue);
                if let Some(before) = self.slow.rules(place)
                    && self.chance(40)
                {
                    // Packets are classified as before, but something else happens to them. Now and then other applications are asked for,
                    // and nothing else of it is new.
                    let others = if self.slow.world.inspected { self.pick(&[0, 0, 0, 1, 2]) } else { 0 };
                    let (fars, qers, urrs) = (rules.fars.len(), rules.qers.len(), rules.urrs.len());
                    let mut chosen = |count: usize| {
                        (0..count as u16).filter(|_| self.rng.random()).collect::<Box<[u16]>>()
                    };
                    let again = |pdr: &Pdr| {
                        let (qers, urrs) = (chosen(qers), chosen(urrs));
                        let application =
                            pdr.application.map(|it| Application((it.0 + others) % 3 + it.0 / 10 * 10));
                        Pdr { far: pdr.far % fars as u16, qers, urrs, application, ..pdr.clone() }
                    };
                    rules.pdrs = before.pdrs.iter().map(again).collect();
                    rules.classifier.clone_from(&before.classifier);
                }
                let rules = Arc::new(rules);
                let end_markers: Box<[FarId]> =
                    rules.fars.iter().map(|far| far.id).filter(|_| self.rng.random()).collect();
                let discard = self.chance(20);
                let transition = Transition { end_markers: end_markers.clone(), drop_buffered: discard };
                let install =
                    Command::Install { token, rules: Arc::clone(&rules), transition, query: Box::default() };
                self.apply_fast(install);
                self.hear_beginnings();
                let usage = self.slow.install(self.now, &rules, &end_markers, discard);
                self.ues[ue].live = true;
                let at = self.out.events.iter().position(|e| matches!(e, Event::Applied { .. })).unwrap();
                let Event::Applied { token: t, found: f, usage: u } = self.out.events.remove(at) else {
                    panic!("not applied")
                };
                assert_eq!((t, f, u), (token, found, usage));
            }
        }
        self.compare();
    }

    fn expect_applied(&mut self, token: Token, usage: Option<Vec<session::usage::Usage>>) {
        match self.out.events.pop() {
            Some(Event::Applied { token: t, found, usage: u }) => {
                assert_eq!((t, found, u), (token, usage.is_some(), usage.unwrap_or_default()));
            }
            other => panic!("{other:?}"),
        }
    }

    /// Some frames that arrive at one port.
    fn frames(&mut self) -> (usize, Vec<Vec<u8>>) {
        let count = if self.chance(50) { 1 } else { self.rng.random_range(1..12) };
        let port = usize::from(self.chance(45));
        let mut frames = Vec::new();
        while frames.len() < count {
            let (at, frame) = self.frame();
            if at == port {
                frames.push(frame);
            }
        }
        self.packets += count;
        (port, frames)
    }

    fn step(&mut self) {
        self.now = self.now.plus(self.rng.random_range(0..40_000_000));
        if self.rng.random_range(0..200) == 0 {
            self.now = self.now.plus(self.rng.random_range(0..60 * Nanos::SECOND));
        }
        // One burst, or two that are under way at once: another one, or the same once more, whose flows the first one enters.
        let mut bursts = vec![self.frames()];
        if self.chance(20) {
            bursts.push(self.frames());
        } else if self.chance(60) {
            bursts.push(bursts[0].clone());
            self.packets += bursts[0].1.len();
        }
        let ready = bursts.iter().map(|(port, frames)| {
            let frames = frames.iter().map(|frame| MemFrame::copy_of(frame).unwrap());
            (*port as u16, Burst::of(frames.collect()))
        });
        let Self { fast, out, pool, .. } = self;
        if let Some(asked) = &mut self.asked {
            asked.process(fast, self.now, ready, out, pool);
        } else {
            let mut under_way: Vec<_> = ready
                .map(|(port, mut burst)| {
                    fast.begin(self.now, port, &mut burst, out);
                    burst
                })
                .collect();
            for burst in &mut under_way {
                fast.finish(self.now, burst, out, pool);
                assert!(burst.frames.is_empty());
            }
        }
        self.hear_beginnings();
        for (port, frames) in &bursts {
            self.slow.burst(self.now, *port, frames);
        }
        self.compare();
        if self.chance(30) {
            self.fast.tick(self.now, &mut self.out, &mut self.pool);
        }
        if self.slow.world.inspected && self.chance(25) {
            self.compare_told();
        }
    }

    /// With which numbers the fast one has begun the connections in which it takes a server's place: that is its secret. They stay what they are.
    fn hear_beginnings(&mut self) {
        for frame in &self.out.transmit[0] {
            let Some((ends, segment)) = tunnelled_segment(frame.bytes()) else { continue };
            let is_ours = segment.window() == u16::MAX;
            if is_ours && segment.flags() == TcpFlags::SYN.with(TcpFlags::ACK) {
                let connection = (ends.1, ends.0, segment.destination_port(), segment.source_port());
                self.slow.beginnings.entry(connection).or_insert_with(|| segment.sequence());
            }
        }
    }

    /// What both told of applications: of each session in the order in which they began, and whether they are over.
    fn compare_told(&mut self) {
        // Shards tell in turns.
        for _ in 0..16 {
            self.fast.tick(self.now, &mut self.out, &mut self.pool);
        }
        self.compare();
        let mut fast: BTreeMap<_, Vec<(Told, _)>> = BTreeMap::new();
        for &Detection { begins, seid, pdr, application, instance, ends, protocol } in &self.told {
            let of_session = fast.entry(seid).or_default();
            let told =
                Told { seid, pdr, application: application.0, ends, protocol: protocol.0, is_over: !begins };
            if begins {
                of_session.push((told, instance));
                continue;
            }
            let begun = of_session.iter_mut().find(|(begun, before)| *before == instance && !begun.is_over);
            begun.unwrap().0.is_over = true;
            assert!(of_session.iter().any(|it| it.0 == told), "it ends as another than it has begun");
        }
        let mut slow: BTreeMap<_, Vec<Told>> = BTreeMap::new();
        for told in &self.slow.conversations.told {
            slow.entry(told.seid).or_default().push(told.clone());
        }
        let plain = |all: Vec<(Told, _)>| all.into_iter().map(|(told, _)| told).collect::<Vec<_>>();
        let fast: BTreeMap<_, Vec<Told>> = fast.into_iter().map(|(seid, all)| (seid, plain(all))).collect();
        assert_eq!(fast, slow);
    }

    fn compare(&mut self) {
        let mut fast: [Vec<Vec<u8>>; 2] = [Vec::new(), Vec::new()];
        for (port, queue) in self.out.transmit.iter_mut().enumerate() {
            for frame in queue.drain(..) {
                frame.bytes().hash(&mut self.digest);
                fast[port].push(normal(frame.bytes()));
            }
        }
        let mut slow: [Vec<Vec<u8>>; 2] = [Vec::new(), Vec::new()];
        for (port, frame) in self.slow.sent.drain(..) {
            slow[port].push(normal(&frame));
        }
        *self.kinds.entry("sent").or_default() += slow[0].len() + slow[1].len();
        for (all, fast) in self.sent.iter_mut().zip(&fast) {
            all.extend_from_slice(fast);
        }
        for (fast, slow) in fast.iter().zip(&slow) {
            assert_eq!(fast.len(), slow.len(), "frames sent: {fast:?} {slow:?}");
            for (fast, slow) in fast.iter().zip(slow) {
                assert_eq!(fast, slow);
            }
        }
        assert!(self.out.hand_off.is_empty());
        let said: Vec<Said> = self
            .out
            .events
            .drain(..)
            .filter_map(|event| match event {
                // What was counted of applications is told now and then.
                Event::Carried { .. } => None,
                Event::Usage { seid, usage } => Some(Said::Usage(seid, usage)),
                Event::DownlinkData { seid, pdr, qfi, dscp } => {
                    Some(Said::DownlinkData(seid, pdr, qfi, dscp.get()))
                }
                Event::Applications(told) => {
                    self.told.extend(told);
                    None
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(said, self.slow.said);
        *self.kinds.entry("events").or_default() += said.len();
        self.slow.said.clear();
        let counters = self.fast.counters();
        let drops: BTreeMap<Reason, u64> = counters.drops().collect();
        assert_eq!(drops, self.slow.drops);
        assert_eq!((counters.uplink.packets, counters.uplink.bytes), self.slow.uplink);
        assert_eq!((counters.downlink.packets, counters.downlink.bytes), self.slow.downlink);
        assert_eq!(counters.yellow, self.slow.yellow);
        for (at, both) in self.fast.slices().enumerate() {
            for (traffic, uplink) in both.iter().zip([true, false]) {
                let [green, yellow, red] =
                    self.slow.slices.get(&(at as u16, uplink)).map_or([0; 3], |slice| slice.1);
                let counted = (traffic.green.packets, traffic.yellow.packets, traffic.red.packets);
                assert_eq!(counted, (green, yellow, red));
            }
        }
        assert_eq!(counters.buffered as usize, self.slow.buffered());
        let Inspected { conversations, open, .. } = self.fast.inspected();
        assert_eq!((conversations, open), self.slow.conversations.count());
        assert_eq!(counters.balance(), 0);
    }

    /// Another process goes on with what packets have counted: at once, and after a pause.
    fn restart(&mut self) {
        for pause in [0, 20_000_000_000] {
            let mut next = Datapath::new(self.config.clone());
            ShardId::all().for_each(|id| {
                let shard = next.new_shard(id);
                next.adopt(shard);
            });
            for i in 0..SESSIONS {
                let place = self.ues[i].place;
                let Some(rules) = self.slow.rules(place) else { continue };
                self.restart_session(&mut next, place, &rules, pause);
            }
        }
    }

    fn restart_session(
        &mut self,
        next: &mut Datapath<MemFrame>,
        place: SessionRef,
        rules: &Arc<Rules>,
        pause: u64,
    ) {
        let (token, slots) = (Token(0), [place.slot, place.slot + 99]);
        let export = || Command::Export { token, shard: place.shard, slots: slots.into() };
        let (out, pool, now) = (&mut self.out, &mut self.pool, self.now.plus(pause));
        let mut said = |by: &mut Datapath<MemFrame>, at: Nanos, command: Command| {
            by.apply(at, command, out, pool);
            // Mirrors and flows are told of, too.
            out.events.drain(..).next_back().unwrap()
        };
        let Event::Exported { sessions, .. } = said(&mut self.fast, self.now, export()) else { panic!() };
        let [(seid, counted)] = sessions.try_into().unwrap();
        assert_eq!(seid, rules.seid);
        let seen = |event| match event {
            Event::Snapshot { session: Some(session), .. } => {
                (session.pdrs, session.drops, session.last_packet, session.last_measured, session.consumed)
            }
            other => panic!("{other:?}"),
        };
        let inspect = || Command::Inspect { token, session: place };
        let before = seen(said(&mut self.fast, self.now, inspect()));
        let cut_off = counted[..counted.len() - 1].into();
        for (counted, is_whole) in [(cut_off, false), (counted.clone(), true)] {
            let rules = rules.clone();
            match said(next, now, Command::Restore { token, rules, counted }) {
                Event::Restored { whole, .. } => assert_eq!(whole, is_whole),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(seen(said(next, now, inspect())), before);
        let Event::Exported { sessions, .. } = said(next, now, export()) else { panic!() };
        assert!(pause > 0 || sessions == [(seid, counted)], "what leaves, comes back and leaves");
    }

    fn inspect(&mut self) {
        for i in 0..SESSIONS {
            let place = self.ues[i].place;
            self.apply_fast(Command::Inspect { token: Token(0), session: place });
            let Some(Event::Snapshot { session, .. }) = self.out.events.pop() else { panic!("no snapshot") };
            let fast = session.map(|s| (s.pdrs.clone(), s.drops.clone(), s.buffered as usize));
            assert_eq!(fast, self.slow.counts(place));
        }
    }
}

/// The frame without the outer IPv4 identification, which is a plain counter, once the checksum was seen to be right.
fn normal(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if frame[12..14] == [8, 0] {
        let ip = packet::Ipv4View::parse(&frame[14..]).unwrap();
        // A UE may send to this port, too, and what it says of its header is its own affair.
        let ours = IpAddr::V4(ip.source()) == self::ip("192.0.2.1");
        let tunnel = ours && packet::UdpView::parse(ip.payload()).is_ok_and(|u| u.destination_port() == 2152);
        if ip.protocol() == packet::IpProtocol::UDP && tunnel {
            assert!(ip.checksum_ok());
            frame[18..20].fill(0);
            frame[24..26].fill(0);
        }
    }
    frame
}

/// The segment that a G-PDU carries, and from where to where.
fn tunnelled_segment(frame: &[u8]) -> Option<((IpAddr, IpAddr), TcpView<'_>)> {
    let ethernet = packet::EthernetView::parse(frame).ok()?;
    let outer = IpPacket::parse(ethernet.payload()).ok()?;
    let datagram = packet::UdpView::parse(&ethernet.payload()[usize::from(outer.transport_offset)..]).ok()?;
    let packet = packet::GtpuView::parse(datagram.payload()).ok()?.payload();
    let ip = IpPacket::parse(packet).ok().filter(|ip| ip.key.protocol == packet::IpProtocol::TCP)?;
    let segment = TcpView::parse(&packet[usize::from(ip.transport_offset)..]).ok()?;
    Some(((ip.key.source, ip.key.destination), segment))
}

/// What two user planes send of the same random packets under the same random rules, of which one knows no flows: every
/// packet takes the slow path.
#[test]
fn what_flows_serve_is_what_the_slow_path_would_have_done() {
    let transcript = |seed: u64, flows: u32| {
        let mut bench = Bench::new(seed, flows, false);
        for _ in 0..2 * SESSIONS {
            bench.modify();
        }
        for step in 0..600 {
            if step % 25 == 0 {
                bench.modify();
            }
            bench.step();
        }
        (bench.sent, bench.fast.counters().flows.served)
    };
    let mut served = 0;
    for seed in 1..=30 {
        let ((with, by_flows), (without, none)) = (transcript(seed, FLOWS + 2), transcript(seed, 0));
        assert!(with == without, "MILLRACE_SEED={seed}");
        assert_eq!(none, 0);
        served += by_flows;
    }
    assert!(served > 500, "{served} packets were served by flows");
}

/// Two user planes under the same random rules and packets, of which one asks a device that is late, full, forgetful and wrong: they send the same
/// octets in the same order, and count the same, and both are right.
#[test]
fn whatever_a_device_says_the_same_packets_leave() {
    let transcript = |seed: u64, inspected, asked: Option<Asked>| {
        // As many flows as packets make; or fewer, so that lines change hands.
        let mut bench = Bench::new(seed, [FLOWS + 2, FLOWS / 2][seed as usize % 2], inspected);
        bench.asked = asked;
        for _ in 0..2 * SESSIONS {
            bench.modify();
        }
        for step in 0..300 {
            if step % 20 == 0 {
                bench.modify();
            }
            bench.step();
        }
        (bench.digest.finish(), bench.fast.counters().clone(), bench.asked)
    };
    let (mut sum, mut unanswered, mut late) = (Worth::default(), 0, 0);
    for seed in 1..=40 {
        let inspected = seed % 4 == 0;
        let lies = [0, 0, 20, 256][seed as usize / 2 % 4];
        let (digest, counters, _) = transcript(seed, inspected, None);
        let (with, counted, asked) = transcript(seed, inspected, Some(Asked::new(seed, lies)));
        assert_eq!(counters, counted, "MILLRACE_SEED={seed}");
        assert_eq!(digest, with, "MILLRACE_SEED={seed}");
        let Asked { worth, unanswered: without, late: behind, .. } = asked.unwrap();
        (unanswered, late) = (unanswered + without, late + behind);
        for (sum, worth) in [
            (&mut sum.right, worth.right),
            (&mut sum.wrong, worth.wrong),
            (&mut sum.unknown, worth.unknown),
            (&mut sum.nothing, worth.nothing),
        ] {
            *sum += worth;
        }
    }
    let enough = [sum.right, sum.wrong, sum.unknown, sum.nothing].iter().all(|count| *count > 500);
    assert!(enough && unanswered > 100 && late > 100, "{sum:?}, {unanswered} unanswered, {late} late");
}

fn run(
    seed: u64,
    steps: usize,
    inspected: bool,
) -> (usize, BTreeMap<&'static str, usize>, BTreeMap<Reason, u64>) {
    // Fewer than its packets make: some are refused.
    let mut bench = Bench::new(seed, FLOWS / 2, inspected);
    for _ in 0..2 * SESSIONS {
        bench.modify();
    }
    for step in 0..steps {
        if step % 25 == 0 || bench.chance(2) {
            bench.modify();
        }
        bench.step();
    }
    bench.inspect();
    bench.restart();
    // Nobody guesses the number of one connection from those of others.
    let numbers: HashSet<_> = bench.slow.beginnings.values().collect();
    assert_eq!(numbers.len(), bench.slow.beginnings.len());
    let Counters { flows, inspection, .. } = *bench.fast.counters();
    let what = [
        ("flows served", flows.served),
        ("flows revised", flows.revised),
        ("flows expired", flows.expired),
        ("flows evicted", flows.evicted),
        ("flows refused", flows.refused),
        ("shown", inspection.shown),
        ("recognised", inspection.recognised),
        ("unknown", inspection.unknown),
        ("exhausted", inspection.exhausted),
        ("begun", inspection.begun),
        ("ended", inspection.ended),
        ("redirected", bench.fast.counters().redirected),
        ("connections", bench.slow.beginnings.len() as u64),
        ("yellow", bench.fast.counters().yellow),
        ("beyond the slice's maximum", bench.fast.slices().next().unwrap()[0].red.packets),
        ("beyond what the slice is promised", bench.fast.slices().next().unwrap()[0].yellow.packets),
    ];
    for (what, n) in what {
        *bench.kinds.entry(what).or_default() += n as usize;
    }
    (bench.packets, bench.kinds, bench.slow.drops)
}

#[test]
fn the_fast_datapath_equals_the_naive_one() {
    let base: u64 = std::env::var("MILLRACE_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let mut packets = 0;
    let mut happened: BTreeMap<&str, usize> = BTreeMap::new();
    let mut reasons: BTreeMap<Reason, u64> = BTreeMap::new();
    let mut seed = base;
    while packets < 110_000 {
        let caught = std::panic::catch_unwind(|| run(seed, 400, false));
        let (p, kinds, drops) = caught.unwrap_or_else(|panic| {
            eprintln!("MILLRACE_SEED={seed} reproduces this");
            std::panic::resume_unwind(panic)
        });
        packets += p;
        for (what, n) in kinds {
            *happened.entry(what).or_default() += n;
        }
        for (reason, n) in drops {
            *reasons.entry(reason).or_default() += n;
        }
        seed += 1;
    }
    eprintln!("{packets} packets, {happened:?}, drops: {reasons:?}");
    assert!(happened["sent"] > packets / 4, "too little was forwarded to mean anything");
    assert!(happened["flows served"] > packets / 100, "too little was served by flows: {happened:?}");
    let others =
        ["shown", "recognised", "unknown", "exhausted", "begun", "ended", "redirected", "connections"];
    let idle = |what: &str| happened[what] == 0 && !others.contains(&what);
    assert!(!happened.keys().any(|what| idle(what)), "something never happened: {happened:?}");
    assert!(reasons.len() > 20, "too few reasons occurred: {reasons:?}");
    let walls =
        [Reason::MartianSource, Reason::UeSourceOutside, Reason::MartianFarEnd, Reason::ForeignFarEnd];
    for reason in walls.into_iter().chain([Reason::MartianDestination, Reason::UeToUe]) {
        assert!(reasons.contains_key(&reason), "{reason} never occurred");
    }
}

/// Rules that ask for applications, against the naive one's own idea of what each conversation is: rules change in the midst of questions, sessions
/// come and go, packets wait for their UEs.
#[test]
fn what_is_found_out_about_conversations_decides_over_both_alike() {
    let base: u64 = std::env::var("MILLRACE_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let mut happened: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in base..base + 150 {
        let caught = std::panic::catch_unwind(|| run(seed, 400, true));
        let (_, kinds, _) = caught.unwrap_or_else(|panic| {
            eprintln!("MILLRACE_SEED={seed} reproduces this");
            std::panic::resume_unwind(panic)
        });
        for (what, n) in kinds {
            *happened.entry(what).or_default() += n;
        }
    }
    eprintln!("{happened:?}");
    let inspection =
        ["shown", "recognised", "unknown", "exhausted", "begun", "ended", "redirected", "connections"];
    for what in ["flows served", "flows revised"].into_iter().chain(inspection) {
        assert!(happened[what] > 10, "{what} hardly ever happened: {happened:?}");
    }
}
