//! DPDK's Environment Abstraction Layer: memory, once per process.

use crate::error::{DpdkError, Log, cause};
use crate::ffi;
use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Where packet memory comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// Huge pages if they can be had, ordinary pages otherwise.
    #[default]
    Auto,
    /// Huge pages or an error.
    HugePages,
    /// Ordinary pages: no set-up and no privilege, at some cost in TLB misses. Hardware NICs need an IOMMU then.
    NoHuge,
}

/// How EAL is started.
#[derive(Clone, Debug)]
pub struct EalConfig {
    /// Where packet memory comes from.
    pub memory: Memory,
    /// Megabytes that packets need: with huge pages a check that they exist; with ordinary ones twice as much is taken at once, because a
    /// buffer doesn't cross from one page to the next and may leave nearly half of its page empty.
    pub megabytes: u32,
    /// PCI devices that will be opened; no other is touched, and with none the PCI bus isn't even scanned.
    pub pci: Vec<String>,
    /// A device that will be opened wants DPDK's inter-process messages (`net_tap`): keeps run-time files under
    /// `/var/run/dpdk` or `$XDG_RUNTIME_DIR/dpdk`, named after the process. [`EalConfig::for_devices`] sets it.
    pub multi_process: bool,
    /// Shows DPDK's log on standard error as it comes, besides keeping it for errors.
    pub verbose: bool,
    /// More arguments for EAL, for what this struct doesn't cover.
    pub extra: Vec<String>,
}

impl Default for EalConfig {
    fn default() -> Self {
        Self {
            memory: Memory::Auto,
            megabytes: 256,
            pci: Vec::new(),
            multi_process: false,
            verbose: false,
            extra: Vec::new(),
        }
    }
}

impl EalConfig {
    /// What these devices (as for [`DeviceSpec`](crate::DeviceSpec)) need.
    pub fn for_devices<'a>(devices: impl IntoIterator<Item = &'a str>) -> Self {
        let mut config = Self::default();
        for device in devices {
            if is_pci(device) {
                config.pci.push(device.split(',').next().unwrap_or_default().to_owned());
            }
            config.multi_process |= device.starts_with("net_tap");
        }
        config
    }
}

/// What EAL runs on, for the start-up banner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Whether huge pages are in use.
    pub huge_pages: bool,
    /// Whether [`Memory::Auto`] looked for huge pages in vain.
    pub fell_back: bool,
    /// Megabytes.
    pub megabytes: u32,
    /// DPDK's version, "DPDK 22.11.x".
    pub version: String,
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { huge_pages, fell_back, megabytes, version } = self;
        match (huge_pages, fell_back) {
            (true, _) => write!(f, "{version} on huge pages"),
            (false, false) => write!(f, "{version} on {megabytes} MB of ordinary pages"),
            (false, true) => write!(
                f,
                "{version} on {megabytes} MB of ordinary pages (no huge pages are free; as root, sysctl \
                 vm.nr_hugepages={} makes packet memory faster)",
                megabytes.div_ceil(4)
            ),
        }
    }
}

/// Everything that ends when EAL ends.
#[derive(Debug)]
struct Running {
    chosen: Chosen,
    /// The directory that is this process's alone, which EAL empties but leaves.
    directory: Option<PathBuf>,
    keep: AtomicBool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.keep.load(Ordering::Relaxed) {
            // SAFETY: ports, pools and registered threads hold an `Eal`, so none is left; a buffer still out would have
            // set `keep`.
            unsafe { ffi::mr_eal_cleanup() };
            if let Some(directory) = &self.directory {
                // Best effort: an empty directory in a tmpfs harms nobody.
                let _ = std::fs::remove_dir_all(directory);
            }
        }
    }
}

/// The running EAL. Clones share it; when the last is dropped, it is cleaned up, and can't be started again.
#[derive(Clone, Debug)]
pub struct Eal(Arc<Running>);

static STARTED: AtomicBool = AtomicBool::new(false);
/// Port operations and the capture of their log lines, one at a time.
static SLOW_PATH: Mutex<()> = Mutex::new(());

impl Eal {
    /// Starts EAL. The calling thread becomes DPDK's main thread; its CPU affinity stays as it is.
    pub fn init(config: &EalConfig) -> Result<Self, DpdkError> {
        if STARTED.swap(true, Ordering::SeqCst) {
            return Err(DpdkError::Started);
        }
        // SAFETY: plain call; installs a log stream that lives as long as the process.
        unsafe { ffi::mr_log_capture(i32::from(config.verbose)) };
        let bytes = (config.megabytes as usize) << 20;
        // EAL can't be tried a second time, so what it would do is tried before it.
        // Inter-process messages exclude in-memory mode, and huge pages in files need a mounted hugetlbfs: too much to ask
        // for a kernel device.
        let wanted = match config.memory {
            Memory::Auto => !config.multi_process,
            Memory::HugePages => true,
            Memory::NoHuge => false,
        };
        // SAFETY: plain call that maps and unmaps memory of its own.
        let available = wanted && unsafe { ffi::mr_huge_pages(bytes) } != 0;
        if config.memory == Memory::HugePages && !available {
            STARTED.store(false, Ordering::SeqCst);
            return Err(DpdkError::HugePages { megabytes: config.megabytes });
        }
        let megabytes = if available { config.megabytes } else { config.megabytes.saturating_mul(2) };
        let arguments = arguments(config, available, megabytes);
        let mut owned: Vec<CString> = Vec::with_capacity(arguments.len());
        for argument in arguments {
            match CString::new(argument) {
                Ok(argument) => owned.push(argument),
                Err(error) => {
                    STARTED.store(false, Ordering::SeqCst);
                    let argument = String::from_utf8_lossy(&error.into_vec()).into_owned();
                    return Err(DpdkError::Device(argument));
                }
            }
        }
        let mut pointers: Vec<*mut c_char> =
            owned.iter().map(|argument| argument.as_ptr().cast_mut()).collect();
        let count = i32::try_from(pointers.len()).unwrap_or(i32::MAX);
        pointers.push(std::ptr::null_mut());
        // SAFETY: a null-terminated array of C strings, all alive over the call. EAL permutes the array (getopt) and copies
        // what it keeps; it doesn't write into the strings.
        let errno = unsafe { ffi::mr_eal_init(count, pointers.as_mut_ptr()) };
        if errno != 0 {
            let remedy = match errno {
                libc_errno::ENOMEM => " Less memory may do (memory megabytes), or free some.",
                libc_errno::EACCES | libc_errno::EPERM => {
                    " It may need root or CAP_SYS_ADMIN for this memory mode."
                }
                _ => "",
            };
            return Err(DpdkError::Start { cause: cause(errno), remedy, log: take_log() });
        }
        take_log();
        let version = version();
        let chosen = Chosen {
            huge_pages: available,
            fell_back: config.memory == Memory::Auto && wanted && !available,
            megabytes,
            version,
        };
        let directory = config.multi_process.then(own_directory).flatten();
        Ok(Self(Arc::new(Running { chosen, directory, keep: AtomicBool::new(false) })))
    }

    /// What was chosen, to tell the user.
    pub fn chosen(&self) -> &Chosen {
        &self.0.chosen
    }

    /// Registers the calling thread, so that it gets buffer caches of its own. Keep the guard on this thread until it ends.
    /// Workers that don't still run, more slowly.
    pub fn register_thread(&self) -> Result<ThreadGuard, DpdkError> {
        // SAFETY: plain calls that concern the calling thread.
        let owned = unsafe { ffi::mr_thread_is_registered() } == 0;
        if owned {
            // SAFETY: as above.
            let errno = unsafe { ffi::mr_thread_register() };
            if errno != 0 {
                return Err(DpdkError::Thread(cause(errno)));
            }
        }
        Ok(ThreadGuard { owned, _eal: self.clone(), _this_thread: std::marker::PhantomData })
    }

    /// Buffers are still out somewhere: EAL's memory has to stay until the process ends.
    pub(crate) fn keep_forever(&self) {
        self.0.keep.store(true, Ordering::Relaxed);
    }
}

/// DPDK's version, "DPDK 22.11.x".
pub fn version() -> String {
    // SAFETY: a constant string.
    unsafe { CStr::from_ptr(ffi::mr_version()) }.to_string_lossy().into_owned()
}

/// The drivers of devices that are linked in, by DPDK's names without their numbers; `None`: they come from shared libraries, and which there
/// are is known once DPDK runs.
pub fn drivers() -> Option<Vec<&'static str>> {
    let names = env!("MILLRACE_DPDK_DRIVERS");
    (!names.is_empty()).then(|| names.split(',').collect())
}

/// Registration of one thread with DPDK; dropping it ends it.
#[derive(Debug)]
pub struct ThreadGuard {
    /// False for DPDK's own main thread, and within another guard.
    owned: bool,
    _eal: Eal,
    /// Unregistering has to happen on the thread that registered: this makes the guard `!Send`.
    _this_thread: std::marker::PhantomData<*const ()>,
}

impl Drop for ThreadGuard {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: the same thread registered, for the guard can't have left it.
            unsafe { ffi::mr_thread_unregister() };
        }
    }
}

/// The file prefix under which nobody else keeps run-time files.
fn file_prefix() -> String {
    format!("millrace{}", std::process::id())
}

/// EAL's run-time directory, if it is named after this process.
fn own_directory() -> Option<PathBuf> {
    // SAFETY: null, or a C string that lives as long as EAL.
    let directory = unsafe { ffi::mr_runtime_dir().as_ref() }?;
    // SAFETY: as above.
    let directory = Path::new(unsafe { CStr::from_ptr(directory) }.to_str().ok()?);
    directory.ends_with(file_prefix()).then(|| directory.to_owned())
}

/// EAL's command line.
fn arguments(config: &EalConfig, huge_pages: bool, megabytes: u32) -> Vec<String> {
    // "0@(cpus)": logical core 0 may run where this thread may. Anything else would pin the caller to a core, and
    // every thread that it starts later with it.
    let mut arguments = vec!["millrace".to_owned(), "--lcores".into(), format!("0@({})", allowed_cpus())];
    let mut push = |argument: &str| arguments.push(argument.to_owned());
    push("--no-telemetry");
    // In-memory huge pages leave no files and need no privilege, but also no inter-process messages.
    if huge_pages && !config.multi_process {
        push("--in-memory");
    } else {
        if !huge_pages {
            // 22.11 refuses --no-huge with --in-memory.
            push("--no-huge");
            push("--iova-mode=va");
        }
        push("-m");
        push(&megabytes.to_string());
        if config.multi_process {
            push("--file-prefix");
            push(&file_prefix());
        } else {
            push("--no-shconf");
        }
    }
    if config.pci.is_empty() {
        push("--no-pci");
    }
    for address in &config.pci {
        push("-a");
        push(address);
    }
    arguments.extend(config.extra.iter().cloned());
    arguments
}

/// The CPUs that this thread may run on, as the kernel lists them ("0-3,8").
fn allowed_cpus() -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .map_or_else(|| "0".to_owned(), |list| list.trim().to_owned())
}

/// The lines that DPDK logged since the last call.
pub(crate) fn take_log() -> Log {
    let mut text = vec![0; 4096];
    // SAFETY: the shim writes at most as many bytes as it is told there are.
    let used = unsafe { ffi::mr_log_take(text.as_mut_ptr(), text.len()) };
    text.truncate(used);
    let text = String::from_utf8_lossy(&text).into_owned();
    Log(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Runs something that talks to EAL's slow path, alone, and with a log of its own.
pub(crate) fn alone<T>(work: impl FnOnce() -> T) -> T {
    let _one = SLOW_PATH.lock().unwrap_or_else(PoisonError::into_inner);
    take_log();
    work()
}

/// The few errno values that lead to advice (Linux's numbers, the same on every architecture DPDK runs on).
pub(crate) mod libc_errno {
    pub(crate) const EPERM: i32 = 1;
    pub(crate) const ENOMEM: i32 = 12;
    pub(crate) const EACCES: i32 = 13;
    pub(crate) const EBUSY: i32 = 16;
    pub(crate) const EINVAL: i32 = 22;
}

/// Whether a device string begins with a PCI address.
pub(crate) fn is_pci(device: &str) -> bool {
    let id = device.split(',').next().unwrap_or_default();
    let mut parts = id.split([':', '.']);
    let hex =
        |part: Option<&str>| part.is_some_and(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_hexdigit()));
    let fields = id.split([':', '.']).count();
    (fields == 3 || fields == 4) && id.contains(':') && (0..fields).all(|_| hex(parts.next()))
}
