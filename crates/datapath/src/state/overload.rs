//! When more comes than can be done: who waits?
//!
//! **Problem.** A flow's first packet costs ten times what its others do. Where a flood of new flows (a port scan, a SYN flood, an
//! outage that ends) takes the time that known flows need, the receive queue overflows, and everybody's packets are lost alike. Not
//! so where the worker keeps up: a core that is busy has full bursts without end and loses nothing, and a core that learns flows
//! as fast as it can is no worse for it.
//!
//! **Model.** What is lost is lost where a queue is full, so it is the queue that says who must wait. After a full burst the port
//! is asked how many quarters of its queue are full ([`Datapath::queue_fills`](crate::Datapath::queue_fills)). Below one, new
//! flows come as they like; from then on fewer and fewer packets of unknown flows of a burst are brought to their rules, the rest
//! are dropped at the price of a look-up. A flow that has begun goes on, also while it is under question: what was found out of it was paid for,
//! and would be lost with its packets. But such a packet costs nearly as much as a flow's first one, and takes the place of one. So the queue settles where known flows and as many new ones as there is time for are
//! served, and known flows lose nothing as long as there is time for them and the look-ups.
//!
//! A port that can't tell (the kernel's, another process's) is taken as overloaded when its bursts have been full for longer than
//! its queue is deep. Its packets cost the worker so much that a part of each burst may be new flows even then.
//!
//! **When not to use it.** What another worker hands over is not limited here: it was received already.

use io::BURST;

/// Full bursts in a row before a port's queue is looked at: a burst of load that a small queue holds is none of overload.
const PATIENCE: u8 = 8;
/// Likewise where nothing is known of the queue: twice the descriptors that one has by default.
const PATIENCE_IN_THE_DARK: u8 = 32;
/// Packets of unknown flows that a burst may then bring.
const IN_THE_DARK: u32 = BURST as u32 / 4;
/// Likewise while no quarter of the queue, one, or two are full.
const ALLOWED: [u32; 3] = [u32::MAX, BURST as u32 / 2, BURST as u32 / 8];

/// A port's queue.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    /// Full bursts in a row.
    full: u8,
    /// Quarters of it that are full, if that is known.
    quarters: Option<u8>,
}

impl Queue {
    /// Packets of unknown flows that a burst may bring, where no burst need bring more than `least`.
    fn allows(self, least: u32) -> u32 {
        let most = match self.quarters {
            _ if self.full < PATIENCE => u32::MAX,
            Some(quarters) => ALLOWED.get(usize::from(quarters)).copied().unwrap_or(least),
            None if self.full < PATIENCE_IN_THE_DARK => u32::MAX,
            None => IN_THE_DARK,
        };
        most.max(least)
    }
}

/// What a worker knows of its ports' queues.
#[derive(Debug, Default)]
pub struct Overload {
    /// By port.
    queues: Vec<Queue>,
}

impl Overload {
    /// So many quarters of a port's queue are full, if that is known.
    pub fn fills(&mut self, port: u16, quarters: Option<u8>) {
        if let Some(queue) = self.queue(port) {
            queue.quarters = quarters;
        }
    }

    /// A burst of so many packets came from a port: how many of unknown flows it may bring to their rules. In overload as well it may
    /// always bring `least`.
    #[inline]
    pub fn allows(&mut self, port: u16, packets: usize, least: u32) -> u32 {
        let Some(queue) = self.queue(port) else { return least };
        queue.full = if packets >= BURST { queue.full.saturating_add(1) } else { 0 };
        queue.allows(least)
    }

    /// Likewise of packets of a port that did not come through the queue that fills: its overload is what it was.
    pub fn allows_beside(&self, port: u16, least: u32) -> u32 {
        self.queues.get(usize::from(port)).copied().unwrap_or_default().allows(least)
    }

    #[inline]
    fn queue(&mut self, port: u16) -> Option<&mut Queue> {
        let at = usize::from(port);
        if at >= self.queues.len() {
            self.queues.resize(at + 1, Queue::default());
        }
        self.queues.get_mut(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_does_not_fill_is_not_overloaded_however_long_its_bursts_are_full() {
        let mut overload = Overload::default();
        for _ in 0..300 {
            overload.fills(1, Some(0));
            assert_eq!(overload.allows(1, BURST, 1).min(100), 100);
        }
    }

    #[test]
    fn the_fuller_the_queue_the_fewer_begin_and_no_other_port_is_concerned() {
        let mut overload = Overload::default();
        for _ in 1..PATIENCE {
            overload.fills(1, Some(4));
            assert_eq!(overload.allows(1, BURST, 2).min(100), 100, "a burst of load");
        }
        for (quarters, most) in [(4, 2), (3, 2), (2, 8), (1, 32), (0, 100), (1, 32)] {
            overload.fills(1, Some(quarters));
            assert_eq!(overload.allows(1, BURST, 2).min(100), most);
            assert_eq!(overload.allows_beside(1, 3).min(100), most.max(3), "beside");
            assert_eq!(overload.allows(0, BURST - 1, 2).min(100), 100, "another port");
        }
        assert_eq!(overload.allows(1, BURST - 1, 2).min(100), 100, "the queue was emptied");
    }

    #[test]
    fn a_port_that_can_not_tell_is_overloaded_when_its_queue_is_never_emptied() {
        let mut overload = Overload::default();
        for _ in 1..PATIENCE_IN_THE_DARK {
            assert_eq!(overload.allows(1, BURST, 2).min(100), 100);
        }
        for _ in 0..300 {
            assert_eq!(overload.allows(1, BURST, 2).min(100), IN_THE_DARK);
        }
        assert_eq!(overload.allows(1, BURST - 1, 2).min(100), 100, "the queue was emptied");
    }
}
