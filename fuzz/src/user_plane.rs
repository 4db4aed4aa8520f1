//! Two workers with an N3 and an N6 port between gNBs and a data network, and what must hold of everything they do.

use crate::Input;
use crate::frames::{self, GNB_MAC, N3_MAC, N6_MAC, Payload, ROUTER_MAC};
use crate::requests::{GNB, GNB_IPV6, N3, N3_IPV6};
use datapath::nat::{Filtering, Logging, Plan, Protocol, Settings, Static};
use datapath::net::{Interface, Net, Roles};
use datapath::{Command, Config, Counters, Datapath, Event, Outbox, Slice};
use io::mem::{FrameSize, MemFrame, MemPool};
use io::{Frame, FramePool};
use packet::gtpu::MessageType;
use packet::{
    EtherType, EthernetView, GTP_U_PORT, GtpuView, IpPacket, IpProtocol, Ipv4View, Ipv6View, MacAddr, Teid,
    UdpView, gtpu_message,
};
use session::rules::{Action, Rules, is_link_local};
use session::store::{DirectoryChange, Store};
use session::{SHARDS, ShardId};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
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
/// Frames that exist at a time, at most: a leak is felt soon.
const FRAMES: usize = 256;

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
    /// Rules that came into force since frames were looked at last: a packet that waited may have left by any of them, though
    /// the next have followed already.
    passing: Vec<Arc<Rules>>,
    /// What the control side would be told.
    pub events: Vec<Event>,
    /// The time.
    pub now: Nanos,
    /// What is translated, if anything is.
    plan: Option<Arc<Plan>>,
    /// Public endpoints that packets came from: protocol, address, port. The latest.
    public: VecDeque<(IpProtocol, Ipv4Addr, u16)>,
}

/// Public endpoints that are remembered.
const REMEMBERED: usize = 8;

/// What is translated where something is: UEs share two addresses, one of which is on the link, and some have their own.
fn plan() -> Arc<Plan> {
    let nets = |texts: &[&str]| texts.iter().map(|text| text.parse().expect("a network")).collect();
    let inside = nets(&["10.45.0.0/24", "172.16.0.0/24"]);
    let mut settings = Settings::new("fuzz", inside, nets(&["198.51.100.64/32", "192.0.2.64/32"]));
    settings.block_size = 64;
    settings.blocks_per_ue = 2;
    settings.filtering = Filtering::AddressDependent;
    settings.logging = Logging::Bindings;
    let entry = |outside: [u8; 4], inside: [u8; 4], port| Static {
        outside: outside.into(),
        inside: inside.into(),
        port,
    };
    let statics = [
        entry([192, 0, 2, 1], [10, 45, 0, 5], None),
        entry([192, 0, 2, 64], [10, 45, 0, 6], Some((Protocol::Udp, 5060, 5060))),
    ];
    let prefixes =
        [("2001:db8:45::/58".parse().expect("a network"), "2001:db8:7777::/58".parse().expect("a network"))];
    Arc::new(Plan::new(&[settings], &statics, &prefixes).expect("a plan"))
}

impl Default for UserPlane {
    fn default() -> Self {
        Self::new()
    }
}

impl UserPlane {
    /// Nothing has happened yet.
    pub fn new() -> Self {
        Self::with(None)
    }

    /// The same, with translation on N6.
    pub fn translating() -> Self {
        Self::with(Some(plan()))
    }

    fn with(plan: Option<Arc<Plan>>) -> Self {
        let mut net = Net::new();
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
        let at3 = net.add_interface(interface(0, N3_MAC, ["192.168.10.1/24", "2001:db8:3::1/64"], n3));
        let at6 = net.add_interface(interface(1, N6_MAC, ["198.51.100.1/24", "2001:db8:6::1/64"], n6));
        let (at3, at6) = (at3.expect("room"), at6.expect("room"));
        let router = IpAddr::from([198, 51, 100, 254]);
        let router6 = IpAddr::from(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 9));
        for (destination, gateway) in [("0.0.0.0/0", router), ("::/0", router6)] {
            net.add_route(destination.parse().expect("a network"), at6, Some(gateway)).expect("one family");
            net.fix(at6, gateway, ROUTER_MAC);
        }
        for (destination, gateway) in
            [("192.88.99.0/24", IpAddr::from(GNB)), ("2001:db8:33::/48", GNB_IPV6.into())]
        {
            net.add_route(destination.parse().expect("a network"), at3, Some(gateway)).expect("one family");
        }
        // The gNB's IPv6 address is left to be found.
        net.fix(at3, GNB.into(), GNB_MAC);
        for pool in ["10.45.0.0/24", "10.46.0.0/30", "2001:db8:45::/58", "172.16.0.0/24", "2001:db8:99::/48"]
        {
            net.add_ue_pool(pool.parse().expect("a network"));
        }
        net.protect(N4.into());
        if let Some(plan) = &plan {
            net.translate(Arc::clone(plan));
        }
        let view = net.view();
        // Both workers draw on what there is of the slice: some packets are beyond it.
        let meter = |rate_bps| MeterConfig { rate_bps, burst_bytes: 3_000 };
        let shared = Arc::new(SharedMarker::new(meter(8_000), meter(64_000)));
        let slice = Slice { uplink: Some(Arc::clone(&shared)), downlink: Some(shared) };
        let worker = |_| {
            let config = Config {
                slices: vec![slice.clone()],
                peers: FAR_ENDS,
                neighbours: 16,
                neighbour_queue: 2,
                buffered_packets: 16,
                reassemblies: 4,
                fragment_flows: 8,
                ..Config::new(view.clone())
            };
            Worker { datapath: Datapath::new(config), out: Outbox::new(2), injected: 0, transmitted: 0 }
        };
        Self {
            workers: [0, 1].map(worker),
            owners: vec![None; SHARDS],
            needed: Vec::new(),
            pool: MemPool::new(FRAMES, FrameSize::Standard),
            passing: Vec::new(),
            events: Vec::new(),
            now: Nanos(Nanos::SECOND),
            plan,
            public: VecDeque::new(),
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
    pub fn post(&mut self, shard: ShardId, command: Command) {
        let at = self.owner(shard);
        if let Command::Install { rules, .. } = &command {
            self.passing.push(Arc::clone(rules));
        }
        let Worker { datapath, out, .. } = &mut self.workers[at];
        datapath.apply(self.now, command, out, &mut self.pool);
    }

    /// For every worker.
    pub fn broadcast(&mut self, command: impl Fn() -> Command) {
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

    /// Gives a shard to the other worker.
    pub fn move_shard(&mut self, shard: ShardId) {
        let from = self.owner(shard);
        let state = self.workers[from].datapath.release(shard).expect("it is the owner's");
        assert!(self.workers[1 - from].datapath.adopt(state).is_none());
        self.owners[shard.index()] = Some(1 - from);
    }

    /// Lets time pass.
    pub fn pass(&mut self, nanos: u64) {
        self.now = self.now.plus(nanos);
        for Worker { datapath, out, .. } in &mut self.workers {
            datapath.tick(self.now, out, &mut self.pool);
        }
    }

    /// Frames that arrive at a port in one burst, at the worker that polls this queue.
    pub fn receive(&mut self, worker: usize, port: u16, packets: &[Vec<u8>]) {
        let mut burst: Vec<MemFrame> = packets.iter().filter_map(|packet| self.frame(packet)).collect();
        let Worker { datapath, out, injected, .. } = &mut self.workers[worker];
        *injected += burst.len() as u64;
        datapath.process(self.now, port, &mut burst, out, &mut self.pool);
        assert!(burst.is_empty());
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
        for _ in 0..2 {
            for at in 0..2 {
                let mut handed: [Vec<(u16, MemFrame)>; 2] = Default::default();
                for (shard, port, frame) in std::mem::take(&mut self.workers[at].out.hand_off) {
                    handed[self.owner(shard)].push((port, frame));
                }
                for (owner, mut frames) in handed.into_iter().enumerate() {
                    if frames.is_empty() {
                        continue;
                    }
                    let Worker { datapath, out, .. } = &mut self.workers[owner];
                    datapath.process_handed_off(self.now, &mut frames, out, &mut self.pool);
                    assert!(frames.is_empty());
                }
            }
        }
        for worker in &mut self.workers {
            for (port, frames) in worker.out.transmit.iter_mut().enumerate() {
                for frame in frames.drain(..) {
                    worker.transmitted += 1;
                    let public = sent(store, &self.passing, self.plan.as_deref(), port, frame.bytes());
                    if let Some(endpoint) = public.filter(|endpoint| !self.public.contains(endpoint)) {
                        self.public.truncate(REMEMBERED - 1);
                        self.public.push_front(endpoint);
                    }
                }
            }
            self.events.append(&mut worker.out.events);
        }
        self.passing.clear();
        self.check();
    }

    /// Every frame is accounted for.
    fn check(&self) {
        let mut waiting = 0;
        for worker in &self.workers {
            let counters = worker.datapath.counters();
            // Packets to another UE may go on to another worker after each round.
            let handed: u64 = worker.out.hand_off.len() as u64;
            assert_eq!(counters.balance(), 0, "{counters:?}");
            assert_eq!(counters.received, worker.injected);
            assert_eq!(counters.sent, worker.transmitted);
            waiting += counters.buffered + counters.held + handed;
            let shards = self.needed.iter().filter_map(|id| worker.datapath.shard(*id));
            assert_eq!(counters.buffered, shards.map(|shard| shard.buffered() as u64).sum::<u64>());
        }
        assert_eq!(self.pool.in_use() as u64, waiting, "frames are held that nobody counts");
    }

    /// All workers' counters.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.workers.iter().for_each(|worker| sum.merge(worker.datapath.counters()));
        sum
    }

    /// Sessions that shards have.
    pub fn sessions(&self) -> usize {
        let shards =
            self.workers.iter().flat_map(|w| self.needed.iter().filter_map(|id| w.datapath.shard(*id)));
        shards.map(|shard| shard.len()).sum()
    }

    /// No session is left: then, after a while, no frame is.
    pub fn end(mut self, store: &Store) {
        for _ in 0..40 {
            self.pass(Nanos::SECOND);
            self.settle(store);
        }
        assert_eq!(self.sessions(), 0);
        let counters = self.counters();
        assert_eq!((counters.buffered, counters.held), (0, 0));
        assert_eq!(self.pool.in_use(), 0);
    }
}

/// Whether the address is the session's UE's, or behind it.
fn is_ues(rules: &Rules, address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            rules.ue_ipv4 == Some(address) || rules.framed_ipv4.iter().any(|net| net.contains(&address))
        }
        IpAddr::V6(address) => {
            rules.ue_ipv6.is_some_and(|net| net.contains(&address))
                || rules.framed_ipv6.iter().any(|net| net.contains(&address))
        }
    }
}

/// The address that an interface has beside its own (RFC 4291, appendix A).
fn link_local(MacAddr([a, b, c, d, e, f]): MacAddr) -> Ipv6Addr {
    Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}

fn is_own(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => [N3, N4, N6].contains(&address),
        IpAddr::V6(address) => [N3_IPV6, N6_IPV6].contains(&address),
    }
}

/// Of either end of the tunnel's link only: neighbour and router discovery.
fn is_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if is_link_local(address) || address.is_multicast())
}

/// A frame that leaves is well formed, and whose it is, is whose tunnel it is in. Says the public endpoint that it comes from, if
/// it does.
fn sent(
    store: &Store,
    passing: &[Arc<Rules>],
    plan: Option<&Plan>,
    port: usize,
    frame: &[u8],
) -> Option<(IpProtocol, Ipv4Addr, u16)> {
    let ethernet = EthernetView::parse(frame).expect("an Ethernet frame");
    let packet = ethernet.payload();
    let (source, destination, protocol, payload) = match ethernet.ether_type() {
        EtherType::IPV4 => {
            let ip = Ipv4View::parse(packet).expect("an IPv4 packet");
            // A user's own is left as it came: within a tunnel nobody but the receiver looks at it.
            assert!(ip.checksum_ok() || !is_own(ip.source().into()));
            let payload = if ip.fragment().is_some() { &[] } else { ip.payload() };
            (IpAddr::from(ip.source()), IpAddr::from(ip.destination()), ip.protocol(), payload)
        }
        EtherType::IPV6 => {
            let ip = Ipv6View::parse(packet).expect("an IPv6 packet");
            let whole = ip.upper_layer().ok().filter(|upper| upper.fragment.is_none());
            let (protocol, payload) = whole.map_or((IpProtocol(255), &[][..]), |u| (u.protocol, u.payload));
            (IpAddr::from(ip.source()), IpAddr::from(ip.destination()), protocol, payload)
        }
        other => {
            assert_eq!(other, EtherType::ARP);
            return None;
        }
    };
    if port == 1 {
        let public = plan.is_some_and(|plan| plan.public().iter().any(|net| net.contains(&source)));
        let private = plan.is_some_and(|plan| {
            plan.pools().any(|pool| pool.inside.iter().any(|net| source_in(*net, source)))
        });
        assert!(!private, "{source} left untranslated: {packet:02x?}");
        let known = || store.iter().any(|session| is_ues(session.rules(), source));
        assert!(
            is_own(source) || is_local(source) || public || known(),
            "{source} has no session: {packet:02x?}"
        );
        assert!(!is_own(destination), "{source} reached {destination}");
        let IpAddr::V4(source) = source else { return None };
        let at = if protocol == IpProtocol::ICMPV4 { 4 } else { 0 };
        let port = payload.get(at..).and_then(|rest| rest.first_chunk::<2>())?;
        return public.then_some((protocol, source, u16::from_be_bytes(*port)));
    }
    // Whatever a user sends, here it leaves in a tunnel, which is from us; else there is only what we say ourselves.
    assert!(is_own(source) || source == IpAddr::V6(link_local(N3_MAC)), "{source} reached N3: {packet:02x?}");
    let udp = UdpView::parse(payload).ok()?;
    if protocol != IpProtocol::UDP || udp.destination_port() != GTP_U_PORT || payload.is_empty() {
        return None;
    }
    assert!(is_own(source), "a tunnel from {source}");
    let gtpu = GtpuView::parse(udp.payload()).expect("a GTP-U message");
    if gtpu.message_type() != MessageType::G_PDU {
        return None;
    }
    let inner = IpPacket::parse(gtpu.payload()).ok()?;
    let (from, to) = (inner.key.source, inner.key.destination);
    let (teid, peer) = (gtpu.teid(), destination);
    let in_force = store.iter().map(|session| session.rules()).chain(passing);
    let mut owners = in_force.filter(|rules| {
        rules.fars.iter().any(|far| match far.action {
            Action::Forward(forward) => {
                forward.outer_header.is_some_and(|o| (o.teid, o.peer) == (teid, peer))
            }
            _ => false,
        })
    });
    // What another UPF sends into a session's tunnel (N9) is the session's by its TEID: that UPF has looked at the addresses.
    let fed = |rules: &Rules| rules.pdrs.iter().any(|pdr| pdr.tunnel.is_some() && !pdr.source.is_uplink());
    assert!(
        owners.any(|rules| {
            is_ues(rules, from) || is_ues(rules, to) || is_local(from) || is_local(to) || fed(rules)
        }),
        "a packet from {from} to {to} was sent into the tunnel {teid:?} to {peer} of another session",
    );
    None
}

fn source_in(net: ipnet::Ipv4Net, source: IpAddr) -> bool {
    matches!(source, IpAddr::V4(source) if net.contains(&source))
}

/// Some frames: of sessions that are there, with a few octets changed, or of nobody.
pub fn traffic(input: &mut Input<'_>, store: &Store, plane: &mut UserPlane) {
    let (worker, count) = (input.below(2), 1 + input.below(3));
    let port = u16::from(input.flag());
    let public: Vec<_> = plane.public.iter().copied().collect();
    let one = |input: &mut Input<'_>| {
        if !public.is_empty() && input.flag() {
            to_public(input, store, port, &public)
        } else {
            frame(input, store, port)
        }
    };
    let packets: Vec<Vec<u8>> = (0..count).map(|_| damaged(input, one)).collect();
    plane.receive(worker, port, &packets);
}

/// To a public endpoint that was seen, from the data network or from a UE.
fn to_public(
    input: &mut Input<'_>,
    store: &Store,
    port: u16,
    public: &[(IpProtocol, Ipv4Addr, u16)],
) -> Vec<u8> {
    let (protocol, address, number) = public[input.below(public.len())];
    let data = [0x5a; 40];
    let payload = match protocol {
        IpProtocol::TCP => Payload::Tcp(443, number, &data),
        IpProtocol::UDP => Payload::Udp(53, number, &data),
        _ => Payload::Echo(&data),
    };
    if port == 1 {
        return frames::downlink(&frames::user_packet(SERVER.into(), address.into(), payload));
    }
    let sessions = store.counts().sessions.max(1);
    let rules = store.iter().nth(input.below(sessions)).map(|session| session.rules().clone());
    let ue = self::address(input, rules.as_deref(), false);
    let tunnel = rules.and_then(|rules| rules.pdrs.iter().find_map(|pdr| pdr.tunnel));
    let teid = tunnel.map_or(Teid(1), |tunnel| tunnel.teid);
    let packet = frames::user_packet(ue, address.into(), payload);
    frames::uplink(GNB.into(), N3.into(), teid, None, &packet)
}

/// What `make` makes, mostly.
fn damaged<'a>(input: &mut Input<'a>, make: impl FnOnce(&mut Input<'a>) -> Vec<u8>) -> Vec<u8> {
    let mut packet = make(input);
    if input.one_in(4) {
        for _ in 0..input.below(3) {
            let at = usize::from(input.u8());
            if let Some(octet) = packet.get_mut(at) {
                *octet = input.u8();
            }
        }
        if input.one_in(4) {
            packet.truncate(usize::from(input.u8()));
        }
    }
    packet
}

fn frame(input: &mut Input<'_>, store: &Store, port: u16) -> Vec<u8> {
    let sessions = store.counts().sessions.max(1);
    let rules = store.iter().nth(input.below(sessions)).map(|session| session.rules().clone());
    let other = store.iter().nth(input.below(sessions)).map(|session| session.rules().clone());
    let v6 = input.flag();
    let ue = address(input, rules.as_deref(), v6);
    let far = match input.below(10) {
        0..=4 if v6 => SERVER_IPV6.into(),
        0..=4 => SERVER.into(),
        5 => address(input, other.as_deref(), v6),
        6 if v6 => input.pick(&[N3_IPV6, N6_IPV6, Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2)]).into(),
        6 => input.pick(&[N3, N4, N6]).into(),
        // gNBs, known and not, and what is behind one of them.
        7 if v6 => {
            input.pick(&[GNB_IPV6, Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 0x99), FARTHER_IPV6]).into()
        }
        7 => input.pick(&[GNB, Ipv4Addr::new(192, 168, 10, 99), FARTHER]).into(),
        // A host on N6's own link.
        8 if v6 => Ipv6Addr::new(0x2001, 0xdb8, 6, 0, 0, 0, 0, u16::from(input.u8())).into(),
        8 => Ipv4Addr::new(198, 51, 100, input.u8()).into(),
        _ if v6 => Ipv6Addr::from(u128::from(input.u64()) << 64 | 1).into(),
        _ => Ipv4Addr::from(input.u32()).into(),
    };
    let size = match input.u8() {
        0xff => 1380,
        octet => usize::from(octet) % 64,
    };
    let data = vec![0x5a; size];
    let payload = match input.below(5) {
        4 => Payload::Udp(GTP_U_PORT, GTP_U_PORT, &[0x30, 0xff, 0, 0, 0, 0, 0, 1]),
        0 => Payload::Tcp(1000, 443, &data),
        1 => Payload::Echo(&data),
        2 => Payload::Udp(53, 1000, &data),
        _ => Payload::Udp(1000, 5060, &data),
    };
    if port == 1 {
        return match input.u8() {
            0xff => input.counted().to_vec(),
            _ => frames::downlink(&frames::user_packet(far, ue, payload)),
        };
    }
    let (gnb, own) =
        if input.one_in(4) { (GNB_IPV6.into(), N3_IPV6.into()) } else { (GNB.into(), IpAddr::from(N3)) };
    let tunnels: Vec<Teid> = rules
        .iter()
        .flat_map(|rules| &rules.pdrs)
        .filter_map(|pdr| pdr.tunnel)
        .map(|tunnel| tunnel.teid)
        .collect();
    let teid = match input.u8() {
        octet if octet < 0xf0 && !tunnels.is_empty() => tunnels[usize::from(octet) % tunnels.len()],
        _ => Teid(input.u32()),
    };
    match input.below(16) {
        0 => {
            let mut message = Vec::new();
            match input.below(3) {
                0 => gtpu_message::emit_echo_request(&mut message, input.u16()),
                1 => {
                    let teid = Teid(u32::from(input.u8()));
                    let error = gtpu_message::ErrorIndication { teid, peer: gnb };
                    gtpu_message::emit_error_indication(&mut message, 1, &error, None);
                }
                _ => message = vec![0x30, input.u8(), 0, 0, 0, 0, 0, input.u8()],
            }
            frames::signalling(gnb, own, &message)
        }
        1 => input.counted().to_vec(),
        _ => {
            let containers = frames::containers();
            let container = input.maybe(|input| match input.below(6) {
                at if at < containers.len() => containers[at],
                _ => frames::uplink_container(input.u8()),
            });
            // From the UE, or to it from another UPF or the SMF.
            let (from, to) = if input.one_in(6) { (far, ue) } else { (ue, far) };
            frames::uplink(gnb, own, teid, container, &frames::user_packet(from, to, payload))
        }
    }
}

/// An address of a session's UE, if it has one of this family.
fn address(input: &mut Input<'_>, rules: Option<&Rules>, v6: bool) -> IpAddr {
    let low = u128::from(input.u8());
    let framed4 = rules.and_then(|rules| rules.framed_ipv4.first()).filter(|_| low % 4 == 3);
    match (v6, rules.and_then(|r| r.ue_ipv4), rules.and_then(|r| r.ue_ipv6)) {
        (false, _, _) if framed4.is_some() => framed4
            .map_or(SERVER, |net| {
                Ipv4Addr::from(u32::from(net.network()) | low as u32 & !u32::from(net.netmask()))
            })
            .into(),
        (false, Some(address), _) => address.into(),
        (true, _, Some(net)) => {
            Ipv6Addr::from(u128::from(net.network()) | (low & !u128::from(net.netmask()))).into()
        }
        (false, ..) => Ipv4Addr::new(10, 45, 0, low as u8).into(),
        (true, ..) => Ipv6Addr::new(0x2001, 0xdb8, 0x45, low as u16, 0, 0, 0, 1).into(),
    }
}
