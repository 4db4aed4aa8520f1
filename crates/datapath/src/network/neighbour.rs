//! Neighbours on the links: their MAC addresses, whether these are still right, and the frames that wait for one.
//!
//! **Problem.** A frame to a neighbour whose MAC address isn't known is complete but for these six bytes, and has to wait while
//! the worker asks. Neighbours are replaced and change their addresses without a word; anybody on a link can say that he is
//! somebody, or many; and a UE that scans a link makes us ask for everyone on it.
//!
//! **Model.** The states of RFC 4861 §7.3.2, for ARP (RFC 826) as for neighbour discovery: who was asked and answered is
//! *reachable* for half a minute; then, if he is in use, he is asked again, now alone (*delay*, *probe*), and given up if he is
//! silent. Who isn't in use grows *stale* and is forgotten. In use is whom a route or a tunnel's far end leads to (a [`User`],
//! which has a copy of the way to him), and on whose way packets went since he was last looked at.
//!
//! Each interface has so many places. Who is in use by a route or a tunnel, or was configured, has his for good; where all others
//! are taken, the oldest makes room: of those who were asked and haven't answered, as soon as these have a quarter, or else of those
//! whom nobody sends to. So neither a scan nor a flood of forged messages keeps anybody else out for longer than a question
//! and an answer take.
//!
//! Any worker may receive the answer to another's question. [`Asked`], which all have in common, says whether anybody asked; if so
//! the answer is told to the control side, and from there to all workers.

use crate::network::asked::Asked;
use crate::network::egress::Egress;
use crate::network::near::{self, Near};
use packet::MacAddr;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use tables::{BulkMap, Nanos, RateLimiter, TimerId, Wheel};

/// Questions before a neighbour counts as unreachable (RFC 4861 §10: MAX_MULTICAST_SOLICIT, MAX_UNICAST_SOLICIT).
const TRIES: u8 = 3;
/// Time between questions (RFC 4861 §10, RETRANS_TIMER).
const INTERVAL: u64 = Nanos::SECOND;
/// How long an answer is believed (RFC 4861 §10, REACHABLE_TIME), times 0.5 to 1.5 (§6.3.2).
const REACHABLE: u64 = 30 * Nanos::SECOND;
/// How long a neighbour in use may be silent before he is asked (RFC 4861 §10, DELAY_FIRST_PROBE_TIME), and how often
/// it is looked whether a stale one is in use.
const DELAY: u64 = 5 * Nanos::SECOND;
/// Looks after which a stale neighbour that nobody sends to is forgotten.
const IDLE_LOOKS: u8 = 12;
/// A neighbour moves to another MAC address once in this time at most: who says two has a rival.
const SETTLE: u64 = Nanos::SECOND;
/// Neighbours that may move in a second, of all together.
const MOVES: u32 = 100;
/// Of those who would have to make room, so many are let off because they are sent to.
const SECOND_CHANCES: usize = 8;
/// Timers are this fine.
const TICK: u64 = 1 << 24;

/// Who has a copy of the way to a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum User {
    /// The next hop with this [`crate::network::fib::HopId`].
    Hop(u16),
    /// The far end with this number.
    Peer(u16),
}

/// How it became known where a neighbour is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    /// He was asked. `replace`: his word counts more than what is known (the O flag of an advertisement; any ARP reply).
    Answer {
        /// See above.
        replace: bool,
    },
    /// He said so unasked. `to_us`: because he wants to talk to us, and is answered. In a flood of such questions most are not, and
    /// make no entries that others would have to leave for.
    Unasked {
        /// See above.
        replace: bool,
        /// See above.
        to_us: bool,
    },
    /// Another worker knows.
    Shared {
        /// Because he was asked.
        confirmed: bool,
    },
}

impl Word {
    const fn confirms(self) -> bool {
        matches!(self, Self::Answer { .. } | Self::Shared { confirmed: true })
    }

    const fn replaces(self) -> bool {
        match self {
            Self::Answer { replace } | Self::Unasked { replace, .. } => replace,
            Self::Shared { .. } => true,
        }
    }
}

/// What is known of a neighbour (RFC 4861 §7.3.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    /// Nobody asked yet, or nobody answered.
    Unknown,
    /// Asked, on the whole link.
    Incomplete,
    /// Nobody has asked for long whether he is still there.
    Stale,
    /// Stale and in use: asked soon.
    Delay,
    /// Asked, alone.
    Probe,
    /// He answered, not long ago.
    Reachable,
    /// Configured: whatever is heard.
    Fixed,
}

impl State {
    /// The name in displays.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Incomplete => "incomplete",
            Self::Stale => "stale",
            Self::Delay => "delay",
            Self::Probe => "probe",
            Self::Reachable => "reachable",
            Self::Fixed => "fixed",
        }
    }
}

/// A neighbour as a worker sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sight {
    /// Index of the interface.
    pub interface: u16,
    /// Its address.
    pub address: IpAddr,
    /// Where it is, if that is known.
    pub mac: Option<MacAddr>,
    /// What is known of it.
    pub state: State,
    /// When this worker last heard where it is, itself or from another.
    pub heard: Option<Nanos>,
    /// Routes and far ends of tunnels that lead to it.
    pub users: usize,
}

/// The line of those who make room, in which an entry stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Line {
    /// None: it stays.
    None,
    Asking,
    Known,
}

#[derive(Debug)]
struct Entry<F> {
    /// The way there; resolved as long as the MAC address is known.
    way: Egress,
    state: State,
    /// Packets went there since it was last looked at, beside those of `users`.
    used: bool,
    /// Questions without an answer, or looks without use.
    tries: u8,
    timer: Option<TimerId>,
    /// When it last moved to another MAC address.
    moved: Option<Nanos>,
    /// When it was last said where it is.
    heard: Option<Nanos>,
    users: Vec<User>,
    frames: VecDeque<F>,
    /// Which wait of all the frames are, see [`Neighbours::waits`].
    wait: u64,
    line: Line,
    before: u32,
    behind: u32,
}

/// Entries in the order of their age, linked through them.
#[derive(Debug, Clone, Copy)]
struct Ends {
    first: u32,
    last: u32,
    len: usize,
}

const NOBODY: u32 = u32::MAX;

impl Ends {
    const EMPTY: Self = Self { first: NOBODY, last: NOBODY, len: 0 };
}

#[derive(Debug, Clone)]
struct Link {
    v4: BulkMap<u32, u32>,
    v6: BulkMap<u128, u32, 3>,
    count: usize,
    asking: Ends,
    known: Ends,
}

impl Link {
    const fn ends(&mut self, line: Line) -> Option<&mut Ends> {
        match line {
            Line::None => None,
            Line::Asking => Some(&mut self.asking),
            Line::Known => Some(&mut self.known),
        }
    }
}

/// What became of a frame given to [`Neighbours::hold`].
#[derive(Debug, PartialEq, Eq)]
pub enum Held<F> {
    /// It waits, and somebody is asking already.
    Waits,
    /// It waits, and is the first: ask now.
    Ask,
    /// There is no room for it.
    Refused(F),
    /// It need not wait: this is where the neighbour is.
    Known(F, MacAddr),
}

/// What is to be done about a neighbour.
#[derive(Debug)]
pub enum Due<F> {
    /// Ask the whole link.
    Ask(u16, IpAddr),
    /// Ask him alone.
    Probe(Egress),
    /// He is where he was no longer: whoever has a copy of the way must hear it.
    Gone(Egress, Vec<User>),
    /// Nobody answers: drop these.
    Lost(VecDeque<F>),
}

/// What is new of a neighbour.
#[derive(Debug)]
pub struct News<F> {
    /// Frames that waited for him.
    pub frames: VecDeque<F>,
    /// The way to him, if it is another one now, and who has copies of it.
    pub way: Option<(Egress, Vec<User>)>,
    /// He was known under this MAC address. If `way` is none, he still is: he was not believed.
    pub before: Option<MacAddr>,
    /// Other workers should know.
    pub tell: bool,
}

impl<F> News<F> {
    const fn none() -> Self {
        Self { frames: VecDeque::new(), way: None, before: None, tell: false }
    }
}

/// All neighbours of one worker.
#[derive(Debug)]
pub struct Neighbours<F> {
    links: Vec<Link>,
    entries: Vec<Option<Entry<F>>>,
    free: Vec<u32>,
    timers: Wheel<u32>,
    asked: Arc<Asked>,
    /// Ways that packets take by their destination.
    near: Near,
    moves: RateLimiter,
    /// Frames of those who had to make room, to be dropped.
    lost: Vec<F>,
    /// Whom frames began to wait for, in order: number of the wait, entry, since when. Waits that are over are passed over.
    waits: VecDeque<(u64, u32, Nanos)>,
    /// How many there were.
    begun: u64,
    queue: usize,
    max: usize,
    seed: u64,
    random: u64,
}

impl<F> Neighbours<F> {
    /// No neighbours. At most `max` are remembered on an interface, and `queue` frames wait for each.
    pub fn new(seed: u64, max: usize, queue: usize, asked: Arc<Asked>) -> Self {
        Self {
            links: Vec::new(),
            entries: Vec::new(),
            free: Vec::new(),
            timers: Wheel::new(Nanos(0), TICK, u32::MAX),
            asked,
            near: Near::new(max),
            moves: RateLimiter::new(MOVES, MOVES),
            lost: Vec::new(),
            waits: VecDeque::new(),
            begun: 0,
            queue,
            max,
            seed,
            random: seed | 1,
        }
    }

    /// Another limit for each interface from now on. Beyond a lower one two make room for one that comes.
    pub fn set_limit(&mut self, max: usize) {
        self.max = max;
        self.near.make_room(max);
    }

    #[inline]
    fn find(&self, interface: u16, address: IpAddr) -> Option<u32> {
        let link = self.links.get(interface as usize)?;
        match address {
            IpAddr::V4(address) => link.v4.get(&address.into()),
            IpAddr::V6(address) => link.v6.get(&address.into()),
        }
    }

    fn get(&self, index: u32) -> Option<&Entry<F>> {
        self.entries.get(index as usize)?.as_ref()
    }

    fn get_mut(&mut self, index: u32) -> Option<&mut Entry<F>> {
        self.entries.get_mut(index as usize)?.as_mut()
    }

    /// Whether anything is known of a neighbour, if only that we want to know it.
    pub fn knows(&self, interface: u16, address: IpAddr) -> bool {
        self.find(interface, address).is_some()
    }

    /// The way to a neighbour of whom something is known.
    #[inline]
    pub fn way(&self, interface: u16, address: IpAddr) -> Option<&Egress> {
        self.get(self.find(interface, address)?).map(|entry| &entry.way)
    }

    /// The way to a host on the link, if it is known, for a packet that goes there. `key` is the address's ([`near::key`]).
    #[inline(always)]
    pub fn near(&mut self, interface: u16, key: u128) -> Option<&Egress> {
        let spot = match self.near.find(interface, key) {
            Some(spot) => spot,
            None => self.bring_near(interface, key)?,
        };
        self.near.take(spot)
    }

    #[cold]
    #[inline(never)]
    fn bring_near(&mut self, interface: u16, key: u128) -> Option<near::Spot> {
        let address = near::address(key)?;
        let number = self.find(interface, address)?;
        let way = self.get(number).map(|entry| entry.way).filter(|way| way.resolved)?;
        let (spot, gone) = self.near.put(&way, number)?;
        if let Some(entry) = gone.and_then(|gone| self.get_mut(gone)) {
            entry.used = true;
        }
        Some(spot)
    }

    /// Some of them, of the places from `from` on, of which `most` are looked at; and where to go on, if these weren't the last.
    pub fn look(&self, from: u32, most: u32) -> (Vec<Sight>, Option<u32>) {
        let next = from.saturating_add(most);
        let places = self.entries.get(from as usize..).unwrap_or_default().iter().take(most as usize);
        let sight = |entry: &Entry<F>| Sight {
            interface: entry.way.interface,
            address: entry.way.target,
            mac: entry.way.mac(),
            state: entry.state,
            heard: entry.heard,
            users: entry.users.len(),
        };
        let seen = places.flatten().map(sight).collect();
        (seen, ((next as usize) < self.entries.len()).then_some(next))
    }

    /// Packets go to this neighbour.
    #[inline]
    pub fn touch(&mut self, interface: u16, address: IpAddr) {
        if let Some(index) = self.find(interface, address)
            && let Some(entry) = self.get_mut(index)
        {
            entry.used = true;
        }
    }

    /// Frames of those who had to make room.
    pub fn take_lost(&mut self) -> Vec<F> {
        std::mem::take(&mut self.lost)
    }

    /// An entry for the neighbour at the end of this way, of whom nothing is known.
    fn create(&mut self, way: &Egress) -> Option<u32> {
        let interface = way.interface as usize;
        while self.links.len() <= interface {
            let seed = self.seed ^ self.links.len() as u64;
            let (v4, v6) = (BulkMap::new(seed), BulkMap::new(seed));
            self.links.push(Link { v4, v6, count: 0, asking: Ends::EMPTY, known: Ends::EMPTY });
        }
        self.make_room(way.interface)?;
        let index = self.free.last().copied().unwrap_or(self.entries.len() as u32);
        let link = self.links.get_mut(interface)?;
        match way.target {
            IpAddr::V4(address) => link.v4.insert(address.into(), index).ok()?,
            IpAddr::V6(address) => link.v6.insert(address.into(), index).ok()?,
        };
        link.count += 1;
        let entry = Entry {
            way: *way,
            state: State::Unknown,
            used: false,
            tries: 0,
            timer: None,
            moved: None,
            heard: None,
            users: Vec::new(),
            frames: VecDeque::new(),
            wait: 0,
            line: Line::None,
            before: NOBODY,
            behind: NOBODY,
        };
        if self.free.pop().is_some() {
            *self.entries.get_mut(index as usize)? = Some(entry);
        } else {
            self.entries.push(Some(entry));
        }
        Some(index)
    }

    /// Sees to it that one more neighbour has a place. `None`: all that there are stay.
    fn make_room(&mut self, interface: u16) -> Option<()> {
        let count = self.links.get(interface as usize)?.count;
        for _ in 0..(count + 1).saturating_sub(self.max).min(2) {
            let link = self.links.get(interface as usize)?;
            let victim = if link.asking.len > self.max / 4 || link.known.len == 0 {
                link.asking.first
            } else {
                self.oldest_unused(interface)?
            };
            let entry = self.remove(victim)?;
            self.lost.extend(entry.frames);
        }
        Some(())
    }

    fn oldest_unused(&mut self, interface: u16) -> Option<u32> {
        for _ in 0..SECOND_CHANCES {
            let oldest = self.links.get(interface as usize)?.known.first;
            let Self { entries, near, .. } = self;
            let entry = entries.get_mut(oldest as usize)?.as_mut()?;
            if !(std::mem::take(&mut entry.used) | near.was_used(&entry.way)) {
                return Some(oldest);
            }
            self.leave_line(oldest);
            self.line_up(oldest, Line::Known);
        }
        Some(self.links.get(interface as usize)?.known.first)
    }

    fn remove(&mut self, index: u32) -> Option<Entry<F>> {
        self.leave_line(index);
        let entry = self.entries.get_mut(index as usize)?.take()?;
        self.free.push(index);
        self.near.forget(&entry.way);
        if let Some(timer) = entry.timer {
            self.timers.cancel(timer);
        }
        if let Some(link) = self.links.get_mut(entry.way.interface as usize) {
            link.count -= 1;
            match entry.way.target {
                IpAddr::V4(address) => link.v4.remove(&address.into()),
                IpAddr::V6(address) => link.v6.remove(&address.into()),
            };
        }
        Some(entry)
    }

    /// Takes an entry out of its line.
    fn leave_line(&mut self, index: u32) {
        let Some(entry) = self.get_mut(index) else { return };
        let (line, before, behind) = (entry.line, entry.before, entry.behind);
        (entry.line, entry.before, entry.behind) = (Line::None, NOBODY, NOBODY);
        let interface = entry.way.interface as usize;
        let Some(ends) = self.links.get_mut(interface).and_then(|link| link.ends(line)) else { return };
        ends.len -= 1;
        if before == NOBODY {
            ends.first = behind;
        }
        if behind == NOBODY {
            ends.last = before;
        }
        if let Some(entry) = self.get_mut(before) {
            entry.behind = behind;
        }
        if let Some(entry) = self.get_mut(behind) {
            entry.before = before;
        }
    }

    /// Puts an entry that is in no line at the end of this one.
    fn line_up(&mut self, index: u32, line: Line) {
        let Some(interface) = self.get(index).map(|entry| entry.way.interface as usize) else { return };
        let Some(ends) = self.links.get_mut(interface).and_then(|link| link.ends(line)) else { return };
        let last = std::mem::replace(&mut ends.last, index);
        ends.len += 1;
        if last == NOBODY {
            ends.first = index;
        }
        if let Some(entry) = self.get_mut(last) {
            entry.behind = index;
        }
        if let Some(entry) = self.get_mut(index) {
            (entry.line, entry.before, entry.behind) = (line, last, NOBODY);
        }
    }

    /// The line that an entry belongs in.
    fn place(&mut self, index: u32) {
        let Some(entry) = self.get(index) else { return };
        let line = match entry.state {
            State::Fixed => Line::None,
            _ if !entry.users.is_empty() => Line::None,
            State::Unknown | State::Incomplete => Line::Asking,
            _ => Line::Known,
        };
        if entry.line != line {
            self.leave_line(index);
            self.line_up(index, line);
        }
    }

    /// A new state, and when it ends.
    fn enter(&mut self, index: u32, state: State, now: Nanos) {
        // xorshift64*: 0.5 to 1.5 of the time.
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        let lasts = match state {
            State::Unknown | State::Fixed => None,
            State::Incomplete | State::Probe => Some(INTERVAL),
            State::Reachable => Some(REACHABLE / 2 + (self.random >> 11) % REACHABLE),
            State::Stale | State::Delay => Some(DELAY),
        };
        let Some(entry) = self.get_mut(index) else { return };
        entry.tries = u8::from(matches!(state, State::Incomplete | State::Probe));
        entry.state = state;
        self.arm(index, lasts.map(|lasts| now.plus(lasts)));
        self.place(index);
    }

    fn arm(&mut self, index: u32, deadline: Option<Nanos>) {
        if let Some(timer) = self.get_mut(index).and_then(|entry| entry.timer.take()) {
            self.timers.cancel(timer);
        }
        let timer = deadline.and_then(|deadline| self.timers.insert(deadline, index).ok());
        if let Some(entry) = self.get_mut(index) {
            entry.timer = timer;
        }
    }

    /// The way to a neighbour, for somebody who keeps it and is told when it changes.
    pub fn pin(&mut self, way: &Egress, user: User) -> Egress {
        let found = self.find(way.interface, way.target).or_else(|| self.create(way));
        let Some(index) = found else { return *way };
        let Some(entry) = self.get_mut(index) else { return *way };
        if !entry.users.contains(&user) {
            entry.users.push(user);
        }
        let way = entry.way;
        self.place(index);
        way
    }

    /// Nobody keeps a way any more. Until [`Self::settle`] nobody who had a place for good makes room.
    pub fn unpin(&mut self) {
        self.entries.iter_mut().flatten().for_each(|entry| entry.users.clear());
    }

    /// All who keep ways do so again.
    pub fn settle(&mut self) {
        for index in 0..self.entries.len() as u32 {
            self.place(index);
        }
    }

    /// These neighbours are where they are configured to be, and no others are. What waited for them, with the way that it takes.
    pub fn fix(&mut self, ways: &[Egress], now: Nanos) -> Vec<(Egress, VecDeque<F>)> {
        for index in 0..self.entries.len() as u32 {
            if let Some(entry) = self.get(index)
                && entry.state == State::Fixed
                && !ways.iter().any(|way| way.is_to(&entry.way))
            {
                self.enter(index, State::Stale, now);
            }
        }
        let mut free = Vec::new();
        for way in ways {
            let found = self.find(way.interface, way.target).or_else(|| self.create(way));
            let Some(index) = found else { continue };
            self.near.forget(way);
            if let Some(entry) = self.get_mut(index) {
                entry.way = *way;
                free.push((*way, std::mem::take(&mut entry.frames)));
            }
            self.enter(index, State::Fixed, now);
        }
        free
    }

    /// It was said that the neighbour at the end of `way` has this MAC address.
    pub fn hear(&mut self, way: &Egress, mac: MacAddr, word: Word, now: Nanos) -> News<F> {
        let (interface, address) = (way.interface, way.target);
        let asked = matches!(word, Word::Answer { .. }) && self.asked.answered(interface, address);
        // An answer to a question that nobody asked is none.
        let word = match word {
            Word::Answer { replace } if !asked => Word::Unasked { replace, to_us: false },
            word => word,
        };
        let index = match (self.find(interface, address), word) {
            (Some(index), _) => index,
            (None, Word::Shared { .. } | Word::Unasked { to_us: true, .. }) => match self.create(way) {
                Some(index) => index,
                None => return News::none(),
            },
            // Another worker's question, or nobody's.
            (None, _) => return News { tell: asked, ..News::none() },
        };
        let ours = !matches!(word, Word::Shared { .. });
        let Some(Some(entry)) = self.entries.get_mut(index as usize) else { return News::none() };
        let known = entry.way.mac();
        let mut news = News { tell: asked, before: known.filter(|known| *known != mac), ..News::none() };
        if entry.state == State::Fixed {
            news.tell = false;
            return news;
        }
        if news.before.is_some() {
            let settled = entry.moved.is_none_or(|moved| now.since(moved) >= SETTLE);
            if !word.replaces() || (ours && !(settled && self.moves.allow(now))) {
                if !word.replaces() && entry.state == State::Reachable {
                    self.enter(index, State::Stale, now);
                }
                news.tell = false;
                return news;
            }
            entry.moved = Some(now);
            news.tell |= ours;
        }
        entry.heard = Some(now);
        if known != Some(mac) {
            entry.way.set_mac(Some(mac));
            self.near.forget(&entry.way);
            news.way = Some((entry.way, entry.users.clone()));
            news.frames = std::mem::take(&mut entry.frames);
        }
        let in_use = !entry.users.is_empty() || !news.frames.is_empty();
        let state = entry.state;
        if word.confirms() {
            self.enter(index, State::Reachable, now);
        } else if news.way.is_some() {
            self.enter(index, if in_use { State::Delay } else { State::Stale }, now);
        } else if state == State::Unknown {
            self.place(index);
        }
        news
    }

    /// Keeps a frame until its neighbour's MAC address is known.
    pub fn hold(&mut self, way: &Egress, frame: F, now: Nanos) -> Held<F> {
        let found = self.find(way.interface, way.target).or_else(|| self.create(way));
        let queue = self.queue;
        let Some(index) = found else { return Held::Refused(frame) };
        let Some(entry) = self.get_mut(index) else { return Held::Refused(frame) };
        if let Some(mac) = entry.way.mac() {
            return Held::Known(frame, mac);
        }
        if queue == 0 {
            return Held::Refused(frame);
        }
        // The newest replaces the oldest (RFC 4861 §7.2.2).
        let oldest = if entry.frames.len() >= queue { entry.frames.pop_front() } else { None };
        entry.frames.push_back(frame);
        let (first, asking) = (entry.frames.len() == 1, entry.state == State::Incomplete);
        self.lost.extend(oldest);
        if first {
            self.begin_wait(index, now);
        }
        if asking {
            return Held::Waits;
        }
        self.enter(index, State::Incomplete, now);
        self.asked.ask(way.interface, way.target);
        Held::Ask
    }

    fn begin_wait(&mut self, index: u32, now: Nanos) {
        self.begun += 1;
        let begun = self.begun;
        if let Some(entry) = self.get_mut(index) {
            entry.wait = begun;
        }
        // Most waits are over long before they are the oldest: what is left of them must not pile up.
        if self.waits.len() > 2 * self.entries.len() + 64 {
            let waits = std::mem::take(&mut self.waits);
            self.waits = waits.into_iter().filter(|(wait, index, _)| self.is_on(*wait, *index)).collect();
        }
        self.waits.push_back((begun, index, now));
    }

    fn is_on(&self, wait: u64, index: u32) -> bool {
        self.get(index).is_some_and(|entry| entry.wait == wait && !entry.frames.is_empty())
    }

    /// Since when frames have waited for the neighbour for whom they have waited longest.
    pub fn oldest(&mut self) -> Option<Nanos> {
        while let Some((wait, index, since)) = self.waits.front().copied() {
            if self.is_on(wait, index) {
                return Some(since);
            }
            self.waits.pop_front();
        }
        None
    }

    /// The first of the frames that have waited longest.
    pub fn give_up(&mut self) -> Option<F> {
        self.oldest()?;
        let (_, index, _) = *self.waits.front()?;
        self.get_mut(index)?.frames.pop_front()
    }

    /// What has to be done now. `keeps`: whether somebody still has a copy of a way.
    pub fn due(&mut self, now: Nanos, mut keeps: impl FnMut(&Egress, User) -> bool) -> Vec<Due<F>> {
        let mut fired = Vec::new();
        self.timers.advance(now, &mut |index| fired.push(index));
        let mut due = Vec::new();
        for index in fired {
            let Some(Some(entry)) = self.entries.get_mut(index as usize) else { continue };
            entry.timer = None;
            let (state, tries, way) = (entry.state, entry.tries, entry.way);
            let in_use = state == State::Incomplete || {
                entry.users.retain(|user| keeps(&way, *user));
                std::mem::take(&mut entry.used) | self.near.was_used(&way) || !entry.users.is_empty()
            };
            match state {
                State::Unknown | State::Fixed => {}
                State::Incomplete if tries < TRIES => {
                    entry.tries += 1;
                    self.arm(index, Some(now.plus(INTERVAL)));
                    self.asked.ask(way.interface, way.target);
                    due.push(Due::Ask(way.interface, way.target));
                }
                State::Incomplete => {
                    due.push(Due::Lost(std::mem::take(&mut entry.frames)));
                    entry.users.retain(|user| keeps(&way, *user));
                    if entry.users.is_empty() {
                        self.remove(index);
                    } else {
                        self.enter(index, State::Unknown, now);
                    }
                }
                State::Reachable | State::Stale if in_use => self.enter(index, State::Delay, now),
                State::Reachable => self.enter(index, State::Stale, now),
                State::Stale if tries < IDLE_LOOKS => {
                    entry.tries += 1;
                    self.arm(index, Some(now.plus(DELAY)));
                    self.place(index);
                }
                State::Stale => {
                    self.remove(index);
                    due.push(Due::Gone(way, Vec::new()));
                }
                State::Delay => {
                    self.enter(index, State::Probe, now);
                    self.asked.ask(way.interface, way.target);
                    due.push(Due::Probe(way));
                }
                State::Probe if tries < TRIES => {
                    entry.tries += 1;
                    self.arm(index, Some(now.plus(INTERVAL)));
                    self.asked.ask(way.interface, way.target);
                    due.push(Due::Probe(way));
                }
                State::Probe => {
                    entry.way.set_mac(None);
                    self.near.forget(&way);
                    due.push(Due::Gone(entry.way, entry.users.clone()));
                    if entry.users.is_empty() {
                        self.remove(index);
                    } else {
                        self.enter(index, State::Incomplete, now);
                        self.asked.ask(way.interface, way.target);
                        due.push(Due::Ask(way.interface, way.target));
                    }
                }
            }
        }
        due
    }

    /// Everything that waits, to be dropped: the network changed and interfaces may mean something else now.
    /// Known neighbours are forgotten too.
    pub fn clear(&mut self) -> Vec<F> {
        let frames = self.entries.drain(..).flatten().flat_map(|entry| entry.frames).collect();
        self.links.clear();
        self.free.clear();
        self.near.clear();
        self.waits.clear();
        self.timers = Wheel::new(Nanos(0), TICK, u32::MAX);
        frames
    }
}

#[cfg(test)]
mod tests;
