//! Dialogues in lines: mail, news and files.
//!
//! SMTP, POP3, IMAP, NNTP and FTP go alike: the server greets, the client commands, and one of the commands asks for TLS (RFC 3207, RFC 2595,
//! RFC 4642, RFC 4217). What each says is a row of a table; how it goes is said once.

use crate::Protocol;
use crate::classify::{Answer, Carriers, First, Message, Recogniser, Side, Strength};
use crate::protocols::shape::{row, starts_like_any as begins};
use std::net::{IpAddr, Ipv4Addr};

/// Of this family.
pub const RECOGNISERS: &[Recogniser] = &[
    of(Protocol::Smtp, &[25, 587, 2525], |message| dialogue(message, &SMTP)),
    of(Protocol::Pop3, &[110], |message| dialogue(message, &POP3)),
    of(Protocol::Imap, &[143], |message| dialogue(message, &IMAP)),
    of(Protocol::Nntp, &[119], |message| dialogue(message, &NNTP)),
    of(Protocol::Ftp, &[21], |message| dialogue(message, &FTP)),
    row(Protocol::FtpData, Carriers::TCP, &[20], First::Any, Strength::Shape, ftp_data).at_home(),
];

const fn of(protocol: Protocol, ports: &'static [u16], probe: fn(&mut Message<'_>) -> Answer) -> Recogniser {
    // Codes, "+OK" and "* OK"; commands and tags.
    let first = First::Range(b'*', b'z');
    row(protocol, Carriers::TCP, ports, first, Strength::Structure, probe)
}

/// How one of these protocols goes.
struct Dialogue {
    /// What the server's first line begins with.
    greetings: &'static [&'static [u8]],
    /// What it often says there of itself, in small letters.
    names: &'static [&'static [u8]],
    /// What clients say first, in small letters; more may be learnt after these.
    commands: &'static [&'static [u8]],
    /// After these nothing will be said about TLS.
    last: &'static [&'static [u8]],
    /// Asks for TLS.
    upgrade: &'static [&'static [u8]],
    /// So the server agrees.
    agrees: &'static [u8],
    /// Clients greet, too, before all else.
    has_hello: bool,
    /// Commands have a word before them, and answers repeat it (RFC 9051 §2.2).
    is_tagged: bool,
}

/// RFC 5321 §3.1, RFC 3207 §4.
const SMTP: Dialogue = Dialogue {
    greetings: &[b"220 ", b"220-", b"554 ", b"421 "],
    names: &[b"smtp", b"mail", b"postfix", b"exim"],
    commands: &[b"ehlo ", b"helo ", b"lhlo "],
    last: &[b"mail from:", b"auth ", b"quit"],
    upgrade: &[b"starttls"],
    agrees: b"220",
    has_hello: true,
    is_tagged: false,
};

/// RFC 1939 §4, RFC 2595 §4.
const POP3: Dialogue = Dialogue {
    greetings: &[b"+OK"],
    names: &[b"pop3", b"pop server", b"dovecot", b"cyrus"],
    commands: &[b"capa", b"auth"],
    last: &[b"user ", b"apop ", b"auth ", b"quit"],
    upgrade: &[b"stls"],
    agrees: b"+OK",
    has_hello: false,
    is_tagged: false,
};

/// RFC 9051 §7.1, §6.2.1.
const IMAP: Dialogue = Dialogue {
    greetings: &[b"* OK", b"* PREAUTH", b"* BYE"],
    names: &[b"imap", b"dovecot", b"cyrus", b"courier"],
    commands: &[b"capability", b"id ", b"noop"],
    last: &[b"login ", b"authenticate ", b"logout", b"select ", b"list "],
    upgrade: &[b"starttls"],
    agrees: b"OK",
    has_hello: false,
    is_tagged: true,
};

/// RFC 3977 §5.1, RFC 4642 §2.2.
const NNTP: Dialogue = Dialogue {
    greetings: &[b"200 ", b"201 "],
    names: &[b"nntp", b"news", b"usenet", b"posting"],
    commands: &[b"mode reader", b"capabilities"],
    last: &[b"group ", b"authinfo ", b"list", b"article", b"xover", b"mode stream", b"ihave ", b"date"],
    upgrade: &[b"starttls"],
    agrees: b"382",
    has_hello: false,
    is_tagged: false,
};

/// RFC 959 §5.4, RFC 4217 §4.
const FTP: Dialogue = Dialogue {
    greetings: &[b"220 ", b"220-", b"120 ", b"421 ", b"530 "],
    names: &[b"ftp", b"filezilla"],
    commands: &[b"feat", b"opts ", b"syst", b"host "],
    last: &[b"user ", b"quit"],
    upgrade: &[b"auth tls", b"auth ssl"],
    agrees: b"234",
    has_hello: false,
    is_tagged: false,
};

/// Octets of a line, at most.
const LINE: usize = 1024;

/// Greetings are the protocol's if they name it, and otherwise once a client answers in it.
fn dialogue(message: &mut Message<'_>, it: &Dialogue) -> Answer {
    if message.is_from_client() { command(message, it) } else { answer(message, it) }
}

/// A command without the word before it.
fn untagged<'b>(bytes: &'b [u8], it: &Dialogue) -> &'b [u8] {
    if !it.is_tagged {
        return bytes;
    }
    let space = bytes.iter().take(16).position(|octet| *octet == b' ');
    space.and_then(|at| bytes.get(at + 1..)).unwrap_or_default()
}

fn command(message: &mut Message<'_>, it: &Dialogue) -> Answer {
    let greeted = message.history.of(Side::Server);
    let is_greeted = begins(greeted.first(), it.greetings);
    if !is_greeted && greeted.packets > 0 {
        return Answer::No;
    }
    let Some(line) = message.line(LINE) else {
        // Typed by hand, perhaps.
        let is_text = message.bytes.iter().all(|octet| octet.is_ascii_graphic() || *octet == b' ');
        return if is_greeted && message.begins && is_text && message.len() < LINE {
            Answer::Longer
        } else {
            Answer::No
        };
    };
    let said = untagged(line, it);
    let found = if begins(said, it.upgrade) || begins(said, it.commands) {
        Answer::Open
    } else if begins(said, it.last) && !(it.has_hello && message.begins) {
        Answer::Is
    } else {
        // It may still say something that is known.
        return if is_greeted { Answer::Next } else { Answer::No };
    };
    // If nobody has greeted, the answers were not seen.
    if is_greeted { found } else { Answer::Perhaps }
}

fn answer(message: &mut Message<'_>, it: &Dialogue) -> Answer {
    let client = message.history.of(Side::Client);
    if !message.begins {
        let asked = untagged(client.last(), it);
        let agrees = begins(untagged(message.bytes, it), &[it.agrees]);
        let end = message.line(LINE + 2).map_or(message.len(), |line| message.after(line));
        return if begins(asked, it.upgrade) && agrees { Answer::Within(end) } else { later(message, it) };
    }
    if !begins(message.bytes, it.greetings) {
        return Answer::No;
    }
    let line = message.line(LINE).unwrap_or(message.bytes);
    let mut words = line.split(|octet| *octet == b' ' || *octet == b'-').filter(|word| !word.is_empty());
    let is_host = |word: &&[u8]| {
        let is_letter = |octet: &u8| octet.is_ascii_alphanumeric() || b".-".contains(octet);
        word.len() > 4
            && word.contains(&b'.')
            && word.iter().all(is_letter)
            && word.last().is_some_and(u8::is_ascii_alphabetic)
    };
    if it.greetings.contains(&&b"220 "[..])
        && let Some(host) = words.nth(1).filter(is_host)
    {
        message.sheet.host.set(host);
    }
    let says = |name: &&[u8]| line.windows(name.len()).any(|part| part.eq_ignore_ascii_case(name));
    if it.names.iter().any(says) {
        Answer::Open
    } else if client.packets > 0 {
        // Nobody waits for a client before greeting.
        Answer::Perhaps
    } else {
        Answer::Next
    }
}

/// An answer in the middle: it goes on if the client has said something of this protocol.
fn later(message: &Message<'_>, it: &Dialogue) -> Answer {
    let client = message.history.of(Side::Client);
    let known = |bytes: &[u8]| {
        let said = untagged(bytes, it);
        begins(said, it.commands) || begins(said, it.upgrade)
    };
    let is_known = known(client.first()) || known(client.last());
    if is_known { Answer::Open } else { Answer::Next }
}

/// RFC 959 §3.2: the server's end of a data connection has port 20, unless the other end was asked to connect.
fn ftp_data(message: &mut Message<'_>) -> Answer {
    let is_from = message.client.port == 20 && message.server.port >= 1024;
    let is_to = message.server.port == 20 && message.client.port >= 1024;
    // Only one side speaks.
    if (is_from || is_to) && message.other().packets == 0 { Answer::Perhaps } else { Answer::No }
}

/// Where a data connection will go to: of "227 Entering Passive Mode (h1,h2,h3,h4,p1,p2)" and "PORT h1,h2,h3,h4,p1,p2" (RFC 959 §4.1.2), and the port
/// alone of "229 ... (|||port|)" (RFC 2428 §3).
pub fn announced(line: &[u8]) -> Option<(Option<IpAddr>, u16)> {
    let numbers = match line.strip_prefix(b"227 ") {
        Some(rest) => rest.get(rest.iter().position(u8::is_ascii_digit)?..)?,
        None if line.get(..5)?.eq_ignore_ascii_case(b"PORT ") => line.get(5..)?,
        None => {
            let rest = line.strip_prefix(b"229 ")?;
            let bar = rest.windows(4).position(|it| it == b"(|||")? + 4;
            return Some((None, decimal(rest.get(bar..)?.split(|it| *it == b'|').next()?)?));
        }
    };
    let mut octets = [0_u8; 6];
    let mut said = numbers.split(|octet| *octet == b',');
    for octet in &mut octets {
        let digits = said.next()?;
        let end = digits.iter().position(|it| !it.is_ascii_digit()).unwrap_or(digits.len());
        *octet = u8::try_from(decimal(digits.get(..end)?)?).ok()?;
    }
    let [a, b, c, d, high, low] = octets;
    Some((Some(Ipv4Addr::new(a, b, c, d).into()), u16::from_be_bytes([high, low])))
}

fn decimal(digits: &[u8]) -> Option<u16> {
    str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::Carrier;
    use crate::protocols::show::{flow, server};

    fn talk(protocol: Protocol, port: u16, lines: &[&str]) -> Vec<Answer> {
        // The server greets, then they take turns.
        let sides = [Side::Server, Side::Client].into_iter().cycle();
        let messages: Vec<_> = sides.zip(lines.iter().map(|it| it.as_bytes())).collect();
        flow(protocol, Carrier::Tcp, port, &messages).0
    }

    #[test]
    fn tls_begins_once_the_server_agrees() {
        use Answer::{Next, Open, Within};
        for (protocol, lines, answers) in [
            (
                Protocol::Smtp,
                &[
                    "220 mx.example.org ESMTP\r\n",
                    "EHLO a\r\n",
                    "250-mx\r\n250 STARTTLS\r\n",
                    "STARTTLS\r\n",
                    "220 go\r\n",
                ][..],
                &[Open, Open, Open, Open, Within(8)][..],
            ),
            (
                Protocol::Pop3,
                &["+OK hello\r\n", "CAPA\r\n", "+OK\r\n", "STLS\r\n", "+OK\r\n"],
                &[Next, Open, Open, Open, Within(5)],
            ),
            (
                Protocol::Imap,
                &["* OK IMAP4rev1\r\n", "a1 STARTTLS\r\n", "a1 OK now\r\n"],
                &[Open, Open, Within(11)],
            ),
            (
                Protocol::Nntp,
                &["200 hello\r\n", "CAPABILITIES\r\n", "101\r\n", "STARTTLS\r\n", "382 go\r\n"],
                &[Next, Open, Open, Open, Within(8)],
            ),
            (Protocol::Ftp, &["220 hello\r\n", "AUTH TLS\r\n", "234 go\r\n"], &[Next, Open, Within(8)]),
        ] {
            assert_eq!(talk(protocol, 999, lines), answers, "{}", protocol.name());
        }
    }

    #[test]
    fn a_server_may_refuse_tls() {
        let smtp = ["220 x SMTP\r\n", "EHLO x\r\n", "250 x\r\n", "STARTTLS\r\n", "454 no\r\n"];
        assert_eq!(talk(Protocol::Smtp, 25, &smtp), [Answer::Open; 5]);
        let imap = ["* OK IMAP4\r\n", "a STARTTLS\r\n", "a NO never\r\n"];
        assert_eq!(talk(Protocol::Imap, 143, &imap), [Answer::Open; 3]);
    }

    #[test]
    fn without_tls_the_first_order_is_enough() {
        assert_eq!(talk(Protocol::Ftp, 21, &["220 hello\r\n", "USER x\r\n"]), [Answer::Next, Answer::Is]);
        assert_eq!(talk(Protocol::Pop3, 110, &["+OK\r\n", "USER x\r\n"]), [Answer::Next, Answer::Is]);
        assert_eq!(talk(Protocol::Imap, 143, &["* OK\r\n", "1 LOGIN a b\r\n"]), [Answer::Next, Answer::Is]);
        assert_eq!(talk(Protocol::Nntp, 119, &["201 x\r\n", "GROUP a.b\r\n"]), [Answer::Next, Answer::Is]);
        let smtp = ["220 x\r\n", "EHLO x\r\n", "250 x\r\n", "MAIL FROM:<a@b>\r\n"];
        assert_eq!(talk(Protocol::Smtp, 25, &smtp), [Answer::Next, Answer::Open, Answer::Open, Answer::Is]);
    }

    #[test]
    fn greetings_name_the_server() {
        let (answers, sheet) =
            flow(Protocol::Smtp, Carrier::Tcp, 25, &[(Side::Server, b"220 mx.example.org ESMTP x\r\n")]);
        assert_eq!((answers, sheet.host.bytes()), (vec![Answer::Open], &b"mx.example.org"[..]));
        assert_eq!(server(Protocol::Ftp, Carrier::Tcp, 21, b"220 (vsFTPd 3.0.3)\r\n"), Answer::Open);
        assert_eq!(server(Protocol::Ftp, Carrier::Tcp, 21, b"SSH-2.0-x\r\n"), Answer::No);
    }

    #[test]
    fn what_only_looks_like_it_is_not() {
        assert_eq!(talk(Protocol::Ftp, 21, &["220 hello\r\n", "EHLO x\r\n"]), [Answer::Next, Answer::Next]);
        assert_eq!(
            talk(Protocol::Smtp, 25, &["220 hello\r\n", "AUTH TLS\r\n"]),
            [Answer::Next, Answer::Next]
        );
        assert_eq!(talk(Protocol::Smtp, 25, &["+OK\r\n", "EHLO x\r\n"]), [Answer::No, Answer::No]);
        assert_eq!(talk(Protocol::Pop3, 110, &["220 x\r\n", "USER x\r\n"]), [Answer::No, Answer::No]);
        assert_eq!(talk(Protocol::Ftp, 21, &["220 hello\r\n", "US"]), [Answer::Next, Answer::Longer]);
    }

    #[test]
    fn where_data_will_go_to_can_be_read() {
        let there = Some(IpAddr::from([192, 0, 2, 1]));
        assert_eq!(announced(b"227 Entering Passive Mode (192,0,2,1,4,1)."), Some((there, 1025)));
        assert_eq!(announced(b"PORT 192,0,2,1,4,1"), Some((there, 1025)));
        assert_eq!(announced(b"229 Extended (|||6446|)"), Some((None, 6446)));
        for wrong in
            [&b"227 x"[..], b"PORT 1,2,3,4,5", b"PORT 1,2,3,4,5,256", b"229 (|||99999|)", b"", b"230 in"]
        {
            assert_eq!(announced(wrong), None);
        }
    }
}
