/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel forbids process_vm_readv and process_vm_writev: for one side, the
 * other, or both; from the start, by FI_WEFT_CMA, or suddenly while large
 * messages are in flight. Every message arrives complete, through the ring.
 */
#include "common/fabric.h"
#include "common/forbid.h"

#define MESSAGES 40
#define WINDOW 4
#define LARGEST 3000000

enum { SENDER = 1, RECEIVER = 2 };

struct variant {
	const char *name;
	int forbidden; /* for whom, from the start */
	int suddenly;  /* for whom, in the middle */
	int by_param;
	bool both_ways;
};

static const struct variant variants[] = {
	{ "allowed", 0, 0, 0, false },
	{ "forbidden to the sender", SENDER, 0, 0, false },
	{ "forbidden to the receiver", RECEIVER, 0, 0, false },
	{ "forbidden to both", SENDER | RECEIVER, 0, 0, true },
	{ "switched off", 0, 0, SENDER | RECEIVER, true },
	{ "switched off at the receiver", 0, 0, RECEIVER, false },
	{ "suddenly forbidden to the sender", 0, SENDER, 0, false },
	{ "suddenly forbidden to the receiver", 0, RECEIVER, 0, false },
	{ "suddenly forbidden to both", 0, SENDER | RECEIVER, 0, true },
};

static size_t size_of(uint64_t number)
{
	static const size_t sizes[] = { 17000, 65536, 300001, LARGEST, 1 };

	return sizes[number % (sizeof(sizes) / sizeof(sizes[0]))];
}

struct stream {
	struct weft_test *t;
	fi_addr_t peer;
	uint8_t *buf[WINDOW];
	struct fi_context context[WINDOW];
	bool busy[WINDOW]; /* they complete in any order */
	uint64_t posted;
	uint64_t done;
	bool sends;
};

static void stream_open(struct stream *s, struct weft_test *t, fi_addr_t peer,
			bool sends)
{
	*s = (struct stream){ .t = t, .peer = peer, .sends = sends };
	for (int i = 0; i < WINDOW; i++) {
		s->buf[i] = malloc(LARGEST);
		CHECK(s->buf[i]);
	}
}

static void stream_close(struct stream *s)
{
	for (int i = 0; i < WINDOW; i++)
		free(s->buf[i]);
}

static void stream_turn(struct stream *s)
{
	struct weft_test_comp comp;
	struct fi_context *context;
	int i;

	i = (int)(s->posted % WINDOW);
	if (s->posted < MESSAGES && !s->busy[i]) {
		if (s->sends) {
			weft_test_fill(s->buf[i], size_of(s->posted),
				       s->posted);
			CHECK_OK(weft_test_tsend(s->t, s->buf[i],
						 size_of(s->posted), s->peer,
						 s->posted, &s->context[i]));
		} else {
			memset(s->buf[i], 0, size_of(s->posted));
			CHECK_OK(weft_test_trecv(s->t, s->buf[i], LARGEST,
						 s->posted, 0, &s->context[i]));
		}
		s->busy[i] = true;
		s->posted++;
	}
	if (!weft_test_poll(s->sends ? s->t->txcq : s->t->rxcq, &comp))
		return;
	if (comp.ret < 0)
		FAIL("%s: error %d", s->sends ? "send" : "receive", comp.ret);
	context = comp.entry.op_context;
	i = (int)(context - s->context);
	s->busy[i] = false;
	s->done++;
	if (s->sends)
		return;
	CHECK_EQ(comp.entry.len, size_of(comp.entry.tag));
	CHECK(weft_test_holds(s->buf[i], comp.entry.len, comp.entry.tag));
}

static void run(struct weft_test_line *line, int me,
		const struct variant *variant)
{
	struct weft_test t;
	struct stream out, in;
	fi_addr_t peer;
	bool sends = me == SENDER || variant->both_ways;
	bool takes = me == RECEIVER || variant->both_ways;
	bool suddenly = variant->suddenly & me;

	if (variant->by_param & me)
		setenv("FI_WEFT_CMA", "0", 1);
	if (variant->forbidden & me)
		weft_test_forbid_cma();
	weft_test_open(&t, NULL);
	peer = weft_test_meet(&t, line);
	stream_open(&out, &t, peer, true);
	stream_open(&in, &t, peer, false);
	while ((sends && out.done < MESSAGES) ||
	       (takes && in.done < MESSAGES)) {
		if (sends)
			stream_turn(&out);
		if (takes)
			stream_turn(&in);
		if (suddenly && out.done + in.done == MESSAGES / 3) {
			weft_test_forbid_cma();
			suddenly = false;
		}
	}
	weft_test_sync(line);
	stream_close(&out);
	stream_close(&in);
	weft_test_close(&t);
}

static void run_sender(struct weft_test_line *line, void *arg)
{
	run(line, SENDER, arg);
}

/* Both sides are child processes, because a filter cannot be removed. */
static void run_both(struct weft_test_line *line, void *arg)
{
	struct weft_test_line to_sender;

	(void)line;
	weft_test_fork(&to_sender, run_sender, arg);
	run(&to_sender, RECEIVER, arg);
	weft_test_join(&to_sender);
}

int main(void)
{
	weft_test_begin(100);
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		struct variant variant = variants[i];
		struct weft_test_line line;

		printf("%s\n", variant.name);
		weft_test_fork(&line, run_both, &variant);
		weft_test_join(&line);
	}
	return 0;
}
