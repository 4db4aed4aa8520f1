//! How a value is read from and written to an IE: the two halves every typed IE has.
//!
//! Lengths follow §7.6.4.3: a value shorter than its flags promise is refused with "Invalid length"; octets
//! after what is known are a later release's and ignored. Spare bits are ignored and sent as zero.

use crate::encode::encode_ie;
use crate::error::{DecodeError, Fault};
use crate::tlv::Ie;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Values of one kind that a message or rule may list before it is refused with "No resources available".
pub const MAX_LIST: usize = 256;

/// A typed IE value.
pub(crate) trait Wire<'a>: Sized {
    /// Reads the whole value of an IE.
    fn read(value: &'a [u8]) -> Result<Self, Fault>;
    /// Appends the value, without type and length.
    fn write(&self, out: &mut Vec<u8>);
}

impl<'a> Ie<'a> {
    /// Takes a mandatory IE. A repetition is ignored: the first one counts (§7.6.4.6).
    #[inline]
    pub(crate) fn mandatory<T: Wire<'a>>(&self, slot: &mut Option<T>) -> Result<(), DecodeError> {
        if slot.is_none() {
            *slot = Some(T::read(self.value).map_err(|fault| self.fault(fault))?);
        }
        Ok(())
    }

    /// Takes an IE that may be absent, and is if it is empty: some SMFs leave values out, not IEs.
    #[inline]
    pub(crate) fn optional<T: Wire<'a>>(&self, slot: &mut Option<T>) -> Result<(), DecodeError> {
        if self.value.is_empty() { Ok(()) } else { self.mandatory(slot) }
    }

    /// Takes an IE that may be repeated; empty ones don't count.
    #[inline]
    pub(crate) fn listed<T: Wire<'a>>(&self, list: &mut Vec<T>) -> Result<(), DecodeError> {
        if self.value.is_empty() {
            return Ok(());
        }
        self.push(list, T::read(self.value).map_err(|fault| self.fault(fault))?)
    }

    /// Keeps a value of this IE, unless there are too many.
    #[inline]
    pub(crate) fn push<T>(&self, list: &mut Vec<T>, value: T) -> Result<(), DecodeError> {
        if list.len() >= MAX_LIST {
            return Err(self.refuse(crate::cause::Cause::NO_RESOURCES));
        }
        list.push(value);
        Ok(())
    }
}

/// Appends an IE.
#[inline]
pub(crate) fn put<'a, T: Wire<'a>>(out: &mut Vec<u8>, kind: u16, value: &T) {
    encode_ie(out, kind, |out| value.write(out));
}

/// Appends an IE if there is a value.
#[inline]
pub(crate) fn put_option<'a, T: Wire<'a>>(out: &mut Vec<u8>, kind: u16, value: Option<&T>) {
    if let Some(value) = value {
        put(out, kind, value);
    }
}

/// Appends one IE for each value.
#[inline]
pub(crate) fn put_all<'a, T: Wire<'a>>(out: &mut Vec<u8>, kind: u16, values: &[T]) {
    for value in values {
        put(out, kind, value);
    }
}

/// The fields of a value, front to back.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (field, rest) = self.0.split_first_chunk::<N>().ok_or(Fault::Length)?;
        self.0 = rest;
        Ok(*field)
    }

    #[inline]
    pub(crate) fn octet(&mut self) -> Result<u8, Fault> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, Fault> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, Fault> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64, Fault> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    #[inline]
    pub(crate) fn ipv4(&mut self) -> Result<Ipv4Addr, Fault> {
        Ok(Ipv4Addr::from(self.array::<4>()?))
    }

    #[inline]
    pub(crate) fn ipv6(&mut self) -> Result<Ipv6Addr, Fault> {
        Ok(Ipv6Addr::from(self.array::<16>()?))
    }

    #[inline]
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let (field, rest) = self.0.split_at_checked(length).ok_or(Fault::Length)?;
        self.0 = rest;
        Ok(field)
    }

    /// Octets led by their count.
    pub(crate) fn counted(&mut self) -> Result<&'a [u8], Fault> {
        let length = usize::from(self.u16()?);
        self.take(length)
    }

    /// A field that is there if a flag says so.
    #[inline]
    pub(crate) fn when<T>(
        &mut self,
        present: bool,
        read: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        if present { read(self).map(Some) } else { Ok(None) }
    }

    /// Up to N octets, the first one in the low bits: bit maps that grow by octets from release to release.
    pub(crate) fn bits<const N: usize>(&self) -> Result<u64, Fault> {
        if self.0.is_empty() {
            return Err(Fault::Length);
        }
        Ok(self.0.iter().take(N).rev().fold(0, |bits, &octet| bits << 8 | u64::from(octet)))
    }
}

/// Appends a bit map, the low bits first: as many octets as it needs, `least` at least.
pub(crate) fn write_bits(out: &mut Vec<u8>, bits: u64, least: usize) {
    let needed = 8 - bits.leading_zeros() as usize / 8;
    let octets = bits.to_le_bytes();
    out.extend_from_slice(octets.get(..needed.max(least)).unwrap_or(&octets));
}

/// Appends octets led by their count. More than a count can say are not sent: the value ends there.
pub(crate) fn write_counted(out: &mut Vec<u8>, octets: &[u8]) {
    let octets = octets.get(..usize::from(u16::MAX)).unwrap_or(octets);
    out.extend_from_slice(&(octets.len() as u16).to_be_bytes());
    out.extend_from_slice(octets);
}

/// One bit of a flag octet.
#[inline]
pub(crate) const fn flag(set: bool, bit: u8) -> u8 {
    (set as u8) << bit
}

pub(crate) fn write_ipv4(out: &mut Vec<u8>, address: Option<Ipv4Addr>) {
    if let Some(address) = address {
        out.extend_from_slice(&address.octets());
    }
}

pub(crate) fn write_ipv6(out: &mut Vec<u8>, address: Option<Ipv6Addr>) {
    if let Some(address) = address {
        out.extend_from_slice(&address.octets());
    }
}

pub(crate) fn write_ip(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
        IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
    }
}

/// Octets that this crate does not read: names, texts.
impl<'a> Wire<'a> for &'a [u8] {
    #[inline]
    fn read(value: &'a [u8]) -> Result<Self, Fault> {
        Ok(value)
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

impl Wire<'_> for [u8; 2] {
    #[inline]
    fn read(value: &[u8]) -> Result<Self, Fault> {
        Fields(value).array()
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

macro_rules! numbers {
    ($($inner:ident: $($make:path),+;)*) => {$($(
        impl Wire<'_> for $make {
            #[inline]
            fn read(value: &[u8]) -> Result<Self, Fault> {
                Ok($make($inner::from_be_bytes(Fields(value).array()?)))
            }

            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.0.to_be_bytes());
            }
        }
    )+)*};
}

use crate::cause::Cause;
use crate::ids::{BarId, FarId, PdrId, QerId, UrrId};
use crate::ie::{NtpSeconds, RecoveryTimeStamp};

numbers! {
    u8: Cause, BarId;
    u16: PdrId;
    u32: FarId, QerId, UrrId, NtpSeconds, RecoveryTimeStamp;
}

macro_rules! integers {
    ($($inner:ident),*) => {$(
        impl Wire<'_> for $inner {
            #[inline]
            fn read(value: &[u8]) -> Result<Self, Fault> {
                Ok($inner::from_be_bytes(Fields(value).array()?))
            }

            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }
        }
    )*};
}

integers!(u8, u16, u32);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn bit_maps_grow_by_octets() {
        for (bits, least, octets) in [
            (0, 1, &[0][..]),
            (0x0310, 1, &[0x10, 0x03]),
            (0x10, 2, &[0x10, 0]),
            (1 << 63, 1, &[0, 0, 0, 0, 0, 0, 0, 0x80]),
        ] {
            let mut out = Vec::new();
            write_bits(&mut out, bits, least);
            assert_eq!(out, octets);
            assert_eq!(Fields(octets).bits::<8>().unwrap(), bits);
        }
        assert_eq!(Fields(&[1, 2, 3]).bits::<2>().unwrap(), 0x0201);
        assert_eq!(Fields(&[]).bits::<2>(), Err(Fault::Length));
    }

    #[test]
    fn shorter_is_refused_and_longer_is_a_later_release() {
        assert_eq!(FarId::read(&[0, 0, 0]), Err(Fault::Length));
        assert_eq!(FarId::read(&[0, 0, 0, 7, 9]), Ok(FarId(7)));
    }
}
