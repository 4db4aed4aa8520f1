//! The protocol under every order of steps that a scheduler comes up with: workers made of nothing but [`Mover`]s, queues and rings.
//!
//! A generator deals numbered packets of several shards out to receive queues by a redirection table, or always to one worker, as
//! a NIC without the right hash does. Three workers serve, hand off, park and move shards. Whatever the order: each packet is served
//! once, by the worker that has the shard, and after all earlier ones of its shard.

#![allow(clippy::unwrap_used)]

use super::{Heard, Move, Mover, Step, Taken, Word};
use session::ShardId;
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::mpsc::{Receiver, Sender, channel};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;
use std::collections::VecDeque;
use tables::Nanos;

const WORKERS: usize = 3;
const SHARDS: usize = 4;
/// Packets of each shard.
const PACKETS: u32 = 12;
/// Moves one after the other.
const MOVES: u64 = 3;

/// A packet: its shard, and its number in the shard.
type Packet = (usize, u32);

/// A shard: its number and the packets that it has served.
type State = (usize, Vec<u32>);

enum Item {
    Packet(Packet),
    Word(Word<State>),
}

/// What all share: the NIC and the table of owners.
struct Shared {
    owners: Mutex<Vec<usize>>,
    /// By shard: the queue.
    reta: Mutex<Vec<usize>>,
    queues: Vec<Mutex<VecDeque<Packet>>>,
    /// Frames that were sent, in order: by shard.
    wire: Mutex<Vec<Packet>>,
    /// Orders for workers to take shards.
    orders: Vec<Mutex<VecDeque<std::sync::Arc<Move>>>>,
    moved: Mutex<u64>,
    hurried: Mutex<bool>,
}

struct Worker {
    me: usize,
    shared: Arc<Shared>,
    mover: Mover<Packet>,
    shards: Vec<Option<State>>,
    to: Vec<Sender<Item>>,
    from: Vec<Receiver<Item>>,
    watching: bool,
    was_empty: bool,
    /// Sent, and not on the wire yet.
    sending: VecDeque<Packet>,
    packed: Vec<State>,
    mark: Option<(u64, usize)>,
    time: u64,
}

impl Worker {
    fn round(&mut self) {
        self.time += 1;
        let now = Nanos(self.time);
        // Receive: two at most.
        for _ in 0..2 {
            let packet = self.shared.queues[self.me].lock().unwrap().pop_front();
            self.was_empty |= packet.is_none();
            if let Some(packet) = packet {
                self.serve(now, packet);
            }
        }
        for other in 0..WORKERS {
            for _ in 0..2 {
                match self.from[other].try_recv() {
                    Ok(Item::Packet(packet)) => self.serve(now, packet),
                    Ok(Item::Word(word)) => self.hear(now, other, word),
                    Err(_) => break,
                }
            }
        }
        // The device sends when it likes.
        if thread_rng().gen_bool(0.6)
            && let Some(packet) = self.sending.pop_front()
        {
            self.shared.wire.lock().unwrap().push(packet);
            if let Some((_, left)) = &mut self.mark {
                *left -= usize::from(*left > 0);
            }
        }
        let order = self.shared.orders[self.me].lock().unwrap().pop_front();
        if let Some(order) = order {
            self.mover.take(std::sync::Arc::clone(&order));
            for shard in &order.shards {
                self.shared.owners.lock().unwrap()[shard.index()] = self.me;
            }
            thread::yield_now();
            for shard in &order.shards {
                self.shared.reta.lock().unwrap()[shard.index()] = self.me;
            }
            let steps: Vec<_> = self.mover.switched_all().collect();
            steps.into_iter().for_each(|step| self.step(step));
        }
        if self.mover.is_settling() {
            // The generator deals packets out under the table's lock: nothing is on its way.
            let step = self.mover.settled();
            step.into_iter().for_each(|step| self.step(step));
        }
        if self.watching && self.was_empty {
            self.watching = false;
            let step = self.mover.queues_are_empty();
            step.into_iter().for_each(|step| self.step(step));
        }
        if let Some((number, 0)) = self.mark {
            self.mark = None;
            self.mover.is_sent(number);
        }
        let step = self.mover.is_due(now);
        step.into_iter().for_each(|step| self.step(step));
    }

    fn serve(&mut self, now: Nanos, (shard, number): Packet) {
        if let Some(state) = &mut self.shards[shard] {
            state.1.push(number);
            self.sending.push_back((shard, number));
            return;
        }
        if self.mover.parks(ShardId::from_hash(shard as u32)) {
            self.mover.park(now, (shard, number)).unwrap();
            return;
        }
        let owner = self.shared.owners.lock().unwrap()[shard];
        thread::yield_now();
        assert_ne!(owner, self.me, "a packet of a shard that is said to be here, and isn't");
        self.to[owner].send(Item::Packet((shard, number))).unwrap();
    }

    fn hear(&mut self, now: Nanos, from: usize, word: Word<State>) {
        match self.mover.hear(now, from, word) {
            Heard::Nothing => {}
            Heard::Step(step) => self.step(step),
            Heard::Stray(_) => panic!("shards that nobody asked for"),
            Heard::Taken(Taken { order, shards, parked, hurried, .. }) => {
                assert_eq!(shards.len(), order.shards.len());
                for state in shards {
                    let place = &mut self.shards[state.0];
                    assert!(place.is_none(), "two owners");
                    *place = Some(state);
                }
                parked.into_iter().for_each(|packet| self.serve(now, packet));
                *self.shared.hurried.lock().unwrap() |= hurried;
                *self.shared.moved.lock().unwrap() = order.number;
            }
        }
    }

    fn pack(&mut self, order: &Move) {
        self.packed.extend(order.shards.iter().filter_map(|shard| self.shards[shard.index()].take()));
    }

    fn step(&mut self, step: Step<State>) {
        match step {
            Step::Tell(worker, word) => self.to[worker].send(Item::Word(word)).unwrap(),
            Step::WatchQueues => (self.watching, self.was_empty) = (true, false),
            Step::Pack(order) => {
                self.pack(&order);
                self.mark = Some((order.number, self.sending.len()));
            }
            Step::Give(order) => {
                self.mark = None;
                self.pack(&order);
                let step = self.mover.give(std::mem::take(&mut self.packed)).unwrap();
                self.step(step);
            }
        }
    }
}

/// `hashed`: the NIC's table says where packets arrive; else all arrive at worker 0.
fn play(hashed: bool, patience: u64) -> bool {
    let shared = Arc::new(Shared {
        owners: Mutex::new((0..SHARDS).map(|shard| shard % WORKERS).collect()),
        reta: Mutex::new((0..SHARDS).map(|shard| shard % WORKERS).collect()),
        queues: (0..WORKERS).map(|_| Mutex::default()).collect(),
        wire: Mutex::default(),
        orders: (0..WORKERS).map(|_| Mutex::default()).collect(),
        moved: Mutex::default(),
        hurried: Mutex::default(),
    });
    let mut rings: Vec<Vec<_>> = (0..WORKERS).map(|_| (0..WORKERS).map(|_| channel()).collect()).collect();
    let mut to: Vec<Vec<_>> =
        rings.iter().map(|row| row.iter().map(|(sender, _)| Sender::clone(sender)).collect()).collect();
    let mut workers = Vec::new();
    for me in (0..WORKERS).rev() {
        let from = rings.iter_mut().map(|row| row.remove(me).1).collect();
        let mut worker = Worker {
            me,
            shared: Arc::clone(&shared),
            mover: Mover::new(me, WORKERS, 1_000, patience),
            shards: (0..SHARDS).map(|shard| (shard % WORKERS == me).then(|| (shard, Vec::new()))).collect(),
            to: to.pop().unwrap(),
            from,
            watching: false,
            was_empty: false,
            sending: VecDeque::new(),
            packed: Vec::new(),
            mark: None,
            time: 0,
        };
        workers.push(thread::spawn(move || {
            let total = SHARDS * PACKETS as usize;
            loop {
                worker.round();
                let done = worker.shared.wire.lock().unwrap().len() == total;
                if done && *worker.shared.moved.lock().unwrap() == MOVES {
                    return worker.shards;
                }
                thread::yield_now();
            }
        }));
    }
    // Control: one move at a time, of one or two shards of one worker.
    let control = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            for number in 1..=MOVES {
                let owners = shared.owners.lock().unwrap().clone();
                let first = thread_rng().gen_range(0..SHARDS);
                let from = owners[first];
                let to = (from + thread_rng().gen_range(1..WORKERS)) % WORKERS;
                let own = (0..SHARDS).filter(|&shard| owners[shard] == from);
                let shards = own.take(2).map(|shard| ShardId::from_hash(shard as u32)).collect();
                let order = std::sync::Arc::new(Move { number, from, to, shards });
                shared.orders[to].lock().unwrap().push_back(order);
                while *shared.moved.lock().unwrap() != number {
                    thread::yield_now();
                }
            }
        })
    };
    for number in 0..PACKETS {
        for shard in 0..SHARDS {
            {
                let reta = shared.reta.lock().unwrap();
                let queue = if hashed { reta[shard] } else { 0 };
                shared.queues[queue].lock().unwrap().push_back((shard, number));
            }
            if thread_rng().gen_bool(0.5) {
                thread::yield_now();
            }
        }
    }
    control.join().unwrap();
    let mut found = [0; SHARDS];
    for worker in workers {
        for (shard, served) in worker.join().unwrap().into_iter().flatten() {
            found[shard] += 1;
            let mut sorted = served.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..PACKETS).collect::<Vec<_>>(), "served once each");
            if !*shared.hurried.lock().unwrap() {
                assert!(served.is_sorted(), "shard {shard} was served out of order: {served:?}");
            }
        }
    }
    assert_eq!(found, [1; SHARDS], "each shard has one owner");
    let hurried = *shared.hurried.lock().unwrap();
    let wire = shared.wire.lock().unwrap();
    for shard in 0..SHARDS {
        let sent: Vec<_> = wire.iter().filter(|packet| packet.0 == shard).map(|packet| packet.1).collect();
        assert!(hurried || sent.is_sorted(), "shard {shard} left out of order: {sent:?}");
    }
    hurried
}

#[test]
fn nothing_is_lost_or_overtaken_where_the_nic_follows() {
    shuttle::check_random(|| assert!(!play(true, u64::MAX)), 400);
    shuttle::check_pct(|| assert!(!play(true, u64::MAX)), 150, 3);
}

#[test]
fn nothing_is_lost_or_overtaken_where_all_is_handed_off() {
    shuttle::check_random(|| assert!(!play(false, u64::MAX)), 400);
    shuttle::check_pct(|| assert!(!play(false, u64::MAX)), 150, 3);
}

/// A giver without patience gives the shards away before it has heard from all: nothing is lost, and no shard has two owners.
#[test]
fn impatience_costs_order_only() {
    let hurried = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let count = std::sync::Arc::clone(&hurried);
    shuttle::check_random(
        move || {
            let hurried = u64::from(play(true, 2));
            count.fetch_add(hurried, std::sync::atomic::Ordering::Relaxed);
        },
        400,
    );
    assert!(hurried.load(std::sync::atomic::Ordering::Relaxed) > 20, "the test was to hurry");
}
