// Layered min-sum decoding, bit for bit as `ran` does it (crates/ran/src/ldpc/plain.rs): a lane is a check of a row, and all checks of a row may be done in
// any order or at once, for no two of them have a bit in common. Between rows, all lanes have to be done.
#pragma once
#include "common.cuh"
#include "layout.cuh"

// What is thought of a filler bit.
#define LDPC_PINNED 127

// A block's memory.
struct LdpcBlock {
	const u32 *plan;
	// LLRs of the coded bits that were received.
	const i8 *received;
	// What is thought of each bit, column by column.
	i8 *bits;
	// What each check last said to each of its bits: Z octets for each edge.
	i8 *said;
};

MR_FN u32 ldpc_plan(const LdpcBlock &block, u32 at)
{
	return block.plan[at];
}

// Octets of `bits`: the columns of the rows that are used.
MR_FN u32 ldpc_bits(const u32 *plan)
{
	return (plan[PLAN_CORE_END] + plan[PLAN_ROWS] - PLAN_CORE_ROWS_NUMBER) * plan[PLAN_Z];
}

MR_FN i32 ldpc_clip(i32 value)
{
	return value < -128 ? -128 : value > 127 ? 127 : value;
}

MR_FN i32 ldpc_less(i32 a, i32 b)
{
	return a < b ? a : b;
}

MR_FN i32 ldpc_more(i32 a, i32 b)
{
	return a < b ? b : a;
}

// What the channel says of a bit.
MR_FN i32 ldpc_received(const LdpcBlock &block, u32 at)
{
	if (at >= ldpc_plan(block, PLAN_FILLERS_FROM) && at < ldpc_plan(block, PLAN_INFO_BITS))
		return LDPC_PINNED;
	u32 sent = at - ldpc_plan(block, PLAN_PUNCTURED);
	return at >= ldpc_plan(block, PLAN_PUNCTURED) && sent < ldpc_plan(block, PLAN_RECEIVED) ? block.received[sent] : 0;
}

// Before the first iteration.
MR_FN void ldpc_load(const LdpcBlock &block, u32 thread, u32 threads)
{
	u32 bits = ldpc_bits(block.plan), messages = ldpc_plan(block, PLAN_EDGES) * ldpc_plan(block, PLAN_Z);
	for (u32 at = thread; at < bits; at += threads)
		block.bits[at] = static_cast<i8>(ldpc_received(block, at));
	for (u32 at = thread; at < messages; at += threads)
		block.said[at] = 0;
}

struct LdpcRow {
	u32 first;
	u32 degree;
	// Its correction's tables, 16 octets each.
	const u8 *correction;
};

MR_FN LdpcRow ldpc_row(const u32 *plan, u32 row)
{
	u32 here = plan[PLAN_HEADER + row], next = plan[PLAN_HEADER + row + 1];
	u32 first = here & 0xffff;
	const u32 *corrections = plan + plan[PLAN_CORRECTIONS] + (here >> 16) * 12;
	return {first, (next & 0xffff) - first, reinterpret_cast<const u8 *>(corrections)};
}

// Where the bit is that an edge leads to from a check.
MR_FN u32 ldpc_bit(const LdpcBlock &block, u32 edge, u32 check, u32 &column)
{
	u32 word = ldpc_plan(block, ldpc_plan(block, PLAN_FIRST_EDGE) + edge), z = ldpc_plan(block, PLAN_Z);
	column = word >> 16;
	u32 turned = check + (word & 0xffff);
	return column * z + (turned >= z ? turned - z : turned);
}

// What a check makes of what it hears, for rows of at most MOST edges.
template <int MOST> MR_FN void ldpc_check(const LdpcBlock &block, const LdpcRow &row, u32 check)
{
	u32 z = ldpc_plan(block, PLAN_Z);
	// Both what is heard of a bit and where it is, in a register: a place is less than 2^15.
	u32 kept[MOST];
	i32 least = 255, second = 255, odd = 0;
	MR_UNROLL
	for (u32 edge = 0; edge < MOST; edge++) {
		if (edge >= row.degree)
			continue;
		u32 column;
		u32 at = ldpc_bit(block, row.first + edge, check, column);
		// What the bit would be thought of without this row. Of the row's own column that is what was received.
		i32 heard = column >= ldpc_plan(block, PLAN_CORE_END)
				    ? ldpc_received(block, at)
				    : ldpc_clip(block.bits[at] - block.said[(row.first + edge) * z + check]);
		kept[edge] = static_cast<u32>(heard & 0xff) << 16 | at;
		i32 magnitude = heard < 0 ? -heard : heard;
		odd ^= heard < 0;
		second = ldpc_less(second, ldpc_more(least, magnitude));
		least = ldpc_less(least, magnitude);
	}
	const u8 *tables = row.correction;
	i32 most = static_cast<i32>(ldpc_plan(block, PLAN_MOST_SAID_AT));
	i32 low = ldpc_less(least, most), high = ldpc_less(second, most);
	i32 gap = tables[16 + ldpc_less(high - low, 15)];
	i32 say_to_others = ldpc_more(ldpc_more(low - tables[low / 2], 0) - gap, 0);
	i32 say_to_least = ldpc_more(high - tables[32 + high / 2], 0);
	MR_UNROLL
	for (u32 edge = 0; edge < MOST; edge++) {
		if (edge >= row.degree)
			continue;
		i32 heard = static_cast<i8>(kept[edge] >> 16);
		u32 at = kept[edge] & 0xffff;
		i32 magnitude = heard < 0 ? -heard : heard;
		i32 say = magnitude == least ? say_to_least : say_to_others;
		i32 said = odd ^ (heard < 0) ? -say : say;
		block.said[(row.first + edge) * z + check] = static_cast<i8>(said);
		bool filler = at >= ldpc_plan(block, PLAN_FILLERS_FROM) && at < ldpc_plan(block, PLAN_INFO_BITS);
		block.bits[at] = static_cast<i8>(filler ? LDPC_PINNED : ldpc_clip(heard + said));
	}
}

// A row's part of an iteration, for the checks that are this thread's. Afterwards all threads wait for each other.
MR_FN void ldpc_sweep(const LdpcBlock &block, u32 row_number, u32 thread, u32 threads)
{
	LdpcRow row = ldpc_row(block.plan, row_number);
	u32 z = ldpc_plan(block, PLAN_Z);
	for (u32 check = thread; check < z; check += threads) {
		// What a thread heard stays in registers; for that, its number has to be known to the compiler.
		if (row.degree <= 4)
			ldpc_check<4>(block, row, check);
		else if (row.degree <= 6)
			ldpc_check<6>(block, row, check);
		else if (row.degree <= 8)
			ldpc_check<8>(block, row, check);
		else if (row.degree <= 10)
			ldpc_check<10>(block, row, check);
		else
			ldpc_check<PLAN_MOST_DEGREE>(block, row, check);
	}
}

// Whether the bits fulfil this thread's checks, of all rows.
MR_FN bool ldpc_holds(const LdpcBlock &block, u32 thread, u32 threads)
{
	u32 z = ldpc_plan(block, PLAN_Z), odd = 0;
	for (u32 row_number = 0; row_number < ldpc_plan(block, PLAN_ROWS); row_number++) {
		LdpcRow row = ldpc_row(block.plan, row_number);
		for (u32 check = thread; check < z; check += threads) {
			u32 ones = 0, column;
			for (u32 edge = row.first; edge < row.first + row.degree; edge++)
				ones ^= block.bits[ldpc_bit(block, edge, check, column)] < 0;
			odd |= ones;
		}
	}
	return odd == 0;
}

// Writes the information bits' octets that are this thread's.
MR_FN void ldpc_pack(const LdpcBlock &block, u8 *info, u32 thread, u32 threads)
{
	u32 bits = ldpc_plan(block, PLAN_INFO_BITS);
	for (u32 octet = thread; octet < (bits + 7) / 8; octet += threads) {
		u32 packed = 0;
		for (u32 bit = 0; bit < 8 && 8 * octet + bit < bits; bit++)
			packed |= (block.bits[8 * octet + bit] < 0 ? 0x80u : 0) >> bit;
		info[octet] = static_cast<u8>(packed);
	}
}

// As Verdict of src/task.rs.
MR_FN void ldpc_verdict(u8 *octets, u32 iterations, bool holds)
{
	octets[0] = static_cast<u8>(iterations);
	octets[1] = static_cast<u8>(iterations >> 8);
	octets[2] = holds;
	octets[3] = 0;
}
