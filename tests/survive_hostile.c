/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers connect properly and then write invalid data into their rings, one
 * after the other, and are killed or close the connection, while an endpoint
 * serves a well-behaved peer: the messages of that peer arrive complete, and
 * nothing of the hostile peers is left. (fuzz/ring_peer.c tests what invalid
 * data does inside.)
 */
#include "common/fabric.h"
#include "common/raw.h"

#include <sys/socket.h>

#define BAD_PEERS 300
#define SLOTS 30
#define WILD 8
#define ROOM 100000

struct place {
	uint16_t endpoint;
	uint16_t own;
};

static void write_slot(struct weft_test_raw *raw, uint32_t number,
		       uint64_t *seed)
{
	struct wf_shm_slot *slot = weft_test_raw_slot(raw, number);
	uint32_t kind = weft_test_random(seed) % (WF_SHM_KIND_MAX + 1);
	uint32_t len = weft_test_random(seed) % 9000;

	for (int i = 0; i < WF_SHM_INLINE_MAX; i++)
		slot->payload[i] = (uint8_t)weft_test_random(seed);
	slot->tag = weft_test_random(seed) % 4;
	/* Half of them are almost valid. */
	if (weft_test_random(seed) & 1) {
		slot->parked.iov_count = 1;
		slot->parked.op = number;
		slot->parked.total = weft_test_random(seed) % (2 * ROOM);
		len = kind == WF_SHM_KIND_PARKED ? 0 : len % 41;
	}
	weft_test_raw_publish(slot, number, len, (uint8_t)kind,
			      (uint8_t)(weft_test_random(seed) & 0x7));
}

static void bad_peers(struct weft_test_line *line, void *arg)
{
	const struct place *place = arg;
	struct wf_shm_hello hello = weft_test_raw_hello(place->own);
	uint64_t seed = 4;

	(void)line;
	for (int i = 0; i < BAD_PEERS; i++) {
		struct wf_shm_welcome welcome;
		struct weft_test_raw raw;
		uint32_t count = 1 + weft_test_random(&seed) % SLOTS;
		char byte;

		CHECK(weft_test_raw_open(&raw, place->endpoint, &hello,
					 &welcome));
		for (uint32_t at = WF_SHM_SLOTS_AT; at < raw.bytes; at += 4) {
			uint32_t word = weft_test_random(&seed);

			/* Only the data area: slots follow below. */
			if (at >= wf_shm_data_at(WEFT_TEST_RAW_SLOTS))
				memcpy(raw.base + at, &word, 4);
		}
		for (uint32_t n = 0; n < count; n++)
			write_slot(&raw, n, &seed);
		/* The endpoint closes the connection, or the peer leaves in the
		 * middle. */
		weft_test_raw_recv(raw.sock, &byte, 1, 5);
		weft_test_raw_close(&raw);
	}
}

/* Receives that match whatever the hostile peers send. */
struct wild {
	struct weft_test *t;
	uint8_t *buf[WILD];
	struct fi_context context[WILD];
	int taken;
	int failed;
};

static void wild_post(struct wild *wild, int i)
{
	CHECK_OK(weft_test_trecv(wild->t, wild->buf[i], ROOM, 0, 3,
				 &wild->context[i]));
}

static void wild_turn(struct wild *wild)
{
	struct weft_test_comp comp;

	for (int n = 0; n < WILD && weft_test_poll(wild->t->rxcq, &comp); n++) {
		struct fi_context *context = comp.entry.op_context;
		int i = (int)(context - wild->context);

		/* Remote CQ data: a write of 0 bytes needs no key. */
		if (comp.ret == 1 && (comp.entry.flags & FI_REMOTE_WRITE))
			continue;
		CHECK(i >= 0 && i < WILD);
		CHECK(comp.ret == 1 || comp.ret < 0);
		CHECK(comp.ret < 0 || comp.entry.len <= ROOM);
		wild->taken++;
		wild->failed += comp.ret < 0;
		wild_post(wild, i);
	}
}

int main(void)
{
	struct weft_test_traces before;
	struct weft_test_line line;
	struct weft_test t, good;
	struct wild wild = { .t = &t };
	struct place place;
	fi_addr_t to_good;
	uint64_t served = 0;
	char byte;

	weft_test_begin(100);
	weft_test_open(&t, NULL);
	place.own = weft_test_port(&t);
	weft_test_close(&t);
	weft_test_open(&t, NULL);
	weft_test_open(&good, NULL);
	place.endpoint = weft_test_port(&t);
	to_good = weft_test_know(&t, &good);
	for (int i = 0; i < WILD; i++) {
		wild.buf[i] = malloc(ROOM);
		CHECK(wild.buf[i]);
		wild_post(&wild, i);
	}
	weft_test_exchange(&t, to_good, &good, 8, 1000);
	weft_test_look(&before);
	weft_test_fork(&line, bad_peers, &place);
	while (recv(line.fd, &byte, 1, MSG_DONTWAIT) < 0) {
		wild_turn(&wild);
		weft_test_exchange(&t, to_good, &good, served % 3000,
				   1000 + served);
		served++;
	}
	weft_test_join(&line);
	weft_test_progress_for(20);
	wild_turn(&wild);
	weft_test_check_clean(&before);
	weft_test_exchange(&t, to_good, &good, 50000, 5);
	weft_test_close(&t);
	weft_test_close(&good);
	for (int i = 0; i < WILD; i++)
		free(wild.buf[i]);
	printf("%d bad peers: %d messages taken, %d of them failed; "
	       "%llu good ones served\n",
	       BAD_PEERS, wild.taken, wild.failed, (unsigned long long)served);
	CHECK(wild.taken && wild.failed && served);
	return 0;
}
