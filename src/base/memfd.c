/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Creates memfds, and checks those of others.
 */
#include "base/memfd.h"

#include "os/file.h"

#define SEALS (WF_OS_SEAL_SHRINK | WF_OS_SEAL_GROW)

static int reserve_all(int memfd, size_t bytes)
{
	return wf_os_fallocate(memfd, 0, bytes);
}

int wf_base_memfd_reserve(int memfd, off_t at, size_t bytes)
{
	return wf_os_fallocate(memfd, at, bytes);
}

static int create(const char *name, size_t bytes, int (*make)(int, size_t))
{
	int fd, err;

	fd = wf_os_memfd_create(name);
	if (fd < 0)
		return fd;
	err = make(fd, bytes);
	if (!err)
		err = wf_os_seal(fd, SEALS);
	if (!err)
		return fd;
	wf_os_close(fd);
	return err;
}

int wf_base_memfd_create(const char *name, size_t bytes)
{
	return create(name, bytes, reserve_all);
}

int wf_base_memfd_create_sparse(const char *name, size_t bytes)
{
	return create(name, bytes, wf_os_ftruncate);
}

int wf_base_memfd_seal_writing(int memfd)
{
	return wf_os_seal(memfd, WF_OS_SEAL_FUTURE_WRITE);
}

int wf_base_memfd_seal_seals(int memfd)
{
	return wf_os_seal(memfd, WF_OS_SEAL_SEALS);
}

bool wf_base_memfd_is_sound(int memfd, size_t bytes)
{
	int seals = wf_os_seals(memfd);
	struct wf_os_stat st;

	/* Huge pages can be sealed, too, but nothing guarantees that one is
	 * available when it is touched: a missing page is a signal. */
	return seals >= 0 && (seals & WF_OS_SEAL_SHRINK) &&
	       !wf_os_fstat(memfd, &st) && st.bytes == bytes && st.in_memory;
}
