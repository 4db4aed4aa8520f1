//! Which rule matches? PDRs in order of precedence, filters within a PDR in any order (TS 29.244 §5.2.1).

use crate::Reason;
use crate::meta::{Meta, NO_QFI};
use crate::state::conversation::Known;
use crate::state::fragment::FragmentFlows;
use crate::state::rules::{candidates, may_match, may_stay_on_link, only_link_local};
use packet::{Fragment, IpPacket, IpProtocol};
use session::rules::{Pdr, Rules, SdfFilter};
use tables::Nanos;

/// What a filter says of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Taken {
    Yes,
    No,
    /// The filter asks for ports, or a security parameter index, that only the first fragment has.
    Unknown,
}

/// What classification says of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Match {
    /// Index of the rule that matches, or why none does.
    pub rule: Result<u16, Reason>,
    /// It is this one so far: when more is known of the packet's application, it may be another one.
    pub open: bool,
}

/// The rule that matches `packet` (the UE's, whole). `tunnel`: the TEID that it came with. `known`: of its application. `None`: somebody can be asked
/// about that; where the answer matters, nobody goes beyond the first rule that depends on it, and there is no rule yet.
pub(crate) fn classify(
    rules: &Rules,
    tunnel: Option<u32>,
    meta: &Meta,
    packet: &[u8],
    known: Option<Known>,
    flows: &mut FragmentFlows,
    now: Nanos,
) -> Match {
    let mut open = false;
    let rule = find(rules, tunnel, meta, packet, (known, &mut open), flows, now);
    Match { rule, open }
}

fn find(
    rules: &Rules,
    tunnel: Option<u32>,
    meta: &Meta,
    packet: &[u8],
    asks: (Option<Known>, &mut bool),
    flows: &mut FragmentFlows,
    now: Nanos,
) -> Result<u16, Reason> {
    // Where there are many filters, most are left out without being asked. What can't be read is refused by the first that asks.
    if let Some(classifier) = &rules.classifier
        && let Ok(ip) = IpPacket::parse(packet)
        && ip.fragment.is_none_or(Fragment::is_first)
    {
        let narrowed = classifier.candidates(&rules.pdrs, &ip);
        let possible = narrowed.filter(|(_, pdr, _)| may_match(pdr, tunnel));
        return first_match(rules, possible, Some(ip), meta, packet, asks, flows, now);
    }
    let all = candidates(rules, tunnel).map(|(index, pdr)| (index, pdr, &*pdr.filters));
    first_match(rules, all, None, meta, packet, asks, flows, now)
}

/// The first of these rules that matches, by these of its filters. `parsed`: the packet's headers, if they were read already. `open`: see
/// [`Match::open`].
#[expect(clippy::too_many_arguments, reason = "the rules, the packet, and what is known of it")]
fn first_match<'r>(
    rules: &Rules,
    possible: impl Iterator<Item = (u16, &'r Pdr, &'r [SdfFilter])>,
    mut parsed: Option<IpPacket>,
    meta: &Meta,
    packet: &[u8],
    (known, open): (Option<Known>, &mut bool),
    flows: &mut FragmentFlows,
    now: Nanos,
) -> Result<u16, Reason> {
    let mut remembered = None;
    for (index, pdr, filters) in possible {
        if !pdr.qfis.is_empty() && (meta.qfi == NO_QFI || !pdr.qfis.iter().any(|qfi| qfi.get() == meta.qfi)) {
            continue;
        }
        // As records have it: what may leave the link is not read for the sake of a rule that is about the link.
        if only_link_local(pdr) && !may_stay_on_link(meta, packet) {
            continue;
        }
        if !pdr.filters.is_empty() {
            // Read only if a filter asks for it: a rule without filters takes any packet, well-formed or not.
            let ip = if let Some(ip) = parsed {
                ip
            } else {
                let ip = IpPacket::parse(packet).map_err(|_| Reason::Malformed)?;
                parsed = Some(ip);
                if ip.fragment.is_some_and(|fragment| !fragment.is_first()) {
                    let found = flows.recall(&ip, now);
                    remembered = found.filter(|(owner, _)| *owner == rules.seid).map(|(_, pdr)| pdr);
                }
                ip
            };
            if let Some(id) = remembered {
                if pdr.id == id {
                    return Ok(index);
                }
                continue;
            }
            match matches(filters, &ip, packet) {
                Taken::Yes => {}
                Taken::No => continue,
                Taken::Unknown => return Err(Reason::FragmentWithoutFirst),
            }
        } else if remembered.is_some_and(|id| id != pdr.id) {
            continue;
        }
        if let Some(application) = pdr.application {
            let Some(known) = known else {
                *open = true;
                return Err(Reason::NoRule);
            };
            *open |= known.open;
            if !known.of.has(application) {
                continue;
            }
        }
        if let Some(ip) = parsed
            && ip.fragment.is_some_and(|fragment| fragment.is_first() && fragment.more)
        {
            flows.remember(&ip, (rules.seid, pdr.id), now);
        }
        return Ok(index);
    }
    Err(Reason::NoRule)
}

/// Whether any of these filters takes a packet. A later fragment, which has no ports, is taken by the rest of a filter.
pub fn selects(filters: &[SdfFilter], ip: &IpPacket, packet: &[u8]) -> bool {
    filters.iter().any(|filter| matches_filter(filter, ip, packet) != Taken::No)
}

/// Any filter is enough.
fn matches(filters: &[SdfFilter], ip: &IpPacket, packet: &[u8]) -> Taken {
    let mut best = Taken::No;
    for filter in filters {
        match matches_filter(filter, ip, packet) {
            Taken::Yes => return Taken::Yes,
            Taken::Unknown => best = Taken::Unknown,
            Taken::No => {}
        }
    }
    best
}

fn matches_filter(filter: &SdfFilter, ip: &IpPacket, packet: &[u8]) -> Taken {
    let plain = filter.protocol.is_none_or(|protocol| protocol == ip.key.protocol.0)
        && filter.source.is_none_or(|prefix| prefix.contains(ip.key.source))
        && filter.destination.is_none_or(|prefix| prefix.contains(ip.key.destination))
        && filter.tos.is_none_or(|(value, mask)| ip.tos & mask == value & mask)
        && filter.flow_label.is_none_or(|label| ip.key.source.is_ipv6() && label == ip.flow_label);
    if !plain {
        return Taken::No;
    }
    let ports = !filter.source_ports.is_empty() || !filter.destination_ports.is_empty();
    if !ports && filter.spi.is_none() {
        return Taken::Yes;
    }
    if ip.fragment.is_some_and(|fragment| !fragment.is_first()) {
        return Taken::Unknown;
    }
    let in_ranges = |ranges: &[(u16, u16)], port: u16| {
        ranges.is_empty() || ranges.iter().any(|(low, high)| (*low..=*high).contains(&port))
    };
    let ports_match = !ports
        || ip.key.ports.is_some_and(|p| {
            in_ranges(&filter.source_ports, p.source) && in_ranges(&filter.destination_ports, p.destination)
        });
    let spi_matches = filter.spi.is_none_or(|spi| security_parameter_index(ip, packet) == Some(spi));
    if ports_match && spi_matches { Taken::Yes } else { Taken::No }
}

/// The SPI of ESP (RFC 4303 §2) or AH (RFC 4302 §2).
fn security_parameter_index(ip: &IpPacket, packet: &[u8]) -> Option<u32> {
    let transport = packet.get(ip.transport_offset as usize..)?;
    let bytes = match ip.key.protocol {
        IpProtocol::ESP => transport.first_chunk::<4>()?,
        IpProtocol::AH => transport.get(4..)?.first_chunk::<4>()?,
        _ => return None,
    };
    Some(u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use packet::PacketBuilder;
    use session::rules::Prefix;

    fn check(filter: &SdfFilter, packet: &[u8]) -> Taken {
        matches_filter(filter, &IpPacket::parse(packet).unwrap(), packet)
    }

    #[test]
    fn every_field_counts() {
        let udp = PacketBuilder::new()
            .ipv4([198, 51, 100, 7].into(), [10, 45, 0, 2].into())
            .udp(53, 40000)
            .build(b"answer");
        let prefix = |text: &str| Some(Prefix::V4(text.parse().unwrap()));
        assert_eq!(check(&SdfFilter::default(), &udp), Taken::Yes);
        assert_eq!(check(&SdfFilter { protocol: Some(17), ..SdfFilter::default() }, &udp), Taken::Yes);
        assert_eq!(check(&SdfFilter { protocol: Some(6), ..SdfFilter::default() }, &udp), Taken::No);
        assert_eq!(
            check(&SdfFilter { source: prefix("198.51.100.0/24"), ..SdfFilter::default() }, &udp),
            Taken::Yes
        );
        assert_eq!(
            check(&SdfFilter { destination: prefix("198.51.100.0/24"), ..SdfFilter::default() }, &udp),
            Taken::No
        );
        let v6 = Prefix::V6("::/0".parse().unwrap());
        assert_eq!(check(&SdfFilter { source: Some(v6), ..SdfFilter::default() }, &udp), Taken::No);
        let ports = SdfFilter { source_ports: [(1, 52), (53, 60)].into(), ..SdfFilter::default() };
        assert_eq!(check(&ports, &udp), Taken::Yes);
        assert_eq!(
            check(&SdfFilter { destination_ports: [(1, 52)].into(), ..SdfFilter::default() }, &udp),
            Taken::No
        );
        assert_eq!(check(&SdfFilter { tos: Some((0xb8, 0xfc)), ..SdfFilter::default() }, &udp), Taken::No);
        assert_eq!(check(&SdfFilter { flow_label: Some(0), ..SdfFilter::default() }, &udp), Taken::No);
        assert_eq!(check(&SdfFilter { spi: Some(1), ..SdfFilter::default() }, &udp), Taken::No);
    }

    #[test]
    fn esp_has_an_index_instead_of_ports() {
        let header = packet::ipv4::Ipv4Header {
            source: [198, 51, 100, 7].into(),
            destination: [10, 45, 0, 2].into(),
            protocol: IpProtocol::ESP,
            ..Default::default()
        };
        let esp = PacketBuilder::new().ipv4_header(header).build(&[0, 0, 0x12, 0x34, 0, 0, 0, 1]);
        assert_eq!(check(&SdfFilter { spi: Some(0x1234), ..SdfFilter::default() }, &esp), Taken::Yes);
        assert_eq!(check(&SdfFilter { spi: Some(0x1235), ..SdfFilter::default() }, &esp), Taken::No);
        assert_eq!(
            check(&SdfFilter { source_ports: [(0, 65535)].into(), ..SdfFilter::default() }, &esp),
            Taken::No
        );
    }
}
