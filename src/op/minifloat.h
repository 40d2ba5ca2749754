/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Floating point of 8 and 16 bits, to double and back. By hand, because not
 * every compiler we build with has these types. A double holds each value, and
 * has more than twice their digits: a sum, difference or product that is
 * rounded to double first and then to the small format is as if rounded once.
 */
#ifndef WF_OP_MINIFLOAT_H
#define WF_OP_MINIFLOAT_H

#include <stdbool.h>
#include <stdint.h>

struct wf_op_minifloat {
	int exp;       /* bits of the exponent */
	int man;       /* bits of the mantissa */
	bool infinity; /* else the highest exponent holds numbers, one NaN */
};

static const struct wf_op_minifloat wf_op_minifloat_f16 = { 5, 10, true };
static const struct wf_op_minifloat wf_op_minifloat_bf16 = { 8, 7, true };
/* OCP 8-bit floating point specification, section 5. */
static const struct wf_op_minifloat wf_op_minifloat_e4m3 = { 4, 3, false };
static const struct wf_op_minifloat wf_op_minifloat_e5m2 = { 5, 2, true };

double wf_op_minifloat_decode(const struct wf_op_minifloat *f, uint32_t bits);

/* Rounds to nearest, ties to even. */
uint32_t wf_op_minifloat_encode(const struct wf_op_minifloat *f, double value);

#endif
