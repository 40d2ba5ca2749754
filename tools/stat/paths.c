/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A block for each endpoint: which ways its messages took, in the last
 * interval and since it was opened.
 */
#include "tools/stat/live.h"

#include <string.h>
#include <time.h>

#define LABEL 20
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

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

/* Of the packet side: protocols of messages, of memory, and what came. */
#define NET(name) WF_TOOLS_PACKETS name
static const struct path protocols[] = {
	{ "eager", NET("sent_eager"), NET("sent_eager_bytes"), NULL, NULL },
	{ "medium", NET("sent_medium"), NET("sent_medium_bytes"), NULL, NULL },
	{ "runtread", NET("sent_runtread"), NET("sent_runtread_bytes"), NULL,
	  NULL },
	{ "longread", NET("sent_longread"), NET("sent_longread_bytes"), NULL,
	  NULL },
	{ "longcts", NET("sent_longcts"), NET("sent_longcts_bytes"), NULL,
	  NULL },
	{ "all messages in", NULL, NULL, NET("received"),
	  NET("received_bytes") },
	{ "RMA write direct", NET("direct_writes"), NET("direct_write_bytes"),
	  NULL, NULL },
	{ "RMA write eager", NET("eager_writes"), NET("eager_write_bytes"),
	  NULL, NULL },
	{ "RMA write longread", NET("longread_writes"),
	  NET("longread_write_bytes"), NULL, NULL },
	{ "RMA write longcts", NET("longcts_writes"),
	  NET("longcts_write_bytes"), NULL, NULL },
	{ "RMA read direct", NULL, NULL, NET("direct_reads"),
	  NET("direct_read_bytes") },
	{ "RMA read short", NULL, NULL, NET("short_reads"),
	  NET("short_read_bytes") },
	{ "RMA read longcts", NULL, NULL, NET("longcts_reads"),
	  NET("longcts_read_bytes") },
	{ "atomics write", NET("write_atomics"), NET("write_atomic_bytes"),
	  NULL, NULL },
	{ "atomics fetch", NET("fetch_atomics"), NET("fetch_atomic_bytes"),
	  NULL, NULL },
	{ "atomics compare", NET("compare_atomics"),
	  NET("compare_atomic_bytes"), NULL, NULL },
	{ "served to peers", NULL, NULL, NET("served"), NULL },
	{ "packets", NET("packets_out"), NULL, NET("packets_in"), NULL },
	{ "system calls", NET("send_calls"), NULL, NET("receive_calls"), NULL },
	{ "sent again", NET("retransmits"), NULL, NULL, NULL },
	{ "before their turn", NULL, NULL, NET("reordered"), NULL },
};

static const char *const packet_others[] = {
	NET("rtt_ns"),	       NET("cwnd_bytes"),	 NET("losses"),
	NET("duplicates"),     NET("rnr_sent"),		 NET("rnr_received"),
	NET("reorder_depth"),  NET("read_nacks"),	 NET("peers"),
	NET("peers_lost"),     NET("unexpected"),	 NET("pending"),
	NET("keys_rejected"),  NET("handshakes"),	 NET("bad_packets"),
	NET("stale_packets"),  NET("stale_completions"), NET("unanswered"),
	NET("peers_released"),
};

/* What remains to be said, "name value". */
static const char *const others[] = {
	"unexpected",  "unexpected_max", "pending",    "sleeps",
	"wakes",       "bells",		 "slots_out",  "slots_in",
	"cma_refused", "keys_rejected",	 "peers_lost", "protocol_errors",
	"unanswered",
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
			names[i] ?
				wf_tools_quantity_scaled(
					(double)wf_tools_scan_get(ep, names[i]),
					text) :
				"");
}

static void write_others(const struct wf_tools_live *live,
			 const struct wf_tools_endpoint *ep,
			 const char *const *names, size_t count, FILE *out)
{
	char text[WF_TOOLS_SCALED_LEN], word[64];
	unsigned used = 0;

	for (size_t i = 0; i < count; i++) {
		const char *dot = strchr(names[i], '.');
		int len = snprintf(
			word, sizeof(word), " %s %s", dot ? dot + 1 : names[i],
			wf_tools_quantity_scaled(
				(double)wf_tools_scan_get(ep, names[i]), text));

		if (used && used + (unsigned)len + 1 > live->width) {
			fputc('\n', out);
			used = 0;
		}
		used += (unsigned)fprintf(out, "%s%s", used ? "," : " ", word);
	}
	fputc('\n', out);
}

static void write_table(const struct wf_tools_live *live,
			const struct wf_tools_endpoint *ep,
			const struct path *all, size_t count, FILE *out)
{
	const struct wf_tools_endpoint *before =
		wf_tools_scan_find(live->before, ep);

	fprintf(out, "  %-*s %6s %6s %6s %6s %6s %6s %6s %6s\n", LABEL, "",
		"OUT/s", "B/s", "OUT", "BYTES", "IN/s", "B/s", "IN", "BYTES");
	for (size_t i = 0; i < count; i++) {
		const struct path *path = &all[i];

		fprintf(out, "  %-*s", LABEL, path->label);
		write_cells(before, ep, path->out, path->out_bytes, out);
		write_cells(before, ep, path->in, path->in_bytes, out);
		fputc('\n', out);
	}
}

static void write_block(const struct wf_tools_live *live,
			const struct wf_tools_endpoint *ep, FILE *out)
{
	double age = difftime(time(NULL), (time_t)ep->page.started);

	fprintf(out, "%s %s, process %d (%s), open for %.0f s\n", ep->page.kind,
		ep->page.name, (int)ep->pid, ep->command, age > 0 ? age : 0);
	if (strcmp(ep->page.kind, "packets")) {
		write_table(live, ep, paths, COUNT_OF(paths), out);
		write_others(live, ep, others, COUNT_OF(others), out);
	}
	if (!ep->packets.count)
		return;
	fputs("by packets, to and from other nodes\n", out);
	write_table(live, ep, protocols, COUNT_OF(protocols), out);
	write_others(live, ep, packet_others, COUNT_OF(packet_others), out);
}

void wf_tools_paths_write(const struct wf_tools_live *live, FILE *out)
{
	for (size_t i = 0; i < wf_tools_live_endpoints(live); i++) {
		if (i)
			fputc('\n', out);
		write_block(live, &live->now->endpoints[i], out);
	}
}
