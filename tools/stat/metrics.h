/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters in the OpenMetrics text format, for Prometheus and others.
 */
#ifndef WF_TOOLS_STAT_METRICS_H
#define WF_TOOLS_STAT_METRICS_H

#include <stdio.h>

#include "tools/stat/scan.h"

#define WF_TOOLS_METRICS_TYPE                                                  \
	"application/openmetrics-text; version=1.0.0; charset=utf-8"

/* The whole exposition, with its end. 0 or -ENOMEM. */
int wf_tools_metrics_write(const struct wf_tools_scan *scan, FILE *out);

#endif
