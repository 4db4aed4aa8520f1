//! The radio side's heavy tasks.
//!
//! **Problem.** Between the radio and the user plane stand two tasks that cost more than all forwarding does: ciphering, and the
//! coding that makes transport blocks survive the air. Both are arithmetic on bits without branches, and both come in batches, so
//! vectors of a processor suit them, and so do GPUs.
//!
//! **Model.** Every task is a pure function on buffers that the caller owns. Nothing here knows of sessions, packets of the user plane or
//! devices. For each processor that pays off there is a folder or a file under `simd`; a plain version of the same task stands beside it,
//! and tests hold the two against each other.
//!
//! **Unsafe code** is confined to `simd`: calls of instructions that not every processor has, after asking whether this one has them.
#![deny(unsafe_code)]

mod bits;
pub mod crc;
pub mod ldpc;
pub mod nea2;
#[allow(unsafe_code)]
pub mod simd;
pub mod transport_block;
