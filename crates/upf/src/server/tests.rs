#![allow(clippy::unwrap_used)]
use super::*;
use api::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use testing::Directory;

/// A UPF with sessions 1 to 25,000.
#[derive(Default)]
struct Fake {
    stopped: AtomicBool,
}

fn line(seid: u64) -> SessionLine {
    SessionLine { seid: SeidText(seid), peer: "smf.example.org".into(), shard: 7, ..SessionLine::default() }
}

impl Responder for Fake {
    fn respond(&self, request: Request) -> Result<Told, CtlError> {
        match request {
            Request::Version(_) => {
                let (version, node_id) = ("0.1.0".into(), "upf".into());
                let sessions = 25_000;
                Told::new::<Version>(&Program { version, pid: 1, uptime_seconds: 2, node_id, sessions })
            }
            Request::Sessions(Sessions { offset, limit, .. }) => {
                let sessions = (1..=25_000).skip(offset as usize).take(limit as usize).map(line).collect();
                Told::new::<Sessions>(&SessionPage { total: Some(25_000), offset, sessions, next: None })
            }
            Request::Session(Session { seid, .. }) => {
                let seid = seid.unwrap_or_default();
                if !(1..=25_000).contains(&seid.0) {
                    return Err(CtlError::new(ErrorCode::NotFound, format!("there is no session {seid}")));
                }
                let detail = SessionDetail { session: line(seid.0), ..SessionDetail::default() };
                Told::new::<Session>(&detail)
            }
            Request::Drops(_) => {
                let drops = vec![crate::convert::dropped((datapath::Reason::Malformed, 3))];
                Told::new::<Drops>(&DropList { drops })
            }
            Request::N4(_) => {
                let peers = vec![N4PeerLine {
                    node_id: "smf.example.org".into(),
                    address: ([192, 0, 2, 10], 8805).into(),
                    associated_since: "2026-11-21T23:18:29Z".into(),
                    recovery: "2026-11-21T08:00:00Z".into(),
                    sessions: 5,
                    outstanding: 2,
                }];
                let counters = vec![N4CounterLine {
                    layer: N4Layer::Node,
                    line: CounterLine { counter: "timeouts".into(), value: 7, ..CounterLine::default() },
                }];
                Told::new::<N4>(&N4Status { peers, counters })
            }
            Request::N4Log(N4Log { refused: true, limit: 1, .. }) => {
                let line = N4LogLine {
                    time: "2026-11-22T13:40:17Z".into(),
                    smf: "smf.example.org".into(),
                    message: Some("Session Modification Request".into()),
                    seid: Some(SeidText(0x2_0000_0001)),
                    cause: Some(73),
                    cause_name: Some("Rule creation/modification Failure".into()),
                    offending_ie: Some(108),
                    offending_ie_name: Some("FAR ID".into()),
                    failed_rule: Some("FAR 3".into()),
                    why: "the session has no FAR 3".into(),
                    ..N4LogLine::default()
                };
                Told::new::<N4Log>(&N4Entries { entries: vec![line], next: 4, missed: 0 })
            }
            Request::Mirror(Mirror::Add(MirrorSelection { to, seid, filters, direction, .. })) => {
                let line = MirrorLine { id: 1, to, filters, direction, seid, ..MirrorLine::default() };
                Told::new::<Mirror>(&MirrorList { mirrors: vec![line] })
            }
            Request::Mirror(Mirror::Remove { id }) => {
                Err(CtlError::new(ErrorCode::NotFound, format!("there is no mirror {id}")))
            }
            Request::Stop(_) => {
                self.stopped.store(true, Ordering::Relaxed);
                Told::new::<Stop>(&Stopping {})
            }
            _ => Err(CtlError::new(ErrorCode::Unavailable, "worker 0 does not answer")),
        }
    }
}

const SHORT: Timeouts = Timeouts {
    idle: Duration::from_millis(400),
    request: Duration::from_millis(400),
    answer: Duration::from_millis(400),
};

/// In a directory that is not there yet.
fn socket(directory: &Directory) -> PathBuf {
    directory.0.join("run/ctl.sock")
}

fn start(directory: &Directory, timeouts: Timeouts) -> CtlServer {
    CtlServer::start(&socket(directory), Arc::new(Fake::default()), timeouts).unwrap()
}

fn connect(path: &Path) -> CtlClient {
    CtlClient::connect(path, Duration::from_secs(5)).unwrap()
}

/// Sends bytes, ends the sending side, and returns all that comes back.
fn raw(path: &Path, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    // A server that closes with unread bytes resets the connection behind its answer.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

#[test]
fn questions_are_answered_in_order() {
    let directory = Directory::new("ctl");
    let server = start(&directory, Timeouts::default());
    assert_eq!(server.path().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(directory.0.join("run").metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let mut client = connect(server.path());
    let page = client.ask(&Sessions { offset: 10, limit: 2, ..Sessions::default() }).unwrap();
    assert_eq!((page.total, page.offset, &page.sessions[..]), (Some(25_000), 10, &[line(11), line(12)][..]));
    let session = |seid| Session { seid: Some(SeidText(seid)), ..Session::default() };
    assert_eq!(client.ask(&session(3)).unwrap().session, line(3));
    let refused = client.ask(&session(0)).unwrap_err();
    assert_eq!(refused.to_string(), "there is no session 0x0000000000000000");
    assert!(matches!(
        client.ask(&Workers {}),
        Err(CtlClientError::Refused(CtlError { code: ErrorCode::Unavailable, .. }))
    ));
    assert_eq!(client.ask(&Drops {}).unwrap().drops[0].packets, 3);
    assert_eq!(client.ask(&N4::default()).unwrap().peers[0].outstanding, 2);
    let log = client.ask(&N4Log { refused: true, from: Some(3), limit: 1 }).unwrap();
    assert_eq!((log.entries.len(), log.next), (1, 4));
}

#[test]
fn mirrors_are_begun_and_ended() {
    let directory = Directory::new("ctl");
    let server = start(&directory, Timeouts::default());
    let mut client = connect(server.path());
    let selection = MirrorSelection {
        to: "probe".into(),
        seid: Some(SeidText(7)),
        filters: vec!["permit out 17 from any to any".into()],
        direction: MirrorDirection::Up,
        ..MirrorSelection::default()
    };
    let MirrorList { mirrors } = client.ask(&Mirror::Add(selection.clone())).unwrap();
    assert_eq!((mirrors[0].seid, mirrors[0].direction), (selection.seid, selection.direction));
    assert_eq!(mirrors[0].filters, selection.filters);
    assert!(raw(server.path(), b"{\"ask\":\"mirror\",\"do\":\"remove\",\"id\":3}\n").contains("no mirror 3"));
}

#[test]
fn stop_reaches_who_answers() {
    let directory = Directory::new("ctl");
    let fake = Arc::new(Fake::default());
    let server = CtlServer::start(&socket(&directory), fake.clone(), SHORT).unwrap();
    assert_eq!(connect(server.path()).ask(&Stop {}).unwrap(), Stopping {});
    assert!(fake.stopped.load(Ordering::Relaxed));
}

#[test]
fn lines_are_as_documented() {
    let directory = Directory::new("ctl");
    let server = start(&directory, SHORT);
    insta::assert_snapshot!(raw(
        server.path(),
        b"{\"ask\":\"version\"}\n{\"ask\":\"n4\"}\n{\"ask\":\"n4-log\",\"refused\":true,\"limit\":1}\n{\"ask\":\"sessions\",\"limit\":1}\n{\"ask\":\"session\",\"seid\":\"0x2\"}\n\
          {\"ask\":\"session\",\"seid\":3}\n{\"ask\":\"drops\"}\n\n{\"ask\":\"weather\"}\n{\"ask\":\"session\"}\n\
          {\"ask\":\"session\",\"seid\":-1}\n{\"ask\":\"sessions\",\"limits\":1}\nnonsense\n\xff\xfe\n{\"ask\":\"stop\"}"
    ));
}

#[test]
fn an_oversized_request_is_refused() {
    let directory = Directory::new("ctl");
    let server = start(&directory, SHORT);
    let answer = raw(server.path(), &vec![b'['; 4 * MAX_REQUEST_BYTES]);
    assert!(answer.is_empty() || answer.contains("too-long"), "{answer}");
    let mut exact = vec![b' '; MAX_REQUEST_BYTES - 18];
    exact.extend(b"{\"ask\":\"version\"}\n");
    assert!(raw(server.path(), &exact).contains("25000"));
    let answer = raw(server.path(), &vec![b'['; MAX_REQUEST_BYTES]);
    assert!(answer.contains("too-long"), "{answer}");
    let nested = [vec![b'['; MAX_REQUEST_BYTES - 2], b"\n".to_vec()].concat();
    assert!(raw(server.path(), &nested).contains("bad-request"));
}

#[test]
fn slow_and_silent_clients_are_let_go() {
    let directory = Directory::new("ctl");
    let server = start(&directory, SHORT);
    let mut slow = UnixStream::connect(server.path()).unwrap();
    let silent = UnixStream::connect(server.path()).unwrap();
    let begun = Instant::now();
    // A byte now and then doesn't extend the time for the whole request.
    let mut writes = 0;
    while slow.write_all(b" ").is_ok() && begun.elapsed() < Duration::from_secs(4) {
        writes += 1;
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(writes > 2 && begun.elapsed() < Duration::from_secs(3), "{writes} writes");
    let mut answer = String::new();
    BufReader::new(slow).read_line(&mut answer).unwrap();
    assert!(answer.contains("timed-out"), "{answer}");
    silent.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    assert_eq!((&silent).read(&mut [0; 8]).unwrap(), 0);
}

#[test]
fn a_client_that_does_not_read_is_let_go() {
    let directory = Directory::new("ctl");
    let server = start(&directory, SHORT);
    let mut deaf = UnixStream::connect(server.path()).unwrap();
    deaf.set_write_timeout(Some(Duration::from_secs(3))).unwrap();
    // Each answer has a megabyte; nobody reads it.
    let result = (0..200_000).try_for_each(|_| deaf.write_all(b"{\"ask\":\"sessions\",\"limit\":10000}\n"));
    let kind = result.unwrap_err().kind();
    assert!(matches!(kind, std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset), "{kind}");
    assert!(connect(server.path()).ask(&Version {}).is_ok());
}

#[test]
fn connections_are_bounded() {
    let directory = Directory::new("ctl");
    let server = start(&directory, Timeouts::default());
    let mut held: Vec<CtlClient> = (0..MAX_CONNECTIONS).map(|_| connect(server.path())).collect();
    for client in &mut held {
        client.ask(&Version {}).unwrap();
    }
    let refused = connect(server.path()).ask(&Version {});
    assert!(
        matches!(refused, Err(CtlClientError::Refused(CtlError { code: ErrorCode::Busy, .. }))),
        "{refused:?}"
    );
    drop(held);
    let begun = Instant::now();
    while connect(server.path()).ask(&Version {}).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(3), "the place is not free again");
    }
}

#[test]
fn what_is_at_the_path_already() {
    let directory = Directory::new("ctl");
    std::fs::create_dir(directory.0.join("run")).unwrap();
    // Left behind by a UPF that was killed.
    drop(UnixListener::bind(socket(&directory)).unwrap());
    assert!(matches!(
        CtlClient::connect(&socket(&directory), Duration::from_secs(1)),
        Err(CtlClientError::NobodyListens { .. })
    ));
    let server = start(&directory, SHORT);
    let second = CtlServer::start(&socket(&directory), Arc::new(Fake::default()), SHORT);
    assert!(matches!(second, Err(CtlBindError::InUse { .. })));
    drop(second);
    assert!(connect(server.path()).ask(&Version {}).is_ok());
    drop(server);
    assert!(!socket(&directory).exists());
    assert!(matches!(
        CtlClient::connect(&socket(&directory), Duration::from_secs(1)),
        Err(CtlClientError::NoSocket { .. })
    ));
    std::fs::write(socket(&directory), "a file").unwrap();
    let blocked = CtlServer::start(&socket(&directory), Arc::new(Fake::default()), SHORT);
    assert!(matches!(blocked, Err(CtlBindError::NotASocket { .. })));
    assert_eq!(std::fs::read_to_string(socket(&directory)).unwrap(), "a file");
}

#[test]
fn a_path_that_was_taken_over_is_left_alone() {
    let directory = Directory::new("ctl");
    let first = start(&directory, SHORT);
    std::fs::remove_file(socket(&directory)).unwrap();
    let second = start(&directory, SHORT);
    drop(first);
    assert!(connect(second.path()).ask(&Version {}).is_ok());
}

#[test]
fn a_path_that_is_too_long() {
    let path = std::env::temp_dir().join("x".repeat(200));
    let error = CtlServer::start(&path, Arc::new(Fake::default()), SHORT).err().unwrap();
    assert!(matches!(error, CtlBindError::Io { .. }));
}
