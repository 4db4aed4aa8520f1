//! The simulated machine's drivers one by one, as the thesis measured its own (§4.3 to §4.4): always as many packets as the ring of one worker's one step takes, and no scheduler.

use super::thesis::{Driver, Size};
use accel::sched::batching::Batching;
use accel::sched::packet::{Chain, FlowId, KindId, Packet, Step};
use accel::sched::run::Timed;
use accel::sched::run::{Alone, Settings, simulate_with};
use accel::sched::traffic::{self, Chance, Load, Test};
use accel::sched::worker::Worth;
use accel::sched::xavier::{self, Xavier};
use accel::sched::{Class, Done, Job, NEVER, Platform, Report, WorkerId};
use tables::Nanos;

/// What a driver did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Found {
    /// Milliseconds that a packet was with it, on average.
    pub latency_ms: f64,
    /// Mbit/s.
    pub mbps: f64,
}

/// Measures what a row of the tables is about.
pub fn measure(driver: &Driver, seconds: u32) -> Found {
    match driver.step {
        Some(step) => alone(driver.class, step, driver.size, seconds),
        None => platform(driver.class, driver.size, seconds),
    }
}

/// One step's driver.
fn alone(class: Class, step: Step, size: Size, seconds: u32) -> Found {
    let mut xavier = Xavier::new(xavier::Settings::thesis(Chain::EachStep), Worth::default());
    let worker = xavier.workers().iter().position(|&it| it == class).map_or(WorkerId(0), WorkerId);
    let (sizes, mut chance) = (size.sizes(), Chance::new(1));
    let until = Nanos(u64::from(seconds) * Nanos::SECOND);
    let (mut now, mut number, mut waiting, mut reports) = (Nanos(0), 0_u64, Vec::new(), Vec::new());
    let (mut packets, mut octets, mut latency) = (0_u64, 0_u64, 0_u64);
    while now < until {
        loop {
            if waiting.is_empty() {
                waiting.push(job(number, octets_of(&sizes, &mut chance)));
                number += 1;
            }
            waiting.iter_mut().for_each(|job| job.packet.arrived = now);
            // What waits for others would never be begun by its deadline: the ring is full all the time.
            xavier.enqueue(worker, step, &mut waiting, NEVER);
            if !waiting.is_empty() {
                break;
            }
        }
        let next = xavier.next_event();
        if next == NEVER {
            break;
        }
        now = next.max(now.plus(1));
        xavier.go_on(now);
        xavier.dequeue(&mut reports);
        for report in reports.drain(..) {
            if let Report::Done(Done { job, .. }) = report {
                packets += 1;
                octets += u64::from(job.packet.octets);
                latency += now.since(job.packet.arrived);
            }
        }
    }
    Found {
        latency_ms: latency as f64 / packets.max(1) as f64 / 1e6,
        mbps: octets as f64 * 8e3 / now.0.max(1) as f64,
    }
}

fn octets_of(sizes: &[(u32, u32)], chance: &mut Chance) -> u32 {
    let sum: u32 = sizes.iter().map(|&(_, share)| share).sum();
    let mut drawn = chance.below(u64::from(sum.max(1))) as u32;
    for &(octets, share) in sizes {
        match drawn.checked_sub(share) {
            Some(rest) => drawn = rest,
            None => return octets,
        }
    }
    0
}

fn job(number: u64, octets: u32) -> Job {
    let packet = Packet { tag: number, kind: KindId(4), flow: FlowId(0), octets, arrived: Nanos(0) };
    Job { place: number as u32, number, packet, sequence: None, due: NEVER }
}

/// Both steps, through the scheduler's core.
fn platform(class: Class, size: Size, seconds: u32) -> Found {
    let mut settings = Settings { seconds, ..Settings::thesis(Test::Stress, Chain::Once) };
    settings.traffic = traffic::Settings {
        load: Load::Unbounded,
        sizes: size.sizes(),
        ..traffic::Settings::thesis(Test::Stress)
    };
    let scheduler = Box::new(Alone { class, batching: Batching::default() });
    let (outcome, _) = simulate_with(scheduler, &settings, &mut |_| {});
    Found { latency_ms: outcome.total.latency_ms(), mbps: outcome.gbps() * 1e3 }
}
