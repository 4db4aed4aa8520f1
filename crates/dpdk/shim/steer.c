/* rte_flow: rules that choose a receive queue ahead of RSS, from one flat struct to DPDK's lists of items and actions. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>

#include "flow.h"

struct mr_steer {
	const uint8_t *rss_key; /* 40 octets; NULL: the port's hash, whatever it is of */
	uint16_t first_queue, queues; /* one: to it; more: spread over them */
	uint16_t ether_type; /* 0: any, or as `ip` says */
	uint16_t source_port, destination_port; /* 0: any */
	uint8_t rank; /* 0 comes first */
	uint8_t tagged; /* behind a VLAN tag */
	uint8_t ip; /* 4, 6; 0: not by IP */
	uint8_t has_destination;
	uint8_t destination[16]; /* IPv4: the first four */
	uint8_t tos, tos_mask;
	uint8_t hops; /* 0: any */
	uint8_t protocol; /* 6, 17; 0: any */
	uint8_t icmp6; /* a type; 0: not by it */
	uint8_t message; /* a type of GTP-U's; 0: not by it */
	uint8_t inside; /* in G-PDUs with a container: 4, 6; 0: not by it */
	uint8_t hash_source; /* with a key: the source's address, otherwise the destination's */
	uint8_t reserved[2];
};
_Static_assert(sizeof(struct mr_steer) == 48, "mirrored in src/ffi.rs");

static void outer_ip(struct built *b, const struct mr_steer *s)
{
	if (s->ip == 6) {
		struct rte_ipv6_hdr *spec = &b->ipv6[0].hdr, *mask = &b->ipv6_mask[0].hdr;
		if (s->has_destination) {
			memcpy(spec->dst_addr, s->destination, 16);
			memset(mask->dst_addr, 0xff, 16);
		}
		spec->vtc_flow = rte_cpu_to_be_32((uint32_t)s->tos << 20);
		mask->vtc_flow = rte_cpu_to_be_32((uint32_t)s->tos_mask << 20);
		spec->hop_limits = s->hops;
		mask->hop_limits = s->hops != 0 ? 0xff : 0;
		mr_item(b, RTE_FLOW_ITEM_TYPE_IPV6, MR_PART_ADDRESSES, &b->ipv6[0], &b->ipv6_mask[0],
			sizeof(b->ipv6[0]));
		return;
	}
	struct rte_ipv4_hdr *spec = &b->ipv4[0].hdr, *mask = &b->ipv4_mask[0].hdr;
	if (s->has_destination) {
		memcpy(&spec->dst_addr, s->destination, 4);
		memset(&mask->dst_addr, 0xff, 4);
	}
	spec->type_of_service = s->tos;
	mask->type_of_service = s->tos_mask;
	spec->time_to_live = s->hops;
	mask->time_to_live = s->hops != 0 ? 0xff : 0;
	mr_item(b, RTE_FLOW_ITEM_TYPE_IPV4, MR_PART_ADDRESSES, &b->ipv4[0], &b->ipv4_mask[0], sizeof(b->ipv4[0]));
}

static void transport(struct built *b, const struct mr_steer *s)
{
	rte_be16_t source = rte_cpu_to_be_16(s->source_port), destination = rte_cpu_to_be_16(s->destination_port);
	uint16_t source_mask = source != 0 ? 0xffff : 0, destination_mask = destination != 0 ? 0xffff : 0;

	if (s->protocol == 17) {
		b->udp.hdr.src_port = source;
		b->udp.hdr.dst_port = destination;
		b->udp_mask.hdr.src_port = source_mask;
		b->udp_mask.hdr.dst_port = destination_mask;
		ITEM(b, RTE_FLOW_ITEM_TYPE_UDP, MR_PART_ADDRESSES, udp);
	} else if (s->protocol == 6) {
		b->tcp.hdr.src_port = source;
		b->tcp.hdr.dst_port = destination;
		b->tcp_mask.hdr.src_port = source_mask;
		b->tcp_mask.hdr.dst_port = destination_mask;
		ITEM(b, RTE_FLOW_ITEM_TYPE_TCP, MR_PART_ADDRESSES, tcp);
	}
}

static void build_pattern(struct built *b, const struct mr_steer *s)
{
	rte_be16_t type = rte_cpu_to_be_16(s->ether_type);

	if (s->ether_type != 0 && !s->tagged) {
		b->eth.type = type;
		b->eth_mask.type = 0xffff;
	}
	ITEM(b, RTE_FLOW_ITEM_TYPE_ETH, MR_PART_ETHERNET, eth);
	if (s->tagged) {
		b->vlan.inner_type = type;
		b->vlan_mask.inner_type = s->ether_type != 0 ? 0xffff : 0;
		ITEM(b, RTE_FLOW_ITEM_TYPE_VLAN, MR_PART_ETHERNET, vlan);
	}
	if (s->ip != 0)
		outer_ip(b, s);
	transport(b, s);
	if (s->icmp6 != 0) {
		b->icmp6.type = s->icmp6;
		b->icmp6_mask.type = 0xff;
		ITEM(b, RTE_FLOW_ITEM_TYPE_ICMP6, MR_PART_ADDRESSES, icmp6);
	}
	if (s->message != 0 || s->inside != 0) {
		/* The GTP-U item stands for version 1 and port 2152. */
		mr_item(b, RTE_FLOW_ITEM_TYPE_UDP, MR_PART_ADDRESSES, NULL, NULL, 0);
		b->gtp.msg_type = s->message;
		b->gtp_mask.msg_type = s->message != 0 ? 0xff : 0;
		ITEM(b, RTE_FLOW_ITEM_TYPE_GTPU, MR_PART_TUNNEL, gtp);
	}
	if (s->inside != 0) {
		ITEM(b, RTE_FLOW_ITEM_TYPE_GTP_PSC, MR_PART_CONTAINER, psc);
		mr_item(b, s->inside == 6 ? RTE_FLOW_ITEM_TYPE_IPV6 : RTE_FLOW_ITEM_TYPE_IPV4, MR_PART_INNER, NULL,
			NULL, 0);
	}
	b->items[b->n_items].type = RTE_FLOW_ITEM_TYPE_END;
}

static void build(struct built *b, const struct mr_steer *s)
{
	memset(b, 0, sizeof(*b));
	b->attr.ingress = 1;
	b->attr.priority = s->rank;
	build_pattern(b, s);
	if (s->queues == 1) {
		b->queue.index = s->first_queue;
		b->actions[0] = (struct rte_flow_action){ RTE_FLOW_ACTION_TYPE_QUEUE, &b->queue };
		b->action_part[0] = MR_PART_QUEUE;
	} else {
		uint16_t n = s->queues < MR_QUEUES ? s->queues : MR_QUEUES;
		for (uint16_t i = 0; i < n; i++)
			b->queues[i] = s->first_queue + i;
		b->rss.func = RTE_ETH_HASH_FUNCTION_DEFAULT;
		b->rss.queue = b->queues;
		b->rss.queue_num = n;
		if (s->rss_key != NULL) {
			int v6 = (s->inside != 0 ? s->inside : s->ip) == 6;
			b->rss.level = s->inside != 0 ? 2 : 0;
			/* A subscriber's IPv6 address is its prefix of 64 bits. */
			b->rss.types = (v6 ? RTE_ETH_RSS_IPV6_PRE64 : RTE_ETH_RSS_IPV4) |
				       (s->hash_source ? RTE_ETH_RSS_L3_SRC_ONLY : RTE_ETH_RSS_L3_DST_ONLY);
			b->rss.key = s->rss_key;
			b->rss.key_len = 40;
		}
		b->actions[0] = (struct rte_flow_action){ RTE_FLOW_ACTION_TYPE_RSS, &b->rss };
		b->action_part[0] = MR_PART_RSS;
	}
	b->n_actions = 1;
	b->actions[1].type = RTE_FLOW_ACTION_TYPE_END;
}

/* 0, or a positive errno with the reasons in `error`. */
int mr_steer_validate(uint16_t port, const struct mr_steer *rule, struct mr_flow_error *error)
{
	struct built b;
	struct rte_flow_error e = { 0 };

	build(&b, rule);
	return mr_explain(&b, rte_flow_validate(port, &b.attr, b.items, b.actions, &e), &e, error);
}

struct rte_flow *mr_steer_create(uint16_t port, const struct mr_steer *rule, struct mr_flow_error *error)
{
	struct built b;
	struct rte_flow_error e = { 0 };

	build(&b, rule);
	rte_errno = 0;
	struct rte_flow *flow = rte_flow_create(port, &b.attr, b.items, b.actions, &e);
	mr_explain(&b, flow == NULL ? 1 : 0, &e, error);
	return flow;
}
