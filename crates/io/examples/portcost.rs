//! What the benchmark port and the in-memory NIC cost by themselves: receive a burst, send it again.
//!
//! `cargo run --release -p io --example portcost`

use io::mem::{FrameSize, MemConfig, MemFrame, MemNic, RssMode};
use io::replay::{Patch, ReplayRx, SinkTx, Stream, WORDS};
use io::{Port, RxQueue, TxQueue};
use std::hint::black_box;
use std::time::Instant;

/// Bursts in a run: well below a scheduler's time slice, so that most runs are undisturbed even on a busy machine.
const ROUNDS: u32 = 200;
const RUNS: usize = 801;
const BURST: usize = 64;

/// Nanoseconds per packet: the fastest run, and the median of all.
fn measure(mut burst: impl FnMut()) -> (f64, f64) {
    let mut runs: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..ROUNDS {
                burst();
            }
            start.elapsed().as_nanos() as f64 / (ROUNDS as f64 * BURST as f64)
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    (runs[0], runs[RUNS / 2])
}

/// The time stamp counter's rate in GHz as Linux calibrated it (a BogoMIPS is half a million loops of two cycles).
fn tsc_ghz() -> f64 {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("bogomips")).unwrap_or_default();
    line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok()).unwrap_or(0.0) / 2000.0
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ghz = tsc_ghz();
    println!("{:<40} {:>14} {:>14}", "cycles per packet", "fastest", "median");
    let report = |what: &str, (fastest, median): (f64, f64)| {
        println!("{what:<40} {:14.1} {:14.1}", fastest * ghz, median * ghz);
    };

    for (what, len, offsets, sessions) in [
        ("replay, uplink 150 B, 1 k sessions", 150, &[46usize, 66, 70, 82][..], 1 << 10),
        ("replay, uplink 150 B, 1 M sessions", 150, &[46, 66, 70, 82][..], 1 << 20),
        ("replay, downlink 106 B, 1 k sessions", 106, &[22, 30, 38][..], 1 << 10),
        ("replay, downlink 106 B, 1 M sessions", 106, &[22, 30, 38][..], 1 << 20),
        ("replay, 1,400 B, 1 M sessions", 1400, &[22, 30, 38][..], 1 << 20),
    ] {
        let patches: Vec<Patch> =
            (0..sessions).map(|i: u32| Patch { words: [i.to_be_bytes(); WORDS], hash: i | 1 }).collect();
        let mut rx = ReplayRx::new(Stream::new(&vec![0x5a; len], offsets, patches)?);
        let mut tx = SinkTx::new();
        let mut frames = Vec::with_capacity(BURST);
        report(
            what,
            measure(|| {
                rx.rx_burst(&mut frames, BURST);
                black_box(&mut frames);
                tx.tx_burst(&mut frames);
            }),
        );
    }

    let mut frames = Vec::with_capacity(BURST);
    report(
        "allocate and drop a frame, one by one",
        measure(|| {
            for _ in 0..BURST {
                drop(black_box(MemFrame::new(FrameSize::Standard)));
            }
        }),
    );
    for (what, rss) in [
        ("memory NIC, inject + rx + tx + collect", RssMode::Preset),
        ("the same with RSS on the inner address", RssMode::InnerIp),
    ] {
        let (mut nic, mut wire) = MemNic::new(MemConfig { rss, ..MemConfig::default() })?;
        let (mut rx, mut tx) = nic.take_queue(0).ok_or("queue 0 is missing")?;
        let mut packet = vec![0; 106];
        packet[12..15].copy_from_slice(&[8, 0, 0x45]);
        packet[23] = 17;
        frames.extend((0..BURST).filter_map(|_| MemFrame::copy_of(&packet)));
        report(
            what,
            measure(|| {
                wire.offer(&mut frames);
                rx.rx_burst(&mut frames, BURST);
                tx.tx_burst(&mut frames);
                wire.collect(&mut frames, BURST);
            }),
        );
        frames.clear();
    }
    Ok(())
}
