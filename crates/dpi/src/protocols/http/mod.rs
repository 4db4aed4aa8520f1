//! HTTP/1, what is carried by it, and HTTP/2 in clear ([`two`]).
//!
//! A walk over lines: nothing is copied, and what a header says is trimmed and no more. Protocols that are HTTP with another content type or method
//! are told from it where their standards name these.

pub mod two;

use crate::Protocol;
use crate::classify::assembly::MOST;
use crate::classify::{Answer, Carriers, First, Message, Recogniser, Strength};
use crate::protocols::shape::row;
use memchr::memchr;

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    row(
        Protocol::Http,
        Carriers::TCP,
        &[80, 8080, 8000, 3128, 8008, 8888],
        First::Range(b'A', b'Z'),
        Strength::Magic,
        http,
    ),
    row(Protocol::HttpConnect, Carriers::TCP, &[3128, 8080], First::Of(b"CH"), Strength::Magic, connect),
    two::RECOGNISER,
];

/// Lines of a header, at most.
const LINES: usize = 128;

/// Methods (IANA, HTTP Method Registry), and those of UPnP over TCP. What is asked for with the second ones is WebDAV's.
const METHODS: &[&[u8]] = &[
    b"GET",
    b"POST",
    b"HEAD",
    b"PUT",
    b"DELETE",
    b"OPTIONS",
    b"PATCH",
    b"TRACE",
    b"CONNECT",
    b"NOTIFY",
    b"SUBSCRIBE",
    b"UNSUBSCRIBE",
    b"PURGE",
    b"QUERY",
    b"BIND",
    b"LINK",
    b"SOURCE",
];
/// RFC 4918 §9, RFC 3253, RFC 5323, RFC 4791.
const DAV_METHODS: &[&[u8]] = &[
    b"PROPFIND",
    b"PROPPATCH",
    b"MKCOL",
    b"COPY",
    b"MOVE",
    b"LOCK",
    b"UNLOCK",
    b"ACL",
    b"SEARCH",
    b"REPORT",
    b"MKCALENDAR",
    b"CHECKOUT",
    b"CHECKIN",
    b"MERGE",
    b"MKACTIVITY",
    b"VERSION-CONTROL",
];
/// The longest; Microsoft has one of 16 letters (MS-SSTP).
const LONGEST_METHOD: usize = 20;

/// The beginning of what one side says (RFC 9112 §2.1).
#[derive(Clone, Copy, Debug)]
pub struct Request<'b> {
    /// What is to be done.
    pub method: &'b [u8],
    /// With what.
    pub target: &'b [u8],
    /// The one after "HTTP/1.".
    pub minor: u8,
    /// What follows the first line.
    pub fields: Fields<'b>,
}

/// The beginning of the answer (RFC 9112 §4).
#[derive(Clone, Copy, Debug)]
pub struct Response<'b> {
    /// 200 is well.
    pub status: u16,
    /// The one after "HTTP/1.".
    pub minor: u8,
    /// What follows the first line.
    pub fields: Fields<'b>,
}

/// Header fields, and what follows them.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'b> {
    bytes: &'b [u8],
}

/// One header field (RFC 9112 §5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field<'b> {
    /// As it came: names are compared without regard to case.
    pub name: &'b [u8],
    /// Without white space around it.
    pub value: &'b [u8],
}

/// The server's name without its port: of "host", "host:80", "[::1]:80".
pub(crate) fn without_port(authority: &[u8]) -> &[u8] {
    let authority = authority.rsplit(|octet| *octet == b'@').next().unwrap_or(authority);
    if let Some(v6) = authority.strip_prefix(b"[") {
        return v6.split(|octet| *octet == b']').next().unwrap_or(v6);
    }
    let mut parts = authority.split(|octet| *octet == b':');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(host), Some(_), None) => host,
        _ => authority,
    }
}

/// Takes a line, and says whether it was there.
fn line<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let end = memchr(b'\n', bytes)?;
    let (line, rest) = (bytes.get(..end)?, bytes.get(end + 1..)?);
    *bytes = rest;
    Some(line.strip_suffix(b"\r").unwrap_or(line))
}

impl<'b> Request<'b> {
    /// Of a stream's beginning; its first line must be there.
    pub fn parse(mut bytes: &'b [u8]) -> Option<Self> {
        let first = line(&mut bytes)?;
        let space = memchr(b' ', first.get(..first.len().min(LONGEST_METHOD + 1))?)?;
        let (method, rest) = (first.get(..space)?, first.get(space + 1..)?);
        // Targets may have spaces, though they must not: the version is what is last.
        let at = rest.len().checked_sub(b"HTTP/1.1".len())?;
        let (target, version) = rest.split_at_checked(at)?;
        let minor = minor(version)?;
        let target = target.strip_suffix(b" ")?;
        Some(Self { method, target, minor, fields: Fields { bytes } })
    }

    /// The server's name: of the target if it has one, else of Host.
    pub fn host(&self) -> Option<&'b [u8]> {
        authority(self.target).or_else(|| self.fields.get(b"host")).filter(|it| !it.is_empty())
    }

    /// Path and query.
    pub fn path(&self) -> &'b [u8] {
        let Some(authority) = authority(self.target) else { return self.target };
        let after = self.target.windows(3).position(|it| it == b"://").map_or(0, |at| at + 3);
        self.target.get(after + authority.len()..).unwrap_or_default()
    }
}

/// The part of an absolute URI that names the server (RFC 9112 §3.2.2), which proxies are sent.
fn authority(target: &[u8]) -> Option<&[u8]> {
    let schemes: [&[u8]; 3] = [b"http://", b"https://", b"ftp://"];
    let after = schemes.iter().find_map(|scheme| {
        let (begins, rest) = target.split_at_checked(scheme.len())?;
        begins.eq_ignore_ascii_case(scheme).then_some(rest)
    })?;
    after.split(|octet| b"/?#".contains(octet)).next()
}

impl<'b> Response<'b> {
    /// Of a stream's beginning; its first line must be there.
    pub fn parse(mut bytes: &'b [u8]) -> Option<Self> {
        let first = line(&mut bytes)?;
        let (version, rest) = first.split_at_checked(b"HTTP/1.1".len())?;
        let minor = minor(version)?;
        let [b' ', a @ b'1'..=b'5', b @ b'0'..=b'9', c @ b'0'..=b'9', ..] = rest else { return None };
        let digit = |octet: &u8| u16::from(octet - b'0');
        Some(Self { status: digit(a) * 100 + digit(b) * 10 + digit(c), minor, fields: Fields { bytes } })
    }
}

fn minor(version: &[u8]) -> Option<u8> {
    match version.strip_prefix(b"HTTP/1.")? {
        [digit @ (b'0' | b'1')] => Some(digit - b'0'),
        _ => None,
    }
}

impl<'b> Fields<'b> {
    /// Of what follows a first line; SIP and RTSP have the same.
    pub const fn new(bytes: &'b [u8]) -> Self {
        Self { bytes }
    }

    /// Those that are there, in their order. It ends at the empty line, or where the bytes end.
    pub fn iter(&self) -> impl Iterator<Item = Field<'b>> + use<'b> {
        let mut bytes = self.bytes;
        let lines = std::iter::from_fn(move || line(&mut bytes)).take(LINES);
        lines.take_while(|line| !line.is_empty()).filter_map(|line| {
            let colon = memchr(b':', line)?;
            let (name, value) = (line.get(..colon)?, line.get(colon + 1..)?);
            Some(Field { name, value: value.trim_ascii() })
        })
    }

    /// The first of this name, which is in small letters.
    pub fn get(&self, name: &[u8]) -> Option<&'b [u8]> {
        self.iter().find(|it| it.name.eq_ignore_ascii_case(name)).map(|it| it.value)
    }

    /// What follows the empty line, if it is there.
    pub fn body(&self) -> Option<&'b [u8]> {
        let mut bytes = self.bytes;
        for _ in 0..LINES {
            if line(&mut bytes)?.is_empty() {
                return Some(bytes);
            }
        }
        None
    }
}

/// Whether a stream may begin a request: a method, a space, and something like a target.
pub(crate) fn begins_request(bytes: &[u8]) -> bool {
    let begins = bytes.get(..bytes.len().min(LONGEST_METHOD + 1)).unwrap_or_default();
    let Some(space) = memchr(b' ', begins) else { return is_beginning_of_method(begins) };
    let method = begins.get(..space).unwrap_or_default();
    let target = bytes.get(space + 1).is_none_or(u8::is_ascii_graphic);
    target && (METHODS.contains(&method) || DAV_METHODS.contains(&method))
}

fn is_beginning_of_method(begins: &[u8]) -> bool {
    METHODS.iter().chain(DAV_METHODS).any(|method| method.starts_with(begins))
}

/// Whether it isn't the end yet of the line or of the fields, and more may be had.
fn is_short(bytes: &[u8]) -> bool {
    bytes.len() < MOST
}

/// RFC 9112 §3, §4: a method that is known, a target, and the version; or the version and a status.
fn http(message: &mut Message<'_>) -> Answer {
    if !message.begins {
        return Answer::No;
    }
    let bytes = message.bytes;
    if message.has(0, b"HTTP/1.") {
        return response(message);
    }
    if bytes.len() < 7 && b"HTTP/1.".starts_with(bytes) {
        return Answer::Longer;
    }
    if message.has(0, b"CONNECT ") {
        return Answer::No;
    }
    let Some(request) = Request::parse(bytes) else {
        return match memchr(b'\n', bytes.get(..bytes.len().min(MOST)).unwrap_or_default()) {
            Some(_) => old_request(bytes),
            None if !begins_request(bytes) => Answer::No,
            None if is_short(bytes) => Answer::Longer,
            // A target of several thousand octets that are text.
            None => Answer::Perhaps,
        };
    };
    // Whoever names his method so means HTTP (RFC 9110 §9.1); those that are known are more.
    if !request.method.iter().all(|it| it.is_ascii_uppercase() || b"-_".contains(it)) {
        return Answer::No;
    }
    message.sheet.path.set(request.path());
    let found = Found::of(&request.fields);
    if let Some(agent) = found.agent {
        message.sheet.agent.set(agent);
    }
    if let Some(kind) = found.content {
        message.sheet.content.set(kind);
    }
    let named = authority(request.target);
    if let Some(host) = named.or(found.host) {
        message.sheet.host.set(without_port(host));
    }
    if !found.is_whole && is_short(bytes) {
        return Answer::Longer;
    }
    match carried(&request, &found) {
        Some(protocol) => Answer::Other(protocol),
        None if named.is_some() => Answer::Other(Protocol::HttpProxy),
        None => Answer::Is,
    }
}

/// HTTP/0.9: a path, and no version.
fn old_request(bytes: &[u8]) -> Answer {
    let mut rest = bytes;
    match line(&mut rest) {
        Some([b'G', b'E', b'T', b' ', b'/', path @ ..])
            if rest.is_empty() && path.iter().all(u8::is_ascii_graphic) =>
        {
            Answer::Perhaps
        }
        _ => Answer::No,
    }
}

fn response(message: &mut Message<'_>) -> Answer {
    let Some(response) = Response::parse(message.bytes) else {
        let is_line = memchr(b'\n', message.bytes).is_some();
        return if !is_line && is_short(message.bytes) { Answer::Longer } else { Answer::No };
    };
    let found = Found::of(&response.fields);
    if let Some(kind) = found.content {
        message.sheet.content.set(kind);
    }
    if !found.is_whole && is_short(message.bytes) {
        return Answer::Longer;
    }
    let upgraded = Some(Protocol::WebSocket).filter(|_| response.status == 101 && found.is_websocket);
    match upgraded.or_else(|| of_content(&found)) {
        Some(protocol) => Answer::Other(protocol),
        // Its request may have been late: that names the server.
        None if message.other().packets == 0 => Answer::Open,
        None => Answer::Is,
    }
}

/// The fields that are looked for, in one walk.
#[derive(Clone, Copy, Default)]
struct Found<'b> {
    host: Option<&'b [u8]>,
    agent: Option<&'b [u8]>,
    content: Option<&'b [u8]>,
    is_websocket: bool,
    is_soap: bool,
    is_whole: bool,
    body: &'b [u8],
}

impl<'b> Found<'b> {
    fn of(fields: &Fields<'b>) -> Self {
        let mut found = Self::default();
        let mut bytes = fields.bytes;
        for _ in 0..LINES {
            let Some(line) = line(&mut bytes) else { return found };
            if line.is_empty() {
                break;
            }
            // Few lines have a length that says that they may be one of these, and fewer a fitting first letter.
            let Some(first) = line.first().map(u8::to_ascii_lowercase) else { break };
            let value = |name: &[u8]| {
                let (begins, rest) = line.split_at_checked(name.len())?;
                begins.eq_ignore_ascii_case(name).then(|| rest.trim_ascii())
            };
            match first {
                b'h' => found.host = found.host.or_else(|| value(b"host:")),
                b'u' => {
                    found.agent = found.agent.or_else(|| value(b"user-agent:"));
                    found.is_websocket |=
                        value(b"upgrade:").is_some_and(|it| it.eq_ignore_ascii_case(b"websocket"));
                }
                b'c' => found.content = found.content.or_else(|| value(b"content-type:")),
                b's' => found.is_soap |= value(b"soapaction:").is_some(),
                _ => {}
            }
        }
        (found.is_whole, found.body) = (true, bytes);
        found
    }
}

/// The protocol that this request is of, if it isn't just HTTP.
fn carried(request: &Request<'_>, found: &Found<'_>) -> Option<Protocol> {
    if DAV_METHODS.contains(&request.method) {
        return Some(Protocol::WebDav);
    }
    // MS-SSTP §3.2.4.1
    if request.method == b"SSTP_DUPLEX_POST" {
        return Some(Protocol::Sstp);
    }
    if found.is_websocket {
        return Some(Protocol::WebSocket);
    }
    of_content(found).or_else(|| of_path(request.path()))
}

/// What standards name paths for, or what their files are called.
fn of_path(path: &[u8]) -> Option<Protocol> {
    let path = path.split(|octet| *octet == b'?').next().unwrap_or_default();
    let ends = |end: &[u8]| path.len() > end.len() && path.ends_with(end);
    if ends(b".m3u8") {
        Some(Protocol::Hls)
    } else if ends(b".mpd") {
        Some(Protocol::Dash)
    } else if path == b"/dns-query" {
        Some(Protocol::Doh)
    } else {
        None
    }
}

/// What the content type, or what is sent, says.
fn of_content(found: &Found<'_>) -> Option<Protocol> {
    let kind = found.content?;
    let is = |name: &[u8]| kind.get(..name.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(name));
    if found.is_soap && is(b"text/xml") {
        Some(Protocol::Soap)
    } else if is(b"application/json-rpc") || (is(b"application/json") && is_json_rpc(found.body)) {
        Some(Protocol::JsonRpc)
    } else {
        of_type(kind)
    }
}

/// What standards name content types for.
fn of_type(kind: &[u8]) -> Option<Protocol> {
    let kind = kind.split(|octet| *octet == b';').next().unwrap_or_default().trim_ascii();
    let is = |name: &[u8]| kind.eq_ignore_ascii_case(name);
    let begins = |name: &[u8]| kind.get(..name.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(name));
    if begins(b"application/ocsp-re") {
        // RFC 6960 §A.1: -request, -response
        Some(Protocol::Ocsp)
    } else if is(b"application/ipp") {
        Some(Protocol::Ipp)
    } else if is(b"application/soap+xml") {
        Some(Protocol::Soap)
    } else if is(b"application/vnd.apple.mpegurl") || is(b"application/x-mpegurl") {
        Some(Protocol::Hls)
    } else if is(b"application/dash+xml") {
        Some(Protocol::Dash)
    } else if is(b"application/dns-message") {
        Some(Protocol::Doh)
    } else {
        None
    }
}

/// JSON-RPC 2.0 §4: an object has this member; it stands near the beginning as clients write it.
fn is_json_rpc(body: &[u8]) -> bool {
    let begins = body.get(..body.len().min(256)).unwrap_or_default();
    matches!(begins.trim_ascii_start(), [b'{' | b'[', ..]) && begins.windows(9).any(|it| it == b"\"jsonrpc\"")
}

/// RFC 9110 §9.3.6: the client names where it wants to go; once the proxy agrees, everything else is said with that server.
fn connect(message: &mut Message<'_>) -> Answer {
    if !message.begins {
        return Answer::No;
    }
    if !message.is_from_client() {
        // Asked only after a CONNECT.
        if !message.other().first().starts_with(b"CONNECT ") {
            return Answer::No;
        }
        return match Response::parse(message.bytes) {
            Some(response) => match response.fields.body() {
                None if is_short(message.bytes) => Answer::Longer,
                body if response.status / 100 == 2 => {
                    Answer::Within(message.len() - body.map_or(0, <[u8]>::len))
                }
                _ => Answer::Is,
            },
            None if memchr(b'\n', message.bytes).is_none() && is_short(message.bytes) => Answer::Longer,
            None => Answer::Is,
        };
    }
    if !message.has(0, b"CONNECT ") {
        let is_beginning = message.len() < 8 && b"CONNECT ".starts_with(message.bytes);
        return if is_beginning { Answer::Longer } else { Answer::No };
    }
    let Some(request) = Request::parse(message.bytes) else {
        let is_line = memchr(b'\n', message.bytes).is_some();
        return if !is_line && is_short(message.bytes) { Answer::Longer } else { Answer::No };
    };
    let found = Found::of(&request.fields);
    message.sheet.host.set(without_port(request.target));
    if let Some(agent) = found.agent {
        message.sheet.agent.set(agent);
    }
    if !found.is_whole && is_short(message.bytes) { Answer::Longer } else { Answer::Open }
}

#[cfg(test)]
mod tests;
