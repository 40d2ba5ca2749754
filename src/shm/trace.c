/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of messages through shared memory.
 */
#include "shm/trace.h"

#include "base/trace.h"
#include "os/shared.h"
#include "shm/put.h"

#define X(name, text)                                                          \
	static_assert((int)WF_TRACE_SLOT_##name == (int)WF_SHM_KIND_##name,    \
		      "as readers of events call it");
WF_TRACE_SLOTS(X)
#undef X
static_assert((int)WF_TRACE_SLOT_MAX == (int)WF_SHM_KIND_MAX, "all of them");

/* Always says that the receiver wants to be told. */
static const _Atomic uint32_t always = 1;

static uint16_t out_channel(struct wf_shm_out *out)
{
	struct wf_trace *trace = out->ep->host->trace;

	if (!out->traced) {
		out->traced = true;
		out->trace_channel = wf_base_trace_channel(trace, &out->addr);
	}
	return out->trace_channel;
}

static uint16_t in_channel(struct wf_shm_in *in)
{
	struct wf_trace *trace = in->ep->host->trace;

	if (!in->traced) {
		in->traced = true;
		in->trace_channel = wf_base_trace_channel(trace, &in->addr);
	}
	return in->trace_channel;
}

void wf_shm_trace_ring(struct wf_shm_out *out)
{
	out->bell_wanted = wf_shm_trace_is_on(out) ?
				   &always :
				   &out->region.header->bell_wanted;
}

void wf_shm_trace_turn(struct wf_shm_ep *ep, bool on)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->all_outs) {
		struct wf_shm_out *out =
			wf_container_of(pos, struct wf_shm_out, link);

		/* Also if the peer has not answered the hello yet. */
		if (out->region.base)
			out->bell_wanted =
				on ? &always : &out->region.header->bell_wanted;
	}
	for (uint32_t i = 0; i < ep->watch.count; i++)
		ep->watch.ins[i]->trace_next = ep->watch.ins[i]->next;
}

/* Bytes of the message that a slot begins, or of what it carries. */
static uint64_t length_of(const struct wf_shm_slot *slot, uint64_t word)
{
	switch (WF_SHM_WORD_KIND(word)) {
	case WF_SHM_KIND_FIRST:
		return slot->eager.total;
	case WF_SHM_KIND_PARKED:
		return slot->parked.total |
		       (uint64_t)wf_base_table_number(slot->parked.op)
			       << WF_TRACE_LEN_BITS;
	default:
		return WF_SHM_WORD_LEN(word);
	}
}

bool wf_shm_trace_put(struct wf_shm_out *out)
{
	/* The lap does not turn before this was called. */
	const struct wf_shm_slot *slot = wf_shm_put_slot(out) - 1;
	uint64_t word = wf_shared_load(&slot->word, relaxed);

	wf_base_trace_emit(out->ep->host->trace, WF_TRACE_PUT, out_channel(out),
			   out->slot_lap.head, WF_SHM_WORD_KIND(word),
			   slot->tag, length_of(slot, word));
	return wf_shared_load(&out->region.header->bell_wanted, relaxed);
}

void wf_shm_trace_rang(struct wf_shm_out *out)
{
	wf_base_trace_emit(out->ep->host->trace, WF_TRACE_RING,
			   out_channel(out), 0, 0, 0, 0);
}

void wf_shm_trace_end(struct wf_shm_out *out, uint32_t op)
{
	wf_base_trace_emit(out->ep->host->trace, WF_TRACE_END, out_channel(out),
			   wf_base_table_number(op), 0, 0, 0);
}

void wf_shm_trace_reply(struct wf_shm_in *in, uint32_t op)
{
	wf_base_trace_emit(in->ep->host->trace, WF_TRACE_REPLY, in_channel(in),
			   wf_base_table_number(op), 0, 0, 0);
}

void wf_shm_trace_letter(struct wf_shm_out *out, uint64_t tag, uint64_t len)
{
	wf_base_trace_emit(out->ep->host->trace, WF_TRACE_PUT, out_channel(out),
			   1, WF_SHM_KIND_INLINE, tag, len);
}

void wf_shm_trace_letter_taken(struct wf_shm_ep *ep, const struct wf_addr *addr)
{
	struct wf_trace *trace = ep->host->trace;

	wf_base_trace_emit(trace, WF_TRACE_TAKE,
			   wf_base_trace_channel(trace, addr), 1, 0, 0, 1);
}

/* Polls after which all rings are looked at: one may ring during a poll. */
#define ALL_EVERY 32

void wf_shm_trace_taken(struct wf_shm_ep *ep, bool all)
{
	const struct wf_shm_watch *watch = &ep->watch;
	uint32_t rings = watch->watched;

	if (all || !(++ep->trace_polls % ALL_EVERY))
		rings = watch->count;
	for (uint32_t i = 0; i < rings; i++) {
		struct wf_shm_in *in = watch->ins[i];
		uint32_t count = in->next - in->trace_next;

		if (!count)
			continue;
		in->trace_next = in->next;
		wf_base_trace_emit(ep->host->trace, WF_TRACE_TAKE,
				   in_channel(in), in->next, 0, 0, count);
	}
}
