//! The map against std's, and its counts against its entries.
#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

impl<K: TableKey, V: Copy + Default, const WAYS: usize> BulkMap<K, V, WAYS> {
    /// What the counts say against what the entries say.
    fn check(&self) {
        let mut expected: HashMap<(bool, usize), (u32, [u32; 2])> = HashMap::new();
        let (moved, old) = self.old.as_ref().map_or((0, 0), |old| (old.moved, old.len));
        let mut entries = 0;
        let places = (0..self.buckets())
            .map(|index| Place { old: false, index })
            .chain((moved..old).map(|index| Place { old: true, index }));
        for place in places {
            for (key, _) in self.at(place).unwrap().entries() {
                entries += 1;
                let probe = self.probe(&key);
                let home = self.place_of(probe.home());
                if home == place {
                    continue;
                }
                assert_eq!(self.place_of(probe.other()), place, "an entry is where its hash says");
                if home.old {
                    let child = (probe.home() >> self.shift) as usize & 1;
                    let counts = expected.entry((true, home.index)).or_default();
                    if place.old { counts.0 += 1 } else { counts.1[child] += 1 }
                } else if place.old {
                    expected.entry((false, home.index & !1)).or_default().1[0] += 1;
                    expected.entry((false, home.index | 1)).or_default().1[0] += 1;
                } else {
                    expected.entry((false, home.index)).or_default().0 += 1;
                }
            }
        }
        assert_eq!(entries, self.len());
        let left = (moved..old).map(|index| Place { old: true, index });
        let live = (0..self.buckets()).map(|index| Place { old: false, index }).chain(left);
        let live = live.map(|place| ((place.old, place.index), self.at(place).unwrap()));
        for (place, bucket) in live {
            let (away, unsettled) = expected.get(&place).copied().unwrap_or_default();
            assert_eq!((bucket.away as u32, bucket.unsettled.map(u32::from)), (away, unsettled), "{place:?}");
        }
    }
}

/// A key whose hash the test chooses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
struct Chosen {
    hash: u64,
    id: u32,
}

impl TableKey for Chosen {
    fn hash(&self, _: u64) -> u64 {
        self.hash
    }
}

#[derive(Clone, Debug)]
enum Op<K> {
    Insert(K, u32),
    Remove(K),
    Get(K),
    Settle,
}

fn ops<K: Clone + std::fmt::Debug + 'static>(
    key: impl Strategy<Value = K> + Clone + 'static,
    count: usize,
) -> impl Strategy<Value = Vec<Op<K>>> {
    let op = prop_oneof![
        6 => (key.clone(), any::<u32>()).prop_map(|(k, v)| Op::Insert(k, v)),
        2 => key.clone().prop_map(Op::Remove),
        2 => key.prop_map(Op::Get),
        1 => Just(Op::Settle),
    ];
    prop::collection::vec(op, 0..count)
}

/// Runs the operations on the map and on std's; `full` says whether refusals may happen.
fn run<K, const WAYS: usize>(seed: u64, ops: Vec<Op<K>>, full: bool)
where
    K: TableKey + std::hash::Hash + std::fmt::Debug,
{
    let mut map: BulkMap<K, u32, WAYS> = BulkMap::new(seed);
    let mut model = HashMap::new();
    for op in ops {
        match op {
            Op::Insert(k, v) => match map.insert(k, v) {
                Ok(before) => assert_eq!(before, model.insert(k, v)),
                Err(Full) => assert!(full && !model.contains_key(&k), "refused {k:?}"),
            },
            Op::Remove(k) => assert_eq!(map.remove(&k), model.remove(&k)),
            Op::Get(k) => {
                assert_eq!(map.get(&k), model.get(&k).copied());
                assert_eq!(map.get_mut(&k).copied(), model.get(&k).copied());
            }
            Op::Settle => {
                map.settle(1);
            }
        }
        assert_eq!(map.len(), model.len());
    }
    map.check();
    let keys: Vec<K> = model.keys().copied().collect();
    let mut out = vec![None; keys.len()];
    map.lookup_bulk(&keys, &mut out);
    for (k, v) in keys.iter().zip(out) {
        assert_eq!(v, model.get(k).copied());
    }
    assert_eq!(map.iter().collect::<HashMap<_, _>>(), model);
    while !map.settle(1) {
        map.check();
    }
    map.check();
    assert_eq!(map.iter().collect::<HashMap<_, _>>(), model);
}

/// Miri takes about a thousand times as long.
const fn at_most(ops: usize) -> usize {
    if cfg!(miri) { 20 } else { ops }
}

proptest! {
    #[test]
    fn equals_a_hash_map(seed: u64, ops in ops(0_u32..600, at_most(1500))) {
        run::<u32, 7>(seed, ops, false);
    }

    #[test]
    fn equals_a_hash_map_in_narrow_buckets(seed: u64, ops in ops(0_u64..300, at_most(600))) {
        run::<u64, 5>(seed, ops.clone(), false);
        run::<u64, 1>(seed, ops, true);
    }

    #[test]
    fn equals_a_hash_map_with_wide_keys(seed: u64, ops in ops(any::<u8>().prop_map(|k| (k as u128) << 60), at_most(400))) {
        run::<u128, 3>(seed, ops, false);
    }

    #[test]
    fn survives_keys_that_collide_on_purpose(
        ops in ops((0_u64..4, 0_u64..4, 0_u32..40).prop_map(|(a, b, id)| Chosen { hash: a << 62 | b << 30, id }), at_most(500)),
    ) {
        run::<Chosen, 3>(0, ops, true);
    }
}

#[test]
#[cfg_attr(miri, ignore = "too long for Miri")]
fn grows_through_every_stage_with_exact_counts() {
    // Larger than SMALL buckets, so that growth is spread over insertions; checked in every phase of it.
    let mut map: BulkMap<u32, u32> = BulkMap::new(42);
    for i in 0..12_000_u32 {
        let key = i.wrapping_mul(0x0101_0101);
        assert_eq!(map.insert(key, i), Ok(None));
        if i % 7 == 3 {
            let earlier = (i / 2).wrapping_mul(0x0101_0101);
            assert_eq!(map.remove(&earlier), Some(i / 2));
            assert_eq!(map.insert(earlier, i / 2), Ok(None));
        }
        if i % 61 == 0 {
            map.check();
        }
    }
    assert!((0..12_000_u32).all(|i| map.get(&i.wrapping_mul(0x0101_0101)) == Some(i)));
    assert!((12_000..24_000_u32).all(|i| map.get(&i.wrapping_mul(0x0101_0101)).is_none()));
}

#[test]
fn too_many_equal_hashes_are_refused_and_cost_no_memory() {
    let mut map: BulkMap<Chosen, u32, 7> = BulkMap::new(0);
    let key = |id| Chosen { hash: 0x1234_5678_9abc_def0, id };
    let kept = (0..1000).take_while(|id| map.insert(key(*id), *id).is_ok()).count();
    assert_eq!(kept, 14, "two buckets of seven");
    assert!((0..1000).all(|id| map.get(&key(id)) == (id < 14).then_some(id)));
    assert!(map.memory() < 4096, "a refusal must not let an attacker grow the table: {}", map.memory());
    assert_eq!(map.remove(&key(3)), Some(3));
    assert_eq!(map.insert(key(99), 99), Ok(None));
}

#[test]
#[cfg_attr(miri, ignore = "too long for Miri")]
fn regular_keys_spread_under_every_seed() {
    for round in 0..300_u64 {
        // Seeds that differ little, and seeds that differ much.
        let seed = if round % 2 == 0 { round } else { mix(round ^ PHI, ROOT) };
        for stride in [1_u32, 2, 0x101, 1 << 9, 1 << 16, 1 << 24 | 1 << 3] {
            let mut map: BulkMap<u32, u32> = BulkMap::with_capacity(seed, 400);
            for i in 0..300_u32 {
                map.insert(0x0a00_0001_u32.wrapping_add(i.wrapping_mul(stride)), i).unwrap();
            }
            // Random keys at two thirds load displace 4 per cent.
            let away: u32 = map.buckets.iter().map(|bucket| bucket.away as u32).sum();
            assert!(away <= 45, "{away} of 300 displaced, seed {seed:#x}, stride {stride:#x}");
            assert!(map.buckets() <= 64, "never grown");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too long for Miri")]
fn sizes_are_as_documented() {
    assert_eq!(size_of::<BulkMap<u32, u32>>(), 64);
    assert_eq!(BulkMap::<u32, u32>::new(1).memory(), 64);
    assert_eq!(size_of::<Bucket<u32, u32, 7>>(), 64);
    assert_eq!(size_of::<Bucket<u64, u32, 5>>(), 64);
    assert_eq!(size_of::<Bucket<u32, u64, 5>>(), 64);
    assert_eq!(size_of::<Bucket<u128, u32, 3>>(), 64);
    let mut map: BulkMap<u32, u32> = BulkMap::new(7);
    let mut sum = 0.0;
    for i in 1..=8192_u32 {
        map.insert(0x0a00_0000 + i, i).unwrap();
        if i == 2048 {
            // And three pointers a segment, of which it has four in tests.
            assert!(map.memory() <= 2048 * 16 + 64 + 72, "{}", map.memory());
        }
        if i > 4096 {
            sum += map.memory() as f64 / i as f64;
        }
    }
    assert!(sum / 4096.0 < 18.0, "{}", sum / 4096.0);
}

#[test]
#[cfg_attr(miri, ignore = "too long for Miri")]
fn a_table_with_capacity_does_not_grow_and_rarely_displaces() {
    let mut map: BulkMap<u32, u32> = BulkMap::with_capacity(3, 5000);
    let memory = map.memory();
    for i in 0..5000 {
        map.insert(0x0a00_0000 + i, i).unwrap();
    }
    assert_eq!(map.memory(), memory);
    map.check();
    let away: u32 = map.buckets.iter().map(|bucket| bucket.away as u32).sum();
    assert!(away < 500, "{away} of 5000 displaced at {} buckets", map.buckets());
}

impl<K: TableKey, V: Copy + Default, const WAYS: usize> BulkMap<K, V, WAYS> {
    /// The array it grows into or last grew into, and how many buckets have been moved there.
    fn progress(&self) -> (u32, usize) {
        let moved = self.old.as_ref().map_or_else(|| self.buckets() / 2, |old| old.moved);
        (self.shift, moved)
    }
}

/// Whatever the size: what an insertion moves doesn't grow with the table.
#[test]
#[cfg_attr(miri, ignore = "too long for Miri")]
fn no_insertion_moves_more_than_a_few_buckets() {
    // Written out, so that they are looked at again when the constants change.
    const AT_ONCE: usize = 64;
    const BY_STEPS: usize = 2;
    let mut most = 0;
    for (seed, entries) in [(1, 400_000_u32), (2, 60_000), (3, 60_000), (4, 60_000), (5, 60_000)] {
        let mut map: BulkMap<u32, u32> = BulkMap::new(seed);
        let mut before = map.progress();
        for key in 0..entries {
            map.insert(key, key).unwrap();
            let after = map.progress();
            let moved = if after.0 == before.0 { after.1 - before.1 } else { after.1 };
            let small = map.buckets() <= 2 * AT_ONCE && map.old.is_none();
            assert!(moved <= if small { AT_ONCE } else { BY_STEPS }, "{moved} buckets at {key}");
            most = if small { most } else { most.max(moved) };
            before = after;
        }
        assert_eq!(map.len(), entries as usize);
    }
    assert_eq!(most, BY_STEPS, "it did grow by steps");
}
