//! `millrace lab storm`: SMFs gone mad against an UPF in a lab, and what is left of it.

use crate::exit::{Exit, Failure};
use crate::output;
use crate::screen::Screen;
use api::table::{Side, Table};
use bench::report::figure;
use lab::Options;
use lab::attack::storm::{Aftermath, Weather, storm};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Arguments of `lab storm`.
#[derive(clap::Args)]
pub struct Args {
    /// Messages to send: right and wrong ones, of two SMFs.
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: u64,
    /// Look at memory, sessions and heartbeats every N messages.
    #[arg(long, default_value_t = 100_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// What is sent depends on it, and on what is answered.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Packets a second of a session of another SMF meanwhile; each is answered.
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    probes: u32,
    /// Write the result as JSON (`-`: to standard output, instead of the table).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the command in a lab of these options.
pub fn run(options: &Options, args: &Args) -> Result<(), Failure> {
    let Args { requests, every, seed, probes, json } = args;
    let weather = Weather { requests: *requests, every: *every, seed: *seed, probes: *probes };
    let mut screen = Screen::new();
    screen.tell("mutated requests");
    let aftermath = storm(options, &weather, &mut |done, of| screen.part(done, of));
    screen.clear();
    let aftermath = aftermath?;
    if let Some(path) = json {
        output::report(&aftermath, path)?;
    }
    if !json.as_deref().is_some_and(output::is_stdout) {
        output::text(&text(&aftermath))?;
    }
    match aftermath.faults().as_slice() {
        [] => Ok(()),
        faults => Err(Failure::new(Exit::Failed, faults.join("; "))),
    }
}

fn mb(octets: u64) -> String {
    format!("{:.1}", octets as f64 / 1e6)
}

/// For people.
fn text(aftermath: &Aftermath) -> String {
    use Side::Right;
    let mut table = Table::new(&[
        ("REQUESTS", Right),
        ("SESSIONS", Right),
        ("MEMORY MB", Right),
        ("HEARTBEATS", Right),
        ("P50 US", Right),
        ("P99 US", Right),
        ("MAX US", Right),
    ]);
    let us = |nanos: u64| figure(nanos as f64 / 1e3);
    for mark in &aftermath.marks {
        table.row([
            mark.requests.to_string(),
            mark.sessions.to_string(),
            mb(mark.resident),
            mark.heartbeats.packets.to_string(),
            us(mark.heartbeats.p50_ns),
            us(mark.heartbeats.p99_ns),
            us(mark.heartbeats.max_ns),
        ]);
    }
    let Aftermath { counts, seconds, left, innocent, fresh, .. } = aftermath;
    let mut text = table.to_string();
    // Writing to a string can't fail.
    let _ = writeln!(
        text,
        "{} messages ({} wrong ones) in {seconds:.1} s, {:.0} a second; {} answers, {} of them yes: {} sessions established, {} deleted one by \
         one; {} requests of the UPF's answered; {} associations set up again, {} of {} heartbeats sent again.",
        counts.requests,
        counts.wrong,
        counts.requests as f64 / seconds,
        counts.answers,
        counts.accepted,
        counts.established,
        counts.deleted,
        counts.asked,
        counts.associations,
        counts.repeated,
        counts.heartbeats
    );
    if let Some([settled, end]) = aftermath.memory() {
        let _ =
            writeln!(text, "Memory: {} MB after the first fifth, {} MB at the end.", mb(settled), mb(end));
    }
    let _ = writeln!(
        text,
        "Afterwards: {left} sessions left after release; another SMF's session lost {} of {} packets meanwhile, a fresh one {} of {}.",
        innocent[1], innocent[0], fresh[1], fresh[0]
    );
    text
}
