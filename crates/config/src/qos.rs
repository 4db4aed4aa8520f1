//! `[qos]`: the classes in which packets wait to be sent, and the receive queues that come ahead of RSS.

use super::units::{self, Text};
use engine::egress::{Class, Kind, Plan};
use io::steering::{DEFAULT_BURSTS, Group, Steering};
use packet::Dscp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Who waits, and who is served first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct QosSection {
    /// A receive queue of its own for control protocols, on ports that can steer.
    pub control_queue: bool,
    /// Classes in which packets wait for a port that is busy, the most urgent first. Default: eight, see docs/qos.md.
    #[schemars(length(max = 8))]
    pub class: Vec<ClassSection>,
    /// Groups of receive queues by code point, on ports that can steer, the most urgent first. Default: none.
    #[schemars(length(max = 7))]
    pub group: Vec<GroupSection>,
}

impl Default for QosSection {
    fn default() -> Self {
        Self { control_queue: true, class: Vec::new(), group: Vec::new() }
    }
}

/// A class in which packets wait to be sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClassSection {
    /// Its name in displays.
    pub name: String,
    /// Its code points: names such as `EF` and `AF41`, or numbers. Exactly one class has none: it takes all others.
    #[serde(default, with = "units::list")]
    #[schemars(with = "Vec<Text<Dscp>>")]
    pub dscp: Vec<Dscp>,
    /// Its part of what strict classes leave, relative to other weights. Without a weight the class is strict: it goes
    /// before all that follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub weight: Option<u8>,
    /// The most that a strict class sends while others wait, in percent of the port. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 99))]
    pub share: Option<u8>,
    /// Packets that wait at most, at each port and worker; AFx2 at most three quarters of it, AFx3 half.
    #[serde(default = "default_packets")]
    #[schemars(range(min = 1, max = 65_536))]
    pub packets: u32,
    /// Bytes that wait at most, likewise. Default: 1536 for each packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 64, max = 1_073_741_824))]
    pub bytes: Option<u64>,
}

const fn default_packets() -> u32 {
    256
}

/// Receive queues of their own, one for each worker, for some code points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GroupSection {
    /// Its name in displays.
    pub name: String,
    /// Its code points, as in a class.
    #[serde(with = "units::list")]
    #[schemars(with = "Vec<Text<Dscp>>")]
    pub dscp: Vec<Dscp>,
    /// Full bursts of 64 packets that a worker takes from it before it looks at less urgent queues.
    #[serde(default = "default_bursts")]
    #[schemars(range(min = 1, max = 64))]
    pub bursts: u8,
}

const fn default_bursts() -> u8 {
    DEFAULT_BURSTS
}

impl From<&ClassSection> for Class {
    fn from(section: &ClassSection) -> Self {
        let kind = match section.weight {
            Some(weight) => Kind::Weighted { weight },
            None => Kind::Strict { share: section.share },
        };
        let class = Self::new(&section.name, section.dscp.iter().copied(), kind, section.packets);
        Self { bytes: section.bytes.unwrap_or(class.bytes), ..class }
    }
}

impl From<&GroupSection> for Group {
    fn from(section: &GroupSection) -> Self {
        let group = Self::new(&section.name, section.dscp.iter().copied());
        Self { bursts: section.bursts, ..group }
    }
}

/// Who waits and who is served first, as ports and workers are told.
#[derive(Clone, PartialEq, Debug)]
pub struct Qos {
    /// How what a port can't send at once waits.
    pub egress: Arc<Plan>,
    /// What ports that can steer are to do ahead of RSS.
    pub steering: Steering,
}
