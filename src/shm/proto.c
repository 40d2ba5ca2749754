/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registries of protocols: for messages, remote memory and atomics.
 */
#include "shm/proto.h"

#include "os/shared.h"
#include "shm/conn.h"
#include "shm/ep.h"
#include "shm/pace.h"
#include "shm/put.h"

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

/* With CMA, one copy and a system call are soon faster than two copies through
 * the ring; without it, a parked message takes the ring as well, only later. A
 * message that may be injected must fit into the ring. */
void wf_shm_proto_set_limits(struct wf_shm_out *out)
{
	const struct wf_shm_ep_attr *attr = &out->ep->attr;

	out->eager_max = attr->eager_max;
	if (out->mover.way != WF_SHM_WAY_NONE &&
	    out->eager_max >= attr->cma_min)
		out->eager_max = attr->cma_min - 1;
	if (out->eager_max < WF_SHM_PUT_MAX)
		out->eager_max = WF_SHM_PUT_MAX;
	out->learns = out->mover.way == WF_SHM_WAY_CMA && attr->learns &&
		      attr->eager_max > WF_SHM_PUT_MAX;
}

/* Whether it does what the receiver's word says: unless the user has set a
 * limit. */
static bool follows_word(const struct wf_shm_out *out)
{
	return out->learns || out->mover.way == WF_SHM_WAY_NONE;
}

void wf_shm_proto_choose_way(struct wf_shm_out *out, const struct wf_tx *req)
{
	const struct wf_shm_ep_attr *attr = &out->ep->attr;
	uint32_t told;

	if (out->state != WF_SHM_OUT_OPEN || !follows_word(out))
		return;
	told = wf_shared_load(&out->region.header->ways, relaxed);
	if (out->learns)
		out->eager_max = attr->cma_min - 1;
	out->stamps = false;
	out->around = false;
	if (req->remote || !wf_shm_pace_is_open(req->len))
		return;
	out->stamps = told & WF_SHM_WAYS_STAMP;
	out->around = wf_shm_pace_is_around(told, req->len);
	if (!out->learns)
		return;
	out->eager_max =
		wf_shm_pace_is_ring(told, req->len, req->len < attr->cma_min) ?
			attr->eager_max :
			WF_SHM_PUT_MAX;
}

/* Not inlined: once for a channel. */
static __attribute__((noinline)) void try_cma(struct wf_shm_out *out)
{
	wf_shm_mover_way(&out->mover);
	wf_shm_conn_count_refusal(out->ep, &out->mover);
	wf_shm_proto_set_limits(out);
}

const struct wf_shm_proto *wf_shm_proto_choose(struct wf_shm_out *out,
					       const struct wf_shm_tx *tx)
{
	if (wf_unlikely(out->mover.way == WF_SHM_WAY_UNTRIED) &&
	    (tx->req->remote || tx->req->len > WF_SHM_PUT_MAX))
		try_cma(out);
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
