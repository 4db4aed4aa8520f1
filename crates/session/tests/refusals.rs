//! Requests that are refused: by name, with Cause, Offending IE and failed rule, and without a trace.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::*;
use pfcp::ie::*;
use pfcp::message::*;
use pfcp::{BarId, Cause, FarId, PdrId, QerId, RuleId, Seid, UrrId};
use session::config::{Config, Limits};
use session::refusal::Refusal;
use session::store::{Counts, Store};

type Verdict = (Cause, Option<u16>, Option<RuleId>);

fn verdict(refusal: &Refusal) -> Verdict {
    plain(&refusal.to_string());
    (refusal.cause(), refusal.offending_ie(), refusal.failed_rule())
}

/// A sentence for people: the standard's words, and nothing that only a program's author knows.
fn plain(sentence: &str) {
    let inner_capital = |word: &str| {
        let letters: Vec<char> = word.chars().collect();
        letters.windows(2).any(|pair| pair[0].is_lowercase() && pair[1].is_uppercase())
    };
    let debug = sentence.contains("Id(") || sentence.contains("None") || sentence.contains("Some(");
    assert!(!debug && !sentence.split_whitespace().any(inner_capital), "{sentence}");
    assert!(sentence.len() > 15 && sentence.contains(' '), "{sentence}");
}

/// Refused as an establishment: nothing is left behind.
fn establishment(change: impl FnOnce(&mut SessionEstablishmentRequest<'static>)) -> Verdict {
    let (mut store, peer) = store();
    let mut request = everyday();
    change(&mut request);
    let refusal = store.establish(&request, peer).unwrap_err();
    assert_eq!(store.counts(), Counts::default());
    verdict(&refusal)
}

/// Refused as a modification of the everyday session: it is as it was, octet for octet.
fn modified(request: &SessionModificationRequest<'static>) -> Verdict {
    let (mut store, peer) = store();
    let seid = store.establish(&everyday(), peer).unwrap().rules.seid;
    let before = (store.get(seid).unwrap().octets().to_vec(), store.get(seid).unwrap().rules().clone());
    let counts = store.counts();
    let refusal = store.modify(seid, request).unwrap_err();
    let after = store.get(seid).unwrap();
    assert_eq!((after.octets(), after.rules()), (&*before.0, &before.1));
    assert_eq!(store.counts(), counts);
    verdict(&refusal)
}

const PDR_1: Option<RuleId> = Some(RuleId::Pdr(PdrId(1)));
const PDR_2: Option<RuleId> = Some(RuleId::Pdr(PdrId(2)));
const FAR_2: Option<RuleId> = Some(RuleId::Far(FarId(2)));

#[test]
fn dangling_references() {
    let rule = Cause::RULE_FAILURE;
    assert_eq!(establishment(|r| r.create_pdrs[0].far = Some(FarId(9))), (rule, Some(108), PDR_1));
    assert_eq!(establishment(|r| r.create_pdrs[1].qers.push(QerId(9))), (rule, Some(109), PDR_2));
    assert_eq!(establishment(|r| r.create_pdrs[1].urrs.push(UrrId(9))), (rule, Some(81), PDR_2));
    assert_eq!(establishment(|r| r.create_fars[1].bar = Some(BarId(9))), (rule, Some(88), FAR_2));
    assert_eq!(
        establishment(|r| r.create_pdrs[0].far = None),
        (Cause::CONDITIONAL_IE_MISSING, Some(108), PDR_1)
    );
    let request = SessionModificationRequest { remove_fars: vec![FarId(1)], ..modification() };
    assert_eq!(modified(&request), (rule, Some(108), PDR_1));
}

#[test]
fn unknown_rules() {
    let rule = Cause::RULE_FAILURE;
    let cases: [(SessionModificationRequest<'static>, Verdict); 7] = [
        (
            SessionModificationRequest { remove_pdrs: vec![PdrId(9)], ..modification() },
            (rule, Some(56), Some(RuleId::Pdr(PdrId(9)))),
        ),
        (
            SessionModificationRequest { remove_fars: vec![FarId(9)], ..modification() },
            (rule, Some(108), Some(RuleId::Far(FarId(9)))),
        ),
        (
            SessionModificationRequest { remove_qers: vec![QerId(9)], ..modification() },
            (rule, Some(109), Some(RuleId::Qer(QerId(9)))),
        ),
        (
            SessionModificationRequest { remove_urrs: vec![UrrId(9)], ..modification() },
            (rule, Some(81), Some(RuleId::Urr(UrrId(9)))),
        ),
        (
            SessionModificationRequest { remove_bars: vec![BarId(9)], ..modification() },
            (rule, Some(88), Some(RuleId::Bar(BarId(9)))),
        ),
        (
            SessionModificationRequest { update_pdrs: vec![update_pdr(9)], ..modification() },
            (rule, Some(56), Some(RuleId::Pdr(PdrId(9)))),
        ),
        (
            SessionModificationRequest { update_fars: vec![update_far(9)], ..modification() },
            (rule, Some(108), Some(RuleId::Far(FarId(9)))),
        ),
    ];
    for (request, expected) in cases {
        assert_eq!(modified(&request), expected);
        // A request that is good but for one rule is refused whole.
        let mixed = SessionModificationRequest {
            create_pdrs: vec![uplink(50, 1)],
            create_fars: vec![to_core(50)],
            ..request
        };
        assert_eq!(modified(&mixed), expected);
    }
}

#[test]
fn a_rogue_session_gets_nobody_elses_tunnel_or_address() {
    let (mut store, peer) = store();
    let mut victim = everyday();
    victim.create_pdrs[1].pdi.ue_ips = vec![ue([10, 45, 0, 9])];
    let ours = teid_of(&store.establish(&victim, peer).unwrap(), 1);
    let mut chosen = everyday();
    chosen.create_pdrs[0].pdi.local_fteid = Some(given(0x2a));
    store.establish(&chosen, peer).unwrap();
    let counts = store.counts();
    let rogue = store.attach();
    for teid in [ours.0, 0x2a] {
        let mut request = everyday();
        request.create_pdrs[0].pdi.local_fteid = Some(given(teid));
        let refusal = store.establish(&request, rogue).unwrap_err();
        assert_eq!(verdict(&refusal), (Cause::RULE_FAILURE, Some(21), PDR_1));
    }
    let mut request = everyday();
    request.create_pdrs[1].pdi.ue_ips = vec![ue([10, 45, 0, 9])];
    let refusal = store.establish(&request, rogue).unwrap_err();
    assert_eq!(verdict(&refusal), (Cause::RULE_FAILURE, Some(93), PDR_2));
    assert_eq!(store.counts(), counts);
}

#[test]
fn addresses_that_no_ue_can_have() {
    for address in
        [[10, 45, 0, 1], [10, 45, 0, 0], [10, 45, 255, 255], [192, 168, 10, 1], [0, 0, 0, 0], [224, 0, 0, 1]]
    {
        let got = establishment(|r| r.create_pdrs[1].pdi.ue_ips = vec![ue(address)]);
        assert_eq!(got, (Cause::RULE_FAILURE, Some(93), PDR_2), "{address:?}");
    }
    // Two addresses in one session.
    let got = establishment(|r| {
        r.create_pdrs[0].pdi.ue_ips = vec![ue([10, 45, 0, 8])];
        r.create_pdrs[1].pdi.ue_ips = vec![ue([10, 45, 0, 9])];
    });
    assert_eq!(got, (Cause::RULE_FAILURE, Some(93), PDR_2));
    let mut down = downlink(3, 2);
    down.pdi.ue_ips = vec![ue([10, 45, 9, 9])];
    let request = SessionModificationRequest { create_pdrs: vec![down], ..modification() };
    assert_eq!(modified(&request), (Cause::RULE_FAILURE, Some(93), Some(RuleId::Pdr(PdrId(3)))));
}

#[test]
fn rules_that_can_do_nothing() {
    assert_eq!(establishment(|r| r.create_pdrs.clear()), (Cause::MANDATORY_IE_MISSING, Some(1), None));
    let missing = Cause::CONDITIONAL_IE_MISSING;
    assert_eq!(establishment(|r| r.create_pdrs[0].pdi.local_fteid = None), (missing, Some(21), PDR_1));
    assert_eq!(establishment(|r| r.create_pdrs[1].pdi.ue_ips.clear()), (missing, Some(93), PDR_2));
    assert_eq!(establishment(|r| r.create_fars[1].forwarding = None), (missing, Some(4), FAR_2));
    for action in
        [0, ApplyAction::NOCP, ApplyAction::DROP | ApplyAction::FORW, ApplyAction::FORW | ApplyAction::BUFF]
    {
        let got = establishment(|r| r.create_fars[1].apply_action = ApplyAction(action));
        assert_eq!(got, (Cause::RULE_FAILURE, Some(44), FAR_2));
    }
    let header = |change: fn(&mut OuterHeaderCreation)| {
        establishment(|r| {
            let mut header = gnb(5);
            change(&mut header);
            r.create_fars[1].forwarding = Some(forwarding(Interface::ACCESS, Some(header)));
        })
    };
    assert_eq!(header(|h| h.teid = None), (Cause::RULE_FAILURE, Some(84), FAR_2));
    assert_eq!(header(|h| h.ipv4 = Some([0, 0, 0, 0].into())), (Cause::RULE_FAILURE, Some(84), FAR_2));
    assert_eq!(header(|h| h.ipv4 = Some([224, 0, 0, 1].into())), (Cause::RULE_FAILURE, Some(84), FAR_2));
    assert_eq!(header(|h| h.ipv4 = None), (Cause::RULE_FAILURE, Some(84), FAR_2));
}

#[test]
fn what_is_kept_for_later_says_so() {
    let later = Cause::SERVICE_NOT_SUPPORTED;
    assert_eq!(establishment(|r| r.pdn_type = Some(PdnType::ETHERNET)), (later, Some(113), None));
    assert_eq!(establishment(|r| r.pdn_type = Some(PdnType::NON_IP)), (later, Some(113), None));
    assert_eq!(establishment(|r| r.create_pdrs[0].pdi.ethernet = true), (later, Some(132), PDR_1));
    assert_eq!(establishment(|r| r.create_pdrs[0].pdi.application_id = Some(b"x")), (later, Some(24), PDR_1));
    assert_eq!(
        establishment(|r| r.create_pdrs[0].pdi.source_interface = Interface(5)),
        (later, Some(20), PDR_1)
    );
    let parameters = |change: fn(&mut ForwardingParameters<'static>)| {
        establishment(|r| change(r.create_fars[1].forwarding.as_mut().unwrap()))
    };
    let redirect = |kind, address| Some(RedirectInformation { kind, address, other: b"" });
    for kind in [RedirectAddressType::IPV4, RedirectAddressType::IPV6, RedirectAddressType::SIP_URI] {
        let got = establishment(|r| {
            r.create_fars[1].forwarding.as_mut().unwrap().redirect = redirect(kind, b"198.51.100.7");
        });
        assert_eq!(got, (later, Some(38), FAR_2));
    }
    let long = [b'x'; 1_001];
    for url in [&b"http://portal example/"[..], b"http://x\r\nSet-Cookie: a", b"http://\xff", &long] {
        let url: &'static [u8] = url.to_vec().leak();
        let got = establishment(|r| {
            r.create_fars[1].forwarding.as_mut().unwrap().redirect = redirect(RedirectAddressType::URL, url);
        });
        assert_eq!(got, (Cause::RULE_FAILURE, Some(38), FAR_2));
    }
    assert_eq!(
        parameters(|p| p.forwarding_policy = Some(PolicyId(b"nobody"))),
        (Cause::INVALID_FORWARDING_POLICY, Some(41), FAR_2)
    );
    assert_eq!(parameters(|p| p.destination_interface = Interface(4)), (later, Some(42), FAR_2));
    assert_eq!(
        parameters(|p| p.outer_header_creation.as_mut().unwrap().description = 0x0400),
        (later, Some(84), FAR_2)
    );
}

#[test]
fn filters_that_can_not_be_used() {
    for text in ["deny out ip from any to any", "permit out ip from !1.1.1.1 to any", "gibberish"] {
        let got = establishment(|r| r.create_pdrs[0].pdi.sdf_filters = vec![sdf(text)]);
        assert_eq!(got, (Cause::RULE_FAILURE, Some(23), PDR_1), "{text}");
    }
    let got = establishment(|r| {
        r.create_pdrs[0].pdi.sdf_filters = vec![SdfFilter { filter_id: Some(7), ..SdfFilter::default() }];
    });
    assert_eq!(got, (Cause::RULE_FAILURE, Some(23), PDR_1), "nobody described filter 7");
    let got = establishment(|r| r.create_pdrs[0].pdi.framed_routes = vec![b"not a route"]);
    assert_eq!(got, (Cause::RULE_FAILURE, Some(153), PDR_1));
}

#[test]
fn bounds_are_named_and_leave_nothing() {
    let limits = Limits {
        sessions: 3,
        sessions_per_peer: 2,
        pdrs: 2,
        fars: 2,
        qers: 1,
        urrs: 1,
        bars: 1,
        filters: 1,
        framed_routes: 1,
        ..Limits::default()
    };
    let mut store = Store::new(Config { limits, ..config() }).unwrap();
    let (one, two) = (store.attach(), store.attach());
    let mut refuse = |change: &dyn Fn(&mut SessionEstablishmentRequest<'static>)| {
        let mut request = everyday();
        change(&mut request);
        let refusal = store.establish(&request, one).unwrap_err();
        assert_eq!(store.counts(), Counts::default());
        assert_eq!(refusal.cause(), Cause::NO_RESOURCES);
        refusal.failed_rule()
    };
    assert_eq!(refuse(&|r| r.create_pdrs.push(uplink(3, 1))), Some(RuleId::Pdr(PdrId(3))));
    assert_eq!(refuse(&|r| r.create_fars.push(to_core(3))), Some(RuleId::Far(FarId(3))));
    assert_eq!(refuse(&|r| r.create_qers.push(qer(3, 1, 1))), Some(RuleId::Qer(QerId(3))));
    assert_eq!(refuse(&|r| r.create_urrs.push(urr(3, 1))), Some(RuleId::Urr(UrrId(3))));
    assert_eq!(refuse(&|r| r.create_bars = vec![bar(1, None), bar(2, None)]), Some(RuleId::Bar(BarId(2))));
    assert_eq!(refuse(&|r| r.create_pdrs[0].pdi.sdf_filters = vec![sdf(""); 2]), PDR_1);
    assert_eq!(refuse(&|r| r.create_pdrs[0].qers = vec![QerId(1), QerId(2)]), PDR_1);
    assert_eq!(refuse(&|r| r.create_pdrs[0].pdi.framed_routes = vec![b"1.0.0.0/8"; 2]), PDR_1);

    store.establish(&everyday(), one).unwrap();
    store.establish(&everyday(), one).unwrap();
    assert_eq!(store.establish(&everyday(), one).unwrap_err().cause(), Cause::NO_RESOURCES);
    store.establish(&everyday(), two).unwrap();
    assert_eq!(store.establish(&everyday(), two).unwrap_err().cause(), Cause::NO_RESOURCES);
}

#[test]
fn sessions_that_are_not_there() {
    let (mut store, peer) = store();
    let seid = store.establish(&everyday(), peer).unwrap().rules.seid;
    for other in [Seid(0), Seid(u64::MAX), Seid(seid.0 ^ 1 << 33), Seid(seid.0 + 1)] {
        assert_eq!(store.modify(other, &modification()).unwrap_err().cause(), Cause::SESSION_NOT_FOUND);
        assert_eq!(store.delete(other).unwrap_err().cause(), Cause::SESSION_NOT_FOUND);
    }
    store.delete(seid).unwrap();
    assert_eq!(store.delete(seid).unwrap_err(), Refusal::UnknownSession(seid), "a repeated deletion");
}
