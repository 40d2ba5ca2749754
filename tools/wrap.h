/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Breaks lines between words where a terminal would break them anywhere.
 */
#ifndef WF_TOOLS_WRAP_H
#define WF_TOOLS_WRAP_H

#include <stddef.h>
#include <stdio.h>

#include "tools/paint.h"

/* Stands in a line where its continuation begins in the lines below it. */
#define WF_TOOLS_WRAP_MARK '\v'

/* With "%c%c": the line that begins with it is written in a style, together with
 * the lines that it continues in. */
#define WF_TOOLS_WRAP_STYLE '\001'
#define WF_TOOLS_WRAP_STYLED(style) WF_TOOLS_WRAP_STYLE, '0' + (style)

/* Columns of the terminal that @out writes to, 80 if it does not say; 0: it is
 * none, and the reader wants whole lines. */
size_t wf_tools_wrap_columns(FILE *out);

/* Lines of that terminal, 24 if it does not say; 0: it is none. */
size_t wf_tools_wrap_lines(FILE *out);

/* How many bytes of the line at @text fit into @room columns, up to the end of a
 * word. A number stays with its unit. A word that is longer than @room is cut. */
size_t wf_tools_wrap_cut(const char *text, size_t room);

/* Writes @text with lines of @width columns at most. 0: lines stay as they are.
 * Marks are left out. Returns how many lines it wrote. */
size_t wf_tools_wrap(const char *text, size_t width,
		     const struct wf_tools_paint *paint, FILE *out);

#endif
