//! `millrace lab`: the UPF between a radio side and a data network, in network namespaces of this machine.

use super::{attack, storm};
use crate::exit::{Exit, Failure};
use crate::{output, report};
use clap::{Args as ClapArgs, Subcommand};
use lab::{ApplicationRule, Driver, Habit, Lab, LabError, Options};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// What shells end with when there is no such program.
const NO_SUCH_PROGRAM: u8 = 127;

/// Arguments of `lab`.
#[derive(ClapArgs)]
pub struct Args {
    #[command(flatten)]
    lab: LabArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(ClapArgs)]
struct LabArgs {
    /// Names the lab, so that several run side by side: the namespaces are NAME-ran, NAME-upf and NAME-dn.
    #[arg(long, global = true)]
    name: Option<String>,
    /// How DPDK drives the virtual cables: af-packet or af-xdp.
    #[arg(long, global = true, default_value_t)]
    driver: Driver,
    /// Whose manners the SMF has: plain, open5gs, free5gc, omec, oai or pfcpsim.
    #[arg(long, global = true, value_name = "HABIT", default_value = "plain")]
    smf: Habit,
    /// The UPF's workers: threads that forward.
    #[arg(long, global = true, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=8))]
    workers: u16,
    /// How many UEs there are, at most 16. The first is in NAME-ran, the others in NAME-ue1 and on; `ue0`, `ue1`, … name them.
    #[arg(long, global = true, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16))]
    ues: u8,
    /// Translate addresses on N6 (NAT44 and NPTv6).
    #[arg(long, global = true)]
    nat: bool,
    /// What the UEs' sessions do with packets of an application (`millrace dpi signatures list` names them all): NAME=count, NAME=drop or
    /// NAME=redirect:URL. May be given several times; the first that matches counts.
    #[arg(long = "application", global = true, value_name = "NAME=DO")]
    applications: Vec<ApplicationRule>,
    /// Write what passes on N3, N4 and N6, and the UPF's log, into this directory.
    #[arg(long, global = true, value_name = "DIR")]
    capture: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Start a lab, run one command in it as the UE, and end the lab. Input, output and exit code are the command's.
    Run {
        /// The command with its arguments. The name `dn` is the data network's host.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "COMMAND")]
        line: Vec<OsString>,
    },
    /// Flood the UPF in a lab of its own, with fragments, scans and lies about neighbours, and measure what a session that has nothing
    /// to do with it notices.
    Attack(attack::Args),
    /// Send session requests with mistakes, a million of them, to the UPF in a lab of its own, and look what is left.
    Storm(storm::Args),
    /// Cleans up when the lab that started it has ended.
    #[command(name = lab::reaper::SUBCOMMAND, hide = true)]
    Reap,
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        let exit = match error {
            LabError::NotRoot => Exit::Privilege,
            LabError::Name(_) | LabError::NoApplications(_) => Exit::Usage,
            LabError::Interrupted => Exit::Interrupted,
            _ => Exit::Failed,
        };
        Self::new(exit, error)
    }
}

/// Runs the command. The exit code is that of the program that ran as the UE, if one did.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let binary = std::env::current_exe()
        .map_err(|error| Failure::new(Exit::Failed, format!("can't find the program itself: {error}")))?;
    let LabArgs { name, driver, smf, workers, ues, nat, applications, capture } = &args.lab;
    let options = Options {
        name: name.clone(),
        driver: *driver,
        smf: *smf,
        workers: *workers,
        ues: *ues,
        nat: *nat,
        applications: applications.clone(),
        capture: capture.clone(),
        binary,
    };
    match &args.command {
        Some(Command::Reap) => lab::reaper::wait_and_reap(),
        Some(Command::Run { line }) => {
            if let Some(program) = line.first().filter(|program| !lab::can_run(program.as_ref())) {
                let sentence = format!("there is no program {} to run", program.display());
                report::print(&Failure::new(Exit::Failed, sentence));
                return Ok(NO_SUCH_PROGRAM.into());
            }
            let mut lab = Lab::start(&options)?;
            let code = lab.run(line)?;
            lab.finish()?;
            return Ok(code.into());
        }
        Some(Command::Attack(args)) => attack::run(&options, args)?,
        Some(Command::Storm(args)) => storm::run(&options, args)?,
        None => {
            let mut lab = Lab::start(&options)?;
            output::text(&lab.to_string())?;
            lab.wait()?;
            lab.finish()?;
        }
    }
    Ok(Exit::Done.into())
}
