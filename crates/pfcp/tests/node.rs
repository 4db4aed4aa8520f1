//! Two nodes and the network between them: lossy, doubling, reordering.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use pfcp::header::Datagram;
use pfcp::ie::{NodeId, RecoveryTimeStamp};
use pfcp::message::{SessionDeletionResponse, SessionReportResponse};
use pfcp::message_type::MessageType;
use pfcp::node::{Bounds, Event, Incoming, Node, NodeConfig, NodeCounters, Output, PeerId, Portable, Role};
use pfcp::{Cause, Seid, SequenceNumber};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use tables::Nanos;

const MILLI: u64 = 1_000_000;

/// xorshift64: the test's own chance.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
}

struct End {
    node: Node,
    address: SocketAddr,
    out: Output,
    events: Vec<Event>,
    /// How often each request (its SEID) was handed out, and each of ours (its token) was answered.
    handed_out: HashMap<u64, u32>,
    answered: HashMap<u64, u32>,
    /// Requests of ours.
    asked: Vec<SequenceNumber>,
}

impl End {
    fn new(role: Role, address: &str, adjust: impl FnOnce(&mut NodeConfig)) -> Self {
        let address: SocketAddr = address.parse().unwrap();
        let mut config = NodeConfig::new(role, NodeId::Ip(address.ip()), RecoveryTimeStamp(1_000));
        config.t1 = 100 * MILLI;
        // One datagram of four is lost each way: ten attempts would still leave one request in 3,000 unanswered.
        config.n1 = 20;
        config.heartbeat_interval = 0;
        adjust(&mut config);
        Self {
            node: Node::new(config),
            address,
            out: Output::default(),
            events: Vec::new(),
            handed_out: HashMap::new(),
            answered: HashMap::new(),
            asked: Vec::new(),
        }
    }

    fn take(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8]) {
        for message in Datagram::new(datagram) {
            match self.node.receive(now, from, message, &mut self.out) {
                Incoming::Nothing => {}
                Incoming::Request { handle, message_type, seid, .. } => {
                    *self.handed_out.entry(seid.0).or_default() += 1;
                    let (cause, offending_ie) = (Cause::ACCEPTED, None);
                    let kind = message_type.response().unwrap();
                    let encode = |out: &mut Vec<u8>| match kind {
                        MessageType::SESSION_REPORT_RESPONSE => {
                            SessionReportResponse { cause, offending_ie, drop_buffered: false }.encode(out);
                        }
                        _ => {
                            SessionDeletionResponse { cause, offending_ie, usage_reports: vec![] }
                                .encode(out);
                        }
                    };
                    self.node.respond(handle, kind, seid, encode, &mut self.out);
                }
                Incoming::Response { token, .. } => *self.answered.entry(token).or_default() += 1,
            }
        }
    }

    /// Another process takes over.
    fn restart(&mut self, now: Nanos) {
        let mut node = Node::new(self.node.config().clone());
        let portable = self.node.portable();
        node.go_on(now, portable.clone(), *self.node.counters());
        for &sequence in &self.asked {
            // Some were answered, or given up.
            if let Some(request) = self.node.unanswered(sequence) {
                assert_eq!(node.go_on_with(only_peer_of(&node), request.clone()), Some(sequence));
                assert_eq!(node.go_on_with(only_peer_of(&node), request), None, "it waits already");
            }
        }
        self.node.replies().for_each(|reply| node.keep(reply));
        // It knows all that was known, but calls its peers otherwise.
        let numbers = |mut portable: Portable| {
            portable.associations.iter_mut().for_each(|peer| peer.number = 0);
            portable.last_sequence = 0;
            portable
        };
        assert_eq!(numbers(node.portable()), numbers(portable));
        assert_eq!(node.kept_octets(), self.node.kept_octets());
        assert_eq!(node.outstanding(), self.node.outstanding());
        self.node = node;
    }

    fn ask(&mut self, now: Nanos, peer: PeerId, kind: MessageType, number: u64) -> bool {
        let sent = self.node.request(now, peer, kind, Seid(number), number, |_| {}, &mut self.out);
        self.asked.extend(sent);
        sent.is_ok()
    }
}

/// Datagrams under way, by the time of their arrival.
#[derive(Default)]
struct Network {
    under_way: BTreeMap<(u64, u64), (usize, SocketAddr, Vec<u8>)>,
    sent: u64,
}

fn run(ends: &mut [End; 2], network: &mut Network, from: u64, to: u64, chance: &mut Chance, bad: u64) {
    for milli in from..to {
        let now = Nanos(milli * MILLI);
        for at in 0..2 {
            let End { node, out, .. } = &mut ends[at];
            node.tick(now, out);
            while let Some(entry) = network.under_way.first_entry()
                && entry.key().0 <= milli
            {
                let (target, source, datagram) = entry.remove();
                ends[target].take(now, source, &datagram);
            }
            let source = ends[at].address;
            let datagrams: Vec<_> = ends[at].out.datagrams().map(|(to, d)| (to, d.to_vec())).collect();
            for (to, datagram) in datagrams {
                let Some(target) = ends.iter().position(|end| end.address == to) else { continue };
                if bad > 0 && chance.one_in(bad) {
                    continue;
                }
                let copies = if bad > 0 && chance.one_in(bad) { 2 } else { 1 };
                for _ in 0..copies {
                    network.sent += 1;
                    let delay = 1 + chance.next() % 20;
                    network
                        .under_way
                        .insert((milli + delay, network.sent), (target, source, datagram.clone()));
                }
            }
            let events = std::mem::take(&mut ends[at].out.events);
            ends[at].events.extend(events);
            ends[at].out.clear();
        }
    }
}

fn associated(adjust: impl Fn(&mut NodeConfig)) -> ([End; 2], Network) {
    let smf = End::new(Role::Cp, "127.0.0.2:8805", &adjust);
    let upf = End::new(Role::Up, "127.0.0.1:8805", &adjust);
    let mut ends = [smf, upf];
    let mut network = Network::default();
    associate(&mut ends, 0);
    run(&mut ends, &mut network, 0, 100, &mut Chance(9), 0);
    assert!(ends.iter().all(|end| matches!(end.events[..], [Event::PeerUp(_)])));
    for end in &mut ends {
        end.events.clear();
    }
    (ends, network)
}

/// The SMF asks for an association.
fn associate(ends: &mut [End; 2], milli: u64) {
    let to = ends[1].address;
    let End { node, out, .. } = &mut ends[0];
    node.associate(Nanos(milli * MILLI), to, out).unwrap();
}

fn only_peer(end: &End) -> PeerId {
    only_peer_of(&end.node)
}

fn only_peer_of(node: &Node) -> PeerId {
    node.peers().next().unwrap().id
}

#[test]
fn every_request_is_carried_out_once_and_answered_once_over_a_bad_network() {
    (1..6).for_each(|seed| carried_out_once(seed, 0));
}

#[test]
fn every_request_is_carried_out_once_though_other_processes_take_over() {
    (1..6).for_each(|seed| carried_out_once(seed, 20));
}

/// Each end is followed by another process after one in so many requests; 0: never.
fn carried_out_once(seed: u64, restarts: u64) {
    let (mut ends, mut network) = associated(|_| {});
    let mut chance = Chance(seed);
    let mut peers = [only_peer(&ends[0]), only_peer(&ends[1])];
    for number in 1..=300 {
        let now = Nanos((100 + number) * MILLI);
        for (end, peer) in ends.iter_mut().zip(&mut peers) {
            if restarts > 0 && chance.one_in(restarts) {
                end.restart(now);
                *peer = only_peer(end);
            }
        }
        assert!(ends[0].ask(now, peers[0], MessageType::SESSION_DELETION_REQUEST, number));
        assert!(ends[1].ask(now, peers[1], MessageType::SESSION_REPORT_REQUEST, number));
        run(&mut ends, &mut network, 100 + number, 101 + number, &mut chance, 4);
    }
    run(&mut ends, &mut network, 401, 3_000, &mut chance, 4);
    for end in &ends {
        assert_eq!(end.handed_out.len(), 300);
        assert!(end.handed_out.values().all(|&times| times == 1), "a request was carried out twice");
        assert_eq!(end.answered.len(), 300);
        assert!(end.answered.values().all(|&times| times == 1), "an answer came twice");
        assert_eq!(end.node.outstanding(), 0);
        let NodeCounters { retransmissions, replayed_replies, .. } = *end.node.counters();
        assert!(retransmissions > 0 && replayed_replies > 0);
    }
}

#[test]
fn a_peer_that_is_gone_is_noticed_and_requests_to_it_end() {
    let (mut ends, mut network) = associated(|config| {
        config.heartbeat_interval = 500 * MILLI;
        config.n1 = 3;
    });
    run(&mut ends, &mut network, 100, 2_000, &mut Chance(3), 0);
    assert!(ends[1].node.counters().heartbeats_answered >= 3 && ends[1].events.is_empty());
    assert!(ends[1].node.peers().all(|peer| peer.round_trip.is_some() && peer.alive));
    ends[0].address = "127.0.0.3:1".parse().unwrap();
    let peer = only_peer(&ends[1]);
    assert!(ends[1].ask(Nanos(2_000 * MILLI), peer, MessageType::SESSION_REPORT_REQUEST, 77));
    run(&mut ends, &mut network, 2_000, 4_000, &mut Chance(3), 0);
    assert!(ends[1].events.contains(&Event::PeerLost(peer)));
    assert!(ends[1].events.contains(&Event::TimedOut { peer: Some(peer), token: 77 }));
    assert!(ends[1].node.peers().all(|peer| !peer.alive));
}

#[test]
fn a_restart_is_seen_in_heartbeats_and_in_a_new_association() {
    let (mut ends, mut network) = associated(|config| config.heartbeat_interval = 200 * MILLI);
    // The SMF comes back with another Recovery Time Stamp, and answers heartbeats before it associates.
    let mut again = End::new(Role::Cp, "127.0.0.2:8805", |_| {});
    let config = NodeConfig { recovery: RecoveryTimeStamp(2_000), ..again.node.config().clone() };
    again.node = Node::new(config);
    ends[0] = again;
    let peer = only_peer(&ends[1]);
    run(&mut ends, &mut network, 100, 700, &mut Chance(5), 0);
    assert_eq!(ends[1].events, [Event::PeerRestarted(peer)]);
    ends[1].events.clear();
    associate(&mut ends, 700);
    run(&mut ends, &mut network, 700, 900, &mut Chance(5), 0);
    assert_eq!(
        ends[1].events,
        [Event::PeerRestarted(peer)],
        "an association anew deletes sessions (§6.2.6.2.2)"
    );
    assert_eq!(ends[1].node.peers().count(), 1);
}

#[test]
fn release_from_either_side() {
    for side in [0, 1] {
        let (mut ends, mut network) = associated(|_| {});
        let peer = only_peer(&ends[side]);
        let End { node, out, .. } = &mut ends[side];
        node.release(Nanos(100 * MILLI), peer, out);
        run(&mut ends, &mut network, 100, 400, &mut Chance(5), 0);
        for end in &ends {
            assert!(matches!(end.events[..], [Event::PeerReleased(_)]), "{side}: {:?}", end.events);
            assert_eq!(end.node.peers().count(), 0);
        }
    }
}

/// A Session Deletion Request with SEID 1 and sequence number 9.
const DELETION: [u8; 16] = [0x21, 54, 0, 12, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 9, 0];

#[test]
fn strangers_get_cause_72_and_may_ask_again_after_they_associated() {
    let mut upf = End::new(Role::Up, "127.0.0.1:8805", |_| {});
    let from: SocketAddr = "127.0.0.2:8805".parse().unwrap();
    upf.take(Nanos(1), from, &DELETION);
    let answer = upf.out.datagrams().next().unwrap().1.to_vec();
    let (header, body, _) = pfcp::Header::decode(&answer).unwrap();
    assert_eq!((header.seid, header.sequence.0), (Some(Seid(0)), 9));
    assert_eq!(SessionDeletionResponse::decode(body).unwrap().cause, Cause::NO_ASSOCIATION);
    assert!(upf.handed_out.is_empty());
    let mut smf = End::new(Role::Cp, "127.0.0.2:8805", |_| {});
    smf.node.associate(Nanos(2), upf.address, &mut smf.out).unwrap();
    let request = smf.out.datagrams().next().unwrap().1.to_vec();
    upf.take(Nanos(2), from, &request);
    upf.take(Nanos(3), from, &DELETION);
    assert_eq!(upf.handed_out.len(), 1);
}

/// A restarted SMF counts its requests from the beginning, from the same port.
#[test]
fn a_restarted_peers_requests_are_not_taken_for_repetitions() {
    let mut upf = End::new(Role::Up, "127.0.0.1:8805", |_| {});
    let from: SocketAddr = "127.0.0.2:8805".parse().unwrap();
    let set_up = |upf: &mut End, milli: u64, recovery: u32| {
        let mut smf =
            End::new(Role::Cp, "127.0.0.2:8805", |config| config.recovery = RecoveryTimeStamp(recovery));
        smf.node.associate(Nanos(milli), upf.address, &mut smf.out).unwrap();
        let request = smf.out.datagrams().next().unwrap().1.to_vec();
        upf.take(Nanos(milli), from, &request);
    };
    set_up(&mut upf, 1, 5);
    upf.take(Nanos(2), from, &DELETION);
    upf.take(Nanos(3), from, &DELETION);
    set_up(&mut upf, 4, 5);
    assert_eq!((upf.handed_out[&1], upf.out.events.len()), (1, 1), "repetitions: {:?}", upf.out.events);
    assert_eq!(upf.node.counters().replayed_replies, 2);
    // The same number, message and port, but another start.
    set_up(&mut upf, 5, 6);
    let peer = only_peer(&upf);
    assert_eq!(upf.out.events[1..], [Event::PeerRestarted(peer)]);
    upf.take(Nanos(6), from, &DELETION);
    upf.take(Nanos(7), from, &DELETION);
    assert_eq!(upf.handed_out[&1], 2);
    // Released, and associated again with the very same octets.
    let release = [0x20, 9, 0, 13, 0, 0, 3, 0, 0, 60, 0, 5, 0, 127, 0, 0, 2];
    upf.out.clear();
    upf.take(Nanos(8), from, &release);
    upf.take(Nanos(9), from, &release);
    let answers: Vec<_> = upf.out.datagrams().map(|(_, bytes)| bytes.to_vec()).collect();
    assert_eq!(answers[0], answers[1]);
    assert_eq!(upf.out.events, [Event::PeerReleased(peer)]);
    set_up(&mut upf, 10, 6);
    assert_eq!(upf.node.peers().count(), 1);
    upf.take(Nanos(11), from, &DELETION);
    assert_eq!(upf.handed_out[&1], 3);
}

#[test]
fn limits_hold() {
    let mut upf = End::new(Role::Up, "127.0.0.1:8805", |config| {
        config.bounds.peers = 2;
        config.bounds.outstanding = 3;
    });
    let mut addresses = (2..).map(|last| format!("127.0.0.{last}:8805"));
    let mut another_smf = |upf: &mut End| {
        let mut smf = End::new(Role::Cp, &addresses.next().unwrap(), |_| {});
        smf.node.associate(Nanos(1), upf.address, &mut smf.out).unwrap();
        let request = smf.out.datagrams().next().unwrap().1.to_vec();
        upf.take(Nanos(1), smf.address, &request);
    };
    for _ in 0..4 {
        another_smf(&mut upf);
    }
    assert_eq!(upf.node.peers().count(), 2);
    assert_eq!(upf.node.counters().too_many_peers, 2);
    let peer = only_peer(&upf);
    let asked = (0..5).filter(|&n| upf.ask(Nanos(2), peer, MessageType::SESSION_REPORT_REQUEST, n)).count();
    assert_eq!((asked, upf.node.counters().too_many_outstanding), (3, 2));
    // Each follows its own, up and down.
    let refused = |upf: &End| (upf.node.counters().too_many_peers, upf.node.counters().too_many_outstanding);
    let bounds = upf.node.config().bounds;
    for (bounds, peers, outstanding, turned_away) in [
        (Bounds { peers: 3, ..bounds }, 3, 3, (3, 4)),
        (Bounds { outstanding: 4, ..bounds }, 3, 4, (5, 5)),
        (Bounds { peers: 4, outstanding: 5, ..bounds }, 4, 5, (6, 6)),
    ] {
        upf.node.limit(bounds);
        for _ in 0..2 {
            another_smf(&mut upf);
            upf.ask(Nanos(3), peer, MessageType::SESSION_REPORT_REQUEST, 9);
        }
        assert_eq!((upf.node.peers().count(), upf.node.outstanding()), (peers, outstanding), "{bounds:?}");
        assert_eq!(refused(&upf), turned_away, "{bounds:?}");
    }
}

#[test]
fn other_versions_and_other_sides_messages() {
    let mut upf = End::new(Role::Up, "127.0.0.1:8805", |_| {});
    let from: SocketAddr = "127.0.0.2:8805".parse().unwrap();
    upf.take(Nanos(1), from, &[0x40, 1, 0, 4, 0, 0, 7, 0]);
    let answer = upf.out.datagrams().next().unwrap().1.to_vec();
    assert_eq!(answer, [0x20, 11, 0, 4, 0, 0, 7, 0]);
    upf.take(Nanos(1), from, &[0x21, 56, 0, 12, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 9, 0]);
    upf.take(Nanos(1), from, &[0x20, 99, 0, 4, 0, 0, 7, 0]);
    assert_eq!(upf.node.counters().unknown_messages, 1);
    assert_eq!(upf.node.counters().unexpected_responses, 1, "99 is no request that we know");
    upf.take(Nanos(1), from, &[0x20, 1, 0, 40, 0, 0, 7, 0]);
    assert_eq!(upf.node.counters().malformed_headers, 1);
}

proptest! {
    #[test]
    fn arbitrary_datagrams_do_no_harm(
        datagrams in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..80), 1u8..5, any::<bool>()), 1..60)
    ) {
        let mut upf = End::new(Role::Up, "127.0.0.1:8805", |config| {
            config.bounds.peers = 2;
            config.bounds.reply_octets = 1_000;
        });
        for (time, (mut datagram, last, valid_start)) in datagrams.into_iter().enumerate() {
            if valid_start && datagram.len() >= 8 {
                let length = (datagram.len() - 4) as u16;
                datagram[0] = 0x20 | datagram[0] & 1;
                datagram[2..4].copy_from_slice(&length.to_be_bytes());
            }
            let from: SocketAddr = format!("127.0.0.{last}:8805").parse().unwrap();
            let now = Nanos(time as u64 * MILLI);
            upf.take(now, from, &datagram);
            upf.node.tick(now, &mut upf.out);
            prop_assert!(upf.node.peers().count() <= 2);
            upf.out.clear();
        }
    }
}

/// What the UPF answers to a node message with these octets of IEs.
fn answered(ends: &mut [End; 2], kind: MessageType, body: &[u8]) -> Option<(MessageType, Vec<u8>)> {
    let mut bytes = Vec::new();
    let header = pfcp::Header::node(kind, pfcp::SequenceNumber(0x1234));
    pfcp::encode_message(&header, &mut bytes, |out| out.extend_from_slice(body)).unwrap();
    let from = ends[0].address;
    ends[1].take(Nanos(0), from, &bytes);
    let (to, answer) = ends[1].out.datagrams().map(|(to, answer)| (to, answer.to_vec())).next()?;
    ends[1].out.clear();
    let (header, body, rest) = pfcp::Header::decode(&answer).unwrap();
    assert_eq!((to, header.sequence, header.seid, rest.len()), (from, header.sequence, None, 0));
    assert_eq!(header.sequence, pfcp::SequenceNumber(0x1234));
    Some((header.message_type, body.to_vec()))
}

/// The Node ID 127.0.0.1 (§8.2.38), Cause (§8.2.1).
const UPF_ID: [u8; 9] = [0, 60, 0, 5, 0, 127, 0, 0, 1];

#[test]
fn a_session_set_deletion_succeeds_since_no_session_is_in_a_set() {
    let (mut ends, _) = associated(|_| {});
    // Node ID of the SMF, FQ-CSID (§8.2.43) of an SGW-C: IPv4 127.0.0.2, one CSID.
    let request = [&[0, 60, 0, 5, 0, 127, 0, 0, 2][..], &[0, 65, 0, 7, 0x01, 127, 0, 0, 2, 0, 9]].concat();
    let answer = answered(&mut ends, MessageType::SESSION_SET_DELETION_REQUEST, &request).unwrap();
    assert_eq!(
        answer,
        (MessageType::SESSION_SET_DELETION_RESPONSE, [&UPF_ID[..], &[0, 19, 0, 1, 1]].concat())
    );
    // Repeated: the same again. Nothing was handed out.
    assert_eq!(answered(&mut ends, MessageType::SESSION_SET_DELETION_REQUEST, &request).unwrap(), answer);
    assert_eq!(ends[1].node.counters().replayed_replies, 1);
    assert!(ends[1].handed_out.is_empty());
    // A stranger hears nothing.
    let mut strangers =
        [End::new(Role::Cp, "127.0.0.2:8805", |_| {}), End::new(Role::Up, "127.0.0.1:8805", |_| {})];
    assert_eq!(answered(&mut strangers, MessageType::SESSION_SET_DELETION_REQUEST, &request), None);
    assert_eq!(strangers[1].node.counters().no_association, 1);
}

#[test]
fn pfd_management_is_refused_since_it_is_not_offered() {
    let (mut ends, _) = associated(|_| {});
    // Application ID's PFDs (58) with Application ID (24) "web" and nothing else: its PFDs are to be deleted.
    let request = [0, 58, 0, 7, 0, 24, 0, 3, b'w', b'e', b'b'];
    let answer = answered(&mut ends, MessageType::PFD_MANAGEMENT_REQUEST, &request).unwrap();
    assert_eq!(answer, (MessageType::PFD_MANAGEMENT_RESPONSE, vec![0, 19, 0, 1, 76]));
    // A stranger is told to associate first.
    let mut strangers =
        [End::new(Role::Cp, "127.0.0.2:8805", |_| {}), End::new(Role::Up, "127.0.0.1:8805", |_| {})];
    let answer = answered(&mut strangers, MessageType::PFD_MANAGEMENT_REQUEST, &request).unwrap();
    assert_eq!(answer, (MessageType::PFD_MANAGEMENT_RESPONSE, vec![0, 19, 0, 1, 72]));
    // An SMF has no PFDs to manage.
    ends.swap(0, 1);
    assert_eq!(answered(&mut ends, MessageType::PFD_MANAGEMENT_REQUEST, &request), None);
    assert_eq!(ends[1].node.counters().unknown_messages, 1);
}
