//! Timers by the hundred thousand.
//!
//! **Problem.** Sessions, flows, retransmissions and reports have deadlines, most of which are moved or cancelled before they
//! come. Setting and cancelling must be cheap and must not depend on how many there are, and a worker must never spend
//! more than a burst's time on those that fall due together.
//!
//! **Layout.** Eight wheels of 64 slots; a slot of wheel *n* spans 64^n ticks. A timer goes to the lowest wheel in whose present
//! turn its deadline lies, and moves down when the time reaches its slot, at most seven times. Slots are doubly linked lists
//! through a slab of timers, so that cancelling unlinks in place; a bitmap per wheel leads from one occupied slot
//! to the next, so that time without timers costs nothing, however long.
//!
//! **Promise.** A timer never fires early, and at most one tick late, if [`Wheel::advance`] is called often enough and with enough of a budget.
//! Deadlines that fall into the same tick fire in no particular order.
//!
//! **Cost.** Two kibibytes once a timer is set, and per timer 24 bytes and the value. Insert and cancel: a slab operation and a
//! list operation.
//!
//! **When not to use it.** For few timers (a sorted list will do), or where order within a tick matters.

use crate::dial::{Dial, Due, Link, Links};
use crate::hash::Full;
use crate::slab::Slab;
use crate::time::Nanos;

/// Names a timer for good: when it has fired or was cancelled, its name means nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TimerId {
    index: u32,
    generation: u32,
}

#[derive(Clone, Debug)]
struct Timer<T> {
    link: Link,
    value: T,
}

impl<T> Links for Slab<Timer<T>> {
    #[inline(always)]
    fn link(&self, index: u32) -> Option<&Link> {
        self.get(index).map(|timer| &timer.link)
    }

    #[inline(always)]
    fn link_mut(&mut self, index: u32) -> Option<&mut Link> {
        self.get_mut(index).map(|timer| &mut timer.link)
    }
}

/// A hierarchical timer wheel; see the module's documentation.
///
/// ```
/// use tables::{Nanos, Wheel};
/// let mut wheel = Wheel::new(Nanos(0), 1_000_000, 100);
/// let id = wheel.insert(Nanos(5_000_000), "five")?;
/// wheel.insert(Nanos(7_000_000), "seven")?;
/// assert_eq!(wheel.cancel(id), Some("five"));
/// let mut fired = Vec::new();
/// wheel.advance(Nanos(10_000_000), &mut |value| fired.push(value));
/// assert_eq!(fired, ["seven"]);
/// # Ok::<(), tables::Full>(())
/// ```
#[derive(Clone, Debug)]
pub struct Wheel<T> {
    timers: Slab<Timer<T>>,
    dial: Dial,
    budget: usize,
}

impl<T> Wheel<T> {
    /// Timers (fired or moved between wheels) that one [`Wheel::advance`] handles unless told otherwise.
    pub const BUDGET: usize = 256;

    /// An empty wheel that begins at `now`, of at most `limit` timers. The tick is the power of two of nanoseconds
    /// at or below `tick_nanos`, but at least 65,536 ns.
    pub fn new(now: Nanos, tick_nanos: u64, limit: u32) -> Self {
        Self { timers: Slab::new(limit), dial: Dial::new(now, tick_nanos), budget: Self::BUDGET }
    }

    /// Handles at most this many timers per [`Self::advance`].
    #[must_use]
    pub const fn with_budget(mut self, timers: usize) -> Self {
        self.budget = if timers == 0 { 1 } else { timers };
        self
    }

    /// Number of timers set.
    pub const fn len(&self) -> usize {
        self.timers.len()
    }

    /// Whether no timer is set.
    pub const fn is_empty(&self) -> bool {
        self.timers.is_empty()
    }

    /// Sets a timer. A deadline in the past is due at the next [`Self::advance`].
    pub fn insert(&mut self, deadline: Nanos, value: T) -> Result<TimerId, Full> {
        let index = self.timers.insert(Timer { link: Link::LOOSE, value })?;
        self.dial.set(&mut self.timers, index, self.dial.tick(deadline));
        Ok(TimerId { index, generation: self.timers.generation(index) })
    }

    /// Cancels a timer and returns its value; `None` if it has fired or was cancelled before.
    pub fn cancel(&mut self, id: TimerId) -> Option<T> {
        self.timers.get_if(id.index, id.generation)?;
        self.dial.unset(&mut self.timers, id.index);
        self.timers.remove(id.index).map(|timer| timer.value)
    }

    /// When a timer is due, rounded up to a tick; `None` if it has fired or was cancelled. Set to that, another wheel's is due at the
    /// same time.
    pub fn deadline(&self, id: TimerId) -> Option<Nanos> {
        let timer = self.timers.get_if(id.index, id.generation)?;
        Some(self.dial.time(timer.link.tick()))
    }

    /// Moves the time forward and hands over what is due, in the order of ticks. Returns whether all of it was: `false` means the
    /// budget ran out, and the next call goes on from there.
    pub fn advance(&mut self, now: Nanos, fire: &mut impl FnMut(T)) -> bool {
        let target = self.dial.whole_ticks(now);
        let mut budget = self.budget;
        loop {
            match self.dial.due(&mut self.timers, target, &mut budget) {
                Due::Timer(index) => {
                    self.dial.unset(&mut self.timers, index);
                    if let Some(timer) = self.timers.remove(index) {
                        fire(timer.value);
                    }
                }
                Due::Later => return false,
                Due::Nothing => return true,
            }
        }
    }

    /// The earliest time at which [`Self::advance`] may have something to do; `None` without timers. For sleeping: what is
    /// due then may be just a move between wheels, so ask again.
    pub fn next_event(&self) -> Option<Nanos> {
        self.dial.next_event()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::dial::{LEAST_TICK_BITS, WHEELS};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const TICK: u64 = 1 << LEAST_TICK_BITS;

    #[derive(Clone, Debug)]
    enum Op {
        Insert(u64),
        Cancel(usize),
        Advance(u64),
    }

    /// Spans of every order of magnitude, often whole ticks and turns.
    fn span() -> impl Strategy<Value = u64> {
        prop_oneof![
            any::<u64>().prop_flat_map(|value| (0_u32..64).prop_map(move |shift| value >> shift)),
            (0_u64..4, 0_u32..44).prop_map(|(factor, shift)| factor << shift << 16),
            0_u64..200 * TICK,
        ]
    }

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        let op = prop_oneof![
            4 => span().prop_map(Op::Insert),
            1 => any::<usize>().prop_map(Op::Cancel),
            2 => span().prop_map(Op::Advance),
        ];
        prop::collection::vec(op, 0..200)
    }

    /// Fires what a sorted map says is due, in the same order of ticks, whatever the budget.
    fn run(start: u64, ops: Vec<Op>, budget: usize) {
        let mut now = Nanos(start);
        let mut wheel = Wheel::new(now, TICK, 1000).with_budget(budget);
        let mut model: BTreeMap<(u64, usize), TimerId> = BTreeMap::new();
        let mut known = Vec::new();
        for (value, op) in ops.into_iter().enumerate() {
            match op {
                Op::Insert(after) => {
                    let deadline = now.plus(after);
                    let tick = deadline.0.div_ceil(TICK).clamp(now.0 / TICK, u64::MAX / TICK);
                    let id = wheel.insert(deadline, (tick, value)).unwrap();
                    assert_eq!(wheel.deadline(id).map(|due| (due.0 / TICK).max(now.0 / TICK)), Some(tick));
                    model.insert((tick, value), id);
                    known.push(((tick, value), id));
                }
                Op::Cancel(which) if !known.is_empty() => {
                    let (key, id) = known[which % known.len()];
                    assert_eq!(wheel.cancel(id), model.remove(&key).map(|_| key));
                    assert_eq!(wheel.deadline(id), None);
                }
                Op::Cancel(_) => (),
                Op::Advance(by) => {
                    now = now.plus(by);
                    let mut fired = Vec::new();
                    let mut calls = 0;
                    loop {
                        let before = fired.len();
                        let done = wheel.advance(now, &mut |key| fired.push(key));
                        assert!(fired.len() - before <= budget);
                        calls += 1;
                        if done {
                            break;
                        }
                    }
                    assert!(calls <= 2 + (known.len() * WHEELS) / budget);
                    assert!(fired.is_sorted_by_key(|(tick, _)| *tick), "{fired:?}");
                    fired.sort_unstable();
                    let later = model.split_off(&(now.0 / TICK + 1, 0));
                    assert_eq!(fired, std::mem::replace(&mut model, later).into_keys().collect::<Vec<_>>());
                }
            }
            assert_eq!(wheel.len(), model.len());
            let first = model.keys().next().map(|(tick, _)| *tick);
            assert!(
                wheel.next_event().is_none_or(|event| Some(event.0 / TICK) <= first) == first.is_some()
                    || first.is_none()
            );
            assert_eq!(wheel.next_event().is_none(), first.is_none());
        }
    }

    proptest! {
        #[test]
        fn equals_a_sorted_map(start in span(), ops in ops(), budget in 1_usize..50) {
            run(start, ops, budget);
        }
    }

    #[test]
    fn timers_set_between_two_calls_of_a_spent_budget_keep_their_order() {
        let mut wheel = Wheel::new(Nanos(0), TICK, 100).with_budget(1);
        for _ in 0..3 {
            wheel.insert(Nanos(64 * TICK), 64).unwrap();
        }
        let mut fired = Vec::new();
        assert!(!wheel.advance(Nanos(100 * TICK), &mut |tick| fired.push(tick)));
        wheel.insert(Nanos(65 * TICK), 65).unwrap();
        wheel.insert(Nanos(3 * TICK), 3).unwrap();
        while !wheel.advance(Nanos(100 * TICK), &mut |tick| fired.push(tick)) {}
        assert_eq!(fired.len(), 5);
        assert_eq!(fired.last(), Some(&65));
    }

    #[test]
    fn the_limit_is_kept() {
        let mut wheel = Wheel::new(Nanos(0), TICK, 1);
        let id = wheel.insert(Nanos(1), 'a').unwrap();
        assert_eq!(wheel.insert(Nanos(1), 'b'), Err(Full));
        assert_eq!(wheel.cancel(id), Some('a'));
        assert_eq!(wheel.cancel(id), None);
        let again = wheel.insert(Nanos(1), 'c').unwrap();
        assert_eq!(wheel.cancel(id), None, "an old name must not reach the new timer");
        assert_eq!(wheel.cancel(again), Some('c'));
        assert!(wheel.is_empty() && wheel.next_event().is_none());
    }
}
