/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reserved memory of channels: how it is allocated in each scenario, shared,
 * and addressed by a device. A lock per channel covers its memory; sharing
 * takes the locks of both, the lower address first.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "chan/core.h"
#include "chan/session.h"
#include "weft/wd_drv.h"

static bool is_sva(const struct wd_chan *ch)
{
	return ch->dev_info->iommu_type == WD_IOMMU_SVA;
}

int wf_chan_memory_map(int fd, uint64_t offset, size_t size, void **va)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *start;

	flags |= *va ? MAP_FIXED : 0;
	start = mmap(*va, size, PROT_READ | PROT_WRITE, flags, fd,
		     (off_t)offset);
	if (start == MAP_FAILED)
		return -errno;
	/* As the kernel does with a device's memory. */
	madvise(start, size, MADV_DONTFORK);
	*va = start;
	return 0;
}

/* -- release --------------------------------------------------------------- */

static void free_region(struct wf_chan_region *region)
{
	/* A child never had the mapping: the memory at this address is not
	 * ours. */
	if (region->owner == getpid()) {
		if (region->third)
			region->third->free_mem(region->va);
		else if (region->plugged)
			region->plugged->release(region->va, region->size);
		else
			munmap(region->va, region->size);
	}
	free(region);
}

/* Memory of an allocator, which would reuse it, that a device may still write
 * to: the device was given up because it was silent (stopped), and continues
 * its job when it wakes. The next call that reserves or releases memory checks
 * it. */
static pthread_mutex_t owed_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wf_list owed = { &owed, &owed };
static pthread_once_t owed_once = PTHREAD_ONCE_INIT;

/* The parent's memory stays with the parent. */
static void forget_owed(void)
{
	pthread_mutex_init(&owed_lock, NULL);
	wf_base_list_init(&owed);
}

static void watch_owed(void)
{
	pthread_atfork(NULL, NULL, forget_owed);
}

static void owe(struct wf_chan_region *region, struct wf_chan_session *session)
{
	wf_warn("%zu bytes stay allocated until the device that "
		"was given up has released them",
		region->size);
	pthread_once(&owed_once, watch_owed);
	wf_chan_session_hold(session);
	region->session = session;
	pthread_mutex_lock(&owed_lock);
	wf_base_list_add_tail(&owed, &region->link);
	pthread_mutex_unlock(&owed_lock);
}

static struct wf_chan_region *next_settled(void)
{
	struct wf_chan_region *settled = NULL;
	struct wf_list *pos, *tmp;

	pthread_mutex_lock(&owed_lock);
	wf_list_for_each (pos, tmp, &owed) {
		struct wf_chan_region *region =
			wf_container_of(pos, struct wf_chan_region, link);

		if (!settled && wf_chan_session_has_ended(region->session)) {
			wf_base_list_unlink(pos);
			settled = region;
		}
	}
	pthread_mutex_unlock(&owed_lock);
	return settled;
}

static void settle(void)
{
	struct wf_chan_region *region;

	while ((region = next_settled())) {
		wf_chan_session_put(region->session);
		free_region(region);
	}
}

void wf_chan_memory_release(struct wf_chan_core *core)
{
	struct wf_chan_region *region = atomic_exchange(&core->region, NULL);
	bool done;

	settle();
	if (!region || atomic_fetch_sub(&region->refs, 1) > 1)
		return;
	done = !core->session || core->released || core->foreign ||
	       wf_chan_session_has_ended(core->session);
	if (region->third && !done)
		owe(region, core->session);
	else
		free_region(region);
}

/* -- reserve --------------------------------------------------------------- */

/* From the user's allocator. If it has a descriptor, a device that must map the
 * memory uses that; otherwise the allocator's address is used. */
static int reserve_third(struct wd_chan *ch, struct wf_chan_region *region)
{
	const struct wd_3rd_memory *third = ch->core->third;
	const struct wf_chan_ops *ops = ch->core->ops;
	uint64_t offset = 0;
	int fd = -1, err;

	region->va = third->alloc_mem(region->size, &region->dma);
	if (!region->va)
		return -ENOMEM;
	region->third = third;
	if (is_sva(ch)) {
		region->dma = (uint64_t)(uintptr_t)region->va;
		return 0;
	}
	if (third->get_fd)
		fd = third->get_fd(region->va, &offset);
	/* A device that maps nothing trusts the allocator's address. */
	if (ops->attach)
		err = ops->attach(ch, fd, offset, region->size, &region->dma);
	else
		err = region->dma ? 0 : -EOPNOTSUPP;
	if (err == -EOPNOTSUPP || err == -EBADF) {
		wf_warn("third-party memory has no %s that %s could use",
			err == -EBADF ? "descriptor (get_fd)" : "address",
			ch->dev_info->name);
		err = -EOPNOTSUPP;
	}
	if (err)
		third->free_mem(region->va);
	return err;
}

static int fill_region(struct wd_chan *ch, struct wf_chan_region *region)
{
	int err;

	if (ch->core->third)
		return reserve_third(ch, region);
	region->plugged = ch->core->plugged;
	if (!is_sva(ch))
		return ch->core->ops->reserve(ch, region->size, &region->va,
					      &region->dma);
	region->va = NULL;
	err = wf_chan_memory_map(-1, 0, region->size, &region->va);
	region->dma = (uint64_t)(uintptr_t)region->va;
	return err;
}

static int reserve_locked(struct wd_chan *ch, size_t size)
{
	struct wf_chan_core *core = ch->core;
	struct wf_chan_region *region;
	int err;

	if (atomic_load(&core->region))
		return -EEXIST;
	settle();
	region = calloc(1, sizeof(*region));
	if (!region)
		return -ENOMEM;
	region->refs = 1;
	region->size = size;
	region->owner = getpid();
	err = fill_region(ch, region);
	if (err) {
		free(region);
		return err;
	}
	ch->ss_va = region->va;
	ch->ss_dma = (void *)(uintptr_t)region->dma;
	atomic_store(&core->region, region);
	return 0;
}

void *wd_reserve_mem(struct wd_chan *ch, size_t size)
{
	struct wf_chan_core *core = wf_chan_core_of(ch);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int err;

	if (!core || !size) {
		errno = EINVAL;
		return NULL;
	}
	if (core->foreign) {
		errno = ENODEV;
		return NULL;
	}
	if (size > SIZE_MAX / 2) {
		errno = ENOMEM;
		return NULL;
	}
	pthread_mutex_lock(&core->memory_lock);
	err = reserve_locked(ch, (size + page - 1) & ~(page - 1));
	pthread_mutex_unlock(&core->memory_lock);
	if (!err)
		return ch->ss_va;
	errno = -err;
	return NULL;
}

/* -- share ----------------------------------------------------------------- */

static int share_locked(struct wd_chan *owner, struct wd_chan *target)
{
	struct wf_chan_region *region = atomic_load(&owner->core->region);
	int err;

	if (!region || atomic_load(&target->core->region) ||
	    owner->dev_info->iommu_type != target->dev_info->iommu_type ||
	    owner->core->ops != target->core->ops)
		return -EINVAL;
	err = owner->core->ops->share(owner, target);
	if (err)
		return err;
	atomic_fetch_add(&region->refs, 1);
	target->ss_va = owner->ss_va;
	target->ss_dma = owner->ss_dma;
	atomic_store(&target->core->region, region);
	return 0;
}

static void lock_both(struct wf_chan_core *a, struct wf_chan_core *b)
{
	bool a_first = (uintptr_t)a < (uintptr_t)b;

	pthread_mutex_lock(a_first ? &a->memory_lock : &b->memory_lock);
	pthread_mutex_lock(a_first ? &b->memory_lock : &a->memory_lock);
}

int wd_share_reserved_memory(struct wd_chan *ch, struct wd_chan *target)
{
	int err;

	if (!wf_chan_core_of(ch) || !wf_chan_core_of(target) || ch == target)
		return -EINVAL;
	if (ch->core->foreign || target->core->foreign)
		return -ENODEV;
	if (is_sva(ch) && is_sva(target))
		return 0;
	if (is_sva(ch) || is_sva(target))
		return -EINVAL;
	lock_both(ch->core, target->core);
	err = share_locked(ch, target);
	pthread_mutex_unlock(&ch->core->memory_lock);
	pthread_mutex_unlock(&target->core->memory_lock);
	return err;
}

int wd_share_dma_addr(struct wd_chan *dst, struct wd_chan *src)
{
	return wd_share_reserved_memory(src, dst);
}

int wd_is_sharing(struct wd_chan *ch, void *dma_addr)
{
	(void)dma_addr;
	if (!wf_chan_core_of(ch))
		return -EINVAL;
	return is_sva(ch);
}

/* -- addresses ------------------------------------------------------------- */

static uint64_t translate(const struct wf_chan_region *region, const void *va)
{
	uintptr_t offset;

	if (!region)
		return 0;
	offset = (uintptr_t)va - (uintptr_t)region->va;
	return offset < region->size ? region->dma + offset : 0;
}

uint64_t wd_get_dma_from_va(struct wd_chan *ch, void *va)
{
	struct wf_chan_core *core = wf_chan_core_of(ch);

	if (!core || core->foreign)
		return 0;
	if (is_sva(ch))
		return (uint64_t)(uintptr_t)va;
	return translate(atomic_load(&core->region), va);
}

uint64_t wd_get_pa_from_va(struct wd_chan *ch, void *va)
{
	struct wf_chan_core *core = wf_chan_core_of(ch);

	if (!core || core->foreign || ch->dev_info->iommu_type != WD_IOMMU_NONE)
		return 0;
	return translate(atomic_load(&core->region), va);
}

/* -- third-party memory ---------------------------------------------------- */

int wd_register_3rd_memory(struct wd_chan *ch, const struct wd_3rd_memory *mem)
{
	struct wf_chan_core *core = wf_chan_core_of(ch);
	int err = 0;

	if (!core || !mem || !mem->alloc_mem || !mem->free_mem)
		return -EINVAL;
	if (core->foreign)
		return -ENODEV;
	pthread_mutex_lock(&core->memory_lock);
	if (core->third) {
		err = -EEXIST;
	} else if (atomic_load(&core->region)) {
		err = -EBUSY;
	} else {
		core->third = mem;
		ch->flags |= WD_CHAN_3RD_MEMORY;
	}
	pthread_mutex_unlock(&core->memory_lock);
	return err;
}

int wd_unregister_3rd_memory(struct wd_chan *ch)
{
	struct wf_chan_core *core = wf_chan_core_of(ch);
	struct wf_chan_region *region;
	int err = 0;

	if (!core)
		return -EINVAL;
	if (core->foreign)
		return -ENODEV;
	pthread_mutex_lock(&core->memory_lock);
	region = atomic_load(&core->region);
	if (!core->third) {
		err = -ENOENT;
	} else if (region && region->third == core->third) {
		err = -EBUSY;
	} else {
		core->third = NULL;
		ch->flags &= ~WD_CHAN_3RD_MEMORY;
	}
	pthread_mutex_unlock(&core->memory_lock);
	return err;
}
