/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life page of a process: shared memory in which the kernel itself marks the
 * end of the process, or that it runs another program, before its pid is free and
 * before its memory is another one (os/thread.h). A peer that has read memory of
 * the process by its pid and finds the mark unchanged afterwards knows that it was
 * that process. That takes a load; to read the guard page along takes as long as
 * to copy 8 KiB.
 *
 * Why that is safe: between the death of a peer and the moment at which its end is
 * noticed, a read may meet a stranger under its pid. The kernel lets us read from
 * it only what we may read anyway. Nothing changes in the stranger; its bytes stand
 * in the buffer of the receive, as those of the peer would, until the load finds
 * that the mark is gone. Then the read is done again with the guard page, which
 * fails, and the receive ends with an error. Writes are never proved like this.
 *
 * The mark is that of the first thread of the process. If another thread opens the
 * first endpoint, there is none; if the first thread ends before its process, or the
 * last endpoint is closed, peers go back to the guard page.
 */
#ifndef WF_SHM_LIFE_H
#define WF_SHM_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "os/thread.h"
#include "os/types.h"

struct wf_shm_life_name;

/* Makes the page of this process, which no child inherits, and its name. 0 or
 * -errno. The caller keeps fork() out of all three. */
int wf_shm_life_make(struct wf_shm_life_name *name);
/* Ends it. The page stays if another thread made it. */
void wf_shm_life_end(void);
/* In a forked child: what is left of the parent's. */
void wf_shm_life_forked(void);

/* The page of a peer, as we map it. All of it is 0: none. */
struct wf_shm_life {
	struct wf_os_life mark;
	void *page;
};

/* Maps the page that process @pid calls @name. The caller proves afterwards that
 * the pid is the peer's. 0 or -errno. */
int wf_shm_life_map(struct wf_shm_life *life, pid_t pid,
		    const struct wf_shm_life_name *name);
void wf_shm_life_unmap(struct wf_shm_life *life);

#endif
