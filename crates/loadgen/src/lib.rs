//! What is on the other side of a UPF, and is it content?
//!
//! **Problem.** A user plane can only be believed if somebody else speaks all of its interfaces: an SMF on N4 with the
//! manners of the SMFs that exist, gNBs on N3 with UEs behind them, a data network on N6; and if that somebody looks at
//! every packet that comes out, not at a sample of counters.
//!
//! **Model.** Four parts that share one description of a session, [`facts::SessionFacts`]:
//!
//! - [`smf::Smf`] speaks PFCP over UDP. What a session looks like is a [`habits::Habit`] (Open5GS, free5GC, OMEC, OAI,
//!   pfcpsim, or plain TS 29.244) and a [`habits::Shape`]; what happens to it is an [`smf::Operation`]. It records the
//!   TEIDs and addresses that the UPF chose, and gives them as facts.
//! - [`traffic::Flows`] turns facts into packets. A packet is a pure function of session, direction, IP version, sequence
//!   number, time and length, so that [`verify::Verifier`] can write it again on the other side and compare every byte.
//! - [`world::World`] ties gNBs, UEs and data network to two links (the wires of in-memory NICs, or ports), answers
//!   ARP, Neighbour Discovery and GTP-U echo, and drives the UPF with a closed window or at a rate.
//! - [`gnb_tun::LabGnb`] is a gNB whose UE is a TUN interface: real programs, real TCP.
//!
//! **Independence.** Test packets and PFCP requests are written here by hand at the octet level, and what the UPF emits is
//! read by hand too, where the UPF uses crates `packet` and `pfcp`: two implementations that agree are worth more than
//! one that agrees with itself. (ARP, Neighbour Discovery and PFCP framing, on which no verdict rests, are shared.)
//!
//! # Example
//!
//! A packet of a session's UE, as it leaves the gNB and as the UPF must hand it to the data network:
//!
//! ```
//! use loadgen::facts::{Network, SessionFacts};
//! use loadgen::imix::Family;
//! use loadgen::payload::{Direction, Stamp, StreamId};
//! use loadgen::traffic::Flows;
//! use loadgen::verify::{Arrival, Verifier, VerifierConfig};
//! use packet::{MacAddr, Qfi, Teid};
//! use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
//! use tables::Nanos;
//!
//! let servers = (Ipv4Addr::new(203, 0, 113, 1), Ipv6Addr::LOCALHOST);
//! let mut network = Network::new(IpAddr::from([192, 0, 2, 10]), 1, &[], servers);
//! network.upf_n3_mac = MacAddr([2, 0, 0, 0, 3, 1]);
//! network.upf_n6_mac = MacAddr([2, 0, 0, 0, 6, 1]);
//! let facts = SessionFacts {
//!     cp_seid: pfcp::Seid(1),
//!     up_seid: pfcp::Seid(2),
//!     upf_n3: IpAddr::from([192, 0, 2, 1]),
//!     ul_teid: Teid(0x0100_0001),
//!     gnb: IpAddr::from([192, 0, 2, 10]),
//!     dl_teid: Teid(0x8000_0000),
//!     qfi: Qfi::from_wire(9),
//!     ue_ipv4: Some(Ipv4Addr::new(10, 64, 0, 1)),
//!     ue_ipv6: None,
//! };
//! let mut flows = Flows::new(&[facts], &network, 42)?;
//!
//! let stream = StreamId::new(0, Direction::Uplink, Family::V4);
//! let stamp = Stamp { stream, sequence: flows.next_sequence(stream), sent: Nanos(1_000) };
//! let mut frame = vec![0; flows.frame_len(stream, 100)];
//! assert!(flows.write(stamp, 100, &mut frame));
//!
//! // A UPF in four lines: take the tunnel off, take a hop off, put a new Ethernet header on.
//! let mut inner = frame.split_off(14 + 20 + 8 + 16);
//! packet::ipv4::decrement_ttl(inner.first_chunk_mut().ok_or("short")?);
//! let header = [&network.dn.mac.0[..], &network.upf_n6_mac.0, &[0x08, 0x00]].concat();
//! let out = [header, inner].concat();
//!
//! let mut verifier = Verifier::new(VerifierConfig::default(), flows.sessions());
//! assert_eq!(verifier.check_n6(&flows, &out, Nanos(3_500)), Arrival::Fresh);
//! assert!(verifier.faults().is_empty());
//! assert!(verifier.latencies(Direction::Uplink).summary().p50_ns.abs_diff(2_500) <= 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cost
//!
//! Making a packet costs a copy of its headers and payload and two dozen additions, whatever its length (checksums come
//! from prefix sums); what is per session is one cache line. Checking one is a strict read of its headers and an entry in
//! 16 bytes of account per stream; the sampled ones are also written anew. `cargo run --release -p loadgen --example
//! speed` measures both, and the SMF, on the machine at hand. One thread drives both directions: for UPFs faster than a
//! few million packets a second, make two worlds of different sessions.
//!
//! # When not to use it
//!
//! For traffic that reacts (TCP, QUIC) use the lab's TUN with real programs. For conformance of N4 beyond what SMFs
//! really send, use crate `pfcp`'s messages directly.
//!
//! # Contents
//!
//! - [`facts`]: sessions, address pools, gNBs and data network: what both ends know.
//! - [`habits`], [`application_rule`], [`smf`]: the control side. [`mutate`], [`storm`]: the same gone mad.
//! - [`imix`], [`payload`], [`traffic`]: what is sent. [`verify`], [`latency`]: what came back.
//! - [`applications`]: flows of applications as real bytes, for whoever looks into them.
//! - [`station`], [`gnb`], [`dn`], [`link`], [`world`]: the world around the UPF.
//! - [`gnb_tun`]: the lab's gNB. [`rng`]: repeatable randomness.
#![forbid(unsafe_code)]

mod answers;
pub mod application_rule;
pub mod applications;
mod decode;
pub mod dn;
pub mod facts;
pub mod gnb;
pub mod gnb_tun;
pub mod habits;
pub mod imix;
pub mod latency;
pub mod link;
pub mod mutate;
pub mod payload;
pub mod rng;
mod shapes;
pub mod smf;
pub mod station;
pub mod storm;
pub mod traffic;
pub mod verify;
mod wire;
pub mod world;

pub use decode::{Fault, Layer};
