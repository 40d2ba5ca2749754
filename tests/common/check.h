/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks for system tests: the first check that fails prints location and
 * values, and ends the process with 1. The process that waits for a child
 * notices its failure (fabric.h).
 */
#ifndef WEFT_TESTS_COMMON_CHECK_H
#define WEFT_TESTS_COMMON_CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#define FAIL(...)                                                              \
	do {                                                                   \
		fprintf(stderr, "%s:%d: [%d] ", __FILE__, __LINE__,            \
			(int)getpid());                                        \
		fprintf(stderr, __VA_ARGS__);                                  \
		fputc('\n', stderr);                                           \
		_exit(1);                                                      \
	} while (0)

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond))                                                   \
			FAIL("%s", #cond);                                     \
	} while (0)

/* Two integers that must be equal. */
#define CHECK_EQ(got, want)                                                    \
	do {                                                                   \
		long long got_ = (long long)(got);                             \
		long long want_ = (long long)(want);                           \
                                                                               \
		if (got_ != want_)                                             \
			FAIL("%s is %lld, not %s (%lld)", #got, got_, #want,   \
			     want_);                                           \
	} while (0)

/* A call of libfabric that must return 0. */
#define CHECK_OK(call)                                                         \
	do {                                                                   \
		long long ok_ = (long long)(call);                             \
                                                                               \
		if (ok_)                                                       \
			FAIL("%s: %lld (%s)", #call, ok_,                      \
			     fi_strerror((int)-ok_));                          \
	} while (0)

/* A system call that must not return -1. */
#define CHECK_SYS(call)                                                        \
	do {                                                                   \
		if ((call) == -1)                                              \
			FAIL("%s: %s", #call, strerror(errno));                \
	} while (0)

#endif
