//! The thesis' figures 5.2 to 5.30, drawn from runs here.

use super::grid::Grid;
use super::thesis::{ORDER, READ, ROWS, SHARES, SUMMARY};
use super::{CHAINS, STEPS, edge_loss_percent};
use crate::chart::{Figure, Panel, Series};
use accel::sched::packet::Chain;
use accel::sched::run::{Outcome, Tally};
use accel::sched::traffic::Test;

/// Numbers of the thesis' figures of a test: latency over time, missed, average latency, throughput, GPU load, in order, overhead, energy; empty where there is none.
const fn numbers(test: Test) -> [&'static str; 8] {
    match test {
        Test::Low => ["5.2", "5.3", "5.4", "", "5.5", "5.6", "5.7", "5.29"],
        Test::Medium => ["5.8", "5.9", "5.10", "5.11", "5.12", "5.13", "5.14", ""],
        Test::Stress => ["5.15", "5.16", "5.17", "5.18", "5.19", "5.20", "5.21", ""],
        Test::Standard => ["5.22", "5.23", "5.24", "5.25", "5.26", "5.27", "5.28", "5.30"],
    }
}

fn titled(what: &str, number: &str) -> String {
    if number.is_empty() { what.to_owned() } else { format!("{what} (Figure {number})") }
}

/// All figures of a test.
pub fn of_test(grid: &Grid, test: Test) -> Figure {
    let [over_time, missed, latency, throughput, load, order, overhead, energy] = numbers(test);
    let names = grid.schedulers();
    let published = |column: usize, scale: f64| {
        let rows = SUMMARY.iter().find(|(_, of, _)| *of == test).map(|(.., rows)| rows);
        move |scheduler: &str, chain: Chain| {
            let at = ROWS.iter().position(|row| *row == (scheduler, chain))?;
            rows.and_then(|rows| rows.get(at)).map(|row| row[column] * scale)
        }
    };
    let in_order = |scheduler: &str, chain: Chain| {
        let (.., rows) = ORDER.iter().find(|(_, of, _)| *of == test)?;
        ROWS.iter().position(|row| *row == (scheduler, chain)).map(|at| rows[at])
    };
    let panels = vec![
        rate(grid, test),
        lines(grid, test, &titled("Latency over time", over_time), "ms", Tally::latency_ms).logarithmic(),
        lines(grid, test, "Missed deadlines over time", "% of those that have one", Tally::missed_percent),
        bars(
            grid,
            test,
            &names,
            (&titled("Missed deadlines", missed), "%"),
            Outcome::missed,
            published(2, 1.0),
        ),
        bars(
            grid,
            test,
            &names,
            (&titled("Average latency", latency), "ms"),
            Outcome::latency,
            published(1, 1e3),
        ),
        bars(
            grid,
            test,
            &names,
            (&titled("Throughput", throughput), "Gbit/s"),
            Outcome::gbps,
            published(0, 1.0),
        ),
        shares(grid, test, &names, &titled("Packets that the GPU does", load)),
        bars(
            grid,
            test,
            &names,
            (&titled("In order", order), "% of ordered packets"),
            Outcome::in_order,
            in_order,
        ),
        overheads(grid, test, &titled("Overhead", overhead)),
        lines(grid, test, &titled("Power over time", energy), "W", |second| second.power().total() / 1e3),
    ];
    Figure { title: format!("{} test on the simulated Jetson Xavier", test.name()), panels }
}

/// What bars are of.
trait Bars {
    fn missed(&self) -> f64;
    fn latency(&self) -> f64;
    fn in_order(&self) -> f64;
}

impl Bars for Outcome {
    fn missed(&self) -> f64 {
        self.total.missed_percent()
    }

    fn latency(&self) -> f64 {
        self.total.latency_ms()
    }

    fn in_order(&self) -> f64 {
        self.total.in_order_percent()
    }
}

fn label(outcome: &Outcome) -> String {
    format!("{} {}", outcome.chain.name(), outcome.scheduler)
}

/// Seconds whose traffic came whole: what is left over after the last one is no second.
fn whole(outcome: &Outcome) -> impl Iterator<Item = (f64, &Tally)> {
    let whole = |(_, second): &(u32, &Tally)| second.activity.seconds > 0.99;
    (0_u32..).zip(&outcome.seconds).filter(whole).map(|(at, second)| (f64::from(at), second))
}

fn rate(grid: &Grid, test: Test) -> Panel {
    let first = grid.of(test).next();
    let points: Vec<(f64, f64)> =
        first.into_iter().flat_map(whole).map(|(at, second)| (at, second.offered as f64)).collect();
    Panel::lines("Packets that came", ("s", "packets a second"), vec![Series::measured("input", points)])
}

fn lines(grid: &Grid, test: Test, title: &str, up: &str, value: fn(&Tally) -> f64) -> Panel {
    let line = |outcome: &Outcome| {
        // Nothing left in a second: there is no latency, and no share.
        let seen = |second: &Tally| (second.sent > 0).then(|| value(second));
        Series::measured(label(outcome), whole(outcome).map(|(at, second)| (at, seen(second))))
    };
    Panel::lines(title, ("s", up), grid.of(test).map(line).collect())
}

fn bars(
    grid: &Grid,
    test: Test,
    names: &[&'static str],
    (title, up): (&str, &str),
    value: fn(&Outcome) -> f64,
    thesis: impl Fn(&str, Chain) -> Option<f64>,
) -> Panel {
    let at = |x: usize| x as f64;
    let mut series = Vec::new();
    for chain in CHAINS {
        let found = |(x, name): (usize, &&'static str)| (at(x), grid.find(test, name, chain).map(value));
        series.push(Series::measured(chain.name(), names.iter().enumerate().map(found)));
    }
    for chain in CHAINS {
        let found = |(x, name): (usize, &&'static str)| (at(x), thesis(name, chain));
        series.push(Series::published(chain.name(), READ, names.iter().enumerate().map(found)));
    }
    let categories = names.iter().map(|name| (*name).to_owned()).collect();
    Panel::bars(title, ("scheduler", up), categories, series)
}

fn shares(grid: &Grid, test: Test, names: &[&'static str], title: &str) -> Panel {
    let mut series = Vec::new();
    for chain in CHAINS {
        for (step, what) in STEPS {
            let label = format!("{} {what}", chain.name());
            let found = |(x, name): (usize, &&'static str)| {
                (x as f64, grid.find(test, name, chain).map(|it| it.total.accelerator_percent(step)))
            };
            series.push(Series::measured(label.clone(), names.iter().enumerate().map(found)));
            let thesis = |(x, name): (usize, &&'static str)| {
                let is = |(_, of, row, _): &&(_, Test, _, _)| (*of, *row) == (test, (*name, chain));
                (x as f64, SHARES.iter().find(is).and_then(|(.., shares)| shares[step as usize]))
            };
            series.push(Series::published(label, READ, names.iter().enumerate().map(thesis)));
        }
    }
    let categories = names.iter().map(|name| (*name).to_owned()).collect();
    Panel::bars(title, ("scheduler", "% of packets"), categories, series)
}

fn overheads(grid: &Grid, test: Test, title: &str) -> Panel {
    let outcomes: Vec<&Outcome> = grid.of(test).collect();
    let point = |point: usize| {
        let of = |(x, outcome): (usize, &&Outcome)| (x as f64, outcome.total.overhead_ms()[point]);
        Series::measured(format!("overhead {}", point + 1), outcomes.iter().enumerate().map(of))
    };
    let short = |outcome: &&Outcome| {
        let name: String = outcome.scheduler.split('-').map(|word| word.get(..1).unwrap_or("")).collect();
        let name = if name.len() > 1 { name } else { outcome.scheduler.get(..5).unwrap_or("").to_owned() };
        format!("{} {name}", outcome.chain.name())
    };
    Panel::bars(
        title,
        ("scheduler", "ms"),
        outcomes.iter().map(short).collect(),
        [0, 1, 2].map(point).to_vec(),
    )
}

/// What a panel shows, in what, and where from.
type Shown = (&'static str, &'static str, fn(&Outcome) -> f64);

/// One picture of all tests: a panel for each configuration and figure.
pub fn summary(grid: &Grid) -> Vec<Panel> {
    let (names, tests) = (grid.schedulers(), grid.tests());
    let mut panels = Vec::new();
    let of: [Shown; 6] = [
        ("latency", "ms", Outcome::latency),
        ("missed deadlines", "%", Outcome::missed),
        ("throughput", "Gbit/s", Outcome::gbps),
        ("in order", "%", Outcome::in_order),
        ("power", "W", |it| it.total.power().total() / 1e3),
        ("lost at the edge", "%", edge_loss_percent),
    ];
    for (what, up, value) in of {
        for chain in CHAINS {
            let line = |name: &&'static str| {
                let point = |(x, &test): (usize, &Test)| (x as f64, grid.find(test, name, chain).map(value));
                Series::measured(*name, tests.iter().enumerate().map(point))
            };
            let categories = tests.iter().map(|test| test.name().to_owned()).collect();
            let title = format!("{}: {what}", chain.name());
            let panel = Panel::bars(title, ("test", up), categories, names.iter().map(line).collect());
            panels.push(if what == "latency" { panel.logarithmic() } else { panel });
        }
    }
    panels
}
