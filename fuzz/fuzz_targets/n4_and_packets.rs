//! The whole UPF without sockets: SMFs' datagrams (right, damaged, repeated, other SMFs' sessions), packets, shard moves, changes of what
//! is translated, restarts with what was written down before, and time in any order, through `n4` and two workers. Whatever is held, others are served; when all SMFs have left, nothing is.
#![no_main]

use datapath::{CheckSource, Command, Event, Token};
use fuzz::user_plane::{self, FAR_ENDS, UserPlane};
use fuzz::{Input, requests, traffic};
use libfuzzer_sys::fuzz_target;
use loadgen::mutate::mutate;
use n4::{N4, Order, WallClock};
use pfcp::ie::{NodeId, RecoveryTimeStamp};
use pfcp::message::*;
use pfcp::node::{NodeConfig, Role};
use pfcp::{Cause, Datagram, Header, MessageType, Seid, SequenceNumber};
use session::ShardId;
use session::store::{Counts, DirectoryChange, Store};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tables::Nanos;

const SMFS: usize = 3;
/// Of orders that N4 hasn't given.
const TOKEN: Token = Token(u64::MAX - 1);

fuzz_target!(|data: &[u8]| {
    let kind = data.last().copied().unwrap_or_default();
    let mut world = World::new(user_plane::check_source(kind), kind & 4 != 0);
    let mut input = Input::new(data);
    // So that no script has to find out that association comes first.
    world.associate(0, 1);
    while !input.is_empty() {
        world.step(&mut input);
    }
    world.plane.serves(world.n4.store());
    world.settle();
    world.end();
});

struct World {
    n4: N4,
    plane: UserPlane,
    smfs: [Smf; SMFS],
}

#[derive(Default)]
struct Smf {
    sequence: u32,
    last: Vec<u8>,
    /// Requests of the UPF's that wait for an answer.
    asked: Vec<Header>,
}

fn address(smf: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, smf as u8 + 1], 8805))
}

impl World {
    fn new(check_source: CheckSource, inspected: bool) -> Self {
        let own = IpAddr::V4(user_plane::N4);
        let mut node = NodeConfig::new(Role::Up, NodeId::Ip(own), RecoveryTimeStamp(0xe000_0000));
        node.bounds.peers = 2;
        node.bounds.outstanding = 6;
        node.bounds.reply_octets = 4_096;
        let store = Store::new(requests::config()).expect("the configuration is right");
        let plane = UserPlane::new(check_source, inspected);
        let wall = WallClock::new(plane.now, Duration::from_secs(1_700_000_000));
        let n4 = N4::new(plane.now, node, store, own, &[], FAR_ENDS.into(), wall);
        Self { n4, plane, smfs: Default::default() }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.u8() {
            0..=0x7f => traffic::traffic(input, self.n4.store(), &mut self.plane),
            0x80..=0x8f => traffic::hostile(input, self.n4.store(), &mut self.plane),
            0x90..=0xa7 => self.request(input, MessageType::SESSION_ESTABLISHMENT_REQUEST),
            0xa8..=0xbf => self.request(input, MessageType::SESSION_MODIFICATION_REQUEST),
            0xc0..=0xcb => self.request(input, MessageType::SESSION_DELETION_REQUEST),
            0xcc..=0xd3 => self.answer(input),
            0xd4..=0xdb => self.pass(u64::from(input.u8()) * Nanos::SECOND / 32),
            0xdc..=0xe1 => {
                let smf = input.below(SMFS);
                self.associate(smf, input.u8().into());
            }
            0xe2..=0xe3 => {
                let smf = input.below(SMFS);
                self.release(smf);
            }
            0xe4..=0xe8 => {
                let smf = input.below(SMFS);
                let again = self.smfs[smf].last.clone();
                self.deliver(smf, &again);
            }
            0xe9..=0xed => {
                let smf = input.below(SMFS);
                self.deliver(smf, input.counted());
            }
            0xee => self.plane.reconfigure(input),
            0xef => self.restart(input),
            0xf0..=0xf7 => self.plane.move_shard(ShardId::from_hash(input.u16().into())),
            _ => {
                let seen = self.sessions();
                if let Some((place, _)) = seen.get(input.below(seen.len().max(1))) {
                    self.plane.move_shard(place.shard);
                }
            }
        }
        self.settle();
    }

    /// Another process takes over, after a pause; of what it reads, something may be damaged. Workers stay: it is sessions that leave and come
    /// back.
    fn restart(&mut self, input: &mut Input<'_>) {
        let damages = input.one_in(4);
        let damaged = |input: &mut Input<'_>, octets: &mut Vec<u8>| {
            if damages && input.one_in(2) {
                mutate(octets, &mut |n| input.below(n.clamp(1, 255)));
            }
        };
        let mut header = self.n4.header(self.plane.now);
        damaged(input, &mut header);
        // A process that can't read it doesn't start.
        let Some(header) = n4::Header::read(&header) else { return };
        let mut replies: Vec<_> = self.n4.replies().collect();
        replies.iter_mut().for_each(|reply| damaged(input, reply));
        let mut records = Vec::new();
        for (place, seid) in self.sessions() {
            let record = self.n4.store().get(seid).and_then(|session| self.n4.record(session));
            let (token, slots) = (TOKEN, [place.slot].into());
            let counted = self.plane.ask(place.shard, Command::Export { token, shard: place.shard, slots });
            let Event::Exported { mut sessions, .. } = counted else { panic!("{counted:?}") };
            let (exported, counted) = sessions.pop().expect("it is there");
            assert_eq!(exported, seid);
            if let Some(mut record) = record {
                damaged(input, &mut record);
                let mut counted = Vec::from(counted);
                damaged(input, &mut counted);
                records.push((record, counted));
            }
            self.plane.ask(place.shard, Command::Remove { token, session: place });
        }
        let directory: Vec<_> = self.n4.store().directory().collect();
        for change in directory {
            self.plane.announce(match change {
                DirectoryChange::Tunnel { teid, .. } => DirectoryChange::Tunnel { teid, place: None },
                DirectoryChange::Address { prefix, .. } => DirectoryChange::Address { prefix, session: None },
            });
        }
        self.plane.settle(self.n4.store());
        self.plane.events.clear();
        self.plane.pass(u64::from(input.u8()) * Nanos::SECOND / 8);
        let now = self.plane.now;
        let config = self.n4.node().config();
        let node = NodeConfig { recovery: header.recovery, ..config.clone() };
        // Of damaged headers, only what a process takes over as it is.
        let store = Store::new(session::config::Config { epoch: header.epoch(), ..requests::config() });
        let store = store.expect("the configuration is right");
        let mut n4 = N4::new(now, node, store, user_plane::N4.into(), &[], FAR_ENDS.into(), self.n4.wall());
        let (plane, mut no_room) = (&mut self.plane, Vec::new());
        n4.restore(now, &header, records, |counted, restored| {
            let Ok((rules, directory)) = restored else {
                assert!(damages, "{restored:?}");
                return;
            };
            let (token, shard, seid) = (TOKEN, rules.place.shard, rules.seid);
            let counted = counted.into();
            match plane.ask(shard, Command::Restore { token, rules, counted }) {
                Event::Restored { whole, .. } => assert!(whole || damages),
                Event::Refused { .. } if damages => no_room.push(seid),
                other => panic!("{other:?}"),
            }
            directory.into_iter().for_each(|change| plane.announce(change));
        });
        no_room.into_iter().for_each(|seid| n4.give_up(seid));
        for reply in &replies {
            assert!(n4.keep_reply(reply) || damages);
        }
        self.n4 = n4;
    }

    fn sessions(&self) -> Vec<(session::SessionRef, Seid)> {
        self.n4.store().iter().map(|session| (session.rules().place, session.rules().seid)).collect()
    }

    /// A session request of an SMF: mostly about a session that there is, now and then damaged.
    fn request(&mut self, input: &mut Input<'_>, kind: MessageType) {
        let smf = if input.one_in(8) { input.below(SMFS) } else { 0 };
        let sessions = self.sessions();
        let seid = match sessions.len() {
            _ if kind == MessageType::SESSION_ESTABLISHMENT_REQUEST => Seid(0),
            0 => Seid(input.u64()),
            count => sessions[input.below(count)].1,
        };
        let damage = if input.one_in(8) { 1 + input.below(3) } else { 0 };
        let message: Message<'_> = match kind {
            MessageType::SESSION_ESTABLISHMENT_REQUEST => requests::establishment(input).into(),
            MessageType::SESSION_MODIFICATION_REQUEST => requests::modification(input).into(),
            _ => Message::decode_body(kind, &[]).expect("it is known").expect("it has no mandatory IEs"),
        };
        let header = Header::session(kind, seid, self.next(smf));
        let mut datagram = Vec::new();
        // A text of 255 octets in each of many filters can be too much for one message.
        if message.encode(header, &mut datagram).is_err() {
            return;
        }
        for _ in 0..damage {
            mutate(&mut datagram, &mut |n| {
                if n > 256 { usize::from(input.u16()) % n } else { input.below(n) }
            });
        }
        self.deliver(smf, &datagram);
    }

    fn next(&mut self, smf: usize) -> SequenceNumber {
        self.smfs[smf].sequence += 1;
        SequenceNumber(self.smfs[smf].sequence)
    }

    fn associate(&mut self, smf: usize, recovery: u32) {
        let request = AssociationSetupRequest {
            node_id: NodeId::Ip(address(smf).ip()),
            recovery: RecoveryTimeStamp(recovery),
            up_features: None,
            cp_features: None,
            session_retention: recovery.is_multiple_of(2),
        };
        self.say(smf, request.into());
    }

    fn release(&mut self, smf: usize) {
        self.say(smf, AssociationReleaseRequest { node_id: NodeId::Ip(address(smf).ip()) }.into());
    }

    fn say(&mut self, smf: usize, message: Message<'_>) {
        let header = Header::node(message.message_type(), self.next(smf));
        let mut datagram = Vec::new();
        message.encode(header, &mut datagram).expect("it is short");
        self.deliver(smf, &datagram);
    }

    fn deliver(&mut self, smf: usize, datagram: &[u8]) {
        self.smfs[smf].last = datagram.to_vec();
        self.n4.receive(self.plane.now, address(smf), datagram);
        self.settle();
    }

    /// An SMF answers what it was asked: yes, no, or nonsense.
    fn answer(&mut self, input: &mut Input<'_>) {
        let smf = input.below(SMFS);
        let Some(header) = self.smfs[smf].asked.pop() else { return };
        let Some(kind) = header.message_type.response() else { return };
        let recovery = RecoveryTimeStamp(input.u8().into());
        let cause = input.pick(&[
            Cause::ACCEPTED,
            Cause::ACCEPTED,
            Cause::ACCEPTED,
            Cause::SESSION_NOT_FOUND,
            Cause(255),
        ]);
        let message: Message<'_> = match kind {
            MessageType::HEARTBEAT_RESPONSE => HeartbeatResponse { recovery }.into(),
            MessageType::SESSION_REPORT_RESPONSE => {
                SessionReportResponse { cause, offending_ie: None, drop_buffered: input.flag() }.into()
            }
            _ => return,
        };
        let mut datagram = Vec::new();
        message.encode(Header { message_type: kind, ..header }, &mut datagram).expect("it is short");
        self.deliver(smf, &datagram);
    }

    fn pass(&mut self, nanos: u64) {
        self.plane.pass(nanos);
        self.n4.tick(self.plane.now);
        self.settle();
    }

    /// Until nobody has anything to say to the other: orders to workers, their events, datagrams to SMFs.
    fn settle(&mut self) {
        for round in 0.. {
            assert!(round < 100, "N4 and the workers don't come to rest");
            let orders: Vec<Order> = self.n4.take_orders().collect();
            let mut fenced = Vec::new();
            for order in orders {
                match order {
                    Order::Shard(shard, command) => self.plane.post(shard, command),
                    Order::All(change) => self.plane.announce(change),
                    Order::Fence(token) => fenced.push(token),
                }
            }
            self.plane.settle(self.n4.store());
            for token in fenced {
                self.n4.directory_known(self.plane.now, token);
            }
            self.collect();
            if self.plane.events.is_empty() {
                break;
            }
            for event in std::mem::take(&mut self.plane.events) {
                assert!(!matches!(event, Event::Refused { .. }), "{event:?}: it had been accepted");
                self.n4.event(self.plane.now, event);
            }
        }
        assert_eq!(self.n4.pending(), 0);
        assert_eq!(self.plane.sessions(), self.n4.store().counts().sessions);
        assert!(self.n4.node().peers().count() <= self.n4.node().config().bounds.peers);
        assert!(self.n4.node().outstanding() <= self.n4.node().config().bounds.outstanding);
    }

    /// What the UPF sends is a message, to an SMF.
    fn collect(&mut self) {
        let mut asked = Vec::new();
        for (to, datagram) in self.n4.output().datagrams() {
            for message in Datagram::new(datagram) {
                let (header, body) = message.expect("the UPF's own header");
                let decoded = Message::decode_body(header.message_type, body).expect("a type that is known");
                decoded.unwrap_or_else(|error| panic!("{:?}: {error}", header.message_type));
                if header.message_type.is_request() {
                    asked.push((to, header));
                }
            }
        }
        self.n4.output().clear();
        for (to, header) in asked {
            if let Some(smf) = self
                .smfs
                .iter_mut()
                .enumerate()
                .find_map(|(at, s)| (address(at).ip() == to.ip()).then_some(s))
            {
                smf.asked.push(header);
            }
        }
    }

    fn end(mut self) {
        for smf in 0..SMFS {
            self.release(smf);
        }
        let peers: Vec<_> = self.n4.node().peers().map(|peer| (peer.address, peer.node_id.clone())).collect();
        for (from, node_id) in peers {
            // One that a damaged message made: it has another Node ID.
            let mut datagram = Vec::new();
            let message: Message<'_> = AssociationReleaseRequest { node_id }.into();
            let header = Header::node(message.message_type(), SequenceNumber(0xff_fff0));
            message.encode(header, &mut datagram).expect("it is short");
            self.n4.receive(self.plane.now, from, &datagram);
            self.settle();
        }
        assert_eq!(self.n4.node().peers().count(), 0);
        for _ in 0..64 {
            self.pass(Nanos::SECOND);
        }
        assert_eq!(self.n4.store().counts(), Counts::default());
        assert!(self.n4.store().pools().all(|usage| usage.ipv4.0 == 0 && usage.ipv6.0 == 0));
        assert_eq!((self.n4.node().outstanding(), self.n4.pending()), (0, 0));
        self.plane.end(self.n4.store());
    }
}
