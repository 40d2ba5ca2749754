/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared-memory side of an endpoint.
 */
#include "shm/ep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "shm/conn.h"
#include "shm/pull.h"
#include "shm/put.h"

/* Sockets are looked at every half millisecond, sooner while a connection is
 * being made. */
#define SOCKETS_EVERY (500 * WF_NS_PER_US)
#define SOCKETS_EVERY_CONNECTING (20 * WF_NS_PER_US)

#define TX_PER_SLAB 32
#define OUTS_MAX ((uint64_t)1 << 32)

int wf_shm_ep_open(struct wf_shm_ep *ep, const struct wf_shm_ep_attr *attr,
		   struct wf_compq *txq, struct wf_rxq *rxq)
{
	int err;

	*ep = (struct wf_shm_ep){
		.txq = txq,
		.rxq = rxq,
		.attr = *attr,
		.epoll_fd = -1,
		.listener = { .fd = -1, .kind = WF_SHM_SOCK_LISTENER },
	};
	/* What is injected goes in one record. */
	if (ep->attr.chunk < WF_SHM_PUT_MAX)
		ep->attr.chunk = WF_SHM_PUT_MAX;
	wf_base_list_init(&ep->pending_outs);
	wf_base_list_init(&ep->waiting_outs);
	wf_base_list_init(&ep->guests);
	wf_base_list_init(&ep->all_outs);
	wf_base_pool_init(&ep->tx_pool, sizeof(struct wf_shm_tx), TX_PER_SLAB,
			  attr->tx_size);
	err = wf_shm_conn_listen(ep);
	if (err)
		wf_base_pool_fini(&ep->tx_pool);
	return err;
}

void wf_shm_ep_close(struct wf_shm_ep *ep)
{
	struct wf_list *pos, *tmp;

	for (uint32_t i = 0; i < ep->in_count; i++)
		wf_shm_in_close(ep->ins[i], 0);
	wf_list_for_each (pos, tmp, &ep->all_outs)
		wf_shm_out_free(wf_container_of(pos, struct wf_shm_out, link));
	wf_shm_conn_unlisten(ep);
	wf_base_pool_fini(&ep->tx_pool);
	free(ep->ins);
	free(ep->outs);
}

void wf_shm_ep_forked(struct wf_shm_ep *ep)
{
	struct wf_list *pos, *tmp;

	ep->forked = true;
	wf_shm_ep_busy(ep);
	for (uint32_t i = 0; i < ep->in_count; i++) {
		close(ep->ins[i]->sock.fd);
		ep->ins[i]->sock.fd = -1;
		ep->ins[i]->region.base = NULL;
		ep->ins[i]->ended = true;
	}
	wf_list_for_each (pos, tmp, &ep->all_outs) {
		struct wf_shm_out *out =
			wf_container_of(pos, struct wf_shm_out, link);

		if (out->sock.fd >= 0)
			close(out->sock.fd);
		out->sock.fd = -1;
		out->region.base = NULL;
		out->slots_free = 0;
	}
	ep->out_count = 0;
	wf_shm_conn_forked(ep);
}

/* -- channels by name ------------------------------------------------------ */

static int make_room_for(struct wf_shm_ep *ep, uint64_t dst)
{
	size_t count = ep->out_count ? ep->out_count : 16;
	struct wf_shm_out **outs;

	if (dst < ep->out_count)
		return 0;
	if (dst >= OUTS_MAX)
		return -EINVAL;
	while (count <= dst)
		count *= 2;
	outs = realloc(ep->outs, count * sizeof(*outs));
	if (!outs)
		return -ENOMEM;
	memset(outs + ep->out_count, 0,
	       (count - ep->out_count) * sizeof(*outs));
	ep->outs = outs;
	ep->out_count = count;
	return 0;
}

static void forget(struct wf_shm_ep *ep, struct wf_shm_out *out)
{
	if (out->dst < ep->out_count && ep->outs[out->dst] == out)
		ep->outs[out->dst] = NULL;
	wf_shm_out_free(out);
}

/* A channel to @dst in any state but dead. */
static int open_out(struct wf_shm_ep *ep, uint64_t dst, struct wf_shm_out **out)
{
	struct wf_addr addr;
	int err = ep->attr.names.get(ep->attr.names.arg, dst, &addr);

	if (err)
		return err;
	err = make_room_for(ep, dst);
	if (err)
		return err;
	*out = wf_shm_out_open(ep, dst, &addr);
	if (!*out)
		return -ENOMEM;
	ep->outs[dst] = *out;
	wf_shm_conn_try(*out);
	return 0;
}

int wf_shm_ep_send(struct wf_shm_ep *ep, uint64_t dst, struct wf_shm_tx *tx)
{
	struct wf_shm_out *out = wf_shm_ep_out(ep, dst);
	int err;

	if (ep->forked)
		return -EOPNOTSUPP;
	if (out && out->state == WF_SHM_OUT_DEAD) {
		err = out->err;
		if (!out->keep)
			return -EAGAIN; /* reaped by the next progress */
		/* It may have died since the last one: what waits fails. */
		wf_shm_out_fail_all(out, err);
		forget(ep, out);
		out = NULL;
		/* An injected message has no other way to learn it. */
		if (tx->inject)
			return -err;
	}
	if (!out) {
		err = open_out(ep, dst, &out);
		if (err)
			return err;
	}
	return wf_shm_out_send(out, tx);
}

void wf_shm_ep_inserted(struct wf_shm_ep *ep, uint64_t name,
			const struct wf_addr *addr)
{
	for (uint32_t i = 0; i < ep->in_count; i++) {
		if (wf_base_addr_equal(&ep->ins[i]->addr, addr))
			wf_shm_in_rename(ep->ins[i], name);
	}
}

void wf_shm_ep_removed(struct wf_shm_ep *ep, uint64_t name)
{
	struct wf_shm_out *out = wf_shm_ep_out(ep, name);

	for (uint32_t i = 0; i < ep->in_count; i++) {
		if (ep->ins[i]->src == name)
			wf_shm_in_rename(ep->ins[i], WF_MATCH_ANY);
	}
	if (!out)
		return;
	wf_shm_out_fail_all(out, FI_ECANCELED);
	forget(ep, out);
}

int wf_shm_ep_add_in(struct wf_shm_ep *ep, struct wf_shm_in *in)
{
	if (ep->in_count == ep->in_room) {
		uint32_t room = ep->in_room ? ep->in_room * 2 : 8;
		struct wf_shm_in **ins = realloc(ep->ins, room * sizeof(*ins));

		if (!ins)
			return -ENOMEM;
		ep->ins = ins;
		ep->in_room = room;
	}
	ep->ins[ep->in_count++] = in;
	wf_shm_ep_busy(ep);
	return 0;
}

/* -- progress -------------------------------------------------------------- */

static void reap_ins(struct wf_shm_ep *ep)
{
	for (uint32_t i = 0; i < ep->in_count;) {
		struct wf_shm_in *in = ep->ins[i];

		/* What a closed peer wrote is still delivered. */
		if (!in->broken && (!in->ended || wf_shm_in_ready(in))) {
			ep->reap |= in->ended;
			i++;
			continue;
		}
		ep->ins[i] = ep->ins[--ep->in_count];
		wf_shm_in_close(in, in->broken ? FI_EIO : FI_ECONNRESET);
	}
	if (ep->hot >= ep->in_count)
		ep->hot = 0;
}

static void reap_outs(struct wf_shm_ep *ep)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->all_outs) {
		struct wf_shm_out *out =
			wf_container_of(pos, struct wf_shm_out, link);

		if (out->state != WF_SHM_OUT_DEAD)
			continue;
		wf_shm_out_fail_all(out, out->err);
		wf_shm_out_release(out);
		if (!out->keep)
			forget(ep, out);
	}
}

static void reap(struct wf_shm_ep *ep)
{
	ep->reap = false;
	reap_outs(ep);
	reap_ins(ep);
}

static void look_at_sockets(struct wf_shm_ep *ep, uint64_t now)
{
	ep->sockets_seen = now;
	ep->sockets_due = now + (ep->connecting ? SOCKETS_EVERY_CONNECTING :
						  SOCKETS_EVERY);
	wf_shm_conn_poll(ep, now);
}

void wf_shm_ep_check_stale(struct wf_shm_ep *ep)
{
	uint64_t now = wf_base_clock_ns();

	if (!ep->forked && now - ep->sockets_seen > WF_NS_PER_MS)
		look_at_sockets(ep, now);
}

/* Rings other than the hot one, pulls that go on, replies that were kept. */
static void poll_others(struct wf_shm_ep *ep)
{
	for (uint32_t i = 0; i < ep->in_count; i++) {
		struct wf_shm_in *in = ep->ins[i];
		struct wf_list *pos, *tmp;

		wf_list_for_each (pos, tmp, &in->busy) {
			wf_shm_pull_progress(
				wf_container_of(pos, struct wf_shm_pull, busy));
		}
		wf_shm_reply_flush(&in->replies);
		if (i != ep->hot && wf_shm_in_ready(in) &&
		    wf_shm_in_poll(in, WF_SHM_EP_BUDGET))
			ep->hot = i;
	}
}

static void poll_outs(struct wf_shm_ep *ep)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->waiting_outs)
		wf_shm_out_poll(
			wf_container_of(pos, struct wf_shm_out, waiting_link));
	wf_list_for_each (pos, tmp, &ep->pending_outs)
		wf_shm_out_push(
			wf_container_of(pos, struct wf_shm_out, pending_link));
}

static void tick(struct wf_shm_ep *ep)
{
	uint64_t now = wf_base_clock_ns();

	ep->polls = 0;
	for (uint32_t i = 0; i < ep->in_count; i++)
		wf_shm_in_credit(ep->ins[i]);
	if (now >= ep->sockets_due)
		look_at_sockets(ep, now);
}

static bool is_quiet(const struct wf_shm_ep *ep)
{
	return ep->in_count == 1 && !ep->ins[0]->replies.count &&
	       !ep->busy_pulls && !ep->reap &&
	       wf_base_list_empty(&ep->waiting_outs) &&
	       wf_base_list_empty(&ep->pending_outs);
}

void wf_shm_ep_progress_slow(struct wf_shm_ep *ep)
{
	if (wf_unlikely(ep->forked))
		return;
	if (wf_likely(ep->in_count))
		wf_shm_in_poll(ep->ins[ep->hot], WF_SHM_EP_BUDGET);
	if (ep->in_count > 1 || ep->busy_pulls ||
	    (ep->in_count && ep->ins[0]->replies.count))
		poll_others(ep);
	if (!wf_base_list_empty(&ep->waiting_outs) ||
	    !wf_base_list_empty(&ep->pending_outs))
		poll_outs(ep);
	if (wf_unlikely(ep->reap))
		reap(ep);
	if (++ep->polls >= WF_SHM_EP_POLLS_PER_CLOCK)
		tick(ep);
	ep->only_in = is_quiet(ep) ? ep->ins[0] : NULL;
}
