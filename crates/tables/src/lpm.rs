//! Longest prefix match for IPv4 and IPv6.
//!
//! **Problem.** The next hop of an address is that of the longest route that contains it. A UPF has a handful of routes, or
//! a full table of a million; a lookup should cost little cache in the first case and little DRAM in the second.
//!
//! **Layout.** A multibit trie: a root indexed by the first 16 bits, below it nodes of 256 entries indexed by one octet
//! each. Routes are *pushed to the leaves*: an entry says either the answer or the next node, so a lookup never backtracks. An
//! IPv4 lookup reads one to three entries (routes to /16, to /24, longer). Entries carry the length of the route they came from,
//! which makes insertion and removal touch just the range of the route. The default route is kept aside: a table with nothing else
//! reads one page of zeros that the operating system shares.
//!
//! **IPv6 skips.** An interface's own address is a /128 in its own /64: with a node for each octet, a packet to a host beside
//! it would read fourteen entries. So a node stands only where routes end or part ways, as in a Patricia trie (Morrison, 1968). Whoever
//! gets to one over a gap compares the octets between; where they differ, the node has the answer for that too.
//!
//! **Two roots.** [`Lpm4`] has a root of 16 bits. With one of 24 bits the same trie is DIR-24-8 ([`Dir24`]): it saves a dependent read, and its root has 64 MiB,
//! which are there once per view of the network; traffic to random destinations misses cache and TLB in it even with one route. A UPF has a handful of routes
//! and shares its cache with sessions, so it uses the narrow root. Measured in one run (`examples/cycles.rs`, 105 MiB of third-level cache): with a default route alone
//! 3 cycles with the narrow root and 11 to 14 with the wide one, with ten routes 6 and 3, with 10,000 equal, with a million 15 and 10. `docs/lookups.md` has
//! both with a full table: the wide one is 1.2 to 1.7 times as fast there, and takes 86 MiB instead of 49.
//!
//! **Cost.** 256 KiB of address space (touched where routes are) and 1 KiB per node. A route needs at most two nodes of its
//! own; their number is limited when the table is made.
//!
//! **When not to use it.** For millions of IPv6 host routes: those are exact matches, for [`crate::BulkMap`].

mod copies;

use crate::image;
use crate::lookup::{Lookup, in_phases};
use crate::prefetch::prefetch_slice_at;
use crate::simd::Processor;
use crate::simd::dir24::{self, Routes};
use copies::Tracked;
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
    /// Whether there are enough octets to skip some.
    const SKIPS: bool;
    /// The octet at `index`; zero past the end.
    fn octet(self, index: usize) -> u8;
    /// The address with all but its first `len` bits cleared.
    #[must_use]
    fn masked(self, len: u8) -> Self;
    /// How many bits at the beginning are the same.
    fn common(self, other: Self) -> u8;
    /// Its words, the first octet in the highest bits of the first one.
    fn words(self) -> [u32; 4];
    /// The same addresses, if they are IPv4's.
    fn as_ipv4(_addresses: &[Self]) -> Option<&[Ipv4Addr]> {
        None
    }
}

impl Address for Ipv4Addr {
    const BITS: u8 = 32;
    const SKIPS: bool = false;

    #[inline(always)]
    fn octet(self, index: usize) -> u8 {
        self.octets().get(index).copied().unwrap_or(0)
    }

    fn masked(self, len: u8) -> Self {
        let mask = u32::MAX.checked_shl(32_u32.saturating_sub(len.into())).unwrap_or(0);
        Self::from_bits(self.to_bits() & mask)
    }

    #[inline(always)]
    fn common(self, other: Self) -> u8 {
        (self.to_bits() ^ other.to_bits()).leading_zeros() as u8
    }

    fn words(self) -> [u32; 4] {
        [self.to_bits(), 0, 0, 0]
    }

    fn as_ipv4(addresses: &[Self]) -> Option<&[Ipv4Addr]> {
        Some(addresses)
    }
}

impl Address for Ipv6Addr {
    const BITS: u8 = 128;
    const SKIPS: bool = true;

    #[inline(always)]
    fn octet(self, index: usize) -> u8 {
        self.octets().get(index).copied().unwrap_or(0)
    }

    fn masked(self, len: u8) -> Self {
        let mask = u128::MAX.checked_shl(128_u32.saturating_sub(len.into())).unwrap_or(0);
        Self::from_bits(self.to_bits() & mask)
    }

    fn words(self) -> [u32; 4] {
        [96, 64, 32, 0].map(|shift| (self.to_bits() >> shift) as u32)
    }

    #[inline(always)]
    fn common(self, other: Self) -> u8 {
        (self.to_bits() ^ other.to_bits()).leading_zeros() as u8
    }
}

/// A table entry: nothing, `1 << 24 | route length << 16 | value`, or `1 << 31 | node`, with `1 << 30` where octets between are
/// still to be compared.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Entry(pub u32);

impl Entry {
    const NOTHING: Self = Self(0);
    const LEAF: u32 = 1 << 24;
    const NODE: u32 = 1 << 31;
    const GAP: u32 = 1 << 30;

    const fn leaf(len: u8, value: u16) -> Self {
        Self(Self::LEAF | (len as u32) << 16 | value as u32)
    }

    const fn to_node(node: usize, gap: bool) -> Self {
        Self(Self::NODE | if gap { Self::GAP } else { 0 } | node as u32)
    }

    #[inline(always)]
    pub const fn node(self) -> Option<usize> {
        if self.0 & Self::NODE != 0 { Some((self.0 & !(Self::NODE | Self::GAP)) as usize) } else { None }
    }

    #[inline(always)]
    const fn has_gap(self) -> bool {
        self.0 & Self::GAP != 0
    }

    /// The gap was crossed.
    const fn crossed(self) -> Self {
        Self(self.0 & !Self::GAP)
    }

    #[inline(always)]
    pub const fn value(self) -> Option<u16> {
        if self.0 & Self::LEAF != 0 { Some(self.0 as u16) } else { None }
    }

    /// The length of the route that a leaf came from; 0 for nothing (the default route isn't pushed).
    const fn len(self) -> u8 {
        (self.0 >> 16) as u8
    }
}

#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Node(pub [u32; 256]);

/// Where a node stands.
#[derive(Clone, Copy, Debug)]
struct Place<A> {
    /// What the addresses below it begin with, and so many bits of it.
    prefix: A,
    decided: u8,
    /// What the entry that leads here would say without it: the answer for addresses that begin differently.
    otherwise: Entry,
}

/// Where a table of entries is: the root, or a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Table {
    Root,
    Node(usize),
}

/// Nodes from which on they are worth large pages.
const LARGE: usize = 4096;
/// Nodes that a third-level cache holds.
const CACHED: usize = 16_384;

/// A look-up between its phases. It stays valid if routes change: then it begins anew.
#[derive(Clone, Copy, Default, Debug)]
pub struct LpmProbe {
    /// Where it is; nothing before the root's entry was read.
    entry: Entry,
    /// The octet that decides next; 0 before the root's entry was read.
    octet: u8,
    /// [`Lpm::changes`] when it began.
    changes: u32,
}

/// IPv4 routes; see the module's documentation.
pub type Lpm4 = Lpm<Ipv4Addr>;
/// IPv4 routes by the hundred thousand, as DIR-24-8: a root of 64 MiB; see the module's documentation.
pub type Dir24 = Lpm<Ipv4Addr, 24>;
/// IPv6 routes; see the module's documentation.
pub type Lpm6 = Lpm<Ipv6Addr>;

/// A longest-prefix-match table from prefixes of `A` to 16-bit values (next-hop numbers); see the module's documentation.
///
/// ```
/// use tables::{Lookup, Lpm4};
/// let mut routes = Lpm4::new(1000);
/// routes.insert("10.0.0.0".parse()?, 8, 1)?;
/// routes.insert("10.1.2.0".parse()?, 24, 2)?;
/// assert_eq!(routes.lookup(&"10.1.2.3".parse()?), Some(2));
/// assert_eq!(routes.lookup(&"10.1.3.3".parse()?), Some(1));
/// assert_eq!(routes.lookup(&"11.1.2.3".parse()?), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Lpm<A, const ROOT: u8 = 16> {
    /// Entries by the first 16 bits; zeroed lazily by the operating system.
    root: Vec<u32>,
    nodes: Vec<Node>,
    /// Of each node.
    places: Vec<Place<A>>,
    /// Nodes not in use.
    free: Vec<usize>,
    max_nodes: usize,
    default: Option<u16>,
    routes: BTreeMap<(A, u8), u16>,
    /// How often it was changed. Nodes are used again: a look-up that began before must not go on.
    changes: u32,
    processor: Processor,
    /// What devices with a copy are told.
    tracked: Option<Box<Tracked>>,
}

impl<A: Address, const ROOT: u8> Lpm<A, ROOT> {
    /// The first octet that the root doesn't decide.
    const BELOW_ROOT: u8 = {
        assert!(ROOT == 16 || ROOT == 24, "the root decides two octets or three");
        ROOT / 8
    };

    /// An empty table of at most `max_nodes` nodes of 1 KiB.
    pub fn new(max_nodes: usize) -> Self {
        Self {
            root: Self::root(),
            nodes: Vec::new(),
            places: Vec::new(),
            free: Vec::new(),
            max_nodes: max_nodes.min(Entry::GAP as usize),
            default: None,
            routes: BTreeMap::new(),
            changes: 0,
            processor: Processor::best(),
            tracked: None,
        }
    }

    /// A root of zeros. The narrow one is zeroed by the system as it is touched; of the wide one all is going to be read, and so it is on large pages.
    fn root() -> Vec<u32> {
        if ROOT == 24
            && let Some(mut root) = image::on_large_pages(1 << ROOT)
        {
            root.resize(1 << ROOT, 0);
            return root;
        }
        vec![0; 1 << ROOT]
    }

    /// Looks bulks up with the instructions of this processor, or of the best below it that is here, if the table is one of those that use vectors
    /// ([`Dir24`]).
    #[must_use]
    pub fn with_processor(mut self, processor: Processor) -> Self {
        self.processor = processor;
        self
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

    /// Bytes of memory that look-ups may read, and what changes need beside them (of the list of routes an estimate).
    pub fn memory(&self) -> usize {
        let nodes =
            self.nodes.capacity() * size_of::<Node>() + self.places.capacity() * size_of::<Place<A>>();
        // A B-tree's nodes are two thirds full.
        let routes = self.routes.len() * (size_of::<(A, u8)>() + size_of::<u16>()) * 3 / 2;
        size_of::<Self>() + self.root.capacity() * size_of::<u32>() + nodes + routes
    }

    /// The value of exactly this route.
    pub fn get(&self, prefix: A, len: u8) -> Option<u16> {
        self.routes.get(&(prefix.masked(len), len)).copied()
    }

    /// Adds or replaces the route to the first `len` bits of `prefix`; the value that it had before.
    pub fn insert(&mut self, prefix: A, len: u8, value: u16) -> Result<Option<u16>, LpmError> {
        if len > A::BITS {
            return Err(LpmError::PrefixLength);
        }
        self.changes = self.changes.wrapping_add(1);
        let prefix = prefix.masked(len);
        if len == 0 {
            self.default = Some(value);
            self.note(Table::Root, 0, 1);
        } else {
            let table = self.open(prefix, len).ok_or(LpmError::Full)?;
            let (first, count) = Self::range(table, prefix, len);
            self.paint(table, first, count, Entry::leaf(len, value), |leaf| leaf.len() <= len);
        }
        Ok(self.routes.insert((prefix, len), value))
    }

    /// Removes a route; the value that it had.
    pub fn remove(&mut self, prefix: A, len: u8) -> Option<u16> {
        let prefix = prefix.masked(len);
        let value = self.routes.remove(&(prefix, len))?;
        self.changes = self.changes.wrapping_add(1);
        if len == 0 {
            self.default = None;
            self.note(Table::Root, 0, 1);
            return Some(value);
        }
        let covering = (1..len).rev().find_map(|shorter| {
            self.routes.get(&(prefix.masked(shorter), shorter)).map(|value| Entry::leaf(shorter, *value))
        });
        let path = self.path(prefix, len);
        let table = path.last().map_or(Table::Root, |node| Table::Node(*node));
        let (first, count) = Self::range(table, prefix, len);
        self.paint(table, first, count, covering.unwrap_or(Entry::NOTHING), |leaf| leaf.len() == len);
        self.prune(&path);
        Some(value)
    }

    #[inline(always)]
    fn root_index(address: A) -> usize {
        (0..Self::BELOW_ROOT as usize).fold(0, |index, at| index << 8 | address.octet(at) as usize)
    }

    #[inline(always)]
    fn root_entry(&self, address: A) -> Entry {
        Entry(self.root.get(Self::root_index(address)).copied().unwrap_or(0))
    }

    #[inline(always)]
    fn node_entry(&self, node: usize, octet: u8) -> Entry {
        Entry(self.nodes.get(node).map_or(0, |node| node.0[octet as usize]))
    }

    /// Prefetches what the next step from `entry` reads; whether it leads anywhere. Without a branch on that: it can't be predicted.
    #[inline(always)]
    fn prefetch_next(&self, entry: Entry, octet: u8) -> bool {
        let node = (entry.0 & !(Entry::NODE | Entry::GAP)) as usize;
        if A::SKIPS && entry.has_gap() {
            prefetch_slice_at(&self.places, node);
        } else if let Some(node) = self.nodes.get(node) {
            prefetch_slice_at(&node.0, octet as usize);
        }
        entry.node().is_some()
    }

    /// Over the gap before a node, or through it by the address's octet: what is there, and which octet decides then.
    #[inline(always)]
    fn next_entry(&self, entry: Entry, node: usize, octet: u8, address: A) -> (Entry, u8) {
        if !A::SKIPS || !entry.has_gap() {
            return (self.node_entry(node, address.octet(octet as usize)), octet + 1);
        }
        match self.places.get(node) {
            Some(place) if address.common(place.prefix) >= place.decided => {
                (entry.crossed(), place.decided / 8)
            }
            place => (place.map_or(Entry::NOTHING, |place| place.otherwise), octet),
        }
    }

    fn entries_mut(&mut self, table: Table) -> &mut [u32] {
        match table {
            Table::Root => &mut self.root,
            Table::Node(node) => self.nodes.get_mut(node).map_or(&mut [], |node| &mut node.0),
        }
    }

    /// Bits that are decided when one of a table's entries is chosen.
    fn decides(&self, table: Table) -> u8 {
        match table {
            Table::Root => ROOT,
            Table::Node(node) => self.places.get(node).map_or(A::BITS, |place| place.decided + 8),
        }
    }

    /// Bits that a table decides whose entries are routes of this length.
    const fn level(len: u8) -> u8 {
        if len <= ROOT { ROOT } else { len.div_ceil(8) * 8 }
    }

    /// Which of a table's entries is an address's.
    fn index(&self, table: Table, address: A) -> usize {
        match table {
            Table::Root => Self::root_index(address),
            Table::Node(_) => address.octet(self.decides(table) as usize / 8 - 1) as usize,
        }
    }

    /// The nodes on the way to the table that holds routes of this length, itself included, as far as they are there: none for up
    /// to /16.
    fn path(&self, prefix: A, len: u8) -> Vec<usize> {
        let mut path = Vec::new();
        let mut entry = self.root_entry(prefix);
        while let Some(node) = entry.node()
            && let Some(place) = self.places.get(node)
            && place.decided < Self::level(len)
            && prefix.common(place.prefix) >= place.decided
        {
            path.push(node);
            entry = self.node_entry(node, prefix.octet(place.decided as usize / 8));
        }
        path
    }

    /// The table that holds a route's last bit, made where it isn't there yet; `None`, and nothing changed, if there are too many.
    fn open(&mut self, prefix: A, len: u8) -> Option<Table> {
        let level = Self::level(len);
        let mut table = self.path(prefix, len).last().map_or(Table::Root, |node| Table::Node(*node));
        if self.nodes() + self.missing(table, prefix, level) > self.max_nodes {
            return None;
        }
        while self.decides(table) < level {
            let (decided, otherwise, below) = self.next(table, prefix, level);
            let fresh = self.add(Place { prefix: prefix.masked(decided), decided, otherwise });
            if let Some(node) = below {
                self.lead(Table::Node(fresh), node);
            }
            self.lead(table, fresh);
            table = Table::Node(fresh);
        }
        Some(table)
    }

    /// The node that is missing below a table on the way to a level: the bits decided before it, what its entry says without it,
    /// and which node comes below it from now on.
    fn next(&self, table: Table, prefix: A, level: u8) -> (u8, Entry, Option<usize>) {
        let index = self.index(table, prefix);
        let entry = match table {
            Table::Root => self.root_entry(prefix),
            Table::Node(node) => self.node_entry(node, index as u8),
        };
        let below = entry.node();
        match below.and_then(|node| self.places.get(node)) {
            // Where their ways part, unless the route ends before.
            Some(place) => {
                let parts = place.prefix.common(prefix) / 8 * 8;
                (parts.min(place.decided).min(level - 8), place.otherwise, below)
            }
            None if A::SKIPS => (level - 8, entry, None),
            None => (self.decides(table), entry, None),
        }
    }

    /// How many nodes are missing below a table on the way to a level.
    fn missing(&self, table: Table, prefix: A, level: u8) -> usize {
        if self.decides(table) >= level {
            return 0;
        }
        let (decided, ..) = self.next(table, prefix, level);
        let rest = (level - 8 - decided) as usize / 8;
        1 + if A::SKIPS { rest.min(1) } else { rest }
    }

    /// A node all of whose entries say what its own would say without it.
    fn add(&mut self, place: Place<A>) -> usize {
        let fresh = Node([place.otherwise.0; 256]);
        let node = self.free.pop().unwrap_or(self.nodes.len());
        if let (Some(old), Some(there)) = (self.nodes.get_mut(node), self.places.get_mut(node)) {
            (*old, *there) = (fresh, place);
        } else {
            self.widen();
            self.nodes.push(fresh);
            self.places.push(place);
        }
        self.note(Table::Node(node), 0, 256);
        self.note_place(node);
        node
    }

    /// Makes room for more nodes, many of them on large pages: where there are many, each look-up would miss the TLB as well.
    fn widen(&mut self) {
        let nodes = self.nodes.len();
        if nodes == self.nodes.capacity()
            && nodes >= LARGE
            && let Some(mut wider) = image::on_large_pages(2 * nodes)
        {
            wider.append(&mut self.nodes);
            self.nodes = wider;
        }
    }

    /// Makes a table's entry lead to a node.
    fn lead(&mut self, table: Table, node: usize) {
        let Some(Place { prefix, decided, .. }) = self.places.get(node).copied() else { return };
        let (index, gap) = (self.index(table, prefix), decided > self.decides(table));
        if let Some(entry) = self.entries_mut(table).get_mut(index) {
            *entry = Entry::to_node(node, gap).0;
        }
        self.note(table, index, 1);
    }

    /// The entries of its table that a route covers: first and count.
    fn range(table: Table, prefix: A, len: u8) -> (usize, usize) {
        match table {
            Table::Root => (Self::root_index(prefix), 1 << (ROOT - len.min(ROOT))),
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
        self.note(table, first, count);
        for entry in self.entries_mut(table).iter_mut().skip(first).take(count) {
            match Entry(*entry).node() {
                Some(node) => below.push(node),
                None if which(Entry(*entry)) => *entry = new.0,
                None => (),
            }
        }
        for node in below {
            if let Some(place) = self.places.get_mut(node).filter(|place| which(place.otherwise)) {
                place.otherwise = new;
                self.note_place(node);
            }
            self.paint(Table::Node(node), 0, 256, new, which);
        }
    }

    /// Frees the nodes of a path, from the deepest on, that no longer hold a route of their own, nor a parting of ways.
    fn prune(&mut self, path: &[usize]) {
        for (position, node) in path.iter().enumerate().rev() {
            let (Some(entries), Some(place)) = (self.nodes.get(*node), self.places.get(*node).copied())
            else {
                return;
            };
            let mut below = None;
            for entry in entries.0.map(Entry) {
                let child = entry.node().and_then(|child| self.places.get(child));
                // Where a route covers a node below, that one knows it.
                if child.map_or(entry, |place| place.otherwise).len() > place.decided {
                    return;
                }
                if child.is_some() && (!A::SKIPS || below.replace(entry).is_some()) {
                    return;
                }
            }
            let parent = position.checked_sub(1).and_then(|above| path.get(above));
            let parent = parent.map_or(Table::Root, |node| Table::Node(*node));
            if let Some(child) = below.and_then(Entry::node) {
                self.lead(parent, child);
            } else {
                let index = self.index(parent, place.prefix);
                if let Some(entry) = self.entries_mut(parent).get_mut(index) {
                    *entry = place.otherwise.0;
                }
                self.note(parent, index, 1);
            }
            self.free.push(*node);
        }
    }
}

/// The value of the longest route that contains the address: a phase for the root, and for each node and each gap on the way.
impl<A: Address, const ROOT: u8> Lookup for Lpm<A, ROOT> {
    type Key = A;
    type Value = u16;
    type Probe = LpmProbe;

    #[inline(always)]
    fn prepare(&self, address: &A) -> LpmProbe {
        prefetch_slice_at(&self.root, Self::root_index(*address));
        LpmProbe { entry: Entry::NOTHING, octet: 0, changes: self.changes }
    }

    #[inline(always)]
    fn step(&self, probe: &mut LpmProbe, address: &A) -> bool {
        if probe.changes != self.changes {
            *probe = self.prepare(address);
        }
        (probe.entry, probe.octet) = match probe.entry.node() {
            Some(node) => self.next_entry(probe.entry, node, probe.octet, *address),
            None if probe.octet == 0 => (self.root_entry(*address), Self::BELOW_ROOT),
            None => return false,
        };
        self.prefetch_next(probe.entry, address.octet(probe.octet as usize))
    }

    #[inline(always)]
    fn finish(&self, probe: LpmProbe, address: &A) -> Option<u16> {
        let LpmProbe { mut entry, mut octet, changes } = probe;
        if octet == 0 || changes != self.changes {
            (entry, octet) = (self.root_entry(*address), Self::BELOW_ROOT);
        }
        while let Some(node) = entry.node() {
            (entry, octet) = self.next_entry(entry, node, octet, *address);
        }
        entry.value().or(self.default)
    }

    #[inline(always)]
    fn is_cached(&self) -> bool {
        self.nodes.len() <= CACHED
    }

    #[inline]
    fn lookup_bulk(&self, keys: &[A], out: &mut [Option<u16>]) {
        if ROOT == 24
            && let Some(addresses) = A::as_ipv4(keys)
        {
            let routes = Routes { root: &self.root, nodes: &self.nodes, default: self.default };
            dir24::bulk(self.processor, routes, addresses, out);
        } else if self.is_cached() {
            for (key, out) in keys.iter().zip(out) {
                *out = self.lookup(key);
            }
        } else {
            in_phases(self, keys, out);
        }
    }
}

impl<A: Address, const ROOT: u8> std::fmt::Debug for Lpm<A, ROOT> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map()
            .entries(self.routes.iter().map(|((prefix, len), value)| ((prefix, len), value)))
            .finish()
    }
}

#[cfg(test)]
mod tests;
