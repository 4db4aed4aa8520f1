//! Where applications' traffic begins and ends (TS 29.244 §5.4.11, §7.5.8.3: START and STOPT with Application Detection Information).
//!
//! An application's instance is a conversation: both directions of a 5-tuple. It begins when a rule for the application first matches a
//! packet of it, and ends when the last of its flows has. Each is an event, not a measurement: what is reported of it has a number of the rule's
//! reports and no volumes, and leaves the rule's measurement as it is.

use super::N4;
use datapath::inspect::Detection;
use pfcp::ie::{ApplicationDetection, FlowDirection, FlowInformation, UsageReport, UsageReportTrigger};
use pfcp::{Seid, UrrId};
use session::packed::Pack;
use std::net::IpAddr;
use tables::Nanos;

/// What waits to be told of a session, at most.
const MAX_WAITING: usize = 64;

/// What is to be told by a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Told {
    urr: UrrId,
    begins: bool,
    application: Box<[u8]>,
    /// Instance and flow, unless only the application is wanted (RADI).
    details: Option<(Box<str>, Box<str>)>,
}

impl Told {
    /// The report with this number.
    pub fn report(&self, sequence: u32) -> UsageReport {
        let bits = if self.begins { UsageReportTrigger::START } else { UsageReportTrigger::STOPT };
        let flow = |text: &str| FlowInformation {
            direction: FlowDirection::BIDIRECTIONAL,
            description: text.as_bytes().into(),
        };
        let details = self.details.as_ref();
        UsageReport {
            urr: self.urr,
            sequence,
            trigger: UsageReportTrigger(bits),
            // §7.5.8.3: a start or a stop has no times and no measurement.
            start: None,
            end: None,
            volume: None,
            duration: None,
            first_packet: None,
            last_packet: None,
            application: Some(ApplicationDetection {
                application_id: self.application.clone(),
                instance: details.map(|(instance, _)| instance.as_bytes().into()),
                flow: details.map(|(_, text)| flow(text)),
            }),
        }
    }

    /// The rule that tells it.
    pub const fn urr(&self) -> UrrId {
        self.urr
    }
}

impl Pack for Told {
    fn pack(&self, out: &mut Vec<u8>) {
        (self.urr, self.begins).pack(out);
        (self.application.clone(), self.details.clone()).pack(out);
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        let (urr, begins) = Pack::unpack(from)?;
        let (application, details) = Pack::unpack(from)?;
        Some(Self { urr, begins, application, details })
    }
}

/// The flow in downlink form, as an IPFilterRule.
fn flow(detection: &Detection) -> String {
    let end = |(address, port): (IpAddr, Option<u16>)| match port {
        Some(port) => format!("{address} {port}"),
        None => address.to_string(),
    };
    let [ue, remote] = detection.ends;
    format!("permit out {} from {} to {}", detection.protocol.0, end(remote), end(ue))
}

impl N4 {
    /// A worker saw an application's traffic begin or end.
    pub(super) fn detected(&mut self, now: Nanos, detection: &Detection) {
        let Detection { seid, pdr, application, begins, instance, .. } = *detection;
        let Some(session) = self.store.get(seid) else { return };
        let rules = session.rules().clone();
        let rule = rules.pdrs.iter().find(|rule| rule.id == pdr && rule.application == Some(application));
        let Some(name) = self.store.config().applications.name(application) else { return };
        let urrs = rule.iter().flat_map(|rule| &*rule.urrs).filter_map(|at| rules.urrs.get(usize::from(*at)));
        let asks = urrs.filter(|urr| if begins { urr.application_starts } else { urr.application_stops });
        let told: Vec<_> = asks
            .map(|urr| Told {
                urr: urr.id,
                begins,
                application: name.into(),
                details: (!urr.reduced).then(|| {
                    let (Nanos(at), number) = instance;
                    (format!("{at:x}-{number:x}").into(), flow(detection).into())
                }),
            })
            .collect();
        if !told.is_empty() {
            self.tell_detections(now, seid, told);
        }
    }

    fn tell_detections(&mut self, now: Nanos, seid: Seid, told: Vec<Told>) {
        let waiting = self.reports.detections(seid);
        let room = MAX_WAITING.saturating_sub(waiting.len()).min(told.len());
        self.counters.detections += room as u64;
        self.counters.detections_untold += (told.len() - room) as u64;
        waiting.extend(told.into_iter().take(room));
        self.send_report(now, seid);
    }
}
