/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header measures what copying between processes (CMA, process_vm_readv)
 * costs on this machine: the provider and `weft info` derive the same
 * thresholds from it. Copying itself is done by shm/mover.
 */
#ifndef WF_BASE_CMA_H
#define WF_BASE_CMA_H

#include <stdint.h>

/* How long a copy of a page by CMA takes here, ns: the best of some, on our own
 * memory. 0 where it is not allowed. */
uint64_t wf_base_cma_call_ns(void);

#endif
