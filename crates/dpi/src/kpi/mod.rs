//! How well does it work?
//!
//! **Problem.** An operator who knows what a flow is wants to know how its user fares: how long answers take, what is lost and sent again, what a call
//! sounds like, which picture a film has. All of it shows in headers, sizes and times, even where the rest is ciphered.
//!
//! **Model.** A small struct for each measure, which is told of packets and of the time and can be asked at any time. None knows of the others, of flows
//! or of clocks. Each says what it measures, by whose definition, and what it leaves out.
//!
//! | struct | measures |
//! |---|---|
//! | [`tcp::Tcp`] | round trips, retransmissions, disorder, duplicate acknowledgements, windows, resets, octets |
//! | [`rate::Rate`] | throughput: smoothed, and of the best second |
//! | [`rtp::Rtp`] | loss, disorder and jitter of a media stream, and which codec it has |
//! | [`voice`] | what a call with such loss and delay sounds like: R and MOS |
//! | [`video::Video`] | bit rate and likely resolution of a film that comes in chunks |
//!
//! **Cost.** A few nanoseconds and 16 to 128 octets each.
//!
//! **When not to use it.** To bill or to punish: these are observations from one place of a path; what happened beyond it is inferred.

pub mod rate;
pub mod rtp;
pub mod tcp;
pub mod video;
pub mod voice;

#[cfg(test)]
mod judge;
