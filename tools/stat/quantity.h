/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A quantity is a sum of counters, as they are now or by the second.
 */
#ifndef WF_TOOLS_STAT_QUANTITY_H
#define WF_TOOLS_STAT_QUANTITY_H

#include "tools/stat/scan.h"

enum wf_tools_quantity {
	WF_TOOLS_PEERS,
	WF_TOOLS_OUT,
	WF_TOOLS_OUT_BYTES,
	WF_TOOLS_IN,
	WF_TOOLS_IN_BYTES,
	WF_TOOLS_UNEXPECTED,
	WF_TOOLS_SLEEPS,
	WF_TOOLS_REFUSED,
	WF_TOOLS_RING_BYTES,
	WF_TOOLS_CMA_BYTES,
	WF_TOOLS_RMA,
	WF_TOOLS_RMA_BYTES,
	WF_TOOLS_ATOMICS,
	WF_TOOLS_PENDING,
	WF_TOOLS_LOST,
	WF_TOOLS_UNANSWERED,
	WF_TOOLS_NET_BYTES,
	WF_TOOLS_RETRANSMITS,
	WF_TOOLS_RTT,
	/* Of the packet side alone: */
	WF_TOOLS_NET_PEERS,
	WF_TOOLS_NET_OUT_BYTES,
	WF_TOOLS_NET_IN_BYTES,
	WF_TOOLS_PACKETS_OUT,
	WF_TOOLS_PACKETS_IN,
	WF_TOOLS_LOSSES,
	WF_TOOLS_WINDOW,
	WF_TOOLS_NET_PENDING,
	WF_TOOLS_NET_UNANSWERED,
	WF_TOOLS_NET_LOST,
	WF_TOOLS_REORDERED,
	WF_TOOLS_DUPLICATES,
	WF_TOOLS_NET_CALLS,
	WF_TOOLS_WIRE_OUT,
	WF_TOOLS_WIRE_IN,
	WF_TOOLS_DROPS,
	WF_TOOLS_TLS_REFUSED,
	WF_TOOLS_QUANTITIES,
};

/* As the head of a column has it. */
const char *wf_tools_quantity_title(enum wf_tools_quantity q);

/* @before: the same endpoint earlier; NULL: since it was opened. */
double wf_tools_quantity_value(enum wf_tools_quantity q,
			       const struct wf_tools_endpoint *before,
			       const struct wf_tools_endpoint *now);

/* How much one counter grew by the second. */
double wf_tools_quantity_rate(const char *counter,
			      const struct wf_tools_endpoint *before,
			      const struct wf_tools_endpoint *now);

/* At most 5 characters: "0", "0.5", "999", "12.3k", "1.23M"; powers of 1000.
 * Returns buf. */
enum { WF_TOOLS_SCALED_LEN = 8 };
const char *wf_tools_quantity_scaled(double value,
				     char buf[WF_TOOLS_SCALED_LEN]);

/* A value as a table has it: scaled; a round trip with its unit. At most 6
 * characters. */
const char *wf_tools_quantity_text(enum wf_tools_quantity q, double value,
				   char buf[WF_TOOLS_SCALED_LEN]);

#endif
