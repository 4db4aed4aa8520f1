//! Session reports: usage, downlink data, error indications (TS 29.244 §5.2.2.4, §7.5.8).
//!
//! At most one report of a session is on its way. What happens meanwhile is added up and goes with the next one, so that an SMF
//! with absurd thresholds (one is known to ask for a report every 1,000 bytes) gets as many reports as it answers,
//! and not one byte is lost or counted twice.

use super::convert::{self, Starts};
use super::detections::Told;
use super::timers::Timers;
use super::{N4, Order, Pending};
use datapath::command::{Command, Transition};
use packet::{Dscp, Qfi, Teid};
use pfcp::ie::{FTeid, UsageReport, UsageReportTrigger};
use pfcp::message::{DownlinkDataReport, SessionReportRequest, SessionReportResponse};
use pfcp::message_type::MessageType;
use pfcp::node::{Node, PeerId, Unanswered};
use pfcp::{Cause, PdrId, Seid, SequenceNumber, UrrId};
use session::packed::Pack;
use session::rules::Rules;
use session::timing::Sequences;
use session::usage::{Trigger, Usage};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use tables::Nanos;
use tables::wheel::TimerId;

/// Error indications of one session that are remembered while a report is on its way: more are repetitions.
const MAX_ERROR_INDICATIONS: usize = 16;
/// The unit of Downlink Data Notification Delay (§8.2.28), in nanoseconds.
const DELAY_UNIT: u64 = 50_000_000;

/// Usage that was measured and not told yet, with all the reasons to tell it.
pub(super) type Measured = (Usage, UsageReportTrigger);

/// What there is to tell an SMF about a session.
#[derive(Debug, Default)]
struct Waiting {
    usage: Vec<Measured>,
    /// Beginnings and ends of applications' traffic, in order.
    detections: Vec<Told>,
    downlink: Option<DownlinkDataReport>,
    /// Tunnels that their far ends don't know.
    errors: Vec<(Teid, IpAddr)>,
    /// No packet came for the time of the User Plane Inactivity Timer.
    inactivity: bool,
    /// What is here waits while there is one.
    before: Option<Before>,
}

/// The report before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Before {
    /// Has its place in the queue of those that find no room among the outstanding requests.
    Queued,
    /// Is on its way.
    Sent(SequenceNumber),
}

impl Waiting {
    const fn is_empty(&self) -> bool {
        self.usage.is_empty()
            && self.detections.is_empty()
            && self.downlink.is_none()
            && self.errors.is_empty()
            && !self.inactivity
    }
}

/// Packets wait for a rule, and the SMF was told or will be: once, however often the session changes meanwhile.
#[derive(Clone, Copy, Debug)]
struct Episode {
    pdr: PdrId,
    /// Paging policy and QFI of the first packet.
    service: (Option<Dscp>, Option<Qfi>),
    /// When the SMF is told, if not at once.
    timer: Option<TimerId>,
}

type PackedEpisode = (PdrId, ((Option<Dscp>, Option<Qfi>), Option<Nanos>));

/// What another process said of a session.
pub(super) struct Portable {
    starts: Vec<(UrrId, Nanos)>,
    episodes: Vec<PackedEpisode>,
    /// What waits, and the report before that was not answered.
    waiting: Option<(Waiting, Option<Unanswered>)>,
}

impl Portable {
    /// Reads what [`Reports::pack`] wrote.
    pub fn unpack(from: &mut &[u8]) -> Option<Self> {
        let (starts, episodes) = Pack::unpack(from)?;
        let waiting = if bool::unpack(from)? {
            let (usage, downlink) = Pack::unpack(from)?;
            let (errors, inactivity) = Pack::unpack(from)?;
            let detections = Pack::unpack(from)?;
            Some((
                Waiting { usage, detections, downlink, errors, inactivity, before: None },
                Pack::unpack(from)?,
            ))
        } else {
            None
        };
        Some(Self { starts, episodes, waiting })
    }
}

/// A session that its store has forgotten and its shard has not.
#[derive(Debug, Default)]
struct Leaving {
    /// What was measured and not told yet belongs in the response.
    usage: Vec<Measured>,
    /// Numbers of its reports go on.
    sequences: Sequences,
}

/// Reports that wait or are on their way, and when measurements began.
#[derive(Debug, Default)]
pub(super) struct Reports {
    waiting: HashMap<Seid, Waiting>,
    episodes: HashMap<Seid, Vec<Episode>>,
    /// Sessions whose report found no room among the outstanding requests. Each is here at most once.
    queue: VecDeque<Seid>,
    /// Sessions that are being deleted.
    leaving: HashMap<Seid, Leaving>,
    pub starts: Starts,
}

impl Reports {
    /// What waits to be told of a rule: it goes with the report that is being made of it now.
    pub fn take_usage(&mut self, seid: Seid, urr: UrrId) -> Option<Measured> {
        let usage = &mut self.waiting.get_mut(&seid)?.usage;
        let at = usage.iter().position(|(known, _)| known.urr == urr)?;
        Some(usage.swap_remove(at))
    }

    /// The session is being deleted: what waits, and what its shard still reports, goes into the response.
    pub fn leave(&mut self, seid: Seid, sequences: Sequences) {
        let waiting = self.waiting.remove(&seid).unwrap_or_default();
        self.leaving.insert(seid, Leaving { usage: waiting.usage, sequences });
    }

    /// The shard has deleted it: what was measured and not told, together with its last reports, and the numbers for them.
    pub fn left(&mut self, seid: Seid, last: &[Usage]) -> (Vec<Measured>, Sequences) {
        let Leaving { mut usage, sequences } = self.leaving.remove(&seid).unwrap_or_default();
        for last in last {
            merge(&mut usage, last);
        }
        (usage, sequences)
    }

    /// What waits to be told of a session's applications.
    pub fn detections(&mut self, seid: Seid) -> &mut Vec<Told> {
        &mut self.waiting.entry(seid).or_default().detections
    }

    /// Whether something of the session waits to be told, or to be answered.
    pub fn is_waiting(&self, seid: Seid) -> bool {
        self.waiting.contains_key(&seid)
    }

    /// Appends what another process needs of a session.
    pub fn pack(&self, seid: Seid, timers: &Timers, node: &Node, out: &mut Vec<u8>) {
        self.starts.of(seid).pack(out);
        let episodes = self.episodes.get(&seid).into_iter().flatten();
        let episode = |it: &Episode| (it.pdr, (it.service, it.timer.and_then(|id| timers.deadline(id))));
        episodes.map(episode).collect::<Vec<_>>().pack(out);
        let waiting = self.waiting.get(&seid);
        waiting.is_some().pack(out);
        if let Some(Waiting { usage, detections, downlink, errors, inactivity, before }) = waiting {
            usage.pack(out);
            downlink.pack(out);
            errors.pack(out);
            inactivity.pack(out);
            detections.pack(out);
            let sent = before.and_then(|before| match before {
                Before::Queued => None,
                Before::Sent(sequence) => node.unanswered(sequence),
            });
            sent.pack(out);
        }
    }

    /// A session of this peer goes on that another process [packed](Self::pack).
    pub fn take_over(
        &mut self,
        seid: Seid,
        peer: PeerId,
        portable: Portable,
        timers: &mut Timers,
        node: &mut Node,
    ) {
        let Portable { starts, episodes, waiting } = portable;
        self.starts.put(seid, starts);
        let episode = |(pdr, (service, due)): PackedEpisode| {
            let timer = due.and_then(|due| timers.notify_later(due, seid, pdr));
            Episode { pdr, service, timer }
        };
        let episodes: Vec<_> = episodes.into_iter().map(episode).collect();
        if !episodes.is_empty() {
            self.episodes.insert(seid, episodes);
        }
        let Some((mut waiting, sent)) = waiting else { return };
        // What was not sent yet waits for its turn, as if there had been no room.
        let sent = sent.filter(|sent| sent.token == seid.0).and_then(|sent| node.go_on_with(peer, sent));
        waiting.before = Some(sent.map_or(Before::Queued, Before::Sent));
        if sent.is_none() {
            self.queue.push_back(seid);
        }
        self.waiting.insert(seid, waiting);
    }

    /// What is remembered of sessions, for tests that look for leaks.
    pub fn len(&self) -> usize {
        self.waiting.len() + self.episodes.len() + self.queue.len() + self.leaving.len() + self.starts.len()
    }
}

/// A tunnel's far end as an F-TEID (§8.2.3).
const fn fteid((teid, address): (Teid, IpAddr)) -> FTeid {
    match address {
        IpAddr::V4(address) => FTeid::Given { teid, ipv4: Some(address), ipv6: None },
        IpAddr::V6(address) => FTeid::Given { teid, ipv4: None, ipv6: Some(address) },
    }
}

/// Adds usage to what waits; says whether it was added to a report of the same rule.
fn merge(waiting: &mut Vec<Measured>, new: &Usage) -> bool {
    let bits = convert::trigger(new.trigger);
    let known = waiting.iter_mut().find(|(known, _)| known.urr == new.urr);
    let is_known = known.is_some();
    if let Some((known, triggers)) = known {
        known.add(new);
        triggers.0 |= bits.0;
    } else {
        waiting.push((*new, bits));
    }
    is_known
}

impl N4 {
    /// Shards reported usage.
    pub(super) fn usage(&mut self, now: Nanos, seid: Seid, usage: &[Usage]) {
        if usage.is_empty() {
            return;
        }
        if self.store.get(seid).is_none() {
            if let Some(leaving) = self.reports.leaving.get_mut(&seid) {
                for new in usage {
                    merge(&mut leaving.usage, new);
                }
            }
            return;
        }
        let waiting = self.reports.waiting.entry(seid).or_default();
        for new in usage {
            self.counters.reports_coalesced += u64::from(merge(&mut waiting.usage, new));
            if new.trigger == Trigger::VolumeQuota {
                // What is used up can't be held any longer.
                self.timers.release_quota(seid, new.urr);
            }
        }
        self.send_report(now, seid);
    }

    /// A packet waits for a UE without a tunnel (§5.2.3.1).
    pub(super) fn downlink_data(&mut self, now: Nanos, seid: Seid, pdr: PdrId, qfi: Option<Qfi>, dscp: Dscp) {
        let Some(session) = self.store.get(seid) else { return };
        // The rule may forward again by now. A shard tells anew after every change of the session; the SMF has been told.
        let told =
            self.reports.episodes.get(&seid).is_some_and(|all| all.iter().any(|known| known.pdr == pdr));
        if told || !session.rules().buffers(pdr) {
            return;
        }
        // With a BAR that asks for a delay, the SMF is told later, if the packet then still waits (§8.2.28).
        let delay = self.store.bar(seid, pdr).and_then(|bar| bar.delay).unwrap_or(0);
        let timer = match delay {
            0 => None,
            delay => self.timers.notify_later(now.plus(u64::from(delay) * DELAY_UNIT), seid, pdr),
        };
        let episode = Episode { pdr, service: (Some(dscp), qfi), timer };
        self.reports.episodes.entry(seid).or_default().push(episode);
        if timer.is_none() {
            self.notify(now, seid, pdr);
        }
    }

    /// Tells the SMF that packets wait.
    pub(super) fn notify(&mut self, now: Nanos, seid: Seid, pdr: PdrId) {
        let episode =
            self.reports.episodes.get_mut(&seid).and_then(|all| all.iter_mut().find(|e| e.pdr == pdr));
        let Some(episode) = episode else { return };
        episode.timer = None;
        let service = Some(episode.service);
        let waiting = self.reports.waiting.entry(seid).or_default();
        match &mut waiting.downlink {
            Some(known) => known.pdrs.push(pdr),
            None => waiting.downlink = Some(DownlinkDataReport { pdrs: vec![pdr], service }),
        }
        self.send_report(now, seid);
    }

    /// The session has these rules now: those that no longer buffer, or whose packets were discarded, begin anew when they do.
    pub(super) fn end_episodes(&mut self, seid: Seid, rules: &Rules, discarded: bool) {
        let Some(episodes) = self.reports.episodes.get_mut(&seid) else { return };
        let timers = &mut self.timers;
        let mut ended = Vec::new();
        episodes.retain(|episode| {
            let goes_on = !discarded && rules.buffers(episode.pdr);
            if !goes_on {
                ended.push(episode.pdr);
                timers.cancel_notification(episode.timer);
            }
            goes_on
        });
        if episodes.is_empty() {
            self.reports.episodes.remove(&seid);
        }
        if let Some(waiting) = self.reports.waiting.get_mut(&seid)
            && let Some(report) = &mut waiting.downlink
        {
            report.pdrs.retain(|pdr| !ended.contains(pdr));
            if report.pdrs.is_empty() {
                waiting.downlink = None;
            }
        }
    }

    /// The far end of a tunnel says that it doesn't know it (§5.2.4).
    pub(super) fn error_indication(&mut self, now: Nanos, teid: Teid, peer: IpAddr) {
        let Some(told) = self.far_ends.tunnel(peer, teid) else {
            self.counters.errors_unmatched += 1;
            return;
        };
        let (seid, is_news) = (told.seid, told.is_news(now));
        self.far_ends.complained(now, peer);
        if self.store.get(seid).is_none() || !is_news {
            return;
        }
        let waiting = self.reports.waiting.entry(seid).or_default();
        if !waiting.errors.contains(&(teid, peer)) && waiting.errors.len() < MAX_ERROR_INDICATIONS {
            waiting.errors.push((teid, peer));
        }
        self.send_report(now, seid);
    }

    /// UR-SEQN for the next report of a rule, also while its session is being deleted.
    pub(super) fn next_sequence(&mut self, seid: Seid, urr: UrrId) -> u32 {
        let stored = self.store.next_sequence(seid, urr);
        let leaving = || Some(self.reports.leaving.get_mut(&seid)?.sequences.next(urr, usize::MAX, |_| true));
        stored.or_else(leaving).unwrap_or_default()
    }

    /// No packet of the session came for as long as the SMF wanted to know (§5.11.4).
    pub(super) fn report_inactivity(&mut self, now: Nanos, seid: Seid) {
        self.reports.waiting.entry(seid).or_default().inactivity = true;
        self.send_report(now, seid);
    }

    /// Sends what waits, unless a report is on its way.
    pub(super) fn send_report(&mut self, now: Nanos, seid: Seid) {
        let Some(waiting) = self.reports.waiting.get_mut(&seid) else { return };
        if waiting.before.is_some() {
            return;
        }
        if waiting.is_empty() {
            self.reports.waiting.remove(&seid);
            return;
        }
        let Some(session) = self.store.get(seid) else { return };
        let (cp_seid, population) = (session.cp_fseid().seid, session.peer());
        let Some(&peer) = self.associations.get(&population) else { return };
        if self.node.outstanding() >= self.node.config().bounds.outstanding {
            waiting.before = Some(Before::Queued);
            self.reports.queue.push_back(seid);
            self.counters.reports_queued += 1;
            return;
        }
        let usage = std::mem::take(&mut waiting.usage);
        let mut usage_reports: Vec<UsageReport> = Vec::with_capacity(usage.len());
        for (usage, triggers) in &usage {
            let number = self.store.next_sequence(seid, usage.urr).unwrap_or_default();
            let start = self.reports.starts.report(seid, usage.urr, now);
            usage_reports.push(convert::report(self.wall, now, usage, *triggers, start, number));
        }
        for told in std::mem::take(&mut waiting.detections) {
            let number = self.store.next_sequence(seid, told.urr()).unwrap_or_default();
            usage_reports.push(told.report(number));
        }
        let request = SessionReportRequest {
            downlink_data: waiting.downlink.take(),
            usage_reports,
            error_indications: waiting.errors.drain(..).map(fteid).collect(),
            inactivity: std::mem::take(&mut waiting.inactivity),
        };
        let kind = MessageType::SESSION_REPORT_REQUEST;
        // The token of the transaction is the session: there is one at most.
        let encode = |out: &mut Vec<u8>| request.encode(out);
        if let Ok(sequence) = self.node.request(now, peer, kind, cp_seid, seid.0, encode, &mut self.output) {
            waiting.before = Some(Before::Sent(sequence));
            self.counters.reports += 1;
        } else {
            self.counters.reports_not_sent += 1;
            self.reports.waiting.remove(&seid);
        }
    }

    /// Requests have ended: reports that found no room go out, as many as there is room for.
    pub(super) fn send_queued(&mut self, now: Nanos) {
        while self.node.outstanding() < self.node.config().bounds.outstanding {
            let Some(seid) = self.reports.queue.pop_front() else { return };
            if let Some(waiting) = self.reports.waiting.get_mut(&seid) {
                waiting.before = None;
                self.send_report(now, seid);
            }
        }
    }

    /// The SMF answered a report.
    pub(super) fn report_answered(&mut self, now: Nanos, seid: Seid, body: &[u8]) {
        let response = SessionReportResponse::decode(body);
        self.counters.malformed += u64::from(response.is_err());
        let (unknown, discard) = response.map_or((false, false), |response| {
            (response.cause == Cause::SESSION_NOT_FOUND, response.drop_buffered)
        });
        if unknown && self.store.get(seid).is_some() {
            self.counters.unknown_to_smf += 1;
            self.drop_session(seid);
        } else if discard {
            self.discard_buffered(seid);
        }
        if let Some(waiting) = self.reports.waiting.get_mut(&seid) {
            waiting.before = None;
            self.send_report(now, seid);
        }
    }

    /// DROBU in the answer to a report (§7.5.9): the packets that wait are not wanted.
    fn discard_buffered(&mut self, seid: Seid) {
        let Some(session) = self.store.get(seid) else { return };
        let rules = session.rules().clone();
        self.end_episodes(seid, &rules, true);
        let transition = Transition { drop_buffered: true, ..Transition::default() };
        let token = self.token(Pending::Nobody);
        let shard = rules.place.shard;
        self.orders
            .push(Order::Shard(shard, Command::Install { token, rules, transition, query: Box::default() }));
    }

    /// The SMF never answered a report: what it said is lost, what came later goes out.
    pub(super) fn report_given_up(&mut self, now: Nanos, seid: Seid) {
        self.counters.reports_unanswered += 1;
        if let Some(waiting) = self.reports.waiting.get_mut(&seid) {
            waiting.before = None;
            self.send_report(now, seid);
        }
    }

    /// A session is gone, and nobody waits for its last measurement: so are its timers and reports.
    pub(super) fn forget(&mut self, seid: Seid) {
        self.timers.forget(seid);
        self.reports.waiting.remove(&seid);
        self.reports.starts.forget(seid);
        self.forget_episodes(seid);
    }

    /// Nothing waits for this session's packets any more.
    pub(super) fn forget_episodes(&mut self, seid: Seid) {
        for episode in self.reports.episodes.remove(&seid).unwrap_or_default() {
            self.timers.cancel_notification(episode.timer);
        }
    }

    /// Removes a session that its SMF does not know.
    pub(super) fn drop_session(&mut self, seid: Seid) {
        let Ok(deleted) = self.store.delete(seid) else { return };
        self.far_ends.release(&deleted.rules);
        self.forget(seid);
        let token = self.token(Pending::Nobody);
        self.announce(deleted.directory);
        let session = deleted.rules.place;
        self.orders.push(Order::Shard(session.shard, Command::Remove { token, session }));
    }
}
