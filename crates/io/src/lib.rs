//! Where do packets come from?
#![deny(unsafe_code)]

pub mod conformance;
pub mod frame;
pub mod mem;
pub mod port;
pub mod replay;

pub use frame::{Frame, FramePool};
pub use port::{BURST, Port, PortInfo, PortStats, RxQueue, TxQueue};
