//! What the traffic model must know of sessions and of the network around the UPF.

use crate::imix::Family;
use ipnet::{Ipv4Net, Ipv6Net};
use packet::{MacAddr, Qfi, Teid};
use pfcp::Seid;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One PDU session as both ends agreed on it over N4.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionFacts {
    /// The SMF's SEID.
    pub cp_seid: Seid,
    /// The UPF's SEID.
    pub up_seid: Seid,
    /// Where the gNB sends uplink packets: the UPF's N3 address …
    pub upf_n3: IpAddr,
    /// … and the TEID there.
    pub ul_teid: Teid,
    /// Where the UPF sends downlink packets: the gNB's address …
    pub gnb: IpAddr,
    /// … and the TEID there.
    pub dl_teid: Teid,
    /// The QoS flow of the session's packets.
    pub qfi: Qfi,
    /// The UE's IPv4 address.
    pub ue_ipv4: Option<Ipv4Addr>,
    /// The UE's IPv6 prefix. Our UEs use its address `…::1`.
    pub ue_ipv6: Option<Ipv6Net>,
}

impl SessionFacts {
    /// Whether the session carries this IP version.
    pub const fn carries(&self, family: Family) -> bool {
        match family {
            Family::V4 => self.ue_ipv4.is_some(),
            Family::V6 => self.ue_ipv6.is_some(),
        }
    }

    /// The UE's own IPv6 address: the prefix with interface identifier 1.
    pub fn ue_ipv6_address(&self) -> Option<Ipv6Addr> {
        self.ue_ipv6.map(|net| Ipv6Addr::from_bits(net.network().to_bits() | 1))
    }
}

/// The kinds of PDU session in a population (TS 23.501 §5.6.1; Ethernet and Unstructured are not modelled).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize)]
pub enum PduType {
    /// IPv4 only.
    Ipv4,
    /// IPv6 only: one /64.
    Ipv6,
    /// Both.
    Ipv4v6,
}

impl PduType {
    /// Whether sessions of this type carry this IP version.
    pub const fn has(self, family: Family) -> bool {
        !matches!((self, family), (Self::Ipv4, Family::V6) | (Self::Ipv6, Family::V4))
    }
}

/// How many sessions of each type: weights that repeat over the population.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionMix {
    /// Weight of IPv4 sessions.
    pub ipv4: u32,
    /// Weight of IPv6 sessions.
    pub ipv6: u32,
    /// Weight of IPv4v6 sessions.
    pub ipv4v6: u32,
}

impl SessionMix {
    /// IPv4 only.
    pub const IPV4: Self = Self { ipv4: 1, ipv6: 0, ipv4v6: 0 };
    /// Two IPv4 sessions, one IPv6 and one IPv4v6 of every four.
    pub const BALANCED: Self = Self { ipv4: 2, ipv6: 1, ipv4v6: 1 };

    /// The type of session number `index`. All weights zero count as [`SessionMix::IPV4`].
    pub const fn pdu_type(self, index: u32) -> PduType {
        let period = self.ipv4 as u64 + self.ipv6 as u64 + self.ipv4v6 as u64;
        if period == 0 {
            return PduType::Ipv4;
        }
        let place = index as u64 % period;
        if place < self.ipv4 as u64 {
            PduType::Ipv4
        } else if place < self.ipv4 as u64 + self.ipv6 as u64 {
            PduType::Ipv6
        } else {
            PduType::Ipv4v6
        }
    }
}

/// The addresses that the SMF gives to UEs where it chooses them itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UePools {
    /// The first session has the address after the network address.
    pub ipv4: Ipv4Net,
    /// The first session has the first /64.
    pub ipv6: Ipv6Net,
}

impl UePools {
    /// The IPv4 address of session number `index`; `None` if the pool is too small.
    pub fn ipv4_of(&self, index: u32) -> Option<Ipv4Addr> {
        let address = Ipv4Addr::from_bits(self.ipv4.network().to_bits().checked_add(index.checked_add(1)?)?);
        (self.ipv4.contains(&address) && address != self.ipv4.broadcast()).then_some(address)
    }

    /// The /64 of session number `index`; `None` if the pool is too small.
    pub fn ipv6_of(&self, index: u32) -> Option<Ipv6Net> {
        let prefix = self.ipv6.network().to_bits().checked_add(u128::from(index) << 64)?;
        let prefix = Ipv6Addr::from_bits(prefix);
        self.ipv6.contains(&prefix).then(|| Ipv6Net::new_assert(prefix, 64))
    }
}

impl Default for UePools {
    /// `10.64.0.0/10` and `2001:db8:4000::/34`: 4 million and a billion subscribers.
    fn default() -> Self {
        Self {
            ipv4: Ipv4Net::new_assert(Ipv4Addr::new(10, 64, 0, 0), 10),
            ipv6: Ipv6Net::new_assert(Ipv6Addr::new(0x2001, 0xdb8, 0x4000, 0, 0, 0, 0, 0), 34),
        }
    }
}

/// A gNB on N3.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Gnb {
    /// Its address for GTP-U.
    pub address: IpAddr,
    /// Its MAC address, or that of the router before it.
    pub mac: MacAddr,
}

/// The data network beyond N6: one link-layer station (a router or the only host) and servers behind it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataNetwork {
    /// The MAC address of everything on N6.
    pub mac: MacAddr,
    /// Addresses of the router on the N6 link: what the UPF's routes name as next hop.
    pub gateways: Vec<IpAddr>,
    /// The first server.
    pub server_ipv4: Ipv4Addr,
    /// The first server over IPv6.
    pub server_ipv6: Ipv6Addr,
    /// Number of servers, at consecutive addresses; session `i` talks to server `i % servers`.
    pub servers: u16,
}

impl DataNetwork {
    /// The IPv4 address of the server of session number `index`.
    pub const fn ipv4_of(&self, index: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.server_ipv4.to_bits().wrapping_add(self.offset(index)))
    }

    /// Likewise for IPv6.
    pub const fn ipv6_of(&self, index: u32) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.server_ipv6.to_bits().wrapping_add(self.offset(index) as u128))
    }

    const fn offset(&self, index: u32) -> u32 {
        if self.servers < 2 { 0 } else { index % self.servers as u32 }
    }
}

/// Everything around the UPF that packets' headers show.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Network {
    /// The UPF's MAC address on N3.
    pub upf_n3_mac: MacAddr,
    /// The UPF's MAC address on N6.
    pub upf_n6_mac: MacAddr,
    /// The radio side.
    pub gnbs: Vec<Gnb>,
    /// The other side.
    pub dn: DataNetwork,
}

impl Network {
    /// `gnbs` gNBs at consecutive addresses from `first_gnb` with locally administered MAC addresses, and a data network.
    /// The UPF's MAC addresses stay zero until they are known (from its ports, or from ARP).
    pub fn new(first_gnb: IpAddr, gnbs: u16, dn_gateways: &[IpAddr], servers: (Ipv4Addr, Ipv6Addr)) -> Self {
        let gnb = |index: u16| {
            let [high, low] = index.to_be_bytes();
            let address = match first_gnb {
                IpAddr::V4(first) => {
                    Ipv4Addr::from_bits(first.to_bits().wrapping_add(u32::from(index))).into()
                }
                IpAddr::V6(first) => {
                    Ipv6Addr::from_bits(first.to_bits().wrapping_add(u128::from(index))).into()
                }
            };
            Gnb { address, mac: MacAddr([0x02, 0x67, 0x6e, 0x62, high, low]) }
        };
        Self {
            upf_n3_mac: MacAddr::ZERO,
            upf_n6_mac: MacAddr::ZERO,
            gnbs: (0..gnbs).map(gnb).collect(),
            dn: DataNetwork {
                mac: MacAddr([0x02, 0x64, 0x6e, 0, 0, 1]),
                gateways: dn_gateways.to_vec(),
                server_ipv4: servers.0,
                server_ipv6: servers.1,
                servers: 1,
            },
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn pools_end_where_they_end() {
        let pools = UePools { ipv4: "10.0.0.0/30".parse().unwrap(), ipv6: "2001:db8::/63".parse().unwrap() };
        assert_eq!(pools.ipv4_of(0), Some(Ipv4Addr::new(10, 0, 0, 1)));
        assert_eq!(pools.ipv4_of(1), Some(Ipv4Addr::new(10, 0, 0, 2)));
        assert_eq!(pools.ipv4_of(2), None, "broadcast");
        assert_eq!(pools.ipv4_of(u32::MAX), None);
        assert_eq!(pools.ipv6_of(1), Some("2001:db8:0:1::/64".parse().unwrap()));
        assert_eq!(pools.ipv6_of(2), None);
    }

    #[test]
    fn mixes_repeat() {
        use PduType::*;
        let types: Vec<_> = (0..5).map(|index| SessionMix::BALANCED.pdu_type(index)).collect();
        assert_eq!(types, [Ipv4, Ipv4, Ipv6, Ipv4v6, Ipv4]);
        assert_eq!(SessionMix { ipv4: 0, ipv6: 0, ipv4v6: 0 }.pdu_type(3), Ipv4);
    }
}
