/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This process and its environment, and memory of others. The rules of
 * os/file.h hold.
 */
#ifndef WF_OS_PROCESS_H
#define WF_OS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

pid_t wf_os_getpid(void);
uid_t wf_os_geteuid(void);

/* NULL: not set. Valid until the application changes its environment. */
const char *wf_os_getenv(const char *name);
/* All "NAME=value" of the environment, ended by NULL. */
char *const *wf_os_environ(void);

/* Returns a value that the kernel gave this process when it started
 * (getauxval(3)), such as the instructions that it may use. 0: nothing of the
 * kind. */
unsigned long wf_os_auxval(unsigned long kind);

/* How many descriptors this process may have (RLIMIT_NOFILE): now, and at most
 * without a right that users do not have. */
struct wf_os_fd_limit {
	uint64_t now;
	uint64_t most;
};

int wf_os_fd_limit(struct wf_os_fd_limit *limit);
/* Makes the limit @now, which is not above the one at most. */
int wf_os_fd_limit_set(uint64_t now);

/* Lets any process of the same user trace this one, and so copy from and to its
 * memory, where the security module Yama would not. -EINVAL: there is no Yama. */
int wf_os_allow_tracers(void);

/* Seconds of the calendar's clock, which can be set back. */
uint64_t wf_os_time(void);

/* Fills @bytes with the kernel's random bytes. @wait: until the kernel has
 * some, early in the life of a machine; otherwise that is -EAGAIN. */
int wf_os_random(void *bytes, size_t len, bool wait);

/* process_vm_readv(2) and process_vm_writev(2): bytes, which may be fewer than
 * asked for, or -errno. Only shm/mover.c calls them, see there. */
ssize_t wf_os_vm_read(pid_t pid, const struct iovec *local, size_t local_count,
		      const struct iovec *remote, size_t remote_count);
ssize_t wf_os_vm_write(pid_t pid, const struct iovec *local, size_t local_count,
		       const struct iovec *remote, size_t remote_count);

/* Opens the regular file that process @pid has open as its descriptor @fd.
 * -ESTALE where that is not the file @inode: nothing is opened then. */
int wf_os_fd_open(pid_t pid, uint32_t fd, uint64_t inode, bool write);

/* Opens the memory of the process that has @pid now, as a file whose offsets are
 * its addresses. The descriptor stays with that memory: when the process ends or
 * runs another program, both calls below return 0 for ever. Only shm/mover.c
 * calls these. */
int wf_os_memory_open(pid_t pid);
/* Bytes, which may be fewer than asked for; 0: the process is gone; -EIO: there
 * is no memory at @addr. */
ssize_t wf_os_memory_read(int fd, void *to, size_t len, uint64_t addr);
ssize_t wf_os_memory_write(int fd, const void *from, size_t len, uint64_t addr);

#endif
