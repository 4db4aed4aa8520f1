//! The `millrace` command line: a thin layer over the crates that do the work.
//!
//! Each command has a file in `commands` with its arguments and its body. What a command ends with is an [`Exit`] or a
//! [`Failure`](exit::Failure), which says what to print and which code to end with; `docs/cli.md` lists the codes.
#![forbid(unsafe_code)]

mod commands;
mod exit;
mod log;
mod output;
mod report;
mod screen;
mod signals;

use clap::{Parser, Subcommand};
use exit::Exit;
use std::process::ExitCode;

/// A session request is some tens of small allocations on the control thread, half of which end their lives on a worker: what
/// mimalloc is made for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A 5G user plane (UPF) in software.
#[derive(Parser)]
#[command(name = "millrace", version, max_term_width = 100, after_help = exit::summary())]
struct Cli {
    #[command(flatten)]
    verbosity: log::Verbosity,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show it at work: sessions, traffic and a verdict, in this process. Needs no NIC, no root and no huge pages.
    Demo(commands::demo::Args),
    /// Measure on this machine.
    Bench(commands::bench::Args),
    /// Run the UPF that a configuration describes.
    Run(commands::run::Args),
    /// Check a configuration; print its schema or an example.
    Config(commands::config::Args),
    /// Say what this machine offers, what Millrace makes of it, and what would be better.
    Doctor(commands::doctor::Args),
    /// Ask a running UPF what it does.
    Ctl(commands::ctl::Args),
    /// Say which protocols and applications captures consist of, and why.
    Dpi(commands::dpi::Args),
    /// Compute what the standards say of the radio side: NEA2, LDPC codes, transport blocks. Hexadecimal in, hexadecimal out.
    Ran(commands::ran::Args),
    /// Let cores and an accelerator share work: run, compare, train and calibrate schedulers on a simulated machine.
    Sched(commands::sched::Args),
    /// Build a mobile network around the UPF in network namespaces, and run programs as its UE (root).
    Lab(commands::lab::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Demo(args) => quietly(cli.verbosity).and_then(|()| commands::demo::run(&args)),
        Command::Bench(args) => quietly(cli.verbosity).and_then(|()| commands::bench::run(&args)),
        Command::Run(args) => commands::run::run(&args, cli.verbosity),
        Command::Config(args) => log::start(cli.verbosity, None).and_then(|()| commands::config::run(&args)),
        Command::Doctor(args) => quietly(cli.verbosity).and_then(|()| commands::doctor::run(&args)),
        Command::Ctl(args) => log::start(cli.verbosity, None).and_then(|()| commands::ctl::run(&args)),
        Command::Dpi(args) => quietly(cli.verbosity).and_then(|()| commands::dpi::run(&args)),
        Command::Ran(args) => quietly(cli.verbosity).and_then(|()| commands::ran::run(&args)),
        Command::Sched(args) => quietly(cli.verbosity).and_then(|()| commands::sched::run(&args)),
        Command::Lab(args) => {
            match log::start(cli.verbosity, Some("warn")).and_then(|()| commands::lab::run(&args)) {
                Ok(code) => return code,
                Err(failure) => Err(failure),
            }
        }
    };
    match result {
        Ok(()) => Exit::Done.into(),
        Err(failure) => {
            report::print(&failure);
            failure.exit.into()
        }
    }
}

/// Logs from warnings on: progress has the screen.
fn quietly(verbosity: log::Verbosity) -> Result<(), exit::Failure> {
    log::start(verbosity, Some("warn"))
}
