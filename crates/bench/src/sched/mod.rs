//! Schedulers for cores and accelerators, beside the thesis whose experiment they repeat: all of them in both configurations in four tests, on its machine as a simulation
//! ([`accel::sched`]).
//!
//! | module | what stands there |
//! |---|---|
//! | [`thesis`] | what it printed |
//! | [`grid`] | schedulers x configurations x tests |
//! | [`fit`] | each of its cells beside the same here |
//! | [`machine`] | its drivers one by one, as the simulation has them |
//! | [`ablation`] | what `adaptive` is without one of its ingredients, with more thrift, and with another accelerator |
//! | [`tables`], [`figures`], [`page`] | how people see it |

pub mod ablation;
pub mod figures;
pub mod fit;
pub mod grid;
pub mod machine;
pub mod page;
pub mod tables;
pub mod thesis;

use crate::chart::{Figure, Illustrated};
use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use ::tables::clock::Tsc;
use accel::sched::packet::{Chain, Step};
use accel::sched::run::{Outcome, RunError, Tally};
use grid::Grid;

/// The only platform that this is measured on.
pub const PLATFORM: &str = "xavier";

/// What to measure.
#[derive(Clone, Debug)]
pub struct SchedConfig {
    /// Seconds of traffic in each test.
    pub seconds: u32,
    /// Seconds in which `q-learning` is trained.
    pub training: u32,
    /// Seconds in which a driver is measured.
    pub driver: u32,
}

impl SchedConfig {
    /// A few seconds.
    pub const fn quick() -> Self {
        Self { seconds: 10, training: 60, driver: 2 }
    }

    /// The thesis' minute.
    pub const fn full() -> Self {
        Self { seconds: 60, training: 120, driver: 10 }
    }
}

/// Parameters of a result.
pub fn params(outcome: &Outcome, test: &'static str) -> Vec<(&'static str, Param)> {
    vec![
        ("platform", PLATFORM.into()),
        ("scheduler", outcome.scheduler.into()),
        ("configuration", outcome.chain.name().into()),
        ("test", test.into()),
    ]
}

/// What a run came to, result by result.
pub fn results(outcome: &Outcome, params: &[(&'static str, Param)]) -> Vec<Measured> {
    let total = &outcome.total;
    let with = |more: &[(&'static str, Param)]| [params, more].concat();
    let one = |name, unit, value: f64| Measured::of(name, unit, params, &[value]);
    let mut all = vec![
        one("throughput_bps", "bit/s", outcome.gbps() * 1e9),
        one("packets_per_second", "1/s", outcome.rate()),
        one("latency_ms", "ms", total.latency_ms()),
        one("missed_percent", "%", total.missed_percent()),
        one("in_order_percent", "%", total.in_order_percent()),
        one("edge_loss_percent", "%", edge_loss_percent(outcome)),
    ];
    for (step, name) in STEPS {
        let params = with(&[("step", name.into())]);
        all.push(Measured::of("accelerator_percent", "%", &params, &[total.accelerator_percent(step)]));
    }
    for (point, value) in (1_u64..).zip(total.overhead_ms()) {
        all.push(Measured::of("overhead_ms", "ms", &with(&[("point", point.into())]), &[value]));
    }
    for (rail, value) in rails(outcome) {
        all.push(Measured::of("power_mw", "mW", &with(&[("rail", rail.into())]), &[value]));
    }
    all
}

/// Both steps, and what they are called.
pub const STEPS: [(Step, &str); 2] = [(Step::Decode, "decode"), (Step::Cipher, "cipher")];

/// Milliwatts by rail, and all together.
pub fn rails(outcome: &Outcome) -> [(&'static str, f64); 5] {
    let power = outcome.total.power();
    [("gpu", power.gpu), ("cpu", power.cpu), ("soc", power.soc), ("ddr", power.ddr), ("all", power.total())]
}

/// Where an outcome is from, and whether what it draws is known by the Jetson's model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// The simulated Jetson.
    Xavier,
    /// This machine: what it draws is measured, or not known.
    Host,
}

/// Watts of a second, or of all of them.
pub fn watts(machine: Machine, tally: &Tally) -> Option<f64> {
    match machine {
        Machine::Xavier => Some(tally.power().total() / 1e3),
        Machine::Host => tally.joules.map(|joules| joules / tally.activity.seconds.max(1e-9)),
    }
}

/// Of the packets that came, those that the receive ring had no place for.
pub fn edge_loss_percent(outcome: &Outcome) -> f64 {
    let (came, lost) = outcome.edge.iter().fold((0, 0), |sum, kind| (sum.0 + kind.0, sum.1 + kind.1));
    if came == 0 { 0.0 } else { lost as f64 / came as f64 * 100.0 }
}

/// Seconds from a packet's arrival until it left that nobody worked at it, on average.
pub fn overhead_s(outcome: &Outcome) -> f64 {
    outcome.total.overhead_ms().iter().sum::<f64>() / 1e3
}

/// Everything: the grid, each of the thesis' cells, and what `adaptive` is made of.
pub fn run(config: &SchedConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Illustrated, RunError> {
    let mut report = Report::new("sched", &clock);
    let grid = Grid::run(&grid::Wanted::all(config.seconds, config.training), progress)?;
    for entry in &grid.entries {
        report.results.extend(results(&entry.outcome, &params(&entry.outcome, entry.test.name())));
    }
    progress.keep(&report);
    let cells = fit::all(&grid, config, progress)?;
    for cell in &cells {
        let params = [
            ("table", cell.table.into()),
            ("row", cell.row.into()),
            ("column", cell.column.into()),
            ("unit", cell.unit.into()),
        ];
        report.results.push(Measured::of("published", cell.unit, &params, &[cell.thesis]));
        report.results.push(Measured::of("simulated", cell.unit, &params, &[cell.here]));
        if let Some(deviation) = cell.deviation() {
            report.results.push(Measured::of("deviation_percent", "%", &params, &[deviation]));
        }
    }
    progress.keep(&report);
    let ablation = ablation::run(config.seconds, progress)?;
    report.results.extend(ablation.results());
    report.notes.extend(notes(config, &cells));
    progress.keep(&report);
    let mut panels = figures::summary(&grid);
    panels.extend(ablation.panels());
    let title = "sched on the simulated Jetson Xavier".to_owned();
    Ok(Illustrated { report, figure: Figure { title, panels } })
}

/// What a reader must know.
fn notes(config: &SchedConfig, cells: &[fit::Cell]) -> Vec<String> {
    let beyond = cells.iter().filter(|cell| cell.is_beyond()).count();
    let mut notes = vec![
        format!(
            "all figures are of the simulated Jetson Xavier of the thesis, {} s of traffic in each test; this machine's speed has no part in them",
            config.seconds
        ),
        format!(
            "of the thesis' {} cells {beyond} deviate by more than {} %; `published` and `simulated` hold each of them",
            cells.len(),
            fit::BEYOND
        ),
    ];
    notes.extend(cells.iter().filter(|cell| cell.is_beyond()).map(|cell| format!("beyond: {cell}")));
    notes
}

/// Both configurations in the thesis' order.
pub const CHAINS: [Chain; 2] = Chain::ALL;

#[cfg(test)]
mod tests;
