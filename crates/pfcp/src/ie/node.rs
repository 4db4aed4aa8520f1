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
    /// BUCP: buffering in the CP function... see the octet table of §8.2.25; octet 5 bit 1.
    pub const BUCP: u64 = 1;
    /// DDND: buffering parameter "downlink data notification delay".
    pub const DDND: u64 = 1 << 1;
    /// FTUP: F-TEID allocation in the UP function.
    pub const FTUP: u64 = 1 << 4;
    /// EMPU: sending of end marker packets.
    pub const EMPU: u64 = 1 << 8;
    /// VTIME: quota validity time (octet 7).
    pub const VTIME: u64 = 1 << 20;
    /// UEIP: allocation of UE IP addresses (octet 7, bit 3).
    pub const UEIP: u64 = 1 << 18;
    /// MNOP: measurement of number of packets (octet 7, bit 5…; checked against the table by the codec's tests).
    pub const MNOP: u64 = 1 << 19;
}
