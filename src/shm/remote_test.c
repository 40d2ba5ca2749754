/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations on remote memory, by oneself and through the ring: bytes, keys,
 * completions, what the target hears of it.
 */
#include <sys/socket.h>
#include <sys/wait.h>

#include <rdma/fi_atomic.h>

#include "base/clock.h"
#include "op/cntr.h"
#include "shm/conn_defs.h"
#include "shm/joined_test.h"
#include "shm/remote.h"

#define KEY 0x77
#define RW (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define ROOM 40000

static uint8_t memory[ROOM];

static struct joined *open_way(enum wf_shm_way way)
{
	struct joined *j = joined_open(way);
	const struct iovec iov = { memory, sizeof(memory) };

	assert_int_equal(
		wf_op_regs_add(&j->regs, KEY, RW, WF_REG_OFFSETS, &iov, 1), 0);
	memset(memory, 0, sizeof(memory));
	return j;
}

static struct wf_tx tx_of(enum wf_tx_kind kind, struct wf_remote *remote,
			  const struct joined_buf *b, uint64_t at, uint64_t key)
{
	struct wf_tx tx = {
		.kind = kind,
		.context = remote,
		.comp_flags = FI_RMA | FI_WRITE,
		.len = b->len,
		.wants_comp = true,
		.remote = remote,
		.iov_count = b->count,
	};

	remote->seg_count = 1;
	remote->segs[0] = (struct wf_remote_seg){ at, b->len, key };
	memcpy(tx.iov, b->iov, sizeof(tx.iov));
	return tx;
}

/* Writes, then reads back elsewhere. */
static void there_and_back(struct joined *j, size_t len, uint32_t parts,
			   bool ack)
{
	struct wf_remote write = { 0 };
	struct wf_remote read = { 0 };
	struct joined_buf from, to;
	struct wf_tx tx;
	struct wf_comp comp;

	joined_alloc(&from, len, parts);
	joined_alloc(&to, len, parts);
	joined_fill(&from, len);
	tx = tx_of(WF_TX_WRITE, &write, &from, 5, KEY);
	if (ack)
		tx.delivery = true;
	assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
	comp = joined_wait(j, &j->txq);
	assert_int_equal(joined_err(&comp), 0);
	assert_ptr_equal(comp.context, &write);
	tx = tx_of(WF_TX_READ, &read, &to, 5, KEY);
	assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
	comp = joined_wait(j, &j->txq);
	assert_int_equal(joined_err(&comp), 0);
	joined_check(&to, len, len);
	assert_int_equal(memory[4], 0);
	assert_int_equal(memory[5 + len], 0);
	assert_int_equal(wf_op_compq_count(&j->rxcq), 0);
	assert_int_equal(j->from.tx_pool.in_use, 0);
	assert_int_equal(j->from.remote_pool.in_use, 0);
	memset(memory, 0, sizeof(memory));
	free(from.memory);
	free(to.memory);
}

static void all_sizes(enum wf_shm_way way)
{
	static const size_t sizes[] = { 0,    1,    8,	  64,	65,   2048,
					2049, 4096, 4097, 8192, 30000 };
	struct joined *j = open_way(way);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (uint32_t parts = 1; parts <= WF_OP_IOV_MAX; parts++)
			there_and_back(j, sizes[i], parts, parts % 2);
	}
	joined_close(j);
}

static void test_by_oneself(void **state)
{
	(void)state;
	all_sizes(WF_SHM_WAY_SELF);
}

static void test_by_cma(void **state)
{
	(void)state;
	all_sizes(WF_SHM_WAY_CMA);
}

static void test_through_the_ring(void **state)
{
	(void)state;
	all_sizes(WF_SHM_WAY_NONE);
}

static int status_of(struct joined *j, enum wf_tx_kind kind, size_t len,
		     uint64_t at, uint64_t key)
{
	struct wf_remote remote = { 0 };
	struct joined_buf b;
	struct wf_tx tx;
	struct wf_comp comp;

	joined_alloc(&b, len, 1);
	tx = tx_of(kind, &remote, &b, at, key);
	assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
	comp = joined_wait(j, &j->txq);
	free(b.memory);
	return joined_err(&comp);
}

static void check_keys(enum wf_shm_way way)
{
	struct joined *j = open_way(way);
	const struct iovec iov = { memory, 100 };

	wf_op_regs_add(&j->regs, 1, FI_REMOTE_READ, WF_REG_OFFSETS, &iov, 1);
	for (int kind = WF_TX_WRITE; kind <= WF_TX_READ; kind++) {
		assert_int_equal(status_of(j, kind, 8, 0, KEY + 1),
				 FI_EKEYREJECTED);
		assert_int_equal(status_of(j, kind, 8, ROOM - 7, KEY),
				 FI_EKEYREJECTED);
		assert_int_equal(status_of(j, kind, 8, UINT64_MAX - 2, KEY),
				 FI_EKEYREJECTED);
		assert_int_equal(status_of(j, kind, 8, ROOM - 8, KEY), 0);
	}
	assert_int_equal(status_of(j, WF_TX_WRITE, 8, 0, 1), FI_EKEYREJECTED);
	assert_int_equal(status_of(j, WF_TX_READ, 8, 0, 1), 0);
	assert_false(j->in->broken);
	for (int i = 0; i < 100; i++)
		assert_int_equal(memory[i], 0);
	joined_close(j);
}

static void test_keys(void **state)
{
	(void)state;
	check_keys(WF_SHM_WAY_SELF);
	check_keys(WF_SHM_WAY_NONE);
}

static int mmap_error; /* -errno */

int __real_wf_os_mmap(void **base, size_t bytes, int prot, int flags, int fd);
int __wrap_wf_os_mmap(void **base, size_t bytes, int prot, int flags, int fd);

/* The linker has weft's calls come here (src/meson.build). */
int __wrap_wf_os_mmap(void **base, size_t bytes, int prot, int flags, int fd)
{
	return mmap_error ? mmap_error :
			    __real_wf_os_mmap(base, bytes, prot, flags, fd);
}

/* A channel as it is after the handshake: the target's table is not mapped. */
static struct joined *open_unmapped(enum wf_shm_way way)
{
	struct joined *j = open_way(way);
	int fd = dup(j->regs.memfd);

	wf_op_reg_unmap(&j->out->regs.view);
	assert_int_equal(wf_shm_regs_take(&j->out->regs, &fd), 0);
	assert_null(j->out->regs.view.entries);
	return j;
}

/* The table of the target is not mapped before the first access to its memory. */
static void test_first_access(void **state)
{
	struct joined *j = open_unmapped(WF_SHM_WAY_SELF);

	(void)state;
	there_and_back(j, 100, 1, false);
	assert_non_null(j->out->regs.view.entries);
	joined_close(j);
}

/* Bug: an operation that could not map the table waited for ever, and so did each
 * message behind it. For a while it waits; then it fails, and the next goes on. */
static void test_no_memory_for_the_table(void **state)
{
	static const int later[] = { -ENOMEM, -EAGAIN, -ENFILE };
	const struct joined_case message = { .len = 100,
					     .tx_parts = 1,
					     .rx_parts = 1 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct joined *j = open_unmapped(WF_SHM_WAY_SELF);
		uint64_t began = wf_base_clock_ns();
		struct wf_remote remote = { 0 };
		struct joined_buf b;
		struct wf_comp comp;
		struct wf_tx tx;

		j->from.attr.connect_timeout_ms = 20;
		mmap_error = later[i];
		joined_alloc(&b, 100, 1);
		tx = tx_of(WF_TX_WRITE, &remote, &b, 0, KEY);
		assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
		while (!joined_pop(&j->txq, &comp)) {
			joined_drive(j);
			assert_true(wf_base_clock_ns() - began <
				    10 * WF_NS_PER_S);
		}
		assert_int_equal(joined_err(&comp), FI_ENOMEM);
		assert_true(wf_base_clock_ns() - began >= 20 * WF_NS_PER_MS);
		joined_exchange(j, &message, 1);
		/* From then on nothing waits, until there is memory. */
		assert_int_equal(status_of(j, WF_TX_READ, 100, 0, KEY),
				 FI_ENOMEM);
		mmap_error = 0;
		assert_int_equal(status_of(j, WF_TX_READ, 100, 0, KEY), 0);
		free(b.memory);
		joined_close(j);
	}
}

/* There is memory again in time. */
static void test_memory_comes_back(void **state)
{
	struct joined *j = open_unmapped(WF_SHM_WAY_SELF);
	struct wf_remote remote = { 0 };
	struct joined_buf b;
	struct wf_comp comp;
	struct wf_tx tx;

	(void)state;
	mmap_error = -ENOMEM;
	joined_alloc(&b, 100, 1);
	joined_fill(&b, 1);
	tx = tx_of(WF_TX_WRITE, &remote, &b, 0, KEY);
	assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
	for (int i = 0; i < 10; i++)
		joined_drive(j);
	assert_int_equal(wf_op_compq_count(&j->txq), 0);
	mmap_error = 0;
	comp = joined_wait(j, &j->txq);
	assert_int_equal(joined_err(&comp), 0);
	assert_memory_equal(memory, b.memory, 100);
	free(b.memory);
	joined_close(j);
}

/* The table can never be mapped: the target's memory is not touched, and the
 * channel ends. */
static void test_table_cannot_be_mapped(void **state)
{
	struct joined *j = open_unmapped(WF_SHM_WAY_SELF);

	(void)state;
	mmap_error = -EACCES;
	assert_int_equal(status_of(j, WF_TX_WRITE, 100, 0, KEY), EPROTO);
	mmap_error = 0;
	for (int i = 0; i < 100; i++)
		assert_int_equal(memory[i], 0);
	assert_int_equal(j->from.open_outs, 0);
	joined_close(j);
}

/* A target that passed no table: each key is refused, and messages go on. */
static void test_no_table(void **state)
{
	struct joined *j = open_way(WF_SHM_WAY_NONE);

	(void)state;
	wf_op_reg_unmap(&j->out->regs.view);
	j->out->remote_flags |= WF_SHM_WELCOME_NO_TABLE;
	for (int kind = WF_TX_WRITE; kind <= WF_TX_READ; kind++)
		assert_int_equal(status_of(j, kind, 8, 0, KEY),
				 FI_EKEYREJECTED);
	assert_int_equal(j->out->state, WF_SHM_OUT_OPEN);
	joined_close(j);
}

/* An initiator that does not look for itself is refused by the target, and the
 * memory stays as it was. */
static void test_target_checks(void **state)
{
	struct joined *j = open_way(WF_SHM_WAY_NONE);
	struct wf_regs others; /* where the key is good */
	const struct iovec iov = { memory, sizeof(memory) };

	(void)state;
	assert_int_equal(wf_op_regs_open(&others, false), 0);
	wf_op_regs_add(&others, 99, RW, WF_REG_OFFSETS, &iov, 1);
	wf_op_reg_unmap(&j->out->regs.view);
	assert_int_equal(wf_op_reg_map(&j->out->regs.view, others.memfd), 0);
	assert_int_equal(status_of(j, WF_TX_READ, 9000, 0, 99),
			 FI_EKEYREJECTED);
	{
		struct wf_remote write = { 0 };
		struct joined_buf b;
		struct wf_tx tx;
		struct wf_comp comp;

		joined_alloc(&b, 9000, 1);
		joined_fill(&b, 1);
		tx = tx_of(WF_TX_WRITE, &write, &b, 0, 99);
		tx.delivery = true;
		tx.has_data = true;
		assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
		comp = joined_wait(j, &j->txq);
		assert_int_equal(joined_err(&comp), FI_EKEYREJECTED);
		free(b.memory);
	}
	assert_int_equal(wf_op_compq_count(&j->rxcq), 0);
	for (int i = 0; i < 9000; i++)
		assert_int_equal(memory[i], 0);
	assert_false(j->in->broken);
	wf_op_regs_close(&others);
	joined_close(j);
}

/* Review: an endpoint without remote access served a peer that paid no attention
 * to that: keys of other endpoints of its domain were good. */
static void test_not_a_target(void **state)
{
	struct joined *j = open_way(WF_SHM_WAY_NONE);

	(void)state;
	j->to.host->is_target = false;
	memset(memory, 0x11, sizeof(memory));
	for (int kind = WF_TX_WRITE; kind <= WF_TX_READ; kind++) {
		for (size_t len = 0; len <= 9000; len += 4500) {
			struct wf_remote remote = { 0 };
			struct joined_buf b;
			struct wf_comp comp;
			struct wf_tx tx;

			joined_alloc(&b, len, 1);
			tx = tx_of(kind, &remote, &b, 0, KEY);
			tx.delivery = true;
			assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
			comp = joined_wait(j, &j->txq);
			assert_int_equal(joined_err(&comp),
					 len ? FI_EKEYREJECTED : 0);
			free(b.memory);
		}
	}
	for (size_t i = 0; i < sizeof(memory); i++)
		assert_int_equal(memory[i], 0x11);
	assert_false(j->in->broken);
	memset(memory, 0, sizeof(memory));
	joined_close(j);
}

static void check_events(enum wf_shm_way way)
{
	struct wf_cntr writes = { .waker = WF_WAKER_NONE };
	struct wf_cntr reads = { .waker = WF_WAKER_NONE };
	const struct wf_reg_watch watch = { &reads, &writes };
	struct joined *j = open_way(way);
	struct wf_remote write = { 0 };
	struct joined_buf b;
	struct wf_tx tx;
	struct wf_comp comp;

	wf_op_regs_watch(&j->regs, KEY, &watch);
	assert_int_equal(status_of(j, WF_TX_WRITE, 9000, 0, KEY), 0);
	assert_int_equal(status_of(j, WF_TX_READ, 9000, 0, KEY), 0);
	assert_int_equal(status_of(j, WF_TX_READ, 9000, 0, 0), FI_EKEYREJECTED);
	joined_alloc(&b, 9000, 1);
	tx = tx_of(WF_TX_WRITE, &write, &b, 0, KEY);
	tx.has_data = true;
	tx.data = 0xdada;
	assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
	comp = joined_wait(j, &j->rxcq);
	assert_int_equal(joined_err(&comp), 0);
	assert_int_equal(comp.flags,
			 FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	assert_int_equal(comp.data, 0xdada);
	assert_int_equal(comp.len, 9000);
	for (int i = 0; i < 8; i++)
		joined_drive(j);
	assert_int_equal(atomic_load(&writes.value), 2);
	assert_int_equal(atomic_load(&reads.value), 1);
	free(b.memory);
	joined_close(j);
}

static void test_events(void **state)
{
	(void)state;
	check_events(WF_SHM_WAY_SELF);
	check_events(WF_SHM_WAY_NONE);
}

static void test_atomics(void **state)
{
	struct joined *j = open_way(WF_SHM_WAY_SELF);
	uint64_t *words = (uint64_t *)(void *)memory;
	uint64_t add[300], old[300];

	(void)state;
	for (size_t count = 1; count <= 300; count += 13) {
		struct wf_remote remote = {
			.seg_count = 1,
			.segs[0] = { 0, count * 8, KEY },
			.amo_kind = WF_OP_AMO_FETCH,
			.amo_op = FI_SUM,
			.amo_type = FI_UINT64,
			.result_count = 1,
			.result[0] = { old, count * 8 },
		};
		struct wf_tx tx = {
			.kind = WF_TX_ATOMIC,
			.comp_flags = FI_ATOMIC | FI_READ,
			.len = count * 8,
			.wants_comp = true,
			.remote = &remote,
			.iov_count = 1,
			.iov[0] = { add, count * 8 },
		};
		struct wf_comp comp;

		for (size_t i = 0; i < count; i++) {
			words[i] = i;
			add[i] = 1000 + i;
			old[i] = ~0ull;
		}
		assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
		comp = joined_wait(j, &j->txq);
		assert_int_equal(joined_err(&comp), 0);
		for (size_t i = 0; i < count; i++) {
			assert_int_equal(old[i], i);
			assert_int_equal(words[i], 1000 + 2 * i);
		}
	}
	joined_close(j);
}

/* Sends until it is taken, with both sides making progress. The caller's buffers
 * are its own again at once. */
static void inject_until_taken(struct joined *j, struct wf_tx *tx)
{
	int tries = 0;

	tx->inject = true;
	while (wf_shm_out_send(j->out, tx)) {
		joined_drive(j);
		if (++tries == 1000)
			fail_msg("refused for ever");
	}
}

/* Bug: an injected operation with several segments was refused for ever where
 * fewer slots than segments were left before the end of the window. */
static void test_injected_segments(void **state)
{
	enum { ROUNDS = 300 };
	static const enum wf_shm_way ways[] = { WF_SHM_WAY_SELF,
						WF_SHM_WAY_NONE };
	uint64_t *words = (uint64_t *)(void *)memory;

	(void)state;
	for (int way = 0; way < 2; way++) {
		struct joined *j = open_way(ways[way]);
		uint64_t rounds = 0;

		for (uint32_t segs = 2; segs <= WF_OP_IOV_MAX; segs++) {
			for (uint64_t i = 0; i < ROUNDS; i++) {
				struct wf_remote remote = {
					.seg_count = segs,
					.amo_kind = WF_OP_AMO_WRITE,
					.amo_op = FI_SUM,
					.amo_type = FI_UINT64,
				};
				uint64_t add[WF_OP_IOV_MAX][20];
				struct wf_tx tx = {
					.kind = WF_TX_ATOMIC,
					.len = segs * sizeof(add[0]),
					.remote = &remote,
					.iov_count = 1,
					.iov[0] = { add, tx.len },
				};

				for (uint32_t k = 0; k < segs; k++) {
					for (uint64_t n = 0; n < 20; n++)
						add[k][n] = n;
					remote.segs[k] = (struct wf_remote_seg){
						k * 1000, 160, KEY
					};
				}
				inject_until_taken(j, &tx);
				memset(add, 0xee, sizeof(add));
			}
			rounds += ROUNDS;
			for (int i = 0; i < 1000; i++)
				joined_drive(j);
			for (uint64_t n = 0; n < 20; n++)
				assert_int_equal(words[(segs - 1) * 125 + n],
						 ROUNDS * n);
			memset(memory, 0, sizeof(memory));
		}
		assert_int_equal(rounds, 3 * ROUNDS);
		assert_int_equal(j->from.tx_pool.in_use, 0);
		assert_int_equal(wf_op_compq_count(&j->txq), 0);
		joined_close(j);
	}
}

/* A compare-and-swap whose operands are the caller's again, in several pieces
 * with more bytes coming back than there are returns for at once. Bug: given up
 * and refused while the first piece waited for its answer. */
static void test_injected_fetch(void **state)
{
	enum { SEGS = 4, LEN = 32 };
	struct joined *j = open_way(WF_SHM_WAY_SELF);
	uint8_t old[8][SEGS * LEN];
	int done = 0;

	(void)state;
	memset(memory, 1, sizeof(memory));
	for (int i = 0; i < 8; i++) {
		uint8_t operands[SEGS * LEN], compare[SEGS * LEN];
		struct wf_remote remote = {
			.seg_count = SEGS,
			.amo_kind = WF_OP_AMO_COMPARE,
			.amo_op = FI_CSWAP,
			.amo_type = FI_UINT8,
			.compare_count = 1,
			.compare[0] = { compare, sizeof(compare) },
			.result_count = 1,
			.result[0] = { old[i], sizeof(old[i]) },
		};
		struct wf_tx tx = {
			.kind = WF_TX_ATOMIC,
			.comp_flags = FI_ATOMIC | FI_READ,
			.len = sizeof(operands),
			.wants_comp = true,
			.remote = &remote,
			.iov_count = 1,
			.iov[0] = { operands, sizeof(operands) },
		};

		for (uint64_t k = 0; k < SEGS; k++)
			remote.segs[k] =
				(struct wf_remote_seg){ k * 100, LEN, KEY };
		memset(operands, i + 2, sizeof(operands));
		memset(compare, i + 1, sizeof(compare));
		inject_until_taken(j, &tx);
		memset(operands, 0xee, sizeof(operands));
		memset(compare, 0xee, sizeof(compare));
	}
	while (done < 8) {
		struct wf_comp comp = joined_wait(j, &j->txq);

		assert_int_equal(joined_err(&comp), 0);
		for (int k = 0; k < SEGS * LEN; k++)
			assert_int_equal(old[done][k], done + 1);
		done++;
	}
	for (int k = 0; k < LEN; k++)
		assert_int_equal(memory[300 + k], 9);
	assert_int_equal(j->from.tx_pool.in_use, 0);
	joined_close(j);
}

/* An injected operation that waits as a copy still tells that its key was not
 * good. */
static void test_injected_key(void **state)
{
	struct joined *j = open_way(WF_SHM_WAY_NONE);
	struct wf_remote remote = { 0 };
	struct joined_buf b;
	struct wf_tx tx;
	struct wf_comp comp;

	(void)state;
	joined_alloc(&b, 64, 1);
	tx = tx_of(WF_TX_WRITE, &remote, &b, 0, KEY + 1);
	tx.wants_comp = false;
	inject_until_taken(j, &tx);
	comp = joined_wait(j, &j->txq);
	assert_int_equal(joined_err(&comp), FI_EKEYREJECTED);
	free(b.memory);
	joined_close(j);
}

/* Has the kernel find no process under the target's pid. Returns the other end
 * of a socket to the target. */
static int lose_target(struct joined *j)
{
	pid_t gone = fork();
	int ends[2];

	assert_true(gone >= 0);
	if (!gone)
		_exit(0);
	assert_int_equal(waitpid(gone, NULL, 0), gone);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	j->out->sock.fd = ends[0];
	j->out->mover.pid = gone;
	return ends[1];
}

/* The first thread of the target has ended, others go on: the kernel then finds
 * no memory under its pid, as if the process were gone, but its socket is open.
 * Bug: the operation was tried again for ever. */
static void test_target_without_first_thread(void **state)
{
	struct joined *j = open_way(WF_SHM_WAY_CMA);
	struct wf_remote remote = { 0 };
	int end = lose_target(j);
	struct joined_buf b;
	struct wf_tx tx;
	struct wf_comp comp;

	(void)state;
	there_and_back(j, 3000, 1, true);
	assert_int_equal(j->out->mover.way, WF_SHM_WAY_NONE);
	/* Injected and acknowledged: it goes on as a copy. */
	j->out->mover.way = WF_SHM_WAY_CMA;
	joined_alloc(&b, 64, 1);
	joined_fill(&b, 1);
	tx = tx_of(WF_TX_WRITE, &remote, &b, 0, KEY);
	tx.delivery = true;
	inject_until_taken(j, &tx);
	comp = joined_wait(j, &j->txq);
	assert_int_equal(joined_err(&comp), 0);
	assert_memory_equal(memory, b.memory, 64);
	assert_int_equal(j->from.tx_pool.in_use, 0);
	free(b.memory);
	close(end);
	joined_close(j);
}

/* Where its socket has ended, too, nothing goes into the ring: the operation
 * waits for the end of the channel and fails with it. */
static void test_target_is_gone(void **state)
{
	struct joined *j = open_way(WF_SHM_WAY_CMA);
	struct wf_remote remote = { 0 };
	struct joined_buf b;
	struct wf_tx tx;
	struct wf_comp comp;

	(void)state;
	close(lose_target(j));
	joined_alloc(&b, 64, 1);
	tx = tx_of(WF_TX_WRITE, &remote, &b, 0, KEY);
	assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
	assert_int_equal(j->out->mover.way, WF_SHM_WAY_CMA);
	assert_int_equal(wf_op_compq_count(&j->txq), 0);
	wf_shm_out_fail_all(j->out, FI_ECONNRESET);
	assert_true(joined_pop(&j->txq, &comp));
	assert_int_equal(joined_err(&comp), FI_ECONNRESET);
	free(b.memory);
	joined_close(j);
}

/* More than fit the returns, and all in flight at once. */
static void test_many_reads(void **state)
{
	enum { MANY = 40 };
	struct joined *j = open_way(WF_SHM_WAY_NONE);
	static uint8_t got[MANY][700];
	struct wf_remote remotes[MANY];
	int done = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = joined_byte(7, i);
	for (int i = 0; i < MANY; i++) {
		struct joined_buf b = {
			.len = sizeof(got[i]),
			.count = 1,
			.iov[0] = { got[i], sizeof(got[i]) },
		};
		struct wf_tx tx;

		remotes[i] = (struct wf_remote){ 0 };
		tx = tx_of(WF_TX_READ, &remotes[i], &b, (uint64_t)i * 700, KEY);
		assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
	}
	while (done < MANY) {
		struct wf_comp comp = joined_wait(j, &j->txq);

		assert_int_equal(joined_err(&comp), 0);
		done++;
	}
	for (int i = 0; i < MANY; i++)
		assert_memory_equal(got[i], memory + i * 700, 700);
	joined_close(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_oneself),
		cmocka_unit_test(test_by_cma),
		cmocka_unit_test(test_through_the_ring),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_first_access),
		cmocka_unit_test(test_no_memory_for_the_table),
		cmocka_unit_test(test_memory_comes_back),
		cmocka_unit_test(test_table_cannot_be_mapped),
		cmocka_unit_test(test_target_checks),
		cmocka_unit_test(test_no_table),
		cmocka_unit_test(test_not_a_target),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_injected_segments),
		cmocka_unit_test(test_injected_fetch),
		cmocka_unit_test(test_injected_key),
		cmocka_unit_test(test_target_without_first_thread),
		cmocka_unit_test(test_target_is_gone),
		cmocka_unit_test(test_many_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
