//! What a UPF is leaves the process in a file, and another process goes on with it: [`dump`] writes, [`restore`] reads, [`file`] says what a file
//! looks like.

pub(super) mod dump;
pub(super) mod file;
pub(super) mod restore;
