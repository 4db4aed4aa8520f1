//! A session compiled for a shard: flat, validated, immutable.
//!
//! `model` keeps what the SMF said; this is what a packet needs of it. Every reference between rules is an index
//! into the slices beside it and is in range by construction. Rules are shared between the control side and the shard
//! by `Arc`, and replaced whole: a packet sees either the old or the new.

use crate::classifier::Classifier;
use crate::ids::{SessionRef, TeidRef};
use ipnet::{Ipv4Net, Ipv6Net};
use packet::{Dscp, Qfi, Teid};
use pfcp::{FarId, PdrId, QerId, Seid, UrrId};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Everything that a shard needs to know of one session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Where the session lives.
    pub place: SessionRef,
    /// The UP SEID with its generation.
    pub seid: Seid,
    /// The UE's IPv4 address, if it has one: the source of every uplink packet and the key of every downlink one.
    pub ue_ipv4: Option<Ipv4Addr>,
    /// The UE's IPv6 prefix (/64 unless the SMF said otherwise).
    pub ue_ipv6: Option<Ipv6Net>,
    /// Prefixes routed to the UE beside its own addresses (TS 29.244 §8.2.109).
    pub framed_ipv4: Box<[Ipv4Net]>,
    /// Likewise for IPv6 (§8.2.111).
    pub framed_ipv6: Box<[Ipv6Net]>,
    /// Index of the slice whose rates and counters all its packets share.
    pub slice: Option<u16>,
    /// Sorted: lowest precedence value first (it wins), then lowest PDR ID.
    pub pdrs: Box<[Pdr]>,
    /// Narrows down `pdrs` where there are many filters.
    pub classifier: Option<Box<Classifier>>,
    /// In order of FAR ID.
    pub fars: Box<[Far]>,
    /// In order of QER ID.
    pub qers: Box<[Qer]>,
    /// In order of URR ID.
    pub urrs: Box<[Urr]>,
    /// Where FARs send those who ask by HTTP.
    pub redirects: Box<[Box<str>]>,
}

impl Rules {
    /// The first session of its place, with these rules and nothing else: no IPv6, framed routes, slice, QERs or URRs. For whoever makes
    /// rules by hand, and adds what they need; those of an SMF are made by [`mod@crate::compile`], which has something to say of every field.
    /// `pdrs` are in order of precedence.
    ///
    /// ```
    /// use pfcp::{FarId, PdrId, QerId};
    /// use session::rules::{Action, Destination, Far, Forward, OuterHeader, Pdr, Qer, Rules, Source, Tunnel};
    /// use session::{SessionRef, TeidRef, addresses};
    /// use std::net::Ipv4Addr;
    ///
    /// let ue = Ipv4Addr::new(10, 45, 0, 1);
    /// let place = SessionRef { shard: addresses::shard_of_ipv4(ue), slot: 0 };
    /// let at = TeidRef { shard: place.shard, slot: 3 };
    /// let tunnel = Tunnel { teid: at.teid(1), place: at };
    /// let gnb = OuterHeader { teid: packet::Teid(77), peer: [192, 0, 2, 7].into() };
    /// let uplink = Pdr { qers: [0].into(), ..Pdr::all(PdrId(1), Source::Access, Some(tunnel), 0) };
    /// let rules = Rules {
    ///     qers: [Qer { uplink_mbr: Some(1_000_000), ..Qer::open(QerId(1)) }].into(),
    ///     ..Rules::of(
    ///         place,
    ///         Some(ue),
    ///         [uplink, Pdr::all(PdrId(2), Source::Core, None, 1)],
    ///         [
    ///             Far { id: FarId(1), action: Action::Forward(Forward::to(Destination::Core, None)) },
    ///             Far { id: FarId(2), action: Action::Forward(Forward::to(Destination::Access, Some(gnb))) },
    ///         ],
    ///     )
    /// };
    /// assert_eq!(rules.seid, place.seid(1));
    /// assert_eq!(rules.tunnels().collect::<Vec<_>>(), [gnb]);
    /// assert_eq!(rules.marking(&rules.pdrs[0]), None);
    /// ```
    pub fn of(
        place: SessionRef,
        ue_ipv4: Option<Ipv4Addr>,
        pdrs: impl Into<Box<[Pdr]>>,
        fars: impl Into<Box<[Far]>>,
    ) -> Self {
        Self {
            place,
            seid: place.seid(1),
            ue_ipv4,
            ue_ipv6: None,
            framed_ipv4: Box::default(),
            framed_ipv6: Box::default(),
            slice: None,
            pdrs: pdrs.into(),
            classifier: None,
            fars: fars.into(),
            qers: Box::default(),
            urrs: Box::default(),
            redirects: Box::default(),
        }
    }

    /// Whether packets of this PDR wait for the UE.
    pub fn buffers(&self, pdr: PdrId) -> bool {
        let rule = self.pdrs.iter().find(|rule| rule.id == pdr);
        let far = rule.and_then(|rule| self.fars.get(usize::from(rule.far)));
        far.is_some_and(|far| matches!(far.action, Action::Buffer { .. }))
    }

    /// The QFI that packets of a PDR are marked with: that of the QER which the fewest PDRs share, for it is the flow's own
    /// (free5GC gives the session's AMBR a QFI too, and lists it first); of several such, the first. QFI 0 is no QoS flow
    /// (TS 24.501 §9.11.4.12) and marks nothing.
    pub fn marking(&self, pdr: &Pdr) -> Option<Qfi> {
        let named = |index: &u16| self.qers.get(usize::from(*index))?.qfi.filter(|qfi| qfi.get() != 0);
        let mut marking = pdr.qers.iter().filter_map(|index| Some((*index, named(index)?)));
        let first = marking.next()?;
        let sharing = |index: u16| self.pdrs.iter().filter(|pdr| pdr.qers.contains(&index)).count();
        let mut best = (first.1, usize::MAX);
        // Most PDRs have one QER that marks: nothing is counted then.
        for (at, (index, qfi)) in marking.enumerate() {
            if at == 0 {
                best.1 = sharing(first.0);
            }
            let shared = sharing(index);
            if shared < best.1 {
                best = (qfi, shared);
            }
        }
        Some(best.0)
    }

    /// Whether somebody wants to be told where the traffic of this rule's application begins or ends.
    pub fn tells_of_application(&self, pdr: &Pdr) -> bool {
        let mut urrs = pdr.urrs.iter().filter_map(|index| self.urrs.get(usize::from(*index)));
        pdr.application.is_some() && urrs.any(|urr| urr.application_starts || urr.application_stops)
    }

    /// The tunnels that it forwards into, each FAR's.
    pub fn tunnels(&self) -> impl Iterator<Item = OuterHeader> + '_ {
        self.fars.iter().filter_map(|far| match far.action {
            Action::Forward(Forward { outer_header, .. }) => outer_header,
            _ => None,
        })
    }
}

/// Where a packet came from, as the SMF sees it (Source Interface, §8.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Source {
    /// From the radio side, in a tunnel: uplink.
    Access,
    /// From the data network or, with a TEID, from another UPF: downlink.
    Core,
    /// From an N6-LAN (SGi-LAN): downlink.
    N6Lan,
    /// From the SMF, in a tunnel (router advertisements): downlink.
    CpFunction,
}

impl Source {
    /// Whether traffic from here is the UE's own.
    pub const fn is_uplink(self) -> bool {
        matches!(self, Self::Access)
    }
}

/// Packet Detection Rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pdr {
    /// Its ID, for reports and explanations.
    pub id: PdrId,
    /// Lower wins.
    pub precedence: u32,
    /// Where its packets come from.
    pub source: Source,
    /// The tunnel that its packets arrive in; `None`: they arrive without one.
    pub tunnel: Option<Tunnel>,
    /// Its packets carry one of these QFIs in the PDU session container; empty: any, or none.
    pub qfis: Box<[Qfi]>,
    /// Its packets match one of these; empty: all packets.
    pub filters: Box<[SdfFilter]>,
    /// Its packets are of conversations that were found to be this application's; `None`: of any.
    pub application: Option<Application>,
    /// Remove Ethernet-to-GTP-U headers before forwarding (all descriptions alike, docs/interop.md rule i).
    pub outer_header_removal: bool,
    /// Index into [`Rules::fars`].
    pub far: u16,
    /// Indices into [`Rules::qers`]: all of them apply.
    pub qers: Box<[u16]>,
    /// Indices into [`Rules::urrs`]: all of them measure.
    pub urrs: Box<[u16]>,
}

impl Pdr {
    /// For all packets from there, with the lowest precedence that SMFs give: no filters, QFIs, QERs or URRs. What arrives in a tunnel
    /// leaves it.
    pub fn all(id: PdrId, source: Source, tunnel: Option<Tunnel>, far: u16) -> Self {
        Self {
            id,
            precedence: 255,
            source,
            tunnel,
            qfis: Box::default(),
            filters: Box::default(),
            application: None,
            outer_header_removal: tunnel.is_some(),
            far,
            qers: Box::default(),
            urrs: Box::default(),
        }
    }
}

/// What packets can be found to be of, by looking into them (Application ID, §8.2.6): a number that whoever looks and whoever makes rules
/// have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Application(pub u16);

impl Application {
    /// No packet is found to be this one's.
    pub const NOBODYS: Self = Self(u16::MAX);
}

/// A local tunnel endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Tunnel {
    /// The TEID on the wire.
    pub teid: Teid,
    /// Where its record lives. If the SMF chose the TEID, [`TeidRef::of`] the TEID is another place, and the worker's
    /// directory leads here.
    pub place: TeidRef,
}

/// One service data flow filter, written for the packet as it travels: source and destination are the packet's own in
/// this PDR's direction (an uplink PDR's downlink-form description has been swapped already). The default matches everything.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SdfFilter {
    /// IP protocol number; `None`: any.
    pub protocol: Option<u8>,
    /// Source prefix; `None`: any of either family.
    pub source: Option<Prefix>,
    /// Destination prefix.
    pub destination: Option<Prefix>,
    /// Source ports as inclusive ranges; empty: any, including packets without ports.
    pub source_ports: Box<[(u16, u16)]>,
    /// Destination ports likewise.
    pub destination_ports: Box<[(u16, u16)]>,
    /// ToS or Traffic Class value and mask.
    pub tos: Option<(u8, u8)>,
    /// Security Parameter Index of ESP or AH.
    pub spi: Option<u32>,
    /// IPv6 flow label, 20 bits.
    pub flow_label: Option<u32>,
}

/// An address prefix of either family.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Prefix {
    /// IPv4.
    V4(Ipv4Net),
    /// IPv6.
    V6(Ipv6Net),
}

impl Prefix {
    /// Whether the prefix covers the address.
    pub fn contains(self, address: IpAddr) -> bool {
        match (self, address) {
            (Self::V4(net), IpAddr::V4(address)) => net.contains(&address),
            (Self::V6(net), IpAddr::V6(address)) => net.contains(&address),
            _ => false,
        }
    }
}

/// Forwarding Action Rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Far {
    /// Its ID.
    pub id: FarId,
    /// What happens to the packet.
    pub action: Action,
}

/// What a FAR does (Apply Action, §8.2.26, after validation).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// DROP.
    Drop,
    /// FORW towards an interface; see [`Forward`].
    Forward(Forward),
    /// FORW to ACCESS without a tunnel: the gNB is not known yet (free5GC). Dropped under its own reason.
    ForwardUnresolved,
    /// BUFF: keep up to the given number of packets.
    Buffer {
        /// NOCP: tell the SMF about the first packet.
        notify: bool,
        /// Most packets to keep (the BAR's suggestion, bounded by configuration).
        packets: u16,
    },
}

/// Forwarding parameters (§7.5.2.3-2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forward {
    /// Towards the UE (ACCESS), or away from it.
    pub destination: Destination,
    /// Put the packet into this tunnel; `None`: send it as it is, to be routed by its own destination address.
    pub outer_header: Option<OuterHeader>,
    /// Transport Level Marking: DSCP of the outer header.
    pub transport_marking: Option<Dscp>,
    /// Network Instance, as an index into the configured ones: without a tunnel, the packet leaves only through an interface
    /// that serves it. 0 is the default, which all serve.
    pub instance: u16,
    /// Forwarding Policy, by its number among those configured; 0: none. What a packet without a tunnel is translated to may depend on it.
    pub policy: u16,
    /// Redirect Information, as an index into [`Rules::redirects`]: a UE's packets leave nowhere, its HTTP requests are answered with that URL.
    pub redirect: Option<u16>,
}

impl Forward {
    /// There, unmarked, by the default network instance and no policy.
    pub const fn to(destination: Destination, outer_header: Option<OuterHeader>) -> Self {
        Self { destination, outer_header, transport_marking: None, instance: 0, policy: 0, redirect: None }
    }
}

/// Destination Interface (§8.2.24).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Destination {
    /// Radio side.
    Access,
    /// Data network, or the next UPF.
    Core,
    /// N6-LAN.
    N6Lan,
    /// The SMF.
    CpFunction,
}

/// Outer Header Creation for GTP-U (§8.2.56).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct OuterHeader {
    /// The far end's TEID.
    pub teid: Teid,
    /// The far end's address.
    pub peer: IpAddr,
}

/// QoS Enforcement Rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Qer {
    /// Its ID.
    pub id: QerId,
    /// Uplink gate open.
    pub uplink_open: bool,
    /// Downlink gate open.
    pub downlink_open: bool,
    /// Maximum bit rate uplink in bit/s; `None`: not limited.
    pub uplink_mbr: Option<u64>,
    /// Maximum bit rate downlink in bit/s.
    pub downlink_mbr: Option<u64>,
    /// Guaranteed bit rate uplink in bit/s: packets beyond it are the first to go (TS 23.501 §5.7.2.5).
    pub uplink_gbr: Option<u64>,
    /// Guaranteed bit rate downlink in bit/s.
    pub downlink_gbr: Option<u64>,
    /// The QFI to mark packets with; see [`Rules::marking`].
    pub qfi: Option<Qfi>,
    /// Set the reflective QoS indicator (RQI) downlink.
    pub reflective: bool,
    /// Paging policy indicator, 0..=7, put into downlink containers.
    pub paging_policy: Option<u8>,
}

impl Qer {
    /// Both gates open, no rates, no marking.
    pub const fn open(id: QerId) -> Self {
        Self {
            id,
            uplink_open: true,
            downlink_open: true,
            uplink_mbr: None,
            downlink_mbr: None,
            uplink_gbr: None,
            downlink_gbr: None,
            qfi: None,
            reflective: false,
            paging_policy: None,
        }
    }
}

/// Usage Reporting Rule: the part that packets drive. Time is driven by the control side, which queries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Urr {
    /// Its ID.
    pub id: UrrId,
    /// Measure before QoS enforcement (MBQE): packets that a gate or a meter dropped count too.
    pub before_enforcement: bool,
    /// Raise [`crate::usage::Trigger::VolumeThreshold`] at these volumes since the last report.
    pub threshold: VolumeLimit,
    /// Raise [`crate::usage::Trigger::VolumeQuota`] and stop forwarding at these volumes since the quota was given.
    pub quota: VolumeLimit,
    /// A number that changes whenever the SMF gives a new quota: consumption starts from zero again.
    pub quota_generation: u32,
    /// Stop forwarding: a quota that packets don't drive (time, validity) is exhausted.
    pub blocked: bool,
    /// Raise [`crate::usage::Trigger::StartOfTraffic`] with the first packet.
    pub start_of_traffic: bool,
    /// Tell where an application's traffic begins, of rules for applications.
    pub application_starts: bool,
    /// Tell where it ends.
    pub application_stops: bool,
    /// Of these, tell the application only (RADI).
    pub reduced: bool,
    /// Measurement is stopped (INAM).
    pub inactive: bool,
}

impl Urr {
    /// Measures what passes and raises nothing by itself.
    pub const fn counting(id: UrrId) -> Self {
        let unlimited = VolumeLimit { total: None, uplink: None, downlink: None };
        Self {
            id,
            before_enforcement: false,
            threshold: unlimited,
            quota: unlimited,
            quota_generation: 0,
            blocked: false,
            start_of_traffic: false,
            application_starts: false,
            application_stops: false,
            reduced: false,
            inactive: false,
        }
    }
}

/// Volumes in bytes; `None`: no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VolumeLimit {
    /// Both directions together.
    pub total: Option<u64>,
    /// From the UE.
    pub uplink: Option<u64>,
    /// To the UE.
    pub downlink: Option<u64>,
}

/// Whether an IPv6 address is one that a UE may use beside its prefix: link-local, for neighbour and router discovery.
pub const fn is_link_local(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xffc0 == 0xfe80
}
