#![allow(clippy::unwrap_used)]

use super::*;
use dpi::prepare::{Link, Tunnels, prepare};
use dpi::{Event, Inspector, Options, Protocol, Verdict};
use std::collections::HashMap;
use tables::Nanos;

/// What an inspector says of flows, by their ends; and the names that it found.
fn inspect(traffic: &Traffic) -> (HashMap<(SocketAddr, SocketAddr), Verdict>, Vec<String>) {
    let options = Options { tells_names: true, ..Options::default() };
    let mut inspector = Inspector::new(options, 1, Nanos(0));
    let (mut verdicts, mut names) = (HashMap::new(), Vec::new());
    let mut note = |event| match event {
        Event::Classified { flow, verdict } => {
            let ends = flow.ends;
            let client = SocketAddr::new(ends.subscriber, ends.subscriber_port);
            verdicts.insert((client, SocketAddr::new(ends.peer, ends.peer_port)), verdict);
        }
        Event::Found { sheet, .. } => names.push(String::from_utf8_lossy(sheet.host.bytes()).into_owned()),
        Event::Ended { .. } | Event::Decoded { .. } | Event::Measured { .. } => {}
    };
    for (time, frame) in (0..).zip(traffic.frames()) {
        let prepared = prepare(Link::Ethernet, frame, Tunnels::USUAL).unwrap();
        assert!(prepared.missing == 0 && prepared.ip.fragment.is_none());
        inspector
            .push(Nanos(time * 1000), &dpi::Packet { ip: prepared.ip, bytes: prepared.packet, tunnel: None });
        std::iter::from_fn(|| inspector.poll()).for_each(&mut note);
    }
    while inspector.flush_one(Nanos(u64::MAX / 2)) {
        std::iter::from_fn(|| inspector.poll()).for_each(&mut note);
    }
    (verdicts, names)
}

const fn expected(application: Application) -> &'static [Option<Protocol>] {
    match application {
        A::Tls | A::Video => &[Some(Protocol::Tls)],
        A::Quic => &[Some(Protocol::Quic)],
        A::Http => &[Some(Protocol::Http)],
        A::Dns => &[Some(Protocol::Dns)],
        A::Call => &[Some(Protocol::Rtp), Some(Protocol::Stun), Some(Protocol::WebRtc), Some(Protocol::Srtp)],
        A::WireGuard => &[Some(Protocol::WireGuard)],
        A::OpenVpn => &[Some(Protocol::OpenVpn)],
        A::Ike => &[Some(Protocol::Ike)],
        A::Esp => &[Some(Protocol::Esp)],
        A::Ssh => &[Some(Protocol::Ssh)],
        A::Smtp => &[Some(Protocol::Smtp)],
        A::Smb => &[Some(Protocol::Smb2)],
        // What no recogniser knows may be known by its behaviour.
        A::CipheredStream => &[None, Some(Protocol::FullyEncrypted)],
        A::CipheredDatagrams => &[None],
    }
}

#[test]
fn flows_are_what_they_are_said_to_be() {
    for mix in Mix::ALL {
        let traffic = Traffic::new(mix, Length::Whole, 12_000, 300, 5);
        let (verdicts, names) = inspect(&traffic);
        assert_eq!(verdicts.len(), traffic.flows().len(), "{}", mix.name);
        let mut wrong = HashMap::new();
        for flow in traffic.flows() {
            let verdict = &verdicts[&(flow.ends.client, flow.ends.server)];
            if !expected(flow.application).contains(&verdict.protocol) {
                *wrong.entry((flow.application, verdict.protocol)).or_insert(0) += 1;
            }
            if let Some(name) = &flow.name {
                assert!(names.contains(name), "{name}");
            }
        }
        // Chance makes a shape of random octets now and then.
        let noise: usize = wrong.iter().filter(|it| expected(it.0.0).contains(&None)).map(|it| it.1).sum();
        assert!(noise * 50 <= traffic.flows().len(), "{wrong:?}");
        wrong.retain(|it, _| !expected(it.0).contains(&None));
        assert!(wrong.is_empty(), "{}: {wrong:?} of {}", mix.name, traffic.flows().len());
    }
}

#[test]
fn what_begins_is_enough_to_be_known_by() {
    let traffic = Traffic::new(Mix::MIXED, Length::Opening, 6_000, 300, 6);
    let (verdicts, _) = inspect(&traffic);
    for flow in traffic.flows().iter().filter(|it| expected(it.application) != [None]) {
        let verdict = &verdicts[&(flow.ends.client, flow.ends.server)];
        assert!(expected(flow.application).contains(&verdict.protocol), "{flow:?}: {verdict:?}");
    }
}

#[test]
fn the_ordinary_mix_has_ordinary_sizes() {
    let traffic = Traffic::new(Mix::ORDINARY, Length::Whole, 60_000, 1_000, 7);
    let packets = traffic.frames().len();
    let (flows, octets) = (traffic.flows().len(), traffic.octets() - 14 * packets);
    assert!((18..=22).contains(&(packets / flows)), "{} packets a flow", packets as f64 / flows as f64);
    assert!((440..=484).contains(&(octets / packets)), "{} octets a packet", octets / packets);
}

#[test]
fn a_hybrid_key_share_makes_two_datagrams() {
    let traffic = Traffic::new(Mix::only("quic", &[(A::Quic, 1)]), Length::Opening, 2_000, 1, 8);
    let mut initials = HashMap::new();
    for frame in traffic.frames() {
        let prepared = prepare(Link::Ethernet, frame, Tunnels::USUAL).unwrap();
        let key = prepared.ip.key;
        if prepared.payload[0] & 0xf0 == 0xc0 && key.ports.unwrap().destination == 443 {
            *initials.entry((key.source, key.ports.unwrap().source)).or_insert(0) += 1;
        }
    }
    // One or two are the ClientHello, and one acknowledges the server's.
    let of = |count| initials.values().filter(|it| **it == count).count();
    assert_eq!(of(2) + of(3), initials.len());
    assert!(of(2).abs_diff(of(3)) * 5 < initials.len(), "{} and {}", of(2), of(3));
}
