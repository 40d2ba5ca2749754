/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No memory or no descriptor for a ring, at the sender or at the receiver:
 * messages wait for a while, then fail with an error that names the reason;
 * once there is memory again, everything works. By packets, the call is refused
 * until there is memory, and nothing else fails. A receiver without memory for
 * unexpected messages leaves them in the ring and loses none.
 */
#include "common/fabric.h"

#include <sys/resource.h>

#define TIMEOUT_MS 300
#define UNEXPECTED 300
#define MEDIUM 6000

enum side { SENDER, RECEIVER };

struct variant {
	const char *name;
	enum side side;
	int resource;
	int spare;   /* descriptors left */
	bool lifted; /* soon after the message was sent */
	int err;     /* otherwise the message fails with this */
};

static const struct variant variants[] = {
	{ "no memory at the sender", SENDER, RLIMIT_AS, 0, false, FI_ENOMEM },
	{ "no memory at the sender", SENDER, RLIMIT_AS, 0, true, 0 },
	{ "no memory at the receiver", RECEIVER, RLIMIT_AS, 0, false,
	  FI_ENOMEM },
	{ "no memory at the receiver", RECEIVER, RLIMIT_AS, 0, true, 0 },
	{ "no descriptor at the sender", SENDER, RLIMIT_NOFILE, 0, false,
	  FI_EMFILE },
	{ "one descriptor at the sender", SENDER, RLIMIT_NOFILE, 1, false,
	  FI_EMFILE },
	{ "one descriptor at the sender", SENDER, RLIMIT_NOFILE, 1, true, 0 },
	{ "no descriptor at the receiver", RECEIVER, RLIMIT_NOFILE, 0, true,
	  0 },
	{ "one descriptor at the receiver", RECEIVER, RLIMIT_NOFILE, 1, false,
	  FI_EMFILE },
	{ "one descriptor at the receiver", RECEIVER, RLIMIT_NOFILE, 1, true,
	  0 },
	/* Bug: the signal of this limit killed the process. */
	{ "no file may be so large", SENDER, RLIMIT_FSIZE, 0, false, EFBIG },
};

static size_t mapped_bytes(void)
{
	FILE *statm = fopen("/proc/self/statm", "r");
	size_t pages = 0;

	CHECK(statm);
	CHECK_EQ(fscanf(statm, "%zu", &pages), 1);
	fclose(statm);
	return pages * 4096;
}

/* From here on there is no memory for a ring, or no descriptor. */
static void tighten(const struct variant *v, struct rlimit *old)
{
	struct rlimit tight;
	int lowest;

	CHECK_SYS(getrlimit((__rlimit_resource_t)v->resource, old));
	tight = *old;
	if (v->resource == RLIMIT_AS) {
		tight.rlim_cur = mapped_bytes() + 16384;
	} else if (v->resource == RLIMIT_FSIZE) {
		tight.rlim_cur = 4096;
	} else {
		lowest = dup(0);
		CHECK_SYS(lowest);
		close(lowest);
		tight.rlim_cur = (rlim_t)(lowest + v->spare);
	}
	CHECK_SYS(setrlimit((__rlimit_resource_t)v->resource, &tight));
}

static void lift(const struct variant *v, const struct rlimit *old)
{
	CHECK_SYS(setrlimit((__rlimit_resource_t)v->resource, old));
}

/* False: by packets, the call is refused now. */
static bool post(struct weft_test *t, fi_addr_t peer, const uint64_t *value,
		 struct fi_context *context)
{
	uint64_t end = weft_test_ms() + TIMEOUT_MS / 6;
	ssize_t ret;

	if (!weft_test_by_packets()) {
		CHECK_OK(weft_test_tsend(t, value, sizeof(*value), peer, 1,
					 context));
		return true;
	}
	do {
		ret = fi_tsend(t->ep, value, sizeof(*value), NULL, peer, 1,
			       context);
		weft_test_progress();
	} while (ret == -FI_EAGAIN && weft_test_ms() < end);
	CHECK(!ret || ret == -FI_EAGAIN || ret == -FI_ENOMEM ||
	      ret == -FI_EMFILE || ret == -EFBIG);
	return !ret;
}

static void sender(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	const struct variant *v = arg;
	struct weft_test_traces before, after;
	struct weft_test_comp comp;
	struct fi_context context;
	uint64_t value = 1;
	struct rlimit old;
	bool taken;

	weft_test_look(&before);
	if (v->side == SENDER)
		tighten(v, &old);
	weft_test_sync(line);
	taken = post(t, peer, &value, &context);
	if (v->side == SENDER && v->lifted) {
		weft_test_progress_for(TIMEOUT_MS / 6);
		lift(v, &old);
	}
	if (!taken)
		CHECK_OK(weft_test_tsend(t, &value, sizeof(value), peer, 1,
					 &context));
	weft_test_wait(t->txcq, &comp);
	CHECK_EQ(comp.ret, v->lifted ? 1 : -v->err);
	if (v->side == SENDER && !v->lifted)
		lift(v, &old);
	if (!v->lifted) {
		weft_test_progress_for(5);
		weft_test_look(&after);
		CHECK_EQ(after.descriptors, before.descriptors);
		CHECK_EQ(after.rings, before.rings);
	}
	weft_test_sync(line);
	value = 2;
	CHECK_OK(weft_test_tsend(t, &value, sizeof(value), peer, 2, &context));
	weft_test_wait_ok(t->txcq, &context);
	weft_test_sync(line);
}

static void receiver(struct weft_test *t, fi_addr_t peer,
		     struct weft_test_line *line, void *arg)
{
	const struct variant *v = arg;
	struct fi_context context[2];
	uint64_t value[2] = { 0 };
	struct rlimit old;

	(void)peer;
	for (int i = 0; i < 2; i++)
		CHECK_OK(weft_test_trecv(t, &value[i], sizeof(value[i]),
					 (uint64_t)i + 1, 0, &context[i]));
	if (v->side == RECEIVER)
		tighten(v, &old);
	weft_test_sync(line);
	if (v->side == RECEIVER && v->lifted) {
		weft_test_progress_for(TIMEOUT_MS / 6);
		lift(v, &old);
	}
	if (v->lifted) {
		weft_test_wait_ok(t->rxcq, &context[0]);
		CHECK_EQ(value[0], 1);
	}
	weft_test_sync(line);
	if (v->side == RECEIVER && !v->lifted)
		lift(v, &old);
	weft_test_wait_ok(t->rxcq, &context[1]);
	CHECK_EQ(value[1], 2);
	weft_test_sync(line);
}

/* -- no memory for what is unexpected --------------------------------------- */

static void send_unexpected(struct weft_test *t, fi_addr_t peer,
			    struct weft_test_line *line, void *arg)
{
	static uint8_t buf[UNEXPECTED][MEDIUM];
	static struct fi_context context[UNEXPECTED];

	(void)arg;
	weft_test_exchange(t, weft_test_know(t, t), t, 8, 1);
	/* Connect while there is memory. */
	CHECK_OK(weft_test_send(t, buf, 0, peer, &context[0]));
	weft_test_wait_ok(t->txcq, &context[0]);
	weft_test_sync(line);
	for (uint64_t i = 0; i < UNEXPECTED; i++) {
		weft_test_fill(buf[i], MEDIUM, i);
		CHECK_OK(weft_test_tsend(t, buf[i], MEDIUM, peer, i,
					 &context[i]));
	}
	for (int i = 0; i < UNEXPECTED; i++)
		weft_test_wait_ok(t->txcq, &context[i]);
	weft_test_sync(line);
}

static void keep_unexpected(struct weft_test *t, fi_addr_t peer,
			    struct weft_test_line *line, void *arg)
{
	const struct variant as = { .resource = RLIMIT_AS };
	static uint8_t buf[MEDIUM];
	struct weft_test_comp comp;
	struct fi_context context;
	struct rlimit old;

	(void)peer;
	(void)arg;
	weft_test_sync(line);
	tighten(&as, &old);
	weft_test_progress_for(100);
	lift(&as, &old);
	for (uint64_t i = 0; i < UNEXPECTED; i++) {
		CHECK_OK(weft_test_trecv(t, buf, MEDIUM, 0, ~0ull, &context));
		weft_test_wait(t->rxcq, &comp);
		CHECK_EQ(comp.ret, 1);
		CHECK_EQ(comp.entry.tag, i);
		CHECK(weft_test_holds(buf, MEDIUM, i));
	}
	weft_test_sync(line);
}

/* Those where there is memory again soon, or the others. */
static void run(struct weft_test_line *line, void *arg)
{
	const bool lifted = *(bool *)arg;

	(void)line;
	/* A busy machine may make "soon" longer than a short time-out. */
	setenv("FI_WEFT_CONNECT_TIMEOUT", lifted ? "60000" : "300", 1);
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		struct variant v = variants[i];

		v.lifted |= weft_test_by_packets();
		if (v.lifted != lifted)
			continue;
		printf("%s%s\n", v.name, lifted ? ", for a while" : "");
		weft_test_pair(NULL, sender, receiver, &v);
	}
	if (lifted)
		weft_test_pair(NULL, send_unexpected, keep_unexpected, NULL);
}

int main(void)
{
	struct weft_test_line line;

	weft_test_begin(100);
	for (int i = 0; i < 2; i++) {
		bool lifted = i;

		weft_test_fork(&line, run, &lifted);
		weft_test_join(&line);
	}
	return 0;
}
