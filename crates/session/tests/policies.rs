//! Forwarding Policies that are configured (TS 29.244 §8.2.23).
#![allow(clippy::unwrap_used)]

use crate::common::*;
use pfcp::ie::PolicyId;
use pfcp::message::{SessionEstablishmentRequest, UpdateForwardingParameters};
use session::config::{Config, Instance, Policy};
use session::network_instance::Name;
use session::rules::{Action, Rules};
use session::store::{PeerId, Store};

fn policies(known: &[(&str, bool)]) -> Vec<Policy> {
    let policy = |(id, in_force): &(&str, bool)| Policy {
        id: id.as_bytes().into(),
        in_force: *in_force,
        ..Policy::default()
    };
    known.iter().map(policy).collect()
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
fn a_policys_network_instance_takes_the_place_of_the_fars() {
    let instance = |name: &str| Instance { name: Name::new(name.as_bytes()), ..Instance::default() };
    let policy = |id: &str, instance| Policy { id: id.as_bytes().into(), in_force: true, instance };
    let mut config = config();
    config.instances = vec![instance("internet"), instance("lan")];
    config.policies = vec![policy("by lan", Some(2)), policy("by any", Some(0)), policy("as it says", None)];
    let mut store = Store::new(config).unwrap();
    let peer = store.attach();
    for (id, by) in [(&b"by lan"[..], 2), (b"by any", 0), (b"as it says", 1), (b"", 1)] {
        let mut request = naming(id);
        let forwarding = request.create_fars[0].forwarding.as_mut().unwrap();
        forwarding.network_instance = Some(b"internet");
        let rules = store.establish(&request, peer).unwrap().rules;
        let Action::Forward(forward) = rules.fars[0].action else { panic!() };
        assert_eq!(forward.instance, by, "{}", String::from_utf8_lossy(id));
    }
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
