//! Who speaks: node and session identities, features, restart times.

use crate::ids::Seid;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Node ID (§8.2.38).
#[derive(Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum NodeId {
    /// Type 0 or 1.
    Ip(IpAddr),
    /// Type 2; text form, labels joined by dots.
    Fqdn(Box<str>),
}

/// F-SEID (§8.2.37).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FSeid {
    /// The session at its owner.
    pub seid: Seid,
    /// The owner's address.
    pub ipv4: Option<Ipv4Addr>,
    /// The owner's address.
    pub ipv6: Option<Ipv6Addr>,
}

/// Recovery Time Stamp (§8.2.65): NTP seconds since 1900 (RFC 5905 era 0).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct RecoveryTimeStamp(pub u32);

/// UP Function Features (§8.2.25): bit n of octet 5+k is bit 8k+n here. Up to eight octets are kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct UpFunctionFeatures(pub u64);

impl UpFunctionFeatures {
    /// BUCP: downlink buffering in the CP function (octet 5, bit 1).
    pub const BUCP: u64 = 1;
    /// DDND: the buffering parameter "downlink data notification delay" (octet 5, bit 2).
    pub const DDND: u64 = 1 << 1;
    /// DLBD: the buffering parameter "DL buffering duration" (octet 5, bit 3).
    pub const DLBD: u64 = 1 << 2;
    /// FTUP: F-TEID allocation in the UP function (octet 5, bit 5).
    pub const FTUP: u64 = 1 << 4;
    /// PFDM: PFD management (octet 5, bit 6).
    pub const PFDM: u64 = 1 << 5;
    /// EMPU: sending of end marker packets (octet 6, bit 1).
    pub const EMPU: u64 = 1 << 8;
    /// PDIU: optimised signalling of PDI, with traffic endpoints (octet 6, bit 2).
    pub const PDIU: u64 = 1 << 9;
    /// UDBC: UL/DL buffering control (octet 6, bit 3).
    pub const UDBC: u64 = 1 << 10;
    /// FRRT: framed routing (octet 6, bit 6).
    pub const FRRT: u64 = 1 << 13;
    /// UEIP: allocation of UE IP addresses (octet 7, bit 3).
    pub const UEIP: u64 = 1 << 18;
    /// SSET: sessions controlled by an SMF set (octet 7, bit 4).
    pub const SSET: u64 = 1 << 19;
    /// MNOP: measurement of number of packets (octet 7, bit 5).
    pub const MNOP: u64 = 1 << 20;
    /// BUNDL: several messages in one datagram (octet 7, bit 7).
    pub const BUNDL: u64 = 1 << 22;
    /// VTIME: quota validity time (octet 8, bit 3).
    pub const VTIME: u64 = 1 << 26;
    /// IP6PL: UE IPv6 prefixes of other lengths than 64 (octet 8, bit 6).
    pub const IP6PL: u64 = 1 << 29;

    /// Whether all of these bits are set.
    pub const fn has(self, bits: u64) -> bool {
        self.0 & bits == bits
    }
}

/// CP Function Features (§8.2.58): bit n of octet 5+k is bit 8k+n here. Up to eight octets are kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CpFunctionFeatures(pub u64);
