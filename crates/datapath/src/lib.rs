//! What happens to this burst?
//!
//! **Problem.** A user plane function must do for each packet what a session management function asked for: find the
//! subscriber, check, limit, count, report, wrap or unwrap, route. With a million subscribers the rules don't fit a
//! cache, and a processor that waits for memory once per packet forwards a few million packets a second at best.
//!
//! **Model.** A [`Datapath`] is one worker's state. It owns some of the 512 [`Shard`]s, and with them everything mutable
//! about their subscribers; of the network, the tunnels' far ends and the directories it has its own copy. So nothing on
//! the packet path is shared, locked or atomic. It is sans-IO: frames, time and orders go in by argument, and what comes of
//! them is left in an [`Outbox`]. The same code runs in a worker, in a replay and in a test.
//!
//! A burst is processed in phases, so that the memory that its packets need is fetched for all of them at once:
//!
//! 1. [`parse`]: each frame once, into a `Copy` [`parse::Meta`].
//! 2. Where is it? A tunnel packet's TEID names shard and slot; a plain packet's destination address is hashed, and its
//!    bucket fetched. Frames of other workers' shards go to [`Outbox::hand_off`].
//! 3. The [`record::Record`] is fetched: one cache line for each tunnel, and one for each session's downlink, that says
//!    everything about a session whose rules don't look into the packet: action, meter, counters, and a *credit* that
//!    stands for all volume thresholds and quotas (see [`account`]).
//! 4. Check, route, meter, account, transform, send.
//!
//! A session whose rules look into the packet is classified flow by flow: then its record leads to the shard's flow table,
//! which remembers for each flow (`flow`) which rule it is, and each rule has a record of its own. Sessions whose rules
//! don't look past the tunnel take no flow entry.
//!
//! What no record can say is judged by the session's rules, packet by packet: a flow's first packet, buffering, fragments,
//! the last packets before a threshold. Both ways meet the same checks in the same order, and a naive implementation in
//! `tests/reference` says byte for byte what must come out.
//!
//! ```
//! use datapath::net::{Interface, Net, Roles};
//! use datapath::{Burst, Config, Datapath, Outbox, Reason};
//! use io::mem::{FrameSize, MemFrame, MemPool};
//! use packet::{MacAddr, PacketBuilder};
//! use session::ShardId;
//! use tables::Nanos;
//!
//! let mut net = Net::new();
//! let mac = MacAddr([2, 0, 0, 0, 0, 1]);
//! net.add_interface(Interface {
//!     name: "n6".into(),
//!     port: 0,
//!     vlan: None,
//!     mac,
//!     mtu: 1500,
//!     roles: Roles { n6: true, ..Roles::default() },
//!     addresses: vec!["203.0.113.1/24".parse()?],
//!     network_instances: vec!["internet".into()],
//! })?;
//! net.add_ue_pool("10.45.0.0/16".parse()?);
//! let mut worker: Datapath<MemFrame> = Datapath::new(Config::new(net.view()));
//! for id in ShardId::all() {
//!     let shard = worker.new_shard(id);
//!     worker.adopt(shard);
//! }
//! // A packet for a UE that nobody knows.
//! let packet = PacketBuilder::new()
//!     .ethernet(mac, MacAddr([2; 6]))
//!     .ipv4([8, 8, 8, 8].into(), [10, 45, 0, 1].into())
//!     .udp(53, 40000)
//!     .build(b"answer");
//! let mut burst = Burst::of(vec![MemFrame::copy_of(&packet).unwrap()]);
//! let (mut out, mut pool) = (Outbox::new(1), MemPool::new(64, FrameSize::Standard));
//! worker.process(Nanos(1), 0, &mut burst, &mut out, &mut pool);
//! assert_eq!(worker.counters().dropped(Reason::UnknownUe), 1);
//! assert_eq!(worker.counters().balance(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The files, in a packet's order
//!
//! - [`Burst`]: what is worked on; `datapath`: the worker's state and the order of the stages; `orders`: what control wants of it ([`command`]); [`parse`], `sources`: who can't have sent it; `locate`, `directory`; `feeder`: does
//!   it come from the tunnel's other end; `look_closer`;
//!   `forward`: the fast path.
//! - `flow`: what is remembered of a flow, and by which key; `overload`: whose first packets wait.
//! - [`nat`]: public addresses become UEs' before all this, and UEs' public ones after it.
//! - `slow`: a packet judged by rules; `classify`: which one; [`account`]: gates, volumes; `police`: meters; [`slice`]; [`marking`]: QFI
//!   and DSCP; [`record`].
//! - [`mirror`]: copies of chosen packets, for probes and files.
//! - `shard`: sessions; `compile`: how their rules become records; `runs`: where a shard keeps what sessions have several
//!   of.
//! - Beside the path: `gtpu_control`, `local` (ARP, neighbour discovery, ping), `icmp` (errors), `fragment`; `held`: how many frames
//!   may wait; `limits`: what else is bounded, and how that changes.
//! - The way out: [`net`] (what control knows), `network`, `egress`, `neighbour`, `peer` (what a worker made
//!   of it).
//! - [`offload`]: flows that a NIC forwards by itself.
//! - What is told: [`counters`], [`Reason`], [`StageCosts`], [`Event`], and of single flows [`export`].
//!
//! # Cost
//!
//! `millrace bench forward` prints cycles per packet from one session to a million, with a QER and a URR per direction. A
//! session takes two lines of 64 bytes, an index entry of 10 to 20, its books and its shared rules.
//!
//! # When not to use it
//!
//! A flow's first packet is classified by a scan of the session's PDRs in order: right for the handful of rules that SMFs
//! send, slow for hundreds. IPv6 extension headers of outer packets other than a fragment header are
//! not followed, and the UDP checksum of received G-PDUs isn't verified: the inner packet has its own.
#![forbid(unsafe_code)]

pub mod account;
mod ahead;
mod asked;
mod askers;
mod burst;
mod check_source;
mod classify;
pub mod command;
mod compile;
mod config;
mod costs;
pub mod counters;
mod datapath;
mod directory;
mod ecn;
mod egress;
pub mod export;
mod feeder;
mod flow;
mod flow_life;
mod formers;
mod forward;
mod fragment;
mod gtpu_control;
mod held;
mod icmp;
mod limits;
mod load;
mod local;
mod locate;
mod look_closer;
pub mod marking;
pub mod mirror;
pub mod nat;
mod near;
mod neighbour;
pub mod net;
mod network;
pub mod offload;
mod orders;
mod origin;
mod outbox;
mod overload;
pub mod parse;
mod peer;
mod permit;
mod pieces;
mod police;
mod reason;
pub mod record;
mod room;
mod rules;
mod runs;
mod shard;
pub mod slice;
mod slow;
mod sources;
mod waiting;

pub use asked::Asked;
pub use burst::Burst;
pub use command::{Command, Event, Refusal, SessionSnapshot, Token, Transition};
pub use config::{CheckSource, Config};
pub use costs::{Stage, StageCosts};
pub use counters::{Counters, FlowCounters, InterfaceCounters, Traffic};
pub use datapath::{Datapath, FlowMemory};
pub use feeder::SILENCE;
pub use load::ShardLoads;
pub use marking::Marking;
pub use neighbour::{Sight as NeighbourSight, State as NeighbourState};
pub use net::{Net, NetView};
pub use outbox::Outbox;
pub use peer::Numbers as PeerNumbers;
pub use permit::Places;
pub use reason::Reason;
pub use shard::{Session, Shard};
pub use slice::{Slice, SliceTraffic};
