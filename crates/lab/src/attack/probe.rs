//! The innocent session: its gNB with the UE, and the server that it talks to, in one thread, so that what is measured is the UPF between
//! them and not the lab's own programs.

use crate::LabError;
use crate::topology::{Namespaces, address};
use loadgen::facts::SessionFacts;
use loadgen::latency::{Latencies, LatencySummary};
use packet::gtpu::{self, GtpuView, MessageType};
use packet::{GTP_U_PORT, IpProtocol, Ipv4View, Ipv6View, PacketBuilder, UdpView};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The server's port: echo (RFC 862).
const ECHO: u16 = 7;
/// The UE's.
const UE_PORT: u16 = 40_000;
/// How long an answer is waited for when all packets have been sent.
const LAST: Duration = Duration::from_secs(3);

/// How long it is waited for packets at a time, at most.
const MOMENT: Duration = Duration::from_millis(20);

/// What came of some packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Served {
    pub sent: u64,
    pub returned: u64,
    pub latency: LatencySummary,
}

/// Both ends of the session.
#[derive(Debug)]
pub(super) struct Probe {
    gnb: UdpSocket,
    servers: [UdpSocket; 2],
    facts: SessionFacts,
    /// Packets are numbered for good.
    next: u64,
    buffer: Vec<u8>,
}

impl Probe {
    /// Its sockets.
    pub fn new(namespaces: &Namespaces, facts: &SessionFacts) -> Result<Self, LabError> {
        let bind = |namespace: &str, at: SocketAddr| -> Result<UdpSocket, LabError> {
            let socket = Namespaces::inside(namespace, || UdpSocket::bind(at))?.map_err(LabError::Os)?;
            socket.set_nonblocking(true).map_err(LabError::Os)?;
            let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 4 << 20);
            Ok(socket)
        };
        let server = |ip: IpAddr| bind(&namespaces.dn, SocketAddr::new(ip, ECHO));
        Ok(Self {
            gnb: bind(&namespaces.ran, SocketAddr::new(facts.gnb, GTP_U_PORT))?,
            servers: [server(address::DN.into())?, server(address::DN_V6.into())?],
            facts: facts.clone(),
            next: 0,
            buffer: vec![0; 2048],
        })
    }

    /// Sends at this rate for so long, or until told to stop, and waits for the last answers. `sent_all` is called between the two.
    pub fn run(
        &mut self,
        rate: u32,
        span: Duration,
        stop: &AtomicBool,
        sent_all: impl FnOnce(),
    ) -> Result<Served, LabError> {
        let (mut away, mut latencies) = (HashMap::new(), Latencies::new());
        let mut served = Served::default();
        let (started, interval) = (Instant::now(), Duration::from_secs(1) / rate.max(1));
        let mut due = started;
        let mut packet = Vec::with_capacity(256);
        while started.elapsed() < span && !stop.load(Ordering::Relaxed) {
            while due <= Instant::now() {
                due += interval;
                self.request(&mut packet);
                away.insert(self.next, Instant::now());
                self.next += 1;
                served.sent += 1;
                let to = SocketAddr::new(self.facts.upf_n3, GTP_U_PORT);
                self.gnb.send_to(&packet, to).map_err(LabError::Os)?;
            }
            self.listen(due.saturating_duration_since(Instant::now()), &mut away, &mut latencies)?;
        }
        sent_all();
        let sent_at = Instant::now();
        while !away.is_empty() && sent_at.elapsed() < LAST {
            self.listen(MOMENT, &mut away, &mut latencies)?;
        }
        served.returned = served.sent - away.len() as u64;
        served.latency = latencies.summary();
        Ok(served)
    }

    /// The next packet: IPv4 and IPv6 in turn.
    fn request(&self, packet: &mut Vec<u8>) {
        let facts = &self.facts;
        let v4 = facts.ue_ipv4.filter(|_| self.next & 1 == 0).map(IpAddr::V4);
        let (ue, server) = match (v4, facts.ue_ipv6_address()) {
            (None, Some(ue)) => (ue.into(), address::DN_V6.into()),
            (ue, _) => (ue.unwrap_or(facts.gnb), IpAddr::V4(address::DN)),
        };
        let inner = PacketBuilder::new().ip(ue, server).udp(UE_PORT, ECHO).build(&self.next.to_be_bytes());
        let mut header = [0; gtpu::PSC_HEADER_LEN];
        gtpu::emit_gpdu_uplink(&mut header, facts.ul_teid, facts.qfi, inner.len());
        packet.clear();
        packet.extend(header);
        packet.extend(inner);
    }

    /// Answers what came to the server, and takes answers that came to the UE, until there is nothing more for so long.
    fn listen(
        &mut self,
        patience: Duration,
        away: &mut HashMap<u64, Instant>,
        latencies: &mut Latencies,
    ) -> Result<(), LabError> {
        // Less than a second.
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.min(MOMENT).subsec_nanos()) };
        {
            let [v4, v6] = &self.servers;
            let mut fds = [&self.gnb, v4, v6].map(|socket| PollFd::new(socket, PollFlags::IN));
            match poll(&mut fds, Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(LabError::Os(error.into())),
            }
        }
        for server in &self.servers {
            while let Ok((length, from)) = server.recv_from(&mut self.buffer) {
                let _ = server.send_to(self.buffer.get(..length).unwrap_or_default(), from);
            }
        }
        while let Ok((length, _)) = self.gnb.recv_from(&mut self.buffer) {
            let message = self.buffer.get(..length).unwrap_or_default();
            if let Some(sent) = number(message, &self.facts).and_then(|number| away.remove(&number)) {
                latencies.record(sent.elapsed().as_nanos() as u64);
            }
        }
        Ok(())
    }
}

/// Which packet this is the answer to.
fn number(message: &[u8], facts: &SessionFacts) -> Option<u64> {
    let gtpu = GtpuView::parse(message).ok()?;
    if gtpu.message_type() != MessageType::G_PDU || gtpu.teid() != facts.dl_teid {
        return None;
    }
    let packet = gtpu.payload();
    let udp = match Ipv4View::parse(packet) {
        Ok(ip) => Some(ip.payload()).filter(|_| ip.protocol() == IpProtocol::UDP),
        Err(_) => Ipv6View::parse(packet)
            .ok()
            .filter(|ip| ip.next_header() == IpProtocol::UDP)
            .map(|ip| ip.payload()),
    };
    let udp = UdpView::parse(udp?).ok()?;
    (udp.destination_port() == UE_PORT).then(|| udp.payload().try_into().ok().map(u64::from_be_bytes))?
}
