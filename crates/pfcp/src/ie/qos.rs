//! Gates and bit rates.

use super::wire::{Fields, Wire};
use crate::error::Fault;

/// Gate Status (§8.2.7).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct GateStatus {
    /// 0 is open on the wire.
    pub uplink_closed: bool,
    /// 0 is open on the wire.
    pub downlink_closed: bool,
}

/// MBR or GBR (§8.2.8, §8.2.9): kbit/s, 40 bits each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct BitRate {
    /// Uplink, kbit/s.
    pub uplink_kbps: u64,
    /// Downlink, kbit/s.
    pub downlink_kbps: u64,
}

impl Wire<'_> for GateStatus {
    /// The values 2 and 3, which nobody shall send, are read as closed.
    fn read(value: &[u8]) -> Result<Self, Fault> {
        let octet = Fields(value).octet()?;
        Ok(Self { uplink_closed: octet & 0x0c != 0, downlink_closed: octet & 0x03 != 0 })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.uplink_closed) << 2 | u8::from(self.downlink_closed));
    }
}

impl BitRate {
    /// The highest rate that the IE's 40 bits can say, kbit/s.
    pub const MAX_KBPS: u64 = (1 << 40) - 1;
}

impl Wire<'_> for BitRate {
    fn read(value: &[u8]) -> Result<Self, Fault> {
        let [a, b, c, d, e, f, g, h, i, j] = Fields(value).array()?;
        Ok(Self {
            uplink_kbps: u64::from_be_bytes([0, 0, 0, a, b, c, d, e]),
            downlink_kbps: u64::from_be_bytes([0, 0, 0, f, g, h, i, j]),
        })
    }

    /// Rates beyond [`BitRate::MAX_KBPS`] are written as that.
    fn write(&self, out: &mut Vec<u8>) {
        for rate in [self.uplink_kbps, self.downlink_kbps] {
            let [_, _, _, octets @ ..] = rate.min(Self::MAX_KBPS).to_be_bytes();
            out.extend_from_slice(&octets);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates() {
        let read = |octet| GateStatus::read(&[octet]);
        assert_eq!(read(0), Ok(GateStatus::default()));
        assert_eq!(read(1), Ok(GateStatus { uplink_closed: false, downlink_closed: true }));
        assert_eq!(read(4), Ok(GateStatus { uplink_closed: true, downlink_closed: false }));
        assert_eq!(read(0x0a), Ok(GateStatus { uplink_closed: true, downlink_closed: true }));
    }

    #[test]
    fn rates_are_forty_bits() {
        let bytes = [0, 0, 0, 3, 0xe8, 0xff, 0xff, 0xff, 0xff, 0xff];
        let rate = BitRate { uplink_kbps: 1000, downlink_kbps: BitRate::MAX_KBPS };
        assert_eq!(BitRate::read(&bytes), Ok(rate));
        let mut out = Vec::new();
        BitRate { downlink_kbps: u64::MAX, ..rate }.write(&mut out);
        assert_eq!(out, bytes);
        assert_eq!(BitRate::read(&bytes[..9]), Err(Fault::Length));
    }
}
