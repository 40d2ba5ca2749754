/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registrations of a peer: kept, then mapped.
 */
#include "shm/regs.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "os/file.h"
#include "os/inline.h"
#include "os/process.h"
#include "os/shared.h"

/* At most so many descriptors of this process are kept, and one in so many of
 * those that it may have: peers and the application need the others. */
#define KEPT_MAX 64
#define KEPT_SHARE 16

/* For so long after the process had no descriptor left, none is kept. */
#define SCARCE_FOR WF_NS_PER_S

/* Relaxed: limits, nothing else depends on them. */
WF_PER_PROCESS static atomic_uint kept;
WF_PER_PROCESS static _Atomic uint64_t scarce_until;

static bool are_scarce(void)
{
	uint64_t until = wf_shared_load(&scarce_until, relaxed);

	return until && wf_base_clock_ns() < until;
}

static bool may_keep(void)
{
	struct wf_os_fd_limit limit;
	uint32_t count = wf_shared_load(&kept, relaxed);

	return count < KEPT_MAX && !wf_os_fd_limit(&limit) &&
	       count < limit.now / KEPT_SHARE && !are_scarce();
}

static void drop(struct wf_shm_regs *regs)
{
	if (regs->memfd < 0)
		return;
	wf_os_close(regs->memfd);
	regs->memfd = -1;
	wf_shared_add(&kept, -1u, relaxed);
}

int wf_shm_regs_take(struct wf_shm_regs *regs, int *memfd)
{
	*regs = (struct wf_shm_regs){ .memfd = -1 };
	if (*memfd < 0)
		return -EPROTO;
	if (!may_keep())
		return wf_op_reg_map(&regs->view, *memfd);
	/* Only the mapping is put off. A descriptor that a peer sent by mistake
	 * or by malice is not kept: its own end of our socket would hide its
	 * death from us. */
	if (!wf_op_reg_is_sound(*memfd))
		return -EPROTO;
	wf_shared_add(&kept, 1, relaxed);
	regs->memfd = *memfd;
	*memfd = -1;
	return 0;
}

int wf_shm_regs_map(struct wf_shm_regs *regs)
{
	int err;

	if (regs->view.entries)
		return 0;
	err = wf_op_reg_map(&regs->view, regs->memfd);
	if (!err)
		drop(regs);
	return err;
}

bool wf_shm_regs_scarce(int err)
{
	if (err != EMFILE && err != ENFILE)
		return false;
	wf_shared_store(&scarce_until, wf_base_clock_ns() + SCARCE_FOR,
			relaxed);
	return wf_shared_load(&kept, relaxed);
}

void wf_shm_regs_close(struct wf_shm_regs *regs)
{
	drop(regs);
	wf_op_reg_unmap(&regs->view);
}

void wf_shm_regs_forked(struct wf_shm_regs *regs)
{
	drop(regs);
}
