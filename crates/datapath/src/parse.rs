//! The bytes of a frame, read once into a small [`Meta`] that every later stage works from.
//!
//! Only what decides the packet's way is read: which interface, tunnel or plain, which UE. Lengths are checked
//! here, so that later stages may rely on them: a [`Kind::Tunnel`] or [`Kind::Plain`] packet has a whole IP header
//! at [`Meta::inner`], and [`Meta::len`] bytes from there on lie within the frame.

use crate::Reason;
use crate::net::{NetView, Roles};
use crate::sources::{Sources, is_no_far_end};
use packet::GTP_U_PORT;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// No QFI was in the packet.
pub const NO_QFI: u8 = 0xff;
/// No interface, no slot.
pub const NONE: u16 = u16::MAX;
/// Extension headers of GTP-U or IPv6 that are followed, at most; more are called malformed.
const MAX_EXTENSIONS: usize = 8;
/// The destination MAC address of frames that never were on a wire: a UE's packet on its way to another UE, or an
/// answer to a UE, handed to the worker that owns it. Locally administered, and accepted only from another worker.
pub const INTERNAL_MAC: [u8; 6] = [0x02, b'M', b'I', b'L', b'L', b'R'];

/// What a frame is to us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A G-PDU to one of our addresses.
    Tunnel,
    /// An IP packet to somebody else: to a UE, if all is well.
    Plain,
    /// A GTP-U message that isn't a G-PDU.
    Signalling,
    /// A G-PDU with an extension header that must be understood and isn't (its type).
    UnknownExtension(u8),
    /// ARP.
    Arp,
    /// Any other packet to one of our own addresses, or to a multicast group on the link.
    Local,
    /// A fragment of a packet to one of our own addresses, on an interface with tunnels.
    OuterFragment,
    /// An IP packet to a public address whose translation is another worker's (see [`crate::nat`]).
    Public,
    /// To be dropped.
    Bad(Reason),
}

/// Whether a packet's destination was translated (see [`crate::nat`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Translated {
    /// It was not.
    No,
    /// In a way that is always the same.
    Fixed,
    /// By a mapping of this pool.
    By(u8),
}

/// A parsed frame. `Copy`, 40 bytes, valid as long as the frame isn't changed.
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    /// What it is.
    pub kind: Kind,
    /// Whether the UE's packet (at `inner`) is IPv6.
    pub v6: bool,
    /// Whether the frame comes from another UE or from Millrace itself, not from the data network.
    pub internal: bool,
    /// Whether its destination was a public address, and is the UE's now.
    pub translated: Translated,
    /// QFI from the PDU session container, or [`NO_QFI`].
    pub qfi: u8,
    /// RQI and paging policy of a downlink container: the octets as they were.
    pub container: [u8; 2],
    /// Interface of arrival, or [`NONE`].
    pub interface: u16,
    /// Offset of the outermost IP header.
    pub l3: u16,
    /// Offset of the UE's IP packet (equal to `l3` for a plain packet); for signalling, of the GTP-U header.
    pub inner: u16,
    /// Length of the UE's IP packet.
    pub len: u16,
    /// TEID of a tunnel packet.
    pub teid: u32,
    /// What a session is checked or found by: source (tunnel) or destination (plain) of the UE's packet; an IPv4
    /// address, or the upper half of an IPv6 address.
    pub key: u64,
    /// The owner, once it was found.
    pub shard: u16,
    /// Slot of the record, once it was found.
    pub slot: u32,
}

impl Meta {
    /// A frame to be dropped.
    pub const fn bad(reason: Reason) -> Self {
        Self { kind: Kind::Bad(reason), ..Self::EMPTY }
    }

    const EMPTY: Self = Self {
        kind: Kind::Bad(Reason::Malformed),
        v6: false,
        internal: false,
        translated: Translated::No,
        qfi: NO_QFI,
        container: [0; 2],
        interface: NONE,
        l3: 0,
        inner: 0,
        len: 0,
        teid: 0,
        key: 0,
        shard: 0,
        slot: u32::MAX,
    };
}

/// What parsing needs of one interface.
#[derive(Clone, Copy, Debug)]
struct Station {
    mac: [u8; 6],
    ipv4: u32,
    ipv6: u128,
    roles: Roles,
}

#[derive(Clone, Debug, Default)]
struct PortTable {
    untagged: Option<u16>,
    tagged: Vec<(u16, u16)>,
    /// All of the port's interfaces have the N6 role.
    n6: bool,
}

/// Which interface a frame arrives at, by port and VLAN: compiled from a view.
#[derive(Clone, Debug, Default)]
pub struct Ingress {
    ports: Vec<PortTable>,
    stations: Vec<Station>,
    sources: Sources,
}

impl Ingress {
    /// Compiles a view.
    pub fn new(view: &NetView) -> Self {
        let mut ports: Vec<PortTable> = Vec::new();
        let mut stations = Vec::new();
        for (index, interface) in view.interfaces().iter().enumerate() {
            let port = interface.port as usize;
            if ports.len() <= port {
                ports.resize_with(port + 1, PortTable::default);
            }
            if let Some(table) = ports.get_mut(port) {
                table.n6 =
                    interface.roles.n6 && (table.n6 || (table.untagged.is_none() && table.tagged.is_empty()));
                match interface.vlan {
                    None => table.untagged = Some(index as u16),
                    Some(vlan) => table.tagged.push((vlan, index as u16)),
                }
            }
            stations.push(Station {
                mac: interface.mac.0,
                ipv4: interface.ipv4().map_or(0, u32::from),
                ipv6: interface.ipv6().map_or(0, u128::from),
                roles: interface.roles,
            });
        }
        Self { ports, stations, sources: Sources::new(view) }
    }

    /// Whether most of what arrives at the port leaves in a tunnel, and so with more headers than it came with.
    pub fn leads_into_tunnels(&self, port: u16) -> bool {
        self.ports.get(usize::from(port)).is_some_and(|table| table.n6)
    }

    /// Reads a frame that arrived at `port`. `handed_off`: it came from another worker, and may be internal.
    #[inline(always)]
    pub fn parse(&self, view: &NetView, port: u16, frame: &[u8], handed_off: bool) -> Meta {
        let Some((ethernet, rest)) = frame.split_first_chunk::<14>() else {
            return Meta::bad(Reason::Malformed);
        };
        let [d0, d1, d2, d3, d4, d5, .., t0, t1] = *ethernet;
        let destination = [d0, d1, d2, d3, d4, d5];
        let ether_type = u16::from_be_bytes([t0, t1]);
        if handed_off && destination == INTERNAL_MAC {
            let meta = Meta { l3: 14, inner: 14, internal: true, ..Meta::EMPTY };
            return match ether_type {
                0x0800 => plain4(meta, rest),
                0x86dd => plain6(meta, rest),
                _ => Meta::bad(Reason::Malformed),
            };
        }
        let Some(table) = self.ports.get(port as usize) else {
            return Meta::bad(Reason::UnknownVlan);
        };
        let (ether_type, l3, interface, rest) = if ether_type == 0x8100 || ether_type == 0x88a8 {
            let Some((tag, rest)) = rest.split_first_chunk::<4>() else {
                return Meta::bad(Reason::Malformed);
            };
            let [v0, v1, t0, t1] = *tag;
            let vlan = u16::from_be_bytes([v0, v1]) & 0x0fff;
            // VLAN 0 is a priority tag: the frame belongs to the untagged interface (802.1Q §6.9).
            let interface = if vlan == 0 {
                table.untagged
            } else {
                table.tagged.iter().find(|(id, _)| *id == vlan).map(|(_, interface)| *interface)
            };
            (u16::from_be_bytes([t0, t1]), 18, interface, rest)
        } else {
            (ether_type, 14, table.untagged, rest)
        };
        let Some(interface) = interface else {
            return Meta::bad(Reason::UnknownVlan);
        };
        let Some(station) = self.stations.get(interface as usize) else {
            return Meta::bad(Reason::UnknownVlan);
        };
        let meta = Meta { interface, l3, inner: l3, ..Meta::EMPTY };
        let multicast = d0 & 1 != 0;
        if destination != station.mac && !multicast {
            return Meta { kind: Kind::Bad(Reason::NotForUs), ..meta };
        }
        match ether_type {
            0x0800 => station.ipv4(view, &self.sources, meta, rest, multicast),
            0x86dd => station.ipv6(view, &self.sources, meta, rest, multicast),
            0x0806 => Meta { kind: Kind::Arp, ..meta },
            0x8100 | 0x88a8 => Meta { kind: Kind::Bad(Reason::UnknownVlan), ..meta },
            _ => Meta { kind: Kind::Bad(Reason::UnknownEtherType), ..meta },
        }
    }
}

impl Station {
    #[inline(always)]
    fn ipv4(&self, view: &NetView, sources: &Sources, meta: Meta, packet: &[u8], multicast: bool) -> Meta {
        let bad = |reason| Meta { kind: Kind::Bad(reason), ..meta };
        if multicast {
            return bad(Reason::IgnoredMulticast);
        }
        let Some(header) = ipv4_header(packet) else { return bad(Reason::Malformed) };
        if !ipv4_checksum_ok(packet, header.header_len) {
            return bad(Reason::Malformed);
        }
        let ours = header.destination == self.ipv4 || self.is_other_own(view, &header, packet);
        if !ours {
            if !self.roles.n6 {
                return bad(Reason::NotN6);
            }
            if let Some(reason) = sources.outside4(view, header.source) {
                return bad(reason);
            }
            return Meta { kind: Kind::Plain, len: header.total_len, key: header.destination as u64, ..meta };
        }
        if header.fragment & 0x3fff != 0 {
            return Meta { kind: self.own_fragment(), len: header.total_len, ..meta };
        }
        let Some(payload) = packet.get(header.header_len..header.total_len as usize) else {
            return bad(Reason::Malformed);
        };
        let meta = Meta { inner: meta.l3 + header.header_len as u16, len: header.total_len, ..meta };
        let meta = self.ours(header.protocol, payload, meta);
        if sources.may_be_no_far_end4(header.source) {
            return from_far_end(view, Ipv4Addr::from(header.source).into(), meta);
        }
        meta
    }

    /// GTP-U to an address of another interface. Rare enough to look it up; other packets are asked for in
    /// [`crate::local`], when no session was found.
    #[inline(always)]
    fn is_other_own(&self, view: &NetView, header: &Ipv4Fields, packet: &[u8]) -> bool {
        if header.protocol != 17 || !self.roles.tunnels() {
            return false;
        }
        let port = packet.get(header.header_len + 2..header.header_len + 4);
        (header.fragment & 0x1fff != 0 || port == Some(&GTP_U_PORT.to_be_bytes()))
            && view.is_own(IpAddr::V4(Ipv4Addr::from(header.destination)))
    }

    #[inline(always)]
    fn ipv6(&self, view: &NetView, sources: &Sources, meta: Meta, packet: &[u8], multicast: bool) -> Meta {
        let bad = |reason| Meta { kind: Kind::Bad(reason), ..meta };
        let Some(header) = ipv6_header(packet) else { return bad(Reason::Malformed) };
        let meta = Meta { v6: true, len: header.total_len, ..meta };
        // Link-local and multicast destinations never leave the link.
        if multicast || header.destination >> 118 == 0xfe80 >> 6 || header.destination >> 120 == 0xff {
            return Meta { kind: Kind::Local, ..meta };
        }
        let ours = header.destination == self.ipv6
            || (self.roles.tunnels()
                && matches!(header.next, 17 | 44)
                && view.is_own(IpAddr::V6(Ipv6Addr::from(header.destination))));
        if !ours {
            if !self.roles.n6 {
                return bad(Reason::NotN6);
            }
            if let Some(reason) = sources.outside6(view, header.source) {
                return bad(reason);
            }
            return Meta { kind: Kind::Plain, key: (header.destination >> 64) as u64, ..meta };
        }
        if header.next == 44 {
            return Meta { kind: self.own_fragment(), ..meta };
        }
        let Some(payload) = packet.get(40..header.total_len as usize) else {
            return bad(Reason::Malformed);
        };
        let meta = self.ours(header.next, payload, Meta { inner: meta.l3 + 40, ..meta });
        if sources.may_be_no_far_end6(header.source) {
            return from_far_end(view, Ipv6Addr::from(header.source).into(), meta);
        }
        meta
    }

    /// A fragment of a packet to us. Only tunnels are worth waiting for the other fragments: nothing else that we answer is
    /// that long.
    const fn own_fragment(&self) -> Kind {
        if self.roles.tunnels() { Kind::OuterFragment } else { Kind::Bad(Reason::FragmentToUs) }
    }

    /// A whole packet to one of our addresses. `meta.inner` is the offset of `payload`.
    #[inline(always)]
    fn ours(&self, protocol: u8, payload: &[u8], meta: Meta) -> Meta {
        if protocol != 17 {
            return Meta { kind: Kind::Local, inner: meta.l3, ..meta };
        }
        let bad = |reason| Meta { kind: Kind::Bad(reason), ..meta };
        let Some((udp, rest)) = payload.split_first_chunk::<8>() else { return bad(Reason::Malformed) };
        let [_, _, p0, p1, l0, l1, _, _] = *udp;
        if u16::from_be_bytes([p0, p1]) != GTP_U_PORT {
            return Meta { kind: Kind::Local, inner: meta.l3, ..meta };
        }
        if !self.roles.tunnels() {
            return bad(Reason::NotN3);
        }
        let length = u16::from_be_bytes([l0, l1]) as usize;
        let Some(message) = length.checked_sub(8).and_then(|n| rest.get(..n)) else {
            return bad(Reason::Malformed);
        };
        gtpu(message, Meta { inner: meta.inner + 8, ..meta })
    }
}

/// A packet to us from an address that may be no far end's.
#[cold]
#[inline(never)]
fn from_far_end(view: &NetView, source: IpAddr, meta: Meta) -> Meta {
    match meta.kind {
        Kind::Tunnel | Kind::Signalling | Kind::UnknownExtension(_) if is_no_far_end(view, source) => {
            Meta { kind: Kind::Bad(Reason::MartianFarEnd), ..meta }
        }
        _ => meta,
    }
}

/// A GTP-U message. `meta.inner` is its offset.
#[inline(always)]
fn gtpu(message: &[u8], meta: Meta) -> Meta {
    let bad = |reason| Meta { kind: Kind::Bad(reason), ..meta };
    let Some((head, rest)) = message.split_first_chunk::<8>() else { return bad(Reason::Malformed) };
    let [flags, kind, l0, l1, t0, t1, t2, t3] = *head;
    if flags & 0xf0 != 0x30 {
        return bad(Reason::GtpuVersion);
    }
    let Some(body) = rest.get(..u16::from_be_bytes([l0, l1]) as usize) else {
        return bad(Reason::Malformed);
    };
    let meta = Meta { teid: u32::from_be_bytes([t0, t1, t2, t3]), ..meta };
    if kind != 255 {
        return Meta { kind: Kind::Signalling, ..meta };
    }
    if flags == 0x30 {
        return inner(body, Meta { inner: meta.inner + 8, ..meta });
    }
    // The usual packet: one PDU session container of four octets and nothing else.
    if let Some((&[_, _, _, 0x85, 1, c0, c1, 0], body)) = body.split_first_chunk::<8>()
        && flags & 4 != 0
    {
        return inner(body, Meta { inner: meta.inner + 16, qfi: c1 & 0x3f, container: [c0, c1], ..meta });
    }
    match extended(flags, body) {
        Ok(Optional { length, qfi, container }) => {
            let body = body.get(length as usize..).unwrap_or_default();
            inner(body, Meta { inner: meta.inner + 8 + length, qfi, container, ..meta })
        }
        Err(kind) => Meta { kind, ..meta },
    }
}

/// What the optional fields of a G-PDU say. Small, so that it is returned in registers: a [`Meta`] that went through
/// memory on the way would be read back before its pieces have arrived there.
struct Optional {
    /// Octets behind the eight that every G-PDU has.
    length: u16,
    qfi: u8,
    container: [u8; 2],
}

/// A G-PDU with any other optional fields (TS 29.281 §5.1, §5.2).
#[inline(never)]
fn extended(flags: u8, body: &[u8]) -> Result<Optional, Kind> {
    let bad = Err(Kind::Bad(Reason::Malformed));
    let Some((&[_, _, _, first], mut rest)) = body.split_first_chunk::<4>() else { return bad };
    let mut found = Optional { length: 4, qfi: NO_QFI, container: [0; 2] };
    let mut next = if flags & 4 == 0 { 0 } else { first };
    for _ in 0..MAX_EXTENSIONS {
        if next == 0 {
            return Ok(found);
        }
        let units = rest.first().copied().unwrap_or(0) as usize;
        if units == 0 {
            return bad;
        }
        let Some((extension, after)) = rest.split_at_checked(4 * units) else { return bad };
        match next {
            0x85 => {
                if let [_, c0, c1, ..] = *extension {
                    found.qfi = c1 & 0x3f;
                    found.container = [c0, c1];
                }
            }
            // PDCP PDU numbers belong to the gNBs at a handover and mean nothing to a UPF.
            0xc0 | 0x82 => {}
            // The highest bit: the receiver must understand it (figure 5.2.1-2).
            _ if next & 0x80 != 0 => return Err(Kind::UnknownExtension(next)),
            _ => {}
        }
        next = extension.last().copied().unwrap_or(0);
        found.length += 4 * units as u16;
        rest = after;
    }
    bad
}

/// The UE's packet in a tunnel. `meta.inner` is its offset.
#[inline(always)]
fn inner(packet: &[u8], meta: Meta) -> Meta {
    let meta = Meta { kind: Kind::Tunnel, ..meta };
    match packet.first().map(|octet| octet >> 4) {
        Some(4) => match ipv4_header(packet) {
            Some(header) => Meta { v6: false, len: header.total_len, key: header.source as u64, ..meta },
            None => Meta { kind: Kind::Bad(Reason::Malformed), ..meta },
        },
        Some(6) => match ipv6_header(packet) {
            Some(header) => {
                Meta { v6: true, len: header.total_len, key: (header.source >> 64) as u64, ..meta }
            }
            None => Meta { kind: Kind::Bad(Reason::Malformed), ..meta },
        },
        _ => Meta { kind: Kind::Bad(Reason::Malformed), ..meta },
    }
}

fn plain4(meta: Meta, packet: &[u8]) -> Meta {
    match ipv4_header(packet) {
        Some(header) => {
            Meta { kind: Kind::Plain, len: header.total_len, key: header.destination as u64, ..meta }
        }
        None => Meta::bad(Reason::Malformed),
    }
}

fn plain6(meta: Meta, packet: &[u8]) -> Meta {
    match ipv6_header(packet) {
        Some(header) => Meta {
            kind: Kind::Plain,
            v6: true,
            len: header.total_len,
            key: (header.destination >> 64) as u64,
            ..meta
        },
        None => Meta::bad(Reason::Malformed),
    }
}

/// A UE's packet behind 14 bytes of internal Ethernet header, as it stands in a frame's memory.
pub fn internal(frame: &[u8]) -> Meta {
    let Some((ethernet, rest)) = frame.split_first_chunk::<14>() else {
        return Meta::bad(Reason::Malformed);
    };
    let meta = Meta { l3: 14, inner: 14, internal: true, ..Meta::EMPTY };
    match ethernet {
        [.., 0x08, 0x00] => plain4(meta, rest),
        [.., 0x86, 0xdd] => plain6(meta, rest),
        _ => Meta::bad(Reason::Malformed),
    }
}

/// The Ethernet header of an internal frame.
pub const fn internal_header(v6: bool) -> [u8; 14] {
    let [a, b, c, d, e, f] = INTERNAL_MAC;
    let [t0, t1] = if v6 { [0x86, 0xdd] } else { [0x08, 0x00] };
    [a, b, c, d, e, f, 0, 0, 0, 0, 0, 0, t0, t1]
}

struct Ipv4Fields {
    header_len: usize,
    total_len: u16,
    /// Flags and fragment offset.
    fragment: u16,
    protocol: u8,
    source: u32,
    destination: u32,
}

#[inline(always)]
fn ipv4_header(packet: &[u8]) -> Option<Ipv4Fields> {
    let [v, _, l0, l1, _, _, f0, f1, _, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] =
        *packet.first_chunk::<20>()?;
    let header_len = (v & 15) as usize * 4;
    let total_len = u16::from_be_bytes([l0, l1]);
    if v >> 4 != 4
        || header_len < 20
        || (total_len as usize) < header_len
        || (total_len as usize) > packet.len()
    {
        return None;
    }
    Some(Ipv4Fields {
        header_len,
        total_len,
        fragment: u16::from_be_bytes([f0, f1]),
        protocol,
        source: u32::from_be_bytes([s0, s1, s2, s3]),
        destination: u32::from_be_bytes([d0, d1, d2, d3]),
    })
}

/// RFC 1812 §5.2.2 (2). The header's words add up to all ones, in whatever byte order they are read.
#[inline(always)]
fn ipv4_checksum_ok(packet: &[u8], header_len: usize) -> bool {
    let Some((fixed, options)) = packet.get(..header_len).and_then(<[u8]>::split_first_chunk::<20>) else {
        return false;
    };
    let mut sum = 0u64;
    for word in fixed.as_chunks::<4>().0 {
        sum += u32::from_le_bytes(*word) as u64;
    }
    for word in options.as_chunks::<4>().0 {
        sum += u32::from_le_bytes(*word) as u64;
    }
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    (sum & 0xffff) + (sum >> 16) == 0xffff
}

struct Ipv6Fields {
    total_len: u16,
    next: u8,
    source: u128,
    destination: u128,
}

#[inline(always)]
fn ipv6_header(packet: &[u8]) -> Option<Ipv6Fields> {
    let (head, rest) = packet.split_first_chunk::<8>()?;
    let [v, _, _, _, l0, l1, next, _] = *head;
    let (source, rest) = rest.split_first_chunk::<16>()?;
    let destination = rest.first_chunk::<16>()?;
    let total_len = u16::from_be_bytes([l0, l1]).checked_add(40)?;
    if v >> 4 != 6 || total_len as usize > packet.len() {
        return None;
    }
    Some(Ipv6Fields {
        total_len,
        next,
        source: u128::from_be_bytes(*source),
        destination: u128::from_be_bytes(*destination),
    })
}
