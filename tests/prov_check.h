/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tests of libfabric objects share this: checks that count failures, and a
 * domain to use.
 */
#ifndef WEFT_TESTS_PROV_CHECK_H
#define WEFT_TESTS_PROV_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#define API FI_VERSION(1, 17)

static int check_failed;

/* Continues after a failure, so that one run reports all failures. */
#define CHECK(cond, ...)                                                       \
	do {                                                                   \
		if (!(cond)) {                                                 \
			printf("%s:%d: %s", __FILE__, __LINE__, #cond);        \
			printf("; " __VA_ARGS__);                              \
			printf("\n");                                          \
			check_failed++;                                        \
		}                                                              \
	} while (0)

#define CHECK_INT(got, want)                                                   \
	do {                                                                   \
		long long got_ = (long long)(got);                             \
		long long want_ = (long long)(want);                           \
                                                                               \
		CHECK(got_ == want_, "got %lld, want %lld", got_, want_);      \
	} while (0)

/* For what the rest of the test requires. */
#define MUST(call)                                                             \
	do {                                                                   \
		long long ret_ = (long long)(call);                            \
                                                                               \
		if (ret_) {                                                    \
			printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call,   \
			       fi_strerror((int)-ret_));                       \
			exit(1);                                               \
		}                                                              \
	} while (0)

/* Before the first call of libfabric: only this provider, without hints. */
static inline void check_only_weft(void)
{
	if (!getenv("FI_PROVIDER_PATH")) {
		printf("FI_PROVIDER_PATH is not set\n");
		exit(77);
	}
	setenv("FI_PROVIDER", "weft", 1);
}

static inline struct fi_info *check_hints(void)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		exit(1);
	hints->fabric_attr->prov_name = strdup("weft");
	hints->ep_attr->type = FI_EP_RDM;
	return hints;
}

static inline int check_result(void)
{
	printf("%s: %d failed\n", check_failed ? "FAIL" : "ok", check_failed);
	return check_failed ? 1 : 0;
}

#endif
