//! Who runs when?
//!
//! # The problem
//! A [`datapath::Datapath`] is one worker's state and a set of functions over bursts; it has no thread, no queue and no
//! clock. Something must poll the receive queues, call it, send what it produced, carry a packet that reached the wrong
//! worker to the owner of its shard, and carry orders and events between workers and the control side, without a lock
//! or a shared counter on the packet's way.
//!
//! # The model
//! - A **worker** (`worker.rs`) is one thread: it polls the receive queues it was dealt, runs the datapath on what they give, hands
//!   packets of others' shards to their owners, and sends. Which queues and which shards it has is all that tells one execution
//!   model from another ([`Model`]).
//! - **A worker makes its own state** (`seed.rs`), in its thread and on its core, so that it lies in memory of that core's NUMA node.
//! - **A second thread beside each worker** (`supplier.rs`) takes memory from the system that flow tables will grow into, and sleeps
//!   otherwise.
//! - **Every ring has one producer and one consumer**: control to worker (orders), worker to control (answers), and one
//!   for each ordered pair of workers (`mesh.rs`: packets for a shard that the other one owns, and words about moves).
//! - **What a port can't send at once waits by class** ([`egress`]), and queues that a port steers to ahead of RSS
//!   ([`io::steering`]) are polled first.
//! - **Shards move** while their packets keep coming (`moves/`, docs/moves.md): to start and end workers, to level their loads, to
//!   inherit from one that died (`estate.rs`). Who owns which shard is a table that is read for packets that are handed off (`owners.rs`).
//! - **Regulation** (`regulate.rs`) reads how busy workers and shards are, asks [`plan`] what to do, and wants shards moved;
//!   [`watchdog`] tells of workers that stand still, [`machine::topology`] which cores they should have.
//! - **Workers publish their counters** (`published.rs`) ten times a second and before they fall asleep; any thread reads what was
//!   published last ([`Snapshots`]), and none asks a worker.
//! - **Control sleeps in `poll(2)`** on its sockets and on the engine's [`waker::Waker`]; a worker writes to that only if
//!   control said that it is going to sleep.
//!
//! # Example
//! ```no_run
//! # use engine::{Engine, EngineConfig};
//! # fn demo<P: io::Port + 'static>(ports: &mut [P], rib: &mut datapath::Rib) -> Result<(), engine::EngineError> {
//! let clock = tables::clock::Tsc::process();
//! let datapath = datapath::Config::new(rib.fib());
//! let mut engine = Engine::start(ports, &EngineConfig::default(), &datapath, clock)?;
//! engine.drain(|worker, event| println!("worker {worker}: {event:?}"));
//! let reports = engine.stop()?;
//! # let _ = reports; Ok(()) }
//! ```
//!
//! # The cost
//! A poll of an empty queue and four empty rings is some tens of cycles; a hand-off is two cache-line transfers a burst
//! and one frame move a packet. The clock is read once a loop.
//!
//! # When not to use it
//! A replay, a test or a fuzz target calls [`datapath::Datapath::process`] itself and needs none of this.
#![forbid(unsafe_code)]

// What the integration tests share says `engine`.
#[cfg(test)]
extern crate self as engine;

pub mod egress;
pub mod idle;
pub mod placement;
pub mod plan;
pub mod waker;
pub mod watchdog;

mod control;
mod estate;
mod mesh;
mod model;
mod moves;
mod overdue;
mod owners;
mod published;
mod records;
mod regulate;
mod relocate;
mod report;
mod seed;
mod sending;
mod supplier;
mod under_way;
mod worker;

pub use control::{Engine, EngineConfig, EngineError, Fence, MoveError, OnThreadStart};
pub use idle::IdlePolicy;
pub use model::{Model, Sender};
pub use moves::MoveCounters;
pub use published::{Published, Publisher};
pub use regulate::{Change, Scaling};
pub use report::{Gauge, Load, LookupCounters, PortLoad, Snapshots, SteeredLoad, WorkerReport};
pub use supplier::Supplier;
pub use under_way::{MOST as MOST_UNDER_WAY, OpenLookups};
