//! Appending messages and IEs to a buffer.
//!
//! Nothing is measured before it is written: an IE's or a message's length is set when what it counts
//! stands. A length that doesn't fit its sixteen bits is found once, by [`encode_message`], for a group can
//! only be too long in a message that is.

use crate::header::Header;

/// A message that its length field can't count: nothing was appended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a PFCP message of {0} octets does not fit its length field")]
pub struct TooLong(pub usize);

/// Appends a message: header, what `body` appends, and the length of both.
pub fn encode_message(
    header: &Header,
    out: &mut Vec<u8>,
    body: impl FnOnce(&mut Vec<u8>),
) -> Result<(), TooLong> {
    let start = out.len();
    header.encode(out);
    body(out);
    let total = out.len() - start;
    let Ok(length) = u16::try_from(total - 4) else {
        out.truncate(start);
        return Err(TooLong(total));
    };
    set_length(out, start + 2, length);
    Ok(())
}

/// Appends one IE whose value is what `value` appends; a group if that is IEs.
///
/// A value beyond 65,535 octets gets a wrong length here and is refused by [`encode_message`].
#[inline]
pub fn encode_ie(out: &mut Vec<u8>, kind: u16, value: impl FnOnce(&mut Vec<u8>)) {
    let [a, b] = kind.to_be_bytes();
    out.extend_from_slice(&[a, b, 0, 0]);
    let start = out.len();
    value(out);
    let length = (out.len() - start) as u16;
    set_length(out, start - 2, length);
}

#[inline]
fn set_length(out: &mut [u8], at: usize, length: u16) {
    if let Some(field) = out.get_mut(at..at + 2) {
        field.copy_from_slice(&length.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::ids::SequenceNumber;
    use crate::message_type::MessageType;

    #[test]
    fn groups_count_what_is_in_them() {
        let mut out = Vec::new();
        encode_ie(&mut out, 15, |out| encode_ie(out, 56, |out| out.extend_from_slice(&[0, 7])));
        assert_eq!(out, [0, 15, 0, 6, 0, 56, 0, 2, 0, 7]);
    }

    #[test]
    fn what_does_not_fit_is_not_sent() {
        let header = Header::node(MessageType::HEARTBEAT_REQUEST, SequenceNumber(1));
        let mut out = vec![9];
        let error = encode_message(&header, &mut out, |out| {
            encode_ie(out, 22, |out| out.resize(out.len() + 70_000, 0));
        });
        assert_eq!(error, Err(TooLong(70_012)));
        assert_eq!(out, [9]);
    }
}
