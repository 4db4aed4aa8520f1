//! N4 that goes on in another process: associations, sessions, their timers, and what there is to tell of them. SMFs notice nothing but a pause.
//!
//! What one process writes down is a [`Header`], the answers that are kept for repeated requests, and a record for each session. In a header is what
//! the rest is to be read with, and what the next process has to be made with: the Recovery Time Stamp (another one would end all sessions,
//! §6.2.3), the key of the TEIDs, the clock. Times are those of the clock that the next process goes on with, so whatever became due
//! meanwhile is due at once.
//!
//! What was being worked on is not in it: a request that was not answered is sent again. The history isn't, either, nor is what packets have
//! counted, which is the shards' to say ([`datapath::Command::Export`]).

use super::reports;
use super::timers;
use super::{N4, N4Counters, WallClock};
use counters::Words;
use pfcp::Seid;
use pfcp::ie::{NodeId, RecoveryTimeStamp};
use pfcp::node::{NodeCounters, PeerId, Portable, Reply};
use session::TeidKey;
use session::ids::Epoch;
use session::packed::{Pack, count, counted};
use session::pfd;
use session::portable::{Restore, Restored, Unportable};
use session::rules::Rules;
use session::store::{DirectoryChange, PeerId as PopulationId, Session};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tables::Nanos;

/// Of headers, answers and records.
const VERSION: u16 = 5;

/// What records are to be read with, and the next process is to be made with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// When it was written, by the clock that goes on.
    pub at: Nanos,
    /// And by the time of day, since 1970.
    pub since_1970: Duration,
    /// Whose it is.
    pub node_id: NodeId,
    /// Where SMFs reached it.
    pub address: IpAddr,
    /// When it started: for SMFs it still runs.
    pub recovery: RecoveryTimeStamp,
    sessions: session::portable::Header,
    pfds: pfd::Portable,
    node: Portable,
    /// Of each association its number, what it is called in records, and requests of it that were refused.
    populations: Vec<(u32, (u32, u64))>,
    counters: N4Counters,
    node_counters: NodeCounters,
}

impl Header {
    /// Reads what [`N4::header`] wrote; `None`: it is no header of this version.
    pub fn read(mut octets: &[u8]) -> Option<Self> {
        let from = &mut octets;
        if u16::unpack(from)? != VERSION {
            return None;
        }
        let (at, (seconds, nanos)): (_, (u64, u32)) = Pack::unpack(from)?;
        let header = Self {
            at,
            since_1970: Duration::new(seconds, nanos.min(999_999_999)),
            node_id: Pack::unpack(from)?,
            address: Pack::unpack(from)?,
            recovery: Pack::unpack(from)?,
            sessions: session::portable::Header::read(counted(from)?)?,
            pfds: Pack::unpack(from)?,
            node: Pack::unpack(from)?,
            populations: Pack::unpack(from)?,
            counters: unpack(from)?,
            node_counters: unpack(from)?,
        };
        from.is_empty().then_some(header)
    }

    /// The key of the TEIDs, for the next process.
    pub const fn teids(&self) -> TeidKey {
        self.sessions.teids()
    }

    /// Which epoch's identifiers the next process hands out.
    pub const fn epoch(&self) -> Epoch {
        self.sessions.epoch().next()
    }

    /// What the clock is to show that goes on, as it is so late now by the time of day; a day that was set back in between doesn't turn it
    /// back.
    pub const fn clock(&self, since_1970: Duration) -> Nanos {
        let passed = since_1970.saturating_sub(self.since_1970).as_nanos();
        self.at.plus(if passed > u64::MAX as u128 { u64::MAX } else { passed as u64 })
    }

    /// Associations that go on.
    pub fn associations(&self) -> usize {
        self.node.associations.len()
    }
}

/// Counters are their numbers, in order.
fn pack(counters: &impl Words, out: &mut Vec<u8>) {
    let mut words = Vec::new();
    counters.put(&mut words);
    words.pack(out);
}

fn unpack<T: Words>(from: &mut &[u8]) -> Option<T> {
    let words: Vec<u64> = Pack::unpack(from)?;
    let mut words = &words[..];
    T::take(&mut words).filter(|_| words.is_empty())
}

impl N4 {
    /// What comes before the answers and the sessions.
    pub fn header(&self, now: Nanos) -> Vec<u8> {
        let mut out = Vec::new();
        let since_1970 = WallClock::since_1970(self.wall, now);
        VERSION.pack(&mut out);
        (now, (since_1970.as_secs(), since_1970.subsec_nanos())).pack(&mut out);
        let node = self.node.config();
        node.node_id.pack(&mut out);
        self.address.pack(&mut out);
        node.recovery.pack(&mut out);
        count(&self.store.header(), &mut out);
        self.pfds.portable().pack(&mut out);
        self.node.portable().pack(&mut out);
        let association = |(&peer, population): (&PeerId, &PopulationId)| {
            (peer.0, (population.number(), self.refused_of(peer)))
        };
        let mut populations: Vec<_> = self.populations.iter().map(association).collect();
        populations.sort_unstable();
        populations.pack(&mut out);
        pack(&self.counters, &mut out);
        pack(self.node.counters(), &mut out);
        out
    }

    /// Answers that are kept for repeated requests, one after the other.
    pub fn replies(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        self.node.replies().map(|reply| {
            let mut out = Vec::with_capacity(reply.octets.len() + 48);
            reply.pack(&mut out);
            out
        })
    }

    /// A session; `None`: its association is gone, and it is soon.
    pub fn record(&self, session: &Session) -> Option<Vec<u8>> {
        self.associations.get(&session.peer())?;
        let mut out = Vec::with_capacity(session.octets().len() + 192);
        let seid = session.rules().seid;
        self.timers.pack(seid, &mut out);
        self.reports.pack(seid, &self.timers, &self.node, &mut out);
        out.extend_from_slice(&self.store.record(session));
        Some(out)
    }

    /// A session that was restored can't go on: workers have no room for it.
    pub fn give_up(&mut self, seid: Seid) {
        self.drop_session(seid);
    }

    /// Keeps an answer that another process gave. False: it is none.
    pub fn keep_reply(&mut self, mut octets: &[u8]) -> bool {
        let reply = Reply::unpack(&mut octets).filter(|_| octets.is_empty());
        reply.map(|reply| self.node.keep(reply)).is_some()
    }

    /// Goes on with another process's associations and sessions: `self` has none, and was made with what the header says. Each record comes with
    /// something that is handed to `each` again, with what the session's shard and all workers are to be told, or why the session can't go on
    /// here.
    pub fn restore<T>(
        &mut self,
        now: Nanos,
        header: &Header,
        records: impl IntoIterator<Item = (Vec<u8>, T)>,
        mut each: impl FnMut(T, Result<(Arc<Rules>, Vec<DirectoryChange>), Unportable>),
    ) {
        let names = self.node.go_on(now, header.node.clone(), header.node_counters);
        self.counters = header.counters;
        self.restore_pfds(header.pfds.clone());
        let mut restore = Restore::new(&mut self.store, &header.sessions);
        for (association, (population, refused)) in &header.populations {
            if let Some(&peer) = names.get(association) {
                let population = restore.peer(*population);
                self.populations.insert(peer, population);
                self.associations.insert(population, peer);
                self.refused_of.insert(peer, *refused);
            }
        }
        for (octets, with) in records {
            let mut from = &octets[..];
            let read = timers::Portable::unpack(&mut from).zip(reports::Portable::unpack(&mut from));
            let restored = read.ok_or(Unportable::Damaged).and_then(|(timers, reports)| {
                let restored = restore.session(from)?;
                let Restored { rules, directory, timings, inactivity_timer, peer, .. } = restored;
                let seid = rules.seid;
                self.far_ends.acquire(&rules);
                if !self.timers.take_over(now, seid, timings, inactivity_timer, &timers) {
                    self.counters.timers_full += 1;
                }
                if let Some(&peer) = self.associations.get(&peer) {
                    self.reports.take_over(seid, peer, reports, &mut self.timers, &mut self.node);
                }
                Ok((rules, directory))
            });
            each(with, restored);
        }
        // Sessions of associations that are not there any more.
        let nobodys =
            restore.finish().into_values().filter(|population| !self.associations.contains_key(population));
        let nobodys: Vec<_> = nobodys.collect();
        let sweeps = nobodys.into_iter().map(|population| self.store.detach(population));
        self.sweeps.extend(sweeps.filter(|sweep| !sweep.is_done()));
    }
}
