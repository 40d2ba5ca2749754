/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One job: checks the descriptor, accesses the memory as the scenario requires,
 * runs the algorithm. Every error of a job is reported in its completion.
 */
#ifndef WF_DEVD_JOB_H
#define WF_DEVD_JOB_H

#include "devd/alg.h"
#include "devd/server.h"

void wf_devd_scratch_fini(struct wf_devd_scratch *scratch);

/* A worker without work does not hold on to much. */
void wf_devd_scratch_trim(struct wf_devd_scratch *scratch);

/* @job is our own copy. Fills in all of @done but the phase; returns the bytes
 * that went through our hands, for fairness. */
uint64_t wf_devd_job_run(struct wf_devd_chan *chan,
			 struct wf_devd_scratch *scratch,
			 const struct wf_accel_job *job,
			 struct wf_accel_done *done);

/* Memory of a client may vanish under a job (a hole punched into a file, no
 * huge page left): SIGBUS, which becomes an error of that job. Once per
 * process; counted. */
void wf_devd_job_guard(void);
void wf_devd_job_unguard(void);

#endif
