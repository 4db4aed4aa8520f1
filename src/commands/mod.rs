//! One file per command: its arguments and its body.

pub mod bench;
pub mod config;
pub mod ctl;
pub mod demo;
pub mod lab;
pub mod run;
