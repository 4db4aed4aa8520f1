//! Walking information elements (TS 29.244 §8.1.1).
//!
//! An IE is a type, a length and a value. A type from 32768 on belongs to an enterprise, whose number leads
//! the value. A grouped IE's value is IEs again; the typed decoders know which are and go down at most four
//! levels, so that no input chooses the depth of recursion.

use crate::cause::Cause;
use crate::error::{DecodeError, Fault};

/// IEs that a message, or a group within it, may have before it is refused with "No resources available".
///
/// One session's whole rule set is some dozens; a datagram can carry 16,000 empty ones.
pub const MAX_IES_PER_MESSAGE: usize = 1024;

/// One information element, borrowed from the datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ie<'a> {
    /// Its type; [`crate::ie_type`] has the names.
    pub kind: u16,
    /// Whose type it is, for types from 32768 on (§8.1.1). The typed decoders ignore such IEs.
    pub enterprise: Option<u16>,
    /// The value, after the enterprise number if there is one.
    pub value: &'a [u8],
    /// Where its type field is: octets from the start of the message's body.
    pub offset: usize,
}

impl<'a> Ie<'a> {
    /// The IEs inside a grouped IE.
    pub fn group(&self) -> Ies<'a> {
        Ies { bytes: self.value, offset: self.offset + 4, left: MAX_IES_PER_MESSAGE }
    }

    /// This IE refused.
    pub(crate) const fn refuse(&self, cause: Cause) -> DecodeError {
        DecodeError::new(cause, self.kind, self.offset)
    }

    pub(crate) const fn fault(&self, fault: Fault) -> DecodeError {
        self.refuse(fault.cause())
    }
}

/// The IEs of a message body or of a grouped IE, in order.
///
/// After an error the walk is over: where the next IE begins can't be known.
#[derive(Clone, Debug)]
pub struct Ies<'a> {
    bytes: &'a [u8],
    offset: usize,
    left: usize,
}

impl<'a> Ies<'a> {
    /// Walks a message body.
    pub const fn new(body: &'a [u8]) -> Self {
        Self { bytes: body, offset: 0, left: MAX_IES_PER_MESSAGE }
    }

    /// Where the next IE begins: octets from the start of the message's body.
    pub const fn offset(&self) -> usize {
        self.offset
    }

    fn fail(&mut self, cause: Cause, kind: Option<u16>) -> DecodeError {
        self.bytes = &[];
        DecodeError { cause, offending_ie: kind, failed_rule: None, offset: self.offset }
    }
}

impl<'a> Iterator for Ies<'a> {
    type Item = Result<Ie<'a>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let Some((&[a, b, c, d], after)) = self.bytes.split_first_chunk::<4>() else {
            let kind = self.bytes.first_chunk::<2>().map(|&kind| u16::from_be_bytes(kind));
            return Some(Err(self.fail(Cause::INVALID_LENGTH, kind)));
        };
        let kind = u16::from_be_bytes([a, b]);
        let length = usize::from(u16::from_be_bytes([c, d]));
        let Some((value, rest)) = after.split_at_checked(length) else {
            return Some(Err(self.fail(Cause::INVALID_LENGTH, Some(kind))));
        };
        if self.left == 0 {
            return Some(Err(self.fail(Cause::NO_RESOURCES, Some(kind))));
        }
        self.left -= 1;
        let (enterprise, value) = match value.split_first_chunk::<2>() {
            Some((&number, value)) if kind >= 0x8000 => (Some(u16::from_be_bytes(number)), value),
            _ => (None, value),
        };
        let ie = Ie { kind, enterprise, value, offset: self.offset };
        self.bytes = rest;
        self.offset += 4 + length;
        Some(Ok(ie))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn types_lengths_values_and_places() {
        let bytes = [0, 96, 0, 4, 1, 2, 3, 4, 0x80, 1, 0, 3, 0x28, 0xaf, 9, 0, 22, 0, 0];
        let ies: Vec<_> = Ies::new(&bytes).map(Result::unwrap).collect();
        assert_eq!(ies[0], Ie { kind: 96, enterprise: None, value: &[1, 2, 3, 4], offset: 0 });
        assert_eq!(ies[1], Ie { kind: 0x8001, enterprise: Some(10415), value: &[9], offset: 8 });
        assert_eq!(ies[2], Ie { kind: 22, enterprise: None, value: &[], offset: 15 });
        assert_eq!(ies.len(), 3);
    }

    #[test]
    fn a_group_knows_its_place_in_the_message() {
        let bytes = [0, 22, 0, 0, 0, 15, 0, 6, 0, 56, 0, 2, 0, 7];
        let group = Ies::new(&bytes).nth(1).unwrap().unwrap();
        let id = group.group().next().unwrap().unwrap();
        assert_eq!((id.kind, id.value, id.offset), (56, &[0, 7][..], 8));
    }

    #[test]
    fn a_length_beyond_the_end_names_the_ie_and_ends_the_walk() {
        let bytes = [0, 22, 0, 0, 0, 96, 0, 5, 1, 2, 3, 4];
        let mut ies = Ies::new(&bytes);
        assert!(ies.next().unwrap().is_ok());
        let error = ies.next().unwrap().unwrap_err();
        assert_eq!(error, DecodeError::new(Cause::INVALID_LENGTH, 96, 4));
        assert_eq!(ies.next(), None);
    }

    #[test]
    fn three_octets_are_no_ie() {
        let error = Ies::new(&[0, 96, 0]).next().unwrap().unwrap_err();
        assert_eq!((error.cause, error.offending_ie), (Cause::INVALID_LENGTH, Some(96)));
        let error = Ies::new(&[0]).next().unwrap().unwrap_err();
        assert_eq!((error.cause, error.offending_ie), (Cause::INVALID_LENGTH, None));
    }

    #[test]
    fn there_is_an_end_to_what_is_read() {
        let bytes = [0, 22, 0, 0].repeat(MAX_IES_PER_MESSAGE + 5);
        let mut ies = Ies::new(&bytes);
        assert_eq!(ies.by_ref().take(MAX_IES_PER_MESSAGE).flatten().count(), MAX_IES_PER_MESSAGE);
        assert_eq!(ies.next().unwrap().unwrap_err().cause, Cause::NO_RESOURCES);
        assert_eq!(ies.next(), None);
    }
}
