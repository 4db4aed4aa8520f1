//! Records of flows on their way to control: they give way to everything else.

use crate::worker::{Answer, Worker};
use io::Port;
use rtrb::Producer;
use std::collections::VecDeque;
use std::time::Duration;
use tables::Nanos;

/// A worker that stops tells of its flows for this long, in nanoseconds: some million of them.
const CLOSING: u64 = 5 * Nanos::SECOND;
/// Events that [`datapath::Datapath::close_flows`] makes at a time, at most.
const AT_A_TIME: usize = 16;
/// While control has no room.
pub(crate) const NAP: Duration = Duration::from_micros(100);

/// Whether so many more events fit into the half of the ring that records may use. So they never keep an answer waiting, and a
/// control thread that stands still costs records, not memory.
pub(crate) fn have_room(ring: &Producer<Answer>, backlog: &VecDeque<Answer>, more: usize) -> bool {
    let capacity = ring.buffer().capacity();
    let taken = capacity.saturating_sub(ring.slots()) + backlog.len();
    taken == 0 || taken + more <= capacity / 2
}

impl<P: Port> Worker<P> {
    /// Tells of the flows that live while the worker stops, as fast as control takes it.
    pub(crate) fn close_flows(&mut self) {
        let until = self.clock.now().plus(CLOSING);
        let mut more = true;
        while more || !self.backlog.is_empty() {
            let now = self.clock.now();
            if now >= until || self.answers.is_abandoned() {
                break;
            }
            if more && have_room(&self.answers, &self.backlog, AT_A_TIME) {
                more = self.datapath.close_flows(now, &mut self.out.events);
                self.flush(now);
            }
            if self.answer() == 0 {
                std::thread::sleep(NAP);
            }
        }
        self.datapath.abandon_flows();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rtrb::RingBuffer;

    #[test]
    fn half_of_the_ring_is_left_to_answers() {
        let (mut ring, mut control) = RingBuffer::new(8);
        let mut backlog = VecDeque::new();
        assert!(
            have_room(&ring, &backlog, AT_A_TIME),
            "into an empty ring everything goes, or nobody was ever told"
        );
        (0..2).for_each(|fence| ring.push(Answer::Fence(fence)).unwrap());
        assert!(have_room(&ring, &backlog, 2) && !have_room(&ring, &backlog, 3));
        backlog.extend([Answer::Fence(2), Answer::Fence(3)]);
        assert!(!have_room(&ring, &backlog, 1), "what waits for the ring counts");
        backlog.clear();
        control.pop().unwrap();
        assert!(have_room(&ring, &backlog, 3));
    }
}
