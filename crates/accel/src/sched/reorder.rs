//! Packets leave in the order in which they came: a sliding window for each flow.
//!
//! The window is so many sequence numbers wide and begins with the next one that is waited for (thesis, Figures 4.4 to 4.6):
//!
//! - A packet *inside* waits there until all before it have come. What has no gap before it leaves, and the window slides behind it.
//! - An *early* packet lies behind the window's end. All that waits inside leaves, in order, the window moves so that the early packet is its middle, and
//!   what then lies before it is waited for no longer than that.
//! - A *late* packet lies before the window: it leaves at once, so that it doesn't come even later.
//!
//! Whatever leaves is counted as *in order* unless one with a higher number has left before it. A number that comes twice is the caller's to prevent: it is refused.

use std::collections::VecDeque;

/// What became of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Packets that left after all with lower numbers that left.
    pub in_order: u64,
    /// Packets that left after one with a higher number.
    pub out_of_order: u64,
    /// Packets that came before the window's begin was where they belong: each is also out of order.
    pub late: u64,
    /// Packets that lay behind the window, and moved it.
    pub early: u64,
    /// Numbers that the window gave up waiting for when it moved.
    pub given_up: u64,
    /// Numbers that came twice: not let out.
    pub twice: u64,
}

impl Counters {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            in_order: self.in_order + other.in_order,
            out_of_order: self.out_of_order + other.out_of_order,
            late: self.late + other.late,
            early: self.early + other.early,
            given_up: self.given_up + other.given_up,
            twice: self.twice + other.twice,
        }
    }
}

/// What is known of a number in the window.
#[derive(Debug)]
enum Place<T> {
    /// It is waited for.
    Awaited,
    /// Nothing will come.
    Void,
    /// It is here.
    Here(T),
}

/// The packets of a flow that wait for others.
#[derive(Debug)]
pub struct Window<T> {
    /// The number that is waited for: the window's begin.
    next: u64,
    /// One above the highest number that has left.
    left: u64,
    /// Its places, from `next` on.
    places: VecDeque<Place<T>>,
    size: usize,
    waiting: usize,
    counters: Counters,
}

impl<T> Window<T> {
    /// An empty one of so many numbers (at least two), from number zero on.
    pub fn new(size: usize) -> Self {
        let size = size.max(2);
        let places = std::iter::repeat_with(|| Place::Awaited).take(size).collect();
        Self { next: 0, left: 0, places, size, waiting: 0, counters: Counters::default() }
    }

    /// What became of packets so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Packets that wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Takes the packet with a number; `leave` gets all that leave now, and whether each is in order.
    pub fn take(&mut self, number: u64, packet: T, leave: &mut impl FnMut(T, bool)) {
        let Some(ahead) = number.checked_sub(self.next) else {
            self.counters.late += 1;
            self.depart(number, packet, leave);
            return;
        };
        if ahead >= self.size as u64 {
            self.counters.early += 1;
            self.move_to(number - self.size as u64 / 2, leave);
        }
        let place = (number - self.next) as usize;
        let Some(place @ (Place::Awaited | Place::Void)) = self.places.get_mut(place) else {
            self.counters.twice += 1;
            return;
        };
        *place = Place::Here(packet);
        self.waiting += 1;
        self.slide(leave);
    }

    /// Lets all go that wait, in their order: nothing more will come, or nobody wants to wait.
    pub fn drain(&mut self, leave: &mut impl FnMut(T, bool)) {
        while self.waiting > 0 {
            self.step(leave);
        }
    }

    /// Nothing will come for that number: nobody waits for it.
    pub fn give_up(&mut self, number: u64, leave: &mut impl FnMut(T, bool)) {
        let place = number.checked_sub(self.next).and_then(|ahead| self.places.get_mut(ahead as usize));
        if let Some(place @ Place::Awaited) = place {
            *place = Place::Void;
            self.slide(leave);
        }
    }

    /// Lets out what has no gap before it.
    fn slide(&mut self, leave: &mut impl FnMut(T, bool)) {
        while self.places.front().is_some_and(|first| !matches!(first, Place::Awaited)) {
            self.step(leave);
        }
    }

    /// The window's begin moves forward to a number; what waits before it leaves. Figure 4.5: all that is inside leaves.
    fn move_to(&mut self, begin: u64, leave: &mut impl FnMut(T, bool)) {
        self.drain(leave);
        if let Some(skipped) = begin.checked_sub(self.next) {
            self.counters.given_up += skipped;
            self.next = begin;
        }
    }

    /// By one number.
    fn step(&mut self, leave: &mut impl FnMut(T, bool)) {
        let number = self.next;
        self.next += 1;
        let first = self.places.pop_front();
        self.places.push_back(Place::Awaited);
        if let Some(Place::Here(packet)) = first {
            self.waiting -= 1;
            self.depart(number, packet, leave);
        } else {
            self.counters.given_up += 1;
        }
    }

    fn depart(&mut self, number: u64, packet: T, leave: &mut impl FnMut(T, bool)) {
        let in_order = number >= self.left;
        if in_order {
            self.left = number + 1;
            self.counters.in_order += 1;
        } else {
            self.counters.out_of_order += 1;
        }
        leave(packet, in_order);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn take(window: &mut Window<u64>, number: u64) -> Vec<(u64, bool)> {
        let mut left = Vec::new();
        window.take(number, number, &mut |packet, in_order| left.push((packet, in_order)));
        left
    }

    #[test]
    fn figure_4_4_and_4_6() {
        let mut window = Window::new(8);
        (0..4).for_each(|number| assert_eq!(take(&mut window, number), [(number, true)]));
        assert_eq!(take(&mut window, 5), []);
        assert_eq!(take(&mut window, 6), []);
        assert_eq!(window.waiting(), 2);
        assert_eq!(take(&mut window, 4), [(4, true), (5, true), (6, true)]);
        // Packet 2 again, as if it had been lost: late, and gone at once.
        assert_eq!(take(&mut window, 2), [(2, false)]);
        let counters = window.counters();
        assert_eq!((counters.late, counters.in_order, counters.out_of_order), (1, 7, 1));
    }

    #[test]
    fn figure_4_5() {
        let mut window = Window::new(8);
        (0..3).for_each(|number| _ = take(&mut window, number));
        // It waits for 3; 4, 5 and 6 are there, and then 16 comes.
        (4..7).for_each(|number| assert_eq!(take(&mut window, number), []));
        assert_eq!(take(&mut window, 16), [(4, true), (5, true), (6, true)]);
        // 16 is the middle: from 12 on is inside, before that it is late.
        assert_eq!(take(&mut window, 11), [(11, true)], "late, but nothing higher has left");
        (13..16).for_each(|number| assert_eq!(take(&mut window, number), []));
        assert_eq!(take(&mut window, 3), [(3, false)]);
        assert_eq!(take(&mut window, 12), (12..17).map(|number| (number, true)).collect::<Vec<_>>());
        let counters = window.counters();
        assert_eq!((counters.early, counters.late, counters.given_up), (1, 2, 6), "{counters:?}");
    }

    #[test]
    fn a_number_twice_is_refused_and_one_given_up_is_passed() {
        let mut window = Window::new(4);
        assert_eq!(take(&mut window, 1), []);
        assert_eq!(take(&mut window, 1), []);
        assert_eq!(window.counters().twice, 1);
        let mut left = Vec::new();
        [1, 2, 9, 0]
            .into_iter()
            .for_each(|number| window.give_up(number, &mut |packet, _| left.push(packet)));
        assert_eq!((left, window.waiting()), (vec![1], 0));
        assert_eq!(take(&mut window, 3), [(3, true)], "2 was given up before");
    }

    proptest! {
        /// Whatever order numbers come in, each leaves once, and if none comes further from its place than the window is wide, all leave in order.
        #[test]
        fn all_leave_once(size in 2_usize..40, shifts in prop::collection::vec(0_u64..60, 1..300)) {
            let mut order: Vec<u64> = (0..shifts.len() as u64).collect();
            order.sort_by_key(|&number| number + shifts[number as usize]);
            let mut window = Window::new(size);
            let mut left = Vec::new();
            let mut highest = None;
            for &number in &order {
                window.take(number, number, &mut |packet, in_order| left.push((packet, in_order)));
                prop_assert!(window.waiting() < size);
            }
            window.drain(&mut |packet, in_order| left.push((packet, in_order)));
            for &(packet, in_order) in &left {
                prop_assert_eq!(in_order, highest.is_none_or(|highest| packet > highest));
                highest = highest.max(Some(packet));
            }
            let counters = window.counters();
            prop_assert_eq!(counters.in_order + counters.out_of_order, left.len() as u64);
            prop_assert!(counters.late >= counters.out_of_order);
            let mut numbers: Vec<u64> = left.into_iter().map(|(packet, _)| packet).collect();
            // The first number that hasn't come is never more than the window behind what comes.
            let mut missing = 0;
            let mut came = std::collections::HashSet::new();
            let tight = order.iter().all(|&number| {
                let fits = number < missing + size as u64;
                came.insert(number);
                while came.contains(&missing) { missing += 1; }
                fits
            });
            if tight {
                prop_assert!(numbers.is_sorted());
                prop_assert_eq!(counters.early + counters.late, 0);
            }
            numbers.sort_unstable();
            prop_assert_eq!(numbers, (0..shifts.len() as u64).collect::<Vec<_>>());
        }
    }
}
