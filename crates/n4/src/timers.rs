//! Usage reporting that time drives: periods, time thresholds, time quotas, quota validity; silence, of a session or of a quota; and
//! delayed notifications.
//!
//! Shards raise nothing when nothing comes. So a clock that waits for silence, when it runs out, has the shard asked when the
//! last packet came, and is set anew to run from there; only where none came for the whole time is there something to
//! report.

use super::{N4, Order, Pending};
use datapath::command::{Command, SessionSnapshot, Transition};
use pfcp::{PdrId, Seid, UrrId};
use session::SessionRef;
use session::packed::Pack;
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
    Holding,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Period, Self::Threshold, Self::Quota, Self::Validity, Self::Holding];

    const fn time(self, timing: &UrrTiming) -> Option<Duration> {
        match self {
            Self::Period => timing.period,
            Self::Threshold => timing.time_threshold,
            Self::Quota => timing.time_quota,
            Self::Validity => timing.quota_validity,
            Self::Holding => timing.quota_holding,
        }
    }

    /// Its place in [`Self::ALL`].
    const fn number(self) -> u8 {
        self as u8
    }

    const fn is_of_quota(self) -> bool {
        matches!(self, Self::Quota | Self::Validity | Self::Holding)
    }
}

#[derive(Clone, Copy, Debug)]
enum Timer {
    Urr { seid: Seid, urr: UrrId, kind: Kind },
    Notify { seid: Seid, pdr: PdrId },
    Silence { seid: Seid },
}

/// Whose last packet a shard was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked {
    /// The session's.
    Session(Seid),
    /// Of a quota, which another may have replaced meanwhile.
    Quota { seid: Seid, urr: UrrId, generation: u32 },
}

/// A session's User Plane Inactivity Timer.
#[derive(Debug)]
struct Silence {
    after: Duration,
    /// When it was set.
    since: Nanos,
    /// When silence was reported; packets since then end it.
    reported: Option<Nanos>,
    timer: Option<TimerId>,
}

/// What another process said of a session's clocks.
pub(super) struct Portable {
    clocks: Vec<(UrrId, Vec<(u8, Nanos)>)>,
    silence: Option<PackedSilence>,
}

/// Since when, when it was reported, and when it is looked at again.
type PackedSilence = ((Nanos, Option<Nanos>), Option<Nanos>);

impl Portable {
    /// Reads what [`Timers::pack`] wrote.
    pub fn unpack(from: &mut &[u8]) -> Option<Self> {
        Some(Self { clocks: Pack::unpack(from)?, silence: Pack::unpack(from)? })
    }
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
    silences: HashMap<Seid, Silence>,
}

impl Timers {
    pub fn new(now: Nanos) -> Self {
        Self { wheel: Wheel::new(now, TICK, MAX_TIMERS), running: HashMap::new(), silences: HashMap::new() }
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

    /// The session is to be silent for so many seconds to be worth a report; `None`: it never is. The clock goes on if it is the same.
    /// False: there was no room for a timer.
    pub fn watch_silence(&mut self, now: Nanos, seid: Seid, seconds: Option<u32>) -> bool {
        let after = seconds.map(|seconds| Duration::from_secs(seconds.into()));
        if self.silences.get(&seid).map(|silence| silence.after) == after {
            return true;
        }
        self.forget_silence(seid);
        let Some(after) = after else { return true };
        self.silences.insert(seid, Silence { after, since: now, reported: None, timer: None });
        self.resume_silence(seid, now.plus(nanos(after)))
    }

    fn resume_silence(&mut self, seid: Seid, at: Nanos) -> bool {
        let timer = self.wheel.insert(at, Timer::Silence { seid }).ok();
        if let Some(silence) = self.silences.get_mut(&seid) {
            silence.timer = timer;
        }
        timer.is_some()
    }

    fn forget_silence(&mut self, seid: Seid) {
        if let Some(timer) = self.silences.remove(&seid).and_then(|silence| silence.timer) {
            self.wheel.cancel(timer);
        }
    }

    /// The last packet of a session came then (0: there was none). Whether the session has been silent for long enough, which is
    /// said once; and `false` in second place if there was no room for a timer.
    fn heard(&mut self, now: Nanos, seid: Seid, last: Nanos) -> (bool, bool) {
        // A clock that was set meanwhile runs by itself.
        let Some(silence) = self.silences.get_mut(&seid).filter(|silence| silence.timer.is_none()) else {
            return (false, true);
        };
        let after = nanos(silence.after);
        let due = last.max(silence.since).plus(after);
        let is_news = due <= now && silence.reported.is_none_or(|reported| last > reported);
        if is_news {
            silence.reported = Some(now);
        }
        let next = if due <= now { now.plus(after) } else { due };
        (is_news, self.resume_silence(seid, next))
    }

    /// Which quota the URR has, and how long it is held.
    fn held_quota(&self, seid: Seid, urr: UrrId) -> Option<(u32, Duration)> {
        let running = self.running.get(&seid)?.iter().find(|running| running.timing.urr == urr)?;
        Some((running.timing.quota_generation, running.timing.quota_holding?))
    }

    /// Watches the URR's quota until then.
    fn hold_quota(&mut self, seid: Seid, urr: UrrId, at: Nanos) -> bool {
        let running =
            self.running.get_mut(&seid).and_then(|all| all.iter_mut().find(|r| r.timing.urr == urr));
        let Some(running) = running else { return true };
        match self.wheel.insert(at, Timer::Urr { seid, urr, kind: Kind::Holding }) {
            Ok(id) => running.timers.push((Kind::Holding, id)),
            Err(_) => return false,
        }
        true
    }

    /// The URR's quota is used up: whether packets come is no longer of interest.
    pub fn release_quota(&mut self, seid: Seid, urr: UrrId) {
        let running =
            self.running.get_mut(&seid).and_then(|all| all.iter_mut().find(|r| r.timing.urr == urr));
        let Some(running) = running else { return };
        for (_, id) in running.timers.extract_if(.., |(kind, _)| *kind == Kind::Holding) {
            self.wheel.cancel(id);
        }
    }

    /// When a timer is due.
    pub fn deadline(&self, timer: TimerId) -> Option<Nanos> {
        self.wheel.deadline(timer)
    }

    /// Appends what another process needs of a session.
    pub fn pack(&self, seid: Seid, out: &mut Vec<u8>) {
        let due = |&(kind, id): &(Kind, TimerId)| Some((kind.number(), self.deadline(id)?));
        let running = self.running.get(&seid).into_iter().flatten();
        let running = running.map(|it| (it.timing.urr, it.timers.iter().filter_map(due).collect::<Vec<_>>()));
        running.collect::<Vec<_>>().pack(out);
        let silence = self.silences.get(&seid);
        let silence =
            silence.map(|it| ((it.since, it.reported), it.timer.and_then(|timer| self.deadline(timer))));
        silence.pack(out);
    }

    /// The clocks of a session go on that another process [packed](Self::pack). False: there was no room for a timer.
    pub fn take_over(
        &mut self,
        now: Nanos,
        seid: Seid,
        timings: Vec<UrrTiming>,
        inactivity_timer: Option<u32>,
        portable: &Portable,
    ) -> bool {
        let mut room = true;
        let mut set = |due: Nanos, timer: Timer| {
            let id = self.wheel.insert(due, timer).ok();
            room &= id.is_some();
            id
        };
        let mut all = Vec::with_capacity(timings.len());
        for timing in timings {
            let clocks = portable.clocks.iter().find(|(urr, _)| *urr == timing.urr);
            let clocks = clocks.into_iter().flat_map(|(_, clocks)| clocks);
            let timers = clocks.filter_map(|&(number, due)| {
                let kind = *Kind::ALL.get(usize::from(number))?;
                kind.time(&timing)?;
                Some((kind, set(due, Timer::Urr { seid, urr: timing.urr, kind })?))
            });
            all.push(Running { timers: timers.collect(), timing });
        }
        if !all.is_empty() {
            self.running.insert(seid, all);
        }
        if let Some((after, ((since, reported), due))) = inactivity_timer.zip(portable.silence) {
            // The shard was just being asked: it is asked again.
            let timer = set(due.unwrap_or(now), Timer::Silence { seid });
            let after = Duration::from_secs(after.into());
            self.silences.insert(seid, Silence { after, since, reported, timer });
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
        self.forget_silence(seid);
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
    /// Handles what became due, a part at a time (the wheel's), unless workers are behind: most of it is a question to them.
    pub(super) fn fire_timers(&mut self, now: Nanos) {
        if self.is_behind() {
            return;
        }
        let mut due = Vec::new();
        self.timers.wheel.advance(now, &mut |timer| due.push(timer));
        for timer in due {
            match timer {
                Timer::Urr { seid, urr, kind } => self.urr_due(now, seid, urr, kind),
                Timer::Notify { seid, pdr } => self.notify(now, seid, pdr),
                Timer::Silence { seid } => {
                    if let Some(silence) = self.timers.silences.get_mut(&seid) {
                        silence.timer = None;
                        self.ask_activity(seid, Asked::Session(seid));
                    }
                }
            }
        }
    }

    fn ask_activity(&mut self, seid: Seid, asked: Asked) {
        let Some(session) = self.store.get(seid) else { return };
        let session = session.rules().place;
        let token = self.token(Pending::Activity(asked));
        self.orders.push(Order::Shard(session.shard, Command::Inspect { token, session }));
    }

    /// A shard says when packets last came.
    pub(super) fn activity(&mut self, now: Nanos, asked: Asked, seen: &SessionSnapshot) {
        let room = match asked {
            Asked::Session(seid) if seid == seen.seid => {
                let (is_silent, room) = self.timers.heard(now, seid, seen.last_packet);
                if is_silent {
                    self.report_inactivity(now, seid);
                }
                room
            }
            Asked::Quota { seid, urr, generation } if seid == seen.seid => {
                let last =
                    seen.last_measured.iter().find(|(id, _)| *id == urr).map_or(Nanos(0), |(_, last)| *last);
                match self.timers.held_quota(seid, urr) {
                    Some((current, after)) if current == generation => {
                        let due = last.plus(nanos(after));
                        if due > now {
                            self.timers.hold_quota(seid, urr, due)
                        } else {
                            self.quota_lapsed(seid, urr, Trigger::QuotaHolding);
                            true
                        }
                    }
                    _ => true,
                }
            }
            // Another session has its place by now.
            Asked::Session(_) | Asked::Quota { .. } => true,
        };
        self.counters.timers_full += u64::from(!room);
    }

    fn urr_due(&mut self, now: Nanos, seid: Seid, urr: UrrId, kind: Kind) {
        let Some(session) = self.store.get(seid) else { return };
        let place = session.rules().place;
        self.timers.again(now, seid, urr, kind);
        let trigger = match kind {
            Kind::Period => Trigger::Periodic,
            Kind::Threshold => Trigger::TimeThreshold,
            Kind::Quota => return self.quota_lapsed(seid, urr, Trigger::TimeQuota),
            Kind::Validity => return self.quota_lapsed(seid, urr, Trigger::QuotaValidity),
            Kind::Holding => {
                if let Some((generation, _)) = self.timers.held_quota(seid, urr) {
                    self.ask_activity(seid, Asked::Quota { seid, urr, generation });
                }
                return;
            }
        };
        self.ask_usage(seid, place, urr, trigger);
    }

    /// A quota ends without being used up: the URR's packets stop until there is another, and the SMF is told.
    fn quota_lapsed(&mut self, seid: Seid, urr: UrrId, trigger: Trigger) {
        let Some(session) = self.store.get(seid) else { return };
        let place = session.rules().place;
        self.timers.release_quota(seid, urr);
        if let Some(rules) = self.store.set_blocked(seid, urr, true) {
            let token = self.token(Pending::Nobody);
            let (transition, query) = (Transition::default(), Box::default());
            self.orders.push(Order::Shard(place.shard, Command::Install { token, rules, transition, query }));
        }
        self.ask_usage(seid, place, urr, trigger);
    }

    fn ask_usage(&mut self, seid: Seid, session: SessionRef, urr: UrrId, trigger: Trigger) {
        let token = self.token(Pending::Report(seid));
        let urrs = [urr].into();
        self.orders.push(Order::Shard(session.shard, Command::Query { token, session, urrs, trigger }));
    }
}
