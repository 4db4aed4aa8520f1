//! Frames that are held back until something else arrives: the other fragments of their packet, or a neighbour's MAC address.
//!
//! Anybody who reaches an interface can make a worker hold frames, and each is a buffer that packets in service need. So there is one
//! budget for all of them, a share of the packet pool, and when it is spent the frame that waits for longest is given up:
//! what is answered at all is answered soon.

use crate::Reason;
use crate::datapath::Datapath;
use io::Frame;

impl<F: Frame> Datapath<F> {
    /// Frames that may be held back at a time.
    pub const fn held_limit(&self) -> usize {
        self.config.held_frames
    }

    /// Gives up what waits for longest until the budget is kept. Whatever holds frames is followed by this before the next burst.
    pub(crate) fn keep_budget(&mut self) {
        while self.counters.held > self.config.held_frames as u64 {
            let neighbours = &mut self.network.neighbours;
            match (self.reassembly.oldest(), neighbours.oldest()) {
                (Some(fragments), frames) if frames.is_none_or(|frames| fragments <= frames) => {
                    self.reassembly.give_up(&mut self.counters);
                }
                _ => {
                    let Some(frame) = neighbours.give_up() else { return };
                    self.counters.held -= 1;
                    self.counters.drop(Reason::NeighbourPending);
                    drop(frame);
                }
            }
        }
    }
}
