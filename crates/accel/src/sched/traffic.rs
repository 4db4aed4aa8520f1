//! What packets come when: the thesis' tests (§4.11), random ones, and traces from files.
//!
//! Sizes are its IMIX, 243, 486 and 1,458 octets at 2 to 1 to 2. A packet of 243 octets is of kind 1 or 2 of Table 4.1 with equal chances, one of 486 octets of kind 3 or 4; each kind
//! is a flow, or as many as are asked for. Packets come evenly, unless they are asked to come as by chance (Poisson).

use super::core::Source;
use super::packet::{FlowId, KindId, Packet, PacketTable};
use super::trace::Arrival;
use std::collections::VecDeque;
use std::sync::Arc;
use tables::Nanos;

/// The thesis' tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Test {
    /// 18.95 Mbit/s: 3,046 packets a second.
    Low,
    /// 50.56 Mbit/s: 8,127 packets a second.
    Medium,
    /// As much as is taken.
    Stress,
    /// A minute of rates up and down, 45.5 Mbit/s on average.
    Standard,
}

impl Test {
    /// All, in the thesis' order.
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::Stress, Self::Standard];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::Stress => "stress",
            Self::Standard => "standard",
        }
    }

    /// Its load.
    pub fn load(self) -> Load {
        match self {
            Self::Low => Load::Rates(vec![3_046]),
            Self::Medium => Load::Rates(vec![8_127]),
            Self::Stress => Load::Unbounded,
            Self::Standard => Load::Rates(STANDARD.to_vec()),
        }
    }
}

/// The standard test second by second, in packets. The thesis' own trace isn't printed; this one has its average (7,315) and falls where its text says that the rate
/// falls: at 20, 43, 44 and 50 seconds. It never falls below what makes a batch of 128 in time, since the thesis' schedulers miss next to nothing in it.
pub const STANDARD: [u32; 60] = [
    3600, 4200, 5200, 5800, 6500, 7100, 7800, 8400, 9000, 9700, //
    10000, 10300, 10600, 10600, 10300, 10000, 10000, 9700, 9300, 9000, //
    5200, 5200, 5500, 5800, 6200, 6500, 6800, 7100, 7400, 7800, //
    8100, 8400, 8700, 9000, 9300, 9700, 10000, 10300, 10300, 10000, //
    9700, 9300, 9000, 6500, 4200, 4600, 5200, 6500, 7800, 8400, //
    3900, 3900, 4200, 4600, 4900, 4900, 4600, 4200, 4200, 3900,
];

/// How much comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Load {
    /// Packets a second, second by second; the last one goes on.
    Rates(Vec<u32>),
    /// These packets, one after the other.
    Packets(Arc<[Arrival]>),
    /// There is always another packet.
    Unbounded,
}

/// What comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How much.
    pub load: Load,
    /// What kinds of packets there are: one of so many octets is of one of those kinds that have them, with equal chances.
    pub table: PacketTable,
    /// Octets of packets, and how many of them there are to how many of the others.
    pub sizes: Vec<(u32, u32)>,
    /// Flows of each kind.
    pub flows: u32,
    /// Places in the receive ring, where the edge is.
    pub ring: usize,
    /// Whether packets come as by chance, instead of evenly.
    pub is_random: bool,
    /// What chance begins with.
    pub seed: u64,
}

impl Settings {
    /// One of the thesis' tests.
    pub fn thesis(test: Test) -> Self {
        Self {
            load: test.load(),
            table: PacketTable::default(),
            sizes: vec![(243, 2), (486, 1), (1458, 2)],
            flows: 1,
            ring: 4096,
            is_random: false,
            seed: 1,
        }
    }
}

/// A small generator (xorshift64*; Vigna 2016): simulations have to be the same on all machines and with all versions of a library.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let product = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d);
        ((u128::from(product) * u128::from(bound)) >> 64) as u64
    }

    /// A number from zero to one.
    pub fn part(&mut self) -> f64 {
        self.below(1 << 53) as f64 / (1_u64 << 53) as f64
    }
}

/// Packets that come, by time, through a receive ring that loses what it can't hold.
#[derive(Debug)]
pub struct Traffic {
    settings: Settings,
    chance: Chance,
    /// The time until which packets have come.
    now: Nanos,
    /// When the next one comes.
    next: Nanos,
    until: Nanos,
    ring: VecDeque<Packet>,
    tag: u64,
    offered: u64,
    /// By kind: packets that came, and those that the ring had no place for.
    lost: Vec<(u64, u64)>,
    octets: u64,
}

impl Traffic {
    /// Packets until some time.
    pub fn new(settings: Settings, until: Nanos) -> Self {
        let mut traffic = Self {
            chance: Chance::new(settings.seed),
            lost: vec![(0, 0); settings.table.kinds().len()],
            settings,
            now: Nanos(0),
            next: Nanos(0),
            until,
            ring: VecDeque::new(),
            tag: 0,
            offered: 0,
            octets: 0,
        };
        traffic.next = traffic.gap_from(Nanos(0));
        traffic
    }

    /// When the next packet comes, or a time that never is.
    pub fn next_event(&self) -> Nanos {
        match self.settings.load {
            Load::Unbounded => super::NEVER,
            Load::Rates(_) | Load::Packets(_) if self.next >= self.until => super::NEVER,
            Load::Rates(_) | Load::Packets(_) => self.next,
        }
    }

    /// Lets time go on: what comes is in the ring then, or lost.
    pub fn go_on(&mut self, now: Nanos) {
        self.now = now;
        while self.next_event() <= now {
            let packet = self.packet(self.next);
            let is_lost = self.ring.len() >= self.settings.ring;
            if !is_lost {
                self.ring.push_back(packet);
            }
            // A kind that isn't in the table is the core's to refuse and to count.
            if let Some((came, lost)) = self.lost.get_mut(usize::from(packet.kind.0)) {
                *came += 1;
                *lost += u64::from(is_lost);
            }
            self.next = self.gap_from(self.next);
        }
    }

    /// The time of the packet after the one at `time`.
    fn gap_from(&mut self, time: Nanos) -> Nanos {
        let rates = match &self.settings.load {
            Load::Rates(rates) => rates,
            Load::Packets(packets) => {
                return packets.get(self.tag as usize).map_or(super::NEVER, |packet| packet.at);
            }
            Load::Unbounded => return super::NEVER,
        };
        let mut time = time;
        loop {
            let second = (time.0 / Nanos::SECOND) as usize;
            let rate = rates.get(second).or(rates.last()).copied().unwrap_or(0);
            if rate > 0 {
                let gap = Nanos::SECOND as f64 / f64::from(rate);
                let gap = if self.settings.is_random { -gap * (1.0 - self.chance.part()).ln() } else { gap };
                return time.plus(gap as u64);
            }
            if second >= rates.len() {
                return super::NEVER;
            }
            time = Nanos((second as u64 + 1) * Nanos::SECOND);
        }
    }

    fn packet(&mut self, arrived: Nanos) -> Packet {
        let tag = self.tag;
        let (kind, flow, octets) = match &self.settings.load {
            Load::Packets(packets) => packets.get(tag as usize).map(|it| (it.kind, it.flow, it.octets)),
            Load::Rates(_) | Load::Unbounded => None,
        }
        .unwrap_or_else(|| self.drawn());
        self.tag += 1;
        self.offered += 1;
        self.octets += u64::from(octets);
        Packet { tag, kind, flow, octets, arrived }
    }

    /// Kind, flow and octets of a packet, by chance.
    fn drawn(&mut self) -> (KindId, FlowId, u32) {
        let Settings { table, sizes, flows, .. } = &self.settings;
        let sum = sizes.iter().map(|&(_, share)| u64::from(share)).sum::<u64>().max(1);
        let mut drawn = self.chance.below(sum);
        let mut octets = 243;
        for &(size, share) in sizes {
            octets = size;
            match drawn.checked_sub(u64::from(share)) {
                Some(rest) => drawn = rest,
                None => break,
            }
        }
        let kinds = table.kinds();
        let fits = |at: &usize| kinds.get(*at).is_some_and(|kind| (kind.least..=kind.most).contains(&octets));
        let count = (0..kinds.len()).filter(fits).count();
        // What fits nowhere is of the last kind.
        let chosen = if count > 1 { self.chance.below(count as u64) as usize } else { 0 };
        let kind = (0..kinds.len()).filter(fits).nth(chosen).unwrap_or(kinds.len().saturating_sub(1));
        let flow = self.chance.below(u64::from((*flows).max(1)));
        (KindId(kind as u8), FlowId((flow * kinds.len() as u64 + kind as u64) as u32), octets)
    }

    /// Packets that came so far, also those that were lost.
    pub fn offered(&self) -> u64 {
        self.offered
    }

    /// Octets of them.
    pub fn octets(&self) -> u64 {
        self.octets
    }

    /// By kind: packets that came, and those of them that the ring had no place for.
    pub fn lost(&self) -> &[(u64, u64)] {
        &self.lost
    }

    /// Whether nothing more comes, and the ring is empty.
    pub fn is_over(&self) -> bool {
        self.ring.is_empty()
            && (self.now >= self.until
                || self.next_event() == super::NEVER && self.settings.load != Load::Unbounded)
    }
}

impl Source for Traffic {
    fn receive(&mut self, most: usize, into: &mut Vec<Packet>) {
        if self.settings.load == Load::Unbounded {
            if self.now < self.until {
                let now = self.now;
                into.extend((0..most).map(|_| self.packet(now)).collect::<Vec<_>>());
            }
            return;
        }
        let found = most.min(self.ring.len());
        into.extend(self.ring.drain(..found));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_test_has_the_average_of_the_thesis() {
        let sum: u32 = STANDARD.iter().sum();
        assert!((f64::from(sum) / 60.0 / 7315.0 - 1.0).abs() < 0.005, "{}", f64::from(sum) / 60.0);
    }
}
