//! Sessions that leave the process, and come back into another one.
//!
//! A process that stops writes down what its sessions are, and the next one goes on with them: the SMFs' rules, their names at the SMF and here, the
//! tunnels that gNBs send to, the numbers of reports. What packets have counted is not in here: that is the shards' to say.
//!
//! A [`Header`] says what the records' numbers mean: the key that TEIDs are sealed with, the epoch they were handed out in ([`Epoch`]), and
//! the names of Network Instances, policies and slices, which rules know by their place in the configuration. Whoever takes over
//! may have another configuration: what it doesn't have, or has given to somebody else, refuses the sessions that need it, one by one, each with
//! the reason. Applications are there by their names: a rule for one that nobody detects here goes on, and matches nothing until somebody does.
//!
//! ```
//! use session::config::Config;
//! use session::portable::{Header, Restore};
//! use session::store::Store;
//!
//! let before = Store::new(Config::default())?;
//! let (header, records) = (before.header(), before.iter().map(|session| before.record(session)).collect::<Vec<_>>());
//!
//! let header = Header::read(&header).ok_or("not a header")?;
//! let mut after = Store::new(Config { teids: header.teids(), epoch: header.epoch().next(), ..Config::default() })?;
//! let mut restore = Restore::new(&mut after, &header);
//! for record in &records {
//!     restore.session(record)?;
//! }
//! restore.finish();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **What it is not.** A protocol between versions: a header of another [`VERSION`] is refused.

use crate::addresses::AddressError;
use crate::applications::is_name;
use crate::change::{framed_routes, ue_networks};
use crate::config::{Config, Slice};
use crate::dialect::{is_far_end, is_url};
use crate::ids::{Epoch, SessionRef};
use crate::model::{Far, Identified, Model, Outer, Pdr};
use crate::packed::{Pack, count, counted, thaw};
use crate::refusal::Refusal;
use crate::rules::{Prefix, Rules};
use crate::sdf::{Flow, Side};
use crate::store::{DirectoryChange, PeerId, Session, Store};
use crate::teid::TunnelError;
use crate::teid_key::TeidKey;
use crate::timing::{Sequences, UrrTiming, timings};
use ipnet::IpNet;
use packet::Teid;
use pfcp::Seid;
use pfcp::ie::FSeid;
use std::collections::HashMap;
use std::sync::Arc;

/// Of headers and records. Another one is due when the octets of either change: `tests/portable.rs` has those of this one.
pub const VERSION: u16 = 4;

/// What a process's records are to be read with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    epoch: Epoch,
    teids: TeidKey,
    instances: Names,
    policies: Names,
    slices: Names,
}

/// In the order of a configuration.
type Names = Vec<Box<[u8]>>;

impl Header {
    fn of(config: &Config) -> Self {
        Self {
            epoch: config.epoch,
            teids: config.teids,
            instances: config.instances.iter().map(|it| it.name.octets().into()).collect(),
            policies: config.policies.iter().map(|it| it.id.clone()).collect(),
            slices: config.slices.iter().map(slice_name).collect(),
        }
    }

    /// Reads what [`Store::header`] wrote; `None`: it is no header of this version.
    pub fn read(mut octets: &[u8]) -> Option<Self> {
        let from = &mut octets;
        if u16::unpack(from)? != VERSION {
            return None;
        }
        let epoch = Epoch::of(u16::unpack(from)?);
        let words: Option<((u64, u64), (u64, u64))> = Pack::unpack(from)?;
        let teids = words.map_or_else(TeidKey::default, |((a, b), (c, d))| TeidKey::new([a, b, c, d]));
        let header = Self {
            epoch,
            teids,
            instances: Pack::unpack(from)?,
            policies: Pack::unpack(from)?,
            slices: Pack::unpack(from)?,
        };
        from.is_empty().then_some(header)
    }

    fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        VERSION.pack(&mut out);
        self.epoch.number().pack(&mut out);
        self.teids.words().map(|[a, b, c, d]| ((a, b), (c, d))).pack(&mut out);
        self.instances.pack(&mut out);
        self.policies.pack(&mut out);
        self.slices.pack(&mut out);
        out
    }

    /// When its identifiers were handed out. Whoever takes over lives in the next one.
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// What its TEIDs are sealed with. Whoever takes over goes on with it.
    pub const fn teids(&self) -> TeidKey {
        self.teids
    }
}

/// A slice is known by what makes a session one of its.
fn slice_name(slice: &Slice) -> Box<[u8]> {
    let mut name = Vec::new();
    slice.s_nssai.map(|it| (it.sst, it.sd)).pack(&mut name);
    let names: Names = slice.names.iter().map(|name| name.octets().into()).collect();
    names.pack(&mut name);
    name.into()
}

/// Whether a model that was read from outside is as those are that requests make: lists that rules can count, in the order of their IDs;
/// tunnels that are their PDRs', networks without an address in them, port ranges with something in them, far ends that packets can be
/// sent to.
fn is_sound(model: &Model) -> bool {
    fn in_order<T: Identified>(list: &[T]) -> bool {
        list.is_sorted_by(|one, next| one.id() < next.id())
    }
    let Model { tunnels, pdrs, fars, qers, urrs, bars, .. } = model;
    let lengths = |Pdr { qfis, filters, framed_ipv4, framed_ipv6, qers, urrs, .. }: &Pdr| {
        [qfis.len(), filters.len(), framed_ipv4.len(), framed_ipv6.len(), qers.len(), urrs.len()]
    };
    let ranges = |Flow { remote_ports, local_ports, .. }: &Flow| [remote_ports.len(), local_ports.len()];
    let flows = || pdrs.iter().flat_map(|pdr| &pdr.filters).map(|filter| &filter.flow);
    let lists = [tunnels.len(), pdrs.len(), fars.len(), qers.len(), urrs.len(), bars.len()];
    // First of all: what follows, and what compiles them, is made for few.
    let mut lists = lists.into_iter().chain(pdrs.iter().flat_map(lengths)).chain(flows().flat_map(ranges));
    if lists.any(|length| u16::try_from(length).is_err()) {
        return false;
    }
    let mut held: Vec<Teid> = tunnels.iter().map(|endpoint| endpoint.tunnel.teid).collect();
    let mut named: Vec<Teid> = pdrs.iter().filter_map(|pdr| pdr.tunnel).collect();
    held.sort_unstable();
    named.sort_unstable();
    named.dedup();
    let sides = flows().flat_map(|flow| [flow.remote, flow.local]).filter_map(network);
    let mut ports = flows().flat_map(|flow| flow.remote_ports.iter().chain(&flow.local_ports));
    let mut networks = ue_networks(model).chain(framed_routes(model)).chain(sides);
    let leads_somewhere = |far: &Far| match far.outer_header {
        Some(Outer::Tunnel(outer)) => outer.teid.0 != 0 && is_far_end(&outer.peer),
        _ => true,
    };
    let mut applications = pdrs.iter().filter_map(|pdr| pdr.application.as_deref());
    (in_order(pdrs) && in_order(fars) && in_order(qers) && in_order(urrs) && in_order(bars))
        && held == named
        && networks.all(|net| net == net.trunc())
        && ports.all(|(low, high)| low <= high)
        && fars.iter().all(leads_somewhere)
        && applications.all(is_name)
        && fars.iter().filter_map(|far| far.redirect.as_deref()).all(|url| is_url(url.as_bytes()))
}

/// That of a filter's side.
fn network(side: Side) -> Option<IpNet> {
    match side {
        Side::Prefix(Prefix::V4(net)) => Some(net.into()),
        Side::Prefix(Prefix::V6(net)) => Some(net.into()),
        Side::Any | Side::Assigned => None,
    }
}

impl Store {
    /// What its sessions' records are to be read with.
    pub fn header(&self) -> Vec<u8> {
        Header::of(self.config()).write()
    }

    /// All of a session but what packets counted.
    pub fn record(&self, session: &Session) -> Vec<u8> {
        let mut out = Vec::with_capacity(session.octets().len() + 48);
        session.rules().seid.pack(&mut out);
        session.cp_fseid().pack(&mut out);
        session.peer().number().pack(&mut out);
        session.sequences().list().pack(&mut out);
        self.chosen(session).pack(&mut out);
        count(session.octets(), &mut out);
        out
    }
}

/// Why a session can't go on here.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unportable {
    /// The octets are no record.
    #[error("the record is damaged")]
    Damaged,
    /// Its place is another session's, or beyond what limits allow.
    #[error("there is no room for session {0}: the record has it twice, or limits are lower than they were")]
    NoRoom(Seid),
    /// The configuration doesn't have what a rule names.
    #[error("session {0} needs {1} {2:?}, which the configuration doesn't have")]
    Unknown(Seid, &'static str, String),
    /// A tunnel that can't be had.
    #[error("session {0}: {1}")]
    Tunnel(Seid, TunnelError),
    /// An address that can't be had.
    #[error("session {0}: {1}")]
    Address(Seid, AddressError),
    /// Its rules make no sense here.
    #[error("session {0}: {1}")]
    Refused(Seid, Refusal),
}

/// A session that goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Restored {
    /// For its shard.
    pub rules: Arc<Rules>,
    /// For every worker.
    pub directory: Vec<DirectoryChange>,
    /// The session at its SMF.
    pub cp_fseid: FSeid,
    /// The association it belongs to now.
    pub peer: PeerId,
    /// URRs that time drives.
    pub timings: Vec<UrrTiming>,
    /// User Plane Inactivity Timer in seconds.
    pub inactivity_timer: Option<u32>,
}

/// Sessions on their way into a store without any.
#[derive(Debug)]
#[must_use = "until it has finished, what is free between the sessions isn't known"]
pub struct Restore<'s> {
    store: &'s mut Store,
    instances: Places,
    policies: Places,
    slices: Places,
    /// By the number that an association had.
    peers: HashMap<u32, PeerId>,
    /// Places of sessions that may come to be, taken or not.
    places_left: usize,
}

/// By the place in the former configuration, from 0: the name, and the place in this one.
type Places = Vec<(Box<[u8]>, Option<u16>)>;

fn places(before: &Names, now: &Names) -> Places {
    let place = |name: &[u8]| now.iter().position(|it| **it == *name).map(|at| at as u16);
    before.iter().map(|name| (name.clone(), place(name))).collect()
}

impl<'s> Restore<'s> {
    /// Into this store, which has no sessions yet, and the header's key.
    pub fn new(store: &'s mut Store, header: &Header) -> Self {
        let own = Header::of(store.config());
        // Slots that are free between others have no session; there may be twice as many as there may be sessions.
        let places_left = store.config().limits.sessions.saturating_mul(2).saturating_add(1 << 16);
        Self {
            instances: places(&header.instances, &own.instances),
            policies: places(&header.policies, &own.policies),
            slices: places(&header.slices, &own.slices),
            peers: HashMap::new(),
            places_left,
            store,
        }
    }

    /// The association here that sessions belong to which belonged to this one there.
    pub fn peer(&mut self, before: u32) -> PeerId {
        let store = &mut *self.store;
        *self.peers.entry(before).or_insert_with(|| store.attach())
    }

    /// Takes in a session. What is refused leaves nothing behind.
    pub fn session(&mut self, mut record: &[u8]) -> Result<Restored, Unportable> {
        let from = &mut record;
        let read = (|| {
            let (seid, cp): (Seid, FSeid) = (Pack::unpack(from)?, Pack::unpack(from)?);
            let (peer, sequences, chosen): (u32, Vec<_>, Vec<_>) =
                (Pack::unpack(from)?, Pack::unpack(from)?, Pack::unpack(from)?);
            let model = thaw(counted(from)?).filter(is_sound)?;
            from.is_empty().then_some((seid, cp, peer, Sequences::of(sequences), chosen, model))
        })();
        let (seid, cp, peer, sequences, chosen, mut model) = read.ok_or(Unportable::Damaged)?;
        self.translate(seid, &mut model)?;
        let place = SessionRef::of(seid);
        let grown = (place.slot as usize + 1).saturating_sub(self.store.places(place.shard));
        if grown > self.places_left || self.store.is_full() {
            return Err(Unportable::NoRoom(seid));
        }
        let rules = self.store.settle_restored(seid, &model, &chosen)?;
        // From here on nothing refuses.
        let peer = self.peer(peer);
        let (rules, directory) = self.store.commit(&model, rules, cp, peer, sequences);
        self.places_left -= grown;
        let (timings, inactivity_timer) = (timings(&model), model.inactivity_timer);
        Ok(Restored { rules, directory, cp_fseid: cp, peer, timings, inactivity_timer })
    }

    /// What rules know by a place in the former configuration, they know by a place in this one from now on.
    fn translate(&self, seid: Seid, model: &mut Model) -> Result<(), Unportable> {
        let find = |places: &Places, at: u16, what: &'static str| match places.get(usize::from(at)) {
            Some((_, Some(now))) => Ok(*now),
            Some((name, None)) => Err(Unportable::Unknown(seid, what, String::from_utf8_lossy(name).into())),
            None => Err(Unportable::Damaged),
        };
        // Of these, 0 is none of the list.
        let from_one = |places: &Places, at: &mut u16, what: &'static str| {
            if let Some(place) = at.checked_sub(1) {
                *at = find(places, place, what)? + 1;
            }
            Ok(())
        };
        for pdr in &mut model.pdrs {
            from_one(&self.instances, &mut pdr.instance, "Network Instance")?;
        }
        for far in &mut model.fars {
            from_one(&self.instances, &mut far.instance, "Network Instance")?;
            from_one(&self.policies, &mut far.policy, "Forwarding Policy")?;
        }
        if let Some(slice) = &mut model.slice {
            *slice = find(&self.slices, *slice, "slice")?;
        }
        Ok(())
    }

    /// All have come: what is free between them may be handed out.
    pub fn finish(self) -> HashMap<u32, PeerId> {
        self.store.settle();
        self.peers
    }
}
