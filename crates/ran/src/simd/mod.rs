//! What this processor's vectors can do, and the code that is written for them.

#[cfg(target_arch = "x86_64")]
pub mod aes_ctr;
pub mod cipher;
pub(crate) mod encode;
#[cfg(target_arch = "x86_64")]
pub(crate) mod min_sum;
pub(crate) mod rate_matching;

pub use tables::Processor;
