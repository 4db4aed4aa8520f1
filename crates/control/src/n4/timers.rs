//! Usage reporting that time drives: periods, time thresholds, time quotas, quota validity; and delayed notifications.

use super::{N4, Order, Pending};
use datapath::command::{Command, Transition};
use pfcp::message::DownlinkDataReport;
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

    /// The session's URRs now have these times. A rule whose times did not change keeps its running clocks. False: there was no
    /// room for a timer.
    pub fn update(&mut self, now: Nanos, seid: Seid, timings: &[UrrTiming]) -> bool {
        if timings.is_empty() && !self.running.contains_key(&seid) {
            return true;
        }
        let old = self.running.remove(&seid).unwrap_or_default();
        let (kept, changed): (Vec<_>, Vec<_>) =
            old.into_iter().partition(|running| timings.contains(&running.timing));
        for running in changed {
            self.cancel(running);
        }
        let mut running = kept;
        let mut room = true;
        for timing in timings {
            if running.iter().any(|known| known.timing == *timing) {
                continue;
            }
            let mut timers = Vec::new();
            for (kind, after) in [
                (Kind::Period, timing.period),
                (Kind::Threshold, timing.time_threshold),
                (Kind::Quota, timing.time_quota),
                (Kind::Validity, timing.quota_validity),
            ] {
                let Some(after) = after else { continue };
                let timer = Timer::Urr { seid, urr: timing.urr, kind };
                match self.wheel.insert(now.plus(nanos(after)), timer) {
                    Ok(id) => timers.push((kind, id)),
                    Err(_) => room = false,
                }
            }
            running.push(Running { timing: *timing, timers });
        }
        if !running.is_empty() {
            self.running.insert(seid, running);
        }
        room
    }

    /// Tells about waiting packets later; false if there is no room.
    pub fn notify_later(&mut self, at: Nanos, seid: Seid, pdr: PdrId) -> bool {
        self.wheel.insert(at, Timer::Notify { seid, pdr }).is_ok()
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
        let running = self.running.get_mut(&seid).and_then(|all| all.iter_mut().find(|r| r.timing.urr == urr));
        let Some(running) = running else { return };
        running.timers.retain(|(known, _)| *known != kind);
        let after = match kind {
            Kind::Period => running.timing.period,
            Kind::Threshold => running.timing.time_threshold,
            Kind::Quota | Kind::Validity => None,
        };
        if let Some(after) = after
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
                Timer::Notify { seid, pdr } => {
                    // The rule may forward again by now: then nothing waits.
                    if self.store.get(seid).is_some_and(|session| session.rules().buffers(pdr)) {
                        self.notify(now, seid, DownlinkDataReport { pdrs: vec![pdr], service: None });
                    }
                }
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
            Kind::Quota | Kind::Validity => Trigger::TimeQuota,
        };
        if matches!(kind, Kind::Quota | Kind::Validity)
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
