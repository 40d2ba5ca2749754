/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A shared receive context: messages to any of the endpoints bound to it fill
 * the buffers posted there. Tagged and untagged, posted before and after the
 * message arrives, from other processes and from each other. Completions go to
 * the queue of the endpoint that received the message: here all endpoints share
 * one, in srx_queues.c each has its own.
 */
#include "msg_util.h"

#define EPS 3
#define LARGE 200000

/* Endpoints of one process that share a receive context. */
struct group {
	struct fid_ep *srx;
	struct fid_cntr *cntr; /* of all receives */
	struct fid_cq *rxcq;
	struct weft_test t[EPS];
	fi_addr_t to[EPS]; /* in the AV that they share */
	enum fi_threading threading;
};

static void bind(struct weft_test *t, void *arg)
{
	struct group *g = arg;

	if (!g->srx) {
		CHECK(t->info->domain_attr->max_ep_srx_ctx > 0);
		CHECK_OK(fi_srx_context(t->domain, t->info->rx_attr, &g->srx,
					NULL));
	}
	CHECK_OK(fi_ep_bind(t->ep, &g->srx->fid, 0));
	if (!g->cntr)
		g->cntr = weft_test_cntr(t, FI_RECV, FI_WAIT_NONE);
	else
		CHECK_OK(fi_ep_bind(t->ep, &g->cntr->fid, FI_RECV));
}

static void group_open(struct group *g)
{
	struct weft_test_opts opts = {
		.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV |
			FI_MULTI_RECV,
		.threading = g->threading,
		.shared_rx = true,
		.prepare = bind,
		.prepare_arg = g,
	};

	for (int i = 0; i < EPS; i++) {
		weft_test_open(&g->t[i], &opts);
		CHECK_EQ(g->t[i].info->ep_attr->rx_ctx_cnt, FI_SHARED_CONTEXT);
		opts.sibling = &g->t[0];
		opts.same_cqs = true;
		g->to[i] = weft_test_know(&g->t[0], &g->t[i]);
	}
	g->rxcq = g->t[0].rxcq;
}

static void group_close(struct group *g)
{
	weft_test_close(&g->t[2]);
	weft_test_close(&g->t[1]);
	/* One endpoint is still bound. */
	CHECK_EQ(fi_close(&g->srx->fid), -FI_EBUSY);
	CHECK_OK(fi_close(&g->t[0].ep->fid));
	g->t[0].ep = NULL;
	CHECK_OK(fi_close(&g->srx->fid));
	weft_test_close(&g->t[0]);
}

static void post(struct group *g, void *buf, size_t len, bool tagged,
		 uint64_t tag, fi_addr_t from, void *context)
{
	if (tagged)
		POST(fi_trecv(g->srx, buf, len, NULL, from, tag, 0, context));
	else
		POST(fi_recv(g->srx, buf, len, NULL, from, context));
}

/* -- from another process --------------------------------------------------- */

static const size_t sizes[] = { 8, 3000, LARGE };

#define WAYS (COUNT_OF(sizes) * EPS * 4)

/* The same on both sides. */
struct way {
	size_t len;
	int to;
	bool tagged;
	bool late; /* posted after the message has arrived */
};

static struct way way_of(size_t i)
{
	return (struct way){
		.tagged = i % 2,
		.late = i / 2 % 2,
		.to = (int)(i / 4 % EPS),
		.len = sizes[i / 4 / EPS],
	};
}

static void sender(struct weft_test_line *line, void *arg)
{
	const struct weft_test_opts opts = { 0 };
	uint8_t names[EPS][WEFT_TEST_NAME_MAX], *buf = msg_alloc(LARGE);
	fi_addr_t to[EPS];
	struct weft_test t;

	(void)arg;
	weft_test_open(&t, &opts);
	weft_test_put(line, t.name, sizeof(t.name));
	CHECK(weft_test_get(line, names, sizeof(names)));
	for (int i = 0; i < EPS; i++)
		to[i] = weft_test_insert(&t, names[i]);
	for (size_t i = 0; i < WAYS; i++) {
		struct way w = way_of(i);

		weft_test_fill(buf, w.len, i);
		if (!w.late)
			weft_test_sync(line);
		if (w.tagged)
			CHECK_OK(weft_test_tsend(&t, buf, w.len, to[w.to], i,
						 buf));
		else
			CHECK_OK(weft_test_send(&t, buf, w.len, to[w.to], buf));
		if (w.late)
			weft_test_sync(line);
		weft_test_wait_ok(t.txcq, buf);
	}
	weft_test_sync(line);
	weft_test_close(&t);
	free(buf);
}

static void receive(struct group *g, struct weft_test_line *line)
{
	uint8_t *buf = msg_alloc(LARGE), name[WEFT_TEST_NAME_MAX];
	struct weft_test_comp comp;
	struct fi_context context;
	fi_addr_t from;

	CHECK(weft_test_get(line, name, sizeof(name)));
	from = weft_test_insert(&g->t[0], name);
	for (int i = 0; i < EPS; i++)
		weft_test_put(line, g->t[i].name, sizeof(name));
	for (size_t i = 0; i < WAYS; i++) {
		struct way w = way_of(i);

		if (w.late)
			weft_test_sync(line);
		if (w.late) /* lets it arrive */
			weft_test_progress_for(1);
		post(g, buf, LARGE, w.tagged, i, FI_ADDR_UNSPEC, &context);
		if (!w.late)
			weft_test_sync(line);
		weft_test_wait(g->rxcq, &comp);
		CHECK_EQ(comp.ret, 1);
		CHECK(comp.entry.op_context == &context);
		CHECK_EQ(comp.entry.flags,
			 FI_RECV | (w.tagged ? FI_TAGGED : FI_MSG));
		CHECK_EQ(comp.entry.len, w.len);
		CHECK_EQ(comp.src, from);
		CHECK(weft_test_holds(buf, w.len, i));
		CHECK(!weft_test_poll(g->rxcq, &comp));
		weft_test_count(g->cntr, i + 1);
	}
	weft_test_sync(line);
	free(buf);
}

static void test_process(struct group *g)
{
	struct weft_test_line line;

	weft_test_fork(&line, sender, NULL);
	receive(g, &line);
	weft_test_join(&line);
}

/* -- among themselves ------------------------------------------------------ */

/* Buffers run out and are posted again; no message is lost, and the order of
 * one sender to one endpoint is kept. */
static void test_flood(struct group *g)
{
	enum { MESSAGES = 300 };
	static uint64_t in[MESSAGES];
	static struct fi_context contexts[MESSAGES];
	uint64_t last[EPS] = { 0 }, out;
	int posted = 0, taken = 0;

	for (out = 1; out <= MESSAGES; out++) {
		POST(fi_inject(g->t[0].ep, &out, 8, g->to[out % EPS]));
		if (out % 2 && posted < MESSAGES) {
			post(g, &in[posted], 8, false, 0, FI_ADDR_UNSPEC,
			     &contexts[posted]);
			posted++;
		}
	}
	for (uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;
	     taken < MESSAGES;) {
		struct weft_test_comp comp;
		ptrdiff_t which;

		CHECK(weft_test_ms() < end);
		if (posted < MESSAGES) {
			post(g, &in[posted], 8, false, 0, FI_ADDR_UNSPEC,
			     &contexts[posted]);
			posted++;
		}
		if (!weft_test_poll(g->rxcq, &comp))
			continue;
		CHECK_EQ(comp.ret, 1);
		which = (struct fi_context *)comp.entry.op_context - contexts;
		CHECK(which >= 0 && which < MESSAGES);
		CHECK(in[which] > last[in[which] % EPS]);
		last[in[which] % EPS] = in[which];
		taken++;
	}
}

/* Cancelling, truncation, and receiving from one source only. */
static void test_rest(struct group *g)
{
	uint8_t buf[64], other[64];
	struct fi_context one, two;
	struct weft_test_comp comp;
	const fi_addr_t *to = g->to;

	/* Only from 1; a message of 2 matches the second receive. */
	post(g, buf, 64, true, 9, to[1], &one);
	post(g, other, 64, true, 9, FI_ADDR_UNSPEC, &two);
	POST(fi_tinject(g->t[2].ep, "two", 4, to[0], 9));
	weft_test_wait(g->rxcq, &comp);
	CHECK(comp.entry.op_context == &two);
	POST(fi_tinject(g->t[1].ep, "one", 4, to[2], 9));
	weft_test_wait(g->rxcq, &comp);
	CHECK(comp.entry.op_context == &one);
	CHECK(!strcmp((char *)buf, "one") && !strcmp((char *)other, "two"));
	/* The buffer is too small. */
	post(g, buf, 2, true, 9, FI_ADDR_UNSPEC, &one);
	POST(fi_tinject(g->t[1].ep, "one", 4, to[2], 9));
	weft_test_wait_err(g->rxcq, &one, FI_ETRUNC);
	/* Several messages in one buffer. */
	{
		static uint8_t roomy[65536];
		struct iovec iov = { roomy, sizeof(roomy) };
		struct fi_msg msg = { .msg_iov = &iov,
				      .iov_count = 1,
				      .addr = FI_ADDR_UNSPEC,
				      .context = &one };

		POST(fi_recvmsg(g->srx, &msg, FI_MULTI_RECV));
		for (int i = 0; i < EPS; i++) {
			POST(fi_inject(g->t[0].ep, "part", 5, to[i]));
			weft_test_wait(g->rxcq, &comp);
			CHECK_EQ(comp.ret, 1);
			CHECK_EQ(comp.entry.len, 5);
			CHECK(comp.entry.op_context == &one);
			CHECK(!strcmp(comp.entry.buf, "part"));
		}
	}
	CHECK_OK(fi_cancel(&g->srx->fid, &one));
	/* Cancelled: a message that arrives now matches the next receive. */
	post(g, buf, 64, true, 9, FI_ADDR_UNSPEC, &one);
	post(g, other, 64, true, 9, FI_ADDR_UNSPEC, &two);
	CHECK_OK(fi_cancel(&g->srx->fid, &one));
	POST(fi_tinject(g->t[1].ep, "one", 4, to[0], 9));
	do
		weft_test_wait(g->rxcq, &comp);
	while (comp.ret == -FI_ECANCELED);
	CHECK(comp.entry.op_context == &two);
}

static void run(enum fi_threading threading)
{
	struct group g = { .threading = threading };

	group_open(&g);
	test_process(&g);
	test_flood(&g);
	test_rest(&g);
	group_close(&g);
}

int main(void)
{
	weft_test_begin(60);
	run(FI_THREAD_DOMAIN);
	run(FI_THREAD_SAFE);
	return 0;
}
