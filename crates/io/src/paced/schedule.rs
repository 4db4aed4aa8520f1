//! Which packet is due when: steps of a constant rate, in which entries of the redirection table take turns.

use super::PacedError;
use crate::redirection::ENTRIES;

/// Packets of each entry in one round of a step.
pub type Weights = [u16; ENTRIES];

/// The longest round.
const LONGEST: u64 = 1 << 20;
/// How far ahead of the clock queues look, in seconds: a redirection takes effect so late at most.
const AHEAD: f64 = 5e-6;

/// A while at one rate.
#[derive(Clone, Debug)]
pub struct Step {
    /// How long.
    pub seconds: f64,
    /// Packets a second, of all entries.
    pub per_second: f64,
    /// How they are dealt out.
    pub weights: Weights,
}

/// A packet's place in a step's round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub entry: u16,
    /// Packets of this entry before it in the round.
    pub nth: u16,
}

/// A step, made ready.
#[derive(Debug)]
pub(super) struct Phase {
    /// The numbers of its first packet and of the next step's.
    pub first: u64,
    pub end: u64,
    /// When it begins, in ticks from the start.
    begin: f64,
    ticks_per_packet: f64,
    pub round: Box<[Slot]>,
    weights: Weights,
    /// Packets of each entry before this step.
    before: Box<[u32]>,
}

impl Phase {
    /// When a packet is due, in ticks from the start.
    pub fn due(&self, number: u64) -> u64 {
        (self.begin + (number + 1 - self.first) as f64 * self.ticks_per_packet) as u64
    }

    /// Packets of an entry before this slot of a round.
    pub fn before(&self, rounds: u32, slot: Slot) -> u32 {
        let entry = usize::from(slot.entry);
        let weight = self.weights.get(entry).copied().unwrap_or_default();
        let before = self.before.get(entry).copied().unwrap_or_default();
        before + rounds * u32::from(weight) + u32::from(slot.nth)
    }
}

/// Steps, one after the other.
#[derive(Debug)]
pub struct Schedule {
    phases: Vec<Phase>,
    seconds: f64,
    fastest: f64,
}

impl Schedule {
    /// For a clock of so many ticks a second.
    pub fn new(steps: &[Step], hz: u64) -> Result<Self, PacedError> {
        let mut phases = Vec::with_capacity(steps.len());
        let (mut first, mut seconds, mut fastest) = (0_u64, 0.0, 0_f64);
        let mut before = vec![0_u32; ENTRIES];
        for step in steps {
            let packets = step.seconds * step.per_second;
            let sound = |figure: f64| figure.is_finite() && figure >= 0.0;
            if !(sound(step.seconds) && sound(step.per_second) && packets < f64::from(u32::MAX)) {
                return Err(PacedError::Endless);
            }
            let sum: u64 = step.weights.iter().map(|weight| u64::from(*weight)).sum();
            if sum > LONGEST || (sum == 0 && packets >= 1.0) {
                return Err(PacedError::Weights(sum));
            }
            let end = first + packets as u64;
            let phase = Phase {
                first,
                end,
                begin: seconds * hz as f64,
                ticks_per_packet: hz as f64 / step.per_second,
                round: round(&step.weights),
                weights: step.weights,
                before: before.clone().into_boxed_slice(),
            };
            count(&phase, &mut before);
            phases.push(phase);
            first = end;
            seconds += step.seconds;
            fastest = fastest.max(step.per_second);
        }
        if first > u64::from(u32::MAX) {
            return Err(PacedError::Endless);
        }
        Ok(Self { phases, seconds, fastest })
    }

    /// How long all steps take.
    pub const fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Packets in all steps.
    pub fn packets(&self) -> u64 {
        self.phases.last().map_or(0, |phase| phase.end)
    }

    /// The entries that have packets, some of them more than once.
    pub(super) fn entries(&self) -> impl Iterator<Item = usize> + '_ {
        let of = |phase: &Phase| phase.weights.into_iter().enumerate().filter(|(_, weight)| *weight > 0);
        self.phases.iter().flat_map(of).map(|(entry, _)| entry)
    }

    /// Packets that a queue may look ahead.
    pub(super) fn ahead(&self) -> u64 {
        ((self.fastest * AHEAD) as u64).max(1)
    }

    /// The phase of a packet, or of what comes after one, looked for from phase `from` on.
    pub(super) fn phase(&self, number: u64, from: usize) -> Option<(usize, &Phase)> {
        self.phases.iter().enumerate().skip(from).find(|(_, phase)| number < phase.end)
    }

    /// Packets that are due by then, in ticks from the start.
    pub(super) fn number_at(&self, ticks: u64) -> u64 {
        let begun = |phase: &&Phase| phase.begin <= ticks as f64;
        self.phases.iter().rev().find(begun).map_or(0, |phase| {
            let since = (ticks as f64 - phase.begin) / phase.ticks_per_packet;
            phase.end.min(phase.first + since as u64)
        })
    }

    /// When a packet is due, in ticks from the start; the end of all for one that never comes.
    pub(super) fn due(&self, number: u64) -> u64 {
        match self.phase(number, 0) {
            Some((_, phase)) => phase.due(number),
            None => self.phases.last().map_or(0, |phase| phase.due(phase.end.saturating_sub(1))),
        }
    }
}

/// Deals the packets of a round out evenly: the nth of w stands at (n + x) / w of the round, with another x for each entry.
fn round(weights: &Weights) -> Box<[Slot]> {
    let mut placed = Vec::new();
    for (entry, &weight) in weights.iter().enumerate() {
        // The golden ratio's multiples spread well whatever entries are left out.
        let offset = (entry as f64 * 0.618_033_988_749_895).fract();
        placed.extend(
            (0..weight).map(|nth| {
                ((f64::from(nth) + offset) / f64::from(weight), Slot { entry: entry as u16, nth })
            }),
        );
    }
    placed.sort_by(|a, b| a.0.total_cmp(&b.0));
    placed.into_iter().map(|(_, slot)| slot).collect()
}

/// Adds a phase's packets to those of each entry.
fn count(phase: &Phase, before: &mut [u32]) {
    let packets = phase.end - phase.first;
    let length = (phase.round.len() as u64).max(1);
    let (rounds, rest) = (packets / length, packets % length);
    for (before, weight) in before.iter_mut().zip(phase.weights) {
        *before += rounds as u32 * u32::from(weight);
    }
    for slot in phase.round.iter().take(rest as usize) {
        if let Some(before) = before.get_mut(usize::from(slot.entry)) {
            *before += 1;
        }
    }
}
