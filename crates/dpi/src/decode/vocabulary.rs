//! What is said of messages.

pub use crate::protocols::tls::ja4::Over;
use crate::protocols::{dns, http, sip, tls};
use std::net::IpAddr;

/// Octets of a text, at most.
pub const LONGEST: usize = 1024;
/// Entries of a list, at most.
pub const MOST: usize = 16;

/// A message, as far as it tells who wants what from whom.
#[derive(Clone, PartialEq, Debug)]
pub enum Decoded {
    /// HTTP/1: what is asked for.
    Request(Request),
    /// HTTP/1: what the server says to it.
    Response(Response),
    /// TLS, DTLS, QUIC: the client begins.
    ClientHello(ClientHello),
    /// TLS: the server chooses.
    ServerHello(ServerHello),
    /// TLS up to 1.2: who the server is.
    Certificate(Certificate),
    /// DNS and its relatives: which addresses has this name?
    Question(Names),
    /// The answer.
    Answer(Names),
    /// Calls.
    Sip(Box<Sip>),
    /// Films and cameras.
    Rtsp(Rtsp),
}

/// RFC 9112 §3.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Which one of its connection, from 1.
    pub number: u16,
    /// What is to be done.
    pub method: String,
    /// With what, put together from target and Host.
    pub url: String,
    /// The server's name, without its port.
    pub host: String,
    /// User-Agent.
    pub agent: String,
    /// Content-Type of what is sent along.
    pub content: String,
}

/// RFC 9112 §4.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Response {
    /// The request that it answers; 0: it was not seen.
    pub number: u16,
    /// 200 is well.
    pub status: u16,
    /// Content-Type.
    pub content: String,
    /// Content-Length.
    pub length: Option<u64>,
    /// What the server says of itself.
    pub server: String,
}

/// RFC 8446 §4.1.2.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientHello {
    /// What it came over.
    pub over: Over,
    /// The server's name (SNI).
    pub host: String,
    /// The newest version that is offered.
    pub version: u16,
    /// What would be spoken inside (ALPN).
    pub protocols: Vec<String>,
    /// The client's fingerprint.
    pub ja4: String,
    /// The true hello is encrypted in it (ECH): `host` is that of an outer server.
    pub has_encrypted: bool,
}

/// RFC 8446 §4.1.3.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerHello {
    /// The version that is spoken.
    pub version: u16,
    /// The cipher suite.
    pub suite: u16,
    /// What is spoken inside, where it is said in clear.
    pub protocol: String,
}

/// RFC 5280 §4.1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Certificate {
    /// The subject's common name.
    pub common: String,
    /// Other names.
    pub names: Vec<String>,
}

/// RFC 1035 §4.1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Names {
    /// By which question and answer find each other.
    pub id: u16,
    /// What is asked about.
    pub name: String,
    /// What is asked for.
    pub kind: u16,
    /// How it went; 0 is well.
    pub code: u16,
    /// Addresses, and other names.
    pub answers: Vec<String>,
    /// Seconds for which they hold: the least.
    pub ttl: Option<u32>,
}

/// RFC 3261 §7.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sip {
    /// What is to be done; of a response, what it answers (CSeq).
    pub method: String,
    /// How it went; `None`: it is a request.
    pub status: Option<u16>,
    /// Who calls.
    pub from: String,
    /// Who is called.
    pub to: String,
    /// Which call it is.
    pub call_id: String,
    /// What the sender is.
    pub agent: String,
    /// Where media are to be sent to, and what they may be.
    pub media: Vec<Media>,
}

/// RFC 8866 §5.14.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Media {
    /// "audio", "video".
    pub kind: String,
    /// Where it is to be sent to.
    pub address: Option<IpAddr>,
    /// Likewise.
    pub port: u16,
    /// Payload types and what they mean: "opus/48000/2".
    pub codecs: Vec<(u8, String)>,
}

/// RFC 7826 §7.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rtsp {
    /// What is to be done; empty in a response.
    pub method: String,
    /// How it went; `None`: it is a request.
    pub status: Option<u16>,
    /// With what.
    pub url: String,
    /// What the sender is.
    pub agent: String,
}

/// A field of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// A text.
    Text(String),
    /// A number.
    Number(u64),
    /// Several texts.
    List(Vec<String>),
}

impl Decoded {
    /// What it is: a stable name.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Request(_) => "http-request",
            Self::Response(_) => "http-response",
            Self::ClientHello(_) => "client-hello",
            Self::ServerHello(_) => "server-hello",
            Self::Certificate(_) => "certificate",
            Self::Question(_) => "dns-question",
            Self::Answer(_) => "dns-answer",
            Self::Sip(_) => "sip",
            Self::Rtsp(_) => "rtsp",
        }
    }

    /// What it says: stable names, and values; what it doesn't say is left out.
    pub fn fields(&self) -> Vec<(&'static str, Value)> {
        let mut fields = Fields(Vec::new());
        match self {
            Self::Request(it) => {
                fields.number("number", it.number);
                fields.text("method", &it.method);
                fields.text("url", &it.url);
                fields.text("host", &it.host);
                fields.text("agent", &it.agent);
                fields.text("content", &it.content);
            }
            Self::Response(it) => {
                fields.maybe("number", (it.number > 0).then_some(it.number));
                fields.number("status", it.status);
                fields.text("content", &it.content);
                fields.maybe("length", it.length);
                fields.text("server", &it.server);
            }
            Self::ClientHello(it) => {
                let over = match it.over {
                    Over::Tcp => "tls",
                    Over::Quic => "quic",
                    Over::Dtls => "dtls",
                };
                fields.text("over", over);
                fields.text("host", &it.host);
                fields.text("version", &version(it.version));
                fields.list("alpn", &it.protocols);
                fields.text("ja4", &it.ja4);
                fields.text("ech", if it.has_encrypted { "seen" } else { "" });
            }
            Self::ServerHello(it) => {
                fields.text("version", &version(it.version));
                fields.text("cipher", &format!("0x{:04x}", it.suite));
                fields.text("alpn", &it.protocol);
            }
            Self::Certificate(it) => {
                fields.text("name", &it.common);
                fields.list("names", &it.names);
            }
            Self::Question(it) | Self::Answer(it) => {
                fields.number("id", it.id);
                fields.text("name", &it.name);
                fields.text("type", &dns::kind::name(it.kind));
                if matches!(self, Self::Answer(_)) {
                    fields.text("code", &dns::code_name(it.code));
                    fields.list("answers", &it.answers);
                    fields.maybe("ttl", it.ttl);
                }
            }
            Self::Sip(it) => {
                fields.text("method", &it.method);
                fields.maybe("status", it.status);
                fields.text("from", &it.from);
                fields.text("to", &it.to);
                fields.text("call", &it.call_id);
                fields.text("agent", &it.agent);
                fields.list("media", &it.media.iter().map(Media::text).collect::<Vec<_>>());
            }
            Self::Rtsp(it) => {
                fields.text("method", &it.method);
                fields.maybe("status", it.status);
                fields.text("url", &it.url);
                fields.text("agent", &it.agent);
            }
        }
        fields.0
    }
}

/// In one line.
impl std::fmt::Display for Decoded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind())?;
        self.fields().iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) if text.contains(' ') => write!(f, "\"{text}\""),
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
            Self::List(all) => f.write_str(&all.join(",")),
        }
    }
}

struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    fn text(&mut self, name: &'static str, text: &str) {
        if !text.is_empty() {
            self.0.push((name, Value::Text(text.to_owned())));
        }
    }

    fn number(&mut self, name: &'static str, number: impl Into<u64>) {
        self.0.push((name, Value::Number(number.into())));
    }

    fn maybe(&mut self, name: &'static str, number: Option<impl Into<u64>>) {
        if let Some(number) = number {
            self.number(name, number);
        }
    }

    fn list(&mut self, name: &'static str, all: &[String]) {
        if !all.is_empty() {
            self.0.push((name, Value::List(all.to_vec())));
        }
    }
}

fn version(version: u16) -> String {
    tls::version_name(version).map_or_else(|| format!("0x{version:04x}"), str::to_owned)
}

/// What is no UTF-8 is replaced, what is too long is cut off.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..LONGEST).unwrap_or(bytes)).into_owned()
}

fn texts<'b>(all: impl Iterator<Item = &'b [u8]>) -> Vec<String> {
    all.take(MOST).map(text).collect()
}

fn optional(bytes: Option<&[u8]>) -> String {
    bytes.map(text).unwrap_or_default()
}

impl Request {
    /// Of a message; its number is the reader's affair.
    pub(super) fn of(request: &http::Request<'_>, number: u16) -> Self {
        let host = request.host();
        let target = request.target;
        // RFC 9112 §3.3; of CONNECT and OPTIONS, the target is no path.
        let url = match host {
            Some(authority) if target.first() == Some(&b'/') => [b"http://", authority, target].concat(),
            _ => target.to_vec(),
        };
        let name = host.map(http::without_port).or_else(|| {
            let is_connect = request.method == b"CONNECT";
            is_connect.then(|| http::without_port(target))
        });
        Self {
            number,
            method: text(request.method),
            url: text(&url),
            host: optional(name),
            agent: optional(request.fields.get(b"user-agent")),
            content: optional(request.fields.get(b"content-type")),
        }
    }
}

impl Response {
    pub(super) fn of(response: &http::Response<'_>, number: u16, length: Option<u64>) -> Self {
        Self {
            number,
            status: response.status,
            content: optional(response.fields.get(b"content-type")),
            length,
            server: optional(response.fields.get(b"server")),
        }
    }
}

impl ClientHello {
    pub(super) fn of(hello: &tls::ClientHello<'_>, over: Over) -> Self {
        Self {
            over,
            host: optional(hello.server_name()),
            version: hello.newest_version(),
            protocols: texts(hello.application_protocols()),
            ja4: tls::ja4::ja4(hello, over),
            has_encrypted: hello.has_encrypted_hello(),
        }
    }
}

impl ServerHello {
    pub(super) fn of(hello: &tls::ServerHello<'_>) -> Self {
        Self {
            version: hello.chosen_version(),
            suite: hello.cipher_suite,
            protocol: optional(hello.application_protocol()),
        }
    }
}

impl Certificate {
    pub(super) fn of(names: &tls::certificate::Names<'_>) -> Self {
        Self { common: optional(names.common), names: texts(names.alternatives()) }
    }
}

impl Names {
    /// Each question of a message, or the answer to its first one.
    pub(super) fn of(message: &dns::Message<'_>, mut tell: impl FnMut(Decoded)) {
        let mut room = [0; 255];
        let mut names = |name: dns::Name<'_>| name.write(&mut room).map(text);
        if !message.is_answer() {
            for question in message.questions().take(MOST) {
                let Some(name) = names(question.name) else { return };
                tell(Decoded::Question(Self {
                    id: message.id,
                    name,
                    kind: question.kind,
                    code: 0,
                    answers: Vec::new(),
                    ttl: None,
                }));
            }
            return;
        }
        // What nobody has asked (mDNS) is about the first record's name.
        let asked = message.questions().next().map(|it| (it.name, it.kind));
        let asked = asked.or_else(|| message.answers().next().map(|it| (it.name, it.kind)));
        let Some((name, kind)) = asked.and_then(|(name, kind)| Some((names(name)?, kind))) else { return };
        let answers = message.answers().take(MOST).filter_map(|it| {
            it.address().map(|it| it.to_string()).or_else(|| it.alias().and_then(&mut names))
        });
        let answers = answers.collect();
        let ttl = message.answers().take(MOST).map(|it| it.ttl).min();
        tell(Decoded::Answer(Self { id: message.id, name, kind, code: message.code(), answers, ttl }));
    }
}

impl Sip {
    pub(super) fn of(message: &sip::Message<'_>) -> Self {
        let (method, status) = match message.start {
            sip::Start::Request(method, _) => (text(method), None),
            sip::Start::Response(status) => (optional(message.answers()), Some(status)),
        };
        let media = message.description().map(|it| Media::all_of(&it)).unwrap_or_default();
        Self {
            method,
            status,
            from: optional(message.from()),
            to: optional(message.to()),
            call_id: optional(message.call_id()),
            agent: optional(message.agent()),
            media,
        }
    }
}

impl Media {
    fn all_of(sdp: &sip::Sdp<'_>) -> Vec<Self> {
        let address = sdp.address();
        let media = sdp.media().take(MOST).map(|it| {
            let formats = it.formats.split(|octet| *octet == b' ').take(MOST);
            let numbers = formats.filter_map(|it| str::from_utf8(it).ok()?.parse().ok());
            let codecs = numbers.map(|number: u8| (number, optional(sdp.codec(number))));
            Self { kind: text(it.kind), address, port: it.port, codecs: codecs.collect() }
        });
        media.collect()
    }

    fn text(&self) -> String {
        let address = self.address.map(|it| std::net::SocketAddr::new(it, self.port).to_string());
        let codecs = self.codecs.iter().map(|(number, name)| {
            if name.is_empty() { number.to_string() } else { format!("{number}:{name}") }
        });
        let codecs = codecs.collect::<Vec<_>>().join(" ");
        format!("{} {} {codecs}", self.kind, address.unwrap_or_else(|| self.port.to_string()))
    }
}

impl Rtsp {
    pub(super) fn of(message: &sip::Message<'_>) -> Self {
        let (method, status, url) = match message.start {
            sip::Start::Request(method, target) => (text(method), None, text(target)),
            sip::Start::Response(status) => (String::new(), Some(status), String::new()),
        };
        Self { method, status, url, agent: optional(message.agent()) }
    }
}
