/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The graph says who waits for whom, and where the chains of waiting end. A
 * node is a process; an edge is a wait that is old enough. A chain ends at a
 * process that is stopped, makes no progress, does not read its completions, or
 * waits for nobody; at an address that nobody has; or in a circle.
 *
 * A receive from anyone names no peer. A process that waits for nothing else may
 * wait for each of those that it can know of and that are stopped, have ended or
 * make no progress; if there is none, it is idle, and nobody is to blame.
 */
#ifndef WF_TOOLS_WHY_GRAPH_H
#define WF_TOOLS_WHY_GRAPH_H

#include "tools/why/find.h"

/* These are the reasons why others wait. The second column is its name in
 * JSON. */
#define WF_TOOLS_REASONS(X)                                                    \
	X(STOPPED, "stopped")	      /* by a signal or a debugger */          \
	X(DEAD, "dead")		      /* ended; its parent has not noticed */  \
	X(NO_PROGRESS, "no_progress") /* does not call weft */                 \
	X(FULL_CQ, "full_cq")	      /* does not read its completions */      \
	X(NOT_SENT, "not_sent")	      /* has not sent the message */           \
	X(NOT_RECEIVED, "not_received") /* has posted no matching receive */   \
	X(NO_ANSWER, "no_answer") /* makes progress, and does not answer */    \
	X(NOBODY, "nobody")	  /* no endpoint has the address */            \
	X(ELSEWHERE, "elsewhere") /* the peer is on another host */            \
	X(ANYONE, "anyone") /* idle: a message from anyone, no culprit */      \
	X(CYCLE, "cycle")   /* they wait for each other */

#define X(name, text) WF_TOOLS_##name,
enum wf_tools_reason { WF_TOOLS_REASONS(X) WF_TOOLS_REASON_COUNT };
#undef X

struct wf_tools_node;

/* Why a process that waits for anyone may wait for this one. */
enum wf_tools_bond {
	WF_TOOLS_NAMED,	  /* no question: the wait names it */
	WF_TOOLS_CHANNEL, /* they share memory */
	WF_TOOLS_NAMES,	  /* this one waits, or waited, for it by name */
	WF_TOOLS_JOB,	  /* both are of a job */
	WF_TOOLS_USER,	  /* both are of a user, and of no job */
};

struct wf_tools_edge {
	const struct wf_tools_waiter *from;
	const struct wf_wait *wait;
	const struct wf_tools_waiter *to; /* NULL: nobody on this host */
	struct wf_tools_node *from_node;
	struct wf_tools_node *to_node; /* NULL: nobody on this host */
	enum wf_tools_bond bond;
	bool local; /* nobody: the address is of this host */
};

struct wf_tools_node {
	const struct wf_tools_waiter *first; /* its endpoints ... */
	size_t endpoints;		     /* ... and how many */
	bool ends;  /* no chain goes on here, whatever it waits for */
	bool waits; /* has a wait that is old enough */
	/* Of them, a receive from anyone, and whose it is. */
	const struct wf_wait *anyone;
	const struct wf_tools_waiter *anyone_of;
	const struct wf_tools_edge *edges; /* of its endpoints ... */
	size_t edge_count;		   /* ... and how many */
	uint32_t group; /* processes that wait for each other; from 1 */
	enum wf_tools_reason reason; /* if it ends */
	uint32_t index, low;	     /* of the search */
	bool on_stack;
};

/* Where chains end. */
struct wf_tools_culprit {
	enum wf_tools_reason reason;
	const struct wf_tools_node *node; /* NULL: there is no process */
	/* One of those who wait for it; ANYONE: its own wait. */
	const struct wf_tools_edge *edge;
	const char *address; /* of the endpoint that is waited for */
	uint32_t group;	     /* CYCLE: its nodes */
	uint32_t behind;     /* processes that wait for it, over others too */
	bool suspect; /* those who wait for it wait for anyone, and name nobody */
};

struct wf_tools_graph {
	const struct wf_tools_waiters *waiters;
	uint64_t patience; /* ns: what waits longer counts */
	struct wf_tools_node *nodes;
	uint32_t node_count;
	struct wf_tools_edge *edges;
	size_t edge_count;
	struct wf_tools_culprit *culprits; /* most waited for first */
	size_t culprit_count;
	/* Those that wait for anyone, and nothing is known to be wrong. */
	const struct wf_tools_culprit *idle;
	size_t idle_count;
	bool *group_leads; /* by group: a member waits for somebody outside */
};

/* 0 or -ENOMEM. */
int wf_tools_graph_make(struct wf_tools_graph *graph,
			const struct wf_tools_waiters *waiters,
			uint64_t patience);
void wf_tools_graph_free(struct wf_tools_graph *graph);

/* Whether the endpoint polls or sleeps until somebody wakes it. */
bool wf_tools_graph_is_live(const struct wf_tools_graph *graph,
			    const struct wf_tools_waiter *w);

#endif
