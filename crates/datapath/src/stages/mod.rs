//! A burst's way, in the packet's order: parse, (translate in: [`crate::nat`]), locate, check source, look closer, serve, judge. Where a device
//! answers look-ups, [`hints`] comes before locate.

pub(crate) mod ahead;
pub(crate) mod burst;
pub(crate) mod check_source;
pub(crate) mod classify;
pub(crate) mod ecn;
pub(crate) mod hints;
pub(crate) mod inquire;
pub(crate) mod judge;
pub(crate) mod locate;
pub(crate) mod look_closer;
pub(crate) mod parse;
pub(crate) mod serve;
