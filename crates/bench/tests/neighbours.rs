//! Neighbours that never speak first, and a whole UPF of one, two and three workers that has to find them: any worker may receive
//! the answer to any other's question.

use io::Frame;
use io::mem::{MemConfig, MemFrame, MemNic, MemWire};
use loadgen::facts::SessionFacts;
use loadgen::habits::Shape;
use loadgen::smf::{Smf, SmfConfig};
use loadgen::station::{Reaction, Station};
use packet::{
    EtherType, EthernetView, GtpuView, Ipv4View, Ipv6View, MacAddr, PacketBuilder, PduSession, UdpView,
    pdu_session,
};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use upf::{Options, Upf};

const MACS: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])];
const HOST: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);
const SESSIONS: u32 = 24;
const PATIENCE: Duration = Duration::from_secs(30);

const CONFIGURATION: &str = r#"
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
addresses = ["192.0.2.1/24", "2001:db8:3::1/64"]
[[interface]]
name = "n6"
port = "core"
roles = ["n6"]
addresses = ["203.0.113.1/24"]
[[route]]
to = "0.0.0.0/0"
via = "203.0.113.254"
"#;

/// gNBs of both families, each with a MAC address of its own.
fn gnbs() -> Vec<(IpAddr, MacAddr)> {
    let v4 = (0..8).map(|n| (Ipv4Addr::new(192, 0, 2, 10 + n).into(), MacAddr([2, 9, 0, 4, 0, n])));
    let v6 = (0..4).map(|n| (format!("2001:db8:3::{n:x}a").parse().unwrap(), MacAddr([2, 9, 0, 6, 0, n])));
    v4.chain(v6).collect()
}

/// What left: to the radio side the UE and the gNB's MAC address, to the data network source, destination and MAC address.
type Seen = BTreeSet<(IpAddr, IpAddr, MacAddr)>;

fn look(frame: &[u8], n3: bool) -> Option<(IpAddr, IpAddr, MacAddr)> {
    let ethernet = EthernetView::parse(frame).ok()?;
    let payload = match ethernet.ether_type() {
        EtherType::IPV4 => Ipv4View::parse(ethernet.payload()).ok()?.payload(),
        EtherType::IPV6 => Ipv6View::parse(ethernet.payload()).ok()?.payload(),
        _ => return None,
    };
    let ip = if n3 {
        Ipv4View::parse(GtpuView::parse(UdpView::parse(payload).ok()?.payload()).ok()?.payload()).ok()?
    } else {
        Ipv4View::parse(ethernet.payload()).ok()?
    };
    Some((ip.source().into(), ip.destination().into(), ethernet.destination()))
}

fn inject(wire: &mut MemWire, frame: &[u8]) {
    let mut frames = vec![MemFrame::copy_of(frame).unwrap()];
    wire.inject(&mut frames);
}

fn everybody_is_found(workers: u16) {
    let set = [format!("workers.count={workers}")];
    let config = config::parse("test", CONFIGURATION, &[], &set).map_err(|e| e.to_string()).unwrap();
    let nic = |mac| MemNic::new(MemConfig { mac, queues: workers, ..MemConfig::default() }).unwrap();
    let (ports, mut wires): (Vec<_>, Vec<_>) = MACS.into_iter().map(nic).unzip();
    let options = Options { no_ctl: true, reply_to_source_port: true, ..Options::default() };
    let upf = Upf::start(&config, ports, options).unwrap();
    let n4 = upf.n4_address();
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let thread = std::thread::spawn(move || upf.run(&flag).unwrap());
    let mut smf = Smf::bind(SmfConfig {
        shape: Shape { gnb_at_once: true, ..Shape::default() },
        gnbs: gnbs().iter().map(|(address, _)| *address).collect(),
        ..SmfConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)), n4)
    })
    .unwrap();
    smf.associate().unwrap();
    assert!(smf.establish(SESSIONS).unwrap().is_clean());
    let sessions: Vec<SessionFacts> = smf.facts();
    let router = MacAddr([2, 9, 0, 0, 0, 1]);
    let server = MacAddr([2, 9, 0, 0, 0, 2]);
    let mut stations = [
        Station::new(gnbs()),
        Station::new([(Ipv4Addr::new(203, 0, 113, 254).into(), router), (SERVER.into(), server)]),
    ];
    let mac_of = |gnb| gnbs().iter().find(|(address, _)| *address == gnb).unwrap().1;
    let mut wanted: [Seen; 2] = Default::default();
    for session in &sessions {
        let ue: IpAddr = session.ue_ipv4.unwrap().into();
        wanted[0].insert((HOST.into(), ue, mac_of(session.gnb)));
        wanted[1].extend([(ue, HOST.into(), router), (ue, SERVER.into(), server)]);
    }
    let deadline = Instant::now() + PATIENCE;
    let mut again = Instant::now();
    while wanted.iter().any(|wanted| !wanted.is_empty()) {
        assert!(Instant::now() < deadline, "{workers} workers: these never left: {wanted:?}");
        // Whatever has not left yet comes once more.
        if Instant::now() >= again {
            again = Instant::now() + Duration::from_millis(20);
            for session in &sessions {
                let ue = session.ue_ipv4.unwrap();
                if wanted[0].iter().any(|(_, to, _)| *to == IpAddr::V4(ue)) {
                    let packet = PacketBuilder::new().ethernet(MACS[1], router).ipv4(HOST, ue).udp(7, 9);
                    inject(&mut wires[1], &packet.build(b"an answer"));
                }
                for host in [HOST, SERVER] {
                    if !wanted[1].iter().any(|(from, to, _)| (*from, *to) == (ue.into(), host.into())) {
                        continue;
                    }
                    let qfi = session.qfi;
                    let container = PduSession::Uplink(pdu_session::Uplink { qfi, ..Default::default() });
                    let outer = PacketBuilder::new().ethernet(MACS[0], mac_of(session.gnb));
                    let own = if session.gnb.is_ipv4() { "192.0.2.1" } else { "2001:db8:3::1" };
                    let tunnel = outer.ip(session.gnb, own.parse().unwrap()).udp(2152, 2152);
                    let packet =
                        tunnel.gtpu(session.ul_teid).pdu_session(&container).ipv4(ue, host).udp(9, 7);
                    inject(&mut wires[0], &packet.build(b"question"));
                }
            }
        }
        for (port, station) in stations.iter_mut().enumerate() {
            let mut frames = Vec::new();
            wires[port].collect(&mut frames, 64);
            for frame in frames {
                if let Reaction::Reply(reply) = station.hear(frame.bytes()) {
                    inject(&mut wires[port], &reply);
                } else if let Some(seen) = look(frame.bytes(), port == 0) {
                    wanted[port].remove(&seen);
                }
            }
        }
        std::thread::yield_now();
    }
    stop.store(true, Ordering::Relaxed);
    let reports = thread.join().unwrap();
    assert!(reports.iter().all(|report| report.counters.balance() == 0));
}

#[test]
fn whoever_never_speaks_first_is_found_by_one_two_and_three_workers() {
    for workers in [1, 2, 3] {
        everybody_is_found(workers);
    }
}
