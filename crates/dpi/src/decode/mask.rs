//! Nobody's name or number is told.
//!
//! Whoever looks for a fault in calls has to see which calls belong together, and need not see whose they are. A mask replaces each party by letters
//! that stand for it as long as the mask lives: the same party has the same letters, another mask gives others, and nobody gets back from the
//! letters to the party who doesn't have the mask's secret. It works where messages are decoded, so that nothing behind it has ever seen a party.
//!
//! Hidden are: users of SIP addresses and telephone numbers, Call-IDs, users in URLs, names by which numbers are looked up (ENUM, RFC 6116), and of
//! paths, agents and names each row of [`ROW`] digits or more (numbers of subscribers and devices). Not hidden: addresses, hosts, and what
//! somebody writes about himself in words.

use super::vocabulary::Decoded;
use crate::classify::{Sheet, Text};
use sha2::{Digest, Sha256};

/// Digits in a row that may be somebody's number.
pub const ROW: usize = 7;

/// Replaces parties.
#[derive(Clone, PartialEq, Eq)]
pub struct Mask {
    secret: u64,
}

/// The secret stays one.
impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mask")
    }
}

impl Mask {
    /// With a secret, which should be random.
    pub const fn new(secret: u64) -> Self {
        Self { secret }
    }

    /// Letters that stand for a party.
    fn letters(&self, party: &str) -> String {
        let mut hash = Sha256::new();
        hash.update(self.secret.to_be_bytes());
        hash.update(party.as_bytes());
        let hash: [u8; 32] = hash.finalize().into();
        let halves = hash.iter().take(5).flat_map(|octet| [octet >> 4, octet & 15]);
        halves.map(|half| char::from(b'a' + half)).collect()
    }

    /// Somebody's address: "sip:user@host", "tel:+1-201-555-0123", "sip:+12015550123;user=phone".
    pub fn party(&self, uri: &str) -> String {
        let (scheme, rest) = match uri.split_once(':') {
            Some((scheme, rest)) if scheme.bytes().all(|it| it.is_ascii_alphabetic()) => (scheme, rest),
            _ => ("", uri),
        };
        let colon = if scheme.is_empty() { "" } else { ":" };
        // Users may have an "@" in them that should be written otherwise: the last one counts.
        if let Some((user, host)) = rest.rsplit_once('@') {
            let host = host.split(';').next().unwrap_or_default();
            // A password, and where a local number is from, are the user's own.
            let user = user.split([':', ';']).next().unwrap_or_default();
            return format!("{scheme}{colon}{}@{}", self.letters(user), self.text(host));
        }
        let rest = rest.split(';').next().unwrap_or_default();
        let is_sip = scheme.eq_ignore_ascii_case("sip") || scheme.eq_ignore_ascii_case("sips");
        let rest = if is_sip { self.name(rest) } else { self.letters(rest) };
        format!("{scheme}{colon}{rest}")
    }

    /// A URL: its user, and numbers in it.
    pub fn url(&self, url: &str) -> String {
        let Some((scheme, rest)) = url.split_once("://") else {
            // Only schemes of parties have a user without it.
            let is_party = ["sip:", "sips:", "tel:", "mailto:"].iter().any(|it| url.starts_with(it));
            return if is_party { self.party(url) } else { self.text(url) };
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        match authority.rsplit_once('@') {
            Some((user, host)) => format!("{scheme}://{}@{host}{}", self.letters(user), self.text(path)),
            None => format!("{scheme}://{}{}", self.name(authority), self.text(path)),
        }
    }

    /// The name of a server, which may be a number where somebody is called.
    pub fn name(&self, name: &str) -> String {
        if name.to_ascii_lowercase().ends_with("e164.arpa") {
            return "*.e164.arpa".to_owned();
        }
        if is_host(name) { self.text(name) } else { self.letters(name) }
    }

    /// Any other text: rows of digits.
    pub fn text(&self, text: &str) -> String {
        let mut hidden = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let row = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
            let (digits, after) = rest.split_at(row);
            hidden.push_str(if row >= ROW { "*" } else { digits });
            let words = after.find(|it: char| it.is_ascii_digit()).unwrap_or(after.len());
            let (words, after) = after.split_at(words);
            hidden.push_str(words);
            rest = after;
        }
        hidden
    }

    /// All parties of a message.
    pub fn hide(&self, decoded: &mut Decoded) {
        let swap = |text: &mut String, by: &dyn Fn(&str) -> String| {
            if !text.is_empty() {
                *text = by(text);
            }
        };
        let text = |it: &str| self.text(it);
        match decoded {
            Decoded::Request(it) => {
                swap(&mut it.url, &|it| self.url(it));
                swap(&mut it.host, &|it| self.name(it));
                swap(&mut it.agent, &text);
            }
            Decoded::Response(it) => swap(&mut it.server, &text),
            Decoded::ClientHello(it) => swap(&mut it.host, &|it| self.name(it)),
            Decoded::ServerHello(_) => {}
            Decoded::Certificate(it) => {
                swap(&mut it.common, &text);
                it.names.iter_mut().for_each(|name| swap(name, &text));
            }
            Decoded::Question(it) | Decoded::Answer(it) => {
                swap(&mut it.name, &|it| self.name(it));
                for answer in &mut it.answers {
                    if answer.parse::<std::net::IpAddr>().is_err() {
                        swap(answer, &|it| self.name(it));
                    }
                }
            }
            Decoded::Sip(it) => {
                swap(&mut it.from, &|it| self.party(it));
                swap(&mut it.to, &|it| self.party(it));
                swap(&mut it.call_id, &|it| self.letters(it));
                swap(&mut it.agent, &text);
            }
            Decoded::Rtsp(it) => {
                swap(&mut it.url, &|it| self.url(it));
                swap(&mut it.agent, &text);
            }
        }
    }

    /// All parties in what a recogniser has found.
    pub fn hide_found(&self, sheet: &mut Sheet) {
        replace(&mut sheet.host, |it| self.name(it));
        replace(&mut sheet.path, |it| self.url(it));
        replace(&mut sheet.agent, |it| self.text(it));
    }
}

fn replace<const N: usize>(text: &mut Text<N>, by: impl Fn(&str) -> String) {
    if !text.is_empty() {
        let hidden = by(&String::from_utf8_lossy(text.bytes()));
        text.set(hidden.as_bytes());
    }
}

/// Whether it is the name or the address of a host, and not somebody's number: those have no letters.
fn is_host(name: &str) -> bool {
    let without_port = name.rsplit_once(':').map_or(name, |(host, _)| host).trim_matches(['[', ']']);
    name.parse::<std::net::IpAddr>().is_ok()
        || without_port.parse::<std::net::IpAddr>().is_ok()
        || name.bytes().any(|it| it.is_ascii_alphabetic())
}
