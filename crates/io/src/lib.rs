//! Where do packets come from?
//!
//! A worker polls queues; it doesn't know whether a NIC, a file or another thread is behind them. This crate says what a
//! queue, a frame and a port are ([`RxQueue`], [`TxQueue`], [`Frame`], [`FramePool`], [`Port`]) and implements them where no
//! hardware is needed; crate `dpdk` implements the same for NICs.
//!
//! # Model
//!
//! A [`Port`] is configured once. Its queue pairs are taken out, each once, and move to the workers that poll them; what
//! stays is information, counters and the link. A burst is a `Vec` of frames: receiving appends to it, sending takes
//! from its front. A [`Frame`] is one packet in one contiguous buffer with room at both ends, owned: dropping it gives
//! the buffer back, and there is no other way to lose one.
//!
//! Everything is generic, nothing is `dyn`: a datapath is compiled for the port type that it runs on, and the calls
//! below are inlined into its loop.
//!
//! ```
//! use io::mem::{MemConfig, MemFrame, MemNic};
//! use io::{BURST, Frame, Port, RxQueue, TxQueue};
//!
//! let (mut nic, mut wire) = MemNic::new(MemConfig::default())?;
//! let (mut rx, mut tx) = nic.take_queue(0).unwrap();
//!
//! // Another thread's side: put a packet on the wire.
//! wire.inject(&mut vec![MemFrame::copy_of(&[0x5a; 60]).unwrap()]);
//!
//! // The worker's side: receive, change, send.
//! let mut burst = Vec::with_capacity(BURST);
//! rx.rx_burst(&mut burst, BURST);
//! for frame in &mut burst {
//!     frame.trim_front(14);
//!     assert!(frame.prepend(14 + 36), "room for a tunnel header");
//! }
//! tx.tx_burst(&mut burst);
//!
//! let mut out = Vec::new();
//! wire.collect(&mut out, BURST);
//! assert_eq!(out[0].len(), 60 + 36);
//! # Ok::<(), io::mem::MemError>(())
//! ```
//!
//! # What is here
//!
//! - [`mem`]: a NIC in memory with several queues, receive-side scaling, a redirection table, overflow, link state and a
//!   wire that can be made faulty. Demo, tests and the engine's experiments run on it.
//! - [`redirection`]: which receive queue by hash, changed while traffic runs.
//! - [`steering`]: which receive queue by protocol and code point, ahead of RSS.
//! - [`replay`]: packets made from templates on the worker's own thread and a sink: the port of benchmarks.
//! - [`paced`]: packets made on the worker's own thread too, but when they are due, with several queues, a redirection table and
//!   sinks that check order: the port of benchmarks over time.
//! - [`pcap`]: capture files as a port, and a recorder around any port.
//! - [`offload`]: what a NIC may do by itself: rules for single flows, and the trait of devices that take them.
//! - [`tun`]: a kernel interface whose other end is this process, for the lab's UE.
//! - [`conformance`]: the one test body that every backend passes, here and in `dpdk`.
//!
//! # Cost
//!
//! `examples/portcost.rs` on the build machine (2.0 GHz TSC, two shared cores), cycles per packet in undisturbed runs:
//! [`replay`] 27 to 35, receiving and sending together, at 150 and 106 B and with a million sessions as with a thousand;
//! allocating and dropping a frame by itself 15; through [`mem`]'s rings with the wire on the same thread 81 to 90, and
//! ten more with the RSS hash computed.
//!
//! # When not to use it
//!
//! [`mem`] and [`replay`] say what a datapath costs, not what a NIC can do: there is no PCIe, no DMA and no interrupt in
//! them. [`pcap`] ports keep order and bytes, not line rate.
#![deny(unsafe_code)] // except for one ioctl in `tun`

pub mod conformance;
pub mod frame;
mod header;
pub mod mem;
pub mod offload;
pub mod paced;
pub mod pcap;
pub mod port;
pub mod redirection;
pub mod replay;
pub mod steering;
pub mod tun;

pub use frame::{Frame, FramePool};
pub use port::{BURST, Member, Port, PortInfo, PortStats, RxQueue, TxQueue};
pub use redirection::{RedirectError, Redirection};
