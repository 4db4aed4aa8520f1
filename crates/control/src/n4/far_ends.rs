//! How many gNBs and other UPFs sessions send to: each costs every worker a place in its table of header templates.
//!
//! The workers' tables are as large as this limit, so that a request that passes here finds room there.

use pfcp::ie::OuterHeaderCreation;
use session::dialect::is_far_end;
use session::rules::Rules;
use std::collections::HashMap;
use std::net::IpAddr;

/// Far ends by address, with the number of FARs that send to them.
#[derive(Debug)]
pub(super) struct FarEnds {
    known: HashMap<IpAddr, u32>,
    limit: usize,
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

    /// A session has these rules from now on.
    pub fn acquire(&mut self, rules: &Rules) {
        for address in rules.far_ends() {
            *self.known.entry(address).or_default() += 1;
        }
    }

    /// A session no longer has these rules.
    pub fn release(&mut self, rules: &Rules) {
        for address in rules.far_ends() {
            if let Some(count) = self.known.get_mut(&address) {
                *count -= 1;
                if *count == 0 {
                    self.known.remove(&address);
                }
            }
        }
    }
}

/// The far end that an Outer Header Creation names, if it does: where an SMF doesn't know the gNB yet, it may write 0.0.0.0.
pub(super) fn far_end(header: &OuterHeaderCreation) -> Option<IpAddr> {
    header.ipv4.map(IpAddr::V4).or(header.ipv6.map(IpAddr::V6)).filter(is_far_end)
}
