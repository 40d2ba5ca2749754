/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file holds the state of the live view, and changes it as keys say.
 */
#include "tools/stat/view.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/stat/keys.h"

/* How many times as much a row must have to take the place of another. */
#define MARGIN 1.25
#define SHORTEST_S 0.1
#define LONGEST_S 3600

/* -- which rows ------------------------------------------------------------ */

static bool passes(const struct wf_tools_view *view,
		   const struct wf_tools_row *row)
{
	const struct wf_tools_endpoint *ep = row->now;
	char text[192];

	if (view->page == WF_TOOLS_VIEW_NETWORK && !ep->packets.count)
		return false;
	if (view->busy_only && !wf_tools_scan_is_device(ep) &&
	    wf_tools_row_messages(row) <= 0)
		return false;
	snprintf(text, sizeof(text), "%d %s %s %s rank=%d ", (int)ep->pid,
		 ep->command, ep->page.name, ep->job.id, ep->job.rank);
	return strcasestr(text, view->filter);
}

static void list(struct wf_tools_view *view)
{
	bool devices = view->page == WF_TOOLS_VIEW_DEVICES;
	size_t first = devices ? view->rows.endpoints : 0;
	size_t end = devices ? view->rows.count : view->rows.endpoints;

	view->n_shown = 0;
	if (!view->shown)
		return;
	for (size_t i = first; i < end; i++) {
		if (passes(view, &view->rows.all[i]))
			view->shown[view->n_shown++] = &view->rows.all[i];
	}
}

bool wf_tools_view_has(const struct wf_tools_view *view,
		       enum wf_tools_view_page page)
{
	if (page == WF_TOOLS_VIEW_DEVICES)
		return view->rows.count > view->rows.endpoints;
	if (page != WF_TOOLS_VIEW_NETWORK)
		return true;
	for (size_t i = 0; i < view->rows.endpoints; i++) {
		if (view->rows.all[i].now->packets.count)
			return true;
	}
	return false;
}

size_t wf_tools_view_place(const struct wf_tools_view *view)
{
	for (size_t i = 0; view->chosen && i < view->n_shown; i++) {
		if (view->shown[i]->now == view->chosen)
			return i;
	}
	return SIZE_MAX;
}

/* -- what was seen --------------------------------------------------------- */

static void add_up(struct wf_tools_view *view)
{
	static const enum wf_tools_quantity wanted[] = {
		WF_TOOLS_OUT,	     WF_TOOLS_OUT_BYTES,
		WF_TOOLS_IN,	     WF_TOOLS_IN_BYTES,
		WF_TOOLS_RMA,	     WF_TOOLS_RMA_BYTES,
		WF_TOOLS_ATOMICS,    WF_TOOLS_PENDING,
		WF_TOOLS_UNEXPECTED, WF_TOOLS_UNANSWERED,
		WF_TOOLS_LOST,	     WF_TOOLS_NET_OUT_BYTES,
		WF_TOOLS_PACKETS_IN, WF_TOOLS_NET_IN_BYTES,
		WF_TOOLS_LOSSES,     WF_TOOLS_PACKETS_OUT,
		WF_TOOLS_RETRANSMITS
	};
	double *totals = view->totals;

	memset(view->totals, 0, sizeof(view->totals));
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		for (size_t k = 0; k < view->rows.endpoints; k++)
			totals[wanted[i]] += wf_tools_row_value(
				&view->rows.all[k], wanted[i]);
	}
	wf_tools_series_add(&view->series[WF_TOOLS_VIEW_BYTES],
			    totals[WF_TOOLS_OUT_BYTES] +
				    totals[WF_TOOLS_IN_BYTES] +
				    totals[WF_TOOLS_RMA_BYTES]);
	wf_tools_series_add(&view->series[WF_TOOLS_VIEW_MESSAGES],
			    totals[WF_TOOLS_OUT] + totals[WF_TOOLS_IN] +
				    totals[WF_TOOLS_RMA] +
				    totals[WF_TOOLS_ATOMICS]);
	wf_tools_series_add(&view->series[WF_TOOLS_VIEW_NET_BYTES],
			    totals[WF_TOOLS_NET_OUT_BYTES] +
				    totals[WF_TOOLS_NET_IN_BYTES]);
	wf_tools_series_add(&view->series[WF_TOOLS_VIEW_NET_PACKETS],
			    totals[WF_TOOLS_PACKETS_OUT] +
				    totals[WF_TOOLS_PACKETS_IN]);
}

int wf_tools_view_update(struct wf_tools_view *view,
			 const struct wf_tools_scan *scan)
{
	const struct wf_tools_row **shown =
		calloc(scan->count + 1, sizeof(*shown));
	int ret = shown ? wf_tools_rows_update(&view->rows, scan) : -ENOMEM;

	if (ret) {
		free(shown);
		return ret;
	}
	free(view->shown);
	view->shown = shown;
	if (view->chosen)
		view->chosen = wf_tools_scan_find(scan, view->chosen);
	/* The first scan has nothing to be compared with. */
	if (view->scan) {
		add_up(view);
		wf_tools_rows_sort(&view->rows, view->sort, MARGIN);
	}
	view->scan = scan;
	if (!wf_tools_view_has(view, view->page))
		view->page = WF_TOOLS_VIEW_ENDPOINTS;
	list(view);
	return 0;
}

void wf_tools_view_free(struct wf_tools_view *view)
{
	wf_tools_rows_free(&view->rows);
	free(view->shown);
	view->shown = NULL;
}

/* -- keys ------------------------------------------------------------------ */

static void go_to(struct wf_tools_view *view, enum wf_tools_view_page page)
{
	if (!wf_tools_view_has(view, page))
		return;
	view->page = page;
	view->top = 0;
}

static void next_page(struct wf_tools_view *view)
{
	enum wf_tools_view_page page = view->page;

	do
		page = (page + 1) % WF_TOOLS_VIEW_PAGES;
	while (!wf_tools_view_has(view, page));
	go_to(view, page);
}

static void sort_by(struct wf_tools_view *view, enum wf_tools_sort sort)
{
	view->sort = sort;
	view->top = 0;
	wf_tools_rows_sort(&view->rows, sort, MARGIN);
}

/* Moves what is chosen by rows; a page of text by lines. */
static void move(struct wf_tools_view *view, long by)
{
	size_t place = wf_tools_view_place(view);
	long to, last = (long)view->n_shown - 1;

	if (view->page == WF_TOOLS_VIEW_PATHS || view->help) {
		to = (long)view->top + by;
		view->top = to < 0 ? 0 : (size_t)to;
		return;
	}
	if (last < 0)
		return;
	to = place == SIZE_MAX ? (by == 1 ? 0 : by - 1) : (long)place + by;
	to = to < 0 ? 0 : to > last ? last : to;
	view->chosen = view->shown[to]->now;
}

static void escape(struct wf_tools_view *view)
{
	if (view->page == WF_TOOLS_VIEW_PATHS)
		go_to(view, WF_TOOLS_VIEW_ENDPOINTS);
	else if (view->chosen)
		view->chosen = NULL;
	else
		view->filter[0] = 0;
}

static void change_interval(struct wf_tools_view *view, double times)
{
	double interval = view->interval * times;

	if (interval >= SHORTEST_S && interval <= LONGEST_S)
		view->interval = interval;
}

static void type(struct wf_tools_view *view, int key)
{
	size_t len = strlen(view->filter);

	if (key == WF_TOOLS_KEY_ENTER || key == WF_TOOLS_KEY_ESCAPE) {
		view->typing = false;
		if (key == WF_TOOLS_KEY_ESCAPE)
			view->filter[0] = 0;
	} else if (key == WF_TOOLS_KEY_BACKSPACE) {
		if (len)
			view->filter[len - 1] = 0;
	} else if (key < 128 && isprint(key) &&
		   len + 1 < sizeof(view->filter)) {
		view->filter[len] = (char)key;
		view->filter[len + 1] = 0;
	}
	view->top = 0;
}

/* Keys that move. */
static bool moves(struct wf_tools_view *view, int key)
{
	long page = view->step ? (long)view->step : 1;
	long all = 1 << 20;

	switch (key) {
	case WF_TOOLS_KEY_UP:
	case 'k':
		move(view, -1);
		return true;
	case WF_TOOLS_KEY_DOWN:
	case 'j':
		move(view, 1);
		return true;
	case WF_TOOLS_KEY_PAGE_UP:
		move(view, -page);
		return true;
	case WF_TOOLS_KEY_PAGE_DOWN:
		move(view, page);
		return true;
	case WF_TOOLS_KEY_HOME:
		move(view, -all);
		return true;
	case WF_TOOLS_KEY_END:
		move(view, all);
		return true;
	default:
		return false;
	}
}

/* Keys that sort. */
static bool sorts(struct wf_tools_view *view, int key)
{
	static const char letters[WF_TOOLS_SORTS] = {
		[WF_TOOLS_BY_BYTES] = 'b',	[WF_TOOLS_BY_MESSAGES] = 'm',
		[WF_TOOLS_BY_UNEXPECTED] = 'u', [WF_TOOLS_BY_SLEEPS] = 'w',
		[WF_TOOLS_BY_PEERS] = 'e',	[WF_TOOLS_BY_RANK] = 'r',
		[WF_TOOLS_BY_PID] = 'p',
	};

	for (int i = 0; i < WF_TOOLS_SORTS; i++) {
		if (key == letters[i]) {
			sort_by(view, (enum wf_tools_sort)i);
			return true;
		}
	}
	if (key == 's')
		sort_by(view, (view->sort + 1) % WF_TOOLS_SORTS);
	return key == 's';
}

static void close_help(struct wf_tools_view *view)
{
	view->help = false;
	view->top = 0;
}

static void command(struct wf_tools_view *view, int key)
{
	switch (key) {
	case '?':
	case 'h':
		view->help = true;
		view->top = 0;
		break;
	case '/':
		view->typing = true;
		break;
	case 'i':
		view->busy_only = !view->busy_only;
		break;
	case 'g':
		view->no_graph = !view->no_graph;
		break;
	case ' ':
		view->paused = !view->paused;
		break;
	case '+':
		change_interval(view, 2);
		break;
	case '-':
		change_interval(view, 0.5);
		break;
	case WF_TOOLS_KEY_TAB:
		next_page(view);
		break;
	case WF_TOOLS_KEY_ENTER:
		if (view->page != WF_TOOLS_VIEW_DEVICES)
			go_to(view, WF_TOOLS_VIEW_PATHS);
		break;
	case WF_TOOLS_KEY_ESCAPE:
		escape(view);
		break;
	default:
		if (key >= '1' && key < '1' + WF_TOOLS_VIEW_PAGES)
			go_to(view, (enum wf_tools_view_page)(key - '1'));
		break;
	}
}

enum wf_tools_view_act wf_tools_view_key(struct wf_tools_view *view, int key)
{
	if (view->typing)
		type(view, key);
	else if (key == 'q' || key == 'Q')
		return WF_TOOLS_VIEW_QUIT;
	else if (moves(view, key))
		; /* also through the help */
	else if (view->help)
		close_help(view);
	else if (!sorts(view, key))
		command(view, key);
	list(view);
	return WF_TOOLS_VIEW_GO_ON;
}
