//! A NIC in ordinary memory.
//!
//! [`MemNic::new`] gives a [`Port`](crate::Port) with several queue pairs and the [`MemWire`] that is plugged into it. The wire may live on
//! another thread: each queue and direction is a single-producer, single-consumer ring, nothing else is shared but a few
//! registers. What a user of hardware meets is modelled: receive-side scaling with a redirection table that can be changed
//! while traffic runs, [steering](crate::steering) ahead of it, rings that overflow and count it, a link that goes down, an MTU, and on request a wire that
//! loses, repeats, damages and reorders, and an embedded switch with a flow table ([`MemSwitch`]) that handles packets by
//! itself. What isn't: descriptors, DMA cost, other offloads beyond the RSS hash.

mod counter;
mod fault;
mod flows;
mod frame;
mod meter;
mod nic;
mod rss;
mod switch;
mod wire;

pub use fault::{FaultCounts, Faults};
pub(crate) use frame::Cache;
pub use frame::{FrameSize, HEADROOM, JUMBO_ROOM, MemFrame, MemPool, STANDARD_ROOM};
pub use nic::{MemConfig, MemControl, MemError, MemNic, MemRx, MemTx, QueueStats};
pub use rss::{RETA_SIZE, RssMode};
pub use switch::{FlowTableConfig, MemOffload, MemSwitch};
pub use wire::MemWire;
