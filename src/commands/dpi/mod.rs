//! `millrace dpi`: what does this traffic consist of?

mod captures;
mod live;
mod signatures;

use crate::exit::{Exit, Failure};
use crate::output;
use crate::screen::Screen;
use captures::Captures;
use dpi::decode::Mask;
use dpi::signatures::Bundle;
use dpi::{By, Event, Knowledge, Options};
use io::pcap::CaptureError;
use ipnet::IpNet;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use survey::annotate::Annotated;
use survey::explain::{Wanted, explain};
use survey::{Lists, Reading, Report, Survey};

/// Arguments of `dpi`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Captures, pcap or pcapng, one after the other (`-`: standard input).
    #[arg(required_unless_present = "interface", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Inspect what a port receives, until Ctrl-C: a kernel interface (`eth0`), or a device as `millrace run` takes it: a PCI address, or
    /// a DPDK virtual device (`net_af_xdp0,iface=eth0`).
    #[arg(long, short, value_name = "PORT", conflicts_with_all = ["files", "explain", "write"])]
    interface: Option<String>,
    /// End after so many seconds.
    #[arg(long, value_name = "N", requires = "interface", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seconds: Option<u64>,
    /// Seconds between two tables on a terminal, or two lines of JSON.
    #[arg(long, value_name = "N", requires = "interface", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// List each flow, instead of sums.
    #[arg(long)]
    per_flow: bool,
    /// List what was decoded, message by message: requests, answers, hellos, names, calls.
    #[arg(long)]
    messages: bool,
    /// Hide who calls whom: users and numbers become letters, the same ones for the same party in one run.
    #[arg(long)]
    mask: bool,
    /// Lines of each table; `--per-flow` and `--messages` have no limit.
    #[arg(long, default_value_t = 20, value_name = "N")]
    top: usize,
    /// Write JSON, with all lines.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write CSV: messages with `--messages`, flows with `--per-flow`, else protocols.
    #[arg(long)]
    csv: bool,
    /// Say packet by packet why a flow was taken for what it is: its number in `--per-flow`, or its ends
    /// (`10.0.0.1:40000-198.51.100.7:443`).
    #[arg(long, value_name = "FLOW", conflicts_with_all = ["json", "csv", "write"])]
    explain: Option<Wanted>,
    /// Copy the capture into a pcapng file, with verdicts as comments of packets.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Signatures of your own, laid over those that are built in; may be given several times.
    #[arg(long, value_name = "FILE")]
    signatures: Vec<PathBuf>,
    /// Networks that subscribers have, instead of private ones.
    #[arg(long, value_delimiter = ',', value_name = "PREFIX,...")]
    home: Vec<IpNet>,
    /// Tell subscribers apart by the tunnels that their packets come in, not by address.
    #[arg(long)]
    by_tunnel: bool,
}

/// What else can be done.
#[derive(clap::Subcommand)]
pub enum Command {
    /// What applications are found by: check, build, list, test, import.
    Signatures {
        #[command(subcommand)]
        command: signatures::Command,
    },
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    if let Some(Command::Signatures { command }) = &args.command {
        return signatures::run(command);
    }
    let knowledge = Arc::new(Knowledge::new(bundle(&args.signatures)?));
    let options = options(args);
    let lists = Lists { flows: args.per_flow || args.messages, messages: args.messages };
    if let Some(port) = &args.interface {
        return live::run(args, port, options, knowledge, lists);
    }
    if args.mask && args.write.is_some() {
        eprintln!(
            "note: comments are masked, but packets are copied as they are, with all that parties say in them"
        );
    }
    if let Some(wanted) = args.explain {
        return why(args, &options, &knowledge, wanted);
    }
    let (report, failure) = survey(args, &options, &knowledge, lists)?;
    show(args, &report)?;
    failure.map_or(Ok(()), Err)
}

/// The whole result, as it was asked for.
fn show(args: &Args, report: &Report) -> Result<(), Failure> {
    if args.json {
        output::json(report)
    } else if args.csv {
        output::text(&report.csv())
    } else {
        output::text(&report.page(args.top).to_string())
    }
}

fn options(args: &Args) -> Options {
    let home = args.home.iter().filter_map(|it| dpi::track::Prefix::new(it.addr(), it.prefix_len()));
    let mask = args.mask.then(|| Mask::new(RandomState::new().hash_one("mask")));
    let mut options =
        Options { tells_names: true, decodes: true, measures: true, mask, ..Options::default() };
    if !args.home.is_empty() {
        options.home = home.collect();
    }
    if args.by_tunnel {
        options.by = By::Tunnel;
    }
    options
}

/// What is built in, with the user's own over it.
fn bundle(files: &[PathBuf]) -> Result<Arc<Bundle>, Failure> {
    let built_in = Bundle::built_in();
    if files.is_empty() {
        return Ok(built_in);
    }
    let paths: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let built = built_in.with_files(&paths).map_err(|error| Failure::new(Exit::Usage, error))?;
    Ok(Arc::new(built.bundle))
}

/// Reads all captures to their ends. If one breaks off, what was read is reported all the same, and the failure told after it.
fn survey(
    args: &Args,
    options: &Options,
    knowledge: &Arc<Knowledge>,
    lists: Lists,
) -> Result<(Report, Option<Failure>), Failure> {
    let mut survey = Survey::new(Arc::clone(knowledge), lists);
    let mut captures = Captures::open(&args.files)?;
    let Some(first) = captures.next() else { return Err(Failure::new(Exit::Usage, "no capture")) };
    let mut reading = Reading::new(first, options.clone(), Arc::clone(knowledge));
    let mut copy = args.write.as_deref().map(create).transpose()?;
    let mut screen = Screen::new();
    screen.tell("inspecting");
    let mut events: Vec<Event> = Vec::new();
    let failure = loop {
        let next = reading.next(|number, frame, _, inspector| {
            events.extend(std::iter::from_fn(|| inspector.poll()));
            let copied = copy.as_mut().map_or(Ok(()), |copy| copy.write(frame, &events, knowledge));
            (number, copied)
        });
        events.drain(..).for_each(|event| survey.take(event));
        match next {
            Ok(Some((number, copied))) => {
                copied.map_err(|error| not_written(args.write.as_deref(), &error))?;
                if number % 4096 == 0 {
                    screen.part(captures.done.get(), captures.length);
                }
            }
            Ok(None) => match captures.next() {
                Some(capture) => reading.go_on(capture),
                None => break None,
            },
            Err(error) => break Some(not_read(&error)),
        }
    };
    reading.stages().finish(|event| survey.take(event));
    screen.clear();
    if let Some(copy) = copy {
        copy.finish().map_err(|error| not_written(args.write.as_deref(), &error))?;
    }
    let totals = reading.stages().totals();
    Ok((survey.report(totals, reading.inspector()), failure))
}

fn create(path: &Path) -> Result<Annotated<BufWriter<File>>, Failure> {
    let file = File::create(path).and_then(|file| Annotated::new(BufWriter::new(file)));
    file.map_err(|error| not_written(Some(path), &error))
}

fn not_written(path: Option<&Path>, error: &std::io::Error) -> Failure {
    let path = path.map(Path::display);
    Failure::new(Exit::Failed, path.map_or(error.to_string(), |path| format!("can't write {path}: {error}")))
}

fn not_read(error: &CaptureError) -> Failure {
    Failure::new(Exit::Failed, format!("the capture can't be read any further: {error}"))
}

/// Packet by packet, why.
fn why(args: &Args, options: &Options, knowledge: &Arc<Knowledge>, wanted: Wanted) -> Result<(), Failure> {
    let wanted = match wanted {
        Wanted::Number(number) => {
            let (report, _) = survey(args, options, knowledge, Lists { flows: true, messages: false })?;
            let line = report.flows.iter().find(|line| line.flow == number);
            let line = line.ok_or_else(|| {
                let last = report.flows.len();
                Failure::new(
                    Exit::Usage,
                    format!("there is no flow {number}; `--per-flow` lists 1 to {last}"),
                )
            })?;
            Wanted::Between(line.client, line.server)
        }
        ends @ Wanted::Between(..) => ends,
    };
    let mut captures = Captures::open(&args.files)?;
    let Some(first) = captures.next() else { return Err(Failure::new(Exit::Usage, "no capture")) };
    let mut reading = Reading::new(first, options.clone(), Arc::clone(knowledge));
    let mut written = Ok(());
    let any = explain(
        &mut reading,
        || captures.next(),
        knowledge,
        &wanted,
        |text| {
            if written.is_ok() {
                written = output::text(text);
            }
        },
    );
    written?;
    if !any.map_err(|error| not_read(&error))? {
        return Err(Failure::new(Exit::Usage, "there is no such flow; `--per-flow` lists all"));
    }
    Ok(())
}
