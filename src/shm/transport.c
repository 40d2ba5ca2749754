/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared memory as a transport: its life and its progress.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "os/file.h"
#include "os/memory.h"
#include "shm/channels.h"
#include "shm/conn.h"
#include "shm/doze.h"
#include "shm/ep.h"
#include "shm/guard.h"
#include "shm/guest.h"
#include "shm/letter.h"
#include "shm/link.h"
#include "shm/name.h"
#include "shm/offer.h"
#include "shm/pull.h"
#include "shm/put.h"
#include "shm/trace.h"
#include "shm/tx.h"
#include "shm/waits.h"
#include "shm/window.h"

/* Sockets are looked at so often while a connection is being made. */
#define LOOK_EVERY_CONNECTING (20 * WF_NS_PER_US)

/* For injected messages that wait when an endpoint is closed. */
#define LINGER WF_NS_PER_S

#define TX_PER_SLAB 32

static const struct wf_transport traced_transport;

/* -- life ------------------------------------------------------------------ */

int wf_shm_ep_open(struct wf_shm_ep *ep, const struct wf_shm_ep_attr *attr,
		   struct wf_host *host, struct wf_way *way)
{
	char text[WF_ADDR_STR_LEN];
	int err;

	*ep = (struct wf_shm_ep){
		.txq = host->txq,
		.rxq = host->rxq,
		.host = host,
		.attr = *attr,
		.regs = host->regs,
		.remote_writes = host->remote_writes,
		.remote_reads = host->remote_reads,
		.listener = { .fd = -1 },
		.door = { .fd = -1 },
	};
	/* An injected message must fit into one record. */
	if (ep->attr.chunk < WF_SHM_PUT_MAX)
		ep->attr.chunk = WF_SHM_PUT_MAX;
	wf_base_list_init(&ep->pending_outs);
	wf_base_list_init(&ep->waiting_outs);
	wf_base_list_init(&ep->busy_ins);
	wf_base_list_init(&ep->guests);
	wf_base_list_init(&ep->letters);
	wf_base_list_init(&ep->letters_parked);
	wf_base_list_init(&ep->all_outs);
	wf_base_pool_init(&ep->tx_pool, sizeof(struct wf_shm_tx), TX_PER_SLAB,
			  host->tx_size);
	wf_base_pool_init(&ep->remote_pool, sizeof(struct wf_remote),
			  TX_PER_SLAB, host->tx_size);
	err = wf_base_stats_open(
		&ep->stats, "endpoint",
		wf_base_addr_str(&host->addr, text, sizeof(text)),
		wf_shm_stats_names, WF_SHM_STAT_COUNT);
	if (err)
		return err;
	err = wf_shm_board_open(&ep->board);
	if (err)
		goto err_stats;
	/* Linux 5.14 does, gVisor does not. */
	ep->populates =
		wf_os_populate(ep->board.board, WF_SHM_BOARD_BYTES) != -EINVAL;
	ep->addr_is_local = wf_base_addr_is_local(&host->addr);
	wf_shm_watch_open(&ep->watch, ep->board.board, ep->rxq, &ep->stats);
	err = wf_shm_guest_listen(ep);
	if (err)
		goto err_board;
	wf_shm_guard_hold();
	way->on = true;
	return 0;

err_board:
	wf_shm_board_close(&ep->board);
err_stats:
	wf_base_stats_close(&ep->stats);
	return err;
}

/* Replies that found no room: the sender of a message that we have would learn
 * that it failed. */
static bool flush_replies(struct wf_shm_ep *ep)
{
	struct wf_list *pos, *tmp;
	bool holds = false;

	wf_list_for_each (pos, tmp, &ep->busy_ins) {
		struct wf_shm_in *in =
			wf_container_of(pos, struct wf_shm_in, busy_link);

		if (in->ended)
			continue;
		wf_shm_reply_flush(&in->replies);
		wf_shm_in_nudge(in);
		holds |= in->replies.count;
	}
	return holds;
}

static bool drain(void *self)
{
	struct wf_shm_ep *ep = self;
	struct wf_list *pos, *tmp;
	bool holds = flush_replies(ep);

	wf_list_for_each (pos, tmp, &ep->pending_outs) {
		struct wf_shm_out *out =
			wf_container_of(pos, struct wf_shm_out, pending_link);

		if (!ep->closing)
			wf_shm_out_keep_copies(out);
		wf_shm_out_push(out);
		holds |= wf_shm_out_holds_copies(out);
	}
	ep->closing = true;
	return holds;
}

static void shm_close(void *self)
{
	struct wf_shm_ep *ep = self;
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->pending_outs) {
		if (!wf_shm_out_holds_copies(wf_container_of(
			    pos, struct wf_shm_out, pending_link)))
			continue;
		wf_warn("closed before the peer read all injected messages");
		break;
	}
	ep->closing = true;
	for (uint32_t i = 0; i < ep->watch.count; i++)
		wf_shm_in_close(ep->watch.ins[i], 0);
	wf_list_for_each (pos, tmp, &ep->all_outs)
		wf_shm_out_free(wf_container_of(pos, struct wf_shm_out, link));
	wf_shm_guest_unlisten(ep);
	wf_shm_letter_close(ep);
	wf_shm_board_close(&ep->board);
	wf_base_stats_close(&ep->stats);
	wf_base_pool_fini(&ep->tx_pool);
	wf_base_pool_fini(&ep->remote_pool);
	wf_shm_watch_close(&ep->watch);
	free(ep->outs);
	free(ep->met);
	wf_shm_guard_drop();
}

static void forked(void *self)
{
	struct wf_shm_ep *ep = self;
	struct wf_list *pos, *tmp;

	for (uint32_t i = 0; i < ep->watch.count; i++) {
		wf_shm_link_forked_in(ep->watch.ins[i]);
		wf_shm_offer_forked(&ep->watch.ins[i]->offer);
		ep->watch.ins[i]->region.base = NULL;
		ep->watch.ins[i]->ended = true;
		wf_shm_mover_forked(&ep->watch.ins[i]->mover);
	}
	wf_list_for_each (pos, tmp, &ep->all_outs) {
		struct wf_shm_out *out =
			wf_container_of(pos, struct wf_shm_out, link);

		wf_shm_offer_forked(&out->offer);
		wf_shm_link_forked_out(out);
		wf_shm_regs_forked(&out->regs);
		out->region.base = NULL;
		out->slots_free = 0;
		wf_shm_mover_forked(&out->mover);
		wf_shm_window_forked(out);
	}
	ep->out_count = 0;
	wf_base_stats_forked(&ep->stats);
	wf_shm_guest_forked(ep);
	wf_shm_letter_forked(ep);
}

/* -- progress -------------------------------------------------------------- */

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
	ep->starved = false;
	wf_list_for_each (pos, tmp, &ep->pending_outs)
		wf_shm_out_push(
			wf_container_of(pos, struct wf_shm_out, pending_link));
}

/* Whether there is more to do than to look at rings. */
static bool has_slow_work(const struct wf_shm_ep *ep)
{
	return !wf_base_list_empty(&ep->busy_ins) ||
	       !wf_base_list_empty(&ep->waiting_outs) ||
	       !wf_base_list_empty(&ep->pending_outs) || ep->reap ||
	       ep->draining || ep->settling;
}

/* The channel whose replies are all that is waited for, or NULL. */
static struct wf_shm_out *asked_alone(const struct wf_shm_ep *ep)
{
	struct wf_list *first = ep->waiting_outs.next;
	struct wf_shm_out *out =
		wf_container_of(first, struct wf_shm_out, waiting_link);

	if (wf_base_list_empty(&ep->waiting_outs) ||
	    first->next != &ep->waiting_outs || out->sharing ||
	    out->state != WF_SHM_OUT_OPEN ||
	    !wf_base_list_empty(&ep->busy_ins) ||
	    !wf_base_list_empty(&ep->letters) ||
	    !wf_base_list_empty(&ep->pending_outs) || ep->reap ||
	    ep->draining || ep->settling || ep->watch.watched > 1 ||
	    ep->host->names.changes)
		return NULL;
	return out;
}

static __attribute__((noinline)) void work(struct wf_shm_ep *ep)
{
	if (!wf_base_list_empty(&ep->busy_ins))
		poll_busy(ep);
	if (!wf_base_list_empty(&ep->waiting_outs) ||
	    !wf_base_list_empty(&ep->pending_outs))
		poll_outs(ep);
	if (wf_unlikely(ep->reap || ep->draining || ep->settling))
		wf_shm_channels_reap(ep);
	wf_shm_ep_busy(ep);
	ep->host->asked = asked_alone(ep);
}

/* The messages in a ring may come after a letter that finds no room. No ring is
 * looked at before the letter is delivered: another thread may read the
 * completion queue at any time, and the room would go to the ring. */
static __attribute__((noinline)) bool letters_wait(struct wf_shm_ep *ep)
{
	wf_shm_letter_deliver(ep);
	return !wf_base_list_empty(&ep->letters);
}

static enum wf_polled shm_poll(void *self)
{
	struct wf_shm_ep *ep = self;
	const struct wf_shm_watch *watch = &ep->watch;
	bool wait = wf_unlikely(!wf_base_list_empty(&ep->letters)) &&
		    letters_wait(ep);

	if (wf_likely(!wait))
		wf_shm_watch_poll(&ep->watch);
	if (wait || has_slow_work(ep))
		work(ep);
	else
		ep->host->only =
			watch->watched == 1 && !ep->host->names.changes ?
				watch->ins[0] :
				NULL;
	return WF_POLLED_WAITING;
}

/* While events are recorded there is no short way: the trace is to show what
 * each poll takes. */
static enum wf_polled traced_poll(void *self)
{
	struct wf_shm_ep *ep = self;
	bool rung = wf_shm_watch_has_rung(&ep->watch);
	enum wf_polled polled = shm_poll(ep);

	wf_shm_trace_taken(ep, rung);
	wf_shm_ep_busy(ep);
	return polled;
}

static void tick(void *self, uint64_t now)
{
	struct wf_shm_ep *ep = self;
	struct wf_shm_watch *watch = &ep->watch;
	uint32_t mark = watch->watched ? watch->ins[watch->hot]->next : 0;

	if (mark != ep->quiet_mark || watch->heard)
		wf_transport_host_active(ep->host);
	ep->quiet_mark = mark;
	watch->heard = false;
	wf_shm_watch_tick(&ep->watch, now);
}

static uint64_t look(void *self, uint64_t now)
{
	struct wf_shm_ep *ep = self;

	wf_shm_guest_tend(ep, now);
	wf_shm_conn_tend(ep, now);
	if (wf_unlikely(ep->unwoken))
		wf_shm_link_wake_again(ep);
	/* Those for which there was no memory before. */
	if (wf_unlikely(ep->watch.distrusted))
		wf_shm_offer_open_all(ep);
	wf_shm_stats_flush(ep);
	return ep->connecting || now < ep->lively_until ?
		       LOOK_EVERY_CONNECTING :
		       UINT64_MAX;
}

static void waits(void *self, struct wf_waits *to, uint64_t now)
{
	wf_shm_waits(self, to, now);
}

static bool has_peers(const void *self)
{
	const struct wf_shm_ep *ep = self;

	return ep->watch.count;
}

/* -- peers ----------------------------------------------------------------- */

/* Most peers of a node have our own IP address. For others the kernel is asked,
 * which takes four calls. */
static bool has_our_ip(const struct wf_shm_ep *ep, const struct wf_addr *addr)
{
	struct wf_addr own = ep->host->addr;

	if (!ep->addr_is_local || wf_base_addr_is_efa(addr))
		return false;
	wf_base_addr_set_port(&own, wf_base_addr_port(addr));
	return wf_base_addr_equal(&own, addr) &&
	       !wf_shm_name_is_elsewhere(&ep->attr.home, addr);
}

static int reaches(const void *self, const struct wf_addr *addr)
{
	const struct wf_shm_ep *ep = self;

	if (ep->attr.refuses)
		return 0;
	if (has_our_ip(ep, addr))
		return 1;
	return wf_shm_name_reaches(&ep->attr.home, ep->attr.allow_uid, addr);
}

static int submit(void *self, uint64_t dst, const struct wf_tx *tx)
{
	return wf_shm_channels_submit(self, dst, tx);
}

static void inserted(void *self, uint64_t name, const struct wf_addr *addr,
		     bool taken)
{
	(void)taken;
	wf_shm_channels_inserted(self, name, addr);
}

static void removed(void *self, uint64_t name)
{
	wf_shm_channels_removed(self, name);
}

static void renamed(void *self)
{
	wf_shm_channels_renamed(self);
}

static bool doze(void *self, uint64_t *deadline)
{
	(void)deadline;
	return wf_shm_doze_begin(self);
}

static bool has_work(void *self, uint64_t *deadline)
{
	return wf_shm_doze_has_work(self, deadline);
}

static void wake(void *self)
{
	wf_shm_doze_end(self);
}

static const struct wf_transport *trace(void *self, bool on)
{
	wf_shm_trace_turn(self, on);
	return on ? &traced_transport : &wf_shm_transport;
}

/* Both tables, which differ in how they poll. */
#define TABLE(poll_with)                                                       \
	{                                                                      \
		.name = "memory", .linger_ns = LINGER, .close = shm_close,     \
		.forked = forked, .reaches = reaches, .submit = submit,        \
		.has_peers = has_peers, .poll = poll_with, .tick = tick,       \
		.look = look, .waits = waits, .trace = trace, .drain = drain,  \
		.doze = doze, .has_work = has_work, .wake = wake,              \
		.inserted = inserted, .removed = removed, .renamed = renamed,  \
	}

static const struct wf_transport traced_transport = TABLE(traced_poll);

const struct wf_transport wf_shm_transport = TABLE(shm_poll);
