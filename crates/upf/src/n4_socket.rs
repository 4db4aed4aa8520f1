//! Where SMFs reach us.
//!
//! A socket that is bound to the wildcard address answers from whatever address the way back prefers, and an SMF that compares drops
//! that. So each of the kernel's addresses gets a socket of its own: what comes in on one is answered from there. The kernel's
//! addresses change; they are looked at again every ten seconds.

use super::options::UpfError;
use crate::kernel;
use rustix::event::{PollFd, PollFlags};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use tables::Nanos;

const LOOK_EVERY: u64 = 10 * Nanos::SECOND;
/// Bytes of receive buffer that N4's sockets ask for: a burst of some thousand requests.
pub const SOCKET_BUFFER: usize = 8 << 20;
/// How many far ends are remembered with the address that they asked; beyond, all are learned anew.
const REMEMBERED: usize = 65_536;

/// The N4 sockets.
#[derive(Debug)]
pub(super) struct Sockets {
    /// What was asked for; the port is the one that is had.
    listen: SocketAddr,
    proc_net: PathBuf,
    open: Vec<(IpAddr, UdpSocket)>,
    /// The address of ours that somebody spoke to last; with port 0, somebody on that host.
    asked: HashMap<SocketAddr, IpAddr>,
    /// The socket to read next, so that none starves.
    turn: usize,
    next_look: Nanos,
}

impl Sockets {
    /// Listens on an address, or on all that the kernel has.
    pub fn listen(listen: SocketAddr, proc_net: PathBuf) -> Result<Self, UpfError> {
        let failed = |source| UpfError::Listen { address: listen, source };
        let mut sockets = Self {
            listen,
            proc_net,
            open: Vec::new(),
            asked: HashMap::new(),
            turn: 0,
            next_look: Nanos(LOOK_EVERY),
        };
        for address in sockets.wanted() {
            let socket = bind(SocketAddr::new(address, sockets.listen.port())).map_err(failed)?;
            // Port 0: the system chooses one, for all of them.
            sockets.listen.set_port(socket.local_addr().map_err(failed)?.port());
            sockets.open.push((address, socket));
        }
        Ok(sockets)
    }

    /// The addresses that there should be sockets for. Where the kernel doesn't say, the wildcard address itself.
    fn wanted(&self) -> Vec<IpAddr> {
        let any = self.listen.ip();
        if !any.is_unspecified() {
            return vec![any];
        }
        let mut wanted = self.local();
        // Addresses of one link are nobody's to give to an SMF in a configuration.
        let link_local = |address: Ipv6Addr| address.segments()[0] & 0xffc0 == 0xfe80;
        wanted.retain(|address| match address {
            IpAddr::V4(_) => true,
            IpAddr::V6(address) => any.is_ipv6() && !link_local(*address),
        });
        if wanted.is_empty() { vec![any] } else { wanted }
    }

    /// The addresses at which N4 can be reached, and every other of the kernel's, if that is all of them.
    pub fn local(&self) -> Vec<IpAddr> {
        let any = self.listen.ip();
        if !any.is_unspecified() {
            return vec![any];
        }
        let mut local = kernel::addresses(&self.proc_net);
        local.sort_unstable();
        local.dedup();
        local
    }

    /// Where SMFs reach us: the address that was configured, and the port.
    pub const fn address(&self) -> SocketAddr {
        self.listen
    }

    /// Looks whether the kernel has other addresses by now; those that it has, if it was time to look.
    pub fn look(&mut self, now: Nanos) -> Vec<IpAddr> {
        if !self.listen.ip().is_unspecified() || now < self.next_look {
            return Vec::new();
        }
        self.next_look = now.plus(LOOK_EVERY);
        let wanted = self.wanted();
        self.open.retain(|(address, _)| wanted.contains(address));
        for address in wanted {
            if self.open.iter().any(|(open, _)| *open == address) {
                continue;
            }
            // One that is not ready yet (an IPv6 address that is being checked for duplicates) is tried again.
            if let Ok(socket) = bind(SocketAddr::new(address, self.listen.port())) {
                tracing::info!(%address, "N4 listens here too");
                self.open.push((address, socket));
            }
        }
        self.local()
    }

    /// The next datagram, if there is one: its length and who sent it.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        let count = self.open.len();
        for at in 0..count {
            let turn = (self.turn + at) % count;
            let Some((address, socket)) = self.open.get(turn) else { continue };
            loop {
                match socket.recv_from(buffer) {
                    Ok((length, from)) => {
                        let address = *address;
                        self.turn = turn + 1;
                        if count > 1 {
                            self.remember(from, address);
                        }
                        return Some((length, from));
                    }
                    // An ICMP error for something that we sent: the retransmission timer takes care of it.
                    Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {}
                    Err(_) => break,
                }
            }
        }
        None
    }

    fn remember(&mut self, from: SocketAddr, address: IpAddr) {
        if self.asked.len() + 2 > REMEMBERED {
            self.asked.clear();
        }
        self.asked.insert(from, address);
        self.asked.insert(SocketAddr::new(from.ip(), 0), address);
    }

    /// Sends a datagram from the address that was asked; one to somebody who never asked from the one that the kernel would take.
    pub fn send(&mut self, datagram: &[u8], to: SocketAddr) {
        let at = if self.open.len() > 1 { self.socket_for(to) } else { 0 };
        if let Some((_, socket)) = self.open.get(at) {
            // A full socket buffer or an unreachable peer: PFCP retransmits.
            let _ = socket.send_to(datagram, to);
        }
    }

    /// The socket to speak to somebody from.
    fn socket_for(&mut self, to: SocketAddr) -> usize {
        let at = |from: IpAddr| self.open.iter().position(|(address, _)| *address == from);
        let host = SocketAddr::new(to.ip(), 0);
        let asked = self.asked.get(&to).or_else(|| self.asked.get(&host));
        if let Some(asked) = asked.and_then(|from| at(*from)) {
            return asked;
        }
        let preferred = preferred(to).and_then(|from| Some((from, at(from)?)));
        if let Some((from, _)) = preferred {
            self.remember(to, from);
        }
        preferred.map_or(0, |(_, at)| at)
    }

    /// What to wait for.
    pub fn poll_fds(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.open.iter().map(|(_, socket)| PollFd::new(socket, PollFlags::IN))
    }
}

/// The address that the kernel sends from to somebody.
fn preferred(to: SocketAddr) -> Option<IpAddr> {
    let any =
        if to.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    socket.connect(to).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

fn bind(address: SocketAddr) -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    // The kernel grants what net.core.rmem_max allows; less is not an error.
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER);
    Ok(socket)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// What the kernel would say of these addresses. Linux lets anybody bind to all of 127.0.0.0/8.
    fn say(proc_net: &std::path::Path, addresses: &[&str]) {
        let leaves: Vec<String> = addresses
            .iter()
            .map(|address| {
                format!(
                    "|-- {address}
/32 host LOCAL
"
                )
            })
            .collect();
        std::fs::create_dir_all(proc_net).unwrap();
        std::fs::write(proc_net.join("fib_trie"), leaves.concat()).unwrap();
    }

    fn wait(sockets: &mut Sockets) -> (Vec<u8>, SocketAddr) {
        let mut buffer = [0; 100];
        loop {
            if let Some((length, from)) = sockets.receive(&mut buffer) {
                return (buffer[..length].to_vec(), from);
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn answers_leave_from_the_address_that_was_asked() {
        let proc_net = std::env::temp_dir().join(format!("millrace-n4-socket-{}", std::process::id()));
        say(&proc_net, &["127.0.0.1", "127.0.91.2", "127.0.0.1"]);
        let mut sockets = Sockets::listen("0.0.0.0:0".parse().unwrap(), proc_net.clone()).unwrap();
        let port = sockets.address().port();
        assert!(port != 0 && sockets.open.len() == 2);
        let ask = |sockets: &mut Sockets, address: &str| {
            let smf = UdpSocket::bind("127.0.0.1:0").unwrap();
            let upf = SocketAddr::new(address.parse().unwrap(), port);
            smf.send_to(b"ask", upf).unwrap();
            let (datagram, from) = wait(sockets);
            assert_eq!((&datagram[..], from), (&b"ask"[..], smf.local_addr().unwrap()));
            let mut buffer = [0; 100];
            sockets.send(b"answer", from);
            assert_eq!(smf.recv_from(&mut buffer).unwrap(), (6, upf));
            // What is asked of an SMF at its other port, too.
            let other = UdpSocket::bind("127.0.0.1:0").unwrap();
            sockets.send(b"ours", other.local_addr().unwrap());
            assert_eq!(other.recv_from(&mut buffer).unwrap(), (4, upf));
        };
        ask(&mut sockets, "127.0.91.2");
        ask(&mut sockets, "127.0.0.1");
        assert_eq!(sockets.local(), ["127.0.0.1", "127.0.91.2"].map(|a| a.parse::<IpAddr>().unwrap()));
        // An address more, and one less.
        say(&proc_net, &["127.0.0.1", "127.0.91.3"]);
        assert!(sockets.look(Nanos(1)).is_empty(), "it isn't time yet");
        assert_eq!(sockets.look(Nanos(11 * Nanos::SECOND)).len(), 2);
        ask(&mut sockets, "127.0.91.3");
        assert!(sockets.open.iter().all(|(address, _)| address.to_string() != "127.0.91.2"));
        // One that never asked is spoken to from where the kernel would.
        let greeted = UdpSocket::bind("127.0.0.1:0").unwrap();
        sockets.asked.clear();
        sockets.send(b"hello", greeted.local_addr().unwrap());
        assert_eq!(greeted.recv_from(&mut [0; 100]).unwrap().1.ip().to_string(), "127.0.0.1");
        std::fs::remove_dir_all(proc_net).unwrap();
    }

    #[test]
    fn one_address_is_one_socket() {
        let nowhere = PathBuf::from("/nonexistent");
        let mut sockets = Sockets::listen("127.0.0.1:0".parse().unwrap(), nowhere.clone()).unwrap();
        assert_eq!((sockets.open.len(), sockets.local()), (1, vec![IpAddr::from([127, 0, 0, 1])]));
        assert!(sockets.look(Nanos(u64::MAX)).is_empty());
        let taken = Sockets::listen(sockets.address(), nowhere);
        assert!(matches!(taken, Err(UpfError::Listen { .. })), "the port is taken");
    }
}
