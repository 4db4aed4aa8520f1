//! All schedulers on this machine: `cargo run --release -p accel --example sched_host -- [SECONDS] [plain|best] [TEST...]`. Prints what a decision of `adaptive` costs, how this machine compares with the
//! thesis' Jetson, and a line for each test, configuration and scheduler.

use accel::sched::adaptive::{self, Adaptive};
use accel::sched::fixed::Thresholds;
use accel::sched::host::{self, HostSettings, Scale, Vectors};
use accel::sched::packet::{Chain, FlowId, KindId, Packet, Step};
use accel::sched::run::{SCHEDULERS, measure_on, run_on_host, train_on};
use accel::sched::traffic::Test;
use accel::sched::{
    BatchRecord, Class, Done, Job, NEVER, Scheduler, Span, StepView, View, WorkerId, WorkerView,
};
use std::time::Instant;
use tables::Nanos;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    let seconds = arguments.next_if(|text| text.parse::<u32>().is_ok()).map_or(Ok(5), |text| text.parse())?;
    let cpu = arguments.next_if(|text| Vectors::named(text).is_some());
    let named: Vec<String> = arguments.collect();
    let cpu = cpu.and_then(|name| Vectors::named(&name)).unwrap_or(Vectors::Plain);
    let host = host::Settings { cpu, ..host::Settings::default() };

    println!("a decision of `adaptive`: {:.0} ns (median of 101 times 4,096)", decision());
    let scale = Scale::measured(&host)?;
    println!(
        "{} cores ({cpu:?}); the accelerator takes {:.2} of what the Jetson's does, a packet takes {:.3} of the time",
        host.cpu_workers, scale.rate, scale.time
    );
    println!(
        "test      chain scheduler    packets/s  Gbit/s  latency ms  missed %  in order %  accel %  busy %    lost"
    );
    for chain in Chain::ALL {
        let settings = scale.test(Test::Stress, chain, 1);
        let measured = measure_on(&host, &settings)?;
        println!("{measured:?}");
        let learned = train_on(&host, &settings, host.training)?;
        for test in Test::ALL
            .into_iter()
            .filter(|test| named.is_empty() || named.iter().any(|name| name == test.name()))
        {
            for name in SCHEDULERS {
                let mut settings = scale.test(test, chain, seconds);
                settings.thresholds = Some(Thresholds::calibrated(&measured));
                settings.learned = Some(learned.clone());
                let outcome = run_on_host(name, &HostSettings { test: settings, host: host.clone() })?;
                let total = &outcome.total;
                let lost: u64 = outcome.edge.iter().map(|(_, lost)| lost).sum();
                println!(
                    "{:<9} {:<5} {name:<12} {:>9.0}  {:>6.4}  {:>10.2}  {:>8.2}  {:>10.2}  {:>3.0} {:>3.0}  {:>3.0} {:>3.0}  {lost:>6}",
                    test.name(),
                    chain.name(),
                    outcome.rate(),
                    outcome.gbps(),
                    total.latency_ms(),
                    total.missed_percent(),
                    total.in_order_percent(),
                    total.accelerator_percent(Step::Decode),
                    total.accelerator_percent(Step::Cipher),
                    total.activity.kernel / total.activity.seconds * 100.0,
                    total.activity.polling / total.activity.seconds / host.cpu_workers as f64 * 100.0,
                );
            }
        }
    }
    Ok(())
}

/// Nanoseconds that `adaptive` takes to place a job, with two cores and an accelerator that it knows, and jobs inside.
fn decision() -> f64 {
    const JOBS: u32 = 4096;
    let classes = [Class::Cpu, Class::Cpu, Class::Accelerator];
    let step = StepView { room: 32, pending: 0, inside: 0 };
    let workers = classes.map(|class| WorkerView { class, is_usable: true, steps: [step; 2] });
    let mut adaptive = Adaptive::new(adaptive::Settings::default());
    let job = |number: u32| {
        let kind = number % 5;
        let octets = [243, 243, 486, 486, 1458][kind as usize];
        let packet = Packet {
            tag: u64::from(number),
            kind: KindId(kind as u8),
            flow: FlowId(kind),
            octets,
            arrived: Nanos(0),
        };
        let is_ordered = kind == 0 || kind == 3;
        let sequence = is_ordered.then_some(u64::from(number));
        let due = if kind == 0 { Nanos(82_000_000) } else { NEVER };
        Job { place: number, number: u64::from(number), packet, sequence, due }
    };
    let jobs: Vec<Job> = (0..JOBS).map(job).collect();
    let mut now = Nanos(1_000_000);
    let mut times = Vec::new();
    for _ in 0..101 {
        for (at, &class) in classes.iter().enumerate() {
            for (step, nanos) in [(Step::Decode, 24_000_000), (Step::Cipher, 1_000_000)] {
                let nanos = if class == Class::Cpu { nanos } else { nanos / 4 };
                let span = Span { began: now, ended: now.plus(nanos) };
                adaptive.worked(&BatchRecord {
                    worker: WorkerId(at),
                    step,
                    packets: 128,
                    octets: 100_000,
                    span,
                });
            }
        }
        now = now.plus(1_000_000);
        let mut placed = Vec::with_capacity(jobs.len());
        let began = Instant::now();
        for job in &jobs {
            now = now.plus(70_000);
            let view = View { now, chain: Chain::EachStep, rate: 14_600.0, workers: &workers };
            placed.push(adaptive.place(job, Step::Decode, &view));
        }
        times.push(began.elapsed().as_nanos() as f64 / f64::from(JOBS));
        for (job, worker) in jobs.iter().zip(placed) {
            if let Some(worker) = worker {
                let (step, spans) = (Step::Decode, [Span::default(); 2]);
                adaptive.came_back(&Done { job: *job, worker, step, spans }, now);
            }
        }
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
