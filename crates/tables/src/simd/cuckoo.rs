//! Bulks of the flat cuckoo tables, by processor.
//!
//! The bodies are written once, over a [`Kernel`]: how a group of keys is hashed, and how a line is compared with a key. Each processor has a
//! file that says so in its instructions, and an entry point that is compiled for them, into which the body and its kernels are inlined.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod plain;

use super::processor::Processor;
use crate::cuckoo::Secrets;
use crate::cuckoo::strays::is_marked;
use crate::image::Line;
use crate::prefetch::prefetch_slice_at;
pub(crate) use plain::Plain;

/// Keys that are hashed at once, and whose lines are asked for together.
pub(crate) const GROUP: usize = 16;

/// Where a group's keys are.
#[derive(Clone, Copy)]
pub(crate) struct Places {
    pub home: [u32; GROUP],
    pub other: [u32; GROUP],
}

impl Places {
    pub(crate) const NONE: Self = Self { home: [0; GROUP], other: [0; GROUP] };
}

/// Keys of four words, and slots of which they are a part.
pub(crate) trait Kernel {
    /// The buckets of up to [`GROUP`] keys.
    fn places(secrets: &Secrets<4>, buckets: u32, keys: &[[u32; 4]], into: &mut Places);
    /// The slot of a line that has a key under the mask and is not vacant; 4 where none has.
    fn find(line: &Line, key: &[u32; 4], mask: &[u32; 4]) -> usize;
}

/// What is looked up in: buckets of four slots, as `crate::image` has them.
#[derive(Clone, Copy)]
pub(crate) struct Inline<'a> {
    pub lines: &'a [Line],
    /// Of each bucket, which sorts of keys may be elsewhere.
    pub marks: &'a [u8],
    pub secrets: &'a Secrets<4>,
    pub mask: &'a [u32; 4],
}

/// Looks up a bulk: `out[i]` is the value in the slot that has `keys[i]`.
pub(crate) fn bulk(processor: Processor, table: Inline<'_>, keys: &[[u32; 4]], out: &mut [Option<u32>]) {
    match processor {
        #[cfg(target_arch = "x86_64")]
        Processor::Avx512 if processor.is_here() => avx512::bulk(table, keys, out),
        #[cfg(target_arch = "x86_64")]
        Processor::Avx2 if processor.is_here() => avx2::bulk(table, keys, out),
        _ => body::<Plain>(table, keys, out),
    }
}

/// The places of a group.
pub(crate) fn places(
    processor: Processor,
    secrets: &Secrets<4>,
    buckets: u32,
    keys: &[[u32; 4]],
    into: &mut Places,
) {
    match processor {
        #[cfg(target_arch = "x86_64")]
        Processor::Avx512 if processor.is_here() => avx512::places(secrets, buckets, keys, into),
        #[cfg(target_arch = "x86_64")]
        Processor::Avx2 if processor.is_here() => avx2::places(secrets, buckets, keys, into),
        _ => Plain::places(secrets, buckets, keys, into),
    }
}

/// What a slot says: nothing where it is vacant, or none.
#[inline(always)]
pub(crate) fn value(line: &Line, slot: usize) -> Option<u32> {
    line.0.get(slot * 4 + 3).and_then(|word| (word >> 8).checked_sub(1))
}

/// Groups under way: one whose homes and marks come, one whose other buckets come, and one that is answered.
const AHEAD: usize = 3;

/// All lines that a key may be in are asked for before they are read: its home with its marks, and its other bucket once they say that its sort has strays.
/// A mark that is read before it has come stops all that is behind it: then hits in DRAM are half as fast.
#[inline(always)]
fn body<K: Kernel>(table: Inline<'_>, keys: &[[u32; 4]], out: &mut [Option<u32>]) {
    let keys = keys.get(..out.len()).unwrap_or(keys);
    let groups = keys.len().div_ceil(GROUP);
    let mut under_way = [Group::NONE; AHEAD];
    for round in 0..groups + AHEAD - 1 {
        let begin = round * GROUP;
        if let (Some(coming), Some(group)) = (keys.get(begin..), under_way.get_mut(round % AHEAD)) {
            ask::<K>(table, coming.get(..GROUP).unwrap_or(coming), group);
        }
        if let Some(marked) = round.checked_sub(1)
            && let Some(group) = under_way.get_mut(marked % AHEAD)
        {
            ask_strays(table, group);
        }
        if let Some(ready) = (round + 1).checked_sub(AHEAD)
            && let Some(group) = under_way.get(ready % AHEAD)
        {
            let begin = ready * GROUP;
            let (keys, out) = (keys.get(begin..).unwrap_or(&[]), out.get_mut(begin..).unwrap_or(&mut []));
            answer::<K>(table, keys, group, out);
        }
    }
}

/// A group's look-ups under way.
#[derive(Clone, Copy)]
struct Group {
    places: Places,
    /// Which keys may be elsewhere.
    strays: u32,
}

impl Group {
    const NONE: Self = Self { places: Places::NONE, strays: 0 };
}

#[inline(always)]
fn ask<K: Kernel>(table: Inline<'_>, keys: &[[u32; 4]], group: &mut Group) {
    let places = &mut group.places;
    K::places(table.secrets, table.lines.len() as u32, keys, places);
    for home in places.home.iter().take(keys.len()) {
        prefetch_slice_at(table.lines, *home as usize);
        prefetch_slice_at(table.marks, *home as usize);
    }
}

/// Asks for the other buckets of those whose sort has strays.
#[inline(always)]
fn ask_strays(table: Inline<'_>, group: &mut Group) {
    let places = &group.places;
    group.strays = 0;
    for (at, (home, other)) in places.home.iter().zip(&places.other).enumerate() {
        let may_be = is_marked(table.marks, *home, *other);
        group.strays |= u32::from(may_be) << at;
        // Without a branch: it couldn't be predicted.
        let bucket = std::hint::select_unpredictable(may_be, *other, *home);
        prefetch_slice_at(table.lines, bucket as usize);
    }
}

#[inline(always)]
fn answer<K: Kernel>(table: Inline<'_>, keys: &[[u32; 4]], group: &Group, out: &mut [Option<u32>]) {
    let Inline { lines, mask, .. } = table;
    let mut nowhere = 0;
    for (at, ((key, home), out)) in keys.iter().zip(&group.places.home).zip(&mut *out).enumerate() {
        let Some(line) = lines.get(*home as usize) else { return };
        let slot = K::find(line, key, mask);
        *out = value(line, slot);
        nowhere |= u32::from(slot == 4) << at;
    }
    let mut left = nowhere & group.strays;
    while left != 0 {
        let at = left.trailing_zeros() as usize;
        left &= left - 1;
        if let (Some(other), Some(key), Some(out)) =
            (group.places.other.get(at), keys.get(at), out.get_mut(at))
            && let Some(line) = lines.get(*other as usize)
        {
            *out = value(line, K::find(line, key, mask));
        }
    }
}
