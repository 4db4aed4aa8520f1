// What all kernels share, for two compilers: NVRTC, and any C++17 compiler of the host, by which tests run the same code without a GPU.
// There are no headers to include: NVRTC has none at run time.
#pragma once

#if defined(__CUDACC__)
#define MR_FN __device__ __forceinline__
#define MR_CONSTANT __constant__
#define MR_UNROLL _Pragma("unroll")
#else
#define MR_FN inline
#define MR_CONSTANT static
#define MR_UNROLL
#endif

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;

static_assert(sizeof(u32) == 4 && sizeof(u64) == 8, "widths of integers");

// 16 octets: what a thread loads and stores at a time.
struct alignas(16) Octets16 {
	u32 words[4];
};

// The other order of octets: AES's words are big-endian.
MR_FN u32 swapped(u32 word)
{
#if defined(__CUDACC__)
	return __byte_perm(word, 0, 0x0123);
#else
	return __builtin_bswap32(word);
#endif
}

MR_FN u32 rotated_right(u32 word, int bits)
{
#if defined(__CUDACC__)
	return __funnelshift_r(word, word, bits);
#else
	return word >> bits | word << (32 - bits);
#endif
}

// The upper half of the product.
MR_FN u64 product_high(u64 a, u64 b)
{
#if defined(__CUDACC__)
	return __umul64hi(a, b);
#else
	return static_cast<u64>((static_cast<unsigned __int128>(a) * b) >> 64);
#endif
}

// Words that host and device both see. The scope is the system's: nothing less orders what crosses the bus.
MR_FN u64 load_acquire(const u64 *word)
{
#if defined(__CUDACC__)
	u64 value;
	asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
	return value;
#else
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
#endif
}

MR_FN void store_release(u64 *word, u64 value)
{
#if defined(__CUDACC__)
	asm volatile("st.release.sys.global.u64 [%0], %1;" : : "l"(word), "l"(value) : "memory");
#else
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
#endif
}

// What the host may change while it is read. Never from a cache that nobody keeps up to date.
MR_FN u64 load_relaxed(const u64 *word)
{
#if defined(__CUDACC__)
	u64 value;
	asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
	return value;
#else
	return __atomic_load_n(word, __ATOMIC_RELAXED);
#endif
}

// Nanoseconds of a clock that all of the device has in common.
MR_FN u64 device_nanoseconds()
{
#if defined(__CUDACC__)
	u64 now;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	return now;
#else
	return 0;
#endif
}
