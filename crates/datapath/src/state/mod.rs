//! What a worker knows of subscribers: shards, sessions, records, flows, and what bounds them.

pub mod account;
pub mod carried;
pub(crate) mod compile;
pub(crate) mod conversation;
pub(crate) mod directory;
pub mod export;
pub(crate) mod feeder;
pub(crate) mod flow;
pub(crate) mod formers;
pub(crate) mod fragment;
pub(crate) mod install;
pub(crate) mod limits;
pub(crate) mod load;
pub mod marking;
pub(crate) mod origin;
pub(crate) mod overload;
pub(crate) mod permit;
pub(crate) mod police;
mod portable;
pub mod record;
pub(crate) mod room;
pub(crate) mod rules;
pub(crate) mod runs;
pub(crate) mod shard;
pub mod slice;
pub(crate) mod treatment;
pub(crate) mod waiting;
