//! Tor's links to its relays. They are TLS, and made to look like any other; what tells them apart is three things together.
//!
//! The client names a server that nobody has: "www.", 4 to 25 letters and digits of base32 by chance, ".com" (tor, `tor_tls_new`). It offers no protocol
//! inside. And then both sides send records of whole cells, which have 514 octets each (tor-spec, "Cell packet format", link protocol 4 and
//! after). None of it is a proof, a name with a digit least of all: so the verdict is a likeness of both sides, and where no cells are seen, it is TLS.
//! Bridges with other transports (obfs4, meek, Snowflake) hide all of it.

use super::{Record, content};
use crate::Protocol;
use crate::classify::{Answer, Message, Side};
use crate::protocols::cursor::Cursor;

/// Octets of a cell.
const CELL: u16 = 514;
/// What a cipher adds to a record: of TLS 1.3 the kind and a tag (RFC 8446 §5.2), of 1.2 a tag, with AES also a part of the nonce (RFC 5288 §3).
const ADDED: [u16; 3] = [17, 16, 24];
/// Cells that are written at once, at most.
const CELLS: u16 = 8;
/// Records of a packet that are looked at.
const RECORDS: usize = 16;

/// Whether a client may mean a relay by this name.
pub(super) fn is_name(name: &[u8]) -> bool {
    let inner = name.strip_prefix(b"www.").and_then(|it| it.strip_suffix(b".com"));
    let Some(inner) = inner.filter(|it| (4..=25).contains(&it.len())) else { return false };
    let is_base32 = inner.iter().all(|octet| matches!(octet, b'a'..=b'z' | b'2'..=b'7'));
    // Names that people give have few digits, and vowels.
    let has_digit = inner.iter().any(u8::is_ascii_digit);
    let is_consonant = |octet: &u8| !b"aeiouy".contains(octet);
    is_base32
        && (has_digit || inner.chunk_by(|a, b| is_consonant(a) == is_consonant(b)).any(|it| it.len() > 4))
}

/// The client has said something that may be Tor's: from now on, records are measured.
pub(super) fn suspect(message: &mut Message<'_>) -> Answer {
    message.assembly.clear();
    if message.assembly.put(0, b"t").is_err() {
        return Answer::Is;
    }
    message.assembly.set_tag(&[0]);
    Answer::Open
}

/// What follows such a hello. `None`: there was none.
pub(super) fn measure(message: &mut Message<'_>) -> Option<Answer> {
    let [seen] = *message.assembly.tag() else { return None };
    let bit = match message.side {
        Side::Client => 1,
        Side::Server => 2,
    };
    let mut cursor = Cursor::new(message.bytes);
    let records = (0..RECORDS).map_while(|_| Record::parse(&mut cursor));
    let has_cells = records.filter(|it| it.kind == content::DATA).any(|it| is_of_cells(it.length));
    let seen = if has_cells { seen | bit } else { seen };
    message.assembly.set_tag(&[seen]);
    Some(if seen == 3 { Answer::Alike(Protocol::Tor) } else { Answer::Open })
}

fn is_of_cells(length: u16) -> bool {
    ADDED.iter().any(|added| {
        let cells = length.saturating_sub(*added);
        cells.is_multiple_of(CELL) && (1..=CELLS).contains(&(cells / CELL))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::Carrier;
    use crate::protocols::show::flow;
    use crate::protocols::tls::tests::{client_hello, records};

    fn data(length: u16) -> Vec<u8> {
        let body = vec![7; length.into()];
        [&[23, 3, 3][..], &length.to_be_bytes(), &body].concat()
    }

    /// A flow that begins with a hello of this name and these protocols.
    fn after(name: &str, protocols: &[&str], packets: &[(Side, Vec<u8>)]) -> Answer {
        let hello = records(&client_hello(Some(name), protocols, 0), 16384);
        let all: Vec<_> = [(Side::Client, &hello[..])]
            .into_iter()
            .chain(packets.iter().map(|(side, bytes)| (*side, &bytes[..])))
            .collect();
        let (answers, _) = flow(Protocol::Tls, Carrier::Tcp, 9001, &all);
        *answers.iter().find(|it| !matches!(it, Answer::Open)).unwrap_or(&Answer::Open)
    }

    #[test]
    fn names_by_chance_are_told_from_those_of_people() {
        for name in ["www.ax4kq7ztb2rk.com", "www.qzrtkpwa.com", "www.x2yz.com"] {
            assert!(is_name(name.as_bytes()), "{name}");
        }
        let long = format!("www.{}.com", "a2".repeat(13));
        for name in [
            "www.example.com",
            "www.a2.com",
            "www.ax4kq7.net",
            "ax4kq7ztb2.com",
            "www.ax4-kq7.com",
            "www.ax8kq9.com",
            &long,
        ] {
            assert!(!is_name(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn name_and_cells_of_both_sides_are_tors() {
        let (name, cell) = ("www.ax4kq7ztb2rk.com", |side| (side, data(CELL + 17)));
        let both = [(Side::Server, data(900)), cell(Side::Client), cell(Side::Server)];
        assert_eq!(after(name, &[], &both), Answer::Alike(Protocol::Tor));
        let several =
            [(Side::Client, [data(53), data(3 * CELL + 24)].concat()), (Side::Server, data(CELL + 24))];
        assert_eq!(after(name, &[], &several), Answer::Alike(Protocol::Tor));
        assert_eq!(after(name, &["h2"], &both), Answer::Is, "browsers offer protocols");
        assert_eq!(after("www.example.com", &[], &both), Answer::Is);
        assert_eq!(
            after(name, &[], &[cell(Side::Client), cell(Side::Client)]),
            Answer::Open,
            "of one side only"
        );
        assert_eq!(after(name, &[], &[cell(Side::Client), (Side::Server, data(CELL + 18))]), Answer::Open);
    }
}
