//! What is measured, when it is reported, and the reports.

use super::wire::{Fields, Wire, flag, write_bits, write_counted};
use crate::error::Fault;
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
#[derive(Clone, PartialEq, Eq, Debug)]
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
    /// Application Detection Information: which application's traffic begins or ends.
    pub application: Option<ApplicationDetection>,
}

/// Application Detection Information (§7.5.8.3, table 7.5.8.3-2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApplicationDetection {
    /// Application ID.
    pub application_id: Box<[u8]>,
    /// Application Instance ID (§8.2.60): the same where it begins and where it ends.
    pub instance: Option<Box<[u8]>>,
    /// Flow Information.
    pub flow: Option<FlowInformation>,
}

/// Flow Information (§8.2.61).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowInformation {
    /// Which way its packets go.
    pub direction: FlowDirection,
    /// An IPFilterRule.
    pub description: Box<[u8]>,
}

/// Flow Direction (§8.2.61).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FlowDirection(pub u8);

impl FlowDirection {
    /// Not said.
    pub const UNSPECIFIED: Self = Self(0);
    /// To the UE.
    pub const DOWNLINK: Self = Self(1);
    /// From the UE.
    pub const UPLINK: Self = Self(2);
    /// Both ways.
    pub const BIDIRECTIONAL: Self = Self(3);
}

impl Wire<'_> for FlowInformation {
    fn read(value: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields(value);
        let direction = FlowDirection(fields.octet()? & 7);
        Ok(Self { direction, description: fields.counted()?.into() })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.direction.0 & 7);
        write_counted(out, &self.description);
    }
}

impl Wire<'_> for MeasurementMethod {
    fn read(value: &[u8]) -> Result<Self, Fault> {
        let flags = Fields(value).octet()?;
        Ok(Self { duration: flags & 1 != 0, volume: flags & 1 << 1 != 0, event: flags & 1 << 2 != 0 })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(flag(self.duration, 0) | flag(self.volume, 1) | flag(self.event, 2));
    }
}

impl Wire<'_> for ReportingTriggers {
    /// One to three octets: release 14 sends two, release 16 three.
    fn read(value: &[u8]) -> Result<Self, Fault> {
        Ok(Self(Fields(value).bits::<3>()? as u32))
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_bits(out, u64::from(self.0 & 0x00ff_ffff), 3);
    }
}

impl Wire<'_> for UsageReportTrigger {
    fn read(value: &[u8]) -> Result<Self, Fault> {
        Ok(Self(Fields(value).bits::<3>()? as u32))
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_bits(out, u64::from(self.0 & 0x00ff_ffff), 3);
    }
}

/// The 64-bit numbers that are there, in order.
fn write_counts(out: &mut Vec<u8>, counts: &[Option<u64>]) {
    let flags =
        counts.iter().enumerate().fold(0, |flags, (bit, count)| flags | flag(count.is_some(), bit as u8));
    out.push(flags);
    for count in counts.iter().flatten() {
        out.extend_from_slice(&count.to_be_bytes());
    }
}

impl Wire<'_> for VolumeLimit {
    fn read(value: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields(value);
        let flags = fields.octet()?;
        Ok(Self {
            total: fields.when(flags & 1 != 0, Fields::u64)?,
            uplink: fields.when(flags & 1 << 1 != 0, Fields::u64)?,
            downlink: fields.when(flags & 1 << 2 != 0, Fields::u64)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_counts(out, &[self.total, self.uplink, self.downlink]);
    }
}

impl Wire<'_> for MeasurementInformation {
    fn read(value: &[u8]) -> Result<Self, Fault> {
        let flags = Fields(value).octet()?;
        Ok(Self {
            before_qos: flags & 1 != 0,
            inactive: flags & 1 << 1 != 0,
            reduced_detection: flags & 1 << 2 != 0,
            immediate_start: flags & 1 << 3 != 0,
            packets: flags & 1 << 4 != 0,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(
            flag(self.before_qos, 0)
                | flag(self.inactive, 1)
                | flag(self.reduced_detection, 2)
                | flag(self.immediate_start, 3)
                | flag(self.packets, 4),
        );
    }
}

impl Wire<'_> for VolumeMeasurement {
    fn read(value: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields(value);
        let flags = fields.octet()?;
        let mut count = |bit: u8| fields.when(flags & 1 << bit != 0, Fields::u64);
        Ok(Self {
            total: count(0)?,
            uplink: count(1)?,
            downlink: count(2)?,
            total_packets: count(3)?,
            uplink_packets: count(4)?,
            downlink_packets: count(5)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_counts(
            out,
            &[
                self.total,
                self.uplink,
                self.downlink,
                self.total_packets,
                self.uplink_packets,
                self.downlink_packets,
            ],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_of_two_and_of_three_octets() {
        let triggers = ReportingTriggers(ReportingTriggers::VOLTH | ReportingTriggers::VOLQU);
        assert_eq!(ReportingTriggers::read(&[2, 1]), Ok(triggers));
        assert_eq!(ReportingTriggers::read(&[2, 1, 0]), Ok(triggers));
        assert_eq!(
            UsageReportTrigger::read(&[0, 8, 2]),
            Ok(UsageReportTrigger(UsageReportTrigger::TERMR | UsageReportTrigger::TEBUR))
        );
    }

    #[test]
    fn volumes() {
        let bytes = [6, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2];
        let limit = VolumeLimit { total: None, uplink: Some(1), downlink: Some(2) };
        assert_eq!(VolumeLimit::read(&bytes), Ok(limit));
        assert_eq!(VolumeLimit::read(&bytes[..16]), Err(Fault::Length));
        let mut out = Vec::new();
        limit.write(&mut out);
        assert_eq!(out, bytes);
        let packets = [0x08, 0, 0, 0, 0, 0, 0, 0, 9];
        assert_eq!(VolumeMeasurement::read(&packets).map(|volume| volume.total_packets), Ok(Some(9)));
    }
}
