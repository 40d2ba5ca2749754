/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of what is said of peers that do not answer, and of too few
 * descriptors. The bugs they guard against: 512 processes on two processors wrote
 * 85,000 lines; an endpoint without a descriptor accepted nobody and said nothing.
 */
#include "shm/silence.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "shm/conn.h"
#include "shm/ep.h"
#include "shm/out.h"

#include <cmocka.h>

static int named, summaries, of_process, of_system, of_peer;

static void take_line(enum wf_log_level level, const char *func, int line,
		      const char *text)
{
	(void)func;
	(void)line;
	assert_int_equal(level, WF_LOG_TELL);
	named += !!strstr(text, "no answer from");
	summaries += !!strstr(text, "from more peers");
	of_process += !!strstr(text, "(RLIMIT_NOFILE), and each");
	of_system += !!strstr(text, "fs.file-max");
	of_peer += !!strstr(text, "its process has no descriptor");
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

#define STEP (WF_NS_PER_S / 2)

/* From @begin on, @count times, half a second apart. */
static void be_short(struct wf_shm_ep *ep, int err, uint64_t begin, int count)
{
	for (int i = 0; i < count; i++)
		wf_shm_silence_short(ep, err, begin + (uint64_t)i * STEP);
}

static void test_short(void **state)
{
	static struct wf_shm_ep ep, other;
	uint64_t now = 100 * WF_NS_PER_S;

	(void)state;
	wf_base_log_set_sink(take_line);
	of_process = of_system = 0;
	be_short(&ep, ECONNREFUSED, now, 100);
	be_short(&ep, EMFILE, now, 4);
	/* Peers that connect at the same time need more for a moment. */
	wf_shm_silence_enough(&ep);
	be_short(&ep, EMFILE, now + 4 * STEP, 4);
	/* Nobody needed one meanwhile. */
	be_short(&ep, EMFILE, now + 100 * STEP, 4);
	assert_int_equal(of_process, 0);
	be_short(&ep, EMFILE, now + 104 * STEP, 100);
	assert_int_equal(of_process, 1);
	/* Operations have failed: that must have a reason at once. */
	wf_shm_silence_failed(&other, ECONNREFUSED, STEP);
	assert_int_equal(of_system, 0);
	wf_shm_silence_failed(&other, ENFILE, STEP);
	wf_shm_silence_failed(&other, ENFILE, STEP);
	assert_int_equal(of_system, 1);
	assert_int_equal(of_process, 1);
}

/* Bug: a time that was taken a little sooner than the last one, as that of a look
 * in which a call took its own, counted as a pause, and the line came late or
 * never. */
static void test_short_out_of_order(void **state)
{
	static struct wf_shm_ep ep;
	uint64_t now = 100 * WF_NS_PER_S;

	(void)state;
	wf_base_log_set_sink(take_line);
	of_process = 0;
	for (int i = 0; i <= 4; i++) {
		wf_shm_silence_short(&ep, EMFILE, now + (uint64_t)i * STEP);
		wf_shm_silence_short(&ep, EMFILE, now + (uint64_t)i * STEP - 1);
	}
	assert_int_equal(of_process, 1);
}

/* The line says whose descriptors they are. */
static void test_whose(void **state)
{
	static struct wf_shm_ep ep;
	static struct wf_shm_out out = { .ep = &ep };

	(void)state;
	wf_base_log_set_sink(take_line);
	named = of_peer = 0;
	out.state = WF_SHM_OUT_CONNECTING;
	out.err = EMFILE;
	assert_true(wf_shm_silence_is_ours(&out));
	out.err_is_theirs = true;
	assert_false(wf_shm_silence_is_ours(&out));
	wf_shm_silence_tell(&out, 2 * WF_NS_PER_S, WF_NS_PER_S);
	assert_int_equal(named, 1);
	assert_int_equal(of_peer, 1);
}

/* Our own lack of descriptors at the time of the warning puts it off: the next try
 * that fails for another reason warns. There was no warning at all. */
static void test_short_when_due(void **state)
{
	static struct wf_shm_ep ep;
	static struct wf_shm_out out = { .ep = &ep };
	uint64_t now = 100 * WF_NS_PER_S;

	(void)state;
	wf_base_log_set_sink(take_line);
	named = of_peer = 0;
	wf_base_list_init(&ep.all_outs);
	wf_base_list_add_tail(&ep.all_outs, &out.link);
	ep.connecting = 1;
	out.state = WF_SHM_OUT_CONNECTING;
	out.since = now - 3 * WF_NS_PER_S;
	out.deadline = out.retry_at = now + 100 * WF_NS_PER_S;
	out.err = EMFILE;
	wf_shm_conn_tend(&ep, now);
	assert_int_equal(named, 0);
	/* Nothing is due before the next try: a sleeper would never sleep. */
	assert_true(wf_shm_conn_next(&ep) == out.retry_at);
	out.err = ECONNREFUSED;
	ep.tend_at = 0;
	wf_shm_conn_tend(&ep, now);
	assert_int_equal(named, 1);
	ep.tend_at = 0;
	wf_shm_conn_tend(&ep, now);
	assert_int_equal(named, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_short_out_of_order),
		cmocka_unit_test(test_whose),
		cmocka_unit_test(test_short_when_due),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
