/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header finds the provider weft, the library of the EFA device, and the
 * program that MPI ranks run.
 */
#ifndef WF_TOOLS_LOCATE_H
#define WF_TOOLS_LOCATE_H

#include <stddef.h>

/*
 * Finds the folder of libweft-fi.so: beside this program in a build, or where
 * an installation puts it. Returns 0, or -ENOENT.
 */
int wf_tools_locate_provider(char *dir, size_t len);

/* The same for libweft-efa.so; @file gets its whole path. */
int wf_tools_locate_efa(char *file, size_t len);

/* The same for weft-bench-mpi; @file gets its whole path. */
int wf_tools_locate_mpi(char *file, size_t len);

#endif
