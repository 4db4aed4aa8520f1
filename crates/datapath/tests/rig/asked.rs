//! Bursts whose look-ups a device is asked for, now and then in vain.

use datapath::lookups::{Batch, Lesson, LookupDevice, Model, Refused, Trouble, Worth};
use datapath::{Burst, Datapath, Outbox};
use io::mem::{MemFrame, MemPool};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tables::Nanos;

pub struct Asked {
    device: Model,
    trouble: Arc<Trouble>,
    rng: StdRng,
    lessons: Vec<Lesson>,
    number: u64,
    /// Of all hints.
    pub worth: Worth,
    /// Bursts that were finished without an answer.
    pub unanswered: usize,
    /// Answers that came too late.
    pub late: usize,
}

impl Asked {
    /// A device that answers wrongly `lies` times of 256.
    pub fn new(seed: u64, lies: u64) -> Self {
        let trouble = Arc::new(Trouble::default());
        trouble.lies.store(lies, Ordering::Relaxed);
        Self {
            device: Model::new(4_096, 6, Arc::clone(&trouble)),
            trouble,
            rng: StdRng::seed_from_u64(seed),
            lessons: Vec::new(),
            number: 0,
            worth: Worth::default(),
            unanswered: 0,
            late: 0,
        }
    }

    /// Processes bursts from ports that are under way together.
    pub fn process(
        &mut self,
        datapath: &mut Datapath<MemFrame>,
        now: Nanos,
        bursts: impl IntoIterator<Item = (u16, Burst<MemFrame>)>,
        out: &mut Outbox<MemFrame>,
        pool: &mut MemPool,
    ) {
        let mut under_way: Vec<_> = bursts
            .into_iter()
            .map(|(port, mut burst)| {
                datapath.read(now, port, &mut burst, out);
                let number = self.ask(datapath, now, &mut burst);
                assert_eq!(datapath.counters().balance(), 0);
                (burst, number)
            })
            .collect();
        for (burst, number) in &mut under_way {
            let batch = number.and_then(|number| self.answer(now, number));
            self.unanswered += usize::from(batch.is_none());
            datapath.finish_answered(now, burst, batch.as_ref(), out, pool);
            assert!(burst.frames.is_empty());
            self.lessons.extend(burst.take_lessons());
            let Worth { right, wrong, unknown, nothing } = burst.take_worth();
            self.worth.right += right;
            self.worth.wrong += wrong;
            self.worth.unknown += unknown;
            self.worth.nothing += nothing;
        }
        assert_eq!((datapath.counters().under_way, datapath.counters().balance()), (0, 0));
    }

    fn ask(
        &mut self,
        datapath: &mut Datapath<MemFrame>,
        now: Nanos,
        burst: &mut Burst<MemFrame>,
    ) -> Option<u64> {
        self.number += 1;
        let mut batch = Batch::new();
        batch.number = self.number;
        let lessons = self.lessons.len().min(Batch::LESSONS);
        batch.lessons.extend(self.lessons.drain(..lessons));
        datapath.question(burst, &mut batch);
        assert!(batch.keys.len() <= Batch::QUESTIONS);
        self.trouble.latency.store(self.rng.random_range(0..20_000_000), Ordering::Relaxed);
        self.trouble.full.store(self.rng.random_range(0..20) == 0, Ordering::Relaxed);
        match self.device.submit(now, batch) {
            Ok(()) => Some(self.number),
            Err(Refused::Full(_)) => None,
            Err(Refused::Lost(lost)) => panic!("{lost}"),
        }
    }

    /// Its batch, if that is back: others before it come too late.
    fn answer(&mut self, now: Nanos, number: u64) -> Option<Batch> {
        // It may be asked at any time until its burst is finished.
        let until = now.plus(self.rng.random_range(0..60_000_000));
        while let Some(batch) = self.device.poll(until).unwrap() {
            if batch.number == number {
                return Some(batch);
            }
            self.late += 1;
            assert!(batch.number < number, "a device answers in order");
        }
        None
    }
}
