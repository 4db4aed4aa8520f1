//! How many gNBs and other UPFs sessions send to: each costs every worker a place in its table of header templates. And which session
//! sends into which of their tunnels, for when one of them doesn't know it.
//!
//! The workers' tables are as large as this limit, so that a request that passes here finds room there.

use packet::Teid;
use pfcp::Seid;
use pfcp::ie::OuterHeaderCreation;
use session::rules::{OuterHeader, Rules};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use tables::Nanos;

/// A far end says that it doesn't know a tunnel with every packet that comes through it; once in this time is enough for the SMF.
const TELL_AGAIN: u64 = Nanos::SECOND;

/// Far ends by address.
#[derive(Debug)]
pub(super) struct FarEnds {
    known: HashMap<IpAddr, FarEnd>,
    limit: usize,
}

#[derive(Debug, Default)]
struct FarEnd {
    /// FARs that send to it.
    users: u32,
    tunnels: HashMap<Teid, Tunnel>,
    error_indications: u64,
    last_error: Option<Nanos>,
}

/// What people are told of a far end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FarEndStatus {
    /// Its address.
    pub address: IpAddr,
    /// FARs that send to it.
    pub rules: u32,
    /// Error Indications from it about tunnels that sessions send into.
    pub error_indications: u64,
    /// When the last of them came.
    pub last_error: Option<Nanos>,
}

/// A tunnel that a session sends into.
#[derive(Debug)]
pub(super) struct Tunnel {
    /// The session. Two with one tunnel are an SMF's mistake; the later one counts.
    pub seid: Seid,
    /// When its far end last was heard not to know it.
    told: Option<Nanos>,
    /// FARs that send into it.
    users: u32,
}

impl Tunnel {
    /// Whether it is time to tell the SMF that the far end doesn't know it.
    pub fn is_news(&mut self, now: Nanos) -> bool {
        let news = self.told.is_none_or(|told| told.plus(TELL_AGAIN) <= now);
        if news {
            self.told = Some(now);
        }
        news
    }
}

impl FarEnds {
    pub fn new(limit: usize) -> Self {
        Self { known: HashMap::new(), limit }
    }

    /// Whether all of these would still fit.
    pub fn have_room(&self, wanted: impl Iterator<Item = IpAddr>) -> bool {
        let mut new: Vec<IpAddr> = Vec::new();
        for address in wanted {
            if !self.known.contains_key(&address) && !new.contains(&address) {
                new.push(address);
            }
        }
        new.is_empty() || self.known.len() + new.len() <= self.limit
    }

    /// Whether there is no room for any more.
    pub fn is_full(&self) -> bool {
        self.known.len() >= self.limit
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// All of them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = FarEndStatus> + '_ {
        self.known.iter().map(|(address, far_end)| FarEndStatus {
            address: *address,
            rules: far_end.users,
            error_indications: far_end.error_indications,
            last_error: far_end.last_error,
        })
    }

    /// An Error Indication came from it.
    pub fn complained(&mut self, now: Nanos, peer: IpAddr) {
        if let Some(far_end) = self.known.get_mut(&peer) {
            far_end.error_indications += 1;
            far_end.last_error = Some(now);
        }
    }

    /// The tunnel of a far end, if a session sends into it.
    pub fn tunnel(&mut self, peer: IpAddr, teid: Teid) -> Option<&mut Tunnel> {
        self.known.get_mut(&peer)?.tunnels.get_mut(&teid)
    }

    /// A session has these rules from now on.
    pub fn acquire(&mut self, rules: &Rules) {
        for OuterHeader { teid, peer } in rules.tunnels() {
            let far_end = self.known.entry(peer).or_default();
            far_end.users += 1;
            let fresh = || Tunnel { seid: rules.seid, told: None, users: 0 };
            let tunnel = far_end.tunnels.entry(teid).or_insert_with(fresh);
            tunnel.seid = rules.seid;
            tunnel.users += 1;
        }
    }

    /// A session no longer has these rules.
    pub fn release(&mut self, rules: &Rules) {
        for OuterHeader { teid, peer } in rules.tunnels() {
            let Entry::Occupied(mut known) = self.known.entry(peer) else { continue };
            if let Entry::Occupied(mut tunnel) = known.get_mut().tunnels.entry(teid) {
                tunnel.get_mut().users -= 1;
                if tunnel.get().users == 0 {
                    tunnel.remove();
                }
            }
            known.get_mut().users -= 1;
            if known.get().users == 0 {
                known.remove();
            }
        }
    }
}

/// The far end that an Outer Header Creation names.
pub(super) fn far_end(header: &OuterHeaderCreation) -> Option<IpAddr> {
    header.ipv4.map(IpAddr::V4).or(header.ipv6.map(IpAddr::V6))
}
