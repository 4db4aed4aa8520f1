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
//! 1. `parse`: each frame once, into a `Copy` `Meta`.
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
//! use datapath::{Interface, Rib, Roles};
//! use datapath::{Burst, Config, Datapath, Outbox, Reason};
//! use io::mem::{FrameSize, MemFrame, MemPool};
//! use packet::{MacAddr, PacketBuilder};
//! use session::ShardId;
//! use tables::Nanos;
//!
//! let mut rib = Rib::new();
//! let mac = MacAddr([2, 0, 0, 0, 0, 1]);
//! rib.add_interface(Interface {
//!     name: "n6".into(),
//!     port: 0,
//!     vlan: None,
//!     mac,
//!     mtu: 1500,
//!     roles: Roles { n6: true, ..Roles::default() },
//!     addresses: vec!["203.0.113.1/24".parse()?],
//!     network_instances: vec!["internet".into()],
//! })?;
//! rib.add_ue_pool("10.45.0.0/16".parse()?);
//! let mut worker: Datapath<MemFrame> = Datapath::new(Config::new(rib.fib()));
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
//! # The floors
//!
//! - What is spoken with the outside, in types of all floors: [`command`], [`inspect`] (who looks into packets), [`lookups`] (who answers look-ups), `config`, [`counters`], [`Reason`], `outbox`,
//!   `hand_off` (frames for other workers), [`StageCosts`].
//! - Ground: `meta`, what is known of a frame by its bytes.
//! - `network`: [`rib`] (what control knows of it), [`fib`] (what workers forward by, made of that), `interface`, `ingress`, `sources` (who can't have sent a packet), `egress`, `neighbour`, `near`, `peer`.
//! - `state`: `shard` (sessions), [`record`] and `compile` (how rules become records), `treatment` (what a rule does), `rules`, `flow`,
//!   `conversation` (flows under question), `feeder` (a tunnel's other end),
//!   [`account`] (volumes), `police` (meters), [`marking`], `directory`, [`export`] (what is told of flows), `fragment`, `room`, `overload`, `limits`.
//! - `stages`, in a packet's order: [`Burst`] (what is worked on), `parse`, `hints` (what a device is asked), `locate`, `check_source`, `look_closer`, `serve` (the fast
//!   path), `judge` (by rules, packet by packet; `classify` says by which, `inquire` asks what it is), `ecn`.
//! - [`nat`]: public addresses become UEs' before all this, and UEs' public ones after it.
//! - `beside`: `orders`, `gtpu_control`, `local` (ARP, neighbour discovery, ping), `icmp` (errors), `pieces` (fragments), `flow_life`,
//!   `held` (how many frames may wait).
//! - [`mirror`]: copies of chosen packets; [`offload`]: flows that a NIC forwards by itself.
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

mod beside;
pub mod command;
mod config;
mod costs;
pub mod counters;
mod datapath;
mod hand_off;
pub mod inspect;
pub mod lookups;
mod meta;
pub mod mirror;
pub mod nat;
mod network;
pub mod offload;
mod outbox;
mod reason;
mod stages;
mod state;

pub use command::{ApplicationFlows, Command, Event, Refusal, SessionSnapshot, Token, Transition};
pub use config::{CheckSource, Config};
pub use costs::{Stage, StageCosts};
pub use counters::{Counters, FlowCounters, InspectionCounters, InterfaceCounters, Traffic};
pub use datapath::{Datapath, FlowMemory};
pub use hand_off::{HandedOff, Parsed};
pub use network::asked::Asked;
pub use network::fib::{self, Fib};
pub use network::interface::{Interface, Roles};
pub use network::neighbour::{Sight as NeighbourSight, State as NeighbourState};
pub use network::peer::Numbers as PeerNumbers;
pub use network::rib::{self, Rib};
pub use outbox::Outbox;
pub use reason::Reason;
pub use stages::burst::Burst;
pub use state::feeder::SILENCE;
pub use state::load::ShardLoads;
pub use state::marking::{self, Marking};
pub use state::permit::Places;
pub use state::shard::{Session, Shard};
pub use state::slice::{self, Slice, SliceTraffic};
pub use state::{account, carried, export, record};
