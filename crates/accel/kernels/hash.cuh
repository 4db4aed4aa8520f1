// Task::Hash: see src/hash.rs, which this is the same as.
#pragma once
#include "common.cuh"

// Octets of an item, and of its answer.
#define HASHED_OCTETS 24

MR_FN u64 mix(u64 a, u64 b)
{
	return a * b ^ product_high(a, b);
}

MR_FN u32 hash_item(const u64 *item, u32 hashes)
{
	const u64 factors[3] = {0x9e3779b97f4a7c15ull, 0x3c6ef372fe94f82bull, 0xbb67ae8584caa73bull};
	const u64 words[3] = {item[0], item[1], item[2]};
	u64 hash = 0;
	for (u32 round = 0; round < hashes; round++) {
		MR_UNROLL
		for (int at = 0; at < 3; at++)
			hash = mix(hash ^ words[at], factors[at]) + factors[at];
	}
	return static_cast<u32>(hash >> 32) ^ static_cast<u32>(hash);
}

// Item `thread` of `threads` and each that is so many further.
MR_FN void hash_items(const u8 *items, u32 count, u32 hashes, u8 *output, u32 thread, u32 threads)
{
	for (u32 item = thread; item < count; item += threads) {
		const u64 *words = reinterpret_cast<const u64 *>(items + item * HASHED_OCTETS);
		reinterpret_cast<u32 *>(output)[item] = hash_item(words, hashes);
	}
}
