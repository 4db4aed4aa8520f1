//! What many messages have in common: a header with a length that agrees with the payload, a verb at the beginning of a line, ASN.1.

use crate::Protocol;
use crate::classify::{Answer, Carriers, First, Mark, Message, Places, Recogniser, Strength};

/// A recogniser in one line.
pub const fn row(
    protocol: Protocol,
    carriers: Carriers,
    ports: &'static [u16],
    first: First,
    strength: Strength,
    probe: fn(&mut Message<'_>) -> Answer,
) -> Recogniser {
    let (places, mark) = (Places::Anywhere, Mark::NONE);
    Recogniser { protocol, carriers, ports, places, first, mark, strength, probe }
}

/// It is, if the check says so. A check ends with `None` where the message does.
pub fn is(check: impl FnOnce() -> Option<bool>) -> Answer {
    if check() == Some(true) { Answer::Is } else { Answer::No }
}

/// Likewise, but chance may look so, too.
pub fn perhaps(check: impl FnOnce() -> Option<bool>) -> Answer {
    if check() == Some(true) { Answer::Perhaps } else { Answer::No }
}

/// Likewise; what chance may look like is believed if the other side began with what `alike` accepts.
pub fn is_after(
    message: &Message<'_>,
    alike: fn(&[u8]) -> bool,
    check: impl FnOnce() -> Option<bool>,
) -> Answer {
    match perhaps(check) {
        Answer::Perhaps if alike(message.other().first()) => Answer::Is,
        answer => answer,
    }
}

/// Whether one of these is at the beginning.
pub fn starts_with_any(bytes: &[u8], all: &[&[u8]]) -> bool {
    all.iter().any(|one| bytes.starts_with(one))
}

/// Whether one of these is at the beginning, however its letters are written.
pub fn starts_like_any(bytes: &[u8], all: &[&[u8]]) -> bool {
    all.iter().any(|one| bytes.get(..one.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(one)))
}

/// Whether all of it can be printed: ASCII without controls.
pub fn is_printed(bytes: &[u8]) -> bool {
    bytes.iter().all(|octet| (0x20..0x7f).contains(octet))
}

/// Whether it is a name as programs have them: letters, digits, and a few signs between them.
pub fn is_name(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|octet| octet.is_ascii_alphanumeric() || b"_-.:/".contains(octet))
}

/// Whether it is a number in decimal digits.
pub fn is_number(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit)
}

/// Whether `needle` is within the first `most` octets.
pub fn contains(bytes: &[u8], needle: &[u8], most: usize) -> bool {
    let within = bytes.get(..most.min(bytes.len())).unwrap_or_default();
    within.windows(needle.len().max(1)).any(|window| window == needle)
}

/// What is before the first `end`, if it is within the first `most` octets.
pub fn until(bytes: &[u8], end: u8, most: usize) -> Option<&[u8]> {
    let within = bytes.get(..most.min(bytes.len()))?;
    within.get(..within.iter().position(|octet| *octet == end)?)
}

/// A number of seven bits an octet, the lowest first (protobuf, MQTT, Thrift), of at most four octets; and how many they are.
pub fn varint(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0;
    for (at, octet) in bytes.iter().take(4).enumerate() {
        value |= usize::from(octet & 0x7f) << (7 * at);
        if octet & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    None
}

/// Whether values of a tag, a length and so many octets fill all of it: at most `most` of them are looked at.
/// The closure says from what is left how long the one at its beginning is, or that it is none.
pub fn fills(mut bytes: &[u8], most: usize, length: impl Fn(&[u8]) -> Option<usize>) -> bool {
    for _ in 0..most {
        if bytes.is_empty() {
            return true;
        }
        match length(bytes) {
            Some(taken) if taken > 0 && taken <= bytes.len() => {
                bytes = bytes.get(taken..).unwrap_or_default()
            }
            _ => return false,
        }
    }
    true
}

/// Reads ASN.1 values with their tags and lengths (X.690 §8.1), in their order, from what may be cut off at its end.
#[derive(Clone, Copy, Debug)]
pub struct Ber<'b> {
    left: &'b [u8],
}

/// A value: its tag, the length that is declared, and as much of it as there is.
#[derive(Clone, Copy, Debug)]
pub struct Value<'b> {
    /// The first octet: class, constructed or primitive, and number.
    pub tag: u8,
    /// As declared.
    pub length: usize,
    /// What there is of it.
    pub content: &'b [u8],
}

impl<'b> Ber<'b> {
    /// Of these octets.
    pub const fn new(bytes: &'b [u8]) -> Self {
        Self { left: bytes }
    }

    /// The next value. Tags above 30 are read as two octets, of which the first is told; lengths have at most four octets.
    pub fn value(&mut self) -> Option<Value<'b>> {
        let (tag, mut at) = (*self.left.first()?, 1);
        if tag & 0x1f == 0x1f {
            if self.left.get(at)? & 0x80 != 0 {
                return None;
            }
            at += 1;
        }
        let first = *self.left.get(at)?;
        at += 1;
        let mut length = usize::from(first);
        if first >= 0x80 {
            let octets = usize::from(first & 0x7f);
            if !(1..=4).contains(&octets) {
                return None;
            }
            length = 0;
            for octet in self.left.get(at..at + octets)? {
                length = length << 8 | usize::from(*octet);
            }
            at += octets;
        }
        let content = self.left.get(at..)?;
        let taken = length.min(content.len());
        self.left = content.get(taken..)?;
        Some(Value { tag, length, content: content.get(..taken)? })
    }

    /// The next value, if it has this tag: what is inside.
    pub fn inside(&mut self, tag: u8) -> Option<Self> {
        self.value().filter(|value| value.tag == tag).map(|value| Self::new(value.content))
    }

    /// The next value, if it is an INTEGER (or has this tag in its place) of at most four octets that is whole.
    pub fn integer(&mut self, tag: u8) -> Option<u32> {
        let value = self.value().filter(|value| value.tag == tag && value.content.len() == value.length)?;
        if value.content.is_empty() || value.content.len() > 4 {
            return None;
        }
        Some(value.content.iter().fold(0, |number, octet| number << 8 | u32::from(*octet)))
    }
}

/// Of tests: what recognisers must say, and that a message that ends anywhere brings none of them down.
#[cfg(test)]
pub(crate) mod cases {
    use crate::Protocol;
    use crate::classify::{Answer, Carrier, Side};
    use crate::protocols::show;

    /// One message, who says it, and the answer that is due.
    pub type Case<'c> = (Protocol, Carrier, u16, Side, &'c [u8], Answer);

    /// Asks all of them.
    pub fn check(cases: &[Case<'_>]) {
        for (protocol, carrier, port, side, bytes, due) in cases {
            let answer = show::flow(*protocol, *carrier, *port, &[(*side, bytes)]).0.remove(0);
            assert_eq!(answer, *due, "{} of {bytes:02x?}", protocol.name());
            for end in 0..bytes.len() {
                let cut = bytes.get(..end).unwrap_or_default();
                show::flow(*protocol, *carrier, *port, &[(*side, cut), (side.other(), bytes), (*side, cut)]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ber_is_read_as_far_as_it_goes() {
        let mut outer = Ber::new(&[0x30, 0x06, 0x02, 0x01, 0x05, 0x04, 0x01, b'x', 0x02]);
        let mut inner = outer.inside(0x30).unwrap_or(Ber::new(&[]));
        assert_eq!(inner.integer(0x02), Some(5));
        assert_eq!(inner.value().map(|value| value.content), Some(&b"x"[..]));
        assert!(inner.value().is_none() && outer.value().is_none());

        let cut =
            Ber::new(&[0x30, 0x82, 0x01, 0x00, 0x02]).value().map(|cut| (cut.length, cut.content.len()));
        assert_eq!(cut, Some((256, 1)));
        assert!(Ber::new(&[0x30, 0x80, 0, 0]).value().is_none(), "an endless one");
        assert!(
            Ber::new(&[0x30, 0x85, 0, 0, 0, 0, 1, 0]).value().is_none(),
            "more than four octets of length"
        );
        assert!(Ber::new(&[0x02, 0x05, 0, 0, 0, 0, 1]).integer(0x02).is_none());
    }

    #[test]
    fn varints_end() {
        assert_eq!(varint(&[0x05, 0xff]), Some((5, 1)));
        assert_eq!(varint(&[0xac, 0x02]), Some((300, 2)));
        assert_eq!(varint(&[0xff; 8]), None);
        assert_eq!(varint(&[0x80]), None);
    }

    #[test]
    fn values_fill_a_message_or_do_not() {
        let length = |bytes: &[u8]| bytes.first().map(|first| usize::from(*first));
        assert!(fills(&[1, 2, 0, 3, 0, 0], 8, length));
        assert!(!fills(&[1, 2, 0, 4, 0, 0], 8, length));
        assert!(!fills(&[0, 0], 8, length), "one that takes nothing would never end");
        assert!(fills(&[1; 100], 8, length), "no more than eight are looked at");
    }
}
