/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For people: who is to blame first, then who waits for what.
 */
#include "tools/why/report.h"

#include <stdlib.h>
#include <string.h>

#include "tools/wrap.h"

bool wf_tools_why_is_shown(const struct wf_tools_why_view *view,
			   const struct wf_tools_culprit *culprit)
{
	const struct wf_tools_graph *graph = view->graph;

	if (culprit->reason == WF_TOOLS_CYCLE) {
		for (uint32_t i = 0; i < graph->node_count; i++) {
			if (view->shown[i] &&
			    graph->nodes[i].group == culprit->group)
				return true;
		}
		return false;
	}
	if (culprit->node)
		return view->shown[culprit->node - graph->nodes];
	for (size_t i = 0; i < graph->edge_count; i++) {
		const struct wf_tools_edge *edge = &graph->edges[i];

		if (!edge->to && view->shown[edge->from_node - graph->nodes] &&
		    !strcmp(edge->wait->peer, culprit->address))
			return true;
	}
	return false;
}

/* Its lines, indented behind a word. */
static void write_culprit(const struct wf_tools_why_view *view,
			  const struct wf_tools_culprit *culprit, FILE *out)
{
	char *text = NULL;
	size_t len;
	FILE *memory = open_memstream(&text, &len);
	const char *head = culprit->reason == WF_TOOLS_ANYONE ? "idle" :
			   culprit->suspect		      ? "suspect" :
								"culprit";
	enum wf_tools_style style = culprit->reason == WF_TOOLS_ANYONE ?
					    WF_TOOLS_STRONG :
					    WF_TOOLS_TROUBLE;

	if (!memory)
		return;
	wf_tools_words_culprit(view->graph, culprit, memory);
	fclose(memory);
	for (char *line = text, *end; line && *line; line = end) {
		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = 0;
		fprintf(out, "%c%c%-8s %c%s\n",
			WF_TOOLS_WRAP_STYLED(*head ? style : WF_TOOLS_NORMAL),
			head, WF_TOOLS_WRAP_MARK, line);
		head = "";
	}
	if (culprit->behind > 1)
		fprintf(out,
			"%-8s %c%u processes %swait for it, directly or over "
			"others.\n",
			"", WF_TOOLS_WRAP_MARK, culprit->behind,
			culprit->suspect ? "may " : "");
	free(text);
}

static void write_waiter(const struct wf_tools_why_view *view,
			 const struct wf_tools_waiter *w, FILE *out)
{
	const struct wf_waits_bank *bank = &w->waits.bank;
	char age[WF_TOOLS_AGE_LEN];
	uint64_t now = view->graph->waiters->now;

	fprintf(out, "\n%c%c", WF_TOOLS_WRAP_STYLED(WF_TOOLS_STRONG));
	wf_tools_words_who(w, out);
	fprintf(out, ", %s, ", w->waits.name);
	wf_tools_words_state(view->graph, w, out);
	fputc('\n', out);
	for (uint32_t i = 0; i < bank->count; i++) {
		const struct wf_wait *wait = &bank->waits[i];
		uint64_t since = now > wait->since ? now - wait->since : 0;

		if (since < view->graph->patience && !view->all)
			continue;
		fprintf(out, "%12s  %c", wf_tools_words_age(since, age),
			WF_TOOLS_WRAP_MARK);
		wf_tools_words_wait(view->graph, w, wait, out);
		fputc('\n', out);
	}
	if (bank->left_out)
		fprintf(out, "%12s  and %u more waits\n", "", bank->left_out);
}

static bool has_old(const struct wf_tools_why_view *view,
		    const struct wf_tools_waiter *w)
{
	uint64_t now = view->graph->waiters->now;

	for (uint32_t i = 0; i < w->waits.bank.count; i++) {
		uint64_t since = w->waits.bank.waits[i].since;

		if (since <= now && now - since >= view->graph->patience)
			return true;
	}
	return false;
}

/* And those that are idle behind them: they are in the same array. */
static void write_culprits(const struct wf_tools_why_view *view, FILE *out)
{
	const struct wf_tools_graph *graph = view->graph;
	size_t count = graph->culprit_count + graph->idle_count;
	unsigned int culprits = 0;

	for (size_t i = 0; i < count; i++) {
		if (!wf_tools_why_is_shown(view, &graph->culprits[i]))
			continue;
		if (culprits++)
			fputc('\n', out);
		write_culprit(view, &graph->culprits[i], out);
	}
}

static void write_all(const struct wf_tools_why_view *view, FILE *out)
{
	const struct wf_tools_graph *graph = view->graph;
	char age[WF_TOOLS_AGE_LEN];
	unsigned int waiting = 0;

	for (uint32_t i = 0; i < graph->node_count; i++)
		waiting += view->shown[i] && graph->nodes[i].waits;
	if (!waiting)
		fprintf(out, "Nothing waits for longer than %s.\n",
			wf_tools_words_age(graph->patience, age));
	write_culprits(view, out);
	for (uint32_t i = 0; i < graph->node_count; i++) {
		const struct wf_tools_node *node = &graph->nodes[i];

		if (!view->shown[i])
			continue;
		for (size_t j = 0; j < node->endpoints; j++) {
			const struct wf_tools_waiter *w = node->first + j;

			if (view->all || has_old(view, w))
				write_waiter(view, w, out);
		}
	}
}

/* Writes the output of @write, in lines of the view. Returns how many. */
static size_t write_wrapped(const struct wf_tools_why_view *view,
			    void (*write)(const struct wf_tools_why_view *view,
					  FILE *out),
			    FILE *out)
{
	struct wf_tools_paint paint;
	char *text = NULL;
	size_t len, lines = 0;
	FILE *memory = open_memstream(&text, &len);

	if (!memory)
		return 0;
	write(view, memory);
	fclose(memory);
	wf_tools_paint_open(&paint, view->height);
	if (text)
		lines = wf_tools_wrap(text, view->width, &paint, out);
	free(text);
	return lines;
}

void wf_tools_why_text(const struct wf_tools_why_view *view, FILE *out)
{
	/* The line of the prompt is the last one. */
	if (write_wrapped(view, write_all, out) < view->height || !view->height)
		return;
	/* The first lines have left the screen: say who it is once more. */
	fputc('\n', out);
	write_wrapped(view, write_culprits, out);
}
