/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes of Linux.
 */
#include "os/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

pid_t wf_os_getpid(void)
{
	return getpid();
}

uid_t wf_os_geteuid(void)
{
	return geteuid();
}

const char *wf_os_getenv(const char *name)
{
	return getenv(name);
}

char *const *wf_os_environ(void)
{
	return environ;
}

unsigned long wf_os_auxval(unsigned long kind)
{
	return getauxval(kind);
}

int wf_os_fd_limit(struct wf_os_fd_limit *limit)
{
	struct rlimit got;

	if (getrlimit(RLIMIT_NOFILE, &got))
		return -errno;
	*limit = (struct wf_os_fd_limit){ got.rlim_cur, got.rlim_max };
	return 0;
}

int wf_os_fd_limit_set(uint64_t now)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return -errno;
	limit.rlim_cur = now;
	return setrlimit(RLIMIT_NOFILE, &limit) ? -errno : 0;
}

int wf_os_allow_tracers(void)
{
	return prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0) ? -errno : 0;
}

uint64_t wf_os_time(void)
{
	return (uint64_t)time(NULL);
}

int wf_os_random(void *bytes, size_t len, bool wait)
{
	ssize_t got = getrandom(bytes, len, wait ? 0 : GRND_NONBLOCK);

	if (got < 0)
		return -errno;
	return (size_t)got == len ? 0 : -EIO;
}

ssize_t wf_os_vm_read(pid_t pid, const struct iovec *local, size_t local_count,
		      const struct iovec *remote, size_t remote_count)
{
	ssize_t moved = process_vm_readv(pid, local, local_count, remote,
					 remote_count, 0);

	return moved < 0 ? -errno : moved;
}

ssize_t wf_os_vm_write(pid_t pid, const struct iovec *local, size_t local_count,
		       const struct iovec *remote, size_t remote_count)
{
	ssize_t moved = process_vm_writev(pid, local, local_count, remote,
					  remote_count, 0);

	return moved < 0 ? -errno : moved;
}

/* By O_PATH first: to open a file of a stranger may have effects. */
int wf_os_fd_open(pid_t pid, uint32_t fd, uint64_t inode, bool write)
{
	int flags = (write ? O_RDWR : O_RDONLY) | O_CLOEXEC;
	int file, own = -ESTALE;
	struct stat st;
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/fd/%u", (int)pid, fd);
	file = open(path, O_PATH | O_CLOEXEC);
	if (file < 0)
		return -errno;
	if (!fstat(file, &st) && S_ISREG(st.st_mode) && st.st_ino == inode) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
		own = open(path, flags);
		if (own < 0)
			own = -errno;
	}
	close(file);
	return own;
}

int wf_os_memory_open(pid_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

ssize_t wf_os_memory_read(int fd, void *to, size_t len, uint64_t addr)
{
	ssize_t moved = pread(fd, to, len, (off_t)addr);

	return moved < 0 ? -errno : moved;
}

ssize_t wf_os_memory_write(int fd, const void *from, size_t len, uint64_t addr)
{
	ssize_t moved = pwrite(fd, from, len, (off_t)addr);

	return moved < 0 ? -errno : moved;
}
