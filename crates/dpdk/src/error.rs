//! What can go wrong, with DPDK's own words and what to do about it.

/// An error from DPDK or before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DpdkError {
    /// EAL can be started once in a process's life.
    #[error("DPDK was already started in this process (or its start failed); it can't be started again")]
    Started,
    /// EAL did not start.
    #[error("DPDK did not start: {cause}.{remedy}{log}")]
    Start {
        /// The system's word for it.
        cause: String,
        /// What to try.
        remedy: &'static str,
        /// What DPDK logged.
        log: Log,
    },
    /// Huge pages were demanded, but there are none.
    #[error(
        "no {megabytes} MB of huge pages are free; reserve some (as root: sysctl vm.nr_hugepages={}) or set memory \
         to auto or no-huge", megabytes.div_ceil(2)
    )]
    HugePages {
        /// How much was asked for.
        megabytes: u32,
    },
    /// A name or argument that DPDK can't be given.
    #[error(
        "{0:?} is neither a PCI address (0000:03:00.0) nor a DPDK device such as net_af_packet0,iface=eth1"
    )]
    Device(String),
    /// The device could not be attached.
    #[error("device {device}: {cause}.{remedy}{log}")]
    Probe {
        /// The device as given.
        device: String,
        /// The system's word for it.
        cause: String,
        /// What to try.
        remedy: &'static str,
        /// What DPDK logged.
        log: Log,
    },
    /// The device could not be configured or started.
    #[error("device {device}: {step} failed: {cause}.{remedy}{log}")]
    Port {
        /// The device as given.
        device: String,
        /// What was being done.
        step: String,
        /// The system's word for it.
        cause: String,
        /// What to try.
        remedy: &'static str,
        /// What DPDK logged.
        log: Log,
    },
    /// Devices that can't be one port.
    #[error("the aggregated port {device} can't be: {why}")]
    Bond {
        /// The port's device.
        device: String,
        /// What is wrong.
        why: &'static str,
    },
    /// More queues than the device has.
    #[error("device {device} has {available} queue pairs, {wanted} are configured")]
    Queues {
        /// The device as given.
        device: String,
        /// What is configured.
        wanted: u16,
        /// What there is.
        available: u16,
    },
    /// The MTU is beyond what the device carries.
    #[error("device {device} carries an MTU of {least} to {most}, {wanted} is configured")]
    Mtu {
        /// The device as given.
        device: String,
        /// What is configured.
        wanted: u16,
        /// The least possible.
        least: u16,
        /// The greatest possible.
        most: u16,
    },
    /// No memory for packet buffers.
    #[error("no memory for {frames} packet buffers of {room} bytes ({cause}); {remedy}")]
    Pool {
        /// Buffers wanted.
        frames: u32,
        /// Bytes of each.
        room: u16,
        /// The system's word for it.
        cause: String,
        /// What to try.
        remedy: &'static str,
    },
    /// DPDK's table of threads is full, or it isn't started.
    #[error("this thread can't be registered with DPDK: {0}")]
    Thread(String),
}

/// The lines that DPDK logged around an error; prints itself indented on lines of its own, or as nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log(pub Vec<String>);

impl std::fmt::Display for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for line in &self.0 {
            write!(f, "\n    {line}")?;
        }
        Ok(())
    }
}

/// `errno` in words.
pub(crate) fn cause(errno: i32) -> String {
    std::io::Error::from_raw_os_error(errno).to_string()
}
