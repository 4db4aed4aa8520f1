//! The last reports: before a UPF stops, the usage of every session is asked of its shard and told to its SMF.
//!
//! Nothing is kept over the end of the process, so what an SMF has not heard of by then nobody is charged for. Session Report Requests
//! are the way for that (§7.5.8; §5.18 calls them for before the release of an association): they come first, the request to be
//! released ([`N4::leave`]) last, because with the association the SMF forgets its sessions.
//!
//! Each SMF has a window of sessions of its own, so that one that does not answer does not keep the others from theirs, and none gets
//! more at once than a socket buffer holds. SMFs that did not answer the last heartbeat are left out.

use super::{N4, Order, Pending};
use datapath::command::{Command, Token};
use pfcp::Seid;
use session::usage::Trigger;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Sessions of one SMF that are asked or told of at a time: so many datagrams fit the receive buffer that Linux gives by default
/// (212,992 octets, of which a small datagram takes more than a kilobyte).
const WINDOW: usize = 128;

/// Sessions of one SMF.
#[derive(Debug)]
struct Farewell {
    to_ask: Vec<Seid>,
    /// The shard was asked, or the SMF was told and has not answered.
    asked: Vec<(Seid, Token)>,
}

/// The sessions whose last report is not answered yet, by SMF.
#[derive(Debug)]
pub(super) struct Leaving {
    smfs: Vec<Farewell>,
    sessions: usize,
    /// Of SMFs that don't answer.
    left_out: usize,
    /// [`super::N4Counters::reports_unanswered`] before.
    unanswered: u64,
}

/// How far the last reports are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LastReports {
    /// Sessions with usage to tell of.
    pub sessions: usize,
    /// Of these, sessions whose SMF has not answered yet.
    pub left: usize,
    /// Sessions whose SMF did not answer heartbeats, and is not told.
    pub left_out: usize,
    /// Reports that were given up after all repetitions.
    pub unanswered: u64,
}

impl N4 {
    /// Begins to tell every SMF the usage of its sessions; [`N4::go_on_leaving`] goes on with it. From now on no session is established.
    pub fn begin_to_leave(&mut self) {
        let mut smfs: Vec<Farewell> = Vec::new();
        let mut places = HashMap::new();
        let (mut sessions, mut left_out) = (0, 0);
        for session in self.store.iter().filter(|session| !session.rules().urrs.is_empty()) {
            let peer = self.associations.get(&session.peer()).and_then(|&peer| self.node.peer(peer));
            let Some(peer) = peer.filter(|peer| peer.alive) else {
                left_out += 1;
                continue;
            };
            sessions += 1;
            let at = match places.entry(peer.id) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    smfs.push(Farewell { to_ask: Vec::new(), asked: Vec::new() });
                    *new.insert(smfs.len() - 1)
                }
            };
            if let Some(smf) = smfs.get_mut(at) {
                smf.to_ask.push(session.rules().seid);
            }
        }
        let unanswered = self.counters.reports_unanswered;
        self.leaving = Some(Leaving { smfs, sessions, left_out, unanswered });
    }

    /// Asks for as many more sessions as SMFs have answered; says how far it is. Call it whenever something has come.
    pub fn go_on_leaving(&mut self) -> LastReports {
        let Some(mut leaving) = self.leaving.take() else { return LastReports::default() };
        let mut left = 0;
        for smf in &mut leaving.smfs {
            smf.asked
                .retain(|(seid, token)| self.pending.contains_key(token) || self.reports.is_waiting(*seid));
            while smf.asked.len() < WINDOW
                && let Some(seid) = smf.to_ask.pop()
            {
                // Deleted by its SMF meanwhile: the usage was in the answer.
                let Some(session) = self.store.get(seid) else { continue };
                let session = session.rules().place;
                let token = self.token(Pending::Report(seid));
                let (urrs, trigger) = (Box::default(), Trigger::Stop);
                self.orders
                    .push(Order::Shard(session.shard, Command::Query { token, session, urrs, trigger }));
                smf.asked.push((seid, token));
            }
            left += smf.to_ask.len() + smf.asked.len();
        }
        let Leaving { sessions, left_out, unanswered, .. } = leaving;
        self.leaving = Some(leaving);
        let unanswered = self.counters.reports_unanswered - unanswered;
        LastReports { sessions, left, left_out, unanswered }
    }
}
