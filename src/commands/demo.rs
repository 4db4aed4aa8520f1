//! `millrace demo`: everything in one process, with live progress and a verdict.

use crate::exit::{Exit, Failure};
use crate::{output, signals};
use bench::demo::{DemoConfig, Stage, run as play};
use loadgen::imix::SizeProfile;
use loadgen::world::{LiveRate, Progress};
use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
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
    let stop = signals::stop_flag()?;
    let config = DemoConfig {
        seconds: args.seconds,
        sessions: args.sessions,
        workers: args.workers,
        profile: args.profile.clone(),
        window: args.window,
        rate: args.rate,
        sample_every: args.sample_every,
    };
    let mut screen = Screen { redraws: std::io::stderr().is_terminal(), line_open: false };
    let report = play(&config, Tsc::process(), |stage| {
        screen.show(stage);
        if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    screen.finish();
    let report = report.map_err(|error| Failure::new(Exit::Failed, error))?;
    if args.json {
        output::json(&report)?;
    } else {
        output::text(&report.to_string())?;
        output::text(
            "\nNext:\n  \
             millrace demo --sessions 1000000 --seconds 30   more subscribers\n  \
             millrace bench forward                          cycles per packet on one core\n  \
             sudo millrace lab run -- ping -c 3 dn           real packets through namespaces of this machine\n  \
             millrace config example                         what `millrace run` wants\n",
        )?;
    }
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::new(Exit::Interrupted, "interrupted; the figures are of the time until then"));
    }
    if report.failures.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(Exit::Failed, format!("{} things went wrong; see above", report.failures.len())))
    }
}

/// Progress on standard error: one line that is drawn again on a terminal, a line now and then elsewhere.
struct Screen {
    redraws: bool,
    line_open: bool,
}

impl Screen {
    fn show(&mut self, stage: Stage<'_>) {
        match stage {
            Stage::Serving(n4) => {
                self.line(&format!("UPF up: in-memory N3 and N6, N4 on {n4}; establishing sessions"))
            }
            Stage::Established(batch) => self.line(&format!(
                "{} sessions established at {:.0}/s; traffic both ways",
                batch.accepted, batch.requests_per_second
            )),
            Stage::Traffic(progress) => self.traffic(progress),
        }
    }

    fn line(&mut self, text: &str) {
        self.finish();
        // Progress that can't be shown is no reason to stop.
        let _ = writeln!(std::io::stderr(), "{text}");
    }

    fn traffic(&mut self, progress: &Progress) {
        // Elsewhere than on a terminal one line a second is enough; progress comes four times as often.
        if !self.redraws && progress.seconds.fract() >= 0.25 {
            return;
        }
        let rate = |rate: &LiveRate| {
            let (packets, bits) = (rate.packets_per_second / 1e6, rate.bits_per_second / 1e9);
            format!("{packets:.2} Mpps {bits:.2} Gbit/s, {} missing, {} wrong", rate.missing, rate.faulty)
        };
        let (up, down) = (rate(&progress.uplink), rate(&progress.downlink));
        let text = format!("{:5.1} s  uplink {up}   downlink {down}", progress.seconds);
        if self.redraws {
            let _ = write!(std::io::stderr(), "\r{text}\x1b[K");
            let _ = std::io::stderr().flush();
            self.line_open = true;
        } else {
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }

    fn finish(&mut self) {
        if std::mem::take(&mut self.line_open) {
            let _ = writeln!(std::io::stderr());
        }
    }
}
