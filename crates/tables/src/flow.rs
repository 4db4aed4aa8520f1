//! What is known of each of many millions of flows.
//!
//! **Problem.** A flow's first packet is worked out at leisure; for those that follow, the result must be found by a key
//! of up to 36 bytes, at the price of the lines that have to be read anyhow. Flows come at a hundred thousand a second and most are
//! never closed: the table must grow without a stall, forget what is idle, and when it's full give up what matters least.
//!
//! **Layout.** A flow is one line of 64 bytes, key and value side by side. The lines lie close together, the last one
//! fills the gap that a removed one leaves, and their storage grows in chunks, so that no line is ever copied to make room. A
//! [`BulkMap`] leads from 32 bits of the key's hash, the *signature*, to the number of the line; the whole key is compared
//! only there. Where the signature is taken by another flow, the other half of the hash serves as its *alias*. An absent
//! flow costs one line as long as no flow of the table lives under its alias, two after that. Beside each line, 16 bytes
//! link it into a timer wheel.
//!
//! **Age.** A timer isn't moved when a packet passes: the flow's value says, when the timer is due, until when it is to be
//! kept, and if that is later the timer is set anew. So a deadline may be put off for free by writing to the value; only one that
//! becomes *earlier* needs [`FlowTable::reschedule`].
//!
//! **Eviction.** At the limit, an insertion makes room: of the [`SAMPLE`] flows whose timers are due first it gives up the one with the earliest
//! deadline. Flows among them that were active since their timer was set get a new one, and if all were, the next ones are looked
//! at, [`ROUNDS`] times in all. So it is exactly the flow with the earliest deadline where all flows have the same timeout and at most
//! `SAMPLE * (ROUNDS - 1)` of those ahead of it were active in between. Otherwise the timers looked at are those of the
//! first occupied slot of the wheel, which spans up to a 64th of the turn that its wheel stands for: some seconds for minutes ahead.
//!
//! **Use on the packet path.** Phases, interleaved over a burst and any number of tables:
//!
//! ```
//! use tables::{FlowKey, FlowTable, FlowValue, Lookup, Nanos, hash::mix};
//! #[derive(Clone, Copy, PartialEq, Eq)]
//! struct Key([u64; 2]);
//! impl FlowKey for Key {
//!     fn hash(&self, seed: u64) -> u64 {
//!         mix(mix(self.0[0] ^ seed, 0x9e37_79b9_7f4a_7c15) ^ self.0[1], seed | 1)
//!     }
//! }
//! struct Flow { packets: u64, last: Nanos }
//! impl FlowValue for Flow {
//!     fn deadline(&self) -> Nanos {
//!         self.last.plus(30 * Nanos::SECOND)
//!     }
//! }
//! let mut table = FlowTable::new(0x5eed, 1_000_000, Nanos(0));
//! table.insert(Key([1, 2]), Flow { packets: 1, last: Nanos(0) })?;
//! let burst = [Key([1, 2]), Key([3, 4])];
//! let mut probes = burst.map(|key| table.prepare(&key)); // hashes, and prefetches the bucket
//! for (probe, key) in probes.iter_mut().zip(&burst) {
//!     table.step(probe, key); // compares signatures, and prefetches the line
//! }
//! for (key, probe) in burst.iter().zip(probes) {
//!     if let Some(flow) = table.confirm(probe, key) { // compares the whole key
//!         flow.packets += 1;
//!         flow.last = Nanos(20 * Nanos::SECOND);
//!     }
//! }
//! let mut ended = Vec::new();
//! table.expire(Nanos(40 * Nanos::SECOND), &mut |_, flow| ended.push(flow.packets));
//! assert!(ended.is_empty(), "its timer was due, but a packet had passed since");
//! table.expire(Nanos(51 * Nanos::SECOND), &mut |_, flow| ended.push(flow.packets));
//! assert_eq!(ended, [2]);
//! # Ok::<(), tables::FlowError>(())
//! ```
//!
//! **Cost.** A look-up reads two lines: a bucket and the flow's own. 64 bytes of line, 16 of timer, up to a quarter of both reserved ahead,
//! and 10 to 20 of index make 96 to 120 bytes a flow. An empty table owns no memory, one with a flow about 3 KiB. An insertion whose lines were
//! prefetched takes a third less than one that waits for them. It allocates now and then (a chunk, a segment of the index), and
//! the system gives memory page by page as it is first written to: where nothing may wait for that, there are [`crate::supply`] and
//! [`FlowTable::reserve`].
//!
//! **When not to use it.** For values that don't fit the line together with their key (the compiler refuses them), or that must not
//! move: a flow's [`FlowId`] is good for one burst. For keys of 8 bytes, [`BulkMap`] is half as large and half the lines.

use crate::chunks::Chunks;
use crate::dial::{Dial, Due, Link};
use crate::hash::{BulkMap, Probe, mix};
use crate::lookup::Lookup;
use crate::supply::{Claim, Supply};
use crate::time::Nanos;

/// The key of a flow.
pub trait FlowKey: Copy + Eq {
    /// A 64-bit hash whose upper and lower halves are both well mixed, different for every seed: without the seed nobody can choose
    /// keys whose hashes agree, see [`mix`].
    fn hash(&self, seed: u64) -> u64;
}

/// What a flow's value tells the table.
pub trait FlowValue {
    /// When the flow is to be forgotten if nothing more happens.
    fn deadline(&self) -> Nanos;
}

/// Why a flow was not taken; the table is as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowError {
    /// Both of its signatures belong to others: one flow in some hundred thousand among 16 million in one table, and
    /// practically never among some ten thousand. It may be taken when one of those is gone.
    Collision,
    /// The index can't grow (no memory, or beyond some 2^30 flows), or the table's limit is 0.
    Full,
}

impl std::fmt::Display for FlowError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Collision => "both signatures of the flow belong to others",
            Self::Full => "no room left in the flow table",
        })
    }
}

impl std::error::Error for FlowError {}

/// A key's hash between the phases of a look-up, and where its flow probably is. It stays valid whatever happens to the table in
/// between: who isn't there any more is looked for again.
#[derive(Clone, Copy, Default, Debug)]
pub struct FlowProbe {
    hash: u64,
    bucket: Probe,
    at: At,
}

/// How far a look-up is.
#[derive(Clone, Copy, Default, Debug)]
enum At {
    /// The signature's home bucket was asked for.
    #[default]
    Home,
    /// It isn't there; the other bucket was asked for.
    Other,
    /// This line was asked for.
    Line(u32),
    /// It is in neither bucket.
    Nowhere,
}

impl FlowProbe {
    /// What the index knows a flow by.
    #[inline(always)]
    const fn signature(hash: u64) -> u32 {
        (hash >> 32) as u32
    }

    /// What it knows it by if that belongs to another flow.
    #[inline(always)]
    const fn alias(hash: u64) -> u32 {
        hash as u32
    }
}

/// Where a flow is: good until the table is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowId(u32);

impl FlowId {
    /// The number of its line. After a change of the table it is a guess ([`FlowTable::guess`]).
    #[inline(always)]
    pub const fn line(self) -> u32 {
        self.0
    }
}

/// One line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Entry<K, V> {
    key: K,
    value: V,
}

/// Flows that an eviction compares with each other.
pub const SAMPLE: usize = 8;
/// How often an eviction goes on to the next flows because all it saw were active.
pub const ROUNDS: usize = 4;
/// Resolution of the timers: 16.8 ms.
const TICK_NANOS: u64 = 1 << 24;
/// Apart from each other: the hash of the key and that of its signature.
const INDEX_SALT: u64 = 0xa54f_f53a_5f1d_36f1;

/// A table of flows with keys `K` and values `V`; see the module's documentation.
///
/// What leaves the table is always handed to the caller, so that what a flow counted is never lost: by [`Self::insert`],
/// [`Self::remove`] or [`Self::expire`].
// The index begins a line, and what look-ups read besides is in the next one.
#[repr(C)]
pub struct FlowTable<K, V> {
    index: BulkMap<u32, u32, 7>,
    seed: u64,
    entries: Chunks<Entry<K, V>>,
    /// Flows that the index knows by their alias.
    aliases: u32,
    limit: u32,
    /// The timer of each entry, under the same number.
    timers: Chunks<Link>,
    dial: Dial,
    budget: usize,
    /// What it will take of a supply.
    claim: Claim,
}

impl<K: FlowKey, V: FlowValue> FlowTable<K, V> {
    /// Timers that one [`Self::expire`] handles unless told otherwise: each may cost ten lines, so these take some 20 us.
    pub const BUDGET: usize = 32;

    /// An empty table of at most `limit` flows, which owns no memory. The seed should be random.
    pub fn new(seed: u64, limit: u32, now: Nanos) -> Self {
        const { assert!(size_of::<Entry<K, V>>() == 64, "a flow's key and value share one line of 64 bytes") }
        Self {
            index: BulkMap::new(mix(seed ^ INDEX_SALT, INDEX_SALT)),
            seed,
            entries: Chunks::new(),
            aliases: 0,
            // The last number means "none" in the lists of timers.
            limit: limit.min(u32::MAX - 1),
            timers: Chunks::new(),
            dial: Dial::new(now, TICK_NANOS),
            budget: Self::BUDGET,
            claim: Claim::default(),
        }
    }

    /// Handles at most this many timers per [`Self::expire`].
    #[must_use]
    pub const fn with_budget(mut self, timers: usize) -> Self {
        self.budget = if timers == 0 { 1 } else { timers };
        self
    }

    /// Takes the memory that so many flows need at once, where flows come later and not one may wait for memory: the table has
    /// it and has written to it, since the first write to each page is when the system looks for one. Does nothing for a table
    /// that has flows, and no more than the table's limit asks for.
    pub fn reserve(&mut self, flows: u32) {
        let flows = flows.min(self.limit);
        if !self.is_empty() || flows == 0 {
            return;
        }
        self.index = BulkMap::with_capacity(self.index.seed(), flows as usize);
        self.entries.occupy(flows);
        self.timers.occupy(flows);
        self.dial.settle_in();
    }

    /// The table will be grown with this supply ([`Self::enter_from`]), until it leaves it.
    pub fn join(&mut self, supply: &mut Supply<K, V>) {
        let next = self.next_claim();
        supply.exchange(&mut self.claim, next);
    }

    /// It will not any more.
    pub fn leave(&mut self, supply: &mut Supply<K, V>) {
        supply.exchange(&mut self.claim, Claim::default());
    }

    /// Another limit from now on. Flows beyond a lower one stay until they end, but none comes beside them. A table that has joined a supply
    /// joins it once more.
    pub const fn set_limit(&mut self, limit: u32) {
        // The last number means "none" in the lists of timers.
        self.limit = if limit < u32::MAX { limit } else { u32::MAX - 1 };
    }

    /// Number of flows.
    pub const fn len(&self) -> usize {
        self.entries.len() as usize
    }

    /// Whether there are no flows.
    pub const fn is_empty(&self) -> bool {
        self.entries.len() == 0
    }

    /// Bytes of memory that the table owns, itself included.
    pub fn memory(&self) -> usize {
        size_of::<Self>() - size_of_val(&self.index)
            + self.index.memory()
            + self.entries.memory()
            + self.timers.memory()
            + self.dial.memory()
    }

    /// The last phase of a look-up, as [`Lookup::finish`], for the value itself.
    #[inline(always)]
    pub fn confirm(&mut self, probe: FlowProbe, key: &K) -> Option<&mut V> {
        let FlowId(id) = self.finish(probe, key)?;
        self.entries.get_mut(id).map(|entry| &mut entry.value)
    }

    /// First phase of the look-up of a flow that somebody says is in this line, who may be wrong: asks for the line, and not for the bucket.
    /// [`Self::verify`] has to be next.
    #[inline(always)]
    pub fn guess(&self, key: &K, line: u32) -> FlowProbe {
        self.entries.prefetch(line);
        FlowProbe { at: At::Line(line), ..self.probe(key) }
    }

    /// Second phase: if the flow isn't there, its look-up begins as [`Lookup::prepare`] would have it. Whether it is there. Says no of
    /// look-ups that began otherwise, and leaves them as they are.
    #[inline(always)]
    pub fn verify(&self, probe: &mut FlowProbe, key: &K) -> bool {
        let At::Line(line) = probe.at else { return false };
        let is_there = self.holds(line, key);
        if !is_there {
            self.index.fetch(probe.bucket);
            probe.at = At::Home;
        }
        is_there
    }

    /// Whose flow it is, and its value.
    pub fn flow(&self, FlowId(id): FlowId) -> Option<(&K, &V)> {
        self.entries.get(id).map(|entry| (&entry.key, &entry.value))
    }

    /// The value of a flow: all steps at once.
    pub fn get(&self, key: &K) -> Option<&V> {
        let id = self.find(self.probe(key), key)?;
        self.entries.get(id).map(|entry| &entry.value)
    }

    /// The value of a flow, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let id = self.find(self.probe(key), key)?;
        self.entries.get_mut(id).map(|entry| &mut entry.value)
    }

    /// For a flow that no [`Lookup::step`] found and that is going to be entered: asks for what [`Self::enter`] is going to
    /// write beside the bucket, which should be there by now.
    pub fn expect(&self, probe: FlowProbe) {
        self.index.foresee(probe.bucket);
        self.entries.prefetch_next();
        self.timers.prefetch_next();
    }

    /// Adds a flow. Returns what had to leave for it: the former value of an equal key, or at the limit another
    /// flow (which one: see the module's documentation).
    pub fn insert(&mut self, key: K, value: V) -> Result<Option<(K, V)>, FlowError> {
        self.enter(self.probe(&key), key, value)
    }

    /// As [`Self::insert`], for a key that was prepared.
    pub fn enter(&mut self, probe: FlowProbe, key: K, value: V) -> Result<Option<(K, V)>, FlowError> {
        self.enter_growing(probe, key, value, None)
    }

    /// Likewise; if the table has to grow for it, with memory of the supply that it has joined.
    pub fn enter_from(
        &mut self,
        supply: &mut Supply<K, V>,
        probe: FlowProbe,
        key: K,
        value: V,
    ) -> Result<Option<(K, V)>, FlowError> {
        self.enter_growing(probe, key, value, Some(supply))
    }

    #[inline(always)]
    fn enter_growing(
        &mut self,
        probe: FlowProbe,
        key: K,
        value: V,
        mut supply: Option<&mut Supply<K, V>>,
    ) -> Result<Option<(K, V)>, FlowError> {
        let tick = self.dial.tick(value.deadline());
        let entry = Entry { key, value };
        let signature = FlowProbe::signature(probe.hash);
        let (mut name, mut bucket, mut is_alias) = (signature, probe.bucket, false);
        match self.index.finish(bucket, &signature) {
            Some(id) if self.holds(id, &entry.key) => return Ok(self.replace(id, entry, tick)),
            None if self.aliases == 0 => {}
            taken => {
                let alias = FlowProbe::alias(probe.hash);
                let other = self.index.probe(&alias);
                match self.index.finish(other, &alias) {
                    Some(id) if self.holds(id, &entry.key) => return Ok(self.replace(id, entry, tick)),
                    Some(_) if taken.is_some() => return Err(FlowError::Collision),
                    None if taken.is_some() => (name, bucket, is_alias) = (alias, other, true),
                    _ => {}
                }
            }
        }
        if self.entries.len() < self.limit {
            let id = self.entries.len();
            let mut grows = false;
            let memory = &mut |length| {
                grows = true;
                supply.as_mut().and_then(|supply| supply.array(length)).unwrap_or_default()
            };
            self.index.insert_growing(bucket, name, id, memory).map_err(|_| FlowError::Full)?;
            self.aliases += u32::from(is_alias);
            if let Some(supply) = supply
                && (grows || self.entries.needs().is_some())
            {
                self.add_chunk(supply);
            }
            self.entries.push(entry);
            self.timers.push(Link::LOOSE);
            self.dial.set(&mut self.timers, id, tick);
            return Ok(None);
        }
        // The new flow takes the line of the one that leaves.
        let id = self.oldest().ok_or(FlowError::Full)?;
        let (former, was_alias) = self.signature(id).ok_or(FlowError::Full)?;
        self.index.insert_absent(bucket, name, id).map_err(|_| FlowError::Full)?;
        self.index.remove(&former);
        self.aliases = self.aliases + u32::from(is_alias) - u32::from(was_alias);
        Ok(self.replace(id, entry, tick))
    }

    /// Gives up a flow as an insertion at the limit does, and returns it.
    pub fn evict(&mut self) -> Option<(K, V)> {
        let id = self.oldest()?;
        self.take(id)
    }

    /// Removes a flow and returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let id = self.find(self.probe(key), key)?;
        self.take(id).map(|(_, value)| value)
    }

    /// Sets the timer of a flow to its present deadline. Needed where that has become earlier (its connection was closed):
    /// otherwise the flow is kept until its former deadline.
    pub fn reschedule(&mut self, key: &K) {
        if let Some(id) = self.find(self.probe(key), key)
            && let Some(tick) = self.tick(id)
        {
            self.set(id, tick);
        }
    }

    /// Forgets flows whose deadline has passed, each handed to `ended`; flows that were active since their timer was set get a new
    /// one. Handles at most [`Self::BUDGET`] timers, the next call goes on from there.
    pub fn expire(&mut self, now: Nanos, ended: &mut impl FnMut(K, V)) {
        let target = self.dial.whole_ticks(now);
        let (mut budget, mut foreseen) = (self.budget, 0);
        while let Due::Timer(id) = self.dial.due(&mut self.timers, target, &mut budget) {
            if foreseen == 0 {
                foreseen = self.foresee_ends();
            }
            foreseen = foreseen.saturating_sub(1);
            match self.tick(id) {
                Some(tick) if tick > target => self.set(id, tick),
                _ => {
                    if let Some((key, value)) = self.take(id) {
                        ended(key, value);
                    }
                }
            }
        }
    }

    /// Asks for what it takes to end the flows whose timers come first: their lines, and those of the flows that will fill the gaps, which come from the
    /// end; where the index has both; and their neighbours in the lists of timers. Says for how many flows.
    #[inline(never)]
    fn foresee_ends(&self) -> usize {
        let Some((sample, count)) = self.sample() else { return 0 };
        let end = self.entries.len();
        let fillers = end.saturating_sub(count as u32)..end;
        for id in fillers.clone() {
            self.entries.prefetch(id);
        }
        for id in sample.into_iter().take(count).chain(fillers) {
            if let (Some(entry), Some(link)) = (self.entries.get(id), self.timers.get(id)) {
                self.index.prepare(&FlowProbe::signature(entry.key.hash(self.seed)));
                self.timers.prefetch(link.next());
                self.timers.prefetch(link.previous());
            }
        }
        count
    }

    /// The earliest time at which [`Self::expire`] may have something to do; `None` without flows.
    pub fn next_event(&self) -> Option<Nanos> {
        self.dial.next_event()
    }

    /// All flows, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|entry| (&entry.key, &entry.value))
    }

    /// Shows the flows with these numbers, of 0 to [`Self::len`]. A number is good until a flow leaves: the last one gets its number.
    pub fn visit(&self, numbers: std::ops::Range<u32>, mut show: impl FnMut(&K, &V)) {
        for entry in numbers.map_while(|id| self.entries.get(id)) {
            show(&entry.key, &entry.value);
        }
    }

    #[inline(always)]
    fn probe(&self, key: &K) -> FlowProbe {
        let hash = key.hash(self.seed);
        FlowProbe { hash, bucket: self.index.probe(&FlowProbe::signature(hash)), at: At::Home }
    }

    #[inline(always)]
    fn holds(&self, id: u32, key: &K) -> bool {
        self.entries.get(id).is_some_and(|entry| entry.key == *key)
    }

    /// Compares signatures, and prefetches the line of the flow that has it. If that is none of those in the home bucket, asks for where
    /// it may be else; true: for the other bucket.
    #[inline(always)]
    fn look_home(&self, probe: &mut FlowProbe) -> bool {
        let (found, is_elsewhere) = self.index.finish_home(probe.bucket, &FlowProbe::signature(probe.hash));
        if let Some(id) = found {
            self.entries.prefetch(id);
            probe.at = At::Line(id);
            return false;
        }
        if self.aliases != 0 {
            self.index.prepare(&FlowProbe::alias(probe.hash));
        }
        probe.at = if is_elsewhere { At::Other } else { At::Nowhere };
        is_elsewhere
    }

    /// The same in the other bucket, where one signature in some ten is.
    #[cold]
    #[inline(never)]
    fn look_elsewhere(&self, probe: &mut FlowProbe) {
        let found = self.index.finish_other(probe.bucket, &FlowProbe::signature(probe.hash));
        probe.at = found.map_or(At::Nowhere, At::Line);
        if let Some(id) = found {
            self.entries.prefetch(id);
        }
    }

    /// The number of a flow.
    fn find(&self, probe: FlowProbe, key: &K) -> Option<u32> {
        match self.index.finish(probe.bucket, &FlowProbe::signature(probe.hash)) {
            Some(id) if self.holds(id, key) => Some(id),
            None if self.aliases == 0 => None,
            _ => self.index.get(&FlowProbe::alias(probe.hash)).filter(|id| self.holds(*id, key)),
        }
    }

    #[cold]
    #[inline(never)]
    fn find_again(&self, probe: FlowProbe, key: &K) -> Option<u32> {
        self.find(probe, key)
    }

    /// What the index knows a flow by, and whether that is its alias.
    fn signature(&self, id: u32) -> Option<(u32, bool)> {
        let hash = self.entries.get(id)?.key.hash(self.seed);
        let signature = FlowProbe::signature(hash);
        let is_alias = self.index.get(&signature) != Some(id);
        Some((if is_alias { FlowProbe::alias(hash) } else { signature }, is_alias))
    }

    /// Takes what the next entry needs from a supply, as far as it is there, and claims what will be needed after that.
    #[cold]
    #[inline(never)]
    fn add_chunk(&mut self, supply: &mut Supply<K, V>) {
        if let Some(length) = self.entries.needs()
            && let Some((entries, timers)) = supply.chunk(length)
        {
            self.entries.add(entries);
            self.timers.add(timers);
        }
        let next = self.entries.len() + 1;
        self.entries.reserve(next);
        self.timers.reserve(next);
        let next = self.next_claim();
        supply.exchange(&mut self.claim, next);
    }

    /// What it takes next.
    fn next_claim(&self) -> Claim {
        let room = self.entries.room();
        let (limit, next) = (self.limit as usize, self.entries.next());
        // One chunk further, so that the index doesn't grow right after it has said so.
        Claim::new((room < limit).then_some(next), self.index.grows_within((room + next).min(limit)))
    }

    /// The tick of a flow's present deadline.
    fn tick(&self, id: u32) -> Option<u64> {
        self.entries.get(id).map(|entry| self.dial.tick(entry.value.deadline()))
    }

    /// Sets a flow's timer anew.
    fn set(&mut self, id: u32, tick: u64) {
        self.dial.unset(&mut self.timers, id);
        self.dial.set(&mut self.timers, id, tick);
    }

    /// Puts an entry in the place of another, of which the index is already right.
    fn replace(&mut self, id: u32, entry: Entry<K, V>, tick: u64) -> Option<(K, V)> {
        self.set(id, tick);
        let Entry { key, value } = std::mem::replace(self.entries.get_mut(id)?, entry);
        Some((key, value))
    }

    /// Removes a flow by its number, which the last one gets.
    fn take(&mut self, id: u32) -> Option<(K, V)> {
        let (signature, is_alias) = self.signature(id)?;
        self.index.remove(&signature);
        self.aliases -= u32::from(is_alias);
        self.dial.unset(&mut self.timers, id);
        let last = self.entries.len() - 1;
        if last != id
            && let Some((signature, _)) = self.signature(last)
        {
            if let Some(number) = self.index.get_mut(&signature) {
                *number = id;
            }
            self.dial.renumber(&mut self.timers, last, id);
        }
        self.timers.swap_remove(id);
        let Entry { key, value } = self.entries.swap_remove(id)?;
        Some((key, value))
    }

    /// The flow to be given up: the one with the earliest deadline of a sample of those whose timers are due first.
    fn oldest(&mut self) -> Option<u32> {
        let mut oldest: Option<(u64, u32)> = None;
        for _ in 0..ROUNDS {
            // A flow is as good as any once its timer is right: what comes behind is due later.
            let mut settled = false;
            let (sample, count) = self.sample()?;
            for id in sample.into_iter().take(count) {
                let (tick, timer) = (self.tick(id)?, self.timers.get(id)?.tick());
                if oldest.is_none_or(|(earliest, _)| tick < earliest) {
                    oldest = Some((tick, id));
                }
                if tick > timer {
                    self.set(id, tick);
                } else {
                    settled = true;
                }
            }
            if settled {
                break;
            }
        }
        oldest.map(|(_, id)| id)
    }

    /// The first flows of the slot that begins first, their lines asked for.
    fn sample(&self) -> Option<([u32; SAMPLE], usize)> {
        let first = self.dial.first()?;
        let mut sample = [first; SAMPLE];
        let mut count = 0;
        let mut id = first;
        for place in &mut sample {
            *place = id;
            count += 1;
            self.entries.prefetch(id);
            id = self.timers.get(id)?.next();
            if id == first {
                break;
            }
        }
        Some((sample, count))
    }
}

/// Three phases, and a second step for the one flow in some ten whose signature isn't in its home bucket.
impl<K: FlowKey, V: FlowValue> Lookup for FlowTable<K, V> {
    type Key = K;
    type Value = FlowId;
    type Probe = FlowProbe;

    #[inline(always)]
    fn prepare(&self, key: &K) -> FlowProbe {
        let probe = self.probe(key);
        self.index.fetch(probe.bucket);
        probe
    }

    #[inline(always)]
    fn step(&self, probe: &mut FlowProbe, _: &K) -> bool {
        match probe.at {
            At::Home => self.look_home(probe),
            At::Other => {
                self.look_elsewhere(probe);
                false
            }
            At::Line(_) | At::Nowhere => false,
        }
    }

    #[inline(always)]
    fn finish(&self, probe: FlowProbe, key: &K) -> Option<FlowId> {
        match probe.at {
            At::Line(id) if self.holds(id, key) => Some(FlowId(id)),
            _ => self.find_again(probe, key).map(FlowId),
        }
    }
}

impl<K, V> std::fmt::Debug for FlowTable<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlowTable")
            .field("len", &self.entries.len())
            .field("limit", &self.limit)
            .field("aliases", &self.aliases)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
