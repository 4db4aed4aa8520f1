/* rte_cryptodev: AES-128 in counter mode, each packet with a session of its own.
 *
 * A device has one queue pair, and is one thread's. Octets are copied into mbufs and out of them again, for a batch's buffers are no mempool's. What crosses is
 * opaque pointers and the two structs below, mirrored in src/crypto.rs.
 */
#define ALLOW_EXPERIMENTAL_API
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bus_vdev.h>
#include <rte_crypto.h>
#include <rte_cryptodev.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#define IV_OCTETS 16
#define IV_AT (sizeof(struct rte_crypto_op) + sizeof(struct rte_crypto_sym_op))
#define TAG_AT (IV_AT + IV_OCTETS)
#define BURST 64

struct mr_crypto {
	char name[32];
	uint8_t device;
	uint8_t made;
	uint8_t started;
	struct rte_mempool *sessions, *ops, *mbufs;
};

struct mr_crypto_packet {
	void *session;
	const uint8_t *data;
	uint64_t tag;
	uint32_t length;
	uint8_t iv[IV_OCTETS];
};

struct mr_crypto_done {
	void *op;
	uint64_t tag;
	/* Whether the device has done it. */
	uint64_t good;
};

_Static_assert(sizeof(struct mr_crypto_packet) == 48, "as in src/crypto.rs");
_Static_assert(sizeof(struct mr_crypto_done) == 24, "as in src/crypto.rs");

void mr_crypto_close(struct mr_crypto *crypto)
{
	if (crypto->started)
		rte_cryptodev_stop(crypto->device);
	if (crypto->made) {
		rte_cryptodev_close(crypto->device);
		rte_vdev_uninit(crypto->name);
	}
	rte_mempool_free(crypto->ops);
	rte_mempool_free(crypto->mbufs);
	rte_mempool_free(crypto->sessions);
	free(crypto);
}

static int able(uint8_t device)
{
	struct rte_cryptodev_sym_capability_idx index = {
		.type = RTE_CRYPTO_SYM_XFORM_CIPHER,
		.algo.cipher = RTE_CRYPTO_CIPHER_AES_CTR,
	};
	const struct rte_cryptodev_symmetric_capability *can = rte_cryptodev_sym_capability_get(device, &index);

	return can != NULL && rte_cryptodev_sym_capability_check_cipher(can, 16, IV_OCTETS) == 0;
}

/* Makes the virtual device of that name, with room for so many packets in flight of so many octets, and so many keys. 0, or a positive errno. */
int mr_crypto_open(const char *name, uint32_t packets, uint16_t room, uint32_t keys, struct mr_crypto **out)
{
	struct rte_cryptodev_config config = { .nb_queue_pairs = 1, .ff_disable = RTE_CRYPTODEV_FF_ASYMMETRIC_CRYPTO };
	struct rte_cryptodev_qp_conf queue = { .nb_descriptors = packets };
	struct mr_crypto *crypto = calloc(1, sizeof(*crypto));
	char pool[RTE_MEMPOOL_NAMESIZE];
	int rc, device;

	if (crypto == NULL || strlen(name) >= sizeof(crypto->name)) {
		free(crypto);
		return ENOMEM;
	}
	strcpy(crypto->name, name);
	rc = rte_vdev_init(name, NULL);
	if (rc != 0)
		goto fail;
	device = rte_cryptodev_get_dev_id(name);
	if (device < 0) {
		rte_vdev_uninit(name);
		rc = -ENODEV;
		goto fail;
	}
	crypto->device = (uint8_t)device;
	crypto->made = 1;
	rc = -ENOTSUP;
	if (!able(crypto->device))
		goto fail;
	rc = -ENOMEM;
	config.socket_id = rte_cryptodev_socket_id(crypto->device);
	if (config.socket_id < 0)
		config.socket_id = SOCKET_ID_ANY;
	snprintf(pool, sizeof(pool), "s_%.20s", name);
	crypto->sessions = rte_cryptodev_sym_session_pool_create(
		pool, keys, rte_cryptodev_sym_get_private_session_size(crypto->device), 0, 0, config.socket_id);
	snprintf(pool, sizeof(pool), "o_%.20s", name);
	crypto->ops = rte_crypto_op_pool_create(pool, RTE_CRYPTO_OP_TYPE_SYMMETRIC, packets, 0, IV_OCTETS + sizeof(uint64_t),
						config.socket_id);
	snprintf(pool, sizeof(pool), "m_%.20s", name);
	crypto->mbufs = rte_pktmbuf_pool_create(pool, packets, 0, 0, room + RTE_PKTMBUF_HEADROOM, config.socket_id);
	if (crypto->sessions == NULL || crypto->ops == NULL || crypto->mbufs == NULL)
		goto fail;
	rc = rte_cryptodev_configure(crypto->device, &config);
	if (rc != 0)
		goto fail;
	queue.mp_session = crypto->sessions;
	rc = rte_cryptodev_queue_pair_setup(crypto->device, 0, &queue, config.socket_id);
	if (rc != 0)
		goto fail;
	rc = rte_cryptodev_start(crypto->device);
	if (rc != 0)
		goto fail;
	crypto->started = 1;
	*out = crypto;
	return 0;
fail:
	mr_crypto_close(crypto);
	return rc < 0 ? -rc : EINVAL;
}

/* A session for a key; null if there are as many as may be. */
void *mr_crypto_session(struct mr_crypto *crypto, const uint8_t key[16])
{
	struct rte_crypto_sym_xform xform = {
		.type = RTE_CRYPTO_SYM_XFORM_CIPHER,
		.cipher = {
			.op = RTE_CRYPTO_CIPHER_OP_ENCRYPT,
			.algo = RTE_CRYPTO_CIPHER_AES_CTR,
			.key = { .data = key, .length = 16 },
			.iv = { .offset = IV_AT, .length = IV_OCTETS },
		},
	};

	return rte_cryptodev_sym_session_create(crypto->device, &xform, crypto->sessions);
}

void mr_crypto_session_free(struct mr_crypto *crypto, void *session)
{
	rte_cryptodev_sym_session_free(crypto->device, session);
}

/* Hands packets over, the first of them; how many. */
uint32_t mr_crypto_enqueue(struct mr_crypto *crypto, const struct mr_crypto_packet *packets, uint32_t count)
{
	struct rte_crypto_op *ops[BURST];
	struct rte_mbuf *mbufs[BURST];
	uint16_t n = count < BURST ? (uint16_t)count : BURST, sent = 0;

	if (n == 0 || rte_crypto_op_bulk_alloc(crypto->ops, RTE_CRYPTO_OP_TYPE_SYMMETRIC, ops, n) != n)
		return 0;
	if (rte_pktmbuf_alloc_bulk(crypto->mbufs, mbufs, n) != 0) {
		rte_mempool_put_bulk(crypto->ops, (void **)ops, n);
		return 0;
	}
	for (uint16_t at = 0; at < n; at++) {
		const struct mr_crypto_packet *packet = &packets[at];
		struct rte_crypto_sym_op *sym = ops[at]->sym;
		char *data = rte_pktmbuf_append(mbufs[at], (uint16_t)packet->length);

		/* The caller sees to it that a packet is no longer than there is room. */
		if (data != NULL)
			memcpy(data, packet->data, packet->length);
		sym->m_src = mbufs[at];
		sym->m_dst = NULL;
		sym->cipher.data.offset = 0;
		sym->cipher.data.length = data != NULL ? packet->length : 0;
		memcpy(rte_crypto_op_ctod_offset(ops[at], uint8_t *, IV_AT), packet->iv, IV_OCTETS);
		*rte_crypto_op_ctod_offset(ops[at], uint64_t *, TAG_AT) = packet->tag;
		rte_crypto_op_attach_sym_session(ops[at], packet->session);
	}
	sent = rte_cryptodev_enqueue_burst(crypto->device, 0, ops, n);
	for (uint16_t at = sent; at < n; at++) {
		rte_pktmbuf_free(ops[at]->sym->m_src);
		rte_crypto_op_free(ops[at]);
	}
	return sent;
}

/* What has been done; how many. Each is to be finished. */
uint32_t mr_crypto_dequeue(struct mr_crypto *crypto, struct mr_crypto_done *done, uint32_t room)
{
	struct rte_crypto_op *ops[BURST];
	uint16_t n = rte_cryptodev_dequeue_burst(crypto->device, 0, ops, room < BURST ? (uint16_t)room : BURST);

	for (uint16_t at = 0; at < n; at++) {
		done[at].op = ops[at];
		done[at].tag = *rte_crypto_op_ctod_offset(ops[at], uint64_t *, TAG_AT);
		done[at].good = ops[at]->status == RTE_CRYPTO_OP_STATUS_SUCCESS;
	}
	return n;
}

/* Copies so many octets of what came out, and gives the rest back. */
void mr_crypto_finish(void *op, uint8_t *to, uint32_t length)
{
	struct rte_crypto_op *done = op;
	struct rte_mbuf *mbuf = done->sym->m_src;

	if (length > 0 && length <= mbuf->data_len)
		memcpy(to, rte_pktmbuf_mtod(mbuf, uint8_t *), length);
	rte_pktmbuf_free(mbuf);
	rte_crypto_op_free(done);
}
