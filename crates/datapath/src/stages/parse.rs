//! The bytes of a frame, read once into a small [`Meta`] that every later stage works from.
//!
//! Only what decides the packet's way is read: which interface, tunnel or plain, which UE. Lengths are checked
//! here, so that later stages may rely on them: a [`Kind::Tunnel`] or [`Kind::Plain`] packet has a whole IP header
//! at [`Meta::inner`], and [`Meta::len`] bytes from there on lie within the frame.

use crate::Reason;
use crate::meta::{Kind, Meta, NO_QFI};
use crate::network::Network;
use crate::network::fib::Fib;
use crate::network::ingress::{PortTable, Station};
use crate::network::sources::{Sources, is_no_far_end};
use packet::{GTP_U_PORT, MacAddr};
use session::PrefixLengths;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Extension headers of GTP-U or IPv6 that are followed, at most; more are called malformed.
const MAX_EXTENSIONS: usize = 8;
/// The destination MAC address of frames that never were on a wire: a UE's packet on its way to another UE, or an
/// answer to a UE, handed to the worker that owns it. Locally administered, and accepted only from another worker.
pub const INTERNAL_MAC: MacAddr = MacAddr([0x02, b'M', b'I', b'L', b'L', b'R']);
const INTERNAL: u64 = INTERNAL_MAC.to_u64();

/// Reads the frames that arrive at a port.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    fib: &'a Fib,
    sources: &'a Sources,
    port: Option<&'a PortTable>,
    /// Where not all UEs' prefixes are /64s.
    prefixes: Option<&'a PrefixLengths>,
    handed_off: bool,
}

impl<'a> Arrival<'a> {
    /// Those of this port.
    #[inline(always)]
    pub fn at<F>(Network { ingress, fib, prefixes, .. }: &'a Network<F>, port: u16) -> Self {
        Self {
            fib,
            sources: &ingress.sources,
            port: ingress.ports.get(usize::from(port)),
            prefixes: (!prefixes.is_plain()).then_some(prefixes),
            handed_off: false,
        }
    }
}

impl Arrival<'_> {
    /// The frames come from another worker, and may be internal.
    #[must_use]
    pub const fn handed_off(self, handed_off: bool) -> Self {
        Self { handed_off, ..self }
    }

    /// Reads a frame.
    pub fn parse(&self, frame: &[u8]) -> Meta {
        let mut meta = Meta::EMPTY;
        self.parse_into(frame, &mut meta);
        meta
    }

    /// Reads a frame into a [`Meta::EMPTY`].
    #[inline(always)]
    pub fn parse_into(&self, frame: &[u8], meta: &mut Meta) {
        meta.kind = self.read(frame, meta).unwrap_or_else(Kind::Bad);
        if let Some(prefixes) = self.prefixes {
            meta.cut_key(prefixes);
        }
    }

    #[inline(always)]
    fn read(&self, frame: &[u8], meta: &mut Meta) -> Result<Kind, Reason> {
        let (ethernet, packet) = frame.split_first_chunk::<14>().ok_or(Reason::Malformed)?;
        let [d0, d1, d2, d3, d4, d5, s0, s1, .., t0, t1] = *ethernet;
        let destination = u64::from_be_bytes([d0, d1, d2, d3, d4, d5, s0, s1]) >> 16;
        let ether_type = u16::from_be_bytes([t0, t1]);
        if self.handed_off && destination == INTERNAL {
            return meta.internal(ether_type, packet);
        }
        let table = self.port.ok_or(Reason::UnknownVlan)?;
        if ether_type == 0x8100 || ether_type == 0x88a8 {
            return self.tagged(table, destination, packet, meta);
        }
        let station = table.untagged.as_ref().ok_or(Reason::UnknownVlan)?;
        (meta.l3, meta.inner) = (14, 14);
        self.packet(station, (destination, ether_type), packet, meta)
    }

    /// What follows the first two octets of a VLAN tag.
    #[inline(never)]
    fn tagged(
        &self,
        table: &PortTable,
        destination: u64,
        tag: &[u8],
        meta: &mut Meta,
    ) -> Result<Kind, Reason> {
        let (&[v0, v1, t0, t1], packet) = tag.split_first_chunk::<4>().ok_or(Reason::Malformed)?;
        let vlan = u16::from_be_bytes([v0, v1]) & 0x0fff;
        // VLAN 0 is a priority tag: the frame belongs to the untagged interface (802.1Q §6.9).
        let station = if vlan == 0 {
            table.untagged.as_ref()
        } else {
            table.tagged.iter().find(|(id, _)| *id == vlan).map(|(_, station)| station)
        };
        (meta.l3, meta.inner) = (18, 18);
        let ether_type = u16::from_be_bytes([t0, t1]);
        self.packet(station.ok_or(Reason::UnknownVlan)?, (destination, ether_type), packet, meta)
    }

    /// What follows an Ethernet header with this destination and type.
    #[inline(always)]
    fn packet(
        &self,
        station: &Station,
        (destination, ether_type): (u64, u16),
        packet: &[u8],
        meta: &mut Meta,
    ) -> Result<Kind, Reason> {
        meta.interface = station.interface;
        let multicast = destination >> 40 & 1 != 0;
        if destination != station.mac && !multicast {
            return Err(Reason::NotForUs);
        }
        match ether_type {
            0x0800 if multicast => Err(Reason::IgnoredMulticast),
            0x0800 => self.ipv4(station, packet, meta),
            0x86dd => self.ipv6(station, packet, multicast, meta),
            0x0806 => Ok(Kind::Arp),
            0x8100 | 0x88a8 => Err(Reason::UnknownVlan),
            _ => Err(Reason::UnknownEtherType),
        }
    }

    // Both families have a function of their own, so that they don't have to share the registers.
    #[inline(never)]
    fn ipv4(&self, station: &Station, packet: &[u8], meta: &mut Meta) -> Result<Kind, Reason> {
        let header = ipv4_header(packet)?;
        if !header.checksum_ok(packet) {
            return Err(Reason::Malformed);
        }
        if header.destination != station.ipv4 && !self.is_other_own(station, &header, packet) {
            if !station.roles.n6 {
                return Err(Reason::NotN6);
            }
            if let Some(reason) = self.sources.outside4(self.fib, header.source) {
                return Err(reason);
            }
            meta.users_v4(&header, header.destination);
            return Ok(Kind::Plain);
        }
        (meta.len, meta.outer_tos) = (header.total_len, header.tos);
        if header.fragment & 0x3fff != 0 {
            return station.own_fragment();
        }
        let payload = packet.get(header.header_len..header.total_len as usize).ok_or(Reason::Malformed)?;
        let kind = station.ours(header.protocol, payload, header.header_len as u16, meta)?;
        if self.sources.may_be_no_far_end4(header.source) {
            return from_far_end(self.fib, Ipv4Addr::from(header.source).into(), kind);
        }
        Ok(kind)
    }

    /// GTP-U to an address of another interface. Rare enough to look it up; other packets are asked for in
    /// [`crate::beside::local`], when no session was found.
    #[inline(always)]
    fn is_other_own(&self, station: &Station, header: &Ipv4Fields, packet: &[u8]) -> bool {
        if header.protocol != 17 || !station.roles.tunnels() {
            return false;
        }
        let port = packet.get(header.header_len + 2..header.header_len + 4);
        (header.fragment & 0x1fff != 0 || port == Some(&GTP_U_PORT.to_be_bytes()))
            && self.fib.is_own(IpAddr::V4(Ipv4Addr::from(header.destination)))
    }

    #[inline(never)]
    fn ipv6(
        &self,
        station: &Station,
        packet: &[u8],
        multicast: bool,
        meta: &mut Meta,
    ) -> Result<Kind, Reason> {
        let header = ipv6_header(packet)?;
        (meta.v6, meta.len) = (true, header.total_len);
        // Link-local and multicast destinations never leave the link.
        if multicast || header.destination >> 118 == 0xfe80 >> 6 || header.destination >> 120 == 0xff {
            return Ok(Kind::Local);
        }
        let ours = header.destination == station.ipv6
            || (station.roles.tunnels()
                && matches!(header.next, 17 | 44)
                && self.fib.is_own(IpAddr::V6(Ipv6Addr::from(header.destination))));
        if !ours {
            if !station.roles.n6 {
                return Err(Reason::NotN6);
            }
            if let Some(reason) = self.sources.outside6(self.fib, header.source) {
                return Err(reason);
            }
            meta.users_v6(&header, header.destination);
            return Ok(Kind::Plain);
        }
        meta.outer_tos = header.tos;
        if header.next == 44 {
            return station.own_fragment();
        }
        let payload = packet.get(40..header.total_len as usize).ok_or(Reason::Malformed)?;
        let kind = station.ours(header.next, payload, 40, meta)?;
        if self.sources.may_be_no_far_end6(header.source) {
            return from_far_end(self.fib, Ipv6Addr::from(header.source).into(), kind);
        }
        Ok(kind)
    }
}

impl Meta {
    /// A UE's packet without a tunnel behind 14 bytes of Ethernet header.
    #[inline(always)]
    fn internal(&mut self, ether_type: u16, packet: &[u8]) -> Result<Kind, Reason> {
        (self.l3, self.inner, self.internal) = (14, 14, true);
        match ether_type {
            0x0800 => {
                let header = ipv4_header(packet)?;
                self.users_v4(&header, header.destination);
            }
            0x86dd => {
                let header = ipv6_header(packet)?;
                self.users_v6(&header, header.destination);
            }
            _ => return Err(Reason::Malformed),
        }
        Ok(Kind::Plain)
    }

    /// Of an IPv6 address only that counts by which its UE is known.
    #[inline(never)]
    fn cut_key(&mut self, prefixes: &PrefixLengths) {
        if self.v6 && matches!(self.kind, Kind::Tunnel | Kind::Plain) {
            self.key = prefixes.key(self.key);
        }
    }

    /// The UE's packet, with whose address it is found or checked.
    #[inline(always)]
    fn users_v4(&mut self, header: &Ipv4Fields, user: u32) {
        (self.len, self.tos, self.key) = (header.total_len, header.tos, user.into());
    }

    /// Likewise.
    #[inline(always)]
    fn users_v6(&mut self, header: &Ipv6Fields, user: u128) {
        (self.v6, self.len, self.tos, self.key) = (true, header.total_len, header.tos, (user >> 64) as u64);
    }
}

impl Station {
    /// A fragment of a packet to us. Only tunnels are worth waiting for the other fragments: nothing else that we answer is
    /// that long.
    const fn own_fragment(&self) -> Result<Kind, Reason> {
        if self.roles.tunnels() { Ok(Kind::OuterFragment) } else { Err(Reason::FragmentToUs) }
    }

    /// A whole packet to one of our addresses: what is behind its IP header of so many octets.
    #[inline(always)]
    fn ours(&self, protocol: u8, payload: &[u8], header_len: u16, meta: &mut Meta) -> Result<Kind, Reason> {
        if protocol != 17 {
            return Ok(Kind::Local);
        }
        let (udp, rest) = payload.split_first_chunk::<8>().ok_or(Reason::Malformed)?;
        let [_, _, p0, p1, l0, l1, _, _] = *udp;
        if u16::from_be_bytes([p0, p1]) != GTP_U_PORT {
            return Ok(Kind::Local);
        }
        if !self.roles.tunnels() {
            return Err(Reason::NotN3);
        }
        let length = u16::from_be_bytes([l0, l1]) as usize;
        let message = length.checked_sub(8).and_then(|n| rest.get(..n)).ok_or(Reason::Malformed)?;
        gtpu(message, meta.l3 + header_len + 8, meta)
    }
}

/// A packet to us from an address that may be no far end's.
#[cold]
#[inline(never)]
fn from_far_end(fib: &Fib, source: IpAddr, kind: Kind) -> Result<Kind, Reason> {
    match kind {
        Kind::Tunnel | Kind::Signalling | Kind::UnknownExtension(_) if is_no_far_end(fib, source) => {
            Err(Reason::MartianFarEnd)
        }
        _ => Ok(kind),
    }
}

/// A GTP-U message at this offset.
#[inline(always)]
fn gtpu(message: &[u8], at: u16, meta: &mut Meta) -> Result<Kind, Reason> {
    let (head, rest) = message.split_first_chunk::<8>().ok_or(Reason::Malformed)?;
    let [flags, kind, l0, l1, t0, t1, t2, t3] = *head;
    if flags & 0xf0 != 0x30 {
        return Err(Reason::GtpuVersion);
    }
    let body = rest.get(..u16::from_be_bytes([l0, l1]) as usize).ok_or(Reason::Malformed)?;
    (meta.inner, meta.teid) = (at, u32::from_be_bytes([t0, t1, t2, t3]));
    if kind != 255 {
        return Ok(Kind::Signalling);
    }
    if flags == 0x30 {
        return inner(body, at + 8, meta);
    }
    // The usual packet: one PDU session container of four octets and nothing else.
    if let Some((&[_, _, _, 0x85, 1, c0, c1, 0], body)) = body.split_first_chunk::<8>()
        && flags & 4 != 0
    {
        (meta.qfi, meta.container) = (c1 & 0x3f, [c0, c1]);
        return inner(body, at + 16, meta);
    }
    match extended(flags, body)? {
        Extended::Known(Optional { length, qfi, container }) => {
            (meta.qfi, meta.container) = (qfi, container);
            inner(body.get(length as usize..).unwrap_or_default(), at + 8 + length, meta)
        }
        Extended::Unknown(extension) => Ok(Kind::UnknownExtension(extension)),
    }
}

/// What the optional fields of a G-PDU say.
struct Optional {
    /// Octets behind the eight that every G-PDU has.
    length: u16,
    qfi: u8,
    container: [u8; 2],
}

enum Extended {
    Known(Optional),
    /// This one must be understood.
    Unknown(u8),
}

/// A G-PDU with any other optional fields (TS 29.281 §5.1, §5.2).
#[inline(never)]
fn extended(flags: u8, body: &[u8]) -> Result<Extended, Reason> {
    let (&[_, _, _, first], mut rest) = body.split_first_chunk::<4>().ok_or(Reason::Malformed)?;
    let mut found = Optional { length: 4, qfi: NO_QFI, container: [0; 2] };
    let mut next = if flags & 4 == 0 { 0 } else { first };
    for _ in 0..MAX_EXTENSIONS {
        if next == 0 {
            return Ok(Extended::Known(found));
        }
        let units = rest.first().copied().unwrap_or(0) as usize;
        if units == 0 {
            break;
        }
        let (extension, after) = rest.split_at_checked(4 * units).ok_or(Reason::Malformed)?;
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
            _ if next & 0x80 != 0 => return Ok(Extended::Unknown(next)),
            _ => {}
        }
        next = extension.last().copied().unwrap_or(0);
        found.length += 4 * units as u16;
        rest = after;
    }
    Err(Reason::Malformed)
}

/// The UE's packet in a tunnel, at this offset.
#[inline(always)]
fn inner(packet: &[u8], at: u16, meta: &mut Meta) -> Result<Kind, Reason> {
    meta.inner = at;
    match packet.first().map(|octet| octet >> 4) {
        Some(4) => {
            let header = ipv4_header(packet)?;
            meta.v6 = false;
            meta.users_v4(&header, header.source);
        }
        Some(6) => {
            let header = ipv6_header(packet)?;
            meta.users_v6(&header, header.source);
        }
        _ => return Err(Reason::Malformed),
    }
    Ok(Kind::Tunnel)
}

/// A UE's packet behind 14 bytes of internal Ethernet header, as it stands in a frame's memory.
pub fn internal(prefixes: &PrefixLengths, frame: &[u8]) -> Meta {
    let mut meta = Meta::EMPTY;
    let kind = match frame.split_first_chunk::<14>() {
        Some(([.., t0, t1], packet)) => meta.internal(u16::from_be_bytes([*t0, *t1]), packet),
        None => Err(Reason::Malformed),
    };
    meta.kind = kind.unwrap_or_else(Kind::Bad);
    meta.cut_key(prefixes);
    meta
}

/// The Ethernet header of an internal frame.
pub const fn internal_header(v6: bool) -> [u8; 14] {
    let [a, b, c, d, e, f] = INTERNAL_MAC.0;
    let [t0, t1] = if v6 { [0x86, 0xdd] } else { [0x08, 0x00] };
    [a, b, c, d, e, f, 0, 0, 0, 0, 0, 0, t0, t1]
}

struct Ipv4Fields {
    tos: u8,
    header_len: usize,
    total_len: u16,
    /// Flags and fragment offset.
    fragment: u16,
    protocol: u8,
    source: u32,
    destination: u32,
    /// Of the words without options.
    sum: u64,
}

#[inline(always)]
fn ipv4_header(packet: &[u8]) -> Result<Ipv4Fields, Reason> {
    let fixed = packet.first_chunk::<20>().ok_or(Reason::Malformed)?;
    let ([w0, w1, w2, w3, w4], []) = fixed.as_chunks::<4>() else { return Err(Reason::Malformed) };
    let words @ [first, second, third, source, destination] =
        [w0, w1, w2, w3, w4].map(|word| u32::from_be_bytes(*word));
    let header_len = (first >> 24 & 15) as usize * 4;
    let total_len = first as u16;
    if first >> 28 != 4
        || header_len < 20
        || (total_len as usize) < header_len
        || (total_len as usize) > packet.len()
    {
        return Err(Reason::Malformed);
    }
    Ok(Ipv4Fields {
        tos: (first >> 16) as u8,
        header_len,
        total_len,
        fragment: second as u16,
        protocol: (third >> 16) as u8,
        source,
        destination,
        sum: words.into_iter().map(u64::from).sum(),
    })
}

impl Ipv4Fields {
    /// RFC 1812 §5.2.2 (2). The header's words add up to all ones, of whatever length they are read: to a multiple of 65,535, and not to
    /// 0, since the version isn't.
    #[inline(always)]
    fn checksum_ok(&self, packet: &[u8]) -> bool {
        let options = if self.header_len == 20 { 0 } else { options_sum(packet, self.header_len) };
        (self.sum + options).is_multiple_of(0xffff)
    }
}

#[cold]
#[inline(never)]
fn options_sum(packet: &[u8], header_len: usize) -> u64 {
    let options = packet.get(20..header_len).unwrap_or_default();
    options.as_chunks::<4>().0.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum()
}

struct Ipv6Fields {
    tos: u8,
    total_len: u16,
    next: u8,
    source: u128,
    destination: u128,
}

#[inline(always)]
fn ipv6_header(packet: &[u8]) -> Result<Ipv6Fields, Reason> {
    let (head, rest) = packet.split_first_chunk::<8>().ok_or(Reason::Malformed)?;
    let [v, class, _, _, l0, l1, next, _] = *head;
    let (source, rest) = rest.split_first_chunk::<16>().ok_or(Reason::Malformed)?;
    let destination = rest.first_chunk::<16>().ok_or(Reason::Malformed)?;
    let total_len = u16::from_be_bytes([l0, l1]).checked_add(40).ok_or(Reason::Malformed)?;
    if v >> 4 != 6 || total_len as usize > packet.len() {
        return Err(Reason::Malformed);
    }
    Ok(Ipv6Fields {
        tos: v << 4 | class >> 4,
        total_len,
        next,
        source: u128::from_be_bytes(*source),
        destination: u128::from_be_bytes(*destination),
    })
}
