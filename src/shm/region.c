/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making and mapping the memory of a channel.
 */
#include "shm/region.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int map(struct wf_shm_region *region, int memfd, unsigned int slots_log2,
	       unsigned int lines_log2)
{
	size_t bytes = wf_shm_region_bytes(slots_log2, lines_log2);
	uint8_t *base;
	int err;

	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_POPULATE, memfd, 0);
	if (base == MAP_FAILED)
		return -errno;
	if (madvise(base, bytes, MADV_DONTFORK)) {
		err = -errno;
		munmap(base, bytes);
		return err;
	}
	*region = (struct wf_shm_region){
		.base = base,
		.bytes = bytes,
		.header = (void *)base,
		.replies = (void *)(base + WF_SHM_REPLIES_AT),
		.shares = (void *)(base + WF_SHM_SHARES_AT),
		.slots = (void *)(base + WF_SHM_SLOTS_AT),
		.slot_count = 1u << slots_log2,
		.line_count = 1u << lines_log2,
	};
	region->data = (uint8_t *)(region->slots + region->slot_count);
	return 0;
}

/* Takes the pages now: a full memory is ENOSPC, not SIGBUS. A memfd is a file
 * to RLIMIT_FSIZE: the signal that comes with EFBIG would end a process that
 * has never written a file. It is sent to the calling thread, so blocking it
 * here is enough. */
static int reserve(int memfd, off_t bytes)
{
	const struct timespec at_once = { 0 };
	sigset_t limit, before;
	int err;

	sigemptyset(&limit);
	sigaddset(&limit, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &limit, &before);
	err = posix_fallocate(memfd, 0, bytes);
	if (err == EFBIG && !sigismember(&before, SIGXFSZ))
		sigtimedwait(&limit, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

int wf_shm_region_create(struct wf_shm_region *region, unsigned int slots_log2,
			 unsigned int lines_log2, int *memfd)
{
	size_t bytes = wf_shm_region_bytes(slots_log2, lines_log2);
	int fd, err;

	fd = memfd_create("weft-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	err = reserve(fd, (off_t)bytes);
	if (err)
		goto err_close;
	if (fcntl(fd, F_ADD_SEALS, SEALS)) {
		err = -errno;
		goto err_close;
	}
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
	close(fd);
	return err;
}

int wf_shm_region_map(struct wf_shm_region *region, int memfd,
		      unsigned int slots_log2, unsigned int lines_log2)
{
	struct wf_shm_header header;
	struct stat st;
	int seals, err;

	if (slots_log2 < WF_SHM_SLOTS_LOG2_MIN ||
	    slots_log2 > WF_SHM_SLOTS_LOG2_MAX ||
	    lines_log2 < WF_SHM_LINES_LOG2_MIN ||
	    lines_log2 > WF_SHM_LINES_LOG2_MAX)
		return -EPROTO;
	/* Without the seal a peer could shrink it under us: SIGBUS. */
	seals = fcntl(memfd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return -EPROTO;
	if (fstat(memfd, &st))
		return -errno;
	if ((size_t)st.st_size != wf_shm_region_bytes(slots_log2, lines_log2))
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
		munmap(region->base, region->bytes);
	region->base = NULL;
}
