/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For programs: the same as JSON. Times are milliseconds.
 */
#include "tools/why/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/json.h"

#define X(name, text) text,
static const char *const kinds[] = { WF_WAIT_KINDS(X) };
static const char *const steps[] = { WF_WAIT_STEPS(X) };
static const char *const reasons[] = { WF_TOOLS_REASONS(X) };
#undef X

static uint64_t ms_since(const struct wf_tools_graph *graph, uint64_t then)
{
	uint64_t now = graph->waiters->now;

	return now > then ? (now - then) / WF_NS_PER_MS : 0;
}

/* Texts of several lines become one. */
static void write_words(struct wf_tools_json *json, const char *name,
			char *text)
{
	size_t len = text ? strlen(text) : 0;

	if (len && text[len - 1] == '\n')
		text[--len] = 0;
	for (size_t i = 0; i < len; i++)
		text[i] = text[i] == '\n' ? ' ' : text[i];
	wf_tools_json_text(json, name, text);
	free(text);
}

static void write_tag(struct wf_tools_json *json, const struct wf_wait *wait)
{
	char text[24];

	if (!(wait->flags & WF_WAIT_TAGGED)) {
		wf_tools_json_text(json, "tag", NULL);
		return;
	}
	/* As text: readers of JSON keep 53 bits of a number. */
	snprintf(text, sizeof(text), "0x%" PRIx64, wait->tag);
	wf_tools_json_text(json, "tag", text);
	snprintf(text, sizeof(text), "0x%" PRIx64, wait->ignore);
	wf_tools_json_text(json, "ignore", text);
}

static void write_wait(struct wf_tools_json *json,
		       const struct wf_tools_graph *graph,
		       const struct wf_tools_waiter *w,
		       const struct wf_wait *wait)
{
	const struct wf_tools_waiter *peer =
		wf_tools_waiters_peer(graph->waiters, w, wait);
	char *text = NULL;
	size_t len;
	FILE *memory = open_memstream(&text, &len);

	wf_tools_json_open(json, NULL, '{');
	wf_tools_json_text(json, "kind", kinds[wait->kind]);
	wf_tools_json_text(json, "step", steps[wait->step]);
	wf_tools_json_number(json, "since_ms", ms_since(graph, wait->since));
	wf_tools_json_number(json, "count", wait->count);
	wf_tools_json_text(json, "peer", wait->peer[0] ? wait->peer : NULL);
	if (peer)
		wf_tools_json_number(json, "peer_pid",
				     (uint64_t)peer->process.pid);
	wf_tools_json_bool(json, "anyone", wait->flags & WF_WAIT_ANYONE);
	wf_tools_json_text(json, "transport",
			   wait->flags & WF_WAIT_PACKETS ? "packets" :
							   "memory");
	wf_tools_json_text(json, "protocol",
			   wait->protocol[0] ? wait->protocol : NULL);
	write_tag(json, wait);
	wf_tools_json_number(json, "length", wait->len);
	wf_tools_json_number(json, "done", wait->done);
	if (memory) {
		wf_tools_words_wait(graph, w, wait, memory);
		fclose(memory);
	}
	write_words(json, "text", text);
	wf_tools_json_close(json, '}');
}

static void write_waiter(struct wf_tools_json *json,
			 const struct wf_tools_graph *graph,
			 const struct wf_tools_waiter *w)
{
	const struct wf_waits_bank *bank = &w->waits.bank;
	char state[2] = { w->process.state, 0 };

	wf_tools_json_open(json, NULL, '{');
	wf_tools_json_number(json, "pid", (uint64_t)w->process.pid);
	wf_tools_json_number(json, "uid", w->process.uid);
	wf_tools_json_text(json, "command", w->process.command);
	if (w->job.rank >= 0)
		wf_tools_json_number(json, "rank", (uint64_t)w->job.rank);
	if (w->job.id[0])
		wf_tools_json_text(json, "job", w->job.id);
	wf_tools_json_text(json, "address", w->waits.name);
	wf_tools_json_text(json, "state", state);
	wf_tools_json_bool(json, "asleep", w->waits.asleep);
	wf_tools_json_bool(json, "progress", wf_tools_graph_is_live(graph, w));
	wf_tools_json_number(json, "polled_ms",
			     ms_since(graph, w->waits.polled));
	wf_tools_json_number(json, "posted", bank->posted);
	wf_tools_json_number(json, "unexpected", bank->unexpected);
	wf_tools_json_number(json, "operations", bank->operations);
	wf_tools_json_number(json, "left_out", bank->left_out);
	wf_tools_json_open(json, "waits", '[');
	for (uint32_t i = 0; i < bank->count; i++)
		write_wait(json, graph, w, &bank->waits[i]);
	wf_tools_json_close(json, ']');
	wf_tools_json_close(json, '}');
}

static void write_culprit(struct wf_tools_json *json,
			  const struct wf_tools_graph *graph,
			  const struct wf_tools_culprit *culprit)
{
	char *text = NULL;
	size_t len;
	FILE *memory = open_memstream(&text, &len);

	wf_tools_json_open(json, NULL, '{');
	wf_tools_json_text(json, "reason", reasons[culprit->reason]);
	wf_tools_json_text(json, "address", culprit->address);
	wf_tools_json_open(json, "pids", '[');
	for (uint32_t i = 0; i < graph->node_count; i++) {
		const struct wf_tools_node *node = &graph->nodes[i];

		if (culprit->reason == WF_TOOLS_CYCLE ?
			    node->group == culprit->group :
			    node == culprit->node)
			wf_tools_json_number(
				json, NULL, (uint64_t)node->first->process.pid);
	}
	wf_tools_json_close(json, ']');
	wf_tools_json_number(json, "behind", culprit->behind);
	wf_tools_json_bool(json, "suspect", culprit->suspect);
	if (memory) {
		wf_tools_words_culprit(graph, culprit, memory);
		fclose(memory);
	}
	write_words(json, "text", text);
	wf_tools_json_close(json, '}');
}

void wf_tools_why_json(const struct wf_tools_why_view *view, FILE *out)
{
	const struct wf_tools_graph *graph = view->graph;
	struct wf_tools_json json = { .out = out };

	wf_tools_json_open(&json, NULL, '{');
	wf_tools_json_number(&json, "longer_than_ms",
			     graph->patience / WF_NS_PER_MS);
	wf_tools_json_open(&json, "culprits", '[');
	for (size_t i = 0; i < graph->culprit_count; i++) {
		if (wf_tools_why_is_shown(view, &graph->culprits[i]))
			write_culprit(&json, graph, &graph->culprits[i]);
	}
	wf_tools_json_close(&json, ']');
	wf_tools_json_open(&json, "idle", '[');
	for (size_t i = 0; i < graph->idle_count; i++) {
		if (wf_tools_why_is_shown(view, &graph->idle[i]))
			write_culprit(&json, graph, &graph->idle[i]);
	}
	wf_tools_json_close(&json, ']');
	wf_tools_json_open(&json, "endpoints", '[');
	for (uint32_t i = 0; i < graph->node_count; i++) {
		const struct wf_tools_node *node = &graph->nodes[i];

		for (size_t j = 0; j < node->endpoints && view->shown[i]; j++)
			write_waiter(&json, graph, node->first + j);
	}
	wf_tools_json_close(&json, ']');
	wf_tools_json_number(&json, "processes_denied", graph->waiters->denied);
	wf_tools_json_number(&json, "pages_unsound", graph->waiters->unsound);
	wf_tools_json_close(&json, '}');
}
