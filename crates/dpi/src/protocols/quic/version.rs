//! Versions of QUIC whose first packets can be opened.

/// What differs between versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version {
    /// What the keys of the first packets are made with (RFC 9001 §5.2).
    pub salt: &'static [u8; 20],
    /// The numbers of packet types are those of version 2 (RFC 9369 §3.2), and so are the labels.
    pub is_second: bool,
    /// Frames have Google's numbers.
    pub is_google: bool,
    /// The handshake is Google's and not TLS.
    pub has_tags: bool,
}

/// RFC 9001 §5.2; also of drafts 33 and 34.
pub(super) const SALT_1: &[u8; 20] = &[
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc,
    0xbb, 0x7f, 0x0a,
];
/// RFC 9369 §3.3.1.
const SALT_2: &[u8; 20] = &[
    0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb, 0xf9,
    0xbd, 0x2e, 0xd9,
];
/// draft-ietf-quic-tls-29 §5.2; to draft 32.
const SALT_29: &[u8; 20] = &[
    0xaf, 0xbf, 0xec, 0x28, 0x99, 0x93, 0xd2, 0x4c, 0x9e, 0x97, 0x86, 0xf1, 0x9c, 0x61, 0x11, 0xe0, 0x43,
    0x90, 0xa8, 0x99,
];
/// draft-ietf-quic-tls-23 §5.2; to draft 28.
const SALT_23: &[u8; 20] = &[
    0xc3, 0xee, 0xf7, 0x12, 0xc7, 0x2e, 0xbb, 0x5a, 0x11, 0xa7, 0xd2, 0x43, 0x2b, 0xb4, 0x63, 0x65, 0xbe,
    0xf9, 0xf5, 0x02,
];
/// draft-ietf-quic-tls-22 §5.2.
const SALT_22: &[u8; 20] = &[
    0x7f, 0xbc, 0xdb, 0x0e, 0x7c, 0x66, 0xbb, 0xe9, 0x19, 0x3a, 0x96, 0xcd, 0x21, 0x51, 0x9e, 0xbd, 0x7a,
    0x02, 0x64, 0x4a,
];
/// Google's Q050.
const SALT_Q050: &[u8; 20] = &[
    0x50, 0x45, 0x74, 0xef, 0xd0, 0x66, 0xfe, 0x2f, 0x9d, 0x94, 0x5c, 0xfc, 0xdb, 0xd3, 0xa7, 0xf0, 0xd3,
    0xb5, 0x6b, 0x45,
];
/// Google's T050: TLS in what is Q050 otherwise.
const SALT_T050: &[u8; 20] = &[
    0x7f, 0xf5, 0x79, 0xe5, 0xac, 0xd0, 0x72, 0x91, 0x55, 0x80, 0x30, 0x4c, 0x43, 0xa2, 0x36, 0x7c, 0x60,
    0x48, 0x83, 0x10,
];
/// Google's T051.
const SALT_T051: &[u8; 20] = &[
    0x7a, 0x4e, 0xde, 0xf4, 0xe7, 0xcc, 0xee, 0x5f, 0xa4, 0x50, 0x6c, 0x19, 0x12, 0x4f, 0xc8, 0xcc, 0xda,
    0x6e, 0x03, 0x3d,
];

const Q050: u32 = u32::from_be_bytes(*b"Q050");
const T050: u32 = u32::from_be_bytes(*b"T050");
const T051: u32 = u32::from_be_bytes(*b"T051");

impl Version {
    /// By its number.
    pub const fn of(number: u32) -> Option<Self> {
        let is_google = matches!(number, Q050 | T050 | T051);
        let (salt, is_second) = match number {
            1 | 0xff00_0021..=0xff00_0022 => (SALT_1, false),
            0x6b33_43cf => (SALT_2, true),
            0xff00_001d..=0xff00_0020 => (SALT_29, false),
            // Meta's mvfst had numbers of its own, for drafts 27 and 22.
            0xff00_0017..=0xff00_001c | 0xface_b002 | 0xface_b00e => (SALT_23, false),
            0xff00_0016 | 0xface_b001 => (SALT_22, false),
            Q050 => (SALT_Q050, false),
            T050 => (SALT_T050, false),
            T051 => (SALT_T051, false),
            _ => return None,
        };
        Some(Self { salt, is_second, is_google, has_tags: number == Q050 })
    }
}

/// Versions that nobody speaks, so that nobody forgets to negotiate (RFC 9000 §15).
pub const fn is_reserved(number: u32) -> bool {
    number & 0x0f0f_0f0f == 0x0a0a_0a0a
}

/// Google's versions before there was a standard: "Q024" to "Q046" and so on.
pub const fn is_old_google(number: u32) -> bool {
    let [q, zero, tens, units] = number.to_be_bytes();
    q == b'Q' && zero == b'0' && matches!(tens, b'2'..=b'4') && units.is_ascii_digit()
}

/// Drafts whose headers were others, and whose first packets are not opened.
pub const fn is_old_draft(number: u32) -> bool {
    matches!(number, 0xff00_0005..=0xff00_0015)
}
