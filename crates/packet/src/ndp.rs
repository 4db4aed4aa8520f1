//! Neighbour Discovery for IPv6 (RFC 4861): solicitations and advertisements of neighbours and routers.

use std::net::Ipv6Addr;

use crate::icmpv6::{self, Icmpv6View, kind};
use crate::ipv6::{Ipv6Header, Ipv6View};
use crate::{IpProtocol, Layer, MacAddr, Malformed};

/// All nodes on the link.
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// All routers on the link.
pub const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

const SOURCE_LINK_LAYER: u8 = 1;
const TARGET_LINK_LAYER: u8 = 2;
const PREFIX_INFORMATION: u8 = 3;
const MTU: u8 = 5;

/// The group in which the owner of `address` listens for solicitations (RFC 4291 §2.7.1).
pub const fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b] = address.segments();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | a & 0xff, b)
}

/// The Ethernet address of an IPv6 multicast group (RFC 2464 §7).
pub const fn multicast_mac(group: Ipv6Addr) -> MacAddr {
    let [.., a, b, c, d] = group.octets();
    MacAddr([0x33, 0x33, a, b, c, d])
}

/// A Neighbour Discovery message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// Routers, advertise yourselves!
    RouterSolicitation {
        /// Its options.
        options: Options<'a>,
    },
    /// I am a router, and these are the link's parameters.
    RouterAdvertisement {
        /// The fixed fields.
        router: RouterAdvertisement,
        /// Its options.
        options: Options<'a>,
    },
    /// Who has `target`?
    NeighbourSolicitation {
        /// The address sought.
        target: Ipv6Addr,
        /// Its options.
        options: Options<'a>,
    },
    /// `target` is here.
    NeighbourAdvertisement {
        /// The address and flags.
        neighbour: NeighbourAdvertisement,
        /// Its options.
        options: Options<'a>,
    },
}

/// The fixed fields of a Router Advertisement (RFC 4861 §4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RouterAdvertisement {
    /// Hop limit that hosts should use; 0: unspecified.
    pub hop_limit: u8,
    /// M: addresses are available by DHCPv6.
    pub managed: bool,
    /// O: other configuration is available by DHCPv6.
    pub other: bool,
    /// Seconds for which this is a default router; 0: it is none.
    pub lifetime: u16,
    /// Milliseconds for which a neighbour is reachable after confirmation; 0: unspecified.
    pub reachable: u32,
    /// Milliseconds between solicitations; 0: unspecified.
    pub retransmit: u32,
}

/// The fixed fields of a Neighbour Advertisement (RFC 4861 §4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NeighbourAdvertisement {
    /// The address that is here.
    pub target: Ipv6Addr,
    /// R: the sender is a router.
    pub router: bool,
    /// S: answers a solicitation.
    pub solicited: bool,
    /// O: replaces what caches hold.
    pub replace: bool,
}

/// A Prefix Information option (RFC 4861 §4.6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrefixInformation {
    /// The prefix.
    pub prefix: Ipv6Addr,
    /// Its length in bits.
    pub length: u8,
    /// L: addresses in it are on the link.
    pub on_link: bool,
    /// A: hosts may make addresses from it (SLAAC).
    pub autonomous: bool,
    /// Seconds; all ones: forever.
    pub valid_lifetime: u32,
    /// Seconds; all ones: forever.
    pub preferred_lifetime: u32,
}

/// One option of a Neighbour Discovery message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NdpOption<'a> {
    /// The sender's MAC address.
    SourceLinkLayer(MacAddr),
    /// The target's MAC address.
    TargetLinkLayer(MacAddr),
    /// A prefix of the link.
    Prefix(PrefixInformation),
    /// The link's MTU.
    Mtu(u32),
    /// Another option: its type and its octets behind type and length.
    Other(u8, &'a [u8]),
}

/// The options of a message, already checked for their lengths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Options<'a> {
    /// A zero length or one beyond the message makes the whole message invalid (RFC 4861 §4.6).
    fn check(options: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = options;
        while let Some((_, _, next)) = split_option(rest) {
            rest = next;
        }
        if rest.is_empty() { Ok(Self { rest: options }) } else { Err(Malformed::HeaderLength(Layer::Ndp)) }
    }

    /// The MAC address in a Source Link-Layer Address option.
    pub fn source_mac(&self) -> Option<MacAddr> {
        self.clone().find_map(|o| if let NdpOption::SourceLinkLayer(mac) = o { Some(mac) } else { None })
    }

    /// The MAC address in a Target Link-Layer Address option.
    pub fn target_mac(&self) -> Option<MacAddr> {
        self.clone().find_map(|o| if let NdpOption::TargetLinkLayer(mac) = o { Some(mac) } else { None })
    }
}

/// Type, value and what follows.
fn split_option(data: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let [kind, units @ 1..=255, ..] = data else { return None };
    let (this, rest) = data.split_at_checked(usize::from(*units) * 8)?;
    Some((*kind, this.get(2..)?, rest))
}

impl<'a> Iterator for Options<'a> {
    type Item = NdpOption<'a>;

    fn next(&mut self) -> Option<NdpOption<'a>> {
        let (kind, value, rest) = split_option(self.rest)?;
        self.rest = rest;
        Some(match (kind, value) {
            (SOURCE_LINK_LAYER, &[a, b, c, d, e, f]) => {
                NdpOption::SourceLinkLayer(MacAddr([a, b, c, d, e, f]))
            }
            (TARGET_LINK_LAYER, &[a, b, c, d, e, f]) => {
                NdpOption::TargetLinkLayer(MacAddr([a, b, c, d, e, f]))
            }
            (MTU, &[_, _, a, b, c, d]) => NdpOption::Mtu(u32::from_be_bytes([a, b, c, d])),
            (
                PREFIX_INFORMATION,
                &[length, flags, v0, v1, v2, v3, p0, p1, p2, p3, _, _, _, _, ref prefix @ ..],
            ) => match <[u8; 16]>::try_from(prefix) {
                Ok(prefix) => NdpOption::Prefix(PrefixInformation {
                    prefix: prefix.into(),
                    length,
                    on_link: flags & 0x80 != 0,
                    autonomous: flags & 0x40 != 0,
                    valid_lifetime: u32::from_be_bytes([v0, v1, v2, v3]),
                    preferred_lifetime: u32::from_be_bytes([p0, p1, p2, p3]),
                }),
                Err(_) => NdpOption::Other(kind, value),
            },
            _ => NdpOption::Other(kind, value),
        })
    }
}

/// Reads a Neighbour Discovery message and checks what RFC 4861 §6.1 and §7.1 demand: hop limit 255 (so that nobody
/// off the link can have sent it), code 0, checksum, lengths. `Ok(None)`: another ICMPv6 message.
pub fn parse<'a>(packet: &Ipv6View<'a>, icmp: &Icmpv6View<'a>) -> Result<Option<Message<'a>>, Malformed> {
    const BAD: Malformed = Malformed::Field(Layer::Ndp);
    const CUT: Malformed = Malformed::Truncated(Layer::Ndp);
    if !matches!(icmp.kind(), kind::ROUTER_SOLICITATION..=kind::NEIGHBOUR_ADVERTISEMENT) {
        return Ok(None);
    }
    if packet.hop_limit() != 255 || icmp.code() != 0 || !icmp.checksum_ok(packet) {
        return Err(BAD);
    }
    let body = icmp.body();
    let with_target = || -> Result<(Ipv6Addr, Options<'a>), Malformed> {
        let (target, options) = body.split_first_chunk::<16>().ok_or(CUT)?;
        let target = Ipv6Addr::from(*target);
        if target.is_multicast() { Err(BAD) } else { Ok((target, Options::check(options)?)) }
    };
    Ok(Some(match icmp.kind() {
        kind::ROUTER_SOLICITATION => Message::RouterSolicitation { options: Options::check(body)? },
        kind::ROUTER_ADVERTISEMENT => {
            let (times, options) = body.split_first_chunk::<8>().ok_or(CUT)?;
            let [hop_limit, flags, l0, l1] = icmp.word().to_be_bytes();
            let [r0, r1, r2, r3, t0, t1, t2, t3] = *times;
            let router = RouterAdvertisement {
                hop_limit,
                managed: flags & 0x80 != 0,
                other: flags & 0x40 != 0,
                lifetime: u16::from_be_bytes([l0, l1]),
                reachable: u32::from_be_bytes([r0, r1, r2, r3]),
                retransmit: u32::from_be_bytes([t0, t1, t2, t3]),
            };
            Message::RouterAdvertisement { router, options: Options::check(options)? }
        }
        kind::NEIGHBOUR_SOLICITATION => {
            let (target, options) = with_target()?;
            Message::NeighbourSolicitation { target, options }
        }
        _ => {
            let (target, options) = with_target()?;
            let flags = icmp.word();
            let neighbour = NeighbourAdvertisement {
                target,
                router: flags & 1 << 31 != 0,
                solicited: flags & 1 << 30 != 0,
                replace: flags & 1 << 29 != 0,
            };
            Message::NeighbourAdvertisement { neighbour, options }
        }
    }))
}

/// Everything in this protocol is sent with hop limit 255.
fn header(source: Ipv6Addr, destination: Ipv6Addr) -> Ipv6Header {
    Ipv6Header {
        source,
        destination,
        next_header: IpProtocol::ICMPV6,
        hop_limit: 255,
        ..Ipv6Header::default()
    }
}

fn push_link_layer(body: &mut Vec<u8>, option: u8, mac: MacAddr) {
    body.extend([option, 1]);
    body.extend(mac.0);
}

/// Appends the IPv6 packet that asks who has `target`, to its solicited-node group. The frame goes to
/// [`multicast_mac`] of that group.
pub fn emit_neighbour_solicitation(out: &mut Vec<u8>, source: Ipv6Addr, mac: MacAddr, target: Ipv6Addr) {
    solicit(out, source, mac, target, solicited_node(target));
}

/// Appends the IPv6 packet that asks `target` alone whether it is still there (RFC 4861 §7.3.3).
pub fn emit_neighbour_probe(out: &mut Vec<u8>, source: Ipv6Addr, mac: MacAddr, target: Ipv6Addr) {
    solicit(out, source, mac, target, target);
}

fn solicit(out: &mut Vec<u8>, source: Ipv6Addr, mac: MacAddr, target: Ipv6Addr, destination: Ipv6Addr) {
    let mut body = Vec::with_capacity(24);
    body.extend(target.octets());
    if !source.is_unspecified() {
        // Duplicate address detection has no source and must not tell a MAC address (RFC 4861 §4.3).
        push_link_layer(&mut body, SOURCE_LINK_LAYER, mac);
    }
    let ip = header(source, destination);
    icmpv6::emit(out, ip, [kind::NEIGHBOUR_SOLICITATION, 0], 0, &body);
}

/// Appends the IPv6 packet that tells `destination` that `neighbour.target` is at `mac`.
pub fn emit_neighbour_advertisement(
    out: &mut Vec<u8>,
    destination: Ipv6Addr,
    mac: MacAddr,
    neighbour: &NeighbourAdvertisement,
) {
    let mut body = Vec::with_capacity(24);
    body.extend(neighbour.target.octets());
    push_link_layer(&mut body, TARGET_LINK_LAYER, mac);
    let flags = u32::from(neighbour.router) << 31
        | u32::from(neighbour.solicited) << 30
        | u32::from(neighbour.replace) << 29;
    let ip = header(neighbour.target, destination);
    icmpv6::emit(out, ip, [kind::NEIGHBOUR_ADVERTISEMENT, 0], flags, &body);
}

/// Appends the IPv6 packet by which a host asks all routers to advertise themselves; on a link without MAC addresses
/// (a PDU session) `mac` is `None`.
pub fn emit_router_solicitation(out: &mut Vec<u8>, source: Ipv6Addr, mac: Option<MacAddr>) {
    let mut body = Vec::with_capacity(8);
    if let Some(mac) = mac.filter(|_| !source.is_unspecified()) {
        push_link_layer(&mut body, SOURCE_LINK_LAYER, mac);
    }
    icmpv6::emit(out, header(source, ALL_ROUTERS), [kind::ROUTER_SOLICITATION, 0], 0, &body);
}

/// Appends the IPv6 packet by which a router advertises itself and the link's prefixes.
pub fn emit_router_advertisement(
    out: &mut Vec<u8>,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    router: &RouterAdvertisement,
    mac: Option<MacAddr>,
    mtu: Option<u32>,
    prefixes: &[PrefixInformation],
) {
    let mut body = Vec::with_capacity(24 + 32 * prefixes.len());
    body.extend(router.reachable.to_be_bytes());
    body.extend(router.retransmit.to_be_bytes());
    if let Some(mac) = mac {
        push_link_layer(&mut body, SOURCE_LINK_LAYER, mac);
    }
    if let Some(mtu) = mtu {
        body.extend([MTU, 1, 0, 0]);
        body.extend(mtu.to_be_bytes());
    }
    for p in prefixes {
        let flags = u8::from(p.on_link) << 7 | u8::from(p.autonomous) << 6;
        body.extend([PREFIX_INFORMATION, 4, p.length, flags]);
        body.extend(p.valid_lifetime.to_be_bytes());
        body.extend(p.preferred_lifetime.to_be_bytes());
        body.extend([0; 4]);
        body.extend(p.prefix.octets());
    }
    let flags = u8::from(router.managed) << 7 | u8::from(router.other) << 6;
    let [l0, l1] = router.lifetime.to_be_bytes();
    let word = u32::from_be_bytes([router.hop_limit, flags, l0, l1]);
    icmpv6::emit(out, header(source, destination), [kind::ROUTER_ADVERTISEMENT, 0], word, &body);
}
