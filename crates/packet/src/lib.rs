//! What is in these bytes?
//!
//! A user plane lives between two languages: towards the radio, packets inside GTP-U inside UDP; towards the data
//! network, the packets themselves. This crate reads and writes both, from Ethernet to the PDU Session Container, and
//! nothing else: it keeps no state, opens no socket, and depends on no other crate.
//!
//! # The model
//!
//! **Views read.** `SomethingView::parse(&[u8])` checks once whatever could make a later read fail (lengths, versions,
//! chains) and returns a small `Copy` struct that borrows the bytes; after that every accessor is infallible. A view's
//! `payload()` ends where its own header says, so the padding of a short Ethernet frame never reaches a user.
//! What is wrong is a [`Malformed`], two octets that name the layer and the fault: a thing to count, not to print.
//! No input panics, and every chain (VLAN tags, IPv6 extension headers, GTP-U extension headers) has a bound.
//!
//! **Emitters write**, in two shapes. Headers of the packet path go into arrays of their exact size
//! ([`ipv4::emit_header`], [`gtpu::emit_gpdu_downlink`]): nothing to fail, nothing to allocate. Messages of our own making
//! (ICMP errors, Neighbour Discovery, GTP-U signalling) are appended to a `Vec<u8>` that the caller keeps and reuses.
//! [`PacketBuilder`] stacks any layers and completes lengths and checksums; tests and load generators use it.
//!
//! **Changes in place** carry themselves into the checksums by RFC 1624 instead of summing anew: [`ipv4::set_dscp`],
//! [`ipv4::decrement_ttl`], and all of [`rewrite`] for address translation.
//!
//! # Example: an uplink packet
//!
//! ```
//! use packet::*;
//!
//! # let ue_packet = PacketBuilder::new()
//! #     .ipv4([10, 60, 0, 1].into(), [198, 51, 100, 7].into()).udp(40000, 53).build(b"query");
//! # let container = PduSession::Uplink(pdu_session::Uplink { qfi: Qfi::from_wire(9), ..Default::default() });
//! # let mut frame = PacketBuilder::new()
//! #     .ethernet(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]))
//! #     .ipv4([192, 0, 2, 1].into(), [192, 0, 2, 2].into())
//! #     .udp(GTP_U_PORT, GTP_U_PORT).gtpu(Teid(0x1234)).pdu_session(&container).build(&ue_packet);
//! fn uplink(frame: &[u8]) -> Result<Option<(Teid, Option<Qfi>, FlowKey)>, Malformed> {
//!     let ethernet = EthernetView::parse(frame)?;
//!     if ethernet.ether_type() != EtherType::IPV4 {
//!         return Ok(None);
//!     }
//!     let outer = Ipv4View::parse(ethernet.payload())?;
//!     if outer.protocol() != IpProtocol::UDP || outer.fragment().is_some() {
//!         return Ok(None);
//!     }
//!     let udp = UdpView::parse(outer.payload())?;
//!     if udp.destination_port() != GTP_U_PORT {
//!         return Ok(None);
//!     }
//!     let gtpu = GtpuView::parse(udp.payload())?;
//!     let qfi = gtpu.qfi()?;
//!     let inner = IpPacket::parse(gtpu.payload())?;
//!     Ok(Some((gtpu.teid(), qfi, inner.key)))
//! }
//!
//! let (teid, qfi, key) = uplink(&frame)?.unwrap();
//! assert_eq!(teid, Teid(0x1234));
//! assert_eq!(qfi, Some(Qfi::from_wire(9)));
//! assert_eq!(key.ports, Some(Ports { source: 40000, destination: 53 }));
//!
//! // One octet less than the outer header promises is not a packet.
//! frame.pop();
//! assert_eq!(uplink(&frame).unwrap_err(), Malformed::TotalLength(Layer::Ipv4));
//! # Ok::<(), Malformed>(())
//! ```
//!
//! # Which file answers what
//!
//! | module | |
//! |---|---|
//! | [`ethernet`], [`arp`] | Ethernet II, 802.1Q and 802.1ad tags; ARP |
//! | [`ipv4`], [`ipv6`] | headers, options, fragments, the walk over extension headers |
//! | [`udp`], [`tcp`] | transport headers, MSS clamping |
//! | [`icmpv4`], [`icmpv6`], [`ndp`] | echo, errors about packets; neighbours and routers |
//! | [`gtpu`], [`gtpu_message`], [`pdu_session`] | GTP-U headers and extensions, its signalling, the container with the QFI |
//! | [`gre`], [`erspan`] | GRE with key and sequence number; mirrored frames in it |
//! | [`checksum`], [`rewrite`] | Internet checksum, whole and incremental; address translation |
//! | [`flow`] | the 5-tuple and what else classification wants, read once |
//! | [`rss`] | Toeplitz hash, and the UE hash that gives a subscriber its shard |
//! | [`builder`] | whole packets, layer by layer |
//! | [`units`], [`dscp`] | the standards' scalar values as types; names of code points |
//!
//! # Cost
//!
//! A view's `parse` is a handful of loads and compares; what a header's options or extension headers cost is paid only
//! where there are some. Checksums of payloads are never computed on the way through: [`checksum::Sum`] is for packets
//! that begin or end here. A [`rss::Toeplitz`] holds 1 KiB of tables for each octet of its input.
//!
//! # When not to use it
//!
//! To reassemble fragments or TCP streams, to read options of IPv4 beyond skipping them, or to dissect what the user's
//! packets carry: other crates look further. For jumbograms, GTP' and GTPv2, which a UPF's N3 and N9 don't have. And where
//! a general dissector is wanted: etherparse knows more protocols, and is what the tests of this crate ask for a second opinion.
#![forbid(unsafe_code)]

pub mod arp;
pub mod builder;
pub mod checksum;
pub mod dscp;
mod error;
pub mod erspan;
pub mod ethernet;
pub mod flow;
pub mod gre;
pub mod gtpu;
pub mod gtpu_message;
pub mod icmpv4;
pub mod icmpv6;
pub mod ipv4;
pub mod ipv6;
pub mod ndp;
pub mod pdu_session;
mod protocol;
pub mod rewrite;
pub mod rss;
pub mod tcp;
pub mod udp;
pub mod units;
mod wire;

pub use arp::ArpView;
pub use builder::PacketBuilder;
pub use dscp::DropPrecedence;
pub use error::{Layer, Malformed};
pub use erspan::ErspanView;
pub use ethernet::{EthernetView, VlanTag};
pub use flow::{FlowKey, IpPacket, Ports};
pub use gre::GreView;
pub use gtpu::GtpuView;
pub use icmpv4::Icmpv4View;
pub use icmpv6::Icmpv6View;
pub use ipv4::{Fragment, Ipv4View};
pub use ipv6::Ipv6View;
pub use pdu_session::PduSession;
pub use protocol::{EtherType, GTP_U_PORT, IpProtocol, PFCP_PORT};
pub use tcp::TcpView;
pub use udp::UdpView;
pub use units::{Dscp, MacAddr, Qfi, Teid, VlanId};
