//! Redirections against the TCP of this machine's kernel, on both sides: a UE's browser, and the server of a connection from before.
//!
//! Both ends are TUN interfaces of one kernel, which would speak to itself otherwise; so to the server, the UE and it have other addresses.
#![allow(clippy::unwrap_used)]

use crate::rig::*;
use datapath::Config;
use datapath::command::Transition;
use io::tun::Tun;
use packet::gtpu::MessageType;
use packet::rewrite::{Side, set_ipv4};
use packet::{EthernetView, GtpuView, IpPacket, PacketBuilder, UdpView};
use session::rules::*;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The server of [`HOST`] as its own side knows it, and the UE as it knows that.
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 9);
const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 77);
/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

fn sh(commands: &[&str]) {
    for command in commands {
        assert!(Command::new("sh").args(["-c", command]).status().unwrap().success(), "{command}");
    }
}

/// The UE's interface, the server's, and the UPF between them.
struct Wires {
    ue: Tun,
    server: Tun,
    worker: Worker,
}

impl Wires {
    fn new() -> Self {
        let (ue, server) = (Tun::open("ue0", true).unwrap(), Tun::open("dn0", true).unwrap());
        sh(&[
            "ip link set lo up",
            "ip addr add 10.45.0.1/32 dev ue0",
            "ip addr add 198.51.100.9/24 dev dn0",
            "ip link set ue0 up mtu 1400",
            "ip link set dn0 up mtu 1400",
            "ip route add 8.8.8.8/32 dev ue0 src 10.45.0.1",
        ]);
        let mut rib = network(None);
        learn(&mut rib);
        Self { ue, server, worker: Worker::of(Config::new(rib.fib()), 2, |_| true) }
    }

    /// Carries what waits, once.
    fn carry(&mut self) {
        let mut packet = [0; 2_000];
        while let Ok(length) = self.ue.read(&mut packet) {
            let outer = PacketBuilder::new().ethernet(N3, GNB).ipv4(GNB_IP, N3_IP).udp(2152, 2152);
            let frame = outer.gtpu_message(MessageType::G_PDU, teid(UE)).build(&packet[..length]);
            self.worker.process(0, &[frame]);
        }
        while let Ok(length) = self.server.read(&mut packet) {
            let packet = &mut packet[..length];
            if IpPacket::parse(packet).is_ok_and(|ip| ip.key.destination == CLIENT) {
                set_ipv4(packet, Side::Source, HOST).unwrap();
                set_ipv4(packet, Side::Destination, UE).unwrap();
                self.worker.process(1, &[[&N6.0[..], &ROUTER.0, &[8, 0], packet].concat()]);
            }
        }
        for frame in self.worker.sent(0) {
            let outer = EthernetView::parse(&frame).unwrap();
            let offset = IpPacket::parse(outer.payload()).unwrap().transport_offset;
            let datagram = UdpView::parse(&outer.payload()[usize::from(offset)..]).unwrap();
            self.ue.write(GtpuView::parse(datagram.payload()).unwrap().payload()).unwrap();
        }
        for frame in self.worker.sent(1) {
            let mut packet = frame[14..].to_vec();
            set_ipv4(&mut packet, Side::Source, CLIENT).unwrap();
            set_ipv4(&mut packet, Side::Destination, SERVER).unwrap();
            self.server.write(&packet).unwrap();
        }
    }

    /// Carries all that people say to each other until they have said it.
    fn while_they<T: Send + 'static>(&mut self, speak: impl FnOnce() -> T + Send + 'static) -> T {
        let speaking = std::thread::spawn(speak);
        let until = Instant::now() + PATIENCE;
        while !speaking.is_finished() {
            assert!(Instant::now() < until, "somebody waits for ever");
            self.carry();
            std::thread::yield_now();
        }
        speaking.join().unwrap()
    }
}

/// A session whose packets from the UE go on, or are redirected.
fn session(redirect: bool) -> Arc<Rules> {
    let place = place(UE);
    let fars = [
        Forward { redirect: redirect.then_some(0), ..Forward::to(Destination::Core, None) },
        Forward::to(Destination::Access, Some(OuterHeader { teid: packet::Teid(77), peer: GNB_IP.into() })),
    ];
    let far = |(id, forward)| Far { id: pfcp::FarId(id), action: Action::Forward(forward) };
    let pdrs = [
        Pdr::all(pfcp::PdrId(1), Source::Access, Some(tunnel_at(place)), 0),
        Pdr::all(pfcp::PdrId(2), Source::Core, None, 1),
    ];
    let fars: Vec<_> = (1..).zip(fars).map(far).collect();
    Arc::new(Rules {
        redirects: ["http://portal.example/".into()].into(),
        ..Rules::of(place, Some(UE), pdrs, fars)
    })
}

fn connect() -> TcpStream {
    let stream = TcpStream::connect((HOST, 80)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[test]
fn redirected() {
    testing::in_namespace("redirected_body");
}

#[test]
#[ignore = "run by `redirected` in a namespace of its own"]
fn redirected_body() {
    let mut wires = Wires::new();
    let listener = TcpListener::bind((SERVER, 80)).unwrap();
    wires.worker.install(&session(false), Transition::default());
    let (mut client, mut server, listener) = wires.while_they(move || {
        let mut client = connect();
        let (mut server, _) = listener.accept().unwrap();
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(b"before").unwrap();
        let mut heard = [0; 6];
        server.read_exact(&mut heard).unwrap();
        server.write_all(&heard).unwrap();
        client.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"before");
        (client, server, listener)
    });
    // In its midst the UE is redirected: both ends learn that it is over.
    wires.worker.install(&session(true), Transition::default());
    let (of_client, of_server) = wires.while_they(move || {
        // An acknowledgement that was still to come may have told it already.
        let of_client = client.write_all(b"what becomes of this?").and_then(|()| client.read(&mut [0; 9]));
        (of_client, server.read(&mut [0; 9]))
    });
    assert_eq!(of_client.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(of_server.unwrap_err().kind(), ErrorKind::ConnectionReset);
    // What begins now is answered, request by request, and no server hears of it.
    let requests: [&[&[u8]]; 3] = [
        &[b"GET / HTTP/1.1\r\nHost: news.example\r\n\r\n"],
        &[b"POST /form HTTP/1.1\r\n", b"Content-Length: 4\r\n\r\n", b"body"],
        &[&[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]],
    ];
    for request in requests {
        let said = request.concat();
        let parts: Vec<_> = request.iter().map(|part| part.to_vec()).collect();
        let heard = wires.while_they(move || {
            let mut client = connect();
            client.set_nodelay(true).unwrap();
            let mut text = String::new();
            for part in parts {
                // The answer may come before the request is over.
                let _ = client.write_all(&part);
            }
            client.read_to_string(&mut text).map(|_| text)
        });
        if said.starts_with(&[22]) {
            assert_eq!(heard.unwrap_err().kind(), ErrorKind::ConnectionReset, "TLS");
        } else {
            let text = heard.unwrap();
            assert!(text.starts_with("HTTP/1.1 302 Found\r\n"), "{text}");
            assert!(text.contains("\r\nLocation: http://portal.example/\r\n"), "{text}");
        }
    }
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(wires.worker.datapath.counters().redirected, 2);
}
