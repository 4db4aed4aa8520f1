//! SIP, and the descriptions of media (SDP) in it.

use crate::Protocol;
use crate::classify::assembly::MOST;
use crate::classify::{Answer, Carrier, Carriers, First, Message as Shown, Recogniser, Strength};
use crate::protocols::http::Fields;
use crate::protocols::shape::{is_printed, row};

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(Protocol::Sip, Carriers::BOTH, &[5060, 5061], First::Range(b'A', b'Z'), Strength::Magic, sip),
    row(Protocol::Rtsp, Carriers::TCP, &[554, 8554], First::Range(b'A', b'Z'), Strength::Magic, rtsp),
];

/// IANA, SIP Methods.
const SIP_METHODS: &[&[u8]] = &[
    b"INVITE",
    b"ACK",
    b"BYE",
    b"CANCEL",
    b"REGISTER",
    b"OPTIONS",
    b"SUBSCRIBE",
    b"NOTIFY",
    b"PUBLISH",
    b"INFO",
    b"REFER",
    b"MESSAGE",
    b"UPDATE",
    b"PRACK",
];
/// RFC 7826 §13, RFC 2326 §10.
const RTSP_METHODS: &[&[u8]] = &[
    b"DESCRIBE",
    b"SETUP",
    b"PLAY",
    b"OPTIONS",
    b"ANNOUNCE",
    b"TEARDOWN",
    b"PAUSE",
    b"RECORD",
    b"GET_PARAMETER",
    b"SET_PARAMETER",
    b"REDIRECT",
    b"PLAY_NOTIFY",
];
/// A first line is at most as long as this.
const LINE: usize = 1024;

/// What a message begins with (RFC 3261 §7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start<'b> {
    /// What is to be done, with whom.
    Request(&'b [u8], &'b [u8]),
    /// How it went.
    Response(u16),
}

/// A message of SIP or RTSP.
#[derive(Clone, Copy, Debug)]
pub struct Message<'b> {
    /// Its first line.
    pub start: Start<'b>,
    /// What follows it.
    pub fields: Fields<'b>,
}

impl<'b> Message<'b> {
    /// Of SIP.
    pub fn parse(bytes: &'b [u8]) -> Option<Self> {
        Self::of(bytes, b"SIP/2.0", SIP_METHODS)
    }

    /// Of RTSP.
    pub fn parse_rtsp(bytes: &'b [u8]) -> Option<Self> {
        Self::of(bytes, b"RTSP/1.0", RTSP_METHODS).or_else(|| Self::of(bytes, b"RTSP/2.0", RTSP_METHODS))
    }

    fn of(bytes: &'b [u8], version: &[u8], methods: &[&[u8]]) -> Option<Self> {
        let begins = bytes.get(..bytes.len().min(LINE))?;
        let end = memchr::memchr(b'\n', begins)?;
        let line = bytes.get(..end)?;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let fields = Fields::new(bytes.get(end + 1..)?);
        if let Some([b' ', a @ b'1'..=b'6', b, c, ..]) = line.strip_prefix(version) {
            let digits = [a, b, c].map(|it| u16::from(it.wrapping_sub(b'0')));
            let [a, b, c] = digits;
            let start = Start::Response(a * 100 + b * 10 + c);
            return digits.iter().all(|it| *it < 10).then_some(Self { start, fields });
        }
        let rest = line.strip_suffix(version)?.strip_suffix(b" ")?;
        let space = memchr::memchr(b' ', rest)?;
        let (method, target) = (rest.get(..space)?, rest.get(space + 1..)?);
        let fits = methods.contains(&method) && !target.is_empty() && is_printed(target);
        fits.then_some(Self { start: Start::Request(method, target), fields })
    }

    fn field(&self, name: &[u8], compact: &[u8]) -> Option<&'b [u8]> {
        self.fields.get(name).or_else(|| self.fields.get(compact))
    }

    /// Who calls (RFC 3261 §20.20).
    pub fn from(&self) -> Option<&'b [u8]> {
        self.field(b"from", b"f").map(address)
    }

    /// Who is called (RFC 3261 §20.39).
    pub fn to(&self) -> Option<&'b [u8]> {
        self.field(b"to", b"t").map(address)
    }

    /// Which call it is (RFC 3261 §20.8).
    pub fn call_id(&self) -> Option<&'b [u8]> {
        self.field(b"call-id", b"i")
    }

    /// What a response answers (RFC 3261 §20.16): the method in CSeq.
    pub fn answers(&self) -> Option<&'b [u8]> {
        self.fields.get(b"cseq")?.rsplit(|octet| *octet == b' ').next()
    }

    /// Octets of what follows the header (RFC 3261 §20.14); over datagrams it may be missing.
    pub fn length(&self) -> Option<usize> {
        str::from_utf8(self.field(b"content-length", b"l")?).ok()?.parse().ok()
    }

    /// What the sender is.
    pub fn agent(&self) -> Option<&'b [u8]> {
        self.fields.get(b"user-agent").or_else(|| self.fields.get(b"server"))
    }

    /// What is described in it, if it is.
    pub fn description(&self) -> Option<Sdp<'b>> {
        let kind = self.field(b"content-type", b"c")?;
        let is_sdp = kind.get(..15).is_some_and(|it| it.eq_ignore_ascii_case(b"application/sdp"));
        is_sdp.then_some(Sdp { text: self.fields.body()? })
    }
}

/// The URI in From and To, without a name before it and parameters behind.
fn address(value: &[u8]) -> &[u8] {
    let inner = match value.iter().position(|it| *it == b'<') {
        Some(at) => value.get(at + 1..).unwrap_or_default(),
        None => value,
    };
    inner.split(|it| b">;".contains(it)).next().unwrap_or_default().trim_ascii()
}

/// The server in a URI: "sip:user@host:port;parameters", "rtsp://user:secret@host:port/path".
fn host(uri: &[u8]) -> Option<&[u8]> {
    let rest = uri.get(uri.iter().position(|it| *it == b':')? + 1..)?;
    let rest = rest.strip_prefix(b"//").unwrap_or(rest);
    let rest = rest.split(|it| b";?/>".contains(it)).next()?;
    let host = rest.rsplit(|it| *it == b'@').next()?;
    let host = match host.strip_prefix(b"[") {
        Some(v6) => v6.split(|it| *it == b']').next()?,
        None => host.split(|it| *it == b':').next()?,
    };
    (!host.is_empty()).then_some(host)
}

/// RFC 3261 §7.1, §7.2: a method or a status, and the version.
fn sip(message: &mut Shown<'_>) -> Answer {
    recognise(message, Message::parse, SIP_METHODS, b"SIP/2.0")
}

/// RFC 7826 §7.1: likewise.
fn rtsp(message: &mut Shown<'_>) -> Answer {
    recognise(message, Message::parse_rtsp, RTSP_METHODS, b"RTSP/")
}

/// Whether a stream that begins so may become a message of SIP or RTSP.
pub(crate) fn begins(bytes: &[u8]) -> bool {
    begins_so(bytes, SIP_METHODS, b"SIP/2.0") || begins_so(bytes, RTSP_METHODS, b"RTSP/")
}

/// With one of the methods, or the version, as far as it goes; a first line is not longer than may be.
fn begins_so(bytes: &[u8], methods: &[&[u8]], version: &[u8]) -> bool {
    let begins = bytes.get(..bytes.len().min(LINE)).unwrap_or_default();
    let word = begins.split(|it| *it == b' ').next().unwrap_or_default();
    let is_method =
        |it: &&[u8]| it.starts_with(word) && (word.len() == it.len() || word.len() == begins.len());
    let has_line = begins.len() < LINE || memchr::memchr(b'\n', begins).is_some();
    has_line && (methods.iter().any(is_method) || version.starts_with(begins) || begins.starts_with(version))
}

fn recognise<'m>(
    message: &mut Shown<'m>,
    parse: fn(&'m [u8]) -> Option<Message<'m>>,
    methods: &[&[u8]],
    version: &[u8],
) -> Answer {
    let is_stream = message.carrier == Carrier::Tcp;
    if is_stream && !message.begins {
        return Answer::No;
    }
    let Some(found) = parse(message.bytes) else {
        // Over streams the first line may come in parts.
        let may_be =
            memchr::memchr(b'\n', message.bytes).is_none() && begins_so(message.bytes, methods, version);
        return if is_stream && may_be { Answer::Longer } else { Answer::No };
    };
    if let Some(agent) = found.agent() {
        message.sheet.agent.set(agent);
    }
    let called = match found.start {
        Start::Request(_, target) => Some(target),
        Start::Response(_) => found.to(),
    };
    if let Some(host) = called.and_then(host) {
        message.sheet.host.set(host);
    }
    let is_whole = found.fields.body().is_some() || message.len() >= MOST;
    if is_stream && !is_whole { Answer::Longer } else { Answer::Is }
}

/// What media are agreed on (RFC 8866).
#[derive(Clone, Copy, Debug)]
pub struct Sdp<'b> {
    text: &'b [u8],
}

/// One medium: "m=audio 49170 RTP/AVP 0 96" and what follows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Media<'b> {
    /// "audio", "video".
    pub kind: &'b [u8],
    /// Where it is to be sent to.
    pub port: u16,
    /// "RTP/AVP", "UDP/TLS/RTP/SAVPF".
    pub transport: &'b [u8],
    /// Payload types.
    pub formats: &'b [u8],
}

impl<'b> Sdp<'b> {
    /// Of a text.
    pub const fn new(text: &'b [u8]) -> Self {
        Self { text }
    }

    /// Lines of this letter: what is after "c=".
    fn lines(&self, letter: u8) -> impl Iterator<Item = &'b [u8]> + use<'b> {
        let lines = self.text.split(|it| *it == b'\n').take(256);
        lines.filter_map(move |line| match line.strip_suffix(b"\r").unwrap_or(line) {
            [first, b'=', rest @ ..] if *first == letter => Some(rest),
            _ => None,
        })
    }

    /// The first address that media are sent to (RFC 8866 §5.7): of "IN IP4 192.0.2.1".
    pub fn address(&self) -> Option<std::net::IpAddr> {
        let mut words = self.lines(b'c').next()?.split(|it| b" /".contains(it));
        str::from_utf8(words.nth(2)?).ok()?.parse().ok()
    }

    /// All media.
    pub fn media(&self) -> impl Iterator<Item = Media<'b>> + use<'b> {
        self.lines(b'm').filter_map(|line| {
            let mut words = line.splitn(4, |it| *it == b' ');
            let (kind, port, transport) = (words.next()?, words.next()?, words.next()?);
            let port = port.split(|it| *it == b'/').next()?;
            let port = str::from_utf8(port).ok()?.parse().ok()?;
            Some(Media { kind, port, transport, formats: words.next().unwrap_or_default() })
        })
    }

    /// The codec of a payload type (RFC 8866 §6.6): of "rtpmap:96 opus/48000".
    pub fn codec(&self, payload_type: u8) -> Option<&'b [u8]> {
        self.lines(b'a').find_map(|line| {
            let mut words = line.strip_prefix(b"rtpmap:")?.split(|it| *it == b' ');
            let number: u8 = str::from_utf8(words.next()?).ok()?.parse().ok()?;
            if number == payload_type { words.next() } else { None }
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::classify::Side;
    use crate::protocols::show::{client, flow};

    const INVITE: &[u8] = b"INVITE sip:bob@biloxi.example.com SIP/2.0\r\nVia: SIP/2.0/UDP x\r\n\
        f: Alice <sip:alice@atlanta.example.com>;tag=1\r\nTo: <sip:bob@biloxi.example.com>\r\ni: abc@x\r\n\
        User-Agent: phone/1\r\nc: application/sdp\r\n\r\n\
        v=0\r\nc=IN IP4 192.0.2.1\r\nm=audio 49172 RTP/AVP 0 96\r\na=rtpmap:96 opus/48000/2\r\n";

    #[test]
    fn a_request_is_known_by_method_and_version() {
        for carrier in [Carrier::Udp, Carrier::Tcp] {
            let (answers, sheet) = flow(Protocol::Sip, carrier, 7000, &[(Side::Client, INVITE)]);
            assert_eq!(answers, [Answer::Is]);
            assert_eq!(sheet.host.bytes(), b"biloxi.example.com");
            assert_eq!(sheet.agent.bytes(), b"phone/1");
        }
        assert_eq!(client(Protocol::Sip, Carrier::Udp, 5060, b"SIP/2.0 200 OK\r\n\r\n"), Answer::Is);
        assert_eq!(client(Protocol::Sip, Carrier::Udp, 5060, b"SIP/2.0 2x0 OK\r\n\r\n"), Answer::No);
        assert_eq!(client(Protocol::Sip, Carrier::Udp, 5060, b"GET / HTTP/1.1\r\n\r\n"), Answer::No);
        assert_eq!(
            client(Protocol::Sip, Carrier::Tcp, 5060, b"OPTIONS rtsp://x RTSP/1.0\r\n\r\n"),
            Answer::No
        );
        let end = INVITE.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
        for length in 1..end {
            assert_eq!(
                client(Protocol::Sip, Carrier::Tcp, 5060, &INVITE[..length]),
                Answer::Longer,
                "{length}"
            );
            let _ = client(Protocol::Sip, Carrier::Udp, 5060, &INVITE[..length]);
        }
    }

    #[test]
    fn parties_and_media_can_be_read() {
        let message = Message::parse(INVITE).unwrap();
        assert_eq!(message.from(), Some(&b"sip:alice@atlanta.example.com"[..]));
        assert_eq!(message.to(), Some(&b"sip:bob@biloxi.example.com"[..]));
        assert_eq!(message.call_id(), Some(&b"abc@x"[..]));
        let sdp = message.description().unwrap();
        assert_eq!(sdp.address(), Some([192, 0, 2, 1].into()));
        let media: Vec<_> = sdp.media().collect();
        let audio = Media { kind: b"audio", port: 49172, transport: b"RTP/AVP", formats: b"0 96" };
        assert_eq!(media, [audio]);
        assert_eq!(sdp.codec(96), Some(&b"opus/48000/2"[..]));
    }

    #[test]
    fn rtsp_is_its_cousin() {
        let ask = b"DESCRIBE rtsp://user:pw@cam.example.org:554/live RTSP/1.0\r\nUser-Agent: player\r\n\r\n";
        let (answers, sheet) = flow(Protocol::Rtsp, Carrier::Tcp, 8000, &[(Side::Client, ask)]);
        assert_eq!((answers, sheet.host.bytes()), (vec![Answer::Is], &b"cam.example.org"[..]));
        assert_eq!(sheet.agent.bytes(), b"player");
        assert_eq!(client(Protocol::Rtsp, Carrier::Tcp, 554, b"RTSP/1.0 200 OK\r\n\r\n"), Answer::Is);
        assert_eq!(client(Protocol::Rtsp, Carrier::Tcp, 554, b"DESCRIBED x\r\n"), Answer::No);
    }
}
