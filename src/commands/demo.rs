//! `millrace demo`: everything in one process, with live progress and a verdict.

use crate::exit::{Exit, Failure};
use crate::screen::{self, Screen};
use crate::{output, report, signals};
use bench::demo::{DemoConfig, DemoError, Stage, run as play};
use loadgen::imix::SizeProfile;
use loadgen::world::{LiveRate, Progress};
use std::ops::ControlFlow;
use std::time::Duration;
use tables::clock::Tsc;

/// Arguments of `demo`.
#[derive(clap::Args)]
pub struct Args {
    /// Seconds of traffic.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// PDU sessions: half of them IPv4, a quarter IPv6, a quarter IPv4v6.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=2_000_000))]
    sessions: u32,
    /// Workers of the UPF.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: u16,
    /// Packet sizes: imix, ran, a number of bytes, or a mix such as 64:7,576:4,1500:1.
    #[arg(long, default_value = "imix")]
    profile: SizeProfile,
    /// Packets of each direction on their way at most.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=2_000))]
    window: u32,
    /// Packets per second of each direction; as many as arrive without loss if not given.
    #[arg(long)]
    rate: Option<u64>,
    /// One packet of this many is compared byte by byte with what it must be.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    sample_every: u32,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let config = DemoConfig {
        seconds: args.seconds,
        sessions: args.sessions,
        workers: args.workers,
        profile: args.profile.clone(),
        window: args.window,
        rate: args.rate,
        sample_every: args.sample_every,
    };
    // What stands by then ends with the process.
    let asked = signals::ask_to_end(|| {
        screen::clear();
        let why = "interrupted while the UPF or its surroundings were being made; there was no traffic yet";
        report::print(&Failure::new(Exit::Interrupted, why));
    })?;
    let mut show = Show { screen: Screen::new(), ends: false };
    let mut told = false;
    let outcome = play(&config, Tsc::process(), |stage| {
        show.stage(stage);
        if !asked.is_to_end() {
            return ControlFlow::Continue(());
        }
        if !std::mem::replace(&mut told, true) {
            show.screen.line(signals::STOPPING);
        }
        ControlFlow::Break(())
    });
    asked.over();
    if show.ends {
        show.screen.clear();
    }
    show.screen.finish();
    let report = outcome.map_err(|error| match error {
        DemoError::Interrupted { .. } => Failure::new(Exit::Interrupted, error),
        _ => Failure::new(Exit::Failed, error),
    })?;
    if report.interrupted {
        report::print(&Failure::new(
            Exit::Interrupted,
            "interrupted; the figures are of the time until then",
        ));
    }
    if args.json {
        output::json(&report)?;
    } else {
        output::text(&report.to_string())?;
    }
    if report.interrupted {
        return Err(Exit::Interrupted.into());
    }
    if !args.json {
        output::text(
            "\nNext:\n  \
             millrace demo --sessions 1000000 --seconds 30   more subscribers\n  \
             millrace bench forward                          cycles per packet on one core\n  \
             sudo millrace lab run -- ping -c 3 dn           real packets through namespaces of this machine\n  \
             millrace config example                         what `millrace run` wants\n",
        )?;
    }
    if report.failures.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(Exit::Failed, format!("{} things went wrong; see above", report.failures.len())))
    }
}

/// What is going on, as it is shown.
struct Show {
    screen: Screen,
    /// The sessions are being deleted.
    ends: bool,
}

impl Show {
    fn stage(&mut self, stage: Stage<'_>) {
        match stage {
            Stage::Serving(n4) => {
                self.screen.line(&format!("UPF up: in-memory N3 and N6, N4 on {n4}"));
                self.screen.tell("establishing sessions");
            }
            Stage::Established(batch) => {
                self.screen.clear();
                self.screen.line(&format!(
                    "{} sessions established at {:.0}/s; traffic both ways",
                    batch.accepted, batch.requests_per_second
                ));
            }
            Stage::Traffic(progress) => self.traffic(progress),
            Stage::Deleting(done, of) => {
                if !std::mem::replace(&mut self.ends, true) {
                    self.screen.finish();
                    self.screen.tell("deleting sessions");
                }
                self.screen.part(done, of);
            }
            Stage::Establishing(done, of) => self.screen.part(done, of),
        }
    }

    fn traffic(&mut self, progress: &Progress) {
        let rate = |rate: &LiveRate| {
            let (packets, bits) = (rate.packets_per_second / 1e6, rate.bits_per_second / 1e9);
            format!("{packets:.2} Mpps {bits:.2} Gbit/s, {} missing, {} wrong", rate.missing, rate.faulty)
        };
        let (up, down) = (rate(&progress.uplink), rate(&progress.downlink));
        let text = format!("{:5.1} s  uplink {up}   downlink {down}", progress.seconds);
        if self.screen.redraws() {
            self.screen.show(Duration::ZERO, &text);
        } else if progress.seconds.fract() < 0.25 {
            // One line a second is enough; progress comes four times as often.
            self.screen.line(&text);
        }
    }
}
