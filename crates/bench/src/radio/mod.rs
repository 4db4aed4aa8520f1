//! The radio side's heavy tasks ([`ran`]) on one core, and on a GPU if there is one ([`crate::devices`]): ciphering (`nea2`), coding and decoding (`ldpc`), and how many blocks noise destroys
//! (`ldpc-bler`).
//!
//! What is compared is measured in turn, round by round, so that all of it meets the same neighbours on the machine. Figures are the thread's own
//! time. The seed's figures, of another machine, are what `ratio_to_seed` divides by; they stand here as its tables have them.

pub mod bler;
pub mod ldpc;
pub mod nea2;
pub mod peer;

use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use rustix::time::{ClockId, clock_gettime};

/// Packets of a batch, as many as the seed's tables have.
pub const PACKETS: usize = 256;

/// A size of packets, or a mix of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Octets of the packets, over and over.
    octets: &'static [usize],
    /// What it is called, where it is no number.
    name: Option<&'static str>,
    /// What the seed has measured with it.
    seed: Option<Seed>,
}

/// Averages of the seed's tables, in Mbit/s, on an NVIDIA Jetson AGX Xavier: on one of its ARM cores, and on its GPU. M. Johansson and O. Pap, 2019,
/// LIU-IDA/LITH-EX-A--19/092--SE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed {
    /// AES-CTR: Table 4.5, in tenths.
    pub cipher: [u64; 2],
    /// LDPC decoding: Table 4.3, in tenths.
    pub decode: [u64; 2],
    /// Both, one after the other: Table 4.7, in hundredths; it has no mix.
    pub both: Option<[u64; 2]>,
}

impl Size {
    /// What the seed's tables have, and the shortest packets.
    pub const ALL: [Self; 5] = [
        Self { octets: &[64], name: None, seed: None },
        Self {
            octets: &[243],
            name: None,
            seed: Some(Seed { cipher: [3037, 3668], decode: [47, 530], both: Some([491, 4339]) }),
        },
        Self {
            octets: &[486],
            name: None,
            seed: Some(Seed { cipher: [3065, 6338], decode: [47, 796], both: Some([476, 5566]) }),
        },
        Self {
            octets: &[1458],
            name: None,
            seed: Some(Seed { cipher: [3083, 11_788], decode: [47, 1686], both: Some([469, 13_086]) }),
        },
        // 2 : 1 : 2.
        Self {
            octets: &[243, 1458, 486, 1458, 243],
            name: Some("imix"),
            seed: Some(Seed { cipher: [3089, 8796], decode: [47, 1300], both: None }),
        },
    ];

    /// The octets of each packet of a batch.
    pub fn packets(self) -> impl Iterator<Item = usize> {
        self.of(PACKETS)
    }

    /// The octets of so many packets, each.
    pub fn of(self, packets: usize) -> impl Iterator<Item = usize> {
        self.octets.iter().copied().cycle().take(packets)
    }

    /// Whether all packets are of one size.
    pub const fn is_one(self) -> bool {
        self.octets.len() == 1
    }

    /// The bits of a batch.
    pub fn bits(self) -> f64 {
        self.packets().sum::<usize>() as f64 * 8.0
    }

    /// As a parameter.
    pub fn param(self) -> Param {
        self.name.map_or_else(|| (self.octets[0] as u64).into(), Param::from)
    }
}

/// Something that is measured again and again, on memory that others work on too.
pub struct Case<'a, M> {
    /// What is varied.
    pub params: Vec<(&'static str, Param)>,
    /// Bits that each call works off.
    pub bits: f64,
    /// The work.
    pub work: Box<dyn FnMut(&mut M) + 'a>,
}

/// How long it is measured.
#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    /// Rounds.
    pub runs: usize,
    /// Seconds of each case in each round.
    pub seconds: f64,
}

/// Measures all cases in turn, and reports them as `bits_per_second`.
pub fn measure<M>(
    report: &mut Report,
    rounds: Rounds,
    cases: &mut [Case<'_, M>],
    memory: &mut M,
    progress: &mut dyn Progress,
) {
    let mut rates = vec![Vec::new(); cases.len()];
    // One round to warm up.
    for round in 0..=rounds.runs {
        progress.part(round as u64, rounds.runs as u64 + 1);
        for (case, rates) in cases.iter_mut().zip(&mut rates) {
            (case.work)(memory);
            let (mut calls, began) = (0, spent());
            let time = loop {
                (case.work)(memory);
                calls += 1;
                let time = spent() - began;
                if time >= rounds.seconds {
                    break time;
                }
            };
            if round > 0 {
                rates.push(case.bits * f64::from(calls) / time);
            }
        }
    }
    for (case, rates) in cases.iter().zip(&rates) {
        report.results.push(Measured::of("bits_per_second", "bit/s", &case.params, rates));
    }
    progress.keep(report);
}

/// How many times the seed's figure one of the report's is; `by` are parts of a Mbit/s that the seed's numbers count.
pub fn ratio_to_seed(report: &mut Report, params: &[(&'static str, Param)], seed: [u64; 2], by: f64) {
    let Some(found) = report.median("bits_per_second", params) else { return };
    for (platform, number) in ["jetson-cpu", "jetson-gpu"].into_iter().zip(seed) {
        let mut params = params.to_vec();
        params.push(("seed", platform.into()));
        let ratio = found / (number as f64 / by * 1e6);
        report.results.push(Measured::of("ratio_to_seed", "x", &params, &[ratio]));
    }
}

/// The thread's own time, in seconds: what others do on the same core meanwhile doesn't count.
fn spent() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
