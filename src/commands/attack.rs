//! `millrace lab attack`: floods against an UPF in a lab, and what somebody else notices of them.

use crate::exit::Failure;
use crate::output;
use crate::screen::Screen;
use api::table::{Side, Table};
use bench::report::{Measured, Param, Report, figure};
use lab::attack::{Flood, Plan, Round, Siege, Stretch};
use lab::{LabError, Options};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;
use tables::clock::Tsc;

/// Arguments of `lab attack`.
#[derive(clap::Args)]
pub struct Args {
    /// What to flood with: elsewhere (for comparison), fragments-n6, fragments6-n6, fragments-n3, fragments6-n3, scan4, scan6, scan6-wide,
    /// arp, nd; all of them if none is named.
    #[arg(value_name = "FLOOD")]
    floods: Vec<Flood>,
    /// Frames of the flood a second.
    #[arg(long, default_value_t = 50_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    rate: u32,
    /// Packets a second of the session that has nothing to do with it; each is answered.
    #[arg(long, default_value_t = 1_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    probes: u32,
    /// How long each flood lasts, and the time without one before it.
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// How often all of it is repeated.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
    /// Write the result as JSON (`-`: to standard output, instead of the table).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the command in a lab of these options.
pub fn run(options: &Options, args: &Args) -> Result<(), Failure> {
    let floods = if args.floods.is_empty() { Flood::ALL.to_vec() } else { args.floods.clone() };
    let plan = Plan {
        floods,
        rate: args.rate,
        probes: args.probes,
        span: Duration::from_secs(args.seconds),
        rounds: args.rounds,
    };
    let mut siege = Siege::start(options)?;
    let mut screen = Screen::new();
    let rounds = siege.run(&plan, &mut |what| screen.tell(what));
    screen.clear();
    let rounds = match rounds {
        Err(LabError::Interrupted) => {
            screen.line("stopping");
            siege.finish()?;
            return Err(LabError::Interrupted.into());
        }
        rounds => rounds?,
    };
    siege.finish()?;
    let report = report(&plan, &rounds);
    if let Some(path) = &args.json {
        output::report(&report, path)?;
        if output::is_stdout(path) {
            return Ok(());
        }
    }
    output::text(&table(&plan, &report))
}

/// What is told of a stretch of time, and in what unit.
type Column = (&'static str, &'static str, fn(&Stretch) -> f64);

const STRETCHES: [Column; 6] = [
    ("packets_sent", "packets", |stretch| stretch.sent as f64),
    ("packets_lost", "packets", |stretch| stretch.lost as f64),
    ("packets_dropped", "packets", |stretch| stretch.dropped as f64),
    ("packets_missed", "packets", |stretch| stretch.missed as f64),
    ("latency_p50_us", "us", |stretch| stretch.latency.p50_ns as f64 / 1e3),
    ("latency_p99_us", "us", |stretch| stretch.latency.p99_ns as f64 / 1e3),
];

/// How many times longer it took, with the flood.
fn slowdown(round: &Round) -> f64 {
    round.flooded.latency.p99_ns as f64 / (round.idle.latency.p99_ns as f64).max(1.0)
}

fn report(plan: &Plan, rounds: &[Round]) -> Report {
    let mut report = Report::new("attack", &Tsc::process());
    for &flood in &plan.floods {
        let of: Vec<&Round> = rounds.iter().filter(|round| round.flood == flood).collect();
        let mut tell = |name, unit, params: &[(&'static str, Param)], value: &dyn Fn(&Round) -> f64| {
            let values: Vec<f64> = of.iter().map(|round| value(round)).collect();
            let mut params = params.to_vec();
            params.push(("flood", flood.name().into()));
            report.results.push(Measured::of(name, unit, &params, &values));
        };
        for (name, unit, value) in STRETCHES {
            tell(name, unit, &[("phase", "idle".into())], &|round| value(&round.idle));
            tell(name, unit, &[("phase", "flooded".into())], &|round| value(&round.flooded));
        }
        let seconds = plan.span.as_secs_f64();
        tell("flood_packets_per_second", "packets/s", &[], &|round| round.flooded.flooded as f64 / seconds);
        tell("latency_p99_ratio", "times", &[], &slowdown);
        tell("cycles_per_packet", "cycles", &[], &|round| round.flooded.cycles);
        tell("frames_held", "frames", &[], &|round| round.flooded.held as f64);
        tell("frames_held_limit", "frames", &[], &|round| round.flooded.held_limit as f64);
        let mut drops: Vec<(&str, u64)> = Vec::new();
        for (reason, packets) in of.iter().flat_map(|round| &round.flooded.drops) {
            match drops.iter_mut().find(|(known, _)| known == reason) {
                Some((_, sum)) => *sum += packets,
                None => drops.push((reason, *packets)),
            }
        }
        let drops: Vec<_> = drops.iter().map(|(reason, packets)| format!("{reason} {packets}")).collect();
        report.notes.push(format!("{flood}: Millrace dropped in all {}", drops.join(", ")));
    }
    report
}

/// The same for people: a line for each flood, medians over the rounds.
fn table(plan: &Plan, report: &Report) -> String {
    use Side::{Left, Right};
    let mut table = Table::new(&[
        ("FLOOD", Left),
        ("FRAMES/S", Right),
        ("SENT", Right),
        ("LOST", Right),
        ("DROPPED", Right),
        ("MISSED", Right),
        ("P50 IDLE", Right),
        ("P50", Right),
        ("P99 IDLE", Right),
        ("P99", Right),
        ("TIMES", Right),
        ("CYCLES", Right),
        ("HELD", Right),
    ]);
    for flood in &plan.floods {
        let one = |name: &str, phase: Option<&'static str>| {
            let mut params: Vec<(&'static str, Param)> = vec![("flood", flood.name().into())];
            params.extend(phase.map(|phase| ("phase", phase.into())));
            report.find(name, &params)
        };
        let median = |name, phase| one(name, phase).map_or("-".into(), |m| figure(m.median));
        let spread = |name, phase| {
            let text = |m: &Measured| format!("{} ({}-{})", figure(m.median), figure(m.min), figure(m.max));
            one(name, phase).map_or("-".into(), text)
        };
        let (idle, flooded) = (Some("idle"), Some("flooded"));
        table.row([
            flood.name().into(),
            median("flood_packets_per_second", None),
            median("packets_sent", flooded),
            spread("packets_lost", flooded),
            median("packets_dropped", flooded),
            spread("packets_missed", flooded),
            median("latency_p50_us", idle),
            median("latency_p50_us", flooded),
            spread("latency_p99_us", idle),
            spread("latency_p99_us", flooded),
            spread("latency_p99_ratio", None),
            median("cycles_per_packet", None),
            format!("{} of {}", median("frames_held", None), median("frames_held_limit", None)),
        ]);
    }
    let mut text = table.to_string();
    // Writing to a string can't fail.
    let _ = writeln!(
        text,
        "Medians (and spread) of {} rounds of {} s. SENT, LOST, DROPPED by Millrace, and times in microseconds: of the session that has nothing to \
         do with the flood, from its gNB to a server and back. MISSED: lost in the kernel's rings, whoever's it was. CYCLES: what a worker needed \
         for a packet of any kind, system calls included.",
        plan.rounds,
        plan.span.as_secs()
    );
    for note in &report.notes {
        let _ = writeln!(text, "{note}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each_flood_with_medians_and_spread() {
        let stretch = |lost, p99_ns| Stretch {
            sent: 4_000,
            lost,
            flooded: 100_000,
            latency: loadgen::latency::LatencySummary { p50_ns: 50_000, p99_ns, ..Default::default() },
            drops: vec![("fragment-timeout".into(), 3)],
            held: 1_000,
            held_limit: 3_000,
            cycles: 900.0,
            ..Stretch::default()
        };
        let round = |lost, p99| Round {
            flood: Flood::FragmentsN3,
            idle: stretch(0, 100_000),
            flooded: stretch(lost, p99),
        };
        let plan = Plan {
            floods: vec![Flood::FragmentsN3],
            rate: 50_000,
            probes: 1_000,
            span: Duration::from_secs(2),
            rounds: 3,
        };
        let rounds = [round(0, 150_000), round(7, 300_000), round(0, 120_000)];
        let report = report(&plan, &rounds);
        let text = table(&plan, &report);
        let line: Vec<_> = text.lines().nth(1).unwrap_or_default().split_whitespace().collect();
        assert_eq!(
            line.join(" "),
            "fragments-n3 50,000 4,000 0.00 (0.00-7.00) 0.00 0.00 (0.00-0.00) 50.0 50.0 100 (100-100) 150 (120-300) \
             1.50 (1.20-3.00) 900 1,000 of 3,000"
        );
        assert!(text.contains("fragments-n3: Millrace dropped in all fragment-timeout 9"), "{text}");
    }
}
