//! The part of a port's section that makes one port of several devices.

use super::units::{self, DeviceName, Text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the devices of an aggregated port work together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BondMode {
    /// One carries everything, the others wait for its link to go down.
    ActiveBackup,
    /// Static: a hash of the headers chooses, so that a flow stays on one device.
    Balance,
    /// Static: packet by packet in turn. Reorders flows.
    RoundRobin,
    /// As `balance`, over the devices that LACP (IEEE 802.1AX) agrees upon with the other end.
    Lacp,
}

/// What is hashed to choose a device for sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BondTransmit {
    /// MAC addresses.
    L2,
    /// MAC and IP addresses.
    L23,
    /// IP addresses and ports.
    #[default]
    L34,
}

/// How long LACP waits for a silent partner (IEEE 802.1AX).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BondTimeout {
    /// 3 seconds; the partner is asked to send every second.
    #[default]
    Short,
    /// 90 seconds; the partner is asked to send every 30 seconds.
    Long,
}

/// Several devices that are one port (link aggregation).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BondSection {
    /// How they work together.
    pub mode: BondMode,
    /// The devices, one to eight, each as in a port's `device`.
    #[serde(with = "units::list")]
    #[schemars(with = "Vec<Text<DeviceName>>")]
    pub members: Vec<DeviceName>,
    /// What chooses a device for sending (`balance` and `lacp`).
    #[serde(default)]
    pub transmit: BondTransmit,
    /// The device that carries everything whenever its link is up (`active-backup`). Default: whichever does goes on to.
    #[serde(default, with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<DeviceName>>")]
    pub primary: Option<DeviceName>,
    /// How long a silent partner is waited for (`lacp`). Default: short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<BondTimeout>,
}

/// Several devices that are one port; examined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bond {
    /// How they work together.
    pub mode: BondMode,
    /// One to `MAX_MEMBERS`, each once.
    pub members: Vec<DeviceName>,
    /// What chooses a device for sending.
    pub transmit: BondTransmit,
    /// Position in `members` of the one that is preferred.
    pub primary: Option<usize>,
    /// How long a silent partner is waited for.
    pub timeout: BondTimeout,
}

/// The most devices of one port.
pub const MAX_MEMBERS: usize = 8;

impl BondSection {
    /// The port, or what is wrong with it and what would be right.
    pub(crate) fn examined(&self) -> Result<Bond, (&'static str, &'static str)> {
        let Self { mode, members, transmit, primary, timeout } = self;
        if members.is_empty() || members.len() > MAX_MEMBERS {
            return Err((
                "no members, or too many",
                "members = [\"0000:01:00.0\", \"0000:01:00.1\"], at most 8",
            ));
        }
        if members
            .iter()
            .any(|member| matches!(member, DeviceName::Vdev { name, .. } if name.starts_with("net_bonding")))
        {
            return Err(("an aggregated port as a member of another", "members are single devices"));
        }
        let position = |device: &DeviceName| members.iter().position(|member| member == device);
        let at = match primary.as_ref().map(position) {
            Some(None) => {
                return Err(("a primary that is none of its members", "`primary` is one of `members`"));
            }
            Some(at) => at,
            None => None,
        };
        if at.is_some() && *mode != BondMode::ActiveBackup {
            let help = "drop it: where all carry packets, none is preferred";
            return Err(("a primary, which only `active-backup` has", help));
        }
        if timeout.is_some() && *mode != BondMode::Lacp {
            return Err((
                "a timeout, which only `lacp` has",
                "drop it: without LACP there is nobody to wait for",
            ));
        }
        let (members, timeout) = (members.clone(), timeout.unwrap_or_default());
        Ok(Bond { mode: *mode, members, transmit: *transmit, primary: at, timeout })
    }
}
