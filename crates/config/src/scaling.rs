//! `[scaling]`: how many workers own shards, and whether shards move between them (docs/workers.md).

use super::findings::{Check, way};
use super::problem::Wrong;
use super::units::{self, Text};
use engine::plan::Limits;
use engine::plan::scaler::Policy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How many workers own shards, and whether shards move between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ScalingSection {
    /// The number of workers that own shards follows the load, from `min-workers` to all of `[workers]`. If not, all own some
    /// until `millrace ctl` says otherwise.
    pub automatic: bool,
    /// The fewest workers that own shards.
    #[schemars(range(min = 1, max = 256))]
    pub min_workers: u16,
    /// Workers that are busier than this in the mean, in percent, are too few.
    #[schemars(range(min = 3, max = 99))]
    pub high: u8,
    /// Workers that are less busy than this in the mean, in percent, are too many; less than half of `high`.
    #[schemars(range(min = 1, max = 49))]
    pub low: u8,
    /// How long they must have been too busy before others join them.
    #[serde(with = "units::text")]
    #[schemars(with = "Text<Duration>")]
    pub hold_up: Duration,
    /// How long they must have been too idle before some leave.
    #[serde(with = "units::text")]
    #[schemars(with = "Text<Duration>")]
    pub hold_down: Duration,
    /// How long the number stays after a change.
    #[serde(with = "units::text")]
    #[schemars(with = "Text<Duration>")]
    pub cool_down: Duration,
    /// Shards move from workers with more than their part of the load to others.
    pub rebalance: bool,
    /// Time between two looks at the shards' loads.
    #[serde(with = "units::text")]
    #[schemars(with = "Text<Duration>")]
    pub interval: Duration,
    /// By how many percent a worker must exceed its part before shards move.
    #[schemars(range(min = 1, max = 100))]
    pub imbalance: u8,
}

impl Default for ScalingSection {
    fn default() -> Self {
        Self {
            automatic: false,
            min_workers: 1,
            high: 80,
            low: 30,
            hold_up: Duration::from_millis(100),
            hold_down: Duration::from_secs(10),
            cool_down: Duration::from_secs(1),
            rebalance: true,
            interval: Duration::from_millis(100),
            imbalance: 10,
        }
    }
}

impl ScalingSection {
    /// What chooses the number of workers is told; `max` of them may own shards.
    pub fn policy(&self, max: usize) -> Policy {
        Policy {
            min: usize::from(self.min_workers).min(max),
            max,
            high: f32::from(self.high) / 100.0,
            low: f32::from(self.low) / 100.0,
            hold_up: self.hold_up,
            hold_down: self.hold_down,
            cool_down: self.cool_down,
            automatic: self.automatic,
        }
    }

    /// What levels the workers is told; `None`: they are not levelled.
    pub fn limits(&self) -> Option<Limits> {
        let imbalance = f32::from(self.imbalance) / 100.0;
        self.rebalance.then(|| Limits { imbalance, settle: imbalance / 5.0, ..Limits::default() })
    }
}

impl Check<'_> {
    /// Thresholds that don't swing, times that make sense, and not more workers than there are.
    pub(super) fn scaling(&mut self, section: &ScalingSection, dispatchers: u16, workers: u16) {
        let key = |key: &str| way!["scaling", key];
        let (whole, limit) = ("[workers] count without dispatchers", workers.saturating_sub(dispatchers));
        if limit == 0 {
            // Somebody has to own shards.
            let (part, value, most) = ("dispatchers", dispatchers.into(), workers.saturating_sub(1).into());
            let wrong = Wrong::LimitOrder { part, value, whole: "[workers] count less one", limit: most };
            self.wrong(&way!["workers", "dispatchers"], wrong);
        } else if section.min_workers > limit {
            let (part, value, limit) = ("min-workers", section.min_workers.into(), limit.into());
            self.wrong(&key(part), Wrong::LimitOrder { part, value, whole, limit });
        }
        if section.low * 2 >= section.high {
            let (low, high) = (section.low, section.high);
            self.wrong_with(&key("low"), Wrong::Swinging { low, high }, &key("high"), "`high`");
        }
        let milliseconds = Duration::from_millis;
        for (name, value, (shortest, least), (longest, greatest)) in [
            ("hold-up", section.hold_up, (10, "10ms"), (60_000, "60s")),
            ("hold-down", section.hold_down, (100, "100ms"), (3_600_000, "1h")),
            ("cool-down", section.cool_down, (0, "0s"), (3_600_000, "1h")),
            ("interval", section.interval, (10, "10ms"), (60_000, "60s")),
        ] {
            if !(milliseconds(shortest)..=milliseconds(longest)).contains(&value) {
                self.wrong(&key(name), Wrong::DurationOutOfRange { key: name, least, greatest });
            }
        }
    }
}
