/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copying between two processes in one step.
 */
#include "shm/mover.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "op/iov.h"
#include "os/file.h"
#include "os/inline.h"
#include "os/process.h"
#include "os/shared.h"
#include "shm/conn_defs.h"
#include "shm/guard.h"

/* The kernel moves at most 2 GiB a call; stay well below. */
#define CALL_MAX ((size_t)1 << 30)

/* Up to this size a piece goes faster through the memory file: one access instead
 * of two (the guard page and the piece), but the kernel copies each page twice.
 * Measured on a Zen 4, ns for 8 B, 4 KiB, 8 KiB, 16 KiB: file 1260, 1418, 2134,
 * 4020; CMA with the guard page 1991, 2045, 2500, 3637. */
#define FILE_MAX 8192

/* Where reads need no guard page, this limits them: one page, which is what
 * compare_reads() compares. On a Xeon, ns for 4 KiB, 8 KiB, 16 KiB
 * (build/bench/bare_copy): file 491, 768, 1293; CMA 559, 673, 916. */
#define READ_FILE_MAX WF_SHM_GUARD_BYTES

/* The file costs a descriptor, and about ten microseconds to open. */
#define FILE_AFTER 32
#define FILES_MAX 64

/* To map the life page takes about as long. */
#define LIFE_AFTER 32
#define COMPARISONS 4

/* Memory files of this process. Relaxed: a limit, nothing else depends on it. */
WF_PER_PROCESS static atomic_uint files;

uint64_t wf_shm_mover_process(void)
{
	return wf_shm_guard_own().process;
}

void wf_shm_mover_own_probe(uint64_t *addr, uint64_t *value)
{
	struct wf_shm_guard guard = wf_shm_guard_own();

	*addr = guard.addr;
	*value = guard.process;
}

/* Copies from the peer without a proof: the caller has one afterwards. */
static int read_unproved(const struct wf_shm_mover *mover,
			 const struct iovec *local, size_t local_count,
			 const struct iovec *remote, size_t remote_count,
			 size_t len)
{
	struct iovec here[WF_OP_IOV_PARTS_MAX];
	struct iovec there[WF_OP_IOV_PARTS_MAX];
	size_t done = 0;

	while (done < len) {
		size_t part = len - done;
		size_t n, m;
		ssize_t moved;

		if (part > CALL_MAX)
			part = CALL_MAX;
		n = wf_op_iov_part(local, local_count, done, part, here);
		m = wf_op_iov_part(remote, remote_count, done, part, there);
		moved = wf_os_vm_read(mover->pid, here, n, there, m);
		if (moved <= 0)
			return moved ? (int)moved : -EFAULT;
		done += (size_t)moved;
	}
	return 0;
}

/* Copies in one direction; @write: into the peer. The guard page is the first
 * remote element of every call, see guard.h. */
static int move_by_cma(const struct wf_shm_mover *mover, bool write,
		       const struct iovec *local, size_t local_count,
		       const struct iovec *remote, size_t remote_count,
		       size_t len)
{
	struct iovec here[1 + WF_OP_IOV_PARTS_MAX];
	struct iovec there[1 + WF_OP_IOV_PARTS_MAX];
	uint64_t word = 0;
	size_t done = 0;

	here[0] = (struct iovec){ &word, sizeof(word) };
	there[0] = (struct iovec){ (void *)(uintptr_t)(write ? mover->scratch :
							       mover->guard),
				   sizeof(word) };
	while (done < len) {
		size_t part = len - done;
		size_t n, m;
		ssize_t moved;

		if (part > CALL_MAX)
			part = CALL_MAX;
		n = wf_op_iov_part(local, local_count, done, part, here + 1);
		m = wf_op_iov_part(remote, remote_count, done, part, there + 1);
		moved = write ? wf_os_vm_write(mover->pid, here, n + 1, there,
					       m + 1) :
				wf_os_vm_read(mover->pid, here, n + 1, there,
					      m + 1);
		/* Not even the guard: the pid is another process by now. */
		if (moved < 0)
			return moved == -EFAULT ? -ESRCH : (int)moved;
		if (moved < (ssize_t)sizeof(word) ||
		    (!write && word != mover->process))
			return -ESRCH;
		moved -= (ssize_t)sizeof(word);
		/* Short: the page after the moved bytes is not mapped; the next
		 * call then moves nothing. */
		if (!moved)
			return -EFAULT;
		done += (size_t)moved;
	}
	return 0;
}

/* One piece on each side. */
static int move_by_file(const struct wf_shm_mover *mover, bool write,
			uint8_t *here, uint64_t there, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t moved =
			write ? wf_os_memory_write(mover->memory, here + done,
						   len - done, there + done) :
				wf_os_memory_read(mover->memory, here + done,
						  len - done, there + done);

		if (moved == -EIO)
			return -EFAULT;
		if (moved <= 0)
			return moved ? (int)moved : -ESRCH;
		done += (size_t)moved;
	}
	return 0;
}

static void close_file(struct wf_shm_mover *mover)
{
	wf_os_close(mover->memory);
	mover->memory = -1;
	wf_shared_add(&files, -1u, relaxed);
}

/* The guard page is read through the file: if it holds the number, the file is
 * the memory of the process that it always was. */
static void open_file(struct wf_shm_mover *mover)
{
	uint64_t seen = ~mover->process;
	int fd;

	if (wf_shared_add(&files, 1, relaxed) >= FILES_MAX)
		goto err_count;
	fd = wf_os_memory_open(mover->pid);
	if (fd < 0)
		goto err_count;
	mover->memory = fd;
	if (move_by_file(mover, false, (uint8_t *)&seen, mover->guard,
			 sizeof(seen)) ||
	    seen != mover->process)
		close_file(mover);
	return;

err_count:
	wf_shared_add(&files, -1u, relaxed);
}

/* Which of the two ways reads a page faster: the page is the guard page. On an EPYC
 * it is the file (1.2 against 1.9 us), on a Xeon it is not (1.0 against 0.8). */
static void compare_reads(struct wf_shm_mover *mover)
{
	uint8_t page[WF_SHM_GUARD_BYTES];
	const struct iovec local = { page, sizeof(page) };
	const struct iovec remote = { (void *)(uintptr_t)mover->guard,
				      sizeof(page) };
	uint64_t best[2] = { UINT64_MAX, UINT64_MAX };

	for (int i = 0; i < 2 * COMPARISONS; i++) {
		uint64_t begin = wf_base_clock_ns(), took;
		int ret = i % 2 ? move_by_file(mover, false, page, mover->guard,
					       sizeof(page)) :
				  read_unproved(mover, &local, 1, &remote, 1,
						sizeof(page));

		took = wf_base_clock_ns() - begin;
		if (!ret && took < best[i % 2])
			best[i % 2] = took;
	}
	mover->reads_file = best[1] < best[0];
}

/* After both have been opened. */
static void compare_if_both(struct wf_shm_mover *mover)
{
	if (mover->life.page && mover->memory >= 0)
		compare_reads(mover);
}

/* The pid was the peer's when the page was opened if it still is. */
static void open_life(struct wf_shm_mover *mover)
{
	struct wf_shm_guard_line line;
	const struct iovec local = { &line, sizeof(line) };
	const struct iovec remote = { (void *)(uintptr_t)mover->guard,
				      sizeof(line) };

	if (move_by_cma(mover, false, &local, 1, &remote, 1, sizeof(line)) ||
	    wf_shm_life_map(&mover->life, mover->pid, &line.life))
		return;
	if (wf_shm_mover_prove(mover))
		wf_shm_life_unmap(&mover->life);
	compare_if_both(mover);
}

/* Reads, and proves afterwards that it was the peer's memory. A peer whose mark is
 * gone may live on. */
static int read_by_cma(struct wf_shm_mover *mover, const struct iovec *local,
		       size_t local_count, const struct iovec *remote,
		       size_t remote_count, size_t len)
{
	int ret;

	if (mover->life.page) {
		ret = read_unproved(mover, local, local_count, remote,
				    remote_count, len);
		if (wf_os_life_is_on(&mover->life.mark))
			return ret;
		wf_shm_life_unmap(&mover->life);
	}
	return move_by_cma(mover, false, local, local_count, remote,
			   remote_count, len);
}

/* Whether a piece goes through the file. */
static bool is_for_file(struct wf_shm_mover *mover, bool write,
			size_t local_count, size_t remote_count, size_t len)
{
	if (len > FILE_MAX || local_count != 1 || remote_count != 1 ||
	    (!write && mover->life.page && len > READ_FILE_MAX))
		return false;
	if (wf_unlikely(mover->small)) {
		mover->small--;
		if (!mover->small) {
			open_file(mover);
			compare_if_both(mover);
		}
	}
	return mover->memory >= 0 &&
	       (write || mover->reads_file || !mover->life.page);
}

static int move_by_kernel(struct wf_shm_mover *mover, bool write,
			  const struct iovec *local, size_t local_count,
			  const struct iovec *remote, size_t remote_count,
			  size_t len)
{
	if (wf_unlikely(mover->reads) && !write) {
		mover->reads--;
		if (!mover->reads)
			open_life(mover);
	}
	if (is_for_file(mover, write, local_count, remote_count, len))
		return move_by_file(mover, write, local->iov_base,
				    (uint64_t)(uintptr_t)remote->iov_base, len);
	if (!write)
		return read_by_cma(mover, local, local_count, remote,
				   remote_count, len);
	return move_by_cma(mover, write, local, local_count, remote,
			   remote_count, len);
}

int wf_shm_mover_prove(const struct wf_shm_mover *mover)
{
	uint64_t seen;
	const struct iovec local = { &seen, sizeof(seen) };
	const struct iovec remote = { (void *)(uintptr_t)mover->guard,
				      sizeof(seen) };

	return move_by_cma(mover, false, &local, 1, &remote, 1, sizeof(seen));
}

void wf_shm_mover_open(struct wf_shm_mover *mover, pid_t pid, uint64_t process,
		       uint64_t probe_addr, uint64_t probe_value,
		       bool cma_allowed)
{
	struct wf_shm_guard own = wf_shm_guard_own();

	*mover = (struct wf_shm_mover){
		.way = WF_SHM_WAY_NONE,
		.pid = pid,
		.process = probe_value,
		.guard = probe_addr,
		/* A line of its own for most of the writers. */
		.scratch =
			probe_addr + WF_SHM_GUARD_LINE +
			own.process %
				(WF_SHM_GUARD_BYTES / WF_SHM_GUARD_LINE - 1) *
				WF_SHM_GUARD_LINE,
		.memory = -1,
		.small = FILE_AFTER,
		.reads = LIFE_AFTER,
	};
	/* The number alone proves nothing: every peer knows it. */
	if (process == own.process && pid == wf_os_getpid()) {
		mover->way = WF_SHM_WAY_SELF;
		return;
	}
	/* A pid from another pid namespace is 0, or that of another process:
	 * the value shows it when CMA is tried. */
	if (cma_allowed && pid > 0 && probe_addr &&
	    !(probe_addr % WF_SHM_GUARD_BYTES))
		mover->way = WF_SHM_WAY_UNTRIED;
}

enum wf_shm_way wf_shm_mover_way(struct wf_shm_mover *mover)
{
	if (wf_unlikely(mover->way == WF_SHM_WAY_UNTRIED))
		mover->way = wf_shm_mover_prove(mover) ? WF_SHM_WAY_NONE :
							 WF_SHM_WAY_CMA;
	return mover->way;
}

void wf_shm_mover_again(struct wf_shm_mover *mover,
			const struct wf_shm_mover *known)
{
	*mover = (struct wf_shm_mover){
		.way = known->way,
		.pid = known->pid,
		.process = known->process,
		.guard = known->guard,
		.scratch = known->scratch,
		.memory = -1,
		.small = FILE_AFTER,
		.reads = LIFE_AFTER,
	};
}

void wf_shm_mover_close(struct wf_shm_mover *mover)
{
	if (mover->way == WF_SHM_WAY_CMA) {
		if (mover->memory >= 0)
			close_file(mover);
		wf_shm_life_unmap(&mover->life);
	}
	mover->way = WF_SHM_WAY_NONE;
}

void wf_shm_mover_forked(struct wf_shm_mover *mover)
{
	/* The page is not mapped here; something else may be in its place. */
	mover->life = (struct wf_shm_life){ 0 };
	wf_shm_mover_close(mover);
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

int wf_shm_mover_read(struct wf_shm_mover *mover, const struct iovec *local,
		      size_t local_count, const struct iovec *remote,
		      size_t remote_count, size_t len)
{
	if (mover->way == WF_SHM_WAY_SELF) {
		move_by_copy(local, local_count, remote, remote_count, len);
		return 0;
	}
	if (wf_shm_mover_way(mover) != WF_SHM_WAY_CMA)
		return -EPERM;
	return move_by_kernel(mover, false, local, local_count, remote,
			      remote_count, len);
}

int wf_shm_mover_write(struct wf_shm_mover *mover, const struct iovec *local,
		       size_t local_count, const struct iovec *remote,
		       size_t remote_count, size_t len)
{
	if (mover->way == WF_SHM_WAY_SELF) {
		move_by_copy(remote, remote_count, local, local_count, len);
		return 0;
	}
	if (wf_shm_mover_way(mover) != WF_SHM_WAY_CMA)
		return -EPERM;
	return move_by_kernel(mover, true, local, local_count, remote,
			      remote_count, len);
}
