//! The lists of a timer wheel, over timers that live elsewhere.
//!
//! [`Dial`] knows which timer comes when; where the timers are kept is the affair of [`crate::Wheel`] (a slab of them) and of
//! [`crate::flow`] (beside the flow of the same number). They lend their links to it with each call.

use crate::chunks::Chunks;
use crate::time::Nanos;

/// Wheels, and bits of a tick number that each decides.
pub(crate) const WHEELS: usize = 8;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// No timer.
const NONE: u32 = u32::MAX;
/// The shortest tick: with it 48 bits of ticks span all of [`Nanos`].
pub(crate) const LEAST_TICK_BITS: u32 = 16;

/// What the dial keeps of a timer: when it is due, and its neighbours in the slot's ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// The tick, and in the lower 16 bits the slot: wheel times [`SLOTS`] plus slot.
    when: u64,
    next: u32,
    previous: u32,
}

impl Link {
    /// Not in any list.
    pub const LOOSE: Self = Self { when: 0, next: NONE, previous: NONE };

    pub const fn tick(self) -> u64 {
        self.when >> 16
    }

    /// The timer behind this one in its slot.
    pub const fn next(self) -> u32 {
        self.next
    }

    /// The timer before it; of the first one, the last.
    pub const fn previous(self) -> u32 {
        self.previous
    }

    const fn slot(self) -> usize {
        (self.when & 0xffff) as usize
    }
}

/// Where the links of timers are found by number.
pub(crate) trait Links {
    fn link(&self, index: u32) -> Option<&Link>;
    fn link_mut(&mut self, index: u32) -> Option<&mut Link>;
}

impl Links for Chunks<Link> {
    #[inline(always)]
    fn link(&self, index: u32) -> Option<&Link> {
        self.get(index)
    }

    #[inline(always)]
    fn link_mut(&mut self, index: u32) -> Option<&mut Link> {
        self.get_mut(index)
    }
}

/// What [`Dial::due`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Due {
    /// This timer is due, and still in its list: take it out or set it anew before asking again.
    Timer(u32),
    /// There is more, but the budget is spent.
    Later,
    /// Nothing (more) is due.
    Nothing,
}

/// Eight wheels of 64 slots; a slot of wheel *n* spans 64^n ticks. Slots are rings, first set first.
#[derive(Clone, Debug)]
pub(crate) struct Dial {
    /// First timer of each slot; no memory before the first is set.
    heads: Box<[u32]>,
    /// Occupied slots of each wheel.
    occupied: [u64; WHEELS],
    /// The tick up to which everything has fired: earlier ticks hold no timers.
    now: u64,
    tick_bits: u32,
}

impl Dial {
    /// A dial without timers that begins at `now`. The tick is the power of two of nanoseconds at or below `tick_nanos`, but
    /// at least 65,536 ns.
    pub fn new(now: Nanos, tick_nanos: u64) -> Self {
        let tick_bits = tick_nanos.max(1).ilog2().max(LEAST_TICK_BITS);
        Self { heads: Box::default(), occupied: [0; WHEELS], now: now.0 >> tick_bits, tick_bits }
    }

    /// Bytes of memory owned, without those of `self`.
    pub const fn memory(&self) -> usize {
        self.heads.len() * size_of::<u32>()
    }

    /// The tick for a deadline: rounded up, so that nothing is ever early.
    pub fn tick(&self, deadline: Nanos) -> u64 {
        let whole = self.whole_ticks(deadline);
        // Only the very last tick of time, which deadlines that mean "never" fall into, has none to be rounded up to.
        (whole + u64::from(whole << self.tick_bits != deadline.0)).min(u64::MAX >> self.tick_bits)
    }

    /// Ticks that have passed at `now`.
    pub const fn whole_ticks(&self, now: Nanos) -> u64 {
        now.0 >> self.tick_bits
    }

    /// When a tick begins.
    pub const fn time(&self, tick: u64) -> Nanos {
        Nanos(tick << self.tick_bits)
    }

    /// Takes the memory for the slots, if that hasn't happened yet.
    #[inline]
    pub fn settle_in(&mut self) {
        if self.heads.is_empty() {
            self.heads = vec![NONE; WHEELS * SLOTS].into_boxed_slice();
        }
    }

    /// Puts a timer that is in no list into the slot that its tick and the present time give.
    pub fn set(&mut self, timers: &mut impl Links, index: u32, tick: u64) {
        self.settle_in();
        let reached = tick.max(self.now);
        // The highest differing digit says in which wheel the deadline is ahead in this turn.
        let differing = reached ^ self.now;
        let wheel = ((differing | 1).ilog2() / SLOT_BITS).min(WHEELS as u32 - 1);
        let slot = (reached >> (SLOT_BITS * wheel)) as usize & (SLOTS - 1);
        let place = wheel as usize * SLOTS + slot;
        let Some(head) = self.heads.get_mut(place) else { return };
        let (mut next, mut previous) = (index, index);
        if *head == NONE {
            *head = index;
            if let Some(occupied) = self.occupied.get_mut(wheel as usize) {
                *occupied |= 1 << slot;
            }
        } else if let Some(first) = timers.link_mut(*head) {
            next = *head;
            previous = std::mem::replace(&mut first.previous, index);
            if let Some(last) = timers.link_mut(previous) {
                last.next = index;
            }
        }
        if let Some(link) = timers.link_mut(index) {
            *link = Link { when: tick << 16 | place as u64, next, previous };
        }
    }

    /// Takes a timer out of its list.
    pub fn unset(&mut self, timers: &mut impl Links, index: u32) {
        let Some(link) = timers.link(index).copied() else { return };
        if link.next == index {
            if let Some(head) = self.heads.get_mut(link.slot()) {
                *head = NONE;
            }
            if let Some(occupied) = self.occupied.get_mut(link.slot() / SLOTS) {
                *occupied &= !(1 << (link.slot() % SLOTS));
            }
            return;
        }
        if let Some(next) = timers.link_mut(link.next) {
            next.previous = link.previous;
        }
        if let Some(previous) = timers.link_mut(link.previous) {
            previous.next = link.next;
        }
        if let Some(head) = self.heads.get_mut(link.slot())
            && *head == index
        {
            *head = link.next;
        }
    }

    /// Tells the neighbours of timer `from` that it is going to have the number `to`, which no listed timer has.
    pub fn renumber(&mut self, timers: &mut impl Links, from: u32, to: u32) {
        let Some(link) = timers.link(from).copied() else { return };
        // A timer alone in its slot is its own neighbour: then this changes the link that is going to move.
        if let Some(next) = timers.link_mut(link.next) {
            next.previous = to;
        }
        if let Some(previous) = timers.link_mut(link.previous) {
            previous.next = to;
        }
        if let Some(head) = self.heads.get_mut(link.slot())
            && *head == from
        {
            *head = to;
        }
    }

    /// Moves the time towards the tick `target` until a timer is due. A timer found or moved between wheels costs one of `budget`.
    pub fn due(&mut self, timers: &mut impl Links, target: u64, budget: &mut usize) -> Due {
        while let Some((wheel, slot, start)) = self.first_slot().filter(|(_, _, start)| *start <= target) {
            // A slot of a higher wheel may have begun before now, never one of the lowest.
            self.now = self.now.max(start);
            while let Some(index) = self.head(wheel, slot) {
                let Some(left) = budget.checked_sub(1) else { return Due::Later };
                *budget = left;
                if wheel == 0 {
                    return Due::Timer(index);
                }
                self.unset(timers, index);
                let tick = timers.link(index).map_or(0, |link| link.tick());
                self.set(timers, index, tick);
            }
        }
        self.now = self.now.max(target);
        Due::Nothing
    }

    /// The earliest time at which [`Self::due`] may have something to do.
    pub fn next_event(&self) -> Option<Nanos> {
        self.first_slot().map(|(_, _, start)| Nanos(start.max(self.now) << self.tick_bits))
    }

    /// The first timer of the slot that begins first.
    pub fn first(&self) -> Option<u32> {
        self.first_slot().and_then(|(wheel, slot, _)| self.head(wheel, slot))
    }

    fn head(&self, wheel: usize, slot: usize) -> Option<u32> {
        self.heads.get(wheel * SLOTS + slot).copied().filter(|index| *index != NONE)
    }

    /// The occupied slot that begins first (wheel, slot, first tick). Where two begin together the higher wheel's comes first:
    /// its timers may belong before those of the other.
    fn first_slot(&self) -> Option<(usize, usize, u64)> {
        let mut first: Option<(usize, usize, u64)> = None;
        for (wheel, occupied) in self.occupied.iter().enumerate() {
            let shift = SLOT_BITS * wheel as u32;
            let current = (self.now >> shift) & (SLOTS as u64 - 1);
            // Slots behind the hand are empty: what would lie there belongs to a later turn, that is to a higher wheel.
            let ahead = occupied >> current << current;
            if ahead == 0 {
                continue;
            }
            let slot = ahead.trailing_zeros() as usize;
            let turn = self.now >> shift >> SLOT_BITS << SLOT_BITS;
            let start = ((turn | slot as u64) << shift).max(self.now);
            if first.is_none_or(|(_, _, earliest)| start <= earliest) {
                first = Some((wheel, slot, start));
            }
        }
        first
    }
}
