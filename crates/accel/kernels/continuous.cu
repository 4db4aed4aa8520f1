// The continuous kernel: launched once, it serves the ring until it is told to leave.
//
// A block serves every gridDim.x-th slot. While there is nothing to do, its threads look at the doorbells, one each, so that all looks cross the
// bus at once; and sleep in between, longer and longer, so that idle hours cost nothing but the few lines that are looked at.
#include "ring.cuh"

#define THREADS 256
#define COPIES 32
// Looks at once, before pauses begin, and after which a pause is doubled.
#define LOOKS 256
#define LONGEST_PAUSE 2048

static_assert(RING_MOST_SLOTS < THREADS, "a thread for each doorbell of a block, and one for the command");

extern "C" __global__ void __launch_bounds__(THREADS, 2) continuous(u64 *ring)
{
	__shared__ u32 words[256 * COPIES];
	__shared__ u64 last[RING_MOST_SLOTS], rung[RING_MOST_SLOTS];
	u32 thread = threadIdx.x, slots = static_cast<u32>(ring[RING_SLOTS]);
	u32 mine = slots > blockIdx.x ? (slots - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
	for (u32 at = thread; at < 256 * COPIES; at += THREADS)
		words[at] = AES_TABLE.words[at / COPIES];
	AesLookup<COPIES> table = {words, thread % COPIES};
	// What was done last is what the ring says, not what an earlier launch remembers.
	if (thread < mine)
		last[thread] = load_acquire(ring_slot(ring, blockIdx.x + thread * gridDim.x).done + RING_SEQUENCE);
	u32 idle = 0;
	for (;;) {
		int told = 0, any = 0;
		if (thread < mine) {
			rung[thread] = load_acquire(ring_slot(ring, blockIdx.x + thread * gridDim.x).doorbell + RING_SEQUENCE);
			any = rung[thread] != last[thread];
		}
		if (thread == THREADS - 1)
			told = load_acquire(ring + RING_COMMAND) == RING_LEAVE;
		// All threads of the block come to the same answer, or some would wait for others that have gone.
		if (__syncthreads_or(told))
			return;
		if (!__syncthreads_or(any)) {
			idle = idle < 32 * LOOKS ? idle + 1 : idle;
			u32 pause = idle < LOOKS ? 0 : 16u << (idle / LOOKS < 7 ? idle / LOOKS : 7);
			if (pause > 0)
				__nanosleep(pause < LONGEST_PAUSE ? pause : LONGEST_PAUSE);
			continue;
		}
		idle = 0;
		for (u32 at = 0; at < mine; at++) {
			u64 sequence = rung[at];
			if (sequence == last[at])
				continue;
			RingSlot slot = ring_slot(ring, blockIdx.x + at * gridDim.x);
			u64 started = device_nanoseconds();
			u64 status = ring_work(table, slot, thread, THREADS);
			// What each thread wrote is on its way before the first one says that it is done.
			__threadfence_system();
			__syncthreads();
			if (thread == 0) {
				slot.done[RING_STATUS] = status;
				slot.done[RING_STARTED] = started;
				slot.done[RING_ENDED] = device_nanoseconds();
				store_release(slot.done + RING_SEQUENCE, sequence);
				last[at] = sequence;
			}
			__syncthreads();
		}
	}
}
