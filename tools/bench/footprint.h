/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header finds how much memory a process uses.
 */
#ifndef WF_TOOLS_BENCH_FOOTPRINT_H
#define WF_TOOLS_BENCH_FOOTPRINT_H

/*
 * Of this process, in bytes: pages that it touched, those it shares counted in
 * proportion (Pss), so that sums over processes are right. 0: not known.
 */
double wf_tools_footprint(void);

#endif
