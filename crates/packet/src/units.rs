//! The standards' scalar values as types, so that a TEID can't be passed where a QFI is meant.

use std::fmt;

/// An IEEE 802 MAC address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// `ff:ff:ff:ff:ff:ff`.
    pub const BROADCAST: Self = Self([0xff; 6]);
    /// `00:00:00:00:00:00`: "not known yet".
    pub const ZERO: Self = Self([0; 6]);

    /// Whether the group bit is set (broadcast included).
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// The lower 48 bits of a number, most significant first.
    pub const fn to_u64(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A GTP-U Tunnel Endpoint Identifier (TS 29.281 §5.1), host byte order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Teid(pub u32);

impl fmt::Display for Teid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

/// A QoS Flow Identifier, 0..=63 (TS 38.415 §5.5.3.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Qfi(u8);

impl Qfi {
    /// Keeps the six bits that a QFI has on the wire.
    pub const fn from_wire(octet: u8) -> Self {
        Self(octet & 0x3f)
    }

    /// From a number; `None` above 63.
    pub const fn new(value: u8) -> Option<Self> {
        if value <= 0x3f { Some(Self(value)) } else { None }
    }

    /// The value, 0..=63.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// A DiffServ code point, 0..=63 (RFC 2474 §3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Dscp(u8);

impl Dscp {
    /// From the six high bits of a ToS or Traffic Class octet.
    pub const fn from_tos(octet: u8) -> Self {
        Self(octet >> 2)
    }

    /// From a number; `None` above 63.
    pub const fn new(value: u8) -> Option<Self> {
        if value <= 0x3f { Some(Self(value)) } else { None }
    }

    /// The ToS octet with ECN zero.
    pub const fn to_tos(self) -> u8 {
        self.0 << 2
    }

    /// The value, 0..=63.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// Not a DSCP: neither a name nor a number up to 63.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownDscp;

impl std::fmt::Display for UnknownDscp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("neither a DSCP's name (EF, AF41, CS6) nor a number up to 63")
    }
}

impl std::error::Error for UnknownDscp {}

/// A number, or one of the names of [`Dscp::NAMED`] in any letter case.
impl std::str::FromStr for Dscp {
    type Err = UnknownDscp;

    fn from_str(text: &str) -> Result<Self, UnknownDscp> {
        let named = Self::NAMED.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        let number = || text.parse().ok().and_then(Self::new);
        named.map(|(_, dscp)| *dscp).or_else(number).ok_or(UnknownDscp)
    }
}

/// Its name, or its number if it has none.
impl std::fmt::Display for Dscp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match Self::NAMED.iter().find(|(_, dscp)| dscp == self) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// An IEEE 802.1Q VLAN identifier, 0..=4095.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct VlanId(u16);

impl VlanId {
    /// Keeps the twelve bits that a VLAN identifier has on the wire.
    pub const fn from_wire(tci: u16) -> Self {
        Self(tci & 0xfff)
    }

    /// From a number; `None` above 4095.
    pub const fn new(value: u16) -> Option<Self> {
        if value <= 0xfff { Some(Self(value)) } else { None }
    }

    /// The value, 0..=4095.
    pub const fn get(self) -> u16 {
        self.0
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_dscp_can_be_written_and_read() {
        for value in 0..64 {
            let dscp = Dscp::new(value).unwrap();
            assert_eq!(dscp.to_string().parse(), Ok(dscp));
            assert_eq!(value.to_string().parse(), Ok(dscp));
        }
        let named = [("EF", 46), ("ef", 46), ("CS6", 48), ("AF11", 10), ("af43", 38), ("CS0", 0)];
        for (name, value) in named {
            assert_eq!(name.parse(), Ok(Dscp::new(value).unwrap()));
        }
        for text in ["", "64", "-1", "AF14", "AF51", "CS8", "E F", "AF1"] {
            assert_eq!(text.parse::<Dscp>(), Err(UnknownDscp));
        }
    }
}
