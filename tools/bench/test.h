/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tests of `weft bench`: name, unit, axis and participants of each.
 * Everything that depends on the test, except the measurement itself, is in
 * this table.
 */
#ifndef WF_TOOLS_BENCH_TEST_H
#define WF_TOOLS_BENCH_TEST_H

#include <stdbool.h>

enum wf_tools_test {
	/* messages */
	WF_TOOLS_LATENCY,
	WF_TOOLS_BANDWIDTH,
	WF_TOOLS_RATE,
	/* remote memory */
	WF_TOOLS_WRITE_LATENCY,
	WF_TOOLS_READ_LATENCY,
	WF_TOOLS_WRITE_BANDWIDTH,
	WF_TOOLS_READ_BANDWIDTH,
	/* atomics */
	WF_TOOLS_FETCH_ADD,
	WF_TOOLS_COMPARE_SWAP,
	WF_TOOLS_ADD_RATE,
	/* many peers */
	WF_TOOLS_IDLE,
	WF_TOOLS_ENDPOINT_MEMORY,
	WF_TOOLS_PAIR_MEMORY,
	/* waiting */
	WF_TOOLS_WAKE,
	WF_TOOLS_WAKE_FD,
	WF_TOOLS_WAIT_CPU,
	/* all to all */
	WF_TOOLS_CROWD_TIME,
	WF_TOOLS_CROWD_MEMORY,
	/* calls of MPI */
	WF_TOOLS_ALLREDUCE,
	WF_TOOLS_TESTS,
};

enum wf_tools_unit {
	WF_TOOLS_UNIT_TIME, /* of one, ns */
	WF_TOOLS_UNIT_BANDWIDTH,
	WF_TOOLS_UNIT_RATE,
	WF_TOOLS_UNIT_PERCENT,
	WF_TOOLS_UNIT_MEMORY, /* bytes */
};

/* A test is repeated for the values of an axis: the first column of its
 * table. */
enum wf_tools_axis {
	WF_TOOLS_AXIS_SIZE,
	WF_TOOLS_AXIS_WORD, /* 8 bytes, always */
	WF_TOOLS_AXIS_PEERS,
	WF_TOOLS_AXIS_PROCESSES,
};

struct wf_tools_test_info {
	const char *word;  /* of options and files */
	const char *group; /* the group's name; for messages: NULL */
	const char *title;
	enum wf_tools_unit unit;
	enum wf_tools_axis axis;
	const char *engine; /* of two workers or ranks; NULL: none */
	unsigned window;    /* the default; 0: has none */
	/* Measured in a single phase of so many; 0: as many as fill the
	 * time. */
	unsigned fixed;
	/* The engine returns the value itself; otherwise it is a time. */
	bool own_value;
	bool messages; /* uses fi_tagged or fi_msg, and runs for UCX and floors, too */
	bool collective; /* all ranks call MPI; runs for nothing else */
};

const struct wf_tools_test_info *wf_tools_test_get(enum wf_tools_test test);

/* Whether a word of the command line, possibly abbreviated, means this test. */
bool wf_tools_test_is(enum wf_tools_test test, const char *word);

/* "; did you mean NAME?", of a test that a word is like, or where `weft bench WORD`
 * is found, or "". */
const char *wf_tools_test_meant(const char *word);

/* Larger values are better; otherwise smaller ones. */
static inline bool wf_tools_test_is_more(enum wf_tools_test test)
{
	enum wf_tools_unit unit = wf_tools_test_get(test)->unit;

	return unit == WF_TOOLS_UNIT_BANDWIDTH || unit == WF_TOOLS_UNIT_RATE;
}

/* "ns", "MB/s", "M/s", "%", "KiB": the unit in which values of a test are
 * shown. */
const char *wf_tools_test_unit(enum wf_tools_test test);

/* "size", "peers", "procs": the heading of the first column. */
const char *wf_tools_test_axis(enum wf_tools_test test);

#endif
