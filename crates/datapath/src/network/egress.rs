//! The way out: layer-2 headers made in advance, for next hops and for the far ends of tunnels.

use packet::MacAddr;
use std::net::IpAddr;

use crate::network::interface::Interface;

/// How to reach one neighbour: everything that goes in front of an IP packet, and where it leaves.
#[derive(Clone, Copy, Debug)]
pub struct Egress {
    /// Index of the interface.
    pub interface: u16,
    /// Its port.
    pub port: u16,
    /// Its MTU.
    pub mtu: u16,
    /// Length of the layer-2 header: 14, or 18 with a VLAN tag.
    pub l2: u8,
    /// Whether the neighbour's MAC address is known. If not, the header has zeros in its place, and the complete
    /// frame waits at the neighbour.
    pub resolved: bool,
    /// The neighbour.
    pub target: IpAddr,
    /// Layer-2 header for IPv4; [`Egress::header`] puts the EtherType right.
    header: [u8; 18],
}

impl Egress {
    /// The way to `target` on an interface's link.
    pub fn new(index: u16, interface: &Interface, target: IpAddr, mac: Option<[u8; 6]>) -> Self {
        let mut header = [0; 18];
        let source = interface.mac.0;
        let tag = interface.vlan.map(u16::to_be_bytes);
        let bytes: Vec<u8> = match tag {
            Some([v0, v1]) => {
                [&mac.unwrap_or_default()[..], &source, &[0x81, 0x00, v0, v1, 0x08, 0x00]].concat()
            }
            None => [&mac.unwrap_or_default()[..], &source, &[0x08, 0x00]].concat(),
        };
        for (to, from) in header.iter_mut().zip(&bytes) {
            *to = *from;
        }
        Self {
            interface: index,
            port: interface.port,
            mtu: interface.mtu,
            l2: bytes.len() as u8,
            resolved: mac.is_some(),
            target,
            header,
        }
    }

    /// The neighbour's MAC address, if it is known.
    pub fn mac(&self) -> Option<MacAddr> {
        self.header.first_chunk::<6>().filter(|_| self.resolved).map(|mac| MacAddr(*mac))
    }

    /// The neighbour's MAC address became known, or is no longer. Says whether it is another one.
    pub fn set_mac(&mut self, mac: Option<MacAddr>) -> bool {
        let before = std::mem::replace(&mut self.resolved, mac.is_some());
        let mac = mac.unwrap_or_default().0;
        let known = self.header.first_chunk_mut::<6>().map(|known| std::mem::replace(known, mac));
        before != self.resolved || known != Some(mac)
    }

    /// Whether both lead to the same neighbour.
    pub fn is_to(&self, other: &Self) -> bool {
        (self.interface, self.target) == (other.interface, other.target)
    }

    /// Writes the layer-2 header to the front of a frame that has room for it.
    #[inline(always)]
    pub fn write(&self, frame: &mut [u8], v6: bool) {
        let ether_type = if v6 { [0x86, 0xdd] } else { [0x08, 0x00] };
        if self.l2 == 14 {
            if let (Some(to), Some(from)) = (frame.first_chunk_mut::<14>(), self.header.first_chunk::<14>()) {
                *to = *from;
                let [.., t0, t1] = to;
                [*t0, *t1] = ether_type;
            }
        } else if let Some(to) = frame.first_chunk_mut::<18>() {
            *to = self.header;
            let [.., t0, t1] = to;
            [*t0, *t1] = ether_type;
        }
    }

    /// The layer-2 header for a packet of this family.
    pub fn header(&self, v6: bool) -> Vec<u8> {
        let mut bytes = vec![0; self.l2 as usize];
        self.write(&mut bytes, v6);
        bytes
    }
}

/// The link that a finished frame leaves through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub interface: u16,
    pub port: u16,
}
