//! A scenario of `millrace sched`: what comes, who works, and what goes wrong, as a TOML file of its own (docs/cli.md).
//!
//! Every key may be left out, and then is as in the thesis' experiment. Whatever is wrong is reported as for a UPF's configuration: all at once, with its place.

use super::findings::{Check, way};
use super::problem::{Step, Wrong};
use super::report::{LoadError, Report};
use super::units::{self, Text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// A whole scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// What is run, and for how long.
    pub run: RunSection,
    /// What packets come.
    pub traffic: TrafficSection,
    /// The packet table. Default: Table 4.1.
    #[schemars(length(max = 16))]
    pub kind: Vec<KindSection>,
    /// Who does the work.
    pub workers: SchedWorkersSection,
    /// The scheduler's core.
    pub core: CoreSection,
    /// When `round-robin`, `static` and `q-learning` begin batches.
    pub batching: BatchingSection,
    /// What `static` compares with. Default: it is calibrated.
    pub thresholds: Option<ThresholdsSection>,
    /// What `adaptive` heeds.
    pub adaptive: AdaptiveSection,
    /// What goes wrong.
    #[schemars(length(max = 64))]
    pub fault: Vec<FaultSection>,
}

/// What is run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RunSection {
    /// The scheduler. Default: `adaptive`.
    pub scheduler: Option<String>,
    /// C1 or C2. Default: C1.
    pub configuration: Option<String>,
    /// low, medium, stress, standard or random. Default: low.
    pub test: Option<String>,
    /// A trace file, instead of a test.
    pub trace: Option<String>,
    /// Seconds in which packets come. Default: 60, or those of the trace.
    #[schemars(range(min = 1, max = 3600))]
    pub seconds: Option<u32>,
}

/// What packets come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TrafficSection {
    /// Octets of packets, and how many of them there are to how many of the others.
    #[schemars(length(min = 1, max = 32))]
    pub sizes: Vec<SizeSection>,
    /// Flows of each kind.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub flows: u32,
    /// Places in the receive ring.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub ring: u32,
    /// Packets come as by chance, instead of evenly.
    pub random: bool,
    /// What chance begins with.
    #[schemars(range(min = 0))]
    pub seed: u32,
}

impl Default for TrafficSection {
    fn default() -> Self {
        let size = |octets, share| SizeSection { octets, share };
        Self {
            sizes: vec![size(243, 2), size(486, 1), size(1458, 2)],
            flows: 1,
            ring: 4096,
            random: false,
            seed: 1,
        }
    }
}

/// Packets of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SizeSection {
    /// Their octets.
    #[schemars(range(min = 1, max = 9000))]
    pub octets: u32,
    /// How many there are to how many of the others.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub share: u32,
}

/// A row of the packet table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct KindSection {
    /// The fewest octets.
    #[schemars(range(min = 0, max = 9000))]
    pub least: u32,
    /// The most octets.
    #[schemars(range(min = 1, max = 9000))]
    pub most: u32,
    /// They leave in the order in which they came.
    #[serde(default)]
    pub ordered: bool,
    /// How soon they have to leave. Default: it doesn't matter.
    #[serde(default, with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<Duration>>")]
    pub within: Option<Duration>,
}

/// Who does the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SchedWorkersSection {
    /// Cores. Default: 2.
    #[schemars(range(min = 0, max = 7))]
    pub cpu: Option<u32>,
    /// Jobs that wait for a core, for each step.
    #[schemars(range(min = 1, max = 65_536))]
    pub cpu_ring: Option<u32>,
    /// Jobs that wait for the accelerator, for each step.
    #[schemars(range(min = 1, max = 65_536))]
    pub accelerator_ring: Option<u32>,
    /// Jobs of a batch, at most.
    #[schemars(range(min = 1, max = 65_536))]
    pub batch: Option<u32>,
}

/// The scheduler's core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CoreSection {
    /// Packets received at a time. Default: 32.
    #[schemars(range(min = 1, max = 4096))]
    pub burst: Option<u32>,
    /// Packets inside, at most. Default: 4096.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub most_inside: Option<u32>,
    /// Sequence numbers of a flow's window. Default: 512.
    #[schemars(range(min = 1, max = 65_536))]
    pub window: Option<u32>,
    /// Flows whose order is kept, at most. Default: 1024.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub most_flows: Option<u32>,
    /// How long a worker with jobs may tell nothing. Default: 2s.
    #[serde(with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<Duration>>")]
    pub patience: Option<Duration>,
}

/// When batches begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct BatchingSection {
    /// Jobs that go into a ring together, at most. Default: 32.
    #[schemars(range(min = 1, max = 4096))]
    pub burst: Option<u32>,
    /// After how long fewer go, too. Default: 10ms.
    #[serde(with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<Duration>>")]
    pub flush_after: Option<Duration>,
    /// The fewest jobs for which a batch begins for a deadline. Default: 16.
    #[schemars(range(min = 1, max = 4096))]
    pub least: Option<u32>,
    /// After how long one of fewer begins, too. Default: 20ms.
    #[serde(with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<Duration>>")]
    pub grace: Option<Duration>,
    /// From a batch's begin until its packets leave, as predicted. Default: 25ms.
    #[serde(with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<Duration>>")]
    pub ahead: Option<Duration>,
    /// How long a packet waits for others, at most. Default: 100ms.
    #[serde(with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<Duration>>")]
    pub patience: Option<Duration>,
    /// Deadlines count. Default: true.
    pub heeds_deadlines: Option<bool>,
}

/// What `static` compares with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ThresholdsSection {
    /// Octets of a packet that a core may have.
    #[schemars(range(min = 0, max = 9000))]
    pub cpu_octets: u32,
    /// How long a packet must have for a core.
    #[serde(with = "units::text")]
    #[schemars(with = "Text<Duration>")]
    pub cpu_latency: Duration,
    /// A packet that has less waits for the accelerator instead of going to a core.
    #[serde(with = "units::text")]
    #[schemars(with = "Text<Duration>")]
    pub accelerator_latency: Duration,
    /// C1: packets per second above which cores get some.
    #[schemars(range(min = 0))]
    pub rate: u32,
    /// C2: packets per second above which cores cipher small packets without an order, all without an order, all.
    #[schemars(length(min = 3, max = 3))]
    pub rates: [u32; 3],
}

/// What `adaptive` heeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct AdaptiveSection {
    /// Milliseconds of waiting that a millijoule is worth; 0: power doesn't matter. Default: 30.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub thrift: Option<u32>,
    /// Jobs of a batch, at most. Default: 128.
    #[schemars(range(min = 1, max = 65_536))]
    pub most: Option<u32>,
    /// Work at a core, at most. Default: 1ms.
    #[serde(with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<Duration>>")]
    pub most_backlog: Option<Duration>,
    /// How long a batch waits, at most. Default: 20ms.
    #[serde(with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<Duration>>")]
    pub most_wait: Option<Duration>,
    /// After how long a worker is tried again. Default: 500ms.
    #[serde(with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<Duration>>")]
    pub stale_after: Option<Duration>,
    /// Queues count. Default: true, as of all that follow.
    pub heeds_queues: Option<bool>,
    /// Deadlines count.
    pub heeds_deadlines: Option<bool>,
    /// A flow's order counts.
    pub heeds_order: Option<bool>,
    /// A batch waits as long as pays.
    pub economises: Option<bool>,
    /// What is learned changes after the first second.
    pub goes_on_learning: Option<bool>,
}

/// Something that happens to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FaultSection {
    /// When.
    #[serde(with = "units::text")]
    #[schemars(with = "Text<Duration>")]
    pub at: Duration,
    /// To whom: cores are 0 and on, and the accelerator is behind the last one.
    #[schemars(range(min = 0, max = 7))]
    pub worker: u32,
    /// What.
    pub what: FaultKind,
    /// `slower`: it takes so many percent of the time that it took; 300 is three times as long.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub percent: Option<u32>,
    /// `stall`: how long.
    #[serde(default, with = "units::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Text<Duration>>")]
    pub lasts: Option<Duration>,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// From then on it takes another time.
    Slower,
    /// It begins nothing for a while.
    Stall,
    /// It is gone, and all that it has.
    Die,
}

impl Scenario {
    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        Self::parse(&path.display().to_string(), &super::read(path)?).map_err(LoadError::Invalid)
    }

    /// Reads a text that is at hand; `name` is what reports call it.
    pub fn parse(name: &str, text: &str) -> Result<Self, Box<Report>> {
        let read = || {
            let (scenario, root) = super::typed_from::<Self>(text, &schema(), |_| Vec::new())?;
            let mut check = Check::of(&root);
            check.scenario(&scenario);
            if check.problems.is_empty() { Ok(scenario) } else { Err(check.problems) }
        };
        read().map_err(|problems| Box::new(super::report_of(name, text, &[], problems)))
    }

    /// Cores, as far as it says.
    fn cores(&self) -> u32 {
        self.workers.cpu.unwrap_or(2)
    }
}

/// The bounds that a scenario's file is held against.
fn schema() -> serde_json::Value {
    schemars::schema_for!(Scenario).to_value()
}

impl Check<'_> {
    /// What only makes sense of a file that can be read.
    fn scenario(&mut self, scenario: &Scenario) {
        let not = |found: String, expected: &str| Wrong::NotThat { found, expected: expected.to_owned() };
        if scenario.run.test.is_some() && scenario.run.trace.is_some() {
            let wrong = not("a test beside a trace".into(), "one of the two");
            self.wrong_with(&way!["run", "trace"], wrong, &way!["run", "test"], "the test");
        }
        for (at, kind) in scenario.kind.iter().enumerate() {
            if kind.least > kind.most {
                let found = format!("at least {} and at most {} octets", kind.least, kind.most);
                self.wrong(&way!["kind", at, "most"], not(found, "what any packet has"));
            }
        }
        if let Some(rates) = scenario.thresholds.map(|it| it.rates).filter(|rates| !rates.is_sorted()) {
            let wrong = not(format!("{rates:?}"), "a list of rates that rise");
            self.wrong(&way!["thresholds", "rates"], wrong);
        }
        for (at, fault) in scenario.fault.iter().enumerate() {
            let key = |key: &str| -> [Step; 3] { way!["fault", at, key] };
            if fault.worker > scenario.cores() {
                let workers = format!("a worker: there are 0 to {}", scenario.cores());
                self.wrong(&key("worker"), not(fault.worker.to_string(), &workers));
            }
            let needed = match fault.what {
                FaultKind::Slower => "percent",
                FaultKind::Stall => "lasts",
                FaultKind::Die => "",
            };
            for (name, is_there) in [("percent", fault.percent.is_some()), ("lasts", fault.lasts.is_some())] {
                let is_needed = name == needed;
                if is_needed && !is_there {
                    let wrong = Wrong::MissingKey { key: name.into(), section: "[[fault]]".into() };
                    self.wrong(&way!["fault", at], wrong);
                }
                if is_there && !is_needed {
                    self.wrong(&key(name), not(format!("`{name}`"), "for this fault"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_scenario_is_read() {
        let text = "[run]\nscheduler = 'static'\nseconds = 5\n[[kind]]\nleast = 0\nmost = 9000\nwithin = '82ms'\n\
                    [[fault]]\nat = '2s'\nworker = 2\nwhat = 'slower'\npercent = 300\n";
        let scenario = Scenario::parse("x.toml", text).unwrap();
        assert_eq!(scenario.kind[0].within, Some(Duration::from_millis(82)));
        assert_eq!((scenario.fault[0].percent, scenario.run.seconds), (Some(300), Some(5)));
        assert_eq!(Scenario::parse("x.toml", "").unwrap(), Scenario::default());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let told = |text: &str| Scenario::parse("x.toml", text).unwrap_err().to_string();
        let both = told("[run]\nsecond = 5\n[workers]\ncpu = 9\n");
        assert!(both.starts_with("x.toml:2:1: unknown key `second` in [run]\n"), "{both}");
        assert!(
            both.contains("did you mean `seconds`?") && both.contains("x.toml:4:7: 9 is out of range"),
            "{both}"
        );
        for (text, said) in [
            ("[run]\ntest = 'low'\ntrace = 'x'\n", "x.toml:3:9: a test beside a trace is not one of the two"),
            ("[[kind]]\nleast = 9\nmost = 8\n", "x.toml:3:8: at least 9 and at most 8 octets"),
            ("[[fault]]\nat = '1s'\nworker = 3\nwhat = 'die'\n", "x.toml:3:10: 3 is not a worker"),
            ("[[fault]]\nat = '1s'\nworker = 1\nwhat = 'stall'\n", "`lasts` is missing from [[fault]]"),
            (
                "[[fault]]\nat = '1s'\nworker = 1\nwhat = 'die'\npercent = 3\n",
                "`percent` is not for this fault",
            ),
            (
                "[[fault]]\nat = '1s'\nworker = 1\nwhat = 'melt'\n",
                "`melt` is not one of the values of `what`",
            ),
            ("[traffic]\nsizes = []\n", "a list of 0 items is out of range"),
            ("[adaptive]\nmost-wait = 3\n", "3 is not a duration"),
            (
                "[thresholds]\ncpu-octets = 1\ncpu-latency = '1s'\naccelerator-latency = '1s'\nrate = 1\nrates = [3, 2, 1]\n",
                "rates that rise",
            ),
            ("run = [", "this is not TOML"),
        ] {
            let told = told(text);
            assert!(told.contains(said), "{text}: {told}");
        }
    }
}
