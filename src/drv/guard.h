/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies from and to memory that a program has named in a job, and that may not
 * be there. A system call would find out for each job, and would take several
 * times as long as the copy. Here the copy itself meets SIGSEGV or SIGBUS, and a
 * handler ends it.
 *
 * The handlers are there while a channel needs them, and only where the program
 * has none of its own: one that handles these signals gets them, as it would for
 * its own accesses. It may pass them on to us. Only faults at addresses of the copy
 * are ours; others end the process as without us.
 */
#ifndef WF_DRV_GUARD_H
#define WF_DRV_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Around the life of a channel. */
void wf_drv_guard_on(void);
void wf_drv_guard_off(void);

/* False: @to or @from is not mapped, or not for this access; then some of the
 * bytes may have been copied. Neither of them overlaps with the other. */
bool wf_drv_guard_copy(void *to, const void *from, size_t len);

#endif
