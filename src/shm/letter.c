/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending, keeping and delivering letters.
 */
#include "shm/letter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "op/iov.h"
#include "os/file.h"
#include "os/socket.h"
#include "shm/channels.h"
#include "shm/conn.h"
#include "shm/conn_defs.h"
#include "shm/early.h"
#include "shm/ep.h"
#include "shm/guest.h"
#include "shm/mover.h"
#include "shm/trace.h"
#include "shm/tx.h"

/* Letters that were read and not delivered: each holds a descriptor. */
#define KEPT_MAX 64

/* After a letter was sent or read there is often an answer, or a hello. */
#define LIVELY_FOR WF_NS_PER_MS

/* One that was read. In ep->letters until it is delivered, then, if it has no
 * receive, in ep->letters_parked. */
struct wf_shm_letter {
	struct wf_ux ux;
	struct wf_list link;
	int fd; /* of the sender, which waits for the answer; -1: it has it */
	bool ours; /* the sender is of our user */
	bool tagged;
	struct wf_addr addr;
	uint8_t payload[WF_SHM_LETTER_MAX];
};

static const struct wf_ux_ops letter_ops;

/* -- the sender ------------------------------------------------------------ */

static struct wf_shm_tx *only_one(const struct wf_shm_out *out)
{
	const struct wf_list *first = out->pending.next;

	if (first == &out->pending || first->next != &out->pending)
		return NULL;
	return wf_container_of(out->pending.next, struct wf_shm_tx, link);
}

bool wf_shm_letter_suits(const struct wf_shm_out *out)
{
	const struct wf_shm_tx *tx = only_one(out);
	const struct wf_shm_ep *ep = out->ep;

	return tx && out->dst < ep->out_count && !ep->met[out->dst] &&
	       wf_shm_early_may(tx) && tx->req->len <= WF_SHM_LETTER_MAX;
}

int wf_shm_letter_send(struct wf_shm_out *out)
{
	struct wf_shm_tx *tx = only_one(out);
	const struct wf_tx *req = tx->req;
	struct wf_shm_ep *ep = out->ep;
	const struct wf_addr *own = &ep->host->addr;
	struct {
		struct wf_shm_letter_head head;
		uint8_t payload[WF_SHM_LETTER_MAX];
	} letter = {
		.head = {
			.greeting = {
				.magic = WF_SHM_MAGIC,
				.layout = WF_SHM_LAYOUT,
				.size = sizeof(letter.head),
				.features = wf_shm_conn_features(ep) |
					    WF_SHM_GREETING_LETTER,
			},
			.tag = req->tag,
			.data = req->data,
			.len = (uint32_t)req->len,
			.flags = tx->slot_flags,
		},
	};
	ssize_t sent;

	memcpy(letter.head.addr, own, wf_base_addr_len(own));
	wf_op_iov_gather(req->iov, req->iov_count, 0, letter.payload, req->len);
	out->room = wf_shm_letter_reserve();
	if (!out->room)
		return -ENOMEM;
	sent = wf_os_send(out->sock.fd, &letter, sizeof(letter.head) + req->len,
			  0);
	if (sent < 0) {
		wf_shm_letter_unreserve(&out->room);
		return (int)sent;
	}
	ep->met[out->dst] = true;
	out->early = tx;
	out->letter = true;
	wf_shm_stats_add(&ep->stats, WF_SHM_STAT_letters_out, 1);
	wf_shm_stats_add(&ep->stats, WF_SHM_STAT_sent_inline, 1);
	wf_shm_stats_add(&ep->stats, WF_SHM_STAT_sent_inline_bytes, req->len);
	if (wf_unlikely(ep->host->trace))
		wf_shm_trace_letter(out, req->tag, req->len);
	return 0;
}

int wf_shm_letter_socket(struct wf_shm_out *out)
{
	struct wf_shm_ep *ep = out->ep;
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->letters) {
		struct wf_shm_letter *letter =
			wf_container_of(pos, struct wf_shm_letter, link);
		int fd = letter->fd;

		if (fd < 0 || !letter->ours ||
		    !wf_shm_channels_is_meant(ep, &letter->addr, &out->addr))
			continue;
		letter->fd = -1;
		return fd;
	}
	return -ENOENT;
}

int wf_shm_letter_answered(struct wf_shm_out *out,
			   const struct wf_shm_letter_head *head, size_t got,
			   uint64_t now)
{
	struct wf_addr addr;
	int err = wf_shm_letter_check(head, got);

	if (!err && wf_base_addr_set(&addr, head->addr, sizeof(head->addr)))
		err = EPROTO;
	if (err)
		return err;
	wf_shm_letter_keep(out->ep, &out->room, out->sock.fd, &addr, true,
			   head);
	wf_transport_loop_remove(&out->ep->host->loop, &out->sock);
	out->sock.fd = -1;
	wf_shm_letter_was_read(out, now);
	return 0;
}

void wf_shm_letter_was_read(struct wf_shm_out *out, uint64_t now)
{
	struct wf_shm_ep *ep = out->ep;

	out->letter = false;
	wf_shm_letter_unreserve(&out->room);
	wf_shm_early_end(out);
	wf_shm_conn_drop(ep, &out->sock);
	ep->lively_until = now + LIVELY_FOR;
	if (wf_base_list_empty(&out->pending)) {
		out->done = true;
		wf_shm_out_mark_dead(out, 0, false);
		return;
	}
	out->state = WF_SHM_OUT_CONNECTING;
	out->since = now;
	out->deadline = now + ep->attr.connect_timeout_ms * WF_NS_PER_MS;
	out->warned = false;
	out->retry_at = now; /* at the end of this look */
	ep->tend_at = 0;
}

/* -- the receiver ---------------------------------------------------------- */

int wf_shm_letter_check(const struct wf_shm_letter_head *head, size_t got)
{
	if (got < sizeof(*head) || head->len > WF_SHM_LETTER_MAX ||
	    got != sizeof(*head) + head->len)
		return EPROTO;
	if (head->flags & ~(uint32_t)(WF_SHM_SLOT_TAGGED | WF_SHM_SLOT_DATA))
		return EPROTO;
	return 0;
}

struct wf_shm_letter *wf_shm_letter_reserve(void)
{
	return malloc(sizeof(struct wf_shm_letter));
}

void wf_shm_letter_unreserve(struct wf_shm_letter **room)
{
	free(*room);
	*room = NULL;
}

void wf_shm_letter_keep(struct wf_shm_ep *ep, struct wf_shm_letter **room,
			int fd, const struct wf_addr *addr, bool ours,
			const struct wf_shm_letter_head *head)
{
	struct wf_shm_letter *letter = *room;

	*room = NULL;
	*letter = (struct wf_shm_letter){
		.ux = {
			.ops = &letter_ops,
			.rxq = ep->rxq,
			.owner = ep,
			.data = head->data,
			.flags = head->flags & WF_SHM_SLOT_DATA ?
					 FI_REMOTE_CQ_DATA :
					 0,
			.len = head->len,
		},
		.fd = fd,
		.ours = ours,
		.tagged = head->flags & WF_SHM_SLOT_TAGGED,
		.addr = *addr,
	};
	letter->ux.tag = letter->tagged ? head->tag : 0;
	memcpy(letter->payload, head + 1, head->len);
	wf_base_list_add_tail(&ep->letters, &letter->link);
	ep->letter_count++;
	ep->lively_until = wf_base_clock_ns() + LIVELY_FOR;
	wf_transport_host_active(ep->host);
	wf_shm_ep_busy(ep);
	wf_transport_host_wake(ep->host);
}

bool wf_shm_letter_is_full(const struct wf_shm_ep *ep)
{
	return ep->letter_count >= KEPT_MAX;
}

/* Hands @letter to its receive. */
static void finish(struct wf_shm_letter *letter, struct wf_rxq *rxq,
		   struct wf_rx *rx)
{
	const struct wf_envelope env = {
		.tag = letter->ux.tag,
		.data = letter->ux.data,
		.src = letter->ux.src,
		.flags = letter->ux.flags,
		.len = letter->ux.len,
	};
	size_t len = env.len < rx->len ? env.len : rx->len;

	wf_op_iov_scatter(rx->iov, rx->iov_count, 0, letter->payload, len);
	wf_match_rxq_done(rxq, rx, &env);
	wf_base_list_del(&letter->link);
	free(letter);
}

static void deliver(struct wf_ux *ux, struct wf_rx *rx)
{
	finish(wf_container_of(ux, struct wf_shm_letter, ux), ux->rxq, rx);
}

static void discard(struct wf_ux *ux)
{
	struct wf_shm_letter *letter =
		wf_container_of(ux, struct wf_shm_letter, ux);

	wf_base_list_del(&letter->link);
	free(letter);
}

/* The sender sees that its letter was read. */
static void close_socket(struct wf_shm_letter *letter)
{
	if (letter->fd >= 0)
		wf_os_close(letter->fd);
	letter->fd = -1;
}

static void deliver_one(struct wf_shm_ep *ep, struct wf_shm_letter *letter)
{
	struct wf_rxq *rxq = ep->rxq;
	struct wf_ux *ux = &letter->ux;
	struct wf_rx *rx;

	wf_shm_stats_add(&ep->stats, WF_SHM_STAT_letters_in, 1);
	wf_shm_stats_add(&ep->stats, WF_SHM_STAT_received_inline, 1);
	wf_shm_stats_add(&ep->stats, WF_SHM_STAT_received_inline_bytes,
			 ux->len);
	if (wf_unlikely(ep->host->trace))
		wf_shm_trace_letter_taken(ep, &letter->addr);
	ep->letter_count--;
	close_socket(letter);
	ux->src = wf_shm_channels_name(ep, &letter->addr);
	ux->compq = rxq->compq;
	ux->cntr = rxq->cntr;
	ux->reports_all = rxq->reports_all;
	rx = wf_match_rxq_take(rxq, letter->tagged, ux->tag, ux->src, ux->len);
	if (rx) {
		finish(letter, rxq, rx);
		return;
	}
	wf_base_list_del(&letter->link);
	wf_base_list_add_tail(&ep->letters_parked, &letter->link);
	wf_match_park(wf_match_rxq_of(rxq, letter->tagged), ux);
}

void wf_shm_letter_deliver(struct wf_shm_ep *ep)
{
	while (!wf_base_list_empty(&ep->letters) &&
	       wf_op_compq_room(ep->rxq->compq))
		deliver_one(ep, wf_container_of(ep->letters.next,
						struct wf_shm_letter, link));
}

/* -- names ------------------------------------------------------------------ */

static void rename_one(struct wf_shm_ep *ep, struct wf_shm_letter *letter,
		       uint64_t src)
{
	if (letter->ux.src == src)
		return;
	letter->ux.src = src;
	wf_match_ux_renamed(wf_match_rxq_of(ep->rxq, letter->tagged));
}

void wf_shm_letter_inserted(struct wf_shm_ep *ep, uint64_t name,
			    const struct wf_addr *addr)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->letters_parked) {
		struct wf_shm_letter *letter =
			wf_container_of(pos, struct wf_shm_letter, link);

		if (wf_shm_channels_is_meant(ep, &letter->addr, addr))
			rename_one(ep, letter, name);
	}
}

void wf_shm_letter_removed(struct wf_shm_ep *ep, uint64_t name)
{
	struct wf_list *pos, *tmp;

	/* Another peer may get the name. */
	if (name < ep->out_count)
		ep->met[name] = false;
	wf_list_for_each (pos, tmp, &ep->letters_parked) {
		struct wf_shm_letter *letter =
			wf_container_of(pos, struct wf_shm_letter, link);

		if (letter->ux.src == name)
			rename_one(ep, letter, WF_MATCH_ANY);
	}
}

void wf_shm_letter_renamed(struct wf_shm_ep *ep)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->letters_parked) {
		struct wf_shm_letter *letter =
			wf_container_of(pos, struct wf_shm_letter, link);

		rename_one(ep, letter, wf_shm_channels_name(ep, &letter->addr));
	}
}

/* -- the end ---------------------------------------------------------------- */

void wf_shm_letter_close(struct wf_shm_ep *ep)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->letters) {
		struct wf_shm_letter *letter =
			wf_container_of(pos, struct wf_shm_letter, link);

		/* As if it had not been read: it goes to the endpoint that has
		 * the address next, or fails. Without an answer it would count
		 * as read. */
		if (letter->fd >= 0)
			wf_shm_guest_refuse(ep, letter->fd, ECONNRESET);
		close_socket(letter);
		wf_base_list_del(pos);
		free(letter);
	}
	ep->letter_count = 0;
	/* The matcher discards them. */
	wf_list_for_each (pos, tmp, &ep->letters_parked)
		wf_base_list_del(pos);
}

void wf_shm_letter_forked(struct wf_shm_ep *ep)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->letters) {
		close_socket(wf_container_of(pos, struct wf_shm_letter, link));
	}
}

static const struct wf_ux_ops letter_ops = {
	.deliver = deliver,
	.discard = discard,
};
