//! Lines, nodes and keys as the words that they consist of.

use crate::cuckoo::slots::Short;
use crate::image::Line;
use crate::lpm::Node;

/// The words of lines.
pub(crate) fn of_lines(lines: &[Line]) -> &[u32] {
    let words: *const u32 = lines.as_ptr().cast();
    // SAFETY: a `Line` is `repr(C)`: 16 words and, with 64 bytes aligned to 64, no padding. The result is borrowed as `lines` is.
    unsafe { std::slice::from_raw_parts(words, lines.len() * 16) }
}

/// The words of nodes.
pub(crate) fn of_nodes(nodes: &[Node]) -> &[u32] {
    const { assert!(size_of::<Node>() == 1024) }
    // SAFETY: a `Node` is `repr(C)`: 256 words and, with 1,024 bytes aligned to 64, no padding. The result is borrowed as `nodes` is.
    unsafe { std::slice::from_raw_parts(nodes.as_ptr().cast(), nodes.len() * 256) }
}

/// The words of keys.
#[inline(always)]
pub(crate) fn of_keys<S>(keys: &[Short<S>]) -> &[[u32; 4]] {
    const { assert!(size_of::<Short<S>>() == 16) }
    // SAFETY: a `Short` is `repr(C)`: four words and a marker without size, 16 bytes, aligned to more than words are. Borrowed as `keys` is.
    unsafe { std::slice::from_raw_parts(keys.as_ptr().cast(), keys.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::Tuple4;

    #[test]
    fn words_are_those_of_the_lines_and_keys_in_order() {
        let lines = [0_u32, 1, 2].map(|at| Line(std::array::from_fn(|word| at * 16 + word as u32)));
        assert_eq!(of_lines(&lines), (0..48).collect::<Vec<u32>>());
        assert_eq!(of_lines(&[]), [0_u32; 0]);
        let keys = [1, 2].map(|at| Tuple4::of([at, 2 * at, 3 * at, 4 * at]));
        assert_eq!(of_keys(&keys), [[1, 2, 3, 4], [2, 4, 6, 8]]);
    }
}
