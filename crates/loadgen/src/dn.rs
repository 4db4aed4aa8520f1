//! The data network on N6: a router with servers behind it.

use crate::facts::Network;
use crate::station::{Reaction, Site, Station};

/// Everything on N6.
#[derive(Clone, Debug)]
pub struct DataNetworkSite {
    station: Station,
}

impl DataNetworkSite {
    /// The data network of this network: its router's addresses and its servers', all at one MAC address.
    pub fn new(network: &Network) -> Self {
        let dn = &network.dn;
        let servers = (0..u32::from(dn.servers.max(1)))
            .flat_map(|index| [dn.ipv4_of(index).into(), dn.ipv6_of(index).into()]);
        let own = dn.gateways.iter().copied().chain(servers).map(|address| (address, dn.mac));
        Self { station: Station::new(own) }
    }
}

impl Site for DataNetworkSite {
    fn station(&self) -> &Station {
        &self.station
    }

    fn concerns(bytes: &[u8]) -> bool {
        let octet = |at: usize| bytes.get(at).copied();
        match bytes.get(12..14) {
            Some([0x08, 0x00]) => octet(23) == Some(1),
            Some([0x86, 0xdd]) => octet(20) == Some(58),
            _ => true,
        }
    }

    fn hear(&mut self, bytes: &[u8]) -> Reaction {
        self.station.hear(bytes)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use packet::{MacAddr, PacketBuilder};
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    #[test]
    fn router_and_servers_answer_for_their_addresses() {
        let gateway: IpAddr = "198.51.100.1".parse().unwrap();
        let servers = (Ipv4Addr::new(203, 0, 113, 1), "2001:db8:dd::1".parse::<Ipv6Addr>().unwrap());
        let mut network = Network::new(Ipv4Addr::new(192, 0, 2, 10).into(), 1, &[gateway], servers);
        network.dn.servers = 3;
        let mut site = DataNetworkSite::new(&network);
        let upf: IpAddr = "198.51.100.2".parse().unwrap();
        let upf_mac = MacAddr([2, 0, 0, 0, 6, 1]);
        let asker = Station::new([(upf, upf_mac), ("2001:db8::2".parse().unwrap(), upf_mac)]);
        for target in [gateway, "203.0.113.3".parse().unwrap()] {
            let request = asker.solicit(upf, target).unwrap();
            assert!(DataNetworkSite::concerns(&request));
            assert!(matches!(site.hear(&request), Reaction::Reply(_)), "{target}");
        }
        let request =
            asker.solicit("2001:db8::2".parse().unwrap(), "2001:db8:dd::3".parse().unwrap()).unwrap();
        assert!(matches!(site.hear(&request), Reaction::Reply(_)));
        assert_eq!(site.station().neighbour(upf), Some(upf_mac));
        let user = PacketBuilder::new()
            .ethernet(network.dn.mac, upf_mac)
            .ipv4(Ipv4Addr::new(10, 0, 0, 1), servers.0)
            .udp(1, 2)
            .build(b"x");
        assert!(!DataNetworkSite::concerns(&user));
    }
}
