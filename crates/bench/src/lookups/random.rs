//! `random-access`: how many places of 16 octets in a large memory does one core read a second, where each says which is next?
//!
//! That is what every look-up here comes down to: the limit that the other figures stand beside. Chains that don't depend on each other are walked side by side,
//! as a burst's look-ups are.

use super::routes::Random;
use super::{LookupConfig, LookupError, inserted, note_pages, tell};
use crate::progress::Progress;
use crate::report::{Measured, Report};
use tables::clock::Tsc;

/// A place: the number of the next one, and what fills it up to 16 octets.
#[derive(Clone, Copy, Default)]
#[repr(C, align(16))]
struct Place {
    next: u32,
    rest: [u32; 3],
}

/// Working sets, in bytes.
const SIZES: [usize; 5] = [64 << 10, 1 << 20, 16 << 20, 128 << 20, 1 << 30];
/// Chains side by side.
const CHAINS: [usize; 4] = [1, 4, 16, 64];

/// A circle through all places, in random order (Sattolo).
fn circle(places: usize, random: &mut Random) -> Result<Vec<Place>, LookupError> {
    let mut all =
        tables::image::on_large_pages(places).ok_or_else(|| LookupError::Table("no memory".into()))?;
    all.extend((0..places as u32).map(|next| Place { next, rest: [next; 3] }));
    for last in (1..places).rev() {
        let other = random.below(last as u64) as usize;
        if let Ok([a, b]) = all.get_disjoint_mut([last, other]) {
            std::mem::swap(&mut a.next, &mut b.next);
        }
    }
    Ok(all)
}

/// Walks `N` chains, so many steps each, from where they are.
fn walk<const N: usize>(places: &[Place], at: &mut [u32], steps: usize) {
    let Some(at) = at.first_chunk_mut::<N>() else { return };
    let mut sum = 0_u32;
    for _ in 0..steps {
        for own in &mut *at {
            if let Some(place) = places.get(*own as usize) {
                *own = place.next;
                sum ^= place.rest[2];
            }
        }
    }
    std::hint::black_box(sum);
}

/// Measures all.
pub fn run(config: &LookupConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, LookupError> {
    let mut report = Report::new("random-access", &clock);
    let mut random = Random::new(1);
    for bytes in SIZES {
        tell(progress, &report, &format!("{} KiB: linking", bytes >> 10));
        let places = circle(bytes / size_of::<Place>(), &mut random)?;
        tell(progress, &report, &format!("{} KiB", bytes >> 10));
        let mut rates = vec![Vec::new(); CHAINS.len()];
        let mut at: Vec<u32> = (0..64).map(|_| random.below(places.len() as u64) as u32).collect();
        for round in 0..=config.runs {
            for (chains, rates) in CHAINS.into_iter().zip(&mut rates) {
                let steps = (config.lookups / 64).max(1) * if chains == 1 { 8 } else { 64 } / chains.max(8);
                let rate = inserted(steps * chains, || {
                    match chains {
                        1 => walk::<1>(&places, &mut at, steps),
                        4 => walk::<4>(&places, &mut at, steps),
                        16 => walk::<16>(&places, &mut at, steps),
                        _ => walk::<64>(&places, &mut at, steps),
                    }
                    Ok(())
                })?;
                if round > 0 {
                    rates.push(rate);
                }
            }
        }
        for (chains, rates) in CHAINS.into_iter().zip(&rates) {
            let params = [
                ("working_set", (bytes as u64).into()),
                ("chains", (chains as u64).into()),
                ("device", "cpu".into()),
            ];
            report.results.push(Measured::of("accesses_per_second", "1/s", &params, rates));
        }
        note_pages(&mut report, &format!("{} KiB", bytes >> 10));
        progress.keep(&report);
    }
    report.notes.push(
        "one core, places of 16 octets linked to a circle in random order, as the seed's figure 3 (which has no numbers)".into(),
    );
    Ok(report)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_circle_leads_through_all_places() {
        for places in [1, 2, 1000] {
            let all = circle(places, &mut Random::new(3)).unwrap();
            let (mut at, mut steps) = (0, 0);
            while steps == 0 || at != 0 {
                at = all[at].next as usize;
                steps += 1;
            }
            assert_eq!(steps, places);
            let mut ends = [0; 64];
            walk::<16>(&all, &mut ends, places);
            assert_eq!(ends, [0; 64], "once around");
        }
    }
}
