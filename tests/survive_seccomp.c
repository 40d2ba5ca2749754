/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sandbox that kills a process that calls process_vm_readv or
 * process_vm_writev. Bug: the provider measured these calls while it was
 * loaded, before it read FI_WEFT_CMA, so every program with libfabric died. Now
 * loading the provider and opening anything but an endpoint makes neither call,
 * and with FI_WEFT_CMA=0 nothing does.
 */
#include "common/fabric.h"
#include "common/forbid.h"

#define LEN 1000000
#define KEY 5

static uint8_t in[LEN], out[LEN];

/* A program that looks for providers, as every MPI does. */
static void looks(struct weft_test_line *line, void *arg)
{
	struct weft_test_opts opts = { .not_enabled = true };
	struct weft_test t;

	(void)line;
	(void)arg;
	weft_test_deadly_cma();
	weft_test_open(&t, &opts);
	weft_test_close(&t);
}

static void talks(struct weft_test_line *line, void *arg)
{
	struct weft_test_opts opts = {
		.caps = FI_MSG | FI_TAGGED | FI_RMA,
	};
	struct fi_context tx, rx, rma;
	struct fid_mr *mr;
	struct weft_test t;
	fi_addr_t peer;
	char byte;

	(void)arg;
	setenv("FI_WEFT_CMA", "0", 1);
	weft_test_deadly_cma();
	weft_test_open(&t, &opts);
	weft_test_fill(out, LEN, 7);
	CHECK_OK(fi_mr_reg(t.domain, out, LEN, FI_REMOTE_READ, 0, KEY, 0, &mr,
			   NULL));
	peer = weft_test_meet(&t, line);
	CHECK_OK(weft_test_trecv(&t, in, LEN, 1, 0, &rx));
	CHECK_OK(weft_test_tsend(&t, out, LEN, peer, 1, &tx));
	weft_test_wait_ok(t.rxcq, &rx);
	CHECK(weft_test_holds(in, LEN, 7));
	weft_test_wait_ok(t.txcq, &tx);
	memset(in, 0, LEN);
	CHECK_OK(fi_read(t.ep, in, LEN, NULL, peer, 0, KEY, &rma));
	weft_test_wait_ok(t.txcq, &rma);
	CHECK(weft_test_holds(in, LEN, 7));
	weft_test_put(line, "", 1);
	CHECK(weft_test_get_driving(line, &byte, 1));
	CHECK_OK(fi_close(&mr->fid));
	weft_test_close(&t);
}

/* The parent must not load the provider before its children do. */
static void talks_first(struct weft_test_line *line, void *arg)
{
	struct weft_test_line other;

	(void)line;
	weft_test_fork(&other, talks, arg);
	talks(&other, arg);
	weft_test_join(&other);
}

int main(void)
{
	struct weft_test_line line;

	weft_test_begin(60);
	weft_test_fork(&line, looks, NULL);
	weft_test_join(&line);
	weft_test_fork(&line, talks_first, NULL);
	weft_test_join(&line);
	return 0;
}
