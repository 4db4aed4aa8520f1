//! A device in memory: what latency and faults do to those who ask, where there is no accelerator.

use super::{Batch, LookupDevice, Lost, Refused};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tables::hash::mix;
use tables::{Memo, Nanos};

/// What a [`Model`] is to do from now on, settable from any thread while it runs.
#[derive(Debug, Default)]
pub struct Trouble {
    /// Nanoseconds until a batch that is handed over from now on is back.
    pub latency: AtomicU64,
    /// It gives nothing back for now.
    pub stuck: AtomicBool,
    /// It takes nothing.
    pub full: AtomicBool,
    /// It is lost.
    pub lost: AtomicBool,
    /// Of 256 answers, so many are random numbers, small ones half of the time.
    pub lies: AtomicU64,
    /// It learns nothing more.
    pub deaf: AtomicBool,
}

impl Trouble {
    fn is(flag: &AtomicBool) -> bool {
        flag.load(Ordering::Relaxed)
    }
}

/// Answers from a memo, as late as it is told. It looks up what it is asked at once, in the asker's own thread: what it costs besides its
/// latency is not a device's.
#[derive(Debug)]
pub struct Model {
    memo: Memo,
    /// What is under way, and when it is back.
    under_way: VecDeque<(Nanos, Batch)>,
    room: usize,
    trouble: Arc<Trouble>,
    random: u64,
}

impl Model {
    /// A device that remembers about so many entries and takes so many batches at a time.
    pub fn new(entries: usize, room: usize, trouble: Arc<Trouble>) -> Self {
        Self { memo: Memo::new(entries), under_way: VecDeque::with_capacity(room), room, trouble, random: 1 }
    }

    fn answer(&mut self, batch: &mut Batch) {
        if Trouble::is(&self.trouble.deaf) {
            batch.lessons.clear();
        }
        batch.answer_by(&mut self.memo);
        let lies = self.trouble.lies.load(Ordering::Relaxed);
        if lies > 0 {
            for answer in &mut batch.answers {
                self.random = mix(self.random ^ 0x5eed, 0x9e37_79b9_7f4a_7c15);
                if self.random & 0xff < lies {
                    let number = (self.random >> 32) as u32;
                    *answer = if self.random & 0x100 == 0 { number } else { number >> 27 };
                }
            }
        }
    }

    fn lost(&self) -> Result<(), Lost> {
        if Trouble::is(&self.trouble.lost) { Err(Lost("it was told to be".into())) } else { Ok(()) }
    }
}

impl LookupDevice for Model {
    fn submit(&mut self, now: Nanos, mut batch: Batch) -> Result<(), Refused> {
        self.lost().map_err(Refused::Lost)?;
        if self.under_way.len() >= self.room || Trouble::is(&self.trouble.full) {
            return Err(Refused::Full(batch));
        }
        self.answer(&mut batch);
        let back = now.plus(self.trouble.latency.load(Ordering::Relaxed));
        self.under_way.push_back((back, batch));
        Ok(())
    }

    fn poll(&mut self, now: Nanos) -> Result<Option<Batch>, Lost> {
        self.lost()?;
        let is_back = self.under_way.front().is_some_and(|(back, _)| *back <= now);
        let is_back = is_back && !Trouble::is(&self.trouble.stuck);
        Ok(if is_back { self.under_way.pop_front().map(|(_, batch)| batch) } else { None })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{Lesson, UNKNOWN};
    use super::*;

    fn batch(number: u64, keys: &[u64], lessons: &[(u64, u32)]) -> Batch {
        let lessons = lessons.iter().map(|&(key, value)| Lesson { key, value }).collect();
        Batch { number, keys: keys.into(), lessons, ..Batch::new() }
    }

    #[test]
    fn batches_come_back_in_order_when_it_is_time() {
        let trouble = Arc::new(Trouble::default());
        let mut device = Model::new(100, 2, Arc::clone(&trouble));
        trouble.latency.store(10, Ordering::Relaxed);
        device.submit(Nanos(0), batch(1, &[5, 6], &[(5, 50)])).unwrap();
        trouble.latency.store(0, Ordering::Relaxed);
        device.submit(Nanos(0), batch(2, &[5, 6], &[(5, UNKNOWN), (6, 60)])).unwrap();
        assert!(
            matches!(device.submit(Nanos(0), batch(3, &[], &[])), Err(Refused::Full(back)) if back.number == 3)
        );
        assert_eq!(device.poll(Nanos(9)), Ok(None), "the second is not before the first");
        let mut back = || device.poll(Nanos(10)).unwrap().map(|batch| (batch.number, batch.answers));
        assert_eq!(back(), Some((1, vec![50, UNKNOWN])));
        assert_eq!(back(), Some((2, vec![UNKNOWN, 60])));
        assert_eq!(back(), None);
    }

    #[test]
    fn it_fails_on_command() {
        let trouble = Arc::new(Trouble::default());
        let mut device = Model::new(100, 9, Arc::clone(&trouble));
        trouble.deaf.store(true, Ordering::Relaxed);
        trouble.lies.store(256, Ordering::Relaxed);
        trouble.stuck.store(true, Ordering::Relaxed);
        device.submit(Nanos(0), batch(1, &[1, 2, 3], &[(1, 10)])).unwrap();
        assert_eq!(device.poll(Nanos(0)), Ok(None));
        trouble.stuck.store(false, Ordering::Relaxed);
        let answers = device.poll(Nanos(0)).unwrap().unwrap().answers;
        assert!(answers.len() == 3 && answers.iter().all(|answer| *answer != 10));
        trouble.full.store(true, Ordering::Relaxed);
        assert!(matches!(device.submit(Nanos(0), batch(2, &[], &[])), Err(Refused::Full(_))));
        trouble.lost.store(true, Ordering::Relaxed);
        assert!(matches!(device.submit(Nanos(0), batch(3, &[], &[])), Err(Refused::Lost(_))));
        assert!(device.poll(Nanos(0)).is_err());
    }
}
