//! What is kept of flows that are decoded and measured, beside what is kept of all.

use crate::Protocol;
use crate::classify::transport::Transport;
use crate::classify::{Carrier, Packet, Side};
use crate::decode::{Conversation, Decoded, Decoder, Limits, Mask, Piece};
use crate::kpi::flow::{Measures, Seen};
use crate::kpi::rate::Rate;
use crate::kpi::rtp::Codec;
use crate::kpi::tcp;
use crate::reorder;
use crate::signatures::ApplicationId;
use crate::track::flow::Key;
use packet::TcpView;
use packet::tcp::TcpFlags;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use tables::{FlowTable, FlowValue, Nanos};

/// Ends of media that SDP has told of; beyond, the first one is forgotten.
const AGREED: usize = 4096;

/// One flow.
#[derive(Debug)]
pub(crate) struct Watched {
    conversation: Conversation,
    measures: Option<Box<Measures>>,
    /// Octets that are not counted for an application yet, since there is no verdict.
    pending: u64,
    last: Nanos,
}

impl FlowValue for Box<Watched> {
    /// Later than any flow ends without packets: flows are taken out when they end.
    fn deadline(&self) -> Nanos {
        self.last.plus(600 * Nanos::SECOND)
    }
}

/// Throughput of many flows together: by application and by subscriber.
#[derive(Debug, Default)]
pub struct Rates {
    applications: Vec<Rate>,
    subscribers: Vec<Rate>,
}

impl Rates {
    /// Of an application, or of flows without one; octets before a flow's verdict count when it comes.
    pub fn application(&self, application: Option<ApplicationId>) -> Rate {
        self.applications.get(Self::place(application)).copied().unwrap_or_default()
    }

    fn place(application: Option<ApplicationId>) -> usize {
        application.map_or(0, |it| usize::from(it.number()) + 1)
    }

    pub(crate) fn subscriber(&self, number: u32) -> Rate {
        self.subscribers.get(number as usize).copied().unwrap_or_default()
    }

    /// This number is another subscriber's now.
    pub(crate) fn forget(&mut self, number: u32) {
        if let Some(rate) = self.subscribers.get_mut(number as usize) {
            *rate = Rate::default();
        }
    }

    fn push(rates: &mut Vec<Rate>, number: usize, octets: u64, now: Nanos) {
        if rates.len() <= number {
            rates.resize(number + 1, Rate::default());
        }
        if let Some(rate) = rates.get_mut(number) {
            rate.push(octets, now);
        }
    }

    const fn memory(&self) -> usize {
        (self.applications.capacity() + self.subscribers.capacity()) * size_of::<Rate>()
    }
}

/// What was agreed on for media, by where they are sent to.
#[derive(Debug, Default)]
struct Agreed {
    codecs: HashMap<(IpAddr, u16), Vec<(u8, Codec)>>,
    by_age: VecDeque<(IpAddr, u16)>,
}

impl Agreed {
    fn learn(&mut self, decoded: &Decoded) {
        let Decoded::Sip(sip) = decoded else { return };
        for media in &sip.media {
            let Some(address) = media.address else { continue };
            let codecs =
                media.codecs.iter().filter_map(|(number, name)| Some((*number, Codec::of_sdp(name)?)));
            let end = (address, media.port);
            if self.codecs.insert(end, codecs.collect()).is_none() {
                self.by_age.push_back(end);
            }
            if self.by_age.len() > AGREED
                && let Some(oldest) = self.by_age.pop_front()
            {
                self.codecs.remove(&oldest);
            }
        }
    }

    fn codec(&self, end: (IpAddr, u16), number: u8) -> Option<Codec> {
        self.codecs.get(&end)?.iter().find(|it| it.0 == number).map(|it| it.1)
    }
}

/// A packet, and what is known of its flow.
pub(crate) struct Watch<'w> {
    pub packet: &'w Packet<'w>,
    pub transport: &'w Transport<'w>,
    pub side: Side,
    pub server_port: u16,
    /// What it speaks, as far as is known.
    pub protocol: Option<Protocol>,
    /// It has its verdict.
    pub is_known: bool,
    /// The verdict's.
    pub application: Option<ApplicationId>,
    /// The flow begins with it.
    pub is_first: bool,
}

/// All of it.
#[derive(Debug)]
pub(crate) struct Watching {
    flows: FlowTable<Key, Box<Watched>>,
    decoder: Option<Decoder>,
    measures: bool,
    pub rates: Rates,
    agreed: Agreed,
}

/// Bytes that a flow takes here at most, its place in the table included.
const FLOW: usize = size_of::<Watched>() + size_of::<Measures>() + 136;
const _: () = assert!(FLOW <= 1024);

/// Bytes that [`Agreed`] takes for each end, at most: 16 codecs.
const AGREEMENT: usize = 16 * size_of::<(u8, Codec)>() + 128;

impl Watching {
    pub fn new(limit: u32, seed: u64, decodes: bool, measures: bool, mask: Option<Mask>, now: Nanos) -> Self {
        Self {
            flows: FlowTable::new(seed.rotate_left(23), limit, now),
            decoder: decodes.then(|| Decoder::new(Limits::USUAL, mask)),
            measures,
            rates: Rates::default(),
            agreed: Agreed::default(),
        }
    }

    /// Bytes that so many flows and subscribers take at most.
    pub const fn most_memory(limit: u32, subscribers: u32) -> usize {
        let rates = 2 * (subscribers as usize + 0x1_0000) * size_of::<Rate>();
        limit as usize * FLOW + Decoder::most_memory(&Limits::USUAL) + rates + AGREED * AGREEMENT + 64 * 1024
    }

    pub fn memory(&self) -> usize {
        let decoder = self.decoder.as_ref().map_or(0, Decoder::memory);
        let agreed = self.agreed.codecs.len() * AGREEMENT;
        self.flows.memory()
            + self.flows.len() * (size_of::<Watched>() + size_of::<Measures>())
            + decoder
            + self.rates.memory()
            + agreed
    }

    /// A packet of a flow. What had to go for a flow that begins is returned.
    pub fn see(&mut self, now: Nanos, key: Key, watch: &Watch<'_>) -> Option<(Key, Box<Watched>)> {
        let mut evicted = None;
        if watch.is_first {
            let is_connection = watch.transport.carrier == Some(Carrier::Tcp);
            let measures = self.measures.then(|| Box::new(Measures::new(is_connection)));
            let watched = Watched { conversation: Conversation::default(), measures, pending: 0, last: now };
            evicted = self.flows.insert(key, Box::new(watched)).ok().flatten();
        }
        let Some(watched) = self.flows.get_mut(&key) else { return evicted };
        watched.last = now;
        let Watch { packet, transport, side, .. } = watch;
        let missing = usize::from(packet.ip.total_len).saturating_sub(packet.bytes.len());
        let segment = transport.segment.and_then(|_| {
            let end = usize::from(packet.ip.total_len).min(packet.bytes.len());
            TcpView::parse(packet.bytes.get(packet.ip.transport_offset.into()..end)?).ok()
        });
        if self.measures {
            let octets = u64::from(packet.ip.total_len);
            Rates::push(&mut self.rates.subscribers, key.subscriber as usize, octets, now);
            watched.pending += octets;
            if watch.is_known {
                Self::attribute(&mut self.rates, watched, watch.application, now);
            }
        }
        if let Some(measures) = &mut watched.measures {
            let length = transport.payload.len() + missing;
            let seen = Seen {
                side: *side,
                octets: packet.ip.total_len.into(),
                segment: segment.as_ref().map(|it| tcp::Segment::of(it, length)),
                payload: transport.payload,
                length: length as u32,
            };
            let port = packet.ip.key.ports.map_or(0, |it| it.destination);
            let end = (packet.ip.key.destination, port);
            measures.push(&seen, now, |number| self.agreed.codec(end, number));
        }
        if let Some(decoder) = &mut self.decoder {
            let piece = match &segment {
                Some(view) => {
                    let payload = if view.flags().contains(TcpFlags::RST) { &[] } else { view.payload() };
                    let segment =
                        reorder::Segment { sequence: view.sequence(), flags: view.flags(), payload, missing };
                    let piece = Piece::segment(*side, watch.server_port, segment);
                    let acknowledges = view.flags().contains(TcpFlags::ACK);
                    if acknowledges { piece.acknowledging(view.acknowledgement()) } else { piece }
                }
                None => Piece::datagram(*side, watch.server_port, transport.payload, watch.protocol),
            };
            if transport.carrier.is_some() {
                decoder.push(&mut watched.conversation, &piece, now);
            }
        }
        evicted
    }

    fn attribute(rates: &mut Rates, watched: &mut Watched, application: Option<ApplicationId>, now: Nanos) {
        let octets = std::mem::take(&mut watched.pending);
        Rates::push(&mut rates.applications, Rates::place(application), octets, now);
    }

    /// What was decoded of the last packet.
    pub fn poll(&mut self) -> Option<Decoded> {
        let decoded = self.decoder.as_mut()?.poll()?;
        self.agreed.learn(&decoded);
        Some(decoded)
    }

    /// A flow ends, with this application.
    pub fn end(
        &mut self,
        now: Nanos,
        key: &Key,
        application: Option<ApplicationId>,
    ) -> Option<Box<Measures>> {
        let watched = self.flows.remove(key)?;
        self.part(now, watched, application)
    }

    /// It is not watched any more.
    pub fn part(
        &mut self,
        now: Nanos,
        mut watched: Box<Watched>,
        application: Option<ApplicationId>,
    ) -> Option<Box<Measures>> {
        if self.measures {
            Self::attribute(&mut self.rates, &mut watched, application, now);
        }
        if let Some(decoder) = &mut self.decoder {
            decoder.close(&mut watched.conversation);
        }
        watched.measures
    }

    /// What is measured of a flow so far.
    pub fn measures(&self, key: &Key) -> Option<&Measures> {
        self.flows.get(key)?.measures.as_deref()
    }
}
