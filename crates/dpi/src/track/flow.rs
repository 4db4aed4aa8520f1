//! A flow's line.

use crate::Protocol;
use crate::classify::{Evidence, Reason, Side, Verdict};
use crate::signatures::ApplicationId;
use packet::IpProtocol;
use std::net::IpAddr;
use tables::hash::mix;
use tables::{FlowKey, FlowValue, Nanos};

/// A flow's two ends. The first one is the subscriber's, whoever began.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ends {
    /// The subscriber's address.
    pub subscriber: IpAddr,
    /// The other address.
    pub peer: IpAddr,
    /// The subscriber's port; 0 without ports.
    pub subscriber_port: u16,
    /// The other port.
    pub peer_port: u16,
    /// What carries it.
    pub protocol: IpProtocol,
}

/// What a flow is found by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    peer: [u32; 4],
    pub subscriber: u32,
    ports: u32,
    protocol: u8,
}

impl Key {
    pub fn new(subscriber: u32, ends: &Ends) -> Self {
        let peer = bits(ends.peer);
        Self {
            peer: [(peer >> 96) as u32, (peer >> 64) as u32, (peer >> 32) as u32, peer as u32],
            subscriber,
            ports: u32::from(ends.subscriber_port) << 16 | u32::from(ends.peer_port),
            protocol: ends.protocol.0,
        }
    }

    /// The ends, given the subscriber's address.
    pub fn ends(&self, subscriber: IpAddr) -> Ends {
        let peer = self.peer.iter().fold(0, |bits, word| bits << 32 | u128::from(*word));
        Ends {
            subscriber,
            peer: address(peer),
            subscriber_port: (self.ports >> 16) as u16,
            peer_port: self.ports as u16,
            protocol: IpProtocol(self.protocol),
        }
    }
}

/// An address as a number; an IPv4 address as it is mapped into IPv6 (RFC 4291 §2.5.5.2).
pub(crate) fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

pub(crate) fn address(bits: u128) -> IpAddr {
    IpAddr::V6(bits.into()).to_canonical()
}

impl FlowKey for Key {
    fn hash(&self, seed: u64) -> u64 {
        let [a, b, c, d] = self.peer.map(u64::from);
        let high = mix(a << 32 | b, 0x9e37_79b9_7f4a_7c15 ^ seed);
        let low = mix((c << 32 | d) ^ high, seed.rotate_left(17) | 1);
        let rest = u64::from(self.subscriber) << 32 | u64::from(self.ports);
        mix(rest ^ low, seed ^ u64::from(self.protocol) << 56 ^ 0x3c6e_f372_fe94_f82b)
    }
}

/// Where a flow's examination stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// It is looked into, under this number.
    Open(u32),
    /// It has its verdict.
    Known {
        /// The reason's number, and the evidence's in the lower half.
        why: u8,
        protocol: Option<Protocol>,
        over: Option<Protocol>,
        application: u16,
    },
}

/// No application, where a number stands for one.
const NONE: u16 = u16::MAX;

const _: () = assert!(Reason::ALL.len() <= 16 && Evidence::ALL.len() <= 16, "both fit an octet");

impl From<Verdict> for Standing {
    fn from(verdict: Verdict) -> Self {
        Self::Known {
            why: (verdict.reason as u8) << 4 | verdict.evidence as u8,
            protocol: verdict.protocol,
            over: verdict.over,
            application: verdict.application.map_or(NONE, ApplicationId::number),
        }
    }
}

/// How long a flow without packets is kept, in seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// An established TCP connection.
    pub tcp: u8,
    /// TCP before both sides have spoken.
    pub opening: u8,
    /// TCP that was closed or reset: for what is still on its way.
    pub closed: u8,
    /// Anything else.
    pub other: u8,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { tcp: 240, opening: 30, closed: 4, other: 60 }
    }
}

/// Resolution of a flow's times: 67 ms, so that 32 bits last for nine years. Captures that were joined jump over years.
const TICK: u32 = 26;

/// What is known of a flow, beside its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    first: u32,
    last: u32,
    packets: [u32; 2],
    /// 40 bits each: a tebibyte. More is not counted.
    octets: [[u8; 5]; 2],
    /// Seconds after `last`.
    timeout: u8,
    flags: u8,
    pub standing: Standing,
}

/// The subscriber has begun it.
const SUBSCRIBER_IS_CLIENT: u8 = 1;
/// The subscriber's FIN was seen; shifted by one, the peer's.
const FINISHED: u8 = 2;
const RESET: u8 = 8;

impl Line {
    pub fn new(now: Nanos, standing: Standing, subscriber_is_client: bool) -> Self {
        let flags = if subscriber_is_client { SUBSCRIBER_IS_CLIENT } else { 0 };
        let first = (now.0 >> TICK) as u32;
        Self { first, last: first, packets: [0; 2], octets: [[0; 5]; 2], timeout: 0, flags, standing }
    }

    /// One more packet, of so many octets with its IP header.
    #[inline]
    pub fn count(&mut self, now: Nanos, from_subscriber: bool, octets: u16) {
        self.last = self.last.max((now.0 >> TICK) as u32);
        let way = usize::from(!from_subscriber);
        if let (Some(packets), Some(count)) = (self.packets.get_mut(way), self.octets.get_mut(way)) {
            *packets = packets.saturating_add(1);
            let sum = (number(*count) + u64::from(octets)).min((1 << 40) - 1);
            let [a, b, c, d, e, ..] = sum.to_le_bytes();
            *count = [a, b, c, d, e];
        }
    }

    /// TCP's flags were seen.
    #[inline]
    pub fn see(&mut self, from_subscriber: bool, is_fin: bool, is_reset: bool) {
        if is_fin {
            self.flags |= FINISHED << u8::from(!from_subscriber);
        }
        if is_reset {
            self.flags |= RESET;
        }
    }

    pub const fn is_closed(&self) -> bool {
        self.flags & RESET != 0 || self.flags & (FINISHED | FINISHED << 1) == FINISHED | FINISHED << 1
    }

    /// Whether it becomes due earlier than it was.
    #[inline]
    pub fn keep(&mut self, protocol: IpProtocol, timeouts: Timeouts) -> bool {
        let former = self.timeout;
        self.timeout = match protocol {
            IpProtocol::TCP if self.is_closed() => timeouts.closed,
            IpProtocol::TCP if self.packets.contains(&0) => timeouts.opening,
            IpProtocol::TCP => timeouts.tcp,
            _ => timeouts.other,
        };
        self.timeout < former
    }

    /// Which side sends, if the subscriber does or doesn't.
    pub const fn side(&self, from_subscriber: bool) -> Side {
        if (self.flags & SUBSCRIBER_IS_CLIENT != 0) == from_subscriber { Side::Client } else { Side::Server }
    }

    /// `None`: it is still looked into.
    pub fn verdict(&self) -> Option<Verdict> {
        let Standing::Known { why, protocol, over, application } = self.standing else { return None };
        Some(Verdict {
            protocol,
            over,
            application: (application != NONE).then_some(ApplicationId::from_number(application)),
            reason: Reason::ALL.get(usize::from(why >> 4)).copied()?,
            evidence: Evidence::ALL.get(usize::from(why & 15)).copied()?,
        })
    }

    pub fn summary(&self) -> Summary {
        let time = |ticks: u32| Nanos(u64::from(ticks) << TICK);
        Summary {
            first: time(self.first),
            last: time(self.last),
            packets: self.packets.map(u64::from),
            octets: self.octets.map(number),
            subscriber_is_client: self.flags & SUBSCRIBER_IS_CLIENT != 0,
        }
    }
}

fn number([a, b, c, d, e]: [u8; 5]) -> u64 {
    u64::from_le_bytes([a, b, c, d, e, 0, 0, 0])
}

impl FlowValue for Line {
    fn deadline(&self) -> Nanos {
        Nanos(u64::from(self.last) << TICK).plus(u64::from(self.timeout) * Nanos::SECOND)
    }
}

/// What a flow has carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Its first packet, to 67 ms.
    pub first: Nanos,
    /// Its last one.
    pub last: Nanos,
    /// Packets from the subscriber, and to it.
    pub packets: [u64; 2],
    /// Octets with IP headers, likewise.
    pub octets: [u64; 2],
    /// The subscriber has begun it.
    pub subscriber_is_client: bool,
}

/// A flow, as results name it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Flow {
    /// Between whom.
    pub ends: Ends,
    /// The tunnel's number, if subscribers are told apart by tunnels.
    pub tunnel: Option<u32>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::classify::{Confidence, Evidence};

    fn ends(peer: &str) -> Ends {
        Ends {
            subscriber: [10, 0, 0, 1].into(),
            peer: peer.parse().unwrap(),
            subscriber_port: 40_000,
            peer_port: 443,
            protocol: IpProtocol::TCP,
        }
    }

    #[test]
    fn a_key_gives_its_ends_back() {
        for peer in ["198.51.100.1", "2001:db8::7", "::1"] {
            let ends = ends(peer);
            assert_eq!(Key::new(7, &ends).ends(ends.subscriber), ends);
        }
        assert_ne!(Key::new(7, &ends("::1")).hash(1), Key::new(8, &ends("::1")).hash(1));
    }

    #[test]
    fn a_line_counts_and_keeps_a_verdict() {
        let mut line = Line::new(Nanos(Nanos::SECOND), Standing::Open(3), true);
        line.count(Nanos(2 * Nanos::SECOND), true, 1500);
        line.count(Nanos(3 * Nanos::SECOND), false, 40);
        let summary = line.summary();
        assert_eq!((summary.packets, summary.octets), ([1, 1], [1500, 40]));
        assert_eq!(line.verdict(), None);
        let verdict = Verdict {
            protocol: Some(Protocol::Ssh),
            over: Some(Protocol::Tls),
            application: Some(ApplicationId::from_number(12)),
            reason: Reason::BothSides,
            evidence: Evidence::Memory,
        };
        line.standing = verdict.into();
        assert_eq!(line.verdict(), Some(verdict));
        assert_eq!(verdict.reason.confidence(), Confidence::Likely);
        line.standing = Verdict::UNKNOWN.into();
        assert_eq!(line.verdict(), Some(Verdict::UNKNOWN));
    }

    #[test]
    fn a_connection_that_both_sides_have_closed_is_soon_forgotten() {
        let timeouts = Timeouts::default();
        let mut line = Line::new(Nanos(0), Standing::Open(0), true);
        line.count(Nanos(0), true, 40);
        assert!(!line.keep(IpProtocol::TCP, timeouts));
        assert_eq!(line.deadline(), Nanos(u64::from(timeouts.opening) * Nanos::SECOND));
        line.count(Nanos(0), false, 40);
        line.keep(IpProtocol::TCP, timeouts);
        line.see(true, true, false);
        assert!(!line.is_closed());
        line.see(false, true, false);
        assert!(line.is_closed() && line.keep(IpProtocol::TCP, timeouts));
        assert_eq!(line.deadline(), Nanos(u64::from(timeouts.closed) * Nanos::SECOND));
    }

    #[test]
    fn octets_stop_at_what_can_be_counted() {
        let mut line = Line::new(Nanos(0), Standing::Open(0), false);
        line.octets = [[0xff; 5]; 2];
        line.count(Nanos(0), true, 100);
        assert_eq!(line.summary().octets[0], (1 << 40) - 1);
        assert_eq!((line.side(true), line.side(false)), (Side::Server, Side::Client));
    }
}
