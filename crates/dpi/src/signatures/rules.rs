//! What rules may say, each kind in its own way of writing.

use crate::classify::Carrier;
use crate::signatures::hosts::{MAX_GLOB_LABELS, MAX_NAME};
use crate::signatures::{Kind, Wrong};
use regex_automata::{meta, util::syntax};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest text of a rule.
pub const MAX_TEXT: usize = 512;
/// The most ports in a range.
pub const MAX_PORTS: u16 = 1024;
/// How much of a payload is looked at for patterns without an offset.
pub const SEARCHED: usize = 512;
/// The greatest compiled regular expression, in octets.
const MAX_REGEX: usize = 256 << 10;
/// Fewer fixed octets would be found by chance.
const MIN_OCTETS: usize = 4;

/// A rule's text in the one form that is compared and kept; what is wrong with it otherwise.
pub(super) fn canonical(kind: Kind, text: &str) -> Result<String, Wrong> {
    if text.len() > MAX_TEXT || text.is_empty() || text.chars().any(char::is_control) {
        return Err(Wrong::Text { kind, text: clipped(text) });
    }
    match kind {
        Kind::Host | Kind::Certificate => host(text),
        Kind::Keyword => keyword(text),
        Kind::Regex => regex(text).map(|_| text.to_owned()),
        Kind::Alpn | Kind::Ja4 if text.len() > 64 || !text.is_ascii() => {
            Err(Wrong::Text { kind, text: clipped(text) })
        }
        Kind::Alpn | Kind::Ja4 => Ok(text.to_owned()),
        Kind::Agent if text.len() > 128 || text.trim() != text || text.len() < 3 => {
            Err(Wrong::Text { kind, text: clipped(text) })
        }
        Kind::Agent => Ok(text.to_ascii_lowercase()),
        Kind::Address => prefix(text).map(|(address, length)| format!("{address}/{length}")),
        Kind::Port => ports(text).map(|ports| {
            let carrier = carrier_name(ports.carrier);
            if ports.from == ports.to {
                format!("{carrier}/{}", ports.from)
            } else {
                format!("{carrier}/{}-{}", ports.from, ports.to)
            }
        }),
        Kind::Pattern => Pattern::parse(text).map(|_| text.to_owned()),
    }
}

/// As much of a text as a message can bear.
pub(super) fn clipped(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or("")),
        None => text.to_owned(),
    }
}

fn host(text: &str) -> Result<String, Wrong> {
    let wrong = |why| Wrong::Host { text: clipped(text), why };
    let lower = text.to_ascii_lowercase();
    let name = lower.strip_prefix('=').unwrap_or(&lower);
    if name.len() > MAX_NAME {
        return Err(wrong("it is longer than names can be"));
    }
    if name.contains("://") || name.contains('/') {
        return Err(wrong("it is an address of a page, of which only the host counts"));
    }
    if name.contains(':') {
        return Err(wrong("ports and IPv6 addresses are no part of names"));
    }
    if !name.is_ascii() {
        return Err(wrong("write names of other alphabets as they are sent: `xn--...`"));
    }
    for label in name.split('.') {
        if label.is_empty() || label.len() > 63 {
            return Err(wrong("between dots are 1 to 63 letters, digits, hyphens and underlines"));
        }
        if !label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'*')) {
            return Err(wrong("names have letters, digits, hyphens and underlines, and `*` for what varies"));
        }
        if label.matches('*').count() > 4 {
            return Err(wrong("at most four `*` can be in a label"));
        }
    }
    if name.parse::<Ipv4Addr>().is_ok() {
        return Err(wrong("it is an address: `addresses` has those"));
    }
    let varying = name.rfind('*').map_or(0, |star| {
        name.matches('.').count() - name.get(star..).unwrap_or("").matches('.').count() + 1
    });
    if varying > MAX_GLOB_LABELS {
        return Err(wrong("at most four labels can stand up to the last `*`"));
    }
    // What the longest-suffix search starts from: at least two labels without parts that vary.
    let literal = name.rfind('*').map_or(name, |star| name.get(star..).unwrap_or(""));
    let fixed = if literal.len() < name.len() { literal.split('.').skip(1).count() } else { 2 };
    if fixed < 2 {
        return Err(wrong("its last two labels must be fixed"));
    }
    let registered =
        if literal.len() < name.len() { literal.split_once('.').map_or("", |(_, it)| it) } else { name };
    if is_public_suffix(registered) && !lower.starts_with('=') {
        return Err(Wrong::PublicSuffix(clipped(registered)));
    }
    Ok(lower)
}

/// What registries sell names below, within a country: `com.br`, `co.uk`, `or.jp`. A state's own (`gov.uk`) are not sold.
const REGISTRIES: &[&str] = &[
    "ac", "asso", "biz", "co", "com", "firm", "gen", "go", "gr", "idv", "ind", "info", "lg", "ltd", "name",
    "ne", "net", "nom", "or", "org", "plc", "sch", "school",
];

/// Top-level domains that are one company's.
const COMPANIES: &[&str] = &[
    "amazon",
    "android",
    "apple",
    "aws",
    "azure",
    "barclays",
    "bing",
    "bmw",
    "chrome",
    "gmail",
    "goog",
    "google",
    "hsbc",
    "microsoft",
    "nest",
    "netflix",
    "samsung",
    "skype",
    "sony",
    "windows",
    "xbox",
    "youtube",
];

/// Whether anybody can have a name below this one. Not the Public Suffix List, which has 10,000 entries, most of them hosting companies: a rule
/// can mean those.
fn is_public_suffix(name: &str) -> bool {
    match name.split_once('.') {
        None => !COMPANIES.contains(&name),
        Some((registry, country)) => country.len() == 2 && REGISTRIES.contains(&registry),
    }
}

fn keyword(text: &str) -> Result<String, Wrong> {
    let fits = (4..=63).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    if fits { Ok(text.to_ascii_lowercase()) } else { Err(Wrong::Keyword(clipped(text))) }
}

/// How regular expressions are read: of octets, not of characters, and bounded.
pub(super) fn regexes(texts: &[&str]) -> Result<meta::Regex, Box<meta::BuildError>> {
    let config = meta::Config::new()
        .utf8_empty(false)
        .nfa_size_limit(Some(MAX_REGEX.saturating_mul(texts.len().max(1))))
        .onepass(false)
        .dfa(false)
        .hybrid_cache_capacity(2 << 20);
    let syntax = syntax::Config::new().unicode(false).utf8(false).nest_limit(32);
    meta::Regex::builder().configure(config).syntax(syntax).build_many(texts).map_err(Box::new)
}

fn regex(text: &str) -> Result<meta::Regex, Wrong> {
    let wrong = |why: String| Wrong::Regex { text: clipped(text), why };
    let built = regexes(&[text]).map_err(|error| {
        wrong(match error.size_limit() {
            Some(_) => "it is too big".into(),
            None => error.syntax_error().map_or_else(|| error.to_string(), |it| last_line(&it.to_string())),
        })
    })?;
    if built.is_match("") {
        return Err(wrong("it fits everything".into()));
    }
    Ok(built)
}

/// Syntax errors show the expression over several lines, and say what is wrong in the last.
fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or("").trim_start_matches("error: ").to_owned()
}

/// A prefix without bits behind it.
pub(super) fn prefix(text: &str) -> Result<(IpAddr, u8), Wrong> {
    let wrong = |why| Wrong::Address { text: clipped(text), why };
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| wrong("it begins with no address"))?;
    let (bits, least) = if address.is_ipv4() { (32, 8) } else { (128, 16) };
    let length = match length {
        None => bits,
        Some(length) if length.len() > 3 || !length.bytes().all(|b| b.is_ascii_digit()) => {
            return Err(wrong("behind `/` stands a number of bits"));
        }
        Some(length) => length.parse().map_err(|_| wrong("it has more bits than the address"))?,
    };
    if length > bits {
        return Err(wrong("it has more bits than the address"));
    }
    if length < least {
        return Err(wrong("it is shorter than any company's: 8 bits of IPv4 and 16 of IPv6 at least"));
    }
    let network = match address {
        IpAddr::V4(it) => IpAddr::V4(Ipv4Addr::from_bits(
            it.to_bits() & u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0),
        )),
        IpAddr::V6(it) => IpAddr::V6(Ipv6Addr::from_bits(
            it.to_bits() & u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0),
        )),
    };
    if network != address {
        return Err(wrong("bits are set behind the prefix"));
    }
    Ok((address, length))
}

/// Ports of one carrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ports {
    pub carrier: Carrier,
    pub from: u16,
    pub to: u16,
}

pub(super) fn ports(text: &str) -> Result<Ports, Wrong> {
    let wrong = || Wrong::Port(clipped(text));
    let (carrier, range) = text.split_once('/').ok_or_else(wrong)?;
    let carrier = carrier_of(carrier).ok_or_else(wrong)?;
    let (from, to) = range.split_once('-').unwrap_or((range, range));
    let number =
        |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u16>().ok()).flatten();
    let (from, to) = number(from).zip(number(to)).ok_or_else(wrong)?;
    if from == 0 || to < from || to - from >= MAX_PORTS {
        Err(wrong())
    } else {
        Ok(Ports { carrier, from, to })
    }
}

fn carrier_of(name: &str) -> Option<Carrier> {
    match name {
        "tcp" => Some(Carrier::Tcp),
        "udp" => Some(Carrier::Udp),
        "sctp" => Some(Carrier::Sctp),
        _ => None,
    }
}

const fn carrier_name(carrier: Carrier) -> &'static str {
    match carrier {
        Carrier::Tcp => "tcp",
        Carrier::Udp => "udp",
        Carrier::Sctp => "sctp",
    }
}

/// What a pattern looks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Body {
    /// These octets; `None` is for any.
    Octets(Vec<Option<u8>>),
    /// A regular expression, in the first [`SEARCHED`] octets.
    Regex(String),
}

/// Octets of a payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Pattern {
    /// On what; everything if there is none.
    pub carrier: Option<Carrier>,
    /// Where; anywhere in the first [`SEARCHED`] octets if there is none.
    pub offset: Option<u16>,
    pub body: Body,
}

impl Pattern {
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        let wrong = |why| Wrong::Pattern { text: clipped(text), why };
        let (head, body) =
            text.split_once(' ').ok_or_else(|| wrong("it begins with a carrier and a space"))?;
        let (carrier, offset) = match head.split_once('@') {
            Some((carrier, offset)) => (carrier, Some(offset)),
            None => (head, None),
        };
        let carrier = match carrier {
            "any" => None,
            name => Some(carrier_of(name).ok_or_else(|| wrong("carriers are tcp, udp, sctp and any"))?),
        };
        let offset = match offset {
            None => None,
            Some(offset) => Some(
                offset
                    .parse::<u16>()
                    .ok()
                    .filter(|it| *it < 1024)
                    .ok_or_else(|| wrong("offsets are 0 to 1023"))?,
            ),
        };
        if let Some(regex_text) = body.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
            if offset.is_some() {
                return Err(wrong("a regular expression says by `^` that it is at the beginning"));
            }
            regex(regex_text)?;
            return Ok(Self { carrier, offset, body: Body::Regex(regex_text.to_owned()) });
        }
        let mut octets = Vec::new();
        for (index, part) in body.split('|').enumerate() {
            if index % 2 == 0 {
                octets.extend(part.bytes().map(Some));
                continue;
            }
            for octet in part.split_ascii_whitespace() {
                octets.push(match octet {
                    "??" => None,
                    _ if octet.len() == 2 && octet.bytes().all(|b| b.is_ascii_hexdigit()) => Some(
                        u8::from_str_radix(octet, 16)
                            .map_err(|_| wrong("between | are octets of two hexadecimal digits"))?,
                    ),
                    _ => return Err(wrong("between | are octets of two hexadecimal digits")),
                });
            }
        }
        if body.matches('|').count() % 2 != 0 {
            return Err(wrong("a | is open"));
        }
        if offset.is_none() && octets.contains(&None) {
            return Err(wrong("`??` needs an offset"));
        }
        if octets.iter().flatten().count() < MIN_OCTETS {
            return Err(wrong("fewer than four fixed octets are found by chance"));
        }
        Ok(Self { carrier, offset, body: Body::Octets(octets) })
    }
}
