/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hidden subcommand that represents a process on another host.
 */
#ifndef WF_TOOLS_BENCH_PROXY_H
#define WF_TOOLS_BENCH_PROXY_H

#include <sys/types.h>

#define WF_TOOLS_PROXY_COMMAND "bench-proxy"

/* Order of the arguments behind argv[0]. */
enum {
	WF_TOOLS_PROXY_NAME = 1, /* of the host, for people */
	WF_TOOLS_PROXY_ADDRESS,
	WF_TOOLS_PROXY_PORT,
	WF_TOOLS_PROXY_SESSION,
	WF_TOOLS_PROXY_WORDS, /* from here on: the words of WF_TOOLS_HOST_START */
	WF_TOOLS_PROXY_MOST_WORDS = 8,
};

struct wf_tools_host;

/* Starts a proxy that requests @words from @host. @control and @side as for a
 * worker; -1: none. Returns its pid or -errno. */
pid_t wf_tools_proxy_start(const struct wf_tools_host *host, int cpu,
			   char *const *words, unsigned n, int control,
			   int side);

int wf_tools_proxy_main(int argc, char **argv);

#endif
