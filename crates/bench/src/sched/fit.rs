//! Each cell that the thesis printed, beside the same on the simulated machine.

use super::grid::Grid;
use super::thesis::{self, DRIVERS, ORDER, POWER, RINGS, ROWS, Row, SHARES, SUMMARY, WORKERS, row_name};
use super::{SchedConfig, machine, overhead_s};
use crate::progress::Progress;
use crate::report::figure;
use accel::sched::packet::{Chain, Step};
use accel::sched::run::{self, Outcome, RunError, Settings, simulate};
use accel::sched::traffic::Test;
use std::fmt;

/// Percent of deviation that ask for an explanation.
pub const BEYOND: f64 = 25.0;

/// A cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// The table's number, or the figure whose text says it (`Figure 5.5`; there is a table of that number, too).
    pub table: &'static str,
    /// What the row is called.
    pub row: &'static str,
    /// What the column is called.
    pub column: &'static str,
    /// What both values are in.
    pub unit: &'static str,
    /// Theirs.
    pub thesis: f64,
    /// Ours.
    pub here: f64,
}

impl Cell {
    /// By how many percent ours differs from theirs; none where theirs is nothing and ours is something.
    pub fn deviation(&self) -> Option<f64> {
        if self.thesis == 0.0 {
            return (self.here == 0.0).then_some(0.0);
        }
        Some((self.here / self.thesis - 1.0) * 100.0)
    }

    /// Whether that asks for an explanation.
    pub fn is_beyond(&self) -> bool {
        self.deviation().is_none_or(|deviation| deviation.abs() > BEYOND)
    }

    /// The deviation as people read it.
    pub fn told(&self) -> String {
        self.deviation().map_or_else(|| "from 0".to_owned(), percent)
    }
}

/// A deviation with its sign.
pub fn percent(deviation: f64) -> String {
    // Not `-0.0`.
    let rounded = (deviation * 10.0).round() / 10.0 + 0.0;
    format!("{rounded:+.1} %")
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, row, column, unit, thesis, here } = self;
        let (thesis, here) = (value(*thesis), value(*here));
        write!(f, "{table}, {row}, {column}: {thesis} {unit} there, {here} {unit} here ({})", self.told())
    }
}

/// A value with as many digits as the thesis prints.
pub fn value(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        least if least < 1.0 => format!("{value:.5}"),
        _ => figure(value),
    }
}

/// All of them.
pub fn all(grid: &Grid, config: &SchedConfig, progress: &mut dyn Progress) -> Result<Vec<Cell>, RunError> {
    let mut cells = drivers(config, progress);
    cells.extend(of_grid(grid));
    cells.extend(rings(config, progress)?);
    cells.extend(workers(config, progress)?);
    Ok(cells)
}

/// Tables 4.2 to 4.7.
pub fn drivers(config: &SchedConfig, progress: &mut dyn Progress) -> Vec<Cell> {
    progress.tell("the machine's drivers, tables 4.2 to 4.7");
    let mut cells = Vec::new();
    for (done, driver) in (0..).zip(&DRIVERS) {
        progress.part(done, DRIVERS.len() as u64);
        let found = machine::measure(driver, config.driver);
        let [latency, throughput] = driver.tables;
        let cell =
            |table, column, unit, thesis, here| Cell { table, row: driver.row, column, unit, thesis, here };
        cells.push(cell(latency, "latency", "ms", driver.latency_ms, found.latency_ms));
        cells.push(cell(throughput, "throughput", "Mbit/s", driver.mbps, found.mbps));
    }
    // Table by table, as they are printed.
    cells.sort_by_key(|cell| cell.table);
    cells
}

/// Columns of tables 5.1 to 5.4.
pub fn summary(outcome: &Outcome) -> [f64; 4] {
    [outcome.gbps(), outcome.total.latency_ms() / 1e3, outcome.total.missed_percent(), overhead_s(outcome)]
}

/// Their names and units.
pub const SUMMARY_COLUMNS: [(&str, &str); 4] =
    [("throughput", "Gbit/s"), ("latency", "s"), ("missed", "%"), ("overhead", "s")];

/// Columns of tables 5.5 to 5.8, and 6.2.
const RAILS: [&str; 5] = ["GPU", "CPU", "SOC", "DDR RAM", "average"];

/// Tables 5.1 to 5.8, and what texts of figures say, as far as there are such runs.
pub fn of_grid(grid: &Grid) -> Vec<Cell> {
    let mut cells = Vec::new();
    let found = |test: Test, (scheduler, chain): Row| grid.find(test, scheduler, chain);
    for (table, test, rows) in SUMMARY {
        for (row, values) in ROWS.into_iter().zip(rows) {
            let Some(outcome) = found(test, row) else { continue };
            for (((column, unit), thesis), here) in
                SUMMARY_COLUMNS.into_iter().zip(values).zip(summary(outcome))
            {
                cells.push(Cell { table, row: row_name(row), column, unit, thesis, here });
            }
        }
    }
    for (tables, test, rows) in POWER {
        for (row, values) in ROWS.into_iter().zip(rows) {
            let Some(outcome) = found(test, row) else { continue };
            for (at, (column, thesis)) in RAILS.into_iter().zip(values).enumerate() {
                let (_, here) = super::rails(outcome)[at];
                let table = tables[usize::from(at == 4)];
                cells.push(Cell { table, row: row_name(row), column, unit: "mW", thesis, here });
            }
        }
    }
    for (table, test, row, shares) in SHARES {
        let Some(outcome) = found(test, row) else { continue };
        let columns = [(Step::Decode, "decoded by GPU"), (Step::Cipher, "ciphered by GPU")];
        for ((step, column), thesis) in columns.into_iter().zip(shares) {
            let here = outcome.total.accelerator_percent(step);
            let cell = |thesis| Cell { table, row: row_name(row), column, unit: "%", thesis, here };
            cells.extend(thesis.map(cell));
        }
    }
    for (table, test, rows) in ORDER {
        for (row, thesis) in ROWS.into_iter().zip(rows) {
            let Some(outcome) = found(test, row) else { continue };
            let here = outcome.total.in_order_percent();
            cells.push(Cell { table, row: row_name(row), column: "in order", unit: "%", thesis, here });
        }
    }
    cells
}

/// Table 6.1: rings of cores halved.
fn rings(config: &SchedConfig, progress: &mut dyn Progress) -> Result<Vec<Cell>, RunError> {
    progress.tell("halved rings, table 6.1");
    let mut cells = Vec::new();
    for (row, test, halved, values) in RINGS {
        let mut settings = Settings { seconds: config.seconds, ..Settings::thesis(test, Chain::EachStep) };
        settings.xavier.cpu_ring /= if halved { 2 } else { 1 };
        let found = summary(&simulate("round-robin", &settings)?);
        for (((column, unit), thesis), here) in SUMMARY_COLUMNS.into_iter().zip(values).zip(found) {
            cells.push(Cell { table: "6.1", row, column, unit, thesis, here });
        }
    }
    Ok(cells)
}

/// Table 6.2: one to four cores as workers.
fn workers(config: &SchedConfig, progress: &mut dyn Progress) -> Result<Vec<Cell>, RunError> {
    progress.tell("one to four cores, table 6.2");
    let mut cells = Vec::new();
    for (done, (row, scheduler, workers, values)) in (0..).zip(WORKERS) {
        progress.part(done, WORKERS.len() as u64);
        let mut settings = Settings { seconds: config.seconds, ..Settings::thesis(Test::Low, Chain::Once) };
        settings.xavier.cpu_workers = workers;
        if scheduler == "q-learning" {
            settings.learned = Some(run::train(&settings, config.training));
        }
        let outcome = simulate(scheduler, &settings)?;
        for ((column, thesis), (_, here)) in RAILS.into_iter().zip(values).zip(super::rails(&outcome)) {
            cells.push(Cell { table: "6.2", row, column, unit: "mW", thesis, here });
        }
    }
    Ok(cells)
}

/// Whose cells these are.
pub fn source() -> String {
    let document = thesis::THESIS;
    format!("{}, {}, {} ({})", document.author, document.title, document.kind, document.year)
}
