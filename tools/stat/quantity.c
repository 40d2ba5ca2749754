/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sums and rates of counters. The names of counters are those of the provider
 * (src/shm/stats.h); one that a page does not have counts as 0.
 */
#include "tools/stat/quantity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NAMES_MAX 10

enum kind {
	RATE, /* how much the sum grew by the second */
	SUM,  /* as it is */
	MOST, /* the largest, as it is */
};

struct quantity {
	const char *title;
	enum kind kind;
	const char *names[NAMES_MAX];
};

static const struct quantity quantities[WF_TOOLS_QUANTITIES] = {
	/* A peer that talks and listens is one. */
	[WF_TOOLS_PEERS] = { "PEERS", MOST, { "peers_out", "peers_in" } },
	[WF_TOOLS_OUT] = { "OUT/s",
			   RATE,
			   { "sent_inline", "sent_eager", "sent_chunked",
			     "sent_parked" } },
	[WF_TOOLS_OUT_BYTES] = { "OUT-B/s",
				 RATE,
				 { "sent_inline_bytes", "sent_eager_bytes",
				   "sent_chunked_bytes",
				   "sent_parked_bytes" } },
	[WF_TOOLS_IN] = { "IN/s",
			  RATE,
			  { "received_inline", "received_eager",
			    "received_chunked", "pulled_cma", "pulled_shared",
			    "pulled_stream", "pulled_self" } },
	[WF_TOOLS_IN_BYTES] = { "IN-B/s",
				RATE,
				{ "received_inline_bytes",
				  "received_eager_bytes",
				  "received_chunked_bytes", "pulled_cma_bytes",
				  "pulled_shared_bytes", "pulled_stream_bytes",
				  "pulled_self_bytes" } },
	[WF_TOOLS_UNEXPECTED] = { "UNEXP", SUM, { "unexpected" } },
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
			     "ring_reads" } },
	[WF_TOOLS_RMA_BYTES] = { "RMA-B/s",
				 RATE,
				 { "rma_write_bytes", "rma_read_bytes",
				   "ring_write_bytes", "ring_read_bytes" } },
	[WF_TOOLS_ATOMICS] = { "ATOM/s", RATE, { "atomics" } },
	[WF_TOOLS_PENDING] = { "PEND", SUM, { "pending" } },
	[WF_TOOLS_LOST] = { "LOST", SUM, { "peers_lost" } },
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
	/* The owner says when it began, and may lie. */
	return since > 1e-3 ? since : before ? 1e-3 : 1;
}

double wf_tools_quantity_rate(const char *counter,
			      const struct wf_tools_endpoint *before,
			      const struct wf_tools_endpoint *now)
{
	uint64_t was = before ? wf_tools_page_get(&before->page, counter) : 0;
	uint64_t is = wf_tools_page_get(&now->page, counter);

	/* Counters only grow, unless their owner has gone mad. */
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
		double one = (double)wf_tools_page_get(&now->page, name);

		if (quantity->kind == RATE)
			value += wf_tools_quantity_rate(name, before, now);
		else if (quantity->kind == SUM)
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
