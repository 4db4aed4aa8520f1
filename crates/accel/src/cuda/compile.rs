//! From a kernel's source to what a GPU runs, by NVRTC, NVIDIA's compiler as a library. It needs no GPU.

use crate::device::Failure;
use crate::kernels::{self, Source};
use cudarc::nvrtc::{result, sys};
use std::ffi::{CString, c_char};
use std::fmt;

/// A GPU's architecture, by its compute capability: 90 is an H100's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch(pub u32);

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.0)
    }
}

/// A compiled file of kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cubin {
    /// What the driver loads.
    pub octets: Vec<u8>,
    /// What the compiler has said: registers, shared memory, spills.
    pub log: String,
}

/// What a kernel needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Octets of shared memory that it declares.
    pub shared: u32,
    /// Octets that are written to memory, for want of registers.
    pub spilled: u32,
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, registers, shared, spilled } = self;
        write!(f, "{name}: {registers} registers, {shared} octets of shared memory, {spilled} spilled")
    }
}

impl Cubin {
    /// What each kernel needs, as the compiler says; nothing of a file that was read from a cache.
    pub fn functions(&self) -> Vec<Function> {
        let mut functions: Vec<Function> = Vec::new();
        for line in self.log.lines() {
            if let Some(name) = line.split_once("Compiling entry function '").map(|(_, rest)| rest) {
                let name = name.split('\'').next().unwrap_or_default().to_owned();
                functions.push(Function { name, ..Function::default() });
            }
            let before = |words: &str| {
                let (text, _) = line.split_once(words)?;
                text.rsplit([' ', ',']).find(|word| !word.is_empty())?.parse().ok()
            };
            if let Some(last) = functions.last_mut() {
                last.registers = before(" registers").unwrap_or(last.registers);
                last.shared = before(" bytes smem").unwrap_or(last.shared);
                last.spilled = before(" bytes spill stores").unwrap_or(last.spilled);
            }
        }
        functions
    }
}

/// What is told to the compiler besides the architecture.
const OPTIONS: [&str; 3] = ["--std=c++17", "--device-as-default-execution-space", "--ptxas-options=-v"];

/// Whether there is a compiler, and which.
pub fn version() -> Result<(u32, u32), Failure> {
    // SAFETY: only looks whether a library of that name can be loaded. NVRTC does nothing when it is loaded.
    if !unsafe { sys::is_culib_present() } {
        return Err(Failure::Absent {
            device: "CUDA compiler",
            why: "libnvrtc is not here: it comes with CUDA, or by pip as nvidia-cuda-nvrtc".into(),
        });
    }
    let (mut major, mut minor) = (0, 0);
    // SAFETY: the library is there, and writes two integers.
    let answer = unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) };
    answer.result().map_err(|error| call("nvrtcVersion", error))?;
    Ok((major.unsigned_abs(), minor.unsigned_abs()))
}

fn call(call: &'static str, error: result::NvrtcError) -> Failure {
    Failure::Call { call, why: format!("{:?}", error.0) }
}

/// A program that ends with its owner.
struct Program(sys::nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the program was made by NVRTC, and nobody else has it. That it can't be ended is nothing that could be dealt with.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}

/// Compiles a file of kernels. All that it includes is handed over with it; no file is read.
pub fn compile(source: &Source, arch: Arch) -> Result<Cubin, Failure> {
    version()?;
    let nul = |_| Failure::Compile { kernel: source.name, log: "a zero octet in its text".into() };
    let text = CString::new(source.text).map_err(nul)?;
    let name = CString::new(source.name).map_err(nul)?;
    let mut headers = vec![CString::new(kernels::layout()).map_err(nul)?];
    let mut names = vec![c"layout.cuh".to_owned()];
    for header in kernels::HEADERS {
        headers.push(CString::new(header.text).map_err(nul)?);
        names.push(CString::new(header.name).map_err(nul)?);
    }
    let pointers = |strings: &[CString]| strings.iter().map(|string| string.as_ptr()).collect::<Vec<_>>();
    let (header_pointers, name_pointers) = (pointers(&headers), pointers(&names));
    let mut program = std::ptr::null_mut();
    // SAFETY: all strings end in a zero and outlive the call, and there are as many headers as names of headers. NVRTC copies what it keeps.
    let answer = unsafe {
        sys::nvrtcCreateProgram(
            &raw mut program,
            text.as_ptr(),
            name.as_ptr(),
            i32::try_from(headers.len()).unwrap_or(i32::MAX),
            header_pointers.as_ptr(),
            name_pointers.as_ptr(),
        )
    };
    answer.result().map_err(|error| call("nvrtcCreateProgram", error))?;
    let program = Program(program);
    let mut options: Vec<String> = OPTIONS.iter().map(ToString::to_string).collect();
    options.push(format!("--gpu-architecture={arch}"));
    // SAFETY: the program is alive.
    let compiled = unsafe { result::compile_program(program.0, &options) };
    // SAFETY: as above.
    let log = unsafe { result::get_program_log(program.0) }.map(|log| text_of(&log)).unwrap_or_default();
    if let Err(error) = compiled {
        let log = if log.is_empty() { format!("{:?}", error.0) } else { log };
        return Err(Failure::Compile { kernel: source.name, log });
    }
    let mut length = 0;
    // SAFETY: the program is alive, and a length is written.
    let answer = unsafe { sys::nvrtcGetCUBINSize(program.0, &raw mut length) };
    answer.result().map_err(|error| call("nvrtcGetCUBINSize", error))?;
    let mut octets = vec![0_u8; length];
    // SAFETY: as many octets are written as were asked for just now.
    let answer = unsafe { sys::nvrtcGetCUBIN(program.0, octets.as_mut_ptr().cast()) };
    answer.result().map_err(|error| call("nvrtcGetCUBIN", error))?;
    Ok(Cubin { octets, log })
}

/// C's text, up to its end.
fn text_of(text: &[c_char]) -> String {
    let octets: Vec<u8> = text.iter().map_while(|&octet| (octet != 0).then_some(octet as u8)).collect();
    String::from_utf8_lossy(&octets).trim().to_owned()
}

/// What decides what comes out of the compiler, for a cache.
pub(super) fn inputs(source: &Source, arch: Arch, version: (u32, u32)) -> Vec<String> {
    let mut inputs = vec![format!("{arch} nvrtc {}.{}", version.0, version.1), kernels::layout()];
    inputs.extend(OPTIONS.iter().map(ToString::to_string));
    inputs.extend([source].into_iter().chain(kernels::HEADERS).map(|source| source.text.to_owned()));
    inputs
}
