/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of the C library that fail at random. The program exports these names,
 * so that they come before the C library's in whatever is loaded later. They
 * fail only between storm_wild() and storm_calm() of the same thread, which
 * the worker puts around its calls of libfabric.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "storm.h"

static _Thread_local bool wild;
static uint64_t state;
static unsigned int rate;
static unsigned int kinds = ~0u;
static uint64_t injected;

void storm_wild(void)
{
	wild = true;
}

void storm_calm(void)
{
	wild = false;
}

void storm_faults(uint64_t seed, unsigned int per_mille)
{
	state = seed | 1;
	rate = per_mille;
}

uint64_t storm_injected(void)
{
	return injected;
}

void storm_fault_kinds(unsigned int which)
{
	kinds = which;
}

/* Whether this call fails. @weight: how much more often than others. */
static bool strikes(enum storm_fault kind, unsigned int weight)
{
	if (!wild || !rate || !(kinds & 1u << kind) ||
	    storm_random(&state) % 1000 >= rate * weight)
		return false;
	injected++;
	return true;
}

#define REAL(name)                                                             \
	static __typeof__(name) *real;                                         \
                                                                               \
	if (!real)                                                             \
	real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* -- memory ----------------------------------------------------------------- */

/* glibc's own names: dlsym() allocates. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t align, size_t size);

void *malloc(size_t size)
{
	if (strikes(STORM_NO_MEMORY, 1)) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	if (strikes(STORM_NO_MEMORY, 1)) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	if (strikes(STORM_NO_MEMORY, 1)) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_realloc(old, size);
}

void *aligned_alloc(size_t align, size_t size)
{
	if (strikes(STORM_NO_MEMORY, 1)) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_memalign(align, size);
}

int posix_memalign(void **memory, size_t align, size_t size)
{
	void *got = strikes(STORM_NO_MEMORY, 1) ? NULL :
						  __libc_memalign(align, size);

	if (!got)
		return ENOMEM;
	*memory = got;
	return 0;
}

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	REAL(mmap);
	if (strikes(STORM_NO_MEMORY, 5)) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return real(at, len, prot, flags, fd, offset);
}

int posix_fallocate(int fd, off_t offset, off_t len)
{
	REAL(posix_fallocate);
	return strikes(STORM_NO_MEMORY, 5) ? ENOSPC : real(fd, offset, len);
}

int madvise(void *at, size_t len, int advice)
{
	REAL(madvise);
	if (advice == MADV_POPULATE_WRITE && strikes(STORM_NO_MEMORY, 5)) {
		errno = ENOMEM;
		return -1;
	}
	return real(at, len, advice);
}

/* -- descriptors ------------------------------------------------------------ */

int memfd_create(const char *name, unsigned int flags)
{
	REAL(memfd_create);
	if (strikes(STORM_NO_DESCRIPTORS, 10)) {
		errno = EMFILE;
		return -1;
	}
	return real(name, flags);
}

int socket(int family, int type, int protocol)
{
	REAL(socket);
	if (strikes(STORM_NO_DESCRIPTORS, 10)) {
		errno = EMFILE;
		return -1;
	}
	return real(family, type, protocol);
}

int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	REAL(accept4);
	if (strikes(STORM_NO_DESCRIPTORS, 10)) {
		errno = EMFILE;
		return -1;
	}
	return real(fd, addr, len, flags);
}

int eventfd(unsigned int count, int flags)
{
	REAL(eventfd);
	if (strikes(STORM_NO_DESCRIPTORS, 10)) {
		errno = EMFILE;
		return -1;
	}
	return real(count, flags);
}

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	REAL(epoll_ctl);
	if (op == EPOLL_CTL_ADD && strikes(STORM_NO_DESCRIPTORS, 5)) {
		errno = ENOMEM;
		return -1;
	}
	return real(epfd, op, fd, event);
}

/* -- sending ---------------------------------------------------------------- */

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	REAL(sendmsg);
	if (msg->msg_controllen && CMSG_FIRSTHDR(msg) &&
	    CMSG_FIRSTHDR(msg)->cmsg_level == SOL_SOCKET &&
	    strikes(STORM_TOO_MANY_REFS, 30)) {
		errno = ETOOMANYREFS;
		return -1;
	}
	if (strikes(STORM_NO_SENDING, 3)) {
		errno = EAGAIN;
		return -1;
	}
	return real(fd, msg, flags);
}

int sendmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags)
{
	REAL(sendmmsg);
	if (strikes(STORM_NO_SENDING, 5)) {
		errno = injected & 1 ? EAGAIN : ENOBUFS;
		return -1;
	}
	/* Or some of them only. */
	return real(fd, msgs, n > 1 && strikes(STORM_NO_SENDING, 5) ? n / 2 : n,
		    flags);
}

/* -- memory of other processes ---------------------------------------------- */

/* Half of the first buffer: what a page that is gone leaves of a copy. */
static bool shorten(struct iovec *one, const struct iovec *all, unsigned long n)
{
	if (!n || all[0].iov_len < 2 || !strikes(STORM_SHORT_COPIES, 3))
		return false;
	*one = all[0];
	one->iov_len /= 2;
	return true;
}

/* No memory for the copy, or a security module that has changed its mind. */
static int refusal(void)
{
	return injected & 1 ? EPERM : ENOMEM;
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long n,
			 const struct iovec *remote, unsigned long m,
			 unsigned long flags)
{
	struct iovec half;

	REAL(process_vm_readv);
	if (strikes(STORM_SHORT_COPIES, 1)) {
		errno = refusal();
		return -1;
	}
	if (shorten(&half, local, n))
		return real(pid, &half, 1, remote, m, flags);
	return real(pid, local, n, remote, m, flags);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *local, unsigned long n,
			  const struct iovec *remote, unsigned long m,
			  unsigned long flags)
{
	struct iovec half;

	REAL(process_vm_writev);
	if (strikes(STORM_SHORT_COPIES, 1)) {
		errno = refusal();
		return -1;
	}
	if (shorten(&half, local, n))
		return real(pid, &half, 1, remote, m, flags);
	return real(pid, local, n, remote, m, flags);
}
