/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets of open channels.
 */
#include "shm/link.h"

#include <errno.h>
#include <string.h>

#include "os/file.h"
#include "os/socket.h"
#include "shm/conn.h"
#include "shm/conn_defs.h"
#include "shm/ep.h"
#include "shm/offer.h"

/* At most so many messages are read from a socket at once, because a peer may
 * write faster than we read. */
#define WAKES 32

static bool is_over(int err)
{
	return err && err != -EAGAIN && err != -EINTR;
}

static int tell(int fd, uint32_t kind, uint32_t number)
{
	const struct wf_shm_note note = { .kind = kind, .number = number };
	ssize_t sent = wf_os_send(fd, &note, sizeof(note), MSG_DONTWAIT);

	return sent < 0 ? (int)sent : 0;
}

static void untwin(struct wf_shm_out *out, struct wf_shm_in *in)
{
	out->twin = NULL;
	in->twin = NULL;
}

/* The peer has closed the sending end of @in. Messages that it wrote are still
 * delivered. */
static void end_in(struct wf_shm_in *in)
{
	in->ended = true;
	in->told = true;
	in->ep->reap = true;
	wf_shm_ep_busy(in->ep);
}

/* The peer has closed the receiving end of @out. The channel ends after we have
 * handled the replies that the peer left (channels.c). */
static void end_out(struct wf_shm_out *out)
{
	out->shut = true;
	out->told = true;
	out->ep->reap = true;
	wf_shm_ep_busy(out->ep);
	wf_transport_host_wake(out->ep->host);
}

/* -- becoming twins ---------------------------------------------------------- */

/* Both sides compute the same answer, because each knows the other's
 * address. */
static bool is_lower(const struct wf_shm_ep *ep, const struct wf_shm_in *in)
{
	const struct wf_addr *own = &ep->host->addr, *peer = &in->addr;

	if (own->sa.sa_family != peer->sa.sa_family)
		return own->sa.sa_family < peer->sa.sa_family;
	return memcmp(own, peer, wf_base_addr_len(own)) < 0;
}

static bool may_join(const struct wf_shm_out *out, const struct wf_shm_in *in)
{
	return out->state == WF_SHM_OUT_OPEN && !out->shut && !out->twin &&
	       out->sock.fd >= 0 && !in->twin && in->sock.fd >= 0 &&
	       !in->ended && !in->broken && in->src == out->dst &&
	       !out->offer && !in->offer &&
	       out->mover.process == in->mover.process;
}

/* Sends the request; nothing changes before the answer. The channel that an earlier
 * one named may have ended before the peer could agree. */
static void ask(struct wf_shm_out *out, struct wf_shm_in *in)
{
	if ((in->asked && in->asked_for == out->number) || !may_join(out, in) ||
	    !is_lower(out->ep, in))
		return;
	in->asked = !tell(in->sock.fd, WF_SHM_NOTE_JOIN, out->number);
	in->asked_for = out->number;
}

void wf_shm_link_out_opened(struct wf_shm_out *out)
{
	const struct wf_shm_watch *watch = &out->ep->watch;

	/* A channel that was given up has no fi_addr_t, so it can have no twin. */
	if (out->gone)
		return;
	for (uint32_t i = 0; i < watch->count; i++) {
		if (watch->ins[i]->src == out->dst)
			ask(out, watch->ins[i]);
	}
}

void wf_shm_link_in_opened(struct wf_shm_in *in)
{
	struct wf_shm_out *out = wf_shm_ep_out(in->ep, in->src);

	if (out)
		ask(out, in);
}

static struct wf_shm_in *find_in(const struct wf_shm_ep *ep, uint32_t number)
{
	for (uint32_t i = 0; i < ep->watch.count; i++) {
		if (ep->watch.ins[i]->number == number)
			return ep->watch.ins[i];
	}
	return NULL;
}

/* We connected @out; the peer asks us to use the socket of the ring with the
 * number @number instead. We continue to read the old socket. If we cannot yet,
 * because the ring before that one is still our twin, we do it when it has gone:
 * the peer does not ask twice. */
static void on_join(struct wf_shm_out *out, uint32_t number)
{
	struct wf_shm_in *in = find_in(out->ep, number);

	out->joins = in && !is_lower(out->ep, in);
	out->join = number;
	if (!out->joins || out->old.fd >= 0 || !may_join(out, in) ||
	    tell(out->sock.fd, WF_SHM_NOTE_JOINED, number))
		return;
	out->joins = false;
	wf_transport_loop_move(&out->ep->host->loop, &out->sock, &out->old);
	out->twin = in;
	in->twin = out;
}

/* Something that kept @out from having a twin has gone. An endpoint that closes
 * looks for none: the rings of its list are being freed. */
static void look_for_twin(struct wf_shm_out *out)
{
	if (out->ep->closing)
		return;
	if (out->joins)
		on_join(out, out->join);
	else
		wf_shm_link_out_opened(out);
}

/* The answer may be to an earlier request than the last. */
static void on_joined(struct wf_shm_in *in, uint32_t number)
{
	struct wf_shm_out *out = wf_shm_ep_out(in->ep, in->src);

	if (!in->asked || number != in->asked_for || !out ||
	    out->number != number || !may_join(out, in))
		return;
	wf_shm_conn_drop(in->ep, &in->sock);
	in->asked = false;
	out->twin = in;
	in->twin = out;
}

/* It may arrive before the JOINED that was sent earlier on the other socket, or
 * before we have seen that the peer used an offer. */
static void on_left(struct wf_shm_out *out, struct wf_shm_in *in,
		    uint32_t number)
{
	if (!in && out)
		in = wf_shm_offer_left(out, number);
	if (!in && out)
		in = find_in(out->ep, number);
	if (in && in->number == number &&
	    (!out || in->twin == out ||
	     (in->asked && in->asked_for == out->number)))
		end_in(in);
}

/* Our two channels may share a socket from now on, if there are two. */
static void on_declined(struct wf_shm_out *out, uint32_t number)
{
	if (!out->offer || out->offer->number != number)
		return;
	wf_shm_offer_withdraw(out);
	look_for_twin(out);
}

void wf_shm_link_decline(const struct wf_shm_in *in)
{
	/* If it cannot be sent, the peer keeps the ring. */
	(void)!tell(in->sock.fd, WF_SHM_NOTE_DECLINED, in->offer->number);
}

/* -- waking ------------------------------------------------------------------ */

/* Nobody else wakes the peer: the thread that does it first takes the mark that
 * it sleeps. A full socket would wake it without us, but is not told from one
 * that failed for another reason. */
static void wake(struct wf_shm_ep *ep, int fd, bool *unwoken)
{
	ssize_t sent = wf_os_send(fd, "", 1, MSG_DONTWAIT);

	*unwoken = sent == -EAGAIN || sent == -EINTR || sent == -ENOBUFS ||
		   sent == -ENOMEM;
	if (wf_likely(!*unwoken))
		return;
	ep->unwoken = true;
	wf_transport_host_wake(ep->host);
}

void wf_shm_link_wake_receiver(struct wf_shm_out *out)
{
	wake(out->ep, wf_shm_link_out_fd(out), &out->unwoken);
}

void wf_shm_link_wake_sender(struct wf_shm_in *in)
{
	wake(in->ep, wf_shm_link_in_fd(in), &in->unwoken);
}

void wf_shm_link_wake_again(struct wf_shm_ep *ep)
{
	const struct wf_shm_watch *watch = &ep->watch;
	struct wf_list *pos, *tmp;

	ep->unwoken = false;
	wf_list_for_each (pos, tmp, &ep->all_outs) {
		struct wf_shm_out *out =
			wf_container_of(pos, struct wf_shm_out, link);

		if (out->unwoken)
			wf_shm_link_wake_receiver(out);
	}
	for (uint32_t i = 0; i < watch->count; i++) {
		if (watch->ins[i]->unwoken)
			wf_shm_link_wake_sender(watch->ins[i]);
	}
}

/* -- what comes -------------------------------------------------------------- */

/* @out or @in is NULL if the socket does not belong to such a channel. */
static void take_note(struct wf_shm_out *out, struct wf_shm_in *in,
		      const struct wf_shm_note *note)
{
	switch (note->kind) {
	case WF_SHM_NOTE_JOIN:
		if (out)
			on_join(out, note->number);
		break;
	case WF_SHM_NOTE_JOINED:
		if (in)
			on_joined(in, note->number);
		break;
	case WF_SHM_NOTE_LEFT:
		on_left(out, in, note->number);
		break;
	case WF_SHM_NOTE_SHUT:
		if (out && out->number == note->number)
			end_out(out);
		break;
	case WF_SHM_NOTE_DECLINED:
		if (out)
			on_declined(out, note->number);
		break;
	default:
		break;
	}
}

/* Reads bytes that wake us, which need no further action here, and notes. After
 * a note @source may no longer be our socket. False: the peer has ended. */
static bool take_words(const struct wf_source *source, struct wf_shm_out *out,
		       struct wf_shm_in *in)
{
	union {
		struct wf_shm_note note;
		char bytes[64];
	} word;
	int fd = source->fd;

	for (int i = 0; i < WAKES && source->fd == fd; i++) {
		ssize_t got = wf_os_recv(fd, &word, sizeof(word), MSG_DONTWAIT);

		if (got <= 0)
			return !is_over(got ? (int)got : -EPIPE);
		if (got == (ssize_t)sizeof(word.note))
			take_note(out, in, &word.note);
	}
	return true;
}

/* The shared socket has ended. The peer had not joined yet, and may still be
 * alive. */
static void return_to_old(struct wf_shm_out *out)
{
	wf_transport_loop_move(&out->ep->host->loop, &out->old, &out->sock);
	look_for_twin(out);
}

void wf_shm_link_out_ready(struct wf_shm_out *out, uint32_t events)
{
	bool over = events & WF_LOOP_OVER;

	/* Read first: notes that were sent before the end count. */
	if (events & EPOLLIN)
		over |= !take_words(&out->sock, out, out->twin);
	if (!over || out->sock.fd < 0)
		return;
	if (out->old.fd >= 0) {
		wf_shm_conn_drop(out->ep, &out->sock);
		return_to_old(out);
		return;
	}
	if (!wf_shm_offer_ended(out))
		return; /* the same if there is no memory */
	if (out->twin)
		end_in(out->twin);
	if (!wf_shm_out_settle(out))
		return; /* level-triggered: called again when there is room */
	out->told = true;
	wf_shm_stats_add(&out->ep->stats, WF_SHM_STAT_peers_lost, 1);
	wf_shm_out_mark_dead(out, ECONNRESET, false);
}

void wf_shm_link_in_ready(struct wf_source *source, uint32_t events,
			  uint64_t now)
{
	struct wf_shm_in *in = wf_container_of(source, struct wf_shm_in, sock);
	struct wf_shm_out *out = in->twin;
	bool over = events & WF_LOOP_OVER;

	(void)now;
	if (events & EPOLLIN)
		over |= !take_words(source, out, in);
	if (!over || in->sock.fd < 0)
		return;
	/* Level-triggered: remove it, or it fires until it is reaped. */
	wf_transport_loop_remove(&in->ep->host->loop, source);
	out = in->twin;
	if (out && out->old.fd >= 0) {
		untwin(out, in);
		return_to_old(out);
	} else if (out) {
		end_out(out);
	}
	end_in(in);
}

void wf_shm_link_old_ready(struct wf_source *source, uint32_t events,
			   uint64_t now)
{
	struct wf_shm_out *out =
		wf_container_of(source, struct wf_shm_out, old);
	bool over = events & WF_LOOP_OVER;

	(void)now;
	if (events & EPOLLIN)
		over |= !take_words(source, out, NULL);
	if (!over)
		return;
	wf_shm_conn_drop(out->ep, source);
	look_for_twin(out);
}

/* -- going ------------------------------------------------------------------- */

void wf_shm_link_drop_out(struct wf_shm_out *out)
{
	struct wf_shm_in *in = out->twin;

	out->joins = false;
	wf_shm_conn_drop(out->ep, &out->old);
	if (!in) {
		wf_shm_conn_drop(out->ep, &out->sock);
		return;
	}
	if (out->sock.fd >= 0)
		wf_transport_loop_move(&out->ep->host->loop, &out->sock,
				       &in->sock);
	untwin(out, in);
	/* The socket is full, so the note cannot be sent: end both channels. */
	if (!out->told &&
	    tell(in->sock.fd, WF_SHM_NOTE_LEFT, out->number) == -EAGAIN)
		end_in(in);
}

void wf_shm_link_drop_in(struct wf_shm_in *in)
{
	struct wf_shm_out *out = in->twin;

	if (!out) {
		wf_shm_conn_drop(in->ep, &in->sock);
		/* The peer may have joined already without our knowing it. */
		out = in->asked ? wf_shm_ep_out(in->ep, in->src) : NULL;
		if (out && out->number == in->asked_for && out->sock.fd >= 0)
			tell(out->sock.fd, WF_SHM_NOTE_SHUT, in->number);
		return;
	}
	if (in->sock.fd >= 0)
		wf_transport_loop_move(&in->ep->host->loop, &in->sock,
				       &out->sock);
	untwin(out, in);
	if (!in->told &&
	    tell(out->sock.fd, WF_SHM_NOTE_SHUT, in->number) == -EAGAIN)
		end_out(out);
	/* The peer may have connected again meanwhile. */
	look_for_twin(out);
}

static void close_copy(struct wf_source *source)
{
	if (source->fd >= 0)
		wf_os_close(source->fd);
	source->fd = -1;
}

void wf_shm_link_forked_out(struct wf_shm_out *out)
{
	close_copy(&out->sock);
	close_copy(&out->old);
	out->twin = NULL;
}

void wf_shm_link_forked_in(struct wf_shm_in *in)
{
	close_copy(&in->sock);
	in->twin = NULL;
	in->asked = false;
}
