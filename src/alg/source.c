/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory or a ring. The ring is a memfd because only a descriptor can be mapped
 * twice.
 */
#include "alg/source.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memfd.h"

#define LEAST (1u << 20)

void wf_alg_source_memory(struct wf_source *s, const uint8_t *in, size_t len)
{
	*s = (struct wf_source){ .memory = in, .end = len, .eof = true };
}

int wf_alg_source_ring(struct wf_source *s, size_t size)
{
	size_t rounded = LEAST;
	uint8_t *both;
	int fd, ret = 0;

	*s = (struct wf_source){ 0 };
	while (rounded < size)
		rounded *= 2;
	/* Its pages are taken as input comes. */
	fd = wf_base_memfd_create_sparse("weft-input", rounded);
	if (fd < 0)
		return fd;
	both = mmap(NULL, 2 * rounded, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	if (both == MAP_FAILED) {
		ret = -errno;
		goto out;
	}
	for (int i = 0; i < 2; i++) {
		if (mmap(both + (size_t)i * rounded, rounded,
			 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			 0) == MAP_FAILED) {
			ret = -errno;
			munmap(both, 2 * rounded);
			goto out;
		}
	}
	s->ring = both;
	s->size = rounded;
out:
	close(fd);
	return ret;
}

void wf_alg_source_end(struct wf_source *s)
{
	if (s->ring)
		munmap(s->ring, 2 * s->size);
	s->ring = NULL;
}

const uint8_t *wf_alg_source_at(const struct wf_source *s, uint64_t from)
{
	if (s->memory)
		return s->memory;
	/* Not a pointer into anything, until @from or more is added. */
	return (const uint8_t *)((uintptr_t)s->ring +
				 (uintptr_t)(from % s->size) - (uintptr_t)from);
}

uint8_t *wf_alg_source_room(const struct wf_source *s, uint64_t from,
			    size_t *room)
{
	*room = s->size - (size_t)(s->end - from);
	return s->ring + s->end % s->size;
}
