//! What fuzz targets have in common: making choices, requests and packets out of a fuzzer's bytes.
//!
//! A target is a file of `fuzz_targets/`. Those that read bytes from outside hand them to the parser as they are; those that look for
//! broken invariants read the bytes as a script of choices ([`Input`]), so that a fuzzer that changes one byte changes one
//! choice. docs/fuzzing.md says how to run them and what each promises.
#![forbid(unsafe_code)]

pub mod frames;
pub mod input;
pub mod inspected;
pub mod messages;
pub mod requests;
pub mod sent;
pub mod traffic;
pub mod translation;
pub mod user_plane;
pub mod witness;

pub use input::Input;
