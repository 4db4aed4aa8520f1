//! `ctl watch`: rates of ports, workers, drops and N4, again and again.

use crate::exit::Failure;
use crate::output;
use api::table::Page;
use api::{CounterLine, CtlClient, CtlClientError, Drops, N4, PortLine, Ports, WorkerLine, Workers, columns};
use serde::Serialize;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Home, and everything behind it cleared.
const CLEAR: &str = "\x1b[H\x1b[J";

/// What is watched, and how.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Args {
    /// Seconds between two looks. Workers are watched for one of them.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=3600))]
    interval: u32,
    /// End after so many.
    #[arg(long, value_name = "LOOKS")]
    count: Option<u64>,
}

/// What is counted at one moment.
struct Look {
    at: Instant,
    ports: Vec<PortLine>,
    drops: Vec<(String, u64)>,
    n4: Vec<CounterLine>,
}

impl Look {
    fn take(mut client: CtlClient) -> Result<Self, Failure> {
        let drops =
            client.ask(&Drops {})?.drops.into_iter().map(|line| (line.reason, line.packets)).collect();
        let n4 = client.ask(&N4 { all: true })?.counters.into_iter().map(|line| line.line).collect();
        Ok(Self { ports: client.ask(&Ports {})?.ports, drops, n4, at: Instant::now() })
    }
}

/// What happened in a second, between two looks.
#[derive(Debug, PartialEq, Serialize)]
struct Rates {
    /// Seconds between the looks.
    seconds: f64,
    ports: Vec<PortRate>,
    workers: Vec<WorkerRate>,
    /// Reasons that occurred in between.
    drops: Vec<Rate>,
    /// What N4 counted in between.
    n4: Vec<Rate>,
}

#[derive(Debug, PartialEq, Serialize)]
struct PortRate {
    port: String,
    rx_packets: f64,
    rx_bits: f64,
    tx_packets: f64,
    tx_bits: f64,
    rx_missed: f64,
}

#[derive(Debug, PartialEq, Serialize)]
struct WorkerRate {
    worker: u16,
    packets: f64,
    busy: f64,
    cycles_per_packet: Option<f64>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Rate {
    name: String,
    per_second: f64,
}

columns!(PortRate, |port| {
    "PORT" Left port.port,
    "RX PACKETS/S" Right format!("{:.0}", port.rx_packets),
    "RX MBIT/S" Right format!("{:.1}", port.rx_bits / 1e6),
    "TX PACKETS/S" Right format!("{:.0}", port.tx_packets),
    "TX MBIT/S" Right format!("{:.1}", port.tx_bits / 1e6),
    "MISSED/S" Right format!("{:.0}", port.rx_missed),
});

columns!(WorkerRate, |worker| {
    "WORKER" Right worker.worker,
    "PACKETS/S" Right format!("{:.0}", worker.packets),
    "BUSY" Right format!("{:.1} %", 100.0 * worker.busy),
    "CYCLES/PACKET" Right worker.cycles_per_packet.map_or("-".into(), |cycles| format!("{cycles:.0}")),
});

columns!(Rate, |rate| {
    "PER SECOND" Right format!("{:.1}", rate.per_second),
    "OF" Left rate.name,
});

impl Rates {
    fn between(before: &Look, after: &Look, seconds: f64, workers: &[WorkerLine]) -> Self {
        let rate =
            |before: u64, after: u64| after.saturating_sub(before) as f64 / seconds.max(f64::MIN_POSITIVE);
        let ports = before.ports.iter().zip(&after.ports).map(|(before, after)| PortRate {
            port: after.name.clone(),
            rx_packets: rate(before.rx_packets, after.rx_packets),
            rx_bits: 8.0 * rate(before.rx_bytes, after.rx_bytes),
            tx_packets: rate(before.tx_packets, after.tx_packets),
            tx_bits: 8.0 * rate(before.tx_bytes, after.tx_bytes),
            rx_missed: rate(before.rx_missed, after.rx_missed),
        });
        let workers = workers.iter().filter_map(|line| {
            let recent = line.recent.as_ref()?;
            let (packets, busy) = (recent.packets_per_second, recent.busy);
            Some(WorkerRate {
                worker: line.worker,
                packets,
                busy,
                cycles_per_packet: recent.cycles_per_packet,
            })
        });
        // A reason that did not occur before is not among those before.
        let drops = after.drops.iter().map(|(reason, packets)| {
            let known = before.drops.iter().find(|(known, _)| known == reason);
            Rate { name: reason.clone(), per_second: rate(known.map_or(0, |known| known.1), *packets) }
        });
        let n4 = before.n4.iter().zip(&after.n4).map(|(before, after)| Rate {
            name: after.counter.clone(),
            per_second: rate(before.value, after.value),
        });
        let grew = |rate: &Rate| rate.per_second > 0.0;
        Self {
            seconds,
            ports: ports.collect(),
            workers: workers.collect(),
            drops: drops.filter(grew).collect(),
            n4: n4.filter(grew).collect(),
        }
    }

    fn page(&self) -> Page {
        let mut page = Page::table(&self.ports);
        page.part(&self.workers);
        for (heading, rates) in [("Dropped", &self.drops), ("N4", &self.n4)] {
            if !rates.is_empty() {
                page.say(format!("\n{heading}\n"));
                page.part(rates);
            }
        }
        page
    }
}

/// Shows rates until somebody ends it, the reader goes away, or it was often enough: on a terminal always in the same place, else one below
/// the other, or as a line of JSON each.
///
/// Each look has a connection of its own: the UPF closes one on which nothing is said for long, and has few of them.
pub fn watch(
    connect: impl Fn() -> Result<CtlClient, CtlClientError>,
    args: Args,
    json: bool,
) -> Result<(), Failure> {
    let interval = Duration::from_secs(args.interval.into());
    let clear = if !json && std::io::stdout().is_terminal() { CLEAR } else { "" };
    let mut before = Look::take(connect()?)?;
    for _ in 0..args.count.unwrap_or(u64::MAX) {
        // That takes a second.
        let workers = connect()?.ask(&Workers {})?.workers;
        std::thread::sleep(interval.saturating_sub(before.at.elapsed()));
        let after = Look::take(connect()?)?;
        let seconds = after.at.duration_since(before.at).as_secs_f64();
        let rates = Rates::between(&before, &after, seconds, &workers);
        let text = if json { output::line(&rates)? } else { format!("{clear}{}\n", rates.page()) };
        if !output::more(&text)? {
            break;
        }
        before = after;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::RecentLoad;

    #[test]
    fn what_grew_is_told_by_the_second() {
        let look = |rx_packets, drops: &[(&str, u64)], value| Look {
            at: Instant::now(),
            ports: vec![PortLine {
                name: "p0".into(),
                rx_packets,
                rx_bytes: 100 * rx_packets,
                ..PortLine::default()
            }],
            drops: drops.iter().map(|(reason, packets)| ((*reason).to_owned(), *packets)).collect(),
            n4: [("requests", value), ("timeouts", 3)]
                .map(|(counter, value)| CounterLine {
                    counter: counter.into(),
                    value,
                    ..CounterLine::default()
                })
                .into(),
        };
        let (before, after) =
            (look(1_000, &[("far-drop", 5)], 10), look(3_000, &[("far-drop", 5), ("no-route", 4)], 20));
        let recent = RecentLoad { packets_per_second: 7.0, busy: 0.5, ..RecentLoad::default() };
        let worker = WorkerLine { worker: 1, recent: Some(recent), ..WorkerLine::default() };
        let rates = Rates::between(&before, &after, 2.0, &[worker]);
        assert_eq!((rates.ports[0].rx_packets, rates.ports[0].rx_bits), (1_000.0, 800_000.0));
        assert_eq!(rates.drops, [Rate { name: "no-route".into(), per_second: 2.0 }]);
        assert_eq!(rates.n4, [Rate { name: "requests".into(), per_second: 5.0 }]);
        let text = rates.page().to_string();
        for part in ["PORT", "p0", "1000", "0.8", "50.0 %", "no-route", "N4", "requests"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(!text.contains("timeouts") && !text.contains("far-drop"), "{text}");
        // A UPF that was started anew counts from 0: no rate is below it.
        let anew = Rates::between(&after, &before, 1.0, &[]);
        assert_eq!((anew.ports[0].rx_packets, anew.n4.len()), (0.0, 0));
    }
}
