// Task::Nea2 (TS 33.501 D.2.1.3): a batch's packets, each by its own key. A packet has `lanes` threads; each of them expands the key for itself,
// which takes no longer than if one did it for all, and does every `lanes`-th block.
#pragma once
#include "aes.cuh"

// As src/task.rs lays it out.
struct Descriptor {
	u32 key[4];
	u32 count;
	u8 bearer;
	u8 direction;
	u8 none[2];
	u32 place;
	u32 length;
};

static_assert(sizeof(Descriptor) == 32, "as in src/task.rs");

// Lane `lane` of a packet's. What lies behind a packet, up to a multiple of 16 octets, is zero in `data`, and becomes zero in `output`.
template <int COPIES>
MR_FN void nea2_packet(const AesLookup<COPIES> &table, const Descriptor &packet, const u8 *data, u32 data_octets,
		       u8 *output, u32 lane, u32 lanes)
{
	u32 blocks = packet.length / 16 + (packet.length % 16 != 0);
	// A packet that isn't in the data was never in a batch either.
	if (lane >= blocks || packet.place % 16 != 0 || packet.place > data_octets ||
	    packet.length > data_octets - packet.place)
		return;
	AesKeys keys;
	aes_expand(table, packet.key, keys);
	u32 second = static_cast<u32>(packet.bearer) << 27 | static_cast<u32>(packet.direction) << 26;
	const Octets16 *from = reinterpret_cast<const Octets16 *>(data + packet.place);
	Octets16 *to = reinterpret_cast<Octets16 *>(output + packet.place);
	for (u32 block = lane; block < blocks; block += lanes) {
		u32 stream[4] = {packet.count, second, 0, block};
		aes_encrypt(table, keys, stream);
		Octets16 octets = from[block];
		u32 left = packet.length - 16 * block;
		MR_UNROLL
		for (u32 at = 0; at < 4; at++) {
			// Of big-endian words the first octets are the uppermost.
			u32 used = left <= 4 * at ? 0 : left - 4 * at;
			u32 mask = used >= 4 ? ~0u : ~(~0u >> (8 * used));
			octets.words[at] ^= swapped(stream[at] & (used == 0 ? 0 : mask));
		}
		to[block] = octets;
	}
}

// Thread `thread` of `threads`, a multiple of `lanes`: the packets that are its, and its blocks of these.
template <int COPIES>
MR_FN void nea2_packets(const AesLookup<COPIES> &table, const u8 *items, u32 count, const u8 *data, u32 data_octets,
			u8 *output, u32 thread, u32 threads, u32 lanes)
{
	const Descriptor *packets = reinterpret_cast<const Descriptor *>(items);
	for (u32 packet = thread / lanes; packet < count; packet += threads / lanes)
		nea2_packet(table, packets[packet], data, data_octets, output, thread % lanes, lanes);
}
