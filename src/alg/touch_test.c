/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of jobs that the program can reach, and memory that it cannot.
 * queue_test.c tests the consequences for a job.
 */
#include "alg/touch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reach),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
