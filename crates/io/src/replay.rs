//! A benchmark's port: packets made from a template on the worker's own thread, and a sink.
//!
//! A generator on another core would measure two cores and the ring between them. Here receiving costs what a NIC's
//! driver costs: a buffer from a free list, its first lines written, its address handed over. A packet is a copy of a
//! template with up to eight patched words; a *word* is four bytes anywhere in the packet, and that is all a session
//! needs to differ: the TEID, the inner addresses, and the checksums that follow from them (the word that holds TTL,
//! protocol and IPv4 header checksum, the word that holds UDP length and checksum). A million sessions are a
//! 36 MB array that is read front to back.
//!
//! **Hot and cold buffers.** A free list hands out what was freed last: a few buffers go round, and their lines never leave the
//! core's own cache. A NIC writes into the buffers of a long ring, past the core's caches. [`ReplayRx::cold`] is that: packets wait in
//! a ring of so many buffers after they were written, and have left the core's own caches when they come out.

use crate::BURST;
use crate::frame::Frame;
use crate::mem::{Cache, FrameSize, HEADROOM, MemFrame, MemPool};
use crate::port::{Port, PortInfo, PortStats, RxQueue, TxQueue};
use packet::MacAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Words that one patch can change.
pub const WORDS: usize = 8;

/// What sets one packet apart from the template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// The values for [`Stream`]'s offsets, as bytes on the wire; unused ones are ignored.
    pub words: [[u8; 4]; WORDS],
    /// The RSS hash that the NIC reports; zero for none.
    pub hash: u32,
}

/// Why a template can't be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// Longer than a jumbo buffer, or empty.
    #[error("a template has 1 to 9,600 bytes, not {0}")]
    Length(usize),
    /// More than [`WORDS`] offsets.
    #[error("a patch has at most {WORDS} words, not {0}")]
    Words(usize),
    /// A word that doesn't lie within the template.
    #[error("a word at offset {offset} doesn't fit in a template of {length} bytes")]
    Offset {
        /// Where the word begins.
        offset: usize,
        /// The template's length.
        length: usize,
    },
    /// No patch, or no stream, or a schedule that names a stream that doesn't exist.
    #[error(
        "nothing to replay: a stream needs a patch, a source needs streams and a schedule that names them"
    )]
    Empty,
}

/// A template and the patches that are applied to it in turn, over and over.
#[derive(Clone, Debug)]
pub struct Stream {
    blocks: Box<[[u8; 64]]>,
    len: usize,
    offsets: Box<[usize]>,
    patches: Arc<[Patch]>,
    next: usize,
}

impl Stream {
    /// `template` with the four bytes at each of `offsets` replaced by the patches' words, in the same order.
    pub fn new(
        template: &[u8],
        offsets: &[usize],
        patches: impl Into<Arc<[Patch]>>,
    ) -> Result<Self, ReplayError> {
        let length = template.len();
        let patches: Arc<[Patch]> = patches.into();
        if length == 0 || length > FrameSize::Jumbo.room() {
            return Err(ReplayError::Length(length));
        }
        if offsets.len() > WORDS {
            return Err(ReplayError::Words(offsets.len()));
        }
        if let Some(&offset) =
            offsets.iter().find(|&&offset| offset.checked_add(4).is_none_or(|end| end > length))
        {
            return Err(ReplayError::Offset { offset, length });
        }
        if patches.is_empty() {
            return Err(ReplayError::Empty);
        }
        let mut blocks = vec![[0; 64]; length.div_ceil(64)].into_boxed_slice();
        if let Some(bytes) = blocks.as_flattened_mut().get_mut(..length) {
            bytes.copy_from_slice(template);
        }
        Ok(Self { blocks, len: length, offsets: offsets.into(), patches, next: 0 })
    }

    /// Starts at another patch than the first, so that several queues don't march in step.
    #[must_use]
    pub fn starting_at(mut self, patch: usize) -> Self {
        self.next = patch % self.patches.len();
        self
    }

    /// Writes only the template's first `octets` (whole 64-byte blocks) into each packet, and leaves what follows as the
    /// buffer had it. A NIC writes a long packet's body without the core, which never looks at it; a copy of the whole
    /// template would charge the core for that. Words beyond are not patched.
    #[must_use]
    pub fn writing_first(mut self, octets: usize) -> Self {
        let blocks = octets.div_ceil(64).clamp(1, self.blocks.len());
        self.blocks = self.blocks.iter().take(blocks).copied().collect();
        self
    }

    /// Writes only as much as sets packets apart: their headers.
    fn writing_headers(self) -> Self {
        let end = self.offsets.iter().map(|offset| offset + 4).max().unwrap_or_default();
        self.writing_first(end)
    }

    /// How many patches there are.
    pub(crate) fn patches(&self) -> usize {
        self.patches.len()
    }

    /// The smaller buffer that holds a packet.
    pub(crate) fn size(&self) -> FrameSize {
        if self.len.next_multiple_of(64) <= FrameSize::Standard.room() {
            FrameSize::Standard
        } else {
            FrameSize::Jumbo
        }
    }

    /// The next packet, written into `frame`.
    #[inline]
    fn make_next(&mut self, frame: &mut MemFrame) {
        self.make(self.next, frame);
        self.next += 1;
        if self.next == self.patches.len() {
            self.next = 0;
        }
    }

    /// The packet of one patch, written into `frame`.
    #[inline]
    pub(crate) fn make(&self, patch: usize, frame: &mut MemFrame) {
        let Some(patch) = self.patches.get(patch) else { return };
        let Some(bytes) = frame.fill_blocks(&self.blocks, self.len, patch.hash) else { return };
        for (&offset, word) in self.offsets.iter().zip(&patch.words) {
            if let Some(place) = bytes.get_mut(offset..).and_then(<[u8]>::first_chunk_mut::<4>) {
                *place = *word;
            }
        }
    }
}

/// Receives the packets of one or more [`Stream`]s.
#[derive(Debug)]
pub struct ReplayRx {
    streams: Vec<Stream>,
    schedule: Vec<u8>,
    at: usize,
    left: Option<u64>,
    gate: Option<Arc<AtomicBool>>,
    /// Packets that wait between being written and being received: where the oldest is, and how many there may be.
    ring: Vec<MemFrame>,
    oldest: usize,
    depth: usize,
}

impl ReplayRx {
    /// One stream, without end.
    pub fn new(stream: Stream) -> Self {
        Self::of(vec![stream], vec![0])
    }

    /// Several streams, mixed packet by packet as `schedule` (indices into `streams`) says, over and over.
    pub fn mixed(streams: Vec<Stream>, schedule: Vec<u8>) -> Result<Self, ReplayError> {
        if schedule.is_empty() || schedule.iter().any(|&stream| usize::from(stream) >= streams.len()) {
            return Err(ReplayError::Empty);
        }
        Ok(Self::of(streams, schedule))
    }

    fn of(streams: Vec<Stream>, schedule: Vec<u8>) -> Self {
        Self { streams, schedule, at: 0, left: None, gate: None, ring: Vec::new(), oldest: 0, depth: 0 }
    }

    /// Packets come out of a ring of so many buffers (0: there is none), in the order in which they were written into it. Of each only
    /// the headers are written ([`Stream::writing_first`]): a body costs a NIC's core nothing, and one that nobody reads would be
    /// fetched into the cache only to be written.
    #[must_use]
    pub fn cold(mut self, buffers: usize) -> Self {
        if buffers > 0 {
            self.streams = self.streams.into_iter().map(Stream::writing_headers).collect();
        }
        self.depth = buffers;
        self
    }

    /// Ends after `packets` more packets.
    #[must_use]
    pub fn limited(mut self, packets: u64) -> Self {
        self.left = Some(packets);
        self
    }

    /// Has packets only while this is set: so that sessions can be established before, and queues begin together.
    #[must_use]
    pub fn gated(mut self, gate: &Arc<AtomicBool>) -> Self {
        self.gate = Some(Arc::clone(gate));
        self
    }
}

impl ReplayRx {
    /// Fills the ring, as one is before the first packet is asked for: else that one waits for all.
    #[inline]
    pub fn fill(&mut self) {
        while self.ring.len() < self.depth {
            let mut ring = std::mem::take(&mut self.ring);
            let more = (self.depth - ring.len()).min(BURST);
            let more = self.make(&mut ring, more);
            self.ring = ring;
            if more == 0 {
                break;
            }
        }
    }

    /// Writes so many packets, as far as there are any.
    #[inline]
    fn make(&mut self, into: &mut Vec<MemFrame>, max: usize) -> usize {
        let mut n = max;
        if let Some(left) = &mut self.left {
            n = n.min(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= n as u64;
        }
        let before = into.len();
        Cache::with(|cache| {
            if let [stream] = self.streams.as_mut_slice() {
                let size = stream.size();
                into.extend((0..n).map(|_| {
                    let mut frame = cache.alloc(size);
                    stream.make_next(&mut frame);
                    frame
                }));
            } else {
                let (streams, schedule, at) = (&mut self.streams, &self.schedule, &mut self.at);
                into.extend((0..n).filter_map(|_| {
                    let stream = streams.get_mut(usize::from(*schedule.get(*at)?))?;
                    *at = if *at + 1 == schedule.len() { 0 } else { *at + 1 };
                    let mut frame = cache.alloc(stream.size());
                    stream.make_next(&mut frame);
                    Some(frame)
                }));
            }
        });
        into.len() - before
    }

    /// What the ring still has, when no more comes into it.
    #[cold]
    fn rest(&mut self, into: &mut Vec<MemFrame>, max: usize) -> usize {
        self.ring.rotate_left(self.oldest);
        self.oldest = 0;
        let n = max.min(self.ring.len());
        into.extend(self.ring.drain(..n));
        n
    }
}

impl RxQueue for ReplayRx {
    type Frame = MemFrame;

    #[inline]
    fn rx_burst(&mut self, into: &mut Vec<MemFrame>, max: usize) -> usize {
        if self.gate.as_ref().is_some_and(|gate| !gate.load(Ordering::Relaxed)) {
            return 0;
        }
        if self.depth == 0 {
            return self.make(into, max);
        }
        self.fill();
        // Each takes the place of the one that has waited for longest, as a driver refills its ring.
        let before = into.len();
        let made = self.make(into, max);
        for frame in into.iter_mut().skip(before) {
            let Some(place) = self.ring.get_mut(self.oldest) else { break };
            std::mem::swap(frame, place);
            self.oldest = if self.oldest + 1 == self.depth { 0 } else { self.oldest + 1 };
        }
        made + if made < max { self.rest(into, max - made) } else { 0 }
    }

    /// Packets are made when they are asked for: none waits.
    fn quarters(&mut self) -> Option<u8> {
        Some(0)
    }
}

/// What a [`SinkTx`] has taken.
#[derive(Debug, Default)]
struct SinkCounts {
    packets: AtomicU64,
    bytes: AtomicU64,
}

/// Looks at a packet that was sent.
pub type Inspect = Box<dyn FnMut(&[u8]) + Send>;

/// Takes every frame, counts it and recycles its buffer.
pub struct SinkTx {
    counts: Arc<SinkCounts>,
    inspect: Option<(u32, Inspect)>,
    until_next: u32,
}

impl std::fmt::Debug for SinkTx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SinkTx").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl Default for SinkTx {
    fn default() -> Self {
        Self::new()
    }
}

impl SinkTx {
    /// A sink that looks at nothing.
    pub fn new() -> Self {
        Self { counts: Arc::default(), inspect: None, until_next: 0 }
    }

    /// A sink that shows every `every`th packet (0 counts as 1) to `inspect`.
    pub fn inspecting(every: u32, inspect: Inspect) -> Self {
        Self { inspect: Some((every.max(1), inspect)), ..Self::new() }
    }

    /// Packets taken so far.
    pub fn packets(&self) -> u64 {
        self.counts.packets.load(Ordering::Relaxed)
    }

    /// Bytes taken so far.
    pub fn bytes(&self) -> u64 {
        self.counts.bytes.load(Ordering::Relaxed)
    }
}

impl TxQueue for SinkTx {
    type Frame = MemFrame;

    #[inline]
    fn tx_burst(&mut self, frames: &mut Vec<MemFrame>) -> usize {
        if let Some((every, inspect)) = &mut self.inspect {
            for frame in frames.iter() {
                if self.until_next == 0 {
                    inspect(frame.bytes());
                    self.until_next = *every;
                }
                self.until_next -= 1;
            }
        }
        let n = frames.len();
        let bytes: u64 = frames.iter().map(|frame| frame.len() as u64).sum();
        // Only this queue writes: no locked instruction is needed.
        self.counts.packets.store(self.packets() + n as u64, Ordering::Relaxed);
        self.counts.bytes.store(self.bytes() + bytes, Ordering::Relaxed);
        Cache::with(|cache| frames.drain(..).for_each(|frame| cache.recycle(frame)));
        frames.clear();
        n
    }
}

/// One queue pair per source, as a [`Port`].
#[derive(Debug)]
pub struct ReplayPort {
    info: PortInfo,
    pairs: Vec<Option<(ReplayRx, SinkTx)>>,
    sinks: Vec<Arc<SinkCounts>>,
    pool: MemPool,
}

impl ReplayPort {
    /// A port whose queue `i` receives from `sources[i]` and sends to a sink of its own.
    pub fn new(name: &str, mac: MacAddr, mtu: u16, sources: Vec<(ReplayRx, SinkTx)>) -> Self {
        let queues = u16::try_from(sources.len()).unwrap_or(u16::MAX);
        let info = PortInfo { name: name.into(), mac, mtu, queues, driver: "replay".into() };
        let sinks = sources.iter().map(|(_, sink)| Arc::clone(&sink.counts)).collect();
        let pool = MemPool::new(8192, FrameSize::for_mtu(mtu));
        Self { info, pairs: sources.into_iter().map(Some).collect(), sinks, pool }
    }
}

impl Port for ReplayPort {
    type Frame = MemFrame;
    type Rx = ReplayRx;
    type Tx = SinkTx;
    type Pool = MemPool;

    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn take_queue(&mut self, queue: u16) -> Option<(ReplayRx, SinkTx)> {
        self.pairs.get_mut(usize::from(queue))?.take()
    }

    fn pool(&mut self, _queue: u16) -> MemPool {
        self.pool.clone()
    }

    fn link_up(&self) -> bool {
        true
    }

    /// What the sinks took; what the sources made is not counted, since they never miss.
    fn stats(&self) -> PortStats {
        let sum = |field: fn(&SinkCounts) -> &AtomicU64| {
            self.sinks.iter().map(|sink| field(sink).load(Ordering::Relaxed)).sum()
        };
        PortStats { tx_packets: sum(|s| &s.packets), tx_bytes: sum(|s| &s.bytes), ..PortStats::default() }
    }
}

const _: () = assert!(HEADROOM >= 128, "the FramePool contract");

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn patch(a: u32, b: u32) -> Patch {
        let mut words = [[0xee; 4]; WORDS];
        words[..2].copy_from_slice(&[a.to_be_bytes(), b.to_be_bytes()]);
        Patch { words, hash: a }
    }

    #[test]
    fn packets_are_the_template_with_its_words_replaced() {
        let template: Vec<u8> = (0..150).collect();
        let stream = Stream::new(&template, &[46, 146], vec![patch(1, 2), patch(3, 4), patch(5, 6)]).unwrap();
        let mut rx = ReplayRx::new(stream.starting_at(1)).limited(4);
        let mut frames = Vec::new();
        assert_eq!(rx.rx_burst(&mut frames, 64), 4);
        assert_eq!(rx.rx_burst(&mut frames, 64), 0);
        for (frame, (a, b)) in frames.iter().zip([(3u32, 4u32), (5, 6), (1, 2), (3, 4)]) {
            let mut expected = template.clone();
            expected[46..50].copy_from_slice(&a.to_be_bytes());
            expected[146..150].copy_from_slice(&b.to_be_bytes());
            assert_eq!(frame.bytes(), expected);
            assert_eq!(frame.rss_hash(), Some(a));
        }
    }

    #[test]
    fn a_used_buffer_shows_nothing_of_its_past() {
        // Frames that were moved, grown and filled go round: each packet is still exactly the template.
        let template = [7u8; 65];
        let mut rx = ReplayRx::new(Stream::new(&template, &[], vec![Patch::default()]).unwrap());
        let mut tx = SinkTx::new();
        let mut frames = Vec::new();
        for _ in 0..5 {
            rx.rx_burst(&mut frames, 64);
            for frame in &mut frames {
                assert_eq!(frame.bytes(), template);
                assert_eq!((frame.headroom(), frame.rss_hash()), (HEADROOM, None));
                assert!(frame.prepend(36) && frame.append(500));
                frame.bytes_mut().fill(0xff);
            }
            assert_eq!(tx.tx_burst(&mut frames), 64);
        }
        assert_eq!((tx.packets(), tx.bytes()), (320, 320 * (65 + 36 + 500)));
    }

    #[test]
    fn of_a_long_packet_only_the_head_may_be_written() {
        let template: Vec<u8> = (0..9_000).map(|n| n as u8).collect();
        let whole = Stream::new(&template, &[60], vec![patch(1, 0)]).unwrap();
        for octets in [0, 64, 100, 128, 9_000, usize::MAX] {
            let mut rx = ReplayRx::new(whole.clone().writing_first(octets));
            let mut frames = Vec::new();
            rx.rx_burst(&mut frames, 1);
            let written = octets.div_ceil(64).saturating_mul(64).clamp(64, 9_000);
            let mut expected = template[..written].to_vec();
            expected[60..64].copy_from_slice(&1u32.to_be_bytes());
            assert_eq!(frames[0].len(), 9_000);
            assert_eq!(frames[0].bytes()[..written], expected);
        }
    }

    #[test]
    fn streams_mix_by_schedule_and_the_sink_samples() {
        let one = |byte, len| Stream::new(&vec![byte; len], &[], vec![Patch::default()]).unwrap();
        let mut rx = ReplayRx::mixed(vec![one(1, 60), one(2, 9014)], vec![0, 0, 1]).unwrap();
        let (send, seen) = std::sync::mpsc::channel();
        let look = Box::new(move |bytes: &[u8]| send.send((bytes[0], bytes.len())).unwrap());
        let mut tx = SinkTx::inspecting(2, look);
        let mut frames = Vec::new();
        rx.rx_burst(&mut frames, 4);
        tx.tx_burst(&mut frames);
        rx.rx_burst(&mut frames, 3);
        tx.tx_burst(&mut frames);
        let seen: Vec<_> = seen.try_iter().collect();
        assert_eq!(seen, [(1, 60), (2, 9014), (1, 60), (1, 60)]);
    }

    #[test]
    fn packets_of_a_cold_ring_come_in_order_and_all() {
        let patches: Vec<_> = (0..1_000).map(|number| patch(number, 0)).collect();
        let stream = Stream::new(&[0; 60], &[0], patches).unwrap();
        let mut rx = ReplayRx::new(stream).limited(1_000).cold(300);
        // Whether it is filled before or when the first packet is asked for.
        rx.fill();
        assert_eq!((rx.ring.len(), rx.left), (300, Some(700)));
        rx.fill();
        let (mut frames, mut buffers) = (Vec::new(), std::collections::HashSet::new());
        let mut next = 0;
        while rx.rx_burst(&mut frames, 64) > 0 {
            for frame in frames.drain(..) {
                assert_eq!(frame.bytes()[..4], u32::to_be_bytes(next));
                buffers.insert(frame.bytes().as_ptr());
                next += 1;
            }
        }
        // As many buffers went round as the ring has, and some in hand.
        assert_eq!(next, 1_000);
        assert!((300..500).contains(&buffers.len()), "{}", buffers.len());
    }

    #[test]
    fn what_cant_be_replayed_is_refused() {
        let p = || vec![Patch::default()];
        assert_eq!(Stream::new(&[], &[], p()).unwrap_err(), ReplayError::Length(0));
        assert_eq!(Stream::new(&[0; 9601], &[], p()).unwrap_err(), ReplayError::Length(9601));
        assert_eq!(Stream::new(&[0; 60], &[0; 9], p()).unwrap_err(), ReplayError::Words(9));
        let error = ReplayError::Offset { offset: 57, length: 60 };
        assert_eq!(Stream::new(&[0; 60], &[56, 57], p()).unwrap_err(), error);
        assert!(Stream::new(&[0; 60], &[usize::MAX], p()).is_err());
        assert_eq!(Stream::new(&[0; 60], &[], vec![]).unwrap_err(), ReplayError::Empty);
        let stream = Stream::new(&[0; 60], &[], p()).unwrap();
        assert_eq!(ReplayRx::mixed(vec![stream], vec![1]).unwrap_err(), ReplayError::Empty);
        assert_eq!(ReplayRx::mixed(vec![], vec![]).unwrap_err(), ReplayError::Empty);
    }
}
