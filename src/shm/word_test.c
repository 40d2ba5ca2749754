/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomics on 8 bytes by the short way: values, keys, completions, when the short
 * way is not taken, and slots and replies that break the rules.
 */
#include <rdma/fi_atomic.h>

#include "op/cntr.h"
#include "shm/joined_test.h"
#include "shm/proto.h"
#include "shm/put.h"
#include "shm/word.h"

#define KEY 0x77
#define READ_KEY 0x78
#define RW (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define OLD 1000

static uint64_t memory[16];

static struct wf_shm_word word_of(enum wf_op_amo_kind kind, unsigned int op,
				  uint64_t operand, uint64_t *result)
{
	return (struct wf_shm_word){
		.addr = 8,
		.key = KEY,
		.operand = operand,
		.result = result,
		.context = result,
		.comp_flags = FI_ATOMIC |
			      (kind == WF_OP_AMO_WRITE ? FI_WRITE : FI_READ),
		.kind = (uint8_t)kind,
		.op = (uint8_t)op,
		.type = FI_UINT64,
		.wants_comp = true,
	};
}

/* The same operation by the general way. Returns the code of its end. */
static int send_general(struct joined *j, const struct wf_shm_word *word)
{
	struct wf_remote remote = {
		.seg_count = 1,
		.segs[0] = { word->addr, 8, word->key },
		.amo_kind = word->kind,
		.amo_op = word->op,
		.amo_type = word->type,
		.result_count = word->kind != WF_OP_AMO_WRITE,
		.result[0] = { word->result, 8 },
	};
	uint64_t operand = word->operand;
	struct wf_tx tx = {
		.kind = WF_TX_ATOMIC,
		.len = 8,
		.wants_comp = true,
		.remote = &remote,
		.iov_count = word->op != FI_ATOMIC_READ,
		.iov[0] = { &operand, 8 },
	};
	struct wf_comp comp;

	assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
	comp = joined_wait(j, &j->txq);
	return joined_err(&comp);
}

/* Both ends know KEY: an operation on it was made before. */
static struct joined *open_known(void)
{
	struct joined *j = joined_open(WF_SHM_WAY_NONE);
	const struct iovec iov = { memory, sizeof(memory) };
	uint64_t unused;
	struct wf_shm_word word =
		word_of(WF_OP_AMO_FETCH, FI_ATOMIC_WRITE, OLD, &unused);

	assert_int_equal(
		wf_op_regs_add(&j->regs, KEY, RW, WF_REG_OFFSETS, &iov, 1), 0);
	assert_int_equal(wf_op_regs_add(&j->regs, READ_KEY, FI_REMOTE_READ,
					WF_REG_OFFSETS, &iov, 1),
			 0);
	memset(memory, 0, sizeof(memory));
	/* A key that was not used before takes the general way. */
	assert_false(wf_shm_word_put(j->out, &word));
	assert_int_equal(send_general(j, &word), 0);
	assert_int_equal(memory[1], OLD);
	return j;
}

static void close_known(struct joined *j)
{
	assert_int_equal(j->from.tx_pool.in_use, 0);
	assert_int_equal(j->from.remote_pool.in_use, 0);
	assert_int_equal(j->in->replies.owed, 0);
	assert_false(j->in->broken);
	joined_close(j);
}

static int end_of(struct joined *j, const struct wf_shm_word *word)
{
	struct wf_comp comp;

	assert_true(wf_shm_word_put(j->out, word));
	comp = joined_wait(j, &j->txq);
	assert_ptr_equal(comp.context, word->context);
	assert_int_equal(comp.flags, word->comp_flags);
	return joined_err(&comp);
}

static void test_values(void **state)
{
	struct joined *j = open_known();
	struct wf_cntr cntr = { .waker = WF_WAKER_NONE };
	uint64_t old = 0, want = OLD;
	struct wf_shm_word word;

	(void)state;
	word = word_of(WF_OP_AMO_FETCH, FI_SUM, 7, &old);
	word.cntr = &cntr;
	for (int i = 0; i < 100; i++, want += 7) {
		assert_int_equal(end_of(j, &word), 0);
		assert_int_equal(old, want);
		assert_int_equal(memory[1], want + 7);
	}
	assert_int_equal(atomic_load(&cntr.value), 100);
	word = word_of(WF_OP_AMO_COMPARE, FI_CSWAP, 5, &old);
	word.compare = want + 1;
	assert_int_equal(end_of(j, &word), 0);
	assert_int_equal(memory[1], want);
	word.compare = want;
	assert_int_equal(end_of(j, &word), 0);
	assert_int_equal(old, want);
	assert_int_equal(memory[1], 5);
	word = word_of(WF_OP_AMO_FETCH, FI_ATOMIC_READ, 99, &old);
	assert_int_equal(end_of(j, &word), 0);
	assert_int_equal(old, 5);
	/* No result: complete when it is in the ring, and in order. */
	word = word_of(WF_OP_AMO_WRITE, FI_SUM, 1, NULL);
	word.wants_comp = false;
	for (int i = 0; i < 5; i++)
		assert_true(wf_shm_word_put(j->out, &word));
	word = word_of(WF_OP_AMO_FETCH, FI_SUM, 1, &old);
	assert_int_equal(end_of(j, &word), 0);
	assert_int_equal(old, 10);
	/* Not aligned. */
	word.addr = 21;
	assert_int_equal(end_of(j, &word), 0);
	assert_int_equal(((uint8_t *)memory)[21], 1);
	assert_int_equal(memory[0], 0);
	close_known(j);
}

/* Many at once: each result belongs to its own operation. */
static void test_many(void **state)
{
	enum { MANY = 12 };
	struct joined *j = open_known();
	uint64_t old[MANY];
	struct wf_comp comp;

	(void)state;
	for (int turn = 0; turn < 50; turn++) {
		int sent = 0;

		memory[1] = OLD;
		while (sent < MANY) {
			struct wf_shm_word word =
				word_of(WF_OP_AMO_FETCH, FI_SUM, 1, &old[sent]);

			if (!wf_shm_word_put(j->out, &word))
				break;
			sent++;
		}
		assert_true(sent > 0);
		for (int i = 0; i < sent; i++) {
			comp = joined_wait(j, &j->txq);
			assert_int_equal(joined_err(&comp), 0);
			assert_ptr_equal(comp.context, &old[i]);
			assert_int_equal(old[i], OLD + i);
		}
	}
	close_known(j);
}

/* Counters of the target hear of it as by the general way. */
static void test_events(void **state)
{
	struct wf_cntr writes = { .waker = WF_WAKER_NONE };
	struct wf_cntr reads = { .waker = WF_WAKER_NONE };
	const struct wf_reg_watch watch = { &reads, &writes };
	struct joined *j = open_known();
	uint64_t old;
	struct wf_shm_word word = word_of(WF_OP_AMO_FETCH, FI_SUM, 7, &old);

	(void)state;
	wf_op_regs_watch(&j->regs, KEY, &watch);
	/* The entry has changed: both ends look it up again. */
	assert_false(wf_shm_word_put(j->out, &word));
	assert_int_equal(send_general(j, &word), 0);
	assert_int_equal(atomic_load(&writes.value), 1);
	assert_int_equal(end_of(j, &word), 0);
	assert_int_equal(atomic_load(&writes.value), 2);
	word = word_of(WF_OP_AMO_FETCH, FI_ATOMIC_READ, 0, &old);
	assert_int_equal(end_of(j, &word), 0);
	assert_int_equal(atomic_load(&writes.value), 2);
	assert_int_equal(atomic_load(&reads.value), 1);
	close_known(j);
}

static void test_keys(void **state)
{
	struct joined *j = open_known();
	uint64_t old = 3;
	struct wf_shm_word word = word_of(WF_OP_AMO_FETCH, FI_SUM, 7, &old);

	(void)state;
	/* Out of bounds, and another key. */
	word.addr = sizeof(memory) - 7;
	assert_false(wf_shm_word_put(j->out, &word));
	word.addr = UINT64_MAX - 3;
	assert_false(wf_shm_word_put(j->out, &word));
	word = word_of(WF_OP_AMO_FETCH, FI_SUM, 7, &old);
	word.key = READ_KEY;
	assert_false(wf_shm_word_put(j->out, &word));
	/* Read-only memory can be read, and is not written. */
	word.op = FI_ATOMIC_READ;
	assert_int_equal(send_general(j, &word), 0);
	assert_int_equal(old, OLD);
	assert_int_equal(end_of(j, &word), 0);
	word.op = FI_SUM;
	assert_false(wf_shm_word_put(j->out, &word));
	word.kind = WF_OP_AMO_WRITE;
	assert_false(wf_shm_word_put(j->out, &word));
	assert_int_equal(memory[1], OLD);
	close_known(j);
}

/* The target removes the memory while the operation is in the ring. */
static void test_target_refuses(void **state)
{
	struct joined *j = open_known();
	uint64_t old = 3;
	struct wf_shm_word word = word_of(WF_OP_AMO_FETCH, FI_SUM, 7, &old);
	struct wf_comp comp;

	(void)state;
	assert_true(wf_shm_word_put(j->out, &word));
	wf_op_regs_del(&j->regs, KEY);
	comp = joined_wait(j, &j->txq);
	assert_int_equal(joined_err(&comp), FI_EKEYREJECTED);
	assert_ptr_equal(comp.context, &old);
	assert_int_equal(old, 3);
	assert_int_equal(memory[1], OLD);
	/* From then on the initiator knows. */
	assert_false(wf_shm_word_put(j->out, &word));
	close_known(j);
}

/* The short way must leave these operations to the other: the request is the
 * caller's again. */
static void test_not_taken(void **state)
{
	struct joined *j = open_known();
	uint64_t old = 0;
	struct wf_shm_word word = word_of(WF_OP_AMO_FETCH, FI_SUM, 1, &old);
	struct joined_buf b;
	struct wf_tx tx;
	struct wf_comp comp;
	int count = 0;

	(void)state;
	/* A peer of an older build. */
	j->out->features &= ~WF_SHM_FEATURE_WORD;
	assert_false(wf_shm_word_put(j->out, &word));
	j->out->features |= WF_SHM_FEATURE_WORD;
	/* The transmit depth. */
	while (wf_base_pool_get(&j->from.tx_pool))
		count++;
	assert_int_equal(count, 64);
	assert_false(wf_shm_word_put(j->out, &word));
	assert_int_equal(j->out->waiting.count, 0);
	j->from.tx_pool.limit += 64;
	/* Other messages wait for room: none is overtaken. */
	joined_alloc(&b, 16000, 1);
	for (int i = 0; i < 2; i++) {
		tx = joined_tx(&b, 5);
		assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
	}
	assert_false(wf_base_list_empty(&j->out->pending));
	assert_false(wf_shm_word_put(j->out, &word));
	for (int i = 0; i < 2; i++) {
		comp = joined_wait(j, &j->txq);
		assert_int_equal(joined_err(&comp), 0);
	}
	/* A dead channel. */
	assert_true(wf_shm_word_put(j->out, &word));
	wf_shm_out_mark_dead(j->out, ECONNRESET, true);
	assert_false(wf_shm_word_put(j->out, &word));
	wf_shm_out_fail_all(j->out, FI_ECONNRESET);
	assert_true(joined_pop(&j->txq, &comp));
	assert_int_equal(joined_err(&comp), FI_ECONNRESET);
	assert_ptr_equal(comp.context, &old);
	assert_int_equal(comp.flags, FI_ATOMIC | FI_READ);
	free(b.memory);
	joined_close(j);
}

/* Writes a slot as word.c does, except for what @change does to it, and has the
 * target look at it. */
static bool is_refused(void (*change)(struct wf_shm_slot *slot, uint8_t *flags,
				      size_t *len))
{
	struct joined *j = open_known();
	struct wf_shm_slot *slot = wf_shm_put_slot(j->out);
	uint8_t flags = WF_SHM_SLOT_ACK;
	size_t len = 0;
	bool broken;

	slot->tag = 8;
	slot->data = 1;
	slot->spare = 0;
	slot->rma = (struct wf_shm_rma){
		.addr = 8,
		.key = KEY,
		.len = 8,
		.flags = WF_SHM_RMA_LAST | WF_SHM_RMA_WRITE | WF_SHM_RMA_WORD,
		.amo_kind = WF_OP_AMO_FETCH,
		.amo_op = FI_SUM,
		.amo_type = FI_UINT64,
	};
	change(slot, &flags, &len);
	wf_shm_put_publish(j->out, slot, len, WF_SHM_KIND_ATOMIC, flags);
	wf_shm_in_poll(j->in, 1);
	broken = j->in->broken;
	assert_int_equal(memory[1], broken ? OLD : OLD + 1);
	assert_int_equal(j->in->replies.owed, 0);
	joined_close(j);
	return broken;
}

static void nothing(struct wf_shm_slot *slot, uint8_t *flags, size_t *len)
{
	(void)slot;
	(void)flags;
	(void)len;
}

static void no_answer(struct wf_shm_slot *slot, uint8_t *flags, size_t *len)
{
	(void)slot;
	(void)len;
	*flags = 0;
}

static void a_record(struct wf_shm_slot *slot, uint8_t *flags, size_t *len)
{
	(void)slot;
	(void)flags;
	*len = 64;
}

static void longer(struct wf_shm_slot *slot, uint8_t *flags, size_t *len)
{
	(void)flags;
	(void)len;
	slot->rma.len = 16;
}

static void other_kind(struct wf_shm_slot *slot, uint8_t *flags, size_t *len)
{
	(void)flags;
	(void)len;
	slot->rma.amo_kind = 3;
}

static void other_op(struct wf_shm_slot *slot, uint8_t *flags, size_t *len)
{
	(void)flags;
	(void)len;
	slot->rma.amo_op = 200;
}

static void other_type(struct wf_shm_slot *slot, uint8_t *flags, size_t *len)
{
	(void)flags;
	(void)len;
	slot->rma.amo_type = FI_INT128;
}

static void test_hostile_slots(void **state)
{
	(void)state;
	assert_false(is_refused(nothing));
	assert_true(is_refused(no_answer));
	assert_true(is_refused(a_record));
	assert_true(is_refused(longer));
	assert_true(is_refused(other_kind));
	assert_true(is_refused(other_op));
	assert_true(is_refused(other_type));
}

/* A reply that only a message can have. */
static void test_hostile_reply(void **state)
{
	struct joined *j = open_known();
	uint64_t old = 3;
	struct wf_shm_word word = word_of(WF_OP_AMO_FETCH, FI_SUM, 1, &old);
	struct wf_shm_kept_reply reply = { .kind = WF_SHM_REPLY_STREAM };
	struct wf_comp comp;

	(void)state;
	assert_true(wf_shm_word_put(j->out, &word));
	reply.op = wf_shm_put_slot(j->out)[-1].rma.op;
	wf_shm_reply_send(&j->in->replies, &reply);
	wf_shm_out_poll(j->out);
	assert_int_equal(j->out->state, WF_SHM_OUT_DEAD);
	assert_int_equal(old, 3);
	wf_shm_out_fail_all(j->out, j->out->err);
	assert_true(joined_pop(&j->txq, &comp));
	assert_int_equal(joined_err(&comp), EPROTO);
	joined_close(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_target_refuses),
		cmocka_unit_test(test_not_taken),
		cmocka_unit_test(test_hostile_slots),
		cmocka_unit_test(test_hostile_reply),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
