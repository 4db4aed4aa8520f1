//! Who speaks: node and session identities, features, restart times.

use super::Interface;
use super::wire::{Fields, Wire, flag, write_bits, write_counted, write_ip, write_ipv4, write_ipv6};
use crate::error::Fault;
use crate::ids::Seid;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Node ID (§8.2.38).
#[derive(Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum NodeId {
    /// Type 0 or 1.
    Ip(IpAddr),
    /// Type 2; text form, labels joined by dots. What is read is in lower case, for names don't tell case
    /// apart (RFC 4343) and this is a key.
    Fqdn(Box<str>),
}

impl std::fmt::Display for NodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Fqdn(name) => name.fmt(f),
        }
    }
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
    /// BUCP: downlink buffering in the CP function (octet 5, bit 1).
    pub const BUCP: u64 = 1;
    /// DDND: the buffering parameter "downlink data notification delay" (octet 5, bit 2).
    pub const DDND: u64 = 1 << 1;
    /// DLBD: the buffering parameter "DL buffering duration" (octet 5, bit 3).
    pub const DLBD: u64 = 1 << 2;
    /// FTUP: F-TEID allocation in the UP function (octet 5, bit 5).
    pub const FTUP: u64 = 1 << 4;
    /// PFDM: PFD management (octet 5, bit 6).
    pub const PFDM: u64 = 1 << 5;
    /// EMPU: sending of end marker packets (octet 6, bit 1).
    pub const EMPU: u64 = 1 << 8;
    /// PDIU: optimised signalling of PDI, with traffic endpoints (octet 6, bit 2).
    pub const PDIU: u64 = 1 << 9;
    /// UDBC: UL/DL buffering control (octet 6, bit 3).
    pub const UDBC: u64 = 1 << 10;
    /// FRRT: framed routing (octet 6, bit 6).
    pub const FRRT: u64 = 1 << 13;
    /// UEIP: allocation of UE IP addresses (octet 7, bit 3).
    pub const UEIP: u64 = 1 << 18;
    /// SSET: sessions controlled by an SMF set (octet 7, bit 4).
    pub const SSET: u64 = 1 << 19;
    /// MNOP: measurement of number of packets (octet 7, bit 5).
    pub const MNOP: u64 = 1 << 20;
    /// BUNDL: several messages in one datagram (octet 7, bit 7).
    pub const BUNDL: u64 = 1 << 22;
    /// VTIME: quota validity time (octet 8, bit 3).
    pub const VTIME: u64 = 1 << 26;
    /// IP6PL: UE IPv6 prefixes of other lengths than 64 (octet 8, bit 6).
    pub const IP6PL: u64 = 1 << 29;

    /// Whether all of these bits are set.
    pub const fn has(self, bits: u64) -> bool {
        self.0 & bits == bits
    }
}

/// CP Function Features (§8.2.58): bit n of octet 5+k is bit 8k+n here. Up to eight octets are kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CpFunctionFeatures(pub u64);

/// Source IP Address (§8.2.157): where a heartbeat comes from, if an address translator hides it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SourceIpAddress {
    /// V4.
    pub ipv4: Option<Ipv4Addr>,
    /// V6.
    pub ipv6: Option<Ipv6Addr>,
    /// MPL: the length of the prefix that the sender's addresses share.
    pub prefix_length: Option<u8>,
}

/// PFCP Association Release Request (§8.2.77): what an association update asks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct AssociationReleaseFlags {
    /// SARR: release the association.
    pub release: bool,
    /// URSS: the UPF reports non-zero usage of the sessions first.
    pub reports_usage: bool,
}

/// Graceful Release Period (§8.2.78), as on the wire: a unit in the high three bits and a count.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct GracefulReleasePeriod(pub u8);

impl GracefulReleasePeriod {
    /// Seconds; `None` where the period has no end.
    pub const fn seconds(self) -> Option<u32> {
        let unit = match self.0 >> 5 {
            0 => 2,
            2 => 600,
            3 => 3_600,
            4 => 36_000,
            7 => return None,
            // 1, and 5 and 6 which are "interpreted as multiples of 1 minute".
            _ => 60,
        };
        Some((self.0 & 0x1f) as u32 * unit)
    }

    /// The shortest period that can be said and is not shorter than so many seconds; at most 31 times 10 h.
    pub fn at_least(seconds: u32) -> Self {
        for (code, unit) in [(0u8, 2u32), (1, 60), (2, 600), (3, 3_600), (4, 36_000)] {
            let count = seconds.div_ceil(unit);
            if count <= 31 {
                return Self(code << 5 | count as u8);
            }
        }
        Self(4 << 5 | 31)
    }
}

/// Remote GTP-U Peer (§8.2.70): the other end of a path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RemoteGtpuPeer<'a> {
    /// V4.
    pub ipv4: Option<Ipv4Addr>,
    /// V6.
    pub ipv6: Option<Ipv6Addr>,
    /// DI: the side it is on.
    pub destination_interface: Option<Interface>,
    /// NI: the network it is in.
    pub network_instance: Option<&'a [u8]>,
}

/// A name's length in text, at most (RFC 1035 §2.3.4).
const MAX_NAME: usize = 253;

/// Reads labels, each led by its length (RFC 1035 §3.1), the root's zero being optional (§8.2.38).
fn read_labels(mut octets: &[u8]) -> Option<String> {
    let mut name = String::with_capacity(octets.len());
    while let Some((&length, rest)) = octets.split_first() {
        if length == 0 && rest.is_empty() {
            break;
        }
        let (label, rest) = rest.split_at_checked(usize::from(length))?;
        if !name.is_empty() {
            name.push('.');
        }
        push_label(&mut name, label)?;
        octets = rest;
    }
    Some(name)
}

/// Reads a name that was sent as text.
fn read_text(octets: &[u8]) -> Option<String> {
    let mut name = String::with_capacity(octets.len());
    for label in octets.split(|&octet| octet == b'.') {
        if !name.is_empty() {
            name.push('.');
        }
        push_label(&mut name, label)?;
    }
    Some(name)
}

fn push_label(name: &mut String, label: &[u8]) -> Option<()> {
    if label.is_empty()
        || label.len() > 63
        || !label.iter().all(|&octet| octet.is_ascii_graphic() && octet != b'.')
    {
        return None;
    }
    name.extend(label.iter().map(|octet| char::from(octet.to_ascii_lowercase())));
    Some(())
}

impl Wire<'_> for NodeId {
    /// A name comes as labels; some peers send its text, which is taken too where it can't be labels.
    fn read(value: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields(value);
        match fields.octet()? & 0x0f {
            0 => Ok(Self::Ip(IpAddr::V4(fields.ipv4()?))),
            1 => Ok(Self::Ip(IpAddr::V6(fields.ipv6()?))),
            2 => read_labels(fields.0)
                .or_else(|| read_text(fields.0))
                .filter(|name| !name.is_empty() && name.len() <= MAX_NAME)
                .map(|name| Self::Fqdn(name.into_boxed_str()))
                .ok_or(Fault::Incorrect),
            _ => Err(Fault::Incorrect),
        }
    }

    /// Empty labels are left out, and of one longer than 63 octets the rest: names can't have either.
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ip(address) => {
                out.push(u8::from(address.is_ipv6()));
                write_ip(out, *address);
            }
            Self::Fqdn(name) => {
                out.push(2);
                for label in name.split('.').map(str::as_bytes).filter(|label| !label.is_empty()) {
                    let label = label.get(..63).unwrap_or(label);
                    out.push(label.len() as u8);
                    out.extend_from_slice(label);
                }
            }
        }
    }
}

impl Wire<'_> for FSeid {
    fn read(value: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields(value);
        let flags = fields.octet()?;
        Ok(Self {
            seid: Seid(fields.u64()?),
            ipv4: fields.when(flags & 1 << 1 != 0, Fields::ipv4)?,
            ipv6: fields.when(flags & 1 != 0, Fields::ipv6)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(flag(self.ipv6.is_some(), 0) | flag(self.ipv4.is_some(), 1));
        out.extend_from_slice(&self.seid.0.to_be_bytes());
        write_ipv4(out, self.ipv4);
        write_ipv6(out, self.ipv6);
    }
}

impl Wire<'_> for UpFunctionFeatures {
    fn read(value: &[u8]) -> Result<Self, Fault> {
        Fields(value).bits::<8>().map(Self)
    }

    /// At least the two octets of release 14.
    fn write(&self, out: &mut Vec<u8>) {
        write_bits(out, self.0, 2);
    }
}

impl Wire<'_> for CpFunctionFeatures {
    fn read(value: &[u8]) -> Result<Self, Fault> {
        Fields(value).bits::<8>().map(Self)
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_bits(out, self.0, 1);
    }
}

impl Wire<'_> for SourceIpAddress {
    fn read(value: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields(value);
        let flags = fields.octet()?;
        Ok(Self {
            ipv4: fields.when(flags & 1 << 1 != 0, Fields::ipv4)?,
            ipv6: fields.when(flags & 1 != 0, Fields::ipv6)?,
            prefix_length: fields.when(flags & 1 << 2 != 0, Fields::octet)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(
            flag(self.ipv6.is_some(), 0)
                | flag(self.ipv4.is_some(), 1)
                | flag(self.prefix_length.is_some(), 2),
        );
        write_ipv4(out, self.ipv4);
        write_ipv6(out, self.ipv6);
        out.extend(self.prefix_length);
    }
}

impl Wire<'_> for AssociationReleaseFlags {
    fn read(value: &[u8]) -> Result<Self, Fault> {
        let flags = Fields(value).octet()?;
        Ok(Self { release: flags & 1 != 0, reports_usage: flags & 1 << 1 != 0 })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(flag(self.release, 0) | flag(self.reports_usage, 1));
    }
}

impl Wire<'_> for GracefulReleasePeriod {
    fn read(value: &[u8]) -> Result<Self, Fault> {
        Fields(value).octet().map(Self)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.0);
    }
}

impl<'a> Wire<'a> for RemoteGtpuPeer<'a> {
    fn read(value: &'a [u8]) -> Result<Self, Fault> {
        let mut fields = Fields(value);
        let flags = fields.octet()?;
        Ok(Self {
            ipv4: fields.when(flags & 1 << 1 != 0, Fields::ipv4)?,
            ipv6: fields.when(flags & 1 != 0, Fields::ipv6)?,
            destination_interface: fields
                .when(flags & 1 << 2 != 0, |fields| Interface::read(fields.counted()?))?,
            network_instance: fields.when(flags & 1 << 3 != 0, Fields::counted)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(
            flag(self.ipv6.is_some(), 0)
                | flag(self.ipv4.is_some(), 1)
                | flag(self.destination_interface.is_some(), 2)
                | flag(self.network_instance.is_some(), 3),
        );
        write_ipv4(out, self.ipv4);
        write_ipv6(out, self.ipv6);
        if let Some(Interface(interface)) = self.destination_interface {
            write_counted(out, &[interface & 0x0f]);
        }
        if let Some(name) = self.network_instance {
            write_counted(out, name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written<'a>(value: &impl Wire<'a>) -> Vec<u8> {
        let mut out = Vec::new();
        value.write(&mut out);
        out
    }

    #[test]
    fn node_ids() {
        let v4 = NodeId::Ip(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
        assert_eq!(NodeId::read(&[0, 10, 0, 0, 1]), Ok(v4.clone()));
        assert_eq!(written(&v4), [0, 10, 0, 0, 1]);
        assert_eq!(NodeId::read(&[0, 10, 0, 0]), Err(Fault::Length));
        assert_eq!(NodeId::read(&[3, 10, 0, 0, 1]), Err(Fault::Incorrect));
        let name = NodeId::Fqdn("smf.example.org".into());
        let labels = b"\x02\x03smf\x07example\x03org";
        assert_eq!(NodeId::read(labels), Ok(name.clone()));
        assert_eq!(NodeId::read(b"\x02\x03SMF\x07example\x03org\0"), Ok(name.clone()));
        assert_eq!(NodeId::read(b"\x02smf.example.org"), Ok(name.clone()));
        assert_eq!(written(&name), labels);
        for bad in [&b"\x02"[..], b"\x02\0", b"\x02\x03a.b", b"\x02a..b", b"\x02\x02a\n"] {
            assert_eq!(NodeId::read(bad), Err(Fault::Incorrect), "{bad:?}");
        }
    }

    #[test]
    fn feature_octets() {
        // Octets 5 to 8 with FTUP; EMPU; UEIP and MNOP; VTIME and IP6PL.
        let features = UpFunctionFeatures(
            UpFunctionFeatures::FTUP
                | UpFunctionFeatures::EMPU
                | UpFunctionFeatures::UEIP
                | UpFunctionFeatures::MNOP
                | UpFunctionFeatures::VTIME
                | UpFunctionFeatures::IP6PL,
        );
        assert_eq!(written(&features), [0x10, 0x01, 0x14, 0x24]);
        assert_eq!(UpFunctionFeatures::read(&[0x10, 0x01, 0x14, 0x24]), Ok(features));
        assert_eq!(written(&UpFunctionFeatures(UpFunctionFeatures::FTUP)), [0x10, 0]);
        assert_eq!(written(&CpFunctionFeatures(0)), [0]);
    }

    #[test]
    fn session_ids() {
        let id = FSeid { seid: Seid(1), ipv4: Some(Ipv4Addr::LOCALHOST), ipv6: None };
        let bytes = [2, 0, 0, 0, 0, 0, 0, 0, 1, 127, 0, 0, 1];
        assert_eq!(FSeid::read(&bytes), Ok(id));
        assert_eq!(written(&id), bytes);
        assert_eq!(FSeid::read(&bytes[..12]), Err(Fault::Length));
    }

    #[test]
    fn release_periods() {
        assert_eq!(GracefulReleasePeriod(0x25).seconds(), Some(300));
        assert_eq!(GracefulReleasePeriod(0xe0).seconds(), None);
        assert_eq!(GracefulReleasePeriod::at_least(61).seconds(), Some(62));
        assert_eq!(GracefulReleasePeriod::at_least(63).seconds(), Some(120));
        assert_eq!(GracefulReleasePeriod::at_least(u32::MAX), GracefulReleasePeriod(0x9f));
    }

    #[test]
    fn gtpu_peers() {
        let peer = RemoteGtpuPeer {
            ipv4: Some(Ipv4Addr::LOCALHOST),
            ipv6: None,
            destination_interface: Some(Interface::CORE),
            network_instance: Some(b"n9"),
        };
        let bytes = b"\x0e\x7f\0\0\x01\0\x01\x01\0\x02n9";
        assert_eq!(written(&peer), bytes);
        assert_eq!(RemoteGtpuPeer::read(bytes), Ok(peer));
    }
}
