/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints and devices in the order in which they are shown, each with what it
 * was an interval ago. A row keeps its place until another one is clearly
 * ahead, so that one can read a table that is refreshed.
 */
#ifndef WF_TOOLS_STAT_ROWS_H
#define WF_TOOLS_STAT_ROWS_H

#include "tools/stat/quantity.h"

enum { WF_TOOLS_PAST = 32 };

enum wf_tools_sort {
	WF_TOOLS_BY_BYTES,
	WF_TOOLS_BY_MESSAGES,
	WF_TOOLS_BY_UNEXPECTED,
	WF_TOOLS_BY_SLEEPS,
	WF_TOOLS_BY_PEERS,
	WF_TOOLS_BY_RANK, /* by job and rank, then by pid */
	WF_TOOLS_BY_PID,
	WF_TOOLS_SORTS,
};

struct wf_tools_row {
	const struct wf_tools_endpoint *now;
	const struct wf_tools_endpoint *before; /* NULL: it is new */
	double value;		   /* what it is sorted by, smoothed */
	float past[WF_TOOLS_PAST]; /* bytes a second; the last is the newest */
};

struct wf_tools_rows {
	struct wf_tools_row *all;
	size_t count;
	size_t endpoints; /* the first so many; the rest are devices */
	enum wf_tools_sort sort;
	bool sorted; /* by @sort, once before */
};

/* Rows for what @now holds. @now, and the scan before it, must outlive them.
 * 0 or -ENOMEM, with the rows as they were. */
int wf_tools_rows_update(struct wf_tools_rows *rows,
			 const struct wf_tools_scan *now);

/* Most first. @margin: how many times as much a row must have to pass the one
 * before it; 1: exactly sorted. */
void wf_tools_rows_sort(struct wf_tools_rows *rows, enum wf_tools_sort sort,
			double margin);

void wf_tools_rows_free(struct wf_tools_rows *rows);

/* Of one row, now. */
double wf_tools_row_value(const struct wf_tools_row *row,
			  enum wf_tools_quantity q);

/* Both ways, and remote memory. */
double wf_tools_row_bytes(const struct wf_tools_row *row);
double wf_tools_row_messages(const struct wf_tools_row *row);

/* As --sort names it. */
const char *wf_tools_sort_name(enum wf_tools_sort sort);
/* The head of its column, or WF_TOOLS_QUANTITIES. */
enum wf_tools_quantity wf_tools_sort_column(enum wf_tools_sort sort);

#endif
