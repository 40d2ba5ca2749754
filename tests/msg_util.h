/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of message calls share this beyond common/fabric.h.
 */
#ifndef WEFT_TESTS_MSG_UTIL_H
#define WEFT_TESTS_MSG_UTIL_H

#include "common/fabric.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Repeats a call of libfabric until it is accepted. */
#define POST(call)                                                             \
	do {                                                                   \
		long long post_;                                               \
                                                                               \
		while ((post_ = (long long)(call)) == -FI_EAGAIN)              \
			weft_test_progress();                                  \
		if (post_)                                                     \
			FAIL("%s: %lld (%s)", #call, post_,                    \
			     fi_strerror((int)-post_));                        \
	} while (0)

static inline void *msg_alloc(size_t len)
{
	void *buf = malloc(len + 1);

	CHECK(buf);
	memset(buf, 0xee, len + 1);
	return buf;
}

/* Runs @child in a process of its own, for settings that libfabric reads once.
 * Call it before the first call of libfabric. */
static inline void
msg_run_apart(void (*child)(struct weft_test_line *line, void *arg), void *arg)
{
	struct weft_test_line line;

	weft_test_fork(&line, child, arg);
	weft_test_join(&line);
}

/* No event on @cq for @ms. */
static inline void msg_expect_quiet(struct fid_cq *cq, unsigned int ms)
{
	struct weft_test_comp comp;

	if (weft_test_wait_for(cq, &comp, ms))
		FAIL("completion %d that must not be there", comp.ret);
}

#endif
