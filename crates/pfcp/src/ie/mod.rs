//! Information elements as typed values. One file per family.

mod access;
mod forwarding;
mod node;
mod pfd;
mod qos;
mod usage;
mod user;
pub(crate) mod wire;

pub use access::*;
pub use forwarding::*;
pub use node::*;
pub use pfd::*;
pub use qos::*;
pub use usage::*;
pub use user::*;
pub use wire::MAX_LIST;
