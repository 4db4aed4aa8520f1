//! A capture of what goes through any port.

use super::Clock;
use super::writer::{CaptureWriter, Direction};
use crate::frame::Frame;
use crate::port::{Member, Port, PortInfo, PortStats, RxQueue, TxQueue};
use crate::steering::{Duty, Steering};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

struct State {
    writer: CaptureWriter<Box<dyn Write + Send>>,
    limit: u64,
    left_out: u64,
    failed: Option<String>,
}

/// A capture that several queues and ports write to. It takes a lock per burst: a tool for looking, not for full speed.
#[derive(Clone)]
pub struct Recorder {
    state: Arc<Mutex<State>>,
    clock: Clock,
}

impl Recorder {
    /// Records into `output`, at most about `limit` bytes; what comes later is only counted.
    pub fn new(output: Box<dyn Write + Send>, limit: u64, clock: Clock) -> io::Result<Self> {
        let state = State { writer: CaptureWriter::new(output)?, limit, left_out: 0, failed: None };
        Ok(Self { state: Arc::new(Mutex::new(state)), clock })
    }

    /// `port`, with all that its queues carry recorded under its name.
    pub fn record<P: Port>(&self, port: P) -> io::Result<RecordedPort<P>> {
        let interface = self.with(|state| state.writer.interface(&port.info().name))?;
        Ok(RecordedPort { port, tap: Tap { recorder: self.clone(), interface } })
    }

    /// Packets left out because of the limit or an error.
    pub fn left_out(&self) -> u64 {
        self.with(|state| state.left_out)
    }

    /// The error that ended recording, if one did.
    pub fn error(&self) -> Option<String> {
        self.with(|state| state.failed.clone())
    }

    /// Hands everything recorded so far to the output.
    pub fn flush(&self) -> io::Result<()> {
        self.with(|state| state.writer.flush())
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn write(&mut self, interface: u32, nanos: u64, direction: Direction, packet: &[u8]) {
        if self.failed.is_some() || self.writer.written() + packet.len() as u64 > self.limit {
            self.left_out += 1;
        } else if let Err(error) = self.writer.write(interface, nanos, Some(direction), packet, None) {
            self.failed = Some(error.to_string());
            self.left_out += 1;
        }
    }
}

/// A recorder and the interface under which one port's packets go.
#[derive(Clone)]
struct Tap {
    recorder: Recorder,
    interface: u32,
}

impl Tap {
    fn write<'a>(&self, direction: Direction, packets: impl Iterator<Item = &'a [u8]>) {
        let now = (self.recorder.clock)();
        self.recorder.with(|state| {
            for packet in packets {
                state.write(self.interface, now, direction, packet);
            }
        });
    }
}

/// A port whose traffic is recorded; otherwise the port it was.
pub struct RecordedPort<P> {
    port: P,
    tap: Tap,
}

/// A receive queue that is recorded.
pub struct RecordedRx<R> {
    queue: R,
    tap: Tap,
}

impl<R: RxQueue> RxQueue for RecordedRx<R> {
    type Frame = R::Frame;

    fn rx_burst(&mut self, into: &mut Vec<R::Frame>, max: usize) -> usize {
        let before = into.len();
        let n = self.queue.rx_burst(into, max);
        if n > 0 {
            self.tap.write(Direction::In, into.iter().skip(before).map(Frame::bytes));
        }
        n
    }
}

/// A transmit queue that is recorded.
pub struct RecordedTx<T> {
    queue: T,
    tap: Tap,
    /// The packets of the burst under way, one after the other, and where each ends: which of them are sent is known only
    /// when they are gone.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl<T: TxQueue> TxQueue for RecordedTx<T> {
    type Frame = T::Frame;

    fn tx_burst(&mut self, frames: &mut Vec<T::Frame>) -> usize {
        self.bytes.clear();
        self.ends.clear();
        for frame in frames.iter() {
            self.bytes.extend_from_slice(frame.bytes());
            self.ends.push(self.bytes.len());
        }
        let n = self.queue.tx_burst(frames);
        if n > 0 {
            let mut start = 0;
            let packets = self.ends.iter().take(n).map(|&end| {
                let packet = self.bytes.get(start..end).unwrap_or_default();
                start = end;
                packet
            });
            self.tap.write(Direction::Out, packets);
        }
        n
    }
}

impl<P: Port> Port for RecordedPort<P> {
    type Frame = P::Frame;
    type Rx = RecordedRx<P::Rx>;
    type Tx = RecordedTx<P::Tx>;
    type Pool = P::Pool;

    fn info(&self) -> &PortInfo {
        self.port.info()
    }

    fn take_queue(&mut self, queue: u16) -> Option<(Self::Rx, Self::Tx)> {
        let (rx, tx) = self.port.take_queue(queue)?;
        let rx = RecordedRx { queue: rx, tap: self.tap.clone() };
        Some((rx, RecordedTx { queue: tx, tap: self.tap.clone(), bytes: Vec::new(), ends: Vec::new() }))
    }

    fn steering(&self) -> Option<&Steering> {
        self.port.steering()
    }

    fn take_steered(&mut self, duty: Duty, queue: u16) -> Option<Self::Rx> {
        let rx = self.port.take_steered(duty, queue)?;
        Some(RecordedRx { queue: rx, tap: self.tap.clone() })
    }

    fn pool(&mut self, queue: u16) -> P::Pool {
        self.port.pool(queue)
    }

    fn frames(&self) -> Option<usize> {
        self.port.frames()
    }

    fn link_up(&self) -> bool {
        self.port.link_up()
    }

    fn members(&self) -> Vec<Member> {
        self.port.members()
    }

    fn remarks(&self) -> Vec<String> {
        self.port.remarks()
    }

    fn stats(&self) -> PortStats {
        self.port.stats()
    }
}
