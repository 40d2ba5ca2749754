/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looking again and again: the live view on a terminal, tables elsewhere.
 */
#ifndef WF_TOOLS_STAT_WATCH_H
#define WF_TOOLS_STAT_WATCH_H

#include "tools/stat/options.h"

/* Until the user or a signal ends it, or as many tables as were asked for. 1
 * when an endpoint or a device was seen, 0 when not, -errno. */
int wf_tools_watch(const struct wf_tools_stat_options *options);

#endif
