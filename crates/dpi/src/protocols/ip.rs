//! Protocols that IP itself carries: the header says which, by a number that is assigned (IANA, "Protocol Numbers").

use crate::Protocol;

/// The protocol with this number. `payload` is what follows the IP header; where it says what it is, it must say so.
pub fn of_ip(number: u8, payload: &[u8]) -> Option<Protocol> {
    let first = payload.first().copied().unwrap_or_default();
    let protocol = match number {
        1 => Protocol::Icmp,
        2 => Protocol::Igmp,
        4 | 41 | 94 => Protocol::IpInIp,
        8 => Protocol::Egp,
        33 if payload.len() >= 12 => Protocol::Dccp,
        // RFC 2205 §3.1.1: version 1.
        46 if first >> 4 == 1 => Protocol::Rsvp,
        47 => Protocol::Gre,
        50 => Protocol::Esp,
        51 => Protocol::Ah,
        58 => Protocol::Icmpv6,
        // RFC 7868 §6.5: version 2.
        88 if first == 2 => Protocol::Eigrp,
        // RFC 2328 §A.3.1, RFC 5340 §A.3.1: version and type.
        89 if matches!(first, 2 | 3) && matches!(payload.get(1), Some(1..=5)) => Protocol::Ospf,
        // RFC 3378 §2: version 3.
        97 if first >> 4 == 3 => Protocol::EtherIp,
        // RFC 7761 §4.9: version 2.
        103 if first >> 4 == 2 => Protocol::Pim,
        // RFC 9568 §5: version 2 or 3, an advertisement.
        112 if matches!(first, 0x21 | 0x31) => Protocol::Vrrp,
        113 => Protocol::Pgm,
        115 => Protocol::L2tp,
        // ISO 10589 §9: what names the protocol within the network layer.
        124 if first == 0x83 => Protocol::IsIs,
        132 => Protocol::Sctp,
        136 if payload.len() >= 8 => Protocol::UdpLite,
        137 => Protocol::MplsInIp,
        _ => return None,
    };
    Some(protocol)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_what_it_is_must_say_so() {
        assert_eq!(of_ip(1, &[8, 0]), Some(Protocol::Icmp));
        assert_eq!(of_ip(89, &[2, 1]), Some(Protocol::Ospf));
        assert_eq!(of_ip(89, &[2, 9]), None);
        assert_eq!(of_ip(89, &[]), None);
        assert_eq!(of_ip(112, &[0x31, 1]), Some(Protocol::Vrrp));
        assert_eq!(of_ip(112, &[0x45, 0]), None);
        assert_eq!(of_ip(88, &[2]), Some(Protocol::Eigrp));
        assert_eq!(of_ip(88, &[1]), None);
        assert_eq!(of_ip(46, &[0x10, 1]), Some(Protocol::Rsvp));
        assert_eq!(of_ip(33, &[0; 11]), None);
        assert_eq!(of_ip(250, &[]), None);
    }
}
