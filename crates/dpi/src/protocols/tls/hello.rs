//! ClientHello and ServerHello.
//!
//! Both are read from what is there: extensions that have not come yet are missing, and whoever reads knows from the handshake message's length
//! whether any are.

use crate::protocols::cursor::Cursor;

/// Extension types (IANA, TLS ExtensionType Values).
pub mod extension {
    /// RFC 6066 §3.
    pub const SERVER_NAME: u16 = 0;
    /// RFC 8446 §4.2.7.
    pub const SUPPORTED_GROUPS: u16 = 10;
    /// RFC 8446 §4.2.3.
    pub const SIGNATURE_ALGORITHMS: u16 = 13;
    /// RFC 7301 §3.1.
    pub const ALPN: u16 = 16;
    /// RFC 8446 §4.2.1.
    pub const SUPPORTED_VERSIONS: u16 = 43;
    /// RFC 8446 §4.2.8.
    pub const KEY_SHARE: u16 = 51;
    /// RFC 9001 §8.2.
    pub const QUIC_TRANSPORT_PARAMETERS: u16 = 57;
    /// The same, before QUIC had its number (draft-ietf-quic-tls-13).
    pub const QUIC_TRANSPORT_PARAMETERS_DRAFT: u16 = 0xffa5;
    /// RFC 9849 §5.
    pub const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
}

/// One extension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extension<'b> {
    /// Its type.
    pub kind: u16,
    /// What is in it.
    pub data: &'b [u8],
}

/// Values that are sent so that nobody forgets to ignore what it doesn't know (RFC 8701 §2).
pub const fn is_grease(value: u16) -> bool {
    value & 0x0f0f == 0x0a0a && value >> 8 == value & 0xff
}

/// The whole extensions among these octets, in their order.
fn extensions(bytes: &[u8]) -> impl Iterator<Item = Extension<'_>> + Clone + use<'_> {
    let mut cursor = Cursor::new(bytes);
    std::iter::from_fn(move || Some(Extension { kind: cursor.u16()?, data: cursor.vector16()? }))
}

/// Numbers of two octets.
fn numbers(bytes: &[u8]) -> impl Iterator<Item = u16> + use<'_> {
    bytes.chunks_exact(2).map(|pair| u16::from(pair[0]) << 8 | u16::from(pair[1]))
}

/// RFC 8446 §4.1.2; in DTLS with a cookie, RFC 6347 §4.2.1.
#[derive(Clone, Copy, Debug)]
pub struct ClientHello<'b> {
    /// The version in its old place: TLS 1.3 says 1.2 here.
    pub version: u16,
    /// 32 octets.
    pub random: &'b [u8],
    /// The session that is to go on.
    pub session: &'b [u8],
    /// What a DTLS server gave to be sure of the client's address; empty in TLS.
    pub cookie: &'b [u8],
    suites: &'b [u8],
    /// Compression methods.
    pub compressions: &'b [u8],
    extensions: &'b [u8],
}

impl<'b> ClientHello<'b> {
    /// Of a handshake message's body, or of as much of it as is there.
    pub fn parse(body: &'b [u8], datagram: bool) -> Option<Self> {
        let mut cursor = Cursor::new(body);
        let version = cursor.u16()?;
        let random = cursor.take(32)?;
        let session = cursor.vector8().filter(|it| it.len() <= 32)?;
        let cookie = if datagram { cursor.vector8()? } else { &[] };
        let suites = cursor.vector16().filter(|it| it.len().is_multiple_of(2))?;
        let compressions = cursor.vector8().filter(|it| !it.is_empty())?;
        let length = cursor.u16().unwrap_or(0);
        let extensions = cursor.take_most(length.into());
        Some(Self { version, random, session, cookie, suites, compressions, extensions })
    }

    /// All that are there, in their order.
    pub fn extensions(&self) -> impl Iterator<Item = Extension<'b>> + Clone + use<'b> {
        extensions(self.extensions)
    }

    fn extension(&self, kind: u16) -> Option<&'b [u8]> {
        self.extensions().find(|it| it.kind == kind).map(|it| it.data)
    }

    /// SNI (RFC 6066 §3).
    pub fn server_name(&self) -> Option<&'b [u8]> {
        server_name(self.extension(extension::SERVER_NAME)?)
    }

    /// What the client would speak, what it likes best first (RFC 7301 §3.1).
    pub fn application_protocols(&self) -> impl Iterator<Item = &'b [u8]> + use<'b> {
        application_protocols(self.extension(extension::ALPN).unwrap_or_default())
    }

    /// Cipher suites, as the client likes them, GREASE among them.
    pub fn cipher_suites(&self) -> impl Iterator<Item = u16> + use<'b> {
        numbers(self.suites)
    }

    /// Versions it would speak, without GREASE; the one version of old clients.
    pub fn versions(&self) -> impl Iterator<Item = u16> + use<'b> {
        let offered = self.extension(extension::SUPPORTED_VERSIONS);
        let list = offered.and_then(|it| Cursor::new(it).vector8()).unwrap_or_default();
        let old = Some(self.version).filter(|_| list.is_empty());
        numbers(list).filter(|it| !is_grease(*it)).chain(old)
    }

    /// The newest of [`Self::versions`]. Those of DTLS count downwards.
    pub fn newest_version(&self) -> u16 {
        let newest = if self.version >> 8 == 0xfe { self.versions().min() } else { self.versions().max() };
        newest.unwrap_or(self.version)
    }

    /// Signature schemes, in their order.
    pub fn signature_schemes(&self) -> impl Iterator<Item = u16> + use<'b> {
        self.list16(extension::SIGNATURE_ALGORITHMS)
    }

    /// Groups for the key exchange, in their order.
    pub fn groups(&self) -> impl Iterator<Item = u16> + use<'b> {
        self.list16(extension::SUPPORTED_GROUPS)
    }

    fn list16(&self, kind: u16) -> impl Iterator<Item = u16> + use<'b> {
        numbers(self.extension(kind).and_then(|it| Cursor::new(it).vector16()).unwrap_or_default())
    }

    /// The groups that keys are sent for, and how long these are: X25519MLKEM768 (4588) has 1,216 octets.
    pub fn key_shares(&self) -> impl Iterator<Item = (u16, usize)> + use<'b> {
        let shares = self.extension(extension::KEY_SHARE).and_then(|it| Cursor::new(it).vector16());
        extensions(shares.unwrap_or_default()).map(|share| (share.kind, share.data.len()))
    }

    /// Whether the true hello is encrypted inside of this one, whose name is only that of the outer server (RFC 9849 §5). Clients send something
    /// that looks the same where there is none.
    pub fn has_encrypted_hello(&self) -> bool {
        self.extension(extension::ENCRYPTED_CLIENT_HELLO).is_some_and(|it| it.first() == Some(&0))
    }

    /// QUIC's transport parameters, if it is one of QUIC.
    pub fn transport_parameters(&self) -> Option<&'b [u8]> {
        let of_quic = [extension::QUIC_TRANSPORT_PARAMETERS, extension::QUIC_TRANSPORT_PARAMETERS_DRAFT];
        self.extensions().find(|it| of_quic.contains(&it.kind)).map(|it| it.data)
    }
}

/// The host name in this extension's data.
pub(super) fn server_name(data: &[u8]) -> Option<&[u8]> {
    let mut names = Cursor::new(Cursor::new(data).vector16()?);
    let (kind, name) = (names.u8()?, names.vector16()?);
    (kind == 0 && !name.is_empty() && name.iter().all(u8::is_ascii_graphic)).then_some(name)
}

/// The protocols in this extension's data, without GREASE.
pub(super) fn application_protocols(data: &[u8]) -> impl Iterator<Item = &[u8]> + use<'_> {
    let mut names = Cursor::new(Cursor::new(data).vector16().unwrap_or_default());
    std::iter::from_fn(move || names.vector8())
        .filter(|name| !matches!(*name, [a, b] if is_grease(u16::from(*a) << 8 | u16::from(*b))))
}

/// RFC 8446 §4.1.3.
#[derive(Clone, Copy, Debug)]
pub struct ServerHello<'b> {
    /// The version in its old place.
    pub version: u16,
    /// 32 octets.
    pub random: &'b [u8],
    /// The session.
    pub session: &'b [u8],
    /// The cipher suite that is chosen.
    pub cipher_suite: u16,
    extensions: &'b [u8],
}

/// The random number of a ServerHello that asks for another ClientHello (RFC 8446 §4.1.3): SHA-256 of "HelloRetryRequest".
const RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

impl<'b> ServerHello<'b> {
    /// Of a handshake message's body, or of as much of it as is there.
    pub fn parse(body: &'b [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(body);
        let (version, random) = (cursor.u16()?, cursor.take(32)?);
        let session = cursor.vector8().filter(|it| it.len() <= 32)?;
        let (cipher_suite, _compression) = (cursor.u16()?, cursor.u8()?);
        let length = cursor.u16().unwrap_or(0);
        let extensions = cursor.take_most(length.into());
        Some(Self { version, random, session, cipher_suite, extensions })
    }

    /// All that are there, in their order.
    pub fn extensions(&self) -> impl Iterator<Item = Extension<'b>> + Clone + use<'b> {
        extensions(self.extensions)
    }

    /// The version that is spoken from here on.
    pub fn chosen_version(&self) -> u16 {
        let chosen = self.extensions().find(|it| it.kind == extension::SUPPORTED_VERSIONS);
        chosen.and_then(|it| Cursor::new(it.data).u16()).unwrap_or(self.version)
    }

    /// What is spoken inside, if it is said in clear: in TLS 1.2 and before.
    pub fn application_protocol(&self) -> Option<&'b [u8]> {
        let chosen = self.extensions().find(|it| it.kind == extension::ALPN)?;
        application_protocols(chosen.data).next()
    }

    /// Whether it asks for another ClientHello.
    pub fn is_retry(&self) -> bool {
        self.random == RETRY
    }
}
