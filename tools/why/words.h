/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits and culprits as sentences, the same for terminals and for JSON.
 */
#ifndef WF_TOOLS_WHY_WORDS_H
#define WF_TOOLS_WHY_WORDS_H

#include <stdio.h>

#include "tools/why/graph.h"

/* "12 s", "1.5 s", "3 min 5 s". Returns @buf. */
enum { WF_TOOLS_AGE_LEN = 32 };
const char *wf_tools_words_age(uint64_t ns, char buf[WF_TOOLS_AGE_LEN]);

/* "pid 4711 (a.out, rank 3)". */
void wf_tools_words_who(const struct wf_tools_waiter *w, FILE *out);

/* Writes what the process does: "polls", "sleeps until a peer wakes it", ... */
void wf_tools_words_state(const struct wf_tools_graph *graph,
			  const struct wf_tools_waiter *w, FILE *out);

/* Writes what @w waits for, without a full stop. */
void wf_tools_words_wait(const struct wf_tools_graph *graph,
			 const struct wf_tools_waiter *w,
			 const struct wf_wait *wait, FILE *out);

/* Writes why others wait, and what to do: one or more sentences, a line
 * each. */
void wf_tools_words_culprit(const struct wf_tools_graph *graph,
			    const struct wf_tools_culprit *culprit, FILE *out);

#endif
