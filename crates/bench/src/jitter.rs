//! How long the machine itself keeps a thread waiting.
//!
//! A loop that does nothing but read the clock is interrupted by the host as any other. The gaps between its readings say what a
//! packet would have waited if serving it took no time at all: one that comes at a random moment comes into a gap with a
//! likelihood that is proportional to its length, and waits for the rest of it. Latencies of a shared machine mean
//! little without this. [`Away`] is the part of it that this machine's own kernel knows of, and that a host tells.

use engine::placement::{available_cores, pin};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;
use tables::clock::Tsc;

/// Gaps shorter than this are counted by their length, in ticks.
const SHORT: usize = 4_096;

/// The gaps seen so far.
#[derive(Clone, Debug)]
pub struct Jitter {
    /// How many gaps of each length.
    short: Vec<u64>,
    /// All others.
    long: Vec<u64>,
}

impl Default for Jitter {
    fn default() -> Self {
        Self { short: vec![0; SHORT], long: Vec::with_capacity(1 << 16) }
    }
}

impl Jitter {
    /// Does nothing for so long.
    pub fn watch(&mut self, clock: &Tsc, seconds: f64) {
        let mut last = clock.ticks();
        let end = last + (seconds * clock.hz() as f64) as u64;
        while last < end {
            let now = clock.ticks();
            self.gap(now - last);
            last = now;
        }
    }

    /// Does nothing on each of these cores at once for so long. Meanwhile this thread, which may run on any of them, sleeps; and
    /// wakes up so often, if it is to.
    pub fn of_cores(cores: &[usize], clock: &Tsc, seconds: f64, waking: Option<Duration>) -> Self {
        let mut all = Self::default();
        std::thread::scope(|scope| {
            let watch = |core: usize| {
                move || {
                    let mut own = Self::default();
                    // On any core, if not on this one.
                    let _ = pin(core);
                    own.watch(clock, seconds);
                    own
                }
            };
            let watching: Vec<_> = cores.iter().map(|&core| scope.spawn(watch(core))).collect();
            while let Some(every) = waking
                && !watching.iter().all(std::thread::ScopedJoinHandle::is_finished)
            {
                std::thread::sleep(every);
            }
            watching.into_iter().filter_map(|watched| watched.join().ok()).for_each(|own| all.add(own));
        });
        all
    }

    /// Adds what another loop saw.
    fn add(&mut self, other: Self) {
        self.short.iter_mut().zip(&other.short).for_each(|(sum, more)| *sum += more);
        self.long.extend(other.long);
    }

    fn gap(&mut self, ticks: u64) {
        match self.short.get_mut(ticks as usize) {
            Some(count) => *count += 1,
            None => self.long.push(ticks),
        }
    }

    /// Length and number of each kind of gap.
    fn gaps(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let short = self.short.iter().enumerate().map(|(ticks, count)| (ticks as f64, *count as f64));
        short.chain(self.long.iter().map(|ticks| (*ticks as f64, 1.0)))
    }

    /// The wait in ticks that this share of random moments does not exceed.
    pub fn percentile(&self, share: f64) -> f64 {
        let total: f64 = self.gaps().map(|(ticks, count)| ticks * count).sum();
        let beyond =
            |wait: f64| -> f64 { self.gaps().map(|(ticks, count)| (ticks - wait).max(0.0) * count).sum() };
        let (mut low, mut high) = (0.0, self.longest() as f64);
        while high - low > 0.5 {
            let wait = f64::midpoint(low, high);
            if beyond(wait) > (1.0 - share) * total { low = wait } else { high = wait }
        }
        high
    }

    /// How much of the time was spent in gaps of more than so many ticks, from 0 to 1.
    pub fn share_longer(&self, ticks: f64) -> f64 {
        let sum = |least: f64| {
            let counted = self.gaps().filter(|(gap, _)| *gap > least);
            counted.map(|(gap, count)| gap * count).sum::<f64>()
        };
        sum(ticks) / sum(0.0).max(1.0)
    }

    /// The longest gap in ticks.
    pub fn longest(&self) -> u64 {
        let short = self.short.iter().rposition(|count| *count > 0).unwrap_or(0) as u64;
        self.long.iter().copied().max().unwrap_or(short)
    }
}

/// Whether a machine is fit for measuring what several cores do: how much of the time it keeps threads from running that want to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fitness {
    /// How much of the time loops that did nothing, one on each core, spent in gaps of more than [`Fitness::GAP_US`].
    pub lost_percent: f64,
    /// The longest gap.
    pub longest_us: f64,
}

impl Fitness {
    /// A gap that counts, in microseconds: a timer's interrupt is shorter, and so is what the processor does by itself.
    pub const GAP_US: f64 = 10.0;
    /// So much of the time in such gaps, in percent, is too much: what a packet path does in it is not its own doing.
    pub const MOST_PERCENT: f64 = 1.0;

    /// Watches all cores for so long.
    pub fn measure(clock: &Tsc, seconds: f64) -> Self {
        let seen = Jitter::of_cores(&available_cores(), clock, seconds, None);
        let ticks_per_us = clock.hz() as f64 / 1e6;
        Self {
            lost_percent: 100.0 * seen.share_longer(Self::GAP_US * ticks_per_us),
            longest_us: seen.longest() as f64 / ticks_per_us,
        }
    }

    /// The worse of two.
    #[must_use]
    pub fn or_worse(self, other: Self) -> Self {
        Self {
            lost_percent: self.lost_percent.max(other.lost_percent),
            longest_us: self.longest_us.max(other.longest_us),
        }
    }

    /// Why nothing that was measured on it is to be judged.
    pub fn unfit(&self) -> Option<String> {
        (self.lost_percent > Self::MOST_PERCENT).then(|| {
            format!(
                "the machine was too noisy: loops that did nothing were kept from running for {:.1} % of the time (more than {} % is too much)",
                self.lost_percent,
                Self::MOST_PERCENT
            )
        })
    }
}

/// Whom somebody else's work may keep from running.
#[derive(Clone, Copy, Debug)]
pub enum Whom<'a> {
    /// This thread, by the kernel, which had others run on its core.
    Here,
    /// Threads of this process whose names begin like this, likewise: all of them together.
    Named(&'a str),
    /// Whatever would run on this core, by the host of this virtual machine, as far as it says.
    Core(usize),
}

impl Whom<'_> {
    /// For how long they could have run and did not, in seconds, all their time. `None`: nobody counts.
    fn waited(self) -> Option<f64> {
        match self {
            Self::Here => waited(Path::new("/proc/thread-self")),
            Self::Named(name) => {
                let named = |thread: &Path| {
                    std::fs::read_to_string(thread.join("comm")).is_ok_and(|comm| comm.starts_with(name))
                };
                let threads =
                    std::fs::read_dir("/proc/self/task").ok()?.flatten().map(|thread| thread.path());
                let all: Vec<f64> =
                    threads.filter(|thread| named(thread)).filter_map(|thread| waited(&thread)).collect();
                (!all.is_empty()).then(|| all.iter().sum())
            }
            Self::Core(core) => {
                let ticks = stolen_ticks(&std::fs::read_to_string("/proc/stat").ok()?, core)?;
                Some(ticks / rustix::param::clock_ticks_per_second() as f64)
            }
        }
    }
}

/// What the kernel says of a thread.
fn waited(thread: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(thread.join("schedstat")).ok()?;
    Some(text.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1e9)
}

/// What a host has taken of one processor's time, by `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal (proc(5)).
fn stolen_ticks(stat: &str, core: usize) -> Option<f64> {
    let own = format!("cpu{core}");
    let mut words = stat.lines().map(str::split_whitespace).find_map(|mut words| {
        let first = words.next()?;
        (first == own).then_some(words)
    })?;
    words.nth(7)?.parse().ok()
}

/// For how long somebody is kept from running from now on, in all.
#[derive(Debug)]
pub struct Away<'a>(Vec<(Whom<'a>, Option<f64>)>);

impl<'a> Away<'a> {
    /// Of any of these.
    pub fn begin(whom: impl IntoIterator<Item = Whom<'a>>) -> Self {
        Self(whom.into_iter().map(|whom| (whom, whom.waited())).collect())
    }

    /// In seconds, of the one of them that waited for longest; nothing where nobody counts.
    pub fn seconds(&self) -> Option<f64> {
        let since = |(whom, before): &(Whom<'_>, Option<f64>)| Some((whom.waited()? - (*before)?).max(0.0));
        self.0.iter().filter_map(since).max_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_waits_for_the_rest_of_its_gap() {
        let mut jitter = Jitter::default();
        // Half of the time in gaps of 100, half in one of 100,000.
        (0..1_000).for_each(|_| jitter.gap(100));
        jitter.gap(100_000);
        let near = |found: f64, expected: f64| (found - expected).abs() <= 1.0 + expected * 1e-3;
        // 1 % of 200,000 is what is left of the long gap after 98,000.
        assert!(near(jitter.percentile(0.99), 98_000.0), "{}", jitter.percentile(0.99));
        assert!(near(jitter.percentile(0.6), 20_000.0));
        assert!(near(jitter.percentile(0.25), 50.0), "{}", jitter.percentile(0.25));
        assert_eq!(jitter.longest(), 100_000);
    }

    #[test]
    fn what_is_lost_is_the_time_in_long_gaps() {
        let mut jitter = Jitter::default();
        (0..900).for_each(|_| jitter.gap(100));
        jitter.gap(10_000);
        assert!((jitter.share_longer(1_000.0) - 0.1).abs() < 1e-9, "{}", jitter.share_longer(1_000.0));
        assert!(jitter.share_longer(10_000.0) <= 0.0 && Jitter::default().share_longer(1.0) <= 0.0);
        let (quiet, noisy) = (
            Fitness { lost_percent: 0.9, longest_us: 80.0 },
            Fitness { lost_percent: 1.1, longest_us: 20.0 },
        );
        assert_eq!(quiet.unfit(), None);
        let worse = quiet.or_worse(noisy);
        assert!(worse.unfit().is_some_and(|why| why.contains("1.1 %")));
        assert!((worse.longest_us - 80.0).abs() < 1e-9);
    }

    #[test]
    fn watches_for_as_long_as_it_is_told() {
        let clock = Tsc::process();
        let mut jitter = Jitter::default();
        jitter.watch(&clock, 0.002);
        let total: f64 = jitter.gaps().map(|(ticks, count)| ticks * count).sum();
        // In whole ticks: the loop may end on the very one.
        assert!(total >= (0.002 * clock.hz() as f64).floor(), "{total}");
        assert!(jitter.percentile(0.5) <= jitter.percentile(0.999));
        assert!(jitter.percentile(0.999) <= jitter.longest() as f64);
    }

    #[test]
    fn a_host_takes_time_of_the_cores_in_use() {
        let stat = "cpu  40 0 9 999 1 0 3 700 0 0\ncpu1 10 0 2 99 0 0 1 100 0 0\ncpu10 30 0 7 9 1 0 2 600 0 0\nintr 5\n";
        assert_eq!([0, 1, 10].map(|core| stolen_ticks(stat, core)), [None, Some(100.0), Some(600.0)]);
    }

    #[test]
    fn whoever_waits_is_heard_and_who_is_not_there_says_nothing() {
        assert_eq!(Away::begin([Whom::Named("nobody-of-this-name")]).seconds(), None);
        assert_eq!(Away::begin([]).seconds(), None);
        // What went on before doesn't count.
        let both = Away(vec![(Whom::Here, Some(0.0)), (Whom::Here, Whom::Here.waited())]);
        let now = Away::begin([Whom::Here, Whom::Named("nobody-of-this-name")]);
        assert_eq!(both.seconds().is_some(), Whom::Here.waited().is_some());
        assert!(both.seconds() >= now.seconds());
    }
}
