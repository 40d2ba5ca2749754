/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registrations of memory: the owner's side, which adds and removes them, and
 * the peer's, which maps the owner's table and looks up keys. Both check the
 * same: key, bounds, access.
 *
 * An entry that was found stays valid only as long as the owner keeps it: as
 * with any hardware, an initiator on this node that writes by itself relies on
 * the application not removing memory during an operation. The owner's own
 * accesses run under the lock and are safe from that.
 */
#ifndef WF_OP_REG_H
#define WF_OP_REG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "op/cntr.h"
#include "op/reg_defs.h"
#include "os/shared.h"
#include "os/types.h"

/* A table that can be read, ours or a peer's. */
struct wf_reg_view {
	const struct wf_reg_entry *entries; /* NULL: none */
};

/* This keeps what was found last, of a registration with one segment: most
 * operations name the same one again. All of it is 0 in the beginning. */
struct wf_reg_known {
	uint64_t key;
	uint64_t access;
	uint64_t addr; /* what peers call the first byte ... */
	uint64_t len;
	uint64_t base; /* ... which is here in the owner's memory */
	uint32_t slot;
	uint32_t seq; /* of the entry: it has not changed since */
	uint32_t flags;
};

/* The counters for remote accesses to one registration. */
struct wf_reg_watch {
	struct wf_cntr *reads;
	struct wf_cntr *writes;
};

struct wf_regs {
	struct wf_lock lock;
	struct wf_reg_entry *entries;
	struct wf_reg_watch *watches; /* by slot; made with the first one */
	int memfd;		      /* for peers; sealed against writing */
	uint32_t count;
	uint64_t next_key;
	struct wf_reg_known served; /* by the last request of a peer */
	uint64_t reserved[WF_REG_BYTES / 4096 / 64]; /* pages that are there */
};

/* One access as a peer asks for it. */
struct wf_reg_access {
	uint64_t addr;
	uint64_t len;
	uint64_t key;
	uint64_t access; /* FI_REMOTE_READ, FI_REMOTE_WRITE */
};

/* This is its meaning in the owner's memory. */
struct wf_reg_target {
	uint32_t slot;
	uint32_t flags; /* WF_REG_EVENTS */
	uint32_t seg_count;
	struct iovec segs[WF_REG_SEGS];
};

/* 0 or -errno. @locked: several threads may use it. */
int wf_op_regs_open(struct wf_regs *regs, bool locked);
void wf_op_regs_close(struct wf_regs *regs);

/* An unused key. */
uint64_t wf_op_regs_new_key(struct wf_regs *regs);

/* Adds a registration. 0, -EEXIST when the key is in use, -ENOSPC, -ENOMEM. */
int wf_op_regs_add(struct wf_regs *regs, uint64_t key, uint64_t access,
		   uint32_t flags, const struct iovec *iov, size_t count);
void wf_op_regs_del(struct wf_regs *regs, uint64_t key);

/* Lets peers map the memory of @key, which has one segment. */
void wf_op_regs_share(struct wf_regs *regs, uint64_t key,
		      const struct wf_reg_file *file);

/* Counts remote accesses to @key from now on; NULL = not that kind.
 * 0, -ENOENT, -ENOMEM. */
int wf_op_regs_watch(struct wf_regs *regs, uint64_t key,
		     const struct wf_reg_watch *watch);

/* Finds and checks. 0, -ENOENT when key, bounds or access are wrong, -EAGAIN
 * when the owner is changing the entry just now. */
int wf_op_reg_find(const struct wf_reg_view *view,
		   const struct wf_reg_access *want,
		   struct wf_reg_target *target);

/* The same, of what is not known; fills @known if it can. */
int wf_op_reg_find_new(const struct wf_reg_view *view,
		       struct wf_reg_known *known,
		       const struct wf_reg_access *want,
		       struct wf_reg_target *target);

/* Finds the registration alone: slot and flags. 0, -ENOENT, -EAGAIN. */
int wf_op_reg_find_key(const struct wf_reg_view *view, uint64_t key,
		       struct wf_reg_target *target);

/* Copies all of an entry; @slot: its place. 0, -ENOENT, -EAGAIN. */
int wf_op_reg_copy(const struct wf_reg_view *view, uint64_t key,
		   struct wf_reg_entry *entry, uint32_t *slot);

/* Whether the entry at @slot is the one that had the sequence @seq. */
static inline bool wf_op_reg_is_current(const struct wf_reg_view *view,
					uint32_t slot, uint32_t seq)
{
	return wf_shared_load(&view->entries[slot].seq, acquire) == seq;
}

/* Whether @want is an access to the registration @known, which allows it and has
 * not changed since. */
static inline bool wf_op_reg_is_known(const struct wf_reg_view *view,
				      const struct wf_reg_known *known,
				      const struct wf_reg_access *want)
{
	uint64_t at = want->addr - known->addr;

	/* If nothing is known, access is 0. */
	return known->key == want->key && want->access &&
	       (known->access & want->access) == want->access &&
	       at <= known->len && want->len <= known->len - at &&
	       wf_op_reg_is_current(view, known->slot, known->seq);
}

/* wf_op_reg_find() that remembers the last registration. */
static inline int wf_op_reg_find_known(const struct wf_reg_view *view,
				       struct wf_reg_known *known,
				       const struct wf_reg_access *want,
				       struct wf_reg_target *target)
{
	if (!wf_op_reg_is_known(view, known, want))
		return wf_op_reg_find_new(view, known, want, target);
	target->slot = known->slot;
	target->flags = known->flags;
	target->seg_count = 1;
	target->segs[0].iov_base =
		(void *)(uintptr_t)(known->base + (want->addr - known->addr));
	target->segs[0].iov_len = want->len;
	return 0;
}

/* Counts in the counters of the registration at @slot. Lock held. */
void wf_op_regs_count_locked(struct wf_regs *regs, uint32_t slot, bool write);

static inline struct wf_reg_view wf_op_regs_view(const struct wf_regs *regs)
{
	return (struct wf_reg_view){ .entries = regs->entries };
}

/* Whether a peer's descriptor is that of a table: a memfd of that size which can
 * never shrink and which can be mapped. That does not change any more. */
bool wf_op_reg_is_sound(int memfd);

/* Maps a peer's table. 0, -EPROTO or -errno. */
int wf_op_reg_map(struct wf_reg_view *view, int memfd);
void wf_op_reg_unmap(struct wf_reg_view *view);

#endif
