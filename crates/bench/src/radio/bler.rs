//! `ldpc-bler`: how many blocks noise destroys, by the decoder and by belief propagation in floating point.
//!
//! Blocks are sent by BPSK through white Gaussian noise. Both decoders hear the same noise: the reference as it is, with 50 iterations; the decoder in LLRs of
//! an octet, with 20 (and 10). From a code's curve, the Eb/N0 at which one block in ten is lost is interpolated; `loss_db` is by how much more of it the
//! decoder needs. A point ends early when enough blocks have been lost.

use super::ldpc::name;
use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use ran::ldpc::{BaseGraph, BeliefPropagation, Code, Decoder, Effort, Encoder, Error};
use ran::simd::Processor;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use tables::clock::Tsc;

/// What to measure.
#[derive(Clone, Debug)]
pub struct BlerConfig {
    /// Codes, and columns of each that are sent.
    pub codes: Vec<(BaseGraph, usize, usize)>,
    /// Blocks of each point, at most.
    pub blocks: usize,
    /// Lost blocks that are enough.
    pub enough: usize,
}

impl BlerConfig {
    /// Both base graphs at high, medium and low rates.
    pub fn full() -> Self {
        use BaseGraph::{One, Two};
        let of_one = [24, 44, 66].map(|columns| (One, 64, columns));
        let of_two = [15, 30, 50].map(|columns| (Two, 64, columns));
        let codes = [&of_one[..], &of_two, &[(One, 384, 44)]].concat();
        Self { codes, blocks: 600, enough: 60 }
    }

    /// Small codes, fewer blocks.
    pub fn quick() -> Self {
        use BaseGraph::{One, Two};
        Self { codes: vec![(One, 32, 44), (One, 32, 24), (Two, 32, 30)], blocks: 200, enough: 30 }
    }
}

/// Iterations of the reference.
const EXACT: usize = 50;

/// Iterations of the decoder.
const ITERATIONS: [usize; 2] = [20, 10];

/// Decibels from point to point.
const STEP: f64 = 0.1;

/// Blocks lost that the curve is cut at, of all.
const LOST: f64 = 0.1;

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &BlerConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, Error> {
    let mut report = Report::new("ldpc-bler", &clock);
    for &(graph, z, columns) in &config.codes {
        let code = Code::new(graph, z)?;
        let mut link = Link::new(code, columns);
        progress.tell(&format!("base graph {}, Z {z}, rate {:.2}", graph as u8 + 1, link.rate()));
        let exact =
            link.threshold(config, &Ear::Exact, (link.rate() * 6.0 - 1.0) / STEP, &mut report, progress);
        for iterations in ITERATIONS {
            let found = link.threshold(config, &Ear::Octets(iterations), exact / STEP, &mut report, progress);
            let params = link.params(&Ear::Octets(iterations));
            report.results.push(Measured::of("loss_db", "dB", &params, &[found - exact]));
        }
        progress.keep(&report);
    }
    report.notes.push(format!(
        "BPSK, white Gaussian noise; sum-product in floating point ({EXACT} iterations) is the reference; loss_db: Eb/N0 that the decoder needs more than it for a block error rate of {LOST}"
    ));
    Ok(report)
}

/// Who decodes.
#[derive(Debug, Clone, Copy)]
enum Ear {
    /// Belief propagation in floating point.
    Exact,
    /// The decoder, with so many iterations.
    Octets(usize),
}

/// A sender and its receivers.
struct Link {
    code: Code,
    columns: usize,
    encoder: Encoder,
    exact: BeliefPropagation,
    octets: Decoder,
}

impl Link {
    fn new(code: Code, columns: usize) -> Self {
        let exact = BeliefPropagation::new(code);
        Self { code, columns, encoder: Encoder::new(), exact, octets: Decoder::new() }
    }

    fn rate(&self) -> f64 {
        self.code.graph().info_columns() as f64 / self.columns as f64
    }

    fn params(&self, ear: &Ear) -> Vec<(&'static str, Param)> {
        let (decoder, iterations) = match ear {
            Ear::Exact => ("belief-propagation", EXACT),
            Ear::Octets(iterations) => (name(Processor::best()), *iterations),
        };
        vec![
            ("bg", (self.code.graph() as u64 + 1).into()),
            ("columns", (self.columns as u64).into()),
            ("decoder", decoder.into()),
            ("iterations", (iterations as u64).into()),
            ("z", (self.code.z() as u64).into()),
        ]
    }

    /// The Eb/N0, in dB, at which the share of lost blocks passes [`LOST`]; the search begins at so many steps.
    fn threshold(
        &mut self,
        config: &BlerConfig,
        ear: &Ear,
        begin: f64,
        report: &mut Report,
        progress: &mut dyn Progress,
    ) -> f64 {
        let mut points: Vec<(i32, f64)> = Vec::new();
        let mut step = begin.round() as i32;
        loop {
            let share = self.lost(config, ear, f64::from(step) * STEP);
            points.push((step, share));
            points.sort_by_key(|point| point.0);
            let mut params = self.params(ear);
            // In hundredths of a decibel; none of these codes gets along with less than one bit's energy.
            params
                .push(("eb_n0_millibel", u64::try_from(step).unwrap_or_default().saturating_mul(10).into()));
            report.results.push(Measured::of("block_error_rate", "1", &params, &[share]));
            progress.keep(report);
            // The curve falls: it passes between the last point above and the first below.
            let above = points.iter().rfind(|point| point.1 > LOST);
            let below = points.iter().find(|point| point.1 <= LOST);
            step = match (above, below) {
                (Some(above), Some(below)) if below.0 - above.0 <= 1 => {
                    let logarithm = |share: f64| share.max(0.5 / config.blocks as f64).ln();
                    let part = (logarithm(above.1) - LOST.ln()) / (logarithm(above.1) - logarithm(below.1));
                    return (f64::from(above.0) + part) * STEP;
                }
                (Some(above), Some(below)) => i32::midpoint(above.0, below.0),
                (Some(above), None) => above.0 + if above.1 > 0.9 { 5 } else { 1 },
                (None, Some(below)) if below.0 == 0 => return 0.0,
                (None, Some(below)) => (below.0 - if below.1 < 0.01 { 3 } else { 1 }).max(0),
                (None, None) => return f64::NAN,
            };
        }
    }

    /// Which part of all blocks is lost.
    fn lost(&mut self, config: &BlerConfig, ear: &Ear, eb_n0: f64) -> f64 {
        let mut random = SmallRng::seed_from_u64(11);
        let code = self.code;
        let variance = 0.5 / (self.rate() * 10_f64.powf(eb_n0 / 10.0));
        let mut sent = vec![0; code.info_bits().div_ceil(8)];
        let (mut coded, mut found) = (vec![0; code.coded_bits().div_ceil(8)], sent.clone());
        let (mut lost, mut blocks) = (0, 0);
        while blocks < config.blocks && lost < config.enough {
            blocks += 1;
            random.fill_bytes(&mut sent);
            if let (Some(last), used @ 1..) = (sent.last_mut(), code.info_bits() % 8) {
                *last &= !(0xff >> used);
            }
            // The buffers have the code's lengths.
            let _ = self.encoder.encode(code, &sent, &mut coded);
            let llrs = (0..self.columns * code.z()).map(|at| {
                let sign = if coded[at / 8] << (at % 8) & 0x80 == 0 { 1.0 } else { -1.0 };
                let noise: f64 = StandardNormal.sample(&mut random);
                2.0 * (sign + variance.sqrt() * noise) / variance
            });
            match *ear {
                Ear::Exact => {
                    let effort = Effort { iterations: EXACT, early_stop: true };
                    let _ = self.exact.decode(&llrs.collect::<Vec<_>>(), 0, effort, &mut found);
                }
                Ear::Octets(iterations) => {
                    let llrs: Vec<i8> = llrs.map(|llr| (llr * 4.0).round() as i8).collect();
                    let effort = Effort { iterations, early_stop: true };
                    let _ = self.octets.decode(code, &llrs, 0, effort, &mut found, |_| true);
                }
            }
            lost += usize::from(found != sent);
        }
        lost as f64 / blocks as f64
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn the_loss_is_the_difference_of_two_thresholds() {
        let config = BlerConfig { codes: vec![(BaseGraph::Two, 4, 20)], blocks: 60, enough: 20 };
        let report = run(&config, Tsc::process(), &mut Silent).unwrap();
        for iterations in [20_u64, 10] {
            let loss = report.median("loss_db", &[("iterations", iterations.into())]).unwrap();
            assert!((-1.0..1.5).contains(&loss), "{loss}");
        }
        assert!(report.all("block_error_rate", &[("decoder", "belief-propagation".into())]).count() >= 2);
    }
}
