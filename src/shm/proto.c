/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registries of protocols: for messages, remote memory and atomics.
 */
#include "shm/proto.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

static const struct wf_shm_proto *const registry[] = {
	&wf_shm_proto_inline,
	&wf_shm_proto_eager,
	&wf_shm_proto_chunked,
	&wf_shm_proto_parked,
};

static const struct wf_shm_proto *const rma_registry[] = {
	&wf_shm_proto_onesided,
	&wf_shm_proto_write,
	&wf_shm_proto_read,
};

static const struct wf_shm_proto *const atomic_registry[] = {
	&wf_shm_proto_direct,
	&wf_shm_proto_atomic,
};

static const struct wf_shm_proto *
first_of(const struct wf_shm_proto *const *protos, size_t count,
	 const struct wf_shm_out *out, const struct wf_shm_tx *tx)
{
	for (size_t i = 0; i < count; i++) {
		if (protos[i]->can_send(out, tx))
			return protos[i];
	}
	return NULL;
}

const struct wf_shm_proto *wf_shm_proto_choose(const struct wf_shm_out *out,
					       const struct wf_shm_tx *tx)
{
	if ((tx->slot_flags & WF_SHM_SLOT_ACK) &&
	    !(out->features & WF_SHM_FEATURE_ACK))
		return NULL;
	if (tx->req->kind == WF_TX_ATOMIC)
		return first_of(atomic_registry, ARRAY_SIZE(atomic_registry),
				out, tx);
	if (tx->req->remote)
		return first_of(rma_registry, ARRAY_SIZE(rma_registry), out,
				tx);
	return first_of(registry, ARRAY_SIZE(registry), out, tx);
}
