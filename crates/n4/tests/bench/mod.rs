//! A UPF without sockets, threads and real time: N4, one worker with all the shards, SMFs made of [`pfcp::node`], and a clock that
//! the test turns.
//!
//! What N4 orders reaches the worker, and what the worker tells reaches N4, unless the test holds orders back. After each
//! step the datapath's frames are accounted for.
#![allow(
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    clippy::wrong_self_convention
)]
#![allow(missing_docs)]

mod inspector;
mod requests;
mod smf;

pub use inspector::{Letters, Published};
pub use requests::*;
pub use smf::{Answer, Report, Smf};

use datapath::command::{Command, Event, Token};
use datapath::{Burst, Config, Datapath, Outbox, Reason};
use datapath::{Interface, Rib, Roles};
use io::Frame;
use io::mem::{FrameSize, MemFrame, MemPool};
use n4::{Header, Held, N4, Order, WallClock};
use packet::ipv4::Ipv4Header;
use packet::pdu_session::{Downlink, Uplink};
use packet::{MacAddr, PacketBuilder, PduSession, Qfi, Teid};
use pfcp::ie::{NodeId, RecoveryTimeStamp};
use pfcp::message::*;
use pfcp::message_type::MessageType;
use pfcp::node::{Bounds, NodeConfig, Role};
use pfcp::{Cause, Seid};
use session::applications::Applications;
use session::config::{Ipv4Range, LocalAddresses, Policy, PoolConfig};
use session::network_instance::Name;
use session::store::{DirectoryChange, Store};
use session::{PrefixLength, SessionRef, ShardId};
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tables::Nanos;

pub const SECOND: u64 = Nanos::SECOND;
pub const MILLI: u64 = SECOND / 1_000;
pub const UPF: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
pub const N3: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub const GNB: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
pub const HOST: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 80);
pub const ROUTER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 254);
const N3_MAC: MacAddr = MacAddr([2, 0, 0, 0, 3, 1]);
const N6_MAC: MacAddr = MacAddr([2, 0, 0, 0, 6, 1]);
const GNB_MAC: MacAddr = MacAddr([2, 9, 0, 0, 0, 10]);
const HOST_MAC: MacAddr = MacAddr([2, 9, 0, 0, 0, 80]);
/// NTP seconds when the bench's clock is at zero.
pub const NTP: u64 = 4_000_000_000;

/// A system clock that is so many nanoseconds ahead of the bench's first one.
pub fn wall(ahead: u64) -> WallClock {
    let since_1970 = Duration::from_secs(NTP - pfcp::calendar::NTP_AT_1970);
    WallClock::new(Nanos(0), since_1970 + Duration::from_nanos(ahead))
}

/// What a bench is made with.
pub struct Limits {
    pub sessions: usize,
    pub per_peer: usize,
    pub far_ends: u16,
    pub peers: usize,
    pub outstanding: usize,
    pub heartbeat: u64,
    /// Applications that [`Letters`] finds; none: nobody inspects.
    pub applications: &'static [&'static str],
    /// Forwarding Policies: each has a router of its own, [`router_of`].
    pub policies: &'static [&'static str],
}

/// The MAC address of the router of the Forwarding Policy in this place.
pub fn router_of(place: usize) -> [u8; 6] {
    [2, 9, 0, 0, 1, place as u8]
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 10_000,
            per_peer: 10_000,
            far_ends: 64,
            peers: 8,
            outstanding: 1_000,
            heartbeat: 0,
            applications: &[],
            policies: &[],
        }
    }
}

pub struct Bench {
    pub n4: N4,
    pub worker: Datapath<MemFrame>,
    pub smfs: Vec<Smf>,
    pub now: Nanos,
    /// Keep orders back until [`Bench::release_orders`].
    pub hold: bool,
    held: Vec<Order>,
    /// Another worker is slow to learn of the directory: [`Bench::others_know`] says when it has.
    pub others_are_slow: bool,
    fences: Vec<Token>,
    /// For the inspector.
    pfds: Published,
    out: Outbox<MemFrame>,
    pool: MemPool,
    snapshots: Vec<Option<Box<datapath::SessionSnapshot>>>,
    /// For the next process.
    sessions: session::config::Config,
    far_ends: u16,
    /// What the workers of earlier processes have dropped.
    dropped: HashMap<Reason, u64>,
    /// Another process takes over whenever all is quiet: so many times it was.
    quiet: Option<u32>,
}

/// Of the times when all is quiet, one in so many.
const RESTLESS: u32 = 11;

/// Set: processes follow each other in all tests.
pub const RESTLESSLY: &str = "MILLRACE_TEST_RESTLESSLY";

/// With all shards.
fn worker(sessions: &session::config::Config, far_ends: u16, pfds: &Published) -> Datapath<MemFrame> {
    let (teids, prefixes) = (sessions.teids, sessions.prefix_lengths());
    let inspection = Letters::inspection(&sessions.applications, pfds.clone());
    let mut rib = rib();
    let router = |place| Ipv4Addr::new(203, 0, 113, 100 + place as u8).into();
    let policies = 0..sessions.policies.len();
    policies.clone().for_each(|place| rib.fix(1, router(place), MacAddr(router_of(place))));
    rib.steer(policies.map(|place| [Some((1, router(place))), None]).collect()).unwrap();
    let base = Config::new(rib.fib());
    let config = Config { peers: far_ends, teids, prefixes, inspection, flow_idle: 5, ..base };
    let mut worker = Datapath::new(config);
    for id in ShardId::all() {
        let shard = worker.new_shard(id);
        worker.adopt(shard);
    }
    worker
}

fn rib() -> Rib {
    let mut rib = Rib::new();
    let interface = |port, mac, address: &str, roles| Interface {
        name: format!("if{port}"),
        port,
        vlan: None,
        mac,
        mtu: 1500,
        roles,
        addresses: vec![address.parse().unwrap()],
        network_instances: Vec::new(),
    };
    let (n3, n6) = (Roles { n3: true, ..Roles::default() }, Roles { n6: true, ..Roles::default() });
    rib.add_interface(interface(0, N3_MAC, "192.0.2.1/24", n3)).unwrap();
    rib.add_interface(interface(1, N6_MAC, "203.0.113.1/24", n6)).unwrap();
    for last in 10..=200 {
        rib.fix(0, Ipv4Addr::new(192, 0, 2, last).into(), GNB_MAC);
    }
    rib.fix(1, HOST.into(), HOST_MAC);
    rib.add_ue_pool("10.45.0.0/16".parse().unwrap());
    rib.add_ue_pool("2001:db8:56::/48".parse().unwrap());
    rib
}

impl Bench {
    /// With this many SMFs, all of them associated.
    pub fn new(smfs: usize) -> Self {
        Self::with(smfs, Limits::default())
    }

    pub fn with(smfs: usize, limits: Limits) -> Self {
        let mut bench = Self::unassociated(smfs, limits);
        for smf in 0..smfs {
            bench.associate(smf);
        }
        assert_eq!(bench.n4.node().peers().count(), smfs);
        bench
    }

    pub fn unassociated(smfs: usize, limits: Limits) -> Self {
        let mut applications = Applications::default();
        if !limits.applications.is_empty() {
            applications.inspects(limits.applications.iter().map(|name| name.as_bytes()));
        }
        let policy = |id: &&str| Policy { id: id.as_bytes().into(), in_force: true, instance: None };
        let config = session::config::Config {
            applications,
            policies: limits.policies.iter().map(policy).collect(),
            n3: LocalAddresses { ipv4: Some(N3), ipv6: None },
            pools: vec![
                PoolConfig {
                    ipv4: vec![Ipv4Range::Net("10.45.0.0/16".parse().unwrap())],
                    ipv6: vec!["2001:db8:45::/48".parse().unwrap()],
                    ..PoolConfig::default()
                },
                PoolConfig {
                    names: vec![Name::new(b"home")],
                    ipv6: vec!["2001:db8:56::/48".parse().unwrap()],
                    ipv6_length: PrefixLength::new(56).unwrap(),
                    ..PoolConfig::default()
                },
            ],
            own: vec![N3.into(), UPF.into()],
            limits: session::config::Limits {
                sessions: limits.sessions,
                sessions_per_peer: limits.per_peer,
                urrs: 8,
                ..session::config::Limits::default()
            },
            ..session::config::Config::default()
        };
        let base = NodeConfig::new(Role::Up, NodeId::Fqdn("upf.test".into()), RecoveryTimeStamp(7));
        let node = NodeConfig {
            features: n4::FEATURES,
            heartbeat_interval: limits.heartbeat,
            t1: SECOND,
            n1: 3,
            bounds: Bounds { peers: limits.peers, outstanding: limits.outstanding, ..base.bounds },
            ..base
        };
        let now = Nanos(SECOND);
        let pfds = Published::default();
        let store = Store::new(config.clone()).unwrap();
        let wall = wall(0);
        let n4 = N4::new(now, node, store, UPF.into(), &[], limits.far_ends.into(), wall);
        Self {
            n4,
            worker: worker(&config, limits.far_ends, &pfds),
            smfs: (0..smfs).map(|number| Smf::new(number as u8, 1)).collect(),
            now,
            hold: false,
            held: Vec::new(),
            others_are_slow: false,
            fences: Vec::new(),
            pfds,
            out: Outbox::new(2),
            pool: MemPool::new(10_000, FrameSize::Standard),
            snapshots: Vec::new(),
            sessions: config,
            far_ends: limits.far_ends,
            dropped: HashMap::new(),
            quiet: std::env::var_os(RESTLESSLY).map(|_| 0),
        }
    }

    /// Another process goes on with what this one is, after a pause.
    pub fn restart(&mut self, pause: u64) {
        assert_eq!(self.n4.pending(), 0, "workers have answered");
        let header = self.n4.header(self.now);
        let replies: Vec<_> = self.n4.replies().collect();
        let mut records = Vec::new();
        for session in self.n4.store().iter() {
            // Of an association that is gone: it is being swept.
            let Some(record) = self.n4.record(session) else { continue };
            let place = session.rules().place;
            let (token, slots) = (Token(0), [place.slot].into());
            let export = Command::Export { token, shard: place.shard, slots };
            self.worker.apply(self.now, export, &mut self.out, &mut self.pool);
            let Some(Event::Exported { mut sessions, .. }) = self.out.events.pop() else { panic!() };
            records.push((record, sessions.pop().unwrap().1));
        }
        let before = Header::read(&header).unwrap();
        assert_eq!(before.clock(before.since_1970 + Duration::from_nanos(pause)), self.now.plus(pause));
        self.now = self.now.plus(pause);
        self.sessions.teids = before.teids();
        self.sessions.epoch = before.epoch();
        let mut n4 = self.fresh(&before);
        for (reason, packets) in self.worker.counters().drops() {
            *self.dropped.entry(reason).or_default() += packets;
        }
        self.worker = worker(&self.sessions, self.far_ends, &self.pfds);
        let (now, out, pool, worker) = (self.now, &mut self.out, &mut self.pool, &mut self.worker);
        let mut directory = Vec::new();
        n4.restore(now, &before, records.clone(), |counted, restored| {
            let (token, (rules, changes)) = (Token(0), restored.unwrap());
            directory.extend(changes);
            worker.apply(now, Command::Restore { token, rules, counted }, out, pool);
            assert!(matches!(out.events.pop(), Some(Event::Restored { whole: true, .. })));
        });
        assert!(replies.iter().all(|reply| n4.keep_reply(reply)));
        if pause == 0 {
            // What leaves, comes back and leaves is the same, but for what associations are called.
            let all = |n4: &N4| {
                let records = n4.store().iter().filter_map(|session| n4.record(session));
                let mut replies: Vec<_> = n4.replies().collect();
                replies.sort();
                (records.collect::<Vec<_>>(), replies, n4.node().outstanding())
            };
            let (records, replies, unanswered) = all(&n4);
            let before = all(&self.n4);
            assert_eq!((records.len(), &replies, unanswered), (before.0.len(), &before.1, before.2));
            assert!(records.iter().zip(&before.0).all(|(new, old)| new.len() == old.len()));
            assert_eq!(n4.held(), self.n4.held());
            assert!(n4.pfds().portable() == self.n4.pfds().portable());
        }
        self.n4 = n4;
        directory.into_iter().for_each(|change| self.carry_out(Order::All(change)));
        self.out.events.clear();
    }

    /// Another process, which has read this header.
    pub fn fresh(&self, header: &Header) -> N4 {
        let config =
            session::config::Config { teids: header.teids(), epoch: header.epoch(), ..self.sessions.clone() };
        let node = NodeConfig { recovery: header.recovery, ..self.n4.node().config().clone() };
        let store = Store::new(config).unwrap();
        N4::new(self.now, node, store, UPF.into(), &[], self.far_ends.into(), self.n4.wall())
    }

    /// Whether a process could end now and nothing would be missed: nothing waits in the datapath, which doesn't leave it, and no session is on
    /// its way out.
    fn is_quiet(&self) -> bool {
        self.n4.pending() == 0
            && !self.hold
            && self.held.is_empty()
            && !self.others_are_slow
            && self.worker.counters().buffered == 0
            && self.n4.held().sweeps == 0
    }

    /// Carries datagrams, orders and events until all is quiet.
    pub fn settle(&mut self) {
        for _ in 0..10_000 {
            let mut quiet = true;
            for smf in &mut self.smfs {
                for datagram in smf.take_datagrams() {
                    quiet = false;
                    self.n4.receive(self.now, smf.address, &datagram);
                }
            }
            quiet &= !self.step();
            for (to, datagram) in self.datagrams() {
                quiet = false;
                if let Some(smf) = self.smfs.iter_mut().find(|smf| smf.address == to) {
                    smf.take(self.now, &datagram);
                }
            }
            if quiet {
                if let Some(times) = self.quiet.filter(|_| self.is_quiet()) {
                    self.quiet = Some(times + 1);
                    if times % RESTLESS == RESTLESS - 1 {
                        self.restart(0);
                    }
                }
                return;
            }
        }
        panic!("the bench does not come to rest");
    }

    /// Gives orders to the worker and events to N4, once; says whether there were any.
    pub fn step(&mut self) -> bool {
        if let Some(pfds) = self.n4.take_pfds() {
            *self.pfds.lock().unwrap() = pfds;
        }
        let orders: Vec<Order> = self.n4.take_orders().collect();
        let mut busy = !orders.is_empty();
        if self.hold {
            self.held.extend(orders);
        } else {
            orders.into_iter().for_each(|order| self.carry_out(order));
        }
        let events: Vec<Event> = self.out.events.drain(..).collect();
        for event in events {
            busy = true;
            match event {
                Event::Snapshot { token: Token(u64::MAX), session } => self.snapshots.push(session),
                event => self.n4.event(self.now, event),
            }
        }
        busy
    }

    /// N4's datagrams, which are sent with this.
    pub fn datagrams(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        let output = self.n4.output();
        assert!(output.events.is_empty(), "an event was left unhandled");
        let datagrams = output.datagrams().map(|(to, datagram)| (to, datagram.to_vec())).collect();
        output.clear();
        datagrams
    }

    fn carry_out(&mut self, order: Order) {
        let command = match order {
            Order::Shard(_, command) => command,
            Order::All(DirectoryChange::Tunnel { teid, place }) => Command::Directory { teid, place },
            Order::All(DirectoryChange::Address { prefix, session }) => {
                Command::AddressDirectory { prefix, session }
            }
            Order::Fence(token) if self.others_are_slow => return self.fences.push(token),
            Order::Fence(token) => return self.n4.directory_known(self.now, token),
        };
        self.worker.apply(self.now, command, &mut self.out, &mut self.pool);
        assert_eq!(self.worker.counters().balance(), 0);
    }

    /// The worker gets the orders that were held back.
    pub fn release_orders(&mut self) {
        self.release_orders_only();
        self.settle();
    }

    /// The same, and nothing else moves.
    pub fn release_orders_only(&mut self) {
        self.hold = false;
        for order in std::mem::take(&mut self.held) {
            self.carry_out(order);
        }
    }

    /// The slow worker has carried out its orders.
    pub fn others_know(&mut self) {
        for token in std::mem::take(&mut self.fences) {
            self.n4.directory_known(self.now, token);
        }
        self.settle();
    }

    /// The worker refuses the installations that were held back.
    pub fn refuse_orders(&mut self, refusal: datapath::Refusal) {
        self.hold = false;
        for order in std::mem::take(&mut self.held) {
            match order {
                Order::Shard(_, Command::Install { token, .. }) => {
                    self.n4.event(self.now, Event::Refused { token, refusal });
                }
                other => self.carry_out(other),
            }
        }
        self.settle();
    }

    /// Lets time pass, in steps of 10 ms.
    pub fn pass(&mut self, nanos: u64) {
        let end = self.now.plus(nanos);
        while self.now < end {
            self.now = Nanos(end.0.min(self.now.0 + 10 * MILLI));
            self.tick();
            self.settle();
        }
    }

    /// Everybody looks at the clock.
    pub fn tick(&mut self) {
        if self.n4.next_deadline().is_some_and(|deadline| deadline <= self.now) {
            self.n4.tick(self.now);
        }
        self.worker.tick(self.now, &mut self.out, &mut self.pool);
        for smf in &mut self.smfs {
            smf.tick(self.now);
        }
    }

    pub fn associate(&mut self, smf: usize) {
        self.smfs[smf].associate(self.now);
        self.settle();
    }

    /// Sends a request and returns the SEID and the body of the answer.
    pub fn ask(
        &mut self,
        smf: usize,
        kind: MessageType,
        seid: Seid,
        encode: impl Fn(&mut Vec<u8>),
    ) -> (Seid, Vec<u8>) {
        let token = self.smfs[smf].ask(self.now, kind, seid, encode);
        self.settle();
        let (answered, seid, body) = self.smfs[smf].answers.remove(&token).expect("no answer");
        assert_eq!(Some(answered), kind.response());
        (seid, body)
    }

    /// Establishes; the response has come to the request's CP SEID.
    pub fn try_establish(
        &mut self,
        smf: usize,
        request: &SessionEstablishmentRequest<'_>,
    ) -> SessionEstablishmentResponse {
        let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
        let (seid, body) = self.ask(smf, kind, Seid(0), |out| request.encode(out));
        assert_eq!(seid, request.cp_fseid.seid, "the response goes to the CP SEID");
        let response = SessionEstablishmentResponse::decode(&body).unwrap();
        assert_eq!(response.node_id, NodeId::Fqdn("upf.test".into()));
        assert_eq!(response.up_fseid.is_some(), response.cause.is_success());
        response
    }

    pub fn establish(&mut self, smf: usize, request: &SessionEstablishmentRequest<'_>) -> Established {
        let response = self.try_establish(smf, request);
        assert_eq!(response.cause, Cause::ACCEPTED, "{response:?}");
        Established::new(&response)
    }

    pub fn modify(
        &mut self,
        smf: usize,
        seid: Seid,
        request: &SessionModificationRequest<'_>,
    ) -> (Seid, SessionModificationResponse) {
        let kind = MessageType::SESSION_MODIFICATION_REQUEST;
        let (cp, body) = self.ask(smf, kind, seid, |out| request.encode(out));
        (cp, SessionModificationResponse::decode(&body).unwrap())
    }

    /// Modifies, and that is accepted.
    pub fn change(
        &mut self,
        smf: usize,
        seid: Seid,
        request: &SessionModificationRequest<'_>,
    ) -> SessionModificationResponse {
        let (_, response) = self.modify(smf, seid, request);
        assert_eq!(response.cause, Cause::ACCEPTED, "{response:?}");
        response
    }

    pub fn delete(&mut self, smf: usize, seid: Seid) -> (Seid, SessionDeletionResponse) {
        let (cp, body) = self.ask(smf, MessageType::SESSION_DELETION_REQUEST, seid, |_| {});
        (cp, SessionDeletionResponse::decode(&body).unwrap())
    }

    fn process(&mut self, port: u16, frame: &[u8]) {
        let mut burst = Burst::of(vec![MemFrame::copy_of(frame).unwrap()]);
        self.worker.process(self.now, port, &mut burst, &mut self.out, &mut self.pool);
        assert_eq!(self.worker.counters().balance(), 0);
    }

    /// Frames that left through a port.
    pub fn sent(&mut self, port: usize) -> Vec<Vec<u8>> {
        self.out.transmit[port].drain(..).map(|frame| frame.bytes().to_vec()).collect()
    }

    /// Nothing is to leave anywhere.
    pub fn nothing_sent(&mut self) {
        assert_eq!((self.sent(0), self.sent(1)), (vec![], vec![]));
    }

    /// A packet of the UE to [`HOST`], of this many octets in all; what becomes of it is for the caller to look at.
    pub fn up(&mut self, session: &Established, length: usize) {
        self.worker_uplink(session, length);
        self.settle();
    }

    /// The same, and N4 doesn't hear of it yet.
    pub fn worker_uplink(&mut self, session: &Established, length: usize) {
        let inner = inner(session.ue, HOST, length, 64);
        let qfi = PduSession::Uplink(Uplink { qfi: Qfi::new(9).unwrap(), ..UPLINK });
        let outer = PacketBuilder::new().ethernet(N3_MAC, GNB_MAC).ipv4(GNB, N3).udp(2152, 2152);
        self.process(0, &outer.gtpu(session.teid).pdu_session(&qfi).build(&inner));
    }

    /// A packet of the UE from this port to [`HOST`], which says this.
    pub fn say(&mut self, session: &Established, port: u16, payload: &[u8]) {
        let inner = PacketBuilder::new().ipv4(session.ue, HOST).udp(port, 443).build(payload);
        let qfi = PduSession::Uplink(Uplink { qfi: Qfi::new(9).unwrap(), ..UPLINK });
        self.from_gnb(GNB, |outer| outer.gtpu(session.teid).pdu_session(&qfi).build(&inner));
    }

    /// What [`HOST`] says to the UE's port.
    pub fn hear(&mut self, session: &Established, port: u16, payload: &[u8]) {
        let frame = PacketBuilder::new().ethernet(N6_MAC, HOST_MAC).ipv4(HOST, session.ue).udp(443, port);
        self.process(1, &frame.build(payload));
        self.settle();
    }

    /// A packet of [`HOST`] to the UE.
    pub fn down(&mut self, session: &Established, length: usize) {
        self.process(
            1,
            &[&N6_MAC.0[..], &HOST_MAC.0, &[8, 0], &inner(HOST, session.ue, length, 64)].concat(),
        );
        self.settle();
    }

    /// A packet of IPv6 as it comes from the data network.
    pub fn from_network(&mut self, packet: &[u8]) {
        self.process(1, &[&N6_MAC.0[..], &HOST_MAC.0, &[0x86, 0xdd], packet].concat());
        self.settle();
    }

    /// A frame as it comes from the gNB.
    pub fn from_gnb(&mut self, gnb: Ipv4Addr, message: impl FnOnce(PacketBuilder) -> Vec<u8>) {
        let frame = message(PacketBuilder::new().ethernet(N3_MAC, GNB_MAC).ipv4(gnb, N3).udp(2152, 2152));
        self.process(0, &frame);
        self.settle();
    }

    pub fn dropped(&self, reason: Reason) -> u64 {
        self.worker.counters().dropped(reason) + self.dropped.get(&reason).copied().unwrap_or_default()
    }

    /// The session as its shard sees it.
    pub fn inspect(&mut self, seid: Seid) -> Option<Box<datapath::SessionSnapshot>> {
        let command = Command::Inspect { token: Token(u64::MAX), session: SessionRef::of(seid) };
        self.worker.apply(self.now, command, &mut self.out, &mut self.pool);
        self.settle();
        self.snapshots.pop().unwrap()
    }

    /// Nothing is left of any session, in control and in the worker.
    pub fn assert_empty(&mut self) {
        self.settle();
        assert_eq!(self.n4.store().counts(), session::store::Counts::default());
        assert_eq!(self.n4.held(), Held::default());
        assert_eq!(self.n4.store().directory().count(), 0);
        assert_eq!(self.worker.sessions(), 0);
        let counters = self.worker.counters();
        assert_eq!((counters.buffered, counters.held, counters.balance()), (0, 0, 0));
        for smf in &self.smfs {
            assert!(smf.answers.is_empty(), "an answer that nobody looked at");
        }
    }
}

pub const UPLINK: Uplink = Uplink {
    qfi: match Qfi::new(0) {
        Some(qfi) => qfi,
        None => unreachable!(),
    },
    times: None,
    downlink_delay: None,
    uplink_delay: None,
    sequence: None,
    n3n9_delay: None,
    d1_pdcp_delay: None,
};

/// A UDP packet of this many octets.
pub fn inner(source: Ipv4Addr, destination: Ipv4Addr, length: usize, ttl: u8) -> Vec<u8> {
    let header = Ipv4Header { source, destination, ttl, ..Ipv4Header::default() };
    let payload: Vec<u8> = (0..length - 28).map(|at| at as u8).collect();
    PacketBuilder::new().ipv4_header(header).udp(40_000, 53).build(&payload)
}

/// What must leave towards the gNB.
pub fn tunnelled(gnb: Ipv4Addr, teid: u32, packet: &[u8], frame: &[u8]) -> Vec<u8> {
    // The outer identification is the sender's to choose.
    let identification = u16::from_be_bytes([frame[18], frame[19]]);
    let header = Ipv4Header { source: N3, destination: gnb, identification, ..Ipv4Header::default() };
    let container = Downlink {
        qfi: Qfi::new(9).unwrap(),
        rqi: false,
        ppi: None,
        sending_time: None,
        sequence: None,
        mbs_sequence: None,
    };
    let outer =
        PacketBuilder::new().ethernet(GNB_MAC, N3_MAC).ipv4_header(header).udp_without_checksum(2152, 2152);
    outer.gtpu(Teid(teid)).pdu_session(&PduSession::Downlink(container)).build(packet)
}

/// What must leave towards the data network.
pub fn plain(packet: &[u8]) -> Vec<u8> {
    [&HOST_MAC.0[..], &N6_MAC.0, &[8, 0], packet].concat()
}
