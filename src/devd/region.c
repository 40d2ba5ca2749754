/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that channels of a device may touch.
 */
#include "devd/region.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "devd/kept.h"

/* -- the arena ------------------------------------------------------------- */

int wf_devd_arena_init(struct wf_devd_arena *arena, uint64_t bytes)
{
	arena->pages = (uint32_t)(bytes / WF_DEVD_PAGE);
	arena->taken = calloc(arena->pages ? arena->pages : 1, 1);
	return arena->taken ? 0 : -ENOMEM;
}

void wf_devd_arena_fini(struct wf_devd_arena *arena)
{
	free(arena->taken);
}

static uint64_t pages_of(uint64_t bytes)
{
	return (bytes + WF_DEVD_PAGE - 1) / WF_DEVD_PAGE;
}

uint64_t wf_devd_arena_take(struct wf_devd_arena *arena, uint64_t bytes)
{
	uint64_t want = pages_of(bytes), run = 0;

	for (uint32_t i = 0; i < arena->pages; i++) {
		run = arena->taken[i] ? 0 : run + 1;
		if (run && run == want) {
			i -= (uint32_t)(want - 1);
			memset(arena->taken + i, 1, want);
			return WF_DEVD_ARENA_BASE + (uint64_t)i * WF_DEVD_PAGE;
		}
	}
	return 0;
}

void wf_devd_arena_give(struct wf_devd_arena *arena, uint64_t at,
			uint64_t bytes)
{
	memset(arena->taken + (at - WF_DEVD_ARENA_BASE) / WF_DEVD_PAGE, 0,
	       pages_of(bytes));
}

/* -- regions --------------------------------------------------------------- */

static int map(struct wf_devd_region **made, int fd, uint64_t offset,
	       uint64_t size, size_t unit)
{
	struct wf_devd_region *region = calloc(1, sizeof(*region));
	int err;

	if (!region)
		return -ENOMEM;
	region->refs = 1;
	region->size = size;
	region->mapped = (size + unit - 1) & ~(unit - 1);
	region->base = mmap(NULL, region->mapped, PROT_READ | PROT_WRITE,
			    MAP_SHARED, fd, (off_t)offset);
	if (region->base == MAP_FAILED) {
		err = -errno;
		free(region);
		return err;
	}
	*made = region;
	return 0;
}

int wf_devd_region_make(struct wf_devd_region **region, uint64_t size, int *fd)
{
	struct wf_devd_kept *ours;
	int err = wf_devd_kept_make("weft-reserved", size, &ours, fd);

	if (err)
		goto err;
	err = map(region, ours->fd, 0, size, WF_DEVD_PAGE);
	if (err)
		goto err_close;
	(*region)->made = ours;
	return 0;

err_close:
	wf_devd_kept_drop(ours);
	close(*fd);
err:
	*fd = -1;
	return err;
}

int wf_devd_region_attach(struct wf_devd_region **region, int fd,
			  uint64_t offset, uint64_t size)
{
	size_t unit = WF_DEVD_PAGE;
	struct stat st;
	int seals, err;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return -EINVAL;
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return -EPERM;
	if (offset % WF_DEVD_PAGE || offset > (uint64_t)st.st_size ||
	    size > (uint64_t)st.st_size - offset)
		return -EINVAL;
	/* Huge pages say so here, and are mapped whole. */
	if (st.st_blksize > (blksize_t)unit &&
	    !(st.st_blksize & (st.st_blksize - 1)))
		unit = (size_t)st.st_blksize;
	err = map(region, fd, offset, size, unit);
	if (!err)
		(*region)->foreign = true;
	return err;
}

bool wf_devd_region_put(struct wf_devd_region *region)
{
	if (--region->refs)
		return false;
	if (region->arena)
		wf_devd_arena_give(region->arena, region->dma, region->size);
	return true;
}

void wf_devd_region_unmap(struct wf_devd_region *region)
{
	munmap(region->base, region->mapped);
	if (region->made)
		wf_devd_kept_drop(region->made);
	free(region);
}
