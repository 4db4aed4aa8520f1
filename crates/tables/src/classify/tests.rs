#![allow(clippy::unwrap_used)]

use super::*;
use crate::cuckoo::CuckooError;
use crate::hash::mix;
use crate::image::{Image, Layout, Line, Replica};
use crate::lookup::Lookup;
use crate::simd::Processor;
use crate::simd::cuckoo::{self as kernels, Kernel, Places, Plain};
use proptest::prelude::*;
use std::collections::HashMap;

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mix(*state, 0xd6e8_feb8_6659_fd93)
}

fn tuple4(number: u64) -> Tuple4 {
    Tuple4::of([0x0a00_0000 | number as u32, 0x0808_0808, 443, 6])
}

fn tuple6(number: u64) -> Tuple6 {
    let host = u128::from(number) << 64 | 1;
    Tuple6::new((0x2001_0db8_u128 << 96 | host).into(), 0x2606_4700_u128.into(), 17, number as u16, 443)
}

fn hash_of<const N: usize>(key: &[u32; N], layout: &Layout) -> (u32, u32) {
    let (add, round) = layout.parameters[1..].split_at(N);
    let fold = |x: u32, m: u32| {
        let product = u64::from(x) * u64::from(m);
        product as u32 ^ (product >> 32) as u32
    };
    let mut sum = 0_u64;
    for at in (0..N).step_by(2) {
        let word = |at: usize| u64::from(key[at].wrapping_add(add[at]));
        sum = sum.wrapping_add(word(at) * word(at + 1));
    }
    let (mut a, mut b) = (sum as u32, (sum >> 32) as u32);
    b ^= fold(a.wrapping_add(round[0]), 0x9e37_79b1);
    a ^= fold(b.wrapping_add(round[1]), 0x85eb_ca77);
    b ^= fold(a.wrapping_add(round[2]), 0xc2b2_ae3d);
    (a, b)
}

/// A device's look-up: from `crate::image` alone.
fn device4(copy: &Replica, key: Tuple4) -> Option<u32> {
    let layout = copy.layout.unwrap();
    assert_eq!(layout.kind, Kind::Flow4);
    let n = u64::from(layout.parameters[0]);
    let (a, b) = hash_of(&key.words(), &layout);
    [a, b].into_iter().find_map(|hash| {
        let bucket = ((u64::from(hash) * n) >> 32) as usize;
        copy.regions[0][16 * bucket..16 * bucket + 16].chunks(4).find_map(|slot| {
            let mask = &layout.parameters[8..12];
            let is_it = (0..4).all(|at| slot[at] & mask[at] == key.words()[at]);
            (is_it && slot[3] >> 8 != 0).then(|| (slot[3] >> 8) - 1)
        })
    })
}

fn device6(copy: &Replica, key: Tuple6) -> Option<u32> {
    let layout = copy.layout.unwrap();
    assert_eq!(layout.kind, Kind::Flow6);
    let n = u64::from(layout.parameters[0]);
    let (a, b) = hash_of(&key.words(), &layout);
    let (home, scaled) = ((u64::from(a) * n) >> 32, (u64::from(b) * n) >> 32);
    let other = if scaled < home { scaled + n - home } else { scaled - home };
    [home, other].into_iter().find_map(|bucket| {
        let line = &copy.regions[0][16 * bucket as usize..][..16];
        (0..8).filter(|slot| line[*slot] == b && line[8 + slot] != 0).find_map(|slot| {
            let record = &copy.regions[1][16 * (line[8 + slot] as usize - 1)..][..16];
            (record[..10] == key.words()).then_some(record[10])
        })
    })
}

/// What both tables do, for the tests.
trait Table: Lookup<Key: Copy + std::hash::Hash + Eq + std::fmt::Debug, Value = u32> + Image + Sized {
    fn made(seed: u64, limit: u32) -> Self;
    fn put(&mut self, key: Self::Key, value: u32) -> Result<Option<u32>, CuckooError>;
    fn take(&mut self, key: &Self::Key) -> Option<u32>;
    fn count(&self) -> usize;
    fn on(self, processor: Processor) -> Self;
    fn device(copy: &Replica, key: Self::Key) -> Option<u32>;
}

macro_rules! table {
    ($table:ty, $key:ty, $device:ident) => {
        impl Table for $table {
            fn made(seed: u64, limit: u32) -> Self {
                Self::new(seed, limit).unwrap()
            }
            fn put(&mut self, key: $key, value: u32) -> Result<Option<u32>, CuckooError> {
                self.insert(key, value)
            }
            fn take(&mut self, key: &$key) -> Option<u32> {
                self.remove(key)
            }
            fn count(&self) -> usize {
                self.len()
            }
            fn on(self, processor: Processor) -> Self {
                self.with_processor(processor)
            }
            fn device(copy: &Replica, key: $key) -> Option<u32> {
                $device(copy, key)
            }
        }
    };
}
table!(Flows4, Tuple4, device4);
table!(Flows6, Tuple6, device6);

/// Random changes against a map, to the limit and back, with a copy that follows; then every processor's bulks, hits and misses.
fn against_a_map<T: Table>(key: fn(u64) -> T::Key, limit: u32) {
    for seed in 0..3 {
        let (mut table, mut copy, mut model) = (T::made(seed, limit), Replica::default(), HashMap::new());
        table.track(1000);
        let mut state = seed;
        for round in 0..6 {
            for _ in 0..limit {
                let (number, value) =
                    (random(&mut state) % (3 * u64::from(limit)), random(&mut state) as u32 >> 9);
                let key = key(number);
                if random(&mut state) % 8 < [7, 7, 7, 2, 1, 6][round] {
                    match table.put(key, value) {
                        Ok(before) => assert_eq!(before, model.insert(key, value)),
                        // At the limit: with room below it nothing was refused.
                        Err(error) => {
                            assert_eq!((error, model.len()), (CuckooError::Full, limit as usize));
                            assert!(!model.contains_key(&key));
                        }
                    }
                } else {
                    assert_eq!(table.take(&key), model.remove(&key));
                }
                if random(&mut state).is_multiple_of(64) {
                    copy.follow(&mut table);
                }
            }
            assert_eq!(table.count(), model.len());
            copy.follow(&mut table);
            let keys: Vec<_> = (0..3 * u64::from(limit)).map(key).collect();
            let expected: Vec<_> = keys.iter().map(|key| model.get(key).copied()).collect();
            for processor in Processor::here() {
                let mut out = vec![Some(7); keys.len()];
                table = table.on(processor);
                table.lookup_bulk(&keys, &mut out);
                assert!(out == expected, "{processor}");
            }
            assert!(keys.iter().zip(&expected).all(|(key, value)| T::device(&copy, *key) == *value));
        }
        assert!(limit == 1 || copy.copied > 0, "some of it line by line");
        let full = copy.regions.iter().zip(table.regions()).all(|(own, words)| own == words);
        assert!(full, "a copy has what the table has");
    }
}

#[test]
fn ipv4_flows_equal_a_map() {
    against_a_map::<Flows4>(tuple4, 4000);
    against_a_map::<Flows4>(tuple4, 1);
}

#[test]
fn ipv6_flows_equal_a_map() {
    against_a_map::<Flows6>(tuple6, 4000);
    against_a_map::<Flows6>(tuple6, 1);
}

/// Marks are set and cleared with the strays, whether those come, go, or are moved to make room; of an empty table there are none.
#[test]
fn strays_are_counted_exactly() {
    let (limit, mut state) = (2000, 1);
    let mut table = Flows4::new(5, limit).unwrap();
    for round in 0..6 {
        for _ in 0..4 * limit {
            let key = tuple4(random(&mut state) % 3000);
            if random(&mut state) % 8 < [7, 7, 2, 6, 4, 7][round] {
                let _ = table.insert(key, 1);
            } else {
                table.remove(&key);
            }
        }
        let [counted, there] = table.counted_strays();
        let most = there.iter().copied().max().unwrap_or(0);
        assert!((1..15).contains(&most), "{most} of a sort");
        assert_eq!(counted, there, "round {round}");
    }
    (0..3000).for_each(|number| {
        table.remove(&tuple4(number));
    });
    assert!(table.is_empty());
    assert!(table.counted_strays().iter().flatten().all(|count| *count == 0));
}

/// 90 % of all slots are taken without a refusal, whatever the seed; most entries are at home.
#[test]
fn tables_can_be_filled_to_their_limit() {
    for seed in 0..4 {
        let limit = 100_000;
        let mut four = Flows4::new(seed, limit).unwrap();
        let mut six = Flows6::new(seed, limit).unwrap();
        for number in 0..u64::from(limit) {
            assert_eq!(four.insert(tuple4(number), number as u32), Ok(None));
            assert_eq!(six.insert(tuple6(number), number as u32), Ok(None));
        }
        assert_eq!(four.insert(tuple4(u64::from(limit)), 0), Err(CuckooError::Full));
        assert_eq!(six.insert(tuple6(u64::from(limit)), 0), Err(CuckooError::Full));
        // What is there can still be replaced.
        assert_eq!(four.insert(tuple4(5), 9), Ok(Some(5)));
        assert_eq!(six.insert(tuple6(5), 9), Ok(Some(5)));
        let at_home = (0..u64::from(limit)).filter(|number| {
            let key = tuple4(*number);
            let probe = four.probe(&key);
            four.position(probe, &key).unwrap().0 == probe.home
        });
        let share = at_home.count() as f64 / f64::from(limit);
        println!(
            "{share:.3} at home; {:.1} and {:.1} bytes a flow",
            four.memory() as f64 / f64::from(limit),
            six.memory() as f64 / f64::from(limit)
        );
        assert!(share > 0.7, "{share}");
        assert!(four.memory() < 20 * limit as usize && six.memory() < 74 * limit as usize);
    }
}

/// Whoever knows the seed can choose keys that share both buckets: the table takes as many as there is room for, refuses the others, and is as before.
#[test]
fn keys_that_share_both_buckets_are_refused_and_nothing_is_lost() {
    let mut table = Flows4::new(1, 60).unwrap();
    let mut six = Flows6::new(1, 60).unwrap();
    for number in 0..20 {
        table.insert(tuple4(number), number as u32).unwrap();
        six.insert(tuple6(number), number as u32).unwrap();
    }
    let wanted = table.probe(&tuple4(0));
    let mut chosen = (1000..).map(tuple4).filter(|key| {
        let probe = table.probe(key);
        (probe.home, probe.other) == (wanted.home, wanted.other)
    });
    let chosen: Vec<_> = chosen.by_ref().take(12).collect();
    let taken = chosen.iter().filter(|key| table.insert(**key, 99).is_ok()).count();
    assert!((4..=8).contains(&taken), "{taken} of two buckets of four");
    assert!((0..20).all(|number| table.get(&tuple4(number)) == Some(number as u32)));
    assert_eq!(table.len(), 20 + taken);
    // Those of one pair of buckets of eight.
    let buckets = |six: &Flows6, key: &Tuple6| {
        let mut both = six.places(key);
        both.sort_unstable();
        both
    };
    let wanted = buckets(&six, &tuple6(0));
    let chosen: Vec<_> = (1000..).map(tuple6).filter(|key| buckets(&six, key) == wanted).take(20).collect();
    let taken = chosen.iter().filter(|key| six.insert(**key, 99).is_ok()).count();
    assert!((8..=16).contains(&taken), "{taken} of two buckets of eight");
    assert!((0..20).all(|number| six.get(&tuple6(number)) == Some(number as u32)));
    assert_eq!(six.len(), 20 + taken);
}

/// Tags that agree without their keys doing so: the key decides. In a table of two buckets, whose tags are chosen.
#[test]
fn several_records_may_have_one_tag() {
    let mut table = Flows6::new(3, 8).unwrap();
    for number in 0..6 {
        table.insert(tuple6(number), number as u32).unwrap();
    }
    // All tags become the first key's: only it and those that are looked for in the same buckets can be found, each by its key.
    table.set_all_tags(&tuple6(0));
    for processor in Processor::here() {
        table = table.with_processor(processor);
        let mut out = [None; 1];
        table.lookup_bulk(&[tuple6(0)], &mut out);
        assert_eq!((out[0], table.get(&tuple6(0))), (Some(0), Some(0)), "{processor}");
    }
}

#[test]
fn values_that_a_slot_cannot_hold_are_refused() {
    let mut table = Flows4::new(1, 10).unwrap();
    assert_eq!(table.insert(tuple4(1), Flows4::MAX_VALUE + 1), Err(CuckooError::Value));
    assert_eq!(table.insert(tuple4(1), Flows4::MAX_VALUE), Ok(None));
    assert_eq!(table.get(&tuple4(1)), Some(Flows4::MAX_VALUE));
    assert_eq!(Flows4::new(1, 0).unwrap().insert(tuple4(1), 1), Err(CuckooError::Full));
}

/// A key of zeros looks like a vacant slot.
#[test]
fn a_key_of_zeros_is_a_key() {
    let zero = Tuple4::new(0.into(), 0.into(), 0, 0, 0);
    for processor in Processor::here() {
        let mut table = Flows4::new(1, 100).unwrap().with_processor(processor);
        let found = |table: &Flows4| {
            let mut out = [Some(9)];
            table.lookup_bulk(&[zero], &mut out);
            assert_eq!(out[0], table.get(&zero));
            out[0]
        };
        assert_eq!(found(&table), None);
        // Behind a vacant slot of its own bucket, too.
        let home = table.probe(&zero).home;
        let neighbours: Vec<_> =
            (1..).map(tuple4).filter(|key| table.probe(key).home == home).take(2).collect();
        for key in &neighbours {
            table.insert(*key, 5).unwrap();
        }
        assert_eq!(table.insert(zero, 7), Ok(None));
        table.remove(&neighbours[0]);
        assert_eq!(found(&table), Some(7));
        assert_eq!(table.remove(&zero), Some(7));
        assert_eq!(found(&table), None);
    }
}

#[test]
fn words_are_those_that_devices_are_told() {
    let key = Tuple4::new([10, 1, 2, 3].into(), [192, 0, 2, 9].into(), 17, 0x1234, 53);
    assert_eq!(key.words(), [0x0a01_0203, 0xc000_0209, 0x1234_0035, 17]);
    let key = Tuple6::new("2001:db8::1".parse().unwrap(), "::2:3".parse().unwrap(), 6, 1, 2);
    assert_eq!(key.words(), [0x2001_0db8, 0, 0, 1, 0, 0, 0, 0x0002_0003, 0x0001_0002, 6]);
}

proptest! {
    /// The vectors against plain code, for lines and keys whose words agree often.
    #[test]
    fn kernels_equal_their_twin(
        words in prop::array::uniform16(prop_oneof![0_u32..3, Just(0x100), Just(0x101), Just(0xffff_ff06)]),
        key in prop::array::uniform4(prop_oneof![0_u32..3, Just(6_u32)]),
        link: bool,
    ) {
        let mask = if link { [u32::MAX, u32::MAX, 0, 0xff] } else { Flow4::MASK };
        let key = std::array::from_fn(|at| key[at] & mask[at]);
        let line = Line(words);
        let slot = Plain::find(&line, &key, &mask);
        let first = words.chunks(4).position(|slot| {
            slot[3] >> 8 != 0 && (0..4).all(|at| slot[at] & mask[at] == key[at])
        });
        prop_assert_eq!(first.unwrap_or(4), slot);
        for processor in Processor::here() {
            let (lines, marks) = ([line], [0]);
            let secrets = crate::cuckoo::Secrets::new(1);
            let table = kernels::Inline { lines: &lines, marks: &marks, secrets: &secrets, mask: &mask };
            let mut out = [None; 3];
            kernels::bulk(processor, table, &[key; 3], &mut out);
            prop_assert_eq!(out, [kernels::value(&line, slot); 3], "{}", processor);
        }
    }

    #[test]
    fn hashes_equal_their_twin(keys in prop::collection::vec(any::<[u32; 4]>(), 0..17), seed: u64, buckets in 1_u32..) {
        let keys = keys.get(..keys.len().min(kernels::GROUP)).unwrap_or(&keys);
        let secrets = crate::cuckoo::Secrets::new(seed);
        let mut expected = Places::NONE;
        Plain::places(&secrets, buckets, keys, &mut expected);
        for processor in Processor::here() {
            let mut found = Places::NONE;
            kernels::places(processor, &secrets, buckets, keys, &mut found);
            prop_assert_eq!(&found.home[..keys.len()], &expected.home[..keys.len()], "{}", processor);
            prop_assert_eq!(&found.other[..keys.len()], &expected.other[..keys.len()]);
        }
    }
}
