/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reference of the unit test for integers: strings of bytes, the lowest
 * first. See amo_ref.h.
 */
#ifndef WF_OP_AMO_REF_INT_H
#define WF_OP_AMO_REF_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rdma/fi_domain.h>

#include "op/amo.h"

static inline void bytes_add(size_t n, uint8_t *a, const uint8_t *b,
			     unsigned int carry, uint8_t invert)
{
	for (size_t i = 0; i < n; i++) {
		carry += a[i] + (unsigned int)(uint8_t)(b[i] ^ invert);
		a[i] = (uint8_t)carry;
		carry >>= 8;
	}
}

static inline void bytes_multiply(size_t n, uint8_t *a, const uint8_t *b)
{
	uint8_t shifted[WF_OP_AMO_SIZE_MAX], sum[WF_OP_AMO_SIZE_MAX] = { 0 };

	memcpy(shifted, a, n);
	for (size_t bit = 0; bit < 8 * n; bit++) {
		if (b[bit / 8] >> bit % 8 & 1)
			bytes_add(n, sum, shifted, 0, 0);
		bytes_add(n, shifted, shifted, 0, 0);
	}
	memcpy(a, sum, n);
}

static inline int bytes_order(size_t size, bool is_signed, const uint8_t *a,
			      const uint8_t *b)
{
	uint8_t flip = is_signed ? 0x80 : 0;

	for (size_t i = size; i-- > 0; flip = 0) {
		if (a[i] != b[i])
			return (a[i] ^ flip) < (b[i] ^ flip) ? -1 : 1;
	}
	return 0;
}

static inline void integer_next(size_t size, bool is_signed, unsigned int op,
				const uint8_t *a, const uint8_t *b,
				const uint8_t *c, uint8_t *to)
{
	static const uint8_t zero[WF_OP_AMO_SIZE_MAX];
	bool la = memcmp(a, zero, size), lb = memcmp(b, zero, size);
	int ba = bytes_order(size, is_signed, b, a),
	    ca = bytes_order(size, is_signed, c, a);
	bool take = (op == FI_MIN && ba < 0) || (op == FI_MAX && ba > 0) ||
		    (op == FI_CSWAP && !ca) || (op == FI_CSWAP_NE && ca) ||
		    (op == FI_CSWAP_LE && ca <= 0) ||
		    (op == FI_CSWAP_LT && ca < 0) ||
		    (op == FI_CSWAP_GE && ca >= 0) ||
		    (op == FI_CSWAP_GT && ca > 0) || op == FI_ATOMIC_WRITE;

	memcpy(to, take ? b : a, size);
	if (op == FI_SUM)
		bytes_add(size, to, b, 0, 0);
	else if (op == WF_OP_AMO_DIFF)
		bytes_add(size, to, b, 1, 0xff);
	else if (op == FI_PROD)
		bytes_multiply(size, to, b);
	if (op == FI_LOR || op == FI_LAND || op == FI_LXOR) {
		memset(to, 0, size);
		to[0] = (op == FI_LOR && (la || lb)) ||
			(op == FI_LAND && la && lb) ||
			(op == FI_LXOR && la != lb);
	}
	for (size_t bit = 0; bit < 8 * size; bit++) {
		unsigned int ab = a[bit / 8] >> bit % 8 & 1;
		unsigned int bb = b[bit / 8] >> bit % 8 & 1;
		unsigned int cb = c[bit / 8] >> bit % 8 & 1;
		bool set = (op == FI_BOR && ab + bb) ||
			   (op == FI_BAND && ab + bb == 2) ||
			   (op == FI_BXOR && ab + bb == 1) ||
			   (op == FI_MSWAP && (cb ? bb : ab));

		if (op != FI_BOR && op != FI_BAND && op != FI_BXOR &&
		    op != FI_MSWAP)
			break;
		to[bit / 8] &= (uint8_t) ~(1U << bit % 8);
		to[bit / 8] |= (uint8_t)(set << bit % 8);
	}
}

#endif
