//! Runs of bits in octets, the first bit of an octet in its highest place.

/// Copies `count` bits, from bit `at` of `from` on, to bit `to_at` of `to`. All other bits of `to` stay as they are.
///
/// # Panics
/// If there are not as many bits in either.
pub(crate) fn copy(from: &[u8], at: usize, to: &mut [u8], to_at: usize, count: usize) {
    assert!(at + count <= from.len() * 8 && to_at + count <= to.len() * 8, "bits beyond a buffer's end");
    // Up to a whole octet of `to`.
    let head = (to_at.next_multiple_of(8) - to_at).min(count);
    put(to, to_at, head, read(from, at));
    let (mut at, end) = (at + head, at + count);
    let to = &mut to[(to_at + head) / 8..];
    let whole = (end - at) / 8;
    let (octets, rest) = to.split_at_mut(whole);
    if at.is_multiple_of(8) {
        octets.copy_from_slice(&from[at / 8..][..whole]);
    } else {
        for octets in octets.chunks_mut(8) {
            octets.copy_from_slice(&read(from, at).to_be_bytes()[..octets.len()]);
            at += 8 * octets.len();
        }
    }
    put(rest, 0, (end - at) % 8, read(from, end - (end - at) % 8));
}

/// The 64 bits from bit `at` on, the first of them uppermost; zeros where `from` has ended.
#[inline(always)]
pub(crate) fn read(from: &[u8], at: usize) -> u64 {
    let (octet, shift) = (at / 8, at % 8);
    if let Some(nine) = from.get(octet..).and_then(<[u8]>::first_chunk::<9>) {
        let [eight @ .., last] = *nine;
        u64::from_be_bytes(eight) << shift | u64::from(last) >> (8 - shift)
    } else {
        let mut all = [0; 16];
        let left = from.get(octet..).unwrap_or_default();
        all[..left.len()].copy_from_slice(left);
        (u128::from_be_bytes(all) << shift >> 64) as u64
    }
}

/// Fewer than nine bits, all of one octet.
fn put(to: &mut [u8], at: usize, count: usize, bits: u64) {
    if count > 0 {
        let mask = !(0xff_u8.checked_shr(count as u32).unwrap_or(0)) >> (at % 8);
        let octet = &mut to[at / 8];
        *octet = *octet & !mask | ((bits >> 56) as u8 >> (at % 8)) & mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bit(octets: &[u8], at: usize) -> u8 {
        octets[at / 8] >> (7 - at % 8) & 1
    }

    proptest! {
        #[test]
        fn a_run_is_copied_bit_for_bit(
            from in prop::collection::vec(any::<u8>(), 0..60),
            to in prop::collection::vec(any::<u8>(), 0..60),
            at in 0_usize..480, to_at in 0_usize..480, count in 0_usize..480,
        ) {
            let (at, to_at) = (at.min(from.len() * 8), to_at.min(to.len() * 8));
            let count = count.min(from.len() * 8 - at).min(to.len() * 8 - to_at);
            let mut found = to.clone();
            copy(&from, at, &mut found, to_at, count);
            for place in 0..to.len() * 8 {
                let expected =
                    if (to_at..to_at + count).contains(&place) { bit(&from, at + place - to_at) } else { bit(&to, place) };
                prop_assert_eq!(bit(&found, place), expected, "bit {}", place);
            }
            for place in 0..64 {
                let expected = if at + place < from.len() * 8 { bit(&from, at + place) } else { 0 };
                prop_assert_eq!((read(&from, at) >> (63 - place) & 1) as u8, expected);
            }
        }
    }
}
