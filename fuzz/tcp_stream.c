/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: the byte stream of a hostile peer, over a real connection to the
 * NIC on TCP. The input is a sequence of frames. Most get the magic, the keys
 * and the counts that a real peer would know, so that they pass the first
 * checks; the others are sent as they are. The stream is cut at any byte.
 * Whatever arrives, the NIC must not touch memory that is not registered, lose
 * track of its own requests, or stop.
 */
#include "nic_rig.h"

#include <sys/socket.h>
#include <unistd.h>

#include "nic/tcp/dev.h"

struct wf_fuzz_stats wf_fuzz_stats;

struct world {
	struct nic_rig rig;
	struct wf_addr addr; /* of the peer: a socket on which nobody accepts */
	int listen_fd;
	int fd; /* the stream */
	unsigned asked;
};

static void open_world(struct world *w)
{
	struct wf_nic_attr attr = { .places = true, .runs = true };
	struct wf_nic_qp_attr qp = { .sq_entries = 64,
				     .rq_entries = 64,
				     .rnr_retry = 2 };

	memset(w, 0, sizeof(*w));
	nic_rig_open(&w->rig, "tcp", &attr, &qp, 256);
	w->addr = attr.addr;
	w->listen_fd = wf_tcp_sock_listen(&w->addr);
	need(w->listen_fd >= 0);
	need(!wf_nic_ah_create_socket(w->rig.nic, &w->addr, &w->rig.ah));
}

static void close_world(struct world *w)
{
	nic_rig_close(&w->rig);
	close(w->listen_fd);
	close(w->fd);
}

/* Starts requests, and opens the peer's connection. @channel: which one. */
static void join(struct world *w, uint8_t channel)
{
	const struct wf_tcp_hello hello = {
		.magic = WF_TCP_HELLO_MAGIC,
		.version = WF_TCP_VERSION,
		.word = WF_TCP_HELLO,
		.channel = channel,
		.insists = 1,
		.life = 1,
		.number = 1,
		.port = wf_base_addr_port(&w->addr),
	};
	const struct wf_addr *to = wf_nic_socket(w->rig.nic);

	nic_rig_post(&w->rig);
	w->fd = socket(AF_INET, SOCK_STREAM, 0);
	need(w->fd >= 0 && !connect(w->fd, &to->sa, wf_base_addr_len(to)));
	need(send(w->fd, &hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello));
	for (int i = 0; i < 4; i++)
		wf_nic_progress(w->rig.nic);
}

/* Fills in what a real peer would know, as the bits of @how say. */
static size_t dress(struct world *w, uint8_t how, uint8_t *p, size_t len)
{
	struct wf_tcp_head *h = (struct wf_tcp_head *)p;
	struct wf_tcp_rdma *r = (struct wf_tcp_rdma *)(h + 1);
	size_t head;

	if (len < sizeof(*h))
		return len;
	if (how & 3)
		h->magic = WF_TCP_MAGIC;
	h->kind = (uint8_t)(h->kind % (WF_TCP_KINDS + 1));
	head = wf_tcp_frame_len(h->kind);
	if (how & 12) {
		h->ack[0] %= RIG_REQUESTS + 1;
		h->ack[1] = 0;
	}
	if (how & 16) {
		h->qkey = RIG_QKEY;
		h->dst_qpn = wf_nic_qp_num(w->rig.qp);
		h->len = len < head ? 0 : (uint32_t)(len - head);
		if (h->kind == WF_TCP_READ || h->kind < WF_TCP_SEND ||
		    h->kind == WF_TCP_FAIL)
			h->len = 0;
	}
	if (len < head)
		return len;
	if (how & 32 && head > sizeof(*h)) {
		r->key = w->rig.mr.rkey;
		r->addr = (uintptr_t)w->rig.memory + r->addr % (RIG_MEMORY * 2);
		r->id %= 16;
		h->arg %= RIG_MEMORY;
	}
	if (how & 64 && h->kind == WF_TCP_DATA)
		h->len = 3000;
	/* One that can be taken together with others. */
	if (how & 128)
		h->flags = 0;
	/* In two pieces, of which the second is here or is not. */
	if (how & 64 && h->kind == WF_TCP_SEND) {
		h->flags |= WF_TCP_SPLIT;
		h->arg = 1 + h->arg % 64;
	}
	return h->len ? len : head;
}

/* Answers, one time in four not, and one that the bytes are not wanted. */
static void answer(struct world *w, const struct wf_nic_wc *wc)
{
	bool fits = wc->more <= RIG_MEMORY;

	w->asked++;
	if (w->asked % 4 == 3)
		return;
	(void)!wf_nic_place(
		w->rig.nic, wc->imm,
		fits && w->asked % 4 ? nic_rig_memory(&w->rig) : NULL, w);
	if (w->asked % 5 == 1)
		wf_nic_unplace(w->rig.nic, wc->imm);
}

static void poll_all(struct world *w)
{
	struct wf_nic_wc wc[16];
	struct wf_nic_placed placed[4];
	int n;

	while ((n = wf_nic_placed(w->rig.nic, placed, 4)) > 0) {
		for (int i = 0; i < n; i++)
			need(placed[i].arg == w && !placed[i].failed);
	}
	while ((n = wf_nic_cq_poll(w->rig.cq, wc, 16)) > 0) {
		for (int i = 0; i < n; i++) {
			if (wc[i].flags & WF_NIC_WC_ASKS)
				answer(w, &wc[i]);
			nic_rig_count(&w->rig, &wc[i]);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world w;
	static _Alignas(8) uint8_t frame[2048];

	if (!size)
		return 0;
	open_world(&w);
	join(&w, data[0] & 1);
	while (size >= 3) {
		uint8_t how = data[0];
		size_t len = (data[1] | data[2] << 8) % 400, cut;

		data += 3;
		size -= 3;
		if (len > size)
			len = size;
		memset(frame, 0, sizeof(frame));
		memcpy(frame, data, len);
		data += len;
		size -= len;
		len = dress(&w, how, frame, len);
		/* In two pieces, with progress between them. */
		cut = how & 128 ? len * (how & 7) / 8 : 0;
		(void)!send(w.fd, frame, cut, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (cut)
			wf_nic_progress(w.rig.nic);
		(void)!send(w.fd, frame + cut, len - cut,
			    MSG_NOSIGNAL | MSG_DONTWAIT);
		if (how & 1)
			wf_nic_progress(w.rig.nic);
		if (how & 2)
			poll_all(&w);
		wf_fuzz_stats.slots++;
	}
	for (int i = 0; i < 4; i++)
		wf_nic_progress(w.rig.nic);
	nic_rig_check(&w.rig);
	poll_all(&w);
	/* Each request of ours ends once, whatever the peer sent about it. */
	wf_nic_qp_flush(w.rig.qp);
	poll_all(&w);
	need(w.rig.completions == w.rig.requests);
	nic_rig_check(&w.rig);
	close_world(&w);
	return 0;
}
