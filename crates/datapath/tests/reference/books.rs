//! May it pass, and what is written down of it: gates, meters, the slice, quotas and thresholds.

use super::{Reference, Said};
use datapath::Reason;
use pfcp::{QerId, UrrId};
use session::rules::*;
use session::usage::{Trigger, Usage, Volume};
use std::sync::Arc;
use tables::{Colour, Nanos};

#[derive(Default)]
pub(super) struct Measured {
    pub(super) since_report: Volume,
    pub(super) since_quota: Volume,
    pub(super) first: Option<Nanos>,
    pub(super) last: Nanos,
    pub(super) exhausted: bool,
    pub(super) told: bool,
    pub(super) started: bool,
}

impl Reference {
    pub(super) fn enforce(&mut self, id: (usize, u32), pdr: &Pdr, bytes: u64) -> Result<Colour, Reason> {
        let now = self.now;
        let subscriber = self.subscribers.get_mut(&id).unwrap();
        let rules = Arc::clone(&subscriber.rules);
        let uplink = pdr.source == Source::Access;
        for urr in pdr.urrs.iter().map(|u| &rules.urrs[*u as usize]) {
            let measured = subscriber.urrs.get_mut(&urr.id).unwrap();
            if urr.blocked || measured.exhausted {
                if measured.exhausted && !measured.told {
                    measured.told = true;
                    let usage = vec![report(urr.id, measured, Trigger::VolumeQuota)];
                    self.said.push(Said::Usage(rules.seid, usage));
                }
                return Err(Reason::QuotaExhausted);
            }
        }
        let qers: Vec<&Qer> = pdr.qers.iter().map(|q| &rules.qers[*q as usize]).collect();
        let open = qers.iter().all(|q| if uplink { q.uplink_open } else { q.downlink_open });
        let limited: Vec<QerId> = qers
            .iter()
            .filter(|q| if uplink { q.uplink_mbr.is_some() } else { q.downlink_mbr.is_some() })
            .map(|q| q.id)
            .collect();
        // Each marker sees what the one before it made of the packet; a plain meter only says yes or no.
        let mut colour = Colour::Green;
        let mut given = Vec::new();
        for qer in &limited {
            colour = match subscriber.markers.get_mut(&(*qer, uplink)) {
                Some(marker) => marker.colour(now, bytes, colour),
                None if subscriber.meters.get_mut(&(*qer, uplink)).unwrap().conforms(now) => colour,
                None => Colour::Red,
            };
            given.push(colour);
        }
        // The slice is asked last, and only about what is let through so far.
        if let Some(slice) = rules.slice
            && open
            && colour != Colour::Red
        {
            let (slice, counts) = self.slices.get_mut(&(slice, uplink)).unwrap();
            colour = slice.as_mut().map_or(colour, |slice| slice.spend(now, bytes, colour));
            counts[colour as usize] += 1;
        }
        let mut verdict = Ok(colour);
        if !open {
            verdict = Err(Reason::GateClosed);
        } else if colour == Colour::Red {
            verdict = Err(Reason::RateExceeded);
        } else {
            for (qer, colour) in limited.iter().zip(given) {
                match subscriber.markers.get_mut(&(*qer, uplink)) {
                    Some(marker) => marker.charge(bytes, colour),
                    None => subscriber.meters.get_mut(&(*qer, uplink)).unwrap().take(bytes),
                }
            }
            let counts = subscriber.pdrs.entry(pdr.id).or_default();
            counts.0 += 1;
            counts.1 += bytes;
        }
        let mut usage = Vec::new();
        for urr in pdr.urrs.iter().map(|u| &rules.urrs[*u as usize]) {
            if urr.inactive || (verdict.is_err() && !urr.before_enforcement) {
                continue;
            }
            let measured = subscriber.urrs.get_mut(&urr.id).unwrap();
            for volume in [&mut measured.since_report, &mut measured.since_quota] {
                if uplink {
                    volume.uplink_packets += 1;
                    volume.uplink_bytes += bytes;
                } else {
                    volume.downlink_packets += 1;
                    volume.downlink_bytes += bytes;
                }
            }
            let first = *measured.first.get_or_insert(now);
            // The last packet's time is known to 2^24 ns.
            measured.last = measured.last.max(Nanos(now.0 >> 24 << 24)).max(first);
            if urr.start_of_traffic && !measured.started {
                measured.started = true;
                usage.push(Usage {
                    urr: urr.id,
                    trigger: Trigger::StartOfTraffic,
                    volume: Volume::default(),
                    packets_seen: Some((first, measured.last)),
                });
            }
            if !measured.exhausted && over(&urr.quota, &measured.since_quota) {
                measured.exhausted = true;
                measured.told = true;
                usage.push(report(urr.id, measured, Trigger::VolumeQuota));
            } else if over(&urr.threshold, &measured.since_report) {
                usage.push(report(urr.id, measured, Trigger::VolumeThreshold));
            }
        }
        if !usage.is_empty() {
            self.said.push(Said::Usage(rules.seid, usage));
        }
        verdict
    }
}

pub(super) fn report(id: UrrId, measured: &mut Measured, trigger: Trigger) -> Usage {
    let usage = Usage {
        urr: id,
        trigger,
        volume: measured.since_report,
        packets_seen: measured.first.map(|first| (first, measured.last)),
    };
    measured.since_report = Volume::default();
    measured.first = None;
    measured.last = Nanos(0);
    usage
}

pub(super) fn over(limit: &VolumeLimit, used: &Volume) -> bool {
    limit.total.is_some_and(|l| used.uplink_bytes + used.downlink_bytes >= l)
        || limit.uplink.is_some_and(|l| used.uplink_bytes >= l)
        || limit.downlink.is_some_and(|l| used.downlink_bytes >= l)
}

/// Guaranteed and maximum rate of a QER that has both.
pub(super) fn promise(qer: &Qer, uplink: bool) -> Option<(u64, u64)> {
    if uplink { qer.uplink_gbr.zip(qer.uplink_mbr) } else { qer.downlink_gbr.zip(qer.downlink_mbr) }
}
