//! What happens to this burst?
#![forbid(unsafe_code)]

pub mod account;
mod classify;
pub mod command;
mod config;
pub mod counters;
mod datapath;
mod directory;
mod egress;
mod forward;
mod fragment;
mod gtpu_control;
mod icmp;
mod limiter;
mod local;
mod neighbour;
pub mod net;
mod network;
mod outbox;
pub mod parse;
mod peer;
mod reason;
pub mod record;
mod routes;
mod shard;
mod slow;

pub use command::{Command, Event, SessionSnapshot, Token, Transition};
pub use config::Config;
pub use counters::{Counters, InterfaceCounters, Traffic};
pub use datapath::Datapath;
pub use net::{Net, NetView};
pub use outbox::Outbox;
pub use reason::Reason;
pub use shard::{Refusal, Session, Shard};
