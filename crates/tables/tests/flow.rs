//! The table of flows from outside: growth, and what it weighs.
#![allow(clippy::unwrap_used)]

use tables::hash::mix;
use tables::{FlowKey, FlowTable, FlowValue, Nanos};

/// As wide as they get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Key([u32; 9]);

impl Key {
    fn of(index: u32) -> Self {
        Self([index, 1, 2, 3, 4, 5, 6, 7, 8])
    }
}

impl FlowKey for Key {
    fn hash(&self, seed: u64) -> u64 {
        mix(mix(u64::from(self.0[0]) ^ seed, 0x9e37_79b9_7f4a_7c15), seed | 1)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Value([u32; 7]);

impl FlowValue for Value {
    fn deadline(&self) -> Nanos {
        Nanos(u64::from(self.0[0]) * 1_000_000)
    }
}

/// From a few hundred flows on, at every size, the middle of a growth included.
#[test]
fn a_flow_takes_at_most_128_bytes_at_any_size() {
    const FLOWS: u32 = 300_000;
    let mut table: FlowTable<Key, Value> = FlowTable::new(3, u32::MAX, Nanos(0));
    assert_eq!(table.memory(), size_of_val(&table));
    assert!(size_of_val(&table) <= 320, "{}", size_of_val(&table));
    let (mut worst, mut sum, mut count) = ((0.0_f64, 0), 0.0, 0);
    for index in 0..FLOWS {
        assert_eq!(table.insert(Key::of(index), Value([index; 7])), Ok(None));
        if index > 500 && index % 16 == 0 {
            let bytes = table.memory() as f64 / table.len() as f64;
            worst = if bytes > worst.0 { (bytes, index) } else { worst };
            sum += bytes;
            count += 1;
        }
    }
    assert!(worst.0 <= 128.0, "{} bytes a flow at {}", worst.0, worst.1);
    assert!(sum / f64::from(count) <= 110.0, "{} bytes a flow on average", sum / f64::from(count));
    println!("at most {:.1} (at {}), on average {:.1} bytes", worst.0, worst.1, sum / f64::from(count));
    assert!((0..FLOWS).all(|index| table.get(&Key::of(index)) == Some(&Value([index; 7]))));
    assert!((FLOWS..2 * FLOWS).all(|index| table.get(&Key::of(index)).is_none()));

    // What was once needed serves again: another round needs no more.
    let most = table.memory();
    for index in 0..FLOWS {
        // Not in the order in which they came.
        let index = (u64::from(index) * 7919 % u64::from(FLOWS)) as u32;
        assert_eq!(table.remove(&Key::of(index)), Some(Value([index; 7])));
    }
    assert!(table.is_empty());
    for index in FLOWS..2 * FLOWS {
        assert_eq!(table.insert(Key::of(index), Value([index; 7])), Ok(None));
    }
    assert!(table.memory() <= most + most / 50, "{} after {most}", table.memory());
}

/// What is reserved serves: no further memory is taken, and all else is as without.
#[test]
fn a_reserved_table_takes_its_flows_without_more_memory() {
    for flows in [1_u32, 100, 20_000] {
        let mut table: FlowTable<Key, Value> = FlowTable::new(3, 20_000, Nanos(0));
        table.reserve(flows);
        let reserved = table.memory();
        assert!(table.is_empty() && table.next_event().is_none() && table.get(&Key::of(0)).is_none());
        for index in 0..flows {
            assert_eq!(table.insert(Key::of(index), Value([index; 7])), Ok(None));
            assert_eq!(table.memory(), reserved, "{index}");
        }
        assert!((0..flows).all(|index| table.get(&Key::of(index)) == Some(&Value([index; 7]))));
        // One with flows is left alone, and nothing is reserved beyond the limit.
        table.reserve(u32::MAX);
        assert_eq!(table.memory(), reserved);
    }
    let mut limited: FlowTable<Key, Value> = FlowTable::new(3, 100, Nanos(0));
    limited.reserve(u32::MAX);
    assert!(limited.memory() < 100 * 128 + 3072, "{}", limited.memory());
    let mut none: FlowTable<Key, Value> = FlowTable::new(3, 0, Nanos(0));
    none.reserve(u32::MAX);
    assert_eq!(none.memory(), size_of_val(&none));
}

/// Pages that this thread was first to write to, as the kernel counts them; `None` where it doesn't say.
fn first_writes() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").ok()?;
    // The fields behind the name, which may hold blanks itself: proc(5) counts minor faults as field 10.
    stat.rsplit_once(')')?.1.split_whitespace().nth(7)?.parse().ok()
}

/// A growth takes its memory as address space, of which each insertion writes to a page or two: none clears an array.
#[test]
fn no_insertion_of_a_growth_writes_to_many_new_pages() {
    // Enough for several segments of the index: the first has room for 57,344.
    const FLOWS: u32 = 130_000;
    let mut table: FlowTable<Key, Value> = FlowTable::new(3, u32::MAX, Nanos(0));
    let Some(began) = first_writes() else {
        return testing::skipped("this kernel does not count page faults");
    };
    let (mut before, mut most) = (first_writes().unwrap(), (0, 0));
    for index in 0..FLOWS {
        assert_eq!(table.insert(Key::of(index), Value([index; 7])), Ok(None));
        let after = first_writes().unwrap();
        most = most.max((after - before, index));
        before = after;
    }
    assert!(before > began, "the counter counts");
    println!("{} pages, at most {} at once (flow {})", before - began, most.0, most.1);
    // One of lines, one of timers, up to two of buckets, and what the allocator writes beside them. A cleared array of
    // the index would be 128.
    assert!(most.0 <= 16, "{} pages at flow {}", most.0, most.1);
}
