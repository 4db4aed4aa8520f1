//! Generic Routing Encapsulation (RFC 2784) with key and sequence number (RFC 2890).

use crate::{EtherType, Layer, Malformed};

/// Octets of a header without options.
pub const HEADER_LEN: usize = 4;
/// Octets of the longest header that [`emit_header`] writes: key and sequence number.
pub const MAX_HEADER_LEN: usize = 12;

const CHECKSUM: u8 = 0x80;
const ROUTING: u8 = 0x40;
const KEY: u8 = 0x20;
const SEQUENCE: u8 = 0x10;

/// A GRE packet.
#[derive(Clone, Copy, Debug)]
pub struct GreView<'a> {
    protocol: EtherType,
    key: Option<u32>,
    sequence: Option<u32>,
    payload: &'a [u8],
}

impl<'a> GreView<'a> {
    /// Reads a header. One with source routing (RFC 1701), which a receiver must discard (RFC 2784 §2.3), is refused; a
    /// checksum is passed over.
    pub fn parse(data: &'a [u8]) -> Result<Self, Malformed> {
        let truncated = Malformed::Truncated(Layer::Gre);
        let (&[flags, version, p0, p1], mut rest) = data.split_first_chunk().ok_or(truncated)?;
        if version & 7 != 0 {
            return Err(Malformed::Version(Layer::Gre));
        }
        if flags & ROUTING != 0 || flags & 0x0f != 0 {
            return Err(Malformed::Field(Layer::Gre));
        }
        let mut word = |present: bool| {
            if !present {
                return Ok(None);
            }
            let (word, after) = rest.split_first_chunk::<4>().ok_or(truncated)?;
            rest = after;
            Ok(Some(u32::from_be_bytes(*word)))
        };
        word(flags & CHECKSUM != 0)?;
        let (key, sequence) = (word(flags & KEY != 0)?, word(flags & SEQUENCE != 0)?);
        Ok(Self { protocol: EtherType(u16::from_be_bytes([p0, p1])), key, sequence, payload: rest })
    }

    /// What the payload is.
    pub const fn protocol(&self) -> EtherType {
        self.protocol
    }

    /// Which of several tunnels between two stations it is.
    pub const fn key(&self) -> Option<u32> {
        self.key
    }

    /// The packet's number in the tunnel.
    pub const fn sequence(&self) -> Option<u32> {
        self.sequence
    }

    /// What it carries.
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// Octets of a header with these options.
pub const fn header_len(key: Option<u32>, sequence: Option<u32>) -> usize {
    HEADER_LEN + if key.is_some() { 4 } else { 0 } + if sequence.is_some() { 4 } else { 0 }
}

/// Writes a header of [`header_len`] octets to the front of `out`. False, and nothing written, if there is no room.
pub fn emit_header(out: &mut [u8], protocol: EtherType, key: Option<u32>, sequence: Option<u32>) -> bool {
    let Some(out) = out.get_mut(..header_len(key, sequence)) else { return false };
    let flags = if key.is_some() { KEY } else { 0 } | if sequence.is_some() { SEQUENCE } else { 0 };
    let [p0, p1] = protocol.0.to_be_bytes();
    let words = [Some([flags, 0, p0, p1]), key.map(u32::to_be_bytes), sequence.map(u32::to_be_bytes)];
    for (place, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(words.into_iter().flatten()) {
        *place = word;
    }
    true
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn headers_have_these_octets_and_are_read_back() {
        let cases: [(Option<u32>, Option<u32>, &[u8]); 4] = [
            (None, None, &[0, 0, 0x08, 0]),
            (Some(0x0102_0304), None, &[0x20, 0, 0x08, 0, 1, 2, 3, 4]),
            (None, Some(7), &[0x10, 0, 0x08, 0, 0, 0, 0, 7]),
            (Some(5), Some(u32::MAX), &[0x30, 0, 0x08, 0, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff]),
        ];
        for (key, sequence, octets) in cases {
            let mut out = [0xaa; MAX_HEADER_LEN];
            assert!(emit_header(&mut out, EtherType::IPV4, key, sequence));
            assert_eq!(&out[..octets.len()], octets);
            assert!(out[octets.len()..].iter().all(|octet| *octet == 0xaa));
            let packet = [octets, b"ip"].concat();
            let view = GreView::parse(&packet).unwrap();
            assert_eq!((view.protocol(), view.key(), view.sequence()), (EtherType::IPV4, key, sequence));
            assert_eq!(view.payload(), b"ip");
            let short = &mut [0; MAX_HEADER_LEN][..octets.len() - 1];
            assert!(!emit_header(short, EtherType::IPV4, key, sequence));
            assert_eq!(
                GreView::parse(&octets[..octets.len() - 1]).unwrap_err(),
                Malformed::Truncated(Layer::Gre)
            );
        }
    }

    #[test]
    fn a_checksum_is_passed_over_and_other_forms_are_refused() {
        let view = GreView::parse(&[0xb0, 0, 0x86, 0xdd, 9, 9, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 3]).unwrap();
        assert_eq!((view.key(), view.sequence(), view.payload()), (Some(1), Some(2), &[3][..]));
        assert_eq!(GreView::parse(&[0, 1, 0x88, 0x0b]).unwrap_err(), Malformed::Version(Layer::Gre));
        assert_eq!(GreView::parse(&[0x40, 0, 8, 0]).unwrap_err(), Malformed::Field(Layer::Gre));
        assert_eq!(GreView::parse(&[0x08, 0, 8, 0]).unwrap_err(), Malformed::Field(Layer::Gre));
    }
}
