/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes down for `weft why` what an endpoint waits for (base/waits_defs.h).
 * The time is written whenever progress looks at the descriptors, the waits ten
 * times a second and before the endpoint sleeps. The path of a message does
 * none of this. The endpoint's lock covers all of it.
 */
#ifndef WF_CORE_REPORT_H
#define WF_CORE_REPORT_H

#include <stdint.h>

#include "base/waits.h"

struct wf_core;

/* The most receives, or unexpected messages, of one kind that a report names. */
#define WF_REPORT_MOST 16

/* A receive or a message of the last report: it began to wait when it was first
 * seen, because the calls that post receives do not look at the clock. */
struct wf_report_seen {
	const void *what;
	uint64_t seq; /* of the receive; tag of the message */
	uint64_t since;
};

struct wf_report {
	struct wf_waits waits;
	uint64_t due;
	uint64_t full_since[2]; /* the two completion queues; 0: not full */
	/* Receives and messages, tagged and plain. */
	struct wf_report_seen seen[4][WF_REPORT_MOST];
};

void wf_core_report_open(struct wf_core *core);
void wf_core_report_close(struct wf_core *core);
/* In a forked child. Async-signal-safe. */
void wf_core_report_forked(struct wf_core *core);

/* Writes the report. */
void wf_core_report_write(struct wf_core *core, uint64_t now);

/* Writes the report before the endpoint sleeps. */
void wf_core_report_sleep(struct wf_core *core);

/* Progress looked at the descriptors. */
static inline void wf_core_report_look(struct wf_report *report,
				       struct wf_core *core, uint64_t now)
{
	wf_base_waits_polled(&report->waits, now);
	if (now >= report->due)
		wf_core_report_write(core, now);
}

#endif
