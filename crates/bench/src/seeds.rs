//! `seeds`: every figure of the thesis that the two models of execution are compared by ([`THESIS`]), regenerated in one go, and what
//! goes beyond them.
//!
//! Each scenario can be run by itself; here all run one after the other, and what they found goes into one page, with a file of
//! JSON and one of SVG for each beside it. The page says of each claim whether it came true ([`crate::claims`]), as far as the machine was
//! quiet enough before and after the scenario ([`Fitness`]). A scenario that fails doesn't stop the others: the page says so.

use crate::chart::Illustrated;
use crate::claims::{self, Claim};
use crate::crew::CrewError;
use crate::html::{Page, Section};
use crate::jitter::Fitness;
use crate::progress::Progress;
use crate::published::THESIS;
use crate::{active_sessions, cores, hand_off, moves, payload_size, scale, skew};
use std::path::Path;
use tables::clock::Tsc;

/// What no figure of these contains.
const LEFT_OUT: &[&str] = &[
    "Each receive queue replays packets from memory on the thread that polls it, and sending throws them away: no PCIe, no DMA, no \
     descriptor rings of a device, no interrupts, no link that fills up.",
    "One gNB, router and server, IPv4, and few buffers, which stay in the core's cache: what many of them cost is in bench forward.",
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

    /// What it is called, the figures whose shape it has, and what to look for.
    const fn explained(self) -> [&'static str; 3] {
        match self {
            Self::PayloadSize => [
                "Throughput by payload size",
                "The shape of figure 5.2.",
                "Packets a second should not depend on payload, and run-to-completion should do more than pipeline.",
            ],
            Self::Sessions => [
                "Throughput by active sessions",
                "The shape of figure 5.3.",
                "How much many sessions cost: caches, then memory.",
            ],
            Self::Cores => [
                "Throughput by number of workers",
                "The shape of figures 5.4 and 5.5.",
                "Throughput should grow with workers as far as the host gives cores; what is dashed is calculated.",
            ],
            Self::Skew => [
                "One worker's load is stepped up",
                "The shape of figure 5.6.",
                "Nothing should be lost while all workers together can take it. Without moves, the hot worker loses what it can't take.",
            ],
            Self::Scale => [
                "A worker joins and leaves",
                "The shape of figures 5.7 and 5.8.",
                "Live moves should lose and reorder nothing; stopping the port, as in the document, loses 400 ms.",
            ],
            Self::Moves => [
                "Shards move between busy workers",
                "Beyond the document.",
                "Shards move all the time: how long their packets wait, and what all others notice.",
            ],
            Self::HandOff => [
                "Packets come to the wrong worker",
                "Beyond the document.",
                "A NIC that can't hash inside tunnels sends packets to the wrong worker, which hands them to the owner.",
            ],
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

/// What one scenario came to.
pub struct Found {
    /// Which.
    pub scenario: Scenario,
    /// Its figures.
    pub illustrated: Illustrated,
    /// What the machine was like before and after.
    pub fitness: Fitness,
}

/// What all came to.
#[derive(Default)]
pub struct Summary {
    /// What each scenario found.
    pub found: Vec<Found>,
    /// Scenarios that ended with an error.
    pub failed: Vec<(&'static str, String)>,
}

impl Summary {
    /// Every claim, and whether it came true.
    pub fn claims(&self) -> Vec<Claim> {
        self.found.iter().flat_map(|found| claims::judge(&found.illustrated.report, found.fitness)).collect()
    }
}

/// What measures.
pub trait Runner {
    /// What the machine is like.
    fn fitness(&mut self) -> Fitness;
    /// One of the scenarios.
    fn run(&mut self, scenario: Scenario) -> Result<Illustrated, CrewError>;
}

/// Runs all, and writes a page and each scenario's JSON and SVG into a directory, which is made if it isn't there; after
/// each one, so that what has been measured stays if the process is ended. `command`: what was typed.
pub fn run(out: &Path, command: &str, runner: &mut dyn Runner) -> Result<Summary, CrewError> {
    std::fs::create_dir_all(out).map_err(|source| unwritten(out, source))?;
    let mut summary = Summary::default();
    // Before anything is measured: whether it can be written at all.
    write_page(out, command, &summary)?;
    for scenario in Scenario::ALL {
        let before = runner.fitness();
        match runner.run(scenario) {
            Ok(illustrated) => {
                let fitness = before.or_worse(runner.fitness());
                illustrated.figure.write(&out.join(scenario.name()).with_extension("svg"))?;
                write_json(&out.join(scenario.name()).with_extension("json"), &illustrated.report)?;
                summary.found.push(Found { scenario, illustrated, fitness });
            }
            Err(error) => summary.failed.push((scenario.name(), error.to_string())),
        }
        write_page(out, command, &summary)?;
    }
    Ok(summary)
}

/// The page of what has been found so far, which is what remains of a run that is ended early.
fn write_page(out: &Path, command: &str, summary: &Summary) -> Result<(), CrewError> {
    let mut sections = Vec::with_capacity(summary.found.len());
    for Found { scenario, illustrated, fitness } in &summary.found {
        let [title, shape_of, about] = scenario.explained();
        sections.push(Section { title, shape_of, about, found: illustrated, fitness: *fitness });
    }
    let mut missing = summary.failed.clone();
    for scenario in Scenario::ALL.iter().skip(summary.found.len() + summary.failed.len()) {
        missing.push((scenario.name(), "it was not measured: the run ended before it did".into()));
    }
    let claims = summary.claims();
    let page = Page {
        title: "Run-to-completion and pipeline in a 5G user plane: published experiments, repeated by Millrace",
        document: &THESIS,
        command,
        claims: &claims,
        sections: &sections,
        left_out: LEFT_OUT,
        missing: &missing,
    };
    write_json(&out.join("claims.json"), &claims)?;
    write(&out.join("index.html"), &page.html())
}

fn write_json<T: serde::Serialize>(path: &Path, value: &T) -> Result<(), CrewError> {
    write(path, &(serde_json::to_string_pretty(value).unwrap_or_default() + "\n"))
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
        let mut runner = Stub { page: &page, begun: 0, watched: 0 };
        let summary = run(&out, "millrace bench seeds", &mut runner).unwrap();
        // Before each, and after each that was measured.
        assert_eq!(runner.watched, 2 * Scenario::ALL.len() - 1);
        assert_eq!(summary.failed, [("sessions", "nothing was forwarded".to_owned())]);
        assert_eq!(summary.found.len(), Scenario::ALL.len() - 1);
        let text = page();
        assert_eq!(text.matches("<svg").count(), summary.found.len());
        assert!(text.contains("nothing was forwarded") && text.contains("no PCIe"));
        // The machine was noisy after the fourth: only that one's claims are not judged for it.
        let noisy = |claim: &Claim| claim.verdict.why().contains("5.0 %");
        let claims = summary.claims();
        assert!(claims.iter().all(|claim| noisy(claim) == (claim.scenario == "skew")), "{claims:?}");
        assert_eq!(text.matches("too noisy</td>").count(), 1);
        let json = |name: &str| -> serde_json::Value {
            serde_json::from_str(&std::fs::read_to_string(out.join(name)).unwrap()).unwrap()
        };
        let skew = json("skew.json");
        assert_eq!((&skew["scenario"], &skew["results"][0]["median"]), (&"skew".into(), &5.0.into()));
        assert_eq!(json("claims.json")[0]["verdict"], "not-judged");
        assert!(out.join("skew.svg").exists() && !out.join("sessions.svg").exists());
        std::fs::remove_dir_all(&out).unwrap();
        // A directory that can't be made is an error, not a page somewhere else.
        assert!(run(Path::new("/proc/none"), "", &mut runner).is_err());
    }

    /// Measures nothing; what should be written by then is.
    struct Stub<'a> {
        page: &'a dyn Fn() -> String,
        begun: usize,
        watched: usize,
    }

    impl Runner for Stub<'_> {
        fn fitness(&mut self) -> Fitness {
            self.watched += 1;
            let after_skew = self.begun == 4 && self.watched == 7;
            Fitness { lost_percent: if after_skew { 5.0 } else { 0.1 }, longest_us: 50.0 }
        }

        fn run(&mut self, scenario: Scenario) -> Result<Illustrated, CrewError> {
            // If it ended here, what was measured so far would be there.
            let page = (self.page)();
            let missing = page.matches("the run ended before").count();
            let before = self.begun - usize::from(self.begun > 1);
            assert_eq!((page.matches("<svg").count(), missing), (before, 7 - self.begun));
            self.begun += 1;
            if scenario == Scenario::Sessions {
                return Err(CrewError::Nothing);
            }
            let mut report = Report::new(scenario.name(), &Tsc::process());
            report.results.push(Measured::of("packets_per_second", "1/s", &[], &[5.0]));
            let panel = Panel::lines("x", ("s", "Mpps"), vec![Series::measured("y", [(0.0, 1.0)])]);
            Ok(Illustrated { report, figure: Figure { title: scenario.name().into(), panels: vec![panel] } })
        }
    }
}
