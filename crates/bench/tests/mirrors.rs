//! Mirrors and the flow log, from `ctl` to the wire and to the disk: a whole UPF on in-memory ports, with a session that an SMF
//! established.

use api::{
    Answers, ErrorCode, FlowMarks, Flows, Gnbs, Mirror, MirrorDirection, MirrorLine, MirrorSelection,
    Neighbours, Pools, Routes, Session, Sessions, Workers,
};
use io::Frame;
use io::mem::{MemConfig, MemFrame, MemNic, MemWire};
use loadgen::facts::SessionFacts;
use loadgen::habits::Shape;
use loadgen::smf::{Smf, SmfConfig};
use packet::{ErspanView, GreView, Ipv4View, MacAddr, PacketBuilder, PduSession, Qfi, pdu_session};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use upf::{Backend, Options, Upf};

const GNB: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
const HOST: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const GNB_MAC: MacAddr = MacAddr([2, 9, 0, 0, 0, 1]);
const ROUTER_MAC: MacAddr = MacAddr([2, 9, 0, 0, 0, 2]);
const PROBE_MAC: MacAddr = MacAddr([2, 9, 0, 0, 0, 3]);
const MACS: [MacAddr; 3] =
    [MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 3])];
const PATIENCE: Duration = Duration::from_secs(10);

fn configuration(directory: &Path) -> String {
    format!(
        r#"
        [node]
        id = "upf.test"
        [n4]
        listen = "127.0.0.1:0"
        last-reports = "0s"
        [[port]]
        name = "access"
        driver = "null"
        [[port]]
        name = "core"
        driver = "null"
        [[port]]
        name = "tap"
        driver = "null"
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
        [[neighbour]]
        interface = "n3"
        address = "192.0.2.10"
        mac = "{GNB_MAC}"
        [[neighbour]]
        interface = "n6"
        address = "203.0.113.254"
        mac = "{ROUTER_MAC}"
        [[mirror]]
        name = "probe"
        to = "port"
        port = "tap"
        mac = "{PROBE_MAC}"
        [[mirror]]
        name = "analyser"
        to = "erspan"
        destination = "198.51.100.50"
        session-id = 7
        truncate = 28
        [[mirror]]
        name = "file"
        to = "pcapng"
        path = "{}/mirror.pcapng"
        "#,
        directory.display()
    )
}

struct Rig {
    backend: Backend,
    wires: Vec<MemWire>,
    smf: Smf,
    session: SessionFacts,
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
    directory: PathBuf,
}

impl Rig {
    fn start(name: &str, workers: u16) -> Self {
        Self::start_with(name, &[format!("workers.count={workers}")], Shape::default())
    }

    /// With further configuration for files in its directory, `DIR`, and sessions of a shape.
    fn start_with(name: &str, set: &[String], shape: Shape) -> Self {
        let directory = std::env::temp_dir().join(format!("millrace-mirrors-{name}-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let set: Vec<_> = set.iter().map(|set| set.replace("DIR", directory.to_str().unwrap())).collect();
        let config =
            config::parse("test", &configuration(&directory), &[], &set).map_err(|e| e.to_string()).unwrap();
        let workers = config.workers.workers();
        let nic = |mac| MemNic::new(MemConfig { mac, queues: workers, ..MemConfig::default() }).unwrap();
        let (ports, wires): (Vec<_>, Vec<_>) = MACS.into_iter().map(nic).unzip();
        let options = Options { no_ctl: true, reply_to_source_port: true, ..Options::default() };
        let upf = Upf::start(&config, ports, options).unwrap();
        let (n4, backend) = (upf.n4_address(), upf.backend());
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let reports = upf.run(&flag).unwrap();
            assert!(reports.iter().all(|report| report.counters.balance() == 0));
        });
        let mut smf = Smf::bind(SmfConfig {
            shape: Shape { gnb_at_once: true, ..shape },
            ..SmfConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)), n4)
        })
        .unwrap();
        smf.associate().unwrap();
        assert!(smf.establish(1).unwrap().is_clean());
        let session = smf.facts()[0].clone();
        assert_eq!(session.gnb, IpAddr::V4(GNB));
        Self { backend, wires, smf, session, stop, thread, directory }
    }

    fn stop(self) -> PathBuf {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.directory
    }

    fn ue(&self) -> Ipv4Addr {
        self.session.ue_ipv4.unwrap()
    }

    fn mirror(&self, request: &Mirror) -> MirrorLine {
        let mut lines = self.backend.answer(request.clone()).map(|told| told.mirrors).unwrap();
        assert_eq!(lines.len(), 1);
        lines.remove(0)
    }

    fn add(&self, to: &str) -> MirrorLine {
        self.mirror(&Mirror::Add(self.of_ue(to)))
    }

    fn of_ue(&self, to: &str) -> MirrorSelection {
        MirrorSelection { to: to.into(), ue: Some(self.ue().into()), ..MirrorSelection::default() }
    }

    fn uplink(&self, port: u16) -> Vec<u8> {
        let container =
            PduSession::Uplink(pdu_session::Uplink { qfi: Qfi::from_wire(9), ..Default::default() });
        PacketBuilder::new()
            .ethernet(MACS[0], GNB_MAC)
            .ipv4(GNB, [192, 0, 2, 1].into())
            .udp(2152, 2152)
            .gtpu(self.session.ul_teid)
            .pdu_session(&container)
            .ipv4(self.ue(), HOST)
            .udp(4000, port)
            .build(b"question")
    }

    fn downlink(&self, port: u16) -> Vec<u8> {
        let packet = PacketBuilder::new().ethernet(MACS[1], ROUTER_MAC).ipv4(HOST, self.ue());
        packet.udp(port, 4000).build(b"an answer")
    }

    /// Sends a packet into a port.
    fn send(&mut self, port: usize, packet: &[u8]) {
        let mut frames = vec![MemFrame::copy_of(packet).unwrap()];
        assert_eq!(self.wires[port].inject(&mut frames), 1);
    }

    /// So many packets that leave through a port.
    fn receive(&mut self, port: usize, count: usize) -> Vec<Vec<u8>> {
        let (mut frames, deadline) = (Vec::new(), Instant::now() + PATIENCE);
        while frames.len() < count {
            assert!(Instant::now() < deadline, "port {port} sent {} of {count} packets", frames.len());
            self.wires[port].collect(&mut frames, count);
            std::thread::yield_now();
        }
        frames.iter().map(|frame| frame.bytes().to_vec()).collect()
    }
}

/// By whatever one knows of it, in a UPF whose configuration names no Network Instance.
#[test]
fn a_session_is_found_by_what_its_smf_said() {
    let rig = Rig::start("found", 1);
    let by = |query: Sessions| rig.backend.answer(query).unwrap();
    let all = by(Sessions::default());
    assert_eq!((all.total, all.next, all.sessions.len()), (Some(1), None, 1));
    let line = all.sessions[0].clone();
    assert_eq!((line.network_instance.as_str(), line.ue_ipv4), ("internet", Some(rig.ue())));
    let teid = api::TeidText(rig.session.ul_teid.0);
    let found = [
        Sessions { network_instance: Some("Internet".into()), ..Sessions::default() },
        Sessions { teid: Some(teid), ..Sessions::default() },
        Sessions { ue: Some(rig.ue().into()), ..Sessions::default() },
        Sessions { peer: Some(line.peer.clone()), ..Sessions::default() },
    ];
    for query in found {
        assert_eq!(by(query.clone()).sessions, std::slice::from_ref(&line), "{query:?}");
    }
    let not_found = [
        Sessions { network_instance: Some("intern".into()), ..Sessions::default() },
        Sessions { teid: Some(api::TeidText(7)), ..Sessions::default() },
        Sessions { ue: Some(HOST.into()), ..Sessions::default() },
        Sessions { user: Some(String::new()), ..Sessions::default() },
        Sessions { peer: Some("smf.example.org".into()), ..Sessions::default() },
    ];
    for query in not_found {
        assert_eq!(by(query.clone()).total, Some(0), "{query:?}");
    }
    // And what is around it.
    let backend = &rig.backend;
    let routes = backend.answer(Routes {}).unwrap().routes;
    let default = routes.iter().find(|route| route.to == "0.0.0.0/0").unwrap();
    assert_eq!((default.interface.as_str(), default.via), ("n6", Some([203, 0, 113, 254].into())));
    assert_eq!(default.mac, Some(ROUTER_MAC.to_string()));
    assert!(routes.iter().any(|route| route.to == "192.0.2.0/24" && route.via.is_none()));
    let neighbours = backend.answer(Neighbours {}).unwrap().neighbours;
    assert!(neighbours.iter().any(|known| known.address == IpAddr::V4(GNB) && known.configured));
    let gnbs = backend.answer(Gnbs {}).unwrap().gnbs;
    assert_eq!((gnbs.len(), gnbs[0].address, gnbs[0].rules), (1, IpAddr::V4(GNB), 1));
    assert_eq!((gnbs[0].interface.as_deref(), gnbs[0].error_indications), (Some("n3"), 0));
    assert!(backend.answer(Pools {}).unwrap().pools.is_empty());
    let workers = backend.answer(Workers {}).unwrap().workers;
    assert!(workers[0].recent.as_ref().is_some_and(|recent| recent.seconds > 0.5));
    let one = |selector: Session| rig.backend.answer(selector);
    let whole = one(Session { teid: Some(teid), ..Session::default() }).unwrap();
    assert_eq!(whole.session, line);
    assert!(whole.pdrs.iter().any(|pdr| pdr.qfis == [9] || pdr.teid == Some(teid)));
    assert_eq!(one(Session { ue: Some(rig.ue().into()), ..Session::default() }).unwrap(), whole);
    let code = |selector| one(selector).unwrap_err().code;
    assert_eq!(code(Session::default()), ErrorCode::BadRequest);
    assert_eq!(code(Session { user: Some("1".into()), ..Session::default() }), ErrorCode::NotFound);
    std::fs::remove_dir_all(rig.stop()).unwrap();
}

fn left(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet::ipv4::decrement_ttl(packet.first_chunk_mut::<20>().unwrap()).unwrap();
    packet
}

#[test]
fn from_ctl_to_the_wire_and_back_to_nothing() {
    let mut rig = Rig::start("wire", 2);
    let dns = MirrorSelection {
        filters: vec!["permit out 17 from any 53 to assigned".into()],
        ..rig.of_ue("probe")
    };
    let probe = rig.mirror(&Mirror::Add(dns));
    assert_eq!((probe.id, probe.target.as_str()), (1, "port tap 02:09:00:00:00:03"));
    let up = MirrorSelection { direction: MirrorDirection::Up, ..rig.of_ue("analyser") };
    let analyser = rig.mirror(&Mirror::Add(up));
    assert_eq!(analyser.target, "erspan 198.51.100.50 session 7");
    for (port, packet) in
        [(0, rig.uplink(53)), (0, rig.uplink(80)), (1, rig.downlink(53)), (1, rig.downlink(80))]
    {
        rig.send(port, &packet);
    }
    // The ports are polled in turn; so both directions' order is not known.
    let mut copies = rig.receive(2, 2);
    copies.sort();
    let header = [&PROBE_MAC.0[..], &MACS[2].0, &[8, 0]].concat();
    let inner = left(&rig.uplink(53)[14 + 20 + 8 + 16..]);
    let mut expected =
        [[&header[..], &inner].concat(), [&header[..], &left(&rig.downlink(53)[14..])].concat()];
    expected.sort();
    assert_eq!(copies, expected);
    let n6 = rig.receive(1, 4);
    let analysed: Vec<_> = n6.iter().filter(|frame| frame[14 + 9] == 47).collect();
    assert_eq!(analysed.len(), 2);
    let ip = Ipv4View::parse(&analysed[0][14..]).unwrap();
    let erspan = ErspanView::parse(GreView::parse(ip.payload()).unwrap().payload()).unwrap();
    assert_eq!((erspan.header().session, erspan.header().truncated), (7, true));
    assert_eq!(erspan.payload()[14..], inner[..28]);
    assert_eq!(rig.receive(0, 2).len(), 2);
    // When all that was counted is published.
    rig.backend.reports().unwrap();
    let lines = rig.backend.answer(Mirror::List).map(|told| told.mirrors).unwrap();
    let told: Vec<_> = lines.iter().map(|line| (line.id, line.packets, line.bytes, line.truncated)).collect();
    assert_eq!(told, [(1, 2, 36 + 37, 0), (2, 2, 56, 2)]);
    // One is removed, the other ends with the session.
    assert_eq!(rig.mirror(&Mirror::Remove { id: 1 }).packets, 2);
    let gone = rig.backend.answer(Mirror::Remove { id: 1 }).map(|told| told.mirrors).unwrap_err();
    assert_eq!((gone.code, gone.message.as_str()), (ErrorCode::NotFound, "there is no mirror 1"));
    assert!(rig.smf.delete_all().unwrap().is_clean());
    let deadline = Instant::now() + PATIENCE;
    while !rig.backend.answer(Mirror::List).map(|told| told.mirrors).unwrap().is_empty() {
        assert!(Instant::now() < deadline, "the mirror outlives its session");
    }
    std::fs::remove_dir_all(rig.stop()).unwrap();
}

/// Time and bytes of each packet of a pcapng file.
fn packets(path: &Path) -> Vec<(u64, Vec<u8>)> {
    let file = std::fs::read(path).unwrap();
    let (mut rest, mut packets) = (&file[..], Vec::new());
    while !rest.is_empty() {
        let word = |at: usize| u32::from_ne_bytes(rest[at..at + 4].try_into().unwrap());
        if word(0) == 6 {
            let time = u64::from(word(12)) << 32 | u64::from(word(16));
            packets.push((time, rest[28..28 + word(20) as usize].to_vec()));
        }
        rest = &rest[word(4) as usize..];
    }
    packets
}

#[test]
fn a_file_for_each_mirror() {
    let mut rig = Rig::start("file", 1);
    let first = rig.add("file");
    let path = PathBuf::from(first.target.strip_prefix("pcapng ").unwrap());
    let all = MirrorSelection { to: "file".into(), all: true, ..MirrorSelection::default() };
    let second = rig.mirror(&Mirror::Add(all));
    assert_ne!(second.target, first.target);
    let (up, down) = (rig.uplink(53), rig.downlink(53));
    for _ in 0..10 {
        rig.send(0, &up);
        rig.receive(1, 1);
        rig.send(1, &down);
        rig.receive(0, 1);
    }
    let removed = rig.mirror(&Mirror::Remove { id: first.id });
    assert_eq!((removed.packets, removed.not_written, removed.error), (20, 0, None));
    let other = PathBuf::from(second.target.strip_prefix("pcapng ").unwrap());
    // Both are complete when the UPF has stopped.
    let directory = rig.stop();
    for path in [path, other] {
        let packets = packets(&path);
        assert_eq!(packets.len(), 20);
        assert!(packets.is_sorted_by(|a, b| a.0 < b.0), "in order of time");
        assert_eq!(packets[0].1, left(&up[14 + 20 + 8 + 16..]));
        assert_eq!(packets[1].1, left(&down[14..]));
        let last = packets[19].0;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        assert!(now.abs_diff(Duration::from_nanos(last)) < Duration::from_mins(1), "{last}");
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn what_can_not_be_is_said() {
    let rig = Rig::start("refusals", 1);
    let refused = |selection: MirrorSelection| {
        let error = rig.backend.answer(Mirror::Add(selection)).map(|told| told.mirrors).unwrap_err();
        (error.code, error.message)
    };
    let (code, message) = refused(rig.of_ue("nowhere"));
    assert_eq!(code, ErrorCode::NotFound);
    assert!(message.ends_with("the configuration has probe, analyser, file"), "{message}");
    let stranger = MirrorSelection { ue: Some([1, 2, 3, 4].into()), ..rig.of_ue("probe") };
    assert_eq!(refused(stranger), (ErrorCode::NotFound, "no session has the address 1.2.3.4".into()));
    let both = MirrorSelection { all: true, ..rig.of_ue("probe") };
    assert_eq!(refused(both).0, ErrorCode::BadRequest);
    let neither = MirrorSelection { ue: None, ..rig.of_ue("probe") };
    assert_eq!(refused(neither).0, ErrorCode::BadRequest);
    let filter = |text: &str| MirrorSelection { filters: vec![text.into()], ..rig.of_ue("probe") };
    let (code, message) = refused(filter("deny out ip from any to any"));
    assert_eq!(code, ErrorCode::BadRequest);
    assert!(message.contains("can't deny"), "{message}");
    let many = MirrorSelection { filters: vec![String::new(); 17], ..rig.of_ue("probe") };
    assert_eq!(refused(many).0, ErrorCode::BadRequest);
    // As many mirrors as there can be, and one more.
    (0..64).for_each(|_| drop(rig.add("probe")));
    assert!(refused(rig.of_ue("probe")).1.starts_with("64 mirrors"));
    assert_eq!(rig.mirror(&Mirror::Remove { id: 5 }).id, 5);
    assert_eq!(rig.add("probe").id, 65);
    std::fs::remove_dir_all(&rig.directory).unwrap();
    let (code, message) = {
        rig.mirror(&Mirror::Remove { id: 6 });
        refused(rig.of_ue("file"))
    };
    assert_eq!(code, ErrorCode::Unavailable);
    assert!(message.contains("can't write"), "{message}");
    rig.stop();
}

fn json(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A flow that reaches a watermark, one that is told of because it ended, and one that lives until the UPF stops.
#[test]
fn flows_are_told_from_the_first_to_the_last() {
    let set = ["flow-log.file=DIR/flows.jsonl", "flow-log.watermark-packets=3", "limits.flow-idle-seconds=1"];
    let shape = Shape { filtered_pairs: 1, ..Shape::default() };
    let mut rig = Rig::start_with("flows", &set.map(str::to_owned), shape);
    let path = rig.directory.join("flows.jsonl");
    let (up, down) = (rig.uplink(53), rig.downlink(53));
    for _ in 0..4 {
        rig.send(0, &up);
        rig.receive(1, 1);
    }
    rig.send(1, &down);
    rig.receive(0, 1);
    let value = |rig: &Rig, name: &str| {
        let lines = rig.backend.answer(Flows::default()).unwrap().flows;
        lines.iter().find(|line| line.counter == name).map_or(0, |line| line.value)
    };
    let deadline = Instant::now() + PATIENCE;
    while value(&rig, "log-lines") < 3 {
        assert!(Instant::now() < deadline, "{:?}", rig.backend.answer(Flows::default()));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!((value(&rig, "learned"), value(&rig, "expired"), value(&rig, "marked")), (2, 2, 1));
    // Another watermark, and what can't be one.
    let marks = |packets| FlowMarks { packets: Some(packets), ..FlowMarks::default() };
    assert_eq!(rig.backend.answer(marks(0)).unwrap_err().code, ErrorCode::BadRequest);
    assert!(rig.backend.answer(marks(1)).is_ok());
    rig.send(1, &down);
    rig.receive(0, 1);
    let (ue, seid) =
        (rig.ue().to_string(), rig.backend.answer(Sessions::default()).unwrap().sessions[0].seid);
    let directory = rig.stop();
    let lines = json(&path);
    let brief: Vec<_> = lines
        .iter()
        .map(|line| {
            (
                line["event"].as_str().unwrap(),
                line["direction"].as_str().unwrap(),
                line["packets"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(brief[0], ("flow-watermark", "uplink", 3));
    let mut ended = brief[1..3].to_vec();
    ended.sort_unstable();
    assert_eq!(ended, [("flow-ended", "downlink", 1), ("flow-ended", "uplink", 4)]);
    assert_eq!(brief[3..], [("flow-watermark", "downlink", 1), ("flow-ended", "downlink", 1)]);
    let reasons: Vec<_> = lines.iter().filter_map(|line| line["reason"].as_str()).collect();
    assert_eq!(reasons, ["idle-timeout", "idle-timeout", "forced-end"]);
    assert!(lines.iter().all(|line| line["seid"] == seid.to_string()));
    let last = &lines[4];
    assert_eq!((&last["source"], &last["destination"]), (&HOST.to_string().into(), &ue.into()));
    assert_eq!((&last["source_port"], &last["destination_port"]), (&53.into(), &4000.into()));
    std::fs::remove_dir_all(directory).unwrap();
}
