//! `io`: what a port costs by itself: every packet that is received is sent back.

use crate::path::port_cost;
use crate::progress::Progress;
use crate::report::{Measured, Report};
use io::mem::{FrameSize, MemConfig, MemFrame, MemNic};
use io::replay::{Patch, ReplayRx, SinkTx, Stream};
use io::{BURST, Port, RxQueue, TxQueue};
use packet::{MacAddr, PacketBuilder};
use tables::clock::Tsc;

/// What to measure.
#[derive(Clone, Debug)]
pub struct IoConfig {
    /// Bytes of UDP payload.
    pub payloads: Vec<usize>,
    /// Runs of each.
    pub runs: usize,
    /// Packets of each run.
    pub packets: usize,
}

impl IoConfig {
    /// From 64 to 1,400 bytes.
    pub fn full() -> Self {
        Self { payloads: vec![64, 309, 1_024, 1_400], runs: 7, packets: 4_000_000 }
    }

    /// Two sizes, briefly.
    pub fn quick() -> Self {
        Self { payloads: vec![64, 1_024], runs: 3, packets: 500_000 }
    }
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum IoError {
    /// The packets made here are wrong: a defect.
    #[error("replay: {0}")]
    Replay(#[from] io::replay::ReplayError),
    /// An in-memory NIC could not be made.
    #[error("in-memory NIC: {0}")]
    Nic(#[from] io::mem::MemError),
    /// A port without its first queue: a defect.
    #[error("the port has no queue")]
    NoQueue,
}

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &IoConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, IoError> {
    let mut report = Report::new("io", &clock);
    for &payload in &config.payloads {
        let packet = PacketBuilder::new()
            .ethernet(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]))
            .ipv4([198, 51, 100, 1].into(), [10, 0, 0, 1].into())
            .udp(443, 40_000)
            .build(&vec![0; payload]);
        progress.tell(&format!("replay, {payload} B"));
        let stream = Stream::new(&packet, &[30], vec![Patch::default(); 1_000])?;
        let mut replay = Vec::new();
        for _ in 0..config.runs {
            let (mut rx, mut tx) = (ReplayRx::new(stream.clone()), SinkTx::new());
            replay.push(port_cost(&mut rx, &mut tx, &clock, config.packets));
        }
        progress.tell(&format!("in-memory NIC, {payload} B"));
        let mut nic = Vec::new();
        for _ in 0..config.runs {
            nic.push(nic_cost(&packet, &clock, config.packets)?);
        }
        for (backend, runs) in [("replay", replay), ("memory", nic)] {
            let params = [("backend", backend.into()), ("payload", (payload as u64).into())];
            report.results.push(Measured::of("cycles_per_packet", "cycles", &params, &runs));
        }
        progress.keep(&report);
    }
    report.notes.push(
        "replay makes the packet on the worker's core, as the benchmarks' port; memory is the in-memory NIC's queue pair \
         alone, whose other side (the wire's rings on the same core, not counted) feeds it"
            .into(),
    );
    Ok(report)
}

/// Cycles per packet of the in-memory NIC's queues, the wire's work not counted.
fn nic_cost(packet: &[u8], clock: &Tsc, packets: usize) -> Result<f64, IoError> {
    let (mut nic, mut wire) = MemNic::new(MemConfig { mtu: 9_000, ..MemConfig::default() })?;
    let (mut rx, mut tx) = nic.take_queue(0).ok_or(IoError::NoQueue)?;
    let (mut burst, mut frames) = (Vec::with_capacity(BURST), Vec::with_capacity(BURST));
    let mut taken = Vec::new();
    for _ in 0..packets / BURST {
        while frames.len() < BURST {
            let mut frame = MemFrame::new(FrameSize::for_mtu(9_000));
            if !frame.fill(packet) {
                return Err(IoError::NoQueue);
            }
            frames.push(frame);
        }
        wire.offer(&mut frames);
        let begin = clock.ticks();
        let moved = rx.rx_burst(&mut burst, BURST);
        tx.tx_burst(&mut burst);
        let spent = clock.ticks() - begin;
        if moved > 0 {
            taken.push(spent as f64 / moved as f64);
        }
        burst.clear();
        wire.collect(&mut frames, BURST);
        frames.clear();
    }
    taken.sort_by(f64::total_cmp);
    Ok(taken.get(taken.len() / 2).copied().unwrap_or_default())
}
