//! `profiles`: six profiles of packet sizes and directions, as a share of a 100 Gbit/s line that one core fills.
//!
//! The profiles are those of the Viettel High Tech test of an FPGA SmartNIC (table 6 of its report): one to three send the same
//! sizes both ways, four to six send eleven times as many octets down as up, as that operator's subscribers do; each with a
//! quarter, a half and three quarters of the packets from the radio side. There too 131,072 subscribers have two bearers of
//! 32 flows: 8,388,608 flow entries. Here a bearer is a session with filters, and sixteen 5-tuples that send both ways are
//! its 32 entries.
//!
//! **Sizes** are those of frames as they arrive at the UPF, from the Ethernet header to the last octet of payload, without the
//! frame check sequence: the report counts 24 octets between frames, which are preamble, gap and check sequence. Downlink
//! frames leave 44 octets longer than they came, uplink frames 44 shorter.
//!
//! A core that does nothing else is measured; how many it takes to fill the line is arithmetic.

use crate::flows;
use crate::path::{self, Costs, Mix, Path, PathError, Subscriber};
use crate::progress::Progress;
use crate::report::{Measured, Param, Report};
use crate::scene::Scene;
use io::replay::Stream;
use tables::clock::Tsc;

/// 5-tuples of a bearer: half its flow entries.
const TUPLES: usize = 16;
/// Octets between two frames on a line: preamble, frame check sequence and gap.
pub const BETWEEN: usize = 24;
/// The line that the report's SmartNIC fills, in bit/s.
pub const LINE: f64 = 100e9;

/// The sizes of an uplink and a downlink frame.
pub type Sizes = (usize, usize);

/// One of the six.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its number, from 1.
    pub number: u64,
    /// Quarters of the packets that come from the radio side.
    pub uplink_quarters: usize,
    /// Pairs of sizes.
    pub sizes: &'static [Sizes],
}

const ALIKE: &[Sizes] = &[(128, 128), (256, 256), (512, 512), (650, 650), (1024, 1024), (1528, 1528)];
const ELEVENFOLD: &[Sizes] = &[(128, 1408), (256, 2816), (512, 5632), (576, 6336), (750, 8250)];

/// All six.
pub const PROFILES: [Profile; 6] = [
    Profile { number: 1, uplink_quarters: 1, sizes: ALIKE },
    Profile { number: 2, uplink_quarters: 2, sizes: ALIKE },
    Profile { number: 3, uplink_quarters: 3, sizes: ALIKE },
    Profile { number: 4, uplink_quarters: 1, sizes: ELEVENFOLD },
    Profile { number: 5, uplink_quarters: 2, sizes: ELEVENFOLD },
    Profile { number: 6, uplink_quarters: 3, sizes: ELEVENFOLD },
];

impl Profile {
    /// Bits that the mean packet takes on the line that it arrives by.
    pub fn bits_per_packet(&self, (uplink, downlink): Sizes) -> f64 {
        let share = self.uplink_quarters as f64 / 4.0;
        8.0 * (uplink as f64 * share + downlink as f64 * (1.0 - share) + BETWEEN as f64)
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct ProfilesConfig {
    /// Flow entries.
    pub flows: usize,
    /// Runs of each profile and size.
    pub runs: usize,
    /// Packets of each run.
    pub packets: usize,
    /// Where they are measured.
    pub scenes: Vec<Scene>,
}

impl ProfilesConfig {
    /// All flows of the report.
    pub fn full() -> Self {
        Self { flows: 8_388_608, runs: 5, packets: 2_000_000, scenes: vec![Scene::MANY, Scene::MANY6] }
    }

    /// Fewer flows, briefly.
    pub fn quick() -> Self {
        Self { flows: 1 << 17, runs: 3, packets: 200_000, ..Self::full() }
    }
}

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(config: &ProfilesConfig, clock: Tsc, progress: &mut dyn Progress) -> Result<Report, PathError> {
    let mut report = Report::new("profiles", &clock);
    for &scene in &config.scenes {
        measure(&mut report, config, scene, clock, progress)?;
    }
    report.notes.push(format!(
        "{} flow entries, {TUPLES} 5-tuples both ways a session; size: octets of arriving frames without FCS (uplink's; \
         downlink_size: downlink's); bits count {BETWEEN} octets between frames; one core, no packet dropped; the port \
         (port_cycles_per_packet, included) writes headers only, as the core sees of a NIC's work; scenes are those of forward",
        config.flows.next_multiple_of(2 * TUPLES)
    ));
    report.notes.push(
        "line_share_percent is of 100 Gbit/s; cores_for_line is arithmetic (100 Gbit/s divided by what one core did), not \
         measured"
            .into(),
    );
    Ok(report)
}

/// All profiles in one scene.
fn measure(
    report: &mut Report,
    config: &ProfilesConfig,
    scene: Scene,
    clock: Tsc,
    progress: &mut dyn Progress,
) -> Result<(), PathError> {
    let (mut path, packets) = prepare(scene, config.flows, clock, progress)?;
    let before = std::mem::take(&mut report.results);
    let mut results = PROFILES.map(|_| Vec::new());
    for sizes in [ALIKE, ELEVENFOLD].concat() {
        progress.tell(&format!("IPv{}: packets of {} B up, {} B down", scene.ip(), sizes.0, sizes.1));
        let (uplink, downlink) = streams(scene, sizes, &packets)?;
        for (profile, results) in PROFILES.iter().zip(&mut results) {
            if !profile.sizes.contains(&sizes) {
                continue;
            }
            let (ip, number) = (scene.ip(), profile.number);
            progress.tell(&format!("IPv{ip}, profile {number}: {} B up, {} B down", sizes.0, sizes.1));
            let mix = || {
                let (uplink, downlink) = (scene.receive(&uplink), scene.receive(&downlink));
                Mix::both(uplink, downlink, profile.uplink_quarters)
            };
            // Each run goes on where the last one ended.
            let (mut through, mut back) = (mix(), mix());
            let (mut whole, mut port) = (Costs::default(), Vec::new());
            for run in 0..=config.runs {
                let cost = path.forward(&mut through, config.packets)?;
                let own = path.port_alone(&mut back, config.packets);
                if run > 0 {
                    whole.push(cost);
                    port.push(own);
                }
            }
            results.extend(figures(scene, profile, sizes, &whole, &port, clock.hz() as f64));
        }
        report.results = before.iter().cloned().chain(results.concat()).collect();
        progress.keep(report);
    }
    all_known(&path, 2 * packets.len())
}

/// What is said of one profile and size.
fn figures(
    scene: Scene,
    profile: &Profile,
    sizes: Sizes,
    whole: &Costs,
    port: &[f64],
    hz: f64,
) -> impl Iterator<Item = Measured> {
    let params = params(scene, profile, sizes);
    // A rate is what comes of everything that a core does.
    let of =
        |figure: &dyn Fn(f64) -> f64| whole.means.iter().map(|cycles| figure(*cycles)).collect::<Vec<_>>();
    let bits = profile.bits_per_packet(sizes);
    [
        Measured::of("cycles_per_packet", "cycles", &params, &whole.medians),
        Measured::of("mean_cycles_per_packet", "cycles", &params, &whole.means),
        Measured::of("port_cycles_per_packet", "cycles", &params, port),
        Measured::of("packets_per_second", "1/s", &params, &of(&|cycles| hz / cycles)),
        Measured::of("bits_per_second", "bit/s", &params, &of(&|cycles| hz / cycles * bits)),
        Measured::of("line_share_percent", "%", &params, &of(&|cycles| 100.0 * hz / cycles * bits / LINE)),
        Measured::of("cores_for_line", "cores", &params, &of(&|cycles| LINE * cycles / hz / bits)),
    ]
    .into_iter()
}

/// How profile and sizes are named.
pub fn params(scene: Scene, profile: &Profile, (uplink, downlink): Sizes) -> [(&'static str, Param); 6] {
    [
        ("downlink_size", (downlink as u64).into()),
        ("ip", scene.ip().into()),
        ("profile", profile.number.into()),
        ("scene", scene.name.into()),
        ("servers", scene.place().into()),
        ("size", (uplink as u64).into()),
    ]
}

/// Sessions for so many flow entries, all of them known, and the packets of one direction.
pub fn prepare(
    scene: Scene,
    flows: usize,
    clock: Tsc,
    progress: &mut dyn Progress,
) -> Result<(Path, Vec<(Subscriber, u16)>), PathError> {
    let mut path = Path::within(scene, clock, |config| flows::room_for(flows, config))?;
    progress.tell(&format!("IPv{}, {flows} flows: establishing their sessions", scene.ip()));
    let subscribers = flows::establish(&mut path, flows.div_ceil(2 * TUPLES), progress)?;
    let mut packets = tuples(&subscribers);
    for uplink in [true, false] {
        let direction = if uplink { "uplink" } else { "downlink" };
        progress.tell(&format!("IPv{}, {flows} flows: learning, {direction}", scene.ip()));
        flows::learn(&mut path, uplink, &packets, progress)?;
    }
    // Flows lie in memory in the order in which they were learned; packets come in another.
    path::shuffle(&mut packets);
    all_known(&path, 2 * packets.len())?;
    Ok((path, packets))
}

/// A packet of each of these subscribers' 5-tuples, in the order in which they come.
pub fn tuples(subscribers: &[Subscriber]) -> Vec<(Subscriber, u16)> {
    let mut packets = flows::each_flow(subscribers, TUPLES);
    path::shuffle(&mut packets);
    packets
}

/// The packets of both directions in these sizes.
pub fn streams(
    scene: Scene,
    sizes: Sizes,
    packets: &[(Subscriber, u16)],
) -> Result<(Stream, Stream), PathError> {
    let uplink = scene.stream_of_frames(true, sizes.0, packets.iter().copied())?;
    // Not the order of the other direction, in which a packet would find its session's lines still in cache.
    let downlink = scene.stream_of_frames(false, sizes.1, packets.iter().rev().copied())?;
    Ok((uplink, downlink))
}

/// Whether these are the flows that are known, no more and no fewer.
fn all_known(path: &Path, expected: usize) -> Result<(), PathError> {
    let (expected, found) = (expected as u64, path.datapath.counters().flows.live());
    if expected == found { Ok(()) } else { Err(PathError::FlowsLost { expected, found }) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn every_profile_and_size_is_forwarded_whole_in_its_mix() {
        for scene in [Scene::SIMPLE, Scene::MANY, Scene::MANY6] {
            forwarded_whole(scene);
        }
    }

    fn forwarded_whole(scene: Scene) {
        let (mut path, packets) = prepare(scene, 1024, Tsc::process(), &mut Silent).unwrap();
        for profile in PROFILES {
            for &sizes in profile.sizes {
                let (uplink, downlink) = streams(scene, sizes, &packets).unwrap();
                let before = path.datapath.counters().clone();
                let mut mix =
                    Mix::both(scene.receive(&uplink), scene.receive(&downlink), profile.uplink_quarters);
                path.forward(&mut mix, 512).unwrap();
                let after = path.datapath.counters();
                let packets = after.uplink.packets - before.uplink.packets;
                assert_eq!(packets, 128 * profile.uplink_quarters as u64);
                assert_eq!(after.sent - before.sent, 512);
                // Counted are the UEs' packets: less the Ethernet header, and uplink less the tunnel.
                let bytes = (after.uplink.bytes - before.uplink.bytes) / packets;
                assert_eq!(bytes, sizes.0 as u64 - 14 - 44);
                let bytes = (after.downlink.bytes - before.downlink.bytes) / (512 - packets);
                assert_eq!(bytes, sizes.1 as u64 - 14);
            }
        }
        all_known(&path, 1024).unwrap();
    }

    #[test]
    fn a_line_of_the_profiles_frames() {
        let bits = |number: usize, size: usize| {
            PROFILES[number - 1].bits_per_packet(PROFILES[number - 1].sizes[size])
        };
        assert!((bits(1, 0) - 8.0 * 152.0).abs() < 1e-9);
        assert!((bits(4, 4) - 8.0 * (24.0 + 750.0 / 4.0 + 8250.0 * 0.75)).abs() < 1e-9);
        assert!((bits(6, 0) - 8.0 * (24.0 + 128.0 * 0.75 + 1408.0 / 4.0)).abs() < 1e-9);
    }
}
