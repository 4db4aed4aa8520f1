//! The number of workers and their shares follow the load: figures in, [`crate::plan`] decides, moves out.

use crate::control::Engine;
use crate::plan::meter::Meter;
use crate::plan::scaler::{Decision, Policy, Sample, Scaler, ScalerError, Why};
use crate::plan::{self, Limits, Planner, TooHeavy};
use crate::watchdog::{Heartbeat, Sight, Watchdog};
use session::{SHARDS, ShardId};
use std::time::Duration;
use tables::Nanos;

/// How often figures are looked at.
const INTERVAL: u64 = 10_000_000;

/// When workers are added and removed, and shards moved.
#[derive(Clone, Debug)]
pub struct Scaling {
    /// Bounds and thresholds of the number of workers that own shards; `max` is brought down to the workers there are.
    pub policy: Policy,
    /// How often shards are levelled; `None`: never.
    pub rebalance: Option<Duration>,
    /// When a levelling is worth it, in packets between two looks. Packets, not time: a polling worker with little to do takes
    /// each packet by itself, and is busy nearly all the time with a third of what it could do (measured: 85 %).
    pub limits: Limits,
    /// An awake worker that does nothing for this long is reported.
    pub stalled_after: Duration,
}

impl Default for Scaling {
    /// Shards are levelled; the number of workers changes by hand only.
    fn default() -> Self {
        Self {
            policy: Policy { max: crate::placement::MAX_WORKERS, ..Policy::default() },
            rebalance: Some(Duration::from_millis(100)),
            // With some ten thousand packets a second there is nothing to level.
            limits: Limits { least: 2_000, ..Limits::default() },
            stalled_after: Duration::from_millis(500),
        }
    }
}

/// What regulation did or saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Another number of workers is to own shards.
    Scaled {
        /// Before.
        from: usize,
        /// From now on.
        to: usize,
        /// Why.
        why: Why,
    },
    /// Shards move so that workers are level.
    Rebalanced {
        /// How many.
        shards: usize,
        /// The heaviest worker's load in parts of the mean, before.
        before: f32,
        /// And after, if loads stay.
        after: f32,
    },
    /// A shard is more than a worker can carry: no move helps.
    TooHeavy(TooHeavy),
    /// About a worker's heartbeat.
    Sight(Sight),
}

/// What regulation remembers.
#[derive(Debug)]
pub(crate) struct Regulator {
    scaler: Scaler,
    planner: Planner,
    meter: Meter,
    watchdog: Watchdog,
    rebalance: Option<u64>,
    next: Nanos,
    next_balance: Nanos,
    /// Shards that are known to be too heavy.
    heavy: Vec<ShardId>,
}

impl Regulator {
    /// Errors: bounds or thresholds make no sense. `owning`: workers that may own shards.
    pub fn new(scaling: &Scaling, owning: usize) -> Result<Self, ScalerError> {
        let policy = Policy { max: scaling.policy.max.min(owning), ..scaling.policy };
        Ok(Self {
            scaler: Scaler::new(policy)?,
            planner: Planner::new(scaling.limits),
            meter: Meter::new(),
            watchdog: Watchdog::new(scaling.stalled_after.as_nanos() as u64),
            rebalance: scaling.rebalance.map(|every| every.as_nanos() as u64),
            next: Nanos(0),
            next_balance: Nanos(0),
            heavy: Vec::new(),
        })
    }
}

impl Engine {
    /// So many workers are to own shards, until [`Engine::release_scale`]. Of several requests, and of those that come while shards
    /// move, the last one counts. Takes effect with the next [`Engine::regulate`].
    ///
    /// Errors: more than there are, or fewer than the configuration allows.
    pub fn scale(&mut self, workers: usize) -> Result<(), ScalerError> {
        self.regulator.scaler.request(workers)?;
        self.regulator.next = Nanos(0);
        Ok(())
    }

    /// The number of workers follows the load again, if the configuration says so.
    pub fn release_scale(&mut self) {
        self.regulator.scaler.release();
    }

    /// The number that was asked for, if any.
    pub fn asked_scale(&self) -> Option<usize> {
        self.regulator.scaler.asked()
    }

    /// Workers that own shards, or will when the change that is going on has ended.
    pub const fn active(&self) -> usize {
        self.active
    }

    /// Looks at the figures, if it is time, and wants shards moved. Call it in every round of the control thread.
    pub fn regulate(&mut self, mut tell: impl FnMut(Change)) {
        let now = self.clock().now();
        if now < self.regulator.next {
            return;
        }
        self.regulator.next = now.plus(INTERVAL);
        let gauges = self.gauges();
        let heartbeats: Vec<_> = gauges
            .iter()
            .enumerate()
            .map(|(worker, gauge)| Heartbeat {
                beat: gauge.heartbeat,
                // The dead have no heartbeat to be missed.
                asleep: gauge.asleep || !self.is_alive(worker),
            })
            .collect();
        self.regulator.watchdog.check(now, &heartbeats, |sight| tell(Change::Sight(sight)));
        let moving = !self.director.is_idle();
        let capacities = self.capacities(self.active);
        let samples: Vec<_> = gauges
            .iter()
            .zip(&capacities)
            .filter(|(_, capacity)| **capacity > 0)
            .map(|(gauge, _)| Sample { load: gauge.load, ring: gauge.ring, asleep: gauge.asleep })
            .collect();
        if let Some(Decision { workers, why }) =
            self.regulator.scaler.decide(now, self.active, &samples, moving)
        {
            let from = std::mem::replace(&mut self.active, workers);
            let capacities = self.capacities(workers);
            let loads = self.regulator.planner.loads();
            let moves = plan::scale(&loads, &self.map.as_bytes(), &capacities);
            self.director.want(moves.into_iter().map(|one| (one.shard, one.to)));
            tell(Change::Scaled { from, to: workers, why });
        } else if let Some(every) = self.regulator.rebalance
            && now >= self.regulator.next_balance
        {
            self.regulator.next_balance = now.plus(every);
            let packets: Vec<[u64; SHARDS]> = self
                .shard_loads()
                .map(|loads| std::array::from_fn(|shard| loads.packets(ShardId::from_hash(shard as u32))))
                .collect();
            let loads = self.regulator.meter.read(&packets);
            self.regulator.planner.observe(&loads);
            if !moving {
                self.level(&capacities, &mut tell);
            }
        }
    }

    fn level(&mut self, capacities: &[u16], tell: &mut impl FnMut(Change)) {
        let plan = self.regulator.planner.plan(&self.map.as_bytes(), capacities);
        for heavy in &plan.too_heavy {
            if !self.regulator.heavy.contains(&heavy.shard) {
                tell(Change::TooHeavy(*heavy));
            }
        }
        self.regulator.heavy = plan.too_heavy.iter().map(|heavy| heavy.shard).collect();
        if !plan.moves.is_empty() {
            let (shards, before, after) = (plan.moves.len(), plan.before, plan.after);
            self.director.want(plan.moves.into_iter().map(|one| (one.shard, one.to)));
            tell(Change::Rebalanced { shards, before, after });
        }
    }

    /// By worker: 1 for the first so many that may own shards and are alive.
    fn capacities(&self, active: usize) -> Vec<u16> {
        let mut left = active;
        let able = |worker: usize| self.owning.contains(&worker) && self.is_alive(worker);
        let count = |worker| {
            let takes = left > 0 && able(worker);
            left -= usize::from(takes);
            u16::from(takes)
        };
        (0..self.owning.end).map(count).collect()
    }
}
