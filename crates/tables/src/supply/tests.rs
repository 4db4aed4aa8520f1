//! Tables with and without a supply are equal, whatever it does; and it keeps its bounds.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::flow::{FlowKey, FlowTable, FlowValue};
use crate::hash::mix;
use crate::lookup::Lookup;
use crate::time::Nanos;
use proptest::prelude::*;
use std::collections::{HashMap, VecDeque};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key(u64);

impl FlowKey for Key {
    fn hash(&self, seed: u64) -> u64 {
        mix(mix(self.0 ^ seed, 0x9e37_79b9_7f4a_7c15), seed | 1)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Value(u64);

impl FlowValue for Value {
    fn deadline(&self) -> Nanos {
        Nanos(self.0)
    }
}

type Table = FlowTable<Key, Value>;

impl Supply<Key, Value> {
    /// That its sums are those of its parts, and what it holds is claimed and within its budget.
    fn check(&self, tables: &[(Table, bool)]) {
        let mut bytes = 0;
        for (at, shelf) in self.shelves.iter().enumerate() {
            let kind = KINDS[at % 2];
            let class = (at / 2) as u8;
            let pieces = shelf.stock.len() + shelf.ordered as usize;
            bytes += pieces * Self::bytes(Wish { kind, class });
            assert!(shelf.stock.len() <= shelf.claimed as usize);
            let claims = tables.iter().filter(|(table, _)| {
                let Claim { chunk, array } = table.claim();
                class != 0 && class == if kind == Kind::Chunk { chunk } else { array }
            });
            assert_eq!(shelf.claimed as usize, claims.count(), "{kind:?} {class}");
        }
        assert_eq!(self.bytes, bytes);
        assert!(self.bytes <= self.budget);
    }
}

#[derive(Clone, Debug)]
enum Op {
    /// This table gets so many flows more.
    Grow(usize, u64),
    /// And gives up so many.
    Shrink(usize, u64),
    /// It goes, or comes back.
    Move(usize),
    /// So many pieces are wished for.
    Wish(usize),
    /// So many come, each whole or not.
    Stock(usize, bool),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (0_usize..3, 1_u64..500).prop_map(|(table, flows)| Op::Grow(table, flows)),
        1 => (0_usize..3, 1_u64..300).prop_map(|(table, flows)| Op::Shrink(table, flows)),
        1 => (0_usize..3).prop_map(Op::Move),
        4 => (0_usize..8).prop_map(Op::Wish),
        4 => (0_usize..8, prop::bool::weighted(0.9)).prop_map(|(pieces, whole)| Op::Stock(pieces, whole)),
    ]
}

fn contents(table: &Table) -> HashMap<Key, Value> {
    table.iter().map(|(key, value)| (*key, *value)).collect()
}

proptest! {
    #[test]
    fn what_tables_hold_does_not_depend_on_the_supply(
        ops in prop::collection::vec(op(), 0..60),
        budget in prop_oneof![Just(0_usize), 0_usize..300_000, Just(usize::MAX >> 1)],
        limit in prop_oneof![Just(u32::MAX), 0_u32..3000],
    ) {
        let mut supply = Supply::new(budget);
        let new = |seed| Table::new(seed, limit, Nanos(0));
        let mut tables: Vec<(Table, bool)> = (0..3).map(|seed| (new(seed), true)).collect();
        let mut plain: Vec<Table> = (0..3).map(new).collect();
        tables.iter_mut().for_each(|(table, _)| table.join(&mut supply));
        let (mut next, mut orders) = (0, VecDeque::new());
        for op in ops {
            match op {
                Op::Grow(at, flows) => {
                    let (table, is_here) = &mut tables[at];
                    for flow in next..next + flows {
                        let (key, value) = (Key(flow), Value(flow + 1));
                        let probe = table.prepare(&key);
                        let left = if *is_here {
                            table.enter_from(&mut supply, probe, key, value)
                        } else {
                            table.enter(probe, key, value)
                        };
                        prop_assert_eq!(left, plain[at].insert(key, value));
                    }
                    next += flows;
                }
                Op::Shrink(at, flows) => {
                    for flow in next.saturating_sub(flows)..next {
                        prop_assert_eq!(tables[at].0.remove(&Key(flow)), plain[at].remove(&Key(flow)));
                    }
                }
                Op::Move(at) => {
                    let (table, is_here) = &mut tables[at];
                    if *is_here { table.leave(&mut supply) } else { table.join(&mut supply) }
                    *is_here = !*is_here;
                }
                Op::Wish(pieces) => orders.extend(std::iter::from_fn(|| supply.wish()).take(pieces)),
                Op::Stock(pieces, whole) => {
                    for wish in orders.drain(..pieces.min(orders.len())) {
                        let mut piece: Piece<Key, Value> = wish.make();
                        prop_assert!(piece.is_whole());
                        if !whole {
                            piece.content = match piece.content {
                                Content::Chunk(lines, _) => Content::Chunk(lines, Vec::new()),
                                Content::Array(_) => Content::Array(Vec::new()),
                            };
                        }
                        supply.stock(piece);
                    }
                }
            }
            supply.check(&tables);
        }
        for ((table, is_here), plain) in tables.iter_mut().zip(&plain) {
            prop_assert_eq!(contents(table), contents(plain));
            prop_assert!((0..next).all(|flow| table.get(&Key(flow)) == plain.get(&Key(flow))));
            prop_assert_eq!(table.memory(), plain.memory(), "a supplied piece is as long as one that the table takes itself");
            if *is_here {
                table.leave(&mut supply);
            }
        }
        // What is still being made comes in vain.
        orders.into_iter().for_each(|wish| supply.stock(wish.make()));
        prop_assert_eq!(supply.memory(), 0);
    }
}

/// Tables that grow together, and somebody who makes a few pieces now and then: next to nothing is missed.
#[test]
fn tables_that_grow_together_find_what_they_need() {
    let mut supply = Supply::new(4 << 20);
    let mut tables: Vec<Table> = (0..64).map(|seed| Table::new(seed, u32::MAX, Nanos(0))).collect();
    tables.iter_mut().for_each(|table| table.join(&mut supply));
    for flow in 0..200_000_u64 {
        let key = Key(flow);
        let at = (mix(flow ^ 0x5eed, 0x9e37_79b9_7f4a_7c15) % 64) as usize;
        let probe = tables[at].prepare(&key);
        tables[at].enter_from(&mut supply, probe, key, Value(flow)).unwrap();
        if flow % 256 == 0 {
            let wishes: Vec<_> = std::iter::from_fn(|| supply.wish()).take(16).collect();
            wishes.into_iter().for_each(|wish| supply.stock(wish.make()));
        }
    }
    let SupplyCounters { supplied, missed } = supply.counters();
    assert!(supplied > 1000 && missed * 50 < supplied, "{supplied} were there, {missed} not");
}

#[test]
fn smaller_pieces_are_wished_for_first_and_nothing_beyond_the_budget() {
    let table = |flows: u64| {
        let mut table = Table::new(1, u32::MAX, Nanos(0));
        (0..flows).for_each(|flow| assert_eq!(table.insert(Key(flow), Value(1)), Ok(None)));
        table
    };
    let (mut large, mut small) = (table(5_000), table(300));
    let mut supply = Supply::new(200_000);
    large.join(&mut supply);
    small.join(&mut supply);
    let wishes: Vec<_> = std::iter::from_fn(|| supply.wish()).collect();
    let lengths: Vec<_> = wishes.iter().map(|wish| wish.length()).collect();
    assert!(lengths.is_sorted() && lengths[0] < 200 && wishes.len() >= 2, "{lengths:?}");
    assert!(supply.memory() <= 200_000);
    let none: Supply<Key, Value> = Supply::new(0);
    assert!(none.shelves.is_empty(), "one without a budget takes no memory");
}
