//! Flows and whose they are.
//!
//! **Problem.** A verdict is a flow's, a statistic is a subscriber's, and both must be found for every packet: a few hundred nanoseconds are all that a
//! packet may cost, most of them waits for memory.
//!
//! **Model.** Of a packet's two ends one is the *subscriber* ([`subscriber`]). Subscribers are numbered, and a flow's key names its subscriber by
//! number: so addresses of 16 bytes cost a flow 4, and key, counters and verdict fit one line of 64 bytes ([`flow`]) in a
//! [`tables::FlowTable`], which keeps flows in the order of their deadlines, and at its limit gives up the one that is idle for longest. While a flow
//! is looked into, the place of its verdict holds the number of its examination ([`examined`]). What is decoded and measured of flows, if somebody
//! asks for that, is kept beside them: those who don't ask pay nothing for it.

pub mod examined;
pub mod flow;
pub(crate) mod names;
pub mod subscriber;
pub(crate) mod watched;

pub use flow::{Ends, Flow, Summary};
pub use subscriber::{Prefix, Subscribers};
