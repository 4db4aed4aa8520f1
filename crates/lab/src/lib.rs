//! What does it look like when a phone's `curl` goes through this UPF?
//!
//! Three network namespaces of this machine, joined by veth pairs: `ran` with a UE and its gNB, `upf` with Millrace and
//! an SMF, `dn` with a data network's servers ([`topology`] has the picture). Millrace is the real thing, `millrace run` with
//! DPDK on the veth ends, configured over PFCP; the UE is a TUN interface, so every program that runs in `ran` is a program on a phone; further UEs have namespaces of their own. What
//! is modelled is only what surrounds a UPF: SMF and gNB are those of crate `loadgen`.
//!
//! # Model
//!
//! [`Lab::start`] builds it, [`Lab::run`] runs a command as the UE, [`Lab::finish`] takes it down. Threads that enter a
//! namespace open their sockets there and may leave it alone afterwards: a socket stays where it was made. Programs are
//! started by `ip netns exec`, which also lays `/etc/netns/NAME/hosts` over `/etc/hosts`: that is how `dn` is a name.
//!
//! **Nothing stays behind.** Everything the lab makes it claims from a [`reaper`], a process that sees the lab's end
//! whatever the reason is, SIGKILL included, and removes what was claimed with all that runs in it.
//!
//! ```no_run
//! use lab::{Driver, Habit, Lab, Options};
//!
//! let options = Options {
//!     name: None,
//!     driver: Driver::AfPacket,
//!     smf: Habit::Open5gs,
//!     workers: 1,
//!     ues: 1,
//!     nat: false,
//!     applications: vec!["youtube=redirect:http://dn/".parse()?],
//!     capture: Some("/tmp/capture".into()),
//!     binary: "/usr/local/bin/millrace".into(),
//! };
//! let mut lab = Lab::start(&options)?;
//! println!("{lab}");
//! let code = lab.run(&["ping".into(), "-c1".into(), "dn".into()])?;
//! lab.finish()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cost
//!
//! One to two seconds to start, most of it DPDK's; a worker that sleeps when no packet comes.
//!
//! # When not to use it
//!
//! For speed: every packet crosses the kernel four times, copied each time, and UE, gNB, UPF and servers share the
//! machine's cores. `millrace demo` and `millrace bench` measure Millrace; the lab shows that real programs agree with it.
#![forbid(unsafe_code)]

pub mod attack;
mod capture;
mod config;
mod dn;
mod lab;
mod process;
pub mod reaper;
mod signals;
mod smf;
pub mod topology;
mod ue;
mod upf;
pub mod web;

pub use config::Driver;
pub use lab::{Lab, Options};
pub use loadgen::application_rule::ApplicationRule;
pub use loadgen::habits::Habit;
pub use process::is_there as can_run;

use std::path::{Path, PathBuf};

/// Why the lab did not start or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The caller may not do it.
    #[error("the lab makes network namespaces and interfaces, which needs root: run it with sudo")]
    NotRoot,
    /// The name can't be part of a namespace's name.
    #[error("`{0}` can't name a lab: use 1 to 32 letters, digits and hyphens")]
    Name(String),
    /// Only one SMF has rules for applications.
    #[error("an SMF with the manners of {} has no rules for applications: use --smf plain", .0.name())]
    NoApplications(Habit),
    /// Somebody uses the namespace.
    #[error(
        "the network namespace `{0}` exists already: another lab may be running. Choose a name with --name, or remove it with `ip netns delete {0}`"
    )]
    Exists(String),
    /// A program is not installed.
    #[error("{program} is missing: install it (on Debian: apt-get install {package})")]
    Missing {
        /// Which.
        program: &'static str,
        /// Debian's package.
        package: &'static str,
    },
    /// A file or directory.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// A program can't be run.
    #[error("can't run {program}: {source}")]
    Tool {
        /// Which.
        program: &'static str,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// A program failed.
    #[error("`{line}` failed: {said}")]
    Command {
        /// What was run.
        line: String,
        /// What it said.
        said: String,
    },
    /// The operating system refuses something.
    #[error("the operating system refuses: {0}")]
    Os(std::io::Error),
    /// The UPF did not start, or ended by itself.
    #[error("the UPF failed ({how}); its log ends with:\n{log}")]
    Upf {
        /// How it ended.
        how: String,
        /// The end of its log.
        log: String,
    },
    /// No association, or no session.
    #[error("the SMF model got no session for the UE: {0}")]
    Session(String),
    /// The UE's interface.
    #[error(transparent)]
    Tun(#[from] io::tun::TunError),
    /// The gNB.
    #[error(transparent)]
    Gnb(#[from] loadgen::gnb_tun::LabError),
    /// The SMFs that storm.
    #[error(transparent)]
    Storm(#[from] loadgen::storm::StormError),
    /// A question to the UPF's control socket.
    #[error(transparent)]
    Ctl(#[from] api::CtlClientError),
    /// A signal came before it was done.
    #[error("interrupted")]
    Interrupted,
}

/// A program that the lab needs.
#[derive(Clone, Copy, Debug)]
struct Tool {
    program: &'static str,
    package: &'static str,
}

impl Tool {
    const IP: Self = Self { program: "ip", package: "iproute2" };
    const ETHTOOL: Self = Self { program: "ethtool", package: "ethtool" };
    const TCPDUMP: Self = Self { program: "tcpdump", package: "tcpdump" };

    /// An error that names the package if it is missing.
    fn demand(self) -> Result<(), LabError> {
        let Self { program, package } = self;
        if process::is_there(Path::new(program)) {
            Ok(())
        } else {
            Err(LabError::Missing { program, package })
        }
    }
}
