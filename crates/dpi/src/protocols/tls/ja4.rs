//! JA4: a name for the way in which a client says hello.
//!
//! Programs that use the same TLS library in the same way have the same one, whatever name they ask for. Made on request only: it costs two hashes.

use super::hello::{ClientHello, extension, is_grease};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// What the hello came over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    /// TLS over a stream.
    Tcp,
    /// QUIC.
    Quic,
    /// DTLS.
    Dtls,
}

/// The hello's JA4: `t13d1516h2_8daaf6152771_e5627efa2ab1`.
pub fn ja4(hello: &ClientHello<'_>, over: Over) -> String {
    let mut suites: Vec<u16> = hello.cipher_suites().filter(|it| !is_grease(*it)).collect();
    let mut kinds: Vec<u16> = hello.extensions().map(|it| it.kind).filter(|it| !is_grease(*it)).collect();
    let over = match over {
        Over::Tcp => 't',
        Over::Quic => 'q',
        Over::Dtls => 'd',
    };
    let named = if kinds.contains(&extension::SERVER_NAME) { 'd' } else { 'i' };
    let version = version(hello.newest_version());
    let [first, last] = ends(hello.application_protocols().next().unwrap_or_default());
    let (suite_count, kind_count) = (suites.len().min(99), kinds.len().min(99));
    let mut name = format!("{over}{version}{named}{suite_count:02}{kind_count:02}{first}{last}_");

    suites.sort_unstable();
    name.push_str(&digest(&listed(suites.into_iter())));
    name.push('_');
    kinds.retain(|kind| ![extension::SERVER_NAME, extension::ALPN].contains(kind));
    kinds.sort_unstable();
    let mut said = listed(kinds.into_iter());
    let schemes = listed(hello.signature_schemes().filter(|it| !is_grease(*it)));
    if !schemes.is_empty() {
        let _ = write!(said, "_{schemes}");
    }
    name.push_str(&digest(&said));
    name
}

const fn version(version: u16) -> &'static str {
    match version {
        0x0304 => "13",
        0x0303 => "12",
        0x0302 => "11",
        0x0301 => "10",
        0x0300 => "s3",
        0x0002 => "s2",
        0xfeff => "d1",
        0xfefd => "d2",
        0xfefc => "d3",
        _ => "00",
    }
}

/// The first and the last character; of its hexadecimal form if one is no letter or digit.
fn ends(protocol: &[u8]) -> [char; 2] {
    match (protocol.first(), protocol.last()) {
        (Some(first), Some(last)) if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() => {
            [char::from(*first), char::from(*last)]
        }
        (Some(first), Some(last)) => {
            let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or('0');
            [digit(first >> 4), digit(last & 15)]
        }
        _ => ['0', '0'],
    }
}

fn listed(numbers: impl Iterator<Item = u16>) -> String {
    let mut list = String::new();
    for number in numbers {
        let comma = if list.is_empty() { "" } else { "," };
        let _ = write!(list, "{comma}{number:04x}");
    }
    list
}

/// The first twelve digits of SHA-256; zeros for nothing.
fn digest(text: &str) -> String {
    let mut digits = String::new();
    let hash: [u8; 32] = if text.is_empty() { [0; 32] } else { Sha256::digest(text).into() };
    for octet in hash.iter().take(6) {
        let _ = write!(digits, "{octet:02x}");
    }
    digits
}
