/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A line for each device of `weft devd`. The names of counters are those of
 * src/devd/stats.h; one that a page does not have counts as 0.
 */
#include "tools/stat/live.h"

#include <string.h>

#define PID_WIDTH 7
#define NAME_MIN 24

struct column {
	const char *title;
	const char *counter;
	bool rate; /* by the second; else as it is */
};

/* In the order in which they appear, as far as the line is wide. */
static const struct column columns[] = {
	{ "CHANS", "channels", false },
	{ "WAIT", "waiting", false },
	{ "JOBS/s", "jobs", true },
	{ "IN-B/s", "bytes_in", true },
	{ "OUT-B/s", "bytes_out", true },
	{ "FAILED", "failed", false },
	{ "COPY-B/s", "copied_bytes", true },
	{ "INTR/s", "interrupts", true },
	{ "MEMORY", "memory", false },
	{ "REFUSED", "turned_away", false },
	{ "FAULTS", "faults", false },
};
#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static int width_of(const struct column *column)
{
	size_t len = strlen(column->title);

	return len < 5 ? 5 : (int)len;
}

/* How long the names are, and how many columns fit. */
static size_t lay_out(const struct wf_tools_live *live, size_t first,
		      int *name_width)
{
	int left = (int)live->width - PID_WIDTH - 1;
	size_t n = 0;

	*name_width = NAME_MIN;
	for (size_t i = first; i < live->now->count; i++) {
		int len = (int)strlen(live->now->endpoints[i].page.name);

		*name_width = len > *name_width ? len : *name_width;
	}
	left -= *name_width;
	while (n < N_COLUMNS && left >= 1 + width_of(&columns[n]))
		left -= 1 + width_of(&columns[n++]);
	return n;
}

static void write_line(const struct wf_tools_live *live,
		       const struct wf_tools_endpoint *device, int name_width,
		       size_t n_columns, FILE *out)
{
	const struct wf_tools_endpoint *before =
		wf_tools_scan_find(live->before, device);
	char text[WF_TOOLS_SCALED_LEN];

	fprintf(out, "%*d %-*s", PID_WIDTH, (int)device->pid, name_width,
		device->page.name);
	for (size_t i = 0; i < n_columns; i++) {
		const struct column *column = &columns[i];
		double value = column->rate ?
				       wf_tools_quantity_rate(column->counter,
							      before, device) :
				       (double)wf_tools_page_get(
					       &device->page, column->counter);

		fprintf(out, " %*s", width_of(column),
			wf_tools_quantity_scaled(value, text));
	}
	fputc('\n', out);
}

void wf_tools_devices_write(const struct wf_tools_live *live, FILE *out)
{
	size_t first = wf_tools_live_endpoints(live), n;
	int name_width;

	if (first == live->now->count)
		return;
	n = lay_out(live, first, &name_width);
	fprintf(out, "%*s %-*s", PID_WIDTH, "PID", name_width, "DEVICE");
	for (size_t i = 0; i < n; i++)
		fprintf(out, " %*s", width_of(&columns[i]), columns[i].title);
	fputc('\n', out);
	for (size_t i = first; i < live->now->count; i++)
		write_line(live, &live->now->endpoints[i], name_width, n, out);
}
