/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the queue behind completion queues: nothing is lost and
 * nothing changes places, however slow the reader is.
 */
#include "op/compq.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* In the place of aligned_alloc() (src/meson.build). */
static bool no_memory;
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return no_memory ? NULL : __real_aligned_alloc(align, size);
}

static void push(struct wf_compq *q, uint64_t n)
{
	struct wf_comp comp = { .data = n, .tag = ~n, .len = n };

	wf_op_compq_push(q, &comp);
}

static struct wf_comp pop(struct wf_compq *q)
{
	struct wf_comp comp;

	assert_int_not_equal(wf_op_compq_count(q), 0);
	comp = q->ring[q->tail & q->mask];
	q->tail++;
	return comp;
}

static void expect(struct wf_compq *q, uint64_t n)
{
	struct wf_comp comp = pop(q);

	assert_int_equal(comp.data, n);
	assert_int_equal(comp.tag, ~n);
	assert_int_equal(comp.len, n);
	assert_int_equal(comp.failure, 0);
}

static void test_size_is_rounded_up(void **state)
{
	static const struct {
		size_t asked;
		uint32_t slots;
	} cases[] = { { 0, 16 },  { 1, 16 },	{ 16, 16 },
		      { 17, 32 }, { 100, 128 }, { 1024, 1024 } };
	struct wf_compq q;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(wf_op_compq_init(&q, cases[i].asked, false),
				 0);
		assert_int_equal(q.mask + 1, cases[i].slots);
		assert_true(q.high >= 16384);
		assert_true(q.high >= 4 * cases[i].asked);
		assert_int_equal((uintptr_t)q.ring % WF_LINE, 0);
		wf_op_compq_fini(&q);
	}
}

static void test_grows_in_order(void **state)
{
	struct wf_compq q;
	uint64_t in = 0, out = 0;

	(void)state;
	assert_int_equal(wf_op_compq_init(&q, 16, false), 0);
	/* Begin in the middle of the ring, so that what is copied wraps. */
	for (; in < 11; in++)
		push(&q, in);
	for (; out < 11; out++)
		expect(&q, out);
	for (; in < 5000; in++) {
		assert_true(wf_op_compq_room(&q));
		push(&q, in);
	}
	assert_true(q.mask + 1 >= 5000 - 11);
	for (; out < in; out++)
		expect(&q, out);
	assert_int_equal(wf_op_compq_count(&q), 0);
	wf_op_compq_fini(&q);
}

/* Completions of work already taken find a slot even if nobody asked for room
 * before. */
static void test_push_without_asking(void **state)
{
	struct wf_compq q;

	(void)state;
	assert_int_equal(wf_op_compq_init(&q, 16, false), 0);
	for (uint64_t i = 0; i < 1000; i++)
		push(&q, i);
	for (uint64_t i = 0; i < 1000; i++)
		expect(&q, i);
	wf_op_compq_fini(&q);
}

static void test_high_mark(void **state)
{
	struct wf_compq q;
	uint64_t in = 0, out = 0;

	(void)state;
	assert_int_equal(wf_op_compq_init(&q, 16, false), 0);
	while (wf_op_compq_room(&q) && in < 100000)
		push(&q, in++);
	/* It pushes back, and does so at the mark. */
	assert_in_range(in, q.high, q.high + 1);
	/* Work already taken still gets its slot. */
	for (int i = 0; i < 100; i++)
		push(&q, in++);
	assert_false(wf_op_compq_room(&q));
	/* Reading makes room again. */
	for (int i = 0; i < 102; i++)
		expect(&q, out++);
	assert_true(wf_op_compq_room(&q));
	for (; out < in; out++)
		expect(&q, out);
	wf_op_compq_fini(&q);
}

/* A queue that is read as fast as it is written never grows. */
static void test_steady_state_does_not_grow(void **state)
{
	struct wf_compq q;

	(void)state;
	assert_int_equal(wf_op_compq_init(&q, 16, false), 0);
	for (uint64_t i = 0; i < 100000; i++) {
		assert_true(wf_op_compq_room(&q));
		push(&q, i);
		if (i >= 7)
			expect(&q, i - 7);
	}
	assert_int_equal(q.mask + 1, 16);
	wf_op_compq_fini(&q);
}

static void test_counts_wrap(void **state)
{
	struct wf_compq q;
	uint64_t in = 0, out = 0;

	(void)state;
	assert_int_equal(wf_op_compq_init(&q, 16, false), 0);
	q.head = UINT32_MAX - 5;
	q.tail = UINT32_MAX - 5;
	for (; in < 100; in++) {
		assert_true(wf_op_compq_room(&q));
		push(&q, in);
	}
	assert_int_equal(wf_op_compq_count(&q), 100);
	for (; out < in; out++)
		expect(&q, out);
	wf_op_compq_fini(&q);
}

static void test_errors_keep_their_place(void **state)
{
	struct wf_comp comp = { .context = &comp, .data = 77, .len = 3 };
	struct wf_comp got;
	struct wf_compq q;

	(void)state;
	assert_int_equal(wf_op_compq_init(&q, 16, true), 0);
	push(&q, 1);
	wf_op_compq_fail(&q, &comp, 265, 4000);
	push(&q, 2);
	/* The error goes along when the ring is copied. */
	for (uint64_t i = 3; i < 40; i++)
		push(&q, i);
	expect(&q, 1);
	got = pop(&q);
	assert_ptr_equal(got.context, &comp);
	assert_int_equal(got.data, 77);
	assert_int_equal(got.len, 3);
	assert_int_equal(wf_op_comp_err(&got), 265);
	assert_int_equal(wf_op_comp_olen(&got), 4000);
	for (uint64_t i = 2; i < 40; i++)
		expect(&q, i);
	wf_op_compq_fini(&q);
}

/* Bug: reporting a failure needed memory, and a process without any ended by
 * abort() when a peer died. Everything that was promised a slot finds one. */
static void test_failures_need_no_memory(void **state)
{
	struct wf_comp comp = { 0 };
	struct wf_compq q;

	(void)state;
	assert_int_equal(wf_op_compq_init(&q, 16, false), 0);
	assert_int_equal(wf_op_compq_promise(&q, 1000), 0);
	for (uint64_t i = 0; i < 9; i++)
		push(&q, i);
	no_memory = true;
	/* New work is taken while there is more than one slot. */
	assert_true(wf_op_compq_room(&q));
	for (uint64_t i = 0; i < 1000; i++) {
		comp.data = i;
		wf_op_compq_fail(&q, &comp, 5, i);
	}
	no_memory = false;
	for (uint64_t i = 0; i < 9; i++)
		expect(&q, i);
	for (uint64_t i = 0; i < 1000; i++) {
		struct wf_comp got = pop(&q);

		assert_int_equal(got.data, i);
		assert_int_equal(wf_op_comp_err(&got), 5);
		assert_int_equal(wf_op_comp_olen(&got), i);
	}
	wf_op_compq_fini(&q);
	assert_null(q.ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_size_is_rounded_up),
		cmocka_unit_test(test_grows_in_order),
		cmocka_unit_test(test_push_without_asking),
		cmocka_unit_test(test_high_mark),
		cmocka_unit_test(test_steady_state_does_not_grow),
		cmocka_unit_test(test_counts_wrap),
		cmocka_unit_test(test_errors_keep_their_place),
		cmocka_unit_test(test_failures_need_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
