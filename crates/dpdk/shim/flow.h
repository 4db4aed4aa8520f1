/* What the makers of rules share: a rule being built, and what a driver objects to in it. */
#ifndef MR_FLOW_H
#define MR_FLOW_H

#include <stddef.h>
#include <stdint.h>

#include <rte_flow.h>

enum { MR_ITEMS = 10, MR_ACTIONS = 10, MR_METERS = 3, MR_QUEUES = 128 };

/* What an item or an action is to src/flow.rs and src/steer.rs. */
enum mr_part {
	MR_PART_NONE,
	MR_PART_ETHERNET,
	MR_PART_ADDRESSES,
	MR_PART_TUNNEL,
	MR_PART_CONTAINER,
	MR_PART_INNER,
	/* Actions, which are also the codes in `actions`. */
	MR_PART_COUNT,
	MR_PART_MARK,
	MR_PART_QUEUE,
	MR_PART_RSS,
	MR_PART_METER,
	MR_PART_DECAP,
	MR_PART_DEC_TTL,
	MR_PART_ENCAP,
	MR_PART_PORT,
	MR_PART_SHARED_COUNT,
};

struct mr_flow_error {
	int32_t code; /* a positive errno */
	uint32_t type; /* enum rte_flow_error_type */
	uint32_t part; /* enum mr_part */
	char message[116];
};
_Static_assert(sizeof(struct mr_flow_error) == 128, "mirrored in src/ffi.rs");

/* Everything that the lists of one rule point at. */
struct built {
	struct rte_flow_attr attr;
	struct rte_flow_item items[MR_ITEMS];
	uint8_t item_part[MR_ITEMS];
	struct rte_flow_action actions[MR_ACTIONS + 1];
	uint8_t action_part[MR_ACTIONS + 1];
	unsigned int n_items, n_actions;

	struct rte_flow_item_ethdev from;
	struct rte_flow_item_eth eth, eth_mask;
	struct rte_flow_item_vlan vlan, vlan_mask;
	struct rte_flow_item_ipv4 ipv4[2], ipv4_mask[2];
	struct rte_flow_item_ipv6 ipv6[2], ipv6_mask[2];
	struct rte_flow_item_udp udp, udp_mask;
	struct rte_flow_item_tcp tcp, tcp_mask;
	struct rte_flow_item_icmp6 icmp6, icmp6_mask;
	struct rte_flow_item_gtp gtp, gtp_mask;
	struct rte_flow_item_gtp_psc psc, psc_mask;

	struct rte_flow_action_count count;
	struct rte_flow_action_mark mark;
	struct rte_flow_action_queue queue;
	struct rte_flow_action_rss rss;
	uint16_t queues[MR_QUEUES];
	struct rte_flow_action_meter meters[MR_METERS];
	struct rte_flow_action_raw_decap decap;
	struct rte_flow_action_raw_encap encap;
	struct rte_flow_action_ethdev to;
};

/* An item that asks for nothing has neither spec nor mask: drivers take "any" in no other form. */
void mr_item(struct built *b, enum rte_flow_item_type type, enum mr_part part, const void *spec, const void *mask,
	     size_t size);

#define ITEM(b, type, part, field) mr_item(b, type, part, &(b)->field, &(b)->field##_mask, sizeof((b)->field))

/* Puts into words what a driver objects to; `b` is the rule, if it was about one. 0 or a positive errno. */
int mr_explain(const struct built *b, int rc, const struct rte_flow_error *e, struct mr_flow_error *out);

/* counter.c */
void mr_deliver_marks(uint16_t port);

#endif
