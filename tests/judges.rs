//! Judges from outside: `millrace run` without a NIC, programmed by scapy and by rs-pfcp, read by tshark, asked by `millrace ctl`.
#![cfg(feature = "dpdk")]
#![allow(clippy::unwrap_used)]

use rs_pfcp::ie as rs;
use rs_pfcp::message as msg;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long anything here may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A UPF on 127.0.81.`host`, and the directory of its files.
struct Upf {
    child: Child,
    directory: PathBuf,
    address: Ipv4Addr,
}

fn configuration(address: Ipv4Addr, directory: &Path) -> String {
    format!(
        r#"
        [node]
        id = "upf.judges"
        [n4]
        listen = "{address}:8805"
        peers = ["127.0.81.0/24"]
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
        [[pool]]
        ipv4 = ["10.60.0.0/16"]
        [limits]
        buffered-packets = 1024
        [ctl]
        socket = "{}"
        "#,
        directory.join("ctl.sock").display()
    )
}

fn millrace() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("MILLRACE_")) {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

impl Upf {
    fn start(host: u8) -> Self {
        Self::start_with(host, &[])
    }

    /// With further settings.
    fn start_with(host: u8, set: &[&str]) -> Self {
        let address = Ipv4Addr::new(127, 0, 81, host);
        let directory = std::env::temp_dir().join(format!("millrace-judges-{}-{host}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let file = directory.join("upf.toml");
        std::fs::write(&file, configuration(address, &directory)).unwrap();
        let log = std::fs::File::create(directory.join("log")).unwrap();
        let child = millrace()
            .arg("run")
            .arg("--config")
            .arg(&file)
            .args(set.iter().flat_map(|set| ["--set", set]))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut upf = Self { child, directory, address };
        let deadline = Instant::now() + PATIENCE;
        while !upf.socket().exists() {
            let ended = upf.child.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < deadline, "{ended:?}\n{}", upf.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        upf
    }

    fn socket(&self) -> PathBuf {
        self.directory.join("ctl.sock")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    fn ask(&self, args: &[&str]) -> Output {
        millrace().arg("ctl").arg("--socket").arg(self.socket()).args(args).output().unwrap()
    }

    /// What `millrace ctl ... --json` prints.
    fn ctl(&self, args: &[&str]) -> Value {
        let output = self.ask(&[args, &["--json"]].concat());
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Ends it with this signal, cleanly.
    fn stop(mut self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "it goes on after SIG{signal}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(status.code(), Some(0), "{}", self.log());
        assert!(!self.socket().exists(), "the socket file is left behind");
    }
}

impl Drop for Upf {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// tshark finds nothing wrong in a capture, and `messages` PFCP messages.
fn tshark_agrees(capture: &Path, messages: usize) {
    let tshark = |filter: &str| -> Option<Output> {
        Command::new("tshark").arg("-r").arg(capture).args(["-Y", filter]).output().ok()
    };
    let Some(all) = tshark("pfcp") else {
        return testing::skipped("tshark is not installed, and does not judge");
    };
    assert!(all.status.success(), "{}", String::from_utf8_lossy(&all.stderr));
    assert_eq!(String::from_utf8_lossy(&all.stdout).lines().count(), messages);
    let wrong = tshark("_ws.malformed || _ws.expert.severity==error").unwrap();
    assert!(wrong.status.success(), "{}", String::from_utf8_lossy(&wrong.stderr));
    assert_eq!(String::from_utf8_lossy(&wrong.stdout), "");
}

#[test]
fn scapy_programs_it_and_ctl_agrees() {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/bin/python");
    if !python.exists() {
        return testing::skipped("there is no .venv with scapy; `./x test` makes one");
    }
    let upf = Upf::start(1);
    let capture = upf.directory.join("scapy.pcap");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/judges/pfcp.py");
    let mut command = Command::new(python);
    command.arg(script).args([upf.address.to_string(), "127.0.81.101".into()]).arg(&capture);
    let mut scapy =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = scapy.stdin.take().unwrap();
    let mut answers = std::collections::HashMap::new();
    for line in BufReader::new(scapy.stdout.take().unwrap()).lines() {
        let said: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let what = said["what"].as_str().unwrap().to_owned();
        if what == "ready" {
            the_session_is_as_established(&upf, said["seid"].as_u64().unwrap());
            stdin.write_all(b"\n").unwrap();
        }
        answers.insert(what, said);
    }
    let mut errors = String::new();
    scapy.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(scapy.wait().unwrap().success(), "{errors}");
    for (what, layer, cause, header) in [
        ("heartbeat", "PFCPHeartbeatResponse", None, None),
        ("stranger", "PFCPSessionEstablishmentResponse", Some(72), Some(0)),
        ("association", "PFCPAssociationSetupResponse", Some(1), None),
        ("establishment", "PFCPSessionEstablishmentResponse", Some(1), Some(0xc0_ffee)),
        ("refused", "PFCPSessionEstablishmentResponse", Some(73), Some(0xc0_ffee)),
        ("modification", "PFCPSessionModificationResponse", Some(1), Some(0xc0_ffee)),
        ("unknown", "PFCPSessionModificationResponse", Some(65), Some(0)),
        ("deletion", "PFCPSessionDeletionResponse", Some(1), Some(0xc0_ffee)),
        ("release", "PFCPAssociationReleaseResponse", Some(1), None),
    ] {
        let said = &answers[what];
        assert_eq!(said["layer"], layer, "{said}");
        assert_eq!(said["cause"].as_u64(), cause, "{said}");
        assert_eq!(said["seid"].as_u64(), header, "{said}");
        assert_eq!(said["unread"], Value::Array(vec![]), "{said}");
    }
    // Node ID type 2: a name.
    for what in ["stranger", "association", "establishment", "refused", "release"] {
        assert_eq!(answers[what]["node_id"], 2, "{what}");
    }
    assert_eq!(answers["refused"]["offending_ie"], 108, "FAR ID");
    assert!(answers["establishment"]["teid"].as_u64().unwrap() > 0);
    assert_eq!(answers["modification"]["urr"], 1);
    assert_eq!(answers["deletion"]["urr"], 1);
    assert_eq!(upf.ctl(&["sessions"])["total"], 0);
    tshark_agrees(&capture, 18);
    upf.stop("TERM");
}

/// `ctl` tells of the session what scapy asked for.
fn the_session_is_as_established(upf: &Upf, seid: u64) {
    let sessions = upf.ctl(&["sessions"]);
    assert_eq!(sessions["total"], 1);
    let line = &sessions["sessions"][0];
    let text = format!("{seid:#018x}");
    assert_eq!((line["seid"].as_str(), line["ue_ipv4"].as_str()), (Some(text.as_str()), Some("10.60.0.7")));
    assert_eq!((line["peer"].as_str(), line["rules"]["pdrs"].as_u64()), (Some("127.0.81.101"), Some(2)));
    let session = upf.ctl(&["session", &text]);
    assert_eq!(session["pdrs"].as_array().unwrap().len(), 2, "{session}");
    let far = session["fars"].as_array().unwrap().iter().find(|far| far["id"] == 2).unwrap();
    assert_eq!(
        (far["action"].as_str(), far["tunnel"]["peer"].as_str()),
        (Some("forward"), Some("192.0.2.10"))
    );
    assert_eq!(session["urrs"][0]["threshold"], 1u64 << 30);
    let peers = upf.ctl(&["peers"]);
    assert_eq!(
        (peers["peers"][0]["sessions"].as_u64(), peers["peers"][0]["refused"].as_u64()),
        (Some(1), Some(2))
    );
    let ports = upf.ctl(&["ports"]);
    let names: Vec<_> =
        ports["ports"].as_array().unwrap().iter().map(|port| port["driver"].as_str()).collect();
    assert_eq!(names, [Some("net_null"); 2]);
    assert_eq!(upf.ctl(&["workers"])["workers"][0]["shards"], 512);
    assert_eq!(upf.ctl(&["drops"])["drops"], Value::Array(vec![]));
}

/// An SMF of rs-pfcp, and what was said.
struct Smf {
    own: Ipv4Addr,
    socket: UdpSocket,
    hex: String,
    messages: usize,
}

impl Smf {
    fn note(&mut self, inbound: bool, datagram: &[u8]) {
        self.messages += 1;
        self.hex.push_str(if inbound { "I\n000000" } else { "O\n000000" });
        for octet in datagram {
            let _ = write!(self.hex, " {octet:02x}");
        }
        self.hex.push('\n');
    }

    /// At 127.0.81.`host`, associated.
    fn start(host: u8, upf: &Upf) -> Self {
        let own = Ipv4Addr::new(127, 0, 81, host);
        let socket = UdpSocket::bind((own, 8805)).unwrap();
        socket.connect((upf.address, 8805)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut smf = Self { own, socket, hex: String::new(), messages: 0 };
        let request = msg::association_setup_request::AssociationSetupRequestBuilder::new(1_u32)
            .node_id(own)
            .recovery_time_stamp(std::time::SystemTime::now())
            .marshal();
        assert_eq!(cause(&*smf.ask(&request)), rs::cause::CauseValue::RequestAccepted);
        smf
    }

    /// A request for one session, with a TEID of its own choice.
    fn establishment(&self) -> Vec<u8> {
        let pdi = rs::pdi::PdiBuilder::uplink_access()
            .f_teid(rs::f_teid::Fteid::ipv4(0x0102_0304_u32, Ipv4Addr::new(192, 0, 2, 1)))
            .ue_ip_address(rs::ue_ip_address::UeIpAddress::new(Some(Ipv4Addr::new(10, 60, 0, 9)), None))
            .build()
            .unwrap();
        let pdr = rs::create_pdr::CreatePdrBuilder::new(rs::pdr_id::PdrId::new(1))
            .precedence(rs::precedence::Precedence::new(100))
            .pdi(pdi)
            .outer_header_removal(rs::outer_header_removal::OuterHeaderRemoval::new(0))
            .far_id(rs::far_id::FarId::new(1))
            .qer_id(rs::qer_id::QerId::new(1))
            .build()
            .unwrap();
        let far =
            rs::create_far::CreateFarBuilder::uplink_to_core(rs::far_id::FarId::new(1)).build().unwrap();
        let qer = rs::create_qer::CreateQerBuilder::with_rate_limit(rs::qer_id::QerId::new(1), 1000, 2000)
            .build()
            .unwrap();
        msg::session_establishment_request::SessionEstablishmentRequestBuilder::new(0_u64, 2_u32)
            .node_id(self.own)
            .fseid(0x77_u64, self.own)
            .add_pdr(pdr)
            .add_far(far)
            .add_qer(qer)
            .marshal()
            .unwrap()
    }

    fn ask(&mut self, request: &[u8]) -> Box<dyn msg::Message> {
        self.socket.send(request).unwrap();
        self.note(false, request);
        let mut buffer = [0; 4096];
        let length = self.socket.recv(&mut buffer).unwrap();
        self.note(true, &buffer[..length]);
        msg::parse(&buffer[..length]).unwrap()
    }
}

fn cause(answer: &dyn msg::Message) -> rs::cause::CauseValue {
    let ie = answer.ies(rs::IeType::Cause).next().unwrap();
    rs::cause::Cause::unmarshal(&ie.payload).unwrap().value
}

fn fseid(answer: &dyn msg::Message) -> rs::fseid::Fseid {
    let ie = answer.ies(rs::IeType::Fseid).next().unwrap();
    rs::fseid::Fseid::unmarshal(&ie.payload).unwrap()
}

#[test]
fn rs_pfcp_programs_it() {
    let upf = Upf::start(2);
    let mut smf = Smf::start(102, &upf);
    let request = smf.establishment();
    let answer = smf.ask(&request);
    assert_eq!(cause(&*answer), rs::cause::CauseValue::RequestAccepted);
    assert_eq!(answer.seid().map(|seid| *seid), Some(0x77));
    let fseid = fseid(&*answer);
    assert_eq!(fseid.ipv4_address, Some(upf.address));
    let seid = *fseid.seid;
    // The same again: the same answer, and not a second session.
    let again = smf.ask(&request);
    assert_eq!(again.marshal(), answer.marshal());
    let sessions = upf.ctl(&["sessions"]);
    assert_eq!(
        (sessions["total"].as_u64(), sessions["sessions"][0]["cp_seid"].as_str()),
        (Some(1), Some("0x0000000000000077"))
    );
    let session = upf.ctl(&["session", &format!("{seid:#x}")]);
    assert_eq!(session["pdrs"][0]["teid"], "0x01020304");
    assert_eq!(session["qers"][0]["uplink_mbr"], 1_000_000);

    let request = msg::session_deletion_request::SessionDeletionRequestBuilder::new(seid, 3_u32).marshal();
    let answer = smf.ask(&request);
    assert_eq!(cause(&*answer), rs::cause::CauseValue::RequestAccepted);
    assert_eq!(answer.seid().map(|seid| *seid), Some(0x77));

    let (text, capture) = (upf.directory.join("hex"), upf.directory.join("rs.pcapng"));
    std::fs::write(&text, &smf.hex).unwrap();
    match Command::new("text2pcap").args(["-q", "-D", "-u", "8805,8805"]).arg(&text).arg(&capture).output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            tshark_agrees(&capture, smf.messages);
        }
        Err(error) => testing::skipped(format!("tshark does not judge: text2pcap: {error}")),
    }
    upf.stop("INT");
}

impl Upf {
    /// Waits until so many workers own shards and none moves; says how many each has.
    fn scaled(&self, workers: u64) -> Vec<u64> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let status = self.ctl(&["scale"]);
            if status["active"] == workers && status["moving"] == 0 {
                break;
            }
            assert!(Instant::now() < deadline, "{status}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
        let report = self.ctl(&["workers"]);
        report["workers"].as_array().unwrap().iter().map(|line| line["shards"].as_u64().unwrap()).collect()
    }

    /// Asks for this number, in vain.
    fn refuses(&self, workers: &str, code: i32, why: &str) {
        let output = self.ask(&["scale", workers]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(why), "{said}");
    }
}

/// Shards go where `ctl scale` sends them, and a session with its shard; what can't be is refused with the bounds.
#[test]
fn workers_come_and_go_as_asked() {
    let upf = Upf::start_with(5, &["workers.count=3", "n4.heartbeat-interval=0s"]);
    let mut smf = Smf::start(105, &upf);
    let request = smf.establishment();
    let seid = format!("{:#x}", *fseid(&*smf.ask(&request)).seid);
    assert_eq!(upf.scaled(3), [171, 171, 170]);
    let asked = |workers: &str| {
        let status = upf.ctl(&["scale", workers]);
        assert_eq!((&status["workers"], &status["dispatchers"]), (&3.into(), &0.into()), "{status}");
        assert_eq!(status["asked"].to_string(), workers, "{status}");
    };
    for workers in [1, 3, 2] {
        asked(&workers.to_string());
        let owned = upf.scaled(workers);
        let (owners, others) = owned.split_at(workers as usize);
        assert_eq!((owners.iter().sum::<u64>(), others.iter().sum::<u64>()), (512, 0), "{owned:?}");
        // The fewest moves that level them leave some a few more than others.
        let part = 512 / workers;
        assert!(owners.iter().all(|shards| shards.abs_diff(part) <= part / 4), "{owned:?}");
        // The session's worker answers.
        assert_eq!(upf.ctl(&["session", &seid])["pdrs"][0]["teid"], "0x01020304");
    }
    // While shards move: the last request counts.
    ["1", "3", "1", "2", "3", "1"].into_iter().for_each(asked);
    assert_eq!(upf.scaled(1), [512, 0, 0]);

    upf.refuses("4", 1, "4 workers asked for; possible are 1 to 3");
    upf.refuses("65535", 1, "65535 workers asked for; possible are 1 to 3");
    upf.refuses("0", 2, "0 is not in 1..=65535");
    upf.refuses("many", 2, "invalid digit");
    let text = |args: &[&str]| String::from_utf8(upf.ask(args).stdout).unwrap();
    let held = text(&["scale"]);
    assert!(
        held.starts_with("model        run-to-completion, 3 threads\nactive       1 (1 asked for)\n"),
        "{held}"
    );
    // Nothing else says how many: they stay.
    assert_eq!(upf.ctl(&["scale", "--release"])["asked"], Value::Null);
    assert!(text(&["scale"]).contains("\nactive       1 (until asked)\n"));
    assert_eq!(upf.scaled(1), [512, 0, 0]);
    let status = upf.ctl(&["scale"]);
    assert!(status["shards"].as_u64().unwrap() >= 341 + 300 + 150 + 256, "{status}");
    // Nothing comes to any of them.
    for line in upf.ctl(&["workers"])["workers"].as_array().unwrap() {
        let [busy, asleep] = ["busy", "asleep"].map(|share| line[share].as_f64().unwrap());
        assert!(asleep > 0.0 && busy + asleep <= 1.0, "{line}");
    }
    // In the middle of moves.
    asked("3");
    upf.stop("TERM");
}

/// A number that was asked for holds against the load until it is released.
#[test]
fn a_released_number_follows_the_load() {
    let set = [
        "workers.count=3",
        "scaling.automatic=true",
        "scaling.min-workers=2",
        "scaling.hold-down=100ms",
        "scaling.cool-down=0s",
    ];
    let upf = Upf::start_with(6, &set);
    assert_eq!(upf.scaled(2), [256, 256, 0]);
    upf.refuses("1", 1, "1 workers asked for; possible are 2 to 3");
    upf.ctl(&["scale", "3"]);
    assert_eq!(upf.scaled(3).iter().sum::<u64>(), 512);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(upf.scaled(3).iter().filter(|shards| **shards > 0).count(), 3);
    let status = upf.ctl(&["scale", "--release"]);
    assert_eq!((&status["asked"], &status["automatic"]), (&Value::Null, &true.into()));
    assert_eq!(upf.scaled(2).iter().sum::<u64>(), 512);
    upf.stop("INT");
}

#[test]
fn what_stops_it_from_starting_is_said() {
    let upf = Upf::start(3);
    // The same address again.
    let file = upf.directory.join("upf.toml");
    let other = upf.directory.join("other.sock");
    let set = format!("ctl.socket={}", other.display());
    let output = millrace().arg("run").arg("--config").arg(&file).args(["--set", &set]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("can't listen for PFCP on 127.0.81.3:8805") && said.contains("[n4] listen"),
        "{said}"
    );
    // The same control socket.
    let args = ["--set", "n4.listen=127.0.81.4:8805"];
    let output = millrace().arg("run").arg("--config").arg(&file).args(args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_ne!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("ctl.sock"), "{said}");
    // A configuration that is wrong.
    let output =
        millrace().arg("run").arg("--config").arg(&file).args(["--set", "n4.t1=3"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(upf.ctl(&["version"])["node_id"], "upf.judges", "the first one goes on");
    upf.stop("TERM");
}
