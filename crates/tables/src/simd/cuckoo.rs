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

/// While a group's home lines come, the group before is compared, and what it did not find at home is asked for where else it may be.
#[inline(always)]
fn body<K: Kernel>(table: Inline<'_>, keys: &[[u32; 4]], out: &mut [Option<u32>]) {
    let Inline { lines, mask, .. } = table;
    let (keys, out) = (keys.get(..out.len()).unwrap_or(keys), out);
    let buckets = lines.len() as u32;
    let mut coming = Places::NONE;
    let mut away = Away { at: [0; 2 * GROUP], bucket: [0; 2 * GROUP], count: 0 };
    let first = keys.get(..GROUP.min(keys.len())).unwrap_or(keys);
    ask::<K>(table, buckets, first, &mut coming);
    let mut begin = 0;
    while begin < keys.len() {
        let here = coming;
        let end = (begin + GROUP).min(keys.len());
        let next = keys.get(end..(end + GROUP).min(keys.len())).unwrap_or(&[]);
        ask::<K>(table, buckets, next, &mut coming);
        let before = away.count;
        for (at, (home, other)) in (begin..end).zip(here.home.iter().zip(&here.other)) {
            let (Some(line), Some(key), Some(out)) =
                (lines.get(*home as usize), keys.get(at), out.get_mut(at))
            else {
                return;
            };
            let slot = K::find(line, key, mask);
            *out = value(line, slot);
            // Without a branch: it couldn't be predicted. Its line is asked for below.
            away.push(at as u32, *other, slot == 4);
        }
        for bucket in away.bucket.iter().take(away.count).skip(before) {
            prefetch_slice_at(lines, *bucket as usize);
        }
        away.answer::<K>(before, lines, keys, mask, out);
        begin = end;
    }
    away.answer::<K>(away.count, lines, keys, mask, out);
}

#[inline(always)]
fn ask<K: Kernel>(table: Inline<'_>, buckets: u32, keys: &[[u32; 4]], places: &mut Places) {
    K::places(table.secrets, buckets, keys, places);
    for home in places.home.iter().take(keys.len()) {
        prefetch_slice_at(table.lines, *home as usize);
    }
}

/// Look-ups that did not end at home.
struct Away {
    at: [u32; 2 * GROUP],
    bucket: [u32; 2 * GROUP],
    count: usize,
}

impl Away {
    #[inline(always)]
    fn push(&mut self, at: u32, bucket: u32, goes_on: bool) {
        if let (Some(own), Some(place)) = (self.at.get_mut(self.count), self.bucket.get_mut(self.count)) {
            (*own, *place) = (at, bucket);
            self.count += usize::from(goes_on);
        }
    }

    /// Answers the first `count`.
    #[inline(always)]
    fn answer<K: Kernel>(
        &mut self,
        count: usize,
        lines: &[Line],
        keys: &[[u32; 4]],
        mask: &[u32; 4],
        out: &mut [Option<u32>],
    ) {
        for (at, bucket) in self.at.iter().zip(&self.bucket).take(count) {
            let (Some(line), Some(key), Some(out)) =
                (lines.get(*bucket as usize), keys.get(*at as usize), out.get_mut(*at as usize))
            else {
                return;
            };
            let slot = K::find(line, key, mask);
            *out = value(line, slot);
        }
        self.at.copy_within(count..self.count, 0);
        self.bucket.copy_within(count..self.count, 0);
        self.count -= count;
    }
}
