//! Capture files: replayed through a [`Port`](crate::Port), recorded from any.
//!
//! [`CaptureReader`] reads pcap and pcapng of either byte order and any resolution, from anything that is `Read`;
//! hostile files cost at most 1 MiB of memory and end in a [`CaptureError`]. [`CaptureWriter`] writes pcapng with
//! nanosecond timestamps, direction and comments, which Wireshark shows. [`PcapPort`] is a port that receives from one
//! file and sends to another; [`RecordedPort`] is any port, with a capture of what went through it.

mod port;
mod reader;
mod record;
mod writer;

pub use port::{Pace, PcapPort, PcapRx, PcapTx};
pub use reader::{CaptureError, CaptureReader, CapturedPacket};
pub use record::{RecordedPort, RecordedRx, RecordedTx, Recorder};
pub use writer::{CaptureWriter, Direction};

/// Where timestamps come from: nanoseconds since 1970, as capture files count.
pub type Clock = std::sync::Arc<dyn Fn() -> u64 + Send + Sync>;

/// The system's wall clock.
pub fn system_clock() -> Clock {
    std::sync::Arc::new(|| {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    })
}
