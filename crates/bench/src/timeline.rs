//! Workers under a load that changes while they are watched: what is received, sent, lost and late, over time.
//!
//! Packets of both directions are due at set times whether workers keep up or not ([`io::paced`]); each says which flow it is of
//! and which number it has there. So nothing that happens while shards move can hide: a packet that nobody sent is lost,
//! one that was sent after a later one of its flow is reordered, and one that waited was late.

use crate::chart::{Series, Strip};
use crate::crew::{Crew, CrewError, Member, Team, drops};
use crate::path::{self, MTU, N3_MAC, N6_MAC, PAYLOAD};
use crate::progress::Silent;
use crate::report::{Measured, Param, Report};
use engine::{Change, Engine, EngineError, WorkerReport};
use io::paced::{Counts, Latency, PacedPort, Schedule, Step, Traffic, Weights};
use io::redirection::ENTRIES;
use packet::rss::ue_hash_ipv4;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ops::Range;
use std::time::Duration;
use tables::clock::Tsc;

/// Descriptors of a receive ring.
pub const DESCRIPTORS: usize = 4_096;
/// The UEs' port.
const UE_PORT: u16 = 40_000;
/// How often the workers are looked after.
const TEND: Duration = Duration::from_millis(10);

/// What happens at a moment: told the seconds since packets began to come.
pub type Tend<'a> = dyn FnMut(&mut Engine, f64) -> Result<(), CrewError> + 'a;

/// How long the thesis' NIC was stopped, in seconds.
pub const STOPPED: f64 = 0.4;

/// Workers, and traffic that waits for them.
pub struct Timeline {
    crew: Crew,
    traffics: [Traffic; 2],
    clock: Tsc,
    seconds: f64,
    bucket: f64,
    /// Ports are stopped while the number of workers changes.
    stops: bool,
    /// How often the workers are looked after.
    tend: Duration,
    /// When the last packet was due: how long none may be sent before the rest are taken for lost, in seconds.
    patience: f64,
}

/// What became of it.
pub struct Played {
    /// Uplink, downlink.
    traffics: [Traffic; 2],
    /// Seconds in a bucket.
    bucket: f64,
    /// What regulation did, and when.
    pub changes: Vec<(f64, Change)>,
    /// What the threads counted.
    pub reports: Vec<WorkerReport>,
}

/// Every entry that has sessions gets the same.
pub fn even(members: &[Member]) -> Weights {
    weighted(members, |_| 1)
}

/// Every entry that has sessions gets what `weight` says.
pub fn weighted(members: &[Member], weight: impl Fn(usize) -> u16) -> Weights {
    let mut weights = [0; ENTRIES];
    for member in members {
        let shard = member.place.shard.index();
        if let Some(own) = weights.get_mut(shard) {
            *own = weight(shard);
        }
    }
    weights
}

impl Timeline {
    /// Steps say what comes in both directions together: half of it from each side. It is counted in buckets of so many seconds.
    pub fn start(
        team: &Team,
        members: &[Member],
        steps: &[Step],
        bucket: f64,
        clock: Tsc,
    ) -> Result<Self, CrewError> {
        let halves: Vec<Step> =
            steps.iter().map(|step| Step { per_second: step.per_second / 2.0, ..step.clone() }).collect();
        let threads = team.threads() as u16;
        let traffic = |uplink| -> Result<Traffic, CrewError> {
            let packets = members.iter().map(|member| (member.subscriber(), UE_PORT));
            let (template, offsets, mut patches) = path::patches(uplink, PAYLOAD, packets);
            for (patch, member) in patches.iter_mut().zip(members) {
                patch.hash = ue_hash_ipv4(member.ue);
            }
            let schedule = Schedule::new(&halves, clock.hz())?;
            Ok(Traffic::new(&template, offsets, patches, schedule, threads, bucket, clock)?)
        };
        let traffics = [traffic(true)?, traffic(false)?];
        let [uplink, downlink] = &traffics;
        let info = |name, mac| PacedPort::<Tsc>::info(name, mac, MTU, threads);
        let dealt = team.receivers() as u16;
        let mut ports = [
            PacedPort::new(info("n3", N3_MAC), uplink, downlink, dealt, DESCRIPTORS),
            PacedPort::new(info("n6", N6_MAC), downlink, uplink, dealt, DESCRIPTORS),
        ]
        .map(|port| port.fixed(team.has_fixed_tables()));
        let mut crew = Crew::start(&mut ports, team, members, clock, &mut Silent)?;
        if team.has_fixed_tables() {
            // As after many moves: where a shard is has nothing to do with where its packets come to.
            let (first, workers) = (team.dispatchers(), team.active.max(1));
            crew.place(|shard| first + shard / workers % workers)?;
        }
        let seconds = steps.iter().map(|step| step.seconds).sum();
        let patience = team.patience().as_secs_f64();
        Ok(Self { crew, traffics, clock, seconds, bucket, stops: false, tend: TEND, patience })
    }

    /// Looks after the workers so often, whether they say something or not.
    #[must_use]
    pub const fn tended_every(mut self, tend: Duration) -> Self {
        self.tend = tend;
        self
    }

    /// The thesis' way: when the number of workers changes, ports are stopped, their tables changed, and started again.
    #[must_use]
    pub const fn stopping(mut self, stops: bool) -> Self {
        self.stops = stops;
        self
    }

    /// Lets all packets come, looks after the workers every ten milliseconds (or [as said](Self::tended_every)) and when they have
    /// something to say, and stops them.
    pub fn play(mut self, tend: &mut Tend<'_>) -> Result<Played, CrewError> {
        let start = self.clock.ticks() + self.clock.hz() / 100;
        self.traffics.iter().for_each(|traffic| traffic.start(start));
        let hz = self.clock.hz() as f64;
        let (mut at, mut changes) = (0.0, Vec::new());
        let offered: u64 = self.traffics.iter().map(Traffic::packets).sum();
        let mut last = (0, self.seconds);
        loop {
            let ended = self.ended();
            if at < self.seconds || ended > last.0 {
                last = (ended, at.max(self.seconds));
            } else if (ended >= offered && !self.crew.engine.is_moving()) || at - last.1 > self.patience {
                break;
            }
            self.wait()?;
            at = self.clock.ticks().saturating_sub(start) as f64 / hz;
            tend(&mut self.crew.engine, at)?;
            let before = changes.len();
            self.crew.engine.regulate(|change| changes.push((at, change)));
            if self.stops
                && changes.iter().skip(before).any(|(_, change)| matches!(change, Change::Scaled { .. }))
            {
                self.traffics.iter().for_each(|traffic| {
                    traffic.outage(STOPPED);
                });
            }
        }
        let reports = self.crew.stop()?;
        Ok(Played { traffics: self.traffics, bucket: self.bucket, changes, reports })
    }

    /// Packets that are not on their way any more.
    fn ended(&self) -> u64 {
        let of = |traffic: &Traffic| traffic.total(0..traffic.buckets());
        let all = self.traffics.iter().map(of).fold(Counts::default(), Counts::plus);
        all.sent + all.missed + all.down
    }

    /// As the control thread of a UPF does: until a worker says something, or it is time to look after them.
    fn wait(&mut self) -> Result<(), CrewError> {
        let engine = &mut self.crew.engine;
        engine.flush();
        if engine.about_to_sleep() {
            let mut events = [PollFd::new(engine.waker(), PollFlags::IN)];
            let most = Timespec {
                tv_sec: self.tend.as_secs().cast_signed(),
                tv_nsec: self.tend.subsec_nanos().into(),
            };
            match poll(&mut events, Some(&most)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(EngineError::Os(error.into()).into()),
            }
        }
        engine.waker().awake();
        // Reports that the packets caused are of no interest; what moves need is heard on the way.
        engine.drain(|_, _| ());
        engine.flush();
        Ok(())
    }
}

impl Played {
    /// The buckets of a span of time.
    fn span(&self, seconds: &Range<f64>) -> Range<usize> {
        let bucket = |at: f64| (at / self.bucket).round().max(0.0) as usize;
        bucket(seconds.start)..bucket(seconds.end)
    }

    /// What all queues saw in a span of time.
    pub fn counts(&self, seconds: Range<f64>) -> Counts {
        let span = self.span(&seconds);
        self.traffics.iter().map(|traffic| traffic.total(span.clone())).fold(Counts::default(), Counts::plus)
    }

    /// What one thread's queues saw in a span of time.
    pub fn of_thread(&self, thread: usize, seconds: Range<f64>) -> Counts {
        let span = self.span(&seconds);
        let counts = self.traffics.iter().map(|traffic| traffic.count(thread as u16, span.clone()));
        counts.fold(Counts::default(), Counts::plus)
    }

    /// From due to sent, of packets that were due in a span of time.
    pub fn latency(&self, seconds: Range<f64>) -> Latency {
        let [uplink, downlink] = &self.traffics;
        let span = self.span(&seconds);
        uplink.latency(span.clone()).plus(&downlink.latency(span))
    }

    /// A figure of each stretch of `step` seconds in a span of time, at its middle.
    pub fn over_time(
        &self,
        seconds: Range<f64>,
        step: f64,
        figure: impl Fn(Range<f64>) -> f64,
    ) -> Vec<(f64, f64)> {
        // Whole ones: a last one that goes on when nothing comes any more would look like a loss.
        let steps = ((seconds.end - seconds.start) / step + 1e-6).floor() as usize;
        (0..steps)
            .map(|number| {
                let begin = seconds.start + number as f64 * step;
                (begin + step / 2.0, figure(begin..begin + step))
            })
            .collect()
    }

    /// Millions of packets a second, of those that `field` names, over time.
    pub fn mpps(
        &self,
        seconds: Range<f64>,
        step: f64,
        thread: Option<usize>,
        field: fn(&Counts) -> u64,
    ) -> Vec<(f64, f64)> {
        self.over_time(seconds, step, |span| {
            let counts = match thread {
                Some(thread) => self.of_thread(thread, span),
                None => self.counts(span),
            };
            field(&counts) as f64 / step / 1e6
        })
    }

    /// The latency in microseconds that a share of the packets didn't exceed, over time; none where none was sent.
    pub fn micros(&self, seconds: Range<f64>, step: f64, share: f64) -> Vec<(f64, Option<f64>)> {
        let latency = |span| self.latency(span).nanos(share) / 1e3;
        let seen = |(at, micros)| (at, Some(micros).filter(|micros| *micros > 0.0));
        self.over_time(seconds, step, latency).into_iter().map(seen).collect()
    }

    /// Likewise the series of a picture of it.
    pub fn latencies(&self, seconds: &Range<f64>, step: f64) -> Vec<Series> {
        let shares = [("latency: median", 0.5), ("latency: 99 %", 0.99), ("latency: longest", 1.0)];
        let series = |(label, share)| Series::measured(label, self.micros(seconds.clone(), step, share));
        shares.into_iter().map(series).collect()
    }

    /// About so many seconds, in whole buckets: else neighbouring points would be of different lengths.
    pub fn whole_buckets(&self, seconds: f64) -> f64 {
        (seconds / self.bucket).round().max(1.0) * self.bucket
    }

    /// What workers dropped of it all, if anything: a note that begins like this.
    pub fn tell_drops(&self, report: &mut Report, whose: &str) {
        let dropped = drops(&self.reports);
        if !dropped.is_empty() {
            let named = dropped.iter().map(|(reason, packets)| format!("{packets} as {reason}"));
            let named = named.collect::<Vec<_>>().join(", ");
            report.notes.push(format!("{whose}: workers dropped {named}"));
        }
    }

    /// How many workers owned shards, `active` of them in the beginning, in a span of time.
    pub fn workers(&self, active: usize, seconds: &Range<f64>) -> Strip {
        let changes = self.changes.iter().filter_map(|(at, change)| match change {
            Change::Scaled { to, .. } => Some((*at, *to)),
            _ => None,
        });
        let mut strip = Strip { label: "workers".into(), ..Strip::default() };
        let (mut since, mut now) = (seconds.start, active);
        for (at, to) in changes.chain([(seconds.end, 0)]) {
            let until = at.clamp(seconds.start, seconds.end);
            if until > since {
                strip.spans.push((since, until, now.to_string()));
            }
            (since, now) = (until.max(since), to);
        }
        strip
    }

    /// When shards were moved so that workers are level, in a span of time.
    pub fn rebalances(&self, seconds: &Range<f64>) -> Vec<f64> {
        let moved = |(_, change): &&(f64, Change)| matches!(change, Change::Rebalanced { .. });
        self.changes.iter().filter(moved).map(|(at, _)| *at).filter(|at| seconds.contains(at)).collect()
    }

    /// What is said of a span of time: what was offered, lost (of it: though workers ran, missed by full rings, of that while no worker ran,
    /// and by a stopped port), reordered, and how late it was.
    pub fn summarise(&self, report: &mut Report, params: &[(&'static str, Param)], seconds: Range<f64>) {
        let counts = self.counts(seconds.clone());
        let lost = counts.lost();
        for (name, packets) in [
            ("packets_offered", counts.arrived),
            ("packets_lost", lost),
            ("packets_lost_running", lost - counts.missed_in_gaps),
            ("packets_missed", counts.missed),
            ("packets_missed_in_gaps", counts.missed_in_gaps),
            ("packets_while_stopped", counts.down),
            ("packets_reordered", counts.reordered),
        ] {
            report.results.push(Measured::of(name, "packets", params, &[packets as f64]));
        }
        let latency = self.latency(seconds);
        for (percentile, share) in [("50", 0.5), ("99", 0.99), ("99.9", 0.999), ("100", 1.0)] {
            let with = params.iter().cloned().chain([("percentile", percentile.into())]).collect::<Vec<_>>();
            report.results.push(Measured::of("latency_us", "us", &with, &[latency.nanos(share) / 1e3]));
        }
    }
}

/// Packets a second that a team forwards of this traffic when more comes than it can take.
pub fn capacity(team: &Team, members: &[Member], clock: Tsc) -> Result<f64, CrewError> {
    let offered = |per_second, seconds| -> Result<f64, CrewError> {
        let steps = [Step { seconds, per_second, weights: even(members) }];
        let timeline = Timeline::start(team, members, &steps, 0.05, clock)?;
        let played = timeline.play(&mut |_, _| Ok(()))?;
        let measured = seconds * 0.5..seconds;
        Ok(played.counts(measured.clone()).sent as f64 / (measured.end - measured.start))
    };
    // On a machine that does something else, workers may have no time left but to count what they miss: then less of it, for longer.
    let something = |per_second: f64, seconds: f64| -> Result<f64, CrewError> {
        for (less, longer) in [(1.0, 1.0), (10.0, 2.0), (100.0, 4.0)] {
            let rate = offered(per_second / less, seconds * longer)?;
            if rate > 0.0 {
                return Ok(rate);
            }
        }
        Err(CrewError::Nothing)
    };
    // Far more than it can take costs it something: so a first guess, and then a little more than that.
    let guess = something(6e6 * team.active as f64, 0.2)?;
    something(guess * 1.25, 0.4)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::crew::Model;
    use crate::path::Numbering;

    #[test]
    fn what_comes_is_sent_in_order_and_accounted_for() {
        let _alone = crate::crew::alone();
        let clock = Tsc::process();
        let members = Member::several(&mut Numbering::default(), 600);
        let team = Team::new(Model::Rtc, 2);
        // The entries of worker 1 get three times as much.
        let weights = weighted(&members, |entry| if entry % 2 == 1 { 3 } else { 1 });
        let step = |seconds, per_second| Step { seconds, per_second, weights };
        let steps = [step(0.1, 20_000.0), step(0.1, 40_000.0)];
        let timeline = Timeline::start(&team, &members, &steps, 0.01, clock).unwrap();
        let mut tended = 0;
        let played = timeline.play(&mut |_, _| {
            tended += 1;
            Ok(())
        });
        let played = played.unwrap();
        assert!(tended > 5, "{tended}");
        let all = played.counts(0.0..1.0);
        assert_eq!(all.arrived, 6_000);
        // A machine that takes a core away for a while may fill a ring; nothing else loses or reorders.
        assert_eq!(drops(&played.reports), []);
        assert_eq!((all.delivered + all.missed, all.lost_inside(), all.reordered), (6_000, 0, 0));
        assert_eq!(played.latency(0.0..1.0).packets(), all.delivered);
        let (first, second) = (played.counts(0.0..0.1).arrived, played.counts(0.1..0.2).arrived);
        assert!(first.abs_diff(2_000) <= 2 && second.abs_diff(4_000) <= 2, "{first} {second}");
        let (idle, busy) = (played.of_thread(0, 0.0..1.0), played.of_thread(1, 0.0..1.0));
        let expected = |worker| {
            let entries = weights.iter().enumerate().filter(|(entry, _)| entry % 2 == worker);
            entries.map(|(_, weight)| u64::from(*weight)).sum::<u64>() as f64
        };
        let (found, expected) = (busy.arrived as f64 / idle.arrived as f64, expected(1) / expected(0));
        assert!((found / expected - 1.0).abs() < 0.05, "{found} {expected}");
        let mut report = Report::new("skew", &clock);
        played.summarise(&mut report, &[("phase", 1.into())], 0.0..0.1);
        assert_eq!(report.median("packets_offered", &[]), Some(first as f64));
        let of = |name| report.median(name, &[]).unwrap();
        let parts = of("packets_lost_running") + of("packets_missed_in_gaps");
        assert!((of("packets_lost") - parts).abs() < 1e-9, "{report}");
        assert!(report.median("latency_us", &[("percentile", "99".into())]).unwrap() > 0.0);
        assert_eq!(played.mpps(0.0..0.2, 0.05, None, |c| c.arrived).len(), 4);
        for (about, exactly) in [(0.026, 0.03), (0.001, 0.01)] {
            assert!((played.whole_buckets(about) - exactly).abs() < 1e-9);
        }
        let late = played.latencies(&(0.0..0.2), 0.05);
        assert_eq!((late.len(), late[0].points.len()), (3, 4));
        played.tell_drops(&mut report, "nobody");
        assert_eq!(report.notes, [""; 0]);
    }
}
