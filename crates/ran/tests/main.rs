//! The crate's integration tests, one binary.

mod ldpc_decoder;
mod ldpc_encoder;
