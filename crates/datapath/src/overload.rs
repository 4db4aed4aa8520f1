//! When more comes than can be done: who waits?
//!
//! A flow's first packet costs ten times what its others do. Where a flood of new flows (a port scan, a SYN flood, an outage that
//! ends) takes the time that known flows need, the receive queue overflows and everybody's packets are lost alike. So a
//! port whose bursts have been full for longer than its queue is deep is taken as overloaded, and as long as it is, a burst
//! brings only so many packets of unknown flows to their rules; the rest are dropped at the price of a look-up. New flows then begin more
//! slowly, and known ones go on.

use io::BURST;

/// Full bursts in a row that say that a queue is never emptied: twice the descriptors that a queue has by default.
const FULL_BURSTS: u8 = 32;

/// What a worker knows of its ports' queues.
#[derive(Debug, Default)]
pub struct Overload {
    /// Full bursts in a row, by port.
    full: Vec<u8>,
    /// Packets of unknown flows that this burst may still bring.
    left: u32,
}

impl Overload {
    /// A burst of so many packets came from a port; in overload it may bring `allowed` packets of unknown flows.
    #[inline]
    pub fn begin(&mut self, port: u16, packets: usize, allowed: u32) {
        let at = usize::from(port);
        if at >= self.full.len() {
            self.full.resize(at + 1, 0);
        }
        let Some(full) = self.full.get_mut(at) else { return };
        *full = if packets >= BURST { full.saturating_add(1) } else { 0 };
        self.left = if *full >= FULL_BURSTS { allowed } else { u32::MAX };
    }

    /// Packets of a port that did not come through the queue that fills: its overload is what it was.
    pub fn begin_beside(&mut self, port: u16, allowed: u32) {
        let full = self.full.get(usize::from(port)).copied().unwrap_or(0);
        self.left = if full >= FULL_BURSTS { allowed } else { u32::MAX };
    }

    /// Packets that come from elsewhere than a port.
    pub const fn begin_unlimited(&mut self) {
        self.left = u32::MAX;
    }

    /// Packets of unknown flows that this burst may still bring to their rules.
    pub const fn left(&self) -> u32 {
        self.left
    }

    /// Whether one more packet of an unknown flow may be brought to its rules.
    #[inline]
    pub const fn admits(&mut self) -> bool {
        let admits = self.left > 0;
        self.left = self.left.saturating_sub(1);
        admits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_is_never_emptied_is_overloaded_and_no_other() {
        let mut overload = Overload::default();
        let admitted = |overload: &mut Overload| (0..100).filter(|_| overload.admits()).count();
        for _ in 1..FULL_BURSTS {
            overload.begin(1, BURST, 2);
            assert_eq!(admitted(&mut overload), 100);
        }
        for _ in 0..300 {
            overload.begin(1, BURST, 2);
            assert_eq!(admitted(&mut overload), 2);
            overload.begin_beside(1, 3);
            assert_eq!(admitted(&mut overload), 3, "still");
            overload.begin(0, BURST - 1, 2);
            assert_eq!(admitted(&mut overload), 100, "another port");
        }
        overload.begin(1, BURST - 1, 2);
        assert_eq!(admitted(&mut overload), 100, "the queue was emptied");
    }
}
