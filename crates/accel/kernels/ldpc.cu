// LDPC: a block of threads for each code block, a thread for each check of a row.
//
// What a code block needs lies in shared memory where that is large enough (144 KB for the largest code at its lowest rate: an A100 and an H100 have
// that), and else in `workspace`, `stride` octets for each block of threads.
#include "ldpc_decode.cuh"
#include "ldpc_encode.cuh"

#define MOST_THREADS 384

extern __shared__ u32 shared_words[];

MR_FN u8 *memory_of(u8 *workspace, u64 stride)
{
	return workspace == nullptr ? reinterpret_cast<u8 *>(shared_words) : workspace + blockIdx.x * stride;
}

extern "C" __global__ void __launch_bounds__(MOST_THREADS)
	ldpc_decode(const u32 *plan, const i8 *llrs, u8 *output, u32 blocks, u8 *workspace, u64 stride)
{
	u32 thread = threadIdx.x, threads = blockDim.x;
	u64 answer = PLAN_VERDICT + (plan[PLAN_INFO_BITS] + 7) / 8;
	i8 *memory = reinterpret_cast<i8 *>(memory_of(workspace, stride));
	for (u32 number = blockIdx.x; number < blocks; number += gridDim.x) {
		const i8 *received = llrs + static_cast<u64>(number) * plan[PLAN_RECEIVED];
		LdpcBlock block = {plan, received, memory, memory + ldpc_bits(plan)};
		ldpc_load(block, thread, threads);
		__syncthreads();
		u32 iterations = 0;
		bool holds = false;
		while (iterations < plan[PLAN_ITERATIONS] && !holds) {
			for (u32 row = 0; row < plan[PLAN_ROWS]; row++) {
				ldpc_sweep(block, row, thread, threads);
				__syncthreads();
			}
			iterations++;
			if (plan[PLAN_EARLY_STOP])
				holds = !__syncthreads_or(!ldpc_holds(block, thread, threads));
		}
		if (!holds)
			holds = !__syncthreads_or(!ldpc_holds(block, thread, threads));
		u8 *to = output + number * answer;
		if (thread == 0)
			ldpc_verdict(to, iterations, holds);
		ldpc_pack(block, to + PLAN_VERDICT, thread, threads);
		__syncthreads();
	}
}

extern "C" __global__ void __launch_bounds__(MOST_THREADS)
	ldpc_encode(const u32 *plan, const u8 *items, u8 *output, u32 blocks, u8 *workspace, u64 stride)
{
	u32 thread = threadIdx.x, threads = blockDim.x;
	u64 info = (plan[PLAN_INFO_BITS] + 7) / 8;
	u64 coded = (plan[PLAN_COLUMNS] * plan[PLAN_Z] - plan[PLAN_PUNCTURED] + 7) / 8;
	u8 *bits = memory_of(workspace, stride);
	for (u32 number = blockIdx.x; number < blocks; number += gridDim.x) {
		ldpc_encode_unpack(plan, items + number * info, bits, thread, threads);
		__syncthreads();
		ldpc_encode_core(plan, bits, thread, threads);
		__syncthreads();
		ldpc_encode_rest_of_core(plan, bits, thread, threads);
		__syncthreads();
		ldpc_encode_rows(plan, bits, thread, threads);
		__syncthreads();
		ldpc_encode_pack(plan, bits, output + number * coded, thread, threads);
		__syncthreads();
	}
}
