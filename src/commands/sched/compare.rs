//! `millrace sched compare`: schedulers x configurations x tests beside the thesis.

use super::scenario::{Configuration, Named};
use super::told::Told;
use super::{Platform, Working, chain};
use crate::exit::{Exit, Failure};
use crate::output;
use accel::sched::packet::Chain;
use accel::sched::run::{RunError, SCHEDULERS};
use accel::sched::traffic::Test;
use bench::sched::ablation::{self, Ablation};
use bench::sched::fit::{self, Cell};
use bench::sched::grid::{Grid, Wanted};
use bench::sched::page::Page;
use bench::sched::tables::{self, Table};
use bench::sched::{SchedConfig, figures};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Arguments of `compare`.
#[derive(clap::Args)]
pub struct Args {
    /// Where work is done.
    #[arg(long, value_enum, default_value_t = Platform::Xavier)]
    platform: Platform,
    /// Some schedulers only.
    #[arg(long, value_delimiter = ',', value_name = "NAME,NAME,...")]
    scheduler: Vec<String>,
    /// One configuration only.
    #[arg(long, value_enum, value_name = "C1|C2")]
    config: Option<Configuration>,
    /// Some tests only (not random).
    #[arg(long, value_enum, value_delimiter = ',', value_name = "TEST,TEST,...")]
    test: Vec<Named>,
    /// Seconds in which packets come.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// All of the thesis' tables that the machine can be held against (4.2 to 4.7, 6.1 and 6.2 as well), cell by cell.
    #[arg(long)]
    fit: bool,
    /// Adaptive without each of its ingredients, and by its thrift.
    #[arg(long)]
    ablation: bool,
    /// Print Markdown instead of text.
    #[arg(long)]
    markdown: bool,
    /// Write everything as one page with figures.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write each test's figures into this folder, as SVG.
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// Write the result as JSON (`-`: to standard output, instead of tables).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// All of it, for scripts.
#[derive(Serialize)]
struct Compared {
    runs: Vec<Told>,
    cells: Vec<TellCell>,
    verdicts: Vec<Verdict>,
}

/// A cell of the thesis.
#[derive(Serialize)]
struct TellCell {
    table: &'static str,
    row: &'static str,
    column: &'static str,
    unit: &'static str,
    thesis: f64,
    here: f64,
    deviation_percent: Option<f64>,
}

/// Whether `adaptive` is at or above the best of the others.
#[derive(Serialize)]
struct Verdict {
    test: &'static str,
    configuration: &'static str,
    at_or_above_all_in_same_configuration: bool,
    at_or_above_all: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.platform.is_simulated("compare")?;
    let wanted = wanted(args)?;
    for path in args.html.iter().chain(&args.json) {
        output::check_writable(path)?;
    }
    if let Some(folder) = &args.svg {
        let failed = |error| Failure::new(Exit::Usage, format!("can't write {}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut working = Working::start()?;
    let found = measure(args, &wanted, &mut working);
    working.end();
    let Found { grid, cells, ablation } = found?;
    if let Some(path) = &args.html {
        let command = std::env::args().collect::<Vec<_>>().join(" ");
        let page = Page { command: &command, grid: &grid, cells: &cells, ablation: ablation.as_ref() };
        output::written(&page.html(), path)?;
    }
    if let Some(folder) = &args.svg {
        draw(&grid, folder)?;
    }
    if let Some(path) = &args.json {
        output::report(&compared(args, &grid, &cells), path)?;
    }
    if args.json.as_deref().is_some_and(output::is_stdout) {
        return Ok(());
    }
    let all = shown(args, &grid, &cells, ablation.as_ref());
    let text = all.iter().map(|table| if args.markdown { table.markdown() } else { table.text() });
    output::text(&text.collect::<Vec<_>>().join("\n"))
}

fn wanted(args: &Args) -> Result<Wanted, Failure> {
    let mut wanted = Wanted::all(args.seconds, accel::sched::run::TRAINING);
    if !args.scheduler.is_empty() {
        let known = |name: &String| {
            let found = SCHEDULERS.into_iter().find(|known| known == name);
            found.ok_or_else(|| RunError::Unknown { name: name.clone() })
        };
        wanted.schedulers = args.scheduler.iter().map(known).collect::<Result<_, _>>()?;
    }
    if let Some(config) = args.config {
        wanted.chains = vec![chain(config)];
    }
    if !args.test.is_empty() {
        let known = |test: &Named| {
            test.test()
                .ok_or_else(|| Failure::new(Exit::Usage, "the thesis has no random test to compare with"))
        };
        wanted.tests = args.test.iter().map(known).collect::<Result<_, _>>()?;
    }
    Ok(wanted)
}

/// What was measured.
struct Found {
    grid: Grid,
    cells: Vec<Cell>,
    ablation: Option<Ablation>,
}

fn measure(args: &Args, wanted: &Wanted, working: &mut Working) -> Result<Found, Failure> {
    let grid = Grid::run(wanted, working)?;
    let cells = if args.fit {
        let config = SchedConfig { seconds: args.seconds, ..SchedConfig::full() };
        fit::all(&grid, &config, working)?
    } else {
        fit::of_grid(&grid)
    };
    let ablation = args.ablation.then(|| ablation::run(args.seconds, working)).transpose()?;
    Ok(Found { grid, cells, ablation })
}

/// All tables, in the order in which they are read.
fn shown(args: &Args, grid: &Grid, cells: &[Cell], ablation: Option<&Ablation>) -> Vec<Table> {
    let of_test = |test: Test| [tables::comparison(grid, test), tables::shares(grid, test)];
    let mut all: Vec<Table> = grid.tests().into_iter().flat_map(of_test).collect();
    all.extend(tables::verdicts(grid));
    all.extend(ablation.into_iter().flat_map(tables::ablation));
    if !cells.is_empty() {
        all.extend([tables::fit_summary(cells), tables::beyond(cells)]);
    }
    if args.fit {
        all.extend(tables::cells(cells));
    }
    all
}

fn draw(grid: &Grid, folder: &Path) -> Result<(), Failure> {
    for test in grid.tests() {
        let path = folder.join(format!("{}.svg", test.name()));
        figures::of_test(grid, test).write(&path).map_err(|error| Failure::new(Exit::Failed, error))?;
    }
    Ok(())
}

fn compared(args: &Args, grid: &Grid, cells: &[Cell]) -> Compared {
    let run = |entry: &bench::sched::grid::Entry| Told::of(args.platform, entry.test.name(), &entry.outcome);
    let cell = |cell: &Cell| TellCell {
        table: cell.table,
        row: cell.row,
        column: cell.column,
        unit: cell.unit,
        thesis: cell.thesis,
        here: cell.here,
        deviation_percent: cell.deviation(),
    };
    let verdict = |it: &tables::Judged| Verdict {
        test: it.test.name(),
        configuration: Chain::name(it.chain),
        at_or_above_all_in_same_configuration: it.own.is_at_or_above(it.same),
        at_or_above_all: it.own.is_at_or_above(it.either),
    };
    Compared {
        runs: grid.entries.iter().map(run).collect(),
        cells: cells.iter().map(cell).collect(),
        verdicts: tables::judge(grid).iter().map(verdict).collect(),
    }
}
