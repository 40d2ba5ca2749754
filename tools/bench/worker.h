/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hidden subcommand: one of the two measured processes.
 */
#ifndef WF_TOOLS_BENCH_WORKER_H
#define WF_TOOLS_BENCH_WORKER_H

#define WF_TOOLS_WORKER_COMMAND "bench-worker"

/* Order of the arguments behind argv[0]; all are needed. */
enum {
	WF_TOOLS_WORKER_ENGINE = 1, /* "floor", "socket", or the first test's */
	WF_TOOLS_WORKER_NAME,	    /* provider; "ring" or "handoff" */
	WF_TOOLS_WORKER_ROLE,	    /* "initiator" or "responder" */
	WF_TOOLS_WORKER_FLAGS,	/* of "trfvy": tagged, rewrite, ...; mN: more */
	WF_TOOLS_WORKER_WINDOW, /* the largest */
	WF_TOOLS_WORKER_BYTES,	/* under way each way, at most */
	WF_TOOLS_WORKER_ARGC,
};

/* The characters that may be in the flags, for a server that does not trust its
 * client. */
#define WF_TOOLS_WORKER_FLAG_CHARS "-trfvym0123456789"

int wf_tools_worker_main(int argc, char **argv);

#endif
