/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint that is connected to sends without connecting, and no message is
 * lost when either side goes away while an offer stands. Bug: two processes that
 * sent to each other made two connections, and 64 processes took three times as
 * long as with libfabric's shm.
 */
#include "shm/offer.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#include "shm/conn.h"
#include "shm/guest.h"
#include "shm/sides_test.h"

/* -- calls that fail ---------------------------------------------------------- */

static int fail_populates;   /* so many, for lack of memory */
static bool cannot_populate; /* as an old kernel */
static int fail_welcomes;    /* so many arrive without their descriptors */

int __real_madvise(void *base, size_t bytes, int advice);
int __wrap_madvise(void *base, size_t bytes, int advice);
ssize_t __real_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);

/* The linker has weft's calls come here (src/meson.build). */
int __wrap_madvise(void *base, size_t bytes, int advice)
{
	if (advice == MADV_POPULATE_WRITE &&
	    (cannot_populate || fail_populates > 0)) {
		fail_populates -= !cannot_populate;
		errno = cannot_populate ? EINVAL : ENOMEM;
		return -1;
	}
	return __real_madvise(base, bytes, advice);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	ssize_t got = __real_recvmsg(fd, msg, flags);

	if (got == (ssize_t)sizeof(struct wf_shm_welcome) &&
	    fail_welcomes > 0) {
		fail_welcomes--;
		msg->msg_flags |= MSG_CTRUNC;
	}
	return got;
}

static int heal(void **state)
{
	(void)state;
	fail_populates = 0;
	cannot_populate = false;
	fail_welcomes = 0;
	return 0;
}

static int heal_and_open(void **state)
{
	heal(state);
	return open_world(state);
}

/* -- tests -------------------------------------------------------------------- */

/* The channel of side @i, which it has not connected. */
static void check_offered(struct world *w, int i)
{
	const struct wf_shm_out *out = out_of(w, i);

	assert_non_null(out);
	assert_int_equal(out->state, WF_SHM_OUT_OPEN);
	assert_int_equal(out->sock.fd, -1);
	assert_non_null(out->twin);
}

static void expect_messages(struct world *w, int i, uint32_t count)
{
	for (int k = 0; k < 10; k++)
		look(w, i);
	assert_int_equal(w->s[i].rxq.tagged.unexpected, count);
}

/* Answers bells, and reads the rings that it opened for them. */
static void progress(struct world *w, int i)
{
	wf_core_progress(&w->s[i].core);
	wf_core_progress(&w->s[i].core);
}

/* An endpoint without remote access passes no table with its welcome, ... */
static void test_welcome_without_table(void **state)
{
	struct world *w = *state;

	w->s[1].ep.host->is_target = false;
	send_one(w, 0);
	settle(w);
	assert_int_equal(out_of(w, 0)->state, WF_SHM_OUT_OPEN);
	assert_true(out_of(w, 0)->remote_flags & WF_SHM_WELCOME_NO_TABLE);
	assert_int_equal(out_of(w, 0)->regs.memfd, -1);
	assert_null(out_of(w, 0)->regs.view.entries);
}

/* ... nor does one come with its hello. */
static void test_answers_without_table(void **state)
{
	struct world *w = *state;

	w->s[0].ep.host->is_target = false;
	send_one(w, 0);
	settle(w);
	send_one(w, 1);
	check_offered(w, 1);
	assert_true(out_of(w, 1)->remote_flags & WF_SHM_WELCOME_NO_TABLE);
	assert_int_equal(out_of(w, 1)->regs.memfd, -1);
	assert_true(out_of(w, 0)->regs.memfd >= 0);
	progress(w, 0);
	assert_int_equal(w->s[0].rxq.tagged.unexpected, 1);
}

/* The first message goes at once, without a look of the receiver at its
 * sockets. */
static void test_answers_without_connecting(void **state)
{
	struct world *w = *state;

	send_one(w, 0);
	settle(w);
	assert_non_null(out_of(w, 0)->offer);
	assert_int_equal(w->s[0].ep.watch.count, 0);
	send_one(w, 1);
	check_offered(w, 1);
	progress(w, 0);
	assert_int_equal(w->s[0].rxq.tagged.unexpected, 1);
	assert_null(out_of(w, 0)->offer);
	settle(w);
	assert_int_equal(sockets(w, 0), 1);
	assert_int_equal(sockets(w, 1), 1);
	send_one(w, 1);
	send_one(w, 0);
	expect_messages(w, 0, 2);
	expect_messages(w, 1, 2);
}

/* The peer has connected, and nobody has looked since: also before it has our
 * welcome. */
static void test_accepts_before_connecting(void **state)
{
	struct world *w = *state;

	send_one(w, 0);
	send_one(w, 1);
	check_offered(w, 1);
	assert_int_equal(out_of(w, 0)->state, WF_SHM_OUT_GREETED);
	progress(w, 0);
	assert_int_equal(out_of(w, 0)->state, WF_SHM_OUT_OPEN);
	assert_int_equal(w->s[0].rxq.tagged.unexpected, 1);
	expect_messages(w, 1, 1);
}

/* Both connect: neither needs the other's offer. */
static void test_declined(void **state)
{
	struct world *w = *state;

	send_one(w, 0);
	send_blind(w, 1);
	settle(w);
	for (int i = 0; i < 2; i++) {
		assert_null(out_of(w, i)->offer);
		assert_int_equal(w->s[i].ep.watch.count, 1);
		assert_null(w->s[i].ep.watch.ins[0]->offer);
		assert_int_equal(w->s[i].rxq.tagged.unexpected, 1);
		for (int bell = 0; bell < 64; bell++)
			assert_null(w->s[i].ep.watch.offers[bell]);
	}
	assert_int_equal(sockets(w, 0), 1);
}

/* The side that offers removes the peer from its AV: before the peer has the
 * hello, before its answer was read, and when the offer is used. In the first
 * case the peer cannot use the offer any more. */
static void test_offerer_leaves(void **state)
{
	(void)state;
	for (int when = 0; when < 4; when++) {
		struct world *w;

		open_world((void **)&w);
		send_one(w, 0);
		if (when == 1)
			look(w, 1);
		else if (when > 1)
			settle(w);
		if (when == 3)
			send_one(w, 1);
		leave(w, 0);
		if (when < 3)
			send_one(w, 1);
		if (when)
			check_offered(w, 1);
		expect_messages(w, 0, 1);
		settle(w);
		assert_null(out_of(w, 0));
		assert_true(wf_base_list_empty(&w->s[0].ep.all_outs));
		assert_int_equal(w->s[1].ep.watch.count, 0);
		assert_int_equal(w->s[0].ep.watch.count, 1);
		assert_int_equal(sockets(w, 0), 1);
		send_one(w, 1);
		expect_messages(w, 0, 2);
		/* And back by another channel. */
		send_one(w, 0);
		expect_messages(w, 1, 2);
		close_world((void **)&w);
	}
}

/* The side that used an offer goes away before its message was seen. */
static void test_user_leaves(void **state)
{
	(void)state;
	for (int how = 0; how < 2; how++) {
		struct world *w;

		open_world((void **)&w);
		send_one(w, 0);
		settle(w);
		send_one(w, 1);
		if (how)
			leave(w, 1);
		else
			wf_core_close(&w->s[1].core);
		/* Sockets first: the note, or the end, comes before the bell
		 * was looked at. */
		wf_core_look(&w->s[0].core, wf_base_clock_ns());
		expect_messages(w, 0, 1);
		assert_int_equal(w->s[0].ep.watch.count, 0);
		if (how) {
			settle(w);
			send_one(w, 1);
			expect_messages(w, 0, 2);
			close_world((void **)&w);
			continue;
		}
		assert_null(out_of(w, 0));
		wf_core_close(&w->s[0].core);
		for (int i = 0; i < 2; i++) {
			wf_match_rxq_fini(&w->s[i].rxq);
			wf_op_compq_fini(&w->s[i].cq);
		}
		wf_op_regs_close(&w->regs);
		free(w);
	}
}

/* An offer that nobody has used ends with its channel. */
static void test_unused_ends(void **state)
{
	struct world *w = *state;

	send_one(w, 0);
	settle(w);
	leave(w, 0);
	settle(w);
	assert_true(wf_base_list_empty(&w->s[0].ep.all_outs));
	assert_int_equal(w->s[0].ep.watch.count, 0);
	assert_int_equal(w->s[1].ep.watch.count, 0);
	assert_int_equal(sockets(w, 0) + sockets(w, 1), 0);
}

static void restart(struct world *w, int i)
{
	struct side *s = &w->s[i];
	struct wf_host host = joined_host(&s->cq, &s->rxq, &w->regs);
	const struct wf_shm_ep_attr attr = joined_attr();

	host.names = s->core.host.names;
	host.addr = s->ep.host->addr;
	wf_core_close(&s->core);
	assert_int_equal(joined_open_at(&s->core, &s->ep, &host, &attr), 0);
}

/* The process that made the offer has ended, and its place has another one: we
 * have not noticed. */
static void test_stale_is_not_used(void **state)
{
	struct world *w = *state;

	send_one(w, 0);
	settle(w);
	restart(w, 0);
	send_one(w, 1);
	assert_int_equal(out_of(w, 1)->state, WF_SHM_OUT_GREETED);
	settle(w);
	assert_int_equal(w->s[0].rxq.tagged.unexpected, 1);
}

/* The same, and that process has made an offer, too. Bug: after the first one
 * we looked for no other, and connected. */
static void test_offer_after_stale_one(void **state)
{
	struct world *w = *state;

	send_one(w, 0);
	settle(w);
	restart(w, 0);
	send_one(w, 0);
	send_one(w, 1);
	check_offered(w, 1);
	progress(w, 0);
	assert_int_equal(w->s[0].rxq.tagged.unexpected, 1);
	expect_messages(w, 1, 2);
}

/* Bug: a bell that was set for nothing ended the channel with EPROTO. Whoever had
 * the bell before may have left it set, and may set it later. */
static void test_bell_for_nothing(void **state)
{
	struct world *w = *state;
	struct wf_shm_board *board = w->s[0].ep.board.board;
	uint32_t bell;

	atomic_store(&board->bells[0], 1);
	send_one(w, 0);
	bell = out_of(w, 0)->offer->bell;
	assert_int_equal(bell, 0);
	assert_false(wf_shm_board_is_rung(board, bell));
	settle(w);
	wf_shm_board_ring(board, bell);
	progress(w, 0);
	assert_false(wf_shm_board_is_rung(board, bell));
	assert_int_equal(out_of(w, 0)->state, WF_SHM_OUT_OPEN);
	assert_non_null(out_of(w, 0)->offer);
	send_one(w, 1);
	check_offered(w, 1);
	progress(w, 0);
	assert_int_equal(w->s[0].rxq.tagged.unexpected, 1);
}

/* Bug: such a kernel made offers that were never used, and no pair of channels
 * shared a socket. */
static void test_old_kernel(void **state)
{
	struct world *w;

	(void)state;
	cannot_populate = true;
	open_world((void **)&w);
	send_one(w, 0);
	assert_null(out_of(w, 0)->offer);
	settle(w);
	send_one(w, 1);
	settle(w);
	assert_int_equal(sockets(w, 0), 1);
	assert_int_equal(sockets(w, 1), 1);
	expect_messages(w, 0, 1);
	expect_messages(w, 1, 1);
	close_world((void **)&w);
}

/* Bug: the same for a pair, if one side had no memory to use the offer. */
static void test_no_memory_to_use(void **state)
{
	(void)state;
	for (int first = 0; first < 2; first++) {
		struct world *w;

		open_world((void **)&w);
		send_one(w, first);
		settle(w);
		fail_populates = 1;
		send_one(w, !first);
		assert_int_equal(fail_populates, 0);
		assert_int_equal(out_of(w, !first)->state, WF_SHM_OUT_GREETED);
		settle(w);
		assert_null(out_of(w, first)->offer);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(sockets(w, i), 1);
			expect_messages(w, i, 1);
		}
		close_world((void **)&w);
	}
}

/* Bug: we have no descriptors for the welcome and start again, and have no
 * memory to open our end of the second channel: the messages that the peer had
 * sent were lost. */
static void test_no_memory_to_start_over(void **state)
{
	struct world *w = *state;

	send_one(w, 0);
	send_one(w, 1);
	check_offered(w, 1);
	fail_welcomes = 1;
	fail_populates = 1;
	wf_core_look(&w->s[0].core, wf_base_clock_ns());
	assert_int_equal(fail_welcomes + fail_populates, 0);
	expect_messages(w, 0, 1);
}

/* Bug: a side that had no descriptors for the welcome connected again after the
 * peer had used its offer, and the two channels kept a socket each for ever. With
 * some fifty such pairs a process had no descriptor left for other peers. The peer
 * hears of both at once, before it has closed the first ring, or one by one. */
static void test_one_socket_after_starting_over(void **state)
{
	for (int way = 0; way < 4; way++) {
		struct world *w;
		int i = way & 1;

		open_world((void **)&w);
		send_one(w, i);
		send_one(w, !i);
		check_offered(w, !i);
		fail_welcomes = 1;
		wf_core_look(&w->s[i].core, wf_base_clock_ns());
		assert_int_equal(fail_welcomes, 0);
		for (int k = 0; k < 5000 && out_of(w, i) &&
				out_of(w, i)->state != WF_SHM_OUT_OPEN;
		     k++) {
			struct timespec nap = { .tv_nsec = 1000000 };

			look(w, i);
			if (way >= 2)
				look(w, !i);
			else if (out_of(w, i)->state == WF_SHM_OUT_GREETED)
				look(w, !i);
			nanosleep(&nap, NULL);
		}
		settle(w);
		for (int side = 0; side < 2; side++) {
			assert_int_equal(out_of(w, side)->state,
					 WF_SHM_OUT_OPEN);
			assert_int_equal(w->s[side].ep.watch.count, 1);
			assert_int_equal(sockets(w, side), 1);
		}
		close_world((void **)&w);
	}
	(void)state;
}

static void reach_time_out(struct world *w, int i)
{
	struct wf_shm_ep *ep = &w->s[i].ep;

	wf_shm_conn_tend(ep, out_of(w, i)->greeted +
				     ep->attr.dead_timeout_s * WF_NS_PER_S);
}

/* Bug: a peer that answered at the dead time-out used an offer that we withdrew,
 * and its message was lost. */
static void test_answer_at_time_out(void **state)
{
	struct world *w = *state;

	send_one(w, 0);
	send_one(w, 1);
	check_offered(w, 1);
	reach_time_out(w, 0);
	assert_int_equal(out_of(w, 0)->state, WF_SHM_OUT_OPEN);
	expect_messages(w, 0, 1);
	expect_messages(w, 1, 1);
}

/* After the time-out it cannot answer, and connects. */
static void test_answer_after_time_out(void **state)
{
	struct world *w = *state;

	send_one(w, 0);
	reach_time_out(w, 0);
	assert_int_equal(out_of(w, 0)->state, WF_SHM_OUT_DEAD);
	assert_null(out_of(w, 0)->offer);
	send_one(w, 1);
	assert_int_equal(out_of(w, 1)->state, WF_SHM_OUT_GREETED);
	expect_messages(w, 0, 1);
	/* The message that came with the hello counts. */
	expect_messages(w, 1, 1);
}

/* Bug: an application that sends to a peer which does not answer and removes it,
 * again and again, had no descriptors left. */
static void test_removed_before_answer(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 100; i++) {
		send_one(w, 0);
		leave(w, 0);
	}
	assert_true(wf_base_list_empty(&w->s[0].ep.all_outs));
	assert_int_equal(w->s[0].ep.connecting, 0);
	send_one(w, 0);
	for (int i = 0; i < 10; i++)
		settle(w);
	assert_int_equal(w->s[1].rxq.tagged.unexpected, 101);
	assert_int_equal(w->s[1].ep.watch.count, 1);
}

/* Bug: a channel whose peer was removed took a ring without a name for its
 * twin. */
static void test_removed_has_no_twin(void **state)
{
	struct world *w = *state;
	const struct wf_shm_watch *watch = &w->s[0].ep.watch;

	send_one(w, 0);
	send_blind(w, 1);
	look(w, 1);
	wf_shm_guest_accept(&w->s[0].ep);
	assert_int_equal(watch->count, 1);
	wf_shm_channels_removed(&w->s[0].ep, 0);
	assert_int_equal(watch->ins[0]->src, WF_MATCH_ANY);
	assert_false(watch->ins[0]->asked);
}

/* A process of another user may clear the bell of somebody who uses an offer. */
static void test_distrusted(void **state)
{
	struct world *w = *state;
	struct wf_shm_board *board = w->s[0].ep.board.board;

	send_one(w, 0);
	settle(w);
	w->s[0].ep.watch.distrusted = true;
	wf_shm_offer_open_all(&w->s[0].ep);
	assert_int_equal(w->s[0].ep.watch.count, 1);
	send_one(w, 1);
	check_offered(w, 1);
	memset(board->bells, 0, sizeof(board->bells));
	atomic_store(&board->rung, 0);
	for (int i = 0; i < 200; i++)
		look(w, 0);
	assert_int_equal(w->s[0].rxq.tagged.unexpected, 1);
	/* And none is made any more. */
	leave(w, 0);
	settle(w);
	send_one(w, 0);
	assert_null(out_of(w, 0)->offer);
}

/* Bug: if there was no memory for that when such a process came, the ring had
 * only its bell. */
static void test_distrusted_without_memory(void **state)
{
	struct world *w = *state;
	struct wf_shm_board *board = w->s[0].ep.board.board;

	send_one(w, 0);
	settle(w);
	w->s[0].ep.watch.distrusted = true;
	fail_populates = 1;
	wf_shm_offer_open_all(&w->s[0].ep);
	assert_int_equal(w->s[0].ep.watch.count, 0);
	send_one(w, 1);
	memset(board->bells, 0, sizeof(board->bells));
	atomic_store(&board->rung, 0);
	for (int i = 0; i < 200; i++)
		look(w, 0);
	assert_int_equal(w->s[0].rxq.tagged.unexpected, 1);
}

/* Rings of the size that our user has chosen. */
static void test_other_size(void **state)
{
	struct world *w = *state;

	w->s[1].ep.attr.slots_log2++;
	send_one(w, 0);
	send_one(w, 1);
	assert_int_equal(out_of(w, 1)->region.slot_count,
			 2u << JOINED_SLOTS_LOG2);
	settle(w);
	assert_int_equal(w->s[0].rxq.tagged.unexpected, 1);
	assert_int_equal(w->s[1].rxq.tagged.unexpected, 1);
}

#define TEST(name)                                                             \
	cmocka_unit_test_setup_teardown(name, heal_and_open, close_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_answers_without_connecting),
		TEST(test_welcome_without_table),
		TEST(test_answers_without_table),
		TEST(test_accepts_before_connecting),
		TEST(test_declined),
		cmocka_unit_test_setup(test_offerer_leaves, heal),
		cmocka_unit_test_setup(test_user_leaves, heal),
		TEST(test_unused_ends),
		TEST(test_stale_is_not_used),
		TEST(test_offer_after_stale_one),
		TEST(test_bell_for_nothing),
		cmocka_unit_test_setup(test_old_kernel, heal),
		cmocka_unit_test_setup(test_no_memory_to_use, heal),
		TEST(test_no_memory_to_start_over),
		TEST(test_one_socket_after_starting_over),
		TEST(test_answer_at_time_out),
		TEST(test_answer_after_time_out),
		TEST(test_removed_before_answer),
		TEST(test_removed_has_no_twin),
		TEST(test_distrusted),
		TEST(test_distrusted_without_memory),
		TEST(test_other_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
