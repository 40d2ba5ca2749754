/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters by HTTP, for Prometheus.
 */
#ifndef WF_TOOLS_STAT_SERVE_H
#define WF_TOOLS_STAT_SERVE_H

#include "tools/stat/options.h"

/* Serves at options->listen until a signal ends it. 0, or -errno when it was
 * said what is wrong. */
int wf_tools_serve(const struct wf_tools_stat_options *options);

#endif
