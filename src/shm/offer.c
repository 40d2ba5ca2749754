/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making, keeping and using offers.
 */
#include "shm/offer.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "os/memory.h"
#include "os/poll.h"
#include "shm/channels.h"
#include "shm/conn.h"
#include "shm/early.h"
#include "shm/ep.h"
#include "shm/guest.h"
#include "shm/link.h"

/* -- the side that connects -------------------------------------------------- */

/* Each region of a pair is unmapped by itself, so it must consist of pages. The
 * side that uses an offer takes its pages by its mapping: it has no descriptor. */
static bool may_offer(const struct wf_shm_ep *ep)
{
	const struct wf_shm_ep_attr *attr = &ep->attr;

	return ep->populates && !ep->watch.distrusted &&
	       !(wf_shm_region_bytes(attr->slots_log2, attr->lines_log2) %
		 wf_os_page_bytes());
}

static struct wf_shm_offer *reserve(struct wf_shm_out *out)
{
	struct wf_shm_ep *ep = out->ep;
	struct wf_shm_offer *offer = calloc(1, sizeof(*offer));

	if (!offer)
		return NULL;
	offer->board.memfd = -1;
	offer->regs.memfd = -1;
	offer->bell = wf_shm_watch_reserve(&ep->watch, out);
	if (offer->bell == WF_SHM_BELLS) {
		free(offer);
		return NULL;
	}
	offer->number = ++ep->last_number;
	return offer;
}

int wf_shm_offer_create(struct wf_shm_out *out, bool trusted, int *memfd)
{
	struct wf_shm_ep *ep = out->ep;
	const struct wf_shm_ep_attr *attr = &ep->attr;
	struct wf_shm_region pair[2];
	int err;

	out->offer = trusted && may_offer(ep) ? reserve(out) : NULL;
	if (!out->offer)
		return wf_shm_region_create(&out->region, attr->slots_log2,
					    attr->lines_log2, memfd);
	err = wf_shm_region_create_pair(pair, attr->slots_log2,
					attr->lines_log2, memfd);
	if (err) {
		wf_shm_offer_withdraw(out);
		return err;
	}
	out->region = pair[0];
	out->offer->region = pair[1];
	return 0;
}

unsigned int wf_shm_offer_describe(const struct wf_shm_out *out,
				   struct wf_shm_hello *hello, int *fds,
				   unsigned int count)
{
	const struct wf_shm_ep *ep = out->ep;
	const struct wf_shm_offer *offer = out->offer;

	if (!offer)
		return count;
	hello->offers = 1;
	hello->bell = offer->bell;
	hello->number = offer->number;
	hello->flags = wf_shm_conn_flags(ep);
	fds[count++] = ep->board.memfd;
	if (ep->host->is_target)
		fds[count++] = ep->regs->memfd;
	return count;
}

void wf_shm_offer_withdraw(struct wf_shm_out *out)
{
	struct wf_shm_offer *offer = out->offer;

	if (!offer)
		return;
	out->offer = NULL;
	wf_shm_watch_cancel(&out->ep->watch, offer->bell);
	wf_shm_region_unmap(&offer->region);
	free(offer);
}

/* Opens the receiving end of the second channel. @used: only if the peer has
 * written its header; -ENOENT: it has not. */
static int open_in(struct wf_shm_out *out, bool used)
{
	struct wf_shm_ep *ep = out->ep;
	struct wf_shm_offer *offer = out->offer;
	struct wf_shm_in *in;
	int err;

	err = wf_shm_region_accept(&offer->region);
	if (err && (used || (err != -ENOENT && err != -EPROTO)))
		return err;
	in = wf_shm_in_open(ep, &offer->region, -1, &out->addr,
			    wf_shm_channels_name(ep, &out->addr));
	if (!in)
		return -ENOMEM;
	in->number = offer->number;
	in->features = out->features;
	wf_shm_mover_again(&in->mover, &out->mover);
	err = wf_shm_watch_add_reserved(&ep->watch, in, offer->bell);
	if (err) {
		free(in);
		return err;
	}
	in->ended = offer->left;
	in->told = offer->left;
	ep->reap |= offer->left;
	free(offer);
	out->offer = NULL;
	out->twin = in;
	in->twin = out;
	wf_shm_ep_busy(ep);
	return 0;
}

int wf_shm_offer_open(struct wf_shm_out *out)
{
	int err;

	/* The welcome was sent before. */
	if (out->state == WF_SHM_OUT_GREETED)
		wf_shm_conn_out_ready(&out->sock, EPOLLIN, wf_base_clock_ns());
	if (!out->offer || out->state != WF_SHM_OUT_OPEN)
		return -ENOENT;
	/* -ENOENT: a bell that was set for nothing. The peer writes the header
	 * before it sets the bell, so it has not used the offer yet. */
	err = open_in(out, true);
	if (err == -EPROTO) {
		wf_warn("the peer uses a ring with a wrong header");
		wf_shm_offer_withdraw(out);
		wf_shm_out_mark_dead(out, EPROTO, false);
	}
	return err;
}

bool wf_shm_offer_close(struct wf_shm_out *out)
{
	return !out->offer || !open_in(out, false);
}

bool wf_shm_offer_ended(struct wf_shm_out *out)
{
	int err = -ENOENT;

	if (!out->offer)
		return true;
	/* If the peer has used the offer, its message is in the ring, because it
	 * set the bell afterwards. */
	if (out->offer->left ||
	    wf_shm_board_is_rung(out->ep->board.board, out->offer->bell))
		err = wf_shm_offer_open(out);
	if (err == -ENOENT)
		wf_shm_offer_withdraw(out);
	return !out->offer;
}

struct wf_shm_in *wf_shm_offer_left(struct wf_shm_out *out, uint32_t number)
{
	if (!out || !out->offer || out->offer->number != number)
		return NULL;
	out->offer->left = true;
	return wf_shm_offer_open(out) ? NULL : out->twin;
}

void wf_shm_offer_open_all(struct wf_shm_ep *ep)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->all_outs) {
		struct wf_shm_out *out =
			wf_container_of(pos, struct wf_shm_out, link);

		/* Of one that has not answered, later. */
		if (out->offer && out->state == WF_SHM_OUT_OPEN)
			open_in(out, false);
	}
}

/* -- the side that is connected to ------------------------------------------- */

/* Our own rings shall have the size that our user chose. */
static bool is_wanted(const struct wf_shm_in *in,
		      const struct wf_shm_hello *hello)
{
	const struct wf_shm_ep_attr *attr = &in->ep->attr;
	const struct wf_shm_out *out = wf_shm_ep_out(in->ep, in->src);

	return hello->slots_log2 == attr->slots_log2 &&
	       hello->lines_log2 == attr->lines_log2 &&
	       in->src != WF_MATCH_ANY && (!out || out->done);
}

bool wf_shm_offer_keep(struct wf_shm_in *in, const struct wf_shm_hello *hello,
		       const struct wf_shm_region *region, int *fds)
{
	struct wf_shm_offer *offer;

	if (!region->base || !is_wanted(in, hello))
		return false;
	offer = calloc(1, sizeof(*offer));
	if (!offer)
		return false;
	offer->region = *region;
	offer->bell = hello->bell;
	offer->number = hello->number;
	offer->flags = hello->flags;
	offer->regs.memfd = -1;
	if (wf_shm_board_map(&offer->board, fds[1]))
		goto err_free;
	if (!(offer->flags & WF_SHM_WELCOME_NO_TABLE) &&
	    wf_shm_regs_take(&offer->regs, &fds[2]))
		goto err_board;
	in->offer = offer;
	return true;

err_board:
	wf_shm_board_close(&offer->board);
err_free:
	free(offer);
	return false;
}

void wf_shm_offer_forget(struct wf_shm_in *in)
{
	struct wf_shm_offer *offer = in->offer;

	if (!offer)
		return;
	in->offer = NULL;
	wf_shm_region_unmap(&offer->region);
	wf_shm_board_close(&offer->board);
	wf_shm_regs_close(&offer->regs);
	free(offer);
}

/* Whether the process that made the offer is still there. Another one may have
 * its address by now. */
static bool is_alive(const struct wf_shm_in *in)
{
	struct pollfd p = { .fd = in->sock.fd, .events = POLLRDHUP };
	int count;

	if (in->sock.fd < 0 || in->ended || in->broken)
		return false;
	do {
		count = wf_os_poll(&p, 1, 0);
	} while (count == -EINTR);
	return !count;
}

static struct wf_shm_in *find_offer(const struct wf_shm_out *out)
{
	const struct wf_shm_watch *watch = &out->ep->watch;

	for (uint32_t i = 0; i < watch->count; i++) {
		struct wf_shm_in *in = watch->ins[i];

		/* A name that the AV has given away may still be known here. */
		if (in->offer && in->src == out->dst &&
		    wf_shm_channels_is_meant(out->ep, &in->addr, &out->addr))
			return in;
	}
	return NULL;
}

/* Takes the first page of the ring. The peer is told if that fails: as long as
 * its offer stands, our two channels do not share a socket (link.c). */
static bool begin(struct wf_shm_in *in)
{
	if (!is_alive(in))
		return false;
	if (!wf_shm_region_begin(&in->offer->region))
		return true;
	wf_shm_link_decline(in);
	return false;
}

/* There may be more than one: of a process that has ended, and of the one that
 * has its address now. */
static struct wf_shm_in *begin_one(const struct wf_shm_out *out)
{
	struct wf_shm_in *in;

	while ((in = find_offer(out)) && !begin(in))
		wf_shm_offer_forget(in);
	return in;
}

bool wf_shm_offer_use(struct wf_shm_out *out)
{
	struct wf_shm_in *in = begin_one(out);
	struct wf_shm_offer *offer;

	if (!in) {
		wf_shm_guest_accept(out->ep);
		in = begin_one(out);
	}
	if (!in)
		return false;
	offer = in->offer;
	/* The peer does not look at a ring that was never used. */
	wf_shared_store(&offer->region.header->bell_wanted, 1, relaxed);
	out->region = offer->region;
	out->board = offer->board;
	out->regs = offer->regs;
	out->bell = offer->bell;
	out->number = offer->number;
	out->remote_flags = offer->flags;
	out->features = in->features;
	wf_shm_mover_again(&out->mover, &in->mover);
	out->twin = in;
	in->twin = out;
	in->offer = NULL;
	free(offer);
	wf_shm_early_begin(out);
	wf_shm_out_opened(out);
	return true;
}

/* -- both --------------------------------------------------------------------- */

void wf_shm_offer_forked(struct wf_shm_offer **offer)
{
	if (!*offer)
		return;
	(*offer)->region.base = NULL;
	wf_shm_regs_forked(&(*offer)->regs);
}
