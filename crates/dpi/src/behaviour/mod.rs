//! What does a flow do, if it doesn't say what it is?
//!
//! **Problem.** Some protocols hide all that they say: proxies that are made not to be recognised, tunnels, calls of applications that publish nothing. No
//! recogniser knows them. Still a call sends small packets like a clock, and a transfer sends full ones.
//!
//! **Model.** While nobody knows a flow, its [`Shape`] takes down sizes, times and directions of its packets, and what kind of octets each side begins
//! with ([`Opening`]). When the recognisers give up, some more packets are counted, but not looked into any more
//! ([`Limits::behaviour`](crate::classify::Limits)); then [`Shape::behaviour`] says what the flow behaves like, if it says anything.
//!
//! It never speaks against a recogniser: not even against one that was only reminded of its protocol. A behaviour takes the place of "unknown" as the
//! verdict's protocol, with [`Reason::Behaviour`](crate::classify::Reason::Behaviour), which is a guess. It isn't told beside the verdict: nobody who knows the protocol needs
//! it, a flow's line needs no further field, and whoever wants no guesses leaves out what is one. The rules are strict, since a false label costs
//! more than none: each asks for several signs at once, and for a number of packets.
//!
//! **Cost.** Nothing for a packet after the verdict, and nothing for one that brings the verdict. A packet of a flow that is not known yet costs some
//! additions; the first payload of each side is read once, up to [`opening::MOST`] octets of it.
//!
//! **How often it errs.** Of 529 flows with 16 packets or more in nDPI's public test captures, whether a recogniser knew them or not, the rules found a
//! fully encrypted one in none that a recogniser knew, a tunnel, a game and live video in none at all, a call in one of RTP, bulk in
//! downloads over HTTP, IPP, TLS and QUIC, and something interactive in SSH, FTP, and three industrial protocols. So what a guess says is true of the behaviour,
//! and not always of the purpose: peers of BitTorrent and some games are fully encrypted without being proxies. Therefore such verdicts have the category "other".
//! Tunnels, games and live video are tried with made-up flows only.
//!
//! **What it can't tell.** A film in chunks: one chunk has more packets than are counted. [`crate::kpi::video`] sees films, if it is told where. A flow of which
//! one direction is seen. A proxy that pads and delays its packets so that they have another's shape.

pub mod opening;
pub mod shape;
mod verdicts;

pub use opening::Opening;
pub use shape::Shape;

#[cfg(test)]
mod tests;
