//! Writing a field into bytes at an offset, without a panic if it isn't there.

/// Overwrites octets at `at`; nothing happens if they don't fit.
#[inline]
pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..).and_then(|b| b.get_mut(..value.len())) {
        place.copy_from_slice(value);
    }
}

/// Overwrites a 16-bit field at `at`.
#[inline]
pub(crate) fn put16(bytes: &mut [u8], at: usize, value: u16) {
    put(bytes, at, &value.to_be_bytes());
}

/// Reads a 16-bit field at `at`.
#[inline]
pub(crate) fn get16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk::<2>().map(|o| u16::from_be_bytes(*o))
}
