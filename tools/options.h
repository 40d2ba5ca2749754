/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command lines of subcommands have this in common: numbers, times, process
 * ids, and how a mistake is reported.
 */
#ifndef WF_TOOLS_OPTIONS_H
#define WF_TOOLS_OPTIONS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WF_TOOLS_PIDS_MAX 256

struct wf_tools_pids {
	pid_t all[WF_TOOLS_PIDS_MAX];
	size_t count;
};

/* Writes to standard error what is wrong, behind the name of the @command.
 * Returns -EINVAL. */
int wf_tools_complain(const char *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Reads process ids, one or several with commas between them, and adds those that
 * are not there yet.
 * 0, or -EINVAL after a complaint. */
int wf_tools_pids_read(struct wf_tools_pids *pids, const char *command,
		       const char *text);

/* A whole number from 1 on. 0 or -EINVAL. */
int wf_tools_number_read(const char *text, unsigned long *value);

/* A time such as 500ms or 2s; a number without a unit counts seconds. 0 or
 * -EINVAL. */
int wf_tools_time_read(const char *text, uint64_t *ms);

#endif
