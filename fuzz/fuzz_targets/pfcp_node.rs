//! A PFCP node between several peers and its owner: arbitrary datagrams, made-up and repeated messages, requests of the owner's, time.
//!
//! Limits hold; a request of the owner's ends once; a peer's sessions are ended by itself only, while it lives; session messages come from nodes with an association only; what is sent can
//! be read.
#![no_main]

use counters::Count;
use fuzz::Input;
use libfuzzer_sys::fuzz_target;
use pfcp::ie::{NodeId, RecoveryTimeStamp};
use pfcp::message::*;
use pfcp::node::{Event, Incoming, Node, NodeConfig, Output, Peer, RequestHandle, RequestPort, Role};
use pfcp::{Cause, Datagram, Header, MessageType, Seid, SequenceNumber};
use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use tables::Nanos;

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let mut world = World::new(&mut input);
    while !input.is_empty() {
        world.step(&mut input);
        world.look();
    }
    world.end();
});

struct World {
    node: Node,
    now: Nanos,
    out: Output,
    /// Requests handed out and not answered.
    asked: Vec<(RequestHandle, MessageType)>,
    /// Own requests that have not ended.
    tokens: HashSet<u64>,
    last_token: u64,
    /// Headers of what was sent last.
    sent: Vec<(SocketAddr, Header)>,
}

fn address(input: &mut Input<'_>) -> SocketAddr {
    let octet = input.u8();
    let ip = match octet % 6 {
        5 => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]),
        // Not on the list of those who may speak.
        4 => IpAddr::from([192, 0, 2, 1]),
        low => IpAddr::from([127, 0, 0, low + 1]),
    };
    SocketAddr::new(ip, if octet & 0x80 == 0 { 8805 } else { 40000 })
}

/// When a node began: few moments, one of them before the time stamps begin again.
fn stamp(input: &mut Input<'_>) -> RecoveryTimeStamp {
    RecoveryTimeStamp(input.pick(&[u32::MAX, 0, 1, 1 << 30]))
}

impl World {
    fn new(input: &mut Input<'_>) -> Self {
        let octet = input.u8();
        let role = if octet & 1 == 0 { Role::Up } else { Role::Cp };
        let mut config = NodeConfig::new(role, NodeId::Fqdn("upf.example".into()), RecoveryTimeStamp(7));
        config.bounds.peers = 3;
        config.bounds.outstanding = 4;
        config.bounds.reply_octets = 2_048;
        config.allowed = vec![([127, 0, 0, 0].into(), 8), ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0].into(), 32)];
        if octet & 2 != 0 {
            config.request_port = RequestPort::Source;
        }
        Self {
            node: Node::new(config),
            now: Nanos(1),
            out: Output::default(),
            asked: Vec::new(),
            tokens: HashSet::new(),
            last_token: 0,
            sent: Vec::new(),
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.below(10) {
            0 => {
                let from = address(input);
                self.receive(from, input.counted());
            }
            1 => self.pass(u64::from(input.u8()) * Nanos::SECOND / 16),
            2 | 3 => self.message(input),
            4 => self.answer(input),
            5 => {
                if let Some((handle, kind)) = self.asked.pop() {
                    self.respond(handle, kind);
                }
            }
            6 => {
                let peers: Vec<_> = self.node.peers().map(|peer| peer.id).collect();
                if peers.is_empty() {
                    return;
                }
                let peer = input.pick(&peers);
                self.last_token += 1;
                let (token, kind) = (self.last_token, MessageType::SESSION_REPORT_REQUEST);
                let request = SessionReportRequest::default();
                let encode = |out: &mut Vec<u8>| request.encode(out);
                if self.node.request(self.now, peer, kind, Seid(9), token, encode, &mut self.out).is_ok() {
                    self.tokens.insert(token);
                }
            }
            7 => {
                let to = address(input);
                let _ = self.node.associate(self.now, to, &mut self.out);
            }
            8 if input.one_in(4) => {
                let peers: Vec<_> = self.node.peers().map(|peer| peer.id).collect();
                peers.into_iter().for_each(|peer| self.node.release(self.now, peer, &mut self.out));
            }
            _ => self.pass(u64::from(input.u8()) * 1_000_000),
        }
    }

    /// A message as a peer would write it, under one of few sequence numbers.
    fn message(&mut self, input: &mut Input<'_>) {
        let from = address(input);
        let node_id = NodeId::Ip([10, 0, 0, input.u8() % 5].into());
        let recovery = stamp(input);
        let message: Message<'_> = match input.below(8) {
            0 | 1 => AssociationSetupRequest {
                node_id,
                recovery,
                up_features: None,
                cp_features: None,
                session_retention: input.flag(),
            }
            .into(),
            2 => AssociationReleaseRequest { node_id }.into(),
            3 => HeartbeatRequest { recovery, source: None }.into(),
            4 => fuzz::requests::establishment(input).into(),
            5 => fuzz::requests::modification(input).into(),
            6 => SessionReportRequest::default().into(),
            _ => {
                let kind = MessageType(input.u8());
                let Some(Ok(message)) = Message::decode_body(kind, input.counted()) else { return };
                message
            }
        };
        let sequence = SequenceNumber(u32::from(input.u8() % 12));
        let seid = message.message_type().is_session().then_some(Seid(1));
        let mut datagram = Vec::new();
        if message.encode(Header { seid, ..Header::node(MessageType(0), sequence) }, &mut datagram).is_ok() {
            self.receive(from, &datagram);
        }
    }

    /// The response to something that the node sent.
    fn answer(&mut self, input: &mut Input<'_>) {
        if self.sent.is_empty() {
            return;
        }
        let (to, header) = self.sent[input.below(self.sent.len())];
        let Some(kind) = header.message_type.response() else { return };
        let recovery = stamp(input);
        let node_id = NodeId::Ip([10, 0, 0, input.u8() % 5].into());
        let cause = input.pick(&[Cause::ACCEPTED, Cause::NO_RESOURCES]);
        let message: Message<'_> = match kind {
            MessageType::HEARTBEAT_RESPONSE => HeartbeatResponse { recovery }.into(),
            MessageType::ASSOCIATION_SETUP_RESPONSE => {
                AssociationSetupResponse { node_id, cause, recovery, up_features: None, cp_features: None }
                    .into()
            }
            MessageType::SESSION_REPORT_RESPONSE => {
                SessionReportResponse { cause, offending_ie: None, drop_buffered: false }.into()
            }
            _ => return,
        };
        let mut datagram = Vec::new();
        message.encode(header, &mut datagram).expect("it is short");
        let from = if input.one_in(8) { address(input) } else { to };
        self.receive(from, &datagram);
    }

    fn receive(&mut self, from: SocketAddr, datagram: &[u8]) {
        for message in Datagram::new(datagram) {
            let known = message.as_ref().ok().map(|(header, _)| *header);
            let kind = known.map(|header| header.message_type);
            let lived: Vec<Peer> = self.node.peers().filter(|peer| peer.alive).cloned().collect();
            match self.node.receive(self.now, from, message, &mut self.out) {
                Incoming::Nothing => {}
                Incoming::Request { handle, message_type, .. } => {
                    assert!(self.node.peer(handle.peer).is_some(), "a request of nobody's");
                    assert!(message_type.is_session() && known.is_some());
                    self.asked.push((handle, message_type));
                }
                Incoming::Response { token, .. } => {
                    assert!(self.tokens.remove(&token), "{token} ended twice");
                }
            }
            if kind.is_some_and(|kind| kind.is_request()) {
                self.only_itself(&lived, from, kind == Some(MessageType::HEARTBEAT_REQUEST));
            }
            self.look();
        }
    }

    /// A request from where a peer isn't expected ends no sessions of it while it lives, and a heartbeat none if its time stamp
    /// is not later than the one before.
    fn only_itself(&self, lived: &[Peer], from: SocketAddr, heartbeat: bool) {
        for event in &self.out.events {
            let (Event::PeerRestarted(id) | Event::PeerReleased(id)) = event else { continue };
            let Some(before) = lived.iter().find(|peer| peer.id == *id) else { continue };
            let known = before.address;
            let port = match self.node.config().request_port {
                RequestPort::Fixed(port) => from.port() == known.port() || from.port() == port,
                RequestPort::Source => true,
            };
            assert!(known.ip() == from.ip() && port, "{from} ended sessions of {known}");
            if let (true, Some(now)) = (heartbeat, self.node.peer(*id)) {
                let ahead = now.recovery.0.wrapping_sub(before.recovery.0);
                assert!(
                    ahead != 0 && ahead < 1 << 31,
                    "{:?} is not later than {:?}",
                    now.recovery,
                    before.recovery
                );
            }
        }
    }

    fn respond(&mut self, handle: RequestHandle, kind: MessageType) {
        let Some(kind) = kind.response() else { return };
        self.node.respond(
            handle,
            kind,
            Seid(5),
            |out| {
                SessionReportResponse { cause: Cause::ACCEPTED, offending_ie: None, drop_buffered: false }
                    .encode(out);
            },
            &mut self.out,
        );
    }

    fn pass(&mut self, nanos: u64) {
        self.now = self.now.plus(nanos);
        self.node.tick(self.now, &mut self.out);
    }

    /// What the node wants done, and its promises.
    fn look(&mut self) {
        for event in self.out.events.drain(..) {
            match event {
                Event::TimedOut { peer: Some(_), token } => {
                    assert!(self.tokens.remove(&token), "{token} ended twice");
                }
                Event::PeerReleased(peer) => assert!(self.node.peer(peer).is_none()),
                Event::TimedOut { peer: None, .. }
                | Event::PeerUp(_)
                | Event::PeerRestarted(_)
                | Event::PeerLost(_)
                | Event::TurnedAway { .. } => {}
            }
        }
        for (to, datagram) in self.out.datagrams() {
            let mut messages = Datagram::new(datagram);
            let (header, body) = messages.next().expect("a message").expect("the node's own header");
            assert!(messages.next().is_none());
            // The owner's answers are the owner's to get right.
            if !header.message_type.is_session() {
                let decoded = Message::decode_body(header.message_type, body).expect("a type that is known");
                decoded.unwrap_or_else(|error| panic!("{:?}: {error}", header.message_type));
            }
            if header.message_type.is_request() {
                if self.sent.len() >= 8 {
                    self.sent.remove(0);
                }
                self.sent.push((to, header));
            }
        }
        self.out.clear();
        let config = self.node.config();
        assert!(self.node.peers().count() <= config.bounds.peers);
        assert!(self.node.outstanding() <= config.bounds.outstanding);
        // What one peer had last stays, however long it is.
        assert!(self.node.kept_octets() <= config.bounds.reply_octets + 65_536);
        assert!(self.node.next_deadline().is_some() || self.node.outstanding() == 0);
    }

    /// Left alone, every own request comes to an end.
    fn end(mut self) {
        let (t1, n1) = (self.node.config().t1, self.node.config().n1);
        for _ in 0..=n1 {
            self.pass(t1 + 1);
            self.look();
        }
        assert!(self.tokens.is_empty(), "{:?} never ended", self.tokens);
        let _ = self.node.counters().lines().len();
    }
}
