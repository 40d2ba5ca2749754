/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft bench`: creates the series that the plan names, runs them in turns and
 * shows the results. Everything that is compared is measured in the same
 * minutes on the same two CPUs. This file must not call libfabric: only workers
 * do.
 */
#include "tools/bench/bench.h"

#include "base/clock.h"
#include "tools/bench/names.h"
#include "tools/bench/options.h"
#include "tools/bench/process.h"
#include "tools/bench/report.h"
#include "tools/bench/server.h"
#include "tools/bench/size.h"
#include "tools/comp/bench.h"
#include "tools/output.h"
#include "tools/wd/bench.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Files are opened before the measurement: a typo must not cost the results. */
struct files {
	struct wf_tools_output json;
	struct wf_tools_output csv;
	struct wf_tools_output svg;
};

struct progress {
	bool shown; /* stderr is a terminal */
	unsigned done, total;
	uint64_t start;
	uint64_t said; /* to no terminal: the last line */
};

/* Without a terminal, no longer wait is silent. */
#define SAY_EVERY (10 * WF_NS_PER_S)

static int add_series(struct wf_tools_report *r, enum wf_tools_series_kind kind,
		      const char *name)
{
	struct wf_tools_series *s = wf_tools_series_new(r->plan, kind, name);

	if (!s)
		return -ENOMEM;
	r->series[r->n_series++] = s;
	return 0;
}

static enum wf_tools_series_kind kind_of(const char *name)
{
	if (!strcmp(name, "ucx"))
		return WF_TOOLS_SERIES_UCX;
	if (!strncmp(name, WF_TOOLS_MPI_PREFIX, strlen(WF_TOOLS_MPI_PREFIX)))
		return WF_TOOLS_SERIES_MPI;
	if (!strcmp(name, "socket"))
		return WF_TOOLS_SERIES_SOCKET;
	return WF_TOOLS_SERIES_FABRIC;
}

static int make_series(struct wf_tools_report *r)
{
	const struct wf_tools_plan *plan = r->plan;
	unsigned i;
	int ret;

	ret = add_series(r, kind_of(plan->provider), plan->provider);
	if (!ret && plan->floor)
		ret = add_series(r, WF_TOOLS_SERIES_RING, "ring");
	if (!ret && plan->floor && plan->tests[WF_TOOLS_LATENCY])
		ret = add_series(r, WF_TOOLS_SERIES_HANDOFF, "handoff");
	for (i = 0; !ret && i < plan->n_against; i++)
		ret = add_series(r, kind_of(plan->against[i]),
				 plan->against[i]);
	return ret;
}

static void show_progress(struct progress *p, const char *what, unsigned rep,
			  enum wf_tools_test test, size_t size)
{
	uint64_t now = wf_base_clock_ns();
	double elapsed = (double)(now - p->start) / 1e9;
	char text[WF_TOOLS_SIZE_TEXT], left[32] = "";

	if (!p->shown && now - p->said < SAY_EVERY)
		return;
	p->said = now;
	if (p->done * 10 > p->total)
		snprintf(left, sizeof(left), ", %.0f s left",
			 elapsed * (p->total - p->done) / p->done);
	fprintf(stderr, "%s%3u%%  repetition %u: %s of %s, %s%s%s",
		p->shown ? "\r\033[K" : "", 100 * p->done / p->total, rep + 1,
		wf_tools_test_get(test)->word, wf_tools_size_text(size, text),
		what, left, p->shown ? "" : "\n");
}

static void end_progress(const struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
}

/*
 * Every second repetition runs the others in reverse order: a series that came
 * after a large neighbour, with cold caches, then comes before it.
 */
static int run_round(struct wf_tools_report *r, struct progress *p,
		     unsigned rep, enum wf_tools_test test, unsigned index)
{
	struct wf_tools_series *s;
	unsigned i;
	int ret;

	for (i = 0; i < r->n_series; i++) {
		s = r->series[rep % 2 ? r->n_series - 1 - i : i];
		show_progress(p, s->name, rep, test,
			      r->plan->sizes[test].v[index]);
		ret = wf_tools_series_run(s, r->plan, test, index);
		if (ret)
			return ret;
		p->done++;
	}
	return 0;
}

/* Fresh processes each time, so that an accidental memory layout does not
 * affect all repetitions. */
static int run_repetition(struct wf_tools_report *r, struct progress *p,
			  unsigned rep)
{
	const struct wf_tools_plan *plan = r->plan;
	unsigned i, t;
	int ret = 0;

	for (i = 0; i < r->n_series && !ret; i++)
		ret = wf_tools_series_start(r->series[i], plan);
	for (i = 0; i < r->n_series && !ret; i++)
		ret = wf_tools_series_ready(r->series[i], plan);
	for (t = 0; t < WF_TOOLS_TESTS && !ret; t++) {
		for (i = 0; plan->tests[t] && i < plan->sizes[t].n && !ret; i++)
			ret = run_round(r, p, rep, t, i);
	}
	for (i = 0; i < r->n_series; i++)
		wf_tools_series_stop(r->series[i]);
	return ret;
}

static bool is_absent(const struct wf_tools_series *s)
{
	return s->failure[0] && !s->kept;
}

static int run_all(struct wf_tools_report *r)
{
	struct progress progress = {
		.shown = isatty(STDERR_FILENO),
		.start = wf_base_clock_ns(),
	};
	unsigned rep, t;
	int ret = 0;

	progress.said = progress.start;
	for (t = 0; t < WF_TOOLS_TESTS; t++) {
		if (r->plan->tests[t])
			progress.total += r->plan->sizes[t].n * r->n_series *
					  r->plan->reps;
	}
	for (rep = 0; rep < r->plan->reps && !ret; rep++) {
		ret = run_repetition(r, &progress, rep);
		/* Without the provider under test there is nothing to show. */
		if (is_absent(r->series[0]))
			break;
	}
	end_progress(&progress);
	return ret;
}

static int open_file(const char *path, struct wf_tools_output *file)
{
	int ret = path ? wf_tools_output_open(file, path) : 0;

	if (ret)
		fprintf(stderr, "weft bench: cannot write %s: %s\n", path,
			strerror(-ret));
	return ret;
}

static int close_file(struct wf_tools_output *file)
{
	int ret = wf_tools_output_close(file);

	if (ret)
		fprintf(stderr, "weft bench: cannot write %s: %s\n", file->path,
			strerror(-ret));
	return ret;
}

static int open_files(const struct wf_tools_plan *plan, struct files *files)
{
	int ret;

	ret = open_file(plan->json, &files->json);
	if (!ret)
		ret = open_file(plan->csv, &files->csv);
	if (!ret)
		ret = open_file(plan->svg, &files->svg);
	return ret;
}

static int close_files(struct files *files)
{
	int json = close_file(&files->json);
	int csv = close_file(&files->csv);
	int svg = close_file(&files->svg);

	return json ? json : csv ? csv : svg;
}

static int open_link(struct wf_tools_plan *plan)
{
	int ret = wf_tools_link_open(&plan->link);

	if (ret)
		fprintf(stderr, "weft bench: %s\n", plan->link.error);
	return ret;
}

static bool is_complete(const struct wf_tools_report *r)
{
	const struct wf_tools_plan *plan = r->plan;
	const struct wf_tools_series *s = r->series[0];
	struct wf_tools_stats stats;
	unsigned t, i;

	for (t = 0; t < WF_TOOLS_TESTS; t++) {
		for (i = 0; plan->tests[t] && i < plan->sizes[t].n; i++) {
			if (!wf_tools_series_stats(s, t, i, &stats))
				return false;
		}
	}
	return true;
}

static void warn(const struct wf_tools_report *r)
{
	if (r->plan->one_cpu)
		fputs("weft bench: both processes share one CPU, so the times "
		      "are those of task switches\n",
		      stderr);
}

/* Runs everything, or stops at the first failure. */
static int measure(struct wf_tools_report *r, struct files *files)
{
	int ret;

	ret = make_series(r);
	if (ret) {
		fputs("weft bench: no memory\n", stderr);
		return ret;
	}
	wf_tools_machine_read(&r->machine, r->plan);
	if (!is_absent(r->series[0])) {
		wf_tools_table_head(r, stdout);
		fflush(stdout);
		ret = run_all(r);
	}
	if (ret == -EINTR) {
		fputs("weft bench: stopped, nothing is left running\n", stderr);
		return ret;
	}
	if (is_absent(r->series[0])) {
		fprintf(stderr, "weft bench: provider %s: %s\n",
			r->plan->provider, r->series[0]->failure);
		return -ENODEV;
	}
	wf_tools_table_write(r, stdout);
	if (files->json.file)
		wf_tools_export_json(r, files->json.file);
	if (files->csv.file)
		wf_tools_export_csv(r, files->csv.file);
	if (files->svg.file)
		wf_tools_plot_svg(r, files->svg.file);
	return is_complete(r) ? 0 : -EIO;
}

int wf_tools_bench_main(int argc, char **argv)
{
	/* The prefix of getopt's messages. */
	static char comp_name[] = "weft bench comp",
		    wd_name[] = "weft bench wd";
	struct wf_tools_report report = { 0 };
	struct files files = { 0 };
	struct wf_tools_plan plan;
	unsigned i;
	int ret, closed;

	if (argc > 1 && !strcmp(argv[1], "comp")) {
		argv[1] = comp_name;
		return wf_tools_bench_comp_main(argc - 1, argv + 1);
	}
	if (argc > 1 && !strcmp(argv[1], "wd")) {
		argv[1] = wd_name;
		return wf_tools_bench_wd_main(argc - 1, argv + 1);
	}
	ret = wf_tools_options_read(&plan, argc, argv);
	if (ret)
		return ret < 0 ? 2 : 0;
	report.plan = &plan;
	wf_tools_process_catch();
	if (plan.server)
		return wf_tools_server_run(&plan);
	/* After the deadlines of pair.c. */
	wf_tools_process_limit(plan.timeout_s + 2 +
			       (unsigned)(8 * plan.run_ns / WF_NS_PER_S));
	if (wf_tools_names_check(&plan))
		return 1;
	warn(&report);
	ret = open_link(&plan);
	if (!ret)
		ret = open_files(&plan, &files);
	if (!ret)
		ret = measure(&report, &files);
	for (i = 0; i < report.n_series; i++)
		wf_tools_series_free(report.series[i]);
	wf_tools_link_close(&plan.link);
	closed = close_files(&files);
	/* End by the signal, so that a shell or make stops as well. */
	if (ret == -EINTR)
		wf_tools_process_die();
	return ret || closed ? 1 : 0;
}
