//! Bulks of DIR-24-8, by processor: sixteen entries of the root are read together, and what leads on is looked up in a second round.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use super::processor::Processor;
use crate::lpm::{Entry, Node};
use crate::prefetch::prefetch_slice_at;
use std::net::Ipv4Addr;

/// Addresses whose entries are read together.
const LANES: usize = 16;
/// Addresses whose second reads are under way together.
const GROUP: usize = 64;

/// What is looked up in.
#[derive(Clone, Copy)]
pub(crate) struct Routes<'a> {
    /// 2^24 entries.
    pub root: &'a [u32],
    pub nodes: &'a [Node],
    pub default: Option<u16>,
}

/// How entries are read.
trait Kernel {
    /// The root's entries of sixteen addresses.
    fn read(root: &[u32], addresses: &[Ipv4Addr; LANES], into: &mut [u32; LANES]);
}

/// In plain code.
struct Plain;

impl Kernel for Plain {
    #[inline(always)]
    fn read(root: &[u32], addresses: &[Ipv4Addr; LANES], into: &mut [u32; LANES]) {
        for (address, entry) in addresses.iter().zip(into) {
            *entry = root.get((address.to_bits() >> 8) as usize).copied().unwrap_or(0);
        }
    }
}

/// Looks up a bulk.
pub(crate) fn bulk(
    processor: Processor,
    routes: Routes<'_>,
    addresses: &[Ipv4Addr],
    out: &mut [Option<u16>],
) {
    match processor {
        #[cfg(target_arch = "x86_64")]
        Processor::Avx512 if processor.is_here() => avx512::bulk(routes, addresses, out),
        #[cfg(target_arch = "x86_64")]
        Processor::Avx2 if processor.is_here() => avx2::bulk(routes, addresses, out),
        _ => body::<Plain>(routes, addresses, out),
    }
}

#[inline(always)]
fn body<K: Kernel>(routes: Routes<'_>, addresses: &[Ipv4Addr], out: &mut [Option<u16>]) {
    for (addresses, out) in addresses.chunks(GROUP).zip(out.chunks_mut(GROUP)) {
        let mut entries = [[0; LANES]; GROUP / LANES];
        let (whole, rest) = addresses.as_chunks::<LANES>();
        for (addresses, entries) in whole.iter().zip(&mut entries) {
            K::read(routes.root, addresses, entries);
        }
        if let Some(entries) = entries.get_mut(whole.len()) {
            for (address, entry) in rest.iter().zip(entries) {
                *entry = routes.root.get((address.to_bits() >> 8) as usize).copied().unwrap_or(0);
            }
        }
        let entries = entries.as_flattened_mut();
        // Few lead on: first it is found out which, without a branch.
        let mut on = 0_u64;
        for (at, entry) in entries.iter().enumerate() {
            on |= u64::from(*entry >> 31) << at;
        }
        if on != 0 {
            lead_on(routes, addresses, entries, on);
        }
        for (entry, out) in entries.iter().zip(out) {
            *out = Entry(*entry).value().or(routes.default);
        }
    }
}

#[cold]
#[inline(never)]
fn lead_on(routes: Routes<'_>, addresses: &[Ipv4Addr], entries: &mut [u32], on: u64) {
    for ask in [true, false] {
        let mut left = on;
        while left != 0 {
            let at = left.trailing_zeros() as usize;
            left &= left - 1;
            if let (Some(entry), Some(address)) = (entries.get_mut(at), addresses.get(at))
                && let Some(node) = Entry(*entry).node().and_then(|node| routes.nodes.get(node))
            {
                let last = (address.to_bits() & 0xff) as usize;
                if ask {
                    prefetch_slice_at(&node.0, last);
                } else {
                    *entry = node.0.get(last).copied().unwrap_or(0);
                }
            }
        }
    }
}
