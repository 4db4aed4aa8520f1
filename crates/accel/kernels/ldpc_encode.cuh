// LDPC encoding (TS 38.212 §5.3.2), in steps between which all threads of a block wait for each other. Bits are octets here: what is shared by threads is read
// and written by octets anyway.
#pragma once
#include "common.cuh"
#include "layout.cuh"

// Octets that a block needs: all its columns, and the core rows' sums.
MR_FN u32 ldpc_encode_octets(const u32 *plan)
{
	return (plan[PLAN_COLUMNS] + PLAN_CORE_ROWS_NUMBER) * plan[PLAN_Z];
}

MR_FN u32 ldpc_sum(const u32 *plan, const u8 *bits, u32 row, u32 check)
{
	u32 z = plan[PLAN_Z], sum = 0;
	const u32 *edges = plan + plan[PLAN_FIRST_EDGE];
	for (u32 edge = plan[PLAN_HEADER + row]; edge < plan[PLAN_HEADER + row + 1]; edge++) {
		u32 turned = check + (edges[edge] & 0xffff);
		sum ^= bits[(edges[edge] >> 16) * z + (turned >= z ? turned - z : turned)];
	}
	return sum;
}

// First step: the information bits, one an octet.
MR_FN void ldpc_encode_unpack(const u32 *plan, const u8 *info, u8 *bits, u32 thread, u32 threads)
{
	for (u32 bit = thread; bit < plan[PLAN_INFO_BITS]; bit += threads)
		bits[bit] = info[bit / 8] >> (7 - bit % 8) & 1;
}

// Second step: what the information bits add up to in each of the core's rows. All of it together is the first core column, turned by the odd shift.
MR_FN void ldpc_encode_core(const u32 *plan, u8 *bits, u32 thread, u32 threads)
{
	u32 z = plan[PLAN_Z];
	u8 *sums = bits + plan[PLAN_COLUMNS] * z, *parity = bits + plan[PLAN_INFO_BITS];
	for (u32 check = thread; check < z; check += threads) {
		u32 all = 0;
		for (u32 row = 0; row < PLAN_CORE_ROWS_NUMBER; row++) {
			u32 sum = ldpc_sum(plan, bits, row, check);
			sums[row * z + check] = static_cast<u8>(sum);
			all ^= sum;
		}
		parity[(check + plan[PLAN_ODD]) % z] = static_cast<u8>(all);
	}
}

// Third step: the other core columns. The first row has one of them, and each later row has that which the row before gave.
MR_FN void ldpc_encode_rest_of_core(const u32 *plan, u8 *bits, u32 thread, u32 threads)
{
	u32 z = plan[PLAN_Z];
	const u8 *sums = bits + plan[PLAN_COLUMNS] * z;
	u8 *parity = bits + plan[PLAN_INFO_BITS];
	for (u32 check = thread; check < z; check += threads) {
		u32 sum = 0;
		for (u32 row = 0; row + 1 < PLAN_CORE_ROWS_NUMBER; row++) {
			sum ^= sums[row * z + check];
			u32 shift = plan[PLAN_CORE_SHIFTS + row];
			if (shift != PLAN_NONE)
				sum ^= parity[(check + shift) % z];
			parity[(row + 1) * z + check] = static_cast<u8>(sum);
		}
	}
}

// Fourth step: a parity column for each further row.
MR_FN void ldpc_encode_rows(const u32 *plan, u8 *bits, u32 thread, u32 threads)
{
	u32 z = plan[PLAN_Z];
	for (u32 at = thread; at < (plan[PLAN_ROWS] - PLAN_CORE_ROWS_NUMBER) * z; at += threads) {
		u32 row = PLAN_CORE_ROWS_NUMBER + at / z, check = at % z;
		bits[plan[PLAN_INFO_BITS] + row * z + check] = static_cast<u8>(ldpc_sum(plan, bits, row, check));
	}
}

// Last step: packed again, without the first columns, which are never sent.
MR_FN void ldpc_encode_pack(const u32 *plan, const u8 *bits, u8 *coded, u32 thread, u32 threads)
{
	u32 first = plan[PLAN_PUNCTURED], end = plan[PLAN_COLUMNS] * plan[PLAN_Z];
	for (u32 octet = thread; octet < (end - first + 7) / 8; octet += threads) {
		u32 packed = 0;
		for (u32 bit = 0; bit < 8 && first + 8 * octet + bit < end; bit++)
			packed |= static_cast<u32>(bits[first + 8 * octet + bit]) << (7 - bit);
		coded[octet] = static_cast<u8>(packed);
	}
}
