//! Layered min-sum in plain code, a lane at a time: what runs on processors without vectors, and what the vectors are judged by.

use super::Edge;
use super::decoder::Job;
use super::messages::{Correction, Magnitudes, PINNED};

/// The decoder's memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Plain {
    job: Option<Job>,
    /// The edges of the rows that are used, row by row.
    edges: Vec<Edge>,
    /// What the channel says of each bit, column by column.
    received: Vec<i8>,
    /// What is thought of each bit.
    bits: Vec<i8>,
    /// What each check last said to each of its bits: Z for each edge.
    messages: Vec<i8>,
}

impl Plain {
    /// Takes a block. Coded bits that were not received are left open.
    pub(super) fn load(&mut self, job: Job, llrs: &[i8]) {
        let code = job.code;
        if self.job != Some(job) {
            self.edges.clear();
            self.edges.extend(
                code.edges().filter(|edge| edge.row < job.rows && !job.is_filler_column(edge.column)),
            );
            self.job = Some(job);
        }
        self.received.clear();
        self.received.resize(code.punctured_bits(), 0);
        self.received.extend_from_slice(llrs);
        self.received.resize(code.punctured_bits() + code.coded_bits(), 0);
        self.received[job.fillers()].fill(PINNED);
        self.bits.clone_from(&self.received);
        self.messages.clear();
        self.messages.resize(self.edges.len() * code.z(), 0);
    }

    /// One iteration: each row hears what is thought of its bits and says what it makes of it.
    pub(super) fn sweep(&mut self) {
        let Some(job) = self.job else { return };
        let (z, fillers) = (job.code.z(), job.fillers());
        let shared = job.code.graph().core_columns().end;
        let mut messages = &mut self.messages[..];
        for row in self.edges.chunk_by(|one, next| one.row == next.row) {
            let (of_row, rest) = messages.split_at_mut(row.len() * z);
            messages = rest;
            let correction = Correction::of(row.len());
            for check in 0..z {
                let at = |edge: &Edge| edge.column * z + (check + edge.shift) % z;
                // What the bit would be thought of without this row. Of its own column that is what was received, even if the sum has
                // been clipped.
                let heard = |edge: usize, bits: &[i8], said: &[i8]| {
                    let at = at(&row[edge]);
                    if row[edge].column >= shared {
                        self.received[at]
                    } else {
                        bits[at].saturating_sub(said[edge * z + check])
                    }
                };
                let mut least = Magnitudes { first: u8::MAX, second: u8::MAX };
                let mut odd = false;
                for edge in 0..row.len() {
                    let heard = heard(edge, &self.bits, of_row);
                    let magnitude = heard.unsigned_abs();
                    odd ^= heard < 0;
                    least.second = least.second.min(least.first.max(magnitude));
                    least.first = least.first.min(magnitude);
                }
                let say = correction.correct(least);
                for edge in 0..row.len() {
                    let heard = heard(edge, &self.bits, of_row);
                    let magnitude = if heard.unsigned_abs() == least.first { say.second } else { say.first };
                    let magnitude = magnitude.cast_signed();
                    let said = if odd ^ (heard < 0) { -magnitude } else { magnitude };
                    of_row[edge * z + check] = said;
                    let at = at(&row[edge]);
                    self.bits[at] = if fillers.contains(&at) { PINNED } else { heard.saturating_add(said) };
                }
            }
        }
    }

    /// Whether the bits, as they are thought of, fulfil all checks of the rows that are used.
    pub(super) fn checks_hold(&self) -> bool {
        let Some(z) = self.job.map(|job| job.code.z()) else { return false };
        self.edges.chunk_by(|one, next| one.row == next.row).all(|row| {
            (0..z).all(|check| {
                let ones =
                    row.iter().filter(|edge| self.bits[edge.column * z + (check + edge.shift) % z] < 0);
                ones.count().is_multiple_of(2)
            })
        })
    }

    /// Packs the information bits.
    pub(super) fn pack(&self, info: &mut [u8]) {
        let Some(bits) = self.job.map(|job| job.code.info_bits()) else { return };
        for (octet, llrs) in info.iter_mut().zip(self.bits[..bits].chunks(8)) {
            *octet =
                llrs.iter().enumerate().fold(0, |octet, (at, &llr)| octet | u8::from(llr < 0) << (7 - at));
        }
    }
}
