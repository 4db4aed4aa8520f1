//! Rules for applications, from the SMF's request to the packets that they are about.

use crate::bench::*;
use pfcp::ie::{
    ApplicationDetection, FlowDirection, FlowInformation, Interface, MeasurementInformation, PfdContents,
    ReportingTriggers, SdfFilter, UpFunctionFeatures, UsageReport, UsageReportTrigger,
};
use pfcp::message::*;
use pfcp::message_type::MessageType;
use pfcp::{Cause, FarId, PdrId, RuleId, Seid, UrrId};

/// Where chat and video are found.
fn bench() -> Bench {
    Bench::with(1, Limits { applications: &["chat", "video"], ..Limits::default() })
}

/// Into the tunnel of FAR 3 goes what is told to the UE of this application.
fn to_ue(id: u16, application: &'static [u8]) -> CreatePdr<'static> {
    let pdi = Pdi { application_id: Some(application), ..downlink().pdi };
    CreatePdr { id: PdrId(id), precedence: 10, far: Some(FarId(3)), pdi, ..downlink() }
}

/// An everyday session with one more rule.
fn asking(pdr: CreatePdr<'static>) -> SessionEstablishmentRequest<'static> {
    let mut request = everyday(7);
    request.create_pdrs.push(pdr);
    request.create_fars.push(CreateFar { id: FarId(3), ..to_gnb(GNB, 33) });
    request
}

/// PFDs of an application, one flow each; none: they are withdrawn.
fn pfds<'a>(application_id: &'a [u8], flows: &[&'a [u8]]) -> ApplicationPfds<'a> {
    let pfd = |flow: &&'a [u8]| PfdContents { flow_descriptions: vec![flow], ..PfdContents::default() };
    ApplicationPfds { application_id, pfds: flows.iter().map(pfd).collect() }
}

impl Bench {
    fn manage(&mut self, smf: usize, applications: Vec<ApplicationPfds<'_>>) -> PfdManagementResponse {
        let request = PfdManagementRequest { applications };
        let kind = MessageType::PFD_MANAGEMENT_REQUEST;
        let (_, body) = self.ask(smf, kind, Seid(0), |out| request.encode(out));
        PfdManagementResponse::decode(&body).unwrap()
    }

    /// The tunnels that these leave in, as they are told to a port of the UE.
    fn tunnels(&mut self, session: &Established, port: u16, words: &[&str]) -> Vec<u32> {
        words.iter().for_each(|word| self.hear(session, port, word.as_bytes()));
        self.sent(0).iter().map(|frame| u32::from_be_bytes(frame[46..50].try_into().unwrap())).collect()
    }
}

#[test]
fn a_rule_matches_the_application_that_it_names() {
    let mut bench = bench();
    let session = bench.establish(0, &asking(to_ue(3, b"video")));
    // What nothing is known of yet goes by the rule for all; so does the other application.
    assert_eq!(bench.tunnels(&session, 1000, &["v", "v", "v"]), [7, 33, 33]);
    assert_eq!(bench.tunnels(&session, 1001, &["c", "c", "c"]), [7, 7, 7]);
    assert_eq!(bench.tunnels(&session, 1002, &["?", "?", "v"]), [7, 7, 7]);
    // A running flow goes by what the SMF says now: without asking again, of both of them.
    let pdi = Pdi { application_id: Some(b"chat"), ..pdi(Interface::CORE) };
    let update = |pdi| UpdatePdr {
        id: PdrId(3),
        outer_header_removal: None,
        precedence: None,
        pdi: Some(pdi),
        far: None,
        urrs: vec![],
        qers: vec![],
    };
    let change = SessionModificationRequest { update_pdrs: vec![update(pdi.clone())], ..modification() };
    bench.change(0, session.seid, &change);
    assert_eq!(bench.tunnels(&session, 1000, &["v"]), [7]);
    assert_eq!(bench.tunnels(&session, 1003, &["c", "c"]), [7, 33]);
    // Without an application, it is for all.
    let pdi = Pdi { application_id: Some(b""), ..pdi };
    let change = SessionModificationRequest { update_pdrs: vec![update(pdi)], ..modification() };
    bench.change(0, session.seid, &change);
    assert_eq!(bench.tunnels(&session, 1000, &["v"]), [33]);
    bench.delete(0, session.seid);
    bench.assert_empty();
}

/// A rule for the whole takes what its parts are of; one for a part that comes first wins; and one for a part takes neither the whole nor another part.
#[test]
fn a_rule_for_an_application_matches_its_parts() {
    let part = to_ue(4, b"upload/video");
    let part = CreatePdr { precedence: 5, far: Some(FarId(4)), ..part };
    let into = CreateFar { id: FarId(4), ..to_gnb(GNB, 44) };
    let mut both = asking(to_ue(3, b"video"));
    both.create_pdrs.push(part);
    both.create_fars.push(into);
    for (request, tunnels) in [
        (asking(to_ue(3, b"video")), [("v", 33), ("u", 33), ("l", 33), ("c", 7)]),
        (both, [("v", 33), ("u", 44), ("l", 33), ("c", 7)]),
        (asking(to_ue(3, b"upload/video")), [("v", 7), ("u", 33), ("l", 7), ("c", 7)]),
    ] {
        let applications = &["chat", "video", "upload/video", "live/video"];
        let mut bench = Bench::with(1, Limits { applications, ..Limits::default() });
        let session = bench.establish(0, &request);
        for (port, (word, tunnel)) in (1000..).zip(tunnels) {
            assert_eq!(bench.tunnels(&session, port, &[word; 2]), [7, tunnel], "{word}");
        }
    }
}

#[test]
fn a_filter_and_an_application_in_one_rule_must_both_match() {
    let mut bench = bench();
    let mut pdr = to_ue(3, b"video");
    let filter: &[u8] = b"permit out udp from any to assigned 1000-1009";
    pdr.pdi.sdf_filters = vec![SdfFilter { flow_description: Some(filter), ..SdfFilter::default() }];
    let session = bench.establish(0, &asking(pdr));
    assert_eq!(bench.tunnels(&session, 1000, &["v", "v"]), [7, 33]);
    assert_eq!(bench.tunnels(&session, 1001, &["c", "c"]), [7, 7]);
    assert_eq!(bench.tunnels(&session, 1010, &["v", "v"]), [7, 7]);
    assert_eq!(bench.worker.counters().inspection.shown, 4, "nobody is asked where the filter has said no");
}

#[test]
fn an_application_that_nobody_detects_is_refused() {
    let failed = Some(RuleId::Pdr(PdrId(3)));
    for (has_inspector, cause) in
        [(true, Cause::UNKNOWN_APPLICATION_ID), (false, Cause::SERVICE_NOT_SUPPORTED)]
    {
        let mut bench = if has_inspector { bench() } else { Bench::new(1) };
        let response = bench.try_establish(0, &asking(to_ue(3, b"game")));
        assert_eq!((response.cause, response.offending_ie, response.failed_rule), (cause, Some(24), failed));
        let refused = bench.n4.excerpt(true, None, 10).entries;
        let why = refused.last().unwrap().why.to_string();
        assert!(why.contains("PDR 3") && why.contains("pplication"), "{why}");
        bench.assert_empty();
    }
}

/// The next process goes on by the application's name.
#[test]
fn a_rule_for_an_application_outlives_the_process() {
    let mut bench = bench();
    let session = bench.establish(0, &asking(to_ue(3, b"video")));
    bench.restart(0);
    assert_eq!(bench.tunnels(&session, 1000, &["v", "v"]), [7, 33]);
}

const ACCEPTED: PfdManagementResponse = PfdManagementResponse { cause: Cause::ACCEPTED, offending_ie: None };
const TO_443: &[u8] = b"permit out udp from 203.0.113.80 443 to assigned";

#[test]
fn an_smf_says_how_an_application_is_told() {
    let mut bench = bench();
    let features = bench.n4.node().config().features;
    assert_eq!(features.0, n4::FEATURES.0 | UpFunctionFeatures::PFDM);
    assert_eq!(bench.try_establish(0, &asking(to_ue(3, b"game"))).cause, Cause::UNKNOWN_APPLICATION_ID);
    assert_eq!(bench.manage(0, vec![pfds(b"game", &[TO_443])]), ACCEPTED);
    let session = bench.establish(0, &asking(to_ue(3, b"game")));
    // From the first packet on.
    assert_eq!(bench.tunnels(&session, 1000, &["?", "?"]), [33, 33]);
    bench.restart(0);
    assert_eq!(bench.tunnels(&session, 1001, &["?"]), [33]);
    // Others hold for what begins from now on, and what is known of a running conversation stays known.
    assert_eq!(bench.manage(0, vec![pfds(b"game", &[b"permit out udp from any 444 to assigned"])]), ACCEPTED);
    assert_eq!(bench.tunnels(&session, 1001, &["?"]), [33]);
    assert_eq!(bench.tunnels(&session, 1002, &["?", "?"]), [7, 7]);
    // Without PFDs, nobody finds it: the rule stays, and new ones are refused.
    assert_eq!(bench.manage(0, vec![pfds(b"game", &[])]), ACCEPTED);
    assert_eq!(bench.tunnels(&session, 1003, &["?"]), [7]);
    assert_eq!(bench.try_establish(0, &asking(to_ue(3, b"game"))).cause, Cause::UNKNOWN_APPLICATION_ID);
    assert_eq!(bench.manage(0, vec![pfds(b"game", &[TO_443])]), ACCEPTED);
    assert_eq!(bench.tunnels(&session, 1004, &["?"]), [33], "the rule finds it again");
    // A request without applications withdraws all that this SMF gave.
    assert_eq!(bench.manage(0, vec![]), ACCEPTED);
    assert!(bench.n4.pfds().is_empty());
    assert_eq!(bench.tunnels(&session, 1005, &["?"]), [7]);
    assert_eq!(bench.n4.counters().pfds_taken, 5);
}

#[test]
fn what_another_smf_gave_stays_until_it_is_named() {
    let limits = Limits { applications: &["chat"], ..Limits::default() };
    let mut bench = Bench::with(2, limits);
    assert_eq!(bench.manage(0, vec![pfds(b"game", &[TO_443]), pfds(b"video", &[TO_443])]), ACCEPTED);
    assert_eq!(bench.manage(1, vec![]), ACCEPTED);
    assert_eq!(bench.n4.pfds().len(), 2);
    // What it describes anew is its own from now on.
    assert_eq!(bench.manage(1, vec![pfds(b"game", &[TO_443])]), ACCEPTED);
    assert_eq!(bench.manage(0, vec![]), ACCEPTED);
    assert_eq!(bench.n4.pfds().iter().map(|(name, _)| name).collect::<Vec<_>>(), [b"game"]);
}

#[test]
fn pfds_that_can_not_be_used_change_nothing() {
    let mut bench = bench();
    assert_eq!(bench.manage(0, vec![pfds(b"game", &[TO_443])]), ACCEPTED);
    let before = bench.n4.pfds().clone();
    let refused = |cause, offending_ie| PfdManagementResponse { cause, offending_ie: Some(offending_ie) };
    let incorrect = refused(Cause::MANDATORY_IE_INCORRECT, 61);
    assert_eq!(bench.manage(0, vec![pfds(b"video", &[TO_443, b"gibberish"]), pfds(b"game", &[])]), incorrect);
    let incorrect = refused(Cause::MANDATORY_IE_INCORRECT, 24);
    assert_eq!(bench.manage(0, vec![pfds(&[b'x'; 256], &[TO_443])]), incorrect);
    assert_eq!(bench.n4.pfds().portable(), before.portable());
    let refused = bench.n4.excerpt(true, None, 10).entries;
    assert!(refused[0].why.contains("flow description"), "{}", refused[0].why);
    assert!(refused[1].why.contains("Application ID"), "{}", refused[1].why);
    // Where nobody inspects, PFDs are nobody's.
    let mut bench = Bench::new(1);
    let response = bench.manage(0, vec![]);
    assert_eq!((response.cause, response.offending_ie), (Cause::SERVICE_NOT_SUPPORTED, None));
}

const BOTH: u32 = ReportingTriggers::START | ReportingTriggers::STOPT;

/// A session whose SMF wants to know of video, by these rules.
fn watching(urrs: Vec<CreateUrr>) -> SessionEstablishmentRequest<'static> {
    let mut request = asking(to_ue(3, b"video"));
    request.create_pdrs[2].urrs = urrs.iter().map(|urr| urr.id).collect();
    request.create_urrs = urrs;
    request
}

impl Bench {
    /// What SMF 0 was told of usage, as worker and N4 come to it.
    fn told(&mut self) -> Vec<UsageReport> {
        self.pass(200 * MILLI);
        self.smfs[0].take_reports().into_iter().flat_map(|report| report.usage_reports).collect()
    }
}

/// Trigger, number and what was detected of reports that measure nothing.
fn events(reports: &[UsageReport]) -> Vec<(u32, u32, ApplicationDetection)> {
    let event = |report: &UsageReport| {
        let UsageReport { start, end, volume, duration, first_packet, last_packet, .. } = report;
        assert_eq!((start, end, volume, duration), (&None, &None, &None, &None));
        assert_eq!((first_packet, last_packet), (&None, &None));
        (report.trigger.0, report.sequence, report.application.clone().unwrap())
    };
    reports.iter().map(event).collect()
}

#[test]
fn the_smf_is_told_where_an_application_begins_and_ends() {
    let mut bench = bench();
    let session = bench.establish(0, &watching(vec![urr(5, BOTH, threshold(1_000_000))]));
    // A packet that is not known yet, and another application: nothing.
    bench.hear(&session, 1000, b"v");
    bench.tunnels(&session, 1001, &["c", "c"]);
    assert_eq!(bench.told(), []);
    bench.tunnels(&session, 1000, &["v", "v", "v"]);
    let begun = events(&bench.told());
    let [(UsageReportTrigger::START, 0, detection)] = &begun[..] else { panic!("{begun:?}") };
    let description = format!("permit out 17 from 203.0.113.80 443 to {} 1000", session.ue);
    let flow = FlowInformation {
        direction: FlowDirection::BIDIRECTIONAL,
        description: description.as_bytes().into(),
    };
    assert_eq!((&*detection.application_id, &detection.flow), (&b"video"[..], &Some(flow)));
    let first = detection.instance.clone().unwrap();
    // Once for each conversation, and another one is another instance.
    bench.tunnels(&session, 1000, &["v", "v", "v"]);
    bench.tunnels(&session, 1002, &["v", "v"]);
    let begun = events(&bench.told());
    let [(UsageReportTrigger::START, 1, detection)] = &begun[..] else { panic!("{begun:?}") };
    let second = detection.instance.clone().unwrap();
    assert_ne!(first, second);
    // The one ends in silence, the other goes on.
    for _ in 0..4 {
        bench.pass(2 * SECOND);
        bench.hear(&session, 1002, b"v");
    }
    let ended = events(&bench.told());
    let [(UsageReportTrigger::STOPT, 2, detection)] = &ended[..] else { panic!("{ended:?}") };
    assert_eq!((&*detection.application_id, detection.instance.as_ref()), (&b"video"[..], Some(&first)));
    bench.pass(7 * SECOND);
    let ended = events(&bench.told());
    let [(UsageReportTrigger::STOPT, 3, detection)] = &ended[..] else { panic!("{ended:?}") };
    assert_eq!(detection.instance.as_ref(), Some(&second));
    let counters = (bench.n4.counters().detections, bench.worker.counters().inspection);
    assert_eq!((counters.0, counters.1.begun, counters.1.ended, counters.1.untold), (4, 2, 2, 0));
    // Measured is what matched the rule, and no event took a byte of it.
    let (_, response) = bench.delete(0, session.seid);
    let [usage] = &response.usage_reports[..] else { panic!("{response:?}") };
    assert_eq!((usage.sequence, usage.volume.unwrap().downlink_packets), (4, Some(3 + 3 + 1 + 4)));
    bench.assert_empty();
}

#[test]
fn each_rule_is_told_of_what_it_asks_for() {
    let mut bench = bench();
    let information = MeasurementInformation { reduced_detection: true, ..MeasurementInformation::default() };
    let reduced = UrrParameters { information: Some(information), ..threshold(1_000_000) };
    let request = watching(vec![
        urr(1, ReportingTriggers::START, reduced),
        urr(2, ReportingTriggers::STOPT, threshold(1_000_000)),
        urr(3, ReportingTriggers::VOLTH, threshold(1_000_000)),
    ]);
    let session = bench.establish(0, &request);
    bench.tunnels(&session, 1000, &["v", "v", "v"]);
    let begun = bench.told();
    let [report] = &begun[..] else { panic!("{begun:?}") };
    let only = ApplicationDetection { application_id: b"video"[..].into(), instance: None, flow: None };
    assert_eq!((report.urr, report.application.as_ref()), (UrrId(1), Some(&only)));
    bench.pass(7 * SECOND);
    let ended = bench.told();
    let [report] = &ended[..] else { panic!("{ended:?}") };
    assert_eq!((report.urr, report.trigger.0), (UrrId(2), UsageReportTrigger::STOPT));
    assert!(report.application.as_ref().is_some_and(|it| it.flow.is_some() && it.instance.is_some()));
    // Of a rule that is for no application, START is its first packet, as ever.
    let mut request = measured(8, vec![urr(1, BOTH, UrrParameters::default())]);
    request.create_pdrs.truncate(2);
    let session = bench.establish(0, &request);
    bench.tunnels(&session, 1000, &["v", "v"]);
    let begun = bench.told();
    let [report] = &begun[..] else { panic!("{begun:?}") };
    assert_eq!((report.trigger.0, report.application.as_ref()), (UsageReportTrigger::START, None));
    assert!(report.start.is_some() && report.volume.is_some());
}

/// The SMF hears of the application that its rule names, and knows no other.
#[test]
fn a_part_is_told_under_the_name_that_the_rule_has() {
    let mut bench = Bench::with(1, Limits { applications: &["video", "upload/video"], ..Limits::default() });
    let session = bench.establish(0, &watching(vec![urr(5, BOTH, threshold(1_000_000))]));
    assert_eq!(bench.told(), []);
    bench.tunnels(&session, 1000, &["u", "u", "u"]);
    let begun = events(&bench.told());
    let [(UsageReportTrigger::START, 0, detection)] = &begun[..] else { panic!("{begun:?}") };
    assert_eq!(&*detection.application_id, b"video");
    let instance = detection.instance.clone();
    bench.pass(7 * SECOND);
    let ended = events(&bench.told());
    let [(UsageReportTrigger::STOPT, 1, detection)] = &ended[..] else { panic!("{ended:?}") };
    assert_eq!((&*detection.application_id, &detection.instance), (&b"video"[..], &instance));
}

/// An SMF that doesn't keep up is told of as many as wait for it, and the others are counted.
#[test]
fn a_flood_of_beginnings_does_not_flood_the_smf() {
    let mut bench = bench();
    let session = bench.establish(0, &watching(vec![urr(5, BOTH, threshold(1_000_000))]));
    bench.smfs[0].answer = Answer::Wait;
    for port in 1000..1080 {
        bench.tunnels(&session, port, &["v", "v"]);
        bench.pass(20 * MILLI);
    }
    bench.pass(200 * MILLI);
    let sent = bench.smfs[0].reports.len();
    assert_eq!((sent, bench.smfs[0].reports[0].report.usage_reports.len()), (1, 1));
    let counters = *bench.n4.counters();
    assert_eq!((counters.detections, counters.detections_untold), (65, 15));
    bench.restart(0);
    bench.smfs[0].answer = Answer::Accept;
    bench.smfs[0].answer(Answer::Accept);
    bench.settle();
    assert_eq!(bench.smfs[0].reports[1].report.usage_reports.len(), 64);
    // A worker tells so many in a second.
    let mut bench = self::bench();
    let session = bench.establish(0, &watching(vec![urr(5, BOTH, threshold(1_000_000))]));
    for port in 1000..1300 {
        bench.tunnels(&session, port, &["v", "v"]);
    }
    let inspection = bench.worker.counters().inspection;
    assert_eq!((inspection.begun, inspection.untold), (100, 200));
    // What was not told to begin is not told to end.
    bench.pass(7 * SECOND);
    assert_eq!(bench.worker.counters().inspection.ended, 100);
}
