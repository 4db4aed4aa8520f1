//! Reading and rewriting the bytes of an IPv4 packet: one endpoint at a time, all checksums carried along (RFC 1624).
//!
//! `packet::rewrite` does the same step by step for any protocol; what is here does address and port at once for the packets
//! that NAT meets all the time, and looks into the packets that ICMP errors quote (RFC 5508 §4).

use super::plan::{Endpoint, Protocol};
use packet::IpProtocol;
use packet::checksum::{keep_udp_rules, update_u16, update_u32};
use packet::rewrite::Side;

/// Bits of the flags of a TCP header.
pub mod tcp {
    pub const FIN: u8 = 0x01;
    pub const SYN: u8 = 0x02;
    pub const RST: u8 = 0x04;
    pub const ACK: u8 = 0x10;
}

/// What a packet holds, as far as its translation depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// TCP or UDP with ports, or an ICMP query or its reply, whose identifier stands for both.
    Transport,
    /// An ICMP error about a packet.
    Error(Quote),
    /// A fragment that is not the first.
    Later,
    /// Anything else: only a whole address can be translated.
    Other,
}

/// An IPv4 packet, read once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// Octets of the IPv4 header.
    pub length: u8,
    /// The header's protocol.
    pub number: u8,
    /// See [`Content`].
    pub content: Content,
    /// A first fragment: others follow, and have no ports.
    pub fragmented: bool,
    /// Sender; the port is 0 where there is none.
    pub source: Endpoint,
    /// Receiver.
    pub destination: Endpoint,
    /// TCP: the flags. ICMP: the type. UDP: 0.
    pub kind: u8,
    /// TCP: there is data.
    pub data: bool,
}

/// The packet that an ICMP error is about, as far as it is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quote {
    /// Where its IPv4 header is in the whole packet.
    pub at: u16,
    /// Octets of that header.
    pub length: u8,
    /// What it had.
    pub protocol: Protocol,
    /// Its sender.
    pub source: Endpoint,
    /// Its receiver.
    pub destination: Endpoint,
}

impl Head {
    /// The protocol, if it is one that has ports.
    #[inline(always)]
    pub const fn protocol(&self) -> Option<Protocol> {
        Protocol::of(self.number)
    }

    /// The endpoint of a side.
    pub const fn endpoint(&self, side: Side) -> Endpoint {
        match side {
            Side::Source => self.source,
            Side::Destination => self.destination,
        }
    }

    /// Reads a whole packet whose header was checked in parsing. `None`: what it claims to hold isn't there.
    #[inline(always)]
    pub fn read(packet: &[u8]) -> Option<Self> {
        let header = packet.first_chunk::<20>()?;
        let [version, _, _, _, _, _, f0, f1, _, number, _, _, s0, s1, s2, s3, d0, d1, d2, d3] = *header;
        let length = (version & 0x0f) * 4;
        let fragment = u16::from_be_bytes([f0, f1]);
        let mut head = Self {
            length,
            number,
            content: Content::Transport,
            fragmented: fragment & 0x2000 != 0,
            source: Endpoint { address: u32::from_be_bytes([s0, s1, s2, s3]), port: 0 },
            destination: Endpoint { address: u32::from_be_bytes([d0, d1, d2, d3]), port: 0 },
            kind: 0,
            data: false,
        };
        if fragment & 0x1fff != 0 {
            return Some(Self { content: Content::Later, ..head });
        }
        let transport = packet.get(length as usize..)?;
        match Protocol::of(number) {
            Some(Protocol::Tcp) => {
                let fixed = transport.first_chunk::<20>()?;
                head.kind = fixed[13];
                head.data = transport.len() > (fixed[12] >> 4) as usize * 4;
                head.ports(fixed[0], fixed[1], fixed[2], fixed[3]);
            }
            Some(Protocol::Udp) => {
                let fixed = transport.first_chunk::<8>()?;
                head.ports(fixed[0], fixed[1], fixed[2], fixed[3]);
            }
            Some(Protocol::Icmp) => {
                let fixed = transport.first_chunk::<8>()?;
                head.kind = fixed[0];
                match fixed[0] {
                    // Echo and timestamp, requests and replies.
                    0 | 8 | 13 | 14 => head.ports(fixed[4], fixed[5], fixed[4], fixed[5]),
                    3 | 4 | 11 | 12 => {
                        head.content = match Quote::read(packet, length as u16 + 8) {
                            Some(quote) => Content::Error(quote),
                            None => Content::Other,
                        }
                    }
                    _ => head.content = Content::Other,
                }
            }
            None => head.content = Content::Other,
        }
        Some(head)
    }

    #[inline(always)]
    const fn ports(&mut self, s0: u8, s1: u8, d0: u8, d1: u8) {
        self.source.port = u16::from_be_bytes([s0, s1]);
        self.destination.port = u16::from_be_bytes([d0, d1]);
    }

    /// Whether an ICMP message is a query, or one of its replies is on the way back.
    pub const fn asks(&self) -> bool {
        matches!(self.kind, 8 | 13)
    }
}

impl Quote {
    fn read(packet: &[u8], at: u16) -> Option<Self> {
        let quoted = packet.get(at as usize..)?;
        let header = quoted.first_chunk::<20>()?;
        let [version, _, _, _, _, _, f0, f1, _, number, _, _, s0, s1, s2, s3, d0, d1, d2, d3] = *header;
        let length = (version & 0x0f) * 4;
        // Only the beginning of a packet has what tells whose it is.
        if version >> 4 != 4 || length < 20 || u16::from_be_bytes([f0, f1]) & 0x1fff != 0 {
            return None;
        }
        let protocol = Protocol::of(number)?;
        let [p0, p1, q0, q1, i0, i1, ..] = *quoted.get(length as usize..)?.first_chunk::<8>()?;
        let (source, destination) = match protocol {
            Protocol::Icmp if matches!(p0, 0 | 8 | 13 | 14) => ([i0, i1], [i0, i1]),
            Protocol::Icmp => return None,
            Protocol::Tcp | Protocol::Udp => ([p0, p1], [q0, q1]),
        };
        let endpoint = |address: [u8; 4], port| Endpoint {
            address: u32::from_be_bytes(address),
            port: u16::from_be_bytes(port),
        };
        Some(Self {
            at,
            length,
            protocol,
            source: endpoint([s0, s1, s2, s3], source),
            destination: endpoint([d0, d1, d2, d3], destination),
        })
    }
}

#[inline(always)]
fn get16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<2>()).map(|pair| u16::from_be_bytes(*pair))
}

#[inline(always)]
fn put16(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(pair) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<2>()) {
        *pair = value.to_be_bytes();
    }
}

/// Sets one side of a packet: the address, and the port where there is one.
#[inline(always)]
pub fn rewrite(packet: &mut [u8], head: &Head, side: Side, to: Endpoint) {
    let from = head.endpoint(side);
    let Some((header, _)) = packet.split_first_chunk_mut::<20>() else { return };
    let sum = update_u32(u16::from_be_bytes([header[10], header[11]]), from.address, to.address);
    [header[10], header[11]] = sum.to_be_bytes();
    let place = match side {
        Side::Source => header.get_mut(12..16),
        Side::Destination => header.get_mut(16..20),
    };
    if let Some(place) = place {
        place.copy_from_slice(&to.address.to_be_bytes());
    }
    if head.content == Content::Later {
        return;
    }
    let at = head.length as usize;
    let Some(protocol) = head.protocol() else {
        other(packet, head, from.address, to.address);
        return;
    };
    let (port, checksum) = fields(protocol, at, side);
    let Some(before) = get16(packet, checksum) else { return };
    if protocol == Protocol::Icmp {
        if head.content == Content::Transport {
            put16(packet, port, to.port);
            put16(packet, checksum, update_u16(before, from.port, to.port));
        }
        return;
    }
    put16(packet, port, to.port);
    let after = update_u16(update_u32(before, from.address, to.address), from.port, to.port);
    let after = if protocol == Protocol::Udp { keep_udp_rules(before, after) } else { after };
    put16(packet, checksum, after);
}

/// Where the port (or identifier) and the checksum of a transport header at `at` are.
#[inline(always)]
const fn fields(protocol: Protocol, at: usize, side: Side) -> (usize, usize) {
    let port = match side {
        Side::Source => at,
        Side::Destination => at + 2,
    };
    match protocol {
        Protocol::Tcp => (port, at + 16),
        Protocol::Udp => (port, at + 6),
        Protocol::Icmp => (at + 4, at + 2),
    }
}

/// The checksum of a protocol without ports of ours, which may count the address all the same.
fn other(packet: &mut [u8], head: &Head, from: u32, to: u32) {
    if matches!(IpProtocol(head.number), IpProtocol::UDP_LITE | IpProtocol::DCCP) {
        let at = head.length as usize + 6;
        if let Some(before) = get16(packet, at) {
            put16(packet, at, update_u32(before, from, to));
        }
    }
}

/// Sets one side of the packet that an ICMP error quotes: address, port and the quoted checksums, and carries every
/// change into the checksum of the message (RFC 5508 REQ-4, REQ-5).
pub fn rewrite_quote(packet: &mut [u8], head: &Head, quote: &Quote, side: Side, to: Endpoint) {
    rewrite_quoted(packet, Some(head.length as usize + 2), quote, side, to);
}

/// The same for a packet that an error of our own is about to quote (see [`to_be_quoted`]): there is no message yet.
pub fn rewrite_to_be_quoted(packet: &mut [u8], quote: &Quote, side: Side, to: Endpoint) {
    rewrite_quoted(packet, None, quote, side, to);
}

fn rewrite_quoted(packet: &mut [u8], message_sum: Option<usize>, quote: &Quote, side: Side, to: Endpoint) {
    let from = match side {
        Side::Source => quote.source,
        Side::Destination => quote.destination,
    };
    let (ip, transport) = (quote.at as usize, quote.at as usize + quote.length as usize);
    let address = ip + if side == Side::Source { 12 } else { 16 };
    let (port, checksum) = fields(quote.protocol, transport, side);
    set(packet, message_sum, address, (to.address >> 16) as u16);
    set(packet, message_sum, address + 2, to.address as u16);
    if let Some(sum) = get16(packet, ip + 10) {
        set(packet, message_sum, ip + 10, update_u32(sum, from.address, to.address));
    }
    set(packet, message_sum, port, to.port);
    // Often too little is quoted to have it.
    let Some(before) = get16(packet, checksum) else { return };
    let after = update_u16(before, from.port, to.port);
    let after = match quote.protocol {
        Protocol::Icmp => after,
        Protocol::Tcp => update_u32(after, from.address, to.address),
        Protocol::Udp => keep_udp_rules(before, update_u32(after, from.address, to.address)),
    };
    set(packet, message_sum, checksum, after);
}

/// Sets a word of a message, and its checksum to match.
fn set(packet: &mut [u8], sum: Option<usize>, at: usize, new: u16) {
    let Some(old) = get16(packet, at) else { return };
    put16(packet, at, new);
    if let Some(place) = sum
        && let Some(before) = get16(packet, place)
    {
        put16(packet, place, update_u16(before, old, new));
    }
}

/// Reads a packet that is to be quoted in an error of our own.
pub fn to_be_quoted(packet: &[u8]) -> Option<Quote> {
    Quote::read(packet, 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use packet::checksum::{self, Sum};
    use packet::icmpv4::{Echo, Icmpv4Error, emit_error};
    use packet::rewrite::{set_ipv4, set_port};
    use packet::tcp::TcpHeader;
    use packet::{Ipv4View, PacketBuilder};
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    /// Computes every checksum of a packet anew.
    fn is_sound(packet: &[u8]) -> bool {
        let ip = Ipv4View::parse(packet).unwrap();
        let length = ip.payload().len() as u16;
        let pseudo = checksum::pseudo_v4(ip.source(), ip.destination(), ip.protocol(), length);
        let transport = match ip.protocol() {
            IpProtocol::ICMPV4 => Sum::ZERO.bytes(ip.payload()).is_valid(),
            IpProtocol::UDP if ip.payload()[6..8] == [0, 0] => true,
            IpProtocol::TCP | IpProtocol::UDP => pseudo.bytes(ip.payload()).is_valid(),
            _ => true,
        };
        ip.checksum_ok() && transport
    }

    #[derive(Clone, Copy, Debug)]
    enum Kind {
        Tcp,
        Udp,
        Unsummed,
        Echo,
    }

    fn build(kind: Kind, from: Endpoint, to: Endpoint, payload: &[u8]) -> Vec<u8> {
        let builder = PacketBuilder::new().ipv4(from.address.into(), to.address.into());
        match kind {
            Kind::Tcp => builder.tcp(TcpHeader {
                source_port: from.port,
                destination_port: to.port,
                ..TcpHeader::default()
            }),
            Kind::Udp => builder.udp(from.port, to.port),
            Kind::Unsummed => builder.udp_without_checksum(from.port, to.port),
            Kind::Echo => builder.icmpv4_echo(Echo { request: true, identifier: from.port, sequence: 7 }),
        }
        .build(payload)
    }

    fn endpoint() -> impl Strategy<Value = Endpoint> {
        (any::<u32>(), any::<u16>()).prop_map(|(address, port)| Endpoint { address, port })
    }

    fn kind() -> impl Strategy<Value = Kind> {
        prop_oneof![Just(Kind::Tcp), Just(Kind::Udp), Just(Kind::Unsummed), Just(Kind::Echo)]
    }

    proptest! {
        #[test]
        fn one_step_is_as_good_as_two(
            kind in kind(), from in endpoint(), to in endpoint(), new in endpoint(), source in any::<bool>(),
            payload in prop::collection::vec(any::<u8>(), 0..64)
        ) {
            let packet = build(kind, from, to, &payload);
            let side = if source { Side::Source } else { Side::Destination };
            let mut fast = packet.clone();
            let head = Head::read(&fast).unwrap();
            prop_assert_eq!(head.content, Content::Transport);
            rewrite(&mut fast, &head, side, new);
            prop_assert!(is_sound(&fast));
            let mut slow = packet;
            set_ipv4(&mut slow, side, Ipv4Addr::from(new.address)).unwrap();
            set_port(&mut slow, side, new.port).unwrap();
            prop_assert_eq!(fast[20..].len(), slow[20..].len());
            prop_assert_eq!(Head::read(&fast), Head::read(&slow));
            prop_assert!(is_sound(&slow));
        }

        #[test]
        fn quoted_packets_are_rewritten_with_all_their_checksums(
            kind in kind(), from in endpoint(), to in endpoint(), new in endpoint(), source in any::<bool>(),
            payload in prop::collection::vec(any::<u8>(), 0..600)
        ) {
            let offending = build(kind, from, to, &payload);
            let mut error = Vec::new();
            prop_assume!(emit_error(&mut error, [192, 0, 2, 1].into(), Icmpv4Error::TimeExceeded, &offending));
            let head = Head::read(&error).unwrap();
            let Content::Error(quote) = head.content else { panic!("{head:?}") };
            prop_assert_eq!(quote.source, Endpoint { port: quote.source.port, ..from });
            let side = if source { Side::Source } else { Side::Destination };
            rewrite_quote(&mut error, &head, &quote, side, new);
            prop_assert!(is_sound(&error));
            let mut expected = offending;
            let head = Head::read(&expected).unwrap();
            rewrite(&mut expected, &head, side, new);
            let quoted = &error[28..];
            // As many octets as are quoted; checksums of what is quoted in part were taken care of as well.
            prop_assert_eq!(quoted, &expected[..quoted.len()]);
        }

        #[test]
        fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..128), new in endpoint()) {
            if let Some(first) = bytes.first_mut() {
                *first = 0x40 | (*first & 0x0f).max(5);
            }
            if let Some(protocol) = bytes.get_mut(9) {
                *protocol = [1, 6, 17, 136][(*protocol % 4) as usize];
            }
            if let Some(head) = Head::read(&bytes) {
                if let Content::Error(quote) = head.content {
                    rewrite_quote(&mut bytes, &head, &quote, Side::Source, new);
                }
                rewrite(&mut bytes, &head, Side::Destination, new);
            }
        }
    }

    #[test]
    fn fragments_have_no_ports_but_the_first() {
        let packet =
            build(Kind::Udp, Endpoint { address: 1, port: 2 }, Endpoint { address: 3, port: 4 }, &[7; 64]);
        let pieces = crate::state::fragment::cut_ipv4(&packet, 60);
        let heads: Vec<Head> = pieces.iter().map(|piece| Head::read(piece).unwrap()).collect();
        assert_eq!((heads[0].content, heads[0].fragmented), (Content::Transport, true));
        assert_eq!((heads[1].content, heads[1].fragmented), (Content::Later, false));
        let mut later = pieces[1].clone();
        rewrite(&mut later, &heads[1], Side::Source, Endpoint { address: 9, port: 9 });
        assert!(Ipv4View::parse(&later).unwrap().checksum_ok());
        assert_eq!(later[20..], pieces[1][20..]);
    }
}
