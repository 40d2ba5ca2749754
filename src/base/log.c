/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where log lines go. One sink per process.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static void print_warning(enum wf_log_level level, const char *func, int line,
			  const char *text)
{
	(void)func;
	(void)line;
	if (level == WF_LOG_TELL || level == WF_LOG_WARN)
		fprintf(stderr, "weft: %s\n", text);
}

static wf_log_sink current_sink = print_warning;
bool wf_base_log_debugging;

void wf_base_log_set_debug(bool on)
{
	wf_base_log_debugging = on;
}

void wf_base_log_set_sink(wf_log_sink sink)
{
	current_sink = sink ? sink : print_warning;
}

void wf_base_log(enum wf_log_level level, const char *func, int line,
		 const char *fmt, ...)
{
	int saved = errno; /* callers log before they return -errno */
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	current_sink(level, func, line, text);
	errno = saved;
}
