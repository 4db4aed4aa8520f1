//! Fragments: those of outer packets are put together, those of UEs' packets are followed, and packets that are too long
//! are cut.

use crate::Reason;
use crate::counters::Counters;
use crate::meta::Meta;
use crate::network::build;
use io::{Frame, FramePool};
use packet::{Fragment, IpPacket, Ipv4View, Ipv6View, ipv4};
use pfcp::{PdrId, Seid};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use tables::Nanos;

/// Fragments that one packet may come in.
const MAX_PIECES: usize = 64;

/// Which rule of which session the first fragments of UEs' packets matched.
pub type FragmentFlows = FirstFragments<(Seid, PdrId)>;

/// What the fragments of a packet have in common (RFC 791 §3.2, RFC 8200 §4.5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    source: IpAddr,
    destination: IpAddr,
    identification: u32,
    protocol: u8,
}

#[derive(Debug)]
pub(crate) struct Piece<F> {
    pub start: u32,
    pub end: u32,
    /// Where its data begins in the frame.
    pub at: usize,
    pub frame: F,
}

#[derive(Debug)]
struct Partial<F> {
    /// Tells it from earlier ones with the same key.
    number: u64,
    deadline: Nanos,
    /// By start; they don't overlap.
    pieces: Vec<Piece<F>>,
    total: Option<u32>,
}

/// Packets to ourselves (tunnels) whose fragments have not all arrived.
///
/// Whoever reaches us can send fragments that never make a packet. So their number is bounded, that of the frames they hold is, too
/// ([`crate::beside::held`]), and it is the oldest that go: a tunnel's fragments follow each other closely.
#[derive(Debug)]
pub struct Reassembly<F> {
    partials: HashMap<Key, Partial<F>>,
    /// In the order in which they began. Those that are complete or spoilt are passed over.
    order: VecDeque<(Key, u64)>,
    /// How many began.
    begun: u64,
    max: usize,
    timeout: u64,
}

impl<F: Frame> Reassembly<F> {
    /// Nothing yet; never more than `max` packets at a time.
    pub fn new(max: usize, timeout: u64) -> Self {
        Self { partials: HashMap::new(), order: VecDeque::new(), begun: 0, max, timeout }
    }

    /// Another limit from now on. Beyond a lower one two packets go for one that begins.
    pub const fn set_limit(&mut self, max: usize) {
        self.max = max;
    }

    /// The packet that waits for longest, and since when.
    fn first(&mut self) -> Option<(Key, Nanos)> {
        while let Some((key, number)) = self.order.front() {
            match self.partials.get(key).filter(|partial| partial.number == *number) {
                Some(partial) => return Some((*key, Nanos(partial.deadline.0.saturating_sub(self.timeout)))),
                None => self.order.pop_front(),
            };
        }
        None
    }

    /// Since when the packet that waits for longest does.
    pub fn oldest(&mut self) -> Option<Nanos> {
        self.first().map(|(_, since)| since)
    }

    /// Gives up the packet that waits for longest.
    pub fn give_up(&mut self, counters: &mut Counters) {
        if let Some((key, _)) = self.first() {
            self.discard(&key, Reason::FragmentLimit, counters);
        }
    }

    /// Drops what waited too long.
    pub fn expire(&mut self, now: Nanos, counters: &mut Counters) {
        while let Some((key, since)) = self.first()
            && since.plus(self.timeout) <= now
        {
            self.discard(&key, Reason::FragmentTimeout, counters);
        }
    }

    fn discard(&mut self, key: &Key, reason: Reason, counters: &mut Counters) {
        for piece in self.remove(key) {
            counters.held -= 1;
            counters.drop(reason);
            drop(piece);
        }
    }

    fn remove(&mut self, key: &Key) -> Vec<Piece<F>> {
        let pieces = self.partials.remove(key).map(|partial| partial.pieces).unwrap_or_default();
        // Most are complete long before they are the oldest: what is left of them must not pile up.
        if self.order.len() > 2 * self.partials.len() + 64 {
            let partials = &self.partials;
            self.order.retain(|(key, number)| partials.get(key).is_some_and(|p| p.number == *number));
        }
        pieces
    }

    fn begin(&mut self, key: Key, now: Nanos, counters: &mut Counters) {
        // Beyond a lower limit than before two go for one that comes.
        for _ in 0..(self.partials.len() + 1).saturating_sub(self.max).min(2) {
            self.give_up(counters);
        }
        self.begun += 1;
        let deadline = now.plus(self.timeout);
        let partial = Partial { number: self.begun, deadline, pieces: Vec::new(), total: None };
        self.partials.insert(key, partial);
        self.order.push_back((key, self.begun));
    }

    /// Adds a fragment. The complete packet's pieces, once they are all there, in order.
    pub(crate) fn add(
        &mut self,
        key: Key,
        more: bool,
        piece: Piece<F>,
        now: Nanos,
        counters: &mut Counters,
    ) -> Option<Vec<Piece<F>>> {
        if self.max == 0 {
            counters.drop(Reason::FragmentLimit);
            return None;
        }
        if !self.partials.contains_key(&key) {
            self.begin(key, now, counters);
        }
        let partial = self.partials.get_mut(&key)?;
        // A repeated fragment is harmless and dropped by itself; anything else that overlaps or contradicts the end
        // spoils the whole packet (RFC 5722).
        if partial.pieces.iter().any(|p| (p.start, p.end) == (piece.start, piece.end)) {
            counters.drop(Reason::FragmentOverlap);
            return None;
        }
        let overlaps = partial.pieces.iter().any(|p| piece.start < p.end && p.start < piece.end);
        let beyond = partial.total.is_some_and(|total| piece.end > total || (!more && piece.end != total))
            || (!more && partial.pieces.iter().any(|p| p.end > piece.end));
        let full = partial.pieces.len() >= MAX_PIECES;
        if overlaps || beyond || full {
            let reason = if full { Reason::FragmentLimit } else { Reason::FragmentOverlap };
            counters.drop(reason);
            self.discard(&key, reason, counters);
            return None;
        }
        if !more {
            partial.total = Some(piece.end);
        }
        let order = partial.pieces.partition_point(|p| p.start < piece.start);
        partial.pieces.insert(order, piece);
        counters.held += 1;
        let mut end = 0;
        for piece in &partial.pieces {
            if piece.start != end {
                return None;
            }
            end = piece.end;
        }
        if partial.total != Some(end) {
            return None;
        }
        let whole = self.remove(&key);
        counters.held -= whole.len() as u64;
        Some(whole)
    }
}

/// What the first fragment of a UE's packet said, for the fragments that have no ports: which rule it matched (of this
/// session), or which port it had.
#[derive(Debug)]
pub struct FirstFragments<T> {
    known: HashMap<Key, (T, Nanos)>,
    order: VecDeque<Key>,
    max: usize,
    timeout: u64,
}

impl<T: Copy> FirstFragments<T> {
    /// Nothing yet; the oldest of `max` gives way to a new one.
    pub fn new(max: usize, timeout: u64) -> Self {
        Self { known: HashMap::with_capacity(max), order: VecDeque::with_capacity(max), max, timeout }
    }

    /// Another limit from now on.
    pub fn set_limit(&mut self, max: usize) {
        self.max = max;
        while self.order.len() > max
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    fn key(ip: &IpPacket) -> Option<Key> {
        Some(Key {
            source: ip.key.source,
            destination: ip.key.destination,
            identification: ip.fragment?.identification,
            // The protocol of an IPv6 fragment's first header differs between the first and later fragments.
            protocol: if ip.key.source.is_ipv4() { ip.key.protocol.0 } else { 0 },
        })
    }

    /// What a first fragment said.
    pub fn remember(&mut self, ip: &IpPacket, said: T, now: Nanos) {
        let Some(key) = Self::key(ip) else { return };
        if self.known.insert(key, (said, now.plus(self.timeout))).is_none() {
            self.order.push_back(key);
            if self.order.len() > self.max
                && let Some(oldest) = self.order.pop_front()
            {
                self.known.remove(&oldest);
            }
        }
    }

    /// The same for a later fragment.
    pub fn recall(&self, ip: &IpPacket, now: Nanos) -> Option<T> {
        let (said, deadline) = self.known.get(&Self::key(ip)?)?;
        (*deadline > now).then_some(*said)
    }
}

/// What a frame with an outer fragment says: the packet it belongs to, its place, and where in the frame its data is.
pub(crate) fn dissect(frame: &[u8], meta: &Meta) -> Option<(Key, Fragment, usize, usize)> {
    let l3 = meta.l3 as usize;
    let packet = frame.get(l3..)?;
    if meta.v6 {
        let ip = Ipv6View::parse(packet).ok()?;
        // Parsing left us only packets whose first extension header is the fragment header.
        let [next, _, f0, f1, i0, i1, i2, i3] = *ip.payload().first_chunk::<8>()?;
        let field = u16::from_be_bytes([f0, f1]);
        let identification = u32::from_be_bytes([i0, i1, i2, i3]);
        let key = Key {
            source: ip.source().into(),
            destination: ip.destination().into(),
            identification,
            protocol: next,
        };
        let fragment = Fragment { offset: (field & 0xfff8) as u32, more: field & 1 != 0, identification };
        return Some((key, fragment, l3 + 48, ip.payload().len() - 8));
    }
    let ip = Ipv4View::parse(packet).ok()?;
    let fragment = ip.fragment()?;
    let key = Key {
        source: ip.source().into(),
        destination: ip.destination().into(),
        identification: fragment.identification,
        protocol: ip.protocol().0,
    };
    Some((key, fragment, l3 + ip.header_len(), ip.payload().len()))
}

/// The whole packet in a new frame: the first fragment's headers, less what made it one, and all data.
pub(crate) fn join<F: Frame>(pool: &mut impl FramePool<Frame = F>, pieces: &[Piece<F>]) -> Option<F> {
    let first = pieces.first()?;
    let length = pieces.last()?.end as usize;
    let mut head = first.frame.bytes().get(..first.at)?.to_vec();
    // The fragment header of IPv6 is the last part of `head`; IPv4's header may have options.
    let l3 = if head.get(12..14)? == [0x81, 0x00] || head.get(12..14)? == [0x88, 0xa8] { 18 } else { 14 };
    if head.get(l3)? >> 4 == 6 {
        let next = *head.get(l3 + 40)?;
        head.truncate(l3 + 40);
        let header = head.get_mut(l3..)?.first_chunk_mut::<40>()?;
        header[6] = next;
        packet::ipv6::set_payload_len(header, u16::try_from(length).ok()?);
    } else {
        let header_len = head.len() - l3;
        let header = head.get_mut(l3..)?;
        let total = u16::try_from(header_len + length).ok()?;
        header.get_mut(2..4)?.copy_from_slice(&total.to_be_bytes());
        header.get_mut(6..8)?.fill(0);
        header.get_mut(10..12)?.fill(0);
        let sum = packet::checksum::ipv4_header(header);
        header.get_mut(10..12)?.copy_from_slice(&sum.to_be_bytes());
    }
    let mut parts: Vec<&[u8]> = vec![&head];
    for piece in pieces {
        let data = piece.at..piece.at + (piece.end - piece.start) as usize;
        parts.push(piece.frame.bytes().get(data)?);
    }
    build(pool, &parts)
}

/// An IPv4 packet in fragments of at most `room` octets.
pub(crate) fn cut_ipv4(packet: &[u8], room: usize) -> Vec<Vec<u8>> {
    let Ok(ip) = Ipv4View::parse(packet) else { return Vec::new() };
    let first_header = packet.get(..ip.header_len()).unwrap_or_default();
    let later_header = header_of_later(first_header);
    let flags = u16::from_be_bytes([
        first_header.get(6).copied().unwrap_or(0),
        first_header.get(7).copied().unwrap_or(0),
    ]);
    let (base, last_more) = ((flags & 0x1fff) as usize * 8, flags & 0x2000);
    let payload = ip.payload();
    let mut fragments = Vec::new();
    let mut done = 0;
    while done < payload.len() {
        let header = if done == 0 { first_header } else { &later_header };
        let space = room.saturating_sub(header.len()) & !7;
        if space == 0 {
            return Vec::new();
        }
        let rest = payload.get(done..).unwrap_or_default();
        let chunk = rest.get(..space).unwrap_or(rest);
        let more = if done + chunk.len() < payload.len() { 0x2000 } else { last_more };
        let field = ((base + done) / 8) as u16 | more;
        let total = (header.len() + chunk.len()) as u16;
        let mut fragment = header.to_vec();
        if let Some(fixed) = fragment.first_chunk_mut::<{ ipv4::HEADER_LEN }>() {
            [fixed[2], fixed[3]] = total.to_be_bytes();
            [fixed[6], fixed[7]] = field.to_be_bytes();
            [fixed[10], fixed[11]] = [0, 0];
        }
        let sum = packet::checksum::ipv4_header(&fragment);
        if let Some(place) = fragment.get_mut(10..12) {
            place.copy_from_slice(&sum.to_be_bytes());
        }
        fragment.extend_from_slice(chunk);
        fragments.push(fragment);
        done += chunk.len();
    }
    fragments
}

/// The header of every fragment but the first: only options with the copied flag (RFC 791 §3.1).
fn header_of_later(header: &[u8]) -> Vec<u8> {
    let Some((fixed, mut options)) = header.split_first_chunk::<{ ipv4::HEADER_LEN }>() else {
        return header.to_vec();
    };
    let mut later = fixed.to_vec();
    while let Some(&kind) = options.first() {
        let length = match kind {
            0 => break,
            1 => 1,
            _ => options.get(1).map_or(0, |length| *length as usize),
        };
        let Some((option, rest)) = options.split_at_checked(length).filter(|_| length > 0) else { break };
        if kind & 0x80 != 0 {
            later.extend_from_slice(option);
        }
        options = rest;
    }
    while later.len() % 4 != 0 {
        later.push(0);
    }
    if let Some(version) = later.first_mut() {
        *version = 0x40;
    }
    let words = (later.len() / 4) as u8;
    if let Some(version) = later.first_mut() {
        *version |= words;
    }
    later
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use io::mem::MemFrame;
    use packet::PacketBuilder;

    #[test]
    fn a_packet_is_cut_into_fragments_that_make_it_up() {
        let payload: Vec<u8> = (0..3000u32).map(|i| i as u8).collect();
        let packet = PacketBuilder::new()
            .ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into())
            .options(&[0x94, 4, 0, 0, 7, 4, 0, 0])
            .udp(1, 2)
            .build(&payload);
        let fragments = cut_ipv4(&packet, 1001);
        let mut data = Vec::new();
        for (i, fragment) in fragments.iter().enumerate() {
            assert!(fragment.len() <= 1001);
            let view = Ipv4View::parse(fragment).unwrap();
            assert!(view.checksum_ok());
            let place = view.fragment().unwrap();
            assert_eq!(place.offset as usize, data.len());
            assert_eq!(place.more, i + 1 < fragments.len());
            // The router alert has the copied flag, the record route has not.
            assert_eq!(view.options().len(), if i == 0 { 8 } else { 4 });
            data.extend_from_slice(view.payload());
        }
        assert_eq!(data, Ipv4View::parse(&packet).unwrap().payload());
        assert!(cut_ipv4(&packet, 27).is_empty(), "no room for eight octets");
    }

    fn key(identification: u32) -> Key {
        let source = IpAddr::from([192, 0, 2, 7]);
        Key { source, destination: [192, 0, 2, 1].into(), identification, protocol: 17 }
    }

    /// Eight octets of a packet; the last, if no more follow.
    fn add(
        all: &mut Reassembly<MemFrame>,
        counters: &mut Counters,
        (packet, nth, more): (u32, u32, bool),
        now: Nanos,
    ) -> bool {
        let frame = MemFrame::copy_of(&[7; 8]).unwrap();
        let piece = Piece { start: 8 * nth, end: 8 * nth + 8, at: 0, frame };
        all.add(key(packet), more, piece, now, counters).is_some()
    }

    #[test]
    fn a_packet_comes_in_so_many_fragments_at_most() {
        for (fragments, is_whole) in [(64, true), (65, false)] {
            let (mut all, mut counters) = (Reassembly::new(4, 1000), Counters::default());
            let last = fragments - 1;
            let whole = (0..=last).any(|nth| add(&mut all, &mut counters, (1, nth, nth < last), Nanos(0)));
            assert_eq!((whole, counters.held), (is_whole, 0));
            let dropped = if is_whole { 0 } else { u64::from(fragments) };
            assert_eq!(counters.dropped(Reason::FragmentLimit), dropped, "all of them go");
        }
    }

    #[test]
    fn without_room_for_packets_no_fragment_waits() {
        let (mut all, mut counters) = (Reassembly::new(0, 1000), Counters::default());
        assert!(!add(&mut all, &mut counters, (1, 0, true), Nanos(0)));
        assert_eq!((counters.held, counters.dropped(Reason::FragmentLimit)), (0, 1));
    }

    /// Nor do their names pile up behind one that waits.
    #[test]
    fn what_is_whole_is_forgotten() {
        let (mut all, mut counters) = (Reassembly::new(4, 1000), Counters::default());
        assert!(!add(&mut all, &mut counters, (0, 0, true), Nanos(0)));
        for packet in 1..1000 {
            assert!(!add(&mut all, &mut counters, (packet, 1, false), Nanos(0)));
            assert!(add(&mut all, &mut counters, (packet, 0, true), Nanos(0)));
        }
        assert_eq!((counters.held, all.partials.len()), (1, 1));
        assert!(all.order.len() < 100, "{} names", all.order.len());
    }

    #[test]
    fn fragments_wait_until_their_time_is_over() {
        let (mut all, mut counters) = (Reassembly::new(4, 1000), Counters::default());
        for (packet, began) in [(1, 10), (2, 20)] {
            assert!(!add(&mut all, &mut counters, (packet, 0, true), Nanos(began)));
        }
        for (now, dropped) in [(1009, 0), (1010, 1), (1019, 1), (1020, 2)] {
            all.expire(Nanos(now), &mut counters);
            assert_eq!((counters.dropped(Reason::FragmentTimeout), counters.held), (dropped, 2 - dropped));
        }
    }

    /// The first fragment of a UE's packet.
    fn first(identification: u16) -> IpPacket {
        let header = ipv4::Ipv4Header {
            source: [10, 0, 0, 1].into(),
            destination: [10, 0, 0, 2].into(),
            identification,
            more_fragments: true,
            ..ipv4::Ipv4Header::default()
        };
        IpPacket::parse(&PacketBuilder::new().ipv4_header(header).udp(1, 2).build(&[7; 8])).unwrap()
    }

    #[test]
    fn the_latest_first_fragments_are_known_for_a_time() {
        let mut said = FirstFragments::new(3, 1000);
        let knows = |said: &FirstFragments<u16>, now: u64| -> Vec<u16> {
            (1..9).filter_map(|packet| said.recall(&first(packet), Nanos(now))).collect()
        };
        // One that is repeated is one.
        for packet in [1, 2, 2, 3] {
            said.remember(&first(packet), packet, Nanos(5));
        }
        assert_eq!(knows(&said, 1004), [1, 2, 3]);
        assert_eq!(knows(&said, 1005), [0; 0]);
        said.remember(&first(4), 4, Nanos(5));
        assert_eq!((knows(&said, 6), said.known.len(), said.order.len()), (vec![2, 3, 4], 3, 3));
        said.set_limit(1);
        assert_eq!((knows(&said, 6), said.known.len(), said.order.len()), (vec![4], 1, 1));
        said.remember(&first(5), 5, Nanos(5));
        assert_eq!(knows(&said, 6), [5]);
        said.set_limit(0);
        said.remember(&first(6), 6, Nanos(5));
        assert_eq!((knows(&said, 6), said.known.len(), said.order.len()), (vec![], 0, 0));
    }
}
