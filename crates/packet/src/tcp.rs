//! TCP (RFC 9293): the header, its flags, and the MSS option that a tunnel must sometimes lower.

use crate::checksum::{self, Sum};
use crate::{Layer, Malformed};

/// Octets of a header without options.
pub const HEADER_LEN: usize = 20;
/// Octets of the longest header.
pub const MAX_HEADER_LEN: usize = 60;

/// The control bits (RFC 9293 §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number counts.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer counts.
    pub const URG: Self = Self(0x20);
    /// ECN echo.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);

    /// Whether all bits of `other` are set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits of both.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A TCP segment.
#[derive(Clone, Copy, Debug)]
pub struct TcpView<'a> {
    header: &'a [u8; HEADER_LEN],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> TcpView<'a> {
    /// Reads a segment that fills `data`.
    #[inline]
    pub fn parse(data: &'a [u8]) -> Result<Self, Malformed> {
        let (header, rest) =
            data.split_first_chunk::<HEADER_LEN>().ok_or(Malformed::Truncated(Layer::Tcp))?;
        let (options, payload) = (usize::from(header[12] >> 4) * 4)
            .checked_sub(HEADER_LEN)
            .and_then(|n| rest.split_at_checked(n))
            .ok_or(Malformed::HeaderLength(Layer::Tcp))?;
        Ok(Self { header, options, payload })
    }

    /// The sender's port.
    #[inline]
    pub const fn source_port(&self) -> u16 {
        u16::from_be_bytes([self.header[0], self.header[1]])
    }

    /// The receiver's port.
    #[inline]
    pub const fn destination_port(&self) -> u16 {
        u16::from_be_bytes([self.header[2], self.header[3]])
    }

    /// The sequence number.
    #[inline]
    pub const fn sequence(&self) -> u32 {
        let h = self.header;
        u32::from_be_bytes([h[4], h[5], h[6], h[7]])
    }

    /// The acknowledgement number.
    #[inline]
    pub const fn acknowledgement(&self) -> u32 {
        let h = self.header;
        u32::from_be_bytes([h[8], h[9], h[10], h[11]])
    }

    /// The control bits.
    #[inline]
    pub const fn flags(&self) -> TcpFlags {
        TcpFlags(self.header[13])
    }

    /// The window, unscaled.
    #[inline]
    pub const fn window(&self) -> u16 {
        u16::from_be_bytes([self.header[14], self.header[15]])
    }

    /// The checksum as received.
    #[inline]
    pub const fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.header[16], self.header[17]])
    }

    /// Whether header and payload add up with the pseudo header.
    #[inline]
    pub fn checksum_ok(&self, pseudo_header: Sum) -> bool {
        pseudo_header.bytes(self.header).bytes(self.options).bytes(self.payload).is_valid()
    }

    /// Octets of the header with its options.
    #[inline]
    pub const fn header_len(&self) -> usize {
        HEADER_LEN + self.options.len()
    }

    /// The options, uninterpreted.
    #[inline]
    pub const fn options(&self) -> &'a [u8] {
        self.options
    }

    /// The maximum segment size that a SYN announces.
    pub fn maximum_segment_size(&self) -> Option<u16> {
        let at = find_mss(self.options)?;
        let value = self.options.get(at..)?.first_chunk::<2>()?;
        Some(u16::from_be_bytes(*value))
    }

    /// What the segment carries.
    #[inline]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// Where the value of the MSS option (kind 2, length 4) is; stops at the first nonsense.
fn find_mss(options: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match options.get(at..)? {
            [0, ..] | [] => return None,
            [1, ..] => at += 1,
            [2, 4, _, _, ..] => return Some(at + 2),
            [_, len @ 2..=255, ..] => at += usize::from(*len),
            _ => return None,
        }
    }
}

/// Lowers the MSS that a SYN announces to `limit`, checksum included, and says whether it did. A UPF does so where
/// path MTU discovery can't be relied on: the tunnel headers take their share of the link's MTU.
pub fn clamp_mss(segment: &mut [u8], limit: u16) -> bool {
    let Ok(view) = TcpView::parse(segment) else { return false };
    if !view.flags().contains(TcpFlags::SYN) {
        return false;
    }
    let (Some(at), Some(old)) = (find_mss(view.options()), view.maximum_segment_size()) else {
        return false;
    };
    if old <= limit {
        return false;
    }
    let at = HEADER_LEN + at;
    let before = view.checksum();
    // An option may begin at an odd offset: then its octets lie in two words, and both sides of the sum are swapped.
    let after = if at.is_multiple_of(2) {
        checksum::update_u16(before, old, limit)
    } else {
        checksum::update_u16(before, old.swap_bytes(), limit.swap_bytes())
    };
    if let Some(place) = segment.get_mut(at..at + 2) {
        place.copy_from_slice(&limit.to_be_bytes());
    }
    if let Some(place) = segment.get_mut(16..18) {
        place.copy_from_slice(&after.to_be_bytes());
    }
    true
}

/// A header to be written, without options.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpHeader {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The sequence number.
    pub sequence: u32,
    /// The acknowledgement number.
    pub acknowledgement: u32,
    /// The control bits.
    pub flags: TcpFlags,
    /// The window.
    pub window: u16,
}

/// Writes a header with checksum zero; [`fill_checksum`] follows when the payload is there.
#[inline]
pub fn emit_header(out: &mut [u8; HEADER_LEN], header: &TcpHeader) {
    out[..2].copy_from_slice(&header.source_port.to_be_bytes());
    out[2..4].copy_from_slice(&header.destination_port.to_be_bytes());
    out[4..8].copy_from_slice(&header.sequence.to_be_bytes());
    out[8..12].copy_from_slice(&header.acknowledgement.to_be_bytes());
    out[12] = 0x50;
    out[13] = header.flags.0;
    out[14..16].copy_from_slice(&header.window.to_be_bytes());
    out[16..].fill(0);
}

/// Computes the checksum over a whole segment and writes it. False if the segment is shorter than a header.
#[inline]
pub fn fill_checksum(segment: &mut [u8], pseudo_header: Sum) -> bool {
    let Some(header) = segment.first_chunk_mut::<HEADER_LEN>() else { return false };
    header[16] = 0;
    header[17] = 0;
    let sum = pseudo_header.bytes(segment).finish().to_be_bytes();
    if let Some(header) = segment.first_chunk_mut::<HEADER_LEN>() {
        [header[16], header[17]] = sum;
    }
    true
}
