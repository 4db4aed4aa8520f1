//! `millrace bench`: measure on this machine.

use crate::exit::{Exit, Failure};
use crate::screen::{self, Screen};
use crate::signals::{self, Ended};
use crate::{output, report};
use bench::buffers::{self, BuffersConfig};
use bench::chart::{Figure, Illustrated};
use bench::control_queue::{self, ControlConfig};
use bench::crew::CrewError;
use bench::device_lookups::{self, DeviceLookupsConfig};
use bench::dpi::{self, DpiConfig};
use bench::flood::{self, FloodConfig};
use bench::flows::{self, FlowsConfig};
use bench::forward::{self, ForwardConfig};
use bench::inspection::{self, InspectionConfig, Part};
use bench::jitter::Fitness;
use bench::lookups::{self, LookupConfig, LookupError};
use bench::meters::{self, MetersConfig};
use bench::mirror::{self, MirrorConfig};
use bench::n4::{self, N4Config};
use bench::nat::{self, NatConfig};
use bench::ndr::{self, NdrConfig};
use bench::offload::{self, OffloadConfig};
use bench::pdr_scan::{self, PdrScanConfig};
use bench::port::{self, IoConfig};
use bench::profiles::{self, ProfilesConfig};
use bench::radio::bler::{self, BlerConfig};
use bench::radio::ldpc::{self, LdpcConfig};
use bench::radio::nea2::{self, Nea2Config};
use bench::radio::peer::Peer;
#[cfg(feature = "dpdk")]
use bench::radio::peer::{self, RoundKeys};
use bench::readers::{self, ReadersConfig};
use bench::restart::{self, RestartConfig};
use bench::scene::Scene;
use bench::sched::{self, SchedConfig};
use bench::{Progress, Report, compose, seeds};
#[cfg(feature = "dpdk")]
use dpdk::ipsec_mb::CounterKey;
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
    /// Numbers of sessions, instead of the scenario's own (`forward`, `n4`, `restart`, `meters`; the first one: `control`,
    /// `offload`).
    #[arg(long, value_delimiter = ',', value_name = "N,N,...")]
    sessions: Vec<u32>,
    /// Numbers of flows, instead of the scenario's own (`flow-table`, `flow-insert`;
    /// the first one: `profiles`, `ndr`, `flood`, `inspection`).
    #[arg(long, value_delimiter = ',', value_name = "N,N,...")]
    flows: Vec<u32>,
    /// One gNB, router and server, and few buffers that stay in the core's cache, as figures were until 2026-11-22 (`forward`,
    /// `flow-table`, `flow-insert`, `profiles`, `ndr`, `inspection`; all others always).
    #[arg(long)]
    simple: bool,
    /// Servers on N6's own link, instead of behind routers (`forward`, `flow-table`, `flow-insert`, `profiles`, `ndr`, `inspection`).
    #[arg(long)]
    on_link: bool,
    /// Instead of all requests: what is left of establishments while so many clients ask all questions of the control socket and half a
    /// worker's load is forwarded, beside the same without clients (`n4`).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=api::MAX_CONNECTIONS as i64))]
    readers: Option<u16>,
    /// Some of the questions only, instead of all (`inspection`).
    #[arg(long, value_delimiter = ',', value_name = "PART,PART,...")]
    part: Vec<InspectionPart>,
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

/// The questions of `inspection`.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum InspectionPart {
    /// What known flows lose.
    Known,
    /// What whole flows lose.
    Whole,
    /// How many new flows a worker takes beside known ones.
    New,
}

impl From<InspectionPart> for Part {
    fn from(part: InspectionPart) -> Self {
        match part {
            InspectionPart::Known => Self::Known,
            InspectionPart::Whole => Self::Whole,
            InspectionPart::New => Self::New,
        }
    }
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
    /// Sessions written to a file, and restored by another UPF.
    Restart,
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
    /// What it costs or brings that bursts wait for a device which looks up their sessions, by latency.
    DeviceLookups,
    /// Inspection: nanoseconds per packet of five mixes of applications, microseconds per flow, new flows per second.
    Dpi,
    /// The packet path with and without inspection: known flows, whole flows, and as many new flows as a worker takes beside them.
    Inspection,
    /// Keys hashed per second, by hashes a packet and processor.
    Hash,
    /// Random places of a large memory read per second: the limit of all look-ups.
    RandomAccess,
    /// MAC addresses looked up per second, beside DPDK's `rte_hash`.
    L2,
    /// IPv4 5-tuples looked up and inserted per second, beside DPDK's `rte_hash`.
    Flow4,
    /// Likewise IPv6 5-tuples.
    Flow6,
    /// IPv4 routes looked up per second in a full table, beside DPDK's `rte_lpm` and `rte_fib`.
    Lpm4,
    /// Likewise IPv6 routes, beside `rte_lpm6` and `rte_fib6`.
    Lpm6,
    /// NEA2: bits ciphered per second, by size of packets, beside intel-ipsec-mb where it is installed.
    Nea2,
    /// NR LDPC: bits encoded and decoded per second, by rate, iterations, processor and size of packets.
    Ldpc,
    /// NR LDPC: blocks lost to noise, beside belief propagation in floating point (half an hour; `--quick`: a minute).
    LdpcBler,
    /// Schedulers for cores and an accelerator, on the simulated machine of the thesis whose tests these are; each of its figures beside.
    Sched,
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
    /// A batch's way to a device and back: the processor, threads, a GPU, by how many are under way.
    Buffers,
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
        output::check_writable(path)?;
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
    let mut this = Measuring { quick: args.quick, clock, progress };
    match args.scenario {
        Scenario::PayloadSize => this.illustrated(seeds::Scenario::PayloadSize, figure),
        Scenario::Sessions => this.illustrated(seeds::Scenario::Sessions, figure),
        Scenario::Cores => this.illustrated(seeds::Scenario::Cores, figure),
        Scenario::Skew => this.illustrated(seeds::Scenario::Skew, figure),
        Scenario::Scale => this.illustrated(seeds::Scenario::Scale, figure),
        Scenario::Moves => this.illustrated(seeds::Scenario::Moves, figure),
        Scenario::HandOff => this.illustrated(seeds::Scenario::HandOff, figure),
        Scenario::Sched => {
            let config = if args.quick { SchedConfig::quick() } else { SchedConfig::full() };
            let found = sched::run(&config, clock, this.progress).map_err(|error| failed(&error))?;
            *figure = Some(found.figure);
            Ok(found.report)
        }
        Scenario::Seeds => Err(failed(&"seeds is many scenarios")),
        Scenario::Io => this.with([IoConfig::quick, IoConfig::full], |_| {}, port::run),
        Scenario::Forward => {
            let change = |config: &mut ForwardConfig| {
                replace(&mut config.sessions, &args.sessions);
                args.change(&mut config.scenes);
            };
            this.with([ForwardConfig::quick, ForwardConfig::full], change, forward::run)
        }
        Scenario::N4 if args.readers.is_some() => {
            let change = |config: &mut ReadersConfig| {
                replace(&mut config.kept, &args.sessions);
                args.readers.iter().for_each(|readers| config.readers = *readers);
            };
            this.with([ReadersConfig::quick, ReadersConfig::full], change, readers::run)
        }
        Scenario::N4 => {
            let change = |config: &mut N4Config| replace(&mut config.kept, &args.sessions);
            this.with([N4Config::quick, N4Config::full], change, n4::run)
        }
        Scenario::Restart => {
            let change = |config: &mut RestartConfig| replace(&mut config.sessions, &args.sessions);
            this.with([RestartConfig::quick, RestartConfig::full], change, restart::run)
        }
        Scenario::Control => {
            let change = |config: &mut ControlConfig| replace_one(&mut config.sessions, &args.sessions);
            this.with([ControlConfig::quick, ControlConfig::full], change, control_queue::run)
        }
        Scenario::Meters => {
            let change = |config: &mut MetersConfig| replace(&mut config.sessions, &args.sessions);
            this.with([MetersConfig::quick, MetersConfig::full], change, meters::run)
        }
        Scenario::Mirror => this.with([MirrorConfig::quick, MirrorConfig::full], |_| {}, mirror::run),
        Scenario::FlowTable | Scenario::FlowInsert => {
            let change = |config: &mut FlowsConfig| {
                replace(&mut config.flows, &args.flows);
                args.change(&mut config.scenes);
            };
            let run = if args.scenario == Scenario::FlowTable { flows::run_table } else { flows::run_insert };
            this.with([FlowsConfig::quick, FlowsConfig::full], change, run)
        }
        Scenario::Profiles => {
            let change = |config: &mut ProfilesConfig| {
                replace_one(&mut config.flows, &args.flows);
                args.change(&mut config.scenes);
            };
            this.with([ProfilesConfig::quick, ProfilesConfig::full], change, profiles::run)
        }
        Scenario::Ndr => {
            let change = |config: &mut NdrConfig| {
                replace_one(&mut config.flows, &args.flows);
                args.change(&mut config.scenes);
            };
            this.with([NdrConfig::quick, NdrConfig::full], change, ndr::run)
        }
        Scenario::Flood => {
            let change = |config: &mut FloodConfig| replace_one(&mut config.flows, &args.flows);
            this.with([FloodConfig::quick, FloodConfig::full], change, flood::run)
        }
        Scenario::PdrScan => this.with([PdrScanConfig::quick, PdrScanConfig::full], |_| {}, pdr_scan::run),
        Scenario::Offload => {
            let change = |config: &mut OffloadConfig| replace_one(&mut config.sessions, &args.sessions);
            this.with([OffloadConfig::quick, OffloadConfig::full], change, offload::run)
        }
        Scenario::DeviceLookups => {
            let change = |config: &mut DeviceLookupsConfig| replace(&mut config.sessions, &args.sessions);
            this.with([DeviceLookupsConfig::quick, DeviceLookupsConfig::full], change, device_lookups::run)
        }
        Scenario::Dpi => this.with([DpiConfig::quick, DpiConfig::full], |_| {}, dpi::run),
        Scenario::Inspection => {
            let change = |config: &mut InspectionConfig| {
                replace_one(&mut config.flows, &args.flows);
                if !args.part.is_empty() {
                    config.parts = args.part.iter().copied().map(Part::from).collect();
                }
                args.change(&mut config.scenes);
            };
            this.with([InspectionConfig::quick, InspectionConfig::full], change, inspection::run)
        }
        Scenario::Hash => this.lookups(lookups::hash::run),
        Scenario::RandomAccess => this.lookups(lookups::random::run),
        Scenario::L2 => this.lookups(lookups::link::run),
        Scenario::Flow4 => this.lookups(lookups::flows::run4),
        Scenario::Flow6 => this.lookups(lookups::flows::run6),
        Scenario::Lpm4 => this.lookups(lookups::lpm::run4),
        Scenario::Lpm6 => this.lookups(lookups::lpm::run6),
        Scenario::Nea2 => {
            let change = |config: &mut Nea2Config| config.peer = ipsec_mb;
            this.with([Nea2Config::quick, Nea2Config::full], change, nea2::run)
        }
        Scenario::Ldpc => this.with([LdpcConfig::quick, LdpcConfig::full], |_| {}, ldpc::run),
        Scenario::LdpcBler => this.with([BlerConfig::quick, BlerConfig::full], |_| {}, bler::run),
        Scenario::Buffers => this.with([BuffersConfig::quick, BuffersConfig::full], |_| {}, buffers::run),
        Scenario::Nat => this.with([NatConfig::quick, NatConfig::full], |_| {}, nat::run),
    }
}

/// intel-ipsec-mb, where it is installed.
#[cfg(feature = "dpdk")]
fn ipsec_mb() -> Result<Box<dyn Peer>, String> {
    struct IpsecMb(dpdk::ipsec_mb::IpsecMb);

    impl Peer for IpsecMb {
        fn name(&self) -> &'static str {
            "ipsec-mb"
        }

        fn version(&self) -> String {
            self.0.version()
        }

        fn expand(&self, key: &[u8; 16]) -> RoundKeys {
            RoundKeys(self.0.expand(key))
        }

        fn apply(&mut self, packets: &mut [peer::Packet<'_>], expanded: bool) -> bool {
            self.0.counter_mode(packets.iter_mut().map(|packet| {
                let key = if expanded {
                    CounterKey::Expanded(&packet.round_keys.0)
                } else {
                    CounterKey::Fresh(packet.key)
                };
                (key, packet.counter, &mut *packet.data)
            }))
        }
    }

    match dpdk::ipsec_mb::IpsecMb::load() {
        Ok(loaded) => Ok(Box::new(IpsecMb(loaded))),
        Err(why) => Err(why.to_string()),
    }
}

/// The crate that loads it belongs to DPDK.
#[cfg(not(feature = "dpdk"))]
fn ipsec_mb() -> Result<Box<dyn Peer>, String> {
    Err("this program was built without DPDK".into())
}

/// What all scenarios take.
struct Measuring<'a> {
    quick: bool,
    clock: Tsc,
    progress: &'a mut dyn Progress,
}

impl Measuring<'_> {
    /// With a scenario's own settings, the `quick` or the `full` ones, and what the arguments change of them.
    fn with<C, E: std::fmt::Display>(
        &mut self,
        [quick, full]: [fn() -> C; 2],
        change: impl FnOnce(&mut C),
        run: fn(&C, Tsc, &mut dyn Progress) -> Result<Report, E>,
    ) -> Result<Report, Failure> {
        let mut config = if self.quick { quick() } else { full() };
        change(&mut config);
        run(&config, self.clock, self.progress).map_err(|error| failed(&error))
    }

    /// One of the look-ups.
    fn lookups(
        &mut self,
        run: fn(&LookupConfig, Tsc, &mut dyn Progress) -> Result<Report, LookupError>,
    ) -> Result<Report, Failure> {
        self.with([LookupConfig::quick, LookupConfig::full], |_| {}, run)
    }

    /// One with a picture of its own.
    fn illustrated(
        &mut self,
        scenario: seeds::Scenario,
        figure: &mut Option<Figure>,
    ) -> Result<Report, Failure> {
        let found = scenario.run(self.quick, self.clock, self.progress).map_err(|error| failed(&error))?;
        *figure = Some(found.figure);
        Ok(found.report)
    }
}

/// Numbers of the command line instead of the scenario's own, if there are any.
fn replace<T: TryFrom<u32>>(own: &mut Vec<T>, given: &[u32]) {
    if !given.is_empty() {
        *own = given.iter().filter_map(|&number| T::try_from(number).ok()).collect();
    }
}

/// The first of them, where a scenario takes one.
fn replace_one<T: TryFrom<u32>>(own: &mut T, given: &[u32]) {
    if let Some(number) = given.first().and_then(|&number| T::try_from(number).ok()) {
        *own = number;
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
            let own = matches!(scenario, Scenario::Seeds | Scenario::Sched)
                || seeds::Scenario::ALL.iter().any(|own| own.name() == name);
            assert!(own != compose::has_figure(&name), "{name}");
        }
    }

    #[test]
    fn what_is_given_replaces_the_scenario_s_own_and_nothing_else_does() {
        let (mut all, mut one) = (vec![7_usize], 7_u32);
        replace(&mut all, &[]);
        replace_one(&mut one, &[]);
        assert_eq!((&all[..], one), (&[7][..], 7));
        replace(&mut all, &[1, 2]);
        replace_one(&mut one, &[1, 2]);
        assert_eq!((&all[..], one), (&[1, 2][..], 1));
    }

    #[test]
    fn a_scenario_is_run_with_quick_or_full_settings_as_they_were_changed() {
        use crate::exit::Why;
        struct Silent;
        impl Progress for Silent {
            fn tell(&mut self, _: &str) {}
            fn part(&mut self, _: u64, _: u64) {}
            fn keep(&mut self, _: &Report) {}
        }
        for (quick, expected) in [(true, "2"), (false, "20")] {
            let mut measuring = Measuring { quick, clock: Tsc::process(), progress: &mut Silent };
            // What it ran with is what it fails with.
            let run = |config: &u32, _: Tsc, _: &mut dyn Progress| Err(config.to_string());
            let failure = measuring.with([|| 1, || 10], |config| *config *= 2, run).unwrap_err();
            assert!(matches!(failure.why, Why::Sentence(said) if said == expected));
        }
    }
}
