/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The board of an endpoint: one memfd that every peer which sends to it maps.
 * A bell for each, a word that says that some bell was rung, and one that says
 * whether the endpoint sleeps. With it, looking for work among hundreds of quiet
 * rings is looking at one word, and a process can sleep without a message being
 * missed.
 *
 * Peers may write anything here at any time: a bell rung for nothing is a look
 * for nothing.
 */
#ifndef WF_SHM_BOARD_DEFS_H
#define WF_SHM_BOARD_DEFS_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

#define WF_SHM_BELLS 4032 /* a peer beyond is always looked at */
#define WF_SHM_BELLS_PER_LINE 64

struct wf_shm_board {
	/* 1: wake it by a byte on the socket, after clearing this. */
	_Atomic uint32_t asleep WF_ALIGNED(WF_LINE);
	/* 1: look at the bells. Set after a bell, cleared before they are
	 * looked at. */
	_Atomic uint32_t rung;
	uint8_t pad[56];
	/* A byte each, read by lines. */
	_Atomic uint8_t bells[WF_SHM_BELLS] WF_ALIGNED(WF_LINE);
};

static_assert(offsetof(struct wf_shm_board, bells) == 64, "a line apart");

/* One page: every peer maps it. */
#define WF_SHM_BOARD_BYTES ((size_t)4096)

static_assert(sizeof(struct wf_shm_board) == WF_SHM_BOARD_BYTES, "fits");

#endif
