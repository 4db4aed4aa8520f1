//! What the document that `seeds` regenerates says of itself.
//!
//! Its figures are pictures without numbers; every value here is one that its text states, with the section in which it does.
//! A value that could only be guessed from a curve is not here.

use crate::crew::Model;
use crate::saturated::Sizes;

/// A document whose experiments are repeated.
#[derive(Clone, Copy, Debug)]
pub struct Document {
    /// Who wrote it.
    pub author: &'static str,
    /// What it is called.
    pub title: &'static str,
    /// What it is, and where it came out.
    pub kind: &'static str,
    /// When.
    pub year: u16,
    /// What it was measured on.
    pub hardware: &'static str,
}

/// The thesis on the two models of execution.
pub const THESIS: Document = Document {
    author: "Prateek Agarwal",
    title: "User Plane Function (5G): Optimizing Run-to-Completion model and its comparison with Pipeline model",
    kind: "Master of Technology project report, Indian Institute of Technology Bombay",
    year: 2020,
    hardware: "Intel Xeon at 2.2 GHz, 12 cores of one NUMA node, hyperthreading off, two 40 Gbit/s ports (XL710), load from two other servers",
};

/// What its values are called in pictures.
pub const READ: &str = "Agarwal 2020 (as its text says)";

/// Run-to-completion by pipeline, packets a second of one worker core (5.2.1: "30-40% higher").
pub const RTC_TO_PIPELINE: (f64, f64) = (1.3, 1.4);
/// The link, in Gbit/s (5.1), which limits packets of 1,024 octets (5.2.1) and is what cores are needed for (5.2.3).
pub const LINK: f64 = 40.0;
/// Octets of payload at which the link is full with one core (5.2.1).
pub const FULL_LINK: usize = 1_024;
/// From the overload to the new core's start when the port has to be stopped, in seconds (5.2.5: "around 400 ms").
pub const RECONFIGURATION_RTC: f64 = 0.4;
/// Likewise in a pipeline (5.2.5: "around 130 us").
pub const RECONFIGURATION_PIPELINE: f64 = 130e-6;
/// The longest latency meanwhile with run-to-completion, in seconds (5.2.5: "around 100 ms").
pub const LATENCY_RTC: f64 = 0.1;
/// Sessions to which throughput was measured (5.2.2).
pub const SESSIONS: usize = 65_536;

/// How many cores fill the link (5.2.3), and `None` where six did not.
pub const fn cores_for_link(model: Model, sizes: Sizes, uplink: bool) -> Option<usize> {
    match (model, sizes, uplink) {
        (Model::Rtc, Sizes::Payload(64), true) => Some(5),
        (Model::Rtc, Sizes::Payload(64), false) => Some(6),
        (Model::Rtc, Sizes::Imix, true) => Some(2),
        (Model::Rtc, Sizes::Imix, false) | (_, Sizes::Imix, true) => Some(3),
        (_, Sizes::Imix, false) => Some(4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 5.2.3, sentence by sentence.
    #[test]
    fn the_cores_that_fill_the_link() {
        let of = |model, sizes| [true, false].map(|uplink| cores_for_link(model, sizes, uplink));
        assert_eq!(of(Model::Rtc, Sizes::Payload(64)), [Some(5), Some(6)]);
        assert_eq!(of(Model::Pipeline, Sizes::Payload(64)), [None, None]);
        assert_eq!(of(Model::Rtc, Sizes::Imix), [Some(2), Some(3)]);
        assert_eq!(of(Model::PipelineReturning, Sizes::Imix), [Some(3), Some(4)]);
    }
}
