/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mappings of this process. The rules of os/file.h hold. Memory of malloc() and
 * its kind is not asked for here: the C library has it.
 */
#ifndef WF_OS_MEMORY_H
#define WF_OS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

/* Maps @fd from its beginning, or memory without a file where @fd is -1 and
 * @flags have MAP_ANONYMOUS. *@base is where the caller wants it, NULL:
 * anywhere, and becomes where it is. On failure *@base stays. */
int wf_os_mmap(void **base, size_t bytes, int prot, int flags, int fd);
/* The same from @offset of the file on, which is a multiple of a page. */
int wf_os_mmap_at(void **base, size_t bytes, int prot, int flags, int fd,
		  uint64_t offset);
int wf_os_munmap(void *base, size_t bytes);
int wf_os_mprotect(void *base, size_t bytes, int prot);
int wf_os_madvise(void *base, size_t bytes, int advice);

/* Takes the pages of a writable mapping now. 0; -ENOMEM when there is no memory
 * for them, also where touching them would be a signal; -EINVAL when the kernel
 * cannot (Linux before 5.14). */
int wf_os_populate(void *base, size_t bytes);

/* Whether each page of a range is mapped in this process. True, too, where the
 * kernel does not say. */
bool wf_os_is_mapped(const void *base, size_t bytes);

/* A range of memory of this process that lies in a memfd. */
struct wf_os_mapping {
	int fd; /* a new descriptor of the memfd, closed by exec */
	uint64_t offset;
	uint64_t inode;
};

/* Finds the memfd behind a range, if all of it is one mapping that is shared and
 * if the process has a descriptor of it open. 0, or -errno: -ENOENT where there
 * is none, also for a small range where the kernel is older than 6.11. */
int wf_os_memfd_behind(const void *base, size_t bytes,
		       struct wf_os_mapping *mapping);

size_t wf_os_page_bytes(void);

#endif
