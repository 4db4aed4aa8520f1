//! Fragments of outer packets come together here, and packets that are too long are cut.

use crate::Reason;
use crate::datapath::Datapath;
use crate::meta::{Meta, packet_of};
use crate::network::{Context, build};
use crate::stages::parse::internal_header;
use crate::state::fragment::{Piece, cut_ipv4, dissect, join};
use io::{Frame, FramePool};

impl<F: Frame> Datapath<F> {
    /// A fragment of a packet to one of our own addresses.
    pub(crate) fn outer_fragment<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        frame: F,
    ) {
        let Some((key, fragment, offset, length)) = dissect(frame.bytes(), meta) else {
            self.counters.drop(Reason::Malformed);
            return;
        };
        let start = fragment.offset;
        let end = start + length as u32;
        // All but the last carry whole units of eight octets, and nothing exceeds an IP packet.
        if length == 0 || (fragment.more && length % 8 != 0) || end > 65_500 {
            self.counters.drop(Reason::Malformed);
            return;
        }
        let piece = Piece { start, end, at: offset, frame };
        let Some(pieces) = self.reassembly.add(key, fragment.more, piece, cx.now, &mut self.counters) else {
            return;
        };
        let port = self.network.fib.interface(meta.interface).map_or(0, |interface| interface.port);
        match join(cx.pool, &pieces) {
            Some(whole) => {
                self.counters.consumed += pieces.len() as u64;
                self.counters.originated += 1;
                self.again(cx, port, whole);
            }
            None => pieces.iter().for_each(|_| self.counters.drop(Reason::NoBuffer)),
        }
    }

    /// Cuts a UE's IPv4 packet into internal frames of at most `room` octets each (RFC 791 §3.2), each with its length.
    /// Empty if there are no buffers, or the room is absurd.
    pub(crate) fn cut<P: FramePool<Frame = F>>(
        &mut self,
        cx: &mut Context<'_, F, P>,
        meta: &Meta,
        frame: &F,
        room: u16,
    ) -> Vec<(F, u16)> {
        let fragments = cut_ipv4(packet_of(frame.bytes(), meta), room as usize);
        let count = fragments.len();
        let mut frames = Vec::with_capacity(count);
        for fragment in fragments {
            let Some(frame) = build(cx.pool, &[&internal_header(false), &fragment]) else {
                return Vec::new();
            };
            frames.push((frame, fragment.len() as u16));
        }
        self.counters.originated += count as u64;
        frames
    }
}
