/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Containers on one machine: processes with network, PID and IPC namespaces of
 * their own, no network between them, and one folder that all of them share.
 * They can reach each other only through shared memory.
 *
 * WEFT_TEST_SPACES in the environment makes weft_test_begin() call
 * space_begin(). A process that weft_test_fork() starts then has namespaces of
 * its own. If there are hosts (net.h), it is on the other host instead, with a
 * PID namespace of its own.
 */
#ifndef WEFT_TESTS_COMMON_SPACE_H
#define WEFT_TESTS_COMMON_SPACE_H

#include <stdbool.h>
#include <sys/types.h>

/* Creates the folder and names it in FI_WEFT_DIR. Exits with 77 where
 * namespaces are not permitted. */
void space_begin(void);
bool space_is_on(void);

/* fork(): the child has a PID namespace of its own. */
pid_t space_fork(void);
/* From now on it has ours, as in `docker run --pid container:NAME`. */
void space_share_pids(void);
/* The caller gets network and IPC namespaces of its own, with 127.0.0.1. */
void space_enter(void);

/* The folder, and the number of files in it. */
const char *space_folder(void);
int space_files(void);

#endif
