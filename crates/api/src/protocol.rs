//! Requests and answers: one JSON object per line.

use super::mirror::{MirrorLine, MirrorRequest};
use super::n4::{N4Log, N4LogQuery, N4Status};
use super::nat::NatStatus;
use super::network::{GnbLine, NeighbourLine, PoolLine, RouteLine};
use super::qos::QosReport;
use super::sessions::{SessionDetail, SessionPage, SessionQuery, SessionSelector};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::net::SocketAddr;

/// The longest request line in bytes, its newline included.
pub const MAX_REQUEST_BYTES: usize = 64 * 1024;
/// The longest answer line in bytes that a client takes.
pub const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
/// The most sessions in one page.
pub const MAX_PAGE: u32 = 10_000;
/// The most connections at once.
pub const MAX_CONNECTIONS: usize = 16;

/// A number that is written in hexadecimal with a fixed width, and read as that or as a plain number.
macro_rules! hexadecimal {
    ($(#[$doc:meta])* $name:ident($inner:ty), $format:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $format, self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::num::ParseIntError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
                    // `from_str_radix` takes a sign; a number after 0x has none.
                    Some(digits) if digits.starts_with('+') => "".parse().map(Self),
                    Some(digits) => <$inner>::from_str_radix(digits, 16).map(Self),
                    None => text.parse().map(Self),
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a number, or a string such as \"0x1f\"")
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
                    }
                    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<$name, E> {
                        number
                            .try_into()
                            .map($name)
                            .map_err(|_| E::invalid_value(serde::de::Unexpected::Unsigned(number), &self))
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }
    };
}

hexadecimal!(/// A SEID (TS 29.244 §7.2.2.4.2).
    SeidText(u64), "{:#018x}");
hexadecimal!(/// A TEID (TS 29.281 §5.1).
    TeidText(u32), "{:#010x}");

/// A question.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Which program is this, and for how long has it run?
    Version,
    /// Some of the sessions.
    Sessions(SessionQuery),
    /// All about one session.
    Session(SessionSelector),
    /// Ports and their counters.
    Ports,
    /// Dropped packets by reason.
    Drops,
    /// Workers and their load.
    Workers,
    /// What each stage of a packet's way costs, counted for a second.
    Stages,
    /// Associated SMFs.
    Peers,
    /// What N4 counts, and the state of each association.
    N4,
    /// What SMFs asked for lately, and what of it was refused.
    N4Log(N4LogQuery),
    /// What became of flows.
    Flows,
    /// Other watermarks for single flows.
    FlowMarks(super::FlowMarksRequest),
    /// What each slice's packets came to.
    Slices,
    /// What waits to be sent, by class, and receive queues ahead of RSS.
    Qos,
    /// About mirrors.
    Mirror(MirrorRequest),
    /// Translation on N6.
    Nat,
    /// How many workers own shards; or change it.
    Scale(super::ScaleRequest),
    /// Flows in NICs.
    Offload,
    /// Where packets go.
    Routes,
    /// Whose MAC address is known.
    Neighbours,
    /// Far ends of tunnels.
    Gnbs,
    /// Pools of UE addresses.
    Pools,
    /// The configuration in force.
    Config,
    /// Stop: as SIGTERM does.
    Stop,
}

/// What comes back.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// To [`Request::Version`].
    Version(Version),
    /// To [`Request::Sessions`].
    Sessions(SessionPage),
    /// To [`Request::Session`].
    Session(Box<SessionDetail>),
    /// To [`Request::Ports`].
    Ports {
        /// In the order of the configuration.
        ports: Vec<PortLine>,
    },
    /// To [`Request::Drops`].
    Drops {
        /// Reasons that occurred, in the order of the documentation.
        drops: Vec<DropLine>,
    },
    /// To [`Request::Stages`].
    Stages {
        /// By worker.
        stages: Vec<StagesLine>,
    },
    /// To [`Request::Workers`].
    Workers {
        /// In order of number.
        workers: Vec<WorkerLine>,
    },
    /// To [`Request::Peers`].
    Peers {
        /// In order of Node ID.
        peers: Vec<PeerLine>,
    },
    /// To [`Request::N4`].
    N4(N4Status),
    /// To [`Request::N4Log`].
    N4Log(N4Log),
    /// To [`Request::Flows`] and [`Request::FlowMarks`].
    Flows {
        /// In the order of the documentation.
        flows: Vec<FlowCounterLine>,
    },
    /// To [`Request::Slices`].
    Slices {
        /// In the order of the configuration, uplink before downlink.
        slices: Vec<SliceLine>,
    },
    /// To [`Request::Qos`].
    Qos(QosReport),
    /// To [`Request::Mirror`]: those that it was about.
    Mirrors {
        /// In order of ID.
        mirrors: Vec<MirrorLine>,
    },
    /// To [`Request::Nat`].
    Nat(NatStatus),
    /// To [`Request::Scale`].
    Scale(super::ScaleStatus),
    /// To [`Request::Offload`].
    Offload(super::OffloadStatus),
    /// To [`Request::Routes`].
    Routes {
        /// In order of destination.
        routes: Vec<RouteLine>,
    },
    /// To [`Request::Neighbours`].
    Neighbours {
        /// In order of interface and address; at most [`MAX_PAGE`].
        neighbours: Vec<NeighbourLine>,
    },
    /// To [`Request::Gnbs`].
    Gnbs {
        /// In order of address.
        gnbs: Vec<GnbLine>,
    },
    /// To [`Request::Pools`].
    Pools {
        /// In the order of the configuration.
        pools: Vec<PoolLine>,
    },
    /// To [`Request::Config`].
    Config {
        /// A file that could be read again.
        toml: String,
    },
    /// To [`Request::Stop`]: it will.
    Stopping,
    /// To any request that can't be answered.
    Error(CtlError),
}

/// Why a question has no answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct CtlError {
    /// For programs.
    pub code: ErrorCode,
    /// For people.
    pub message: String,
}

impl CtlError {
    /// An error.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Kinds of [`CtlError`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorCode {
    /// The line is not a request.
    BadRequest,
    /// The line is longer than [`MAX_REQUEST_BYTES`].
    TooLong,
    /// There are [`MAX_CONNECTIONS`] already.
    Busy,
    /// The connection took too long over a request.
    TimedOut,
    /// No such session.
    NotFound,
    /// A worker did not answer in time.
    Unavailable,
}

/// The program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Version {
    /// `millrace`'s version.
    pub version: String,
    /// Its process ID.
    pub pid: u32,
    /// Seconds since it started.
    pub uptime_seconds: u64,
    /// Its Node ID.
    pub node_id: String,
    /// Its sessions.
    pub sessions: u64,
}

/// A port with its device's own counters.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PortLine {
    /// The name in the configuration.
    pub name: String,
    /// Driver.
    pub driver: String,
    /// MAC address.
    pub mac: String,
    /// MTU in bytes.
    pub mtu: u16,
    /// Queue pairs.
    pub queues: u16,
    /// Link state.
    pub link_up: bool,
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Lost for want of a queue entry or buffer.
    pub rx_missed: u64,
    /// Received with an error.
    pub rx_errors: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Failed to be sent.
    pub tx_errors: u64,
    /// The devices that are the port together; empty: it is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberLine>,
    /// What the device does of what it was asked to, and what it doesn't.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// A device of several that are one port.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MemberLine {
    /// The device.
    pub device: String,
    /// Link state.
    pub link_up: bool,
    /// Whether packets go out by it.
    pub active: bool,
    /// The link's speed in Mbit/s, if known.
    pub mbps: Option<u32>,
    /// The MAC address of the system at the other end, as LACP heard of it.
    pub partner: Option<String>,
}

/// A reason and how many packets were dropped for it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct DropLine {
    /// Its label.
    pub reason: String,
    /// What it means.
    pub meaning: String,
    /// Packets.
    pub packets: u64,
}

/// A worker.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WorkerLine {
    /// Its number.
    pub worker: u16,
    /// Its core; none: not pinned.
    pub core: Option<u16>,
    /// Shards that it owns.
    pub shards: u16,
    /// Packets taken from ports.
    pub received: u64,
    /// Of these, packets of ports on another NUMA node.
    pub remote: u64,
    /// Packets given to ports.
    pub sent: u64,
    /// Packets handed to other workers.
    pub handed_off: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets held back now: for other fragments, or for a neighbour's address.
    #[serde(default)]
    pub held: u64,
    /// So many may be.
    #[serde(default)]
    pub held_limit: u64,
    /// Share of its time since it started spent in rounds that found something to do, 0 to 1.
    pub busy: f64,
    /// Share of its time spent asleep; the rest it polled in vain.
    pub asleep: f64,
    /// It has nothing to poll, and sleeps until somebody wakes it.
    pub sleeping: bool,
    /// Cycles per packet in those rounds, if there were packets: with the system calls of kernel interfaces, and with what the kernel
    /// ran on its core meanwhile; without polling in vain.
    pub cycles_per_packet: Option<f64>,
    /// The same during the last second.
    #[serde(default)]
    pub recent: Option<RecentLoad>,
}

/// What the stages of a packet's way cost a worker.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct StagesLine {
    /// Its number.
    pub worker: u16,
    /// Packets that went through them while it was counted.
    pub packets: u64,
    /// Their bursts.
    pub bursts: u64,
    /// In the packet's order.
    pub stages: Vec<StageLine>,
}

/// What a stage of a packet's way costs.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct StageLine {
    /// Its name.
    pub stage: String,
    /// Cycles per packet, of all packets; none: there were no packets.
    pub cycles_per_packet: Option<f64>,
}

/// How a worker's time went between two looks.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RecentLoad {
    /// Seconds between them.
    pub seconds: f64,
    /// As [`WorkerLine::busy`].
    pub busy: f64,
    /// As [`WorkerLine::asleep`].
    pub asleep: f64,
    /// Packets that it served in a second.
    pub packets_per_second: f64,
    /// As [`WorkerLine::cycles_per_packet`].
    pub cycles_per_packet: Option<f64>,
}

/// A counter of flows, all workers together.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FlowCounterLine {
    /// Its label.
    pub counter: String,
    /// What it means.
    pub meaning: String,
    /// Since the process started.
    pub value: u64,
}

/// One direction of a slice, all workers together.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SliceLine {
    /// Its name.
    pub name: String,
    /// `uplink` or `downlink`.
    pub direction: String,
    /// What is guaranteed, in bit/s; `None`: no limit.
    pub guaranteed: Option<u64>,
    /// The maximum, in bit/s.
    pub maximum: Option<u64>,
    /// Packets forwarded, of either colour.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Of these, packets beyond what is guaranteed.
    pub yellow_packets: u64,
    /// Their bytes.
    pub yellow_bytes: u64,
    /// Packets dropped beyond the maximum.
    pub dropped_packets: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
}

/// An SMF.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PeerLine {
    /// Node ID.
    pub node_id: String,
    /// Where its requests come from.
    pub address: SocketAddr,
    /// Whether its last heartbeat was answered.
    pub alive: bool,
    /// Seconds since the association was set up.
    pub associated_seconds: u64,
    /// Its sessions.
    pub sessions: u64,
    /// Requests that it sent.
    pub requests: u64,
    /// Those that were refused.
    pub refused: u64,
    /// Those that it sent again.
    pub repeated: u64,
    /// Our own requests that were sent again.
    pub retransmitted: u64,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn hexadecimal_round_trip(seid: u64, teid: u32) {
            prop_assert_eq!(SeidText(seid).to_string().parse(), Ok(SeidText(seid)));
            prop_assert_eq!(TeidText(teid).to_string().parse(), Ok(TeidText(teid)));
            let json = serde_json::to_string(&SeidText(seid)).unwrap();
            prop_assert_eq!(serde_json::from_str::<SeidText>(&json).unwrap(), SeidText(seid));
            prop_assert_eq!(serde_json::from_str::<SeidText>(&seid.to_string()).unwrap(), SeidText(seid));
        }

        #[test]
        fn any_line_is_a_request_or_an_error(line in "\\PC{0,64}", seid in "[-+x0-9a-f]{0,20}") {
            let _ = serde_json::from_str::<Request>(&line);
            let _ = serde_json::from_str::<Request>(&format!("{{\"ask\":\"session\",\"seid\":\"{seid}\"}}"));
            prop_assert!("0x+1".parse::<SeidText>().is_err());
        }
    }
}
