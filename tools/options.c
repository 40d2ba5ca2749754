/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads numbers, times and process ids of command lines.
 */
#include "tools/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"

int wf_tools_complain(const char *command, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "weft %s: ", command);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return -EINVAL;
}

static bool has(const struct wf_tools_pids *pids, long pid)
{
	for (size_t i = 0; i < pids->count; i++) {
		if (pids->all[i] == (pid_t)pid)
			return true;
	}
	return false;
}

int wf_tools_pids_read(struct wf_tools_pids *pids, const char *command,
		       const char *text)
{
	const char *at = text;

	for (;;) {
		char *end;
		long pid;

		errno = 0;
		pid = strtol(at, &end, 10);
		if (errno || end == at || pid < 1 || pid > INT32_MAX ||
		    (*end && *end != ','))
			return wf_tools_complain(
				command,
				"process ids are numbers like 123 or "
				"123,456, not '%s'",
				text);
		if (!has(pids, pid)) {
			if (pids->count == WF_TOOLS_PIDS_MAX)
				return wf_tools_complain(
					command, "at most %d process ids",
					WF_TOOLS_PIDS_MAX);
			pids->all[pids->count++] = (pid_t)pid;
		}
		if (!*end)
			return 0;
		at = end + 1;
	}
}

int wf_tools_number_read(const char *text, unsigned long *value)
{
	char *end;

	errno = 0;
	*value = strtoul(text, &end, 10);
	return errno || end == text || *end || *text == '-' || !*value ?
		       -EINVAL :
		       0;
}

int wf_tools_time_read(const char *text, uint64_t *ms)
{
	bool plain = strspn(text, "0123456789") == strlen(text);
	const char *end;

	if (wf_base_amount_time(text, &end, 1, ms) || *end)
		return -EINVAL;
	if (plain)
		*ms = *ms > UINT64_MAX / 1000 ? UINT64_MAX : *ms * 1000;
	return 0;
}
