//! Fragments are put together (RFC 791 §3.2, RFC 8200 §4.5).
//!
//! **Problem.** A datagram in pieces shows its ports in one of them and its words in several. Whoever puts the pieces together does so for people
//! who may send pieces that never fit: to fill memory, to say one thing to an inspector and another to the receiver, or to make
//! lengths that nobody has expected.
//!
//! **Model.** A datagram is known by addresses, identification, for IPv4 the protocol, and the tunnel it came through. Its octets lie in pages that are
//! taken when something is written there. It is given up, with all fragments that are yet to come, if two fragments say something about the same octet
//! (RFC 5722 §4; of IPv4's, too: receivers differ in what they make of it), unless one is the other once more. Datagrams, pages and time are
//! bounded; the oldest one goes first.
//!
//! **Cost.** About 1 KiB a datagram and 2 KiB a page, which are taken once and then kept. A fragment is copied twice.

use super::Prepared;
use super::stack::Tunnel;
use counters::By;
use packet::{Fragment, IpProtocol};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use tables::{Nanos, Slab};

/// Octets of a page.
const PAGE: usize = 2048;
/// Pages of the longest datagram.
const PAGES: usize = 32;
/// No page yet.
const NONE: u32 = u32::MAX;
/// Fragments that a datagram may have: 65,515 octets over links of 576 make 119.
pub const MAX_PIECES: usize = 128;
/// Octets of headers before the fragments' data; longer chains of IPv6 are refused.
const MAX_HEADERS: usize = 256;
/// Extension headers before the one that says where a fragment belongs.
const MAX_EXTENSIONS: usize = 8;
/// The longest packet.
const MAX_PACKET: usize = 65_535;

counters::labels! {
    /// Why a fragment is of no use.
    pub enum Refused: "reason" {
        Cut = "cut", "Its end is missing.";
        Length = "length", "It carries nothing, or isn't the last one and no multiple of eight octets.";
        Tiny = "tiny", "It is made to hide TCP's header from filters (RFC 1858 §3).";
        Beyond = "beyond", "It ends where no packet can.";
        Headers = "headers", "Its headers are longer than is kept.";
        Repeated = "repeated", "It came before.";
        Overlap = "overlap", "It says something else about octets that came before: the datagram is spoilt.";
        End = "end", "It contradicts where the datagram ends: the datagram is spoilt.";
        Pieces = "pieces", "The datagram has too many fragments: it is spoilt.";
        Spoilt = "spoilt", "Its datagram is spoilt.";
        Memory = "memory", "There is no room.";
    }
}

counters::labels! {
    /// Why a datagram was given up before it was whole.
    pub enum GivenUp: "cause" {
        Time = "time", "It waited too long.";
        Datagrams = "datagrams", "Too many others began after it.";
        Memory = "memory", "Others that began after it needed the room.";
    }
}

counters::counters! {
    /// What became of fragments.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct FragmentCounters {
        /// Fragments.
        pub fragments: u64 = "fragments", Counter of Packets;
        /// Packets that were put together.
        pub whole: u64 = "whole", Counter of Packets;
        /// Fragments that were of no use.
        pub refused: By<Refused, { Refused::COUNT }> = "refused", Counter of Packets;
        /// Datagrams that were given up; spoilt ones are not counted again.
        pub given_up: By<GivenUp, { GivenUp::COUNT }> = "given-up", Counter of Packets;
    }
}

/// What fragments may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Datagrams of which something has come; spoilt ones among them.
    pub datagrams: u32,
    /// Octets of fragments, in whole pages of 2 KiB.
    pub octets: usize,
    /// How long a datagram waits, in nanoseconds.
    pub patience: u64,
}

impl Default for Limits {
    /// A thousand datagrams, 4 MiB, 15 seconds (RFC 791 §3.2; RFC 8200 has 60, for receivers).
    fn default() -> Self {
        Self { datagrams: 1024, octets: 4 << 20, patience: 15 * Nanos::SECOND }
    }
}

/// What the fragments of a datagram have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    source: IpAddr,
    destination: IpAddr,
    identification: u32,
    /// 0 for IPv6, where fragments of one datagram may differ in it.
    protocol: u8,
    tunnel: Option<Tunnel>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Waiting,
    /// What comes is refused, until it is forgotten.
    Spoilt,
}

#[derive(Clone, Debug)]
struct Datagram {
    key: Key,
    deadline: Nanos,
    state: State,
    /// The first fragment's headers, less what makes it a fragment.
    headers: [u8; MAX_HEADERS],
    /// Octets of them; 0: it has not come.
    headers_len: u16,
    pages: [u32; PAGES],
    /// From where to where, in order.
    pieces: [(u16, u16); MAX_PIECES],
    count: u8,
    received: u16,
    total: Option<u16>,
}

impl Datagram {
    fn pieces(&self) -> &[(u16, u16)] {
        self.pieces.get(..usize::from(self.count)).unwrap_or_default()
    }

    /// Where a fragment belongs among those that came.
    fn place(&self, start: u16, end: u16, last: bool) -> Result<usize, Refused> {
        let pieces = self.pieces();
        let at = pieces.partition_point(|piece| piece.0 < start);
        if pieces.get(at) == Some(&(start, end)) {
            return Err(Refused::Repeated);
        }
        let overlaps = at.checked_sub(1).and_then(|before| pieces.get(before)).is_some_and(|it| it.1 > start)
            || pieces.get(at).is_some_and(|it| it.0 < end);
        if overlaps {
            return Err(Refused::Overlap);
        }
        let beyond = self.total.is_some_and(|total| last || end > total) || last && at < pieces.len();
        if beyond {
            return Err(Refused::End);
        }
        if pieces.len() == MAX_PIECES { Err(Refused::Pieces) } else { Ok(at) }
    }

    fn note(&mut self, at: usize, start: u16, end: u16) {
        let count = usize::from(self.count);
        if let Some(pieces) = self.pieces.get_mut(at..=count) {
            pieces.rotate_right(1);
            if let Some(piece) = pieces.first_mut() {
                *piece = (start, end);
                self.count += 1;
                self.received += end - start;
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.headers_len > 0 && self.total == Some(self.received)
    }
}

/// What became of a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// Others are missing.
    Held,
    /// It was the last one.
    Whole,
    /// It is of no use.
    Refused(Refused),
}

/// A fragment's parts.
struct Part<'p> {
    headers: &'p [u8],
    /// IPv6: where it says what follows, and what it is to say instead.
    next: Option<(usize, u8)>,
    data: &'p [u8],
    fragment: Fragment,
}

/// Datagrams whose fragments have not all come.
#[derive(Debug)]
pub struct Fragments {
    limits: Limits,
    known: HashMap<Key, u32>,
    datagrams: Slab<Datagram>,
    /// By the time they began: index and generation. Those that are gone are passed over.
    order: VecDeque<(u32, u32)>,
    pages: Vec<[u8; PAGE]>,
    free: Vec<u32>,
    counters: FragmentCounters,
}

impl Fragments {
    /// None yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            known: HashMap::new(),
            datagrams: Slab::new(limits.datagrams),
            order: VecDeque::new(),
            pages: Vec::new(),
            free: Vec::new(),
            counters: FragmentCounters::default(),
        }
    }

    /// What has been counted.
    pub const fn counters(&self) -> &FragmentCounters {
        &self.counters
    }

    /// Datagrams of which something is kept.
    pub fn len(&self) -> usize {
        self.datagrams.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    /// Octets of pages and datagrams that were taken so far.
    pub fn memory(&self) -> usize {
        self.pages.capacity() * PAGE + self.datagrams.memory()
    }

    /// Adds a fragment. If it was the last one, the whole packet is written to `whole`, in place of what was there.
    pub fn push(&mut self, packet: &Prepared<'_>, now: Nanos, whole: &mut Vec<u8>) -> Taken {
        self.counters.fragments += 1;
        self.expire(now);
        match self.add(packet, now, whole) {
            Ok(true) => {
                self.counters.whole += 1;
                Taken::Whole
            }
            Ok(false) => Taken::Held,
            Err(refused) => {
                self.counters.refused.add(refused, 1);
                Taken::Refused(refused)
            }
        }
    }

    /// Gives up what has waited too long.
    pub fn expire(&mut self, now: Nanos) {
        while let Some(index) = self.oldest()
            && self.datagrams.get(index).is_some_and(|datagram| datagram.deadline <= now)
        {
            self.give_up(index, GivenUp::Time);
        }
    }

    fn add(&mut self, packet: &Prepared<'_>, now: Nanos, whole: &mut Vec<u8>) -> Result<bool, Refused> {
        let part = dissect(packet)?;
        let Fragment { offset, more, identification } = part.fragment;
        let end = offset as usize + part.data.len();
        if part.data.is_empty() || more && part.data.len() % 8 != 0 {
            return Err(Refused::Length);
        }
        let is_v4 = packet.ip.key.source.is_ipv4();
        if !fits(part.headers.len(), end, is_v4) {
            return Err(Refused::Beyond);
        }
        let protocol = packet.ip.key.protocol;
        // The flags are in the second eight octets (RFC 1858 §3.2, RFC 3128).
        if protocol == IpProtocol::TCP && (offset == 8 || offset == 0 && part.data.len() < 16) {
            return Err(Refused::Tiny);
        }
        if part.headers.len() > MAX_HEADERS {
            return Err(Refused::Headers);
        }
        let key = Key {
            source: packet.ip.key.source,
            destination: packet.ip.key.destination,
            identification,
            protocol: if is_v4 { protocol.0 } else { 0 },
            tunnel: packet.around.tunnel,
        };
        let index = match self.known.get(&key) {
            Some(index) => *index,
            None => self.begin(key, now)?,
        };
        let (start, end) = (offset as u16, end as u16);
        let datagram = self.datagrams.get(index).ok_or(Refused::Memory)?;
        if datagram.state == State::Spoilt {
            return Err(Refused::Spoilt);
        }
        let at = match datagram.place(start, end, !more) {
            Ok(at) => at,
            // Octet for octet the same, or it isn't the same fragment.
            Err(Refused::Repeated) if self.has(index, start, part.data) => return Err(Refused::Repeated),
            Err(refused) => {
                self.spoil(index);
                return Err(if refused == Refused::Repeated { Refused::Overlap } else { refused });
            }
        };
        self.write(index, start, part.data)?;
        let datagram = self.datagrams.get_mut(index).ok_or(Refused::Memory)?;
        datagram.note(at, start, end);
        if !more {
            datagram.total = Some(end);
        }
        if start == 0
            && let Some(headers) = datagram.headers.get_mut(..part.headers.len())
        {
            headers.copy_from_slice(part.headers);
            if let Some((at, protocol)) = part.next
                && let Some(octet) = headers.get_mut(at)
            {
                *octet = protocol;
            }
            datagram.headers_len = part.headers.len() as u16;
        }
        if !datagram.is_whole() {
            return Ok(false);
        }
        // Later fragments may have shorter headers than the first one, so that each of them fits alone.
        if !fits(datagram.headers_len.into(), datagram.received.into(), is_v4) {
            self.spoil(index);
            return Err(Refused::Beyond);
        }
        self.join(index, whole);
        self.remove(index);
        Ok(true)
    }

    fn begin(&mut self, key: Key, now: Nanos) -> Result<u32, Refused> {
        if self.datagrams.len() >= self.limits.datagrams as usize
            && let Some(oldest) = self.oldest()
        {
            self.give_up(oldest, GivenUp::Datagrams);
        }
        let datagram = Datagram {
            key,
            deadline: now.plus(self.limits.patience),
            state: State::Waiting,
            headers: [0; MAX_HEADERS],
            headers_len: 0,
            pages: [NONE; PAGES],
            pieces: [(0, 0); MAX_PIECES],
            count: 0,
            received: 0,
            total: None,
        };
        let index = self.datagrams.insert(datagram).map_err(|_| Refused::Memory)?;
        self.known.insert(key, index);
        self.order.push_back((index, self.datagrams.generation(index)));
        Ok(index)
    }

    /// The one that began first.
    fn oldest(&mut self) -> Option<u32> {
        while let Some((index, generation)) = self.order.front() {
            if self.datagrams.get_if(*index, *generation).is_some() {
                return Some(*index);
            }
            self.order.pop_front();
        }
        None
    }

    /// All but this one, in their order.
    fn others(&self, index: u32) -> impl Iterator<Item = u32> {
        let known = move |it: &&(u32, u32)| it.0 != index && self.datagrams.get_if(it.0, it.1).is_some();
        self.order.iter().filter(known).map(|it| it.0)
    }

    fn give_up(&mut self, index: u32, cause: GivenUp) {
        if self.datagrams.get(index).is_some_and(|datagram| datagram.state == State::Waiting) {
            self.counters.given_up.add(cause, 1);
        }
        self.remove(index);
    }

    fn remove(&mut self, index: u32) {
        self.release(index);
        if let Some(datagram) = self.datagrams.remove(index) {
            self.known.remove(&datagram.key);
        }
        // Most are whole long before they are the oldest: what is left of them must not pile up.
        if self.order.len() > 2 * self.datagrams.len() + 64 {
            let datagrams = &self.datagrams;
            self.order.retain(|(index, generation)| datagrams.get_if(*index, *generation).is_some());
        }
    }

    /// RFC 5722 §4: those of its fragments that are yet to come are discarded, too.
    fn spoil(&mut self, index: u32) {
        self.release(index);
        if let Some(datagram) = self.datagrams.get_mut(index) {
            datagram.state = State::Spoilt;
        }
    }

    /// Its pages are free again.
    fn release(&mut self, index: u32) {
        if let Some(datagram) = self.datagrams.get_mut(index) {
            let taken = datagram.pages.iter_mut().filter(|page| **page != NONE);
            self.free.extend(taken.map(|page| std::mem::replace(page, NONE)));
        }
    }

    /// A page for this datagram, if need be the oldest one's.
    fn page(&mut self, index: u32) -> Option<u32> {
        loop {
            if let Some(page) = self.free.pop() {
                return Some(page);
            }
            if (self.pages.len() + 1) * PAGE <= self.limits.octets {
                self.pages.push([0; PAGE]);
                return Some(self.pages.len() as u32 - 1);
            }
            // Each turn takes one away, so this ends.
            let other = match self.oldest()? {
                oldest if oldest == index => self.others(index).next()?,
                oldest => oldest,
            };
            self.give_up(other, GivenUp::Memory);
        }
    }

    /// Writes to pages, which are taken where there are none.
    fn write(&mut self, index: u32, start: u16, data: &[u8]) -> Result<(), Refused> {
        for (number, from, data) in paged(start, data) {
            let mut page =
                *self.datagrams.get(index).and_then(|it| it.pages.get(number)).ok_or(Refused::Memory)?;
            if page == NONE {
                let Some(new) = self.page(index) else {
                    self.counters.given_up.add(GivenUp::Memory, 1);
                    self.spoil(index);
                    return Err(Refused::Memory);
                };
                page = new;
                if let Some(place) = self.datagrams.get_mut(index).and_then(|it| it.pages.get_mut(number)) {
                    *place = page;
                }
            }
            let place =
                self.pages.get_mut(page as usize).and_then(|page| page.get_mut(from..from + data.len()));
            place.ok_or(Refused::Memory)?.copy_from_slice(data);
        }
        Ok(())
    }

    /// Whether these octets are there.
    fn has(&self, index: u32, start: u16, data: &[u8]) -> bool {
        let Some(datagram) = self.datagrams.get(index) else { return false };
        paged(start, data).all(|(number, from, data)| {
            let page = datagram.pages.get(number).and_then(|page| self.pages.get(*page as usize));
            page.and_then(|page| page.get(from..from + data.len())) == Some(data)
        })
    }

    /// Headers and data, with lengths and checksum as they are without fragments.
    fn join(&self, index: u32, whole: &mut Vec<u8>) {
        whole.clear();
        let Some(datagram) = self.datagrams.get(index) else { return };
        let total = usize::from(datagram.total.unwrap_or(0));
        let headers = datagram.headers.get(..usize::from(datagram.headers_len)).unwrap_or_default();
        whole.extend_from_slice(headers);
        for (number, page) in datagram.pages.iter().enumerate() {
            let octets = total.saturating_sub(number * PAGE).min(PAGE);
            let page = self.pages.get(*page as usize).and_then(|page| page.get(..octets));
            whole.extend_from_slice(page.unwrap_or_default());
        }
        let length = whole.len();
        if datagram.key.source.is_ipv6() {
            if let Some(header) = whole.first_chunk_mut() {
                packet::ipv6::set_payload_len(header, (length - packet::ipv6::HEADER_LEN) as u16);
            }
        } else if let Some(header) = whole.get_mut(..headers.len())
            && let Some(fields) = header.get_mut(2..12)
        {
            if let [l0, l1, _, _, f0, f1, _, _, c0, c1] = fields {
                [*l0, *l1] = (length as u16).to_be_bytes();
                // No flag is left: not even the one that forbids what has been done.
                [*f0, *f1, *c0, *c1] = [0; 4];
            }
            let sum = packet::checksum::ipv4_header(header);
            if let Some(place) = header.get_mut(10..12) {
                place.copy_from_slice(&sum.to_be_bytes());
            }
        }
    }
}

/// Whether a packet can be so long: IPv4's length is with its header, IPv6's without the fixed one.
const fn fits(headers: usize, data: usize, is_v4: bool) -> bool {
    headers + data <= MAX_PACKET + if is_v4 { 0 } else { packet::ipv6::HEADER_LEN }
}

/// Data by pages: which one, from where in it, and what.
fn paged(start: u16, data: &[u8]) -> impl Iterator<Item = (usize, usize, &[u8])> {
    let (mut at, mut rest) = (usize::from(start), data);
    std::iter::from_fn(move || {
        let from = at % PAGE;
        let (here, after) = rest.split_at(rest.len().min(PAGE - from));
        let number = at / PAGE;
        (at, rest) = (at + here.len(), after);
        (!here.is_empty()).then_some((number, from, here))
    })
}

/// Where its headers end and its data begins.
fn dissect<'p>(packet: &Prepared<'p>) -> Result<Part<'p>, Refused> {
    let fragment = packet.ip.fragment.ok_or(Refused::Length)?;
    if packet.missing > 0 {
        return Err(Refused::Cut);
    }
    let bytes = packet.packet;
    if packet.ip.key.source.is_ipv4() {
        let (headers, data) =
            bytes.split_at_checked(usize::from(packet.ip.transport_offset)).ok_or(Refused::Length)?;
        return Ok(Part { headers, next: None, data, fragment });
    }
    // What precedes the fragment header remains; a first fragment may have further headers behind it.
    let mut next = bytes.get(6).copied().ok_or(Refused::Length)?;
    let (mut named_at, mut at) = (6, packet::ipv6::HEADER_LEN);
    for _ in 0..MAX_EXTENSIONS {
        let header = bytes.get(at..).and_then(<[u8]>::first_chunk::<2>).ok_or(Refused::Length)?;
        if IpProtocol(next) == IpProtocol::FRAGMENT {
            let headers = bytes.get(..at).ok_or(Refused::Length)?;
            let data = bytes.get(at + packet::ipv6::FRAGMENT_HEADER_LEN..).ok_or(Refused::Length)?;
            return Ok(Part { headers, next: Some((named_at, header[0])), data, fragment });
        }
        let length = match IpProtocol(next) {
            IpProtocol::AH => (usize::from(header[1]) + 2) * 4,
            _ => (usize::from(header[1]) + 1) * 8,
        };
        (next, named_at, at) = (header[0], at, at + length);
    }
    Err(Refused::Headers)
}

#[cfg(test)]
pub(super) mod tests;
