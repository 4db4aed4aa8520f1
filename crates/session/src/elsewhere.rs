//! Where a session lives whose address or route doesn't say so itself: the second address of an IPv4v6 session, a
//! prefix of another length than /64, a framed route. The same that every worker is told ([`DirectoryChange`]).

use crate::addresses::{range, shard_of_ipv4, shard_of_ipv6};
use crate::ids::{SessionRef, ShardId};
use crate::store::DirectoryChange;
use ipnet::{IpNet, Ipv6Net};
use std::collections::BTreeMap;

/// Prefixes by their first address, with their last one. They don't overlap: each has one holder.
#[derive(Debug, Default)]
pub struct Elsewhere(BTreeMap<u128, (u128, SessionRef)>);

impl Elsewhere {
    /// Takes note of what the workers are told.
    pub fn told(&mut self, changes: &[DirectoryChange]) {
        for change in changes {
            let DirectoryChange::Address { prefix, session } = *change else { continue };
            let (first, last) = range(prefix);
            match session {
                Some(session) => drop(self.0.insert(first, (last, session))),
                None => drop(self.0.remove(&first)),
            }
        }
    }

    /// The session that holds an address of this network, or this address, if that had to be told.
    pub fn noted(&self, net: IpNet) -> Option<SessionRef> {
        let (first, last) = range(net);
        let noted = self.0.range(..=last).next_back().filter(|(_, (end, _))| *end >= first);
        noted.map(|(_, (_, session))| *session)
    }

    /// The shard of the session that holds an address of this network, or this address, if one does.
    pub fn shard_of(&self, net: IpNet) -> Option<ShardId> {
        self.noted(net).map(|session| session.shard).or(match net {
            IpNet::V4(net) if net.prefix_len() == 32 => Some(shard_of_ipv4(net.addr())),
            // A UE has 64 bits, whatever part of them is asked for.
            IpNet::V6(net) if net.prefix_len() >= 64 => {
                Ipv6Net::new(net.addr(), 64).ok().map(|prefix| shard_of_ipv6(prefix.trunc()))
            }
            _ => None,
        })
    }
}
