//! From what shards measured to what PFCP reports.

use super::WallClock;
use pfcp::ie::{UsageReport, UsageReportTrigger, VolumeMeasurement};
use pfcp::{Seid, UrrId};
use session::rules::Urr;
use session::usage::{Trigger, Usage, Volume};
use std::collections::HashMap;
use tables::Nanos;

/// Usage Report Trigger bits (TS 29.244 §8.2.41).
pub(super) const fn trigger(trigger: Trigger) -> UsageReportTrigger {
    UsageReportTrigger(match trigger {
        Trigger::Periodic => UsageReportTrigger::PERIO,
        Trigger::VolumeThreshold => UsageReportTrigger::VOLTH,
        Trigger::TimeThreshold => UsageReportTrigger::TIMTH,
        Trigger::VolumeQuota => UsageReportTrigger::VOLQU,
        Trigger::TimeQuota => UsageReportTrigger::TIMQU,
        Trigger::QuotaValidity => UsageReportTrigger::QUVTI,
        Trigger::QuotaHolding => UsageReportTrigger::QUHTI,
        Trigger::StartOfTraffic => UsageReportTrigger::START,
        Trigger::Immediate => UsageReportTrigger::IMMER,
        Trigger::Termination => UsageReportTrigger::TERMR,
        // TEBUR says whose doing it is; SMFs of before Release 16 know TERMR only.
        Trigger::Stop => UsageReportTrigger::TERMR | UsageReportTrigger::TEBUR,
    })
}

/// Volumes with packets (the feature MNOP is offered).
const fn volume(volume: Volume) -> VolumeMeasurement {
    VolumeMeasurement {
        total: Some(volume.uplink_bytes + volume.downlink_bytes),
        uplink: Some(volume.uplink_bytes),
        downlink: Some(volume.downlink_bytes),
        total_packets: Some(volume.uplink_packets + volume.downlink_packets),
        uplink_packets: Some(volume.uplink_packets),
        downlink_packets: Some(volume.downlink_packets),
    }
}

/// A whole Usage Report. The measurement began at `start`, or with the first packet where that is all that is known.
pub(super) fn report(
    wall: WallClock,
    now: Nanos,
    usage: &Usage,
    triggers: UsageReportTrigger,
    start: Option<Nanos>,
    sequence: u32,
) -> UsageReport {
    let start = start.or(usage.packets_seen.map(|(first, _)| first)).unwrap_or(now);
    UsageReport {
        urr: usage.urr,
        sequence,
        trigger: triggers,
        start: Some(wall.ntp(start)),
        end: Some(wall.ntp(now)),
        volume: Some(volume(usage.volume)),
        duration: Some((now.since(start) / Nanos::SECOND).min(u32::MAX as u64) as u32),
        first_packet: usage.packets_seen.map(|(first, _)| wall.ntp(first)),
        last_packet: usage.packets_seen.map(|(_, last)| wall.ntp(last)),
        application: None,
    }
}

/// When the measurement that a report ends began: with the rule, or with the rule's report before. Sessions without rules
/// cost nothing.
#[derive(Debug, Default)]
pub(super) struct Starts(HashMap<Seid, Vec<(UrrId, Nanos)>>);

impl Starts {
    /// The session has these rules now: the new ones measure from now on.
    pub fn update(&mut self, seid: Seid, rules: &[Urr], now: Nanos) {
        if rules.is_empty() {
            self.0.remove(&seid);
            return;
        }
        let starts = self.0.entry(seid).or_insert_with(|| Vec::with_capacity(rules.len()));
        starts.retain(|(id, _)| rules.iter().any(|rule| rule.id == *id));
        for rule in rules {
            if !starts.iter().any(|(id, _)| *id == rule.id) {
                starts.push((rule.id, now));
            }
        }
    }

    /// A report is made now: when did its measurement begin? `None`: not known any more.
    pub fn report(&mut self, seid: Seid, urr: UrrId, now: Nanos) -> Option<Nanos> {
        let starts = self.0.get_mut(&seid)?;
        let (_, start) = starts.iter_mut().find(|(id, _)| *id == urr)?;
        Some(std::mem::replace(start, now))
    }

    /// When each rule's measurement began.
    pub fn of(&self, seid: Seid) -> Vec<(UrrId, Nanos)> {
        self.0.get(&seid).cloned().unwrap_or_default()
    }

    /// They began then.
    pub fn put(&mut self, seid: Seid, starts: Vec<(UrrId, Nanos)>) {
        if !starts.is_empty() {
            self.0.insert(seid, starts);
        }
    }

    /// The session is gone.
    pub fn forget(&mut self, seid: Seid) {
        self.0.remove(&seid);
    }

    /// Sessions with rules.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}
