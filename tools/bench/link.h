/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link connects the two processes: the node's memory, its loopback, or a
 * network of their own.
 */
#ifndef WF_TOOLS_BENCH_LINK_H
#define WF_TOOLS_BENCH_LINK_H

#include "tools/bench/host.h"

#include <stddef.h>

enum wf_tools_over {
	WF_TOOLS_OVER_NODE, /* whatever each provider uses on one node */
	WF_TOOLS_OVER_LOOPBACK,
	WF_TOOLS_OVER_VETH,
	WF_TOOLS_OVER_HOSTS, /* the responder is on another host */
};

enum {
	WF_TOOLS_LINK_ENV = 12,
	WF_TOOLS_LINK_MTU_MIN = 1280, /* of IPv6: every link carries it */
};

struct wf_tools_link {
	enum wf_tools_over over;
	unsigned mtu;		   /* of the veth */
	int namespaces[2];	   /* of WF_TOOLS_OVER_VETH, else -1 */
	struct wf_tools_host host; /* of WF_TOOLS_OVER_HOSTS, as all below */
	int held; /* connection that keeps other clients away; 0: none */
	char interface[32];		 /* interface that leads there */
	char error[WF_TOOLS_HOST_ERROR]; /* of wf_tools_link_open() */
};

/* Which one a word names: -EINVAL if none. */
int wf_tools_link_parse(const char *word, enum wf_tools_over *over);

/* The word that names it. */
const char *wf_tools_link_word(enum wf_tools_over over);

/* A description for the user. */
const char *wf_tools_link_describe(const struct wf_tools_link *link, char *buf,
				   size_t len);

/*
 * Creates what is needed, or connects to the other host and reserves its
 * server. The namespaces have no name; only these descriptors and the processes
 * inside hold them: however this program ends, they and the link disappear with
 * it. 0 or -errno, with a text in link->error.
 */
int wf_tools_link_open(struct wf_tools_link *link);
void wf_tools_link_close(struct wf_tools_link *link);

/*
 * Variables that keep every provider on the link: name, value, ..., NULL. An
 * interface that the user has chosen stays. WEFT_BENCH_PEER is the address of
 * the responder.
 */
void wf_tools_link_env(const struct wf_tools_link *link,
		       const char *env[WF_TOOLS_LINK_ENV]);

#endif
