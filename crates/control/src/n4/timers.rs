//! Usage reporting that time drives: periods, time thresholds, time quotas, quota validity; and delayed notifications.

use super::{N4, Order, Pending};
use datapath::command::{Command, Transition};
use pfcp::{PdrId, Seid, UrrId};
use session::timing::UrrTiming;
use session::usage::Trigger;
use std::collections::HashMap;
use std::time::Duration;
use tables::Nanos;
use tables::wheel::{TimerId, Wheel};

/// Resolution: PFCP's times are seconds, its notification delay counts in 50 ms.
const TICK: u64 = 10_000_000;
/// Timers, at most: one million sessions with four timed conditions each.
const MAX_TIMERS: u32 = 1 << 22;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Period,
    Threshold,
    Quota,
    Validity,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Period, Self::Threshold, Self::Quota, Self::Validity];

    const fn time(self, timing: &UrrTiming) -> Option<Duration> {
        match self {
            Self::Period => timing.period,
            Self::Threshold => timing.time_threshold,
            Self::Quota => timing.time_quota,
            Self::Validity => timing.quota_validity,
        }
    }

    const fn is_of_quota(self) -> bool {
        matches!(self, Self::Quota | Self::Validity)
    }
}

#[derive(Clone, Copy, Debug)]
enum Timer {
    Urr { seid: Seid, urr: UrrId, kind: Kind },
    Notify { seid: Seid, pdr: PdrId },
}

#[derive(Debug)]
struct Running {
    timing: UrrTiming,
    timers: Vec<(Kind, TimerId)>,
}

/// All timers of all sessions.
#[derive(Debug)]
pub(super) struct Timers {
    wheel: Wheel<Timer>,
    running: HashMap<Seid, Vec<Running>>,
}

impl Timers {
    pub fn new(now: Nanos) -> Self {
        Self { wheel: Wheel::new(now, TICK, MAX_TIMERS), running: HashMap::new() }
    }

    pub fn next_deadline(&self) -> Option<Nanos> {
        self.wheel.next_event()
    }

    /// The session's URRs now have these times. A clock whose time did not change keeps running; those of a quota begin again with
    /// every new quota. False: there was no room for a timer.
    pub fn update(&mut self, now: Nanos, seid: Seid, timings: &[UrrTiming]) -> bool {
        if timings.is_empty() && !self.running.contains_key(&seid) {
            return true;
        }
        let mut old = self.running.remove(&seid).unwrap_or_default();
        let mut all = Vec::with_capacity(timings.len());
        let mut room = true;
        for timing in timings {
            let before =
                old.iter().position(|running| running.timing.urr == timing.urr).map(|at| old.swap_remove(at));
            let mut timers = Vec::new();
            for kind in Kind::ALL {
                let after = kind.time(timing);
                if let Some(before) = &before
                    && kind.time(&before.timing) == after
                    && (!kind.is_of_quota() || before.timing.quota_generation == timing.quota_generation)
                {
                    timers.extend(before.timers.iter().filter(|(known, _)| *known == kind));
                    continue;
                }
                let Some(after) = after else { continue };
                let timer = Timer::Urr { seid, urr: timing.urr, kind };
                match self.wheel.insert(now.plus(nanos(after)), timer) {
                    Ok(id) => timers.push((kind, id)),
                    Err(_) => room = false,
                }
            }
            for (_, id) in before.iter().flat_map(|before| &before.timers) {
                if !timers.iter().any(|(_, kept)| kept == id) {
                    self.wheel.cancel(*id);
                }
            }
            all.push(Running { timing: *timing, timers });
        }
        for gone in old {
            self.cancel(gone);
        }
        if !all.is_empty() {
            self.running.insert(seid, all);
        }
        room
    }

    /// Tells about waiting packets later; `None` if there is no room.
    pub fn notify_later(&mut self, at: Nanos, seid: Seid, pdr: PdrId) -> Option<TimerId> {
        self.wheel.insert(at, Timer::Notify { seid, pdr }).ok()
    }

    /// Doesn't, after all.
    pub fn cancel_notification(&mut self, timer: Option<TimerId>) {
        if let Some(id) = timer {
            self.wheel.cancel(id);
        }
    }

    /// Timers that are set.
    pub const fn len(&self) -> usize {
        self.wheel.len()
    }

    /// The session is gone.
    pub fn forget(&mut self, seid: Seid) {
        for running in self.running.remove(&seid).unwrap_or_default() {
            self.cancel(running);
        }
    }

    fn cancel(&mut self, running: Running) {
        for (_, id) in running.timers {
            self.wheel.cancel(id);
        }
    }

    /// Starts a clock that has run out again, if it is one that repeats.
    fn again(&mut self, now: Nanos, seid: Seid, urr: UrrId, kind: Kind) {
        let running =
            self.running.get_mut(&seid).and_then(|all| all.iter_mut().find(|r| r.timing.urr == urr));
        let Some(running) = running else { return };
        running.timers.retain(|(known, _)| *known != kind);
        if !kind.is_of_quota()
            && let Some(after) = kind.time(&running.timing)
            && let Ok(id) = self.wheel.insert(now.plus(nanos(after)), Timer::Urr { seid, urr, kind })
        {
            running.timers.push((kind, id));
        }
    }
}

/// A period of zero would fire for ever.
fn nanos(after: Duration) -> u64 {
    (after.as_nanos().min(u64::MAX as u128) as u64).max(TICK)
}

impl N4 {
    /// Handles what became due.
    pub(super) fn fire_timers(&mut self, now: Nanos) {
        let mut due = Vec::new();
        self.timers.wheel.advance(now, &mut |timer| due.push(timer));
        for timer in due {
            match timer {
                Timer::Urr { seid, urr, kind } => self.urr_due(now, seid, urr, kind),
                Timer::Notify { seid, pdr } => self.notify(now, seid, pdr),
            }
        }
    }

    fn urr_due(&mut self, now: Nanos, seid: Seid, urr: UrrId, kind: Kind) {
        let Some(session) = self.store.get(seid) else { return };
        let place = session.rules().place;
        self.timers.again(now, seid, urr, kind);
        let trigger = match kind {
            Kind::Period => Trigger::Periodic,
            Kind::Threshold => Trigger::TimeThreshold,
            Kind::Quota => Trigger::TimeQuota,
            Kind::Validity => Trigger::QuotaValidity,
        };
        if kind.is_of_quota()
            && let Some(rules) = self.store.set_blocked(seid, urr, true)
        {
            let token = self.token(Pending::Nobody);
            let (transition, query) = (Transition::default(), Box::default());
            self.orders.push(Order::Shard(place.shard, Command::Install { token, rules, transition, query }));
        }
        let token = self.token(Pending::Report(seid));
        let urrs = [urr].into();
        self.orders.push(Order::Shard(place.shard, Command::Query { token, session: place, urrs, trigger }));
    }
}
