//! Longest prefix match for IPv4 and IPv6.
//!
//! **Problem.** The next hop of an address is that of the longest route that contains it. A UPF has a handful of routes, or
//! a full table of a million; a lookup should cost little cache in the first case and little DRAM in the second.
//!
//! **Layout.** A multibit trie: a root indexed by the first 16 bits, below it nodes of 256 entries indexed by one octet
//! each. Routes are *pushed to the leaves*: an entry says either the answer or the next node, so a lookup never backtracks. An
//! IPv4 lookup reads one to three entries (routes to /16, to /24, longer), an IPv6 lookup of a /48 five. Entries carry
//! the length of the route they came from, which makes insertion and removal touch just the range of the route. The default
//! route is kept aside: a table with nothing else reads one page of zeros that the operating system shares.
//!
//! **Why not DIR-24-8.** Its flat table of the first 24 bits saves a dependent read, and has 32 MiB: traffic to random
//! destinations misses cache and TLB even with one route, and it is there once per view of the network. Measured in one run
//! (`examples/cycles.rs`, 105 MiB of third-level cache): with a default route alone 3 cycles here and 11 to 14 there, with ten routes 6
//! and 3, with 10,000 equal, with a million 15 and 10. A UPF's table is of the first kind, and shares its cache with sessions.
//!
//! **Cost.** 256 KiB of address space (touched where routes are) and 1 KiB per node. A /24 needs at most one node, an
//! IPv6 /48 four, a /64 six, a /128 fourteen; the number of nodes is limited when the table is made.
//!
//! **When not to use it.** For millions of IPv6 host routes: those are exact matches, for [`crate::BulkMap`].

use crate::prefetch::prefetch_slice_at;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Why a route can't be added. The table is as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LpmError {
    /// The prefix is longer than the address.
    PrefixLength,
    /// The table's limit of nodes is reached.
    Full,
}

impl std::fmt::Display for LpmError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::PrefixLength => "the prefix is longer than the address",
            Self::Full => "no room left in the routing table",
        })
    }
}

impl std::error::Error for LpmError {}

/// What can be looked up: [`Ipv4Addr`] or [`Ipv6Addr`].
pub trait Address: Copy + Ord + std::fmt::Debug {
    /// Length in bits.
    const BITS: u8;
    /// The octet at `index`; zero past the end.
    fn octet(self, index: usize) -> u8;
    /// The address with all but its first `len` bits cleared.
    #[must_use]
    fn masked(self, len: u8) -> Self;
}

impl Address for Ipv4Addr {
    const BITS: u8 = 32;

    #[inline(always)]
    fn octet(self, index: usize) -> u8 {
        self.octets().get(index).copied().unwrap_or(0)
    }

    fn masked(self, len: u8) -> Self {
        let mask = u32::MAX.checked_shl(32_u32.saturating_sub(len.into())).unwrap_or(0);
        Self::from_bits(self.to_bits() & mask)
    }
}

impl Address for Ipv6Addr {
    const BITS: u8 = 128;

    #[inline(always)]
    fn octet(self, index: usize) -> u8 {
        self.octets().get(index).copied().unwrap_or(0)
    }

    fn masked(self, len: u8) -> Self {
        let mask = u128::MAX.checked_shl(128_u32.saturating_sub(len.into())).unwrap_or(0);
        Self::from_bits(self.to_bits() & mask)
    }
}

/// A table entry: nothing, `1 << 24 | route length << 16 | value`, or `1 << 31 | node`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry(u32);

impl Entry {
    const NOTHING: Self = Self(0);
    const LEAF: u32 = 1 << 24;
    const NODE: u32 = 1 << 31;

    const fn leaf(len: u8, value: u16) -> Self {
        Self(Self::LEAF | (len as u32) << 16 | value as u32)
    }

    const fn to_node(node: usize) -> Self {
        Self(Self::NODE | node as u32)
    }

    #[inline(always)]
    const fn node(self) -> Option<usize> {
        if self.0 & Self::NODE != 0 { Some((self.0 & !Self::NODE) as usize) } else { None }
    }

    #[inline(always)]
    const fn value(self) -> Option<u16> {
        if self.0 & Self::LEAF != 0 { Some(self.0 as u16) } else { None }
    }

    /// The length of the route that a leaf came from; 0 for nothing (the default route isn't pushed).
    const fn len(self) -> u8 {
        (self.0 >> 16) as u8
    }
}

#[derive(Clone)]
#[repr(align(64))]
struct Node([u32; 256]);

/// Where a table of entries is: the root, or a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Table {
    Root,
    Node(usize),
}

/// Bits that the root decides.
const ROOT_BITS: u8 = 16;

/// IPv4 routes; see the module's documentation.
pub type Lpm4 = Lpm<Ipv4Addr>;
/// IPv6 routes; see the module's documentation.
pub type Lpm6 = Lpm<Ipv6Addr>;

/// A longest-prefix-match table from prefixes of `A` to 16-bit values (next-hop numbers); see the module's documentation.
///
/// ```
/// use tables::Lpm4;
/// let mut routes = Lpm4::new(1000);
/// routes.insert("10.0.0.0".parse()?, 8, 1)?;
/// routes.insert("10.1.2.0".parse()?, 24, 2)?;
/// assert_eq!(routes.lookup("10.1.2.3".parse()?), Some(2));
/// assert_eq!(routes.lookup("10.1.3.3".parse()?), Some(1));
/// assert_eq!(routes.lookup("11.1.2.3".parse()?), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Lpm<A> {
    /// Entries by the first 16 bits; zeroed lazily by the operating system.
    root: Vec<u32>,
    nodes: Vec<Node>,
    /// Nodes not in use.
    free: Vec<usize>,
    max_nodes: usize,
    default: Option<u16>,
    routes: BTreeMap<(A, u8), u16>,
}

impl<A: Address> Lpm<A> {
    /// An empty table of at most `max_nodes` nodes of 1 KiB.
    pub fn new(max_nodes: usize) -> Self {
        Self {
            root: vec![0; 1 << ROOT_BITS],
            nodes: Vec::new(),
            free: Vec::new(),
            max_nodes: max_nodes.min(Entry::NODE as usize),
            default: None,
            routes: BTreeMap::new(),
        }
    }

    /// Number of routes.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Whether there are no routes.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// All routes, by prefix.
    pub fn iter(&self) -> impl Iterator<Item = (A, u8, u16)> + '_ {
        self.routes.iter().map(|((prefix, len), value)| (*prefix, *len, *value))
    }

    /// Nodes in use, each 1 KiB.
    pub fn nodes(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// The value of exactly this route.
    pub fn get(&self, prefix: A, len: u8) -> Option<u16> {
        self.routes.get(&(prefix.masked(len), len)).copied()
    }

    /// The value of the longest route that contains `address`.
    #[inline]
    pub fn lookup(&self, address: A) -> Option<u16> {
        self.descend(self.root_entry(address), address)
    }

    /// Looks up `addresses[i]` into `out[i]`, for as many as both slices have.
    pub fn lookup_bulk(&self, addresses: &[A], out: &mut [Option<u16>]) {
        // Nodes that a third-level cache holds: there the processor overlaps plain look-ups well enough by itself.
        const CACHED: usize = 16_384;
        if self.nodes.len() > CACHED {
            self.lookup_phased(addresses, out);
        } else {
            for (address, out) in addresses.iter().zip(out) {
                *out = self.lookup(*address);
            }
        }
    }

    /// Bulk look-up level by level over groups of 32, so that the accesses of a level overlap.
    fn lookup_phased(&self, addresses: &[A], out: &mut [Option<u16>]) {
        const GROUP: usize = 32;
        for (addresses, out) in addresses.chunks(GROUP).zip(out.chunks_mut(GROUP)) {
            // The look-ups that aren't at a leaf yet, and how many they are: all at first.
            let mut pending = [(0_u8, Entry::NOTHING); GROUP];
            let mut count = 0;
            for (position, (address, out)) in addresses.iter().zip(out.iter_mut()).enumerate() {
                let entry = self.root_entry(*address);
                *out = entry.value().or(self.default);
                if let Some(place) = pending.get_mut(count) {
                    *place = (position as u8, entry);
                    count += usize::from(self.prefetch_next(entry, address.octet(2)));
                }
            }
            let mut octet = 2;
            while count > 0 {
                let mut left = 0;
                for next in 0..count {
                    let Some((position, entry)) = pending.get(next).copied() else { break };
                    let (Some(address), Some(out)) =
                        (addresses.get(position as usize), out.get_mut(position as usize))
                    else {
                        break;
                    };
                    let entry = self.node_entry(entry.node().unwrap_or(0), address.octet(octet));
                    *out = entry.value().or(self.default);
                    if let Some(place) = pending.get_mut(left) {
                        *place = (position, entry);
                        left += usize::from(self.prefetch_next(entry, address.octet(octet + 1)));
                    }
                }
                count = left;
                octet += 1;
            }
        }
    }

    /// Adds or replaces the route to the first `len` bits of `prefix`; the value that it had before.
    pub fn insert(&mut self, prefix: A, len: u8, value: u16) -> Result<Option<u16>, LpmError> {
        if len > A::BITS {
            return Err(LpmError::PrefixLength);
        }
        let prefix = prefix.masked(len);
        if len == 0 {
            self.default = Some(value);
        } else {
            if self.nodes() + self.missing(prefix, len) > self.max_nodes {
                return Err(LpmError::Full);
            }
            let table = self.open(prefix, len);
            let (first, count) = Self::range(table, prefix, len);
            self.paint(table, first, count, Entry::leaf(len, value), |leaf| leaf.len() <= len);
        }
        Ok(self.routes.insert((prefix, len), value))
    }

    /// Removes a route; the value that it had.
    pub fn remove(&mut self, prefix: A, len: u8) -> Option<u16> {
        let prefix = prefix.masked(len);
        let value = self.routes.remove(&(prefix, len))?;
        if len == 0 {
            self.default = None;
            return Some(value);
        }
        let covering = (1..len).rev().find_map(|shorter| {
            self.routes.get(&(prefix.masked(shorter), shorter)).map(|value| Entry::leaf(shorter, *value))
        });
        let path = self.path(prefix, len);
        let table = path.last().map_or(Table::Root, |(node, _)| Table::Node(*node));
        let (first, count) = Self::range(table, prefix, len);
        self.paint(table, first, count, covering.unwrap_or(Entry::NOTHING), |leaf| leaf.len() == len);
        self.prune(prefix, &path);
        Some(value)
    }

    #[inline(always)]
    fn root_index(address: A) -> usize {
        (address.octet(0) as usize) << 8 | address.octet(1) as usize
    }

    #[inline(always)]
    fn root_entry(&self, address: A) -> Entry {
        Entry(self.root.get(Self::root_index(address)).copied().unwrap_or(0))
    }

    #[inline(always)]
    fn node_entry(&self, node: usize, octet: u8) -> Entry {
        Entry(self.nodes.get(node).map_or(0, |node| node.0[octet as usize]))
    }

    /// Prefetches what `entry` leads to; whether it leads anywhere. Without a branch on that: it can't be predicted.
    #[inline(always)]
    fn prefetch_next(&self, entry: Entry, octet: u8) -> bool {
        let node = (entry.0 & !Entry::NODE) as usize;
        if let Some(node) = self.nodes.get(node) {
            prefetch_slice_at(&node.0, octet as usize);
        }
        entry.node().is_some()
    }

    /// From a root entry to the answer.
    #[inline(always)]
    fn descend(&self, mut entry: Entry, address: A) -> Option<u16> {
        let mut octet = 2;
        while let Some(node) = entry.node() {
            entry = self.node_entry(node, address.octet(octet));
            octet += 1;
        }
        entry.value().or(self.default)
    }

    fn entries_mut(&mut self, table: Table) -> &mut [u32] {
        match table {
            Table::Root => &mut self.root,
            Table::Node(node) => self.nodes.get_mut(node).map_or(&mut [], |node| &mut node.0),
        }
    }

    /// The nodes above which routes of this length lie, with the bits decided before each: none for up to /16.
    fn path(&self, prefix: A, len: u8) -> Vec<(usize, u8)> {
        let mut path = Vec::new();
        let mut entry = self.root_entry(prefix);
        let mut decided = ROOT_BITS;
        while len > decided
            && let Some(node) = entry.node()
        {
            path.push((node, decided));
            entry = self.node_entry(node, prefix.octet(decided as usize / 8));
            decided += 8;
        }
        path
    }

    /// How many nodes a route still needs.
    fn missing(&self, prefix: A, len: u8) -> usize {
        (len.saturating_sub(ROOT_BITS) as usize).div_ceil(8) - self.path(prefix, len).len()
    }

    /// The table that holds a route's last bit, made where it isn't there yet.
    fn open(&mut self, prefix: A, len: u8) -> Table {
        let mut table = Table::Root;
        let mut index = Self::root_index(prefix);
        let mut decided = ROOT_BITS;
        while len > decided {
            let entry = Entry(self.entries_mut(table).get(index).copied().unwrap_or(0));
            let node = entry.node().unwrap_or_else(|| {
                // The new node answers as the entry did that it replaces.
                let fresh = Node([entry.0; 256]);
                let node = self.free.pop().unwrap_or_else(|| {
                    self.nodes.push(Node([0; 256]));
                    self.nodes.len() - 1
                });
                if let Some(place) = self.nodes.get_mut(node) {
                    *place = fresh;
                }
                if let Some(entry) = self.entries_mut(table).get_mut(index) {
                    *entry = Entry::to_node(node).0;
                }
                node
            });
            table = Table::Node(node);
            index = prefix.octet(decided as usize / 8) as usize;
            decided += 8;
        }
        table
    }

    /// The entries of its table that a route covers: first and count.
    fn range(table: Table, prefix: A, len: u8) -> (usize, usize) {
        match table {
            Table::Root => (Self::root_index(prefix), 1 << (ROOT_BITS - len.min(ROOT_BITS))),
            Table::Node(_) => {
                let last = (len.max(1) - 1) as usize / 8;
                (prefix.octet(last) as usize, 1 << ((last + 1) * 8 - len as usize))
            }
        }
    }

    /// Makes `new` of all leaves that `which` chooses, in a range of a table and in everything below it.
    fn paint(
        &mut self,
        table: Table,
        first: usize,
        count: usize,
        new: Entry,
        which: impl Fn(Entry) -> bool + Copy,
    ) {
        let mut below = Vec::new();
        for entry in self.entries_mut(table).iter_mut().skip(first).take(count) {
            match Entry(*entry).node() {
                Some(node) => below.push(node),
                None if which(Entry(*entry)) => *entry = new.0,
                None => (),
            }
        }
        for node in below {
            self.paint(Table::Node(node), 0, 256, new, which);
        }
    }

    /// Frees the nodes of a path, from the deepest on, that no longer hold a route of their own.
    fn prune(&mut self, prefix: A, path: &[(usize, u8)]) {
        for (position, (node, decided)) in path.iter().enumerate().rev() {
            let Some(entries) = self.nodes.get(*node) else { return };
            if entries.0.iter().any(|entry| Entry(*entry).node().is_some() || Entry(*entry).len() > *decided)
            {
                return;
            }
            // Only routes that cover the whole node are left in it, so all of its entries are the same.
            let answer = entries.0[0];
            let (table, index) = match position.checked_sub(1).and_then(|above| path.get(above)) {
                Some((parent, decided)) => {
                    (Table::Node(*parent), prefix.octet(*decided as usize / 8) as usize)
                }
                None => (Table::Root, Self::root_index(prefix)),
            };
            if let Some(entry) = self.entries_mut(table).get_mut(index) {
                *entry = answer;
            }
            self.free.push(*node);
        }
    }
}

impl<A: Address> std::fmt::Debug for Lpm<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map()
            .entries(self.routes.iter().map(|((prefix, len), value)| ((prefix, len), value)))
            .finish()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every route, searched.
    fn naive<A: Address>(routes: &BTreeMap<(A, u8), u16>, address: A) -> Option<u16> {
        let containing = routes.iter().filter(|((prefix, len), _)| address.masked(*len) == *prefix);
        containing.max_by_key(|((_, len), _)| *len).map(|(_, value)| *value)
    }

    /// Runs insertions and removals, then compares lookups of all addresses near the routes, and empties the table.
    fn run<A: Address>(
        ops: Vec<(A, u8, Option<u16>)>,
        mut addresses: Vec<A>,
        near: impl Fn(A, u8) -> Vec<A>,
    ) {
        let mut table = Lpm::new(100_000);
        let mut model = BTreeMap::new();
        for (prefix, len, value) in ops {
            let key = (prefix.masked(len), len);
            match value {
                Some(value) => assert_eq!(table.insert(prefix, len, value), Ok(model.insert(key, value))),
                None => assert_eq!(table.remove(prefix, len), model.remove(&key)),
            }
            assert_eq!(table.get(prefix, len), model.get(&key).copied());
            addresses.extend(near(key.0, len));
        }
        assert_eq!(table.len(), model.len());
        let mut out = vec![None; addresses.len()];
        table.lookup_bulk(&addresses, &mut out);
        let mut phased = vec![None; addresses.len()];
        table.lookup_phased(&addresses, &mut phased);
        assert_eq!(out, phased);
        for (address, bulk) in addresses.iter().zip(out) {
            assert_eq!(table.lookup(*address), naive(&model, *address), "{address:?} in {table:?}");
            assert_eq!(bulk, table.lookup(*address));
        }
        assert_eq!(table.iter().map(|(p, l, v)| ((p, l), v)).collect::<BTreeMap<_, _>>(), model);
        for ((prefix, len), value) in model {
            assert_eq!(table.remove(prefix, len), Some(value));
        }
        assert_eq!(table.nodes(), 0, "an empty table keeps no nodes");
        assert!(table.root.iter().all(|entry| *entry == 0) && table.default.is_none());
    }

    /// The first and last address of a route and those just outside.
    fn near4(prefix: Ipv4Addr, len: u8) -> Vec<Ipv4Addr> {
        let first = prefix.to_bits();
        let last = first | u32::MAX.checked_shr(len.into()).unwrap_or(0);
        [first, last, first.wrapping_sub(1), last.wrapping_add(1)].map(Ipv4Addr::from_bits).to_vec()
    }

    fn near6(prefix: Ipv6Addr, len: u8) -> Vec<Ipv6Addr> {
        let first = prefix.to_bits();
        let last = first | u128::MAX.checked_shr(len.into()).unwrap_or(0);
        [first, last, first.wrapping_sub(1), last.wrapping_add(1)].map(Ipv6Addr::from_bits).to_vec()
    }

    /// Addresses that share beginnings often.
    fn address4() -> impl Strategy<Value = Ipv4Addr> {
        (0_u32..3, 0_u32..3, any::<u32>())
            .prop_map(|(a, b, low)| Ipv4Addr::from_bits((a << 24 | b << 16) ^ (low & 0x8001_83ff)))
    }

    fn address6() -> impl Strategy<Value = Ipv6Addr> {
        (0_u128..3, prop::sample::select(vec![0_u32, 8, 30, 60, 64, 77, 110, 120]), any::<u8>()).prop_map(
            |(high, shift, low)| Ipv6Addr::from_bits(0x2001_0db8 << 96 | high << 80 | (low as u128) << shift),
        )
    }

    proptest! {
        #[test]
        fn ipv4_equals_a_linear_search(
            ops in prop::collection::vec((address4(), 0_u8..=32, prop::option::weighted(0.7, any::<u16>())), 0..80),
            addresses in prop::collection::vec(prop_oneof![address4(), any::<Ipv4Addr>()], 0..40),
        ) {
            run(ops, addresses, near4);
        }

        #[test]
        fn ipv6_equals_a_linear_search(
            ops in prop::collection::vec((address6(), 0_u8..=128, prop::option::weighted(0.7, any::<u16>())), 0..60),
            addresses in prop::collection::vec(prop_oneof![address6(), any::<Ipv6Addr>()], 0..40),
        ) {
            run(ops, addresses, near6);
        }

        /// Removals that hit: prefixes of few addresses, few lengths.
        #[test]
        fn ipv4_survives_churn(
            ops in prop::collection::vec(
                (0_u32..4, prop::sample::select(vec![0_u8, 1, 8, 15, 16, 17, 23, 24, 25, 31, 32]), prop::option::of(0_u16..9)),
                0..200,
            ),
        ) {
            let ops = ops.into_iter().map(|(a, len, value)| (Ipv4Addr::from_bits(0x0a01_0100 + a * 0x81), len, value));
            run(ops.collect(), Vec::new(), near4);
        }
    }

    #[test]
    fn a_large_table_answers_in_phases_as_one_by_one() {
        let mut table = Lpm6::new(100_000);
        let mut addresses = Vec::new();
        let mut state = 1_u128;
        for i in 0..2_000_u16 {
            state = state.wrapping_mul(0x2d99_787f_ee2f_1b2d_9e37_79b9_7f4a_7c15).wrapping_add(1);
            let prefix = Ipv6Addr::from_bits(state >> 20 & u128::MAX >> 12 | 0x2000 << 112);
            let len = 13 + (state >> 100) as u8 % 116;
            table.insert(prefix, len, i).unwrap();
            addresses.extend(near6(prefix.masked(len), len));
        }
        let mut out = vec![None; addresses.len()];
        table.lookup_phased(&addresses, &mut out);
        assert!(addresses.iter().zip(&out).all(|(address, found)| table.lookup(*address) == *found));
        assert!(out.iter().any(Option::is_none) && out.iter().flatten().count() > 2_000);
    }

    #[test]
    fn limits_are_kept_and_refusals_change_nothing() {
        let mut table = Lpm6::new(6);
        let a = "2001:db8::".parse().unwrap();
        assert_eq!(table.insert(a, 129, 1), Err(LpmError::PrefixLength));
        assert_eq!(table.insert(a, 72, 1), Err(LpmError::Full));
        assert_eq!(table.nodes(), 0);
        assert_eq!(table.insert(a, 64, 1), Ok(None));
        assert_eq!(table.nodes(), 6);
        assert_eq!(table.insert("2001:db9::".parse().unwrap(), 40, 2), Err(LpmError::Full));
        assert_eq!(table.insert("2001:db9::".parse().unwrap(), 32, 2), Ok(None));
        assert_eq!(table.insert(a, 64, u16::MAX), Ok(Some(1)));
        assert_eq!(table.lookup("2001:db8::1".parse().unwrap()), Some(u16::MAX));
        assert_eq!(table.remove(a, 60), None);
        assert_eq!(table.remove(a, 64), Some(u16::MAX));
        assert_eq!(table.nodes(), 2, "the /32 keeps the nodes that its neighbour shares");
    }
}
