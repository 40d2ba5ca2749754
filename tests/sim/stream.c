/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP sockets of the simulated nodes. Bytes arrive in order and once, in pieces
 * of any size; a packet that the link loses arrives later, and so does
 * everything sent after it. A connection ends with a FIN, which follows the
 * bytes, or with a reset: by a process that died with unread bytes, by a port
 * where nobody listens, or by a device on the way that forgot the connection.
 * Bytes that have arrived can be read before the reset is reported. Hosts do
 * not disappear, so keep-alive and TCP_USER_TIMEOUT have nothing to do.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "kernel.h"
#include "net.h"
#include "real.h"
#include "wrap.h"

#define PORT_FIRST 43000
#define BUFFERS (192u << 10) /* bytes in both directions together */
#define PIECES 3
#define RTO_NS (200 * SIM_MS)
#define SYN_RETRY (1000 * SIM_MS)

struct piece {
	struct piece *next;
	size_t at, len;
	uint8_t data[];
};

/* One end of a connection, and what has arrived there. */
struct end {
	struct stream_file *file; /* NULL: closed */
	struct piece *first, **last;
	size_t queued;
	size_t flight;	  /* bytes on their way to this end */
	uint64_t last_at; /* when the last of them arrives */
	bool fin;	  /* no more will come */
};

struct connection {
	unsigned int refs; /* ends that are open, events */
	struct end end[2]; /* 0: who connected */
	bool reset;
};

struct stream_file {
	struct sim_file file;
	struct stream_file *next;
	struct sim_node *node;
	struct sockaddr_in here, there;
	bool bound, reuse, listening, connecting, connected;
	bool shut_in, shut_out;
	int error; /* so_error */
	int backlog;
	struct stream_file *waiting, *next_waiting;
	int waiting_count;
	struct connection *conn;
	unsigned int side;
	unsigned int owner; /* process that made it, for traces */
};

/* Something in transit: bytes, a FIN or a reset. */
struct letter {
	struct connection *conn;
	unsigned int to;
	bool fin, reset;
	struct piece *piece;
};

static struct stream_file *sockets;
static const struct sim_file_ops stream_ops;

static struct stream_file *make(struct sim_node *node, unsigned int owner,
				bool nonblocking)
{
	struct stream_file *sock = real_calloc(1, sizeof(*sock));

	sock->file.ops = &stream_ops;
	sock->file.refs = 1;
	sock->file.nonblocking = nonblocking;
	sock->node = node;
	sock->owner = owner;
	sock->here.sin_family = AF_INET;
	sock->next = sockets;
	sockets = sock;
	return sock;
}

struct sim_file *sim_stream_socket(bool nonblocking)
{
	const struct sim_proc *proc = sim_proc_current();

	return &make(proc->node, proc->number, nonblocking)->file;
}

static struct end *own(const struct stream_file *sock)
{
	return &sock->conn->end[sock->side];
}

static struct end *other(const struct stream_file *sock)
{
	return &sock->conn->end[!sock->side];
}

static void put_conn(struct connection *conn)
{
	struct piece *piece;

	if (--conn->refs)
		return;
	for (int i = 0; i < 2; i++) {
		while ((piece = conn->end[i].first)) {
			conn->end[i].first = piece->next;
			real_free(piece);
		}
	}
	real_free(conn);
}

static void note(const struct stream_file *sock, const char *what, size_t len)
{
	const struct stream_file *to = other(sock)->file;
	unsigned int peer = to ? to->owner : app_of_port(sock->there.sin_port);

	if (len)
		sim_note("tcp p%u-p%u: %s %zu bytes", sock->owner, peer, what,
			 len);
	else
		sim_note("tcp p%u-p%u: %s", sock->owner, peer, what);
}

/* -- names ------------------------------------------------------------------ */

static bool overlap(struct in_addr a, struct in_addr b)
{
	return !a.s_addr || !b.s_addr || a.s_addr == b.s_addr;
}

/* With SO_REUSEADDR, two sockets may share a port unless one listens. */
static bool is_taken(const struct stream_file *sock, struct sockaddr_in want)
{
	for (const struct stream_file *s = sockets; s; s = s->next) {
		if (s == sock || !s->bound || s->node != sock->node ||
		    s->here.sin_port != want.sin_port ||
		    !overlap(s->here.sin_addr, want.sin_addr))
			continue;
		if (!s->reuse || !sock->reuse || s->listening)
			return true;
	}
	return false;
}

static void take_port(struct stream_file *sock)
{
	do {
		sock->here.sin_port =
			htons((uint16_t)(PORT_FIRST +
					 sock->node->next_port++ % 16384));
	} while (is_taken(sock, sock->here));
}

static int stream_bind(struct sim_file *file, const struct sockaddr *sa,
		       socklen_t len)
{
	struct stream_file *sock = (struct stream_file *)file;
	struct sockaddr_in want;

	if (len < sizeof(want) || sa->sa_family != AF_INET)
		return -EAFNOSUPPORT;
	memcpy(&want, sa, sizeof(want));
	if (!sim_net_has(sock->node, want.sin_addr))
		return -EADDRNOTAVAIL;
	if (want.sin_port && is_taken(sock, want))
		return -EADDRINUSE;
	sock->here = want;
	sock->bound = true;
	if (!want.sin_port)
		take_port(sock);
	return 0;
}

static int stream_getname(struct sim_file *file, struct sockaddr *sa,
			  socklen_t *len)
{
	const struct stream_file *sock = (struct stream_file *)file;

	memcpy(sa, &sock->here,
	       *len < sizeof(sock->here) ? *len : sizeof(sock->here));
	*len = sizeof(sock->here);
	return 0;
}

static int stream_peername(struct sim_file *file, struct sockaddr *sa,
			   socklen_t *len)
{
	const struct stream_file *sock = (struct stream_file *)file;

	if (!sock->connected || sock->conn->reset)
		return -ENOTCONN;
	memcpy(sa, &sock->there,
	       *len < sizeof(sock->there) ? *len : sizeof(sock->there));
	*len = sizeof(sock->there);
	return 0;
}

/* -- on the way ------------------------------------------------------------- */

static void end_conn(struct connection *conn, unsigned int at)
{
	struct stream_file *sock = conn->end[at].file;

	if (!sock)
		return;
	if (!sock->error)
		sock->error = sock->connecting	? ECONNREFUSED :
			      conn->end[at].fin ? EPIPE :
						  ECONNRESET;
	sock->connecting = false;
	sim_changed();
}

static void reset(struct connection *conn)
{
	if (conn->reset)
		return;
	conn->reset = true;
	end_conn(conn, 0);
	end_conn(conn, 1);
}

static void deliver(void *arg)
{
	struct letter *letter = arg;
	struct connection *conn = letter->conn;
	struct end *end = &conn->end[letter->to];

	if (letter->piece)
		end->flight -= letter->piece->len;
	if (conn->reset || letter->reset) {
		reset(conn);
		real_free(letter->piece);
	} else if (!end->file && letter->piece) {
		/* The end is closed: bytes cause a reset. */
		reset(conn);
		real_free(letter->piece);
	} else if (letter->piece) {
		end->queued += letter->piece->len;
		*end->last = letter->piece;
		end->last = &letter->piece->next;
		sim_changed();
	} else {
		end->fin |= letter->fin;
		sim_changed();
	}
	real_free(letter);
	put_conn(conn);
}

/* When the next letter to that end arrives: not before those that were sent
 * earlier. 0: a device on the way breaks the connection. */
static uint64_t arrival(struct stream_file *sock)
{
	const struct sockaddr_in *to = &sock->there;
	struct end *end = other(sock);
	uint64_t at = sim_net_arrival(sock->node, to->sin_addr);
	struct sim_rng *rng = &sim.fault[SIM_FAULT_LOSS];

	if (sim_fault(SIM_FAULT_LOSS)) {
		switch (sim_rng_below(rng, 4)) {
		case 0:
			return 0;
		case 1:
			at += RTO_NS;
			break;
		default:
			at += sim_rng_below(rng, 2 * SIM_MS);
		}
	}
	if (at < end->last_at)
		at = end->last_at;
	end->last_at = at;
	return at;
}

static void post_letter(struct stream_file *sock, struct letter what)
{
	uint64_t at = arrival(sock);
	struct letter *letter;

	if (!at) {
		note(sock, "connection is broken on the way", 0);
		real_free(what.piece);
		reset(sock->conn);
		return;
	}
	if (at == SIM_NEVER) {
		real_free(what.piece);
		return;
	}
	letter = real_malloc(sizeof(*letter));
	*letter = what;
	letter->conn = sock->conn;
	letter->to = !sock->side;
	sock->conn->refs++;
	if (what.piece)
		other(sock)->flight += what.piece->len;
	sim_event_at(at, deliver, letter);
}

/* -- connecting ------------------------------------------------------------- */

static struct stream_file *find_listener(struct sim_node *node,
					 struct sockaddr_in to)
{
	for (struct stream_file *s = sockets; s; s = s->next) {
		if (s->listening && s->node == node &&
		    s->here.sin_port == to.sin_port &&
		    overlap(s->here.sin_addr, to.sin_addr))
			return s;
	}
	return NULL;
}

static void accepted(void *arg)
{
	struct connection *conn = arg;
	struct stream_file *sock = conn->end[0].file;

	if (sock && sock->connecting && !conn->reset) {
		sock->connecting = false;
		sock->connected = true;
		note(sock, "is connected", 0);
		sim_changed();
	}
	put_conn(conn);
}

static void refused(void *arg)
{
	struct connection *conn = arg;

	reset(conn);
	put_conn(conn);
}

/* A SYN arrives at its destination. */
static void knock(void *arg)
{
	struct connection *conn = arg;
	struct stream_file *from = conn->end[0].file, *to, *child, **at;
	struct sim_node *node;

	if (!from || conn->reset) {
		put_conn(conn);
		return;
	}
	node = sim_net_seen(from->node, from->there.sin_addr);
	to = find_listener(node, from->there);
	if (!to) {
		sim_event_at(sim_net_arrival(node, from->here.sin_addr),
			     refused, conn);
		return;
	}
	if (to->waiting_count > to->backlog) {
		sim_event_at(sim.now + SYN_RETRY, knock, conn);
		return;
	}
	child = make(node, to->owner, true);
	child->here = from->there;
	child->there = from->here;
	child->conn = conn;
	child->side = 1;
	child->connected = true;
	conn->end[1].file = child;
	conn->refs++;
	for (at = &to->waiting; *at; at = &(*at)->next_waiting)
		;
	*at = child;
	to->waiting_count++;
	sim_changed();
	sim_event_at(sim_net_arrival(node, from->here.sin_addr), accepted,
		     conn);
}

static int stream_connect(struct sim_file *file, const struct sockaddr *sa,
			  socklen_t len)
{
	struct stream_file *sock = (struct stream_file *)file;
	struct connection *conn;
	uint64_t at;

	if (len < sizeof(sock->there) || sa->sa_family != AF_INET)
		return -EAFNOSUPPORT;
	if (sock->conn || sock->listening)
		return sock->connecting ? -EALREADY : -EISCONN;
	memcpy(&sock->there, sa, sizeof(sock->there));
	if (!sock->here.sin_addr.s_addr)
		sock->here.sin_addr =
			sim_net_source(sock->node, sock->there.sin_addr);
	if (!sock->here.sin_port)
		take_port(sock);
	conn = real_calloc(1, sizeof(*conn));
	conn->refs = 1;
	conn->end[0].last = &conn->end[0].first;
	conn->end[1].last = &conn->end[1].first;
	conn->end[0].file = sock;
	sock->conn = conn;
	sock->side = 0;
	sock->connecting = true;
	note(sock, "connects", 0);
	at = sim_net_arrival(sock->node, sock->there.sin_addr);
	if (at != SIM_NEVER) {
		conn->refs++;
		sim_event_at(at, knock, conn);
	}
	return -EINPROGRESS;
}

static int stream_listen(struct sim_file *file, int backlog)
{
	struct stream_file *sock = (struct stream_file *)file;

	for (const struct stream_file *s = sockets; s; s = s->next) {
		if (s != sock && s->listening && s->node == sock->node &&
		    s->here.sin_port == sock->here.sin_port &&
		    overlap(s->here.sin_addr, sock->here.sin_addr))
			return -EADDRINUSE;
	}
	sock->listening = true;
	sock->backlog = backlog;
	return 0;
}

static struct sim_file *stream_accept(struct sim_file *file, int *err)
{
	struct stream_file *sock = (struct stream_file *)file;
	struct stream_file *first = sock->waiting;

	*err = -EAGAIN;
	if (!first)
		return NULL;
	sock->waiting = first->next_waiting;
	sock->waiting_count--;
	return &first->file;
}

/* -- bytes ------------------------------------------------------------------ */

static size_t room_of(const struct stream_file *sock)
{
	const struct end *end = other(sock);
	size_t used = end->flight + end->queued;

	return used < BUFFERS ? BUFFERS - used : 0;
}

static int take_error(struct stream_file *sock)
{
	int err = sock->error;

	sock->error = 0;
	return err;
}

static bool is_gone(const struct stream_file *sock)
{
	return !sock->conn || sock->conn->reset;
}

/* In pieces that arrive one after the other. */
static void send_pieces(struct stream_file *sock, const struct msghdr *msg,
			size_t total)
{
	size_t cut[PIECES + 1] = { 0 }, vec = 0, off = 0, at = 0;
	int count = total > 1 ? PIECES : 1;

	for (int i = 1; i < count; i++)
		cut[i] = cut[i - 1] +
			 (size_t)sim_rng_below(&sim.net, total - cut[i - 1]);
	cut[count] = total;
	for (int i = 0; i < count; i++) {
		struct piece *piece;
		size_t len = cut[i + 1] - at;

		if (!len)
			continue;
		piece = real_calloc(1, sizeof(*piece) + len);
		while (piece->len < len) {
			size_t n = msg->msg_iov[vec].iov_len - off;

			if (n > len - piece->len)
				n = len - piece->len;
			memcpy(piece->data + piece->len,
			       (char *)msg->msg_iov[vec].iov_base + off, n);
			piece->len += n;
			off += n;
			if (off == msg->msg_iov[vec].iov_len) {
				vec++;
				off = 0;
			}
		}
		at += len;
		if (sock->conn->reset)
			real_free(piece);
		else
			post_letter(sock, (struct letter){ .piece = piece });
	}
}

static ssize_t stream_sendmsg(struct sim_file *file, const struct msghdr *msg,
			      int flags)
{
	struct stream_file *sock = (struct stream_file *)file;
	size_t len = 0, room;

	(void)flags;
	if (sock->error)
		return -take_error(sock);
	if (sock->connecting)
		return -EAGAIN;
	if (is_gone(sock) || sock->shut_out)
		return -EPIPE;
	for (size_t i = 0; i < msg->msg_iovlen; i++)
		len += msg->msg_iov[i].iov_len;
	room = room_of(sock);
	if (sim_fault(SIM_FAULT_FULL))
		room = (size_t)sim_rng_below(&sim.fault[SIM_FAULT_FULL],
					     room + 1);
	if (!room)
		return -EAGAIN;
	if (len > room)
		len = room;
	note(sock, "sends", len);
	if (len)
		send_pieces(sock, msg, len);
	return (ssize_t)len;
}

static size_t read_into(struct end *end, uint8_t *to, size_t len)
{
	size_t done = 0;

	while (done < len && end->first) {
		struct piece *piece = end->first;
		size_t n = piece->len - piece->at;

		if (n > len - done)
			n = len - done;
		memcpy(to + done, piece->data + piece->at, n);
		piece->at += n;
		done += n;
		if (piece->at < piece->len)
			break;
		end->first = piece->next;
		if (!end->first)
			end->last = &end->first;
		real_free(piece);
	}
	end->queued -= done;
	return done;
}

static ssize_t stream_recvmsg(struct sim_file *file, struct msghdr *msg,
			      int flags)
{
	struct stream_file *sock = (struct stream_file *)file;
	size_t done = 0;

	(void)flags;
	msg->msg_flags = 0;
	msg->msg_controllen = 0;
	if (sock->conn && own(sock)->queued && !sock->shut_in) {
		for (size_t i = 0; i < msg->msg_iovlen; i++)
			done += read_into(own(sock), msg->msg_iov[i].iov_base,
					  msg->msg_iov[i].iov_len);
		sim_changed();
		return (ssize_t)done;
	}
	if (sock->error)
		return -take_error(sock);
	if (sock->connecting)
		return -EAGAIN;
	if (!sock->conn)
		return -ENOTCONN;
	if (is_gone(sock) || own(sock)->fin || sock->shut_in)
		return 0;
	return -EAGAIN;
}

static uint32_t stream_events(struct sim_file *file)
{
	const struct stream_file *sock = (struct stream_file *)file;
	uint32_t events = sock->error ? EPOLLERR : 0;
	bool ended;

	if (sock->listening)
		return events | (sock->waiting ? EPOLLIN : 0);
	if (sock->connecting)
		return events;
	if (!sock->conn)
		return events | EPOLLOUT | EPOLLHUP;
	if (is_gone(sock))
		return events | EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLOUT;
	ended = own(sock)->fin || sock->shut_in;
	if (own(sock)->queued || ended)
		events |= EPOLLIN;
	if (ended)
		events |= EPOLLRDHUP;
	if (ended && sock->shut_out)
		events |= EPOLLHUP;
	if (sock->shut_out || room_of(sock) >= BUFFERS / 3)
		events |= EPOLLOUT;
	return events;
}

/* -- the end ---------------------------------------------------------------- */

static int stream_shutdown(struct sim_file *file, int how)
{
	struct stream_file *sock = (struct stream_file *)file;

	if (!sock->connected || is_gone(sock))
		return -ENOTCONN;
	if (how != SHUT_WR)
		sock->shut_in = true;
	if (how != SHUT_RD && !sock->shut_out) {
		sock->shut_out = true;
		note(sock, "sends FIN", 0);
		post_letter(sock, (struct letter){ .fin = true });
	}
	sim_changed();
	return 0;
}

/* If bytes are unread, the other side learns that they are lost. */
static void close_conn(struct stream_file *sock)
{
	struct connection *conn = sock->conn;
	bool unread = own(sock)->queued;

	own(sock)->file = NULL;
	if (!conn->reset && sock->connected && (unread || !sock->shut_out)) {
		note(sock, unread ? "sends RST" : "sends FIN", 0);
		post_letter(sock,
			    (struct letter){ .fin = !unread, .reset = unread });
	}
	sock->conn = NULL;
	put_conn(conn);
}

static void stream_release(struct sim_file *file)
{
	struct stream_file *sock = (struct stream_file *)file, *waiting, **at;

	for (at = &sockets; *at != sock; at = &(*at)->next)
		;
	*at = sock->next;
	while ((waiting = sock->waiting)) {
		sock->waiting = waiting->next_waiting;
		if (!waiting->conn->reset)
			post_letter(waiting, (struct letter){ .reset = true });
		waiting->shut_out = true;
		sim_file_put(&waiting->file);
	}
	if (sock->conn)
		close_conn(sock);
	sim_changed();
	real_free(sock);
}

/* -- options ---------------------------------------------------------------- */

static int stream_getopt(struct sim_file *file, int level, int name,
			 void *value, socklen_t *len)
{
	struct stream_file *sock = (struct stream_file *)file;
	int err;

	if (level == IPPROTO_TCP && name == TCP_INFO) {
		const struct tcp_info info = { .tcpi_rtt = 50 };

		if (*len > sizeof(info))
			*len = sizeof(info);
		memcpy(value, &info, *len);
		return 0;
	}
	if (level != SOL_SOCKET || name != SO_ERROR || *len < sizeof(err))
		return -ENOPROTOOPT;
	err = take_error(sock);
	memcpy(value, &err, sizeof(err));
	*len = sizeof(err);
	return 0;
}

static int stream_setopt(struct sim_file *file, int level, int name,
			 const void *value, socklen_t len)
{
	struct stream_file *sock = (struct stream_file *)file;
	int on = 0;

	memcpy(&on, value, len < sizeof(on) ? len : sizeof(on));
	if (level == SOL_SOCKET && name == SO_REUSEADDR)
		sock->reuse = on;
	return 0;
}

static const struct sim_file_ops stream_ops = {
	.name = "tcp",
	.events = stream_events,
	.release = stream_release,
	.sendmsg = stream_sendmsg,
	.recvmsg = stream_recvmsg,
	.bind = stream_bind,
	.connect = stream_connect,
	.listen = stream_listen,
	.accept = stream_accept,
	.shutdown = stream_shutdown,
	.getname = stream_getname,
	.peername = stream_peername,
	.getopt = stream_getopt,
	.setopt = stream_setopt,
};
