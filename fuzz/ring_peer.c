/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hostile peer at the other end of two rings: one that an endpoint receives
 * from, one that it sends to. The input is a program: what the peer writes
 * (slots, data, shares, replies, credit, or any word anywhere), and what the
 * endpoint does meanwhile. The peer sees our state, so that what it writes is
 * valid often enough to get far. Whatever it writes: no crash, no access out of
 * bounds, no buffer touched after its completion, none completed twice.
 *
 * With libFuzzer, all in one line:
 *	clang -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Isrc
 *	fuzz/ring_*.c $(ls src/{base,op,match,shm}/[a-z]*.c | grep -v _test)
 * In the tests: together with driver.c.
 */
#include "ring_world.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>

#include "shm/channels.h"
#include "shm/guard.h"
#include "shm/remote.h"
#include "shm/word.h"

struct wf_fuzz_stats wf_fuzz_stats;

/* -- the program ----------------------------------------------------------- */

uint64_t wf_fuzz_take(struct wf_fuzz_world *w, size_t bytes)
{
	uint64_t value = 0;

	if (bytes > w->left)
		bytes = w->left;
	memcpy(&value, w->program, bytes);
	w->program += bytes;
	w->left -= bytes;
	return value;
}

uint8_t wf_fuzz_take8(struct wf_fuzz_world *w)
{
	return (uint8_t)wf_fuzz_take(w, 1);
}

/* A length, an address or a count: usually of a likely size, sometimes any. */
uint64_t wf_fuzz_take_size(struct wf_fuzz_world *w)
{
	static const uint32_t likely[] = { 0,	 1,    8,     40,    41,
					   2048, 8192, 16384, 70000, 1 << 20 };
	uint8_t how = wf_fuzz_take8(w);

	if (how < 200)
		return likely[how % 10] + how / 100;
	if (how < 230)
		return wf_fuzz_take(w, 2);
	return how < 240 ? UINT64_MAX - how : wf_fuzz_take(w, 8);
}

/* In the scapegoat process, whose memory is a copy of ours, or anywhere. */
uint64_t wf_fuzz_take_address(struct wf_fuzz_world *w)
{
	return wf_fuzz_take8(w) < 200 ?
		       (uintptr_t)w->spare + wf_fuzz_take(w, 2) :
		       wf_fuzz_take_size(w);
}

/* -- the endpoints --------------------------------------------------------- */

static int name_get(void *arg, uint64_t name, struct wf_addr *addr)
{
	(void)arg;
	(void)name;
	(void)addr;
	return -ENOENT;
}

static uint64_t name_find(void *arg, const struct wf_addr *addr)
{
	(void)arg;
	(void)addr;
	return WF_MATCH_ANY;
}

static void open_ep(struct wf_core *core, struct wf_shm_ep *ep,
		    struct wf_compq *txq, struct wf_rxq *rxq,
		    struct wf_regs *regs)
{
	static uint16_t port;
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 0x10000 +
					 ((uint32_t)getpid() & 0xffff)),
	};
	struct wf_shm_ep_attr attr = {
		.name_fd = -1,
		.eager_max = 16384,
		.share_min = 16384,
		.chunk = 2048,
		.connect_timeout_ms = 1000,
		.dead_timeout_s = 1,
		.slots_log2 = SLOTS_LOG2,
		.lines_log2 = LINES_LOG2,
		.cma = true,
	};
	struct wf_host host = {
		.tx_size = HOLDS,
		.txq = txq,
		.rxq = rxq,
		.regs = regs,
		.names = { .get = name_get, .find = name_find },
	};
	int err;

	do {
		sin.sin_port = htons(++port);
		wf_base_addr_set(&host.addr, &sin, sizeof(sin));
		wf_core_init(core, false);
		MUST(!wf_core_open(core, &host));
		err = wf_shm_ep_open(ep, &attr, &core->host,
				     wf_core_add(core, &wf_shm_transport, ep));
		if (err) {
			core->way_count = 0;
			wf_core_close(core);
		}
	} while (err == -EADDRINUSE);
	MUST(!err);
}

static uint8_t spare[200000];

/* A process whose memory may be read and written anywhere, and the way to reach
 * it. */
static struct wf_shm_mover scapegoat(bool cma)
{
	static struct wf_shm_guard guard;
	static pid_t pid;
	struct wf_shm_mover mover;
	int ends[2];

	if (!pid) {
		MUST(!pipe(ends));
		pid = fork();
		MUST(pid >= 0);
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			guard = wf_shm_guard_own();
			MUST(write(ends[1], &guard, sizeof(guard)) ==
			     sizeof(guard));
			for (;;)
				pause();
		}
		MUST(read(ends[0], &guard, sizeof(guard)) == sizeof(guard));
		close(ends[0]);
		close(ends[1]);
	}
	wf_shm_mover_open(&mover, pid, guard.process, guard.addr, guard.process,
			  cma);
	wf_shm_mover_way(&mover);
	return mover;
}

static void open_in(struct wf_fuzz_world *w)
{
	struct wf_addr nobody = { 0 };
	struct wf_shm_region region;
	struct wf_shm_in *in;
	int memfd;

	wf_shm_region_unmap(&w->ring_in);
	w->written = 0;
	w->write_pos = 0;
	MUST(!wf_shm_region_create(&w->ring_in, SLOTS_LOG2, LINES_LOG2,
				   &memfd));
	MUST(!wf_shm_region_map(&region, memfd, SLOTS_LOG2, LINES_LOG2));
	close(memfd);
	in = wf_shm_in_open(&w->to, &region, -1, &nobody, PEER);
	MUST(in && !wf_shm_channels_add_in(&w->to, in));
	in->mover = w->mover;
}

static void open_out(struct wf_fuzz_world *w)
{
	struct wf_addr nobody = { 0 };
	struct wf_shm_out *out;
	int memfd;

	wf_shm_region_unmap(&w->ring_out);
	w->replied = 0;
	out = wf_shm_out_open(&w->from, 0, &nobody);
	MUST(out);
	MUST(!wf_shm_region_create(&out->region, SLOTS_LOG2, LINES_LOG2,
				   &memfd));
	MUST(!wf_shm_region_map(&w->ring_out, memfd, SLOTS_LOG2, LINES_LOG2));
	close(memfd);
	out->mover = w->mover;
	out->features = WF_SHM_FEATURES;
	MUST(!wf_shm_board_map(&out->board, w->to.board.memfd));
	MUST(!wf_op_reg_map(&out->regs.view, w->regs.memfd));
	wf_shm_out_opened(out);
}

struct wf_shm_in *wf_fuzz_in_of(struct wf_fuzz_world *w)
{
	return w->to.watch.count ? w->to.watch.ins[0] : NULL;
}

struct wf_shm_out *wf_fuzz_out_of(struct wf_fuzz_world *w)
{
	if (wf_base_list_empty(&w->from.all_outs))
		return NULL;
	return wf_container_of(w->from.all_outs.next, struct wf_shm_out, link);
}

/* -- completions ----------------------------------------------------------- */

static void drain(struct wf_compq *q)
{
	while (wf_op_compq_count(q)) {
		struct wf_comp *comp = &q->ring[q->tail & q->mask];
		struct wf_fuzz_hold *hold = comp->context;

		/* Remote CQ data comes without other data. */
		if (!comp->failure && (comp->flags & FI_REMOTE_WRITE)) {
			wf_op_compq_take_locked(q);
			continue;
		}
		MUST(hold && hold->buf); /* once only */
		if (comp->failure)
			MUST(wf_op_comp_err(comp) > 0);
		else
			wf_fuzz_stats.completed++;
		wf_fuzz_stats.failed += comp->failure != 0;
		if (!hold->multi) {
			free(hold->buf);
			hold->buf = NULL;
		}
		wf_op_compq_take_locked(q);
	}
}

static void drain_all(struct wf_fuzz_world *w)
{
	drain(&w->txq);
	drain(&w->rxcq);
}

static struct wf_fuzz_hold *hold_buffer(struct wf_fuzz_hold *holds, size_t len)
{
	for (int i = 0; i < HOLDS; i++) {
		if (holds[i].buf)
			continue;
		holds[i].buf = calloc(1, len + !len);
		MUST(holds[i].buf);
		holds[i].multi = false;
		return &holds[i];
	}
	return NULL;
}

/* -- what the endpoint does ------------------------------------------------ */

static void op_receive(struct wf_fuzz_world *w)
{
	uint8_t how = wf_fuzz_take8(w);
	size_t len = wf_fuzz_take_size(w) % 100000;
	struct wf_fuzz_hold *hold = hold_buffer(w->rx, len);
	struct wf_rx *rx;

	if (!hold)
		return;
	rx = wf_base_pool_get(&w->rxq.pool);
	MUST(rx);
	*rx = (struct wf_rx){
		.tag = how & 1,
		.ignore = how & 2 ? UINT64_MAX : 0,
		.src = how & 4 ? PEER : WF_MATCH_ANY,
		.context = hold,
		.flags = FI_RECV,
		.len = len,
		.iov_count = 1,
		.wants_comp = true,
		.tagged = how & 8,
		.multi = !(how & 8) && (how & 16) && len,
		.iov[0] = { hold->buf, len },
	};
	if (!(how & 8))
		rx->tag = rx->ignore = 0;
	hold->multi = rx->multi;
	if (!rx->multi && (how & 32) && len) {
		rx->iov_count = 2;
		rx->iov[0].iov_len = len / 3;
		rx->iov[1] =
			(struct iovec){ hold->buf + len / 3, len - len / 3 };
	}
	rx->plain = rx->iov_count == 1 && !rx->multi;
	wf_match_rxq_post(&w->rxq, rx);
}

static void op_cancel(struct wf_fuzz_world *w)
{
	struct wf_fuzz_hold *hold = &w->rx[wf_fuzz_take8(w) % HOLDS];

	if (hold->buf && !hold->multi)
		wf_match_rxq_cancel(&w->rxq, hold);
}

static void op_discard(struct wf_fuzz_world *w)
{
	struct wf_match *m = wf_match_rxq_of(&w->rxq, wf_fuzz_take8(w) & 1);
	struct wf_ux *ux = wf_match_find_ux(m, 0, UINT64_MAX, WF_MATCH_ANY);

	if (!ux)
		return;
	wf_match_unpark(m, ux);
	ux->ops->discard(ux);
}

static void op_send(struct wf_fuzz_world *w)
{
	uint8_t how = wf_fuzz_take8(w);
	size_t len = (how & 0xc0 ? 20000 : 0) + wf_fuzz_take_size(w) % 100000;
	struct wf_shm_out *out = wf_fuzz_out_of(w);
	struct wf_tx tx = {
		.comp_flags = FI_SEND,
		.len = len,
		.delivery = how & 1,
		.wants_comp = true,
		.inject = (how & 2) && len <= 4096,
		.iov_count = 1,
	};
	struct wf_fuzz_hold *hold;

	if (!out || out->state != WF_SHM_OUT_OPEN)
		return;
	hold = hold_buffer(w->tx, len);
	if (!hold)
		return;
	tx.context = hold;
	tx.iov[0] = (struct iovec){ hold->buf, len };
	if ((how & 4) && len > 1) {
		tx.iov_count = 2;
		tx.iov[0].iov_len = 1;
		tx.iov[1] = (struct iovec){ hold->buf + 1, len - 1 };
	}
	if (wf_shm_out_send(out, &tx)) {
		free(hold->buf);
		hold->buf = NULL;
	}
}

/* Reads, writes and atomics, some of which the peer answers. */
static void op_remote(struct wf_fuzz_world *w)
{
	uint8_t how = wf_fuzz_take8(w);
	size_t len = 8 + wf_fuzz_take_size(w) % 5000 / 8 * 8;
	struct wf_shm_out *out = wf_fuzz_out_of(w);
	struct wf_remote remote = {
		.seg_count = 1,
		.segs[0] = { .addr = wf_fuzz_take8(w),
			     .len = len,
			     .key = OPEN_KEY },
		.amo_op = FI_SUM,
		.amo_type = FI_UINT64,
	};
	struct wf_tx tx = {
		.kind = WF_TX_WRITE + how % 3,
		.comp_flags = FI_RMA,
		.len = len,
		.wants_comp = true,
		.remote = &remote,
		.delivery = how & 4,
		.iov_count = 1,
	};
	struct wf_fuzz_hold *hold;

	if (!out || out->state != WF_SHM_OUT_OPEN)
		return;
	hold = hold_buffer(w->tx, len);
	if (!hold)
		return;
	tx.context = hold;
	tx.iov[0] = (struct iovec){ hold->buf, len };
	if (tx.kind == WF_TX_ATOMIC) {
		if (len > WF_SHM_RETURN_MAX)
			remote.segs[0].len = tx.len = tx.iov[0].iov_len = 8;
		remote.amo_kind = how & 8 ? WF_OP_AMO_FETCH : WF_OP_AMO_WRITE;
		remote.result_count = 1;
		remote.result[0] = tx.iov[0];
	}
	if (tx.kind == WF_TX_ATOMIC && tx.len == 8) {
		const struct wf_shm_word word = {
			.addr = remote.segs[0].addr,
			.key = OPEN_KEY,
			.operand = 1,
			.result = hold->buf,
			.context = hold,
			.comp_flags = FI_RMA,
			.kind = remote.amo_kind,
			.op = FI_SUM,
			.type = FI_UINT64,
			.wants_comp = true,
		};

		if (wf_shm_word_put(out, &word))
			return;
	}
	if (wf_shm_out_send(out, &tx)) {
		free(hold->buf);
		hold->buf = NULL;
	}
}

static void op_progress(struct wf_fuzz_world *w)
{
	wf_core_progress(&w->to_core);
	wf_core_progress(&w->from_core);
}

static void op_rename(struct wf_fuzz_world *w)
{
	if (wf_fuzz_in_of(w))
		wf_shm_in_rename(wf_fuzz_in_of(w),
				 wf_fuzz_take8(w) & 1 ? PEER : WF_MATCH_ANY);
}

static void (*const ops[])(struct wf_fuzz_world *w) = {
	wf_fuzz_op_slot,  wf_fuzz_op_slot,   wf_fuzz_op_slot,
	wf_fuzz_op_slot,  wf_fuzz_op_data,   op_receive,
	op_receive,	  op_receive,	     op_progress,
	op_progress,	  op_send,	     op_send,
	op_remote,	  wf_fuzz_op_reply,  wf_fuzz_op_reply,
	wf_fuzz_op_share, wf_fuzz_op_credit, wf_fuzz_op_anywhere,
	op_cancel,	  op_discard,	     op_rename,
	drain_all,
};

/* -------------------------------------------------------------------------- */

static void open_memory(struct wf_fuzz_world *w)
{
	struct iovec iov = { .iov_len = OPEN_LEN };

	MUST(!wf_op_regs_open(&w->regs, false));
	w->open = calloc(1, OPEN_LEN);
	w->readable = calloc(1, OPEN_LEN);
	MUST(w->open && w->readable);
	iov.iov_base = w->open;
	MUST(!wf_op_regs_add(&w->regs, OPEN_KEY,
			     FI_REMOTE_READ | FI_REMOTE_WRITE, WF_REG_OFFSETS,
			     &iov, 1));
	iov.iov_base = w->readable;
	MUST(!wf_op_regs_add(&w->regs, READ_KEY, FI_REMOTE_READ, WF_REG_OFFSETS,
			     &iov, 1));
}

static void world_open(struct wf_fuzz_world *w, const uint8_t *data,
		       size_t size)
{
	*w = (struct wf_fuzz_world){ .program = data, .left = size };
	MUST(!wf_op_compq_init(&w->txq, 64, false));
	MUST(!wf_op_compq_init(&w->rxcq, 64, false));
	wf_match_rxq_init(&w->rxq, &w->rxcq);
	wf_match_rxq_init(&w->unused, &w->txq);
	open_memory(w);
	open_ep(&w->to_core, &w->to, &w->txq, &w->rxq, &w->regs);
	open_ep(&w->from_core, &w->from, &w->txq, &w->unused, &w->regs);
	w->mover = scapegoat(wf_fuzz_take8(w) & 1);
	w->spare = spare;
}

/* Connects a new peer to an endpoint that has given up the last one. */
static void reopen(struct wf_fuzz_world *w)
{
	if (!wf_fuzz_in_of(w)) {
		open_in(w);
		wf_fuzz_stats.broken++;
	}
	if (!wf_fuzz_out_of(w)) {
		open_out(w);
		wf_fuzz_stats.broken_sender++;
	}
}

static void world_close(struct wf_fuzz_world *w)
{
	/* Closing would wait for injected messages that nobody reads. */
	if (wf_fuzz_out_of(w))
		wf_shm_out_mark_dead(wf_fuzz_out_of(w), EIO, false);
	wf_core_close(&w->to_core);
	wf_core_close(&w->from_core);
	drain_all(w);
	for (size_t i = 0; i < OPEN_LEN; i++)
		MUST(!w->readable[i]);
	wf_op_regs_close(&w->regs);
	free(w->open);
	free(w->readable);
	wf_match_rxq_fini(&w->rxq);
	wf_match_rxq_fini(&w->unused);
	wf_op_compq_fini(&w->txq);
	wf_op_compq_fini(&w->rxcq);
	wf_shm_region_unmap(&w->ring_in);
	wf_shm_region_unmap(&w->ring_out);
	for (int i = 0; i < HOLDS; i++) {
		free(w->rx[i].buf);
		free(w->tx[i].buf);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wf_fuzz_world *w = malloc(sizeof(*w));

	MUST(w);
	world_open(w, data, size);
	while (w->left) {
		reopen(w);
		ops[wf_fuzz_take8(w) % (sizeof(ops) / sizeof(ops[0]))](w);
	}
	op_progress(w);
	world_close(w);
	free(w);
	return 0;
}
