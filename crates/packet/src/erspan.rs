//! ERSPAN type III (draft-foschiano-erspan-03 §4.3): mirrored frames in GRE, with a session, a time and a direction.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------+-----------------------+-----+---+-+-------------------+
//! |  Ver  |          VLAN         | COS |BSO|T|     Session ID    |
//! +-------+-----------------------+-----+---+-+-------------------+
//! |                           Timestamp                           |
//! +-------------------------------+-+---------+-----------+-+---+-+
//! |              SGT              |P|    FT   |   Hw ID   |D|Gra|O|
//! +-------------------------------+-+---------+-----------+-+---+-+
//! ```
//!
//! The GRE header in front has the sequence number and the protocol type [`EtherType::ERSPAN_III`](crate::EtherType).

use crate::{Layer, Malformed};

/// Octets of the header, without a platform specific subheader.
pub const HEADER_LEN: usize = 12;
/// Octets of a platform specific subheader.
pub const SUBHEADER_LEN: usize = 8;
/// The greatest session ID.
pub const MAX_SESSION: u16 = 0x3ff;
/// The version field of type III.
const VERSION: u8 = 2;

/// Which way the mirrored frame went, seen from the device that mirrors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Received (D = 0).
    Ingress,
    /// Sent (D = 1).
    Egress,
}

/// The unit of the timestamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Granularity {
    /// 100 µs.
    Micros100,
    /// 100 ns.
    Nanos100,
    /// IEEE 1588: the nanoseconds of a PTP timestamp.
    Ieee1588,
    /// As the subheader says.
    User,
}

/// What a header says of a mirrored Ethernet frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Erspan {
    /// Which mirror session, at most [`MAX_SESSION`].
    pub session: u16,
    /// The frame was cut.
    pub truncated: bool,
    /// Its direction.
    pub direction: Direction,
    /// The unit of `timestamp`.
    pub granularity: Granularity,
    /// When it was mirrored, modulo 2^32.
    pub timestamp: u32,
}

/// An ERSPAN type III packet (the payload of GRE).
#[derive(Clone, Copy, Debug)]
pub struct ErspanView<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> ErspanView<'a> {
    /// Reads a header; a platform specific subheader is passed over.
    pub fn parse(data: &'a [u8]) -> Result<Self, Malformed> {
        let truncated = Malformed::Truncated(Layer::Erspan);
        let (header, rest) = data.split_first_chunk::<HEADER_LEN>().ok_or(truncated)?;
        let [first, .., last] = header;
        if first >> 4 != VERSION {
            return Err(Malformed::Version(Layer::Erspan));
        }
        let subheader = if last & 1 != 0 { SUBHEADER_LEN } else { 0 };
        Ok(Self { header, payload: rest.get(subheader..).ok_or(truncated)? })
    }

    /// What the header says.
    pub const fn header(&self) -> Erspan {
        let [_, _, s0, s1, t0, t1, t2, t3, _, _, _, last] = *self.header;
        Erspan {
            session: u16::from_be_bytes([s0, s1]) & MAX_SESSION,
            truncated: s0 & 0x04 != 0,
            direction: if last & 0x08 != 0 { Direction::Egress } else { Direction::Ingress },
            granularity: match last >> 1 & 3 {
                0 => Granularity::Micros100,
                1 => Granularity::Nanos100,
                2 => Granularity::Ieee1588,
                _ => Granularity::User,
            },
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
        }
    }

    /// Whether the payload is an Ethernet frame: P is set, and the frame type (FT) says so.
    pub const fn is_ethernet(&self) -> bool {
        let [_, _, _, _, _, _, _, _, _, _, kind, _] = *self.header;
        kind & 0xfc == 0x80
    }

    /// The mirrored frame.
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// Writes the header in front of a mirrored Ethernet frame: no VLAN, COS, security group, hardware ID or subheader.
pub const fn emit_header(out: &mut [u8; HEADER_LEN], header: &Erspan) {
    let [s0, s1] = (header.session & MAX_SESSION | (header.truncated as u16) << 10).to_be_bytes();
    let [t0, t1, t2, t3] = header.timestamp.to_be_bytes();
    let direction = matches!(header.direction, Direction::Egress) as u8;
    let granularity = match header.granularity {
        Granularity::Micros100 => 0,
        Granularity::Nanos100 => 1,
        Granularity::Ieee1588 => 2,
        Granularity::User => 3,
    };
    *out = [VERSION << 4, 0, s0, s1, t0, t1, t2, t3, 0, 0, 0x80, direction << 3 | granularity << 1];
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn headers_have_these_octets_and_are_read_back() {
        let plain = Erspan {
            session: 0x2a5,
            truncated: false,
            direction: Direction::Ingress,
            granularity: Granularity::Nanos100,
            timestamp: 0x0102_0304,
        };
        let cut = Erspan { truncated: true, direction: Direction::Egress, ..plain };
        let coarse = Erspan { session: 1, granularity: Granularity::Micros100, ..plain };
        let cases = [
            (plain, [0x20, 0, 0x02, 0xa5, 1, 2, 3, 4, 0, 0, 0x80, 0x02]),
            (cut, [0x20, 0, 0x06, 0xa5, 1, 2, 3, 4, 0, 0, 0x80, 0x0a]),
            (coarse, [0x20, 0, 0x00, 0x01, 1, 2, 3, 4, 0, 0, 0x80, 0x00]),
        ];
        for (header, octets) in cases {
            let mut out = [0xaa; HEADER_LEN];
            emit_header(&mut out, &header);
            assert_eq!(out, octets);
            let packet = [&octets[..], b"frame"].concat();
            let view = ErspanView::parse(&packet).unwrap();
            assert_eq!((view.header(), view.is_ethernet(), view.payload()), (header, true, &b"frame"[..]));
            assert_eq!(
                ErspanView::parse(&octets[..HEADER_LEN - 1]).unwrap_err(),
                Malformed::Truncated(Layer::Erspan)
            );
        }
    }

    #[test]
    fn a_subheader_is_passed_over_and_type_ii_is_refused() {
        let mut packet = [0x20, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x80, 0x01, 9, 9, 9, 9, 9, 9, 9, 9, 5];
        assert_eq!(ErspanView::parse(&packet).unwrap().payload(), [5]);
        assert_eq!(ErspanView::parse(&packet[..19]).unwrap_err(), Malformed::Truncated(Layer::Erspan));
        packet[0] = 0x10;
        assert_eq!(ErspanView::parse(&packet).unwrap_err(), Malformed::Version(Layer::Erspan));
        let ip = [0x20, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x08, 0];
        assert!(!ErspanView::parse(&ip).unwrap().is_ethernet());
    }
}
