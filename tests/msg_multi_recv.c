/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multi-receive buffers as MPICH uses them: several are posted, and messages
 * fill each of them one after the other. The lengths determine where each
 * message must be.
 */
#include "msg_util.h"

struct plan {
	size_t room;	/* of a buffer */
	size_t min;	/* FI_OPT_MIN_MULTI_RECV */
	size_t longest; /* of a message; at most min, so that none is truncated */
	size_t count;	/* messages */
	size_t buffers;
	bool late; /* the messages arrive before the first buffer is posted */
};

static const struct plan plans[] = {
	{ 4096, 64, 64, 300, 8, false },
	{ 4096, 64, 64, 300, 8, true },
	/* MPICH uses 8 x 1 MiB and 16 KiB. */
	{ 1 << 20, 16384, 16384, 700, 8, false },
	{ 1 << 20, 200000, 200000, 50, 8, false },
	{ 1 << 20, 200000, 200000, 50, 8, true },
};

static size_t length(const struct plan *plan, size_t i)
{
	uint64_t seed = i;

	return weft_test_random(&seed) % (plan->longest + 1);
}

static void sender(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	const struct plan *plan = arg;
	uint8_t **bufs = calloc(plan->count, sizeof(*bufs));

	CHECK(bufs);
	if (!plan->late)
		weft_test_sync(line);
	for (size_t i = 0; i < plan->count; i++) {
		size_t len = length(plan, i);

		bufs[i] = msg_alloc(len);
		weft_test_fill(bufs[i], len, i);
		POST(fi_senddata(t->ep, bufs[i], len, NULL, i, peer, NULL));
	}
	if (plan->late)
		weft_test_sync(line);
	for (size_t i = 0; i < plan->count; i++)
		weft_test_wait_ok(t->txcq, NULL);
	for (size_t i = 0; i < plan->count; i++)
		free(bufs[i]);
	free(bufs);
	weft_test_sync(line);
}

/* -- receiver -------------------------------------------------------------- */

struct place {
	size_t buffer;
	size_t offset;
};

/* Computes where each message goes, and how many buffers are used up. */
static size_t foresee(const struct plan *plan, struct place *places)
{
	struct place at = { 0, 0 };

	for (size_t i = 0; i < plan->count; i++) {
		places[i] = at;
		at.offset += length(plan, i);
		if (plan->room - at.offset < plan->min)
			at = (struct place){ at.buffer + 1, 0 };
	}
	CHECK(at.buffer < plan->buffers);
	return at.buffer;
}

static void check_message(const struct plan *plan,
			  const struct weft_test_comp *comp,
			  const struct place *places, uint8_t *memory)
{
	size_t i = comp->entry.data;
	uint8_t *buffer = memory + places[i].buffer * plan->room;

	CHECK_EQ(comp->ret, 1);
	CHECK(i < plan->count);
	CHECK_EQ(comp->entry.flags & ~FI_MULTI_RECV,
		 FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA);
	CHECK_EQ(comp->entry.len, length(plan, i));
	/* Bug of libfabric's shm: wrong offset of unexpected messages. */
	CHECK_EQ((uint8_t *)comp->entry.buf - buffer, places[i].offset);
	CHECK(comp->entry.op_context == buffer);
	CHECK(weft_test_holds(comp->entry.buf, comp->entry.len, i));
}

static void set_min(struct weft_test *t, size_t min)
{
	size_t got = 0, size = sizeof(got);

	CHECK_OK(fi_setopt(&t->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			   &min, sizeof(min)));
	CHECK_OK(fi_getopt(&t->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			   &got, &size));
	CHECK_EQ(got, min);
	CHECK_EQ(size, sizeof(got));
}

static void post_all(struct weft_test *t, const struct plan *plan,
		     uint8_t *memory)
{
	for (size_t i = 0; i < plan->buffers; i++) {
		struct iovec iov = { memory + i * plan->room, plan->room };
		struct fi_msg msg = {
			.msg_iov = &iov,
			.iov_count = 1,
			.addr = FI_ADDR_UNSPEC,
			.context = iov.iov_base,
		};

		POST(fi_recvmsg(t->ep, &msg, FI_MULTI_RECV));
	}
}

static void receiver(struct weft_test *t, fi_addr_t peer,
		     struct weft_test_line *line, void *arg)
{
	const struct plan *plan = arg;
	struct place *places = calloc(plan->count, sizeof(*places));
	uint8_t *memory = msg_alloc(plan->room * plan->buffers);
	size_t used = 0, want, left[8] = { 0 };
	struct weft_test_comp comp;

	(void)peer;
	CHECK(places);
	want = foresee(plan, places);
	for (size_t i = 0; i < plan->count; i++)
		left[places[i].buffer]++;
	set_min(t, plan->min);
	if (plan->late) {
		weft_test_sync(line);
		weft_test_progress_for(20);
	}
	post_all(t, plan, memory);
	if (!plan->late)
		weft_test_sync(line);
	for (size_t i = 0; i < plan->count; i++) {
		size_t buffer;

		weft_test_wait(t->rxcq, &comp);
		check_message(plan, &comp, places, memory);
		buffer = places[comp.entry.data].buffer;
		left[buffer]--;
		/* A buffer is released with the last message in it, never
		 * before. */
		CHECK_EQ(!!(comp.entry.flags & FI_MULTI_RECV),
			 !left[buffer] && buffer < want);
		used += !!(comp.entry.flags & FI_MULTI_RECV);
	}
	CHECK_EQ(used, want);
	weft_test_sync(line);
	free(places);
	free(memory);
}

/* The call has no FI_MULTI_RECV; it is the endpoint's default. */
static void test_by_default(void)
{
	struct weft_test_opts opts = { .rx_flags = FI_MULTI_RECV };
	uint8_t buf[1000], from[100] = { 1 };
	struct weft_test a, b;
	struct weft_test_comp comp;
	fi_addr_t to;

	weft_test_open(&a, NULL);
	weft_test_open(&b, &opts);
	to = weft_test_know(&a, &b);
	set_min(&b, 300);
	CHECK_OK(weft_test_recv(&b, buf, sizeof(buf), buf));
	for (int i = 0; i < 8; i++) {
		CHECK_OK(weft_test_send(&a, from, 100, to, NULL));
		weft_test_wait(b.rxcq, &comp);
		CHECK(comp.entry.buf == buf + 100 * i);
		CHECK_EQ(!!(comp.entry.flags & FI_MULTI_RECV), i == 7);
	}
	weft_test_close(&a);
	weft_test_close(&b);
}

static void run_plans(void)
{
	const struct weft_test_opts opts = {
		.caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV,
	};

	for (size_t i = 0; i < COUNT_OF(plans); i++)
		weft_test_pair(&opts, sender, receiver, (void *)&plans[i]);
}

/* Without CMA everything goes through the ring. */
static void without_cma(struct weft_test_line *line, void *arg)
{
	(void)line;
	(void)arg;
	setenv("FI_WEFT_CMA", "0", 1);
	run_plans();
}

int main(void)
{
	weft_test_begin(60);
	msg_run_apart(without_cma, NULL);
	run_plans();
	test_by_default();
	return 0;
}
