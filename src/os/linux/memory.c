/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mappings of Linux.
 */
#include "os/memory.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

/* Of Linux 5.14; the C library may be older. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

int wf_os_mmap(void **base, size_t bytes, int prot, int flags, int fd)
{
	void *at = mmap(*base, bytes, prot, flags, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	*base = at;
	return 0;
}

int wf_os_mmap_at(void **base, size_t bytes, int prot, int flags, int fd,
		  uint64_t offset)
{
	void *at = mmap(*base, bytes, prot, flags, fd, (off_t)offset);

	if (at == MAP_FAILED)
		return -errno;
	*base = at;
	return 0;
}

int wf_os_munmap(void *base, size_t bytes)
{
	return munmap(base, bytes) ? -errno : 0;
}

int wf_os_mprotect(void *base, size_t bytes, int prot)
{
	return mprotect(base, bytes, prot) ? -errno : 0;
}

int wf_os_madvise(void *base, size_t bytes, int advice)
{
	return madvise(base, bytes, advice) ? -errno : 0;
}

int wf_os_populate(void *base, size_t bytes)
{
	int ret;

	do {
		ret = madvise(base, bytes, MADV_POPULATE_WRITE);
	} while (ret && (errno == EINTR || errno == EAGAIN));
	if (!ret)
		return 0;
	return errno == EINVAL ? -EINVAL : -ENOMEM;
}

/* mincore() wants a byte for each page, and fails with ENOMEM when one is not
 * mapped. */
bool wf_os_is_mapped(const void *base, size_t bytes)
{
	size_t page = wf_os_page_bytes();
	unsigned char resident;

	for (size_t at = 0; at < bytes; at += page) {
		void *addr = (char *)(uintptr_t)base + at;

		if (mincore(addr, page, &resident) && errno == ENOMEM)
			return false;
	}
	return true;
}

size_t wf_os_page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}
