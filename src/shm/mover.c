/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copying between two processes in one step.
 */
#include "shm/mover.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "op/iov.h"

/* The kernel moves at most 2 GiB a call; stay well below. */
#define CALL_MAX ((size_t)1 << 30)

/* To find out what a call costs: some microseconds in all. */
#define TRIALS 16
#define TRIAL_BYTES 4096

static _Atomic uint64_t process_id; /* where peers look */
static uint64_t process_seed;
static pthread_once_t process_once = PTHREAD_ONCE_INIT;

typedef ssize_t (*cma_call)(pid_t pid, const struct iovec *local,
			    unsigned long local_count,
			    const struct iovec *remote,
			    unsigned long remote_count, unsigned long flags);

static void choose_seed(void)
{
	/* Without the kernel's randomness, time and pid still tell the
	 * processes of a node apart. */
	if (getrandom(&process_seed, sizeof(process_seed), GRND_NONBLOCK) !=
	    sizeof(process_seed))
		process_seed = wf_base_clock_ns();
}

uint64_t wf_shm_mover_process(void)
{
	uint64_t id;

	pthread_once(&process_once, choose_seed);
	/* A forked child has the seed of its parent, but not its pid. */
	id = process_seed ^ (uint64_t)getpid() * 0x9e3779b97f4a7c15u;
	atomic_store_explicit(&process_id, id, memory_order_relaxed);
	return id;
}

uint64_t wf_shm_mover_call_ns(void)
{
	static uint8_t from[TRIAL_BYTES], to[TRIAL_BYTES];
	const struct iovec local = { to, sizeof(to) };
	const struct iovec remote = { from, sizeof(from) };
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIALS; i++) {
		uint64_t begin = wf_base_clock_ns(), took;

		if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) < 0)
			return 0;
		took = wf_base_clock_ns() - begin;
		if (took < best)
			best = took;
	}
	return best;
}

void wf_shm_mover_own_probe(uint64_t *addr, uint64_t *value)
{
	*value = wf_shm_mover_process();
	*addr = (uint64_t)(uintptr_t)&process_id;
}

void wf_shm_mover_open(struct wf_shm_mover *mover, pid_t pid, uint64_t process,
		       uint64_t probe_addr, uint64_t probe_value,
		       bool cma_allowed)
{
	uint64_t seen = ~probe_value;
	struct iovec local = { &seen, sizeof(seen) };
	struct iovec remote = { (void *)(uintptr_t)probe_addr, sizeof(seen) };

	*mover = (struct wf_shm_mover){ .way = WF_SHM_WAY_NONE, .pid = pid };
	/* The number alone proves nothing: we tell it to everybody. */
	if (pid == getpid() && process == wf_shm_mover_process()) {
		mover->way = WF_SHM_WAY_SELF;
		return;
	}
	/* A pid from another pid namespace is 0, or names someone else: the
	 * value tells. */
	if (!cma_allowed || pid <= 0)
		return;
	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) ==
		    (ssize_t)sizeof(seen) &&
	    seen == probe_value)
		mover->way = WF_SHM_WAY_CMA;
}

static int move_by_cma(cma_call call, pid_t pid, const struct iovec *local,
		       size_t local_count, const struct iovec *remote,
		       size_t remote_count, size_t len)
{
	struct iovec from[WF_OP_IOV_PARTS_MAX], to[WF_OP_IOV_PARTS_MAX];
	size_t done = 0;

	while (done < len) {
		size_t part = len - done;
		size_t n, m;
		ssize_t moved;

		if (part > CALL_MAX)
			part = CALL_MAX;
		n = wf_op_iov_slice(local, local_count, done, part, to);
		m = wf_op_iov_slice(remote, remote_count, done, part, from);
		moved = call(pid, to, n, from, m, 0);
		if (moved < 0)
			return -errno;
		/* Short: the page after what was moved is not there; the next
		 * call then says EFAULT. */
		if (!moved)
			return -EFAULT;
		done += (size_t)moved;
	}
	return 0;
}

/* Copies between two vectors of this process. */
static void move_by_copy(const struct iovec *to, size_t to_count,
			 const struct iovec *from, size_t from_count,
			 size_t len)
{
	size_t done = 0;

	for (size_t i = 0; i < from_count && done < len; i++) {
		size_t part = from[i].iov_len;

		if (part > len - done)
			part = len - done;
		wf_op_iov_scatter(to, to_count, done, from[i].iov_base, part);
		done += part;
	}
}

int wf_shm_mover_read(const struct wf_shm_mover *mover,
		      const struct iovec *local, size_t local_count,
		      const struct iovec *remote, size_t remote_count,
		      size_t len)
{
	if (mover->way == WF_SHM_WAY_SELF) {
		move_by_copy(local, local_count, remote, remote_count, len);
		return 0;
	}
	if (mover->way != WF_SHM_WAY_CMA)
		return -EPERM;
	return move_by_cma(process_vm_readv, mover->pid, local, local_count,
			   remote, remote_count, len);
}

int wf_shm_mover_write(const struct wf_shm_mover *mover,
		       const struct iovec *local, size_t local_count,
		       const struct iovec *remote, size_t remote_count,
		       size_t len)
{
	if (mover->way == WF_SHM_WAY_SELF) {
		move_by_copy(remote, remote_count, local, local_count, len);
		return 0;
	}
	if (mover->way != WF_SHM_WAY_CMA)
		return -EPERM;
	return move_by_cma(process_vm_writev, mover->pid, local, local_count,
			   remote, remote_count, len);
}
