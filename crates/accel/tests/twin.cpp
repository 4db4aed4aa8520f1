// The kernels' headers as a program for the host: `twin NAME` reads octets and writes octets. Numbers are 32 bits, little-endian. A block of threads is played by
// one thread after the other.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "ldpc_decode.cuh"
#include "ldpc_encode.cuh"
#include "lookup.cuh"
#include "ring.cuh"

// Threads that are played.
static const u32 THREADS = 7;

static std::vector<u8> input;
static size_t used;

static u32 number()
{
	u32 value = 0;
	if (used + 4 <= input.size())
		memcpy(&value, &input[used], 4);
	used += 4;
	return value;
}

// Octets, copied to where any word may begin.
static std::vector<u64> octets(u32 length)
{
	std::vector<u64> copy(length / 8 + 4);
	if (used + length <= input.size())
		memcpy(copy.data(), &input[used], length);
	used += length;
	return copy;
}

template <typename T> static T *as(std::vector<u64> &words)
{
	return reinterpret_cast<T *>(words.data());
}

static void answer(const void *from, size_t length)
{
	fwrite(from, 1, length, stdout);
}

// count, hashes; items.
static void hash()
{
	u32 count = number(), hashes = number();
	std::vector<u64> items = octets(count * HASHED_OCTETS);
	std::vector<u32> output(count);
	for (u32 thread = 0; thread < THREADS; thread++)
		hash_items(as<u8>(items), count, hashes, reinterpret_cast<u8 *>(output.data()), thread, THREADS);
	answer(output.data(), count * 4);
}

// count, octets of data, lanes; descriptors, data.
static void nea2()
{
	u32 count = number(), length = number(), lanes = number();
	std::vector<u64> items = octets(count * sizeof(Descriptor)), data = octets(length), output(length / 8 + 4);
	AesLookup<1> table = {AES_TABLE.words, 0};
	for (u32 thread = 0; thread < 3 * lanes; thread++)
		nea2_packets(table, as<u8>(items), count, as<u8>(data), length, as<u8>(output), thread, 3 * lanes, lanes);
	answer(output.data(), length);
}

// words of the plan, blocks, octets of a block, octets of its answer; plan, blocks.
static void ldpc(bool encode)
{
	u32 words = number(), blocks = number(), block_octets = number(), answer_octets = number();
	std::vector<u64> plan_octets = octets(words * 4);
	const u32 *plan = as<u32>(plan_octets);
	std::vector<i8> memory;
	for (u32 number = 0; number < blocks; number++) {
		std::vector<u64> block_words = octets(block_octets), out(answer_octets / 8 + 4);
		u8 *to = as<u8>(out);
		// Each step by all threads, before the next one.
		auto each = [&](auto step) {
			for (u32 thread = 0; thread < THREADS; thread++)
				step(thread);
		};
		if (encode) {
			memory.assign(ldpc_encode_octets(plan), 0x55);
			u8 *bits = reinterpret_cast<u8 *>(memory.data());
			each([&](u32 thread) { ldpc_encode_unpack(plan, as<u8>(block_words), bits, thread, THREADS); });
			each([&](u32 thread) { ldpc_encode_core(plan, bits, thread, THREADS); });
			each([&](u32 thread) { ldpc_encode_rest_of_core(plan, bits, thread, THREADS); });
			each([&](u32 thread) { ldpc_encode_rows(plan, bits, thread, THREADS); });
			each([&](u32 thread) { ldpc_encode_pack(plan, bits, to, thread, THREADS); });
		} else {
			u32 bits = ldpc_bits(plan);
			memory.assign(bits + plan[PLAN_EDGES] * plan[PLAN_Z], 0x55);
			LdpcBlock block = {plan, as<i8>(block_words), memory.data(), memory.data() + bits};
			auto holds = [&] {
				bool all = true;
				each([&](u32 thread) { all &= ldpc_holds(block, thread, THREADS); });
				return all;
			};
			each([&](u32 thread) { ldpc_load(block, thread, THREADS); });
			u32 iterations = 0;
			bool held = false;
			while (iterations < plan[PLAN_ITERATIONS] && !held) {
				for (u32 row = 0; row < plan[PLAN_ROWS]; row++)
					each([&](u32 thread) { ldpc_sweep(block, row, thread, THREADS); });
				iterations++;
				held = plan[PLAN_EARLY_STOP] && holds();
			}
			ldpc_verdict(to, iterations, held || holds());
			each([&](u32 thread) { ldpc_pack(block, to + PLAN_VERDICT, thread, THREADS); });
		}
		answer(to, answer_octets);
	}
}

// words of the copy, kind, count, words of a key; copy, keys.
static void look_up()
{
	u32 words = number(), kind = number(), count = number(), key_words = number();
	std::vector<u64> copy = octets(words * 4), keys = octets(count * key_words * 4);
	std::vector<u32> output(count);
	for (u32 thread = 0; thread < THREADS; thread++)
		table_look_up(as<u32>(copy), kind, as<u8>(keys), count, reinterpret_cast<u8 *>(output.data()), thread, THREADS);
	answer(output.data(), count * 4);
}

// A ring as it lies in memory; it comes back with one look at each slot done.
static void ring()
{
	u32 length = static_cast<u32>(input.size());
	std::vector<u64> words = octets(length);
	AesLookup<1> table = {AES_TABLE.words, 0};
	for (u64 number = 0; number < words[RING_SLOTS]; number++) {
		RingSlot slot = ring_slot(words.data(), number);
		u64 sequence = load_acquire(slot.doorbell + RING_SEQUENCE);
		if (sequence == slot.done[RING_SEQUENCE])
			continue;
		// As many threads as the kernel has.
		u64 status = RING_DONE;
		for (u32 thread = 0; thread < 256; thread++)
			status |= ring_work(table, slot, thread, 256);
		slot.done[RING_STATUS] = status;
		store_release(slot.done + RING_SEQUENCE, sequence);
	}
	answer(words.data(), length);
}

int main(int count, char **arguments)
{
	std::string name = count > 1 ? arguments[1] : "";
	u8 buffer[65536];
	while (size_t got = fread(buffer, 1, sizeof(buffer), stdin))
		input.insert(input.end(), buffer, buffer + got);
	if (name == "hash")
		hash();
	else if (name == "nea2")
		nea2();
	else if (name == "encode" || name == "decode")
		ldpc(name == "encode");
	else if (name == "look_up")
		look_up();
	else if (name == "ring")
		ring();
	else
		return 2;
	return 0;
}
