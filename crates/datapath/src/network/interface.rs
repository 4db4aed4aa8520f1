//! A layer-3 interface: what it is called, carries and owns.

use ipnet::IpNet;
use packet::MacAddr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an interface may carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Roles {
    /// GTP-U with gNBs.
    pub n3: bool,
    /// Plain IP with the data network.
    pub n6: bool,
    /// GTP-U with other UPFs.
    pub n9: bool,
}

impl Roles {
    /// Whether GTP-U may arrive.
    pub const fn tunnels(self) -> bool {
        self.n3 || self.n9
    }
}

/// A layer-3 interface: a port, or one VLAN of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its name in configuration and reports.
    pub name: String,
    /// Index of the port.
    pub port: u16,
    /// 802.1Q VLAN ID (1..=4094); `None`: untagged.
    pub vlan: Option<u16>,
    /// The MAC address we answer to.
    pub mac: MacAddr,
    /// Largest IP packet that may be sent, in bytes.
    pub mtu: u16,
    /// What it may carry.
    pub roles: Roles,
    /// Own addresses, each with the prefix that is on-link there.
    pub addresses: Vec<IpNet>,
    /// Network instances (DNN, or an operator's name for N3) that it serves; for the control side.
    pub network_instances: Vec<String>,
}

impl Interface {
    /// The first own IPv4 address.
    pub fn ipv4(&self) -> Option<Ipv4Addr> {
        self.addresses.iter().find_map(|net| match net {
            IpNet::V4(net) => Some(net.addr()),
            IpNet::V6(_) => None,
        })
    }

    /// The first own IPv6 address beside the link-local one.
    pub fn ipv6(&self) -> Option<Ipv6Addr> {
        self.addresses.iter().find_map(|net| match net {
            IpNet::V6(net) => Some(net.addr()),
            IpNet::V4(_) => None,
        })
    }

    /// The link-local address made from the MAC address (RFC 4291, appendix A).
    pub fn link_local(&self) -> Ipv6Addr {
        let [a, b, c, d, e, f] = self.mac.0;
        Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
    }

    /// Whether the address is this interface's own.
    pub fn owns(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|net| net.addr() == address) || address == IpAddr::V6(self.link_local())
    }
}
