#![allow(clippy::unwrap_used)]
use super::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A UPF with sessions 1 to 25,000.
#[derive(Default)]
struct Fake {
    stopped: AtomicBool,
}

fn line(seid: u64) -> SessionLine {
    SessionLine { seid: SeidText(seid), peer: "smf.example.org".into(), shard: 7, ..SessionLine::default() }
}

impl CtlBackend for Fake {
    fn version(&self) -> Result<Version, CtlError> {
        let (version, node_id) = ("0.1.0".into(), "upf".into());
        Ok(Version { version, pid: 1, uptime_seconds: 2, node_id, sessions: 25_000 })
    }
    fn sessions(&self, query: &SessionQuery) -> Result<SessionPage, CtlError> {
        let sessions =
            (1..=25_000).skip(query.offset as usize).take(query.limit as usize).map(line).collect();
        Ok(SessionPage { total: 25_000, offset: query.offset, sessions })
    }
    fn session(&self, selector: &SessionSelector) -> Result<SessionDetail, CtlError> {
        let seid = selector.seid.unwrap_or_default();
        if !(1..=25_000).contains(&seid.0) {
            return Err(CtlError::new(ErrorCode::NotFound, format!("there is no session {seid}")));
        }
        Ok(SessionDetail { session: line(seid.0), ..SessionDetail::default() })
    }
    fn ports(&self) -> Result<Vec<PortLine>, CtlError> {
        Ok(vec![PortLine { name: "p0".into(), ..PortLine::default() }])
    }
    fn drops(&self) -> Result<Vec<DropLine>, CtlError> {
        Ok(vec![crate::convert::dropped((datapath::Reason::Malformed, 3))])
    }
    fn workers(&self) -> Result<Vec<WorkerLine>, CtlError> {
        Err(CtlError::new(ErrorCode::Unavailable, "worker 0 does not answer"))
    }
    fn stages(&self) -> Result<Vec<StagesLine>, CtlError> {
        Ok(Vec::new())
    }
    fn peers(&self) -> Result<Vec<PeerLine>, CtlError> {
        Ok(Vec::new())
    }
    fn flows(&self) -> Result<Vec<FlowCounterLine>, CtlError> {
        let line = FlowCounterLine { counter: "live".into(), meaning: "Flows known now.".into(), value: 3 };
        Ok(vec![line])
    }
    fn flow_marks(&self, request: &FlowMarksRequest) -> Result<Vec<FlowCounterLine>, CtlError> {
        let value = request.bytes.unwrap_or(0) + u64::from(request.packets.unwrap_or(0));
        Ok(vec![FlowCounterLine { counter: "marked".into(), meaning: "Reached.".into(), value }])
    }
    fn scale(&self, request: &ScaleRequest) -> Result<ScaleStatus, CtlError> {
        Ok(ScaleStatus { asked: request.workers, active: 2, ..ScaleStatus::default() })
    }

    fn qos(&self) -> Result<QosReport, CtlError> {
        let line =
            ClassLine { port: "p0".into(), class: "voice".into(), dropped_red: 4, ..ClassLine::default() };
        Ok(QosReport { classes: vec![line], receive: Vec::new() })
    }

    fn slices(&self) -> Result<Vec<SliceLine>, CtlError> {
        Ok(vec![SliceLine {
            name: "video".into(),
            direction: "uplink".into(),
            guaranteed: Some(500_000_000),
            maximum: None,
            packets: 7,
            bytes: 900,
            yellow_packets: 2,
            yellow_bytes: 300,
            dropped_packets: 1,
            dropped_bytes: 100,
        }])
    }

    fn nat(&self) -> Result<NatStatus, CtlError> {
        let pool =
            NatPoolLine { pool: "internet".into(), blocks: 16128, blocks_used: 2, ..NatPoolLine::default() };
        Ok(NatStatus { pools: vec![pool], ..NatStatus::default() })
    }

    fn offload(&self) -> Result<OffloadStatus, CtlError> {
        Ok(OffloadStatus { flows: 4, ..OffloadStatus::default() })
    }

    fn routes(&self) -> Result<Vec<RouteLine>, CtlError> {
        let (to, interface) = ("0.0.0.0/0".into(), "n6".into());
        Ok(vec![RouteLine { to, interface, via: Some([203, 0, 113, 254].into()), mac: None }])
    }
    fn neighbours(&self) -> Result<Vec<NeighbourLine>, CtlError> {
        let (address, mac) = ([192, 0, 2, 10].into(), Some("02:09:00:00:00:01".into()));
        let (state, heard_seconds, users) = (Some("reachable".into()), Some(3), 2);
        let interface = "n3".into();
        Ok(vec![NeighbourLine { interface, address, mac, configured: true, state, heard_seconds, users }])
    }
    fn gnbs(&self) -> Result<Vec<GnbLine>, CtlError> {
        Ok(vec![GnbLine {
            address: [192, 0, 2, 10].into(),
            rules: 3,
            interface: Some("n3".into()),
            error_indications: 2,
            last_error: Some("2026-11-22T13:40:17Z".into()),
        }])
    }
    fn pools(&self) -> Result<Vec<PoolLine>, CtlError> {
        let prefixes = vec!["10.45.0.0/16".into()];
        let pool = PoolLine { prefixes, ipv4_used: 3, ipv4_size: 65_534, ..PoolLine::default() };
        Ok(vec![pool])
    }
    fn config(&self) -> Result<String, CtlError> {
        Ok("[limits]\nsessions = 7\n".into())
    }
    fn n4_log(&self, query: &N4LogQuery) -> Result<N4Log, CtlError> {
        let line = |number: u64| N4LogLine {
            time: "2026-11-22T13:40:17Z".into(),
            smf: "smf.example.org".into(),
            message: Some("Session Modification Request".into()),
            seid: Some(SeidText(0x2_0000_0001)),
            cause: Some(73),
            cause_name: Some("Rule creation/modification Failure".into()),
            offending_ie: Some(108),
            offending_ie_name: Some("FAR ID".into()),
            failed_rule: Some(format!("FAR {number}")),
            why: format!("the session has no FAR {number}"),
            ..N4LogLine::default()
        };
        let all = if query.refused { 0..4u64 } else { 0..0 };
        let from = query.from.unwrap_or(all.end.saturating_sub(query.limit.into()));
        let entries: Vec<_> = all.skip(from as usize).take(query.limit as usize).map(line).collect();
        Ok(N4Log { next: from + entries.len() as u64, missed: u64::from(query.from == Some(0)), entries })
    }
    fn n4(&self) -> Result<N4Status, CtlError> {
        let peers = vec![N4PeerLine {
            node_id: "smf.example.org".into(),
            address: ([192, 0, 2, 10], 8805).into(),
            associated_since: "2026-11-21T23:18:29Z".into(),
            recovery: "2026-11-21T08:00:00Z".into(),
            sessions: 5,
            outstanding: 2,
        }];
        let counters = vec![N4CounterLine::new(N4Layer::Node, ("timeouts", " Given up.", 7))];
        Ok(N4Status { peers, counters })
    }
    fn mirror(&self, request: &MirrorRequest) -> Result<Vec<MirrorLine>, CtlError> {
        match request {
            MirrorRequest::Add(selection) => {
                let (to, filters, direction) =
                    (selection.to.clone(), selection.filters.clone(), selection.direction);
                Ok(vec![MirrorLine {
                    id: 1,
                    to,
                    filters,
                    direction,
                    seid: selection.seid,
                    ..MirrorLine::default()
                }])
            }
            MirrorRequest::List => Ok(Vec::new()),
            MirrorRequest::Remove { id } => {
                Err(CtlError::new(ErrorCode::NotFound, format!("there is no mirror {id}")))
            }
        }
    }
    fn stop(&self) -> Result<(), CtlError> {
        self.stopped.store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// A directory of its own for each test, removed with it.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("millrace-ctl-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Self(std::env::temp_dir().join(name))
    }
    fn socket(&self) -> PathBuf {
        self.0.join("ctl.sock")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const SHORT: Timeouts = Timeouts {
    idle: Duration::from_millis(400),
    request: Duration::from_millis(400),
    answer: Duration::from_millis(400),
};

fn start(directory: &Directory, timeouts: Timeouts) -> CtlServer {
    CtlServer::start(&directory.socket(), Arc::new(Fake::default()), timeouts).unwrap()
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
    let directory = Directory::new();
    let server = start(&directory, Timeouts::default());
    assert_eq!(server.path().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(directory.0.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let mut client = connect(server.path());
    let page = client.sessions(SessionQuery { offset: 10, limit: 2, ..SessionQuery::default() }).unwrap();
    assert_eq!((page.total, page.offset, &page.sessions[..]), (25_000, 10, &[line(11), line(12)][..]));
    assert_eq!(client.session(SeidText(3)).unwrap().session, line(3));
    let refused = client.session(SeidText(0)).unwrap_err();
    assert_eq!(refused.to_string(), "there is no session 0x0000000000000000");
    let page = client.sessions(SessionQuery { limit: u32::MAX, ..SessionQuery::default() }).unwrap();
    assert_eq!(page.sessions.len(), MAX_PAGE as usize);
    assert!(matches!(
        client.ask(&Request::Workers),
        Err(CtlClientError::Refused(CtlError { code: ErrorCode::Unavailable, .. }))
    ));
    assert!(matches!(client.ask(&Request::Ports).unwrap(), Answer::Ports { ports } if ports.len() == 1));
    assert!(matches!(client.ask(&Request::Drops).unwrap(), Answer::Drops { drops } if drops[0].packets == 3));
    assert!(matches!(client.ask(&Request::Peers).unwrap(), Answer::Peers { peers } if peers.is_empty()));
    assert!(matches!(client.ask(&Request::Nat).unwrap(), Answer::Nat(nat) if nat.pools[0].blocks_used == 2));
    assert!(matches!(client.ask(&Request::Flows).unwrap(), Answer::Flows { flows } if flows[0].value == 3));
    let marks = Request::FlowMarks(FlowMarksRequest { bytes: Some(40), packets: Some(2) });
    assert!(matches!(client.ask(&marks).unwrap(), Answer::Flows { flows } if flows[0].value == 42));
    assert!(
        matches!(client.ask(&Request::Slices).unwrap(), Answer::Slices { slices } if slices[0].bytes == 900)
    );
    assert!(
        matches!(client.ask(&Request::Qos).unwrap(), Answer::Qos(qos) if qos.classes[0].dropped_red == 4)
    );
    assert!(matches!(client.ask(&Request::Offload).unwrap(), Answer::Offload(status) if status.flows == 4));
    assert!(matches!(client.ask(&Request::N4).unwrap(), Answer::N4(n4) if n4.peers[0].outstanding == 2));
    let query = N4LogQuery { refused: true, from: Some(3), limit: 5 };
    let answer = client.ask(&Request::N4Log(query)).unwrap();
    assert!(matches!(answer, Answer::N4Log(log) if (log.entries.len(), log.next) == (1, 4)));
}

#[test]
fn mirrors_are_begun_told_and_ended() {
    let directory = Directory::new();
    let server = start(&directory, Timeouts::default());
    let mut client = connect(server.path());
    let selection = MirrorSelection {
        to: "probe".into(),
        seid: Some(SeidText(7)),
        filters: vec!["permit out 17 from any to any".into()],
        direction: MirrorDirection::Up,
        ..MirrorSelection::default()
    };
    let answer = client.ask(&Request::Mirror(MirrorRequest::Add(selection.clone()))).unwrap();
    let Answer::Mirrors { mirrors } = answer else { panic!("{answer:?}") };
    assert_eq!((mirrors[0].seid, mirrors[0].direction), (selection.seid, selection.direction));
    assert_eq!(mirrors[0].filters, selection.filters);
    let answer = client.ask(&Request::Mirror(MirrorRequest::List)).unwrap();
    assert_eq!(answer, Answer::Mirrors { mirrors: Vec::new() });
    assert!(raw(server.path(), b"{\"ask\":\"mirror\",\"do\":\"remove\",\"id\":3}\n").contains("no mirror 3"));
}

#[test]
fn stop_reaches_the_backend() {
    let directory = Directory::new();
    let fake = Arc::new(Fake::default());
    let server = CtlServer::start(&directory.socket(), fake.clone(), SHORT).unwrap();
    assert_eq!(connect(server.path()).ask(&Request::Stop).unwrap(), Answer::Stopping);
    assert!(fake.stopped.load(Ordering::Relaxed));
}

#[test]
fn lines_are_as_documented() {
    let directory = Directory::new();
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
    let directory = Directory::new();
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
    let directory = Directory::new();
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
    let directory = Directory::new();
    let server = start(&directory, SHORT);
    let mut deaf = UnixStream::connect(server.path()).unwrap();
    deaf.set_write_timeout(Some(Duration::from_secs(3))).unwrap();
    // Each answer has a megabyte; nobody reads it.
    let result = (0..200_000).try_for_each(|_| deaf.write_all(b"{\"ask\":\"sessions\",\"limit\":10000}\n"));
    let kind = result.unwrap_err().kind();
    assert!(matches!(kind, std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset), "{kind}");
    assert!(connect(server.path()).ask(&Request::Version).is_ok());
}

#[test]
fn connections_are_bounded() {
    let directory = Directory::new();
    let server = start(&directory, Timeouts::default());
    let mut held: Vec<CtlClient> = (0..MAX_CONNECTIONS).map(|_| connect(server.path())).collect();
    for client in &mut held {
        client.ask(&Request::Version).unwrap();
    }
    let refused = connect(server.path()).ask(&Request::Version);
    assert!(
        matches!(refused, Err(CtlClientError::Refused(CtlError { code: ErrorCode::Busy, .. }))),
        "{refused:?}"
    );
    drop(held);
    let begun = Instant::now();
    while connect(server.path()).ask(&Request::Version).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(3), "the place is not free again");
    }
}

#[test]
fn what_is_at_the_path_already() {
    let directory = Directory::new();
    std::fs::create_dir(&directory.0).unwrap();
    // Left behind by a UPF that was killed.
    drop(UnixListener::bind(directory.socket()).unwrap());
    assert!(matches!(
        CtlClient::connect(&directory.socket(), Duration::from_secs(1)),
        Err(CtlClientError::NobodyListens { .. })
    ));
    let server = start(&directory, SHORT);
    let second = CtlServer::start(&directory.socket(), Arc::new(Fake::default()), SHORT);
    assert!(matches!(second, Err(CtlBindError::InUse { .. })));
    drop(second);
    assert!(connect(server.path()).ask(&Request::Version).is_ok());
    drop(server);
    assert!(!directory.socket().exists());
    assert!(matches!(
        CtlClient::connect(&directory.socket(), Duration::from_secs(1)),
        Err(CtlClientError::NoSocket { .. })
    ));
    std::fs::write(directory.socket(), "a file").unwrap();
    let blocked = CtlServer::start(&directory.socket(), Arc::new(Fake::default()), SHORT);
    assert!(matches!(blocked, Err(CtlBindError::NotASocket { .. })));
    assert_eq!(std::fs::read_to_string(directory.socket()).unwrap(), "a file");
}

#[test]
fn a_path_that_was_taken_over_is_left_alone() {
    let directory = Directory::new();
    let first = start(&directory, SHORT);
    std::fs::remove_file(directory.socket()).unwrap();
    let second = start(&directory, SHORT);
    drop(first);
    assert!(connect(second.path()).ask(&Request::Version).is_ok());
}

#[test]
fn a_path_that_is_too_long() {
    let path = std::env::temp_dir().join("x".repeat(200));
    let error = CtlServer::start(&path, Arc::new(Fake::default()), SHORT).err().unwrap();
    assert!(matches!(error, CtlBindError::Io { .. }));
}
