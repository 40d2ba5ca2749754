/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header measures for `weft bench wd`: one sample each. The device and the
 * partner of the bare cache line are processes of their own on the second CPU;
 * whichever is not in play sleeps.
 */
#ifndef WF_TOOLS_WD_MEASURE_H
#define WF_TOOLS_WD_MEASURE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "drv/device.h"

struct wf_tools_wd_rig {
	int cpus[2];
	char socket[64];
	pid_t device_pid;
	pid_t partner_pid;
	int partner_fd; /* rounds to play, 8 bytes each */
	struct wf_tools_wd_lines *lines;
	struct wf_drv_device devices[3]; /* by enum wd_iommu_type */
};

/* Starts everything, binds this process to the first CPU. -errno. */
int wf_tools_wd_rig_open(struct wf_tools_wd_rig *rig);
void wf_tools_wd_rig_close(struct wf_tools_wd_rig *rig);

/* How often anything else was given the CPU of one of us so far. */
uint64_t wf_tools_wd_preempted(const struct wf_tools_wd_rig *rig);

/* Nanoseconds for a cache line there and back. */
double wf_tools_wd_bare(struct wf_tools_wd_rig *rig, uint64_t rounds);

/* Nanoseconds from submit to result of an empty job. */
double wf_tools_wd_empty(struct wf_tools_wd_rig *rig, uint64_t rounds,
			 bool asleep);

#define WF_TOOLS_WD_FLIGHT_MAX 64

/* Copies, so many at a time, each with buffers of its own. */
struct wf_tools_wd_load {
	uint32_t bytes; /* a multiple of 8 */
	unsigned int in_flight;
	bool touched; /* the client writes each source and reads each result */
};

/* Jobs a second; -1 if one failed. */
double wf_tools_wd_rate(struct wf_tools_wd_rig *rig, int type,
			const struct wf_tools_wd_load *load, uint64_t jobs);

/* Nanoseconds for one block taken and given back, of SMM or of malloc, while
 * some others come and go. */
double wf_tools_wd_alloc(bool smm, size_t size, uint64_t rounds);

/* How often a byte was copied besides the work: on its way to the device and
 * on its way back, from @foreign memory or from reserved memory. */
int wf_tools_wd_copies(struct wf_tools_wd_rig *rig, int type, bool foreign,
		       double *in, double *out);

#endif
