//! All that is measured of one flow.

use super::rate::Rate;
use super::rtp::{Codec, Header, Rtp};
use super::tcp::{Segment, Tcp};
use super::video::Video;
use crate::Protocol;
use crate::classify::Side;
use tables::Nanos;

/// Media streams of a flow that are measured: sound and pictures each way, where one pair of ports carries all of them.
pub const STREAMS: usize = 4;
/// Packets that a stream must have to count, where the flow is not known to carry media.
const BELIEVED: u32 = 16;

/// A media stream, and who sends it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    /// Who.
    pub side: Side,
    /// How it fares.
    pub rtp: Rtp,
}

/// What fits what carries it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Connection(Tcp),
    Datagrams([Option<Stream>; STREAMS]),
}

/// A packet that is measured.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'p> {
    /// Who sends it.
    pub side: Side,
    /// Octets with its IP header.
    pub octets: u64,
    /// Of TCP.
    pub segment: Option<Segment>,
    /// What a datagram carries; what was cut off is missing.
    pub payload: &'p [u8],
    /// Octets of payload, those included that are missing.
    pub length: u32,
}

/// What is measured of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measures {
    rates: [Rate; 2],
    video: Video,
    kind: Kind,
    /// Packets of further media streams, which are not measured.
    pub beyond: u32,
}

const _: () = assert!(size_of::<Measures>() <= 448);

impl Measures {
    /// Of a flow that begins; `is_connection`: it is one of TCP.
    pub fn new(is_connection: bool) -> Self {
        let kind =
            if is_connection { Kind::Connection(Tcp::default()) } else { Kind::Datagrams([None; STREAMS]) };
        Self { rates: [Rate::default(); 2], video: Video::default(), kind, beyond: 0 }
    }

    /// One more packet. `codec`: what is known of a payload type.
    pub fn push(&mut self, seen: &Seen<'_>, now: Nanos, codec: impl Fn(u8) -> Option<Codec>) {
        let [client, server] = &mut self.rates;
        let rate = if seen.side == Side::Client { client } else { server };
        rate.push(seen.octets, now);
        self.video.push(seen.side, seen.length, now);
        match (&mut self.kind, seen.segment) {
            (Kind::Connection(tcp), Some(segment)) => tcp.push(seen.side, &segment, now),
            (Kind::Datagrams(streams), None) => {
                // Numbers that would be those of RTCP are nobody's (RFC 5761 §4).
                let header = Header::parse(seen.payload).filter(|it| !matches!(it.payload_type, 64..=95));
                let Some(header) = header else { return };
                let is_own = |it: &&mut Stream| (it.side, it.rtp.source) == (seen.side, header.source);
                if let Some(stream) = streams.iter_mut().flatten().find(is_own) {
                    stream.rtp.push(&header, now);
                } else if let Some(free) = streams.iter_mut().find(|it| it.is_none()) {
                    let rtp = Rtp::of_codec(&header, codec(header.payload_type), now);
                    *free = Some(Stream { side: seen.side, rtp });
                } else {
                    self.beyond = self.beyond.saturating_add(1);
                }
            }
            _ => {}
        }
    }

    /// How a connection of TCP fares.
    pub const fn tcp(&self) -> Option<&Tcp> {
        match &self.kind {
            Kind::Connection(tcp) => Some(tcp),
            Kind::Datagrams(_) => None,
        }
    }

    /// Media streams, if the flow speaks something that carries them. Of what only may carry them, short ones don't count, nor those
    /// of which half is missing.
    pub fn streams(&self, protocol: Option<Protocol>) -> impl Iterator<Item = &Stream> {
        let streams: &[_] = match &self.kind {
            Kind::Connection(_) => &[],
            Kind::Datagrams(streams) => streams,
        };
        streams.iter().flatten().filter(move |it| match protocol {
            Some(Protocol::Rtp | Protocol::Srtp | Protocol::WebRtc) => true,
            Some(Protocol::Stun) => it.rtp.received() >= BELIEVED && it.rtp.lost_percent() < 50.0,
            _ => false,
        })
    }

    /// What a film that it may carry looks like.
    pub const fn video(&self) -> &Video {
        &self.video
    }

    /// Throughput from this side, in octets per second.
    pub const fn rate(&self, side: Side) -> Rate {
        self.rates[side as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(side: Side, source: u8, sequence: u16) -> (Side, Vec<u8>) {
        let [high, low] = sequence.to_be_bytes();
        (side, [&[0x80, 0, high, low, 0, 0, 0, 0, 0, 0, 0, source][..], &[0xd5; 160]].concat())
    }

    fn run(packets: &[(Side, Vec<u8>)]) -> Measures {
        let mut measures = Measures::new(false);
        for ((side, payload), at) in packets.iter().zip(0..) {
            let (octets, length) = (payload.len() as u64 + 28, payload.len() as u32);
            let seen = Seen { side: *side, octets, segment: None, payload, length };
            measures.push(&seen, Nanos(at * 20_000_000), |_| None);
        }
        measures
    }

    #[test]
    fn streams_are_told_apart_by_side_and_source_and_so_many_are_kept() {
        let mut packets: Vec<_> = (0..20).map(|at| datagram(Side::Client, 1, at)).collect();
        packets.extend((0..20).map(|at| datagram(Side::Server, 1, 2 * at)));
        packets.extend((2..9).map(|source| datagram(Side::Client, source, 0)));
        let measures = run(&packets);
        let of = |protocol| {
            measures.streams(Some(protocol)).map(|it| (it.side, it.rtp.received())).collect::<Vec<_>>()
        };
        assert_eq!(of(Protocol::Rtp)[..2], [(Side::Client, 20), (Side::Server, 20)]);
        assert_eq!((of(Protocol::Rtp).len(), measures.beyond), (STREAMS, 5));
        // Half of the second one is lost, the others are short; and DNS carries none.
        assert_eq!((of(Protocol::Stun).len(), of(Protocol::Dns).len()), (2, 0));
        assert_eq!(measures.rate(Side::Client).best(Nanos(Nanos::SECOND * 2)), 27 * 200);
    }

    #[test]
    fn reports_are_no_streams() {
        let report = (Side::Client, [&[0x80, 200, 0, 6][..], &[0; 24]].concat());
        assert_eq!(run(&[report]).streams(Some(Protocol::Rtp)).count(), 0);
    }
}
