//! N4 from a request to what the worker does: sessions come, change and go, and refusals leave everything as it was.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::bench::*;
use datapath::Reason;
use packet::gtpu::MessageType as GtpuType;
use packet::{EthernetView, GtpuView, Ipv4View, PacketBuilder, Teid, UdpView};
use pfcp::ie::*;
use pfcp::message::*;
use pfcp::message_type::MessageType;
use pfcp::{Cause, FarId, PdrId, QerId, RuleId, Seid, UrrId, ie_type};
use std::net::Ipv6Addr;

#[test]
fn an_smf_associates_and_the_upf_says_what_it_can() {
    let mut bench = Bench::unassociated(1, Limits::default());
    // Without an association nothing is to be had.
    let request = everyday(1);
    let mut bytes = Vec::new();
    let header = pfcp::Header {
        seid: Some(Seid(0)),
        ..pfcp::Header::node(MessageType::SESSION_ESTABLISHMENT_REQUEST, pfcp::SequenceNumber(99))
    };
    pfcp::encode_message(&header, &mut bytes, |out| request.encode(out)).unwrap();
    bench.n4.receive(bench.now, bench.smfs[0].address, &bytes);
    let (_, answer) = bench.datagrams().pop().unwrap();
    let (_, body, _) = pfcp::Header::decode(&answer).unwrap();
    assert_eq!(SessionEstablishmentResponse::decode(body).unwrap().cause, Cause::NO_ASSOCIATION);
    bench.associate(0);
    let peer = bench.n4.node().peers().next().unwrap();
    assert_eq!(
        (peer.node_id.clone(), peer.address),
        (NodeId::Ip(bench.smfs[0].address.ip()), bench.smfs[0].address)
    );
    let upf = bench.smfs[0].node.peers().next().unwrap();
    assert_eq!(upf.node_id, NodeId::Fqdn("upf.test".into()));
    // The same request, now that there is one.
    bench.n4.receive(bench.now, bench.smfs[0].address, &bytes);
    bench.step();
    let (_, answer) = bench.datagrams().pop().unwrap();
    let (header, body, _) = pfcp::Header::decode(&answer).unwrap();
    let response = SessionEstablishmentResponse::decode(body).unwrap();
    assert_eq!((header.seid, response.cause), (Some(Seid(1)), Cause::ACCEPTED));
    assert_eq!(response.up_fseid.unwrap().ipv4, Some(UPF));
}

#[test]
fn features_are_offered_bit_for_bit() {
    let mut bench = Bench::unassociated(1, Limits::default());
    bench.smfs[0].associate(bench.now);
    let request = bench.smfs[0].take_datagrams().pop().unwrap();
    bench.n4.receive(bench.now, bench.smfs[0].address, &request);
    let output: Vec<Vec<u8>> = bench.n4.output().datagrams().map(|(_, answer)| answer.to_vec()).collect();
    // §8.2.25: DDND 5/2, FTUP 5/5; EMPU 6/1, FRRT 6/6; UEIP 7/3, MNOP 7/5, BUNDL 7/7; VTIME 8/3.
    let offered = [0x12, 0x21, 0x54, 0x04];
    let ie = output[0].windows(8).find(|window| window[..2] == [0, 43]).unwrap();
    assert_eq!((u16::from_be_bytes([ie[2], ie[3]]) >= 4, &ie[4..]), (true, &offered[..]));
}

/// IPv6D and IP6PL (§8.2.62), given and chosen: all links of a UE's /56 lead to it, and its neighbours' don't.
#[test]
fn a_delegated_prefix_is_a_ues_whole() {
    let mut bench = Bench::new(1);
    let host: Ipv6Addr = "2001:db8:80::80".parse().unwrap();
    let of = |cp, ue_ip| {
        let mut request = everyday(cp);
        request.apn_dnn = Some(b"home");
        let down = request.create_pdrs.iter_mut().find(|pdr| pdr.id == PdrId(2)).unwrap();
        down.pdi.ue_ips = vec![ue_ip];
        request
    };
    let given = UeIpAddress {
        ipv6: Some("2001:db8:56:4200::".parse().unwrap()),
        ipv6_delegation_bits: Some(8),
        ..UeIpAddress::default()
    };
    let chosen = UeIpAddress { choose_ipv6: true, ..UeIpAddress::default() };
    let asked = UeIpAddress { ipv6_prefix_length: Some(56), ..chosen };
    for (cp, question, told) in
        [(1, given, None), (2, chosen, Some((Some(8), None))), (3, asked, Some((None, Some(56))))]
    {
        let response = bench.try_establish(0, &of(cp, question));
        assert_eq!(response.cause, Cause::ACCEPTED, "{response:?}");
        let answer = response.created_pdrs.iter().find_map(|pdr| pdr.ue_ips.first());
        assert_eq!(answer.map(|ip| (ip.ipv6_delegation_bits, ip.ipv6_prefix_length)), told);
        let prefix = answer.and_then(|ip| ip.ipv6).or(given.ipv6).unwrap().to_bits();
        for (link, arrives) in [(0, true), (1, true), (0xff, true), (0x100, false)] {
            let ue = Ipv6Addr::from_bits(prefix + (link << 64) + 7);
            bench.from_network(&PacketBuilder::new().ipv6(host, ue).udp(1, 2).build(&[7; 20]));
            assert_eq!(bench.sent(0).len(), usize::from(arrives), "{ue}");
        }
    }
    let whose = UeIpAddress { ipv6: Some("2001:db8:56:42ff::".parse().unwrap()), ..UeIpAddress::default() };
    assert!(!bench.try_establish(0, &of(4, whose)).cause.is_success(), "a part of somebody's");
}

/// BUNDL (§6.5): each message of a datagram is answered as if it had come alone.
#[test]
fn bundled_requests_are_each_answered() {
    let mut bench = Bench::new(1);
    let mut bundle = Vec::new();
    for cp in 1..=3 {
        let request = everyday(cp);
        let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
        let sequence = pfcp::SequenceNumber(100 + cp as u32);
        let header =
            pfcp::Header { seid: Some(Seid(0)), follow_on: cp < 3, ..pfcp::Header::node(kind, sequence) };
        pfcp::encode_message(&header, &mut bundle, |out| request.encode(out)).unwrap();
    }
    bench.n4.receive(bench.now, bench.smfs[0].address, &bundle);
    bench.step();
    let answers = bench.datagrams();
    let answered = answers.iter().map(|(_, answer)| {
        let (header, body, _) = pfcp::Header::decode(answer).unwrap();
        (header.sequence.0, header.seid, SessionEstablishmentResponse::decode(body).unwrap().cause)
    });
    let expected = [1, 2, 3].map(|cp| (100 + cp as u32, Some(Seid(cp)), Cause::ACCEPTED));
    assert_eq!(answered.collect::<Vec<_>>(), expected);
    assert_eq!(bench.worker.sessions(), 3);
}

/// FRRT: packets to and from networks behind the UE.
#[test]
fn framed_routes_are_forwarded_both_ways() {
    let mut bench = Bench::new(1);
    let mut request = everyday(1);
    request.create_pdrs[1].pdi.framed_routes = vec![b"192.168.7.0/24 0.0.0.0 1"];
    let session = bench.establish(0, &request);
    let behind = Established { ue: [192, 168, 7, 9].into(), ..session };
    bench.down(&behind, 100);
    let sent = bench.sent(0);
    assert_eq!(sent, [tunnelled(GNB, 1, &inner(HOST, behind.ue, 100, 63), &sent[0])]);
    bench.up(&behind, 100);
    assert_eq!(bench.sent(1), [plain(&inner(behind.ue, HOST, 100, 63))]);
    bench.up(&Established { ue: [192, 168, 8, 9].into(), ..session }, 100);
    assert_eq!(bench.dropped(Reason::SpoofedSource), 1);
    bench.delete(0, session.seid);
    bench.down(&behind, 100);
    bench.nothing_sent();
    bench.assert_empty();
}

#[test]
fn the_smf_is_told_when_the_rules_are_in_force_and_not_before() {
    let mut bench = Bench::new(1);
    bench.hold = true;
    let request = everyday(0xabc);
    let token = bench.smfs[0]
        .ask(bench.now, MessageType::SESSION_ESTABLISHMENT_REQUEST, Seid(0), |out| request.encode(out));
    bench.settle();
    assert!(bench.smfs[0].answers.is_empty());
    assert_eq!((bench.n4.pending(), bench.n4.store().counts().sessions, bench.worker.sessions()), (1, 1, 0));
    bench.release_orders();
    assert_eq!((bench.n4.pending(), bench.worker.sessions()), (0, 1));
    let (_, seid, body) = bench.smfs[0].answers.remove(&token).unwrap();
    assert_eq!(seid, Seid(0xabc));
    let session = Established::new(&SessionEstablishmentResponse::decode(&body).unwrap());
    assert_eq!(bench.n4.store().get(session.seid).unwrap().rules().ue_ipv4, Some(session.ue));
    assert_eq!(bench.delete(0, session.seid).0, Seid(0xabc));
    bench.assert_empty();
}

/// A packet in a tunnel that the SMF named may arrive at any worker.
#[test]
fn the_smf_is_told_when_all_workers_know_its_tunnel() {
    let mut bench = Bench::new(1);
    bench.others_are_slow = true;
    // A TEID of ours leads to its worker by itself: nobody is waited for.
    let ours = bench.establish(0, &everyday(1));
    let named = |cp, teid| {
        let mut request = everyday(cp);
        request.create_pdrs[0].pdi.local_fteid =
            Some(FTeid::Given { teid: Teid(teid), ipv4: Some(N3), ipv6: None });
        request
    };
    let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
    let request = named(2, 0x1234_5678);
    let token = bench.smfs[0].ask(bench.now, kind, Seid(0), |out| request.encode(out));
    bench.settle();
    assert_eq!((bench.worker.sessions(), bench.n4.pending()), (2, 1), "its own worker is done");
    assert!(bench.smfs[0].answers.is_empty());
    bench.others_know();
    let (_, _, body) = bench.smfs[0].answers.remove(&token).unwrap();
    let response = SessionEstablishmentResponse::decode(&body).unwrap();
    assert_eq!(response.cause, Cause::ACCEPTED);
    let session = response.up_fseid.unwrap().seid;
    // A modification that names another, whose own worker is the slow one this time.
    bench.hold = true;
    let fteid = FTeid::Given { teid: Teid(0x1234_5679), ipv4: Some(N3), ipv6: None };
    let pdi = Pdi { local_fteid: Some(fteid), ..request.create_pdrs[0].pdi.clone() };
    let create = CreatePdr { id: PdrId(3), pdi, ..request.create_pdrs[0].clone() };
    let change = SessionModificationRequest { create_pdrs: vec![create], ..modification() };
    let kind = MessageType::SESSION_MODIFICATION_REQUEST;
    let token = bench.smfs[0].ask(bench.now, kind, session, |out| change.encode(out));
    bench.settle();
    bench.others_are_slow = false;
    assert!(bench.smfs[0].answers.is_empty());
    bench.release_orders();
    let (_, _, body) = bench.smfs[0].answers.remove(&token).unwrap();
    assert_eq!(SessionModificationResponse::decode(&body).unwrap().cause, Cause::ACCEPTED);
    // What a deletion takes away needs no waiting.
    bench.others_are_slow = true;
    bench.delete(0, session);
    bench.delete(0, ours.seid);
    bench.assert_empty();
}

#[test]
fn packets_of_both_directions_are_forwarded_octet_for_octet() {
    let mut bench = Bench::new(1);
    for (cp, length) in [(1, 60), (2, 28), (3, 1400)] {
        let session = bench.establish(0, &everyday(cp));
        bench.up(&session, length);
        assert_eq!(bench.sent(1), [plain(&inner(session.ue, HOST, length, 63))]);
        bench.down(&session, length);
        let sent = bench.sent(0);
        assert_eq!(sent, [tunnelled(GNB, cp as u32, &inner(HOST, session.ue, length, 63), &sent[0])]);
        let snapshot = bench.inspect(session.seid).unwrap();
        assert_eq!(snapshot.pdrs, [(PdrId(1), 1, length as u64), (PdrId(2), 1, length as u64)]);
    }
    // Nobody else's tunnel, nobody else's address.
    let session = bench.establish(0, &everyday(4));
    bench.up(&Established { ue: [10, 45, 99, 99].into(), ..session }, 60);
    bench.nothing_sent();
    assert_eq!(bench.dropped(Reason::SpoofedSource), 1);
    bench.delete(0, session.seid);
    bench.up(&session, 60);
    bench.down(&session, 60);
    assert_eq!((bench.dropped(Reason::UnknownTeid), bench.dropped(Reason::UnknownUe)), (1, 1));
}

#[test]
fn what_a_worker_has_no_place_for_is_refused_for_want_of_resources() {
    for (refusal, cause) in [
        (datapath::Refusal::SlotBeyondLimit, Cause::NO_RESOURCES),
        (datapath::Refusal::NotOwned, Cause::SYSTEM_FAILURE),
    ] {
        let mut bench = Bench::new(1);
        bench.hold = true;
        let request = everyday(1);
        let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
        let token = bench.smfs[0].ask(bench.now, kind, Seid(0), |out| request.encode(out));
        bench.settle();
        bench.refuse_orders(refusal);
        let (_, seid, body) = bench.smfs[0].answers.remove(&token).unwrap();
        let response = SessionEstablishmentResponse::decode(&body).unwrap();
        assert_eq!((seid, response.cause, response.up_fseid), (Seid(1), cause, None));
        bench.assert_empty();
    }
}

type Refused = (&'static str, Cause, Option<u16>, Option<RuleId>);

/// Refused establishments: what is wrong with them, and what the refusal says.
fn wrong_establishments(taken: Established) -> Vec<(SessionEstablishmentRequest<'static>, Refused)> {
    let with = |change: &dyn Fn(&mut SessionEstablishmentRequest<'static>)| {
        let mut request = everyday(0xdead);
        change(&mut request);
        request
    };
    let rule = Cause::RULE_FAILURE;
    let (up, down, far) = (RuleId::Pdr(PdrId(1)), RuleId::Pdr(PdrId(2)), RuleId::Far(FarId(2)));
    vec![
        (with(&|r| r.create_fars.truncate(1)), ("no such FAR", rule, Some(ie_type::FAR_ID), Some(down))),
        (with(&|r| r.create_qers.clear()), ("no such QER", rule, Some(ie_type::QER_ID), Some(up))),
        (
            with(&|r| r.create_pdrs[1].urrs = vec![UrrId(4)]),
            ("no such URR", rule, Some(ie_type::URR_ID), Some(down)),
        ),
        (
            with(&|r| r.create_fars[1].apply_action = ApplyAction(ApplyAction::FORW | ApplyAction::DROP)),
            ("two actions", rule, Some(ie_type::APPLY_ACTION), Some(far)),
        ),
        (
            with(&|r| {
                let forwarding = r.create_fars[1].forwarding.as_mut().unwrap();
                forwarding.outer_header_creation = Some(tunnel([224, 0, 0, 1].into(), 1));
            }),
            ("a tunnel to a group", rule, Some(ie_type::OUTER_HEADER_CREATION), Some(far)),
        ),
        (
            with(&|r| {
                let text = Some(&b"permit out ip from nowhere to assigned"[..]);
                r.create_pdrs[0].pdi.sdf_filters =
                    vec![SdfFilter { flow_description: text, ..SdfFilter::default() }];
            }),
            ("no filter", rule, Some(ie_type::SDF_FILTER), Some(up)),
        ),
        (
            with(&|r| {
                r.create_pdrs[1].pdi.ue_ips =
                    vec![UeIpAddress { ipv4: Some(taken.ue), ..UeIpAddress::default() }]
            }),
            ("an address in use", rule, Some(ie_type::UE_IP_ADDRESS), Some(down)),
        ),
        (
            with(&|r| {
                r.create_pdrs[0].pdi.local_fteid =
                    Some(FTeid::Given { teid: taken.teid, ipv4: Some(N3), ipv6: None });
            }),
            ("a TEID in use", rule, Some(ie_type::F_TEID), Some(up)),
        ),
        (
            with(&|r| r.pdn_type = Some(PdnType::ETHERNET)),
            ("Ethernet", Cause::SERVICE_NOT_SUPPORTED, Some(ie_type::PDN_TYPE), None),
        ),
        (
            with(&|r| {
                r.create_fars[1].forwarding.as_mut().unwrap().redirect = Some(redirect_to(b"198.51.100.7", 0))
            }),
            ("redirection", Cause::SERVICE_NOT_SUPPORTED, Some(ie_type::REDIRECT_INFORMATION), Some(far)),
        ),
    ]
}

#[test]
fn a_refused_establishment_says_why_and_leaves_nothing_behind() {
    let mut bench = Bench::new(1);
    let taken = bench.establish(0, &everyday(1));
    let (counts, held) = (bench.n4.store().counts(), bench.n4.held());
    let wrong = wrong_establishments(taken);
    let number = wrong.len() as u64;
    for (request, (what, cause, ie, rule)) in wrong {
        let response = bench.try_establish(0, &request);
        let said = (response.cause, response.offending_ie, response.failed_rule);
        assert_eq!(said, (cause, ie, rule), "{what}");
        assert_eq!((bench.n4.store().counts(), bench.n4.held()), (counts, held), "{what}");
        assert_eq!(bench.worker.sessions(), 1, "{what}");
    }
    // Octets that are no establishment: the refusal still finds its way to the CP SEID.
    let mut body = Vec::new();
    everyday(0xfeed).encode(&mut body);
    body.extend_from_slice(&[0, 1, 0, 2, 0, 0]);
    let (seid, body) =
        bench.ask(0, MessageType::SESSION_ESTABLISHMENT_REQUEST, Seid(0), |out| out.extend(&body));
    let response = SessionEstablishmentResponse::decode(&body).unwrap();
    assert_eq!(seid, Seid(0xfeed));
    assert_eq!((response.node_id, response.offending_ie), (NodeId::Fqdn("upf.test".into()), Some(0)));
    assert_eq!(bench.n4.counters().malformed, 1);
    assert_eq!(bench.n4.counters().refused, number + 1);
    let peer = bench.n4.node().peers().next().unwrap().id;
    assert_eq!(bench.n4.refused_of(peer), number + 1);
    bench.delete(0, taken.seid);
    bench.assert_empty();
}

#[test]
fn a_refused_modification_leaves_the_session_octet_for_octet() {
    let mut bench = Bench::new(1);
    let session = bench.establish(0, &everyday(1));
    let octets = bench.n4.store().get(session.seid).unwrap().octets().to_vec();
    let (counts, held) = (bench.n4.store().counts(), bench.n4.held());
    let marked =
        |far: UpdateFar<'static>| SessionModificationRequest { update_fars: vec![far], ..modification() };
    let wrong: Vec<(SessionModificationRequest<'static>, Refused)> = vec![
        (
            SessionModificationRequest { remove_pdrs: vec![PdrId(1), PdrId(7)], ..modification() },
            ("no such PDR", Cause::RULE_FAILURE, Some(ie_type::PDR_ID), Some(RuleId::Pdr(PdrId(7)))),
        ),
        (
            SessionModificationRequest { remove_fars: vec![FarId(2)], ..modification() },
            ("a FAR in use", Cause::RULE_FAILURE, Some(ie_type::FAR_ID), Some(RuleId::Pdr(PdrId(2)))),
        ),
        (
            SessionModificationRequest { remove_qers: vec![QerId(2)], ..modification() },
            ("no such QER", Cause::RULE_FAILURE, Some(ie_type::QER_ID), Some(RuleId::Qer(QerId(2)))),
        ),
        (
            update_urr(3, threshold(1)),
            ("no such URR", Cause::RULE_FAILURE, Some(ie_type::URR_ID), Some(RuleId::Urr(UrrId(3)))),
        ),
        (
            marked(UpdateFar { id: FarId(9), ..update_far(ApplyAction::DROP, None) }),
            ("no such FAR", Cause::RULE_FAILURE, Some(ie_type::FAR_ID), Some(RuleId::Far(FarId(9)))),
        ),
        (
            // Half of it would be right: a new tunnel for the uplink, taken and given back.
            SessionModificationRequest {
                create_pdrs: vec![
                    CreatePdr { id: PdrId(5), ..uplink() },
                    CreatePdr { id: PdrId(6), far: Some(FarId(66)), ..uplink() },
                ],
                ..modification()
            },
            ("no such FAR", Cause::RULE_FAILURE, Some(ie_type::FAR_ID), Some(RuleId::Pdr(PdrId(6)))),
        ),
    ];
    for (request, (what, cause, ie, rule)) in wrong {
        let (cp, response) = bench.modify(0, session.seid, &request);
        assert_eq!(cp, Seid(1));
        assert_eq!(
            (response.cause, response.offending_ie, response.failed_rule),
            (cause, ie, rule),
            "{what}"
        );
        assert_eq!(bench.n4.store().get(session.seid).unwrap().octets(), octets, "{what}");
        assert_eq!((bench.n4.store().counts(), bench.n4.held()), (counts, held), "{what}");
    }
    bench.up(&session, 100);
    bench.down(&session, 100);
    assert_eq!((bench.sent(0).len(), bench.sent(1).len()), (1, 1), "the session goes on");
}

#[test]
fn a_repeated_request_is_carried_out_once_and_answered_alike() {
    let mut bench = Bench::new(1);
    let from = bench.smfs[0].address;
    let mut session = None;
    for kind in [
        MessageType::SESSION_ESTABLISHMENT_REQUEST,
        MessageType::SESSION_MODIFICATION_REQUEST,
        MessageType::SESSION_DELETION_REQUEST,
    ] {
        let seid = session.unwrap_or(Seid(0));
        let token = bench.smfs[0].ask(bench.now, kind, seid, |out| match kind {
            MessageType::SESSION_ESTABLISHMENT_REQUEST => {
                measured(1, vec![urr(1, 0, threshold(1))]).encode(out)
            }
            MessageType::SESSION_MODIFICATION_REQUEST => {
                SessionModificationRequest { query_urrs: vec![UrrId(1)], ..activate(GNB, 5) }.encode(out);
            }
            _ => {}
        });
        let request = bench.smfs[0].take_datagrams().pop().unwrap();
        bench.hold = true;
        bench.n4.receive(bench.now, from, &request);
        bench.n4.receive(bench.now, from, &request);
        bench.step();
        assert!(bench.datagrams().is_empty(), "repeated while the worker is at it");
        let mut answers = Vec::new();
        bench.release_orders_only();
        bench.step();
        answers.extend(bench.datagrams());
        for _ in 0..3 {
            bench.n4.receive(bench.now, from, &request);
            bench.step();
            answers.extend(bench.datagrams());
        }
        assert_eq!(answers.len(), 4);
        assert!(answers.iter().all(|answer| *answer == answers[0]));
        let answer = answers[0].1.clone();
        bench.smfs[0].take(bench.now, &answer);
        let (_, _, body) = bench.smfs[0].answers.remove(&token).unwrap();
        if session.is_none() {
            session = SessionEstablishmentResponse::decode(&body).unwrap().up_fseid.map(|fseid| fseid.seid);
        }
    }
    let counters = bench.n4.counters();
    assert_eq!((counters.established, counters.modified, counters.deleted, counters.refused), (1, 1, 1, 0));
    let peer = bench.n4.node().peers().next().unwrap();
    assert_eq!((peer.requests, peer.repeated), (3, 12));
    bench.assert_empty();
}

#[test]
fn activation_sends_what_waited_in_order_and_deactivation_keeps_the_tunnel() {
    let mut bench = Bench::new(1);
    let session = bench.establish(0, &idle(1));
    for length in [100, 101, 102] {
        bench.down(&session, length);
    }
    bench.nothing_sent();
    assert_eq!(bench.inspect(session.seid).unwrap().buffered, 3);
    bench.change(0, session.seid, &activate(GNB, 0x55));
    let sent = bench.sent(0);
    let expected: Vec<_> = [100, 101, 102]
        .iter()
        .zip(&sent)
        .map(|(&n, frame)| tunnelled(GNB, 0x55, &inner(HOST, session.ue, n, 63), frame))
        .collect();
    assert_eq!(sent, expected);
    // Idle again by Apply Action alone (Open5GS), and active without naming the tunnel.
    bench.change(0, session.seid, &deactivate());
    bench.down(&session, 200);
    bench.nothing_sent();
    let resume = SessionModificationRequest {
        update_fars: vec![update_far(ApplyAction::FORW, None)],
        ..modification()
    };
    bench.change(0, session.seid, &resume);
    let sent = bench.sent(0);
    assert_eq!(sent, [tunnelled(GNB, 0x55, &inner(HOST, session.ue, 200, 63), &sent[0])]);
    // DROBU: what waits is not wanted.
    bench.change(0, session.seid, &deactivate());
    bench.down(&session, 300);
    let flags = SmReqFlags { drop_buffered: true, ..SmReqFlags::default() };
    bench.change(0, session.seid, &SessionModificationRequest { flags, ..activate(GNB, 0x55) });
    bench.nothing_sent();
    assert_eq!(bench.dropped(Reason::BufferDiscarded), 1);
    // Deleted while packets wait.
    bench.change(0, session.seid, &deactivate());
    bench.down(&session, 300);
    bench.delete(0, session.seid);
    bench.nothing_sent();
    bench.assert_empty();
}

fn end_markers(frames: &[Vec<u8>]) -> Vec<(std::net::Ipv4Addr, Teid)> {
    let parse = |frame: &Vec<u8>| {
        let ip = Ipv4View::parse(EthernetView::parse(frame).unwrap().payload()).unwrap();
        let udp = UdpView::parse(ip.payload()).unwrap();
        let gtpu = GtpuView::parse(udp.payload()).unwrap();
        (gtpu.message_type() == GtpuType::END_MARKER).then(|| (ip.destination(), gtpu.teid()))
    };
    frames.iter().filter_map(parse).collect()
}

#[test]
fn an_end_marker_is_sent_where_a_tunnel_really_ends() {
    let mut bench = Bench::new(1);
    let session = bench.establish(0, &everyday(7));
    let flags = SmReqFlags { send_end_marker: true, ..SmReqFlags::default() };
    let switch = |gnb, teid| SessionModificationRequest { flags, ..activate(gnb, teid) };
    let other = [192, 0, 2, 11].into();
    bench.change(0, session.seid, &switch(other, 8));
    assert_eq!(end_markers(&bench.sent(0)), [(GNB, Teid(7))]);
    bench.down(&session, 100);
    let sent = bench.sent(0);
    assert_eq!(sent, [tunnelled(other, 8, &inner(HOST, session.ue, 100, 63), &sent[0])]);
    // free5GC never takes the flag back.
    bench.change(0, session.seid, &switch(other, 8));
    bench.change(0, session.seid, &SessionModificationRequest { flags, ..deactivate() });
    assert_eq!(end_markers(&bench.sent(0)), []);
    // Without the flag, none.
    bench.change(0, session.seid, &activate(other, 8));
    bench.change(0, session.seid, &activate(other, 9));
    assert_eq!(end_markers(&bench.sent(0)), []);
}

/// SNDEM stands in the Update Forwarding Parameters of one FAR (§7.5.4.3): the others of the request send none.
#[test]
fn an_end_marker_is_sent_by_the_far_that_carries_the_flag() {
    let mut bench = Bench::new(1);
    let mut request = everyday(7);
    let second = CreateFar { id: FarId(3), ..request.create_fars[1].clone() };
    request.create_fars.push(second);
    request.create_fars[2].forwarding.as_mut().unwrap().outer_header_creation = Some(tunnel(GNB, 70));
    let session = bench.establish(0, &request);
    let switch = |far, teid, send_end_marker| {
        let mut update = update_far(ApplyAction::FORW, Some(tunnel(GNB, teid)));
        update.id = FarId(far);
        update.forwarding.as_mut().unwrap().flags = SmReqFlags { send_end_marker, ..SmReqFlags::default() };
        update
    };
    let update_fars = vec![switch(2, 8, false), switch(3, 80, true)];
    bench.change(0, session.seid, &SessionModificationRequest { update_fars, ..modification() });
    assert_eq!(end_markers(&bench.sent(0)), [(GNB, Teid(70))]);
    let update_fars = vec![switch(2, 9, true), switch(3, 90, false)];
    bench.change(0, session.seid, &SessionModificationRequest { update_fars, ..modification() });
    assert_eq!(end_markers(&bench.sent(0)), [(GNB, Teid(8))]);
}

#[test]
fn nobody_touches_another_smfs_sessions() {
    let mut bench = Bench::new(2);
    let session = bench.establish(0, &everyday(1));
    let octets = bench.n4.store().get(session.seid).unwrap().octets().to_vec();
    let (cp, response) = bench.modify(1, session.seid, &activate(GNB, 666));
    assert_eq!((cp, response.cause), (Seid(0), Cause::SESSION_NOT_FOUND));
    let (cp, response) = bench.delete(1, session.seid);
    assert_eq!((cp, response.cause), (Seid(0), Cause::SESSION_NOT_FOUND));
    // As if it did not exist.
    let nowhere = Seid(session.seid.0 ^ 0x5a5a_0000_0000);
    assert_eq!(
        bench.modify(0, nowhere, &activate(GNB, 6)),
        (Seid(0), response_without(Cause::SESSION_NOT_FOUND))
    );
    assert_eq!(bench.delete(0, nowhere).1.cause, Cause::SESSION_NOT_FOUND);
    assert_eq!(bench.n4.store().get(session.seid).unwrap().octets(), octets);
    assert_eq!((bench.n4.counters().foreign_sessions, bench.n4.counters().refused), (2, 4));
    bench.down(&session, 99);
    let sent = bench.sent(0);
    assert_eq!(sent, [tunnelled(GNB, 1, &inner(HOST, session.ue, 99, 63), &sent[0])]);
}

fn response_without(cause: Cause) -> SessionModificationResponse {
    SessionModificationResponse {
        cause,
        offending_ie: None,
        created_pdrs: vec![],
        usage_reports: vec![],
        failed_rule: None,
    }
}

#[test]
fn limits_are_refused_by_name_and_counted() {
    let limits = Limits { sessions: 5, per_peer: 3, far_ends: 2, peers: 2, ..Limits::default() };
    let mut bench = Bench::unassociated(3, limits);
    for smf in 0..3 {
        bench.associate(smf);
    }
    assert_eq!((bench.n4.node().peers().count(), bench.n4.node().counters().too_many_peers), (2, 1));
    let mut sessions = Vec::new();
    let mut refused = 0;
    for smf in [0, 0, 0, 0, 1, 1, 1] {
        let response = bench.try_establish(smf, &everyday(1));
        if response.cause == Cause::ACCEPTED {
            sessions.push((smf, Established::new(&response).seid));
        } else {
            assert_eq!(response.cause, Cause::NO_RESOURCES);
            refused += 1;
        }
    }
    assert_eq!((sessions.len(), refused, bench.n4.counters().refused), (5, 2, 2));
    // Far ends: two gNBs, no third, whoever asks and however.
    let (owner, seid) = sessions[0];
    let second = [192, 0, 2, 11].into();
    let third = [192, 0, 2, 12].into();
    bench.change(owner, seid, &activate(second, 1));
    let (owner_of_other, other) = sessions[1];
    let (_, response) = bench.modify(owner_of_other, other, &activate(third, 1));
    assert_eq!(
        (response.cause, response.offending_ie),
        (Cause::NO_RESOURCES, Some(ie_type::OUTER_HEADER_CREATION))
    );
    // A session that was idle while others took the place.
    bench.change(owner, seid, &deactivate());
    bench.change(owner_of_other, other, &activate(third, 1));
    let resume = SessionModificationRequest {
        update_fars: vec![update_far(ApplyAction::FORW, None)],
        ..modification()
    };
    let (_, response) = bench.modify(owner, seid, &resume);
    assert_eq!(response.cause, Cause::NO_RESOURCES);
    assert_eq!((bench.n4.counters().too_many_far_ends, bench.n4.counters().not_applied), (2, 0));
    bench.change(owner_of_other, other, &deactivate());
    bench.change(owner, seid, &resume);
    assert_eq!(bench.worker.counters().dropped(Reason::TooManyPeers), 0);
    for (smf, seid) in sessions {
        assert_eq!(bench.delete(smf, seid).1.cause, Cause::ACCEPTED);
    }
    bench.assert_empty();
}
