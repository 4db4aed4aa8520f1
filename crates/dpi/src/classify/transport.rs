//! What inspection reads of a packet's transport header.

use crate::classify::classifier::Classifier;
use crate::classify::examination::Segment;
use crate::classify::message::Carrier;
use packet::{IpPacket, IpProtocol};

/// A packet that is pushed.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'p> {
    /// Its headers.
    pub ip: IpPacket,
    /// All of it, from the IP header on.
    pub bytes: &'p [u8],
    /// The number of the tunnel that it came in.
    pub tunnel: Option<u32>,
}

/// What carries messages, of what IP carries.
pub(crate) const fn carrier(protocol: IpProtocol) -> Option<Carrier> {
    match protocol {
        IpProtocol::TCP => Some(Carrier::Tcp),
        IpProtocol::UDP => Some(Carrier::Udp),
        IpProtocol::SCTP => Some(Carrier::Sctp),
        _ => None,
    }
}

/// What inspection reads of a transport header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transport<'p> {
    pub carrier: Option<Carrier>,
    pub segment: Option<Segment>,
    pub payload: &'p [u8],
    pub is_syn: bool,
    pub is_ack: bool,
    pub is_fin: bool,
    pub is_reset: bool,
}

impl<'p> Transport<'p> {
    #[inline]
    pub fn read(packet: &Packet<'p>) -> Self {
        let end = usize::from(packet.ip.total_len).min(packet.bytes.len());
        let segment = packet.bytes.get(usize::from(packet.ip.transport_offset)..end).unwrap_or_default();
        let carrier = if packet.ip.fragment.is_some_and(|it| !it.is_first()) {
            None
        } else {
            carrier(packet.ip.key.protocol)
        };
        let mut transport = Self {
            carrier,
            segment: None,
            payload: segment,
            is_syn: false,
            is_ack: false,
            is_fin: false,
            is_reset: false,
        };
        match carrier {
            Some(Carrier::Udp) => transport.payload = segment.get(8..).unwrap_or_default(),
            Some(Carrier::Tcp) => transport.read_tcp(segment),
            Some(Carrier::Sctp) => transport.payload = sctp_data(segment),
            None => {}
        }
        transport
    }

    fn read_tcp(&mut self, segment: &'p [u8]) {
        let [flags, offset] = [13, 12].map(|at| segment.get(at).copied().unwrap_or_default());
        let header = usize::from(offset >> 4).max(5) * 4;
        self.payload = segment.get(header..).unwrap_or_default();
        [self.is_fin, self.is_syn, self.is_reset, self.is_ack] = [1, 2, 4, 16].map(|bit| flags & bit != 0);
        if let Some(sequence) = segment.get(4..).and_then(|it| it.first_chunk()) {
            let sequence = u32::from_be_bytes(*sequence).wrapping_add(u32::from(self.is_syn));
            self.segment = Some(Segment { sequence, is_syn: self.is_syn });
        }
        if self.is_reset {
            // What a reset carries is a reason for people (RFC 9293 §3.5.3).
            self.payload = &[];
        }
    }

    /// Who begins: the sender of the first packet, unless that is an answer, or comes from a server's port.
    pub fn comes_from_client(&self, packet: &Packet<'_>, classifier: &Classifier) -> bool {
        if self.is_syn {
            return !self.is_ack;
        }
        let (Some(carrier), Some(ports)) = (self.carrier, packet.ip.key.ports) else { return true };
        let is_server = |port: u16| port < 1024 || classifier.of_port(carrier, port).next().is_some();
        match (is_server(ports.source), is_server(ports.destination)) {
            (true, false) => false,
            (true, true) => ports.source >= ports.destination,
            _ => true,
        }
    }

    /// A segment that neither begins a stream nor says anything.
    pub const fn is_silent(&self) -> bool {
        matches!(self.carrier, Some(Carrier::Tcp)) && self.payload.is_empty() && !self.is_syn
    }

    pub const fn is_opening(&self) -> bool {
        self.is_syn && !self.is_ack
    }
}

/// The payload of the first DATA chunk of an SCTP packet (RFC 9260 §3.3.1), of a few chunks at most.
fn sctp_data(packet: &[u8]) -> &[u8] {
    let mut rest = packet.get(12..).unwrap_or_default();
    for _ in 0..8 {
        let Some([kind, _, high, low]) = rest.first_chunk::<4>().copied() else { break };
        let length = usize::from(u16::from_be_bytes([high, low]));
        if kind == 0 {
            return rest.get(16..length.clamp(16, rest.len().max(16))).unwrap_or_default();
        }
        rest = rest.get(length.max(4).next_multiple_of(4)..).unwrap_or_default();
    }
    &[]
}
