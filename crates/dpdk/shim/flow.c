/* rte_flow: rules for single flows, from one flat struct to DPDK's lists of items and actions.
 *
 * The lists point at structs of theirs whose layout changes between releases; all of that lives on the stack of a call here.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ethdev.h>
#include <rte_flow.h>

#include "flow.h"

struct mr_rule {
	const uint8_t *decap; /* headers to cut off */
	const uint8_t *encap; /* headers to put in front */
	const uint8_t *rss_key; /* 40 octets; NULL: the port's, which is the same */
	const struct rte_flow_action_handle *counter; /* shared with other rules */
	uint32_t teid;
	uint32_t mark;
	uint32_t meters[MR_METERS]; /* each action's in turn */
	uint16_t decap_len, encap_len;
	uint16_t vlan; /* 0xffff: no tag */
	uint16_t source_port, destination_port;
	uint16_t queue;
	uint16_t to_port;
	uint16_t rss_queues; /* 0 to this less 1; 0: as the port's redirection table says */
	uint8_t mac[6];
	uint8_t outer_destination[16];
	uint8_t source[16], destination[16]; /* IPv4: the first four */
	uint8_t has_mac, has_outer_destination, has_teid, has_source, has_destination, has_protocol, has_ports;
	uint8_t tunnel; /* 0: none, 1: without a container, 2: with one */
	uint8_t outer_v6, v6;
	uint8_t qfi; /* 0xff: any */
	uint8_t protocol;
	uint8_t tos, tos_mask;
	uint8_t exact; /* no fragments, no options: for rules that forward */
	uint8_t rss_inner, rss_source;
	uint8_t actions[MR_ACTIONS]; /* MR_PART_..., in order; 0 ends */
	uint8_t priority; /* 0 comes first */
	uint8_t reserved[2];
};
_Static_assert(sizeof(struct mr_rule) == 152, "mirrored in src/ffi.rs");

void mr_item(struct built *b, enum rte_flow_item_type type, enum mr_part part, const void *spec, const void *mask,
	     size_t size)
{
	static const uint8_t zeros[sizeof(struct rte_flow_item_ipv6)];
	struct rte_flow_item *i = &b->items[b->n_items];
	int asks = mask != NULL && (size > sizeof(zeros) || memcmp(mask, zeros, size) != 0);

	i->type = type;
	i->spec = asks ? spec : NULL;
	i->mask = asks ? mask : NULL;
	b->item_part[b->n_items++] = (uint8_t)part;
}

static void ip_item(struct built *b, int level, enum mr_part part, int v6, const uint8_t *source,
		    const uint8_t *destination, const struct mr_rule *inner)
{
	if (v6) {
		struct rte_flow_item_ipv6 *spec = &b->ipv6[level], *mask = &b->ipv6_mask[level];
		if (source != NULL) {
			memcpy(spec->hdr.src_addr, source, 16);
			memset(mask->hdr.src_addr, 0xff, 16);
		}
		if (destination != NULL) {
			memcpy(spec->hdr.dst_addr, destination, 16);
			memset(mask->hdr.dst_addr, 0xff, 16);
		}
		if (inner != NULL && inner->has_protocol) {
			spec->hdr.proto = inner->protocol;
			mask->hdr.proto = 0xff;
		}
		if (inner != NULL && inner->tos_mask != 0) {
			spec->hdr.vtc_flow = rte_cpu_to_be_32((uint32_t)inner->tos << 20);
			mask->hdr.vtc_flow = rte_cpu_to_be_32((uint32_t)inner->tos_mask << 20);
		}
		if (inner != NULL && inner->exact)
			mask->has_frag_ext = 1;
		mr_item(b, RTE_FLOW_ITEM_TYPE_IPV6, part, spec, mask, sizeof(*mask));
		return;
	}
	struct rte_flow_item_ipv4 *spec = &b->ipv4[level], *mask = &b->ipv4_mask[level];
	if (source != NULL) {
		memcpy(&spec->hdr.src_addr, source, 4);
		memset(&mask->hdr.src_addr, 0xff, 4);
	}
	if (destination != NULL) {
		memcpy(&spec->hdr.dst_addr, destination, 4);
		memset(&mask->hdr.dst_addr, 0xff, 4);
	}
	if (inner != NULL && inner->has_protocol) {
		spec->hdr.next_proto_id = inner->protocol;
		mask->hdr.next_proto_id = 0xff;
	}
	if (inner != NULL && inner->tos_mask != 0) {
		spec->hdr.type_of_service = inner->tos;
		mask->hdr.type_of_service = inner->tos_mask;
	}
	if (inner != NULL && inner->exact) {
		/* A header of five words, and neither MF nor an offset. */
		spec->hdr.version_ihl = 5;
		mask->hdr.version_ihl = 0x0f;
		mask->hdr.fragment_offset = RTE_BE16(0x3fff);
	}
	mr_item(b, RTE_FLOW_ITEM_TYPE_IPV4, part, spec, mask, sizeof(*mask));
}

static void build_pattern(struct built *b, const struct mr_rule *r, uint16_t port)
{
	enum mr_part part = r->tunnel ? MR_PART_INNER : MR_PART_ADDRESSES;

	if (b->attr.transfer) {
		static const struct rte_flow_item_ethdev all = { .port_id = 0xffff };
		b->from.port_id = port;
		mr_item(b, RTE_FLOW_ITEM_TYPE_REPRESENTED_PORT, MR_PART_ETHERNET, &b->from, &all, sizeof(all));
	}
	if (r->has_mac) {
		memcpy(&b->eth.dst, r->mac, 6);
		memset(&b->eth_mask.dst, 0xff, 6);
	}
	if (r->exact && r->vlan == 0xffff)
		b->eth_mask.has_vlan = 1;
	ITEM(b, RTE_FLOW_ITEM_TYPE_ETH, MR_PART_ETHERNET, eth);
	if (r->vlan != 0xffff) {
		b->vlan.tci = rte_cpu_to_be_16(r->vlan);
		b->vlan_mask.tci = RTE_BE16(0x0fff);
		ITEM(b, RTE_FLOW_ITEM_TYPE_VLAN, MR_PART_ETHERNET, vlan);
	}
	if (r->tunnel) {
		struct mr_rule outer = { .exact = r->exact };
		ip_item(b, 0, MR_PART_ADDRESSES, r->outer_v6, NULL,
			r->has_outer_destination ? r->outer_destination : NULL, r->exact ? &outer : NULL);
		/* The GTP-U item stands for port 2152. */
		mr_item(b, RTE_FLOW_ITEM_TYPE_UDP, MR_PART_ADDRESSES, NULL, NULL, 0);
		if (r->has_teid) {
			b->gtp.teid = rte_cpu_to_be_32(r->teid);
			b->gtp_mask.teid = UINT32_MAX;
		}
		if (r->exact) {
			/* E alone, or none of E, S and PN; a G-PDU. */
			b->gtp.v_pt_rsv_flags = r->tunnel == 2 ? 4 : 0;
			b->gtp_mask.v_pt_rsv_flags = 7;
			b->gtp.msg_type = 255;
			b->gtp_mask.msg_type = 255;
		}
		ITEM(b, RTE_FLOW_ITEM_TYPE_GTPU, MR_PART_TUNNEL, gtp);
		if (r->tunnel == 2) {
			if (r->qfi != 0xff) {
				b->psc.hdr.qfi = r->qfi;
				b->psc_mask.hdr.qfi = 0x3f;
			}
			if (r->exact) {
				b->psc.hdr.ext_hdr_len = 1;
				b->psc_mask.hdr.ext_hdr_len = 0xff;
			}
			ITEM(b, RTE_FLOW_ITEM_TYPE_GTP_PSC, MR_PART_CONTAINER, psc);
		}
	}
	ip_item(b, 1, part, r->v6, r->has_source ? r->source : NULL, r->has_destination ? r->destination : NULL, r);
	if (r->has_ports && r->protocol == 17) {
		b->udp.hdr.src_port = rte_cpu_to_be_16(r->source_port);
		b->udp.hdr.dst_port = rte_cpu_to_be_16(r->destination_port);
		b->udp_mask.hdr.src_port = b->udp_mask.hdr.dst_port = 0xffff;
		ITEM(b, RTE_FLOW_ITEM_TYPE_UDP, part, udp);
	} else if (r->has_ports) {
		b->tcp.hdr.src_port = rte_cpu_to_be_16(r->source_port);
		b->tcp.hdr.dst_port = rte_cpu_to_be_16(r->destination_port);
		b->tcp_mask.hdr.src_port = b->tcp_mask.hdr.dst_port = 0xffff;
		ITEM(b, RTE_FLOW_ITEM_TYPE_TCP, part, tcp);
	}
	b->items[b->n_items].type = RTE_FLOW_ITEM_TYPE_END;
}

static void build_rss(struct built *b, const struct mr_rule *r)
{
	uint16_t n = r->rss_queues < MR_QUEUES ? r->rss_queues : MR_QUEUES;

	for (uint16_t i = 0; i < n; i++)
		b->queues[i] = i;
	b->rss.func = RTE_ETH_HASH_FUNCTION_DEFAULT;
	b->rss.level = r->rss_inner ? 2 : 0;
	/* A subscriber's IPv6 address is its prefix of 64 bits. */
	b->rss.types = (r->v6 ? RTE_ETH_RSS_IPV6_PRE64 : RTE_ETH_RSS_IPV4) |
		       (r->rss_source ? RTE_ETH_RSS_L3_SRC_ONLY : RTE_ETH_RSS_L3_DST_ONLY);
	b->rss.key = r->rss_key;
	b->rss.key_len = r->rss_key != NULL ? 40 : 0;
	b->rss.queue = n != 0 ? b->queues : NULL;
	b->rss.queue_num = n;
}

static void build_actions(struct built *b, const struct mr_rule *r)
{
	unsigned int meters = 0;

	for (unsigned int i = 0; i < MR_ACTIONS && r->actions[i] != MR_PART_NONE; i++) {
		b->action_part[b->n_actions] = r->actions[i];
		struct rte_flow_action *a = &b->actions[b->n_actions++];
		switch (r->actions[i]) {
		case MR_PART_COUNT:
			*a = (struct rte_flow_action){ RTE_FLOW_ACTION_TYPE_COUNT, &b->count };
			break;
		case MR_PART_SHARED_COUNT:
			*a = (struct rte_flow_action){ RTE_FLOW_ACTION_TYPE_INDIRECT, r->counter };
			break;
		case MR_PART_MARK:
			b->mark.id = r->mark;
			*a = (struct rte_flow_action){ RTE_FLOW_ACTION_TYPE_MARK, &b->mark };
			break;
		case MR_PART_QUEUE:
			b->queue.index = r->queue;
			*a = (struct rte_flow_action){ RTE_FLOW_ACTION_TYPE_QUEUE, &b->queue };
			break;
		case MR_PART_RSS:
			build_rss(b, r);
			*a = (struct rte_flow_action){ RTE_FLOW_ACTION_TYPE_RSS, &b->rss };
			break;
		case MR_PART_METER:
			/* src/flow.rs gives no more than there is room for. */
			b->meters[meters].mtr_id = r->meters[meters];
			*a = (struct rte_flow_action){ RTE_FLOW_ACTION_TYPE_METER, &b->meters[meters++] };
			break;
		case MR_PART_DECAP:
			b->decap.data = (uint8_t *)(uintptr_t)r->decap;
			b->decap.size = r->decap_len;
			*a = (struct rte_flow_action){ RTE_FLOW_ACTION_TYPE_RAW_DECAP, &b->decap };
			break;
		case MR_PART_DEC_TTL:
			*a = (struct rte_flow_action){ RTE_FLOW_ACTION_TYPE_DEC_TTL, NULL };
			break;
		case MR_PART_ENCAP:
			b->encap.data = (uint8_t *)(uintptr_t)r->encap;
			b->encap.size = r->encap_len;
			*a = (struct rte_flow_action){ RTE_FLOW_ACTION_TYPE_RAW_ENCAP, &b->encap };
			break;
		default: /* MR_PART_PORT */
			b->to.port_id = r->to_port;
			*a = (struct rte_flow_action){ RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT, &b->to };
			break;
		}
	}
	b->actions[b->n_actions].type = RTE_FLOW_ACTION_TYPE_END;
}

static void build(struct built *b, const struct mr_rule *r, uint16_t port)
{
	memset(b, 0, sizeof(*b));
	/* Only the embedded switch can send a packet out of another port. */
	b->attr.ingress = 1;
	b->attr.priority = r->priority;
	for (unsigned int i = 0; i < MR_ACTIONS && r->actions[i] != MR_PART_NONE; i++)
		if (r->actions[i] == MR_PART_PORT) {
			b->attr.ingress = 0;
			b->attr.transfer = 1;
		}
	build_pattern(b, r, port);
	build_actions(b, r);
}

int mr_explain(const struct built *b, int rc, const struct rte_flow_error *e, struct mr_flow_error *out)
{
	memset(out, 0, sizeof(*out));
	if (rc == 0)
		return 0;
	out->code = rc < 0 ? -rc : (rte_errno != 0 ? rte_errno : EINVAL);
	out->type = e->type;
	snprintf(out->message, sizeof(out->message), "%s", e->message != NULL ? e->message : "");
	if (b == NULL)
		return out->code;
	for (unsigned int i = 0; i < b->n_items; i++)
		if (e->cause == &b->items[i] || (e->cause != NULL && (e->cause == b->items[i].spec ||
								     e->cause == b->items[i].mask)))
			out->part = b->item_part[i];
	for (unsigned int i = 0; i < b->n_actions; i++)
		if (e->cause == &b->actions[i] || (e->cause != NULL && e->cause == b->actions[i].conf))
			out->part = b->action_part[i];
	return out->code;
}

/* 0, or a positive errno with the reasons in `error`. */
int mr_flow_validate(uint16_t port, const struct mr_rule *rule, struct mr_flow_error *error)
{
	struct built b;
	struct rte_flow_error e = { 0 };

	build(&b, rule, port);
	return mr_explain(&b, rte_flow_validate(port, &b.attr, b.items, b.actions, &e), &e, error);
}

struct rte_flow *mr_flow_create(uint16_t port, const struct mr_rule *rule, struct mr_flow_error *error)
{
	struct built b;
	struct rte_flow_error e = { 0 };

	build(&b, rule, port);
	rte_errno = 0;
	struct rte_flow *flow = rte_flow_create(port, &b.attr, b.items, b.actions, &e);
	mr_explain(&b, flow == NULL ? 1 : 0, &e, error);
	return flow;
}

int mr_flow_destroy(uint16_t port, struct rte_flow *flow, struct mr_flow_error *error)
{
	struct rte_flow_error e = { 0 };

	return mr_explain(NULL, rte_flow_destroy(port, flow, &e), &e, error);
}

/* Reads the counter of a rule that has one. */
int mr_flow_count(uint16_t port, struct rte_flow *flow, uint64_t *packets, uint64_t *bytes, struct mr_flow_error *error)
{
	struct rte_flow_error e = { 0 };
	struct rte_flow_query_count count = { 0 };
	struct rte_flow_action_count conf = { 0 };
	const struct rte_flow_action actions[] = {
		{ RTE_FLOW_ACTION_TYPE_COUNT, &conf },
		{ RTE_FLOW_ACTION_TYPE_END, NULL },
	};
	int rc = rte_flow_query(port, flow, actions, &count, &e);

	*packets = count.hits_set ? count.hits : 0;
	*bytes = count.bytes_set ? count.bytes : 0;
	return mr_explain(NULL, rc, &e, error);
}
