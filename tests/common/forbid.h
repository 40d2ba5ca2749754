/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a container's seccomp profile may do to a process.
 */
#ifndef WEFT_TESTS_COMMON_FORBID_H
#define WEFT_TESTS_COMMON_FORBID_H

/* From here on process_vm_readv and process_vm_writev of this thread fail with
 * EPERM, for life, and in its children. Ends the process with 77 where filters
 * cannot be set. */
void weft_test_forbid_cma(void);

/* The same, but a call kills the process. */
void weft_test_deadly_cma(void);

#endif
