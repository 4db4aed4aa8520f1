//! What a batch's task is, on this processor.

use crate::copies::Shelf;
use crate::device::Failure;
use crate::hash::hash;
use crate::task::{Batch, Decoding, Kind, Task, VERDICT, Verdict};
use ran::ldpc::{Code, Decoder, Encoder};
use ran::nea2::{self, Key};
use ran::simd::Processor;
use ran::simd::cipher::CipherUnit;

/// Packets whose ciphering is prepared at a time: a list on the stack.
const TOGETHER: usize = 32;

/// Does batches, with memory that it keeps from one to the next.
#[derive(Debug)]
pub struct Executor {
    tables: Shelf,
    encoder: Encoder,
    decoder: Decoder,
    cipher: CipherUnit,
}

impl Default for Executor {
    fn default() -> Self {
        Self::on(Processor::best())
    }
}

impl Executor {
    /// With the best that this processor has; it has no tables.
    pub fn new() -> Self {
        Self::default()
    }

    /// As on a processor that has these vectors and no others: with [`Processor::Any`] plain code decodes, and the crate `aes` ciphers. It has no tables.
    pub fn on(processor: Processor) -> Self {
        let cipher = if processor == Processor::Any { CipherUnit::Any } else { CipherUnit::best() };
        let (encoder, decoder) = (Encoder::on(processor), Decoder::on(processor));
        Self { tables: Shelf::default(), encoder, decoder, cipher }
    }

    /// With these tables.
    #[must_use]
    pub fn with(self, tables: Shelf) -> Self {
        Self { tables, ..self }
    }

    /// What it can do: all of it.
    pub const KINDS: [Kind; Kind::ALL.len()] = Kind::ALL;

    /// Does a batch. Whether it is done before or again makes no difference.
    pub fn execute(&mut self, batch: &mut Batch) -> Result<(), Failure> {
        let task = *batch.task();
        self.execute_parts(task, batch.parts())
    }

    /// The same for buffers that lie elsewhere, as a batch's [`parts`](Batch::parts) do.
    pub fn execute_parts(&mut self, task: Task, parts: (&[u8], &[u8], &mut [u8])) -> Result<(), Failure> {
        let (items, data, output) = parts;
        match task {
            Task::Hash(hashes) => {
                for (item, answer) in items.as_chunks().0.iter().zip(output.as_chunks_mut().0) {
                    *answer = hash(item, hashes).to_le_bytes();
                }
            }
            Task::Nea2 => cipher(self.cipher, items, data, output),
            Task::LdpcEncode(code) => self.encode(code, items, output)?,
            Task::LdpcDecode(decoding) => self.decode(&decoding, items, output)?,
            Task::Lookup(lookup) => self.tables.look_up(lookup.table, lookup.kind, items, output)?,
        }
        Ok(())
    }

    fn encode(&mut self, code: Code, items: &[u8], output: &mut [u8]) -> Result<(), Failure> {
        let (info, coded) = (code.info_bits().div_ceil(8), code.coded_bits().div_ceil(8));
        for (info, coded) in items.chunks_exact(info).zip(output.chunks_exact_mut(coded)) {
            self.encoder.encode(code, info, coded).map_err(misfit)?;
        }
        Ok(())
    }

    fn decode(&mut self, decoding: &Decoding, items: &[u8], output: &mut [u8]) -> Result<(), Failure> {
        let code = decoding.code();
        let info = code.info_bits().div_ceil(8);
        let mut received = Vec::with_capacity(decoding.received());
        for (at, answer) in output.chunks_exact_mut(VERDICT + info).enumerate() {
            // Blocks of which nothing was received have no octets.
            let from = at * decoding.received();
            received.clear();
            received
                .extend(items.iter().skip(from).take(decoding.received()).map(|octet| octet.cast_signed()));
            let (verdict, info) = answer.split_at_mut(VERDICT);
            let decoded = self
                .decoder
                .decode(code, &received, decoding.fillers(), decoding.effort(), info, |_| true)
                .map_err(misfit)?;
            let found = Verdict { iterations: decoded.iterations as u16, checks_hold: decoded.checks_hold };
            verdict.copy_from_slice(&found.octets());
        }
        Ok(())
    }
}

/// Lengths follow from the code in a batch, so `ran` has none to refuse; if it does, that is told like what any device may tell.
fn misfit(error: ran::ldpc::Error) -> Failure {
    Failure::Call { call: "ran::ldpc", why: error.to_string() }
}

/// Ciphers packets from `data` to `output`, which lie at the same places in both and in the order of their descriptors.
fn cipher(unit: CipherUnit, items: &[u8], data: &[u8], output: &mut [u8]) {
    output.copy_from_slice(data);
    let mut rest = output;
    let mut gone = 0;
    let mut descriptors = crate::task::descriptors(items).peekable();
    while descriptors.peek().is_some() {
        let mut group = Vec::with_capacity(TOGETHER);
        for descriptor in descriptors.by_ref().take(TOGETHER) {
            // What isn't where it should be is nobody's packet.
            let Some(skip) = descriptor.place.checked_sub(gone) else { continue };
            let Some((_, from)) = std::mem::take(&mut rest).split_at_mut_checked(skip) else { return };
            let Some((octets, behind)) = from.split_at_mut_checked(descriptor.length) else { return };
            gone = descriptor.place + descriptor.length;
            rest = behind;
            group.push((Key::new(descriptor.packet.key), descriptor.packet, octets));
        }
        let mut packets: Vec<_> = group
            .iter_mut()
            .map(|(key, packet, octets)| nea2::Packet {
                key,
                count: packet.count,
                bearer: packet.bearer,
                direction: packet.direction,
                data: octets,
            })
            .collect();
        nea2::apply_all_by(unit, &mut packets);
    }
}
