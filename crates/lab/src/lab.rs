//! The whole lab: started in order, ended in the opposite order.

use crate::capture::Captures;
use crate::config::{self, Driver};
use crate::dn::DataNetwork;
use crate::process::{code, send, watch};
use crate::reaper::Reaper;
use crate::signals::Signals;
use crate::smf::{self, SmfThread};
use crate::topology::{MAX_UES, Namespaces, address, ue_name};
use crate::ue::Ue;
use crate::upf::Upf;
use crate::{LabError, Tool};
use loadgen::application_rule::ApplicationRule;
use loadgen::facts::SessionFacts;
use loadgen::habits::Habit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use std::ffi::OsString;
use std::fmt::{self, Write};
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::Command;

/// What a lab is to be.
#[derive(Clone, Debug)]
pub struct Options {
    /// Prefix of the namespaces' names; `None`: they are just `ran`, `upf` and `dn`.
    pub name: Option<String>,
    /// How the UPF drives its interfaces.
    pub driver: Driver,
    /// Whose manners the SMF has.
    pub smf: Habit,
    /// The UPF's workers.
    pub workers: u16,
    /// UEs, 1 to [`MAX_UES`].
    pub ues: u8,
    /// Whether the UPF translates addresses on N6.
    pub nat: bool,
    /// What the sessions do with applications' packets; of [`Habit::Plain`] only.
    pub applications: Vec<ApplicationRule>,
    /// Where to put captures of N3, N4 and N6 and the UPF's log.
    pub capture: Option<PathBuf>,
    /// The program `millrace`.
    pub binary: PathBuf,
}

/// A running lab. Everything in it ends, in this order, when it is dropped; [`Lab::finish`] also tells how.
#[derive(Debug)]
pub struct Lab {
    smf: SmfThread,
    ues: Vec<Ue>,
    upf: Upf,
    dn: DataNetwork,
    captures: Option<Captures>,
    reaper: Reaper,
    signals: Signals,
    options: Options,
    namespaces: Namespaces,
    /// Of each UE, the first first.
    facts: Vec<SessionFacts>,
    directory: PathBuf,
}

impl Lab {
    /// Builds everything, and returns when the UEs have their sessions. From here on SIGINT, SIGTERM and SIGHUP are the lab's.
    ///
    /// Errors: not root, a tool or a kernel feature is missing, the namespaces' names are taken, the UPF did not start or did not
    /// take the session. Nothing is left behind then.
    pub fn start(options: &Options) -> Result<Self, LabError> {
        let mut lab = Self::build(options, false)?;
        let Self { namespaces, facts, ues, .. } = &mut lab;
        for (ue, facts) in namespaces.ues().zip(&*facts) {
            ues.push(Ue::start(&namespaces.ran, ue, facts)?);
        }
        Ok(lab)
    }

    /// The same with [links that others can be plugged into](Namespaces::plug_in), and with sessions, but without UEs and gNBs.
    pub(crate) fn start_bridged(options: &Options) -> Result<Self, LabError> {
        Self::build(options, true)
    }

    fn build(options: &Options, bridged: bool) -> Result<Self, LabError> {
        let namespaces = Namespaces::named(options.name.as_deref(), options.ues)?;
        if !options.applications.is_empty() && options.smf != Habit::Plain {
            return Err(LabError::NoApplications(options.smf));
        }
        if !rustix::process::geteuid().is_root() {
            return Err(LabError::NotRoot);
        }
        for tool in [Tool::IP, Tool::ETHTOOL] {
            tool.demand()?;
        }
        let signals = Signals::catch().map_err(LabError::Os)?;
        let interrupted = || signals.next().is_some();

        let mut reaper = Reaper::start(&options.binary)?;
        namespaces.create(bridged, |name| reaper.claim_namespace(name))?;
        let directory = PathBuf::from(match &options.name {
            Some(name) => format!("/run/millrace/lab-{name}"),
            None => "/run/millrace/lab".into(),
        });
        reaper.claim_directory(&directory)?;
        // The namespaces are ours, so a directory that is there was left by a lab whose reaper was killed too.
        let _ = fs::remove_dir_all(&directory);
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory);
        made.map_err(|source| LabError::File { path: directory.clone(), source })?;

        let captures = match &options.capture {
            Some(to) => Some(Captures::start(&namespaces, to, &directory)?),
            None => None,
        };
        let dn = DataNetwork::start(&namespaces.dn, &directory)?;
        let socket = directory.join("ctl.sock");
        let file = directory.join("upf.toml");
        fs::write(&file, config::toml(options.driver, options.workers, options.nat, bridged, &socket))
            .map_err(|source| LabError::File { path: file.clone(), source })?;
        let log = options.capture.as_ref().unwrap_or(&directory).join("upf.log");
        let mut upf = Upf::start(&options.binary, &namespaces.upf, &directory, &log)?;
        upf.await_ready(&socket, interrupted)?;
        let check = || {
            upf.check()?;
            if interrupted() { Err(LabError::Interrupted) } else { Ok(()) }
        };
        let count = options.ues.clamp(1, MAX_UES);
        let (smf, facts) = SmfThread::start(&namespaces.upf, smf::config(options, count)?, count, check)?;
        namespaces.name_ues(&facts)?;
        let (ues, options) = (Vec::new(), options.clone());
        Ok(Self { smf, ues, upf, dn, captures, reaper, signals, options, namespaces, facts, directory })
    }

    /// Where `millrace ctl --socket` reaches the UPF.
    pub fn socket(&self) -> PathBuf {
        self.directory.join("ctl.sock")
    }

    /// The sessions of the UEs.
    pub fn sessions(&self) -> &[SessionFacts] {
        &self.facts
    }

    pub(crate) const fn namespaces(&self) -> &Namespaces {
        &self.namespaces
    }

    /// An error if a signal came, or the UPF ended.
    pub(crate) fn look(&mut self) -> Result<(), LabError> {
        self.upf.check()?;
        if self.signals.next().is_some() { Err(LabError::Interrupted) } else { Ok(()) }
    }

    /// Runs a command as the first UE, with this process's standard input, output and error; says its exit code (128 and the
    /// signal's number if a signal ended it). [`can_run`](crate::can_run) knows beforehand whether there is such a command.
    ///
    /// SIGTERM and SIGHUP are passed on. SIGINT is not: a terminal sends it to the command too. But the second one, as
    /// SIGTERM, and the third, as SIGKILL.
    pub fn run(&mut self, command: &[OsString]) -> Result<u8, LabError> {
        let mut line = Command::new("ip");
        line.args(["netns", "exec", &self.namespaces.ran]).args(command);
        line.env("MILLRACE_CTL__SOCKET", self.socket());
        if let Some(path) = self.path() {
            line.env("PATH", path);
        }
        let mut child = line.spawn().map_err(|source| LabError::Tool { program: "ip", source })?;
        let end = watch(&child)?;
        let mut interrupts = 0;
        loop {
            if let Some(status) = child.try_wait().map_err(LabError::Os)? {
                return Ok(code(status));
            }
            if let Err(error) = self.pause(Some(&end)).and_then(|()| self.upf.check()) {
                let _ = child.kill();
                let _ = child.wait();
                return Err(error);
            }
            match self.signals.next() {
                None => {}
                Some(Signal::INT) => {
                    interrupts += 1;
                    match interrupts {
                        1 => {}
                        2 => send(&mut child, Signal::TERM),
                        _ => send(&mut child, Signal::KILL),
                    }
                }
                Some(signal) => send(&mut child, signal),
            }
        }
    }

    /// Where commands find programs: before all else `millrace`, the one that the lab runs.
    fn path(&self) -> Option<OsString> {
        let own = self.options.binary.parent()?.to_owned();
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&path))).ok()
    }

    /// Returns when SIGINT, SIGTERM or SIGHUP comes.
    ///
    /// Errors: the UPF ended by itself.
    pub fn wait(&mut self) -> Result<(), LabError> {
        while self.signals.next().is_none() {
            self.pause(None)?;
            self.upf.check()?;
        }
        Ok(())
    }

    /// Waits until the UPF or the command ends, but not longer than a signal may wait.
    fn pause(&self, command: Option<&std::os::fd::OwnedFd>) -> Result<(), LabError> {
        let upf = self.upf.watch()?;
        let mut ends: Vec<_> =
            std::iter::once(&upf).chain(command).map(|end| PollFd::new(end, PollFlags::IN)).collect();
        match poll(&mut ends, Some(&Timespec { tv_sec: 0, tv_nsec: 50_000_000 })) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(LabError::Os(errno.into())),
        }
    }

    /// Ends everything.
    ///
    /// Errors: the UPF had ended before, or did not end as it should. Nothing is left behind then either.
    pub fn finish(self) -> Result<(), LabError> {
        let Self { smf, ues, mut upf, dn, captures, reaper, .. } = self;
        // The session is deleted and the association released while there is a UPF.
        drop((smf, ues));
        let ended = upf.stop();
        drop((upf, dn, captures));
        drop(reaper);
        ended
    }
}

/// A UE's addresses in words.
fn addresses(facts: &SessionFacts) -> [String; 2] {
    [
        facts.ue_ipv4.map_or("no IPv4".into(), |address| address.to_string()),
        facts.ue_ipv6_address().map_or("no IPv6".into(), |address| address.to_string()),
    ]
}

impl fmt::Display for Lab {
    /// A picture of what was built, and what to try.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Namespaces { ran, upf, dn, further_ues } = &self.namespaces;
        let Some(facts) = self.facts.first() else { return Ok(()) };
        let [v4, v6] = addresses(facts);
        let servers = if self.dn.has_iperf3() { "http, iperf3" } else { "http" };
        let (gap, n3, n6) = ("      ", "--n3--", "--n6--");
        let rows = [
            ([ran.clone(), upf.clone(), dn.clone()], [gap, gap]),
            (
                [
                    format!("UE {} (TUN)", ue_name(0)),
                    format!("SMF ({}) on N4", self.options.smf.name()),
                    servers.into(),
                ],
                [gap, gap],
            ),
            ([v4, format!("Millrace, DPDK {}", self.options.driver), address::DN.to_string()], [gap, gap]),
            ([v6, format!("N3 {}", facts.upf_n3), address::DN_V6.to_string()], [n3, n6]),
            ([format!("gNB {}", facts.gnb), format!("N6 {}", address::UPF_N6), String::new()], [gap, gap]),
        ];
        let edge = format!("  +{:-<28}+      +{:-<28}+      +{:-<20}+\n", "", "", "");
        let mut picture = edge.clone();
        for ([ran, upf, dn], [left, right]) in &rows {
            writeln!(picture, "  | {ran:<26} |{left}| {upf:<26} |{right}| {dn:<18} |")?;
        }
        picture.push_str(&edge);
        let name = self.options.name.as_ref().map_or(String::new(), |name| format!(" --name {name}"));
        write!(
            f,
            "{picture}\n\
             The UE's packets leave by ue0 in GTP-U: TEID {} at {} up, TEID {} at {} down, QFI {}.\n",
            facts.ul_teid,
            facts.upf_n3,
            facts.dl_teid,
            facts.gnb,
            facts.qfi.get()
        )?;
        for ((ue, namespace), facts) in self.namespaces.ues().zip(&self.facts).skip(1) {
            let ([v4, v6], gnb) = (addresses(facts), facts.gnb);
            writeln!(f, "Another UE is {} in {namespace}, behind the gNB {gnb}: {v4}, {v6}.", ue_name(ue))?;
        }
        write!(
            f,
            "\nTry in another terminal, as root (dn is the data network's host, IPv4 and IPv6):\n\
             \x20 ip netns exec {ran} ping dn\n\
             \x20 ip netns exec {ran} curl -o /dev/null http://dn/bytes/100000000\n",
        )?;
        if let Some(other) = further_ues.first() {
            writeln!(f, "  ip netns exec {other} ping ue0             (from one UE to another)")?;
        }
        if self.dn.has_iperf3() {
            writeln!(f, "  ip netns exec {ran} iperf3 -c dn       (-R: downlink, -u -b 50M: UDP)")?;
        }
        let socket = self.socket();
        let socket = socket.display();
        write!(
            f,
            "  ip netns exec {ran} bash\n\
             \x20 millrace ctl --socket {socket} sessions      (session SEID, drops, ports, workers)\n\n\
             Or run one command in a lab of its own: millrace lab{name} run -- ping -c 3 dn\n"
        )?;
        if let Some(capture) = &self.options.capture {
            writeln!(f, "Captures of N3, N4 and N6 and the UPF's log are written to {}.", capture.display())?;
        } else {
            writeln!(f, "The UPF's log is {}.", self.directory.join("upf.log").display())?;
        }
        f.write_str("Ctrl-C ends the lab and removes all of it.\n")
    }
}
