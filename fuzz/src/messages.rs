//! What programs say to each other, in short: beginnings for fuzzers of inspection.

/// A ClientHello in a record (RFC 8446 §4.1.2, §5.1), with SNI, ALPN, groups and versions.
pub const TLS: &[u8] = b"\x16\x03\x01\0\x62\x01\0\0\x5e\x03\x03abcdefghijklmnopqrstuvwxyz012345\0\0\x04\x13\x01\x13\x02\x01\0\0\x31\
    \0\0\0\x10\0\x0e\0\0\x0bexample.com\0\x10\0\x05\0\x03\x02h2\0\x0a\0\x04\0\x02\0\x1d\0\x2b\0\x03\x02\x03\x04\xff\x01\0\x01\0";
/// A certificate as far as its names are concerned (RFC 5280 §4.1).
pub const CERTIFICATE: &[u8] = b"\x30\x51\x30\x4a\xa0\x03\x02\x01\x02\x02\x01\x05\x30\0\x30\0\x30\0\x30\x14\x31\x12\x30\x10\x06\x03\x55\x04\
    \x03\x0c\x09a.example\x30\0\xa3\x22\x30\x20\x30\x1e\x06\x03\x55\x1d\x11\x01\x01\xff\x04\x14\x30\x12\x82\x09b.example\x82\x05\
    c.org\x30\0\x03\x01\0";
/// A question for a name that signatures have.
pub const QUESTION: &[u8] = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03www\x07youtube\x03com\0\0\x01\0\x01";
/// Its answer, with an alias and addresses of both families; names point to each other.
pub const ANSWER: &[u8] = b"\x12\x34\x81\x80\0\x01\0\x03\0\0\0\0\x03www\x07youtube\x03com\0\0\x01\0\x01\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x06\
    \x03cdn\xc0\x10\xc0\x2d\0\x01\0\x01\0\0\0\x1e\0\x04\xc6\x33\x64\x03\xc0\x2d\0\x1c\0\x01\0\0\0\x1e\0\x10\x20\x01\x0d\xb8\0\0\0\0\0\
    \0\0\0\0\0\0\x09";
/// A name that points to itself (RFC 1035 §4.1.4).
pub const LOOP: &[u8] = b"\x12\x34\x81\x80\0\x01\0\x01\0\0\0\0\xc0\x0c\0\x01\0\x01\xc0\x0c\0\x01\0\x01\0\0\0\x1e\0\x04\xc0\0\x02\x07";
/// A request.
pub const HTTP: &[u8] = b"GET /watch?v=1 HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: x/1\r\n\r\n";
/// Its answer.
pub const HTTP_OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 3\r\n\r\nabc";
/// Frames of HTTP/2 (RFC 9113 §3.4), with a block of header fields (RFC 7541 §C.4.1).
pub const HTTP_2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x11\x01\x05\0\0\0\x01\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\
    \xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
/// A call, with what it will carry (RFC 3261, RFC 8866).
pub const SIP: &[u8] = b"INVITE sip:b@b.example SIP/2.0\r\nf: <sip:a@a.example>;tag=1\r\nt: b\r\ni: 1\r\nc: application/sdp\r\n\r\n\
    v=0\r\nc=IN IP4 192.0.2.1\r\nm=audio 4000 RTP/AVP 0 96\r\na=rtpmap:96 opus/48000\r\n";
/// A binding request (RFC 8489 §5).
pub const STUN: &[u8] = b"\0\x01\0\x0c\x21\x12\xa4\x42abcdefghijkl\0\x06\0\x03a:b\0\0\x24\0\0";
/// Media (RFC 3550 §5.1), with sources and an extension.
pub const RTP: &[u8] = b"\xb1\x88\0\x05\0\0\0\x09\0\0\0\x07CSRC\xbe\xde\0\x01extnabcd\0\x02";
/// The long header of an Initial (RFC 9000 §17.2.2) that no key opens.
pub const QUIC: &[u8] = b"\xc0\0\0\0\x01\x08abcdefgh\x02ij\x01t\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// What a flow may carry, one after the other too.
pub const ALL: &[&[u8]] = &[
    TLS,
    QUESTION,
    ANSWER,
    LOOP,
    HTTP,
    HTTP_OK,
    HTTP_2,
    SIP,
    STUN,
    RTP,
    QUIC,
    CERTIFICATE,
    b"SSH-2.0-example\r\n",
    b"220 mail.example ESMTP\r\n",
    b"EHLO client.example\r\n",
    b"250-mail.example\r\n250 STARTTLS\r\n",
    b"STARTTLS\r\n",
    b"220 go on\r\n",
    b"CONNECT www.example.com:443 HTTP/1.1\r\nHost: www.example.com\r\n\r\n",
    b"HTTP/1.1 200 Connection established\r\n\r\n",
    b"\x05\x01\0",
    b"\x05\0",
    b"\x05\x01\0\x01\xc6\x33\x64\x01\x01\xbb",
    b"\x05\0\0\x01\0\0\0\0\0\0",
    b"\x13BitTorrent protocol",
    b"*1\r\n$4\r\nPING\r\n",
    b"\x10\x0c\0\x04MQTT\x04\x02\0\x3c\0\0",
];
