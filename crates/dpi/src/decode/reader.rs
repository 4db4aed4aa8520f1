//! One direction of a stream: messages one after the other, and what lies between them.

use super::vocabulary::{
    Certificate, ClientHello, Decoded, Names, Over, Request, Response, Rtsp, ServerHello, Sip,
};
use super::{Desk, HELD, Shared};
use crate::classify::assembly::MOST;
use crate::protocols::cursor::Cursor;
use crate::protocols::{dns, http, sip, tls};
use tls::{Record, certificate, content, handshake};

/// Segments after which a stream that wasn't understood is not looked at any more: until then TLS may begin in it (STARTTLS, CONNECT, SOCKS).
const LATE: u8 = 40;
/// Requests whose answers are waited for (pipelining, RFC 9112 §9.3.2).
const ASKED: usize = 64;
/// Records of a handshake that are put together.
const RECORDS: usize = 16;
/// Octets in a line with a chunk's size; what follows the size is for nobody (RFC 9112 §7.1.1).
const SIZE_LINE: u16 = 1024;

/// What was asked, as far as it says whether the answer has a body (RFC 9112 §6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// The answer's length is that which it says.
    Usual,
    /// HEAD: there is none.
    Head,
    /// CONNECT: what follows is another protocol.
    Connect,
}

/// What readers of both directions, and of all streams, share.
pub(super) struct Context<'c> {
    pub desk: &'c mut Desk,
    pub shared: &'c mut Shared,
    pub server_port: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// A message begins.
    #[default]
    Message,
    /// So many octets are passed over.
    Body(u64),
    /// A body whose length shows as it comes (RFC 9112 §7.1).
    Chunks(Chunk),
    /// Something is missing: the next message begins where a segment begins.
    Lost,
    /// It isn't understood, or there is nothing more to say.
    Over,
}

/// Where in a chunked body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Chunk {
    /// In the line with its size: so far, and whether digits have ended; octets of the line.
    Size(u64, bool, u16),
    Data(u64),
    /// The end of the line behind the data.
    After,
    /// Fields behind the last one: octets in this line, and in all.
    Trailer(u16, u16),
}

/// What begins here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    /// Not enough is there; nothing is to be known before there are so many octets.
    More(usize),
    /// Nothing that is known.
    Nothing,
    /// A message of so many octets.
    Whole(usize, Kind),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Request,
    Response,
    Sip,
    Rtsp,
    /// What RTSP has between its messages (RFC 7826 §14): a frame of so many octets behind these.
    Frame(u16),
    Hello,
    Dns,
}

/// Reads one direction.
#[derive(Debug)]
pub(super) struct Reader {
    /// The beginning of a message that isn't whole.
    held: Vec<u8>,
    /// So far, the end of its header was looked for.
    looked: usize,
    /// Not before so many are held anything is to be known.
    needed: usize,
    state: State,
    /// Segments that are still looked at though nothing is understood.
    late: u8,
}

impl Default for Reader {
    fn default() -> Self {
        Self { held: Vec::new(), looked: 0, needed: 0, state: State::Message, late: LATE }
    }
}

impl Reader {
    /// Nothing will be decoded any more.
    pub fn is_over(&self) -> bool {
        self.state == State::Over && self.late == 0
    }

    /// Forgets what is held, and says how much it was.
    pub fn discard(&mut self) -> usize {
        (self.looked, self.needed) = (0, 0);
        std::mem::take(&mut self.held).len()
    }

    fn leave(&mut self, state: State, context: &mut Context<'_>) {
        let held = self.discard();
        context.desk.give_back(held);
        self.state = state;
    }

    /// There is nothing more to say, whatever comes.
    fn finish(&mut self, context: &mut Context<'_>) {
        self.leave(State::Over, context);
        self.late = 0;
    }

    /// The stream ends.
    pub fn end(&mut self, context: &mut Context<'_>) {
        self.finish(context);
    }

    /// So many octets were never seen.
    pub fn pass_over(&mut self, octets: u32, context: &mut Context<'_>) {
        let missing = u64::from(octets);
        let state = match self.state {
            State::Body(left) if missing <= left => State::Body(left - missing),
            State::Chunks(Chunk::Data(left)) if missing <= left => State::Chunks(Chunk::Data(left - missing)),
            State::Over => return,
            _ => {
                context.desk.counters.gaps += 1;
                // Which answer belongs to which request isn't known any more.
                context.shared.asked.clear();
                context.shared.responses = context.shared.requests;
                State::Lost
            }
        };
        self.leave(state, context);
    }

    /// The next octets.
    pub fn take(&mut self, mut octets: &[u8], context: &mut Context<'_>) {
        if context.shared.messages >= context.desk.limits.messages {
            return self.finish(context);
        }
        if matches!(self.state, State::Lost | State::Over) && !octets.is_empty() {
            let Some(late) = self.late.checked_sub(1) else { return self.finish(context) };
            self.late = late;
            let is_known = begins_hello(octets) || (self.state == State::Lost && begins_text(octets));
            if !is_known {
                return;
            }
            self.state = State::Message;
        }
        while !octets.is_empty() {
            octets = match self.state {
                State::Message => self.message(octets, context),
                State::Body(left) => {
                    let passed = usize::try_from(left).unwrap_or(usize::MAX).min(octets.len());
                    let left = left - passed as u64;
                    self.state = if left == 0 { State::Message } else { State::Body(left) };
                    octets.get(passed..).unwrap_or_default()
                }
                State::Chunks(chunk) => self.chunk(chunk, octets),
                State::Lost | State::Over => return,
            };
        }
    }

    /// What of these octets isn't part of the message that begins, or goes on.
    fn message<'o>(&mut self, octets: &'o [u8], context: &mut Context<'_>) -> &'o [u8] {
        if self.held.is_empty() {
            // RFC 9112 §2.2, RFC 3261 §7.5: empty lines before a message mean nothing.
            let begins = octets.iter().position(|it| !b"\r\n".contains(it)).unwrap_or(octets.len());
            let octets = octets.get(begins..).unwrap_or_default();
            return match unit(octets, 0, context) {
                _ if octets.is_empty() => octets,
                Unit::Whole(length, kind) => {
                    let (message, rest) = octets.split_at(length.min(octets.len()));
                    self.read(kind, message, context);
                    rest
                }
                Unit::More(needed) => {
                    self.hold(octets, needed, context);
                    &[]
                }
                Unit::Nothing => {
                    self.leave(State::Over, context);
                    &[]
                }
            };
        }
        let before = self.held.len();
        let room = octets.get(..HELD.saturating_sub(before)).unwrap_or(octets);
        if !self.hold(room, self.needed, context) || self.held.len() < self.needed {
            return &[];
        }
        match unit(&self.held, self.looked, context) {
            Unit::Whole(length, kind) => {
                let held = std::mem::take(&mut self.held);
                (self.looked, self.needed) = (0, 0);
                context.desk.give_back(held.len());
                self.read(kind, held.get(..length).unwrap_or(&held), context);
                octets.get(length.saturating_sub(before)..).unwrap_or_default()
            }
            Unit::More(needed) if needed <= HELD && self.held.len() < HELD => {
                // Its last three octets may be part of the end; if that is known already, it is found once more.
                if needed == 0 {
                    self.looked = self.held.len().saturating_sub(3);
                }
                self.needed = needed;
                &[]
            }
            Unit::More(_) | Unit::Nothing => {
                context.desk.counters.given_up += 1;
                self.leave(State::Over, context);
                &[]
            }
        }
    }

    fn hold(&mut self, octets: &[u8], needed: usize, context: &mut Context<'_>) -> bool {
        let all = self.held.len() + octets.len();
        if needed > HELD || all > HELD || !context.desk.hold(octets.len()) {
            context.desk.counters.given_up += 1;
            self.leave(State::Over, context);
            return false;
        }
        self.held.extend_from_slice(octets);
        self.needed = needed;
        true
    }

    /// A whole message; what follows it is known then.
    fn read(&mut self, kind: Kind, bytes: &[u8], context: &mut Context<'_>) {
        self.late = LATE;
        match kind {
            Kind::Request => self.request(bytes, context),
            Kind::Response => self.response(bytes, context),
            Kind::Sip => {
                if let Some(message) = sip::Message::parse(bytes) {
                    context.tell(Decoded::Sip(Box::new(Sip::of(&message))));
                }
            }
            Kind::Rtsp => {
                context.shared.is_rtsp = true;
                if let Some(message) = sip::Message::parse_rtsp(bytes) {
                    context.tell(Decoded::Rtsp(Rtsp::of(&message)));
                }
            }
            Kind::Frame(length) => self.state = State::Body(length.into()),
            Kind::Dns => {
                if let Some(message) = bytes.get(2..).and_then(dns::Message::parse) {
                    Names::of(&message, |decoded| context.tell(decoded));
                }
            }
            Kind::Hello => {
                hello(bytes, context);
                self.finish(context);
            }
        }
        if self.state == State::Body(0) {
            self.state = State::Message;
        }
    }

    fn request(&mut self, bytes: &[u8], context: &mut Context<'_>) {
        let Some(request) = http::Request::parse(bytes) else { return };
        let asked = match request.method {
            b"HEAD" => Asked::Head,
            b"CONNECT" => Asked::Connect,
            _ => Asked::Usual,
        };
        let Context { desk, shared, .. } = context;
        shared.requests = shared.requests.saturating_add(1);
        if shared.asked.len() < ASKED {
            shared.asked.push_back(asked);
        }
        desk.tell(shared, Decoded::Request(Request::of(&request, shared.requests)));
        self.state = match Length::of(&request.fields) {
            _ if asked == Asked::Connect => State::Over,
            Length::Chunked => CHUNKS,
            Length::Said(length) => State::Body(length),
            // RFC 9112 §6.3, 7: a request without a length has no body.
            Length::Unsaid => State::Message,
            Length::Wrong => State::Over,
        };
    }

    fn response(&mut self, bytes: &[u8], context: &mut Context<'_>) {
        let Some(response) = http::Response::parse(bytes) else { return };
        let Context { desk, shared, .. } = context;
        let (length, is_interim) = (Length::of(&response.fields), response.status / 100 == 1);
        // 101 is the last one of HTTP (RFC 9110 §15.2).
        let is_last = response.status == 101;
        let asked = if is_interim && !is_last { None } else { shared.asked.pop_front() };
        let number = if is_interim && !is_last {
            shared.responses.saturating_add(1)
        } else if asked.is_some() {
            shared.responses = shared.responses.saturating_add(1);
            shared.responses
        } else {
            0
        };
        let said = if let Length::Said(length) = length { Some(length) } else { None };
        let number = if number > shared.requests { 0 } else { number };
        desk.tell(shared, Decoded::Response(Response::of(&response, number, said)));
        let is_tunnel = asked == Some(Asked::Connect) && response.status / 100 == 2;
        self.state = match (response.status, length) {
            _ if is_tunnel || is_last => State::Over,
            (100..=199 | 204 | 304, _) => State::Message,
            _ if asked == Some(Asked::Head) => State::Message,
            (_, Length::Chunked) => CHUNKS,
            (_, Length::Said(length)) => State::Body(length),
            // To the stream's end.
            (_, Length::Unsaid | Length::Wrong) => State::Over,
        };
        if self.state == State::Over && !is_tunnel {
            self.late = 0;
        }
    }

    /// A part of a chunked body; what follows it.
    fn chunk<'o>(&mut self, chunk: Chunk, octets: &'o [u8]) -> &'o [u8] {
        if let Chunk::Data(left) = chunk {
            let passed = usize::try_from(left).unwrap_or(usize::MAX).min(octets.len());
            let left = left - passed as u64;
            self.state = State::Chunks(if left == 0 { Chunk::After } else { Chunk::Data(left) });
            return octets.get(passed..).unwrap_or_default();
        }
        let Some((octet, rest)) = octets.split_first() else { return octets };
        let next = match (chunk, octet) {
            (Chunk::Size(_, _, SIZE_LINE..) | Chunk::Trailer(_, SIZE_LINE..), _)
            | (Chunk::Size(_, _, 0), b'\n') => None,
            (Chunk::Size(0, ..), b'\n') => Some(State::Chunks(Chunk::Trailer(0, 0))),
            (Chunk::Size(size, ..), b'\n') => Some(State::Chunks(Chunk::Data(size))),
            (Chunk::Size(size, is_read, at), octet) => {
                let digit = char::from(*octet).to_digit(16).filter(|_| !is_read);
                let size = match digit {
                    Some(digit) => size.checked_mul(16).and_then(|it| it.checked_add(digit.into())),
                    None => Some(size),
                };
                size.map(|size| State::Chunks(Chunk::Size(size, digit.is_none(), at + 1)))
            }
            (Chunk::After, b'\n') => Some(CHUNKS),
            (Chunk::After | Chunk::Trailer(..), b'\r') | (Chunk::Data(_), _) => Some(self.state),
            (Chunk::After, _) => None,
            (Chunk::Trailer(0, _), b'\n') => Some(State::Message),
            (Chunk::Trailer(_, all), b'\n') => Some(State::Chunks(Chunk::Trailer(0, all + 1))),
            (Chunk::Trailer(line, all), _) => Some(State::Chunks(Chunk::Trailer(line + 1, all + 1))),
        };
        self.state = next.unwrap_or(State::Over);
        rest
    }
}

/// A chunked body begins.
const CHUNKS: State = State::Chunks(Chunk::Size(0, false, 0));

impl Context<'_> {
    fn tell(&mut self, decoded: Decoded) {
        self.desk.tell(self.shared, decoded);
    }
}

/// How long a body is (RFC 9112 §6.3).
enum Length {
    Chunked,
    Said(u64),
    Unsaid,
    Wrong,
}

impl Length {
    fn of(fields: &http::Fields<'_>) -> Self {
        if let Some(codings) = fields.get(b"transfer-encoding") {
            let last = codings.rsplit(|it| *it == b',').next().unwrap_or_default().trim_ascii();
            return if last.eq_ignore_ascii_case(b"chunked") { Self::Chunked } else { Self::Wrong };
        }
        match fields.get(b"content-length") {
            None => Self::Unsaid,
            Some(digits) => {
                let length = str::from_utf8(digits).ok().and_then(|it| it.parse().ok());
                length.map_or(Self::Wrong, Self::Said)
            }
        }
    }
}

/// What begins here. The end of a header is looked for from `looked` on.
fn unit(bytes: &[u8], looked: usize, context: &mut Context<'_>) -> Unit {
    match bytes {
        [content::HANDSHAKE, 3, ..] | [content::HANDSHAKE] => hello_unit(bytes, context),
        [b'$', ..] if context.shared.is_rtsp => match bytes {
            [_, _, high, low, ..] => Unit::Whole(4, Kind::Frame(u16::from_be_bytes([*high, *low]))),
            _ => Unit::More(4),
        },
        _ if begins_text(bytes) => text_unit(bytes, looked),
        // RFC 1035 §4.2.2: there is no other mark than the port.
        _ if context.server_port == 53 => match bytes {
            [high, low, ..] => {
                let length = 2 + usize::from(u16::from_be_bytes([*high, *low]));
                match length {
                    ..14 => Unit::Nothing,
                    _ if bytes.len() < length => Unit::More(length),
                    _ => Unit::Whole(length, Kind::Dns),
                }
            }
            _ => Unit::More(2),
        },
        _ => Unit::Nothing,
    }
}

/// Whether a message of HTTP, SIP or RTSP may begin so.
fn begins_text(bytes: &[u8]) -> bool {
    let version: &[u8] = b"HTTP/1.";
    let begins = bytes.get(..version.len()).unwrap_or(bytes);
    version.starts_with(begins) || http::begins_request(bytes) || sip::begins(bytes)
}

/// Whether a hello of TLS begins so: its record, and the message in it.
const fn begins_hello(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [content::HANDSHAKE, 3, 0..=4, _, _, handshake::CLIENT_HELLO | handshake::SERVER_HELLO, 0, ..]
    )
}

/// Where the empty line behind a header ends.
fn end_of_header(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr(b'\n', rest)) {
        at += found + 1;
        match bytes.get(at..)? {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
    None
}

fn text_unit(bytes: &[u8], looked: usize) -> Unit {
    let Some(end) = end_of_header(bytes, looked) else { return Unit::More(0) };
    let header = bytes.get(..end).unwrap_or(bytes);
    if http::Response::parse(header).is_some() {
        return Unit::Whole(end, Kind::Response);
    }
    if http::Request::parse(header).is_some() {
        return Unit::Whole(end, Kind::Request);
    }
    // These are read with what they describe.
    let (message, kind) = match (sip::Message::parse(header), sip::Message::parse_rtsp(header)) {
        (Some(message), _) => (message, Kind::Sip),
        (None, Some(message)) => (message, Kind::Rtsp),
        (None, None) => return Unit::Nothing,
    };
    let length = end.saturating_add(message.length().unwrap_or(0));
    if bytes.len() < length { Unit::More(length) } else { Unit::Whole(length, kind) }
}

/// Records are waited for until both the hello, and what of the certificate is read, are there.
fn hello_unit(bytes: &[u8], context: &mut Context<'_>) -> Unit {
    let mut cursor = Cursor::new(bytes);
    let mut needed = None;
    for _ in 0..RECORDS {
        if cursor.rest().len() < 5 {
            needed = Some(bytes.len() + 5 - cursor.rest().len());
            break;
        }
        let before = bytes.len() - cursor.rest().len();
        match Record::parse(&mut cursor) {
            Some(record) if record.kind != content::HANDSHAKE => break,
            Some(record) if record.is_whole() => {}
            Some(record) => {
                needed = Some(before + 5 + usize::from(record.length));
                break;
            }
            None => return if before == 0 { Unit::Nothing } else { Unit::Whole(bytes.len(), Kind::Hello) },
        }
    }
    let said = tls::joined(bytes, &mut context.desk.room);
    let is_there = match tls::message(said) {
        None => false,
        Some(first) if first.kind == handshake::CLIENT_HELLO => first.is_whole(),
        Some(first) if first.kind == handshake::SERVER_HELLO => {
            first.is_whole()
                && (tls::ServerHello::parse(first.body).is_none_or(|it| it.chosen_version() >= 0x0304)
                    || tls::message(first.rest).is_some_and(|next| {
                        next.kind != handshake::CERTIFICATE
                            || next.is_whole()
                            || first_certificate(next.body).is_some()
                    }))
        }
        Some(_) => return Unit::Nothing,
    };
    match needed {
        Some(needed) if !is_there && bytes.len() < MOST => Unit::More(needed),
        _ => Unit::Whole(bytes.len(), Kind::Hello),
    }
}

/// The first one of a list (RFC 5246 §7.4.2): the server's own.
fn first_certificate(list: &[u8]) -> Option<&[u8]> {
    let mut list = Cursor::new(list);
    let _length = list.u24();
    list.vector24()
}

fn hello(bytes: &[u8], context: &mut Context<'_>) {
    // Its room is needed while the desk is told.
    let mut room = std::mem::take(&mut context.desk.room);
    let said = tls::joined(bytes, &mut room);
    if let Some(first) = tls::message(said) {
        if first.kind == handshake::CLIENT_HELLO {
            if let Some(hello) = tls::ClientHello::parse(first.body, false) {
                context.tell(Decoded::ClientHello(ClientHello::of(&hello, Over::Tcp)));
            }
        } else if let Some(hello) = tls::ServerHello::parse(first.body) {
            context.tell(Decoded::ServerHello(ServerHello::of(&hello)));
            let next = tls::message(first.rest).filter(|it| it.kind == handshake::CERTIFICATE);
            let names = next.and_then(|it| first_certificate(it.body)).and_then(certificate::Names::parse);
            if let Some(names) = names {
                context.tell(Decoded::Certificate(Certificate::of(&names)));
            }
        }
    }
    context.desk.room = room;
}
