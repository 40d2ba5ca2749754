/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Styles of the live view and of reports: what a terminal is told before and
 * after a text. Output to a file or a pipe has none.
 */
#ifndef WF_TOOLS_PAINT_H
#define WF_TOOLS_PAINT_H

#include <stdbool.h>

enum wf_tools_style {
	WF_TOOLS_NORMAL,
	WF_TOOLS_TITLE,	   /* the first line */
	WF_TOOLS_HEAD,	   /* of a table */
	WF_TOOLS_SORTED,   /* the head of the column that is sorted by */
	WF_TOOLS_STRONG,   /* a number that matters */
	WF_TOOLS_FAINT,	   /* idle rows, zeros, labels */
	WF_TOOLS_WARNING,  /* may be worth a look */
	WF_TOOLS_TROUBLE,  /* something goes wrong */
	WF_TOOLS_BYTES,	   /* bars of bytes ... */
	WF_TOOLS_MESSAGES, /* ... and of messages */
	WF_TOOLS_SELECTED, /* the row that was chosen */
	WF_TOOLS_KEY,	   /* a key that does something */
	WF_TOOLS_STYLES,
};

struct wf_tools_paint {
	bool terminal; /* else no style at all */
	bool colour;   /* else bold, faint and inverse only */
	bool unicode;  /* bars of block characters; else ASCII */
};

/* For standard output. No colour if NO_COLOR is set, blocks if the locale's
 * characters are UTF-8. */
void wf_tools_paint_open(struct wf_tools_paint *paint, bool terminal);

/* Returns the bytes to write before a text. NORMAL ends every other style. */
const char *wf_tools_paint(const struct wf_tools_paint *paint,
			   enum wf_tools_style style);

/* How many columns a line takes on the terminal, without its styles. @most:
 * stop there; *@bytes is set to how many bytes that are. */
unsigned wf_tools_paint_width(const char *line, unsigned most, unsigned *bytes);

/* A bar of @level, from 0 to 8, in one character. */
const char *wf_tools_paint_bar(const struct wf_tools_paint *paint, int level);

#endif
