//! What do SMFs get for an answer?
//!
//! The UPF's side of N4: what SMFs ask for becomes sessions, commands to shards, answers and reports.
//!
//! [`N4`] has no socket, no thread and no clock. It is fed datagrams, the workers' events and the time; it leaves behind datagrams
//! to send ([`N4::output`]) and orders for workers ([`N4::take_orders`]). So the same code runs in the UPF, in
//! tests and under a fuzzer.
//!
//! A request's way: [`pfcp::node`] keeps repetitions and strangers away; the message is decoded; [`session::store`] carries it out
//! whole or refuses it whole; the owner of the session's shard is told ([`Command::Install`]); when it says that the rules are in
//! force, and all workers know where the session's packets go, and only then, the SMF gets its answer. So an SMF that was told "accepted" may send packets at once.
#![forbid(unsafe_code)]

mod convert;
mod counters;
mod detections;
mod far_ends;
mod history;
mod leaving;
mod pfds;
mod portable;
mod rate;
mod reports;
mod requests;
mod timers;

pub use counters::N4Counters;
pub use far_ends::FarEndStatus;
pub use history::{Entry, Excerpt, MAX_ENTRIES};
pub use leaving::LastReports;
pub use portable::Header;

use crate::far_ends::FarEnds;
use crate::history::History;
use crate::reports::Reports;
use crate::timers::Timers;
use datapath::command::{Command, Event, Token};
use pfcp::Seid;
use pfcp::calendar::NTP_AT_1970;
use pfcp::header::Datagram;
use pfcp::ie::{FSeid, UpFunctionFeatures};
use pfcp::node::{Bounds, Incoming, Node, NodeConfig, Output};
use session::ShardId;
use session::applications::Applications;
use session::config::Policy;
use session::pfd::Pfds;
use session::refusal::Refusal;
use session::store::{Deleted, DirectoryChange, Store, Sweep};
use session::usage::Usage;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tables::Nanos;

/// Sessions of a lost or released association that are removed in one round, so that a million don't stall N4.
const SWEEP_PER_ROUND: usize = 256;
/// Orders that workers have not answered, at most, before session requests are refused with Cause 74: a quarter of a second's
/// work of one worker, and some tens of megabytes. Deletions, which relieve, are taken up to twice as many; from there on sweeps and
/// timers wait too.
const MAX_PENDING: usize = 16_384;
/// How long to wait before greeting an SMF again that does not answer.
const GREET_AGAIN: u64 = 10 * Nanos::SECOND;

/// What is offered to SMFs in Association Setup (TS 29.244 §8.2.25): what works as the standard says, and nothing else. IP6PL is
/// not among it, since prefixes that the UPF chooses are /64 whatever length is asked for. PFDM is added where packets are inspected.
pub const FEATURES: UpFunctionFeatures = UpFunctionFeatures(
    UpFunctionFeatures::FTUP
        | UpFunctionFeatures::DDND
        | UpFunctionFeatures::EMPU
        | UpFunctionFeatures::FRRT
        | UpFunctionFeatures::UEIP
        | UpFunctionFeatures::MNOP
        | UpFunctionFeatures::BUNDL
        | UpFunctionFeatures::VTIME,
);

/// Something for workers to do.
#[derive(Debug)]
pub enum Order {
    /// For the owner of this shard.
    Shard(ShardId, Command),
    /// For every worker.
    All(DirectoryChange),
    /// After the orders before it: [`N4::directory_known`] is to be called with this token when every worker has carried them out.
    Fence(Token),
}

/// What waits for a worker's answer.
#[derive(Debug)]
enum Pending {
    /// A session request of an SMF.
    Request(requests::Waiting),
    /// A session request that the owner of the shard has carried out; other workers have yet to learn where packets of the
    /// session go.
    Applied(requests::Waiting, Vec<Usage>),
    /// A query of ours, for a report.
    Report(Seid),
    /// A question when packets last came.
    Activity(timers::Asked),
    /// Nothing: the session is gone, or its SMF is.
    Nobody,
}

/// Time as PFCP tells it: NTP seconds.
///
/// The workers' clock measures intervals; what time of day it is, only the system knows, which corrects itself by steps and by
/// running faster or slower. So this holds for the moment when it was taken, and is to be taken again and again
/// ([`N4::tell_time`]). A time in the past is told as the system's clock, as it is now, would have shown it: a
/// measurement keeps its length over a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WallClock {
    /// Nanoseconds since 1970 at `Nanos(0)`: before 1970 where a system's clock has not been set yet.
    zero: i128,
}

impl WallClock {
    /// It is `now`, and so much time has passed since 1970.
    pub const fn new(now: Nanos, since_1970: Duration) -> Self {
        Self { zero: since_1970.as_nanos().cast_signed() - now.0 as i128 }
    }

    /// The NTP seconds of era 0 and 1 alike: the low 32 bits (RFC 5905 §6).
    pub const fn ntp(self, at: Nanos) -> pfcp::ie::NtpSeconds {
        let since_1970 = (self.zero + at.0 as i128).div_euclid(Nanos::SECOND as i128);
        pfcp::ie::NtpSeconds((since_1970 + NTP_AT_1970 as i128) as u32)
    }

    /// Time since 1970; before, 0.
    pub const fn since_1970(self, at: Nanos) -> Duration {
        let nanos = self.zero + at.0 as i128;
        if nanos < 0 { Duration::ZERO } else { Duration::from_nanos(nanos as u64) }
    }

    /// How far `later` is ahead of this one, in nanoseconds.
    pub const fn behind(self, later: Self) -> i128 {
        later.zero - self.zero
    }
}

/// What [`N4`] remembers beside the sessions; without sessions and requests all of it is zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Held {
    /// Orders that workers have not answered.
    pub orders: usize,
    /// Reports that wait or are on their way, and beginnings of measurements.
    pub reports: usize,
    /// Timers of usage reporting and of notifications.
    pub timers: usize,
    /// gNBs and UPFs that sessions send to.
    pub far_ends: usize,
    /// Associations that are gone and whose sessions are being removed.
    pub sweeps: usize,
}

/// The UPF's N4.
#[derive(Debug)]
pub struct N4 {
    node: Node,
    store: Store,
    address: IpAddr,
    wall: WallClock,
    /// Each association's population of sessions. An association made anew has a new one.
    populations: HashMap<pfcp::node::PeerId, session::store::PeerId>,
    associations: HashMap<session::store::PeerId, pfcp::node::PeerId>,
    sweeps: Vec<Sweep>,
    greet: Vec<(SocketAddr, Nanos)>,
    pending: HashMap<Token, Pending>,
    last_token: u64,
    far_ends: FarEnds,
    refused_of: HashMap<pfcp::node::PeerId, u64>,
    reports: Reports,
    timers: Timers,
    /// The UPF is about to stop.
    leaving: Option<leaving::Leaving>,
    output: Output,
    orders: Vec<Order>,
    /// How SMFs say that applications are told.
    pfds: Arc<Pfds>,
    /// They are others than those that were taken last.
    has_new_pfds: bool,
    counters: N4Counters,
    history: History,
}

impl N4 {
    /// Without peers and sessions. `address` is where SMFs reach us: it becomes part of every F-SEID.
    pub fn new(
        now: Nanos,
        node: NodeConfig,
        store: Store,
        address: IpAddr,
        greet: &[SocketAddr],
        max_far_ends: usize,
        wall: WallClock,
    ) -> Self {
        let node =
            NodeConfig { features: UpFunctionFeatures(node.features.0 | pfds::feature(&store).0), ..node };
        Self {
            node: Node::new(node),
            store,
            address,
            wall,
            populations: HashMap::new(),
            associations: HashMap::new(),
            sweeps: Vec::new(),
            greet: greet.iter().map(|&to| (to, now)).collect(),
            pending: HashMap::new(),
            last_token: 0,
            far_ends: FarEnds::new(max_far_ends),
            refused_of: HashMap::new(),
            reports: Reports::default(),
            timers: Timers::new(now),
            leaving: None,
            output: Output::default(),
            orders: Vec::new(),
            pfds: Arc::default(),
            has_new_pfds: false,
            counters: N4Counters::default(),
            history: History::new(),
        }
    }

    /// What to send. The caller clears it when it is sent.
    pub fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    /// What workers are to do, in order.
    pub fn take_orders(&mut self) -> impl Iterator<Item = Order> + '_ {
        self.orders.drain(..)
    }

    /// The sessions.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// The applications that rules can ask for, for whoever inspects and has other ones now.
    pub const fn applications(&mut self) -> &mut Applications {
        self.store.applications()
    }

    /// The associations.
    pub const fn node(&self) -> &Node {
        &self.node
    }

    /// How it tells time.
    pub const fn wall(&self) -> WallClock {
        self.wall
    }

    /// The system's clock was looked at. A difference of less than 10 ms is between the two looks and not in the clock: following it,
    /// the end of one measurement and the beginning of the next could be told a second apart. Says how far the clock was corrected,
    /// in nanoseconds.
    pub fn tell_time(&mut self, wall: WallClock) -> i128 {
        let correction = self.wall.behind(wall);
        if correction.unsigned_abs() < u128::from(Nanos::SECOND / 100) {
            return 0;
        }
        self.wall = wall;
        correction
    }

    /// What was counted.
    pub const fn counters(&self) -> &N4Counters {
        &self.counters
    }

    /// What SMFs asked for lately, or what of it was refused: entries from number `from` on, or the last ones.
    pub fn excerpt(&self, refused: bool, from: Option<u64>, limit: usize) -> Excerpt {
        self.history.excerpt(refused, from, limit)
    }

    /// Sessions of a peer.
    pub fn sessions_of(&self, peer: pfcp::node::PeerId) -> usize {
        self.populations.get(&peer).map_or(0, |&population| self.store.sessions_of(population))
    }

    /// The association that a session belongs to.
    pub fn association_of(&self, session: &session::store::Session) -> Option<&pfcp::node::Peer> {
        self.node.peer(*self.associations.get(&session.peer())?)
    }

    /// gNBs and UPFs that sessions send to, in no order.
    pub fn far_ends(&self) -> impl Iterator<Item = FarEndStatus> + '_ {
        self.far_ends.iter()
    }

    /// Requests of a peer that were refused.
    pub fn refused_of(&self, peer: pfcp::node::PeerId) -> u64 {
        self.refused_of.get(&peer).copied().unwrap_or_default()
    }

    /// Requests that wait for a worker.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// What is remembered beside the sessions themselves.
    pub fn held(&self) -> Held {
        Held {
            orders: self.pending.len(),
            reports: self.reports.len(),
            timers: self.timers.len(),
            far_ends: self.far_ends.len(),
            sweeps: self.sweeps.len(),
        }
    }

    /// From now on these may speak, by address and prefix length. Whoever may not any more keeps its sessions, and is not heard.
    pub fn allow(&mut self, allowed: Vec<(IpAddr, u8)>) {
        self.node.allow(allowed);
    }

    /// From now on rules may name these Forwarding Policies; those that were there keep their places.
    pub fn set_policies(&mut self, policies: Vec<Policy>) {
        self.store.set_policies(policies);
    }

    /// Other limits from now on, of sessions and of the node below. What is beyond lower ones stays, but for kept replies.
    pub fn limit(&mut self, sessions: session::config::Limits, node: Bounds) {
        self.store.limit(sessions);
        self.node.limit(node);
    }

    /// Takes a datagram.
    pub fn receive(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8]) {
        self.history.at(now);
        for message in Datagram::new(datagram) {
            match self.node.receive(now, from, message, &mut self.output) {
                Incoming::Nothing => {}
                Incoming::Request { handle, message_type, seid, body } => {
                    self.request(now, handle, message_type, seid, body);
                }
                Incoming::Response { token, body, .. } => {
                    self.report_answered(now, Seid(token), body);
                    self.send_queued(now);
                }
            }
            self.lives(now);
        }
    }

    /// Takes an event of a worker.
    pub fn event(&mut self, now: Nanos, event: Event) {
        self.history.at(now);
        match event {
            Event::Applied { token, usage, .. } => match self.pending.remove(&token) {
                Some(Pending::Request(waiting)) if waiting.fenced => {
                    self.pending.insert(token, Pending::Applied(waiting, usage));
                }
                Some(Pending::Request(waiting)) => self.applied(now, waiting, &usage),
                Some(Pending::Report(seid)) => self.usage(now, seid, &usage),
                Some(Pending::Applied(..) | Pending::Activity(_) | Pending::Nobody) | None => {}
            },
            Event::Refused { token, refusal } => {
                tracing::error!(?refusal, "a worker refused what was planned");
                if let Some(Pending::Request(waiting)) = self.pending.remove(&token) {
                    self.not_applied(waiting, refusal);
                }
            }
            Event::Usage { seid, usage } => self.usage(now, seid, &usage),
            Event::DownlinkData { seid, pdr, qfi, dscp } => self.downlink_data(now, seid, pdr, qfi, dscp),
            Event::ErrorIndication { teid, peer } => self.error_indication(now, teid, peer),
            Event::Applications(told) => told.iter().for_each(|detection| self.detected(now, detection)),
            Event::Snapshot { token, session } => {
                if let (Some(Pending::Activity(asked)), Some(seen)) = (self.pending.remove(&token), session) {
                    self.activity(now, asked, &seen);
                }
            }
            // The network around us, mirrors, translation, what is in the NIC and what leaves the process are not N4's concern.
            Event::Neighbour { .. }
            | Event::NeighbourMoved { .. }
            | Event::Neighbours { .. }
            | Event::Unresolved { .. }
            | Event::MirrorsEnded { .. }
            | Event::Nat(_)
            | Event::Flows(_)
            | Event::Carried { .. }
            | Event::OffloadFailed { .. }
            | Event::Exported { .. }
            | Event::Restored { .. } => {}
        }
    }

    /// Every worker has carried out what was ordered before [`Order::Fence`] with this token.
    pub fn directory_known(&mut self, now: Nanos, token: Token) {
        self.history.at(now);
        match self.pending.get_mut(&token) {
            Some(Pending::Request(waiting)) => waiting.fenced = false,
            Some(Pending::Applied(..)) => {
                if let Some(Pending::Applied(waiting, usage)) = self.pending.remove(&token) {
                    self.applied(now, waiting, &usage);
                }
            }
            _ => {}
        }
    }

    /// Lets time pass.
    pub fn tick(&mut self, now: Nanos) {
        self.history.at(now);
        self.node.tick(now, &mut self.output);
        self.lives(now);
        self.greet(now);
        self.sweep();
        self.fire_timers(now);
        self.send_queued(now);
    }

    /// When [`N4::tick`] has something to do next.
    pub fn next_deadline(&self) -> Option<Nanos> {
        // Workers that are behind answer before there is more for them, and their answers wake control.
        let is_behind = self.is_behind();
        if !self.sweeps.is_empty() && !is_behind {
            return Some(Nanos(0));
        }
        let greet = self.greet.iter().map(|(_, at)| *at).min();
        let timers = self.timers.next_deadline().filter(|_| !is_behind);
        [self.node.next_deadline(), timers, greet].into_iter().flatten().min()
    }

    /// Workers are so far behind that what can wait has to.
    fn is_behind(&self) -> bool {
        self.pending.len() >= 2 * MAX_PENDING
    }

    /// Asks every SMF to release its association; for a clean stop.
    pub fn leave(&mut self, now: Nanos) {
        let peers: Vec<_> = self.node.peers().map(|peer| peer.id).collect();
        for peer in peers {
            self.node.release(now, peer, &mut self.output);
        }
    }

    /// Handles what happened to peers.
    fn lives(&mut self, now: Nanos) {
        // Handling one may cause others (a report given up because its peer is gone), hence no iterator.
        while let Some(event) = self.output.events.pop() {
            match event {
                pfcp::node::Event::PeerUp(peer) => {
                    let population = self.store.attach();
                    self.populations.insert(peer, population);
                    self.associations.insert(population, peer);
                    self.tell(peer, History::associated);
                }
                pfcp::node::Event::PeerRestarted(peer) => {
                    self.tell(peer, History::restarted);
                    self.remove_population(peer);
                    let population = self.store.attach();
                    self.populations.insert(peer, population);
                    self.associations.insert(population, peer);
                }
                pfcp::node::Event::PeerReleased(peer) => {
                    self.history.released(peer);
                    self.remove_population(peer);
                }
                pfcp::node::Event::PeerLost(peer) => self.tell(peer, History::lost),
                pfcp::node::Event::TurnedAway { from, message_type, why } => {
                    self.history.turned_away(from, message_type, why);
                }
                pfcp::node::Event::TimedOut { peer: Some(_), token } => {
                    self.report_given_up(now, Seid(token));
                }
                pfcp::node::Event::TimedOut { peer: None, .. } => {}
            }
        }
        if self.history.listens() {
            self.node.peers().for_each(|peer| self.history.heard(peer));
        }
    }

    /// Notes what happened to a peer.
    fn tell(&mut self, peer: pfcp::node::PeerId, note: impl FnOnce(&mut History, &pfcp::node::Peer)) {
        if let Some(peer) = self.node.peer(peer) {
            note(&mut self.history, peer);
        }
    }

    fn remove_population(&mut self, peer: pfcp::node::PeerId) {
        self.refused_of.remove(&peer);
        if let Some(population) = self.populations.remove(&peer) {
            self.associations.remove(&population);
            let sweep = self.store.detach(population);
            // An SMF may associate as often as it likes: without sessions that leaves no work behind.
            if !sweep.is_done() {
                self.sweeps.push(sweep);
            }
        }
    }

    /// Removes some sessions of associations that are gone.
    fn sweep(&mut self) {
        if self.is_behind() {
            return;
        }
        let Some(mut sweep) = self.sweeps.pop() else { return };
        for deleted in self.store.sweep(&mut sweep, SWEEP_PER_ROUND) {
            self.swept(deleted);
        }
        if !sweep.is_done() {
            self.sweeps.push(sweep);
        }
    }

    /// Removes sessions of associations that are gone, where they are what a new session was refused for. Whether there
    /// were any, so that it may be tried again.
    fn make_way(&mut self, refusal: &Refusal) -> bool {
        let Some(mut sweep) = self.sweeps.pop() else { return false };
        let gone = self.store.make_way(refusal, &mut sweep, SWEEP_PER_ROUND);
        if !sweep.is_done() {
            self.sweeps.push(sweep);
        }
        let any = !gone.is_empty();
        gone.into_iter().for_each(|deleted| self.swept(deleted));
        any
    }

    /// A session whose association is gone was removed: the workers are told.
    fn swept(&mut self, deleted: Deleted) {
        self.counters.sessions_swept += 1;
        self.far_ends.release(&deleted.rules);
        self.forget(deleted.rules.seid);
        let token = self.token(Pending::Nobody);
        self.announce(deleted.directory);
        let session = deleted.rules.place;
        self.orders.push(Order::Shard(session.shard, Command::Remove { token, session }));
    }

    /// Sets up associations from our side, where configured.
    fn greet(&mut self, now: Nanos) {
        for (to, at) in &mut self.greet {
            if *at > now {
                continue;
            }
            *at = now.plus(GREET_AGAIN);
            let known = self.node.peers().any(|peer| peer.address.ip() == to.ip());
            if !known && self.node.associate(now, *to, &mut self.output).is_err() {
                self.counters.reports_not_sent += 1;
            }
        }
    }

    fn token(&mut self, pending: Pending) -> Token {
        self.last_token += 1;
        let token = Token(self.last_token);
        self.pending.insert(token, pending);
        token
    }

    fn announce(&mut self, changes: Vec<DirectoryChange>) {
        self.orders.extend(changes.into_iter().map(Order::All));
    }

    /// Tells every worker where packets of a session go. A request that adds something is not answered before all of them know:
    /// its packets may arrive at any worker. Nor is one before which a stale session `made_way`: what was that one's must
    /// lead to it nowhere any more.
    fn announce_for(&mut self, token: Token, changes: Vec<DirectoryChange>, made_way: bool) {
        let adds = changes.iter().any(DirectoryChange::is_new);
        self.announce(changes);
        if (adds || made_way)
            && let Some(Pending::Request(waiting)) = self.pending.get_mut(&token)
        {
            waiting.fenced = true;
            self.orders.push(Order::Fence(token));
        }
    }

    fn own_fseid(&self, seid: Seid) -> FSeid {
        match self.address {
            IpAddr::V4(address) => FSeid { seid, ipv4: Some(address), ipv6: None },
            IpAddr::V6(address) => FSeid { seid, ipv4: None, ipv6: Some(address) },
        }
    }
}
