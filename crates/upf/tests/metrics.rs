//! Metrics by HTTP, as scrapers and enemies ask for them.

use crate::upf::{FILE, POISON, Rig};
use api::{Answers, Mirror, MirrorSelection};
use io::mem::MemFrame;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_mins(1);
const SECTION: &str = "[metrics]\nlisten = \"127.0.0.1:0\"\n";

/// Copies go to a router that is there.
const MIRROR: &str = "[[mirror]]\nname = \"probe\"\nto = \"gre\"\ndestination = \"198.51.100.7\"\n";

fn rig(workers: u16) -> (Rig, SocketAddr) {
    let rig = Rig::start_with(&format!("{FILE}{SECTION}{MIRROR}"), workers, None);
    let address = rig.metrics.unwrap();
    (rig, address)
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// What comes back until the connection ends: head and body.
fn answer(mut stream: TcpStream) -> (String, String) {
    let mut bytes = Vec::new();
    // Reset, where more was sent than is read.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    (head.to_ascii_lowercase(), body.to_owned())
}

pub fn get(address: SocketAddr, path: &str, accept: &str) -> (String, String) {
    let mut stream = connect(address);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: upf\r\nAccept: {accept}\r\n\r\n").unwrap();
    answer(stream)
}

fn ended(rig: Rig) {
    rig.stop.store(true, Ordering::Relaxed);
    assert!(rig.end().0.is_ok());
}

fn lacks(tool: &str) -> bool {
    let lacks =
        Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err();
    if lacks {
        testing::skipped(format!("there is no `{tool}` (`./x test` unpacks Debian's)"));
    }
    lacks
}

#[test]
fn what_is_counted_is_served() {
    let (mut rig, address) = rig(2);
    let session = rig.establish(1);
    let all = MirrorSelection { to: "probe".into(), all: true, ..MirrorSelection::default() };
    let [mirror] = rig.backend.answer(Mirror::Add(all)).unwrap().mirrors.try_into().unwrap();
    rig.up(&session);
    rig.until("the packet, its copy and the session", |_| {
        let (_, text) = get(address, "/metrics", "*/*");
        text.contains("\nmillrace_sessions 1\n")
            && text.contains("{interface=\"n3\"} 1\n")
            && text.contains("copied_packets_total{to=\"probe\",slot=\"0\"} 1\n")
    });
    let open = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
    let (head, text) = get(address, "/metrics", open);
    assert!(
        head.starts_with("http/1.1 200") && head.contains("application/openmetrics-text; version=1.0.0"),
        "{head}"
    );
    assert!(text.ends_with("\n# EOF\n"));
    for line in [
        "millrace_sessions 1",
        "# TYPE millrace_worker_received_packets counter",
        "# UNIT millrace_worker_received_packets packets",
        "millrace_n4_sessions_established_total 1",
        "millrace_worker_dropped_packets_total{worker=\"0\",reason=\"malformed\"} 0",
        "millrace_port_link_up{port=\"access\"} 1",
        "millrace_interface_received_packets_total{interface=\"n3\"} 1",
        "millrace_mirror_copied_packets_total{to=\"probe\",slot=\"0\"} 1",
        "millrace_mirror_no_route_packets_total{to=\"probe\",slot=\"0\"} 0",
    ] {
        let name = line
            .trim_start_matches("# TYPE ")
            .trim_start_matches("# UNIT ")
            .split(['{', ' '])
            .next()
            .unwrap();
        let alike: Vec<_> = text.lines().filter(|line| line.contains(name)).collect();
        assert!(alike.contains(&line), "{line} is not among {alike:#?}");
    }
    // One metric's lines stand together.
    let mut seen = std::collections::HashSet::new();
    for head in text.lines().filter(|line| line.starts_with("# TYPE ")) {
        assert!(seen.insert(head), "{head}");
    }
    let (head, text) = get(address, "/metrics", "*/*");
    assert!(head.contains("text/plain; version=0.0.4") && !text.contains("# EOF"), "{head}");
    if !lacks("promtool") {
        let mut promtool = Command::new("promtool");
        promtool
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut promtool = promtool.spawn().unwrap();
        promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let said = promtool.wait_with_output().unwrap();
        let complaints = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.status.success() && complaints.is_empty(), "{complaints}");
    }
    // What there is no more is not told.
    rig.backend.answer(Mirror::Remove { id: mirror.id }).unwrap();
    assert!(!get(address, "/metrics", open).1.contains("millrace_mirror"));
    ended(rig);
}

#[test]
fn who_is_dead_is_not_well() {
    let (mut rig, address) = rig(2);
    let (head, text) = get(address, "/healthz", "*/*");
    assert!(head.starts_with("http/1.1 200") && text == "well\n", "{head}\n{text}");
    rig.n3.offer_to(0, &mut vec![MemFrame::copy_of(&POISON).unwrap()]);
    rig.until("a death that is told", |_| get(address, "/healthz", "*/*").1.contains("worker 0 has died\n"));
    let (head, _) = get(address, "/healthz", "*/*");
    assert!(head.starts_with("http/1.1 503"), "{head}");
    // What it counted before is told still. The other worker inherits what it had, some time after its death is told.
    rig.until("an inheritance that is told", |_| {
        let (_, text) = get(address, "/metrics", "*/*");
        text.contains("millrace_worker_shards{worker=\"0\"} 0\n")
            && text.contains("millrace_worker_shards{worker=\"1\"} 512\n")
    });
    ended(rig);
}

#[test]
fn enemies_are_cut_off() {
    let (rig, address) = rig(1);
    // Nobody sends anything on as many connections as there are, and on more.
    let silent: Vec<_> = (0..40).map(|_| connect(address)).collect();
    let mut slow = connect(address);
    slow.write_all(b"GET /metrics HTTP/1.1\r\nHost: ").unwrap();
    let (head, _) = get(address, "/healthz", "*/*");
    assert!(head.starts_with("http/1.1 200"), "somebody else is served in the end: {head}");
    for mut stream in silent.into_iter().chain([slow]) {
        let mut byte = [0];
        assert!(matches!(stream.read(&mut byte), Ok(0) | Err(_)), "it is closed");
    }
    let ask = |request: &[u8]| {
        let mut stream = connect(address);
        // It may be refused before it is read.
        let _ = stream.write_all(request);
        answer(stream).0
    };
    let endless = [b"GET /metrics HTTP/1.1\r\nX: ".to_vec(), vec![b'x'; 4 << 20]].concat();
    for (request, status) in [
        (&b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"[..], "http/1.1 404"),
        (
            b"POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc",
            "http/1.1 405",
        ),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "http/1.1 400"),
        (&endless, ""),
    ] {
        let head = ask(request);
        assert!(head.starts_with(status) && !head.starts_with("http/1.1 200"), "{head}");
    }
    // Somebody asks, and never reads.
    let deaf: Vec<_> = (0..16)
        .map(|_| {
            let mut stream = connect(address);
            for _ in 0..100 {
                let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
            }
            stream
        })
        .collect();
    let (head, _) = get(address, "/healthz", "*/*");
    assert!(head.starts_with("http/1.1 200"), "{head}");
    drop(deaf);
    ended(rig);
}

/// A real Prometheus.
struct Prometheus {
    child: Child,
    directory: PathBuf,
    address: SocketAddr,
}

impl Prometheus {
    fn watch(target: SocketAddr) -> Self {
        let directory = std::env::temp_dir().join(format!("millrace-prometheus-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let file = directory.join("prometheus.yml");
        let text = include_str!("../../../docs/prometheus.yml");
        let text = text.replace("127.0.0.1:9090", &target.to_string()).replace("15s", "1s");
        std::fs::write(&file, text).unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", file.display()));
        command.arg(format!("--storage.tsdb.path={}", directory.join("data").display()));
        command.arg(format!("--web.listen-address={address}"));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { child, directory, address }
    }

    /// What it answers to a query, if it answers.
    fn query(&self, query: &str) -> String {
        let Ok(mut stream) = TcpStream::connect(self.address) else { return String::new() };
        let request =
            format!("GET /api/v1/query?query={query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        if stream.write_all(request.as_bytes()).is_err() {
            return String::new();
        }
        let _ = stream.set_read_timeout(Some(PATIENCE));
        answer(stream).1
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[test]
fn prometheus_reads_it() {
    if lacks("prometheus") {
        return;
    }
    let (mut rig, address) = rig(1);
    rig.establish(1);
    let prometheus = Prometheus::watch(address);
    let until = Instant::now() + PATIENCE;
    // {"metric":{…},"value":[TIME,"1"]}
    while !prometheus.query("millrace_sessions").contains(",\"1\"]") {
        assert!(Instant::now() < until, "{}", prometheus.query("up"));
        std::thread::sleep(Duration::from_millis(100));
    }
    let said = prometheus.query("millrace_n4_sessions_established_total");
    assert!(said.contains(",\"1\"]"), "{said}");
    drop(prometheus);
    ended(rig);
}
