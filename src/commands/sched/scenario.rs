//! What is run: the thesis' experiment, a scenario's file over it, arguments over both.

use super::text_of;
use crate::exit::{Exit, Failure};
use accel::sched::WorkerId;
use accel::sched::batching::Batching;
use accel::sched::fixed::Thresholds;
use accel::sched::packet::{PacketKind, PacketTable};
use accel::sched::run::{RunError, SCHEDULERS, Settings};
use accel::sched::trace::{self, Trace};
use accel::sched::traffic::Test;
use accel::sched::xavier::{Change, Fault};
use clap::ValueEnum;
use config::scheduling::{FaultKind, FaultSection, Scenario};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tables::Nanos;

/// C1 or C2.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Configuration {
    /// One decision for both steps.
    #[value(name = "C1", alias = "c1")]
    C1,
    /// One for each step.
    #[value(name = "C2", alias = "c2")]
    C2,
}

/// A test by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Named {
    /// 3,046 packets a second.
    Low,
    /// 8,127 packets a second.
    Medium,
    /// As many as are taken.
    Stress,
    /// A minute of rates up and down.
    Standard,
    /// A rate by chance each second.
    Random,
}

/// Packets a second of the random test: from a tenth of what the thesis' accelerator does to half more than that.
const RANDOM: (f64, f64) = (1_500.0, 21_000.0);

impl Named {
    const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::Stress => "stress",
            Self::Standard => "standard",
            Self::Random => "random",
        }
    }

    /// The thesis' own.
    pub const fn test(self) -> Option<Test> {
        match self {
            Self::Low => Some(Test::Low),
            Self::Medium => Some(Test::Medium),
            Self::Stress => Some(Test::Stress),
            Self::Standard => Some(Test::Standard),
            Self::Random => None,
        }
    }
}

/// What arguments say.
#[derive(Default)]
pub struct What<'a> {
    /// The scheduler.
    pub scheduler: Option<&'a str>,
    /// The configuration.
    pub config: Option<Configuration>,
    /// The test.
    pub test: Option<Named>,
    /// A trace instead.
    pub trace: Option<&'a Path>,
    /// Seconds in which packets come.
    pub seconds: Option<u32>,
    /// What chance begins with.
    pub seed: Option<u32>,
}

/// What is run.
pub struct Chosen {
    /// The scheduler's name: there is such a one.
    pub scheduler: String,
    /// What comes, in a word.
    pub test: String,
    /// All the rest.
    pub settings: Settings,
}

impl Chosen {
    /// From a file, if there is one, and arguments.
    pub fn of(file: Option<&Path>, what: &What<'_>) -> Result<Self, Failure> {
        let scenario = file.map(Scenario::load).transpose()?.unwrap_or_default();
        let wrong = |why: String| Failure::new(Exit::Usage, why);
        let run = &scenario.run;
        let named = |value: Option<&str>, key: &str| -> Result<Option<Named>, Failure> {
            let read = |value: &str| {
                let why = |_| {
                    wrong(format!(
                        "{key} of the scenario: there is no {value:?}; there are low, medium, stress, standard, random"
                    ))
                };
                Named::from_str(value, true).map_err(why)
            };
            value.map(read).transpose()
        };
        let configuration = |value: &str| {
            let why = |_| {
                wrong(format!("run.configuration of the scenario: there is no {value:?}; there are C1, C2"))
            };
            Configuration::from_str(value, true).map_err(why)
        };
        let config = match (what.config, &run.configuration) {
            (Some(config), _) => config,
            (None, Some(said)) => configuration(said)?,
            (None, None) => Configuration::C1,
        };
        let scheduler = what.scheduler.or(run.scheduler.as_deref()).unwrap_or("adaptive").to_owned();
        if !SCHEDULERS.contains(&scheduler.as_str()) {
            return Err(RunError::Unknown { name: scheduler }.into());
        }
        // An argument comes over both of the file's keys.
        let (test, trace) = match (what.test, what.trace) {
            (Some(test), _) => (Some(test), None),
            (None, Some(trace)) => (None, Some(trace.to_owned())),
            (None, None) => {
                (named(run.test.as_deref(), "run.test")?, run.trace.as_ref().map(|path| beside(file, path)))
            }
        };
        let base = test.and_then(Named::test).unwrap_or(Test::Low);
        let mut settings = Settings::thesis(base, super::chain(config));
        lay_over(&mut settings, &scenario)?;
        if let Some(seed) = what.seed {
            settings.traffic.seed = u64::from(seed);
        }
        let seconds = what.seconds.or(run.seconds);
        settings.seconds = seconds.unwrap_or(settings.seconds);
        let test = if let Some(path) = trace {
            let trace = read_trace(&path, &settings.core.table)?;
            settings.seconds = seconds.unwrap_or_else(|| trace.seconds().clamp(1, 3600));
            settings.traffic.load = trace.load();
            path.display().to_string()
        } else {
            let test = test.unwrap_or(Named::Low);
            if test == Named::Random {
                let (seed, seconds) = (settings.traffic.seed, settings.seconds);
                settings.traffic.load = Trace::random(seed, seconds, RANDOM.0, RANDOM.1).load();
            }
            test.name().to_owned()
        };
        Ok(Self { scheduler, test, settings })
    }
}

/// A path that a file names is one beside it.
fn beside(file: Option<&Path>, path: &str) -> PathBuf {
    file.and_then(Path::parent).map_or_else(|| PathBuf::from(path), |folder| folder.join(path))
}

fn read_trace(path: &Path, table: &PacketTable) -> Result<Trace, Failure> {
    let wrong = |error: trace::TraceError| Failure::new(Exit::Usage, format!("{}: {error}", path.display()));
    let trace = Trace::read(&text_of(path, trace::MOST_BYTES)?).map_err(wrong)?;
    trace.check(table.kinds().len()).map_err(wrong)?;
    Ok(trace)
}

/// What the file says over what stands.
fn lay_over(settings: &mut Settings, scenario: &Scenario) -> Result<(), Failure> {
    packets(settings, scenario)?;
    let nanos = |duration: Duration| duration.as_nanos().min(u128::from(u64::MAX)) as u64;
    let Settings { core, xavier, batching, adaptive, thresholds, .. } = settings;
    let workers = &scenario.workers;
    put(&mut xavier.cpu_workers, workers.cpu, |it| it as usize);
    put(&mut xavier.cpu_ring, workers.cpu_ring, |it| it as usize);
    put(&mut xavier.accelerator_ring, workers.accelerator_ring, |it| it as usize);
    put(&mut xavier.most, workers.batch, |it| it as usize);
    put(&mut core.burst, scenario.core.burst, |it| it as usize);
    put(&mut core.most_inside, scenario.core.most_inside, |it| it as usize);
    put(&mut core.window, scenario.core.window, |it| it as usize);
    put(&mut core.most_flows, scenario.core.most_flows, |it| it as usize);
    put(&mut core.patience, scenario.core.patience, nanos);
    let Batching { burst, flush_after, worth, ahead, patience, heeds_deadlines } = batching;
    let said = &scenario.batching;
    put(burst, said.burst, |it| it as usize);
    put(flush_after, said.flush_after, nanos);
    put(&mut worth.least, said.least, |it| it as usize);
    put(&mut worth.grace, said.grace, nanos);
    put(ahead, said.ahead, nanos);
    put(patience, said.patience, nanos);
    put(heeds_deadlines, said.heeds_deadlines, |it| it);
    *thresholds = scenario.thresholds.map(|it| Thresholds {
        cpu_octets: it.cpu_octets,
        cpu_latency: nanos(it.cpu_latency),
        accelerator_latency: nanos(it.accelerator_latency),
        rate: f64::from(it.rate),
        rates: it.rates.map(f64::from),
    });
    let said = &scenario.adaptive;
    put(&mut adaptive.thrift, said.thrift, f64::from);
    put(&mut adaptive.most, said.most, |it| it as usize);
    put(&mut adaptive.most_backlog, said.most_backlog, |it| nanos(it) as f64);
    put(&mut adaptive.most_wait, said.most_wait, |it| nanos(it) as f64);
    put(&mut adaptive.stale_after, said.stale_after, nanos);
    put(&mut adaptive.heeds_queues, said.heeds_queues, |it| it);
    put(&mut adaptive.heeds_deadlines, said.heeds_deadlines, |it| it);
    put(&mut adaptive.heeds_order, said.heeds_order, |it| it);
    put(&mut adaptive.economises, said.economises, |it| it);
    put(&mut adaptive.goes_on_learning, said.goes_on_learning, |it| it);
    xavier.changes = scenario.fault.iter().map(|fault| change(fault, nanos(fault.at))).collect();
    Ok(())
}

/// A value that was said, instead of the one that stands.
fn put<T, S>(own: &mut T, said: Option<S>, read: impl FnOnce(S) -> T) {
    if let Some(said) = said {
        *own = read(said);
    }
}

fn packets(settings: &mut Settings, scenario: &Scenario) -> Result<(), Failure> {
    let traffic = &scenario.traffic;
    settings.traffic.sizes = traffic.sizes.iter().map(|size| (size.octets, size.share)).collect();
    settings.traffic.flows = traffic.flows;
    settings.traffic.ring = traffic.ring as usize;
    settings.traffic.is_random = traffic.random;
    settings.traffic.seed = u64::from(traffic.seed);
    if !scenario.kind.is_empty() {
        let kind = |it: &config::scheduling::KindSection| PacketKind {
            least: it.least,
            most: it.most,
            ordered: it.ordered,
            within: it.within.map(|within| within.as_nanos() as u64),
        };
        let table = PacketTable::new(scenario.kind.iter().map(kind).collect());
        let table = table.map_err(|error| Failure::new(Exit::Usage, error))?;
        settings.core.table = table.clone();
        settings.traffic.table = table;
    }
    Ok(())
}

fn change(fault: &FaultSection, at: u64) -> Change {
    let what = match fault.what {
        FaultKind::Slower => Fault::Slower(f64::from(fault.percent.unwrap_or(100)) / 100.0),
        FaultKind::Stall => Fault::Stalls(fault.lasts.unwrap_or_default().as_nanos() as u64),
        FaultKind::Die => Fault::Dies,
    };
    Change { at: Nanos(at), worker: WorkerId(fault.worker as usize), what }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use accel::sched::packet::Chain;

    #[test]
    fn a_scenario_that_says_nothing_is_the_thesis() {
        let mut settings = Settings::thesis(Test::Medium, Chain::EachStep);
        lay_over(&mut settings, &Scenario::default()).unwrap();
        assert_eq!(settings, Settings::thesis(Test::Medium, Chain::EachStep));
    }

    #[test]
    fn what_a_scenario_says_is_run() {
        let text = "[workers]\ncpu = 3\ncpu-ring = 64\n[core]\nwindow = 8\n[batching]\nahead = '5ms'\n[adaptive]\nthrift = 7\neconomises = false\n\
                    [[kind]]\nleast = 1\nmost = 9000\nordered = true\nwithin = '9ms'\n[[fault]]\nat = '2s'\nworker = 3\nwhat = 'slower'\npercent = 300\n";
        let mut settings = Settings::thesis(Test::Low, Chain::Once);
        lay_over(&mut settings, &Scenario::parse("x", text).unwrap()).unwrap();
        assert_eq!((settings.xavier.cpu_workers, settings.xavier.cpu_ring, settings.core.window), (3, 64, 8));
        assert_eq!((settings.batching.ahead, settings.adaptive.economises), (5_000_000, false));
        assert!((settings.adaptive.thrift - 7.0).abs() < 1e-9);
        let within = settings.core.table.kinds().iter().map(|kind| kind.within).collect::<Vec<_>>();
        assert_eq!((within, &settings.traffic.table), (vec![Some(9_000_000)], &settings.core.table));
        let slower = Change { at: Nanos(2_000_000_000), worker: WorkerId(3), what: Fault::Slower(3.0) };
        assert_eq!(settings.xavier.changes, [slower]);
    }
}
