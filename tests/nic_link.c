/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The software NIC between two network namespaces over a link that loses,
 * duplicates, reorders, delays and limits packets, or is down for two seconds:
 * every message arrives once and unchanged, every request completes once with
 * success, and memory stays bounded.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "common/check.h"
#include "common/wire.h"
#include "nic/open.h"

#define MESSAGES_MOST 4000u
#define BIG (1u << 20)
#define RECEIVES 256u
#define PLACES 128u
#define ROOM 2048u
#define GROWTH (48u << 20)
#define LOST (60 * WF_NS_PER_S)

struct scene {
	const char *name;
	uint32_t loss, duplicate, reorder, delay_us;
	uint64_t rate;
	uint32_t queue;
	bool cut;
	uint32_t messages;
	uint32_t big; /* bytes of a write and a read; 0: the maximum */
};

static const struct scene scenes[] = {
	{ .name = "clean", .messages = 4000 },
	{ .name = "loss 0.1 %", .loss = 1000, .messages = 4000 },
	{ .name = "loss 1 %", .loss = 10000, .messages = 4000 },
	{ .name = "loss 5 %", .loss = 50000, .messages = 2000 },
	{ .name = "loss 10 %", .loss = 100000, .messages = 1000 },
	{ .name = "reorder 25 %, 2 ms",
	  .reorder = 250000,
	  .delay_us = 2000,
	  .messages = 1000,
	  .big = BIG / 4 },
	{ .name = "duplicates 10 %", .duplicate = 100000, .messages = 3000 },
	{ .name = "delay 50 ms",
	  .delay_us = 50000,
	  .messages = 300,
	  .big = BIG / 8 },
	{ .name = "delay 20 ms, loss 1 %, reorder 25 %, duplicates 1 %",
	  .delay_us = 20000,
	  .loss = 10000,
	  .reorder = 250000,
	  .duplicate = 10000,
	  .messages = 300,
	  .big = BIG / 16 },
	{ .name = "20 Mbit/s, queue of 64 KiB",
	  .rate = 2500000,
	  .queue = 65536,
	  .messages = 1000 },
	{ .name = "cut for 2 s", .cut = true, .messages = 3000 },
};
#define SCENES (sizeof(scenes) / sizeof(scenes[0]))

/* State that the hosts share; it is in wire->user. */
struct board {
	_Atomic unsigned step[WIRE_HOSTS];
	struct wf_addr addr[WIRE_HOSTS];
	uint16_t qpn[WIRE_HOSTS];
	uint32_t rkey;
	uint64_t memory;
	_Atomic unsigned received;
};

struct host {
	struct wire *wire;
	struct board *board;
	int me;
	struct wf_nic *nic;
	struct wf_nic_cq *cq;
	struct wf_nic_qp *qp;
	struct wf_nic_mr mr;
	uint8_t *memory;
	uint16_t ah;
	uint64_t end;
	uint8_t count[MESSAGES_MOST + 2];
	unsigned done;
};

static struct board *board_of(struct wire *wire)
{
	return (struct board *)(((uintptr_t)wire->user + 63) & ~(uintptr_t)63);
}

static uint32_t size_of(uint32_t number)
{
	return 8 + number * 2654435761u % 1300;
}

static uint8_t byte_of(uint32_t number, uint32_t i)
{
	return (uint8_t)((number * 40503u + i * 2654435761u) >> 9);
}

static void fill(uint8_t *at, uint32_t number, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		at[i] = byte_of(number, i);
}

static bool filled(const uint8_t *at, uint32_t number, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++) {
		if (at[i] != byte_of(number, i))
			return false;
	}
	return true;
}

static size_t resident(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file || fscanf(file, "%*u %lu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Makes progress, or sleeps while there is nothing to do: three processes share
 * two processors, which may be busy. */
static void work(struct host *h)
{
	struct pollfd fd = { .fd = wf_nic_wait_fd(h->nic), .events = POLLIN };
	struct timespec wait = { .tv_nsec = WF_NS_PER_MS };
	uint64_t until, now;

	if (wf_nic_progress(h->nic) || wf_nic_wait_begin(h->nic, h->cq, &until))
		return;
	now = wf_base_clock_ns();
	if (until < now + WF_NS_PER_MS)
		wait.tv_nsec = until > now ? (long)(until - now) : 0;
	ppoll(&fd, 1, &wait, NULL);
	wf_nic_wait_end(h->nic);
}

static void meet(struct host *h, unsigned step)
{
	h->board->step[h->me] = step;
	while (h->board->step[!h->me] < step)
		work(h);
}

static int open_host(struct host *h)
{
	struct wf_nic_attr attr = { .fd = -1, .connect_ns = LOST };
	struct wf_nic_qp_attr qp = { .sq_entries = 256,
				     .rq_entries = RECEIVES,
				     .rnr_retry = WF_NIC_RNR_FOREVER };

	attr.addr.in.sin_family = AF_INET;
	attr.addr.in.sin_addr.s_addr = htonl(0x0a630001u + (uint32_t)h->me);
	CHECK(!wf_nic_open("udp", &attr, &h->nic));
	CHECK(!wf_nic_cq_create(h->nic, 1024, &h->cq));
	qp.send_cq = h->cq;
	qp.recv_cq = h->cq;
	CHECK(!wf_nic_qp_create(h->nic, &qp, &h->qp));
	h->memory = calloc(1, 2 * BIG + RECEIVES * ROOM);
	CHECK(h->memory);
	CHECK(!wf_nic_mr_reg(h->nic, h->memory, 2 * BIG + RECEIVES * ROOM,
			     WF_NIC_LOCAL_WRITE | WF_NIC_REMOTE_READ |
				     WF_NIC_REMOTE_WRITE,
			     &h->mr));
	h->board->addr[h->me] = *wf_nic_socket(h->nic);
	h->board->qpn[h->me] = wf_nic_qp_num(h->qp);
	if (h->me) {
		h->board->rkey = h->mr.rkey;
		h->board->memory = (uintptr_t)h->memory;
	}
	return 0;
}

/* -- the receiver ----------------------------------------------------------- */

static void post_receive(struct host *h, uint64_t place)
{
	struct wf_nic_sge sge = { h->memory + 2 * BIG + place * ROOM, ROOM,
				  h->mr.lkey };

	CHECK(!wf_nic_post_recv(h->qp, place, &sge, false));
}

static void receive(struct host *h)
{
	struct wf_nic_wc wc;

	while (wf_nic_cq_poll(h->cq, &wc, 1)) {
		const uint8_t *at = h->memory + 2 * BIG + wc.wr_id * ROOM;
		uint32_t number;

		CHECK(wc.status == WF_NIC_OK);
		memcpy(&number, at, 4);
		CHECK(number < MESSAGES_MOST && wc.len == size_of(number));
		CHECK(filled(at + 4, number, wc.len - 4));
		CHECK(!h->count[number]++); /* received once */
		h->board->received++;
		post_receive(h, wc.wr_id);
	}
	work(h);
}

/* -- the sender ------------------------------------------------------------- */

static void reap(struct host *h)
{
	struct wf_nic_wc wc;

	work(h);
	while (wf_nic_cq_poll(h->cq, &wc, 1)) {
		if (wc.status != WF_NIC_OK)
			fprintf(stderr, "request %llu: %s\n",
				(unsigned long long)wc.wr_id,
				wf_nic_status_str(wc.status));
		CHECK(wc.status == WF_NIC_OK);
		CHECK(!h->count[wc.wr_id]++);
		h->done++;
	}
	CHECK(wf_base_clock_ns() < h->end);
}

static struct wf_nic_wr request(struct host *h, uint64_t id)
{
	return (struct wf_nic_wr){ .wr_id = id,
				   .ah = h->ah,
				   .qpn = h->board->qpn[1] };
}

static void send_message(struct host *h, uint32_t number)
{
	uint8_t *at = h->memory + 2 * BIG + number % PLACES * ROOM;
	uint32_t len = size_of(number);
	struct wf_nic_wr wr = request(h, number);
	struct wf_nic_sge sge = { at, len, h->mr.lkey };

	while (number >= PLACES && !h->count[number - PLACES])
		reap(h);
	memcpy(at, &number, 4);
	fill(at + 4, number, len - 4);
	while (wf_nic_post_send(h->qp, &wr, &sge, 1))
		reap(h);
}

static void send_big(struct host *h, uint32_t id, uint32_t len, bool read)
{
	struct wf_nic_remote there = { .addr = h->board->memory,
				       .rkey = h->board->rkey };
	struct wf_nic_sge sge = { h->memory + (read ? BIG : 0), len,
				  h->mr.lkey };
	struct wf_nic_wr wr = request(h, id);

	CHECK(!(read ? wf_nic_post_read(h->qp, &wr, &there, &sge) :
		       wf_nic_post_write(h->qp, &wr, &there, &sge)));
	while (!h->count[id])
		reap(h);
}

static void send_all(struct host *h, const struct scene *scene)
{
	const struct wf_nic_counters *c = wf_nic_counters(h->nic);
	uint32_t big = scene->big ? scene->big : BIG;
	uint64_t start = wf_base_clock_ns();

	for (uint32_t i = 0; i < scene->messages; i++) {
		if (scene->cut && i == scene->messages / 2)
			h->wire->rules.down_until =
				wf_base_clock_ns() + 2 * WF_NS_PER_S;
		send_message(h, i);
	}
	while (h->done < scene->messages)
		reap(h);
	/* Written to the peer and read back: the bytes are the same. */
	fill(h->memory, 77, big);
	send_big(h, MESSAGES_MOST, big, false);
	send_big(h, MESSAGES_MOST + 1, big, true);
	CHECK(filled(h->memory + BIG, 77, big));
	printf("%-54s %5.2f s, %llu of %llu packets again, %llu probes\n",
	       scene->name, (double)(wf_base_clock_ns() - start) / 1e9,
	       (unsigned long long)wf_nic_counter(&c->retransmits),
	       (unsigned long long)wf_nic_counter(&c->tx_packets),
	       (unsigned long long)wf_nic_counter(&c->probes));
	fflush(stdout);
}

static void set_rules(struct wire_rules *rules, const struct scene *scene)
{
	rules->loss = scene->loss;
	rules->duplicate = scene->duplicate;
	rules->reorder = scene->reorder;
	rules->delay_us = scene->delay_us;
	rules->queue = scene->queue;
	rules->rate = scene->rate;
}

static void play(struct host *h, const struct scene *scene, unsigned *step)
{
	memset(h->count, 0, sizeof(h->count));
	h->done = 0;
	h->end = wf_base_clock_ns() + LOST;
	CHECK(!open_host(h));
	if (!h->me) {
		set_rules(&h->wire->rules, scene);
		h->board->received = 0;
	}
	meet(h, ++*step);
	CHECK(!wf_nic_ah_create_socket(h->nic, &h->board->addr[!h->me],
				       &h->ah));
	for (uint64_t i = 0; h->me && i < RECEIVES; i++)
		post_receive(h, i);
	if (h->me) {
		unsigned last = *step + 1;

		while (h->board->step[0] < last)
			receive(h);
		CHECK(h->board->received == scene->messages);
	} else {
		send_all(h, scene);
	}
	meet(h, ++*step);
	wf_nic_qp_destroy(h->qp);
	CHECK(!wf_nic_cq_destroy(h->cq));
	wf_nic_close(h->nic);
	free(h->memory);
}

static int host_main(struct wire *wire, int me)
{
	static struct host h;
	unsigned step = 0;
	size_t before = 0;

	h.wire = wire;
	h.board = board_of(wire);
	h.me = me;
	for (size_t i = 0; i < SCENES; i++) {
		play(&h, &scenes[i], &step);
		/* Later scenes may not use more memory than the first. */
		if (!before)
			before = resident();
	}
	CHECK(resident() < before + GROWTH);
	return 0;
}

int main(void)
{
	struct wire *wire = wire_create();

	CHECK(wire);
	return wire_run(wire, 1500, host_main);
}
