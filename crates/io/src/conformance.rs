//! One test body for every backend.
//!
//! A backend that passes behaves as [`Port`] and [`Frame`] say: it carries every length it claims byte for byte and in
//! order, its frames grow and shrink at both ends, its pool runs dry and recovers without losing a buffer, and its
//! counters agree with what was carried. [`run`] is called from a backend's tests with the [`Wiring`] that reaches the
//! other end of the port's cable. It panics nowhere: what is wrong comes back as a [`Failure`].

use crate::frame::{Frame, FramePool};
use crate::port::{BURST, Port, RxQueue, TxQueue};
use packet::MacAddr;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The other end of the cable.
pub trait FarSide {
    /// Sends `packet` into the port. May wait while the port's queue is full; packets arrive in order.
    fn inject(&mut self, packet: &[u8]);
    /// What the port has sent and wasn't collected yet, in order. May be empty; must not wait long.
    fn collect(&mut self) -> Vec<Vec<u8>>;
}

/// What the port is connected to.
pub enum Wiring<'a> {
    /// Something that sends and receives independently.
    Far(&'a mut dyn FarSide),
    /// Itself: what is sent on queue 0 is received on queue 0.
    Loop,
}

/// What to expect of a backend.
#[derive(Clone, Copy, Debug)]
pub struct Expect {
    /// Ethernet frame lengths to carry, without FCS.
    pub shortest: usize,
    /// The longest length.
    pub longest: usize,
    /// Whether received frames have the 128 B of headroom that a tunnel header needs.
    pub rx_headroom: usize,
    /// Whether the device counts bytes too.
    pub counts_bytes: bool,
    /// How long a packet may take.
    pub patience: Duration,
}

impl Default for Expect {
    fn default() -> Self {
        Self {
            shortest: 60,
            longest: 1514,
            rx_headroom: 128,
            counts_bytes: true,
            patience: Duration::from_secs(2),
        }
    }
}

/// What a backend does not do as it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{check}: {detail}")]
pub struct Failure {
    /// The check that failed.
    pub check: &'static str,
    /// What was seen instead.
    pub detail: String,
}

/// What was carried when everything passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Packets received and compared.
    pub received: u64,
    /// Packets sent, collected and compared.
    pub sent: u64,
    /// Frames that the pool handed out before it ran dry.
    pub pool_frames: usize,
}

fn ensure(ok: bool, check: &'static str, detail: impl FnOnce() -> String) -> Result<(), Failure> {
    if ok { Ok(()) } else { Err(Failure { check, detail: detail() }) }
}

/// "Local experimental" (IEEE Std 802): no kernel answers it, and it tells our packets from a kernel's own chatter.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
const MAGIC: [u8; 4] = *b"CNFM";

/// Packet `number` of length `len`: its bytes follow from both, so that any mix-up shows.
fn packet(to: MacAddr, number: u32, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    bytes.extend_from_slice(&to.0);
    bytes.extend_from_slice(&[0x02, 0x43, 0x4e, 0x46, 0x4d, 0x01]);
    bytes.extend_from_slice(&ETHERTYPE);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&number.to_be_bytes());
    let mut state = number.wrapping_mul(0x9e37_79b9) ^ len as u32;
    while bytes.len() < len {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bytes.push((state >> 24) as u8);
    }
    bytes.truncate(len);
    bytes
}

/// Whether a packet is one of ours.
fn is_ours(bytes: &[u8]) -> bool {
    bytes.get(12..14) == Some(&ETHERTYPE) && bytes.get(14..18) == Some(&MAGIC)
}

fn number_of(bytes: &[u8]) -> Option<u32> {
    bytes.get(18..22)?.first_chunk().copied().map(u32::from_be_bytes)
}

fn compare(check: &'static str, got: &[u8], expected: &[u8]) -> Result<(), Failure> {
    ensure(got == expected, check, || {
        let differs = got.iter().zip(expected).position(|(a, b)| a != b);
        format!(
            "packet {:?} of {} bytes expected, got packet {:?} of {} bytes, first difference at {differs:?}",
            number_of(expected),
            expected.len(),
            number_of(got),
            got.len(),
        )
    })
}

/// The port under test, taken apart.
struct Rig<'a, P: Port> {
    rx: P::Rx,
    tx: P::Tx,
    pool: P::Pool,
    wiring: Wiring<'a>,
    collected: VecDeque<Vec<u8>>,
    to: MacAddr,
    expect: Expect,
    number: u32,
    report: Report,
}

impl<P: Port> Rig<'_, P> {
    fn next(&mut self, len: usize) -> Vec<u8> {
        self.number += 1;
        packet(self.to, self.number, len)
    }

    /// Brings packets to the port's receive side.
    fn deliver(&mut self, packets: &[Vec<u8>]) -> Result<(), Failure> {
        match &mut self.wiring {
            Wiring::Far(far) => {
                for packet in packets {
                    far.inject(packet);
                }
                Ok(())
            }
            Wiring::Loop => self.send_own(packets),
        }
    }

    /// Sends copies of packets in frames of the pool.
    fn send_own(&mut self, packets: &[Vec<u8>]) -> Result<(), Failure> {
        let mut frames = Vec::with_capacity(packets.len());
        for bytes in packets {
            let mut frame = self.pool.alloc().ok_or_else(|| Failure {
                check: "pool",
                detail: "no frame although few are in use".into(),
            })?;
            ensure(frame.is_empty() && frame.headroom() >= 128, "pool", || {
                format!("a new frame has {} bytes, {} of headroom", frame.len(), frame.headroom())
            })?;
            ensure(frame.append(bytes.len()), "append", || format!("no room for {} bytes", bytes.len()))?;
            frame.bytes_mut().copy_from_slice(bytes);
            frames.push(frame);
        }
        self.send(frames)
    }

    fn send(&mut self, mut frames: Vec<P::Frame>) -> Result<(), Failure> {
        let deadline = Instant::now() + self.expect.patience;
        while !frames.is_empty() {
            let before = frames.len();
            let n = self.tx.tx_burst(&mut frames);
            ensure(before == frames.len() + n, "tx_burst", || {
                format!("took {} frames but said {n}", before - frames.len())
            })?;
            ensure(Instant::now() < deadline, "tx_burst", || format!("{} frames never taken", frames.len()))?;
            if n == 0 {
                // A far side that is read only here has to be, or its ring stays full.
                self.drain_far();
                std::thread::yield_now();
            }
        }
        Ok(())
    }

    fn drain_far(&mut self) {
        if let Wiring::Far(far) = &mut self.wiring {
            self.collected.extend(far.collect().into_iter().filter(|bytes| is_ours(bytes)));
        }
    }

    /// Receives `n` of our packets, at most `max` a burst.
    fn receive(&mut self, n: usize, max: usize) -> Result<Vec<P::Frame>, Failure> {
        let deadline = Instant::now() + self.expect.patience;
        let mut frames = Vec::with_capacity(n + BURST);
        let mut burst = Vec::with_capacity(BURST);
        while frames.len() < n {
            let got = self.rx.rx_burst(&mut burst, max);
            ensure(got == burst.len() && got <= max, "rx_burst", || {
                format!("said {got} and appended {} of at most {max}", burst.len())
            })?;
            frames.extend(burst.drain(..).filter(|frame: &P::Frame| is_ours(frame.bytes())));
            if got == 0 {
                ensure(Instant::now() < deadline, "rx_burst", || {
                    format!("{} of {n} packets arrived", frames.len())
                })?;
                std::thread::yield_now();
            }
        }
        self.report.received += frames.len() as u64;
        Ok(frames)
    }

    /// The next `n` of our packets that the port sent, as the other end sees them.
    fn collect(&mut self, n: usize) -> Result<Vec<Vec<u8>>, Failure> {
        let deadline = Instant::now() + self.expect.patience;
        let packets: Vec<Vec<u8>> = if matches!(self.wiring, Wiring::Loop) {
            self.receive(n, BURST)?.iter().map(|frame| frame.bytes().to_vec()).collect()
        } else {
            loop {
                self.drain_far();
                if self.collected.len() >= n {
                    break self.collected.drain(..n).collect();
                }
                ensure(Instant::now() < deadline, "collect", || {
                    format!("{} of {n} packets came out", self.collected.len())
                })?;
                std::thread::yield_now();
            }
        };
        self.report.sent += n as u64;
        Ok(packets)
    }

    /// Every length, received, byte for byte and in order.
    fn check_receive(&mut self) -> Result<(), Failure> {
        let lengths: Vec<usize> = self.lengths();
        for chunk in lengths.chunks(BURST / 2) {
            let packets: Vec<_> = chunk.iter().map(|&len| self.next(len)).collect();
            self.deliver(&packets)?;
            let frames = self.receive(packets.len(), BURST)?;
            for (frame, expected) in frames.iter().zip(&packets) {
                compare("receive", frame.bytes(), expected)?;
                ensure(frame.len() == expected.len(), "len", || format!("{}", frame.len()))?;
                ensure(frame.headroom() >= self.expect.rx_headroom, "headroom", || {
                    format!("a received frame has {} bytes", frame.headroom())
                })?;
            }
        }
        Ok(())
    }

    /// Every length, sent from the pool's frames.
    fn check_send(&mut self) -> Result<(), Failure> {
        let lengths: Vec<usize> = self.lengths();
        for chunk in lengths.chunks(BURST / 2) {
            let packets: Vec<_> = chunk.iter().map(|&len| self.next(len)).collect();
            self.send_own(&packets)?;
            for (got, expected) in self.collect(packets.len())?.iter().zip(&packets) {
                compare("send", got, expected)?;
            }
        }
        Ok(())
    }

    /// All short lengths, where padding and copy tails go wrong, then every 61st and the longest.
    fn lengths(&self) -> Vec<usize> {
        let Expect { shortest, longest, .. } = self.expect;
        let mut lengths: Vec<usize> = (shortest..=longest.min(shortest + 300)).collect();
        lengths.extend((shortest + 300..=longest).step_by(61));
        lengths.extend(longest.saturating_sub(3).max(shortest)..=longest);
        lengths
    }

    /// Received frames changed at both ends and sent again: what a tunnel endpoint does.
    fn check_forward(&mut self) -> Result<(), Failure> {
        let packets: Vec<_> = (0..40).map(|i| self.next(200 + i)).collect();
        self.deliver(&packets)?;
        let mut frames = self.receive(packets.len(), BURST)?;
        let mut expected = Vec::new();
        for (i, (frame, packet)) in frames.iter_mut().zip(&packets).enumerate() {
            // Give the first 30 bytes of payload another 14 + 8 in front by moving the header, cut 5 off, add 3.
            let (head, room) = (packet.get(..22).unwrap_or_default(), frame.headroom());
            frame.trim_front(22 + 10);
            ensure(frame.headroom() == room + 32, "trim_front", || format!("{}", frame.headroom()))?;
            ensure(frame.prepend(22 + i), "prepend", || format!("{} bytes of headroom", frame.headroom()))?;
            let body = packet.get(32..packet.len() - 5).unwrap_or_default();
            frame.truncate(22 + i + body.len());
            ensure(frame.append(3), "append", || format!("{} bytes of tailroom", frame.tailroom()))?;
            let mut want = head.to_vec();
            want.resize(22 + i, 0x11);
            want.extend_from_slice(body);
            want.extend_from_slice(b"end");
            ensure(frame.len() == want.len(), "len", || {
                format!("{} instead of {}", frame.len(), want.len())
            })?;
            for (at, (byte, want)) in frame.bytes_mut().iter_mut().zip(&want).enumerate() {
                let kept = at >= 22 + i && at < 22 + i + body.len();
                ensure(!kept || byte == want, "prepend", || format!("byte {at} of packet {i} changed"))?;
                *byte = *want;
            }
            expected.push(want);
        }
        self.send(frames)?;
        for (got, expected) in self.collect(expected.len())?.iter().zip(&expected) {
            compare("forward", got, expected)?;
        }
        Ok(())
    }

    /// What a frame refuses.
    fn check_frame(&mut self) -> Result<(), Failure> {
        let mut frame = self
            .pool
            .alloc()
            .ok_or_else(|| Failure { check: "pool", detail: "no frame although none is in use".into() })?;
        let (head, tail) = (frame.headroom(), frame.tailroom());
        ensure(
            tail >= self.pool.capacity() && self.pool.capacity() >= self.expect.longest,
            "capacity",
            || format!("{tail} bytes of tailroom, capacity {}", self.pool.capacity()),
        )?;
        ensure(!frame.prepend(head + 1) && frame.is_empty(), "prepend", || "took more than there is".into())?;
        ensure(!frame.append(tail + 1) && frame.is_empty(), "append", || "took more than there is".into())?;
        ensure(!frame.prepend(usize::MAX) && !frame.append(usize::MAX), "prepend", || "overflow".into())?;
        ensure(frame.prepend(head) && frame.append(tail), "append", || "refused what there is".into())?;
        ensure(
            frame.len() == head + tail && frame.bytes().len() == head + tail && frame.headroom() == 0,
            "len",
            || format!("{} bytes instead of {}", frame.len(), head + tail),
        )?;
        frame.truncate(usize::MAX);
        ensure(frame.len() == head + tail, "truncate", || "changed a shorter packet".into())?;
        frame.truncate(10);
        frame.trim_front(11);
        ensure(frame.is_empty() && frame.bytes().is_empty(), "trim_front", || format!("{}", frame.len()))
    }

    /// The pool ends, comes back, and has lost nothing; so have the queues.
    fn check_pool(&mut self) -> Result<(), Failure> {
        const ABSURD: usize = 4 << 20;
        let exhaust = |pool: &mut P::Pool| -> Vec<P::Frame> {
            std::iter::from_fn(|| pool.alloc()).take(ABSURD).collect()
        };
        let mut all = exhaust(&mut self.pool);
        let frames = all.len();
        ensure((1..ABSURD).contains(&frames), "pool", || format!("{frames} frames and no end"))?;
        all.pop();
        let again = self.pool.alloc();
        ensure(again.is_some(), "pool", || "a frame that was dropped did not come back".into())?;
        drop((again, all));
        let second = exhaust(&mut self.pool).len();
        ensure(second == frames, "pool", || format!("{frames} frames at first, then {second}"))?;
        self.report.pool_frames = frames;
        Ok(())
    }

    fn check_bursts(&mut self) -> Result<(), Failure> {
        let mut none = Vec::new();
        ensure(self.tx.tx_burst(&mut none) == 0, "tx_burst", || "took frames that there weren't".into())?;
        let packets: Vec<_> = (0..10).map(|_| self.next(64)).collect();
        self.deliver(&packets)?;
        ensure(self.rx.rx_burst(&mut none, 0) == 0 && none.is_empty(), "rx_burst", || "more than 0".into())?;
        for (frame, expected) in self.receive(10, 3)?.iter().zip(&packets) {
            compare("rx_burst of 3", frame.bytes(), expected)?;
        }
        Ok(())
    }
}

/// Puts `port` through everything; queue 0 carries the traffic, and it and its pool are used up.
pub fn run<P: Port>(port: &mut P, wiring: Wiring<'_>, expect: Expect) -> Result<Report, Failure> {
    let info = port.info().clone();
    ensure(info.queues >= 1 && !info.driver.is_empty(), "info", || format!("{info:?}"))?;
    ensure(port.link_up(), "link_up", || "the link is down".into())?;
    ensure(port.take_queue(info.queues).is_none(), "take_queue", || "gave a queue that isn't there".into())?;
    let (rx, tx) = port
        .take_queue(0)
        .ok_or_else(|| Failure { check: "take_queue", detail: "queue 0 is missing".into() })?;
    ensure(port.take_queue(0).is_none(), "take_queue", || "gave queue 0 twice".into())?;
    let pool = port.pool(0);
    let mut rig: Rig<'_, P> = Rig {
        rx,
        tx,
        pool,
        wiring,
        collected: VecDeque::new(),
        to: info.mac,
        expect,
        number: 0,
        report: Report::default(),
    };
    let before = port.stats();
    rig.check_frame()?;
    rig.check_bursts()?;
    rig.check_receive()?;
    rig.check_send()?;
    rig.check_forward()?;
    rig.check_pool()?;
    // Everything still works after the pool was dry, and nothing was lost meanwhile.
    rig.check_receive()?;
    rig.check_forward()?;
    rig.check_pool()?;
    let (stats, report) = (port.stats(), rig.report);
    // A kernel on the other end sends things of its own, so the device may have counted more.
    ensure(
        stats.rx_packets - before.rx_packets >= report.received
            && stats.tx_packets - before.tx_packets >= report.sent
            && (!expect.counts_bytes
                || stats.rx_bytes - before.rx_bytes >= report.received * expect.shortest as u64
                    && stats.tx_bytes - before.tx_bytes >= report.sent * expect.shortest as u64),
        "stats",
        || format!("{stats:?} after {report:?}"),
    )?;
    ensure(stats.tx_errors == before.tx_errors, "stats", || format!("{} send errors", stats.tx_errors))?;
    Ok(report)
}
