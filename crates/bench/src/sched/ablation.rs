//! What each ingredient of `adaptive` is worth: the same tests without it; and what its thrift costs: latency against power.

use super::{params, rails};
use crate::chart::{Panel, Series};
use crate::progress::Progress;
use crate::report::{Measured, Param};
use accel::sched::WorkerId;
use accel::sched::adaptive;
use accel::sched::packet::Chain;
use accel::sched::run::{Outcome, RunError, Settings, simulate};
use accel::sched::traffic::Test;
use accel::sched::xavier::{Change, Fault};
use tables::Nanos;

/// An ingredient, and how it is left out.
pub type Ingredient = (&'static str, fn(&mut adaptive::Settings));

/// All of them; the first leaves out nothing.
pub const INGREDIENTS: [Ingredient; 6] = [
    ("nothing", |_| {}),
    ("queues", |settings| settings.heeds_queues = false),
    ("deadlines", |settings| settings.heeds_deadlines = false),
    ("order", |settings| settings.heeds_order = false),
    ("batch economics", |settings| settings.economises = false),
    ("learning", |settings| settings.goes_on_learning = false),
];

/// Milliseconds of waiting that a millijoule is worth.
pub const THRIFT: [u32; 7] = [0, 1, 3, 10, 30, 50, 100];

/// The low test, in which the accelerator takes three times as long from the middle on.
pub const SLOWED: &str = "slowed";

/// Tests of the ingredients.
pub const TESTS: [&str; 5] = ["low", "medium", "stress", "standard", SLOWED];

/// Without an ingredient.
#[derive(Clone, Debug)]
pub struct Without {
    /// Which.
    pub ingredient: &'static str,
    /// In which test.
    pub test: &'static str,
    /// What it came to.
    pub outcome: Outcome,
}

/// With some thrift.
#[derive(Clone, Debug)]
pub struct Thrifty {
    /// How much.
    pub thrift: u32,
    /// In which test.
    pub test: &'static str,
    /// What it came to.
    pub outcome: Outcome,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Ablation {
    /// By configuration, test and ingredient.
    pub without: Vec<Without>,
    /// By configuration, test and thrift.
    pub thrift: Vec<Thrifty>,
}

/// A test by its name.
fn settings(test: &'static str, chain: Chain, seconds: u32) -> Settings {
    let of = Test::ALL.into_iter().find(|it| it.name() == test).unwrap_or(Test::Low);
    let mut settings = Settings { seconds, ..Settings::thesis(of, chain) };
    if test == SLOWED {
        let worker = WorkerId(settings.xavier.cpu_workers);
        let at = Nanos(u64::from(seconds) * Nanos::SECOND / 2);
        settings.xavier.changes.push(Change { at, worker, what: Fault::Slower(3.0) });
    }
    settings
}

/// Measures it.
pub fn run(seconds: u32, progress: &mut dyn Progress) -> Result<Ablation, RunError> {
    let mut ablation = Ablation::default();
    progress.tell("adaptive without its ingredients");
    let all = (Chain::ALL.len() * TESTS.len() * INGREDIENTS.len()) as u64;
    for chain in Chain::ALL {
        for test in TESTS {
            for (ingredient, leave_out) in INGREDIENTS {
                progress.part(ablation.without.len() as u64, all);
                let mut settings = settings(test, chain, seconds);
                leave_out(&mut settings.adaptive);
                let outcome = simulate("adaptive", &settings)?;
                ablation.without.push(Without { ingredient, test, outcome });
            }
        }
    }
    progress.tell("adaptive with more and less thrift");
    for chain in Chain::ALL {
        for test in ["low", "medium", "standard"] {
            for thrift in THRIFT {
                let mut settings = settings(test, chain, seconds);
                settings.adaptive.thrift = f64::from(thrift);
                let outcome = simulate("adaptive", &settings)?;
                ablation.thrift.push(Thrifty { thrift, test, outcome });
            }
        }
    }
    Ok(ablation)
}

impl Ablation {
    /// As results.
    pub fn results(&self) -> Vec<Measured> {
        let of = |outcome: &Outcome, test, more: (&'static str, Param)| {
            let params = [params(outcome, test), vec![more]].concat();
            let [.., (_, power)] = rails(outcome);
            let one = |name, unit, value: f64| Measured::of(name, unit, &params, &[value]);
            [
                one("throughput_bps", "bit/s", outcome.gbps() * 1e9),
                one("latency_ms", "ms", outcome.total.latency_ms()),
                one("missed_percent", "%", outcome.total.missed_percent()),
                one("in_order_percent", "%", outcome.total.in_order_percent()),
                one("power_mw", "mW", power),
            ]
        };
        let without =
            self.without.iter().flat_map(|it| of(&it.outcome, it.test, ("without", it.ingredient.into())));
        let thrift = self
            .thrift
            .iter()
            .flat_map(|it| of(&it.outcome, it.test, ("thrift", u64::from(it.thrift).into())));
        without.chain(thrift).collect()
    }

    /// As pictures.
    pub fn panels(&self) -> Vec<Panel> {
        let bars = |what: &str, value: fn(&Outcome) -> f64| {
            Chain::ALL.map(|chain| {
                let series = INGREDIENTS.map(|(ingredient, _)| {
                    let points = (0_u32..).zip(TESTS).map(|(x, test)| {
                        let found = self.without.iter().find(|it| {
                            (it.ingredient, it.test, it.outcome.chain) == (ingredient, test, chain)
                        });
                        (f64::from(x), found.map(|it| value(&it.outcome)))
                    });
                    Series::measured(format!("adaptive without {ingredient}"), points)
                });
                let title = format!("{}: {what} without an ingredient", chain.name());
                Panel::bars(title, ("test", what), TESTS.map(str::to_owned).to_vec(), series.to_vec())
            })
        };
        let mut panels = Vec::new();
        panels.extend(bars("latency (ms)", |it| it.total.latency_ms()).map(Panel::logarithmic));
        panels.extend(bars("missed (%)", |it| it.total.missed_percent()));
        panels.extend(bars("power (W)", |it| it.total.power().total() / 1e3));
        for chain in Chain::ALL {
            let curve = |test: &'static str| {
                let of = self.thrift.iter().filter(|it| (it.test, it.outcome.chain) == (test, chain));
                let mut points: Vec<(f64, f64)> = of
                    .map(|it| (it.outcome.total.power().total() / 1e3, it.outcome.total.latency_ms()))
                    .collect();
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
                Series::measured(format!("thrift 0 to 100, {test}"), points)
            };
            let series = ["low", "medium", "standard"].map(curve).to_vec();
            let title = format!("{}: latency against power, by thrift", chain.name());
            panels.push(Panel::lines(title, ("power (W)", "latency (ms)"), series));
        }
        panels
    }
}
