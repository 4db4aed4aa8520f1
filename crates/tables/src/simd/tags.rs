//! Bulks of the table of tags and records, by processor.
//!
//! As for [`super::cuckoo`]: one body, and for each processor how eight tags and a key of ten words are compared.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use super::processor::Processor;
use crate::classify::Tuple6;
use crate::classify::VALUE;
use crate::classify::opposite;
use crate::cuckoo::{Secrets, scale};
use crate::image::Line;
use crate::prefetch::prefetch_slice_at;

/// Look-ups whose lines are asked for together.
const GROUP: usize = 16;

/// What is looked up in, as `crate::image` has it.
#[derive(Clone, Copy)]
pub(crate) struct Tagged<'a> {
    pub buckets: &'a [Line],
    pub records: &'a [Line],
    pub secrets: &'a Secrets<10>,
}

/// How lines are compared.
trait Kernel {
    /// The number of the record (one more than its place) of a tag in a bucket, one of them if there are several; 0 where there is none.
    fn find(line: &Line, tag: u32) -> u32;
    /// Whether a record has this key.
    fn holds(line: &Line, key: &Tuple6) -> bool;
}

/// In plain code.
struct Plain;

impl Kernel for Plain {
    #[inline(always)]
    fn find(line: &Line, tag: u32) -> u32 {
        let (tags, numbers) = line.0.split_at(8);
        // A vacant slot's number is 0 anyway.
        tags.iter()
            .zip(numbers)
            .fold(0, |found, (own, number)| if *own == tag { found.max(*number) } else { found })
    }

    #[inline(always)]
    fn holds(line: &Line, key: &Tuple6) -> bool {
        line.0.iter().zip(&key.words).fold(0, |differs, (own, word)| differs | (own ^ word)) == 0
    }
}

/// Looks up a bulk.
pub(crate) fn bulk(processor: Processor, table: Tagged<'_>, keys: &[Tuple6], out: &mut [Option<u32>]) {
    match processor {
        #[cfg(target_arch = "x86_64")]
        Processor::Avx512 if processor.is_here() => avx512::bulk(table, keys, out),
        #[cfg(target_arch = "x86_64")]
        Processor::Avx2 if processor.is_here() => avx2::bulk(table, keys, out),
        _ => body::<Plain>(table, keys, out),
    }
}

/// A group's look-ups under way.
#[derive(Clone, Copy)]
struct Group {
    home: [u32; GROUP],
    tag: [u32; GROUP],
    /// One more than the record that was asked for.
    number: [u32; GROUP],
    /// Which ones went on to the other bucket.
    away: u32,
}

impl Group {
    const NONE: Self = Self { home: [0; GROUP], tag: [0; GROUP], number: [0; GROUP], away: 0 };
}

/// Three groups are under way: one whose home buckets come, one whose records come (or other buckets, for those that aren't at home), and one that
/// is answered.
#[inline(always)]
fn body<K: Kernel>(table: Tagged<'_>, keys: &[Tuple6], out: &mut [Option<u32>]) {
    let keys = keys.get(..out.len()).unwrap_or(keys);
    let groups = keys.len().div_ceil(GROUP);
    let slice = |group: usize| {
        let begin = (group * GROUP).min(keys.len());
        keys.get(begin..(begin + GROUP).min(keys.len())).unwrap_or(&[])
    };
    let mut under_way = [Group::NONE; 4];
    for round in 0..groups + 3 {
        if let Some(group) = under_way.get_mut(round % 4) {
            ask(table, slice(round), group);
        }
        if let Some(group) = under_way.get_mut((round + 3) % 4)
            && round >= 1
        {
            at_home::<K>(table, slice(round - 1).len(), group);
        }
        if let Some(group) = under_way.get_mut((round + 2) % 4)
            && round >= 2
        {
            away::<K>(table, group);
        }
        if let Some(group) = under_way.get((round + 1) % 4)
            && round >= 3
        {
            let begin = (round - 3) * GROUP;
            answer::<K>(table, slice(round - 3), group, out.get_mut(begin..).unwrap_or(&mut []));
        }
    }
}

#[inline(always)]
fn ask(table: Tagged<'_>, keys: &[Tuple6], group: &mut Group) {
    let buckets = table.buckets.len() as u32;
    for ((key, home), tag) in keys.iter().zip(&mut group.home).zip(&mut group.tag) {
        let hash = table.secrets.hash(&key.words);
        (*home, *tag) = (scale(hash.a, buckets), hash.b);
        prefetch_slice_at(table.buckets, *home as usize);
    }
}

#[inline(always)]
fn at_home<K: Kernel>(table: Tagged<'_>, count: usize, group: &mut Group) {
    group.away = 0;
    let slots = group.home.iter().zip(&group.tag).zip(&mut group.number).enumerate().take(count);
    for (at, ((home, tag), number)) in slots {
        let Some(line) = table.buckets.get(*home as usize) else { return };
        let found = K::find(line, *tag);
        *number = found;
        group.away |= u32::from(found == 0) << at;
        // Nobody's record, where there is none: that does no harm.
        prefetch_slice_at(table.records, found.wrapping_sub(1) as usize);
    }
    let mut left = group.away;
    while left != 0 {
        let at = left.trailing_zeros() as usize;
        left &= left - 1;
        if let (Some(home), Some(tag)) = (group.home.get(at), group.tag.get(at)) {
            let other = opposite(*home, *tag, table.buckets.len() as u32);
            prefetch_slice_at(table.buckets, other as usize);
        }
    }
}

#[inline(always)]
fn away<K: Kernel>(table: Tagged<'_>, group: &mut Group) {
    let mut left = group.away;
    while left != 0 {
        let at = left.trailing_zeros() as usize;
        left &= left - 1;
        if let (Some(home), Some(tag), Some(number)) =
            (group.home.get(at), group.tag.get(at), group.number.get_mut(at))
            && let Some(line) = table.buckets.get(opposite(*home, *tag, table.buckets.len() as u32) as usize)
        {
            let found = K::find(line, *tag);
            *number = found;
            prefetch_slice_at(table.records, found.wrapping_sub(1) as usize);
        }
    }
}

#[inline(always)]
fn answer<K: Kernel>(table: Tagged<'_>, keys: &[Tuple6], group: &Group, out: &mut [Option<u32>]) {
    for (at, ((key, number), out)) in keys.iter().zip(&group.number).zip(out).enumerate() {
        let record = table.records.get(number.wrapping_sub(1) as usize);
        let is_it = record.filter(|line| K::holds(line, key));
        *out = match is_it {
            Some(line) => Some(line.0[VALUE]),
            // No tag at all, or another key's.
            None if *number == 0 => None,
            None => search(table, key, group, at),
        };
    }
}

/// All slots that have the tag, in both buckets.
#[cold]
#[inline(never)]
fn search(table: Tagged<'_>, key: &Tuple6, group: &Group, at: usize) -> Option<u32> {
    let (home, tag) = (*group.home.get(at)?, *group.tag.get(at)?);
    let buckets = [home, opposite(home, tag, table.buckets.len() as u32)];
    buckets.into_iter().find_map(|bucket| {
        let (tags, numbers) = table.buckets.get(bucket as usize)?.0.split_at(8);
        tags.iter().zip(numbers).filter(|(own, _)| **own == tag).find_map(|(_, number)| {
            let record = table.records.get(number.checked_sub(1)? as usize)?;
            record.0.starts_with(&key.words).then_some(record.0[VALUE])
        })
    })
}
