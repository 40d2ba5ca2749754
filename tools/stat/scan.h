/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the endpoints of this machine: pages of counters among the open files of
 * processes. It writes nothing and stops no process. A process that starts or
 * ends meanwhile is seen by the next scan.
 */
#ifndef WF_TOOLS_STAT_SCAN_H
#define WF_TOOLS_STAT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tools/proc.h"
#include "tools/stat/job.h"
#include "tools/stat/page.h"

struct wf_tools_endpoint {
	pid_t pid;
	uid_t uid;
	ino_t inode; /* of its page: with the pid, what it is known by */
	char command[WF_TOOLS_COMMAND_LEN];
	uint64_t at_ns;		 /* when it was read */
	struct wf_tools_job job; /* see wf_tools_scan_jobs() */
	struct wf_tools_page page;
	/* Its packet side, once that woke up; count 0: none. */
	struct wf_tools_page packets;
};

struct wf_tools_scan {
	struct wf_tools_endpoint *endpoints;
	size_t count;
	size_t room;
	unsigned denied;	 /* processes we may not look into */
	unsigned unsound;	 /* pages that made no sense ... */
	pid_t unsound_pid;	 /* ... the last one's process ... */
	const char *unsound_why; /* ... and what was wrong with it */
	unsigned elsewhere;	 /* endpoints of this network namespace that are
			      * known to be there, but were not seen */
};

/* Looks into @pids, or into all processes if @n_pids is 0. 0, -ENOMEM, or
 * -errno when there is no /proc. *@missing is a pid of @pids that does not
 * exist, 0 if all do. */
int wf_tools_scan_all(struct wf_tools_scan *scan, const pid_t *pids,
		      size_t n_pids, pid_t *missing);

/* Fills in the job of each endpoint: as @before has it, else from the
 * environment of its process. */
void wf_tools_scan_jobs(struct wf_tools_scan *scan,
			const struct wf_tools_scan *before);

/* The kind says whose page it is. */
enum wf_tools_kind {
	WF_TOOLS_ENDPOINT,
	WF_TOOLS_DEVICE, /* of `weft devd`, */
	WF_TOOLS_USER,	 /* a user of it, */
	WF_TOOLS_DRIVER, /* a driver of compression in a program: */
	WF_TOOLS_KINDS,
};

enum wf_tools_kind wf_tools_scan_kind(const struct wf_tools_endpoint *endpoint);
/* The last three, which count jobs. */
bool wf_tools_scan_is_device(const struct wf_tools_endpoint *endpoint);
/* Its value, or 0 if there is no such counter. Those of the packet side begin
 * with WF_TOOLS_PACKETS. */
#define WF_TOOLS_PACKETS "packets."
const uint64_t *wf_tools_scan_counter(const struct wf_tools_endpoint *endpoint,
				      const char *name); /* NULL: none */
uint64_t wf_tools_scan_get(const struct wf_tools_endpoint *endpoint,
			   const char *name);

void wf_tools_scan_free(struct wf_tools_scan *scan);

/* Whether two that were read at different times are one. */
bool wf_tools_scan_is_same(const struct wf_tools_endpoint *one,
			   const struct wf_tools_endpoint *other);

/* The same endpoint in an earlier scan, or NULL. */
const struct wf_tools_endpoint *
wf_tools_scan_find(const struct wf_tools_scan *scan,
		   const struct wf_tools_endpoint *endpoint);

#endif
