/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions behind atomic operations, by op and datatype. Between amo.c,
 * which says when what is called, and amo_table.c.
 */
#ifndef WF_OP_AMO_TABLE_H
#define WF_OP_AMO_TABLE_H

#include <stddef.h>

#include "op/amo.h"

/*
 * Datatypes up to 8 bytes: @count elements of an aligned target, each in one
 * atomic step. Larger ones: one element, a copy that is the caller's own; @count
 * and @result are not looked at. @result NULL: not wanted. NULL entries: not an
 * operation.
 */
extern void (*const wf_op_amo_table[WF_OP_AMO_OPS][WF_OP_AMO_TYPES])(
	void *target, const void *operand, const void *compare, void *result,
	size_t count);

/* The largest size that is changed in place. */
#define WF_OP_AMO_NARROW 8

#endif
