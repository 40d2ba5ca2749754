/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The software device: a process (or a thread of one) that serves devices to
 * clients over a Unix socket. One manager thread answers requests; workers do
 * the jobs. It takes SIGUSR2 and, around jobs, SIGBUS for itself. See
 * docs/warpdrive.md.
 */
#ifndef WF_DEVD_DEVD_H
#define WF_DEVD_DEVD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "devd/quota.h"
#include "weft/wd.h"

#define WF_DEVD_DEVICES_MAX 32
#define WF_DEVD_WORKERS_MAX 64
#define WF_DEVD_SOCKET_SIZE 108

struct wf_devd_device_config {
	char name[WD_NAME_SIZE];
	int iommu_type;
	int node_id;
	unsigned int instances; /* channels at a time */
	uint32_t algs;		/* bits; 0: all */
};

struct wf_devd_config {
	const char *socket; /* a path, from the root */
	bool makes_folder;  /* the folder is the device's, and goes with it */
	/* Already listening at @socket, for the process that started us, and
	 * not closed when we end: file, lock and backlog belong to that
	 * process. 0: none. */
	int passed_fd;
	mode_t mode;	       /* of the socket; 0: 0600, 0666 with allow_uid */
	const char *allow_uid; /* besides our own: "any", "12,34", or NULL */
	bool allow_sva;	       /* to them, too: they can hold up a worker */
	unsigned int workers;
	unsigned int spin_us; /* looking for work before a worker sleeps */
	int first_cpu;	      /* worker N is bound to CPU first_cpu + N; -1 */
	uint32_t depth;	      /* of a queue */
	uint64_t arena;	      /* bytes of "physical" memory */
	/* What one client may have, and how many clients there may be. */
	unsigned int client_channels;
	uint64_t client_memory;
	unsigned int clients;
	/* What all clients of one user of allow_uid may have together. */
	unsigned int user_clients;
	unsigned int user_channels;
	uint64_t user_memory;
	/* ... and have done a second. */
	struct wf_devd_rates user_rates;
	unsigned int n_devices;
	struct wf_devd_device_config devices[WF_DEVD_DEVICES_MAX];
};

struct wf_devd;

/* Sensible values, no place and no device. */
void wf_devd_config_init(struct wf_devd_config *config);

/* Listens where programs of this user look (root: all programs). @socket gets
 * the path and must live as long as @config. */
void wf_devd_config_place(struct wf_devd_config *config,
			  char socket[WF_DEVD_SOCKET_SIZE]);

/* Adds a device with default values; NULL: too many, or a name that is taken or
 * does not fit. */
struct wf_devd_device_config *wf_devd_config_add(struct wf_devd_config *config,
						 const char *name,
						 int iommu_type);

/* Listens; clients can connect from now on and are served by _run(). @config
 * is copied, its strings are not. -EADDRINUSE: another one is there; -EEXIST:
 * something that is no socket; -EPERM: the folder is open to others. */
int wf_devd_open(const struct wf_devd_config *config, struct wf_devd **devd);

/* Serves until wf_devd_stop(): 0, or -errno; until wf_devd_interrupt(): 1, and is
 * to be called again. */
int wf_devd_run(struct wf_devd *devd);

/* From any thread, and from a signal handler. */
void wf_devd_stop(struct wf_devd *devd);
void wf_devd_interrupt(struct wf_devd *devd);

/* Between two calls of wf_devd_run(): other users, limits and devices, for what
 * is asked from now on; clients keep what they have. A device that @config does
 * not have gives no more channels. Settings that cannot change (place, workers,
 * depth, arena) stay, and a line of the log says so. The strings of the
 * configuration before are no longer used, except for the socket. */
void wf_devd_reload(struct wf_devd *devd, const struct wf_devd_config *config);

struct wf_devd_stats {
	uint64_t clients; /* served so far */
	uint64_t channels;
	uint64_t jobs;
	uint64_t refused; /* jobs completed with an error */
	uint64_t faults;  /* channels given up because of invalid data */
	unsigned int now_clients, now_channels;
};

void wf_devd_stats(struct wf_devd *devd, struct wf_devd_stats *stats);

void wf_devd_close(struct wf_devd *devd);

#endif
