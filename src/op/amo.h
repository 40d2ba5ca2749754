/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One atomic memory operation of libfabric on memory of this process. Knows
 * nothing of keys, bounds or peers: the caller has checked that the target is
 * registered, large enough, and open for what the operation does.
 *
 * Each element is atomic. Its address and size alone decide how, so that all
 * users of the same object in this process agree:
 *
 *	cpu	1, 2, 4 or 8 bytes, naturally aligned; 16 bytes, aligned to 16,
 *		where the processor has cmpxchg16b and atomic 16-byte loads.
 *		One instruction, or a loop around compare-and-swap: atomic also
 *		against the application's own atomics, seq_cst.
 *	lock	anything else: unaligned, 32 bytes, 16 bytes on a lesser
 *		processor. Locks go by cache line of the target; an object that
 *		crosses a line takes both.
 *
 * Objects that overlap, or one address used with several datatypes: any two of
 * kind "cpu" are atomic against each other, whatever their sizes (x86 orders
 * locked instructions on one line), and so are any two of kind "lock". One of
 * each is not: such as an aligned 8-byte word, and an unaligned one or a long
 * double complex that covers a part of it. Nobody else, neither the application
 * nor another process that has the memory mapped, is atomic against "lock".
 */
#ifndef WF_OP_AMO_H
#define WF_OP_AMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* fi_op and fi_datatype by number, as they travel between builds: the headers
 * we build against may be older than the application. Up to FI_MSWAP and
 * FI_UINT128 they are in libfabric 1.17; the rest came with 2.x. */
enum { WF_OP_AMO_DIFF = 19, WF_OP_AMO_OPS };

enum {
	WF_OP_AMO_FLOAT16 = 16,
	WF_OP_AMO_BFLOAT16,
	WF_OP_AMO_FLOAT8_E4M3,
	WF_OP_AMO_FLOAT8_E5M2,
	WF_OP_AMO_TYPES
};

/* The three families of calls, fi_atomic(3). */
enum wf_op_amo_kind {
	WF_OP_AMO_WRITE,   /* fi_atomic: no result */
	WF_OP_AMO_FETCH,   /* fi_fetch_atomic */
	WF_OP_AMO_COMPARE, /* fi_compare_atomic */
};

/* Of the largest datatype, long double complex. */
#define WF_OP_AMO_SIZE_MAX 32

/* Whether we do this, for any numbers, such as a peer's. Write: MIN to BXOR,
 * ATOMIC_WRITE, DIFF. Fetch: these and ATOMIC_READ. Compare: CSWAP*, MSWAP.
 * Every datatype has all of them that mean something for it:
 *
 *	integers, 8 to 128 bits		all
 *	float, double, long double,
 *	float16, bfloat16, float8	all but BOR, BAND, BXOR, MSWAP
 *	complex				also not MIN, MAX and CSWAP_LE to _GT:
 *					there is no order
 */
bool wf_op_amo_valid(unsigned int op, unsigned int datatype,
		     enum wf_op_amo_kind kind);

/* Whether an application of that FI_VERSION() knows both numbers: it cannot
 * have meant a number that it does not know. */
bool wf_op_amo_known(unsigned int op, unsigned int datatype,
		     uint32_t api_version);

/* Bytes of one element; 0 for what is no datatype. */
size_t wf_op_amo_size(unsigned int datatype);

/*
 * Runs a valid operation on @count elements, in order. Nothing needs to be
 * aligned. @operand is not read by FI_ATOMIC_READ, @compare only by the compare
 * kind, @result (the value before) is not written by the write kind; pointers
 * that are not used may be NULL. @result may be the same memory as @operand or
 * @compare: an element is written after they were read. FI_ATOMIC_READ never
 * writes the target: it works on read-only memory.
 *
 * Comparisons are by value: 0.0 equals -0.0, and a NaN equals nothing. Integers
 * wrap. float16, bfloat16 and float8 round to nearest, ties to even; FLOAT8_E4M3
 * has no infinity (OCP 8-bit floating point) and overflows to NaN. The others
 * are computed as the calling thread's floating-point environment says.
 */
void wf_op_amo_run(enum wf_op_amo_kind kind, unsigned int op,
		   unsigned int datatype, void *target, const void *operand,
		   const void *compare, void *result, size_t count);

#endif
