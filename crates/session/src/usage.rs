//! What a shard measured for a usage reporting rule.

use pfcp::UrrId;
use tables::Nanos;

/// Packets and bytes of each direction. Bytes are those of the UE's own packets: the inner IP packet, without tunnel
/// headers (TS 29.244 §5.2.2.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Volume {
    /// Packets from the UE.
    pub uplink_packets: u64,
    /// Bytes from the UE.
    pub uplink_bytes: u64,
    /// Packets to the UE.
    pub downlink_packets: u64,
    /// Bytes to the UE.
    pub downlink_bytes: u64,
}

/// Why usage is reported: the Usage Report Trigger bits of TS 29.244 §8.2.41 that Millrace raises.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Trigger {
    /// PERIO: the measurement period elapsed.
    Periodic,
    /// VOLTH: a volume threshold was reached.
    VolumeThreshold,
    /// TIMTH: a time threshold was reached.
    TimeThreshold,
    /// VOLQU: the volume quota is exhausted.
    VolumeQuota,
    /// TIMQU: the time quota is exhausted.
    TimeQuota,
    /// QUVTI: the quota's validity ended.
    QuotaValidity,
    /// QUHTI: no packet came for the quota's holding time.
    QuotaHolding,
    /// START: the first packet of the rule's traffic was seen.
    StartOfTraffic,
    /// IMMER: asked for by the SMF (Query URR).
    Immediate,
    /// TERMR: the rule or the session was removed.
    Termination,
    /// TERMR and TEBUR: the UPF stops, and the session ends with it.
    Stop,
}

/// One rule's measurement since its last report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// The rule.
    pub urr: UrrId,
    /// Why now.
    pub trigger: Trigger,
    /// What was measured since the last report.
    pub volume: Volume,
    /// When the first and the last of those packets were seen; `None` if there were none.
    pub packets_seen: Option<(Nanos, Nanos)>,
}

impl Usage {
    /// Adds what was measured for the same rule.
    pub fn add(&mut self, more: &Self) {
        debug_assert_eq!(self.urr, more.urr);
        self.volume.uplink_packets += more.volume.uplink_packets;
        self.volume.uplink_bytes += more.volume.uplink_bytes;
        self.volume.downlink_packets += more.volume.downlink_packets;
        self.volume.downlink_bytes += more.volume.downlink_bytes;
        self.packets_seen = match (self.packets_seen, more.packets_seen) {
            (Some((first, last)), Some((other_first, other_last))) => {
                Some((first.min(other_first), last.max(other_last)))
            }
            (seen, other) => seen.or(other),
        };
    }
}
