/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * These calls forbid a process the same as the seccomp profile of a container
 * may.
 */
#ifndef WEFT_TESTS_COMMON_FORBID_H
#define WEFT_TESTS_COMMON_FORBID_H

/* From here on process_vm_readv and process_vm_writev fail with EPERM in this
 * thread and its children, permanently. Ends the process with 77 where filters
 * cannot be set. */
void weft_test_forbid_cma(void);

/* The same, but the call kills the process. */
void weft_test_deadly_cma(void);

#endif
