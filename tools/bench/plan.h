/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plan says what a run of `weft bench` shall do: the types that options,
 * schedule, workers and reports share.
 */
#ifndef WF_TOOLS_BENCH_PLAN_H
#define WF_TOOLS_BENCH_PLAN_H

#include "tools/bench/link.h"
#include "tools/bench/test.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WF_TOOLS_MAX_SIZES = 64,
	WF_TOOLS_MAX_AGAINST = 8,
	WF_TOOLS_MAX_REPS = 1000,
	WF_TOOLS_MAX_WINDOW = 65536,
	WF_TOOLS_MAX_PEERS = 1024,
	WF_TOOLS_MAX_PROCESSES = 512,
	/*
	 * A window is reduced so that at most this much is in flight: 64
	 * messages of 8 MiB would measure, slowly, 512 MiB of memory traffic in
	 * each turn.
	 */
	WF_TOOLS_MAX_IN_FLIGHT = 64 << 20,
};

struct wf_tools_sizes {
	size_t v[WF_TOOLS_MAX_SIZES];
	unsigned n;
};

struct wf_tools_plan {
	const char *provider;
	const char *against[WF_TOOLS_MAX_AGAINST];
	unsigned n_against;
	unsigned n_named; /* of these, by the user: the first ones */
	bool floor;
	bool tests[WF_TOOLS_TESTS];
	struct wf_tools_sizes sizes[WF_TOOLS_TESTS]; /* or peers, processes */
	unsigned window[WF_TOOLS_TESTS]; /* of those without one: 1 */
	unsigned reps;
	uint64_t run_ns; /* the timed part of one run aims at this */
	unsigned timeout_s;
	int cpus[2];
	bool one_cpu; /* both sides share a CPU: waiting must yield */
	bool tagged;
	bool rewrite;
	bool memfd;
	bool verify;
	unsigned more; /* messages of a batch by FI_MORE; 0: none */
	struct wf_tools_link link;
	const char *mpi_hosts; /* "A:1,B:1", of mpirun; NULL: this one */
	bool server;	       /* serve another host, measure nothing */
	const char *json;
	const char *csv;
	const char *svg;
};

/* Window of a test at a size, after the cut of WF_TOOLS_MAX_IN_FLIGHT. */
unsigned wf_tools_plan_window(const struct wf_tools_plan *plan,
			      enum wf_tools_test test, size_t size);

/* The engine of the first test that two workers play; NULL: there is none. */
const char *wf_tools_plan_engine(const struct wf_tools_plan *plan);

#endif
