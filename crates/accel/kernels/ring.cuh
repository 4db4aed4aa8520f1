// The device's side of the ring: src/ring says how it works, and src/ring/layout.rs where what is.
#pragma once
#include "hash.cuh"
#include "layout.cuh"
#include "lookup.cuh"
#include "nea2.cuh"

// Kinds of tasks, as src/task.rs numbers them.
#define KIND_HASH 1
#define KIND_NEA2 2
#define KIND_LOOKUP 5

struct RingSlot {
	u64 *doorbell;
	u64 *done;
	const u8 *input;
	u8 *output;
	u64 input_octets;
	u64 output_octets;
};

MR_FN RingSlot ring_slot(u64 *ring, u64 slot)
{
	u64 input = ring[RING_INPUT_LINES] * RING_LINE, output = ring[RING_OUTPUT_LINES] * RING_LINE;
	u64 *doorbell = ring + RING_LINE + slot * (2 * RING_LINE + input + output);
	u64 *done = doorbell + RING_LINE, *data = done + RING_LINE;
	return {doorbell, done, reinterpret_cast<u8 *>(data), reinterpret_cast<u8 *>(data + input), 8 * input, 8 * output};
}

// Threads for each packet: few packets get more, and none fewer than make a load of 64 octets.
MR_FN u32 ring_lanes(u64 packets, u32 threads)
{
	u32 lanes = 32;
	while (lanes > 4 && lanes * packets > threads)
		lanes /= 2;
	return lanes > threads ? 1 : lanes;
}

// What was rung for; the status. All threads of a block come here together.
template <int COPIES> MR_FN u64 ring_work(const AesLookup<COPIES> &table, const RingSlot &slot, u32 thread, u32 threads)
{
	u64 task = slot.doorbell[RING_TASK], items = slot.doorbell[RING_ITEMS];
	u64 input = slot.doorbell[RING_INPUT], output = slot.doorbell[RING_OUTPUT];
	if (input > slot.input_octets || output > slot.output_octets || items > slot.input_octets)
		return RING_NO_TASK;
	if ((task & 0xff) == KIND_HASH && items * HASHED_OCTETS <= input && items * 4 <= output) {
		hash_items(slot.input, static_cast<u32>(items), static_cast<u32>(task >> 8), slot.output, thread, threads);
		return RING_DONE;
	}
	u64 table_address = slot.doorbell[RING_TABLE];
	u32 kind = static_cast<u32>(task >> 8);
	if ((task & 0xff) == KIND_LOOKUP && table_address != 0 && items * table_key_words(kind) * 4 <= input &&
	    items * 4 <= output) {
		table_look_up(reinterpret_cast<const u32 *>(table_address), kind, slot.input, static_cast<u32>(items), slot.output,
			      thread, threads);
		return RING_DONE;
	}
	u64 data = items * sizeof(Descriptor);
	if (task == KIND_NEA2 && data <= input && input - data <= output) {
		nea2_packets(table, slot.input, static_cast<u32>(items), slot.input + data, static_cast<u32>(input - data),
			     slot.output, thread, threads, ring_lanes(items, threads));
		return RING_DONE;
	}
	return RING_NO_TASK;
}
