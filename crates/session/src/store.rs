//! All sessions of the process, and the two requests that change them.
//!
//! A request is settled in four steps: a plan is made of it on a copy; the addresses and tunnels that the plan
//! wishes for are taken, and noted; the whole is compiled; it is committed. If a step refuses, what was noted is
//! given back, and the session's octets were never touched. The store sends nothing: it returns what the shards and
//! the SMF are to be told ([`Established`], [`Modified`], [`Deleted`]).
//!
//! `examples/establish.rs` measures what that costs.

use crate::about::About;
use crate::addresses::{AddressError, PoolUsage, shard_of_ipv4, shard_of_ipv6};
use crate::applications::Applications;
use crate::by_address::ByAddress;
use crate::change::{Plan, framed_routes, ue_networks};
use crate::compile::compile;
use crate::config::{Config, Limits, Policy};
use crate::elsewhere::Elsewhere;
use crate::grant::{Node, Taken, tell_addresses};
use crate::ids::{SHARDS, SessionRef, ShardId, TeidRef};
use crate::model::{Bar, Endpoint, Model, find};
use crate::packed::{freeze, thaw};
use crate::pool::PoolError;
use crate::portable::Unportable;
use crate::refusal::{Bound, Refusal};
use crate::rules::Rules;
use crate::slots::{LONG, Slots};
use crate::teid::TunnelError;
use crate::timing::{Sequences, UrrTiming, timings};
use ipnet::IpNet;
use packet::Teid;
use pfcp::ie::FSeid;
use pfcp::message::{CreatedPdr, SessionEstablishmentRequest, SessionModificationRequest};
use pfcp::{FarId, PdrId, Seid, UrrId};
use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Session slots of one shard.
const SLOTS: u32 = 1 << 24;

/// One association, from its set-up to its release or the peer's restart: the next association of the same SMF is
/// another one, so that sessions of the old are told from those of the new while they are being removed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PeerId(u32);

impl PeerId {
    /// What tells it from others in a record ([`crate::portable`]).
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// A session between two requests.
#[derive(Debug)]
pub struct Session {
    rules: Arc<Rules>,
    packed: Box<[u8]>,
    cp: FSeid,
    peer: PeerId,
    sequences: Sequences,
}

impl Session {
    /// What its shard has.
    pub const fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// What its SMF said, unpacked.
    pub fn model(&self) -> Option<Model> {
        thaw(&self.packed)
    }

    /// Its packed model: equal octets, equal sessions.
    pub const fn octets(&self) -> &[u8] {
        &self.packed
    }

    /// Whom and what it is for.
    pub fn about(&self) -> About<'_> {
        crate::packed::about(&self.packed)
    }

    /// The session at its SMF.
    pub const fn cp_fseid(&self) -> FSeid {
        self.cp
    }

    /// Whether its UE uses this address.
    pub fn has_address(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.rules.ue_ipv4 == Some(address),
            IpAddr::V6(address) => self.rules.ue_ipv6.is_some_and(|prefix| prefix.contains(&address)),
        }
    }

    /// Whether one of its rules is about the tunnel with this TEID.
    pub fn has_tunnel(&self, teid: Teid) -> bool {
        self.rules.pdrs.iter().any(|pdr| pdr.tunnel.is_some_and(|tunnel| tunnel.teid == teid))
    }

    /// The association it belongs to.
    pub const fn peer(&self) -> PeerId {
        self.peer
    }

    /// Numbers of its reports.
    pub(crate) const fn sequences(&self) -> &Sequences {
        &self.sequences
    }
}

/// What every worker must know to find a session that an address or a TEID doesn't lead to by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DirectoryChange {
    /// A TEID that an SMF chose.
    Tunnel {
        /// The TEID on the wire.
        teid: Teid,
        /// Where its record is; `None`: no longer.
        place: Option<TeidRef>,
    },
    /// An address of another shard than its session's, a prefix of another length than its pool's, a framed route.
    Address {
        /// The prefix.
        prefix: IpNet,
        /// Its session; `None`: no longer.
        session: Option<SessionRef>,
    },
}

impl DirectoryChange {
    /// Whether something leads to a session that did not before.
    pub const fn is_new(&self) -> bool {
        match self {
            Self::Tunnel { place, .. } => place.is_some(),
            Self::Address { session, .. } => session.is_some(),
        }
    }
}

/// A session came to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Established {
    /// For its shard; `rules.seid` is the UP SEID.
    pub rules: Arc<Rules>,
    /// What the UPF chose, for the response.
    pub created_pdrs: Vec<CreatedPdr>,
    /// For every worker.
    pub directory: Vec<DirectoryChange>,
    /// URRs that time drives.
    pub timings: Vec<UrrTiming>,
    /// User Plane Inactivity Timer in seconds.
    pub inactivity_timer: Option<u32>,
}

/// A session changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Modified {
    /// For its shard.
    pub rules: Arc<Rules>,
    /// What the UPF chose, for the response.
    pub created_pdrs: Vec<CreatedPdr>,
    /// For every worker.
    pub directory: Vec<DirectoryChange>,
    /// All URRs that time drives now.
    pub timings: Vec<UrrTiming>,
    /// User Plane Inactivity Timer in seconds.
    pub inactivity_timer: Option<u32>,
    /// SNDEM: FARs whose tunnel ends with an end marker. Empty: none is wanted.
    pub end_markers: Vec<FarId>,
    /// DROBU: buffered packets are to be dropped.
    pub drop_buffered: bool,
    /// URRs to report in the response (Query URR, QAURR).
    pub query: Vec<UrrId>,
    /// URRs whose last report belongs in the response.
    pub removed_urrs: Vec<UrrId>,
    /// The session at the SMF, from now on.
    pub cp_fseid: FSeid,
}

/// A session is gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deleted {
    /// Its last rules.
    pub rules: Arc<Rules>,
    /// The session at its SMF.
    pub cp_fseid: FSeid,
    /// Its association.
    pub peer: PeerId,
    /// For every worker.
    pub directory: Vec<DirectoryChange>,
    /// Numbers of its last reports.
    pub sequences: Sequences,
}

/// What the store holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Sessions.
    pub sessions: usize,
    /// Local tunnel endpoints.
    pub tunnels: usize,
    /// Those among them whose TEID an SMF chose.
    pub chosen_tunnels: usize,
    /// UE addresses and prefixes held inside pools.
    pub addresses_in_pools: usize,
    /// UE addresses, prefixes and routes held outside them.
    pub addresses_outside: usize,
}

/// Where a removal of all sessions of an association stands; see [`Store::sweep`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sweep {
    peer: PeerId,
    shard: usize,
    slot: usize,
}

impl Sweep {
    /// Whether all shards were looked at.
    pub const fn is_done(&self) -> bool {
        self.shard >= SHARDS
    }
}

#[derive(Debug)]
struct Shard {
    slots: Slots,
    sessions: Vec<Option<Box<Session>>>,
    by_address: ByAddress,
}

/// All sessions.
#[derive(Debug)]
pub struct Store {
    node: Node,
    shards: Box<[Shard]>,
    peers: HashMap<PeerId, usize>,
    next_peer: u32,
    sessions: usize,
    elsewhere: Elsewhere,
    /// Where the next session without an address goes.
    rotor: u32,
    /// For packing.
    scratch: Vec<u8>,
}

impl Store {
    /// Empty.
    pub fn new(config: Config) -> Result<Self, PoolError> {
        let shard = || Shard {
            slots: Slots::new(SLOTS, LONG, config.epoch, config.seed),
            sessions: Vec::new(),
            by_address: ByAddress::default(),
        };
        Ok(Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            peers: HashMap::new(),
            next_peer: 0,
            sessions: 0,
            elsewhere: Elsewhere::new(config.prefix_lengths()),
            rotor: 0,
            scratch: Vec::with_capacity(1024),
            node: Node::new(config)?,
        })
    }

    /// Other Forwarding Policies may be named from now on. Those that there were keep their places.
    pub fn set_policies(&mut self, policies: Vec<Policy>) {
        self.node.config.policies = policies;
    }

    /// What applications there are, to change: rules that ask for one find it from now on, or find it no more.
    pub const fn applications(&mut self) -> &mut Applications {
        &mut self.node.config.applications
    }

    /// What it was configured with.
    pub const fn config(&self) -> &Config {
        &self.node.config
    }

    /// Other limits from now on. What sessions have beyond lower ones stays; how many packets wait in one changes with its next request.
    pub const fn limit(&mut self, limits: Limits) {
        self.node.config.limits = limits;
    }

    /// A new association.
    pub fn attach(&mut self) -> PeerId {
        let peer = PeerId(self.next_peer);
        self.next_peer = self.next_peer.wrapping_add(1);
        self.peers.insert(peer, 0);
        peer
    }

    /// Begins to remove all sessions of an association, which gets no new ones from now on. The sweep is done already if it has none.
    pub fn detach(&mut self, peer: PeerId) -> Sweep {
        let sessions = self.peers.remove(&peer).unwrap_or_default();
        Sweep { peer, shard: if sessions == 0 { SHARDS } else { 0 }, slot: 0 }
    }

    /// Removes some more sessions of a detached association: at most `most`, and looking at no more than 64 times as
    /// many, so that a million of them don't hold up everybody else. To be called until [`Sweep::is_done`].
    pub fn sweep(&mut self, sweep: &mut Sweep, most: usize) -> Vec<Deleted> {
        let mut gone = Vec::new();
        let mut looks = most.max(1).saturating_mul(64);
        while let Some(shard) = self.shards.get(sweep.shard) {
            let Some(slot) = shard.sessions.get(sweep.slot) else {
                sweep.shard += 1;
                sweep.slot = 0;
                continue;
            };
            if looks == 0 || gone.len() >= most.max(1) {
                break;
            }
            looks -= 1;
            let seid = slot.as_ref().filter(|session| session.peer == sweep.peer).map(|s| s.rules.seid);
            sweep.slot += 1;
            if let Some(seid) = seid
                && let Ok(deleted) = self.delete(seid)
            {
                gone.push(deleted);
            }
        }
        gone
    }

    /// Removes what an establishment was just refused for, if that is nothing but sessions of associations that are gone
    /// and not yet swept: an SMF that was restarted hands out the same addresses and TEIDs again at once, and the set-up of
    /// its association has ended those sessions (§6.2.6.2.2). Empty: nothing stale stands in the way.
    ///
    /// Who holds an address or a TEID is known by shard, and that shard is cleared as a whole: the sweep would have come
    /// to it, so nothing is done twice. Where places are short, some more of the sweep is done.
    pub fn make_way(&mut self, refusal: &Refusal, sweep: &mut Sweep, most: usize) -> Vec<Deleted> {
        let shard = match refusal {
            Refusal::Tunnel(_, TunnelError::Taken(shard)) => Some(*shard),
            Refusal::Address(_, AddressError::Taken(net)) => self.elsewhere.shard_of(*net),
            Refusal::Limit(Bound::Sessions | Bound::Slots, _)
            | Refusal::Tunnel(_, TunnelError::Exhausted)
            | Refusal::Address(_, AddressError::Exhausted) => return self.sweep(sweep, most),
            _ => None,
        };
        let Some(sessions) = shard.and_then(|shard| self.shards.get(shard.index())) else {
            return Vec::new();
        };
        let stale =
            sessions.sessions.iter().flatten().filter(|session| !self.peers.contains_key(&session.peer));
        let stale: Vec<Seid> = stale.map(|session| session.rules.seid).collect();
        stale.into_iter().filter_map(|seid| self.delete(seid).ok()).collect()
    }

    /// A session.
    pub fn get(&self, seid: Seid) -> Option<&Session> {
        self.at(SessionRef::of(seid)).filter(|session| session.rules.seid == seid)
    }

    /// Whichever is in this place.
    fn at(&self, place: SessionRef) -> Option<&Session> {
        self.shards.get(place.shard.index())?.sessions.get(place.slot as usize)?.as_deref()
    }

    fn get_mut(&mut self, seid: Seid) -> Option<&mut Session> {
        let place = SessionRef::of(seid);
        let shard = self.shards.get_mut(place.shard.index())?;
        let session = shard.sessions.get_mut(place.slot as usize)?.as_deref_mut()?;
        (session.rules.seid == seid).then_some(session)
    }

    /// All sessions, shard by shard.
    pub fn iter(&self) -> impl Iterator<Item = &Session> {
        self.shards.iter().flat_map(|shard| shard.sessions.iter().filter_map(Option::as_deref))
    }

    /// Shows some sessions, shard by shard, beginning with the one at `from`, until that is enough, and looks at no more than `most` places.
    /// Where to go on; `None`: these were the last.
    pub fn look<'a>(
        &'a self,
        from: SessionRef,
        most: usize,
        mut visit: impl FnMut(&'a Session) -> ControlFlow<()>,
    ) -> Option<SessionRef> {
        let mut left = most.max(1);
        let mut slot = from.slot as usize;
        for (shard, id) in self.shards.iter().zip(ShardId::all()).skip(from.shard.index()) {
            let places = shard.sessions.get(slot..).unwrap_or_default();
            for (next, place) in (slot + 1..).zip(places.iter().take(left)) {
                if place.as_deref().is_some_and(|session| visit(session).is_break()) {
                    return Some(SessionRef { shard: id, slot: next as u32 });
                }
            }
            if places.len() > left {
                return Some(SessionRef { shard: id, slot: (slot + left) as u32 });
            }
            // An empty shard is a look too.
            left = left.saturating_sub(places.len().max(1));
            slot = 0;
            if left == 0 {
                return ShardId::all().nth(id.index() + 1).map(|shard| SessionRef { shard, slot: 0 });
            }
        }
        None
    }

    /// The session of the UE that uses this address.
    pub fn by_address(&self, address: IpAddr) -> Option<&Session> {
        let found = if let Some(place) = self.elsewhere.noted(address.into()) {
            self.at(place)
        } else {
            let shard = self.elsewhere.said(address.into())?;
            let slot = self
                .shards
                .get(shard.index())?
                .by_address
                .find(self.node.addresses.prefix_lengths(), address)?;
            self.at(SessionRef { shard, slot })
        };
        found.filter(|session| session.has_address(address))
    }

    /// The session that has the tunnel with this TEID.
    pub fn by_teid(&self, teid: Teid) -> Option<&Session> {
        self.at(self.node.tunnels.session_of(teid)?).filter(|session| session.has_tunnel(teid))
    }

    /// All that a worker must be told who begins now: every change that is in force.
    pub fn directory(&self) -> impl Iterator<Item = DirectoryChange> {
        self.iter().flat_map(|session| {
            let model = session.model().unwrap_or_default();
            self.node.directory(&model, session.rules.place)
        })
    }

    /// What is held.
    pub fn counts(&self) -> Counts {
        Counts {
            sessions: self.sessions,
            tunnels: self.node.tunnels.live(),
            chosen_tunnels: self.node.tunnels.chosen(),
            addresses_in_pools: self.node.addresses.held_in_pools(),
            addresses_outside: self.node.addresses.held_outside(),
        }
    }

    /// Entries that lead from addresses to sessions: as many as UEs have addresses.
    pub fn entries(&self) -> usize {
        self.shards.iter().map(|shard| shard.by_address.len()).sum()
    }

    /// Sessions of an association.
    pub fn sessions_of(&self, peer: PeerId) -> usize {
        self.peers.get(&peer).copied().unwrap_or_default()
    }

    /// How full each pool is, in the order of the configuration.
    pub fn pools(&self) -> impl Iterator<Item = PoolUsage> {
        self.node.addresses.usage()
    }

    /// Session Establishment Request (TS 29.244 §7.5.2).
    pub fn establish(
        &mut self,
        request: &SessionEstablishmentRequest<'_>,
        peer: PeerId,
    ) -> Result<Established, Refusal> {
        let of_peer = *self.peers.get(&peer).ok_or(Refusal::UnknownPeer)?;
        if self.sessions >= self.node.config.limits.sessions {
            return Err(Refusal::Limit(Bound::Sessions, None));
        }
        if of_peer >= self.node.config.limits.sessions_per_peer {
            return Err(Refusal::Limit(Bound::SessionsPerPeer, None));
        }
        let mut plan = Plan::establish(request, &self.node.config)?;
        let mut taken = Taken::default();
        match self.settle_new(&mut plan, request.apn_dnn, &mut taken) {
            Ok(rules) => Ok(self.commit_new(&plan, rules, request.cp_fseid, peer)),
            Err(refusal) => {
                self.node.give_back(&taken);
                Err(refusal)
            }
        }
    }

    fn settle_new(
        &mut self,
        plan: &mut Plan<'_>,
        dnn: Option<&[u8]>,
        taken: &mut Taken,
    ) -> Result<Rules, Refusal> {
        self.node.grant_addresses(plan, dnn, None, &[], taken)?;
        // The UE's address says where the session lives, so that a NIC can tell too. One without goes anywhere.
        let shard = match (plan.model.ipv4, plan.model.ipv6) {
            (Some(address), _) => shard_of_ipv4(address),
            (None, Some(prefix)) => shard_of_ipv6(self.node.addresses.prefix_lengths(), prefix),
            (None, None) => {
                self.rotor = self.rotor.wrapping_add(1);
                ShardId::from_hash(self.rotor)
            }
        };
        self.node.grant_tunnels(plan, shard, taken)?;
        let owner = self.shards.get_mut(shard.index()).ok_or(Refusal::Limit(Bound::Slots, None))?;
        let (slot, generation) = owner.slots.allocate().ok_or(Refusal::Limit(Bound::Slots, None))?;
        let place = SessionRef { shard, slot };
        match compile(&plan.model, place, place.seid(generation), &self.node.config) {
            Ok(rules) => Ok(rules),
            Err(unlinked) => {
                owner.slots.release(slot);
                Err(unlinked.into())
            }
        }
    }

    fn commit_new(&mut self, plan: &Plan<'_>, rules: Rules, cp: FSeid, peer: PeerId) -> Established {
        let (rules, directory) = self.commit(&plan.model, rules, cp, peer, Sequences::default());
        Established {
            created_pdrs: self.node.created(plan),
            directory,
            timings: timings(&plan.model),
            inactivity_timer: plan.model.inactivity_timer,
            rules,
        }
    }

    /// A session, for which all is taken, is in its place from now on. Its rules, and what every worker is to be told.
    pub(crate) fn commit(
        &mut self,
        model: &Model,
        rules: Rules,
        cp: FSeid,
        peer: PeerId,
        sequences: Sequences,
    ) -> (Arc<Rules>, Vec<DirectoryChange>) {
        let (rules, packed) = (Arc::new(rules), self.pack(model));
        let place = rules.place;
        self.lead_to(&rules);
        if let Some(shard) = self.shards.get_mut(place.shard.index()) {
            let slot = place.slot as usize;
            if shard.sessions.len() <= slot {
                shard.sessions.resize_with(slot + 1, || None);
            }
            if let Some(entry) = shard.sessions.get_mut(slot) {
                *entry = Some(Box::new(Session { rules: rules.clone(), packed, cp, peer, sequences }));
            }
        }
        self.sessions += 1;
        *self.peers.entry(peer).or_default() += 1;
        let directory = self.node.directory(model, place);
        self.elsewhere.told(&directory);
        (rules, directory)
    }

    fn pack(&mut self, model: &Model) -> Box<[u8]> {
        freeze(model, &mut self.scratch);
        self.scratch.as_slice().into()
    }

    /// Takes all that a session needs which was another process's and has this SEID, or nothing; see [`crate::portable`], which has settled
    /// what it says. `chosen`: TEIDs that its SMF chose, in order.
    pub(crate) fn settle_restored(
        &mut self,
        seid: Seid,
        model: &Model,
        chosen: &[Teid],
    ) -> Result<Rules, Unportable> {
        let mut taken = Taken::default();
        let settled = self.node.take_again(seid, model, chosen, &mut taken);
        let settled = settled.and_then(|()| self.place_again(seid, model));
        settled.inspect_err(|_| self.node.give_back(&taken))
    }

    /// The rules of a session that has what it needs but its place.
    fn place_again(&mut self, seid: Seid, model: &Model) -> Result<Rules, Unportable> {
        let place = SessionRef::of(seid);
        // What nobody detects yet has its number, for when somebody does.
        for name in model.pdrs.iter().filter_map(|pdr| pdr.application.as_deref()) {
            self.node.config.applications.number(name);
        }
        let rules = compile(model, place, seid, &self.node.config);
        let rules = rules.map_err(|unlinked| Unportable::Refused(seid, unlinked.into()))?;
        let shard = self.shards.get_mut(place.shard.index());
        let is_free = shard.is_some_and(|it| it.slots.restore(place.slot, SessionRef::generation(seid)));
        if is_free { Ok(rules) } else { Err(Unportable::NoRoom(seid)) }
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.sessions >= self.node.config.limits.sessions
    }

    /// TEIDs of a session that its SMF chose.
    pub(crate) fn chosen(&self, session: &Session) -> Vec<Teid> {
        let tunnels = session.rules.pdrs.iter().filter_map(|pdr| pdr.tunnel);
        let mut chosen: Vec<_> =
            tunnels.filter(|tunnel| self.node.tunnels.is_chosen(*tunnel)).map(|tunnel| tunnel.teid).collect();
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    }

    /// How many places a shard's sessions have, taken or not.
    pub(crate) fn places(&self, shard: ShardId) -> usize {
        self.shards.get(shard.index()).map_or(0, |shard| shard.slots.len())
    }

    /// All of another process's sessions have come.
    pub(crate) fn settle(&mut self) {
        self.shards.iter_mut().for_each(|shard| shard.slots.settle());
        self.node.tunnels.settle();
    }

    /// From now on its addresses and tunnels lead to a session.
    fn lead_to(&mut self, rules: &Rules) {
        let SessionRef { shard, slot } = rules.place;
        let tunnels = rules.pdrs.iter().filter_map(|pdr| pdr.tunnel);
        tunnels.for_each(|tunnel| self.node.tunnels.own(tunnel.place, slot));
        if let Some(shard) = self.shards.get_mut(shard.index()) {
            shard.by_address.enter(rules);
        }
    }

    /// Session Modification Request (§7.5.4). Whether the sender may is for the caller to know (see [`Session::peer`]).
    pub fn modify(
        &mut self,
        seid: Seid,
        request: &SessionModificationRequest<'_>,
    ) -> Result<Modified, Refusal> {
        let session = self.get(seid).ok_or(Refusal::UnknownSession(seid))?;
        let place = session.rules.place;
        let model = session.model().ok_or(Refusal::Damaged(seid))?;
        let old_tunnels = model.tunnels.clone();
        let old_routes = framed_routes(&model);
        let old_announced = self.node.announced(&model, place);
        let mut plan = Plan::modify(model, request, &self.node.config)?;
        let mut taken = Taken::default();
        let settled = self
            .node
            .grant_addresses(&mut plan, None, Some(place.shard), &old_routes, &mut taken)
            .and_then(|()| self.node.grant_tunnels(&mut plan, place.shard, &mut taken))
            .and_then(|()| Ok(compile(&plan.model, place, seid, &self.node.config)?));
        let rules = match settled {
            Ok(rules) => Arc::new(rules),
            Err(refusal) => {
                self.node.give_back(&taken);
                return Err(refusal);
            }
        };

        // From here on nothing refuses.
        let created_pdrs = self.node.created(&plan);
        let mut directory = Vec::new();
        self.node.tell_tunnels(&mut directory, &plan.model, &old_tunnels);
        // What no PDR leads to any more goes back, and that is known only after PDRs were given theirs.
        let Plan { model, end_markers, removed_urrs, .. } = &mut plan;
        let Model { tunnels, pdrs, .. } = model;
        tunnels.retain(|endpoint| pdrs.iter().any(|pdr| pdr.tunnel == Some(endpoint.tunnel.teid)));
        for tunnel in old_tunnels.iter().map(|endpoint| endpoint.tunnel).chain(taken.tunnels) {
            if !tunnels.iter().any(|endpoint| endpoint.tunnel == tunnel) && self.node.tunnels.release(tunnel)
            {
                directory.push(DirectoryChange::Tunnel { teid: tunnel.teid, place: None });
            }
        }
        let routes = framed_routes(model);
        for net in old_routes {
            if !routes.contains(&net) {
                self.node.addresses.release(net);
            }
        }
        let announced = self.node.announced(model, place);
        tell_addresses(&mut directory, &old_announced, &announced, place);
        self.elsewhere.told(&directory);

        // Each once, however often the request names it.
        let all = request.flags.query_all_urrs;
        let asked = |id: &UrrId| all || request.query_urrs.contains(id);
        let query = model.urrs.iter().map(|urr| urr.id).filter(asked).collect();
        let packed = self.pack(model);
        self.lead_to(&rules);
        let session = self.get_mut(seid).ok_or(Refusal::UnknownSession(seid))?;
        session.rules = rules.clone();
        session.packed = packed;
        session.cp = request.cp_fseid.unwrap_or(session.cp);
        Ok(Modified {
            cp_fseid: session.cp,
            rules,
            created_pdrs,
            directory,
            timings: timings(model),
            inactivity_timer: model.inactivity_timer,
            end_markers: std::mem::take(end_markers),
            drop_buffered: request.flags.drop_buffered,
            query,
            removed_urrs: std::mem::take(removed_urrs),
        })
    }

    /// Session Deletion Request (§7.5.6).
    pub fn delete(&mut self, seid: Seid) -> Result<Deleted, Refusal> {
        let unknown = Refusal::UnknownSession(seid);
        let place = self.get(seid).ok_or(unknown.clone())?.rules.place;
        let shard = self.shards.get_mut(place.shard.index()).ok_or(unknown.clone())?;
        let session = shard.sessions.get_mut(place.slot as usize).and_then(Option::take).ok_or(unknown)?;
        shard.slots.release(place.slot);
        shard.by_address.forget(place.slot);
        self.sessions -= 1;
        if let Some(count) = self.peers.get_mut(&session.peer) {
            *count -= 1;
        }
        let model = session.model().unwrap_or_default();
        let mut directory = Vec::new();
        let announced = self.node.announced(&model, place);
        tell_addresses(&mut directory, &announced, &[], place);
        self.elsewhere.told(&directory);
        for Endpoint { tunnel, .. } in &model.tunnels {
            if self.node.tunnels.release(*tunnel) {
                directory.push(DirectoryChange::Tunnel { teid: tunnel.teid, place: None });
            }
        }
        let nets = ue_networks(&model).chain(framed_routes(&model));
        nets.for_each(|net| self.node.addresses.release(net));
        let Session { rules, cp: cp_fseid, peer, sequences, .. } = *session;
        Ok(Deleted { rules, cp_fseid, peer, directory, sequences })
    }

    /// UR-SEQN for the next report of a rule; `None`: no such session.
    pub fn next_sequence(&mut self, seid: Seid, urr: UrrId) -> Option<u32> {
        let limit = self.node.config.limits.urrs.saturating_mul(2);
        let session = self.get_mut(seid)?;
        let rules = session.rules.clone();
        Some(session.sequences.next(urr, limit, |id| rules.urrs.iter().any(|urr| urr.id == id)))
    }

    /// Blocks or unblocks the packets that a URR measures, because a quota that time drives ran out. The rules for the
    /// shard; `None` if nothing changes. A new quota unblocks by itself.
    pub fn set_blocked(&mut self, seid: Seid, urr: UrrId, blocked: bool) -> Option<Arc<Rules>> {
        let mut model = self.get(seid)?.model()?;
        let rule = crate::model::find_mut(&mut model.urrs, urr)?;
        if rule.blocked == blocked {
            return None;
        }
        rule.blocked = blocked;
        let packed = self.pack(&model);
        let session = self.get_mut(seid)?;
        let mut rules = (*session.rules).clone();
        rules.urrs.iter_mut().filter(|rule| rule.id == urr).for_each(|rule| rule.blocked = blocked);
        session.rules = Arc::new(rules);
        session.packed = packed;
        Some(session.rules.clone())
    }

    /// How the packets of a PDR are buffered: the BAR of its FAR, for the delay of notifications.
    pub fn bar(&self, seid: Seid, pdr: PdrId) -> Option<Bar> {
        let model = self.get(seid)?.model()?;
        let far = find(&model.fars, find(&model.pdrs, pdr)?.far?)?;
        find(&model.bars, far.bar?).copied()
    }
}
