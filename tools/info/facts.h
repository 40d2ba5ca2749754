/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header collects the facts of `weft info` and leaves their form to
 * others. Each part is filled by a file of its own, and none of them prints.
 */
#ifndef WF_TOOLS_INFO_FACTS_H
#define WF_TOOLS_INFO_FACTS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/setting.h"
#include "tools/bench/machine.h"

#define WF_TOOLS_MAX_IFACES 64
#define WF_TOOLS_MAX_PARAMS 64
#define WF_TOOLS_MAX_PROBLEMS 32
#define WF_TOOLS_PROBLEM_LEN 512

struct wf_tools_iface {
	char domain[32];
	char address[64]; /* without a port */
	bool is_efa;	  /* the address is a GID */
};

struct wf_tools_param {
	char name[48];
	char help[256];	    /* without the default */
	char fallback[96];  /* what it is when nobody says anything */
	char given[128];    /* what was said; empty: nothing */
	char value[128];    /* in use */
	const char *source; /* "default", "environment", "libfabric" */
	bool counts;	 /* what was given is in use, perhaps cut to a limit */
	const char *why; /* the reason of the default; NULL: see help */
	/* why what was given is not used as it stands; empty: it is */
	char note[WF_SETTING_NOTE];
};

/* One end may read and write the memory of the other: 0 or errno. */
struct wf_tools_cma {
	int self;	  /* the own process: does the call exist? */
	int child;	  /* we to a process that we started */
	int parent;	  /* it to us */
	int sibling;	  /* between two processes that one started */
	uint64_t call_ns; /* what a small copy takes; 0: refused */
	int ptrace_scope; /* of Yama; -1: there is none */
	int seccomp;	  /* mode of this process; -1: unknown */
	bool dumpable;
	bool capable;	  /* CAP_SYS_PTRACE */
	char why[256];	  /* it is refused; empty: it is not */
	char advice[256]; /* empty: none */
};

struct wf_tools_node {
	struct wf_tools_machine machine;
	uid_t uid;
	char user[33]; /* its name; or empty */
	unsigned cpus_allowed;
	unsigned numa_nodes;
	unsigned caches;     /* groups of CPUs that share a last-level cache */
	char cpus[128];	     /* "0-3" */
	bool membarrier;     /* expedited barriers on all CPUs */
	bool memfd;	     /* with seals */
	unsigned long files; /* RLIMIT_NOFILE */
};

/* A way that messages of some size take. */
struct wf_tools_way {
	const char *name;
	const char *about;
	uint64_t from, to; /* bytes; UINT64_MAX: no end */
};
#define WF_TOOLS_MAX_WAYS 6

/* Messages for which each pair of processes tries the ways that are possible, and
 * keeps the fastest: through the ring, around the caches, perhaps CMA. */
struct wf_tools_tried {
	uint64_t from, to;
	bool cma;
};
#define WF_TOOLS_MAX_TRIED 2

/* Containers of this host. */
struct wf_tools_folder {
	char path[128];	  /* where they are met; empty: nowhere, ... */
	char why[256];	  /* ... for this reason */
	char advice[256]; /* empty: none */
};

/* Peers elsewhere, by packets. */
struct wf_tools_net {
	bool found;
	const char *device;	  /* by which they are reached ... */
	const char *device_about; /* ... what it is ... */
	const char *device_from;  /* ... and who chose it */
	bool is_efa;		  /* it has no sockets, ... */
	char way[256];		  /* ... how requests reach it */
	int socket;		  /* ... else SOCK_STREAM, SOCK_DGRAM */
	char control[32];	  /* SOCK_STREAM: congestion control */
	bool encrypts;		  /* there is a key that can be used */
	bool key_fails;		  /* ... a key that cannot */
	char tls[256];		  /* how, or why not */
	bool gso;    /* the kernel cuts one buffer into packets ... */
	bool gro;    /* ... and joins them again */
	bool forced; /* the buffer may be larger than users may ask for */
	char iface[32];
	char address[64];
	unsigned mtu;
	uint64_t buffer; /* bytes that a socket holds */
};

/* A driver of compression. Texts are empty where there is nothing to say. */
struct wf_tools_driver {
	char name[64];
	char from[256]; /* "built in", or the file of the plug-in */
	char about[128];
	char can[384];
	char devices
		[240];	 /* of its api, that this process finds; or why none */
	char first[128]; /* what it is asked for before all others */
	char why_not[240];  /* why it is not */
	bool absent;	    /* its device is not here: it is not used at all */
	unsigned in_flight; /* jobs on a channel; 0: done in the call */
};
#define WF_TOOLS_MAX_DRIVERS 32

struct wf_tools_facts {
	/* The provider. */
	char libfabric[32];
	char path[PATH_MAX];   /* FI_PROVIDER_PATH in use */
	const char *path_from; /* how it was found */
	bool found;
	char provider_version[32];
	struct wf_tools_iface ifaces[WF_TOOLS_MAX_IFACES];
	unsigned n_ifaces;
	size_t inject_size, tx_size, rx_size;
	struct wf_tools_param params[WF_TOOLS_MAX_PARAMS];
	unsigned n_params;
	/* The machine. */
	struct wf_tools_cma cma;
	bool cma_on;  /* allowed here and not switched off */
	bool shm_off; /* FI_WEFT_SHM: all peers are reached by packets */
	struct wf_tools_node node;
	struct wf_tools_way ways[WF_TOOLS_MAX_WAYS];
	unsigned n_ways;
	struct wf_tools_tried tried[WF_TOOLS_MAX_TRIED];
	unsigned n_tried;
	uint64_t both_from; /* both sides copy; 0: never */
	bool both_measured; /* ... as the time of a call says, not the user */
	struct wf_tools_folder folder;
	struct wf_tools_net net;
	/* Compression. */
	struct wf_tools_driver drivers[WF_TOOLS_MAX_DRIVERS];
	unsigned n_drivers;
	char driver_folder[256];
	char driver_preferred[64]; /* WD_COMP_DRIVER */
	/* What the user should know. */
	char problems[WF_TOOLS_MAX_PROBLEMS][WF_TOOLS_PROBLEM_LEN];
	unsigned n_problems;
};

/* Adds a line to the problems. */
void wf_tools_facts_problem(struct wf_tools_facts *facts, const char *format,
			    ...) __attribute__((format(printf, 2, 3)));

/* Tries it out with children of its own; call it before anything that must not
 * be forked. */
void wf_tools_cma_probe(struct wf_tools_cma *cma);

/* Loads the provider, and finds out why if that fails. Sets environment
 * variables of this process. */
void wf_tools_provider_read(struct wf_tools_facts *facts);

void wf_tools_node_read(struct wf_tools_node *node);

/* Takes apart what libfabric says of a setting, @help, and fills help,
 * fallback, value, note, source and why. ->name and ->given are set. @call_ns is
 * of struct wf_tools_cma. */
void wf_tools_param_fill(struct wf_tools_param *param, const char *help,
			 uint64_t call_ns);

/* Adds a problem for each FI_WEFT_* of the environment that is no setting. */
void wf_tools_param_unknown(struct wf_tools_facts *facts);

/* The parameter of that name (without FI_WEFT_), or NULL. */
const struct wf_tools_param *
wf_tools_param_find(const struct wf_tools_facts *facts, const char *name);

/* From the parameters in force, and whether shared memory is off. */
void wf_tools_folder_read(struct wf_tools_facts *facts);

/* Whether there is a key, and whether it can be used. */
void wf_tools_net_check_key(struct wf_tools_facts *facts);

/* From the interfaces and the parameters in force. */
void wf_tools_net_read(struct wf_tools_facts *facts);

/* Loads the plug-ins that are there; those that fail are problems. */
void wf_tools_drivers_read(struct wf_tools_facts *facts);

/* From the parameters in force and CMA: which size goes which way through shared
 * memory, and what is tried. None if that is switched off. */
void wf_tools_ways_find(struct wf_tools_facts *facts);

#endif
