/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of reading a page of counters, of one's own process among others,
 * and of what is made of it. The pages are hostile as often as not.
 */
#include "tools/stat/page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/stats.h"
#include "tools/stat/quantity.h"

static const char *const names[] = { "peers_out", "sent_inline",
				     "sent_inline_bytes" };

/* As an owner makes it. */
static struct wf_stats open_stats(void)
{
	struct wf_stats stats;

	assert_int_equal(
		wf_base_stats_open(&stats, "endpoint", "127.0.0.1:7", names, 3),
		0);
	assert_true(stats.fd >= 0);
	wf_base_stats_set(&stats, 0, 2);
	wf_base_stats_set(&stats, 1, 1000);
	wf_base_stats_set(&stats, 2, UINT64_MAX);
	return stats;
}

static void test_as_written(void **state)
{
	struct wf_stats stats = open_stats();
	struct wf_tools_page page;
	const char *why = NULL;

	(void)state;
	assert_int_equal(wf_tools_page_read(&page, stats.page, &why), 0);
	assert_int_equal(page.pid, getpid());
	assert_string_equal(page.kind, "endpoint");
	assert_string_equal(page.name, "127.0.0.1:7");
	assert_int_equal(page.count, 3);
	assert_int_equal(wf_tools_page_get(&page, "sent_inline"), 1000);
	assert_true(wf_tools_page_get(&page, "sent_inline_bytes") ==
		    UINT64_MAX);
	assert_int_equal(wf_tools_page_get(&page, "of_tomorrow"), 0);
	wf_base_stats_close(&stats);
}

/* -- hostile pages --------------------------------------------------------- */

static void refused(const struct wf_stats_page *raw)
{
	struct wf_tools_page page;
	const char *why = NULL;

	assert_int_equal(wf_tools_page_read(&page, raw, &why), -EPROTO);
	assert_non_null(why);
	assert_int_equal(page.count, 0);
}

static void test_lies(void **state)
{
	struct wf_stats stats = open_stats();
	struct wf_stats_page *raw = calloc(1, WF_STATS_BYTES);

	(void)state;
	assert_non_null(raw);
	refused(raw);
#define LIE(change)                                                            \
	do {                                                                   \
		memcpy(raw, stats.page, WF_STATS_BYTES);                       \
		change;                                                        \
		refused(raw);                                                  \
	} while (0)
	LIE(raw->magic++);
	LIE(raw->layout++);
	LIE(raw->count = WF_STATS_MAX + 1);
	LIE(raw->count = UINT16_MAX);
	LIE(raw->count = 4); /* the fourth has no name */
	LIE(memset(raw->kind, 'k', sizeof(raw->kind)));
	LIE(memset(raw->name, 'n', sizeof(raw->name)));
	LIE(memset(raw->items[1].name, 'x', sizeof(raw->items[1].name)));
	LIE(strcpy(raw->items[1].name, "a b"));
	LIE(strcpy(raw->items[1].name, "\"}"));
	LIE(raw->items[2].name[0] = 0);
#undef LIE
	free(raw);
	wf_base_stats_close(&stats);
}

/* Whatever the bytes: an answer, and texts that end. */
static void test_noise(void **state)
{
	struct wf_stats_page *raw = malloc(WF_STATS_BYTES);
	struct wf_tools_page page;
	unsigned seed = 7;
	const char *why;

	(void)state;
	assert_non_null(raw);
	for (int i = 0; i < 2000; i++) {
		for (size_t k = 0; k < WF_STATS_BYTES; k++)
			((uint8_t *)raw)[k] =
				(uint8_t)((seed = seed * 1103515245 + 12345) >>
					  16);
		/* Deeper than the first check. */
		raw->magic = WF_STATS_MAGIC;
		raw->layout = WF_STATS_LAYOUT;
		raw->count = (uint16_t)(seed % (WF_STATS_MAX + 2));
		raw->kind[15] = raw->name[55] = 0;
		if (wf_tools_page_read(&page, raw, &why))
			continue;
		assert_true(page.count <= WF_STATS_MAX);
		assert_true(strlen(page.name) < sizeof(page.name));
	}
	free(raw);
}

static void test_texts_are_harmless(void **state)
{
	struct wf_stats stats = open_stats();
	struct wf_tools_page page;
	const char *why;

	(void)state;
	strcpy(stats.page->name, "\033[2J\n\xff");
	assert_int_equal(wf_tools_page_read(&page, stats.page, &why), 0);
	assert_string_equal(page.name, "?[2J??");
	wf_base_stats_close(&stats);
}

/* -- looking for them ------------------------------------------------------ */

static struct wf_tools_scan scan_self(void)
{
	pid_t self = getpid(), missing;
	struct wf_tools_scan scan;

	assert_int_equal(wf_tools_scan_all(&scan, &self, 1, &missing), 0);
	assert_int_equal(missing, 0);
	return scan;
}

static void test_found_once(void **state)
{
	struct wf_stats one = open_stats(), two = open_stats();
	struct wf_tools_scan scan;
	int again = dup(one.fd);

	(void)state;
	scan = scan_self();
	assert_int_equal(scan.count, 2);
	assert_int_equal(scan.unsound, 0);
	assert_int_equal(scan.endpoints[0].pid, getpid());
	assert_int_equal(scan.endpoints[0].uid, getuid());
	assert_ptr_equal(wf_tools_scan_find(&scan, &scan.endpoints[1]),
			 &scan.endpoints[1]);
	wf_tools_scan_free(&scan);
	wf_base_stats_close(&one);
	close(again);
	scan = scan_self();
	assert_int_equal(scan.count, 1);
	wf_tools_scan_free(&scan);
	wf_base_stats_close(&two);
}

static int fake(size_t bytes, bool sealed)
{
	int fd = memfd_create(WF_STATS_FILE, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	if (sealed)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return fd;
}

/* A page that could shrink while it is read would be a signal. */
static void test_unsound_files(void **state)
{
	const struct {
		size_t bytes;
		bool sealed;
	} cases[] = { { 0, true },
		      { 100, true },
		      { WF_STATS_BYTES, false },
		      { 2 * WF_STATS_BYTES, true },
		      { WF_STATS_BYTES, true } }; /* empty */
	struct wf_stats stats = open_stats();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd = fake(cases[i].bytes, cases[i].sealed);
		struct wf_tools_scan scan = scan_self();

		assert_int_equal(scan.count, 1);
		assert_int_equal(scan.unsound, 1);
		assert_int_equal(scan.unsound_pid, getpid());
		assert_non_null(scan.unsound_why);
		wf_tools_scan_free(&scan);
		close(fd);
	}
	wf_base_stats_close(&stats);
}

/* Readers cannot write, and what a forked child counts is not its parent's.
 * Bug: it was, and the page was found in both. */
static void test_the_owner_is_alone(void **state)
{
	struct wf_stats stats = open_stats();
	char path[64];
	int fd, status;
	pid_t child;

	(void)state;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", stats.fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_ptr_equal(mmap(NULL, WF_STATS_BYTES, PROT_READ | PROT_WRITE,
			      MAP_SHARED, fd, 0),
			 MAP_FAILED);
	close(fd);
	child = fork();
	if (!child) {
		wf_base_stats_forked(&stats);
		wf_base_stats_add(&stats, 1, 5);
		wf_base_stats_close(&stats);
		_exit(0);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(wf_base_stats_get(&stats, 1), 1000);
	wf_base_stats_close(&stats);
}

static void test_nobody_there(void **state)
{
	pid_t nobody = 0x7ffffffe, missing = 0;
	struct wf_tools_scan scan;

	(void)state;
	assert_int_equal(wf_tools_scan_all(&scan, &nobody, 1, &missing), 0);
	assert_int_equal(missing, nobody);
	assert_int_equal(scan.count, 0);
	wf_tools_scan_free(&scan);
}

/* -- what is made of them -------------------------------------------------- */

static void test_rates(void **state)
{
	static struct wf_tools_endpoint before, now;
	struct wf_stats stats = open_stats();
	const char *why;

	(void)state;
	wf_base_stats_set(&stats, 2, 10);
	assert_int_equal(wf_tools_page_read(&before.page, stats.page, &why), 0);
	wf_base_stats_add(&stats, 1, 500);
	wf_base_stats_set(&stats, 2, 4); /* went back: not a rate */
	assert_int_equal(wf_tools_page_read(&now.page, stats.page, &why), 0);
	before.at_ns = 1000000000;
	now.at_ns = 1500000000;
	assert_true(wf_tools_quantity_value(WF_TOOLS_OUT, &before, &now) ==
		    1000);
	assert_true(wf_tools_quantity_value(WF_TOOLS_OUT_BYTES, &before,
					    &now) == 0);
	assert_true(wf_tools_quantity_value(WF_TOOLS_PEERS, &before, &now) ==
		    2);
	/* No time between them, an owner from the future: still numbers. */
	now.at_ns = before.at_ns;
	assert_true(wf_tools_quantity_value(WF_TOOLS_OUT, &before, &now) > 0);
	now.page.started = UINT64_MAX;
	assert_true(wf_tools_quantity_value(WF_TOOLS_OUT, NULL, &now) >= 0);
	wf_base_stats_close(&stats);
}

static void test_scaled(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{ 0, "0" },	     { 0.25, "0.2" },	   { 7, "7" },
		{ 9.96, "10" },	     { 999, "999" },	   { 999.6, "1.00k" },
		{ 1234, "1.23k" },   { 9999, "10.0k" },	   { 99960, "100k" },
		{ 1.5e6, "1.50M" },  { 999.6e6, "1.00G" }, { 1e12, "1.00T" },
		{ 1.8e19, "18.0E" },
	};
	char buf[WF_TOOLS_SCALED_LEN];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(
			wf_tools_quantity_scaled(cases[i].value, buf),
			cases[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_written),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_texts_are_harmless),
		cmocka_unit_test(test_found_once),
		cmocka_unit_test(test_unsound_files),
		cmocka_unit_test(test_the_owner_is_alone),
		cmocka_unit_test(test_nobody_there),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_scaled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
