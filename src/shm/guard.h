/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guard page of this process is one page at a random address. It holds the
 * random number of the process and says where its life page is (life.h). No
 * forked child inherits it. A peer names it first in each call of
 * process_vm_readv() or process_vm_writev(), except for reads once the peer has
 * the life page. The kernel looks the pid up once per call and stops at the
 * first address that is not mapped. So if another process has our pid now, the
 * call fails before it touches that process.
 */
#ifndef WF_SHM_GUARD_H
#define WF_SHM_GUARD_H

#include <stdint.h>

struct wf_shm_guard {
	uint64_t addr;	  /* 0: there is none, peers must not use CMA */
	uint64_t process; /* random, another one in every process */
};

/* The guard of this process, made at the first call; a forked child makes its
 * own. Not for hot paths: takes a lock and makes a system call. */
struct wf_shm_guard wf_shm_guard_own(void);

/* Each endpoint calls hold when it opens and drop when it closes. Between the
 * first and the last of these calls the process has a life page (life.h), if it
 * can be made. */
void wf_shm_guard_hold(void);
void wf_shm_guard_drop(void);

#endif
