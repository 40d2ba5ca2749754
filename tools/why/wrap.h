/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Breaks lines between words where a terminal would break them anywhere.
 */
#ifndef WF_TOOLS_WHY_WRAP_H
#define WF_TOOLS_WHY_WRAP_H

#include <stdio.h>

/* Stands in a line where its continuation begins in the lines below it. */
#define WF_TOOLS_WRAP_MARK '\v'

/* Writes @text with lines of @width columns at most, where words allow it. 0:
 * lines stay as they are. Marks are left out. */
void wf_tools_wrap(const char *text, size_t width, FILE *out);

#endif
