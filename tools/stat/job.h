/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The place of a process in its parallel job: what MPI's launchers and batch
 * systems put into its environment.
 */
#ifndef WF_TOOLS_STAT_JOB_H
#define WF_TOOLS_STAT_JOB_H

#include <stddef.h>
#include <sys/types.h>

struct wf_tools_job {
	int rank;    /* -1: unknown */
	int size;    /* processes of the job; 0: unknown */
	char id[24]; /* printable; "": unknown */
};

/* Reads @block, variables "NAME=value" that a 0 ends each. */
void wf_tools_job_parse(struct wf_tools_job *job, const char *block,
			size_t len);

/* Reads the environment of @pid. All is unknown if we may not. */
void wf_tools_job_read(struct wf_tools_job *job, pid_t pid);

#endif
