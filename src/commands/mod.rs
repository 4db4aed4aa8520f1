//! One file per command: its arguments and its body.

pub mod attack;
pub mod bench;
pub mod config;
pub mod ctl;
pub mod demo;
pub mod doctor;
pub mod dpi;
pub mod lab;
pub mod ran;
pub mod run;
pub mod sched;
pub mod storm;
