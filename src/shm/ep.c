/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared-memory side of an endpoint.
 */
#include "shm/ep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/barrier.h"
#include "base/clock.h"
#include "base/log.h"
#include "os/file.h"
#include "os/poll.h"
#include "os/shared.h"
#include "shm/conn.h"
#include "shm/pull.h"
#include "shm/put.h"
#include "shm/remote.h"
#include "shm/sleep.h"
#include "shm/tx.h"

/* Sockets are looked at every half millisecond, sooner while a connection is
 * being made. */
#define SOCKETS_EVERY (500 * WF_NS_PER_US)
#define SOCKETS_EVERY_CONNECTING (20 * WF_NS_PER_US)

/* Looks at the clock without a message, some 50 us, before the CPU is offered. */
#define QUIET_TICKS 16

/* For injected messages that wait when an endpoint is closed. */
#define LINGER WF_NS_PER_S

#define TX_PER_SLAB 32
#define OUTS_MAX ((uint64_t)1 << 32)

static void look_at_sockets(struct wf_shm_ep *ep, uint64_t now);

int wf_shm_ep_open(struct wf_shm_ep *ep, const struct wf_shm_ep_attr *attr,
		   struct wf_compq *txq, struct wf_rxq *rxq)
{
	char text[WF_ADDR_STR_LEN];
	int err;

	*ep = (struct wf_shm_ep){
		.txq = txq,
		.rxq = rxq,
		.attr = *attr,
		.regs = attr->regs,
		.remote_writes = attr->remote_writes,
		.remote_reads = attr->remote_reads,
		.epoll_fd = -1,
		.joined = wf_base_barrier_join(),
		.listener = { .fd = -1, .kind = WF_SHM_SOCK_LISTENER },
		.timer = { .fd = -1, .kind = WF_SHM_SOCK_TIMER },
		.beside = { .fd = attr->beside.stirred ? attr->beside.fd : -1,
			    .kind = WF_SHM_SOCK_BESIDE },
	};
	/* What is injected goes in one record. */
	if (ep->attr.chunk < WF_SHM_PUT_MAX)
		ep->attr.chunk = WF_SHM_PUT_MAX;
	ep->all_joined = ep->joined;
	wf_base_list_init(&ep->pending_outs);
	wf_base_list_init(&ep->waiting_outs);
	wf_base_list_init(&ep->busy_ins);
	wf_base_list_init(&ep->guests);
	wf_base_list_init(&ep->all_outs);
	wf_base_pool_init(&ep->tx_pool, sizeof(struct wf_shm_tx), TX_PER_SLAB,
			  attr->tx_size);
	wf_base_pool_init(&ep->remote_pool, sizeof(struct wf_remote),
			  TX_PER_SLAB, attr->tx_size);
	err = wf_base_stats_open(
		&ep->stats, "endpoint",
		wf_base_addr_str(&attr->addr, text, sizeof(text)),
		wf_shm_stats_names, WF_SHM_STAT_COUNT);
	if (err)
		return err;
	err = wf_shm_board_open(&ep->board);
	if (err)
		goto err_stats;
	wf_shm_watch_open(&ep->watch, ep->board.board, rxq, &ep->stats);
	err = wf_shm_conn_listen(ep);
	if (!err)
		return 0;
	wf_shm_board_close(&ep->board);
err_stats:
	wf_base_stats_close(&ep->stats);
	return err;
}

/* Nobody can wait for an injected message: what still waits as a copy gets some
 * time. */
static void linger(struct wf_shm_ep *ep)
{
	uint64_t begin = wf_base_clock_ns();
	struct wf_list *pos, *tmp;
	bool holds = !ep->forked;

	wf_list_for_each (pos, tmp, &ep->pending_outs)
		wf_shm_out_keep_copies(
			wf_container_of(pos, struct wf_shm_out, pending_link));
	while (holds && wf_base_clock_ns() - begin < LINGER) {
		holds = false;
		wf_list_for_each (pos, tmp, &ep->pending_outs) {
			struct wf_shm_out *out = wf_container_of(
				pos, struct wf_shm_out, pending_link);

			wf_shm_out_push(out);
			holds |= wf_shm_out_holds_copies(out);
		}
		if (!holds)
			return;
		look_at_sockets(ep, wf_base_clock_ns()); /* who has died? */
		wf_base_rest(&ep->rest);
	}
	if (holds)
		wf_warn("closed with injected messages that nobody read");
}

void wf_shm_ep_close(struct wf_shm_ep *ep)
{
	struct wf_list *pos, *tmp;

	if (!wf_base_list_empty(&ep->pending_outs))
		linger(ep);
	for (uint32_t i = 0; i < ep->watch.count; i++)
		wf_shm_in_close(ep->watch.ins[i], 0);
	wf_list_for_each (pos, tmp, &ep->all_outs)
		wf_shm_out_free(wf_container_of(pos, struct wf_shm_out, link));
	wf_shm_conn_unlisten(ep);
	wf_shm_board_close(&ep->board);
	wf_base_stats_close(&ep->stats);
	wf_base_pool_fini(&ep->tx_pool);
	wf_base_pool_fini(&ep->remote_pool);
	wf_shm_watch_close(&ep->watch);
	free(ep->outs);
}

void wf_shm_ep_forked(struct wf_shm_ep *ep)
{
	struct wf_list *pos, *tmp;

	ep->forked = true;
	wf_shm_ep_busy(ep);
	for (uint32_t i = 0; i < ep->watch.count; i++) {
		wf_os_close(ep->watch.ins[i]->sock.fd);
		ep->watch.ins[i]->sock.fd = -1;
		ep->watch.ins[i]->region.base = NULL;
		ep->watch.ins[i]->ended = true;
	}
	wf_list_for_each (pos, tmp, &ep->all_outs) {
		struct wf_shm_out *out =
			wf_container_of(pos, struct wf_shm_out, link);

		if (out->sock.fd >= 0)
			wf_os_close(out->sock.fd);
		out->sock.fd = -1;
		out->region.base = NULL;
		out->slots_free = 0;
	}
	ep->out_count = 0;
	ep->asleep = false;
	wf_base_stats_forked(&ep->stats);
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
	wf_shm_conn_try(*out, (*out)->since);
	wf_shm_sleep_disturb(ep); /* to try again, and to give up in time */
	return 0;
}

int wf_shm_ep_send(struct wf_shm_ep *ep, uint64_t dst, const struct wf_tx *tx)
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
	for (uint32_t i = 0; i < ep->watch.count; i++) {
		if (wf_base_addr_equal(&ep->watch.ins[i]->addr, addr))
			wf_shm_in_rename(ep->watch.ins[i], name);
	}
}

void wf_shm_ep_removed(struct wf_shm_ep *ep, uint64_t name)
{
	struct wf_shm_out *out = wf_shm_ep_out(ep, name);

	for (uint32_t i = 0; i < ep->watch.count; i++) {
		if (ep->watch.ins[i]->src == name)
			wf_shm_in_rename(ep->watch.ins[i], WF_MATCH_ANY);
	}
	if (!out)
		return;
	wf_shm_out_fail_all(out, FI_ECANCELED);
	forget(ep, out);
}

/* Someone else changed the names: whatever has one is looked at again. At the
 * start of progress, when nobody is inside a channel. */
static void follow_names(struct wf_shm_ep *ep)
{
	const struct wf_names *names = &ep->attr.names;
	/* Acquire: what was counted is seen. Pairs with the creator's count. */
	uint64_t changes = wf_shared_load(names->changes, acquire);
	struct wf_list *pos, *tmp;

	if (wf_likely(changes == ep->names_seen))
		return;
	ep->names_seen = changes;
	wf_list_for_each (pos, tmp, &ep->all_outs) {
		struct wf_shm_out *out =
			wf_container_of(pos, struct wf_shm_out, link);
		struct wf_addr addr;

		if (names->get(names->arg, out->dst, &addr) ||
		    !wf_base_addr_equal(&addr, &out->addr))
			wf_shm_ep_removed(ep, out->dst);
	}
	for (uint32_t i = 0; i < ep->watch.count; i++) {
		struct wf_shm_in *in = ep->watch.ins[i];
		uint64_t src;

		if (in->addr.sa.sa_family == AF_UNSPEC)
			continue; /* a stranger has no name */
		src = names->find(names->arg, &in->addr);
		if (src != in->src)
			wf_shm_in_rename(in, src);
	}
}

int wf_shm_ep_add_in(struct wf_shm_ep *ep, struct wf_shm_in *in)
{
	int err = wf_shm_watch_add(&ep->watch, in);

	if (err)
		return err;
	if (!(in->features & WF_SHM_FEATURE_BARRIER))
		ep->all_joined = false;
	wf_shm_ep_busy(ep);
	return 0;
}

void wf_shm_ep_drop_in(struct wf_shm_ep *ep, struct wf_shm_in *in)
{
	wf_shm_watch_drop(&ep->watch, in);
	wf_shm_ep_busy(ep);
}

int wf_shm_ep_beside_on(struct wf_shm_ep *ep, int fd)
{
	int err = 0;

	if (fd != ep->beside.fd) {
		if (ep->beside.fd >= 0)
			wf_os_epoll_ctl(ep->epoll_fd, EPOLL_CTL_DEL,
					ep->beside.fd, NULL);
		ep->beside.fd = fd;
		err = wf_shm_conn_watch(ep, &ep->beside);
	}
	ep->beside_on = true;
	wf_shm_ep_busy(ep);
	return err;
}

/* -- progress -------------------------------------------------------------- */

static void reap_ins(struct wf_shm_ep *ep)
{
	for (uint32_t i = 0; i < ep->watch.count;) {
		struct wf_shm_in *in = ep->watch.ins[i];

		/* What a closed peer wrote is still delivered. */
		if (!in->broken && in->ended && wf_shm_in_ready(in)) {
			wf_shm_in_poll(in, WF_SHM_IN_BUDGET);
			ep->draining = true;
			i++;
			continue;
		}
		if (!in->broken && !in->ended) {
			i++;
			continue;
		}
		wf_shm_stats_add(&ep->stats, WF_SHM_STAT_peers_lost, 1);
		wf_shm_ep_drop_in(ep, in);
		wf_shm_in_close(in, in->broken ? FI_EIO : FI_ECONNRESET);
	}
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
	ep->draining = false;
	reap_outs(ep);
	reap_ins(ep);
}

static void look_at_sockets(struct wf_shm_ep *ep, uint64_t now)
{
	ep->sockets_due = now + (ep->connecting ? SOCKETS_EVERY_CONNECTING :
						  SOCKETS_EVERY);
	wf_shm_conn_poll(ep, now);
	wf_shm_stats_flush(ep);
}

/* Pulls that go on, replies that were kept. */
static void poll_busy(struct wf_shm_ep *ep)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->busy_ins) {
		struct wf_shm_in *in =
			wf_container_of(pos, struct wf_shm_in, busy_link);
		struct wf_list *pull, *next;

		wf_list_for_each (pull, next, &in->busy) {
			wf_shm_pull_progress(wf_container_of(
				pull, struct wf_shm_pull, busy));
		}
		wf_shm_reply_flush(&in->replies);
		wf_shm_in_nudge(in);
		if (wf_base_list_empty(&in->busy) && !in->replies.count) {
			wf_base_list_del(&in->busy_link);
			in->is_busy = false;
		}
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

/* Nothing has come for a while: whoever we wait for may want this very CPU. With
 * more processes than CPUs, callers that poll without ever yielding (MPI_Send
 * over Open MPI's mtl/ofi) else keep their peers from answering until the
 * scheduler steps in, milliseconds later. Alone on a CPU, a yield costs a third
 * of a microsecond in 32 polls. Never with a lock held: others may wait for it.
 */
static void yield_when_quiet(struct wf_shm_ep *ep)
{
	const struct wf_shm_watch *watch = &ep->watch;
	uint32_t mark = watch->watched ? watch->ins[watch->hot]->next : 0;

	if (ep->attr.threads)
		return;
	if (mark != ep->quiet_mark) {
		ep->quiet_mark = mark;
		ep->quiet_ticks = 0;
	} else if (++ep->quiet_ticks >= QUIET_TICKS) {
		ep->quiet_ticks = QUIET_TICKS;
		wf_base_rest(&ep->rest);
	}
}

static void tick(struct wf_shm_ep *ep)
{
	uint64_t now = wf_base_clock_ns();

	yield_when_quiet(ep);
	ep->polls = 0;
	wf_shm_watch_tick(&ep->watch, now);
	if (now >= ep->sockets_due)
		look_at_sockets(ep, now);
}

static bool is_quiet(const struct wf_shm_ep *ep)
{
	return ep->watch.count == 1 && ep->watch.watched == 1 &&
	       !ep->attr.names.changes && !ep->beside_on &&
	       wf_base_list_empty(&ep->busy_ins) && !ep->reap &&
	       !ep->draining && wf_base_list_empty(&ep->waiting_outs) &&
	       wf_base_list_empty(&ep->pending_outs);
}

void wf_shm_ep_progress_slow(struct wf_shm_ep *ep)
{
	if (wf_unlikely(ep->forked))
		return;
	if (wf_unlikely(ep->asleep))
		wf_shm_sleep_end(ep);
	if (wf_unlikely(ep->attr.names.changes))
		follow_names(ep);
	wf_shm_watch_poll(&ep->watch);
	if (!wf_base_list_empty(&ep->busy_ins))
		poll_busy(ep);
	if (!wf_base_list_empty(&ep->waiting_outs) ||
	    !wf_base_list_empty(&ep->pending_outs))
		poll_outs(ep);
	if (wf_unlikely(ep->reap || ep->draining))
		reap(ep);
	if (ep->beside_on && ep->attr.beside.poll(ep->attr.beside.arg))
		ep->quiet_ticks = 0;
	if (++ep->polls >= WF_SHM_EP_POLLS_PER_CLOCK)
		tick(ep);
	ep->only_in = is_quiet(ep) ? ep->watch.ins[0] : NULL;
}
