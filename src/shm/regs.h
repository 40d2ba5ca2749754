/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registrations of a peer (op/reg.h), which come with the handshake. Most
 * peers only exchange messages, so the table is checked then, and mapped at the
 * first access to the peer's memory: until then its descriptor is kept. A process
 * keeps few of these; with more peers, it maps the others at once.
 */
#ifndef WF_SHM_REGS_H
#define WF_SHM_REGS_H

#include "op/reg.h"

struct wf_shm_regs {
	struct wf_reg_view view;
	int memfd; /* of a table that is not mapped yet; -1: none */
};

/* Keeps *@memfd, or maps it. A descriptor that is kept is ours, and *@memfd is -1
 * afterwards; otherwise it stays the caller's. 0, -EPROTO or -errno. */
int wf_shm_regs_take(struct wf_shm_regs *regs, int *memfd);

/* Maps the table if that was not done yet. 0, -EPROTO or -errno. */
int wf_shm_regs_map(struct wf_shm_regs *regs);

/* A call failed with @err (positive). If that means that there are no descriptors,
 * none is kept for a while. True: some are kept and should be given back, by
 * mapping their tables. */
bool wf_shm_regs_scarce(int err);

void wf_shm_regs_close(struct wf_shm_regs *regs);

/* In a forked child: closes its copy of the descriptor. */
void wf_shm_regs_forked(struct wf_shm_regs *regs);

#endif
