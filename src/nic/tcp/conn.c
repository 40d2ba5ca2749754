/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections: opens one when a channel needs it, exchanges hellos, gives it
 * up, closes it when it is idle. This file does not know the frames.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nic/tcp/stream.h"
#include "os/file.h"
#include "os/inline.h"
#include "os/poll.h"
#include "os/socket.h"

/* Connections of unknown peers, for so long. A further one replaces the oldest. */
#define GUESTS_MOST 256u
#define GUEST_PATIENCE (5 * WF_NS_PER_S)
#define ACCEPT_MOST 64
#define DISPUTES_MOST 3u
#define ACCEPT_AGAIN (100 * WF_NS_PER_MS)

/* Between two tries to connect: from the first to the second of these. */
#define RETRY_FIRST (5 * WF_NS_PER_MS)
#define RETRY_LAST (500 * WF_NS_PER_MS)
/* For how long to wait for the connection of a peer that keeps its own. */
#define YIELD_PATIENCE (1 * WF_NS_PER_S)
/* While we ask, a pass is due at least so often: longer gaps are time in which
 * the process did not run. */
#define ASK_EVERY (1 * WF_NS_PER_S)
/* The path of a connection is looked at so often. If it is bad once more than
 * this, less the times that it was not, it is used as a long one. */
#define TUNE_EVERY (1 * WF_NS_PER_MS)
#define TUNES 8
/* A round trip below this is one within a host or a rack. If the shortest of so
 * many segments is longer, more looks would say the same. */
#define NEAR_RTT_US 500u
#define FAR_SEGMENTS 32u
/* More than one segment lost of so many: cubic would have a window of some 20
 * segments. Fewer than so many segments say nothing. */
#define LOSSY 256u
#define TUNE_SEGMENTS 512u
/* A rail has so long to connect; when it is up, so long to answer, or a quarter of
 * what a host has. */
#define RAIL_PATIENCE (1 * WF_NS_PER_S)
#define RAIL_SILENCE (10 * WF_NS_PER_S)

static void start(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan);

static struct wf_tcp_conn *new_conn(struct wf_tcp_dev *dev, int fd, bool mine,
				    bool room)
{
	struct wf_tcp_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	conn->fd = fd;
	conn->mine = mine;
	conn->came_at = dev->now;
	conn->tune_at = WF_TCP_NEVER;
	conn->watches = room;
	wf_base_list_init(&conn->sink_link);
	wf_base_list_init(&conn->hot_link);
	wf_base_list_init(&conn->wait_link);
	wf_base_list_init(&conn->deaf_link);
	if (wf_tcp_sock_watch(dev, fd, conn, room)) {
		free(conn);
		return NULL;
	}
	return conn;
}

/* Round trips may have been long because the peer had other things to do, and a
 * burst may have met another one: a path is looked at several times. */
void wf_tcp_conn_tune(const struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	struct wf_tcp_path path;
	uint32_t segments;
	bool is_bad;

	conn->tune_at = dev->now + TUNE_EVERY;
	if (wf_tcp_sock_look(conn->fd, &path))
		return;
	segments = path.segments - conn->tune_segments;
	if (conn->is_near) {
		if (segments < TUNE_SEGMENTS)
			return;
		is_bad = (int32_t)(path.lost - conn->tune_lost) >
			 (int32_t)(segments / LOSSY);
	} else {
		conn->is_near = path.rtt_us && path.rtt_us < NEAR_RTT_US;
		is_bad = !conn->is_near;
		if (is_bad && path.delivered >= FAR_SEGMENTS &&
		    path.min_rtt_us >= NEAR_RTT_US)
			conn->tunes = 0;
	}
	conn->tune_segments = path.segments;
	conn->tune_lost = path.lost;
	if (!is_bad) {
		conn->tunes += conn->tunes < TUNES;
	} else if (!conn->tunes--) {
		wf_tcp_sock_set_far(dev, conn->fd);
		conn->tune_at = WF_TCP_NEVER;
	}
}

void wf_tcp_conn_warm(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	conn->came_at = dev->now;
	wf_tcp_hot_add(dev, conn);
}

void wf_tcp_conn_close(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	bool was_apart;

	if (conn->dead)
		return;
	wf_tcp_in_forget(dev, conn);
	was_apart = conn->apart;
	dev->apart_count -= was_apart;
	conn->apart = false;
	wf_tcp_hot_cool(dev, conn);
	wf_base_list_del(&conn->wait_link);
	wf_base_list_del(&conn->deaf_link);
	dev->full_count -= conn->full;
	if (!conn->chan)
		dev->guest_count--;
	else if (conn->chan->conn == conn)
		conn->chan->conn = NULL;
	conn->dead = true;
	/* Another process may have a copy of the descriptor: the connection
	 * ends nevertheless, and we get no more events of it. */
	if (!dev->is_copy) {
		if (!was_apart)
			wf_tcp_sock_unwatch(dev, conn->fd);
		wf_os_shutdown(conn->fd, SHUT_RDWR);
	}
	wf_os_close(conn->fd);
	conn->fd = -1;
	/* An event of this pass may still name it. */
	wf_base_list_unlink(&conn->link);
	wf_base_list_add_tail(&dev->dead, &conn->link);
}

void wf_tcp_conn_free_dead(struct wf_tcp_dev *dev)
{
	while (!wf_base_list_empty(&dev->dead)) {
		struct wf_tcp_conn *conn = wf_container_of(
			dev->dead.next, struct wf_tcp_conn, link);

		wf_base_list_del(&conn->link);
		wf_tcp_tls_end(conn->tls);
		free(conn->carry);
		free(conn);
	}
}

void wf_tcp_conn_drop(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan)
{
	if (chan->conn)
		wf_tcp_conn_close(dev, chan->conn);
	chan->state = WF_TCP_DOWN;
	chan->asked_from = 0;
	chan->tries = 0;
	chan->insists = false;
}

void wf_tcp_conn_rest(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan)
{
	wf_tcp_ack_say(dev, chan->conn, WF_TCP_REST);
	wf_tcp_conn_drop(dev, chan);
}

/* -- giving up --------------------------------------------------------------- */

static uint64_t patience(const struct wf_tcp_dev *dev,
			 const struct wf_tcp_chan *chan)
{
	bool asks = chan->state == WF_TCP_GREET ||
		    (chan->conn && chan->conn->shaking);

	if (wf_unlikely(wf_tcp_rail_is_on(chan)))
		return RAIL_PATIENCE;
	/* A process of this host exists if its port is listened on. */
	return asks && chan->peer->is_near ? dev->dead_ns : dev->connect_ns;
}

/* @more: how long there is to go. */
static void arm_asking(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer,
		       uint64_t more)
{
	wf_tcp_peer_arm(dev, peer,
			dev->now + (more < ASK_EVERY ? more : ASK_EVERY));
}

static void wait_for(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan,
		     uint64_t ns)
{
	chan->state = WF_TCP_WAIT;
	chan->retry_at = dev->now + ns;
	wf_tcp_peer_arm(dev, chan->peer, chan->retry_at);
}

static bool is_refusal(int err)
{
	return err == ECONNREFUSED || err == EHOSTUNREACH ||
	       err == ENETUNREACH || err == ENETDOWN || err == EHOSTDOWN ||
	       err == EACCES || err == EKEYREJECTED || err == EREMCHG;
}

static void give_up(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer, int err)
{
	char text[WF_ADDR_STR_LEN];

	wf_info("peer %s is given up: %s",
		wf_base_addr_str(&peer->addr, text, sizeof(text)),
		err == EKEYREJECTED ? "the two sides have no key in common" :
		err == EREMCHG	    ? "connections to it lead to another" :
				      strerror(err));
	wf_tcp_peer_end_life(dev, peer,
			     is_refusal(err) || wf_tcp_files_is_short(-err) ?
				     WF_NIC_UNREACH :
				     WF_NIC_UNRESP,
			     true);
}

/* A try to connect has failed. */
static void failed(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan, int err)
{
	struct wf_tcp_peer *peer = chan->peer;
	uint64_t ns = RETRY_FIRST << (chan->tries < 8 ? chan->tries : 8);
	/* A peer that refuses us is not silent. */
	bool is_out = err == EKEYREJECTED || err == EREMCHG;
	bool late = dev->now - chan->asked_from >=
		    (is_out ? dev->connect_ns : patience(dev, chan));

	if (chan->conn)
		wf_tcp_conn_close(dev, chan->conn);
	if (wf_unlikely(wf_tcp_rail_is_on(chan))) {
		wf_tcp_rail_failed(chan, err);
		wait_for(dev, chan, RETRY_FIRST);
		return;
	}
	/* The last error that says something. */
	if (err != ETIMEDOUT || !peer->last_err)
		peer->last_err = err;
	/* There was a process, and it has ended: it is not one that has not
	 * started yet. */
	if (late || (peer->life && err == ECONNREFUSED)) {
		give_up(dev, peer, peer->last_err);
		return;
	}
	chan->tries += chan->tries < UINT8_MAX;
	wait_for(dev, chan, ns < RETRY_LAST ? ns : RETRY_LAST);
}

void wf_tcp_conn_broken(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
			int err)
{
	struct wf_tcp_chan *chan = conn->chan;
	bool was_up = chan && chan->state == WF_TCP_UP;
	char text[WF_ADDR_STR_LEN];

	if (!chan || chan->conn != conn) {
		wf_tcp_conn_close(dev, conn);
		return;
	}
	if (!was_up) {
		failed(dev, chan, err ? err : ECONNRESET);
		return;
	}
	wf_info("the connection to %s broke: %s",
		wf_base_addr_str(&chan->peer->addr, text, sizeof(text)),
		err ? strerror(err) : "it was closed");
	wf_tcp_conn_drop(dev, chan);
	if (err == ETIMEDOUT && wf_tcp_rail_is_on(chan)) {
		wf_tcp_rail_leave(chan, err);
	} else if (err == ETIMEDOUT) {
		give_up(dev, chan->peer, err);
		return;
	}
	/* Whether the process is still there is found out at once. The other end
	 * of our own connections cannot be connected to. */
	if (!chan->peer->mirror &&
	    (chan->index == WF_TCP_SMALL || wf_tcp_peer_is_busy(chan->peer)))
		wf_tcp_conn_want(dev, &chan->peer->chans[WF_TCP_SMALL]);
	if (!chan->peer->mirror && wf_tcp_chan_is_needed(dev, chan))
		wf_tcp_conn_want(dev, chan);
}

/* -- connecting -------------------------------------------------------------- */

static void find_near(struct wf_tcp_peer *peer)
{
	if (peer->knows_near)
		return;
	peer->is_near = wf_base_addr_is_local(&peer->addr);
	peer->knows_near = true;
}

static void came_up(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan)
{
	struct wf_tcp_peer *peer = chan->peer;

	find_near(peer);
	chan->state = WF_TCP_UP;
	chan->tries = 0;
	chan->disputes = 0;
	chan->insists = false;
	chan->asked_from = 0;
	peer->is_refused = false;
	peer->last_err = 0;
	peer->used_at = dev->now;
	chan->conn->tunes = TUNES;
	wf_tcp_conn_tune(dev, chan->conn);
	if (wf_unlikely(wf_tcp_rail_is_on(chan)))
		wf_tcp_sock_limit(chan->conn->fd,
				  dev->dead_ns / 4 < RAIL_SILENCE ?
					  dev->dead_ns / 4 :
					  RAIL_SILENCE);
	wf_tcp_conn_warm(dev, chan->conn);
	wf_tcp_count(dev, connects, chan->conn->mine);
	wf_tcp_count(dev, accepts, !chan->conn->mine);
	/* Frames that are not sent again must be acknowledged over this
	 * connection. */
	chan->ack_sent = wf_tcp_ack_of(chan) - 1;
	wf_tcp_ack_owe(dev, peer, UINT32_MAX);
	wf_tcp_out_activate(dev, chan);
	wf_tcp_peer_arm(dev, peer, dev->now + dev->idle_ns);
}

static bool say_hello(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
		      const struct wf_tcp_chan *chan, enum wf_tcp_word word)
{
	struct wf_tcp_hello hello;
	struct iovec iov = { &hello, sizeof(hello) };
	bool full;

	wf_tcp_hello_fill(dev, chan, word, &hello);
	if (conn->tls && word == WF_TCP_HELLO &&
	    wf_tcp_secure_name(dev, conn, &hello))
		return false;
	return wf_tcp_stream_send(conn, &iov, 1, sizeof(hello), &full) ==
		       (ssize_t)sizeof(hello) &&
	       !full;
}

/* False: bytes of the other side's handshake are missing, or the connection is
 * gone. */
static bool is_secure(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	int ret;

	if (!dev->tls || (conn->tls && !conn->shaking))
		return true;
	ret = wf_tcp_secure_shake(dev, conn);
	if (ret < 0)
		wf_tcp_conn_broken(dev, conn, -ret);
	return ret > 0;
}

static void greet(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	conn->chan->state = WF_TCP_GREET;
	if (!say_hello(dev, conn, conn->chan, WF_TCP_HELLO))
		wf_tcp_conn_broken(dev, conn, ECONNRESET);
	else
		wf_tcp_conn_warm(dev, conn);
}

static void connected(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	if (conn->watches && !wf_tcp_sock_rewatch(dev, conn->fd, conn, false))
		conn->watches = false;
	if (is_secure(dev, conn))
		greet(dev, conn);
}

static const struct wf_addr *source_for(const struct wf_tcp_dev *dev,
					const struct wf_tcp_peer *peer)
{
	static const struct wf_addr unknown;

	if (peer->local.sa.sa_family)
		return &peer->local;
	/* A name of IPv6 is no source of IPv4 connections. */
	if (wf_base_addr_is_any(&dev->nic.socket) ||
	    dev->nic.socket.sa.sa_family != peer->addr.sa.sa_family)
		return &unknown;
	return &dev->nic.socket;
}

static void start(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan)
{
	struct wf_tcp_peer *peer = chan->peer;
	struct wf_addr from = *source_for(dev, peer), to = peer->addr;
	bool done = false;
	int fd;

	if (wf_unlikely(wf_tcp_rail_is_on(chan)))
		wf_tcp_rail_ends(dev, chan, &from, &to);
	if (!chan->asked_from)
		chan->asked_from = dev->now;
	find_near(peer);
	chan->state = WF_TCP_CONNECT;
	chan->number++;
	fd = wf_tcp_sock_connect(dev, &from, &to, &done);
	if (wf_tcp_files_is_short(fd))
		wf_tcp_files_short(dev, fd);
	if (fd < 0) {
		failed(dev, chan, -fd);
		return;
	}
	chan->conn = new_conn(dev, fd, true, !done);
	if (!chan->conn) {
		wf_os_close(fd);
		failed(dev, chan, ENOMEM);
		return;
	}
	chan->conn->chan = chan;
	chan->conn->number = chan->number;
	wf_base_list_add_tail(&dev->conns, &chan->conn->link);
	arm_asking(dev, peer, dev->connect_ns);
	if (done)
		connected(dev, chan->conn);
}

void wf_tcp_conn_want(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan)
{
	if (chan->state == WF_TCP_DOWN && !chan->peer->mirror)
		start(dev, chan);
}

/* -- greeting ---------------------------------------------------------------- */

/* 1: the whole hello is in conn->hello; 0: not yet; -errno: it is over. */
static int read_hello(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	uint8_t *bytes = (uint8_t *)&conn->hello;
	ssize_t got = wf_tcp_stream_take(conn, bytes + conn->head_len,
					 sizeof(struct wf_tcp_hello) -
						 conn->head_len);

	if (got == -EAGAIN || got == -EINTR)
		return 0;
	if (got <= 0 && !conn->tls && conn->head_len && conn->mine &&
	    bytes[0] == WF_TCP_TLS_ALERT) {
		wf_tcp_secure_denied(dev, conn);
		return -EKEYREJECTED;
	}
	if (got <= 0)
		return got ? (int)got : -ECONNRESET;
	conn->head_len = (uint8_t)(conn->head_len + got);
	if (conn->head_len < sizeof(struct wf_tcp_hello))
		return 0;
	conn->head_len = 0;
	return 1;
}

/* The other end was closed after the hello, or sent more than that. Such a
 * hello may be the last message of a process that died long ago, and whose
 * successor we know already. */
static bool is_left(const struct wf_tcp_conn *conn)
{
	uint8_t byte;
	ssize_t got = wf_os_recv(conn->fd, &byte, 1, 0);

	return got != -EAGAIN && got != -EINTR;
}

/* The two sides do not agree on what has arrived. Once, it may be a hello that
 * is late. If it is repeated, one side has begun to count anew and the other
 * takes it for the same life: then both begin another one. */
static void disagree(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	struct wf_tcp_chan *chan = conn->chan;

	wf_tcp_count(dev, bad_field, 1);
	if (++chan->disputes < DISPUTES_MOST)
		wf_tcp_conn_broken(dev, conn, EPROTO);
	else
		wf_tcp_peer_end_life(dev, chan->peer, WF_NIC_ABORT, true);
}

/* The life that a peer says it has. Whatever was under way with another is
 * over. */
static void know_life(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer,
		      uint64_t life)
{
	if (peer->life && peer->life != life) {
		wf_tcp_count(dev, peer_restarts, 1);
		wf_tcp_peer_end_life(dev, peer, WF_NIC_ABORT, false);
	}
	peer->life = life;
}

/* The answer to our hello. */
static void answered(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	struct wf_tcp_chan *chan = conn->chan;
	const struct wf_tcp_hello hello = conn->hello;

	if (!wf_tcp_hello_valid(&hello) || hello.channel != chan->index ||
	    hello.word == WF_TCP_HELLO ||
	    (hello.word == WF_TCP_ASTRAY && !conn->tls)) {
		wf_tcp_count(dev, bad_magic, 1);
		wf_tcp_conn_broken(dev, conn, EPROTO);
		return;
	}
	if (hello.word == WF_TCP_ASTRAY) {
		wf_tcp_secure_astray(dev, conn);
		wf_tcp_conn_broken(dev, conn, EREMCHG);
		return;
	}
	if (hello.word == WF_TCP_YIELD) {
		wf_tcp_conn_close(dev, conn);
		chan->insists = true;
		wait_for(dev, chan, YIELD_PATIENCE);
		return;
	}
	if (chan->peer->life && chan->peer->life != hello.life) {
		/* Operations that were meant for the previous process end; this
		 * connection belongs to the new one, but is closed with the
		 * rest. */
		know_life(dev, chan->peer, hello.life);
		return;
	}
	chan->peer->life = hello.life;
	if (!wf_tcp_peer_resume(dev, chan, hello.taken)) {
		disagree(dev, conn);
		return;
	}
	chan->welcomed = conn->number;
	wf_tcp_rail_learn(dev, chan->peer, &hello);
	came_up(dev, chan);
}

static struct wf_tcp_peer *peer_of_guest(struct wf_tcp_dev *dev,
					 const struct wf_tcp_hello *hello,
					 const struct wf_addr *from,
					 const struct wf_addr *to)
{
	struct wf_addr self = *to;
	struct wf_tcp_peer *peer;

	if (wf_unlikely(hello->channel > WF_TCP_BULK))
		return wf_tcp_rail_peer(dev, hello);
	wf_base_addr_set_port(&self, dev->port);
	if (wf_base_addr_equal(from, &self))
		return wf_tcp_peer_mirror(dev, from);
	peer = wf_tcp_peer_find(dev, from);
	return peer ? peer : wf_tcp_peer_get(dev, from, true);
}

/* Both sides must find the same. Those of a rail are known by their lives. */
static bool is_below(const struct wf_tcp_peer *peer,
		     const struct wf_tcp_hello *hello, const struct wf_addr *to,
		     const struct wf_addr *from)
{
	return hello->channel > WF_TCP_BULK ? peer->our_life < peer->life :
					      wf_tcp_hello_below(to, from);
}

/* A guest has sent its hello. */
static void greeted(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	const struct wf_tcp_hello hello = conn->hello;
	struct wf_addr from, to;
	struct wf_tcp_peer *peer;
	struct wf_tcp_chan *chan;
	enum wf_tcp_verdict verdict;

	if (!wf_tcp_hello_valid(&hello)) {
		wf_tcp_count(dev, bad_magic, 1);
		if (!conn->tls &&
		    *(const uint8_t *)&hello == WF_TCP_TLS_HANDSHAKE)
			wf_tcp_secure_unexpected(dev, conn);
		wf_tcp_conn_close(dev, conn);
		return;
	}
	/* The address from which it connects identifies it; only the port is
	 * its own claim. With TLS all of it is proved. */
	if (is_left(conn) || wf_tcp_sock_names(conn->fd, &from, &to) ||
	    (conn->tls &&
	     !wf_tcp_secure_is_meant(dev, conn, &hello, &from, &to))) {
		wf_tcp_conn_close(dev, conn);
		return;
	}
	wf_base_addr_set_port(&from, hello.port);
	peer = peer_of_guest(dev, &hello, &from, &to);
	if (!peer) {
		wf_tcp_count(dev, resets_sent, 1);
		wf_tcp_conn_close(dev, conn);
		return;
	}
	wf_base_addr_set_port(&to, dev->port);
	chan = &peer->chans[hello.channel];
	verdict = wf_tcp_hello_decide(chan, &hello,
				      is_below(peer, &hello, &to, &from));
	if (verdict != WF_TCP_TAKE) {
		if (verdict == WF_TCP_LEAVE)
			(void)say_hello(dev, conn, chan, WF_TCP_YIELD);
		wf_tcp_conn_close(dev, conn);
		return;
	}
	know_life(dev, peer, hello.life);
	wf_tcp_conn_drop(dev, chan);
	if (hello.channel <= WF_TCP_BULK)
		peer->local = to;
	dev->guest_count--;
	wf_base_list_unlink(&conn->link);
	wf_base_list_add_tail(&dev->conns, &conn->link);
	conn->chan = chan;
	conn->number = hello.number;
	chan->conn = conn;
	chan->welcome = hello.number;
	if (!wf_tcp_peer_resume(dev, chan,
				hello.known == peer->our_life ? hello.taken :
								0)) {
		chan->state = WF_TCP_UP;
		disagree(dev, conn);
		return;
	}
	if (!say_hello(dev, conn, chan, WF_TCP_WELCOME)) {
		chan->state = WF_TCP_UP;
		wf_tcp_conn_broken(dev, conn, ECONNRESET);
		return;
	}
	wf_tcp_rail_learn(dev, peer, &hello);
	came_up(dev, chan);
}

void wf_tcp_conn_event(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
		       uint32_t events)
{
	struct wf_tcp_chan *chan = conn->chan;
	int ret;

	if (chan && chan->state == WF_TCP_CONNECT && !conn->shaking) {
		ret = wf_tcp_sock_result(conn->fd);
		if (ret)
			wf_tcp_conn_broken(dev, conn, -ret);
		else if (events & EPOLLOUT)
			connected(dev, conn);
		return;
	}
	if (!is_secure(dev, conn))
		return;
	if (chan && chan->state == WF_TCP_CONNECT) {
		greet(dev, conn);
		return;
	}
	ret = read_hello(dev, conn);
	if (ret < 0)
		wf_tcp_conn_broken(dev, conn, -ret);
	else if (ret && chan)
		answered(dev, conn);
	else if (ret)
		greeted(dev, conn);
}

/* -- guests ------------------------------------------------------------------ */

static struct wf_tcp_conn *oldest_guest(struct wf_tcp_dev *dev)
{
	return wf_base_list_empty(&dev->guests) ?
		       NULL :
		       wf_container_of(dev->guests.next, struct wf_tcp_conn,
				       link);
}

void wf_tcp_conn_expire_guests(struct wf_tcp_dev *dev)
{
	struct wf_tcp_conn *guest;

	while ((guest = oldest_guest(dev)) &&
	       (dev->now - guest->came_at > GUEST_PATIENCE ||
		dev->guest_count > GUESTS_MOST)) {
		wf_tcp_count(dev, bad_cookie, 1);
		wf_tcp_conn_close(dev, guest);
	}
}

/* The socket that listens stays readable, and there is nothing to be done about
 * it for a while. */
static void stop_accepting(struct wf_tcp_dev *dev, int err)
{
	wf_tcp_files_short(dev, err);
	if (wf_tcp_sock_unwatch(dev, dev->listen_fd))
		return;
	wf_tcp_rail_unwatch(dev);
	dev->no_accept = true;
	dev->accept_at = dev->now + ACCEPT_AGAIN;
}

void wf_tcp_conn_accept(struct wf_tcp_dev *dev, int listen_fd)
{
	/* They were opened and are not ready yet, and may never be: they wait
	 * in the socket for the next owner. */
	if (!dev->nic.had_qp)
		return;
	for (int i = 0; i < ACCEPT_MOST; i++) {
		struct wf_tcp_conn *conn;
		int fd = wf_tcp_sock_accept(dev, listen_fd);

		if (fd == -ECONNABORTED || fd == -EINTR)
			continue;
		/* Without a descriptor the kernel does not say whether a
		 * connection waits. The first time one does. */
		if (wf_tcp_files_is_short(fd) && !i)
			stop_accepting(dev, fd);
		if (fd < 0)
			return;
		conn = new_conn(dev, fd, false, false);
		if (!conn) {
			wf_os_close(fd);
			return;
		}
		wf_base_list_add_tail(&dev->guests, &conn->link);
		dev->guest_count++;
		wf_tcp_conn_expire_guests(dev);
		/* Most come with their hello. */
		if (!conn->dead)
			wf_tcp_conn_event(dev, conn, EPOLLIN);
	}
}

/* -- time -------------------------------------------------------------------- */

static void tick(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan)
{
	struct wf_tcp_peer *peer = chan->peer;
	uint64_t asked;

	switch (chan->state) {
	case WF_TCP_WAIT:
		if (dev->now >= chan->retry_at)
			start(dev, chan);
		else
			wf_tcp_peer_arm(dev, peer, chan->retry_at);
		break;
	case WF_TCP_CONNECT:
	case WF_TCP_GREET:
		asked = dev->now - chan->asked_from;
		if (asked >= patience(dev, chan))
			wf_tcp_conn_broken(dev, chan->conn, ETIMEDOUT);
		else
			arm_asking(dev, peer, patience(dev, chan) - asked);
		break;
	case WF_TCP_UP:
		if (!wf_tcp_peer_is_busy(peer) &&
		    dev->now - peer->used_at >= dev->idle_ns)
			wf_tcp_conn_rest(dev, chan);
		else
			wf_tcp_peer_arm(dev, peer, dev->now + dev->idle_ns);
		break;
	default:
		break;
	}
}

static uint64_t later(const struct wf_tcp_dev *dev, uint64_t at, uint64_t ns)
{
	/* @at may have been set after the pause began. */
	return dev->now - at < ns ? dev->now : at + ns;
}

void wf_tcp_conn_absent(struct wf_tcp_dev *dev, uint64_t ns)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &dev->peers) {
		struct wf_tcp_peer *peer =
			wf_container_of(pos, struct wf_tcp_peer, link);

		for (unsigned i = 0; i < WF_TCP_CHANNELS; i++) {
			struct wf_tcp_chan *chan = &peer->chans[i];

			if (chan->asked_from)
				chan->asked_from =
					later(dev, chan->asked_from, ns);
		}
	}
	wf_list_for_each (pos, tmp, &dev->guests) {
		struct wf_tcp_conn *guest =
			wf_container_of(pos, struct wf_tcp_conn, link);

		guest->came_at = later(dev, guest->came_at, ns);
	}
}

void wf_tcp_conn_tick(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer)
{
	for (unsigned i = 0; i < WF_TCP_CHANNELS; i++)
		tick(dev, &peer->chans[i]);
	wf_tcp_peer_release(dev, peer);
}
