//! What lay around a packet.

use super::Why;
use packet::VlanId;

/// Layers that are looked through. What is nested deeper is an attack, or of no use to anybody.
pub const MAX_LAYERS: usize = 12;

counters::labels! {
    /// A layer of a frame.
    pub enum Layer: "layer" {
        Ethernet = "ethernet", "Ethernet II or IEEE 802.3.";
        Cooked = "cooked", "What Linux makes of a link's header on \"any\" device (SLL, SLL2).";
        Family = "family", "The address family before a packet on a BSD loopback.";
        Hdlc = "hdlc", "Cisco HDLC.";
        Wireless = "802.11", "IEEE 802.11, with radiotap or without.";
        Capture = "capture", "What a capture says of a frame (Per-Packet Information).";
        Vlan = "vlan", "A tag of IEEE 802.1Q or 802.1ad.";
        Llc = "llc", "IEEE 802.2, with SNAP.";
        Mpls = "mpls", "A stack of MPLS labels (RFC 3032).";
        ControlWord = "control-word", "A pseudowire's control word (RFC 4385).";
        Pppoe = "pppoe", "A PPPoE session (RFC 2516).";
        Ppp = "ppp", "PPP (RFC 1661).";
        Ipv4 = "ipv4", "IPv4.";
        Ipv6 = "ipv6", "IPv6, with its extension headers.";
        Fragments = "fragments", "What follows was put together from fragments.";
        IpInIp = "ip-in-ip", "IPv4 or IPv6 right behind an IP header (RFC 2003, RFC 4213).";
        EtherIp = "etherip", "Ethernet in IP (RFC 3378).";
        Gre = "gre", "GRE (RFC 2784), with key (RFC 2890), or as PPTP has it (RFC 2637).";
        Erspan = "erspan", "Mirrored frames in GRE.";
        GtpU = "gtp-u", "GTP-U (TS 29.281), in UDP.";
        Vxlan = "vxlan", "VXLAN (RFC 7348), in UDP.";
        Geneve = "geneve", "GENEVE (RFC 8926), in UDP.";
        L2tp = "l2tp", "L2TP (RFC 2661), in UDP.";
        Tzsp = "tzsp", "TaZmen Sniffer Protocol, in UDP.";
    }
}

/// Layers from the outside in; of tunnels in UDP only the tunnel is named.
#[derive(Clone, Copy)]
pub struct Stack {
    layers: [Layer; MAX_LAYERS],
    depth: u8,
}

impl Stack {
    /// Nothing yet.
    pub const EMPTY: Self = Self { layers: [Layer::Ethernet; MAX_LAYERS], depth: 0 };

    /// From the outside in.
    pub fn layers(&self) -> &[Layer] {
        self.layers.get(..usize::from(self.depth)).unwrap_or_default()
    }

    #[inline]
    pub(super) fn push(&mut self, layer: Layer) -> Result<(), Why> {
        *self.layers.get_mut(usize::from(self.depth)).ok_or(Why::Deep)? = layer;
        self.depth += 1;
        Ok(())
    }

    /// Takes the innermost one off again.
    pub(super) const fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }
}

impl PartialEq for Stack {
    fn eq(&self, other: &Self) -> bool {
        self.layers() == other.layers()
    }
}

impl Eq for Stack {}

impl std::fmt::Debug for Stack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// `ethernet/vlan/ipv4`.
impl std::fmt::Display for Stack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, layer) in self.layers().iter().enumerate() {
            if place > 0 {
                f.write_str("/")?;
            }
            f.write_str(layer.label())?;
        }
        Ok(())
    }
}

/// A tunnel that a packet came out of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tunnel {
    /// What made it.
    pub layer: Layer,
    /// Its number: TEID, VNI, GRE's key, ERSPAN's session, L2TP's tunnel and session; 0 where there is none.
    pub id: u32,
}

/// All that lay around a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Around {
    /// The layers, the packet itself included.
    pub stack: Stack,
    /// The outer and the inner VLAN.
    pub vlans: [Option<VlanId>; 2],
    /// The innermost tunnel.
    pub tunnel: Option<Tunnel>,
}

impl Around {
    /// Nothing yet.
    pub const NOTHING: Self = Self { stack: Stack::EMPTY, vlans: [None; 2], tunnel: None };

    pub(super) fn tag(&mut self, vlan: VlanId) {
        if let Some(place) = self.vlans.iter_mut().find(|vlan| vlan.is_none()) {
            *place = Some(vlan);
        }
    }

    /// Enters a tunnel.
    pub(super) fn enter(&mut self, layer: Layer, id: u32) -> Option<()> {
        self.tunnel = Some(Tunnel { layer, id });
        self.stack.push(layer).ok()
    }
}
