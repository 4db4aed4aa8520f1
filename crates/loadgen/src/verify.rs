//! The judge: is what came out of the UPF what had to come out?
//!
//! Every packet is read header by header, its tunnel compared with its session's, and its number entered into its
//! stream's account (loss, repetition, order). A sample ([`VerifierConfig::sample_every`]) is also compared byte for
//! byte with the packet written anew from its stamp, its checksums verified, and its link-layer and outer addresses
//! compared. A packet that is wrong counts as faulty *and* as arrived: "lost" means that nothing came.

use crate::decode::{self, Fault, IpUdp, Layer};
use crate::imix::Family;
use crate::latency::Latencies;
use crate::payload::{Direction, Stamp, StreamId};
use crate::traffic::{Flows, HOPS};
use packet::MacAddr;
use std::fmt::Write as _;
use tables::Nanos;

/// How far behind the newest packet of its stream one can be recognised as a repetition.
const WINDOW: u32 = 64;
/// Bytes of a faulty frame that are kept.
const KEPT_BYTES: usize = 160;

/// What the verifier does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VerifierConfig {
    /// Every n-th packet of each direction is compared byte for byte; 1: all, 0: none.
    pub sample_every: u32,
    /// Faulty packets kept with their bytes; the rest is counted.
    pub keep_faults: usize,
    /// How much less TTL and hop limit must be, uplink.
    pub uplink_hops: Hops,
    /// Likewise, downlink.
    pub downlink_hops: Hops,
}

impl Default for VerifierConfig {
    /// One of 64 compared, 16 faults kept, one hop each way.
    fn default() -> Self {
        Self {
            sample_every: 64,
            keep_faults: 16,
            uplink_hops: Hops::Exactly(1),
            downlink_hops: Hops::AtMost(1),
        }
    }
}

/// By how much forwarding may lower TTL or hop limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hops {
    /// By this.
    Exactly(u8),
    /// By this or less: on N3 a UPF may see itself as the tunnel's end only.
    AtMost(u8),
}

impl Hops {
    const fn allow(self, found: u8) -> bool {
        match self {
            Self::Exactly(hops) => found == HOPS.saturating_sub(hops),
            Self::AtMost(hops) => found <= HOPS && found >= HOPS.saturating_sub(hops),
        }
    }
}

/// What a packet meant for its stream's account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// Arrived for the first time.
    Fresh,
    /// Arrived before.
    Repeated,
    /// Belongs to no stream.
    Stray,
}

/// One direction's account.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Account {
    /// Packets that arrived, repetitions and faulty ones included.
    pub packets: u64,
    /// Bytes of their inner IP packets.
    pub bytes: u64,
    /// Different packets of our streams.
    pub unique: u64,
    /// Packets that arrived again.
    pub repeated: u64,
    /// Packets that arrived after a later one of their stream.
    pub reordered: u64,
    /// Packets compared byte for byte.
    pub compared: u64,
    /// Packets with a fault.
    pub faulty: u64,
}

/// A faulty packet.
#[derive(Clone, Debug, serde::Serialize)]
pub struct FaultRecord {
    /// Where it was going.
    pub direction: Direction,
    /// The session's index and the sequence number, if the packet got that far.
    pub packet: Option<(u32, u32)>,
    /// What is wrong, in words.
    pub fault: String,
    /// Its first bytes in hexadecimal.
    pub hex: String,
}

#[derive(Clone, Copy, Debug, Default)]
struct StreamAccount {
    /// One more than the highest number seen.
    next: u32,
    /// Bit `i`: number `next - 1 - i` was seen.
    seen: u64,
}

/// Checks what comes out of both sides of a UPF.
#[derive(Debug)]
pub struct Verifier {
    config: VerifierConfig,
    accounts: [Account; 2],
    latencies: [Latencies; 2],
    streams: Vec<StreamAccount>,
    until_sample: [u32; 2],
    faults: Vec<FaultRecord>,
    scratch: Vec<u8>,
}

impl Verifier {
    /// A verifier that has seen nothing of `sessions` sessions.
    pub fn new(config: VerifierConfig, sessions: u32) -> Self {
        Self {
            config,
            accounts: Default::default(),
            latencies: Default::default(),
            streams: vec![StreamAccount::default(); sessions as usize * 4],
            until_sample: [1; 2],
            faults: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Checks a frame that the UPF sent on N6 at time `now`: an uplink packet.
    pub fn check_n6(&mut self, flows: &Flows, frame: &[u8], now: Nanos) -> Arrival {
        let compare = self.sample(Direction::Uplink);
        let network = flows.network();
        let mut found = None;
        let outcome = decode::ethernet(frame).and_then(|ethernet| {
            let inner = decode::ip_udp(ethernet.payload, Layer::InnerIp, Layer::InnerUdp, true)?;
            let (stamp, sent_len) = flows.payloads().stamp(inner.payload).ok_or(Fault::NotOurs)?;
            found = Some((stamp, inner.packet.len()));
            check_stream(flows, stamp, Direction::Uplink, &inner)?;
            check_size(&inner, sent_len)?;
            if compare {
                check_link(&ethernet, network.dn.mac, network.upf_n6_mac, &inner)?;
                compare_inner(flows, stamp, &inner, self.config.uplink_hops, &mut self.scratch)?;
            }
            Ok(())
        });
        self.settle(flows, Direction::Uplink, found, outcome, frame, now)
    }

    /// Checks a frame that the UPF sent on N3 at time `now`: a downlink packet in its tunnel.
    pub fn check_n3(&mut self, flows: &Flows, frame: &[u8], now: Nanos) -> Arrival {
        let compare = self.sample(Direction::Downlink);
        let mut found = None;
        let outcome = decode::ethernet(frame).and_then(|ethernet| {
            let outer = decode::ip_udp(ethernet.payload, Layer::OuterIp, Layer::OuterUdp, true)?;
            let tunnelled = decode::gtpu(&outer)?;
            let inner = decode::ip_udp(tunnelled.inner, Layer::InnerIp, Layer::InnerUdp, false)?;
            let (stamp, sent_len) = flows.payloads().stamp(inner.payload).ok_or(Fault::NotOurs)?;
            found = Some((stamp, inner.packet.len()));
            check_stream(flows, stamp, Direction::Downlink, &inner)?;
            let wrong = Fault::WrongStream(stamp.stream.0);
            let (teid, qfi) = flows.downlink_tunnel(stamp.stream.session()).ok_or(wrong)?;
            if tunnelled.teid != teid {
                return Err(Fault::Teid { expected: teid, found: tunnelled.teid });
            }
            if tunnelled.qfi != qfi {
                return Err(Fault::Qfi { expected: qfi, found: tunnelled.qfi });
            }
            check_size(&inner, sent_len)?;
            if compare {
                let path = flows.path(stamp.stream.session()).ok_or(wrong)?;
                check_link(&ethernet, path.gnb_mac, flows.network().upf_n3_mac, &outer)?;
                for (expected, found) in [(path.upf, outer.source), (path.gnb, outer.destination)] {
                    if expected != found {
                        return Err(Fault::OuterAddress { expected, found });
                    }
                }
                if outer.hops == 0 {
                    return Err(Fault::Field { layer: Layer::OuterIp, field: "TTL or hop limit", found: 0 });
                }
                outer.check_sums(Layer::OuterIp, Layer::OuterUdp)?;
                compare_inner(flows, stamp, &inner, self.config.downlink_hops, &mut self.scratch)?;
            }
            Ok(())
        });
        self.settle(flows, Direction::Downlink, found, outcome, frame, now)
    }

    fn sample(&mut self, direction: Direction) -> bool {
        if self.config.sample_every == 0 {
            return false;
        }
        let left = &mut self.until_sample[direction as usize];
        *left -= 1;
        if *left > 0 {
            return false;
        }
        *left = self.config.sample_every;
        self.accounts[direction as usize].compared += 1;
        true
    }

    fn settle(
        &mut self,
        flows: &Flows,
        direction: Direction,
        found: Option<(Stamp, usize)>,
        outcome: Result<(), Fault>,
        frame: &[u8],
        now: Nanos,
    ) -> Arrival {
        let account = &mut self.accounts[direction as usize];
        account.packets += 1;
        let mut arrival = Arrival::Stray;
        // A damaged stamp can name anything: only a number that was given out to a stream of this direction counts.
        if let Some((stamp, ip_len)) = found
            && stamp.stream.direction() == direction
            && stamp.sequence < flows.made(stamp.stream)
            && let Some(stream) = self.streams.get_mut(stamp.stream.0 as usize)
        {
            account.bytes += ip_len as u64;
            arrival = stream.enter(stamp.sequence, account);
            if outcome.is_ok() {
                self.latencies[direction as usize].record(now.since(stamp.sent));
            }
        }
        if let Err(fault) = outcome {
            account.faulty += 1;
            if self.faults.len() < self.config.keep_faults {
                self.faults.push(record_of(direction, found, fault, frame));
            }
        }
        arrival
    }

    /// One direction's account.
    pub const fn account(&self, direction: Direction) -> &Account {
        &self.accounts[direction as usize]
    }

    /// One direction's latencies, of packets without fault.
    pub const fn latencies(&self, direction: Direction) -> &Latencies {
        &self.latencies[direction as usize]
    }

    /// Forgets the latencies so far (a warm-up's, say).
    pub fn clear_latencies(&mut self) {
        self.latencies.iter_mut().for_each(Latencies::clear);
    }

    /// The first faulty packets, at most [`VerifierConfig::keep_faults`].
    pub fn faults(&self) -> &[FaultRecord] {
        &self.faults
    }
}

impl StreamAccount {
    fn enter(&mut self, sequence: u32, account: &mut Account) -> Arrival {
        let ahead = sequence.wrapping_sub(self.next);
        if sequence >= self.next {
            self.seen = if ahead >= WINDOW - 1 { 0 } else { self.seen << (ahead + 1) };
            self.seen |= 1;
            self.next = sequence + 1;
            account.unique += 1;
            return Arrival::Fresh;
        }
        let age = self.next - 1 - sequence;
        let bit = 1_u64.checked_shl(age).unwrap_or(0);
        if self.seen & bit != 0 {
            account.repeated += 1;
            return Arrival::Repeated;
        }
        // Beyond the window nobody remembers whether it came before; it is taken for late.
        self.seen |= bit;
        account.reordered += 1;
        account.unique += 1;
        Arrival::Fresh
    }
}

/// The stamp names a packet that was sent, in this direction, between these addresses' IP version.
fn check_stream(flows: &Flows, stamp: Stamp, direction: Direction, inner: &IpUdp<'_>) -> Result<(), Fault> {
    let StreamId(number) = stamp.stream;
    let family = if inner.source.is_ipv4() { Family::V4 } else { Family::V6 };
    if stamp.stream.direction() != direction
        || stamp.stream.family() != family
        || !flows.carries(stamp.stream.session(), family)
    {
        return Err(Fault::WrongStream(number));
    }
    if stamp.sequence >= flows.made(stamp.stream) {
        return Err(Fault::NeverSent(stamp.sequence));
    }
    Ok(())
}

fn check_size(inner: &IpUdp<'_>, sent: usize) -> Result<(), Fault> {
    let found = inner.payload.len();
    if found == sent { Ok(()) } else { Err(Fault::Resized { sent, found }) }
}

fn check_link(frame: &decode::Ethernet<'_>, to: MacAddr, from: MacAddr, ip: &IpUdp<'_>) -> Result<(), Fault> {
    if frame.destination != to {
        return Err(Fault::EthernetDestination { expected: to, found: frame.destination });
    }
    if frame.source != from {
        return Err(Fault::EthernetSource { expected: from, found: frame.source });
    }
    let expected = if ip.source.is_ipv4() { 0x0800 } else { 0x86dd };
    if frame.ethertype == expected { Ok(()) } else { Err(Fault::EtherType(frame.ethertype)) }
}

/// Writes the packet anew and compares; TTL and IPv4 header checksum are those that forwarding must have made.
fn compare_inner(
    flows: &Flows,
    stamp: Stamp,
    inner: &IpUdp<'_>,
    hops: Hops,
    scratch: &mut Vec<u8>,
) -> Result<(), Fault> {
    if !hops.allow(inner.hops) {
        return Err(Fault::Hops { sent: HOPS, found: inner.hops });
    }
    inner.check_sums(Layer::InnerIp, Layer::InnerUdp)?;
    scratch.clear();
    scratch.resize(inner.packet.len(), 0);
    if !flows.write_inner(stamp, scratch) {
        return Err(Fault::WrongStream(stamp.stream.0));
    }
    // The checksum was verified over the bytes that arrived, so that with all other bytes equal it is the right one.
    let forgiven: &[usize] = if inner.source.is_ipv4() { &[8, 10, 11] } else { &[7] };
    for &offset in forgiven {
        if let (Some(expected), Some(&found)) = (scratch.get_mut(offset), inner.packet.get(offset)) {
            *expected = found;
        }
    }
    if inner.packet == scratch.as_slice() {
        return Ok(());
    }
    let differing =
        inner.packet.iter().zip(scratch.iter()).enumerate().find(|(_, (found, expected))| found != expected);
    match differing {
        Some((offset, (&found, &expected))) => Err(Fault::Content { offset, expected, found }),
        None => Ok(()),
    }
}

fn record_of(direction: Direction, found: Option<(Stamp, usize)>, fault: Fault, frame: &[u8]) -> FaultRecord {
    let mut hex = String::with_capacity(KEPT_BYTES * 2);
    for byte in frame.iter().take(KEPT_BYTES) {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    FaultRecord {
        direction,
        packet: found.map(|(stamp, _)| (stamp.stream.session(), stamp.sequence)),
        fault: fault.to_string(),
        hex,
    }
}
