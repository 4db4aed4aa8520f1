//! Of a rate that is limited, how much may a device let pass?
//!
//! **Problem.** A session's AMBR, or the MBR of any QER, holds for all its packets together, whoever forwards them: some flows in a
//! device's meter, the rest in the worker's. Neither sees the other's packets.
//!
//! **Model.** The bucket is split. A [`Share`] of its rate, and of its size in proportion, is a meter in the device, which all the
//! QER's rules there draw on; the worker's own bucket is smaller by that. Both fill at rates that add up to the limit and hold at most
//! what the limit's bucket holds, so what they let pass together is what that bucket would have let pass, at any moment, whatever the
//! worker knows of the device's packets, and however late.
//!
//! A device's meter begins full (RFC 2697 §3), and what it holds then must not come from nowhere: the share is taken out of the
//! worker's bucket first, and *saved* until there is enough. Two differences between the two kinds of bucket are paid for, too: the
//! worker's may be overdrawn by one packet, so the device's is smaller by the longest one ([`OVERDRAFT`]); and rates and
//! sizes are rounded down. What a device's meter holds when it is taken back is lost; at most its share of the burst, which comes anew.
//!
//! **Who gets how much.** At first a device gets twice what the flow needs that goes down, at most three quarters. Then each share follows
//! what the two sides use, as far as the counters tell: what neither uses is divided evenly, and where both want more than there is, the
//! worker's part grows as long as it is empty. The worker keeps a sixty-fourth at least. A share that grows is first taken from the
//! one side and then given to the other.
//!
//! **Failure.** A device that has failed may let its share pass still. It is withheld from the worker until the device has forgotten
//! everything, also if the SMF changes the limit meanwhile; a limit lowered to less than the device has can't be kept then.

use super::{Offload, Plan};
use crate::Reason;
use crate::datapath::Datapath;
use crate::outbox::Outbox;
use crate::state::police;
use crate::state::record::{MeterRate, OVERDRAFT};
use io::Frame;
use io::offload::{Counts, Feature, MeterId, Refused};
use pfcp::{QerId, Seid};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use tables::{MeterConfig, Nanos};

/// A rate that is limited: a QER's, in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limit {
    pub shard: u16,
    /// Slot of the session.
    pub session: u32,
    pub seid: Seid,
    pub qer: QerId,
    pub uplink: bool,
}

/// What part of a limit a device may let pass.
#[derive(Debug)]
struct Share {
    limit: Limit,
    port: u16,
    state: State,
    /// Bit/s.
    rate: u64,
    /// Rules that draw on it.
    users: u32,
    /// As long as there are none: since when.
    unused: Option<Nanos>,
    /// The device doesn't change meters.
    fixed: bool,
    /// When it was looked at last, and the limit's whole rate and what the worker's bucket held then.
    revised: Nanos,
    whole: u64,
    tokens: i64,
    /// Bytes that rules have counted since then.
    passed: u64,
    /// As read last.
    dropped: Counts,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Taken from the worker, not yet enough for a meter: so many bytes, and what the rate brings since then.
    Saving(u64, Nanos),
    /// The device has a meter for it.
    InForce(MeterId),
    /// The device has failed, and may have the meter still.
    Withheld,
}

/// A session: shard and slot.
type Place = (u16, u32);

/// One worker's shares in devices.
#[derive(Debug, Default)]
pub(super) struct Shares {
    by_session: HashMap<Place, Vec<Share>>,
    /// Whose turn it is to be looked at.
    turns: VecDeque<Place>,
    /// A session of which shares are withheld, and that an order is about to change.
    changed: Option<Place>,
}

/// What is said to a flow that draws on limits.
pub(super) enum Meters {
    /// These, in the order of the plan's limits.
    Ready(Vec<MeterId>),
    /// Not enough is saved yet.
    Later,
    /// A limit is too low for being shared.
    Stays,
    /// By the device.
    Refused(Refused),
}

/// Shares change by one of these parts of what there is, or more.
const PARTS: u64 = 16;
/// The worker keeps one of these at least.
const LEAST_OWN: u64 = 64;
/// A device gets no more of them at first.
const FIRST: u64 = 12;
/// The size of a device's meter, at least: it must hold the longest frame.
const LEAST_SIZE: u64 = 16_384;
/// Bytes that roundings may take from what is saved.
const CRUMBS: u64 = 16;

/// Bytes that a rate brings.
fn bytes_in(rate: u64, nanos: u64) -> u64 {
    let bytes = u128::from(rate) * u128::from(nanos) / (8 * u128::from(Nanos::SECOND));
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Bit/s.
fn rate_of(bytes: u64, nanos: u64) -> u64 {
    let rate = u128::from(bytes) * 8 * u128::from(Nanos::SECOND) / u128::from(nanos.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// Whether a device's meter for this rate holds enough.
fn suffices(rate: u64, depth: u64) -> bool {
    bytes_in(rate, depth) >= OVERDRAFT + LEAST_SIZE + CRUMBS
}

/// Whether a rate is high enough for a device to get a share of it.
pub(crate) fn can_be_shared(rate: u64, depth: u64) -> bool {
    suffices(part_of(rate, FIRST), depth)
}

fn part_of(rate: u64, parts: u64) -> u64 {
    (u128::from(rate) * u128::from(parts) / u128::from(PARTS)) as u64
}

impl Shares {
    /// A session's shares.
    fn of(&self, place: Place) -> &[Share] {
        self.by_session.get(&place).map_or(&[], Vec::as_slice)
    }

    fn at(&mut self, place: Place, at: usize) -> Option<&mut Share> {
        self.by_session.get_mut(&place)?.get_mut(at)
    }

    /// A device's share of a limit.
    fn of_limit(&mut self, limit: &Limit, port: u16) -> Option<&mut Share> {
        let shares = self.by_session.get_mut(&(limit.shard, limit.session))?;
        shares.iter_mut().find(|share| share.limit == *limit && share.port == port)
    }

    fn find(&self, limit: &Limit, port: u16) -> Option<usize> {
        let shares = self.of((limit.shard, limit.session));
        shares.iter().position(|share| share.limit == *limit && share.port == port)
    }

    /// What devices have of a limit, in bit/s.
    fn lent(&self, limit: &Limit) -> u64 {
        let shares = self.of((limit.shard, limit.session)).iter();
        shares.filter(|share| share.limit == *limit).fold(0, |sum, share| sum.saturating_add(share.rate))
    }

    fn add(&mut self, share: Share) {
        let place = (share.limit.shard, share.limit.session);
        match self.by_session.entry(place) {
            Entry::Occupied(mut shares) => shares.get_mut().push(share),
            Entry::Vacant(shares) => {
                shares.insert(vec![share]);
                self.turns.push_back(place);
            }
        }
    }

    /// A session without shares goes when its turn comes.
    fn remove(&mut self, place: Place, at: usize) -> Option<Share> {
        let shares = self.by_session.get_mut(&place)?;
        (at < shares.len()).then(|| shares.swap_remove(at))
    }

    /// One more rule draws on these limits (or, `leaves`, one less).
    pub fn used(&mut self, limits: &[Limit], port: u16, leaves: bool) {
        for limit in limits {
            if let Some(share) = self.of_limit(limit, port) {
                share.users = if leaves { share.users.saturating_sub(1) } else { share.users + 1 };
                share.unused = None;
            }
        }
    }

    /// A rule that draws on these limits has let so many bytes pass.
    pub fn passed(&mut self, limits: &[Limit], port: u16, bytes: u64) {
        for limit in limits {
            if let Some(share) = self.of_limit(limit, port) {
                share.passed += bytes;
            }
        }
    }

    /// A device has failed.
    pub fn withhold(&mut self, port: u16) {
        for share in self.by_session.values_mut().flatten().filter(|share| share.port == port) {
            if matches!(share.state, State::InForce(_)) {
                share.state = State::Withheld;
            }
        }
    }

    /// Whether an order was about to change a session with shares.
    #[inline]
    pub const fn has_changed(&self) -> bool {
        self.changed.is_some()
    }

    /// Sessions with shares, of one shard or of all.
    fn places(&self, shard: Option<u16>) -> Vec<Place> {
        let places = self.by_session.keys().copied();
        places.filter(|place| shard.is_none_or(|shard| place.0 == shard)).collect()
    }
}

impl Offload {
    /// The meters in a device that a plan's packets have to pass; `bytes`: how much they need a second.
    pub(super) fn meters_of<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        port: u16,
        plan: &Plan,
        bytes: u64,
    ) -> Meters {
        let can = self.devices.get(port as usize).is_some_and(|device| device.meters);
        if !plan.limits.is_empty() && !can {
            return Meters::Refused(Refused::Unsupported(Feature::Meter));
        }
        let mut meters = Vec::with_capacity(plan.limits.len());
        for limit in &plan.limits {
            let place = (limit.shard, limit.session);
            let at = match self.shares.find(limit, port) {
                Some(at) => at,
                None if self.lend(now, datapath, *limit, port, bytes) => self.shares.of(place).len() - 1,
                None => return Meters::Stays,
            };
            if let Err(refused) = self.promote(now, datapath, place, at) {
                return Meters::Refused(refused);
            }
            if let Some(Share { state: State::InForce(meter), .. }) = self.shares.at(place, at) {
                meters.push(*meter);
            }
        }
        if meters.len() < plan.limits.len() { Meters::Later } else { Meters::Ready(meters) }
    }

    /// Takes a device's share out of the worker's bucket. False: there is too little of it.
    fn lend<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        limit: Limit,
        port: u16,
        bytes: u64,
    ) -> bool {
        let depth = datapath.config.meter_burst;
        let Some((whole, tokens)) = datapath.limit(&limit, now) else { return false };
        let left = whole.saturating_sub(self.shares.lent(&limit));
        let most = part_of(left, FIRST);
        let rate = rate_of(bytes, Nanos::SECOND).saturating_mul(2).min(most);
        let rate = if suffices(rate, depth) { rate } else { most };
        if !suffices(rate, depth) {
            return false;
        }
        let kept = tokens.min(bytes_in(left - rate, depth).cast_signed());
        let saved = tokens.abs_diff(kept);
        datapath.set_limit(&limit, MeterRate::Part(left - rate), kept, now);
        self.shares.add(Share {
            limit,
            port,
            state: State::Saving(saved, now),
            rate,
            users: 0,
            unused: None,
            fixed: false,
            revised: now,
            whole,
            tokens: kept,
            passed: 0,
            dropped: Counts::default(),
        });
        true
    }

    /// Makes a meter of what has been saved, if that is enough. An error is the device's, and the share has gone back.
    fn promote<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        place: Place,
        at: usize,
    ) -> Result<(), Refused> {
        let depth = datapath.config.meter_burst;
        let Some(share) = self.shares.at(place, at) else { return Ok(()) };
        let State::Saving(..) = share.state else { return Ok(()) };
        let (rate, limit, saved) = (share.rate, share.limit, share.saved(now, depth));
        if saved + CRUMBS < bytes_in(rate, depth) {
            return Ok(());
        }
        let burst_bytes = u32::try_from(saved.saturating_sub(OVERDRAFT)).unwrap_or(u32::MAX);
        let config = MeterConfig { rate_bps: rate, burst_bytes };
        let device = self.devices.get_mut(share.port as usize).filter(|device| !device.failed);
        match device.map(|device| device.offload.add_meter(now, config)) {
            Some(Ok(meter)) => {
                let (_, tokens) = datapath.limit(&limit, now).unwrap_or_default();
                (share.state, share.revised, share.tokens) = (State::InForce(meter), now, tokens);
                Ok(())
            }
            Some(Err(refused)) => {
                self.give_back(now, datapath, place, at);
                Err(refused)
            }
            None => Ok(()),
        }
    }

    /// Gives the worker's bucket back what of a share is known not to be used.
    fn give_back<F: Frame>(&mut self, now: Nanos, datapath: &mut Datapath<F>, place: Place, at: usize) {
        let Some(share) = self.shares.remove(place, at) else { return };
        let depth = datapath.config.meter_burst;
        let unused = match share.state {
            State::Saving(..) => share.saved(now, depth),
            State::InForce(_) | State::Withheld => OVERDRAFT,
        };
        self.settle(now, datapath, &share.limit, unused.cast_signed());
    }

    /// Makes the worker's bucket what devices leave of a limit, with so many bytes more in it.
    fn settle<F: Frame>(&self, now: Nanos, datapath: &mut Datapath<F>, limit: &Limit, more: i64) {
        let Some((whole, tokens)) = datapath.limit(limit, now) else { return };
        let rate = match self.shares.lent(limit) {
            0 => MeterRate::Whole(whole),
            lent => MeterRate::Part(whole.saturating_sub(lent)),
        };
        datapath.set_limit(limit, rate, tokens.saturating_add(more), now);
    }

    /// Takes a share back from its device. No rule draws on it any more.
    fn release<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        place: Place,
        at: usize,
        out: &mut Outbox<F>,
    ) {
        let Some(share) = self.shares.at(place, at) else { return };
        let port = share.port;
        if let State::InForce(meter) = share.state
            && let Some(device) = self.devices.get_mut(port as usize)
        {
            match device.offload.remove_meter(meter) {
                Ok(dropped) => self.enter_dropped(datapath, place, at, dropped),
                Err(failure) => return self.fail(now, datapath, port, &failure, out),
            };
        }
        self.give_back(now, datapath, place, at);
    }

    /// Takes a session's shares back, whose rules are gone. What is withheld stays so.
    pub(super) fn release_session<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        place: Place,
        out: &mut Outbox<F>,
    ) {
        let mut at = 0;
        while let Some(share) = self.shares.of(place).get(at) {
            if matches!(share.state, State::Withheld) {
                at += 1;
            } else {
                // It is gone afterwards, or withheld.
                self.release(now, datapath, place, at, out);
            }
        }
    }

    /// Takes all shares back, of a shard or of all, whose rules are gone. What a device that has failed may have still isn't
    /// withheld any longer: nobody here would know when to end it.
    pub(super) fn release_all<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        shard: Option<u16>,
        out: &mut Outbox<F>,
    ) {
        for place in self.shares.places(shard) {
            self.release_session(now, datapath, place, out);
            while !self.shares.of(place).is_empty() {
                self.give_back(now, datapath, place, 0);
            }
        }
    }

    /// A device has forgotten everything: what was withheld because of it goes back.
    pub(super) fn forgotten<F: Frame>(&mut self, now: Nanos, datapath: &mut Datapath<F>, port: u16) {
        for place in self.shares.places(None) {
            let withheld = |share: &Share| share.port == port && matches!(share.state, State::Withheld);
            while let Some(at) = self.shares.of(place).iter().position(withheld) {
                self.give_back(now, datapath, place, at);
            }
        }
    }

    /// An order is about to change a session: what is withheld of its limits is remembered.
    pub(super) fn will_change<F: Frame>(&mut self, now: Nanos, datapath: &mut Datapath<F>, place: Place) {
        for at in 0..self.shares.of(place).len() {
            if let Some(share) = self.shares.at(place, at)
                && let Some((whole, tokens)) = datapath.limit(&share.limit, now)
            {
                (share.whole, share.tokens) = (whole, tokens);
                self.shares.changed = Some(place);
            }
        }
    }

    /// An order has changed a session: what is withheld of its limits is withheld of the new ones.
    #[cold]
    pub(super) fn withhold_again<F: Frame>(&mut self, now: Nanos, datapath: &mut Datapath<F>) {
        let Some(place) = self.shares.changed.take() else { return };
        let mut at = 0;
        while let Some(share) = self.shares.of(place).get(at) {
            let (limit, before, held) = (share.limit, share.whole, share.tokens);
            let Some((whole, _)) = datapath.limit(&limit, now) else {
                // There is no such limit any more.
                self.shares.remove(place, at);
                continue;
            };
            // A bucket changes its size with its rate, and what is in it in proportion: the worker's part of it, too.
            let held = i128::from(held) * i128::from(whole) / i128::from(before.max(1));
            let rate = MeterRate::Part(whole.saturating_sub(self.shares.lent(&limit)));
            // What is too much to be said is lacking: a bucket never holds that much.
            datapath.set_limit(&limit, rate, i64::try_from(held).unwrap_or(i64::MIN), now);
            at += 1;
        }
    }

    /// Enters what a meter has dropped since it was asked last.
    fn enter_dropped<F: Frame>(
        &mut self,
        datapath: &mut Datapath<F>,
        place: Place,
        at: usize,
        dropped: Counts,
    ) -> u64 {
        let Some(share) = self.shares.at(place, at) else { return 0 };
        let before = std::mem::replace(&mut share.dropped, dropped);
        let packets = dropped.packets.saturating_sub(before.packets);
        self.counters.dropped += packets;
        if packets > 0 {
            datapath.enter_dropped(&share.limit, packets);
        }
        dropped.bytes.saturating_sub(before.bytes)
    }

    /// Reads what a meter has dropped: bytes since the last time. `None`: the device has failed.
    fn read_dropped<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        place: Place,
        at: usize,
        out: &mut Outbox<F>,
    ) -> Option<u64> {
        let share = self.shares.at(place, at)?;
        let State::InForce(meter) = share.state else { return None };
        let port = share.port;
        match self.devices.get_mut(port as usize)?.offload.dropped(meter) {
            Ok(dropped) => Some(self.enter_dropped(datapath, place, at, dropped)),
            Err(failure) => {
                self.fail(now, datapath, port, &failure, out);
                None
            }
        }
    }

    /// Reads what a session's meters have dropped.
    pub(super) fn read_drops<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        place: Place,
        out: &mut Outbox<F>,
    ) {
        for at in 0..self.shares.of(place).len() {
            self.read_dropped(now, datapath, place, at, out);
        }
    }

    /// Looks at shares whose turn it is.
    pub(super) fn revise_some<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        out: &mut Outbox<F>,
    ) {
        for _ in 0..(self.policy.reads as usize).min(self.shares.turns.len()) {
            let Some(place) = self.shares.turns.pop_front() else { break };
            if self.shares.of(place).is_empty() {
                self.shares.by_session.remove(&place);
                continue;
            }
            self.shares.turns.push_back(place);
            // One that goes makes way for another one, which comes next time.
            for at in 0..self.shares.of(place).len() {
                self.revise(now, datapath, place, at, out);
            }
        }
    }

    fn revise<F: Frame>(
        &mut self,
        now: Nanos,
        datapath: &mut Datapath<F>,
        place: Place,
        at: usize,
        out: &mut Outbox<F>,
    ) {
        let grace = 4 * self.policy.window;
        let Some(share) = self.shares.at(place, at) else { return };
        let meter = match share.state {
            State::Withheld => return,
            State::Saving(..) => {
                let port = share.port;
                if self.devices.get(port as usize).is_none_or(|device| device.failed) {
                    self.give_back(now, datapath, place, at);
                } else if let Err(refused) = self.promote(now, datapath, place, at) {
                    self.counters.refused.add(refused.why(), 1);
                }
                return;
            }
            State::InForce(meter) => meter,
        };
        if share.users == 0 {
            // A flow that waited for it comes again soon.
            if now.since(*share.unused.get_or_insert(now)) >= grace {
                self.release(now, datapath, place, at, out);
            }
            return;
        }
        let elapsed = now.since(share.revised);
        if elapsed < self.policy.read_interval {
            return;
        }
        let (limit, rate, before, fixed) = (share.limit, share.rate, share.tokens, share.fixed);
        let passed = std::mem::take(&mut share.passed);
        share.revised = now;
        let Some(dropped) = self.read_dropped(now, datapath, place, at, out) else { return };
        let Some((whole, tokens)) = datapath.limit(&limit, now) else { return };
        let own = whole.saturating_sub(self.shares.lent(&limit));
        let depth = datapath.config.meter_burst;
        let pot = own.saturating_add(rate);
        // What went into the worker's bucket and isn't there any more was used; at its limit, more is wanted.
        let went = bytes_in(own, elapsed).cast_signed().saturating_add(before);
        let mut wanted_here = rate_of(u64::try_from(went - tokens).unwrap_or(0), elapsed);
        if tokens < bytes_in(own, depth / 8).cast_signed() {
            wanted_here = own.saturating_mul(2).max(pot / 8);
        }
        let wanted_there = rate_of(passed.saturating_add(dropped), elapsed).min(pot);
        let wanted = wanted_here.saturating_add(wanted_there);
        let next = if wanted <= pot {
            wanted_there + (pot - wanted) / 2
        } else {
            (u128::from(pot) * u128::from(wanted_there) / u128::from(wanted)) as u64
        };
        let next = next.min(pot - pot / LEAST_OWN);
        let worth_it = next.abs_diff(rate) >= part_of(pot, 1) && suffices(next, depth) && !fixed;
        let mut kept = tokens;
        if worth_it {
            let size = u32::try_from(bytes_in(next, depth) - OVERDRAFT).unwrap_or(u32::MAX);
            let config = MeterConfig { rate_bps: next, burst_bytes: size };
            let port = self.shares.at(place, at).map_or(0, |share| share.port);
            if next > rate {
                // The worker's bucket is smaller from now on, before the device's is larger.
                kept = tokens.min(bytes_in(pot - next, depth).cast_signed());
                datapath.set_limit(&limit, MeterRate::Part(pot - next), kept, now);
            }
            let answer = self
                .devices
                .get_mut(port as usize)
                .map(|device| device.offload.set_meter(now, meter, config));
            let taken = matches!(answer, Some(Ok(())));
            if let Some(share) = self.shares.at(place, at) {
                share.fixed = !taken;
                share.rate = if taken { next } else { rate };
            }
            self.settle(now, datapath, &limit, 0);
        }
        if let Some(share) = self.shares.at(place, at) {
            share.tokens = kept;
        }
    }
}

impl Share {
    /// Bytes that have been saved; no more than the share of the bucket's size.
    fn saved(&self, now: Nanos, depth: u64) -> u64 {
        let State::Saving(bytes, since) = self.state else { return 0 };
        bytes.saturating_add(bytes_in(self.rate, now.since(since))).min(bytes_in(self.rate, depth))
    }
}

impl<F: Frame> Datapath<F> {
    /// A limit's rate, in bit/s, and how many bytes the worker's bucket for it holds. `None`: there is no such limit (any more).
    fn limit(&mut self, limit: &Limit, now: Nanos) -> Option<(u64, i64)> {
        let depth = self.config.meter_burst;
        let shard = self.shards.get_mut(limit.shard as usize)?.as_deref_mut()?;
        shard.fold(limit.session);
        let session = shard.session(limit.session).filter(|session| session.rules.seid == limit.seid)?;
        let qer = session.rules.qers.binary_search_by_key(&limit.qer, |qer| qer.id).ok()?;
        let rate = police::plain_maximum(session.rules.qers.get(qer)?, limit.uplink)?;
        let meter = police::meter_of(shard.meters.get(session.meters), qer as u16, limit.uplink);
        Some((rate, meter.tokens(now, depth)))
    }

    /// Makes the worker's bucket for a limit one of this rate, that holds so many bytes.
    fn set_limit(&mut self, limit: &Limit, rate: MeterRate, tokens: i64, now: Nanos) {
        let depth = self.config.meter_burst;
        let Some(Some(shard)) = self.shards.get_mut(limit.shard as usize) else { return };
        let Some(session) = shard.session(limit.session) else { return };
        let Ok(qer) = session.rules.qers.binary_search_by_key(&limit.qer, |qer| qer.id) else { return };
        if let Some([up, down]) = shard.meters.get_mut(session.meters).get_mut(qer) {
            *(if limit.uplink { up } else { down }) = rate.holding(tokens, now, depth);
        }
        shard.grant(limit.session);
    }

    /// Enters packets of a session that a device's meter has dropped.
    fn enter_dropped(&mut self, limit: &Limit, packets: u64) {
        let Some(Some(shard)) = self.shards.get_mut(limit.shard as usize) else { return };
        let session = shard.session_mut(limit.session).filter(|session| session.rules.seid == limit.seid);
        if let Some(session) = session {
            session.drop_many(Reason::RateExceeded, packets);
        }
    }
}
