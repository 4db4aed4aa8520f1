//! From the frame to the innermost IP packet.

use super::stack::{Around, Layer};
use super::tunnels::{self, Tunnels};
use super::{NoPacket, Prepared, Why};
use packet::{EtherType, IpPacket, IpProtocol, Ipv4View, Ipv6View, Malformed, VlanId};

/// What the next octets are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    Ethernet,
    /// What an EtherType names.
    Type(EtherType),
    Llc,
    Ppp,
    Wireless,
    /// IPv4 or IPv6: the version says which.
    Ip,
}

/// RFC 2516 §4.
pub(super) const PPPOE_SESSION: EtherType = EtherType(0x8864);
/// RFC 5332 §3.
const MPLS: EtherType = EtherType(0x8847);
const MPLS_UPSTREAM: EtherType = EtherType(0x8848);
/// Transparent Ethernet bridging.
const BRIDGED: EtherType = EtherType(0x6558);
/// PPP in GRE (RFC 2637 §4.1).
const PPP: EtherType = EtherType(0x880b);
/// Tags before 802.1ad had a number of its own.
const OLD_QINQ: EtherType = EtherType(0x9100);
/// What is below is a length (IEEE 802.3 §3.2.6).
const FIRST_TYPE: u16 = 0x0600;

/// Labels of one stack that are looked through.
const MAX_LABELS: usize = 16;

/// IPv6 behind an IP header.
const IPV6_IN_IP: IpProtocol = IpProtocol(41);
const IPV4_IN_IP: IpProtocol = IpProtocol(4);
const ETHER_IP: IpProtocol = IpProtocol(97);
const MPLS_IN_IP: IpProtocol = IpProtocol(137);

/// Two octets in network order.
#[inline]
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Result<u16, Why> {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map(|two| u16::from_be_bytes(*two)).ok_or(Why::Truncated)
}

/// What follows.
pub(super) type Step<'p> = Result<(Next, &'p [u8]), NoPacket>;

/// The innermost IP packet of which every layer around it holds. If there is something else in a tunnel, or nonsense, then the tunnel's own
/// packet is it.
///
/// It ends: each turn adds a layer to the stack, which has an end, or is the last one.
#[inline]
pub(super) fn walk<'p>(
    mut next: Next,
    mut rest: &'p [u8],
    mut around: Around,
    tunnels: Tunnels,
) -> Result<Prepared<'p>, NoPacket> {
    let mut found: Option<Prepared<'p>> = None;
    loop {
        let step = match next {
            Next::Ethernet => ethernet(rest, &mut around),
            Next::Type(EtherType::IPV4 | EtherType::IPV6) | Next::Ip => {
                let cut = found.as_ref().is_none_or(|outer| outer.missing > 0);
                let prepared = match ip(rest, &mut around, cut) {
                    Ok(prepared) => prepared,
                    Err(no) => return found.ok_or(no),
                };
                match open(&prepared, &mut around, tunnels) {
                    Some(inside) => {
                        found = Some(prepared);
                        Ok(inside)
                    }
                    None => return Ok(prepared),
                }
            }
            _ => rarely(next, rest, &mut around),
        };
        match step {
            Ok(step) => (next, rest) = step,
            Err(no) => return found.ok_or(no),
        }
    }
}

#[inline]
fn ethernet<'p>(frame: &'p [u8], around: &mut Around) -> Step<'p> {
    around.stack.push(Layer::Ethernet)?;
    let kind = u16_at(frame, 12)?;
    let rest = frame.get(14..).ok_or(Why::Truncated)?;
    if kind < FIRST_TYPE {
        // The pad is cut off; a length that lies is left to what follows.
        return Ok((Next::Llc, rest.get(..usize::from(kind)).unwrap_or(rest)));
    }
    Ok((Next::Type(EtherType(kind)), rest))
}

/// What most frames don't have.
#[cold]
fn rarely<'p>(next: Next, rest: &'p [u8], around: &mut Around) -> Step<'p> {
    match next {
        Next::Ethernet | Next::Type(BRIDGED) => ethernet(rest, around),
        Next::Ip => Err(Why::Malformed.into()),
        Next::Llc => llc(rest, around),
        Next::Ppp | Next::Type(PPP) => ppp(rest, around),
        Next::Wireless => wireless(rest, around),
        Next::Type(EtherType::VLAN | EtherType::QINQ | OLD_QINQ) => {
            around.stack.push(Layer::Vlan)?;
            let kind = u16_at(rest, 2)?;
            around.tag(VlanId::from_wire(u16_at(rest, 0)?));
            let rest = rest.get(4..).ok_or(Why::Truncated)?;
            Ok((if kind < FIRST_TYPE { Next::Llc } else { Next::Type(EtherType(kind)) }, rest))
        }
        Next::Type(MPLS | MPLS_UPSTREAM) => mpls(rest, around),
        Next::Type(PPPOE_SESSION) => {
            // Version 1, type 1, code 0, session, length (RFC 2516 §4).
            around.stack.push(Layer::Pppoe)?;
            let length = usize::from(u16_at(rest, 4)?);
            if !rest.starts_with(&[0x11, 0]) {
                return Err(Why::Malformed.into());
            }
            let rest = rest.get(6..).ok_or(Why::Truncated)?;
            Ok((Next::Ppp, rest.get(..length).unwrap_or(rest)))
        }
        Next::Type(EtherType::ARP) => Err(NoPacket { why: Why::Arp, number: EtherType::ARP.0 }),
        Next::Type(other) => Err(NoPacket { why: Why::EtherType, number: other.0 }),
    }
}

/// RFC 3032 §2.1: a label, three bits, whether it is the last one, a time to live.
fn mpls<'p>(mut rest: &'p [u8], around: &mut Around) -> Step<'p> {
    around.stack.push(Layer::Mpls)?;
    for _ in 0..MAX_LABELS {
        let (&[l0, l1, l2, _], after) = rest.split_first_chunk().ok_or(Why::Truncated)?;
        rest = after;
        if l2 & 1 == 0 {
            continue;
        }
        let label = u32::from_be_bytes([0, l0, l1, l2]) >> 4;
        // What follows a Generic Associated Channel Label is the network's own (RFC 5586 §4).
        if label == 13 {
            return Err(NoPacket { why: Why::Label, number: label as u16 });
        }
        // Nothing names what follows. RFC 4928 §3: by its first four bits it is IP, or begins with a control word, or neither.
        return match rest.first().map(|octet| octet >> 4) {
            Some(4 | 6) if !named(rest) || IpPacket::parse(rest).is_ok() => Ok((Next::Ip, rest)),
            Some(0) if !named(rest) || rest.get(4..).is_some_and(named) => {
                around.stack.push(Layer::ControlWord)?;
                Ok((Next::Ethernet, rest.get(4..).ok_or(Why::Truncated)?))
            }
            // An associated channel (RFC 4385 §5).
            Some(1) if !named(rest) => Err(NoPacket { why: Why::Label, number: label as u16 }),
            Some(_) => Ok((Next::Ethernet, rest)),
            None => Err(Why::Truncated.into()),
        };
    }
    Err(Why::Deep.into())
}

/// Whether this can be an Ethernet frame that leads to IP: addresses may begin with zeros, as control words do.
fn named(frame: &[u8]) -> bool {
    matches!(
        u16_at(frame, 12).map(EtherType),
        Ok(EtherType::IPV4
            | EtherType::IPV6
            | EtherType::VLAN
            | EtherType::QINQ
            | EtherType::ARP
            | PPPOE_SESSION
            | MPLS)
    )
}

/// RFC 1661 §2, in HDLC's framing or not (RFC 1662 §3.1). The protocol may have one octet (§6.5): then it is odd.
fn ppp<'p>(rest: &'p [u8], around: &mut Around) -> Step<'p> {
    around.stack.push(Layer::Ppp)?;
    let rest = rest.strip_prefix(&[0xff, 0x03]).unwrap_or(rest);
    let (protocol, rest) = match *rest {
        [short, ref rest @ ..] if short & 1 == 1 => (u16::from(short), rest),
        [high, low, ref rest @ ..] => (u16::from_be_bytes([high, low]), rest),
        _ => return Err(Why::Truncated.into()),
    };
    match protocol {
        0x0021 | 0x0057 => Ok((Next::Ip, rest)),
        0x0281 => Ok((Next::Type(MPLS), rest)),
        0x0283 => Ok((Next::Type(MPLS_UPSTREAM), rest)),
        0x0031 => Err(NoPacket { why: Why::Llc, number: protocol }),
        _ => Err(NoPacket { why: Why::Ppp, number: protocol }),
    }
}

/// IEEE 802.2: two service access points and a control field; SNAP (RFC 1042) names an EtherType.
fn llc<'p>(rest: &'p [u8], around: &mut Around) -> Step<'p> {
    around.stack.push(Layer::Llc)?;
    match rest {
        // 00:00:f8 is what bridges make of Ethernet II on other links (IEEE 802.1H).
        [0xaa, 0xaa, 0x03, 0, 0, 0 | 0xf8, high, low, rest @ ..] => {
            Ok((Next::Type(EtherType(u16::from_be_bytes([*high, *low]))), rest))
        }
        // Routed protocols on ATM (RFC 2684 §5.1) name them as HDLC does: 0xcc is IPv4, 0x8e is IPv6.
        [0xfe, 0xfe, 0x03, 0xcc | 0x8e, rest @ ..] => Ok((Next::Ip, rest)),
        [0x42, 0x42, ..] => Err(NoPacket { why: Why::Stp, number: 0x4242 }),
        &[to, from, ..] => Err(NoPacket { why: Why::Llc, number: u16::from_be_bytes([to, from]) }),
        _ => Err(Why::Truncated.into()),
    }
}

/// IEEE 802.11 §9.2: only data that is neither ciphered nor several frames in one.
fn wireless<'p>(frame: &'p [u8], around: &mut Around) -> Step<'p> {
    around.stack.push(Layer::Wireless)?;
    let &[control, flags] = frame.first_chunk().ok_or(Why::Truncated)?;
    let no = NoPacket { why: Why::Wireless, number: u16::from_be_bytes([control, flags]) };
    let (kind, quality) = (control >> 2 & 3, control & 0x80 != 0);
    // 0x40: no data; 0x40 of the flags: protected.
    if control & 3 != 0 || kind != 2 || control & 0x40 != 0 || flags & 0x40 != 0 {
        return Err(no);
    }
    let mut length = 24;
    if flags & 3 == 3 {
        length += 6;
    }
    if quality {
        // 0x80: an aggregate (A-MSDU).
        if frame.get(length).ok_or(Why::Truncated)? & 0x80 != 0 {
            return Err(no);
        }
        length += if flags & 0x80 != 0 { 6 } else { 2 };
    }
    Ok((Next::Llc, frame.get(length..).ok_or(Why::Truncated)?))
}

/// Reads an IP packet. One that isn't wholly there is read as far as it goes, if its end can have been `cut` off.
#[inline]
fn ip<'p>(data: &'p [u8], around: &mut Around, cut: bool) -> Result<Prepared<'p>, NoPacket> {
    let ip = match data {
        [0x60..=0x6f, ..] => {
            around.stack.push(Layer::Ipv6)?;
            IpPacket::of_v6(&Ipv6View::parse_quoted(data)?)?
        }
        [_, _, 0, 0, ..] if cut => {
            around.stack.push(Layer::Ipv4)?;
            without_length(data)?
        }
        _ => {
            around.stack.push(Layer::Ipv4)?;
            IpPacket::of_v4(&Ipv4View::parse_quoted(data)?)?
        }
    };
    let packet = data.get(..usize::from(ip.total_len)).unwrap_or(data);
    let missing = ip.total_len.saturating_sub(packet.len().min(usize::from(u16::MAX)) as u16);
    if missing > 0 && !cut {
        return Err(Why::Malformed.into());
    }
    let transport = packet.get(usize::from(ip.transport_offset)..).ok_or(Why::Malformed)?;
    let payload = payload(&ip, transport, missing > 0)?;
    Ok(Prepared { ip, packet, payload, missing, around: *around })
}

/// What is captured before a network card cuts it into segments has no length yet: it is as long as it is.
#[cold]
fn without_length(data: &[u8]) -> Result<IpPacket, Malformed> {
    // The longest header, and ports.
    let mut begin = [0; packet::ipv4::MAX_HEADER_LEN + 4];
    let kept = data.len().min(begin.len());
    if let (Some(to), Some(from)) = (begin.get_mut(..kept), data.get(..kept)) {
        to.copy_from_slice(from);
    }
    let [l0, l1] = (data.len().min(usize::from(u16::MAX)) as u16).to_be_bytes();
    (begin[2], begin[3]) = (l0, l1);
    IpPacket::of_v4(&Ipv4View::parse_quoted(begin.get(..kept).unwrap_or_default())?)
}

/// What the transport protocol carries; of any other protocol all of it.
#[inline]
fn payload<'p>(ip: &IpPacket, transport: &'p [u8], cut: bool) -> Result<&'p [u8], Malformed> {
    if ip.fragment.is_some_and(|fragment| !fragment.is_first()) {
        return Ok(transport);
    }
    let partial = cut || ip.fragment.is_some();
    match ip.key.protocol {
        IpProtocol::TCP => {
            let length = transport.get(12).map_or(0, |octet| usize::from(octet >> 4) * 4);
            match transport.get(length..).filter(|_| length >= packet::tcp::HEADER_LEN) {
                Some(payload) => Ok(payload),
                None if partial => Ok(&[]),
                None => Err(Malformed::HeaderLength(packet::Layer::Tcp)),
            }
        }
        IpProtocol::UDP => match transport.split_first_chunk::<{ packet::udp::HEADER_LEN }>() {
            // A length that lies, or none (as of segments that a network card cuts later): what IP says.
            Some((&[.., l0, l1, _, _], payload)) => {
                let length = usize::from(u16::from_be_bytes([l0, l1])).checked_sub(packet::udp::HEADER_LEN);
                Ok(length.and_then(|length| payload.get(..length)).unwrap_or(payload))
            }
            None if partial => Ok(&[]),
            None => Err(Malformed::Truncated(packet::Layer::Udp)),
        },
        IpProtocol::SCTP => Ok(transport.get(12..).unwrap_or_default()),
        _ => Ok(transport),
    }
}

/// What is in it, if it is a tunnel's packet.
#[inline]
fn open<'p>(outer: &Prepared<'p>, around: &mut Around, tunnels: Tunnels) -> Option<(Next, &'p [u8])> {
    match outer.ip.key.protocol {
        IpProtocol::TCP => None,
        IpProtocol::UDP => {
            let ports = outer.ip.key.ports?;
            let layer = tunnels::by_port(ports.destination).or_else(|| tunnels::by_port(ports.source))?;
            if !tunnels.has(layer) || outer.ip.fragment.is_some() {
                return None;
            }
            let (id, next, inside) = tunnels::in_udp(layer, outer.payload, outer.missing > 0)?;
            around.enter(layer, id)?;
            Some((next, inside))
        }
        _ => open_rarely(outer, around, tunnels),
    }
}

#[cold]
fn open_rarely<'p>(outer: &Prepared<'p>, around: &mut Around, tunnels: Tunnels) -> Option<(Next, &'p [u8])> {
    if outer.ip.fragment.is_some() {
        return None;
    }
    match outer.ip.key.protocol {
        protocol @ (IPV4_IN_IP | IPV6_IN_IP) if tunnels.has(Layer::IpInIp) => {
            let version = if protocol == IPV4_IN_IP { 4 } else { 6 };
            outer.payload.first().filter(|octet| **octet >> 4 == version)?;
            around.enter(Layer::IpInIp, 0)?;
            Some((Next::Ip, outer.payload))
        }
        IpProtocol::GRE if tunnels.has(Layer::Gre) => {
            let (key, kind, inside) = tunnels::gre(outer.payload)?;
            around.enter(Layer::Gre, key)?;
            let Some((session, inside)) = tunnels::erspan(kind, outer.payload, inside) else {
                return Some((Next::Type(kind), inside));
            };
            around.enter(Layer::Erspan, session)?;
            Some((Next::Ethernet, inside))
        }
        // Version 3, and nothing else (RFC 3378 §3).
        ETHER_IP if tunnels.has(Layer::EtherIp) => {
            let inside = outer.payload.strip_prefix(&[0x30, 0])?;
            around.enter(Layer::EtherIp, 0)?;
            Some((Next::Ethernet, inside))
        }
        // RFC 4023 §3.
        MPLS_IN_IP if tunnels.has(Layer::IpInIp) => {
            around.enter(Layer::IpInIp, 0)?;
            Some((Next::Type(MPLS), outer.payload))
        }
        _ => None,
    }
}
