/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header finds which event of one endpoint belongs to which event of
 * another: the send and the receive of a message, a wake-up and the moment at
 * which the peer is awake.
 */
#ifndef WF_TOOLS_TRACE_ARROWS_H
#define WF_TOOLS_TRACE_ARROWS_H

#include "tools/trace/capture.h"

struct wf_tools_arrow {
	const struct wf_tools_traced *from;
	const struct wf_tools_traced *to;
	size_t from_event; /* place in from->events */
	size_t to_event;
	bool wakes; /* else: a message */
};

struct wf_tools_arrows {
	struct wf_tools_arrow *all;
	size_t count;
	size_t room;
};

/* Fills in who the peers of @capture are, too. 0 or -ENOMEM. */
int wf_tools_arrows_find(struct wf_tools_arrows *arrows,
			 struct wf_tools_capture *capture);
void wf_tools_arrows_free(struct wf_tools_arrows *arrows);

#endif
