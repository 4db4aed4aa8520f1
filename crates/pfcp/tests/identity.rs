//! Who may end a peer's sessions: itself, from where it is known, or nobody while it lives.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use pfcp::header::Datagram;
use pfcp::ie::{NodeId, RecoveryTimeStamp};
use pfcp::message::*;
use pfcp::message_type::MessageType;
use pfcp::node::{Event, Incoming, Node, NodeConfig, Output, RequestPort, Role};
use pfcp::{Cause, Header, Seid, SequenceNumber};
use std::net::SocketAddr;
use tables::Nanos;

const SECOND: u64 = Nanos::SECOND;
const OWNER: &str = "10.0.0.2:8805";
/// The same host, another program.
const NEIGHBOUR: &str = "10.0.0.2:40000";
const THIEF: &str = "10.0.0.66:8805";

struct Upf {
    node: Node,
    now: Nanos,
    out: Output,
    sequence: u32,
}

fn at(address: &str) -> SocketAddr {
    address.parse().unwrap()
}

impl Upf {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(adjust: impl FnOnce(&mut NodeConfig)) -> Self {
        let mut config = NodeConfig::new(Role::Up, NodeId::Fqdn("upf".into()), RecoveryTimeStamp(7));
        adjust(&mut config);
        Self { node: Node::new(config), now: Nanos(SECOND), out: Output::default(), sequence: 100 }
    }

    fn take(&mut self, from: &str, header: Header, message: impl Into<Message<'static>>) {
        let mut datagram = Vec::new();
        message.into().encode(header, &mut datagram).unwrap();
        for message in Datagram::new(&datagram) {
            assert!(matches!(
                self.node.receive(self.now, at(from), message, &mut self.out),
                Incoming::Nothing
            ));
        }
    }

    fn ask(&mut self, from: &str, message: impl Into<Message<'static>>) {
        self.sequence += 1;
        self.take(from, Header::node(MessageType(0), SequenceNumber(self.sequence)), message);
    }

    fn set_up(&mut self, from: &str, name: &str, recovery: u32, session_retention: bool) {
        let request = AssociationSetupRequest {
            node_id: NodeId::Fqdn(name.into()),
            recovery: RecoveryTimeStamp(recovery),
            up_features: None,
            cp_features: None,
            session_retention,
        };
        self.ask(from, request);
    }

    fn heartbeat(&mut self, from: &str, recovery: u32) {
        self.ask(from, HeartbeatRequest { recovery: RecoveryTimeStamp(recovery), source: None });
    }

    /// What was sent, as (to, type, Cause), which is forgotten.
    fn sent(&mut self) -> Vec<(String, MessageType, Option<Cause>)> {
        let read = |(to, datagram): (SocketAddr, &[u8])| {
            let (header, body, _) = Header::decode(datagram).unwrap();
            let cause = match header.message_type {
                MessageType::ASSOCIATION_SETUP_RESPONSE => {
                    Some(AssociationSetupResponse::decode(body).unwrap().cause)
                }
                MessageType::ASSOCIATION_RELEASE_RESPONSE => {
                    Some(AssociationReleaseResponse::decode(body).unwrap().cause)
                }
                _ => None,
            };
            (to.to_string(), header.message_type, cause)
        };
        let sent = self.out.datagrams().map(read).collect();
        let events = std::mem::take(&mut self.out.events);
        self.out.clear();
        self.out.events = events;
        sent
    }

    /// The peer answers the heartbeat that was just sent to it, and with nothing else.
    fn answers(&mut self, recovery: u32) {
        let to_owner = self.out.datagrams().find_map(|(to, datagram)| {
            let (header, _, _) = Header::decode(datagram).unwrap();
            (header.message_type == MessageType::HEARTBEAT_REQUEST).then_some((to, header))
        });
        let (to, header) = to_owner.expect("it wasn't asked back");
        assert_eq!(to, at(OWNER), "it is asked where it is known");
        self.sent();
        let response = HeartbeatResponse { recovery: RecoveryTimeStamp(recovery) };
        self.take(OWNER, Header::node(MessageType(0), header.sequence), response);
    }

    fn pass(&mut self, nanos: u64) {
        let end = self.now.plus(nanos);
        while self.now < end {
            self.now = self.now.plus(SECOND / 2);
            self.node.tick(self.now, &mut self.out);
        }
    }

    /// What happened to peers.
    fn events(&mut self) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.out.events);
        events.retain(|event| !matches!(event, Event::TurnedAway { .. }));
        events
    }

    /// With the owner's association.
    fn associated() -> (Self, Event) {
        let mut upf = Self::new();
        upf.set_up(OWNER, "smf", 1_000, false);
        let [Event::PeerUp(peer)] = upf.events()[..] else { panic!("no association") };
        assert_eq!(
            upf.sent(),
            [(OWNER.into(), MessageType::ASSOCIATION_SETUP_RESPONSE, Some(Cause::ACCEPTED))]
        );
        (upf, Event::PeerRestarted(peer))
    }
}

fn set_up_answered(to: &str, cause: Cause) -> (String, MessageType, Option<Cause>) {
    (to.into(), MessageType::ASSOCIATION_SETUP_RESPONSE, Some(cause))
}

#[test]
fn a_living_nodes_name_is_not_taken_over_from_another_address() {
    // Also with its own time stamp and the wish to keep its sessions.
    for (recovery, retain) in [(2_000, false), (1_000, false), (1_000, true)] {
        let (mut upf, _) = Upf::associated();
        upf.set_up(THIEF, "smf", recovery, retain);
        assert_eq!(upf.events(), []);
        upf.answers(1_000);
        assert_eq!(upf.sent(), [set_up_answered(THIEF, Cause::REJECTED)]);
        assert_eq!(upf.events(), []);
        let peer = upf.node.peers().next().unwrap();
        assert_eq!((peer.address, peer.recovery), (at(OWNER), RecoveryTimeStamp(1_000)));
        assert_eq!((upf.node.counters().asked_back, upf.node.counters().identities_refused), (1, 1));
        assert_eq!(upf.node.outstanding(), 0);
    }
}

#[test]
fn a_dead_nodes_name_is_free_for_its_successor_at_another_address() {
    let (mut upf, restarted) = Upf::associated();
    upf.set_up(THIEF, "smf", 2_000, false);
    upf.sent();
    // Three times three seconds without an answer.
    upf.pass(8 * SECOND);
    assert_eq!(upf.events(), []);
    upf.pass(2 * SECOND);
    let Event::PeerRestarted(peer) = restarted else { unreachable!() };
    assert_eq!(upf.events(), [Event::PeerLost(peer), restarted]);
    assert!(upf.sent().contains(&set_up_answered(THIEF, Cause::ACCEPTED)));
    assert_eq!(upf.node.peers().map(|peer| peer.address).collect::<Vec<_>>(), [at(THIEF)]);
}

#[test]
fn a_restarted_node_at_another_address_is_believed_if_it_says_so_at_both() {
    let (mut upf, restarted) = Upf::associated();
    upf.set_up(THIEF, "smf", 2_000, false);
    upf.answers(2_000);
    assert_eq!(upf.sent(), [set_up_answered(THIEF, Cause::ACCEPTED)]);
    assert!(upf.events().contains(&restarted));
}

#[test]
fn one_datagram_from_an_unexpected_port_ends_no_sessions() {
    type Try = fn(&mut Upf);
    let tries: [Try; 3] = [
        |upf| upf.heartbeat(NEIGHBOUR, 2_000),
        |upf| upf.set_up(NEIGHBOUR, "smf", 2_000, false),
        |upf| upf.set_up(NEIGHBOUR, "another", 2_000, false),
    ];
    for attempt in tries {
        // The owner knows nothing of it.
        let (mut upf, _) = Upf::associated();
        attempt(&mut upf);
        assert_eq!(upf.events(), []);
        upf.answers(1_000);
        assert_eq!((upf.events(), upf.node.counters().peer_restarts), (vec![], 0));
        assert_eq!(upf.node.peers().next().unwrap().node_id, NodeId::Fqdn("smf".into()));
        // It was the owner, who has begun anew.
        let (mut upf, restarted) = Upf::associated();
        attempt(&mut upf);
        upf.answers(2_000);
        assert_eq!(upf.events()[0], restarted);
        // While it is asked, others are not asked for.
        let (mut upf, _) = Upf::associated();
        for _ in 0..10 {
            attempt(&mut upf);
        }
        assert_eq!((upf.node.outstanding(), upf.node.counters().asked_back), (1, 1));
    }
    // A release can't be asked back: a heartbeat says nothing of it.
    let (mut upf, _) = Upf::associated();
    upf.ask(NEIGHBOUR, AssociationReleaseRequest { node_id: NodeId::Fqdn("smf".into()) });
    let refused = (NEIGHBOUR.into(), MessageType::ASSOCIATION_RELEASE_RESPONSE, Some(Cause::REJECTED));
    assert_eq!((upf.sent(), upf.events()), (vec![refused], vec![]));
    upf.ask(OWNER, AssociationReleaseRequest { node_id: NodeId::Fqdn("smf".into()) });
    assert!(matches!(upf.events()[..], [Event::PeerReleased(_)]));
}

/// Requests may come from any port, and a node keeps the one that it has (§4.2.2).
#[test]
fn a_node_is_expected_at_its_own_port_and_at_pfcps() {
    let mut upf = Upf::new();
    upf.set_up(NEIGHBOUR, "smf", 1_000, false);
    upf.events();
    upf.heartbeat(NEIGHBOUR, 2_000);
    assert!(matches!(upf.events()[..], [Event::PeerRestarted(_)]));
    upf.heartbeat(OWNER, 3_000);
    assert!(matches!(upf.events()[..], [Event::PeerRestarted(_)]));
    // Where several nodes share an address, the port is all that tells them apart.
    let mut upf = Upf::with(|config| config.request_port = RequestPort::Source);
    upf.set_up(NEIGHBOUR, "smf", 1_000, false);
    upf.set_up("10.0.0.2:40001", "smf", 1_000, false);
    assert!(matches!(upf.events()[..], [Event::PeerUp(_), Event::PeerRestarted(_)]));
}

/// The source port of a request is the sender's affair (§4.2.2), and says nothing of who he is: who forges an address forges a port too. A session
/// request is about one session, whose SEID it has to know, and is answered to where it came from.
#[test]
fn session_requests_are_carried_out_from_any_port_of_a_peers_host_and_of_no_other() {
    let (mut upf, _) = Upf::associated();
    let peer = upf.node.peers().next().unwrap().id;
    let kind = MessageType::SESSION_DELETION_REQUEST;
    let mut request = |from: &str, number| {
        let mut datagram = Vec::new();
        let header = Header::session(kind, Seid(3), SequenceNumber(number));
        Message::decode_body(kind, &[]).unwrap().unwrap().encode(header, &mut datagram).unwrap();
        let message = Datagram::new(&datagram).next().unwrap();
        match upf.node.receive(upf.now, at(from), message, &mut upf.out) {
            Incoming::Request { handle, .. } => {
                let (cause, usage_reports) = (Cause::SESSION_NOT_FOUND, Vec::new());
                let response = SessionDeletionResponse { cause, offending_ie: None, usage_reports };
                let answer = kind.response().unwrap();
                upf.node.respond(handle, answer, Seid(4), |out| response.encode(out), &mut upf.out);
                Some((handle.peer, upf.sent().pop().unwrap().0))
            }
            _ => None,
        }
    };
    for (number, from) in [(1, OWNER), (2, NEIGHBOUR), (3, OWNER)] {
        assert_eq!(request(from, number), Some((peer, from.to_owned())));
    }
    assert_eq!(request("10.9.9.9:8805", 4), None, "another host has no association");
}

/// TS 23.007 §19A: a smaller value is of a message that was long under way.
#[test]
fn an_older_time_stamp_is_no_restart() {
    let (mut upf, restarted) = Upf::associated();
    upf.heartbeat(OWNER, 999);
    upf.heartbeat(OWNER, 1_000);
    assert_eq!((upf.events(), upf.node.counters().older_recovery), (vec![], 1));
    upf.heartbeat(OWNER, 1_001);
    upf.heartbeat(OWNER, 1_000);
    assert_eq!((upf.events(), upf.node.counters().older_recovery), (vec![restarted], 2));
    // An association says how it is, whatever the sender's clock did.
    upf.set_up(OWNER, "smf", 5, false);
    assert_eq!(upf.events(), [restarted]);
    assert_eq!(upf.node.peers().next().unwrap().recovery, RecoveryTimeStamp(5));
}

/// What an address without an association sends, however much, makes no peer's repetition a new request.
#[test]
fn strangers_flush_no_replies() {
    let mut upf = Upf::with(|config| config.bounds.reply_octets = 20_000);
    upf.set_up(OWNER, "smf", 1_000, false);
    upf.sent();
    upf.events();
    let update = || AssociationUpdateRequest {
        node_id: NodeId::Fqdn("smf".into()),
        ..AssociationUpdateRequest::release(NodeId::Fqdn("smf".into()))
    };
    upf.ask(OWNER, update());
    let first = upf.sequence;
    let kept = upf.node.kept_octets();
    for _ in 0..70_000 {
        upf.ask(THIEF, update());
    }
    assert_eq!((upf.node.kept_octets(), upf.node.counters().no_association), (kept, 70_000));
    upf.sent();
    upf.take(OWNER, Header::node(MessageType(0), SequenceNumber(first)), update());
    assert_eq!(upf.node.counters().replayed_replies, 1);
    // A peer's own flood is bounded, and forgotten after a while.
    for _ in 0..10_000 {
        upf.ask(OWNER, update());
        assert!(upf.node.kept_octets() <= 20_000);
        upf.sent();
    }
    upf.pass(31 * SECOND);
    assert_eq!(upf.node.kept_octets(), 0);
}

/// A node that takes a dead one's name at another's address is both: neither is left behind without an address.
#[test]
fn an_address_is_one_peers() {
    let (mut upf, _) = Upf::associated();
    upf.set_up(THIEF, "dead", 1_000, false);
    let [Event::PeerUp(dead)] = upf.events()[..] else { panic!("no association") };
    upf.set_up(OWNER, "dead", 2_000, false);
    upf.sent();
    upf.pass(10 * SECOND);
    assert!(upf.events().contains(&Event::PeerRestarted(dead)));
    let left: Vec<_> = upf.node.peers().map(|peer| (peer.id, peer.address)).collect();
    assert_eq!(left, [(dead, at(OWNER))]);
}
