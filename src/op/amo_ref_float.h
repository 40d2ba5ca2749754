/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reference of the unit test for real numbers: through long double, and
 * rounded to a small format by looking at every number there is. See amo_ref.h.
 */
#ifndef WF_OP_AMO_REF_FLOAT_H
#define WF_OP_AMO_REF_FLOAT_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_domain.h>

#include "op/amo.h"

enum class { INTEGER, REAL, COMPLEX };

/* The table has the datatypes of fi_atomic(3). */
static const struct type {
	enum class class;
	bool is_signed;
	size_t size;
	int exp, man; /* of small formats */
} types[WF_OP_AMO_TYPES] = {
	[FI_INT8] = { INTEGER, true, sizeof(int8_t), 0, 0 },
	[FI_UINT8] = { INTEGER, false, sizeof(uint8_t), 0, 0 },
	[FI_INT16] = { INTEGER, true, sizeof(int16_t), 0, 0 },
	[FI_UINT16] = { INTEGER, false, sizeof(uint16_t), 0, 0 },
	[FI_INT32] = { INTEGER, true, sizeof(int32_t), 0, 0 },
	[FI_UINT32] = { INTEGER, false, sizeof(uint32_t), 0, 0 },
	[FI_INT64] = { INTEGER, true, sizeof(int64_t), 0, 0 },
	[FI_UINT64] = { INTEGER, false, sizeof(uint64_t), 0, 0 },
	[FI_INT128] = { INTEGER, true, sizeof(__int128), 0, 0 },
	[FI_UINT128] = { INTEGER, false, sizeof(__int128), 0, 0 },
	[FI_FLOAT] = { REAL, true, sizeof(float), 0, 0 },
	[FI_DOUBLE] = { REAL, true, sizeof(double), 0, 0 },
	[FI_LONG_DOUBLE] = { REAL, true, sizeof(long double), 0, 0 },
	[FI_FLOAT_COMPLEX] = { COMPLEX, true, sizeof(float _Complex), 0, 0 },
	[FI_DOUBLE_COMPLEX] = { COMPLEX, true, sizeof(double _Complex), 0, 0 },
	[FI_LONG_DOUBLE_COMPLEX] = { COMPLEX, true,
				     sizeof(long double _Complex), 0, 0 },
	[WF_OP_AMO_FLOAT16] = { REAL, true, 2, 5, 10 },
	[WF_OP_AMO_BFLOAT16] = { REAL, true, 2, 8, 7 },
	[WF_OP_AMO_FLOAT8_E4M3] = { REAL, true, 1, 4, 3 },
	[WF_OP_AMO_FLOAT8_E5M2] = { REAL, true, 1, 5, 2 },
};

/* --- Small formats: a table of all their numbers, made by counting. --- */

static long double *small_values[WF_OP_AMO_TYPES];

static inline long double small_value(unsigned int datatype, unsigned int code)
{
	const struct type *t = &types[datatype];
	unsigned int top = (1U << t->exp) - 1, all = (1U << t->man) - 1;
	unsigned int exp = code >> t->man & top, man = code & all;
	int power = (int)(exp ? exp : 1) - (int)(top >> 1) - t->man;
	long double value = exp ? man + all + 1 : man;

	for (; power > 0; power--)
		value *= 2;
	for (; power < 0; power++)
		value /= 2;
	if (exp == top && datatype != WF_OP_AMO_FLOAT8_E4M3)
		value = man ? NAN : INFINITY;
	else if (exp == top && man == all)
		value = NAN;
	return code >> (t->exp + t->man) & 1 ? -value : value;
}

static inline const long double *small_table(unsigned int datatype)
{
	const struct type *t = &types[datatype];
	unsigned int codes = 1U << (8 * t->size);

	if (!small_values[datatype]) {
		small_values[datatype] = calloc(codes, sizeof(long double));
		if (!small_values[datatype])
			abort();
		for (unsigned int i = 0; i < codes; i++)
			small_values[datatype][i] = small_value(datatype, i);
	}
	return small_values[datatype];
}

static inline int free_tables(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < WF_OP_AMO_TYPES; i++)
		free(small_values[i]);
	return 0;
}

/* The nearest number; of two the even one. Beyond the largest lies what would
 * be next if the format went on. */
static inline unsigned int small_code(unsigned int datatype, long double value)
{
	const long double *table = small_table(datatype);
	const struct type *t = &types[datatype];
	unsigned int half = 1U << (t->exp + t->man), last = 0, above = half;
	unsigned int sign = signbit(value) ? half : 0, best;
	long double size = fabsl(value), step;

	/* Finite numbers come first, in ascending order. */
	while (last + 1 < above) {
		unsigned int mid = (last + above) / 2;

		if (isfinite(table[mid]))
			last = mid;
		else
			above = mid;
	}
	best = 0;
	for (above = last + 1; best + 1 < above;) {
		unsigned int mid = (best + above) / 2;

		if (table[mid] <= size)
			best = mid;
		else
			above = mid;
	}
	/* @best is the largest number that is not above. */
	if (best < last) {
		long double down = size - table[best];
		long double up = table[best + 1] - size;

		if (up < down || (up == down && best & 1))
			best++;
	}
	step = table[last] - table[last - 1];
	if (isnan(value) || size - table[last] > step / 2 ||
	    (size - table[last] == step / 2 && last & 1))
		return sign | (last + 1 +
			       (isnan(value) && isnan(table[half - 1]) &&
				datatype != WF_OP_AMO_FLOAT8_E4M3));
	return sign | best;
}

/* --- Real numbers as long double. --- */

static inline long double real_get(unsigned int datatype, const uint8_t *from)
{
	long double value;
	uint16_t code = 0;
	double d;
	float f;

	switch (datatype) {
	case FI_FLOAT:
	case FI_FLOAT_COMPLEX:
		memcpy(&f, from, sizeof(f));
		return f;
	case FI_DOUBLE:
	case FI_DOUBLE_COMPLEX:
		memcpy(&d, from, sizeof(d));
		return d;
	case FI_LONG_DOUBLE:
	case FI_LONG_DOUBLE_COMPLEX:
		memcpy(&value, from, sizeof(value));
		return value;
	}
	memcpy(&code, from, types[datatype].size);
	return small_table(datatype)[code];
}

static inline void real_put(unsigned int datatype, uint8_t *to,
			    long double value)
{
	unsigned int code;
	double d = (double)value;
	float f = (float)value;

	switch (datatype) {
	case FI_FLOAT:
	case FI_FLOAT_COMPLEX:
		memcpy(to, &f, sizeof(f));
		return;
	case FI_DOUBLE:
	case FI_DOUBLE_COMPLEX:
		memcpy(to, &d, sizeof(d));
		return;
	case FI_LONG_DOUBLE:
	case FI_LONG_DOUBLE_COMPLEX:
		/* x86: 10 bytes of value, and what is beside is 0. */
		memset(to, 0, sizeof(value));
		memcpy(to, &value, LDBL_MANT_DIG == 64 ? 10 : sizeof(value));
		return;
	}
	code = small_code(datatype, value);
	memcpy(to, &code, types[datatype].size); /* little endian */
}

static inline void real_next(unsigned int datatype, unsigned int op,
			     const uint8_t *pa, const uint8_t *pb,
			     const uint8_t *pc, uint8_t *to)
{
	long double a = real_get(datatype, pa), b = real_get(datatype, pb);
	long double c = real_get(datatype, pc);
	const uint8_t *is = pa;

	switch (op) {
	case FI_SUM:
		real_put(datatype, to, a + b);
		return;
	case WF_OP_AMO_DIFF:
		real_put(datatype, to, a - b);
		return;
	case FI_PROD:
		real_put(datatype, to, a * b);
		return;
	case FI_LOR:
		real_put(datatype, to, a != 0 || b != 0);
		return;
	case FI_LAND:
		real_put(datatype, to, a != 0 && b != 0);
		return;
	case FI_LXOR:
		real_put(datatype, to, (a != 0) + (b != 0) == 1);
		return;
	case FI_ATOMIC_WRITE:
		is = pb;
		break;
	case FI_MIN:
		is = isless(b, a) ? pb : pa;
		break;
	case FI_MAX:
		is = isgreater(b, a) ? pb : pa;
		break;
	case FI_CSWAP:
		is = !islessgreater(c, a) && !isunordered(c, a) ? pb : pa;
		break;
	case FI_CSWAP_NE:
		is = islessgreater(c, a) || isunordered(c, a) ? pb : pa;
		break;
	case FI_CSWAP_LE:
		is = islessequal(c, a) ? pb : pa;
		break;
	case FI_CSWAP_LT:
		is = isless(c, a) ? pb : pa;
		break;
	case FI_CSWAP_GE:
		is = isgreaterequal(c, a) ? pb : pa;
		break;
	case FI_CSWAP_GT:
		is = isgreater(c, a) ? pb : pa;
		break;
	}
	memcpy(to, is, types[datatype].size);
}

#endif
