//! What traffic a rule is about: interfaces, tunnels, UE addresses, filters.

use packet::Teid;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Source Interface or Destination Interface (§8.2.2, §8.2.24): the value of the low four bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Interface(pub u8);

impl Interface {
    /// Radio side.
    pub const ACCESS: Self = Self(0);
    /// Data network or next UPF.
    pub const CORE: Self = Self(1);
    /// SGi-LAN/N6-LAN.
    pub const SGI_N6_LAN: Self = Self(2);
    /// CP-function.
    pub const CP_FUNCTION: Self = Self(3);
    /// LI function.
    pub const LI_FUNCTION: Self = Self(4);
    /// 5G VN internal.
    pub const VN_INTERNAL: Self = Self(5);
}

/// F-TEID (§8.2.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FTeid {
    /// The sender chose it.
    Given {
        /// The tunnel.
        teid: Teid,
        /// The address, IPv4.
        ipv4: Option<Ipv4Addr>,
        /// The address, IPv6.
        ipv6: Option<Ipv6Addr>,
    },
    /// CH: the UPF shall choose.
    Choose {
        /// V4: with an IPv4 address. OMEC's SMF sets neither V4 nor V6.
        ipv4: bool,
        /// V6: with an IPv6 address.
        ipv6: bool,
        /// CHID: the same F-TEID for all PDRs with this number.
        id: Option<u8>,
    },
}

/// UE IP Address (§8.2.62).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UeIpAddress {
    /// V4.
    pub ipv4: Option<Ipv4Addr>,
    /// V6.
    pub ipv6: Option<Ipv6Addr>,
    /// S/D: false source, true destination.
    pub is_destination: bool,
    /// IPv6D: the prefix is this many bits shorter than 64.
    pub ipv6_delegation_bits: Option<u8>,
    /// IP6PL: length of the prefix.
    pub ipv6_prefix_length: Option<u8>,
    /// CHV4: the UPF shall choose.
    pub choose_ipv4: bool,
    /// CHV6: the UPF shall choose.
    pub choose_ipv6: bool,
}

/// SDF Filter (§8.2.5). Texts are as they came; `session::sdf` reads them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SdfFilter<'a> {
    /// FD: IPFilterRule.
    pub flow_description: Option<&'a [u8]>,
    /// TTC: ToS or traffic class, and its mask.
    pub tos_traffic_class: Option<[u8; 2]>,
    /// SPI.
    pub security_parameter_index: Option<u32>,
    /// FL: 20 bits.
    pub flow_label: Option<u32>,
    /// BID.
    pub filter_id: Option<u32>,
}

/// PDN Type (§8.2.79).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PdnType(pub u8);

impl PdnType {
    /// IPv4.
    pub const IPV4: Self = Self(1);
    /// IPv6.
    pub const IPV6: Self = Self(2);
    /// IPv4v6.
    pub const IPV4V6: Self = Self(3);
    /// Non-IP.
    pub const NON_IP: Self = Self(4);
    /// Ethernet.
    pub const ETHERNET: Self = Self(5);
}
