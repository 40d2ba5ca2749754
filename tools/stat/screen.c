/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes to the terminal. Lines are cut here, so that none wraps.
 */
#include "tools/stat/screen.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/paint.h"

#define PLAIN_WIDTH 80

#define ENTER "\033[?1049h\033[?25l" /* the other screen, no cursor */
#define LEAVE "\033[?25h\033[?1049l"
#define TOP "\033[H"
#define END_LINE "\033[0m\033[K"
#define END_SCREEN "\033[J"

void wf_tools_screen_measure(struct wf_tools_screen *screen)
{
	struct winsize size = { 0 };

	screen->width = PLAIN_WIDTH;
	screen->height = 0;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		return;
	if (size.ws_col)
		screen->width = size.ws_col;
	screen->height = size.ws_row;
}

static bool in_background(void)
{
	pid_t foreground = tcgetpgrp(STDOUT_FILENO);

	return foreground >= 0 && foreground != getpgrp();
}

void wf_tools_screen_draw(struct wf_tools_screen *screen, const char *text)
{
	const char *before = TOP;
	char line[4096];

	if (in_background())
		return;
	if (!screen->entered)
		fputs(ENTER, stdout);
	screen->entered = true;
	for (unsigned i = 0; *text && (!screen->height || i < screen->height);
	     i++) {
		size_t len = strcspn(text, "\n");
		unsigned bytes;

		snprintf(line, sizeof(line), "%.*s", (int)len, text);
		wf_tools_paint_width(line, screen->width, &bytes);
		/* The next line begins only if there is one: the last one must
		 * not make the terminal scroll. */
		printf("%s%.*s" END_LINE, before, (int)bytes, line);
		before = "\r\n";
		text += len + (text[len] == '\n');
	}
	fputs(END_SCREEN, stdout);
	fflush(stdout);
}

void wf_tools_screen_leave(struct wf_tools_screen *screen)
{
	if (!screen->entered)
		return;
	fputs(LEAVE, stdout);
	fflush(stdout);
	screen->entered = false;
}
