//! How fast the generator, the verifier and the SMF model are on this machine, with nothing between them.
#![allow(clippy::unwrap_used)]

use loadgen::facts::{Network, SessionFacts};
use loadgen::imix::{Family, SizeProfile};
use loadgen::payload::{Direction, Stamp, StreamId};
use loadgen::rng::SplitMix64;
use loadgen::smf::{Smf, SmfConfig};
use loadgen::traffic::Flows;
use loadgen::verify::{Verifier, VerifierConfig};
use packet::{MacAddr, Qfi, Teid};
use pfcp::{Header, MessageType, encode_ie, encode_message, ie_type as ie};
use rustix::time::{ClockId, clock_gettime};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use tables::Nanos;

const SESSIONS: u32 = 10_000;
const PACKETS: u32 = 4_000_000;

fn main() {
    let servers = (Ipv4Addr::new(203, 0, 113, 1), Ipv6Addr::LOCALHOST);
    let mut network = Network::new(IpAddr::from([192, 0, 2, 10]), 8, &[], servers);
    network.upf_n3_mac = MacAddr([2, 0, 0, 0, 3, 1]);
    network.upf_n6_mac = MacAddr([2, 0, 0, 0, 6, 1]);
    let facts: Vec<_> = (0..SESSIONS)
        .map(|index| SessionFacts {
            cp_seid: pfcp::Seid(1),
            up_seid: pfcp::Seid(1),
            upf_n3: IpAddr::from([192, 0, 2, 1]),
            ul_teid: Teid(index),
            gnb: network.gnbs[index as usize % 8].address,
            dl_teid: Teid(index),
            qfi: Qfi::from_wire(9),
            ue_ipv4: Some(Ipv4Addr::from_bits(0x0a40_0001 + index)),
            ue_ipv6: None,
        })
        .collect();
    for profile in [SizeProfile::Payload(64), SizeProfile::simple_imix()] {
        for direction in [Direction::Uplink, Direction::Downlink] {
            generate(&facts, &network, &profile, direction);
        }
        for sample_every in [0, 64, 1] {
            verify(&facts, &network, &profile, sample_every);
        }
    }
    n4();
}

/// Nanoseconds of processor time: other work on the machine does not count.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn say(what: &str, packets: u32, start: f64) {
    let nanos = (cpu() - start) / f64::from(packets);
    println!("{what:<44} {nanos:>8.1} ns each  {:>8.2} M/s", 1000.0 / nanos);
}

fn generate(facts: &[SessionFacts], network: &Network, profile: &SizeProfile, direction: Direction) {
    let mut flows = Flows::new(facts, network, 1).unwrap();
    let (sizes, mut rng) = (profile.sampler(), SplitMix64::new(1));
    let mut buffer = vec![0; 2048];
    let start = cpu();
    for packet in 0..PACKETS {
        let stream = StreamId::new(packet % SESSIONS, direction, Family::V4);
        let ip_len = sizes.next(Family::V4, &mut rng);
        let stamp = Stamp { stream, sequence: flows.next_sequence(stream), sent: Nanos(u64::from(packet)) };
        let len = flows.frame_len(stream, ip_len);
        assert!(flows.write(stamp, ip_len, &mut buffer[..len]));
        std::hint::black_box(&buffer);
    }
    say(&format!("generate {profile} {direction:?}"), PACKETS, start);
}

fn verify(facts: &[SessionFacts], network: &Network, profile: &SizeProfile, sample_every: u32) {
    let mut flows = Flows::new(facts, network, 1).unwrap();
    let (sizes, mut rng) = (profile.sampler(), SplitMix64::new(1));
    let mut verifier = Verifier::new(VerifierConfig { sample_every, ..VerifierConfig::default() }, SESSIONS);
    // Made and unwrapped beforehand: uplink packets as N6 sees them.
    let header = [&network.dn.mac.0[..], &network.upf_n6_mac.0, &[8, 0]].concat();
    let packets = 200_000;
    let frames: Vec<_> = (0..packets)
        .map(|packet| {
            let stream = StreamId::new(packet % SESSIONS, Direction::Uplink, Family::V4);
            let stamp = Stamp { stream, sequence: flows.next_sequence(stream), sent: Nanos(0) };
            let mut inner = vec![0; usize::from(sizes.next(Family::V4, &mut rng))];
            assert!(flows.write_inner(stamp, &mut inner));
            packet::ipv4::decrement_ttl(inner.first_chunk_mut().unwrap()).unwrap();
            [&header[..], &inner].concat()
        })
        .collect();
    let start = cpu();
    for frame in &frames {
        verifier.check_n6(&flows, frame, Nanos(1000));
    }
    say(&format!("verify {profile}, 1 of {sample_every} compared"), packets, start);
    assert!(verifier.faults().is_empty());
}

/// The SMF against a thread that says yes to everything: what remains is mostly the kernel's loopback.
fn n4() {
    let upf = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = upf.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut buffer, mut reply) = ([0; 2048], Vec::new());
        loop {
            let (length, peer) = upf.recv_from(&mut buffer).unwrap();
            let (header, ..) = Header::decode(&buffer[..length]).unwrap();
            let Some(response) = header.message_type.response() else { continue };
            let header = Header { message_type: response, ..header };
            reply.clear();
            encode_message(&header, &mut reply, |out| {
                encode_ie(out, ie::NODE_ID, |out| out.extend([0, 127, 0, 0, 1]));
                encode_ie(out, ie::CAUSE, |out| out.push(1));
                if response == MessageType::SESSION_ESTABLISHMENT_RESPONSE {
                    encode_ie(out, ie::F_SEID, |out| out.extend([2, 0, 0, 0, 0, 0, 0, 0, 1, 127, 0, 0, 1]));
                }
            })
            .unwrap();
            upf.send_to(&reply, peer).unwrap();
        }
    });
    let mut smf = Smf::bind(SmfConfig::new("127.0.0.1:0".parse().unwrap(), address)).unwrap();
    smf.associate().unwrap();
    let start = cpu();
    let figures = smf.measure(10_000, 200_000).unwrap();
    say("N4, the SMF's own share of a request", 610_000, start);
    for report in [&figures.establish, &figures.modify, &figures.delete] {
        println!(
            "N4 {:?}: {:.0} requests/s, {} ns median",
            report.operation, report.requests_per_second, report.latency.p50_ns
        );
    }
}
