/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two ways in which `weft info` says what it found.
 */
#ifndef WF_TOOLS_INFO_REPORT_H
#define WF_TOOLS_INFO_REPORT_H

#include <stdio.h>

#include "tools/info/facts.h"

void wf_tools_report_text(const struct wf_tools_facts *facts, FILE *out);
void wf_tools_report_json(const struct wf_tools_facts *facts, FILE *out);

#endif
