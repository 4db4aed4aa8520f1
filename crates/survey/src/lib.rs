//! What does this traffic consist of?
//!
//! Reads packets from a capture, has them inspected, and adds up what was found: by protocol, by application, by subscriber, by name, and
//! flow by flow. It answers people ([`Report::page`]), programs (JSON, CSV), those who doubt ([`explain`]) and Wireshark ([`annotate`]).
//!
//! | module | answers |
//! |---|---|
//! | [`reading`] | where do packets come from, and what was wrong with them |
//! | [`survey`] | what do results add up to |
//! | [`quality`] | how do flows fare |
//! | [`calls`] | who calls whom, and how does that sound |
//! | [`live`] | the same of what passes a port now |
//! | [`report`] | how is that shown |
//! | [`explain`] | why was this flow taken for that |
//! | [`annotate`] | the same, written beside the packets of a capture |
//!
//! All of it is bounded: beyond so many flows, subscribers or names, only sums are kept, and the report says so.
#![forbid(unsafe_code)]

pub mod annotate;
pub mod calls;
pub mod explain;
pub mod live;
pub mod quality;
pub mod reading;
pub mod report;
pub mod survey;

pub use reading::{Reading, Seen};
pub use report::Report;
pub use survey::{Lists, Survey};
