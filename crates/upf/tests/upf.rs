//! A whole UPF on in-memory ports, with an SMF on a real socket: how it ends, what it reads anew while it runs, and whose clock it tells.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::bench::{Established, Smf, measured, threshold, urr};
use api::{Answers, Drops, N4, Nat as AskNat, Neighbours, Ports, Session, Sessions, Stages, Workers};
use config::nat::Nat;
use config::{self, Config};
use engine::WorkerReport;
use io::mem::{MemConfig, MemFrame, MemNic, MemPool, MemRx, MemTx, MemWire};
use io::{Frame, Port, PortInfo, PortStats, RxQueue};
use packet::pdu_session::Uplink;
use packet::{MacAddr, PacketBuilder, PduSession, Qfi, Teid};
use pfcp::ie::UsageReport;
use pfcp::message::SessionEstablishmentResponse;
use pfcp::message_type::MessageType;
use pfcp::{Cause, Seid};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tables::Nanos;
use upf::{Backend, Options, Reloaded, Saved, Upf, UpfError};

const PATIENCE: Duration = Duration::from_secs(20);
const MACS: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 3, 1]), MacAddr([2, 0, 0, 0, 6, 1])];
const GNB_MAC: MacAddr = MacAddr([2, 9, 0, 0, 0, 1]);
const ROUTERS: [MacAddr; 2] = [MacAddr([2, 9, 0, 0, 0, 2]), MacAddr([2, 9, 0, 0, 0, 3])];
const N3: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const GNB: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 9);

pub const FILE: &str = r#"
[node]
id = "upf.test"
[n4]
listen = "127.0.0.1:0"
[[port]]
name = "access"
driver = "null"
[[port]]
name = "core"
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
interface = "n6"
address = "203.0.113.254"
mac = "02:09:00:00:00:02"
[[neighbour]]
interface = "n6"
address = "203.0.113.253"
mac = "02:09:00:00:00:03"
[[neighbour]]
interface = "n3"
address = "192.0.2.10"
mac = "02:09:00:00:00:01"
[[pool]]
ipv4 = ["10.45.0.0/16"]
"#;

fn parse(text: &str) -> Config {
    config::parse("test", text, &[], &[]).map_err(|report| report.to_string()).unwrap()
}

/// A frame that the driver of [`Fragile`] does not survive.
pub const POISON: [u8; 16] = [0xde; 16];

/// An in-memory NIC with a driver that panics at the sight of poison; and something that is there as long as it is open.
struct Fragile(MemNic, #[expect(dead_code, reason = "counted")] Arc<()>);

struct FragileRx(MemRx);

impl RxQueue for FragileRx {
    type Frame = MemFrame;
    fn rx_burst(&mut self, into: &mut Vec<MemFrame>, max: usize) -> usize {
        let received = self.0.rx_burst(into, max);
        assert!(!into.iter().any(|frame| frame.bytes() == POISON), "poisoned, as the test wants it");
        received
    }
}

impl Port for Fragile {
    type Frame = MemFrame;
    type Rx = FragileRx;
    type Tx = MemTx;
    type Pool = MemPool;
    fn info(&self) -> &PortInfo {
        self.0.info()
    }
    fn take_queue(&mut self, queue: u16) -> Option<(FragileRx, MemTx)> {
        self.0.take_queue(queue).map(|(rx, tx)| (FragileRx(rx), tx))
    }
    fn pool(&mut self, queue: u16) -> MemPool {
        self.0.pool(queue)
    }
    fn link_up(&self) -> bool {
        self.0.link_up()
    }
    fn stats(&self) -> PortStats {
        self.0.stats()
    }
}

/// A UPF that serves, and everything around it.
pub struct Rig {
    pub backend: Backend,
    pub n3: MemWire,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
    pub n6: MemWire,
    pub smf: Smf,
    socket: UdpSocket,
    upf: SocketAddr,
    /// Types of the messages that the UPF sent, in order.
    pub heard: Vec<u8>,
    begun: Instant,
    pub stop: Arc<AtomicBool>,
    /// Ports that are open.
    open: Weak<()>,
    thread: JoinHandle<Result<Vec<WorkerReport>, UpfError>>,
}

impl Rig {
    pub fn start(workers: u16, time_of_day: Option<fn() -> SystemTime>) -> Self {
        Self::start_with(FILE, workers, time_of_day)
    }

    pub fn start_with(file: &str, workers: u16, time_of_day: Option<fn() -> SystemTime>) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let options = Options { time_of_day, ..Options::default() };
        let mut rig = Self::launch(file, workers, options, Smf::new(0, 1), socket).unwrap();
        rig.smf.associate(Nanos(0));
        rig.until("an association", |rig| rig.smf.node.peers().next().is_some());
        rig
    }

    /// Without an association, unless there was one before.
    pub fn launch(
        file: &str,
        workers: u16,
        options: Options,
        smf: Smf,
        socket: UdpSocket,
    ) -> Result<Self, UpfError> {
        Self::launch_with(file, &format!("count = {workers}\n"), workers, options, smf, socket)
    }

    /// With all of the section about workers.
    fn launch_with(
        file: &str,
        section: &str,
        workers: u16,
        options: Options,
        smf: Smf,
        socket: UdpSocket,
    ) -> Result<Self, UpfError> {
        let config = parse(&format!("{file}[workers]\n{section}"));
        let nic = |mac| MemNic::new(MemConfig { mac, queues: workers, ..MemConfig::default() }).unwrap();
        let [(n3_nic, n3), (n6_nic, n6)] = MACS.map(nic);
        let token = Arc::new(());
        let open = Arc::downgrade(&token);
        let ports = vec![Fragile(n3_nic, token.clone()), Fragile(n6_nic, token)];
        let options = Options { no_ctl: true, reply_to_source_port: true, ..options };
        let upf = Upf::start(&config, ports, options)?;
        let (n4, backend, metrics) = (upf.n4_address(), upf.backend(), upf.metrics_address());
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || upf.run(&flag));
        Ok(Self {
            backend,
            n3,
            metrics,
            n6,
            smf,
            socket,
            upf: n4,
            heard: Vec::new(),
            begun: Instant::now(),
            stop,
            open,
            thread,
        })
    }

    /// Has this file read, and says what came of it. Read again, it changes nothing, and what waits for a restart goes on waiting.
    #[track_caller]
    fn reload(&self, file: &str) -> Reloaded {
        let told = self.backend.reload(parse(file)).unwrap();
        let again = self.backend.reload(parse(file)).unwrap();
        assert_eq!(again, Reloaded { changed: Vec::new(), ..told.clone() });
        told
    }

    /// From where a session's tunnel is said to be fed.
    fn heard(&self, session: &Established) -> Option<IpAddr> {
        let named = Session { seid: Some(api::SeidText(session.seid.0)), ..Session::default() };
        let detail = self.backend.answer(named).unwrap();
        let fed: Vec<_> = detail.pdrs.iter().filter(|pdr| pdr.teid.is_some()).map(|pdr| pdr.heard).collect();
        assert_eq!((fed.len(), detail.pdrs.len()), (1, 2));
        fed[0]
    }

    /// What is in force, read as a file.
    #[track_caller]
    fn in_force(&self) -> Config {
        parse(&self.backend.answer(api::Config {}).unwrap().toml)
    }

    /// Carries datagrams once.
    fn pump(&mut self) {
        let now = Nanos(self.begun.elapsed().as_nanos() as u64);
        self.smf.tick(now);
        for datagram in self.smf.take_datagrams() {
            self.socket.send_to(&datagram, self.upf).unwrap();
        }
        let mut buffer = [0; 2_048];
        if let Ok((length, _)) = self.socket.recv_from(&mut buffer) {
            self.heard.push(buffer[1]);
            self.smf.take(now, &buffer[..length]);
        }
    }

    pub fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_so(self) {
            assert!(Instant::now() < until, "{what} does not come");
            self.pump();
        }
    }

    pub fn establish(&mut self, cp: u64) -> Established {
        let body = self.ask_for_session(cp);
        Established::new(&SessionEstablishmentResponse::decode(&body).unwrap())
    }

    /// The answer to a Session Establishment Request.
    fn ask_for_session(&mut self, cp: u64) -> Vec<u8> {
        self.ask_for(&measured(cp, vec![urr(1, 0, threshold(1 << 40))]))
    }

    /// The answer to this one.
    pub fn ask_for(&mut self, request: &pfcp::message::SessionEstablishmentRequest<'_>) -> Vec<u8> {
        let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
        let token = self.smf.ask(Nanos(0), kind, Seid(0), |out| request.encode(out));
        self.until("an answer", |rig| rig.smf.answers.contains_key(&token));
        self.smf.answers.remove(&token).unwrap().2
    }

    /// How many of so many packets for a tunnel that there isn't are answered.
    fn answers_to_strangers(&mut self, packets: u64) -> usize {
        let count = |rig: &Self| {
            let drops = rig.backend.answer(Drops {}).unwrap().drops;
            drops.iter().find(|line| line.reason == "unknown-teid").map_or(0, |line| line.packets)
        };
        let before = count(self);
        let outer = PacketBuilder::new().ethernet(MACS[0], GNB_MAC).ipv4(GNB, N3).udp(2152, 2152);
        let frame = outer.gtpu(Teid(0x7777)).build(&crate::bench::inner(GNB, SERVER, 100, 64));
        self.n3.offer(&mut (0..packets).map(|_| MemFrame::copy_of(&frame).unwrap()).collect());
        self.until("the last packet", |rig| count(rig) == before + packets);
        let mut answers = Vec::new();
        while self.n3.collect(&mut answers, 64) > 0 {}
        answers.len()
    }

    /// See [`from`].
    fn offer_from(&mut self, gnb: Ipv4Addr, session: &Established) {
        self.n3.offer(&mut vec![from(gnb, session)]);
    }

    /// Such a packet from the gNB, and where it leaves to.
    pub fn up(&mut self, session: &Established) -> MacAddr {
        self.up_from(GNB, session)
    }

    fn up_from(&mut self, gnb: Ipv4Addr, session: &Established) -> MacAddr {
        MacAddr(self.sent(gnb, session)[..6].try_into().unwrap())
    }

    /// Its source as the data network sees it.
    fn public(&mut self, session: &Established) -> Ipv4Addr {
        <[u8; 4]>::try_from(&self.sent(GNB, session)[26..30]).unwrap().into()
    }

    /// The frame that such a packet becomes.
    fn sent(&mut self, gnb: Ipv4Addr, session: &Established) -> Vec<u8> {
        self.offer_from(gnb, session);
        self.left()
    }

    /// The UE says this, and it leaves.
    pub fn say(&mut self, session: &Established, packet: &[u8]) {
        self.n3.offer(&mut vec![carried(GNB, session, packet)]);
        self.left();
    }

    /// The next frame to the data network.
    fn left(&mut self) -> Vec<u8> {
        let (until, mut out) = (Instant::now() + PATIENCE, Vec::new());
        while out.is_empty() {
            assert!(Instant::now() < until, "the packet does not come");
            self.n6.collect(&mut out, 1);
            std::thread::yield_now();
        }
        out[0].bytes().to_vec()
    }

    /// Another one takes over, behind the same address and with the same SMF: this one has stopped, and the SMF heard nothing of it.
    pub fn followed(mut self, file: &str, workers: u16, restore: Saved) -> Result<Self, UpfError> {
        self.heard.clear();
        self.until("the end", |rig| rig.thread.is_finished());
        self.thread.join().unwrap().unwrap();
        assert_eq!((self.open.strong_count(), &self.heard[..]), (0, &[][..]));
        let file = file.replace("127.0.0.1:0", &self.upf.to_string());
        let options = Options { restore: Some(restore), ..Options::default() };
        let next = Self::launch(&file, workers, options, self.smf, self.socket)?;
        Ok(Self { begun: self.begun, ..next })
    }

    /// The end of the UPF, and what it told the SMF meanwhile.
    pub fn end(mut self) -> (Result<Vec<WorkerReport>, UpfError>, Vec<u8>, Vec<UsageReport>) {
        self.heard.clear();
        self.until("the end", |rig| rig.thread.is_finished());
        // What was sent last.
        for _ in 0..10 {
            self.pump();
        }
        let usage = self.smf.take_reports().into_iter().flat_map(|report| report.usage_reports).collect();
        let ended = self.thread.join().unwrap();
        // Whoever still has a way to ask keeps no device from being closed.
        assert_eq!((self.open.strong_count(), self.backend.answer(Ports {}).unwrap().ports.len()), (0, 0));
        (ended, self.heard, usage)
    }
}

/// A packet of the UE, of 100 octets, by way of this gNB.
fn from(gnb: Ipv4Addr, session: &Established) -> MemFrame {
    carried(gnb, session, &crate::bench::inner(session.ue, SERVER, 100, 64))
}

/// A packet of the UE, by way of this gNB.
fn carried(gnb: Ipv4Addr, session: &Established, inner: &[u8]) -> MemFrame {
    let container = Uplink { qfi: Qfi::new(9).unwrap(), ..crate::bench::UPLINK };
    let outer = PacketBuilder::new().ethernet(MACS[0], GNB_MAC).ipv4(gnb, N3).udp(2152, 2152);
    let frame = outer.gtpu(session.teid).pdu_session(&PduSession::Uplink(container)).build(inner);
    MemFrame::copy_of(&frame).unwrap()
}

/// A thread plays the GPU, behind a ring: packets leave as they came, all of them, and some were looked up by it.
#[test]
fn bursts_are_looked_up_behind_a_ring() {
    use accel::ring::{RingDevice, Shape, Thread};
    use datapath::lookups::{Batch, LookupDevice};
    use upf::lookups::{Accelerated, FindLookups};

    let find: FindLookups = Arc::new(|| {
        Ok(Arc::new(|_| -> Option<Box<dyn LookupDevice>> {
            let shape = Shape::new(32, 8 * Batch::QUESTIONS, 4 * Batch::QUESTIONS)?;
            let ring = RingDevice::start(Thread::new(tables::Tsc::process()), shape, Batch::QUESTIONS);
            let device = Accelerated::open(Box::new(ring.ok()?), 10_000).ok()?;
            Some(Box::new(device))
        }))
    });
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    let options = Options { lookups: Some(find), ..Options::default() };
    let section = "count = 1\nlookup = 'cuda'\n";
    let mut rig = Rig::launch_with(FILE, section, 1, options, Smf::new(0, 1), socket).unwrap();
    rig.smf.associate(Nanos(0));
    rig.until("an association", |rig| rig.smf.node.peers().next().is_some());
    let session = rig.establish(1);
    // The neighbours are known.
    rig.up(&session);
    let to_ue = |number: u32| {
        let frame = PacketBuilder::new().ethernet(MACS[1], GNB_MAC).ipv4(SERVER, session.ue).udp(53, 4_000);
        MemFrame::copy_of(&frame.build(&number.to_be_bytes())).unwrap()
    };
    let (mut sent, mut arrived, mut waiting, mut out) = (0, 0, Vec::new(), Vec::new());
    let right = |rig: &Rig| {
        let status = rig.backend.answer(api::Lookups { all: true }).unwrap();
        status.counters.iter().find(|line| line.counter == "right").map_or(0, |line| line.value)
    };
    let mut seen = 0;
    rig.until("hints that are right", |rig| {
        while waiting.len() < 256 && sent < arrived + 512 && seen < 1_000 {
            waiting.push(to_ue(sent));
            sent += 1;
        }
        rig.n6.offer(&mut waiting);
        rig.n3.collect(&mut out, 512);
        for frame in out.drain(..) {
            let number = frame.bytes().last_chunk().copied().map(u32::from_be_bytes);
            assert_eq!(number, Some(arrived), "lost or overtaken");
            arrived += 1;
        }
        seen = right(rig);
        seen >= 1_000 && waiting.is_empty() && arrived == sent
    });
    rig.stop.store(true, Ordering::Relaxed);
    assert!(rig.end().0.is_ok());
}

#[test]
fn what_stages_cost_is_counted_for_who_asks() {
    let mut rig = Rig::start(2, None);
    let session = rig.establish(1);
    let (Rig { backend, n3, n6, .. }, mut sent) = (&mut rig, Vec::new());
    let lines = std::thread::scope(|scope| {
        let asked = scope.spawn(|| backend.answer(Stages {}).unwrap().stages);
        while !asked.is_finished() {
            n3.offer(&mut vec![from(GNB, &session)]);
            n6.collect(&mut sent, 64);
            sent.clear();
            std::thread::yield_now();
        }
        asked.join().unwrap()
    });
    assert_eq!(lines.iter().map(|line| line.worker).collect::<Vec<_>>(), [0, 1]);
    let busy = lines.iter().find(|line| line.packets > 0).unwrap();
    let cycles = |name: &str| busy.stages.iter().find(|stage| stage.stage == name).unwrap().cycles_per_packet;
    assert!(cycles("parse").unwrap() > 0.0 && cycles("serve").unwrap() > 0.0, "{busy:?}");
    assert_eq!(cycles("translate in"), Some(0.0), "there is no NAT");
    rig.stop.store(true, Ordering::Relaxed);
    rig.end().0.unwrap();
}

#[test]
fn a_stop_tells_the_last_octet_and_then_asks_to_be_released() {
    for workers in [1, 2] {
        let mut rig = Rig::start(workers, None);
        let sessions: Vec<_> = (1..=40).map(|cp| rig.establish(cp)).collect();
        for (at, session) in sessions.iter().enumerate() {
            for _ in 0..=at {
                assert_eq!(rig.up(session), ROUTERS[0]);
            }
        }
        rig.stop.store(true, Ordering::Relaxed);
        let (ended, heard, usage) = rig.end();
        assert_eq!(ended.unwrap().len(), usize::from(workers));
        let mut octets: Vec<_> = usage.iter().map(|usage| usage.volume.unwrap().total.unwrap()).collect();
        octets.sort_unstable();
        assert_eq!(octets, (1..=40).map(|packets| packets * 100).collect::<Vec<_>>());
        // 40 reports, and behind them the request to be released, and the answer to the release.
        assert_eq!(heard.len(), 42, "{heard:?}");
        assert!(heard[..40].iter().all(|kind| *kind == MessageType::SESSION_REPORT_REQUEST.0));
        assert_eq!(heard[40], MessageType::ASSOCIATION_UPDATE_REQUEST.0);
        assert_eq!(heard[41], MessageType::ASSOCIATION_RELEASE_RESPONSE.0);
    }
}

#[test]
fn a_upf_without_workers_ends_with_an_error_and_tells_its_smf() {
    let mut rig = Rig::start(1, None);
    let session = rig.establish(1);
    rig.up(&session);
    rig.n3.offer(&mut vec![MemFrame::copy_of(&POISON).unwrap()]);
    let (ended, heard, usage) = rig.end();
    assert!(matches!(ended, Err(UpfError::WorkerLost(0))), "{ended:?}");
    assert_eq!(heard.first(), Some(&MessageType::ASSOCIATION_UPDATE_REQUEST.0));
    assert!(usage.is_empty(), "there is nobody left to ask");
}

#[test]
fn with_another_worker_the_death_of_one_ends_nothing() {
    let mut rig = Rig::start(2, None);
    let sessions: Vec<_> = (1..=20).map(|cp| rig.establish(cp)).collect();
    rig.n3.offer_to(0, &mut vec![MemFrame::copy_of(&POISON).unwrap()]);
    // What is on its way to the dying one meanwhile is lost with it.
    rig.until("an heir", |rig| {
        let shards: Vec<_> =
            rig.backend.answer(Workers {}).unwrap().workers.iter().map(|line| line.shards).collect();
        shards == [0, 512]
    });
    for session in &sessions {
        rig.up(session);
    }
    rig.stop.store(true, Ordering::Relaxed);
    let (ended, _, usage) = rig.end();
    assert!(ended.is_ok() && usage.len() == 20, "{ended:?}");
}

/// A page at a time, behind the last SEID of the page before: each session once, whatever ends in between.
#[test]
fn sessions_are_listed_by_a_cursor() {
    let mut rig = Rig::start(2, None);
    let mut all: Vec<_> = (1..=7).map(|cp| api::SeidText(rig.establish(cp).seid.0)).collect();
    let page = |rig: &Rig, query: Sessions| rig.backend.answer(query).unwrap();
    let every = page(&rig, Sessions::default());
    let in_order: Vec<_> = every.sessions.iter().map(|line| line.seid).collect();
    assert_eq!((every.total, every.next), (Some(7), None));
    all.sort_unstable();
    assert_eq!(in_order, all);
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let told = page(&rig, Sessions { limit: 3, after, ..Sessions::default() });
        seen.extend(told.sessions.iter().map(|line| line.seid));
        if seen.len() == 3 {
            // The cursor's own session goes.
            let seid = Seid(seen[2].0);
            let token = rig.smf.ask(Nanos(0), MessageType::SESSION_DELETION_REQUEST, seid, |_| {});
            rig.until("the deletion", |rig| rig.smf.answers.contains_key(&token));
        }
        after = told.next;
        if after.is_none() {
            assert_eq!(told.total, Some(6));
            break;
        }
    }
    assert_eq!(seen, all);
    // A search goes on, too; how many there are it says only if it has looked at all of them.
    let peer = every.sessions.first().map(|line| line.peer.clone());
    let of_peer =
        |limit, after| page(&rig, Sessions { peer: peer.clone(), limit, after, ..Sessions::default() });
    let first = of_peer(4, None);
    assert_eq!((first.sessions.len(), first.next), (4, Some(all[4])));
    let rest = of_peer(4, first.next);
    assert_eq!((rest.sessions.len(), rest.total, rest.next), (2, None, None));
    assert_eq!((of_peer(6, None).total, of_peer(6, None).next), (Some(6), None));
    let counted = of_peer(0, None);
    assert_eq!((counted.sessions.len(), counted.total, counted.next), (0, Some(6), None));
    rig.stop.store(true, Ordering::Relaxed);
}

#[test]
fn neighbours_are_told_as_the_workers_that_know_them_best_do() {
    let mut rig = Rig::start(2, None);
    let session = rig.establish(1);
    rig.up(&session);
    let lines = rig.backend.answer(Neighbours {}).unwrap().neighbours;
    let line = |address: &str| lines.iter().find(|line| line.address.to_string() == address).unwrap();
    for (address, mac) in [("192.0.2.10", "02:09:00:00:00:01"), ("203.0.113.253", "02:09:00:00:00:03")] {
        let line = line(address);
        assert_eq!((line.mac.as_deref(), line.configured), (Some(mac), true));
        assert_eq!((line.state.as_deref(), line.heard_seconds), (Some("fixed"), None));
    }
    // The session's gNB, and the router of the default route; nobody needs the other one.
    let users = ["192.0.2.10", "203.0.113.254", "203.0.113.253"].map(|address| line(address).users);
    assert_eq!(users, [1, 1, 0]);
    rig.stop.store(true, Ordering::Relaxed);
    assert!(rig.end().0.is_ok());
}

#[test]
fn routes_and_peers_are_read_anew_and_what_is_not_is_named() {
    let mut rig = Rig::start(1, None);
    let session = rig.establish(1);
    assert_eq!(rig.up(&session), ROUTERS[0]);
    // Another router.
    let other = FILE.replace("via = \"203.0.113.254\"", "via = \"203.0.113.253\"");
    let told = rig.reload(&other);
    assert_eq!((told.changed, told.restart.len()), (vec!["route"], 0));
    assert_eq!(rig.up(&session), ROUTERS[1]);
    // The router has another MAC address; its old entry is gone.
    let moved = other.replace("02:09:00:00:00:03", "02:09:00:00:00:02").replace(
        "address = \"203.0.113.254\"\nmac = \"02:09:00:00:00:02\"",
        "address = \"203.0.113.200\"\nmac = \"02:09:00:00:00:77\"",
    );
    assert_eq!(rig.reload(&moved).changed, ["neighbour"]);
    assert_eq!(rig.up(&session), ROUTERS[0]);
    // What needs a restart is named, and routes that lead through other interfaces than there are wait for it too.
    let file = FILE.replace("name = \"n6\"\n", "name = \"n6\"\nmtu = 1400\n")
        + "[limits]\nsessions = 5\nflows-reserved = 512\n";
    let told = rig.reload(&file);
    // What was not written down follows what it is a part of.
    let follows = ["limits.sessions", "limits.sessions-per-peer"];
    assert_eq!(
        (told.changed, told.restart),
        (follows.to_vec(), vec!["interface", "route", "neighbour", "limits.flows-reserved"])
    );
    assert_eq!(rig.up(&session), ROUTERS[0]);
    // What is told to be in force is what could be, and can be read.
    let (told, in_force) = (rig.in_force(), parse(&moved));
    assert_eq!((&told.routes, &told.neighbours), (&in_force.routes, &in_force.neighbours));
    assert_eq!(told.interfaces, in_force.interfaces);
    assert_eq!((told.limits.sessions, told.limits.flows_reserved), (5, in_force.limits.flows_reserved));
    // The SMF is no longer among the peers.
    let file =
        moved.replace("listen = \"127.0.0.1:0\"", "listen = \"127.0.0.1:0\"\npeers = [\"127.0.0.7/32\"]");
    let told = rig.reload(&file);
    assert_eq!(
        (told.changed, told.shut_out),
        ([&["n4.peers"], &follows[..]].concat(), vec!["198.51.100.100".to_owned()])
    );
    let release = rig.smf.ask(Nanos(0), MessageType::SESSION_DELETION_REQUEST, session.seid, |_| {});
    let refused = |rig: &Rig| {
        rig.backend
            .answer(N4::default())
            .unwrap()
            .counters
            .iter()
            .any(|c| c.line.counter == "not-allowed" && c.line.value > 0)
    };
    rig.until("a refusal", |rig| refused(rig));
    assert!(!rig.smf.answers.contains_key(&release), "it is not heard");
    assert_eq!(rig.backend.answer(Sessions { limit: 10, ..Sessions::default() }).unwrap().total, Some(1));
    // So is what is told last, and what is logged.
    let file = file.replace("peers = ", "last-reports = \"1s\"\npeers = ") + "[log]\nfilter = \"warn\"\n";
    assert_eq!(rig.reload(&file).changed, ["n4.last-reports", "log"]);
    let (told, file) = (rig.in_force(), parse(&file));
    assert_eq!((told.n4.last_reports, told.log), (file.n4.last_reports, file.log));
    // And back.
    assert_eq!(rig.reload(&moved).changed, ["n4.peers", "n4.last-reports", "log"]);
    rig.stop.store(true, Ordering::Relaxed);
    let (ended, _, usage) = rig.end();
    assert!(ended.is_ok());
    // The deletion that was not heard comes again, before the last report or after it.
    assert!(usage.len() <= 1);
}

/// Every limit, with another value than its default: those that change while the UPF runs, and the others.
const LIMITS: [(&str, u32, bool); 18] = [
    ("sessions", 2, true),
    ("sessions-per-peer", 2, true),
    ("peers", 3, true),
    ("rules-per-session", 9, true),
    ("filters-per-pdr", 5, true),
    ("buffered-packets", 100, true),
    ("buffered-packets-per-session", 7, true),
    ("reply-octets", 70_000, true),
    ("outstanding-requests", 9, true),
    ("fragmented-packets", 8, true),
    ("flows", 1_024, true),
    ("flows-reserved", 512, false),
    ("flows-per-session", 3, true),
    ("flow-idle-seconds", 5, true),
    ("new-flows-in-overload", 2, true),
    ("nat-mappings", 1_024, false),
    ("neighbours", 64, true),
    ("errors-per-second", 0, true),
];

#[test]
fn limits_are_read_anew_and_those_that_need_a_restart_are_named() {
    let mut rig = Rig::start(2, None);
    let file = |limits: &[(&str, u32, bool)]| {
        let lines: Vec<_> = limits.iter().map(|(name, value, _)| format!("{name} = {value}")).collect();
        format!("{FILE}[workers]\ncount = 2\n[limits]\n{}", lines.join("\n"))
    };
    let named = |live: bool| {
        let of = LIMITS.iter().filter(|limit| limit.2 == live);
        of.map(|limit| format!("limits.{}", limit.0)).collect::<Vec<_>>()
    };
    let first = rig.establish(1);
    let told = rig.reload(&file(&LIMITS));
    let told_before = told.changed.clone();
    assert_eq!(told.changed, named(true));
    assert_eq!(told.restart, named(false));
    rig.establish(2);
    let refused = SessionEstablishmentResponse::decode(&rig.ask_for_session(3)).unwrap();
    assert_eq!(refused.cause, Cause::NO_RESOURCES);
    assert_eq!(rig.up(&first), ROUTERS[0]);
    // Workers have heard of theirs: nobody is answered.
    assert_eq!(rig.answers_to_strangers(50), 0);
    let told = rig.reload(&file(&[]));
    assert_eq!((told.changed, told.restart.len()), (told_before, 0));
    rig.establish(4);
    assert_eq!(rig.answers_to_strangers(50), 50);
    // Ports have no more packet buffers than they were made with, whatever was in force meanwhile.
    let buffered = |packets, of_one| {
        [("buffered-packets", packets, true), ("buffered-packets-per-session", of_one, true)]
    };
    let names = ["limits.buffered-packets", "limits.buffered-packets-per-session"];
    for (asked, changed, restart, in_force) in [
        ([20_000, 17_000], &names[1..], &names[..1], [16_384, 16_384]),
        ([100, 64], &names[..], &[], [100, 64]),
        ([20_000, 64], &[], &names[..1], [100, 64]),
        ([16_384, 64], &names[..1], &[], [16_384, 64]),
    ] {
        let told = rig.reload(&file(&buffered(asked[0], asked[1])));
        assert_eq!((&*told.changed, &*told.restart), (changed, restart), "{asked:?}");
        let limits = rig.in_force().limits;
        assert_eq!([limits.buffered_packets, limits.buffered_packets_per_session], in_force, "{asked:?}");
    }
    rig.stop.store(true, Ordering::Relaxed);
    let (ended, _, usage) = rig.end();
    assert!(ended.is_ok());
    assert_eq!(usage.len(), 3);
}

#[test]
fn a_limit_below_what_was_taken_of_it_can_be_told_and_raised_again() {
    let flows =
        |flows: u32| format!("{FILE}[limits]\nflows = {flows}\nflows-reserved = {}\n", flows.min(4_096));
    let rig = Rig::start_with(&flows(8_192), 1, None);
    for (limit, restart) in [(1_024, &["limits.flows-reserved"][..]), (8_192, &[])] {
        let told = rig.reload(&flows(limit));
        assert_eq!((&*told.changed, &*told.restart), (&["limits.flows"][..], restart));
        assert_eq!(rig.in_force().limits, parse(&flows(limit)).limits);
    }
    rig.stop.store(true, Ordering::Relaxed);
    assert!(rig.end().0.is_ok());
}

#[test]
fn tunnels_are_fed_from_where_the_configuration_says() {
    let mut rig = Rig::start_with(&format!("{FILE}[n3]\ncheck-source = \"strict\"\n"), 1, None);
    let session = rig.establish(1);
    rig.up(&session);
    rig.offer_from(Ipv4Addr::new(192, 0, 2, 66), &session);
    let dropped = |rig: &Rig| {
        rig.backend.answer(Drops {}).unwrap().drops.iter().any(|line| line.reason == "foreign-far-end")
    };
    rig.until("a drop", |rig| dropped(rig));
    rig.up(&session);
    assert_eq!(rig.heard(&session), Some(GNB.into()));
    // Without the check a stranger's packet passes as the gNB's do.
    let told = rig.reload(FILE);
    assert_eq!((told.changed, told.restart.len()), (vec!["n3.check-source"], 0));
    assert_eq!(rig.in_force().n3, parse(FILE).n3);
    let stranger = Ipv4Addr::new(192, 0, 2, 66);
    assert_eq!(rig.up_from(stranger, &session), ROUTERS[0]);
    assert_eq!(rig.heard(&session), None);
    // Who is there first is learned, and can be asked for.
    rig.reload(&format!("{FILE}[n3]\ncheck-source = \"learn\"\n"));
    assert_eq!(rig.up_from(stranger, &session), ROUTERS[0]);
    assert_eq!(rig.heard(&session), Some(stranger.into()));
    rig.stop.store(true, Ordering::Relaxed);
    let (ended, _, usage) = rig.end();
    assert!(ended.is_ok());
    assert_eq!(usage[0].volume.unwrap().total.unwrap(), 400, "what was dropped is not counted");
}

#[test]
fn what_is_translated_changes_while_it_runs() {
    let log = std::env::temp_dir().join(format!("millrace-nat-reload-{}", std::process::id()));
    let with_log = format!("{FILE}[nat-log]\nfile = \"{}\"\n", log.display());
    let mut rig = Rig::start_with(&with_log, 1, None);
    let session = rig.establish(1);
    assert_eq!(rig.public(&session), session.ue);
    let pool = |name: &str, outside: &str| {
        format!("[[nat]]\nname = \"{name}\"\ninside = [\"10.45.0.0/16\"]\noutside = [\"{outside}\"]\n")
    };
    for (name, outside) in [("first", "198.18.0.0/24"), ("second", "198.18.1.0/24")] {
        let file = format!("{with_log}{}", pool(name, outside));
        let told = rig.reload(&file);
        assert_eq!((told.changed, told.restart.len()), (vec!["nat"], 0));
        assert_eq!(rig.in_force().nat, parse(&file).nat);
        assert_eq!(
            rig.public(&session).octets()[..3],
            outside.parse::<ipnet::Ipv4Net>().unwrap().addr().octets()[..3]
        );
        rig.backend.reports().unwrap();
        let pools: Vec<_> = rig
            .backend
            .answer(AskNat {})
            .unwrap()
            .pools
            .into_iter()
            .map(|line| (line.pool, line.mappings))
            .collect();
        assert_eq!(pools, [(name.to_owned(), 1)]);
    }
    // A policy that SMFs may name now, and the log that needs a restart.
    let policy = "[[nat]]\nname = \"direct\"\nforwarding-policy = \"direct\"\n\
                  [[nat-static]]\noutside = \"198.18.9.1\"\ninside = \"10.45.200.1\"\n\
                  [[nptv6]]\ninside = \"fd00:45::/48\"\noutside = \"2001:db8:46::/48\"\n";
    let file = parse(&format!("{FILE}{policy}")).nat;
    let told = rig.reload(&format!("{FILE}{policy}"));
    assert_eq!((told.changed, told.restart), (vec!["nat"], vec!["nat-log.file"]));
    assert_eq!(rig.in_force().nat, Nat { log: Some(log.clone()), ..file });
    assert_eq!(rig.public(&session), session.ue);
    rig.until("the end of what the last pool gave", |rig| {
        rig.backend.answer(AskNat {}).unwrap().pools.len() == 1
            && std::fs::read_to_string(&log).is_ok_and(|text| text.matches("released").count() == 2)
    });
    let lines: Vec<serde_json::Value> = std::fs::read_to_string(&log)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let said: Vec<_> =
        lines.iter().map(|line| (line["event"].as_str().unwrap(), line["pool"].as_str().unwrap())).collect();
    for (event, pool) in
        [("block-allocated", "first"), ("block-released", "first"), ("block-released", "second")]
    {
        assert!(said.contains(&(event, pool)), "{said:?}");
    }
    std::fs::remove_file(&log).unwrap();
    rig.stop.store(true, Ordering::Relaxed);
    assert!(rig.end().0.is_ok());
}

#[test]
fn a_policy_can_be_named_as_soon_as_the_file_has_it() {
    let mut rig = Rig::start(1, None);
    let naming = |rig: &mut Rig| {
        let mut request = measured(1, vec![urr(1, 0, threshold(1 << 40))]);
        let forwarding = request.create_fars[0].forwarding.as_mut().unwrap();
        forwarding.forwarding_policy = Some(pfcp::ie::PolicyId(b"lan"));
        let body = rig.ask_for(&request);
        let response = SessionEstablishmentResponse::decode(&body).unwrap();
        if response.cause == Cause::ACCEPTED { Ok(Established::new(&response)) } else { Err(response.cause) }
    };
    assert_eq!(naming(&mut rig).err(), Some(Cause::INVALID_FORWARDING_POLICY));
    let file = format!("{FILE}[[forwarding-policy]]\nid = \"lan\"\nnext-hop = [\"203.0.113.253\"]\n");
    let told = rig.reload(&file);
    assert_eq!((told.changed, told.restart.len()), (vec!["forwarding-policy"], 0));
    assert_eq!(rig.in_force().forwarding_policies, parse(&file).forwarding_policies);
    let session = naming(&mut rig).unwrap();
    assert_eq!(rig.up(&session), ROUTERS[1]);
    let listed = rig.backend.answer(api::Routes {}).unwrap().policies;
    let [line] = &listed[..] else { panic!("{listed:?}") };
    assert_eq!(
        (&*line.policy, &line.next_hops[..]),
        ("lan", &["203.0.113.253".parse::<IpAddr>().unwrap()][..])
    );
    // Whoever has it goes on by routes when it is gone.
    rig.reload(FILE);
    assert_eq!(rig.up(&session), ROUTERS[0]);
    assert_eq!(naming(&mut rig).err(), Some(Cause::INVALID_FORWARDING_POLICY));
    rig.stop.store(true, Ordering::Relaxed);
    assert!(rig.end().0.is_ok());
}

/// Seconds since 1970, as the test turns it.
static TIME: AtomicU64 = AtomicU64::new(1_000_000_000);

#[test]
fn the_clock_in_reports_is_the_systems_as_it_is_now() {
    let mut rig = Rig::start(1, Some(|| UNIX_EPOCH + Duration::from_secs(TIME.load(Ordering::Relaxed))));
    let session = rig.establish(1);
    rig.up(&session);
    // Set by a year.
    TIME.store(1_031_536_000, Ordering::Relaxed);
    rig.stop.store(true, Ordering::Relaxed);
    let (_, _, usage) = rig.end();
    let ntp = 1_031_536_000 + pfcp::calendar::NTP_AT_1970;
    let [start, end] = [usage[0].start, usage[0].end].map(|time| u64::from(time.unwrap().0));
    let duration = u64::from(usage[0].duration.unwrap());
    assert_eq!(end, ntp & 0xffff_ffff, "as the clock says now");
    assert!(end - start <= duration + 1, "a measurement keeps its length over a step: {start} to {end}");
}
