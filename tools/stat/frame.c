/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Draws the live view: title, totals, graphs, pages, a table, notes and keys.
 * Parts without room are left out, the least important first.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tools/stat/view.h"
#include "tools/wrap.h"

#define LINE_BYTES 1024
#define NARROW 44
#define SPLIT_WIDTH 76	/* from here on two graphs stand side by side */
#define GRAPH_HEIGHT 15 /* lines of a terminal that has room for a graph */
#define TALL_HEIGHT 30	/* ... and for a taller one */
#define NOTES_MOST 3

/* -- one line -------------------------------------------------------------- */

/* A line to which whole pieces are added; a piece that does not fit is left out. */
struct line {
	char text[LINE_BYTES];
	unsigned bytes;
	unsigned width, room;
};

static bool add(struct line *line, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static bool add(struct line *line, const char *format, ...)
{
	unsigned left = LINE_BYTES - line->bytes, width;
	char *to = line->text + line->bytes;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(to, left, format, args);
	va_end(args);
	if (len >= 0 && (unsigned)len < left) {
		width = wf_tools_paint_width(to, LINE_BYTES, NULL);
		if (line->width + width <= line->room) {
			line->width += width;
			line->bytes += (unsigned)len;
			return true;
		}
	}
	*to = 0;
	return false;
}

static void fill_up(struct line *line, unsigned width)
{
	while (line->width < width && add(line, " "))
		;
}

static struct line new_line(const struct wf_tools_view_frame *frame)
{
	return (struct line){ .room = frame->width };
}

static void write_line(const struct line *line,
		       const struct wf_tools_view_frame *frame, FILE *out)
{
	fprintf(out, "%s%s\n", line->text,
		wf_tools_paint(frame->paint, WF_TOOLS_NORMAL));
}

/* -- title and totals ------------------------------------------------------ */

static size_t count_processes(const struct wf_tools_view *view)
{
	size_t count = 0;

	for (size_t i = 0; view->scan && i < view->scan->count; i++) {
		const struct wf_tools_endpoint *ep = &view->scan->endpoints[i];

		/* Endpoints of one process are neighbours. */
		count += !wf_tools_scan_is_device(ep) &&
			 (!i || ep[-1].pid != ep->pid);
	}
	return count;
}

/* How many rows are of this kind. */
static size_t count_kind(const struct wf_tools_view *view,
			 enum wf_tools_kind kind)
{
	size_t count = 0;

	for (size_t i = view->rows.endpoints; i < view->rows.count; i++)
		count += wf_tools_scan_kind(view->rows.all[i].now) == kind;
	return count;
}

static void write_title(const struct wf_tools_view *view,
			const struct wf_tools_view_frame *frame, FILE *out)
{
	size_t endpoints = view->rows.endpoints;
	size_t processes = count_processes(view);
	size_t devices = count_kind(view, WF_TOOLS_DEVICE);
	size_t drivers = count_kind(view, WF_TOOLS_DRIVER);
	struct line line = new_line(frame);
	struct line right = new_line(frame);

	if (view->paused)
		add(&right, "PAUSED  ");
	else if (frame->width >= 60)
		add(&right, "every %g s  ", view->interval);
	add(&right, "%s ", frame->clock);
	line.room -= right.width;
	add(&line, "%s weft stat",
	    wf_tools_paint(frame->paint, WF_TOOLS_TITLE));
	if (frame->width >= 60)
		add(&line, "  %s", frame->host);
	if (!add(&line, "  %zu endpoint%s in %zu process%s", endpoints,
		 endpoints == 1 ? "" : "s", processes,
		 processes == 1 ? "" : "es"))
		add(&line, "  %zu endpoint%s", endpoints,
		    endpoints == 1 ? "" : "s");
	if (devices)
		add(&line, ", %zu device%s", devices, devices == 1 ? "" : "s");
	if (drivers)
		add(&line, ", %zu driver%s", drivers, drivers == 1 ? "" : "s");
	fill_up(&line, line.room);
	line.room = frame->width;
	add(&line, "%s", right.text);
	write_line(&line, frame, out);
}

static bool add_total(struct line *line, const struct wf_tools_view *view,
		      const struct wf_tools_view_frame *frame,
		      const char *label, enum wf_tools_quantity count,
		      enum wf_tools_quantity bytes)
{
	char one[WF_TOOLS_SCALED_LEN], two[WF_TOOLS_SCALED_LEN];

	wf_tools_quantity_scaled(view->totals[count], one);
	wf_tools_quantity_scaled(view->totals[bytes], two);
	return add(line, "%s%s%s %s%5s/s %5sB/s",
		   !line->width		 ? "" :
		   frame->width < NARROW ? " " :
					   "  ",
		   wf_tools_paint(frame->paint, WF_TOOLS_FAINT), label,
		   wf_tools_paint(frame->paint, WF_TOOLS_STRONG), one, two);
}

static void add_state(struct line *line, const struct wf_tools_view *view,
		      const struct wf_tools_view_frame *frame,
		      const char *label, enum wf_tools_quantity q,
		      enum wf_tools_style style)
{
	char text[WF_TOOLS_SCALED_LEN];

	if (view->totals[q] > 0)
		add(line, "  %s%s %s%s%s",
		    wf_tools_paint(frame->paint, WF_TOOLS_FAINT), label,
		    wf_tools_paint(frame->paint, style),
		    wf_tools_quantity_scaled(view->totals[q], text),
		    wf_tools_paint(frame->paint, WF_TOOLS_NORMAL));
}

static void write_totals(const struct wf_tools_view *view,
			 const struct wf_tools_view_frame *frame, FILE *out)
{
	struct line line = new_line(frame);
	bool network = view->page == WF_TOOLS_VIEW_NETWORK;

	if (frame->width >= NARROW)
		add(&line, " ");
	if (network) {
		add_total(&line, view, frame,
			  frame->width < NARROW ? "out" : "packets out",
			  WF_TOOLS_PACKETS_OUT, WF_TOOLS_NET_OUT_BYTES);
		add_total(&line, view, frame, "in", WF_TOOLS_PACKETS_IN,
			  WF_TOOLS_NET_IN_BYTES);
		add_state(&line, view, frame, "resent/s", WF_TOOLS_RETRANSMITS,
			  WF_TOOLS_WARNING);
	} else {
		add_total(&line, view, frame, "out", WF_TOOLS_OUT,
			  WF_TOOLS_OUT_BYTES);
		add_total(&line, view, frame, "in", WF_TOOLS_IN,
			  WF_TOOLS_IN_BYTES);
		if (view->totals[WF_TOOLS_RMA] > 0)
			add_total(&line, view, frame, "RMA", WF_TOOLS_RMA,
				  WF_TOOLS_RMA_BYTES);
	}
	add_state(&line, view, frame, "unanswered", WF_TOOLS_UNANSWERED,
		  WF_TOOLS_TROUBLE);
	add_state(&line, view, frame, "lost", WF_TOOLS_LOST, WF_TOOLS_TROUBLE);
	add_state(&line, view, frame, "pending", WF_TOOLS_PENDING,
		  WF_TOOLS_STRONG);
	add_state(&line, view, frame, "unexpected", WF_TOOLS_UNEXPECTED,
		  WF_TOOLS_STRONG);
	add_state(&line, view, frame, "atomics/s", WF_TOOLS_ATOMICS,
		  WF_TOOLS_STRONG);
	write_line(&line, frame, out);
}

/* -- graphs ---------------------------------------------------------------- */

static unsigned graph_lines(const struct wf_tools_view *view,
			    const struct wf_tools_view_frame *frame)
{
	if (view->no_graph || frame->height < GRAPH_HEIGHT)
		return 0;
	return frame->height < TALL_HEIGHT ? 3 : 4;
}

static void write_graphs(const struct wf_tools_view *view,
			 const struct wf_tools_view_frame *frame, FILE *out)
{
	bool network = view->page == WF_TOOLS_VIEW_NETWORK;
	bool split = frame->width >= SPLIT_WIDTH;
	struct wf_tools_graph bytes = {
		.series = &view->series[network ? WF_TOOLS_VIEW_NET_BYTES :
						  WF_TOOLS_VIEW_BYTES],
		.title = "B/s",
		.style = WF_TOOLS_BYTES,
		.width = split ? (frame->width - 1) / 2 : frame->width,
		.lines = graph_lines(view, frame),
	};
	struct wf_tools_graph messages = bytes;

	messages.series = &view->series[network ? WF_TOOLS_VIEW_NET_PACKETS :
						  WF_TOOLS_VIEW_MESSAGES];
	messages.title = network ? "pkt/s" : "msg/s";
	messages.style = WF_TOOLS_MESSAGES;
	for (unsigned i = 0; i < bytes.lines; i++) {
		wf_tools_graph_line(&bytes, frame->paint, i, out);
		if (split) {
			fputc(' ', out);
			wf_tools_graph_line(&messages, frame->paint, i, out);
		}
		fputc('\n', out);
	}
}

/* -- pages ----------------------------------------------------------------- */

static const char *const page_names[WF_TOOLS_VIEW_PAGES] = {
	[WF_TOOLS_VIEW_ENDPOINTS] = "Endpoints",
	[WF_TOOLS_VIEW_NETWORK] = "Network",
	[WF_TOOLS_VIEW_PATHS] = "Paths",
	[WF_TOOLS_VIEW_DEVICES] = "Devices",
};

static void write_pages(const struct wf_tools_view *view,
			const struct wf_tools_view_frame *frame,
			const char *position, FILE *out)
{
	struct line line = new_line(frame), right = new_line(frame);

	for (int i = 0; i < WF_TOOLS_VIEW_PAGES; i++) {
		bool here = i == (int)view->page;

		if (wf_tools_view_has(view, (enum wf_tools_view_page)i))
			add(&line, "%s%d %s%s%s",
			    wf_tools_paint(frame->paint,
					   here ? WF_TOOLS_SELECTED :
						  WF_TOOLS_FAINT),
			    i + 1, page_names[i],
			    wf_tools_paint(frame->paint, WF_TOOLS_NORMAL),
			    i + 1 < WF_TOOLS_VIEW_PAGES ? " " : "");
	}
	right.room = line.room - line.width;
	if (view->filter[0])
		add(&right, " %s/%s",
		    wf_tools_paint(frame->paint, WF_TOOLS_WARNING),
		    view->filter);
	add(&right, "%s", wf_tools_paint(frame->paint, WF_TOOLS_FAINT));
	if (view->busy_only)
		add(&right, " busy only");
	if (view->page < WF_TOOLS_VIEW_PATHS)
		add(&right, " sorted by %s", wf_tools_sort_name(view->sort));
	add(&right, "%s", position);
	fill_up(&line, line.room - right.width);
	add(&line, "%s", right.text);
	write_line(&line, frame, out);
}

/* -- tables ---------------------------------------------------------------- */

static void write_empty(const struct wf_tools_view *view,
			const struct wf_tools_view_frame *frame, FILE *out)
{
	const char *faint = wf_tools_paint(frame->paint, WF_TOOLS_FAINT);

	if (view->filter[0] || view->busy_only)
		fprintf(out,
			"\n%s  No endpoint passes the filter.\n"
			"%s  Esc clears it; i shows idle endpoints.\n",
			faint, faint);
	else
		fprintf(out,
			"\n%s  No weft endpoint is open here now.\n"
			"%s  It appears when a program opens one.\n",
			faint, faint);
}

/* Puts the chosen row among the @room lines that are shown, and returns how many
 * there are. */
static size_t scroll(struct wf_tools_view *view, size_t place, size_t room)
{
	size_t most = view->n_shown > room ? view->n_shown - room : 0;

	if (place != SIZE_MAX && place < view->top)
		view->top = place;
	if (place != SIZE_MAX && place >= view->top + room)
		view->top = place + 1 - room;
	view->top = view->top > most ? most : view->top;
	view->step = room;
	return view->n_shown < room ? view->n_shown : room;
}

/* The devices, where endpoints leave room for all of them. */
static void write_devices_below(const struct wf_tools_view *view,
				const struct wf_tools_sheet *sheet, size_t room,
				FILE *out)
{
	size_t count = view->rows.count - view->rows.endpoints;
	const struct wf_tools_row **rows = calloc(count + 1, sizeof(*rows));
	struct wf_tools_sheet devices = *sheet;

	if (rows && count && room >= count + 2 && !view->filter[0]) {
		for (size_t i = 0; i < count; i++)
			rows[i] = &view->rows.all[view->rows.endpoints + i];
		devices.rows = rows;
		devices.count = count;
		fputc('\n', out);
		wf_tools_devices_write(&devices, 0, count, out);
	}
	free(rows);
}

/* A text that is longer than the screen is shown from the line @top on, and its
 * last line says that there is more. */
static void write_text(struct wf_tools_view *view,
		       const struct wf_tools_view_frame *frame,
		       const char *text, size_t room, FILE *out)
{
	size_t lines = 0, below;

	for (const char *at = text; *at; at++)
		lines += *at == '\n';
	if (view->top + room > lines)
		view->top = lines > room ? lines - room : 0;
	view->step = room;
	for (size_t i = 0; i < view->top; i++)
		text = strchr(text, '\n') + 1;
	below = lines - view->top > room ? lines - view->top - room : 0;
	for (size_t i = 0; i < room && *text && !(below && i + 1 == room);
	     i++) {
		size_t len = strcspn(text, "\n") + 1;

		fwrite(text, 1, len, out);
		text += len;
	}
	if (below)
		fprintf(out, "%s  %zu more lines: down, PgDn%s\n",
			wf_tools_paint(frame->paint, WF_TOOLS_FAINT), below + 1,
			wf_tools_paint(frame->paint, WF_TOOLS_NORMAL));
}

static void write_long(struct wf_tools_view *view, struct wf_tools_sheet *sheet,
		       const struct wf_tools_view_frame *frame, size_t room,
		       FILE *out)
{
	char *text = NULL;
	size_t size;
	FILE *all = open_memstream(&text, &size);

	if (!all)
		return;
	if (sheet->selected != SIZE_MAX) {
		sheet->rows += sheet->selected;
		sheet->count = 1;
	}
	if (view->help)
		wf_tools_view_help(frame, all);
	else
		wf_tools_paths_write(sheet, all);
	if (!fclose(all))
		write_text(view, frame, text, room, out);
	free(text);
}

static void write_body(struct wf_tools_view *view,
		       const struct wf_tools_view_frame *frame, size_t room,
		       char position[32], FILE *out)
{
	struct wf_tools_sheet sheet = {
		.rows = view->shown,
		.count = view->n_shown,
		.selected = wf_tools_view_place(view),
		.sort = view->sort,
		.width = frame->width,
		.paint = frame->paint,
	};
	size_t n;

	if (view->help ||
	    (view->n_shown && view->page == WF_TOOLS_VIEW_PATHS)) {
		write_long(view, &sheet, frame, room, out);
		return;
	}
	if (!view->n_shown)
		write_empty(view, frame, out);
	if (!view->n_shown || room < 2) {
		write_devices_below(view, &sheet, room > 3 ? room - 3 : 0, out);
		return;
	}
	n = scroll(view, sheet.selected, room - 1);
	if (n < view->n_shown)
		snprintf(position, 32, "  %zu-%zu of %zu", view->top + 1,
			 view->top + n, view->n_shown);
	if (view->page == WF_TOOLS_VIEW_DEVICES) {
		wf_tools_devices_write(&sheet, view->top, n, out);
		return;
	}
	wf_tools_endpoints_write(&sheet, view->page == WF_TOOLS_VIEW_NETWORK,
				 view->top, n, out);
	if (view->page == WF_TOOLS_VIEW_ENDPOINTS)
		write_devices_below(view, &sheet, room - 1 - n, out);
}

/* -- notes and keys -------------------------------------------------------- */

/* Breaks long notes between words. */
static unsigned write_notes(const struct wf_tools_view_frame *frame, FILE *out)
{
	const char *at = frame->notes;
	unsigned lines = 0;

	while (*at && lines < NOTES_MOST) {
		size_t cut = wf_tools_wrap_cut(at, frame->width);

		fprintf(out, "%s%.*s%s\n",
			wf_tools_paint(frame->paint, WF_TOOLS_WARNING),
			(int)cut, at,
			wf_tools_paint(frame->paint, WF_TOOLS_NORMAL));
		at += cut;
		at += *at == ' ' || *at == '\n';
		lines++;
	}
	return lines;
}

static void write_keys(const struct wf_tools_view *view,
		       const struct wf_tools_view_frame *frame, FILE *out)
{
	static const char *const keys[][2] = {
		{ "q", "quit" },      { "?", "help" },	 { "s", "sort" },
		{ "/", "filter" },    { "tab", "page" }, { "enter", "paths" },
		{ "space", "pause" }, { "i", "idle" },	 { "g", "graph" },
		{ "+-", "interval" },
	};
	struct line line = new_line(frame);

	if (view->typing) {
		add(&line, "%sfilter: %s%s%s_",
		    wf_tools_paint(frame->paint, WF_TOOLS_KEY),
		    wf_tools_paint(frame->paint, WF_TOOLS_STRONG), view->filter,
		    wf_tools_paint(frame->paint, WF_TOOLS_FAINT));
		add(&line, "   Enter keeps it, Esc clears it");
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (view->typing ||
		    !add(&line, "%s%s%s %s%s", line.width ? "  " : "",
			 wf_tools_paint(frame->paint, WF_TOOLS_KEY), keys[i][0],
			 wf_tools_paint(frame->paint, WF_TOOLS_FAINT),
			 keys[i][1]))
			break;
	}
	fputs(line.text, out);
	fputs(wf_tools_paint(frame->paint, WF_TOOLS_NORMAL), out);
}

/* -- all of it ------------------------------------------------------------- */

/* Copies at most @room lines and fills up with empty ones. */
static void write_lines(const char *text, size_t room, FILE *out)
{
	while (room--) {
		size_t len = strcspn(text, "\n");

		fprintf(out, "%.*s\n", (int)len, text);
		text += len + (text[len] == '\n');
	}
}

void wf_tools_view_draw(struct wf_tools_view *view,
			const struct wf_tools_view_frame *frame, FILE *out)
{
	bool tall = frame->height >= 8;
	unsigned used = !tall	   ? 0 :
			view->help ? 2 :
				     4 + graph_lines(view, frame);
	char *body = NULL, *notes = NULL, position[32] = "";
	size_t size;
	FILE *part = open_memstream(&notes, &size);

	if (!part)
		return;
	if (tall && !view->help)
		used += write_notes(frame, part);
	fclose(part);
	part = open_memstream(&body, &size);
	if (notes && part) {
		write_body(view, frame, frame->height - used, position, part);
		fclose(part);
		if (tall)
			write_title(view, frame, out);
		if (tall && !view->help) {
			write_totals(view, frame, out);
			write_graphs(view, frame, out);
			write_pages(view, frame, position, out);
		}
		write_lines(body, frame->height - used, out);
		fputs(notes, out);
		if (tall)
			write_keys(view, frame, out);
	}
	free(body);
	free(notes);
}
