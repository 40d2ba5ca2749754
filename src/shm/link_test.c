/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two endpoints that send to each other have one socket between them, and each
 * end of a channel still learns that the other one is gone. Bug: a peer cost two
 * descriptors, and 512 peers more than the usual limit of 1024.
 */
#include "shm/link.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "shm/joined_test.h"

struct side {
	struct wf_compq cq;
	struct wf_rxq rxq;
	struct wf_core core;
	struct wf_shm_ep ep;
	struct wf_addr peer; /* called 0 */
};

struct world {
	struct wf_regs regs;
	struct side s[2]; /* the address of the first is the lower one */
};

static int get_name(void *arg, uint64_t name, struct wf_addr *addr)
{
	const struct side *s = arg;

	(void)name;
	*addr = s->peer;
	return 0;
}

static uint64_t find_name(void *arg, const struct wf_addr *addr)
{
	const struct side *s = arg;

	return wf_base_addr_equal(addr, &s->peer) ? 0 : WF_MATCH_ANY;
}

static int open_world(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	const struct wf_shm_ep_attr attr = joined_attr();

	assert_non_null(w);
	assert_int_equal(wf_op_regs_open(&w->regs, false), 0);
	for (int i = 0; i < 2; i++) {
		struct side *s = &w->s[i];
		struct wf_host host;

		assert_int_equal(wf_op_compq_init(&s->cq, 64, false), 0);
		wf_match_rxq_init(&s->rxq, &s->cq);
		host = joined_host(&s->cq, &s->rxq, &w->regs);
		host.names = (struct wf_names){
			.get = get_name,
			.find = find_name,
			.arg = s,
		};
		joined_open_ep(&s->core, &s->ep, host, &attr);
	}
	for (int i = 0; i < 2; i++)
		w->s[i].peer = w->s[!i].ep.host->addr;
	*state = w;
	return 0;
}

static int close_world(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 2; i++) {
		wf_core_close(&w->s[i].core);
		wf_match_rxq_fini(&w->s[i].rxq);
		wf_op_compq_fini(&w->s[i].cq);
	}
	wf_op_regs_close(&w->regs);
	free(w);
	return 0;
}

static void send_one(struct world *w, int i)
{
	static uint64_t value;
	struct joined_buf b = {
		.len = sizeof(value),
		.count = 1,
		.iov[0] = { &value, sizeof(value) },
	};
	struct wf_tx tx = joined_tx(&b, 1);

	/* The second of two is not injected before the peer has answered. */
	tx.inject = true;
	if (wf_core_submit(&w->s[i].core, 0, &tx) == -EAGAIN) {
		tx.inject = false;
		assert_int_equal(wf_core_submit(&w->s[i].core, 0, &tx), 0);
	}
}

static void look(struct world *w, int i)
{
	struct wf_comp comp;

	wf_core_look(&w->s[i].core, wf_base_clock_ns());
	wf_core_progress(&w->s[i].core);
	while (joined_pop(&w->s[i].cq, &comp))
		;
}

static struct wf_shm_out *out_of(struct world *w, int i)
{
	return wf_shm_ep_out(&w->s[i].ep, 0);
}

static void settle(struct world *w)
{
	for (int i = 0; i < 40; i++)
		look(w, i & 1);
}

/* Sockets of channels that a side has. */
static int sockets(struct world *w, int i)
{
	const struct wf_shm_ep *ep = &w->s[i].ep;
	int count = 0;

	for (const struct wf_list *pos = ep->all_outs.next;
	     pos != &ep->all_outs; pos = pos->next) {
		const struct wf_shm_out *out =
			wf_container_of(pos, struct wf_shm_out, link);

		count += (out->sock.fd >= 0) + (out->old.fd >= 0);
	}
	for (uint32_t j = 0; j < ep->watch.count; j++)
		count += ep->watch.ins[j]->sock.fd >= 0;
	return count;
}

/* When all was heard: each sending end has a receiving end over there, and each
 * receiving end a sending one. */
static void check(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		const struct wf_shm_out *out = out_of(w, i);
		const struct wf_shm_watch *watch = &w->s[!i].ep.watch;

		if (out && out->state == WF_SHM_OUT_DEAD)
			out = NULL;
		assert_int_equal(watch->count, out ? 1 : 0);
		if (!out)
			continue;
		assert_int_equal(out->state, WF_SHM_OUT_OPEN);
		assert_int_equal(out->number, watch->ins[0]->number);
		assert_true(wf_shm_link_out_fd(out) >= 0);
		assert_true(wf_shm_link_in_fd(watch->ins[0]) >= 0);
		assert_int_equal(out->old.fd, -1);
	}
	assert_int_equal(sockets(w, 0), sockets(w, 1));
}

/* Removes the peer from the AV. */
static void leave(struct world *w, int i)
{
	wf_shm_channels_removed(&w->s[i].ep, 0);
	/* It is known again at once, as an address that is inserted is. */
	wf_shm_channels_inserted(&w->s[i].ep, 0, &w->s[i].peer);
}

static void break_ring(struct world *w, int i)
{
	struct wf_shm_ep *ep = &w->s[i].ep;

	if (!ep->watch.count)
		return;
	ep->watch.ins[0]->broken = true;
	ep->reap = true;
	wf_shm_ep_busy(ep);
}

static void test_one_socket(void **state)
{
	for (int first = 0; first < 3; first++) {
		struct world *w;

		open_world((void **)&w);
		send_one(w, first & 1);
		if (first == 2)
			send_one(w, 1); /* at the same time */
		else
			settle(w);
		send_one(w, !(first & 1));
		settle(w);
		check(w);
		assert_int_equal(w->s[0].ep.watch.count, 1);
		assert_int_equal(w->s[1].ep.watch.count, 1);
		assert_int_equal(sockets(w, 0), 1);
		assert_int_equal(w->s[0].rxq.tagged.unexpected,
				 1 + (first == 2));
		close_world((void **)&w);
	}
	(void)state;
}

/* One of the channels ends, at any of the four ends: the other goes on. */
static void test_one_ends(void **state)
{
	for (int end = 0; end < 4; end++) {
		struct world *w;

		open_world((void **)&w);
		send_one(w, 0);
		send_one(w, 1);
		settle(w);
		if (end < 2)
			leave(w, end);
		else
			break_ring(w, end & 1);
		settle(w);
		check(w);
		assert_int_equal(sockets(w, 0), 1);
		assert_int_equal(
			w->s[0].ep.watch.count + w->s[1].ep.watch.count, 1);
		/* And comes again. */
		send_one(w, 0);
		send_one(w, 1);
		settle(w);
		check(w);
		assert_int_equal(sockets(w, 0), 1);
		close_world((void **)&w);
	}
	(void)state;
}

/* The process that a side belongs to goes, or its endpoint. */
static void test_all_ends(void **state)
{
	for (int end = 0; end < 2; end++) {
		struct world *w;

		open_world((void **)&w);
		send_one(w, 0);
		send_one(w, 1);
		settle(w);
		wf_core_close(&w->s[end].core);
		for (int i = 0; i < 10; i++)
			look(w, !end);
		assert_int_equal(w->s[!end].ep.watch.count, 0);
		assert_null(out_of(w, !end));
		assert_int_equal(sockets(w, !end), 0);
		wf_core_close(&w->s[!end].core);
		for (int i = 0; i < 2; i++) {
			wf_match_rxq_fini(&w->s[i].rxq);
			wf_op_compq_fini(&w->s[i].cq);
		}
		wf_op_regs_close(&w->regs);
		free(w);
	}
	(void)state;
}

/* Any order of sending, leaving, breaking and looking. */
static void test_any_order(void **state)
{
	struct world *w;

	(void)state;
	open_world((void **)&w);
	srand(7);
	for (int round = 0; round < 1500; round++) {
		int steps = 1 + rand() % 12;

		for (int i = 0; i < steps; i++) {
			int side = rand() & 1, what = rand() % 12;

			if (what < 3)
				send_one(w, side);
			else if (what == 3)
				leave(w, side);
			else if (what == 4)
				break_ring(w, side);
			else
				look(w, side);
		}
		settle(w);
		check(w);
	}
	close_world((void **)&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_socket),
		cmocka_unit_test(test_one_ends),
		cmocka_unit_test(test_all_ends),
		cmocka_unit_test(test_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
