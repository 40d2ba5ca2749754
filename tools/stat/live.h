/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of `weft stat`.
 */
#ifndef WF_TOOLS_STAT_LIVE_H
#define WF_TOOLS_STAT_LIVE_H

#include <stdio.h>

#include "tools/stat/quantity.h"

struct wf_tools_live {
	const struct wf_tools_scan *before; /* an interval ago */
	struct wf_tools_scan *now;
	enum wf_tools_quantity sort; /* WF_TOOLS_QUANTITIES: by pid */
	unsigned width;		     /* columns to keep to */
	unsigned height;	     /* lines to keep to; 0: any number */
};

/* Busiest first, or as asked; devices after endpoints, by process and name. */
void wf_tools_live_sort(const struct wf_tools_live *live);

/* How many are endpoints, once sorted: the rest are devices. */
size_t wf_tools_live_endpoints(const struct wf_tools_live *live);

/* A line for each endpoint. */
void wf_tools_live_write(const struct wf_tools_live *live, FILE *out);

/* A line for each device; nothing if there is none. */
void wf_tools_devices_write(const struct wf_tools_live *live, FILE *out);

/* A block for each endpoint: its messages and bytes by path. */
void wf_tools_paths_write(const struct wf_tools_live *live, FILE *out);

#endif
