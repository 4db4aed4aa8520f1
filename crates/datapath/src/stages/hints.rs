//! Where might it be? A burst's look-ups as questions to a device, and what its hints are worth ([`crate::lookups`]).

use crate::datapath::Datapath;
use crate::lookups::{Batch, Lesson, UNKNOWN, Worth};
use crate::meta::{Kind, Meta, packet_of};
use crate::stages::burst::Burst;
use crate::state::shard::Shard;
use io::Frame;
use packet::IpProtocol;
use tables::hash::mix;
use tables::prefetch::prefetch_slice_at;

/// What is asked of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    /// The slot of its session.
    Session,
    /// The line of its flow.
    Flow,
}

/// A question that was asked, in the order of the batch.
#[derive(Clone, Copy, Debug)]
struct Question {
    packet: u8,
    of: Of,
    key: u64,
    /// What was said.
    hint: u32,
}

const _: () = assert!(io::BURST <= 1 << u8::BITS, "a packet's place in its burst is an octet");

/// What was said of one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said {
    session: u32,
    pub(crate) flow: u32,
}

impl Said {
    const NOTHING: Self = Self { session: UNKNOWN, flow: UNKNOWN };
}

/// What a burst asked and heard. Empty, but for the lessons, while nobody is asked.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    questions: Vec<Question>,
    /// By packet; empty: there is no answer.
    pub(crate) said: Vec<Said>,
    /// Frames that are under way.
    frames: u64,
    /// What the device should have known.
    lessons: Vec<Lesson>,
    worth: Worth,
}

impl Hints {
    /// What was found where `question` was asked.
    fn judge(&mut self, at: usize, found: Option<u32>) {
        let Some(&Question { key, hint, .. }) = self.questions.get(at) else { return };
        let worth = &mut self.worth;
        match found {
            Some(found) if found == hint => worth.right += 1,
            None if hint == UNKNOWN => worth.nothing += 1,
            _ => {
                let count = if hint == UNKNOWN { &mut worth.unknown } else { &mut worth.wrong };
                *count += 1;
                if self.lessons.len() < Batch::LESSONS {
                    self.lessons.push(Lesson { key, value: found.unwrap_or(UNKNOWN) });
                }
            }
        }
    }

    /// Judges all questions of one kind: `find` says what was found for a packet, or `None` if its look-up was not done.
    fn judge_all(&mut self, of: Of, mut find: impl FnMut(usize) -> Option<Option<u32>>) {
        for at in 0..self.questions.len() {
            let packet =
                self.questions.get(at).filter(|question| question.of == of).map(|question| question.packet);
            if let Some(found) = packet.and_then(|packet| find(packet.into())) {
                self.judge(at, found);
            }
        }
    }

    /// Whether answers have come.
    #[inline(always)]
    pub fn are_heard(&self) -> bool {
        !self.said.is_empty()
    }

    /// How many frames have been under way until now.
    pub fn come(&mut self) -> u64 {
        std::mem::take(&mut self.frames)
    }

    /// The burst is through.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.questions.clear();
        self.said.clear();
    }
}

impl<F> Burst<F> {
    /// What its device is to learn, since this was asked last.
    pub fn take_lessons(&mut self) -> impl Iterator<Item = Lesson> + '_ {
        self.hints.lessons.drain(..)
    }

    /// What its hints were worth, since this was asked last.
    pub fn take_worth(&mut self) -> Worth {
        std::mem::take(&mut self.hints.worth)
    }
}

/// Without structure: the fraction of the square root of 3.
const SALT: u64 = 0xbb67_ae85_84ca_a73b;

/// The question for a UE's address.
#[inline(always)]
fn session_key(seed: u64, meta: &Meta) -> u64 {
    mix(mix(meta.key ^ seed, SALT ^ u64::from(meta.v6)), seed.rotate_left(31) | 1)
}

/// The question for a flow: by all that tells one from another, whatever the session's rules look at. `None`: there is no flow of such a packet
/// ([`crate::state::flow::Key::of`]).
#[inline(always)]
fn flow_key(seed: u64, frame: &[u8], meta: &Meta) -> Option<u64> {
    let packet = packet_of(frame, meta);
    let word = |at: usize| Some(u64::from_ne_bytes(*packet.get(at..)?.first_chunk::<8>()?));
    let (protocol, transport, addresses);
    if meta.v6 {
        protocol = *packet.get(6)?;
        addresses =
            mix(word(8)? ^ word(24)?.rotate_left(17) ^ seed, word(16)? ^ word(32)?.rotate_left(29) ^ SALT);
        transport = packet::ipv6::HEADER_LEN;
    } else {
        let [first, _, _, _, _, _, f0, f1, _, next, ..] = *packet.first_chunk::<20>()?;
        if u16::from_be_bytes([f0, f1]) & 0x3fff != 0 {
            return None;
        }
        (protocol, transport) = (next, usize::from(first & 15) * 4);
        addresses = mix(word(12)? ^ seed, SALT);
    }
    let mut ports = 0;
    if IpProtocol(protocol).has_ports() {
        ports = u32::from_ne_bytes(*packet.get(transport..)?.first_chunk::<4>()?);
    }
    // A tunnel's packets and those to the UE's address are different flows; congestion marks make none.
    let tunnel = if meta.kind == Kind::Tunnel { 1 << 32 | u64::from(meta.teid) } else { 0 };
    let rest = u64::from(protocol) << 56 | u64::from(meta.tos >> 2) << 48 | u64::from(meta.qfi) << 40;
    let place = mix(tunnel ^ rest ^ seed.rotate_left(41), u64::from(ports) << 16 ^ SALT.rotate_left(23));
    Some(mix(addresses ^ place, seed.rotate_left(11) | 1))
}

impl<F: Frame> Datapath<F> {
    /// Makes questions of a burst that was read: instead of [`Self::look_up`]. [`Self::finish_answered`] has to follow. Frames of other workers' shards
    /// are set apart here, and leave with the rest.
    pub fn question(&mut self, burst: &mut Burst<F>, batch: &mut Batch) {
        let packets = burst.frames.len() + burst.leaving.len();
        self.place(burst);
        let is_users = |meta: &&Meta| matches!(meta.kind, Kind::Tunnel | Kind::Plain);
        if burst.metas.iter().filter(is_users).any(|meta| !self.has(meta.shard)) {
            // Before questions are numbered.
            self.set_apart(burst);
        }
        let seed = self.config.seed;
        let Burst { frames, metas, hints, .. } = burst;
        let mut ask = |packet: u8, of: Of, key: u64| {
            hints.questions.push(Question { packet, of, key, hint: UNKNOWN });
            batch.keys.push(key);
        };
        for (packet, (meta, frame)) in (0..).zip(metas.iter().zip(frames)) {
            if meta.kind == Kind::Plain && meta.slot == Meta::EMPTY.slot && self.has(meta.shard) {
                ask(packet, Of::Session, session_key(seed, meta));
            }
            if self.divided > 0
                && matches!(meta.kind, Kind::Tunnel | Kind::Plain)
                && let Some(key) = flow_key(seed, frame.bytes(), meta)
            {
                ask(packet, Of::Flow, key);
            }
        }
        hints.frames = packets as u64;
        self.counters.under_way += hints.frames;
    }

    /// The burst has heard as much as it will. Asks for the records that the hints lead to, and for the buckets of those without one.
    pub(crate) fn hear(&self, burst: &mut Burst<F>, answers: &[u32]) {
        let Burst { metas, probes, hints, .. } = burst;
        let Hints { questions, said, .. } = hints;
        said.clear();
        said.resize(metas.len(), Said::NOTHING);
        for (question, &answer) in questions.iter_mut().zip(answers) {
            question.hint = answer;
            if let Some(said) = said.get_mut(usize::from(question.packet)) {
                *match question.of {
                    Of::Session => &mut said.session,
                    Of::Flow => &mut said.flow,
                } = answer;
            }
        }
        probes.clear();
        probes.resize(metas.len(), None);
        let of = |meta: &Meta| self.shards.get(usize::from(meta.shard))?.as_deref();
        for (meta, said) in metas.iter().zip(said.iter()) {
            let Some(shard) = of(meta) else { continue };
            match meta.kind {
                Kind::Tunnel => prefetch_slice_at(&shard.tunnels, meta.slot as usize),
                Kind::Plain => {
                    let slot = if meta.slot == Meta::EMPTY.slot { said.session } else { meta.slot };
                    prefetch_slice_at(&shard.downlink, slot as usize);
                }
                _ => {}
            }
        }
        let mut hashed = false;
        for ((meta, said), probe) in metas.iter_mut().zip(said.iter()).zip(probes) {
            if meta.kind == Kind::Plain
                && meta.slot == Meta::EMPTY.slot
                && let Some(shard) = of(meta)
            {
                if shard.is_at(said.session, meta) {
                    meta.slot = said.session;
                } else {
                    hashed = true;
                    *probe = Some(super::locate::prepare(shard, meta));
                }
            }
        }
        (burst.hashed, burst.away) = (hashed, false);
    }

    /// Where sessions were found, as lessons.
    #[inline(never)]
    pub(crate) fn judge_sessions(burst: &mut Burst<F>) {
        let Burst { metas, hints, .. } = burst;
        hints.judge_all(Of::Session, |packet| {
            let slot = metas.get(packet)?.slot;
            Some((slot != Meta::EMPTY.slot).then_some(slot))
        });
    }

    /// Where flows were found, as lessons.
    #[inline(never)]
    pub(crate) fn judge_flows(&self, burst: &mut Burst<F>) {
        let Burst { metas, lookups, hints, .. } = burst;
        hints.judge_all(Of::Flow, |packet| {
            let lookup = lookups.get(packet)?.as_ref()?;
            let shard: &Shard<F> = self.shards.get(usize::from(metas.get(packet)?.shard))?.as_deref()?;
            Some(shard.line_of(lookup))
        });
    }
}
