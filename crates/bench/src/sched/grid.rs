//! Schedulers x configurations x tests, one after the other. What `static` goes by is measured once, and what `q-learning` goes by learned once for each configuration.

use crate::progress::Progress;
use accel::sched::packet::Chain;
use accel::sched::run::{self, Outcome, RunError, Settings, simulate};
use accel::sched::traffic::Test;

/// What to run.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Schedulers by name.
    pub schedulers: Vec<&'static str>,
    /// Configurations.
    pub chains: Vec<Chain>,
    /// Tests.
    pub tests: Vec<Test>,
    /// Seconds of traffic.
    pub seconds: u32,
    /// Seconds in which `q-learning` is trained.
    pub training: u32,
}

impl Wanted {
    /// All that there is.
    pub fn all(seconds: u32, training: u32) -> Self {
        Self {
            schedulers: run::SCHEDULERS.to_vec(),
            chains: Chain::ALL.to_vec(),
            tests: Test::ALL.to_vec(),
            seconds,
            training,
        }
    }
}

/// A run.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The test.
    pub test: Test,
    /// What it came to.
    pub outcome: Outcome,
}

/// All runs.
#[derive(Clone, Debug)]
pub struct Grid {
    /// By test, configuration and scheduler.
    pub entries: Vec<Entry>,
}

impl Grid {
    /// Runs them.
    pub fn run(wanted: &Wanted, progress: &mut dyn Progress) -> Result<Self, RunError> {
        let thesis = |test, chain| Settings { seconds: wanted.seconds, ..Settings::thesis(test, chain) };
        let is_wanted = |name: &'static str| wanted.schedulers.contains(&name);
        let thresholds = is_wanted("static").then(|| {
            progress.tell("calibrating static");
            run::calibrate(&thesis(Test::Low, Chain::Once))
        });
        let mut learned = [None, None];
        for chain in wanted.chains.iter().copied().filter(|_| is_wanted("q-learning")) {
            progress.tell(&format!("training q-learning for {}", chain.name()));
            learned[chain as usize] = Some(run::train(&thesis(Test::Low, chain), wanted.training));
        }
        let mut entries = Vec::new();
        let all = (wanted.tests.len() * wanted.chains.len() * wanted.schedulers.len()) as u64;
        progress.tell("running schedulers");
        for &test in &wanted.tests {
            for &chain in &wanted.chains {
                for name in &wanted.schedulers {
                    progress.part(entries.len() as u64, all);
                    let settings = Settings {
                        thresholds,
                        learned: learned[chain as usize].clone(),
                        ..thesis(test, chain)
                    };
                    entries.push(Entry { test, outcome: simulate(name, &settings)? });
                }
            }
        }
        Ok(Self { entries })
    }

    /// One run.
    pub fn find(&self, test: Test, scheduler: &str, chain: Chain) -> Option<&Outcome> {
        let is = |entry: &&Entry| {
            (entry.test, entry.outcome.scheduler, entry.outcome.chain) == (test, scheduler, chain)
        };
        self.entries.iter().find(is).map(|entry| &entry.outcome)
    }

    /// Those of a test.
    pub fn of(&self, test: Test) -> impl Iterator<Item = &Outcome> + Clone {
        self.entries.iter().filter(move |entry| entry.test == test).map(|entry| &entry.outcome)
    }

    /// Schedulers in it, in their order.
    pub fn schedulers(&self) -> Vec<&'static str> {
        let mut names: Vec<&'static str> = Vec::new();
        for entry in &self.entries {
            if !names.contains(&entry.outcome.scheduler) {
                names.push(entry.outcome.scheduler);
            }
        }
        names
    }

    /// Tests in it, in their order.
    pub fn tests(&self) -> Vec<Test> {
        Test::ALL.into_iter().filter(|&test| self.of(test).next().is_some()).collect()
    }
}
