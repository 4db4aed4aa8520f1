//! Google's handshake, from before QUIC had TLS: a list of tags.

use crate::classify::Sheet;
use crate::protocols::cursor::Cursor;

/// What messages of the handshake are called.
const NAMES: [&[u8; 4]; 3] = [b"CHLO", b"REJ\0", b"SHLO"];
/// Tags that are read of one message, at most.
const TAGS: usize = 64;
/// A ClientHello begins at most so far into a packet in clear: public header, hash, and the frame's header.
const FAR: usize = 64;

/// A message of the handshake: "CHLO", "REJ", or "SHLO", how many tags, and where the value of each ends.
#[derive(Clone, Copy, Debug)]
pub struct Hello<'b> {
    tags: &'b [u8],
    values: &'b [u8],
}

impl<'b> Hello<'b> {
    /// Of a message's beginning.
    pub fn parse(bytes: &'b [u8]) -> Option<Self> {
        let (name, rest) = bytes.split_first_chunk()?;
        if !NAMES.contains(&name) {
            return None;
        }
        let mut cursor = Cursor::new(rest);
        let count = usize::from(cursor.u16()?.swap_bytes());
        let padding = cursor.u16()?;
        let tags = cursor.take(count * 8).filter(|_| padding == 0 && (1..=TAGS).contains(&count))?;
        Some(Self { tags, values: cursor.rest() })
    }

    /// Tags and values; of a value that is cut off, what is there.
    pub fn values(&self) -> impl Iterator<Item = ([u8; 4], &'b [u8])> + use<'b> {
        let (mut tags, values, mut from) = (Cursor::new(self.tags), self.values, 0);
        std::iter::from_fn(move || {
            let (tag, end) = (tags.u32()?.to_be_bytes(), tags.u32()?.swap_bytes() as usize);
            let value = values.get(from..end.min(values.len()))?;
            from = end;
            Some((tag, value))
        })
    }

    /// Notes what it says about the application.
    pub fn note(&self, sheet: &mut Sheet) {
        for (tag, value) in self.values() {
            match &tag {
                b"SNI\0" => sheet.host.set(value),
                b"UAID" => sheet.agent.set(value),
                _ => {}
            }
        }
    }
}

/// The handshake in a packet of a version that sends it in clear.
pub fn in_clear(packet: &[u8]) -> Option<Hello<'_>> {
    let begins = packet.get(..packet.len().min(FAR))?;
    let at = begins.windows(4).position(|it| NAMES.iter().any(|name| *name == it))?;
    Hello::parse(packet.get(at..)?)
}
