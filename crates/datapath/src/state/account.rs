//! A session's books: counters per PDR, volumes per URR, judged with its meters per QER, and the credit that keeps packets out of them.
//!
//! Every forwarded packet counts for its PDR and for all the URRs of that PDR, and thresholds and quotas are exact to the
//! packet. Yet the common packet touches only its [`Record`]: it takes its length from the record's *credit*. A credit is
//! granted so that, whatever the session's records do with theirs, no limit of any URR is reached while credit
//! lasts: the bytes that remain, less one, divided by those who draw on them. When a credit runs out, the books are
//! opened: all records are folded in, the packet is judged exactly, and new credits are granted. Near a limit these
//! shrink to nothing, and every packet is judged exactly.

use crate::Reason;
use crate::state::police::{self, Meters, Policers, limited_qers, meter_of};
use crate::state::record::{Record, coarse, flag, from_coarse};
use crate::state::treatment::gates_are_open;
use pfcp::{PdrId, UrrId};
use session::packed::Pack;
use session::rules::{Rules, Urr, VolumeLimit};
use session::usage::{Trigger, Usage, Volume};
use tables::{Colour, Nanos};

/// The largest credit: a record's packet and byte counts fit 32 bits, and nobody waits more than this for its books.
pub const MAX_CREDIT: u32 = 1 << 30;

/// What has been counted for a PDR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PdrState {
    /// Packets forwarded.
    pub packets: u64,
    /// Their bytes, of the UE's own packets.
    pub bytes: u64,
    /// The control side was told that packets wait for this rule.
    pub notified: bool,
}

/// What has been measured for a URR.
#[derive(Clone, Copy, Debug, Default)]
struct UrrState {
    /// Since the last report.
    volume: Volume,
    /// Since the quota was given.
    consumed: Volume,
    first_seen: Option<Nanos>,
    last_seen: Nanos,
    /// As `last_seen`, whatever was reported meanwhile.
    active: Nanos,
    exhausted: bool,
    /// The control side was told that the quota is exhausted.
    told: bool,
    started: bool,
}

impl UrrState {
    /// With a quota that nothing was taken from yet; one of 0 is exhausted.
    fn begin_quota(&mut self, quota: &VolumeLimit) {
        self.consumed = Volume::default();
        self.exhausted = reached(quota, &self.consumed);
        self.told = false;
    }

    fn add(&mut self, uplink: bool, packets: u64, bytes: u64, first: Nanos, last: Nanos) {
        for volume in [&mut self.volume, &mut self.consumed] {
            let (p, b) = if uplink {
                (&mut volume.uplink_packets, &mut volume.uplink_bytes)
            } else {
                (&mut volume.downlink_packets, &mut volume.downlink_bytes)
            };
            *p += packets;
            *b += bytes;
        }
        let first = *self.first_seen.get_or_insert(first);
        self.last_seen = last.max(self.last_seen).max(first);
        self.active = last.max(self.active);
    }

    fn report(&mut self, urr: &Urr, trigger: Trigger) -> Usage {
        let usage = Usage {
            urr: urr.id,
            trigger,
            volume: self.volume,
            packets_seen: self.first_seen.map(|first| (first, self.last_seen)),
        };
        self.volume = Volume::default();
        self.first_seen = None;
        self.last_seen = Nanos(0);
        usage
    }
}

/// Times leave the process as how long ago they were.
fn ago(time: Nanos, now: Nanos) -> Option<u64> {
    (time != Nanos(0)).then(|| now.since(time))
}

/// And come back; before the clock began is when it began.
fn back(ago: Option<u64>, now: Nanos) -> Nanos {
    ago.map_or(Nanos(0), |ago| Nanos(now.0.saturating_sub(ago).max(1)))
}

impl UrrState {
    fn pack(&self, now: Nanos, out: &mut Vec<u8>) {
        (self.volume, self.consumed).pack(out);
        self.first_seen.map(|first| now.since(first)).pack(out);
        (ago(self.last_seen, now), ago(self.active, now)).pack(out);
        ((self.exhausted, self.told), self.started).pack(out);
    }

    fn unpack(now: Nanos, from: &mut &[u8]) -> Option<Self> {
        let (volume, consumed): (Volume, Volume) = Pack::unpack(from)?;
        let first_seen = Option::<u64>::unpack(from)?.map(|ago| back(Some(ago), now));
        let (last_seen, active): (Option<u64>, Option<u64>) = Pack::unpack(from)?;
        let ((exhausted, told), started) = Pack::unpack(from)?;
        let (last_seen, active) = (back(last_seen, now), back(active, now));
        Some(Self { volume, consumed, first_seen, last_seen, active, exhausted, told, started })
    }
}

/// Bytes that may still be counted before one of the limits is reached, less one.
fn remaining(limit: &VolumeLimit, used: &Volume, uplink: bool, downlink: bool) -> u64 {
    // A limit may have been lowered below what was counted already, in whichever direction.
    if reached(limit, used) {
        return 0;
    }
    let left = |limit: Option<u64>, used: u64| limit.map_or(u64::MAX, |l| l.saturating_sub(used + 1));
    let mut least = left(limit.total, used.uplink_bytes + used.downlink_bytes);
    if uplink {
        least = least.min(left(limit.uplink, used.uplink_bytes));
    }
    if downlink {
        least = least.min(left(limit.downlink, used.downlink_bytes));
    }
    least
}

fn reached(limit: &VolumeLimit, used: &Volume) -> bool {
    let is = |limit: Option<u64>, used: u64| limit.is_some_and(|l| used >= l);
    is(limit.total, used.uplink_bytes + used.downlink_bytes)
        || is(limit.uplink, used.uplink_bytes)
        || is(limit.downlink, used.downlink_bytes)
}

/// Where a device counted packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// Where nothing limits their rate.
    Everywhere,
    /// Before their rate was limited.
    Arrived,
    /// And after that.
    Passed,
}

impl Counted {
    fn is_for(self, rule: &Urr) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Arrived => rule.before_enforcement,
            Self::Passed => !rule.before_enforcement,
        }
    }
}

/// The books of one session.
#[derive(Debug)]
pub struct Books {
    /// In the order of the rules.
    pub pdrs: Box<[PdrState]>,
    urrs: Box<[UrrState]>,
    /// What packets classified by the session itself may count before limits must be looked at.
    credit: u32,
    /// When the last packet was forwarded or judged.
    last: Nanos,
}

impl Books {
    /// Empty books.
    pub fn new(rules: &Rules) -> Self {
        Self {
            pdrs: vec![PdrState::default(); rules.pdrs.len()].into(),
            urrs: rules.urrs.iter().map(new_measurement).collect(),
            credit: 0,
            last: Nanos(0),
        }
    }

    /// Books for changed rules: whatever keeps its ID keeps its count. The old records must have been folded in. Also
    /// says the final usage of URRs that are gone.
    pub fn succeed(old: &Self, before: &Rules, after: &Rules) -> (Self, Vec<Usage>) {
        let mut books = Self::new(after);
        books.last = old.last;
        for (pdr, state) in after.pdrs.iter().zip(&mut books.pdrs) {
            if let Some(place) = before.pdrs.iter().position(|p| p.id == pdr.id)
                && let Some(known) = old.pdrs.get(place)
            {
                *state = PdrState { notified: false, ..*known };
            }
        }
        for (urr, state) in after.urrs.iter().zip(&mut books.urrs) {
            if let Ok(place) = before.urrs.binary_search_by_key(&urr.id, |u| u.id)
                && let (Some(known), Some(rule)) = (old.urrs.get(place), before.urrs.get(place))
            {
                *state = *known;
                if rule.quota_generation != urr.quota_generation {
                    state.begin_quota(&urr.quota);
                } else if rule.quota != urr.quota {
                    state.exhausted = reached(&urr.quota, &state.consumed);
                    state.told &= state.exhausted;
                }
                if !rule.start_of_traffic {
                    state.started = false;
                }
            }
        }
        let mut usage = Vec::new();
        for (rule, state) in before.urrs.iter().zip(&old.urrs) {
            if after.urrs.binary_search_by_key(&rule.id, |u| u.id).is_err() {
                usage.push(UrrState { ..*state }.report(rule, Trigger::Termination));
            }
        }
        (books, usage)
    }

    /// Writes down what was counted, so that another process can go on. The records must have been folded in.
    pub(crate) fn pack(&self, rules: &Rules, now: Nanos, out: &mut Vec<u8>) {
        ago(self.last, now).pack(out);
        (self.pdrs.len() as u64).pack(out);
        for (rule, state) in rules.pdrs.iter().zip(&self.pdrs) {
            (rule.id, ((state.packets, state.bytes), state.notified)).pack(out);
        }
        (self.urrs.len() as u64).pack(out);
        for (rule, state) in rules.urrs.iter().zip(&self.urrs) {
            rule.id.pack(out);
            state.pack(now, out);
        }
    }

    /// Goes on with what [`Self::pack`] wrote of the same session; of rules that are gone since, nothing is kept. `None`: these octets are
    /// none of it.
    pub(crate) fn unpack(rules: &Rules, now: Nanos, from: &mut &[u8]) -> Option<Self> {
        let mut books = Self::new(rules);
        books.last = back(Pack::unpack(from)?, now);
        for _ in 0..u64::unpack(from)? {
            let (id, ((packets, bytes), notified)): (PdrId, _) = Pack::unpack(from)?;
            if let Some(at) = rules.pdrs.iter().position(|pdr| pdr.id == id)
                && let Some(state) = books.pdrs.get_mut(at)
            {
                *state = PdrState { packets, bytes, notified };
            }
        }
        for _ in 0..u64::unpack(from)? {
            let (id, state) = (UrrId::unpack(from)?, UrrState::unpack(now, from)?);
            if let Ok(at) = rules.urrs.binary_search_by_key(&id, |urr| urr.id)
                && let Some(place) = books.urrs.get_mut(at)
            {
                *place = state;
            }
        }
        Some(books)
    }

    /// Reports rules (all, if none are named) and starts their measurement anew. The records must have been folded in.
    pub fn report(&mut self, rules: &Rules, urrs: &[pfcp::UrrId], trigger: Trigger) -> Vec<Usage> {
        let asked = |urr: &&Urr| urrs.is_empty() || urrs.contains(&urr.id);
        let states = rules.urrs.iter().zip(&mut self.urrs);
        states.filter(|(urr, _)| asked(urr)).map(|(urr, state)| state.report(urr, trigger)).collect()
    }

    /// When the session's last packet came, and the last packet that each rule measured; 0: none so far. Times are rounded up to the
    /// resolution of records. The records must have been folded in.
    pub fn activity(&self, rules: &Rules) -> (Nanos, Vec<(pfcp::UrrId, Nanos)>) {
        let end = |last: Nanos| if last == Nanos(0) { last } else { from_coarse(coarse(last) + 1) };
        let urrs = rules.urrs.iter().zip(&self.urrs).map(|(rule, state)| (rule.id, end(state.active)));
        (end(self.last), urrs.collect())
    }

    /// What each rule measured since its last report. The records must have been folded in.
    pub fn measured<'a>(&'a self, rules: &'a Rules) -> impl Iterator<Item = (pfcp::UrrId, Volume)> + 'a {
        rules.urrs.iter().zip(&self.urrs).map(|(rule, state)| (rule.id, state.volume))
    }

    /// What each rule took of its quota. The records must have been folded in.
    pub fn consumed<'a>(&'a self, rules: &'a Rules) -> impl Iterator<Item = (pfcp::UrrId, Volume)> + 'a {
        rules.urrs.iter().zip(&self.urrs).map(|(rule, state)| (rule.id, state.consumed))
    }

    /// Enters what a record counted by itself, and copies its meter back to the session's `meters`.
    pub fn fold(&mut self, rules: &Rules, meters: &mut [Meters], record: &mut Record) {
        let uplink = record.has(flag::UPLINK);
        let Some(pdr) = rules.pdrs.get(record.pdr as usize) else { return };
        if record.has(flag::METERED)
            && let Some(qer) = limited_qers(rules, record.pdr, uplink).next()
            && let Some([up, down]) = meters.get_mut(qer as usize)
        {
            *(if uplink { up } else { down }) = record.meter;
        }
        let bytes = record.granted.wrapping_sub(record.credit) as u64;
        let packets = record.packets as u64;
        record.granted = record.credit;
        record.packets = 0;
        if packets == 0 {
            return;
        }
        let last = from_coarse(record.last);
        self.last = self.last.max(last);
        if let Some(state) = self.pdrs.get_mut(record.pdr as usize) {
            state.packets += packets;
            state.bytes += bytes;
        }
        for urr in &pdr.urrs {
            if let (Some(rule), Some(state)) =
                (rules.urrs.get(*urr as usize), self.urrs.get_mut(*urr as usize))
                && !rule.inactive
            {
                // A URR without a packet yet grants no credit, so `first` was entered before.
                state.add(uplink, packets, bytes, last, last);
            }
        }
    }

    /// Whether a packet that the session classified itself can be judged without opening the books.
    #[inline]
    pub const fn covers(&self, bytes: u16) -> bool {
        self.credit >= bytes as u32
    }

    /// Gates, quotas and meters for one packet, and its entry where it passes (or is measured before enforcement).
    /// `exact`: the records have been folded in, and limits are looked at; the caller grants anew afterwards.
    /// Otherwise the books' credit must cover the packet.
    #[expect(
        clippy::too_many_arguments,
        reason = "the packet, the rule and the circumstances are plain values"
    )]
    pub fn enforce(
        &mut self,
        rules: &Rules,
        policers: &mut Policers<'_>,
        pdr_index: u16,
        bytes: u16,
        now: Nanos,
        exact: bool,
        reports: &mut Vec<Usage>,
    ) -> Result<Colour, Reason> {
        let Some(pdr) = rules.pdrs.get(pdr_index as usize) else { return Err(Reason::NoRule) };
        let uplink = pdr.source.is_uplink();
        let mut verdict = Ok(Colour::Green);
        self.last = now;
        for urr in &pdr.urrs {
            if let (Some(rule), Some(state)) =
                (rules.urrs.get(*urr as usize), self.urrs.get_mut(*urr as usize))
                && (rule.blocked || state.exhausted)
            {
                // A quota that was given exhausted is news when the first packet wants some of it.
                if state.exhausted && !state.told {
                    state.told = true;
                    reports.push(state.report(rule, Trigger::VolumeQuota));
                }
                return Err(Reason::QuotaExhausted);
            }
        }
        if !gates_are_open(rules, pdr) {
            verdict = Err(Reason::GateClosed);
        }
        if verdict.is_ok() {
            let numbers = police::numbers(rules, pdr_index, uplink, 0, 0);
            verdict = policers.police(numbers, bytes, now).ok_or(Reason::RateExceeded);
        }
        if verdict.is_ok()
            && let Some(state) = self.pdrs.get_mut(pdr_index as usize)
        {
            state.packets += 1;
            state.bytes += bytes as u64;
        }
        for urr in &pdr.urrs {
            if let (Some(rule), Some(state)) =
                (rules.urrs.get(*urr as usize), self.urrs.get_mut(*urr as usize))
                && !rule.inactive
                && (verdict.is_ok() || rule.before_enforcement)
            {
                state.add(uplink, 1, bytes as u64, now, from_coarse(coarse(now)));
                if exact {
                    judge(rule, state, reports);
                }
            }
        }
        if !exact {
            self.credit = self.credit.saturating_sub(bytes as u32);
        }
        verdict
    }

    /// Enters packets of a rule that a device has counted between two moments, and raises what their volume calls for. The records
    /// must have been folded in; grant anew afterwards.
    pub fn settle(
        &mut self,
        rules: &Rules,
        pdr: u16,
        counted: Counted,
        (packets, bytes): (u64, u64),
        (since, now): (Nanos, Nanos),
        reports: &mut Vec<Usage>,
    ) {
        let Some((pdr, state)) = rules.pdrs.get(pdr as usize).zip(self.pdrs.get_mut(pdr as usize)) else {
            return;
        };
        if counted != Counted::Arrived {
            state.packets += packets;
            state.bytes += bytes;
        }
        self.last = self.last.max(now);
        for urr in &pdr.urrs {
            if let (Some(rule), Some(state)) =
                (rules.urrs.get(*urr as usize), self.urrs.get_mut(*urr as usize))
                && !rule.inactive
                && counted.is_for(rule)
            {
                state.add(pdr.source.is_uplink(), packets, bytes, since, now);
                judge(rule, state, reports);
            }
        }
    }

    /// Bytes that a rule's packets may count before one of the limits of its URRs is reached, if nobody else draws on
    /// them. Zero if a packet is to be judged for another reason.
    pub fn unclaimed(&self, rules: &Rules, pdr: u16) -> u64 {
        let Some(pdr) = rules.pdrs.get(pdr as usize) else { return 0 };
        let uplink = pdr.source.is_uplink();
        let left = pdr.urrs.iter().map(|urr| {
            let (Some(rule), Some(state)) = (rules.urrs.get(*urr as usize), self.urrs.get(*urr as usize))
            else {
                return 0;
            };
            if rule.blocked || state.exhausted || (rule.start_of_traffic && !state.started) {
                return 0;
            }
            if rule.inactive {
                return u64::MAX;
            }
            let threshold = remaining(&rule.threshold, &state.volume, uplink, !uplink);
            threshold.min(remaining(&rule.quota, &state.consumed, uplink, !uplink))
        });
        left.min().unwrap_or(u64::MAX)
    }

    /// Grants credit to the books and to these records, which have been folded in.
    pub fn grant<'r>(&mut self, rules: &Rules, shares: u32, records: impl Iterator<Item = &'r mut Record>) {
        let shares = shares.max(1) as u64;
        let least = |urr: &u16, uplink: bool, downlink: bool| -> u64 {
            let (Some(rule), Some(state)) = (rules.urrs.get(*urr as usize), self.urrs.get(*urr as usize))
            else {
                return u64::MAX;
            };
            if rule.blocked || state.exhausted {
                return 0;
            }
            if rule.inactive {
                return u64::MAX;
            }
            // The first packet is entered exactly, for its time and for the start of traffic.
            if state.first_seen.is_none() || (rule.start_of_traffic && !state.started) {
                return 0;
            }
            remaining(&rule.threshold, &state.volume, uplink, downlink).min(remaining(
                &rule.quota,
                &state.consumed,
                uplink,
                downlink,
            ))
        };
        for record in records {
            let credit = match rules.pdrs.get(record.pdr as usize) {
                Some(pdr) if !record.has(flag::COMPLEX) => {
                    let uplink = pdr.source.is_uplink();
                    let bytes = pdr.urrs.iter().map(|u| least(u, uplink, !uplink)).min().unwrap_or(u64::MAX);
                    (bytes / shares).min(MAX_CREDIT as u64) as u32
                }
                _ => 0,
            };
            record.credit = credit;
            record.granted = credit;
        }
        let all = (0..rules.urrs.len() as u16).map(|u| least(&u, true, true)).min().unwrap_or(u64::MAX);
        self.credit = (all / shares).min(MAX_CREDIT as u64) as u32;
    }
}

/// Raises what a URR's new volume calls for.
fn judge(rule: &Urr, state: &mut UrrState, reports: &mut Vec<Usage>) {
    if rule.start_of_traffic && !state.started {
        state.started = true;
        reports.push(Usage {
            urr: rule.id,
            trigger: Trigger::StartOfTraffic,
            // The packet itself is reported with the next volume, once.
            volume: Volume::default(),
            packets_seen: state.first_seen.map(|first| (first, state.last_seen)),
        });
    }
    if !state.exhausted && reached(&rule.quota, &state.consumed) {
        state.exhausted = true;
        state.told = true;
        reports.push(state.report(rule, Trigger::VolumeQuota));
    } else if reached(&rule.threshold, &state.volume) {
        reports.push(state.report(rule, Trigger::VolumeThreshold));
    }
}

fn new_measurement(rule: &Urr) -> UrrState {
    let mut state = UrrState::default();
    state.begin_quota(&rule.quota);
    state
}

/// Copies the meters that records keep for themselves back to them after the books were opened.
pub fn unfold(rules: &Rules, meters: &[Meters], record: &mut Record) {
    let uplink = record.has(flag::UPLINK);
    if record.has(flag::METERED)
        && let Some(qer) = limited_qers(rules, record.pdr, uplink).next()
    {
        record.meter = meter_of(meters, qer, uplink);
    }
}
