//! `seeds`: every figure of the thesis that the two models of execution are compared by, regenerated in one go, and what goes beyond
//! them.
//!
//! Each scenario can be run by itself; here all run one after the other, and what they found goes into one page, with a file of
//! JSON and one of SVG for each beside it. A scenario that fails doesn't stop the others: the page says so.

use crate::chart::Illustrated;
use crate::crew::CrewError;
use crate::html::{self, Section};
use crate::progress::Progress;
use crate::{active_sessions, cores, hand_off, moves, payload_size, scale, skew};
use std::path::Path;
use tables::clock::Tsc;

/// What no figure of these contains.
const LEFT_OUT: &[&str] = &[
    "Each receive queue replays packets from memory on the thread that polls it, and sending throws them away: no PCIe, no DMA, no \
     descriptor rings of a device, no interrupts, no link that fills up.",
    "A packet's bytes beyond its headers are not written or read, as a core would not; a NIC would take memory bandwidth for them.",
    "Packets of a step arrive at even distances; a network's come in bursts.",
    "Rates are of this machine's threads, which may be two of one core, and share it with what else runs.",
    "The receive ring and the redirection table of the figures over time are a model: a change takes effect within some microseconds.",
];

/// One of the scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// Packets a second by payload.
    PayloadSize,
    /// By sessions.
    Sessions,
    /// By workers.
    Cores,
    /// One worker's load stepped up.
    Skew,
    /// A worker joins and leaves.
    Scale,
    /// Shards move between busy workers.
    Moves,
    /// Packets come to another worker than their owner.
    HandOff,
}

impl Scenario {
    /// All, in the order of the figures.
    pub const ALL: [Self; 7] =
        [Self::PayloadSize, Self::Sessions, Self::Cores, Self::Skew, Self::Scale, Self::Moves, Self::HandOff];

    /// As on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PayloadSize => "payload-size",
            Self::Sessions => "sessions",
            Self::Cores => "cores",
            Self::Skew => "skew",
            Self::Scale => "scale",
            Self::Moves => "moves",
            Self::HandOff => "hand-off",
        }
    }

    /// The figures whose shape it has, and what to look for.
    const fn explained(self) -> (&'static str, &'static str) {
        match self {
            Self::PayloadSize => (
                "The shape of figure 5.2.",
                "Packets a second should not depend on payload, and run-to-completion should do more than pipeline per core.",
            ),
            Self::Sessions => {
                ("The shape of figure 5.3.", "How much many sessions cost: caches, then memory.")
            }
            Self::Cores => (
                "The shape of figures 5.4 and 5.5.",
                "Throughput grows with workers as far as the host gives cores; what is dashed was not measured.",
            ),
            Self::Skew => (
                "The shape of figure 5.6.",
                "One worker's load grows. Nothing should be lost while all workers together can take it.",
            ),
            Self::Scale => (
                "The shape of figures 5.7 and 5.8.",
                "A worker joins and leaves. Live moves should lose and reorder nothing; stopping the port loses 400 ms.",
            ),
            Self::Moves => (
                "Beyond the thesis.",
                "Shards move between busy workers all the time: how long their packets wait, and what all others notice.",
            ),
            Self::HandOff => (
                "Beyond the thesis.",
                "A NIC that can't hash inside tunnels sends packets to the wrong worker, which hands them to the owner.",
            ),
        }
    }

    /// Measures one; `progress` is told what is being measured, and what came of it.
    pub fn run(self, quick: bool, clock: Tsc, progress: &mut dyn Progress) -> Result<Illustrated, CrewError> {
        match self {
            Self::PayloadSize => {
                use payload_size::PayloadSizeConfig as Config;
                payload_size::run(&if quick { Config::quick() } else { Config::full() }, clock, progress)
            }
            Self::Sessions => {
                use active_sessions::SessionsConfig as Config;
                active_sessions::run(&if quick { Config::quick() } else { Config::full() }, clock, progress)
            }
            Self::Cores => {
                use cores::CoresConfig as Config;
                cores::run(&if quick { Config::quick() } else { Config::full() }, clock, progress)
            }
            Self::Skew => {
                use skew::SkewConfig as Config;
                skew::run(&if quick { Config::quick() } else { Config::full() }, clock, progress)
            }
            Self::Scale => {
                use scale::ScaleConfig as Config;
                scale::run(&if quick { Config::quick() } else { Config::full() }, clock, progress)
            }
            Self::Moves => {
                use moves::MovesConfig as Config;
                moves::run(&if quick { Config::quick() } else { Config::full() }, clock, progress)
            }
            Self::HandOff => {
                use hand_off::HandOffConfig as Config;
                hand_off::run(&if quick { Config::quick() } else { Config::full() }, clock, progress)
            }
        }
    }
}

/// What all came to.
pub struct Summary {
    /// What each scenario found.
    pub found: Vec<(Scenario, Illustrated)>,
    /// Scenarios that ended with an error.
    pub failed: Vec<(&'static str, String)>,
}

/// Runs all with `run`, and writes a page and each scenario's JSON and SVG into a directory, which is made if it isn't there; after
/// each one, so that what has been measured stays if the process is ended. `command`: what was typed.
pub fn run(
    out: &Path,
    command: &str,
    run: &mut dyn FnMut(Scenario) -> Result<Illustrated, CrewError>,
) -> Result<Summary, CrewError> {
    std::fs::create_dir_all(out).map_err(|source| unwritten(out, source))?;
    let mut summary = Summary { found: Vec::new(), failed: Vec::new() };
    // Before anything is measured: whether it can be written at all.
    write_page(out, command, &summary)?;
    for scenario in Scenario::ALL {
        match run(scenario) {
            Ok(found) => {
                found.figure.write(&out.join(scenario.name()).with_extension("svg"))?;
                let json = serde_json::to_string_pretty(&found.report).unwrap_or_default() + "\n";
                write(&out.join(scenario.name()).with_extension("json"), &json)?;
                summary.found.push((scenario, found));
            }
            Err(error) => summary.failed.push((scenario.name(), error.to_string())),
        }
        write_page(out, command, &summary)?;
    }
    Ok(summary)
}

/// The page of what has been found so far, which is what remains of a run that is ended early.
fn write_page(out: &Path, command: &str, summary: &Summary) -> Result<(), CrewError> {
    let sections: Vec<Section<'_>> = summary
        .found
        .iter()
        .map(|(scenario, found)| {
            let (shape_of, about) = scenario.explained();
            Section { shape_of, about, found }
        })
        .collect();
    let mut missing = summary.failed.clone();
    for scenario in Scenario::ALL.iter().skip(summary.found.len() + summary.failed.len()) {
        missing.push((scenario.name(), "it was not measured: the run ended before it did".into()));
    }
    let title = "Run-to-completion and pipeline: the figures of the thesis, by Millrace";
    let page = html::page(title, command, &sections, LEFT_OUT, &missing)?;
    write(&out.join("index.html"), &page)
}

fn write(path: &Path, text: &str) -> Result<(), CrewError> {
    std::fs::write(path, text).map_err(|source| unwritten(path, source))
}

fn unwritten(path: &Path, source: std::io::Error) -> CrewError {
    CrewError::Write { path: path.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::chart::{Figure, Panel, Series};
    use crate::report::{Measured, Report};

    #[test]
    fn a_failed_scenario_leaves_the_others_in_the_page() {
        let out = std::env::temp_dir().join(format!("millrace-seeds-{}", std::process::id()));
        let page = || std::fs::read_to_string(out.join("index.html")).unwrap();
        let missing = || page().matches("the run ended before").count();
        let mut begun = 0;
        let mut one = |scenario: Scenario| {
            // If it ended here, what was measured so far would be there.
            assert_eq!(
                (page().matches("<svg").count(), missing()),
                (begun - usize::from(begun > 1), 7 - begun)
            );
            begun += 1;
            if scenario == Scenario::Sessions {
                return Err(CrewError::Nothing);
            }
            let mut report = Report::new(scenario.name(), &Tsc::process());
            report.results.push(Measured::of("packets_per_second", "1/s", &[], &[5.0]));
            let panel = Panel::lines("x", ("s", "Mpps"), vec![Series::measured("y", vec![(0.0, 1.0)])]);
            Ok(Illustrated { report, figure: Figure { title: scenario.name().into(), panels: vec![panel] } })
        };
        let summary = run(&out, "millrace bench seeds", &mut one).unwrap();
        assert_eq!(summary.failed, [("sessions", "nothing was forwarded".to_owned())]);
        assert_eq!(summary.found.len(), Scenario::ALL.len() - 1);
        let page = page();
        assert_eq!(page.matches("<svg").count(), summary.found.len());
        assert!(page.contains("nothing was forwarded") && page.contains("no PCIe"));
        let json = std::fs::read_to_string(out.join("skew.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&json["scenario"], &json["results"][0]["median"]), (&"skew".into(), &5.0.into()));
        assert!(out.join("skew.svg").exists() && !out.join("sessions.svg").exists());
        std::fs::remove_dir_all(&out).unwrap();
        // A directory that can't be made is an error, not a page somewhere else.
        assert!(run(Path::new("/proc/none"), "", &mut one).is_err());
    }
}
