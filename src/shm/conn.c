/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects to other endpoints of the node.
 */
#include "shm/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"
#include "os/file.h"
#include "os/socket.h"
#include "shm/channels.h"
#include "shm/conn_defs.h"
#include "shm/early.h"
#include "shm/ep.h"
#include "shm/letter.h"
#include "shm/link.h"
#include "shm/name.h"
#include "shm/offer.h"
#include "shm/silence.h"
#include "shm/user.h"

/* Time between two tries to connect if nobody listens yet or a resource is
 * short: doubles from the first value to the last. */
#define RETRY_FIRST WF_NS_PER_MS
#define RETRY_LAST (32 * WF_NS_PER_MS)

/* For so long after ETOOMANYREFS, hellos have one descriptor instead of two or three. */
#define SCARCE_FOR WF_NS_PER_S

/* After so long without an answer from a peer we log one line. */
#define WARN_AFTER (2 * WF_NS_PER_S)

int wf_shm_conn_watch(struct wf_shm_ep *ep, struct wf_source *sock)
{
	return wf_transport_loop_add(&ep->host->loop, sock);
}

void wf_shm_conn_drop(struct wf_shm_ep *ep, struct wf_source *sock)
{
	wf_transport_loop_drop(&ep->host->loop, sock);
}

/* -- connecting ------------------------------------------------------------ */

uint32_t wf_shm_conn_features(const struct wf_shm_ep *ep)
{
	return ep->host->joined ? WF_SHM_FEATURES :
				  WF_SHM_FEATURES & ~WF_SHM_FEATURE_BARRIER;
}

/* If the peer's build has no guard pages, nothing proves that the pid is still
 * that peer. */
bool wf_shm_conn_may_copy(const struct wf_shm_ep *ep, uint32_t features)
{
	return ep->attr.cma && (features & WF_SHM_FEATURE_GUARD);
}

uint32_t wf_shm_conn_flags(const struct wf_shm_ep *ep)
{
	return (ep->remote_writes ? WF_SHM_WELCOME_WRITES : 0) |
	       (ep->remote_reads ? WF_SHM_WELCOME_READS : 0) |
	       (ep->host->is_target ? 0 : WF_SHM_WELCOME_NO_TABLE);
}

static int say_hello(struct wf_shm_out *out, int memfd)
{
	const struct wf_shm_ep_attr *attr = &out->ep->attr;
	const struct wf_addr *own = &out->ep->host->addr;
	struct wf_shm_hello hello = {
		.greeting = {
			.magic = WF_SHM_MAGIC,
			.layout = WF_SHM_LAYOUT,
			.size = sizeof(hello),
			.features = wf_shm_conn_features(out->ep),
		},
		.slots_log2 = attr->slots_log2,
		.lines_log2 = attr->lines_log2,
	};
	int fds[WF_SHM_HELLO_FDS] = { memfd };
	unsigned int count;

	static_assert(sizeof(struct sockaddr_in6) <= sizeof(hello.addr),
		      "both families fit");
	wf_shm_mover_own_probe(&hello.probe_addr, &hello.probe_value);
	hello.process = hello.probe_value;
	memcpy(hello.addr, own, wf_base_addr_len(own));
	count = wf_shm_offer_describe(out, &hello, fds, 1);
	return wf_base_fds_send(out->sock.fd, &hello, sizeof(hello), fds,
				count);
}

/* Creates the ring and passes it to the peer. The socket is watched before: once
 * the peer has the hello, it may answer and use what it offers. */
static int greet(struct wf_shm_out *out, uint64_t now)
{
	const struct wf_shm_ep_attr *attr = &out->ep->attr;
	int memfd, err;
	bool ours;

	err = wf_shm_user_check(attr->allow_uid, out->sock.fd, &out->listener,
				&ours);
	if (err)
		return err;
	err = wf_shm_conn_watch(out->ep, &out->sock);
	if (err)
		return err;
	if (ours && wf_shm_letter_suits(out))
		return wf_shm_letter_send(out);
	/* An offer takes more descriptors. */
	err = wf_shm_offer_create(out, ours && now >= out->ep->scarce_until,
				  &memfd);
	if (err)
		return err;
	wf_shm_early_begin(out);
	err = say_hello(out, memfd);
	wf_os_close(memfd);
	if (err) {
		out->early = NULL;
		wf_shm_offer_withdraw(out);
		wf_shm_region_unmap(&out->region);
	}
	return err;
}

static void hang_up(struct wf_shm_out *out)
{
	wf_shm_conn_drop(out->ep, &out->sock);
}

static void give_up(struct wf_shm_out *out, int err, uint64_t now)
{
	char text[WF_ADDR_STR_LEN];

	wf_warn("no way to %s through shared memory, given up after %llu ms: "
		"%s",
		wf_base_addr_str(&out->addr, text, sizeof(text)),
		(unsigned long long)((now - out->since) / WF_NS_PER_MS),
		strerror(err));
	if (!out->err_is_theirs)
		wf_shm_silence_failed(out->ep, err, now - out->since);
	wf_shm_out_mark_dead(out, err, !out->gone);
}

bool wf_shm_conn_passes(int err)
{
	switch (err) {
	case ECONNREFUSED: /* nobody listens yet */
	case EAGAIN:	   /* its backlog is full */
	case EPIPE:	   /* our hello came too late, or the peer is closing */
	case ECONNRESET:
	case ENOMEM:
	case ENOSPC:
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ETOOMANYREFS:
		return true;
	default:
		return false;
	}
}

/* The error of an operation at the connect time-out: that of the last try, if
 * it says more than that nobody answered. */
static int unanswered(int err)
{
	return !err || err == ECONNREFUSED || err == EAGAIN ? EHOSTUNREACH :
							      err;
}

/* The connect time-out and the time that a peer may take to answer. */
static uint64_t last_end(const struct wf_shm_out *out)
{
	const struct wf_shm_ep_attr *attr = &out->ep->attr;

	return out->since + attr->connect_timeout_ms * WF_NS_PER_MS +
	       attr->dead_timeout_s * WF_NS_PER_S;
}

/* When a channel that does not get through is given up. Too many descriptors of
 * this user are in flight: the peer is there, and some process that computes has
 * not read its hellos yet. It has as much time as if they were ours. */
static uint64_t end_of(const struct wf_shm_out *out)
{
	return out->err == ETOOMANYREFS ? last_end(out) : out->deadline;
}

/* Tries again later, or gives up at the connect time-out. @theirs: the peer
 * refused with @err. */
static void retry(struct wf_shm_out *out, int err, bool theirs, uint64_t now)
{
	uint64_t wait = out->retry_wait ? out->retry_wait * 2 : RETRY_FIRST;

	out->ep->tend_at = 0;
	out->state = WF_SHM_OUT_CONNECTING;
	out->err = err;
	out->err_is_theirs = theirs;
	out->retry_wait = wait < RETRY_LAST ? wait : RETRY_LAST;
	out->retry_at = now + out->retry_wait;
	if (!theirs)
		wf_shm_channels_spare_fds(out->ep, err, now);
	if (err == ETOOMANYREFS)
		out->ep->scarce_until = now + SCARCE_FOR;
	/* The peer does not keep a connection without a hello for ever. */
	else if ((err == EPIPE || err == ECONNRESET) &&
		 now < out->ep->scarce_until)
		out->err = ETOOMANYREFS;
	if (now >= end_of(out))
		give_up(out, unanswered(err), now);
}

/* The next hello goes by the same socket: a peer that computes accepts nobody,
 * and each connection takes a place at its listener. */
static void stay_connected(struct wf_shm_out *out)
{
	wf_transport_loop_remove(&out->ep->host->loop, &out->sock);
}

void wf_shm_conn_try(struct wf_shm_out *out, uint64_t now)
{
	int err = out->sock.fd;

	out->ep->tend_at = 0;
	if (err < 0 && wf_shm_letter_suits(out))
		err = wf_shm_letter_socket(out);
	if (err < 0)
		err = wf_shm_name_connect(&out->ep->attr.home, &out->addr);
	if (err >= 0) {
		out->sock.fd = err;
		err = greet(out, now);
		if (!err) {
			out->state = WF_SHM_OUT_GREETED;
			out->greeted = now;
			out->cut = false;
			return;
		}
		if (err == -ETOOMANYREFS)
			stay_connected(out);
		else
			hang_up(out);
	}
	if (wf_shm_conn_passes(-err))
		retry(out, -err, false, now);
	else
		give_up(out, -err, now);
}

/* The peer closed the socket before it answered, or has no room for us now. The
 * connect time-out does not include the time that a peer took for that, up to
 * the dead time-out in all; without that limit a peer that does the same every
 * time would never fail. */
static void start_over(struct wf_shm_out *out, int err, bool theirs,
		       uint64_t now)
{
	uint64_t last = last_end(out);

	out->deadline += now - out->greeted;
	if (out->deadline > last)
		out->deadline = last;
	if (!wf_shm_offer_close(out)) {
		/* No memory for what the peer may have sent: reap_outs() tries
		 * again, and this channel ends with it. */
		wf_shm_out_mark_dead(out, err, false);
		return;
	}
	wf_shm_out_release(out);
	out->letter = false;
	if (out->gone)
		wf_shm_out_mark_dead(out, err, false);
	else
		retry(out, err, theirs, now);
}

/* A process that has our hello but computes does not answer, and is not dead:
 * if it died, the socket would end. It gets as much time as a peer on another
 * node. */
static uint64_t dead_at(const struct wf_shm_out *out)
{
	return out->greeted + out->ep->attr.dead_timeout_s * WF_NS_PER_S;
}

/* While descriptors of ours are missing, another try must fail first. */
static bool may_warn(const struct wf_shm_out *out)
{
	return !out->warned && !wf_shm_silence_is_ours(out);
}

static void tell_silence(struct wf_shm_out *out, uint64_t now)
{
	uint64_t end =
		out->state == WF_SHM_OUT_GREETED ? dead_at(out) : end_of(out);

	out->warned = true;
	wf_shm_silence_tell(out, WARN_AFTER, end > now ? end - now : 0);
}

uint64_t wf_shm_conn_next(const struct wf_shm_ep *ep)
{
	const struct wf_list *pos;
	uint64_t next = UINT64_MAX;

	for (pos = ep->all_outs.next; pos != &ep->all_outs; pos = pos->next) {
		const struct wf_shm_out *out =
			wf_container_of(pos, struct wf_shm_out, link);
		uint64_t at;

		if (out->state == WF_SHM_OUT_CONNECTING)
			at = out->retry_at;
		else if (out->state == WF_SHM_OUT_GREETED)
			at = dead_at(out);
		else
			continue;
		if (may_warn(out) && out->since + WARN_AFTER < at)
			at = out->since + WARN_AFTER;
		next = at < next ? at : next;
	}
	return next;
}

/* Checks the welcome. 0, or the positive errno of the refusal. */
static int check_welcome(const struct wf_shm_welcome *welcome, ssize_t got)
{
	const struct wf_shm_greeting *greeting = &welcome->greeting;

	if (got < (ssize_t)sizeof(*greeting) || greeting->status < 0 ||
	    greeting->status > WF_COMP_ERR_MAX ||
	    greeting->magic != WF_SHM_MAGIC)
		return EPROTO;
	if (!greeting->status && (greeting->layout != WF_SHM_LAYOUT ||
				  got < (ssize_t)sizeof(*welcome)))
		return EPROTO;
	return greeting->status;
}

static int map_welcome(struct wf_shm_out *out, int *fds, bool cut)
{
	int err;

	if (cut)
		return EMFILE;
	err = wf_shm_board_map(&out->board, fds[0]);
	if (!err && !(out->remote_flags & WF_SHM_WELCOME_NO_TABLE))
		err = wf_shm_regs_take(&out->regs, &fds[1]);
	return -err;
}

void wf_shm_conn_count_refusal(struct wf_shm_ep *ep,
			       const struct wf_shm_mover *mover)
{
	if (ep->attr.cma && mover->way == WF_SHM_WAY_NONE)
		wf_shm_stats_add(&ep->stats, WF_SHM_STAT_cma_refused, 1);
}

/* The part of a welcome that the second channel of an offer needs as well. */
static void take_welcome(struct wf_shm_out *out,
			 const struct wf_shm_welcome *welcome)
{
	out->features = welcome->greeting.features & WF_SHM_FEATURES;
	wf_shm_mover_open(&out->mover, out->listener.pid, welcome->process,
			  welcome->probe_addr, welcome->probe_value,
			  wf_shm_conn_may_copy(out->ep, out->features));
	wf_shm_conn_count_refusal(out->ep, &out->mover);
	out->bell = welcome->bell;
	out->number = welcome->number;
	out->remote_flags = welcome->flags;
	if (!(out->features & WF_SHM_FEATURE_BARRIER))
		out->ep->host->all_joined = false;
}

static void on_welcome(struct wf_shm_out *out, uint64_t now)
{
	union {
		struct wf_shm_welcome welcome;
		struct wf_shm_letter_head letter;
		uint8_t room[WF_SHM_LETTER_ROOM];
	} said = { .room = { 0 } };
	const struct wf_shm_welcome *welcome = &said.welcome;
	int fds[WF_SHM_WELCOME_FDS];
	ssize_t got;
	bool cut, theirs;
	int status;

	got = wf_base_fds_recv(out->sock.fd, &said, sizeof(said), fds,
			       WF_SHM_WELCOME_FDS, &cut);
	if (got == -EAGAIN)
		return;
	if (got <= 0) {
		/* The peer has no welcome, and will not use the offer. */
		wf_shm_offer_withdraw(out);
		if (!got && out->letter && !out->cut)
			wf_shm_letter_was_read(out, now);
		else if (!out->cut)
			start_over(out, ECONNRESET, true, now);
		goto close_fds;
	}
	status = check_welcome(welcome, got);
	theirs = status;
	if (!status && out->letter) {
		/* Without a ring, there is nothing to welcome. */
		status = welcome->greeting.features & WF_SHM_GREETING_LETTER ?
				 wf_shm_letter_answered(out, &said.letter,
							(size_t)got, now) :
				 EPROTO;
		if (!status)
			goto close_fds;
	}
	if (status || welcome->declines)
		wf_shm_offer_withdraw(out);
	if (!status) {
		/* The peer reads the ring, even if we fail below. */
		wf_shm_early_end(out);
		take_welcome(out, welcome);
		status = map_welcome(out, fds, cut);
	}
	if (wf_shm_conn_passes(status)) {
		start_over(out, status, theirs, now);
		goto close_fds;
	}
	if (status) {
		if (status == EACCES)
			wf_shm_user_refused(&out->listener);
		if (status == EOPNOTSUPP)
			wf_warn("the peer takes packets only: FI_WEFT_SHM must "
				"be the same for all processes of a node");
		if (status == EPROTO &&
		    welcome->greeting.layout != WF_SHM_LAYOUT)
			wf_warn("the peer uses ring layout %u, this process %u",
				welcome->greeting.layout, WF_SHM_LAYOUT);
		give_up(out, status, now);
		goto close_fds;
	}
	wf_shm_silence_enough(out->ep);
	wf_shm_out_opened(out);
	wf_shm_link_out_opened(out);
	if (out->ep->watch.distrusted)
		wf_shm_offer_open_all(out->ep);
	if (out->gone)
		wf_shm_out_mark_dead(out, ECANCELED, false);
close_fds:
	wf_base_fds_close(fds, WF_SHM_WELCOME_FDS);
}

void wf_shm_conn_out_ready(struct wf_source *source, uint32_t events,
			   uint64_t now)
{
	struct wf_shm_out *out =
		wf_container_of(source, struct wf_shm_out, sock);

	if (out->state == WF_SHM_OUT_GREETED)
		on_welcome(out, now);
	else
		wf_shm_link_out_ready(out, events);
}

/* A peer that was stopped may answer at this moment, and use the offer at once.
 * After the shutdown it cannot answer; without an answer it does not use it. */
bool wf_shm_conn_cut(struct wf_shm_out *out, uint64_t now)
{
	on_welcome(out, now);
	if (out->state != WF_SHM_OUT_GREETED)
		return true;
	out->cut = true;
	wf_os_shutdown(out->sock.fd, SHUT_RDWR);
	on_welcome(out, now);
	/* The welcome came between the two looks. The socket was shut down, so
	 * the offer ends as if the peer had closed the socket. */
	if (out->state == WF_SHM_OUT_OPEN)
		wf_shm_offer_close(out);
	return out->state != WF_SHM_OUT_GREETED;
}

/* -- at every look ---------------------------------------------------------- */

/* Advances a channel that is not open yet. Every state ends. A hello is not
 * sent twice on a socket, because the socket does not lose it. */
static void tend(struct wf_shm_out *out, uint64_t now)
{
	if (out->state == WF_SHM_OUT_CONNECTING && now >= out->retry_at)
		wf_shm_conn_try(out, now);
	if (out->state == WF_SHM_OUT_GREETED && now >= dead_at(out) &&
	    !wf_shm_conn_cut(out, now))
		give_up(out, ETIMEDOUT, now);
	if (may_warn(out) && now >= out->since + WARN_AFTER &&
	    (out->state == WF_SHM_OUT_CONNECTING ||
	     out->state == WF_SHM_OUT_GREETED))
		tell_silence(out, now);
}

void wf_shm_conn_tend(struct wf_shm_ep *ep, uint64_t now)
{
	struct wf_list *pos, *tmp;

	if (!ep->connecting || now < ep->tend_at)
		return;
	wf_list_for_each (pos, tmp, &ep->all_outs) {
		tend(wf_container_of(pos, struct wf_shm_out, link), now);
	}
	ep->tend_at = wf_shm_conn_next(ep);
}
