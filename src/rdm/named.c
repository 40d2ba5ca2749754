/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations by number.
 */
#include "rdm/named.h"

#include "base/table.h"
#include "rdm/ep.h"

int wf_rdm_named_add(struct wf_rdm_ep *ep, struct wf_rdm_named *named)
{
	int64_t number;

	if (named->has_id)
		return 0;
	number = wf_base_table_add(&ep->names, named);
	if (number < 0)
		return (int)number;
	named->id = (uint32_t)number + WF_TABLE_MAX * ep->next_name++;
	named->has_id = true;
	return 0;
}

void wf_rdm_named_del(struct wf_rdm_ep *ep, struct wf_rdm_named *named)
{
	if (named->has_id)
		wf_base_table_del(&ep->names, wf_base_table_number(named->id));
	named->has_id = false;
}

struct wf_rdm_named *wf_rdm_named_get(const struct wf_rdm_ep *ep,
				      const struct wf_rdm_peer *peer,
				      uint32_t id)
{
	struct wf_rdm_named *named =
		wf_base_table_get(&ep->names, wf_base_table_number(id));

	return named && named->id == id && named->peer == peer ? named : NULL;
}
