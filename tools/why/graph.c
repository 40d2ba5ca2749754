/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes the graph and finds where chains end: groups of processes that wait for
 * each other by Tarjan's algorithm, then those groups that wait for no other.
 * Edges of receives from anyone are added when it is known who makes no progress,
 * because they lead to such processes only: no circle has one.
 */
#include "tools/why/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool wf_tools_graph_is_live(const struct wf_tools_graph *graph,
			    const struct wf_tools_waiter *w)
{
	uint64_t now = graph->waiters->now;

	return w->waits.asleep || w->waits.polled > now ||
	       now - w->waits.polled <= graph->patience;
}

static bool is_old(const struct wf_tools_graph *graph,
		   const struct wf_wait *wait)
{
	uint64_t now = graph->waiters->now;

	return wait->since <= now && now - wait->since >= graph->patience;
}

/* -- nodes and edges --------------------------------------------------------- */

/* Processes whose state alone says that they make no progress. */
static void set_state(struct wf_tools_node *node)
{
	switch (node->first->process.state) {
	case 'T':
	case 't':
		node->ends = true;
		node->reason = WF_TOOLS_STOPPED;
		break;
	case 'Z':
	case 'X':
		node->ends = true;
		node->reason = WF_TOOLS_DEAD;
		break;
	default:
		break;
	}
}

static void add_nodes(struct wf_tools_graph *graph)
{
	const struct wf_tools_waiters *waiters = graph->waiters;

	for (size_t i = 0; i < waiters->count; i++) {
		const struct wf_tools_waiter *w = &waiters->all[i];
		struct wf_tools_node *last =
			graph->nodes + graph->node_count - 1;

		if (graph->node_count &&
		    last->first->process.pid == w->process.pid) {
			last->endpoints++;
			continue;
		}
		graph->nodes[graph->node_count] =
			(struct wf_tools_node){ .first = w, .endpoints = 1 };
		set_state(&graph->nodes[graph->node_count++]);
	}
}

/* Nodes are in the order of their endpoints. */
static struct wf_tools_node *node_of(const struct wf_tools_graph *graph,
				     const struct wf_tools_waiter *w)
{
	uint32_t low = 0, high = graph->node_count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (graph->nodes[middle].first <= w)
			low = middle;
		else
			high = middle;
	}
	return &graph->nodes[low];
}

/* Waits that name a peer. An unexpected message waits for the application, and
 * nobody may wait for that. */
static bool leads_on(const struct wf_wait *wait)
{
	return wait->kind != WF_WAIT_CQ && wait->kind != WF_WAIT_MESSAGE &&
	       wait->step != WF_WAIT_FOR_OWN_CQ && wait->peer[0];
}

static void add_edges(struct wf_tools_graph *graph, struct wf_tools_node *node,
		      const struct wf_tools_waiter *w)
{
	for (uint32_t i = 0; i < w->waits.bank.count; i++) {
		const struct wf_wait *wait = &w->waits.bank.waits[i];
		struct wf_tools_edge *edge = &graph->edges[graph->edge_count];

		if (!is_old(graph, wait) || wait->kind == WF_WAIT_MESSAGE)
			continue;
		node->waits = true;
		if (wait->kind == WF_WAIT_RECEIVE &&
		    (wait->flags & WF_WAIT_ANYONE) && !node->anyone) {
			node->anyone = wait;
			node->anyone_of = w;
		}
		if (wait->kind == WF_WAIT_CQ && !node->ends) {
			node->ends = true;
			node->reason = WF_TOOLS_FULL_CQ;
		}
		if (!leads_on(wait))
			continue;
		*edge = (struct wf_tools_edge){
			.from = w,
			.from_node = node,
			.wait = wait,
			.to = wf_tools_waiters_peer(graph->waiters, w, wait),
		};
		if (edge->to)
			edge->to_node = node_of(graph, edge->to);
		else
			edge->local = wf_tools_waiters_is_local(wait->peer);
		node->edge_count++;
		graph->edge_count++;
	}
}

static bool all_are_live(const struct wf_tools_graph *graph,
			 const struct wf_tools_node *node)
{
	for (size_t i = 0; i < node->endpoints; i++) {
		const struct wf_tools_waiter *w = node->first + i;

		if (w->waits.bank.count && !wf_tools_graph_is_live(graph, w))
			return false;
	}
	return true;
}

/* Those who make no progress: with an endpoint that others wait for, or with
 * waits of their own, which cannot end. */
static void mark_idle(struct wf_tools_graph *graph)
{
	for (size_t i = 0; i < graph->edge_count; i++) {
		const struct wf_tools_edge *edge = &graph->edges[i];
		struct wf_tools_node *node = edge->to_node;

		if (!node || wf_tools_graph_is_live(graph, edge->to))
			continue;
		if (node->ends && node->reason != WF_TOOLS_FULL_CQ)
			continue;
		node->ends = true;
		node->reason = WF_TOOLS_NO_PROGRESS;
	}
	for (uint32_t i = 0; i < graph->node_count; i++) {
		struct wf_tools_node *node = &graph->nodes[i];

		if (node->ends || !node->waits || all_are_live(graph, node))
			continue;
		node->ends = true;
		node->reason = WF_TOOLS_NO_PROGRESS;
	}
}

/* -- receives from anyone ---------------------------------------------------- */

/* Processes that give no sign at all. */
static bool is_silent(const struct wf_tools_graph *graph,
		      const struct wf_tools_node *node)
{
	for (size_t i = 0; i < node->endpoints; i++) {
		if (wf_tools_graph_is_live(graph, node->first + i))
			return false;
	}
	return true;
}

static bool is_halt(enum wf_tools_reason reason)
{
	return reason == WF_TOOLS_STOPPED || reason == WF_TOOLS_DEAD;
}

static bool is_halted(const struct wf_tools_node *node)
{
	return node->ends && is_halt(node->reason);
}

/* Whether a wait of @from names @node; NULL: of any process that goes on. */
static bool is_named(const struct wf_tools_graph *graph,
		     const struct wf_tools_node *from,
		     const struct wf_tools_node *node)
{
	for (size_t i = 0; i < graph->edge_count; i++) {
		const struct wf_tools_edge *edge = &graph->edges[i];

		if (edge->to_node == node &&
		    (from ? edge->from_node == from : !edge->from_node->ends))
			return true;
	}
	return false;
}

/* Whether @from can wait for @to, which makes no progress, and why. That both are
 * of a user is little: it counts if @to is stopped, which no process is for long in
 * good order, @from has no channels, and nobody waits for @from, who would not be
 * blamed then. */
static bool find_bond(const struct wf_tools_graph *graph,
		      const struct wf_tools_node *from,
		      const struct wf_tools_node *to, enum wf_tools_bond *bond)
{
	const struct wf_tools_waiter *a = from->first, *b = to->first;

	if (wf_tools_waiters_share(graph->waiters, a, b)) {
		*bond = WF_TOOLS_CHANNEL;
		return true;
	}
	if (is_named(graph, to, from)) {
		*bond = WF_TOOLS_NAMES;
		return true;
	}
	if (a->process.uid != b->process.uid || strcmp(a->job.id, b->job.id))
		return false;
	*bond = a->job.id[0] ? WF_TOOLS_JOB : WF_TOOLS_USER;
	return *bond == WF_TOOLS_JOB || (is_halted(to) && !a->channel_count &&
					 !is_named(graph, NULL, from));
}

/* Its endpoint that shows what is wrong with it. */
static const struct wf_tools_waiter *
worst_of(const struct wf_tools_graph *graph, const struct wf_tools_node *node)
{
	for (size_t i = 0; i < node->endpoints; i++) {
		const struct wf_tools_waiter *w = node->first + i;

		if (node->reason == WF_TOOLS_NO_PROGRESS &&
		    !wf_tools_graph_is_live(graph, w))
			return w;
		for (uint32_t j = 0; node->reason == WF_TOOLS_FULL_CQ &&
				     j < w->waits.bank.count;
		     j++) {
			if (w->waits.bank.waits[j].kind == WF_WAIT_CQ)
				return w;
		}
	}
	return node->first;
}

/* Adds edges from @node to those who are halted, or to the others. */
static void add_guesses(struct wf_tools_graph *graph,
			struct wf_tools_node *node, bool halted)
{
	for (uint32_t i = 0; i < graph->node_count; i++) {
		struct wf_tools_node *to = &graph->nodes[i];
		enum wf_tools_bond bond;

		/* There is memory for as many waits as a page holds. */
		if (node->edge_count >= WF_WAITS_MAX)
			return;
		if (to == node || is_halted(to) != halted ||
		    (!to->ends && !is_silent(graph, to)) ||
		    !find_bond(graph, node, to, &bond))
			continue;
		if (!to->ends) {
			to->ends = true;
			to->reason = WF_TOOLS_NO_PROGRESS;
		}
		graph->edges[graph->edge_count++] = (struct wf_tools_edge){
			.from = node->anyone_of,
			.from_node = node,
			.wait = node->anyone,
			.to = worst_of(graph, to),
			.to_node = to,
			.bond = bond,
		};
		node->edge_count++;
	}
}

/* Who waits for anyone, and for nothing else. */
static void guess(struct wf_tools_graph *graph)
{
	for (uint32_t i = 0; i < graph->node_count; i++) {
		struct wf_tools_node *node = &graph->nodes[i];

		if (node->ends || !node->anyone || node->edge_count)
			continue;
		node->edges = &graph->edges[graph->edge_count];
		add_guesses(graph, node, true);
		add_guesses(graph, node, false);
	}
}

/* -- groups ------------------------------------------------------------------ */

struct search {
	struct wf_tools_graph *graph;
	struct wf_tools_node **stack;
	uint32_t depth;
	uint32_t index;
	uint32_t groups;
};

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void visit(struct search *s, struct wf_tools_node *node)
{
	struct wf_tools_node *member;

	node->index = node->low = ++s->index;
	node->on_stack = true;
	s->stack[s->depth++] = node;
	for (size_t i = 0; i < node->edge_count && !node->ends; i++) {
		struct wf_tools_node *to = node->edges[i].to_node;

		if (!to)
			continue;
		if (!to->index) {
			visit(s, to);
			node->low = least(node->low, to->low);
		} else if (to->on_stack) {
			node->low = least(node->low, to->index);
		}
	}
	if (node->low != node->index)
		return;
	s->groups++;
	do {
		member = s->stack[--s->depth];
		member->on_stack = false;
		member->group = s->groups;
	} while (member != node);
}

/* -- culprits ----------------------------------------------------------------- */

static enum wf_tools_reason reason_of(const struct wf_wait *wait)
{
	if (wait->kind == WF_WAIT_RECEIVE)
		return WF_TOOLS_NOT_SENT;
	return wait->step == WF_WAIT_FOR_MATCH ? WF_TOOLS_NOT_RECEIVED :
						 WF_TOOLS_NO_ANSWER;
}

static bool is_known_culprit(const struct wf_tools_graph *graph,
			     const struct wf_tools_culprit *culprit)
{
	for (size_t i = 0; i < graph->culprit_count; i++) {
		const struct wf_tools_culprit *other = &graph->culprits[i];

		if (culprit->reason == WF_TOOLS_CYCLE &&
		    other->reason == WF_TOOLS_CYCLE &&
		    culprit->group == other->group)
			return true;
		if (culprit->node && culprit->node == other->node &&
		    other->reason != WF_TOOLS_CYCLE)
			return true;
		if (!culprit->node && !other->node && culprit->address &&
		    other->address && !strcmp(culprit->address, other->address))
			return true;
	}
	return false;
}

static void add_culprit(struct wf_tools_graph *graph,
			const struct wf_tools_culprit *culprit)
{
	if (!is_known_culprit(graph, culprit))
		graph->culprits[graph->culprit_count++] = *culprit;
}

static void look_at_edge(struct wf_tools_graph *graph,
			 const struct wf_tools_edge *edge)
{
	const struct wf_tools_node *from = edge->from_node;
	const struct wf_tools_node *to = edge->to_node;
	struct wf_tools_culprit culprit = {
		.edge = edge,
		.address = edge->bond == WF_TOOLS_NAMED ? edge->wait->peer :
							  edge->to->waits.name,
	};

	if (!to) {
		culprit.reason =
			edge->local ? WF_TOOLS_NOBODY : WF_TOOLS_ELSEWHERE;
		if (!from->ends)
			add_culprit(graph, &culprit);
		return;
	}
	culprit.node = to;
	culprit.group = to->group;
	if (to->ends) {
		culprit.reason = to->reason;
	} else if (from->ends || graph->group_leads[to->group]) {
		return;
	} else if (from->group == to->group) {
		culprit.reason = WF_TOOLS_CYCLE;
	} else if (to->edge_count) {
		return; /* a circle, reported by its own edges */
	} else {
		culprit.reason = reason_of(edge->wait);
	}
	add_culprit(graph, &culprit);
}

/* Processes that nobody waits for, and that wait for nobody in particular. */
static void look_at_node(struct wf_tools_graph *graph,
			 const struct wf_tools_node *node)
{
	struct wf_tools_culprit culprit = {
		.node = node,
		.group = node->group,
		.address = node->first->waits.name,
	};

	if (!node->waits)
		return;
	if (node->ends)
		culprit.reason = node->reason;
	else if (node->anyone && !node->edge_count)
		culprit.reason = WF_TOOLS_ANYONE;
	else
		return;
	add_culprit(graph, &culprit);
}

/* How many processes wait for it in the end. */
static uint32_t count_behind(const struct wf_tools_graph *graph,
			     const struct wf_tools_culprit *culprit)
{
	bool *reached = calloc(graph->node_count + 1, sizeof(*reached));
	uint32_t count = 0;
	bool more = true;

	if (!reached)
		return 0;
	while (more) {
		more = false;
		for (size_t i = 0; i < graph->edge_count; i++) {
			const struct wf_tools_edge *edge = &graph->edges[i];
			const struct wf_tools_node *from = edge->from_node;
			const struct wf_tools_node *to = edge->to_node;
			bool hits = culprit->node ?
					    to && (to == culprit->node ||
						   reached[to - graph->nodes]) :
					    !to && !strcmp(edge->wait->peer,
							   culprit->address);

			hits |= to && reached[to - graph->nodes];
			if (!hits || from->ends || from == culprit->node ||
			    reached[from - graph->nodes])
				continue;
			reached[from - graph->nodes] = true;
			count++;
			more = true;
		}
	}
	free(reached);
	return count;
}

/* All who wait for it wait for anyone. */
static bool is_suspect(const struct wf_tools_graph *graph,
		       const struct wf_tools_culprit *culprit)
{
	bool suspect = false;

	for (size_t i = 0; culprit->node && i < graph->edge_count; i++) {
		const struct wf_tools_edge *edge = &graph->edges[i];

		if (edge->to_node != culprit->node)
			continue;
		if (edge->bond == WF_TOOLS_NAMED)
			return false;
		suspect = true;
	}
	return suspect;
}

static bool is_idle(const struct wf_tools_culprit *culprit)
{
	return culprit->reason == WF_TOOLS_ANYONE;
}

/* Those that are no culprits come last. */
static int by_weight(const void *a, const void *b)
{
	const struct wf_tools_culprit *x = a, *y = b;

	if (is_idle(x) != is_idle(y))
		return is_idle(x) ? 1 : -1;
	if (x->behind != y->behind)
		return x->behind > y->behind ? -1 : 1;
	if (x->suspect != y->suspect)
		return x->suspect ? 1 : -1;
	return (int)is_halt(y->reason) - (int)is_halt(x->reason);
}

static void weigh(struct wf_tools_graph *graph)
{
	size_t count = graph->culprit_count;

	for (size_t i = 0; i < count; i++) {
		struct wf_tools_culprit *culprit = &graph->culprits[i];

		culprit->behind = count_behind(graph, culprit);
		culprit->suspect = is_suspect(graph, culprit);
	}
	qsort(graph->culprits, count, sizeof(*graph->culprits), by_weight);
	while (graph->culprit_count &&
	       is_idle(&graph->culprits[graph->culprit_count - 1]))
		graph->culprit_count--;
	graph->idle = graph->culprits + graph->culprit_count;
	graph->idle_count = count - graph->culprit_count;
}

static int find_groups(struct wf_tools_graph *graph)
{
	struct search s = {
		.graph = graph,
		.stack = calloc(graph->node_count + 1, sizeof(*s.stack)),
	};

	if (!s.stack)
		return -ENOMEM;
	for (uint32_t i = 0; i < graph->node_count; i++) {
		if (!graph->nodes[i].index)
			visit(&s, &graph->nodes[i]);
	}
	free(s.stack);
	/* Members of a group of one may wait for themselves. */
	graph->group_leads = calloc(s.groups + 1, sizeof(bool));
	if (!graph->group_leads)
		return -ENOMEM;
	for (size_t i = 0; i < graph->edge_count; i++) {
		const struct wf_tools_edge *edge = &graph->edges[i];
		const struct wf_tools_node *from = edge->from_node;

		if (!from->ends &&
		    (!edge->to_node || edge->to_node->group != from->group))
			graph->group_leads[from->group] = true;
	}
	return 0;
}

int wf_tools_graph_make(struct wf_tools_graph *graph,
			const struct wf_tools_waiters *waiters,
			uint64_t patience)
{
	size_t edges = waiters->count * WF_WAITS_MAX + 1;

	*graph = (struct wf_tools_graph){
		.waiters = waiters,
		.patience = patience,
		.nodes = calloc(waiters->count + 1, sizeof(*graph->nodes)),
		.edges = calloc(edges, sizeof(*graph->edges)),
		.culprits = calloc(edges + waiters->count,
				   sizeof(*graph->culprits)),
	};
	if (!graph->nodes || !graph->edges || !graph->culprits)
		goto err_memory;
	add_nodes(graph);
	for (uint32_t i = 0; i < graph->node_count; i++) {
		struct wf_tools_node *node = &graph->nodes[i];

		node->edges = &graph->edges[graph->edge_count];
		for (size_t j = 0; j < node->endpoints; j++)
			add_edges(graph, node, node->first + j);
	}
	mark_idle(graph);
	guess(graph);
	if (find_groups(graph))
		goto err_memory;
	for (size_t i = 0; i < graph->edge_count; i++)
		look_at_edge(graph, &graph->edges[i]);
	for (uint32_t i = 0; i < graph->node_count; i++)
		look_at_node(graph, &graph->nodes[i]);
	weigh(graph);
	return 0;

err_memory:
	wf_tools_graph_free(graph);
	return -ENOMEM;
}

void wf_tools_graph_free(struct wf_tools_graph *graph)
{
	free(graph->nodes);
	free(graph->edges);
	free(graph->culprits);
	free(graph->group_leads);
	*graph = (struct wf_tools_graph){ 0 };
}
