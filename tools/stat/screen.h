/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The terminal's other screen, on which the live view is drawn. The previous
 * contents of the terminal are there again after it was left.
 */
#ifndef WF_TOOLS_STAT_SCREEN_H
#define WF_TOOLS_STAT_SCREEN_H

#include <stdbool.h>

struct wf_tools_screen {
	bool entered;
	unsigned width;
	unsigned height; /* 0: unknown */
};

/* How large standard output is now; 80 columns if it does not say. */
void wf_tools_screen_measure(struct wf_tools_screen *screen);

/* Draws lines, as many and as much of each as there is room for, in one piece.
 * Enters first. Nothing happens while we are in the background. */
void wf_tools_screen_draw(struct wf_tools_screen *screen, const char *text);

void wf_tools_screen_leave(struct wf_tools_screen *screen);

#endif
