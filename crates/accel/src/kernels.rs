//! The kernels' sources, which are compiled where they are to run.
//!
//! What is done with a packet or a code block is in headers (`kernels/*.cuh`), which compilers for the host take too: tests run them without a GPU, against what
//! the processor does. The kernels themselves (`kernels/*.cu`) only deal the work out to threads.

use crate::{copies, plan, ring};

/// A file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// By which it is included.
    pub name: &'static str,
    /// What is in it.
    pub text: &'static str,
}

macro_rules! sources {
    ($($name:literal),*) => {
        &[$(Source { name: $name, text: include_str!(concat!("../kernels/", $name)) }),*]
    };
}

/// The headers that stand as files. `layout.cuh` is made: [`layout`].
pub const HEADERS: &[Source] = sources![
    "aes.cuh",
    "common.cuh",
    "hash.cuh",
    "ldpc_decode.cuh",
    "ldpc_encode.cuh",
    "lookup.cuh",
    "nea2.cuh",
    "ring.cuh"
];

/// Files of kernels.
pub const PROGRAMS: &[Source] = sources!["batch.cu", "continuous.cu", "ldpc.cu"];

/// `layout.cuh`: the numbers that Rust and the kernels both know.
pub fn layout() -> String {
    format!("#pragma once\n{}{}{}", ring::layout::CPP, plan::CPP, copies::layout::CPP)
}
