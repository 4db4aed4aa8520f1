/* Link aggregation: a port made of several, by DPDK's bonding driver. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rte_alarm.h>
#include <rte_eth_bond.h>
#include <rte_eth_bond_8023ad.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

enum { MR_MEMBERS = 8, MR_HURRIES = 256 /* queues of a member */ };

struct mr_bond_config {
	uint8_t mode; /* BONDING_MODE_... */
	uint8_t policy; /* BALANCE_XMIT_POLICY_... */
	uint8_t has_primary;
	uint8_t members;
	uint16_t primary;
	uint16_t poll_ms; /* between two looks at the link of a member that can't tell by itself */
	uint16_t ports[MR_MEMBERS];
	uint16_t silence_ms; /* LACP: after which a partner is given up, and to send more often than which it is asked; 0: the driver's own */
};
_Static_assert(sizeof(struct mr_bond_config) == 26, "mirrored in src/ffi.rs");
_Static_assert(BONDING_MODE_ROUND_ROBIN == 0 && BONDING_MODE_ACTIVE_BACKUP == 1 && BONDING_MODE_BALANCE == 2 &&
	       BONDING_MODE_8023AD == 4, "as in src/bond.rs");
_Static_assert(BALANCE_XMIT_POLICY_LAYER2 == 0 && BALANCE_XMIT_POLICY_LAYER23 == 1 && BALANCE_XMIT_POLICY_LAYER34 == 2,
	       "as in src/bond.rs");

struct mr_member {
	uint32_t mbps;
	uint8_t link_up;
	uint8_t active; /* packets go out by it */
	uint8_t actor_state, partner_state; /* LACP only */
	uint8_t partner[6]; /* LACP only: the other side's system */
	uint8_t reserved[2];
};
_Static_assert(sizeof(struct mr_member) == 16, "mirrored in src/ffi.rs");

/*
 * Whether there is memory for what the driver allocates for each member in LACP mode: a pool of as many short buffers as there are
 * transmit descriptors. The driver ends the process if it can't have it, so this has to be known before.
 */
static int lacp_fits(const struct mr_bond_config *config, uint32_t descriptors, int socket)
{
	struct rte_mempool *pools[MR_MEMBERS];
	unsigned int made = 0;
	int fits = 1;

	for (unsigned int i = 0; i < config->members && fits; i++) {
		char name[RTE_MEMPOOL_NAMESIZE];
		/* One buffer more than there are, and rings and rounding, come to less than this. */
		snprintf(name, sizeof(name), "millrace-trial%u", i);
		pools[made] = rte_pktmbuf_pool_create(name, descriptors + 256, 32, 0, 512, socket);
		fits = pools[made] != NULL;
		made += (unsigned int)fits;
	}
	while (made > 0)
		rte_mempool_free(pools[--made]);
	return fits;
}

/*
 * The driver asks partners for an LACPDU every 30 s and waits for 90 s: it never sets its LACP_Timeout bit, and so uses nothing but
 * the timeout called long. That is made short here, and the bit set in what is sent (hurry).
 */
static int lacp_silence(uint16_t bond, uint16_t silence_ms)
{
	struct rte_eth_bond_8023ad_conf conf;

	int rc = rte_eth_bond_8023ad_conf_get(bond, &conf);
	if (rc != 0)
		return rc;
	conf.long_timeout_ms = silence_ms;
	/* What an expired partner is waited for; the driver wants it to be shorter. */
	conf.short_timeout_ms = silence_ms - 1u;
	return rte_eth_bond_8023ad_setup(bond, &conf);
}

/* Makes a port of the ports in `config`; 0 or a positive errno, and in `step` what failed. The port exists once `bond` is set. */
int mr_bond_create(const char *name, const struct mr_bond_config *config, uint32_t descriptors, int socket,
		   uint16_t *bond, const char **step)
{
	int rc;

	*step = "finding memory for LACP";
	if (config->mode == BONDING_MODE_8023AD && !lacp_fits(config, descriptors, socket))
		return ENOMEM;
	*step = "making the aggregated port";
	rc = rte_eth_bond_create(name, config->mode, socket < 0 ? 0 : (uint8_t)socket);
	if (rc < 0)
		return -rc;
	*bond = (uint16_t)rc;
	*step = "setting LACP's timeouts";
	if (config->mode == BONDING_MODE_8023AD && config->silence_ms > 1) {
		rc = lacp_silence(*bond, config->silence_ms);
		if (rc != 0)
			return -rc;
	}
	*step = "choosing how it spreads packets";
	if (config->mode == BONDING_MODE_BALANCE || config->mode == BONDING_MODE_8023AD) {
		rc = rte_eth_bond_xmit_policy_set(*bond, config->policy);
		if (rc != 0)
			return -rc;
	}
	*step = "setting how often links are looked at";
	rc = rte_eth_bond_link_monitoring_set(*bond, config->poll_ms);
	if (rc != 0)
		return -rc;
	for (unsigned int i = 0; i < config->members && i < MR_MEMBERS; i++) {
		*step = "adding a member";
		rc = rte_eth_bond_slave_add(*bond, config->ports[i]);
		if (rc != 0)
			return rc == -1 ? EINVAL : -rc;
	}
	*step = "choosing the primary member";
	if (config->has_primary) {
		rc = rte_eth_bond_primary_set(*bond, config->primary);
		if (rc != 0)
			return rc == -1 ? EINVAL : -rc;
	}
	return 0;
}

/*
 * Some drivers (net_tap) say that they tell of a link's changes and never do, and the bonding driver looks only at links that don't
 * say so. So each member is looked at here, and the bonding driver is told by the call that was meant for its members. It looks
 * again itself: to be told twice does no harm.
 */
struct rte_eth_dev;
struct rte_eth_dev *rte_eth_dev_allocated(const char *name);
int rte_eth_dev_callback_process(struct rte_eth_dev *device, enum rte_eth_event_type event, void *result);

static struct watch {
	uint16_t ports[MR_MEMBERS];
	uint8_t up[MR_MEMBERS];
	uint8_t members;
	uint64_t poll_us;
	const struct rte_eth_rxtx_callback *hurries[MR_MEMBERS][MR_HURRIES];
} watches[RTE_MAX_ETHPORTS];

/* Sees all that leaves by a queue of a member: asks for short timeouts in LACPDUs (IEEE 802.1AX 6.4.2.3). */
static uint16_t hurry(uint16_t port, uint16_t queue, struct rte_mbuf **packets, uint16_t n, void *argument)
{
	(void)port, (void)queue, (void)argument;
	for (uint16_t i = 0; i < n; i++) {
		struct lacpdu_header *pdu = rte_pktmbuf_mtod(packets[i], struct lacpdu_header *);
		if (likely(pdu->eth_hdr.ether_type != RTE_BE16(RTE_ETHER_TYPE_SLOW)) ||
		    rte_pktmbuf_data_len(packets[i]) < sizeof(*pdu) || pdu->lacpdu.subtype != SLOW_SUBTYPE_LACP)
			continue;
		pdu->lacpdu.actor.state |= STATE_LACP_SHORT_TIMEOUT;
	}
	return n;
}

/* LACPDUs leave by whichever queue a worker polls. 0 or a positive errno. */
static int hurry_begins(struct watch *w)
{
	for (unsigned int i = 0; i < w->members; i++) {
		struct rte_eth_dev_info info;
		int rc = rte_eth_dev_info_get(w->ports[i], &info);
		if (rc != 0)
			return -rc;
		if (info.nb_tx_queues > MR_HURRIES)
			return ENOBUFS;
		for (uint16_t q = 0; q < info.nb_tx_queues; q++) {
			w->hurries[i][q] = rte_eth_add_tx_callback(w->ports[i], q, hurry, NULL);
			if (w->hurries[i][q] == NULL)
				return ENOMEM;
		}
	}
	return 0;
}

/* Nobody sends any more. */
static void hurry_ends(struct watch *w)
{
	for (unsigned int i = 0; i < MR_MEMBERS; i++)
		for (uint16_t q = 0; q < MR_HURRIES; q++) {
			const struct rte_eth_rxtx_callback *callback = w->hurries[i][q];
			if (callback != NULL && rte_eth_remove_tx_callback(w->ports[i], q, callback) == 0)
				rte_free((void *)(uintptr_t)callback);
			w->hurries[i][q] = NULL;
		}
}

static void look(void *argument)
{
	struct watch *w = argument;

	for (unsigned int i = 0; i < w->members; i++) {
		struct rte_eth_link link;
		char name[RTE_ETH_NAME_MAX_LEN];
		memset(&link, 0, sizeof(link));
		if (rte_eth_link_get_nowait(w->ports[i], &link) != 0)
			continue;
		uint8_t up = link.link_status == RTE_ETH_LINK_UP;
		if (up == w->up[i] || rte_eth_dev_get_name_by_port(w->ports[i], name) != 0)
			continue;
		struct rte_eth_dev *device = rte_eth_dev_allocated(name);
		if (device == NULL)
			continue;
		w->up[i] = up;
		rte_eth_dev_callback_process(device, RTE_ETH_EVENT_INTR_LSC, NULL);
	}
	(void)rte_eal_alarm_set(w->poll_us, look, w);
}

/* Looks at the members of a port that has started from now on; 0 or a positive errno. */
int mr_bond_watch(uint16_t bond, const struct mr_bond_config *config)
{
	struct watch *w = &watches[bond];

	memset(w, 0, sizeof(*w));
	memcpy(w->ports, config->ports, sizeof(w->ports));
	w->members = config->members < MR_MEMBERS ? config->members : MR_MEMBERS;
	w->poll_us = config->poll_ms * 1000ull;
	if (config->mode == BONDING_MODE_8023AD && config->silence_ms > 1) {
		int rc = hurry_begins(w);
		if (rc != 0)
			return rc;
	}
	return -rte_eal_alarm_set(w->poll_us, look, w);
}

/* Nobody is looking any more when this returns. */
void mr_bond_unwatch(uint16_t bond)
{
	(void)rte_eal_alarm_cancel(look, &watches[bond]);
	hurry_ends(&watches[bond]);
}

/* How one member of a running port fares. */
void mr_bond_member(uint16_t bond, uint8_t mode, uint16_t member, struct mr_member *out)
{
	struct rte_eth_link link;

	memset(out, 0, sizeof(*out));
	memset(&link, 0, sizeof(link));
	if (rte_eth_link_get_nowait(member, &link) == 0 && link.link_status == RTE_ETH_LINK_UP) {
		out->link_up = 1;
		out->mbps = link.link_speed;
	}
	uint16_t active[MR_MEMBERS];
	int n = rte_eth_bond_active_slaves_get(bond, active, MR_MEMBERS);
	for (int i = 0; i < n && i < MR_MEMBERS; i++)
		out->active |= active[i] == member;
	if (mode == BONDING_MODE_ACTIVE_BACKUP)
		out->active &= rte_eth_bond_primary_get(bond) == member;
	struct rte_eth_bond_8023ad_slave_info info;
	if (mode == BONDING_MODE_8023AD && rte_eth_bond_8023ad_slave_info(bond, member, &info) == 0) {
		out->actor_state = info.actor_state;
		out->partner_state = info.partner_state;
		memcpy(out->partner, info.partner.system.addr_bytes, sizeof(out->partner));
		out->active &= (info.actor_state & STATE_DISTRIBUTING) != 0;
	} else if (mode == BONDING_MODE_8023AD) {
		out->active = 0;
	}
}
