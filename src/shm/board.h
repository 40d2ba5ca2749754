/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint's board (board_defs.h), made by its owner, mapped by peers.
 */
#ifndef WF_SHM_BOARD_H
#define WF_SHM_BOARD_H

#include <stdbool.h>

#include "os/shared.h"
#include "shm/board_defs.h"

struct wf_shm_board_map {
	struct wf_shm_board *board; /* NULL: not mapped */
	int memfd;		    /* the owner's, to pass on; -1 */
};

/* Makes one. 0 or -errno. */
int wf_shm_board_open(struct wf_shm_board_map *map);

/* Maps a peer's; the descriptor stays the caller's. 0, -EPROTO or -errno. */
int wf_shm_board_map(struct wf_shm_board_map *map, int memfd);

void wf_shm_board_close(struct wf_shm_board_map *map);

/* Rings a bell. True: the owner sleeps, and the caller must wake it.
 * Sequentially consistent: pairs with the owner, which says that it sleeps and
 * then looks at the bells. `rung` is written by an exchange because several
 * senders may ring at once: an owner that reads the value of the last one sees
 * the bells of all. */
static inline bool wf_shm_board_ring(struct wf_shm_board *board, uint32_t bell)
{
	if (bell < WF_SHM_BELLS) {
		wf_shared_store(&board->bells[bell], 1, release);
		wf_shared_exchange(&board->rung, 1, seq_cst);
	} else {
		wf_shared_fence(seq_cst);
	}
	return wf_shared_load(&board->asleep, seq_cst) &&
	       wf_shared_exchange(&board->asleep, 0, seq_cst);
}

/* Whether a bell may have been rung. */
static inline bool wf_shm_board_has_rung(const struct wf_shm_board *board)
{
	return wf_shared_load(&board->rung, relaxed);
}

/* The owner is about to look at all bells. Acquire: it sees the bells that were
 * set before `rung` was; a later one sets `rung` again. */
static inline void wf_shm_board_begin(struct wf_shm_board *board)
{
	wf_shared_exchange(&board->rung, 0, acq_rel);
}

/* The owner will look again. An exchange, so that the next wf_shm_board_begin()
 * still sees the bells that were rung before. */
static inline void wf_shm_board_again(struct wf_shm_board *board)
{
	wf_shared_exchange(&board->rung, 1, acq_rel);
}

/* Bells [64 * line, 64 * line + 64): zero when none has been rung. */
static inline uint64_t wf_shm_board_line(const struct wf_shm_board *board,
					 uint32_t line)
{
	const uint64_t *words = (const uint64_t *)(const void *)board->bells;
	uint64_t any = 0;

	words += line * (WF_SHM_BELLS_PER_LINE / sizeof(*words));
#pragma GCC unroll 8
	for (uint32_t i = 0; i < WF_SHM_BELLS_PER_LINE / sizeof(*words); i++)
		any |= wf_shared_load_plain(&words[i], relaxed);
	return any;
}

static inline bool wf_shm_board_is_rung(const struct wf_shm_board *board,
					uint32_t bell)
{
	return wf_shared_load(&board->bells[bell], relaxed);
}

/* Clears a bell; true if it was rung. Acquire: messages that were written
 * before the bell was rung are there. */
static inline bool wf_shm_board_answer(struct wf_shm_board *board,
				       uint32_t bell)
{
	return wf_shared_exchange(&board->bells[bell], 0, acq_rel);
}

#endif
