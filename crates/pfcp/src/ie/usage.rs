//! What is measured, when it is reported, and the reports.

use crate::ids::UrrId;

/// Measurement Method (§8.2.40).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct MeasurementMethod {
    /// DURAT.
    pub duration: bool,
    /// VOLUM.
    pub volume: bool,
    /// EVENT.
    pub event: bool,
}

/// Reporting Triggers (§8.2.19): octet 5 in the low bits, then octet 6, octet 7.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ReportingTriggers(pub u32);

impl ReportingTriggers {
    /// PERIO.
    pub const PERIO: u32 = 1;
    /// VOLTH.
    pub const VOLTH: u32 = 1 << 1;
    /// TIMTH.
    pub const TIMTH: u32 = 1 << 2;
    /// QUHTI.
    pub const QUHTI: u32 = 1 << 3;
    /// START.
    pub const START: u32 = 1 << 4;
    /// STOPT.
    pub const STOPT: u32 = 1 << 5;
    /// DROTH.
    pub const DROTH: u32 = 1 << 6;
    /// LIUSA.
    pub const LIUSA: u32 = 1 << 7;
    /// VOLQU.
    pub const VOLQU: u32 = 1 << 8;
    /// TIMQU.
    pub const TIMQU: u32 = 1 << 9;
    /// ENVCL.
    pub const ENVCL: u32 = 1 << 10;
    /// MACAR.
    pub const MACAR: u32 = 1 << 11;
    /// EVETH.
    pub const EVETH: u32 = 1 << 12;
    /// EVEQU.
    pub const EVEQU: u32 = 1 << 13;
    /// QUVTI.
    pub const QUVTI: u32 = 1 << 15;
    /// UPINT (octet 7).
    pub const UPINT: u32 = 1 << 17;

    /// Whether all of these bits are set.
    pub const fn has(self, bits: u32) -> bool {
        self.0 & bits == bits
    }
}

/// Usage Report Trigger (§8.2.41): octet 5 in the low bits, then octet 6, octet 7.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct UsageReportTrigger(pub u32);

impl UsageReportTrigger {
    /// PERIO.
    pub const PERIO: u32 = 1;
    /// VOLTH.
    pub const VOLTH: u32 = 1 << 1;
    /// TIMTH.
    pub const TIMTH: u32 = 1 << 2;
    /// QUHTI.
    pub const QUHTI: u32 = 1 << 3;
    /// START.
    pub const START: u32 = 1 << 4;
    /// STOPT.
    pub const STOPT: u32 = 1 << 5;
    /// DROTH.
    pub const DROTH: u32 = 1 << 6;
    /// IMMER.
    pub const IMMER: u32 = 1 << 7;
    /// VOLQU.
    pub const VOLQU: u32 = 1 << 8;
    /// TIMQU.
    pub const TIMQU: u32 = 1 << 9;
    /// LIUSA.
    pub const LIUSA: u32 = 1 << 10;
    /// TERMR.
    pub const TERMR: u32 = 1 << 11;
    /// MONIT.
    pub const MONIT: u32 = 1 << 12;
    /// ENVCL.
    pub const ENVCL: u32 = 1 << 13;
    /// MACAR.
    pub const MACAR: u32 = 1 << 14;
    /// EVETH.
    pub const EVETH: u32 = 1 << 15;
    /// EVEQU (octet 7).
    pub const EVEQU: u32 = 1 << 16;
    /// TEBUR (octet 7): termination by the UP function.
    pub const TEBUR: u32 = 1 << 17;
    /// QUVTI (octet 7).
    pub const QUVTI: u32 = 1 << 19;
}

/// Volume Threshold or Volume Quota (§8.2.13, §8.2.50), bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct VolumeLimit {
    /// TOVOL.
    pub total: Option<u64>,
    /// ULVOL.
    pub uplink: Option<u64>,
    /// DLVOL.
    pub downlink: Option<u64>,
}

/// Measurement Information (§8.2.68).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct MeasurementInformation {
    /// MBQE: measure before QoS enforcement.
    pub before_qos: bool,
    /// INAM: inactive.
    pub inactive: bool,
    /// RADI: reduced application detection information.
    pub reduced_detection: bool,
    /// ISTM: start the time metering immediately.
    pub immediate_start: bool,
    /// MNOP: measure the number of packets.
    pub packets: bool,
}

/// Volume Measurement (§8.2.44): bytes, and packets where MNOP.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct VolumeMeasurement {
    /// TOVOL.
    pub total: Option<u64>,
    /// ULVOL.
    pub uplink: Option<u64>,
    /// DLVOL.
    pub downlink: Option<u64>,
    /// TONOP.
    pub total_packets: Option<u64>,
    /// ULNOP.
    pub uplink_packets: Option<u64>,
    /// DLNOP.
    pub downlink_packets: Option<u64>,
}

/// A time in NTP seconds since 1900 (start, end, first and last packet, quota validity where absolute).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct NtpSeconds(pub u32);

/// Usage Report within a Session Report Request, or a Modification or Deletion Response (§7.5.8.3, §7.5.5.2, §7.5.7.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UsageReport {
    /// The rule.
    pub urr: UrrId,
    /// UR-SEQN.
    pub sequence: u32,
    /// Why.
    pub trigger: UsageReportTrigger,
    /// Start Time.
    pub start: Option<NtpSeconds>,
    /// End Time.
    pub end: Option<NtpSeconds>,
    /// Volume Measurement.
    pub volume: Option<VolumeMeasurement>,
    /// Duration Measurement, seconds.
    pub duration: Option<u32>,
    /// Time of First Packet.
    pub first_packet: Option<NtpSeconds>,
    /// Time of Last Packet.
    pub last_packet: Option<NtpSeconds>,
}
