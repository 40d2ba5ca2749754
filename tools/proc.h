/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes of this machine, and pages that weft's endpoints keep for readers:
 * memfds, found by name among the open files of a process. Nothing is written,
 * and no process is stopped.
 */
#ifndef WF_TOOLS_PROC_H
#define WF_TOOLS_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WF_TOOLS_COMMAND_LEN 16

struct wf_tools_process {
	pid_t pid;
	uid_t uid;
	uint32_t own_pid; /* what it calls itself, in its own namespace */
	char state;	  /* of its main thread, as ps shows it */
	char command[WF_TOOLS_COMMAND_LEN];
};

/* Called for a memfd, whose descriptor stays the caller's. 0, or -errno, which
 * ends the walk. */
typedef int (*wf_tools_proc_found)(void *arg, const struct wf_tools_process *p,
				   int fd);

/* The first line of a file of /proc or /sys, without its end. False: there is no
 * such file, or it says nothing. */
bool wf_tools_proc_line(const char *path, char *buf, size_t len);

/* False: it is gone. */
bool wf_tools_proc_describe(struct wf_tools_process *p, pid_t pid);

/* Calls @found for each memfd called @name that @p has open. 0 also when the
 * process went away meanwhile; -EACCES: we may not look into it; -ENOMEM, or
 * what @found returned. */
int wf_tools_proc_memfds(const struct wf_tools_process *p, const char *name,
			 wf_tools_proc_found found, void *arg);

/* Whether a text from a page ends within @len bytes. Makes it printable, because
 * it goes to terminals. */
bool wf_tools_proc_text(char *text, size_t len);

/* Calls @visit for every process. 0, -errno, or what @visit returned. */
int wf_tools_proc_all(int (*visit)(void *arg, pid_t pid), void *arg);

#endif
