//! What a run came to, for scripts.

use super::Platform;
use accel::sched::fixed::{Measured, Thresholds};
use accel::sched::run::{Outcome, Tally};
use bench::sched::tables::{Table, counted};
use bench::sched::{Machine, edge_loss_percent, rails};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A run.
#[derive(Serialize)]
pub struct Told {
    platform: &'static str,
    scheduler: &'static str,
    configuration: &'static str,
    test: String,
    throughput_bps: f64,
    packets_per_second: f64,
    edge_loss_percent: f64,
    /// Of all of it.
    total: Second,
    per_second: Vec<Second>,
    counters: BTreeMap<&'static str, u64>,
    /// By kind.
    edge: Vec<Edge>,
}

/// Packets of a kind that came, and those that the edge lost.
#[derive(Serialize)]
struct Edge {
    kind: usize,
    came: u64,
    lost: u64,
}

/// What happened in a second, or in all of them.
#[derive(Serialize)]
struct Second {
    offered: u64,
    sent: u64,
    octets: u64,
    latency_ms: f64,
    missed_percent: f64,
    in_order_percent: f64,
    /// Decoding, ciphering.
    accelerator_percent: [f64; 2],
    /// At the three points of Figure 5.1.
    overhead_ms: [f64; 3],
    /// By rail, of the simulated machine alone.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    power_mw: BTreeMap<&'static str, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    energy_joules: Option<f64>,
}

impl Second {
    fn of(machine: Machine, tally: &Tally) -> Self {
        use accel::sched::packet::Step;
        let power = tally.power();
        let rails = [("gpu", power.gpu), ("cpu", power.cpu), ("soc", power.soc), ("ddr", power.ddr)];
        let watts = bench::sched::watts(machine, tally);
        Self {
            offered: tally.offered,
            sent: tally.sent,
            octets: tally.octets,
            latency_ms: tally.latency_ms(),
            missed_percent: tally.missed_percent(),
            in_order_percent: tally.in_order_percent(),
            accelerator_percent: Step::ALL.map(|step| tally.accelerator_percent(step)),
            overhead_ms: tally.overhead_ms(),
            power_mw: if machine == Machine::Xavier { rails.into() } else { BTreeMap::new() },
            energy_joules: watts.map(|watts| watts * tally.activity.seconds),
        }
    }
}

impl Told {
    /// Of an outcome.
    pub fn of(platform: Platform, test: &str, outcome: &Outcome) -> Self {
        let machine = platform.machine();
        let mut total = Second::of(machine, &outcome.total);
        if machine == Machine::Xavier {
            total.power_mw = rails(outcome).into();
        }
        let edge = |(at, &(came, lost)): (usize, &(u64, u64))| Edge { kind: at + 1, came, lost };
        Self {
            platform: platform.name(),
            scheduler: outcome.scheduler,
            configuration: outcome.chain.name(),
            test: test.to_owned(),
            throughput_bps: outcome.gbps() * 1e9,
            packets_per_second: outcome.rate(),
            edge_loss_percent: edge_loss_percent(outcome),
            total,
            per_second: outcome.seconds.iter().map(|tally| Second::of(machine, tally)).collect(),
            counters: counted(outcome).into(),
            edge: outcome.edge.iter().enumerate().map(edge).collect(),
        }
    }
}

/// Each second in a line.
pub fn csv(machine: Machine, outcome: &Outcome) -> String {
    let mut text = String::from(
        "second,offered,sent,octets,latency_ms,missed_percent,in_order_percent,decoded_by_accelerator_percent,ciphered_by_accelerator_percent,\
         overhead_1_ms,overhead_2_ms,overhead_3_ms,gpu_mw,cpu_mw,soc_mw,ddr_mw,energy_joules\n",
    );
    for (at, tally) in outcome.seconds.iter().enumerate() {
        let second = Second::of(machine, tally);
        let power = tally.power();
        let rails = [power.gpu, power.cpu, power.soc, power.ddr]
            .map(|rail| (machine == Machine::Xavier).then_some(rail));
        let figures = [second.latency_ms, second.missed_percent, second.in_order_percent]
            .into_iter()
            .chain(second.accelerator_percent)
            .chain(second.overhead_ms)
            .map(Some)
            .chain(rails)
            .chain([second.energy_joules]);
        let figures: Vec<String> =
            figures.map(|value| value.map_or(String::new(), |value| format!("{value:.4}"))).collect();
        // Writing to a string can't fail.
        let _ =
            writeln!(text, "{at},{},{},{},{}", second.offered, second.sent, second.octets, figures.join(","));
    }
    text
}

/// What a calibration came to.
#[derive(Serialize)]
pub struct Calibrated {
    platform: &'static str,
    cpu_latency_ms: f64,
    accelerator_latency_ms: f64,
    accelerator_packets_per_second: f64,
    thresholds: TellStatic,
}

/// What `static` compares with.
#[derive(Serialize)]
struct TellStatic {
    cpu_octets: u32,
    cpu_latency_ms: f64,
    accelerator_latency_ms: f64,
    rate: f64,
    rates: [f64; 3],
}

impl Calibrated {
    /// Of what was measured.
    pub fn of(platform: &'static str, measured: &Measured) -> Self {
        let thresholds = Thresholds::calibrated(measured);
        let ms = |nanos: u64| nanos as f64 / 1e6;
        Self {
            platform,
            cpu_latency_ms: ms(measured.cpu_latency),
            accelerator_latency_ms: ms(measured.accelerator_latency),
            accelerator_packets_per_second: measured.accelerator_rate,
            thresholds: TellStatic {
                cpu_octets: thresholds.cpu_octets,
                cpu_latency_ms: ms(thresholds.cpu_latency),
                accelerator_latency_ms: ms(thresholds.accelerator_latency),
                rate: thresholds.rate,
                rates: thresholds.rates,
            },
        }
    }

    /// For people.
    pub fn table(&self) -> Table {
        let mut table = Table::new(format!("calibration on {}", self.platform), &["figure", "value"]);
        let mut put = |name: &str, value: String| table.rows.push(vec![name.to_owned(), value]);
        put("a core's latency, queue full", format!("{:.2} ms", self.cpu_latency_ms));
        put("the accelerator's latency, always full", format!("{:.2} ms", self.accelerator_latency_ms));
        put("the accelerator's rate", format!("{:.0} packets/s", self.accelerator_packets_per_second));
        let it = &self.thresholds;
        put("static: octets for a core, at most", it.cpu_octets.to_string());
        put("static: time that a core needs", format!("{:.2} ms", it.cpu_latency_ms));
        put(
            "static: less than that waits for the accelerator",
            format!("{:.2} ms", it.accelerator_latency_ms),
        );
        put("static in C1: cores get some above", format!("{:.0} packets/s", it.rate));
        let rates = it.rates.map(|rate| format!("{rate:.0}")).join(", ");
        put("static in C2: cores cipher ever more above", format!("{rates} packets/s"));
        table
    }
}
