//! The table against std's, with keys that collide; whom it evicts and forgets; what it weighs.
#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};

impl<K: FlowKey, V: FlowValue> FlowTable<K, V> {
    /// What it takes of a supply next.
    pub(crate) fn claim(&self) -> Claim {
        self.claim
    }

    /// That index, lines and timers say the same.
    fn check(&self) {
        assert_eq!(self.index.len(), self.len());
        assert_eq!(self.timers.len(), self.entries.len());
        let mut aliases = 0;
        for id in 0..self.entries.len() {
            let (signature, is_alias) = self.signature(id).unwrap();
            assert_eq!(self.index.get(&signature), Some(id));
            aliases += u32::from(is_alias);
            let link = self.timers.get(id).unwrap();
            assert!(link.next() < self.entries.len());
        }
        assert_eq!(self.aliases, aliases);
        assert_eq!(self.next_event().is_none(), self.is_empty());
    }
}

/// A key as wide as they get, whose hash the test chooses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Chosen {
    hash: u64,
    id: u32,
    rest: [u32; 6],
}

impl Chosen {
    fn new(hash: u64, id: u32) -> Self {
        Self { hash, id, rest: [id; 6] }
    }
}

impl FlowKey for Chosen {
    fn hash(&self, _: u64) -> u64 {
        self.hash
    }
}

/// A key hashed as keys should be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
struct Key(u64);

impl FlowKey for Key {
    fn hash(&self, seed: u64) -> u64 {
        mix(mix(self.0 ^ seed, 0x9e37_79b9_7f4a_7c15), seed | 1)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Value {
    payload: u64,
    deadline: Nanos,
}

impl FlowValue for Value {
    fn deadline(&self) -> Nanos {
        self.deadline
    }
}

fn value(payload: u64, seconds: u64) -> Value {
    Value { payload, deadline: Nanos(seconds * Nanos::SECOND) }
}

#[derive(Clone, Debug)]
enum Op<K> {
    Insert(K, u64),
    Remove(K),
    /// Moves the deadline, with or without telling the table.
    Touch(K, u64, bool),
    Burst(Vec<K>),
    /// First packets of flows, looked up together and entered one after the other unless known by then.
    Learn(Vec<K>, u64),
    Expire(u64),
}

fn ops<K: Clone + std::fmt::Debug + 'static>(
    key: impl Strategy<Value = K> + Clone + 'static,
    count: usize,
) -> impl Strategy<Value = Vec<Op<K>>> {
    let op = prop_oneof![
        8 => (key.clone(), 0_u64..500).prop_map(|(k, after)| Op::Insert(k, after)),
        2 => key.clone().prop_map(Op::Remove),
        2 => (key.clone(), 0_u64..500, any::<bool>()).prop_map(|(k, after, told)| Op::Touch(k, after, told)),
        2 => prop::collection::vec(key.clone(), 1..20).prop_map(Op::Burst),
        2 => (prop::collection::vec(key, 1..20), 0_u64..500).prop_map(|(keys, after)| Op::Learn(keys, after)),
        1 => (0_u64..60).prop_map(Op::Expire),
    ];
    prop::collection::vec(op, 0..count)
}

/// Enters a flow in std's map, too, and holds the table to what it answered.
fn entered<K: FlowKey + std::hash::Hash + std::fmt::Debug>(
    model: &mut HashMap<K, Value>,
    limit: u32,
    may_collide: bool,
    key: K,
    new: Value,
    answer: Result<Option<(K, Value)>, FlowError>,
) {
    match answer {
        Ok(left) => {
            let before = model.insert(key, new);
            if let Some(before) = before {
                assert_eq!(left, Some((key, before)));
            } else if model.len() > limit as usize {
                let (victim, value) = left.unwrap();
                assert_ne!(victim, key);
                assert_eq!(model.remove(&victim), Some(value));
            } else {
                assert_eq!(left, None);
            }
        }
        Err(FlowError::Full) => assert_eq!(limit, 0),
        Err(FlowError::Collision) => {
            assert!(may_collide && !model.contains_key(&key));
            let hash = FlowKey::hash(&key, 7);
            let taken = |half: u32| {
                model.keys().any(|other| {
                    let other = FlowKey::hash(other, 7);
                    FlowProbe::signature(other) == half || FlowProbe::alias(other) == half
                })
            };
            assert!(taken(FlowProbe::signature(hash)) && taken(FlowProbe::alias(hash)));
        }
    }
}

/// Runs the operations on the table and on std's map.
fn run<K: FlowKey + std::hash::Hash + std::fmt::Debug>(limit: u32, ops: Vec<Op<K>>, may_collide: bool) {
    let mut table = FlowTable::new(7, limit, Nanos(0)).with_budget(5);
    let mut model: HashMap<K, Value> = HashMap::new();
    let mut now = 0;
    for (payload, op) in ops.into_iter().enumerate() {
        match op {
            Op::Insert(key, after) => {
                let new = value(payload as u64, now + after);
                let answer = table.insert(key, new.clone());
                entered(&mut model, limit, may_collide, key, new, answer);
            }
            Op::Learn(keys, after) => {
                let mut probes: Vec<_> = keys.iter().map(|key| table.prepare(key)).collect();
                for (probe, key) in probes.iter_mut().zip(&keys) {
                    table.step(probe, key);
                    table.expect(*probe);
                }
                for (key, probe) in keys.into_iter().zip(probes) {
                    assert_eq!(table.confirm(probe, &key), model.get_mut(&key));
                    let new = value(payload as u64, now + after);
                    let answer = table.enter(probe, key, new.clone());
                    entered(&mut model, limit, may_collide, key, new, answer);
                }
            }
            Op::Remove(key) => assert_eq!(table.remove(&key), model.remove(&key)),
            Op::Touch(key, after, told) => {
                assert_eq!(table.get(&key), model.get(&key));
                let deadline = Nanos((now + after) * Nanos::SECOND);
                if let (Some(found), Some(expected)) = (table.get_mut(&key), model.get_mut(&key)) {
                    found.deadline = deadline;
                    expected.deadline = deadline;
                }
                if told {
                    table.reschedule(&key);
                }
            }
            Op::Burst(keys) => {
                let mut probes: Vec<_> = keys.iter().map(|key| table.prepare(key)).collect();
                for (probe, key) in probes.iter_mut().zip(&keys) {
                    // One of them to its end, where it finds all that are there.
                    while table.step(probe, key) && payload % 2 == 0 {}
                    let is_found = matches!(probe.at, At::Line(_));
                    assert!(may_collide || payload % 2 != 0 || is_found == model.contains_key(key));
                }
                // What happens in the midst of a burst doesn't mislead it.
                assert_eq!(table.remove(&keys[0]), model.remove(&keys[0]));
                for (key, probe) in keys.iter().zip(probes) {
                    assert_eq!(table.confirm(probe, key), model.get_mut(key));
                }
            }
            Op::Expire(after) => {
                now += after;
                let limit = Nanos(now * Nanos::SECOND);
                for _ in 0..1000 {
                    table.expire(limit, &mut |key, value| {
                        assert!(value.deadline <= limit, "never early");
                        assert_eq!(model.remove(&key), Some(value));
                    });
                    if table.next_event().is_none_or(|event| event > limit) {
                        break;
                    }
                }
                assert!(table.next_event().is_none_or(|event| event > limit), "it gets done");
            }
        }
        assert_eq!(table.len(), model.len());
    }
    table.check();
    assert_eq!(table.iter().map(|(k, v)| (*k, v.clone())).collect::<HashMap<_, _>>(), model);
}

proptest! {
    #[test]
    fn equals_a_hash_map(limit in 0_u32..200, ops in ops((0_u64..300).prop_map(Key), 600)) {
        run(limit, ops, false);
    }

    /// Few upper and few lower halves, so that signatures, aliases and both agree; equal halves, too.
    #[test]
    fn equals_a_hash_map_of_colliding_keys(
        limit in 1_u32..60,
        ops in ops((0_u64..6, 0_u64..6, 0_u32..3).prop_map(|(a, b, id)| Chosen::new(a << 32 | b, id)), 400),
    ) {
        run(limit, ops, true);
    }
}

#[test]
fn a_taken_signature_leads_to_the_alias_and_two_taken_ones_to_a_refusal() {
    let mut table = FlowTable::new(0, 100, Nanos(0));
    let [a, b, c, d] = [(1 << 32 | 2, 0), (1 << 32 | 3, 1), (1 << 32 | 3, 2), (3 << 32 | 9, 3)]
        .map(|(h, id)| Chosen::new(h, id));
    assert_eq!(table.insert(a, value(1, 9)), Ok(None));
    assert_eq!(table.aliases, 0);
    assert_eq!(table.insert(b, value(2, 9)), Ok(None));
    assert_eq!(table.aliases, 1, "lives under 3");
    assert_eq!(table.insert(c, value(3, 9)), Err(FlowError::Collision));
    assert_eq!(
        table.insert(d, value(4, 9)),
        Ok(None),
        "its signature is another's alias, its own alias isn't"
    );
    assert_eq!(table.aliases, 2);
    assert_eq!(table.remove(&a), Some(value(1, 9)));
    assert_eq!(table.get(&b), Some(&value(2, 9)), "found though its signature is now nobody's");
    assert_eq!(table.insert(c, value(3, 9)), Ok(None), "the place of the first is free again");
    assert_eq!(table.remove(&b), Some(value(2, 9)));
    assert_eq!(table.remove(&d), Some(value(4, 9)));
    assert_eq!(table.aliases, 0);
    assert_eq!(table.get(&c), Some(&value(3, 9)));
    table.check();
}

#[test]
fn equal_timeouts_leave_in_the_order_in_which_they_came() {
    const LIMIT: u64 = 1000;
    let mut table = FlowTable::new(1, LIMIT as u32, Nanos(0));
    for i in 0..20 * LIMIT {
        // 4 ms apart: several a tick, and over several wheels' slots.
        let deadline = Nanos(60 * Nanos::SECOND + i * 4_000_000);
        let left = table.insert(Key(i), Value { payload: i, deadline }).unwrap();
        assert_eq!(left.map(|(key, _)| key.0), i.checked_sub(LIMIT));
    }
}

#[test]
fn active_flows_are_spared() {
    let mut table = FlowTable::new(1, 100, Nanos(0));
    for i in 0..100 {
        table.insert(Key(i), value(i, 100 + i)).unwrap();
    }
    // As many as it promises to look past.
    let active = (SAMPLE * (ROUNDS - 1)) as u64;
    for i in 0..active {
        table.get_mut(&Key(i)).unwrap().deadline = Nanos((300 + i) * Nanos::SECOND);
    }
    for i in active..100 {
        let left = table.insert(Key(1000 + i), value(0, 500)).unwrap();
        assert_eq!(left, Some((Key(i), value(i, 100 + i))));
    }
    for i in 0..active {
        let left = table.insert(Key(2000 + i), value(0, 500)).unwrap();
        assert_eq!(left.map(|(key, _)| key), Some(Key(i)), "then they are the oldest");
    }
}

proptest! {
    /// The victim's deadline against the earliest of all: with few active, it is at most the first slot's span behind, which is a
    /// 64th of the turn that the earliest lies in.
    #[test]
    fn the_victim_is_among_the_oldest(deadlines in prop::collection::vec(1_u64..4000, 50..300)) {
        let mut table = FlowTable::new(1, deadlines.len() as u32, Nanos(0));
        let mut left: BTreeSet<(u64, u64)> = BTreeSet::new();
        for (i, deadline) in deadlines.iter().enumerate() {
            table.insert(Key(i as u64), value(i as u64, *deadline)).unwrap();
            left.insert((*deadline, i as u64));
        }
        for i in 0..deadlines.len() as u64 {
            let (earliest, _) = *left.first().unwrap();
            let (key, value) = table.insert(Key(1_000_000 + i), value(0, 100_000)).unwrap().unwrap();
            let deadline = value.deadline.0 / Nanos::SECOND;
            prop_assert!(left.remove(&(deadline, key.0)));
            // The slots of the wheels: 1.07 s, 68.7 s and 4398 s at 16.8 ms a tick.
            let slot = |wheel: u32| (TICK_NANOS << (6 * wheel)) as f64 / 1e9;
            let span = match earliest as f64 {
                e if e + 1.0 < slot(1) => slot(0),
                e if e + 1.0 < slot(2) => slot(1),
                e if e + 1.0 < slot(3) => slot(2),
                _ => slot(3),
            };
            prop_assert!((deadline - earliest) as f64 <= span, "{deadline} instead of {earliest}");
        }
    }
}

#[test]
fn idle_flows_end_on_time_and_within_the_budget() {
    let mut table = FlowTable::new(1, 10_000, Nanos(0)).with_budget(50);
    for i in 0..1000 {
        table.insert(Key(i), value(i, 10 + i % 2 * 10)).unwrap();
    }
    // Half of those due at 10 s are active until 15 s.
    for i in (0..1000).step_by(4) {
        table.get_mut(&Key(i)).unwrap().deadline = Nanos(15 * Nanos::SECOND);
    }
    let drain = |table: &mut FlowTable<Key, Value>, now: Nanos| {
        let mut ended = Vec::new();
        loop {
            let before = ended.len();
            table.expire(now, &mut |key, value| {
                assert_eq!(key.0, value.payload);
                ended.push(key.0);
            });
            assert!(ended.len() - before <= 50);
            table.check();
            if table.next_event().is_none_or(|event| event > now) {
                break ended.len();
            }
        }
    };
    assert_eq!(drain(&mut table, Nanos(10 * Nanos::SECOND - 1)), 0);
    assert_eq!(drain(&mut table, Nanos(10 * Nanos::SECOND + TICK_NANOS)), 250);
    assert_eq!(drain(&mut table, Nanos(15 * Nanos::SECOND - 1)), 0);
    assert_eq!(drain(&mut table, Nanos(15 * Nanos::SECOND + TICK_NANOS)), 250);
    // One whose deadline becomes earlier goes with its former one unless the table is told.
    table.get_mut(&Key(1)).unwrap().deadline = Nanos(17 * Nanos::SECOND);
    table.get_mut(&Key(3)).unwrap().deadline = Nanos(17 * Nanos::SECOND);
    table.reschedule(&Key(3));
    assert_eq!(drain(&mut table, Nanos(18 * Nanos::SECOND)), 1);
    assert!(table.get(&Key(1)).is_some() && table.get(&Key(3)).is_none());
    assert_eq!(drain(&mut table, Nanos(u64::MAX)), 499);
    assert!(table.is_empty() && table.next_event().is_none());
}

#[test]
fn a_flow_that_lasts_forever_is_kept() {
    let mut table = FlowTable::new(1, 10, Nanos(0));
    table.insert(Key(1), Value { payload: 1, deadline: Nanos(u64::MAX) }).unwrap();
    table.expire(Nanos(1 << 62), &mut |_, _| unreachable!());
    assert!(table.get(&Key(1)).is_some());
}

#[test]
fn a_guess_finds_what_a_look_up_finds() {
    let mut table = FlowTable::new(7, 1_000, Nanos(0));
    // Two of three have the same signature, so that aliases are among them.
    let key = |id: u32| Chosen::new(u64::from(id / 3) << 32 | u64::from(id), id);
    let mut entered = 0;
    for id in 0..90 {
        entered += u32::from(table.insert(key(id), value(id.into(), 100)).is_ok());
    }
    assert_eq!(entered, table.len() as u32);
    let (mut right, mut wrong) = (0, 0);
    for id in 0..120 {
        let known = table.lookup(&key(id));
        for line in (0..entered + 3).chain([u32::MAX]) {
            let mut probe = table.guess(&key(id), line);
            let is_there = table.verify(&mut probe, &key(id));
            assert_eq!(is_there, known.is_some_and(|known| known.line() == line));
            (right, wrong) = (right + u32::from(is_there), wrong + u32::from(!is_there));
            while table.step(&mut probe, &key(id)) {}
            assert_eq!(table.finish(probe, &key(id)), known);
        }
        let mut probe = table.prepare(&key(id));
        assert!(!table.verify(&mut probe, &key(id)), "it was no guess");
        assert_eq!(table.finish(probe, &key(id)), known);
    }
    assert_eq!((right, wrong), (entered, 120 * (entered + 4) - entered));
}
