/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For unit tests: many senders and one receiver, all in this process.
 */
#ifndef WF_SHM_CROWD_TEST_H
#define WF_SHM_CROWD_TEST_H

#include <sys/socket.h>

#include "shm/conn.h"
#include "shm/joined_test.h"

#define CROWD 40

struct crowd {
	struct joined *j; /* the first of them, and both endpoints */
	struct wf_shm_out *outs[CROWD];
	struct wf_shm_in *ins[CROWD];
	uint64_t received;
};

/* Another sender to the same receiver, with a socket between them. */
static inline void crowd_join(struct crowd *c, int i, unsigned int slots_log2)
{
	struct joined *j = c->j;
	struct wf_addr nobody = { 0 };
	struct wf_shm_region region;
	int memfd, sock[2];

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, sock),
		0);
	c->outs[i] = wf_shm_out_open(&j->from, (uint64_t)i, &nobody);
	assert_non_null(c->outs[i]);
	assert_int_equal(wf_shm_region_create(&c->outs[i]->region, slots_log2,
					      JOINED_LINES_LOG2, &memfd),
			 0);
	assert_int_equal(wf_shm_region_map(&region, memfd, slots_log2,
					   JOINED_LINES_LOG2),
			 0);
	close(memfd);
	c->ins[i] =
		wf_shm_in_open(&j->to, &region, sock[0], &nobody, (uint64_t)i);
	assert_non_null(c->ins[i]);
	assert_int_equal(wf_shm_channels_add_in(&j->to, c->ins[i]), 0);
	assert_int_equal(wf_shm_conn_watch(&j->to, &c->ins[i]->sock), 0);
	c->outs[i]->sock.fd = sock[1];
	assert_int_equal(wf_shm_conn_watch(&j->from, &c->outs[i]->sock), 0);
	c->outs[i]->features = WF_SHM_FEATURES;
	c->outs[i]->bell = c->ins[i]->bell;
	assert_int_equal(
		wf_shm_board_map(&c->outs[i]->board, j->to.board.memfd), 0);
	assert_int_equal(wf_op_reg_map(&c->outs[i]->regs.view, j->regs.memfd),
			 0);
	wf_shm_early_begin(c->outs[i]);
	wf_shm_out_opened(c->outs[i]);
}

static inline struct crowd *crowd_open(int count, unsigned int slots_log2)
{
	struct crowd *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->j = joined_open(WF_SHM_WAY_NONE);
	for (int i = 0; i < count; i++)
		crowd_join(c, i, slots_log2);
	return c;
}

static inline void crowd_close(struct crowd *c)
{
	joined_close(c->j);
	free(c);
}

/* Makes the completion queue full: its reader has fallen behind. */
static inline void crowd_block(struct crowd *c)
{
	const struct wf_comp comp = { .tag = UINT64_MAX };

	c->j->rxcq.high = 0;
	while (wf_op_compq_room(&c->j->rxcq))
		wf_op_compq_push(&c->j->rxcq, &comp);
}

/* Reads it empty. Returns how many messages were there. */
static inline int crowd_unblock(struct crowd *c)
{
	struct wf_comp comp;
	int count = 0;

	while (joined_pop(&c->j->rxcq, &comp))
		count += comp.tag != UINT64_MAX;
	return count;
}

#endif
