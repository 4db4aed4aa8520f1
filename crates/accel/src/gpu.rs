//! GPUs, whether this was built for them or not, and whether there are any: what others ask for, without knowing what makes.
//!
//! ```
//! use accel::Failure;
//! match accel::gpu::list() {
//!     Ok(gpus) => println!("{} GPUs, the first: {}", gpus.len(), gpus[0]),
//!     // "no CUDA device: no NVIDIA driver is installed (libcuda is not here)"
//!     Err(why) => assert!(matches!(why, Failure::Absent { .. }), "{why}"),
//! }
//! ```

use crate::copies::Follower;
use crate::device::{Device, Failure};
use crate::ring::Shape;
use tables::image::Image;

/// How much a device takes that launches a kernel for each batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Batches under way.
    pub in_flight: usize,
    /// Octets that go in with a batch.
    pub input: usize,
    /// Octets that come out.
    pub output: usize,
    /// Octets for copies of tables.
    pub tables: usize,
}

impl Default for Settings {
    /// For batches of some thousand packets or a hundred code blocks, and a table of sixteen million flows.
    fn default() -> Self {
        Self { in_flight: 8, input: 4 << 20, output: 4 << 20, tables: 1 << 30 }
    }
}

/// Octets that a copy of a table takes of a GPU's memory for tables.
pub fn table_octets(image: &dyn Image) -> Result<usize, Failure> {
    Ok(Follower::on_gpu(image)?.words() * 4)
}

/// The GPUs of this machine, in words; at least one.
#[cfg(feature = "cuda")]
pub fn list() -> Result<Vec<String>, Failure> {
    Ok(crate::cuda::gpus()?.iter().map(ToString::to_string).collect())
}

/// A GPU that is launched on for each batch.
#[cfg(feature = "cuda")]
pub fn launching(number: u32, settings: Settings) -> Result<Box<dyn Device>, Failure> {
    let context = crate::cuda::Context::open(number)?;
    let cache = crate::cuda::Cache::of_user();
    Ok(Box::new(crate::cuda::Launching::start(&context, cache.as_ref(), settings)?))
}

/// A GPU on which the continuous kernel polls a ring of that shape, for batches of at most so many items, with so many octets for copies of tables.
#[cfg(feature = "cuda")]
pub fn ring(number: u32, shape: Shape, items: usize, tables: usize) -> Result<Box<dyn Device>, Failure> {
    let context = crate::cuda::Context::open(number)?;
    let cache = crate::cuda::Cache::of_user();
    let behind = crate::cuda::Continuous::new(&context, cache.as_ref(), shape, tables, 1)?;
    Ok(Box::new(crate::ring::RingDevice::start(behind, shape, items)?))
}

/// So many of these on one GPU at the same time: one for each of several threads. No other device may be made on it while they are there, for
/// that would wait for their kernels.
#[cfg(feature = "cuda")]
pub fn rings(
    number: u32,
    rings: usize,
    shape: Shape,
    items: usize,
    tables: usize,
) -> Result<Vec<Box<dyn Device>>, Failure> {
    let context = crate::cuda::Context::open(number)?;
    let cache = crate::cuda::Cache::of_user();
    let rings = crate::cuda::Together::start(&context, cache.as_ref(), rings, shape, items, tables)?;
    Ok(rings.into_iter().map(|ring| Box::new(ring) as _).collect())
}

#[cfg(not(feature = "cuda"))]
fn absent() -> Failure {
    Failure::Absent { device: "CUDA", why: "this program was built without the feature `cuda`".into() }
}

/// The GPUs of this machine, in words; at least one.
#[cfg(not(feature = "cuda"))]
pub fn list() -> Result<Vec<String>, Failure> {
    Err(absent())
}

/// A GPU that is launched on for each batch.
#[cfg(not(feature = "cuda"))]
pub fn launching(_number: u32, _settings: Settings) -> Result<Box<dyn Device>, Failure> {
    Err(absent())
}

/// A GPU on which the continuous kernel polls a ring.
#[cfg(not(feature = "cuda"))]
pub fn ring(_number: u32, _shape: Shape, _items: usize, _tables: usize) -> Result<Box<dyn Device>, Failure> {
    Err(absent())
}

/// So many of these on one GPU at the same time.
#[cfg(not(feature = "cuda"))]
pub fn rings(
    _number: u32,
    _rings: usize,
    _shape: Shape,
    _items: usize,
    _tables: usize,
) -> Result<Vec<Box<dyn Device>>, Failure> {
    Err(absent())
}
