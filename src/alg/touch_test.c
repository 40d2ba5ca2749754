/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of jobs that the program can reach, and memory that it cannot; and that
 * a job whose driver alone could not reach it is done by the next driver.
 */
#include "alg/touch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>
#include <weft/wd_comp.h>

#define PAGE 4096u
#define PAGES 4u

static uint8_t good[PAGES * PAGE], kept[PAGES * PAGE];

static void test_reach(void **state)
{
	uint8_t *map = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct wd_comp_job job = { .src = good,
				   .src_len = sizeof(good),
				   .dst = map + 100,
				   .dst_len = PAGES * PAGE - 100 };

	(void)state;
	memset(map, 7, PAGES * PAGE);
	memcpy(kept, map, sizeof(kept));
	assert_true(wf_alg_touch_job(&job));
	assert_memory_equal(map, kept, sizeof(kept));
	/* The last page: its first byte, or its last, is all that is used. */
	mprotect(map + 3 * PAGE, PAGE, PROT_READ);
	assert_false(wf_alg_touch_job(&job));
	job.dst_len = 2 * PAGE + PAGE - 100 + 1;
	assert_false(wf_alg_touch_job(&job));
	job.dst_len--;
	assert_true(wf_alg_touch_job(&job));
	job.src = map;
	assert_true(wf_alg_touch_job(&job));
	mprotect(map + 3 * PAGE, PAGE, PROT_NONE);
	assert_false(wf_alg_touch_job(&job));
	job.src = NULL;
	assert_false(wf_alg_touch_job(&job));
	job.src_len = 0;
	assert_true(wf_alg_touch_job(&job));
	munmap(map, PAGES * PAGE);
}

static int chans;

static int open_chan(void **chan, struct wd_chan *ch, unsigned int can)
{
	(void)ch;
	(void)can;
	*chan = &chans;
	return 0;
}

static void close_chan(void *chan)
{
	(void)chan;
}

static int submit(void *chan, struct wd_comp_job *const *jobs, unsigned int n)
{
	(void)chan;
	for (unsigned int i = 0; i < n; i++) {
		jobs[i]->result = -EFAULT;
		jobs[i]->done = 1;
	}
	chans += (int)n;
	return (int)n;
}

static int poll(void *chan, struct wd_comp_job **done, unsigned int n)
{
	(void)chan;
	(void)done;
	(void)n;
	return 0;
}

static const struct wd_alg_comp short_sighted = {
	.name = "short",
	.priority = 3000,
	.node = -1,
	.can = WD_COMP_CAN_DEFLATE | WD_COMP_SIZED,
	.levels = 0x3fe,
	.min_window = 9,
	.version = WD_COMP_DRV_VERSION,
	.size = sizeof(struct wd_alg_comp),
	.open_chan = open_chan,
	.close_chan = close_chan,
	.submit = submit,
	.poll = poll,
};

static void test_next(void **state)
{
	struct wd_comp_ctx ctx = { .comp_level = 1 };
	size_t in = sizeof(good), out = sizeof(kept);

	(void)state;
	assert_int_equal(wd_alg_comp_register(&short_sighted), 0);
	assert_int_equal(wd_alg_deflate(&ctx, good, &in, kept, &out), 0);
	assert_int_equal(chans, 1);
	assert_string_not_equal(ctx.used, "short");
	assert_int_equal(wd_alg_comp_unregister(&short_sighted), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reach),
		cmocka_unit_test(test_next),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
