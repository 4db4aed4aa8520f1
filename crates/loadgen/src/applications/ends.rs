//! Messages become packets.

use super::{Application, Message};
use crate::rng::SplitMix64;
use packet::PacketBuilder;
use packet::tcp::{TcpFlags, TcpHeader};
use std::net::SocketAddr;

/// Octets of a stream in one packet, as after an MSS of 1,400.
const SEGMENT: usize = 1400;

/// Between whom a flow is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// Who begins.
    pub client: SocketAddr,
    /// The other one.
    pub server: SocketAddr,
}

/// A packet of a flow.
pub(super) struct Packet {
    /// The client sends it.
    pub from_client: bool,
    /// What is from the IP header on.
    pub octets: Vec<u8>,
}

impl Ends {
    fn ip(&self, from_client: bool) -> (PacketBuilder, u16, u16) {
        let (from, to) = if from_client { (self.client, self.server) } else { (self.server, self.client) };
        (PacketBuilder::new().ip(from.ip(), to.ip()), from.port(), to.port())
    }

    /// The packets of a flow on which this is said.
    pub(super) fn packets(
        &self,
        rng: &mut SplitMix64,
        application: Application,
        messages: &[Message],
        is_closed: bool,
    ) -> Vec<Packet> {
        if !application.is_stream() {
            let datagram = |message: &Message| {
                let (ip, from, to) = self.ip(message.from_client);
                let octets = ip.udp(from, to).build(&message.octets);
                Packet { from_client: message.from_client, octets }
            };
            return messages.iter().map(datagram).collect();
        }
        let mut stream = Stream { ends: *self, next: [rng.next_u64() as u32; 2], packets: Vec::new() };
        stream.send(true, TcpFlags::SYN, &[]);
        stream.send(false, TcpFlags::SYN.with(TcpFlags::ACK), &[]);
        stream.send(true, TcpFlags::ACK, &[]);
        for message in messages {
            for (nth, segment) in message.octets.chunks(SEGMENT).enumerate() {
                stream.send(message.from_client, TcpFlags::ACK.with(TcpFlags::PSH), segment);
                // Every second segment is acknowledged at once (RFC 9293 §3.8.6.3).
                if nth % 2 == 1 {
                    stream.send(!message.from_client, TcpFlags::ACK, &[]);
                }
            }
        }
        if is_closed {
            stream.send(true, TcpFlags::FIN.with(TcpFlags::ACK), &[]);
            stream.send(false, TcpFlags::FIN.with(TcpFlags::ACK), &[]);
            stream.send(true, TcpFlags::ACK, &[]);
        }
        stream.packets
    }
}

/// A connection under way.
struct Stream {
    ends: Ends,
    /// Sequence numbers that come next: the server's, the client's.
    next: [u32; 2],
    packets: Vec<Packet>,
}

impl Stream {
    fn send(&mut self, from_client: bool, flags: TcpFlags, payload: &[u8]) {
        let (ip, source_port, destination_port) = self.ends.ip(from_client);
        let [server, client] = self.next;
        let (sequence, other) = if from_client { (client, server) } else { (server, client) };
        let acknowledgement = if flags.contains(TcpFlags::ACK) { other } else { 0 };
        let header =
            TcpHeader { source_port, destination_port, sequence, acknowledgement, flags, window: 64_240 };
        self.packets.push(Packet { from_client, octets: ip.tcp(header).build(payload) });
        let counts = flags.contains(TcpFlags::SYN) || flags.contains(TcpFlags::FIN);
        let after = sequence.wrapping_add(payload.len() as u32 + u32::from(counts));
        self.next = if from_client { [server, after] } else { [after, client] };
    }
}
