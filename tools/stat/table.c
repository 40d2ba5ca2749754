/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A line for each endpoint. Every column has a place in the order in which
 * columns are left out when the line is too short for all. It must not read
 * pages or /proc itself.
 */
#include "tools/stat/table.h"

#include <stdlib.h>
#include <string.h>

#include "tools/stat/graph.h"

#define PID_WIDTH 7
#define RANK_MIN 4
#define JOB_MIN 3
#define COMMAND_MIN 7
#define ADDRESS_MIN 15 /* 127.0.0.1:12345 */
#define NUMBER_MIN 5   /* a scaled number */
#define TIME_MIN 6     /* 12.3us */
#define PAST_WIDTH 16
#define MAX_COLUMNS 32

enum content { NUMBER, PID, RANK, JOB, COMMAND, ADDRESS, PAST };

/* Between these the texts get what they need. */
#define ORDER_TEXTS 8
#define ORDER_LAST 32

struct column {
	enum content content;
	int order; /* columns of one order appear together or not at all */
	enum wf_tools_quantity quantity;
};

/* Those of one page, as they stand side by side. */
static const struct column general[] = {
	{ PID, 0, 0 },
	{ RANK, 2, 0 },
	{ JOB, 14, 0 },
	{ COMMAND, 0, 0 },
	{ ADDRESS, 5, 0 },
	{ PAST, 15, 0 },
	{ NUMBER, 6, WF_TOOLS_PEERS },
	{ NUMBER, 4, WF_TOOLS_OUT },
	{ NUMBER, 1, WF_TOOLS_OUT_BYTES },
	{ NUMBER, 4, WF_TOOLS_IN },
	{ NUMBER, 1, WF_TOOLS_IN_BYTES },
	{ NUMBER, 7, WF_TOOLS_NET_BYTES },
	{ NUMBER, 9, WF_TOOLS_UNANSWERED },
	{ NUMBER, 10, WF_TOOLS_UNEXPECTED },
	{ NUMBER, 12, WF_TOOLS_PENDING },
	{ NUMBER, 16, WF_TOOLS_SLEEPS },
	{ NUMBER, 17, WF_TOOLS_REFUSED },
	{ NUMBER, 18, WF_TOOLS_LOST },
	{ NUMBER, 19, WF_TOOLS_RMA },
	{ NUMBER, 19, WF_TOOLS_RMA_BYTES },
	{ NUMBER, 20, WF_TOOLS_ATOMICS },
	{ NUMBER, 21, WF_TOOLS_RETRANSMITS },
	{ NUMBER, 22, WF_TOOLS_RTT },
	{ NUMBER, 23, WF_TOOLS_RING_BYTES },
	{ NUMBER, 23, WF_TOOLS_CMA_BYTES },
};

static const struct column network_page[] = {
	{ PID, 0, 0 },
	{ RANK, 2, 0 },
	{ JOB, 18, 0 },
	{ COMMAND, 0, 0 },
	{ ADDRESS, 6, 0 },
	{ NUMBER, 5, WF_TOOLS_NET_PEERS },
	{ NUMBER, 1, WF_TOOLS_NET_OUT_BYTES },
	{ NUMBER, 1, WF_TOOLS_NET_IN_BYTES },
	{ NUMBER, 10, WF_TOOLS_PACKETS_OUT },
	{ NUMBER, 10, WF_TOOLS_PACKETS_IN },
	{ NUMBER, 4, WF_TOOLS_RTT },
	{ NUMBER, 3, WF_TOOLS_RETRANSMITS },
	{ NUMBER, 11, WF_TOOLS_LOSSES },
	{ NUMBER, 13, WF_TOOLS_WINDOW },
	{ NUMBER, 14, WF_TOOLS_NET_PENDING },
	{ NUMBER, 7, WF_TOOLS_NET_UNANSWERED },
	{ NUMBER, 15, WF_TOOLS_NET_LOST },
	{ NUMBER, 16, WF_TOOLS_REORDERED },
	{ NUMBER, 17, WF_TOOLS_DUPLICATES },
	{ NUMBER, 12, WF_TOOLS_DROPS },
	{ NUMBER, 20, WF_TOOLS_TLS_REFUSED },
	{ NUMBER, 19, WF_TOOLS_WIRE_OUT },
	{ NUMBER, 19, WF_TOOLS_WIRE_IN },
	{ NUMBER, 21, WF_TOOLS_NET_CALLS },
};

struct page {
	const struct column *columns;
	size_t count;
};

static const struct page pages[] = {
	{ general, sizeof(general) / sizeof(general[0]) },
	{ network_page, sizeof(network_page) / sizeof(network_page[0]) },
};

/* -- columns --------------------------------------------------------------- */

struct layout {
	const struct page *page;
	int widths[MAX_COLUMNS]; /* 0: left out */
};

/* An extent says what there is among all rows. */
struct extent {
	bool packets;
	int rank, job, command, address; /* lengths; 0: none */
};

static void extend(int *to, const char *text)
{
	int len = (int)strlen(text);

	*to = len > *to ? len : *to;
}

static struct extent measure(const struct wf_tools_sheet *sheet)
{
	struct extent all = { .command = COMMAND_MIN, .address = ADDRESS_MIN };
	char text[16];

	for (size_t i = 0; i < sheet->count; i++) {
		const struct wf_tools_endpoint *ep = sheet->rows[i]->now;

		if (ep->job.rank >= 0) {
			snprintf(text, sizeof(text), "%*d", RANK_MIN,
				 ep->job.rank);
			extend(&all.rank, text);
		}
		all.packets |= ep->packets.count > 0;
		extend(&all.job, ep->job.id);
		extend(&all.command, ep->command);
		extend(&all.address, ep->page.name);
	}
	return all;
}

static int least_width(const struct wf_tools_sheet *sheet,
		       const struct column *column, const struct extent *all)
{
	size_t len, least = NUMBER_MIN;

	switch (column->content) {
	case PID:
		return PID_WIDTH;
	case RANK:
		return all->rank;
	case JOB:
		return all->job && all->job < JOB_MIN ? JOB_MIN : all->job;
	case COMMAND:
		return COMMAND_MIN;
	case ADDRESS:
		return ADDRESS_MIN;
	case PAST:
		return sheet->paint->terminal ? PAST_WIDTH : 0;
	default:
		break;
	}
	if (!all->packets && (column->quantity == WF_TOOLS_NET_BYTES ||
			      column->quantity == WF_TOOLS_RETRANSMITS ||
			      column->quantity == WF_TOOLS_RTT))
		return 0;
	if (column->quantity == WF_TOOLS_RTT)
		least = TIME_MIN;
	len = strlen(wf_tools_quantity_title(column->quantity));
	return (int)(len < least ? least : len);
}

/* Takes from what is @left. */
static void grow(struct layout *layout, enum content content, int wish,
		 int *left)
{
	for (size_t i = 0; i < layout->page->count; i++) {
		int more = wish - layout->widths[i];

		if (layout->page->columns[i].content != content ||
		    !layout->widths[i] || more <= 0)
			continue;
		more = more > *left ? *left : more;
		layout->widths[i] += more;
		*left -= more;
	}
}

static void add_order(struct layout *layout, const struct wf_tools_sheet *sheet,
		      const struct extent *all, int order, int *left)
{
	int widths[MAX_COLUMNS] = { 0 }, sum = 0;

	for (size_t i = 0; i < layout->page->count; i++) {
		const struct column *column = &layout->page->columns[i];

		if (column->order == order)
			widths[i] = least_width(sheet, column, all);
		sum += widths[i] ? widths[i] + 1 : 0;
	}
	if (order && sum > *left)
		return;
	*left -= sum;
	for (size_t i = 0; i < layout->page->count; i++)
		layout->widths[i] += widths[i];
}

static struct layout lay_out(const struct wf_tools_sheet *sheet, bool network)
{
	struct layout layout = { .page = &pages[network] };
	struct extent all = measure(sheet);
	int left = (int)sheet->width + 1; /* no blank before the first */

	for (int order = 0; order < ORDER_LAST; order++) {
		if (order == ORDER_TEXTS && left > 0) {
			grow(&layout, ADDRESS, all.address, &left);
			grow(&layout, COMMAND, all.command, &left);
		}
		add_order(&layout, sheet, &all, order, &left);
	}
	/* Where not even the address had room. */
	if (left > 0)
		grow(&layout, COMMAND, all.command, &left);
	return layout;
}

/* -- lines ----------------------------------------------------------------- */

/* Cut at its width; a '+' says so. */
static void write_text(FILE *out, const char *text, int width)
{
	bool cut = (int)strlen(text) > width;

	fprintf(out, "%-*.*s%s", cut ? width - 1 : width,
		cut ? width - 1 : width, text, cut ? "+" : "");
}

static const char *const titles[] = {
	[PID] = "PID",	       [RANK] = "RANK",	      [JOB] = "JOB",
	[COMMAND] = "COMMAND", [ADDRESS] = "ADDRESS", [PAST] = "BYTES/s",
};

static bool is_sorted(const struct wf_tools_sheet *sheet,
		      const struct column *column)
{
	if (column->content == NUMBER)
		return column->quantity == wf_tools_sort_column(sheet->sort);
	return (column->content == PID && sheet->sort == WF_TOOLS_BY_PID) ||
	       (column->content == RANK && sheet->sort == WF_TOOLS_BY_RANK);
}

static void write_head(const struct wf_tools_sheet *sheet,
		       const struct layout *layout, FILE *out)
{
	const char *before = "";

	fputs(wf_tools_paint(sheet->paint, WF_TOOLS_HEAD), out);
	for (size_t i = 0; i < layout->page->count; i++) {
		const struct column *column = &layout->page->columns[i];
		bool text = column->content >= JOB;
		const char *title =
			column->content == NUMBER ?
				wf_tools_quantity_title(column->quantity) :
				titles[column->content];
		int pad = layout->widths[i] - (int)strlen(title);

		if (!layout->widths[i])
			continue;
		fprintf(out, "%s%*s", before, text ? 0 : pad, "");
		if (is_sorted(sheet, column))
			fprintf(out, "%s%s%s",
				wf_tools_paint(sheet->paint, WF_TOOLS_SORTED),
				title,
				wf_tools_paint(sheet->paint, WF_TOOLS_HEAD));
		else
			fputs(title, out);
		fprintf(out, "%*s", text && pad > 0 ? pad : 0, "");
		before = " ";
	}
	fprintf(out, "%s\n", wf_tools_paint(sheet->paint, WF_TOOLS_NORMAL));
}

static enum wf_tools_style style_of(enum wf_tools_quantity q, double value)
{
	if (value <= 0)
		return WF_TOOLS_FAINT;
	switch (q) {
	case WF_TOOLS_UNANSWERED:
	case WF_TOOLS_NET_UNANSWERED:
	case WF_TOOLS_LOST:
	case WF_TOOLS_NET_LOST:
	case WF_TOOLS_TLS_REFUSED:
		return WF_TOOLS_TROUBLE;
	case WF_TOOLS_REFUSED:
	case WF_TOOLS_RETRANSMITS:
	case WF_TOOLS_LOSSES:
	case WF_TOOLS_DROPS:
		return WF_TOOLS_WARNING;
	default:
		return WF_TOOLS_NORMAL;
	}
}

static void write_number(const struct wf_tools_sheet *sheet,
			 const struct wf_tools_row *row,
			 enum wf_tools_quantity q, int width,
			 enum wf_tools_style base, FILE *out)
{
	double value = wf_tools_row_value(row, q);
	enum wf_tools_style style = style_of(q, value);
	char text[WF_TOOLS_SCALED_LEN];

	if (base == WF_TOOLS_SELECTED)
		style = base;
	fprintf(out, "%s%*s%s", wf_tools_paint(sheet->paint, style), width,
		wf_tools_quantity_text(q, value, text),
		wf_tools_paint(sheet->paint, base));
}

static void write_past(const struct wf_tools_sheet *sheet,
		       const struct wf_tools_row *row, int width,
		       enum wf_tools_style base, FILE *out)
{
	if (base != WF_TOOLS_SELECTED)
		fputs(wf_tools_paint(sheet->paint, WF_TOOLS_BYTES), out);
	wf_tools_graph_bars(row->past, WF_TOOLS_PAST, (unsigned)width,
			    sheet->paint, out);
	fputs(wf_tools_paint(sheet->paint, base), out);
}

static void write_cell(const struct wf_tools_sheet *sheet,
		       const struct wf_tools_row *row,
		       const struct column *column, int width,
		       enum wf_tools_style base, FILE *out)
{
	const struct wf_tools_endpoint *ep = row->now;

	switch (column->content) {
	case PID:
		fprintf(out, "%*d", width, (int)ep->pid);
		break;
	case RANK:
		if (ep->job.rank >= 0)
			fprintf(out, "%*d", width, ep->job.rank);
		else
			fprintf(out, "%*s", width, "-");
		break;
	case JOB:
		write_text(out, ep->job.id, width);
		break;
	case COMMAND:
		write_text(out, ep->command, width);
		break;
	case ADDRESS:
		write_text(out, ep->page.name, width);
		break;
	case PAST:
		write_past(sheet, row, width, base, out);
		break;
	case NUMBER:
		write_number(sheet, row, column->quantity, width, base, out);
		break;
	}
}

static void write_line(const struct wf_tools_sheet *sheet, size_t i,
		       const struct layout *layout, FILE *out)
{
	const struct wf_tools_row *row = sheet->rows[i];
	enum wf_tools_style base = i == sheet->selected ? WF_TOOLS_SELECTED :
				   wf_tools_row_messages(row) > 0 ?
							  WF_TOOLS_NORMAL :
							  WF_TOOLS_FAINT;
	const char *before = "";

	fputs(wf_tools_paint(sheet->paint, base), out);
	for (size_t c = 0; c < layout->page->count; c++) {
		if (!layout->widths[c])
			continue;
		fputs(before, out);
		write_cell(sheet, row, &layout->page->columns[c],
			   layout->widths[c], base, out);
		before = " ";
	}
	fprintf(out, "%s\n", wf_tools_paint(sheet->paint, WF_TOOLS_NORMAL));
}

void wf_tools_endpoints_write(const struct wf_tools_sheet *sheet, bool network,
			      size_t first, size_t n, FILE *out)
{
	struct layout layout = lay_out(sheet, network);

	write_head(sheet, &layout, out);
	for (size_t i = first; i < first + n; i++)
		write_line(sheet, i, &layout, out);
}
