//! What do people and networks talk to?
//!
//! Everything around the packet path that takes its time: the configuration that says what a UPF is ([`config`]), and the
//! socket through which a running one is asked what it does ([`ctl`]).
#![forbid(unsafe_code)]

pub mod config;
pub mod ctl;
