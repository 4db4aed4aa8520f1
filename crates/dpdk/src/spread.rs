//! Which receive queue a subscriber's packets come to, and its change while traffic runs.
//!
//! **The problem.** A worker owns shards, and a shard is nine bits of a hash of the subscriber's address. A NIC that hashes the
//! same address brings packets straight to their owner; on any other they take the way over a ring.
//!
//! **The model.** At start the device is asked by `rte_flow` to hash the one address that counts: uplink the source inside
//! GTP-U, downlink the destination, of IPv6 the upper 64 bits, with the key of [`packet::rss`]. Some drivers (ice, i40e) take such
//! rules only without queues and spread by the port's own redirection table; others (mlx5) want them with a list of
//! queues, and keep a table per rule. Both are tried, in this order ([`Spread`]). What a device refuses is done in software; which
//! it was is among the port's [remarks](io::Port::remarks).
//!
//! **Redirection.** Where the port's own table decides, and has an entry for each shard (512 or a multiple of it), moving a shard
//! writes its entries. The table is read back, which makes the device carry the write out, and after [`SETTLE`] packets
//! that the NIC had already spread are in their queue. The bits of the hash that choose an entry are the lowest ones, on every NIC
//! that DPDK drives.
//!
//! **The cost.** None per packet. A change is some commands to the NIC: microseconds, or with firmware in between a millisecond.

use crate::device::Device;
use crate::error::cause;
use crate::ffi;
use crate::flow::RteFlow;
use io::offload::{Action, FlowOffload, FlowRule};
use io::redirection::{ENTRIES, RedirectError, Redirection};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tables::Nanos;
use tables::clock::Tsc;

/// From a change of the table to the last packet that took the old way: a NIC's receive pipeline and its write to memory take a few
/// microseconds.
pub const SETTLE: Duration = Duration::from_micros(20);
/// The longest table that is handled.
const LONGEST: usize = 4096;
/// In a table to be written: leave this entry as it is.
const LEAVE: u16 = u16::MAX;

/// How a device spreads packets over receive queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spread {
    /// There is one queue.
    One,
    /// By the subscriber's address, through the port's redirection table.
    Table,
    /// By the subscriber's address, through tables of the rules' own.
    Rules,
    /// Some other way, for this reason.
    Otherwise(String),
}

/// What came of asking.
#[derive(Debug)]
pub(crate) struct Spreading {
    pub(crate) spread: Spread,
    /// Entries of the port's redirection table; 0: it has none that can be written.
    pub(crate) entries: usize,
    /// Why not.
    refused: Option<String>,
    /// Holds the rules.
    _flows: Option<RteFlow>,
}

impl Spreading {
    /// Nobody was asked.
    pub(crate) const fn none() -> Self {
        Self { spread: Spread::One, entries: 0, refused: None, _flows: None }
    }

    /// Asks a device that has started to spread packets by subscriber over the first `queues` queues. `rank`: of the rules, behind
    /// those that steer to queues beside these; 0: there are none.
    pub(crate) fn ask(device: &Arc<Device>, queues: u16, rank: u8) -> Self {
        if queues < 2 && rank == 0 {
            return Self::none();
        }
        let table = PortTable(Arc::clone(device));
        let even = |entries| (0..entries).map(|entry| (entry % ENTRIES) as u16 % queues).collect::<Vec<_>>();
        let (entries, refused) = match table.entries() {
            0 => (0, Some("it has none".to_owned())),
            entries => match table.write(&even(entries)) {
                Ok(()) => (entries, None),
                Err(why) => (0, Some(why)),
            },
        };
        if queues < 2 {
            return Self { entries, refused, ..Self::none() };
        }
        let mut flows = RteFlow::without_asking(Arc::clone(device));
        let mut outcome = |spread, rules: [FlowRule; 4], rank| {
            flows.priority = rank;
            for rule in rules {
                if let Err(refused) = flows.insert(Nanos(0), &rule) {
                    // All or none: half of the traffic by another hash would be worse to understand than all of it.
                    let _ = flows.flush();
                    return Err(format!("{}: {refused}", kind(&rule)));
                }
            }
            Ok(spread)
        };
        // Without queues a rule says what is hashed, and goes well with any other: drivers that know no priorities take it.
        let by_table = match outcome(Spread::Table, by_subscriber(&[]), rank) {
            Err(_) if rank > 0 => outcome(Spread::Table, by_subscriber(&[]), 0),
            first => first,
        };
        let spread = by_table.or_else(|first| {
            let all: Vec<u16> = (0..queues).collect();
            let second =
                |second| if second == first { first } else { format!("{first}; with queues: {second}") };
            outcome(Spread::Rules, by_subscriber(&all), rank).map_err(second)
        });
        let spread = spread.unwrap_or_else(Spread::Otherwise);
        let held = matches!(spread, Spread::Table | Spread::Rules).then_some(flows);
        Self { spread, entries, refused, _flows: held }
    }

    /// Whether packets come to the queue that belongs to the subscriber.
    pub(crate) const fn by_subscriber(&self) -> bool {
        matches!(self.spread, Spread::One | Spread::Table | Spread::Rules)
    }

    /// Whether an entry of the table is for one shard.
    pub(crate) fn per_shard(&self) -> bool {
        self.spread == Spread::Table && self.entries > 0 && self.entries.is_multiple_of(ENTRIES)
    }

    /// A handle on the table, where moving a shard needs no more than to change it.
    pub(crate) fn redirection(&self, device: &Arc<Device>, queues: u16) -> Option<Box<dyn Redirection>> {
        let table = || Table::new(PortTable(Arc::clone(device)), self.entries, queues, Tsc::process());
        self.per_shard().then(|| Box::new(table()) as Box<dyn Redirection>)
    }

    /// For people.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let spread = match &self.spread {
            Spread::One => return Vec::new(),
            Spread::Table | Spread::Rules => "its RSS hashes the subscriber's address".to_owned(),
            Spread::Otherwise(why) => format!(
                "its RSS can't hash the subscriber's address ({why}): packets reach their worker by hand-off"
            ),
        };
        let moves = match (&self.spread, self.entries, &self.refused) {
            (Spread::Otherwise(_), ..) => return vec![spread],
            _ if self.per_shard() => {
                format!("its redirection table of {} entries follows shards that move", self.entries)
            }
            (Spread::Rules, ..) => {
                "its RSS rules have tables of their own, which can't be changed: packets of shards \
                                    that move are handed over by software"
                    .into()
            }
            (_, entries, None) => format!(
                "its redirection table of {entries} entries has none per shard ({ENTRIES}): packets of shards that move \
                 are handed over by software"
            ),
            (_, _, Some(why)) => format!(
                "its redirection table can't be changed ({why}): packets of shards that move are handed over by software"
            ),
        };
        vec![spread, moves]
    }

    /// What the port's table holds.
    pub(crate) fn table(&self, device: &Arc<Device>) -> Vec<u16> {
        PortTable(Arc::clone(device)).read(self.entries).unwrap_or_default()
    }
}

/// The rules of [`DpdkPort::spreading_rules`](crate::DpdkPort::spreading_rules), over these queues; none: by the port's own table.
fn by_subscriber(queues: &[u16]) -> [FlowRule; 4] {
    let mut rules = crate::DpdkPort::spreading_rules(0);
    for action in rules.iter_mut().flat_map(|rule| &mut rule.actions) {
        if let Action::Rss { queues: of_rule, .. } = action {
            *of_rule = queues.to_vec();
        }
    }
    rules
}

fn kind(rule: &FlowRule) -> &'static str {
    match (rule.pattern.tunnel.is_some(), rule.pattern.v6) {
        (true, false) => "IPv4 in GTP-U",
        (true, true) => "IPv6 in GTP-U",
        (false, false) => "IPv4",
        (false, true) => "IPv6",
    }
}

/// Where a table is kept.
trait Registers: Send {
    /// Writes the entries that aren't [`LEAVE`].
    fn write(&self, table: &[u16]) -> Result<(), String>;
    /// As many entries as there are.
    fn read(&self, entries: usize) -> Result<Vec<u16>, String>;
}

/// The table of a DPDK port.
struct PortTable(Arc<Device>);

/// Drivers read a table, change it and write it back.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

impl PortTable {
    fn entries(&self) -> usize {
        // SAFETY: the port is open.
        let entries = usize::from(unsafe { ffi::mr_reta_size(self.0.port()) });
        if entries <= LONGEST { entries } else { 0 }
    }
}

impl Registers for PortTable {
    fn write(&self, table: &[u16]) -> Result<(), String> {
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = table.len().min(LONGEST) as u16;
        // SAFETY: the port is open; as many entries are read as there are.
        match unsafe { ffi::mr_reta_write(self.0.port(), table.as_ptr(), entries) } {
            0 => Ok(()),
            errno => Err(cause(errno)),
        }
    }

    fn read(&self, entries: usize) -> Result<Vec<u16>, String> {
        let mut table = vec![0; entries.min(LONGEST)];
        // SAFETY: the port is open; room for as many entries as are asked for.
        match unsafe { ffi::mr_reta_read(self.0.port(), table.as_mut_ptr(), table.len() as u16) } {
            0 => Ok(table),
            errno => Err(cause(errno)),
        }
    }
}

/// A table with an entry, or several, for each shard.
struct Table<R> {
    registers: R,
    queues: u16,
    clock: Tsc,
    changed: Option<Nanos>,
    /// What is written next.
    next: Vec<u16>,
}

impl<R: Registers> Table<R> {
    fn new(registers: R, entries: usize, queues: u16, clock: Tsc) -> Self {
        Self { registers, queues, clock, changed: None, next: vec![LEAVE; entries] }
    }
}

impl<R: Registers> Redirection for Table<R> {
    fn redirect(&mut self, entries: &[u16], queue: u16) -> Result<(), RedirectError> {
        if queue >= self.queues {
            return Err(RedirectError::Queue { queue, queues: self.queues });
        }
        self.next.fill(LEAVE);
        for shards in self.next.chunks_exact_mut(ENTRIES) {
            for entry in entries {
                if let Some(place) = shards.get_mut(usize::from(*entry)) {
                    *place = queue;
                }
            }
        }
        self.registers.write(&self.next).map_err(RedirectError::Device)?;
        // Reading makes the device carry out what was written before. That it can't be read doesn't undo the change.
        let _ = self.registers.read(self.next.len());
        self.changed = Some(self.clock.now());
        Ok(())
    }

    fn settled(&mut self) -> bool {
        self.changed.is_none_or(|changed| self.clock.now() >= changed.plus(SETTLE.as_nanos() as u64))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A table in memory, which may refuse.
    struct Fake(Arc<Mutex<Vec<u16>>>);

    impl Registers for Fake {
        fn write(&self, table: &[u16]) -> Result<(), String> {
            let mut entries = self.0.lock().unwrap();
            if entries.is_empty() {
                return Err("no".into());
            }
            assert_eq!(entries.len(), table.len());
            for (entry, new) in entries.iter_mut().zip(table).filter(|(_, new)| **new != LEAVE) {
                *entry = *new;
            }
            Ok(())
        }

        fn read(&self, entries: usize) -> Result<Vec<u16>, String> {
            let table = self.0.lock().unwrap().clone();
            (table.len() == entries).then_some(table).ok_or_else(|| "no".into())
        }
    }

    #[test]
    fn a_shard_moves_with_all_its_entries_and_no_other() {
        for entries in [512, 2048] {
            let memory = Arc::new(Mutex::new(vec![0; entries]));
            let mut table = Table::new(Fake(Arc::clone(&memory)), entries, 4, Tsc::process());
            assert!(table.settled(), "nothing was changed yet");
            table.redirect(&[3, 511, 512, 60_000], 2).unwrap();
            assert!(!table.settled());
            let moved = |memory: &[u16]| (0..memory.len()).filter(|&at| memory[at] == 2).collect::<Vec<_>>();
            let expected: Vec<_> = (0..entries).filter(|at| matches!(at % 512, 3 | 511)).collect();
            assert_eq!(moved(&memory.lock().unwrap()), expected);
            table.redirect(&[3], 1).unwrap();
            assert!(!moved(&memory.lock().unwrap()).contains(&3));
            assert!(moved(&memory.lock().unwrap()).contains(&511), "what moved before stays");
            let start = std::time::Instant::now();
            while !table.settled() {
                assert!(start.elapsed() < Duration::from_secs(1));
            }
        }
    }

    #[test]
    fn refusals_change_nothing() {
        let mut table = Table::new(Fake(Arc::default()), 512, 2, Tsc::process());
        assert_eq!(table.redirect(&[1], 2), Err(RedirectError::Queue { queue: 2, queues: 2 }));
        assert_eq!(table.redirect(&[1], 1), Err(RedirectError::Device("no".into())));
        assert!(table.settled());
    }

    fn outcome(spread: Spread, entries: usize, refused: Option<&str>) -> Spreading {
        Spreading { spread, entries, refused: refused.map(str::to_owned), _flows: None }
    }

    #[test]
    fn only_a_table_with_an_entry_per_shard_follows_shards() {
        for (spread, entries, follows) in [
            (Spread::Table, 512, true),
            (Spread::Table, 2048, true),
            (Spread::Table, 128, false),
            (Spread::Table, 0, false),
            (Spread::Rules, 512, false),
            (Spread::Otherwise("it is blind".into()), 512, false),
        ] {
            let refused = (entries == 0).then_some("it has none");
            let spreading = outcome(spread, entries, refused);
            assert_eq!(spreading.per_shard(), follows, "{spreading:?}");
            let remarks = spreading.remarks().join("; ");
            assert_eq!(remarks.contains("follows shards"), follows, "{remarks}");
            assert_eq!(remarks.contains("hand"), !follows, "{remarks}");
        }
        assert!(outcome(Spread::One, 0, None).remarks().is_empty());
    }
}
