//! Service data flow filters: the IPFilterRule text of RFC 6733 §4.3.1 as TS 29.212 §5.4.2 and TS 29.244 §8.2.5 use it.
//!
//! ```text
//! permit out 17 from 10.1.0.0/16 6000-7000,8000 to assigned 5060
//! ```
//!
//! The text is written for the downlink, whichever PDR carries it: "from" is the far end and "to" the UE. [`Flow`] keeps
//! it that way, and [`Flow::compile`] turns it into the PDR's own direction, so that the one description serves both
//! (and a bidirectional filter named by its ID alone needs no second parse).
//!
//! `assigned` is the UE's address. A session's packets carry no other on that side, which the packet path checks for
//! every packet anyway, so `assigned` compiles to "any" and costs nothing, except where framed routes put networks behind
//! the UE. It must not become the address alone: a router solicitation comes from a link-local address, and the filter
//! that Open5GS writes for it says `assigned` (docs/interop.md).

use crate::protocol;
use crate::rules::{Prefix, SdfFilter};
use ipnet::{Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Bounds on what one description may ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SdfLimits {
    /// Octets of text.
    pub text: usize,
    /// Port ranges on one side.
    pub ports: usize,
}

impl Default for SdfLimits {
    fn default() -> Self {
        Self { text: 512, ports: 16 }
    }
}

/// Why a description is not taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SdfError {
    /// Longer than [`SdfLimits::text`], or not text.
    #[error("the flow description is too long or is not text")]
    NotText,
    /// `deny`: a PDR says which packets it wants, the rest are other PDRs' (TS 29.212 §5.4.2 allows only permit).
    #[error("a flow description permits, it can't deny")]
    Deny,
    /// A negated address (RFC 6733 `!`), which TS 29.212 §5.4.2 excludes.
    #[error("negated addresses are not allowed in a flow description")]
    Negated,
    /// A word is missing or is not what the grammar has here.
    #[error("expected {0}")]
    Expected(&'static str),
    /// More port ranges than [`SdfLimits::ports`].
    #[error("too many port ranges")]
    TooManyPorts,
    /// An option (frag, established, setup, ...) that TS 29.212 §5.4.2 excludes.
    #[error("options are not allowed in a flow description")]
    Options,
    /// Source and destination are of different families.
    #[error("source and destination are of different address families")]
    MixedFamilies,
}

/// One side's address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Side {
    /// `any`.
    Any,
    /// `assigned`: the UE's own address.
    Assigned,
    /// An address or prefix.
    Prefix(Prefix),
}

/// Port ranges, inclusive.
pub type Ports = Vec<(u16, u16)>;

/// A flow description, in downlink form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flow {
    /// IP protocol; `None`: any (`ip`).
    pub protocol: Option<u8>,
    /// The far end.
    pub remote: Side,
    /// The far end's ports; empty: any.
    pub remote_ports: Ports,
    /// The UE.
    pub local: Side,
    /// The UE's ports.
    pub local_ports: Ports,
}

const PROTOCOL: SdfError = SdfError::Expected("ip, or a protocol's number or name");

impl Flow {
    /// What an empty description means: everything.
    pub const ANY: Self = Self {
        protocol: None,
        remote: Side::Any,
        remote_ports: Vec::new(),
        local: Side::Any,
        local_ports: Vec::new(),
    };

    /// Reads an IPFilterRule. An empty text is [`Flow::ANY`]: some SMFs send one (docs/interop.md, pfcpsim).
    pub fn parse(text: &[u8], limits: SdfLimits) -> Result<Self, SdfError> {
        if text.len() > limits.text || !text.is_ascii() {
            return Err(SdfError::NotText);
        }
        let text = std::str::from_utf8(text).map_err(|_| SdfError::NotText)?;
        // A C string's end, which some senders count in.
        let text = text.trim_end_matches('\0');
        let mut words = text.split_ascii_whitespace().peekable();
        let Some(action) = words.next() else { return Ok(Self::ANY) };
        match action {
            word if word.eq_ignore_ascii_case("permit") => {}
            word if word.eq_ignore_ascii_case("deny") => return Err(SdfError::Deny),
            _ => return Err(SdfError::Expected("permit")),
        }
        let inbound = match words.next() {
            Some(word) if word.eq_ignore_ascii_case("out") => false,
            Some(word) if word.eq_ignore_ascii_case("in") => true,
            _ => return Err(SdfError::Expected("in or out")),
        };
        let protocol = match words.next() {
            Some(word) if word.eq_ignore_ascii_case("ip") => None,
            // A number, says the standard; operators write names, and SMFs pass them on (docs/interop.md, Open5GS).
            Some(word) => Some(u8::from_str(word).ok().or_else(|| protocol::number(word)).ok_or(PROTOCOL)?),
            None => return Err(PROTOCOL),
        };
        keyword(words.next(), "from")?;
        let from = side(words.next(), "a source address")?;
        let mut from_ports = Vec::new();
        let next = words.next();
        let next = match next {
            Some(word) if !word.eq_ignore_ascii_case("to") => {
                from_ports = ports(word, limits.ports)?;
                words.next()
            }
            other => other,
        };
        keyword(next, "to")?;
        let to = side(words.next(), "a destination address")?;
        let to_ports = match words.next() {
            Some(word) if word.starts_with(|c: char| c.is_ascii_digit()) => ports(word, limits.ports)?,
            Some(_) => return Err(SdfError::Options),
            None => Vec::new(),
        };
        if words.next().is_some() {
            return Err(SdfError::Options);
        }
        if let (Side::Prefix(a), Side::Prefix(b)) = (from, to)
            && std::mem::discriminant(&a) != std::mem::discriminant(&b)
        {
            return Err(SdfError::MixedFamilies);
        }
        // "out" is towards the UE. "in" comes from it, unless `assigned` says on which side the UE really is.
        let swapped = match (from == Side::Assigned, to == Side::Assigned) {
            (true, false) => true,
            (false, true) => false,
            _ => inbound,
        };
        Ok(if swapped {
            Self { protocol, remote: to, remote_ports: to_ports, local: from, local_ports: from_ports }
        } else {
            Self { protocol, remote: from, remote_ports: from_ports, local: to, local_ports: to_ports }
        })
    }

    /// Whether packets of this protocol between these ends are of it. `assigned` takes any address: the packets are the UE's.
    pub fn takes(&self, protocol: u8, remote: (IpAddr, Option<u16>), local: (IpAddr, Option<u16>)) -> bool {
        let end = |side: Side, ports: &Ports, (address, port): (IpAddr, Option<u16>)| {
            let is_there = match side {
                Side::Any | Side::Assigned => true,
                Side::Prefix(prefix) => prefix.contains(address),
            };
            let in_range = |port| ports.iter().any(|(low, high)| (*low..=*high).contains(&port));
            is_there && (ports.is_empty() || port.is_some_and(in_range))
        };
        self.protocol.is_none_or(|own| own == protocol)
            && end(self.remote, &self.remote_ports, remote)
            && end(self.local, &self.local_ports, local)
    }

    /// Writes the filter for packets of one direction. `assigned` lists the addresses that the UE's side must have if
    /// it is [`Side::Assigned`]; empty: any (see the module's text). One filter for each of them that fits.
    pub fn compile(&self, extras: Extras, uplink: bool, assigned: &[Prefix], out: &mut Vec<SdfFilter>) {
        let remote = match self.remote {
            Side::Any | Side::Assigned => None,
            Side::Prefix(prefix) => Some(prefix),
        };
        let mut push = |local: Option<Prefix>| {
            let (source, destination, source_ports, destination_ports) = if uplink {
                (local, remote, &self.local_ports, &self.remote_ports)
            } else {
                (remote, local, &self.remote_ports, &self.local_ports)
            };
            out.push(SdfFilter {
                protocol: self.protocol,
                source,
                destination,
                source_ports: source_ports.as_slice().into(),
                destination_ports: destination_ports.as_slice().into(),
                tos: extras.tos,
                spi: extras.spi,
                flow_label: extras.flow_label,
            });
        };
        match self.local {
            Side::Any => push(None),
            Side::Prefix(prefix) => push(Some(prefix)),
            Side::Assigned if assigned.is_empty() => push(None),
            Side::Assigned => assigned
                .iter()
                .filter(|local| {
                    remote.is_none_or(|r| std::mem::discriminant(&r) == std::mem::discriminant(*local))
                })
                .for_each(|local| push(Some(*local))),
        }
    }
}

/// The parts of an SDF Filter IE beside its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extras {
    /// ToS or Traffic Class value and mask.
    pub tos: Option<(u8, u8)>,
    /// Security Parameter Index.
    pub spi: Option<u32>,
    /// Flow label.
    pub flow_label: Option<u32>,
}

fn keyword(word: Option<&str>, expected: &'static str) -> Result<(), SdfError> {
    match word {
        Some(word) if word.eq_ignore_ascii_case(expected) => Ok(()),
        _ => Err(SdfError::Expected(expected)),
    }
}

fn side(word: Option<&str>, expected: &'static str) -> Result<Side, SdfError> {
    let word = word.ok_or(SdfError::Expected(expected))?;
    if word.starts_with('!') {
        return Err(SdfError::Negated);
    }
    if word.eq_ignore_ascii_case("any") {
        return Ok(Side::Any);
    }
    if word.eq_ignore_ascii_case("assigned") {
        return Ok(Side::Assigned);
    }
    let (address, bits) = match word.split_once('/') {
        Some((address, bits)) => {
            (address, Some(u8::from_str(bits).map_err(|_| SdfError::Expected("a prefix length"))?))
        }
        None => (word, None),
    };
    let prefix = match IpAddr::from_str(address).map_err(|_| SdfError::Expected(expected))? {
        IpAddr::V4(address) => v4(address, bits)?,
        IpAddr::V6(address) => v6(address, bits)?,
    };
    // 0.0.0.0/0 names a family as well as any address: it stays a prefix.
    Ok(Side::Prefix(prefix))
}

fn v4(address: Ipv4Addr, bits: Option<u8>) -> Result<Prefix, SdfError> {
    let net = Ipv4Net::new(address, bits.unwrap_or(32)).map_err(|_| SdfError::Expected("a prefix length"))?;
    Ok(Prefix::V4(net.trunc()))
}

fn v6(address: Ipv6Addr, bits: Option<u8>) -> Result<Prefix, SdfError> {
    let net =
        Ipv6Net::new(address, bits.unwrap_or(128)).map_err(|_| SdfError::Expected("a prefix length"))?;
    Ok(Prefix::V6(net.trunc()))
}

fn ports(word: &str, most: usize) -> Result<Ports, SdfError> {
    const EXPECTED: SdfError = SdfError::Expected("to, or ports such as 80,6000-7000");
    let mut list = Vec::new();
    for part in word.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let low = u16::from_str(low).map_err(|_| EXPECTED)?;
        let high = u16::from_str(high).map_err(|_| EXPECTED)?;
        if high < low {
            return Err(EXPECTED);
        }
        if list.len() == most {
            return Err(SdfError::TooManyPorts);
        }
        list.push((low, high));
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Flow, SdfError> {
        Flow::parse(text.as_bytes(), SdfLimits::default())
    }

    fn v4(text: &str) -> Prefix {
        Prefix::V4(text.parse().unwrap())
    }

    fn compiled(text: &str, uplink: bool, assigned: &[Prefix]) -> Vec<SdfFilter> {
        let mut out = Vec::new();
        parse(text).unwrap().compile(Extras::default(), uplink, assigned, &mut out);
        out
    }

    #[test]
    fn the_whole_grammar() {
        let flow = parse("permit out 17 from 10.1.2.3/16 6000-7000,8000 to assigned 5060").unwrap();
        assert_eq!(
            flow,
            Flow {
                protocol: Some(17),
                remote: Side::Prefix(v4("10.1.0.0/16")),
                remote_ports: vec![(6000, 7000), (8000, 8000)],
                local: Side::Assigned,
                local_ports: vec![(5060, 5060)],
            }
        );
        let six = parse("permit out 58 from ff02::2/128 to assigned").unwrap();
        assert_eq!(six.remote, Side::Prefix(Prefix::V6("ff02::2/128".parse().unwrap())));
        assert_eq!(six.protocol, Some(58));
        let any = parse("permit out ip from any to assigned").unwrap();
        assert_eq!(any, Flow { local: Side::Assigned, ..Flow::ANY });
        assert_eq!(parse("PERMIT OUT IP FROM ANY TO ANY").unwrap(), Flow::ANY);
        assert_eq!(
            parse("permit out ip from 1.2.3.4 to any").unwrap().remote,
            Side::Prefix(v4("1.2.3.4/32"))
        );
        assert_eq!(parse("").unwrap(), Flow::ANY);
        assert_eq!(parse("permit out ip from any to any\0").unwrap(), Flow::ANY);
    }

    #[test]
    fn an_uplink_rule_gets_the_description_swapped() {
        let text = "permit out 6 from 9.9.9.9 80 to assigned 1024-2048";
        let down = compiled(text, false, &[]);
        assert_eq!(down[0].source, Some(v4("9.9.9.9/32")));
        assert_eq!(*down[0].source_ports, [(80, 80)]);
        assert_eq!((down[0].destination, &*down[0].destination_ports), (None, &[(1024, 2048)][..]));
        let up = compiled(text, true, &[]);
        assert_eq!(up[0].destination, Some(v4("9.9.9.9/32")));
        assert_eq!(*up[0].destination_ports, [(80, 80)]);
        assert_eq!((up[0].source, &*up[0].source_ports), (None, &[(1024, 2048)][..]));
    }

    #[test]
    fn permit_in_is_the_same_flow_seen_from_the_ue() {
        assert_eq!(
            parse("permit in 6 from 10.0.0.1 5000 to 9.9.9.9 80"),
            parse("permit out 6 from 9.9.9.9 80 to 10.0.0.1 5000")
        );
        // Where `assigned` is, there is the UE, whatever the direction says.
        assert_eq!(
            parse("permit in ip from 9.9.9.9 to assigned"),
            parse("permit out ip from 9.9.9.9 to assigned")
        );
        assert_eq!(
            parse("permit out ip from assigned to 9.9.9.9"),
            parse("permit out ip from 9.9.9.9 to assigned")
        );
    }

    #[test]
    fn assigned_is_each_address_of_the_ue_where_networks_stand_behind_it() {
        let ue = [v4("10.45.0.2/32"), Prefix::V6("2001:db8::/64".parse().unwrap())];
        let both = compiled("permit out ip from any to assigned", false, &ue);
        assert_eq!(both.iter().map(|f| f.destination).collect::<Vec<_>>(), [Some(ue[0]), Some(ue[1])]);
        let one = compiled("permit out ip from 9.0.0.0/8 to assigned", true, &ue);
        assert_eq!(one.len(), 1);
        assert_eq!((one[0].source, one[0].destination), (Some(ue[0]), Some(v4("9.0.0.0/8"))));
    }

    /// As operators write them, and Open5GS and pfcpsim pass them on.
    #[test]
    fn protocols_have_names() {
        for (name, number) in
            [("udp", 17), ("TCP", 6), ("icmp", 1), ("Ipv6-Icmp", 58), ("sctp", 132), ("ah", 51)]
        {
            let text = |protocol: &str| format!("permit out {protocol} from 10.100.6.2/32 5004 to assigned");
            let named = parse(&text(name)).unwrap();
            assert_eq!(named.protocol, Some(number), "{name}");
            assert_eq!(Ok(named), parse(&text(&number.to_string())));
        }
    }

    #[test]
    fn what_is_outside_the_profile_is_refused_by_name() {
        assert_eq!(parse("deny out ip from any to any"), Err(SdfError::Deny));
        assert_eq!(parse("permit out ip from !1.2.3.4 to any"), Err(SdfError::Negated));
        assert_eq!(parse("permit out ip from any to !assigned"), Err(SdfError::Negated));
        assert_eq!(parse("permit out 6 from any to any established"), Err(SdfError::Options));
        assert_eq!(parse("permit out 6 from any to any 80 frag"), Err(SdfError::Options));
        assert_eq!(parse("permit out 6 from 1.2.3.4 to 2001:db8::1"), Err(SdfError::MixedFamilies));
        assert!(matches!(parse("allow out ip from any to any"), Err(SdfError::Expected("permit"))));
        assert!(matches!(parse("permit both ip from any to any"), Err(SdfError::Expected("in or out"))));
        assert!(matches!(parse("permit out 256 from any to any"), Err(SdfError::Expected(_))));
        assert!(matches!(parse("permit out tcp4 from any to any"), Err(SdfError::Expected(_))));
        assert!(matches!(parse("permit out from any to any"), Err(SdfError::Expected(_))));
        assert!(matches!(parse("permit out ip from 1.2.3.4/33 to any"), Err(SdfError::Expected(_))));
        assert!(matches!(parse("permit out ip from any 70000 to any"), Err(SdfError::Expected(_))));
        assert!(matches!(parse("permit out ip from any 7-6 to any"), Err(SdfError::Expected(_))));
        assert!(matches!(parse("permit out ip from any"), Err(SdfError::Expected("to"))));
        let many = (0..17).map(|p| p.to_string()).collect::<Vec<_>>().join(",");
        assert_eq!(parse(&format!("permit out 6 from any {many} to any")), Err(SdfError::TooManyPorts));
        assert_eq!(parse(&"permit ".repeat(200)), Err(SdfError::NotText));
        assert_eq!(
            Flow::parse(b"permit out ip from \xff to any", SdfLimits::default()),
            Err(SdfError::NotText)
        );
    }

    proptest! {
        #[test]
        fn hostile_text_never_panics(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Flow::parse(&text, SdfLimits::default());
        }

        #[test]
        fn near_misses_never_panic(words in prop::collection::vec(
            prop::sample::select(vec!["permit", "in", "out", "ip", "6", "udp", "from", "any", "assigned", "to", "1.2.3.4/8",
                "::/0", "80,90-95", "!", "-", ",", "/"]), 0..12)) {
            let _ = parse(&words.join(" "));
        }

        #[test]
        fn a_name_means_its_number(number in any::<u8>(), upper in any::<bool>(), a in any::<u32>()) {
            // The names of the neighbours' registry, not ours.
            let names: &[(&str, u8)] = &[("tcp", 6), ("udp", 17), ("icmp", 1), ("gre", 47), ("esp", 50), ("ospf", 89),
                ("ipv6-icmp", 58), ("udplite", 136), ("igmp", 2), ("ipv4", 4), ("ipv6", 41), ("sctp", 132)];
            let (name, meant) = names[usize::from(number) % names.len()];
            let name = if upper { name.to_ascii_uppercase() } else { name.to_owned() };
            let from = Ipv4Addr::from(a);
            let text = |protocol: &str| format!("permit out {protocol} from {from} to assigned 80");
            prop_assert_eq!(parse(&text(&name)), parse(&text(&meant.to_string())));
        }

        #[test]
        fn what_is_written_is_read(protocol in prop::option::of(any::<u8>()), a in any::<u32>(), bits in 0u8..=32,
            ports in prop::collection::vec((any::<u16>(), any::<u16>()), 0..8)) {
            let ports: Ports = ports.into_iter().map(|(a, b)| (a.min(b), a.max(b))).collect();
            let net = Ipv4Net::new(Ipv4Addr::from(a), bits).unwrap().trunc();
            let text = format!(
                "permit out {} from {net} {} to assigned",
                protocol.map_or("ip".into(), |p| p.to_string()),
                ports.iter().map(|(a, b)| format!("{a}-{b}")).collect::<Vec<_>>().join(","),
            );
            let flow = parse(&text).unwrap();
            prop_assert_eq!(flow, Flow { protocol, remote: Side::Prefix(Prefix::V4(net)), remote_ports: ports,
                local: Side::Assigned, local_ports: vec![] });
        }
    }
}
