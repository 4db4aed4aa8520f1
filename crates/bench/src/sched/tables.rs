//! Tables for people: as text, as Markdown and as HTML.

use super::ablation::Ablation;
use super::fit::{self, Cell, percent, value};
use super::grid::Grid;
use super::thesis::{POWER, ROWS, Row, SUMMARY, row_name};
use super::{Machine, STEPS, edge_loss_percent, overhead_s};
use crate::report::figure;
use crate::svg::escaped;
use accel::sched::packet::Chain;
use accel::sched::run::Outcome;
use accel::sched::traffic::Test;
use std::fmt::Write;

/// A table: words on the left, figures on the right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// Names of columns.
    pub head: Vec<String>,
    /// Cells, row by row.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// With these columns.
    pub fn new(title: impl Into<String>, head: &[&str]) -> Self {
        Self { title: title.into(), head: head.iter().map(|&name| name.into()).collect(), rows: Vec::new() }
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let mut widths: Vec<usize> = self.head.iter().map(|cell| cell.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = format!("{}\n", self.title);
        for row in std::iter::once(&self.head).chain(&self.rows) {
            let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| {
                if at == 0 { format!("{cell:width$}") } else { format!("{cell:>width$}") }
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            // Writing to a string can't fail, here and below.
            let _ = writeln!(text, "  {}", line.trim_end());
        }
        text
    }

    /// For a page of the documentation.
    pub fn markdown(&self) -> String {
        let mut text = format!("**{}**\n\n| {} |\n|---|", self.title, self.head.join(" | "));
        text.push_str(&"---:|".repeat(self.head.len().saturating_sub(1)));
        text.push('\n');
        for row in &self.rows {
            let _ = writeln!(text, "| {} |", row.join(" | "));
        }
        text
    }

    /// For a page.
    pub fn html(&self) -> String {
        let mut text = format!("<h3>{}</h3>\n<table><tr>", escaped(&self.title));
        self.head.iter().for_each(|cell| {
            let _ = write!(text, "<th>{}</th>", escaped(cell));
        });
        text.push_str("</tr>\n");
        for row in &self.rows {
            text.push_str("<tr>");
            for (at, cell) in row.iter().enumerate() {
                let class = if at == 0 { "" } else { " class=\"n\"" };
                let _ = write!(text, "<td{class}>{}</td>", escaped(cell));
            }
            text.push_str("</tr>\n");
        }
        text + "</table>\n"
    }
}

/// Ours, theirs, and by how much they differ.
fn beside(here: f64, thesis: Option<f64>, shown: fn(f64) -> String) -> [String; 3] {
    let Some(thesis) = thesis else { return [shown(here), String::new(), String::new()] };
    let cell = Cell { table: "", row: "", column: "", unit: "", thesis, here };
    [shown(here), shown(thesis), cell.told()]
}

fn gbps(value: f64) -> String {
    format!("{value:.5}")
}

fn one(value: f64) -> String {
    format!("{value:.1}")
}

fn two(value: f64) -> String {
    format!("{value:.2}")
}

/// Tables 5.1 to 5.4, with `adaptive` below, and the thesis' values beside: first what it printed.
pub fn comparison(grid: &Grid, test: Test) -> Table {
    let number = SUMMARY.iter().find(|(_, of, _)| *of == test).map_or("", |(number, ..)| number);
    let mut table = Table::new(
        format!("{} test, beside Table {number}", test.name()),
        &[
            "scheduler",
            "Gbit/s",
            "thesis",
            "",
            "latency ms",
            "thesis",
            "",
            "missed %",
            "thesis",
            "",
            "overhead ms",
            "thesis",
            "",
        ],
    );
    for outcome in in_thesis_order(grid, test) {
        let row = (outcome.scheduler, outcome.chain);
        let printed = printed(test, row);
        let of = |column: usize, scale: f64| printed.map(|cells| cells[column] * scale);
        let mut cells = vec![row_name(row).to_owned()];
        cells.extend(beside(outcome.gbps(), of(0, 1.0), gbps));
        cells.extend(beside(outcome.total.latency_ms(), of(1, 1e3), two));
        cells.extend(beside(outcome.total.missed_percent(), of(2, 1.0), two));
        cells.extend(beside(overhead_s(outcome) * 1e3, of(3, 1e3), two));
        table.rows.push(cells);
    }
    table
}

/// What figures show of a test: order, shares of the accelerator, overhead at its three points, power, loss.
pub fn shares(grid: &Grid, test: Test) -> Table {
    let mut table = Table::new(
        format!("{} test: order, division of labour, overhead, power", test.name()),
        &[
            "scheduler",
            "in order %",
            "GPU decodes %",
            "GPU ciphers %",
            "overhead 1 ms",
            "2 ms",
            "3 ms",
            "GPU W",
            "CPU W",
            "SOC W",
            "DDR W",
            "all W",
            "thesis",
            "",
            "lost at edge %",
        ],
    );
    for outcome in in_thesis_order(grid, test) {
        let row = (outcome.scheduler, outcome.chain);
        let mut cells = vec![row_name(row).to_owned(), two(outcome.total.in_order_percent())];
        cells.extend(STEPS.map(|(step, _)| one(outcome.total.accelerator_percent(step))));
        cells.extend(outcome.total.overhead_ms().map(two));
        let power = outcome.total.power();
        cells.extend([power.gpu, power.cpu, power.soc, power.ddr].map(|milliwatts| two(milliwatts / 1e3)));
        cells.extend(beside(power.total() / 1e3, power_printed(test, row), two));
        cells.push(two(edge_loss_percent(outcome)));
        table.rows.push(cells);
    }
    table
}

/// Runs of a test as the thesis orders its rows.
fn in_thesis_order(grid: &Grid, test: Test) -> impl Iterator<Item = &Outcome> {
    let names = grid.schedulers();
    let rows: Vec<Row> = names.into_iter().flat_map(|name| Chain::ALL.map(|chain| (name, chain))).collect();
    rows.into_iter().filter_map(move |(name, chain)| grid.find(test, name, chain))
}

fn printed(test: Test, row: Row) -> Option<[f64; 4]> {
    let (.., rows) = SUMMARY.iter().find(|(_, of, _)| *of == test)?;
    ROWS.iter().position(|it| *it == row).and_then(|at| rows.get(at)).copied()
}

/// Watts on average.
fn power_printed(test: Test, row: Row) -> Option<f64> {
    let (.., rows) = POWER.iter().find(|(_, of, _)| *of == test)?;
    ROWS.iter().position(|it| *it == row).and_then(|at| rows.get(at)).map(|row| row[4] / 1e3)
}

/// What counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Three {
    /// Gbit/s.
    pub gbps: f64,
    /// Milliseconds.
    pub latency_ms: f64,
    /// Percent of deadlines missed.
    pub missed: f64,
}

impl Three {
    /// A part in a thousand is what the end of a run makes of a throughput that is all that came.
    const SAME: f64 = 0.999;

    fn of(outcome: &Outcome) -> Self {
        let total = &outcome.total;
        Self { gbps: outcome.gbps(), latency_ms: total.latency_ms(), missed: total.missed_percent() }
    }

    /// The better one of each.
    fn best(self, other: Self) -> Self {
        Self {
            gbps: self.gbps.max(other.gbps),
            latency_ms: self.latency_ms.min(other.latency_ms),
            missed: self.missed.min(other.missed),
        }
    }

    /// Whether it is no worse in any.
    pub fn is_at_or_above(self, best: Self) -> bool {
        self.gbps >= best.gbps * Self::SAME
            && self.latency_ms <= best.latency_ms
            && self.missed <= best.missed
    }
}

/// What `adaptive` is in a test beside the best of each of the others' figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// The test.
    pub test: Test,
    /// The configuration.
    pub chain: Chain,
    /// Its own.
    pub own: Three,
    /// The others in the same configuration.
    pub same: Three,
    /// The others in either.
    pub either: Three,
}

/// Judges it in all tests in which there are others.
pub fn judge(grid: &Grid) -> Vec<Judged> {
    let judged = |(test, chain): (Test, Chain)| {
        let own = Three::of(grid.find(test, "adaptive", chain)?);
        let others = grid.of(test).filter(|it| it.scheduler != "adaptive");
        let same = others.clone().filter(|it| it.chain == chain).map(Three::of).reduce(Three::best)?;
        let either = others.map(Three::of).reduce(Three::best)?;
        Some(Judged { test, chain, own, same, either })
    };
    let all = grid.tests().into_iter().flat_map(|test| Chain::ALL.map(|chain| (test, chain)));
    all.filter_map(judged).collect()
}

/// That as a table.
pub fn verdicts(grid: &Grid) -> Option<Table> {
    let judged = judge(grid);
    let head = [
        "test",
        "Gbit/s",
        "best",
        "latency ms",
        "best",
        "missed %",
        "best",
        "at or above all, same configuration",
        "either configuration",
    ];
    let mut table =
        Table::new("adaptive, and the best of each of the others' figures in either configuration", &head);
    let word = |wins: bool| if wins { "yes" } else { "no" }.to_owned();
    for Judged { test, chain, own, same, either } in &judged {
        table.rows.push(vec![
            format!("{} {}", chain.name(), test.name()),
            gbps(own.gbps),
            gbps(either.gbps),
            two(own.latency_ms),
            two(either.latency_ms),
            two(own.missed),
            two(either.missed),
            word(own.is_at_or_above(*same)),
            word(own.is_at_or_above(*either)),
        ]);
    }
    (!judged.is_empty()).then_some(table)
}

/// All cells of the thesis, one table for each of its tables.
pub fn cells(cells: &[Cell]) -> Vec<Table> {
    let mut tables: Vec<(&str, Table)> = Vec::new();
    for cell in cells {
        let kind = if cell.table.starts_with("Figure") { "" } else { "Table " };
        let at = tables.iter().position(|(table, _)| *table == cell.table).unwrap_or_else(|| {
            let head = ["row", "column", "unit", "thesis", "here", "deviation"];
            tables.push((cell.table, Table::new(format!("{kind}{}", cell.table), &head)));
            tables.len() - 1
        });
        let row = [cell.row, cell.column, cell.unit].map(str::to_owned).into_iter();
        let row = row.chain([value(cell.thesis), value(cell.here), cell.told()]);
        if let Some((_, table)) = tables.get_mut(at) {
            table.rows.push(row.collect());
        }
    }
    tables.into_iter().map(|(_, table)| table).collect()
}

/// Those that ask for an explanation.
pub fn beyond(cells: &[Cell]) -> Table {
    let found: Vec<&Cell> = cells.iter().filter(|cell| cell.is_beyond()).collect();
    let title = format!("{} of {} cells deviate by more than {} %", found.len(), cells.len(), fit::BEYOND);
    let mut table = Table::new(title, &["table", "row", "column", "unit", "thesis", "here", "deviation"]);
    for cell in found {
        let row = [cell.table, cell.row, cell.column, cell.unit].map(str::to_owned).into_iter();
        table.rows.push(row.chain([value(cell.thesis), value(cell.here), cell.told()]).collect());
    }
    table
}

/// How well each of the thesis' tables is met.
pub fn fit_summary(cells: &[Cell]) -> Table {
    let head =
        ["table", "cells", "within 5 %", "within 10 %", "within 25 %", "beyond", "median of deviations"];
    let mut table = Table::new("the model beside the thesis", &head);
    let mut names: Vec<&str> = Vec::new();
    cells.iter().for_each(|cell| {
        if !names.contains(&cell.table) {
            names.push(cell.table);
        }
    });
    for name in names {
        let own: Vec<&Cell> = cells.iter().filter(|cell| cell.table == name).collect();
        let within = |most: f64| {
            let is = |cell: &&&Cell| cell.deviation().is_some_and(|deviation| deviation.abs() <= most);
            own.iter().filter(is).count().to_string()
        };
        let mut sizes: Vec<f64> =
            own.iter().map(|cell| cell.deviation().map_or(f64::INFINITY, f64::abs)).collect();
        sizes.sort_by(f64::total_cmp);
        let beyond = own.iter().filter(|cell| cell.is_beyond()).count();
        table.rows.push(vec![
            name.to_owned(),
            own.len().to_string(),
            within(5.0),
            within(10.0),
            within(fit::BEYOND),
            beyond.to_string(),
            percent(sizes.get(sizes.len() / 2).copied().unwrap_or_default()).replace('+', ""),
        ]);
    }
    table
}

/// What `adaptive` is without its ingredients, and with other thrift.
pub fn ablation(ablation: &Ablation) -> [Table; 2] {
    let head = ["run", "Gbit/s", "latency ms", "missed %", "in order %", "power W"];
    let row = |name: String, outcome: &Outcome| {
        vec![
            name,
            gbps(outcome.gbps()),
            two(outcome.total.latency_ms()),
            two(outcome.total.missed_percent()),
            two(outcome.total.in_order_percent()),
            two(outcome.total.power().total() / 1e3),
        ]
    };
    let mut without = Table::new("adaptive without an ingredient", &head);
    for it in &ablation.without {
        let name = format!("{} {}, without {}", it.outcome.chain.name(), it.test, it.ingredient);
        without.rows.push(row(name, &it.outcome));
    }
    let mut thrift = Table::new("adaptive by thrift", &head);
    for it in &ablation.thrift {
        let name = format!("{} {}, thrift {}", it.outcome.chain.name(), it.test, it.thrift);
        thrift.rows.push(row(name, &it.outcome));
    }
    [without, thrift]
}

/// One run, for people.
pub fn of_run(machine: Machine, outcome: &Outcome) -> Vec<Table> {
    let total = &outcome.total;
    let mut figures = Table::new(
        format!(
            "{} in {}, on {}",
            outcome.scheduler,
            outcome.chain.name(),
            match machine {
                Machine::Xavier => "the simulated Jetson Xavier",
                Machine::Host => "this machine",
            }
        ),
        &["figure", "value"],
    );
    let mut put = |name: &str, value: String| figures.rows.push(vec![name.to_owned(), value]);
    put("throughput", format!("{} Gbit/s", gbps(outcome.gbps())));
    put("rate", format!("{} packets/s", figure(outcome.rate())));
    put("offered, sent", format!("{}, {}", figure(total.offered as f64), figure(total.sent as f64)));
    put("latency", format!("{} ms", two(total.latency_ms())));
    put(
        "deadlines missed",
        format!("{} % ({} of {})", two(total.missed_percent()), total.late, total.with_deadline),
    );
    put("in order", format!("{} % ({} of {})", two(total.in_order_percent()), total.in_order, total.ordered));
    for (step, name) in STEPS {
        put(&format!("accelerator, {name}"), format!("{} %", one(total.accelerator_percent(step))));
    }
    let [arrival, between, exit] = total.overhead_ms().map(two);
    put("overhead before decoding", format!("{arrival} ms"));
    put("overhead between the steps", format!("{between} ms"));
    put("overhead until it left", format!("{exit} ms"));
    let rails = (machine == Machine::Xavier).then(|| super::rails(outcome));
    for (rail, milliwatts) in rails.into_iter().flatten() {
        put(&format!("power, {rail}"), format!("{} mW", figure(milliwatts)));
    }
    if machine == Machine::Host {
        let unknown = "not known: no RAPL counter can be read here".to_owned();
        let power =
            super::watts(machine, total).map_or(unknown, |watts| format!("{} W, all told", two(watts)));
        put("power", power);
    }
    put("lost at the edge", format!("{} %", two(edge_loss_percent(outcome))));
    let mut counters = Table::new("counters", &["counter", "count"]);
    for (name, count) in counted(outcome) {
        counters.rows.push(vec![name.to_owned(), count.to_string()]);
    }
    vec![figures, counters]
}

/// All counters of the core and of the windows.
pub fn counted(outcome: &Outcome) -> [(&'static str, u64); 16] {
    let (core, order) = (&outcome.counters, &outcome.order);
    [
        ("received", core.received),
        ("sent", core.sent),
        ("with_deadline", core.with_deadline),
        ("late", core.late),
        ("handed_over_again", core.handed_over_again),
        ("duplicates", core.duplicates),
        ("given_up", core.given_up),
        ("stalled", core.stalled),
        ("unknown_kind", core.unknown_kind),
        ("flows_too_many", core.flows_too_many),
        ("window_in_order", order.in_order),
        ("window_out_of_order", order.out_of_order),
        ("window_late", order.late),
        ("window_early", order.early),
        ("window_given_up", order.given_up),
        ("window_twice", order.twice),
    ]
}

/// What a run was second by second.
pub fn per_second(machine: Machine, outcome: &Outcome) -> Table {
    let mut table = Table::new(
        "second by second",
        &[
            "s",
            "offered",
            "sent",
            "Gbit/s",
            "latency ms",
            "missed %",
            "in order %",
            "GPU decodes %",
            "GPU ciphers %",
            "overhead 1 ms",
            "2 ms",
            "3 ms",
            "power W",
            "energy J",
        ],
    );
    for (second, tally) in outcome.seconds.iter().enumerate() {
        let watts = super::watts(machine, tally);
        let mut cells = vec![second.to_string(), tally.offered.to_string(), tally.sent.to_string()];
        cells.push(gbps(tally.octets as f64 * 8.0 / 1e9));
        cells.extend([tally.latency_ms(), tally.missed_percent(), tally.in_order_percent()].map(two));
        cells.extend(STEPS.map(|(step, _)| one(tally.accelerator_percent(step))));
        cells.extend(tally.overhead_ms().map(two));
        let energy = watts.map(|watts| watts * tally.activity.seconds);
        cells.extend([watts, energy].map(|value| value.map_or(String::new(), two)));
        table.rows.push(cells);
    }
    table
}
