//! `hash`, `random-access`, `l2`, `flow4`, `flow6`, `lpm4`, `lpm6`: look-ups on one core, beside DPDK's tables in the same run, and on a GPU if there is one.
//!
//! What is compared looks up the same keys, one engine after the other in every round, in bursts; each round has other keys. Time is the
//! thread's own. Before anything is measured, all engines have to give the same answers.

pub mod flows;
pub mod hash;
pub mod link;
pub mod lpm;
mod on_device;
mod peers;
pub mod random;
pub mod routes;

use crate::devices::{DeviceError, Effort};
use crate::dpi::spent;
use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use tables::clock::Tsc;

/// The workloads of Tseng and others, "Exploiting Integrated GPUs for Network Packet Processing Workloads", whose figures stand beside ours.
///
/// Their figures are pictures without numbers; every value here is one that the text states.
pub mod published {
    /// Figure 5 (section V.E): IPv6 classification with the integrated GPU, batches of 32, look-ups a second.
    pub const FLOW6_INTEGRATED: f64 = 15e6;
    /// Section V.E: the same with a discrete GPU of 2010 (PacketShader, GTX480), batches of 64.
    pub const FLOW6_DISCRETE: f64 = 1.64e6;
    /// Section V.E: IPv4 classification on two cores as a pipeline, a million flows.
    pub const FLOW4_PIPELINE: f64 = 21e6;
    /// Section V.E: one core and the GPU have 2.5 times that.
    pub const FLOW4_INTEGRATED: f64 = 2.5 * FLOW4_PIPELINE;
    /// Figure 6 (section V.E): IPv4 forwarding with the integrated GPU and three cores that feed it.
    pub const LPM4_INTEGRATED: f64 = 175e6;
    /// Section V.E: that is about three times what one core does.
    pub const LPM4_CORE: f64 = LPM4_INTEGRATED / 3.0;
    /// Section V.D: the cost of I/O that is added to each packet, in cycles.
    pub const IO_CYCLES: u64 = 47;
    /// Figure 1 (section III.A): the GPU does four hashes a packet so many times as fast as one core.
    pub const HASH_FACTOR: f64 = 40.0;
}

/// Packets of a burst, as the paper's.
pub const BURST: usize = 32;

/// How long to measure.
#[derive(Clone, Debug)]
pub struct LookupConfig {
    /// Slots of hash tables (of which 90 % are taken), by their logarithm.
    pub slots: Vec<u32>,
    /// IPv4 routes.
    pub routes4: usize,
    /// IPv6 routes.
    pub routes6: usize,
    /// Look-ups of a round.
    pub lookups: usize,
    /// Rounds.
    pub runs: usize,
    /// GPUs.
    pub gpus: Effort,
}

impl LookupConfig {
    /// Up to sixteen million flows and a full table of routes.
    pub fn full() -> Self {
        let slots = vec![10, 14, 17, 20, 22, 24];
        let gpus = Effort::full();
        Self { slots, routes4: routes::FULL_TABLE, routes6: 200_000, lookups: 1 << 20, runs: 15, gpus }
    }

    /// The same, with fewer sizes and rounds.
    pub fn quick() -> Self {
        let slots = vec![10, 20, 24];
        Self { slots, runs: 5, lookups: 1 << 19, gpus: Effort::quick(), ..Self::full() }
    }
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// A table refused what fits: a defect, or no memory.
    #[error("table: {0}")]
    Table(String),
    /// Two engines disagree: a defect of one of them.
    #[error("{engine} finds {found:?} where {expected:?} is: key {at}")]
    Answer {
        /// Which one.
        engine: String,
        /// Number of the key in its round.
        at: usize,
        /// What it found.
        found: Option<u32>,
        /// What was expected.
        expected: Option<u32>,
    },
    /// DPDK did not do its part.
    #[error("{0}")]
    Peer(String),
    /// A GPU gives other answers.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// What is measured: look-ups of keys in bulk.
pub trait Engine<K> {
    /// Sees all keys of a round before time counts, if it needs them in another form.
    fn load(&mut self, _keys: &[K]) {}
    /// Looks up a burst, the one from key `at` of the round on; answers stay with the engine.
    fn find(&mut self, keys: &[K], at: usize);
    /// What it found last.
    fn answers(&self) -> Vec<Option<u32>>;
}

/// A table of ours.
struct Own<'t, T: tables::Lookup> {
    table: &'t T,
    out: Vec<Option<T::Value>>,
}

impl<'t, T: tables::Lookup<Value: Clone>> Own<'t, T> {
    fn new(table: &'t T) -> Self {
        Self { table, out: Vec::new() }
    }
}

impl<T: tables::Lookup<Value: Clone + Into<u32>>> Engine<T::Key> for Own<'_, T> {
    fn find(&mut self, keys: &[T::Key], _: usize) {
        self.out.resize(keys.len(), None);
        self.table.lookup_bulk(keys, &mut self.out);
    }

    fn answers(&self) -> Vec<Option<u32>> {
        self.out.iter().map(|out| out.clone().map(Into::into)).collect()
    }
}

/// In bursts of how many keys an engine looks up, how many cycles a packet's I/O is taken to cost, and look-ups a second, round by round.
struct Mode {
    burst: usize,
    io: u64,
    rates: Vec<f64>,
}

/// Bursts alone, and with I/O as the paper's.
const MODES: [(usize, u64); 3] = [(BURST, 0), (64, 0), (BURST, published::IO_CYCLES)];

/// An engine, and what it is called.
struct Entrant<'e, K> {
    engine: Box<dyn Engine<K> + 'e>,
    params: Vec<(&'static str, Param)>,
    modes: Vec<Mode>,
}

/// Engines that are measured side by side.
struct Contest<'e, K> {
    entrants: Vec<Entrant<'e, K>>,
    clock: Tsc,
}

impl<'e, K> Contest<'e, K> {
    fn new(clock: Tsc) -> Self {
        Self { entrants: Vec::new(), clock }
    }

    fn add(
        &mut self,
        engine: Box<dyn Engine<K> + 'e>,
        modes: &[(usize, u64)],
        params: Vec<(&'static str, Param)>,
    ) {
        let mode = |(burst, io): &(usize, u64)| Mode { burst: *burst, io: *io, rates: Vec::new() };
        self.entrants.push(Entrant { engine, params, modes: modes.iter().map(mode).collect() });
    }

    /// Holds all of them to what is expected.
    fn verify(&mut self, keys: &[K], expected: &[Option<u32>]) -> Result<(), LookupError> {
        for entrant in &mut self.entrants {
            entrant.engine.load(keys);
            let mut at = 0;
            for (keys, expected) in keys.chunks(64).zip(expected.chunks(64)) {
                entrant.engine.find(keys, at);
                let found = entrant.engine.answers();
                let wrong = found.iter().zip(expected).position(|(found, expected)| found != expected);
                if let Some(wrong) = wrong {
                    return Err(LookupError::Answer {
                        engine: format!("{:?}", entrant.params),
                        at: at + wrong,
                        found: found.get(wrong).copied().flatten(),
                        expected: expected.get(wrong).copied().flatten(),
                    });
                }
                at += keys.len();
            }
        }
        Ok(())
    }

    /// One round: each engine looks all keys up, in each of its modes.
    fn round(&mut self, keys: &[K], counts: bool) {
        for Entrant { engine, modes, .. } in &mut self.entrants {
            engine.load(keys);
            for mode in modes {
                let began = spent();
                let mut at = 0;
                for keys in keys.chunks(mode.burst) {
                    engine.find(keys, at);
                    at += keys.len();
                    if mode.io > 0 {
                        let until = self.clock.ticks() + mode.io * keys.len() as u64;
                        while self.clock.ticks() < until {
                            std::hint::spin_loop();
                        }
                    }
                }
                if counts {
                    mode.rates.push(keys.len() as f64 / (spent() - began));
                }
            }
        }
    }

    /// Reports the rates, and forgets them.
    fn report(&mut self, report: &mut Report, params: &[(&'static str, Param)]) {
        for entrant in &mut self.entrants {
            for mode in &mut entrant.modes {
                let own = [("burst", (mode.burst as u64).into()), ("io_cycles", mode.io.into())];
                let params = [params, &entrant.params, &own].concat();
                let rates = std::mem::take(&mut mode.rates);
                report.results.push(Measured::of("lookups_per_second", "1/s", &params, &rates));
            }
        }
    }
}

/// Numbers below `count` in an order that visits all of them before it repeats one.
#[derive(Clone, Debug)]
struct Order {
    count: u64,
    step: u64,
    at: u64,
}

impl Order {
    fn new(count: u64) -> Self {
        // Near the golden section, and prime to the count.
        let near = (count as f64 * 0.618_033_988_75) as u64;
        let step = (near.max(1)..=u64::MAX).find(|step| common_divisor(*step, count) == 1).unwrap_or(1);
        Self { count, step, at: 0 }
    }
}

impl Iterator for Order {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.at = (self.at + self.step) % self.count.max(1);
        Some(self.at)
    }
}

const fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// Anonymous memory of this process that lies on large pages, in bytes.
fn large_pages() -> u64 {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let line = rollup.lines().find(|line| line.starts_with("AnonHugePages:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1)).and_then(|number| number.parse().ok());
    number.unwrap_or(0) * 1024
}

/// Notes how much lies on large pages.
fn note_pages(report: &mut Report, what: &str) {
    let (large, all) = (large_pages() >> 20, crate::machine::resident() >> 20);
    report.notes.push(format!("{what}: {large} of {all} MiB lie on pages of 2 MB"));
}

/// `insert` of what `count` keys are: insertions a second.
fn inserted(count: usize, insert: impl FnOnce() -> Result<(), LookupError>) -> Result<f64, LookupError> {
    let began = spent();
    insert()?;
    Ok(count as f64 / (spent() - began))
}

fn tell(progress: &mut dyn Progress, report: &Report, what: &str) {
    progress.keep(report);
    progress.tell(what);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_order_visits_all_before_it_repeats_one() {
        for count in [1_u64, 2, 921, 1000, 943_718] {
            let mut seen = vec![false; count as usize];
            for number in Order::new(count).take(count as usize) {
                assert!(!std::mem::replace(&mut seen[number as usize], true), "{number} of {count}");
            }
        }
    }

    #[test]
    fn a_wrong_answer_ends_the_measurement() {
        let mut table = tables::BulkMap::<u32, u32>::new(1);
        table.insert(7, 8).unwrap();
        let mut contest = Contest::new(Tsc::process());
        contest.add(Box::new(Own::new(&table)), &MODES, Vec::new());
        contest.verify(&[7, 8, 7], &[Some(8), None, Some(8)]).unwrap();
        let wrong = contest.verify(&[7, 8, 7], &[Some(8), None, Some(9)]).unwrap_err();
        assert!(matches!(wrong, LookupError::Answer { at: 2, found: Some(8), expected: Some(9), .. }));
    }
}
