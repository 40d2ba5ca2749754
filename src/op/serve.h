/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Executes a peer's request on our memory, at its target: the key is checked
 * and the memory accessed under the lock of the registrations, so that a call
 * that removes the memory waits. Does not know how the request arrived.
 */
#ifndef WF_OP_SERVE_H
#define WF_OP_SERVE_H

#include "op/amo.h"
#include "op/reg.h"

/* Bytes of memory that belong to one registration. */
struct wf_served {
	uint64_t addr;
	uint64_t len; /* 0: nothing is touched, no key is needed */
	uint64_t key;
	bool last; /* of its operation: counters of the registration hear it */
};

/* These return 0, or -FI_EKEYREJECTED and touch nothing. */
int wf_op_serve_put(struct wf_regs *regs, const struct wf_served *at,
		    const void *from);
int wf_op_serve_get(struct wf_regs *regs, const struct wf_served *at, void *to);

/* The vector that an access may touch, for a device that does it; up to
 * WF_REG_SEGS parts, @count of them. Counts nothing. */
int wf_op_serve_find(struct wf_regs *regs, const struct wf_served *at,
		     uint64_t access, struct wf_reg_target *target);

/* Counts an access that a device or the peer has made by itself. */
void wf_op_serve_note(struct wf_regs *regs, uint64_t key, bool write);

/* An operation on all of @at as a peer describes it: unchecked numbers. */
struct wf_served_amo {
	uint32_t kind; /* enum wf_op_amo_kind */
	uint32_t op;
	uint32_t type;
	const uint8_t *operand;
	const uint8_t *compare;
	uint8_t *result;
};

/* Bytes of an operation at most: what is put together on the stack. */
#define WF_OP_SERVE_AMO_MAX 4096

/* Bytes of operand and compare value that come with @len bytes of target, or
 * -EPROTO if there is no such operation on so many bytes. */
int wf_op_serve_amo_bytes(const struct wf_served_amo *amo, uint64_t len);

/* Runs an operation that wf_op_serve_amo_bytes() has accepted. */
int wf_op_serve_amo(struct wf_regs *regs, const struct wf_served *at,
		    const struct wf_served_amo *amo);

#endif
