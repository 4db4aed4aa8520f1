//! How large packets are, and which session sends next.
//!
//! Sizes are lengths of the UE's own IP packet, because that is what a subscriber sends and what a UPF charges for;
//! the Ethernet frame is 14 bytes longer, the frame on N3 another 44 (outer IPv4, UDP, GTP-U, PDU session container).

use crate::payload;
use crate::rng::SplitMix64;
use std::fmt;
use std::str::FromStr;

/// Bytes of IPv4 and UDP headers in front of the payload.
pub const V4_OVERHEAD: u16 = 28;
/// Bytes of IPv6 and UDP headers in front of the payload.
pub const V6_OVERHEAD: u16 = 48;

/// The IP versions of a UE's traffic.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// IPv4 inside.
    V4,
    /// IPv6 inside.
    V6,
}

impl Family {
    /// Bytes of the IP and UDP headers that the generator writes.
    pub const fn overhead(self) -> u16 {
        match self {
            Self::V4 => V4_OVERHEAD,
            Self::V6 => V6_OVERHEAD,
        }
    }

    /// The shortest IP packet that has room for the payload's own header.
    pub const fn min_ip_len(self) -> u16 {
        self.overhead() + payload::HEADER_LEN as u16
    }
}

/// A distribution of packet sizes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SizeProfile {
    /// Every packet carries this many bytes of UDP payload.
    Payload(u16),
    /// IP packets of given lengths with given weights.
    Mix(Vec<(u16, u32)>),
}

/// The name that was given is no profile.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{0}` is no traffic profile: use `imix`, `ran`, a payload size such as `64`, or weighted lengths such as `64:7,576:4,1500:1`"
)]
pub struct UnknownProfile(pub String);

impl SizeProfile {
    /// The classic "simple IMIX", 7:4:1 of Ethernet frames of 64, 594 and 1,518 bytes: IP packets of 46, 576 and 1,500
    /// bytes. The first is raised to what the stamp in the payload needs (48 in IPv4, 68 in IPv6).
    pub fn simple_imix() -> Self {
        Self::Mix(vec![(46, 7), (576, 4), (1500, 1)])
    }

    /// 243, 486 and 1,458 bytes at 40, 20 and 40 %: the mix used to study packet tasks of a base station.
    pub fn ran_mix() -> Self {
        Self::Mix(vec![(243, 2), (486, 1), (1458, 2)])
    }

    /// The same profile with every IP packet longer than `max_ip_len` shortened to it (a smaller MTU on the way).
    #[must_use]
    pub fn limited_to(self, max_ip_len: u16) -> Self {
        match self {
            Self::Payload(len) => Self::Payload(len.min(max_ip_len.saturating_sub(V6_OVERHEAD))),
            Self::Mix(mix) => Self::Mix(mix.into_iter().map(|(len, w)| (len.min(max_ip_len), w)).collect()),
        }
    }

    /// The IP lengths and their weights for one family, raised to the family's least length and capped at
    /// [`payload::MAX_IP_LEN`].
    fn lengths(&self, family: Family) -> Vec<(u16, u32)> {
        let fit = |len: u16| len.clamp(family.min_ip_len(), payload::MAX_IP_LEN);
        match self {
            Self::Payload(len) => vec![(fit(len.saturating_add(family.overhead())), 1)],
            Self::Mix(mix) => mix.iter().map(|&(len, weight)| (fit(len), weight)).collect(),
        }
    }

    /// The mean IP packet length for one family.
    pub fn mean_ip_len(&self, family: Family) -> f64 {
        let lengths = self.lengths(family);
        let weights: f64 = lengths.iter().map(|&(_, weight)| f64::from(weight)).sum();
        lengths.iter().map(|&(len, weight)| f64::from(len) * f64::from(weight)).sum::<f64>()
            / weights.max(1.0)
    }

    /// The longest IP packet of either family: what the MTU of N6 must hold, and that of N3 with 44 bytes more
    /// (64 over IPv6).
    pub fn max_ip_len(&self) -> u16 {
        let longest = |family| self.lengths(family).into_iter().map(|(len, _)| len).max().unwrap_or(0);
        longest(Family::V4).max(longest(Family::V6))
    }

    /// A sampler of the distribution.
    pub fn sampler(&self) -> SizeSampler {
        SizeSampler {
            v4: Cumulative::of(&self.lengths(Family::V4)),
            v6: Cumulative::of(&self.lengths(Family::V6)),
        }
    }
}

impl fmt::Display for SizeProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::simple_imix() {
            return f.write_str("imix");
        }
        if *self == Self::ran_mix() {
            return f.write_str("ran");
        }
        match self {
            Self::Payload(len) => write!(f, "{len}"),
            Self::Mix(mix) => {
                for (index, (len, weight)) in mix.iter().enumerate() {
                    write!(f, "{}{len}:{weight}", if index == 0 { "" } else { "," })?;
                }
                Ok(())
            }
        }
    }
}

impl FromStr for SizeProfile {
    type Err = UnknownProfile;

    fn from_str(text: &str) -> Result<Self, UnknownProfile> {
        let unknown = || UnknownProfile(text.to_owned());
        match text {
            "imix" => Ok(Self::simple_imix()),
            "ran" => Ok(Self::ran_mix()),
            _ if text.contains(':') => {
                let mut mix = Vec::new();
                for part in text.split(',') {
                    let (len, weight) = part.split_once(':').ok_or_else(unknown)?;
                    let len = len.trim().parse().map_err(|_| unknown())?;
                    let weight: u16 = weight.trim().parse().map_err(|_| unknown())?;
                    mix.push((len, u32::from(weight)));
                }
                if mix.iter().all(|&(_, weight)| weight == 0) {
                    return Err(unknown());
                }
                Ok(Self::Mix(mix))
            }
            _ => text.parse().map(Self::Payload).map_err(|_| unknown()),
        }
    }
}

/// Draws packet lengths; see [`SizeProfile::sampler`].
#[derive(Clone, Debug)]
pub struct SizeSampler {
    v4: Cumulative,
    v6: Cumulative,
}

impl SizeSampler {
    /// The length of the next IP packet.
    pub fn next(&self, family: Family, rng: &mut SplitMix64) -> u16 {
        match family {
            Family::V4 => self.v4.next(rng),
            Family::V6 => self.v6.next(rng),
        }
    }
}

#[derive(Clone, Debug)]
struct Cumulative {
    /// Length, and the sum of weights up to and including it.
    steps: Vec<(u16, u32)>,
    total: u32,
    last: u16,
}

impl Cumulative {
    fn of(lengths: &[(u16, u32)]) -> Self {
        let mut total = 0_u32;
        let mut steps = Vec::with_capacity(lengths.len());
        for &(len, weight) in lengths {
            total = total.saturating_add(weight);
            steps.push((len, total));
        }
        let last = lengths.last().map_or(Family::V6.min_ip_len(), |&(len, _)| len);
        Self { steps, total, last }
    }

    fn next(&self, rng: &mut SplitMix64) -> u16 {
        if self.steps.len() < 2 {
            return self.last;
        }
        let draw = rng.below(self.total);
        self.steps.iter().find(|&&(_, upto)| draw < upto).map_or(self.last, |&(len, _)| len)
    }
}

/// Which session a packet belongs to.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum SessionChoice {
    /// All in turn: the worst case for caches.
    #[default]
    RoundRobin,
    /// At random, all alike.
    Uniform,
    /// At random, the k-th session with a probability proportional to `1 / k^exponent`: a few heavy users, many light.
    Zipf {
        /// 0 is uniform; 1 is the classic law.
        exponent: f64,
    },
}

/// Draws session indices; see [`SessionChoice`].
#[derive(Clone, Debug)]
pub struct SessionPicker {
    sessions: u32,
    next: u32,
    rng: SplitMix64,
    law: Law,
}

#[derive(Clone, Debug)]
enum Law {
    InTurn,
    Uniform,
    /// Walker's alias table: keep the drawn index if the second draw is below its threshold, else take its alias.
    Alias(Vec<(u32, u32)>),
}

impl SessionPicker {
    /// A picker among `sessions` sessions. With no session, every draw is 0.
    pub fn new(choice: SessionChoice, sessions: u32, seed: u64) -> Self {
        let law = match choice {
            SessionChoice::RoundRobin => Law::InTurn,
            SessionChoice::Uniform => Law::Uniform,
            SessionChoice::Zipf { exponent } => Law::Alias(alias_table(
                &(1..=sessions).map(|rank| f64::from(rank).powf(-exponent)).collect::<Vec<_>>(),
            )),
        };
        Self { sessions, next: 0, rng: SplitMix64::new(seed), law }
    }

    /// The next session's index.
    pub fn next_session(&mut self) -> u32 {
        match &self.law {
            Law::InTurn => {
                let index = self.next;
                self.next = if index + 1 >= self.sessions { 0 } else { index + 1 };
                index
            }
            Law::Uniform => self.rng.below(self.sessions),
            Law::Alias(table) => {
                let index = self.rng.below(self.sessions);
                let (threshold, alias) = table.get(index as usize).copied().unwrap_or((u32::MAX, 0));
                if (self.rng.next_u64() >> 32) as u32 <= threshold { index } else { alias }
            }
        }
    }
}

/// Vose's construction of Walker's alias table.
fn alias_table(weights: &[f64]) -> Vec<(u32, u32)> {
    let total: f64 = weights.iter().sum();
    let scale = weights.len() as f64 / total;
    let mut share: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
    let mut table: Vec<(u32, u32)> = (0..weights.len() as u32).map(|index| (u32::MAX, index)).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) =
        (0..share.len()).partition(|&index| share[index] < 1.0);
    while let (Some(poor), Some(&rich)) = (small.pop(), large.last()) {
        table[poor] = ((share[poor] * f64::from(u32::MAX)) as u32, rich as u32);
        share[rich] -= 1.0 - share[poor];
        if share[rich] < 1.0 {
            large.pop();
            small.push(rich);
        }
    }
    table
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn mean(profile: &SizeProfile, family: Family) -> f64 {
        let sampler = profile.sampler();
        let mut rng = SplitMix64::new(1);
        let draws = 200_000;
        (0..draws).map(|_| f64::from(sampler.next(family, &mut rng))).sum::<f64>() / f64::from(draws)
    }

    #[test]
    fn means_are_what_the_weights_say() {
        // (7 * 48 + 4 * 576 + 1500) / 12
        assert!((SizeProfile::simple_imix().mean_ip_len(Family::V4) - 345.0).abs() < 0.1);
        // 0.4 * 243 + 0.2 * 486 + 0.4 * 1458
        assert!((SizeProfile::ran_mix().mean_ip_len(Family::V6) - 777.6).abs() < 1e-9);
        for profile in [SizeProfile::simple_imix(), SizeProfile::ran_mix(), SizeProfile::Payload(64)] {
            for family in [Family::V4, Family::V6] {
                let (expected, found) = (profile.mean_ip_len(family), mean(&profile, family));
                assert!((expected - found).abs() < expected * 0.01, "{profile}: {found}, not {expected}");
            }
        }
    }

    #[test]
    fn names_parse_back() {
        for profile in [
            SizeProfile::simple_imix(),
            SizeProfile::ran_mix(),
            SizeProfile::Payload(1024),
            "64:1,128:3".parse().unwrap(),
        ] {
            assert_eq!(profile.to_string().parse::<SizeProfile>().unwrap(), profile);
        }
        for bad in ["", "imx", "64:", "64:0", "70000", "-1", "1:2,3"] {
            assert!(bad.parse::<SizeProfile>().is_err(), "{bad}");
        }
    }

    #[test]
    fn limits_hold() {
        let profile = SizeProfile::simple_imix().limited_to(1400);
        assert_eq!(profile.max_ip_len(), 1400);
        assert_eq!(SizeProfile::Payload(9000).limited_to(1400).max_ip_len(), 1400);
        assert_eq!(SizeProfile::Payload(65535).max_ip_len(), payload::MAX_IP_LEN);
        assert_eq!(SizeProfile::Payload(0).sampler().next(Family::V4, &mut SplitMix64::new(0)), 48);
    }

    #[test]
    fn round_robin_visits_all_in_order() {
        let mut picker = SessionPicker::new(SessionChoice::RoundRobin, 3, 0);
        assert_eq!((0..7).map(|_| picker.next_session()).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn zipf_follows_its_law() {
        let sessions = 1000;
        let mut picker = SessionPicker::new(SessionChoice::Zipf { exponent: 1.0 }, sessions, 42);
        let draws = 400_000;
        let mut seen = vec![0_u32; sessions as usize];
        for _ in 0..draws {
            seen[picker.next_session() as usize] += 1;
        }
        let harmonic: f64 = (1..=sessions).map(|k| 1.0 / f64::from(k)).sum();
        for rank in [1, 2, 10, 100] {
            let expected = f64::from(draws) / f64::from(rank) / harmonic;
            let found = f64::from(seen[rank as usize - 1]);
            assert!((found - expected).abs() < 5.0 * expected.sqrt(), "rank {rank}: {found}, not {expected}");
        }
        assert!(seen.iter().all(|&n| n > 0), "the last of 1,000 expects 53 draws");
    }

    #[test]
    fn uniform_reaches_everything() {
        let mut picker = SessionPicker::new(SessionChoice::Uniform, 10, 1);
        let mut seen = [0; 10];
        (0..10_000).for_each(|_| seen[picker.next_session() as usize] += 1);
        assert!(seen.iter().all(|n| (800..1200).contains(n)), "{seen:?}");
    }
}
