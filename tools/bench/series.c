/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gives providers, UCX, MPI and the floors the same interface for the schedule,
 * and keeps their results. A series that fails must not disturb the others.
 */
#include "tools/bench/series.h"

#include "tools/bench/floor_defs.h"
#include "tools/bench/process.h"
#include "tools/locate.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_TRIES = 3,
	/* Kernel threads run for a moment on every machine; so much is
	 * normal. */
	ALLOWED_SWITCHES = 1,
};

static void find_path(struct wf_tools_series *s)
{
	const char *given = getenv("FI_PROVIDER_PATH");

	if ((s->kind != WF_TOOLS_SERIES_FABRIC || strcmp(s->name, "weft")) &&
	    strcmp(s->name, WF_TOOLS_MPI_PREFIX "weft"))
		return;
	if (given && *given)
		return;
	if (wf_tools_locate_provider(s->path, sizeof(s->path)))
		snprintf(s->failure, sizeof(s->failure),
			 "libweft-fi.so is neither beside this program nor "
			 "installed; build it, or set FI_PROVIDER_PATH to its "
			 "folder");
}

struct wf_tools_series *wf_tools_series_new(const struct wf_tools_plan *plan,
					    enum wf_tools_series_kind kind,
					    const char *name)
{
	struct wf_tools_series *s = calloc(1, sizeof(*s));
	unsigned t, i;

	if (!s)
		return NULL;
	s->kind = kind;
	s->name = name;
	wf_tools_pair_init(&s->pair);
	wf_tools_ucx_init(&s->ucx);
	wf_tools_mpi_init(&s->mpi);
	for (t = 0; t < WF_TOOLS_TESTS; t++) {
		for (i = 0; i < plan->sizes[t].n; i++) {
			s->cells[t][i].ns = calloc(plan->reps, sizeof(double));
			if (!s->cells[t][i].ns)
				goto err_free;
		}
	}
	find_path(s);
	return s;

err_free:
	wf_tools_series_free(s);
	return NULL;
}

void wf_tools_series_free(struct wf_tools_series *s)
{
	unsigned t, i;

	if (!s)
		return;
	wf_tools_series_stop(s);
	for (t = 0; t < WF_TOOLS_TESTS; t++) {
		for (i = 0; i < WF_TOOLS_MAX_SIZES; i++)
			free(s->cells[t][i].ns);
	}
	free(s);
}

bool wf_tools_series_covers(const struct wf_tools_series *s,
			    enum wf_tools_test test, size_t size)
{
	const struct wf_tools_test_info *info = wf_tools_test_get(test);

	if (info->collective)
		return s->kind == WF_TOOLS_SERIES_MPI;
	if (s->kind != WF_TOOLS_SERIES_FABRIC && !info->messages)
		return false;
	if (s->kind == WF_TOOLS_SERIES_HANDOFF)
		return test == WF_TOOLS_LATENCY;
	if (s->kind == WF_TOOLS_SERIES_RING)
		return size <= WF_TOOLS_FLOOR_MAX_SIZE;
	return true;
}

static const char *error_of(const struct wf_tools_series *s)
{
	if (s->crowd.error[0])
		return s->crowd.error;
	switch (s->kind) {
	case WF_TOOLS_SERIES_UCX:
		return s->ucx.error;
	case WF_TOOLS_SERIES_MPI:
		return s->mpi.error;
	default:
		return s->pair.error;
	}
}

/* A failure before the first message would happen again: no retry. */
static int note_failure(struct wf_tools_series *s, int ret)
{
	s->running = false;
	if (ret != -EINTR)
		memcpy(s->failure, error_of(s), sizeof(s->failure));
	return ret == -EINTR ? ret : 0;
}

enum { SERIES_ENV = 5 + WF_TOOLS_LINK_ENV };

/*
 * The user's FI_PROVIDER would hide the other providers, and each of our hints
 * names its provider anyway.
 */
static void make_env(const struct wf_tools_series *s,
		     const struct wf_tools_plan *plan,
		     const char *env[SERIES_ENV])
{
	*env++ = "FI_PROVIDER";
	*env++ = NULL;
	if (s->path[0]) {
		*env++ = "FI_PROVIDER_PATH";
		*env++ = s->path;
	}
	wf_tools_link_env(&plan->link, env);
}

/* Whether the plan has a test for which two processes of this series run. */
static bool has_pair(const struct wf_tools_series *s,
		     const struct wf_tools_plan *plan)
{
	unsigned t;

	for (t = 0; t < WF_TOOLS_TESTS; t++) {
		if (plan->tests[t] && wf_tools_test_get(t)->engine &&
		    wf_tools_series_covers(s, t, plan->sizes[t].v[0]))
			return true;
	}
	return false;
}

int wf_tools_series_start(struct wf_tools_series *s,
			  const struct wf_tools_plan *plan)
{
	const char *env[SERIES_ENV];
	bool floor = s->kind == WF_TOOLS_SERIES_RING ||
		     s->kind == WF_TOOLS_SERIES_HANDOFF;
	int ret;

	if (s->failure[0] || !has_pair(s, plan))
		return 0;
	make_env(s, plan, env);
	if (s->kind == WF_TOOLS_SERIES_UCX)
		ret = wf_tools_ucx_start(&s->ucx, plan);
	else if (s->kind == WF_TOOLS_SERIES_MPI)
		ret = wf_tools_mpi_start(&s->mpi, plan, s->name, env);
	else
		ret = wf_tools_pair_start(&s->pair, plan,
					  floor ? "floor" :
					  s->kind == WF_TOOLS_SERIES_SOCKET ?
						  "socket" :
						  wf_tools_plan_engine(plan),
					  s->name, env);
	if (ret)
		return note_failure(s, ret);
	s->running = true;
	return 0;
}

int wf_tools_series_ready(struct wf_tools_series *s,
			  const struct wf_tools_plan *plan)
{
	int ret;

	if (!s->running)
		return 0;
	if (s->kind == WF_TOOLS_SERIES_UCX)
		ret = wf_tools_ucx_ready(&s->ucx, plan);
	else if (s->kind == WF_TOOLS_SERIES_MPI)
		ret = wf_tools_mpi_ready(&s->mpi, plan);
	else
		ret = wf_tools_pair_ready(&s->pair, plan);
	if (ret)
		return note_failure(s, ret);
	memcpy(s->about,
	       s->kind == WF_TOOLS_SERIES_UCX ? s->ucx.about :
	       s->kind == WF_TOOLS_SERIES_MPI ? s->mpi.about :
						s->pair.about,
	       sizeof(s->about));
	return 0;
}

static unsigned long preempted(const struct wf_tools_series *s)
{
	const pid_t *pids = s->kind == WF_TOOLS_SERIES_UCX ? s->ucx.pids :
			    s->kind == WF_TOOLS_SERIES_MPI ? s->mpi.pids :
							     s->pair.pids;

	return wf_tools_process_preempted(pids[0]) +
	       wf_tools_process_preempted(pids[1]);
}

static int run_crowd(struct wf_tools_series *s,
		     const struct wf_tools_plan *plan, enum wf_tools_test test,
		     size_t n, double *value)
{
	struct wf_tools_crowd_result result;
	const char *env[SERIES_ENV];
	int ret;

	make_env(s, plan, env);
	ret = wf_tools_crowd_run(&s->crowd, plan, s->name, env, (unsigned)n,
				 &result);
	if (!ret)
		*value = test == WF_TOOLS_CROWD_TIME ? result.ns : result.bytes;
	return ret;
}

static int run_once(struct wf_tools_series *s, const struct wf_tools_plan *plan,
		    enum wf_tools_test test, unsigned index, double *ns)
{
	if (!wf_tools_test_get(test)->engine)
		return run_crowd(s, plan, test, plan->sizes[test].v[index], ns);
	if (s->kind == WF_TOOLS_SERIES_UCX)
		return wf_tools_ucx_run(&s->ucx, plan, test, index, ns);
	if (s->kind == WF_TOOLS_SERIES_MPI)
		return wf_tools_mpi_run(&s->mpi, plan, test, index, ns);
	return wf_tools_pair_run(&s->pair, plan, test,
				 plan->sizes[test].v[index], ns);
}

/* Other processes change the value. */
static bool is_timed(enum wf_tools_test test)
{
	const struct wf_tools_test_info *info = wf_tools_test_get(test);

	return info->engine && info->unit != WF_TOOLS_UNIT_MEMORY;
}

/*
 * A polling process that loses its CPU takes milliseconds instead of a fraction
 * of a microsecond to answer. Such a run is repeated, for all series, and the
 * least disturbed one is kept. Not on one CPU, where this always happens.
 */
static int run_undisturbed(struct wf_tools_series *s,
			   const struct wf_tools_plan *plan,
			   enum wf_tools_test test, unsigned index, double *ns)
{
	unsigned long before, taken, least = ULONG_MAX;
	/* If many runs stay disturbed, more waiting gains little. */
	bool hopeless = plan->one_cpu || s->disturbed > 2 + s->kept / 4 ||
			!is_timed(test);
	int ret, tries = hopeless ? 1 : MAX_TRIES;
	double once;

	while (tries-- > 0 && least > ALLOWED_SWITCHES) {
		before = preempted(s);
		ret = run_once(s, plan, test, index, &once);
		if (ret)
			return ret;
		taken = preempted(s) - before;
		if (taken < least) {
			least = taken;
			*ns = once;
		}
	}
	s->kept++;
	s->disturbed += is_timed(test) && least > ALLOWED_SWITCHES;
	return 0;
}

int wf_tools_series_run(struct wf_tools_series *s,
			const struct wf_tools_plan *plan,
			enum wf_tools_test test, unsigned index)
{
	struct wf_tools_cell *cell = &s->cells[test][index];
	double ns = 0;
	int ret;

	if (s->failure[0] || cell->error[0] ||
	    !wf_tools_series_covers(s, test, plan->sizes[test].v[index]))
		return 0;
	/* The last run may have ended it. */
	if (!s->running && wf_tools_test_get(test)->engine) {
		ret = wf_tools_series_start(s, plan);
		if (!ret)
			ret = wf_tools_series_ready(s, plan);
		if (ret || !s->running)
			return ret;
	}
	ret = run_undisturbed(s, plan, test, index, &ns);
	if (!ret) {
		cell->ns[cell->n++] = ns;
		return 0;
	}
	if (wf_tools_test_get(test)->engine)
		s->running = false;
	if (ret == -EINTR)
		return ret;
	memcpy(cell->error, error_of(s), sizeof(cell->error));
	s->crowd.error[0] = '\0';
	return 0;
}

void wf_tools_series_stop(struct wf_tools_series *s)
{
	s->running = false;
	if (s->kind == WF_TOOLS_SERIES_UCX)
		wf_tools_ucx_stop(&s->ucx);
	else if (s->kind == WF_TOOLS_SERIES_MPI)
		wf_tools_mpi_stop(&s->mpi);
	else
		wf_tools_pair_stop(&s->pair);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Interpolates between the two nearest ranks. */
static double rank(const double *sorted, unsigned n, double part)
{
	double at = part * (n - 1);
	unsigned below = (unsigned)at;

	if (below + 1 >= n)
		return sorted[n - 1];
	return sorted[below] +
	       (at - below) * (sorted[below + 1] - sorted[below]);
}

static bool summarize(double *samples, unsigned n, struct wf_tools_stats *stats)
{
	if (!n)
		return false;
	qsort(samples, n, sizeof(*samples), by_value);
	stats->median = rank(samples, n, 0.5);
	stats->low = rank(samples, n, 0.1);
	stats->high = rank(samples, n, 0.9);
	return true;
}

bool wf_tools_series_stats(const struct wf_tools_series *s,
			   enum wf_tools_test test, unsigned index,
			   struct wf_tools_stats *stats)
{
	const struct wf_tools_cell *cell = &s->cells[test][index];
	double sorted[WF_TOOLS_MAX_REPS];

	/* A cell that failed half way does not count as measured. */
	if (cell->error[0] || !cell->n)
		return false;
	memcpy(sorted, cell->ns, cell->n * sizeof(*sorted));
	return summarize(sorted, cell->n, stats);
}

bool wf_tools_series_total(const struct wf_tools_series *s,
			   const struct wf_tools_plan *plan,
			   enum wf_tools_test test,
			   struct wf_tools_stats *stats)
{
	const struct wf_tools_cell *cell;
	unsigned n = 0, i;
	double *sorted;
	bool found;

	sorted = calloc((size_t)plan->sizes[test].n * plan->reps,
			sizeof(*sorted));
	if (!sorted)
		return false;
	for (i = 0; i < plan->sizes[test].n; i++) {
		cell = &s->cells[test][i];
		memcpy(sorted + n, cell->ns, cell->n * sizeof(*sorted));
		n += cell->n;
	}
	found = summarize(sorted, n, stats);
	free(sorted);
	return found;
}

double wf_tools_series_value(enum wf_tools_test test, size_t size, double ns)
{
	switch (wf_tools_test_get(test)->unit) {
	case WF_TOOLS_UNIT_BANDWIDTH:
		return (double)size * 1e3 / ns;
	case WF_TOOLS_UNIT_RATE:
		return 1e3 / ns;
	case WF_TOOLS_UNIT_MEMORY:
		return ns / 1024;
	default:
		return ns;
	}
}
