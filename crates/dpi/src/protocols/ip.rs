//! Protocols that IP itself carries: the header says which, by a number that is assigned (IANA, "Protocol Numbers").

use crate::Protocol;

/// The protocol with this number. `payload` is what follows the IP header; where it says what it is, it must say so.
pub fn of_ip(number: u8, payload: &[u8]) -> Option<Protocol> {
    let first = payload.first().copied().unwrap_or_default();
    let protocol = match number {
        1 => Protocol::Icmp,
        2 => Protocol::Igmp,
        4 | 41 => Protocol::IpInIp,
        8 => Protocol::Egp,
        47 => Protocol::Gre,
        50 => Protocol::Esp,
        51 => Protocol::Ah,
        58 => Protocol::Icmpv6,
        // RFC 2328 §A.3.1, RFC 5340 §A.3.1: version and type.
        89 if matches!(first, 2 | 3) && matches!(payload.get(1), Some(1..=5)) => Protocol::Ospf,
        // RFC 7761 §4.9: version 2.
        103 if first >> 4 == 2 => Protocol::Pim,
        // RFC 9568 §5: version 2 or 3, an advertisement.
        112 if matches!(first, 0x21 | 0x31) => Protocol::Vrrp,
        113 => Protocol::Pgm,
        132 => Protocol::Sctp,
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
        assert_eq!(of_ip(250, &[]), None);
    }
}
