//! Tables as flat words, for devices that keep a copy.
//!
//! **Problem.** An accelerator looks keys up in a copy of a table, in memory of its own. The copy needs a layout that other languages can
//! read, and it must follow the table while look-ups run on it, without being copied whole for each change.
//!
//! **Model.** An [`Image`] says what it is ([`Layout`]), lends its words region by region, and notes which lines of 64 bytes have changed
//! since the last time ([`Image::changes`]). The owner of the table copies these from time to time. All words are 32 bits in the
//! processor's order (little-endian on all that have such devices), and a region is a multiple of a line.
//!
//! **While a copy follows.** A line may reach the copy before or after another one. Whatever a device *finds* was there at some moment; but an
//! entry that moves may be at neither of its two places for a moment, or a route's node be filled a moment after it is led to. So the owner
//! numbers its copies ([`Changes::generation`]): an answer that was worked out while lines were on their way is asked for once more, in memory
//! or on the device. That is what [`crate::conformance::Moment::Between`] expects.
//!
//! # The hash
//!
//! Keys are `N` words (4 or 10). A table draws `N + 3` words from its seed: `add[0..N]` and `round[0..3]`. All sums are modulo 2^32, but those of
//! products, which are modulo 2^64; products are of two words of 32 bits and have 64.
//!
//! ```text
//! s = sum over even i of (key[i] + add[i]) * (key[i+1] + add[i+1])
//! a = low 32 bits of s,  b = high 32 bits of s
//! b ^= fold(a + round[0], 0x9e3779b1)
//! a ^= fold(b + round[1], 0x85ebca77)
//! b ^= fold(a + round[2], 0xc2b2ae3d)        where fold(x, m) = low 32 bits of x*m  ^  high 32 bits of x*m
//! scale(h, n) = high 32 bits of h * n
//! ```
//!
//! The sum is NH (Black and others, UMAC, 1999): without `add`, two keys agree in it with a probability of 2^-32, whoever chose them. The rounds are
//! a permutation of the 64 bits and make both halves depend on all of them.
//!
//! # `Kind::Flow4`, `Kind::Link`: entries in lines
//!
//! Parameters: `[0]` buckets *n*, `[1..5]` `add`, `[5..8]` `round`, `[8..12]` `mask`. Region 0: *n* lines. A line is a bucket of four slots, slot *i* is
//! words `4i` to `4i+3`:
//!
//! | word | `Flow4` | `mask` | `Link` | `mask` |
//! |---|---|---|---|---|
//! | 0 | source address (first octet in the highest bits) | ffffffff | lower 32 bits of the MAC address (octets 3 to 6) | ffffffff |
//! | 1 | destination address | ffffffff | VLAN in bits 16 to 27, upper 16 bits of the MAC address (octets 1 and 2) below | ffffffff |
//! | 2 | source port in bits 16 to 31, destination port below | ffffffff | bit 31: static; below: when it was last seen, in units of 2^30 ns | 0 |
//! | 3 | bits 8 to 31: value + 1, bits 0 to 7: protocol | ff | bits 8 to 31: port + 1, bits 0 to 7: 0 | ff |
//!
//! A slot whose bits 8 to 31 of word 3 are zero is vacant. The key's words are those under the mask, all else zero. Its *home* is bucket
//! `scale(a, n)`, its other bucket `scale(b, n)` (which may be the same one); it is in one of the two, more often at home.
//!
//! # `Kind::Flow6`: tags and records
//!
//! Parameters: `[0]` buckets *n*, `[1..11]` `add`, `[11..14]` `round`. The key's words: 0 to 3 the source address (first octet in the
//! highest bits of word 0), 4 to 7 the destination, 8 the ports (source above), 9 the protocol.
//!
//! Region 0: *n* lines, a bucket of eight slots each. Words 0 to 7 are the slots' tags, words 8 to 15 their records' numbers + 1, 0 where the slot is
//! vacant. The *tag* is `b`, the home bucket `scale(a, n)`, the other one `scale(b, n) - home`, plus *n* if that is negative.
//!
//! Region 1: records, a line each: words 0 to 9 the key, 10 the value, 11 to 15 zero. A tag that agrees only says where to compare the key;
//! several in a bucket may agree. (A record that no slot names is vacant; what it holds means nothing.)
//!
//! # `Kind::Lpm4`, `Kind::Lpm6`: routes
//!
//! Parameters: `[0]` bits *r* that the root decides (16 or 24), `[1]` the default route as an entry.
//!
//! Region 0: the root, 2^*r* entries of a word, by the first *r* bits of the address. Region 1: nodes of 256 entries (16 lines each), entry *i* of node *k* is word
//! `256k + i`. Region 2 (`Lpm6` alone): where the nodes stand, eight words each: 0 to 3 the prefix (first octet in the highest bits of word
//! 0), 4 the bits of it that are decided before the node (a multiple of 8), 5 the entry that stands for those who part before, 6 and 7 zero.
//!
//! | bit of an entry | |
//! |---|---|
//! | 31 | it leads to a node, whose number is in bits 0 to 29 |
//! | 30 | with bit 31: octets between are still to be compared |
//! | 24 | without bit 31: an answer: bits 16 to 23 the route's length, 0 to 15 the value |
//!
//! Zero says nothing: the default route answers, if there is one. An IPv4 look-up reads the root's entry and then, octet by octet, the
//! nodes that it leads to: with *r* = 24 (DIR-24-8) at most one, with 16 at most two. An IPv6 look-up with *d* bits decided reads the
//! node's entry by octet *d*/8 and has *d* + 8; on an entry with bit 30 it compares its first `decided` bits with the node's prefix: if they
//! agree it goes on with *d* = `decided`, and otherwise word 5 is the entry.
//!
//! # `Kind::Memo`: what was last heard
//!
//! Parameters: `[0]` lines *n*, a power of two. The key's words: 0 the lower half of the key, 1 the upper half, its mark. (Keys are hashes: they are
//! not hashed once more.)
//!
//! Region 0: *n* lines of eight places each. The key's line is word 0 of the key modulo *n*.
//!
//! | word of a line | |
//! |---|---|
//! | 0 to 7 | the mark of place 0 to 7 |
//! | 8 to 15 | its value plus one, modulo 2^32; 0 where the place is vacant, whatever its mark is |
//!
//! The first place that isn't vacant and has the key's mark answers. The newest entry is in place 0. While a line changes, a copy may have a mark beside
//! another one's value: who asks a memo has to verify what it says in any case.
//!
//! **When not to use it.** For look-ups in memory: the tables' own are the same, and vectorised.

use crate::hash::Full;
use crate::prefetch::pages;

/// A line of memory, as words.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C, align(64))]
pub struct Line(pub [u32; 16]);

/// Words of a line.
pub const LINE: usize = 16;

/// What kind of table it is an image of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Kind {
    /// IPv4 flows by their 5-tuple ([`crate::classify::Flows4`]).
    Flow4 = 1,
    /// IPv6 flows by their 5-tuple ([`crate::classify::Flows6`]).
    Flow6 = 2,
    /// MAC addresses ([`crate::l2::L2`]).
    Link = 3,
    /// IPv4 routes ([`crate::Lpm4`], [`crate::Dir24`]).
    Lpm4 = 4,
    /// IPv6 routes ([`crate::Lpm6`]).
    Lpm6 = 5,
    /// What was last heard of a key ([`crate::Memo`]).
    Memo = 6,
}

/// How to read an image; see the module's documentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Layout {
    /// Which of the layouts.
    pub kind: Kind,
    /// Its parameters.
    pub parameters: [u32; 16],
}

/// A table that devices can have copies of.
pub trait Image {
    /// How to read the words. Parameters change with what [`Self::changes`] tells.
    fn layout(&self) -> Layout;
    /// The words of each region, in order; a region may grow, and never shrinks.
    fn regions(&self) -> Vec<&[u32]>;
    /// From now on changes are noted, at most `limit` lines between two calls of [`Self::changes`]. The first of these says that all has changed.
    fn track(&mut self, limit: usize);
    /// Moves what has changed since the last call into `into`. Without [`Self::track`], everything has.
    fn changes(&mut self, into: &mut Changes);
}

/// What has changed in a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Counts the calls that told of a change. A copy of this generation is one of the table at that call.
    pub generation: u64,
    /// Everything has to be copied.
    pub all: bool,
    /// Lines that have changed (if not everything has): region, and number of the line in it.
    pub lines: Vec<(u32, u32)>,
}

impl Changes {
    /// Whether a copy has anything to do.
    pub fn is_empty(&self) -> bool {
        !self.all && self.lines.is_empty()
    }
}

/// The lines of one table that have changed. A line is noted once, however often it is written to.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    /// A bit for each line of each region.
    noted: Vec<Vec<u64>>,
    lines: Vec<(u32, u32)>,
    limit: usize,
    all: bool,
    generation: u64,
}

impl Journal {
    pub(crate) fn new(limit: usize) -> Self {
        Self { noted: Vec::new(), lines: Vec::new(), limit, all: true, generation: 0 }
    }

    /// Notes that a line changes.
    pub(crate) fn note(&mut self, region: usize, line: usize) {
        if self.all {
            return;
        }
        if self.lines.len() >= self.limit {
            self.forget();
            self.all = true;
            return;
        }
        if self.noted.len() <= region {
            self.noted.resize_with(region + 1, Vec::new);
        }
        let Some(bits) = self.noted.get_mut(region) else { return };
        if bits.len() <= line / 64 {
            bits.resize(line / 64 + 1, 0);
        }
        let Some(word) = bits.get_mut(line / 64) else { return };
        if *word >> (line % 64) & 1 == 0 {
            *word |= 1 << (line % 64);
            self.lines.push((region as u32, line as u32));
        }
    }

    fn forget(&mut self) {
        for (region, line) in self.lines.drain(..) {
            let bits = self.noted.get_mut(region as usize);
            if let Some(word) = bits.and_then(|bits| bits.get_mut(line as usize / 64)) {
                *word = 0;
            }
        }
    }

    fn take(&mut self, into: &mut Changes) {
        into.lines.clear();
        into.lines.extend_from_slice(&self.lines);
        into.all = self.all;
        if !into.is_empty() {
            self.generation += 1;
        }
        into.generation = self.generation;
        self.forget();
        self.all = false;
    }
}

/// As [`Image::changes`], of a table with or without a journal.
pub(crate) fn take(journal: Option<&mut Journal>, into: &mut Changes) {
    match journal {
        Some(journal) => journal.take(into),
        None => *into = Changes { generation: into.generation.wrapping_add(1), all: true, lines: Vec::new() },
    }
}

/// Room for `count` elements, on pages of 2 MB where the system has them; nothing where it has no memory.
pub fn on_large_pages<T>(count: usize) -> Option<Vec<T>> {
    let mut room = Vec::new();
    room.try_reserve_exact(count).ok()?;
    pages::huge(room.spare_capacity_mut());
    Some(room)
}

/// `count` lines of zeros, likewise.
pub(crate) fn zeroed(count: usize) -> Result<Vec<Line>, Full> {
    let mut lines = on_large_pages(count).ok_or(Full)?;
    lines.resize(count, Line::default());
    Ok(lines)
}

/// A copy that follows a table, in memory: what a device does, for tests, and for those who write one.
#[derive(Clone, Debug, Default)]
pub struct Replica {
    /// The words of each region.
    pub regions: Vec<Vec<u32>>,
    /// How to read them.
    pub layout: Option<Layout>,
    /// Of which generation it is.
    pub generation: u64,
    /// Lines that were copied one by one.
    pub copied: u64,
    changes: Changes,
}

impl Replica {
    /// Brings the copy up to date; whether that took all of the table.
    pub fn follow(&mut self, image: &mut impl Image) -> bool {
        image.changes(&mut self.changes);
        self.layout = Some(image.layout());
        let regions = image.regions();
        self.generation = self.changes.generation;
        if self.changes.all {
            self.regions = regions.iter().map(|words| words.to_vec()).collect();
            return true;
        }
        self.regions.resize_with(regions.len(), Vec::new);
        for (own, words) in self.regions.iter_mut().zip(&regions) {
            own.resize(words.len(), 0);
        }
        for (region, line) in &self.changes.lines {
            let range = *line as usize * LINE..(*line as usize + 1) * LINE;
            let from = regions.get(*region as usize).and_then(|words| words.get(range.clone()));
            let to = self.regions.get_mut(*region as usize).and_then(|words| words.get_mut(range));
            if let (Some(from), Some(to)) = (from, to) {
                to.copy_from_slice(from);
                self.copied += 1;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(journal: &mut Journal) -> Changes {
        let mut changes = Changes::default();
        take(Some(journal), &mut changes);
        changes
    }

    #[test]
    fn a_journal_notes_each_line_once_and_gives_up_at_its_limit() {
        let mut journal = Journal::new(3);
        journal.note(0, 7);
        assert_eq!(taken(&mut journal), Changes { generation: 1, all: true, lines: vec![] });
        assert_eq!(taken(&mut journal), Changes { generation: 1, all: false, lines: vec![] });
        for line in [7, 7, 100, 7] {
            journal.note(0, line);
        }
        journal.note(2, 7);
        let lines = vec![(0, 7), (0, 100), (2, 7)];
        assert_eq!(taken(&mut journal), Changes { generation: 2, all: false, lines });
        assert!(taken(&mut journal).is_empty());
        for line in 0..4 {
            journal.note(1, line);
        }
        assert_eq!(taken(&mut journal), Changes { generation: 3, all: true, lines: vec![] });
        journal.note(1, 2);
        assert_eq!(taken(&mut journal), Changes { generation: 4, all: false, lines: vec![(1, 2)] });
        let mut changes = Changes::default();
        take(None, &mut changes);
        assert!(changes.all && changes.generation == 1);
    }
}
