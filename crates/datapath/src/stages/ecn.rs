//! Congestion marks across tunnels (RFC 6040, normal mode).
//!
//! A router on N3 that is congested marks the only header it sees, the outer one. So an outer header gets the ECN field of the UE's own
//! packet, lest a packet be dropped that could have been marked (§4.1); and where the tunnel ends, what was marked on the way is
//! entered in the UE's packet (§4.2, figure 4). Of a sender that knows no ECN a mark would tell nobody: the packet is dropped, which
//! tells it as well.
//!
//! A packet that goes from one tunnel into another leaves the first and enters the second.

use crate::meta::Meta;

const NOT_ECT: u8 = 0b00;
const ECT_1: u8 = 0b01;
const ECT_0: u8 = 0b10;
const CE: u8 = 0b11;
/// The field in a ToS octet or traffic class.
const FIELD: u8 = 0b11;

/// The ECN field of a UE's packet: as it came, and as it leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ecn {
    before: u8,
    after: u8,
}

impl Ecn {
    /// With what the tunnel has met that the packet came through. `None`: it must be dropped.
    #[inline(always)]
    pub const fn of(meta: &Meta) -> Option<Self> {
        let before = meta.tos & FIELD;
        if meta.outer_tos & FIELD == NOT_ECT {
            return Some(Self { before, after: before });
        }
        Self::met(meta.outer_tos & FIELD, before)
    }

    #[cold]
    #[inline(never)]
    const fn met(outer: u8, before: u8) -> Option<Self> {
        match combined(outer, before) {
            Some(after) => Some(Self { before, after }),
            None => None,
        }
    }

    /// As it leaves: outer headers get the same.
    #[inline(always)]
    pub const fn field(self) -> u8 {
        self.after
    }

    /// Enters what was met in the UE's packet.
    #[inline(always)]
    pub fn enter(self, frame: &mut [u8], meta: &Meta) {
        if self.after != self.before {
            self.write(frame, meta);
        }
    }

    #[inline(never)]
    fn write(self, frame: &mut [u8], meta: &Meta) {
        let marked = meta.tos & !FIELD | self.after;
        if let Some(packet) = frame.get_mut(meta.inner as usize..) {
            // The packet was parsed: this can't fail.
            let _ = packet::rewrite::set_tos(packet, marked);
        }
    }
}

/// Figure 4 of RFC 6040.
const fn combined(outer: u8, inner: u8) -> Option<u8> {
    match (outer, inner) {
        (CE, NOT_ECT) => None,
        (CE, _) => Some(CE),
        (ECT_1, ECT_0) => Some(ECT_1),
        _ => Some(inner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figure_4_of_rfc_6040() {
        // Columns: the outer header says Not-ECT, ECT(0), ECT(1), CE.
        for (inner, row) in [
            (NOT_ECT, [Some(NOT_ECT), Some(NOT_ECT), Some(NOT_ECT), None]),
            (ECT_0, [Some(ECT_0), Some(ECT_0), Some(ECT_1), Some(CE)]),
            (ECT_1, [Some(ECT_1), Some(ECT_1), Some(ECT_1), Some(CE)]),
            (CE, [Some(CE); 4]),
        ] {
            assert_eq!([NOT_ECT, ECT_0, ECT_1, CE].map(|outer| combined(outer, inner)), row, "{inner:02b}");
        }
    }
}
