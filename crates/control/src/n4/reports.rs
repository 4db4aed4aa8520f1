//! Session reports: usage, downlink data, error indications (TS 29.244 §5.2.2.4, §7.5.8).
//!
//! At most one report of a session is on its way. What happens meanwhile is added up and goes with the next one, so that an SMF
//! with absurd thresholds (one is known to ask for a report every 1,000 bytes) gets as many reports as it answers,
//! and not one byte is lost or counted twice.

use super::convert::{self, Starts};
use super::{N4, Order, Pending};
use datapath::command::Command;
use packet::{Dscp, Qfi, Teid};
use pfcp::ie::{FTeid, UsageReport, UsageReportTrigger};
use pfcp::message::{DownlinkDataReport, SessionReportRequest, SessionReportResponse};
use pfcp::message_type::MessageType;
use pfcp::{Cause, PdrId, Seid};
use session::usage::Usage;
use std::collections::HashMap;
use std::net::IpAddr;
use tables::Nanos;

/// Error indications of one session that are remembered while a report is on its way: more are repetitions.
const MAX_ERROR_INDICATIONS: usize = 16;

/// What there is to tell an SMF about a session.
#[derive(Debug, Default)]
struct Waiting {
    usage: Vec<(Usage, UsageReportTrigger)>,
    downlink: Option<DownlinkDataReport>,
    errors: Vec<FTeid>,
    /// A report is on its way; what is here waits for its answer.
    sent: bool,
}

impl Waiting {
    const fn is_empty(&self) -> bool {
        self.usage.is_empty() && self.downlink.is_none() && self.errors.is_empty()
    }
}

/// Reports that wait or are on their way, and when measurements began.
#[derive(Debug, Default)]
pub(super) struct Reports {
    waiting: HashMap<Seid, Waiting>,
    pub starts: Starts,
}

impl Reports {
    /// The session is gone, and its last measurement was reported.
    pub fn forget(&mut self, seid: Seid) {
        self.waiting.remove(&seid);
        self.starts.forget(seid);
    }

    /// The session is being deleted: what waits goes unsaid, what is measured will be in the response.
    pub fn forget_waiting(&mut self, seid: Seid) {
        self.waiting.remove(&seid);
    }
}

impl N4 {
    /// Shards reported usage.
    pub(super) fn usage(&mut self, now: Nanos, seid: Seid, usage: &[Usage]) {
        if self.store.get(seid).is_none() || usage.is_empty() {
            return;
        }
        let waiting = self.reports.waiting.entry(seid).or_default();
        for new in usage {
            let bits = convert::trigger(new.trigger);
            match waiting.usage.iter_mut().find(|(known, _)| known.urr == new.urr) {
                Some((known, triggers)) => {
                    convert::add(known, new);
                    triggers.0 |= bits.0;
                    self.counters.reports_coalesced += 1;
                }
                None => waiting.usage.push((*new, bits)),
            }
        }
        self.send_report(now, seid);
    }

    /// A packet waits for a UE without a tunnel (§5.2.3.1).
    pub(super) fn downlink_data(
        &mut self,
        now: Nanos,
        seid: Seid,
        pdr: PdrId,
        qfi: Option<Qfi>,
        dscp: Dscp,
    ) {
        let Some(session) = self.store.get(seid) else { return };
        // With a BAR that asks for a delay, the SMF is told later, if the packet then still waits (§8.2.28).
        let delay = session.rules().pdrs.iter().any(|rule| rule.id == pdr);
        let delay = delay.then(|| self.store.bar(seid, pdr)).flatten().and_then(|bar| bar.delay).unwrap_or(0);
        let report = DownlinkDataReport { pdrs: vec![pdr], service: Some((Some(dscp), qfi)) };
        if delay > 0 && self.timers.notify_later(now.plus(u64::from(delay) * 50_000_000), seid, pdr) {
            return;
        }
        self.notify(now, seid, report);
    }

    /// Tells the SMF that packets wait.
    pub(super) fn notify(&mut self, now: Nanos, seid: Seid, report: DownlinkDataReport) {
        if self.store.get(seid).is_none() {
            return;
        }
        let waiting = self.reports.waiting.entry(seid).or_default();
        match &mut waiting.downlink {
            Some(known) => {
                for pdr in report.pdrs {
                    if !known.pdrs.contains(&pdr) {
                        known.pdrs.push(pdr);
                    }
                }
            }
            None => waiting.downlink = Some(report),
        }
        self.send_report(now, seid);
    }

    /// The far end of a tunnel doesn't know it (§5.2.4).
    pub(super) fn error_indication(&mut self, now: Nanos, seid: Seid, teid: Teid, peer: IpAddr) {
        if self.store.get(seid).is_none() {
            return;
        }
        let fteid = match peer {
            IpAddr::V4(address) => FTeid::Given { teid, ipv4: Some(address), ipv6: None },
            IpAddr::V6(address) => FTeid::Given { teid, ipv4: None, ipv6: Some(address) },
        };
        let waiting = self.reports.waiting.entry(seid).or_default();
        if !waiting.errors.contains(&fteid) && waiting.errors.len() < MAX_ERROR_INDICATIONS {
            waiting.errors.push(fteid);
        }
        self.send_report(now, seid);
    }

    /// Sends what waits, unless a report is on its way.
    fn send_report(&mut self, now: Nanos, seid: Seid) {
        let Some(waiting) = self.reports.waiting.get_mut(&seid) else { return };
        if waiting.sent {
            return;
        }
        if waiting.is_empty() {
            self.reports.waiting.remove(&seid);
            return;
        }
        let Some(session) = self.store.get(seid) else { return };
        let (cp_seid, population) = (session.cp_fseid().seid, session.peer());
        let Some(&peer) = self.associations.get(&population) else { return };
        let usage = std::mem::take(&mut waiting.usage);
        let mut usage_reports: Vec<UsageReport> = Vec::with_capacity(usage.len());
        for (usage, triggers) in &usage {
            let number = self.store.next_sequence(seid, usage.urr).unwrap_or_default();
            let start = self.reports.starts.report(seid, usage.urr, now);
            usage_reports.push(convert::report(self.wall, now, usage, *triggers, start, number));
        }
        let request = SessionReportRequest {
            downlink_data: waiting.downlink.take(),
            usage_reports,
            error_indications: std::mem::take(&mut waiting.errors),
            inactivity: false,
        };
        waiting.sent = true;
        let kind = MessageType::SESSION_REPORT_REQUEST;
        // The token of the transaction is the session: there is one at most.
        let encode = |out: &mut Vec<u8>| request.encode(out);
        match self.node.request(now, peer, kind, cp_seid, seid.0, encode, &mut self.output) {
            Ok(_) => self.counters.reports += 1,
            Err(_) => {
                self.counters.reports_not_sent += 1;
                self.reports.waiting.remove(&seid);
            }
        }
    }

    /// The SMF answered a report.
    pub(super) fn report_answered(&mut self, now: Nanos, seid: Seid, body: &[u8]) {
        let Some(waiting) = self.reports.waiting.get_mut(&seid) else { return };
        waiting.sent = false;
        match SessionReportResponse::decode(body) {
            Ok(response) if response.cause == Cause::SESSION_NOT_FOUND => {
                self.counters.unknown_to_smf += 1;
                self.drop_session(seid);
            }
            Ok(_) => self.send_report(now, seid),
            Err(_) => {
                self.counters.malformed += 1;
                self.send_report(now, seid);
            }
        }
    }

    /// The SMF never answered a report: what it said is lost, what came later goes out.
    pub(super) fn report_given_up(&mut self, now: Nanos, seid: Seid) {
        self.counters.reports_unanswered += 1;
        if let Some(waiting) = self.reports.waiting.get_mut(&seid) {
            waiting.sent = false;
            self.send_report(now, seid);
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
