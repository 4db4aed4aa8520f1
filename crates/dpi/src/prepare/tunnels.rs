//! Which tunnels are opened, and what their headers look like.

use super::stack::Layer;
use super::walk::Next;
use packet::gtpu::MessageType;
use packet::{ErspanView, EtherType, GreView, GtpuView};

/// A set of tunnels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tunnels(u32);

impl Tunnels {
    /// None: the outermost IP packet is what is wanted.
    pub const NONE: Self = Self(0);
    /// Those of networks' own, whose packets are their users': GTP-U, VXLAN, GENEVE, GRE (with ERSPAN), IP in IP, Ethernet in IP; and mirrored
    /// frames (TZSP).
    pub const USUAL: Self = Self::NONE
        .with(Layer::GtpU)
        .with(Layer::Vxlan)
        .with(Layer::Geneve)
        .with(Layer::Gre)
        .with(Layer::IpInIp)
        .with(Layer::EtherIp)
        .with(Layer::Tzsp);
    /// With those that users themselves have, too: L2TP.
    pub const ALL: Self = Self::USUAL.with(Layer::L2tp);

    /// And this one.
    #[must_use]
    pub const fn with(self, layer: Layer) -> Self {
        Self(self.0 | 1 << layer.index())
    }

    /// But not this one.
    #[must_use]
    pub const fn without(self, layer: Layer) -> Self {
        Self(self.0 & !(1 << layer.index()))
    }

    /// Whether it is opened.
    #[inline]
    pub const fn has(self, layer: Layer) -> bool {
        self.0 & 1 << layer.index() != 0
    }
}

impl Default for Tunnels {
    fn default() -> Self {
        Self::USUAL
    }
}

/// What a UDP port suggests.
#[inline]
pub(super) const fn by_port(port: u16) -> Option<Layer> {
    Some(match port {
        packet::GTP_U_PORT => Layer::GtpU,
        // The second one is Linux' own, from before the first one was assigned; the third one is of the generic extension.
        4789 | 8472 | 4790 => Layer::Vxlan,
        6081 => Layer::Geneve,
        1701 => Layer::L2tp,
        37008 => Layer::Tzsp,
        _ => return None,
    })
}

/// Number of the tunnel, and what is in it; `None`: the port was a coincidence, or it is the tunnel's own signalling.
#[inline]
pub(super) fn in_udp(layer: Layer, datagram: &[u8], cut: bool) -> Option<(u32, Next, &[u8])> {
    match layer {
        Layer::GtpU if cut => cut_gtpu(datagram),
        Layer::GtpU => {
            let message = GtpuView::parse(datagram).ok()?;
            gtpu(&message, message.payload())
        }
        Layer::Vxlan => vxlan(datagram),
        Layer::Geneve => geneve(datagram),
        Layer::L2tp => l2tp(datagram),
        Layer::Tzsp => tzsp(datagram),
        _ => None,
    }
}

/// What is in a G-PDU. Sessions of type Ethernet (TS 23.501 §5.6.10.2) look like this, too.
#[inline]
fn gtpu<'p>(message: &GtpuView<'_>, inside: &'p [u8]) -> Option<(u32, Next, &'p [u8])> {
    if message.message_type() != MessageType::G_PDU {
        return None;
    }
    let next = if matches!(inside.first()? >> 4, 4 | 6) { Next::Ip } else { Next::Ethernet };
    Some((message.teid().0, next, inside))
}

/// Whose end was not captured: its headers are all there, and its length is no lie.
#[cold]
fn cut_gtpu(datagram: &[u8]) -> Option<(u32, Next, &[u8])> {
    let mut begin = [0; 64];
    let kept = datagram.len().min(begin.len());
    begin.get_mut(..kept)?.copy_from_slice(datagram.get(..kept)?);
    let length = kept.checked_sub(packet::gtpu::HEADER_LEN)? as u16;
    [begin[2], begin[3]] = length.to_be_bytes();
    let message = GtpuView::parse(begin.get(..kept)?).ok()?;
    gtpu(&message, datagram.get(message.header_len()..)?)
}

/// RFC 7348 §5: flags, a reserved field, the network's identifier, a reserved octet. The extensions of group policies and of other payloads than
/// Ethernet (draft-ietf-nvo3-vxlan-gpe §3) have a flag each.
fn vxlan(datagram: &[u8]) -> Option<(u32, Next, &[u8])> {
    const IDENTIFIED: u8 = 0x08;
    const OTHER: u8 = 0x04;
    const GROUP: u8 = 0x80;
    let (&[flags, r0, r1, protocol, v0, v1, v2, r2], inside) = datagram.split_first_chunk()?;
    if flags & IDENTIFIED == 0 || r2 != 0 {
        return None;
    }
    let next = match (flags & !IDENTIFIED, protocol) {
        (0, 0) if [r0, r1] == [0, 0] => Next::Ethernet,
        (GROUP, _) | (OTHER, 3) => Next::Ethernet,
        (OTHER, 1 | 2) => Next::Ip,
        _ => return None,
    };
    Some((u32::from_be_bytes([0, v0, v1, v2]), next, inside))
}

/// RFC 8926 §3.4: version 0 and the length of options, flags, an EtherType, the network's identifier, a reserved octet.
fn geneve(datagram: &[u8]) -> Option<(u32, Next, &[u8])> {
    let (&[first, flags, t0, t1, v0, v1, v2, reserved], rest) = datagram.split_first_chunk()?;
    if first >> 6 != 0 || flags & 0x3f != 0 || reserved != 0 {
        return None;
    }
    let inside = rest.get(usize::from(first & 0x3f) * 4..)?;
    Some((u32::from_be_bytes([0, v0, v1, v2]), Next::Type(EtherType(u16::from_be_bytes([t0, t1]))), inside))
}

/// RFC 2661 §3.1, data messages only: flags and version 2, a length, tunnel and session, sequence numbers, an offset.
fn l2tp(datagram: &[u8]) -> Option<(u32, Next, &[u8])> {
    const CONTROL: u16 = 0x8000;
    const LENGTH: u16 = 0x4000;
    const SEQUENCE: u16 = 0x0800;
    const OFFSET: u16 = 0x0200;
    const RESERVED: u16 = 0x34f0;
    let (&[f0, f1], mut rest) = datagram.split_first_chunk()?;
    let flags = u16::from_be_bytes([f0, f1]);
    if flags & 0xf != 2 || flags & (CONTROL | RESERVED) != 0 {
        return None;
    }
    if flags & LENGTH != 0 {
        let (length, _) = rest.split_first_chunk()?;
        // What it is short of was cut off, or what is inside will tell.
        rest = datagram.get(4..usize::from(u16::from_be_bytes(*length))).or(datagram.get(4..))?;
    }
    let (id, mut rest) = rest.split_first_chunk()?;
    if flags & SEQUENCE != 0 {
        rest = rest.get(4..)?;
    }
    if flags & OFFSET != 0 {
        let (offset, after) = rest.split_first_chunk()?;
        rest = after.get(usize::from(u16::from_be_bytes(*offset))..)?;
    }
    Some((u32::from_be_bytes(*id), Next::Ppp, rest))
}

/// Tags of a TZSP header that are passed over.
const MAX_TAGS: usize = 32;

/// Version 1, a type (0: received, 1: to be sent), what is in it, tags up to the one that ends them.
fn tzsp(datagram: &[u8]) -> Option<(u32, Next, &[u8])> {
    let (&[1, 0 | 1, high, low], mut rest) = datagram.split_first_chunk()? else { return None };
    let next = match u16::from_be_bytes([high, low]) {
        1 => Next::Ethernet,
        18 => Next::Wireless,
        _ => return None,
    };
    for _ in 0..MAX_TAGS {
        rest = match rest {
            [0, rest @ ..] => rest,
            [1, rest @ ..] => return Some((0, next, rest)),
            [_, length, rest @ ..] => rest.get(usize::from(*length)..)?,
            _ => return None,
        };
    }
    None
}

/// GRE's key (0: none), what is in it, and its octets.
pub(super) fn gre(packet: &[u8]) -> Option<(u32, EtherType, &[u8])> {
    if let Ok(view) = GreView::parse(packet) {
        return Some((view.key().unwrap_or(0), view.protocol(), view.payload()));
    }
    // RFC 2637 §4.1: with a key, version 1; the key is length and call; the acknowledgement's flag is in the second octet.
    let (&[flags @ (0x20 | 0x30), version @ (0x01 | 0x81), p0, p1, l0, l1, c0, c1], rest) =
        packet.split_first_chunk()?
    else {
        return None;
    };
    let passed = usize::from(flags >> 4 & 1) * 4 + usize::from(version >> 7) * 4;
    let inside = rest.get(passed..)?;
    let inside = inside.get(..usize::from(u16::from_be_bytes([l0, l1]))).unwrap_or(inside);
    Some((u32::from_be_bytes([0, 0, c0, c1]), EtherType(u16::from_be_bytes([p0, p1])), inside))
}

/// A mirrored frame in GRE and its session's number. Type II has a header of eight octets if GRE has a sequence number, type I has none
/// (draft-foschiano-erspan-03 §4.1, §4.2).
pub(super) fn erspan<'p>(kind: EtherType, packet: &[u8], inside: &'p [u8]) -> Option<(u32, &'p [u8])> {
    const TYPE_II: EtherType = EtherType(0x88be);
    match kind {
        EtherType::ERSPAN_III => {
            let view = ErspanView::parse(inside).ok()?;
            view.is_ethernet().then(|| (u32::from(view.header().session), view.payload()))
        }
        TYPE_II if packet.first()? & 0x10 == 0 => Some((0, inside)),
        TYPE_II => {
            let (&[version, _, s0, s1, ..], frame) = inside.split_first_chunk::<8>()?;
            let session = u16::from_be_bytes([s0, s1]) & 0x3ff;
            (version >> 4 == 1).then_some((u32::from(session), frame))
        }
        _ => None,
    }
}
