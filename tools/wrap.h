/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Breaks lines between words where a terminal would break them anywhere.
 */
#ifndef WF_TOOLS_WRAP_H
#define WF_TOOLS_WRAP_H

#include <stddef.h>
#include <stdio.h>

/* Stands in a line where its continuation begins in the lines below it. */
#define WF_TOOLS_WRAP_MARK '\v'

/* Columns of the terminal that @out writes to, 80 if it does not say; 0: it is
 * none, and whoever reads wants whole lines. */
size_t wf_tools_wrap_columns(FILE *out);

/* How many bytes of the line at @text fit into @room columns, up to the end of a
 * word. A number stays with its unit. A word that is longer than @room is cut. */
size_t wf_tools_wrap_cut(const char *text, size_t room);

/* Writes @text with lines of @width columns at most. 0: lines stay as they are.
 * Marks are left out. */
void wf_tools_wrap(const char *text, size_t width, FILE *out);

#endif
