/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects two endpoints of a node.
 */
#include "shm/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"
#include "base/users.h"
#include "os/file.h"
#include "os/poll.h"
#include "os/socket.h"
#include "shm/channels.h"
#include "shm/conn_defs.h"
#include "shm/door.h"
#include "shm/early.h"
#include "shm/ep.h"
#include "shm/link.h"
#include "shm/name.h"
#include "shm/offer.h"
#include "shm/silence.h"
#include "shm/user.h"

#define BACKLOG 4096

/* We close a connection on which no hello arrives within this time, and the
 * oldest ones if there are more than GUESTS_MAX: each holds a descriptor of
 * ours. */
#define GUESTS_MAX 64
#define GUEST_PATIENCE (2 * WF_NS_PER_S)

/* Time between two tries to connect if nobody listens yet or a resource is
 * short: doubles from the first value to the last. */
#define RETRY_FIRST WF_NS_PER_MS
#define RETRY_LAST (32 * WF_NS_PER_MS)

/* After so long without an answer from a peer we log one line. */
#define WARN_AFTER (2 * WF_NS_PER_S)

/* If there is no descriptor to accept a connection, the peer waits until we try
 * again after this time. Meanwhile we do not watch the listener: it would
 * always be readable, and the endpoint could not sleep. */
#define DEAF_FOR (10 * WF_NS_PER_MS)

struct guest {
	struct wf_source sock;
	struct wf_shm_ep *ep;
	struct wf_list link;
	uint64_t deadline;
	bool watched; /* in the loop */
};

static void on_listener(struct wf_source *source, uint32_t events,
			uint64_t now);
static void on_door(struct wf_source *source, uint32_t events, uint64_t now);

/* -- the endpoint's sockets ------------------------------------------------- */

int wf_shm_conn_watch(struct wf_shm_ep *ep, struct wf_source *sock)
{
	return wf_transport_loop_add(&ep->host->loop, sock);
}

void wf_shm_conn_drop(struct wf_shm_ep *ep, struct wf_source *sock)
{
	wf_transport_loop_drop(&ep->host->loop, sock);
}

int wf_shm_conn_listen(struct wf_shm_ep *ep)
{
	int err;

	err = ep->attr.name_fd;
	if (err < 0)
		err = wf_shm_name_bind(&ep->host->addr, ep->attr.any_addr);
	if (err < 0)
		return err;
	ep->listener = (struct wf_source){ .fd = err, .ready = on_listener };
	err = wf_os_listen(ep->listener.fd, BACKLOG);
	if (!err)
		err = wf_shm_conn_watch(ep, &ep->listener);
	if (!err)
		err = wf_shm_door_open(ep, on_door);
	if (!err)
		return 0;
	if (ep->listener.fd != ep->attr.name_fd)
		wf_os_close(ep->listener.fd); /* else it stays the caller's */
	ep->listener.fd = -1;
	return err;
}

static void guest_leave(struct wf_shm_ep *ep, struct guest *guest)
{
	wf_base_list_del(&guest->link);
	wf_shm_conn_drop(ep, &guest->sock);
	free(guest);
}

void wf_shm_conn_unlisten(struct wf_shm_ep *ep)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->guests)
		guest_leave(ep, wf_container_of(pos, struct guest, link));
	wf_shm_door_close(ep);
	wf_shm_conn_drop(ep, &ep->listener);
}

void wf_shm_conn_forked(struct wf_shm_ep *ep)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->guests) {
		struct guest *guest = wf_container_of(pos, struct guest, link);

		wf_os_close(guest->sock.fd);
		guest->sock.fd = -1;
	}
	wf_os_close(ep->listener.fd);
	ep->listener.fd = -1;
	wf_shm_door_forked(ep);
}

/* -- connecting ------------------------------------------------------------ */

static uint32_t our_features(const struct wf_shm_ep *ep)
{
	return ep->host->joined ? WF_SHM_FEATURES :
				  WF_SHM_FEATURES & ~WF_SHM_FEATURE_BARRIER;
}

/* If the peer's build has no guard pages, nothing proves that the pid is still
 * that peer. */
static bool may_copy(const struct wf_shm_ep *ep, uint32_t features)
{
	return ep->attr.cma && (features & WF_SHM_FEATURE_GUARD);
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
			.features = our_features(out->ep),
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

/* Creates the ring and passes it to the peer. */
static int greet(struct wf_shm_out *out)
{
	const struct wf_shm_ep_attr *attr = &out->ep->attr;
	struct ucred cred;
	int memfd, err;

	err = wf_shm_user_check(attr->allow_uid, out->sock.fd, &cred);
	if (err)
		return err;
	err = wf_shm_offer_create(out, wf_shm_user_is_ours(cred.uid), &memfd);
	if (err)
		return err;
	wf_shm_early_begin(out);
	err = say_hello(out, memfd);
	wf_os_close(memfd);
	if (!err)
		err = wf_shm_conn_watch(out->ep, &out->sock);
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
	wf_shm_out_mark_dead(out, err, !out->gone);
}

static bool passes(int err)
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

/* Tries again later, or gives up at the connect time-out. */
static void retry(struct wf_shm_out *out, int err, uint64_t now)
{
	uint64_t wait = out->retry_wait ? out->retry_wait * 2 : RETRY_FIRST;

	out->state = WF_SHM_OUT_CONNECTING;
	out->err = err;
	out->retry_wait = wait < RETRY_LAST ? wait : RETRY_LAST;
	out->retry_at = now + out->retry_wait;
	if (now >= out->deadline)
		give_up(out, unanswered(err), now);
}

void wf_shm_conn_try(struct wf_shm_out *out, uint64_t now)
{
	int err;

	err = wf_shm_name_connect(&out->ep->attr.home, &out->addr);
	if (err >= 0) {
		out->sock.fd = err;
		err = greet(out);
		if (!err) {
			out->state = WF_SHM_OUT_GREETED;
			out->greeted = now;
			return;
		}
		hang_up(out);
	}
	if (passes(-err))
		retry(out, -err, now);
	else
		give_up(out, -err, now);
}

/* The peer closed the socket before it answered, or has no room for us now. The
 * connect time-out does not include the time that a peer took for that, up to
 * the dead time-out in all; without that limit a peer that does the same every
 * time would never fail. */
static void start_over(struct wf_shm_out *out, int err, uint64_t now)
{
	const struct wf_shm_ep_attr *attr = &out->ep->attr;
	uint64_t last = out->since + attr->connect_timeout_ms * WF_NS_PER_MS +
			attr->dead_timeout_s * WF_NS_PER_S;

	out->deadline += now - out->greeted;
	if (out->deadline > last)
		out->deadline = last;
	wf_shm_offer_close(out);
	wf_shm_out_release(out);
	if (out->gone)
		wf_shm_out_mark_dead(out, err, false);
	else
		retry(out, err, now);
}

/* A process that has our hello but computes does not answer, and is not dead:
 * if it died, the socket would end. It gets as much time as a peer on another
 * node. */
static uint64_t dead_at(const struct wf_shm_out *out)
{
	return out->greeted + out->ep->attr.dead_timeout_s * WF_NS_PER_S;
}

static void tell_silence(struct wf_shm_out *out, uint64_t now)
{
	uint64_t end =
		out->state == WF_SHM_OUT_GREETED ? dead_at(out) : out->deadline;

	out->warned = true;
	wf_shm_silence_tell(out, WARN_AFTER, end > now ? end - now : 0);
}

/* Advances a channel that is not open yet. Every state ends. A hello is not
 * sent twice on a socket, because the socket does not lose it. */
static void tend(struct wf_shm_out *out, uint64_t now)
{
	if (out->state == WF_SHM_OUT_CONNECTING && now >= out->retry_at)
		wf_shm_conn_try(out, now);
	if (out->state == WF_SHM_OUT_GREETED && now >= dead_at(out)) {
		wf_shm_offer_withdraw(out);
		give_up(out, ETIMEDOUT, now);
	}
	if (!out->warned && now >= out->since + WARN_AFTER &&
	    (out->state == WF_SHM_OUT_CONNECTING ||
	     out->state == WF_SHM_OUT_GREETED))
		tell_silence(out, now);
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
		if (!out->warned && out->since + WARN_AFTER < at)
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

static int map_welcome(struct wf_shm_out *out, const int *fds, bool cut)
{
	int err;

	if (cut)
		return EMFILE;
	err = wf_shm_board_map(&out->board, fds[0]);
	if (!err)
		err = wf_op_reg_map(&out->regs, fds[1]);
	return -err;
}

/* Counts it if we want to use CMA and the kernel does not permit it. */
static void count_refusal(struct wf_shm_ep *ep,
			  const struct wf_shm_mover *mover)
{
	if (ep->attr.cma && mover->way == WF_SHM_WAY_NONE)
		wf_shm_stats_add(&ep->stats, WF_SHM_STAT_cma_refused, 1);
}

/* What the other channel of an offer needs, too. */
static void take_welcome(struct wf_shm_out *out,
			 const struct wf_shm_welcome *welcome, pid_t pid)
{
	out->features = welcome->greeting.features & WF_SHM_FEATURES;
	wf_shm_mover_open(&out->mover, pid, welcome->process,
			  welcome->probe_addr, welcome->probe_value,
			  may_copy(out->ep, out->features));
	count_refusal(out->ep, &out->mover);
	out->bell = welcome->bell;
	out->number = welcome->number;
	out->remote_flags = welcome->flags;
	if (!(out->features & WF_SHM_FEATURE_BARRIER))
		out->ep->host->all_joined = false;
}

static void on_welcome(struct wf_shm_out *out, uint64_t now)
{
	struct wf_shm_welcome welcome = { 0 };
	struct ucred cred;
	int fds[WF_SHM_WELCOME_FDS];
	ssize_t got;
	int status;
	bool cut;

	got = wf_base_fds_recv(out->sock.fd, &welcome, sizeof(welcome), fds,
			       WF_SHM_WELCOME_FDS, &cut);
	if (got == -EAGAIN)
		return;
	if (got <= 0) {
		wf_shm_offer_withdraw(out);
		start_over(out, ECONNRESET, now);
		goto close_fds;
	}
	cred = wf_shm_user_of(out->sock.fd);
	status = check_welcome(&welcome, got);
	if (status || welcome.declines)
		wf_shm_offer_withdraw(out);
	if (!status) {
		/* The peer reads the ring, even if we fail below. */
		wf_shm_early_end(out);
		take_welcome(out, &welcome, cred.pid);
		status = map_welcome(out, fds, cut);
	}
	if (passes(status)) {
		start_over(out, status, now);
		goto close_fds;
	}
	if (status) {
		if (status == EACCES)
			wf_shm_user_refused(&cred);
		if (status == EOPNOTSUPP)
			wf_warn("the peer takes packets only: FI_WEFT_SHM must "
				"be the same for all processes of a node");
		if (status == EPROTO)
			wf_warn("the peer uses ring layout %u, this process %u",
				welcome.greeting.layout, WF_SHM_LAYOUT);
		give_up(out, status, now);
		goto close_fds;
	}
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

/* -- being connected to ---------------------------------------------------- */

uint32_t wf_shm_conn_flags(const struct wf_shm_ep *ep)
{
	return (ep->remote_writes ? WF_SHM_WELCOME_WRITES : 0) |
	       (ep->remote_reads ? WF_SHM_WELCOME_READS : 0);
}

static struct wf_shm_welcome welcome_of(const struct wf_shm_ep *ep, int status)
{
	struct wf_shm_welcome welcome = {
		.greeting = {
			.magic = WF_SHM_MAGIC,
			.layout = WF_SHM_LAYOUT,
			.size = sizeof(welcome),
			.features = our_features(ep),
			.status = status,
		},
		.flags = wf_shm_conn_flags(ep),
	};

	wf_shm_mover_own_probe(&welcome.probe_addr, &welcome.probe_value);
	welcome.process = welcome.probe_value;
	return welcome;
}

/* Without descriptors, so that we can send it when the welcome with its
 * descriptors cannot be sent. If even this fails, the end of the socket tells
 * the sender to start again. */
static void refuse(const struct wf_shm_ep *ep, int fd, int status)
{
	struct wf_shm_welcome welcome = welcome_of(ep, status);

	wf_os_send(fd, &welcome, sizeof(welcome), 0);
}

/* 0 or -errno, for example -ETOOMANYREFS: too many descriptors of this user are
 * in flight. */
static int accept_in(const struct wf_shm_ep *ep, const struct wf_shm_in *in)
{
	struct wf_shm_welcome welcome = welcome_of(ep, 0);
	const int fds[WF_SHM_WELCOME_FDS] = { ep->board.memfd,
					      ep->regs->memfd };

	welcome.bell = in->bell;
	welcome.number = in->number;
	welcome.declines = !in->offer;
	return wf_base_fds_send(in->sock.fd, &welcome, sizeof(welcome), fds,
				WF_SHM_WELCOME_FDS);
}

/* The address under which we know the peer. We believe a process of our own
 * user: in our PID namespace it could write our memory anyway, and a process in
 * another container reaches us only if somebody gave it our folder
 * (docs/containers.md). A process of another user must belong to the user that
 * listens at that address, which the kernel tells us when we connect to it;
 * otherwise the peer has no address. 0, or the positive errno to answer. */
static int find_addr(const struct wf_shm_ep *ep,
		     const struct wf_shm_hello *hello, const struct ucred *cred,
		     struct wf_addr *addr)
{
	uid_t owner;
	int err;

	if (wf_base_addr_set(addr, hello->addr, sizeof(hello->addr)))
		return EPROTO;
	if (wf_shm_user_is_ours(cred->uid))
		return 0;
	err = wf_shm_name_owner(&ep->attr.home, addr, &owner);
	if (!err && owner == cred->uid && wf_base_users_is_known(owner))
		return 0;
	/* These errors may go away. If nobody listens, that will not help. */
	if (err && err != -ECONNREFUSED && passes(-err))
		return -err;
	memset(addr, 0, sizeof(*addr));
	return 0;
}

/* The second one stays empty if there is no offer. */
static int map_rings(struct wf_shm_region pair[2],
		     const struct wf_shm_hello *hello, int memfd)
{
	return hello->offers ?
		       wf_shm_region_map_pair(pair, memfd, hello->slots_log2,
					      hello->lines_log2) :
		       wf_shm_region_map(&pair[0], memfd, hello->slots_log2,
					 hello->lines_log2);
}

/* Opens a channel for a hello. 0, or the positive errno to answer. */
static int admit(struct wf_shm_ep *ep, struct guest *guest,
		 const struct wf_shm_hello *hello, const int *fds,
		 const struct ucred *cred)
{
	struct wf_shm_region pair[2] = { 0 };
	bool ours = wf_shm_user_is_ours(cred->uid);
	struct wf_shm_in *in;
	struct wf_addr addr;
	uint64_t src;
	int err;

	err = find_addr(ep, hello, cred, &addr);
	if (err)
		return err;
	err = map_rings(pair, hello, fds[0]);
	if (err)
		return -err;
	src = wf_shm_channels_name(ep, &addr);
	in = wf_shm_in_open(ep, &pair[0], guest->sock.fd, &addr, src);
	err = -ENOMEM;
	if (!in)
		goto err_unmap;
	in->features = hello->greeting.features & WF_SHM_FEATURES;
	wf_shm_mover_open(&in->mover, cred->pid, hello->process,
			  hello->probe_addr, hello->probe_value,
			  may_copy(ep, in->features));
	count_refusal(ep, &in->mover);
	err = wf_shm_channels_add_in(ep, in);
	if (err)
		goto err_free;
	if (guest->watched)
		wf_transport_loop_remove(&ep->host->loop, &guest->sock);
	if (!ours || !wf_shm_offer_keep(in, hello, &pair[1], fds))
		wf_shm_region_unmap(&pair[1]);
	err = wf_shm_conn_watch(ep, &in->sock);
	if (!err)
		err = accept_in(ep, in);
	if (err)
		goto err_drop;
	guest->sock.fd = -1; /* it belongs to the channel now */
	if (!ours && !ep->watch.distrusted) {
		ep->watch.distrusted = true;
		wf_shm_offer_open_all(ep);
	}
	wf_shm_link_in_opened(in);
	/* A message that came with the hello (early.h) has set no bell. */
	if (wf_shm_in_ready(in))
		wf_transport_host_wake(ep->host);
	return 0;

err_drop:
	if (in->offer)
		pair[1].base = NULL; /* it is unmapped with the offer */
	wf_shm_offer_forget(in);
	wf_shm_channels_drop_in(ep, in);
err_free:
	free(in);
err_unmap:
	wf_shm_region_unmap(&pair[0]);
	wf_shm_region_unmap(&pair[1]);
	return -err;
}

static int check_hello(const struct wf_shm_hello *hello, ssize_t got, int memfd,
		       bool cut)
{
	if (got < (ssize_t)sizeof(hello->greeting) ||
	    hello->greeting.magic != WF_SHM_MAGIC)
		return EPROTO;
	if (hello->greeting.layout != WF_SHM_LAYOUT) {
		wf_warn("refused a peer with ring layout %u, this process uses %u",
			hello->greeting.layout, WF_SHM_LAYOUT);
		return EPROTO;
	}
	if (got < (ssize_t)sizeof(*hello))
		return EPROTO;
	if (memfd < 0)
		return cut ? EMFILE : EPROTO;
	return 0;
}

/* Most peers have sent their hello when we accept them, and their sockets need
 * not be added to the loop. */
static void wait_for_hello(struct guest *guest)
{
	if (guest->watched)
		return;
	guest->watched = true;
	if (wf_shm_conn_watch(guest->ep, &guest->sock))
		guest_leave(guest->ep, guest);
}

static void on_guest(struct wf_source *source, uint32_t events, uint64_t now)
{
	struct guest *guest = wf_container_of(source, struct guest, sock);
	struct wf_shm_ep *ep = guest->ep;
	struct wf_shm_hello hello = { 0 };
	struct ucred cred;
	int fds[WF_SHM_HELLO_FDS], status;
	ssize_t got;
	bool cut;

	(void)events;
	(void)now;
	got = wf_base_fds_recv(guest->sock.fd, &hello, sizeof(hello), fds,
			       WF_SHM_HELLO_FDS, &cut);
	if (got == -EAGAIN) {
		wait_for_hello(guest);
		return;
	}
	if (got <= 0) {
		/* They may come with an empty message. */
		wf_base_fds_close(fds, WF_SHM_HELLO_FDS);
		guest_leave(ep, guest);
		return;
	}
	status = -wf_shm_user_check(ep->attr.allow_uid, guest->sock.fd, &cred);
	if (!status && ep->attr.refuses)
		status = EOPNOTSUPP;
	if (!status)
		status = check_hello(&hello, got, fds[0], cut);
	if (!status)
		status = admit(ep, guest, &hello, fds, &cred);
	if (status)
		refuse(ep, guest->sock.fd, status);
	wf_base_fds_close(fds, WF_SHM_HELLO_FDS);
	guest_leave(ep, guest);
}

static void go_deaf(struct wf_shm_ep *ep, uint64_t now)
{
	wf_transport_loop_remove(&ep->host->loop, &ep->listener);
	if (ep->door.fd >= 0)
		wf_transport_loop_remove(&ep->host->loop, &ep->door);
	ep->deaf_until = now + DEAF_FOR;
}

static void listen_again(struct wf_shm_ep *ep, uint64_t now)
{
	int err = wf_shm_conn_watch(ep, &ep->listener);

	if (!err && ep->door.fd >= 0)
		err = wf_shm_conn_watch(ep, &ep->door);
	if (err)
		go_deaf(ep, now);
	else
		ep->deaf_until = 0;
}

static void let_in(struct wf_shm_ep *ep, const struct wf_source *listener,
		   uint64_t now)
{
	for (int i = 0; i < GUESTS_MAX; i++) {
		struct guest *guest;
		int fd = wf_os_accept(listener->fd, NULL, NULL);

		if (fd == -EAGAIN)
			return;
		if (fd < 0) {
			go_deaf(ep, now);
			return;
		}
		guest = malloc(sizeof(*guest));
		if (!guest) {
			wf_os_close(fd);
			return;
		}
		*guest = (struct guest){
			.sock = { .fd = fd, .ready = on_guest },
			.ep = ep,
			.deadline = now + GUEST_PATIENCE,
		};
		wf_base_list_add_tail(&ep->guests, &guest->link);
		on_guest(&guest->sock, 0, now);
	}
}

static void on_listener(struct wf_source *source, uint32_t events, uint64_t now)
{
	(void)events;
	let_in(wf_container_of(source, struct wf_shm_ep, listener), source,
	       now);
}

static void on_door(struct wf_source *source, uint32_t events, uint64_t now)
{
	(void)events;
	let_in(wf_container_of(source, struct wf_shm_ep, door), source, now);
}

void wf_shm_conn_accept(struct wf_shm_ep *ep)
{
	struct pollfd p[] = { { .fd = ep->listener.fd, .events = POLLIN },
			      { .fd = ep->door.fd, .events = POLLIN } };

	/* A ring that is opened while we sleep would not set its bell. If nobody
	 * waits, poll() takes a third of the time that accept() does. */
	if (ep->host->asleep || ep->deaf_until || wf_os_poll(p, 2, 0) <= 0)
		return;
	if (p[0].revents)
		let_in(ep, &ep->listener, wf_base_clock_ns());
	if (p[1].revents && !ep->deaf_until)
		let_in(ep, &ep->door, wf_base_clock_ns());
}

/* -- at every look ---------------------------------------------------------- */

/* Only here, where no pending event refers to them. The oldest are first. */
static void show_out_guests(struct wf_shm_ep *ep, uint64_t now)
{
	struct wf_list *pos, *tmp;
	int count = 0;

	wf_list_for_each (pos, tmp, &ep->guests)
		count++;
	wf_list_for_each (pos, tmp, &ep->guests) {
		struct guest *guest = wf_container_of(pos, struct guest, link);

		if (count-- > GUESTS_MAX || now >= guest->deadline)
			guest_leave(ep, guest);
	}
}

void wf_shm_conn_tend(struct wf_shm_ep *ep, uint64_t now)
{
	struct wf_list *pos, *tmp;

	show_out_guests(ep, now);
	if (wf_unlikely(ep->deaf_until) && now >= ep->deaf_until)
		listen_again(ep, now);
	if (!ep->connecting)
		return;
	wf_list_for_each (pos, tmp, &ep->all_outs) {
		tend(wf_container_of(pos, struct wf_shm_out, link), now);
	}
}
