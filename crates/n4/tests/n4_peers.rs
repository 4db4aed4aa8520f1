//! SMFs that come back, go, or speak over a bad network: whose sessions are removed, and that both sides agree in the end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::type_complexity)]

use crate::bench::*;
use packet::Teid;
use pfcp::ie::*;
use pfcp::message::*;
use pfcp::message_type::MessageType;
use pfcp::{Cause, Seid, UrrId};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use tables::Nanos;

/// Sessions of SMF 0 and 1, in turns.
fn two_smfs(bench: &mut Bench, each: u64) -> [Vec<Established>; 2] {
    let mut sessions = [Vec::new(), Vec::new()];
    for cp in 1..=each {
        for (smf, sessions) in sessions.iter_mut().enumerate() {
            let rules =
                vec![urr(1, ReportingTriggers::PERIO, UrrParameters { period: Some(60), ..threshold(1) })];
            sessions.push(bench.establish(smf, &measured(cp, rules)));
        }
    }
    sessions
}

/// All sessions of SMF 0 are gone, none of SMF 1's.
fn only_the_second_is_left(bench: &mut Bench, sessions: &[Vec<Established>; 2]) {
    let each = sessions[1].len();
    assert_eq!((bench.n4.store().counts().sessions, bench.worker.sessions()), (each, each));
    assert!(sessions[0].iter().all(|session| bench.n4.store().get(session.seid).is_none()));
    assert!(sessions[1].iter().all(|session| bench.n4.store().get(session.seid).is_some()));
    assert_eq!(bench.n4.counters().sessions_swept, each as u64);
    bench.sent(0);
    bench.down(&sessions[0][0], 100);
    bench.nothing_sent();
    bench.down(&sessions[1][0], 100);
    assert_eq!(bench.sent(0).len(), 1);
    for session in &sessions[1] {
        assert_eq!(bench.delete(1, session.seid).1.cause, Cause::ACCEPTED);
    }
    bench.assert_empty();
}

#[test]
fn a_restart_seen_in_a_heartbeat_removes_exactly_that_smfs_sessions_in_bites() {
    let mut bench = Bench::with(2, Limits { heartbeat: 2 * SECOND, ..Limits::default() });
    let sessions = two_smfs(&mut bench, 600);
    // The SMF is another process now, and answers heartbeats.
    bench.smfs[0] = Smf::new(0, 2);
    let mut most = 0;
    for _ in 0..400 {
        bench.now = bench.now.plus(10 * MILLI);
        let before = bench.n4.store().counts().sessions;
        bench.tick();
        most = most.max(before - bench.n4.store().counts().sessions);
        bench.settle();
    }
    assert!((1..=256).contains(&most), "{most} sessions were removed in one round");
    assert_eq!(bench.n4.node().counters().peer_restarts, 1);
    only_the_second_is_left(&mut bench, &sessions);
}

#[test]
fn a_restart_seen_in_an_association_removes_exactly_that_smfs_sessions() {
    let mut bench = Bench::new(2);
    let sessions = two_smfs(&mut bench, 20);
    // It counts its requests from the beginning, from the same port, within the time that answers are kept.
    bench.smfs[0] = Smf::new(0, 2);
    bench.associate(0);
    let again = bench.establish(0, &everyday(1));
    assert!(sessions.iter().flatten().all(|session| session.seid != again.seid && session.ue != again.ue));
    bench.pass(100 * MILLI);
    assert!(bench.n4.store().get(again.seid).is_some());
    assert_eq!(bench.delete(0, again.seid).1.cause, Cause::ACCEPTED);
    only_the_second_is_left(&mut bench, &sessions);
}

/// What each leaves behind is looked for in all shards, a bite a round: that of many would hold up that of one with sessions.
#[test]
fn associations_without_sessions_leave_no_work_behind() {
    let mut bench = Bench::new(2);
    let sessions = two_smfs(&mut bench, 20);
    for _ in 0..500 {
        bench.associate(0);
        assert_eq!(bench.n4.held().sweeps, 1, "the first time it had sessions");
    }
    bench.pass(100 * MILLI);
    only_the_second_is_left(&mut bench, &sessions);
}

/// Open5GS and free5GC hand out the first address of their pools again first, and the old session that has it isn't swept yet.
#[test]
fn stale_sessions_of_a_restarted_smf_make_way_for_its_new_ones() {
    let mut bench = Bench::new(2);
    let request = |cp: u64, gnb_teid: u32| {
        let mut request = everyday(cp);
        let fteid = FTeid::Given { teid: Teid(0x1000 + cp as u32), ipv4: Some(N3), ipv6: None };
        request.create_pdrs[0].pdi.local_fteid = Some(fteid);
        let ue = Ipv4Addr::new(10, 99, (cp >> 8) as u8, cp as u8);
        request.create_pdrs[1].pdi.ue_ips = vec![UeIpAddress { ipv4: Some(ue), ..UeIpAddress::default() }];
        request.create_fars[1] = to_gnb(GNB, gnb_teid);
        request
    };
    let session = |cp: u64, seid| Established {
        seid,
        teid: Teid(0x1000 + cp as u32),
        ue: Ipv4Addr::new(10, 99, (cp >> 8) as u8, cp as u8),
    };
    let count = 600;
    let establish = |bench: &mut Bench, cp, gnb_teid| {
        let response = bench.try_establish(0, &request(cp, gnb_teid));
        assert_eq!(response.cause, Cause::ACCEPTED, "session {cp}");
        session(cp, response.up_fseid.unwrap().seid)
    };
    let old: Vec<_> = (1..=count).map(|cp| establish(&mut bench, cp, 7)).collect();
    bench.smfs[0] = Smf::new(0, 2);
    bench.associate(0);
    assert_eq!(bench.n4.held().sweeps, 1);
    // The first one's answer waits until every worker has forgotten what the old session had.
    bench.others_are_slow = true;
    let first = request(1, 8);
    let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
    let token = bench.smfs[0].ask(bench.now, kind, Seid(0), |out| first.encode(out));
    bench.settle();
    assert!(bench.smfs[0].answers.is_empty());
    bench.others_are_slow = false;
    bench.others_know();
    let (_, _, body) = bench.smfs[0].answers.remove(&token).unwrap();
    let response = SessionEstablishmentResponse::decode(&body).unwrap();
    assert_eq!(response.cause, Cause::ACCEPTED);
    let mut new = vec![session(1, response.up_fseid.unwrap().seid)];
    // In another order than before: no old session is left to chance.
    for cp in (2..=count).rev() {
        new.insert(1, establish(&mut bench, cp, 8));
    }
    assert_eq!((bench.n4.store().counts().sessions, bench.worker.sessions()), (600, 600));
    for session in &new {
        bench.down(session, 100);
        let frames = bench.sent(0);
        let packet = inner(HOST, session.ue, 100, 63);
        assert_eq!(frames, [tunnelled(GNB, 8, &packet, &frames[0])], "it leads to the new session");
        bench.up(session, 100);
        assert_eq!(bench.sent(1).len(), 1);
    }
    assert!(old.iter().all(|session| bench.n4.store().get(session.seid).is_none()));
    bench.pass(SECOND);
    assert_eq!(bench.n4.counters().sessions_swept, count);
    assert_eq!(bench.n4.counters().refused, 0);
    for session in new {
        bench.delete(0, session.seid);
    }
    bench.assert_empty();
}

#[test]
fn a_release_removes_the_sessions_and_a_new_association_begins_without() {
    let mut bench = Bench::new(2);
    let sessions = two_smfs(&mut bench, 300);
    let now = bench.now;
    bench.smfs[0].release(now);
    bench.settle();
    assert_eq!(bench.n4.node().peers().count(), 1);
    bench.pass(100 * MILLI);
    bench.associate(0);
    let old = sessions[0][0].seid;
    assert_eq!(bench.modify(0, old, &activate(GNB, 1)).1.cause, Cause::SESSION_NOT_FOUND);
    only_the_second_is_left(&mut bench, &sessions);
}

#[test]
fn requests_that_wait_for_a_worker_when_their_smf_restarts_do_no_harm() {
    let mut bench = Bench::new(1);
    bench.hold = true;
    for cp in 1..=3 {
        bench.smfs[0].ask(bench.now, MessageType::SESSION_ESTABLISHMENT_REQUEST, Seid(0), |out| {
            everyday(cp).encode(out)
        });
    }
    bench.settle();
    bench.smfs[0] = Smf::new(0, 2);
    bench.associate(0);
    // The restarted SMF uses a sequence number again that still waits.
    let request = everyday(77);
    let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
    let token = bench.smfs[0].ask(bench.now, kind, Seid(0), |out| request.encode(out));
    bench.settle();
    bench.release_orders();
    bench.pass(100 * MILLI);
    let (_, seid, body) = bench.smfs[0].answers.remove(&token).unwrap();
    assert_eq!(seid, Seid(77));
    let session = Established::new(&SessionEstablishmentResponse::decode(&body).unwrap());
    assert_eq!(bench.n4.store().counts().sessions, 1);
    bench.delete(0, session.seid);
    bench.assert_empty();
}

#[test]
fn leaving_asks_smfs_to_release() {
    let mut bench = Bench::new(2);
    let session = bench.establish(1, &everyday(1));
    let now = bench.now;
    bench.n4.leave(now);
    bench.settle();
    // Association Update with a release request: the SMFs release.
    assert_eq!(bench.n4.node().peers().count(), 0);
    bench.pass(100 * MILLI);
    assert!(bench.n4.store().get(session.seid).is_none());
    bench.assert_empty();
}

/// xorshift64: the test's own chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// Datagrams under way between the SMFs and the UPF: lost, doubled, late and out of order.
#[derive(Default)]
struct Network {
    under_way: BTreeMap<(u64, u64), (Option<usize>, usize, Vec<u8>)>,
    /// How often a datagram was lost.
    lost: BTreeMap<(Option<usize>, usize, Vec<u8>), u32>,
    sent: u64,
}

impl Network {
    /// One of five is lost, one of five comes twice; each takes up to 200 ms. None is lost more than three times: with ten repetitions
    /// every request is answered, whatever chance says.
    fn send(&mut self, now: Nanos, chance: &mut Chance, to: Option<usize>, smf: usize, datagram: &[u8]) {
        let copies = match chance.below(5) {
            0 => {
                let lost = self.lost.entry((to, smf, datagram.to_vec())).or_default();
                *lost += 1;
                usize::from(*lost > 3)
            }
            1 => 2,
            _ => 1,
        };
        for _ in 0..copies {
            self.sent += 1;
            let arrival = now.0 + (1 + chance.below(200)) * MILLI;
            self.under_way.insert((arrival, self.sent), (to, smf, datagram.to_vec()));
        }
    }

    fn run(&mut self, bench: &mut Bench, chance: &mut Chance, nanos: u64) {
        let end = bench.now.plus(nanos);
        while bench.now < end {
            bench.now = bench.now.plus(10 * MILLI);
            bench.tick();
            while let Some(entry) = self.under_way.first_entry()
                && entry.key().0 <= bench.now.0
            {
                let (to, smf, datagram) = entry.remove();
                match to {
                    None => bench.n4.receive(bench.now, bench.smfs[smf].address, &datagram),
                    Some(smf) => {
                        let now = bench.now;
                        bench.smfs[smf].take(now, &datagram);
                    }
                }
            }
            // The worker takes its time as well.
            if chance.below(2) == 0 {
                while bench.step() {}
            }
            for (to, datagram) in bench.datagrams() {
                let smf = bench.smfs.iter().position(|smf| smf.address == to).unwrap();
                self.send(bench.now, chance, Some(smf), smf, &datagram);
            }
            for smf in 0..bench.smfs.len() {
                for datagram in bench.smfs[smf].take_datagrams() {
                    self.send(bench.now, chance, None, smf, &datagram);
                }
            }
        }
    }
}

fn decoded<T>(bench: &mut Bench, smf: usize, decode: impl Fn(&[u8]) -> T) -> Vec<T> {
    let answers = std::mem::take(&mut bench.smfs[smf].answers);
    answers.into_values().map(|(_, _, body)| decode(&body)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn both_sides_agree_in_the_end_over_a_bad_network(seed in 1u64..) {
        let mut bench = Bench::new(2);
        let (mut chance, mut network) = (Chance(seed), Network::default());
        let each = 12;
        for cp in 1..=each {
            for smf in 0..2 {
                let request = measured(cp, vec![urr(1, ReportingTriggers::VOLTH, threshold(1_000))]);
                let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
                bench.smfs[smf].ask(bench.now, kind, Seid(0), |out| request.encode(out));
            }
            network.run(&mut bench, &mut chance, 30 * MILLI);
        }
        network.run(&mut bench, &mut chance, 20 * SECOND);
        prop_assert_eq!(bench.n4.counters().established, 2 * each);
        prop_assert_eq!(bench.worker.sessions(), 2 * each as usize);
        let mut sessions: Vec<(usize, Established)> = Vec::new();
        for smf in 0..2 {
            let answers = decoded(&mut bench, smf, |body| SessionEstablishmentResponse::decode(body).unwrap());
            prop_assert_eq!(answers.len() as u64, each);
            sessions.extend(answers.iter().map(|answer| (smf, Established::new(answer))));
        }
        // Packets flow while sessions change.
        let mut sent = 0;
        for round in 0..3 {
            for (smf, session) in &sessions {
                let change = if round == 1 { deactivate() } else { activate(GNB, round + 100) };
                let change = SessionModificationRequest { query_urrs: vec![UrrId(1)], ..change };
                let kind = MessageType::SESSION_MODIFICATION_REQUEST;
                bench.smfs[*smf].ask(bench.now, kind, session.seid, |out| change.encode(out));
                bench.worker_uplink(session, 400);
                sent += 400;
            }
            network.run(&mut bench, &mut chance, 20 * SECOND);
        }
        prop_assert_eq!(bench.n4.counters().modified, 3 * sessions.len() as u64);
        let mut told = 0;
        let bytes = |reports: &[UsageReport]| reports.iter().map(|r| r.volume.unwrap().total.unwrap()).sum::<u64>();
        for smf in 0..2 {
            for answer in decoded(&mut bench, smf, |body| SessionModificationResponse::decode(body).unwrap()) {
                prop_assert_eq!(answer.cause, Cause::ACCEPTED);
                told += bytes(&answer.usage_reports);
            }
        }
        for (smf, session) in &sessions {
            bench.worker_uplink(session, 999);
            bench.worker_uplink(session, 999);
            sent += 2 * 999;
            bench.smfs[*smf].ask(bench.now, MessageType::SESSION_DELETION_REQUEST, session.seid, |_| {});
            network.run(&mut bench, &mut chance, 10 * MILLI);
        }
        network.run(&mut bench, &mut chance, 20 * SECOND);
        for smf in 0..2 {
            for answer in decoded(&mut bench, smf, |body| SessionDeletionResponse::decode(body).unwrap()) {
                prop_assert_eq!(answer.cause, Cause::ACCEPTED);
                told += bytes(&answer.usage_reports);
            }
            for report in bench.smfs[smf].take_reports() {
                told += bytes(&report.usage_reports);
            }
        }
        prop_assert_eq!(bench.n4.counters().deleted, sessions.len() as u64);
        // Reports are given up after three losses; all others arrived, each octet once.
        if bench.n4.counters().reports_unanswered == 0 {
            prop_assert_eq!(told, sent);
        } else {
            prop_assert!(told <= sent);
        }
        prop_assert_eq!((bench.n4.counters().refused, bench.n4.counters().malformed), (0, 0));
        bench.assert_empty();
    }
}
