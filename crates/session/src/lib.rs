//! What must happen to this subscriber?
//!
//! An SMF describes a PDU session in rules that refer to each other: a PDR says which packets, its FAR where to, its QERs how
//! fast, its URRs how they are counted (TS 29.244 §5.2). It describes it in pieces, over several messages, each SMF in its own
//! dialect, and some SMFs lie. A packet wants none of that: it wants to know in a few loads what to do.
//! This crate stands between the two. It takes requests as [`pfcp::message`] has them, and gives [`rules::Rules`] to a shard.
//!
//! # The model
//!
//! ```text
//! request --Plan--> model (a copy) --grant--> tunnels, addresses --compile--> Rules --commit--> shard
//!                       |                          |                  |
//!                       +------- Refusal <---------+------------------+     the session is as it was
//! ```
//!
//! - A session between two requests is its compiled [`rules::Rules`], shared with its shard, and what the SMF said, packed
//!   into some hundred octets ([`packed`]). A modification works on an unpacked copy, so that refusing one costs
//!   nothing but forgetting it. No packet and no later request ever sees half of a request.
//! - What a request needs of the node (tunnels, UE addresses, a slot) is taken while it is settled and noted, and given
//!   back if it is refused. A tunnel, an address or a framed route is one session's: a request for another's is refused.
//! - A session lives in the shard that its UE address hashes to, a tunnel in its session's shard, and the name of a tunnel or
//!   session says where it lives ([`ids`]). Pools hand out addresses shard by shard and find the IPv6 prefix that
//!   agrees with an IPv4 address by linear algebra ([`columns`]). What doesn't agree, an SMF's own TEID or the second
//!   address that it picked, is listed for the workers' directories ([`store::DirectoryChange`]).
//! - Refusals are types that know their Cause, Offending IE and Failed Rule ID ([`refusal::Refusal`]). Every list has
//!   a bound ([`config::Limits`]), and reaching it is a refusal like another.
//!
//! # Example
//!
//! ```
//! use pfcp::{FarId, PdrId, Seid, ie::*, message::*};
//! use session::config::{Config, Ipv4Range, LocalAddresses, PoolConfig};
//! use session::store::Store;
//!
//! let mut store = Store::new(Config {
//!     n3: LocalAddresses { ipv4: Some([192, 168, 0, 1].into()), ipv6: None },
//!     pools: vec![PoolConfig { ipv4: vec![Ipv4Range::Net("10.45.0.0/16".parse()?)], ..Default::default() }],
//!     ..Config::default()
//! })?;
//! let smf = store.attach();
//! let request = SessionEstablishmentRequest {
//!     node_id: NodeId::Ip([127, 0, 0, 1].into()),
//!     cp_fseid: FSeid { seid: Seid(1), ipv4: Some([127, 0, 0, 1].into()), ipv6: None },
//!     create_pdrs: vec![CreatePdr {
//!         id: PdrId(1),
//!         precedence: 255,
//!         pdi: Pdi {
//!             source_interface: Interface::ACCESS,
//!             local_fteid: Some(FTeid::Choose { ipv4: true, ipv6: false, id: None }),
//!             network_instance: Some(b"internet"),
//!             ue_ips: vec![UeIpAddress { choose_ipv4: true, ..Default::default() }],
//!             sdf_filters: vec![],
//!             qfis: vec![],
//!             application_id: None,
//!             ethernet: false,
//!             framed_routes: vec![],
//!             framed_ipv6_routes: vec![],
//!             source_interface_type: None,
//!         },
//!         outer_header_removal: None,
//!         far: Some(FarId(1)),
//!         urrs: vec![],
//!         qers: vec![],
//!     }],
//!     create_fars: vec![CreateFar { id: FarId(1), apply_action: ApplyAction(ApplyAction::DROP), forwarding: None, bar: None }],
//!     create_urrs: vec![],
//!     create_qers: vec![],
//!     create_bars: vec![],
//!     pdn_type: Some(PdnType::IPV4),
//!     apn_dnn: None,
//!     inactivity_timer: None,
//!     s_nssai: None,
//!     user_id: None,
//! };
//! let established = store.establish(&request, smf)?;
//! let address = established.rules.ue_ipv4.ok_or("no address")?;
//! assert_eq!(session::addresses::shard_of_ipv4(address), established.rules.place.shard);
//! store.delete(established.rules.seid)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What SMFs do
//!
//! Where an IE may be read in two ways, the reading is the one that serves the SMFs there are; `tests/interop.rs` has a
//! test for each of their habits. Some choices to know: a rate of zero is no limit and a threshold of zero no threshold,
//! but a quota of zero is exhausted; `assigned` in a filter is any address unless networks are routed to the UE
//! ([`sdf`]); removing a QER or URR takes it off the PDRs, because an Update PDR has no way to; a Network Instance that isn't
//! configured is the default; durations beyond a year are taken for mistakes.
//!
//! # Cost
//!
//! `cargo run --release -p session --example establish` measures it. On a core of the build machine (Zen 3, 2.4 GHz) that
//! other builds were competing for: 2.2 to 3.2 us an establishment of 2 PDRs, 2 FARs, a QER and a URR, 2.8 to 4.3 us a
//! modification, with a thousand sessions as with a million; 1,040 octets a session, of which 121 are the packed
//! model and most of the others the compiled rules, which its shard shares.
//!
//! # When not to use it
//!
//! It keeps no clock, sends nothing and knows no sockets: retransmission and associations are `pfcp`'s, timers and reports
//! `n4`'s, packets `datapath`'s. Who finds applications in packets is [`applications`]' to know, not how. Ethernet and unstructured
//! sessions, and predefined rules, are refused by name.
//!
//! # Contents
//!
//! | module | what |
//! |---|---|
//! | [`ids`], [`rules`], [`usage`] | what the packet path sees of a session |
//! | [`store`] | all sessions; establish, modify, delete |
//! | [`config`], [`refusal`], [`timing`] | what goes in, what is refused, what time drives |
//! | [`portable`] | sessions that leave the process and come back into another one |
//! | `change`, `dialect`, `grant`, [`mod@compile`], [`model`], [`packed`] | a request on its way: plan, what IEs mean, what it takes, compilation, the model, the packed model |
//! | [`sdf`], [`network_instance`], [`applications`], [`pfd`] | texts of an SMF |
//! | [`addresses`], [`pool`], [`columns`], [`prefixes`], [`teid`], `slots`, `by_address` | what sessions hold |
#![forbid(unsafe_code)]

pub mod about;
pub mod addresses;
pub mod applications;
mod by_address;
mod change;
pub mod classifier;
pub mod columns;
pub mod compile;
pub mod config;
pub mod dialect;
mod elsewhere;
mod grant;
pub mod ids;
pub mod model;
pub mod network_instance;
pub mod packed;
pub mod pfd;
pub mod pool;
pub mod portable;
pub mod prefixes;
pub mod protocol;
pub mod refusal;
pub mod rules;
pub mod sdf;
mod slots;
pub mod store;
pub mod teid;
mod teid_key;
pub mod timing;
pub mod usage;

pub use ids::{Epoch, SHARDS, SessionRef, ShardId, TeidRef};
pub use prefixes::{PrefixLength, PrefixLengths};
pub use teid_key::TeidKey;
