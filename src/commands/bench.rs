//! `millrace bench`: measure on this machine.

use crate::exit::{Exit, Failure};
use crate::screen::{self, Screen};
use crate::signals::{self, Ended};
use crate::{output, report};
use bench::chart::{Figure, Illustrated};
use bench::crew::CrewError;
use bench::jitter::Fitness;
use bench::scene::Scene;
use bench::{
    Progress, Report, compose, control_queue, flood, flows, forward, meters, mirror, n4, nat, ndr, offload,
    pdr_scan, port, profiles, seeds,
};
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tables::clock::Tsc;

/// Arguments of `bench`.
#[derive(clap::Args)]
pub struct Args {
    /// What to measure.
    scenario: Scenario,
    /// Fewer and shorter runs: a few seconds to two minutes, by scenario; `seeds` takes a few minutes.
    #[arg(long)]
    quick: bool,
    /// Numbers of sessions, instead of the scenario's own (`forward`, `n4`, `meters`; the first one: `control`,
    /// `offload`).
    #[arg(long, value_delimiter = ',', value_name = "N,N,...")]
    sessions: Vec<u32>,
    /// Numbers of flows, instead of the scenario's own (`flow-table`, `flow-insert`;
    /// the first one: `profiles`, `ndr`, `flood`).
    #[arg(long, value_delimiter = ',', value_name = "N,N,...")]
    flows: Vec<u32>,
    /// One gNB, router and server, and few buffers that stay in the core's cache, as figures were until 2026-11-22 (`forward`,
    /// `flow-table`, `flow-insert`, `profiles`, `ndr`; all others always).
    #[arg(long)]
    simple: bool,
    /// Servers on N6's own link, instead of behind routers (`forward`, `flow-table`, `flow-insert`, `profiles`, `ndr`).
    #[arg(long)]
    on_link: bool,
    /// Write the result as JSON (`-`: to standard output, instead of the table).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw the result (`seeds` draws all of its own into `--out`).
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Where `seeds` writes its page and files.
    #[arg(long, value_name = "DIR", required_if_eq("scenario", "seeds"))]
    out: Option<PathBuf>,
}

/// The scenarios.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Scenario {
    /// A port's own cost, by payload.
    Io,
    /// The packet path on one core, by direction and number of sessions.
    Forward,
    /// Session requests per second over N4, and memory per session.
    N4,
    /// The packet path where sessions are classified flow by flow, by direction, number of flows and distribution.
    FlowTable,
    /// Flows entered and deleted per second, and the longest stall.
    FlowInsert,
    /// Echo requests that are answered while twice as much traffic comes as can be served.
    Control,
    /// Six profiles of packet sizes, as a share of a 100 Gbit/s line.
    Profiles,
    /// The highest rate without loss for the profiles, and latency at parts of it.
    Ndr,
    /// Established flows beside a flood of flows that never repeat.
    Flood,
    /// Classification, by the number of PDRs and filters.
    PdrScan,
    /// The packet path with meters of every kind, from one session to a million meters.
    Meters,
    /// The packet path with copies of packets, by direction, target and sampling.
    Mirror,
    /// The packet path with and without translation on N6, by direction and number of mappings; mappings made per second.
    Nat,
    /// What an in-memory NIC's flow table takes off a worker's hands: share, cycles, time until a flow is in it.
    Offload,
    /// Run-to-completion and pipeline: packets per second by payload.
    PayloadSize,
    /// Likewise by number of sessions.
    Sessions,
    /// Likewise by number of workers, beside as many independent copies.
    Cores,
    /// One worker's load stepped up: received, sent, dropped and late over time.
    Skew,
    /// A worker joins and leaves while packets come: throughput and latency over time.
    Scale,
    /// Shards move between busy workers all the time: how long their packets wait, and what others notice.
    Moves,
    /// Packets that come to another worker than their owner, by their share.
    HandOff,
    /// The last ones, from `payload-size` on, one after the other, as one page (`--out`).
    Seeds,
}

impl Args {
    /// Where to measure, if that was said.
    fn change(&self, scenes: &mut Vec<Scene>) {
        if self.simple {
            *scenes = vec![Scene::SIMPLE];
        }
        if self.on_link {
            scenes.iter_mut().for_each(|scene| *scene = scene.on_link());
        }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    // Not after what may take minutes.
    for path in args.json.iter().filter(|path| !output::is_stdout(path)).chain(&args.svg) {
        check_writable(path)?;
    }
    if args.scenario == Scenario::Seeds && args.svg.is_some() {
        return Err(Failure::new(Exit::Usage, "seeds draws a picture of each scenario into --out"));
    }
    let kept = Arc::new(Kept::default());
    let last = (kept.clone(), args.json.clone(), args.svg.clone(), args.out.clone());
    let ended = signals::end_with(move || {
        last.0.last_words(last.1.as_deref(), last.2.as_deref(), last.3.as_deref())
    })?;
    let mut shown = Shown { screen: Screen::new(), before: String::new(), kept };
    let clock = Tsc::process();
    if args.scenario == Scenario::Seeds {
        let out = args.out.as_ref().ok_or_else(|| failed(&"say where to with --out"))?;
        return run_seeds(args.quick, out, clock, &mut shown, &ended);
    }
    let mut figure = None;
    let outcome = measure(args, clock, &mut shown, &mut figure);
    shown.screen.clear();
    ended.not_any_more();
    let report = outcome?;
    tell(&report, args.json.as_deref())?;
    args.svg.as_ref().map_or(Ok(()), |path| draw(&report, figure, path))
}

/// Draws a report: its scenario's own figure, or what is composed of its results.
fn draw(report: &Report, own: Option<Figure>, path: &Path) -> Result<(), Failure> {
    own.unwrap_or_else(|| compose::figure(report)).write(path).map_err(|error| failed(&error))
}

/// Tells what was measured: to people, or as JSON.
fn tell(report: &Report, json: Option<&Path>) -> Result<(), Failure> {
    if !json.is_some_and(output::is_stdout) {
        output::text(&report.to_string())?;
    }
    json.map_or(Ok(()), |path| output::report(report, path))
}

/// Measures one scenario; its picture, if it has one of its own, goes into `figure`.
fn measure(
    args: &Args,
    clock: Tsc,
    progress: &mut dyn Progress,
    figure: &mut Option<Figure>,
) -> Result<Report, Failure> {
    let mut own_figure = |scenario: seeds::Scenario| {
        let found = scenario.run(args.quick, clock, progress).map_err(|error| failed(&error))?;
        *figure = Some(found.figure);
        Ok(found.report)
    };
    match args.scenario {
        Scenario::PayloadSize => own_figure(seeds::Scenario::PayloadSize),
        Scenario::Sessions => own_figure(seeds::Scenario::Sessions),
        Scenario::Cores => own_figure(seeds::Scenario::Cores),
        Scenario::Skew => own_figure(seeds::Scenario::Skew),
        Scenario::Scale => own_figure(seeds::Scenario::Scale),
        Scenario::Moves => own_figure(seeds::Scenario::Moves),
        Scenario::HandOff => own_figure(seeds::Scenario::HandOff),
        Scenario::Seeds => Err(failed(&"seeds is many scenarios")),
        Scenario::Io => {
            let config = if args.quick { port::IoConfig::quick() } else { port::IoConfig::full() };
            port::run(&config, clock, progress).map_err(|error| failed(&error))
        }
        Scenario::Forward => {
            let mut config =
                if args.quick { forward::ForwardConfig::quick() } else { forward::ForwardConfig::full() };
            if !args.sessions.is_empty() {
                config.sessions = args.sessions.iter().map(|&sessions| sessions as usize).collect();
            }
            args.change(&mut config.scenes);
            forward::run(&config, clock, progress).map_err(|error| failed(&error))
        }
        Scenario::N4 => {
            let mut config = if args.quick { n4::N4Config::quick() } else { n4::N4Config::full() };
            if !args.sessions.is_empty() {
                config.kept.clone_from(&args.sessions);
            }
            n4::run(&config, clock, progress).map_err(|error| failed(&error))
        }
        Scenario::Control => {
            let mut config = if args.quick {
                control_queue::ControlConfig::quick()
            } else {
                control_queue::ControlConfig::full()
            };
            if let Some(&sessions) = args.sessions.first() {
                config.sessions = sessions;
            }
            control_queue::run(&config, clock, progress).map_err(|error| failed(&error))
        }
        Scenario::Meters => {
            let mut config =
                if args.quick { meters::MetersConfig::quick() } else { meters::MetersConfig::full() };
            if !args.sessions.is_empty() {
                config.sessions = args.sessions.iter().map(|&sessions| sessions as usize).collect();
            }
            meters::run(&config, clock, progress).map_err(|error| failed(&error))
        }
        Scenario::Mirror => {
            let config =
                if args.quick { mirror::MirrorConfig::quick() } else { mirror::MirrorConfig::full() };
            mirror::run(&config, clock, progress).map_err(|error| failed(&error))
        }
        Scenario::FlowTable | Scenario::FlowInsert => {
            let mut config =
                if args.quick { flows::FlowsConfig::quick() } else { flows::FlowsConfig::full() };
            if !args.flows.is_empty() {
                config.flows = args.flows.iter().map(|&flows| flows as usize).collect();
            }
            args.change(&mut config.scenes);
            let run = if args.scenario == Scenario::FlowTable { flows::run_table } else { flows::run_insert };
            run(&config, clock, progress).map_err(|error| failed(&error))
        }
        Scenario::Profiles => {
            let mut config =
                if args.quick { profiles::ProfilesConfig::quick() } else { profiles::ProfilesConfig::full() };
            if let Some(&flows) = args.flows.first() {
                config.flows = flows as usize;
            }
            args.change(&mut config.scenes);
            profiles::run(&config, clock, progress).map_err(|error| failed(&error))
        }
        Scenario::Ndr => {
            let mut config = if args.quick { ndr::NdrConfig::quick() } else { ndr::NdrConfig::full() };
            if let Some(&flows) = args.flows.first() {
                config.flows = flows as usize;
            }
            args.change(&mut config.scenes);
            ndr::run(&config, clock, progress).map_err(|error| failed(&error))
        }
        Scenario::Flood => {
            let mut config =
                if args.quick { flood::FloodConfig::quick() } else { flood::FloodConfig::full() };
            if let Some(&flows) = args.flows.first() {
                config.flows = flows as usize;
            }
            flood::run(&config, clock, progress).map_err(|error| failed(&error))
        }
        Scenario::PdrScan => {
            let config =
                if args.quick { pdr_scan::PdrScanConfig::quick() } else { pdr_scan::PdrScanConfig::full() };
            pdr_scan::run(&config, clock, progress).map_err(|error| failed(&error))
        }
        Scenario::Offload => {
            let mut config =
                if args.quick { offload::OffloadConfig::quick() } else { offload::OffloadConfig::full() };
            if let Some(&sessions) = args.sessions.first() {
                config.sessions = sessions as usize;
            }
            offload::run(&config, clock, progress).map_err(|error| failed(&error))
        }
        Scenario::Nat => {
            let config = if args.quick { nat::NatConfig::quick() } else { nat::NatConfig::full() };
            nat::run(&config, clock, progress).map_err(|error| failed(&error))
        }
    }
}

/// Measures the scenarios of the seeds, and says which one it is at.
struct Seeds<'a> {
    shown: &'a mut Shown,
    quick: bool,
    clock: Tsc,
    number: usize,
}

impl Seeds<'_> {
    /// How long the machine is watched before and after each.
    const WATCHED: f64 = 0.5;
}

impl seeds::Runner for Seeds<'_> {
    fn fitness(&mut self) -> Fitness {
        self.shown.before.clear();
        self.shown.tell("what the machine does by itself");
        Fitness::measure(&self.clock, Self::WATCHED)
    }

    fn run(&mut self, scenario: seeds::Scenario) -> Result<Illustrated, CrewError> {
        self.number += 1;
        let all = seeds::Scenario::ALL.len();
        self.shown.before = format!("{} ({} of {all}): ", scenario.name(), self.number);
        scenario.run(self.quick, self.clock, self.shown)
    }
}

/// All scenarios of the seeds, as one page.
fn run_seeds(quick: bool, out: &Path, clock: Tsc, shown: &mut Shown, ended: &Ended) -> Result<(), Failure> {
    let command = std::env::args().collect::<Vec<_>>().join(" ");
    let mut runner = Seeds { shown, quick, clock, number: 0 };
    let summary = seeds::run(out, &command, &mut runner);
    shown.screen.clear();
    ended.not_any_more();
    let summary = summary.map_err(|error| failed(&error))?;
    for found in &summary.found {
        output::text(&found.illustrated.report.to_string())?;
    }
    for claim in summary.claims() {
        output::text(&format!("{claim}\n"))?;
    }
    output::text(&format!("{}\n", page(out).display()))?;
    match summary.failed.first() {
        Some((scenario, error)) => Err(failed(&format!("{scenario}: {error}"))),
        None => Ok(()),
    }
}

/// The page of `seeds`.
fn page(out: &Path) -> PathBuf {
    out.join("index.html")
}

/// What has been found so far.
#[derive(Default)]
struct Kept(Mutex<Findings>);

/// Of each scenario what was said last, and the picture of the one that is measured, if it draws its own.
#[derive(Default)]
struct Findings {
    reports: Vec<Report>,
    figure: Option<Figure>,
}

impl Kept {
    fn findings(&self) -> MutexGuard<'_, Findings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, report: &Report) {
        let reports = &mut self.findings().reports;
        match reports.iter_mut().find(|kept| kept.scenario == report.scenario) {
            Some(kept) => *kept = report.clone(),
            None => reports.push(report.clone()),
        }
    }

    /// What is told when a signal ends it all.
    fn last_words(&self, json: Option<&Path>, svg: Option<&Path>, out: Option<&Path>) {
        screen::clear();
        let Findings { mut reports, mut figure } = std::mem::take(&mut *self.findings());
        let why = if reports.is_empty() {
            "interrupted before anything was measured"
        } else {
            "interrupted; this is what was measured until then"
        };
        report::print(&Failure::new(Exit::Interrupted, why));
        for report in &mut reports {
            report.notes.push("interrupted: not everything was measured".into());
            let drawn = svg.map_or(Ok(()), |path| {
                let mut figure = figure.take().unwrap_or_else(|| compose::figure(report));
                figure.title += " (interrupted)";
                draw(report, Some(figure), path)
            });
            for failure in [tell(report, json), drawn].into_iter().filter_map(Result::err) {
                report::print(&failure);
            }
        }
        // It was written after each scenario.
        if let Some(out) = out {
            let _ = output::text(&format!("{}\n", page(out).display()));
        }
    }
}

/// Shows what goes on, and keeps what came of it.
struct Shown {
    screen: Screen,
    /// Said before everything else.
    before: String,
    kept: Arc<Kept>,
}

impl Progress for Shown {
    fn tell(&mut self, what: &str) {
        self.screen.tell(&format!("{}{what}", self.before));
    }

    fn part(&mut self, done: u64, of: u64) {
        self.screen.part(done, of);
    }

    fn keep(&mut self, report: &Report) {
        self.kept.keep(report);
    }

    fn draw(&mut self, figure: Figure) {
        self.kept.findings().figure = Some(figure);
    }
}

/// An error if nothing can be written there. What is there stays as it is.
fn check_writable(path: &Path) -> Result<(), Failure> {
    let is_new = !path.exists();
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| Failure::new(Exit::Usage, format!("can't write {}: {error}", path.display())))?;
    if is_new {
        // It would look like a result.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, error.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_scenario_can_be_drawn() {
        for scenario in Scenario::value_variants() {
            let name = scenario.to_possible_value().unwrap().get_name().to_owned();
            let own =
                *scenario == Scenario::Seeds || seeds::Scenario::ALL.iter().any(|own| own.name() == name);
            assert!(own != compose::has_figure(&name), "{name}");
        }
    }
}
