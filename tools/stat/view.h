/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The live view: what it has seen, what the user asked for by keys, and how
 * both become a screen of text. It uses neither the terminal nor a clock.
 */
#ifndef WF_TOOLS_STAT_VIEW_H
#define WF_TOOLS_STAT_VIEW_H

#include <stdio.h>

#include "tools/stat/graph.h"
#include "tools/stat/table.h"

enum wf_tools_view_page {
	WF_TOOLS_VIEW_ENDPOINTS,
	WF_TOOLS_VIEW_NETWORK,
	WF_TOOLS_VIEW_PATHS,
	WF_TOOLS_VIEW_DEVICES,
	WF_TOOLS_VIEW_PAGES,
};

/* Over all endpoints, by the second. */
enum wf_tools_view_series {
	WF_TOOLS_VIEW_BYTES,
	WF_TOOLS_VIEW_MESSAGES,
	WF_TOOLS_VIEW_NET_BYTES,
	WF_TOOLS_VIEW_NET_PACKETS,
	WF_TOOLS_VIEW_SERIES,
};

struct wf_tools_view {
	/* What the user asked for. */
	enum wf_tools_view_page page;
	enum wf_tools_sort sort;
	double interval; /* seconds */
	char filter[32]; /* "": none */
	bool typing;	 /* the filter */
	bool help;
	bool no_graph;
	bool busy_only;
	bool paused;
	/* The row that was chosen; NULL: none. It belongs to the newest scan. */
	const struct wf_tools_endpoint *chosen;
	size_t top;  /* first row, or line of the page, that is shown */
	size_t step; /* a page up or down; set when it is drawn */

	/* This is what was seen. */
	const struct wf_tools_scan *scan; /* the newest; NULL: none yet */
	struct wf_tools_rows rows;
	struct wf_tools_series series[WF_TOOLS_VIEW_SERIES];
	double totals[WF_TOOLS_QUANTITIES];
	/* The rows of the page that pass the filter, in order. */
	const struct wf_tools_row **shown;
	size_t n_shown;
};

enum wf_tools_view_act { WF_TOOLS_VIEW_GO_ON, WF_TOOLS_VIEW_QUIT };

/* Takes in a new scan; it and the one before it must stay. 0 or -ENOMEM. */
int wf_tools_view_update(struct wf_tools_view *view,
			 const struct wf_tools_scan *scan);

/* Reacts to a key of tools/stat/keys.h. */
enum wf_tools_view_act wf_tools_view_key(struct wf_tools_view *view, int key);

/* Whether the page has something to show. */
bool wf_tools_view_has(const struct wf_tools_view *view,
		       enum wf_tools_view_page page);

/* Where the chosen row stands among those shown; SIZE_MAX: nowhere. */
size_t wf_tools_view_place(const struct wf_tools_view *view);

struct wf_tools_view_frame {
	unsigned width, height;
	const struct wf_tools_paint *paint;
	const char *host;
	const char *clock;
	const char *notes; /* lines below the table; "": none */
};

/* Writes a screen: exactly @height lines, some of which may be too long. */
void wf_tools_view_draw(struct wf_tools_view *view,
			const struct wf_tools_view_frame *frame, FILE *out);

/* Writes the help screen, of as many lines as it needs. */
void wf_tools_view_help(const struct wf_tools_view_frame *frame, FILE *out);

void wf_tools_view_free(struct wf_tools_view *view);

#endif
