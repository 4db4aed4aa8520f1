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
