//! QFI and DSCP: how a QoS flow's treatment is told to the networks on either side (TS 23.501 §5.8.2.7, RFC 4594).
//!
//! A FAR's Transport Level Marking says the outer header's DSCP (TS 29.244 §5.4.5). Where an SMF sends none, the operator's table
//! does, by the packet's QFI; the same table may mark the UE's own packets towards the data network. The other way,
//! a packet from the data network whose rules name no QFI gets one by its DSCP.
//!
//! A packet that its meters found yellow leaves with the second drop precedence of its class, if its class is an assured
//! forwarding one (RFC 2597 §2), whoever chose that class: whoever has to drop drops it first. Other code points stay, since nothing is
//! defined for them (RFC 2698 §4: the colour is coded as the PHB says).

use crate::meta::{Kind, Meta, NO_QFI};
use packet::{Dscp, Qfi};
use tables::Colour;

/// What is marked how. The default marks nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marking {
    /// By QFI: ToS octet of outer headers, or [`KEEP`].
    tos: [u8; 64],
    /// By QFI: ToS octet of the UE's own packets, or [`KEEP`].
    own: [u8; 64],
    /// By DSCP: QFI, or [`NO_QFI`].
    qfi: [u8; 64],
    /// Whether anything is said in each table.
    outer: bool,
    inner: bool,
    carried: bool,
}

/// No ToS octet: the lower two bits are never set in one of ours.
const KEEP: u8 = 0xff;

impl Default for Marking {
    fn default() -> Self {
        let keep = [KEEP; 64];
        Self { tos: keep, own: keep, qfi: [NO_QFI; 64], outer: false, inner: false, carried: false }
    }
}

impl Marking {
    /// Packets of this QFI get this DSCP in their outer header, where an SMF says none.
    pub fn set_outer(&mut self, qfi: Qfi, dscp: Dscp) {
        if let Some(to) = self.tos.get_mut(usize::from(qfi.get())) {
            *to = dscp.to_tos();
            self.outer = true;
        }
    }

    /// Packets from the data network with this DSCP get this QFI, if their rules have none.
    pub fn set_qfi(&mut self, dscp: Dscp, qfi: Qfi) {
        if let Some(to) = self.qfi.get_mut(usize::from(dscp.get())) {
            *to = qfi.get();
            self.carried = true;
        }
    }

    /// The UE's own packets that come with this QFI leave for the data network with this DSCP.
    pub fn set_inner(&mut self, qfi: Qfi, dscp: Dscp) {
        if let Some(to) = self.own.get_mut(usize::from(qfi.get())) {
            *to = dscp.to_tos();
            self.inner = true;
        }
    }

    /// Whether anything is marked.
    pub(crate) const fn is_any(&self) -> bool {
        self.outer || self.inner || self.carried
    }

    /// The QFI that a packet came with, or that its DSCP stands for.
    #[inline(always)]
    pub(crate) fn carried(&self, meta: &Meta) -> u8 {
        if self.carried { self.stood_for(meta) } else { meta.qfi }
    }

    #[inline(never)]
    fn stood_for(&self, meta: &Meta) -> u8 {
        if meta.qfi != NO_QFI || meta.kind != Kind::Plain {
            return meta.qfi;
        }
        let dscp = Dscp::from_tos(meta.tos);
        self.qfi.get(usize::from(dscp.get())).copied().unwrap_or(NO_QFI)
    }

    /// ToS octet of an outer header. `own`: what the rule says; `by_qfi`: it says nothing.
    #[inline(always)]
    pub(crate) fn outer(&self, own: u8, by_qfi: bool, qfi: u8, colour: Colour) -> u8 {
        let mut tos = own;
        if self.outer && by_qfi {
            tos = said(&self.tos, qfi).unwrap_or(own);
        }
        if colour == Colour::Green { tos } else { demoted(tos) }
    }

    /// Marks the UE's own packet, on its way to the data network.
    #[inline(always)]
    pub(crate) fn inner(&self, frame: &mut [u8], meta: &Meta, colour: Colour) {
        if self.inner || colour != Colour::Green {
            self.mark(frame, meta, colour);
        }
    }

    #[inline(never)]
    fn mark(&self, frame: &mut [u8], meta: &Meta, colour: Colour) {
        let before = tos(frame, meta);
        // Of what no table speaks, the sender's own code point says how it may be dropped.
        let mut after = said(&self.own, meta.qfi).map_or(before, |own| own | before & 3);
        if colour != Colour::Green {
            after = demoted(after);
        }
        if after != before
            && let Some(packet) = frame.get_mut(meta.inner as usize..)
        {
            // The packet was parsed: this can't fail.
            let _ = packet::rewrite::set_tos(packet, after);
        }
    }
}

/// What a table says of a QFI; of [`NO_QFI`] it says nothing.
#[inline(always)]
fn said(table: &[u8; 64], qfi: u8) -> Option<u8> {
    table.get(usize::from(qfi)).copied().filter(|tos| *tos != KEEP)
}

/// The ToS octet of a yellow packet: AFx1 becomes AFx2 (RFC 2597 §2), ECN stays.
const fn demoted(tos: u8) -> u8 {
    let (class, precedence) = (tos >> 5, tos >> 2 & 7);
    if class >= 1 && class <= 4 && precedence == 2 { tos + 8 } else { tos }
}

/// The ToS octet or traffic class of the UE's packet, as it is now.
fn tos(frame: &[u8], meta: &Meta) -> u8 {
    let octet = |at: usize| frame.get(meta.inner as usize + at).copied().unwrap_or(0);
    if meta.v6 { octet(0) << 4 | octet(1) >> 4 } else { octet(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_drop_precedence_of_assured_forwarding_is_demoted() {
        // AF11 to AF12, AF41 to AF42, whatever ECN says.
        assert_eq!((demoted(10 << 2), demoted(34 << 2 | 1)), (12 << 2, 36 << 2 | 1));
        for dscp in [0, 8, 12, 14, 36, 38, 42, 46, 48, 56] {
            assert_eq!(demoted(dscp << 2), dscp << 2);
        }
    }

    #[test]
    fn tables_say_nothing_until_told() {
        let mut marking = Marking::default();
        assert_eq!(marking.outer(0x28, true, 5, Colour::Green), 0x28);
        assert_eq!(marking.outer(0x28, false, 5, Colour::Yellow), 0x30);
        marking.set_outer(Qfi::from_wire(5), Dscp::from_tos(0xb8));
        assert_eq!(marking.outer(0, true, 5, Colour::Yellow), 0xb8);
        assert_eq!(marking.outer(0, false, 5, Colour::Green), 0, "the rule has its own");
        assert_eq!(marking.outer(0, true, 6, Colour::Green), 0);
        assert_eq!(marking.outer(0, true, NO_QFI, Colour::Green), 0);
    }
}
