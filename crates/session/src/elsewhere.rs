//! Where a session lives whose address or route doesn't say so itself: the second address of an IPv4v6 session, a
//! prefix of another length than its pool's, a framed route. The same that every worker is told ([`DirectoryChange`]).

use crate::addresses::{range, shard_of_ipv4, shard_of_ipv6};
use crate::ids::{SessionRef, ShardId};
use crate::prefixes::{PrefixLengths, upper_half};
use crate::store::DirectoryChange;
use ipnet::IpNet;
use std::collections::BTreeMap;

/// Prefixes by their first address, with their last one. They don't overlap: each has one holder.
#[derive(Debug)]
pub struct Elsewhere {
    noted: BTreeMap<u128, (u128, SessionRef)>,
    lengths: PrefixLengths,
}

impl Elsewhere {
    /// Nothing is noted yet.
    pub const fn new(lengths: PrefixLengths) -> Self {
        Self { noted: BTreeMap::new(), lengths }
    }

    /// Takes note of what the workers are told.
    pub fn told(&mut self, changes: &[DirectoryChange]) {
        for change in changes {
            let DirectoryChange::Address { prefix, session } = *change else { continue };
            let (first, last) = range(prefix);
            match session {
                Some(session) => drop(self.noted.insert(first, (last, session))),
                None => drop(self.noted.remove(&first)),
            }
        }
    }

    /// The session that holds an address of this network, or this address, if that had to be told.
    pub fn noted(&self, net: IpNet) -> Option<SessionRef> {
        let (first, last) = range(net);
        let noted = self.noted.range(..=last).next_back().filter(|(_, (end, _))| *end >= first);
        noted.map(|(_, (_, session))| *session)
    }

    /// The shard that this network or address says itself: of the session that has it, if one has and that was not [noted](Self::noted).
    pub fn said(&self, net: IpNet) -> Option<ShardId> {
        match net {
            IpNet::V4(net) if net.prefix_len() == 32 => Some(shard_of_ipv4(net.addr())),
            // A UE has all of its prefix, whatever part of it is asked for.
            IpNet::V6(net) if net.prefix_len() >= self.lengths.length(upper_half(net.addr())).get() => {
                Some(shard_of_ipv6(&self.lengths, net))
            }
            _ => None,
        }
    }

    /// The shard of the session that holds an address of this network, or this address, if one does.
    pub fn shard_of(&self, net: IpNet) -> Option<ShardId> {
        self.noted(net).map(|session| session.shard).or_else(|| self.said(net))
    }
}
