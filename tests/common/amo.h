/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header does each operation on one element as fi_atomic(3) describes it,
 * in plain C, for tests to compare with.
 */
#ifndef WEFT_TESTS_COMMON_AMO_H
#define WEFT_TESTS_COMMON_AMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fi_domain.h>

#define WEFT_TEST_AMO_TYPES (FI_UINT128 + 1)
#define WEFT_TEST_AMO_OPS (FI_MSWAP + 1)
#define WEFT_TEST_AMO_SIZE_MAX 32

size_t weft_test_amo_size(enum fi_datatype type);

/* Whether the operation is defined for the type: all operations for integers,
 * no bit operations for other types, no order for complex numbers. */
bool weft_test_amo_defined(enum fi_datatype type, enum fi_op op);

/* Changes *@target. */
void weft_test_amo_apply(enum fi_datatype type, enum fi_op op, void *target,
			 const void *operand, const void *compare);

/* A small value that depends on @seed; every third is 0. */
void weft_test_amo_value(enum fi_datatype type, void *element, uint64_t seed);

/* Padding does not count. */
bool weft_test_amo_same(enum fi_datatype type, const void *a, const void *b);

#endif
