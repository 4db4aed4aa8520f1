//! What kind of octets does a side begin with?

/// Octets that are looked at.
pub const MOST: usize = 256;
/// Fewer octets say nothing about chance, and little about text.
pub const FEWEST: usize = 64;
/// Of 64 octets by chance, 56.7 are different on average, with a standard deviation of 2.2. Structured messages repeat zeros, lengths and letters.
const DIFFERENT: u32 = 46;
/// A text has no such run of printable octets by chance; Wu et al., §4.2.
const RUN: usize = 20;

/// The kind of octets that a side's first payload has.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(u8)]
pub enum Opening {
    /// Nothing was said yet, or too little.
    #[default]
    Unsaid,
    /// As if by chance: ciphered, and nothing in clear around it.
    Chance,
    /// Mostly printable, or it begins so.
    Text,
    /// A compressed file; chance without being ciphered.
    File,
    /// Anything else: a message with a structure.
    Structure,
}

/// What compressed files begin with: gzip (RFC 1952 §2.3.1), ZIP (APPNOTE §4.3.7), Zstandard (RFC 8878 §3.1.1), xz (its file format §2.1.1.1), bzip2, 7z,
/// PNG (ISO/IEC 15948 §5.2), JPEG (ISO/IEC 10918-1 §B.1.1.3), LZ4 (its frame format), RAR.
const FILES: &[&[u8]] = &[
    b"\x1f\x8b\x08",
    b"PK\x03\x04",
    b"\x28\xb5\x2f\xfd",
    b"\xfd7zXZ\0",
    b"BZh",
    b"7z\xbc\xaf\x27\x1c",
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff",
    b"\x04\x22\x4d\x18",
    b"Rar!\x1a\x07",
];

impl Opening {
    /// Of a payload. The limits are those that M. Wu et al. found in use ("How the Great Firewall of China Detects and Blocks Fully Encrypted
    /// Traffic", USENIX Security 2023, §4), and three more: it has 64 octets, they hardly repeat, and no length is written at its beginning.
    pub fn of(payload: &[u8]) -> Self {
        if FILES.iter().any(|magic| payload.starts_with(magic)) || payload.get(4..8) == Some(b"ftyp") {
            return Self::File;
        }
        let looked = payload.get(..MOST.min(payload.len())).unwrap_or_default();
        if looked.is_empty() {
            return Self::Unsaid;
        }
        let (mut ones, mut printable, mut run, mut longest) = (0, 0, 0, 0);
        for octet in looked {
            ones += octet.count_ones() as usize;
            let is_printable = (0x20..0x7f).contains(octet);
            printable += usize::from(is_printable);
            run = if is_printable { run + 1 } else { 0 };
            longest = longest.max(run);
        }
        let begins_printable =
            looked.len() >= 6 && looked.iter().take(6).all(|octet| (0x20..0x7f).contains(octet));
        if begins_printable || printable * 2 > looked.len() || longest > RUN {
            return Self::Text;
        }
        // 3.4 to 4.6 of eight bits are set.
        let is_balanced = (looked.len() * 34..=looked.len() * 46).contains(&(ones * 10));
        if !is_balanced || has_length(payload) {
            return Self::Structure;
        }
        let Some(first) = looked.first_chunk::<FEWEST>() else { return Self::Unsaid };
        if different(first) >= DIFFERENT { Self::Chance } else { Self::Structure }
    }
}

/// How many different octets these are.
fn different(octets: &[u8; FEWEST]) -> u32 {
    let mut seen = [0_u64; 4];
    for octet in octets {
        if let Some(word) = seen.get_mut(usize::from(octet >> 6)) {
            *word |= 1 << (octet & 63);
        }
    }
    seen.iter().map(|word| word.count_ones()).sum()
}

/// Whether the first four octets, or the third and fourth, or the first two, are its length, or that of what follows.
fn has_length(payload: &[u8]) -> bool {
    let Some(&[a, b, c, d]) = payload.first_chunk() else { return false };
    let length = payload.len() as u64;
    let numbers = [
        (u64::from(u32::from_be_bytes([a, b, c, d])), 4),
        (u64::from(u32::from_le_bytes([a, b, c, d])), 4),
        (u64::from(u16::from_be_bytes([c, d])), 4),
        (u64::from(u16::from_le_bytes([c, d])), 4),
        (u64::from(u16::from_be_bytes([a, b])), 2),
        (u64::from(u16::from_le_bytes([a, b])), 2),
    ];
    numbers.iter().any(|(number, itself)| *number == length || number + itself == length)
}
