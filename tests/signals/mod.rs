//! A running UPF and signals: none ends it without a word, and none leaves its socket behind.

#![allow(clippy::expect_used)]

use super::{Directory, ends, millrace, written};
use pfcp::Datagram;
use pfcp::ie::{NodeId, RecoveryTimeStamp};
use pfcp::message_type::MessageType;
use pfcp::node::{Node, NodeConfig, Output, Role};
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tables::Nanos;

const PATIENCE: Duration = Duration::from_mins(1);

/// A UPF on devices that swallow everything; N4 on this loopback address, for SMFs that answer on port 8805 of another.
fn configuration(directory: &Directory, n4: &str) -> String {
    let socket = directory.0.join("ctl.sock");
    let socket = socket.display();
    format!(
        r#"
[node]
id = "upf.test"
[n4]
listen = "{n4}:8805"
last-reports = "2s"
[[port]]
name = "access"
device = "net_null0,no-rx=1"
[[port]]
name = "core"
device = "net_null1,no-rx=1"
[[interface]]
name = "n3"
port = "access"
roles = ["n3"]
addresses = ["192.0.2.1/24"]
[[interface]]
name = "n6"
port = "core"
roles = ["n6"]
addresses = ["203.0.113.1/24"]
[[route]]
to = "0.0.0.0/0"
via = "203.0.113.254"
[workers]
memory = "no-huge"
[limits]
buffered-packets = 256
[ctl]
socket = "{socket}"
"#
    )
}

struct Upf {
    child: Child,
    log: Arc<Mutex<String>>,
    directory: Directory,
    file: String,
}

impl Upf {
    fn start(name: &str, n4: &str) -> Self {
        let directory = Directory::new(name);
        let file = written(&directory, &configuration(&directory, n4));
        let mut command = millrace(&["run", "--config", &file]);
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let log = Arc::<Mutex<String>>::default();
        let (lines, kept) = (BufReader::new(child.stderr.take().unwrap()), Arc::clone(&log));
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let mut kept = kept.lock().unwrap();
                kept.push_str(&line);
                kept.push('\n');
            }
        });
        let mut upf = Self { child, log, directory, file };
        upf.says("ask with `millrace ctl`");
        upf
    }

    fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits for these words in the log, which is forgotten up to there.
    fn says(&mut self, words: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            let mut log = self.log.lock().unwrap();
            if let Some(at) = log.find(words) {
                log.drain(..at + words.len());
                return;
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < until, "no `{words}` ({ended:?}) in:\n{log}");
            drop(log);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
    }

    fn ask(&self, what: &str) -> String {
        let socket = self.directory.0.join("ctl.sock");
        ends(&millrace(&["ctl", what, "--socket", socket.to_str().unwrap()]).output().unwrap(), 0).0
    }

    /// How it ends, and that it leaves nothing behind.
    fn end(mut self, code: i32) {
        let until = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() > until => panic!("it does not end:\n{}", self.log()),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        assert_eq!((status.code(), status.signal()), (Some(code), None), "{}", self.log());
        let left: Vec<_> =
            std::fs::read_dir(&self.directory.0).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["upf.toml"], "nothing else is left");
    }
}

impl Drop for Upf {
    fn drop(&mut self) {
        // It has ended, unless the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An SMF that sets up an association; the types of the UPF's messages are what it keeps.
fn associated(smf: &str, upf: &str) -> UdpSocket {
    let socket = UdpSocket::bind((smf, 8805)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let upf: SocketAddr = (upf.parse::<std::net::IpAddr>().unwrap(), 8805).into();
    socket.connect(upf).unwrap();
    let id = NodeId::Ip(socket.local_addr().unwrap().ip());
    let mut node = Node::new(NodeConfig::new(Role::Cp, id, RecoveryTimeStamp(1)));
    let mut out = Output::default();
    node.associate(Nanos(0), upf, &mut out).unwrap();
    for (_, datagram) in out.datagrams() {
        socket.send(datagram).unwrap();
    }
    out.clear();
    let mut buffer = [0; 2_048];
    while node.peers().next().is_none() {
        let length = socket.recv(&mut buffer).unwrap();
        for message in Datagram::new(&buffer[..length]) {
            node.receive(Nanos(0), upf, message, &mut out);
        }
    }
    socket
}

#[test]
fn whatever_stops_a_upf_its_smf_hears_of_it_and_no_socket_is_left() {
    for (at, signal) in ["TERM", "INT", "QUIT"].into_iter().enumerate() {
        let (smf, n4) = (format!("127.19.{at}.2"), format!("127.19.{at}.1"));
        let upf = Upf::start(&format!("stop-{signal}"), &n4);
        let socket = associated(&smf, &n4);
        upf.signal(signal);
        let mut buffer = [0; 2_048];
        loop {
            let length = socket.recv(&mut buffer).expect("the UPF says nothing");
            if length > 1 && buffer[1] == MessageType::ASSOCIATION_UPDATE_REQUEST.0 {
                break;
            }
        }
        upf.end(0);
    }
}

#[test]
fn a_upf_reads_its_configuration_anew_and_other_signals_do_nothing() {
    let mut upf = Upf::start("reload", "127.19.9.1");
    for signal in ["USR1", "USR2"] {
        upf.signal(signal);
        upf.says("mean nothing here");
    }
    assert!(upf.ask("version").contains("node upf.test"));
    let text = std::fs::read_to_string(&upf.file).unwrap();
    // What can be changed is, and the rest is named.
    let changed = text
        .replace("203.0.113.254", "203.0.113.253")
        .replace("last-reports = \"2s\"", "last-reports = \"1s\"\nt1 = \"1s\"");
    std::fs::write(&upf.file, changed.clone() + "[log]\nfilter = \"debug\"\n").unwrap();
    upf.signal("HUP");
    upf.says("the configuration was read anew changed=\"route, n4.last-reports, log\"");
    upf.says("take effect with the next start: n4.t1");
    let in_force = upf.ask("config");
    for line in ["via = \"203.0.113.253\"", "last-reports = \"1s\"", "filter = \"debug\"", "t1 = \"3s\""] {
        assert!(in_force.lines().any(|found| found == line), "{line}: {in_force}");
    }
    // A file with a mistake changes nothing, and the mistake is told with its place.
    std::fs::write(&upf.file, changed + "[log]\nfilter = \"debug\"\nlevel = 3\n").unwrap();
    upf.signal("HUP");
    upf.says("unknown key `level` in [log]");
    upf.says("nothing was changed");
    std::fs::remove_file(&upf.file).unwrap();
    upf.signal("HUP");
    upf.says("can't read the configuration");
    upf.says("nothing was changed");
    std::fs::write(&upf.file, &text).unwrap();
    upf.signal("HUP");
    upf.says("the configuration was read anew changed=\"route, n4.last-reports, log\"");
    assert!(upf.ask("version").contains("node upf.test"));
    upf.signal("TERM");
    upf.end(0);
}
