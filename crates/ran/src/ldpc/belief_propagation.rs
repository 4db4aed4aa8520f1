//! Decoding by belief propagation in floating point: what the decoders are measured by.
//!
//! The sum-product algorithm without approximation, row by row (layered): a check says to a bit exactly what the others make of it, a [+] b [+] ..., with
//! a [+] b = 2 artanh (tanh (a/2) tanh (b/2)). It takes milliseconds an iteration, and shares no arithmetic with [`super::Decoder`].

use super::{Code, Decoded, Edge, Effort, Error, MOST_DEGREE};

/// A reference decoder.
#[derive(Debug, Clone)]
pub struct BeliefPropagation {
    code: Code,
    edges: Vec<Edge>,
    /// What is thought of each bit: ln (P(0) / P(1)).
    bits: Vec<f64>,
    /// What each check last said to each of its bits: Z for each edge.
    messages: Vec<f64>,
}

/// How sure one is of fillers: nothing that is received comes near.
const PINNED: f64 = 1e6;

impl BeliefPropagation {
    /// For blocks of a code.
    pub fn new(code: Code) -> Self {
        Self { code, edges: code.edges().collect(), bits: Vec::new(), messages: Vec::new() }
    }

    /// As [`super::Decoder::decode`], but with LLRs as they are: ln (P(0) / P(1)). There is no CRC: that all checks hold is all that can be known.
    ///
    /// # Errors
    /// When there are more LLRs or fillers than the code allows, or `info` has not as many octets as the information bits need.
    pub fn decode(
        &mut self,
        llrs: &[f64],
        fillers: usize,
        effort: Effort,
        info: &mut [u8],
    ) -> Result<Decoded, Error> {
        let code = self.code;
        let needed = code.info_bits().div_ceil(8);
        if info.len() != needed {
            return Err(Error::InfoLength { given: info.len(), needed });
        }
        if llrs.len() > code.coded_bits() {
            return Err(Error::TooManyReceived { given: llrs.len(), most: code.coded_bits() });
        }
        let most = code.info_bits() - code.punctured_bits();
        if fillers > most {
            return Err(Error::TooManyFillers { given: fillers, most });
        }
        self.bits.clear();
        self.bits.resize(code.punctured_bits(), 0.0);
        self.bits.extend_from_slice(llrs);
        self.bits.resize(code.punctured_bits() + code.coded_bits(), 0.0);
        self.bits[code.info_bits() - fillers..code.info_bits()].fill(PINNED);
        self.messages.clear();
        self.messages.resize(self.edges.len() * code.z(), 0.0);
        let rows = code.rows_for(llrs.len());
        let mut decoded = Decoded { iterations: 0, checks_hold: false, accepted: false };
        while decoded.iterations < effort.iterations && !(effort.early_stop && decoded.checks_hold) {
            self.sweep(rows);
            decoded = Decoded {
                iterations: decoded.iterations + 1,
                checks_hold: self.checks_hold(rows),
                ..decoded
            };
        }
        info.fill(0);
        for (at, _) in self.bits[..code.info_bits()].iter().enumerate().filter(|(_, llr)| **llr < 0.0) {
            info[at / 8] |= 0x80 >> (at % 8);
        }
        Ok(decoded)
    }

    fn sweep(&mut self, rows: usize) {
        let z = self.code.z();
        let mut messages = &mut self.messages[..];
        for row in self.edges.chunk_by(|one, next| one.row == next.row).take(rows) {
            let (said, rest) = messages.split_at_mut(row.len() * z);
            messages = rest;
            for check in 0..z {
                let at = |edge: &Edge| edge.column * z + (check + edge.shift) % z;
                let (mut heard, mut before) = ([0.0; MOST_DEGREE], [0.0; MOST_DEGREE]);
                // What all that came before an edge say together; then, from the other end, what all that come behind it do.
                let mut all = f64::INFINITY;
                for (number, edge) in row.iter().enumerate() {
                    heard[number] = self.bits[at(edge)] - said[number * z + check];
                    before[number] = all;
                    all = both(all, heard[number]);
                }
                let mut behind = f64::INFINITY;
                for (number, edge) in row.iter().enumerate().rev() {
                    let say = both(before[number], behind);
                    behind = both(behind, heard[number]);
                    said[number * z + check] = say;
                    self.bits[at(edge)] = heard[number] + say;
                }
            }
        }
    }

    fn checks_hold(&self, rows: usize) -> bool {
        let z = self.code.z();
        self.edges.chunk_by(|one, next| one.row == next.row).take(rows).all(|row| {
            (0..z).all(|check| {
                let ones =
                    row.iter().filter(|edge| self.bits[edge.column * z + (check + edge.shift) % z] < 0.0);
                ones.count().is_multiple_of(2)
            })
        })
    }
}

/// What two say together of the sum of their bits: a [+] b, in the form that doesn't lose great magnitudes.
fn both(a: f64, b: f64) -> f64 {
    let (least, sign) = (a.abs().min(b.abs()), a.signum() * b.signum());
    if a.is_infinite() || b.is_infinite() {
        return sign * least;
    }
    sign * (least + (-(a.abs() + b.abs())).exp().ln_1p() - (-(a.abs() - b.abs()).abs()).exp().ln_1p())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_say_together_what_the_hyperbolic_tangents_say() {
        for (a, b) in [(0.3_f64, 0.2_f64), (-1.5, 2.5), (4.0, -4.0), (-6.0, -0.1), (0.0, 3.0)] {
            let exact = 2.0 * ((a / 2.0).tanh() * (b / 2.0).tanh()).atanh();
            assert!((both(a, b) - exact).abs() < 1e-9, "{a} {b}");
        }
        assert!((both(f64::INFINITY, -2.0) + 2.0).abs() < 1e-12);
    }
}
