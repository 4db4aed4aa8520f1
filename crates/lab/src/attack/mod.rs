//! Is somebody who did nothing served while others flood the UPF?
//!
//! A lab whose links have one more port each, at which an attacker sends frames of his own at a given rate: stray fragments, scans by a UE,
//! lies about neighbours. Beside him, a session that has nothing to do with it sends packets to a server and gets them back. What it loses and how long
//! its packets take is measured without and with each flood in turn, several times, and told together with what the kernel lost
//! before Millrace saw it.
//!
//! **Cost.** One thread floods and one is both ends of the innocent session, beside the UPF's: on two cores these four (the kernel's work for the
//! links is done in the senders' threads) share them, and latency shows that too. The flood [`Flood::Elsewhere`] is there to tell it apart:
//! as many frames for another station's MAC address, which cost Millrace a look and no more.

mod flood;
mod probe;
pub mod storm;

pub use flood::Flood;

use crate::lab::{Lab, Options};
use crate::topology::{Namespaces, ue_name};
use crate::{LabError, attack::probe::Probe};
use api::{CtlClient, DropLine, Drops, Ports, SeidText, Session, WorkerLine, Workers};
use config::units::TextUnit;
use flood::Sender;
use loadgen::facts::SessionFacts;
use loadgen::latency::LatencySummary;
use packet::MacAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which floods, one after the other.
    pub floods: Vec<Flood>,
    /// Frames of the flood in a second.
    pub rate: u32,
    /// Packets of the innocent session in a second, each answered.
    pub probes: u32,
    /// How long each flood lasts, and each time without one.
    pub span: Duration,
    /// How often all of it is repeated.
    pub rounds: u16,
}

/// What happened to the innocent session in one stretch of time.
#[derive(Clone, Debug, Default)]
pub struct Stretch {
    /// Packets that it sent.
    pub sent: u64,
    /// Of these, packets whose answer did not come back.
    pub lost: u64,
    /// From the sending of a packet to the arrival of its answer.
    pub latency: LatencySummary,
    /// Packets of the session that Millrace says it dropped.
    pub dropped: u64,
    /// Frames that the kernel's rings lost before Millrace could take them, whoever's they were.
    pub missed: u64,
    /// Frames that the attacker sent.
    pub flooded: u64,
    /// Packets that Millrace dropped, whoever's they were, by reason.
    pub drops: Vec<(String, u64)>,
    /// The most frames that were seen to be held back, of all workers together.
    pub held: u64,
    /// So many may be.
    pub held_limit: u64,
    /// What a packet of any kind cost the workers: cycles. None was seen where this is 0.
    pub cycles: f64,
}

/// One flood in one round: the time before it, and the flood.
#[derive(Clone, Debug)]
pub struct Round {
    /// Which.
    pub flood: Flood,
    /// Without.
    pub idle: Stretch,
    /// With.
    pub flooded: Stretch,
}

/// The innocent is UE 0.
const INNOCENT: usize = 0;
/// The attacker, where he is a UE.
const ATTACKER: usize = 1;
/// Between two stretches: what the flood left behind goes.
const PAUSE: Duration = Duration::from_millis(500);
/// How often it is looked whether somebody wants to stop.
const LOOK: Duration = Duration::from_millis(50);
/// How long the control socket may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A lab with an attacker.
#[derive(Debug)]
pub struct Siege {
    lab: Lab,
    probe: Probe,
    sender: Sender,
    ctl: CtlClient,
    innocent: SeidText,
}

impl Siege {
    /// Builds a lab of two UEs, which are models, and whatever is needed to flood its links.
    ///
    /// Errors: those of [`Lab::start`]; and the SMF's manners must give IPv4v6 sessions.
    pub fn start(options: &Options) -> Result<Self, LabError> {
        let lab = Lab::start_bridged(&Options { ues: 2, ..options.clone() })?;
        let missing = |ue: usize| LabError::Session(format!("{} has none", ue_name(ue as u8)));
        let session = |ue: usize| lab.sessions().get(ue).cloned().ok_or_else(|| missing(ue));
        let (innocent, attacker): (SessionFacts, SessionFacts) = (session(INNOCENT)?, session(ATTACKER)?);
        let namespaces = lab.namespaces();
        let probe = Probe::new(namespaces, &innocent)?;
        let mut ctl = CtlClient::connect(&lab.socket(), PATIENCE)?;
        let n3 = Namespaces::plug_in(&namespaces.ran, "n3")?;
        let n6 = Namespaces::plug_in(&namespaces.dn, "n6")?;
        let macs = ["n3", "n6"].map(|name| mac_of(&mut ctl, name));
        let [mac_n3, mac_n6] = macs;
        let sender = Sender::new((n3, mac_n3?), (n6, mac_n6?), &attacker)?;
        Ok(Self { lab, probe, sender, ctl, innocent: SeidText(innocent.up_seid.0) })
    }

    /// Floods and measures. `tell` hears what is going on.
    pub fn run(&mut self, plan: &Plan, tell: &mut dyn FnMut(&str)) -> Result<Vec<Round>, LabError> {
        let mut rounds = Vec::new();
        // Neighbours are found, and lines are warm.
        self.stretch(plan, None, PAUSE)?;
        for round in 1..=plan.rounds {
            for &flood in &plan.floods {
                tell(&format!("round {round} of {}: {flood}", plan.rounds));
                let idle = self.stretch(plan, None, plan.span)?;
                let flooded = self.stretch(plan, Some(flood), plan.span)?;
                rounds.push(Round { flood, idle, flooded });
                std::thread::sleep(PAUSE);
            }
        }
        Ok(rounds)
    }

    /// Ends everything, see [`Lab::finish`].
    pub fn finish(self) -> Result<(), LabError> {
        // Before the namespaces.
        drop((self.probe, self.sender, self.ctl));
        self.lab.finish()
    }

    fn stretch(&mut self, plan: &Plan, flood: Option<Flood>, span: Duration) -> Result<Stretch, LabError> {
        let before = self.count()?;
        let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
        let Self { lab, probe, sender, ctl, .. } = self;
        let (mut held, mut held_limit, mut cycles) = (0, 0, 0.0_f64);
        let (served, flooded, watched) = std::thread::scope(|scope| {
            let (stop, over) = (&stop, &over);
            let flooding = flood.map(|flood| scope.spawn(move || sender.send(flood, plan.rate, over)));
            let serving =
                scope.spawn(|| probe.run(plan.probes, span, stop, || over.store(true, Ordering::Relaxed)));
            let mut watch = || -> Result<(), LabError> {
                while !serving.is_finished() {
                    lab.look()?;
                    if flood.is_some() && !over.load(Ordering::Relaxed) {
                        // Takes a second.
                        let workers = workers(ctl)?;
                        let sum = |of: fn(&WorkerLine) -> u64| workers.iter().map(of).sum::<u64>();
                        held = held.max(sum(|worker| worker.held));
                        held_limit = sum(|worker| worker.held_limit);
                        let costs =
                            workers.iter().filter_map(|worker| worker.recent.as_ref()?.cycles_per_packet);
                        cycles = costs.fold(cycles, f64::max);
                    } else {
                        std::thread::sleep(LOOK);
                    }
                }
                Ok(())
            };
            let watched = watch();
            // Whatever went wrong, nobody goes on.
            stop.store(true, Ordering::Relaxed);
            over.store(true, Ordering::Relaxed);
            (serving.join(), flooding.map(std::thread::ScopedJoinHandle::join), watched)
        });
        watched?;
        let panicked = |_| LabError::Os(std::io::Error::other("a thread of the attack panicked"));
        let served = served.map_err(panicked)??;
        let flooded = flooded.transpose().map_err(panicked)?.transpose()?.unwrap_or(0);
        let after = self.count()?;
        Ok(Stretch {
            sent: served.sent,
            lost: served.sent.saturating_sub(served.returned),
            latency: served.latency,
            dropped: after.own.saturating_sub(before.own),
            missed: after.missed.saturating_sub(before.missed),
            flooded,
            drops: difference(&before.drops, &after.drops),
            held,
            held_limit,
            cycles,
        })
    }

    fn count(&mut self) -> Result<Counted, LabError> {
        let missed = self.ctl.ask(&Ports {})?.ports.iter().map(|port| port.rx_missed).sum();
        let drops = self.ctl.ask(&Drops {})?.drops;
        let innocent = Session { seid: Some(self.innocent), ..Session::default() };
        let own = self.ctl.ask(&innocent)?.drops.iter().map(|line| line.packets).sum();
        Ok(Counted { missed, own, drops })
    }
}

/// Counters at one moment.
struct Counted {
    missed: u64,
    own: u64,
    drops: Vec<DropLine>,
}

fn difference(before: &[DropLine], after: &[DropLine]) -> Vec<(String, u64)> {
    let count = |lines: &[DropLine], reason: &str| {
        lines.iter().find(|line| line.reason == reason).map_or(0, |line| line.packets)
    };
    let more = after.iter().map(|line| (line.reason.clone(), line.packets - count(before, &line.reason)));
    more.filter(|(_, packets)| *packets > 0).collect()
}

fn workers(ctl: &mut CtlClient) -> Result<Vec<WorkerLine>, LabError> {
    Ok(ctl.ask(&Workers {})?.workers)
}

/// Millrace's MAC address on a port.
fn mac_of(ctl: &mut CtlClient, name: &str) -> Result<MacAddr, LabError> {
    let ports = ctl.ask(&Ports {})?.ports;
    let mac = ports.iter().find(|port| port.name == name).and_then(|port| MacAddr::read(&port.mac));
    mac.ok_or_else(|| LabError::Os(std::io::Error::other(format!("the UPF has no port {name}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_dropped_in_between() {
        let line = |reason: &str, packets| DropLine { reason: reason.into(), packets, ..DropLine::default() };
        let before = [line("a", 3), line("b", 5)];
        let after = [line("a", 3), line("b", 9), line("c", 1)];
        assert_eq!(difference(&before, &after), [("b".to_owned(), 4), ("c".to_owned(), 1)]);
    }
}
