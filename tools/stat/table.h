/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of `weft stat`, on a terminal and elsewhere.
 */
#ifndef WF_TOOLS_STAT_TABLE_H
#define WF_TOOLS_STAT_TABLE_H

#include <stdio.h>

#include "tools/paint.h"
#include "tools/stat/rows.h"

/* A sheet says what is to be shown. */
struct wf_tools_sheet {
	const struct wf_tools_row *const *rows; /* in this order */
	size_t count;
	size_t selected; /* one of the rows; SIZE_MAX: none */
	enum wf_tools_sort sort;
	unsigned width; /* columns to keep to */
	const struct wf_tools_paint *paint;
};

/* The head, and a line for each of @n endpoints from @first on. The columns
 * depend on all rows, so that they stay when one scrolls. */
void wf_tools_endpoints_write(const struct wf_tools_sheet *sheet, bool network,
			      size_t first, size_t n, FILE *out);

/* The same for devices of `weft devd`. */
void wf_tools_devices_write(const struct wf_tools_sheet *sheet, size_t first,
			    size_t n, FILE *out);

/* A block for each endpoint: its messages and bytes by path. */
void wf_tools_paths_write(const struct wf_tools_sheet *sheet, FILE *out);

#endif
