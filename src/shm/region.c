/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Creates and maps the memory of a channel.
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
		.shares = (void *)(base +
				   wf_shm_shares_at(slots_log2, lines_log2)),
		.returns = base + wf_shm_returns_at(slots_log2, lines_log2),
		.slots = (void *)(base + WF_SHM_SLOTS_AT),
		.slot_count = 1u << slots_log2,
		.line_count = 1u << lines_log2,
	};
	region->data = (uint8_t *)(region->slots + region->slot_count);
	return 0;
}

/* -- taking memory ----------------------------------------------------------- */

static size_t offset_of(const struct wf_shm_region *region, const void *at)
{
	return (size_t)((const uint8_t *)at - (const uint8_t *)region->base);
}

/* Takes the pages of [@begin, @end), counted from the start. */
static int populate(struct wf_shm_region *region, size_t begin, size_t end)
{
	size_t page = wf_os_page_bytes();

	begin &= ~(page - 1);
	end = (end + page - 1) & ~(page - 1);
	return wf_os_populate((uint8_t *)region->base + begin, end - begin);
}

/* How many units of @size, which begin at @at, have memory if all pages up to
 * that of the first @count have. */
static uint32_t whole_pages(size_t at, size_t size, uint32_t count,
			    uint32_t most)
{
	size_t page = wf_os_page_bytes();
	size_t end = (at + size * count + page - 1) & ~(page - 1);
	size_t units = (end - at) / size;

	return units < most ? (uint32_t)units : most;
}

static int grow(struct wf_shm_region *region, size_t at, size_t size,
		uint32_t count, uint32_t most, uint32_t *ready)
{
	uint32_t more = whole_pages(at, size, count, most);
	int err;

	if (more <= *ready)
		return 0;
	err = populate(region, at + size * *ready, at + size * more);
	if (!err)
		*ready = more;
	return err;
}

int wf_shm_region_grow_slots(struct wf_shm_region *region, uint32_t count)
{
	return grow(region, offset_of(region, region->slots), WF_SHM_SLOT_SIZE,
		    count, region->slot_count, &region->slots_ready);
}

int wf_shm_region_grow_lines(struct wf_shm_region *region, uint32_t count)
{
	return grow(region, offset_of(region, region->data), WF_LINE, count,
		    region->line_count, &region->lines_ready);
}

int wf_shm_region_grow_shares(struct wf_shm_region *region)
{
	size_t at = offset_of(region, region->shares);
	int err = populate(region, at, at + WF_SHM_PAGE);

	region->shares_ready = !err;
	return err;
}

int wf_shm_region_grow_returns(struct wf_shm_region *region)
{
	int err = populate(region, offset_of(region, region->returns),
			   region->bytes);

	region->returns_ready = !err;
	return err;
}

/* What every channel has. Where the kernel has no call that takes pages of a
 * mapping, all of it. */
static int take_first(struct wf_shm_region *region, int memfd)
{
	uint32_t slots = whole_pages(WF_SHM_SLOTS_AT, WF_SHM_SLOT_SIZE, 1,
				     region->slot_count);
	int err = populate(region, 0, WF_SHM_SLOTS_AT + WF_SHM_SLOT_SIZE);

	region->slots_ready = slots;
	if (err != -EINVAL)
		return err;
	err = wf_base_memfd_reserve(memfd, 0, region->bytes);
	if (err)
		return err;
	region->slots_ready = region->slot_count;
	region->lines_ready = region->line_count;
	region->shares_ready = true;
	region->returns_ready = true;
	return 0;
}

/* -- making and mapping ------------------------------------------------------ */

int wf_shm_region_create(struct wf_shm_region *region, unsigned int slots_log2,
			 unsigned int lines_log2, int *memfd)
{
	size_t bytes = wf_shm_region_bytes(slots_log2, lines_log2);
	int fd, err;

	fd = wf_base_memfd_create_sparse("weft-ring", bytes);
	if (fd < 0)
		return fd;
	err = map(region, fd, slots_log2, lines_log2);
	if (err)
		goto err_close;
	err = take_first(region, fd);
	if (err)
		goto err_unmap;
	region->header->magic = WF_SHM_MAGIC;
	region->header->layout = WF_SHM_LAYOUT;
	region->header->slots_log2 = (uint8_t)slots_log2;
	region->header->lines_log2 = (uint8_t)lines_log2;
	*memfd = fd;
	return 0;

err_unmap:
	wf_shm_region_unmap(region);
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
	/* One call instead of a fault for each page, and an error instead of a
	 * signal where the sender did not take them. */
	err = populate(region, 0, WF_SHM_SLOTS_AT + WF_SHM_SLOT_SIZE);
	if (err && err != -EINVAL) {
		wf_shm_region_unmap(region);
		return err;
	}
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
