//! What conversations are of, as the inspector of these tests would say: once more, and plainly.

use super::*;
use std::collections::HashSet;

/// Packets and bytes of a conversation that are shown.
pub const BUDGET: (u32, u32) = (6, 2000);

/// A flow: the tunnel it comes in, source, destination, ports, protocol, QFI, and the bits of its ToS that filters look at.
type Flow = (Option<Teid>, IpAddr, IpAddr, (u16, u16), u8, Option<Qfi>, u8);

/// Session, both ends, protocol.
type Name = ((usize, u32), [(IpAddr, u16); 2], u8);

#[derive(Default)]
struct Conversation {
    shown: (u32, u32),
    decided: bool,
    /// By the verdict, or so far.
    application: Option<u16>,
    flows: HashSet<Flow>,
}

#[derive(Default)]
pub struct Conversations(HashMap<Name, Conversation>);

/// What is to be known of a packet to find its conversation.
#[derive(Clone)]
pub struct Talk {
    name: Name,
    flow: Flow,
    payload: Vec<u8>,
    bytes: u32,
}

impl Talk {
    /// `None`: packets like it are never shown.
    pub fn of(
        world: &World,
        id: (usize, u32),
        rules: &Rules,
        teid: Option<Teid>,
        qfi: Option<Qfi>,
        packet: &[u8],
    ) -> Option<Self> {
        let (source, destination) = addresses(packet);
        let (protocol, transport) = if source.is_ipv4() {
            if packet[6] & 0x3f != 0 || packet[7] != 0 {
                return None;
            }
            (packet[9], &packet[20..])
        } else {
            let ue = if teid.is_some() { source } else { destination };
            let usual = |net: ipnet::Ipv6Net| {
                let (pool, length) = world.delegated;
                net.prefix_len() == if pool.contains(&net.network()) { length } else { 64 }
            };
            let own = rules.ue_ipv6.is_some_and(|net| usual(net) && IpNet::V6(net).contains(&ue));
            if !own || ![6, 17, 58].contains(&packet[6]) {
                return None;
            }
            (packet[6], &packet[40..])
        };
        let (ports, header) = match protocol {
            6 => (
                Some(transport.first_chunk::<4>()?),
                transport.get(12).map_or(20, |octet| usize::from(octet >> 4) * 4),
            ),
            17 => (Some(transport.first_chunk::<4>()?), 8),
            _ => (None, 0),
        };
        let ports =
            ports.map_or((0, 0), |[a, b, c, d]| (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])));
        let looked_at = rules.pdrs.iter().flat_map(|pdr| &pdr.filters).filter_map(|filter| filter.tos);
        let mask = looked_at.fold(0, |all, (_, mask)| all | mask);
        let mut ends = [(source, ports.0), (destination, ports.1)];
        // Of IPv6, the UE's own comes first: what a UE sends to itself goes there and comes back in two conversations.
        if source.is_ipv4() {
            ends.sort_unstable();
        } else if teid.is_none() {
            ends.reverse();
        }
        Some(Self {
            name: (id, ends, protocol),
            flow: (teid, source, destination, ports, protocol, qfi, tos(packet) & mask),
            payload: transport.get(header..).unwrap_or_default().to_vec(),
            bytes: packet.len() as u32,
        })
    }
}

/// Whether packets of one tunnel, or without one, whose rules these are, may have different rules: what is for the link's ears only aside.
pub fn makes_flows(possible: &[&Pdr]) -> bool {
    let first = possible.iter().find(|pdr| !is_for_link(pdr));
    first.is_some_and(|pdr| !pdr.filters.is_empty() || pdr.qfis.len() > 1)
        || possible.iter().any(|pdr| pdr.application.is_some())
}

impl Conversations {
    /// The application, and whether more may be known later.
    pub fn show(&mut self, talk: &Talk) -> (Option<u16>, bool) {
        let it = self.0.entry(talk.name).or_default();
        if !it.decided {
            it.shown = (it.shown.0 + 1, it.shown.1 + talk.bytes);
            let third = talk.payload.get(2).map(|octet| u16::from(*octet) & 3);
            it.application = third.filter(|third| it.shown.0 == 2 || (it.shown.0 > 2 && *third != 3));
            it.decided =
                (it.shown.0 >= 3 && third.is_some()) || it.shown.0 >= BUDGET.0 || it.shown.1 >= BUDGET.1;
        }
        (it.application, !it.decided)
    }

    /// A packet passed whose rule depends on its conversation, or doesn't.
    pub fn passed(&mut self, talk: &Talk, depends: bool) {
        if depends {
            self.0.entry(talk.name).or_default().flows.insert(talk.flow);
        } else if let Some(it) = self.0.get_mut(&talk.name) {
            it.flows.remove(&talk.flow);
        }
    }

    /// Those on which no flow counts are forgotten.
    pub fn forget(&mut self) {
        self.0.retain(|_, it| !it.flows.is_empty());
    }

    /// A session is gone.
    pub fn remove(&mut self, id: (usize, u32)) {
        self.0.retain(|name, _| name.0 != id);
    }

    /// How many there are, and how many of them are not decided.
    pub fn count(&self) -> (usize, usize) {
        (self.0.len(), self.0.values().filter(|it| !it.decided).count())
    }
}
