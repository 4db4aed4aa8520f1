//! `millrace doctor`: what this machine offers, and what Millrace makes of it.

use super::config::{Overrides, load};
use crate::exit::{Exit, Failure};
use crate::output;
use doctor::{Program, Report, Verdict};
use machine::Machine;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Arguments of `doctor`.
#[derive(clap::Args)]
pub struct Args {
    /// Look whether this configuration fits the machine, too.
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    overrides: Overrides,
    /// Print all of it as JSON, with every fact that was read.
    #[arg(long)]
    json: bool,
    /// Look at a copy of another machine's files below DIR (proc, sys, dev, etc) instead of at this one's.
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    report: &'a Report,
    machine: &'a Machine,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let config = args.config.as_ref().map(|file| load(file, &args.overrides)).transpose()?;
    if !args.root.is_dir() {
        return Err(Failure::new(
            Exit::Usage,
            format!("--root: there is no directory {}", args.root.display()),
        ));
    }
    let machine = Machine::read(&args.root);
    let report = doctor::examine(&machine, &program(&args.root), config.as_ref());
    if args.json {
        output::json(&Told { report: &report, machine: &machine })?;
    } else {
        output::text(&report.to_string())?;
    }
    if report.verdict == Verdict::WontWork { Err(Exit::Failed.into()) } else { Ok(()) }
}

/// What this program knows of itself and, of the machine that it runs on, beside files.
fn program(root: &Path) -> Program {
    let is_here = root == Path::new("/");
    #[cfg(feature = "dpdk")]
    let dpdk = Some(doctor::Dpdk { version: dpdk::version(), drivers: dpdk::drivers() });
    #[cfg(not(feature = "dpdk"))]
    let dpdk = None;
    Program {
        dpdk,
        gpus: is_here.then(upf::lookups::gpu::list),
        pinnable: if is_here { upf::cores::pinnable } else { |cores| cores },
        remarks: if is_here { remarks } else { |_| Vec::new() },
    }
}

#[cfg(feature = "dpdk")]
fn remarks(interface: &str) -> Vec<String> {
    dpdk::Interface::look(interface).map(|interface| interface.warnings()).unwrap_or_default()
}

#[cfg(not(feature = "dpdk"))]
fn remarks(_: &str) -> Vec<String> {
    Vec::new()
}
