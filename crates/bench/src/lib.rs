//! How fast is it, and how do we know?
//!
//! Every scenario of `millrace bench` is a function here that returns a [`Report`]: medians and spread of repeated runs,
//! with the machine's facts. Figures are cycles per packet (ticks of the time stamp counter) and ratios taken within one
//! run, since these are what survives a shared machine. Where a scenario has a part that is not ours to improve, such as
//! the port's own cost, it is measured in the same run and stated beside the whole.
#![forbid(unsafe_code)]

pub mod active_sessions;
pub mod arrivals;
pub mod axis;
pub mod buffers;
pub mod chart;
pub mod claims;
pub mod compose;
pub mod control_queue;
pub mod cores;
pub mod crew;
pub mod demo;
pub mod device_lookups;
pub mod devices;
pub mod dpi;
pub mod flood;
pub mod flows;
pub mod forward;
pub mod hand_off;
pub mod html;
pub mod inspection;
pub mod jitter;
pub mod lookups;
pub mod machine;
pub mod meters;
pub mod mirror;
pub mod moves;
pub mod n4;
pub mod nat;
pub mod ndr;
pub mod offload;
pub mod palette;
pub mod path;
pub mod payload_size;
pub mod pdr_scan;
pub mod plot;
pub mod port;
pub mod profiles;
pub mod progress;
pub mod published;
pub mod radio;
pub mod readers;
pub mod report;
pub mod restart;
pub mod rig;
pub mod saturated;
pub mod scale;
pub mod scene;
pub mod sched;
pub mod search;
pub mod seeds;
pub mod skew;
pub mod steady;
pub mod svg;
pub mod timeline;
pub mod wire;

pub use progress::Progress;
pub use report::{Measured, Param, Report};
