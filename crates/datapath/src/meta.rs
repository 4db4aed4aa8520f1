//! What is known of a frame by its bytes: read once (by `parse`), and what every later stage works from.

use crate::Reason;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// No QFI was in the packet.
pub const NO_QFI: u8 = 0xff;
/// No interface, no slot.
pub const NONE: u16 = u16::MAX;

/// What a frame is to us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A G-PDU to one of our addresses.
    Tunnel,
    /// An IP packet to somebody else: to a UE, if all is well.
    Plain,
    /// A GTP-U message that isn't a G-PDU.
    Signalling,
    /// A G-PDU with an extension header that must be understood and isn't (its type).
    UnknownExtension(u8),
    /// ARP.
    Arp,
    /// Any other packet to one of our own addresses, or to a multicast group on the link.
    Local,
    /// A fragment of a packet to one of our own addresses, on an interface with tunnels.
    OuterFragment,
    /// An IP packet to a public address whose translation is another worker's (see [`crate::nat`]).
    Public,
    /// To be dropped.
    Bad(Reason),
}

/// Whether a packet's destination was translated (see [`crate::nat`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Translated {
    /// It was not.
    No,
    /// In a way that is always the same.
    Fixed,
    /// By a mapping of this pool.
    By(u8),
}

/// A parsed frame. `Copy`, 40 bytes, valid as long as the frame isn't changed.
///
/// Parsing fills it in where it stands, field by field: one that is put together on the way and copied goes through more registers
/// than there are.
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    /// What it is.
    pub kind: Kind,
    /// Whether the UE's packet (at `inner`) is IPv6.
    pub v6: bool,
    /// Whether the frame comes from another UE or from Millrace itself, not from the data network.
    pub internal: bool,
    /// Whether its destination was a public address, and is the UE's now.
    pub translated: Translated,
    /// QFI from the PDU session container, or [`NO_QFI`].
    pub qfi: u8,
    /// ToS octet or traffic class of the UE's packet, as it came.
    pub tos: u8,
    /// Likewise of the tunnel's outer header; 0 of a plain packet.
    pub outer_tos: u8,
    /// RQI and paging policy of a downlink container: the octets as they were.
    pub container: [u8; 2],
    /// Interface of arrival, or [`NONE`].
    pub interface: u16,
    /// Offset of the outermost IP header.
    pub l3: u16,
    /// Offset of the UE's IP packet (equal to `l3` for a plain packet); for signalling, of the GTP-U header.
    pub inner: u16,
    /// Length of the UE's IP packet.
    pub len: u16,
    /// TEID of a tunnel packet.
    pub teid: u32,
    /// What a session is checked or found by: source (tunnel) or destination (plain) of the UE's packet; an IPv4
    /// address, or the upper half of an IPv6 address, as far as it names a UE (see [`session::prefixes`]).
    pub key: u64,
    /// The owner, once it was found.
    pub shard: u16,
    /// Slot of the record, once it was found.
    pub slot: u32,
}

const _: () = assert!(size_of::<Meta>() == 40, "a burst's are read and written all the time");

impl Meta {
    /// Of a frame that wasn't looked at yet.
    pub const EMPTY: Self = Self {
        kind: Kind::Bad(Reason::Malformed),
        v6: false,
        internal: false,
        translated: Translated::No,
        qfi: NO_QFI,
        tos: 0,
        outer_tos: 0,
        container: [0; 2],
        interface: NONE,
        l3: 0,
        inner: 0,
        len: 0,
        teid: 0,
        key: 0,
        shard: 0,
        slot: u32::MAX,
    };
}

/// A UE's packet in its frame.
#[inline(always)]
pub(crate) fn packet_of<'a>(frame: &'a [u8], meta: &Meta) -> &'a [u8] {
    let place = meta.inner as usize..meta.inner as usize + meta.len as usize;
    frame.get(place).unwrap_or_default()
}

/// The same, to be changed.
pub(crate) fn packet_of_mut<'a>(frame: &'a mut [u8], meta: &Meta) -> &'a mut [u8] {
    let place = meta.inner as usize..meta.inner as usize + meta.len as usize;
    frame.get_mut(place).unwrap_or_default()
}

/// The destination of an IPv6 packet that was checked in parsing.
pub(crate) fn destination6(frame: &[u8], inner: u16) -> u128 {
    let bytes = frame.get(inner as usize + 24..).and_then(|rest| rest.first_chunk::<16>());
    bytes.map_or(0, |bytes| u128::from_be_bytes(*bytes))
}

/// The destination of the UE's packet.
pub(crate) fn inner_destination(frame: &[u8], meta: &Meta) -> IpAddr {
    address(frame, meta, 16, 24)
}

/// The source of the UE's packet.
pub(crate) fn inner_source(frame: &[u8], meta: &Meta) -> IpAddr {
    address(frame, meta, 12, 8)
}

fn address(frame: &[u8], meta: &Meta, v4: usize, v6: usize) -> IpAddr {
    let packet = frame.get(meta.inner as usize..).unwrap_or_default();
    if meta.v6 {
        let bytes = packet.get(v6..).and_then(|rest| rest.first_chunk::<16>());
        IpAddr::V6(bytes.map_or(Ipv6Addr::UNSPECIFIED, |bytes| Ipv6Addr::from(*bytes)))
    } else {
        let bytes = packet.get(v4..).and_then(|rest| rest.first_chunk::<4>());
        IpAddr::V4(bytes.map_or(Ipv4Addr::UNSPECIFIED, |bytes| Ipv4Addr::from(*bytes)))
    }
}
