//! Where should this batch run?
//!
//! **Problem.** Some work suits a GPU or a card better than the processor: it is heavy, it comes in batches, and no item waits for another. But a device
//! is far away. It wants batches that it can copy as they are, it has limits, it answers later, and it may be gone in the middle of the work.
//! Whoever has the work should know nothing of that.
//!
//! **Model.** A [`Batch`] is items for one [`Task`], in flat buffers. A [`Device`] takes batches and gives each back once, done or failed; its queue is
//! bounded, and a batch that it doesn't take comes back to the caller. Its input never changes, so any device can do it again:
//!
//! | module | what stands there |
//! |---|---|
//! | [`task`] | tasks, batches, and what stands in their buffers |
//! | [`device`] | the trait, limits, what can go wrong, when what happened |
//! | [`cpu`] | the processor: in the caller's thread, or in threads of its own |
//! | [`ring`] | a ring of small buffers that a device polls: a kernel that never ends, or a thread that plays its part |
//! | [`gpu`] | GPUs, whether there are any or not; with the feature `cuda` what is behind it in `cuda` |
//! | [`kernels`], [`plan`] | the work as kernels of a GPU, in headers that compilers for the host take too |
//! | [`fallback`] | two devices as one: what the first one doesn't end, the second one does |
//! | [`fake`] | a device for tests, as slow as it is told, that fails on command |
//! | [`conformance`] | does a device behave as it should? for tests |
//! | [`copies`] | tables' copies on devices, which follow while look-ups run |
//! | [`hash`] | the task that is nothing but arithmetic, for measurements |
//!
//! **Example.** A batch for whatever there is:
//!
//! ```
//! use accel::cpu::{Inline, Settings, Workers};
//! use accel::task::{Batch, Hashes, Task};
//! use accel::{Device, Fallback};
//! use tables::Tsc;
//!
//! let clock = Tsc::process();
//! // Instead of these threads there might be a GPU.
//! let first = Workers::start(Settings::default(), &clock)?;
//! let mut device = Fallback::new(first, Inline::new(8, clock), Default::default());
//! let mut batch = Batch::new(1, Task::Hash(Hashes::new(1)?));
//! batch.push(&[7; 24])?;
//! device.submit(batch, clock.now()).map_err(|rejected| rejected.why)?;
//! let mut ended = Vec::new();
//! while device.poll(clock.now(), &mut ended) == 0 {}
//! assert!(ended[0].outcome.is_ok() && ended[0].batch.number(0).is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Cost.** A batch is an allocation or none ([`Batch::clear`] keeps its buffers), and a few hundred nanoseconds for its way through queues.
//!
//! **When not to use it.** For a single item, or work that takes less than the way to a device and back: some 10 µs for a GPU.
#![deny(unsafe_code)]
// A batch that is refused comes back as it is: to put it into a box would cost an allocation just when there is too much to do.
#![allow(clippy::result_large_err)]

pub mod conformance;
mod constants;
pub mod copies;
pub mod cpu;
#[cfg(feature = "cuda")]
#[allow(unsafe_code)]
pub mod cuda;
pub mod device;
pub mod fake;
pub mod fallback;
pub mod gpu;
pub mod hash;
pub mod kernels;
pub mod plan;
pub mod ring;
pub mod sched;
pub mod task;

pub use device::{Clock, Completion, Device, Failure, Limits, Refusal, Rejected, Times};
pub use fallback::Fallback;
pub use task::{Batch, Caller, Kind, Task};
