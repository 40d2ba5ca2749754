/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making and mapping the memory of a channel.
 */
#include "shm/region.h"

#include <errno.h>
#include <string.h>

#include "base/memfd.h"
#include "os/file.h"
#include "os/memory.h"

static int map(struct wf_shm_region *region, int memfd, unsigned int slots_log2,
	       unsigned int lines_log2)
{
	size_t bytes = wf_shm_region_bytes(slots_log2, lines_log2);
	void *memory = NULL;
	uint8_t *base;
	int err;

	/* The memory is there, and touched as it is needed: a sender that
	 * is kept up with never leaves the first few pages (lap.h). */
	err = wf_os_mmap(&memory, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			 memfd);
	if (err)
		return err;
	err = wf_os_madvise(memory, bytes, MADV_DONTFORK);
	if (err) {
		wf_os_munmap(memory, bytes);
		return err;
	}
	base = memory;
	*region = (struct wf_shm_region){
		.base = base,
		.bytes = bytes,
		.header = (void *)base,
		.replies = (void *)(base + WF_SHM_REPLIES_AT),
		.shares = (void *)(base + WF_SHM_SHARES_AT),
		.returns = base + WF_SHM_RETURNS_AT,
		.slots = (void *)(base + WF_SHM_SLOTS_AT),
		.slot_count = 1u << slots_log2,
		.line_count = 1u << lines_log2,
	};
	region->data = (uint8_t *)(region->slots + region->slot_count);
	return 0;
}

int wf_shm_region_create(struct wf_shm_region *region, unsigned int slots_log2,
			 unsigned int lines_log2, int *memfd)
{
	size_t bytes = wf_shm_region_bytes(slots_log2, lines_log2);
	int fd, err;

	fd = wf_base_memfd_create("weft-ring", bytes);
	if (fd < 0)
		return fd;
	err = map(region, fd, slots_log2, lines_log2);
	if (err)
		goto err_close;
	region->header->magic = WF_SHM_MAGIC;
	region->header->layout = WF_SHM_LAYOUT;
	region->header->slots_log2 = (uint8_t)slots_log2;
	region->header->lines_log2 = (uint8_t)lines_log2;
	*memfd = fd;
	return 0;

err_close:
	wf_os_close(fd);
	return err;
}

int wf_shm_region_map(struct wf_shm_region *region, int memfd,
		      unsigned int slots_log2, unsigned int lines_log2)
{
	struct wf_shm_header header;
	int err;

	if (slots_log2 < WF_SHM_SLOTS_LOG2_MIN ||
	    slots_log2 > WF_SHM_SLOTS_LOG2_MAX ||
	    lines_log2 < WF_SHM_LINES_LOG2_MIN ||
	    lines_log2 > WF_SHM_LINES_LOG2_MAX)
		return -EPROTO;
	if (!wf_base_memfd_is_sound(
		    memfd, wf_shm_region_bytes(slots_log2, lines_log2)))
		return -EPROTO;
	err = map(region, memfd, slots_log2, lines_log2);
	if (err)
		return err;
	memcpy(&header, region->header, sizeof(header));
	if (header.magic != WF_SHM_MAGIC || header.layout != WF_SHM_LAYOUT ||
	    header.slots_log2 != slots_log2 ||
	    header.lines_log2 != lines_log2) {
		wf_shm_region_unmap(region);
		return -EPROTO;
	}
	return 0;
}

void wf_shm_region_unmap(struct wf_shm_region *region)
{
	if (region->base)
		wf_os_munmap(region->base, region->bytes);
	region->base = NULL;
}
