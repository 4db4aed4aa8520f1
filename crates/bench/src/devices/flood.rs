//! Batches that go through a [`Device`] again and again: are they right, how many a second, how long is one on its way, and what takes the time?

use accel::cpu::Executor;
use accel::task::{Batch, Misfit};
use accel::{Completion, Device, Failure, Refusal};
use std::collections::VecDeque;
use tables::Nanos;
use tables::clock::Tsc;

/// No device is that slow, in nanoseconds.
const PATIENCE: u64 = 30_000_000_000;

/// Why a device was not measured.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// It failed.
    #[error("{device}: {failure}")]
    Failed {
        /// Which one.
        device: &'static str,
        /// With what.
        failure: Failure,
    },
    /// It refused a batch for another reason than that it was full.
    #[error("{device}: {why}")]
    Refused {
        /// Which one.
        device: &'static str,
        /// Why.
        why: Refusal,
    },
    /// It doesn't answer.
    #[error("{0}: nothing comes back")]
    Silent(&'static str),
    /// An answer is another than the processor's: a defect, and no figure.
    #[error("{device}: octet {octet} of a batch's answers is wrong")]
    Wrong {
        /// Which one.
        device: &'static str,
        /// The first octet that differs.
        octet: usize,
    },
    /// A batch can't be made: a defect.
    #[error(transparent)]
    Batch(#[from] Misfit),
}

/// A batch, and what has to come out of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    batch: Batch,
    right: Vec<u8>,
}

impl Job {
    /// A batch whose right answers are known.
    pub fn new(batch: Batch, right: Vec<u8>) -> Self {
        Self { batch, right }
    }

    /// A batch of any task but a look-up, with what this processor makes of it.
    pub fn done_here(batch: Batch, executor: &mut Executor) -> Result<Self, DeviceError> {
        let mut done = batch.clone();
        let failed = |failure| DeviceError::Failed { device: "cpu", failure };
        executor.execute(&mut done).map_err(failed)?;
        let right = done.output().to_vec();
        Ok(Self { batch, right })
    }
}

/// Batches that are sent in turn, and come back to be sent again.
#[derive(Debug, Default)]
pub struct Load {
    waiting: VecDeque<Batch>,
    /// By ticket.
    right: Vec<Vec<u8>>,
}

impl FromIterator<Job> for Load {
    fn from_iter<T: IntoIterator<Item = Job>>(jobs: T) -> Self {
        let mut load = Self::default();
        for Job { mut batch, right } in jobs {
            batch.ticket = load.right.len() as u64;
            load.waiting.push_back(batch);
            load.right.push(right);
        }
        load
    }
}

impl Load {
    /// Octets of the largest batch, in and out.
    pub fn octets(&self) -> (usize, usize) {
        let most = |octets: fn(&Batch) -> usize| self.waiting.iter().map(octets).max().unwrap_or_default();
        (most(Batch::input_octets), most(|batch| batch.output().len()))
    }

    /// The first octet of a batch that isn't as it should be, among the first `upto`.
    fn wrong(&self, batch: &Batch, upto: usize) -> Option<usize> {
        let right = self.right.get(batch.ticket as usize).map_or(&[][..], Vec::as_slice);
        if batch.output().len() != right.len() {
            return Some(right.len());
        }
        batch.output().iter().zip(right).take(upto).position(|(found, right)| found != right)
    }

    /// Makes the first octets of a batch's answers wrong, so that who leaves them as they are is found out.
    fn spoil(&self, batch: &mut Batch, upto: usize) {
        let right = self.right.get(batch.ticket as usize).map_or(&[][..], Vec::as_slice);
        batch.parts().2.iter_mut().zip(right).take(upto).for_each(|(octet, right)| *octet = !right);
    }
}

/// A device that is measured.
pub struct Measuring<'d> {
    /// The device.
    pub device: &'d mut dyn Device,
    /// What results have it under.
    pub name: &'static str,
    /// The clock of all times.
    pub clock: Tsc,
    /// Nanoseconds after which a device from which nothing comes back is taken for one that doesn't answer.
    pub patience: u64,
}

/// What came of a flood.
#[derive(Debug, Clone, PartialEq)]
pub struct Flood {
    /// Batches that were done.
    pub batches: usize,
    /// Nanoseconds of all of it.
    pub nanos: u64,
    /// Nanoseconds from submission until a batch was fetched, sorted.
    latencies: Vec<u64>,
}

impl Flood {
    /// Nanoseconds a batch.
    pub fn each(&self) -> f64 {
        self.nanos as f64 / self.batches.max(1) as f64
    }

    /// Microseconds for which one was under way, of so many in a hundred at most.
    pub fn latency(&self, percentile: usize) -> f64 {
        let at = self.latencies.len() * percentile / 100;
        self.latencies.get(at).map_or(0.0, |nanos| *nanos as f64 / 1e3)
    }
}

/// How a batch's way divides where no other one is under way: nanoseconds of each part, in the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Way {
    /// The caller's own thread: putting the batch where the device reads it, and fetching it.
    pub host: f64,
    /// The device's work.
    pub device: f64,
    /// All else: copies, orders, and until it is noticed that it has ended.
    pub between: f64,
}

impl Way {
    /// What most of it goes into: what bounds the rate of several batches under way.
    pub fn bound(&self) -> &'static str {
        if self.device >= self.host.max(self.between) {
            "the device's work"
        } else if self.host >= self.between {
            "the host's thread, which copies"
        } else {
            "the bus and orders"
        }
    }
}

impl<'d> Measuring<'d> {
    /// Of a device, by the name that results have it under.
    pub fn new(device: &'d mut dyn Device, name: &'static str, clock: Tsc) -> Self {
        Self { device, name, clock, patience: PATIENCE }
    }

    fn failed(&self, failure: Failure) -> DeviceError {
        DeviceError::Failed { device: self.name, failure }
    }

    /// Submits a batch. If there is no room, it comes back.
    fn submit(&mut self, batch: Batch, now: Nanos) -> Result<Option<Batch>, DeviceError> {
        match self.device.submit(batch, now) {
            Ok(()) => Ok(None),
            Err(rejected) if rejected.why.is_for_now() => Ok(Some(rejected.batch)),
            Err(rejected) => Err(DeviceError::Refused { device: self.name, why: rejected.why }),
        }
    }

    /// Takes a batch that came back: done, and right in its first octets.
    fn take(&self, load: &mut Load, completion: Completion, upto: usize) -> Result<(), DeviceError> {
        completion.outcome.map_err(|failure| self.failed(failure))?;
        if let Some(octet) = load.wrong(&completion.batch, upto) {
            return Err(DeviceError::Wrong { device: self.name, octet });
        }
        load.waiting.push_back(completion.batch);
        Ok(())
    }

    /// Sends one batch through, alone.
    fn alone(&mut self, batch: Batch) -> Result<(Completion, Way), DeviceError> {
        let since = self.clock.now();
        if self.submit(batch, since)?.is_some() {
            return Err(DeviceError::Refused { device: self.name, why: Refusal::Full });
        }
        let submitted = self.clock.now();
        let mut ended = Vec::with_capacity(1);
        loop {
            let looked = self.clock.now();
            self.device.poll(looked, &mut ended);
            let Some(completion) = ended.pop() else {
                if looked.since(since) > self.patience {
                    return Err(DeviceError::Silent(self.name));
                }
                std::hint::spin_loop();
                continue;
            };
            let fetched = self.clock.now();
            let device = completion.times.ended.since(completion.times.started);
            // One that works while it is submitted to has that time from its caller.
            let host = submitted.since(since) + fetched.since(looked);
            let host = if submitted >= completion.times.ended { host.saturating_sub(device) } else { host };
            let between = fetched.since(since).saturating_sub(host + device);
            let way = Way { host: host as f64, device: device as f64, between: between as f64 };
            return Ok((completion, way));
        }
    }

    /// Holds the device to what has to come out of each batch, octet by octet.
    pub fn verify(&mut self, load: &mut Load) -> Result<(), DeviceError> {
        let since = self.clock.now();
        let mut left = load.waiting.len();
        while left > 0 {
            let Some(mut batch) = load.waiting.pop_front() else { break };
            load.spoil(&mut batch, usize::MAX);
            let (completion, _) = self.alone(batch)?;
            // A copy of a table that has not arrived yet.
            if completion.outcome.is_ok() && !completion.steady {
                if self.clock.now().since(since) > self.patience {
                    return Err(DeviceError::Silent(self.name));
                }
                load.waiting.push_front(completion.batch);
                continue;
            }
            self.take(load, completion, usize::MAX)?;
            left -= 1;
        }
        Ok(())
    }

    /// Sends batches one at a time, for so many seconds: what each part of the way takes. There is at least one.
    pub fn one_by_one(&mut self, load: &mut Load, seconds: f64) -> Result<Way, DeviceError> {
        let since = self.clock.now();
        let (mut batches, mut sum) = (0.0, Way { host: 0.0, device: 0.0, between: 0.0 });
        loop {
            let Some(mut batch) = load.waiting.pop_front() else { return Ok(sum) };
            load.spoil(&mut batch, 1);
            let (completion, way) = self.alone(batch)?;
            self.take(load, completion, 1)?;
            batches += 1.0;
            sum.host += way.host;
            sum.device += way.device;
            sum.between += way.between;
            if self.clock.now().since(since) as f64 >= seconds * 1e9 {
                let mean = |sum: f64| sum / batches;
                let Way { host, device, between } = sum;
                return Ok(Way { host: mean(host), device: mean(device), between: mean(between) });
            }
        }
    }

    /// Sends batches through, `under_way` of them at a time: at least `least`, and so many that it takes `seconds`. Of each one's answers the first octet is looked at:
    /// that all are would be measured too.
    pub fn flood(
        &mut self,
        load: &mut Load,
        under_way: usize,
        least: usize,
        seconds: f64,
    ) -> Result<Flood, DeviceError> {
        let (mut sent, mut back) = (0, 0);
        let mut ended: Vec<Completion> = Vec::with_capacity(under_way);
        let mut latencies = Vec::with_capacity(least);
        let nanos = (seconds * 1e9) as u64;
        let start = self.clock.now();
        let (mut now, mut last) = (start, start);
        loop {
            while sent - back < under_way
                && (sent < least || now.since(start) < nanos)
                && let Some(mut batch) = load.waiting.pop_front()
            {
                load.spoil(&mut batch, 1);
                now = self.clock.now();
                if let Some(batch) = self.submit(batch, now)? {
                    load.waiting.push_front(batch);
                    break;
                }
                sent += 1;
            }
            if sent == back {
                if sent < least {
                    // Nothing is under way, and it takes nothing.
                    return Err(DeviceError::Refused { device: self.name, why: Refusal::Full });
                }
                break;
            }
            now = self.clock.now();
            if self.device.poll(now, &mut ended) > 0 {
                last = now;
            } else if now.since(last) > self.patience {
                return Err(DeviceError::Silent(self.name));
            } else {
                std::hint::spin_loop();
            }
            for completion in ended.drain(..) {
                latencies.push(self.clock.now().since(completion.times.submitted));
                self.take(load, completion, 1)?;
                back += 1;
            }
        }
        let nanos = self.clock.now().since(start);
        latencies.sort_unstable();
        Ok(Flood { batches: back, nanos, latencies })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use accel::cpu::Inline;
    use accel::fake::{Fake, Fault};
    use accel::task::{Hashes, Task};
    use accel::{Kind, Limits};

    fn load(batches: u8) -> Load {
        let mut executor = Executor::new();
        let job = |first: u8| {
            let mut batch = Batch::new(7, Task::Hash(Hashes::new(2).unwrap()));
            (0..5).for_each(|item| batch.push(&[first + item; 24]).unwrap());
            Job::done_here(batch, &mut executor).unwrap()
        };
        (0..batches).map(job).collect()
    }

    /// Does what another does, and then changes an octet of each batch's answers: the number of the octet. Or does nothing.
    struct Liar {
        inside: Inline<Tsc>,
        octet: Option<usize>,
        steady_from: usize,
        polls: usize,
    }

    impl Liar {
        fn new(octet: Option<usize>) -> Self {
            Self { inside: Inline::new(4, Tsc::process()), octet, steady_from: 0, polls: 0 }
        }
    }

    impl Device for Liar {
        fn name(&self) -> &'static str {
            "liar"
        }
        fn limits(&self) -> Limits {
            self.inside.limits()
        }
        fn submit(&mut self, batch: Batch, now: Nanos) -> Result<(), accel::Rejected> {
            self.inside.submit(batch, now)
        }
        fn poll(&mut self, now: Nanos, ended: &mut Vec<Completion>) -> usize {
            let count = self.inside.poll(now, ended);
            for completion in ended.iter_mut() {
                self.polls += 1;
                completion.steady = self.polls > self.steady_from;
                if !completion.steady || self.octet.is_some() {
                    let at = self.octet.unwrap_or(0);
                    completion.batch.parts().2[at] ^= 1;
                }
            }
            count
        }
        fn in_flight(&self) -> usize {
            self.inside.in_flight()
        }
        fn abandon(&mut self, now: Nanos, ended: &mut Vec<Completion>) {
            self.inside.abandon(now, ended);
        }
        fn revive(&mut self, now: Nanos) -> Result<(), Failure> {
            self.inside.revive(now)
        }
    }

    fn measuring(device: &mut dyn Device) -> Measuring<'_> {
        Measuring::new(device, "it", Tsc::process())
    }

    #[test]
    fn all_batches_go_through_and_come_back_to_go_again() {
        let mut inline = Inline::new(3, Tsc::process());
        let mut it = measuring(&mut inline);
        let mut load = load(5);
        it.verify(&mut load).unwrap();
        // Three at a time, though five wait.
        let flood = it.flood(&mut load, 8, 12, 0.0).unwrap();
        assert_eq!((flood.batches, flood.latencies.len(), load.waiting.len()), (12, 12, 5));
        assert!(flood.latency(50) <= flood.latency(99) && flood.each() > 0.0);
        assert!(it.flood(&mut load, 2, 1, 0.002).unwrap().batches > 1);
        let way = it.one_by_one(&mut load, 0.0).unwrap();
        assert!(way.host + way.device + way.between > 0.0, "{way:?}");
        assert_eq!(load.waiting.len(), 5);
    }

    #[test]
    fn a_wrong_answer_has_no_figure() {
        for octet in [0, 19] {
            let mut liar = Liar::new(Some(octet));
            let wrong = measuring(&mut liar).verify(&mut load(2)).unwrap_err();
            assert!(matches!(wrong, DeviceError::Wrong { device: "it", octet: found } if found == octet));
        }
        let mut liar = Liar::new(Some(0));
        assert!(matches!(
            measuring(&mut liar).flood(&mut load(2), 2, 2, 0.0),
            Err(DeviceError::Wrong { .. })
        ));
        let wrong = measuring(&mut liar).one_by_one(&mut load(2), 0.0);
        assert!(matches!(wrong, Err(DeviceError::Wrong { .. })));
    }

    #[test]
    fn answers_from_before_don_t_pass_for_new_ones() {
        // One that gives batches back as it got them.
        let limits = Limits { kinds: Kind::ALL.to_vec(), in_flight: 4, items: 64, input: 4096, output: 4096 };
        struct Idle(Limits, Vec<(Batch, Nanos)>);
        impl Device for Idle {
            fn name(&self) -> &'static str {
                "idle"
            }
            fn limits(&self) -> Limits {
                self.0.clone()
            }
            fn submit(&mut self, batch: Batch, now: Nanos) -> Result<(), accel::Rejected> {
                self.1.push((batch, now));
                Ok(())
            }
            fn poll(&mut self, now: Nanos, ended: &mut Vec<Completion>) -> usize {
                let done = self.1.drain(..).map(|(batch, submitted)| Completion {
                    batch,
                    outcome: Ok(()),
                    times: accel::Times { submitted, started: now, ended: now },
                    steady: true,
                });
                ended.extend(done);
                ended.len()
            }
            fn in_flight(&self) -> usize {
                self.1.len()
            }
            fn abandon(&mut self, _: Nanos, _: &mut Vec<Completion>) {}
            fn revive(&mut self, _: Nanos) -> Result<(), Failure> {
                Ok(())
            }
        }
        let mut load = load(3);
        let mut inline = Inline::new(3, Tsc::process());
        measuring(&mut inline).verify(&mut load).unwrap();
        let mut idle = Idle(limits, Vec::new());
        assert!(matches!(measuring(&mut idle).verify(&mut load), Err(DeviceError::Wrong { .. })));
        assert!(matches!(measuring(&mut idle).flood(&mut load, 3, 3, 0.0), Err(DeviceError::Wrong { .. })));
    }

    #[test]
    fn what_is_not_steady_is_asked_for_again() {
        let mut liar = Liar { steady_from: 3, ..Liar::new(None) };
        measuring(&mut liar).verify(&mut load(2)).unwrap();
        assert_eq!(liar.polls, 5);
    }

    #[test]
    fn a_device_that_fails_refuses_or_is_silent_ends_the_measurement() {
        let limits = Limits { kinds: Kind::ALL.to_vec(), in_flight: 4, items: 64, input: 4096, output: 4096 };
        for (fault, expected) in [
            (Fault::Status(3), "it: the device has ended the batch with status 3"),
            (Fault::Lost, "it: the device is lost: as it was told"),
            (Fault::Full, "it: as many batches are in flight as may be"),
            (Fault::Silent, "it: nothing comes back"),
        ] {
            let mut fake = Fake::new(limits.clone(), 0);
            fake.remote().fail(fault);
            let mut it = measuring(&mut fake);
            it.patience = 1_000_000;
            assert_eq!(it.verify(&mut load(2)).unwrap_err().to_string(), expected);
            let failed = it.flood(&mut load(2), 2, 2, 0.0).unwrap_err().to_string();
            assert!(failed == expected || failed == expected.replace("it: ", "it: the device has failed: "));
        }
        let mut fake = Fake::new(Limits { items: 4, ..limits }, 0);
        let refused = measuring(&mut fake).verify(&mut load(2)).unwrap_err();
        assert!(matches!(refused, DeviceError::Refused { why: Refusal::TooLarge { .. }, .. }), "{refused}");
    }

    #[test]
    fn the_largest_part_is_the_bound() {
        let way = |host, device, between| Way { host, device, between }.bound();
        assert_eq!(way(1.0, 3.0, 2.0), "the device's work");
        assert_eq!(way(3.0, 1.0, 2.0), "the host's thread, which copies");
        assert_eq!(way(1.0, 2.0, 3.0), "the bus and orders");
    }
}
