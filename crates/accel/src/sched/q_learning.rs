//! `q-learning`: the thesis' reinforcement learning (§4.10). It learns at random and by rote, and then does what brought the highest reward.
//!
//! - **State** (equation 4.1): how much comes, in five levels; which workers have more in their rings than a threshold; the packet's kind. The thesis counts `workers²` states of
//!   workers, which is enough for its three; here they are `2^workers`, as its code (4.3) makes them.
//! - **Action**: in C1 a core or the accelerator; in C2 that for each step.
//! - **Reward** (equation 4.2): deadlines met / deadlines * throughput / latency, of all packets for which an action was taken in a state.
//!
//! A table is learned on one platform, and is refused elsewhere: its header says for how many workers and kinds it is, and in which configuration.

use super::batching::Batching;
use super::packet::{Chain, MOST_KINDS, Step};
use super::traffic::Chance;
use super::worker::Worth;
use super::{Class, Done, Job, Left, NEVER, Pending, Release, Scheduler, View, WorkerId};
use std::fmt::Write as _;
use tables::Nanos;

/// Packets per second from which the next level of what comes begins.
pub type Levels = [f64; 4];

/// Those for the Jetson.
pub const LEVELS: Levels = [4_000.0, 8_000.0, 12_000.0, 16_000.0];

/// Jobs at a worker above which it counts as loaded.
pub const LOADED: usize = 64;

/// Workers that a table is for, at most.
pub const MOST_WORKERS: usize = 8;

/// Packets of an action in a state that say something: what happened a few times, at the begin of the training, doesn't.
const FEWEST: u64 = 500;

/// A core, or the accelerator.
const ACTIONS: [Class; 2] = [Class::Cpu, Class::Accelerator];

const MAGIC: &str = "millrace q-table 1";

/// Why a table isn't used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// It is no table, or of another version.
    #[error("this is no q-table: it doesn't begin with {MAGIC:?}")]
    Foreign,
    /// Its header says nothing useful.
    #[error("line {line} of the q-table: {why}")]
    Line {
        /// Which.
        line: usize,
        /// What is wrong.
        why: &'static str,
    },
    /// It is for something else.
    #[error("the q-table was learned for {of}, and here are {here}: train one with `millrace sched train`")]
    Elsewhere {
        /// What it is for.
        of: String,
        /// What is needed.
        here: String,
    },
    /// Nothing was learned.
    #[error("the q-table has learned nothing: each of its rewards is zero")]
    Untrained,
}

/// What is learned: a reward for each state, step and action.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    chain: Chain,
    workers: usize,
    levels: Levels,
    rewards: Vec<f64>,
}

/// Places of a table.
fn places(chain: Chain, workers: usize) -> usize {
    let steps = if chain == Chain::Once { 1 } else { 2 };
    (LEVELS.len() + 1) * (1 << workers) * MOST_KINDS * steps * ACTIONS.len()
}

fn place(chain: Chain, workers: usize, step: Step, state: usize, action: usize) -> usize {
    let steps = if chain == Chain::Once { 1 } else { 2 };
    let step = if chain == Chain::Once { 0 } else { step as usize };
    debug_assert!(state < places(chain, workers));
    (state * steps + step) * ACTIONS.len() + action
}

impl Table {
    /// A table in which nothing is known.
    pub fn new(chain: Chain, workers: usize) -> Self {
        let workers = workers.min(MOST_WORKERS);
        Self { chain, workers, levels: LEVELS, rewards: vec![0.0; places(chain, workers)] }
    }

    /// Whether there is anything in it.
    pub fn is_trained(&self) -> bool {
        self.rewards.iter().any(|&reward| reward > 0.0)
    }

    fn what(chain: Chain, workers: usize) -> String {
        format!("{} with {workers} workers", chain.name())
    }

    /// As text: a header, and a line for each place that has a reward.
    pub fn text(&self) -> String {
        let mut text = format!("{MAGIC}\nconfiguration {}\nworkers {}\n", self.chain.name(), self.workers);
        if self.levels.map(f64::to_bits) != LEVELS.map(f64::to_bits) {
            let [first, second, third, fourth] = self.levels;
            let _ = writeln!(text, "levels {first} {second} {third} {fourth}");
        }
        for (at, reward) in self.rewards.iter().enumerate().filter(|(_, reward)| **reward != 0.0) {
            // Writing to a string can't fail.
            let _ = writeln!(text, "{at} {reward:e}");
        }
        text
    }

    /// From text.
    pub fn read(text: &str) -> Result<Self, TableError> {
        let mut lines = text.lines().zip(1..);
        if lines.next().map(|(first, _)| first) != Some(MAGIC) {
            return Err(TableError::Foreign);
        }
        let mut field = |name: &str, why: &'static str| {
            let (line, number) = lines.next().unwrap_or(("", 0));
            let value = line.strip_prefix(name).map(str::trim);
            value.map(|value| (value.to_owned(), number)).ok_or(TableError::Line { line: number, why })
        };
        let (name, line) = field("configuration", "`configuration C1` or `C2` belongs here")?;
        let found = Chain::ALL.into_iter().find(|chain| chain.name() == name);
        let chain = found.ok_or(TableError::Line { line, why: "a configuration is C1 or C2" })?;
        let (workers, line) = field("workers", "`workers N` belongs here")?;
        let workers = workers.parse().ok().filter(|workers| (1..=MOST_WORKERS).contains(workers));
        let workers = workers.ok_or(TableError::Line { line, why: "there are 1 to 8 workers" })?;
        let mut table = Self::new(chain, workers);
        let mut lines = lines.peekable();
        if let Some((text, line)) = lines.next_if(|(text, _)| text.starts_with("levels ")) {
            let levels: Vec<f64> = text.split(' ').skip(1).flat_map(str::parse).collect();
            let is_sound =
                levels.is_sorted() && levels.iter().all(|level| level.is_finite() && *level >= 0.0);
            let wrong = TableError::Line { line, why: "levels are four rates, the lowest first" };
            table.levels = levels.try_into().ok().filter(|_| is_sound).ok_or(wrong)?;
        }
        for (text, line) in lines {
            let wrong = |why| TableError::Line { line, why };
            let (at, reward) = text.split_once(' ').ok_or(wrong("`PLACE REWARD` belongs here"))?;
            let at: usize = at.parse().map_err(|_| wrong("a place is a number"))?;
            let reward: f64 = reward.parse().map_err(|_| wrong("a reward is a number"))?;
            if !reward.is_finite() || reward < 0.0 {
                return Err(wrong("a reward is zero or more"));
            }
            *table.rewards.get_mut(at).ok_or(wrong("there is no such place"))? = reward;
        }
        Ok(table)
    }
}

/// Equation 4.1, without the action.
fn state(job: &Job, view: &View<'_>, levels: &Levels) -> usize {
    let level = levels.iter().filter(|&&from| view.rate >= from).count();
    let loaded = view.workers.iter().take(MOST_WORKERS).enumerate().map(|(at, worker)| {
        let inside: usize = worker.steps.iter().map(|step| step.inside + step.pending).sum();
        usize::from(inside > LOADED) << at
    });
    let kind = usize::from(job.packet.kind.0) % MOST_KINDS;
    (level * (1 << view.workers.len().min(MOST_WORKERS)) + loaded.sum::<usize>()) * MOST_KINDS + kind
}

/// A worker of that class with room: the one that has least. Where all of the class have failed, of the other one.
fn of_class(class: Class, step: Step, view: &View<'_>) -> Option<WorkerId> {
    let other = if class == Class::Cpu { Class::Accelerator } else { Class::Cpu };
    let class = if view.has_usable(class) { class } else { other };
    let with_room = view.of_class(class).filter(|(_, worker)| worker.has_room(step));
    let least = with_room
        .min_by_key(|(_, worker)| worker.steps.iter().map(|step| step.inside + step.pending).sum::<usize>());
    least.map(|(id, _)| id)
}

/// The scheduler, with what it has learned.
#[derive(Debug)]
pub struct QLearning {
    batching: Batching,
    table: Table,
}

impl QLearning {
    /// With a table that has been learned for this configuration and so many workers.
    pub fn new(batching: Batching, chain: Chain, workers: usize, table: Table) -> Result<Self, TableError> {
        if (table.chain, table.workers) != (chain, workers) {
            let of = Table::what(table.chain, table.workers);
            return Err(TableError::Elsewhere { of, here: Table::what(chain, workers) });
        }
        if !table.is_trained() {
            return Err(TableError::Untrained);
        }
        Ok(Self { batching, table })
    }
}

impl Scheduler for QLearning {
    fn name(&self) -> &'static str {
        "q-learning"
    }

    fn place(&mut self, job: &Job, step: Step, view: &View<'_>) -> Option<WorkerId> {
        let Table { chain, workers, ref levels, ref rewards } = self.table;
        let state = state(job, view, levels);
        let reward = |action| rewards.get(place(chain, workers, step, state, action)).copied().unwrap_or(0.0);
        // What was never seen goes to the accelerator.
        let class = if reward(0) > reward(1) { ACTIONS[0] } else { ACTIONS[1] };
        of_class(class, step, view)
    }

    fn release(&mut self, worker: WorkerId, _step: Step, pending: &Pending, view: &View<'_>) -> Release {
        self.batching.release(worker, pending, view)
    }

    fn worth(&self) -> Worth {
        self.batching.worth
    }
}

/// What came of an action in a state.
#[derive(Debug, Clone, Copy, Default)]
struct Lesson {
    packets: u64,
    latency: f64,
    throughput: f64,
    with_deadline: u64,
    met: u64,
}

/// The scheduler while it learns: it does something at random, and notes what comes of it.
#[derive(Debug)]
pub struct Trainer {
    batching: Batching,
    chain: Chain,
    workers: usize,
    levels: Levels,
    chance: Chance,
    lessons: Vec<Lesson>,
    /// By a job's place: where its lessons are, and when it was placed.
    taken: Vec<[(usize, Nanos); 2]>,
    octets: u64,
    since: Nanos,
    /// Bits a second of late.
    throughput: f64,
}

const NOWHERE: usize = usize::MAX;

impl Trainer {
    /// For this configuration, and so many workers.
    pub fn new(batching: Batching, chain: Chain, workers: usize, seed: u64) -> Self {
        Self {
            batching,
            chain,
            workers,
            levels: LEVELS,
            chance: Chance::new(seed),
            lessons: vec![Lesson::default(); places(chain, workers.min(MOST_WORKERS))],
            taken: Vec::new(),
            octets: 0,
            since: Nanos(0),
            throughput: 0.0,
        }
    }

    /// With other levels than the Jetson's.
    #[must_use]
    pub fn with_levels(self, levels: Levels) -> Self {
        Self { levels, ..self }
    }

    fn of_job(&mut self, job: &Job) -> &mut [(usize, Nanos); 2] {
        let place = job.place as usize;
        if self.taken.len() <= place {
            self.taken.resize(place + 1, [(NOWHERE, Nanos(0)); 2]);
        }
        &mut self.taken[place]
    }
}

impl Scheduler for Trainer {
    fn name(&self) -> &'static str {
        "q-learning"
    }

    fn place(&mut self, job: &Job, step: Step, view: &View<'_>) -> Option<WorkerId> {
        let action = self.chance.below(ACTIONS.len() as u64) as usize;
        let worker = of_class(ACTIONS[action], step, view)?;
        let at = place(self.chain, self.workers, step, state(job, view, &self.levels), action);
        self.of_job(job)[step as usize] = (at, view.now);
        Some(worker)
    }

    fn release(&mut self, worker: WorkerId, _step: Step, pending: &Pending, view: &View<'_>) -> Release {
        self.batching.release(worker, pending, view)
    }

    fn worth(&self) -> Worth {
        self.batching.worth
    }

    fn came_back(&mut self, done: &Done, now: Nanos) {
        let (at, placed) = self.of_job(&done.job)[done.step as usize];
        let throughput = self.throughput;
        if let Some(lesson) = self.lessons.get_mut(at) {
            lesson.packets += 1;
            lesson.latency += now.since(placed) as f64;
            lesson.throughput += throughput;
        }
    }

    fn left(&mut self, left: &Left) {
        self.octets += u64::from(left.job.packet.octets);
        let gone = left.at.since(self.since);
        if gone >= Nanos::SECOND / 10 {
            self.throughput = self.octets as f64 * 8.0 * Nanos::SECOND as f64 / gone as f64;
            (self.octets, self.since) = (0, left.at);
        }
        if left.job.due == NEVER {
            return;
        }
        let taken = *self.of_job(&left.job);
        for (at, _) in taken {
            if let Some(lesson) = self.lessons.get_mut(at) {
                lesson.with_deadline += 1;
                lesson.met += u64::from(!left.is_late());
            }
        }
    }

    fn learned(&self) -> Option<Table> {
        let mut table = Table { levels: self.levels, ..Table::new(self.chain, self.workers) };
        for (reward, lesson) in table.rewards.iter_mut().zip(&self.lessons) {
            if lesson.packets >= FEWEST {
                let met = if lesson.with_deadline == 0 {
                    1.0
                } else {
                    lesson.met as f64 / lesson.with_deadline as f64
                };
                *reward = met * lesson.throughput / lesson.latency.max(1.0);
            }
        }
        Some(table)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_written_and_read() {
        let mut table = Table::new(Chain::EachStep, 3);
        table.rewards[7] = 1.25e-3;
        table.rewards[100] = 3.0;
        assert_eq!(Table::read(&table.text()).as_ref(), Ok(&table));
        table.levels = [1.5, 2.0, 1e4, 2e5];
        assert_eq!(Table::read(&table.text()), Ok(table));
    }

    #[test]
    fn foreign_and_untrained_tables_are_refused() {
        let refused = |text: &str| Table::read(text).unwrap_err().to_string();
        assert!(refused("").contains("no q-table"));
        assert!(refused("millrace q-table 2\n").contains("no q-table"));
        let head = format!("{MAGIC}\nconfiguration C1\nworkers 3\n");
        assert_eq!(
            refused(&format!("{MAGIC}\nconfiguration C3\n")),
            "line 2 of the q-table: a configuration is C1 or C2"
        );
        assert_eq!(
            refused(&format!("{MAGIC}\nconfiguration C1\nworkers 99\n")),
            "line 3 of the q-table: there are 1 to 8 workers"
        );
        let levels = "line 4 of the q-table: levels are four rates, the lowest first";
        for wrong in ["1 2 3", "1 2 3 4 5", "4 3 2 1", "1 2 3 x", "1 2 3 inf", "-1 2 3 4"] {
            assert_eq!(refused(&format!("{head}levels {wrong}\n")), levels);
        }
        assert_eq!(refused(&format!("{head}1 -1\n")), "line 4 of the q-table: a reward is zero or more");
        assert_eq!(refused(&format!("{head}1 NaN\n")), "line 4 of the q-table: a reward is zero or more");
        assert_eq!(refused(&format!("{head}99999999 1\n")), "line 4 of the q-table: there is no such place");
        let empty = Table::read(&head).unwrap();
        let new =
            |chain, workers, table| QLearning::new(Batching::default(), chain, workers, table).map(|_| ());
        assert_eq!(new(Chain::Once, 3, empty.clone()), Err(TableError::Untrained));
        let error = new(Chain::EachStep, 5, empty).unwrap_err().to_string();
        assert!(
            error
                .starts_with("the q-table was learned for C1 with 3 workers, and here are C2 with 5 workers"),
            "{error}"
        );
    }
}
