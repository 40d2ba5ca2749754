/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A byte of each page goes to a file and, if it is to be written, back.
 */
#include "alg/touch.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u

static bool touch(int fd, uintptr_t at, bool write)
{
	return pwrite(fd, (void *)at, 1, 0) == 1 &&
	       (!write || pread(fd, (void *)at, 1, 0) == 1);
}

/* Numbers, not pointers: they may point nowhere. */
static bool touch_all(int fd, const void *memory, size_t len, bool write)
{
	uintptr_t at = (uintptr_t)memory;

	if (len && !touch(fd, at + len - 1, write))
		return false;
	for (size_t i = 0; i < len; i += PAGE) {
		if (!touch(fd, at + i, write))
			return false;
	}
	return true;
}

bool wf_alg_touch_job(const struct wd_comp_job *job)
{
	int fd = memfd_create("weft-touch", MFD_CLOEXEC);
	bool all;

	if (fd < 0)
		return false;
	all = touch_all(fd, job->src, job->src_len, false) &&
	      touch_all(fd, job->dict, job->dict_len, false) &&
	      touch_all(fd, job->dst, job->dst_len, true);
	close(fd);
	return all;
}
