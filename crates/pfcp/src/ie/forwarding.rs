//! What happens to a packet: apply action, outer headers, buffering.

use packet::Teid;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Apply Action (§8.2.26), first octet in the low bits, second (DFRT, EDRT, BDPN, DDPN, FSSM, MBSU) in the high ones. One octet is accepted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ApplyAction(pub u16);

impl ApplyAction {
    /// Drop.
    pub const DROP: u16 = 1;
    /// Forward.
    pub const FORW: u16 = 1 << 1;
    /// Buffer.
    pub const BUFF: u16 = 1 << 2;
    /// Notify the CP function.
    pub const NOCP: u16 = 1 << 3;
    /// Duplicate.
    pub const DUPL: u16 = 1 << 4;

    /// Whether all of these bits are set.
    pub const fn has(self, bits: u16) -> bool {
        self.0 & bits == bits
    }
}

/// Outer Header Removal (§8.2.64).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OuterHeaderRemoval {
    /// Description: 0 GTP-U/UDP/IPv4, 1 GTP-U/UDP/IPv6, 6 GTP-U/UDP/IP, …
    pub description: u8,
    /// GTP-U Extension Header Deletion, if the second octet is there.
    pub extension_header_deletion: Option<u8>,
}

/// Outer Header Creation (§8.2.56). `description` keeps the two octets' bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct OuterHeaderCreation {
    /// As on the wire: 0x0100 GTP-U/UDP/IPv4, 0x0200 GTP-U/UDP/IPv6, 0x0400 UDP/IPv4, …
    pub description: u16,
    /// Present with GTP-U.
    pub teid: Option<Teid>,
    /// Present with an IPv4 form.
    pub ipv4: Option<Ipv4Addr>,
    /// Present with an IPv6 form.
    pub ipv6: Option<Ipv6Addr>,
    /// Present with a plain UDP form.
    pub port: Option<u16>,
}

impl OuterHeaderCreation {
    /// GTP-U/UDP/IPv4.
    pub const GTPU_IPV4: u16 = 0x0100;
    /// GTP-U/UDP/IPv6.
    pub const GTPU_IPV6: u16 = 0x0200;
}

/// PFCPSMReq-Flags (§8.2.45).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SmReqFlags {
    /// DROBU: drop buffered packets.
    pub drop_buffered: bool,
    /// SNDEM: send end markers.
    pub send_end_marker: bool,
    /// QAURR: query all URRs.
    pub query_all_urrs: bool,
}
