//! How shards go from one worker to another while their packets keep coming.
//!
//! # The problem
//! A packet of a shard may be in any of five places when the shard is to move: in the giver's receive queues, in the NIC on its way
//! there, in a ring from another worker to the giver, in the giver's hands, or behind it, waiting to be sent. None may be lost, none may
//! be overtaken by a later one of its flow, and nobody but the two may be held up.
//!
//! # The protocol
//! Four parts: the *giver*, the *receiver*, all *others*, and control, which only says that it should be. [`Mover`] is the part of
//! one worker, without rings, queues or threads.
//!
//! 1. Control makes sure that the giver has carried out all orders for these shards, and gives the receiver the order to take them.
//!    Later orders go to the receiver, which keeps them until the shards are there.
//! 2. The receiver begins to **park** packets of these shards; names itself in the table of owners ([`crate::owners`]); changes the
//!    NIC's redirection table; and tells all workers [`Word::Switched`].
//! 3. Every other worker answers **to the giver**: [`Word::Drained`]. It reads the table of owners for each packet that it hands off, so
//!    none that it hands off from now on goes to the giver, and the ring between them is first in, first out: what it handed off before is
//!    in front of its word. The receiver says the same when the NIC says that the change has settled ([`io::Redirection::settled`]): no
//!    packet enters the giver's queues any more.
//! 4. The giver goes on as before until it has heard from all, and has then served what waits in each of its receive queues: as many
//!    packets as waited, or until one was seen empty if a port can't tell. The giver packs
//!    the shards: a packet that still reaches it, because no NIC can be told, is handed to the receiver from now on. It waits until
//!    what it sent before is on the wire, and passes the shards through its ring: [`Word::Given`].
//! 5. The receiver adopts them, carries out the orders that it kept, lets the parked packets go first, and reports.
//!
//! # Invariants
//! - **One owner.** The box with the shard is in one place: the giver's table, the ring, or the receiver's table. Rust's ownership says
//!   so; no flag does.
//! - **Nothing is lost.** Until it gives the shards away, the giver serves what reaches it; a packet that reaches it later is handed to
//!   whom the table names. The receiver parks or serves. Only a full parking place ([`Parking`](datapath::Reason::MoveParkingFull)) or a
//!   full ring loses packets, each under its name.
//! - **Nothing is overtaken.** A flow's packets take one way: one queue, or one ring. By that way, those before the switch reach the
//!   giver before the word or the empty queue that the giver waits for; those after reach the receiver, which serves them after it has
//!   the shards.
//! - **Nobody waits for long.** A worker that does not answer delays a move by no more than the giver's patience; then the
//!   giver passes the shards on all the same, which is counted (`hurried`): a late packet is then handed on and may have been overtaken.
//! - **No lock, no wait**: each part acts when it is its turn in its own loop. One move runs at a time, of up to [`BATCH`] shards from
//!   one giver to one receiver, so that none can wait for another.
//!
//! The first three are what the test `moves::model` checks under every order of steps that a scheduler comes up with, and
//! `tests/moves.rs` on running workers, by numbers in every packet.
//!
//! # The cost
//! Packets of other shards notice nothing but the giver's and the receiver's few microseconds of packing. Those of the moved shards wait
//! from the switch until the giver has served its queue: as long as a full queue takes in overload, some microseconds otherwise. A
//! shard with a thousand sessions moves as fast as an empty one: what grows with the sessions is behind the pointer.
//!
//! # What is not moved
//! A worker's memory of first fragments, of fragments being reassembled and of frames that wait for a neighbour's address stays: a packet
//! that is in pieces across a move may be judged by its addresses alone.

mod director;
#[cfg(test)]
mod model;
mod mover;

pub use director::MoveCounters;
pub(crate) use director::{Director, Moved};
pub(crate) use mover::{Heard, Mover, Step, Taken};

use session::ShardId;
use std::sync::Arc;

/// The most shards that move at once: adopting that many holds up a worker for some ten microseconds.
pub const BATCH: usize = 32;

/// Some shards go from one worker to another.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Move {
    /// Each move has its own.
    pub number: u64,
    pub from: usize,
    pub to: usize,
    /// All of them `from`'s.
    pub shards: Box<[ShardId]>,
}

/// What workers tell each other about moves, in the rings that carry packets. `S` is a shard.
#[derive(Debug)]
pub(crate) enum Word<S> {
    /// The receiver to all others: packets of these shards come to me from now on.
    Switched(Arc<Move>),
    /// To the giver: you get no packets of these shards from me any more. From the receiver: nor from the NIC.
    Drained(u64),
    /// The giver to a worker that sends for it: tell me when what came before this is on the wire.
    Flush(u64),
    /// The answer.
    Flushed(u64),
    /// The giver to the receiver: here they are. And whether the giver ran out of patience.
    Given(u64, Vec<S>, bool),
}
