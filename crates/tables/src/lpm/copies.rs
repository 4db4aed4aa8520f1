//! Routes for devices with a copy; the layout is in [`crate::image`].

use super::{Address, Entry, Lpm, Table};
use crate::image::{self, Changes, Image, Journal, Kind, LINE, Layout};
use crate::simd::words;

/// Words of a place.
const PLACE: usize = 8;

/// What is kept of a table for its copies.
#[derive(Clone, Debug)]
pub(super) struct Tracked {
    journal: Journal,
    /// Where nodes stand, as devices see it. Look-ups in memory have a form of their own.
    places: Vec<u32>,
}

impl<A: Address, const ROOT: u8> Lpm<A, ROOT> {
    /// Notes that some entries of a table change.
    pub(super) fn note(&mut self, table: Table, first: usize, count: usize) {
        let Some(tracked) = &mut self.tracked else { return };
        let (region, before) = match table {
            Table::Root => (0, 0),
            Table::Node(node) => (1, node * 256),
        };
        for line in (before + first) / LINE..(before + first + count).div_ceil(LINE) {
            tracked.journal.note(region, line);
        }
    }

    /// Notes that a node stands elsewhere, or that something else holds for those who part before it.
    pub(super) fn note_place(&mut self, node: usize) {
        let Some(tracked) = &mut self.tracked else { return };
        if !A::SKIPS {
            return;
        }
        let Some(place) = self.places.get(node) else { return };
        let end = (node + 1) * PLACE;
        if tracked.places.len() < end {
            tracked.places.resize(end.next_multiple_of(LINE), 0);
        }
        if let Some(words) = tracked.places.get_mut(node * PLACE..end) {
            let said = [place.decided.into(), place.otherwise.0, 0, 0];
            words
                .iter_mut()
                .zip(place.prefix.words().into_iter().chain(said))
                .for_each(|(word, said)| *word = said);
        }
        tracked.journal.note(2, node * PLACE / LINE);
    }
}

impl<A: Address, const ROOT: u8> Image for Lpm<A, ROOT> {
    fn layout(&self) -> Layout {
        let mut parameters = [0; 16];
        parameters[0] = ROOT.into();
        parameters[1] = self.default.map_or(0, |value| Entry::leaf(0, value).0);
        Layout { kind: if A::BITS == 32 { Kind::Lpm4 } else { Kind::Lpm6 }, parameters }
    }

    fn regions(&self) -> Vec<&[u32]> {
        let mut regions = vec![&self.root[..], words::of_nodes(&self.nodes)];
        if A::SKIPS {
            regions.push(self.tracked.as_ref().map_or(&[], |tracked| &tracked.places));
        }
        regions
    }

    fn track(&mut self, limit: usize) {
        self.tracked = Some(Box::new(Tracked { journal: Journal::new(limit), places: Vec::new() }));
        (0..self.places.len()).for_each(|node| self.note_place(node));
    }

    fn changes(&mut self, into: &mut Changes) {
        image::take(self.tracked.as_mut().map(|tracked| &mut tracked.journal), into);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::hash::mix;
    use crate::image::Replica;
    use crate::{Dir24, Lookup, Lpm4, Lpm6};
    use std::net::{Ipv4Addr, Ipv6Addr};

    /// A device's look-up: from `crate::image` alone. `octets` are the address's.
    fn device(copy: &Replica, octets: &[u8]) -> Option<u16> {
        let layout = copy.layout.unwrap();
        let root = layout.parameters[0] as usize / 8;
        let index = octets[..root].iter().fold(0, |index, octet| index << 8 | usize::from(*octet));
        let (mut entry, mut decided) = (copy.regions[0][index], layout.parameters[0]);
        while entry >> 31 == 1 {
            let node = entry as usize & 0x3fff_ffff;
            if entry >> 30 & 1 == 1 {
                let place = &copy.regions[2][8 * node..8 * node + 8];
                let same =
                    (0..place[4] as usize / 8).all(|at| octets[at] == place[at / 4].to_be_bytes()[at % 4]);
                (entry, decided) = if same { (entry & !(1 << 30), place[4]) } else { (place[5], decided) };
                continue;
            }
            entry = copy.regions[1][256 * node + usize::from(octets[decided as usize / 8])];
            decided += 8;
        }
        let entry = if entry >> 24 & 1 == 1 { entry } else { layout.parameters[1] };
        (entry >> 24 & 1 == 1).then_some(entry as u16)
    }

    /// Random routes come and go, and a copy that follows answers as the table does.
    fn follows<A: Address, const ROOT: u8>(of: fn(u64) -> (A, u8), octets: fn(A) -> Vec<u8>) {
        let mut table = Lpm::<A, ROOT>::new(3000);
        let (mut copy, mut state) = (Replica::default(), 3_u64);
        let mut random = |limit: u64| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(state, 0xd6e8_feb8_6659_fd93) % limit
        };
        // Some before it is tracked.
        for number in 0..100 {
            let (prefix, len) = of(number);
            table.insert(prefix, len, number as u16).unwrap();
        }
        table.track(20_000);
        let mut by_line = 0;
        for round in 0..40 {
            for _ in 0..random(60) {
                let (prefix, len) = of(random(400));
                if random(3) == 0 {
                    table.remove(prefix, len);
                } else {
                    table.insert(prefix, len, random(1000) as u16).unwrap();
                }
            }
            by_line += u32::from(!copy.follow(&mut table));
            assert_eq!(copy.generation, table_generation(&mut table), "round {round}");
            for number in 0..800 {
                let (prefix, _) = of(number);
                assert_eq!(
                    device(&copy, &octets(prefix)),
                    table.lookup(&prefix),
                    "{prefix:?}, round {round}"
                );
            }
        }
        assert!(by_line > 30, "{by_line} times line by line");
    }

    fn table_generation(image: &mut impl Image) -> u64 {
        let mut changes = Changes::default();
        image.changes(&mut changes);
        assert!(changes.is_empty(), "all was taken");
        changes.generation
    }

    #[test]
    fn copies_of_ipv4_routes_follow() {
        let of = |number: u64| {
            let low = mix(number ^ 0x5eed, 0x9e37_79b9_7f4a_7c15) as u32 & 0x8001_83ff;
            let len = [0, 9, 16, 17, 23, 24, 24, 25, 31, 32][number as usize % 10];
            (Ipv4Addr::from_bits((10 + number as u32 % 3) << 24 ^ low), len)
        };
        follows::<_, 16>(of, |address| address.octets().to_vec());
        follows::<_, 24>(of, |address| address.octets().to_vec());
        assert_eq!(Lpm4::new(1).layout().kind, Kind::Lpm4);
        assert_eq!(Dir24::new(1).layout().parameters[0], 24);
    }

    #[test]
    fn copies_of_ipv6_routes_follow_over_gaps() {
        let of = |number: u64| {
            let low = mix(number ^ 0x5eed, 0x9e37_79b9_7f4a_7c15);
            let len = [0, 29, 32, 48, 56, 63, 64, 65, 120, 128][number as usize % 10];
            let site = u128::from(0x2001_0db8_u32 + number as u32 % 3) << 96;
            (Ipv6Addr::from_bits(site | u128::from(low & 0x300_0000_0000_0181)), len)
        };
        follows::<_, 16>(of, |address| address.octets().to_vec());
        assert_eq!(Lpm6::new(1).layout().kind, Kind::Lpm6);
    }
}
