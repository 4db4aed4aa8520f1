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
    /// By the verdict, or so far: the application and what it is a part of.
    of: Vec<u16>,
    flows: HashSet<Flow>,
    /// What was told of its beginning, by its place among these.
    told: Option<usize>,
}

#[derive(Default)]
pub struct Conversations {
    all: HashMap<Name, Conversation>,
    /// What was told.
    pub told: Vec<Told>,
}

/// That an application's traffic has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub seid: Seid,
    pub pdr: PdrId,
    pub application: u16,
    /// The UE's end, and the other one; with ports where there are any.
    pub ends: [(IpAddr, Option<u16>); 2],
    pub protocol: u8,
    /// And that it is over.
    pub is_over: bool,
}

/// What is to be known of a packet to find its conversation.
#[derive(Clone)]
pub struct Talk {
    name: Name,
    flow: Flow,
    payload: Vec<u8>,
    bytes: u32,
    has_ports: bool,
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
        let has_ports = ports.is_some();
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
            has_ports,
        })
    }
}

/// Whether packets of one tunnel, or without one, whose rules these are, may have different rules: what is for the link's ears only aside.
pub fn makes_flows(possible: &[&Pdr]) -> bool {
    let first = possible.iter().find(|pdr| !is_for_link(pdr));
    first.is_some_and(|pdr| !pdr.filters.is_empty() || pdr.qfis.len() > 1)
        || possible.iter().any(|pdr| pdr.application.is_some())
}

/// What a third octet says: an application, and what it is a part of.
fn parts(third: u8) -> Vec<u16> {
    let whole = u16::from(third & 3);
    match third >> 2 & 3 {
        0 => vec![whole],
        1 => vec![10 + whole, whole],
        2 => vec![20 + whole, whole],
        _ => vec![20 + whole, 10 + whole, whole],
    }
}

impl Conversations {
    /// What it is of.
    pub fn show(&mut self, talk: &Talk) -> Vec<u16> {
        let it = self.all.entry(talk.name).or_default();
        if !it.decided {
            it.shown = (it.shown.0 + 1, it.shown.1 + talk.bytes);
            let third = talk.payload.get(2).copied();
            it.of = match third {
                Some(third) if it.shown.0 == 2 || (it.shown.0 > 2 && third & 3 != 3) => parts(third),
                _ => Vec::new(),
            };
            it.decided =
                (it.shown.0 >= 3 && third.is_some()) || it.shown.0 >= BUDGET.0 || it.shown.1 >= BUDGET.1;
        }
        it.of.clone()
    }

    /// A packet of it was judged by this rule. If somebody wants to know where the rule's application begins, it is told once it is known for good
    /// and there is a flow.
    pub fn judged(&mut self, talk: &Talk, rules: &Rules, pdr: &Pdr) {
        let urrs = pdr.urrs.iter().map(|urr| &rules.urrs[usize::from(*urr)]);
        let is_wanted = urrs.into_iter().any(|urr| urr.application_starts || urr.application_stops);
        let Some(Application(application)) = pdr.application.filter(|_| is_wanted) else { return };
        let Some(it) = self.all.get_mut(&talk.name) else { return };
        if it.decided && it.told.is_none() && !it.flows.is_empty() && it.of.contains(&application) {
            let (_, source, destination, (from, to), protocol, ..) = talk.flow;
            let port = |port| talk.has_ports.then_some(port);
            let mut ends = [(source, port(from)), (destination, port(to))];
            if pdr.source != Source::Access {
                ends.reverse();
            }
            it.told = Some(self.told.len());
            let (seid, pdr) = (rules.seid, pdr.id);
            self.told.push(Told { seid, pdr, application, ends, protocol, is_over: false });
        }
    }

    /// A packet passed whose rule depends on its conversation, or doesn't.
    pub fn passed(&mut self, talk: &Talk, depends: bool) {
        if depends {
            self.all.entry(talk.name).or_default().flows.insert(talk.flow);
        } else if let Some(it) = self.all.get_mut(&talk.name) {
            it.flows.remove(&talk.flow);
        }
    }

    /// Those on which no flow counts are forgotten.
    pub fn forget(&mut self) {
        self.keep(|_, it| !it.flows.is_empty());
    }

    fn keep(&mut self, keeps: impl Fn(&Name, &Conversation) -> bool) {
        let Self { all, told } = self;
        all.retain(|name, it| {
            let kept = keeps(name, it);
            if let Some(at) = it.told.filter(|_| !kept) {
                told[at].is_over = true;
            }
            kept
        });
    }

    /// A session is gone.
    pub fn remove(&mut self, id: (usize, u32)) {
        self.keep(|name, _| name.0 != id);
    }

    /// How many there are, and how many of them are not decided.
    pub fn count(&self) -> (usize, usize) {
        (self.all.len(), self.all.values().filter(|it| !it.decided).count())
    }
}
