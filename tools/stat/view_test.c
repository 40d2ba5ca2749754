/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The live view without a terminal: jobs and keys as they are read, rows that
 * keep their places, screens of any size.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tools/stat/keys.h"
#include "tools/stat/view.h"

#define N 4

/* -- jobs ------------------------------------------------------------------ */

static struct wf_tools_job parse(const char *block, size_t len)
{
	struct wf_tools_job job;

	wf_tools_job_parse(&job, block, len);
	return job;
}
#define PARSE(text) parse(text, sizeof(text))

static void test_jobs(void **state)
{
	struct wf_tools_job job;
	char long_id[300];

	(void)state;
	job = PARSE("A=1\0PMIX_RANK=7\0PMIX_NAMESPACE=2718\0PMI_SIZE=8");
	assert_int_equal(job.rank, 7);
	assert_int_equal(job.size, 8);
	assert_string_equal(job.id, "2718");
	/* mpirun inside a Slurm job: the rank is MPI's, the job is Slurm's. */
	job = PARSE("SLURM_PROCID=0\0SLURM_JOB_ID=99\0OMPI_COMM_WORLD_RANK=3\0"
		    "PMIX_NAMESPACE=2718");
	assert_int_equal(job.rank, 3);
	assert_string_equal(job.id, "99");
	/* A process of a batch script is no rank. */
	job = PARSE("SLURM_JOB_ID=99\0SLURM_NTASKS=4");
	assert_int_equal(job.rank, -1);
	assert_string_equal(job.id, "");
	job = PARSE("XPMI_RANK=1\0PMI_RANK=x\0PMI_RANK=-1");
	assert_int_equal(job.rank, -1);
	assert_int_equal(PARSE("PMI_RANK=99999999999999999999").rank, -1);
	assert_int_equal(parse(NULL, 0).rank, -1);
	/* The block may be cut anywhere: a block without an end does not
	 * count. */
	assert_int_equal(parse("PMI_RANK=12", 11).rank, -1);
	assert_string_equal(PARSE("PMI_RANK=1\0PBS_JOBID=a\033[2J b").id,
			    "a?[2J?b");
	memset(long_id, 'x', sizeof(long_id));
	memcpy(long_id, "PMI_RANK=1\0PBS_JOBID=", 21);
	long_id[sizeof(long_id) - 1] = 0;
	assert_int_equal(strlen(parse(long_id, sizeof(long_id)).id),
			 sizeof(job.id) - 1);
}

/* -- keys ------------------------------------------------------------------ */

static void test_keys(void **state)
{
	static const struct {
		const char *typed;
		int key;
		unsigned used;
	} cases[] = {
		{ "q", 'q', 1 },
		{ "\r", WF_TOOLS_KEY_ENTER, 1 },
		{ "\b", WF_TOOLS_KEY_BACKSPACE, 1 },
		{ "\033", WF_TOOLS_KEY_ESCAPE, 1 },
		{ "\033q", WF_TOOLS_KEY_ESCAPE, 1 },
		{ "\033[Aq", WF_TOOLS_KEY_UP, 3 },
		{ "\033OB", WF_TOOLS_KEY_DOWN, 3 },
		{ "\033[5~q", WF_TOOLS_KEY_PAGE_UP, 4 },
		{ "\033[1;5Cq", WF_TOOLS_KEY_OTHER, 6 },
		{ "\033[", WF_TOOLS_KEY_OTHER, 2 },
		{ "\033[12", WF_TOOLS_KEY_OTHER, 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned used = 0;

		assert_int_equal(
			wf_tools_keys_decode(cases[i].typed,
					     (unsigned)strlen(cases[i].typed),
					     &used),
			cases[i].key);
		assert_int_equal(used, cases[i].used);
	}
}

/* -- rows ------------------------------------------------------------------ */

/* A scan of N endpoints, each with the bytes it has sent so far, a second after
 * the one before it. Ranks run against pids. */
static struct wf_tools_scan *make(const uint64_t sent[N], unsigned second)
{
	struct wf_tools_scan *scan = calloc(1, sizeof(*scan));

	assert_non_null(scan);
	scan->endpoints = calloc(N, sizeof(scan->endpoints[0]));
	assert_non_null(scan->endpoints);
	scan->count = N;
	for (int i = 0; i < N; i++) {
		struct wf_tools_endpoint *ep = &scan->endpoints[i];

		*ep = (struct wf_tools_endpoint){
			.pid = 100 + i,
			.inode = (ino_t)i,
			.at_ns = second * UINT64_C(1000000000),
			.job = { .rank = N - 1 - i, .id = "7" },
			.page = { .kind = "endpoint",
				  .count = 2,
				  .counters = { { "sent_eager", sent[i] / 100 },
						{ "sent_eager_bytes",
						  sent[i] } } },
		};
		snprintf(ep->command, sizeof(ep->command), "command%d", i);
		snprintf(ep->page.name, sizeof(ep->page.name), "127.0.0.1:%d",
			 5000 + i);
	}
	return scan;
}

struct fixture {
	struct wf_tools_view view;
	struct wf_tools_scan *before, *now;
	uint64_t sent[N];
	unsigned second;
};

static void drop(struct wf_tools_scan *scan)
{
	if (scan)
		wf_tools_scan_free(scan);
	free(scan);
}

/* A second passes in which each sends as much. */
static void pass(struct fixture *f, const uint64_t more[N])
{
	struct wf_tools_scan *next;

	for (int i = 0; i < N; i++)
		f->sent[i] += more[i];
	next = make(f->sent, f->second++);
	assert_int_equal(wf_tools_view_update(&f->view, next), 0);
	drop(f->before);
	f->before = f->now;
	f->now = next;
}

static int setup(void **state)
{
	static const uint64_t none[N];
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->view.interval = 1;
	pass(f, none);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	wf_tools_view_free(&f->view);
	drop(f->before);
	drop(f->now);
	free(f);
	return 0;
}

static void check_order(const struct fixture *f, const char *pids)
{
	char text[64] = "";

	for (size_t i = 0; i < f->view.n_shown; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%s%d", i ? " " : "", (int)f->view.shown[i]->now->pid);
	assert_string_equal(text, pids);
}

/* Rows of equal traffic stand by rank and stay. Bug: they swapped places at
 * every interval. */
static void test_stable(void **state)
{
	struct fixture *f = *state;

	pass(f, (uint64_t[N]){ 10000, 10000, 10000, 10000 });
	check_order(f, "103 102 101 100");
	pass(f, (uint64_t[N]){ 12000, 10000, 11000, 9000 });
	check_order(f, "103 102 101 100");
	pass(f, (uint64_t[N]){ 9000, 11000, 8000, 10000 });
	check_order(f, "103 102 101 100");
	/* One that is clearly ahead comes first, also if it falls behind for
	 * a moment. */
	pass(f, (uint64_t[N]){ 90000, 10000, 10000, 10000 });
	check_order(f, "100 103 102 101");
	pass(f, (uint64_t[N]){ 9000, 10000, 10000, 10000 });
	check_order(f, "100 103 102 101");
	wf_tools_view_key(&f->view, 'p');
	check_order(f, "100 101 102 103");
	pass(f, (uint64_t[N]){ 0, 0, 0, 10000 });
	check_order(f, "100 101 102 103");
	wf_tools_view_key(&f->view, 'r');
	check_order(f, "103 102 101 100");
	wf_tools_view_key(&f->view, 'b');
	assert_int_equal(f->view.shown[0]->now->pid, 103);
}

static void test_exact(void **state)
{
	struct fixture *f = *state;

	pass(f, (uint64_t[N]){ 1000, 1001, 1002, 900 });
	f->view.rows.sorted = false;
	wf_tools_rows_sort(&f->view.rows, WF_TOOLS_BY_BYTES, 1);
	assert_int_equal(f->view.rows.all[0].now->pid, 102);
	assert_int_equal(f->view.rows.all[1].now->pid, 101);
	assert_int_equal(f->view.rows.all[3].now->pid, 103);
}

static void press(struct fixture *f, const char *keys)
{
	for (; *keys; keys++)
		assert_int_equal(wf_tools_view_key(&f->view, *keys),
				 WF_TOOLS_VIEW_GO_ON);
}

static void test_filter(void **state)
{
	struct fixture *f = *state;

	press(f, "/COMMAND2"); /* letters are no commands now */
	check_order(f, "102");
	wf_tools_view_key(&f->view, WF_TOOLS_KEY_BACKSPACE);
	press(f, "q");
	check_order(f, "");
	wf_tools_view_key(&f->view, WF_TOOLS_KEY_ESCAPE);
	check_order(f, "103 102 101 100");
	press(f, "/rank=1 \n");
	check_order(f, "102");
	wf_tools_view_key(&f->view, WF_TOOLS_KEY_ESCAPE);
	press(f, "/:5003\n");
	check_order(f, "103");
	wf_tools_view_key(&f->view, WF_TOOLS_KEY_ESCAPE);
	/* More than fits. */
	press(f, "/0123456789012345678901234567890123456789012345678901234567");
	assert_int_equal(strlen(f->view.filter), sizeof(f->view.filter) - 1);
	wf_tools_view_key(&f->view, WF_TOOLS_KEY_ESCAPE);
	pass(f, (uint64_t[N]){ 0, 5000, 0, 0 });
	press(f, "i");
	check_order(f, "101");
	press(f, "i");
	assert_int_equal(f->view.n_shown, N);
	assert_int_equal(wf_tools_view_key(&f->view, 'q'), WF_TOOLS_VIEW_QUIT);
}

/* The chosen row stays chosen wherever it goes. */
static void test_chosen(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(wf_tools_view_place(&f->view), SIZE_MAX);
	wf_tools_view_key(&f->view, WF_TOOLS_KEY_DOWN);
	wf_tools_view_key(&f->view, WF_TOOLS_KEY_DOWN);
	assert_int_equal(f->view.chosen->pid, 102);
	pass(f, (uint64_t[N]){ 0, 50000, 0, 0 });
	assert_int_equal(f->view.chosen->pid, 102);
	assert_int_equal(wf_tools_view_place(&f->view), 2);
	wf_tools_view_key(&f->view, WF_TOOLS_KEY_END);
	wf_tools_view_key(&f->view, WF_TOOLS_KEY_DOWN);
	assert_int_equal(wf_tools_view_place(&f->view), N - 1);
	wf_tools_view_key(&f->view, WF_TOOLS_KEY_HOME);
	wf_tools_view_key(&f->view, WF_TOOLS_KEY_UP);
	assert_int_equal(wf_tools_view_place(&f->view), 0);
	wf_tools_view_key(&f->view, WF_TOOLS_KEY_ESCAPE);
	assert_null(f->view.chosen);
	/* No packets, no devices: such a page does not open. */
	press(f, "24");
	assert_int_equal(f->view.page, WF_TOOLS_VIEW_ENDPOINTS);
	press(f, "\t");
	assert_int_equal(f->view.page, WF_TOOLS_VIEW_PATHS);
	press(f, "\t");
	assert_int_equal(f->view.page, WF_TOOLS_VIEW_ENDPOINTS);
	press(f, "------------");
	assert_true(f->view.interval >= 0.1);
	press(f, "++++++++++++++++++++++++++++++");
	assert_true(f->view.interval <= 3600);
}

/* -- screens --------------------------------------------------------------- */

/* As many lines as there are, none of them too wide. */
static char *draw(struct fixture *f, unsigned width, unsigned height,
		  bool terminal)
{
	struct wf_tools_paint paint = {
		.terminal = terminal,
		.colour = terminal,
		.unicode = terminal,
	};
	struct wf_tools_view_frame frame = {
		.width = width,
		.height = height,
		.paint = &paint,
		.host = "host",
		.clock = "12:34:56",
		.notes = "1 endpoint is not shown: other users or containers "
			 "have them; run this as root\n",
	};
	char *text = NULL, *at;
	unsigned lines = 0;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	wf_tools_view_draw(&f->view, &frame, out);
	assert_int_equal(fclose(out), 0);
	for (at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		char line[4096];

		snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"),
			 at);
		lines++;
		/* Tables need some width, and the lines of other pages are
		 * cut by the screen. */
		if (width >= 40 && f->view.page == WF_TOOLS_VIEW_ENDPOINTS)
			assert_true(wf_tools_paint_width(line, 4096, NULL) <=
				    width);
	}
	assert_true(lines <= height);
	assert_true(height < 8 || width < 10 || lines == height);
	return text;
}

/* Bug: at 40 columns the names of devices left no room for a number, and only
 * what they have in common was shown of them. */
static void test_devices(void **state)
{
	static const char name[] = "/run/weft/devd.sock:weft_noiommu-0";
	struct wf_tools_paint paint = { .terminal = false };
	struct wf_tools_endpoint ep = {
		.pid = 4711,
		.page = { .kind = "device" },
	};
	struct wf_tools_row row = { .now = &ep, .before = &ep };
	const struct wf_tools_row *rows[] = { &row };
	struct wf_tools_sheet sheet = {
		.rows = rows,
		.count = 1,
		.paint = &paint,
	};

	(void)state;
	strcpy(ep.page.name, name);
	for (sheet.width = 40; sheet.width <= 200; sheet.width++) {
		char *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		assert_non_null(out);
		wf_tools_devices_write(&sheet, 0, 1, out);
		assert_int_equal(fclose(out), 0);
		assert_true(strcspn(text, "\n") <= sheet.width);
		assert_true(strlen(strchr(text, '\n') + 1) <= sheet.width + 1);
		assert_non_null(strstr(text, "JOBS/s  WAIT"));
		assert_non_null(strstr(text, "weft_noiommu-0 "));
		assert_int_equal(!!strstr(text, name), sheet.width >= 55);
		free(text);
	}
}

static void test_sizes(void **state)
{
	static const unsigned widths[] = { 1,  10, 20, 39,  40,	 41, 60,
					   76, 80, 99, 132, 200, 400 };
	struct fixture *f = *state;
	char *text;

	pass(f, (uint64_t[N]){ 1, 50000, 1000000000, 77 });
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		for (unsigned height = 1; height < 60; height += 7) {
			free(draw(f, widths[i], height, height % 2));
			press(f, "?");
			free(draw(f, widths[i], height, false));
			press(f, "x3");
			free(draw(f, widths[i], height, false));
			wf_tools_view_key(&f->view, WF_TOOLS_KEY_PAGE_DOWN);
			free(draw(f, widths[i], height, false));
			press(f, "1");
		}
	}
	text = draw(f, 80, 24, false);
	assert_non_null(strstr(text, "4 endpoints in 4 processes"));
	assert_non_null(strstr(text, "1.00GB/s"));
	assert_non_null(strstr(text, "sorted by bytes"));
	assert_non_null(strstr(text, "127.0.0.1:5002"));
	assert_non_null(strstr(text, "is not shown: other"));
	free(text);
	text = draw(f, 40, 24, false);
	assert_non_null(strstr(text, "command2"));
	assert_non_null(strstr(text, "OUT-B/s IN-B/s"));
	free(text);
	/* Help that does not fit says so, until its end is shown. */
	press(f, "?");
	text = draw(f, 40, 24, false);
	assert_non_null(strstr(text, " more lines: down"));
	free(text);
	wf_tools_view_key(&f->view, WF_TOOLS_KEY_END);
	text = draw(f, 40, 24, false);
	assert_null(strstr(text, " more lines"));
	assert_non_null(strstr(text, "RTT WINDOW"));
	free(text);
	press(f, "x");
	/* Scrolled to the chosen one. */
	wf_tools_view_key(&f->view, WF_TOOLS_KEY_END);
	text = draw(f, 80, 9, false);
	assert_non_null(strstr(text, "of 4"));
	assert_null(strstr(text, "127.0.0.1:5002"));
	free(text);
}

static void test_width(void **state)
{
	unsigned bytes;

	(void)state;
	assert_int_equal(wf_tools_paint_width("", 10, &bytes), 0);
	assert_int_equal(wf_tools_paint_width("\033[0;1mab\033[0m", 10, &bytes),
			 2);
	assert_int_equal(wf_tools_paint_width("▁█x", 10, &bytes), 3);
	assert_int_equal(wf_tools_paint_width("▁█x", 2, &bytes), 2);
	assert_int_equal(bytes, 6);
	assert_int_equal(wf_tools_paint_width("abc", 0, &bytes), 0);
	assert_int_equal(bytes, 0);
}

static void check_line(const struct wf_tools_graph *graph, unsigned line,
		       const char *want)
{
	static const struct wf_tools_paint plain;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	wf_tools_graph_line(graph, &plain, line, out);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, want);
	free(text);
}

static void test_graph(void **state)
{
	static struct wf_tools_series series;
	struct wf_tools_graph graph = {
		.series = &series,
		.title = "B/s",
		.width = WF_TOOLS_GRAPH_LABEL + 5,
		.lines = 2,
	};

	(void)state;
	check_line(&graph, 0, "     1      ");
	wf_tools_series_add(&series, 0);
	wf_tools_series_add(&series, 1); /* never empty */
	wf_tools_series_add(&series, 900);
	wf_tools_series_add(&series, 2000);
	check_line(&graph, 0, " 2.00k     #");
	check_line(&graph, 1, "   B/s   .##");
	for (int i = 0; i < 2 * WF_TOOLS_GRAPH_PAST; i++)
		wf_tools_series_add(&series, 100);
	check_line(&graph, 0, "   100 #####");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jobs),
		cmocka_unit_test(test_keys),
		TEST(test_stable),
		TEST(test_exact),
		TEST(test_filter),
		TEST(test_chosen),
		TEST(test_sizes),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_width),
		cmocka_unit_test(test_graph),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
