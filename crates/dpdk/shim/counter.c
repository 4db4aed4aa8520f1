/* Counters that rules share: indirect actions of rte_flow. And the marks that rules set, which a port must be told to deliver.
 */
#define ALLOW_EXPERIMENTAL_API
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>

#include "flow.h"

static int explain(int rc, const struct rte_flow_error *e, struct mr_flow_error *out)
{
	mr_explain(NULL, rc, e, out);
	if (out->code == ENOSYS)
		out->code = ENOTSUP;
	if (out->code != 0)
		out->part = MR_PART_SHARED_COUNT;
	return out->code;
}

/* Makes a counter for rules that forward. NULL, and the reasons in `error`, if the device has none. */
struct rte_flow_action_handle *mr_counter_create(uint16_t port, struct mr_flow_error *error)
{
	static const struct rte_flow_action_count conf;
	static const struct rte_flow_action action = { RTE_FLOW_ACTION_TYPE_COUNT, &conf };
	static const struct rte_flow_indir_action_conf use = { .transfer = 1 };
	struct rte_flow_error e = { 0 };

	rte_errno = 0;
	struct rte_flow_action_handle *counter = rte_flow_action_handle_create(port, &use, &action, &e);
	explain(counter == NULL ? 1 : 0, &e, error);
	return counter;
}

/* Takes a counter back that no rule uses. */
int mr_counter_destroy(uint16_t port, struct rte_flow_action_handle *counter, struct mr_flow_error *error)
{
	struct rte_flow_error e = { 0 };

	return explain(rte_flow_action_handle_destroy(port, counter, &e), &e, error);
}

int mr_counter_read(uint16_t port, const struct rte_flow_action_handle *counter, uint64_t *packets, uint64_t *bytes,
		    struct mr_flow_error *error)
{
	struct rte_flow_error e = { 0 };
	struct rte_flow_query_count count = { 0 };
	int rc = rte_flow_action_handle_query(port, counter, &count, &e);

	*packets = count.hits_set ? count.hits : 0;
	*bytes = count.bytes_set ? count.bytes : 0;
	return explain(rc, &e, error);
}

/* Asks a port that isn't configured yet to hand over the marks that rules will set. Those that need no asking refuse. */
void mr_deliver_marks(uint16_t port)
{
	uint64_t features = RTE_ETH_RX_METADATA_USER_MARK;

	rte_eth_rx_metadata_negotiate(port, &features);
}
