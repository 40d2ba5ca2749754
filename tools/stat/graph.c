/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Draws bars. A bar that stands for anything above 0 is never empty.
 */
#include "tools/stat/graph.h"

#include <math.h>

#include "tools/stat/quantity.h"

#define LEVELS 8 /* of one character */

void wf_tools_series_add(struct wf_tools_series *series, double value)
{
	series->values[series->count++ % WF_TOOLS_GRAPH_PAST] = value;
}

/* How many of the newest values fit. */
static size_t visible(const struct wf_tools_graph *graph)
{
	size_t room = graph->width > WF_TOOLS_GRAPH_LABEL ?
			      graph->width - WF_TOOLS_GRAPH_LABEL :
			      0;
	size_t count = graph->series->count;

	count = count > WF_TOOLS_GRAPH_PAST ? WF_TOOLS_GRAPH_PAST : count;
	return count < room ? count : room;
}

/* @back: 1 is the newest. */
static double value_at(const struct wf_tools_series *series, size_t back)
{
	return series->values[(series->count - back) % WF_TOOLS_GRAPH_PAST];
}

/* 1, 2 or 5 times a power of ten, at least the largest value. */
static double full_bar(const struct wf_tools_graph *graph, size_t count)
{
	double most = 1, power;

	for (size_t back = 1; back <= count; back++)
		most = fmax(most, value_at(graph->series, back));
	power = pow(10, floor(log10(most)));
	if (most <= power)
		return power;
	return most <= 2 * power ? 2 * power :
	       most <= 5 * power ? 5 * power :
				   10 * power;
}

static int level_of(double value, double full, unsigned lines)
{
	int level = (int)lround(value / full * LEVELS * lines);

	return value > 0 && level < 1 ? 1 : level;
}

static void write_label(const struct wf_tools_graph *graph,
			const struct wf_tools_paint *paint, unsigned line,
			double full, FILE *out)
{
	char text[WF_TOOLS_SCALED_LEN];
	const char *label = "";

	if (!line)
		label = wf_tools_quantity_scaled(full, text);
	else if (line + 1 == graph->lines)
		label = graph->title;
	fprintf(out, "%s%*s %s", wf_tools_paint(paint, WF_TOOLS_FAINT),
		WF_TOOLS_GRAPH_LABEL - 1, label,
		wf_tools_paint(paint, graph->style));
}

void wf_tools_graph_line(const struct wf_tools_graph *graph,
			 const struct wf_tools_paint *paint, unsigned line,
			 FILE *out)
{
	size_t count = visible(graph);
	double full = full_bar(graph, count);
	int below = (int)(graph->lines - 1 - line) * LEVELS;

	write_label(graph, paint, line, full, out);
	for (size_t i = count + WF_TOOLS_GRAPH_LABEL; i < graph->width; i++)
		fputc(' ', out);
	for (size_t back = count; back; back--) {
		int level = level_of(value_at(graph->series, back), full,
				     graph->lines) -
			    below;

		fputs(wf_tools_paint_bar(paint, level < 0      ? 0 :
						level > LEVELS ? LEVELS :
								 level),
		      out);
	}
	fputs(wf_tools_paint(paint, WF_TOOLS_NORMAL), out);
}

void wf_tools_graph_bars(const float *values, size_t count, unsigned width,
			 const struct wf_tools_paint *paint, FILE *out)
{
	size_t first = count > width ? count - width : 0;
	double most = 1;

	for (size_t i = first; i < count; i++)
		most = fmax(most, values[i]);
	for (size_t i = first; i < count; i++)
		fputs(wf_tools_paint_bar(paint, level_of(values[i], most, 1)),
		      out);
}
