/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sums and rates of counters. The names of counters are those of the provider
 * (src/shm/stats.h, src/rdm/stats.h); one that a page does not have counts as 0.
 */
#include "tools/stat/quantity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NAMES_MAX 16
#define NET(name) WF_TOOLS_PACKETS name

enum kind {
	RATE, /* how much the sum grew by the second */
	SUM,  /* as it is */
	MOST, /* the largest, as it is, and what the packet side adds */
};

struct quantity {
	const char *title;
	enum kind kind;
	const char *names[NAMES_MAX];
};

static const struct quantity quantities[WF_TOOLS_QUANTITIES] = {
	/* A peer that talks and listens is one. */
	[WF_TOOLS_PEERS] = { "PEERS",
			     MOST,
			     { "peers_out", "peers_in", NET("peers") } },
	[WF_TOOLS_OUT] = { "OUT/s",
			   RATE,
			   { "sent_inline", "sent_eager", "sent_chunked",
			     "sent_parked", NET("sent_eager"),
			     NET("sent_medium"), NET("sent_runtread"),
			     NET("sent_longread"), NET("sent_longcts") } },
	[WF_TOOLS_OUT_BYTES] = { "OUT-B/s",
				 RATE,
				 { "sent_inline_bytes", "sent_eager_bytes",
				   "sent_chunked_bytes", "sent_parked_bytes",
				   NET("sent_eager_bytes"),
				   NET("sent_medium_bytes"),
				   NET("sent_runtread_bytes"),
				   NET("sent_longread_bytes"),
				   NET("sent_longcts_bytes") } },
	[WF_TOOLS_IN] = { "IN/s",
			  RATE,
			  { "received_inline", "received_eager",
			    "received_chunked", "pulled_cma", "pulled_shared",
			    "pulled_stream", "pulled_self", NET("received") } },
	[WF_TOOLS_IN_BYTES] = { "IN-B/s",
				RATE,
				{ "received_inline_bytes",
				  "received_eager_bytes",
				  "received_chunked_bytes", "pulled_cma_bytes",
				  "pulled_shared_bytes", "pulled_stream_bytes",
				  "pulled_self_bytes",
				  NET("received_bytes") } },
	[WF_TOOLS_UNEXPECTED] = { "UNEXP",
				  SUM,
				  { "unexpected", NET("unexpected") } },
	[WF_TOOLS_SLEEPS] = { "SLEEP/s", RATE, { "sleeps" } },
	[WF_TOOLS_REFUSED] = { "NO-CMA", SUM, { "cma_refused" } },
	[WF_TOOLS_RING_BYTES] = { "RING-B/s",
				  RATE,
				  { "sent_inline_bytes", "sent_eager_bytes",
				    "sent_chunked_bytes", "sent_stream_bytes",
				    "received_inline_bytes",
				    "received_eager_bytes",
				    "received_chunked_bytes",
				    "pulled_stream_bytes", "ring_write_bytes",
				    "ring_read_bytes" } },
	[WF_TOOLS_CMA_BYTES] = { "CMA-B/s",
				 RATE,
				 { "pulled_cma_bytes", "pulled_shared_bytes",
				   "rma_write_bytes", "rma_read_bytes" } },
	[WF_TOOLS_RMA] = { "RMA/s",
			   RATE,
			   { "rma_writes", "rma_reads", "ring_writes",
			     "ring_reads", NET("direct_writes"),
			     NET("direct_reads"), NET("eager_writes"),
			     NET("longread_writes"), NET("longcts_writes"),
			     NET("short_reads"), NET("longcts_reads") } },
	[WF_TOOLS_RMA_BYTES] = { "RMA-B/s",
				 RATE,
				 { "rma_write_bytes", "rma_read_bytes",
				   "ring_write_bytes", "ring_read_bytes",
				   NET("direct_write_bytes"),
				   NET("direct_read_bytes"),
				   NET("eager_write_bytes"),
				   NET("longread_write_bytes"),
				   NET("longcts_write_bytes"),
				   NET("short_read_bytes"),
				   NET("longcts_read_bytes") } },
	[WF_TOOLS_ATOMICS] = { "ATOM/s",
			       RATE,
			       { "atomics", NET("write_atomics"),
				 NET("fetch_atomics"),
				 NET("compare_atomics") } },
	[WF_TOOLS_PENDING] = { "PEND", SUM, { "pending", NET("pending") } },
	[WF_TOOLS_NET_BYTES] = { "NET-B/s",
				 RATE,
				 { NET("sent_eager_bytes"),
				   NET("sent_medium_bytes"),
				   NET("sent_runtread_bytes"),
				   NET("sent_longread_bytes"),
				   NET("sent_longcts_bytes"),
				   NET("direct_write_bytes"),
				   NET("direct_read_bytes"),
				   NET("eager_write_bytes"),
				   NET("longread_write_bytes"),
				   NET("longcts_write_bytes"),
				   NET("short_read_bytes"),
				   NET("longcts_read_bytes"),
				   NET("write_atomic_bytes"),
				   NET("fetch_atomic_bytes"),
				   NET("compare_atomic_bytes"),
				   NET("received_bytes") } },
	[WF_TOOLS_RETRANSMITS] = { "RETX/s", RATE, { NET("retransmits") } },
	[WF_TOOLS_RTT] = { "RTT", MOST, { NET("rtt_ns") } },
	[WF_TOOLS_LOST] = { "LOST", SUM, { "peers_lost", NET("peers_lost") } },
	[WF_TOOLS_UNANSWERED] = { "UNANS",
				  SUM,
				  { "unanswered", NET("unanswered") } },
	[WF_TOOLS_NET_PEERS] = { "PEERS", MOST, { NET("peers") } },
	[WF_TOOLS_NET_OUT_BYTES] = { "OUT-B/s",
				     RATE,
				     { NET("sent_eager_bytes"),
				       NET("sent_medium_bytes"),
				       NET("sent_runtread_bytes"),
				       NET("sent_longread_bytes"),
				       NET("sent_longcts_bytes"),
				       NET("direct_write_bytes"),
				       NET("eager_write_bytes"),
				       NET("longread_write_bytes"),
				       NET("longcts_write_bytes"),
				       NET("write_atomic_bytes"),
				       NET("fetch_atomic_bytes"),
				       NET("compare_atomic_bytes") } },
	[WF_TOOLS_NET_IN_BYTES] = { "IN-B/s",
				    RATE,
				    { NET("received_bytes"),
				      NET("direct_read_bytes"),
				      NET("short_read_bytes"),
				      NET("longcts_read_bytes") } },
	[WF_TOOLS_PACKETS_OUT] = { "OUT-P/s", RATE, { NET("packets_out") } },
	[WF_TOOLS_PACKETS_IN] = { "IN-P/s", RATE, { NET("packets_in") } },
	[WF_TOOLS_LOSSES] = { "LOSS/s", RATE, { NET("losses") } },
	[WF_TOOLS_WINDOW] = { "WINDOW", MOST, { NET("cwnd_bytes") } },
	[WF_TOOLS_NET_PENDING] = { "PEND", SUM, { NET("pending") } },
	[WF_TOOLS_NET_UNANSWERED] = { "UNANS", SUM, { NET("unanswered") } },
	[WF_TOOLS_NET_LOST] = { "LOST", SUM, { NET("peers_lost") } },
	[WF_TOOLS_REORDERED] = { "REORD/s", RATE, { NET("reordered") } },
	[WF_TOOLS_DUPLICATES] = { "DUP/s", RATE, { NET("duplicates") } },
	[WF_TOOLS_WIRE_OUT] = { "WIRE-OUT/s", RATE, { NET("wire_out_bytes") } },
	[WF_TOOLS_WIRE_IN] = { "WIRE-IN/s", RATE, { NET("wire_in_bytes") } },
	[WF_TOOLS_DROPS] = { "DROP/s",
			     RATE,
			     { NET("overflows"), NET("damaged"),
			       NET("bad_packets"), NET("stale_packets") } },
	[WF_TOOLS_TLS_REFUSED] = { "TLS-REF", SUM, { NET("tls_refused") } },
	[WF_TOOLS_NET_CALLS] = { "CALLS/s",
				 RATE,
				 { NET("send_calls"), NET("receive_calls") } },
};

/* Seconds over which something was counted; more than 0. */
static double seconds(const struct wf_tools_endpoint *before,
		      const struct wf_tools_endpoint *now)
{
	double since;

	if (before)
		since = (double)(now->at_ns - before->at_ns) / 1e9;
	else
		since = difftime(time(NULL), (time_t)now->page.started);
	/* The owner wrote when it began, and may be wrong. */
	return since > 1e-3 ? since : before ? 1e-3 : 1;
}

double wf_tools_quantity_rate(const char *counter,
			      const struct wf_tools_endpoint *before,
			      const struct wf_tools_endpoint *now)
{
	uint64_t was = before ? wf_tools_scan_get(before, counter) : 0;
	uint64_t is = wf_tools_scan_get(now, counter);

	/* Counters only grow, unless their memory was overwritten. */
	return is > was ? (double)(is - was) / seconds(before, now) : 0;
}

double wf_tools_quantity_value(enum wf_tools_quantity q,
			       const struct wf_tools_endpoint *before,
			       const struct wf_tools_endpoint *now)
{
	const struct quantity *quantity = &quantities[q];
	double value = 0;

	for (int i = 0; i < NAMES_MAX && quantity->names[i]; i++) {
		const char *name = quantity->names[i];
		double one = (double)wf_tools_scan_get(now, name);

		if (quantity->kind == RATE)
			value += wf_tools_quantity_rate(name, before, now);
		else if (quantity->kind == SUM ||
			 !strncmp(name, NET(""), strlen(NET(""))))
			value += one;
		else
			value = one > value ? one : value;
	}
	return value;
}

const char *wf_tools_quantity_title(enum wf_tools_quantity q)
{
	return quantities[q].title;
}

const char *wf_tools_quantity_scaled(double value,
				     char buf[WF_TOOLS_SCALED_LEN])
{
	static const char units[] = " kMGTPE";
	unsigned unit = 0;

	/* 999.5 would be shown as 1000. */
	while (value >= 999.5 && units[unit + 1]) {
		value /= 1000;
		unit++;
	}
	if (!unit && (value >= 9.95 || value == floor(value)))
		snprintf(buf, WF_TOOLS_SCALED_LEN, "%.0f", value);
	else if (!unit)
		snprintf(buf, WF_TOOLS_SCALED_LEN, "%.1f", value);
	else
		snprintf(buf, WF_TOOLS_SCALED_LEN, "%.*f%c",
			 value < 9.995 ? 2 :
			 value < 99.95 ? 1 :
					 0,
			 value, units[unit]);
	return buf;
}

const char *wf_tools_quantity_text(enum wf_tools_quantity q, double value,
				   char buf[WF_TOOLS_SCALED_LEN])
{
	static const char *const units[] = { "ns", "us", "ms" };
	unsigned unit = 0;

	if (q != WF_TOOLS_RTT)
		return wf_tools_quantity_scaled(value, buf);
	while (value >= 999.5 && unit < 2) {
		value /= 1000;
		unit++;
	}
	if (!value)
		return strcpy(buf, "-");
	if (value > 9999)
		return strcpy(buf, ">10s");
	snprintf(buf, WF_TOOLS_SCALED_LEN, "%.*f%s",
		 unit && value < 9.995 ? 2 :
		 unit && value < 99.95 ? 1 :
					 0,
		 value, units[unit]);
	return buf;
}
