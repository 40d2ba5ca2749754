/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Matches what was found with the rows of the last time, and sorts.
 */
#include "tools/stat/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	enum wf_tools_quantity column;
} sorts[WF_TOOLS_SORTS] = {
	[WF_TOOLS_BY_BYTES] = { "bytes", WF_TOOLS_OUT_BYTES },
	[WF_TOOLS_BY_MESSAGES] = { "messages", WF_TOOLS_OUT },
	[WF_TOOLS_BY_UNEXPECTED] = { "unexpected", WF_TOOLS_UNEXPECTED },
	[WF_TOOLS_BY_SLEEPS] = { "sleeps", WF_TOOLS_SLEEPS },
	[WF_TOOLS_BY_PEERS] = { "peers", WF_TOOLS_PEERS },
	[WF_TOOLS_BY_RANK] = { "rank", WF_TOOLS_QUANTITIES },
	[WF_TOOLS_BY_PID] = { "pid", WF_TOOLS_QUANTITIES },
};

const char *wf_tools_sort_name(enum wf_tools_sort sort)
{
	return sorts[sort].name;
}

enum wf_tools_quantity wf_tools_sort_column(enum wf_tools_sort sort)
{
	return sorts[sort].column;
}

double wf_tools_row_value(const struct wf_tools_row *row,
			  enum wf_tools_quantity q)
{
	return wf_tools_quantity_value(q, row->before, row->now);
}

double wf_tools_row_bytes(const struct wf_tools_row *row)
{
	return wf_tools_row_value(row, WF_TOOLS_OUT_BYTES) +
	       wf_tools_row_value(row, WF_TOOLS_IN_BYTES) +
	       wf_tools_row_value(row, WF_TOOLS_RMA_BYTES);
}

double wf_tools_row_messages(const struct wf_tools_row *row)
{
	return wf_tools_row_value(row, WF_TOOLS_OUT) +
	       wf_tools_row_value(row, WF_TOOLS_IN) +
	       wf_tools_row_value(row, WF_TOOLS_RMA) +
	       wf_tools_row_value(row, WF_TOOLS_ATOMICS);
}

/* -- who was there before -------------------------------------------------- */

static const struct wf_tools_row *row_of(const struct wf_tools_rows *rows,
					 const struct wf_tools_endpoint *ep)
{
	for (size_t i = 0; i < rows->count; i++) {
		if (wf_tools_scan_is_same(rows->all[i].now, ep))
			return &rows->all[i];
	}
	return NULL;
}

/* A row that is being put into order. */
struct arrival {
	struct wf_tools_row row;
	size_t place; /* the last time; SIZE_MAX: it is new */
	bool device;
};

static int by_pid(const struct wf_tools_endpoint *x,
		  const struct wf_tools_endpoint *y)
{
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return strcmp(x->page.name, y->page.name);
}

static int by_rank(const struct wf_tools_endpoint *x,
		   const struct wf_tools_endpoint *y)
{
	int jobs = strcmp(x->job.id, y->job.id);

	if ((x->job.rank < 0) != (y->job.rank < 0))
		return x->job.rank < 0 ? 1 : -1;
	if (jobs)
		return jobs;
	if (x->job.rank != y->job.rank)
		return x->job.rank < y->job.rank ? -1 : 1;
	return by_pid(x, y);
}

static int compare_arrivals(const void *a, const void *b)
{
	const struct arrival *x = a, *y = b;

	if (x->device != y->device)
		return x->device ? 1 : -1;
	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	return by_rank(x->row.now, y->row.now);
}

static void arrive(struct arrival *to, const struct wf_tools_rows *rows,
		   const struct wf_tools_endpoint *ep)
{
	const struct wf_tools_row *old = row_of(rows, ep);
	float *past = to->row.past;

	*to = (struct arrival){
		.row.now = ep,
		.place = old ? (size_t)(old - rows->all) : SIZE_MAX,
		.device = wf_tools_scan_is_device(ep),
	};
	if (!old)
		return;
	to->row.before = old->now;
	to->row.value = old->value;
	memcpy(past, old->past + 1, sizeof(old->past) - sizeof(old->past[0]));
	/* A new one has no interval yet, only the mean of its life. */
	past[WF_TOOLS_PAST - 1] =
		to->device ? 0 : (float)wf_tools_row_bytes(&to->row);
}

int wf_tools_rows_update(struct wf_tools_rows *rows,
			 const struct wf_tools_scan *now)
{
	struct arrival *arrivals = calloc(now->count + 1, sizeof(*arrivals));
	struct wf_tools_row *all = calloc(now->count + 1, sizeof(*all));

	if (!arrivals || !all) {
		free(arrivals);
		free(all);
		return -ENOMEM;
	}
	for (size_t i = 0; i < now->count; i++)
		arrive(&arrivals[i], rows, &now->endpoints[i]);
	qsort(arrivals, now->count, sizeof(*arrivals), compare_arrivals);
	free(rows->all);
	rows->all = all;
	rows->count = now->count;
	rows->endpoints = 0;
	for (size_t i = 0; i < now->count; i++) {
		all[i] = arrivals[i].row;
		rows->endpoints += !arrivals[i].device;
	}
	free(arrivals);
	return 0;
}

/* -- order ----------------------------------------------------------------- */

static int compare_ranks(const void *a, const void *b)
{
	const struct wf_tools_row *x = a, *y = b;

	return by_rank(x->now, y->now);
}

static int compare_pids(const void *a, const void *b)
{
	const struct wf_tools_row *x = a, *y = b;

	return by_pid(x->now, y->now);
}

static double value_by(const struct wf_tools_row *row, enum wf_tools_sort sort)
{
	/* Bytes and messages break each other's ties. */
	switch (sort) {
	case WF_TOOLS_BY_BYTES:
		return wf_tools_row_bytes(row) +
		       1e-6 * wf_tools_row_messages(row);
	case WF_TOOLS_BY_MESSAGES:
		return wf_tools_row_messages(row) +
		       1e-12 * wf_tools_row_bytes(row);
	default:
		return wf_tools_row_value(row, sorts[sort].column);
	}
}

/* From the order of the last time, each row moves up past those it is ahead
 * of. */
static void move_up(struct wf_tools_rows *rows, double margin)
{
	struct wf_tools_row moving;
	size_t place;

	for (size_t i = 1; i < rows->endpoints; i++) {
		place = i;
		while (place &&
		       rows->all[i].value > margin * rows->all[place - 1].value)
			place--;
		if (place == i)
			continue;
		moving = rows->all[i];
		memmove(&rows->all[place + 1], &rows->all[place],
			(i - place) * sizeof(moving));
		rows->all[place] = moving;
	}
}

void wf_tools_rows_sort(struct wf_tools_rows *rows, enum wf_tools_sort sort,
			double margin)
{
	bool again = rows->sorted && rows->sort == sort;
	bool fixed = sort == WF_TOOLS_BY_PID || sort == WF_TOOLS_BY_RANK;

	if (rows->count > rows->endpoints)
		qsort(rows->all + rows->endpoints,
		      rows->count - rows->endpoints, sizeof(rows->all[0]),
		      compare_pids);
	/* Equals stand in the order of their ranks. */
	if ((fixed || !again) && rows->endpoints)
		qsort(rows->all, rows->endpoints, sizeof(rows->all[0]),
		      sort == WF_TOOLS_BY_PID ? compare_pids : compare_ranks);
	rows->sort = sort;
	rows->sorted = true;
	if (fixed)
		return;
	for (size_t i = 0; i < rows->endpoints; i++) {
		double value = value_by(&rows->all[i], sort);
		double old = rows->all[i].value;

		rows->all[i].value = again ? (old + value) / 2 : value;
	}
	move_up(rows, margin);
}

void wf_tools_rows_free(struct wf_tools_rows *rows)
{
	free(rows->all);
	memset(rows, 0, sizeof(*rows));
}
