/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The progress bar: on a terminal, for files that take longer than half a
 * second, ten times a second at most.
 */
#include "tools/gzip/gzip.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define WIDTH 30

static uint64_t started, drawn;
static const struct wf_gzip_io *current;
static bool visible;

void wf_tools_gzip_progress(const struct wf_gzip_io *io, uint64_t done)
{
	uint64_t now = wf_base_clock_ns();
	char bar[WIDTH + 1];
	unsigned int fill;

	if (current != io) {
		current = io;
		started = now;
		drawn = now;
	}
	if (io->options->quiet || now - drawn < WF_NS_PER_S / 10 ||
	    now - started < WF_NS_PER_S / 2 || !isatty(STDERR_FILENO))
		return;
	drawn = now;
	visible = true;
	if (!io->size) {
		fprintf(stderr, "\r%s: %llu MB", io->name,
			(unsigned long long)(done / 1000000));
		return;
	}
	fill = (unsigned int)(done * WIDTH / io->size);
	memset(bar, '.', WIDTH);
	memset(bar, '#', fill < WIDTH ? fill : WIDTH);
	bar[WIDTH] = '\0';
	fprintf(stderr, "\r%s: [%s] %3u%%", io->name, bar,
		(unsigned int)(done * 100 / io->size));
}

void wf_tools_gzip_progress_end(void)
{
	if (visible)
		fputs("\r\033[K", stderr);
	visible = false;
	current = NULL;
}
