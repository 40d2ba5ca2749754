/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft stat` shows exactly the work that was done: messages and bytes by the
 * path that `weft info` predicts for their size, with CMA, without it, and with
 * CMA refused by a filter; remote memory, atomics, messages without a receive,
 * sleeping and waking. Each side looks at itself and at the other through the
 * command, as a user would.
 */
#include "rma_util.h"

#include <rdma/fi_atomic.h>
#include <time.h>

#include "common/forbid.h"
#include "common/tool.h"

#define TEXT_MAX (1 << 16)
#define WAYS_MAX 8
#define EACH 3 /* messages of each size */
#define DEEP 20
/* From here on both sides copy in any case (shm/pull.c). */
#define ALWAYS ((size_t)128 << 10)
#define BEYOND 170000 /* more than where the last way begins */

struct way {
	char name[16];
	size_t sizes[2];
};

struct plan {
	bool cma;
	bool filter; /* the receiver is forbidden to use CMA */
	struct way ways[WAYS_MAX];
	size_t n_ways;
};

/* All that grow by messages, RMA and atomics: a counter that is not expected to
 * grow must not. */
static const char *const names[] = {
	"sent_inline",	    "sent_inline_bytes",
	"sent_eager",	    "sent_eager_bytes",
	"sent_chunked",	    "sent_chunked_bytes",
	"sent_parked",	    "sent_parked_bytes",
	"sent_stream",	    "sent_stream_bytes",
	"received_inline",  "received_inline_bytes",
	"received_eager",   "received_eager_bytes",
	"received_chunked", "received_chunked_bytes",
	"pulled_cma",	    "pulled_cma_bytes",
	"pulled_shared",    "pulled_shared_bytes",
	"pulled_stream",    "pulled_stream_bytes",
	"pulled_self",	    "pulled_self_bytes",
	"rma_writes",	    "rma_write_bytes",
	"rma_reads",	    "rma_read_bytes",
	"ring_writes",	    "ring_write_bytes",
	"ring_reads",	    "ring_read_bytes",
	"atomics",	    "served",
	"keys_rejected",    "protocol_errors",
};

struct snapshot {
	uint64_t v[COUNT_OF(names)];
};

/* -- the command ----------------------------------------------------------- */

static int weft(const char *arguments, char *text)
{
	char quiet[300];

	snprintf(quiet, sizeof(quiet), "%s 2>/dev/null", arguments);
	return weft_test_tool(quiet, text, TEXT_MAX);
}

static uint64_t counter(const char *json, const char *name)
{
	char key[64];
	const char *at;

	snprintf(key, sizeof(key), "\"%s\": ", name);
	at = strstr(json, key);
	if (!at)
		FAIL("no %s in %s", name, json);
	return strtoull(at + strlen(key), NULL, 10);
}

static void stat_of(pid_t pid, char *text)
{
	char arguments[64];

	snprintf(arguments, sizeof(arguments), "stat --json --pid %d",
		 (int)pid);
	if (weft(arguments, text))
		FAIL("weft %s: no endpoint", arguments);
}

/* Counters are up to date once half a millisecond has passed and the clock was
 * looked at, every 32 polls: both, also where the CPU is somebody else's for
 * most of the time. */
static void drive(void)
{
	weft_test_progress_for(3);
	for (int i = 0; i < 200; i++)
		weft_test_progress();
}

static uint64_t now(const char *name)
{
	static char text[TEXT_MAX];

	drive();
	stat_of(getpid(), text);
	return counter(text, name);
}

static struct snapshot look(void)
{
	static char text[TEXT_MAX];
	struct snapshot s;

	drive();
	stat_of(getpid(), text);
	for (size_t i = 0; i < COUNT_OF(names); i++)
		s.v[i] = counter(text, names[i]);
	return s;
}

struct growth {
	const char *name; /* NULL: the end */
	uint64_t by;
};

static uint64_t expected(const struct growth *growth, const char *name)
{
	for (; growth->name; growth++) {
		if (!strcmp(growth->name, name))
			return growth->by;
	}
	return 0;
}

/* Exactly this, sooner or later: on a busy machine three milliseconds may pass
 * without a look at the clock. */
static void check_grown(const struct snapshot *before,
			const struct growth *growth)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS / 3;
	struct snapshot s;
	size_t i;

	for (;;) {
		s = look();
		for (i = 0; i < COUNT_OF(names); i++) {
			if (s.v[i] - before->v[i] != expected(growth, names[i]))
				break;
		}
		if (i == COUNT_OF(names))
			return;
		if (weft_test_ms() >= end)
			FAIL("%s grew by %llu, not %llu", names[i],
			     (unsigned long long)(s.v[i] - before->v[i]),
			     (unsigned long long)expected(growth, names[i]));
	}
}

static void check_is(const char *name, uint64_t value)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS / 3;

	while (now(name) != value) {
		if (weft_test_ms() >= end)
			FAIL("%s is %llu, not %llu", name,
			     (unsigned long long)now(name),
			     (unsigned long long)value);
	}
}

static void read_plan(struct plan *plan)
{
	static char text[TEXT_MAX];
	const char *at;

	CHECK_EQ(weft("info --json", text), 0);
	plan->cma = strstr(text, "\"in_use\": true");
	at = strstr(text, "\"ways\"");
	CHECK(at);
	for (plan->n_ways = 0; plan->n_ways < WAYS_MAX; plan->n_ways++) {
		struct way *way = &plan->ways[plan->n_ways];
		const char *to;

		at = strstr(at, "\"name\": \"");
		if (!at || at > strstr(text, "\"settings\""))
			break;
		at += strlen("\"name\": \"");
		snprintf(way->name, sizeof(way->name), "%.*s",
			 (int)strcspn(at, "\""), at);
		way->sizes[0] = counter(at, "from");
		/* Below, a sender that was late the last time is not asked for
		 * help: on a busy machine the receiver may read alone. */
		if (!strcmp(way->name, "shared") && way->sizes[0] < ALWAYS)
			way->sizes[0] = ALWAYS;
		to = strstr(at, "\"to\": ");
		CHECK(to);
		way->sizes[1] = strncmp(to, "\"to\": null", 10) ?
					counter(at, "to") :
					way->sizes[0] + BEYOND;
	}
	CHECK(plan->n_ways >= 4);
}

/* -- messages -------------------------------------------------------------- */

static uint64_t bytes_of(const struct way *way)
{
	return EACH * (way->sizes[0] + way->sizes[1]);
}

static void check_way(const struct snapshot *before, const struct way *way,
		      bool sends)
{
	static const struct {
		const char *way, *sent, *received;
	} ends[] = {
		{ "inline", "sent_inline", "received_inline" },
		{ "eager", "sent_eager", "received_eager" },
		{ "chunked", "sent_chunked", "received_chunked" },
		{ "cma", "sent_parked", "pulled_cma" },
		{ "shared", "sent_parked", "pulled_shared" },
		{ "stream", "sent_parked", "pulled_stream" },
	};
	struct growth growth[5] = { { NULL, 0 } };
	char bytes[48];
	size_t i = 0;

	while (i < COUNT_OF(ends) && strcmp(ends[i].way, way->name))
		i++;
	CHECK(i < COUNT_OF(ends));
	growth[0].name = sends ? ends[i].sent : ends[i].received;
	growth[0].by = 2 * EACH;
	snprintf(bytes, sizeof(bytes), "%s_bytes", growth[0].name);
	growth[1] = (struct growth){ bytes, bytes_of(way) };
	if (sends && !strcmp(way->name, "stream")) {
		growth[2] = (struct growth){ "sent_stream", 2 * EACH };
		growth[3] =
			(struct growth){ "sent_stream_bytes", bytes_of(way) };
	}
	check_grown(before, growth);
}

static void pass(struct weft_test *t, fi_addr_t peer,
		 struct weft_test_line *line, const struct way *way, bool sends)
{
	uint8_t *buf = msg_alloc(way->sizes[1] + 1);
	struct snapshot before = look();
	struct fi_context context;

	weft_test_sync(line);
	for (int i = 0; i < 2 * EACH; i++) {
		size_t len = way->sizes[i % 2];

		if (sends)
			CHECK_OK(weft_test_tsend(t, buf, len, peer, 1,
						 &context));
		else
			CHECK_OK(weft_test_trecv(t, buf, way->sizes[1] + 1, 1,
						 0, &context));
		weft_test_wait_ok(sends ? t->txcq : t->rxcq, &context);
	}
	weft_test_sync(line);
	check_way(&before, way, sends);
	/* The next messages must not be counted with these. */
	weft_test_sync(line);
	free(buf);
}

/* Nobody has posted a receive. */
static void flood(struct weft_test *t, fi_addr_t peer,
		  struct weft_test_line *line, bool sends)
{
	uint64_t word;

	for (int i = 0; sends && i < DEEP; i++)
		CHECK_OK(weft_test_inject(t, &word, sizeof(word), peer));
	weft_test_sync(line);
	if (!sends) {
		check_is("unexpected", DEEP);
		check_is("unexpected_max", DEEP);
		for (int i = 0; i < DEEP; i++) {
			CHECK_OK(weft_test_recv(t, &word, sizeof(word), NULL));
			weft_test_wait_ok(t->rxcq, NULL);
		}
		check_is("unexpected", 0);
		check_is("unexpected_max", DEEP);
	}
	weft_test_sync(line);
}

/* -- remote memory --------------------------------------------------------- */

static void reach(struct weft_test *t, fi_addr_t peer,
		  struct weft_test_line *line, const struct plan *plan)
{
	struct rma_target target = rma_learn(line);
	struct snapshot before = look();
	uint64_t one = 1, result;
	struct fi_context context;
	static uint8_t buf[1000];
	const struct growth growth[] = {
		{ plan->cma ? "rma_writes" : "ring_writes", 3 },
		{ plan->cma ? "rma_write_bytes" : "ring_write_bytes", 3000 },
		{ plan->cma ? "rma_reads" : "ring_reads", 2 },
		{ plan->cma ? "rma_read_bytes" : "ring_read_bytes", 1000 },
		{ "atomics", 4 },
		{ "keys_rejected", 1 },
		{ NULL, 0 },
	};

	for (int i = 0; i < 3; i++)
		rma_put(t, peer, &target, 0, buf, 1000);
	for (int i = 0; i < 2; i++)
		rma_get(t, peer, &target, 0, buf, 500);
	for (int i = 0; i < 4; i++) {
		POST(fi_fetch_atomic(t->ep, &one, 1, NULL, &result, NULL, peer,
				     target.base, target.key, FI_UINT64, FI_SUM,
				     &context));
		rma_wait(t, &context, FI_ATOMIC | FI_READ);
	}
	POST(fi_write(t->ep, buf, 8, NULL, peer, target.base,
		      target.key ^ 1ull << 40, &context));
	CHECK_EQ(rma_wait_refused(t, &context), FI_EKEYREJECTED);
	weft_test_sync(line);
	check_grown(&before, growth);
}

static void be_reached(struct weft_test *t, struct weft_test_line *line,
		       const struct plan *plan)
{
	static uint64_t memory[500];
	struct snapshot before = look();
	const struct growth growth[] = {
		/* A payload that fits a record is one piece. */
		{ "served", plan->cma ? 4 : 9 },
		{ NULL, 0 },
	};
	struct fid_mr *mr;

	rma_offer(t, line, memory, sizeof(memory), &mr);
	weft_test_sync(line);
	check_grown(&before, growth);
	CHECK_OK(fi_close(&mr->fid));
}

/* -- sleeping -------------------------------------------------------------- */

static void wait_asleep(pid_t pid, uint64_t sleeps)
{
	const struct timespec moment = { .tv_nsec = 5000000 };
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;
	static char text[TEXT_MAX];

	for (;;) {
		stat_of(pid, text);
		if (counter(text, "sleeps") > sleeps)
			return;
		if (weft_test_ms() >= end)
			FAIL("it does not sleep");
		nanosleep(&moment, NULL);
	}
}

static void wake(struct weft_test *t, fi_addr_t peer,
		 struct weft_test_line *line)
{
	uint64_t wakes = now("wakes"), sleeps;

	CHECK(weft_test_get_driving(line, &sleeps, sizeof(sleeps)));
	wait_asleep(line->pid, sleeps);
	CHECK_OK(weft_test_inject(t, &wakes, sizeof(wakes), peer));
	weft_test_sync(line);
	CHECK(now("wakes") > wakes);
}

static void be_woken(struct weft_test *t, struct weft_test_line *line)
{
	uint64_t sleeps = now("sleeps"), word;
	struct fi_cq_tagged_entry entry;

	for (int i = 0; i < 5; i++)
		CHECK_EQ(fi_cq_sread(t->rxcq, &entry, 1, NULL, 20), -FI_EAGAIN);
	CHECK(now("sleeps") >= sleeps + 5);
	CHECK_OK(weft_test_recv(t, &word, sizeof(word), NULL));
	sleeps = now("sleeps");
	weft_test_put(line, &sleeps, sizeof(sleeps));
	CHECK_EQ(fi_cq_sread(t->rxcq, &entry, 1, NULL, WEFT_TEST_PATIENCE_MS),
		 1);
	weft_test_sync(line);
}

/* -- the two sides --------------------------------------------------------- */

static const struct weft_test_opts opts = {
	.caps = RMA_CAPS | FI_ATOMIC,
	.wait_obj = FI_WAIT_UNSPEC,
};

/* A child has no endpoint to be seen, and what it does to its copy of one is
 * not its parent's doing. */
static void check_child(struct weft_test_line *line, void *arg)
{
	static char text[TEXT_MAX];
	char arguments[64];

	(void)line;
	snprintf(arguments, sizeof(arguments), "stat --json --pid %d",
		 (int)getpid());
	CHECK_EQ(weft(arguments, text), 1);
	CHECK(strstr(text, "\"endpoints\": []"));
	weft_test_close(arg);
}

static void fork_amid(struct weft_test *t, fi_addr_t peer)
{
	static const struct growth growth[] = {
		{ "sent_inline", 10 },
		{ "sent_inline_bytes", 80 },
		{ NULL, 0 },
	};
	struct snapshot before = look();
	struct weft_test_line line;

	/* Not counted yet when the child is made. */
	for (int i = 0; i < 10; i++)
		CHECK_OK(weft_test_inject(t, "8 bytes", 8, peer));
	weft_test_fork(&line, check_child, t);
	weft_test_join(&line);
	check_grown(&before, growth);
}

static void receive_all(struct weft_test_line *line, void *arg)
{
	struct plan *plan = arg;
	static char text[TEXT_MAX];
	struct weft_test t;
	fi_addr_t peer;

	if (plan->filter) {
		weft_test_forbid_cma();
		CHECK_EQ(weft("info --json", text), 0);
		CHECK(strstr(text, "\"why_not\": \"a seccomp filter"));
		CHECK(strstr(text, "\"in_use\": false"));
	}
	weft_test_open(&t, &opts);
	peer = weft_test_meet(&t, line);
	for (size_t i = 0; i < plan->n_ways; i++)
		pass(&t, peer, line, &plan->ways[i], false);
	check_is("peers_in", 1);
	check_is("cma_refused", plan->filter);
	if (!plan->filter) {
		flood(&t, peer, line, false);
		be_reached(&t, line, plan);
		be_woken(&t, line);
	}
	weft_test_sync(line);
	weft_test_close(&t);
	CHECK_EQ(weft("stat --json --pid $PPID", text), 1);
}

static void send_all(struct weft_test_line *line, struct plan *plan)
{
	struct weft_test t;
	fi_addr_t peer;

	weft_test_open(&t, &opts);
	peer = weft_test_meet(&t, line);
	for (size_t i = 0; i < plan->n_ways; i++)
		pass(&t, peer, line, &plan->ways[i], true);
	check_is("peers_out", 1);
	check_is("cma_refused", 0);
	if (!plan->filter) {
		flood(&t, peer, line, true);
		reach(&t, peer, line, plan);
		wake(&t, peer, line);
	}
	fork_amid(&t, peer);
	weft_test_sync(line);
	weft_test_close(&t);
}

/* With a filter at the receiver the sender goes by its own view, and what was
 * to be copied is streamed. */
static void foresee_filter(struct plan *plan)
{
	for (size_t i = 0; i < plan->n_ways; i++) {
		struct way *way = &plan->ways[i];

		if (!strcmp(way->name, "cma") || !strcmp(way->name, "shared"))
			strcpy(way->name, "stream");
	}
}

static void run(const char *cma, bool filter)
{
	struct weft_test_line line;
	struct plan plan = { .filter = filter };

	printf("FI_WEFT_CMA=%s%s\n", cma, filter ? ", filtered" : "");
	setenv("FI_WEFT_CMA", cma, 1);
	/* Else the two would find out which way is faster. */
	setenv("FI_WEFT_CMA_MIN", "8193", 1);
	/* Otherwise each process measures it, and on a busy machine `weft info`
	 * finds another value than we do. */
	setenv("FI_WEFT_COOP_MIN", "65536", 1);
	read_plan(&plan);
	if (filter && !plan.cma)
		return;
	if (filter)
		foresee_filter(&plan);
	weft_test_fork(&line, receive_all, &plan);
	send_all(&line, &plan);
	weft_test_join(&line);
}

/* Each in a process of its own: the provider reads its variables once. */
static void run_child(struct weft_test_line *line, void *arg)
{
	int which = *(int *)arg;

	(void)line;
	run(which == 1 ? "0" : "1", which == 2);
}

int main(void)
{
	struct weft_test_line line;

	weft_test_begin(110);
	if (!getenv("WEFT_BUILD")) {
		printf("WEFT_BUILD is not set\n");
		return 77;
	}
	for (int which = 0; which < 3; which++) {
		weft_test_fork(&line, run_child, &which);
		weft_test_join(&line);
	}
	return 0;
}
