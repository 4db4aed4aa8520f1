//! DPDK's own look-up tables, for measuring ours beside them in one run. Nothing else uses them.
//!
//! [`Peers`] starts EAL with ordinary memory and gives the tables a heap of their own on pages of 2 MB (`shim/peer.c`). Of what DPDK offers, each
//! table is asked as fast as it can be: in bulk, and with AVX-512 where it has such a look-up and the processor the instructions.

use crate::eal::{Eal, EalConfig, Memory};
use crate::error::{DpdkError, cause};
use crate::ffi::peer as ffi;
use std::ffi::c_int;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ptr::NonNull;
use tables::l2::Station;
use tables::{Tuple4, Tuple6};

/// A peer's table can't be made or filled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// EAL did not start.
    #[error(transparent)]
    Eal(#[from] DpdkError),
    /// DPDK refused, with the system's word for it.
    #[error("DPDK's {table}: {cause}")]
    Refused {
        /// Which table.
        table: &'static str,
        /// Why.
        cause: String,
    },
}

fn refused(table: &'static str, errno: c_int) -> PeerError {
    PeerError::Refused { table, cause: cause(errno) }
}

fn made<T>(table: &'static str, pointer: *mut T, errno: c_int) -> Result<NonNull<T>, PeerError> {
    NonNull::new(pointer).ok_or_else(|| refused(table, errno))
}

fn done(table: &'static str, errno: c_int) -> Result<(), PeerError> {
    if errno == 0 { Ok(()) } else { Err(refused(table, errno)) }
}

/// EAL, and the memory of the peers' tables.
#[derive(Clone, Debug)]
pub struct Peers {
    eal: Eal,
    socket: c_int,
}

impl Peers {
    /// Starts EAL, with so many bytes of address space for tables. Once in a process.
    pub fn new(bytes: usize) -> Result<Self, PeerError> {
        let config = EalConfig { memory: Memory::NoHuge, megabytes: 32, ..EalConfig::default() };
        let eal = Eal::init(&config)?;
        let mut socket = 0;
        // SAFETY: plain calls; `socket` is written to in the first one.
        let errno = unsafe { ffi::mr_peer_heap(bytes, &raw mut socket) };
        done("heap", errno)?;
        // SAFETY: as above. A processor without such vectors, or a user who forbade them: then the tables say so.
        let _ = unsafe { ffi::mr_peer_wide() };
        Ok(Self { eal, socket })
    }

    /// DPDK's version.
    pub fn version(&self) -> &str {
        &self.eal.chosen().version
    }
}

/// Keys of which `rte_hash` hashes and compares the first octets.
pub trait HashKey: Copy {
    /// How many.
    const LENGTH: u32;
}

impl HashKey for Tuple4 {
    const LENGTH: u32 = 13;
}

impl HashKey for Station {
    const LENGTH: u32 = 8;
}

impl HashKey for Tuple6 {
    const LENGTH: u32 = 37;
}

/// All are words without padding, in little-endian order: the octets that count come first.
const _: () = assert!(
    size_of::<Tuple4>() == 16
        && size_of::<Station>() == 16
        && size_of::<Tuple6>() == 40
        && cfg!(target_endian = "little")
);

/// `rte_hash`, with its default hash (CRC32C where the processor has it).
#[derive(Debug)]
pub struct Hash<K> {
    hash: NonNull<ffi::RteHash>,
    key: std::marker::PhantomData<K>,
    _peers: Peers,
}

impl<K: HashKey> Hash<K> {
    /// A table of so many slots.
    pub fn new(peers: &Peers, slots: u32) -> Result<Self, PeerError> {
        let mut errno = 0;
        // SAFETY: plain call; `errno` is written to in it.
        let hash = unsafe { ffi::mr_peer_hash(slots, K::LENGTH, peers.socket, &raw mut errno) };
        let hash = made("rte_hash", hash, errno)?;
        Ok(Self { hash, key: std::marker::PhantomData, _peers: peers.clone() })
    }

    /// Adds a key; its position.
    pub fn add(&mut self, key: &K) -> Result<u32, PeerError> {
        // SAFETY: the table lives; K::LENGTH octets of the key are read, which has more (asserted above).
        let position = unsafe { ffi::mr_peer_hash_add(self.hash.as_ptr(), std::ptr::from_ref(key).cast()) };
        u32::try_from(position).map_err(|_| refused("rte_hash", -position))
    }

    /// The positions of keys, negative where there is none.
    pub fn find(&self, keys: &[K], out: &mut [i32]) {
        let count = keys.len().min(out.len());
        // SAFETY: the table lives; `count` keys of the stride's size are read, and as many positions written.
        unsafe {
            ffi::mr_peer_hash_find(
                self.hash.as_ptr(),
                keys.as_ptr().cast(),
                size_of::<K>(),
                count,
                out.as_mut_ptr(),
            );
        }
    }
}

impl<K> Drop for Hash<K> {
    fn drop(&mut self) {
        // SAFETY: the table lives, and nobody else has it.
        unsafe { ffi::mr_peer_hash_free(self.hash.as_ptr()) }
    }
}

/// `rte_lpm`.
#[derive(Debug)]
pub struct Lpm4 {
    lpm: NonNull<ffi::RteLpm>,
    _peers: Peers,
}

impl Lpm4 {
    /// A table of these routes (prefix, length, next hop), sorted by length, with so many groups of 256 for those longer than /24.
    pub fn new(peers: &Peers, routes: &[(Ipv4Addr, u8, u16)], groups: u32) -> Result<Self, PeerError> {
        let mut errno = 0;
        // SAFETY: plain call; `errno` is written to in it.
        let lpm = unsafe { ffi::mr_peer_lpm(groups, peers.socket, &raw mut errno) };
        let table = Self { lpm: made("rte_lpm", lpm, errno)?, _peers: peers.clone() };
        let valid = |(prefix, length, _): &(Ipv4Addr, u8, u16)| {
            *length <= 32 && prefix.to_bits() & u32::MAX.checked_shr((*length).into()).unwrap_or(0) == 0
        };
        if !routes.iter().all(valid) || !routes.is_sorted_by_key(|route| route.1) {
            return Err(refused("rte_lpm", crate::eal::libc_errno::EINVAL));
        }
        let prefixes: Vec<u32> = routes.iter().map(|route| route.0.to_bits()).collect();
        let lengths: Vec<u8> = routes.iter().map(|route| route.1).collect();
        let values: Vec<u16> = routes.iter().map(|route| route.2).collect();
        // SAFETY: the table lives; as many of each are read as there are routes. A prefix without host bits and its length name entries
        // inside tables of 2^24 and of `groups` times 256.
        let errno = unsafe {
            ffi::mr_peer_lpm_fill(
                lpm,
                prefixes.as_ptr(),
                lengths.as_ptr(),
                values.as_ptr(),
                routes.len(),
                groups,
            )
        };
        done("rte_lpm", errno)?;
        Ok(table)
    }

    /// Next hops, with bit 24 where there is a route.
    pub fn find(&self, addresses: &[u32], out: &mut [u32]) {
        let count = addresses.len().min(out.len());
        // SAFETY: the table lives; `count` addresses are read, and as many answers written.
        unsafe { ffi::mr_peer_lpm_find(self.lpm.as_ptr(), addresses.as_ptr(), count, out.as_mut_ptr()) }
    }
}

impl Drop for Lpm4 {
    fn drop(&mut self) {
        // SAFETY: the table lives, and nobody else has it.
        unsafe { ffi::mr_peer_lpm_free(self.lpm.as_ptr()) }
    }
}

/// How `rte_fib` and `rte_fib6` look up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// In plain code.
    Scalar,
    /// With AVX-512; a table can't be made where it isn't.
    Vector,
}

/// `rte_fib` as DIR-24-8.
#[derive(Debug)]
pub struct Fib4 {
    fib: NonNull<ffi::RteFib>,
    _peers: Peers,
}

impl Fib4 {
    /// A table of at most so many routes, with entries of two octets or four, and so many groups of 256 for those longer than /24.
    pub fn new(peers: &Peers, routes: u32, groups: u32, octets: u8, way: Way) -> Result<Self, PeerError> {
        let (mut errno, vector) = (0, c_int::from(way == Way::Vector));
        // SAFETY: plain call; `errno` is written to in it.
        let fib =
            unsafe { ffi::mr_peer_fib(routes, groups, octets.into(), vector, peers.socket, &raw mut errno) };
        Ok(Self { fib: made("rte_fib", fib, errno)?, _peers: peers.clone() })
    }

    /// Adds a route.
    pub fn add(&mut self, prefix: Ipv4Addr, length: u8, value: u16) -> Result<(), PeerError> {
        // SAFETY: the table lives.
        let errno =
            unsafe { ffi::mr_peer_fib_add(self.fib.as_ptr(), prefix.to_bits(), length, value.into()) };
        done("rte_fib", errno)
    }

    /// Next hops, 0 where there is no route.
    pub fn find(&self, addresses: &[u32], out: &mut [u64]) {
        let count = addresses.len().min(out.len());
        // SAFETY: the table lives; `count` addresses are read (the C interface merely lacks a `const`), and as many answers written.
        unsafe {
            ffi::mr_peer_fib_find(self.fib.as_ptr(), addresses.as_ptr().cast_mut(), count, out.as_mut_ptr());
        }
    }
}

impl Drop for Fib4 {
    fn drop(&mut self) {
        // SAFETY: the table lives, and nobody else has it.
        unsafe { ffi::mr_peer_fib_free(self.fib.as_ptr()) }
    }
}

/// `rte_lpm6`.
#[derive(Debug)]
pub struct Lpm6 {
    lpm: NonNull<ffi::RteLpm6>,
    _peers: Peers,
}

impl Lpm6 {
    /// A table of at most so many routes and groups of 256.
    pub fn new(peers: &Peers, routes: u32, groups: u32) -> Result<Self, PeerError> {
        let mut errno = 0;
        // SAFETY: plain call; `errno` is written to in it.
        let lpm = unsafe { ffi::mr_peer_lpm6(routes, groups, peers.socket, &raw mut errno) };
        Ok(Self { lpm: made("rte_lpm6", lpm, errno)?, _peers: peers.clone() })
    }

    /// Adds a route.
    pub fn add(&mut self, prefix: Ipv6Addr, length: u8, value: u16) -> Result<(), PeerError> {
        // SAFETY: the table lives; 16 octets are read.
        let errno = unsafe {
            ffi::mr_peer_lpm6_add(self.lpm.as_ptr(), prefix.octets().as_ptr(), length, value.into())
        };
        done("rte_lpm6", errno)
    }

    /// Next hops, negative where there is no route.
    pub fn find(&self, addresses: &[[u8; 16]], out: &mut [i32]) {
        let count = addresses.len().min(out.len());
        // SAFETY: the table lives; `count` addresses are read (the C interface merely lacks a `const`), and as many answers written.
        unsafe {
            ffi::mr_peer_lpm6_find(self.lpm.as_ptr(), addresses.as_ptr().cast_mut(), count, out.as_mut_ptr());
        }
    }
}

impl Drop for Lpm6 {
    fn drop(&mut self) {
        // SAFETY: the table lives, and nobody else has it.
        unsafe { ffi::mr_peer_lpm6_free(self.lpm.as_ptr()) }
    }
}

/// `rte_fib6` as a trie, with entries of four octets.
#[derive(Debug)]
pub struct Fib6 {
    fib: NonNull<ffi::RteFib6>,
    _peers: Peers,
}

impl Fib6 {
    /// A table of at most so many routes and groups of 256.
    pub fn new(peers: &Peers, routes: u32, groups: u32, way: Way) -> Result<Self, PeerError> {
        let (mut errno, vector) = (0, c_int::from(way == Way::Vector));
        // SAFETY: plain call; `errno` is written to in it.
        let fib = unsafe { ffi::mr_peer_fib6(routes, groups, vector, peers.socket, &raw mut errno) };
        Ok(Self { fib: made("rte_fib6", fib, errno)?, _peers: peers.clone() })
    }

    /// Adds a route.
    pub fn add(&mut self, prefix: Ipv6Addr, length: u8, value: u16) -> Result<(), PeerError> {
        // SAFETY: the table lives; 16 octets are read.
        let errno = unsafe {
            ffi::mr_peer_fib6_add(self.fib.as_ptr(), prefix.octets().as_ptr(), length, value.into())
        };
        done("rte_fib6", errno)
    }

    /// Next hops, 0 where there is no route.
    pub fn find(&self, addresses: &[[u8; 16]], out: &mut [u64]) {
        let count = addresses.len().min(out.len());
        // SAFETY: the table lives; `count` addresses are read (the C interface merely lacks a `const`), and as many answers written.
        unsafe {
            ffi::mr_peer_fib6_find(self.fib.as_ptr(), addresses.as_ptr().cast_mut(), count, out.as_mut_ptr());
        }
    }
}

impl Drop for Fib6 {
    fn drop(&mut self) {
        // SAFETY: the table lives, and nobody else has it.
        unsafe { ffi::mr_peer_fib6_free(self.fib.as_ptr()) }
    }
}
