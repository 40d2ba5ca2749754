/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * These functions compute the value that an atomic operation stores:
 * next_<type>(op, target, operand, compare), all as words of the type's size.
 * The text of fi_atomic(3), once per kind of number. With op a constant nothing
 * but one expression is left of the switch. Only for amo_table.c.
 */
#ifndef WF_OP_AMO_NEXT_H
#define WF_OP_AMO_NEXT_H

#include <assert.h>
#include <float.h>
#include <stdint.h>
#include <string.h>

#include <rdma/fi_domain.h>

#include "op/amo.h"
#include "op/minifloat.h"

#define ALWAYS static inline __attribute__((always_inline))

/* A word for what is larger than the compiler's integers. */
struct amo_word32 {
	unsigned __int128 part[2];
};

static_assert(sizeof(struct amo_word32) == WF_OP_AMO_SIZE_MAX, "the largest");

/* A word as the value it stands for, and back. */
#define CODEC(t, word, value)                                                  \
	ALWAYS value dec_##t(word w)                                           \
	{                                                                      \
		value v;                                                       \
		static_assert(sizeof(v) == sizeof(w), "same bits");            \
		memcpy(&v, &w, sizeof(v));                                     \
		return v;                                                      \
	}                                                                      \
	ALWAYS word enc_##t(value v)                                           \
	{                                                                      \
		word w;                                                        \
		memcpy(&w, &v, sizeof(w));                                     \
		return w;                                                      \
	}

/* Integers in one of at least int's rank: uint16_t times itself would be
 * promoted to int and overflow. */
#define CODEC_CAST(t, word, value)                                             \
	ALWAYS value dec_##t(word w)                                           \
	{                                                                      \
		return w;                                                      \
	}                                                                      \
	ALWAYS word enc_##t(value v)                                           \
	{                                                                      \
		return (word)v;                                                \
	}

#define CODEC_SMALL(t, word)                                                   \
	ALWAYS double dec_##t(word w)                                          \
	{                                                                      \
		return wf_op_minifloat_decode(&wf_op_minifloat_##t, w);        \
	}                                                                      \
	ALWAYS word enc_##t(double v)                                          \
	{                                                                      \
		return (word)wf_op_minifloat_encode(&wf_op_minifloat_##t, v);  \
	}

CODEC_CAST(u8, uint8_t, uint32_t)
CODEC_CAST(u16, uint16_t, uint32_t)
CODEC_CAST(u32, uint32_t, uint32_t)
CODEC_CAST(u64, uint64_t, uint64_t)
CODEC_CAST(u128, unsigned __int128, unsigned __int128)
CODEC(i8, uint8_t, int8_t)
CODEC(i16, uint16_t, int16_t)
CODEC(i32, uint32_t, int32_t)
CODEC(i64, uint64_t, int64_t)
CODEC(i128, unsigned __int128, __int128)
CODEC_SMALL(e4m3, uint8_t)
CODEC_SMALL(e5m2, uint8_t)
CODEC_SMALL(f16, uint16_t)
CODEC_SMALL(bf16, uint16_t)
CODEC(f32, uint32_t, float)
CODEC(f64, uint64_t, double)
CODEC(c32, uint64_t, float _Complex)
CODEC(c64, unsigned __int128, double _Complex)

/* Of the 16 bytes of a long double x86 uses 10: the others become 0, not what
 * lay on our stack, since a peer may read them. */
#define F80_BYTES (LDBL_MANT_DIG == 64 ? 10 : sizeof(long double))

static_assert(sizeof(long double) == 16, "a word of 128 bits");

ALWAYS long double dec_f80(unsigned __int128 w)
{
	long double v;

	memcpy(&v, &w, sizeof(v));
	return v;
}

ALWAYS unsigned __int128 enc_f80(long double v)
{
	unsigned __int128 w = 0;

	memcpy(&w, &v, F80_BYTES);
	return w;
}

/* A complex number is laid out as an array of two (C11 6.2.5). */
ALWAYS long double _Complex dec_c80(struct amo_word32 w)
{
	long double _Complex v;

	memcpy(&v, &w, sizeof(v));
	return v;
}

ALWAYS struct amo_word32 enc_c80(long double _Complex v)
{
	return (struct amo_word32){ { enc_f80(__real__ v),
				      enc_f80(__imag__ v) } };
}

/* Where a value is kept or taken it is the word: bits of a NaN stay. */
#define CASES_ANY(t)                                                           \
	case FI_SUM:                                                           \
		return enc_##t(a + b);                                         \
	case WF_OP_AMO_DIFF:                                                   \
		return enc_##t(a - b);                                         \
	case FI_PROD:                                                          \
		return enc_##t(a * b);                                         \
	case FI_LOR:                                                           \
		return enc_##t(a || b);                                        \
	case FI_LAND:                                                          \
		return enc_##t(a && b);                                        \
	case FI_LXOR:                                                          \
		return enc_##t(!a != !b);                                      \
	case FI_ATOMIC_WRITE:                                                  \
		return wb;                                                     \
	case FI_CSWAP:                                                         \
		return c == a ? wb : wa;                                       \
	case FI_CSWAP_NE:                                                      \
		return c != a ? wb : wa;

#define CASES_ORDER                                                            \
	case FI_MIN:                                                           \
		return b < a ? wb : wa;                                        \
	case FI_MAX:                                                           \
		return b > a ? wb : wa;                                        \
	case FI_CSWAP_LE:                                                      \
		return c <= a ? wb : wa;                                       \
	case FI_CSWAP_LT:                                                      \
		return c < a ? wb : wa;                                        \
	case FI_CSWAP_GE:                                                      \
		return c >= a ? wb : wa;                                       \
	case FI_CSWAP_GT:                                                      \
		return c > a ? wb : wa;

#define CASES_BITS                                                             \
	case FI_BOR:                                                           \
		return wa | wb;                                                \
	case FI_BAND:                                                          \
		return wa & wb;                                                \
	case FI_BXOR:                                                          \
		return wa ^ wb;                                                \
	case FI_MSWAP:                                                         \
		return (wb & wc) | (wa & ~wc);

/* FI_ATOMIC_READ is what is left: the value as it is. */
#define NEXT(t, word, value, cases)                                            \
	ALWAYS word next_##t(unsigned int op, word wa, word wb, word wc)       \
	{                                                                      \
		const value a = dec_##t(wa), b = dec_##t(wb), c = dec_##t(wc); \
		switch (op) {                                                  \
			cases                                                  \
		}                                                              \
		return wa;                                                     \
	}

#define NEXT_UNSIGNED(t, word, value)                                          \
	NEXT(t, word, value, CASES_ANY(t) CASES_ORDER CASES_BITS)
#define NEXT_SIGNED(t, word, value) NEXT(t, word, value, CASES_ORDER)
#define NEXT_REAL(t, word, value) NEXT(t, word, value, CASES_ANY(t) CASES_ORDER)
#define NEXT_COMPLEX(t, word, value) NEXT(t, word, value, CASES_ANY(t))

/* Signed integers differ from unsigned ones in their order only; the rest wraps
 * without overflow there. */
NEXT_UNSIGNED(u8, uint8_t, uint32_t)
NEXT_UNSIGNED(u16, uint16_t, uint32_t)
NEXT_UNSIGNED(u32, uint32_t, uint32_t)
NEXT_UNSIGNED(u64, uint64_t, uint64_t)
NEXT_UNSIGNED(u128, unsigned __int128, unsigned __int128)
NEXT_SIGNED(i8, uint8_t, int8_t)
NEXT_SIGNED(i16, uint16_t, int16_t)
NEXT_SIGNED(i32, uint32_t, int32_t)
NEXT_SIGNED(i64, uint64_t, int64_t)
NEXT_SIGNED(i128, unsigned __int128, __int128)
NEXT_REAL(e4m3, uint8_t, double)
NEXT_REAL(e5m2, uint8_t, double)
NEXT_REAL(f16, uint16_t, double)
NEXT_REAL(bf16, uint16_t, double)
NEXT_REAL(f32, uint32_t, float)
NEXT_REAL(f64, uint64_t, double)
NEXT_REAL(f80, unsigned __int128, long double)
NEXT_COMPLEX(c32, uint64_t, float _Complex)
NEXT_COMPLEX(c64, unsigned __int128, double _Complex)
NEXT_COMPLEX(c80, struct amo_word32, long double _Complex)

#endif
