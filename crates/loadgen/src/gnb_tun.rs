//! A gNB with one UE whose programs are real: what they send through a TUN interface travels in GTP-U.
//!
//! Used by the lab: the interface has the UE's addresses, its routes lead everything there, and this loop is radio,
//! gNB and N3 in one. One thread, two file descriptors.

use io::tun::Tun;
use packet::gtpu::{self, GtpuView, MessageType};
use packet::gtpu_message::{self, ErrorIndication};
use packet::{GTP_U_PORT, PduSession, Qfi, Teid};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};

/// The longest IP packet that is carried.
const MAX_PACKET: usize = 65_535;
/// Packets taken from one side before the other gets its turn.
const BURST: usize = 64;

/// Where a UE's IP packets come from and go to. Must not block.
pub trait PacketDevice: AsFd {
    /// Takes one packet; says how long it is.
    fn read(&self, packet: &mut [u8]) -> std::io::Result<usize>;
    /// Gives one packet.
    fn write(&self, packet: &[u8]) -> std::io::Result<()>;
}

impl PacketDevice for Tun {
    fn read(&self, packet: &mut [u8]) -> std::io::Result<usize> {
        Self::read(self, packet)
    }

    fn write(&self, packet: &[u8]) -> std::io::Result<()> {
        Self::write(self, packet)
    }
}

/// A socket pair in place of an interface, for UEs within the process.
impl PacketDevice for UnixDatagram {
    fn read(&self, packet: &mut [u8]) -> std::io::Result<usize> {
        self.recv(packet)
    }

    fn write(&self, packet: &[u8]) -> std::io::Result<()> {
        self.send(packet).map(|_| ())
    }
}

/// Both ends of the session's tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tunnel {
    /// The UPF's N3 address.
    pub upf: IpAddr,
    /// The UPF's TEID.
    pub ul_teid: Teid,
    /// Ours.
    pub dl_teid: Teid,
    /// Marks uplink packets.
    pub qfi: Qfi,
}

/// The gNB's socket or the UE's device failed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The gNB can't have its address or port.
    #[error("GTP-U socket on {address}: {error}")]
    Bind {
        /// What was asked for.
        address: SocketAddr,
        /// The system's answer.
        error: std::io::Error,
    },
    /// Waiting failed.
    #[error("waiting for packets: {0}")]
    Poll(std::io::Error),
    /// The UE's interface is gone.
    #[error("the UE's interface: {0}")]
    Device(std::io::Error),
}

/// What went through.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct LabCounts {
    /// Packets of the UE sent to the UPF.
    pub uplink: u64,
    /// Packets for the UE.
    pub downlink: u64,
    /// Uplink packets that the socket did not take.
    pub uplink_dropped: u64,
    /// Downlink packets that the interface did not take.
    pub downlink_dropped: u64,
    /// G-PDUs for a tunnel that we don't have; answered with an error indication.
    pub unknown_teid: u64,
    /// G-PDUs without a downlink PDU session container. On N3 it is mandatory (TS 38.415), but a UPF whose SMF gives no QER
    /// knows no QFI; gNBs deliver such packets on the session's default bearer, and so do we.
    pub no_container: u64,
    /// Datagrams that aren't GTP-U, or not from the UPF.
    pub stray: u64,
    /// Echo requests, answered.
    pub echo_requests: u64,
    /// End markers.
    pub end_markers: u64,
    /// Error indications: the UPF doesn't know our tunnel.
    pub error_indications: u64,
    /// Other messages.
    pub others: u64,
}

/// A gNB with one UE.
#[derive(Debug)]
pub struct LabGnb<D> {
    device: D,
    socket: UdpSocket,
    tunnel: Tunnel,
    counts: LabCounts,
    buffer: Vec<u8>,
    reply: Vec<u8>,
}

impl<D: PacketDevice> LabGnb<D> {
    /// A gNB at `address` (port 2152 in real life) for the UE behind `device`, which must not block.
    pub fn new(device: D, address: SocketAddr, tunnel: Tunnel) -> Result<Self, LabError> {
        let failed = |error| LabError::Bind { address, error };
        let socket = UdpSocket::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        // TCP's bursts must fit. A host that allows less gives less.
        let _ = sockopt::set_socket_recv_buffer_size(&socket, 4 << 20);
        let _ = sockopt::set_socket_send_buffer_size(&socket, 4 << 20);
        Ok(Self {
            device,
            socket,
            tunnel,
            counts: LabCounts::default(),
            buffer: vec![0; gtpu::PSC_HEADER_LEN + MAX_PACKET],
            reply: Vec::new(),
        })
    }

    /// Where the gNB is.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Moves the session to another tunnel.
    pub const fn set_tunnel(&mut self, tunnel: Tunnel) {
        self.tunnel = tunnel;
    }

    /// What went through so far.
    pub const fn counts(&self) -> &LabCounts {
        &self.counts
    }

    /// Carries packets until `stop`, which is looked at every 100 ms.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), LabError> {
        while !stop.load(Ordering::Relaxed) {
            self.step(100)?;
        }
        Ok(())
    }

    /// Waits at most `milliseconds` for packets and carries those that are there.
    pub fn step(&mut self, milliseconds: u32) -> Result<(), LabError> {
        let timeout = Timespec {
            tv_sec: i64::from(milliseconds / 1000),
            tv_nsec: i64::from(milliseconds % 1000) * 1_000_000,
        };
        let (from_ue, from_upf) = {
            let mut fds =
                [PollFd::new(&self.device, PollFlags::IN), PollFd::new(&self.socket, PollFlags::IN)];
            match poll(&mut fds, Some(&timeout)) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => return Ok(()),
                Err(error) => return Err(LabError::Poll(error.into())),
            }
            let [ue, upf] = fds.map(|fd| !fd.revents().is_empty());
            (ue, upf)
        };
        if from_ue {
            self.uplink()?;
        }
        if from_upf {
            self.downlink()?;
        }
        Ok(())
    }

    fn uplink(&mut self) -> Result<(), LabError> {
        let upf = self.gtpu_address();
        for _ in 0..BURST {
            let Some((header, packet)) = self.buffer.split_first_chunk_mut::<{ gtpu::PSC_HEADER_LEN }>()
            else {
                return Ok(());
            };
            let length = match self.device.read(packet) {
                Ok(length) => length,
                Err(error) if would_wait(&error) => return Ok(()),
                Err(error) => return Err(LabError::Device(error)),
            };
            gtpu::emit_gpdu_uplink(header, self.tunnel.ul_teid, self.tunnel.qfi, length);
            let message = self.buffer.get(..gtpu::PSC_HEADER_LEN + length).unwrap_or_default();
            match self.socket.send_to(message, upf) {
                Ok(_) => self.counts.uplink += 1,
                // A full queue drops, as radio does; so does a UPF that isn't there.
                Err(_) => self.counts.uplink_dropped += 1,
            }
        }
        Ok(())
    }

    fn gtpu_address(&self) -> SocketAddr {
        SocketAddr::new(self.tunnel.upf, GTP_U_PORT)
    }

    fn downlink(&mut self) -> Result<(), LabError> {
        for _ in 0..BURST {
            let (length, peer) = match self.socket.recv_from(&mut self.buffer) {
                Ok(received) => received,
                // An ICMP error about something sent before; the next receive goes on.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue,
                Err(error) if would_wait(&error) => return Ok(()),
                Err(error) => return Err(LabError::Poll(error)),
            };
            let message = self.buffer.get(..length).unwrap_or_default();
            let Ok(view) = GtpuView::parse(message) else {
                self.counts.stray += 1;
                continue;
            };
            if peer.ip() != self.tunnel.upf {
                self.counts.stray += 1;
                continue;
            }
            match view.message_type() {
                MessageType::G_PDU if view.teid() != self.tunnel.dl_teid => {
                    self.counts.unknown_teid += 1;
                    let local = self.socket.local_addr().map_or(self.tunnel.upf, |address| address.ip());
                    let error = ErrorIndication { teid: view.teid(), peer: local };
                    self.reply.clear();
                    gtpu_message::emit_error_indication(&mut self.reply, 0, &error, Some(peer.port()));
                    let _ = self.socket.send_to(&self.reply, self.gtpu_address());
                }
                MessageType::G_PDU => {
                    if !matches!(view.pdu_session(), Ok(Some(PduSession::Downlink(_)))) {
                        self.counts.no_container += 1;
                    }
                    match self.device.write(view.payload()) {
                        Ok(()) => self.counts.downlink += 1,
                        // The interface is down, or refuses what isn't IP.
                        Err(_) => self.counts.downlink_dropped += 1,
                    }
                }
                MessageType::ECHO_REQUEST => {
                    self.counts.echo_requests += 1;
                    self.reply.clear();
                    gtpu_message::emit_echo_response(&mut self.reply, view.sequence().unwrap_or(0));
                    // A response goes back to where the request came from (TS 29.281 §4.4.2.2).
                    let _ = self.socket.send_to(&self.reply, peer);
                }
                MessageType::END_MARKER => self.counts.end_markers += 1,
                MessageType::ERROR_INDICATION => self.counts.error_indications += 1,
                _ => self.counts.others += 1,
            }
        }
        Ok(())
    }
}

fn would_wait(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use packet::gtpu::PSC_HEADER_LEN;

    const TUNNEL_TEID: Teid = Teid(0x0a0b_0c0d);

    struct Lab {
        ue: UnixDatagram,
        upf: UdpSocket,
        gnb: LabGnb<UnixDatagram>,
        at: SocketAddr,
    }

    /// The UPF answers at port 2152, so each test has an address of its own on the loopback interface.
    fn lab(host: u8) -> Lab {
        let (ue, device) = UnixDatagram::pair().unwrap();
        device.set_nonblocking(true).unwrap();
        let upf_ip = IpAddr::from([127, 77, 0, host]);
        let upf = UdpSocket::bind((upf_ip, GTP_U_PORT)).unwrap();
        upf.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        let tunnel = Tunnel { upf: upf_ip, ul_teid: Teid(7), dl_teid: TUNNEL_TEID, qfi: Qfi::from_wire(9) };
        let gnb = LabGnb::new(device, SocketAddr::from(([127, 78, 0, host], 0)), tunnel).unwrap();
        let at = gnb.local_addr().unwrap();
        Lab { ue, upf, gnb, at }
    }

    fn downlink(teid: Teid, payload: &[u8]) -> Vec<u8> {
        let mut header = [0; PSC_HEADER_LEN];
        gtpu::emit_gpdu_downlink(&mut header, teid, Qfi::from_wire(9), false, payload.len());
        [&header[..], payload].concat()
    }

    #[test]
    fn packets_go_through_the_tunnel_both_ways() {
        let mut lab = lab(1);
        lab.ue.send(b"an IP packet, say").unwrap();
        lab.gnb.step(1000).unwrap();
        let mut buffer = [0; 200];
        let (length, peer) = lab.upf.recv_from(&mut buffer).unwrap();
        assert_eq!(peer, lab.at);
        let view = GtpuView::parse(&buffer[..length]).unwrap();
        assert_eq!(
            (view.message_type(), view.teid(), view.payload()),
            (MessageType::G_PDU, Teid(7), &b"an IP packet, say"[..])
        );
        let Some(PduSession::Uplink(container)) = view.pdu_session().unwrap() else {
            panic!("no UL container")
        };
        assert_eq!(container.qfi.get(), 9);

        lab.upf.send_to(&downlink(TUNNEL_TEID, b"its answer"), lab.at).unwrap();
        lab.gnb.step(1000).unwrap();
        let length = lab.ue.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"its answer");
        assert_eq!((lab.gnb.counts().uplink, lab.gnb.counts().downlink), (1, 1));
    }

    #[test]
    fn control_messages_are_answered_and_counted() {
        let mut lab = lab(2);
        let mut buffer = [0; 200];
        let mut echo = Vec::new();
        gtpu_message::emit_echo_request(&mut echo, 5);
        lab.upf.send_to(&echo, lab.at).unwrap();
        lab.gnb.step(1000).unwrap();
        let length = lab.upf.recv(&mut buffer).unwrap();
        let view = GtpuView::parse(&buffer[..length]).unwrap();
        assert_eq!((view.message_type(), view.sequence()), (MessageType::ECHO_RESPONSE, Some(5)));

        lab.upf.send_to(&downlink(Teid(99), b"lost"), lab.at).unwrap();
        lab.gnb.step(1000).unwrap();
        let length = lab.upf.recv(&mut buffer).unwrap();
        let view = GtpuView::parse(&buffer[..length]).unwrap();
        assert_eq!(view.message_type(), MessageType::ERROR_INDICATION);
        let error = ErrorIndication::parse(view.payload()).unwrap();
        assert_eq!((error.teid, error.peer), (Teid(99), lab.at.ip()));

        let mut marker = [0; gtpu::HEADER_LEN];
        gtpu::emit_end_marker(&mut marker, TUNNEL_TEID);
        let mut bare = [0; gtpu::HEADER_LEN];
        gtpu::emit_gpdu(&mut bare, TUNNEL_TEID, 0);
        for message in [&marker[..], &bare, b"not GTP-U"] {
            lab.upf.send_to(message, lab.at).unwrap();
        }
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        stranger.send_to(&downlink(TUNNEL_TEID, b"forged"), lab.at).unwrap();
        while lab.gnb.counts().stray < 2 {
            lab.gnb.step(1000).unwrap();
        }
        let expected = LabCounts {
            unknown_teid: 1,
            no_container: 1,
            downlink: 1,
            stray: 2,
            echo_requests: 1,
            end_markers: 1,
            ..LabCounts::default()
        };
        assert_eq!(*lab.gnb.counts(), expected);
    }

    #[test]
    fn it_stops_when_told() {
        let mut lab = lab(3);
        lab.gnb.run(&AtomicBool::new(true)).unwrap();
        lab.gnb.step(0).unwrap();
        assert_eq!(*lab.gnb.counts(), LabCounts::default());
    }
}
