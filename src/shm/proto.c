/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registry of protocols.
 */
#include "shm/proto.h"

static const struct wf_shm_proto *const registry[] = {
	&wf_shm_proto_inline,
	&wf_shm_proto_eager,
	&wf_shm_proto_chunked,
	&wf_shm_proto_parked,
};

const struct wf_shm_proto *wf_shm_proto_choose(const struct wf_shm_out *out,
					       const struct wf_shm_tx *tx)
{
	if ((tx->slot_flags & WF_SHM_SLOT_ACK) &&
	    !(out->features & WF_SHM_FEATURE_ACK))
		return NULL;
	for (size_t i = 0; i < sizeof(registry) / sizeof(registry[0]); i++) {
		if (registry[i]->can_send(out, tx))
			return registry[i];
	}
	return NULL;
}
