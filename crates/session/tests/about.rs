//! Whom sessions are for: kept as their SMF said it, found again, and small.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::*;
use packet::Teid;
use pfcp::ie::*;
use pfcp::message::*;
use session::SessionRef;
use session::store::Session;
use std::net::IpAddr;
use std::ops::ControlFlow;

/// IMSI 001010000000001 and MSISDN 49171234567.
const USER: UserId<'_> = UserId(&[5, 8, 0, 1, 1, 0, 0, 0, 0, 0xf1, 6, 0x94, 0x71, 0x21, 0x43, 0x65, 0xf7]);

fn told() -> SessionEstablishmentRequest<'static> {
    let mut request = everyday();
    request.user_id = Some(USER);
    request.apn_dnn = Some(b"\x08INTERNET");
    request.s_nssai = Some(SNssai { sst: 1, sd: Some(123) });
    for pdr in &mut request.create_pdrs {
        let access = pdr.pdi.source_interface == Interface::ACCESS;
        pdr.pdi.network_instance = Some(if access { b"radio" } else { b"nobody.configured.this" });
    }
    request
}

fn octets(change: impl FnOnce(&mut SessionEstablishmentRequest<'static>)) -> usize {
    let (mut store, peer) = store();
    let mut request = everyday();
    change(&mut request);
    let seid = store.establish(&request, peer).unwrap().rules.seid;
    store.get(seid).unwrap().octets().len()
}

#[test]
fn what_an_smf_said_of_a_session_is_kept_whether_it_is_configured_or_not() {
    let (mut store, peer) = store();
    let seid = store.establish(&told(), peer).unwrap().rules.seid;
    let check = |session: &Session| {
        let about = session.about();
        let user: Vec<_> = about.user().unwrap().texts().collect();
        assert_eq!(user, ["imsi-001010000000001", "msisdn-49171234567"]);
        assert_eq!(
            (about.dnn(), about.s_nssai()),
            (&b"internet"[..], Some(SNssai { sst: 1, sd: Some(123) }))
        );
        assert_eq!(about.instances().collect::<Vec<_>>(), [&b"nobody.configured.this"[..], b"radio"]);
    };
    check(store.get(seid).unwrap());
    // A modification says nothing of it, and takes nothing away.
    let request = SessionModificationRequest { update_fars: vec![update_far(2)], ..modification() };
    store.modify(seid, &request).unwrap();
    check(store.get(seid).unwrap());
}

#[test]
fn it_costs_one_octet_where_nothing_is_said_and_its_length_where_something_is() {
    let mut about = Vec::new();
    let nothing = octets(|request| {
        request.user_id = None;
        request.apn_dnn = None;
        request.create_pdrs.iter_mut().for_each(|pdr| pdr.pdi.network_instance = None);
    });
    for change in [
        (|request: &mut SessionEstablishmentRequest<'static>| request.apn_dnn = Some(b"internet"))
            as fn(&mut _),
        |request| request.user_id = Some(USER),
        |request| request.s_nssai = Some(SNssai { sst: 1, sd: None }),
        |request| *request = told(),
    ] {
        about.push(octets(change) - nothing);
    }
    // Four fields' lengths beside what they hold; two names in the last.
    assert_eq!(about, [3 + 8, 3 + 17, 3 + 4, 3 + 17 + 8 + 4 + 1 + 22 + 1 + 5]);
    // What nobody needs is not kept, however much of it is sent.
    let long: &'static [u8] = &[b'x'; 255];
    assert_eq!(
        octets(|request| (request.apn_dnn, request.user_id) = (Some(long), Some(UserId(long)))),
        nothing + 3
    );
}

#[test]
fn all_sessions_are_seen_once_in_bites_of_any_size() {
    let (mut store, peer) = store();
    let mut all: Vec<_> = (0..300).map(|_| store.establish(&everyday(), peer).unwrap().rules.seid).collect();
    for seid in all.iter().step_by(3) {
        store.delete(*seid).unwrap();
    }
    let mut at = 0;
    all.retain(|_| {
        at += 1;
        at % 3 != 1
    });
    all.sort_unstable();
    // Of so many places at most, until so many sessions are enough.
    for (most, enough) in [(1, 9), (2, 9), (7, 9), (7, 2), (100, 1), (10_000, 1_000), (10_000, 9)] {
        let mut seen = Vec::new();
        let mut from = Some(SessionRef { shard: session::ShardId::from_hash(0), slot: 0 });
        while let Some(place) = from {
            let before = seen.len();
            from = store.look(place, most, |session| {
                seen.push(session.rules().seid);
                if seen.len() - before < enough { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            assert!(seen.len() - before <= most.min(enough));
        }
        seen.sort_unstable();
        assert_eq!(seen, all);
    }
}

#[test]
fn a_session_is_found_by_its_address() {
    let (mut store, peer) = store();
    for _ in 0..100 {
        let seid = store.establish(&everyday(), peer).unwrap().rules.seid;
        let address = store.get(seid).unwrap().rules().ue_ipv4.unwrap();
        assert_eq!(store.by_address(address.into()).unwrap().rules().seid, seid);
    }
    assert!(store.by_address(IpAddr::from([203, 0, 113, 7])).is_none());
    // Addresses that the SMF chose, the second of which hashes to another shard.
    let mut strays = 0;
    for n in 1..=50u16 {
        let mut request = everyday();
        let ipv6: std::net::Ipv6Addr = format!("2001:db8:99:{n:x}::").parse().unwrap();
        let given = UeIpAddress { ipv6: Some(ipv6), ..ue([172, 16, 0, n as u8]) };
        request.create_pdrs[1].pdi.ue_ips = vec![given];
        let seid = store.establish(&request, peer).unwrap().rules.seid;
        let rules = store.get(seid).unwrap().rules();
        let [first, second] = [rules.ue_ipv4.unwrap().into(), IpAddr::V6(rules.ue_ipv6.unwrap().addr())];
        let lengths = config().prefix_lengths();
        let shard = session::addresses::shard_of_ipv6(&lengths, rules.ue_ipv6.unwrap());
        strays += u32::from(shard != rules.place.shard);
        for address in [first, second] {
            assert_eq!(store.by_address(address).unwrap().rules().seid, seid, "{address}");
        }
    }
    assert!(strays > 40, "{strays}");
}

#[test]
fn a_session_is_found_by_its_tunnel() {
    let (mut store, peer) = store();
    for n in 1..=100 {
        let mut request = everyday();
        if n % 2 == 0 {
            request.create_pdrs[0].pdi.local_fteid = Some(given(n));
        }
        let established = store.establish(&request, peer).unwrap();
        let (seid, teid) = (established.rules.seid, pdr_of(&established.rules, 1).tunnel.unwrap().teid);
        assert_eq!(store.by_teid(teid).unwrap().rules().seid, seid);
        if n % 5 == 0 {
            store.delete(seid).unwrap();
            assert!(store.by_teid(teid).is_none());
        }
    }
    assert!(store.by_teid(Teid(0)).is_none() && store.by_teid(Teid(0xdead_beef)).is_none());
}
