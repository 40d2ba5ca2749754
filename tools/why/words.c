/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Says in words what a wait is for, and who is to blame.
 */
#include "tools/why/words.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"

/* Waits that a hint names. */
#define HINTS 4

const char *wf_tools_words_age(uint64_t ns, char buf[WF_TOOLS_AGE_LEN])
{
	uint64_t s = ns / WF_NS_PER_S;

	if (s < 60)
		snprintf(buf, WF_TOOLS_AGE_LEN, "%.1f s", (double)ns / 1e9);
	else if (s < 3600)
		snprintf(buf, WF_TOOLS_AGE_LEN, "%" PRIu64 " min %" PRIu64 " s",
			 s / 60, s % 60);
	else
		snprintf(buf, WF_TOOLS_AGE_LEN, "%" PRIu64 " h %" PRIu64 " min",
			 s / 3600, s / 60 % 60);
	return buf;
}

static uint64_t ago(const struct wf_tools_graph *graph, uint64_t then)
{
	uint64_t now = graph->waiters->now;

	return now > then ? now - then : 0;
}

static void write_size(uint64_t bytes, FILE *out)
{
	if (bytes >= (uint64_t)1 << 30)
		fprintf(out, "%.1f GiB", (double)bytes / (1 << 30));
	else if (bytes >= 1 << 20)
		fprintf(out, "%.1f MiB", (double)bytes / (1 << 20));
	else if (bytes >= 10240)
		fprintf(out, "%.1f KiB", (double)bytes / 1024);
	else
		fprintf(out, "%" PRIu64 " bytes", bytes);
}

void wf_tools_words_who(const struct wf_tools_waiter *w, FILE *out)
{
	fprintf(out, "pid %d (%s", (int)w->process.pid, w->process.command);
	if (w->job.rank >= 0)
		fprintf(out, ", rank %d", w->job.rank);
	fputc(')', out);
}

void wf_tools_words_state(const struct wf_tools_graph *graph,
			  const struct wf_tools_waiter *w, FILE *out)
{
	char age[WF_TOOLS_AGE_LEN];

	wf_tools_words_age(ago(graph, w->waits.polled), age);
	if (w->process.state == 'T' || w->process.state == 't')
		fprintf(out, "is stopped, last progress %s ago", age);
	else if (w->process.state == 'Z' || w->process.state == 'X')
		fprintf(out, "has ended, last progress %s ago", age);
	else if (w->waits.asleep)
		fputs("sleeps until a peer or a timer wakes it", out);
	else if (wf_tools_graph_is_live(graph, w))
		fputs("polls", out);
	else
		fprintf(out, "has made no progress for %s", age);
}

/* -- one wait ----------------------------------------------------------------- */

static void write_tag(const struct wf_wait *wait, FILE *out)
{
	if (!(wait->flags & WF_WAIT_TAGGED))
		return;
	fprintf(out, " with tag 0x%" PRIx64, wait->tag);
	if (wait->ignore)
		fprintf(out, " (bits 0x%" PRIx64 " ignored)", wait->ignore);
}

static void write_peer(const struct wf_tools_graph *graph,
		       const struct wf_tools_waiter *from,
		       const struct wf_wait *wait, FILE *out)
{
	const struct wf_tools_waiter *to =
		wf_tools_waiters_peer(graph->waiters, from, wait);

	if (wait->flags & WF_WAIT_ANYONE) {
		fputs("anyone", out);
		return;
	}
	fputs(wait->peer[0] ? wait->peer : "an unknown address", out);
	if (!to)
		return;
	fputs(", ", out);
	wf_tools_words_who(to, out);
}

static void write_more(const struct wf_wait *wait, FILE *out)
{
	if (wait->count > 1)
		fprintf(out, " (and %u more)", wait->count - 1);
}

static const char *const steps[WF_WAIT_STEP_COUNT] = {
	[WF_WAIT_FOR_NONE] = "it is under way",
	[WF_WAIT_FOR_LISTENER] = "nobody answers there",
	[WF_WAIT_FOR_WELCOME] = "the peer has not answered the greeting",
	[WF_WAIT_FOR_ROOM] = "waits for room in the peer's ring",
	[WF_WAIT_FOR_QUEUE] = "waits behind earlier operations",
	[WF_WAIT_FOR_FENCE] = "a fence waits for earlier operations",
	[WF_WAIT_FOR_DELIVERY] = "the peer has not acknowledged its packets",
	[WF_WAIT_FOR_MATCH] = "waits for a matching receive there",
	[WF_WAIT_FOR_ANSWER] = "waits for the peer's answer",
	[WF_WAIT_FOR_BYTES] = "the bytes are on the way",
	[WF_WAIT_FOR_OWN_CQ] = "waits for room in the own completion queue",
};

static void write_operation(const struct wf_tools_graph *graph,
			    const struct wf_tools_waiter *w,
			    const struct wf_wait *wait, FILE *out)
{
	static const char *const verbs[WF_WAIT_KIND_COUNT] = {
		[WF_WAIT_CONNECT] = "connects",
		[WF_WAIT_SEND] = "sends",
		[WF_WAIT_WRITE] = "writes",
		[WF_WAIT_READ] = "reads",
		[WF_WAIT_ATOMIC] = "runs an atomic operation",
		[WF_WAIT_TRANSFER] = "receives",
	};
	static const char *const directions[WF_WAIT_KIND_COUNT] = {
		[WF_WAIT_CONNECT] = "to", [WF_WAIT_SEND] = "to",
		[WF_WAIT_WRITE] = "to",	  [WF_WAIT_READ] = "from",
		[WF_WAIT_ATOMIC] = "at",  [WF_WAIT_TRANSFER] = "from",
	};

	fputs(verbs[wait->kind], out);
	if (wait->kind != WF_WAIT_CONNECT && wait->kind != WF_WAIT_ATOMIC) {
		fputc(' ', out);
		write_size(wait->len, out);
	}
	write_tag(wait, out);
	fprintf(out, " %s ", directions[wait->kind]);
	write_peer(graph, w, wait, out);
	fputs(": ", out);
	if (wait->protocol[0])
		fprintf(out, "%s%s, ", wait->protocol,
			wait->flags & WF_WAIT_PACKETS ? " by packets" : "");
	fputs(steps[wait->step] ? steps[wait->step] : "it waits", out);
	if (wait->done && wait->done < wait->len) {
		fputs(", ", out);
		write_size(wait->done, out);
		fputs(" are done", out);
	}
	write_more(wait, out);
}

void wf_tools_words_wait(const struct wf_tools_graph *graph,
			 const struct wf_tools_waiter *w,
			 const struct wf_wait *wait, FILE *out)
{
	switch (wait->kind) {
	case WF_WAIT_RECEIVE:
		fputs("waits to receive a message", out);
		write_tag(wait, out);
		fputs(" from ", out);
		write_peer(graph, w, wait, out);
		write_more(wait, out);
		break;
	case WF_WAIT_MESSAGE:
		fputs("has a message of ", out);
		write_size(wait->len, out);
		write_tag(wait, out);
		fputs(" from ", out);
		write_peer(graph, w, wait, out);
		fputs(" that no receive takes", out);
		break;
	case WF_WAIT_CQ:
		fprintf(out,
			"has a full completion queue: %" PRIu64
			" completions are not read",
			wait->done);
		break;
	default:
		write_operation(graph, w, wait, out);
		break;
	}
}

/* -- culprits ------------------------------------------------------------------ */

static const char *occupation(char state)
{
	switch (state) {
	case 'R':
		return "It computes, or polls something else";
	case 'D':
		return "It waits for a disk or another device";
	case 'S':
	case 'I':
		return "It sleeps in the kernel, and waits for something "
		       "other than weft";
	default:
		return "What it does instead is not known";
	}
}

static void write_no_progress(const struct wf_tools_graph *graph,
			      const struct wf_tools_waiter *w, FILE *out)
{
	char age[WF_TOOLS_AGE_LEN];

	wf_tools_words_who(w, out);
	fprintf(out, " makes no progress: it has not called weft for %s.\n",
		wf_tools_words_age(ago(graph, w->waits.polled), age));
	fprintf(out, "%s (state %c); messages move only while it calls.\n",
		occupation(w->process.state), w->process.state);
}

static void write_stopped(const struct wf_tools_graph *graph,
			  const struct wf_tools_waiter *w, FILE *out)
{
	char age[WF_TOOLS_AGE_LEN];
	bool traced = w->process.state == 't';

	wf_tools_words_who(w, out);
	fprintf(out, " is stopped by a %s; it last made progress %s ago.\n",
		traced ? "debugger" : "signal",
		wf_tools_words_age(ago(graph, w->waits.polled), age));
	if (!traced)
		fprintf(out, "`kill -CONT %d` lets it go on.\n",
			(int)w->process.pid);
}

static void write_full(const struct wf_tools_waiter *w, FILE *out)
{
	uint64_t unread = 0;

	for (uint32_t i = 0; i < w->waits.bank.count; i++) {
		const struct wf_wait *wait = &w->waits.bank.waits[i];

		if (wait->kind == WF_WAIT_CQ && wait->done > unread)
			unread = wait->done;
	}
	wf_tools_words_who(w, out);
	fprintf(out,
		" does not read a completion queue: %" PRIu64
		" completions are in it.\n"
		"weft takes no more messages until it does.\n",
		unread);
}

/* Those of @w of a kind that concern @peer: what it has, or wants, instead. */
static void write_hints(const struct wf_tools_graph *graph,
			const struct wf_tools_waiter *w,
			const struct wf_tools_waiter *peer,
			enum wf_wait_kind kind, FILE *out)
{
	unsigned int told = 0;

	for (uint32_t i = 0; i < w->waits.bank.count && told < HINTS; i++) {
		const struct wf_wait *wait = &w->waits.bank.waits[i];

		if (wait->kind != kind ||
		    (!(wait->flags & WF_WAIT_ANYONE) &&
		     wf_tools_waiters_peer(graph->waiters, w, wait) != peer))
			continue;
		fputs("But ", out);
		wf_tools_words_who(w, out);
		fputc(' ', out);
		wf_tools_words_wait(graph, w, wait, out);
		fputs(".\n", out);
		told++;
	}
}

static void write_idle(const struct wf_tools_graph *graph,
		       const struct wf_tools_culprit *culprit, FILE *out)
{
	const struct wf_tools_edge *edge = culprit->edge;
	const struct wf_wait *wait = edge->wait;

	wf_tools_words_who(edge->to, out);
	if (culprit->reason == WF_TOOLS_NOT_SENT) {
		fputs(" has not sent the message", out);
		write_tag(wait, out);
		fputs(" that ", out);
		wf_tools_words_who(edge->from, out);
		fputs(" waits for.\n", out);
	} else if (culprit->reason == WF_TOOLS_NOT_RECEIVED) {
		fputs(" has posted no receive for the message", out);
		write_tag(wait, out);
		fputs(" that ", out);
		wf_tools_words_who(edge->from, out);
		fputs(" sends.\n", out);
	} else {
		fputs(" does not answer ", out);
		wf_tools_words_who(edge->from, out);
		fputs(".\n", out);
	}
	fputs("It makes progress, and waits for no other process.\n", out);
	if (culprit->reason == WF_TOOLS_NOT_SENT)
		write_hints(graph, edge->from, edge->to, WF_WAIT_MESSAGE, out);
	else if (culprit->reason == WF_TOOLS_NOT_RECEIVED)
		write_hints(graph, edge->to, edge->from, WF_WAIT_RECEIVE, out);
}

static void write_cycle(const struct wf_tools_graph *graph,
			const struct wf_tools_culprit *culprit, FILE *out)
{
	uint32_t members = 0;

	for (uint32_t i = 0; i < graph->node_count; i++)
		members += graph->nodes[i].group == culprit->group;
	if (members == 1) {
		wf_tools_words_who(culprit->node->first, out);
		fputs(" waits for itself.\n", out);
	} else {
		fprintf(out, "%u processes wait for each other: a deadlock.\n",
			members);
	}
	for (size_t i = 0; i < graph->edge_count; i++) {
		const struct wf_tools_edge *edge = &graph->edges[i];

		if (!edge->to_node || edge->to_node->group != culprit->group ||
		    edge->from_node->group != culprit->group)
			continue;
		wf_tools_words_who(edge->from, out);
		fputc(' ', out);
		wf_tools_words_wait(graph, edge->from, edge->wait, out);
		fputs(".\n", out);
	}
}

static void write_absent(const struct wf_tools_graph *graph,
			 const struct wf_tools_culprit *culprit, FILE *out)
{
	if (culprit->reason == WF_TOOLS_ELSEWHERE) {
		fprintf(out,
			"%s is on another host, or in another network "
			"namespace.\n"
			"Run `weft why` there.\n",
			culprit->address);
		return;
	}
	fprintf(out,
		"No endpoint on this host has the address %s.\n"
		"Its process has ended, or was never started.\n",
		culprit->address);
	if (graph->waiters->denied)
		fprintf(out,
			"Or it is one of %u processes that you may not look "
			"into: try it as root.\n",
			graph->waiters->denied);
}

static void write_anyone(const struct wf_tools_graph *graph,
			 const struct wf_tools_waiter *w, FILE *out)
{
	wf_tools_words_who(w, out);
	fputs(" waits for a message from anyone, and none that it takes has "
	      "come.\n",
	      out);
	for (uint32_t i = 0; i < w->waits.bank.count; i++) {
		const struct wf_wait *wait = &w->waits.bank.waits[i];

		if (wait->kind != WF_WAIT_MESSAGE)
			continue;
		fputs("But it ", out);
		wf_tools_words_wait(graph, w, wait, out);
		fputs(".\n", out);
		break;
	}
}

/* The endpoint that is waited for; the first one if nobody does. */
static const struct wf_tools_waiter *
endpoint_of(const struct wf_tools_culprit *culprit)
{
	if (culprit->edge && culprit->edge->to)
		return culprit->edge->to;
	return culprit->node->first;
}

/* One of those who may wait for it. */
static void write_guess(const struct wf_tools_edge *edge, FILE *out)
{
	static const char *const bonds[] = {
		[WF_TOOLS_CHANNEL] = "they share memory",
		[WF_TOOLS_NAMES] = "they are peers",
		[WF_TOOLS_JOB] = "both are of the same job",
		[WF_TOOLS_USER] = "both are of the same user",
	};

	wf_tools_words_who(edge->from, out);
	fprintf(out, " waits for a message from anyone, perhaps from it: %s.\n",
		bonds[edge->bond]);
}

static void write_reason(const struct wf_tools_graph *graph,
			 const struct wf_tools_culprit *culprit, FILE *out)
{
	switch (culprit->reason) {
	case WF_TOOLS_STOPPED:
		write_stopped(graph, endpoint_of(culprit), out);
		break;
	case WF_TOOLS_DEAD:
		wf_tools_words_who(endpoint_of(culprit), out);
		fputs(" has ended, and its parent has not waited for it.\n",
		      out);
		break;
	case WF_TOOLS_NO_PROGRESS:
		write_no_progress(graph, endpoint_of(culprit), out);
		break;
	case WF_TOOLS_FULL_CQ:
		write_full(endpoint_of(culprit), out);
		break;
	case WF_TOOLS_NOBODY:
	case WF_TOOLS_ELSEWHERE:
		write_absent(graph, culprit, out);
		break;
	case WF_TOOLS_CYCLE:
		write_cycle(graph, culprit, out);
		break;
	case WF_TOOLS_ANYONE:
		write_anyone(graph, culprit->node->first, out);
		break;
	default:
		write_idle(graph, culprit, out);
		break;
	}
}

void wf_tools_words_culprit(const struct wf_tools_graph *graph,
			    const struct wf_tools_culprit *culprit, FILE *out)
{
	write_reason(graph, culprit, out);
	if (culprit->suspect)
		write_guess(culprit->edge, out);
}
