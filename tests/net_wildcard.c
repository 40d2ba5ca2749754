/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One endpoint with a peer on its own host and one on another: receives from
 * any source match the messages of both, which arrive through shared memory and
 * by packets at the same time. The messages of each peer match receives in the
 * order in which the receives were posted, none is lost or mixed up, and every
 * completion names its sender. (A long message may complete after a short one
 * that follows it.) Receives that name one peer match only its messages.
 */
#include <sched.h>

#include "common/net.h"
#include "msg_util.h"

#define COUNT 1500
#define DEPTH 32
#define LARGEST 200000
#define SENDERS 2

static const size_t sizes[] = { 16, 100, 1400, 5000, 20000, LARGEST };

static const struct weft_test_opts opts = {
	.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV,
};

struct head {
	uint64_t who;
	uint64_t number;
};

static size_t size_of(uint64_t number)
{
	return number % 100 == 7 ? LARGEST :
				   sizes[number % (COUNT_OF(sizes) - 1)];
}

/* -- who sends -------------------------------------------------------------- */

static void fill(uint8_t *buf, uint64_t who, uint64_t number)
{
	struct head head = { who, number };

	weft_test_fill(buf, size_of(number), number + who);
	memcpy(buf, &head, sizeof(head));
}

static void sender(struct weft_test_line *line, void *arg)
{
	uint64_t who = *(uint64_t *)arg;
	uint8_t *buf = msg_alloc(LARGEST);
	struct fi_context context;
	struct weft_test t;
	fi_addr_t peer;

	net_enter(who ? 1 : 0);
	weft_test_open(&t, &opts);
	peer = weft_test_meet(&t, line);
	for (int tagged = 0; tagged < 2; tagged++) {
		weft_test_sync(line);
		for (uint64_t i = 0; i < COUNT; i++) {
			/* Both peers have sent half of their messages before
			 * either continues. */
			if (i == COUNT / 2)
				weft_test_sync(line);
			fill(buf, who, i);
			if (tagged)
				CHECK_OK(weft_test_tsend(&t, buf, size_of(i),
							 peer, i, &context));
			else
				CHECK_OK(weft_test_send(&t, buf, size_of(i),
							peer, &context));
			weft_test_wait_ok(t.txcq, &context);
		}
	}
	fill(buf, who, COUNT);
	weft_test_sync(line);
	CHECK_OK(weft_test_send(&t, buf, size_of(COUNT), peer, &context));
	weft_test_wait_ok(t.txcq, &context);
	weft_test_sync(line);
	weft_test_close(&t);
	free(buf);
}

/* -- who receives ----------------------------------------------------------- */

struct slot {
	struct fi_context context;
	uint8_t *buf;
	int turn; /* number of the receive, in the order of posting */
};

static struct slot slots[DEPTH];

/* Number of the receive that each message matched; 0: it has not arrived. */
static int turns[SENDERS][COUNT + 1];

static void post(struct weft_test *t, struct slot *slot, bool tagged)
{
	if (tagged)
		CHECK_OK(weft_test_trecv(t, slot->buf, LARGEST, 0, ~0ull,
					 &slot->context));
	else
		CHECK_OK(weft_test_recv(t, slot->buf, LARGEST, &slot->context));
}

static void check(const struct weft_test_comp *comp, const struct slot *slot,
		  const fi_addr_t *peers)
{
	uint8_t *want = msg_alloc(LARGEST);
	struct head head;

	CHECK_EQ(comp->ret, 1);
	memcpy(&head, slot->buf, sizeof(head));
	CHECK(head.who < SENDERS);
	CHECK(head.number <= COUNT);
	CHECK_EQ(turns[head.who][head.number], 0);
	turns[head.who][head.number] = slot->turn;
	CHECK_EQ(comp->src, peers[head.who]);
	CHECK_EQ(comp->entry.len, size_of(head.number));
	fill(want, head.who, head.number);
	CHECK(!memcmp(want, slot->buf, size_of(head.number)));
	free(want);
}

/* Returns how often two consecutive messages had different senders. */
static unsigned int receive(struct weft_test *t, const fi_addr_t *peers,
			    struct weft_test_line *lines, bool tagged)
{
	unsigned int changes = 0;
	fi_addr_t last = FI_ADDR_UNSPEC;
	int posted = DEPTH;

	for (int i = 0; i < SENDERS * COUNT; i++) {
		struct weft_test_comp comp;
		struct slot *slot;

		weft_test_wait(t->rxcq, &comp);
		slot = (struct slot *)comp.entry.op_context;
		check(&comp, slot, peers);
		changes += comp.src != last;
		last = comp.src;
		if (posted++ < SENDERS * COUNT) {
			slot->turn = posted;
			post(t, slot, tagged);
		}
		if (i + 1 != SENDERS * COUNT / 2)
			continue;
		for (int j = 0; j < SENDERS; j++)
			weft_test_sync(&lines[j]);
	}
	for (int who = 0; who < SENDERS; who++) {
		for (int i = 0; i < COUNT; i++)
			CHECK(turns[who][i] > (i ? turns[who][i - 1] : 0));
	}
	memset(turns, 0, sizeof(turns));
	return changes;
}

/* One receive posted for each peer, in the opposite order of the messages. */
static void receive_named(struct weft_test *t, const fi_addr_t *peers,
			  struct weft_test_line *lines)
{
	for (int i = SENDERS - 1; i >= 0; i--)
		POST(fi_recv(t->ep, slots[i].buf, LARGEST, NULL, peers[i],
			     &slots[i].context));
	for (int i = 0; i < SENDERS; i++)
		weft_test_sync(&lines[i]);
	for (int i = 0; i < SENDERS; i++) {
		struct weft_test_comp comp;
		struct slot *slot;

		weft_test_wait(t->rxcq, &comp);
		slot = (struct slot *)comp.entry.op_context;
		check(&comp, slot, peers);
		CHECK_EQ(comp.src, peers[slot - slots]);
	}
}

int main(void)
{
	struct weft_test_line lines[SENDERS];
	struct weft_test_traces before, now;
	fi_addr_t peers[SENDERS];
	struct weft_test t;

	weft_test_begin(100);
	net_begin(1500);
	for (int i = 0; i < DEPTH; i++)
		slots[i].buf = msg_alloc(LARGEST);
	for (uint64_t i = 0; i < SENDERS; i++)
		weft_test_fork(&lines[i], sender, &i);
	weft_test_look(&before);
	weft_test_open(&t, &opts);
	for (int i = 0; i < SENDERS; i++)
		peers[i] = weft_test_meet(&t, &lines[i]);
	for (int tagged = 0; tagged < 2; tagged++) {
		unsigned int changes;

		for (int i = 0; i < DEPTH; i++) {
			slots[i].turn = i + 1;
			post(&t, &slots[i], tagged);
		}
		for (int i = 0; i < SENDERS; i++)
			weft_test_sync(&lines[i]);
		changes = receive(&t, peers, lines, tagged);
		printf("%s: changed between both %u times\n",
		       tagged ? "tagged" : "plain", changes);
		CHECK(changes > 2);
	}
	receive_named(&t, peers, lines);
	/* Both transports were used. */
	weft_test_look(&now);
	CHECK(now.rings > before.rings);
	CHECK(net_sent("link0") > 0);
	for (int i = 0; i < SENDERS; i++)
		weft_test_sync(&lines[i]);
	for (int i = 0; i < SENDERS; i++)
		weft_test_join(&lines[i]);
	weft_test_close(&t);
	for (int i = 0; i < DEPTH; i++)
		free(slots[i].buf);
	return 0;
}
