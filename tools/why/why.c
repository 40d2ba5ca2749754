/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft why`: reads options, looks once, and says what it found.
 */
#include "tools/why/why.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/near.h"
#include "tools/options.h"
#include "tools/why/report.h"
#include "tools/wrap.h"

#define LONGEST_MS (86400000ull * 365)
#define WAITS_LONG 3 /* exit status */

enum { OPT_JSON = 256 };

static const struct option long_options[] = {
	{ "longer-than", required_argument, NULL, 't' },
	{ "all", no_argument, NULL, 'a' },
	{ "pid", required_argument, NULL, 'p' },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
	"usage: weft why [OPTIONS] [PID ...]\n"
	"\n"
	"Says what the weft endpoints of this machine wait for and since when, "
	"follows\n"
	"the waits from process to process, and names the culprit: a process that "
	"is\n"
	"stopped, makes no progress, does not read its completions, has not sent "
	"or\n"
	"received a message; an address that nobody has; or a deadlock. With PID, "
	"only\n"
	"what these processes wait for.\n"
	"\n"
	"Processes need no preparation, and are not disturbed: the answer is read "
	"from\n"
	"memory that each endpoint keeps for readers.\n"
	"\n"
	"  -t, --longer-than TIME  only waits that last longer, as 500ms or 2s "
	"(1s)\n"
	"  -a, --all               also shorter waits, and endpoints without any\n"
	"  -p, --pid PID,...       the same as PID behind the options\n"
	"      --json              as JSON, every wait\n"
	"  -h, --help              print this and exit\n"
	"\n"
	"Exit status: 0 if nothing waits for longer, 3 if something does, 1 if "
	"there is\n"
	"no endpoint or something failed, 2 for a wrong command line.\n";

struct settings {
	uint64_t patience; /* ns */
	struct wf_tools_pids pids;
	bool all;
	bool json;
};

#define complain(...) wf_tools_complain("why", __VA_ARGS__)

static int read_patience(struct settings *s, const char *text)
{
	uint64_t ms;

	if (wf_tools_time_read(text, &ms))
		return complain("--longer-than wants a time, not '%s'", text);
	s->patience = ms < LONGEST_MS ? ms : LONGEST_MS;
	s->patience *= WF_NS_PER_MS;
	return 0;
}

static int read_options(struct settings *s, int argc, char **argv, bool *helped)
{
	int c;

	while ((c = getopt_long(argc, argv, "t:ap:h", long_options, NULL)) !=
	       -1) {
		switch (c) {
		case 't':
			if (read_patience(s, optarg))
				return -EINVAL;
			break;
		case 'a':
			s->all = true;
			break;
		case 'p':
			if (wf_tools_pids_read(&s->pids, "why", optarg))
				return -EINVAL;
			break;
		case OPT_JSON:
			s->json = true;
			break;
		case 'h':
			fputs(help, stdout);
			*helped = true;
			return 0;
		default:
			wf_tools_near_option("weft why", argv, long_options);
			return -EINVAL;
		}
	}
	for (; optind < argc; optind++) {
		if (wf_tools_pids_read(&s->pids, "why", argv[optind]))
			return -EINVAL;
	}
	return 0;
}

/* -- which processes --------------------------------------------------------- */

static bool has_pid(const struct settings *s, pid_t pid)
{
	for (size_t i = 0; i < s->pids.count; i++) {
		if (s->pids.all[i] == pid)
			return true;
	}
	return !s->pids.count;
}

/* Those that were asked for, and the processes that they wait for, over others
 * too. */
static void choose(const struct settings *s, const struct wf_tools_graph *graph,
		   bool *shown)
{
	bool more = true;

	for (uint32_t i = 0; i < graph->node_count; i++)
		shown[i] = has_pid(s, graph->nodes[i].first->process.pid);
	while (more) {
		more = false;
		for (size_t i = 0; i < graph->edge_count; i++) {
			const struct wf_tools_edge *edge = &graph->edges[i];
			size_t to;

			if (!edge->to_node ||
			    !shown[edge->from_node - graph->nodes])
				continue;
			to = (size_t)(edge->to_node - graph->nodes);
			more |= !shown[to];
			shown[to] = true;
		}
	}
}

/* 0, or -ENOENT when a process that was asked for has no endpoint. */
static int check_pids(const struct settings *s,
		      const struct wf_tools_waiters *waiters)
{
	int ret = 0;

	for (size_t i = 0; i < s->pids.count; i++) {
		struct wf_tools_process p;
		bool found = false;

		for (size_t j = 0; j < waiters->count; j++)
			found |= waiters->all[j].process.pid == s->pids.all[i];
		if (found)
			continue;
		ret = -ENOENT;
		if (!wf_tools_proc_describe(&p, s->pids.all[i]))
			complain("there is no process %d", (int)s->pids.all[i]);
		else
			complain("process %d (%s) has no weft endpoint, or you "
				 "may not look into it",
				 (int)s->pids.all[i], p.command);
	}
	return ret;
}

static int tell(const struct settings *s,
		const struct wf_tools_waiters *waiters)
{
	struct wf_tools_graph graph;
	struct wf_tools_why_view view = {
		.graph = &graph,
		.all = s->all,
		.width = wf_tools_wrap_columns(stdout),
		.height = wf_tools_wrap_lines(stdout),
	};
	bool *shown, waits = false;

	if (wf_tools_graph_make(&graph, waiters, s->patience)) {
		complain("not enough memory");
		return 1;
	}
	shown = calloc(graph.node_count + 1, sizeof(*shown));
	if (!shown) {
		complain("not enough memory");
		wf_tools_graph_free(&graph);
		return 1;
	}
	choose(s, &graph, shown);
	view.shown = shown;
	if (s->json)
		wf_tools_why_json(&view, stdout);
	else
		wf_tools_why_text(&view, stdout);
	for (uint32_t i = 0; i < graph.node_count; i++)
		waits |= shown[i] && graph.nodes[i].waits;
	free(shown);
	wf_tools_graph_free(&graph);
	return waits ? WAITS_LONG : 0;
}

int wf_tools_why_main(int argc, char **argv)
{
	struct settings s = { .patience = WF_NS_PER_S };
	struct wf_tools_waiters waiters;
	bool helped = false;
	int ret;

	if (read_options(&s, argc, argv, &helped))
		return 2;
	if (helped)
		return 0;
	ret = wf_tools_waiters_find(&waiters);
	if (ret) {
		complain("cannot look at processes: %s", strerror(-ret));
		return 1;
	}
	if (waiters.unsound)
		complain("%u pages were not read: %s", waiters.unsound,
			 waiters.unsound_why);
	if (check_pids(&s, &waiters)) {
		if (s.json)
			tell(&s, &waiters);
		ret = 1;
	} else if (!waiters.count) {
		complain("no endpoint was found%s",
			 waiters.denied ? "; there are processes that you may "
					  "not look into" :
					  "");
		/* Scripts get a document in any case. */
		if (s.json)
			tell(&s, &waiters);
		ret = 1;
	} else {
		ret = tell(&s, &waiters);
	}
	wf_tools_waiters_free(&waiters);
	return ret;
}
