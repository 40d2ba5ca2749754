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
#include "os/shared.h"

/* @bytes of @memfd, not inherited by a child. */
static int map(void **memory, size_t bytes, int memfd)
{
	int err;

	*memory = NULL;
	err = wf_os_mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			 memfd);
	if (err)
		return err;
	err = wf_os_madvise(*memory, bytes, MADV_DONTFORK);
	if (err)
		wf_os_munmap(*memory, bytes);
	return err;
}

static struct wf_shm_region lay_out(void *memory, unsigned int slots_log2,
				    unsigned int lines_log2)
{
	uint8_t *base = memory;
	struct wf_shm_region region = {
		.base = base,
		.bytes = wf_shm_region_bytes(slots_log2, lines_log2),
		.header = (void *)base,
		.replies = (void *)(base +
				    wf_shm_replies_at(slots_log2, lines_log2)),
		.shares = (void *)(base +
				   wf_shm_shares_at(slots_log2, lines_log2)),
		.returns = base + wf_shm_returns_at(slots_log2, lines_log2),
		.slots = (void *)(base + WF_SHM_SLOTS_AT),
		.data = base + wf_shm_data_at(slots_log2),
		.slot_count = 1u << slots_log2,
		.line_count = 1u << lines_log2,
	};

	return region;
}

/* @count regions that follow each other in @memfd. Each of them is unmapped by
 * itself. */
static int map_all(struct wf_shm_region *regions, unsigned int count, int memfd,
		   unsigned int slots_log2, unsigned int lines_log2)
{
	size_t bytes = wf_shm_region_bytes(slots_log2, lines_log2);
	uint8_t *memory;
	int err = map((void **)&memory, count * bytes, memfd);

	for (unsigned int i = 0; i < count && !err; i++)
		regions[i] =
			lay_out(memory + i * bytes, slots_log2, lines_log2);
	return err;
}

static void unmap_all(struct wf_shm_region *regions, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		wf_shm_region_unmap(&regions[i]);
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

/* A part that has one page. */
static int grow_page(struct wf_shm_region *region, const void *part,
		     bool *ready)
{
	size_t at = offset_of(region, part);
	int err = populate(region, at, at + WF_SHM_PAGE);

	*ready = !err;
	return err;
}

int wf_shm_region_grow_replies(struct wf_shm_region *region)
{
	return grow_page(region, region->replies, &region->replies_ready);
}

int wf_shm_region_grow_shares(struct wf_shm_region *region)
{
	return grow_page(region, region->shares, &region->shares_ready);
}

int wf_shm_region_grow_returns(struct wf_shm_region *region)
{
	int err = populate(region, offset_of(region, region->returns),
			   region->bytes);

	region->returns_ready = !err;
	return err;
}

/* Takes the memory that every channel has. */
static int take_first(struct wf_shm_region *region)
{
	int err = populate(region, 0, WF_SHM_SLOTS_AT + WF_SHM_SLOT_SIZE);

	region->slots_ready = whole_pages(WF_SHM_SLOTS_AT, WF_SHM_SLOT_SIZE, 1,
					  region->slot_count);
	return err;
}

/* Where the kernel has no call that takes pages of a mapping. */
static int take_all(struct wf_shm_region *region, int memfd)
{
	int err = wf_base_memfd_reserve(memfd, 0, region->bytes);

	if (err)
		return err;
	region->slots_ready = region->slot_count;
	region->lines_ready = region->line_count;
	region->replies_ready = true;
	region->shares_ready = true;
	region->returns_ready = true;
	return 0;
}

/* -- making and mapping ------------------------------------------------------ */

static void write_header(struct wf_shm_region *region)
{
	struct wf_shm_header *header = region->header;

	header->layout = WF_SHM_LAYOUT;
	header->slots_log2 = (uint8_t)__builtin_ctz(region->slot_count);
	header->lines_log2 = (uint8_t)__builtin_ctz(region->line_count);
	/* Last: the receiver of an offered ring may look at any time. */
	wf_shared_store_plain(&header->magic, WF_SHM_MAGIC, release);
}

/* Whether somebody has written a header. Pairs with write_header(). */
static bool has_begun(const struct wf_shm_region *region)
{
	return wf_shared_load_plain(&region->header->magic, acquire);
}

static bool has_sound_header(const struct wf_shm_region *region)
{
	struct wf_shm_header header;

	memcpy(&header, region->header, sizeof(header));
	return header.magic == WF_SHM_MAGIC && header.layout == WF_SHM_LAYOUT &&
	       header.slots_log2 == __builtin_ctz(region->slot_count) &&
	       header.lines_log2 == __builtin_ctz(region->line_count);
}

static int create(struct wf_shm_region *regions, unsigned int count,
		  unsigned int slots_log2, unsigned int lines_log2, int *memfd)
{
	size_t bytes = wf_shm_region_bytes(slots_log2, lines_log2);
	int fd, err;

	fd = wf_base_memfd_create_sparse("weft-ring", count * bytes);
	if (fd < 0)
		return fd;
	err = map_all(regions, count, fd, slots_log2, lines_log2);
	if (err)
		goto err_close;
	err = take_first(&regions[0]);
	if (err == -EINVAL)
		err = take_all(&regions[0], fd);
	if (err)
		goto err_unmap;
	write_header(&regions[0]);
	*memfd = fd;
	return 0;

err_unmap:
	unmap_all(regions, count);
err_close:
	wf_os_close(fd);
	return err;
}

int wf_shm_region_create(struct wf_shm_region *region, unsigned int slots_log2,
			 unsigned int lines_log2, int *memfd)
{
	return create(region, 1, slots_log2, lines_log2, memfd);
}

int wf_shm_region_create_pair(struct wf_shm_region pair[2],
			      unsigned int slots_log2, unsigned int lines_log2,
			      int *memfd)
{
	return create(pair, 2, slots_log2, lines_log2, memfd);
}

int wf_shm_region_begin(struct wf_shm_region *region)
{
	int err = take_first(region);

	if (!err)
		write_header(region);
	return err;
}

int wf_shm_region_accept(struct wf_shm_region *region)
{
	/* An error instead of a signal where the sender did not take it. */
	int err = populate(region, 0, WF_SHM_SLOTS_AT + WF_SHM_SLOT_SIZE);

	if (err && err != -EINVAL)
		return err;
	if (!has_begun(region))
		return -ENOENT;
	return has_sound_header(region) ? 0 : -EPROTO;
}

static int map_checked(struct wf_shm_region *regions, unsigned int count,
		       int memfd, unsigned int slots_log2,
		       unsigned int lines_log2)
{
	size_t bytes;
	int err;

	if (slots_log2 < WF_SHM_SLOTS_LOG2_MIN ||
	    slots_log2 > WF_SHM_SLOTS_LOG2_MAX ||
	    lines_log2 < WF_SHM_LINES_LOG2_MIN ||
	    lines_log2 > WF_SHM_LINES_LOG2_MAX)
		return -EPROTO;
	bytes = wf_shm_region_bytes(slots_log2, lines_log2);
	/* Each of them is unmapped by itself. */
	if (count > 1 && bytes % wf_os_page_bytes())
		return -EPROTO;
	if (!wf_base_memfd_is_sound(memfd, count * bytes))
		return -EPROTO;
	err = map_all(regions, count, memfd, slots_log2, lines_log2);
	if (err)
		return err;
	err = wf_shm_region_accept(&regions[0]);
	if (err)
		unmap_all(regions, count);
	return err == -ENOENT ? -EPROTO : err;
}

int wf_shm_region_map(struct wf_shm_region *region, int memfd,
		      unsigned int slots_log2, unsigned int lines_log2)
{
	return map_checked(region, 1, memfd, slots_log2, lines_log2);
}

int wf_shm_region_map_pair(struct wf_shm_region pair[2], int memfd,
			   unsigned int slots_log2, unsigned int lines_log2)
{
	return map_checked(pair, 2, memfd, slots_log2, lines_log2);
}

void wf_shm_region_unmap(struct wf_shm_region *region)
{
	if (region->base)
		wf_os_munmap(region->base, region->bytes);
	region->base = NULL;
}
