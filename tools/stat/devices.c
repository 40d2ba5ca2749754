/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A line for each device of `weft devd`, each user of it, and each driver that
 * works in a program. The names of counters are those of src/devd/stats.h and
 * src/alg/stats.h; one that a page does not have counts as 0.
 */
#include "tools/stat/table.h"

#include <string.h>

#define PID_WIDTH 7
#define NAME_MIN 24
/* Names that are longer than this are cut if else the first columns had no room. */
#define NAME_NARROW 16
#define FIRST 2

struct column {
	const char *title;
	const char *counter;
	bool rate;    /* by the second; else as it is */
	bool trouble; /* if it is not 0 */
};

/* In the order in which they appear, as far as the line is wide. */
static const struct column columns[] = {
	{ "JOBS/s", "jobs", true, false },
	{ "WAIT", "waiting", false, false },
	{ "CHANS", "channels", false, false },
	{ "IN-B/s", "bytes_in", true, false },
	{ "OUT-B/s", "bytes_out", true, false },
	{ "FAILED", "failed", false, true },
	{ "COPY-B/s", "copied_bytes", true, false },
	{ "NEXT", "handed_on", false, true },
	{ "INTR/s", "interrupts", true, false },
	{ "MEMORY", "memory", false, false },
	{ "REFUSED", "turned_away", false, true },
	{ "FAULTS", "faults", false, true },
	{ "QUOTA", "held_back", false, true },
};
#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static int width_of(const struct column *column)
{
	size_t len = strlen(column->title);

	return len < 5 ? 5 : (int)len;
}

#define LABEL_LEN                                                              \
	(sizeof(((struct wf_tools_page *)0)->name) + WF_TOOLS_COMMAND_LEN + 4)

/* A driver is that of a program. */
static const char *label(const struct wf_tools_endpoint *ep,
			 char text[LABEL_LEN])
{
	if (wf_tools_scan_kind(ep) != WF_TOOLS_DRIVER)
		return ep->page.name;
	snprintf(text, LABEL_LEN, "%s (%s)", ep->page.name, ep->command);
	return text;
}

/* How long the names are, and how many columns fit. */
static size_t lay_out(const struct wf_tools_sheet *sheet, int *name_width)
{
	int left = (int)sheet->width - PID_WIDTH - 1, first = 0;
	char text[LABEL_LEN];
	size_t n = 0;

	*name_width = NAME_MIN;
	for (size_t i = 0; i < sheet->count; i++) {
		int len = (int)strlen(label(sheet->rows[i]->now, text));

		*name_width = len > *name_width ? len : *name_width;
	}
	for (n = 0; n < FIRST; n++)
		first += 1 + width_of(&columns[n]);
	if (*name_width > left - first)
		*name_width =
			left - first > NAME_NARROW ? left - first : NAME_NARROW;
	left -= *name_width;
	n = 0;
	while (n < N_COLUMNS && left >= 1 + width_of(&columns[n]))
		left -= 1 + width_of(&columns[n++]);
	return n;
}

/* Cut at its width; a '+' says so. Names of devices differ at their end, behind
 * the path of a socket. */
static void write_name(const char *name, int width, FILE *out)
{
	int len = (int)strlen(name);

	if (len <= width)
		fprintf(out, "%-*s", width, name);
	else if (name[0] == '/')
		fprintf(out, "+%s", name + len - width + 1);
	else
		fprintf(out, "%.*s+", width - 1, name);
}

static void write_line(const struct wf_tools_sheet *sheet,
		       const struct wf_tools_row *row, int name_width,
		       size_t n_columns, FILE *out)
{
	char text[WF_TOOLS_SCALED_LEN], name[LABEL_LEN];

	fprintf(out, "%*d ", PID_WIDTH, (int)row->now->pid);
	write_name(label(row->now, name), name_width, out);
	for (size_t i = 0; i < n_columns; i++) {
		const struct column *column = &columns[i];
		double value =
			column->rate ?
				wf_tools_quantity_rate(column->counter,
						       row->before, row->now) :
				(double)wf_tools_page_get(&row->now->page,
							  column->counter);
		enum wf_tools_style style = value <= 0	    ? WF_TOOLS_FAINT :
					    column->trouble ? WF_TOOLS_WARNING :
							      WF_TOOLS_NORMAL;

		fprintf(out, " %s%*s", wf_tools_paint(sheet->paint, style),
			width_of(column),
			wf_tools_quantity_scaled(value, text));
	}
	fprintf(out, "%s\n", wf_tools_paint(sheet->paint, WF_TOOLS_NORMAL));
}

void wf_tools_devices_write(const struct wf_tools_sheet *sheet, size_t first,
			    size_t n, FILE *out)
{
	int name_width;
	size_t n_columns = lay_out(sheet, &name_width);

	fprintf(out, "%s%*s %-*s", wf_tools_paint(sheet->paint, WF_TOOLS_HEAD),
		PID_WIDTH, "PID", name_width, "DEVICE");
	for (size_t i = 0; i < n_columns; i++)
		fprintf(out, " %*s", width_of(&columns[i]), columns[i].title);
	fprintf(out, "%s\n", wf_tools_paint(sheet->paint, WF_TOOLS_NORMAL));
	for (size_t i = first; i < first + n; i++)
		write_line(sheet, sheet->rows[i], name_width, n_columns, out);
}
