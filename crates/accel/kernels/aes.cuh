// AES-128 encryption (FIPS 197) of blocks, by one table of 256 words.
//
// A GPU has no instruction for AES. The table holds, for each octet, what SubBytes and MixColumns make of it in a column's first row; the other rows'
// are its rotations. Threads of a warp look up different octets at once; so that they don't wait for each other, each of the shared memory's 32 banks
// has a copy of its own: `COPIES` is 32 there, and 1 on the host.
#pragma once
#include "common.cuh"

#define AES_ROUNDS 10

// 2x in GF(2^8).
constexpr u8 doubled(u8 x)
{
	return static_cast<u8>(x << 1 ^ (x & 0x80 ? 0x1b : 0));
}

struct AesTable {
	u32 words[256];

	// Walks through all units by the generator 3, and through their inverses beside them (FIPS 197 §5.1.1).
	constexpr AesTable() : words()
	{
		u8 unit = 1, inverse = 1;
		do {
			unit = static_cast<u8>(unit ^ doubled(unit));
			inverse = static_cast<u8>(inverse ^ inverse << 1);
			inverse = static_cast<u8>(inverse ^ inverse << 2);
			inverse = static_cast<u8>(inverse ^ inverse << 4);
			inverse = static_cast<u8>(inverse ^ (inverse & 0x80 ? 0x09 : 0));
			set(unit, inverse);
		} while (unit != 1);
		set(0, 0);
	}

	constexpr void set(u8 octet, u8 inverse)
	{
		u32 twice = static_cast<u32>(inverse) << 8 | inverse;
		u32 substituted = (twice ^ twice >> 4 ^ twice >> 5 ^ twice >> 6 ^ twice >> 7 ^ 0x63) & 0xff;
		u32 two = doubled(static_cast<u8>(substituted));
		words[octet] = two << 24 | substituted << 16 | substituted << 8 | (two ^ substituted);
	}
};

MR_CONSTANT constexpr AesTable AES_TABLE;

// The table as a thread sees it: in copies, of which one is its own.
template <int COPIES> struct AesLookup {
	const u32 *words;
	u32 copy;

	MR_FN u32 mixed(u32 octet) const { return words[octet * COPIES + copy]; }
	MR_FN u32 substituted(u32 octet) const { return mixed(octet) >> 8 & 0xff; }

	// A column of the next state, of the four octets that ShiftRows brings together.
	MR_FN u32 column(u32 a, u32 b, u32 c, u32 d) const
	{
		return mixed(a >> 24) ^ rotated_right(mixed(b >> 16 & 0xff), 8) ^
		       rotated_right(mixed(c >> 8 & 0xff), 16) ^ rotated_right(mixed(d & 0xff), 24);
	}

	// The same for the last round, which mixes no columns.
	MR_FN u32 last_column(u32 a, u32 b, u32 c, u32 d) const
	{
		return substituted(a >> 24) << 24 | substituted(b >> 16 & 0xff) << 16 |
		       substituted(c >> 8 & 0xff) << 8 | substituted(d & 0xff);
	}
};

struct AesKeys {
	u32 words[4 * (AES_ROUNDS + 1)];
};

template <int COPIES> MR_FN void aes_expand(const AesLookup<COPIES> &table, const u32 key[4], AesKeys &keys)
{
	u32 constant = 1;
	MR_UNROLL
	for (int at = 0; at < 4; at++)
		keys.words[at] = swapped(key[at]);
	MR_UNROLL
	for (int at = 4; at < 4 * (AES_ROUNDS + 1); at += 4) {
		u32 last = keys.words[at - 1];
		u32 turned = table.last_column(last << 8, last << 8, last << 8, last >> 24);
		keys.words[at] = keys.words[at - 4] ^ turned ^ constant << 24;
		keys.words[at + 1] = keys.words[at - 3] ^ keys.words[at];
		keys.words[at + 2] = keys.words[at - 2] ^ keys.words[at + 1];
		keys.words[at + 3] = keys.words[at - 1] ^ keys.words[at + 2];
		constant = doubled(static_cast<u8>(constant));
	}
}

// Encrypts a block of big-endian words in place.
template <int COPIES> MR_FN void aes_encrypt(const AesLookup<COPIES> &table, const AesKeys &keys, u32 state[4])
{
	u32 a = state[0] ^ keys.words[0], b = state[1] ^ keys.words[1];
	u32 c = state[2] ^ keys.words[2], d = state[3] ^ keys.words[3];
	MR_UNROLL
	for (int round = 1; round < AES_ROUNDS; round++) {
		u32 next_a = table.column(a, b, c, d) ^ keys.words[4 * round];
		u32 next_b = table.column(b, c, d, a) ^ keys.words[4 * round + 1];
		u32 next_c = table.column(c, d, a, b) ^ keys.words[4 * round + 2];
		d = table.column(d, a, b, c) ^ keys.words[4 * round + 3];
		a = next_a, b = next_b, c = next_c;
	}
	state[0] = table.last_column(a, b, c, d) ^ keys.words[4 * AES_ROUNDS];
	state[1] = table.last_column(b, c, d, a) ^ keys.words[4 * AES_ROUNDS + 1];
	state[2] = table.last_column(c, d, a, b) ^ keys.words[4 * AES_ROUNDS + 2];
	state[3] = table.last_column(d, a, b, c) ^ keys.words[4 * AES_ROUNDS + 3];
}
