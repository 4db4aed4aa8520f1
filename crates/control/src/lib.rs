//! What do people and networks talk to?
//!
//! Everything around the packet path that takes its time: the configuration that says what a UPF is ([`config`]), the
//! N4 side that SMFs program it through ([`n4`]), the socket through which a running one is asked what it does ([`ctl`]),
//! and the UPF that holds all of it together ([`upf`]).
#![forbid(unsafe_code)]

pub mod config;
pub mod ctl;
pub mod kernel;
pub mod n4;
pub mod upf;
