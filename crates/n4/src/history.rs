//! What SMFs asked for and were answered, for people: the last requests, the last refusals, and lines in the log.
//!
//! Everything here is bounded, in entries and in octets, and none of it depends on how many SMFs or strangers there are. Requests of
//! associated SMFs are kept one by one. What strangers send can be as much as a link carries, so it takes one entry for as long
//! as its line in the log is held back, and can't push out what SMFs did.

use super::rate::Rate;
use pfcp::calendar::utc;
use pfcp::ie::RecoveryTimeStamp;
use pfcp::message_type::MessageType;
use pfcp::node::{Peer, PeerId, TurnedAway};
use pfcp::{Cause, RuleId, Seid, ie_type};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tables::Nanos;

/// Requests that are remembered, whatever became of them.
pub const MAX_ENTRIES: usize = 1024;
/// Refusals that are remembered, also after more than [`MAX_ENTRIES`] requests were accepted.
pub const MAX_REFUSALS: usize = 256;
/// The longest name or sentence that is kept, in octets.
pub const MAX_TEXT: usize = 256;

/// A message and what became of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// When.
    pub at: Nanos,
    /// The SMF's Node ID; empty: it has no association.
    pub smf: Arc<str>,
    /// Where it came from.
    pub address: Option<SocketAddr>,
    /// What it was; `None`: no message, something that happened.
    pub message: Option<MessageType>,
    /// The session here.
    pub seid: Option<Seid>,
    /// The session at the SMF.
    pub cp_seid: Option<Seid>,
    /// How it was answered; `None`: not at all.
    pub cause: Option<Cause>,
    /// The IE at fault.
    pub offending_ie: Option<u16>,
    /// The rule at fault.
    pub failed_rule: Option<RuleId>,
    /// Why, as a sentence; empty: it was accepted.
    pub why: Arc<str>,
}

/// Why a session request is refused: what all three responses carry, and a sentence for people.
#[derive(Clone, Debug)]
pub(super) struct Denial {
    pub cause: Cause,
    pub offending_ie: Option<u16>,
    pub failed_rule: Option<RuleId>,
    pub why: String,
}

/// Which session request ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject {
    pub peer: PeerId,
    pub message: MessageType,
    pub seid: Option<Seid>,
    pub cp_seid: Option<Seid>,
}

/// Lines in the log about SMFs, in a minute.
const LINES: u32 = 60;
/// Lines and entries about strangers, in a minute.
const LINES_OF_STRANGERS: u32 = 10;

/// What is told of an SMF, each at a limited rate of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Kind {
    Refused(PeerId, MessageType, Cause, Option<u16>),
    Silent(PeerId),
    HeardAgain(PeerId),
    Restarted(PeerId),
}

/// What is told of others. Addresses outside the allow-list can be forged at will, and are one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Stranger {
    NotAllowed,
    NoAssociation(IpAddr),
    Setup(IpAddr),
}

/// The last entries, numbered from 0.
#[derive(Debug)]
struct Ring {
    entries: VecDeque<Entry>,
    limit: usize,
    next: u64,
}

impl Ring {
    fn new(limit: usize) -> Self {
        Self { entries: VecDeque::new(), limit, next: 0 }
    }

    fn push(&mut self, entry: Entry) {
        if self.entries.len() >= self.limit {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
        self.next += 1;
    }
}

/// Some entries of a ring.
#[derive(Debug)]
pub struct Excerpt {
    /// In order of time.
    pub entries: Vec<Entry>,
    /// Where the next excerpt goes on.
    pub next: u64,
    /// Entries before these that were asked for and are gone.
    pub missed: u64,
}

/// What is remembered of an SMF.
#[derive(Debug)]
struct Smf {
    name: Arc<str>,
    recovery: RecoveryTimeStamp,
    /// It was told that it doesn't answer heartbeats.
    silent: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct History {
    all: Ring,
    refusals: Ring,
    smfs: HashMap<PeerId, Smf>,
    /// How many of them are silent.
    silent: usize,
    rate: Rate<Kind>,
    strangers: Rate<Stranger>,
    nobody: Arc<str>,
    /// When what is being handled came: set before anything is noted.
    now: Nanos,
}

impl History {
    pub fn new() -> Self {
        Self {
            all: Ring::new(MAX_ENTRIES),
            refusals: Ring::new(MAX_REFUSALS),
            smfs: HashMap::new(),
            silent: 0,
            rate: Rate::new(LINES),
            strangers: Rate::new(LINES_OF_STRANGERS),
            nobody: Arc::from(""),
            now: Nanos(0),
        }
    }

    /// What is noted from here on happens now.
    pub const fn at(&mut self, now: Nanos) {
        self.now = now;
    }

    /// Entries from the one with this number on, or the last ones; at most `limit`.
    pub fn excerpt(&self, refused: bool, from: Option<u64>, limit: usize) -> Excerpt {
        let ring = if refused { &self.refusals } else { &self.all };
        let length = ring.entries.len() as u64;
        let first = ring.next - length;
        let asked = from.unwrap_or_else(|| ring.next.saturating_sub(limit as u64).max(first)).min(ring.next);
        let begin = asked.max(first);
        let entries: Vec<_> =
            ring.entries.iter().skip((begin - first) as usize).take(limit).cloned().collect();
        Excerpt { next: begin + entries.len() as u64, missed: begin - asked, entries }
    }

    /// An association stands.
    pub fn associated(&mut self, peer: &Peer) {
        let name: Arc<str> = Arc::from(clean(&peer.node_id.to_string()));
        tracing::info!(smf = %name, address = %peer.address, "SMF associated");
        let smf = Smf { name: name.clone(), recovery: peer.recovery, silent: false };
        self.smfs.insert(peer.id, smf);
        let event = self.event(name, Some(peer.address), "");
        let message = Some(MessageType::ASSOCIATION_SETUP_REQUEST);
        self.all.push(Entry { message, cause: Some(Cause::ACCEPTED), ..event });
    }

    /// An SMF has lost its sessions. It says when it started in every heartbeat and in its association: once is enough.
    pub fn restarted(&mut self, peer: &Peer) {
        let Some(smf) = self.smfs.get_mut(&peer.id) else { return };
        let old = std::mem::replace(&mut smf.recovery, peer.recovery);
        let name = smf.name.clone();
        let why = if old == peer.recovery {
            tracing::debug!(smf = %name, address = %peer.address, "SMF associated anew");
            "the association was set up anew, without a restart in between: sessions from before it go".into()
        } else {
            let (was, is) = (utc(old.0), utc(peer.recovery.0));
            if let Some(more) = self.rate.may(self.now, Kind::Restarted(peer.id)) {
                tracing::warn!(
                    smf = %name, address = %peer.address, was, is, more,
                    "SMF restarted: its Recovery Time Stamp is another one, and its sessions are removed"
                );
            }
            format!("restarted: its Recovery Time Stamp was {was} and is {is}; its sessions are removed")
        };
        let event = self.event(name, Some(peer.address), &why);
        self.all.push(event);
    }

    /// An association ended.
    pub fn released(&mut self, peer: PeerId) {
        let Some(smf) = self.smfs.remove(&peer) else { return };
        self.silent -= usize::from(smf.silent);
        tracing::info!(smf = %smf.name, "PFCP association ended; its sessions are removed");
        let event = self.event(smf.name, None, "the association ended; its sessions are removed");
        self.all.push(event);
    }

    /// An SMF does not answer heartbeats: told once, until it does again.
    pub fn lost(&mut self, peer: &Peer) {
        let Some(smf) = self.smfs.get_mut(&peer.id).filter(|smf| !smf.silent) else { return };
        smf.silent = true;
        self.silent += 1;
        self.heartbeats(peer, Kind::Silent(peer.id), "does not answer heartbeats; its sessions stay");
    }

    /// Something was heard, perhaps of an SMF that was silent.
    pub fn heard(&mut self, peer: &Peer) {
        if self.silent == 0 || !peer.alive {
            return;
        }
        let Some(smf) = self.smfs.get_mut(&peer.id).filter(|smf| smf.silent) else { return };
        smf.silent = false;
        self.silent -= 1;
        self.heartbeats(peer, Kind::HeardAgain(peer.id), "is heard again");
    }

    /// Whether an SMF is silent, so that it is worth looking for signs of life.
    pub const fn listens(&self) -> bool {
        self.silent > 0
    }

    fn heartbeats(&mut self, peer: &Peer, kind: Kind, what: &str) {
        let name = self.name(peer.id);
        if let Some(more) = self.rate.may(self.now, kind) {
            tracing::warn!(smf = %name, address = %peer.address, more, "SMF {what}");
        }
        let event = self.event(name, Some(peer.address), what);
        self.all.push(event);
    }

    /// A session request was carried out.
    pub fn accepted(&mut self, subject: Subject, address: Option<SocketAddr>) {
        let event = self.event(self.name(subject.peer), address, "");
        let Subject { message, seid, cp_seid, .. } = subject;
        self.all.push(Entry { message: Some(message), seid, cp_seid, cause: Some(Cause::ACCEPTED), ..event });
    }

    /// A session request was refused.
    pub fn refused(&mut self, subject: Subject, address: Option<SocketAddr>, denial: &Denial) {
        let smf = self.name(subject.peer);
        let Subject { message, seid, cp_seid, peer } = subject;
        let kind = Kind::Refused(peer, message, denial.cause, denial.offending_ie);
        if let Some(more) = self.rate.may(self.now, kind) {
            let shown = |seid: Option<Seid>| seid.map(tracing::field::display);
            tracing::warn!(
                smf = %smf,
                seid = shown(seid),
                cp_seid = shown(cp_seid),
                cause = denial.cause.0,
                ie = denial.offending_ie.map(|ie| tracing::field::display(Ie(ie))),
                rule = denial.failed_rule.map(tracing::field::display),
                more,
                "{message} refused, {}: {}",
                denial.cause,
                clean(&denial.why)
            );
        }
        let event = self.event(smf, address, &denial.why);
        self.refusal(Entry {
            message: Some(message),
            seid,
            cp_seid,
            cause: Some(denial.cause),
            offending_ie: denial.offending_ie,
            failed_rule: denial.failed_rule,
            ..event
        });
    }

    /// The node turned a message away.
    pub fn turned_away(&mut self, from: SocketAddr, message: Option<MessageType>, why: TurnedAway) {
        let address = from.ip();
        let (kind, cause, sentence) = match why {
            TurnedAway::NotAllowed => {
                (Stranger::NotAllowed, None, "its address is not in n4.peers, so it gets no answer")
            }
            TurnedAway::NoAssociation => (
                Stranger::NoAssociation(address),
                Some(Cause::NO_ASSOCIATION),
                "the SMF has no PFCP association: an Association Setup Request comes first",
            ),
            TurnedAway::Setup(cause @ Cause::NO_RESOURCES) => (
                Stranger::Setup(address),
                Some(cause),
                "there are as many associations as limits.peers allows",
            ),
            TurnedAway::Setup(cause) => (
                Stranger::Setup(address),
                Some(cause),
                "the Association Setup Request can't be taken as it is",
            ),
            TurnedAway::NotItself => (
                Stranger::Setup(address),
                Some(Cause::REJECTED),
                "it speaks in the name or from the address of an SMF that lives and says nothing of it",
            ),
        };
        let Some(more) = self.strangers.may(self.now, kind) else { return };
        let name = message.map_or_else(|| "PFCP message".into(), |message| message.to_string());
        tracing::warn!(address = %from, cause = cause.map(|cause| cause.0), more, "{name} turned away: {sentence}");
        let more = if more > 0 { format!("; {more} more since this was last told") } else { String::new() };
        let event = self.event(self.nobody.clone(), Some(from), &format!("{sentence}{more}"));
        self.refusal(Entry { message, cause, ..event });
    }

    fn refusal(&mut self, entry: Entry) {
        self.refusals.push(entry.clone());
        self.all.push(entry);
    }

    fn name(&self, peer: PeerId) -> Arc<str> {
        self.smfs.get(&peer).map_or_else(|| self.nobody.clone(), |smf| smf.name.clone())
    }

    fn event(&self, smf: Arc<str>, address: Option<SocketAddr>, why: &str) -> Entry {
        Entry {
            at: self.now,
            smf,
            address,
            message: None,
            seid: None,
            cp_seid: None,
            cause: None,
            offending_ie: None,
            failed_rule: None,
            why: if why.is_empty() { self.nobody.clone() } else { Arc::from(clean(why)) },
        }
    }
}

/// An IE type for people: its name and number.
struct Ie(u16);

impl fmt::Display for Ie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match ie_type::name(self.0) {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}

/// Text that may hold what a peer chose: without what could steer a terminal, and not too long.
fn clean(text: &str) -> String {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    // The replacement has three octets, and a control character has two at most: so that the bound holds, it is one.
    text.get(..end).unwrap_or_default().chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_short_and_steers_no_terminal() {
        assert_eq!(clean("smf\x1b[2J\u{9b}x"), "smf?[2J?x");
        assert_eq!(clean(&"ü".repeat(1_000)).len(), MAX_TEXT);
        assert_eq!(clean(&format!("x{}", "ü".repeat(1_000))).len(), MAX_TEXT - 1);
    }
}
