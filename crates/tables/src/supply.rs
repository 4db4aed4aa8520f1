//! Memory for tables that grow, written to before they need it.
//!
//! **Problem.** The system gives memory when a page is first written to, and clears it first: a page of 2 MiB takes it 60 to 150 us, in the
//! midst of whatever wrote there. A flow table that grows takes such memory again and again. It can't be cut in pieces, only be had earlier, by
//! somebody whom no packet waits for.
//!
//! **Model.** What a table takes next is known long before: a chunk of lines and timers when the last one is full, an array of buckets when
//! the index has grown into the one it has. Each table that has *joined* a supply *claims* these two. The supply asks for as much as
//! is claimed, as far as its budget reaches ([`Supply::wish`], smaller pieces first: their tables are the ones that lag behind); somebody on
//! another thread makes it ([`Wish::make`]), and brings it ([`Supply::stock`]). A table that needs a piece takes it from there, or,
//! if it isn't there, takes fresh memory itself as a table without a supply does. What is in a table never depends on which of
//! the two it was.
//!
//! **Bounds.** What lies in stock and what is being made are within the budget. A piece that nobody claims any more is let go.
//!
//! **Cost.** Nothing for a packet. An insertion looks whether its chunk is full, which it does anyhow.
//!
//! **When not to use it.** Where tables don't grow while packets wait, or all of their memory was taken at the start
//! ([`crate::FlowTable::reserve`]).

use crate::chunks::touched;
use crate::dial::Link;
use crate::flow::Entry;
use crate::hash::IndexBucket;

/// Logarithms of lengths that pieces have, from the least that is worth an order: a page of lines.
const LEAST: u8 = 6;
/// And the end of them.
const END: u8 = 32;

/// Two kinds of pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A chunk of lines, and one of as many timers.
    Chunk,
    /// An array of the index.
    Array,
}

const KINDS: [Kind; 2] = [Kind::Chunk, Kind::Array];

/// What a table takes next: logarithms of lengths, 0 for nothing that could be had here.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Claim {
    chunk: u8,
    array: u8,
}

impl Claim {
    /// Of a chunk of so many lines, and of an array of so many buckets.
    pub fn new(chunk: Option<usize>, array: Option<usize>) -> Self {
        let class = |length: Option<usize>| length.and_then(class).unwrap_or(0);
        Self { chunk: class(chunk), array: class(array) }
    }
}

/// The class of a piece's length, if such pieces are made.
fn class(length: usize) -> Option<u8> {
    let class = length.checked_ilog2()? as u8;
    (length.is_power_of_two() && (LEAST..END).contains(&class)).then_some(class)
}

/// An order for a piece of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wish {
    kind: Kind,
    class: u8,
}

impl Wish {
    const fn length(self) -> usize {
        1 << self.class
    }

    /// Takes the memory and writes to each page of it. Where there is none to be had the piece is empty, and says so to the supply.
    pub fn make<K, V>(self) -> Piece<K, V> {
        let length = self.length();
        let content = match self.kind {
            Kind::Chunk => Content::Chunk(touched(length), touched(length)),
            Kind::Array => Content::Array(touched(length)),
        };
        Piece { wish: self, content }
    }
}

/// A piece of memory that was written to, for the supply that wished for it.
#[derive(Debug)]
pub struct Piece<K, V> {
    wish: Wish,
    content: Content<K, V>,
}

#[derive(Debug)]
enum Content<K, V> {
    Chunk(Vec<Entry<K, V>>, Vec<Link>),
    Array(Vec<IndexBucket>),
}

/// Lines, and as many timers.
type Chunk<K, V> = (Vec<Entry<K, V>>, Vec<Link>);

impl<K, V> Piece<K, V> {
    /// Whether there was memory for it.
    fn is_whole(&self) -> bool {
        let length = self.wish.length();
        match &self.content {
            Content::Chunk(lines, timers) => lines.capacity() >= length && timers.capacity() >= length,
            Content::Array(buckets) => buckets.capacity() >= length,
        }
    }
}

/// Pieces of one kind and length.
#[derive(Debug)]
struct Shelf<K, V> {
    /// Tables that take one next.
    claimed: u32,
    /// That are being made.
    ordered: u32,
    stock: Vec<Content<K, V>>,
}

counters::counters! {
    /// What became of what tables needed.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct SupplyCounters {
        /// Pieces of memory that were ready when a table grew.
        pub supplied: u64 = "ready", Counter;
        /// Pieces of memory that were not: a packet waited until the system had found it.
        pub missed: u64 = "missed", Counter;
    }
}

/// Memory for flow tables of keys `K` and values `V`; see the module's documentation.
#[derive(Debug)]
pub struct Supply<K, V> {
    /// By class, chunks and arrays in turn.
    shelves: Vec<Shelf<K, V>>,
    budget: usize,
    /// Of what is in stock and what is being made.
    bytes: usize,
    counters: SupplyCounters,
}

impl<K, V> Supply<K, V> {
    /// An empty one of at most so many bytes. Without any, nobody joins it.
    pub fn new(budget: usize) -> Self {
        let shelf = || Shelf { claimed: 0, ordered: 0, stock: Vec::new() };
        let shelves = 2 * usize::from(if budget > 0 { END } else { 0 });
        let shelves = std::iter::repeat_with(shelf).take(shelves).collect();
        Self { shelves, budget, bytes: 0, counters: SupplyCounters::default() }
    }

    /// Bytes in stock, and those that are being made.
    pub const fn memory(&self) -> usize {
        self.bytes
    }

    /// What became of what tables needed.
    pub const fn counters(&self) -> SupplyCounters {
        self.counters
    }

    /// The next piece to be made, if there is one: each is told once.
    pub fn wish(&mut self) -> Option<Wish> {
        let room = self.budget.saturating_sub(self.bytes);
        let wishes = (LEAST..END).flat_map(|class| KINDS.map(|kind| Wish { kind, class }));
        for wish in wishes.take_while(|wish| Self::bytes(*wish) <= room) {
            let Some(shelf) = self.shelf(wish) else { break };
            if shelf.stock.len() + (shelf.ordered as usize) < shelf.claimed as usize {
                shelf.ordered += 1;
                self.bytes += Self::bytes(wish);
                return Some(wish);
            }
        }
        None
    }

    /// Takes what was wished for.
    pub fn stock(&mut self, piece: Piece<K, V>) {
        let (wish, is_whole) = (piece.wish, piece.is_whole());
        let Some(shelf) = self.shelf(wish) else { return };
        shelf.ordered = shelf.ordered.saturating_sub(1);
        if is_whole {
            shelf.stock.push(piece.content);
            self.let_go(wish);
        } else {
            self.bytes -= Self::bytes(wish);
        }
    }

    /// A chunk of so many lines with its timers, for a table that claims one.
    pub(crate) fn chunk(&mut self, length: usize) -> Option<Chunk<K, V>> {
        match self.take(Kind::Chunk, length)? {
            Content::Chunk(lines, timers) => Some((lines, timers)),
            Content::Array(_) => None,
        }
    }

    /// An array of so many buckets, likewise.
    pub(crate) fn array(&mut self, length: usize) -> Option<Vec<IndexBucket>> {
        match self.take(Kind::Array, length)? {
            Content::Array(buckets) => Some(buckets),
            Content::Chunk(..) => None,
        }
    }

    fn take(&mut self, kind: Kind, length: usize) -> Option<Content<K, V>> {
        let wish = Wish { kind, class: class(length)? };
        let taken = self.shelf(wish)?.stock.pop();
        if taken.is_some() {
            self.counters.supplied += 1;
            self.bytes -= Self::bytes(wish);
        } else {
            self.counters.missed += 1;
        }
        taken
    }

    /// A table's claim changes.
    pub(crate) fn exchange(&mut self, claim: &mut Claim, next: Claim) {
        if self.shelves.is_empty() {
            return;
        }
        let before = std::mem::replace(claim, next);
        for (kind, former, class) in
            [(Kind::Chunk, before.chunk, next.chunk), (Kind::Array, before.array, next.array)]
        {
            // The new one first: a piece that stays claimed stays.
            if let Some(shelf) = self.shelf(Wish { kind, class }) {
                shelf.claimed += 1;
            }
            let former = Wish { kind, class: former };
            if let Some(shelf) = self.shelf(former) {
                shelf.claimed = shelf.claimed.saturating_sub(1);
                self.let_go(former);
            }
        }
    }

    /// Lets a piece go that nobody claims.
    fn let_go(&mut self, wish: Wish) {
        if let Some(shelf) = self.shelf(wish)
            && shelf.stock.len() > shelf.claimed as usize
        {
            shelf.stock.pop();
            self.bytes -= Self::bytes(wish);
        }
    }

    fn shelf(&mut self, wish: Wish) -> Option<&mut Shelf<K, V>> {
        let Wish { kind, class } = wish;
        self.shelves.get_mut(2 * usize::from(class) + usize::from(kind == Kind::Array)).filter(|_| class != 0)
    }

    const fn bytes(wish: Wish) -> usize {
        let each = match wish.kind {
            Kind::Chunk => size_of::<Entry<K, V>>() + size_of::<Link>(),
            Kind::Array => size_of::<IndexBucket>(),
        };
        each << wish.class
    }
}

#[cfg(test)]
mod tests;
