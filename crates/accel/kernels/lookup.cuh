// Task::Lookup: look-ups in a copy of a table, laid out as tables::image says, with a header as in src/copies/layout.rs. src/copies/read.rs is the same.
//
// The host may write lines while they are read. Whatever stands there, nothing is read outside the copy, and each look-up ends; whether the answer is one is
// for the host to say, which knows when it wrote.
#pragma once
#include "common.cuh"
#include "layout.cuh"

MR_FN u32 table_word(const u32 *word)
{
#if defined(__CUDACC__)
	u32 value;
	asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
	return value;
#else
	return __atomic_load_n(word, __ATOMIC_RELAXED);
#endif
}

// Four words at a time, from a place that is a multiple of 16 octets; each of them is whole.
MR_FN Octets16 table_words(const u32 *words)
{
#if defined(__CUDACC__)
	Octets16 value;
	asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
		     : "=r"(value.words[0]), "=r"(value.words[1]), "=r"(value.words[2]), "=r"(value.words[3])
		     : "l"(words)
		     : "memory");
	return value;
#else
	Octets16 value;
	for (int at = 0; at < 4; at++)
		value.words[at] = table_word(words + at);
	return value;
#endif
}

// What all look-ups of a batch need of the header, read once.
struct Table {
	u32 kind;
	u32 parameters[16];
	const u32 *regions[TABLE_MOST_REGIONS];
	// In words.
	u64 lengths[TABLE_MOST_REGIONS];
};

MR_FN Table table_open(const u32 *header)
{
	Table table;
	table.kind = table_word(header + TABLE_KIND);
	MR_UNROLL
	for (int at = 0; at < 16; at++)
		table.parameters[at] = table_word(header + TABLE_PARAMETERS + at);
	MR_UNROLL
	for (int at = 0; at < TABLE_MOST_REGIONS; at++) {
		u64 first = table_word(header + TABLE_REGIONS + at);
		table.regions[at] = header + first * TABLE_LINE;
		table.lengths[at] = static_cast<u64>(table_word(header + TABLE_LENGTHS + at)) * TABLE_LINE;
	}
	return table;
}

MR_FN u32 table_region(const Table &table, int region, u64 at)
{
	return at < table.lengths[region] ? table_word(table.regions[region] + at) : 0;
}

MR_FN Octets16 table_region4(const Table &table, int region, u64 at)
{
	return at < table.lengths[region] ? table_words(table.regions[region] + at) : Octets16{{0, 0, 0, 0}};
}

MR_FN u32 table_fold(u32 word, u32 factor)
{
	u64 product = static_cast<u64>(word) * factor;
	return static_cast<u32>(product) ^ static_cast<u32>(product >> 32);
}

MR_FN u32 table_scale(u32 hash, u32 count)
{
	return static_cast<u32>((static_cast<u64>(hash) * count) >> 32);
}

struct TableHash {
	u32 a;
	u32 b;
};

template <int WORDS> MR_FN TableHash table_hash(const Table &table, const u32 *key)
{
	u64 sum = 0;
	MR_UNROLL
	for (int at = 0; at < WORDS; at += 2)
		sum += static_cast<u64>(key[at] + table.parameters[1 + at]) * (key[at + 1] + table.parameters[2 + at]);
	u32 a = static_cast<u32>(sum), b = static_cast<u32>(sum >> 32);
	b ^= table_fold(a + table.parameters[1 + WORDS], 0x9e3779b1u);
	a ^= table_fold(b + table.parameters[2 + WORDS], 0x85ebca77u);
	b ^= table_fold(a + table.parameters[3 + WORDS], 0xc2b2ae3du);
	return {a, b};
}

// TABLE_FLOW4 and TABLE_LINK: four entries in a line.
MR_FN u32 table_slots(const Table &table, const u32 *key)
{
	TableHash hash = table_hash<4>(table, key);
	u32 buckets[2] = {table_scale(hash.a, table.parameters[0]), table_scale(hash.b, table.parameters[0])};
	MR_UNROLL
	for (int bucket = 0; bucket < 2; bucket++) {
		// A line is four loads, all asked for before the first is looked at.
		Octets16 slots[4];
		MR_UNROLL
		for (int slot = 0; slot < 4; slot++)
			slots[slot] = table_region4(table, 0, static_cast<u64>(buckets[bucket]) * TABLE_LINE + 4 * slot);
		MR_UNROLL
		for (int slot = 0; slot < 4; slot++) {
			u32 other = 0;
			MR_UNROLL
			for (int at = 0; at < 4; at++)
				other |= (slots[slot].words[at] & table.parameters[8 + at]) ^ key[at];
			u32 value = slots[slot].words[3] >> 8;
			if (other == 0 && value != 0)
				return value - 1;
		}
	}
	return TABLE_NONE;
}

// TABLE_FLOW6: eight tags in a line, each with the number of a record.
MR_FN u32 table_tags(const Table &table, const u32 *key)
{
	TableHash hash = table_hash<TABLE_MOST_KEY>(table, key);
	u32 count = table.parameters[0], home = table_scale(hash.a, count);
	u32 other = table_scale(hash.b, count) - home;
	u32 buckets[2] = {home, other > count ? other + count : other};
	for (int bucket = 0; bucket < 2; bucket++) {
		u64 line = static_cast<u64>(buckets[bucket]) * TABLE_LINE;
		Octets16 tags[2] = {table_region4(table, 0, line), table_region4(table, 0, line + 4)};
		MR_UNROLL
		for (int slot = 0; slot < 8; slot++) {
			if (tags[slot / 4].words[slot % 4] != hash.b)
				continue;
			u32 number = table_region(table, 0, line + 8 + slot);
			if (number == 0)
				continue;
			u64 record = static_cast<u64>(number - 1) * TABLE_LINE;
			Octets16 words[3];
			MR_UNROLL
			for (int at = 0; at < 3; at++)
				words[at] = table_region4(table, 1, record + 4 * at);
			u32 differs = 0;
			MR_UNROLL
			for (int at = 0; at < TABLE_MOST_KEY; at++)
				differs |= words[at / 4].words[at % 4] ^ key[at];
			if (differs == 0)
				return words[TABLE_MOST_KEY / 4].words[TABLE_MOST_KEY % 4];
		}
	}
	return TABLE_NONE;
}

MR_FN u32 table_octet(const u32 *address, u32 bits)
{
	// Not by an index: what is indexed can't stay in registers.
	u32 word = address[0];
	MR_UNROLL
	for (u32 at = 1; at < 4; at++)
		word = bits / 32 == at ? address[at] : word;
	return word >> (24 - bits % 32) & 0xff;
}

// TABLE_LPM4 and TABLE_LPM6: entries that lead to nodes or to an answer. `bits` are the address's.
MR_FN u32 table_route(const Table &table, const u32 *address, u32 bits)
{
	u32 root = table.parameters[0];
	root = root < 1 ? 1 : root > 24 ? 24 : root;
	u32 entry = table_region(table, 0, address[0] >> (32 - root));
	u32 decided = root;
	while (entry >> 31 == 1 && decided < bits) {
		u64 node = entry & 0x3fffffff;
		if (entry >> 30 & 1) {
			Octets16 prefix = table_region4(table, 2, 8 * node), more = table_region4(table, 2, 8 * node + 4);
			u32 until = more.words[0];
			// A node is further down than what leads to it, or else it is half written.
			if (until < decided || until >= bits || until % 8 != 0)
				return TABLE_NONE;
			u32 differs = 0;
			for (u32 at = 0; at < until; at += 8)
				differs |= table_octet(prefix.words, at) ^ table_octet(address, at);
			if (differs != 0) {
				entry = more.words[1];
				break;
			}
			decided = until;
		}
		entry = table_region(table, 1, 256 * node + table_octet(address, decided));
		decided += 8;
	}
	if (entry >> 31 == 1)
		return TABLE_NONE;
	if (entry == 0)
		entry = table.parameters[1];
	return entry >> 24 & 1 ? entry & 0xffff : TABLE_NONE;
}

// TABLE_MEMO: a line of eight marks and eight values plus one.
MR_FN u32 table_memo(const Table &table, const u32 *key)
{
	u64 line = static_cast<u64>(key[0] & (table.parameters[0] - 1)) * TABLE_LINE;
	Octets16 marks[2], values[2];
	MR_UNROLL
	for (int at = 0; at < 2; at++) {
		marks[at] = table_region4(table, 0, line + 4 * at);
		values[at] = table_region4(table, 0, line + 8 + 4 * at);
	}
	// From the last place to the first, which is the one that answers.
	u32 answer = TABLE_NONE;
	MR_UNROLL
	for (int place = 7; place >= 0; place--) {
		u32 value = values[place / 4].words[place % 4];
		if (marks[place / 4].words[place % 4] == key[1] && value != 0)
			answer = value - 1;
	}
	return answer;
}

// Words of a key; zero if there is no such kind.
MR_FN u32 table_key_words(u32 kind)
{
	switch (kind) {
	case TABLE_FLOW4:
	case TABLE_LINK:
	case TABLE_LPM6:
		return 4;
	case TABLE_FLOW6:
		return TABLE_MOST_KEY;
	case TABLE_LPM4:
		return 1;
	case TABLE_MEMO:
		return 2;
	}
	return 0;
}

// Key `thread` of `threads` and each that is so many further, in a table of that kind.
MR_FN void table_look_up(const u32 *header, u32 kind, const u8 *items, u32 count, u8 *output, u32 thread, u32 threads)
{
	Table table = table_open(header);
	u32 words = table_key_words(kind);
	for (u32 item = thread; item < count; item += threads) {
		const u32 *from = reinterpret_cast<const u32 *>(items) + static_cast<u64>(item) * words;
		u32 key[TABLE_MOST_KEY], answer = TABLE_NONE;
		MR_UNROLL
		for (u32 at = 0; at < TABLE_MOST_KEY; at++)
			key[at] = at < words ? from[at] : 0;
		// A copy of another kind has no answers.
		if (table.kind == kind && (kind == TABLE_FLOW4 || kind == TABLE_LINK))
			answer = table_slots(table, key);
		else if (table.kind == kind && kind == TABLE_FLOW6)
			answer = table_tags(table, key);
		else if (table.kind == kind && (kind == TABLE_LPM4 || kind == TABLE_LPM6))
			answer = table_route(table, key, 32 * words);
		else if (table.kind == kind && kind == TABLE_MEMO)
			answer = table_memo(table, key);
		reinterpret_cast<u32 *>(output)[item] = answer;
	}
}
