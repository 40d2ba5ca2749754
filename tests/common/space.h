/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Containers on one machine: processes with network, PID and IPC namespaces of
 * their own, no network between them, and one folder that all of them share. They
 * can only reach each other through shared memory.
 *
 * WEFT_TEST_SPACES in the environment makes weft_test_begin() call
 * space_begin(). What weft_test_fork() starts then has namespaces of its own; it
 * is on the other host instead where there are hosts (net.h), with a PID
 * namespace of its own.
 */
#ifndef WEFT_TESTS_COMMON_SPACE_H
#define WEFT_TESTS_COMMON_SPACE_H

#include <stdbool.h>
#include <sys/types.h>

/* Makes the folder and names it in FI_WEFT_DIR. Exits 77 where namespaces are
 * not allowed. */
void space_begin(void);
bool space_is_on(void);

/* fork(): the child has a PID namespace of its own. */
pid_t space_fork(void);
/* The caller gets network and IPC namespaces of its own, with 127.0.0.1. */
void space_enter(void);

/* The folder, and how many files are in it. */
const char *space_folder(void);
int space_files(void);

#endif
