/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns the recording of events (base/trace_defs.h) on and off when a reader
 * asks for it. While recording is off, the path of a message does no work for
 * it: the transports are notified, and change the words that their fast paths
 * read. The endpoint's lock covers all of it.
 */
#ifndef WF_CORE_TRACE_H
#define WF_CORE_TRACE_H

#include <stdint.h>

struct wf_core;

void wf_core_trace_open(struct wf_core *core);
void wf_core_trace_close(struct wf_core *core);
/* In a forked child. Async-signal-safe. */
void wf_core_trace_forked(struct wf_core *core);

/* Progress looked at the descriptors. */
void wf_core_trace_look(struct wf_core *core, uint64_t now);

#endif
