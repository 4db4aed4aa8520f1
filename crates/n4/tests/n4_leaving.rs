//! The end of a UPF: every octet is told, nobody is waited for longer than needed, and the time in reports is the system's.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::bench::*;
use n4::LastReports;
use pfcp::Cause;
use pfcp::ie::*;
use pfcp::message::UrrParameters;
use pfcp::message_type::MessageType;
use std::collections::BTreeMap;

/// Lets N4 take leave until nothing moves; how far it is.
fn go_on(bench: &mut Bench) -> LastReports {
    loop {
        let before = bench.n4.go_on_leaving();
        bench.settle();
        let after = bench.n4.go_on_leaving();
        if before == after {
            return after;
        }
    }
}

#[test]
fn the_last_octet_of_every_session_is_told_to_its_smf() {
    let mut bench = Bench::new(2);
    let mut sent = BTreeMap::new();
    for cp in 1..=300 {
        let smf = usize::from(cp % 3 == 0);
        let urrs = if cp % 10 == 0 {
            vec![]
        } else {
            vec![urr(1, 0, threshold(1 << 40)), urr(2, 0, UrrParameters::default())]
        };
        let session = bench.establish(smf, &measured(cp, urrs));
        bench.up(&session, 100 + cp as usize);
        if cp % 10 != 0 {
            sent.insert((smf, cp), 100 + cp);
        }
    }
    bench.n4.begin_to_leave();
    let begun = bench.n4.go_on_leaving();
    assert_eq!((begun.sessions, begun.left), (270, 270), "those without URRs have nothing to tell");
    // A window of its own for each SMF: the first answers nothing, the second is told everything.
    bench.smfs[0].answer = Answer::Wait;
    let progress = go_on(&mut bench);
    assert_eq!(bench.smfs[1].reports.len(), 90);
    let first = bench.smfs[0].reports.len();
    assert!((1..=128).contains(&first), "{first} reports at once");
    assert_eq!(progress.left, 180);
    // It answers, with more than one round.
    while bench.n4.go_on_leaving().left > 0 {
        for at in 0..bench.smfs[0].reports.len() {
            bench.smfs[0].answer_to(at, Answer::Accept);
        }
        let told = bench.smfs[0].reports.len();
        bench.settle();
        bench.n4.go_on_leaving();
        bench.settle();
        assert!(bench.smfs[0].reports.len() - told <= 128);
    }
    assert_eq!(go_on(&mut bench), LastReports { sessions: 270, left: 0, left_out: 0, unanswered: 0 });
    let mut told = BTreeMap::new();
    for (number, smf) in bench.smfs.iter_mut().enumerate() {
        for report in smf.reports.drain(..) {
            assert_eq!(report.report.usage_reports.len(), 2);
            for usage in &report.report.usage_reports {
                assert_eq!(usage.trigger.0, UsageReportTrigger::TERMR | UsageReportTrigger::TEBUR);
            }
            let octets = report.report.usage_reports[0].volume.unwrap().total.unwrap();
            assert!(told.insert((number, report.seid.0), octets).is_none(), "told twice");
        }
    }
    assert_eq!(told, sent);
}

#[test]
fn who_leaves_takes_no_new_sessions_and_still_lets_go() {
    let mut bench = Bench::new(1);
    let session = bench.establish(0, &measured(1, vec![urr(1, 0, threshold(1 << 40))]));
    bench.up(&session, 400);
    bench.n4.begin_to_leave();
    assert_eq!(bench.try_establish(0, &measured(2, vec![])).cause, Cause::CONGESTION);
    assert_eq!(bench.n4.counters().congested, 1);
    // Deleted before its turn came: the usage is in the answer, and nothing is left to tell.
    let (_, response) = bench.delete(0, session.seid);
    assert_eq!((response.cause, response.usage_reports.len()), (Cause::ACCEPTED, 1));
    assert_eq!(go_on(&mut bench).left, 0);
    assert!(bench.smfs[0].reports.is_empty());
}

#[test]
fn an_smf_that_does_not_answer_is_given_up() {
    let mut bench = Bench::with(2, Limits { heartbeat: 2 * SECOND, ..Limits::default() });
    for smf in 0..2 {
        let session = bench.establish(smf, &measured(1, vec![urr(1, 0, threshold(1 << 40))]));
        bench.up(&session, 400);
    }
    // The first is gone before, the second stops answering reports.
    let gone = bench.smfs.remove(0);
    bench.pass(20 * SECOND);
    bench.smfs[0].answer = Answer::Wait;
    bench.n4.begin_to_leave();
    let progress = go_on(&mut bench);
    assert_eq!((progress.sessions, progress.left, progress.left_out), (1, 1, 1));
    bench.pass(10 * SECOND);
    let progress = go_on(&mut bench);
    assert_eq!((progress.left, progress.unanswered), (0, 1));
    assert!(gone.reports.is_empty());
}

#[test]
fn workers_that_are_far_behind_let_requests_be_refused() {
    const MOST: usize = 16_384;
    let limits = Limits { sessions: 40_000, per_peer: 40_000, ..Limits::default() };
    let mut bench = Bench::with(1, limits);
    bench.hold = true;
    let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
    let ask = |bench: &mut Bench, cp| {
        let request = everyday(cp);
        bench.smfs[0].ask(bench.now, kind, pfcp::Seid(0), |out| request.encode(out))
    };
    for cp in 1..=MOST as u64 + 5 {
        ask(&mut bench, cp);
        bench.settle();
    }
    assert_eq!(bench.n4.pending(), MOST, "no more than that");
    assert_eq!((bench.smfs[0].answers.len(), bench.n4.counters().congested), (5, 5));
    for (_, _, body) in bench.smfs[0].answers.values() {
        let response = pfcp::message::SessionEstablishmentResponse::decode(body).unwrap();
        assert_eq!((response.cause, response.up_fseid), (Cause::CONGESTION, None));
    }
    bench.smfs[0].answers.clear();
    bench.release_orders();
    assert_eq!((bench.n4.pending(), bench.smfs[0].answers.len()), (0, MOST));
    bench.smfs[0].answers.clear();
    let after = bench.establish(0, &everyday(50_000));
    assert_ne!(after.seid.0, 0, "and it goes on");
}

#[test]
fn reports_follow_the_systems_clock_over_steps_and_drift() {
    let mut bench = Bench::new(1);
    let session = bench.establish(0, &measured(1, vec![urr(1, ReportingTriggers::VOLTH, threshold(100))]));
    let report = |bench: &mut Bench| {
        bench.up(&session, 100);
        let report = bench.smfs[0].take_reports()[0].usage_reports[0].clone();
        let since = |time: Option<NtpSeconds>| i64::from(time.unwrap().0) - (NTP & 0xffff_ffff).cast_signed();
        (since(report.start), since(report.first_packet), since(report.end), report.duration.unwrap())
    };
    bench.pass(9 * SECOND);
    assert_eq!(report(&mut bench), (1, 10, 10, 9));
    // Between two looks at both clocks some microseconds may pass: nobody sees a correction in that.
    assert_eq!(bench.n4.tell_time(wall(3 * MILLI)), 0);
    bench.pass(10 * SECOND);
    assert_eq!(report(&mut bench), (10, 20, 20, 10));
    // The system's clock is set, an hour ahead: the measurement keeps its length, and is told as it was by that clock.
    assert_eq!(bench.n4.tell_time(wall(3_600 * SECOND)), 3_600 * SECOND as i128);
    bench.pass(10 * SECOND);
    assert_eq!(report(&mut bench), (3_620, 3_630, 3_630, 10));
    // Set back.
    assert_eq!(bench.n4.tell_time(wall(0)), -3_600 * SECOND as i128);
    bench.pass(10 * SECOND);
    assert_eq!(report(&mut bench), (30, 40, 40, 10));
    // And slewed by 500 ppm, as NTP does: after 3 hours, 5.4 s, of which a clock set once would know nothing.
    for step in 1..=10_800 {
        bench.now = bench.now.plus(SECOND);
        bench.n4.tell_time(wall(step * SECOND / 2_000));
    }
    assert_eq!(report(&mut bench), (45, 10_845, 10_845, 10_800));
}
