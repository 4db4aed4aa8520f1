//! What do messages say?
//!
//! **Problem.** A verdict takes the first words of a flow. Whoever wants to know which pages were asked for, what a server answered, who calls whom
//! or which names were looked up has to read on: every message of a connection, in order, over gaps and repetitions, and nothing of it may be trusted.
//!
//! **Model.** Each flow has a [`Conversation`], which lives wherever its flow lives. What it carries is [pushed](Decoder::push): datagrams as
//! they are, segments of TCP through the stage [`reorder`]. After each push, what was [`Decoded`] is [polled](Decoder::poll).
//! A stream is known by how its messages begin, not by ports or verdicts, so that nothing has to be kept until there is a verdict; datagrams of names
//! have no mark of their own, so these are decoded where the flow is known to be one of names.
//!
//! | over | decoded |
//! |---|---|
//! | TCP | HTTP/1, RTSP and SIP: all requests and responses of a connection; TLS: both hellos and the server's certificate, also after STARTTLS or CONNECT; DNS |
//! | UDP, SCTP | DNS, mDNS, LLMNR; SIP; the ClientHello of QUIC and DTLS |
//!
//! **Example.**
//! ```
//! use dpi::classify::Side;
//! use dpi::decode::{Conversation, Decoded, Decoder, Limits, Piece};
//! use dpi::reorder::Segment;
//! use packet::tcp::TcpFlags;
//! use tables::Nanos;
//!
//! let (mut decoder, mut conversation) = (Decoder::new(Limits::default(), None), Conversation::default());
//! let mut say = |sequence, payload: &[u8]| {
//!     let segment = Segment { sequence, flags: TcpFlags::ACK, payload, missing: 0 };
//!     decoder.push(&mut conversation, &Piece::segment(Side::Client, 80, segment), Nanos(0));
//!     decoder.poll()
//! };
//! assert_eq!(say(1, b"GET /a HTTP/1.1\r\nHost: ex"), None);
//! let Some(Decoded::Request(request)) = say(26, b"ample.org\r\n\r\n") else { panic!() };
//! assert_eq!(request.url, "http://example.org/a");
//! ```
//!
//! **Bounds.** Of a flow, [`Limits::messages`] are decoded, of each message [`HELD`] octets are put together, and of all flows
//! [`Limits::octets`]; [`RESULTS`] wait for being polled. Texts are cut off after [`LONGEST`] octets, lists after [`MOST`] entries. Bodies are passed
//! over, not kept.
//!
//! **Cost.** Copies and allocations for every message: it is off unless [`Options::decodes`](crate::Options) asks for it.
//!
//! **When not to use it.** To find out what a flow is: [`classify`](crate::classify) does that for a fraction. HTTP/2 is not followed beyond its
//! first request, which is among what classification finds.

mod datagram;
mod mask;
mod reader;
#[cfg(test)]
mod tests;
mod vocabulary;

pub use mask::Mask;
pub use vocabulary::{
    Certificate, ClientHello, Decoded, LONGEST, MOST, Media, Names, Over, Request, Response, Rtsp,
    ServerHello, Sip, Value,
};

use crate::Protocol;
use crate::classify::Side;
use crate::classify::assembly::{self, Assembly};
use crate::reorder::{self, Pushed, Ready, Reorder, Stream};
use packet::tcp::TcpFlags;
use reader::Reader;
use std::collections::VecDeque;
use tables::Nanos;

/// Octets of a message that are put together at most.
pub const HELD: usize = 16 << 10;
/// Messages that wait for being polled at most.
pub const RESULTS: usize = 256;

/// What decoding may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Messages of a flow that are decoded; what follows is passed over.
    pub messages: u16,
    /// Octets of all messages that are being put together.
    pub octets: usize,
    /// Of streams that are out of order.
    pub reorder: reorder::Limits,
}

impl Limits {
    /// 1,000 messages a flow, 16 MiB.
    pub const USUAL: Self = Self { messages: 1000, octets: 16 << 20, reorder: reorder::Limits::USUAL };
}

impl Default for Limits {
    fn default() -> Self {
        Self::USUAL
    }
}

/// What has become of messages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Messages that were decoded.
    pub messages: u64,
    /// Streams that were given up: a message was too long, or all of them together were.
    pub given_up: u64,
    /// Gaps in which a message was lost.
    pub gaps: u64,
    /// Messages that nobody polled in time, and those beyond a flow's limit.
    pub lost: u64,
}

/// What a flow carries.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'p> {
    side: Side,
    acknowledged: Option<u32>,
    server_port: u16,
    content: Content<'p>,
}

#[derive(Clone, Copy, Debug)]
enum Content<'p> {
    Segment(reorder::Segment<'p>),
    Datagram(&'p [u8], Option<Protocol>),
}

impl<'p> Piece<'p> {
    /// A segment of TCP.
    pub const fn segment(side: Side, server_port: u16, segment: reorder::Segment<'p>) -> Self {
        Self { side, acknowledged: None, server_port, content: Content::Segment(segment) }
    }

    /// It acknowledges all before this number: what of that was not seen will not be seen any more.
    #[must_use]
    pub const fn acknowledging(self, number: u32) -> Self {
        Self { acknowledged: Some(number), ..self }
    }

    /// A datagram, or a message of SCTP. `known`: what the flow speaks, as far as is known.
    pub const fn datagram(side: Side, server_port: u16, payload: &'p [u8], known: Option<Protocol>) -> Self {
        Self { side, acknowledged: None, server_port, content: Content::Datagram(payload, known) }
    }
}

/// One direction of a stream.
#[derive(Debug, Default)]
struct Way {
    stream: Stream,
    reader: Reader,
}

impl Way {
    /// Reads what became ready.
    fn poll(&mut self, reorder: &mut Reorder, context: &mut reader::Context<'_>) {
        while let Some(ready) = reorder.poll(&mut self.stream) {
            match ready {
                Ready::Octets(octets) => self.reader.take(octets, context),
                Ready::Gap(octets) => self.reader.pass_over(octets, context),
                Ready::End(_) => self.reader.end(context),
            }
        }
    }
}

/// What both directions know.
#[derive(Debug, Default)]
struct Shared {
    /// Messages so far.
    messages: u16,
    /// Requests of HTTP so far, and those that were answered.
    requests: u16,
    responses: u16,
    /// What was asked, as far as it says whether an answer has a body; the oldest first.
    asked: VecDeque<reader::Asked>,
    /// RTSP was spoken: other things lie between its messages.
    is_rtsp: bool,
}

/// A flow whose messages are decoded.
#[derive(Debug, Default)]
pub struct Conversation {
    ways: [Way; 2],
    shared: Shared,
    /// The ClientHello of QUIC or DTLS, while it isn't whole.
    hello: Option<Box<Assembly>>,
    has_hello: bool,
}

/// What all flows share: where messages are put down.
#[derive(Debug)]
struct Desk {
    limits: Limits,
    mask: Option<Mask>,
    results: VecDeque<Decoded>,
    /// Octets that readers and hellos hold.
    held: usize,
    /// Where the records of a hello are put together.
    room: Assembly,
    counters: Counters,
}

impl Desk {
    fn tell(&mut self, shared: &mut Shared, mut decoded: Decoded) {
        if shared.messages >= self.limits.messages || self.results.len() >= RESULTS {
            self.counters.lost += 1;
            return;
        }
        shared.messages += 1;
        self.counters.messages += 1;
        if let Some(mask) = &self.mask {
            mask.hide(&mut decoded);
        }
        self.results.push_back(decoded);
    }

    /// So many octets more are held, if there is room.
    const fn hold(&mut self, octets: usize) -> bool {
        let fits = self.held + octets <= self.limits.octets;
        if fits {
            self.held += octets;
        }
        fits
    }

    const fn give_back(&mut self, octets: usize) {
        self.held = self.held.saturating_sub(octets);
    }
}

/// Decodes the messages of flows: one for each worker.
#[derive(Debug)]
pub struct Decoder {
    reorder: Reorder,
    desk: Desk,
}

impl Decoder {
    /// Within these limits; with a mask, no party is told in clear.
    pub fn new(limits: Limits, mask: Option<Mask>) -> Self {
        let desk = Desk {
            limits,
            mask,
            results: VecDeque::new(),
            held: 0,
            room: Assembly::default(),
            counters: Counters::default(),
        };
        Self { reorder: Reorder::new(limits.reorder), desk }
    }

    /// What has become of messages.
    pub const fn counters(&self) -> &Counters {
        &self.desk.counters
    }

    /// The mask, if there is one.
    pub const fn mask(&self) -> Option<&Mask> {
        self.desk.mask.as_ref()
    }

    /// Octets of messages that are being put together, out of order or not.
    pub fn memory(&self) -> usize {
        self.desk.held + self.reorder.memory() + assembly::LARGEST
    }

    /// Octets that [`Self::memory`] is at most: what grows doubles its room.
    pub(crate) const fn most_memory(limits: &Limits) -> usize {
        2 * limits.octets + limits.reorder.octets + limits.reorder.streams as usize * 256 + assembly::LARGEST
    }

    /// What was decoded: to be called after each [`Self::push`], until there is nothing.
    pub fn poll(&mut self) -> Option<Decoded> {
        self.desk.results.pop_front()
    }

    /// What a flow carries next.
    pub fn push(&mut self, conversation: &mut Conversation, piece: &Piece<'_>, now: Nanos) {
        let Conversation { ways, shared, .. } = conversation;
        let segment = match &piece.content {
            Content::Segment(segment) => segment,
            Content::Datagram(payload, known) => {
                return datagram::read(&mut self.desk, conversation, piece, payload, *known);
            }
        };
        let [client, server] = ways;
        let (own, other) = if piece.side == Side::Client { (client, server) } else { (server, client) };
        let Self { reorder, desk } = self;
        let mut context = reader::Context { desk, shared, server_port: piece.server_port };
        // What is behind a hole that will not be filled was said before this.
        if let Some(number) = piece.acknowledged
            && other.stream.is_waiting()
        {
            reorder.acknowledged(&other.stream, number);
            reorder.expire(&other.stream, now);
            other.poll(reorder, &mut context);
        }
        const SPECIAL: u8 = TcpFlags::SYN.0 | TcpFlags::FIN.0 | TcpFlags::RST.0;
        // Signs of life, which are one octet behind, are no beginning of a stream.
        let says_nothing =
            segment.payload.is_empty() && segment.missing == 0 && segment.flags.0 & SPECIAL == 0;
        if own.reader.is_over() || says_nothing {
            return;
        }
        if let Pushed::InOrder(octets) = reorder.push(&mut own.stream, segment, now) {
            own.reader.take(octets, &mut context);
        }
        own.poll(reorder, &mut context);
        if own.reader.is_over() {
            reorder.close(&mut own.stream);
        }
    }

    /// The flow has ended: what it held goes back.
    pub fn close(&mut self, conversation: &mut Conversation) {
        for way in &mut conversation.ways {
            self.desk.give_back(way.reader.discard());
            self.reorder.close(&mut way.stream);
        }
        if conversation.hello.take().is_some() {
            self.desk.give_back(assembly::LARGEST);
        }
    }
}
