/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * These tests check the limits that a driver's table names: a job at a limit is
 * the driver's, and one beyond it is another driver's without this one being
 * asked, in both directions, for callers that wait and asynchronous ones;
 * batches and jobs in flight; tables of other sizes and versions than the
 * library's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weft/wd_comp_drv.h>

#include "alg/queue.h"
#include "alg/wrap.h"

#define NAME "limits"
#define SIZE 20000u
#define PACKED (SIZE + 5) /* one stored block */
#define ROOM (SIZE + 200)
#define ALIGN 64
#define DEPTH 4
#define JOBS 12

/* -- the driver ------------------------------------------------------------ */

struct channel {
	struct wd_comp_job *jobs[DEPTH];
	unsigned int n, most;
};

/* Several threads have channels. */
static atomic_uint submits, opened, closed, largest, most;
static atomic_bool hold;	    /* poll() finds nothing */
static unsigned int at_most = JOBS; /* jobs that submit() takes in one call */

static void raise_to(atomic_uint *value, unsigned int to)
{
	unsigned int was = atomic_load(value);

	while (was < to && !atomic_compare_exchange_weak(value, &was, to))
		;
}

static int open_chan(void **chan, struct wd_chan *ch, unsigned int can)
{
	(void)can;
	assert_null(ch);
	atomic_fetch_add(&opened, 1);
	*chan = calloc(1, sizeof(struct channel));
	return *chan ? 0 : -ENOMEM;
}

static void close_chan(void *chan)
{
	atomic_fetch_add(&closed, 1);
	free(chan);
}

/* Stored blocks, and of these only one. */
static void work(struct wd_comp_job *job)
{
	size_t len;

	job->result = 0;
	if (!job->inflate) {
		assert_true(wf_alg_stored_size(job->src_len) <= job->dst_len);
		job->produced = wf_alg_stored_write(job->dst, job->src,
						    job->src_len, true);
		job->consumed = job->src_len;
		return;
	}
	len = job->src[1] | (size_t)job->src[2] << 8;
	assert_true(len <= job->dst_len);
	memcpy(job->dst, job->src + 5, len);
	job->produced = len;
	job->consumed = len + 5;
	job->ended = 1;
}

static int submit(void *chan, struct wd_comp_job *const *jobs, unsigned int n)
{
	struct channel *c = chan;

	atomic_fetch_add(&submits, 1);
	raise_to(&largest, n);
	n = n < at_most ? n : at_most;
	for (unsigned int i = 0; i < n; i++) {
		assert_true(c->n < DEPTH);
		c->jobs[c->n++] = jobs[i];
	}
	raise_to(&most, c->n);
	return (int)n;
}

static int poll_chan(void *chan, struct wd_comp_job **done, unsigned int n)
{
	struct channel *c = chan;
	unsigned int i = 0;

	while (i < n && c->n && !hold) {
		done[i] = c->jobs[--c->n];
		work(done[i++]);
	}
	return (int)i;
}

static struct wd_alg_comp driver_of(void)
{
	return (struct wd_alg_comp){
		.name = NAME,
		.priority = 900,
		.node = -1,
		.can = WD_COMP_CAN_DEFLATE | WD_COMP_CAN_INFLATE |
		       WD_COMP_SIZED,
		.levels = 0x3fe,
		.min_window = 9,
		.version = WD_COMP_DRV_VERSION,
		.size = sizeof(struct wd_alg_comp),
		.limits = { .in_flight = DEPTH, .timeout_ms = 60000 },
		.open_chan = open_chan,
		.close_chan = close_chan,
		.submit = submit,
		.poll = poll_chan,
	};
}

static void begin(const struct wd_alg_comp *driver)
{
	opened = closed = submits = largest = most = 0;
	hold = false;
	at_most = JOBS;
	assert_int_equal(wd_alg_comp_register(driver), 0);
}

static void end(const struct wd_alg_comp *driver)
{
	wd_alg_async_fini();
	assert_int_equal(wd_alg_comp_unregister(driver), 0);
	assert_int_equal(opened, closed);
}

/* -- one job --------------------------------------------------------------- */

static _Alignas(ALIGN) uint8_t plain[SIZE + ALIGN], packed[PACKED + ALIGN];
static _Alignas(ALIGN) uint8_t moved[ROOM], out[ROOM + ALIGN];

struct ask {
	bool inflate, async;
	size_t src_at, dst_at; /* bytes that they begin too late */
	size_t room, dict_len;
	int level, window;
	const char *name;
};

static struct ask ask_of(int way)
{
	bool inflate = way & 1;

	return (struct ask){ .inflate = inflate,
			     .async = way & 2,
			     .room = inflate ? SIZE : ROOM,
			     .level = 6 };
}

static void note(struct wd_comp_ctx *ctx, int result, void *arg)
{
	(void)ctx;
	*(int *)arg = result;
}

static int run(const struct ask *a, struct wd_comp_ctx *ctx, const uint8_t *src,
	       size_t len)
{
	uint8_t *dst = out + a->dst_at;
	size_t room = a->room;
	int result = 1;

	if (!a->async)
		return (a->inflate ? wd_alg_inflate : wd_alg_deflate)(
			ctx, src, &len, dst, &room);
	assert_int_equal(
		(a->inflate ? wd_alg_async_inflate : wd_alg_async_deflate)(
			ctx, note, &result, src, len, dst, room),
		0);
	while (result == 1) {
		wd_alg_wait(-1);
		wd_alg_poll(0);
	}
	return result;
}

/* Whether it is the driver's; if it is not, the driver is not asked, and a caller
 * that wants no other is told. */
static bool is_its(struct ask a)
{
	struct wd_comp_ctx ctx;
	size_t len = a.inflate ? PACKED : SIZE;
	const uint8_t *from = a.inflate ? packed : plain;
	bool its = false;

	memmove(moved + a.src_at, from, len);
	for (int named = 0; named < 2; named++) {
		int result;

		ctx = (struct wd_comp_ctx){
			.comp_level = a.level,
			.window_size = a.window,
			.driver = named ? NAME : NULL,
			.dict = a.dict_len ? plain : NULL,
			.dict_len = a.dict_len,
		};
		submits = 0;
		memset(out, 0, sizeof(out));
		result = run(&a, &ctx, moved + a.src_at, len);
		if (named) {
			assert_int_equal(result, its ? 0 : -ENOTSUP);
		} else {
			assert_int_equal(result, 0);
			its = !strcmp(ctx.used, NAME);
		}
		assert_int_equal(submits, its);
		if (a.inflate && !result)
			assert_memory_equal(out + a.dst_at, plain, SIZE);
		else if (its)
			assert_memory_equal(out + a.dst_at + 5, plain, SIZE);
	}
	return its;
}

#define WAYS 4 /* deflate and inflate, each waiting and asynchronous */

static void expect(const struct wd_alg_comp *driver, struct ask a, bool its)
{
	begin(driver);
	assert_int_equal(is_its(a), its);
	end(driver);
}

/* -- sizes, alignment, levels, windows, dictionaries ------------------------ */

static void test_largest(void **state)
{
	(void)state;
	for (int way = 0; way < WAYS; way++) {
		struct wd_alg_comp driver = driver_of();
		struct ask a = ask_of(way);

		driver.limits.src_max = a.inflate ? PACKED : SIZE;
		expect(&driver, a, true);
		driver.limits.src_max--;
		expect(&driver, a, false);
		driver.limits.src_max = 0;
		driver.limits.dst_max = a.room;
		expect(&driver, a, true);
		driver.limits.dst_max--;
		expect(&driver, a, false);
	}
}

static void test_align(void **state)
{
	(void)state;
	for (int way = 0; way < WAYS; way++) {
		for (uint32_t align = 0; align <= ALIGN; align += ALIGN) {
			struct wd_alg_comp driver = driver_of();
			struct ask a = ask_of(way);

			driver.limits.align = align;
			expect(&driver, a, true);
			a.src_at = 1;
			expect(&driver, a, !align);
			a.src_at = 0;
			a.dst_at = ALIGN / 2;
			expect(&driver, a, !align);
		}
	}
}

static void test_levels(void **state)
{
	(void)state;
	for (int way = 0; way < WAYS; way++) {
		struct wd_alg_comp driver = driver_of();
		struct ask a = ask_of(way);

		/* They are nothing to decompression. */
		driver.levels = 1u << 3;
		expect(&driver, a, a.inflate);
		a.level = 3;
		expect(&driver, a, true);
		driver.min_window = 12;
		a.window = 12;
		expect(&driver, a, true);
		a.window = 11;
		expect(&driver, a, a.inflate);
	}
}

static void test_dictionary(void **state)
{
	(void)state;
	for (int way = 0; way < WAYS; way++) {
		struct wd_alg_comp driver = driver_of();
		struct ask a = ask_of(way);

		a.dict_len = 1000;
		driver.can |= a.inflate ? WD_COMP_CAN_DEFLATE_DICT :
					  WD_COMP_CAN_INFLATE_DICT;
		expect(&driver, a, false);
		driver.can |=
			WD_COMP_CAN_DEFLATE_DICT | WD_COMP_CAN_INFLATE_DICT;
		expect(&driver, a, true);
	}
}

/* -- jobs in flight --------------------------------------------------------- */

static struct wd_comp_ctx ctxs[JOBS];
static uint8_t outs[JOBS][ROOM];
static int results[JOBS];

/* More jobs than there is room for on a channel: it never has more than it takes,
 * and all are done. A table that does not say how many means one. */
static void test_in_flight(void **state)
{
	(void)state;
	for (unsigned int depth = 0; depth <= DEPTH; depth += DEPTH) {
		struct wd_alg_comp driver = driver_of();
		unsigned int expected = depth ? depth : 1, done = 0;

		driver.limits.in_flight = depth;
		begin(&driver);
		hold = true;
		for (unsigned int i = 0; i < JOBS; i++) {
			ctxs[i] = (struct wd_comp_ctx){ .comp_level = 6,
							.driver = NAME };
			results[i] = 1;
			assert_int_equal(wd_alg_async_deflate(
						 &ctxs[i], note, &results[i],
						 plain, SIZE, outs[i], ROOM),
					 0);
			if (i + 1 == expected)
				assert_int_equal(most, expected);
		}
		hold = false;
		while (done < JOBS) {
			assert_int_equal(wd_alg_wait(-1), 0);
			done += (unsigned int)wd_alg_poll(0);
		}
		for (unsigned int i = 0; i < JOBS; i++) {
			assert_int_equal(results[i], 0);
			assert_memory_equal(outs[i] + 5, plain, SIZE);
		}
		assert_int_equal(most, expected);
		end(&driver);
	}
}

struct batch {
	struct wf_alg_owner owner;
	unsigned int over;
};

static void is_over(struct wf_alg_owner *owner)
{
	struct batch *b = (struct batch *)owner;

	b->over++;
}

/* Several jobs in one call: as many as there is room for are given to the driver
 * at once, and those that it does not take stay the caller's. */
static void test_batch(void **state)
{
	static struct wd_comp_job jobs[JOBS];
	struct wd_alg_comp driver = driver_of();
	struct wf_alg_want want = { .can = WD_COMP_CAN_DEFLATE,
				    .level = 6,
				    .name = NAME };
	struct wd_comp_job *list[JOBS];
	struct batch batch = { .owner.done = is_over };
	struct wf_alg_slot *slot;
	struct wf_alg_queue *q;
	bool fresh;

	(void)state;
	begin(&driver);
	for (unsigned int i = 0; i < JOBS; i++) {
		jobs[i] = (struct wd_comp_job){ .src = plain,
						.src_len = SIZE,
						.dst = outs[i],
						.dst_len = ROOM,
						.level = 6,
						.owner = &batch.owner };
		list[i] = &jobs[i];
	}
	slot = wf_alg_registry_get(&want);
	assert_non_null(slot);
	q = wf_alg_queue_get(slot, WD_COMP_CAN_DEFLATE, &fresh);
	assert_non_null(q);
	assert_true(fresh);
	assert_int_equal(wf_alg_queue_submit(q, list, JOBS), DEPTH);
	assert_int_equal(submits, 1);
	assert_int_equal(largest, DEPTH);
	/* It is full: the driver is not asked. */
	assert_int_equal(wf_alg_queue_submit(q, list + DEPTH, 1), 0);
	assert_int_equal(submits, 1);
	assert_int_equal(wf_alg_queue_poll(q), DEPTH);
	assert_int_equal(batch.over, DEPTH);
	at_most = 3;
	assert_int_equal(wf_alg_queue_submit(q, list + DEPTH, DEPTH), 3);
	assert_int_equal(wf_alg_queue_poll(q), 3);
	assert_int_equal(batch.over, DEPTH + 3);
	assert_int_equal(wf_alg_queue_poll(q), 0);
	for (unsigned int i = 0; i < DEPTH + 3; i++) {
		assert_int_equal(jobs[i].result, 0);
		assert_memory_equal(outs[i] + 5, plain, SIZE);
	}
	wf_alg_queue_put(q);
	wf_alg_registry_put(slot);
	end(&driver);
}

/* -- tables of other sizes --------------------------------------------------- */

/* @size bytes of the table, and behind it nothing that can be read. */
static struct wd_alg_comp *at_end(const struct wd_alg_comp *table, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(mprotect(memory + page, page, PROT_NONE), 0);
	memcpy(memory + page - size, table, size);
	return (void *)(memory + page - size);
}

static void drop_page(const struct wd_alg_comp *table, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	munmap((uint8_t *)(uintptr_t)table + size - page, 2 * page);
}

static int old_work(struct wd_comp_job *job)
{
	atomic_fetch_add(&submits, 1);
	work(job);
	return job->result;
}

/* A driver that was compiled when the table was shorter, without a size or with one,
 * does jobs as before, and what lies behind its table is not read. Whoever lists it
 * gets a whole table. */
static void test_old_tables(void **state)
{
	static const size_t sizes[] = {
		offsetof(struct wd_alg_comp, version), /* had no size yet */
		offsetof(struct wd_alg_comp, limits),
		offsetof(struct wd_alg_comp, open_chan),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct wd_alg_comp full = driver_of(), *old;

		full.can &= i ? ~0u : ~WD_COMP_SIZED;
		full.version = 1;
		full.size = (uint32_t)sizes[i];
		full.deflate = full.inflate = old_work;
		old = at_end(&full, sizes[i]);
		begin(old);
		for (int way = 0; way < WAYS; way++)
			assert_true(is_its(ask_of(way)));
		assert_string_equal(wd_alg_comp_list(0)->name, NAME);
		assert_null(wd_alg_comp_list(0)->submit);
		assert_int_equal(wd_alg_comp_list(0)->limits.in_flight,
				 i < 2 ? 0 : DEPTH);
		end(wd_alg_comp_list(0));
		drop_page(old, sizes[i]);
	}
}

/* Of version 1, with channels; and one that has more behind what the library
 * knows. */
static void test_other_tables(void **state)
{
	struct {
		struct wd_alg_comp table;
		uint64_t more[4];
	} longer = { .table = driver_of(), .more = { 1, 2, 3, 4 } };

	(void)state;
	longer.table.version = 1;
	begin(&longer.table);
	for (int way = 0; way < WAYS; way++)
		assert_true(is_its(ask_of(way)));
	end(&longer.table);
	longer.table.version = WD_COMP_DRV_VERSION;
	longer.table.size = sizeof(longer);
	begin(&longer.table);
	for (int way = 0; way < WAYS; way++)
		assert_true(is_its(ask_of(way)));
	end(&longer.table);
}

static void test_refused(void **state)
{
	struct wd_alg_comp driver = driver_of();

	(void)state;
	driver.version = WD_COMP_DRV_VERSION + 1;
	assert_int_equal(wd_alg_comp_register(&driver), -EPROTO);
	driver = driver_of();
	driver.size = 8;
	assert_int_equal(wd_alg_comp_register(&driver), -EINVAL);
	driver = driver_of();
	driver.poll = NULL;
	assert_int_equal(wd_alg_comp_register(&driver), -EINVAL);
	driver = driver_of();
	driver.submit = NULL;
	assert_int_equal(wd_alg_comp_register(&driver), -EINVAL);
	assert_int_equal(wd_alg_comp_register(NULL), -EINVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_largest),
		cmocka_unit_test(test_align),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_dictionary),
		cmocka_unit_test(test_in_flight),
		cmocka_unit_test(test_batch),
		cmocka_unit_test(test_old_tables),
		cmocka_unit_test(test_other_tables),
		cmocka_unit_test(test_refused),
	};

	for (size_t i = 0; i < SIZE; i++)
		plain[i] = (uint8_t)(i * i >> 5);
	wf_alg_stored_write(packed, plain, SIZE, true);
	/* By priority it would be chosen by cost. */
	setenv("WD_COMP_DRIVER", NAME, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
