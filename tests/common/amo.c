/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file does each operation on one element as fi_atomic(3) describes it.
 */
#include "common/amo.h"

#include <complex.h>
#include <string.h>

#include "common/check.h"

/* Bytes of an x87 number that are used; the other six are padding. */
#define X87_BYTES 10

/* -- one function per type -------------------------------------------------- */

/* For every kind of number. Integers wrap around: they are computed as
 * @wide. */
#define CASES_ALL(t, b, c, wide)                                               \
	case FI_SUM:                                                           \
		*(t) = (wide) * (t) + (wide) * (b);                            \
		break;                                                         \
	case FI_PROD:                                                          \
		*(t) = (wide) * (t) * (wide) * (b);                            \
		break;                                                         \
	case FI_LOR:                                                           \
		*(t) = *(t) || *(b);                                           \
		break;                                                         \
	case FI_LAND:                                                          \
		*(t) = *(t) && *(b);                                           \
		break;                                                         \
	case FI_LXOR:                                                          \
		*(t) = (*(t) && !*(b)) || (!*(t) && *(b));                     \
		break;                                                         \
	case FI_ATOMIC_READ:                                                   \
		break;                                                         \
	case FI_ATOMIC_WRITE:                                                  \
		*(t) = *(b);                                                   \
		break;                                                         \
	case FI_CSWAP:                                                         \
		*(t) = *(c) == *(t) ? *(b) : *(t);                             \
		break;                                                         \
	case FI_CSWAP_NE:                                                      \
		*(t) = *(c) != *(t) ? *(b) : *(t);                             \
		break

/* For types that have an order. */
#define CASES_ORDERED(t, b, c)                                                 \
	case FI_MIN:                                                           \
		*(t) = *(b) < *(t) ? *(b) : *(t);                              \
		break;                                                         \
	case FI_MAX:                                                           \
		*(t) = *(b) > *(t) ? *(b) : *(t);                              \
		break;                                                         \
	case FI_CSWAP_LE:                                                      \
		*(t) = *(c) <= *(t) ? *(b) : *(t);                             \
		break;                                                         \
	case FI_CSWAP_LT:                                                      \
		*(t) = *(c) < *(t) ? *(b) : *(t);                              \
		break;                                                         \
	case FI_CSWAP_GE:                                                      \
		*(t) = *(c) >= *(t) ? *(b) : *(t);                             \
		break;                                                         \
	case FI_CSWAP_GT:                                                      \
		*(t) = *(c) > *(t) ? *(b) : *(t);                              \
		break

#define CASES_BITS(t, b, c, type)                                              \
	case FI_BOR:                                                           \
		*(t) = (type)(*(t) | *(b));                                    \
		break;                                                         \
	case FI_BAND:                                                          \
		*(t) = (type)(*(t) & *(b));                                    \
		break;                                                         \
	case FI_BXOR:                                                          \
		*(t) = (type)(*(t) ^ *(b));                                    \
		break;                                                         \
	case FI_MSWAP:                                                         \
		*(t) = (type)((*(b) & *(c)) | (*(t) & ~*(c)));                 \
		break

#define DEFINE(name, type, wide, ...)                                          \
	static void name(enum fi_op op, void *target, const void *operand,     \
			 const void *compare)                                  \
	{                                                                      \
		type t_, b_, c_, *t = &t_, *b = &b_, *c = &c_;                 \
                                                                               \
		memcpy(t, target, sizeof(type));                               \
		memcpy(b, operand, sizeof(type));                              \
		memcpy(c, compare, sizeof(type));                              \
		switch (op) {                                                  \
			CASES_ALL(t, b, c, wide);                              \
			__VA_ARGS__;                                           \
		default:                                                       \
			FAIL("operation %d of " #type, (int)op);               \
		}                                                              \
		memcpy(target, t, sizeof(type));                               \
	}

#define DEFINE_INT(name, type)                                                 \
	DEFINE(name, type, unsigned __int128, CASES_ORDERED(t, b, c);          \
	       CASES_BITS(t, b, c, type))
#define DEFINE_REAL(name, type) DEFINE(name, type, type, CASES_ORDERED(t, b, c))
#define DEFINE_COMPLEX(name, type) DEFINE(name, type, type, )

DEFINE_INT(apply_int8, int8_t)
DEFINE_INT(apply_uint8, uint8_t)
DEFINE_INT(apply_int16, int16_t)
DEFINE_INT(apply_uint16, uint16_t)
DEFINE_INT(apply_int32, int32_t)
DEFINE_INT(apply_uint32, uint32_t)
DEFINE_INT(apply_int64, int64_t)
DEFINE_INT(apply_uint64, uint64_t)
DEFINE_INT(apply_int128, __int128)
DEFINE_INT(apply_uint128, unsigned __int128)
DEFINE_REAL(apply_float, float)
DEFINE_REAL(apply_double, double)
DEFINE_REAL(apply_long_double, long double)
DEFINE_COMPLEX(apply_float_complex, float complex)
DEFINE_COMPLEX(apply_double_complex, double complex)
DEFINE_COMPLEX(apply_long_double_complex, long double complex)

enum family { INTEGER, REAL, COMPLEX };

static const struct {
	size_t size;
	enum family family;
	void (*apply)(enum fi_op op, void *target, const void *operand,
		      const void *compare);
} types[WEFT_TEST_AMO_TYPES] = {
	[FI_INT8] = { 1, INTEGER, apply_int8 },
	[FI_UINT8] = { 1, INTEGER, apply_uint8 },
	[FI_INT16] = { 2, INTEGER, apply_int16 },
	[FI_UINT16] = { 2, INTEGER, apply_uint16 },
	[FI_INT32] = { 4, INTEGER, apply_int32 },
	[FI_UINT32] = { 4, INTEGER, apply_uint32 },
	[FI_INT64] = { 8, INTEGER, apply_int64 },
	[FI_UINT64] = { 8, INTEGER, apply_uint64 },
	[FI_INT128] = { 16, INTEGER, apply_int128 },
	[FI_UINT128] = { 16, INTEGER, apply_uint128 },
	[FI_FLOAT] = { 4, REAL, apply_float },
	[FI_DOUBLE] = { 8, REAL, apply_double },
	[FI_LONG_DOUBLE] = { sizeof(long double), REAL, apply_long_double },
	[FI_FLOAT_COMPLEX] = { 8, COMPLEX, apply_float_complex },
	[FI_DOUBLE_COMPLEX] = { 16, COMPLEX, apply_double_complex },
	[FI_LONG_DOUBLE_COMPLEX] = { sizeof(long double complex), COMPLEX,
				     apply_long_double_complex },
};

size_t weft_test_amo_size(enum fi_datatype type)
{
	return types[type].size;
}

bool weft_test_amo_defined(enum fi_datatype type, enum fi_op op)
{
	switch (op) {
	case FI_BOR:
	case FI_BAND:
	case FI_BXOR:
	case FI_MSWAP:
		return types[type].family == INTEGER;
	case FI_MIN:
	case FI_MAX:
	case FI_CSWAP_LE:
	case FI_CSWAP_LT:
	case FI_CSWAP_GE:
	case FI_CSWAP_GT:
		return types[type].family != COMPLEX;
	default:
		return true;
	}
}

void weft_test_amo_apply(enum fi_datatype type, enum fi_op op, void *target,
			 const void *operand, const void *compare)
{
	types[type].apply(op, target, operand, compare);
}

void weft_test_amo_value(enum fi_datatype type, void *element, uint64_t seed)
{
	static const int8_t small[] = { 0, 3, -5, 0, 12, -1, 0, 7, 100 };
	int8_t value = small[seed % (sizeof(small) / sizeof(small[0]))];
	size_t size = types[type].size, half = size / 2;

	memset(element, 0, size);
	switch (type) {
	case FI_FLOAT:
	case FI_FLOAT_COMPLEX:
		memcpy(element, &(float){ value }, sizeof(float));
		if (type == FI_FLOAT_COMPLEX)
			memcpy((char *)element + half, &(float){ value * 2 },
			       half);
		break;
	case FI_DOUBLE:
	case FI_DOUBLE_COMPLEX:
		memcpy(element, &(double){ value / 4.0 }, sizeof(double));
		if (type == FI_DOUBLE_COMPLEX)
			memcpy((char *)element + half, &(double){ value },
			       half);
		break;
	case FI_LONG_DOUBLE:
	case FI_LONG_DOUBLE_COMPLEX:
		memcpy(element, &(long double){ value / 8.0L }, X87_BYTES);
		if (type == FI_LONG_DOUBLE_COMPLEX)
			memcpy((char *)element + half,
			       &(long double){ value / 2.0L }, X87_BYTES);
		break;
	default:
		/* The sign extends to all bytes, which gives large values for
		 * unsigned types. */
		memset(element, value < 0 ? 0xff : 0, size);
		memcpy(element, &value, 1);
	}
}

static bool same_long_double(const char *a, const char *b)
{
	return !memcmp(a, b, X87_BYTES);
}

bool weft_test_amo_same(enum fi_datatype type, const void *a, const void *b)
{
	size_t half = sizeof(long double);

	if (type == FI_LONG_DOUBLE)
		return same_long_double(a, b);
	if (type == FI_LONG_DOUBLE_COMPLEX)
		return same_long_double(a, b) &&
		       same_long_double((const char *)a + half,
					(const char *)b + half);
	return !memcmp(a, b, types[type].size);
}
