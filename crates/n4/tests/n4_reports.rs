//! What N4 tells an SMF: usage exact to the packet, waiting packets once, and never more than one report of a session on its way.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::bench::*;
use datapath::Reason;
use packet::Teid;
use packet::gtpu::MessageType as GtpuType;
use pfcp::ie::*;
use pfcp::message::*;
use pfcp::{BarId, Cause, FarId, PdrId, Seid, UrrId};
use tables::Nanos;

type Volumes = (u64, u64, u64, u64);

/// Octets and packets, up and down.
fn volumes(report: &UsageReport) -> Volumes {
    let volume = report.volume.unwrap();
    let (up, down) = (volume.uplink.unwrap(), volume.downlink.unwrap());
    assert_eq!(volume.total, Some(up + down));
    let (up_packets, down_packets) = (volume.uplink_packets.unwrap(), volume.downlink_packets.unwrap());
    assert_eq!(volume.total_packets, Some(up_packets + down_packets));
    (up, down, up_packets, down_packets)
}

fn bytes(report: &UsageReport) -> u64 {
    report.volume.unwrap().total.unwrap()
}

/// The only usage report of the only report.
fn only_usage(bench: &mut Bench) -> UsageReport {
    let reports = bench.smfs[0].take_reports();
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert_eq!(reports[0].usage_reports.len(), 1, "{reports:?}");
    reports[0].usage_reports[0].clone()
}

fn has(report: &UsageReport, trigger: u32) -> bool {
    report.trigger.0 == trigger
}

#[test]
fn deletion_reports_the_last_octet() {
    let mut bench = Bench::new(1);
    let session =
        bench.establish(0, &measured(1, vec![urr(1, 0, threshold(1 << 40)), urr(2, 0, threshold(1 << 40))]));
    bench.pass(3 * SECOND);
    for length in 100..110 {
        bench.up(&session, length);
    }
    bench.pass(SECOND);
    for _ in 0..7 {
        bench.down(&session, 1000);
    }
    bench.pass(SECOND);
    let (cp, response) = bench.delete(0, session.seid);
    assert_eq!((cp, response.cause), (Seid(1), Cause::ACCEPTED));
    assert_eq!(
        response.usage_reports.iter().map(|report| report.urr).collect::<Vec<_>>(),
        [UrrId(1), UrrId(2)]
    );
    for report in &response.usage_reports {
        assert_eq!(volumes(report), (1045, 7000, 10, 7));
        assert_eq!((report.sequence, report.duration), (0, Some(5)));
        assert!(has(report, UsageReportTrigger::TERMR));
        let times = [report.start, report.first_packet, report.last_packet, report.end];
        let since = times.map(|time| u64::from(time.unwrap().0) - (NTP & 0xffff_ffff));
        assert_eq!(since, [1, 4, 4, 6], "the last packet's time is known within 17 ms, rounded down");
    }
    bench.assert_empty();
}

#[test]
fn a_query_reports_and_measurement_begins_anew() {
    let mut bench = Bench::new(1);
    let session =
        bench.establish(0, &measured(1, vec![urr(1, 0, threshold(1 << 40)), urr(2, 0, threshold(1 << 40))]));
    bench.up(&session, 500);
    let query =
        SessionModificationRequest { query_urrs: vec![UrrId(2), UrrId(2), UrrId(77)], ..modification() };
    let response = bench.change(0, session.seid, &query);
    assert_eq!(response.usage_reports.len(), 1);
    assert_eq!(
        (response.usage_reports[0].urr, volumes(&response.usage_reports[0])),
        (UrrId(2), (500, 0, 1, 0))
    );
    assert!(has(&response.usage_reports[0], UsageReportTrigger::IMMER));
    bench.down(&session, 300);
    let flags = SmReqFlags { query_all_urrs: true, ..SmReqFlags::default() };
    let response = bench.change(0, session.seid, &SessionModificationRequest { flags, ..modification() });
    let told: Vec<_> = response.usage_reports.iter().map(|r| (r.urr.0, r.sequence, volumes(r))).collect();
    assert_eq!(told, [(1, 0, (500, 300, 1, 1)), (2, 1, (0, 300, 0, 1))]);
    // A rule goes: its last report comes with the answer.
    bench.up(&session, 44);
    let removal = SessionModificationRequest { remove_urrs: vec![UrrId(1)], ..modification() };
    let response = bench.change(0, session.seid, &removal);
    assert_eq!(response.usage_reports.len(), 1);
    let last = &response.usage_reports[0];
    assert_eq!((last.urr, last.sequence, volumes(last)), (UrrId(1), 1, (44, 0, 1, 0)));
    assert!(has(last, UsageReportTrigger::TERMR));
    assert_eq!(bench.delete(0, session.seid).1.usage_reports.len(), 1);
    assert!(bench.smfs[0].take_reports().is_empty());
    bench.assert_empty();
}

#[test]
fn a_volume_threshold_is_reported_with_the_packet_that_reaches_it() {
    let mut bench = Bench::new(1);
    let session = bench.establish(0, &measured(9, vec![urr(1, ReportingTriggers::VOLTH, threshold(1000))]));
    for _ in 0..9 {
        bench.up(&session, 110);
    }
    assert!(bench.smfs[0].reports.is_empty(), "990 octets");
    bench.down(&session, 28);
    assert_eq!(bench.smfs[0].reports[0].seid, Seid(9), "to the SMF's SEID");
    let report = only_usage(&mut bench);
    assert_eq!((volumes(&report), report.sequence), ((990, 28, 9, 1), 0));
    assert!(has(&report, UsageReportTrigger::VOLTH));
    for _ in 0..10 {
        bench.down(&session, 100);
    }
    let report = only_usage(&mut bench);
    assert_eq!((volumes(&report), report.sequence), ((0, 1000, 0, 10), 1));
}

/// OAI's SMF asks for a report every 1,000 octets. It gets as many as it answers, and every octet once.
#[test]
fn reports_are_coalesced_and_no_octet_is_lost() {
    let mut bench = Bench::new(1);
    bench.smfs[0].answer = Answer::Wait;
    let session = bench.establish(0, &measured(1, vec![urr(1, ReportingTriggers::VOLTH, threshold(1000))]));
    let mut told = 0;
    let mut sent = 0;
    for round in 0..50 {
        bench.up(&session, 700);
        sent += 700;
        assert!(bench.smfs[0].reports.len() <= 1, "one report on its way");
        if round % 9 == 8 {
            told += bytes(&bench.smfs[0].reports[0].report.usage_reports[0]);
            bench.smfs[0].answer(Answer::Accept);
            bench.smfs[0].reports.clear();
            bench.settle();
        }
    }
    assert!(bench.n4.counters().reports_coalesced > 10);
    // One is still on its way, some wait, and the last octets are in the books: deletion tells all of them.
    told += bytes(&bench.smfs[0].reports[0].report.usage_reports[0]);
    let (_, response) = bench.delete(0, session.seid);
    assert_eq!(response.usage_reports.len(), 1);
    let last = &response.usage_reports[0];
    assert!(
        last.trigger.0 & UsageReportTrigger::TERMR != 0 && last.trigger.0 & UsageReportTrigger::VOLTH != 0
    );
    assert_eq!(told + bytes(last), sent);
    // The answer to the report comes after the session's end.
    bench.smfs[0].answer(Answer::Accept);
    bench.smfs[0].reports.clear();
    bench.assert_empty();
}

/// What waits behind an unanswered report goes with the last report of a rule that is removed.
#[test]
fn a_removed_rules_waiting_usage_is_in_its_last_report() {
    let mut bench = Bench::new(1);
    bench.smfs[0].answer = Answer::Wait;
    let session = bench.establish(0, &measured(1, vec![urr(1, ReportingTriggers::VOLTH, threshold(100))]));
    for length in [100, 200, 30] {
        bench.up(&session, length);
    }
    let removal = SessionModificationRequest { remove_urrs: vec![UrrId(1)], ..modification() };
    let response = bench.change(0, session.seid, &removal);
    assert_eq!(bytes(&response.usage_reports[0]), 230);
    assert_eq!(bytes(&bench.smfs[0].reports[0].report.usage_reports[0]), 100);
    bench.smfs[0].answer(Answer::Accept);
    bench.settle();
    assert_eq!(bench.smfs[0].reports.len(), 1, "nothing is left to tell");
    bench.delete(0, session.seid);
    bench.assert_empty();
}

/// What shards measure between a deletion request and its execution is in the response.
#[test]
fn usage_reported_while_a_session_is_being_deleted_is_not_lost() {
    let mut bench = Bench::new(1);
    let session = bench.establish(0, &measured(1, vec![urr(1, ReportingTriggers::VOLTH, threshold(100))]));
    bench.hold = true;
    let kind = pfcp::message_type::MessageType::SESSION_DELETION_REQUEST;
    let token = bench.smfs[0].ask(bench.now, kind, session.seid, |_| {});
    bench.settle();
    bench.up(&session, 150);
    bench.up(&session, 60);
    bench.release_orders();
    let (_, _, body) = bench.smfs[0].answers.remove(&token).unwrap();
    let response = SessionDeletionResponse::decode(&body).unwrap();
    assert_eq!(response.usage_reports.iter().map(bytes).sum::<u64>(), 210);
    assert!(bench.smfs[0].take_reports().is_empty());
    bench.assert_empty();
}

/// UR-SEQN goes on through a modification and a deletion that are both on their way.
#[test]
fn reports_of_a_modification_overtaken_by_a_deletion_keep_their_numbers() {
    let mut bench = Bench::new(1);
    let session = bench.establish(0, &measured(1, vec![urr(1, ReportingTriggers::VOLTH, threshold(100))]));
    bench.up(&session, 150);
    assert_eq!(only_usage(&mut bench).sequence, 0);
    bench.up(&session, 60);
    bench.hold = true;
    let query = SessionModificationRequest { query_urrs: vec![UrrId(1)], ..modification() };
    let kind = pfcp::message_type::MessageType::SESSION_MODIFICATION_REQUEST;
    let modified = bench.smfs[0].ask(bench.now, kind, session.seid, |out| query.encode(out));
    let kind = pfcp::message_type::MessageType::SESSION_DELETION_REQUEST;
    let deleted = bench.smfs[0].ask(bench.now, kind, session.seid, |_| {});
    bench.settle();
    bench.release_orders();
    let (_, _, body) = bench.smfs[0].answers.remove(&modified).unwrap();
    let response = SessionModificationResponse::decode(&body).unwrap();
    assert_eq!((response.usage_reports[0].sequence, bytes(&response.usage_reports[0])), (1, 60));
    let (_, _, body) = bench.smfs[0].answers.remove(&deleted).unwrap();
    assert_eq!(SessionDeletionResponse::decode(&body).unwrap().usage_reports[0].sequence, 2);
    bench.assert_empty();
}

#[test]
fn an_exhausted_quota_stops_traffic_and_a_new_one_resumes_it() {
    let mut bench = Bench::new(1);
    let session = bench.establish(0, &measured(1, vec![urr(1, ReportingTriggers::VOLQU, quota(1000))]));
    for _ in 0..6 {
        bench.up(&session, 200);
    }
    bench.down(&session, 200);
    assert_eq!(
        (bench.sent(1).len(), bench.sent(0).len()),
        (5, 0),
        "the packet that reaches the quota still passes"
    );
    assert_eq!(bench.dropped(Reason::QuotaExhausted), 2);
    let report = only_usage(&mut bench);
    assert!(has(&report, UsageReportTrigger::VOLQU));
    assert_eq!(volumes(&report), (1000, 0, 5, 0));
    bench.change(0, session.seid, &update_urr(1, quota(400)));
    for _ in 0..3 {
        bench.down(&session, 200);
    }
    assert_eq!(bench.sent(0).len(), 2);
    assert_eq!(volumes(&only_usage(&mut bench)), (0, 400, 0, 2));
    assert_eq!(bytes(&bench.delete(0, session.seid).1.usage_reports[0]), 0);
    bench.assert_empty();
}

#[test]
fn periods_and_time_thresholds() {
    let mut bench = Bench::new(1);
    let triggers = ReportingTriggers::PERIO | ReportingTriggers::TIMTH | ReportingTriggers::VOLQU;
    let parameters = UrrParameters { period: Some(10), time_threshold: Some(25), ..quota(1 << 40) };
    let session = bench.establish(0, &measured(1, vec![urr(1, triggers, parameters)]));
    for second in 1..=60 {
        bench.up(&session, 100);
        bench.pass(SECOND);
        // A new quota, as charging brings every now and then, leaves the other clocks alone.
        if second % 7 == 0 {
            bench.change(0, session.seid, &update_urr(1, quota(1 << 40)));
        }
    }
    bench.pass(SECOND / 10);
    let usage: Vec<_> =
        bench.smfs[0].take_reports().into_iter().flat_map(|report| report.usage_reports).collect();
    let raised = |trigger: u32| usage.iter().filter(|report| report.trigger.0 & trigger != 0).count();
    assert_eq!((raised(UsageReportTrigger::PERIO), raised(UsageReportTrigger::TIMTH)), (6, 2));
    assert_eq!(usage.iter().map(bytes).sum::<u64>(), 6000);
    assert!(
        usage.windows(2).all(|pair| pair[0].sequence + 1 == pair[1].sequence && pair[0].end == pair[1].start)
    );
    bench.delete(0, session.seid);
    bench.assert_empty();
}

#[test]
fn a_time_quota_blocks_until_there_is_a_new_one() {
    let mut bench = Bench::new(1);
    let time = |seconds| UrrParameters { time_quota: Some(seconds), ..UrrParameters::default() };
    let session = bench.establish(0, &measured(1, vec![urr(1, ReportingTriggers::TIMQU, time(5))]));
    bench.pass(4 * SECOND);
    bench.up(&session, 100);
    assert_eq!(bench.sent(1).len(), 1);
    bench.pass(2 * SECOND);
    let report = only_usage(&mut bench);
    assert!(has(&report, UsageReportTrigger::TIMQU));
    assert_eq!((bytes(&report), report.duration), (100, Some(5)));
    bench.up(&session, 100);
    bench.nothing_sent();
    // Something else changes: still blocked. A new quota: not.
    bench.change(0, session.seid, &activate(GNB, 3));
    bench.up(&session, 100);
    bench.nothing_sent();
    bench.change(0, session.seid, &update_urr(1, time(2)));
    bench.up(&session, 100);
    assert_eq!(bench.sent(1).len(), 1);
    bench.pass(3 * SECOND);
    assert!(has(&only_usage(&mut bench), UsageReportTrigger::TIMQU));
    // A validity that ends is told as such.
    let valid = UrrParameters { quota_validity_time: Some(1), ..quota(1 << 30) };
    bench.change(0, session.seid, &update_urr(1, UrrParameters { time_quota: Some(100), ..valid }));
    bench.pass(2 * SECOND);
    assert!(has(&only_usage(&mut bench), UsageReportTrigger::QUVTI));
    bench.down(&session, 100);
    bench.nothing_sent();
    bench.delete(0, session.seid);
    bench.assert_empty();
}

fn inactivity_reports(bench: &mut Bench) -> usize {
    bench.smfs[0].take_reports().iter().filter(|report| report.inactivity).count()
}

#[test]
fn a_session_without_packets_is_reported_once_until_there_are_some() {
    let mut bench = Bench::new(1);
    let request = SessionEstablishmentRequest { inactivity_timer: Some(10), ..everyday(1) };
    let session = bench.establish(0, &request);
    // Packets of either direction, also across a change of the session, put it off.
    for _ in 0..3 {
        bench.pass(6 * SECOND);
        bench.up(&session, 100);
        bench.change(0, session.seid, &activate(GNB, 3));
        bench.pass(6 * SECOND);
        bench.down(&session, 100);
    }
    bench.pass(10 * SECOND - 10 * MILLI);
    assert_eq!(inactivity_reports(&mut bench), 0);
    bench.pass(50 * MILLI);
    assert_eq!(inactivity_reports(&mut bench), 1);
    // Silence goes on: nothing new.
    bench.pass(35 * SECOND);
    assert_eq!(inactivity_reports(&mut bench), 0);
    bench.up(&session, 100);
    bench.pass(10 * SECOND - 10 * MILLI);
    assert_eq!(inactivity_reports(&mut bench), 0);
    bench.pass(50 * MILLI);
    assert_eq!(inactivity_reports(&mut bench), 1);
    // Another time counts from now; none ends it.
    let timer = |seconds| SessionModificationRequest { inactivity_timer: Some(seconds), ..modification() };
    bench.change(0, session.seid, &timer(2));
    bench.pass(1990 * MILLI);
    assert_eq!(inactivity_reports(&mut bench), 0);
    bench.pass(30 * MILLI);
    assert_eq!(inactivity_reports(&mut bench), 1);
    bench.up(&session, 100);
    bench.change(0, session.seid, &timer(0));
    bench.pass(20 * SECOND);
    assert_eq!(inactivity_reports(&mut bench), 0);
    bench.change(0, session.seid, &timer(5));
    bench.delete(0, session.seid);
    bench.assert_empty();
}

/// The shard's answer is on its way while the session changes or goes.
#[test]
fn a_question_for_silence_that_is_overtaken() {
    let mut bench = Bench::new(1);
    let timed = |cp| SessionEstablishmentRequest { inactivity_timer: Some(1), ..everyday(cp) };
    let timer = |seconds| SessionModificationRequest { inactivity_timer: Some(seconds), ..modification() };
    let kind = pfcp::message_type::MessageType::SESSION_MODIFICATION_REQUEST;
    let (changed, gone) = (bench.establish(0, &timed(1)), bench.establish(0, &timed(2)));
    bench.hold = true;
    bench.pass(1100 * MILLI);
    assert_eq!(bench.n4.pending(), 2);
    let changes = timer(30);
    let change = bench.smfs[0].ask(bench.now, kind, changed.seid, |out| changes.encode(out));
    let kind = pfcp::message_type::MessageType::SESSION_DELETION_REQUEST;
    let deletion = bench.smfs[0].ask(bench.now, kind, gone.seid, |_| {});
    bench.settle();
    bench.release_orders();
    assert!(
        bench.smfs[0].answers.remove(&change).is_some() && bench.smfs[0].answers.remove(&deletion).is_some()
    );
    assert_eq!(inactivity_reports(&mut bench), 0);
    bench.pass(29 * SECOND);
    assert_eq!(inactivity_reports(&mut bench), 0);
    bench.pass(SECOND + 50 * MILLI);
    assert_eq!(inactivity_reports(&mut bench), 1);
    bench.delete(0, changed.seid);
    bench.assert_empty();
}

#[test]
fn a_quota_that_nobody_uses_lapses() {
    let mut bench = Bench::new(1);
    let held = |volume| UrrParameters { quota_holding_time: Some(10), ..quota(volume) };
    let session = bench.establish(0, &measured(1, vec![urr(1, ReportingTriggers::VOLQU, held(10_000))]));
    for _ in 0..5 {
        bench.pass(7 * SECOND);
        bench.up(&session, 100);
    }
    assert!(bench.smfs[0].take_reports().is_empty());
    bench.pass(10 * SECOND - 10 * MILLI);
    assert!(bench.smfs[0].take_reports().is_empty());
    bench.pass(50 * MILLI);
    let report = only_usage(&mut bench);
    assert!(has(&report, UsageReportTrigger::QUHTI));
    assert_eq!(volumes(&report), (500, 0, 5, 0));
    bench.sent(1);
    bench.up(&session, 100);
    bench.nothing_sent();
    assert_eq!(bench.dropped(Reason::QuotaExhausted), 1);
    // Another quota is held anew; one that is used up isn't held.
    bench.change(0, session.seid, &update_urr(1, quota(200)));
    bench.pass(9 * SECOND);
    bench.up(&session, 200);
    assert_eq!(bench.sent(1).len(), 1);
    assert!(has(&only_usage(&mut bench), UsageReportTrigger::VOLQU));
    bench.pass(30 * SECOND);
    assert!(bench.smfs[0].take_reports().is_empty());
    bench.delete(0, session.seid);
    bench.assert_empty();
}

#[test]
fn the_start_of_traffic_is_reported_once() {
    let mut bench = Bench::new(1);
    let parameters = UrrParameters::default();
    let session = bench.establish(0, &measured(1, vec![urr(1, ReportingTriggers::START, parameters)]));
    bench.down(&session, 100);
    bench.down(&session, 100);
    let report = only_usage(&mut bench);
    assert!(has(&report, UsageReportTrigger::START));
    assert_eq!(bytes(&report), 0, "the packet is told with the next volume");
    assert_eq!(bytes(&bench.delete(0, session.seid).1.usage_reports[0]), 200);
}

/// The PDRs of all downlink data reports so far.
fn notified(bench: &mut Bench) -> Vec<Vec<PdrId>> {
    bench.smfs[0].take_reports().into_iter().filter_map(|report| Some(report.downlink_data?.pdrs)).collect()
}

#[test]
fn the_smf_is_told_once_that_packets_wait() {
    let mut bench = Bench::new(1);
    let mut request = idle(1);
    request.create_urrs = vec![urr(1, 0, threshold(1 << 40))];
    let session = bench.establish(0, &request);
    bench.down(&session, 100);
    bench.down(&session, 100);
    let reports = bench.smfs[0].take_reports();
    let data = reports[0].downlink_data.clone().unwrap();
    assert_eq!((reports.len(), data.pdrs), (1, vec![PdrId(2)]));
    assert_eq!(data.service.unwrap().1, packet::Qfi::new(9));
    // The session changes, and packets still wait: the SMF knows.
    let query = SessionModificationRequest { query_urrs: vec![UrrId(1)], ..modification() };
    bench.change(0, session.seid, &query);
    bench.change(0, session.seid, &deactivate());
    bench.down(&session, 100);
    assert_eq!(notified(&mut bench), Vec::<Vec<PdrId>>::new());
    assert_eq!(bench.inspect(session.seid).unwrap().buffered, 3);
    // A new episode.
    bench.change(0, session.seid, &activate(GNB, 1));
    assert_eq!(bench.sent(0).len(), 3);
    bench.change(0, session.seid, &deactivate());
    assert_eq!(notified(&mut bench), Vec::<Vec<PdrId>>::new());
    bench.down(&session, 100);
    assert_eq!(notified(&mut bench), [[PdrId(2)]]);
    // DROBU in the answer to the report: what waits is dropped, and the next packet is news.
    bench.change(0, session.seid, &activate(GNB, 1));
    bench.sent(0);
    bench.change(0, session.seid, &deactivate());
    bench.smfs[0].answer = Answer::Discard;
    bench.down(&session, 100);
    assert_eq!(bench.inspect(session.seid).unwrap().buffered, 0);
    bench.smfs[0].answer = Answer::Accept;
    bench.down(&session, 100);
    assert_eq!(notified(&mut bench), [[PdrId(2)], [PdrId(2)]]);
    assert_eq!(bench.inspect(session.seid).unwrap().buffered, 1);
    bench.delete(0, session.seid);
    bench.nothing_sent();
    bench.assert_empty();
}

#[test]
fn a_bar_delays_the_notification() {
    let mut bench = Bench::new(1);
    let mut request = idle(1);
    request.create_bars = vec![bar(Some(10))];
    request.create_fars[1].bar = Some(BarId(1));
    let session = bench.establish(0, &request);
    bench.down(&session, 100);
    bench.pass(490 * MILLI);
    assert_eq!(notified(&mut bench), Vec::<Vec<PdrId>>::new());
    bench.pass(30 * MILLI);
    assert_eq!(notified(&mut bench), [[PdrId(2)]]);
    // The UE came by itself before the delay was over; its next idle time has a delay of its own.
    bench.change(0, session.seid, &activate(GNB, 1));
    bench.change(0, session.seid, &deactivate());
    bench.down(&session, 100);
    bench.pass(300 * MILLI);
    bench.change(0, session.seid, &activate(GNB, 1));
    bench.change(0, session.seid, &deactivate());
    bench.down(&session, 100);
    bench.pass(480 * MILLI);
    assert_eq!(notified(&mut bench), Vec::<Vec<PdrId>>::new());
    bench.pass(SECOND);
    assert_eq!(notified(&mut bench), [[PdrId(2)]]);
    bench.change(0, session.seid, &activate(GNB, 1));
    bench.change(0, session.seid, &deactivate());
    bench.down(&session, 100);
    bench.delete(0, session.seid);
    bench.assert_empty();
}

/// A notification that waits behind another report and has become pointless is not sent.
#[test]
fn a_stale_notification_is_not_sent() {
    let mut bench = Bench::new(1);
    bench.smfs[0].answer = Answer::Wait;
    let mut request = measured(1, vec![urr(1, ReportingTriggers::VOLTH, threshold(50))]);
    request.create_fars[1] = buffering();
    let session = bench.establish(0, &request);
    bench.up(&session, 60);
    bench.down(&session, 60);
    bench.change(0, session.seid, &activate(GNB, 1));
    assert_eq!(bench.sent(0).len(), 1);
    bench.smfs[0].answer(Answer::Accept);
    bench.settle();
    assert_eq!(bench.smfs[0].reports.len(), 2);
    assert_eq!(bench.smfs[0].reports[1].report.downlink_data, None);
    assert_eq!(bytes(&bench.smfs[0].reports[1].report.usage_reports[0]), 60);
}

#[test]
fn an_error_indication_names_the_tunnel() {
    let mut bench = Bench::new(1);
    let session = bench.establish(0, &everyday(0x77));
    // TS 29.281 §7.3.1: TEID Data I and GTP-U Peer Address of the tunnel that the gNB doesn't know.
    let ies = [&[16, 0, 0, 0, 0x77][..], &[133, 0, 4], &GNB.octets()].concat();
    bench.from_gnb(GNB, |packet| packet.gtpu_message(GtpuType::ERROR_INDICATION, Teid(0)).build(&ies));
    let reports = bench.smfs[0].take_reports();
    assert_eq!(reports.len(), 1);
    let expected = FTeid::Given { teid: Teid(0x77), ipv4: Some(GNB), ipv6: None };
    assert_eq!(reports[0].error_indications, [expected]);
    let far_end = bench.n4.far_ends().find(|far_end| far_end.address == GNB).unwrap();
    assert_eq!((far_end.rules, far_end.error_indications), (1, 1));
    assert_eq!(far_end.last_error, Some(bench.now));
    // With every packet that comes through the tunnel it says so again: that is no news for a second.
    bench.from_gnb(GNB, |packet| packet.gtpu_message(GtpuType::ERROR_INDICATION, Teid(0)).build(&ies));
    assert!(bench.smfs[0].take_reports().is_empty());
    bench.now = bench.now.plus(Nanos::SECOND);
    bench.from_gnb(GNB, |packet| packet.gtpu_message(GtpuType::ERROR_INDICATION, Teid(0)).build(&ies));
    assert_eq!(bench.smfs[0].take_reports().len(), 1);
    // A tunnel that nobody sends into.
    let ies = [&[16, 0, 0, 0, 0x78][..], &[133, 0, 4], &GNB.octets()].concat();
    bench.from_gnb(GNB, |packet| packet.gtpu_message(GtpuType::ERROR_INDICATION, Teid(0)).build(&ies));
    assert!(bench.smfs[0].take_reports().is_empty());
    assert_eq!(bench.n4.counters().errors_unmatched, 1);
    // The session sends into another tunnel: the former is nobody's, though it was the same session's.
    bench.change(0, session.seid, &activate(GNB, 0x79));
    let ies = [&[16, 0, 0, 0, 0x77][..], &[133, 0, 4], &GNB.octets()].concat();
    bench.from_gnb(GNB, |packet| packet.gtpu_message(GtpuType::ERROR_INDICATION, Teid(0)).build(&ies));
    assert!(bench.smfs[0].take_reports().is_empty());
    assert_eq!(bench.n4.counters().errors_unmatched, 2);
    bench.delete(0, session.seid);
    bench.assert_empty();
}

#[test]
fn a_session_that_its_smf_does_not_know_is_dropped() {
    let mut bench = Bench::new(1);
    bench.smfs[0].answer = Answer::Unknown;
    let kept = bench.establish(0, &everyday(1));
    let session = bench.establish(0, &measured(2, vec![urr(1, ReportingTriggers::VOLTH, threshold(100))]));
    bench.up(&session, 200);
    assert_eq!(bench.n4.store().counts().sessions, 1);
    assert_eq!((bench.worker.sessions(), bench.n4.counters().unknown_to_smf), (1, 1));
    bench.sent(1);
    bench.down(&session, 200);
    bench.nothing_sent();
    assert_eq!(bench.dropped(Reason::UnknownUe), 1);
    bench.delete(0, kept.seid);
    bench.smfs[0].reports.clear();
    bench.assert_empty();
}

/// No room among the outstanding requests: reports wait for it, and lose nothing.
#[test]
fn reports_wait_for_room() {
    let mut bench = Bench::with(1, Limits { outstanding: 2, ..Limits::default() });
    bench.smfs[0].answer = Answer::Wait;
    let sessions: Vec<_> = (1..=5)
        .map(|cp| bench.establish(0, &measured(cp, vec![urr(1, ReportingTriggers::VOLTH, threshold(100))])))
        .collect();
    for session in &sessions {
        bench.up(session, 150);
        bench.up(session, 150);
    }
    assert_eq!(bench.n4.node().outstanding(), 2);
    assert_eq!(bench.n4.counters().reports_queued, 3);
    let mut told = 0;
    for _ in 0..20 {
        if bench.n4.node().outstanding() == 0 {
            break;
        }
        for report in std::mem::take(&mut bench.smfs[0].reports) {
            told += report.report.usage_reports.iter().map(bytes).sum::<u64>();
            bench.smfs[0].reports = vec![report];
            bench.smfs[0].answer(Answer::Accept);
            bench.smfs[0].reports.clear();
        }
        bench.settle();
    }
    assert_eq!((told, bench.n4.node().outstanding()), (1500, 0));
    for session in sessions {
        bench.delete(0, session.seid);
    }
    bench.assert_empty();
}

#[test]
fn an_smf_that_never_answers_does_not_silence_a_session_for_ever() {
    let mut bench = Bench::new(1);
    bench.smfs[0].answer = Answer::Wait;
    let session = bench.establish(0, &measured(1, vec![urr(1, ReportingTriggers::VOLTH, threshold(100))]));
    bench.up(&session, 100);
    bench.up(&session, 300);
    bench.pass(5 * SECOND);
    assert_eq!((bench.smfs[0].reports.len(), bench.n4.counters().reports_unanswered), (2, 1));
    assert_eq!(bytes(&bench.smfs[0].reports[1].report.usage_reports[0]), 300);
    let remove_far = SessionModificationRequest { remove_fars: vec![FarId(9)], ..modification() };
    assert_eq!(bench.modify(0, session.seid, &remove_far).1.cause, Cause::RULE_FAILURE, "N4 goes on");
}
