//! Many flows of many kinds, interleaved.

use super::{Application, Ends, Length, Subject};
use crate::rng::{SplitMix64, mix};
use Application as A;
use packet::pdu_session::{Downlink, Uplink};
use packet::{MacAddr, PacketBuilder, PduSession, Qfi, Teid};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Kinds of flows, with weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mix {
    /// Its name.
    pub name: &'static str,
    /// What it consists of. Before a flow whose server has a name, the name is asked for, one time in two, whatever the weight of DNS.
    parts: &'static [(Application, u32)],
    /// Packets are inside GTP-U.
    in_tunnels: bool,
}

const ORDINARY: &[(Application, u32)] = &[
    (A::Tls, 38),
    (A::Quic, 24),
    (A::Http, 10),
    (A::Dns, 8),
    (A::Video, 8),
    (A::Call, 4),
    (A::CipheredStream, 4),
    (A::CipheredDatagrams, 4),
];

impl Mix {
    /// What phones and homes do.
    pub const ORDINARY: Self = Self { name: "ordinary", parts: ORDINARY, in_tunnels: false };
    /// The same, as a mobile core carries it.
    pub const MOBILE_CORE: Self = Self { name: "mobile-core", parts: ORDINARY, in_tunnels: true };
    /// Tunnels, mail and file services beside pages.
    pub const ENTERPRISE: Self = Self {
        name: "enterprise",
        parts: &[
            (A::Tls, 34),
            (A::Quic, 8),
            (A::Http, 8),
            (A::Dns, 10),
            (A::WireGuard, 6),
            (A::OpenVpn, 6),
            (A::Ike, 3),
            (A::Esp, 5),
            (A::Ssh, 5),
            (A::Smtp, 6),
            (A::Smb, 7),
            (A::CipheredStream, 2),
        ],
        in_tunnels: false,
    };
    /// Films, mostly.
    pub const STREAMING: Self = Self {
        name: "streaming",
        parts: &[(A::Video, 50), (A::Quic, 25), (A::Tls, 15), (A::Dns, 10)],
        in_tunnels: false,
    };
    /// Something of everything.
    pub const MIXED: Self = Self {
        name: "mixed",
        parts: &[
            (A::Tls, 25),
            (A::Quic, 18),
            (A::Http, 10),
            (A::Dns, 10),
            (A::Video, 8),
            (A::Call, 5),
            (A::WireGuard, 4),
            (A::OpenVpn, 3),
            (A::Ike, 1),
            (A::Esp, 3),
            (A::Ssh, 3),
            (A::Smtp, 3),
            (A::Smb, 3),
            (A::CipheredStream, 2),
            (A::CipheredDatagrams, 2),
        ],
        in_tunnels: false,
    };
    /// All of these.
    pub const ALL: [Self; 5] =
        [Self::ORDINARY, Self::MOBILE_CORE, Self::ENTERPRISE, Self::STREAMING, Self::MIXED];
    /// Flows that begin, in the proportion in which phones begin them: names are asked for, then spoken to.
    pub const BEGINNINGS: Self =
        Self { name: "new", parts: &[(A::Dns, 40), (A::Tls, 35), (A::Quic, 25)], in_tunnels: false };

    /// Connections that begin, and the questions for names before them: of each two connections one asks.
    pub const OPENINGS: Self = Self {
        name: "openings",
        parts: &[(A::Tls, 50), (A::Quic, 32), (A::Http, 8), (A::Dns, 10)],
        in_tunnels: false,
    };

    /// Of one kind only. `parts` has one.
    pub const fn only(name: &'static str, parts: &'static [(Application, u32)]) -> Self {
        Self { name, parts, in_tunnels: false }
    }

    fn draw(&self, rng: &mut SplitMix64) -> Option<Application> {
        let total: u32 = self.parts.iter().map(|it| it.1).sum();
        let mut left = rng.below(total);
        self.parts.iter().find_map(|(application, weight)| match left.checked_sub(*weight) {
            Some(rest) => {
                left = rest;
                None
            }
            None => Some(*application),
        })
    }
}

/// Names that servers have, in the proportion in which they are drawn; an empty one stands for a name that nobody knows.
const NAMES: [&str; 24] = [
    "www.youtube.com",
    "rr3---sn-4g5e6nsz.googlevideo.com",
    "i.instagram.com",
    "graph.facebook.com",
    "scontent.xx.fbcdn.net",
    "www.google.com",
    "play.googleapis.com",
    "fonts.gstatic.com",
    "gateway.icloud.com",
    "itunes.apple.com",
    "outlook.office365.com",
    "teams.microsoft.com",
    "www.netflix.com",
    "ipv4-c001-fra001-ix.1.oca.nflxvideo.net",
    "api.spotify.com",
    "web.whatsapp.com",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
];

/// A flow of the traffic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flow {
    /// What it is of.
    pub application: Application,
    /// Between whom.
    pub ends: Ends,
    /// The server's name, if it has one; of DNS, the one that is asked for.
    pub name: Option<String>,
}

/// Frames in the order in which they come, and the flows that they are of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Traffic {
    octets: Vec<u8>,
    /// Where frames end.
    ends: Vec<usize>,
    /// Whose they are, and whether that one sends them.
    whose: Vec<(u32, bool)>,
    flows: Vec<Flow>,
    subscribers: u32,
}

/// A user's packet: the innermost one of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UserPacket<'t> {
    /// The subscriber's number: [`Traffic::addresses`].
    pub subscriber: u32,
    /// The subscriber sends it.
    pub uplink: bool,
    /// From the IP header on.
    pub octets: &'t [u8],
}

/// What a subscriber does: packets of one flow, or of two of which the first asks for the second's name.
struct Activity {
    subscriber: u32,
    /// From the subscriber, or to it; the last one first.
    packets: Vec<(bool, Vec<u8>)>,
}

/// Octets of an Ethernet header.
const ETHERNET: usize = 14;
/// A subscriber has so many flows, all in all.
const FLOWS_A_SUBSCRIBER: u32 = 8;

impl Traffic {
    /// At least so many packets, of which `open` flows' are under way at a time.
    pub fn new(mix: Mix, length: Length, packets: usize, open: usize, seed: u64) -> Self {
        let mut rng = SplitMix64::new(seed);
        // Pages that nobody writes to cost nothing; a copy of what is there would.
        let octets = Vec::with_capacity(packets.saturating_mul(2048));
        let subscribers = (open as u32 / FLOWS_A_SUBSCRIBER).max(4);
        let mut this = Self { octets, ends: Vec::new(), whose: Vec::new(), flows: Vec::new(), subscribers };
        let mut under_way: Vec<Activity> = Vec::new();
        loop {
            while this.ends.len() < packets && under_way.len() < open.max(1) {
                let subscriber = rng.below(subscribers);
                let Some(activity) = this.begin(&mut rng, mix, length, subscriber) else { break };
                under_way.push(activity);
            }
            if under_way.is_empty() {
                return this;
            }
            let place = rng.below(under_way.len() as u32) as usize;
            let Some(activity) = under_way.get_mut(place) else { return this };
            match activity.packets.pop() {
                Some((uplink, packet)) => this.push(mix.in_tunnels, activity.subscriber, uplink, &packet),
                None => drop(under_way.swap_remove(place)),
            }
        }
    }

    fn begin(&mut self, rng: &mut SplitMix64, mix: Mix, length: Length, subscriber: u32) -> Option<Activity> {
        let application = mix.draw(rng)?;
        let is_ipv6 = is_ipv6(subscriber);
        let drawn = NAMES.get(rng.below(NAMES.len() as u32) as usize).copied().unwrap_or_default();
        let name = match drawn {
            "" => format!("w{}.example{}.net", rng.below(10), rng.below(5_000)),
            known => known.to_owned(),
        };
        // One of eight addresses that the name has.
        let number =
            u64::from(rng.below(8)) + name.bytes().fold(0, |sum, octet| self::mix(sum ^ u64::from(octet)));
        let address = server(number as u32, is_ipv6);
        let subject = Subject { name: &name, address };
        let own = subscriber_address(subscriber, is_ipv6);
        let mut all = Vec::new();
        let asks = application.has_name() && mix.parts.len() > 1 && rng.below(2) == 0;
        for application in asks.then_some(A::Dns).into_iter().chain([application]) {
            let peer = match application {
                A::Dns => server(rng.below(2), is_ipv6),
                _ => address,
            };
            let client = SocketAddr::new(own, 32_768 + rng.below(28_000) as u16);
            let ends = Ends { client, server: SocketAddr::new(peer, application.port()) };
            let messages = application.messages(rng, &subject, length);
            all.extend(ends.packets(rng, application, &messages, length == Length::Whole));
            let is_named = application.has_name() || application == A::Dns;
            self.flows.push(Flow { application, ends, name: is_named.then(|| name.clone()) });
        }
        let packets = all.into_iter().rev().map(|it| (it.from_client, it.octets)).collect();
        Some(Activity { subscriber, packets })
    }

    fn push(&mut self, in_tunnel: bool, subscriber: u32, uplink: bool, packet: &[u8]) {
        let (inside, outside) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        let (to, from) = if uplink { (outside, inside) } else { (inside, outside) };
        let frame = PacketBuilder::new().ethernet(to, from);
        if in_tunnel {
            let (gnb, upf) = (Ipv4Addr::new(192, 0, 2, 10), Ipv4Addr::new(192, 0, 2, 1));
            let qfi = Qfi::from_wire(9);
            let (from, to, session) = if uplink {
                (gnb, upf, PduSession::Uplink(Uplink { qfi, ..Uplink::default() }))
            } else {
                (upf, gnb, PduSession::Downlink(Downlink { qfi, ..Downlink::default() }))
            };
            let teid = Teid(0x0100_0000 + subscriber * 2 + u32::from(uplink));
            let tunnel = frame.ipv4(from, to).udp(2152, 2152).gtpu(teid).pdu_session(&session);
            tunnel.build_into(&mut self.octets, packet);
        } else {
            let kind: [u8; 2] =
                if packet.first().is_some_and(|it| it >> 4 == 6) { [0x86, 0xdd] } else { [8, 0] };
            self.octets.extend([&to.0[..], &from.0, &kind, packet].concat());
        }
        self.ends.push(self.octets.len());
        self.whose.push((subscriber, uplink));
    }

    /// Ethernet frames, in order.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.ends.len()).map(|number| {
            let begin = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
            let end = self.ends.get(number).copied().unwrap_or(begin);
            self.octets.get(begin..end).unwrap_or_default()
        })
    }

    /// What users send and receive, in order, of traffic that is not in tunnels.
    pub fn packets(&self) -> impl ExactSizeIterator<Item = UserPacket<'_>> {
        self.frames().zip(&self.whose).map(|(frame, (subscriber, uplink))| UserPacket {
            subscriber: *subscriber,
            uplink: *uplink,
            octets: frame.get(ETHERNET..).unwrap_or_default(),
        })
    }

    /// Addresses of all subscribers, by number.
    pub fn addresses(&self) -> impl ExactSizeIterator<Item = IpAddr> {
        (0..self.subscribers).map(|number| subscriber_address(number, is_ipv6(number)))
    }

    /// Octets of all frames.
    pub const fn octets(&self) -> usize {
        self.octets.len()
    }

    /// The flows, in the order in which they begin.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }
}

/// One of six.
const fn is_ipv6(subscriber: u32) -> bool {
    subscriber % 6 == 5
}

fn subscriber_address(number: u32, is_ipv6: bool) -> IpAddr {
    if is_ipv6 {
        Ipv6Addr::new(0xfd00, 0x60, (number >> 16) as u16, number as u16, 0, 0, 0, 1).into()
    } else {
        Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 60, 0, 1)) + number).into()
    }
}

/// In the networks that are for measuring (RFC 2544 §C.2.2, RFC 5180 §8).
fn server(number: u32, is_ipv6: bool) -> IpAddr {
    if is_ipv6 {
        Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, (number >> 16) as u16, number as u16).into()
    } else {
        Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 18, 0, 0)) | number & 0x1_ffff).into()
    }
}

#[cfg(test)]
mod tests;
