//! What people are told of N4: the last requests and refusals, and lines in the log, all of it bounded.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::bench::*;
use n4::{Entry, Excerpt, MAX_ENTRIES};
use pfcp::ie::NodeId;
use pfcp::message_type::MessageType;
use pfcp::{Cause, FarId, RuleId, Seid, SequenceNumber, ie_type};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Once};
use tables::Nanos;

/// The log of what is done meanwhile, at the default level.
fn log(what: impl FnOnce()) -> Vec<String> {
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);
    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    // Whether an event is for anybody is remembered by all threads together: a test beside this one, to which nobody listens, may be the
    // first to come by. So somebody listens always.
    static SOMEBODY: Once = Once::new();
    SOMEBODY.call_once(|| {
        let nowhere =
            tracing_subscriber::fmt().with_max_level(tracing::Level::INFO).with_writer(std::io::sink);
        tracing::subscriber::set_global_default(nowhere.finish()).unwrap();
    });
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing::Level::INFO)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, what);
    let bytes = lines.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap().lines().map(Into::into).collect()
}

fn all(bench: &Bench) -> Vec<Entry> {
    bench.n4.excerpt(false, None, usize::MAX).entries
}

fn refusals(bench: &Bench) -> Vec<Entry> {
    bench.n4.excerpt(true, None, usize::MAX).entries
}

/// A modification of a FAR that isn't there.
fn refuse(bench: &mut Bench, seid: Seid) {
    let request = pfcp::message::SessionModificationRequest {
        update_fars: vec![pfcp::message::UpdateFar { id: FarId(4), ..update_far(2, None) }],
        ..modification()
    };
    assert_eq!(bench.modify(0, seid, &request).1.cause, Cause::RULE_FAILURE);
}

#[test]
fn a_refusal_is_kept_with_its_reason_and_told_once() {
    let mut bench = Bench::new(1);
    let mut session = None;
    let lines = log(|| {
        let established = bench.establish(0, &everyday(9));
        for _ in 0..5 {
            bench.now = bench.now.plus(SECOND);
            refuse(&mut bench, established.seid);
        }
        assert_eq!(bench.delete(0, Seid(77)).1.cause, Cause::SESSION_NOT_FOUND);
        session = Some(established);
    });
    let seid = session.unwrap().seid;
    let entries = refusals(&bench);
    assert_eq!(entries.len(), 6);
    let first = &entries[0];
    assert_eq!(first.at, Nanos(2 * SECOND));
    assert_eq!((&*first.smf, first.address), ("198.51.100.100", Some(bench.smfs[0].address)));
    assert_eq!((first.seid, first.cp_seid), (Some(seid), Some(Seid(9))));
    assert_eq!(first.message, Some(MessageType::SESSION_MODIFICATION_REQUEST));
    assert_eq!((first.cause, first.offending_ie), (Some(Cause::RULE_FAILURE), Some(ie_type::FAR_ID)));
    assert_eq!(first.failed_rule, Some(RuleId::Far(FarId(4))));
    assert_eq!(&*first.why, "the session has no FAR 4");
    assert_eq!(&*entries[5].why, "there is no session 0x000000000000004d of this SMF here");
    // In the whole there is the establishment too.
    let accepted = &all(&bench)[1];
    assert_eq!(
        (accepted.cause, accepted.seid, accepted.cp_seid),
        (Some(Cause::ACCEPTED), Some(seid), Some(Seid(9)))
    );
    // Each kind of refusal once, with all that one wants to know.
    assert_eq!(lines.len(), 2, "{lines:#?}");
    for part in [
        " WARN ",
        "Session Modification Request refused, Rule creation/modification Failure: the session has no FAR 4",
        "smf=198.51.100.100",
        &format!("seid={seid}"),
        "cause=73",
        "ie=FAR ID (108)",
        "rule=FAR 4",
    ] {
        assert!(lines[0].contains(part), "{part}: {}", lines[0]);
    }
    // A minute later it is told again, and how many there were meanwhile.
    let lines = log(|| {
        bench.now = bench.now.plus(60 * SECOND);
        refuse(&mut bench, seid);
    });
    assert!(lines.len() == 1 && lines[0].contains("more=4"), "{lines:#?}");
}

#[test]
fn what_is_kept_is_bounded_and_told_from_where_one_left_off() {
    let mut bench = Bench::new(1);
    let session = bench.establish(0, &everyday(1));
    refuse(&mut bench, session.seid);
    let Excerpt { next, missed, .. } = bench.n4.excerpt(false, None, 10);
    assert_eq!((next, missed), (3, 0));
    for _ in 0..MAX_ENTRIES + 7 {
        bench.modify(0, session.seid, &activate(GNB, 5));
    }
    let late = bench.n4.excerpt(false, Some(next), usize::MAX);
    assert_eq!((late.entries.len(), late.missed), (MAX_ENTRIES, 7));
    let some = bench.n4.excerpt(false, None, 5);
    assert_eq!((some.entries.len(), some.next, some.missed), (5, late.next, 0));
    let rest = bench.n4.excerpt(false, Some(late.next - 2), usize::MAX);
    assert_eq!((rest.entries.len(), rest.next), (2, late.next));
    assert!(bench.n4.excerpt(false, Some(u64::MAX), usize::MAX).entries.is_empty());
    // A thousand accepted requests don't hide the one that wasn't.
    assert_eq!(refusals(&bench).len(), 1);
}

/// The heartbeat's answer and the association both say that it is another process now.
#[test]
fn a_restart_is_told_once_with_both_stamps() {
    let mut bench = Bench::with(1, Limits { heartbeat: 2 * SECOND, ..Limits::default() });
    bench.smfs[0] = Smf::new(0, 1_000_000_000);
    let lines = log(|| {
        bench.pass(5 * SECOND);
        bench.smfs[0].associate(bench.now);
        bench.settle();
        bench.pass(5 * SECOND);
    });
    assert_eq!(bench.n4.node().counters().peer_restarts, 2);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    for part in [" WARN ", "SMF restarted", "was=\"2036-02-07T06:28:17Z\"", "is=\"1931-09-09T01:46:40Z\""] {
        let part = part.replace("1931-09-09T01:46:40Z", &pfcp::calendar::utc(1_000_000_000));
        assert!(lines[0].contains(&part), "{part}: {}", lines[0]);
    }
}

#[test]
fn an_smf_that_is_silent_is_told_once_and_once_when_it_speaks_again() {
    let mut bench = Bench::with(1, Limits { heartbeat: 2 * SECOND, ..Limits::default() });
    let lines = log(|| {
        // Nobody carries the datagrams.
        for _ in 0..600 {
            bench.now = bench.now.plus(SECOND / 2);
            let now = bench.now;
            bench.n4.tick(now);
            bench.datagrams();
        }
        bench.pass(10 * SECOND);
    });
    assert!(bench.n4.node().counters().peers_lost > 10);
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].contains("WARN") && lines[0].contains("SMF does not answer heartbeats"), "{lines:#?}");
    assert!(lines[1].contains("WARN") && lines[1].contains("SMF is heard again"), "{lines:#?}");
    let said: Vec<_> =
        all(&bench).into_iter().filter(|entry| entry.message.is_none()).map(|e| e.why).collect();
    assert_eq!(said.len(), 2, "{said:?}");
}

/// As much as a link carries: neither the log nor what is remembered of SMFs suffers.
#[test]
fn strangers_are_told_of_and_push_nothing_out() {
    let mut bench = Bench::new(1);
    let session = bench.establish(0, &everyday(1));
    refuse(&mut bench, session.seid);
    let request = |number: u32| {
        let mut bytes = Vec::new();
        let header = pfcp::Header {
            seid: Some(Seid(0)),
            ..pfcp::Header::node(MessageType::SESSION_ESTABLISHMENT_REQUEST, SequenceNumber(number))
        };
        pfcp::encode_message(&header, &mut bytes, |out| everyday(1).encode(out)).unwrap();
        bytes
    };
    let lines = log(|| {
        for number in 0..5_000u32 {
            let [_, _, high, low] = number.to_be_bytes();
            bench.n4.receive(bench.now, SocketAddr::from(([203, 0, high, low], 8805)), &request(number));
            bench.n4.output().clear();
        }
    });
    assert_eq!(lines.len(), 10, "{lines:#?}");
    assert!(lines.iter().all(|line| line.contains("an Association Setup Request comes first")), "{lines:#?}");
    let entries = refusals(&bench);
    assert_eq!(entries.len(), 11);
    assert_eq!(&*entries[0].why, "the session has no FAR 4");
    assert_eq!((&*entries[1].smf, entries[1].cause), ("", Some(Cause::NO_ASSOCIATION)));
    assert_eq!(entries[1].address, Some(([203, 0, 0, 0], 8805).into()));
}

/// More SMFs than are allowed, and one whose name is none.
#[test]
fn an_association_that_is_refused_is_told() {
    let mut bench = Bench::unassociated(3, Limits { peers: 1, ..Limits::default() });
    bench.associate(0);
    bench.smfs[1] = Smf::named(1, 1, NodeId::Fqdn("smf\x1b[2j.example".into()));
    let lines = log(|| {
        for smf in 1..3 {
            bench.smfs[smf].associate(bench.now);
            bench.settle();
        }
    });
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].contains("the Association Setup Request can't be taken as it is"), "{lines:#?}");
    assert!(lines[1].contains("there are as many associations as limits.peers allows"), "{lines:#?}");
    assert!(lines[1].contains("address=198.51.100.102:8805") && lines[1].contains("cause=75"), "{lines:#?}");
    assert_eq!(refusals(&bench).len(), 2);
}

/// Counters begin anew with each report; what was taken of a quota does not.
#[test]
fn what_is_left_of_a_quota_is_known_also_after_it_was_reported() {
    let mut bench = Bench::new(1);
    let request = measured(1, vec![urr(1, pfcp::ie::ReportingTriggers::VOLQU, quota(1_000))]);
    let session = bench.establish(0, &request);
    bench.down(&session, 400);
    let snapshot = bench.inspect(session.seid).unwrap();
    assert_eq!((snapshot.urrs[0].1.downlink_bytes, snapshot.consumed[0].1.downlink_bytes), (400, 400));
    for _ in 0..3 {
        bench.down(&session, 400);
    }
    bench.settle();
    assert_eq!(bench.smfs[0].take_reports().len(), 1);
    let snapshot = bench.inspect(session.seid).unwrap();
    assert_eq!((snapshot.urrs[0].1.downlink_bytes, snapshot.consumed[0].1.downlink_bytes), (0, 1_200));
}
