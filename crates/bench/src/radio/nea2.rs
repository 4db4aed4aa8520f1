//! `nea2`: bits that a core ciphers in a second, each packet with a key and a COUNT of its own.
//!
//! A batch of 256 packets lies in the second cache. Keys are expanded for each packet (`fresh`), as one does who keeps 16 octets for each of many
//! UEs, or were expanded before (`expanded`). Where another implementation can be had it takes part in the same rounds, on the same packets, and
//! its result is compared with ours first.

use super::peer::{self, Bring, Peer};
use super::{Case, PACKETS, Rounds, Size, measure, ratio_to_seed};
use crate::devices::{DeviceError, Effort, Gpus, Job, Sending, Subject, best_on_cpu, launched, rung};
use crate::progress::Progress;
use crate::report::{Param, Report};
use accel::cpu::Executor;
use accel::task;
use ran::nea2::{self, Bearer, Count, Direction, ExpandedKey, Key, Packet};
use ran::simd::cipher::CipherUnit;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tables::clock::Tsc;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct Nea2Config {
    /// How long.
    pub rounds: Rounds,
    /// Another implementation to compare with.
    pub peer: Bring,
    /// GPUs.
    pub gpus: Effort,
}

impl Nea2Config {
    /// Long enough for steady medians.
    pub fn full() -> Self {
        Self { rounds: Rounds { runs: 15, seconds: 0.02 }, peer: absent, gpus: Effort::full() }
    }

    /// Briefly.
    pub fn quick() -> Self {
        Self { rounds: Rounds { runs: 5, seconds: 0.01 }, gpus: Effort::quick(), ..Self::full() }
    }
}

/// No peer.
fn absent() -> Result<Box<dyn Peer>, String> {
    Err("this program was built without one".into())
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum Nea2Error {
    /// The peer ciphers otherwise: a defect of one of the two.
    #[error("{0} and Millrace cipher the same packets differently")]
    Differs(&'static str),
    /// A bearer that doesn't exist: a defect.
    #[error(transparent)]
    Bearer(#[from] nea2::NoBearer),
    /// A GPU ciphers otherwise: a defect.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// On a GPU: as many packets as the seed's batches have, and as many as fill it.
const SENDINGS: [Sending; 3] = [launched(PACKETS, 8), launched(16_384, 4), rung(PACKETS, 16)];

/// A batch of packets, one behind the other, and what they are ciphered with.
struct Batch {
    sizes: Vec<usize>,
    data: Vec<u8>,
    keys: Vec<(Key, [u8; 16])>,
    expanded: Vec<ExpandedKey>,
    round_keys: Vec<peer::RoundKeys>,
    bearer: Bearer,
}

impl Batch {
    fn new(size: Size, peer: Option<&dyn Peer>) -> Result<Self, Nea2Error> {
        let mut random = SmallRng::seed_from_u64(5);
        let sizes: Vec<usize> = size.packets().collect();
        let mut octets = || {
            let mut key = [0; 16];
            random.fill_bytes(&mut key);
            key
        };
        let keys: Vec<_> = (0..PACKETS).map(|_| octets()).map(|key| (Key::new(key), key)).collect();
        let no_keys = peer::RoundKeys([0; 176]);
        Ok(Self {
            // Each packet begins on a line of its own, as in a buffer of its own.
            data: vec![0x5a; sizes.iter().map(|size| size.next_multiple_of(64)).sum()],
            sizes,
            expanded: keys.iter().map(|(key, _)| key.expand()).collect(),
            round_keys: keys
                .iter()
                .map(|(_, key)| peer.map_or_else(|| no_keys.clone(), |peer| peer.expand(key)))
                .collect(),
            keys,
            bearer: Bearer::new(5)?,
        })
    }

    /// Each packet's octets.
    fn packets<'a>(sizes: &'a [usize], mut data: &'a mut [u8]) -> impl Iterator<Item = &'a mut [u8]> {
        sizes.iter().map(move |&size| {
            let (line, rest) = std::mem::take(&mut data).split_at_mut(size.next_multiple_of(64));
            data = rest;
            &mut line[..size]
        })
    }

    fn fresh(&mut self, unit: CipherUnit) {
        let Self { sizes, data, keys, bearer, .. } = self;
        let mut packets = Vec::with_capacity(PACKETS);
        packets.extend(Self::packets(sizes, data).zip(keys).zip(0..).map(|((data, (key, _)), count)| {
            Packet { key: &*key, count: Count(count), bearer: *bearer, direction: Direction::Downlink, data }
        }));
        nea2::apply_all_by(unit, &mut packets);
    }

    fn expanded(&mut self, unit: CipherUnit) {
        let Self { sizes, data, expanded, bearer, .. } = self;
        let mut packets = Vec::with_capacity(PACKETS);
        packets.extend(Self::packets(sizes, data).zip(expanded).zip(0..).map(|((data, key), count)| {
            Packet { key: &*key, count: Count(count), bearer: *bearer, direction: Direction::Downlink, data }
        }));
        nea2::apply_all_expanded_by(unit, &mut packets);
    }

    fn by_peer(&mut self, peer: &mut dyn Peer, expanded: bool) -> bool {
        let Self { sizes, data, keys, round_keys, bearer, .. } = self;
        let mut packets = Vec::with_capacity(PACKETS);
        packets.extend(Self::packets(sizes, data).zip(keys.iter().zip(round_keys)).zip(0_u32..).map(
            |((data, ((_, key), round_keys)), count)| {
                let mut counter = [0; 16];
                counter[..4].copy_from_slice(&count.to_be_bytes());
                counter[4] = bearer.number() << 3 | (Direction::Downlink as u8) << 2;
                peer::Packet { key, round_keys, counter, data }
            },
        ));
        peer.apply(&mut packets, expanded)
    }
}

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &Nea2Config, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, Nea2Error> {
    let mut report = Report::new("nea2", &clock);
    let mut peers = match (config.peer)() {
        Ok(peer) => {
            report.notes.push(format!("{} is {}", peer.name(), peer.version()));
            // One for each way to use it, so that each case has its own.
            [Some(peer), (config.peer)().ok()]
        }
        Err(why) => {
            report.notes.push(format!("no ipsec-mb to compare with: {why}"));
            [None, None]
        }
    };
    let mut gpus = Gpus::look(&config.gpus, clock);
    for size in Size::ALL {
        let mut batch = Batch::new(size, peers[0].as_deref())?;
        let params = |engine: &'static str, processor: &'static str, key: &'static str| {
            let processor = (!processor.is_empty()).then(|| ("processor", Param::from(processor)));
            let all = [
                ("device", "cpu".into()),
                ("engine", engine.into()),
                ("key", key.into()),
                ("size", size.param()),
            ];
            all.into_iter().chain(processor).collect::<Vec<_>>()
        };
        let [fresh, expanded] = &mut peers;
        let mut cases: Vec<Case<'_, Batch>> = Vec::new();
        for unit in CipherUnit::here() {
            let case =
                |key, work| Case { params: params("millrace", name(unit), key), bits: size.bits(), work };
            cases.push(case("fresh", Box::new(move |batch: &mut Batch| batch.fresh(unit))));
            cases.push(case("expanded", Box::new(move |batch: &mut Batch| batch.expanded(unit))));
        }
        for (peer, is_expanded, key) in [(fresh, false, "fresh"), (expanded, true, "expanded")] {
            let Some(peer) = peer.as_deref_mut() else { continue };
            if !agrees(&mut batch, peer, is_expanded) {
                return Err(Nea2Error::Differs(peer.name()));
            }
            let params = params(peer.name(), "", key);
            let work = Box::new(move |batch: &mut Batch| {
                batch.by_peer(peer, is_expanded);
            });
            cases.push(Case { params, bits: size.bits(), work });
        }
        progress.tell(&format!("packets of {} octets", size.param()));
        measure(&mut report, config.rounds, &mut cases, &mut batch, progress);
        let best = name(CipherUnit::best());
        if let Some(seed) = size.seed {
            ratio_to_seed(&mut report, &params("millrace", best, "fresh"), seed.cipher, 10.0);
        }
        on_gpus(&mut gpus, size, &mut report, progress)?;
    }
    gpus.note(&mut report);
    report.notes.push(format!(
        "one core, {PACKETS} packets a batch, all of them in the second cache; `fresh`: the key of each packet is expanded, `expanded`: it was before"
    ));
    Ok(report)
}

/// The same packets on a GPU. Each has its key with it, which is expanded there.
fn on_gpus(
    gpus: &mut Gpus<'_>,
    size: Size,
    report: &mut Report,
    progress: &mut dyn Progress,
) -> Result<(), Nea2Error> {
    let params = vec![("engine", "millrace".into()), ("key", "fresh".into()), ("size", size.param())];
    let (mut random, mut executor, bearer) = (SmallRng::seed_from_u64(8), Executor::new(), Bearer::new(5)?);
    let mut make = |packets| {
        let mut batch = task::Batch::new(0, task::Task::Nea2);
        let mut bits = 0;
        for (octets, count) in size.of(packets).zip(0..) {
            let (mut key, mut data) = ([0; 16], vec![0; octets]);
            random.fill_bytes(&mut key);
            random.fill_bytes(&mut data);
            let packet = task::Packet { key, count: Count(count), bearer, direction: Direction::Downlink };
            batch.push_packet(packet, &data)?;
            bits += 8 * octets;
        }
        Ok((Job::done_here(batch, &mut executor)?, bits as f64))
    };
    let subject = Subject {
        rate: "bits_per_second",
        unit: "bit/s",
        cpu: best_on_cpu(report, "bits_per_second", &params),
        params,
        items: "packets",
        sendings: &SENDINGS,
        image: None,
        make: &mut make,
    };
    for params in gpus.measure(report, subject, progress)? {
        if let Some(seed) = size.seed {
            ratio_to_seed(report, &params, seed.cipher, 10.0);
        }
    }
    Ok(())
}

/// Whether the peer undoes what we did.
fn agrees(batch: &mut Batch, peer: &mut dyn Peer, expanded: bool) -> bool {
    let before = batch.data.clone();
    batch.fresh(CipherUnit::best());
    let changed = batch.data != before;
    changed && batch.by_peer(peer, expanded) && batch.data == before
}

/// A unit as a parameter.
const fn name(unit: CipherUnit) -> &'static str {
    match unit {
        CipherUnit::Any => "any",
        CipherUnit::Aes => "aes-ni",
        CipherUnit::Vaes => "vaes-256",
        CipherUnit::Vaes512 => "vaes-512",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::Silent;

    /// One that does what Millrace does, or not quite.
    struct Twin {
        right: bool,
    }

    impl Peer for Twin {
        fn name(&self) -> &'static str {
            "twin"
        }

        fn version(&self) -> String {
            "ourselves".into()
        }

        fn expand(&self, _: &[u8; 16]) -> peer::RoundKeys {
            peer::RoundKeys([0; 176])
        }

        fn apply(&mut self, packets: &mut [peer::Packet<'_>], _: bool) -> bool {
            for packet in packets {
                let count = u32::from_be_bytes(*packet.counter.first_chunk().unwrap());
                nea2::apply(Packet {
                    key: &Key::new(*packet.key),
                    count: Count(count ^ u32::from(!self.right)),
                    bearer: Bearer::new(packet.counter[4] >> 3).unwrap(),
                    direction: Direction::Downlink,
                    data: packet.data,
                });
            }
            true
        }
    }

    #[test]
    fn every_size_and_unit_has_its_figure_beside_the_peer_s_and_the_seed_s() {
        let rounds = Rounds { runs: 1, seconds: 0.0 };
        let peer = || Ok(Box::new(Twin { right: true }) as Box<dyn Peer>);
        let config = Nea2Config { rounds, peer, gpus: Effort::of_tests() };
        let report = run(&config, Tsc::process(), &mut Silent).unwrap();
        for size in Size::ALL {
            for key in ["fresh", "expanded"] {
                let of = |engine: &'static str| {
                    [
                        ("device", "cpu".into()),
                        ("engine", engine.into()),
                        ("key", key.into()),
                        ("size", size.param()),
                    ]
                };
                assert_eq!(
                    report.all("bits_per_second", &of("millrace")).count(),
                    CipherUnit::here().count()
                );
                assert!(report.median("bits_per_second", &of("twin")).unwrap() > 0.0);
            }
            // Launched in two ways with copies and without, and by the ring; each of these, and the core's, beside the seed's two.
            for (device, rates) in [("cuda", 4), ("cuda-ring", 1)] {
                let of = [("device", device.into()), ("size", size.param())];
                assert_eq!(report.all("bits_per_second", &of).count(), rates);
                assert_eq!(report.all("ratio_to_cpu", &of).count(), rates);
            }
            let ratios = report.all("ratio_to_seed", &[("size", size.param())]).count();
            assert_eq!(ratios, if size.seed.is_some() { 12 } else { 0 });
        }
    }

    #[test]
    fn a_peer_that_ciphers_otherwise_is_no_peer_and_one_that_is_absent_is_told() {
        let rounds = Rounds { runs: 1, seconds: 0.0 };
        let peer = || Ok(Box::new(Twin { right: false }) as Box<dyn Peer>);
        let config = Nea2Config { rounds, peer, gpus: Effort::of_tests() };
        assert!(matches!(run(&config, Tsc::process(), &mut Silent), Err(Nea2Error::Differs("twin"))));
        let config = Nea2Config { rounds, gpus: Effort::of_tests(), ..Nea2Config::quick() };
        let report = run(&config, Tsc::process(), &mut Silent).unwrap();
        assert!(report.notes[0].starts_with("no ipsec-mb to compare with"));
    }
}
