//! A small random generator whose sequence is part of a run's description.
//!
//! Traffic must be the same for the same seed in every version of the program and of its dependencies, so that a
//! reported fault can be reproduced; that is why this isn't a general-purpose crate's generator.

/// SplitMix64 (Steele, Lea, Flood 2014): one addition and three multiplications a number, full period 2^64.
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// A generator whose sequence is determined by the seed.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number below `bound`, uniform up to a bias of 2^-32; zero if `bound` is zero.
    pub const fn below(&mut self, bound: u32) -> u32 {
        (((self.next_u64() >> 32) * bound as u64) >> 32) as u32
    }
}

/// The finaliser of SplitMix64: a bijection of 64 bits that spreads every input bit over all output bits.
pub const fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::SplitMix64;

    #[test]
    fn first_numbers_are_those_of_the_published_reference() {
        // The reference implementation (splitmix64.c, public domain) with seed 1234567.
        let mut rng = SplitMix64::new(1_234_567);
        assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
        assert_eq!(rng.next_u64(), 9_817_491_932_198_370_423);
    }

    #[test]
    fn below_stays_below_and_reaches_everything() {
        let mut rng = SplitMix64::new(7);
        let mut seen = [0_u32; 12];
        for _ in 0..12_000 {
            seen[rng.below(12) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
        assert_eq!(rng.below(0), 0);
    }
}
