/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The results of a run, and the forms in which they are shown.
 */
#ifndef WF_TOOLS_BENCH_REPORT_H
#define WF_TOOLS_BENCH_REPORT_H

#include "tools/bench/machine.h"
#include "tools/bench/plan.h"
#include "tools/bench/series.h"

#include <stdio.h>

enum { WF_TOOLS_MAX_SERIES = WF_TOOLS_MAX_AGAINST + 3 };

struct wf_tools_report {
	const struct wf_tools_plan *plan;
	struct wf_tools_machine machine;
	/* The provider under test first, then floors, then the others. */
	struct wf_tools_series *series[WF_TOOLS_MAX_SERIES];
	unsigned n_series;
};

/* Machine, tests and failures, for people. */
void wf_tools_table_head(const struct wf_tools_report *report, FILE *out);
void wf_tools_table_write(const struct wf_tools_report *report, FILE *out);

/* Errors of the stream stay in it: the caller checks ferror(). */
void wf_tools_export_json(const struct wf_tools_report *report, FILE *out);
void wf_tools_export_csv(const struct wf_tools_report *report, FILE *out);
void wf_tools_plot_svg(const struct wf_tools_report *report, FILE *out);

#endif
