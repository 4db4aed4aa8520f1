//! The names of the network: DNS over datagrams and streams, mDNS and LLMNR, which have its messages.
//!
//! A message has no mark of its own: it is known by counts, names, types and lengths that come out exactly. The parser follows compression pointers
//! only backwards, so no message can keep it busy.

use crate::Protocol;
use crate::classify::{Answer, Carrier, Carriers, First, Message as Shown, Recogniser, Sheet, Strength};
use crate::protocols::cursor::Cursor;
use crate::protocols::shape::row;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(Protocol::Dns, Carriers::UDP, &[53], First::Any, Strength::Structure, dns)
        // At most 64 questions are read: of QDCOUNT the upper octet is zero (RFC 1035 §4.1.1).
        .having(4, 0, 0),
    row(
        Protocol::Dns,
        Carriers::TCP,
        &[53],
        // A length of up to 16,383 octets.
        First::Range(0, 0x3f),
        Strength::Structure,
        dns_stream,
    ),
    row(Protocol::Mdns, Carriers::UDP, &[5353], First::Any, Strength::Structure, mdns).at_home(),
    row(Protocol::Llmnr, Carriers::BOTH, &[5355], First::Any, Strength::Structure, llmnr).at_home(),
];

/// Resource record types (IANA, DNS Parameters).
pub mod kind {
    /// An IPv4 address.
    pub const A: u16 = 1;
    /// Another name for this one.
    pub const CNAME: u16 = 5;
    /// A name for an address.
    pub const PTR: u16 = 12;
    /// An IPv6 address.
    pub const AAAA: u16 = 28;
    /// EDNS (RFC 6891 §6.1.1).
    pub const OPT: u16 = 41;

    /// As zone files have it; others by their number (RFC 3597 §5).
    pub fn name(kind: u16) -> String {
        let name = match kind {
            A => "A",
            2 => "NS",
            CNAME => "CNAME",
            6 => "SOA",
            PTR => "PTR",
            15 => "MX",
            16 => "TXT",
            AAAA => "AAAA",
            33 => "SRV",
            35 => "NAPTR",
            OPT => "OPT",
            43 => "DS",
            48 => "DNSKEY",
            64 => "SVCB",
            65 => "HTTPS",
            255 => "ANY",
            _ => return format!("TYPE{kind}"),
        };
        name.to_owned()
    }
}

/// What a code is called (IANA, DNS RCODEs).
pub fn code_name(code: u16) -> String {
    const NAMES: [&str; 12] = [
        "NOERROR",
        "FORMERR",
        "SERVFAIL",
        "NXDOMAIN",
        "NOTIMP",
        "REFUSED",
        "YXDOMAIN",
        "YXRRSET",
        "NXRRSET",
        "NOTAUTH",
        "NOTZONE",
        "DSOTYPENI",
    ];
    NAMES.get(usize::from(code)).map_or_else(|| format!("RCODE{code}"), |it| (*it).to_owned())
}

/// Octets of a name, at most (RFC 1035 §2.3.4).
const NAME: usize = 255;
/// Records that are read of one message, at most.
const RECORDS: usize = 256;
/// Pointers that are followed for one name, at most.
const POINTERS: usize = 32;

/// A message (RFC 1035 §4.1).
#[derive(Clone, Copy, Debug)]
pub struct Message<'b> {
    bytes: &'b [u8],
    /// By which question and answer find each other.
    pub id: u16,
    /// QR, Opcode, AA, TC, RD, RA, Z, RCODE.
    pub flags: u16,
    /// Questions, answers, authorities, additional records.
    pub counts: [u16; 4],
}

/// A name in a message.
#[derive(Clone, Copy, Debug)]
pub struct Name<'b> {
    message: &'b [u8],
    at: usize,
}

/// What is asked (RFC 1035 §4.1.2).
#[derive(Clone, Copy, Debug)]
pub struct Question<'b> {
    /// About whom.
    pub name: Name<'b>,
    /// See [`kind`].
    pub kind: u16,
    /// 1 is the Internet. The upper bit is mDNS's own.
    pub class: u16,
}

/// What is known (RFC 1035 §4.1.3).
#[derive(Clone, Copy, Debug)]
pub struct Record<'b> {
    /// About whom.
    pub name: Name<'b>,
    /// See [`kind`].
    pub kind: u16,
    /// 1 is the Internet.
    pub class: u16,
    /// Seconds for which it holds.
    pub ttl: u32,
    /// What is said.
    pub data: &'b [u8],
    /// Where in the message that is.
    at: usize,
}

impl<'b> Message<'b> {
    /// Of a datagram, or of a stream without the length before it. Only the header is read.
    pub fn parse(bytes: &'b [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(bytes);
        let (id, flags) = (cursor.u16()?, cursor.u16()?);
        let counts = [cursor.u16()?, cursor.u16()?, cursor.u16()?, cursor.u16()?];
        Some(Self { bytes, id, flags, counts })
    }

    /// QR: whether it answers.
    pub const fn is_answer(&self) -> bool {
        self.flags & 0x8000 != 0
    }

    /// RCODE: 0 is well, 3 is no such name.
    pub const fn code(&self) -> u16 {
        self.flags & 15
    }

    /// What is asked.
    pub fn questions(&self) -> impl Iterator<Item = Question<'b>> + use<'b> {
        let (bytes, mut at) = (self.bytes, HEADER);
        let [count, ..] = self.counts;
        let mut left = usize::from(count).min(RECORDS);
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let (question, end) = question(bytes, at)?;
            at = end;
            Some(question)
        })
    }

    /// What is answered, without authorities and what is added.
    pub fn answers(&self) -> impl Iterator<Item = Record<'b>> + use<'b> {
        let bytes = self.bytes;
        let [_, count, ..] = self.counts;
        let mut left = usize::from(count).min(RECORDS);
        let mut at = self.end_of_questions();
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let (record, end) = record(bytes, at?)?;
            at = Some(end);
            Some(record)
        })
    }

    /// The addresses that are answered, of whatever names, with the seconds for which they hold.
    pub fn addresses(&self) -> impl Iterator<Item = (IpAddr, u32)> + use<'b> {
        self.answers().filter_map(|it| Some((it.address()?, it.ttl)))
    }

    fn end_of_questions(&self) -> Option<usize> {
        let [count, ..] = self.counts;
        (0..usize::from(count).min(RECORDS)).try_fold(HEADER, |at, _| question(self.bytes, at).map(|it| it.1))
    }

    /// Whether the counts are right: the last record ends where the message ends.
    fn ends_well(&self) -> bool {
        let [_, records @ ..] = self.counts;
        let count: usize = records.into_iter().map(usize::from).sum();
        let Some(begins) = self.end_of_questions().filter(|_| count <= RECORDS) else { return false };
        let end = (0..count).try_fold(begins, |at, _| record(self.bytes, at).map(|it| it.1));
        end == Some(self.bytes.len())
    }
}

/// Octets of a header.
const HEADER: usize = 12;

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn question(bytes: &[u8], at: usize) -> Option<(Question<'_>, usize)> {
    let name = Name { message: bytes, at };
    let end = name.end()?;
    Some((Question { name, kind: number(bytes, end)?, class: number(bytes, end + 2)? }, end + 4))
}

fn record(bytes: &[u8], at: usize) -> Option<(Record<'_>, usize)> {
    let name = Name { message: bytes, at };
    let end = name.end()?;
    let mut cursor = Cursor::new(bytes.get(end..)?);
    let (kind, class, ttl) = (cursor.u16()?, cursor.u16()?, cursor.u32()?);
    let data = cursor.vector16()?;
    let at = end + 10;
    Some((Record { name, kind, class, ttl, data, at }, at + data.len()))
}

impl<'b> Record<'b> {
    /// Of A and AAAA.
    pub fn address(&self) -> Option<IpAddr> {
        match self.kind {
            kind::A => Some(Ipv4Addr::from(<[u8; 4]>::try_from(self.data).ok()?).into()),
            kind::AAAA => Some(Ipv6Addr::from(<[u8; 16]>::try_from(self.data).ok()?).into()),
            _ => None,
        }
    }

    /// Of CNAME and PTR.
    pub fn alias(&self) -> Option<Name<'b>> {
        let is_name = matches!(self.kind, kind::CNAME | kind::PTR);
        is_name.then_some(Name { message: self.name.message, at: self.at })
    }
}

impl Name<'_> {
    /// Where what follows the name begins.
    fn end(&self) -> Option<usize> {
        let mut at = self.at;
        loop {
            match *self.message.get(at)? {
                0 => return Some(at + 1),
                label @ 1..=63 => at += 1 + usize::from(label),
                0xc0.. => return (at + 2 <= self.message.len()).then_some(at + 2),
                _ => return None,
            }
            if at - self.at > NAME {
                return None;
            }
        }
    }

    /// Its labels, with a dot after each but the last; `None` if it isn't a name. The root is empty.
    pub fn write<'r>(&self, room: &'r mut [u8; NAME]) -> Option<&'r [u8]> {
        let (mut at, mut length, mut pointers) = (self.at, 0, 0);
        // Pointers lead to before where they stand, and where they led before (RFC 1035 §4.1.4: "a prior occurance").
        let mut limit = self.at;
        loop {
            match *self.message.get(at)? {
                0 => return room.get(..length),
                size @ 1..=63 => {
                    let label = self.message.get(at + 1..)?.get(..size.into())?;
                    if length > 0 {
                        *room.get_mut(length)? = b'.';
                        length += 1;
                    }
                    room.get_mut(length..)?.get_mut(..label.len())?.copy_from_slice(label);
                    length += label.len();
                    at += 1 + label.len();
                }
                high @ 0xc0.. => {
                    let low = *self.message.get(at + 1)?;
                    let to = usize::from(high & 0x3f) << 8 | usize::from(low);
                    pointers += 1;
                    if to >= limit || to < HEADER || pointers > POINTERS {
                        return None;
                    }
                    (at, limit) = (to, to);
                }
                _ => return None,
            }
        }
    }
}

/// How much of a message fits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
enum Fit {
    /// It isn't one.
    No,
    /// The header is possible, and says that nothing follows.
    Header,
    /// The first question or record is one.
    Begins,
    /// All of it, to its last octet.
    Whole,
}

/// Looks at the header first: most of what isn't DNS ends there.
fn fit(bytes: &[u8], sheet: &mut Sheet) -> Fit {
    let Some(message) = Message::parse(bytes) else { return Fit::No };
    let [questions, answers, authorities, _] = message.counts;
    let records = message.counts.iter().skip(1).map(|it| usize::from(*it)).sum::<usize>();
    // Opcodes that are assigned, Z, and codes that fit in here (RFC 6895 §2).
    let opcode = message.flags >> 11 & 15;
    let possible = opcode <= 6
        && message.flags & 0x40 == 0
        && message.code() <= 11
        && questions <= 64
        && HEADER + usize::from(questions) * 5 + records * 11 <= bytes.len()
        && (message.is_answer() || message.code() == 0)
        // Only updates say more in a question (RFC 2136 §2), and mDNS, which knows some answers already.
        && (message.is_answer() || opcode != 0 || answers == 0 || message.id == 0)
        && (message.is_answer() || opcode != 0 || authorities <= 1 || message.id == 0);
    if !possible {
        return Fit::No;
    }
    let first = match message.questions().next() {
        Some(it) => Some((it.name, it.kind, it.class)),
        None if questions > 0 => return Fit::No,
        None => message.answers().next().map(|it| (it.name, it.kind, it.class)),
    };
    let Some((name, kind, class)) = first else {
        return if records == 0 && bytes.len() == HEADER { Fit::Header } else { Fit::No };
    };
    let mut room = [0; NAME];
    let Some(name) = name.write(&mut room) else { return Fit::No };
    // IN, CH, HS, NONE, ANY; the upper bit is mDNS's (RFC 6762 §5.4).
    if kind == 0 || !matches!(class & 0x7fff, 1 | 3 | 4 | 254 | 255) {
        return Fit::No;
    }
    sheet.host.set(name);
    if message.ends_well() { Fit::Whole } else { Fit::Begins }
}

/// RFC 1035 §4.1: a header that is possible, and a question with a name and a class.
fn dns(message: &mut Shown<'_>) -> Answer {
    if message.has_port(5353) || message.has_port(5355) {
        return Answer::No;
    }
    match fit(message.bytes, message.sheet) {
        // The answer is worth seeing, too, and so is the next question: a stub resolver asks all of them from one port.
        Fit::Whole => Answer::Open,
        Fit::Begins if message.has_port(53) => Answer::Open,
        Fit::Header if message.has_port(53) => Answer::Perhaps,
        _ => Answer::No,
    }
}

/// RFC 1035 §4.2.2: a message after its length.
fn dns_stream(message: &mut Shown<'_>) -> Answer {
    if !message.begins || message.has_port(5355) {
        return Answer::No;
    }
    stream(message, 53)
}

fn stream(message: &mut Shown<'_>, port: u16) -> Answer {
    let is_usual = message.has_port(port);
    let Some(length) = message.u16(0).map(usize::from) else {
        return if is_usual { Answer::Longer } else { Answer::No };
    };
    if length < HEADER {
        return Answer::No;
    }
    let rest = message.bytes.get(2..).unwrap_or_default();
    let Some(whole) = rest.get(..length) else {
        // Not all is there: on other ports the header must be.
        let header = Message::parse(rest);
        let may_be = header.map_or(is_usual && rest.len() < HEADER, |it| {
            matches!(it.counts, [1, 0..=99, 0..=99, 0..=99]) && it.flags & 0x7840 == 0 && it.code() <= 11
        });
        return if may_be { Answer::Longer } else { Answer::No };
    };
    match fit(whole, message.sheet) {
        Fit::Whole => Answer::Is,
        Fit::Begins | Fit::Header if is_usual => Answer::Perhaps,
        _ => Answer::No,
    }
}

/// RFC 6762 §5, §6: the same messages on a port of their own; services are names here.
fn mdns(message: &mut Shown<'_>) -> Answer {
    if !message.has_port(5353) {
        return Answer::No;
    }
    match fit(message.bytes, message.sheet) {
        Fit::No => Answer::No,
        Fit::Header => Answer::Perhaps,
        Fit::Begins | Fit::Whole => Answer::Is,
    }
}

/// RFC 4795 §2: likewise.
fn llmnr(message: &mut Shown<'_>) -> Answer {
    if !message.has_port(5355) || !message.begins {
        return Answer::No;
    }
    if message.carrier == Carrier::Tcp {
        return stream(message, 5355);
    }
    match fit(message.bytes, message.sheet) {
        Fit::Whole => Answer::Is,
        Fit::Begins => Answer::Perhaps,
        _ => Answer::No,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::classify::Side;
    use crate::protocols::show::{client, flow, server};

    const QUERY: &[u8] = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\x01\x03www\x07example\x03org\0\0\x01\0\x01\
        \0\0\x29\x10\0\0\0\0\0\0\0";
    const ANSWER: &[u8] = b"\x12\x34\x81\x80\0\x01\0\x03\0\0\0\0\x03www\x07example\x03org\0\0\x01\0\x01\
        \xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x06\x03cdn\xc0\x10\
        \xc0\x2d\0\x01\0\x01\0\0\0\x1e\0\x04\xc0\0\x02\x07\
        \xc0\x2d\0\x1c\0\x01\0\0\0\x1e\0\x10\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x09";

    fn name(protocol: Protocol, carrier: Carrier, port: u16, bytes: &[u8]) -> (Answer, Vec<u8>) {
        let (mut answers, sheet) = flow(protocol, carrier, port, &[(Side::Client, bytes)]);
        (answers.remove(0), sheet.host.bytes().to_vec())
    }

    #[test]
    fn a_question_is_known_on_any_port() {
        for port in [53, 5300] {
            let found = name(Protocol::Dns, Carrier::Udp, port, QUERY);
            assert_eq!(found, (Answer::Open, b"www.example.org".to_vec()));
        }
        assert_eq!(server(Protocol::Dns, Carrier::Udp, 5300, ANSWER), Answer::Open);
        let longer = [QUERY, b"x"].concat();
        assert_eq!(client(Protocol::Dns, Carrier::Udp, 5300, &longer), Answer::No, "one octet too many");
        assert_eq!(client(Protocol::Dns, Carrier::Udp, 53, &longer), Answer::Open);
    }

    #[test]
    fn what_only_looks_like_it_is_not() {
        let with = |at: usize, octet: u8| {
            let mut bytes = QUERY.to_vec();
            bytes[at] = octet;
            client(Protocol::Dns, Carrier::Udp, 5300, &bytes)
        };
        assert_eq!(with(2, 0x71), Answer::No, "an opcode that isn't assigned");
        assert_eq!(with(3, 0x40), Answer::No, "Z");
        assert_eq!(with(5, 2), Answer::No, "two questions");
        assert_eq!(with(12, 0x80), Answer::No, "a label of a kind that isn't assigned");
        assert_eq!(with(32, 9), Answer::No, "a class");
        assert_eq!(client(Protocol::Dns, Carrier::Udp, 5300, &[0; 40]), Answer::No);
        let rtp = [&[0x80, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1][..], &[0; 160]].concat();
        assert_eq!(client(Protocol::Dns, Carrier::Udp, 40000, &rtp), Answer::No);
    }

    #[test]
    fn streams_have_lengths_and_come_in_parts() {
        let whole = [&(QUERY.len() as u16).to_be_bytes()[..], QUERY].concat();
        assert_eq!(client(Protocol::Dns, Carrier::Tcp, 5300, &whole), Answer::Is);
        for length in 2..whole.len() {
            assert_eq!(client(Protocol::Dns, Carrier::Tcp, 53, &whole[..length]), Answer::Longer);
        }
        assert_eq!(client(Protocol::Dns, Carrier::Tcp, 5300, &[0, 200, 1, 2, 3]), Answer::No);
        assert_eq!(client(Protocol::Dns, Carrier::Tcp, 53, b"\0\x03abc"), Answer::No);
    }

    #[test]
    fn names_in_the_neighbourhood_have_their_ports() {
        let mdns = b"\0\0\0\0\0\x01\0\0\0\0\0\0\x0b_googlecast\x04_tcp\x05local\0\0\x0c\x80\x01";
        let found = name(Protocol::Mdns, Carrier::Udp, 5353, mdns);
        assert_eq!(found, (Answer::Is, b"_googlecast._tcp.local".to_vec()));
        assert_eq!(client(Protocol::Dns, Carrier::Udp, 5353, mdns), Answer::No);
        let llmnr = b"\x01\x02\0\0\0\x01\0\0\0\0\0\0\x04host\0\0\xff\0\x01";
        assert_eq!(name(Protocol::Llmnr, Carrier::Udp, 5355, llmnr), (Answer::Is, b"host".to_vec()));
        assert_eq!(client(Protocol::Llmnr, Carrier::Udp, 53, llmnr), Answer::No);
        assert_eq!(client(Protocol::Mdns, Carrier::Udp, 53, llmnr), Answer::No);
    }

    #[test]
    fn answers_give_addresses() {
        let message = Message::parse(ANSWER).unwrap();
        let expected: Vec<(IpAddr, u32)> =
            vec![("192.0.2.7".parse().unwrap(), 30), ("2001:db8::9".parse().unwrap(), 30)];
        assert_eq!(message.addresses().collect::<Vec<_>>(), expected);
        let mut room = [0; NAME];
        let alias = message.answers().next().unwrap().alias().unwrap();
        assert_eq!(alias.write(&mut room), Some(&b"cdn.example.org"[..]));
        assert!(message.is_answer() && message.code() == 0 && message.questions().count() == 1);
    }

    #[test]
    fn loops_end() {
        for pointer in [b"\xc0\x0c", b"\xc0\x0d", b"\xff\xff", b"\xc0\0"] {
            let bytes = [&b"\0\x01\0\0\0\x01\0\0\0\0\0\0"[..], pointer, b"\0\x01\0\x01"].concat();
            assert_eq!(client(Protocol::Dns, Carrier::Udp, 53, &bytes), Answer::No);
        }
        let labels =
            [&b"\0\x01\0\0\0\x01\0\0\0\0\0\0"[..], &b"\x01a".repeat(200), b"\0\0\x01\0\x01"].concat();
        assert_eq!(client(Protocol::Dns, Carrier::Udp, 53, &labels), Answer::No, "longer than a name may be");
    }

    #[test]
    fn cut_off_anywhere_it_is_read_as_far_as_it_goes() {
        for length in 1..ANSWER.len() {
            assert_eq!(server(Protocol::Dns, Carrier::Udp, 5300, &ANSWER[..length]), Answer::No);
            let message = Message::parse(&ANSWER[..length]);
            let found = message.map_or(0, |it| it.addresses().count());
            assert!(found < 2);
        }
    }
}
