/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of what is said of peers that do not answer. The bug they guard
 * against: 512 processes on two processors wrote 85,000 lines.
 */
#include "shm/silence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "shm/ep.h"
#include "shm/out.h"

#include <cmocka.h>

static int named, summaries;

static void take_line(enum wf_log_level level, const char *func, int line,
		      const char *text)
{
	(void)func;
	(void)line;
	assert_int_equal(level, WF_LOG_TELL);
	named += !!strstr(text, "no answer from");
	summaries += !!strstr(text, "from more peers");
}

static void test_many(void **state)
{
	static struct wf_shm_ep ep;
	static struct wf_shm_out out = { .ep = &ep };

	(void)state;
	wf_base_log_set_sink(take_line);
	out.state = WF_SHM_OUT_GREETED;
	ep.connecting = 10;
	for (int i = 0; i < 10; i++)
		wf_shm_silence_tell(&out, 2 * WF_NS_PER_S, WF_NS_PER_S);
	assert_int_equal(named, 4);
	assert_int_equal(summaries, 1);
	/* The others have answered: the next one is named again. */
	ep.connecting = 1;
	wf_shm_silence_tell(&out, 2 * WF_NS_PER_S, WF_NS_PER_S);
	assert_int_equal(named, 5);
	assert_int_equal(summaries, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
