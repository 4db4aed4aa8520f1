//! Forwarding Policies that are configured (TS 29.244 §8.2.23).
#![allow(clippy::unwrap_used)]

use crate::common::*;
use pfcp::ie::PolicyId;
use pfcp::message::{SessionEstablishmentRequest, UpdateForwardingParameters};
use session::config::{Config, Policy};
use session::rules::{Action, Rules};
use session::store::{PeerId, Store};

fn policies(known: &[(&str, bool)]) -> Vec<Policy> {
    known.iter().map(|(id, in_force)| Policy { id: id.as_bytes().into(), in_force: *in_force }).collect()
}

fn knowing(known: &[(&str, bool)]) -> (Store, PeerId) {
    let mut store = Store::new(Config { policies: policies(known), ..config() }).unwrap();
    let peer = store.attach();
    (store, peer)
}

fn naming(id: &'static [u8]) -> SessionEstablishmentRequest<'static> {
    let mut request = everyday();
    let forwarding = request.create_fars[0].forwarding.as_mut().unwrap();
    forwarding.forwarding_policy = Some(PolicyId(id));
    request
}

fn policy_of(rules: &Rules) -> u16 {
    let Action::Forward(forward) = rules.fars[0].action else { panic!() };
    forward.policy
}

#[test]
fn a_far_has_the_policy_that_it_names_until_an_update_says_otherwise() {
    let (mut store, peer) = knowing(&[("direct", true), ("Direct", true), ("old", false)]);
    for (id, number) in [(&b"direct"[..], 1), (b"Direct", 2), (b"", 0)] {
        assert_eq!(policy_of(&store.establish(&naming(id), peer).unwrap().rules), number);
    }
    assert!(store.establish(&naming(b"old"), peer).is_err(), "not in force");
    assert_eq!(policy_of(&store.establish(&everyday(), peer).unwrap().rules), 0);

    let seid = store.establish(&naming(b"direct"), peer).unwrap().rules.seid;
    let mut update = |policy: Option<&'static [u8]>| {
        let mut request = modification();
        let parameters =
            UpdateForwardingParameters { forwarding_policy: policy.map(PolicyId), ..Default::default() };
        let far = everyday().create_fars[0].id.0;
        request.update_fars =
            vec![pfcp::message::UpdateFar { forwarding: Some(parameters), ..update_far(far) }];
        store.modify(seid, &request).map(|modified| policy_of(&modified.rules))
    };
    assert_eq!(update(None).unwrap(), 1, "an update without one leaves it");
    assert_eq!(update(Some(b"Direct")).unwrap(), 2);
    assert!(update(Some(b"nobody")).is_err());
    assert_eq!(update(None).unwrap(), 2);
    assert_eq!(update(Some(b"")).unwrap(), 0);
}

#[test]
fn policies_keep_their_places_when_others_come() {
    let (mut store, peer) = knowing(&[("a", true), ("b", true)]);
    let seid = store.establish(&naming(b"a"), peer).unwrap().rules.seid;
    store.set_policies(policies(&[("a", false), ("b", true), ("c", true)]));
    assert_eq!(policy_of(store.get(seid).unwrap().rules()), 1);
    assert!(store.establish(&naming(b"a"), peer).is_err());
    for (id, number) in [(&b"b"[..], 2), (b"c", 3)] {
        assert_eq!(policy_of(&store.establish(&naming(id), peer).unwrap().rules), number);
    }
}
