//! The crate's integration tests, one binary.

mod block_errors;
mod crc;
mod ldpc_decoder;
mod ldpc_encoder;
mod nea2;
mod shared_data;
mod standard;
mod transport_block;
