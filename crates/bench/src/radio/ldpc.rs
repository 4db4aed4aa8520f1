//! `ldpc`: information bits that a core encodes and decodes in a second.
//!
//! **Codes**: the largest of base graph 1 at rates from 1/3 to 0.917 with 5 to 10 iterations, and that of base graph 2. Decoding doesn't stop early, and what is
//! decoded is noise: the work doesn't depend on it.
//! **Packets** as the seed's tables have them: each is a transport block of rate 1/2, in QPSK, with all that TS 38.212 does to one: CRC, segmentation, rate
//! matching, interleaving; decoded with 5 iterations, and (`decode-decipher`) deciphered after that, as its Table 4.7 has it.

use super::{Case, PACKETS, Rounds, Size, measure, ratio_to_seed};
use crate::devices::{self, DeviceError, Gpus, Job, Params, Sending, Subject, best_on_cpu, here, launched};
use crate::progress::Progress;
use crate::report::{Param, Report};
use accel::cpu::Executor;
use accel::task::{self, Decoding, Task};
use ran::ldpc::{BaseGraph, Code, Decoder, Effort, Encoder};
use ran::nea2::{self, Bearer, Count, Direction, Key, Packet};
use ran::simd::Processor;
use ran::transport_block::{self, CodeRate, Format, Layout, Modulation, RedundancyVersion, SoftBuffer};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tables::clock::Tsc;

/// What to measure.
#[derive(Clone, Debug)]
pub struct LdpcConfig {
    /// How long.
    pub rounds: Rounds,
    /// Iterations of the decoder.
    pub iterations: Vec<usize>,
    /// Packets that are transport blocks.
    pub sizes: Vec<Size>,
    /// GPUs.
    pub gpus: devices::Effort,
}

impl LdpcConfig {
    /// Long enough for steady medians.
    pub fn full() -> Self {
        let (rounds, gpus) = (Rounds { runs: 11, seconds: 0.02 }, devices::Effort::full());
        // Those that the seed has.
        let sizes = Size::ALL.into_iter().filter(|size| size.seed.is_some()).collect();
        Self { rounds, iterations: vec![5, 8, 10], sizes, gpus }
    }

    /// Briefly.
    pub fn quick() -> Self {
        let (rounds, gpus) = (Rounds { runs: 5, seconds: 0.005 }, devices::Effort::quick());
        Self { rounds, iterations: vec![5, 10], gpus, ..Self::full() }
    }
}

/// Why nothing was measured: a defect.
#[derive(Debug, thiserror::Error)]
pub enum LdpcError {
    /// A code that doesn't exist.
    #[error(transparent)]
    Code(#[from] ran::ldpc::Error),
    /// A transport block that doesn't exist.
    #[error(transparent)]
    Block(#[from] transport_block::Error),
    /// A bearer that doesn't exist.
    #[error(transparent)]
    Bearer(#[from] nea2::NoBearer),
    /// What was encoded wasn't found again.
    #[error("a transport block was not decoded")]
    NotDecoded,
    /// A GPU gives other answers.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// On a GPU: as many code blocks as the seed's batches have packets, and as many as fill it. A ring doesn't serve them.
const SENDINGS: [Sending; 2] = [launched(PACKETS, 4), launched(1024, 4)];

/// Where only a batch's code blocks are decoded, without the rest of the chain: on a core, too.
const BESIDE: [Sending; 3] = [here(PACKETS), SENDINGS[0], SENDINGS[1]];

/// Rates, and the columns of a base graph that are sent at each.
const RATES_ONE: [(&str, usize); 5] = [("1/3", 66), ("1/2", 44), ("2/3", 33), ("3/4", 29), ("0.917", 24)];
const RATES_TWO: [(&str, usize); 3] = [("1/5", 50), ("1/3", 30), ("0.83", 12)];

/// Iterations where packets are decoded, as the seed has them.
const ITERATIONS: usize = 5;

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &LdpcConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, LdpcError> {
    let mut report = Report::new("ldpc", &clock);
    let largest = 384;
    let mut gpus = Gpus::look(&config.gpus, clock);
    for (graph, rates) in [(BaseGraph::One, &RATES_ONE[..]), (BaseGraph::Two, &RATES_TWO)] {
        codes(config, Code::new(graph, largest)?, rates, &mut gpus, &mut report, progress)?;
    }
    for &size in &config.sizes {
        packets(config, size, &mut gpus, &mut report, progress)?;
    }
    gpus.note(&mut report);
    report.notes.push(format!(
        "one core, information bits; codes: no early stop, noise is decoded; packets (`size`): {PACKETS} transport blocks of rate 1/2, QPSK, whole chain with CRCs, {ITERATIONS} \
         iterations without early stop, `decode-decipher`: and NEA2 after that"
    ));
    Ok(report)
}

/// A block's memory.
struct Memory {
    info: Vec<u8>,
    coded: Vec<u8>,
    llrs: Vec<i8>,
}

/// One code: encoding, and decoding at each rate, on each processor.
fn codes(
    config: &LdpcConfig,
    code: Code,
    rates: &[(&'static str, usize)],
    gpus: &mut Gpus<'_>,
    report: &mut Report,
    progress: &mut dyn Progress,
) -> Result<(), LdpcError> {
    let mut random = SmallRng::seed_from_u64(6);
    let mut memory = Memory {
        info: vec![0; code.info_bits().div_ceil(8)],
        coded: vec![0; code.coded_bits().div_ceil(8)],
        llrs: (0..code.coded_bits()).map(|_| random.next_u32() as i8 >> 2).collect(),
    };
    random.fill_bytes(&mut memory.info);
    let (bg, z, bits) = (code.graph() as u64 + 1, code.z(), code.info_bits() as f64);
    let params = move |direction: &'static str, processor| {
        vec![
            ("bg", bg.into()),
            ("device", "cpu".into()),
            ("direction", direction.into()),
            ("processor", name(processor).into()),
            ("z", (z as u64).into()),
        ]
    };
    let encode = |processor| {
        let mut encoder = Encoder::on(processor);
        let work = move |memory: &mut Memory| {
            // The buffers have the code's lengths.
            let _ = encoder.encode(code, &memory.info, &mut memory.coded);
        };
        Case { params: params("encode", processor), bits, work: Box::new(work) }
    };
    progress.tell(&format!("base graph {bg}, encode"));
    measure(
        report,
        config.rounds,
        &mut Processor::here().map(encode).collect::<Vec<_>>(),
        &mut memory,
        progress,
    );
    let same = |direction: &'static str| -> Params {
        vec![("bg", bg.into()), ("direction", direction.into()), ("z", (z as u64).into())]
    };
    let cpu = best_on_cpu(report, "bits_per_second", &same("encode"));
    on_gpus(gpus, Task::LdpcEncode(code), same("encode"), bits, &SENDINGS, cpu, report, progress)?;
    for &(rate, columns) in rates {
        for &iterations in &config.iterations {
            let decode = |processor| {
                let (mut decoder, effort) =
                    (Decoder::on(processor), Effort { iterations, early_stop: false });
                let work = move |memory: &mut Memory| {
                    // As above.
                    let _ = decoder.decode(
                        code,
                        &memory.llrs[..columns * z],
                        0,
                        effort,
                        &mut memory.info,
                        |_| false,
                    );
                };
                let mut params = params("decode", processor);
                params.extend([("iterations", (iterations as u64).into()), ("rate", rate.into())]);
                Case { params, bits, work: Box::new(work) }
            };
            progress.tell(&format!("base graph {bg}, rate {rate}, {iterations} iterations"));
            let mut cases: Vec<_> = Processor::here().map(decode).collect();
            measure(report, config.rounds, &mut cases, &mut memory, progress);
            let mut same = same("decode");
            same.extend([("iterations", (iterations as u64).into()), ("rate", rate.into())]);
            let effort = Effort { iterations, early_stop: false };
            let task =
                Task::LdpcDecode(Decoding::new(code, columns * z, 0, effort).map_err(DeviceError::from)?);
            let cpu = best_on_cpu(report, "bits_per_second", &same);
            on_gpus(gpus, task, same, bits, &SENDINGS, cpu, report, progress)?;
        }
    }
    Ok(())
}

/// Code blocks on a GPU, of so many information bits each: noise, or what is to be encoded. It says which rates were found.
#[allow(clippy::too_many_arguments)]
fn on_gpus(
    gpus: &mut Gpus<'_>,
    task: Task,
    params: Params,
    bits: f64,
    sendings: &[Sending],
    cpu: Option<f64>,
    report: &mut Report,
    progress: &mut dyn Progress,
) -> Result<Vec<Params>, LdpcError> {
    let (mut random, mut executor) = (SmallRng::seed_from_u64(9), Executor::new());
    let mut make = |blocks| {
        let mut batch = task::Batch::new(0, task);
        let mut item = vec![0; task.item_octets()];
        for _ in 0..blocks {
            random.fill_bytes(&mut item);
            if matches!(task, Task::LdpcEncode(_)) {
                batch.push(&item)?;
            } else {
                let llrs: Vec<i8> = item.iter().map(|octet| octet.cast_signed() >> 2).collect();
                batch.push_llrs(&llrs)?;
            }
        }
        Ok((Job::done_here(batch, &mut executor)?, bits * blocks as f64))
    };
    let subject = Subject {
        rate: "bits_per_second",
        unit: "bit/s",
        params,
        items: "blocks",
        sendings,
        image: None,
        make: &mut make,
        cpu,
    };
    Ok(gpus.measure(report, subject, progress)?)
}

/// A batch of transport blocks, one for each packet.
struct Batch {
    layouts: Vec<Layout>,
    data: Vec<Vec<u8>>,
    coded: Vec<Vec<u8>>,
    llrs: Vec<Vec<i8>>,
    soft: Vec<SoftBuffer>,
    keys: Vec<Key>,
    bearer: Bearer,
}

impl Batch {
    fn new(size: Size) -> Result<Self, LdpcError> {
        let mut random = SmallRng::seed_from_u64(7);
        let layout = |octets: usize| {
            let (rate, modulation) = (CodeRate::new(0.5)?, Modulation::Qpsk);
            Layout::new(&Format {
                bits: octets * 8,
                rate,
                modulation,
                layers: 1,
                coded_bits: octets * 16,
                limited_buffer: None,
            })
        };
        let layouts: Vec<Layout> = size.packets().map(layout).collect::<Result<_, _>>()?;
        let mut octets = |length: usize| {
            let mut data = vec![0; length];
            random.fill_bytes(&mut data);
            data
        };
        let data: Vec<Vec<u8>> = layouts.iter().map(|layout| octets(layout.octets())).collect();
        let mut batch = Self {
            coded: layouts.iter().map(|layout| vec![0; layout.coded_octets()]).collect(),
            llrs: Vec::new(),
            soft: layouts.iter().map(SoftBuffer::new).collect(),
            keys: (0..PACKETS).map(|_| Key::new([0x33; 16])).collect(),
            bearer: Bearer::new(1)?,
            layouts,
            data,
        };
        batch.encode(&mut transport_block::Encoder::new())?;
        batch.llrs = batch
            .layouts
            .iter()
            .zip(&batch.coded)
            .map(|(layout, coded)| {
                (0..layout.coded_bits())
                    .map(|at| if coded[at / 8] << (at % 8) & 0x80 == 0 { 12 } else { -12 })
                    .collect()
            })
            .collect();
        let sent = batch.data.clone();
        let accepted = batch.decode(&mut transport_block::Decoder::new())?;
        if accepted == PACKETS && batch.data == sent { Ok(batch) } else { Err(LdpcError::NotDecoded) }
    }

    fn encode(&mut self, encoder: &mut transport_block::Encoder) -> Result<(), transport_block::Error> {
        let each = self.layouts.iter().zip(&self.data).zip(&mut self.coded);
        let mut each = each
            .map(|((layout, data), coded)| encoder.encode(layout, RedundancyVersion::ALL[0], data, coded));
        each.try_for_each(|done| done)
    }

    /// How many were accepted.
    fn decode(&mut self, decoder: &mut transport_block::Decoder) -> Result<usize, transport_block::Error> {
        let effort = Effort { iterations: ITERATIONS, early_stop: false };
        let mut accepted = 0;
        let blocks = self.layouts.iter().zip(&self.llrs).zip(self.soft.iter_mut().zip(&mut self.data));
        for ((layout, llrs), (soft, data)) in blocks {
            soft.clear();
            let outcome = decoder.decode(layout, RedundancyVersion::ALL[0], llrs, effort, soft, data)?;
            accepted += usize::from(outcome.accepted);
        }
        Ok(accepted)
    }

    fn decipher(&mut self) {
        let Self { data, keys, bearer, .. } = self;
        let packets = data.iter_mut().zip(keys).map(|(data, key)| Packet {
            key: &*key,
            count: Count(1),
            bearer: *bearer,
            direction: Direction::Uplink,
            data,
        });
        nea2::apply_all(&mut packets.collect::<Vec<_>>());
    }
}

/// Packets of one size as transport blocks.
fn packets(
    config: &LdpcConfig,
    size: Size,
    gpus: &mut Gpus<'_>,
    report: &mut Report,
    progress: &mut dyn Progress,
) -> Result<(), LdpcError> {
    let mut batch = Batch::new(size)?;
    let params = |direction: &'static str, processor: Processor| {
        let mut params: Vec<(&'static str, Param)> = vec![
            ("device", "cpu".into()),
            ("direction", direction.into()),
            ("processor", name(processor).into()),
            ("rate", "1/2".into()),
            ("size", size.param()),
        ];
        if direction != "encode" {
            params.push(("iterations", (ITERATIONS as u64).into()));
        }
        params
    };
    let mut cases: Vec<Case<'_, Batch>> = Vec::new();
    for processor in Processor::here() {
        let case = |direction, work| Case { params: params(direction, processor), bits: size.bits(), work };
        // That all of it can be coded was seen when the batch was made.
        let mut encoder = transport_block::Encoder::on(processor);
        cases.push(case(
            "encode",
            Box::new(move |batch| {
                let _ = batch.encode(&mut encoder);
            }),
        ));
        let mut decoder = transport_block::Decoder::on(processor);
        cases.push(case(
            "decode",
            Box::new(move |batch| {
                let _ = batch.decode(&mut decoder);
            }),
        ));
        let mut decoder = transport_block::Decoder::on(processor);
        cases.push(case(
            "decode-decipher",
            Box::new(move |batch| {
                let _ = batch.decode(&mut decoder);
                batch.decipher();
            }),
        ));
    }
    progress.tell(&format!("packets of {} octets", size.param()));
    measure(report, config.rounds, &mut cases, &mut batch, progress);
    if let Some(seed) = size.seed {
        let best = Processor::best();
        ratio_to_seed(report, &params("decode", best), seed.decode, 10.0);
        if let Some(both) = seed.both {
            ratio_to_seed(report, &params("decode-decipher", best), both, 100.0);
        }
    }
    // A GPU decodes code blocks; the rest of the chain is the host's. A batch has one code, so there is none of the mix.
    if let (true, Some(layout), Some(seed)) = (size.is_one(), batch.layouts.first(), size.seed) {
        let effort = Effort { iterations: ITERATIONS, early_stop: false };
        // Fillers are known, and lie among what was received.
        let received = (layout.sent(0).len() + layout.fillers()).min(layout.code().coded_bits());
        let decoding = Decoding::new(layout.code(), received, layout.fillers(), effort);
        let task = Task::LdpcDecode(decoding.map_err(DeviceError::from)?);
        let bits = layout.bits() as f64 / layout.code_blocks() as f64;
        let params = vec![
            ("direction", "decode-blocks".into()),
            ("iterations", (ITERATIONS as u64).into()),
            ("rate", "1/2".into()),
            ("size", size.param()),
        ];
        for params in on_gpus(gpus, task, params, bits, &BESIDE, None, report, progress)? {
            ratio_to_seed(report, &params, seed.decode, 10.0);
        }
    }
    Ok(())
}

/// A processor as a parameter.
pub(super) const fn name(processor: Processor) -> &'static str {
    match processor {
        Processor::Any => "any",
        Processor::Avx2 => "avx2",
        Processor::Avx512 => "avx512",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn every_code_rate_and_size_has_its_figures() {
        let rounds = Rounds { runs: 1, seconds: 0.0 };
        let gpus = devices::Effort { most_items: 1, ..devices::Effort::of_tests() };
        // One of a size, and the mix.
        let sizes = vec![Size::ALL[1], Size::ALL[4]];
        let config = LdpcConfig { rounds, iterations: vec![1, 2], sizes: sizes.clone(), gpus };
        let report = run(&config, Tsc::process(), &mut Silent).unwrap();
        let processors = Processor::here().count();
        for (bg, rates) in [(1_u64, &RATES_ONE[..]), (2, &RATES_TWO)] {
            // Launched, with copies and without.
            for (device, each) in [("cpu", processors), ("cuda", 2)] {
                let of = |direction: &'static str| {
                    [("bg", bg.into()), ("direction", direction.into()), ("device", device.into())]
                };
                assert_eq!(report.all("bits_per_second", &of("encode")).count(), each);
                assert_eq!(report.all("bits_per_second", &of("decode")).count(), each * rates.len() * 2);
                let ratios = report.all("ratio_to_cpu", &of("decode")).count();
                assert_eq!(ratios, if device == "cuda" { each * rates.len() * 2 } else { 0 });
            }
        }
        for size in sizes {
            let of = [("size", size.param())];
            // Of code blocks alone, a core's figure, and those of launches with copies and without; beside the seed's two the latter.
            let (blocks, beside) = if size.is_one() { (3, 4) } else { (0, 0) };
            assert_eq!(report.all("bits_per_second", &of).count(), 3 * processors + blocks);
            assert!(report.all("bits_per_second", &of).all(|result| result.median > 0.0));
            let both = size.seed.and_then(|seed| seed.both).map_or(0, |_| 2);
            assert_eq!(report.all("ratio_to_seed", &of).count(), 2 + both + beside);
        }
    }
}
