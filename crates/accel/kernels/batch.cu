// A launch for each batch of light tasks: what the continuous kernel is compared with, and what takes batches that are too large for its ring.
#include "hash.cuh"
#include "lookup.cuh"
#include "nea2.cuh"

#define THREADS 256
#define COPIES 32

extern "C" __global__ void __launch_bounds__(THREADS) hash(const u8 *items, u32 count, u32 hashes, u8 *output)
{
	hash_items(items, count, hashes, output, blockIdx.x * THREADS + threadIdx.x, gridDim.x * THREADS);
}

// `lanes` divides the threads of a block.
extern "C" __global__ void __launch_bounds__(THREADS)
	nea2(const u8 *items, u32 count, const u8 *data, u32 data_octets, u8 *output, u32 lanes)
{
	__shared__ u32 words[256 * COPIES];
	for (u32 at = threadIdx.x; at < 256 * COPIES; at += THREADS)
		words[at] = AES_TABLE.words[at / COPIES];
	__syncthreads();
	AesLookup<COPIES> table = {words, threadIdx.x % COPIES};
	nea2_packets(table, items, count, data, data_octets, output, blockIdx.x * THREADS + threadIdx.x,
		     gridDim.x * THREADS, lanes);
}

// `kind` is a number that the compiler is told for each of the kernels below: each then has what its kind needs, and no more registers.
#define LOOK_UP(NAME, KIND)                                                                                                \
	extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
		NAME(const u32 *header, const u8 *items, u32 count, u8 *output)                                            \
	{                                                                                                                  \
		table_look_up(header, KIND, items, count, output, blockIdx.x * THREADS + threadIdx.x,                      \
			      gridDim.x * THREADS);                                                                        \
	}

LOOK_UP(look_up_flow4, TABLE_FLOW4)
LOOK_UP(look_up_flow6, TABLE_FLOW6)
LOOK_UP(look_up_link, TABLE_LINK)
LOOK_UP(look_up_lpm4, TABLE_LPM4)
LOOK_UP(look_up_lpm6, TABLE_LPM6)
LOOK_UP(look_up_memo, TABLE_MEMO)
