//! `inspection`: what it costs the packet path that packets are looked into, by the inspector that is shipped.
//!
//! Three questions are asked of one worker's datapath:
//!
//! - **What do known flows lose?** Each variant ([`plane::Looks`]) has a datapath of its own with the same sessions, which has learned the same flows from
//!   the same first packets. Variants are measured in turn, pass by pass, and what counts is the throughput by that of the variant without
//!   inspection in the same pass. That variant is there twice: how far the two differ is what the measurement can't tell.
//! - **What do whole flows lose?** All packets of the flows of a mix, from the first to the last, likewise.
//! - **How many new flows does a worker take?** Connections begin at a rate, beside known flows that take half of the core; all of them have to be
//!   inspected, since rules ask for applications. Lost packets are counted, also those that overload protection sheds. And the highest rate
//!   without a loss is searched for.
//!
//! **The clock** of the last two ([`feed`]) runs only while the worker works: packets are written while it stands still, and where there is nothing to do it jumps to the
//! next arrival.

pub mod feed;
pub mod newcomers;
pub mod plane;
pub mod steady;

use crate::path::PathError;
use crate::progress::Progress;
use crate::report::Report;
use crate::scene::Scene;
use dpi::signatures::LoadError;
use tables::clock::Tsc;

/// One of the questions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// What known flows lose.
    Known,
    /// What whole flows lose.
    Whole,
    /// How many new flows a worker takes.
    New,
}

impl Part {
    /// In the order in which they are asked.
    pub const ALL: [Self; 3] = [Self::Known, Self::Whole, Self::New];
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct InspectionConfig {
    /// Which of the questions are asked.
    pub parts: Vec<Part>,
    /// Known flows; each conversation has two, one a direction.
    pub flows: usize,
    /// Where known flows are measured.
    pub scenes: Vec<Scene>,
    /// Passes of each measurement.
    pub passes: usize,
    /// Packets of a pass over known flows; at least two of each.
    pub packets: usize,
    /// Packets of the mix of whole flows, and of the connections that begin, before they come again between other ports.
    pub made: usize,
    /// New connections a second at which losses are counted.
    pub rates: Vec<u64>,
    /// Seconds of a paced run, on the worker's clock.
    pub seconds: f64,
    /// Seconds for which known flows are silent before they are forgotten, so that as many end as begin.
    pub idle: u16,
}

impl InspectionConfig {
    /// A million known flows.
    pub fn full() -> Self {
        Self {
            parts: Part::ALL.into(),
            flows: 1 << 20,
            scenes: vec![Scene::MANY, Scene::MANY6],
            passes: 21,
            packets: 4_000_000,
            made: 800_000,
            rates: vec![50_000, 100_000, 150_000],
            seconds: 10.0,
            idle: 4,
        }
    }

    /// Fewer and shorter runs.
    pub fn quick() -> Self {
        Self {
            flows: 1 << 17,
            passes: 7,
            packets: 500_000,
            made: 400_000,
            rates: vec![100_000],
            seconds: 3.0,
            idle: 1,
            ..Self::full()
        }
    }
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum InspectionError {
    /// The packet path.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The signatures that are built in can't be used: a defect.
    #[error("signatures: {0}")]
    Signatures(#[from] LoadError),
    /// A name that a rule asks for is no application's: a defect.
    #[error("no application is called {0}")]
    Unknown(&'static str),
    /// Conversations are still looked into, so that the figures would not be those of known flows.
    #[error("{0} conversations have no verdict")]
    Open(usize),
    /// Packets were neither sent nor accounted for: a defect.
    #[error("of {offered} packets {accounted} are accounted for")]
    Unaccounted {
        /// Packets that came.
        offered: u64,
        /// Packets that were sent, missed or dropped.
        accounted: u64,
    },
}

/// Measures all; `progress` is told what is being measured, and what came of it.
pub fn run(
    config: &InspectionConfig,
    clock: Tsc,
    progress: &mut dyn Progress,
) -> Result<Report, InspectionError> {
    let mut report = Report::new("inspection", &clock);
    let scene = config.scenes.first().copied().unwrap_or(Scene::MANY);
    for part in &config.parts {
        match part {
            Part::Known => {
                for &scene in &config.scenes {
                    for rules in plane::Divided::ALL {
                        steady::known(&mut report, config, scene, rules, clock, progress)?;
                    }
                }
            }
            Part::Whole => newcomers::whole(&mut report, config, scene, clock, progress)?,
            Part::New => newcomers::beside(&mut report, config, scene, clock, progress)?,
        }
    }
    report.notes.push(format!(
        "known: {} flows, two a conversation, all visited in each pass in an order of their own, both directions in turn, the port's cost \
         included; plain: sessions with a rule a direction, classified: with filters; asked: two of a session's rules ask for an application, \
         and half of the flows are one's; throughput_to_off: within a pass, off-again says what the measurement can't tell",
        config.flows
    ));
    report.notes.push(
        "whole, new: the worker's clock stands still while packets are written, and jumps where there is nothing to do; what others ran on the \
         core is not counted; receiving is handing over; new: all of whose flows need a verdict, by rules for two applications; steady: known flows of \
         sessions with the same rules, as much of the core as they take alone in full bursts; queues of 4,096 descriptors; lost: \
         receive-queue, and whatever was dropped, overload protection (new-flow-in-overload) among it"
            .into(),
    );
    Ok(report)
}
