//! What a call into the datapath leaves behind: frames to send, frames for other workers, news for the control side.

use crate::command::Event;
use crate::hand_off::Parsed;
use io::{BURST, Frame};

/// The results of [`crate::Datapath`]'s methods. The engine keeps one for each worker and empties it after each call.
///
/// Everything here is reserved once and reused, so that the packet path doesn't allocate; only an exceptional call
/// (the flush of many buffered packets) makes a list grow.
#[derive(Debug)]
pub struct Outbox<F> {
    /// Complete frames by the port that sends them, in order.
    pub transmit: Vec<Vec<F>>,
    /// Frames that belong to another worker's shard. They go to [`crate::Datapath::process_handed_off`] of the shard's owner.
    pub hand_off: Parsed<F>,
    /// What the control side has to know.
    pub events: Vec<Event>,
}

impl<F: Frame> Outbox<F> {
    /// An empty outbox for a machine of `ports` ports.
    pub fn new(ports: usize) -> Self {
        Self {
            transmit: (0..ports).map(|_| Vec::with_capacity(4 * BURST)).collect(),
            hand_off: Parsed::with_capacity(4 * BURST),
            events: Vec::with_capacity(BURST),
        }
    }

    /// Frames waiting to be sent, all ports together.
    pub fn frames(&self) -> usize {
        self.transmit.iter().map(Vec::len).sum()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.frames() == 0 && self.hand_off.is_empty() && self.events.is_empty()
    }
}
