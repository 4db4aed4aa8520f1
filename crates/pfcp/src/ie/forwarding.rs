//! What happens to a packet: apply action, outer headers, buffering.

use super::wire::{Fields, Wire, flag, write_bits, write_counted};
use crate::error::Fault;
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
    /// UDP/IPv4.
    pub const UDP_IPV4: u16 = 0x0400;
    /// UDP/IPv6.
    pub const UDP_IPV6: u16 = 0x0800;
    /// IPv4.
    pub const IPV4: u16 = 0x1000;
    /// IPv6.
    pub const IPV6: u16 = 0x2000;

    /// What of this type's fields a description announces: TEID, IPv4 address, IPv6 address, port.
    const fn announced(description: u16) -> (bool, bool, bool, bool) {
        (
            description & (Self::GTPU_IPV4 | Self::GTPU_IPV6) != 0,
            description & (Self::GTPU_IPV4 | Self::UDP_IPV4 | Self::IPV4) != 0,
            description & (Self::GTPU_IPV6 | Self::UDP_IPV6 | Self::IPV6) != 0,
            description & (Self::UDP_IPV4 | Self::UDP_IPV6) != 0,
        )
    }
}

/// The identifier in a Forwarding Policy (§8.2.23), of at most 255 octets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PolicyId<'a>(pub &'a [u8]);

/// Redirect Information (§8.2.20).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RedirectInformation<'a> {
    /// What kind of address it is.
    pub kind: RedirectAddressType,
    /// Where to, as text. Empty: nowhere.
    pub address: &'a [u8],
    /// Of [`RedirectAddressType::IPV4_AND_IPV6`], the IPv6 address.
    pub other: &'a [u8],
}

/// Redirect Address Type (§8.2.20).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RedirectAddressType(pub u8);

impl RedirectAddressType {
    /// An IPv4 address.
    pub const IPV4: Self = Self(0);
    /// An IPv6 address.
    pub const IPV6: Self = Self(1);
    /// A URL.
    pub const URL: Self = Self(2);
    /// A SIP URI.
    pub const SIP_URI: Self = Self(3);
    /// Both an IPv4 and an IPv6 address.
    pub const IPV4_AND_IPV6: Self = Self(4);
}

impl<'a> Wire<'a> for RedirectInformation<'a> {
    fn read(value: &'a [u8]) -> Result<Self, Fault> {
        let mut fields = Fields(value);
        let kind = RedirectAddressType(fields.octet()? & 0x0f);
        let address = fields.counted()?;
        // Before Release 15 there was no other.
        let other = fields.when(!fields.0.is_empty(), Fields::counted)?.unwrap_or_default();
        Ok(Self { kind, address, other })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.kind.0 & 0x0f);
        write_counted(out, self.address);
        write_counted(out, self.other);
    }
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

impl<'a> Wire<'a> for PolicyId<'a> {
    fn read(value: &'a [u8]) -> Result<Self, Fault> {
        let mut fields = Fields(value);
        let length = fields.octet()?;
        fields.take(usize::from(length)).map(Self)
    }

    fn write(&self, out: &mut Vec<u8>) {
        let length = self.0.len().min(usize::from(u8::MAX));
        out.push(length as u8);
        out.extend_from_slice(self.0.get(..length).unwrap_or_default());
    }
}

impl Wire<'_> for ApplyAction {
    #[inline]
    fn read(value: &[u8]) -> Result<Self, Fault> {
        Ok(Self(Fields(value).bits::<2>()? as u16))
    }

    /// Two octets, as from release 16 on.
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        write_bits(out, u64::from(self.0), 2);
    }
}

impl Wire<'_> for OuterHeaderRemoval {
    #[inline]
    fn read(value: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields(value);
        Ok(Self {
            description: fields.octet()?,
            extension_header_deletion: fields.when(!fields.0.is_empty(), Fields::octet)?,
        })
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.description);
        out.extend(self.extension_header_deletion);
    }
}

impl Wire<'_> for OuterHeaderCreation {
    fn read(value: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields(value);
        let description = fields.u16()?;
        let (teid, ipv4, ipv6, port) = Self::announced(description);
        // VLAN tags (bits 7 and 8) and what release 17 added follow these fields.
        Ok(Self {
            description,
            teid: fields.when(teid, Fields::u32)?.map(Teid),
            ipv4: fields.when(ipv4, Fields::ipv4)?,
            ipv6: fields.when(ipv6, Fields::ipv6)?,
            port: fields.when(port, Fields::u16)?,
        })
    }

    /// The fields that the description announces; one that is missing is written as zero.
    fn write(&self, out: &mut Vec<u8>) {
        let (teid, ipv4, ipv6, port) = Self::announced(self.description);
        out.extend_from_slice(&self.description.to_be_bytes());
        if teid {
            out.extend_from_slice(&self.teid.unwrap_or_default().0.to_be_bytes());
        }
        if ipv4 {
            out.extend_from_slice(&self.ipv4.unwrap_or(Ipv4Addr::UNSPECIFIED).octets());
        }
        if ipv6 {
            out.extend_from_slice(&self.ipv6.unwrap_or(Ipv6Addr::UNSPECIFIED).octets());
        }
        if port {
            out.extend_from_slice(&self.port.unwrap_or_default().to_be_bytes());
        }
    }
}

impl SmReqFlags {
    pub(crate) const fn any(self) -> bool {
        self.drop_buffered || self.send_end_marker || self.query_all_urrs
    }
}

impl Wire<'_> for SmReqFlags {
    fn read(value: &[u8]) -> Result<Self, Fault> {
        let flags = Fields(value).octet()?;
        Ok(Self {
            drop_buffered: flags & 1 != 0,
            send_end_marker: flags & 1 << 1 != 0,
            query_all_urrs: flags & 1 << 2 != 0,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(flag(self.drop_buffered, 0) | flag(self.send_end_marker, 1) | flag(self.query_all_urrs, 2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apply_action_of_one_and_of_two_octets() {
        let buffer = ApplyAction(ApplyAction::BUFF | ApplyAction::NOCP);
        assert_eq!(ApplyAction::read(&[0x0c]), Ok(buffer));
        assert_eq!(ApplyAction::read(&[0x0c, 0]), Ok(buffer));
        assert_eq!(ApplyAction::read(&[0x02, 0x04]), Ok(ApplyAction(0x0402)));
        assert_eq!(ApplyAction::read(&[]), Err(Fault::Length));
        let mut out = Vec::new();
        buffer.write(&mut out);
        assert_eq!(out, [0x0c, 0]);
    }

    #[test]
    fn outer_header_creation_reads_what_its_description_announces() {
        let gtpu = OuterHeaderCreation {
            description: OuterHeaderCreation::GTPU_IPV4,
            teid: Some(Teid(0x0102_0304)),
            ipv4: Some(Ipv4Addr::new(10, 0, 0, 1)),
            ..OuterHeaderCreation::default()
        };
        let bytes = [1, 0, 1, 2, 3, 4, 10, 0, 0, 1];
        assert_eq!(OuterHeaderCreation::read(&bytes), Ok(gtpu));
        assert_eq!(OuterHeaderCreation::read(&bytes[..9]), Err(Fault::Length));
        let udp = OuterHeaderCreation::read(&[4, 0, 10, 0, 0, 1, 0x1f, 0x90]);
        assert_eq!(udp.map(|udp| (udp.teid, udp.port)), Ok((None, Some(8080))));
        let mut out = Vec::new();
        gtpu.write(&mut out);
        assert_eq!(out, bytes);
    }

    #[test]
    fn outer_header_removal_of_open5gs_is_one_octet() {
        let removal = OuterHeaderRemoval { description: 6, extension_header_deletion: None };
        assert_eq!(OuterHeaderRemoval::read(&[6]), Ok(removal));
        assert_eq!(
            OuterHeaderRemoval::read(&[0, 1]).map(|removal| removal.extension_header_deletion),
            Ok(Some(1))
        );
    }
}
