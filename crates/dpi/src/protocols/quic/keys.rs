//! The keys of a connection's first packets, and how these are opened.
//!
//! They are made of what everybody can read (RFC 9001 §5.2), so they keep nothing secret; but only who knows the first connection ID has them, and
//! the tag of a packet that was opened with other keys does not fit. It is always checked: then no random octets are ever taken for a ClientHello.
//!
//! **Cost.** A microsecond for the keys (14 blocks of SHA-256, 12 of version 1, whose salt's are done once), and half a microsecond for opening 1,250 octets, tag and all, with SHA-NI, AES-NI and
//! CLMUL (one core of Zen 3). To leave the tag out would save little, since what names the server may stand at a packet's end.

use super::version::{SALT_1, Version};
use aes_gcm::Aes128Gcm;
use aes_gcm::aead::AeadInOut;
use aes_gcm::aes::Aes128;
use aes_gcm::aes::cipher::{BlockCipherEncrypt, KeyInit};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// Octets of a packet that is opened, at most. Jumbo frames are not for the first packets, which must get through everywhere (RFC 9000 §14.1).
pub const LONGEST: usize = 2048;
/// Octets of a tag.
pub(super) const TAG: usize = 16;

/// Keys of one side's Initial packets (RFC 9001 §5.1).
pub struct Keys {
    packet: Aes128Gcm,
    iv: [u8; 12],
    header: Aes128,
}

/// Makes keys: HMAC with SHA-256 (RFC 2104), its beginning done once for each key.
struct Hmac {
    inner: Sha256,
    outer: Sha256,
}

impl Hmac {
    /// Of a key that is not longer than a block.
    fn new(key: &[u8]) -> Self {
        let padded = |with: u8| {
            let mut block = [with; 64];
            block.iter_mut().zip(key).for_each(|(to, from)| *to ^= from);
            Sha256::new_with_prefix(block)
        };
        Self { inner: padded(0x36), outer: padded(0x5c) }
    }

    fn of(&self, text: &[u8]) -> [u8; 32] {
        let inner = self.inner.clone().chain_update(text).finalize();
        self.outer.clone().chain_update(inner).finalize().into()
    }

    /// HKDF-Expand-Label (RFC 8446 §7.1) without a context, for at most 32 octets.
    fn expand(&self, label: &[u8], length: u8) -> [u8; 32] {
        let mut info = [0; 32];
        let said: [&[u8]; 5] = [&[0, length, 6 + label.len() as u8], b"tls13 ", label, &[0], &[1]];
        let mut at = 0;
        for part in said {
            if let Some(place) = info.get_mut(at..at + part.len()) {
                place.copy_from_slice(part);
                at += part.len();
            }
        }
        self.of(info.get(..at).unwrap_or_default())
    }
}

/// What the keys of nearly all connections begin with.
static SALTED_1: LazyLock<Hmac> = LazyLock::new(|| Hmac::new(SALT_1));

impl Keys {
    /// Of the client, which sent its first packet to this connection ID.
    pub fn of_client(version: Version, connection: &[u8]) -> Self {
        Self::new(version, connection, b"client in")
    }

    /// Of the server of that client.
    pub fn of_server(version: Version, connection: &[u8]) -> Self {
        Self::new(version, connection, b"server in")
    }

    fn new(version: Version, connection: &[u8], side: &[u8]) -> Self {
        let initial = if version.salt == SALT_1 {
            SALTED_1.of(connection)
        } else {
            Hmac::new(version.salt).of(connection)
        };
        let initial = Hmac::new(&initial);
        let secret = Hmac::new(&initial.expand(side, 32));
        let labels: [&[u8]; 3] = if version.is_second {
            [b"quicv2 key", b"quicv2 iv", b"quicv2 hp"]
        } else {
            [b"quic key", b"quic iv", b"quic hp"]
        };
        let [key, iv, header] = labels;
        let key: [u8; 16] = cut(&secret.expand(key, 16));
        let header: [u8; 16] = cut(&secret.expand(header, 16));
        Self {
            packet: Aes128Gcm::new(&key.into()),
            iv: cut(&secret.expand(iv, 12)),
            header: Aes128::new(&header.into()),
        }
    }

    /// RFC 9001 §5.4.1: five octets that hide the packet number and its length.
    fn mask(&self, sample: &[u8; 16]) -> [u8; 5] {
        let mut block = (*sample).into();
        self.header.encrypt_block(&mut block);
        let block: [u8; 16] = block.into();
        cut(&block)
    }

    fn nonce(&self, number: u32) -> [u8; 12] {
        let mut nonce = self.iv;
        nonce.iter_mut().rev().zip(number.to_le_bytes()).for_each(|(to, from)| *to ^= from);
        nonce
    }

    /// What is in a packet whose number begins at `number_at`. `None` if the keys don't fit.
    pub fn open<'r>(&self, packet: &[u8], number_at: usize, room: &'r mut [u8; LONGEST]) -> Option<&'r [u8]> {
        let room = room.get_mut(..packet.len())?;
        room.copy_from_slice(packet);
        // RFC 9001 §5.4.2: the sample is taken as if the number had four octets.
        let sample = packet.get(number_at + 4..)?.first_chunk()?;
        let [first_mask, number_mask @ ..] = self.mask(sample);
        let first = room.first_mut()?;
        *first ^= first_mask & 0x0f;
        let size = usize::from(*first & 3) + 1;
        let number_octets = room.get_mut(number_at..number_at + size)?;
        let mut number = 0;
        for (octet, mask) in number_octets.iter_mut().zip(number_mask) {
            *octet ^= mask;
            number = number << 8 | u32::from(*octet);
        }
        let (header, rest) = room.split_at_mut_checked(number_at + size)?;
        let (body, tag) = rest.split_at_mut_checked(rest.len().checked_sub(TAG)?)?;
        let tag = tag.first_chunk::<TAG>()?;
        let nonce = self.nonce(number);
        self.packet.decrypt_inout_detached(&nonce.into(), header, (&mut *body).into(), tag.into()).ok()?;
        Some(body)
    }
    /// The other way round, for whoever makes traffic: a packet of this header, whose last octets are the number, and this content. `None`: the
    /// header is no QUIC header, or the content is too short for the sample (RFC 9001 §5.4.2).
    pub fn seal(&self, header: &[u8], content: &[u8]) -> Option<Vec<u8>> {
        let size = usize::from(header.first()? & 3) + 1;
        let number_at = header.len().checked_sub(size)?;
        let number = header.get(number_at..)?.iter().fold(0, |number, octet| number << 8 | u32::from(*octet));
        let mut packet = [header, content].concat();
        let (_, body) = packet.split_at_mut_checked(header.len())?;
        let tag = self.packet.encrypt_inout_detached(&self.nonce(number).into(), header, body.into()).ok()?;
        packet.extend(tag);
        let sample = packet.get(number_at + 4..)?.first_chunk()?;
        let [first_mask, number_mask @ ..] = self.mask(sample);
        *packet.first_mut()? ^= first_mask & 0x0f;
        for (octet, mask) in packet.get_mut(number_at..number_at + size)?.iter_mut().zip(number_mask) {
            *octet ^= mask;
        }
        Some(packet)
    }
}

/// The first octets.
fn cut<const N: usize>(octets: &[u8]) -> [u8; N] {
    octets.first_chunk().copied().unwrap_or([0; N])
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len() / 2).map(|at| u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).unwrap()).collect()
    }

    /// RFC 9001 §A.2, the CRYPTO frame.
    const FRAME: &str = "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868\
        04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578616d706c652e636f6dff01000100000a\
        00080006001d0017001800100007000504616c706e000500050100000000003300260024001d00209370b2c9caa47fba\
        baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b0003020304000d0010000e0403050306030203080408\
        050806002d00020101001c00024001003900320408ffffffffffffffff05048000ffff07048000ffff08011001048000\
        75300901100f088394c8f03e51570806048000ffff";

    /// The packet of RFC 9001 §A.2, or of RFC 9369 §A.2.
    pub fn example(number: u32, header: &str) -> Vec<u8> {
        let keys = Keys::of_client(Version::of(number).unwrap(), &hex("8394c8f03e515708"));
        let mut content = hex(FRAME);
        content.resize(1162, 0);
        keys.seal(&hex(header), &content).unwrap()
    }

    #[test]
    fn the_first_packet_of_version_1_is_as_in_its_standard() {
        let packet = example(1, "c300000001088394c8f03e5157080000449e00000002");
        let begins = "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11d242b123dc9bd8bab936b47d92ec356c\
            0bab7df5976d27cd449f63300099f3991c260ec4c60d17b31f8429157bb35a1282a643a8d2262cad67500cadb8e7378c";
        assert_eq!(packet[..96], hex(begins));
        assert_eq!(packet[1184..], hex("e221af44860018ab0856972e194cd934"));
        let keys = Keys::of_client(Version::of(1).unwrap(), &hex("8394c8f03e515708"));
        let mut room = [0; LONGEST];
        let opened = keys.open(&packet, 18, &mut room).unwrap();
        assert_eq!(opened[..245], hex(FRAME));
        assert_eq!((opened.len(), &opened[245..]), (1162, &[0; 917][..]));
    }

    #[test]
    fn the_first_packet_of_version_2_is_as_in_its_standard() {
        let packet = example(0x6b33_43cf, "d36b3343cf088394c8f03e5157080000449e00000002");
        let begins = "d76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485dd04de806071bf03dceebfa162e75d6c\
            96058bdbfb127cdfcbf903388e99ad049f9a3dd4425ae4d0992cfff18ecf0fdb5a842d09747052f17ac2053d21f57c5d";
        assert_eq!(packet[..96], hex(begins));
        assert_eq!(packet[1184..], hex("a18b2faa745b6fe189cf772a9f84cbfc"));
    }

    /// RFC 9001 §A.3.
    #[test]
    fn a_servers_packet_is_opened_with_the_clients_connection_id() {
        let packet = hex(
            "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a5816b6394100f37a1c69797554780bb3\
            8cc5a99f5ede4cf73c3ec2493a1839b3dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84022f8ef4\
            cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc42158407dd074ee",
        );
        let keys = Keys::of_server(Version::of(1).unwrap(), &hex("8394c8f03e515708"));
        let mut room = [0; LONGEST];
        let opened = keys.open(&packet, 18, &mut room).unwrap();
        assert_eq!(opened[..9], hex("0200000000 0600405a".replace(' ', "").as_str()));
    }

    #[test]
    fn other_keys_open_nothing() {
        let packet = example(1, "c300000001088394c8f03e5157080000449e00000002");
        let mut room = [0; LONGEST];
        for other in 0..=255_u8 {
            let keys = Keys::of_client(Version::of(1).unwrap(), &[other; 8]);
            assert_eq!(keys.open(&packet, 18, &mut room), None);
        }
        let keys = Keys::of_client(Version::of(1).unwrap(), &hex("8394c8f03e515708"));
        for at in 0..packet.len() {
            let mut changed = packet.clone();
            // The token's length and what is before are not read here, but they are part of what the tag is of.
            changed[at] ^= 1;
            assert_eq!(keys.open(&changed, 18, &mut room), None, "octet {at}");
        }
        for length in 0..packet.len() {
            assert_eq!(keys.open(&packet[..length], 18, &mut room), None);
        }
    }
}
