//! NVIDIA's GPUs, by CUDA's driver.
//!
//! Driver and compiler are libraries that are looked for at run time. Where they are missing, [`gpus`] says so, and nothing else of this is reached: the program
//! is the same on all machines. Kernels are compiled for the GPU that is there, by NVRTC, and kept on disk ([`Cache`]).
//!
//! Two devices stand on a GPU, and may stand on the same one:
//!
//! - [`Launching`] copies each batch in, launches a kernel for it, and copies what comes out back, in as many streams as batches may be under way. It does all
//!   tasks, and suits those that take long.
//! - [`Continuous`] stands behind a ring ([`RingDevice`](crate::ring::RingDevice)): a kernel that was launched once polls it. It does light tasks, in small
//!   batches, without the microseconds of a launch.
//!
//! **Not tried yet on a GPU.** No machine with one was at hand when this was written. Calls of the driver are tested against one that isn't NVIDIA's
//! (`tests/fake_cuda.cpp`); what else is proven is in `docs/accel.md`.

mod cache;
pub mod compile;
mod continuous;
mod driver;
mod launching;
mod memory;
mod program;
mod tables;
mod together;

pub use cache::Cache;
pub use continuous::Continuous;
pub use driver::{Context, Gpu, gpus};
pub use launching::Launching;
pub use memory::Pinned;
pub use together::Together;
