/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: the connections of a hostile peer to the NIC on TCP, in any order.
 * The input is a sequence of actions: it connects, takes the NIC's connections,
 * says hello, welcome or something else that is nearly right, at once or in parts,
 * sends frames and noise, closes one direction, all of it, or resets. Whatever the
 * order, a channel has one connection, no other is left over, each request ends
 * once, and a proper peer is served afterwards.
 */
#include "nic_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "nic/tcp/dev.h"

struct wf_fuzz_stats wf_fuzz_stats;

#define STREAMS 4
#define ACTIONS 96
#define CONNECTS 10 /* each keeps a port for a while */
#define POSTS 3
#define PROPER_EVERY 8
#define PATIENCE (60 * WF_NS_PER_S)

struct world {
	struct nic_rig rig;
	struct wf_addr addr; /* of the peer */
	int listen_fd;
	int fds[STREAMS];
	bool taken[STREAMS]; /* the NIC connected it */
	bool said[STREAMS];  /* a hello */
	unsigned connects, posts;
	uint32_t next; /* number of a connection */
	/* What the NIC has said of itself. */
	uint64_t life;
	uint32_t number[WF_TCP_CHANNELS];
};

static void quick_close(int *fd)
{
	const struct linger at_once = { .l_onoff = 1 };

	if (*fd < 0)
		return;
	setsockopt(*fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(*fd);
	*fd = -1;
}

static void open_world(struct world *w)
{
	struct wf_nic_attr attr = { .places = true, .runs = true };
	struct wf_nic_qp_attr qp = { .sq_entries = 64,
				     .rq_entries = 64,
				     .rnr_retry = 2 };

	memset(w, 0, sizeof(*w));
	for (int i = 0; i < STREAMS; i++)
		w->fds[i] = -1;
	nic_rig_open(&w->rig, "tcp", &attr, &qp, 256);
	w->addr = attr.addr;
	w->listen_fd = wf_tcp_sock_listen(&w->addr);
	need(w->listen_fd >= 0);
	need(!wf_nic_ah_create_socket(w->rig.nic, &w->addr, &w->rig.ah));
}

/* -- actions ------------------------------------------------------------------ */

static void connect_stream(struct world *w, int i)
{
	const struct wf_addr *to = wf_nic_socket(w->rig.nic);

	if (w->connects++ >= CONNECTS)
		return;
	quick_close(&w->fds[i]);
	w->fds[i] = socket(AF_INET, SOCK_STREAM, 0);
	need(w->fds[i] >= 0 &&
	     !connect(w->fds[i], &to->sa, wf_base_addr_len(to)));
	w->taken[i] = false;
	w->said[i] = false;
}

/* Reads what the NIC says, and remembers what a real peer would. */
static void hear(struct world *w, int i)
{
	uint8_t bytes[4096];
	struct wf_tcp_hello hello;
	ssize_t n = recv(w->fds[i], bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < (ssize_t)sizeof(hello))
		return;
	memcpy(&hello, bytes, sizeof(hello));
	if (!wf_tcp_hello_valid(&hello))
		return;
	w->life = hello.life;
	w->number[hello.channel] = hello.number;
	wf_fuzz_stats.replies++;
}

static void take_stream(struct world *w, int i)
{
	int fd = accept4(w->listen_fd, NULL, NULL, SOCK_NONBLOCK);

	if (fd < 0)
		return;
	quick_close(&w->fds[i]);
	w->fds[i] = fd;
	w->taken[i] = true;
	w->said[i] = false;
	hear(w, i);
}

/* Returns the hello of a real peer, but for what the input changes. */
static struct wf_tcp_hello make_hello(struct world *w, int i,
				      const uint8_t p[8])
{
	const uint16_t ours = wf_base_addr_port(&w->addr);
	const uint16_t ports[] = { ours,
				   ours,
				   ours,
				   ours,
				   ours,
				   ours,
				   wf_base_addr_port(wf_nic_socket(w->rig.nic)),
				   4444 };
	const bool taken = w->taken[i];
	const uint8_t channel =
		p[1] & 28 ? p[1] & 1 : p[1] % (WF_TCP_CHANNELS + 1);
	const uint32_t number = w->number[channel % WF_TCP_CHANNELS];
	struct wf_tcp_hello hello = {
		.magic = WF_TCP_HELLO_MAGIC,
		.version = WF_TCP_VERSION,
		.word = taken ? WF_TCP_WELCOME : WF_TCP_HELLO,
		.channel = channel,
		.insists = p[2] & 1,
		.life = p[2] & 14 ? 1 : 2,
		.known = p[2] & 48 ? w->life : p[2] >> 6,
		.number = taken ? number : ++w->next,
		.replaces = p[4] & 1 ? number : p[4] >> 1 & 3,
		.taken = p[5] & 6 ? 0 : p[5] >> 3,
		.port = ports[p[6] & 7],
	};

	if (!(p[0] & 7))
		hello.word = p[0] >> 3 & 7;
	if (!(p[3] & 7))
		hello.number = p[3] >> 3;
	if (!(p[6] & 112)) {
		hello.rails = p[6] >> 3 & 3;
		wf_tcp_rail_write(&w->addr, &hello.rail[0]);
	}
	if (!(p[7] & 31))
		((uint8_t *)&hello)[p[5] % sizeof(hello)] ^= p[0];
	return hello;
}

static void send_bytes(const struct world *w, int i, const void *bytes,
		       size_t len)
{
	(void)!send(w->fds[i], bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* A hello as a whole, or cut with progress between the parts. */
static void greet(struct world *w, int i, const uint8_t p[8])
{
	const struct wf_tcp_hello hello = make_hello(w, i, p);
	size_t cut = p[0] & 192 ? sizeof(hello) : p[7] % sizeof(hello);

	w->said[i] = true;
	send_bytes(w, i, &hello, cut);
	if (cut == sizeof(hello))
		return;
	wf_nic_progress(w->rig.nic);
	if (p[1] & 192)
		send_bytes(w, i, (const uint8_t *)&hello + cut,
			   sizeof(hello) - cut);
}

static void send_frame(struct world *w, int i, const uint8_t p[8])
{
	static const uint8_t kinds[] = { WF_TCP_SEND, WF_TCP_SEND, WF_TCP_SEND,
					 WF_TCP_ACK,  WF_TCP_REST, WF_TCP_BYE,
					 WF_TCP_NACK, WF_TCP_SEND };
	uint8_t bytes[sizeof(struct wf_tcp_head) + 64] = { 0 };
	struct wf_tcp_head head = {
		.magic = WF_TCP_MAGIC,
		.kind = kinds[p[0] & 7],
		.status = p[1],
		.ack = { p[2] & 3 ? 0 : p[2] >> 2 & 15, 0 },
		.dst_qpn = wf_nic_qp_num(w->rig.qp),
		.qkey = RIG_QKEY,
		.arg = p[3] & 7,
	};

	if (head.kind == WF_TCP_SEND)
		head.len = p[4] % 65;
	else if (head.kind == WF_TCP_NACK)
		head.imm = p[4] & 1;
	memcpy(bytes, &head, sizeof(head));
	send_bytes(w, i, bytes, sizeof(head) + head.len);
}

/* The timers of all peers have run out. */
static void pass_time(struct world *w)
{
	struct wf_tcp_dev *dev = wf_tcp_dev_of(w->rig.nic);
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &dev->peers) {
		struct wf_tcp_peer *peer =
			wf_container_of(pos, struct wf_tcp_peer, link);

		for (int i = 0; i < WF_TCP_CHANNELS; i++)
			peer->chans[i].retry_at = 0;
		wf_tcp_peer_arm(dev, peer, 0);
	}
	wf_list_for_each (pos, tmp, &dev->guests)
		wf_container_of(pos, struct wf_tcp_conn, link)->came_at -=
			2 * WF_NS_PER_S;
}

static void drain(struct nic_rig *rig)
{
	struct wf_nic_wc wc[16];
	int n;

	while ((n = wf_nic_cq_poll(rig->cq, wc, 16)) > 0) {
		for (int i = 0; i < n; i++)
			nic_rig_count(rig, &wc[i]);
	}
}

static void act(struct world *w, const uint8_t p[9])
{
	int i = p[0] >> 4 & (STREAMS - 1);

	switch (p[0] & 15) {
	case 0:
	case 1:
		connect_stream(w, i);
		break;
	case 2:
	case 3:
		take_stream(w, i);
		break;
	case 4:
	case 5:
	case 6:
		greet(w, i, p + 1);
		break;
	case 7:
	case 8:
	case 9:
		if (!w->said[i] && p[1] & 15)
			greet(w, i, p + 1);
		else if (p[1] & 15)
			send_frame(w, i, p + 1);
		else
			send_bytes(w, i, p, 1 + p[2] % 8);
		break;
	case 10:
		hear(w, i);
		break;
	case 11:
		(void)!shutdown(w->fds[i], p[1] & 1 ? SHUT_WR : SHUT_RD);
		break;
	case 12:
		quick_close(&w->fds[i]);
		break;
	case 13:
		pass_time(w);
		break;
	case 14:
		if (w->posts++ < POSTS)
			nic_rig_post(&w->rig);
		break;
	default:
		(void)!wf_nic_ah_renew(w->rig.nic, w->rig.ah);
	}
}

/* -- what must hold ----------------------------------------------------------- */

static void check(struct world *w)
{
	const struct wf_tcp_dev *dev = wf_tcp_dev_of(w->rig.nic);
	const struct wf_list *pos;

	for (pos = dev->conns.next; pos != &dev->conns; pos = pos->next) {
		const struct wf_tcp_conn *conn =
			wf_container_of(pos, struct wf_tcp_conn, link);

		need(conn->chan && conn->chan->conn == conn && !conn->dead);
	}
	nic_rig_check(&w->rig);
}

/* Another NIC sends a message. Receives that are left may be taken by what the
 * hostile peer has sent. */
static void serve_proper(struct world *w)
{
	static struct nic_rig proper;
	struct wf_nic_attr attr = { 0 };
	struct wf_nic_qp_attr qp = { .sq_entries = 8,
				     .rq_entries = 8,
				     .rnr_retry = WF_NIC_RNR_FOREVER };
	struct wf_nic_wr wr = { .qkey = RIG_QKEY,
				.qpn = wf_nic_qp_num(w->rig.qp) };
	struct wf_nic_sge sge = { nic_rig_memory(&w->rig), 3000,
				  w->rig.mr.lkey };
	uint64_t end = wf_base_clock_ns() + PATIENCE;

	nic_rig_open(&proper, "tcp", &attr, &qp, 64);
	need(!wf_nic_ah_create_socket(proper.nic, wf_nic_socket(w->rig.nic),
				      &wr.ah));
	need(!wf_nic_post_inline(proper.qp, &wr, "proper", 6));
	while (!proper.completions) {
		struct wf_nic_wc wc;

		if (wf_nic_cq_poll(proper.cq, &wc, 1)) {
			need(wc.status == WF_NIC_OK);
			proper.completions++;
		}
		wf_nic_progress(proper.nic);
		wf_nic_progress(w->rig.nic);
		drain(&w->rig);
		(void)!wf_nic_post_recv(w->rig.qp, 1, &sge, false);
		need(wf_base_clock_ns() < end);
	}
	nic_rig_close(&proper);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world w;
	static unsigned inputs;

	open_world(&w);
	connect_stream(&w, 0);
	for (int n = 0; n < ACTIONS && size >= 9; n++, data += 9, size -= 9) {
		act(&w, data);
		if (data[0] & 128)
			wf_nic_progress(w.rig.nic);
		if (data[0] & 64)
			drain(&w.rig);
		check(&w);
		wf_fuzz_stats.slots++;
	}
	wf_nic_progress(w.rig.nic);
	check(&w);
	for (int i = 0; i < STREAMS; i++)
		quick_close(&w.fds[i]);
	if (inputs++ % PROPER_EVERY == 0)
		serve_proper(&w);
	/* Each request of ours ends once, whoever came between. */
	wf_nic_qp_flush(w.rig.qp);
	drain(&w.rig);
	need(w.rig.completions == w.rig.requests);
	check(&w);
	nic_rig_close(&w.rig);
	close(w.listen_fd);
	return 0;
}
