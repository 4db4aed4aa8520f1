//! The verifier accepts what a right UPF makes and finds every way of making it wrong.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::{ALL_TYPES, PerfectUpf, facts, network};
use loadgen::facts::{PduType, SessionMix};
use loadgen::imix::Family;
use loadgen::payload::{Direction, MAX_IP_LEN, Stamp, StreamId};
use loadgen::traffic::{FlowError, Flows};
use loadgen::verify::{Arrival, Verifier, VerifierConfig};
use packet::{Qfi, Teid};
use proptest::prelude::*;
use tables::Nanos;

const SENT: Nanos = Nanos(5_000_000_000);
const NOW: Nanos = Nanos(5_000_012_345);
const ALL: VerifierConfig = VerifierConfig {
    sample_every: 1,
    keep_faults: 4,
    uplink_hops: loadgen::verify::Hops::Exactly(1),
    downlink_hops: loadgen::verify::Hops::AtMost(1),
};

struct Bench {
    flows: Flows,
    upf: PerfectUpf,
    verifier: Verifier,
}

impl Bench {
    fn new(outer_v6: bool, config: VerifierConfig) -> Self {
        let network = network(outer_v6);
        let facts = facts(&network, SessionMix { ipv4: 1, ipv6: 1, ipv4v6: 1 }, 30);
        let flows = Flows::new(&facts, &network, 7).unwrap();
        Self {
            upf: PerfectUpf::new(&network, &facts),
            verifier: Verifier::new(config, flows.sessions()),
            flows,
        }
    }

    /// Makes the stream's next packet and passes it through the UPF.
    fn pass(&mut self, stream: StreamId, ip_len: u16) -> Vec<u8> {
        let stamp = Stamp { stream, sequence: self.flows.next_sequence(stream), sent: SENT };
        let mut frame = vec![0xaa; self.flows.frame_len(stream, ip_len)];
        assert!(self.flows.write(stamp, ip_len, &mut frame));
        match stream.direction() {
            Direction::Uplink => self.upf.uplink(&frame),
            Direction::Downlink => self.upf.downlink(&frame),
        }
    }

    fn check(&mut self, direction: Direction, frame: &[u8]) -> Arrival {
        match direction {
            Direction::Uplink => self.verifier.check_n6(&self.flows, frame, NOW),
            Direction::Downlink => self.verifier.check_n3(&self.flows, frame, NOW),
        }
    }

    fn faulty(&self, direction: Direction) -> u64 {
        self.verifier.account(direction).faulty
    }
}

/// Session 0 is IPv4, 1 is IPv6, 2 is both.
fn stream(session: u32, direction: Direction) -> StreamId {
    let family = if session % 3 == 1 { Family::V6 } else { Family::V4 };
    StreamId::new(session, direction, family)
}

proptest! {
    #[test]
    fn right_packets_of_every_shape_are_right(
        session in 0_u32..30, uplink: bool, outer_v6: bool, second_family: bool, len in 0..=MAX_IP_LEN
    ) {
        let mut bench = Bench::new(outer_v6, ALL);
        let direction = if uplink { Direction::Uplink } else { Direction::Downlink };
        let kind = ALL_TYPES[session as usize % 3];
        let family = match kind {
            PduType::Ipv4 => Family::V4,
            PduType::Ipv6 => Family::V6,
            PduType::Ipv4v6 => if second_family { Family::V6 } else { Family::V4 },
        };
        let stream = StreamId::new(session, direction, family);
        let len = len.max(family.min_ip_len());
        let frame = bench.pass(stream, len);
        prop_assert_eq!(bench.check(direction, &frame), Arrival::Fresh);
        let account = bench.verifier.account(direction);
        prop_assert_eq!(account.faulty, 0, "{:?}", bench.verifier.faults());
        prop_assert_eq!((account.unique, account.compared, account.bytes), (1, 1, u64::from(len)));
        let p50 = bench.verifier.latencies(direction).summary().p50_ns;
        prop_assert!(p50.abs_diff(NOW.0 - SENT.0) < 20, "{}", p50);
    }

    /// Whatever a UPF does to a packet, the verifier survives it.
    #[test]
    fn noise_never_panics(bytes: Vec<u8>, at in 0_usize..120, session in 0_u32..30, uplink: bool, outer_v6: bool) {
        let mut bench = Bench::new(outer_v6, ALL);
        let direction = if uplink { Direction::Uplink } else { Direction::Downlink };
        prop_assert_eq!(bench.check(direction, &bytes), Arrival::Stray);
        let mut frame = bench.pass(stream(session, direction), 100);
        for (to, from) in frame.iter_mut().skip(at).zip(&bytes) {
            *to = *from;
        }
        bench.check(direction, &frame);
        frame.truncate(at);
        bench.check(direction, &frame);
    }
}

/// Bits that a UPF may choose (offset and mask): a flip there is no fault.
fn free(outer_v6: bool, direction: Direction) -> &'static [(usize, u8)] {
    match (direction, outer_v6) {
        (Direction::Uplink, _) => &[],
        // The UDP source port; the S flag, and the sequence and N-PDU numbers that no flag announces; RQI.
        (_, false) => &[(34, 0xff), (35, 0xff), (42, 2), (50, 0xff), (51, 0xff), (52, 0xff), (56, 0x40)],
        // Traffic class, flow label and hop limit. All else is under the UDP checksum.
        (_, true) => &[(14, 0x0f), (15, 0xff), (16, 0xff), (17, 0xff), (21, 0xff)],
    }
}

#[test]
fn every_flipped_bit_is_a_fault() {
    for outer_v6 in [false, true] {
        for direction in [Direction::Uplink, Direction::Downlink] {
            for session in [0, 1] {
                let mut bench = Bench::new(outer_v6, ALL);
                let clean = bench.pass(stream(session, direction), 76);
                let free = free(outer_v6, direction);
                for bit in 0..clean.len() * 8 {
                    let (at, mask) = (bit / 8, 1 << (bit % 8));
                    let mut frame = clean.clone();
                    frame[at] ^= mask;
                    let before = bench.faulty(direction);
                    bench.check(direction, &frame);
                    let found = bench.faulty(direction) > before;
                    let may_differ = free.iter().any(|&(byte, bits)| byte == at && bits & mask != 0);
                    assert!(
                        found || may_differ,
                        "outer v6 {outer_v6}, {direction:?}, session {session}: bit {} of byte {at} went unnoticed",
                        bit % 8
                    );
                }
            }
        }
    }
}

fn only_fault(bench: &Bench) -> &str {
    let [record] = bench.verifier.faults() else { panic!("{:?}", bench.verifier.faults()) };
    &record.fault
}

#[test]
fn a_wrong_tunnel_is_named_even_when_not_sampled() {
    let mut bench = Bench::new(false, VerifierConfig { sample_every: 0, ..ALL });
    let mut frame = bench.pass(stream(0, Direction::Downlink), 100);
    let at = 14 + 20 + 8 + 4;
    frame[at..at + 4].copy_from_slice(&0xd000_0003_u32.to_be_bytes());
    assert_eq!(bench.check(Direction::Downlink, &frame), Arrival::Fresh, "it arrived, if wrongly");
    assert_eq!(only_fault(&bench), "TEID 0xd0000003, expected 0xd0000000");
    let record = &bench.verifier.faults()[0];
    assert_eq!(record.packet, Some((0, 0)));
    assert!(record.hex.contains("34ff"), "{}", record.hex);
}

#[test]
fn a_wrong_qfi_is_named() {
    let mut bench = Bench::new(false, VerifierConfig { sample_every: 0, ..ALL });
    let mut frame = bench.pass(stream(0, Direction::Downlink), 100);
    frame[56] = 9;
    bench.check(Direction::Downlink, &frame);
    assert_eq!(only_fault(&bench), "QFI 9, expected 1");
}

#[test]
fn an_uplink_container_on_the_downlink_is_named() {
    let mut bench = Bench::new(false, ALL);
    let mut frame = bench.pass(stream(0, Direction::Downlink), 100);
    frame[55] = 0x10;
    bench.check(Direction::Downlink, &frame);
    assert_eq!(only_fault(&bench), "GTP-U: PDU type of the container is 0x1");
}

#[test]
fn a_packet_cut_short_and_made_consistent_is_found() {
    let mut bench = Bench::new(false, ALL);
    let long = bench.pass(stream(0, Direction::Uplink), 200);
    // Cut 100 bytes, and mend lengths and checksums as a buggy fragmentation would.
    let mut frame = long[..long.len() - 100].to_vec();
    let (ip, rest) = frame[14..].split_at_mut(20);
    packet::ipv4::set_total_len(ip.try_into().unwrap(), 100);
    rest[4..6].copy_from_slice(&80_u16.to_be_bytes());
    let pseudo = packet::ipv4::Ipv4View::parse(&frame[14..]).unwrap().pseudo_header();
    packet::udp::fill_checksum(&mut frame[34..], pseudo);
    bench.check(Direction::Uplink, &frame);
    assert_eq!(only_fault(&bench), "payload of 72 bytes, sent with 172");
}

#[test]
fn a_packet_in_another_session_s_name_is_found() {
    let mut bench = Bench::new(false, ALL);
    let frame = bench.pass(stream(0, Direction::Uplink), 100);
    // Number 1 of this stream was not sent yet.
    let mut forged = frame.clone();
    forged[14 + 28 + 8..14 + 28 + 12].copy_from_slice(&1_u32.to_be_bytes());
    assert_eq!(bench.check(Direction::Uplink, &forged), Arrival::Stray);
    assert_eq!(only_fault(&bench), "sequence number 1 was never sent");
    // A downlink packet that comes out of N6.
    let down = bench.pass(stream(0, Direction::Downlink), 100);
    let stray = [&frame[..14], &down[58..]].concat();
    assert_eq!(bench.check(Direction::Uplink, &stray), Arrival::Stray);
    assert!(bench.verifier.faults()[1].fault.contains("does not come out here"));
}

#[test]
fn ttl_must_fall_by_one_uplink_and_at_most_by_one_downlink() {
    for (ttl, wrong) in [(64, true), (63, false), (62, true)] {
        let mut bench = Bench::new(false, ALL);
        let mut frame = bench.pass(stream(0, Direction::Uplink), 100);
        packet::ipv4::set_ttl(frame[14..].first_chunk_mut().unwrap(), ttl);
        bench.check(Direction::Uplink, &frame);
        assert_eq!(bench.faulty(Direction::Uplink), u64::from(wrong), "TTL {ttl}");
    }
    for (hops, wrong) in [(65, true), (64, false), (63, false), (62, true)] {
        let mut bench = Bench::new(false, ALL);
        let mut frame = bench.pass(stream(1, Direction::Downlink), 100);
        frame[58 + 7] = hops;
        bench.check(Direction::Downlink, &frame);
        assert_eq!(bench.faulty(Direction::Downlink), u64::from(wrong), "hop limit {hops}");
    }
}

#[test]
fn ethernet_padding_is_not_content() {
    let mut bench = Bench::new(false, ALL);
    let mut frame = bench.pass(stream(0, Direction::Uplink), 48);
    frame.extend([0; 6]);
    bench.check(Direction::Uplink, &frame);
    let mut frame = bench.pass(stream(0, Direction::Downlink), 48);
    frame.extend([0; 6]);
    bench.check(Direction::Downlink, &frame);
    assert!(bench.verifier.faults().is_empty(), "{:?}", bench.verifier.faults());
}

#[test]
fn loss_repetition_and_order_are_accounted() {
    let mut bench = Bench::new(false, ALL);
    let stream = stream(0, Direction::Uplink);
    let frames: Vec<_> = (0..200).map(|_| bench.pass(stream, 100)).collect();
    let mut arrive = |order: &[usize]| {
        order.iter().map(|&n| bench.check(Direction::Uplink, &frames[n])).collect::<Vec<_>>()
    };
    assert_eq!(arrive(&[0, 1, 3, 2]), [Arrival::Fresh; 4]);
    assert_eq!(arrive(&[2, 0]), [Arrival::Repeated; 2]);
    assert_eq!(arrive(&[150, 149, 149]), [Arrival::Fresh, Arrival::Fresh, Arrival::Repeated]);
    assert_eq!(arrive(&[10]), [Arrival::Fresh], "far behind: late");
    let account = bench.verifier.account(Direction::Uplink);
    assert_eq!(
        (account.packets, account.unique, account.repeated, account.reordered, account.faulty),
        (10, 7, 3, 3, 0)
    );
}

proptest! {
    /// The window's arithmetic against a set, for arrivals that stay within it.
    #[test]
    fn account_agrees_with_a_set(jumps in prop::collection::vec(0_u32..40, 1..200)) {
        let mut bench = Bench::new(false, VerifierConfig { sample_every: 0, ..ALL });
        let stream = stream(0, Direction::Uplink);
        let frames: Vec<_> = (0..260).map(|_| bench.pass(stream, 100)).collect();
        let mut seen = std::collections::BTreeSet::new();
        let (mut repeated, mut reordered) = (0, 0);
        for (base, jump) in jumps.iter().enumerate() {
            let number = base + *jump as usize;
            let late = seen.last().is_some_and(|&last| number < last);
            let fresh = seen.insert(number);
            repeated += u64::from(!fresh);
            reordered += u64::from(fresh && late);
            let expected = if fresh { Arrival::Fresh } else { Arrival::Repeated };
            prop_assert_eq!(bench.check(Direction::Uplink, &frames[number]), expected);
        }
        let account = bench.verifier.account(Direction::Uplink);
        prop_assert_eq!(account.unique, seen.len() as u64);
        prop_assert_eq!((account.repeated, account.reordered), (repeated, reordered));
    }
}

#[test]
fn the_sample_is_the_share_asked_for() {
    let mut bench = Bench::new(false, VerifierConfig { sample_every: 10, ..ALL });
    for _ in 0..95 {
        let mut frame = bench.pass(stream(0, Direction::Uplink), 100);
        *frame.last_mut().unwrap() ^= 1;
        bench.check(Direction::Uplink, &frame);
    }
    let account = bench.verifier.account(Direction::Uplink);
    assert_eq!((account.packets, account.compared, account.faulty), (95, 10, 10));
    assert_eq!(bench.verifier.faults().len(), 4, "only the first are kept");
}

#[test]
fn a_handover_moves_the_tunnel_and_numbers_go_on() {
    let network = network(false);
    let mut facts = facts(&network, SessionMix::IPV4, 4);
    let mut flows = Flows::new(&facts, &network, 7).unwrap();
    let stream = StreamId::new(1, Direction::Downlink, Family::V4);
    assert_eq!(flows.next_sequence(stream), 0);
    facts[1].gnb = network.gnbs[3].address;
    facts[1].dl_teid = Teid(77);
    facts[1].qfi = Qfi::from_wire(5);
    flows.update(1, &facts[1]).unwrap();
    assert_eq!(flows.next_sequence(stream), 1);
    let mut frame = vec![0; flows.frame_len(stream, 100)];
    assert!(flows.write(Stamp { stream, sequence: 1, sent: SENT }, 100, &mut frame));
    let out = PerfectUpf::new(&network, &facts).downlink(&frame);
    let mut verifier = Verifier::new(ALL, 4);
    assert_eq!(verifier.check_n3(&flows, &out, NOW), Arrival::Fresh);
    assert!(verifier.faults().is_empty(), "{:?}", verifier.faults());
}

#[test]
fn impossible_sessions_are_refused() {
    let network = network(false);
    let good = facts(&network, SessionMix::IPV4, 1);
    let refuse = |change: &dyn Fn(&mut loadgen::facts::SessionFacts)| {
        let mut facts = good.clone();
        change(&mut facts[0]);
        Flows::new(&facts, &network, 1).unwrap_err()
    };
    let nowhere = "192.0.2.99".parse().unwrap();
    assert_eq!(refuse(&|f| f.gnb = nowhere), FlowError::UnknownGnb { session: 0, address: nowhere });
    assert_eq!(refuse(&|f| f.ue_ipv4 = None), FlowError::NoAddress { session: 0 });
    assert!(matches!(refuse(&|f| f.upf_n3 = crate::common::v6("::1").into()), FlowError::MixedTunnel { .. }));
    let flows = Flows::new(&good, &network, 1).unwrap();
    let mut short = [0; 10];
    let stamp = Stamp { stream: stream(0, Direction::Uplink), sequence: 0, sent: SENT };
    assert!(!flows.write(stamp, 100, &mut short));
    let absent = StreamId::new(9, Direction::Uplink, Family::V4);
    assert!(!flows.write_inner(Stamp { stream: absent, ..stamp }, &mut [0; 100]));
    let other_family = StreamId::new(0, Direction::Uplink, Family::V6);
    assert!(!flows.write_inner(Stamp { stream: other_family, ..stamp }, &mut [0; 100]));
}
