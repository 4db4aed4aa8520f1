//! Forwarding Policies by name, from the SMF's request to the router that packets leave by.

use crate::bench::*;
use pfcp::ie::PolicyId;
use pfcp::message::*;
use pfcp::{Cause, FarId, RuleId};

const POLICIES: &[&str] = &["video-lan", "mail"];

fn bench() -> Bench {
    Bench::with(1, Limits { policies: POLICIES, ..Limits::default() })
}

/// A session whose packets to the data network have this policy.
fn by(id: &'static [u8]) -> SessionEstablishmentRequest<'static> {
    let mut request = everyday(7);
    request.create_fars[0].forwarding.as_mut().unwrap().forwarding_policy = Some(PolicyId(id));
    request
}

impl Bench {
    /// To whom a packet of the UE leaves.
    fn leaves_to(&mut self, session: &Established) -> [u8; 6] {
        self.up(session, 100);
        let sent = self.sent(1);
        let [frame] = &sent[..] else { panic!("{sent:?}") };
        frame[..6].try_into().unwrap()
    }
}

#[test]
fn packets_leave_by_the_policy_that_the_smf_names() {
    let mut bench = bench();
    let plain = bench.establish(0, &everyday(6));
    let otherwise = bench.leaves_to(&plain);
    let session = bench.establish(0, &by(b"video-lan"));
    assert_eq!(bench.leaves_to(&session), router_of(0));
    assert_eq!(bench.leaves_to(&plain), otherwise);
    let update = |id: &'static [u8]| {
        let forwarding =
            UpdateForwardingParameters { forwarding_policy: Some(PolicyId(id)), ..Default::default() };
        let far = UpdateFar { id: FarId(1), apply_action: None, forwarding: Some(forwarding), bar: None };
        SessionModificationRequest { update_fars: vec![far], ..modification() }
    };
    bench.change(0, session.seid, &update(b"mail"));
    assert_eq!(bench.leaves_to(&session), router_of(1));
    bench.restart(0);
    assert_eq!(bench.leaves_to(&session), router_of(1), "the next process knows it");
    bench.down(&session, 100);
    assert_eq!(bench.sent(0).len(), 1, "towards the UE it says nothing");
    bench.change(0, session.seid, &update(b""));
    assert_eq!(bench.leaves_to(&session), otherwise);
    bench.delete(0, session.seid);
    bench.delete(0, plain.seid);
    bench.assert_empty();
}

#[test]
fn a_policy_that_is_not_configured_is_refused_by_name() {
    let mut bench = bench();
    let response = bench.try_establish(0, &by(b"Video-LAN"));
    let failed = Some(RuleId::Far(FarId(1)));
    assert_eq!(
        (response.cause, response.offending_ie, response.failed_rule),
        (Cause::INVALID_FORWARDING_POLICY, Some(41), failed)
    );
    bench.assert_empty();
}
