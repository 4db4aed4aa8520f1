//! The `millrace` program as a user meets it: what it prints where, and what it ends with.
#![allow(clippy::unwrap_used)]

mod doctor;
mod ran;
mod sched;
#[cfg(feature = "dpdk")]
mod signals;

use api::*;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;
use testing::Directory;
use upf::{CtlServer, Responder, Timeouts};

fn millrace(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
    // The caller's own settings don't count here.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("MILLRACE_")) {
        command.env_remove(name);
    }
    command.args(args).stdin(Stdio::null());
    command
}

fn ends(output: &Output, code: i32) -> (String, String) {
    let stdout = String::from_utf8(output.stdout.clone()).unwrap();
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{stdout}{stderr}");
    (stdout, stderr)
}

/// A configuration file in it.
fn written(directory: &Directory, text: &str) -> String {
    let path = directory.0.join("upf.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn the_example_passes_its_own_check() {
    let example = ends(&millrace(&["config", "example"]).output().unwrap(), 0).0;
    let mut check = millrace(&["config", "check", "/dev/stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    check.stdin.take().unwrap().write_all(example.as_bytes()).unwrap();
    let (stdout, _) = ends(&check.wait_with_output().unwrap(), 0);
    assert_eq!(
        stdout,
        "/dev/stdin is right: node upf1.example.org, 3 ports, 2 interfaces, 2 routes, 1 pool, 2 workers\n"
    );
}

#[test]
fn the_documented_file_is_right() {
    let page = include_str!("../docs/configuration.md");
    let file = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let directory = Directory::new("documented");
    let file = written(&directory, file);
    let (stdout, _) = ends(&millrace(&["config", "check", &file]).output().unwrap(), 0);
    assert!(stdout.contains("1 port, 2 interfaces, 1 route, 0 pools, 1 worker"), "{stdout}");
}

#[test]
fn a_wrong_file_ends_with_2_and_the_line() {
    let directory = Directory::new("wrong");
    let file = written(&directory, "[n4]\nlisten = '127.0.0.1:8805'\nt1 = 3\n\n[worker]\n");
    for args in [&["config", "check", &file][..], &["run", "--check", "--config", &file]] {
        let (stdout, stderr) = ends(&millrace(args).output().unwrap(), 2);
        assert_eq!(stdout, "");
        let expected = format!(
            "{file}:3:6: 3 is not a duration: a whole number and `ms`, `s`, `m` or `h`, such as `500ms` or `10s`\n\
             \x20    3 | t1 = 3\n       |      ^\n\n\
             {file}:5:2: unknown key `worker` in the file\n\
             \x20    5 | [worker]\n       |  ^^^^^^\n  help: did you mean `workers`?\n\n\
             error: {file} has 2 problems\n"
        );
        assert_eq!(stderr, expected);
    }
}

#[test]
fn environment_and_set_come_over_the_file() {
    let directory = Directory::new("layers");
    let file = written(&directory, config::EXAMPLE);
    let check = |args: &[&str]| {
        let mut command = millrace(&["run", "--check", "-c", &file]);
        command.args(args).env("MILLRACE_NODE__ID", "192.0.2.77");
        command.output().unwrap()
    };
    assert!(ends(&check(&[]), 0).0.contains("node 192.0.2.77,"));
    assert!(ends(&check(&["--set", "node.id=192.0.2.78"]), 0).0.contains("node 192.0.2.78,"));
    let (_, stderr) = ends(&check(&["--set", "port.access.mtu=99"]), 2);
    assert!(
        stderr.starts_with("--set port.access.mtu=99: 99 is out of range\n  help: from 1280 to 9600\n"),
        "{stderr}"
    );
}

/// Whether there has to be a CUDA device, or may be one.
#[test]
fn a_check_says_who_would_look_up() {
    let directory = Directory::new("lookups");
    let file = written(&directory, config::EXAMPLE);
    let check = |lookup: &str, code| {
        let set = format!("workers.lookup={lookup}");
        ends(&millrace(&["run", "--check", "-c", &file, "--set", &set]).output().unwrap(), code)
    };
    assert!(!check("cpu", 0).0.contains("lookup = "));
    let Err(why) = upf::lookups::gpu::list() else {
        for lookup in ["cuda", "auto"] {
            let (stdout, _) = check(lookup, 0);
            assert!(stdout.contains(&format!("lookup = \"{lookup}\": a CUDA device looks up ")), "{stdout}");
        }
        return testing::skipped("there is a CUDA device: what is said without one is not seen");
    };
    let (stdout, stderr) = check("cuda", 4);
    assert!(stdout.starts_with(&format!("{file} is right: ")) && !stdout.contains("lookup = "), "{stdout}");
    assert!(stderr.ends_with(&format!("error: no CUDA device: {why}; see [workers] lookup\n")), "{stderr}");
    let (stdout, stderr) = check("auto", 0);
    let expected = format!("lookup = \"auto\": no CUDA device: {why}; workers look up by themselves\n");
    assert!(stdout.ends_with(&expected) && !stderr.contains("error"), "{stdout}{stderr}");
}

#[test]
fn what_is_not_there_and_what_is_not_a_command() {
    let (_, stderr) = ends(&millrace(&["config", "check", "/nonexistent.toml"]).output().unwrap(), 2);
    assert_eq!(
        stderr,
        "error: can't read the configuration /nonexistent.toml: No such file or directory (os error 2)\n"
    );
    for wrong in
        [&["frobnicate"][..], &[], &["run"], &["ctl", "session", "x"], &["ctl", "sessions", "--limit", "0"]]
    {
        ends(&millrace(wrong).output().unwrap(), 2);
    }
    let mut command = millrace(&["config", "schema"]);
    assert!(ends(&command.env("MILLRACE_LOG", "a=b=c").output().unwrap(), 2).1.contains("MILLRACE_LOG"));
}

#[test]
#[cfg(feature = "dpdk")]
fn memory_that_no_machine_has_is_refused_with_the_place_and_the_remedy() {
    let directory = Directory::new("memory");
    let file = written(&directory, config::EXAMPLE);
    let set = ["limits.buffered-packets=16777216", "port.access.mtu=9600", "workers.memory=no-huge"];
    let mut args = vec!["run", "--check", "-c", &file];
    set.iter().for_each(|set| args.extend(["--set", set]));
    let room = std::fs::read_to_string("/proc/meminfo").unwrap();
    let available: u64 = room
        .lines()
        .find_map(|l| l.strip_prefix("MemAvailable:"))
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    if available > 200_000_000 {
        return testing::skipped(format!("this machine has {available} kB: too much to ask for more"));
    }
    let (_, stderr) = ends(&millrace(&args).output().unwrap(), 2);
    assert!(
        stderr.starts_with("--set limits.buffered-packets=16777216: packet buffers would take "),
        "{stderr}"
    );
    assert!(
        stderr.contains("  help: lower `limits.buffered-packets` to ") || stderr.contains("more memory"),
        "{stderr}"
    );
}

#[test]
fn the_schema_is_json() {
    let (stdout, _) = ends(&millrace(&["config", "schema"]).output().unwrap(), 0);
    let schema: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(schema["properties"]["n4"]["description"], "Where SMFs speak PFCP to it.");
    assert_eq!(schema["$defs"]["PortSection"]["properties"]["mtu"]["maximum"], 9600);
}

/// A UPF with one session.
struct Fake;

impl Responder for Fake {
    fn respond(&self, request: Request) -> Result<Told, CtlError> {
        match request {
            Request::Version(_) => {
                let (version, node_id) = ("9.9.9".into(), "upf".into());
                Told::new::<Version>(&Program { version, pid: 1, uptime_seconds: 61, node_id, sessions: 1 })
            }
            Request::Sessions(query) => {
                assert_eq!(query.ue, Some([10, 0, 0, 1].into()));
                let sessions = vec![SessionLine { seid: SeidText(0x1234), ..SessionLine::default() }];
                Told::new::<Sessions>(&SessionPage { total: Some(1), sessions, ..SessionPage::default() })
            }
            Request::Session(named) => {
                let seid = named.seid.unwrap_or_default();
                Err(CtlError::new(ErrorCode::NotFound, format!("there is no session {seid}")))
            }
            Request::Ports(_) => {
                let port = PortLine { name: "p0".into(), ..PortLine::default() };
                Told::new::<Ports>(&PortList { ports: vec![port] })
            }
            Request::Workers(_) => Told::new::<Workers>(&WorkerList::default()),
            Request::Drops(_) => Told::new::<Drops>(&DropList::default()),
            Request::Stages(_) => {
                let stage =
                    |name: &str, cycles| StageLine { stage: name.into(), cycles_per_packet: Some(cycles) };
                let stages = vec![stage("parse", 20.0), stage("serve", 60.04)];
                let line = StagesLine { worker: 1, packets: 640, bursts: 10, stages };
                Told::new::<Stages>(&StagesList { stages: vec![line] })
            }
            Request::Flows(_) => {
                let (counter, kind, meaning) = ("live".into(), "gauge".into(), "Flows known now.".into());
                let flows = vec![CounterLine { counter, kind, meaning, value: 3, ..CounterLine::default() }];
                Told::new::<Flows>(&FlowCounterList { flows })
            }
            Request::FlowMarks(FlowMarks { bytes, .. }) => {
                let (counter, meaning) = ("marked".into(), "Reached.".into());
                let value = bytes.unwrap_or(0);
                let flows = vec![CounterLine { counter, meaning, value, ..CounterLine::default() }];
                Told::new::<FlowMarks>(&FlowCounterList { flows })
            }
            Request::Slices(_) => {
                let line = SliceLine {
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
                };
                Told::new::<Slices>(&SliceList { slices: vec![line] })
            }
            Request::Pfds(_) => Told::new::<Pfds>(&PfdList::default()),
            Request::Qos(_) => Told::new::<Qos>(&QosReport::default()),
            Request::Nat(_) => {
                let pool = NatPoolLine {
                    pool: "internet".into(),
                    blocks: 16_128,
                    blocks_used: 2,
                    mappings: 5,
                    mappings_made: 9,
                };
                Told::new::<Nat>(&NatStatus { pools: vec![pool], ..NatStatus::default() })
            }
            Request::Offload(_) => Told::new::<Offload>(&OffloadStatus::default()),
            Request::Lookups(_) => Told::new::<Lookups>(&LookupStatus::default()),
            Request::Routes(_) => {
                let (to, interface) = ("0.0.0.0/0".into(), "n6".into());
                let line = RouteLine { to, interface, via: Some([203, 0, 113, 254].into()), mac: None };
                Told::new::<Routes>(&RouteList { routes: vec![line], policies: Vec::new() })
            }
            Request::Neighbours(_) => {
                let line = |host, state: &str| NeighbourLine {
                    interface: "n3".into(),
                    address: [192, 0, 2, host].into(),
                    mac: (host == 10).then(|| "02:09:00:00:00:01".into()),
                    configured: false,
                    state: Some(state.into()),
                    heard_seconds: (host == 10).then_some(65),
                    users: 1,
                };
                let neighbours = vec![line(10, "reachable"), line(11, "incomplete")];
                Told::new::<Neighbours>(&NeighbourList { neighbours })
            }
            Request::Gnbs(_) => {
                let line = GnbLine {
                    address: [192, 0, 2, 10].into(),
                    rules: 3,
                    interface: Some("n3".into()),
                    error_indications: 2,
                    last_error: Some("2026-11-22T13:40:17Z".into()),
                };
                Told::new::<Gnbs>(&GnbList { gnbs: vec![line] })
            }
            Request::Pools(_) => {
                let prefixes = vec!["10.45.0.0/16".into()];
                let pool = PoolLine { prefixes, ipv4_used: 3, ipv4_size: 65_534, ..PoolLine::default() };
                Told::new::<Pools>(&PoolList { pools: vec![pool] })
            }
            Request::N4Log(query) => {
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
                let (next, missed) = (from + entries.len() as u64, u64::from(query.from == Some(0)));
                Told::new::<N4Log>(&N4Entries { next, missed, entries })
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
                let (counter, kind) = ("reports-sent".into(), "counter".into());
                let meaning = "Session reports sent.".into();
                let sent = CounterLine { counter, kind, meaning, value: 7, ..CounterLine::default() };
                let counters = vec![N4CounterLine { layer: N4Layer::Sessions, line: sent }];
                Told::new::<N4>(&N4Status { peers, counters })
            }
            Request::Mirror(Mirror::Add(MirrorSelection { to, seid, filters, direction, .. })) => {
                assert_eq!((seid, direction), (Some(SeidText(7)), MirrorDirection::Up));
                let line = MirrorLine { id: 1, to, seid, filters, ..MirrorLine::default() };
                Told::new::<Mirror>(&MirrorList { mirrors: vec![line] })
            }
            Request::Mirror(_) => Told::new::<Mirror>(&MirrorList::default()),
            _ => Err(CtlError::new(ErrorCode::Unavailable, "nobody asks that here")),
        }
    }
}

/// The UPF closes connections on which nothing is said for long; a look is taken again all the same.
#[test]
fn ctl_watches_for_longer_than_a_connection_lasts() {
    let directory = Directory::new("watch");
    let socket = directory.0.join("ctl.sock");
    let timeouts = Timeouts { idle: Duration::from_millis(500), ..Timeouts::default() };
    let _server = CtlServer::start(&socket, Arc::new(Fake), timeouts).unwrap();
    let mut watch = millrace(&["ctl", "watch", "--interval", "2", "--count", "2", "--json"]);
    let (stdout, _) = ends(&watch.env("MILLRACE_CTL__SOCKET", &socket).output().unwrap(), 0);
    assert_eq!(stdout.lines().count(), 2, "{stdout}");
}

/// On a terminal, by its own key: as any program that a signal ends, at once, and nothing is left of it but its lines.
#[test]
fn ctrl_c_ends_ctl_watch_and_leaves_the_terminal_as_it_was() {
    if Command::new("script").arg("--version").stdout(Stdio::null()).status().is_err() {
        testing::skipped("there is no `script` (util-linux) to make a terminal");
        return;
    }
    let directory = Directory::new("ctrl-c");
    let socket = directory.0.join("ctl.sock");
    let _server = CtlServer::start(&socket, Arc::new(Fake), Timeouts::default()).unwrap();
    // The shell goes on after the key.
    let (program, socket) = (env!("CARGO_BIN_EXE_millrace"), socket.display());
    let line = format!(
        "trap : INT; echo settings $(stty -g); {program} ctl watch --socket {socket}; echo ended $?; \
         echo settings $(stty -g)"
    );
    // Where tests run in the background, the key's signal may be ignored; a shell can't change that for those whom it starts (POSIX, `trap`).
    let mut terminal = Command::new("env")
        .args(["--default-signal=INT", "script", "--quiet", "--flush", "--command", &line, "/dev/null"])
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut key = terminal.stdin.take().unwrap();
    let mut shown = BufReader::new(terminal.stdout.take().unwrap());
    let mut all = String::new();
    let mut until = |what: &str| {
        let begin = all.len();
        while !all[begin..].contains(what) {
            assert!(shown.read_line(&mut all).unwrap() > 0, "{what} is not in {all:?}");
        }
        all[begin..].to_owned()
    };
    let before = until("settings");
    until("PORT");
    key.write_all(b"\x03").unwrap();
    until("ended 130");
    let after = until("settings");
    assert_eq!(before.trim(), after.trim());
    assert!(!all.contains("\x1b[?"), "no other screen, no hidden cursor: {all:?}");
    drop(key);
    assert!(terminal.wait().unwrap().success());
}

/// What is new is shown as it comes, until nobody reads any more.
#[test]
fn ctl_follows_what_smfs_ask_for() {
    let directory = Directory::new("follow");
    let socket = directory.0.join("ctl.sock");
    let _server = CtlServer::start(&socket, Arc::new(Fake), Timeouts::default()).unwrap();
    let mut child = millrace(&["ctl", "n4", "--refused", "--follow", "--limit", "2", "--json"])
        .env("MILLRACE_CTL__SOCKET", &socket)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The last two, and from then on the Fake's fourth is the end.
    for rule in ["FAR 2", "FAR 3"] {
        let line: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!((&line["failed_rule"], &line["cause"]), (&rule.into(), &73.into()));
    }
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn ctl_asks_a_running_upf() {
    let directory = Directory::new("ctl");
    let socket = directory.0.join("ctl.sock");
    let socket = socket.to_str().unwrap();
    let (_, stderr) = ends(&millrace(&["ctl", "drops", "--socket", socket]).output().unwrap(), 1);
    assert_eq!(
        stderr,
        format!(
            "error: no UPF is running here: there is no socket {socket} (start one with `millrace run --config \
             FILE`, or name another socket with --socket PATH)\n"
        )
    );
    let _server = CtlServer::start(socket.as_ref(), Arc::new(Fake), Timeouts::default()).unwrap();
    let ask = |args: &[&str]| millrace(args).env("MILLRACE_CTL__SOCKET", socket).output().unwrap();
    assert_eq!(
        ends(&ask(&["ctl", "version"]), 0).0,
        "millrace 9.9.9, node upf, process 1, up 1m 1s, 1 sessions\n"
    );
    assert_eq!(ends(&ask(&["ctl", "drops"]), 0).0, "Nothing was dropped.\n");
    let (stdout, _) = ends(&ask(&["ctl", "watch", "--count", "2", "--json"]), 0);
    let looks: Vec<serde_json::Value> =
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(looks.len() == 2 && looks.iter().all(|look| look["ports"][0]["port"] == "p0"), "{stdout}");
    let (stdout, _) = ends(&ask(&["ctl", "watch", "--count", "1"]), 0);
    assert!(stdout.starts_with("PORT ") && !stdout.contains('\x1b'), "{stdout}");
    ends(&ask(&["ctl", "watch", "--interval", "0"]), 2);
    let (stdout, _) = ends(&ask(&["ctl", "sessions", "--ue", "10.0.0.1", "--json"]), 0);
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(json["sessions"][0]["seid"], "0x0000000000001234");
    assert_eq!(
        ends(&ask(&["ctl", "n4"]), 0).0,
        "NODE ID          ADDRESS          ASSOCIATED SINCE      STARTED               SESSIONS  OUTSTANDING\n\
         smf.example.org  192.0.2.10:8805  2026-11-21T23:18:29Z  2026-11-21T08:00:00Z         5            2\n\n\
         Sessions and reports:\nCOUNT  COUNTER       MEANING\n    7  reports-sent  Session reports sent.\n"
    );
    let (stdout, _) = ends(&ask(&["ctl", "n4", "--refused", "--limit", "1"]), 0);
    assert!(stdout.ends_with(
        "73  FAR ID (108)  FAR 3  Rule creation/modification Failure: the session has no FAR 3\n"
    ));
    ends(&ask(&["ctl", "n4", "--refused", "--log"]), 2);
    assert_eq!(
        ends(&ask(&["ctl", "flows"]), 0).0,
        "COUNT  COUNTER  MEANING\n    3  live     Flows known now.\n"
    );
    assert_eq!(
        ends(&ask(&["ctl", "flows", "--watermark-bytes", "1024"]), 0).0,
        "COUNT  COUNTER  MEANING\n 1024  marked   Reached.\n"
    );
    assert!(ends(&ask(&["ctl", "flows", "--no-watermarks", "--all"]), 0).0.contains("    0  marked "));
    assert_eq!(
        ends(&ask(&["ctl", "flows", "--no-watermarks"]), 0).0,
        "1 counters are 0 (--all shows them).\n"
    );
    ends(&ask(&["ctl", "flows", "--no-watermarks", "--watermark-packets", "1"]), 2);
    assert_eq!(
        ends(&ask(&["ctl", "slices"]), 0).0,
        "SLICE  DIRECTION     GUARANTEED  MAXIMUM  PACKETS  BYTES  BEYOND GUARANTEE  DROPPED\n\
         video  uplink     500.00 Mbit/s        -        7    900                 2        1\n"
    );
    assert_eq!(
        ends(&ask(&["ctl", "routes"]), 0).0,
        "TO         INTERFACE  NEXT ROUTER    MAC\n0.0.0.0/0  n6         203.0.113.254  -\n"
    );
    assert_eq!(
        ends(&ask(&["ctl", "neighbours"]), 0).0,
        "INTERFACE  ADDRESS     MAC                FROM       STATE       HEARD      USERS\n\
         n3         192.0.2.10  02:09:00:00:00:01  ARP or ND  reachable   1m 5s ago      1\n\
         n3         192.0.2.11  -                  ARP or ND  incomplete  -              1\n"
    );
    assert_eq!(
        ends(&ask(&["ctl", "gnbs"]), 0).0,
        "ADDRESS     INTERFACE  FARS  ERROR INDICATIONS  LAST\n\
         192.0.2.10  n3            3                  2  2026-11-22T13:40:17Z\n"
    );
    assert_eq!(
        ends(&ask(&["ctl", "pools"]), 0).0,
        "NETWORK    PREFIXES      IPV4 USED   SIZE  IPV6 USED  SIZE\n\
         any other  10.45.0.0/16          3  65534          0     0\n"
    );
    assert_eq!(ends(&ask(&["ctl", "offload"]), 0).0, "Nothing is to be offloaded (offload.mode).\n");
    assert_eq!(ends(&ask(&["ctl", "lookups"]), 0).0, "Workers look up by themselves (workers.lookup).\n");
    assert!(ends(&ask(&["ctl", "qos"]), 0).0.ends_with("\nNo port steers ahead of RSS.\n"));
    assert_eq!(
        ends(&ask(&["ctl", "nat"]), 0).0,
        "POOL      BLOCKS  USED   FREE  MAPPINGS  MADE\ninternet   16128     2  16126         5     9\n"
    );
    let (stdout, _) = ends(&ask(&["ctl", "n4", "--json"]), 0);
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&json["counters"][0]["value"], &json["peers"][0]["outstanding"]), (&7.into(), &2.into()));
    let (stdout, _) = ends(&ask(&["ctl", "workers", "--stages"]), 0);
    let rows: Vec<Vec<&str>> = stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1], ["1", "640", "parse", "20.0", "25.0", "%"]);
    assert_eq!(rows[3], ["1", "640", "all", "80.0", "100.0", "%"]);
    assert_eq!(ends(&ask(&["ctl", "mirror", "list"]), 0).0, "Nothing is mirrored.\n");
    let add = ["ctl", "mirror", "add", "--to", "probe", "--seid", "7", "--direction", "up", "--json"];
    let (stdout, _) = ends(&ask(&[&add[..], &["--filter", "permit out 17 from any to any"]].concat()), 0);
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(json["mirrors"][0]["filters"][0], "permit out 17 from any to any");
    ends(&ask(&["ctl", "mirror", "add", "--to", "probe"]), 2);
    ends(&ask(&["ctl", "mirror", "add", "--to", "probe", "--all", "--ue", "10.0.0.1"]), 2);
    let (_, stderr) = ends(&ask(&["ctl", "session", "0x2a"]), 1);
    assert_eq!(stderr, "error: there is no session 0x000000000000002a\n");
}

/// One line of standard error at a time, and what is left of it.
fn said(lines: &mut impl Iterator<Item = std::io::Result<String>>, what: &str) -> bool {
    lines.any(|line| line.unwrap().contains(what))
}

fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

/// In the middle of what would take minutes, whatever the machine.
#[test]
fn an_interrupt_ends_the_demo_while_it_is_set_up() {
    const SESSIONS: u64 = 500_000;
    let mut child = millrace(&["demo", "--sessions", &SESSIONS.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(said(&mut lines, "UPF up"));
    interrupt(&child);
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    let error = rest.last().unwrap();
    // Unless the machine gave it no time to hear of it within half a second.
    if !error.starts_with("error: interrupted while ") {
        assert!(rest.iter().any(|line| line.contains("another Ctrl-C ends it at once")), "{rest:?}");
        let words: Vec<&str> = error.split_whitespace().collect();
        assert!(
            error.starts_with("error: interrupted when ") && error.contains("500000 sessions"),
            "{error}"
        );
        assert!(words[3].parse::<u64>().unwrap() < SESSIONS, "{error}");
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(ends(&output, 130).0, "");
}

#[test]
fn an_interrupt_of_the_demos_traffic_is_told_before_the_figures() {
    let mut child = millrace(&["demo", "--sessions", "8", "--seconds", "3600"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(said(&mut lines, "traffic both ways"));
    interrupt(&child);
    let error = lines.map(Result::unwrap).find(|line| line.starts_with("error: "));
    assert_eq!(error.unwrap(), "error: interrupted; the figures are of the time until then");
    let (stdout, _) = ends(&child.wait_with_output().unwrap(), 130);
    assert!(stdout.contains("packets sent") && stdout.contains("Interrupted: "), "{stdout}");
    assert!(!stdout.contains("Next:"), "{stdout}");
}

/// Few flows are measured at once, many are measured when it is interrupted. How long that takes nobody knows: so it is tried with
/// longer and longer times, and each time what can be said by then must be said.
#[test]
fn an_interrupted_benchmark_keeps_what_it_has() {
    let directory = Directory::new("interrupted");
    for tenths in std::iter::successors(Some(1), |tenths| Some(2 * tenths)) {
        let (json, svg) = (directory.0.join("figures.json"), directory.0.join("figures.svg"));
        let child = millrace(&["bench", "flow-insert", "--flows", "64,16777216", "--json"])
            .arg(&json)
            .arg("--svg")
            .arg(&svg)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100 * tenths));
        interrupt(&child);
        let output = child.wait_with_output().unwrap();
        if output.status.code().is_none() {
            // It was not yet there.
            continue;
        }
        let (stdout, stderr) = ends(&output, 130);
        if stderr.contains("error: interrupted before anything was measured\n") {
            assert_eq!(stdout, "");
            assert!(!json.exists() && !svg.exists());
            continue;
        }
        assert!(stderr.contains("error: interrupted; this is what was measured until then\n"), "{stderr}");
        let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        let results = json["results"].as_array().unwrap();
        assert!(results.iter().any(|result| result["params"]["flows"] == 64), "{json}");
        assert!(json["notes"].to_string().contains("interrupted"), "{json}");
        assert!(stdout.contains("flows=64 ") && stdout.contains("note: interrupted"), "{stdout}");
        let svg = std::fs::read_to_string(&svg).unwrap();
        assert!(svg.contains("(interrupted)") && svg.contains(">insert</text>"), "{svg}");
        return;
    }
}

#[test]
fn what_was_measured_is_in_the_picture() {
    let directory = Directory::new("picture");
    let svg = directory.0.join("figure.svg");
    let output = millrace(&["bench", "io", "--quick", "--svg"]).arg(&svg).output().unwrap();
    let (stdout, _) = ends(&output, 0);
    let svg = std::fs::read_to_string(&svg).unwrap();
    // A category and a series that the table has too, and what the axis is called.
    assert!(stdout.contains("payload=64"), "{stdout}");
    for text in ["64", "replay", "memory", "octets of payload", "cycles per packet"] {
        assert!(svg.contains(&format!(">{text}</text>")), "{text} in {svg}");
    }
}

#[test]
fn what_cant_be_written_is_told_before_it_is_measured() {
    for option in ["--json", "--svg"] {
        let output = millrace(&["bench", "flow-table", option, "/nonexistent/figures"]).output().unwrap();
        let (stdout, stderr) = ends(&output, 2);
        assert_eq!(stdout, "");
        assert_eq!(
            stderr,
            "error: can't write /nonexistent/figures: No such file or directory (os error 2)\n"
        );
    }
    // It draws several.
    let output = millrace(&["bench", "seeds", "--out", "/proc/none", "--svg", "/dev/null"]).output().unwrap();
    assert!(ends(&output, 2).1.contains("into --out"));
    let output = millrace(&["bench", "seeds", "--out", "/proc/none"]).output().unwrap();
    assert!(ends(&output, 1).1.contains("/proc/none"));
}
