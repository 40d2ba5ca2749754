/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A block for each endpoint: which ways its messages took, in the last
 * interval and since it was opened.
 */
#include "tools/stat/live.h"

#include <string.h>
#include <time.h>

#define LABEL 20

struct path {
	const char *label;
	const char *out, *out_bytes; /* counters; NULL: none */
	const char *in, *in_bytes;
};

static const struct path paths[] = {
	{ "inline", "sent_inline", "sent_inline_bytes", "received_inline",
	  "received_inline_bytes" },
	{ "eager", "sent_eager", "sent_eager_bytes", "received_eager",
	  "received_eager_bytes" },
	{ "chunked", "sent_chunked", "sent_chunked_bytes", "received_chunked",
	  "received_chunked_bytes" },
	{ "parked", "sent_parked", "sent_parked_bytes", NULL, NULL },
	{ " by CMA", NULL, NULL, "pulled_cma", "pulled_cma_bytes" },
	{ " by both sides", NULL, NULL, "pulled_shared",
	  "pulled_shared_bytes" },
	{ " through the ring", "sent_stream", "sent_stream_bytes",
	  "pulled_stream", "pulled_stream_bytes" },
	{ " own process", NULL, NULL, "pulled_self", "pulled_self_bytes" },
	{ "RMA write by CMA", "rma_writes", "rma_write_bytes", NULL, NULL },
	{ "RMA write by ring", "ring_writes", "ring_write_bytes", NULL, NULL },
	{ "RMA read by CMA", NULL, NULL, "rma_reads", "rma_read_bytes" },
	{ "RMA read by ring", NULL, NULL, "ring_reads", "ring_read_bytes" },
	{ "atomics", "atomics", NULL, NULL, NULL },
	{ "served to peers", NULL, NULL, "served", NULL },
};

/* What remains to be said, "name value". */
static const char *const others[] = {
	"unexpected",  "unexpected_max", "pending",    "sleeps",
	"wakes",       "bells",		 "slots_out",  "slots_in",
	"cma_refused", "keys_rejected",	 "peers_lost", "protocol_errors",
};

static void write_cells(const struct wf_tools_endpoint *before,
			const struct wf_tools_endpoint *ep, const char *count,
			const char *bytes, FILE *out)
{
	const char *names[2] = { count, bytes };
	char text[WF_TOOLS_SCALED_LEN];

	for (int i = 0; i < 2; i++)
		fprintf(out, " %6s",
			names[i] ? wf_tools_quantity_scaled(
					   wf_tools_quantity_rate(names[i],
								  before, ep),
					   text) :
				   "");
	for (int i = 0; i < 2; i++)
		fprintf(out, " %6s",
			names[i] ? wf_tools_quantity_scaled(
					   (double)wf_tools_page_get(&ep->page,
								     names[i]),
					   text) :
				   "");
}

static void write_others(const struct wf_tools_live *live,
			 const struct wf_tools_endpoint *ep, FILE *out)
{
	char text[WF_TOOLS_SCALED_LEN], word[64];
	unsigned used = 0;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		int len = snprintf(
			word, sizeof(word), " %s %s", others[i],
			wf_tools_quantity_scaled(
				(double)wf_tools_page_get(&ep->page, others[i]),
				text));

		if (used && used + (unsigned)len + 1 > live->width) {
			fputc('\n', out);
			used = 0;
		}
		used += (unsigned)fprintf(out, "%s%s", used ? "," : " ", word);
	}
	fputc('\n', out);
}

static void write_block(const struct wf_tools_live *live,
			const struct wf_tools_endpoint *ep, FILE *out)
{
	const struct wf_tools_endpoint *before =
		wf_tools_scan_find(live->before, ep);
	double age = difftime(time(NULL), (time_t)ep->page.started);

	fprintf(out, "%s %s, process %d (%s), open for %.0f s\n", ep->page.kind,
		ep->page.name, (int)ep->pid, ep->command, age > 0 ? age : 0);
	fprintf(out, "  %-*s %6s %6s %6s %6s %6s %6s %6s %6s\n", LABEL, "",
		"OUT/s", "B/s", "OUT", "BYTES", "IN/s", "B/s", "IN", "BYTES");
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		const struct path *path = &paths[i];

		fprintf(out, "  %-*s", LABEL, path->label);
		write_cells(before, ep, path->out, path->out_bytes, out);
		write_cells(before, ep, path->in, path->in_bytes, out);
		fputc('\n', out);
	}
	write_others(live, ep, out);
}

void wf_tools_paths_write(const struct wf_tools_live *live, FILE *out)
{
	for (size_t i = 0; i < wf_tools_live_endpoints(live); i++) {
		if (i)
			fputc('\n', out);
		write_block(live, &live->now->endpoints[i], out);
	}
}
