/*
 * What net_af_packet calls in place of setsockopt, mmap, close and memcpy (build.rs redirects them). The driver's rings are the
 * kernel's memory, and what stands in a slot beside the packet, and in the socket's counters, it doesn't pass on: that a
 * checksum has yet to be computed, that the packet was cut, that others found no room.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "af_packet.h"

#ifndef PACKET_IGNORE_OUTGOING /* Linux 4.20 */
#define PACKET_IGNORE_OUTGOING 23
#endif
#ifndef PACKET_FANOUT_FLAG_IGNORE_OUTGOING /* Linux 6.1 */
#define PACKET_FANOUT_FLAG_IGNORE_OUTGOING 0x4000
#endif

enum { MR_RINGS = 1024, MR_NO_PORT = 0xffff };

/* One queue's socket. `map` is set last and cleared first: who finds an address within it may read the rest. */
static struct ring {
	_Atomic(const uint8_t *) map;
	size_t slot, slots;
	int fd; /* -1: closed */
	uint16_t port; /* MR_NO_PORT: the driver is about to make it */
	uint64_t missed;
	_Atomic uint64_t cut;
	uint8_t used;
} rings[MR_RINGS];
static _Atomic unsigned int rings_seen; /* none was ever used from here on */
static pthread_mutex_t rings_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int sent_too; /* of the port that is being made */

static struct ring *ring_of(int fd)
{
	for (unsigned int i = 0; i < rings_seen; i++)
		if (rings[i].used && rings[i].fd == fd)
			return &rings[i];
	return NULL;
}

/* Before the socket is anything else: a place for what is known of it. */
static int ring_begins(int fd, const struct tpacket_req *request)
{
	int found = 0;

	pthread_mutex_lock(&rings_lock);
	for (unsigned int i = 0; i < MR_RINGS && !found; i++) {
		struct ring *r = &rings[i];
		if (r->used)
			continue;
		r->used = found = 1;
		r->fd = fd;
		r->port = MR_NO_PORT;
		r->slot = request->tp_frame_size;
		r->slots = request->tp_frame_nr;
		r->missed = 0;
		r->cut = 0;
		if (i >= rings_seen)
			rings_seen = i + 1;
	}
	pthread_mutex_unlock(&rings_lock);
	return found;
}

/* Asking sets the kernel's counters to zero. */
static void ring_ask(struct ring *r)
{
	struct tpacket_stats stats;
	socklen_t length = sizeof(stats);

	if (r->fd >= 0 && getsockopt(r->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &length) == 0)
		r->missed += stats.tp_drops;
}

/*
 * The driver joins its sockets to a fanout group with PACKET_FANOUT_FLAG_DEFRAG: the kernel then puts IPv4 fragments together
 * before it hands them over, and the driver cuts what doesn't fit into a slot of its ring, so that every packet in fragments
 * arrives broken. Fragments are the datapath's business. All fragments of a packet still go to one queue: the kernel leaves ports
 * out of the hash of any of them.
 *
 * Nor is what this machine itself sends through the interface for us: a socket, and a group, can be told to leave it out. Observers
 * want it all the same.
 */
int mr_setsockopt(int fd, int level, int option, const void *value, socklen_t length)
{
	const int yes = 1;
	unsigned int fanout, wanted;

	if (level == SOL_PACKET && option == PACKET_RX_RING && length == sizeof(struct tpacket_req)) {
		/* Kernels that don't know it go on as before. */
		if (!sent_too)
			(void)setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof(yes));
		if (!ring_begins(fd, value)) {
			errno = ENOBUFS;
			return -1;
		}
	}
	if (level == SOL_PACKET && option == PACKET_FANOUT && length == sizeof(fanout)) {
		memcpy(&fanout, value, sizeof(fanout));
		fanout &= ~((unsigned int)PACKET_FANOUT_FLAG_DEFRAG << 16);
		wanted = fanout | (unsigned int)PACKET_FANOUT_FLAG_IGNORE_OUTGOING << 16;
		if (!sent_too && setsockopt(fd, level, option, &wanted, sizeof(wanted)) == 0)
			return 0;
		return setsockopt(fd, level, option, &fanout, sizeof(fanout));
	}
	return setsockopt(fd, level, option, value, length);
}

/* The rings are the kernel's own pages, which are never swapped out. To lock them as well only needs a limit (RLIMIT_MEMLOCK). */
void *mr_mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
	void *map = mmap(at, length, protection, flags & ~MAP_LOCKED, fd, offset);

	pthread_mutex_lock(&rings_lock);
	struct ring *r = ring_of(fd);
	if (r != NULL && map != MAP_FAILED)
		atomic_store_explicit(&r->map, map, memory_order_release);
	pthread_mutex_unlock(&rings_lock);
	return map;
}

int mr_close(int fd)
{
	pthread_mutex_lock(&rings_lock);
	struct ring *r = ring_of(fd);
	if (r != NULL) {
		ring_ask(r);
		r->fd = -1;
	}
	pthread_mutex_unlock(&rings_lock);
	return close(fd);
}

static void rings_move(uint16_t from, uint16_t to)
{
	pthread_mutex_lock(&rings_lock);
	for (unsigned int i = 0; i < rings_seen; i++) {
		struct ring *r = &rings[i];
		if (!r->used || r->port != from)
			continue;
		r->port = to;
		if (to == MR_NO_PORT) {
			atomic_store_explicit(&r->map, NULL, memory_order_release);
			r->used = 0;
		}
	}
	pthread_mutex_unlock(&rings_lock);
}

/* Whether ports that are made from now on receive what this machine sends, too. */
void mr_rings_sent_too(int yes)
{
	sent_too = yes;
}

/* The rings that were made since the last call are this port's. */
void mr_rings_made(uint16_t port)
{
	rings_move(MR_NO_PORT, port);
}

/* The driver has given up: there will be no port that they are of. */
void mr_rings_failed(void)
{
	rings_move(MR_NO_PORT, MR_NO_PORT);
}

/* This port's are about to go, and their addresses may be others' then. */
void mr_rings_gone(uint16_t port)
{
	rings_move(port, MR_NO_PORT);
}

/* What a port's rings had no room for, and what came longer than a slot. */
void mr_rings_lost(uint16_t port, uint64_t *missed, uint64_t *cut)
{
	*missed = *cut = 0;
	pthread_mutex_lock(&rings_lock);
	for (unsigned int i = 0; i < rings_seen; i++) {
		struct ring *r = &rings[i];
		if (!r->used || r->port != port)
			continue;
		ring_ask(r);
		*missed += r->missed;
		*cut += r->cut;
	}
	pthread_mutex_unlock(&rings_lock);
}

/* ---- checksums ---- */

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static uint64_t sum16(const uint8_t *at, size_t length, uint64_t sum)
{
	for (; length >= 2; at += 2, length -= 2)
		sum += get16(at);
	return length > 0 ? sum + ((uint64_t)at[0] << 8) : sum;
}

/* RFC 9260 Appendix A, bit by bit: SCTP is rare here. */
static uint32_t crc32c(const uint8_t *at, size_t length, uint32_t crc)
{
	for (; length > 0; at++, length--) {
		crc ^= *at;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return crc;
}

/* `addresses`: both, as the pseudo-header has them. */
static void complete_transport(uint8_t protocol, uint8_t *at, size_t length, const uint8_t *addresses, size_t addresses_length)
{
	size_t field;

	switch (protocol) {
	case IPPROTO_TCP:
		field = 16;
		if (length < 20)
			return;
		break;
	case IPPROTO_UDP:
		field = 6;
		/* No checksum at all: what is to be computed lies deeper. */
		if (length < 8 || get16(at + field) == 0)
			return;
		break;
	case IPPROTO_SCTP: {
		if (length < 12)
			return;
		memset(at + 8, 0, 4);
		uint32_t crc = ~crc32c(at, length, UINT32_MAX);
		for (int i = 0; i < 4; i++)
			at[8 + i] = (uint8_t)(crc >> 8 * i);
		return;
	}
	default:
		return;
	}
	at[field] = at[field + 1] = 0;
	uint64_t sum = sum16(addresses, addresses_length, (uint64_t)protocol + length);
	sum = sum16(at, length, sum);
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	uint16_t checksum = (uint16_t)~sum;
	/* RFC 768: zero says that there is none. */
	if (checksum == 0 && protocol == IPPROTO_UDP)
		checksum = 0xffff;
	at[field] = (uint8_t)(checksum >> 8);
	at[field + 1] = (uint8_t)checksum;
}

static void complete_ipv4(uint8_t *at, size_t length)
{
	if (length < 20 || at[0] >> 4 != 4)
		return;
	size_t header = (size_t)(at[0] & 15) * 4, total = get16(at + 2);
	/* A fragment's checksum is in another one, and complete. */
	if (header < 20 || total < header || total > length || (get16(at + 6) & 0x3fff) != 0)
		return;
	complete_transport(at[9], at + header, total - header, at + 12, 8);
}

static void complete_ipv6(uint8_t *at, size_t length)
{
	if (length < 40 || at[0] >> 4 != 6)
		return;
	size_t total = 40 + (size_t)get16(at + 4), next = 40;
	uint8_t protocol = at[6];
	if (total > length)
		return;
	/* Hop-by-hop and destination options. Behind a routing header the pseudo-header has another destination. */
	for (int headers = 0; headers < 4 && (protocol == IPPROTO_HOPOPTS || protocol == IPPROTO_DSTOPTS); headers++) {
		if (next + 8 > total)
			return;
		protocol = at[next];
		next += 8 + 8 * (size_t)at[next + 1];
	}
	if (next <= total)
		complete_transport(protocol, at + next, total - next, at + 8, 32);
}

/*
 * Computes the checksum that a sender on this machine left to its interface, which passed it on as it was (veth does). In the
 * field stands the sum of the pseudo-header.
 */
void mr_complete_checksum(uint8_t *frame, size_t length)
{
	size_t at = 12;

	for (int tags = 0; tags < 2 && at + 6 <= length; tags++) {
		uint16_t type = get16(frame + at);
		if (type != ETH_P_8021Q && type != ETH_P_8021AD)
			break;
		at += 4;
	}
	if (at + 2 > length)
		return;
	uint16_t type = get16(frame + at);
	at += 2;
	if (type == ETH_P_IP)
		complete_ipv4(frame + at, length - at);
	else if (type == ETH_P_IPV6)
		complete_ipv6(frame + at, length - at);
}

/* The slot that a received packet lies in, if it is one; packets that are sent are copied from elsewhere. */
static struct ring *slot_of(const uint8_t *packet, const struct tpacket2_hdr **slot)
{
	unsigned int seen = rings_seen;

	for (unsigned int i = 0; i < seen; i++) {
		const uint8_t *map = atomic_load_explicit(&rings[i].map, memory_order_acquire);
		if (map == NULL || packet < map || packet >= map + rings[i].slot * rings[i].slots)
			continue;
		size_t offset = (size_t)(packet - map);
		*slot = (const struct tpacket2_hdr *)(map + offset - offset % rings[i].slot);
		return &rings[i];
	}
	return NULL;
}

/* The driver's memcpy, out of a slot or into one. */
void *mr_ring_copy(void *to, const void *from, size_t length)
{
	const struct tpacket2_hdr *slot;

	memcpy(to, from, length);
	struct ring *r = slot_of(from, &slot);
	if (r == NULL)
		return to;
	if (slot->tp_len > slot->tp_snaplen)
		atomic_fetch_add_explicit(&r->cut, 1, memory_order_relaxed);
	else if (slot->tp_status & TP_STATUS_CSUMNOTREADY)
		mr_complete_checksum(to, length);
	return to;
}

/* ---- the interface ---- */

/* Whether the kernel puts packets together that come in by the interface (GRO, LRO): such are longer than any slot. */
static int merges(int fd, struct ifreq *request)
{
	struct ethtool_value value = { .cmd = ETHTOOL_GGRO };
	int merged = 0;

	request->ifr_data = (void *)&value;
	merged |= ioctl(fd, SIOCETHTOOL, request) == 0 && value.data != 0;
	value = (struct ethtool_value){ .cmd = ETHTOOL_GFLAGS };
	merged |= ioctl(fd, SIOCETHTOOL, request) == 0 && (value.data & ETH_FLAG_LRO) != 0;
	return merged;
}

/* What the kernel says of an interface in this network namespace; all zero if there is none of that name. */
void mr_interface(const char *name, struct mr_interface *out)
{
	struct ifreq request;

	memset(out, 0, sizeof(*out));
	memset(&request, 0, sizeof(request));
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (ioctl(fd, SIOCGIFMTU, &request) == 0)
		out->mtu = (uint32_t)request.ifr_mtu;
	if (ioctl(fd, SIOCGIFFLAGS, &request) == 0) {
		out->up = (request.ifr_flags & IFF_UP) != 0;
		out->promiscuous = (request.ifr_flags & IFF_PROMISC) != 0;
	}
	out->merges = (uint8_t)merges(fd, &request);
	close(fd);
}
