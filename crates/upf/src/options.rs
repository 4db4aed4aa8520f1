//! What a UPF is started with beside its configuration, and why it did not start.

use super::lookups::{FindLookups, NoLookupDevice};
use super::restart::file::{FileError, Saved};
use super::server::CtlBindError;
use datapath::rib::RibError;
use engine::{EngineError, IdlePolicy, OnThreadStart};
use machine::topology::NotEnoughCores;
use session::pool::PoolError;
use std::net::SocketAddr;
use std::time::SystemTime;

/// Why a UPF did not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum UpfError {
    /// N4's socket.
    #[error("can't listen for PFCP on {address}: {source}; see [n4] listen")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// SMFs are told an address at which they reach each session.
    #[error("[n4] listen is the unspecified address, and [node] id is not an address: SMFs must be told one")]
    NoAddress,
    /// Signatures.
    #[error("{0}; see [inspection] signatures")]
    Signatures(#[from] dpi::signatures::LoadError),
    /// The metrics' socket.
    #[error("can't serve metrics on {address}: {source}; see [metrics] listen")]
    Metrics {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The control socket.
    #[error(transparent)]
    Ctl(#[from] CtlBindError),
    /// Workers.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Look-ups are to be a device's, and there is none.
    #[error("{0}; see [workers] lookup")]
    Lookups(#[from] NoLookupDevice),
    /// Workers are to be pinned, and can't all be.
    #[error("{0}; see [workers] pin")]
    Cores(#[from] NotEnoughCores),
    /// Interfaces or routes that can't be.
    #[error("{what}: {source}")]
    Network {
        /// Which interface or route.
        what: String,
        /// Why.
        source: RibError,
    },
    /// A translation that can't be.
    #[error("translation on N6: {0}")]
    Nat(datapath::nat::PlanError),
    /// The log of bindings can't be written.
    #[error("can't write to {path}: {source}", path = path.display())]
    NatLog {
        /// Its path.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The log of flows can't be written.
    #[error("can't write to {path}: {source}; see [flow-log] file", path = path.display())]
    FlowLog {
        /// Its path.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// UE address pools that can't be.
    #[error("UE address pools: {0}")]
    Pool(PoolError),
    /// The configuration has another number of ports than were opened.
    #[error("{configured} ports are configured, {open} are open")]
    Ports {
        /// In the configuration.
        configured: usize,
        /// Opened.
        open: usize,
    },
    /// A worker died, and there was none to take over what it had.
    #[error(
        "worker {0} died, and there was no other to take over its sessions: SMFs have been told that this UPF ends"
    )]
    WorkerLost(usize),
    /// A file to go on with can't be read, or not be moved out of the way.
    #[error(transparent)]
    Restore(#[from] FileError),
    /// A file to go on with is another UPF's.
    #[error(
        "{path} has the sessions of node {node}: for SMFs this one, [node] id, is another; move the file away to start without sessions",
        path = path.display()
    )]
    OtherNode {
        /// The file.
        path: std::path::PathBuf,
        /// Whose it is.
        node: String,
    },
    /// Workers did not carry out what a file to go on with asks for.
    #[error("workers don't answer: the sessions of another process can't be restored")]
    RestoreStands,
    /// The operating system refuses something small: a thread, a file descriptor, random numbers.
    #[error("the operating system refuses: {0}")]
    Os(#[from] std::io::Error),
}

/// What a UPF is started with beside its configuration.
#[derive(Clone, Default)]
pub struct Options {
    /// Runs first in each worker's thread.
    pub on_thread_start: Option<OnThreadStart>,
    /// What workers do when there is nothing to do.
    pub idle: IdlePolicy,
    /// Don't open a control socket.
    pub no_ctl: bool,
    /// Send own requests to the port that a peer's association came from, instead of 8805: several nodes on one address.
    pub reply_to_source_port: bool,
    /// What time of day it is; `None`: the system knows.
    pub time_of_day: Option<fn() -> SystemTime>,
    /// Go on with what another process wrote down.
    pub restore: Option<Saved>,
    /// Finds a CUDA device that answers workers' look-ups; `None`: the program can't drive any.
    pub lookups: Option<FindLookups>,
}
