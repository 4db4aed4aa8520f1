//! A port whose wire is a pair of capture files.

use super::Clock;
use super::reader::{CaptureError, CaptureReader};
use super::writer::{CaptureWriter, Direction};
use crate::frame::Frame;
use crate::mem::{FrameSize, MemFrame, MemPool};
use crate::port::{Port, PortInfo, PortStats, RxQueue, TxQueue};
use packet::MacAddr;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// When captured packets arrive.
#[derive(Clone)]
pub enum Pace {
    /// At once.
    Fast,
    /// With their original distances in time, measured by this clock.
    Original(Clock),
}

/// What the queues report to the port.
#[derive(Debug, Default)]
struct Counts {
    rx_packets: AtomicU64,
    rx_bytes: AtomicU64,
    rx_errors: AtomicU64,
    tx_packets: AtomicU64,
    tx_bytes: AtomicU64,
    tx_errors: AtomicU64,
    at_end: AtomicBool,
    failed: Mutex<Option<CaptureError>>,
}

fn add(count: &AtomicU64, n: u64) {
    // One queue writes it.
    count.store(count.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}

/// Receives the packets of a capture, in order.
pub struct PcapRx {
    reader: CaptureReader<Box<dyn Read + Send>>,
    pace: Pace,
    /// The clock minus the capture's time, set by the first packet.
    shift: Option<i128>,
    /// Read, but not due yet.
    early: Option<(u64, MemFrame)>,
    counts: Arc<Counts>,
}

impl PcapRx {
    /// The next whole packet of the capture; packets that can't be carried are counted and passed over.
    fn read(&mut self) -> Option<(u64, MemFrame)> {
        loop {
            match self.reader.next_packet() {
                Ok(Some(packet)) => {
                    // A packet that the capture cut would be a malformed one.
                    let whole = packet.data.len() == packet.length && !packet.data.is_empty();
                    match MemFrame::copy_of(packet.data) {
                        Some(frame) if whole => return Some((packet.nanos, frame)),
                        _ => add(&self.counts.rx_errors, 1),
                    }
                }
                Ok(None) => {
                    self.counts.at_end.store(true, Ordering::Relaxed);
                    return None;
                }
                Err(error) => {
                    self.counts.at_end.store(true, Ordering::Relaxed);
                    let mut failed = self.counts.failed.lock().unwrap_or_else(PoisonError::into_inner);
                    failed.get_or_insert(error);
                    return None;
                }
            }
        }
    }

    /// Whether a packet captured at `nanos` has arrived.
    fn is_due(&mut self, nanos: u64, now: u64) -> bool {
        let shift = *self.shift.get_or_insert(i128::from(now) - i128::from(nanos));
        i128::from(nanos) + shift <= i128::from(now)
    }
}

impl RxQueue for PcapRx {
    type Frame = MemFrame;

    fn rx_burst(&mut self, into: &mut Vec<MemFrame>, max: usize) -> usize {
        let now = match &self.pace {
            Pace::Fast => None,
            Pace::Original(clock) => Some(clock()),
        };
        let (mut n, mut bytes) = (0, 0);
        while n < max {
            let Some((nanos, frame)) = self.early.take().or_else(|| self.read()) else { break };
            if now.is_some_and(|now| !self.is_due(nanos, now)) {
                self.early = Some((nanos, frame));
                break;
            }
            bytes += frame.len() as u64;
            into.push(frame);
            n += 1;
        }
        add(&self.counts.rx_packets, n as u64);
        add(&self.counts.rx_bytes, bytes);
        n
    }
}

/// Writes what is sent to a capture, or nowhere.
pub struct PcapTx {
    writer: Option<CaptureWriter<Box<dyn Write + Send>>>,
    clock: Clock,
    counts: Arc<Counts>,
}

impl TxQueue for PcapTx {
    type Frame = MemFrame;

    fn tx_burst(&mut self, frames: &mut Vec<MemFrame>) -> usize {
        let now = (self.clock)();
        let n = frames.len();
        for frame in frames.drain(..) {
            let written = match &mut self.writer {
                Some(writer) => writer.write(0, now, Some(Direction::Out), frame.bytes(), None).is_ok(),
                None => true,
            };
            if written {
                add(&self.counts.tx_packets, 1);
                add(&self.counts.tx_bytes, frame.len() as u64);
            } else {
                add(&self.counts.tx_errors, 1);
            }
        }
        n
    }
}

impl Drop for PcapTx {
    fn drop(&mut self) {
        if let Some(writer) = &mut self.writer
            && writer.flush().is_err()
        {
            add(&self.counts.tx_errors, 1);
        }
    }
}

/// A port with one queue pair between capture files.
pub struct PcapPort {
    info: PortInfo,
    pair: Option<(PcapRx, PcapTx)>,
    counts: Arc<Counts>,
    pool: MemPool,
}

impl PcapPort {
    /// Receives from `input`, a pcap or pcapng, and sends to `output` as pcapng (`None`: nowhere). Buffer both yourself
    /// (`BufWriter`) if they are files.
    pub fn new(
        name: &str,
        mac: MacAddr,
        input: Box<dyn Read + Send>,
        pace: Pace,
        output: Option<Box<dyn Write + Send>>,
        clock: Clock,
    ) -> io::Result<Self> {
        let counts = Arc::<Counts>::default();
        let writer = match output {
            Some(output) => {
                let mut writer = CaptureWriter::new(output)?;
                writer.interface(name)?;
                Some(writer)
            }
            None => None,
        };
        let rx = PcapRx {
            reader: CaptureReader::new(input),
            pace,
            shift: None,
            early: None,
            counts: Arc::clone(&counts),
        };
        let tx = PcapTx { writer, clock, counts: Arc::clone(&counts) };
        let info = PortInfo { name: name.into(), mac, mtu: 9000, queues: 1, driver: "pcap".into() };
        Ok(Self { info, pair: Some((rx, tx)), counts, pool: MemPool::new(8192, FrameSize::Jumbo) })
    }

    /// Whether the capture has been read to its (present) end, or to the error that ends it.
    pub fn at_end(&self) -> bool {
        self.counts.at_end.load(Ordering::Relaxed)
    }

    /// Why reading ended before the end.
    pub fn error(&self) -> Option<CaptureError> {
        self.counts.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Port for PcapPort {
    type Frame = MemFrame;
    type Rx = PcapRx;
    type Tx = PcapTx;
    type Pool = MemPool;

    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn take_queue(&mut self, queue: u16) -> Option<(PcapRx, PcapTx)> {
        if queue == 0 { self.pair.take() } else { None }
    }

    fn pool(&mut self, _queue: u16) -> MemPool {
        self.pool.clone()
    }

    fn link_up(&self) -> bool {
        true
    }

    fn stats(&self) -> PortStats {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { rx_packets, rx_bytes, rx_errors, tx_packets, tx_bytes, tx_errors, .. } = &*self.counts;
        PortStats {
            rx_packets: get(rx_packets),
            rx_bytes: get(rx_bytes),
            rx_missed: 0,
            rx_errors: get(rx_errors),
            tx_packets: get(tx_packets),
            tx_bytes: get(tx_bytes),
            tx_errors: get(tx_errors),
        }
    }
}
