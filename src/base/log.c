/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file decides where log lines go. One sink per process.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "os/file.h"
#include "os/inline.h"

#define TEXT_LEN 512
#define LINE_LEN (TEXT_LEN + 128) /* with the name of the function */

static void print_warning(enum wf_log_level level, const char *func, int line,
			  const char *text)
{
	char whole[LINE_LEN];

	(void)func;
	(void)line;
	if (level != WF_LOG_TELL && level != WF_LOG_WARN)
		return;
	snprintf(whole, sizeof(whole), "weft: %s", text);
	wf_os_print_line(whole);
}

WF_PER_PROCESS static wf_log_sink current_sink = print_warning;
WF_PER_PROCESS bool wf_base_log_debugging;

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
	char text[TEXT_LEN];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	current_sink(level, func, line, text);
	errno = saved;
}
