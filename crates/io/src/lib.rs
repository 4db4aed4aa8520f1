//! Where do packets come from?
//!
//! (Essay to be written by the owner of this crate.)
#![forbid(unsafe_code)]

pub mod frame;
pub mod port;

pub use frame::{Frame, FramePool};
pub use port::{BURST, Port, PortInfo, PortStats, RxQueue, TxQueue};
