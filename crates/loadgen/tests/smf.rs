//! The SMF model against a UPF of a hundred lines that speaks PFCP over loopback.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use loadgen::facts::SessionMix;
use loadgen::habits::{Habit, Shape};
use loadgen::smf::{Operation, Smf, SmfConfig, SmfError};
use packet::{Qfi, Teid};
use pfcp::message::Message;
use pfcp::{Header, Ies, MessageType, PdrId, Seid, SequenceNumber, encode_ie, encode_message, ie_type as ie};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const N3: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// What the UPF does wrong, and what it says unasked.
#[derive(Clone, Copy, Default)]
struct Script {
    /// Ignore the first copy of each session request.
    forgetful: bool,
    /// Refuse every third establishment: rule creation failure, FAR 2, IE 108.
    picky: bool,
    /// After each establishment: a heartbeat request and a report of 1,000 bytes, sent twice.
    talkative: bool,
    /// Announce downlink data after `Idle`.
    paging: bool,
    /// Another Recovery Time Stamp in each heartbeat response than at association.
    restarted: bool,
    /// Answer nothing at all.
    dead: bool,
}

/// One session as the UPF saw it: the whole bodies of its requests.
#[derive(Default, Clone)]
struct Seen {
    bodies: Vec<(MessageType, Vec<u8>, Header)>,
}

struct FakeUpf {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<HashMap<u64, Seen>>,
}

impl FakeUpf {
    fn start(script: Script) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let address = socket.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || serve(&socket, script, &flag));
        Self { address, stop, thread }
    }

    /// By UP SEID.
    fn finish(self) -> HashMap<u64, Seen> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn message(header: &Header, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode_message(header, &mut out, body).unwrap();
    out
}

fn put(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    encode_ie(out, kind, |out| out.extend_from_slice(value));
}

fn report(cp_seid: Seid, sequence: u32, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    message(&Header::session(MessageType::SESSION_REPORT_REQUEST, cp_seid, SequenceNumber(sequence)), body)
}

/// No session's number.
const HEARTBEATS: u64 = 0;

fn serve(socket: &UdpSocket, script: Script, stop: &AtomicBool) -> HashMap<u64, Seen> {
    let mut sessions: HashMap<u64, Seen> = HashMap::new();
    let mut cp_seids: HashMap<u64, Seid> = HashMap::new();
    let mut ignored = std::collections::HashSet::new();
    let mut buffer = [0; 4096];
    let (mut next, mut sequence) = (1_u64, 1_000_u32);
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, peer)) = socket.recv_from(&mut buffer) else { continue };
        if script.dead {
            continue;
        }
        let (header, body, _) = Header::decode(&buffer[..length]).unwrap();
        let kind = header.message_type;
        if !kind.is_request() {
            continue;
        }
        if script.forgetful && header.seid.is_some() && ignored.insert(header.sequence) {
            continue;
        }
        let response = kind.response().unwrap();
        if kind == MessageType::HEARTBEAT_REQUEST {
            sessions.entry(HEARTBEATS).or_default().bodies.push((kind, body.to_vec(), header));
        }
        if header.seid.is_none() {
            let reply = message(&Header::node(response, header.sequence), |out| {
                put(out, ie::NODE_ID, &[0, 127, 0, 0, 1]);
                put(out, ie::CAUSE, &[1]);
                let restarted = script.restarted && kind == MessageType::HEARTBEAT_REQUEST;
                put(out, ie::RECOVERY_TIME_STAMP, &[1, 2, 3, if restarted { 5 } else { 4 }]);
                // FTUP; UEIP.
                put(out, ie::UP_FUNCTION_FEATURES, &[0x10, 0, 4]);
            });
            socket.send_to(&reply, peer).unwrap();
            continue;
        }
        let up_seid = if kind == MessageType::SESSION_ESTABLISHMENT_REQUEST {
            let up_seid = next;
            next += 1;
            let fseid = Ies::new(body).map(Result::unwrap).find(|e| e.kind == ie::F_SEID).unwrap();
            cp_seids.insert(up_seid, Seid(u64::from_be_bytes(fseid.value[1..9].try_into().unwrap())));
            up_seid
        } else {
            header.seid.unwrap().0
        };
        let cp_seid = cp_seids[&up_seid];
        sessions.entry(up_seid).or_default().bodies.push((kind, body.to_vec(), header));
        let establishing = kind == MessageType::SESSION_ESTABLISHMENT_REQUEST;
        let refused = script.picky && establishing && up_seid % 3 == 0;
        let reply = message(&Header::session(response, cp_seid, header.sequence), |out| {
            put(out, ie::NODE_ID, &[0, 127, 0, 0, 1]);
            if refused {
                put(out, ie::CAUSE, &[73]);
                put(out, ie::OFFENDING_IE, &[0, 108]);
                put(out, ie::FAILED_RULE_ID, &[1, 0, 0, 0, 2]);
                return;
            }
            put(out, ie::CAUSE, &[1]);
            if establishing {
                let mut fseid = vec![2];
                fseid.extend(up_seid.to_be_bytes());
                fseid.extend([127, 0, 0, 1]);
                put(out, ie::F_SEID, &fseid);
            }
            create_tunnels(out, body, up_seid);
            if kind == MessageType::SESSION_DELETION_REQUEST {
                encode_ie(out, ie::USAGE_REPORT_DELETION, usage);
            }
        });
        socket.send_to(&reply, peer).unwrap();
        if script.talkative && establishing {
            sequence += 2;
            let heartbeat = Header::node(MessageType::HEARTBEAT_REQUEST, SequenceNumber(sequence - 1));
            socket
                .send_to(&message(&heartbeat, |out| put(out, ie::RECOVERY_TIME_STAMP, &[1, 2, 3, 4])), peer)
                .unwrap();
            let report = report(cp_seid, sequence, |out| {
                put(out, ie::REPORT_TYPE, &[2]);
                encode_ie(out, ie::USAGE_REPORT_REPORT, usage);
            });
            socket.send_to(&report, peer).unwrap();
            socket.send_to(&report, peer).unwrap();
        }
        let idle = body.windows(6).any(|window| window == [0, 44, 0, 2, 12, 0]);
        if script.paging && kind == MessageType::SESSION_MODIFICATION_REQUEST && idle {
            sequence += 1;
            let report = report(cp_seid, sequence, |out| {
                put(out, ie::REPORT_TYPE, &[1]);
                encode_ie(out, ie::DOWNLINK_DATA_REPORT, |out| put(out, ie::PDR_ID, &[0, 2]));
            });
            socket.send_to(&report, peer).unwrap();
        }
    }
    sessions
}

fn usage(out: &mut Vec<u8>) {
    put(out, ie::URR_ID, &[0, 0, 0, 1]);
    put(out, ie::UR_SEQN, &[0, 0, 0, 0]);
    let mut volume = vec![7];
    for bytes in [1000_u64, 400, 600] {
        volume.extend(bytes.to_be_bytes());
    }
    put(out, ie::VOLUME_MEASUREMENT, &volume);
}

/// Created PDR for each Create PDR that asks for a choice.
fn create_tunnels(out: &mut Vec<u8>, body: &[u8], up_seid: u64) {
    for pdr in Ies::new(body).map(Result::unwrap).filter(|e| e.kind == ie::CREATE_PDR) {
        let parts: Vec<_> = pdr.group().map(Result::unwrap).collect();
        let id = parts.iter().find(|e| e.kind == ie::PDR_ID).unwrap().value;
        let pdi: Vec<_> =
            parts.iter().find(|e| e.kind == ie::PDI).unwrap().group().map(Result::unwrap).collect();
        let choose = pdi.iter().any(|e| e.kind == ie::F_TEID && e.value[0] & 4 != 0);
        let choose_ue = pdi.iter().any(|e| e.kind == ie::UE_IP_ADDRESS && e.value[0] & 0x10 != 0);
        if !choose && !choose_ue {
            continue;
        }
        encode_ie(out, ie::CREATED_PDR, |out| {
            put(out, ie::PDR_ID, id);
            if choose {
                let mut fteid = vec![1];
                fteid.extend((0x0100_0000 | (up_seid as u32) << 8 | u32::from(id[1])).to_be_bytes());
                fteid.extend(N3.octets());
                put(out, ie::F_TEID, &fteid);
            }
            if choose_ue {
                let [.., high, low] = up_seid.to_be_bytes();
                put(out, ie::UE_IP_ADDRESS, &[2, 100, 64, high, low]);
            }
        });
    }
}

fn config(upf: SocketAddr, habit: Habit) -> SmfConfig {
    SmfConfig {
        habit,
        mix: SessionMix::BALANCED,
        gnbs: vec!["192.0.2.10".parse().unwrap(), "192.0.2.11".parse().unwrap()],
        t1: Duration::from_millis(100),
        qfis: vec![Qfi::from_wire(1), Qfi::from_wire(9)],
        ..SmfConfig::new("127.0.0.1:0".parse().unwrap(), upf)
    }
}

#[test]
fn every_habit_lives_a_whole_life() {
    for habit in Habit::ALL {
        let upf = FakeUpf::start(Script::default());
        let mut smf = Smf::bind(config(upf.address, habit)).unwrap();
        let association = smf.associate().unwrap();
        assert_eq!(association.recovery, Some(0x0102_0304));
        let established = smf.establish(200).unwrap();
        assert!(established.is_clean() && established.requests == 200, "{habit:?}: {established:?}");
        assert!(established.requests_per_second > 0.0 && established.latency.packets == 200);
        let before = smf.facts();
        assert_eq!(before.len(), 200);
        for (index, facts) in (0..).zip(&before) {
            assert_eq!(facts.upf_n3, IpAddr::V4(N3), "{habit:?}");
            assert!(facts.up_seid != Seid(0) && facts.ul_teid != Teid(0), "{habit:?} {facts:?}");
            let kind = habit.pdu_type(SessionMix::BALANCED.pdu_type(index));
            assert_eq!(facts.ue_ipv4.is_some(), kind.has(loadgen::imix::Family::V4));
            assert_eq!(facts.ue_ipv6.is_some(), kind.has(loadgen::imix::Family::V6));
            if habit == Habit::Omec {
                assert_eq!(facts.ue_ipv4.unwrap().octets()[..2], [100, 64], "chosen by the UPF");
            }
        }
        for operation in [Operation::Activate, Operation::Idle, Operation::Activate, Operation::Query] {
            let report = smf.run(operation, smf.established()).unwrap();
            assert!(report.is_clean(), "{habit:?}: {report:?}");
        }
        assert!(smf.run(Operation::Handover, 0..200).unwrap().is_clean());
        let after = smf.session(0).unwrap();
        assert_eq!(after.gnb, "192.0.2.11".parse::<IpAddr>().unwrap());
        assert_ne!(after.dl_teid, before[0].dl_teid);
        if habit == Habit::Oai {
            assert_ne!(after.ul_teid, before[0].ul_teid, "its uplink rule was made anew");
        }
        assert!(smf.delete_all().unwrap().is_clean());
        assert!(smf.facts().is_empty() && smf.established().is_empty());
        assert_eq!(smf.run(Operation::Query, 0..200).unwrap().requests, 0, "nothing is left to query");
        smf.release().unwrap();
        let counters = *smf.counters();
        assert_eq!(
            (counters.malformed, counters.wrong_seid, counters.missing_node_id, counters.stray_answers),
            (0, 0, 0, 0)
        );
        assert_eq!(smf.usage().len(), 200, "final usage of each session");
        let seen = upf.finish();
        assert_eq!(seen.len(), 200);
        assert!(seen.values().all(|session| session.bodies.len() == 7));
        for (kind, body, _) in seen.values().flat_map(|session| &session.bodies) {
            let decoded = Message::decode_body(*kind, body).expect("a known message");
            assert!(decoded.is_ok(), "{habit:?}: {kind:?} is not taken by the codec: {decoded:?}");
        }
    }
}

/// Preparing sessions takes a while too: who has had enough by then isn't kept waiting until all are.
#[test]
fn nothing_is_asked_for_if_it_is_enough_before_the_first() {
    let upf = FakeUpf::start(Script::default());
    let mut smf = Smf::bind(config(upf.address, Habit::Plain)).unwrap();
    smf.associate().unwrap();
    let mut asked = Vec::new();
    let report = smf.establish_while(10_000, &mut |requests| {
        asked.push(requests);
        if asked.len() < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let report = report.unwrap();
    // Before the first, and after some thousands; what was prepared by then is asked for as far as the window goes.
    assert_eq!(asked[..2], [0, 0]);
    assert!(report.requests < 4_096 && report.is_clean(), "{report:?}");
    upf.finish();
}

#[test]
fn lost_requests_are_repeated_and_a_dead_upf_is_given_up() {
    let upf = FakeUpf::start(Script { forgetful: true, ..Script::default() });
    let mut smf = Smf::bind(SmfConfig { window: 8, ..config(upf.address, Habit::Plain) }).unwrap();
    smf.associate().unwrap();
    let report = smf.establish(20).unwrap();
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.repeated, 20);
    assert_eq!(upf.finish().len(), 20);

    let dead = FakeUpf::start(Script { dead: true, ..Script::default() });
    let fast = SmfConfig { t1: Duration::from_millis(10), n1: 2, ..config(dead.address, Habit::Plain) };
    let mut smf = Smf::bind(fast).unwrap();
    let error = smf.associate().unwrap_err();
    assert!(matches!(error, SmfError::NoAnswer { tries: 3, .. }), "{error}");
    assert!(error.to_string().contains("did not answer the association set-up (3 tries)"), "{error}");
    let report = smf.establish(5).unwrap();
    assert_eq!((report.requests, report.accepted, report.unanswered, report.repeated), (5, 0, 5, 10));
    dead.finish();
}

#[test]
fn refusals_are_told_with_cause_ie_and_rule() {
    let upf = FakeUpf::start(Script { picky: true, ..Script::default() });
    let mut smf = Smf::bind(config(upf.address, Habit::Plain)).unwrap();
    let report = smf.establish(30).unwrap();
    assert_eq!((report.accepted, report.refused), (20, 10));
    assert_eq!(report.refusals[0].1, "Rule creation/modification Failure (73), IE 108 (FAR ID), FAR 2");
    assert_eq!(smf.facts().len(), 20);
    assert_eq!(smf.session(report.refusals[0].0), None);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["operation"], "establish");
    upf.finish();
}

#[test]
fn the_upf_s_own_requests_are_answered_once_counted_once() {
    let upf = FakeUpf::start(Script { talkative: true, paging: true, ..Script::default() });
    let mut smf = Smf::bind(SmfConfig { reactivate: true, ..config(upf.address, Habit::Plain) }).unwrap();
    smf.associate().unwrap();
    assert!(smf.establish(50).unwrap().is_clean());
    assert!(smf.run(Operation::Idle, 0..3).unwrap().is_clean());
    smf.serve(Duration::from_millis(200)).unwrap();
    let counters = *smf.counters();
    assert_eq!(
        (counters.heartbeats, counters.usage_reports, counters.duplicates),
        (50, 50, 50),
        "{counters:?}"
    );
    assert_eq!(
        (counters.downlink_data, counters.reports, counters.unknown_sessions),
        (3, 53, 0),
        "{counters:?}"
    );
    let totals: u64 = smf.usage().values().map(|totals| totals.total_bytes).sum();
    assert_eq!(totals, 50_000);
    assert_eq!(smf.heartbeat().unwrap(), Some(0x0102_0304));
    let seen = upf.finish();
    let activated = seen.values().filter(|session| session.bodies.len() == 3).count();
    assert_eq!(activated, 3, "sessions with waiting data were activated");
}

/// The IEs of a kind in a body, going down into groups that PFCP nests.
fn all<'a>(body: &'a [u8], path: &[u16]) -> Vec<&'a [u8]> {
    let [kind, rest @ ..] = path else { return vec![body] };
    Ies::new(body)
        .map(Result::unwrap)
        .filter(|element| element.kind == *kind)
        .flat_map(|element| all(element.value, rest))
        .collect()
}

fn bodies_of(habit: Habit, operations: &[Operation]) -> Vec<(Vec<u8>, Header)> {
    let upf = FakeUpf::start(Script::default());
    let mut smf = Smf::bind(config(upf.address, habit)).unwrap();
    smf.associate().unwrap();
    // Session 2 is IPv6 where the SMF knows that.
    assert!(smf.establish(3).unwrap().is_clean());
    for &operation in operations {
        assert!(smf.run(operation, [2]).unwrap().is_clean());
    }
    let up_seid = smf.session(2).unwrap().up_seid.0;
    let mut seen = upf.finish();
    seen.remove(&up_seid).unwrap().bodies.into_iter().map(|(_, body, header)| (body, header)).collect()
}

#[test]
fn open5gs_looks_like_open5gs() {
    let bodies = bodies_of(Habit::Open5gs, &[Operation::Activate, Operation::Idle]);
    let (establishment, activation, idle) = (&bodies[0].0, &bodies[1].0, &bodies[2].0);
    assert_eq!(all(establishment, &[ie::CREATE_PDR]).len(), 4, "two for the CP function");
    let tunnels = all(establishment, &[ie::CREATE_PDR, ie::PDI, ie::F_TEID]);
    assert_eq!(tunnels, [&[0x0f, 5][..], &[0x07], &[0x0f, 5]]);
    assert_eq!(all(establishment, &[ie::CREATE_PDR, ie::OUTER_HEADER_REMOVAL]), [[6], [6], [6]]);
    assert_eq!(all(establishment, &[ie::CREATE_PDR, ie::PDI, ie::NETWORK_INSTANCE])[0], b"\x08internet");
    assert_eq!(all(establishment, &[ie::CREATE_PDR, ie::PDI, ie::UE_IP_ADDRESS]).len(), 1);
    let far = all(establishment, &[ie::CREATE_FAR])[0];
    assert_eq!(all(far, &[ie::APPLY_ACTION]), [[12, 0]]);
    assert!(all(far, &[ie::FORWARDING_PARAMETERS]).is_empty());
    assert_eq!(all(establishment, &[ie::CREATE_PDR, ie::URR_ID]).len(), 1);
    assert_eq!(all(activation, &[ie::UPDATE_FAR, ie::APPLY_ACTION]), [[2, 0]]);
    let tunnel = [&[1, 0][..], &0x8000_0002_u32.to_be_bytes(), &[192, 0, 2, 10]].concat();
    let path = [ie::UPDATE_FAR, ie::UPDATE_FORWARDING_PARAMETERS, ie::OUTER_HEADER_CREATION];
    assert_eq!(all(activation, &path), [&tunnel[..]]);
    assert!(all(idle, &[ie::UPDATE_FAR, ie::UPDATE_FORWARDING_PARAMETERS]).is_empty());
    assert_eq!(all(idle, &[ie::UPDATE_FAR, ie::BAR_ID]), [[1]]);
}

#[test]
fn free5gc_looks_like_free5gc() {
    let bodies = bodies_of(
        Habit::Free5gc,
        &[Operation::Activate, Operation::Handover, Operation::Idle, Operation::Activate],
    );
    let establishment = &bodies[0].0;
    assert_eq!(all(establishment, &[ie::CREATE_PDR, ie::PDR_ID]), [[0, 5], [0, 6]], "unique per UPF");
    assert_eq!(all(establishment, &[ie::CREATE_PDR, ie::QER_ID]).len(), 4);
    assert_eq!(all(establishment, &[ie::CREATE_PDR, ie::PDI, ie::F_TEID]), [[1, 0, 0, 0, 3, 192, 0, 2, 1]]);
    assert_eq!(
        all(establishment, &[ie::CREATE_FAR, ie::APPLY_ACTION]),
        [[2, 0], [2, 0]],
        "FORW without a tunnel"
    );
    assert!(
        all(establishment, &[ie::CREATE_FAR, ie::FORWARDING_PARAMETERS, ie::OUTER_HEADER_CREATION])
            .is_empty()
    );
    assert_eq!(all(establishment, &[ie::PDN_TYPE]), [[1]]);
    let flags = |body: &[u8]| {
        let path = [ie::UPDATE_FAR, ie::UPDATE_FORWARDING_PARAMETERS, ie::PFCPSMREQ_FLAGS];
        all(body, &path)[0].to_vec()
    };
    assert_eq!(flags(&bodies[1].0), [0], "there even when zero");
    for later in &bodies[2..] {
        assert_eq!(flags(&later.0), [2], "SNDEM is never reset");
        assert_eq!(all(&later.0, &[ie::F_SEID]).len(), 1);
    }
    assert_eq!(all(&bodies[3].0, &[ie::UPDATE_FAR, ie::APPLY_ACTION]), [[12, 0]]);
}

#[test]
fn omec_oai_and_pfcpsim_have_their_oddities() {
    let omec = bodies_of(Habit::Omec, &[]);
    let (establishment, header) = &omec[0];
    assert_eq!(header.priority, Some(0));
    assert_eq!(all(establishment, &[ie::CREATE_PDR, ie::PDI, ie::F_TEID]), [[4]]);
    assert_eq!(all(establishment, &[ie::CREATE_PDR, ie::PDI, ie::UE_IP_ADDRESS]), [[0x10], [0x10]]);
    assert_eq!(all(establishment, &[ie::CREATE_PDR, ie::PDI, ie::NETWORK_INSTANCE]), [&b"internet"[..], b""]);
    assert_eq!(all(establishment, &[ie::CREATE_FAR, ie::APPLY_ACTION]), [[2, 0], [1, 0]]);
    assert!(all(establishment, &[ie::CREATE_URR]).is_empty());

    let oai = bodies_of(Habit::Oai, &[Operation::Activate, Operation::Idle, Operation::Activate]);
    assert_eq!(oai[0].1.seid, Some(Seid(3)), "its own SEID in the establishment's header");
    assert_eq!(all(&oai[0].0, &[ie::CREATE_PDR]).len(), 1);
    assert_eq!(all(&oai[0].0, &[ie::CREATE_PDR, ie::PDI, ie::F_TEID]), [[0x0d, 42]]);
    assert_eq!(all(&oai[1].0, &[ie::CREATE_PDR, ie::PDR_ID]), [[0, 2]]);
    assert_eq!(all(&oai[2].0, &[ie::REMOVE_PDR, ie::PDR_ID]), [[0, 1], [0, 2]]);
    assert_eq!(all(&oai[3].0, &[ie::CREATE_PDR, ie::PDR_ID]), [[0, 3], [0, 4]]);

    let pfcpsim = bodies_of(Habit::Pfcpsim, &[Operation::Activate]);
    assert_eq!(all(&pfcpsim[0].0, &[ie::CREATE_FAR, ie::APPLY_ACTION]), [[2], [1]]);
    let filters = all(&pfcpsim[0].0, &[ie::CREATE_PDR, ie::PDI, ie::SDF_FILTER]);
    assert!(filters.iter().all(|filter| filter.ends_with(b"permit out ip from any to assigned")));
    let header = [ie::CREATE_FAR, ie::FORWARDING_PARAMETERS, ie::OUTER_HEADER_CREATION];
    assert_eq!(all(&pfcpsim[0].0, &header), [[1, 0, 0, 0, 0, 0, 0, 0, 0, 0]], "TEID 0 and 0.0.0.0");
    assert_eq!(all(&pfcpsim[0].0, &[ie::CREATE_QER, ie::QER_ID]), [[0, 0, 0, 0], [0, 0, 0, 3]]);
    assert_eq!(all(&pfcpsim[0].0, &[ie::CREATE_QER, ie::QFI])[0], [0]);
}

/// pfcpsim takes the time of each heartbeat for that of its start.
#[test]
fn a_restless_smf_is_another_in_each_heartbeat() {
    for restless in [false, true] {
        let upf = FakeUpf::start(Script::default());
        let mut smf = Smf::bind(SmfConfig { restless, ..config(upf.address, Habit::Pfcpsim) }).unwrap();
        smf.associate().unwrap();
        for _ in 0..3 {
            smf.heartbeat().unwrap();
        }
        let seen = upf.finish();
        let stamps: Vec<_> = seen[&HEARTBEATS]
            .bodies
            .iter()
            .map(|(_, body, _)| all(body, &[ie::RECOVERY_TIME_STAMP]))
            .collect();
        assert!(stamps.is_sorted() && stamps.len() == 3);
        assert_eq!((stamps[0] != stamps[1], stamps[1] != stamps[2]), (restless, restless));
    }
}

#[test]
fn plain_shapes_follow_their_description() {
    let upf = FakeUpf::start(Script::default());
    let shape = Shape {
        filtered_pairs: 3,
        mbr_kbps: Some((1000, 2000)),
        gnb_at_once: true,
        period_s: Some(60),
        ..Shape::default()
    };
    let mut smf = Smf::bind(SmfConfig { shape, ..config(upf.address, Habit::Plain) }).unwrap();
    assert!(smf.establish(1).unwrap().is_clean());
    let facts = smf.session(0).unwrap().clone();
    let seen = upf.finish();
    let (_, body, header) = &seen[&facts.up_seid.0].bodies[0];
    assert_eq!(header.seid, Some(Seid(0)));
    let ids: Vec<_> =
        all(body, &[ie::CREATE_PDR, ie::PDR_ID]).iter().map(|id| PdrId(u16::from(id[1]))).collect();
    assert_eq!(ids, [3, 4, 5, 6, 7, 8, 1, 2].map(PdrId));
    assert_eq!(all(body, &[ie::CREATE_QER, ie::MBR]), [[0, 0, 0, 3, 0xe8, 0, 0, 0, 7, 0xd0]]);
    let tunnels = all(body, &[ie::CREATE_FAR, ie::FORWARDING_PARAMETERS, ie::OUTER_HEADER_CREATION]);
    assert_eq!(tunnels.len(), 1);
    assert_eq!(all(body, &[ie::CREATE_URR, ie::REPORTING_TRIGGERS]), [[3, 0, 0]]);
}

/// Applications come first, each with rules of its own.
#[test]
fn plain_sessions_ask_for_applications() {
    let upf = FakeUpf::start(Script::default());
    let rules = ["youtube=redirect:http://dn/", "netflix=drop", "spotify=count"];
    let shape = Shape { applications: rules.map(|it| it.parse().unwrap()).to_vec(), ..Shape::default() };
    let mut smf = Smf::bind(SmfConfig { shape, ..config(upf.address, Habit::Plain) }).unwrap();
    assert!(smf.establish(1).unwrap().is_clean());
    let facts = smf.session(0).unwrap().clone();
    let seen = upf.finish();
    let (_, body, _) = &seen[&facts.up_seid.0].bodies[0];
    let request = pfcp::message::SessionEstablishmentRequest::decode(body).unwrap();
    let far = |id| request.create_fars.iter().find(|far| Some(far.id) == id).unwrap();
    for (pair, application) in request.create_pdrs.chunks(2).zip(["youtube", "netflix", "spotify"]) {
        for pdr in pair {
            assert_eq!(pdr.pdi.application_id, Some(application.as_bytes()));
            assert!(pdr.precedence < 65_535 && pdr.urrs.len() == 2);
        }
        let [up, down] = [&pair[0], &pair[1]].map(|pdr| far(pdr.far));
        let url = up.forwarding.as_ref().and_then(|it| it.redirect.as_ref());
        assert_eq!(url.is_some(), application == "youtube");
        assert_eq!(up.id == down.id, application == "netflix");
    }
    assert_eq!(request.create_pdrs.len(), 8);
    assert_eq!(request.create_pdrs[6].pdi.application_id, None);
}

#[test]
fn a_restarted_upf_is_noticed() {
    let upf = FakeUpf::start(Script { restarted: true, ..Script::default() });
    let heartbeat_every = Some(Duration::from_millis(30));
    let mut smf = Smf::bind(SmfConfig { heartbeat_every, ..config(upf.address, Habit::Plain) }).unwrap();
    smf.associate().unwrap();
    assert!(smf.establish(10).unwrap().is_clean());
    smf.serve(Duration::from_millis(120)).unwrap();
    assert_eq!(smf.counters().restarts, 1);
    assert!(smf.established().is_empty());
    assert!(smf.establish(1).unwrap().is_clean());
    smf.serve(Duration::from_millis(60)).unwrap();
    assert_eq!((smf.counters().restarts, smf.established().len()), (1, 1), "it restarted once");
    upf.finish();
}

#[test]
fn rates_are_measured_with_sessions_standing() {
    let upf = FakeUpf::start(Script::default());
    let mut smf = Smf::bind(config(upf.address, Habit::Plain)).unwrap();
    for round in 0..2 {
        let figures = smf.measure(100, 300).unwrap();
        assert_eq!((figures.kept, figures.fill.requests), (100, if round == 0 { 100 } else { 0 }));
        for report in [&figures.establish, &figures.modify, &figures.delete] {
            assert!(
                report.is_clean() && report.requests == 300 && report.requests_per_second > 0.0,
                "{report:?}"
            );
        }
        assert_eq!(smf.established().len(), 100);
    }
    upf.finish();
}

#[test]
fn impossible_configurations_are_refused() {
    let upf: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let base = config(upf, Habit::Plain);
    assert!(matches!(Smf::bind(SmfConfig { gnbs: vec![], ..base.clone() }), Err(SmfError::NothingToServe)));
    let pools = loadgen::facts::UePools { ipv4: "10.0.0.0/30".parse().unwrap(), ..Default::default() };
    let mut smf = Smf::bind(SmfConfig { pools, mix: SessionMix::IPV4, ..base }).unwrap();
    assert!(matches!(smf.establish(3), Err(SmfError::PoolExhausted(2))));
}
