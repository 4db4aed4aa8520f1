//! Sessions that outlive their process.

use crate::bench::Established;
use crate::upf::{FILE, Rig};
use api::{Answers, CtlError, Drops, Dump, Dumped, ErrorCode, N4, Session, Sessions, Stop, Version};
use pfcp::Cause;
use pfcp::message::SessionDeletionResponse;
use pfcp::message_type::MessageType;
use pfcp::node::Event;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tables::Nanos;
use testing::Directory;
use upf::{Saved, UpfError};

fn state(place: &Directory) -> String {
    place.0.join("state").to_str().unwrap().to_owned()
}

fn dump(rig: &Rig, file: &str, stop: bool) -> Result<Dumped, CtlError> {
    rig.backend.answer(Dump { file: file.to_owned(), stop })
}

fn saved(file: &str) -> Saved {
    Saved::open(Path::new(file)).unwrap().unwrap()
}

/// Packets and bytes of a session that went up, as `ctl session` shows them.
fn counted(rig: &Rig, session: &Established) -> u64 {
    let named = Session { seid: Some(api::SeidText(session.seid.0)), ..Session::default() };
    rig.backend.answer(named).unwrap().pdrs.iter().map(|pdr| pdr.packets).sum()
}

fn established(rig: &Rig) -> u64 {
    let counters = rig.backend.answer(N4 { all: true }).unwrap().counters;
    counters.iter().find(|line| line.line.counter == "sessions-established").unwrap().line.value
}

/// Volumes of the last report, in packets.
fn delete(rig: &mut Rig, session: &Established) -> u64 {
    let kind = MessageType::SESSION_DELETION_REQUEST;
    let token = rig.smf.ask(Nanos(0), kind, session.seid, |_| {});
    rig.until("an answer", |rig| rig.smf.answers.contains_key(&token));
    let (_, _, body) = rig.smf.answers.remove(&token).unwrap();
    let response = SessionDeletionResponse::decode(&body).unwrap();
    assert_eq!(response.cause, Cause::ACCEPTED);
    response.usage_reports.iter().map(|usage| usage.volume.unwrap().total_packets.unwrap()).sum()
}

#[test]
fn another_process_goes_on_where_one_stopped() {
    let place = Directory::new("goes-on");
    let file = state(&place);
    let mut rig = Rig::start(2, None);
    let sessions: Vec<_> = (1..=70).map(|cp| rig.establish(cp)).collect();
    for session in &sessions[..3] {
        rig.up(session);
        rig.up(session);
    }
    let told = dump(&rig, &file, true).unwrap();
    assert_eq!((told.sessions, told.stopped), (70, true));
    assert_eq!(told.bytes, std::fs::metadata(&file).unwrap().len());
    // Recovery Time Stamps are in seconds: one of its own would be another one.
    std::thread::sleep(Duration::from_millis(1_100));
    // With another number of workers.
    let mut rig = rig.followed(FILE, 3, saved(&file)).unwrap();
    assert!(!Path::new(&file).exists(), "it is not restored a second time");
    assert!(Path::new(&(file + ".restored")).exists());
    assert_eq!((rig.backend.answer(Version {}).unwrap().sessions, established(&rig)), (70, 70));
    assert_eq!(counted(&rig, &sessions[0]), 2);
    // The tunnels lead where they led, and what is counted goes on.
    for session in &sessions {
        rig.up(session);
    }
    assert_eq!(rig.backend.answer(Drops {}).unwrap().drops, []);
    assert_eq!(counted(&rig, &sessions[0]), 3);
    let heartbeat = MessageType::HEARTBEAT_REQUEST.0;
    rig.until("a heartbeat", |rig| rig.heard.contains(&heartbeat));
    // The SMF has not noticed: it asks on, and what is new has another name than anything before.
    let new = rig.establish(71);
    assert!(sessions.iter().all(|old| old.seid != new.seid && old.teid != new.teid && old.ue != new.ue));
    rig.up(&new);
    assert_eq!(delete(&mut rig, &sessions[0]), 3);
    assert_eq!(delete(&mut rig, &sessions[9]), 1);
    assert!(
        !rig.smf.events.iter().any(|event| matches!(event, Event::PeerRestarted(_) | Event::PeerReleased(_)))
    );
    rig.backend.answer(Stop {}).unwrap();
    let (ended, _, usage) = rig.end();
    ended.unwrap();
    assert_eq!(usage.len(), 69);
}

#[test]
fn a_upf_that_goes_on_can_be_written_down_and_one_that_cant_be_goes_on() {
    let place = Directory::new("live");
    let file = state(&place);
    let mut rig = Rig::start(2, None);
    let sessions: Vec<_> = (1..=5).map(|cp| rig.establish(cp)).collect();
    rig.up(&sessions[0]);
    assert_eq!(dump(&rig, &file, false).unwrap().sessions, 5);
    let first = std::fs::read(&file).unwrap();
    // There is no way to write: not even one that was to stop does, and what there was is still there.
    let nowhere = place.0.join("not-there/state");
    for stop in [false, true] {
        let refused = dump(&rig, nowhere.to_str().unwrap(), stop).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Failed);
        assert!(refused.message.contains("not-there"), "{refused}");
    }
    assert_eq!(dump(&rig, "state", false).unwrap_err().code, ErrorCode::BadRequest);
    rig.up(&sessions[0]);
    let more = rig.establish(6);
    rig.up(&more);
    assert_eq!(std::fs::read(&file).unwrap(), first);
    assert_eq!(dump(&rig, &file, false).unwrap().sessions, 6);
    assert_eq!(saved(&file).sessions(), 6);
    assert_eq!(std::fs::read_dir(&place.0).unwrap().count(), 1, "nothing is left beside it");
    rig.stop.store(true, Ordering::Relaxed);
    rig.end().0.unwrap();
}

#[test]
fn another_nodes_sessions_are_refused() {
    let place = Directory::new("other");
    let file = state(&place);
    let mut rig = Rig::start(1, None);
    rig.establish(1);
    dump(&rig, &file, true).unwrap();
    let other = FILE.replace("upf.test", "other.test");
    let refused = rig.followed(&other, 1, saved(&file)).map(drop).unwrap_err();
    assert!(matches!(&refused, UpfError::OtherNode { node, .. } if node == "upf.test"), "{refused}");
    assert!(Path::new(&file).exists());
}

/// What the configuration doesn't have any more refuses the sessions that need it, and no others.
#[test]
fn sessions_that_cant_go_on_are_left_out() {
    let place = Directory::new("left-out");
    let file = state(&place);
    let mut rig = Rig::start(1, None);
    let sessions: Vec<_> = (1..=4).map(|cp| rig.establish(cp)).collect();
    dump(&rig, &file, true).unwrap();
    let fewer = format!("{FILE}[limits]\nsessions = 3\n");
    let rig = rig.followed(&fewer, 1, saved(&file)).unwrap();
    let left = rig.backend.answer(Sessions { limit: 10, ..Sessions::default() }).unwrap().sessions;
    assert_eq!(left.len(), 3);
    assert!(left.iter().all(|line| sessions.iter().any(|session| session.seid.0 == line.seid.0)));
    rig.stop.store(true, Ordering::Relaxed);
    rig.end().0.unwrap();
}
