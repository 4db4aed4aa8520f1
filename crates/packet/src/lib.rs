//! What is in these bytes?
#![forbid(unsafe_code)]

pub mod arp;
pub mod builder;
pub mod checksum;
mod error;
pub mod ethernet;
pub mod flow;
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
pub use error::{Layer, Malformed};
pub use ethernet::{EthernetView, VlanTag};
pub use flow::{FlowKey, IpPacket, Ports};
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
