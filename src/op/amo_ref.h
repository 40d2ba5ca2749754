/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header does atomic operations once more, slowly: the reference of the
 * unit test, amo_test.c, which shares nothing with the code. Complex numbers
 * are pairs here.
 */
#ifndef WF_OP_AMO_REF_H
#define WF_OP_AMO_REF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rdma/fi_domain.h>

#include "op/amo.h"
#include "op/amo_ref_float.h"
#include "op/amo_ref_int.h"

static inline void complex_next(unsigned int datatype, unsigned int op,
				const uint8_t *pa, const uint8_t *pb,
				const uint8_t *pc, uint8_t *to)
{
	size_t half = types[datatype].size / 2;
	long double ar = real_get(datatype, pa), br = real_get(datatype, pb);
	long double ai = real_get(datatype, pa + half);
	long double bi = real_get(datatype, pb + half);
	bool a = ar != 0 || ai != 0, b = br != 0 || bi != 0;
	bool equal = real_get(datatype, pc) == ar &&
		     real_get(datatype, pc + half) == ai;
	long double re = 0, im = 0;

	switch (op) {
	case FI_SUM:
		re = ar + br;
		im = ai + bi;
		break;
	case WF_OP_AMO_DIFF:
		re = ar - br;
		im = ai - bi;
		break;
	case FI_PROD:
		re = ar * br - ai * bi;
		im = ar * bi + ai * br;
		break;
	case FI_LOR:
		re = a || b;
		break;
	case FI_LAND:
		re = a && b;
		break;
	case FI_LXOR:
		re = a ^ b;
		break;
	default:
		if (op == FI_ATOMIC_READ || (op == FI_CSWAP && !equal) ||
		    (op == FI_CSWAP_NE && equal))
			memcpy(to, pa, 2 * half);
		else
			memcpy(to, pb, 2 * half);
		return;
	}
	real_put(datatype, to, re);
	real_put(datatype, to + half, im);
}

static inline void next(unsigned int datatype, unsigned int op,
			const uint8_t *a, const uint8_t *b, const uint8_t *c,
			uint8_t *to)
{
	switch (types[datatype].class) {
	case INTEGER:
		integer_next(types[datatype].size, types[datatype].is_signed,
			     op, a, b, c, to);
		break;
	case REAL:
		real_next(datatype, op, a, b, c, to);
		break;
	case COMPLEX:
		complex_next(datatype, op, a, b, c, to);
		break;
	}
}

#endif
