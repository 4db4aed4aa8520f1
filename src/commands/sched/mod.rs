//! `millrace sched`: which worker does a packet's steps? Schedulers for cores and accelerators, on a simulated machine.

mod compare;
mod scenario;
mod told;

use crate::exit::{Exit, Failure};
use crate::output;
use crate::screen::{self, Screen};
use crate::signals::{self, Ended};
use accel::sched::host::{self, HostSettings, Scale};
use accel::sched::packet::Chain;
use accel::sched::q_learning::Table;
use accel::sched::run::{self, Outcome, RunError, Settings, simulate};
use bench::sched::{Machine, tables};
use bench::{Progress, Report};
use clap::Subcommand;
use scenario::{Chosen, Configuration, Named, What};
use std::io::Read;
use std::path::{Path, PathBuf};
use told::{Calibrated, Told};

/// Arguments of `sched`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run one scheduler in one test.
    Run(RunArgs),
    /// Run schedulers in both configurations and in tests, and show them beside the thesis whose tests these are.
    Compare(compare::Args),
    /// Train q-learning on a random trace, and write down what it has learned.
    Train(TrainArgs),
    /// Measure each worker alone; print its latencies, and the thresholds of static that follow.
    Calibrate(CalibrateArgs),
}

/// Where work is done.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Platform {
    /// The thesis' NVIDIA Jetson Xavier, simulated: the same result on every machine.
    Xavier,
    /// Threads of this machine, which decode and cipher: `run` with the thesis' tests, at rates and deadlines that fit the machine.
    Host,
}

impl Platform {
    /// As on the command line.
    const fn name(self) -> &'static str {
        match self {
            Self::Xavier => "xavier",
            Self::Host => "host",
        }
    }

    /// Whose figures these are.
    const fn machine(self) -> Machine {
        match self {
            Self::Xavier => Machine::Xavier,
            Self::Host => Machine::Host,
        }
    }

    /// The simulated machine, for what only it can do.
    fn is_simulated(self, command: &str) -> Result<(), Failure> {
        let why = format!("`sched {command}` runs on the simulated machine only: leave --platform out");
        if self == Self::Xavier { Ok(()) } else { Err(Failure::new(Exit::Usage, why)) }
    }
}

/// What all commands but `compare` are run with.
#[derive(clap::Args)]
struct Where {
    /// Where work is done.
    #[arg(long, value_enum, default_value_t = Platform::Xavier)]
    platform: Platform,
    /// Who decides how often: C1, once for both steps of a packet; C2, for each step. Default: C1.
    #[arg(long, value_enum, value_name = "C1|C2")]
    config: Option<Configuration>,
    /// A file that says it all: packets, workers, rings, batches, faults; options come over it.
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
}

#[derive(clap::Args)]
struct RunArgs {
    #[command(flatten)]
    at: Where,
    /// Which: round-robin, static, q-learning or adaptive. Default: adaptive.
    #[arg(long, value_name = "NAME")]
    scheduler: Option<String>,
    /// What comes. Default: low.
    #[arg(long, value_enum, conflicts_with = "trace")]
    test: Option<Named>,
    /// What comes, as a file: `SECOND RATE` in each line, or `micros,kind,flow,octets` of each packet below these words.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Seconds in which packets come. Default: 60, or those of the trace.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: Option<u32>,
    /// What chance begins with.
    #[arg(long, value_name = "N")]
    seed: Option<u32>,
    /// What q-learning has learned; without it, it is trained first.
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// Tell each second, too.
    #[arg(long)]
    per_second: bool,
    /// Write each second as CSV (`-`: to standard output, instead of tables).
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write the result as JSON, with each second (`-`: to standard output, instead of tables).
    #[arg(long, value_name = "FILE", conflicts_with = "csv")]
    json: Option<PathBuf>,
    /// Write down the packets that came, as a trace that can be replayed.
    #[arg(long, value_name = "FILE")]
    write_trace: Option<PathBuf>,
}

#[derive(clap::Args)]
struct TrainArgs {
    #[command(flatten)]
    at: Where,
    /// Where to.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Seconds of the random trace.
    #[arg(long, value_name = "N", default_value_t = run::TRAINING, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// What chance begins with.
    #[arg(long, value_name = "N")]
    seed: Option<u32>,
}

#[derive(clap::Args)]
struct CalibrateArgs {
    #[command(flatten)]
    at: Where,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl From<RunError> for Failure {
    /// There is no such scheduler, or what it learned is for something else: nothing was tried. Or this machine gives no threads.
    fn from(error: RunError) -> Self {
        let exit = if matches!(error, RunError::Host(_)) { Exit::Failed } else { Exit::Usage };
        Self::new(exit, error)
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Run(args) => run_one(args),
        Command::Compare(args) => compare::run(args),
        Command::Train(args) => train(args),
        Command::Calibrate(args) => calibrate(args),
    }
}

fn run_one(args: &RunArgs) -> Result<(), Failure> {
    if args.at.platform == Platform::Host {
        return run_here(args);
    }
    let Chosen { scheduler, test, mut settings } = Chosen::of(
        args.at.scenario.as_deref(),
        &What {
            scheduler: args.scheduler.as_deref(),
            config: args.at.config,
            test: args.test,
            trace: args.trace.as_deref(),
            seconds: args.seconds,
            seed: args.seed,
        },
    )?;
    if let Some(path) = &args.table {
        settings.learned = Some(table(path)?);
    }
    for path in [&args.csv, &args.json, &args.write_trace].into_iter().flatten() {
        output::check_writable(path)?;
    }
    if let Some(path) = &args.write_trace {
        write_trace(&settings, path)?;
    }
    let mut working = Working::start()?;
    working.screen.tell(&format!("running {scheduler}"));
    let outcome = simulate(&scheduler, &settings);
    working.end();
    show(args, &test, &outcome?)
}

/// Seconds of a run on this machine.
const SECONDS_HERE: u32 = 10;

/// On this machine: a test of the thesis, scaled to it.
fn run_here(args: &RunArgs) -> Result<(), Failure> {
    let usage = |why: &str| Failure::new(Exit::Usage, why.to_owned());
    let is_of_the_other =
        [&args.at.scenario, &args.trace, &args.table, &args.write_trace].into_iter().any(Option::is_some);
    if is_of_the_other || args.seed.is_some() {
        return Err(usage(
            "--platform host takes no --scenario, --trace, --table, --write-trace or --seed: they describe the simulated machine",
        ));
    }
    let what = What {
        scheduler: args.scheduler.as_deref(),
        config: args.at.config,
        test: args.test,
        ..What::default()
    };
    let Chosen { scheduler, test, settings } = Chosen::of(None, &what)?;
    let of_the_thesis = args.test.unwrap_or(Named::Low).test();
    let named = of_the_thesis
        .ok_or_else(|| usage("--platform host has the tests low, medium, stress and standard"))?;
    for path in [&args.csv, &args.json].into_iter().flatten() {
        output::check_writable(path)?;
    }
    let host = host::Settings::default();
    let mut working = Working::start()?;
    working.screen.tell("measuring this machine");
    let outcome = Scale::measured(&host).map_err(RunError::from).and_then(|scale| {
        let test = scale.test(named, settings.chain(), args.seconds.unwrap_or(SECONDS_HERE));
        working.screen.tell(&format!("running {scheduler}, after what it has to learn"));
        run::run_on_host(&scheduler, &HostSettings { test, host })
    });
    working.end();
    show(args, &test, &outcome?)
}

fn show(args: &RunArgs, test: &str, outcome: &Outcome) -> Result<(), Failure> {
    let is_stdout = |path: &Option<PathBuf>| path.as_deref().is_some_and(output::is_stdout);
    if let Some(path) = &args.csv {
        output::written(&told::csv(args.at.platform.machine(), outcome), path)?;
    }
    if let Some(path) = &args.json {
        output::report(&Told::of(args.at.platform, test, outcome), path)?;
    }
    if is_stdout(&args.csv) || is_stdout(&args.json) {
        return Ok(());
    }
    let mut shown = tables::of_run(args.at.platform.machine(), outcome);
    if args.per_second {
        shown.push(tables::per_second(args.at.platform.machine(), outcome));
    }
    let text = shown.iter().map(tables::Table::text).collect::<Vec<_>>().join("\n");
    output::text(&format!("test: {test}\n{text}"))
}

fn write_trace(settings: &Settings, path: &Path) -> Result<(), Failure> {
    let trace = accel::sched::trace::Trace::record(&settings.traffic, settings.seconds);
    let endless = "in the stress test packets come as they are taken: there is no trace of that";
    let trace = trace.ok_or_else(|| Failure::new(Exit::Usage, endless))?;
    output::written(&trace.text(), path)
}

/// What q-learning has learned, from a file.
fn table(path: &Path) -> Result<Table, Failure> {
    let text = text_of(path, MOST_TABLE)?;
    let wrong = |error| Failure::new(Exit::Usage, format!("{}: {error}", path.display()));
    Table::read(&text).map_err(wrong)
}

/// Octets of a q-table's file, at most.
const MOST_TABLE: usize = 4 << 20;

/// A file's text, of so many octets at most.
fn text_of(path: &Path, most: usize) -> Result<String, Failure> {
    let wrong = |why: String| Failure::new(Exit::Usage, format!("can't read {}: {why}", path.display()));
    let file = std::fs::File::open(path).map_err(|error| wrong(error.to_string()))?;
    let mut text = String::new();
    let read = file.take(most as u64 + 1).read_to_string(&mut text);
    read.map_err(|error| wrong(error.to_string()))?;
    if text.len() > most {
        return Err(wrong(format!("it has more than {most} octets")));
    }
    Ok(text)
}

fn train(args: &TrainArgs) -> Result<(), Failure> {
    args.at.platform.is_simulated("train")?;
    let what = What { config: args.at.config, seed: args.seed, ..What::default() };
    let Chosen { settings, .. } = Chosen::of(args.at.scenario.as_deref(), &what)?;
    output::check_writable(&args.out)?;
    let mut working = Working::start()?;
    working.screen.tell(&format!("training q-learning for {}", settings.chain().name()));
    let table = run::train(&settings, args.seconds);
    working.end();
    if !table.is_trained() {
        let why = "nothing was learned: that takes more packets, so try more --seconds";
        return Err(Failure::new(Exit::Failed, why));
    }
    output::written(&table.text(), &args.out)
}

fn calibrate(args: &CalibrateArgs) -> Result<(), Failure> {
    args.at.platform.is_simulated("calibrate")?;
    let what = What { config: args.at.config, ..What::default() };
    let Chosen { settings, .. } = Chosen::of(args.at.scenario.as_deref(), &what)?;
    let mut working = Working::start()?;
    working.screen.tell("measuring each worker alone");
    let measured = run::measure(&settings);
    working.end();
    let calibrated = Calibrated::of(args.at.platform.name(), &measured);
    if args.json { output::json(&calibrated) } else { output::text(&calibrated.table().text()) }
}

/// Work that Ctrl-C ends wherever it is, and what it shows.
struct Working {
    screen: Screen,
    ended: Ended,
}

impl Working {
    fn start() -> Result<Self, Failure> {
        let last_words = || {
            screen::clear();
            crate::report::print(&Failure::new(Exit::Interrupted, "interrupted before there was a result"));
        };
        Ok(Self { ended: signals::end_with(last_words)?, screen: Screen::new() })
    }

    fn end(&mut self) {
        self.screen.clear();
        self.ended.not_any_more();
    }
}

impl Progress for Working {
    fn tell(&mut self, what: &str) {
        self.screen.tell(what);
    }

    fn part(&mut self, done: u64, of: u64) {
        self.screen.part(done, of);
    }

    fn keep(&mut self, _: &Report) {}
}

/// The configuration that an argument names.
fn chain(configuration: Configuration) -> Chain {
    match configuration {
        Configuration::C1 => Chain::Once,
        Configuration::C2 => Chain::EachStep,
    }
}
