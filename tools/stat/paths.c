/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A block for each endpoint: which ways its messages took, in the last
 * interval and since it was opened.
 */
#include "tools/stat/table.h"

#include <string.h>
#include <time.h>

#define LABEL 20
#define CELL 7
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

/* Counters of the packet side: protocols of messages and of memory, and what was
 * received. */
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
	NET("peers_released"), NET("wire_out_bytes"),	 NET("wire_in_bytes"),
	NET("overflows"),      NET("damaged"),		 NET("tls_connections"),
	NET("tls_refused"),
};

/* Other counters, as "name value". */
static const char *const others[] = {
	"unexpected",  "unexpected_max", "pending",    "sleeps",
	"wakes",       "bells",		 "slots_out",  "slots_in",
	"cma_refused", "keys_rejected",	 "peers_lost", "protocol_errors",
	"unanswered",
};

/* A shape says what a line has room for. */
struct shape {
	bool both;   /* directions side by side, else one below the other */
	bool totals; /* also since the endpoint was opened */
};

static struct shape shape_of(const struct wf_tools_sheet *sheet)
{
	return (struct shape){
		.both = sheet->width >= 2 + LABEL + 2 * 4 * CELL,
		.totals = sheet->width >= 2 + LABEL + 4 * CELL,
	};
}

static void write_cells(const struct wf_tools_row *row,
			const struct shape *shape, const char *count,
			const char *bytes, FILE *out)
{
	const char *names[2] = { count, bytes };
	char text[WF_TOOLS_SCALED_LEN];

	for (int i = 0; i < 2; i++)
		fprintf(out, "%*s", CELL,
			names[i] ? wf_tools_quantity_scaled(
					   wf_tools_quantity_rate(names[i],
								  row->before,
								  row->now),
					   text) :
				   "");
	for (int i = 0; i < 2 && shape->totals; i++)
		fprintf(out, "%*s", CELL,
			names[i] ? wf_tools_quantity_scaled(
					   (double)wf_tools_scan_get(row->now,
								     names[i]),
					   text) :
				   "");
}

static void write_heads(const struct shape *shape, bool in, FILE *out)
{
	fprintf(out, "%*s%*s", CELL, in ? "IN/s" : "OUT/s", CELL, "B/s");
	if (shape->totals)
		fprintf(out, "%*s%*s", CELL, in ? "IN" : "OUT", CELL, "BYTES");
}

static void write_others(const struct wf_tools_sheet *sheet,
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

		if (used && used + (unsigned)len + 1 > sheet->width) {
			fputc('\n', out);
			used = 0;
		}
		used += (unsigned)fprintf(out, "%s%s", used ? "," : " ", word);
	}
	fputc('\n', out);
}

static bool is_taken(const struct wf_tools_row *row, const struct path *path)
{
	return (path->out && wf_tools_scan_get(row->now, path->out)) ||
	       (path->in && wf_tools_scan_get(row->now, path->in));
}

/* A path that was never taken is faint. */
static enum wf_tools_style style_of(const struct wf_tools_row *row,
				    const struct path *path)
{
	return is_taken(row, path) ? WF_TOOLS_NORMAL : WF_TOOLS_FAINT;
}

/*
 * An endpoint that talks to other nodes only: a table of zeros would push the
 * one with its traffic off the screen.
 */
static bool is_remote_only(const struct wf_tools_row *row)
{
	bool packets = false;

	for (size_t i = 0; i < COUNT_OF(paths); i++) {
		if (is_taken(row, &paths[i]))
			return false;
	}
	for (size_t i = 0; i < COUNT_OF(protocols); i++)
		packets |= is_taken(row, &protocols[i]);
	return packets;
}

/* @out_too, @in_too: the directions that stand in this table. */
static void write_part(const struct wf_tools_sheet *sheet,
		       const struct wf_tools_row *row, const struct path *all,
		       size_t count, bool out_too, bool in_too, FILE *out)
{
	const char *end = wf_tools_paint(sheet->paint, WF_TOOLS_NORMAL);
	struct shape shape = shape_of(sheet);

	fprintf(out, "%s  %-*s", wf_tools_paint(sheet->paint, WF_TOOLS_HEAD),
		LABEL, "");
	if (out_too)
		write_heads(&shape, false, out);
	if (in_too)
		write_heads(&shape, true, out);
	fprintf(out, "%s\n", end);
	for (size_t i = 0; i < count; i++) {
		const struct path *path = &all[i];

		if (!(out_too && path->out) && !(in_too && path->in))
			continue;
		fprintf(out, "%s  %-*s",
			wf_tools_paint(sheet->paint, style_of(row, path)),
			LABEL, path->label);
		if (out_too)
			write_cells(row, &shape, path->out, path->out_bytes,
				    out);
		if (in_too)
			write_cells(row, &shape, path->in, path->in_bytes, out);
		fprintf(out, "%s\n", end);
	}
}

static void write_table(const struct wf_tools_sheet *sheet,
			const struct wf_tools_row *row, const struct path *all,
			size_t count, FILE *out)
{
	if (shape_of(sheet).both) {
		write_part(sheet, row, all, count, true, true, out);
		return;
	}
	write_part(sheet, row, all, count, true, false, out);
	write_part(sheet, row, all, count, false, true, out);
}

static void write_block(const struct wf_tools_sheet *sheet,
			const struct wf_tools_row *row, FILE *out)
{
	const struct wf_tools_endpoint *ep = row->now;
	double age = difftime(time(NULL), (time_t)ep->page.started);

	/* As `weft why` names it; the most important comes first, because a
	 * narrow terminal cuts the rest off. */
	fprintf(out, "%spid %d (%s",
		wf_tools_paint(sheet->paint, WF_TOOLS_STRONG), (int)ep->pid,
		ep->command);
	if (ep->job.rank >= 0)
		fprintf(out, ", rank %d", ep->job.rank);
	fprintf(out, "), %s, open for %.0f s%s\n", ep->page.name,
		age > 0 ? age : 0,
		wf_tools_paint(sheet->paint, WF_TOOLS_NORMAL));
	if (is_remote_only(row)) {
		fputs("  nothing through shared memory\n", out);
	} else if (strcmp(ep->page.kind, "packets")) {
		write_table(sheet, row, paths, COUNT_OF(paths), out);
		write_others(sheet, ep, others, COUNT_OF(others), out);
	}
	if (!ep->packets.count)
		return;
	fprintf(out, "%sby packets, to and from other nodes%s\n",
		wf_tools_paint(sheet->paint, WF_TOOLS_STRONG),
		wf_tools_paint(sheet->paint, WF_TOOLS_NORMAL));
	write_table(sheet, row, protocols, COUNT_OF(protocols), out);
	write_others(sheet, ep, packet_others, COUNT_OF(packet_others), out);
}

void wf_tools_paths_write(const struct wf_tools_sheet *sheet, FILE *out)
{
	for (size_t i = 0; i < sheet->count; i++) {
		if (i)
			fputc('\n', out);
		write_block(sheet, sheet->rows[i], out);
	}
}
