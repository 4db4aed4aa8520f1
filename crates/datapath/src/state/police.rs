//! A rule's meters: several buckets, of which a packet passes all or none.
//!
//! A QER with a maximum bit rate is a [`Meter`]; one that also promises a guaranteed bit rate (TS 23.501 §5.7.2.5) is a two-rate
//! [`Marker`] (RFC 2698): beyond the promise its packets are yellow. Each marker of a rule sees the colour that the one before it gave
//! (RFC 2698 §3, colour-aware). Both kinds are kept by the shard and known by number, so that any rules of a session draw on
//! the same ones. The session's slice is one more, the worker's own.

use crate::state::record::{Meter, Record, coarse, flag};
use crate::state::slice::Share;
use pfcp::QerId;
use session::rules::{Qer, Rules};
use tables::{Colour, Marker, MarkerConfig, MeterConfig, Nanos};

/// A QER's meters: uplink, downlink. They are kept by the shard, one run a session in the order of its QERs.
pub type Meters = [Meter; 2];

/// The burst of a marker holds a jumbo frame, whatever its rate.
const LEAST_BURST: u32 = 10_000;

/// In a number: it is a marker's.
const MARKER: u32 = 1 << 31;
/// In a number: it is a slice's, twice its place, and one more for downlink. Without either it is a QER's, likewise.
const SLICE: u32 = 1 << 30;

/// The buckets that numbers refer to: all of a shard, or all of a session.
#[derive(Debug)]
pub struct Policers<'a> {
    /// By QER.
    pub meters: &'a mut [Meters],
    /// Of QERs that promise a rate.
    pub markers: &'a mut [Marker],
    /// Of slices, by slice and direction.
    pub slices: &'a mut [Share],
    /// Depth of a meter's bucket, in nanoseconds.
    pub depth: u64,
    /// Whoever is refused now is dropped: not asked again by someone who looks more closely.
    pub last_word: bool,
}

impl Policers<'_> {
    /// No meters.
    pub const fn none() -> Self {
        Self { meters: &mut [], markers: &mut [], slices: &mut [], depth: 0, last_word: false }
    }

    /// Whether there are any to be shared.
    #[inline(always)]
    pub const fn any(&self) -> bool {
        !self.meters.is_empty() || !self.slices.is_empty()
    }

    /// The colour of a packet that all its meters let pass, and whose bytes they have been charged with. `None`, and nothing done,
    /// if one doesn't.
    #[inline(always)]
    pub fn police(
        &mut self,
        numbers: impl Iterator<Item = u32> + Clone,
        bytes: u16,
        now: Nanos,
    ) -> Option<Colour> {
        let mut colour = Colour::Green;
        for number in numbers.clone() {
            if number & MARKER != 0 {
                if let Some(marker) = self.markers.get((number & !MARKER) as usize) {
                    colour = marker.colour(now, bytes.into(), colour);
                }
            } else if number & SLICE != 0 {
                if let Some(share) = self.slices.get_mut((number & !SLICE) as usize) {
                    colour = share.colour(now, bytes, colour, self.last_word);
                }
            } else if !self.meter(number).is_none_or(|meter| meter.conforms(now, self.depth)) {
                colour = Colour::Red;
            }
        }
        if colour == Colour::Red {
            return None;
        }
        let mut before = Colour::Green;
        for number in numbers {
            if number & MARKER != 0 {
                if let Some(marker) = self.markers.get_mut((number & !MARKER) as usize) {
                    before = marker.mark(now, bytes.into(), before);
                }
            } else if number & SLICE != 0 {
                if let Some(share) = self.slices.get_mut((number & !SLICE) as usize) {
                    share.spend(bytes, colour);
                }
            } else if let Some(pair) = self.meters.get_mut((number / 2) as usize)
                && let Some(meter) = pair.get_mut((number % 2) as usize)
            {
                meter.take(now, bytes);
            }
        }
        Some(colour)
    }

    #[inline(always)]
    fn meter(&self, number: u32) -> Option<&Meter> {
        self.meters.get((number / 2) as usize)?.get((number % 2) as usize)
    }
}

/// Where a number's bucket is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The meters of this QER.
    Meters(u32),
    /// This marker.
    Marker(u32),
    /// A slice, whose share is always at hand.
    Slice,
}

/// What a number says.
#[inline(always)]
pub const fn place(number: u32) -> Place {
    if number & MARKER != 0 {
        Place::Marker(number & !MARKER)
    } else if number & SLICE != 0 {
        Place::Slice
    } else {
        Place::Meters(number / 2)
    }
}

/// The numbers of the meters that limit a rule's packets in its direction, its slice last, where the session's first meter and its first marker
/// have these numbers.
pub fn numbers(
    rules: &Rules,
    pdr: u16,
    uplink: bool,
    meters: u32,
    markers: u32,
) -> impl Iterator<Item = u32> + Clone + '_ {
    let qers = limited_qers(rules, pdr, uplink).map(move |qer| match marker_of(rules, qer, uplink) {
        Some(marker) => MARKER | (markers + u32::from(marker)),
        None => 2 * (meters + u32::from(qer)) + u32::from(!uplink),
    });
    qers.chain(rules.slice.map(|slice| SLICE | (2 * u32::from(slice) + u32::from(!uplink))))
}

/// The QERs of a rule that limit the rate in this direction.
pub fn limited_qers(rules: &Rules, pdr: u16, uplink: bool) -> impl Iterator<Item = u16> + Clone + '_ {
    let qers = rules.pdrs.get(pdr as usize).map_or(&[][..], |pdr| &pdr.qers);
    qers.iter()
        .copied()
        .filter(move |qer| rules.qers.get(*qer as usize).is_some_and(|qer| maximum(qer, uplink).is_some()))
}

const fn maximum(qer: &Qer, uplink: bool) -> Option<u64> {
    if uplink { qer.uplink_mbr } else { qer.downlink_mbr }
}

/// The rate of a QER that limits it by a plain meter in this direction.
pub const fn plain_maximum(qer: &Qer, uplink: bool) -> Option<u64> {
    if rates(qer, uplink).is_some() { None } else { maximum(qer, uplink) }
}

/// Guaranteed and maximum rate, where there are both. A guarantee without a maximum has nothing to enforce.
const fn rates(qer: &Qer, uplink: bool) -> Option<(u64, u64)> {
    match (if uplink { qer.uplink_gbr } else { qer.downlink_gbr }, maximum(qer, uplink)) {
        (Some(guaranteed), Some(maximum)) => Some((guaranteed, maximum)),
        _ => None,
    }
}

/// Whether a QER promises a rate in this direction.
pub fn guarantees(rules: &Rules, qer: u16, uplink: bool) -> bool {
    rules.qers.get(qer as usize).is_some_and(|qer| rates(qer, uplink).is_some())
}

/// Each promise of the rules: QER and direction, in the order of the session's markers.
fn promises(rules: &Rules) -> impl Iterator<Item = (&Qer, bool, u64, u64)> + '_ {
    let both = rules.qers.iter().flat_map(|qer| [(qer, true), (qer, false)]);
    both.filter_map(|(qer, uplink)| {
        rates(qer, uplink).map(|(guaranteed, maximum)| (qer, uplink, guaranteed, maximum))
    })
}

/// How many markers a session needs.
pub fn markers_needed(rules: &Rules) -> u16 {
    promises(rules).count() as u16
}

/// A QER's marker in this direction, among the session's.
fn marker_of(rules: &Rules, qer: u16, uplink: bool) -> Option<u16> {
    let qer = rules.qers.get(qer as usize)?;
    rates(qer, uplink)?;
    promises(rules).position(|(other, side, ..)| other.id == qer.id && side == uplink).map(|at| at as u16)
}

/// Fills a session's meters from its rules.
pub fn set_meters(meters: &mut [Meters], rules: &Rules) {
    for (qer, meters) in rules.qers.iter().zip(meters) {
        let meter = |rate: Option<u64>| rate.map_or_else(Meter::default, Meter::new);
        *meters = [meter(qer.uplink_mbr), meter(qer.downlink_mbr)];
    }
}

/// Meters of changed rules: what had a meter under the same QER ID `before` keeps its fill level.
pub fn resume_meters(meters: &mut [Meters], rules: &Rules, known: &[Meters], before: &Rules) {
    for (qer, meters) in rules.qers.iter().zip(meters) {
        if let Ok(place) = before.qers.binary_search_by_key(&qer.id, |q| q.id)
            && let Some(known) = known.get(place)
        {
            for (meter, known) in meters.iter_mut().zip(known) {
                *meter = meter.resume(*known);
            }
        }
    }
}

/// Whose a session's markers are: the QER, and whether it is its uplink's.
pub fn promised(rules: &Rules) -> impl Iterator<Item = (QerId, bool)> + '_ {
    promises(rules).map(|(qer, uplink, ..)| (qer.id, uplink))
}

/// Fills a session's markers from its rules; what had one under the same QER ID `before` keeps its fill level.
pub fn set_markers(
    markers: &mut [Marker],
    rules: &Rules,
    known: &[Marker],
    before: Option<&Rules>,
    now: Nanos,
    depth: u64,
) {
    let meter = |rate: u64| MeterConfig::with_burst_time(rate, depth, LEAST_BURST);
    for ((qer, uplink, guaranteed, maximum), marker) in promises(rules).zip(markers) {
        let config = MarkerConfig::TwoRate { committed: meter(guaranteed), peak: meter(maximum) };
        let old = before.and_then(|before| {
            let place =
                promises(before).position(|(other, side, ..)| other.id == qer.id && side == uplink)?;
            known.get(place)
        });
        *marker = old.map_or_else(|| Marker::new(config), |old| old.reconfigured(config, now));
    }
}

/// The meter of the session's `qer`th QER.
pub fn meter_of(meters: &[Meters], qer: u16, uplink: bool) -> Meter {
    meters.get(qer as usize).map_or_else(Meter::default, |[up, down]| if uplink { *up } else { *down })
}

/// Meter and account, within the record: the packet's colour. `None`, and nothing done, if it is to be judged by the session.
#[inline(always)]
pub(crate) fn enforce(
    record: &mut Record,
    policers: &mut Policers<'_>,
    length: u16,
    now: Nanos,
) -> Option<Colour> {
    if record.credit < length as u32 {
        return None;
    }
    let mut colour = Colour::Green;
    if record.flags & flag::METERED != 0 {
        if !record.meter.conforms(now, policers.depth) {
            return None;
        }
        record.meter.take(now, length);
    }
    if policers.any() && record.flags & flag::SHARED_METERS != 0 {
        colour = policers.police(record.shared_meters(), length, now)?;
    }
    record.credit -= length as u32;
    record.packets += 1;
    record.last = coarse(now);
    Some(colour)
}
