/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns on the recording of events in processes, and collects them.
 */
#ifndef WF_TOOLS_TRACE_CAPTURE_H
#define WF_TOOLS_TRACE_CAPTURE_H

#include <signal.h>

#include "base/trace_defs.h"
#include "tools/proc.h"
#include "tools/stat/job.h"

/* An endpoint. The contents of its page are checked: texts end and can be
 * printed, an event's type and channel are in range. */
struct wf_tools_traced {
	struct wf_tools_process process;
	struct wf_tools_job job;
	ino_t inode;
	char name[56];
	uint64_t place;
	struct wf_trace_event *events;
	size_t count;
	size_t room;
	uint64_t lost; /* written faster than they were collected */
	struct wf_trace_channel channels[WF_TRACE_CHANNELS];
	uint32_t channel_count;
	/* The endpoint at the other end of each, or NULL: not traced. */
	const struct wf_tools_traced *peers[WF_TRACE_CHANNELS];
	struct wf_trace_page *page;
	uint64_t tail;
};

struct wf_tools_capture {
	struct wf_tools_traced *all;
	size_t count;
	size_t room;
	size_t most; /* events of an endpoint that are kept */
	/* Both clocks at the beginning and at the end: how long a tick is. */
	uint64_t begin_ticks, begin_ns;
	uint64_t end_ticks, end_ns;
	uint64_t wanted; /* by the last renewal */
};

/* Finds the endpoints of @pid. 0 (also if there are none), -ESRCH, -EACCES,
 * -ENOMEM. */
int wf_tools_capture_add(struct wf_tools_capture *capture, pid_t pid);

/* Records for @ns, or until *@interrupted. 0 or -ENOMEM. */
int wf_tools_capture_run(struct wf_tools_capture *capture, uint64_t ns,
			 const volatile sig_atomic_t *interrupted);

void wf_tools_capture_free(struct wf_tools_capture *capture);

/* When an event was, in ns since the capture began. */
double wf_tools_capture_ns(const struct wf_tools_capture *capture,
			   uint64_t ticks);

#endif
