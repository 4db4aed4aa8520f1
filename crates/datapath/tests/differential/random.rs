//! Random UEs, rules and frames: mostly such that something comes of them.

use super::*;
use packet::{PacketBuilder, PduSession, Teid, pdu_session};
use pfcp::{PdrId, QerId, UrrId};
use session::TeidRef;
use session::addresses::shard_of_ipv6;
use session::classifier::Classifier;

impl Bench {
    pub(super) fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.rng.random_range(0..from.len())]
    }

    pub(super) fn add_ue(&mut self, i: u32) {
        let ipv4 = self.chance(85).then(|| Ipv4Addr::from(0x0a2d_0001 + i));
        let v6 = ipv4.is_none() || self.chance(70);
        // Of their pools' lengths, and others.
        let (site, length) =
            self.pick(&[(45, 64), (45, 64), (45, 60), (56, 56), (56, 56), (56, 56), (56, 60), (56, 64)]);
        let prefix: ipnet::Ipv6Net = format!("2001:db8:{site}:{:x}00::/{length}", i + 1).parse().unwrap();
        let ipv6 = v6.then_some(prefix);
        let own_shard = shard_of_ipv6(&lengths(), prefix);
        let framed = if ipv4.is_some() && self.chance(30) {
            vec![format!("172.{}.0.0/24", 16 + i).parse().unwrap()]
        } else {
            Vec::new()
        };
        let shard = match ipv4 {
            Some(address) => Datapath::<MemFrame>::shard_of(address.into()),
            None if self.chance(60) => own_shard,
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
        // What leads to its shard by itself may be in the directory all the same.
        if !matches!((site, length), (45, 64) | (56, 56)) || own_shard != shard || self.chance(20) {
            exceptions.extend(ipv6.map(ipnet::IpNet::V6));
        }
        for prefix in exceptions {
            self.apply_fast(Command::AddressDirectory { prefix, session: Some(place) });
        }
        self.ues.push(Ue { place, ipv4, ipv6, framed, tunnels, live: false });
    }

    pub(super) fn rules(&mut self, ue: usize) -> Rules {
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
            // The last of them is not known.
            let policy = self.pick(&[0, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
            let forward = |destination, outer_header| {
                Action::Forward(Forward {
                    transport_marking: dscp,
                    instance,
                    policy,
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
            let action = if self.slow.world.inspected && self.chance(25) {
                let (core, access) = (Destination::Core, Destination::Access);
                let ways =
                    [(core, None), (core, None), (core, Some(outer)), (access, None), (access, Some(outer))];
                let (destination, outer) = self.pick(&ways);
                let redirect = Some(self.rng.random_range(0..2));
                Action::Forward(Forward { redirect, instance, policy, ..Forward::to(destination, outer) })
            } else {
                action
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
                application_starts: self.chance(60),
                application_stops: self.chance(60),
                inactive: self.chance(10),
                ..Urr::counting(UrrId(0))
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
            let asks = self.slow.world.inspected && !simple && self.chance(50);
            // The half of them are for wholes.
            let part = self.pick(&[0, 0, 10, 20]);
            let application = asks.then(|| Application(part + self.rng.random_range(0..3)));
            pdrs.push(Pdr {
                precedence: self.rng.random_range(0..4),
                application,
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
            redirects: ["http://portal.example/".into(), "http://a.example/?more=1".into()].into(),
            ..Rules::of(ue.place, ue.ipv4, pdrs, fars)
        }
    }

    pub(super) fn filter(&mut self) -> SdfFilter {
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

    pub(super) fn inner(&mut self, source: IpAddr, destination: IpAddr) -> Vec<u8> {
        let size =
            if self.chance(8) { self.rng.random_range(1300..1500) } else { self.rng.random_range(0..200) };
        let mut payload: Vec<u8> = (0..size).map(|i| i as u8).collect();
        if self.slow.world.inspected
            && let Some(third) = payload.get_mut(2)
        {
            *third = self.rng.random();
        }
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
            0 if self.slow.world.inspected => {
                let (header, text) = self.segment((source, destination, from, to));
                return builder.tcp(header).build(text.unwrap_or(&payload));
            }
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

    /// A segment as one may come while connections are redirected, and what it says if that matters.
    fn segment(
        &mut self,
        connection: (IpAddr, IpAddr, u16, u16),
    ) -> (packet::tcp::TcpHeader, Option<&'static [u8]>) {
        let (_, _, source_port, destination_port) = connection;
        let flags = self.pick(&[0, 0x02, 0x02, 0x10, 0x10, 0x10, 0x18, 0x18, 0x11, 0x12, 0x04, 0x14]);
        let begun = self.slow.beginnings.get(&connection).copied();
        let said = self.pick(&[0, 1, 1, 1, 2, 100, 120, 121, 122, 123, 124, 5_000]);
        let acknowledgement = match begun {
            Some(first) if self.chance(70) => first.wrapping_add(said),
            _ => self.rng.random(),
        };
        let header = packet::tcp::TcpHeader {
            source_port,
            destination_port,
            sequence: self.rng.random(),
            acknowledgement,
            flags: packet::tcp::TcpFlags(flags),
            window: 1_000,
        };
        let texts: [Option<&[u8]>; 6] =
            [None, Some(b""), Some(b""), Some(b"GET / HTTP/1.1\r\n\r\n"), Some(b"PUT"), Some(&[22, 3, 1, 0])];
        (header, self.pick(&texts))
    }

    /// An address on one of a prefix's links.
    fn inside(&mut self, net: ipnet::Ipv6Net, low: u64) -> Ipv6Addr {
        let links = 1_u128 << (64 - net.prefix_len());
        let link = self.pick(&[0, 0, 1, 2, links - 1]) % links;
        Ipv6Addr::from_bits(net.network().to_bits() | link << 64 | u128::from(low))
    }

    /// An address of a UE, or nearly.
    pub(super) fn ue_address(&mut self, v6: bool) -> IpAddr {
        let ue = self.rng.random_range(0..SESSIONS);
        let low: u64 = self.rng.random_range(1..4);
        let ue = &self.ues[ue];
        match (v6, ue.ipv4, ue.ipv6) {
            (true, _, Some(net)) => self.inside(net, low).into(),
            (true, ..) => ip(self.pick(&["2001:db8:45:9999::1", "2001:db8:56:9999::1"])),
            (false, Some(_), _) if !ue.framed.is_empty() && low.is_multiple_of(3) => {
                IpAddr::V4(Ipv4Addr::from(u32::from(ue.framed[0].network()) + 5))
            }
            (false, Some(address), _) => address.into(),
            (false, ..) => ip("10.45.99.99"),
        }
    }

    /// Addresses that nobody outside has, and some that look like these.
    pub(super) fn strange_source(&mut self, v4: bool) -> IpAddr {
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
    pub(super) fn strange_destination(&mut self, v4: bool) -> IpAddr {
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

    pub(super) fn container(&mut self) -> Option<PduSession> {
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
    pub(super) fn frame(&mut self) -> (usize, Vec<u8>) {
        // Conversations are found out about by a few packets of each.
        let again = if self.slow.world.inspected { 80 } else { 60 };
        if self.chance(again) && !self.recent.is_empty() {
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

    pub(super) fn new_frame(&mut self) -> (usize, Vec<u8>) {
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
            (true, _, Some(net)) => {
                let low = self.rng.random_range(1..3);
                self.inside(net, low).into()
            }
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
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let header =
                    packet::ipv4::Ipv4Header { source, destination, tos: 0xb8 | ecn, ..Default::default() };
                outer.ipv4_header(header).options(self.pick(&[&[], &[], &[], &[0x94, 4, 0, 0][..]]))
            }
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
}
