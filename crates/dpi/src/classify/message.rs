//! What recognisers are shown.

use crate::classify::assembly::Assembly;
use std::net::IpAddr;

/// What carries a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Carrier {
    /// A stream.
    Tcp,
    /// Datagrams.
    Udp,
    /// Messages of SCTP chunks.
    Sctp,
}

/// Who says it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Side {
    /// Who began the flow, as far as is known.
    Client = 0,
    /// Who answers.
    Server = 1,
}

impl Side {
    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// One end of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct End {
    /// Its address.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
}

/// Octets that are kept of a message's beginning.
pub const KEPT: usize = 16;

/// What one side has said before.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Past {
    /// Packets with a payload; stops at 255.
    pub packets: u8,
    /// The beginning of the first one.
    pub first: [u8; KEPT],
    /// Length of the first one's payload.
    pub first_length: u16,
    /// The beginning of the last one.
    pub last: [u8; KEPT],
    /// Length of the last one's payload.
    pub last_length: u16,
}

impl Past {
    /// One more packet.
    pub fn note(&mut self, payload: &[u8]) {
        let mut begins = [0; KEPT];
        let kept = payload.len().min(KEPT);
        if let (Some(to), Some(from)) = (begins.get_mut(..kept), payload.get(..kept)) {
            to.copy_from_slice(from);
        }
        let length = payload.len().min(usize::from(u16::MAX)) as u16;
        if self.packets == 0 {
            (self.first, self.first_length) = (begins, length);
        }
        (self.last, self.last_length) = (begins, length);
        self.packets = self.packets.saturating_add(1);
    }

    /// The beginning of the first packet: at most 16 octets.
    pub fn first(&self) -> &[u8] {
        self.first.get(..KEPT.min(usize::from(self.first_length))).unwrap_or_default()
    }

    /// The beginning of the last packet: at most 16 octets.
    pub fn last(&self) -> &[u8] {
        self.last.get(..KEPT.min(usize::from(self.last_length))).unwrap_or_default()
    }
}

/// What was said on a flow before this message.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct History {
    /// By [`Side`].
    pub sides: [Past; 2],
}

impl History {
    /// What this side said.
    pub const fn of(&self, side: Side) -> &Past {
        &self.sides[side as usize]
    }

    /// Packets with a payload, of both sides.
    pub const fn packets(&self) -> u16 {
        self.sides[0].packets as u16 + self.sides[1].packets as u16
    }
}

/// A text of at most `N` octets, which is copied. What is longer is cut off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Text<const N: usize> {
    octets: [u8; N],
    length: u8,
}

impl<const N: usize> Text<N> {
    /// Nothing.
    pub const EMPTY: Self = Self { octets: [0; N], length: 0 };

    /// Replaces what is there.
    pub fn set(&mut self, text: &[u8]) {
        let length = text.len().min(N).min(usize::from(u8::MAX));
        if let (Some(to), Some(from)) = (self.octets.get_mut(..length), text.get(..length)) {
            to.copy_from_slice(from);
            self.length = length as u8;
        }
    }

    /// Forgets it.
    pub const fn clear(&mut self) {
        self.length = 0;
    }

    /// Becomes the other one, unless that is empty, if it may where this one is empty or isn't.
    fn merge(&mut self, other: &Self, takes: fn(bool) -> bool) {
        if !other.is_empty() && takes(self.is_empty()) {
            self.set(other.bytes());
        }
    }

    fn sum(&self) -> u32 {
        if self.is_empty() { 0 } else { crc32fast::hash(self.bytes()).max(1) }
    }

    fn leave_out(&mut self, sum: u32) {
        if sum != 0 && self.sum() == sum {
            self.clear();
        }
    }

    /// Its octets, as they came.
    pub fn bytes(&self) -> &[u8] {
        self.octets.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// What a recogniser found written in messages, for whoever wants to know which application it is.
///
/// One is used for all flows of a worker, and cleared before each packet.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sheet {
    /// The name of the server: SNI, Host, the name that is asked for.
    pub host: Text<255>,
    /// User-Agent, or what a client says of itself.
    pub agent: Text<255>,
    /// The first protocol that is offered, or the one that is chosen (ALPN).
    pub alpn: Text<16>,
    /// What is asked for: path and query of an HTTP request.
    pub path: Text<255>,
    /// Content-Type of what is sent.
    pub content: Text<64>,
    /// The fingerprint of a TLS client's hello (JA4), if somebody seeks it.
    pub ja4: Text<36>,
    /// Whether somebody does: it is dear.
    pub seeks_ja4: bool,
}

/// A sum of each entry of a sheet, 0 where nothing was written.
pub(crate) type Sums = [u32; 6];

impl Sheet {
    /// What was written, each with what it is.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        let all = [
            ("host", self.host.bytes()),
            ("agent", self.agent.bytes()),
            ("ALPN", self.alpn.bytes()),
            ("path", self.path.bytes()),
            ("content", self.content.bytes()),
            ("JA4", self.ja4.bytes()),
        ];
        all.into_iter().filter(|(_, text)| !text.is_empty())
    }

    /// What the other one says stands; where it says nothing, this one does.
    pub fn replace(&mut self, newer: &Self) {
        self.merge(newer, |_| true);
    }

    /// What this one says stands; where it says nothing, the other one does.
    pub fn complete(&mut self, other: &Self) {
        self.merge(other, |is_empty| is_empty);
    }

    fn merge(&mut self, other: &Self, takes: fn(bool) -> bool) {
        self.host.merge(&other.host, takes);
        self.agent.merge(&other.agent, takes);
        self.alpn.merge(&other.alpn, takes);
        self.path.merge(&other.path, takes);
        self.content.merge(&other.content, takes);
        self.ja4.merge(&other.ja4, takes);
    }

    /// A sum of each entry, 0 where nothing was written.
    pub(crate) fn sums(&self) -> Sums {
        let Self { host, agent, alpn, path, content, ja4, .. } = self;
        [host.sum(), agent.sum(), alpn.sum(), path.sum(), content.sum(), ja4.sum()]
    }

    /// Forgets the entries whose sums are these.
    pub(crate) fn leave_out(&mut self, sums: Sums) {
        let [host, agent, alpn, path, content, ja4] = sums;
        self.host.leave_out(host);
        self.agent.leave_out(agent);
        self.alpn.leave_out(alpn);
        self.path.leave_out(path);
        self.content.leave_out(content);
        self.ja4.leave_out(ja4);
    }

    /// Whether nothing was written.
    pub const fn is_empty(&self) -> bool {
        self.host.is_empty()
            && self.agent.is_empty()
            && self.alpn.is_empty()
            && self.path.is_empty()
            && self.content.is_empty()
            && self.ja4.is_empty()
    }

    /// Forgets everything.
    pub const fn clear(&mut self) {
        self.host.clear();
        self.agent.clear();
        self.alpn.clear();
        self.path.clear();
        self.content.clear();
        self.ja4.clear();
    }
}

/// A message that a recogniser is shown.
#[derive(Debug)]
pub struct Message<'m> {
    /// A datagram's payload. Of a stream: all that this side has said so far, if [`Self::begins`]; else the payload of one packet.
    pub bytes: &'m [u8],
    /// `bytes` begin where this side's stream, or this datagram, begins.
    pub begins: bool,
    /// What carries it.
    pub carrier: Carrier,
    /// Who says it.
    pub side: Side,
    /// Who began the flow.
    pub client: End,
    /// The other end.
    pub server: End,
    /// What was said before; this message is not in it.
    pub history: &'m History,
    /// What is found is written here.
    pub sheet: &'m mut Sheet,
    /// For a message that comes in several datagrams: what was put into it for earlier ones of this flow is there. Empty at first. It is kept if
    /// the answer is [`Next`](crate::classify::Answer::Next) or [`Open`](crate::classify::Answer::Open).
    pub assembly: &'m mut Assembly,
}

impl<'m> Message<'m> {
    /// The octets at `at`, as a number; `None` if there are fewer.
    pub fn u8(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    /// Likewise, two in network order.
    pub fn u16(&self, at: usize) -> Option<u16> {
        Some(u16::from_be_bytes(*self.bytes.get(at..)?.first_chunk()?))
    }

    /// Likewise, four.
    pub fn u32(&self, at: usize) -> Option<u32> {
        Some(u32::from_be_bytes(*self.bytes.get(at..)?.first_chunk()?))
    }

    /// Two, the lower one first.
    pub fn u16_le(&self, at: usize) -> Option<u16> {
        self.u16(at).map(u16::swap_bytes)
    }

    /// Four, the lowest one first.
    pub fn u32_le(&self, at: usize) -> Option<u32> {
        self.u32(at).map(u32::swap_bytes)
    }

    /// Whether there is this at `at`.
    pub fn has(&self, at: usize, what: &[u8]) -> bool {
        self.bytes.get(at..).is_some_and(|rest| rest.starts_with(what))
    }

    /// Length of the payload.
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it is empty; recognisers are not shown such ones.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether the client says it.
    pub fn is_from_client(&self) -> bool {
        self.side == Side::Client
    }

    /// Whether one of the ends has this port.
    pub const fn has_port(&self, port: u16) -> bool {
        self.client.port == port || self.server.port == port
    }

    /// The first line, without its end (CR LF, or LF); `None` if it isn't whole within `most` octets.
    pub fn line(&self, most: usize) -> Option<&'m [u8]> {
        let within = self.bytes.get(..most.min(self.bytes.len()))?;
        let line = within.get(..within.iter().position(|octet| *octet == b'\n')?)?;
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// Where what follows a [`line`](Self::line) begins: that is at the message's beginning.
    pub fn after(&self, line: &[u8]) -> usize {
        let end = self.bytes.get(line.len()..).unwrap_or_default();
        line.len() + end.iter().take(2).position(|octet| *octet == b'\n').map_or(0, |at| at + 1)
    }

    /// The end who says it.
    pub const fn sender(&self) -> End {
        match self.side {
            Side::Client => self.client,
            Side::Server => self.server,
        }
    }

    /// What the other side has said before.
    pub const fn other(&self) -> &Past {
        self.history.of(self.side.other())
    }

    /// What this side has said before.
    pub const fn own(&self) -> &Past {
        self.history.of(self.side)
    }
}
