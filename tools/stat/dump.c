/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters for other programs. Field names are an interface: they may grow, not
 * change. Counters appear as their owner names them.
 */
#include "tools/stat/dump.h"

#include <string.h>
#include <time.h>

#include "tools/json.h"

static void dump_counters(struct wf_tools_json *json, const char *name,
			  const struct wf_tools_page *page)
{
	wf_tools_json_open(json, name, '{');
	for (unsigned i = 0; i < page->count; i++)
		wf_tools_json_number(json, page->counters[i].name,
				     page->counters[i].value);
	wf_tools_json_close(json, '}');
}

static void dump_endpoint(struct wf_tools_json *json,
			  const struct wf_tools_endpoint *ep)
{
	wf_tools_json_open(json, NULL, '{');
	wf_tools_json_number(json, "pid", (uint64_t)ep->pid);
	wf_tools_json_number(json, "uid", ep->uid);
	wf_tools_json_text(json, "command", ep->command);
	wf_tools_json_text(json, "kind", ep->page.kind);
	wf_tools_json_text(json, "address", ep->page.name);
	wf_tools_json_number(json, "started", ep->page.started);
	dump_counters(json, "counters", &ep->page);
	if (ep->packets.count && strcmp(ep->page.kind, ep->packets.kind))
		dump_counters(json, "packets", &ep->packets);
	wf_tools_json_close(json, '}');
}

static void dump_kind(struct wf_tools_json *json,
		      const struct wf_tools_scan *scan, bool devices)
{
	for (size_t i = 0; i < scan->count; i++) {
		if (wf_tools_scan_is_device(&scan->endpoints[i]) == devices)
			dump_endpoint(json, &scan->endpoints[i]);
	}
}

void wf_tools_dump_json(const struct wf_tools_scan *scan, FILE *out)
{
	struct wf_tools_json json = { .out = out };
	time_t now = time(NULL);
	char text[32] = "";
	struct tm tm;

	if (gmtime_r(&now, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	wf_tools_json_open(&json, NULL, '{');
	wf_tools_json_text(&json, "time", text);
	wf_tools_json_open(&json, "endpoints", '[');
	dump_kind(&json, scan, false);
	wf_tools_json_close(&json, ']');
	wf_tools_json_open(&json, "devices", '[');
	dump_kind(&json, scan, true);
	wf_tools_json_close(&json, ']');
	wf_tools_json_number(&json, "not_shown", scan->elsewhere);
	wf_tools_json_number(&json, "processes_denied", scan->denied);
	wf_tools_json_number(&json, "pages_unsound", scan->unsound);
	wf_tools_json_close(&json, '}');
}
