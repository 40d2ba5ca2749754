/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registrations of memory.
 */
#include "op/reg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memfd.h"
#include "os/file.h"
#include "os/memory.h"
#include "os/process.h"
#include "os/shared.h"

#define PAGE 4096
#define SLOTS_PER_PAGE (PAGE / sizeof(struct wf_reg_entry))

/* If the writer was preempted in the middle of a change, we do not wait for it:
 * the caller tries again. */
#define READ_TRIES 64

int wf_op_regs_open(struct wf_regs *regs, bool locked)
{
	void *entries = NULL;
	int err;

	*regs = (struct wf_regs){ .memfd = -1 };
	wf_base_lock_init(&regs->lock, locked);
	regs->memfd = wf_base_memfd_create_sparse("weft-regs", WF_REG_BYTES);
	if (regs->memfd < 0)
		return regs->memfd;
	err = wf_os_mmap(&entries, WF_REG_BYTES, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_NORESERVE, regs->memfd);
	if (err)
		goto err_close;
	regs->entries = entries;
	err = wf_base_memfd_seal_writing(regs->memfd);
	if (err)
		goto err_unmap;
	/* Keys of a process that has ended should not be valid for its
	 * successor. */
	if (wf_os_random(&regs->next_key, sizeof(regs->next_key), false))
		regs->next_key = wf_base_clock_ns();
	regs->next_key >>= 8;
	return 0;

err_unmap:
	wf_os_munmap(regs->entries, WF_REG_BYTES);
	regs->entries = NULL;
err_close:
	wf_os_close(regs->memfd);
	regs->memfd = -1;
	return err;
}

void wf_op_regs_close(struct wf_regs *regs)
{
	if (regs->entries)
		wf_os_munmap(regs->entries, WF_REG_BYTES);
	if (regs->memfd >= 0)
		wf_os_close(regs->memfd);
	free(regs->watches);
	*regs = (struct wf_regs){ .memfd = -1 };
}

/* Consecutive keys are next to each other, 32 to a page; the other bits of the
 * key are spread. */
static uint32_t first_slot(uint64_t key)
{
	uint64_t spread = (key / SLOTS_PER_PAGE) * 0x9e3779b97f4a7c15u;
	uint32_t page = (uint32_t)(spread >> (64 - WF_REG_SLOTS_LOG2)) &
			~(uint32_t)(SLOTS_PER_PAGE - 1);

	return page | (uint32_t)(key % SLOTS_PER_PAGE);
}

static uint32_t next_slot(uint32_t slot)
{
	return (slot + 1) & (WF_REG_SLOTS - 1);
}

static int reserve_locked(struct wf_regs *regs, uint32_t slot)
{
	uint32_t page = slot / SLOTS_PER_PAGE;
	uint64_t bit = (uint64_t)1 << page % 64;
	int err;

	if (regs->reserved[page / 64] & bit)
		return 0;
	err = wf_base_memfd_reserve(regs->memfd, (off_t)page * PAGE, PAGE);
	if (!err)
		regs->reserved[page / 64] |= bit;
	return err;
}

/* The slot of @key, or where it would go in *@free_slot; -ENOENT, -ENOSPC. A
 * page that is not reserved yet shows zeroes: free. */
static int64_t find_locked(const struct wf_regs *regs, uint64_t key,
			   uint32_t *free_slot)
{
	uint32_t slot = first_slot(key);
	bool found = false;

	for (int i = 0; i < WF_REG_PROBES; i++, slot = next_slot(slot)) {
		const struct wf_reg_entry *entry = &regs->entries[slot];

		if (entry->state == WF_REG_USED) {
			if (entry->key == key)
				return slot;
			continue;
		}
		if (!found)
			*free_slot = slot;
		found = true;
		if (entry->state == WF_REG_FREE)
			return -ENOENT;
	}
	return found ? -ENOENT : -ENOSPC;
}

/* Release on both ends: a reader that sees the new sequence sees what was
 * written before. Pairs with the fence in read_entry(). */
static void begin_change(struct wf_reg_entry *entry)
{
	uint32_t seq = wf_shared_load(&entry->seq, relaxed);

	wf_shared_store(&entry->seq, seq + 1, relaxed);
	wf_shared_fence(release);
}

static void end_change(struct wf_reg_entry *entry)
{
	uint32_t seq = wf_shared_load(&entry->seq, relaxed);

	wf_shared_store(&entry->seq, seq + 1, release);
}

uint64_t wf_op_regs_new_key(struct wf_regs *regs)
{
	uint32_t slot;
	uint64_t key;

	wf_base_lock_take(&regs->lock);
	do {
		key = ++regs->next_key;
	} while (find_locked(regs, key, &slot) >= 0);
	wf_base_lock_drop(&regs->lock);
	return key;
}

static int add_locked(struct wf_regs *regs, uint64_t key, uint64_t access,
		      uint32_t flags, const struct iovec *iov, size_t count)
{
	struct wf_reg_entry *entry;
	uint32_t slot = 0;
	uint64_t len = 0;
	int64_t found = find_locked(regs, key, &slot);
	int err;

	if (found >= 0)
		return -EEXIST;
	if (found == -ENOSPC || regs->count >= WF_REG_MAX)
		return -ENOSPC;
	err = reserve_locked(regs, slot);
	if (err)
		return -ENOMEM;
	entry = &regs->entries[slot];
	begin_change(entry);
	for (size_t i = 0; i < count; i++) {
		entry->segs[i].addr = (uint64_t)(uintptr_t)iov[i].iov_base;
		entry->segs[i].len = iov[i].iov_len;
		len += iov[i].iov_len;
	}
	entry->key = key;
	entry->access = access;
	entry->flags = flags;
	entry->len = len;
	entry->seg_count = (uint32_t)count;
	entry->state = WF_REG_USED;
	end_change(entry);
	regs->count++;
	return 0;
}

int wf_op_regs_add(struct wf_regs *regs, uint64_t key, uint64_t access,
		   uint32_t flags, const struct iovec *iov, size_t count)
{
	int err;

	assert(count <= WF_REG_SEGS);
	wf_base_lock_take(&regs->lock);
	err = add_locked(regs, key, access, flags, iov, count);
	wf_base_lock_drop(&regs->lock);
	return err;
}

/* Deleted entries before the end of a chain are useless: they become its
 * end. */
static void shorten_chain_locked(struct wf_regs *regs, uint32_t slot)
{
	if (regs->entries[next_slot(slot)].state != WF_REG_FREE)
		return;
	while (regs->entries[slot].state == WF_REG_DELETED) {
		begin_change(&regs->entries[slot]);
		regs->entries[slot].state = WF_REG_FREE;
		end_change(&regs->entries[slot]);
		slot = (slot - 1) & (WF_REG_SLOTS - 1);
	}
}

void wf_op_regs_del(struct wf_regs *regs, uint64_t key)
{
	uint32_t unused;
	int64_t slot;

	wf_base_lock_take(&regs->lock);
	slot = find_locked(regs, key, &unused);
	if (slot >= 0) {
		struct wf_reg_entry *entry = &regs->entries[slot];

		begin_change(entry);
		entry->state = WF_REG_DELETED;
		entry->access = 0;
		end_change(entry);
		regs->count--;
		if (regs->watches)
			regs->watches[slot] = (struct wf_reg_watch){ 0 };
		shorten_chain_locked(regs, (uint32_t)slot);
	}
	wf_base_lock_drop(&regs->lock);
}

void wf_op_regs_share(struct wf_regs *regs, uint64_t key,
		      const struct wf_reg_file *file)
{
	uint32_t unused;
	int64_t slot;

	wf_base_lock_take(&regs->lock);
	slot = find_locked(regs, key, &unused);
	if (slot >= 0 && regs->entries[slot].seg_count == 1) {
		struct wf_reg_entry *entry = &regs->entries[slot];

		begin_change(entry);
		entry->file = *file;
		entry->flags |= WF_REG_FILE;
		end_change(entry);
	}
	wf_base_lock_drop(&regs->lock);
}

int wf_op_regs_watch(struct wf_regs *regs, uint64_t key,
		     const struct wf_reg_watch *watch)
{
	uint32_t unused;
	int64_t slot;
	int err = 0;

	wf_base_lock_take(&regs->lock);
	slot = find_locked(regs, key, &unused);
	if (slot < 0)
		err = -ENOENT;
	else if (!regs->watches)
		regs->watches = calloc(WF_REG_SLOTS, sizeof(*regs->watches));
	if (!err && !regs->watches)
		err = -ENOMEM;
	if (!err) {
		struct wf_reg_entry *entry = &regs->entries[slot];

		if (watch->reads)
			regs->watches[slot].reads = watch->reads;
		if (watch->writes)
			regs->watches[slot].writes = watch->writes;
		begin_change(entry);
		entry->flags |= WF_REG_EVENTS;
		end_change(entry);
	}
	wf_base_lock_drop(&regs->lock);
	return err;
}

void wf_op_regs_count_locked(struct wf_regs *regs, uint32_t slot, bool write)
{
	if (!regs->watches)
		return;
	wf_op_cntr_add(write ? regs->watches[slot].writes :
			       regs->watches[slot].reads,
		       1);
}

/* -- looking up ------------------------------------------------------------ */

/* A part of an entry, whatever its members are: without the attribute the
 * compiler may assume that a store to a word changes no member of 32 bits. */
typedef uint64_t __attribute__((may_alias)) entry_word;

/* Copies an entry that may change at any time. False: it is changing. The copy
 * is made word by word, so that only atomics race. */
static bool read_entry(const struct wf_reg_entry *entry,
		       struct wf_reg_entry *copy)
{
	const size_t head = offsetof(struct wf_reg_entry, segs) / 8;
	const entry_word *from = (const void *)entry;
	entry_word *to = (void *)copy;

	for (int tries = 0; tries < READ_TRIES; tries++) {
		uint32_t seq = wf_shared_load(&entry->seq, acquire);
		size_t words;

		for (size_t i = 0; i < head; i++)
			to[i] = wf_shared_load_plain(&from[i], relaxed);
		/* Most have one. The value is a peer's: check() validates
		 * it. */
		words = copy->seg_count <= WF_REG_SEGS ?
				copy->seg_count * sizeof(copy->segs[0]) / 8 :
				0;
		for (size_t i = head; i < head + words; i++)
			to[i] = wf_shared_load_plain(&from[i], relaxed);
		wf_shared_fence(acquire);
		if (!(seq & 1) && wf_shared_load(&entry->seq, relaxed) == seq)
			return true;
		wf_base_cpu_relax();
	}
	return false;
}

/* [addr, addr + len) inside one segment. */
static bool cut_segment(const struct wf_reg_entry *entry,
			const struct wf_reg_access *want,
			struct wf_reg_target *target)
{
	for (uint32_t i = 0; i < entry->seg_count; i++) {
		const struct wf_reg_seg *seg = &entry->segs[i];

		if (want->addr < seg->addr ||
		    want->addr - seg->addr > seg->len ||
		    want->len > seg->len - (want->addr - seg->addr))
			continue;
		target->seg_count = 1;
		target->segs[0].iov_base = (void *)(uintptr_t)want->addr;
		target->segs[0].iov_len = want->len;
		return true;
	}
	return false;
}

/* [addr, addr + len) counted from the start of the first segment. */
static bool cut_offset(const struct wf_reg_entry *entry,
		       const struct wf_reg_access *want,
		       struct wf_reg_target *target)
{
	uint64_t skip = want->addr, left = want->len;

	if (skip > entry->len || left > entry->len - skip)
		return false;
	target->seg_count = 0;
	for (uint32_t i = 0; i < entry->seg_count && left; i++) {
		const struct wf_reg_seg *seg = &entry->segs[i];
		struct iovec *to = &target->segs[target->seg_count];
		uint64_t part;

		if (skip >= seg->len) {
			skip -= seg->len;
			continue;
		}
		part = seg->len - skip < left ? seg->len - skip : left;
		to->iov_base = (void *)(uintptr_t)(seg->addr + skip);
		to->iov_len = part;
		target->seg_count++;
		left -= part;
		skip = 0;
	}
	return !left;
}

static int check(const struct wf_reg_entry *entry,
		 const struct wf_reg_access *want, struct wf_reg_target *target)
{
	if ((entry->access & want->access) != want->access ||
	    entry->seg_count > WF_REG_SEGS)
		return -ENOENT;
	if (entry->flags & WF_REG_OFFSETS)
		return cut_offset(entry, want, target) ? 0 : -ENOENT;
	return cut_segment(entry, want, target) ? 0 : -ENOENT;
}

static int find_entry(const struct wf_reg_view *view, uint64_t key,
		      struct wf_reg_entry *entry, struct wf_reg_target *target)
{
	uint32_t slot = first_slot(key);

	target->seg_count = 0;
	if (!view->entries)
		return -ENOENT;
	for (int i = 0; i < WF_REG_PROBES; i++, slot = next_slot(slot)) {
		if (!read_entry(&view->entries[slot], entry))
			return -EAGAIN;
		if (entry->state == WF_REG_FREE)
			return -ENOENT;
		if (entry->state != WF_REG_USED || entry->key != key)
			continue;
		target->slot = slot;
		target->flags = entry->flags;
		return 0;
	}
	return -ENOENT;
}

int wf_op_reg_find_key(const struct wf_reg_view *view, uint64_t key,
		       struct wf_reg_target *target)
{
	struct wf_reg_entry entry;

	return find_entry(view, key, &entry, target);
}

/* Until two looks see the same: changes are rare, and the whole is small. */
int wf_op_reg_copy(const struct wf_reg_view *view, uint64_t key,
		   struct wf_reg_entry *entry, uint32_t *slot)
{
	struct wf_reg_target target;
	int err = find_entry(view, key, entry, &target);
	const entry_word *from;
	entry_word *to = (void *)&entry->file;

	if (err)
		return err;
	*slot = target.slot;
	from = (const void *)&view->entries[target.slot].file;
	for (size_t i = 0; i < sizeof(entry->file) / 8; i++)
		to[i] = wf_shared_load_plain(&from[i], relaxed);
	wf_shared_fence(acquire);
	return wf_op_reg_is_current(view, target.slot,
				    wf_shared_load(&entry->seq, relaxed)) ?
		       0 :
		       -EAGAIN;
}

int wf_op_reg_find(const struct wf_reg_view *view,
		   const struct wf_reg_access *want,
		   struct wf_reg_target *target)
{
	struct wf_reg_entry entry;
	int err = find_entry(view, want->key, &entry, target);

	return err ? err : check(&entry, want, target);
}

int wf_op_reg_find_new(const struct wf_reg_view *view,
		       struct wf_reg_known *known,
		       const struct wf_reg_access *want,
		       struct wf_reg_target *target)
{
	struct wf_reg_entry entry;
	int err = find_entry(view, want->key, &entry, target);

	if (!err)
		err = check(&entry, want, target);
	if (err || entry.seg_count != 1)
		return err;
	*known = (struct wf_reg_known){
		.key = entry.key,
		.access = entry.access,
		.addr = entry.flags & WF_REG_OFFSETS ? 0 : entry.segs[0].addr,
		.len = entry.segs[0].len,
		.base = entry.segs[0].addr,
		.slot = target->slot,
		.seq = wf_shared_load(&entry.seq, relaxed),
		.flags = entry.flags,
	};
	return 0;
}

/* The seals first: that cannot block, whatever the peer has sent. */
bool wf_op_reg_is_sound(int memfd)
{
	return wf_base_memfd_is_sound(memfd, WF_REG_BYTES) &&
	       wf_os_is_readable(memfd);
}

int wf_op_reg_map(struct wf_reg_view *view, int memfd)
{
	void *entries = NULL;
	int err;

	view->entries = NULL;
	if (!wf_op_reg_is_sound(memfd))
		return -EPROTO;
	err = wf_os_mmap(&entries, WF_REG_BYTES, PROT_READ,
			 MAP_SHARED | MAP_NORESERVE, memfd);
	if (err)
		return err;
	view->entries = entries;
	return 0;
}

void wf_op_reg_unmap(struct wf_reg_view *view)
{
	if (view->entries)
		wf_os_munmap((void *)(uintptr_t)view->entries, WF_REG_BYTES);
	view->entries = NULL;
}
