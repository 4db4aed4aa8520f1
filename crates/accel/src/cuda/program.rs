//! Kernels that were loaded, and the streams in which they run.

use super::cache::Cache;
use super::compile;
use super::driver::{Context, failure};
use crate::device::Failure;
use crate::kernels::PROGRAMS;
use cudarc::driver::sys::CUfunction_attribute as Attribute;
use cudarc::driver::{result, sys};
use std::ffi::{CString, c_void};
use std::sync::Arc;

/// A file of kernels on the GPU.
#[derive(Debug)]
pub struct Program {
    module: sys::CUmodule,
    context: Arc<Context>,
}

// SAFETY: handles of the driver, which may be used in any thread that has the context current.
unsafe impl Send for Program {}
// SAFETY: as above.
unsafe impl Sync for Program {}

impl Program {
    /// Loads the file of that name, compiled for the GPU, from the cache if it is there.
    pub fn load(context: &Arc<Context>, cache: Option<&Cache>, name: &str) -> Result<Arc<Self>, Failure> {
        let source = PROGRAMS.iter().find(|program| program.name == name);
        let source = source.ok_or(Failure::Compile { kernel: "?", log: format!("there is no {name}") })?;
        let arch = context.gpu().arch;
        let cubin = match cache {
            Some(cache) => cache.get(source, arch)?,
            None => compile::compile(source, arch)?,
        };
        context.enter()?;
        // SAFETY: the octets are those that the compiler has made; the driver checks them, and copies what it keeps.
        let module = unsafe { result::module::load_data(cubin.octets.as_ptr().cast()) }
            .map_err(|error| failure("cuModuleLoadData", error))?;
        Ok(Arc::new(Self { module, context: Arc::clone(context) }))
    }

    /// A kernel of it. It is brought to the GPU now, for while another one runs that would wait for it.
    pub fn kernel(self: &Arc<Self>, name: &str) -> Result<Kernel, Failure> {
        self.context.enter()?;
        let c_name = CString::new(name).unwrap_or_default();
        // SAFETY: the module is loaded.
        let function = unsafe { result::module::get_function(self.module, c_name) }
            .map_err(|error| failure("cuModuleGetFunction", error))?;
        // SAFETY: the function is the module's.
        unsafe { sys::cuFuncLoad(function) }.result().map_err(|error| failure("cuFuncLoad", error))?;
        Ok(Kernel { function, program: Arc::clone(self) })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: kernels hold their program, so none is left.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}

/// A kernel.
#[derive(Debug, Clone)]
pub struct Kernel {
    function: sys::CUfunction,
    program: Arc<Program>,
}

// SAFETY: as a program's.
unsafe impl Send for Kernel {}

/// How a kernel is spread.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    /// Blocks of threads.
    pub blocks: usize,
    /// Threads of each.
    pub threads: usize,
    /// Octets of shared memory of each, besides what the kernel declares.
    pub shared: usize,
}

/// A kernel's argument.
#[derive(Debug, Clone, Copy)]
pub enum Argument {
    /// An address, or a number of 64 bits.
    Long(u64),
    /// A number of 32 bits.
    Int(u32),
}

impl Kernel {
    /// Lets blocks have as much shared memory as the GPU gives one.
    pub fn allow_shared(&self, octets: usize) -> Result<(), Failure> {
        self.program.context.enter()?;
        let octets = i32::try_from(octets).unwrap_or(i32::MAX);
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is a loaded module's.
        unsafe { result::function::set_function_attribute(self.function, attribute, octets) }
            .map_err(|error| failure("cuFuncSetAttribute", error))
    }

    /// How many blocks of so many threads run at the same time.
    pub fn resident(&self, threads: usize) -> Result<usize, Failure> {
        self.program.context.enter()?;
        let threads = i32::try_from(threads).unwrap_or(i32::MAX);
        // SAFETY: as above.
        let blocks =
            unsafe { result::occupancy::max_active_block_per_multiprocessor(self.function, threads, 0) };
        let blocks = blocks.map_err(|error| failure("cuOccupancyMaxActiveBlocksPerMultiprocessor", error))?;
        Ok(blocks.unsigned_abs() as usize * self.program.context.gpu().multiprocessors)
    }

    /// Launches it, after what was put into the stream before.
    ///
    /// # Safety
    /// The arguments are those that the kernel has, in number, order and width, and what their addresses lead to is as large as the kernel takes it to be,
    /// and stays until the kernel has ended.
    pub unsafe fn launch(
        &self,
        stream: &Stream,
        spread: Spread,
        arguments: &[Argument],
    ) -> Result<(), Failure> {
        let mut pointers: Vec<*mut c_void> = arguments
            .iter()
            .map(|argument| match argument {
                Argument::Long(value) => std::ptr::from_ref(value).cast_mut().cast(),
                Argument::Int(value) => std::ptr::from_ref(value).cast_mut().cast(),
            })
            .collect();
        // SAFETY: the function is a loaded module's; the driver copies the arguments during the call and doesn't write to them. The rest is
        // what the caller has promised.
        unsafe {
            result::launch_kernel(
                self.function,
                (spread.blocks as u32, 1, 1),
                (spread.threads as u32, 1, 1),
                spread.shared as u32,
                stream.stream,
                &mut pointers,
            )
        }
        .map_err(|error| failure("cuLaunchKernel", error))
    }
}

/// Things that the GPU does one after the other, beside those of other streams.
#[derive(Debug)]
pub struct Stream {
    stream: sys::CUstream,
    /// When the GPU came to which mark.
    marks: [sys::CUevent; 3],
    context: Arc<Context>,
}

// SAFETY: as a program's.
unsafe impl Send for Stream {}

/// A moment in a stream that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// What is worked on is there.
    Begun = 0,
    /// It was worked on.
    Worked = 1,
    /// All that was put into the stream is done.
    Ended = 2,
}

impl Stream {
    /// One that waits for no other.
    pub fn new(context: &Arc<Context>) -> Result<Self, Failure> {
        context.enter()?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)
            .map_err(|error| failure("cuStreamCreate", error))?;
        let event = || {
            result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT)
                .map_err(|error| failure("cuEventCreate", error))
        };
        Ok(Self { stream, marks: [event()?, event()?, event()?], context: Arc::clone(context) })
    }

    /// Notes when the GPU comes to here.
    pub fn mark(&self, mark: Mark) -> Result<(), Failure> {
        // SAFETY: stream and event are alive.
        unsafe { result::event::record(self.marks[mark as usize], self.stream) }
            .map_err(|error| failure("cuEventRecord", error))
    }

    /// Whether the GPU has come to the mark that was set last.
    pub fn has_passed(&self, mark: Mark) -> Result<bool, Failure> {
        // SAFETY: the event is alive.
        match unsafe { result::event::query(self.marks[mark as usize]) } {
            Ok(()) => Ok(true),
            Err(error) if error.0 == sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            Err(error) => Err(failure("cuEventQuery", error)),
        }
    }

    /// Nanoseconds of work: from [`Mark::Begun`] to [`Mark::Worked`], both of which have been passed.
    pub fn worked(&self) -> u64 {
        let [begun, worked, _] = self.marks;
        // SAFETY: both events were recorded in this stream.
        let milliseconds = unsafe { result::event::elapsed(begun, worked) };
        milliseconds.map_or(0, |milliseconds| (f64::from(milliseconds) * 1e6) as u64)
    }

    /// Copies octets from pinned memory to the GPU's.
    ///
    /// # Safety
    /// Both places have so many octets, and stay until the copy has ended.
    pub unsafe fn copy_in(&self, to: u64, from: u64, octets: usize) -> Result<(), Failure> {
        // SAFETY: as promised by the caller.
        unsafe { sys::cuMemcpyHtoDAsync_v2(to, from as *const c_void, octets, self.stream) }
            .result()
            .map_err(|error| failure("cuMemcpyHtoDAsync", error))
    }

    /// Copies octets from the GPU's memory to pinned memory.
    ///
    /// # Safety
    /// As for [`copy_in`](Self::copy_in).
    pub unsafe fn copy_out(&self, to: u64, from: u64, octets: usize) -> Result<(), Failure> {
        // SAFETY: as promised by the caller.
        unsafe { sys::cuMemcpyDtoHAsync_v2(to as *mut c_void, from, octets, self.stream) }
            .result()
            .map_err(|error| failure("cuMemcpyDtoHAsync", error))
    }

    /// Its context.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: all of them are this stream's. What is still in it, the driver ends first, and doesn't wait.
            unsafe {
                for mark in self.marks {
                    let _ = result::event::destroy(mark);
                }
                let _ = result::stream::destroy(self.stream);
            }
        }
    }
}
