//! One file per command: its arguments and its body.

pub mod config;
pub mod ctl;
pub mod lab;
pub mod run;
