//! Does a tunnel's packet come from where the tunnel's other end is?
//!
//! **Problem.** Whoever reaches N3 and knows a TEID can send as the UE behind it. 3GPP asks for no look at the outer source, and nobody
//! signals it: the F-TEID that an SMF names for a gNB is where *downlink* goes (TS 38.413 §9.3.4.2), and a gNB may send from another
//! address than it receives at. A UE that moves sends by way of the new gNB before the path switch is told (TS 23.502 §4.9.1.2.2), and one
//! that wakes up before the gNB is named (§4.2.3.2). So a check may lose what is right, and is a matter of choice.
//!
//! **Model.** The *ends* of a tunnel are the far ends of its session's tunnels towards the side that the tunnel's packets come from: the gNBs
//! that downlink goes to, for N3; for a tunnel of downlink the UPFs that uplink goes to. [`CheckSource::Strict`] lets packets pass
//! that come from an end. [`CheckSource::Learn`] lets them pass, too, and beside them one other source: who was there first, until he
//! has been silent for [`SILENCE`], or the ends become others. A session that names no end (its UE sleeps, or is being set up)
//! is asked in vain: then `strict` lets all pass, and `learn` whom it heard first. So does a tunnel that leads back to the
//! side that it comes from (indirect forwarding, TS 23.502 §4.9.1.3): nobody says who sends there.
//!
//! **Cost.** A line for two tunnels beside their records, there and touched only while sources are checked: off, this is one branch a
//! burst. A source that is not the one that passed last is compared with the session's rules.

use crate::Reason;
use crate::config::CheckSource;
use crate::meta::Meta;
use crate::meta::inner_source;
use crate::network::near;
use crate::state::origin::{SourceOf, are_all_uplink, source_of};
use crate::state::record::coarse;
use crate::state::rules::{candidates, tunnel_of};
use crate::state::shard::{Session, Shard};
use packet::Teid;
use session::rules::{Action, Destination, Forward, Rules, Source, Tunnel};
use std::net::IpAddr;
use tables::Nanos;

/// Who was heard may be silent for so long; then another takes his place.
pub const SILENCE: u64 = 30 * Nanos::SECOND;
/// So long after the ends became others, packets of who was heard before are late ones; then he is one like all.
const LATE: u64 = Nanos::SECOND;

/// Who feeds a tunnel.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(32))]
pub(crate) struct Feeder {
    /// Whose packet passed, as [`near::key`] has it; 0: nobody's yet.
    source: u128,
    /// When the last of his packets did, or since when he is a former one. See [`coarse`].
    last: u32,
    /// The tunnel has other ends since then.
    former: bool,
}

const _: () = assert!(size_of::<Feeder>() == 32, "two to a cache line");

impl Feeder {
    const fn is_silent(&self, now: Nanos, nanos: u64) -> bool {
        coarse(now).wrapping_sub(self.last) >= (nanos >> 24) as u32
    }
}

/// A tunnel's packet, to be compared with what is known of the tunnel.
struct Arrival<'a> {
    meta: &'a Meta,
    frame: &'a [u8],
    source: u128,
}

impl<F> Shard<F> {
    /// Sources are checked in this way from now on. Who was heard under another one is forgotten.
    pub(crate) fn check_sources(&mut self, mode: CheckSource) {
        if std::mem::replace(&mut self.check_source, mode) != mode {
            self.feeders = Vec::new();
        }
    }

    /// Whether a tunnel's packet comes from the tunnel's other end, as far as that is known. Remembers from where it comes.
    pub(crate) fn hears(&mut self, now: Nanos, meta: &Meta, frame: &[u8]) -> bool {
        let Some(slot) = self.record(meta).map(|record| u32::from(record.session)) else { return true };
        let source = outer_source(frame, meta);
        if let Some(feeder) = self.feeders.get_mut(meta.slot as usize)
            && feeder.source == source
            && !feeder.former
        {
            if self.check_source == CheckSource::Learn {
                feeder.last = coarse(now);
            }
            return true;
        }
        self.hears_another(now, slot, &Arrival { meta, frame, source })
    }

    /// Somebody else than last time.
    #[cold]
    #[inline(never)]
    fn hears_another(&mut self, now: Nanos, slot: u32, arrival: &Arrival<'_>) -> bool {
        let Some(session) = self.sessions.get_mut(slot as usize).and_then(Option::as_deref_mut) else {
            return true;
        };
        let place = arrival.meta.slot as usize;
        let feeder = self.feeders.get(place).copied().unwrap_or_default();
        let (passes, stays) = judge(self.check_source, now, &session.rules, &feeder, arrival);
        if !passes {
            session.drop(Reason::ForeignFarEnd);
        } else if stays {
            if self.feeders.len() <= place {
                self.feeders.resize(place + 1, Feeder::default());
            }
            if let Some(feeder) = self.feeders.get_mut(place) {
                *feeder = Feeder { source: arrival.source, last: coarse(now), former: false };
            }
        }
        passes
    }

    /// Whether a message that is about a tunnel comes from its other end. Nothing is learned from it.
    pub(crate) fn would_hear(&self, now: Nanos, meta: &Meta, frame: &[u8]) -> bool {
        let record = self.record(meta);
        let session = record.and_then(|record| self.session(u32::from(record.session)));
        let Some(session) = session.filter(|_| self.check_source != CheckSource::Off) else { return true };
        let feeder = self.feeders.get(meta.slot as usize).copied().unwrap_or_default();
        let source = outer_source(frame, meta);
        let same = feeder.source == source && !feeder.former;
        same || judge(self.check_source, now, &session.rules, &feeder, &Arrival { meta, frame, source }).0
    }

    /// Who feeds a session's tunnels, as far as that is remembered. Those from before the last change of ends do no more.
    pub(crate) fn heard(&self, session: &Session<F>) -> Vec<(Teid, IpAddr)> {
        let feeder = |slot: &u16| {
            let feeder = self.feeders.get(*slot as usize)?;
            let source = (feeder.source != 0 && !feeder.former).then(|| near::address(feeder.source))??;
            Some((Teid(self.tunnels.get(*slot as usize)?.teid), source))
        };
        session.tunnels.iter().filter_map(feeder).collect()
    }

    /// The session in this slot gets other rules: its tunnels may have other ends from now on, or be new ones.
    pub(crate) fn switch_paths(
        &mut self,
        now: Nanos,
        slot: u32,
        rules: &Rules,
        tunnels: impl Iterator<Item = (u16, Tunnel)>,
    ) {
        // Nobody was heard yet, or nobody is listened to.
        if self.feeders.is_empty() {
            return;
        }
        let before = self.sessions.get(slot as usize).and_then(Option::as_deref);
        let before = before.map(|session| &*session.rules).filter(|before| before.seid == rules.seid);
        for (place, Tunnel { teid, .. }) in tunnels {
            let Some(feeder) = self.feeders.get_mut(place as usize) else { continue };
            let has_it = |rules: &&Rules| candidates(rules, Some(teid.0)).next().is_some();
            match before.filter(has_it) {
                None => *feeder = Feeder::default(),
                Some(before) if same_ends(before, rules, teid) => {}
                Some(_) => (feeder.last, feeder.former) = (coarse(now), true),
            }
        }
    }
}

/// Whether a packet passes that is not from whom the last was, and whether its sender is who feeds the tunnel from now on.
fn judge(
    mode: CheckSource,
    now: Nanos,
    rules: &Rules,
    feeder: &Feeder,
    arrival: &Arrival<'_>,
) -> (bool, bool) {
    let teid = Teid(arrival.meta.teid);
    let mut named = ends(rules, teid).peekable();
    let nobody_named = named.peek().is_none();
    let is_named = named.any(|end| near::key(end) == arrival.source);
    if mode != CheckSource::Learn {
        let passes = is_named || nobody_named;
        return (passes, passes);
    }
    let vacant = feeder.source == 0 || feeder.former || feeder.is_silent(now, SILENCE);
    let late = feeder.former && feeder.source == arrival.source && !feeder.is_silent(now, LATE);
    // A forger who doesn't know the UE's address leaves no trace; a link-local one, or none, tells nobody from anybody.
    let source = source_of(rules, inner_source(arrival.frame, arrival.meta));
    let forged = are_all_uplink(rules, Some(teid.0)) && matches!(source, SourceOf::Stranger | SourceOf::Link);
    (vacant || is_named, vacant && !forged && (is_named || !late))
}

/// The far ends that a tunnel's packets may come from; none: nobody says.
fn ends(rules: &Rules, teid: Teid) -> impl Iterator<Item = IpAddr> + '_ {
    let mut sides = 0u8;
    for (_, pdr) in candidates(rules, Some(teid.0)) {
        let side = side_of(pdr.source);
        sides |= side;
        let back = rules.fars.get(pdr.far as usize).map_or(0, |far| side_towards(far.action));
        if side == back {
            sides = 0;
            break;
        }
    }
    let fars = rules.fars.iter().filter(move |far| side_towards(far.action) & sides != 0);
    fars.filter_map(|far| tunnel_of(far.action).map(|(end, _)| end))
}

fn same_ends(a: &Rules, b: &Rules, teid: Teid) -> bool {
    let within = |a, b| ends(a, teid).all(|end| ends(b, teid).any(|other| other == end));
    within(a, b) && within(b, a)
}

const RADIO: u8 = 1;
const CORE: u8 = 2;
const SMF: u8 = 4;

const fn side_of(source: Source) -> u8 {
    match source {
        Source::Access => RADIO,
        Source::Core | Source::N6Lan => CORE,
        Source::CpFunction => SMF,
    }
}

/// 0: none.
const fn side_towards(action: Action) -> u8 {
    match action {
        Action::Forward(Forward { destination, .. }) => match destination {
            Destination::Access => RADIO,
            Destination::Core | Destination::N6Lan => CORE,
            Destination::CpFunction => SMF,
        },
        _ => 0,
    }
}

/// From where a packet to us comes, as [`near::key`] has it.
fn outer_source(frame: &[u8], meta: &Meta) -> u128 {
    let packet = frame.get(meta.l3 as usize..).unwrap_or_default();
    if packet.first().is_some_and(|octet| octet >> 4 == 6) {
        let octets = packet.get(8..).and_then(|rest| rest.first_chunk::<16>());
        octets.map_or(0, |octets| u128::from_be_bytes(*octets))
    } else {
        let octets = packet.get(12..).and_then(|rest| rest.first_chunk::<4>());
        near::key_v4(octets.map_or(0, |octets| u32::from_be_bytes(*octets)))
    }
}
