/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The C library's own functions, for the simulator itself. The linker redirects
 * the plain names to the simulated kernel (--wrap).
 */
#ifndef SIM_REAL_H
#define SIM_REAL_H

#include <stddef.h>
#include <sys/types.h>

void *real_malloc(size_t bytes) __asm__("__real_malloc");
void *real_calloc(size_t count, size_t bytes) __asm__("__real_calloc");
void real_free(void *p) __asm__("__real_free");
void *real_mmap(void *addr, size_t len, int prot, int flags, int fd,
		off_t off) __asm__("__real_mmap64");
int real_munmap(void *addr, size_t len) __asm__("__real_munmap");
int real_mprotect(void *addr, size_t len, int prot) __asm__("__real_mprotect");
void *real_memset(void *to, int byte, size_t len) __asm__("__real_memset");
int real_close(int fd) __asm__("__real_close");
ssize_t real_read(int fd, void *buf, size_t len) __asm__("__real_read");
ssize_t real_write(int fd, const void *buf, size_t len) __asm__("__real_write");

#endif
