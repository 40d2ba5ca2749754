/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A graph keeps the values that were measured at each interval so far, and
 * draws them: bars side by side, the newest at the right.
 */
#ifndef WF_TOOLS_STAT_GRAPH_H
#define WF_TOOLS_STAT_GRAPH_H

#include <stddef.h>
#include <stdio.h>

#include "tools/paint.h"

enum { WF_TOOLS_GRAPH_PAST = 512, WF_TOOLS_GRAPH_LABEL = 7 };

struct wf_tools_series {
	double values[WF_TOOLS_GRAPH_PAST]; /* a ring */
	size_t count;			    /* so far, also those gone */
};

void wf_tools_series_add(struct wf_tools_series *series, double value);

struct wf_tools_graph {
	const struct wf_tools_series *series;
	const char *title; /* shorter than WF_TOOLS_GRAPH_LABEL */
	enum wf_tools_style style;
	unsigned width; /* with its label */
	unsigned lines;
};

/* Writes one of the lines, from 0 at the top, without its end; it is as wide as
 * the graph. The label of the top line is the value of a full bar: a round
 * number, so that it changes seldom. */
void wf_tools_graph_line(const struct wf_tools_graph *graph,
			 const struct wf_tools_paint *paint, unsigned line,
			 FILE *out);

/* The last @width of @count values in bars of one character each. */
void wf_tools_graph_bars(const float *values, size_t count, unsigned width,
			 const struct wf_tools_paint *paint, FILE *out);

#endif
