/* The narrow waist between Millrace and DPDK.
 *
 * DPDK's API is made of inline functions and of configuration structs whose layout changes between releases. Both stay on
 * this side: what crosses is integers, opaque pointers, the two structs below, and the few mbuf fields whose offsets are
 * asserted here and mirrored in src/mbuf.rs. One call per burst; nothing is called per packet except for freeing one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_version.h>

#include "af_packet.h"
#include "flow.h"

_Static_assert(sizeof(struct rte_mbuf) == 128, "mbuf size");
_Static_assert(offsetof(struct rte_mbuf, buf_addr) == 0, "mbuf layout");
_Static_assert(offsetof(struct rte_mbuf, data_off) == 16, "mbuf layout");
_Static_assert(offsetof(struct rte_mbuf, refcnt) == 18, "mbuf layout");
_Static_assert(offsetof(struct rte_mbuf, nb_segs) == 20, "mbuf layout");
_Static_assert(offsetof(struct rte_mbuf, ol_flags) == 24, "mbuf layout");
_Static_assert(offsetof(struct rte_mbuf, pkt_len) == 36, "mbuf layout");
_Static_assert(offsetof(struct rte_mbuf, data_len) == 40, "mbuf layout");
_Static_assert(offsetof(struct rte_mbuf, hash) == 44, "mbuf layout");
_Static_assert(offsetof(struct rte_mbuf, hash.fdir.hi) == 48, "mbuf layout");
_Static_assert(offsetof(struct rte_mbuf, buf_len) == 54, "mbuf layout");
_Static_assert(RTE_MBUF_F_RX_RSS_HASH == 1ULL << 1, "mbuf flags");
_Static_assert(RTE_MBUF_F_RX_FDIR_ID == 1ULL << 13, "mbuf flags");
_Static_assert(RTE_PKTMBUF_HEADROOM == 128, "headroom");
_Static_assert(RTE_MAX_ETHPORTS >= 32, "as many as a configuration may have");

/* ---- what DPDK says: kept in memory, shown only when something fails ---- */

static char log_text[4096];
static size_t log_used;
static int log_echo;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static ssize_t log_write(void *cookie, const char *text, size_t size)
{
	(void)cookie;
	pthread_mutex_lock(&log_lock);
	if (log_echo)
		fwrite(text, 1, size, stderr);
	size_t keep = size < sizeof(log_text) ? size : sizeof(log_text);
	if (log_used + keep > sizeof(log_text)) {
		/* Oldest text goes first. */
		size_t drop = log_used + keep - sizeof(log_text);
		memmove(log_text, log_text + drop, log_used - drop);
		log_used -= drop;
	}
	memcpy(log_text + log_used, text + size - keep, keep);
	log_used += keep;
	pthread_mutex_unlock(&log_lock);
	return (ssize_t)size;
}

/* The libraries behind net_af_xdp talk to standard error by themselves. They are there only when that driver is. */
typedef int (*print_fn)(int level, const char *format, va_list arguments);
extern print_fn libbpf_set_print(print_fn) __attribute__((weak));
extern print_fn libxdp_set_print(print_fn) __attribute__((weak));

static int log_print(int level, const char *format, va_list arguments)
{
	char line[512];
	/* 0 is a warning; 1 information, 2 debugging. */
	if (level > 0)
		return 0;
	int n = vsnprintf(line, sizeof(line), format, arguments);
	if (n > 0)
		log_write(NULL, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
	return n;
}

int mr_log_capture(int echo)
{
	if (libbpf_set_print != NULL)
		libbpf_set_print(log_print);
	if (libxdp_set_print != NULL)
		libxdp_set_print(log_print);
	cookie_io_functions_t io = { .write = log_write };
	FILE *stream = fopencookie(NULL, "w", io);
	if (stream == NULL)
		return -1;
	setvbuf(stream, NULL, _IONBF, 0);
	log_echo = echo;
	return rte_openlog_stream(stream);
}

/* Copies what was logged since the last call. */
size_t mr_log_take(char *into, size_t room)
{
	pthread_mutex_lock(&log_lock);
	size_t n = log_used < room ? log_used : room;
	memcpy(into, log_text + log_used - n, n);
	log_used = 0;
	pthread_mutex_unlock(&log_lock);
	return n;
}

/* ---- EAL ---- */

/* Whether `bytes` of huge pages can be had now: what --in-memory will do. */
int mr_huge_pages(size_t bytes)
{
	int fd = memfd_create("millrace-probe", MFD_CLOEXEC | MFD_HUGETLB);
	if (fd < 0)
		return 0;
	int ok = 0;
	if (ftruncate(fd, (off_t)bytes) == 0) {
		void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		ok = at != MAP_FAILED;
		if (ok)
			munmap(at, bytes);
	}
	close(fd);
	return ok;
}

/* 0, or a positive errno. */
int mr_eal_init(int argc, char **argv)
{
	rte_errno = 0;
	if (rte_eal_init(argc, argv) >= 0)
		return 0;
	return rte_errno != 0 ? rte_errno : EINVAL;
}

int mr_eal_cleanup(void)
{
	return rte_eal_cleanup();
}

/* Where EAL keeps its run-time files; NULL before it has started. */
const char *mr_runtime_dir(void)
{
	return rte_eal_get_runtime_dir();
}

const char *mr_version(void)
{
	return rte_version();
}

int mr_thread_register(void)
{
	return rte_thread_register() == 0 ? 0 : (rte_errno != 0 ? rte_errno : EINVAL);
}

void mr_thread_unregister(void)
{
	rte_thread_unregister();
}

int mr_thread_is_registered(void)
{
	return rte_lcore_id() != LCORE_ID_ANY;
}

/* ---- buffers ---- */

struct rte_mempool *mr_pool_create(const char *name, unsigned int frames, unsigned int cache, uint16_t room,
				   int socket, int *error)
{
	struct rte_mempool *pool = rte_pktmbuf_pool_create(name, frames, cache, 0, room, socket);
	*error = pool == NULL ? rte_errno : 0;
	return pool;
}

/* Frees the pool if every buffer is back in it; otherwise leaves it, for whoever still holds one. */
int mr_pool_free(struct rte_mempool *pool)
{
	if (!rte_mempool_full(pool))
		return 0;
	rte_mempool_free(pool);
	return 1;
}

unsigned int mr_pool_in_use(const struct rte_mempool *pool)
{
	return rte_mempool_in_use_count(pool);
}

struct rte_mbuf *mr_alloc(struct rte_mempool *pool)
{
	return rte_pktmbuf_alloc(pool);
}

void mr_free(struct rte_mbuf *m)
{
	rte_pktmbuf_free(m);
}

/* ---- ports ---- */

struct mr_port_config {
	uint16_t queues; /* pairs */
	uint16_t rx_queues; /* those, and what steering adds */
	uint16_t rx_descriptors;
	uint16_t tx_descriptors;
	uint16_t mtu;
	uint8_t promiscuous;
	uint8_t mtu_by_kernel; /* the driver knows no MTU of its own: the interface's holds */
};
_Static_assert(sizeof(struct mr_port_config) == 12, "mirrored in src/ffi.rs");

struct mr_port_info {
	uint64_t rss_offloads;
	uint32_t max_rx_pktlen;
	int32_t socket;
	uint16_t max_rx_queues;
	uint16_t max_tx_queues;
	uint16_t max_mtu;
	uint16_t min_mtu;
	uint8_t mac[6];
	char driver[34];
};
_Static_assert(sizeof(struct mr_port_info) == 64, "mirrored in src/ffi.rs");

struct mr_port_stats {
	uint64_t rx_packets, rx_bytes, rx_missed, rx_errors, tx_packets, tx_bytes, tx_errors;
};

/* Plugs a device in ("0000:03:00.0" or "net_tap0,iface=x") and finds its port; 0 or a positive errno. */
int mr_port_probe(const char *devargs, const char *name, uint16_t *port)
{
	int rc = rte_dev_probe(devargs);
	if (rc == 0 && rte_eth_dev_get_port_by_name(name, port) != 0)
		rc = ENODEV;
	if (rc == 0) {
		mr_rings_made(*port);
		mr_deliver_marks(*port);
	} else {
		mr_rings_failed();
	}
	return rc < 0 ? -rc : rc;
}

int mr_port_info(uint16_t port, struct mr_port_info *out)
{
	struct rte_eth_dev_info info;
	int rc = rte_eth_dev_info_get(port, &info);
	if (rc != 0)
		return -rc;
	memset(out, 0, sizeof(*out));
	out->rss_offloads = info.flow_type_rss_offloads;
	out->max_rx_pktlen = info.max_rx_pktlen;
	out->max_rx_queues = info.max_rx_queues;
	out->max_tx_queues = info.max_tx_queues;
	out->max_mtu = info.max_mtu;
	out->min_mtu = info.min_mtu;
	out->socket = rte_eth_dev_socket_id(port);
	snprintf(out->driver, sizeof(out->driver), "%s", info.driver_name != NULL ? info.driver_name : "");
	struct rte_ether_addr mac;
	if (rte_eth_macaddr_get(port, &mac) == 0)
		memcpy(out->mac, mac.addr_bytes, sizeof(out->mac));
	return 0;
}

static uint16_t within(uint16_t wanted, const struct rte_eth_desc_lim *lim)
{
	uint32_t n = wanted;
	if (lim->nb_align > 1)
		n = (n + lim->nb_align - 1) / lim->nb_align * lim->nb_align;
	if (lim->nb_max != 0 && n > lim->nb_max)
		n = lim->nb_max;
	if (n < lim->nb_min)
		n = lim->nb_min;
	return (uint16_t)n;
}

/* The longest hash key of any NIC. packet::rss::UE_KEY has a period of 16 bits, so that it has any length. */
enum { MR_KEY = 256 };

/* Configures and starts a port; 0 or a positive errno, and in `step` what failed. */
int mr_port_start(uint16_t port, const struct mr_port_config *config, struct rte_mempool *pool, const char **step)
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf;
	uint8_t key[MR_KEY];
	int rc;

	*step = "asking for its capabilities";
	rc = rte_eth_dev_info_get(port, &info);
	if (rc != 0)
		return -rc;
	memset(&conf, 0, sizeof(conf));
	if (!config->mtu_by_kernel)
		conf.rxmode.mtu = config->mtu;
	/* A buffer holds any frame of this MTU, but some drivers round buffers down and chain; the rx path linearises. */
	if (!config->mtu_by_kernel && config->mtu > RTE_ETHER_MTU)
		conf.rxmode.offloads |= info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
	uint64_t rss = info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP);
	if (config->rx_queues > 1 && rss != 0) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf = rss;
		if (info.hash_key_size > 0) {
			for (unsigned int i = 0; i < MR_KEY; i++)
				key[i] = i % 2 == 0 ? 0x6d : 0x5a;
			conf.rx_adv_conf.rss_conf.rss_key = key;
			conf.rx_adv_conf.rss_conf.rss_key_len = info.hash_key_size;
		}
		conf.rxmode.offloads |= info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_RSS_HASH;
	}
	*step = "configuring its queues";
	uint16_t tx_queues = config->queues;
	rc = rte_eth_dev_configure(port, config->rx_queues, tx_queues, &conf);
	if (rc != 0 && config->rx_queues > tx_queues) {
		/* Some drivers (net_tap) want as many of one kind as of the other. The further ones stay idle. */
		tx_queues = config->rx_queues;
		rc = rte_eth_dev_configure(port, config->rx_queues, tx_queues, &conf);
	}
	if (rc != 0)
		return -rc;
	for (uint16_t q = 0; q < config->rx_queues; q++) {
		*step = "setting up a receive queue";
		struct rte_eth_rxconf rx = info.default_rxconf;
		rx.offloads = conf.rxmode.offloads;
		rc = rte_eth_rx_queue_setup(port, q, within(config->rx_descriptors, &info.rx_desc_lim),
					    (unsigned int)rte_eth_dev_socket_id(port), &rx, pool);
		if (rc != 0)
			return -rc;
	}
	for (uint16_t q = 0; q < tx_queues; q++) {
		*step = "setting up a transmit queue";
		struct rte_eth_txconf tx = info.default_txconf;
		/* No FAST_FREE: frames of several pools leave by one queue. */
		tx.offloads = 0;
		rc = rte_eth_tx_queue_setup(port, q, within(config->tx_descriptors, &info.tx_desc_lim),
					    (unsigned int)rte_eth_dev_socket_id(port), &tx);
		if (rc != 0)
			return -rc;
	}
	*step = "starting it";
	rc = rte_eth_dev_start(port);
	if (rc != 0)
		return -rc;
	*step = "making it promiscuous";
	if (config->promiscuous) {
		rc = rte_eth_promiscuous_enable(port);
		/* A device that hears everything anyway says it can't be told to. */
		if (rc != 0 && rc != -ENOTSUP)
			return -rc;
	}
	return 0;
}

/* Stops a port, so that it can be started otherwise; 0 or a positive errno. */
int mr_port_stop(uint16_t port)
{
	return -rte_eth_dev_stop(port);
}

/* Stops, closes and unplugs; safe in any state after a probe. */
void mr_port_close(uint16_t port)
{
	struct rte_eth_dev_info info;
	struct rte_device *device = NULL;
	if (rte_eth_dev_info_get(port, &info) == 0)
		device = info.device;
	mr_rings_gone(port);
	/* A kernel interface would stay so. */
	if (rte_eth_promiscuous_get(port) == 1)
		(void)rte_eth_promiscuous_disable(port);
	(void)rte_eth_dev_stop(port);
	if (rte_eth_dev_close(port) == 0 && device != NULL)
		(void)rte_dev_remove(device);
}

uint16_t mr_rx(uint16_t port, uint16_t queue, struct rte_mbuf **into, uint16_t max, uint64_t *chained_lost)
{
	uint16_t n = rte_eth_rx_burst(port, queue, into, max);
	uint16_t kept = 0;
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = into[i];
		if (unlikely(m->nb_segs > 1) && rte_pktmbuf_linearize(m) != 0) {
			rte_pktmbuf_free(m);
			(*chained_lost)++;
			continue;
		}
		into[kept++] = m;
	}
	return kept;
}

uint16_t mr_tx(uint16_t port, uint16_t queue, struct rte_mbuf **from, uint16_t n)
{
	return rte_eth_tx_burst(port, queue, from, n);
}

/* ---- the redirection table ---- */

enum { MR_RETA_GROUPS = 64 };

uint16_t mr_reta_size(uint16_t port)
{
	struct rte_eth_dev_info info;
	return rte_eth_dev_info_get(port, &info) == 0 ? info.reta_size : 0;
}

/* Writes entries, 0xffff excepted; 0 or a positive errno. */
int mr_reta_write(uint16_t port, const uint16_t *queues, uint16_t entries)
{
	struct rte_eth_rss_reta_entry64 groups[MR_RETA_GROUPS];
	if (entries > MR_RETA_GROUPS * RTE_ETH_RETA_GROUP_SIZE)
		return EINVAL;
	memset(groups, 0, sizeof(groups));
	for (uint16_t i = 0; i < entries; i++) {
		struct rte_eth_rss_reta_entry64 *group = &groups[i / RTE_ETH_RETA_GROUP_SIZE];
		if (queues[i] == 0xffff)
			continue;
		group->mask |= UINT64_C(1) << (i % RTE_ETH_RETA_GROUP_SIZE);
		group->reta[i % RTE_ETH_RETA_GROUP_SIZE] = queues[i];
	}
	return -rte_eth_dev_rss_reta_update(port, groups, entries);
}

int mr_reta_read(uint16_t port, uint16_t *queues, uint16_t entries)
{
	struct rte_eth_rss_reta_entry64 groups[MR_RETA_GROUPS];
	if (entries > MR_RETA_GROUPS * RTE_ETH_RETA_GROUP_SIZE)
		return EINVAL;
	memset(groups, 0, sizeof(groups));
	for (unsigned int i = 0; i < MR_RETA_GROUPS; i++)
		groups[i].mask = UINT64_MAX;
	int rc = rte_eth_dev_rss_reta_query(port, groups, entries);
	for (uint16_t i = 0; i < entries && rc == 0; i++)
		queues[i] = groups[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE];
	return -rc;
}

/* How many receive descriptors a queue has, if the driver says so; otherwise how many were set up for so many wanted, negative. */
int mr_rx_descriptors(uint16_t port, uint16_t queue, uint16_t wanted)
{
	struct rte_eth_rxq_info queue_info;
	struct rte_eth_dev_info info;
	if (rte_eth_rx_queue_info_get(port, queue, &queue_info) == 0)
		return queue_info.nb_desc;
	return rte_eth_dev_info_get(port, &info) == 0 ? -(int)within(wanted, &info.rx_desc_lim) : 0;
}

/* Whether a packet waits in a receive descriptor, counted from the next one to be received; negative: the driver can't tell. */
int mr_rx_done(uint16_t port, uint16_t queue, uint16_t offset)
{
	int status = rte_eth_rx_descriptor_status(port, queue, offset);
	return status < 0 ? status : status == RTE_ETH_RX_DESC_DONE;
}

/* How many transmit descriptors a queue has for which so many were wanted. */
uint16_t mr_tx_descriptors(uint16_t port, uint16_t wanted)
{
	struct rte_eth_dev_info info;
	return rte_eth_dev_info_get(port, &info) == 0 ? within(wanted, &info.tx_desc_lim) : wanted;
}

/* Whether the packet behind a transmit descriptor, counted from the next free one, has yet to go; negative: the driver can't tell. */
int mr_tx_undone(uint16_t port, uint16_t queue, uint16_t offset)
{
	int status = rte_eth_tx_descriptor_status(port, queue, offset);
	return status < 0 ? status : status == RTE_ETH_TX_DESC_FULL;
}

int mr_port_link(uint16_t port, uint32_t *mbps)
{
	struct rte_eth_link link;
	memset(&link, 0, sizeof(link));
	if (rte_eth_link_get_nowait(port, &link) != 0)
		return 0;
	*mbps = link.link_speed;
	return link.link_status == RTE_ETH_LINK_UP;
}

int mr_port_stats(uint16_t port, struct mr_port_stats *out)
{
	struct rte_eth_stats stats;
	int rc = rte_eth_stats_get(port, &stats);
	if (rc != 0)
		return -rc;
	out->rx_packets = stats.ipackets;
	out->rx_bytes = stats.ibytes;
	out->rx_missed = stats.imissed + stats.rx_nombuf;
	out->rx_errors = stats.ierrors;
	out->tx_packets = stats.opackets;
	out->tx_bytes = stats.obytes;
	out->tx_errors = stats.oerrors;
	return 0;
}
