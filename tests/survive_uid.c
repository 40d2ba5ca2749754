/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes of another user: by default they are refused in both directions
 * with FI_EACCES; FI_WEFT_ALLOW_UID admits them. If the kernel then forbids CMA
 * between them, the ring carries large messages.
 */
#include "common/fabric.h"

#include <grp.h>
#include <sys/prctl.h>
#include <unistd.h>

#define NOBODY 65534
#define LARGE 500000

struct variant {
	const char *name;
	const char *root_allows;
	const char *nobody_allows;
	bool allowed;
};

static const struct variant variants[] = {
	{ "by default", NULL, NULL, false },
	{ "one side allows", "any", NULL, false },
	{ "the other side allows", NULL, "0", false },
	{ "another user is allowed", "1,2,6553", "1", false },
	{ "both allow by number", "7,65534", "0", true },
	{ "both allow any", "any", "any", true },
};

static void allow(const char *who)
{
	if (who)
		setenv("FI_WEFT_ALLOW_UID", who, 1);
	else
		unsetenv("FI_WEFT_ALLOW_UID");
}

static void send_all(struct weft_test *t, fi_addr_t peer, bool allowed)
{
	static const size_t sizes[] = { 8, 5000, LARGE };
	uint8_t *out = malloc(LARGE);
	struct weft_test_comp comp;
	struct fi_context context;

	CHECK(out);
	/* If we refuse the peer, the call returns the error; if the peer
	 * refuses us, a completion does. */
	if (!allowed) {
		ssize_t ret = weft_test_inject(t, out, 8, peer);

		if (ret)
			CHECK_EQ(ret, -FI_EACCES);
		else
			weft_test_wait_err(t->txcq, NULL, FI_EACCES);
	}
	for (uint64_t i = 0; i < 3; i++) {
		weft_test_fill(out, sizes[i], i);
		CHECK_OK(weft_test_tsend(t, out, sizes[i], peer, i, &context));
		weft_test_wait(t->txcq, &comp);
		CHECK_EQ(comp.ret, allowed ? 1 : -FI_EACCES);
	}
	free(out);
}

static void take_all(struct weft_test *t)
{
	static const size_t sizes[] = { 8, 5000, LARGE };
	uint8_t *in = malloc(LARGE);
	struct fi_context context;

	CHECK(in);
	for (uint64_t i = 0; i < 3; i++) {
		CHECK_OK(weft_test_trecv(t, in, LARGE, i, 0, &context));
		weft_test_wait_ok(t->rxcq, &context);
		CHECK(weft_test_holds(in, sizes[i], i));
	}
	free(in);
}

/* Sends, then receives, or the other way round. */
static void talk(struct weft_test_line *line, const struct variant *v,
		 bool first)
{
	struct weft_test_traces before, after;
	struct weft_test_comp comp;
	struct weft_test t;
	fi_addr_t peer;

	weft_test_open(&t, NULL);
	peer = weft_test_meet(&t, line);
	weft_test_look(&before);
	for (int turn = 0; turn < 2; turn++) {
		if ((turn == 0) == first)
			send_all(&t, peer, v->allowed);
		else if (v->allowed)
			take_all(&t);
		weft_test_sync(line);
	}
	CHECK(!weft_test_poll(t.rxcq, &comp));
	if (!v->allowed) {
		weft_test_progress_for(5);
		weft_test_look(&after);
		CHECK_EQ(after.rings, before.rings);
		CHECK_EQ(after.descriptors, before.descriptors);
	}
	weft_test_sync(line);
	weft_test_close(&t);
}

static void as_nobody(struct weft_test_line *line, void *arg)
{
	const struct variant *v = arg;

	allow(v->nobody_allows);
	weft_test_load(); /* from folders that the user may not see */
	CHECK_SYS(setgroups(0, NULL));
	CHECK_SYS(setresgid(NOBODY, NOBODY, NOBODY));
	CHECK_SYS(setresuid(NOBODY, NOBODY, NOBODY));
	/* The change of user cleared it. */
	prctl(PR_SET_PDEATHSIG, 9);
	talk(line, v, true);
}

/* In a child, too, because a process reads the environment once. */
static void as_root(struct weft_test_line *line, void *arg)
{
	const struct variant *v = arg;
	struct weft_test_line to_nobody;

	(void)line;
	weft_test_fork(&to_nobody, as_nobody, arg);
	allow(v->root_allows);
	talk(&to_nobody, v, false);
	weft_test_join(&to_nobody);
}

int main(void)
{
	if (geteuid()) {
		printf("only root can be two users\n");
		return 77;
	}
	weft_test_begin(100);
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		struct variant v = variants[i];
		struct weft_test_line line;

		printf("%s\n", v.name);
		weft_test_fork(&line, as_root, &v);
		weft_test_join(&line);
	}
	return 0;
}
