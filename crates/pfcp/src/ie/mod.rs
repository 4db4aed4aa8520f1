//! Information elements as typed values. One file per family.

mod access;
mod forwarding;
mod node;
mod qos;
mod usage;

pub use access::*;
pub use forwarding::*;
pub use node::*;
pub use qos::*;
pub use usage::*;
