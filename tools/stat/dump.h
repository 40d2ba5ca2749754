/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header prints the counters for other programs.
 */
#ifndef WF_TOOLS_STAT_DUMP_H
#define WF_TOOLS_STAT_DUMP_H

#include <stdio.h>

#include "tools/stat/scan.h"

/* JSON with every counter. */
void wf_tools_dump_json(const struct wf_tools_scan *scan, FILE *out);

#endif
