//! What a TEID on the wire says about its place, for those who know the key.
//!
//! **Problem.** A TEID says where its record is ([`crate::TeidRef`]), so that a packet finds it without a look-up. Said openly, TEIDs
//! lie close together, and whoever reaches N3 guesses another user's at the first attempt: 20,000 sessions held 20,000 of 20,480 names.
//!
//! **Model.** A secret permutation of all 32-bit numbers, another one in each process: three multiplications by odd numbers, between
//! which high and low bits change places. A guess hits with the number of tunnels over 2^32, whatever is known of some
//! tunnels but the key.
//!
//! **Cost.** One permutation a packet: about a dozen instructions on what is in registers, no memory.
//!
//! **What it is not.** A cipher that anybody has tried to break. Whoever sees thousands of TEIDs (an SMF, a gNB) and knows their
//! places might compute the key; from differences of his own he learns nothing (tested below). And a TEID that is seen on the wire is known:
//! N3 is to be protected as TS 33.501 §9.3 says.

use packet::Teid;

/// The secret. The default keeps nothing secret: for tests, which like to see places.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TeidKey {
    /// Odd.
    factors: [u32; 3],
    /// Their inverses modulo 2^32.
    inverses: [u32; 3],
    masks: [u32; 4],
    open: bool,
}

impl Default for TeidKey {
    fn default() -> Self {
        Self { factors: [1; 3], inverses: [1; 3], masks: [0; 4], open: true }
    }
}

impl std::fmt::Debug for TeidKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.open { "TeidKey(none)" } else { "TeidKey(secret)" })
    }
}

/// Bits that the plain number is turned by, so that those which differ least between tunnels end up where most becomes of them.
const TURN: u32 = 17;

impl TeidKey {
    /// From random bits.
    pub fn new(random: [u64; 4]) -> Self {
        let low = random.map(|bits| bits as u32);
        let [a, b, c, _] = low;
        let factors = [a | 1, b | 1, c | 1];
        let masks = random.map(|bits| (bits >> 32) as u32);
        Self { factors, inverses: factors.map(inverse), masks, open: false }
    }

    /// What [`Self::new`] makes it of again; `None`: it keeps nothing secret. Whoever reads these knows the secret.
    pub fn words(&self) -> Option<[u64; 4]> {
        let ([f0, f1, f2], [m0, m1, m2, m3]) = (self.factors, self.masks);
        let word = |mask: u32, factor: u32| u64::from(mask) << 32 | u64::from(factor);
        (!self.open).then(|| [word(m0, f0), word(m1, f1), word(m2, f2), word(m3, 0)])
    }

    /// The number on the wire for what [`crate::TeidRef::teid`] says openly.
    pub const fn seal(&self, plain: Teid) -> Teid {
        if self.open {
            return plain;
        }
        let ([f0, f1, f2], [m0, m1, m2, m3]) = (self.factors, self.masks);
        let x = plain.0.rotate_left(TURN).wrapping_add(m0).wrapping_mul(f0);
        let x = ((x ^ x >> 16) ^ m1).wrapping_mul(f1).swap_bytes();
        let x = (x ^ m2).wrapping_mul(f2);
        Teid((x ^ x >> 16) ^ m3)
    }

    /// What [`Self::seal`] made this number of.
    #[inline(always)]
    pub const fn open(&self, wire: Teid) -> Teid {
        if self.open {
            return wire;
        }
        let ([i0, i1, i2], [m0, m1, m2, m3]) = (self.inverses, self.masks);
        let x = wire.0 ^ m3;
        let x = (x ^ x >> 16).wrapping_mul(i2) ^ m2;
        let x = x.swap_bytes().wrapping_mul(i1) ^ m1;
        let x = (x ^ x >> 16).wrapping_mul(i0).wrapping_sub(m0);
        Teid(x.rotate_right(TURN))
    }
}

/// The inverse of an odd number modulo 2^32, by Newton's method: each step doubles the bits that are right.
fn inverse(odd: u32) -> u32 {
    (0..5).fold(odd, |x, _| x.wrapping_mul(2u32.wrapping_sub(odd.wrapping_mul(x))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::teid::Tunnels;
    use crate::{Epoch, ShardId};
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};
    use std::collections::HashSet;

    fn key(rng: &mut StdRng) -> TeidKey {
        TeidKey::new([(); 4].map(|()| rng.random()))
    }

    #[test]
    fn every_number_has_one_place() {
        let mut rng = StdRng::seed_from_u64(1);
        for _ in 0..20 {
            let key = key(&mut rng);
            for _ in 0..10_000 {
                let plain = Teid(rng.random());
                assert_eq!(key.open(key.seal(plain)), plain);
                assert_eq!(key.seal(key.open(plain)), plain);
            }
        }
        assert_eq!(TeidKey::default().seal(Teid(0x0102_8003)), Teid(0x0102_8003));
        assert_eq!(format!("{:?}", key(&mut rng)), "TeidKey(secret)");
    }

    /// 20,480 tunnels as they come about, and a stranger who knows a thousand of them: by no rule does he find others more
    /// often than by chance.
    #[test]
    fn a_guess_hits_by_chance_only() {
        const GUESSES: u32 = 1_000_000;
        let mut rng = StdRng::seed_from_u64(2);
        let mut hits = [0u32; 6];
        let keys = 8;
        for _ in 0..keys {
            let mut tunnels = Tunnels::new(rng.random(), Epoch::default(), key(&mut rng));
            let shards: Vec<ShardId> = ShardId::all().collect();
            let teid = |n: usize| tunnels.allocate(shards[n % 512]).unwrap().teid.0;
            let all: Vec<u32> = (0..20_480).map(teid).collect();
            let own: Vec<u32> = (0..1000).map(|_| all[rng.random_range(0..all.len())]).collect();
            let theirs: HashSet<u32> = all.iter().filter(|teid| !own.contains(teid)).copied().collect();
            for _ in 0..GUESSES {
                let [a, b, c] = [(); 3].map(|()| own[rng.random_range(0..own.len())]);
                let bits: u32 = rng.random();
                let guesses = [
                    bits,
                    a.wrapping_add(bits % 4096).wrapping_sub(2048),
                    a ^ (1 << (bits % 32)) ^ (1 << ((bits >> 8) % 32)),
                    (a & 0x00ff_ffff) | (bits & 0xff00_0000),
                    a ^ b ^ c,
                    a.wrapping_add(b).wrapping_sub(c),
                ];
                for (hits, guess) in hits.iter_mut().zip(guesses) {
                    *hits += u32::from(theirs.contains(&guess));
                }
            }
        }
        // About 36 are to be expected of each kind, with a deviation of 6.
        let expected = f64::from(keys * GUESSES) * 19_500.0 / 4_294_967_296.0;
        let bound = expected + 6.0 * expected.sqrt();
        assert!(hits.iter().all(|hits| f64::from(*hits) < bound), "{hits:?}, {expected} expected");
        assert!(hits[0] > 0, "nothing was tried");
    }

    /// Neighbouring places have nothing in common on the wire that another pair of neighbours has.
    #[test]
    fn differences_say_nothing() {
        let mut rng = StdRng::seed_from_u64(3);
        for step in [1u32, 2, 1 << 15, 1 << 20, 1 << 23, 1 << 24] {
            let key = key(&mut rng);
            let (mut xors, mut sums) = (HashSet::new(), HashSet::new());
            let pairs = 20_000;
            for _ in 0..pairs {
                let plain: u32 = rng.random();
                let (a, b) = (key.seal(Teid(plain)).0, key.seal(Teid(plain.wrapping_add(step))).0);
                xors.insert(a ^ b);
                sums.insert(b.wrapping_sub(a));
            }
            assert!(xors.len() > pairs * 9 / 10 && sums.len() > pairs * 9 / 10, "{step:#x}: {}", xors.len());
        }
    }
}
