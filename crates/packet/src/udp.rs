//! UDP (RFC 768).

use crate::checksum::Sum;
use crate::{Layer, Malformed};

/// Octets of a UDP header.
pub const HEADER_LEN: usize = 8;

/// A UDP datagram.
#[derive(Clone, Copy, Debug)]
pub struct UdpView<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> UdpView<'a> {
    /// Reads a datagram; bytes behind its length are cut off. Length 0 (RFC 2675 jumbograms) is refused.
    #[inline]
    pub fn parse(data: &'a [u8]) -> Result<Self, Malformed> {
        let (header, rest) =
            data.split_first_chunk::<HEADER_LEN>().ok_or(Malformed::Truncated(Layer::Udp))?;
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let payload = length
            .checked_sub(HEADER_LEN)
            .and_then(|n| rest.get(..n))
            .ok_or(Malformed::TotalLength(Layer::Udp))?;
        Ok(Self { header, payload })
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

    /// Octets of header and payload.
    #[inline]
    pub const fn len(&self) -> usize {
        HEADER_LEN + self.payload.len()
    }

    /// Whether there is no payload.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }

    /// The checksum as received; 0 means that the sender computed none.
    #[inline]
    pub const fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.header[6], self.header[7]])
    }

    /// Whether header and payload add up with the pseudo header, or there is no checksum to check. Over IPv6 a
    /// missing checksum is acceptable for tunnels only (RFC 6935, RFC 6936): the caller looks at
    /// [`UdpView::checksum`] where that matters.
    #[inline]
    pub fn checksum_ok(&self, pseudo_header: Sum) -> bool {
        self.checksum() == 0 || pseudo_header.bytes(self.header).bytes(self.payload).is_valid()
    }

    /// What the datagram carries.
    #[inline]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// Writes a header in front of `payload_len` octets with checksum zero: "none" over IPv4 (RFC 768), and allowed for
/// GTP-U over IPv6 (RFC 6935, TS 29.281 §4.4.2).
#[inline]
pub fn emit_header(out: &mut [u8; HEADER_LEN], source_port: u16, destination_port: u16, payload_len: usize) {
    let [s0, s1] = source_port.to_be_bytes();
    let [d0, d1] = destination_port.to_be_bytes();
    let [l0, l1] = ((HEADER_LEN + payload_len) as u16).to_be_bytes();
    *out = [s0, s1, d0, d1, l0, l1, 0, 0];
}

/// Computes the checksum over a whole datagram (header with its checksum field, and payload) and writes it. False if
/// the datagram is shorter than a header.
#[inline]
pub fn fill_checksum(datagram: &mut [u8], pseudo_header: Sum) -> bool {
    let Some(header) = datagram.first_chunk_mut::<HEADER_LEN>() else { return false };
    header[6] = 0;
    header[7] = 0;
    let [c0, c1] = pseudo_header.bytes(datagram).finish_udp().to_be_bytes();
    if let Some(header) = datagram.first_chunk_mut::<HEADER_LEN>() {
        header[6] = c0;
        header[7] = c1;
    }
    true
}
