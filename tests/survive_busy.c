/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that computes for longer than the connect time-out before it makes any
 * progress is alive: the first message to it arrives nevertheless. Programs
 * that read a file or compute between MPI_Init and their first receive behave
 * like this.
 */
#include "common/fabric.h"

#define TIMEOUT "300" /* ms */
#define COMPUTES_MS 1000

static void computing(struct weft_test_line *line, void *arg)
{
	struct fi_context context;
	struct weft_test t;
	uint64_t value = 0;

	(void)arg;
	weft_test_open(&t, NULL);
	weft_test_put(line, t.name, sizeof(t.name));
	usleep(COMPUTES_MS * 1000);
	CHECK_OK(weft_test_trecv(&t, &value, sizeof(value), 1, 0, &context));
	weft_test_wait_ok(t.rxcq, &context);
	CHECK_EQ(value, 4711);
	weft_test_sync(line);
	weft_test_close(&t);
}

int main(void)
{
	uint8_t name[WEFT_TEST_NAME_MAX];
	struct weft_test_line line;
	struct fi_context context;
	uint64_t value = 4711;
	struct weft_test t;
	fi_addr_t peer;

	weft_test_begin(60);
	setenv("FI_WEFT_CONNECT_TIMEOUT", TIMEOUT, 1);
	weft_test_fork(&line, computing, NULL);
	CHECK(weft_test_get(&line, name, sizeof(name)));
	weft_test_open(&t, NULL);
	peer = weft_test_insert(&t, name);
	CHECK_OK(weft_test_tsend(&t, &value, sizeof(value), peer, 1, &context));
	weft_test_wait_ok(t.txcq, &context);
	weft_test_sync(&line);
	weft_test_join(&line);
	weft_test_close(&t);
	return 0;
}
