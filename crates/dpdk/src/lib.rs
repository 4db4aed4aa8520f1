//! The ports of `io`, on DPDK.
//!
//! One EAL per process ([`Eal::init`]), started only when a DPDK port is configured; [`DpdkPort::open`] attaches a NIC by
//! its PCI address or a virtual device, and from then on it is a [`Port`](io::Port) like the others: a worker takes a
//! queue pair, registers its thread, and polls.
//!
//! ```no_run
//! use dpdk::{DeviceSpec, DpdkPort, Eal, EalConfig};
//! use io::{Port, RxQueue, TxQueue};
//!
//! let devices = ["net_af_packet0,iface=veth0"];
//! let eal = Eal::init(&EalConfig::for_devices(devices))?;
//! println!("{}", eal.chosen());
//! let mut port = DpdkPort::open(&eal, &DeviceSpec::new("n3", devices[0]))?;
//! let (mut rx, mut tx) = port.take_queue(0).unwrap();
//! let worker = eal.register_thread()?;
//! let mut burst = Vec::with_capacity(io::BURST);
//! rx.rx_burst(&mut burst, io::BURST);
//! tx.tx_burst(&mut burst);
//! # drop(worker);
//! # Ok::<(), dpdk::DpdkError>(())
//! ```
//!
//! # Model
//!
//! Every call into DPDK goes through `shim/shim.c`, some twenty functions, and `shim/flow.c` and `shim/steer.c`, six for rules ([`RteFlow`], and those that steer);
//! `shim/af_packet.c` stands between one driver and the kernel, `shim/crypto.c` has what [`crypto`] needs, `shim/peer.c` lends DPDK's look-up
//! tables to benchmarks ([`peer`]), and `shim/ipsec_mb.c` loads a library that is only compared with ([`ipsec_mb`]). Configuration structs are filled in C, so
//! that their layout never crosses; the few fields of an mbuf that the packet path needs are mirrored, with static
//! assertions on both sides. A burst is one call: a `Vec<Mbuf>` is, in memory, the array of pointers DPDK wants.
//!
//! Ownership makes the rest safe. An [`Mbuf`] frees its buffer when dropped and can't be cloned. Queues hold their
//! device, devices hold their pool, pools hold EAL; a device is stopped and closed when its last queue goes, and a pool
//! is freed only when every buffer is back in it.
//!
//! # Memory
//!
//! EAL's choice can't be tried twice in a process, so [`Memory::Auto`] first maps what it would need: if there are huge
//! pages they are used in memory, without files and without root; if not, ordinary pages, and [`Eal::chosen`] says so.
//!
//! # Cost
//!
//! A burst costs one call through a function pointer more than in C. Without huge pages, TLB misses cost more than that
//! call; where it matters, reserve some.
//!
//! # When not to use it
//!
//! For tests, replays and a first look, [`io::mem`] and `io::pcap` need no EAL, no privilege and no C compiler.

mod af_packet;
pub mod bond;
pub mod crypto;
mod device;
mod eal;
mod error;
mod ffi;
mod flow;
pub mod ipsec_mb;
mod mbuf;
pub mod peer;
mod pool;
mod port;
mod queue;
mod running;
pub mod spread;
mod steer;
mod unsent;

pub use af_packet::Interface;
pub use eal::{Chosen, Eal, EalConfig, Memory, ThreadGuard, drivers, version};
pub use error::{DpdkError, Log};
pub use flow::RteFlow;
pub use mbuf::{Mbuf, MempoolPool};
pub use port::{DeviceSpec, DpdkPort};
pub use queue::{DpdkRx, DpdkTx};
