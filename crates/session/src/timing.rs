//! What about usage reporting is driven by time, and thus by the control side: periods, thresholds and quotas in
//! seconds, and the numbers of reports.

use crate::model::{Model, Triggers, Urr};
use crate::rules::VolumeLimit;
use pfcp::UrrId;
use std::time::Duration;

/// The time-driven part of a URR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UrrTiming {
    /// The rule.
    pub urr: UrrId,
    /// What is to be reported.
    pub triggers: Triggers,
    /// PERIO: report this often.
    pub period: Option<Duration>,
    /// TIMTH: report after so much time of use.
    pub time_threshold: Option<Duration>,
    /// TIMQU: block after so much time of use.
    pub time_quota: Option<Duration>,
    /// The quota lapses after this time.
    pub quota_validity: Option<Duration>,
    /// QUHTI: the quota lapses when no packet came for this time.
    pub quota_holding: Option<Duration>,
    /// Changes with every quota: the clocks of the quota begin again.
    pub quota_generation: u32,
}

fn has_quota(urr: &Urr) -> bool {
    urr.time_quota.is_some() || urr.quota != VolumeLimit::default()
}

/// Those URRs of a session that time drives.
pub fn timings(model: &Model) -> Vec<UrrTiming> {
    let seconds = |seconds: Option<u32>| seconds.map(|seconds| Duration::from_secs(seconds.into()));
    let urrs = model.urrs.iter().map(|urr| UrrTiming {
        urr: urr.id,
        triggers: urr.triggers,
        period: seconds(urr.period.filter(|_| urr.triggers.periodic)),
        time_threshold: seconds(urr.time_threshold.filter(|_| urr.triggers.time_threshold)),
        time_quota: seconds(urr.time_quota),
        quota_validity: seconds(urr.quota_validity),
        quota_holding: seconds(urr.quota_holding.filter(|_| has_quota(urr))),
        quota_generation: urr.quota_generation,
    });
    urrs.filter(|timing| {
        let quota = [timing.time_quota, timing.quota_validity, timing.quota_holding];
        quota.iter().chain([&timing.period, &timing.time_threshold]).any(Option::is_some)
    })
    .collect()
}

/// UR-SEQN (§8.2.71): how many reports were made for each rule.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sequences(Vec<(UrrId, u32)>);

impl Sequences {
    /// Those of rules that had reports: the rule, and the number of the next one.
    pub(crate) const fn list(&self) -> &Vec<(UrrId, u32)> {
        &self.0
    }

    /// What [`Self::list`] was.
    pub(crate) const fn of(list: Vec<(UrrId, u32)>) -> Self {
        Self(list)
    }

    /// The number for the next report of a rule, counting from 0. `known` says which rules still exist: the others
    /// are forgotten when the list would grow beyond `limit`.
    pub fn next(&mut self, urr: UrrId, limit: usize, known: impl Fn(UrrId) -> bool) -> u32 {
        let list = &mut self.0;
        if let Some((_, next)) = list.iter_mut().find(|(id, _)| *id == urr) {
            let number = *next;
            *next = next.wrapping_add(1);
            return number;
        }
        if list.len() >= limit {
            list.retain(|(id, _)| known(*id));
        }
        list.push((urr, 1));
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_numbered_per_rule() {
        let mut sequences = Sequences::default();
        let numbers = [1, 2, 1, 1, 2].map(|urr| sequences.next(UrrId(urr), 8, |_| true));
        assert_eq!(numbers, [0, 0, 1, 2, 1]);
    }

    #[test]
    fn rules_that_are_gone_are_forgotten_in_time() {
        let mut sequences = Sequences::default();
        for urr in 0..1000 {
            sequences.next(UrrId(urr), 4, |urr| urr.0 == 0);
        }
        assert!(sequences.0.len() <= 5);
    }
}
