/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Being connected to.
 */
#include "shm/guest.h"

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
#include "shm/conn.h"
#include "shm/conn_defs.h"
#include "shm/door.h"
#include "shm/ep.h"
#include "shm/letter.h"
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

/* If there is no descriptor to accept a connection, the peer waits until we try
 * again after this time. Meanwhile we do not watch the listener: it would
 * always be readable, and the endpoint could not sleep. */
#define DEAF_FOR (10 * WF_NS_PER_MS)

struct guest {
	struct wf_source sock;
	struct wf_shm_ep *ep;
	struct wf_list link;
	uint64_t deadline;
	bool watched;		    /* in the loop */
	struct wf_shm_letter *room; /* if it is a letter */
	int refusal; /* of a letter, errno that could not be sent yet; 0: none */
};

static void guest_leave(struct wf_shm_ep *ep, struct guest *guest)
{
	wf_base_list_del(&guest->link);
	wf_shm_conn_drop(ep, &guest->sock);
	wf_shm_letter_unreserve(&guest->room);
	free(guest);
}

/* -- hello and welcome ------------------------------------------------------- */

static struct wf_shm_welcome welcome_of(const struct wf_shm_ep *ep, int status)
{
	struct wf_shm_welcome welcome = {
		.greeting = {
			.magic = WF_SHM_MAGIC,
			.layout = WF_SHM_LAYOUT,
			.size = sizeof(welcome),
			.features = wf_shm_conn_features(ep),
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
 * the sender of a hello to start again; to that of a letter it would say that
 * the letter was read. */
int wf_shm_guest_refuse(const struct wf_shm_ep *ep, int fd, int status)
{
	struct wf_shm_welcome welcome = welcome_of(ep, status);
	ssize_t sent = wf_os_send(fd, &welcome, sizeof(welcome), 0);

	return sent < 0 ? (int)sent : 0;
}

/* Sends the refusal of a letter. True: the sender has it, or is gone. */
static bool send_refusal(const struct guest *guest)
{
	int err =
		wf_shm_guest_refuse(guest->ep, guest->sock.fd, guest->refusal);

	return !err || err == -EPIPE || err == -ECONNRESET;
}

/* The end of the socket would be taken for "read": it stays open until a later
 * look could send the refusal. */
static void refuse_letter(struct guest *guest, int status)
{
	guest->refusal = status;
	if (send_refusal(guest)) {
		guest_leave(guest->ep, guest);
		return;
	}
	if (guest->watched)
		wf_transport_loop_remove(&guest->ep->host->loop, &guest->sock);
	guest->watched = false;
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
				ep->host->is_target ? WF_SHM_WELCOME_FDS :
						      WF_SHM_WELCOME_FDS - 1);
}

/* The address under which we know the peer. We believe a process of our own
 * user: in our PID namespace it could write our memory anyway, and a process in
 * another container reaches us only if somebody gave it our folder
 * (docs/containers.md). A process of another user must belong to the user that
 * listens at that address, which the kernel tells us when we connect to it;
 * otherwise the peer has no address. 0, or the positive errno to answer. */
static int find_addr(const struct wf_shm_ep *ep, const uint8_t stated[28],
		     const struct ucred *cred, bool ours, struct wf_addr *addr)
{
	uid_t owner;
	int err;

	if (wf_base_addr_set(addr, stated, 28))
		return EPROTO;
	if (ours)
		return 0;
	err = wf_shm_name_owner(&ep->attr.home, addr, &owner);
	if (!err && owner == cred->uid && wf_base_users_is_known(owner))
		return 0;
	/* These errors may go away. If nobody listens, that will not help. */
	if (err && err != -ECONNREFUSED && wf_shm_conn_passes(-err))
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
		 const struct wf_shm_hello *hello, int *fds,
		 const struct ucred *cred, bool ours)
{
	struct wf_shm_region pair[2] = { 0 };
	struct wf_shm_in *in;
	struct wf_addr addr;
	uint64_t src;
	int err;

	err = find_addr(ep, hello->addr, cred, ours, &addr);
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
			  wf_shm_conn_may_copy(ep, in->features));
	wf_shm_conn_count_refusal(ep, &in->mover);
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
	/* The sender has ended. The messages that it had written are still
	 * delivered. */
	if (err == -EPIPE && wf_shm_in_ready(in))
		err = 0;
	if (err)
		goto err_drop;
	guest->sock.fd = -1; /* it belongs to the channel now */
	wf_shm_silence_enough(ep);
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

static int check_greeting(const struct wf_shm_greeting *greeting, ssize_t got)
{
	if (got < (ssize_t)sizeof(*greeting) || greeting->magic != WF_SHM_MAGIC)
		return EPROTO;
	if (greeting->layout == WF_SHM_LAYOUT)
		return 0;
	wf_warn("refused a peer with ring layout %u, this process uses %u",
		greeting->layout, WF_SHM_LAYOUT);
	return EPROTO;
}

/* Takes the socket over. 0, or the positive errno to answer. */
static int take_letter(struct wf_shm_ep *ep, struct guest *guest,
		       const struct wf_shm_letter_head *head, ssize_t got,
		       const struct ucred *cred, bool ours)
{
	struct wf_addr addr;
	int err = wf_shm_letter_check(head, (size_t)got);

	if (!err)
		err = find_addr(ep, head->addr, cred, ours, &addr);
	if (err)
		return err;
	wf_shm_letter_keep(ep, &guest->room, guest->sock.fd, &addr, ours, head);
	if (guest->watched)
		wf_transport_loop_remove(&ep->host->loop, &guest->sock);
	guest->sock.fd = -1;
	return 0;
}

/* Opens a channel. 0, or the positive errno to answer. */
static int take_hello(struct wf_shm_ep *ep, struct guest *guest,
		      const struct wf_shm_hello *hello, ssize_t got, int *fds,
		      bool cut, const struct ucred *cred, bool ours)
{
	if (got < (ssize_t)sizeof(*hello))
		return EPROTO;
	if (fds[0] < 0)
		return cut ? EMFILE : EPROTO;
	return admit(ep, guest, hello, fds, cred, ours);
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
	union {
		struct wf_shm_greeting greeting;
		struct wf_shm_hello hello;
		struct wf_shm_letter_head letter;
		uint8_t room[WF_SHM_LETTER_ROOM];
	} said = { .room = { 0 } };
	struct ucred cred;
	int fds[WF_SHM_HELLO_FDS], status;
	bool cut, ours, is_letter = false;
	ssize_t got;

	(void)events;
	got = wf_base_fds_recv(guest->sock.fd, &said, sizeof(said), fds,
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
	if (got >= (ssize_t)sizeof(said.greeting))
		is_letter = said.greeting.features & WF_SHM_GREETING_LETTER;
	status = -wf_shm_user_check(ep->attr.allow_uid, guest->sock.fd, &cred,
				    &ours);
	if (!status && ep->attr.refuses)
		status = EOPNOTSUPP;
	if (!status)
		status = check_greeting(&said.greeting, got);
	if (!status && is_letter)
		status = take_letter(ep, guest, &said.letter, got, &cred, ours);
	else if (!status)
		status = take_hello(ep, guest, &said.hello, got, fds, cut,
				    &cred, ours);
	wf_base_fds_close(fds, WF_SHM_HELLO_FDS);
	if (status)
		wf_shm_channels_spare_fds(ep, status, now);
	if (status && is_letter) {
		refuse_letter(guest, status);
		return;
	}
	if (status)
		wf_shm_guest_refuse(ep, guest->sock.fd, status);
	guest_leave(ep, guest);
}

/* -- the listeners ------------------------------------------------------------ */

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
		struct wf_shm_letter *room;
		struct guest *guest;
		int fd;

		/* They are delivered by the next poll, if there is room. */
		if (wf_unlikely(wf_shm_letter_is_full(ep))) {
			if (!wf_shm_watch_has_room(&ep->watch))
				go_deaf(ep, now);
			return;
		}
		fd = wf_os_accept(listener->fd, NULL, NULL);
		if (fd == -EAGAIN)
			return;
		if (fd < 0) {
			wf_shm_channels_spare_fds(ep, -fd, now);
			go_deaf(ep, now);
			return;
		}
		guest = malloc(sizeof(*guest));
		room = guest ? wf_shm_letter_reserve() : NULL;
		if (!room) {
			free(guest);
			wf_os_close(fd);
			return;
		}
		*guest = (struct guest){
			.sock = { .fd = fd, .ready = on_guest },
			.ep = ep,
			.deadline = now + GUEST_PATIENCE,
			.room = room,
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

void wf_shm_guest_accept(struct wf_shm_ep *ep)
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

int wf_shm_guest_listen(struct wf_shm_ep *ep)
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

void wf_shm_guest_unlisten(struct wf_shm_ep *ep)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &ep->guests)
		guest_leave(ep, wf_container_of(pos, struct guest, link));
	wf_shm_door_close(ep);
	wf_shm_conn_drop(ep, &ep->listener);
}

void wf_shm_guest_forked(struct wf_shm_ep *ep)
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

/* Only here, where no pending event refers to them. The oldest are first. */
static void show_out_guests(struct wf_shm_ep *ep, uint64_t now)
{
	struct wf_list *pos, *tmp;
	int count = 0;

	wf_list_for_each (pos, tmp, &ep->guests)
		count++;
	wf_list_for_each (pos, tmp, &ep->guests) {
		struct guest *guest = wf_container_of(pos, struct guest, link);

		bool is_over = guest->refusal ? send_refusal(guest) :
						count > GUESTS_MAX ||
							now >= guest->deadline;

		count--;
		if (is_over)
			guest_leave(ep, guest);
	}
}

void wf_shm_guest_tend(struct wf_shm_ep *ep, uint64_t now)
{
	show_out_guests(ep, now);
	if (wf_unlikely(ep->deaf_until) && now >= ep->deaf_until)
		listen_again(ep, now);
}
