//! What does a GPU make of a task's batches, and how much faster than a core is it?
//!
//! Every benchmark of a heavy task asks here ([`Gpus`]). Where there is no GPU, one line of its report says so, and that is all. Where there is one, a task's batches
//! ([`Subject`]) go to it in two ways: a kernel is launched for each batch (`cuda`), or the continuous kernel polls a ring (`cuda-ring`). Before a figure is taken,
//! all answers are held against the processor's, octet by octet.
//!
//! Two rates are of interest, and are told apart by `copies`. With several batches under way, by the wall's time, octets cross the bus twice, and the host's thread
//! puts them where the GPU fetches them (`bus`). Of a batch that is alone, by the GPU's clock, the kernel's time is known without all that: the rate of those whose
//! data is on the GPU already (`none`). What a lone batch's time goes into (`microseconds_per_batch`) says what bounds the first of the two.
//!
//! Where devices come from is an argument ([`Lender`]): tests lend threads instead of GPUs.

pub mod flood;

pub use flood::{DeviceError, Flood, Job, Load, Measuring, Way};

use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use accel::copies::TableId;
use accel::cpu::Inline;
use accel::ring::{RingDevice, Shape, Thread};
use accel::{Device, Failure, gpu};
use tables::clock::Tsc;
use tables::image::{Changes, Image};

/// This processor, in the caller's thread.
const HERE: &str = "cpu";

/// A launch for each batch.
const LAUNCH: &str = "cuda";

/// The continuous kernel.
const RING: &str = "cuda-ring";

/// The table of all look-ups.
pub const TABLE: TableId = TableId(1);

/// Most batches that wait to be sent: a list of them has to lie somewhere, too.
const MOST_BATCHES: usize = 1 << 14;

/// Octets that a device may need between a batch's items and its data.
const GAP: usize = 16;

/// Parameters of a figure.
pub type Params = Vec<(&'static str, Param)>;

/// A device, or why there is none.
pub type Lent = Result<Box<dyn Device>, Failure>;

/// Where devices come from.
#[derive(Clone, Copy, Debug)]
pub struct Lender {
    /// What there is, in words, or why there is nothing.
    pub list: fn() -> Result<Vec<String>, Failure>,
    /// One that is launched on for each batch.
    pub launching: fn(gpu::Settings, Tsc) -> Lent,
    /// One that polls a ring of that shape, for batches of at most so many items, with so many octets for copies of tables.
    pub ring: fn(Shape, usize, usize, Tsc) -> Lent,
}

impl Lender {
    /// This machine's first GPU.
    pub const CUDA: Self = Self {
        list: gpu::list,
        launching: |settings, _| gpu::launching(0, settings),
        ring: |shape, items, tables, _| gpu::ring(0, shape, items, tables),
    };

    /// Threads in their place.
    #[cfg(test)]
    pub const THREADS: Self = Self {
        list: || Ok(vec!["threads".into()]),
        launching: |settings, clock| {
            let settings =
                accel::cpu::Settings { threads: 1, in_flight: settings.in_flight, look_for: 1_000_000 };
            Ok(Box::new(accel::cpu::Workers::start(settings, &clock)?))
        },
        ring: |shape, items, _, clock| thread_ring(shape, items, clock),
    };
}

/// A ring that a thread serves.
pub fn thread_ring(shape: Shape, items: usize, clock: Tsc) -> Lent {
    Ok(Box::new(RingDevice::start(Thread::new(clock), shape, items)?))
}

/// A ring's shape, for so many batches of so many octets in and out.
pub fn shape(slots: usize, (input, output): (usize, usize)) -> Result<Shape, Failure> {
    let none = Failure::OutOfMemory { octets: slots.saturating_mul(input + output), what: "the ring" };
    Shape::new(slots, input + GAP, output).ok_or(none)
}

/// How long devices are measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Where they come from.
    pub lender: Lender,
    /// Rounds.
    pub runs: usize,
    /// Seconds of a round.
    pub seconds: f64,
    /// The most items of a batch: less than a GPU would want where there is none.
    pub most_items: usize,
    /// Keys of look-ups that differ, before the first comes again: more than a GPU's cache has the lines of.
    pub keys: usize,
}

impl Effort {
    /// Long enough for steady medians.
    pub fn full() -> Self {
        Self { lender: Lender::CUDA, runs: 7, seconds: 0.1, most_items: usize::MAX, keys: 1 << 22 }
    }

    /// Briefly.
    pub fn quick() -> Self {
        Self { runs: 3, seconds: 0.03, ..Self::full() }
    }

    /// Threads for GPUs, and hardly any work.
    #[cfg(test)]
    pub fn of_tests() -> Self {
        Self { lender: Lender::THREADS, runs: 1, seconds: 0.0, most_items: 10, keys: 40 }
    }
}

/// How batches are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    device: &'static str,
    items: usize,
    under_way: usize,
}

/// A launch for each batch of so many items, with so many under way.
pub const fn launched(items: usize, under_way: usize) -> Sending {
    Sending { device: LAUNCH, items, under_way }
}

/// In the caller's thread: what a core does with the same batches, for tasks of which nothing else says that.
pub const fn here(items: usize) -> Sending {
    Sending { device: HERE, items, under_way: 1 }
}

/// Likewise by the ring.
pub const fn rung(items: usize, under_way: usize) -> Sending {
    Sending { device: RING, items, under_way }
}

/// Makes a batch of so many items, and says how much it has of what its rate counts.
pub type Make<'a> = dyn FnMut(usize) -> Result<(Job, f64), DeviceError> + 'a;

/// A task that a GPU is measured with.
pub struct Subject<'a> {
    /// What its rate is called.
    pub rate: &'static str,
    /// In which unit.
    pub unit: &'static str,
    /// What is varied.
    pub params: Params,
    /// The parameter that says how many items a batch has.
    pub items: &'static str,
    /// How its batches are sent.
    pub sendings: &'a [Sending],
    /// The table, if keys are looked up, under [`TABLE`].
    pub image: Option<&'a dyn Image>,
    /// Its batches.
    pub make: &'a mut Make<'a>,
    /// What a core of this machine does; it is what was measured, where batches are sent [`here`].
    pub cpu: Option<f64>,
}

/// The GPUs of this machine, if there are any.
pub struct Gpus<'e> {
    effort: &'e Effort,
    clock: Tsc,
    found: Result<Vec<String>, Failure>,
    /// What went wrong first: nothing more is measured then.
    trouble: Option<DeviceError>,
}

impl<'e> Gpus<'e> {
    /// Looks for them.
    pub fn look(effort: &'e Effort, clock: Tsc) -> Self {
        Self { effort, clock, found: (effort.lender.list)(), trouble: None }
    }

    /// Whether there is one to measure.
    pub fn are_here(&self) -> bool {
        self.found.is_ok() && self.trouble.is_none()
    }

    /// Says in a report what was found, and what went wrong.
    pub fn note(&self, report: &mut Report) {
        report.notes.push(found(&self.found));
        if self.found.is_ok() {
            report.notes.push(LEGEND.into());
        }
        if let Some(trouble) = &self.trouble {
            report.notes.push(format!("not measured from here on: {trouble}"));
        }
    }

    /// Measures a task, if there is a GPU, and says which rates were found, by their parameters. A GPU that fails, or lacks something, ends with a note
    /// what is measured on it; one that answers wrongly is an error.
    pub fn measure(
        &mut self,
        report: &mut Report,
        mut subject: Subject<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Vec<Params>, DeviceError> {
        let mut rates = Vec::new();
        for device in [HERE, LAUNCH, RING] {
            if !self.are_here() {
                break;
            }
            progress.tell(&format!("{device}{}", described(&subject.params)));
            match self.on(device, &mut subject, report, &mut rates) {
                Ok(()) => progress.keep(report),
                Err(defect @ (DeviceError::Wrong { .. } | DeviceError::Batch(_))) => return Err(defect),
                Err(trouble) => self.trouble = Some(trouble),
            }
        }
        Ok(rates)
    }

    /// On one of the devices. It is gone before the other one is made: the continuous kernel would keep that waiting.
    fn on(
        &self,
        name: &'static str,
        subject: &mut Subject<'_>,
        report: &mut Report,
        rates: &mut Vec<Params>,
    ) -> Result<(), DeviceError> {
        let effort = self.effort;
        let mut sendings: Vec<Sending> = Vec::new();
        for sending in subject.sendings.iter().filter(|sending| sending.device == name) {
            let sending = Sending { items: sending.items.min(effort.most_items), ..*sending };
            if !sendings.contains(&sending) {
                sendings.push(sending);
            }
        }
        let Some(under_way) = sendings.iter().map(|sending| sending.under_way).max() else { return Ok(()) };
        let most_items = sendings.iter().map(|sending| sending.items).max().unwrap_or_default();
        let mut loads = Vec::new();
        for sending in sendings {
            // Of a table, more than a cache has should be asked.
            let keys = subject.image.map_or(0, |_| effort.keys / sending.items.max(1)).min(MOST_BATCHES);
            let mut units = 0.0;
            let mut make = |_| {
                let (job, of_job) = (subject.make)(sending.items)?;
                units = of_job;
                Ok(job)
            };
            let load =
                (0..keys.max(sending.under_way)).map(&mut make).collect::<Result<Load, DeviceError>>()?;
            loads.push((sending, load, units));
        }
        let octets = loads.iter().map(|(_, load, _)| load.octets());
        let octets = octets.fold((0, 0), |most, one| (most.0.max(one.0), most.1.max(one.1)));
        let failed = |failure| DeviceError::Failed { device: name, failure };
        let tables = subject.image.map_or(Ok(0), gpu::table_octets).map_err(failed)?;
        let lender = &effort.lender;
        let mut device = match name {
            HERE => Ok(Box::new(Inline::new(under_way, self.clock)) as Box<dyn Device>),
            RING => shape(under_way, octets)
                .and_then(|shape| (lender.ring)(shape, most_items, tables, self.clock)),
            _ => {
                let (input, output) = (octets.0 + GAP, octets.1);
                (lender.launching)(gpu::Settings { in_flight: under_way, input, output, tables }, self.clock)
            }
        }
        .map_err(failed)?;
        if let Some(image) = subject.image {
            let all = Changes { generation: 1, all: true, lines: Vec::new() };
            device.follow(TABLE, image, &all).map_err(failed)?;
        }
        let mut it = Measuring::new(device.as_mut(), name, self.clock);
        for (sending, mut load, units) in loads {
            it.verify(&mut load)?;
            let mut floods = Vec::new();
            let mut ways = Vec::new();
            for run in 0..=effort.runs {
                let flood = it.flood(&mut load, sending.under_way, sending.under_way, effort.seconds)?;
                let way = it.one_by_one(&mut load, effort.seconds)?;
                // The first round warms up.
                if run > 0 {
                    floods.push(flood);
                    ways.push(way);
                }
            }
            if name == HERE {
                let rate = rate(subject, &params(subject, sending), units, floods.iter().map(Flood::each));
                subject.cpu = Some(rate.median);
                report.results.push(rate);
            } else {
                rates.extend(figures(subject, sending, units, &floods, &ways, report));
            }
        }
        Ok(())
    }
}

/// Which GPUs were found, for a report.
pub fn found(found: &Result<Vec<String>, Failure>) -> String {
    match found {
        Ok(gpus) => format!("cuda: {}", gpus.join(", ")),
        Err(why) => format!("{why}: nothing is measured on a GPU"),
    }
}

/// The parameters of all figures of batches that are sent so.
fn params(subject: &Subject<'_>, sending: Sending) -> Params {
    let own = [
        ("device", sending.device.into()),
        (subject.items, (sending.items as u64).into()),
        ("buffers", (sending.under_way as u64).into()),
    ];
    [&subject.params[..], &own].concat()
}

/// A task's rate, from the nanoseconds of a batch.
fn rate(
    subject: &Subject<'_>,
    params: &[(&'static str, Param)],
    units: f64,
    nanos: impl Iterator<Item = f64>,
) -> Measured {
    let found: Vec<f64> = nanos.map(|nanos| units * 1e9 / nanos.max(1.0)).collect();
    Measured::of(subject.rate, subject.unit, params, &found)
}

/// Reports what came of a task's batches: and which rates these are, by their parameters.
fn figures(
    subject: &Subject<'_>,
    sending: Sending,
    units: f64,
    floods: &[Flood],
    ways: &[Way],
    report: &mut Report,
) -> Vec<Params> {
    let params = params(subject, sending);
    let with = |more: (&'static str, Param)| [&params[..], &[more]].concat();
    let bus = with(("copies", "bus".into()));
    let mut found = vec![(rate(subject, &bus, units, floods.iter().map(Flood::each)), bus)];
    // The continuous kernel reads from the host's memory itself: what it does without the bus can't be told.
    if sending.device == LAUNCH {
        let none = with(("copies", "none".into()));
        found.push((rate(subject, &none, units, ways.iter().map(|way| way.device)), none));
    }
    let mut rates = Vec::new();
    for (rate, params) in found {
        let ratio = subject.cpu.filter(|cpu| *cpu > 0.0).map(|cpu| rate.median / cpu);
        report.results.push(rate);
        report.results.extend(ratio.map(|ratio| Measured::of("ratio_to_cpu", "x", &params, &[ratio])));
        rates.push(params);
    }
    for (percentile, name) in [(50_usize, 50_u64), (99, 99)] {
        let found: Vec<f64> = floods.iter().map(|flood| flood.latency(percentile)).collect();
        report.results.push(Measured::of("latency_us", "us", &with(("percentile", name.into())), &found));
    }
    let mut part = |part: &'static str, nanos: Vec<f64>| {
        let found: Vec<f64> = nanos.iter().map(|nanos| nanos / 1e3).collect();
        let params = with(("part", part.into()));
        report.results.push(Measured::of("microseconds_per_batch", "us", &params, &found));
    };
    part("host", ways.iter().map(|way| way.host).collect());
    part("device", ways.iter().map(|way| way.device).collect());
    part("between", ways.iter().map(|way| way.between).collect());
    if let Some(way) = ways.get(ways.len() / 2) {
        report.notes.push(format!("bound by {}:{}", way.bound(), described(&params)));
    }
    rates
}

/// Parameters in words, each behind a space.
fn described(params: &[(&'static str, Param)]) -> String {
    params.iter().fold(String::new(), |words, (key, value)| format!("{words} {key}={value}"))
}

/// The best of a report's figures that a core of this machine has, with these parameters.
pub fn best_on_cpu(report: &Report, rate: &str, params: &[(&'static str, Param)]) -> Option<f64> {
    let params = [params, &[("device", "cpu".into())]].concat();
    report.all(rate, &params).map(|found| found.median).max_by(f64::total_cmp)
}

/// What a report says of all that is measured here.
const LEGEND: &str = "copies: bus, wall time with so many `buffers` under way, copies there and back with it; none, the kernel's own time by the GPU's clock, data on the GPU; \
     latency_us: from submission until it was fetched, with so many under way; microseconds_per_batch: of a batch that is alone; ratio_to_cpu: by the best figure of \
     one core in this report";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::Silent;
    use accel::cpu::Executor;
    use accel::task::{Batch, Hashes, Task};

    fn hashes(items: usize) -> Result<(Job, f64), DeviceError> {
        let mut batch = Batch::new(0, Task::Hash(Hashes::new(1)?));
        (0..items).try_for_each(|item| batch.push(&[item as u8; 24]))?;
        Ok((Job::done_here(batch, &mut Executor::new())?, items as f64))
    }

    fn measured(effort: &Effort) -> Result<(Report, Vec<Params>), DeviceError> {
        let clock = Tsc::process();
        let mut report = Report::new("x", &clock);
        let mut gpus = Gpus::look(effort, clock);
        let subject = Subject {
            rate: "hashes_per_second",
            unit: "1/s",
            params: vec![("hashes", 1.into())],
            items: "packets",
            // Two of them are the same, as long as a batch has at most ten items.
            sendings: &[here(4), launched(4, 3), launched(256, 2), launched(65_536, 2), rung(8, 4)],
            image: None,
            make: &mut hashes,
            cpu: None,
        };
        let rates = gpus.measure(&mut report, subject, &mut Silent)?;
        gpus.note(&mut report);
        Ok((report, rates))
    }

    #[test]
    fn each_way_of_sending_has_its_rates_beside_the_processor_s() {
        let (report, rates) = measured(&Effort::of_tests()).unwrap();
        // Of each launch with copies and without, and of the ring.
        assert_eq!(rates.len(), 5);
        let cpu = best_on_cpu(&report, "hashes_per_second", &[("hashes", 1.into())]).unwrap();
        for params in &rates {
            let rate = report.median("hashes_per_second", params).unwrap();
            assert!(rate > 0.0);
            assert_eq!(report.median("ratio_to_cpu", params), Some(rate / cpu));
        }
        let ring = [("device", "cuda-ring".into()), ("packets", 8.into()), ("buffers", 4.into())];
        assert_eq!(report.all("hashes_per_second", &ring).count(), 1);
        assert_eq!(report.all("latency_us", &ring).count(), 2);
        assert_eq!(report.all("microseconds_per_batch", &ring).count(), 3);
        let bounds = report.notes.iter().filter(|note| note.starts_with("bound by ")).count();
        assert_eq!(bounds, 3);
        assert!(report.notes.contains(&"cuda: threads".into()));
    }

    #[test]
    fn without_a_gpu_one_line_says_so() {
        let absent = || Err(Failure::Absent { device: "CUDA", why: "none".into() });
        let lender = Lender { list: absent, ..Lender::THREADS };
        let (report, rates) = measured(&Effort { lender, ..Effort::of_tests() }).unwrap();
        assert!(rates.is_empty() && report.results.is_empty());
        assert_eq!(report.notes, ["no CUDA device: none: nothing is measured on a GPU"]);
    }

    #[test]
    fn a_gpu_that_fails_ends_with_a_note_and_keeps_what_was_measured() {
        let lost = |_, _, _, _| Err(Failure::Lost("gone".into()));
        let lender = Lender { ring: lost, ..Lender::THREADS };
        let (report, rates) = measured(&Effort { lender, ..Effort::of_tests() }).unwrap();
        assert_eq!(rates.len(), 4);
        let note = report.notes.last().unwrap();
        assert_eq!(note, "not measured from here on: cuda-ring: the device is lost: gone");
    }
}
