//! User ID (§8.2.101): whose session it is.

use super::wire::Wire;
use crate::error::Fault;

/// A User ID as it came: one or several identities. What can't be read of it ends it, and refuses nothing: no packet depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UserId<'a>(pub &'a [u8]);

/// What an identity is; in the order of the flags in the IE's first octet, and of the identities behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Identity {
    /// Digits.
    Imsi,
    /// Digits.
    Imei,
    /// Digits.
    Msisdn,
    /// Text.
    Nai,
    /// Text, as in TS 29.571 §5.3.2.
    Supi,
    /// Text, likewise.
    Gpsi,
    /// Text, likewise.
    Pei,
}

impl Identity {
    const ALL: [Self; 7] =
        [Self::Imsi, Self::Imei, Self::Msisdn, Self::Nai, Self::Supi, Self::Gpsi, Self::Pei];

    const fn is_digits(self) -> bool {
        matches!(self, Self::Imsi | Self::Imei | Self::Msisdn)
    }

    /// What stands before the identity where it is written. SUPI, GPSI and PEI bring their own.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Imsi => "imsi-",
            Self::Imei => "imei-",
            Self::Msisdn => "msisdn-",
            Self::Nai => "nai-",
            Self::Supi | Self::Gpsi | Self::Pei => "",
        }
    }
}

impl<'a> UserId<'a> {
    /// The identities, as they came.
    pub fn identities(self) -> impl Iterator<Item = (Identity, &'a [u8])> {
        let (flags, mut rest) = self.0.split_first().map_or((0, &[][..]), |(flags, rest)| (*flags, rest));
        let given = Identity::ALL.into_iter().enumerate().filter(move |(bit, _)| flags & 1 << bit != 0);
        given.map_while(move |(_, identity)| {
            let (length, tail) = rest.split_first()?;
            let (octets, tail) = tail.split_at_checked(usize::from(*length))?;
            rest = tail;
            Some((identity, octets))
        })
    }

    /// The identities as text: `imsi-001010000000001`, `msisdn-…`.
    pub fn texts(self) -> impl Iterator<Item = String> + use<'a> {
        self.identities().map(|(identity, octets)| {
            let text = if identity.is_digits() {
                digits(octets).collect()
            } else {
                String::from_utf8_lossy(octets).into_owned()
            };
            format!("{}{text}", identity.prefix())
        })
    }

    /// Whether one of the identities is this text, with or without what [`Self::texts`] puts before it. Allocates nothing.
    pub fn is(self, text: &str) -> bool {
        self.identities().any(|(identity, octets)| {
            let bare = text.strip_prefix(identity.prefix()).unwrap_or(text);
            if identity.is_digits() {
                return digits(octets).eq(bare.chars());
            }
            let same = |text: &str| octets.eq_ignore_ascii_case(text.as_bytes());
            // A SUPI such as "imsi-001…" is found by its digits too.
            let behind = octets.iter().position(|octet| *octet == b'-').and_then(|at| octets.get(at + 1..));
            same(text)
                || same(bare)
                || behind.is_some_and(|octets| octets.eq_ignore_ascii_case(bare.as_bytes()))
        })
    }
}

/// Telephony digits, two an octet, the low half first; 15 fills the last one up (TS 29.274 §8.3).
fn digits(octets: &[u8]) -> impl Iterator<Item = char> {
    let halves = octets.iter().flat_map(|octet| [octet & 0xf, octet >> 4]);
    halves.take_while(|half| *half != 0xf).map(|half| match half {
        0..=9 => char::from(b'0' + half),
        10 => '*',
        11 => '#',
        _ => char::from(b'a' + half - 12),
    })
}

impl<'a> Wire<'a> for UserId<'a> {
    fn read(value: &'a [u8]) -> Result<Self, Fault> {
        Ok(Self(value))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Open5GS sends it: IMSI, IMEISV, MSISDN.
    const BOTH: [u8; 26] = [
        0b0000_0111,
        8,
        0x00,
        0x01,
        0x01,
        0x00,
        0x00,
        0x00,
        0x00,
        0xf1,
        8,
        0x53,
        0x61,
        0x27,
        0x44,
        0x71,
        0x39,
        0x82,
        0x41,
        6,
        0x94,
        0x71,
        0x21,
        0x43,
        0x65,
        0xf7,
    ];

    #[test]
    fn identities_are_read_and_found() {
        let user = UserId(&BOTH);
        let texts: Vec<_> = user.texts().collect();
        assert_eq!(texts, ["imsi-001010000000001", "imei-3516724417932814", "msisdn-49171234567"]);
        for text in ["001010000000001", "imsi-001010000000001", "msisdn-49171234567", "49171234567"] {
            assert!(user.is(text), "{text}");
        }
        for text in ["00101000000000", "0010100000000011", "imei-001010000000001", "", "msisdn-"] {
            assert!(!user.is(text), "{text}");
        }
    }

    #[test]
    fn texts_are_read_and_found() {
        let mut octets = vec![0b0001_1000, 9];
        octets.extend(b"ue@realm1");
        octets.push(20);
        octets.extend(b"imsi-001010000000002");
        let user = UserId(&octets);
        assert_eq!(user.texts().collect::<Vec<_>>(), ["nai-ue@realm1", "imsi-001010000000002"]);
        assert!(user.is("UE@realm1") && user.is("nai-ue@realm1"));
        assert!(user.is("imsi-001010000000002") && user.is("001010000000002"));
        assert!(!user.is("ue@realm") && !user.is("imsi-"));
    }

    #[test]
    fn what_is_cut_off_ends_it() {
        for length in 0..BOTH.len() {
            let cut = UserId(&BOTH[..length]);
            assert_eq!(cut.texts().count(), [10, 19].iter().filter(|end| length >= **end).count());
        }
        assert_eq!(UserId(&[0xff; 3]).texts().count(), 0);
    }
}
