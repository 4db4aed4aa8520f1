//! The crate's integration tests, one binary.

mod ldpc_decoder;
mod ldpc_encoder;
mod nea2;
mod shared_data;
