//! One test body for every look-up in phases.
//!
//! A table that passes behaves as [`Lookup`] says: one by one, in bulks of every length, and in phases that somebody else arranges, with
//! steps left out or repeated, in any order, and with changes in between, it gives the answers of a model. [`run`] is called from a
//! table's tests with a [`Subject`], which keeps the model beside the table. It panics nowhere: what is wrong comes back as a
//! [`Failure`].

use crate::hash::mix;
use crate::lookup::{Lookup, in_phases};
use std::fmt::Debug;

/// A table under test, and what it should say.
pub trait Subject {
    /// The table.
    type Table: Lookup<Key: Copy + Debug>;
    /// What a look-up's value says, as the model knows it.
    type Answer: Clone + PartialEq + Debug;

    /// The table.
    fn table(&self) -> &Self::Table;
    /// The key with this number. Several numbers may have the same key.
    fn key(&self, number: u64) -> <Self::Table as Lookup>::Key;
    /// Inserts or replaces what [`Self::key`] of this number finds: in the table, and if it takes it, in the model.
    fn insert(&mut self, number: u64, value: u16);
    /// Removes it from both.
    fn remove(&mut self, number: u64);
    /// What a found value says.
    fn answer(&self, found: <Self::Table as Lookup>::Value) -> Option<Self::Answer>;
    /// What the model says.
    fn expected(&self, key: &<Self::Table as Lookup>::Key) -> Option<Self::Answer>;
}

/// When an answer holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// At [`Lookup::finish`].
    Finish,
    /// At some moment between [`Lookup::prepare`] and [`Lookup::finish`].
    Between,
}

/// What to expect of a table, and how long to try.
#[derive(Clone, Copy, Debug)]
pub struct Expect {
    /// Numbers that are inserted and removed; as many again are only looked up.
    pub numbers: u64,
    /// In the first half of the rounds the table grows, in the second it shrinks.
    pub rounds: u32,
    /// When its answers hold.
    pub moment: Moment,
    /// Of what is done in which order.
    pub seed: u64,
}

impl Default for Expect {
    fn default() -> Self {
        Self { numbers: 1000, rounds: 24, moment: Moment::Finish, seed: 1 }
    }
}

/// What a table does not do as it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The check that failed.
    pub check: &'static str,
    /// What was seen instead.
    pub detail: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.check, self.detail)
    }
}

impl std::error::Error for Failure {}

/// What was looked up when everything passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Answers with a value.
    pub hits: u64,
    /// Answers without.
    pub misses: u64,
    /// Answers that changed between `prepare` and `finish`.
    pub changed: u64,
}

/// Lengths of bulks: none, one, and those around the group's and the burst's.
const LENGTHS: [usize; 9] = [0, 1, 31, 32, 33, 63, 64, 65, 1000];
/// Changes between `prepare` and `finish`: few, and enough for a growth.
const CHANGES: [usize; 3] = [1, 8, 300];

type Key<S> = <<S as Subject>::Table as Lookup>::Key;
type Probe<S> = <<S as Subject>::Table as Lookup>::Probe;
type Answers<S> = Vec<Option<<S as Subject>::Answer>>;

fn ensure(ok: bool, check: &'static str, detail: impl FnOnce() -> String) -> Result<(), Failure> {
    if ok { Ok(()) } else { Err(Failure { check, detail: detail() }) }
}

/// The body.
pub fn run<S: Subject>(subject: &mut S, expect: Expect) -> Result<Report, Failure> {
    let mut rig = Rig { subject, expect, state: expect.seed, asked: Vec::new(), report: Report::default() };
    rig.check()?;
    for round in 0..expect.rounds {
        let grows = round < expect.rounds / 2;
        for _ in 0..rig.below(2 * expect.numbers / u64::from(expect.rounds.max(1)) + 1) * 4 {
            rig.change(grows);
        }
        rig.check()?;
    }
    for number in 0..expect.numbers {
        rig.subject.remove(number);
    }
    rig.check()?;
    let report = rig.report;
    ensure(report.hits > 0 && report.misses > 0 && report.changed > 0, "reach", || format!("{report:?}"))?;
    Ok(report)
}

struct Rig<'s, S> {
    subject: &'s mut S,
    expect: Expect,
    state: u64,
    /// The numbers that are looked up.
    asked: Vec<u64>,
    report: Report,
}

impl<S: Subject> Rig<'_, S> {
    fn below(&mut self, limit: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state, 0xd6e8_feb8_6659_fd93) % limit.max(1)
    }

    /// Inserts three times out of four, or once; every other time, what is being looked up.
    fn change(&mut self, grows: bool) {
        let (any, asked) = (self.below(self.expect.numbers), self.below(2 * self.asked.len() as u64));
        let number = self.asked.get(asked as usize).copied().filter(|number| *number < self.expect.numbers);
        let number = number.unwrap_or(any);
        if (self.below(4) == 0) == grows {
            self.subject.remove(number);
        } else {
            let value = self.below(1 << 16) as u16;
            self.subject.insert(number, value);
        }
    }

    /// Half of them were or are inserted; one in four is there twice.
    fn keys(&mut self, count: usize) -> Vec<Key<S>> {
        self.asked.clear();
        for at in 0..count {
            let (number, earlier) = (self.below(2 * self.expect.numbers), self.below(4 * at as u64 + 1));
            self.asked.push(self.asked.get(earlier as usize).copied().unwrap_or(number));
        }
        self.asked.iter().map(|number| self.subject.key(*number)).collect()
    }

    fn expected(&self, keys: &[Key<S>]) -> Answers<S> {
        keys.iter().map(|key| self.subject.expected(key)).collect()
    }

    /// Holds answers to what may be expected of each; all answers are expected that the model gave meanwhile.
    fn compare(
        &mut self,
        check: &'static str,
        keys: &[Key<S>],
        found: &Answers<S>,
        expected: &[Answers<S>],
    ) -> Result<(), Failure> {
        for (at, (key, found)) in keys.iter().zip(found).enumerate() {
            let mut ever = expected.iter().map(|answers| answers.get(at).and_then(Option::as_ref));
            let is_right = match self.expect.moment {
                Moment::Finish => ever.next_back() == Some(found.as_ref()),
                Moment::Between => ever.any(|answer| answer == found.as_ref()),
            };
            ensure(is_right, check, || {
                let mut said: Vec<_> =
                    expected.iter().map(|answers| answers.get(at).cloned().flatten()).collect();
                said.dedup();
                format!("{key:?}, {at} of {}: {found:?}, model {said:?}", keys.len())
            })?;
            let changed =
                expected.iter().any(|answers| answers.get(at) != expected.last().and_then(|e| e.get(at)));
            self.report.changed += u64::from(changed);
            *(if found.is_some() { &mut self.report.hits } else { &mut self.report.misses }) += 1;
        }
        ensure(found.len() == keys.len(), check, || format!("{} answers of {}", found.len(), keys.len()))
    }

    fn answers(&self, out: Vec<Option<<S::Table as Lookup>::Value>>) -> Answers<S> {
        out.into_iter().map(|found| found.and_then(|found| self.subject.answer(found))).collect()
    }

    fn check(&mut self) -> Result<(), Failure> {
        for length in LENGTHS {
            let keys = self.keys(length);
            let expected = [self.expected(&keys)];
            let table = self.subject.table();
            let single = keys.iter().map(|key| table.lookup(key)).collect();
            self.compare("one by one", &keys, &self.answers(single), &expected)?;
            self.bulks(&keys, &expected)?;
            self.phases("in phases", &keys, 0, expected.to_vec())?;
        }
        for changes in CHANGES {
            let keys = self.keys(65);
            let before = self.expected(&keys);
            self.phases("with changes in between", &keys, changes, vec![before])?;
        }
        Ok(())
    }

    /// Both ways of bulks, with as much room for answers, less and more.
    fn bulks(&mut self, keys: &[Key<S>], expected: &[Answers<S>]) -> Result<(), Failure> {
        for (room, count) in
            [(keys.len(), keys.len()), (keys.len() + 7, keys.len()), (keys.len() / 2, keys.len() / 2)]
        {
            let blank = || (0..room).map(|_| None).collect::<Vec<_>>();
            let (mut out, mut phased) = (blank(), blank());
            self.subject.table().lookup_bulk(keys, &mut out);
            in_phases(self.subject.table(), keys, &mut phased);
            for (check, mut out) in [("in bulk", out), ("in bulk, by phases", phased)] {
                ensure(out.iter().skip(count).all(Option::is_none), check, || "wrote too far".into())?;
                out.truncate(count);
                self.compare(check, keys.get(..count).unwrap_or(keys), &self.answers(out), expected)?;
            }
        }
        Ok(())
    }

    /// Look-ups that proceed one step here and one step there, some to their end, some not at all, while the table changes.
    fn phases(
        &mut self,
        check: &'static str,
        keys: &[Key<S>],
        changes: usize,
        mut expected: Vec<Answers<S>>,
    ) -> Result<(), Failure> {
        let mut probes: Vec<Probe<S>> = keys.iter().map(|key| self.subject.table().prepare(key)).collect();
        self.steps(keys, &mut probes);
        let grows = self.below(2) == 0;
        for _ in 0..changes {
            self.change(grows);
            expected.push(self.expected(keys));
            if self.below(4) == 0 {
                self.steps(keys, &mut probes);
            }
        }
        // The order of the ends isn't that of the beginnings.
        let first = self.below(keys.len() as u64) as usize;
        let order: Vec<usize> = (first..keys.len()).chain((0..first).rev()).collect();
        let mut found: Answers<S> = vec![None; keys.len()];
        for at in order {
            if let (Some(key), Some(probe), Some(found)) = (keys.get(at), probes.get(at), found.get_mut(at)) {
                let value = self.subject.table().finish(*probe, key);
                *found = value.and_then(|value| self.subject.answer(value));
            }
        }
        self.compare(check, keys, &found, &expected)
    }

    /// A step, some, or none for each.
    fn steps(&mut self, keys: &[Key<S>], probes: &mut [Probe<S>]) {
        for (key, probe) in keys.iter().zip(probes) {
            for _ in 0..self.below(4) {
                self.subject.table().step(probe, key);
            }
        }
    }
}
