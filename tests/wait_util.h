/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of waiting share this beyond rma_util.h: sleeping like an application
 * that has a descriptor, and the processor time that it costs.
 */
#ifndef WEFT_TESTS_WAIT_UTIL_H
#define WEFT_TESTS_WAIT_UTIL_H

#include "rma_util.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>

static inline void wait_nap(unsigned int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

static inline int wait_fd_of(struct fid *fid)
{
	int fd = -1;

	CHECK_OK(fi_control(fid, FI_GETWAIT, &fd));
	CHECK(fd >= 0);
	return fd;
}

/* Processor time of this process, in ms. */
static inline uint64_t wait_cpu_ms(void)
{
	struct rusage use;

	CHECK_SYS(getrusage(RUSAGE_SELF, &use));
	return (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000 +
	       (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1000;
}

/* The loop of fi_poll(3): reads, and sleeps only if fi_trywait() says that it
 * is safe. Drives nothing else. False after @ms. */
static inline bool wait_on_fd(struct weft_test *t, struct fid_cq *cq,
			      struct weft_test_comp *comp, unsigned int ms)
{
	struct pollfd pfd = { .fd = wait_fd_of(&cq->fid), .events = POLLIN };
	struct fid *fids[1] = { &cq->fid };
	uint64_t now, end = weft_test_ms() + ms;
	int ret;

	while (!weft_test_poll(cq, comp)) {
		now = weft_test_ms();
		if (now >= end)
			return false;
		ret = fi_trywait(t->fabric, fids, 1);
		if (ret == -FI_EAGAIN)
			continue;
		CHECK_OK(ret);
		CHECK_SYS(poll(&pfd, 1, (int)(end - now)));
	}
	return true;
}

/* The same; the completion must be a success of @context. */
static inline void wait_on_fd_ok(struct weft_test *t, struct fid_cq *cq,
				 void *context)
{
	struct weft_test_comp comp;

	if (!wait_on_fd(t, cq, &comp, WEFT_TEST_PATIENCE_MS))
		FAIL("not woken within %d ms", WEFT_TEST_PATIENCE_MS);
	CHECK_EQ(comp.ret, 1);
	CHECK(!context || comp.entry.op_context == context);
}

#endif
