/* intel-ipsec-mb, if it is installed: AES-128 in counter mode, to compare with. The library is loaded at run time. What its structures look like is
 * taken from its header when this is compiled; a library of another version is refused, because its structures may differ. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && __has_include(<intel-ipsec-mb.h>)
#include <intel-ipsec-mb.h>
#define HAS_HEADER 1
#endif

/* A packet: its key or its round keys, the first counter block, its octets. */
struct mr_counter_packet {
	const uint8_t *key;
	const uint8_t *round_keys;
	uint8_t *data;
	uint64_t length;
	uint8_t counter[16];
};

enum { mr_loaded, mr_without_header, mr_not_installed, mr_other_version, mr_no_memory };

#ifdef HAS_HEADER
struct mr_ipsec_mb {
	IMB_MGR *manager;
	uint32_t version;
	IMB_JOB jobs[IMB_MAX_BURST_SIZE];
	/* Round keys that are made for a burst; those for deciphering come with them, and are not used. */
	_Alignas(64) uint8_t round_keys[IMB_MAX_BURST_SIZE][176];
	_Alignas(64) uint8_t unused[176];
};

int mr_ipsec_mb_load(struct mr_ipsec_mb **loaded, uint32_t *version)
{
	void *library = dlopen("libIPSec_MB.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return mr_not_installed;
	unsigned (*get_version)(void) = (unsigned (*)(void))dlsym(library, "imb_get_version");
	IMB_MGR *(*alloc)(uint64_t) = (IMB_MGR * (*)(uint64_t))dlsym(library, "alloc_mb_mgr");
	void (*init)(IMB_MGR *, IMB_ARCH *) = (void (*)(IMB_MGR *, IMB_ARCH *))dlsym(library, "init_mb_mgr_auto");
	if (!get_version || !alloc || !init || get_version() != IMB_VERSION_NUM)
		return mr_other_version;
	struct mr_ipsec_mb *it = aligned_alloc(64, (sizeof(*it) + 63) / 64 * 64);
	if (!it)
		return mr_no_memory;
	memset(it, 0, sizeof(*it));
	it->manager = alloc(0);
	if (!it->manager) {
		free(it);
		return mr_no_memory;
	}
	IMB_ARCH arch;
	init(it->manager, &arch);
	it->version = IMB_VERSION_NUM;
	*version = (uint32_t)arch << 24 | IMB_VERSION_NUM;
	*loaded = it;
	return mr_loaded;
}

void mr_ipsec_mb_expand(struct mr_ipsec_mb *it, const uint8_t key[16], uint8_t round_keys[176])
{
	IMB_AES_KEYEXP_128(it->manager, key, round_keys, it->unused);
}

/* Applies the packets' key streams, a burst at a time; how many packets that was. */
uint64_t mr_ipsec_mb_counter(struct mr_ipsec_mb *it, const struct mr_counter_packet *packets, uint64_t count)
{
	uint64_t done = 0;
	while (done < count) {
		uint32_t burst = count - done < 32 ? (uint32_t)(count - done) : 32;
		for (uint32_t at = 0; at < burst; at++) {
			const struct mr_counter_packet *packet = &packets[done + at];
			IMB_JOB *job = &it->jobs[at];
			const uint8_t *round_keys = packet->round_keys;
			if (packet->key) {
				IMB_AES_KEYEXP_128(it->manager, packet->key, it->round_keys[at], it->unused);
				round_keys = it->round_keys[at];
			}
			job->enc_keys = round_keys;
			job->key_len_in_bytes = 16;
			job->src = packet->data;
			job->dst = packet->data;
			job->cipher_start_src_offset_in_bytes = 0;
			job->msg_len_to_cipher_in_bytes = packet->length;
			job->iv = packet->counter;
			job->iv_len_in_bytes = 16;
		}
		if (IMB_SUBMIT_CIPHER_BURST(it->manager, it->jobs, burst, IMB_CIPHER_CNTR, IMB_DIR_ENCRYPT, IMB_KEY_128_BYTES) != burst)
			break;
		done += burst;
	}
	return done;
}

void mr_ipsec_mb_free(struct mr_ipsec_mb *it)
{
	/* The manager was made by the library, which is found again by the name it was loaded by. */
	void *library = dlopen("libIPSec_MB.so.1", RTLD_NOW | RTLD_NOLOAD);
	void (*release)(IMB_MGR *) = library ? (void (*)(IMB_MGR *))dlsym(library, "free_mb_mgr") : NULL;
	if (release)
		release(it->manager);
	free(it);
}
#else
struct mr_ipsec_mb;

int mr_ipsec_mb_load(struct mr_ipsec_mb **loaded, uint32_t *version)
{
	(void)loaded;
	(void)version;
	return mr_without_header;
}

void mr_ipsec_mb_expand(struct mr_ipsec_mb *it, const uint8_t key[16], uint8_t round_keys[176])
{
	(void)it;
	(void)key;
	(void)round_keys;
}

uint64_t mr_ipsec_mb_counter(struct mr_ipsec_mb *it, const struct mr_counter_packet *packets, uint64_t count)
{
	(void)it;
	(void)packets;
	(void)count;
	return 0;
}

void mr_ipsec_mb_free(struct mr_ipsec_mb *it)
{
	(void)it;
}
#endif
