//! What traffic a rule is about: interfaces, tunnels, UE addresses, filters.

use super::wire::{Fields, Wire, flag, write_counted, write_ipv4, write_ipv6};
use crate::error::Fault;
use packet::{Qfi, Teid};
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

/// S-NSSAI (§8.2.176): a network slice, by its service type and, unless all bits are set, a differentiator (TS 23.003 §28.4.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SNssai {
    /// Slice/service type.
    pub sst: u8,
    /// Slice differentiator.
    pub sd: Option<u32>,
}

/// A differentiator that means none.
const NO_SD: u32 = 0xff_ffff;

impl Wire<'_> for SNssai {
    fn read(value: &[u8]) -> Result<Self, Fault> {
        let word = Fields(value).u32()?;
        let sd = word & NO_SD;
        Ok(Self { sst: (word >> 24) as u8, sd: (sd != NO_SD).then_some(sd) })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let word = u32::from(self.sst) << 24 | self.sd.unwrap_or(NO_SD) & NO_SD;
        out.extend_from_slice(&word.to_be_bytes());
    }
}

/// As operators write it: `1`, or `1-00007b` with the differentiator in hexadecimal.
impl std::fmt::Display for SNssai {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.sd {
            Some(sd) => write!(f, "{}-{sd:06x}", self.sst),
            None => write!(f, "{}", self.sst),
        }
    }
}

/// What [`SNssai`] shows; six digits after the hyphen.
impl std::str::FromStr for SNssai {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (sst, sd) = text.split_once('-').map_or((text, None), |(sst, sd)| (sst, Some(sd)));
        let sd = sd.map(|sd| {
            // The number of digits is part of the notation; a sign is none.
            let digits = if sd.len() == 6 && !sd.starts_with('+') { sd } else { "" };
            u32::from_str_radix(digits, 16)
        });
        Ok(Self { sst: sst.parse()?, sd: sd.transpose()?.filter(|sd| *sd != NO_SD) })
    }
}

impl Wire<'_> for Interface {
    #[inline]
    fn read(value: &[u8]) -> Result<Self, Fault> {
        Ok(Self(Fields(value).octet()? & 0x0f))
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.0 & 0x0f);
    }
}

impl Wire<'_> for FTeid {
    fn read(value: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields(value);
        let flags = fields.octet()?;
        let (ipv4, ipv6) = (flags & 1 != 0, flags & 1 << 1 != 0);
        if flags & 1 << 2 != 0 {
            let id = fields.when(flags & 1 << 3 != 0, Fields::octet)?;
            return Ok(Self::Choose { ipv4, ipv6, id });
        }
        if !ipv4 && !ipv6 {
            // A tunnel without an address: "at least one of the V4 and V6 flags shall be set".
            return Err(Fault::Incorrect);
        }
        Ok(Self::Given {
            teid: Teid(fields.u32()?),
            ipv4: fields.when(ipv4, Fields::ipv4)?,
            ipv6: fields.when(ipv6, Fields::ipv6)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Given { teid, ipv4, ipv6 } => {
                out.push(flag(ipv4.is_some(), 0) | flag(ipv6.is_some(), 1));
                out.extend_from_slice(&teid.0.to_be_bytes());
                write_ipv4(out, ipv4);
                write_ipv6(out, ipv6);
            }
            Self::Choose { ipv4, ipv6, id } => {
                out.push(flag(ipv4, 0) | flag(ipv6, 1) | flag(true, 2) | flag(id.is_some(), 3));
                out.extend(id);
            }
        }
    }
}

impl Wire<'_> for UeIpAddress {
    fn read(value: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields(value);
        let flags = fields.octet()?;
        Ok(Self {
            ipv4: fields.when(flags & 1 << 1 != 0, Fields::ipv4)?,
            ipv6: fields.when(flags & 1 != 0, Fields::ipv6)?,
            is_destination: flags & 1 << 2 != 0,
            ipv6_delegation_bits: fields.when(flags & 1 << 3 != 0, Fields::octet)?,
            ipv6_prefix_length: fields.when(flags & 1 << 6 != 0, Fields::octet)?,
            choose_ipv4: flags & 1 << 4 != 0,
            choose_ipv6: flags & 1 << 5 != 0,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(
            flag(self.ipv6.is_some(), 0)
                | flag(self.ipv4.is_some(), 1)
                | flag(self.is_destination, 2)
                | flag(self.ipv6_delegation_bits.is_some(), 3)
                | flag(self.choose_ipv4, 4)
                | flag(self.choose_ipv6, 5)
                | flag(self.ipv6_prefix_length.is_some(), 6),
        );
        write_ipv4(out, self.ipv4);
        write_ipv6(out, self.ipv6);
        out.extend(self.ipv6_delegation_bits);
        out.extend(self.ipv6_prefix_length);
    }
}

impl<'a> Wire<'a> for SdfFilter<'a> {
    fn read(value: &'a [u8]) -> Result<Self, Fault> {
        let mut fields = Fields(value);
        let [flags, _spare] = fields.array()?;
        Ok(Self {
            flow_description: fields.when(flags & 1 != 0, Fields::counted)?,
            tos_traffic_class: fields.when(flags & 1 << 1 != 0, Fields::array)?,
            security_parameter_index: fields.when(flags & 1 << 2 != 0, Fields::u32)?,
            flow_label: fields.when(flags & 1 << 3 != 0, |fields| {
                let [a, b, c] = fields.array()?;
                Ok(u32::from_be_bytes([0, a & 0x0f, b, c]))
            })?,
            filter_id: fields.when(flags & 1 << 4 != 0, Fields::u32)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let flags = flag(self.flow_description.is_some(), 0)
            | flag(self.tos_traffic_class.is_some(), 1)
            | flag(self.security_parameter_index.is_some(), 2)
            | flag(self.flow_label.is_some(), 3)
            | flag(self.filter_id.is_some(), 4);
        out.extend_from_slice(&[flags, 0]);
        if let Some(text) = self.flow_description {
            write_counted(out, text);
        }
        if let Some(octets) = self.tos_traffic_class {
            out.extend_from_slice(&octets);
        }
        if let Some(index) = self.security_parameter_index {
            out.extend_from_slice(&index.to_be_bytes());
        }
        if let Some(label) = self.flow_label {
            let [_, a, b, c] = label.to_be_bytes();
            out.extend_from_slice(&[a & 0x0f, b, c]);
        }
        if let Some(id) = self.filter_id {
            out.extend_from_slice(&id.to_be_bytes());
        }
    }
}

impl Wire<'_> for PdnType {
    fn read(value: &[u8]) -> Result<Self, Fault> {
        Ok(Self(Fields(value).octet()? & 0x07))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.0 & 0x07);
    }
}

impl Wire<'_> for Qfi {
    fn read(value: &[u8]) -> Result<Self, Fault> {
        Ok(Self::from_wire(Fields(value).octet()?))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.get());
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn both_ways<'a, T: Wire<'a> + PartialEq + std::fmt::Debug>(bytes: &'a [u8], value: &T) {
        assert_eq!(T::read(bytes).as_ref(), Ok(value));
        let mut out = Vec::new();
        value.write(&mut out);
        assert_eq!(out, bytes);
        for shorter in 0..bytes.len() {
            assert!(T::read(&bytes[..shorter]).is_err(), "{shorter} octets of {value:?}");
        }
    }

    #[test]
    fn fteids() {
        let (teid, ipv4) = (Teid(0x0102_0304), Some(Ipv4Addr::new(10, 0, 0, 1)));
        both_ways(&[1, 1, 2, 3, 4, 10, 0, 0, 1], &FTeid::Given { teid, ipv4, ipv6: None });
        let mut both = vec![3, 1, 2, 3, 4, 10, 0, 0, 1];
        both.extend_from_slice(&Ipv6Addr::LOCALHOST.octets());
        both_ways(&both, &FTeid::Given { teid, ipv4, ipv6: Some(Ipv6Addr::LOCALHOST) });
        // Open5GS: both families, one CHOOSE ID.
        both_ways(&[0x0f, 5], &FTeid::Choose { ipv4: true, ipv6: true, id: Some(5) });
        // OMEC: CH and nothing else.
        both_ways(&[4], &FTeid::Choose { ipv4: false, ipv6: false, id: None });
        assert_eq!(FTeid::read(&[0, 1, 2, 3, 4]), Err(Fault::Incorrect));
    }

    #[test]
    fn ue_addresses() {
        let ipv4 = Some(Ipv4Addr::new(10, 45, 0, 2));
        both_ways(&[6, 10, 45, 0, 2], &UeIpAddress { ipv4, is_destination: true, ..UeIpAddress::default() });
        both_ways(&[0x10], &UeIpAddress { choose_ipv4: true, ..UeIpAddress::default() });
        let mut v6 = vec![0x49];
        v6.extend_from_slice(&Ipv6Addr::LOCALHOST.octets());
        v6.extend_from_slice(&[8, 56]);
        both_ways(
            &v6,
            &UeIpAddress {
                ipv6: Some(Ipv6Addr::LOCALHOST),
                ipv6_delegation_bits: Some(8),
                ipv6_prefix_length: Some(56),
                ..UeIpAddress::default()
            },
        );
    }

    #[test]
    fn sdf_filters() {
        both_ways(
            b"\x1f\0\0\x03abc\x28\xfc\0\0\0\x01\x0f\xff\xff\0\0\0\x09",
            &SdfFilter {
                flow_description: Some(b"abc"),
                tos_traffic_class: Some([0x28, 0xfc]),
                security_parameter_index: Some(1),
                flow_label: Some(0xfffff),
                filter_id: Some(9),
            },
        );
        both_ways(&[0x10, 0, 0, 0, 0, 9], &SdfFilter { filter_id: Some(9), ..SdfFilter::default() });
    }

    #[test]
    fn slices_are_written_as_operators_do() {
        for (octets, text) in [([1, 0xff, 0xff, 0xff], "1"), ([2, 0, 0, 0x7b], "2-00007b")] {
            let slice = SNssai::read(&octets).unwrap();
            assert_eq!((slice.to_string().as_str(), text.parse()), (text, Ok(slice)));
            let mut written = Vec::new();
            slice.write(&mut written);
            assert_eq!(written, octets);
        }
        assert!(SNssai::read(&[1, 2, 3]).is_err());
        for text in ["", "-", "256", "1-7b", "1-0000zz", "1-+0007b", "1-0000000"] {
            assert!(text.parse::<SNssai>().is_err(), "{text}");
        }
    }
}
