//! Which of a shard's sessions has a UE's address.
//!
//! SMFs never ask that, people do: so it must not cost a session's establishment anything. The addresses of a shard's sessions lie side
//! by side, by slot, four or eight octets each; some thousand of them are compared in a microsecond. A hash map would answer sooner,
//! and took a tenth of the store's time for an establishment (`examples/establish.rs`).

use crate::prefixes::{PrefixLengths, upper_half};
use crate::rules::Rules;
use std::net::IpAddr;

/// Addresses of a shard's sessions. 0 is nobody's: neither 0.0.0.0 nor ::/64 can be a UE's.
#[derive(Debug, Default)]
pub struct ByAddress {
    ipv4: Vec<u32>,
    /// The upper halves of prefixes' first addresses; as long as the last session that has one needs.
    ipv6: Vec<u64>,
}

impl ByAddress {
    /// A session came to be, or got an address.
    pub fn enter(&mut self, rules: &Rules) {
        let slot = rules.place.slot as usize;
        if let Some(address) = rules.ue_ipv4 {
            set(&mut self.ipv4, slot, address.into());
        }
        if let Some(prefix) = rules.ue_ipv6 {
            set(&mut self.ipv6, slot, upper_half(prefix.network()));
        }
    }

    /// The session in this slot goes.
    pub fn forget(&mut self, slot: u32) {
        let slot = slot as usize;
        self.ipv4.get_mut(slot).into_iter().for_each(|address| *address = 0);
        self.ipv6.get_mut(slot).into_iter().for_each(|prefix| *prefix = 0);
    }

    /// The slot of the session that has this address, if it is one of those that say its shard.
    pub fn find(&self, lengths: &PrefixLengths, address: IpAddr) -> Option<u32> {
        let slot = match address {
            IpAddr::V4(address) => place(&self.ipv4, address.into()),
            IpAddr::V6(address) => place(&self.ipv6, lengths.key(upper_half(address))),
        };
        slot.map(|slot| slot as u32)
    }

    /// Addresses.
    pub fn len(&self) -> usize {
        let ipv4 = self.ipv4.iter().filter(|address| **address != 0).count();
        ipv4 + self.ipv6.iter().filter(|prefix| **prefix != 0).count()
    }
}

fn set<T: Copy + Default>(all: &mut Vec<T>, slot: usize, value: T) {
    if all.len() <= slot {
        all.resize(slot + 1, T::default());
    }
    if let Some(place) = all.get_mut(slot) {
        *place = value;
    }
}

fn place<T: Copy + Default + PartialEq>(all: &[T], wanted: T) -> Option<usize> {
    if wanted == T::default() {
        return None;
    }
    all.iter().position(|value| *value == wanted)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ids::{SessionRef, ShardId};

    fn rules(slot: u32, ipv4: Option<[u8; 4]>, ipv6: Option<&str>) -> Rules {
        let place = SessionRef { shard: ShardId::from_hash(0), slot };
        let (ue_ipv4, ue_ipv6) = (ipv4.map(Into::into), ipv6.map(|text| text.parse().unwrap()));
        Rules { ue_ipv6, ..Rules::of(place, ue_ipv4, [], []) }
    }

    #[test]
    fn addresses_lead_to_their_slots() {
        let mut found = ByAddress::default();
        found.enter(&rules(3, Some([10, 0, 0, 3]), None));
        found.enter(&rules(1, Some([10, 0, 0, 1]), Some("2001:db8:1::/64")));
        found.enter(&rules(2, None, Some("2001:db8:2::/64")));
        let find =
            |found: &ByAddress, text: &str| found.find(&PrefixLengths::default(), text.parse().unwrap());
        for (text, slot) in [("10.0.0.3", 3), ("10.0.0.1", 1), ("2001:db8:1::9", 1), ("2001:db8:2:0:f::", 2)]
        {
            assert_eq!(find(&found, text), Some(slot), "{text}");
        }
        for nobodys in ["10.0.0.2", "0.0.0.0", "::", "::1", "2001:db8:1:1::"] {
            assert_eq!(find(&found, nobodys), None, "{nobodys}");
        }
        assert_eq!(found.len(), 4);
        found.forget(1);
        found.forget(7);
        assert_eq!((find(&found, "10.0.0.1"), find(&found, "2001:db8:1::9"), found.len()), (None, None, 2));
    }
}
