/* rte_mtr: token buckets that rules share. RFC 2697 without an excess burst: what is beyond the committed one is dropped.
 *
 * Each meter has a profile and a policy of its own, under its own number: nothing is left behind when it goes, and nothing of another
 * worker's on the same port is touched.
 */
#define ALLOW_EXPERIMENTAL_API
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_mtr.h>

#include "flow.h"

static const uint64_t dropped = RTE_MTR_STATS_N_PKTS_DROPPED | RTE_MTR_STATS_N_BYTES_DROPPED;

static int explain(int rc, const struct rte_mtr_error *e, struct mr_flow_error *out)
{
	memset(out, 0, sizeof(*out));
	if (rc == 0)
		return 0;
	/* A driver without the whole API is one that can't do this. */
	out->code = rc == -ENOSYS ? ENOTSUP : rc < 0 ? -rc : EINVAL;
	out->type = e->type;
	out->part = MR_PART_METER;
	snprintf(out->message, sizeof(out->message), "%s", e->message != NULL ? e->message : "");
	return out->code;
}

/* Whether the port has meters of the kind that is made here. */
int mr_meter_able(uint16_t port)
{
	struct rte_mtr_capabilities can = { 0 };
	struct rte_mtr_error e = { 0 };

	return rte_mtr_capabilities_get(port, &can, &e) == 0 && can.n_shared_max > 0 &&
	       can.meter_srtcm_rfc2697_n_max > 0 && can.srtcm_rfc2697_byte_mode_supported;
}

/* Makes a meter, full. 0, or a positive errno with the reasons in `error`, and nothing made. */
int mr_meter_create(uint16_t port, uint32_t id, uint64_t bytes_per_second, uint64_t burst, struct mr_flow_error *error)
{
	static const struct rte_flow_action drop[] = {
		{ RTE_FLOW_ACTION_TYPE_DROP, NULL },
		{ RTE_FLOW_ACTION_TYPE_END, NULL },
	};
	struct rte_mtr_meter_policy_params policy = {
		/* Green packets go on by the rule's own actions. */
		.actions = { [RTE_COLOR_GREEN] = NULL, [RTE_COLOR_YELLOW] = drop, [RTE_COLOR_RED] = drop },
	};
	struct rte_mtr_meter_profile profile = { .alg = RTE_MTR_SRTCM_RFC2697 };
	struct rte_mtr_params params = { .meter_profile_id = id, .meter_policy_id = id, .meter_enable = 1 };
	struct rte_mtr_capabilities can = { 0 };
	struct rte_mtr_error e = { 0 }, ignored = { 0 };
	int rc;

	profile.srtcm_rfc2697.cir = bytes_per_second;
	profile.srtcm_rfc2697.cbs = burst;
	if (rte_mtr_capabilities_get(port, &can, &ignored) == 0)
		params.stats_mask = can.stats_mask & dropped;
	rc = rte_mtr_meter_policy_add(port, id, &policy, &e);
	if (rc != 0)
		return explain(rc, &e, error);
	rc = rte_mtr_meter_profile_add(port, id, &profile, &e);
	if (rc == 0) {
		rc = rte_mtr_create(port, id, &params, 1, &e);
		if (rc != 0)
			rte_mtr_meter_profile_delete(port, id, &ignored);
	}
	if (rc != 0)
		rte_mtr_meter_policy_delete(port, id, &ignored);
	return explain(rc, &e, error);
}

/* Takes a meter back that no rule uses. */
int mr_meter_destroy(uint16_t port, uint32_t id, struct mr_flow_error *error)
{
	struct rte_mtr_error e = { 0 }, ignored = { 0 };
	int rc = rte_mtr_destroy(port, id, &e);

	if (rc == 0) {
		/* What nobody uses any more does no harm if it stays. */
		rte_mtr_meter_profile_delete(port, id, &ignored);
		rte_mtr_meter_policy_delete(port, id, &ignored);
	}
	return explain(rc, &e, error);
}

/* What a meter has dropped, as far as the driver counts it. */
int mr_meter_dropped(uint16_t port, uint32_t id, uint64_t *packets, uint64_t *bytes, struct mr_flow_error *error)
{
	struct rte_mtr_stats stats = { 0 };
	struct rte_mtr_error e = { 0 };
	uint64_t mask = 0;
	int rc = rte_mtr_stats_read(port, id, &stats, &mask, 0, &e);

	*packets = mask & RTE_MTR_STATS_N_PKTS_DROPPED ? stats.n_pkts_dropped : 0;
	*bytes = mask & RTE_MTR_STATS_N_BYTES_DROPPED ? stats.n_bytes_dropped : 0;
	return explain(rc, &e, error);
}
