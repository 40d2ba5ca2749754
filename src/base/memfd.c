/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making memfds, and judging those of others.
 */
#include "base/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

/* A memfd is a file to RLIMIT_FSIZE: the signal that comes with EFBIG would end
 * a process that has never written a file. It is sent to the calling thread, so
 * blocking it here is enough. */
static int without_signal(int (*call)(int, off_t, off_t), int memfd, off_t at,
			  off_t bytes)
{
	const struct timespec at_once = { 0 };
	sigset_t limit, before;
	int err;

	sigemptyset(&limit);
	sigaddset(&limit, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &limit, &before);
	err = call(memfd, at, bytes);
	if (err == EFBIG && !sigismember(&before, SIGXFSZ))
		sigtimedwait(&limit, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

static int set_size(int memfd, off_t at, off_t bytes)
{
	return ftruncate(memfd, at + bytes) ? errno : 0;
}

int wf_base_memfd_reserve(int memfd, off_t at, size_t bytes)
{
	return without_signal(posix_fallocate, memfd, at, (off_t)bytes);
}

static int create(const char *name, size_t bytes,
		  int (*make)(int, off_t, off_t))
{
	int fd, err;

	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	err = without_signal(make, fd, 0, (off_t)bytes);
	if (!err && fcntl(fd, F_ADD_SEALS, SEALS))
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

int wf_base_memfd_create(const char *name, size_t bytes)
{
	return create(name, bytes, posix_fallocate);
}

int wf_base_memfd_create_sparse(const char *name, size_t bytes)
{
	return create(name, bytes, set_size);
}

int wf_base_memfd_seal_writing(int memfd)
{
	return fcntl(memfd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) ? -errno : 0;
}

int wf_base_memfd_seal_seals(int memfd)
{
	return fcntl(memfd, F_ADD_SEALS, F_SEAL_SEAL) ? -errno : 0;
}

bool wf_base_memfd_is_sound(int memfd, size_t bytes)
{
	int seals = fcntl(memfd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	/* Huge pages can be sealed, too, but nothing makes sure that there are
	 * any when they are touched: what is not there is a signal. */
	return seals >= 0 && (seals & F_SEAL_SHRINK) && !fstat(memfd, &st) &&
	       (size_t)st.st_size == bytes && !fstatfs(memfd, &fs) &&
	       fs.f_type == TMPFS_MAGIC;
}
