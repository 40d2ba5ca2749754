/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared libraries of Linux.
 */
#include "os/library.h"

#include <dlfcn.h>

/* The run-time libraries of sanitizers end a process that asks for it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DEEPBIND 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DEEPBIND 0
#endif
#endif
#ifndef DEEPBIND
#define DEEPBIND RTLD_DEEPBIND
#endif

void *wf_os_library_open(const char *name)
{
	return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | DEEPBIND);
}

void *wf_os_library_find(void *library, const char *function)
{
	return dlsym(library, function);
}

void *wf_os_library_own(const char *function)
{
	return dlsym(RTLD_DEFAULT, function);
}
