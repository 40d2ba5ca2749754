/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of a domain's registrations as peers of the node see it: a memfd
 * that only its owner can write. Two builds of weft must agree on it; it has
 * no version of its own, WF_SHM_LAYOUT covers it.
 *
 * An open hash by key, 128 bytes per registration. Each entry has a sequence
 * that is odd while the owner changes it; a reader copies the entry and then
 * looks whether the sequence still stands. Neighbouring keys share a page:
 * most users count theirs up.
 */
#ifndef WF_OP_REG_DEFS_H
#define WF_OP_REG_DEFS_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define WF_REG_SLOTS_LOG2 17
#define WF_REG_SLOTS (1u << WF_REG_SLOTS_LOG2)
/* Registrations at most: the table stays half empty, so that chains are
 * short. */
#define WF_REG_MAX (WF_REG_SLOTS / 2)
#define WF_REG_SEGS 4
#define WF_REG_PROBES 1024 /* longest chain */

enum wf_reg_state {
	WF_REG_FREE, /* ends a chain */
	WF_REG_USED,
	WF_REG_DELETED, /* does not end one */
};

/* In addition to the access bits of libfabric (FI_REMOTE_READ, ...), which are
 * far above: addresses are offsets from 0; the owner counts accesses. */
#define WF_REG_OFFSETS 0x1u
#define WF_REG_EVENTS 0x2u
/* There is one segment, in a file of memory that peers may map: ->file. */
#define WF_REG_FILE 0x4u

struct wf_reg_seg {
	uint64_t addr;
	uint64_t len;
};

struct wf_reg_file {
	uint32_t fd; /* of the owner */
	uint32_t unused;
	uint64_t offset; /* of the first byte of the segment */
	uint64_t inode;
};

struct wf_reg_entry {
	_Atomic uint32_t seq;
	uint32_t state;
	uint64_t key;
	uint64_t access;
	uint64_t len; /* of all segments */
	uint32_t seg_count;
	uint32_t flags; /* WF_REG_OFFSETS, ... */
	struct wf_reg_seg segs[WF_REG_SEGS];
	struct wf_reg_file file; /* if WF_REG_FILE is set */
};

static_assert(sizeof(struct wf_reg_entry) == 128, "two lines");
static_assert(offsetof(struct wf_reg_entry, segs) == 40, "header, segments");

#define WF_REG_BYTES ((size_t)WF_REG_SLOTS * sizeof(struct wf_reg_entry))

#endif
