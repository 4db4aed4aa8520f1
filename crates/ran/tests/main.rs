//! The crate's integration tests, one binary.

mod ldpc_encoder;
