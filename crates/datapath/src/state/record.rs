//! What a packet of the common kind needs of its session: one cache line for each tunnel, and one for each session's downlink.

use crate::nat::Choice;
use tables::Nanos;

/// Bits of [`Record::flags`].
pub mod flag {
    /// The record is in use.
    pub const LIVE: u32 = 1 << 0;
    /// More than one rule may match, or the rule does more than a record can say: ask the session.
    pub const COMPLEX: u32 = 1 << 1;
    /// Packets come from the UE.
    pub const UPLINK: u32 = 1 << 2;
    /// The inline meter applies.
    pub const METERED: u32 = 1 << 3;
    /// Packets leave in a tunnel to `peer` with `remote_teid`.
    pub const OUTER: u32 = 1 << 4;
    /// The tunnel leads towards the radio: the container has its downlink form.
    pub const TO_ACCESS: u32 = 1 << 5;
    /// Packets leave with a PDU session container, if there is a QFI to put in.
    pub const CONTAINER: u32 = 1 << 6;
    /// `qfi` is what packets are marked with.
    pub const MARK: u32 = 1 << 7;
    /// `qfi` is what packets must carry; others are for the session to judge.
    pub const MATCH: u32 = 1 << 8;
    /// Set RQI.
    pub const REFLECTIVE: u32 = 1 << 9;
    /// Beside what is checked (source, QFI) everything is in the rule's own record, see [`super::Record::set_rule`].
    pub const DIRECT: u32 = 1 << 10;
    /// Link-local and multicast destinations have a rule of their own: ask the session.
    pub const LINK_LOCAL: u32 = 1 << 11;
    /// The UE may send from more than `ue_ipv4` and the prefix of `ue_prefix`: ask the session if these don't match.
    pub const MORE_SOURCES: u32 = 1 << 12;
    /// The rule is the only one; no address of the UE is known, so sources are not checked.
    pub const ANY_SOURCE: u32 = 1 << 13;
    /// Beside [`COMPLEX`]: packets are classified flow by flow, see [`super::Record::set_flows`].
    pub const FLOWS: u32 = 1 << 14;
    /// The meters are the shard's, see [`super::Record::set_shared_meters`].
    pub const SHARED_METERS: u32 = 1 << 15;
    /// The rule says no DSCP for the outer header: the operator's table does, by QFI.
    pub const DSCP_BY_QFI: u32 = 1 << 16;
    /// The session has mirrors, see [`crate::mirror`].
    pub const MIRRORED: u32 = 1 << 24;
}

/// A direction of a session, as far as every packet needs it.
///
/// `credit` is the device that makes exact volume thresholds and quotas cost one subtraction: see [`crate::state::account`].
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct Record {
    /// The whole TEID, with its generation; zero where the record is no tunnel's.
    pub teid: u32,
    /// See [`flag`].
    pub flags: u32,
    /// The session's slot in the shard, below [`MAX_SESSIONS`].
    pub session: u16,
    /// Index of the rule in [`session::rules::Rules::pdrs`].
    pub pdr: u16,
    /// The UE's IPv4 address; zero: none.
    pub ue_ipv4: u32,
    /// The key of the UE's IPv6 prefix (see [`session::prefixes`]); zero: none.
    pub ue_prefix: u64,
    /// Bytes that may pass before the session's books must be opened.
    pub credit: u32,
    /// What the credit was when it was granted.
    pub granted: u32,
    /// Packets since then.
    pub packets: u32,
    /// When the last of them passed, see [`coarse`].
    pub last: u32,
    /// Maximum bit rate.
    pub meter: Meter,
    /// TEID of the tunnel that packets leave in.
    pub remote_teid: u32,
    /// Index of its far end in the worker's peer table.
    pub peer: u16,
    /// See [`flag::MARK`] and [`flag::MATCH`].
    pub qfi: u8,
    /// ToS octet for the outer header.
    pub tos: u8,
}

const _: () = assert!(size_of::<Record>() == 64, "a record is one cache line");

/// Session slots of a shard, at most.
pub const MAX_SESSIONS: u32 = 1 << 16;

impl Record {
    /// Whether all of these flags are set.
    #[inline(always)]
    pub const fn has(&self, flags: u32) -> bool {
        self.flags & flags == flags
    }
}

/// Meters that a record has room for: flow, application, session. A rule with more is judged by its session.
pub const MAX_METERS: usize = 3;
/// No meter.
pub const NO_METER: u32 = u32::MAX;

impl Record {
    /// Makes this the record of packets that are classified flow by flow. Such a record has no way out of its own; these
    /// fields hold instead the version of the classification, which every flow that is in force has, and the bits of
    /// the ToS octet that a filter looks at.
    pub const fn set_flows(&mut self, version: u32, tos_mask: u8) {
        self.flags |= flag::FLOWS;
        self.remote_teid = version;
        self.tos = tos_mask;
    }

    /// See [`Record::set_flows`].
    #[inline(always)]
    pub const fn flow_version(&self) -> u32 {
        self.remote_teid
    }

    /// See [`Record::set_flows`].
    #[inline(always)]
    pub const fn tos_mask(&self) -> u8 {
        self.tos
    }

    /// Makes this the record of packets that are all the same rule's, whose own record in the shard has this number.
    pub const fn set_rule(&mut self, rule: u32) {
        self.flags |= flag::DIRECT;
        self.remote_teid = rule;
    }

    /// See [`Record::set_rule`].
    #[inline(always)]
    pub const fn rule(&self) -> u32 {
        self.remote_teid
    }

    /// Makes packets leave as they are, through interfaces that serve this choice's network instance, and translated as it says: there
    /// is no far end, and no TEID.
    pub const fn set_choice(&mut self, choice: Choice) {
        self.peer = choice.instance;
        self.remote_teid = choice.policy as u32;
    }

    /// See [`Record::set_choice`].
    #[inline(always)]
    pub const fn choice(&self) -> Choice {
        Choice { policy: self.remote_teid as u16, instance: self.peer }
    }

    /// See [`Record::set_choice`]; 0: any.
    #[inline(always)]
    pub const fn instance(&self) -> u16 {
        self.peer
    }

    /// Makes a rule's record draw on meters that it shares with other rules, by their number in the shard (see `police`),
    /// [`NO_METER`] after the last. Only packets whose
    /// flow is known come here; the source was checked when it became known, so the fields of that check are free for this.
    pub const fn set_shared_meters(&mut self, [a, b, c]: [u32; MAX_METERS]) {
        self.flags |= flag::SHARED_METERS;
        self.ue_ipv4 = a;
        self.ue_prefix = b as u64 | (c as u64) << 32;
    }

    /// See [`Record::set_shared_meters`]: those that there are.
    #[inline(always)]
    pub fn shared_meters(&self) -> impl Iterator<Item = u32> + Clone + use<> {
        let all = [self.ue_ipv4, self.ue_prefix as u32, (self.ue_prefix >> 32) as u32];
        all.into_iter().take_while(|number| *number != NO_METER)
    }
}

/// Time in units of 2^24 ns (16.8 ms), for "last packet seen": fits a record for two years of run time, and is finer
/// than the seconds that a usage report states it in.
#[inline(always)]
pub const fn coarse(now: Nanos) -> u32 {
    (now.0 >> 24) as u32
}

/// The start of the unit.
pub const fn from_coarse(coarse: u32) -> Nanos {
    Nanos((coarse as u64) << 24)
}

/// A maximum bit rate in sixteen bytes: the generic cell rate algorithm (ITU-T I.371, annex A), which is a token bucket
/// that remembers only when it will be full again.
///
/// A packet conforms if the bucket is not overdrawn; the packet may overdraw it. So packets of any size pass at any
/// rate, and over time exactly the rate passes. The bucket's depth is a time, the same for all meters of a worker
/// ([`crate::Config::meter_burst`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// When the bucket will be full again, in units of 2^-6 ns.
    full_at: u64,
    /// Time that one byte takes, in units of 2^-22 ns.
    per_byte: u64,
}

impl Meter {
    /// A full bucket for a rate in bit/s. Rates below 1 kbit/s (but zero, which passes only what the depth allows) are
    /// taken as 1 kbit/s, PFCP's unit (TS 29.244 §8.2.8).
    pub const fn new(bits_per_second: u64) -> Self {
        let rate = if bits_per_second < 1000 { 1000 } else { bits_per_second };
        let per_byte = (8_000_000_000u128 << 22) / rate as u128;
        Self { full_at: 0, per_byte: per_byte as u64 }
    }

    /// The other meter's fill level at this meter's rate: what a changed MBR keeps of the past.
    #[must_use]
    pub const fn resume(self, before: Self) -> Self {
        Self { full_at: before.full_at, per_byte: self.per_byte }
    }

    /// What is missing from the bucket, in its units of time: for whoever is to go on with it elsewhere.
    pub const fn used(&self, now: Nanos) -> u64 {
        self.full_at.saturating_sub(now.0 << 6)
    }

    /// So much is missing, as [`Self::used`] said; at most as much as a packet may overdraw a bucket of this depth by.
    pub fn use_up(&mut self, now: Nanos, used: u64, depth: u64) {
        let most = (depth << 6).saturating_add((OVERDRAFT * self.per_byte) >> 16);
        self.full_at = (now.0 << 6) + used.min(most);
    }

    /// Whether a packet may pass now. `depth` is the bucket's, in nanoseconds.
    #[inline(always)]
    pub const fn conforms(&self, now: Nanos, depth: u64) -> bool {
        self.full_at <= (now.0 + depth) << 6
    }

    /// Takes a packet's bytes out of the bucket.
    #[inline(always)]
    pub const fn take(&mut self, now: Nanos, bytes: u16) {
        let from = if self.full_at > now.0 << 6 { self.full_at } else { now.0 << 6 };
        self.full_at = from + ((bytes as u64 * self.per_byte) >> 16);
    }
}

/// Bytes by which a packet may overdraw a bucket: it may have been put together of fragments.
pub const OVERDRAFT: u64 = u16::MAX as u64;

/// The rate of a bucket of which a device may have a part; see `offload::share`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterRate {
    /// As [`Meter::new`] takes it, in bit/s.
    Whole(u64),
    /// What a device leaves of it: rounded down, so that parts never come to more than the whole. Below 1 kbit/s nothing.
    Part(u64),
}

impl MeterRate {
    /// A bucket that holds so many bytes, as far as there is room, and at least what an overdrawn one may.
    pub fn holding(self, tokens: i64, now: Nanos, depth: u64) -> Meter {
        let per_byte = match self {
            Self::Whole(rate) => Meter::new(rate).per_byte,
            Self::Part(..1000) => return Meter::CLOSED,
            Self::Part(rate) => (8_000_000_000u128 << 22).div_ceil(rate as u128) as u64,
        };
        // Half of what a bucket remembers is a fraction: shifted down, it holds less rather than more.
        let tokens = tokens.max(-OVERDRAFT.cast_signed());
        let worth = (tokens as i128 * per_byte as i128) >> 16;
        let full_at = ((now.0 as i128 + depth as i128) << 6) - worth;
        Meter { full_at: full_at.clamp(0, u64::MAX as i128) as u64, per_byte }
    }
}

impl Meter {
    /// Lets nothing pass.
    const CLOSED: Self = Self { full_at: u64::MAX, per_byte: 1 };

    /// Whole bytes that are in the bucket: how many may pass before it is overdrawn. Below zero if it is.
    pub fn tokens(&self, now: Nanos, depth: u64) -> i64 {
        let room = ((now.0 as i128 + depth as i128) << 6) - self.full_at.max(now.0 << 6) as i128;
        let bytes = (room << 16).div_euclid(self.per_byte.max(1) as i128);
        bytes.clamp(-(OVERDRAFT as i128), i64::MAX as i128) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_rate_passes_over_time() {
        for rate in [1_000u64, 64_000, 10_000_000, 1_000_000_000, 100_000_000_000] {
            let mut meter = Meter::new(rate);
            let bytes = 1500u16;
            // Offer twice the rate for a virtual time of 20,000 packets, against a bucket of 100.
            let gap = (8 * bytes as u64 * 1_000_000_000 / rate / 2).max(1);
            let depth = 200 * gap;
            let mut passed = 0u64;
            let mut now = Nanos(5_000_000_000);
            let start = now;
            for _ in 0..20_000 {
                now = now.plus(gap);
                if meter.conforms(now, depth) {
                    meter.take(now, bytes);
                    passed += bytes as u64 * 8;
                }
            }
            let allowed = rate as f64 * (now.since(start) + depth) as f64 / 1e9 + 12_000.0;
            assert!(passed as f64 <= allowed * 1.001, "{rate}: {passed} of {allowed}");
            assert!(passed as f64 >= allowed * 0.999 - 12_000.0, "{rate}: {passed} of {allowed}");
        }
    }

    #[test]
    fn an_absurd_rate_is_bounded() {
        let mut slow = Meter::new(0);
        slow.take(Nanos(0), u16::MAX);
        assert!(!slow.conforms(Nanos(0), 100_000_000));
        assert!(slow.conforms(Nanos(600 * Nanos::SECOND), 0));
        let mut fast = Meter::new(u64::MAX);
        fast.take(Nanos(0), u16::MAX);
        assert!(fast.conforms(Nanos(0), 0));
    }

    #[test]
    fn parts_of_a_bucket_hold_no_more_than_the_whole() {
        let (now, depth) = (Nanos(5_000_000_000), 100_000_000);
        for rate in [8_000_000, 33_333_333, 1_000_000_007, 400_000_000_000] {
            let mut whole = Meter::new(rate);
            let full = whole.tokens(now, depth);
            let exact = rate as i128 * depth as i128 / 8_000_000_000;
            assert!((exact - full as i128).abs() <= 1 + exact / 1_000_000, "{rate}: {full} of {exact}");
            for bytes in [1_500, 65_535, 40] {
                whole.take(now, bytes);
            }
            let tokens = whole.tokens(now, depth);
            assert!((full - 67_076..=full - 67_074).contains(&tokens), "{rate}: {tokens} of {full}");
            for part in [rate / 16, rate / 3, rate - 1] {
                let one = MeterRate::Part(part).holding(tokens / 2, now, depth);
                let other = MeterRate::Part(rate - part).holding(tokens - tokens / 2, now, depth);
                assert!(one.per_byte as u128 * part as u128 >= 8_000_000_000 << 22);
                assert!(one.tokens(now, depth) + other.tokens(now, depth) <= tokens);
                // Nor after a while.
                let later = now.plus(10_000_000);
                let sum = one.tokens(later, depth) as i128 + other.tokens(later, depth) as i128;
                assert!(sum <= tokens as i128 + rate as i128 * 10_000_000 / 8_000_000_000 + 1);
            }
        }
        assert!(!MeterRate::Part(999).holding(i64::MAX, now, depth).conforms(now.plus(Nanos::SECOND), depth));
        assert_eq!(MeterRate::Whole(0).holding(i64::MIN, now, depth).tokens(now, depth), -65_535);
    }

    #[test]
    fn a_changed_rate_keeps_the_debt() {
        let mut meter = Meter::new(1_000_000);
        for _ in 0..100 {
            meter.take(Nanos(0), 1500);
        }
        let now = Nanos(100_000_000);
        assert!(!meter.conforms(now, 0));
        assert!(!Meter::new(2_000_000).resume(meter).conforms(now, 0));
    }
}
