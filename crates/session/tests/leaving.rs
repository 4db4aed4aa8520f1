//! Associations that end: their sessions go in bites, and make way for those of the next one.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::*;
use pfcp::ie::*;

#[test]
fn an_association_goes_in_bites_and_the_next_one_stays() {
    let (mut store, old) = store();
    let mut old_seids = Vec::new();
    for _ in 0..1000 {
        old_seids.push(store.establish(&everyday(), old).unwrap().rules.seid);
    }
    let mut sweep = store.detach(old);
    let new = store.attach();
    assert!(store.establish(&everyday(), old).is_err(), "a detached association gets no sessions");
    let kept = store.establish(&everyday(), new).unwrap().rules.seid;
    let mut gone = 0;
    while !sweep.is_done() {
        let bite = store.sweep(&mut sweep, 100);
        assert!(bite.len() <= 100);
        gone += bite.len();
    }
    assert_eq!((gone, store.counts().sessions, store.sessions_of(new)), (1000, 1, 1));
    assert!(store.get(kept).is_some());
    assert!(old_seids.iter().all(|seid| store.get(*seid).is_none()));
}

/// A restarted SMF hands out the same addresses and TEIDs again before its old sessions are swept.
#[test]
fn stale_sessions_make_way_for_new_ones_and_living_ones_do_not() {
    let (mut store, old) = store();
    let address = |last: u8| ue([10, 99, 0, last]);
    let request = |last: u8| {
        let mut request = everyday();
        request.create_pdrs[0].pdi.local_fteid = Some(given(0x700 + u32::from(last)));
        request.create_pdrs[1].pdi.ue_ips = vec![address(last)];
        request
    };
    let with_prefix = |last: u8, prefix: &str| {
        let six = UeIpAddress { ipv6: Some(prefix.parse().unwrap()), ..UeIpAddress::default() };
        let mut request = request(last);
        request.create_pdrs[0].pdi.local_fteid = Some(CHOOSE);
        request.create_pdrs[1].pdi.ue_ips = vec![address(last), six];
        request
    };
    let routed = |last: u8| {
        let mut request = request(last);
        request.create_pdrs[0].pdi.local_fteid = Some(CHOOSE);
        request.create_pdrs[1].pdi.framed_routes = vec![b"192.168.50.0/24"];
        request
    };
    let only = |prefix: &str, length| {
        let mut request = everyday();
        let six = UeIpAddress { ipv6: Some(prefix.parse().unwrap()), ..UeIpAddress::default() };
        request.create_pdrs[1].pdi.ue_ips = vec![UeIpAddress { ipv6_prefix_length: length, ..six }];
        request
    };
    let prefixes = [only("2001:db8:7:1::", None), only("2001:db8:7:2::", None)];
    let earlier = [request(1), request(2), with_prefix(3, "2001:db8:9::"), routed(4)];
    for request in earlier.into_iter().chain(prefixes) {
        store.establish(&request, old).unwrap();
    }
    let living = store.attach();
    store.establish(&request(9), living).unwrap();
    let mut sweep = store.detach(old);
    let new = store.attach();
    let mut swept = 0;
    // By address, by TEID, by the second address of another session, by a route, by a UE's only prefix and an address within one; and not
    // what lives.
    let mut teid = request(20);
    teid.create_pdrs[0].pdi.local_fteid = Some(given(0x702));
    let prefixes = [only("2001:db8:7:1::", None), only("2001:db8:7:2::5", Some(128))];
    let again = [request(1), teid, with_prefix(21, "2001:db8:9::"), routed(22)];
    for request in again.into_iter().chain(prefixes) {
        let refusal = store.establish(&request, new).unwrap_err();
        assert_eq!(refusal.cause(), pfcp::Cause::RULE_FAILURE);
        let gone = store.make_way(&refusal, &mut sweep, 10);
        assert!(!gone.is_empty() && gone.iter().all(|deleted| deleted.peer == old), "{refusal}");
        swept += gone.len();
        store.establish(&request, new).unwrap();
    }
    let refusal = store.establish(&request(9), new).unwrap_err();
    assert!(
        store.make_way(&refusal, &mut sweep, 10).is_empty(),
        "another SMF's session is no obstacle to remove"
    );
    let refusal = store.establish(&request(1), new).unwrap_err();
    assert!(store.make_way(&refusal, &mut sweep, 10).is_empty(), "nor is one of its own that lives");
    while !sweep.is_done() {
        swept += store.sweep(&mut sweep, 10).len();
    }
    assert_eq!((swept, store.sessions_of(new), store.sessions_of(living)), (6, 6, 1));
}

/// Also where they only take up room.
#[test]
fn stale_sessions_do_not_fill_the_table() {
    let limits = session::config::Limits { sessions: 3, ..session::config::Limits::default() };
    let mut store = session::store::Store::new(session::config::Config { limits, ..config() }).unwrap();
    let old = store.attach();
    for _ in 0..3 {
        store.establish(&everyday(), old).unwrap();
    }
    let mut sweep = store.detach(old);
    let new = store.attach();
    let refusal = store.establish(&everyday(), new).unwrap_err();
    assert_eq!(refusal.cause(), pfcp::Cause::NO_RESOURCES);
    while !sweep.is_done() && store.make_way(&refusal, &mut sweep, 1).is_empty() {}
    store.establish(&everyday(), new).unwrap();
}
