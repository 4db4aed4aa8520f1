//! SMFs gone mad against the UPF of a lab, beside one that has not, and what is left of it afterwards.

use super::probe::{Probe, Served};
use crate::LabError;
use crate::lab::{Lab, Options};
use crate::smf::{PFCP, config_of, establish, pools};
use crate::topology::{Namespaces, address};
use api::{CtlClient, Program, Version};
use loadgen::facts::SessionFacts;
use loadgen::latency::LatencySummary;
use loadgen::storm::{Storm, StormConfig, StormCounts};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What is to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// Messages.
    pub requests: u64,
    /// Looks at memory and sessions come after so many.
    pub every: u64,
    /// What is sent depends on it.
    pub seed: u64,
    /// Packets a second of the session that has nothing to do with it.
    pub probes: u32,
}

/// A look at the UPF.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Mark {
    /// Messages sent until then.
    pub requests: u64,
    /// Octets of memory that the process takes.
    pub resident: u64,
    /// Sessions that stand.
    pub sessions: u64,
    /// Of heartbeats since the last look, from request to answer.
    pub heartbeats: LatencySummary,
}

/// What came of it.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Aftermath {
    /// In order.
    pub marks: Vec<Mark>,
    /// What was sent and answered.
    pub counts: StormCounts,
    /// Seconds that the storm took.
    pub seconds: f64,
    /// Sessions that stood when all associations of the storm had been released, beside the innocent's.
    pub left: u64,
    /// Packets of the innocent session sent during the storm, and lost.
    pub innocent: [u64; 2],
    /// Packets of a session that was established after the storm, sent and lost.
    pub fresh: [u64; 2],
}

impl Aftermath {
    /// What is wrong with it, in sentences.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.left > 0 {
            faults.push(format!("{} sessions are left", self.left));
        }
        let [sent, lost] = self.fresh;
        if sent == 0 || lost > 0 {
            faults.push(format!("a fresh session lost {lost} of {sent} packets"));
        }
        faults
    }

    /// Octets of memory that the process took after the first fifth of the storm, and at its end.
    pub fn memory(&self) -> Option<[u64; 2]> {
        let last = self.marks.last()?;
        let settled = self.marks.iter().find(|mark| mark.requests >= last.requests / 5)?;
        Some([settled.resident, last.resident])
    }
}

/// Requests between two looks whether somebody wants to stop.
const BREATH: u64 = 2_000;
/// How long sessions may take to go, and the control socket to answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// The innocent session's packets before anything is measured.
const WARM: Duration = Duration::from_millis(500);
/// Packets of the fresh session, and how many a second.
const FRESH: (u32, Duration) = (100, Duration::from_secs(1));

/// Storms the UPF of a lab of its own. `tell` hears how many requests have been sent, of how many.
pub fn storm(
    options: &Options,
    weather: &Weather,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<Aftermath, LabError> {
    let mut lab = Lab::start_bridged(&Options { ues: 1, ..options.clone() })?;
    let aftermath = outlast(&mut lab, weather, tell);
    match aftermath {
        // The UPF's end says more than that it is silent.
        Err(error) => Err(lab.finish().err().unwrap_or(error)),
        Ok(aftermath) => lab.finish().map(|()| aftermath),
    }
}

fn outlast(lab: &mut Lab, weather: &Weather, tell: &mut dyn FnMut(u64, u64)) -> Result<Aftermath, LabError> {
    let none = || LabError::Session("the innocent has none".into());
    let innocent = lab.sessions().first().cloned().ok_or_else(none)?;
    let namespaces = lab.namespaces().clone();
    let mut ctl = CtlClient::connect(&lab.socket(), PATIENCE)?;
    let mut probe = Probe::new(&namespaces, &innocent)?;
    // Its neighbours are found.
    probe.run(weather.probes, WARM, &AtomicBool::new(false), || ())?;
    let smfs = address::STORM_N4;
    let config = StormConfig {
        smfs: smfs.map(Into::into).to_vec(),
        upf: upf(),
        upf_n3: innocent.upf_n3,
        gnb: innocent.gnb,
        pools: pools()?,
        foreign: vec![innocent.up_seid],
        seed: weather.seed,
    };
    let mut storm = Namespaces::inside(&namespaces.upf, || Storm::bind(config))??;
    let (stop, begun) = (AtomicBool::new(false), Instant::now());
    let (marks, served) = std::thread::scope(|scope| {
        let serving = scope.spawn(|| probe.run(weather.probes, Duration::MAX, &stop, || ()));
        let marks = rage(lab, &mut ctl, &mut storm, weather, tell);
        stop.store(true, Ordering::Relaxed);
        (marks, serving.join())
    });
    let seconds = begun.elapsed().as_secs_f64();
    let marks = marks?;
    let served = served.map_err(|_| LabError::Os(std::io::Error::other("the probe panicked")))??;
    storm.release()?;
    let counts = *storm.counts();
    drop((storm, probe));
    let left = await_sessions(&mut ctl, 1)?.saturating_sub(1);
    let fresh = fresh(&namespaces, &innocent)?;
    Ok(Aftermath { marks, counts, seconds, left, innocent: lost(&served), fresh: lost(&fresh) })
}

const fn lost(served: &Served) -> [u64; 2] {
    [served.sent, served.sent - served.returned]
}

const fn upf() -> SocketAddr {
    SocketAddr::new(IpAddr::V4(address::UPF_N4), PFCP)
}

fn rage(
    lab: &mut Lab,
    ctl: &mut CtlClient,
    storm: &mut Storm,
    weather: &Weather,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<Vec<Mark>, LabError> {
    let mut marks = Vec::new();
    while storm.counts().requests < weather.requests {
        let sent = storm.counts().requests;
        let next = (sent / weather.every + 1) * weather.every;
        storm.send(BREATH.min(next - sent).min(weather.requests - sent))?;
        lab.look()?;
        let requests = storm.counts().requests;
        tell(requests, weather.requests);
        if requests >= next || requests >= weather.requests {
            let Program { pid, sessions, .. } = ctl.ask(&Version {})?;
            let heartbeats = storm.take_latencies();
            marks.push(Mark { requests, resident: resident(pid)?, sessions, heartbeats });
        }
    }
    Ok(marks)
}

/// Octets of memory that a process takes.
fn resident(pid: u32) -> Result<u64, LabError> {
    let path = PathBuf::from(format!("/proc/{pid}/status"));
    let status = std::fs::read_to_string(&path).map_err(|source| LabError::File { path, source })?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib =
        line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse::<u64>().ok());
    Ok(kib.unwrap_or(0) << 10)
}

/// How many sessions stand, as soon as they are as many as expected, or else in the end.
fn await_sessions(ctl: &mut CtlClient, expected: u64) -> Result<u64, LabError> {
    let until = Instant::now() + PATIENCE;
    loop {
        let sessions = ctl.ask(&Version {})?.sessions;
        if sessions == expected || Instant::now() > until {
            return Ok(sessions);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// One of the SMFs comes to its senses: a session, and its packets.
fn fresh(namespaces: &Namespaces, innocent: &SessionFacts) -> Result<Served, LabError> {
    let [smf, ..] = address::STORM_N4;
    let config = config_of(smf, vec![innocent.gnb])?;
    let (mut smf, facts) = establish(&namespaces.upf, config, 1)?;
    let facts = facts.first().ok_or_else(|| LabError::Session("a fresh one has no facts".into()))?;
    let (rate, span) = FRESH;
    let served = Probe::new(namespaces, facts)?.run(rate, span, &AtomicBool::new(false), || ());
    smf.delete_all()?;
    smf.release()?;
    served
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_wrong_is_said() {
        let mark = |requests, resident| Mark {
            requests,
            resident,
            sessions: 3,
            heartbeats: LatencySummary::default(),
        };
        let good = Aftermath {
            marks: vec![mark(100, 5), mark(200, 7), mark(1_000, 8)],
            counts: StormCounts::default(),
            seconds: 1.0,
            left: 0,
            innocent: [10, 0],
            fresh: [10, 0],
        };
        assert!(good.faults().is_empty());
        assert_eq!(good.memory(), Some([7, 8]));
        let bad = Aftermath { left: 2, fresh: [10, 1], ..good };
        assert_eq!(bad.faults(), ["2 sessions are left", "a fresh session lost 1 of 10 packets"]);
    }

    #[test]
    fn our_own_memory_is_known() {
        assert!(resident(std::process::id()).unwrap() > 1 << 20);
    }
}
