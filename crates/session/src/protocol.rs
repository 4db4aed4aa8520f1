//! Names of IP protocols.
//!
//! An IPFilterRule has a protocol's number (RFC 6733 §4.3.1), but people write names, and SMFs pass on what people write:
//! Open5GS copies the text of a PCC rule as the operator typed it. The names are the keywords of IANA's registry
//! "Assigned Internet Protocol Numbers", with the aliases that `/etc/protocols` has for them; those of protocols that no
//! packet of a UE is of today are left out.

/// Keywords in lower case, in order of number; a number's aliases follow its keyword.
const NAMES: [(&str, u8); 62] = [
    ("hopopt", 0),
    ("icmp", 1),
    ("igmp", 2),
    ("ggp", 3),
    ("ipv4", 4),
    ("ipencap", 4),
    ("st", 5),
    ("tcp", 6),
    ("cbt", 7),
    ("egp", 8),
    ("igp", 9),
    ("pup", 12),
    ("udp", 17),
    ("hmp", 20),
    ("xns-idp", 22),
    ("rdp", 27),
    ("irtp", 28),
    ("iso-tp4", 29),
    ("dccp", 33),
    ("idpr", 35),
    ("xtp", 36),
    ("ddp", 37),
    ("idpr-cmtp", 38),
    ("ipv6", 41),
    ("sdrp", 42),
    ("ipv6-route", 43),
    ("ipv6-frag", 44),
    ("idrp", 45),
    ("rsvp", 46),
    ("gre", 47),
    ("dsr", 48),
    ("esp", 50),
    ("ah", 51),
    ("narp", 54),
    ("mobile", 55),
    ("min-ipv4", 55),
    ("skip", 57),
    ("ipv6-icmp", 58),
    ("icmpv6", 58),
    ("icmp6", 58),
    ("ipv6-nonxt", 59),
    ("ipv6-opts", 60),
    ("eigrp", 88),
    ("ospfigp", 89),
    ("ospf", 89),
    ("ipip", 94),
    ("etherip", 97),
    ("encap", 98),
    ("pim", 103),
    ("ipcomp", 108),
    ("vrrp", 112),
    ("l2tp", 115),
    ("sctp", 132),
    ("fc", 133),
    ("mobility-header", 135),
    ("udplite", 136),
    ("mpls-in-ip", 137),
    ("manet", 138),
    ("hip", 139),
    ("shim6", 140),
    ("wesp", 141),
    ("rohc", 142),
];

/// The number of a protocol that goes by this name, in upper or lower case.
pub fn number(name: &str) -> Option<u8> {
    NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, number)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lower_case_in_order_and_unambiguous() {
        assert!(NAMES.is_sorted_by_key(|(_, number)| *number));
        for (at, (name, number)) in NAMES.iter().enumerate() {
            assert!(
                !name.is_empty()
                    && name.bytes().all(|b| b.is_ascii_lowercase() || b"0123456789-".contains(&b))
            );
            assert!(name.starts_with(|c: char| c.is_ascii_alphabetic()), "{name} could be read as a number");
            assert_eq!(NAMES.iter().position(|(other, _)| other == name), Some(at), "{name} stands twice");
            assert_eq!(super::number(&name.to_ascii_uppercase()), Some(*number));
        }
        assert!(
            ["ip", "any", "assigned", "from", "to", "", "tcp6", "999"]
                .iter()
                .all(|word| super::number(word).is_none())
        );
    }

    #[test]
    fn names_mean_what_iana_assigned() {
        let assigned = [
            ("ICMP", 1),
            ("tcp", 6),
            ("Udp", 17),
            ("ESP", 50),
            ("IPv6-ICMP", 58),
            ("OSPFIGP", 89),
            ("SCTP", 132),
        ];
        for (name, number) in assigned {
            assert_eq!(super::number(name), Some(number));
        }
    }
}
