/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One column of the table: a provider, UCX, MPI or a floor, with its results.
 */
#ifndef WF_TOOLS_BENCH_SERIES_H
#define WF_TOOLS_BENCH_SERIES_H

#include "tools/bench/crowd.h"
#include "tools/bench/mpi.h"
#include "tools/bench/pair.h"
#include "tools/bench/ucx.h"

enum wf_tools_series_kind {
	WF_TOOLS_SERIES_FABRIC,
	WF_TOOLS_SERIES_UCX,
	WF_TOOLS_SERIES_MPI,
	WF_TOOLS_SERIES_SOCKET, /* plain TCP */
	WF_TOOLS_SERIES_RING,
	WF_TOOLS_SERIES_HANDOFF,
};

/* One test at one size. */
struct wf_tools_cell {
	/* One for each good repetition, in order; room for all. ns, or the unit
	 * of the test. */
	double *ns;
	unsigned n;
	char error[320]; /* not empty: failed, and was not tried again */
};

struct wf_tools_series {
	enum wf_tools_series_kind kind;
	const char *name;
	char path[4096]; /* FI_PROVIDER_PATH for its workers; or empty */
	bool running;
	struct wf_tools_pair pair;
	struct wf_tools_ucx ucx;
	struct wf_tools_mpi mpi;
	struct wf_tools_crowd crowd;
	struct wf_tools_cell cells[WF_TOOLS_TESTS][WF_TOOLS_MAX_SIZES];
	unsigned kept;	    /* samples in all cells */
	unsigned disturbed; /* of these, by other processes */
	char failure[320];  /* not empty: cannot run at all */
	char about[256];
};

struct wf_tools_stats {
	double median, low, high; /* low and high: 10th and 90th percentile */
};

/* Returns NULL without memory. */
struct wf_tools_series *wf_tools_series_new(const struct wf_tools_plan *plan,
					    enum wf_tools_series_kind kind,
					    const char *name);
void wf_tools_series_free(struct wf_tools_series *series);

/* Whether the column has a value at this place. */
bool wf_tools_series_covers(const struct wf_tools_series *series,
			    enum wf_tools_test test, size_t size);

/*
 * start for all series, then ready for all: they prepare at the same time.
 * Errors are recorded in the series; only -EINTR is returned.
 */
int wf_tools_series_start(struct wf_tools_series *series,
			  const struct wf_tools_plan *plan);
int wf_tools_series_ready(struct wf_tools_series *series,
			  const struct wf_tools_plan *plan);
/* One run; its result goes into the cell. Errors as above. */
int wf_tools_series_run(struct wf_tools_series *series,
			const struct wf_tools_plan *plan,
			enum wf_tools_test test, unsigned index);
void wf_tools_series_stop(struct wf_tools_series *series);

/* False when there is no good repetition. */
bool wf_tools_series_stats(const struct wf_tools_series *series,
			   enum wf_tools_test test, unsigned index,
			   struct wf_tools_stats *stats);
/* Over all samples of a test: for values that do not depend on a size. */
bool wf_tools_series_total(const struct wf_tools_series *series,
			   const struct wf_tools_plan *plan,
			   enum wf_tools_test test,
			   struct wf_tools_stats *stats);

/*
 * Converts a measurement (ns per message, bytes, per cent) to the unit of its
 * test: ns, MB/s (10^6 bytes), millions per second, per cent or KiB.
 */
double wf_tools_series_value(enum wf_tools_test test, size_t size, double ns);

#endif
