/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of completion rings: phases over many laps, credit, and a reader
 * that lies.
 */
#include "queue/cq.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define ENTRIES 8
#define STRIDE 32

struct fixture {
	_Alignas(64) uint8_t ring[ENTRIES * STRIDE];
	_Atomic uint32_t credit;
	struct wf_queue_cq cq;
	struct wf_queue_cqw cqw;
};

static struct fixture *make(bool credit, uint32_t word, uint32_t bit)
{
	struct fixture *f = aligned_alloc(64, (sizeof(*f) + 63) & ~63ul);
	struct wf_queue_cq_attr attr;

	assert_non_null(f);
	memset(f, 0, sizeof(*f));
	attr = (struct wf_queue_cq_attr){
		.ring = f->ring,
		.credit = credit ? &f->credit : NULL,
		.entries = ENTRIES,
		.stride = STRIDE,
		.phase_word = word,
		.phase_bit = bit,
	};
	assert_int_equal(wf_queue_cq_init(&f->cq, &attr), 0);
	assert_int_equal(wf_queue_cqw_init(&f->cqw, &attr), 0);
	return f;
}

static int push(struct fixture *f, unsigned value)
{
	uint8_t entry[STRIDE];

	memset(entry, (int)(value & 0xff), sizeof(entry));
	return wf_queue_cqw_push(&f->cqw, entry);
}

static void expect(struct fixture *f, unsigned value, unsigned phase)
{
	uint8_t got[STRIDE], want[STRIDE];
	uint32_t word;

	assert_true(wf_queue_cq_ready(&f->cq));
	assert_true(wf_queue_cq_take(&f->cq, got));
	memset(want, (int)(value & 0xff), sizeof(want));
	memcpy(&word, want + f->cq.phase_word, 4);
	word = (word & ~f->cq.phase_bit) | (phase ? f->cq.phase_bit : 0);
	memcpy(want + f->cq.phase_word, &word, 4);
	assert_memory_equal(got, want, STRIDE);
}

static void test_refuses_bad_rings(void **state)
{
	static _Alignas(64) uint8_t ring[1024];
	const struct wf_queue_cq_attr good = { .ring = ring,
					       .entries = 4,
					       .stride = 32,
					       .phase_word = 0,
					       .phase_bit = 1 << 24 };
	struct wf_queue_cq_attr bad[] = { good, good, good, good, good,
					  good, good, good, good };
	struct wf_queue_cqw cqw;
	struct wf_queue_cq cq;

	(void)state;
	bad[0].ring = NULL;
	bad[1].entries = 3;
	bad[2].entries = 1;
	bad[3].stride = 4;
	bad[4].stride = 48;
	bad[5].phase_word = 2;
	bad[6].phase_word = 32;
	bad[7].phase_bit = 3;
	bad[8].ring = ring + 32;
	assert_int_equal(wf_queue_cq_init(&cq, &good), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(wf_queue_cq_init(&cq, &bad[i]), -EINVAL);
		assert_int_equal(wf_queue_cqw_init(&cqw, &bad[i]), -EINVAL);
	}
}

static void laps(bool credit, uint32_t word, uint32_t bit)
{
	struct fixture *f = make(credit, word, bit);
	unsigned in = 0, out = 0;
	uint8_t got[STRIDE];

	srand(7);
	assert_false(wf_queue_cq_take(&f->cq, got));
	while (out < 70000) {
		unsigned n = (unsigned)rand() % (ENTRIES + 1);

		for (; n && in - out < ENTRIES; n--) {
			int ret = push(f, in);

			/* With credit some of it may not be told yet. */
			if (ret == -EAGAIN && credit)
				break;
			assert_int_equal(ret, 0);
			in++;
		}
		n = (unsigned)rand() % (ENTRIES + 1);
		for (; n && out < in; n--, out++)
			expect(f, out, !(out / ENTRIES & 1));
		if (out == in)
			assert_false(wf_queue_cq_take(&f->cq, got));
	}
	free(f);
}

static void test_laps(void **state)
{
	(void)state;
	laps(false, 0, 1u << 24);
	laps(true, 0, 1u << 24);
	laps(true, 28, 1u << 31);
	laps(true, 12, 1);
}

/* Nothing that was not read is overwritten, and a drained ring has room. */
static void test_full(void **state)
{
	struct fixture *f = make(true, 0, 1);
	unsigned i;

	(void)state;
	for (i = 0; i < ENTRIES; i++)
		assert_int_equal(push(f, i), 0);
	assert_int_equal(push(f, i), -EAGAIN);
	assert_int_equal(wf_queue_cqw_room(&f->cqw), 0);
	for (i = 0; i < ENTRIES; i++)
		expect(f, i, 1);
	assert_true(wf_queue_cqw_room(&f->cqw) > 0);
	wf_queue_cq_tell(&f->cq);
	assert_int_equal(wf_queue_cqw_room(&f->cqw), ENTRIES);
	assert_int_equal(push(f, 99), 0);
	expect(f, 99, 0);
	free(f);
}

static void test_lying_credit(void **state)
{
	struct fixture *f = make(true, 0, 1);

	(void)state;
	for (unsigned i = 0; i < ENTRIES; i++)
		assert_int_equal(push(f, i), 0);
	f->credit = ENTRIES + 1; /* more than was written */
	assert_int_equal(push(f, 0), -EPROTO);
	f->credit = 0x10002;
	assert_int_equal(push(f, 0), -EPROTO);
	f->credit = UINT16_MAX; /* backwards */
	assert_int_equal(push(f, 0), -EPROTO);
	f->credit = 4;
	assert_int_equal(wf_queue_cqw_room(&f->cqw), 4);
	f->credit = 3; /* backwards again */
	assert_int_equal(wf_queue_cqw_room(&f->cqw), -EPROTO);
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refuses_bad_rings),
		cmocka_unit_test(test_laps),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_lying_credit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
