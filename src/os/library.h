/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Libraries that are loaded while the process runs. The rules of os/file.h hold.
 */
#ifndef WF_OS_LIBRARY_H
#define WF_OS_LIBRARY_H

/* Loads a shared library by its name, or finds it where it is loaded already.
 * Its own calls go to itself and to what it needs, whatever functions of the
 * same names the program has. It stays until the process ends. NULL: there is no
 * such library. */
void *wf_os_library_open(const char *name);

/* A function of the library or of those it needs, or NULL. */
void *wf_os_library_find(void *library, const char *function);

/* A function that the program itself would call by this name, from a library
 * that it was linked with or that was preloaded; or NULL. */
void *wf_os_library_own(const char *function);

#endif
