/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Floating point of 8 and 16 bits, to double and back, by its bits.
 */
#include "op/minifloat.h"

#include <math.h>
#include <string.h>

/* Bits of a double, IEEE 754 binary64. */
#define DOUBLE_MAN 52
#define DOUBLE_BIAS 1023

static double double_of(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* The first pattern, without sign, that is no number: infinity or NaN. */
static uint32_t limit_of(const struct wf_op_minifloat *f)
{
	uint32_t end = 1U << (f->exp + f->man);

	return f->infinity ? end - (1U << f->man) : end - 1;
}

double wf_op_minifloat_decode(const struct wf_op_minifloat *f, uint32_t bits)
{
	uint32_t end = 1U << (f->exp + f->man), code = bits & (end - 1);
	/* From the exponent's field to that of a double. */
	uint64_t shift = DOUBLE_BIAS - ((1U << (f->exp - 1)) - 1);
	uint64_t man = code & ((1U << f->man) - 1);
	double value;

	if (code >= limit_of(f))
		value = f->infinity && !man ? INFINITY : NAN;
	else if (code >> f->man)
		value = double_of(((code >> f->man) + shift) << DOUBLE_MAN |
				  man << (DOUBLE_MAN - f->man));
	else /* subnormal: steps of the smallest */
		value = (double)man *
			double_of((1 + shift - (uint64_t)f->man) << DOUBLE_MAN);
	return bits & end ? -value : value;
}

uint32_t wf_op_minifloat_encode(const struct wf_op_minifloat *f, double value)
{
	uint32_t limit = limit_of(f), sign;
	int shift = DOUBLE_MAN - f->man;
	uint64_t bits, man, half, code;
	int exp;

	memcpy(&bits, &value, sizeof(bits));
	sign = (uint32_t)(bits >> 63) << (f->exp + f->man);
	if (isnan(value))
		return sign | (limit + (f->infinity ? 1U << (f->man - 1) : 0));
	if (isinf(value))
		return sign | limit;
	man = bits & ((1ULL << DOUBLE_MAN) - 1);
	man |= 1ULL << DOUBLE_MAN;
	/* Counted from the smallest normal exponent of the small format. */
	exp = (int)(bits >> DOUBLE_MAN & 0x7ff) - DOUBLE_BIAS +
	      (1 << (f->exp - 1)) - 2;
	if (exp < 0) {
		shift -= exp;
		exp = 0;
	}
	if (shift > DOUBLE_MAN + 1)
		return sign; /* below half of the smallest; 0 too */
	half = 1ULL << (shift - 1);
	code = man >> shift;
	man &= (half << 1) - 1;
	if (man > half || (man == half && code & 1))
		code++;
	/* The leading one of the mantissa, a carry too, counts the exponent. */
	code += (uint64_t)exp << f->man;
	return sign | (code < limit ? (uint32_t)code : limit);
}
