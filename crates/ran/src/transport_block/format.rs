//! What is agreed about a transport block before it is sent: its size, rate, modulation, layers and coded bits.

use super::Error;
use std::fmt;

/// The most bits of a transport block that is taken: more than the largest that TS 38.214 §5.1.3.2 gives for one codeword.
pub const MOST_BITS: usize = 1 << 21;

/// The most coded bits of a transport block that are taken: more than 275 resource blocks have in a slot, on four layers of 1024QAM.
pub const MOST_CODED_BITS: usize = 1 << 21;

/// A code rate R, more than 0 and at most 1. It takes part in the choice of a base graph and in nothing else.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct CodeRate(f64);

impl CodeRate {
    /// From a number.
    pub fn new(rate: f64) -> Result<Self, Error> {
        if rate > 0.0 && rate <= 1.0 { Ok(Self(rate)) } else { Err(Error::CodeRate(rate)) }
    }

    /// From 1024ths, as the tables of modulation and coding schemes have it (TS 38.214 Table 5.1.3.1-1).
    pub fn of_1024ths(rate: f64) -> Result<Self, Error> {
        Self::new(rate / 1024.0)
    }

    /// As a number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// How many bits a symbol carries (TS 38.211 §5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Modulation {
    /// π/2-BPSK.
    HalfPiBpsk = 1,
    /// QPSK.
    Qpsk = 2,
    /// 16QAM.
    Qam16 = 4,
    /// 64QAM.
    Qam64 = 6,
    /// 256QAM.
    Qam256 = 8,
    /// 1024QAM.
    Qam1024 = 10,
}

impl Modulation {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::HalfPiBpsk, Self::Qpsk, Self::Qam16, Self::Qam64, Self::Qam256, Self::Qam1024];

    /// That of modulation order Q_m.
    pub fn of_order(order: usize) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|one| one.order() == order).ok_or(Error::ModulationOrder(order))
    }

    /// The modulation order Q_m.
    pub const fn order(self) -> usize {
        self as usize
    }
}

/// Which part of the coded bits a transmission begins with: rv_id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RedundancyVersion(u8);

impl RedundancyVersion {
    /// All four of them.
    pub const ALL: [Self; 4] = [Self(0), Self(1), Self(2), Self(3)];

    /// From its number, which is at most 3.
    pub fn new(number: usize) -> Result<Self, Error> {
        Self::ALL.get(number).copied().ok_or(Error::RedundancyVersion(number))
    }

    /// Its number.
    pub const fn number(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for RedundancyVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What sender and receiver agree about. Not every one can be: [`Layout::new`](super::Layout::new) tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Format {
    /// The transport block's bits, without its CRC: A.
    pub bits: usize,
    /// Its code rate: R.
    pub rate: CodeRate,
    /// Its modulation, which gives Q_m.
    pub modulation: Modulation,
    /// Layers that it is sent on, 1 to 4: N_L.
    pub layers: usize,
    /// Coded bits that are sent: G.
    pub coded_bits: usize,
    /// With limited-buffer rate matching (I_LBRM = 1), the size TBS_LBRM that limits the buffer (TS 38.212 §5.4.2.1).
    pub limited_buffer: Option<usize>,
}
