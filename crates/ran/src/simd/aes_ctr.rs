//! The key streams of AES-128 in counter mode for many packets, each with a key of its own.
//!
//! **Short packets** are bound by two chains: a key's expansion (ten steps, each of which needs the one before) and a block's ten rounds. So
//! several packets go together, one in each 128-bit lane of two vectors: while the next round key of all of them is being made, the first
//! four blocks of each go through the round before. No round key waits in memory for these 64 octets.
//!
//! **What is longer** goes packet by packet, eight vectors of blocks at a time, with the packet's round keys in all lanes.
//!
//! An instruction here treats one block (`Xmm`, AES-NI), two or four (`Ymm` and `Zmm`, VAES). The algorithm is written once, over `Vector`. The twin that
//! it is held to is the crate `aes`, in [`crate::nea2`].

use super::cipher::{Block, CipherUnit, ROUNDS, Schedule};
use std::arch::x86_64::*;
use tables::prefetch::{prefetch, prefetch_headers};

/// Blocks of each packet that go through the rounds while the key is being expanded.
const AHEAD: usize = 4;

/// Vectors of packets that go together.
const ABREAST: usize = 2;

/// Vectors of blocks of one packet that are under way at a time: two AES units with a latency of four cycles want eight.
const UNDER_WAY: usize = 8;

/// Lanes of the widest vector.
const MOST_LANES: usize = 4;

/// Packets that go together at most.
const MOST: usize = ABREAST * MOST_LANES;

/// The constants of the key's expansion (FIPS 197 §5.2), in each octet 0 of a word.
const CONSTANTS: [u32; ROUNDS] = [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36];

/// A packet's part in a batch.
pub struct Job<'a> {
    /// AES key.
    pub key: &'a Block,
    /// The first 64 bits of the counter's block; the others count from zero.
    pub prefix: u64,
    /// What is changed.
    pub data: &'a mut [u8],
}

/// Asks for what the job will touch first: its key and two lines of its data.
#[inline(always)]
pub fn ask_ahead(key: &Block, data: &[u8]) {
    prefetch(key);
    prefetch_headers(data.as_ptr());
}

/// A vector of 128-bit lanes.
///
/// # Safety
/// Of all functions: the processor has the instructions that the type names.
trait Vector: Copy {
    /// How many.
    const LANES: usize;
    /// One block for all lanes.
    unsafe fn all(block: __m128i) -> Self;
    /// A block for each lane: the first ones, where there are fewer lanes.
    unsafe fn each(blocks: [__m128i; MOST_LANES]) -> Self;
    /// What is in a lane.
    unsafe fn lane(it: Self, lane: usize) -> __m128i;
    /// As many blocks as there are lanes.
    unsafe fn load(from: &[Block]) -> Self;
    /// The same, back.
    unsafe fn store(it: Self, to: &mut [Block]);
    /// Exclusive or.
    unsafe fn xor(it: Self, other: Self) -> Self;
    /// Adds 64-bit words.
    unsafe fn add(it: Self, other: Self) -> Self;
    /// Octets in another order, the same in each lane.
    unsafe fn shuffle(it: Self, order: Self) -> Self;
    /// Each lane shifted left by four octets, as a little-endian number.
    unsafe fn left4(it: Self) -> Self;
    /// By eight octets.
    unsafe fn left8(it: Self) -> Self;
    /// A round (FIPS 197 §5.1).
    unsafe fn round(it: Self, key: Self) -> Self;
    /// The last round, which doesn't mix columns.
    unsafe fn last_round(it: Self, key: Self) -> Self;
}

/// One block: AES-NI, SSE4.1.
#[derive(Clone, Copy)]
struct Xmm(__m128i);

/// Two blocks: VAES, AVX2.
#[derive(Clone, Copy)]
struct Ymm(__m256i);

/// Four blocks: VAES, AVX-512.
#[derive(Clone, Copy)]
struct Zmm(__m512i);

/// Functions of a [`Vector`] that are one expression each.
macro_rules! vector {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty = $body:expr;)*) => {$(
        #[inline(always)]
        #[allow(unused_unsafe)] // one that only names its argument
        unsafe fn $name($($argument: $type),*) -> $result {
            // SAFETY: the trait's callers vouch for the instructions; slices are checked to be long enough, and loads and stores are unaligned.
            unsafe { $body }
        }
    )*};
}

impl Vector for Xmm {
    const LANES: usize = 1;
    vector! {
        all(block: __m128i) -> Self = Self(block);
        each(blocks: [__m128i; MOST_LANES]) -> Self = Self(blocks[0]);
        lane(it: Self, _lane: usize) -> __m128i = it.0;
        load(from: &[Block]) -> Self = Self(_mm_loadu_si128(from[..1].as_ptr().cast()));
        store(it: Self, to: &mut [Block]) -> () = _mm_storeu_si128(to[..1].as_mut_ptr().cast(), it.0);
        xor(it: Self, other: Self) -> Self = Self(_mm_xor_si128(it.0, other.0));
        add(it: Self, other: Self) -> Self = Self(_mm_add_epi64(it.0, other.0));
        shuffle(it: Self, order: Self) -> Self = Self(_mm_shuffle_epi8(it.0, order.0));
        left4(it: Self) -> Self = Self(_mm_slli_si128::<4>(it.0));
        left8(it: Self) -> Self = Self(_mm_slli_si128::<8>(it.0));
        round(it: Self, key: Self) -> Self = Self(_mm_aesenc_si128(it.0, key.0));
        last_round(it: Self, key: Self) -> Self = Self(_mm_aesenclast_si128(it.0, key.0));
    }
}

impl Vector for Ymm {
    const LANES: usize = 2;
    vector! {
        all(block: __m128i) -> Self = Self(_mm256_broadcastsi128_si256(block));
        each(blocks: [__m128i; MOST_LANES]) -> Self = Self(_mm256_set_m128i(blocks[1], blocks[0]));
        lane(it: Self, lane: usize) -> __m128i =
            if lane == 0 { _mm256_castsi256_si128(it.0) } else { _mm256_extracti128_si256::<1>(it.0) };
        load(from: &[Block]) -> Self = Self(_mm256_loadu_si256(from[..2].as_ptr().cast()));
        store(it: Self, to: &mut [Block]) -> () = _mm256_storeu_si256(to[..2].as_mut_ptr().cast(), it.0);
        xor(it: Self, other: Self) -> Self = Self(_mm256_xor_si256(it.0, other.0));
        add(it: Self, other: Self) -> Self = Self(_mm256_add_epi64(it.0, other.0));
        shuffle(it: Self, order: Self) -> Self = Self(_mm256_shuffle_epi8(it.0, order.0));
        left4(it: Self) -> Self = Self(_mm256_bslli_epi128::<4>(it.0));
        left8(it: Self) -> Self = Self(_mm256_bslli_epi128::<8>(it.0));
        round(it: Self, key: Self) -> Self = Self(_mm256_aesenc_epi128(it.0, key.0));
        last_round(it: Self, key: Self) -> Self = Self(_mm256_aesenclast_epi128(it.0, key.0));
    }
}

impl Vector for Zmm {
    const LANES: usize = 4;
    vector! {
        all(block: __m128i) -> Self = Self(_mm512_broadcast_i32x4(block));
        each(blocks: [__m128i; MOST_LANES]) -> Self = {
            let (low, high) = (_mm256_set_m128i(blocks[1], blocks[0]), _mm256_set_m128i(blocks[3], blocks[2]));
            Self(_mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high))
        };
        lane(it: Self, lane: usize) -> __m128i = match lane {
            0 => _mm512_castsi512_si128(it.0),
            1 => _mm512_extracti32x4_epi32::<1>(it.0),
            2 => _mm512_extracti32x4_epi32::<2>(it.0),
            _ => _mm512_extracti32x4_epi32::<3>(it.0),
        };
        load(from: &[Block]) -> Self = Self(_mm512_loadu_si512(from[..4].as_ptr().cast()));
        store(it: Self, to: &mut [Block]) -> () = _mm512_storeu_si512(to[..4].as_mut_ptr().cast(), it.0);
        xor(it: Self, other: Self) -> Self = Self(_mm512_xor_si512(it.0, other.0));
        add(it: Self, other: Self) -> Self = Self(_mm512_add_epi64(it.0, other.0));
        shuffle(it: Self, order: Self) -> Self = Self(_mm512_shuffle_epi8(it.0, order.0));
        left4(it: Self) -> Self = Self(_mm512_bslli_epi128::<4>(it.0));
        left8(it: Self) -> Self = Self(_mm512_bslli_epi128::<8>(it.0));
        round(it: Self, key: Self) -> Self = Self(_mm512_aesenc_epi128(it.0, key.0));
        last_round(it: Self, key: Self) -> Self = Self(_mm512_aesenclast_epi128(it.0, key.0));
    }
}

/// A block in a register.
#[inline(always)]
fn block(from: &Block) -> __m128i {
    // SAFETY: an unaligned load of 16 octets (SSE2, which x86-64 always has), all of them `from`'s.
    unsafe { _mm_loadu_si128(from.as_ptr().cast()) }
}

/// A block in memory.
#[inline(always)]
fn put(to: &mut Block, value: __m128i) {
    // SAFETY: an unaligned store of 16 octets (SSE2), all of them `to`'s.
    unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), value) }
}

/// Two 64-bit words, the lower one first.
#[inline(always)]
fn words(low: u64, high: u64) -> __m128i {
    // SAFETY: SSE2.
    unsafe { _mm_set_epi64x(high.cast_signed(), low.cast_signed()) }
}

/// Applies all jobs' key streams, expanding each key; `unit` is asked for here.
///
/// # Panics
/// If this processor doesn't have it, or it is [`CipherUnit::Any`], which has no code here.
pub fn apply(unit: CipherUnit, jobs: &mut [Job]) {
    assert!(unit.is_here(), "this processor has no {unit}");
    match unit {
        // SAFETY: the processor has these instructions: that is what `is_here` asks.
        CipherUnit::Aes => unsafe { apply_xmm(jobs) },
        // SAFETY: as above.
        CipherUnit::Vaes => unsafe { apply_ymm(jobs) },
        // SAFETY: as above.
        CipherUnit::Vaes512 => unsafe { apply_zmm(jobs) },
        CipherUnit::Any => unreachable!("plain code isn't here"),
    }
}

/// As [`apply`], with keys that were expanded before.
///
/// # Panics
/// As [`apply`].
pub fn apply_expanded(unit: CipherUnit, schedule: &Schedule, prefix: u64, data: &mut [u8]) {
    assert!(unit.is_here(), "this processor has no {unit}");
    match unit {
        // SAFETY: the processor has these instructions: that is what `is_here` asks.
        CipherUnit::Aes => unsafe { rest_xmm(schedule, prefix, data) },
        // SAFETY: as above.
        CipherUnit::Vaes => unsafe { rest_ymm(schedule, prefix, data) },
        // SAFETY: as above.
        CipherUnit::Vaes512 => unsafe { rest_zmm(schedule, prefix, data) },
        CipherUnit::Any => unreachable!("plain code isn't here"),
    }
}

/// Expands a key (FIPS 197 §5.2).
///
/// # Panics
/// If this processor has no [`CipherUnit::Aes`].
pub fn expand(key: &Block) -> Schedule {
    assert!(CipherUnit::Aes.is_here(), "this processor has no AES instructions");
    // SAFETY: it has.
    unsafe { expand_xmm(key) }
}

#[target_feature(enable = "aes,sse4.1")]
unsafe fn apply_xmm(jobs: &mut [Job]) {
    // SAFETY: what Xmm needs is enabled.
    unsafe { apply_all::<Xmm>(jobs) }
}

#[target_feature(enable = "vaes,aes,avx2")]
unsafe fn apply_ymm(jobs: &mut [Job]) {
    // SAFETY: what Ymm needs is enabled.
    unsafe { apply_all::<Ymm>(jobs) }
}

#[target_feature(enable = "vaes,aes,avx512f,avx512bw")]
unsafe fn apply_zmm(jobs: &mut [Job]) {
    // SAFETY: what Zmm needs is enabled.
    unsafe { apply_all::<Zmm>(jobs) }
}

#[target_feature(enable = "aes,sse4.1")]
unsafe fn rest_xmm(schedule: &Schedule, prefix: u64, data: &mut [u8]) {
    // SAFETY: what Xmm needs is enabled.
    unsafe { rest::<Xmm, 1>(&schedule.0, prefix, 0, data) }
}

#[target_feature(enable = "vaes,aes,avx2")]
unsafe fn rest_ymm(schedule: &Schedule, prefix: u64, data: &mut [u8]) {
    // SAFETY: what Ymm needs is enabled.
    unsafe { rest::<Ymm, 1>(&schedule.0, prefix, 0, data) }
}

#[target_feature(enable = "vaes,aes,avx512f,avx512bw")]
unsafe fn rest_zmm(schedule: &Schedule, prefix: u64, data: &mut [u8]) {
    // SAFETY: what Zmm needs is enabled.
    unsafe { rest::<Zmm, 1>(&schedule.0, prefix, 0, data) }
}

#[target_feature(enable = "aes,sse4.1")]
unsafe fn expand_xmm(key: &Block) -> Schedule {
    let mut keys = [[0; 16]; ROUNDS + 1];
    let mut last = Xmm(block(key));
    put(&mut keys[0], last.0);
    for (key, constant) in keys[1..].iter_mut().zip(CONSTANTS) {
        // SAFETY: what Xmm needs is enabled.
        last = unsafe { next_key(last, constant) };
        put(key, last.0);
    }
    Schedule(keys)
}

/// The round key after `key`, in each lane. `SubBytes` of the last word, rotated, is a last round of a block of four such words, since
/// `ShiftRows` changes nothing where all columns are equal.
///
/// # Safety
/// The processor has the instructions that `V` names.
#[inline(always)]
unsafe fn next_key<V: Vector>(key: V, constant: u32) -> V {
    const ROTATED: u64 = 0x0c0f_0e0d_0c0f_0e0d;
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        let rotated = V::shuffle(key, V::all(words(ROTATED, ROTATED)));
        let constants = u64::from(constant) << 32 | u64::from(constant);
        let substituted = V::last_round(rotated, V::all(words(constants, constants)));
        let key = V::xor(key, V::left4(key));
        V::xor(V::xor(key, V::left8(key)), substituted)
    }
}

/// # Safety
/// The processor has the instructions that `V` names.
#[inline(always)]
unsafe fn apply_all<V: Vector>(jobs: &mut [Job]) {
    let together = ABREAST * V::LANES;
    let mut keys = [[0; 16]; (ROUNDS + 1) * STRIDE];
    let mut groups = jobs.chunks_exact_mut(together);
    for group in &mut groups {
        // SAFETY: the caller vouches for the instructions.
        unsafe { apply_group::<V>(group, &mut keys) }
    }
    let rest = groups.into_remainder();
    if rest.is_empty() {
        return;
    }
    // Lanes without a packet work on nothing.
    let mut filled: [Job; MOST] = std::array::from_fn(|_| Job { key: &[0; 16], prefix: 0, data: &mut [] });
    for (slot, job) in filled.iter_mut().zip(rest) {
        *slot = Job { key: job.key, prefix: job.prefix, data: &mut *job.data };
    }
    // SAFETY: the caller vouches for the instructions.
    unsafe { apply_group::<V>(&mut filled[..together], &mut keys) }
}

/// A group's round keys, [`STRIDE`] of the same round one behind the other.
type RoundKeys = [Block; (ROUNDS + 1) * STRIDE];

/// How far a packet's round keys are apart.
const STRIDE: usize = MOST;

/// As many packets as go together; in `keys` is room for their round keys.
///
/// # Safety
/// The processor has the instructions that `V` names.
#[inline(always)]
unsafe fn apply_group<V: Vector>(group: &mut [Job], keys: &mut RoundKeys) {
    assert!(group.len() == ABREAST * V::LANES);
    let long = group.iter().any(|job| job.data.len() > AHEAD * 16);
    let whole = group.iter().all(|job| job.data.len() >= AHEAD * 16);
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        let zero = V::all(words(0, 0));
        let (mut key, mut state) = ([zero; ABREAST], [[zero; AHEAD]; ABREAST]);
        for v in 0..ABREAST {
            let (mut keys_of, mut counters) = ([words(0, 0); MOST_LANES], [words(0, 0); MOST_LANES]);
            for lane in 0..V::LANES {
                let job = &group[v * V::LANES + lane];
                (keys_of[lane], counters[lane]) = (block(job.key), words(job.prefix.to_be(), 0));
            }
            key[v] = V::each(keys_of);
            let counter = V::each(counters);
            for (number, state) in state[v].iter_mut().enumerate() {
                *state = V::xor(V::xor(counter, key[v]), V::all(words(0, (number as u64).to_be())));
            }
            keep(&mut keys[v * V::LANES..], key[v]);
        }
        // Written out, so that the constants are constants.
        macro_rules! rounds {
            ($($round:literal)*) => {$(
                for v in 0..ABREAST {
                    key[v] = next_key(key[v], CONSTANTS[$round - 1]);
                    keep(&mut keys[$round * STRIDE + v * V::LANES..], key[v]);
                    for state in &mut state[v] {
                        *state = if $round < ROUNDS { V::round(*state, key[v]) } else { V::last_round(*state, key[v]) };
                    }
                }
            )*};
        }
        rounds!(1 2 3 4 5 6 7 8 9 10);
        if whole {
            for v in 0..ABREAST {
                for lane in 0..V::LANES {
                    let (blocks, _) = group[v * V::LANES + lane].data.as_chunks_mut::<16>();
                    let (blocks, _) = blocks.split_first_chunk_mut::<AHEAD>().unwrap_unchecked();
                    for (data, stream) in blocks.iter_mut().zip(state[v]) {
                        put(data, _mm_xor_si128(block(data), V::lane(stream, lane)));
                    }
                }
            }
        } else {
            for v in 0..ABREAST {
                for lane in 0..V::LANES {
                    let mut stream = [[0; 16]; AHEAD];
                    stream.iter_mut().zip(state[v]).for_each(|(to, it)| put(to, V::lane(it, lane)));
                    xor_short(group[v * V::LANES + lane].data, stream.as_flattened());
                }
            }
        }
        if long {
            for (lane, job) in group.iter_mut().enumerate().filter(|(_, job)| job.data.len() > AHEAD * 16) {
                rest::<V, STRIDE>(&keys[lane..], job.prefix, AHEAD, job.data);
            }
        }
    }
}

/// Writes the lanes' blocks one behind the other.
///
/// # Safety
/// The processor has the instructions that `V` names.
#[inline(always)]
unsafe fn keep<V: Vector>(to: &mut [Block], value: V) {
    // SAFETY: the caller vouches for the instructions.
    unsafe { V::store(value, to) }
}

/// A packet from block `start` on, with its round keys `STRIDE` blocks apart.
///
/// # Safety
/// The processor has the instructions that `V` names.
#[inline(always)]
unsafe fn rest<V: Vector, const STRIDE: usize>(keys: &[Block], prefix: u64, start: usize, data: &mut [u8]) {
    let keys = &keys[..=ROUNDS * STRIDE];
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        let base = V::all(_mm_xor_si128(words(prefix.to_be(), 0), block(&keys[0])));
        let number = start as u64;
        let numbers = [0, 1, 2, 3].map(|lane| words(0, number + lane));
        let mut counter = Counter(V::each(numbers));
        let (blocks, tail) = data[16 * start..].as_chunks_mut::<16>();
        let mut wide = blocks.chunks_exact_mut(UNDER_WAY * V::LANES);
        for blocks in &mut wide {
            let stream = key_stream::<V, UNDER_WAY, STRIDE>(keys, base, &mut counter);
            for (i, stream) in stream.into_iter().enumerate() {
                let blocks = &mut blocks[i * V::LANES..(i + 1) * V::LANES];
                V::store(V::xor(V::load(blocks), stream), blocks);
            }
        }
        let blocks = wide.into_remainder();
        let left = blocks.len() + usize::from(!tail.is_empty());
        macro_rules! last {
            ($($vectors:literal)*) => {
                match left.div_ceil(V::LANES) {
                    $($vectors => last::<V, $vectors, STRIDE>(keys, base, &mut counter, blocks),)*
                    _ => [0; 16],
                }
            };
        }
        let stream = last!(1 2 3 4 5 6 7 8);
        let length = tail.len();
        if length > 0 {
            xor_tail(data, length, &stream);
        }
    }
}

/// Fewer blocks than go at a time, and the key stream of the block behind them.
///
/// # Safety
/// The processor has the instructions that `V` names.
#[inline(always)]
unsafe fn last<V: Vector, const VECTORS: usize, const STRIDE: usize>(
    keys: &[Block],
    base: V,
    counter: &mut Counter<V>,
    blocks: &mut [Block],
) -> Block {
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        let stream = key_stream::<V, VECTORS, STRIDE>(keys, base, counter);
        // All but the last vector have a block of the packet in each lane.
        let (full, rest) = blocks.split_at_mut((VECTORS - 1) * V::LANES);
        for (blocks, stream) in full.chunks_exact_mut(V::LANES).zip(stream) {
            V::store(V::xor(V::load(blocks), stream), blocks);
        }
        let mut behind = [0; 16];
        let used = rest.len();
        for lane in 0..V::LANES {
            let stream = V::lane(stream[VECTORS - 1], lane);
            match rest.get_mut(lane) {
                Some(data) => put(data, _mm_xor_si128(block(data), stream)),
                None if lane == used => put(&mut behind, stream),
                None => {}
            }
        }
        behind
    }
}

/// The numbers of the next blocks, little-endian, in the upper halves of the lanes.
struct Counter<V>(V);

/// The key stream of the next blocks.
///
/// # Safety
/// The processor has the instructions that `V` names.
#[inline(always)]
unsafe fn key_stream<V: Vector, const VECTORS: usize, const STRIDE: usize>(
    keys: &[Block],
    base: V,
    counter: &mut Counter<V>,
) -> [V; VECTORS] {
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        let big_endian = V::all(words(0x0706_0504_0302_0100, 0x0809_0a0b_0c0d_0e0f));
        let step = V::all(words(0, V::LANES as u64));
        let mut state = [base; VECTORS];
        for state in &mut state {
            *state = V::xor(base, V::shuffle(counter.0, big_endian));
            counter.0 = V::add(counter.0, step);
        }
        for round in 1..ROUNDS {
            let key = V::all(block(&keys[round * STRIDE]));
            for state in &mut state {
                *state = V::round(*state, key);
            }
        }
        let key = V::all(block(&keys[ROUNDS * STRIDE]));
        for state in &mut state {
            *state = V::last_round(*state, key);
        }
        state
    }
}

/// The last `length` octets, fewer than a block. Where there is a block's worth of data, they are changed in a block that ends with the data, and
/// whose first octets meet zeros.
#[inline(always)]
fn xor_tail(data: &mut [u8], length: usize, stream: &Block) {
    if let Some(end) = data.last_chunk_mut::<16>() {
        let mut padded = [0; 32];
        padded[16..].copy_from_slice(stream);
        let Some(stream) = padded[length..].first_chunk::<16>() else { return };
        // SAFETY: SSE2, and both are in registers.
        put(end, unsafe { _mm_xor_si128(block(end), block(stream)) });
    } else {
        xor_short(data, stream);
    }
}

/// At most as many octets as there are of the key stream.
#[inline(always)]
fn xor_short(data: &mut [u8], stream: &[u8]) {
    let (words, tail) = data.as_chunks_mut::<8>();
    let (streams, _) = stream.as_chunks::<8>();
    for (word, stream) in words.iter_mut().zip(streams) {
        *word = (u64::from_ne_bytes(*word) ^ u64::from_ne_bytes(*stream)).to_ne_bytes();
    }
    for (octet, stream) in tail.iter_mut().zip(stream.iter().skip(words.len() * 8)) {
        *octet ^= stream;
    }
}
