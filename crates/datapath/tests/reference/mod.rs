//! The same user plane once more, as plainly as it can be said: one packet at a time, hash maps, the `packet` crate's
//! views and builders, nothing shared with the fast one but the contract (rules, reasons, colours) and the parsers of single headers.

mod books;
pub mod bucket;
mod bytes;
pub mod inspect;
mod mouths;
mod orders;
mod redirect;

use books::Measured;
use bucket::{Maximum, Slice, TwoRate, burst};
use bytes::{
    Five, addresses, cut, filter_matches, is_for_link, is_no_host, lesser, may_stay_on_link, tos, ttl, whole,
};
use datapath::{CheckSource, Reason};
use inspect::{Conversations, Talk};
use ipnet::IpNet;
use mouths::Mouths;
use packet::gtpu_message::{self, ErrorIndication};
use packet::icmpv4::{self, Icmpv4Error};
use packet::icmpv6::{self, Icmpv6Error};
use packet::{
    EtherType, EthernetView, GtpuView, Ipv4View, Ipv6View, MacAddr, PacketBuilder, PduSession, Qfi, Teid,
    UdpView, pdu_session,
};
use pfcp::{PdrId, QerId, Seid, UrrId};
use session::SessionRef;
use session::rules::*;
use session::usage::Usage;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use tables::{Colour, Nanos};

/// The fixed network of the comparison.
pub struct World {
    pub n3_mac: MacAddr,
    pub n6_mac: MacAddr,
    pub n3: (Ipv4Addr, Ipv6Addr),
    pub n6: (Ipv4Addr, Ipv6Addr),
    pub n3_mtu: usize,
    pub n6_mtu: usize,
    /// MAC addresses of what is on the links: tunnel far ends on port 0, hosts and the router of everything else on port 1.
    pub peers: HashMap<IpAddr, MacAddr>,
    pub hosts: HashMap<IpAddr, MacAddr>,
    pub router: MacAddr,
    /// What is behind port 0 is for tunnels.
    pub radio: Vec<ipnet::IpNet>,
    /// Routers of Forwarding Policies, by their number: for IPv4 and for IPv6.
    pub policies: HashMap<u16, [Option<MacAddr>; 2]>,
    /// Network instances that port 1 serves.
    pub instances: Vec<u16>,
    pub own: Vec<IpAddr>,
    pub pools: Vec<ipnet::IpNet>,
    /// The one among them whose UEs have prefixes of another length than /64, and that length.
    pub delegated: (ipnet::Ipv6Net, u8),
    /// Those among the pools whose UEs have nothing to do with other UEs.
    pub isolated: Vec<ipnet::IpNet>,
    /// What is on the links: its first and last address is nobody's.
    pub links: Vec<ipnet::Ipv4Net>,
    /// Who may send into tunnels.
    pub check_source: CheckSource,
    /// Whether anybody looks into packets.
    pub inspected: bool,
    pub buffered_packets: usize,
    pub meter_burst: u64,
    /// The operator's tables: ToS octet by QFI, QFI by DSCP, and whether the UE's own packets are marked.
    pub dscp_by_qfi: HashMap<u8, u8>,
    pub qfi_by_dscp: HashMap<u8, u8>,
    pub mark_inner: bool,
    /// By slice: uplink and downlink.
    pub slices: Vec<[Option<Rates>; 2]>,
}

/// Rate and burst that are guaranteed, and that are the most.
pub type Rates = [(u64, u32); 2];

/// Something a worker would tell the control side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    Usage(Seid, Vec<Usage>),
    DownlinkData(Seid, PdrId, Option<Qfi>, u8),
}

struct Subscriber {
    rules: Arc<Rules>,
    pdrs: HashMap<PdrId, (u64, u64)>,
    meters: HashMap<(QerId, bool), Maximum>,
    /// Of QERs that promise a rate.
    markers: HashMap<(QerId, bool), TwoRate>,
    urrs: HashMap<UrrId, Measured>,
    waiting: VecDeque<Arrival>,
    notified: Vec<PdrId>,
    drops: BTreeMap<Reason, u64>,
}

/// A UE's packet, with what it came in.
#[derive(Clone)]
struct Arrival {
    packet: Vec<u8>,
    /// ECN field of the tunnel's IP header; 0 without one.
    met: u8,
    tunnel: Option<(Teid, Option<PduSession>)>,
    /// From where, for answers: interface (0: N3, 1: N6) and the whole frame; `None`: from a UE, or from ourselves.
    from: Option<Vec<u8>>,
    /// Our own words: nobody looks into them, and nobody's account has them.
    own: bool,
}

pub struct Reference {
    pub world: World,
    now: Nanos,
    subscribers: BTreeMap<(usize, u32), Subscriber>,
    pub sent: Vec<(usize, Vec<u8>)>,
    pub said: Vec<Said>,
    pub drops: BTreeMap<Reason, u64>,
    pub uplink: (u64, u64),
    pub downlink: (u64, u64),
    pub yellow: u64,
    /// By slice and direction: its rates, and the packets of each colour.
    pub slices: BTreeMap<(u16, bool), (Option<Slice>, [u64; 3])>,
    arisen: VecDeque<Arrival>,
    mouths: Mouths,
    pub conversations: Conversations,
    /// The conversation of the packet that was judged last, and its rule.
    judged: Option<(Talk, Arc<Rules>, Pdr)>,
    /// The numbers that connections begin with in which we are the server: of those that the other one has begun.
    pub beginnings: HashMap<redirect::Connection, u32>,
}

enum Way {
    Tunnel(OuterHeader, Option<PduSession>, u8),
    Network(MacAddr),
    Ue,
}

impl Reference {
    pub fn new(world: World) -> Self {
        let mut slices = BTreeMap::new();
        for (number, both) in (0..).zip(&world.slices) {
            for (rates, uplink) in both.iter().zip([true, false]) {
                let slice = rates.map(|[committed, peak]| Slice::new(committed, peak));
                slices.insert((number, uplink), (slice, [0; 3]));
            }
        }
        Self {
            mouths: Mouths::new(world.check_source),
            world,
            now: Nanos(0),
            subscribers: BTreeMap::new(),
            sent: Vec::new(),
            said: Vec::new(),
            drops: BTreeMap::new(),
            uplink: (0, 0),
            downlink: (0, 0),
            yellow: 0,
            slices,
            arisen: VecDeque::new(),
            conversations: Conversations::default(),
            judged: None,
            beginnings: HashMap::new(),
        }
    }

    pub fn buffered(&self) -> usize {
        self.subscribers.values().map(|s| s.waiting.len()).sum()
    }

    /// The rules in force in a place.
    pub fn rules(&self, place: SessionRef) -> Option<Arc<Rules>> {
        self.subscribers.get(&(place.shard.index(), place.slot)).map(|s| Arc::clone(&s.rules))
    }

    #[allow(clippy::type_complexity)]
    pub fn counts(&self, place: SessionRef) -> Option<(Vec<(PdrId, u64, u64)>, Vec<(Reason, u64)>, usize)> {
        let s = self.subscribers.get(&(place.shard.index(), place.slot))?;
        let pdrs = s.rules.pdrs.iter().map(|p| {
            let (packets, bytes) = s.pdrs.get(&p.id).copied().unwrap_or_default();
            (p.id, packets, bytes)
        });
        Some((pdrs.collect(), s.drops.iter().map(|(r, n)| (*r, *n)).collect(), s.waiting.len()))
    }

    fn drop(&mut self, key: Option<(usize, u32)>, reason: Reason) {
        *self.drops.entry(reason).or_default() += 1;
        if let Some(s) = key.and_then(|key| self.subscribers.get_mut(&key)) {
            *s.drops.entry(reason).or_default() += 1;
        }
    }

    pub fn burst(&mut self, now: Nanos, port: usize, frames: &[Vec<u8>]) {
        self.now = now;
        for frame in frames {
            self.frame(port, frame);
        }
        self.settle();
    }

    fn settle(&mut self) {
        for _ in 0..4 {
            for arrival in std::mem::take(&mut self.arisen) {
                self.towards_ue(arrival);
            }
        }
        for _ in std::mem::take(&mut self.arisen) {
            self.drop(None, Reason::TtlExpired);
        }
    }

    fn frame(&mut self, port: usize, frame: &[u8]) {
        let ethernet = EthernetView::parse(frame).unwrap();
        let own_mac = if port == 0 { self.world.n3_mac } else { self.world.n6_mac };
        if ethernet.destination() != own_mac {
            return self.drop(None, Reason::NotForUs);
        }
        let l3 = ethernet.payload();
        let destination: IpAddr = match ethernet.ether_type() {
            EtherType::IPV4 => match Ipv4View::parse(l3) {
                Ok(ip) if ip.checksum_ok() => ip.destination().into(),
                _ => return self.drop(None, Reason::Malformed),
            },
            EtherType::IPV6 => match Ipv6View::parse(l3) {
                Ok(ip) => ip.destination().into(),
                Err(_) => return self.drop(None, Reason::Malformed),
            },
            _ => return self.drop(None, Reason::UnknownEtherType),
        };
        if port == 1 {
            let packet = whole(l3);
            let (source, destination) = addresses(&packet);
            let to_us = [IpAddr::from(self.world.n6.0), self.world.n6.1.into()].contains(&destination);
            let nobodys = is_no_host(source) || self.is_everybody(source);
            if !to_us && (nobodys || self.world.own.contains(&source)) {
                return self.drop(None, Reason::MartianSource);
            }
            if !to_us && self.world.pools.iter().any(|pool| pool.contains(&source)) {
                return self.drop(None, Reason::UeSourceOutside);
            }
            return self.towards_ue(Arrival {
                packet,
                met: 0,
                tunnel: None,
                from: Some(frame.to_vec()),
                own: false,
            });
        }
        if !self.world.own.contains(&destination) {
            return self.drop(None, Reason::NotN6);
        }
        let (source, payload): (IpAddr, &[u8]) = match destination {
            IpAddr::V4(_) => {
                let ip = Ipv4View::parse(l3).unwrap();
                (ip.source().into(), ip.payload())
            }
            IpAddr::V6(_) => {
                let ip = Ipv6View::parse(l3).unwrap();
                (ip.source().into(), ip.payload())
            }
        };
        let Ok(udp) = UdpView::parse(payload) else { return self.drop(None, Reason::Malformed) };
        let Ok(gtpu) = GtpuView::parse(udp.payload()) else { return self.drop(None, Reason::Malformed) };
        let Ok(container) = gtpu.pdu_session() else { return self.drop(None, Reason::Malformed) };
        let packet = gtpu.payload();
        if Ipv4View::parse(packet).is_err() && Ipv6View::parse(packet).is_err() {
            return self.drop(None, Reason::Malformed);
        }
        if self.can_not_talk_to_us(source) || self.world.own.contains(&source) {
            return self.drop(None, Reason::MartianFarEnd);
        }
        let teid = gtpu.teid();
        let key = self.subscribers.iter().find_map(|(key, s)| {
            s.rules.pdrs.iter().any(|p| p.tunnel.is_some_and(|t| t.teid == teid)).then_some(*key)
        });
        if key.is_none() {
            self.drop(None, Reason::UnknownTeid);
            let mut message = Vec::new();
            let error = ErrorIndication { teid, peer: destination };
            gtpu_message::emit_error_indication(&mut message, 0, &error, Some(udp.source_port()));
            let answer = PacketBuilder::new().ip(destination, source).udp(2152, 2152).build(&message);
            return self.emit(0, ethernet.source(), &answer);
        }
        let rules = key.map(|key| Arc::clone(&self.subscribers[&key].rules)).unwrap();
        if !self.mouths.may_speak(self.now, &rules, teid, source, addresses(packet).0) {
            return self.drop(key, Reason::ForeignFarEnd);
        }
        let arrival = Arrival {
            packet: whole(packet),
            met: tos(l3) & 3,
            tunnel: Some((teid, container)),
            from: Some(frame.to_vec()),
            own: false,
        };
        self.user_packet(arrival, key, true);
    }

    /// A packet without a tunnel: from the data network, another UE, or ourselves.
    fn towards_ue(&mut self, arrival: Arrival) {
        let (source, destination) = addresses(&arrival.packet);
        let key = self.subscribers.iter().find_map(|(key, s)| {
            let r = &s.rules;
            let held = match destination {
                IpAddr::V4(a) => r.ue_ipv4 == Some(a) || r.framed_ipv4.iter().any(|n| n.contains(&a)),
                IpAddr::V6(a) => {
                    r.ue_ipv6.is_some_and(|n| n.contains(&a)) || r.framed_ipv6.iter().any(|n| n.contains(&a))
                }
            };
            held.then_some(*key)
        });
        if key.is_none() {
            let own = self.world.own.contains(&destination);
            let reason = if own && arrival.from.is_none() {
                Reason::OwnAddress
            } else if own && (self.world.own.contains(&source) || self.can_not_talk_to_us(source)) {
                Reason::MartianSource
            } else if own {
                Reason::UnsupportedProtocol
            } else {
                Reason::UnknownUe
            };
            return self.drop(None, reason);
        }
        self.user_packet(arrival, key, true);
    }

    fn user_packet(&mut self, arrival: Arrival, key: Option<(usize, u32)>, notify: bool) {
        self.judge(arrival, key, notify);
        if let Some((talk, rules, pdr)) = self.judged.take() {
            self.conversations.judged(&talk, &rules, &pdr);
        }
        self.conversations.forget();
    }

    fn judge(&mut self, arrival: Arrival, key: Option<(usize, u32)>, notify: bool) {
        let Some(id) = key else { return };
        let rules = Arc::clone(&self.subscribers[&id].rules);
        let packet = &arrival.packet;
        let (source, destination) = addresses(packet);
        let teid = arrival.tunnel.as_ref().map(|(teid, _)| *teid);
        let mut possible = rules
            .pdrs
            .iter()
            .filter(|p| match teid {
                Some(teid) => p.tunnel.is_some_and(|t| t.teid == teid),
                None => p.tunnel.is_none() && matches!(p.source, Source::Core | Source::N6Lan),
            })
            .peekable();
        // The source must be the UE's own.
        let mut for_smf_only = false;
        let mut unknown = false;
        if teid.is_some() && possible.peek().is_some_and(|p| p.source == Source::Access) {
            if rules.ue_ipv4.is_none() && rules.ue_ipv6.is_none() {
                unknown = true;
            } else {
                let own = match source {
                    IpAddr::V4(a) => {
                        rules.ue_ipv4 == Some(a) || rules.framed_ipv4.iter().any(|n| n.contains(&a))
                    }
                    IpAddr::V6(a) => {
                        rules.ue_ipv6.is_some_and(|n| n.contains(&a))
                            || rules.framed_ipv6.iter().any(|n| n.contains(&a))
                    }
                };
                for_smf_only =
                    !own && matches!(source, IpAddr::V6(a) if is_link_local(a) || a.is_unspecified());
                if !own && !for_smf_only {
                    return self.drop(key, Reason::SpoofedSource);
                }
            }
        }
        // The rule.
        let container = arrival.tunnel.as_ref().and_then(|(_, c)| *c);
        let qfi = container.as_ref().map(PduSession::qfi);
        let possible: Vec<&Pdr> = possible.collect();
        let looks = |of: &[u16]| {
            let mut passed_over = false;
            for pdr in &possible {
                // Not read for the sake of a rule that is about the link.
                if is_for_link(pdr) && !may_stay_on_link(destination) {
                    continue;
                }
                if !pdr.qfis.is_empty() && !qfi.is_some_and(|q| pdr.qfis.contains(&q)) {
                    continue;
                }
                if !pdr.filters.is_empty() {
                    let Some(ip) = Five::of(packet) else { return (Err(Reason::Malformed), passed_over) };
                    if !pdr.filters.iter().any(|f| filter_matches(f, &ip)) {
                        continue;
                    }
                }
                passed_over |= pdr.application.is_some();
                if pdr.application.is_none_or(|wanted| of.contains(&wanted.0)) {
                    return (Ok(*pdr), passed_over);
                }
            }
            (Err(Reason::NoRule), passed_over)
        };
        let talk = if self.world.inspected && !arrival.own && inspect::makes_flows(&possible) {
            Talk::of(&self.world, id, &rules, teid, qfi, packet)
        } else {
            None
        };
        let (mut found, depends) = looks(&[]);
        if depends && let Some(talk) = &talk {
            (found, _) = looks(&self.conversations.show(talk));
        }
        let pdr = match found {
            Ok(pdr) => pdr,
            Err(reason) => return self.drop(key, reason),
        };
        self.judged = talk.clone().filter(|_| depends).map(|talk| (talk, Arc::clone(&rules), pdr.clone()));
        // What its FAR says.
        let forward = match rules.fars[pdr.far as usize].action {
            Action::Drop => return self.drop(key, Reason::FarDrop),
            Action::ForwardUnresolved => return self.drop(key, Reason::FarUnresolved),
            Action::Buffer { notify: wanted, packets } => {
                let total = self.buffered();
                let subscriber = self.subscribers.get_mut(&id).unwrap();
                if wanted && notify && !subscriber.notified.contains(&pdr.id) {
                    subscriber.notified.push(pdr.id);
                    let marked = mark(&rules, pdr);
                    let dscp = tos(packet) >> 2;
                    self.said.push(Said::DownlinkData(rules.seid, pdr.id, marked.or(qfi), dscp));
                }
                if subscriber.waiting.len() >= packets as usize {
                    return self.drop(key, Reason::BufferFull);
                }
                if total >= self.world.buffered_packets {
                    return self.drop(key, Reason::BufferExhausted);
                }
                subscriber.waiting.push_back(arrival);
                return;
            }
            Action::Forward(forward) => forward,
        };
        let to = forward.redirect.filter(|_| pdr.source == Source::Access);
        let leads_nowhere = matches!(forward.destination, Destination::Access | Destination::CpFunction);
        if to.is_none() && forward.outer_header.is_none() && leads_nowhere {
            return self.drop(key, Reason::FarUnresolved);
        }
        if to.is_some() && (for_smf_only || unknown) {
            return self.drop(key, Reason::SpoofedSource);
        }
        if let Some(url) = to {
            return self.redirect(id, &rules, pdr, url, &arrival);
        }
        if (for_smf_only && forward.destination != Destination::CpFunction)
            || (unknown && forward.outer_header.is_none())
        {
            return self.drop(key, Reason::SpoofedSource);
        }
        let talk = talk.map(|talk| (talk, depends));
        self.forward(&arrival, id, &rules, pdr, forward, talk.as_ref());
    }

    /// Sends a packet where a FAR says, as far as it may go there. `talk`: its conversation, and whether its rule depends on that.
    fn forward(
        &mut self,
        arrival: &Arrival,
        id: (usize, u32),
        rules: &Rules,
        pdr: &Pdr,
        forward: Forward,
        talk: Option<&(Talk, bool)>,
    ) {
        let key = Some(id).filter(|_| !arrival.own);
        let packet = &arrival.packet;
        let (source, destination) = addresses(packet);
        let container = arrival.tunnel.as_ref().and_then(|(_, c)| *c);
        let qfi = container.as_ref().map(PduSession::qfi);
        // The way.
        let qers: Vec<&Qer> = pdr.qers.iter().map(|q| &rules.qers[*q as usize]).collect();
        let way = match forward.outer_header {
            Some(outer) => {
                let to_access = forward.destination == Destination::Access;
                let marked = mark(rules, pdr);
                let by_dscp = self.world.qfi_by_dscp.get(&(tos(packet) >> 2)).map(|qfi| Qfi::from_wire(*qfi));
                let by_dscp = by_dscp.filter(|_| arrival.tunnel.is_none());
                let put = if forward.destination == Destination::CpFunction {
                    None
                } else if let Some(mark) = marked.or(qfi).or(by_dscp) {
                    let received = matches!(&container, Some(PduSession::Downlink(d)) if d.rqi);
                    let rqi = if marked.is_some() { qers.iter().any(|q| q.reflective) } else { received };
                    Some(if to_access {
                        PduSession::Downlink(pdu_session::Downlink {
                            qfi: mark,
                            rqi,
                            ppi: qers.iter().find_map(|q| q.paging_policy),
                            ..Default::default()
                        })
                    } else {
                        PduSession::Uplink(pdu_session::Uplink { qfi: mark, ..Default::default() })
                    })
                } else {
                    None
                };
                let leaves_with = put.as_ref().map(|container| container.qfi().get());
                let by_qfi = leaves_with.and_then(|qfi| self.world.dscp_by_qfi.get(&qfi).copied());
                let by_qfi = by_qfi.filter(|_| forward.destination != Destination::CpFunction);
                let said = forward.transport_marking.map(packet::Dscp::to_tos);
                Way::Tunnel(outer, put, said.or(by_qfi).unwrap_or(0))
            }
            None if self.world.own.contains(&destination) => return self.drop(key, Reason::OwnAddress),
            None if is_no_host(destination) || self.is_everybody(destination) => {
                return self.drop(key, Reason::MartianDestination);
            }
            None if self.world.pools.iter().any(|p| p.contains(&destination)) => {
                if arrival.tunnel.is_none() {
                    return self.drop(key, Reason::NoRoute);
                }
                let apart = |address| self.world.isolated.iter().any(|p| p.contains(&address));
                if apart(source) || apart(destination) {
                    return self.drop(key, Reason::UeToUe);
                }
                Way::Ue
            }
            None if self.world.radio.iter().any(|net| net.contains(&destination)) => {
                return self.drop(key, Reason::NotTowardsN6);
            }
            None => {
                let routers = self.world.policies.get(&forward.policy).copied().unwrap_or_default();
                let [v4, v6] = routers;
                let router = if destination.is_ipv4() { v4 } else { v6 };
                if router.is_none() && !self.world.instances.contains(&forward.instance) {
                    return self.drop(key, Reason::NotTowardsN6);
                }
                let usual = self.world.hosts.get(&destination).unwrap_or(&self.world.router);
                Way::Network(router.unwrap_or(*usual))
            }
        };
        let room = match &way {
            Way::Tunnel(outer, container, _) => {
                let ip = if outer.peer.is_ipv4() { 20 } else { 40 };
                let extra = match container {
                    None => 0,
                    Some(PduSession::Downlink(d)) if d.ppi.is_some() => 12,
                    Some(_) => 8,
                };
                self.world.n3_mtu - ip - 16 - extra
            }
            Way::Network(_) => self.world.n6_mtu,
            Way::Ue => usize::MAX,
        };
        let routed = match way {
            _ if arrival.own => false,
            Way::Tunnel(..) => arrival.tunnel.is_none(),
            Way::Network(_) => true,
            Way::Ue => false,
        };
        // A mark that the sender would not understand is a drop; every other one it gets to see.
        let mut ecn = tos(packet) & 3;
        match (arrival.met, ecn) {
            _ if arrival.own => {}
            (3, 0) => return self.drop(key, Reason::CongestionNotEct),
            (3, _) => ecn = 3,
            (1, 2) => ecn = 1,
            _ => {}
        }
        if routed && ttl(packet) <= 1 {
            self.drop(key, Reason::TtlExpired);
            return self.complain(arrival, None);
        }
        let may_cut = Ipv4View::parse(packet).is_ok_and(|ip| !ip.dont_fragment());
        if packet.len() > room && !may_cut {
            self.drop(key, Reason::PacketTooBig);
            return self.complain(arrival, Some(room));
        }
        // Enforcement.
        let enforced =
            if arrival.own { Ok(Colour::Green) } else { self.enforce(id, pdr, packet.len() as u64) };
        let colour = match enforced {
            Ok(colour) => colour,
            Err(reason) => return self.drop(key, reason),
        };
        if let Some((talk, depends)) = talk {
            self.conversations.passed(talk, *depends);
        }
        let direction = if pdr.source == Source::Access { &mut self.uplink } else { &mut self.downlink };
        direction.0 += u64::from(!arrival.own);
        direction.1 += if arrival.own { 0 } else { packet.len() as u64 };
        self.yellow += u64::from(colour == Colour::Yellow);
        // Transformation.
        let mut packet = arrival.packet.clone();
        let mut octet = tos(&packet) & !3 | ecn;
        if matches!(way, Way::Network(_)) && !arrival.own {
            let by_qfi = qfi.and_then(|qfi| self.world.dscp_by_qfi.get(&qfi.get()));
            octet = by_qfi.filter(|_| self.world.mark_inner).map_or(octet, |own| own | ecn);
            octet = if colour == Colour::Yellow { lesser(octet) } else { octet };
        }
        packet::rewrite::set_tos(&mut packet, octet).unwrap();
        if routed {
            packet::rewrite::decrement_ttl(&mut packet).unwrap();
        }
        let parts = if packet.len() > room { cut(&packet, room) } else { vec![packet] };
        for part in parts {
            match &way {
                Way::Ue => self.arisen.push_back(Arrival {
                    packet: part,
                    met: 0,
                    tunnel: None,
                    from: None,
                    own: false,
                }),
                Way::Network(next) => self.emit(1, *next, &part),
                Way::Tunnel(outer, container, tos) => {
                    let tos = if colour == Colour::Yellow { lesser(*tos) } else { *tos } | ecn;
                    let own = self.own(outer.peer);
                    let builder = match (own, outer.peer) {
                        (IpAddr::V4(source), IpAddr::V4(destination)) => PacketBuilder::new()
                            .ipv4_header(packet::ipv4::Ipv4Header {
                                source,
                                destination,
                                tos,
                                ttl: 64,
                                dont_fragment: false,
                                ..Default::default()
                            })
                            .udp_without_checksum(2152, 2152),
                        (IpAddr::V6(source), IpAddr::V6(destination)) => PacketBuilder::new()
                            .ipv6_header(packet::ipv6::Ipv6Header {
                                source,
                                destination,
                                traffic_class: tos,
                                ..Default::default()
                            })
                            .udp(2152, 2152),
                        _ => unreachable!(),
                    };
                    let mut builder = builder.gtpu(outer.teid);
                    if let Some(container) = container {
                        builder = builder.pdu_session(container);
                    }
                    let bytes = builder.build(&part);
                    self.emit(0, self.world.peers[&outer.peer], &bytes);
                }
            }
        }
    }

    fn complain(&mut self, arrival: &Arrival, too_big: Option<usize>) {
        let (source, _) = addresses(&arrival.packet);
        let to_ue = arrival.from.is_none() || arrival.tunnel.is_some();
        let is_ue = self.world.pools.iter().any(|p| p.contains(&source));
        if self.world.own.contains(&source) || (to_ue && !is_ue) {
            return;
        }
        // From the interface that the packet came from; what comes from no interface is answered from the first.
        let at_n6 = arrival.from.is_some() && arrival.tunnel.is_none();
        let own = if at_n6 { self.world.n6 } else { self.world.n3 };
        let mut answer = Vec::new();
        let said = match source {
            IpAddr::V4(_) => {
                let error = too_big.map_or(Icmpv4Error::TimeExceeded, |mtu| {
                    Icmpv4Error::FragmentationNeeded { mtu: mtu as u16 }
                });
                icmpv4::emit_error(&mut answer, own.0, error, &arrival.packet)
            }
            IpAddr::V6(_) => {
                let error = too_big.map_or(Icmpv6Error::TimeExceeded, |mtu| Icmpv6Error::PacketTooBig {
                    mtu: (mtu as u32).max(1280),
                });
                icmpv6::emit_error(&mut answer, own.1, error, &arrival.packet)
            }
        };
        if !said {
            return;
        }
        if to_ue {
            self.arisen.push_back(Arrival { packet: answer, met: 0, tunnel: None, from: None, own: false });
        } else if let Some(frame) = &arrival.from {
            let back = EthernetView::parse(frame).unwrap().source();
            self.emit(1, back, &answer);
        }
    }

    /// RFC 1122 §3.2.1.3 (d), and the old form of it (§3.3.6).
    fn is_everybody(&self, address: IpAddr) -> bool {
        let IpAddr::V4(address) = address else { return false };
        self.world.links.iter().any(|link| link.network() == address || link.broadcast() == address)
    }

    /// It is no host's address. A link-local one is somebody's on the link.
    fn can_not_talk_to_us(&self, source: IpAddr) -> bool {
        let on_link = matches!(source, IpAddr::V6(source) if is_link_local(source));
        (is_no_host(source) && !on_link) || self.is_everybody(source)
    }

    fn own(&self, peer: IpAddr) -> IpAddr {
        if peer.is_ipv4() { self.world.n3.0.into() } else { self.world.n3.1.into() }
    }

    fn emit(&mut self, port: usize, destination: MacAddr, packet: &[u8]) {
        let source = if port == 0 { self.world.n3_mac } else { self.world.n6_mac };
        let kind = if packet[0] >> 4 == 4 { EtherType::IPV4 } else { EtherType::IPV6 };
        let mut frame = Vec::new();
        frame.extend(destination.0);
        frame.extend(source.0);
        frame.extend(kind.0.to_be_bytes());
        frame.extend(packet);
        self.sent.push((port, frame));
    }
}

/// The QFI to mark with: of the rule's QERs that name a QoS flow, the one that the fewest rules of the session name, else
/// the first of those.
fn mark(rules: &Rules, pdr: &Pdr) -> Option<Qfi> {
    let users = |qer: u16| rules.pdrs.iter().filter(|other| other.qers.contains(&qer)).count();
    let flows = pdr.qers.iter().filter_map(|qer| Some((*qer, rules.qers[*qer as usize].qfi?)));
    let (_, qfi) = flows.filter(|(_, qfi)| qfi.get() > 0).min_by_key(|(qer, _)| users(*qer))?;
    Some(qfi)
}
