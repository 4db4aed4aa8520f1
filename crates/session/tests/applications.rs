//! PDRs that ask for applications (TS 29.244 §5.4.10, §8.2.6).
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::*;
use pfcp::message::*;
use pfcp::{Cause, PdrId, RuleId};
use session::applications::{Applications, LONGEST_NAME};
use session::config::Config;
use session::portable::{Header, Restore};
use session::refusal::Refusal;
use session::rules::Application;
use session::store::{PeerId, Store};

/// Where these are detected.
fn detecting(names: &[&str]) -> Config {
    let mut applications = Applications::default();
    applications.inspects(names.iter().map(|name| name.as_bytes()));
    Config { applications, ..config() }
}

fn node(config: Config) -> (Store, PeerId) {
    let mut store = Store::new(config).unwrap();
    let peer = store.attach();
    (store, peer)
}

/// A session whose downlink rule is for this application.
fn asking(name: &'static [u8]) -> SessionEstablishmentRequest<'static> {
    let mut request = everyday();
    request.create_pdrs[1].pdi.application_id = Some(name);
    request
}

fn updating(name: Option<&'static [u8]>) -> SessionModificationRequest<'static> {
    let pdi = Pdi { application_id: name, ..pdi(pfcp::ie::Interface::CORE) };
    let update = UpdatePdr { pdi: Some(pdi), ..update_pdr(2) };
    SessionModificationRequest { update_pdrs: vec![update], ..modification() }
}

fn of(rules: &session::rules::Rules) -> Option<Application> {
    assert_eq!(rules.pdrs.iter().find(|pdr| pdr.id == PdrId(1)).unwrap().application, None);
    rules.pdrs.iter().find(|pdr| pdr.id == PdrId(2)).unwrap().application
}

#[test]
fn a_rule_has_the_application_that_it_names_until_an_update_says_otherwise() {
    let (mut store, peer) = node(detecting(&["chat", "video"]));
    assert_eq!(of(&store.establish(&everyday(), peer).unwrap().rules), None);
    assert_eq!(of(&store.establish(&asking(b""), peer).unwrap().rules), None, "an empty name says nothing");
    let video = store.establish(&asking(b"video"), peer).unwrap().rules;
    assert_eq!(of(&video), Some(Application(1)));
    let mut update = |name| store.modify(video.seid, &updating(name)).map(|modified| of(&modified.rules));
    assert_eq!(update(None).unwrap(), Some(Application(1)), "a PDI without one leaves it");
    assert_eq!(update(Some(b"chat")).unwrap(), Some(Application(0)));
    assert!(update(Some(b"Chat")).is_err(), "octet by octet");
    assert_eq!(update(Some(b"")).unwrap(), None, "an empty one takes it away");
}

#[test]
fn what_nobody_detects_is_refused_by_name() {
    let pdr = Some(RuleId::Pdr(PdrId(2)));
    let refused = |refusal: &Refusal| (refusal.cause(), refusal.offending_ie(), refusal.failed_rule());
    let (mut store, peer) = node(detecting(&["video"]));
    for name in [&b"chat"[..], b"Video", &[0xff; 9], &[b'x'; LONGEST_NAME + 1]] {
        let refusal = store.establish(&asking(name), peer).unwrap_err();
        assert_eq!(refused(&refusal), (Cause::UNKNOWN_APPLICATION_ID, Some(24), pdr));
        assert!(refusal.to_string().len() < 200, "{refusal}");
    }
    let refusal = store.establish(&asking(b"chat\x1b[2J"), peer).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "PDR 2 asks for the application \"chat\\u{1b}[2J\", which neither signatures nor PFDs here describe"
    );
    // Where nobody inspects, it is not the name that is at fault.
    let (mut store, peer) = node(config());
    let refusal = store.establish(&asking(b"video"), peer).unwrap_err();
    assert_eq!(refused(&refusal), (Cause::SERVICE_NOT_SUPPORTED, Some(24), pdr));
}

/// Rules stay when signatures or PFDs go, and match again when they come back.
#[test]
fn a_rule_outlives_its_application() {
    let (mut store, peer) = node(detecting(&["video"]));
    let seid = store.establish(&asking(b"video"), peer).unwrap().rules.seid;
    assert_eq!(store.applications().inspects([&b"chat"[..]]), [Application(1)]);
    assert!(store.establish(&asking(b"video"), peer).is_err());
    let rules = store.modify(seid, &updating(None)).unwrap().rules;
    assert_eq!(of(&rules), Some(Application(0)));
    assert!(!store.config().applications.is_detected(Application(0)));
    assert_eq!(store.applications().describe(b"video", true), Application(0));
    assert!(store.establish(&asking(b"video"), peer).is_ok());
}

/// A process that numbers applications otherwise, or doesn't detect one yet, goes on with their names.
#[test]
fn names_outlive_the_process() {
    let (mut before, peer) = node(detecting(&["video", "chat"]));
    let seid = before.establish(&asking(b"chat"), peer).unwrap().rules.seid;
    let header = Header::read(&before.header()).unwrap();
    let after = |config: Config| {
        let mut store =
            Store::new(Config { teids: header.teids(), epoch: header.epoch().next(), ..config }).unwrap();
        let mut restore = Restore::new(&mut store, &header);
        let rules = restore.session(&before.record(before.get(seid).unwrap())).unwrap().rules;
        restore.finish();
        (store, of(&rules))
    };
    let (_, application) = after(detecting(&["chat"]));
    assert_eq!(application, Some(Application(0)));
    let (mut store, application) = after(config());
    assert_eq!(application, Some(Application(0)));
    assert_eq!(store.config().applications.undetected().collect::<Vec<_>>(), [b"chat"]);
    // It is found again by the number that the rule has.
    assert_eq!(store.applications().inspects([&b"video"[..], b"chat"]), [Application(1), Application(0)]);
    assert_eq!(store.config().applications.undetected().count(), 0);
}
