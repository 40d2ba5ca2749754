/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life page of a process is shared memory in which the kernel marks that
 * the process has ended or has started another program (exec). The kernel does
 * so before the pid can be used again and before the memory is replaced
 * (os/thread.h). A peer reads memory of the process by its pid, and then loads
 * the mark: if it is unchanged, the bytes are those of that process. The load
 * costs almost nothing; reading the guard page in the same call takes as long
 * as copying 8 KiB.
 *
 * This is safe for the following reason: after a peer has died and before we
 * notice it, a read may reach another process that has the same pid now. The
 * kernel lets us read only what we may read anyway, and a read changes nothing
 * in that process. Its bytes are in the buffer of the receive until the load
 * finds that the mark has changed. Then the read is repeated with the guard
 * page; that fails, and the receive ends with an error. Writes always use the
 * guard page.
 *
 * The mark belongs to the first thread of the process. If another thread opens
 * the first endpoint, there is no mark. Peers go back to the guard page if the
 * first thread ends before its process does, or if the last endpoint is closed.
 */
#ifndef WF_SHM_LIFE_H
#define WF_SHM_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "os/thread.h"
#include "os/types.h"

struct wf_shm_life_name;

/* Makes the page of this process, which no child inherits, and its name. 0 or
 * -errno. No fork() may happen during this and the next two calls: the caller
 * sees to it. */
int wf_shm_life_make(struct wf_shm_life_name *name);
/* Removes the page. It stays mapped if another thread made it. */
void wf_shm_life_end(void);
/* In a forked child: releases what it has inherited from its parent. */
void wf_shm_life_forked(void);

/* The page of a peer, mapped by us. All fields are 0 if there is none. */
struct wf_shm_life {
	struct wf_os_life mark;
	void *page;
};

/* Maps the page that process @pid has under @name. The caller proves afterwards
 * that the pid still belongs to the peer. 0 or -errno. */
int wf_shm_life_map(struct wf_shm_life *life, pid_t pid,
		    const struct wf_shm_life_name *name);
void wf_shm_life_unmap(struct wf_shm_life *life);

#endif
