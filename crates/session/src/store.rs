//! All sessions of the process, and the two requests that change them.
//!
//! A request is settled in four steps: a [`Plan`] is made of it on a copy; the addresses and tunnels that the plan
//! wishes for are taken, and noted; the whole is compiled; it is committed. If a step refuses, what was noted is
//! given back, and the session's octets were never touched. The store sends nothing: it returns what the shards and
//! the SMF are to be told ([`Established`], [`Modified`], [`Deleted`]).
//!
//! Cost on one core of a 2.4 GHz Zen 3: see `examples/establish.rs`, which measures it.

use crate::addresses::{AddressError, Addresses, PoolUsage, shard_of_ipv4, shard_of_ipv6};
use crate::change::{Plan, Wish, framed_routes, host};
use crate::compile::compile;
use crate::config::{Config, LocalAddresses};
use crate::ids::{SHARDS, SessionRef, ShardId, TeidRef};
use crate::model::{Bar, Endpoint, Model, find};
use crate::pool::PoolError;
use crate::refusal::{Bound, Refusal};
use crate::rest::{freeze, thaw};
use crate::rules::{Rules, Tunnel};
use crate::slots::Slots;
use crate::teid::{TunnelError, Tunnels};
use crate::timing::{Sequences, UrrTiming, timings};
use ipnet::IpNet;
use packet::Teid;
use pfcp::ie::{FSeid, FTeid, UeIpAddress};
use pfcp::message::{CreatedPdr, SessionEstablishmentRequest, SessionModificationRequest};
use pfcp::{FarId, PdrId, Seid, UrrId};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Session slots of one shard.
const SLOTS: u32 = 1 << 24;

/// One association, from its set-up to its release or the peer's restart: the next association of the same SMF is
/// another one, so that sessions of the old are told from those of the new while they are being removed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PeerId(u32);

/// A session between two requests.
#[derive(Debug)]
pub struct Session {
    rules: Arc<Rules>,
    rest: Box<[u8]>,
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
        thaw(&self.rest)
    }

    /// Its packed model: equal octets, equal sessions.
    pub const fn octets(&self) -> &[u8] {
        &self.rest
    }

    /// The session at its SMF.
    pub const fn cp_fseid(&self) -> FSeid {
        self.cp
    }

    /// The association it belongs to.
    pub const fn peer(&self) -> PeerId {
        self.peer
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
    /// An address of another shard than its session's, a prefix of another length than /64, a framed route.
    Address {
        /// The prefix.
        prefix: IpNet,
        /// Its session; `None`: no longer.
        session: Option<SessionRef>,
    },
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
}

/// What a request took, to be given back if it is refused.
#[derive(Debug, Default)]
struct Taken {
    tunnels: Vec<Tunnel>,
    nets: Vec<IpNet>,
}

/// All sessions.
#[derive(Debug)]
pub struct Store {
    config: Config,
    shards: Box<[Shard]>,
    tunnels: Tunnels,
    addresses: Addresses,
    peers: HashMap<PeerId, usize>,
    next_peer: u32,
    sessions: usize,
    /// Where the next session without an address goes.
    rotor: u32,
    /// For packing.
    scratch: Vec<u8>,
}

impl Store {
    /// Empty.
    pub fn new(config: Config) -> Result<Self, PoolError> {
        let shard = || Shard { slots: Slots::new(SLOTS, u32::MAX, config.seed), sessions: Vec::new() };
        Ok(Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            tunnels: Tunnels::new(config.seed),
            addresses: Addresses::new(&config)?,
            peers: HashMap::new(),
            next_peer: 0,
            sessions: 0,
            rotor: 0,
            scratch: Vec::with_capacity(1024),
            config,
        })
    }

    /// What it was configured with.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// A new association.
    pub fn attach(&mut self) -> PeerId {
        let peer = PeerId(self.next_peer);
        self.next_peer = self.next_peer.wrapping_add(1);
        self.peers.insert(peer, 0);
        peer
    }

    /// Begins to remove all sessions of an association, which gets no new ones from now on.
    pub fn detach(&mut self, peer: PeerId) -> Sweep {
        self.peers.remove(&peer);
        Sweep { peer, shard: 0, slot: 0 }
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

    /// A session.
    pub fn get(&self, seid: Seid) -> Option<&Session> {
        let place = SessionRef::of(seid);
        let session = self.shards.get(place.shard.index())?.sessions.get(place.slot as usize)?.as_deref()?;
        (session.rules.seid == seid).then_some(session)
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

    /// What is held.
    pub fn counts(&self) -> Counts {
        Counts {
            sessions: self.sessions,
            tunnels: self.tunnels.live(),
            chosen_tunnels: self.tunnels.chosen(),
            addresses_in_pools: self.addresses.held_in_pools(),
            addresses_outside: self.addresses.held_outside(),
        }
    }

    /// Sessions of an association.
    pub fn sessions_of(&self, peer: PeerId) -> usize {
        self.peers.get(&peer).copied().unwrap_or_default()
    }

    /// How full each pool is, in the order of the configuration.
    pub fn pools(&self) -> impl Iterator<Item = PoolUsage> {
        self.addresses.usage()
    }

    /// Session Establishment Request (TS 29.244 §7.5.2).
    pub fn establish(
        &mut self,
        request: &SessionEstablishmentRequest<'_>,
        peer: PeerId,
    ) -> Result<Established, Refusal> {
        let of_peer = *self.peers.get(&peer).ok_or(Refusal::UnknownPeer)?;
        if self.sessions >= self.config.limits.sessions {
            return Err(Refusal::Limit(Bound::Sessions, None));
        }
        if of_peer >= self.config.limits.sessions_per_peer {
            return Err(Refusal::Limit(Bound::SessionsPerPeer, None));
        }
        let mut plan = Plan::establish(request, &self.config)?;
        let mut taken = Taken::default();
        match self.settle_new(&mut plan, request.apn_dnn, &mut taken) {
            Ok(rules) => Ok(self.commit_new(&plan, rules, request.cp_fseid, peer)),
            Err(refusal) => {
                self.give_back(&taken);
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
        self.grant_addresses(plan, dnn, None, &[], taken)?;
        // The UE's address says where the session lives, so that a NIC can tell too. One without goes anywhere.
        let shard = match (plan.model.ipv4, plan.model.ipv6) {
            (Some(address), _) => shard_of_ipv4(address),
            (None, Some(prefix)) => shard_of_ipv6(prefix),
            (None, None) => {
                self.rotor = self.rotor.wrapping_add(1);
                ShardId::from_hash(self.rotor)
            }
        };
        self.grant_tunnels(plan, shard, taken)?;
        let owner = self.shards.get_mut(shard.index()).ok_or(Refusal::Limit(Bound::Slots, None))?;
        let (slot, generation) = owner.slots.allocate().ok_or(Refusal::Limit(Bound::Slots, None))?;
        let place = SessionRef { shard, slot };
        match compile(&plan.model, place, place.seid(generation), &self.config.limits) {
            Ok(rules) => Ok(rules),
            Err(unlinked) => {
                owner.slots.release(slot);
                Err(unlinked.into())
            }
        }
    }

    fn commit_new(&mut self, plan: &Plan<'_>, rules: Rules, cp: FSeid, peer: PeerId) -> Established {
        let rules = Arc::new(rules);
        let place = rules.place;
        freeze(&plan.model, &mut self.scratch);
        let session = Session {
            rules: rules.clone(),
            rest: self.scratch.as_slice().into(),
            cp,
            peer,
            sequences: Sequences::default(),
        };
        if let Some(shard) = self.shards.get_mut(place.shard.index()) {
            let slot = place.slot as usize;
            if shard.sessions.len() <= slot {
                shard.sessions.resize_with(slot + 1, || None);
            }
            if let Some(entry) = shard.sessions.get_mut(slot) {
                *entry = Some(Box::new(session));
            }
        }
        self.sessions += 1;
        *self.peers.entry(peer).or_default() += 1;
        let mut directory = Vec::new();
        let announced = self.announced(&plan.model, place);
        tell_addresses(&mut directory, &[], &announced, place);
        for Endpoint { tunnel, .. } in &plan.model.tunnels {
            if self.tunnels.is_chosen(*tunnel) {
                directory.push(DirectoryChange::Tunnel { teid: tunnel.teid, place: Some(tunnel.place) });
            }
        }
        Established {
            created_pdrs: self.created(plan),
            directory,
            timings: timings(&plan.model),
            inactivity_timer: plan.model.inactivity_timer,
            rules,
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
        let old_announced = self.announced(&model, place);
        let mut plan = Plan::modify(model, request, &self.config)?;
        let mut taken = Taken::default();
        let settled = self
            .grant_addresses(&mut plan, None, Some(place.shard), &old_routes, &mut taken)
            .and_then(|()| self.grant_tunnels(&mut plan, place.shard, &mut taken))
            .and_then(|()| Ok(compile(&plan.model, place, seid, &self.config.limits)?));
        let rules = match settled {
            Ok(rules) => Arc::new(rules),
            Err(refusal) => {
                self.give_back(&taken);
                return Err(refusal);
            }
        };

        // From here on nothing refuses.
        let created_pdrs = self.created(&plan);
        let mut directory = Vec::new();
        for Endpoint { tunnel, .. } in &plan.model.tunnels {
            if self.tunnels.is_chosen(*tunnel) && !old_tunnels.iter().any(|old| old.tunnel == *tunnel) {
                directory.push(DirectoryChange::Tunnel { teid: tunnel.teid, place: Some(tunnel.place) });
            }
        }
        // What no PDR leads to any more goes back, and that is known only after PDRs were given theirs.
        let Plan { model, end_markers, removed_urrs, .. } = &mut plan;
        let Model { tunnels, pdrs, .. } = model;
        tunnels.retain(|endpoint| pdrs.iter().any(|pdr| pdr.tunnel == Some(endpoint.tunnel.teid)));
        for tunnel in old_tunnels.iter().map(|endpoint| endpoint.tunnel).chain(taken.tunnels) {
            if !tunnels.iter().any(|endpoint| endpoint.tunnel == tunnel) && self.tunnels.release(tunnel) {
                directory.push(DirectoryChange::Tunnel { teid: tunnel.teid, place: None });
            }
        }
        let routes = framed_routes(model);
        for net in old_routes {
            if !routes.contains(&net) {
                self.addresses.release(net);
            }
        }
        let announced = self.announced(model, place);
        tell_addresses(&mut directory, &old_announced, &announced, place);

        let query = if request.flags.query_all_urrs {
            model.urrs.iter().map(|urr| urr.id).collect()
        } else {
            let known = |id: &&UrrId| find(&model.urrs, **id).is_some();
            request.query_urrs.iter().filter(known).copied().collect()
        };
        freeze(model, &mut self.scratch);
        let rest = self.scratch.as_slice().into();
        let session = self.get_mut(seid).ok_or(Refusal::UnknownSession(seid))?;
        session.rules = rules.clone();
        session.rest = rest;
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
        self.sessions -= 1;
        if let Some(count) = self.peers.get_mut(&session.peer) {
            *count -= 1;
        }
        let model = session.model().unwrap_or_default();
        let mut directory = Vec::new();
        let announced = self.announced(&model, place);
        tell_addresses(&mut directory, &announced, &[], place);
        for Endpoint { tunnel, .. } in &model.tunnels {
            if self.tunnels.release(*tunnel) {
                directory.push(DirectoryChange::Tunnel { teid: tunnel.teid, place: None });
            }
        }
        let addresses = model.ipv4.map(host).into_iter().chain(model.ipv6.map(IpNet::V6));
        addresses.chain(framed_routes(&model)).for_each(|net| self.addresses.release(net));
        let Session { rules, cp: cp_fseid, peer, sequences, .. } = *session;
        Ok(Deleted { rules, cp_fseid, peer, directory, sequences })
    }

    /// UR-SEQN for the next report of a rule; `None`: no such session.
    pub fn next_sequence(&mut self, seid: Seid, urr: UrrId) -> Option<u32> {
        let limit = self.config.limits.urrs.saturating_mul(2);
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
        freeze(&model, &mut self.scratch);
        let rest = self.scratch.as_slice().into();
        let session = self.get_mut(seid)?;
        let mut rules = (*session.rules).clone();
        rules.urrs.iter_mut().filter(|rule| rule.id == urr).for_each(|rule| rule.blocked = blocked);
        session.rules = Arc::new(rules);
        session.rest = rest;
        Some(session.rules.clone())
    }

    /// How the packets of a PDR are buffered: the BAR of its FAR, for the delay of notifications.
    pub fn bar(&self, seid: Seid, pdr: PdrId) -> Option<Bar> {
        let model = self.get(seid)?.model()?;
        let far = find(&model.fars, find(&model.pdrs, pdr)?.far?)?;
        find(&model.bars, far.bar?).copied()
    }

    /// Takes the addresses and routes that a plan wishes for.
    fn grant_addresses(
        &mut self,
        plan: &mut Plan<'_>,
        dnn: Option<&[u8]>,
        shard: Option<ShardId>,
        old_routes: &[IpNet],
        taken: &mut Taken,
    ) -> Result<(), Refusal> {
        // Those that are given first: one that can't be had costs nothing yet.
        if let (Wish::Given(pdr, address), None) = (plan.ipv4, plan.model.ipv4) {
            take(&mut self.addresses, host(address), taken).map_err(|error| Refusal::Address(pdr, error))?;
            plan.model.ipv4 = Some(address);
        }
        if let (Wish::Given(pdr, prefix), None) = (plan.ipv6, plan.model.ipv6) {
            take(&mut self.addresses, IpNet::V6(prefix), taken)
                .map_err(|error| Refusal::Address(pdr, error))?;
            plan.model.ipv6 = Some(prefix);
        }
        let names = [dnn.unwrap_or_default(), plan.pool_name.unwrap_or_default()];
        if let (Wish::Choose(pdr), None) = (plan.ipv4, plan.model.ipv4) {
            let wish = shard.or(plan.model.ipv6.map(shard_of_ipv6));
            let address = self.addresses.allocate_ipv4(&names, wish);
            let address = address.map_err(|error| Refusal::Address(pdr, error))?;
            taken.nets.push(host(address));
            plan.model.ipv4 = Some(address);
        }
        if let (Wish::Choose(pdr), None) = (plan.ipv6, plan.model.ipv6) {
            let wish = shard.or(plan.model.ipv4.map(shard_of_ipv4));
            let prefix = self.addresses.allocate_ipv6(&names, wish);
            let prefix = prefix.map_err(|error| Refusal::Address(pdr, error))?;
            taken.nets.push(IpNet::V6(prefix));
            plan.model.ipv6 = Some(prefix);
        }
        for net in framed_routes(&plan.model) {
            if !old_routes.contains(&net) {
                let route = self.addresses.reserve_route(net);
                route.map_err(|error| Refusal::Address(plan.router(net), error))?;
                taken.nets.push(net);
            }
        }
        Ok(())
    }

    /// Gives every PDR the tunnel it asks for.
    fn grant_tunnels(
        &mut self,
        plan: &mut Plan<'_>,
        shard: ShardId,
        taken: &mut Taken,
    ) -> Result<(), Refusal> {
        for at in 0..plan.tunnels.len() {
            let Some(wish) = plan.tunnels.get(at).copied() else { break };
            let refused = |error| Refusal::Tunnel(wish.pdr, error);
            let Some(pdr) = plan.pdr(wish.pdr) else { continue };
            let has = pdr.tunnel;
            let held = |found: &dyn Fn(&Endpoint) -> bool| {
                plan.model.tunnels.iter().find(|endpoint| found(endpoint)).map(|endpoint| endpoint.tunnel)
            };
            let (tunnel, choose_id) = match wish.fteid {
                FTeid::Given { teid, .. } => match held(&|endpoint| endpoint.tunnel.teid == teid) {
                    Some(tunnel) => (tunnel, None),
                    None => (adopt(&mut self.tunnels, shard, teid, taken).map_err(refused)?, None),
                },
                FTeid::Choose { ipv4, ipv6, id } => {
                    let local = self.config.tunnel_addresses(pdr.instance, pdr.source);
                    if answer(local, ipv4, ipv6).is_empty() {
                        return Err(Refusal::NoTunnelAddress(wish.pdr));
                    }
                    let shared = id.and_then(|id| held(&|endpoint| endpoint.choose_id == Some(id)));
                    // An SMF that repeats its CHOOSE in a complete Update doesn't mean another tunnel.
                    let kept = has.filter(|_| wish.update && id.is_none());
                    let kept = kept.and_then(|teid| held(&|endpoint| endpoint.tunnel.teid == teid));
                    match shared.or(kept) {
                        Some(tunnel) => (tunnel, id),
                        None => {
                            let tunnel = self.tunnels.allocate(shard).map_err(refused)?;
                            taken.tunnels.push(tunnel);
                            (tunnel, id)
                        }
                    }
                }
            };
            let model = &mut plan.model;
            if !model.tunnels.iter().any(|endpoint| endpoint.tunnel == tunnel) {
                model.tunnels.push(Endpoint { tunnel, choose_id });
            }
            if let Some(pdr) = crate::model::find_mut(&mut model.pdrs, wish.pdr) {
                pdr.tunnel = Some(tunnel.teid);
            }
        }
        Ok(())
    }

    fn give_back(&mut self, taken: &Taken) {
        for tunnel in &taken.tunnels {
            self.tunnels.release(*tunnel);
        }
        for net in &taken.nets {
            self.addresses.release(*net);
        }
    }

    /// What the SMF left to us and must be told.
    fn created(&self, plan: &Plan<'_>) -> Vec<CreatedPdr> {
        let mut created: Vec<CreatedPdr> = Vec::new();
        for wish in &plan.tunnels {
            let FTeid::Choose { ipv4, ipv6, .. } = wish.fteid else { continue };
            let Some(pdr) = plan.pdr(wish.pdr) else { continue };
            let Some(teid) = pdr.tunnel else { continue };
            let local = answer(self.config.tunnel_addresses(pdr.instance, pdr.source), ipv4, ipv6);
            let fteid = FTeid::Given { teid, ipv4: local.ipv4, ipv6: local.ipv6 };
            answer_for(&mut created, wish.pdr, |entry| entry.local_fteid = Some(fteid));
        }
        for (pdr, question) in &plan.ue_questions {
            let ipv6 = plan.model.ipv6.filter(|_| question.choose_ipv6);
            let chosen = UeIpAddress {
                ipv4: plan.model.ipv4.filter(|_| question.choose_ipv4),
                ipv6: ipv6.map(|prefix| prefix.addr()),
                is_destination: question.is_destination,
                ipv6_delegation_bits: None,
                ipv6_prefix_length: ipv6.and(question.ipv6_prefix_length).and(Some(64)),
                choose_ipv4: false,
                choose_ipv6: false,
            };
            answer_for(&mut created, *pdr, |entry| entry.ue_ips.push(chosen));
        }
        created
    }

    /// Prefixes of a session that don't lead to its shard by themselves.
    fn announced(&self, model: &Model, place: SessionRef) -> Vec<IpNet> {
        let mut nets = framed_routes(model);
        let elsewhere = |address: &Ipv4Addr| shard_of_ipv4(*address) != place.shard;
        nets.extend(model.ipv4.filter(elsewhere).map(host));
        let six = model.ipv6.filter(|net| net.prefix_len() != 64 || shard_of_ipv6(*net) != place.shard);
        nets.extend(six.map(IpNet::V6));
        nets
    }
}

/// Changes the entry of a PDR, which is added if need be.
fn answer_for(created: &mut Vec<CreatedPdr>, id: PdrId, change: impl Fn(&mut CreatedPdr)) {
    if !created.iter().any(|entry| entry.id == id) {
        created.push(CreatedPdr { id, local_fteid: None, ue_ips: Vec::new() });
    }
    created.iter_mut().filter(|entry| entry.id == id).for_each(change);
}

fn take(addresses: &mut Addresses, net: IpNet, taken: &mut Taken) -> Result<(), AddressError> {
    addresses.reserve(net)?;
    taken.nets.push(net);
    Ok(())
}

fn adopt(
    tunnels: &mut Tunnels,
    shard: ShardId,
    teid: Teid,
    taken: &mut Taken,
) -> Result<Tunnel, TunnelError> {
    let tunnel = tunnels.adopt(shard, teid)?;
    taken.tunnels.push(tunnel);
    Ok(tunnel)
}

/// The addresses to answer a CHOOSE with: those asked for that we have; IPv4, or else what there is, if none was named
/// (FIELD.md §6 rule e).
fn answer(local: LocalAddresses, ipv4: bool, ipv6: bool) -> LocalAddresses {
    if !ipv4 && !ipv6 {
        return LocalAddresses { ipv6: local.ipv6.filter(|_| local.ipv4.is_none()), ..local };
    }
    LocalAddresses { ipv4: local.ipv4.filter(|_| ipv4), ipv6: local.ipv6.filter(|_| ipv6) }
}

fn tell_addresses(out: &mut Vec<DirectoryChange>, old: &[IpNet], new: &[IpNet], place: SessionRef) {
    for net in old.iter().filter(|net| !new.contains(net)) {
        out.push(DirectoryChange::Address { prefix: *net, session: None });
    }
    for net in new.iter().filter(|net| !old.contains(net)) {
        out.push(DirectoryChange::Address { prefix: *net, session: Some(place) });
    }
}
