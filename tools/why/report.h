/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header prints the result, for people and for programs.
 */
#ifndef WF_TOOLS_WHY_REPORT_H
#define WF_TOOLS_WHY_REPORT_H

#include "tools/why/graph.h"
#include "tools/why/words.h"

/* Which processes are shown: by place in graph->nodes. */
struct wf_tools_why_view {
	const struct wf_tools_graph *graph;
	const bool *shown;
	bool all;      /* also those that wait for nothing */
	size_t width;  /* of lines; 0: as long as they are */
	size_t height; /* of the terminal; 0: it is none */
};

/* Whether @culprit is what a process that is shown waits for. */
bool wf_tools_why_is_shown(const struct wf_tools_why_view *view,
			   const struct wf_tools_culprit *culprit);

void wf_tools_why_text(const struct wf_tools_why_view *view, FILE *out);

/* Field names are an interface: they may grow, not change. */
void wf_tools_why_json(const struct wf_tools_why_view *view, FILE *out);

#endif
