/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two MPI ranks under mpirun (bench/mpi_worker.c), over a transport of Open MPI
 * or a libfabric provider.
 */
#ifndef WF_TOOLS_BENCH_MPI_H
#define WF_TOOLS_BENCH_MPI_H

#include "tools/bench/plan.h"

#include <sys/types.h>

/* Names of series that are measured through MPI begin with this. */
#define WF_TOOLS_MPI_PREFIX "mpi:"

/* The hosts of --over veth, as mpirun gets them. */
#define WF_TOOLS_MPI_VETH "weft0:1,weft1:1"

struct wf_tools_mpi {
	pid_t mpirun;	  /* 0: not running */
	pid_t pids[2];	  /* the ranks; 0 until they are ready */
	int orders[2][2]; /* pipes of each rank: read end, write end */
	int results[2];	  /* from rank 0 */
	bool hang;	  /* they gave no answer in time */
	int output;	  /* what mpirun and the ranks print */
	/* ns per message last seen, for the number of messages of a run */
	double seen[WF_TOOLS_TESTS][WF_TOOLS_MAX_SIZES];
	char session[64]; /* mpirun's folder; empty: none */
	bool is_ready;	  /* the ranks wait for commands */
	char said[256];	  /* the beginning of their output */
	char error[320];
	char about[256];
};

/* Once, before everything else. */
void wf_tools_mpi_init(struct wf_tools_mpi *mpi);

/*
 * The same as the calls of struct wf_tools_pair, with the index of the size in
 * the plan added to run. @name: "mpi:vader" is Open MPI's own shared memory,
 * "mpi:btl-tcp" its own TCP, any other name a libfabric provider below mtl/ofi.
 * -ENOENT from start: mpirun or our program for it is missing, and error says
 * what to do.
 */
int wf_tools_mpi_start(struct wf_tools_mpi *mpi,
		       const struct wf_tools_plan *plan, const char *name,
		       const char *const *env);
int wf_tools_mpi_ready(struct wf_tools_mpi *mpi,
		       const struct wf_tools_plan *plan);
int wf_tools_mpi_run(struct wf_tools_mpi *mpi, const struct wf_tools_plan *plan,
		     enum wf_tools_test test, unsigned index, double *ns);
void wf_tools_mpi_stop(struct wf_tools_mpi *mpi);

#endif
