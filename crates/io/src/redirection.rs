//! The redirection table of a NIC: which receive queue each value of the RSS hash leads to, changed while traffic runs.
//!
//! Entry `e` is for packets whose hash ends in the nine bits `e`, and with the hash of the subscriber's address an entry is a
//! shard. Moving a shard to another worker changes its entry; packets that took the old way may still be in the old queue, or
//! on their way through the NIC. [`Redirection::settled`] says when no more come: from then on, a receive call on the old queue
//! that yields less than was asked for has seen the last of them.

/// Entries in the table, as many as there are shards.
pub const ENTRIES: usize = 512;

/// Why the table was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedirectError {
    /// There is no such queue.
    #[error("there is no receive queue {queue}: the port has {queues}")]
    Queue {
        /// The queue asked for.
        queue: u16,
        /// How many there are.
        queues: u16,
    },
    /// The device refused.
    #[error("the port refused to change its redirection table: {0}")]
    Device(String),
}

/// A handle on a port's table. Every worker may have one.
pub trait Redirection: Send {
    /// From now on packets whose hash falls into these entries go to this queue. Entries beyond the table are ignored. On error
    /// nothing has changed.
    fn redirect(&mut self, entries: &[u16], queue: u16) -> Result<(), RedirectError>;

    /// Whether every packet that arrives from now on follows this handle's last change. Never blocks.
    fn settled(&mut self) -> bool;
}
