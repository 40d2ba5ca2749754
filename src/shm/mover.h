/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copying between this process and a peer in one step: by CMA
 * (process_vm_readv/writev) where the kernel allows it for this pair and
 * direction, by plain copying when the peer's endpoint lives in this very
 * process, not at all otherwise. A peer with which several small pieces were
 * exchanged gets its memory opened as a file (/proc/PID/mem), which is faster for
 * small pieces.
 *
 * No other file may copy from or to a peer by its pid: here every CMA call itself
 * proves that the pid still is the process that it was when the channel was
 * opened (guard.h), and the file was proved to be the memory of that process when
 * it was opened, which it stays. No byte of another process is changed, and none
 * that was read there is ever taken for the peer's. After some reads, these are
 * proved by the peer's life page (life.h) instead, which is faster.
 */
#ifndef WF_SHM_MOVER_H
#define WF_SHM_MOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/types.h"
#include "shm/life.h"

enum wf_shm_way {
	WF_SHM_WAY_NONE, /* through the ring only */
	WF_SHM_WAY_SELF,
	WF_SHM_WAY_CMA,
	WF_SHM_WAY_UNTRIED, /* by CMA, if the kernel allows it */
};

struct wf_shm_mover {
	enum wf_shm_way way;
	pid_t pid;
	uint64_t process; /* the number on its guard page ... */
	uint64_t guard;	  /* ... which is here ... */
	uint64_t scratch; /* ... and where we may write to it */
	int memory;	  /* its memory as a file, or -1 */
	uint32_t small;	  /* small pieces until it is opened */
	uint32_t reads;	  /* until the life page is mapped */
	bool reads_file;  /* small pieces are read faster by the file */
	struct wf_shm_life life;
};

/* The random number that names this process (anew in a forked child). */
uint64_t wf_shm_mover_process(void);

/* The guard page of this process, for hello and welcome. */
void wf_shm_mover_own_probe(uint64_t *addr, uint64_t *value);

/* How to copy from and to a peer: @process and the probe are what the peer
 * announced, @pid is what the kernel reports. CMA is not tried yet: it takes some
 * microseconds, and most peers only get small messages. */
void wf_shm_mover_open(struct wf_shm_mover *mover, pid_t pid, uint64_t process,
		       uint64_t probe_addr, uint64_t probe_value,
		       bool cma_allowed);

/* Tries CMA if that was not done yet. Never UNTRIED. */
enum wf_shm_way wf_shm_mover_way(struct wf_shm_mover *mover);

/* Opens a mover for a peer to which @known leads already. */
void wf_shm_mover_again(struct wf_shm_mover *mover,
			const struct wf_shm_mover *known);

/* The next read does what makes the following ones fast, which otherwise happens
 * after some of them. */
static inline void wf_shm_mover_hurry(struct wf_shm_mover *mover)
{
	mover->small = mover->small ? 1 : 0;
	mover->reads = mover->reads ? 1 : 0;
}

/* Whether the pid is still that of the same process: 0 or -errno. Call it right
 * after opening something by the pid. */
int wf_shm_mover_prove(const struct wf_shm_mover *mover);

/* Releases what it holds. It copies nothing afterwards.
 * Also for one that was never opened, if all of it is 0. */
void wf_shm_mover_close(struct wf_shm_mover *mover);
/* Closes a mover in a forked child, which has no life page of the peer. */
void wf_shm_mover_forked(struct wf_shm_mover *mover);

/* Copy @len bytes; both vectors hold at least that. 0 or -errno: -ESRCH when
 * the peer is gone, also if its pid is another process by now (what was read
 * then is of no use), -EFAULT for memory that is not there, -EPERM and others
 * when the kernel (no longer) lets us. */
int wf_shm_mover_read(struct wf_shm_mover *mover, const struct iovec *local,
		      size_t local_count, const struct iovec *remote,
		      size_t remote_count, size_t len);
int wf_shm_mover_write(struct wf_shm_mover *mover, const struct iovec *local,
		       size_t local_count, const struct iovec *remote,
		       size_t remote_count, size_t len);

#endif
