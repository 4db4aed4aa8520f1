//! One binary for all integration tests of the crate: each further one would compile and link what they stand on again.

mod flow;
mod lookup;
