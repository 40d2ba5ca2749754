/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations as functions, one per op and type, and the table of them.
 * amo_next.h computes the new value; this file stores it: by the one
 * instruction that there is for the operation, else by compare-and-swap.
 */
#include "op/amo_table.h"

#include <stdbool.h>

#include "op/amo_next.h"

#define ORDER __ATOMIC_SEQ_CST

/* Without use of the old value x86 has "lock or"; with it, it takes a loop. */
#define FETCH(fetch)                                                           \
	if (want)                                                              \
		*old = fetch(at, b, ORDER);                                    \
	else                                                                   \
		(void)fetch(at, b, ORDER);                                     \
	return true;

/* One instruction of the processor for @op, if there is one. @integer: the word
 * is the value. */
#define NATIVE(word)                                                           \
	ALWAYS bool native_##word(unsigned int op, bool integer, bool want,    \
				  word *at, word b, word c, word *old)         \
	{                                                                      \
		if (op == FI_ATOMIC_WRITE) {                                   \
			*old = __atomic_exchange_n(at, b, ORDER);              \
			return true;                                           \
		}                                                              \
		if (!integer)                                                  \
			return false;                                          \
		switch (op) {                                                  \
		case FI_SUM:                                                   \
			FETCH(__atomic_fetch_add)                              \
		case WF_OP_AMO_DIFF:                                           \
			FETCH(__atomic_fetch_sub)                              \
		case FI_BOR:                                                   \
			FETCH(__atomic_fetch_or)                               \
		case FI_BAND:                                                  \
			FETCH(__atomic_fetch_and)                              \
		case FI_BXOR:                                                  \
			FETCH(__atomic_fetch_xor)                              \
		case FI_CSWAP:                                                 \
			*old = c;                                              \
			__atomic_compare_exchange_n(at, old, b, false, ORDER,  \
						    ORDER);                    \
			return true;                                           \
		}                                                              \
		return false;                                                  \
	}

NATIVE(uint8_t)
NATIVE(uint16_t)
NATIVE(uint32_t)
NATIVE(uint64_t)

/* Element @i of a buffer that need not be aligned, and may be NULL where the
 * operation has no use for it. */
#define GET(w, from, i)                                                        \
	memcpy(&(w), (const char *)(from) + (i) * sizeof(w), sizeof(w))

ALWAYS bool uses_operand(unsigned int op)
{
	return op != FI_ATOMIC_READ;
}

ALWAYS bool uses_compare(unsigned int op)
{
	return op >= FI_CSWAP && op <= FI_MSWAP;
}

/* A value that stays is not written: then the load was all of the operation. */
#define EACH_NARROW(t, word, integer)                                          \
	ALWAYS void each_##t(unsigned int op, void *target,                    \
			     const void *operand, const void *compare,         \
			     void *result, size_t count)                       \
	{                                                                      \
		for (size_t i = 0; i < count; i++) {                           \
			word *at = (word *)target + i;                         \
			word b = 0, c = 0, old, new;                           \
                                                                               \
			if (uses_operand(op))                                  \
				GET(b, operand, i);                            \
			if (uses_compare(op))                                  \
				GET(c, compare, i);                            \
			if (!native_##word(op, integer, result, at, b, c,      \
					   &old)) {                            \
				old = __atomic_load_n(at, ORDER);              \
				do                                             \
					new = next_##t(op, old, b, c);         \
				while (new != old &&                           \
				       !__atomic_compare_exchange_n(           \
					       at, &old, new, false, ORDER,    \
					       ORDER));                        \
			}                                                      \
			if (result)                                            \
				memcpy((char *)result + i * sizeof(old), &old, \
				       sizeof(old));                           \
		}                                                              \
	}

/* On the caller's own copy. */
#define EACH_WIDE(t, word)                                                     \
	ALWAYS void each_##t(unsigned int op, void *target,                    \
			     const void *operand, const void *compare,         \
			     void *result, size_t count)                       \
	{                                                                      \
		word a, b = { 0 }, c = { 0 };                                  \
                                                                               \
		(void)result;                                                  \
		(void)count;                                                   \
		GET(a, target, 0);                                             \
		if (uses_operand(op))                                          \
			GET(b, operand, 0);                                    \
		if (uses_compare(op))                                          \
			GET(c, compare, 0);                                    \
		a = next_##t(op, a, b, c);                                     \
		memcpy(target, &a, sizeof(a));                                 \
	}

EACH_NARROW(u8, uint8_t, true)
EACH_NARROW(u16, uint16_t, true)
EACH_NARROW(u32, uint32_t, true)
EACH_NARROW(u64, uint64_t, true)
EACH_NARROW(i8, uint8_t, false)
EACH_NARROW(i16, uint16_t, false)
EACH_NARROW(i32, uint32_t, false)
EACH_NARROW(i64, uint64_t, false)
EACH_NARROW(e4m3, uint8_t, false)
EACH_NARROW(e5m2, uint8_t, false)
EACH_NARROW(f16, uint16_t, false)
EACH_NARROW(bf16, uint16_t, false)
EACH_NARROW(f32, uint32_t, false)
EACH_NARROW(f64, uint64_t, false)
EACH_NARROW(c32, uint64_t, false)
EACH_WIDE(u128, unsigned __int128)
EACH_WIDE(i128, unsigned __int128)
EACH_WIDE(f80, unsigned __int128)
EACH_WIDE(c64, unsigned __int128)
EACH_WIDE(c80, struct amo_word32)

/* The lists of operations: X makes the function or its entry in the table. */
#define LIST_MOVE(X, t, type)                                                  \
	X(read, FI_ATOMIC_READ, t, type)                                       \
	X(write, FI_ATOMIC_WRITE, t, type)

#define LIST_ANY(X, t, type)                                                   \
	X(sum, FI_SUM, t, type)                                                \
	X(diff, WF_OP_AMO_DIFF, t, type)                                       \
	X(prod, FI_PROD, t, type)                                              \
	X(lor, FI_LOR, t, type)                                                \
	X(land, FI_LAND, t, type)                                              \
	X(lxor, FI_LXOR, t, type)                                              \
	X(cswap, FI_CSWAP, t, type)                                            \
	X(cswap_ne, FI_CSWAP_NE, t, type)

#define LIST_ORDER(X, t, type)                                                 \
	X(min, FI_MIN, t, type)                                                \
	X(max, FI_MAX, t, type)                                                \
	X(cswap_le, FI_CSWAP_LE, t, type)                                      \
	X(cswap_lt, FI_CSWAP_LT, t, type)                                      \
	X(cswap_ge, FI_CSWAP_GE, t, type)                                      \
	X(cswap_gt, FI_CSWAP_GT, t, type)

#define LIST_BITS(X, t, type)                                                  \
	X(bor, FI_BOR, t, type)                                                \
	X(band, FI_BAND, t, type)                                              \
	X(bxor, FI_BXOR, t, type)                                              \
	X(mswap, FI_MSWAP, t, type)

#define FUNCTION(name, op, t, type)                                            \
	static void name##_##t(void *target, const void *operand,              \
			       const void *compare, void *result,              \
			       size_t count)                                   \
	{                                                                      \
		each_##t(op, target, operand, compare, result, count);         \
	}

#define FUNCTIONS_UNSIGNED(t)                                                  \
	LIST_MOVE(FUNCTION, t, )                                               \
	LIST_ANY(FUNCTION, t, )                                                \
	LIST_ORDER(FUNCTION, t, )                                              \
	LIST_BITS(FUNCTION, t, )

#define FUNCTIONS_REAL(t)                                                      \
	LIST_ANY(FUNCTION, t, )                                                \
	LIST_ORDER(FUNCTION, t, )

/* Reading and writing ask for a size only: those of the unsigned serve all,
 * but for the one size that has none. */
FUNCTIONS_UNSIGNED(u8)
FUNCTIONS_UNSIGNED(u16)
FUNCTIONS_UNSIGNED(u32)
FUNCTIONS_UNSIGNED(u64)
FUNCTIONS_UNSIGNED(u128)
LIST_ORDER(FUNCTION, i8, )
LIST_ORDER(FUNCTION, i16, )
LIST_ORDER(FUNCTION, i32, )
LIST_ORDER(FUNCTION, i64, )
LIST_ORDER(FUNCTION, i128, )
FUNCTIONS_REAL(e4m3)
FUNCTIONS_REAL(e5m2)
FUNCTIONS_REAL(f16)
FUNCTIONS_REAL(bf16)
FUNCTIONS_REAL(f32)
FUNCTIONS_REAL(f64)
FUNCTIONS_REAL(f80)
LIST_ANY(FUNCTION, c32, )
LIST_ANY(FUNCTION, c64, )
LIST_ANY(FUNCTION, c80, )
LIST_MOVE(FUNCTION, c80, )

#define ENTRY(name, op, t, type) [op][type] = name##_##t,

/* @order: the type that compares; @word: the unsigned of the same size. */
#define INTEGER(type, order, word)                                             \
	LIST_MOVE(ENTRY, word, type)                                           \
	LIST_ANY(ENTRY, word, type)                                            \
	LIST_BITS(ENTRY, word, type)                                           \
	LIST_ORDER(ENTRY, order, type)

#define REAL(type, t, word)                                                    \
	LIST_MOVE(ENTRY, word, type)                                           \
	LIST_ANY(ENTRY, t, type)                                               \
	LIST_ORDER(ENTRY, t, type)

#define COMPLEX(type, t, word)                                                 \
	LIST_MOVE(ENTRY, word, type)                                           \
	LIST_ANY(ENTRY, t, type)

/* clang-format off */
void (*const wf_op_amo_table[WF_OP_AMO_OPS][WF_OP_AMO_TYPES])(
	void *target, const void *operand, const void *compare, void *result,
	size_t count) = {
	INTEGER(FI_INT8, i8, u8)
	INTEGER(FI_UINT8, u8, u8)
	INTEGER(FI_INT16, i16, u16)
	INTEGER(FI_UINT16, u16, u16)
	INTEGER(FI_INT32, i32, u32)
	INTEGER(FI_UINT32, u32, u32)
	INTEGER(FI_INT64, i64, u64)
	INTEGER(FI_UINT64, u64, u64)
	INTEGER(FI_INT128, i128, u128)
	INTEGER(FI_UINT128, u128, u128)
	REAL(WF_OP_AMO_FLOAT8_E4M3, e4m3, u8)
	REAL(WF_OP_AMO_FLOAT8_E5M2, e5m2, u8)
	REAL(WF_OP_AMO_FLOAT16, f16, u16)
	REAL(WF_OP_AMO_BFLOAT16, bf16, u16)
	REAL(FI_FLOAT, f32, u32)
	REAL(FI_DOUBLE, f64, u64)
	REAL(FI_LONG_DOUBLE, f80, u128)
	COMPLEX(FI_FLOAT_COMPLEX, c32, u64)
	COMPLEX(FI_DOUBLE_COMPLEX, c64, u128)
	COMPLEX(FI_LONG_DOUBLE_COMPLEX, c80, c80)
};
/* clang-format on */
