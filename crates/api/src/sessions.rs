//! What `ctl sessions` and `ctl session` are asked and tell.

use super::{DropLine, SeidText, TeidText};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr};

/// Which session: by one of these.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionSelector {
    /// Its UP SEID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seid: Option<SeidText>,
    /// An address of its UE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ue: Option<IpAddr>,
    /// The TEID of one of its tunnels here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub teid: Option<TeidText>,
    /// Its user, as in [`SessionQuery::user`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// Which sessions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionQuery {
    /// How many of those that match to pass over, in order of SEID.
    pub offset: u64,
    /// The most to tell, at most [`super::MAX_PAGE`].
    pub limit: u32,
    /// Only the sessions of the UE that uses this address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ue: Option<IpAddr>,
    /// Only the sessions of this user: an IMSI, MSISDN, NAI, … with or without `imsi-` and the like before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Only sessions with this DNN or APN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dnn: Option<String>,
    /// Only sessions with this tunnel of ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub teid: Option<TeidText>,
    /// Only the sessions of this SMF (its Node ID).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Only sessions with this Network Instance, as the SMF named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_instance: Option<String>,
}

impl Default for SessionQuery {
    fn default() -> Self {
        Self {
            offset: 0,
            limit: 100,
            ue: None,
            user: None,
            dnn: None,
            teid: None,
            peer: None,
            network_instance: None,
        }
    }
}

/// Some sessions, in order of SEID.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SessionPage {
    /// How many sessions match.
    pub total: u64,
    /// How many were passed over.
    pub offset: u64,
    /// Those after them.
    pub sessions: Vec<SessionLine>,
}

/// A session in brief.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SessionLine {
    /// UP SEID.
    pub seid: SeidText,
    /// CP SEID: the SMF's.
    pub cp_seid: SeidText,
    /// The SMF's Node ID.
    pub peer: String,
    /// The UE's IPv4 address.
    pub ue_ipv4: Option<Ipv4Addr>,
    /// The UE's IPv6 prefix.
    pub ue_ipv6: Option<String>,
    /// The user, by the first identity that the SMF gave, such as `imsi-001010000000001`.
    #[serde(default)]
    pub user: Option<String>,
    /// DNN or APN.
    #[serde(default)]
    pub dnn: Option<String>,
    /// The slice, such as `1-00007b`.
    #[serde(default)]
    pub s_nssai: Option<String>,
    /// Network Instance as the SMF named it, whether it is configured or not; several are joined by commas; empty: none was given.
    pub network_instance: String,
    /// The shard that owns it.
    pub shard: u16,
    /// How many PDRs, FARs, QERs and URRs it has.
    pub rules: RuleCounts,
}

/// Numbers of rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RuleCounts {
    /// Packet Detection Rules.
    pub pdrs: u16,
    /// Forwarding Action Rules.
    pub fars: u16,
    /// QoS Enforcement Rules.
    pub qers: u16,
    /// Usage Reporting Rules.
    pub urrs: u16,
}

/// All about a session.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SessionDetail {
    /// In brief.
    pub session: SessionLine,
    /// All identities of the user.
    #[serde(default)]
    pub identities: Vec<String>,
    /// User Plane Inactivity Timer in seconds.
    #[serde(default)]
    pub inactivity_timer: Option<u32>,
    /// Packet Detection Rules, in the order in which they are tried.
    pub pdrs: Vec<PdrLine>,
    /// Forwarding Action Rules.
    pub fars: Vec<FarLine>,
    /// QoS Enforcement Rules.
    pub qers: Vec<QerLine>,
    /// Usage Reporting Rules.
    pub urrs: Vec<UrrLine>,
    /// Why packets of this session were dropped; reasons that occurred only.
    pub drops: Vec<DropLine>,
    /// Packets that wait for the UE.
    pub buffered: u32,
}

/// A PDR.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PdrLine {
    /// PDR ID.
    pub id: u16,
    /// Lower is tried first.
    pub precedence: u32,
    /// Source Interface: `access`, `core`, `n6-lan`, `cp-function`.
    pub source: String,
    /// The tunnel that its packets come from.
    pub teid: Option<TeidText>,
    /// From where the tunnel's packets came last, while sources are checked.
    #[serde(default)]
    pub heard: Option<IpAddr>,
    /// QFIs that its packets carry; empty: any, or none.
    #[serde(default)]
    pub qfis: Vec<u8>,
    /// Its filters as text, written for the packet's own direction.
    pub filters: Vec<String>,
    /// FAR ID.
    pub far: u32,
    /// QER IDs.
    pub qers: Vec<u32>,
    /// URR IDs.
    pub urrs: Vec<u32>,
    /// Packets that matched and were forwarded.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A FAR.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FarLine {
    /// FAR ID.
    pub id: u32,
    /// `forward`, `drop`, `buffer`, `buffer and notify`.
    pub action: String,
    /// Destination Interface, if it forwards.
    pub destination: Option<String>,
    /// The tunnel that it forwards into.
    pub tunnel: Option<TunnelEnd>,
}

/// The far end of a tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TunnelEnd {
    /// Its TEID.
    pub teid: TeidText,
    /// Its address.
    pub peer: IpAddr,
}

/// A QER.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct QerLine {
    /// QER ID.
    pub id: u32,
    /// Uplink gate open.
    pub uplink_open: bool,
    /// Downlink gate open.
    pub downlink_open: bool,
    /// Maximum bit rate uplink in bit/s; none: not limited.
    pub uplink_mbr: Option<u64>,
    /// Maximum bit rate downlink in bit/s.
    pub downlink_mbr: Option<u64>,
    /// Guaranteed bit rate uplink in bit/s.
    #[serde(default)]
    pub uplink_gbr: Option<u64>,
    /// Guaranteed bit rate downlink in bit/s.
    #[serde(default)]
    pub downlink_gbr: Option<u64>,
    /// QoS Flow Identifier.
    pub qfi: Option<u8>,
}

/// A URR with what it measured since its last report.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct UrrLine {
    /// URR ID.
    pub id: u32,
    /// Bytes from the UE since the last report.
    pub uplink_bytes: u64,
    /// Bytes to the UE since the last report.
    pub downlink_bytes: u64,
    /// Report at these bytes in total since the last report.
    pub threshold: Option<u64>,
    /// Report at these bytes from the UE.
    #[serde(default)]
    pub uplink_threshold: Option<u64>,
    /// Report at these bytes to the UE.
    #[serde(default)]
    pub downlink_threshold: Option<u64>,
    /// Stop at these bytes in total since the quota was given.
    pub quota: Option<u64>,
    /// Stop at these bytes from the UE.
    #[serde(default)]
    pub uplink_quota: Option<u64>,
    /// Stop at these bytes to the UE.
    #[serde(default)]
    pub downlink_quota: Option<u64>,
    /// Bytes that are left of `quota`.
    #[serde(default)]
    pub left: Option<u64>,
    /// Bytes that are left of `uplink_quota`.
    #[serde(default)]
    pub uplink_left: Option<u64>,
    /// Bytes that are left of `downlink_quota`.
    #[serde(default)]
    pub downlink_left: Option<u64>,
    /// A quota, of volume or of time, is used up: its packets are dropped.
    #[serde(default)]
    pub used_up: bool,
    /// Seconds between two reports.
    #[serde(default)]
    pub period: Option<u32>,
    /// Report after so many seconds.
    #[serde(default)]
    pub time_threshold: Option<u32>,
    /// Stop after so many seconds.
    #[serde(default)]
    pub time_quota: Option<u32>,
    /// The quota lapses after so many seconds.
    #[serde(default)]
    pub quota_validity: Option<u32>,
    /// The quota lapses when it was not used for so many seconds.
    #[serde(default)]
    pub quota_holding: Option<u32>,
}
