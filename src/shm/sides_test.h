/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For unit tests: two endpoints of this process that call each other 0, and
 * connect to each other by the handshake.
 */
#ifndef WF_SHM_SIDES_TEST_H
#define WF_SHM_SIDES_TEST_H

#include "base/clock.h"
#include "shm/conn_defs.h"
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

static inline int get_name(void *arg, uint64_t name, struct wf_addr *addr)
{
	const struct side *s = arg;

	(void)name;
	*addr = s->peer;
	return 0;
}

static inline uint64_t find_name(void *arg, const struct wf_addr *addr)
{
	const struct side *s = arg;

	return wf_base_addr_equal(addr, &s->peer) ? 0 : WF_MATCH_ANY;
}

static inline void open_side(struct world *w, struct side *s)
{
	const struct wf_shm_ep_attr attr = joined_attr();
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

static inline void close_side(struct side *s)
{
	wf_core_close(&s->core);
	wf_match_rxq_fini(&s->rxq);
	wf_op_compq_fini(&s->cq);
}

static inline int open_world(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	assert_int_equal(wf_op_regs_open(&w->regs, false), 0);
	for (int i = 0; i < 2; i++)
		open_side(w, &w->s[i]);
	for (int i = 0; i < 2; i++)
		w->s[i].peer = w->s[!i].ep.host->addr;
	*state = w;
	return 0;
}

static inline int close_world(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 2; i++)
		close_side(&w->s[i]);
	wf_op_regs_close(&w->regs);
	free(w);
	return 0;
}

static inline void send_from(struct side *s)
{
	static uint8_t bytes[WF_SHM_LETTER_MAX + 1];
	const struct joined_buf b = {
		.len = sizeof(bytes), /* no letter: it takes a ring */
		.count = 1,
		.iov[0] = { bytes, sizeof(bytes) },
	};
	struct wf_tx tx = joined_tx(&b, 1);

	/* The second of two is not injected before the peer has answered. */
	tx.inject = true;
	if (wf_core_submit(&s->core, 0, &tx) == -EAGAIN) {
		tx.inject = false;
		assert_int_equal(wf_core_submit(&s->core, 0, &tx), 0);
	}
}

static inline void send_one(struct world *w, int i)
{
	send_from(&w->s[i]);
}

/* The same, without a look at who waits to be accepted: the peer may have
 * connected at the same time. */
static inline void send_blind(struct world *w, int i)
{
	w->s[i].ep.deaf_until = UINT64_MAX;
	send_one(w, i);
	w->s[i].ep.deaf_until = 0;
}

static inline void look(struct world *w, int i)
{
	struct wf_comp comp;

	wf_core_look(&w->s[i].core, wf_base_clock_ns());
	wf_core_progress(&w->s[i].core);
	while (joined_pop(&w->s[i].cq, &comp))
		;
}

static inline struct wf_shm_out *out_of(struct world *w, int i)
{
	return wf_shm_ep_out(&w->s[i].ep, 0);
}

static inline void settle(struct world *w)
{
	for (int i = 0; i < 40; i++)
		look(w, i & 1);
}

/* Sockets of channels that a side has. */
static inline int sockets(struct world *w, int i)
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

/* Removes the peer from the AV. */
static inline void leave(struct world *w, int i)
{
	wf_shm_channels_removed(&w->s[i].ep, 0);
	/* It is known again at once, as an address that is inserted is. */
	wf_shm_channels_inserted(&w->s[i].ep, 0, &w->s[i].peer);
}

#endif
