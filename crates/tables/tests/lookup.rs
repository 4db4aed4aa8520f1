//! Every look-up in phases against a model: the conformance body on each table, on a device that answers later, and on tables that are
//! broken on purpose.
#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;
use std::net::{Ipv4Addr, Ipv6Addr};
use tables::conformance::{self, Expect, Moment, Report, Subject};
use tables::hash::mix;
use tables::l2::{L2, L2Config, Learnt, Station};
use tables::lpm::{Address, Lpm};
use tables::{
    BulkMap, Dir24, FlowId, FlowKey, FlowTable, FlowValue, Flows4, Flows6, Lookup, Lpm4, Lpm6, Nanos,
    Processor, TableKey, Tuple4, Tuple6,
};

fn check(subject: &mut impl Subject, expect: Expect) -> Report {
    for seed in 1..5 {
        conformance::run(subject, Expect { seed, ..expect }).unwrap();
    }
    let report = conformance::run(subject, expect).unwrap();
    // Enough of each to mean something.
    assert!(report.hits > 2000 && report.misses > 2000 && report.changed > 100, "{report:?}");
    report
}

/// A map that is changed as std's is.
trait Map: Lookup<Key: Copy + Eq + Hash + Debug, Value = u32> {
    fn put(&mut self, key: Self::Key, value: u32) -> bool;
    fn take(&mut self, key: &Self::Key);
}

impl<K: TableKey + Hash + Debug, const WAYS: usize> Map for BulkMap<K, u32, WAYS> {
    fn put(&mut self, key: K, value: u32) -> bool {
        self.insert(key, value).is_ok()
    }

    fn take(&mut self, key: &K) {
        self.remove(key);
    }
}

/// A map beside std's.
struct Exact<M: Map> {
    map: M,
    key: fn(u64) -> M::Key,
    model: HashMap<M::Key, u32>,
}

impl<M: Map> Exact<M> {
    fn new(map: M, key: fn(u64) -> M::Key) -> Self {
        Self { map, key, model: HashMap::new() }
    }
}

impl<M: Map> Subject for Exact<M> {
    type Table = M;
    type Answer = u32;

    fn table(&self) -> &M {
        &self.map
    }

    fn key(&self, number: u64) -> M::Key {
        (self.key)(number)
    }

    fn insert(&mut self, number: u64, value: u16) {
        let (key, value) = (self.key(number), u32::from(value));
        if self.map.put(key, value) {
            self.model.insert(key, value);
        }
    }

    fn remove(&mut self, number: u64) {
        let key = self.key(number);
        self.map.take(&key);
        self.model.remove(&key);
    }

    fn answer(&self, found: u32) -> Option<u32> {
        Some(found)
    }

    fn expected(&self, key: &M::Key) -> Option<u32> {
        self.model.get(key).copied()
    }
}

/// A key whose hash the test chooses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
struct Chosen {
    hash: u64,
    id: u32,
}

impl Chosen {
    /// Few upper and few lower halves of hashes, so that homes, other buckets, signatures, aliases and whole hashes agree.
    fn new(number: u64) -> Self {
        let (upper, lower) = (number % 19, number % 23);
        Self { hash: upper << 59 | lower << 27, id: number as u32 / 40 }
    }
}

impl TableKey for Chosen {
    fn hash(&self, _: u64) -> u64 {
        self.hash
    }
}

#[test]
fn a_bulk_map_conforms() {
    check(&mut Exact::new(BulkMap::<u32, u32>::new(7), |n| 0x0a00_0000 + n as u32), Expect::default());
    check(&mut Exact::new(BulkMap::<u64, u32, 5>::new(7), |n| n << 40), Expect::default());
    check(&mut Exact::new(BulkMap::<u128, u32, 3>::new(7), |n| u128::from(n) << 60), Expect::default());
    // Large enough that growth goes by steps, and between one phase and the next.
    let large = Expect { numbers: 20_000, rounds: 6, ..Expect::default() };
    check(&mut Exact::new(BulkMap::<u32, u32>::new(7), |n| n as u32), large);
}

impl Map for Flows4 {
    fn put(&mut self, key: Tuple4, value: u32) -> bool {
        self.insert(key, value).is_ok()
    }

    fn take(&mut self, key: &Tuple4) {
        self.remove(key);
    }
}

impl Map for Flows6 {
    fn put(&mut self, key: Tuple6, value: u32) -> bool {
        self.insert(key, value).is_ok()
    }

    fn take(&mut self, key: &Tuple6) {
        self.remove(key);
    }
}

#[test]
fn flows_by_their_tuple_conform_on_every_processor() {
    for processor in Processor::here() {
        // Fewer than there are keys: entries move, and some are refused.
        let few = Expect { numbers: 300, rounds: 10, ..Expect::default() };
        let four = Flows4::new(7, 200).unwrap().with_processor(processor);
        check(&mut Exact::new(four, |n| Tuple4::new((n as u32).into(), 9.into(), 6, 1, 2)), few);
        let six = Flows6::new(7, 200).unwrap().with_processor(processor);
        let key = |n| Tuple6::new(u128::from(n).into(), 9.into(), 6, 1, 2);
        check(&mut Exact::new(six, key), few);
    }
}

/// What is learnt from a frame, and forgotten.
impl Map for L2 {
    fn put(&mut self, station: Station, port: u32) -> bool {
        !matches!(self.learn(station, port as u16, Nanos(0)), Learnt::Refused(_))
    }

    fn take(&mut self, station: &Station) {
        L2::remove(self, station);
    }
}

#[test]
fn mac_addresses_conform_on_every_processor() {
    // The same addresses in four VLANs, which have two thirds of the entries at most.
    let station = |number: u64| {
        let [.., d, e, f] = (number as u32 / 4).to_be_bytes();
        Station::new([2, 0, 0, d, e, f], (number % 4) as u16)
    };
    for processor in Processor::here() {
        let config = L2Config { per_vlan: 100, ..L2Config::new(600) };
        let table = L2::new(7, config, Nanos(0)).unwrap().with_processor(processor);
        check(&mut Exact::new(table, station), Expect::default());
    }
}

#[test]
fn a_bulk_map_of_colliding_keys_conforms() {
    let few = Expect { numbers: 200, ..Expect::default() };
    check(&mut Exact::new(BulkMap::<Chosen, u32, 3>::new(7), Chosen::new), few);
}

/// A flow's key, as wide as they get.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Flow<const CHOSEN: bool> {
    number: Chosen,
    rest: [u32; 4],
}

impl<const CHOSEN: bool> FlowKey for Flow<CHOSEN> {
    fn hash(&self, seed: u64) -> u64 {
        let Chosen { hash, id } = self.number;
        if CHOSEN {
            hash
        } else {
            mix(mix(hash ^ u64::from(id) << 7 ^ seed, 0x9e37_79b9_7f4a_7c15), seed | 1)
        }
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Payload([u32; 6]);

impl FlowValue for Payload {
    fn deadline(&self) -> Nanos {
        Nanos(u64::from(self.0[0]) * Nanos::SECOND)
    }
}

/// A table of flows beside std's map.
struct Flows<const CHOSEN: bool> {
    table: FlowTable<Flow<CHOSEN>, Payload>,
    model: HashMap<Flow<CHOSEN>, u32>,
}

impl<const CHOSEN: bool> Flows<CHOSEN> {
    fn new(limit: u32) -> Self {
        Self { table: FlowTable::new(3, limit, Nanos(0)), model: HashMap::new() }
    }
}

impl<const CHOSEN: bool> Subject for Flows<CHOSEN> {
    type Table = FlowTable<Flow<CHOSEN>, Payload>;
    type Answer = (Flow<CHOSEN>, u32);

    fn table(&self) -> &Self::Table {
        &self.table
    }

    fn key(&self, number: u64) -> Flow<CHOSEN> {
        let chosen = Chosen::new(number);
        Flow { number: chosen, rest: [chosen.id; 4] }
    }

    fn insert(&mut self, number: u64, value: u16) {
        let key = self.key(number);
        let Ok(left) = self.table.insert(key, Payload([value.into(); 6])) else { return };
        if let Some((left, _)) = left {
            self.model.remove(&left);
        }
        self.model.insert(key, value.into());
    }

    fn remove(&mut self, number: u64) {
        let key = self.key(number);
        self.table.remove(&key);
        self.model.remove(&key);
    }

    fn answer(&self, found: FlowId) -> Option<Self::Answer> {
        self.table.flow(found).map(|(key, value)| (*key, value.0[5]))
    }

    fn expected(&self, key: &Flow<CHOSEN>) -> Option<Self::Answer> {
        self.model.get(key).map(|value| (*key, *value))
    }
}

#[test]
fn a_flow_table_conforms() {
    check(&mut Flows::<false>::new(100_000), Expect::default());
    // Full, so that each flow that comes makes another one leave.
    check(&mut Flows::<false>::new(150), Expect::default());
    check(&mut Flows::<true>::new(100_000), Expect { numbers: 100, ..Expect::default() });
}

/// A routing table beside a list that is searched.
struct Routes<A: Address, const ROOT: u8> {
    table: Lpm<A, ROOT>,
    route: fn(u64) -> (A, u8),
    model: BTreeMap<(A, u8), u16>,
}

impl<A: Address, const ROOT: u8> Subject for Routes<A, ROOT> {
    type Table = Lpm<A, ROOT>;
    type Answer = u16;

    fn table(&self) -> &Lpm<A, ROOT> {
        &self.table
    }

    fn key(&self, number: u64) -> A {
        (self.route)(number).0
    }

    fn insert(&mut self, number: u64, value: u16) {
        let (prefix, len) = (self.route)(number);
        if self.table.insert(prefix, len, value).is_ok() {
            self.model.insert((prefix.masked(len), len), value);
        }
    }

    fn remove(&mut self, number: u64) {
        let (prefix, len) = (self.route)(number);
        self.table.remove(prefix, len);
        self.model.remove(&(prefix.masked(len), len));
    }

    fn answer(&self, found: u16) -> Option<u16> {
        Some(found)
    }

    fn expected(&self, address: &A) -> Option<u16> {
        let containing = self.model.iter().filter(|((prefix, len), _)| address.masked(*len) == *prefix);
        containing.max_by_key(|((_, len), _)| *len).map(|(_, value)| *value)
    }
}

/// A number's route: few first octets, so that routes contain each other.
fn route4(number: u64) -> (Ipv4Addr, u8) {
    let low = mix(number ^ 0x5eed, 0x9e37_79b9_7f4a_7c15) as u32 & 0x8001_83ff;
    let len = [8, 15, 16, 17, 23, 24, 24, 25, 31, 32][number as usize % 10];
    (Ipv4Addr::from_bits((10 + number as u32 % 3) << 24 ^ low), len)
}

/// Likewise, with nodes to be skipped.
fn route6(number: u64) -> (Ipv6Addr, u8) {
    let low = mix(number ^ 0x5eed, 0x9e37_79b9_7f4a_7c15);
    let len = [16, 29, 32, 48, 56, 63, 64, 65, 120, 128][number as usize % 10];
    let site = u128::from(0x2001_0db8_u32 + number as u32 % 3) << 96;
    (Ipv6Addr::from_bits(site | u128::from(low & 0x300_0000_0000_0181)), len)
}

#[test]
fn routes_conform() {
    // The model is searched from one end to the other.
    let few = Expect { numbers: 200, rounds: 12, ..Expect::default() };
    check(&mut Routes { table: Lpm4::new(10_000), route: route4, model: BTreeMap::new() }, few);
    check(&mut Routes { table: Lpm6::new(10_000), route: route6, model: BTreeMap::new() }, few);
    for processor in Processor::here() {
        let table = Dir24::new(10_000).with_processor(processor);
        check(&mut Routes { table, route: route4, model: BTreeMap::new() }, few);
    }
    // So few nodes that routes are refused, and nodes freed and used again all the time.
    check(&mut Routes { table: Lpm4::new(20), route: route4, model: BTreeMap::new() }, few);
    check(&mut Routes { table: Lpm6::new(20), route: route6, model: BTreeMap::new() }, few);
    check(&mut Routes { table: Dir24::new(20), route: route4, model: BTreeMap::new() }, few);
}

/// A device with a queue and a latency: it takes keys, and answers so many polls later what its table says then.
struct Device {
    table: BulkMap<u32, u32>,
    room: usize,
    latency: u64,
    state: RefCell<Underway>,
}

#[derive(Default)]
struct Underway {
    tickets: u64,
    polls: u64,
    /// Ticket, key, and when it is due.
    queue: VecDeque<(u64, u32, u64)>,
    answers: HashMap<u64, Option<u32>>,
}

impl Lookup for Device {
    type Key = u32;
    type Value = u32;
    /// A ticket; 0 if the queue was full.
    type Probe = u64;

    fn prepare(&self, key: &u32) -> u64 {
        let state = &mut *self.state.borrow_mut();
        if state.queue.len() >= self.room {
            return 0;
        }
        state.tickets += 1;
        state.queue.push_back((state.tickets, *key, state.polls + self.latency));
        state.tickets
    }

    fn step(&self, ticket: &mut u64, _: &u32) -> bool {
        let state = &mut *self.state.borrow_mut();
        state.polls += 1;
        while let Some((done, key, due)) = state.queue.front().copied()
            && due <= state.polls
        {
            state.answers.insert(done, self.table.get(&key));
            state.queue.pop_front();
        }
        state.queue.iter().any(|(waiting, ..)| waiting == ticket)
    }

    fn finish(&self, ticket: u64, key: &u32) -> Option<u32> {
        let answer = self.state.borrow_mut().answers.remove(&ticket);
        answer.unwrap_or_else(|| self.table.get(key))
    }
}

impl Map for Device {
    fn put(&mut self, key: u32, value: u32) -> bool {
        self.table.insert(key, value).is_ok()
    }

    fn take(&mut self, key: &u32) {
        self.table.remove(key);
    }
}

#[test]
fn a_device_that_answers_later_conforms() {
    for (room, latency) in [(0, 0), (64, 0), (64, 40), (20, 200), (256, 3000)] {
        let device = Device { table: BulkMap::new(3), room, latency, state: RefCell::default() };
        let few = Expect { numbers: 300, moment: Moment::Between, ..Expect::default() };
        check(&mut Exact::new(device, |number| number as u32), few);
    }
    let device = Device { table: BulkMap::new(3), room: 64, latency: 0, state: RefCell::default() };
    let wrong = conformance::run(&mut Exact::new(device, |number| number as u32), Expect::default());
    assert_eq!(
        wrong.unwrap_err().check,
        "with changes in between",
        "it doesn't answer what holds at the end"
    );
}

/// How a table may be wrong.
trait Fault {
    /// What it thinks at first.
    fn prepare(map: &BulkMap<u32, u32>, key: u32) -> Option<u32>;
    /// What it says.
    fn finish(map: &BulkMap<u32, u32>, thought: Option<u32>, key: u32) -> Option<u32>;
}

/// A map with a fault.
struct Faulty<F>(BulkMap<u32, u32>, PhantomData<F>);

impl<F: Fault> Lookup for Faulty<F> {
    type Key = u32;
    type Value = u32;
    type Probe = Option<u32>;

    fn prepare(&self, key: &u32) -> Option<u32> {
        F::prepare(&self.0, *key)
    }

    fn finish(&self, probe: Option<u32>, key: &u32) -> Option<u32> {
        F::finish(&self.0, probe, *key)
    }
}

impl<F: Fault> Map for Faulty<F> {
    fn put(&mut self, key: u32, value: u32) -> bool {
        self.0.insert(key, value).is_ok()
    }

    fn take(&mut self, key: &u32) {
        self.0.remove(key);
    }
}

/// Answers when it is asked, and not when it should.
struct Hasty;

impl Fault for Hasty {
    fn prepare(map: &BulkMap<u32, u32>, key: u32) -> Option<u32> {
        map.get(&key)
    }

    fn finish(_: &BulkMap<u32, u32>, thought: Option<u32>, _: u32) -> Option<u32> {
        thought
    }
}

/// Takes every 16th key for its neighbour.
struct Careless;

impl Fault for Careless {
    fn prepare(_: &BulkMap<u32, u32>, _: u32) -> Option<u32> {
        None
    }

    fn finish(map: &BulkMap<u32, u32>, _: Option<u32>, key: u32) -> Option<u32> {
        map.get(&if key % 16 == 3 { key ^ 1 } else { key })
    }
}

#[test]
fn what_does_not_conform_is_found() {
    let hasty = conformance::run(
        &mut Exact::new(Faulty::<Hasty>(BulkMap::new(1), PhantomData), |n| n as u32),
        Expect::default(),
    );
    assert_eq!(hasty.unwrap_err().check, "with changes in between");
    let careless = conformance::run(
        &mut Exact::new(Faulty::<Careless>(BulkMap::new(1), PhantomData), |n| n as u32),
        Expect::default(),
    );
    assert!(careless.is_err());
    let never = conformance::run(&mut Flows::<false>::new(0), Expect::default());
    assert_eq!(never.unwrap_err().check, "reach", "a table that takes nothing shows nothing");
}
