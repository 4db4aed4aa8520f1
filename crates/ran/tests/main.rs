//! The crate's integration tests, one binary.
