/* DPDK's own look-up tables, for measuring beside ours: rte_hash, rte_lpm, rte_fib, rte_lpm6 and rte_fib6.
 *
 * Their memory is a heap of its own on pages of 2 MB (where the system has transparent ones), as ours is: EAL's ordinary memory is on
 * pages of 4 KB, which would make them look slow.
 */
#define ALLOW_EXPERIMENTAL_API
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_hash.h>
#include <rte_lpm.h>
#include <rte_lpm6.h>
#include <rte_malloc.h>
#include <rte_vect.h>

#define HEAP "millrace_peers"
#define LARGE ((size_t)2 << 20)
/* The most keys of a bulk that rte_hash takes. */
#define BURST RTE_HASH_LOOKUP_BULK_MAX

static int failure(void)
{
	return rte_errno != 0 ? rte_errno : ENOMEM;
}

static const char *name(void)
{
	static unsigned int made;
	static char text[32];

	snprintf(text, sizeof(text), "millrace_peer%u", made++);
	return text;
}

/* A heap of so many bytes, of which the system gives what is written to. 0 and its socket, or a positive errno. */
int mr_peer_heap(size_t bytes, int *socket)
{
	size_t length = (bytes + LARGE - 1) / LARGE * LARGE;
	uint8_t *mapped = mmap(NULL, length + LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *first = (uint8_t *)(((uintptr_t)mapped + LARGE - 1) / LARGE * LARGE);

	if (mapped == MAP_FAILED)
		return errno;
	/* A wish: without it all works, more slowly. */
	(void)madvise(first, length, MADV_HUGEPAGE);
	if (rte_malloc_heap_create(HEAP) != 0 ||
	    rte_malloc_heap_memory_add(HEAP, first, length, NULL, length / LARGE, LARGE) != 0) {
		int rc = failure();

		munmap(mapped, length + LARGE);
		return rc;
	}
	*socket = rte_malloc_heap_get_socket(HEAP);
	return 0;
}

/* Vectors of 512 bits where the processor has them: by default DPDK stops at 256. */
int mr_peer_wide(void)
{
	return rte_vect_set_max_simd_bitwidth(RTE_VECT_SIMD_512);
}

struct rte_hash *mr_peer_hash(uint32_t entries, uint32_t key_length, int socket, int *error)
{
	struct rte_hash_parameters parameters = {
		.name = name(), .entries = entries, .key_len = key_length, .socket_id = socket,
	};
	struct rte_hash *hash = rte_hash_create(&parameters);

	*error = hash == NULL ? failure() : 0;
	return hash;
}

/* The position of the key, or a negative errno. */
int32_t mr_peer_hash_add(struct rte_hash *hash, const void *key)
{
	return rte_hash_add_key(hash, key);
}

/* Positions of `count` keys that lie `stride` bytes apart, negative where there is none. */
void mr_peer_hash_find(const struct rte_hash *hash, const uint8_t *keys, size_t stride, size_t count, int32_t *out)
{
	const void *burst[BURST];

	for (size_t done = 0; done < count;) {
		uint32_t n = count - done < BURST ? count - done : BURST;

		for (uint32_t i = 0; i < n; i++)
			burst[i] = keys + (done + i) * stride;
		if (rte_hash_lookup_bulk(hash, burst, n, out + done) != 0)
			memset(out + done, 0xff, n * sizeof(*out));
		done += n;
	}
}

void mr_peer_hash_free(struct rte_hash *hash)
{
	rte_hash_free(hash);
}

struct rte_lpm *mr_peer_lpm(uint32_t groups, int socket, int *error)
{
	/* Rules are for rte_lpm_add, which isn't used here. */
	struct rte_lpm_config config = { .max_rules = 1, .number_tbl8s = groups };
	struct rte_lpm *lpm = rte_lpm_create(name(), socket, &config);

	*error = lpm == NULL ? failure() : 0;
	return lpm;
}

/* Writes routes, sorted by length, into the table that look-ups read. rte_lpm_add searches a list for each, which takes minutes for a
 * million. 0, or a positive errno if there are too few groups. */
int mr_peer_lpm_fill(struct rte_lpm *lpm, const uint32_t *prefixes, const uint8_t *lengths, const uint16_t *values, size_t count,
		     uint32_t groups)
{
	uint32_t used = 0;

	for (size_t i = 0; i < count; i++) {
		struct rte_lpm_tbl_entry leaf = { .next_hop = values[i], .valid = 1, .valid_group = 0, .depth = lengths[i] };
		struct rte_lpm_tbl_entry *entry = &lpm->tbl24[prefixes[i] >> 8];

		if (lengths[i] <= 24) {
			for (uint32_t k = 0; k < (uint32_t)1 << (24 - lengths[i]); k++)
				entry[k] = leaf;
			continue;
		}
		if (!entry->valid_group) {
			struct rte_lpm_tbl_entry *group = lpm->tbl8 + (size_t)used * RTE_LPM_TBL8_GROUP_NUM_ENTRIES;

			if (used == groups)
				return ENOSPC;
			for (uint32_t k = 0; k < RTE_LPM_TBL8_GROUP_NUM_ENTRIES; k++) {
				group[k] = *entry;
				group[k].valid_group = entry->valid;
			}
			entry->next_hop = used++;
			entry->valid = entry->valid_group = 1;
		}
		leaf.valid_group = 1;
		for (uint32_t k = 0; k < (uint32_t)1 << (32 - lengths[i]); k++)
			lpm->tbl8[(size_t)entry->next_hop * RTE_LPM_TBL8_GROUP_NUM_ENTRIES + (prefixes[i] & 0xff) + k] = leaf;
	}
	return 0;
}

/* Next hops with RTE_LPM_LOOKUP_SUCCESS, or without where there is no route. */
void mr_peer_lpm_find(const struct rte_lpm *lpm, const uint32_t *addresses, size_t count, uint32_t *out)
{
	for (size_t done = 0; done < count;) {
		uint32_t n = count - done < BURST ? count - done : BURST;

		rte_lpm_lookup_bulk(lpm, addresses + done, out + done, n);
		done += n;
	}
}

void mr_peer_lpm_free(struct rte_lpm *lpm)
{
	rte_lpm_free(lpm);
}

/* With next hops of two octets (`bytes` 2) or four. `vector` asks for the look-up with AVX-512. */
struct rte_fib *mr_peer_fib(uint32_t routes, uint32_t groups, int bytes, int vector, int socket, int *error)
{
	struct rte_fib_conf config = {
		.type = RTE_FIB_DIR24_8,
		.max_routes = (int)routes,
		.dir24_8 = { .nh_sz = bytes == 2 ? RTE_FIB_DIR24_8_2B : RTE_FIB_DIR24_8_4B, .num_tbl8 = groups },
	};
	struct rte_fib *fib = rte_fib_create(name(), socket, &config);

	*error = fib == NULL ? failure() : 0;
	if (fib != NULL && rte_fib_select_lookup(fib, vector ? RTE_FIB_LOOKUP_DIR24_8_VECTOR_AVX512 :
							       RTE_FIB_LOOKUP_DIR24_8_SCALAR_MACRO) != 0) {
		rte_fib_free(fib);
		*error = ENOTSUP;
		return NULL;
	}
	return fib;
}

int mr_peer_fib_add(struct rte_fib *fib, uint32_t prefix, uint8_t length, uint64_t value)
{
	return -rte_fib_add(fib, prefix, length, value);
}

void mr_peer_fib_find(struct rte_fib *fib, uint32_t *addresses, size_t count, uint64_t *out)
{
	for (size_t done = 0; done < count;) {
		int n = count - done < BURST ? (int)(count - done) : BURST;

		rte_fib_lookup_bulk(fib, addresses + done, out + done, n);
		done += n;
	}
}

void mr_peer_fib_free(struct rte_fib *fib)
{
	rte_fib_free(fib);
}

struct rte_lpm6 *mr_peer_lpm6(uint32_t routes, uint32_t groups, int socket, int *error)
{
	struct rte_lpm6_config config = { .max_rules = routes, .number_tbl8s = groups };
	struct rte_lpm6 *lpm = rte_lpm6_create(name(), socket, &config);

	*error = lpm == NULL ? failure() : 0;
	return lpm;
}

int mr_peer_lpm6_add(struct rte_lpm6 *lpm, const uint8_t *prefix, uint8_t length, uint32_t value)
{
	return -rte_lpm6_add(lpm, prefix, length, value);
}

/* Next hops, negative where there is no route. */
void mr_peer_lpm6_find(const struct rte_lpm6 *lpm, uint8_t (*addresses)[16], size_t count, int32_t *out)
{
	for (size_t done = 0; done < count;) {
		unsigned int n = count - done < BURST ? count - done : BURST;

		rte_lpm6_lookup_bulk_func(lpm, addresses + done, out + done, n);
		done += n;
	}
}

void mr_peer_lpm6_free(struct rte_lpm6 *lpm)
{
	rte_lpm6_free(lpm);
}

struct rte_fib6 *mr_peer_fib6(uint32_t routes, uint32_t groups, int vector, int socket, int *error)
{
	struct rte_fib6_conf config = {
		.type = RTE_FIB6_TRIE,
		.max_routes = (int)routes,
		.trie = { .nh_sz = RTE_FIB6_TRIE_4B, .num_tbl8 = groups },
	};
	struct rte_fib6 *fib = rte_fib6_create(name(), socket, &config);

	*error = fib == NULL ? failure() : 0;
	if (fib != NULL && rte_fib6_select_lookup(fib, vector ? RTE_FIB6_LOOKUP_TRIE_VECTOR_AVX512 :
								RTE_FIB6_LOOKUP_TRIE_SCALAR) != 0) {
		rte_fib6_free(fib);
		*error = ENOTSUP;
		return NULL;
	}
	return fib;
}

int mr_peer_fib6_add(struct rte_fib6 *fib, const uint8_t *prefix, uint8_t length, uint64_t value)
{
	return -rte_fib6_add(fib, prefix, length, value);
}

void mr_peer_fib6_find(struct rte_fib6 *fib, uint8_t (*addresses)[16], size_t count, uint64_t *out)
{
	for (size_t done = 0; done < count;) {
		int n = count - done < BURST ? (int)(count - done) : BURST;

		rte_fib6_lookup_bulk(fib, addresses + done, out + done, n);
		done += n;
	}
}

void mr_peer_fib6_free(struct rte_fib6 *fib)
{
	rte_fib6_free(fib);
}
