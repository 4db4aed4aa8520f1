//! One test from its begin until the last packet has left, and its figures second by second (thesis §4.12).

use super::batching::Batching;
use super::core::{self, Core};
use super::fixed::{Fixed, Measured, Thresholds};
use super::packet::{Chain, Step};
use super::round_robin::RoundRobin;
use super::trace::Trace;
use super::traffic::{self, Load, Test, Traffic};
use super::xavier::power::{Activity, Power};
use super::xavier::{self, Xavier};
use super::{Class, Left, NEVER, Platform, Scheduler, Span, adaptive, host, q_learning, reorder};
use std::convert::Infallible;
use tables::Nanos;

/// What is run.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Seconds in which packets come.
    pub seconds: u32,
    /// What comes.
    pub traffic: traffic::Settings,
    /// The core.
    pub core: core::Settings,
    /// The machine that is simulated.
    pub xavier: xavier::Settings,
    /// When the thesis' schedulers begin batches.
    pub batching: Batching,
    /// What `static` compares with; without them they are calibrated first.
    pub thresholds: Option<Thresholds>,
    /// What `q-learning` has learned; without it it is trained first.
    pub learned: Option<q_learning::Table>,
    /// What `adaptive` is asked to heed.
    pub adaptive: adaptive::Settings,
    /// Rates from which `q-learning`'s levels begin.
    pub levels: q_learning::Levels,
}

impl Settings {
    /// A test of the thesis on its machine.
    pub fn thesis(test: Test, chain: Chain) -> Self {
        Self {
            seconds: 60,
            traffic: traffic::Settings::thesis(test),
            core: core::Settings::thesis(chain),
            xavier: xavier::Settings::thesis(chain),
            batching: Batching::default(),
            thresholds: None,
            learned: None,
            adaptive: adaptive::Settings::default(),
            levels: q_learning::LEVELS,
        }
    }

    /// Who decides how often.
    pub fn chain(&self) -> Chain {
        self.core.chain
    }
}

/// Names of all schedulers.
pub const SCHEDULERS: [&str; 4] = ["round-robin", "static", "q-learning", "adaptive"];

/// Why nothing was run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no such scheduler.
    #[error("there is no scheduler {name:?}; there are {}", SCHEDULERS.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// What was learned doesn't fit.
    #[error(transparent)]
    Table(#[from] q_learning::TableError),
    /// There are no workers.
    #[error(transparent)]
    Host(#[from] host::StartError),
}

impl From<Infallible> for RunError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// Where tests are run.
pub trait Machine {
    /// Why one can't be run.
    type Error;

    /// How many workers there are, all together.
    fn workers(&self, settings: &Settings) -> usize;

    /// Seconds of each measurement for [`measure_on`].
    fn calibration(&self) -> u32;

    /// Seconds for which `q-learning` is trained if it has no table.
    fn training(&self) -> u32;

    /// Runs a scheduler; gives it back, and tells of each packet that leaves.
    fn run(
        &self,
        scheduler: Box<dyn Scheduler>,
        settings: &Settings,
        watch: &mut dyn FnMut(&Left),
    ) -> Result<(Outcome, Box<dyn Scheduler>), Self::Error>;
}

/// The machine of [`Settings::xavier`], simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Simulated;

impl Machine for Simulated {
    type Error = Infallible;

    fn workers(&self, settings: &Settings) -> usize {
        settings.xavier.cpu_workers + 1
    }

    fn calibration(&self) -> u32 {
        CALIBRATION
    }

    fn training(&self) -> u32 {
        TRAINING
    }

    fn run(
        &self,
        scheduler: Box<dyn Scheduler>,
        settings: &Settings,
        watch: &mut dyn FnMut(&Left),
    ) -> Result<(Outcome, Box<dyn Scheduler>), Infallible> {
        let mut xavier = Xavier::new(settings.xavier.clone(), scheduler.worth());
        Ok(drive(&mut xavier, scheduler, settings, watch))
    }
}

/// A scheduler by its name, for what the settings have and the simulated machine.
pub fn scheduler(name: &str, settings: &Settings) -> Result<Box<dyn Scheduler>, RunError> {
    scheduler_on(&Simulated, name, settings)
}

/// The same for any machine. What isn't measured or learned yet is measured and learned there first.
pub fn scheduler_on<M: Machine>(
    machine: &M,
    name: &str,
    settings: &Settings,
) -> Result<Box<dyn Scheduler>, RunError>
where
    RunError: From<M::Error>,
{
    Ok(match name {
        "round-robin" => Box::new(RoundRobin::new(settings.batching)),
        "static" => {
            let thresholds = match settings.thresholds {
                Some(thresholds) => thresholds,
                None => Thresholds::calibrated(&measure_on(machine, settings)?),
            };
            Box::new(Fixed::new(settings.batching, thresholds))
        }
        "q-learning" => {
            let table = match &settings.learned {
                Some(table) => table.clone(),
                None => train_on(machine, settings, machine.training())?,
            };
            let workers = machine.workers(settings);
            Box::new(q_learning::QLearning::new(settings.batching, settings.chain(), workers, table)?)
        }
        "adaptive" => Box::new(adaptive::Adaptive::new(settings.adaptive)),
        other => return Err(RunError::Unknown { name: other.to_owned() }),
    })
}

/// What happened in a second, or in all of them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tally {
    /// Packets that came, also those that the edge lost.
    pub offered: u64,
    /// Packets that left.
    pub sent: u64,
    /// Their octets.
    pub octets: u64,
    /// The sum of their latencies, in nanoseconds.
    pub latency: u64,
    /// Packets that left and had a deadline.
    pub with_deadline: u64,
    /// Of these, those that left behind it.
    pub late: u64,
    /// Packets that left and whose order counts.
    pub ordered: u64,
    /// Of these, those in order.
    pub in_order: u64,
    /// By step: packets that the accelerator did.
    pub by_accelerator: [u64; 2],
    /// Nanoseconds at the three points of the thesis' Figure 5.1, summed: from the arrival until decoding begins, between the steps, and from the end of ciphering until the packet leaves.
    pub overhead: [u64; 3],
    /// What the machine did.
    pub activity: Activity,
    /// Joules that it took, if it measures them: a simulation doesn't, see [`power`](Self::power).
    pub joules: Option<f64>,
}

fn percent(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 * 100.0 }
}

impl Tally {
    /// Milliseconds that a packet took, on average.
    pub fn latency_ms(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.latency as f64 / self.sent as f64 / 1e6 }
    }

    /// Packets behind their deadline, of those that have one.
    pub fn missed_percent(&self) -> f64 {
        percent(self.late, self.with_deadline)
    }

    /// Packets in order, of those whose order counts.
    pub fn in_order_percent(&self) -> f64 {
        if self.ordered == 0 { 100.0 } else { percent(self.in_order, self.ordered) }
    }

    /// Packets that the accelerator did, by step.
    pub fn accelerator_percent(&self, step: Step) -> f64 {
        percent(self.by_accelerator[step as usize], self.sent)
    }

    /// Milliseconds at the three points, on average.
    pub fn overhead_ms(&self) -> [f64; 3] {
        self.overhead.map(|sum| if self.sent == 0 { 0.0 } else { sum as f64 / self.sent as f64 / 1e6 })
    }

    /// What the Jetson would draw for that activity.
    pub fn power(&self) -> Power {
        Power::of(&Activity { packets: self.sent as f64, ..self.activity })
    }

    fn left(&mut self, left: &Left, classes: &[Class]) {
        let class = |at: usize| classes.get(left.workers[at].0).copied().unwrap_or(Class::Cpu);
        let [decoded, ciphered] = left.spans;
        self.sent += 1;
        self.octets += u64::from(left.job.packet.octets);
        self.latency += left.latency();
        self.with_deadline += u64::from(left.job.due != NEVER);
        self.late += u64::from(left.is_late());
        self.ordered += u64::from(left.job.sequence.is_some());
        self.in_order += u64::from(left.job.sequence.is_some() && left.in_order);
        for (sum, at) in self.by_accelerator.iter_mut().zip([0, 1]) {
            *sum += u64::from(class(at) == Class::Accelerator);
        }
        let parts = [
            Span { began: left.job.packet.arrived, ended: decoded.began },
            Span { began: decoded.ended, ended: ciphered.began },
            Span { began: ciphered.ended, ended: left.at },
        ];
        for (sum, part) in self.overhead.iter_mut().zip(parts) {
            *sum += part.nanos();
        }
    }

    fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.sent += other.sent;
        self.octets += other.octets;
        self.latency += other.latency;
        self.with_deadline += other.with_deadline;
        self.late += other.late;
        self.ordered += other.ordered;
        self.in_order += other.in_order;
        for (sum, more) in self.by_accelerator.iter_mut().zip(other.by_accelerator) {
            *sum += more;
        }
        for (sum, more) in self.overhead.iter_mut().zip(other.overhead) {
            *sum += more;
        }
        let (sum, more) = (&mut self.activity, &other.activity);
        sum.seconds += more.seconds;
        sum.packets += more.packets;
        sum.kernel += more.kernel;
        sum.decoding += more.decoding;
        sum.polling += more.polling;
        self.joules = match (self.joules, other.joules) {
            (Some(sum), Some(more)) => Some(sum + more),
            (one, other) => one.or(other),
        };
    }
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The scheduler's name.
    pub scheduler: &'static str,
    /// Who decided how often.
    pub chain: Chain,
    /// Second by second, until the last packet had left.
    pub seconds: Vec<Tally>,
    /// All of them.
    pub total: Tally,
    /// When the last packet left.
    pub ended: Nanos,
    /// The core's counters.
    pub counters: core::Counters,
    /// The windows' counters.
    pub order: reorder::Counters,
    /// By kind: packets that came, and those that the edge lost.
    pub edge: Vec<(u64, u64)>,
}

impl Outcome {
    /// Gigabits per second, from the first packet until the last has left.
    pub fn gbps(&self) -> f64 {
        self.total.octets as f64 * 8.0 / self.ended.0.max(1) as f64
    }

    /// Packets per second, in the same time.
    pub fn rate(&self) -> f64 {
        self.total.sent as f64 * Nanos::SECOND as f64 / self.ended.0.max(1) as f64
    }
}

/// Runs a scheduler on the simulated machine.
pub fn simulate(name: &str, settings: &Settings) -> Result<Outcome, RunError> {
    let scheduler = scheduler(name, settings)?;
    Ok(simulate_with(scheduler, settings, &mut |_| {}).0)
}

/// The same for a scheduler that is there; gives it back, and tells of each packet that leaves.
pub fn simulate_with(
    scheduler: Box<dyn Scheduler>,
    settings: &Settings,
    watch: &mut dyn FnMut(&Left),
) -> (Outcome, Box<dyn Scheduler>) {
    let Ok(ran) = Simulated.run(scheduler, settings, watch);
    ran
}

/// Runs a scheduler on this machine, with threads and by the clock.
pub fn run_on_host(name: &str, settings: &host::HostSettings) -> Result<Outcome, RunError> {
    let host::HostSettings { test, host } = settings;
    let scheduler = scheduler_on(host, name, test)?;
    Ok(host.run(scheduler, test, &mut |_| {})?.0)
}

/// A platform that has time, in which a test can be run from begin to end.
pub trait Timed: Platform {
    /// The time.
    fn now(&self) -> Nanos;

    /// When something may happen by itself.
    fn next_event(&mut self) -> Nanos;

    /// Lets time go on until then, or until something was reported if nobody can know when that will be; says when that is.
    fn go_on(&mut self, until: Nanos) -> Nanos;

    /// What was done since this was asked last, but for the packets that came.
    fn take_activity(&mut self) -> Activity;

    /// Joules that it took since this was asked last, if they are measured.
    fn take_joules(&mut self) -> Option<f64> {
        None
    }
}

/// Runs a scheduler on a platform that has done nothing yet.
pub fn drive(
    platform: &mut dyn Timed,
    scheduler: Box<dyn Scheduler>,
    settings: &Settings,
    watch: &mut dyn FnMut(&Left),
) -> (Outcome, Box<dyn Scheduler>) {
    let name = scheduler.name();
    let classes = platform.workers().to_vec();
    let mut core = Core::new(settings.core.clone(), scheduler, &classes);
    let until = Nanos(u64::from(settings.seconds) * Nanos::SECOND);
    let mut traffic = Traffic::new(settings.traffic.clone(), until);
    let (mut second, mut ended) = (Tally::default(), Nanos(0));
    let mut seconds = Vec::new();
    let mut offered = 0;
    let mut now = platform.go_on(Nanos(0));
    loop {
        // Up to the second's end, so that what was done is the second's.
        let end_of_second = Nanos((seconds.len() as u64 + 1) * Nanos::SECOND);
        if now.plus(1) >= end_of_second {
            seconds.push(close(&mut second, platform, &traffic, &mut offered));
            now = platform.go_on(end_of_second.max(now));
            continue;
        }
        traffic.go_on(now);
        let mut leave = |left: &Left| {
            second.left(left, &classes);
            ended = left.at;
            watch(left);
        };
        let turn = core.turn(now, platform, &mut traffic, &mut leave);
        if turn.worked {
            now = platform.now();
            continue;
        }
        let next = traffic.next_event().min(platform.next_event()).min(turn.look_again);
        if traffic.is_over() && core.inside() == 0 || next == NEVER {
            core.drain(now, &mut leave);
            seconds.push(close(&mut second, platform, &traffic, &mut offered));
            break;
        }
        now = platform.go_on(next.max(now.plus(1)).min(Nanos(end_of_second.0 - 1)));
    }
    let mut total = Tally::default();
    seconds.iter().for_each(|second| total.add(second));
    let (counters, order) = (core.counters(), core.order());
    let chain = settings.chain();
    let edge = traffic.lost().to_vec();
    let outcome = Outcome { scheduler: name, chain, seconds, total, ended, counters, order, edge };
    (outcome, core.into_scheduler())
}

/// Ends a second.
fn close(second: &mut Tally, platform: &mut dyn Timed, traffic: &Traffic, offered: &mut u64) -> Tally {
    second.offered = traffic.offered() - std::mem::replace(offered, traffic.offered());
    second.activity = platform.take_activity();
    second.joules = platform.take_joules();
    std::mem::take(second)
}

/// Seconds of a measurement for calibration.
const CALIBRATION: u32 = 3;

/// What `static` goes by, measured on the simulated machine: the accelerator alone with the IMIX, a core alone with small packets, always as many as they take.
pub fn measure(settings: &Settings) -> Measured {
    let Ok(measured) = measure_on(&Simulated, settings);
    measured
}

/// The same on any machine.
pub fn measure_on<M: Machine>(machine: &M, settings: &Settings) -> Result<Measured, M::Error> {
    let alone = |class: Class, sizes: Vec<(u32, u32)>| {
        let chain = Chain::Once;
        let traffic = traffic::Settings { load: Load::Unbounded, sizes, ..settings.traffic.clone() };
        let xavier = xavier::Settings { chain, ..settings.xavier.clone() };
        let core = core::Settings { chain, ..settings.core.clone() };
        let seconds = machine.calibration();
        let settings = Settings { seconds, traffic, core, xavier, ..settings.clone() };
        let alone = Box::new(Alone { class, batching: settings.batching });
        machine.run(alone, &settings, &mut |_| {}).map(|(outcome, _)| outcome)
    };
    let cpu = alone(Class::Cpu, vec![(243, 1)])?;
    let accelerator = alone(Class::Accelerator, settings.traffic.sizes.clone())?;
    Ok(Measured {
        cpu_latency: (cpu.total.latency_ms() * 1e6) as u64,
        accelerator_latency: (accelerator.total.latency_ms() * 1e6) as u64,
        accelerator_rate: accelerator.rate(),
    })
}

/// Thresholds that follow from what is measured on the simulated machine.
pub fn calibrate(settings: &Settings) -> Thresholds {
    Thresholds::calibrated(&measure(settings))
}

/// All to the first worker of a class: to measure it.
#[derive(Debug)]
pub struct Alone {
    /// The class.
    pub class: Class,
    /// When batches begin.
    pub batching: Batching,
}

impl Scheduler for Alone {
    fn name(&self) -> &'static str {
        "alone"
    }

    fn place(&mut self, _job: &super::Job, step: Step, view: &super::View<'_>) -> Option<super::WorkerId> {
        view.of_class(self.class).next().filter(|(_, worker)| worker.has_room(step)).map(|(id, _)| id)
    }

    fn release(
        &mut self,
        worker: super::WorkerId,
        _step: Step,
        pending: &super::Pending,
        view: &super::View<'_>,
    ) -> super::Release {
        self.batching.release(worker, pending, view)
    }
}

/// Seconds of a random trace that `q-learning` is trained with if it has no table.
pub const TRAINING: u32 = 120;

/// A table for `q-learning`, learned on the simulated machine from a random trace: rates that change every second, from a tenth of what the accelerator does to half more than that.
pub fn train(settings: &Settings, seconds: u32) -> q_learning::Table {
    let Ok(table) = train_on(&Simulated, settings, seconds);
    table
}

/// The same on any machine.
pub fn train_on<M: Machine>(
    machine: &M,
    settings: &Settings,
    seconds: u32,
) -> Result<q_learning::Table, M::Error> {
    let most = measure_on(machine, settings)?.accelerator_rate * 1.5;
    let random = Trace::random(settings.traffic.seed ^ 0x7ea1, seconds, most * 0.1, most);
    let traffic = traffic::Settings { load: random.load(), ..settings.traffic.clone() };
    let training = Settings { seconds, traffic, ..settings.clone() };
    let workers = machine.workers(settings);
    let pupil = q_learning::Trainer::new(settings.batching, settings.chain(), workers, settings.traffic.seed)
        .with_levels(settings.levels);
    let (_, pupil) = machine.run(Box::new(pupil), &training, &mut |_| {})?;
    Ok(pupil.learned().unwrap_or_else(|| q_learning::Table::new(settings.chain(), workers)))
}
