//! The fast datapath against the naive one: random rules, random packets, rules that change between packets. Every byte sent,
//! every drop reason, every counter and every report must agree.
#![allow(clippy::unwrap_used, clippy::wrong_self_convention)]

use crate::reference::{Reference, Said, World};
use datapath::command::{Command, Event, Token, Transition};
use datapath::net::{Interface, Net, Roles};
use datapath::{CheckSource, Config, Datapath, Outbox, Places, Reason, Slice};
use io::Frame;
use io::mem::{FrameSize, MemFrame, MemPool};
use packet::{Dscp, MacAddr, PacketBuilder, PduSession, Qfi, Teid, pdu_session};
use pfcp::{FarId, PdrId, QerId, UrrId};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use session::classifier::Classifier;
use session::rules::*;
use session::usage::Trigger;
use session::{SessionRef, ShardId, TeidKey, TeidRef};
use std::collections::{BTreeMap, HashMap, VecDeque};
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

struct Bench {
    /// Frames that may come again.
    recent: VecDeque<(usize, Vec<u8>)>,
    rng: StdRng,
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
    fn new(seed: u64, flows: u32) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut net = Net::new();
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
        net.add_interface(interface(0, N3, addresses3, 1500, n3)).unwrap();
        net.add_interface(interface(1, N6, addresses6, 1400, n6)).unwrap();
        net.add_route("0.0.0.0/0".parse().unwrap(), 1, Some(ip("203.0.113.254"))).unwrap();
        net.add_route("::/0".parse().unwrap(), 1, Some(ip("fe80::99"))).unwrap();
        let pools: Vec<ipnet::IpNet> = ["10.45.0.0/16", "2001:db8:45::/48", "172.16.0.0/12"]
            .iter()
            .map(|p| p.parse().unwrap())
            .collect();
        for pool in &pools {
            net.add_ue_pool(*pool);
        }
        let isolated: Vec<ipnet::IpNet> =
            if rng.random_range(0..4) == 0 { vec!["172.16.0.0/12".parse().unwrap()] } else { Vec::new() };
        for pool in &isolated {
            net.isolate(*pool);
        }
        net.protect(ip("192.0.2.100"));
        net.fix(1, ip("203.0.113.254"), ROUTER);
        net.fix(1, ip("fe80::99"), ROUTER);
        for (address, mac) in peers() {
            net.fix(0, address, mac);
        }
        for (address, mac) in hosts() {
            net.fix(1, address, mac);
        }
        net.serve(0, 2);
        net.serve(1, 1);
        let view = net.view();
        let teids = TeidKey::new([(); 4].map(|()| rng.random()));
        let checks = [CheckSource::Off, CheckSource::Off, CheckSource::Learn, CheckSource::Strict];
        let check_source = checks[rng.random_range(0..checks.len())];
        let mut config = Config {
            icmp_rate: 1 << 30,
            error_rate: 1 << 30,
            buffered: Places::new(20),
            check_source,
            flows: FLOWS * SESSIONS as u32 / 4,
            flows_per_session: flows,
            flow_idle: 1,
            teids,
            ..Config::new(view)
        };
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
            instances: vec![0, 1],
            own: own.iter().map(|a| ip(a)).collect(),
            pools,
            isolated,
            links: ["192.0.2.0/24", "203.0.113.0/24"].map(|net| net.parse().unwrap()).into(),
            check_source,
            buffered_packets: 20,
            meter_burst: config.meter_burst,
            dscp_by_qfi,
            qfi_by_dscp,
            mark_inner,
            slices: vec![[Some([(4_000, 3000), (40_000, 3000)]), None], [None, None]],
        };
        let mut fast = Datapath::new(config);
        for id in ShardId::all() {
            let shard = fast.new_shard(id);
            fast.adopt(shard);
        }
        let mut bench = Self {
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
            recent: VecDeque::new(),
            rng,
        };
        for i in 0..SESSIONS {
            bench.add_ue(i as u32);
        }
        bench
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.rng.random_range(0..from.len())]
    }

    fn add_ue(&mut self, i: u32) {
        let ipv4 = self.chance(85).then(|| Ipv4Addr::from(0x0a2d_0001 + i));
        let v6 = ipv4.is_none() || self.chance(70);
        let length = self.pick(&[64, 64, 64, 60]);
        let prefix = format!("2001:db8:45:{:x}00::/{length}", i + 1).parse().unwrap();
        let ipv6 = v6.then_some(prefix);
        let framed = if ipv4.is_some() && self.chance(30) {
            vec![format!("172.{}.0.0/24", 16 + i).parse().unwrap()]
        } else {
            Vec::new()
        };
        let shard = match ipv4 {
            Some(address) => Datapath::<MemFrame>::shard_of(address.into()),
            None => ShardId::from_hash(self.rng.random()),
        };
        let place = SessionRef { shard, slot: i };
        let mut tunnels = Vec::new();
        for n in 0..2u16 {
            let at = TeidRef { shard, slot: i as u16 * 2 + n };
            let own = self.teids.seal(at.teid(7));
            // Some TEIDs were chosen by an SMF and say nothing about the place.
            let teid = if self.chance(30) { Teid(0x100 * (i + 1) + u32::from(n)) } else { own };
            if teid != own {
                self.apply_fast(Command::Directory { teid, place: Some(at) });
            }
            tunnels.push(Tunnel { teid, place: at });
        }
        let mut exceptions: Vec<ipnet::IpNet> = framed.iter().map(|n| ipnet::IpNet::V4(*n)).collect();
        exceptions.extend(ipv6.map(ipnet::IpNet::V6));
        for prefix in exceptions {
            self.apply_fast(Command::AddressDirectory { prefix, session: Some(place) });
        }
        self.ues.push(Ue { place, ipv4, ipv6, framed, tunnels, live: false });
    }

    fn apply_fast(&mut self, command: Command) {
        self.fast.apply(self.now, command, &mut self.out, &mut self.pool);
    }

    fn rules(&mut self, ue: usize) -> Rules {
        let tunnels = self.ues[ue].tunnels.clone();
        let simple = self.chance(35);
        let qer_count = self.rng.random_range(0..3u16);
        let urr_count = self.rng.random_range(0..3u16);
        let far_count = self.rng.random_range(2..5u16);
        let peer_list = ["192.0.2.7", "192.0.2.8", "2001:db8:3::7"].map(ip);
        let mut fars = Vec::new();
        for id in 0..far_count {
            let teid = Teid(self.rng.random_range(1..9));
            let outer = OuterHeader { teid, peer: self.pick(&peer_list) };
            let dscp = self.chance(30).then(|| Dscp::from_tos(self.rng.random()));
            let instance = self.pick(&[0, 0, 0, 0, 1, 1, 1, 2]);
            let forward = |destination, outer_header| {
                Action::Forward(Forward {
                    transport_marking: dscp,
                    instance,
                    ..Forward::to(destination, outer_header)
                })
            };
            let action = match self.rng.random_range(0..16) {
                0..=4 => forward(Destination::Core, None),
                5..=9 => forward(Destination::Access, Some(outer)),
                10 => forward(Destination::Core, Some(outer)),
                11 => forward(Destination::CpFunction, Some(outer)),
                12 => Action::Drop,
                13 => Action::ForwardUnresolved,
                _ => Action::Buffer { notify: self.chance(70), packets: self.rng.random_range(0..8) },
            };
            fars.push(Far { id: FarId(u32::from(id) * 3 + 1), action });
        }
        let mut qers = Vec::new();
        for id in 0..qer_count {
            let rates = [None, None, Some(64_000), Some(1_000_000), Some(1_000_000_000)];
            // Zero promises nothing: every packet is yellow.
            let promised = [None, None, Some(0), Some(32_000), Some(2_000_000)];
            qers.push(Qer {
                id: QerId(u32::from(id) + 1),
                uplink_open: self.chance(92),
                downlink_open: self.chance(92),
                uplink_mbr: self.pick(&rates),
                downlink_mbr: self.pick(&rates),
                uplink_gbr: self.pick(&promised),
                downlink_gbr: self.pick(&promised),
                qfi: self.chance(60).then(|| Qfi::from_wire(self.rng.random_range(0..4))),
                reflective: self.chance(20),
                paging_policy: self.chance(10).then(|| self.rng.random_range(0..8)),
            });
        }
        let mut urrs = Vec::new();
        for id in 0..urr_count {
            let limit =
                |bench: &mut Self, scale: u64| bench.chance(35).then(|| bench.rng.random_range(1..scale));
            let nothing = self.chance(4).then_some(0);
            urrs.push(Urr {
                id: UrrId(u32::from(id) * 2 + 1),
                before_enforcement: self.chance(25),
                threshold: VolumeLimit {
                    total: limit(self, 8000),
                    uplink: limit(self, 8000),
                    downlink: limit(self, 8000),
                },
                quota: VolumeLimit {
                    total: nothing.or(limit(self, 60_000)),
                    uplink: limit(self, 60_000),
                    downlink: None,
                },
                quota_generation: self.rng.random_range(0..3),
                blocked: self.chance(2),
                start_of_traffic: self.chance(30),
                inactive: self.chance(10),
            });
        }
        let mut pdrs = Vec::new();
        let pdr_count = if simple { 2 } else { self.rng.random_range(1..6) };
        for id in 0..pdr_count {
            let (source, tunnel) = match if simple { id * 2 } else { self.rng.random_range(0..5) } {
                0 | 1 => (Source::Access, Some(tunnels[0])),
                2 | 3 => (Source::Core, None),
                _ => (self.pick(&[Source::Core, Source::CpFunction]), Some(tunnels[1])),
            };
            let mut filters = Vec::new();
            if !simple && self.chance(50) {
                for _ in 0..self.rng.random_range(1..3) {
                    filters.push(self.filter());
                }
            }
            let qfis =
                if self.chance(15) { vec![Qfi::from_wire(self.rng.random_range(0..4))] } else { vec![] };
            let chosen = |bench: &mut Self, count: u16| -> Box<[u16]> {
                (0..count).filter(|_| bench.chance(60)).collect()
            };
            // Mostly the natural direction, so that much is forwarded.
            let mut far = self.rng.random_range(0..far_count);
            if self.chance(70) {
                let wanted = |action: Action| match action {
                    Action::Forward(f) => (f.destination == Destination::Access) != source.is_uplink(),
                    _ => false,
                };
                far = fars.iter().position(|f| wanted(f.action)).map_or(far, |i| i as u16);
            }
            pdrs.push(Pdr {
                precedence: self.rng.random_range(0..4),
                qfis: qfis.into(),
                filters: filters.into(),
                qers: chosen(self, qer_count),
                urrs: chosen(self, urr_count),
                ..Pdr::all(PdrId(id as u16 + 1), source, tunnel, far)
            });
        }
        if self.chance(20) {
            // What Open5GS sends for router solicitations.
            let filter = SdfFilter {
                protocol: Some(58),
                destination: Some(Prefix::V6("ff02::2/128".parse().unwrap())),
                ..SdfFilter::default()
            };
            let far = self.rng.random_range(0..far_count);
            pdrs.push(Pdr {
                precedence: 0,
                filters: [filter].into(),
                ..Pdr::all(PdrId(90), Source::Access, Some(tunnels[0]), far)
            });
        }
        if !simple && self.chance(60) {
            // What filters leave over goes out all the same.
            for (id, source, tunnel) in [(80, Source::Access, Some(tunnels[0])), (81, Source::Core, None)] {
                let towards = |action: Action| match action {
                    Action::Forward(f) => (f.destination == Destination::Access) != source.is_uplink(),
                    _ => false,
                };
                let far = fars.iter().position(|far| towards(far.action)).unwrap_or(0) as u16;
                pdrs.push(Pdr {
                    precedence: 9,
                    qers: (0..qer_count).collect(),
                    urrs: (0..urr_count).collect(),
                    ..Pdr::all(PdrId(id), source, tunnel, far)
                });
            }
        }
        pdrs.sort_by_key(|pdr| (pdr.precedence, pdr.id));
        let slice = self.chance(25).then(|| self.pick(&[0, 1]));
        let classifier = if self.chance(50) { Classifier::of(&pdrs).map(Box::new) } else { None };
        let ue = &self.ues[ue];
        Rules {
            ue_ipv6: ue.ipv6,
            framed_ipv4: ue.framed.clone().into(),
            slice,
            classifier,
            qers: qers.into(),
            urrs: urrs.into(),
            ..Rules::of(ue.place, ue.ipv4, pdrs, fars)
        }
    }

    fn filter(&mut self) -> SdfFilter {
        let prefixes = ["8.8.8.0/24", "10.45.0.0/16", "0.0.0.0/0"].map(|p| Prefix::V4(p.parse().unwrap()));
        let ports = |bench: &mut Self| -> Box<[(u16, u16)]> {
            if bench.chance(30) { [(bench.rng.random_range(0..4), 5), (7, 7)].into() } else { Box::default() }
        };
        SdfFilter {
            protocol: self.chance(40).then(|| self.pick(&[6, 17, 1])),
            source: self.chance(30).then(|| self.pick(&prefixes)),
            destination: self.chance(30).then(|| self.pick(&prefixes)),
            source_ports: ports(self),
            destination_ports: ports(self),
            tos: self.chance(15).then_some((0x20, 0xfc)),
            ..SdfFilter::default()
        }
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
                    // Packets are classified as before, but something else happens to them.
                    let (fars, qers, urrs) = (rules.fars.len(), rules.qers.len(), rules.urrs.len());
                    let mut chosen = |count: usize| {
                        (0..count as u16).filter(|_| self.rng.random()).collect::<Box<[u16]>>()
                    };
                    let again = |pdr: &Pdr| {
                        let (qers, urrs) = (chosen(qers), chosen(urrs));
                        Pdr { far: pdr.far % fars as u16, qers, urrs, ..pdr.clone() }
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

    fn inner(&mut self, source: IpAddr, destination: IpAddr) -> Vec<u8> {
        let size =
            if self.chance(8) { self.rng.random_range(1300..1500) } else { self.rng.random_range(0..200) };
        let payload: Vec<u8> = (0..size).map(|i| i as u8).collect();
        let ttl = self.pick(&[64, 64, 64, 64, 2, 1]);
        // AF11 and AF41 among it, and every ECN field.
        let tos = self.pick(&[0, 0, 0x20, 0xb8, 10 << 2, 34 << 2]) | self.pick(&[0, 0, 0, 1, 2, 3]);
        let builder = match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                PacketBuilder::new().ipv4_header(packet::ipv4::Ipv4Header {
                    source,
                    destination,
                    ttl,
                    tos,
                    identification: self.rng.random(),
                    dont_fragment: self.chance(50),
                    ..Default::default()
                })
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                PacketBuilder::new().ipv6_header(packet::ipv6::Ipv6Header {
                    source,
                    destination,
                    hop_limit: ttl,
                    traffic_class: tos,
                    ..Default::default()
                })
            }
            _ => return self.inner(source, if source.is_ipv4() { ip("8.8.8.8") } else { ip("2a00::8") }),
        };
        let (from, mut to) = (self.rng.random_range(3..8), self.rng.random_range(4..8));
        if self.chance(5) {
            to = packet::GTP_U_PORT;
        }
        match self.rng.random_range(0..3) {
            0 => builder.tcp(packet::tcp::TcpHeader {
                source_port: from,
                destination_port: to,
                ..Default::default()
            }),
            1 if source.is_ipv4() => {
                builder.icmpv4_echo(packet::icmpv4::Echo { request: true, identifier: from, sequence: to })
            }
            _ => builder.udp(from, to),
        }
        .build(&payload)
    }

    /// An address of a UE, or nearly.
    fn ue_address(&mut self, v6: bool) -> IpAddr {
        let ue = self.rng.random_range(0..SESSIONS);
        let low: u64 = self.rng.random_range(1..4);
        let ue = &self.ues[ue];
        match (v6, ue.ipv4, ue.ipv6) {
            (true, _, Some(net)) => IpAddr::V6(Ipv6Addr::from(u128::from(net.network()) | u128::from(low))),
            (true, ..) => ip("2001:db8:45:9999::1"),
            (false, Some(_), _) if !ue.framed.is_empty() && low.is_multiple_of(3) => {
                IpAddr::V4(Ipv4Addr::from(u32::from(ue.framed[0].network()) + 5))
            }
            (false, Some(address), _) => address.into(),
            (false, ..) => ip("10.45.99.99"),
        }
    }

    /// Addresses that nobody outside has, and some that look like these.
    fn strange_source(&mut self, v4: bool) -> IpAddr {
        let v4s = [
            "0.0.0.0",
            "0.7.7.7",
            "127.0.0.1",
            "224.0.0.9",
            "255.255.255.255",
            "240.0.0.1",
            "203.0.113.1",
            "192.0.2.1",
            "192.0.2.100",
            "203.0.113.255",
            "192.0.2.255",
            "10.45.0.1",
            "10.45.200.9",
            "172.20.1.1",
            "1.0.0.1",
            "126.9.9.9",
            "128.0.0.1",
            "223.255.255.1",
            "10.46.0.1",
            "172.32.0.1",
            "203.0.113.9",
        ];
        let v6s = [
            "::",
            "::1",
            "::ffff:8.8.8.8",
            "fe80::7",
            "ff02::1",
            "ff0e::1",
            "2001:db8:6::1",
            "2001:db8:3::1",
            "2001:db8:45:100::9",
            "2001:db8:46::1",
            "fc00::1",
            "64:ff9b::1",
            "2001:db8:6::9",
        ];
        ip(if v4 { self.pick(&v4s) } else { self.pick(&v6s) })
    }

    /// Addresses that packets are not to go to, and some that look like these.
    fn strange_destination(&mut self, v4: bool) -> IpAddr {
        let v4s = [
            "0.0.0.0",
            "0.7.7.7",
            "127.0.0.1",
            "224.0.0.5",
            "239.1.1.1",
            "255.255.255.255",
            "245.0.0.1",
            "203.0.113.255",
            "203.0.113.0",
            "192.0.2.255",
            "192.0.2.0",
            "1.0.0.1",
            "126.0.0.1",
            "223.0.0.1",
        ];
        let v6s =
            ["::", "::1", "fe80::5", "febf::1", "ff02::1", "ff0e::1", "::ffff:8.8.8.8", "fec0::1", "fc00::1"];
        ip(if v4 { self.pick(&v4s) } else { self.pick(&v6s) })
    }

    fn container(&mut self) -> Option<PduSession> {
        let qfi = Qfi::from_wire(self.rng.random_range(0..4));
        match self.rng.random_range(0..5) {
            0 => None,
            1 => Some(PduSession::Downlink(pdu_session::Downlink {
                qfi,
                rqi: self.chance(50),
                ..Default::default()
            })),
            _ => Some(PduSession::Uplink(pdu_session::Uplink { qfi, ..Default::default() })),
        }
    }

    /// A frame, and the port that it arrives at: often one that came before, as packets of a flow do.
    fn frame(&mut self) -> (usize, Vec<u8>) {
        if self.chance(60) && !self.recent.is_empty() {
            let again = self.rng.random_range(0..self.recent.len());
            return self.recent[again].clone();
        }
        let frame = self.new_frame();
        if self.recent.len() >= RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(frame.clone());
        frame
    }

    fn new_frame(&mut self) -> (usize, Vec<u8>) {
        let v6 = self.chance(40);
        let remote = if v6 { ip("2a00::8") } else { ip("8.8.8.8") };
        if self.chance(45) {
            // Downlink.
            let destination = match self.rng.random_range(0..30) {
                0 => ip("10.45.77.77"),
                1 => ip("192.0.2.100"),
                _ => self.ue_address(v6),
            };
            let source = match destination.is_ipv4() {
                _ if self.chance(6) => self.strange_source(destination.is_ipv4()),
                true => ip("8.8.8.8"),
                false => ip("2a00::8"),
            };
            let inner = self.inner(source, destination);
            let mac = if self.chance(1) { N3 } else { N6 };
            let kind = if inner[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
            let mut frame = [&mac.0[..], &ROUTER.0, &kind, &inner].concat();
            if self.chance(5) {
                frame.extend([0; 9]);
            }
            if self.chance(1) {
                let at = self.rng.random_range(14..34);
                frame[at] ^= 1 << self.rng.random_range(0..8);
            }
            return (1, frame);
        }
        let ue = self.rng.random_range(0..SESSIONS);
        let which = usize::from(self.chance(15));
        let teid = if self.chance(2) { Teid(self.rng.random()) } else { self.ues[ue].tunnels[which].teid };
        let own = match (v6, self.ues[ue].ipv4, self.ues[ue].ipv6) {
            (false, Some(address), _) => IpAddr::V4(address),
            (true, _, Some(net)) => IpAddr::V6(Ipv6Addr::from(
                u128::from(net.network()) | u128::from(self.rng.random_range(1..3u64)),
            )),
            _ => self.ue_address(v6),
        };
        let source = match self.rng.random_range(0..20) {
            0 => self.ue_address(v6),
            1 if v6 => ip("fe80::1234"),
            _ => own,
        };
        let destination = match self.rng.random_range(0..20) {
            0..=3 => self.ue_address(v6),
            4 if v6 => ip("2001:db8:3::1"),
            4 => self.pick(&[ip("192.0.2.100"), ip("203.0.113.1")]),
            5 if v6 => ip("ff02::2"),
            6 => ip(if v6 { "2001:db8:3::7" } else { "192.0.2.7" }),
            7 | 8 => ip(if v6 { "2001:db8:6::9" } else { "203.0.113.9" }),
            9 => self.strange_destination(!v6),
            _ => remote,
        };
        let mut inner = self.inner(source, destination);
        if self.chance(1) {
            // Neither options nor fragments: these are other tests.
            let at = self.rng.random_range(1..6);
            inner[at] ^= 1 << self.rng.random_range(0..8);
        }
        let (from, to) = match self.rng.random_range(0..20) {
            0..=5 => ("2001:db8:3::7", "2001:db8:3::1"),
            6..=8 => ("192.0.2.8", "192.0.2.1"),
            9 => ("192.0.2.66", "192.0.2.1"),
            _ => ("192.0.2.7", "192.0.2.1"),
        };
        let from = if self.chance(2) { self.strange_source(ip(to).is_ipv4()) } else { ip(from) };
        // What routers on the way said of congestion.
        let ecn = self.pick(&[0, 0, 0, 0, 1, 2, 3]);
        let outer = PacketBuilder::new().ethernet(N3, GNB);
        let outer = match (from, ip(to)) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => outer.ipv4_header(packet::ipv4::Ipv4Header {
                source,
                destination,
                tos: 0xb8 | ecn,
                ..Default::default()
            }),
            (IpAddr::V6(source), IpAddr::V6(destination)) => outer.ipv6_header(packet::ipv6::Ipv6Header {
                source,
                destination,
                traffic_class: 0xb8 | ecn,
                ..Default::default()
            }),
            _ => unreachable!(),
        };
        let mut builder = outer.udp(2152, 2152).gtpu(teid);
        if self.chance(10) {
            builder = builder.gtpu_sequence(77);
        }
        if let Some(container) = self.container() {
            builder = builder.pdu_session(&container);
        }
        (0, builder.build(&inner))
    }

    fn step(&mut self) {
        self.now = self.now.plus(self.rng.random_range(0..40_000_000));
        if self.rng.random_range(0..200) == 0 {
            self.now = self.now.plus(self.rng.random_range(0..60 * Nanos::SECOND));
        }
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
        let mut burst: Vec<MemFrame> = frames.iter().map(|f| MemFrame::copy_of(f).unwrap()).collect();
        self.fast.process(self.now, port as u16, &mut burst, &mut self.out, &mut self.pool);
        assert!(burst.is_empty());
        self.slow.burst(self.now, port, &frames);
        self.compare();
        if self.chance(30) {
            self.fast.tick(self.now, &mut self.out, &mut self.pool);
        }
    }

    fn compare(&mut self) {
        let mut fast: [Vec<Vec<u8>>; 2] = [Vec::new(), Vec::new()];
        for (port, queue) in self.out.transmit.iter_mut().enumerate() {
            fast[port].extend(queue.drain(..).map(|frame| normal(frame.bytes())));
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
            .map(|event| match event {
                Event::Usage { seid, usage } => Said::Usage(seid, usage),
                Event::DownlinkData { seid, pdr, qfi, dscp } => {
                    Said::DownlinkData(seid, pdr, qfi, dscp.get())
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
        for (at, both) in self.fast.slices().iter().enumerate() {
            for (traffic, uplink) in both.iter().zip([true, false]) {
                let [green, yellow, red] =
                    self.slow.slices.get(&(at as u16, uplink)).map_or([0; 3], |slice| slice.1);
                let counted = (traffic.green.packets, traffic.yellow.packets, traffic.red.packets);
                assert_eq!(counted, (green, yellow, red));
            }
        }
        assert_eq!(counters.buffered as usize, self.slow.buffered());
        assert_eq!(counters.balance(), 0);
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

/// What two user planes send of the same random packets under the same random rules, of which one knows no flows: every
/// packet takes the slow path.
#[test]
fn what_flows_serve_is_what_the_slow_path_would_have_done() {
    let transcript = |seed: u64, flows: u32| {
        let mut bench = Bench::new(seed, flows);
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

fn run(seed: u64, steps: usize) -> (usize, BTreeMap<&'static str, usize>, BTreeMap<Reason, u64>) {
    // Fewer than its packets make: some are refused.
    let mut bench = Bench::new(seed, FLOWS / 2);
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
    let flows = bench.fast.counters().flows;
    let what = [
        ("flows served", flows.served),
        ("flows revised", flows.revised),
        ("flows expired", flows.expired),
        ("flows evicted", flows.evicted),
        ("flows refused", flows.refused),
        ("yellow", bench.fast.counters().yellow),
        ("beyond the slice's maximum", bench.fast.slices()[0][0].red.packets),
        ("beyond what the slice is promised", bench.fast.slices()[0][0].yellow.packets),
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
        let caught = std::panic::catch_unwind(|| run(seed, 400));
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
    assert!(happened.values().all(|n| *n > 0), "something never happened: {happened:?}");
    assert!(reasons.len() > 20, "too few reasons occurred: {reasons:?}");
    let walls =
        [Reason::MartianSource, Reason::UeSourceOutside, Reason::MartianFarEnd, Reason::ForeignFarEnd];
    for reason in walls.into_iter().chain([Reason::MartianDestination, Reason::UeToUe]) {
        assert!(reasons.contains_key(&reason), "{reason} never occurred");
    }
}
