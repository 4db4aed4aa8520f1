//! The driver: whether it is there, which GPUs it has, and a context on one of them.

use super::compile::Arch;
use crate::device::Failure;
use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{DriverError, result, sys};
use std::fmt;
use std::sync::Arc;

/// The driver's version that the functions used here come with: 13.0.
const OLDEST: i32 = 13_000;

/// A GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    /// Its number, from zero on.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Its architecture.
    pub arch: Arch,
    /// Octets of memory.
    pub memory: usize,
    /// Multiprocessors.
    pub multiprocessors: usize,
    /// Octets of shared memory that a block of threads may have.
    pub shared_memory: usize,
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}, {} GiB, {} multiprocessors)",
            self.name,
            self.arch,
            self.memory >> 30,
            self.multiprocessors
        )
    }
}

/// What the driver says, in our words.
pub(super) fn failure(call: &'static str, error: DriverError) -> Failure {
    // The text comes from the driver too, and may be missing.
    let text = error.error_string().map(|text| text.to_string_lossy().into_owned());
    let why = text.unwrap_or_else(|_| format!("{:?}", error.0));
    match error.0 {
        sys::CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE
        | sys::CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
        | sys::CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
        | sys::CUresult::CUDA_ERROR_LAUNCH_FAILED
        | sys::CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
        | sys::CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED => Failure::Lost(format!("{call}: {why}")),
        _ => Failure::Call { call, why },
    }
}

fn absent(why: impl Into<String>) -> Failure {
    Failure::Absent { device: "CUDA", why: why.into() }
}

/// Starts the driver, if there is one. cudarc ends in a panic where a library or a function is missing, so both are asked for first.
fn start() -> Result<(), Failure> {
    // SAFETY: only looks whether a library of that name can be loaded.
    if !unsafe { sys::is_culib_present() } {
        return Err(absent("no NVIDIA driver is installed (libcuda is not here)"));
    }
    let mut version = 0;
    // SAFETY: the library is there. This function is as old as the driver's interface, works before all others, and writes an integer.
    let answer = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    answer.result().map_err(|error| absent(format!("{:?}", error.0)))?;
    if version < OLDEST {
        let (major, minor) = (version / 1000, version % 1000 / 10);
        return Err(absent(format!("the driver is for CUDA {major}.{minor}; 13.0 is needed")));
    }
    result::init().map_err(|error| match error.0 {
        sys::CUresult::CUDA_ERROR_NO_DEVICE => absent("the driver finds no GPU"),
        _ => absent(format!("the driver doesn't start: {:?}", error.0)),
    })
}

/// All GPUs that the driver has; at least one.
pub fn gpus() -> Result<Vec<Gpu>, Failure> {
    start()?;
    let count = result::device::get_count().map_err(|error| failure("cuDeviceGetCount", error))?;
    if count == 0 {
        return Err(absent("the driver finds no GPU"));
    }
    (0..count).map(gpu).collect()
}

fn gpu(number: i32) -> Result<Gpu, Failure> {
    let device = result::device::get(number).map_err(|error| failure("cuDeviceGet", error))?;
    let attribute = |attribute| {
        // SAFETY: the device comes from the driver.
        let value = unsafe { result::device::get_attribute(device, attribute) };
        value.map_err(|error| failure("cuDeviceGetAttribute", error)).map(i32::unsigned_abs)
    };
    let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    Ok(Gpu {
        number: number.unsigned_abs(),
        name: result::device::get_name(device).map_err(|error| failure("cuDeviceGetName", error))?,
        arch: Arch(major * 10 + minor),
        // SAFETY: the device comes from the driver.
        memory: unsafe { result::device::total_mem(device) }
            .map_err(|error| failure("cuDeviceTotalMem", error))?,
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as usize,
        shared_memory: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as usize,
    })
}

/// A GPU's primary context: what all that is done with it happens in.
#[derive(Debug)]
pub struct Context {
    device: sys::CUdevice,
    context: sys::CUcontext,
    gpu: Gpu,
}

// SAFETY: a context may be made current in any thread; the driver guards it by locks of its own.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// On the GPU of that number.
    pub fn open(number: u32) -> Result<Arc<Self>, Failure> {
        let gpus = gpus()?;
        let gpu = usize::try_from(number).ok().and_then(|number| gpus.get(number)).cloned();
        let gpu = gpu.ok_or_else(|| absent(format!("there is no GPU {number}, but {}", gpus.len())))?;
        let device =
            result::device::get(number.cast_signed()).map_err(|error| failure("cuDeviceGet", error))?;
        // SAFETY: the device comes from the driver, and its context is given back when this is dropped.
        let context = unsafe { result::primary_ctx::retain(device) }
            .map_err(|error| failure("cuDevicePrimaryCtxRetain", error))?;
        Ok(Arc::new(Self { device, context, gpu }))
    }

    /// The GPU.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Makes it the one that the calling thread's calls are about.
    pub(super) fn enter(&self) -> Result<(), Failure> {
        // SAFETY: the context is retained as long as this lives.
        unsafe { result::ctx::set_current(self.context) }.map_err(|error| failure("cuCtxSetCurrent", error))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it was retained once. If the driver can't take it back, nothing is left to be done.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}
