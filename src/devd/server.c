/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts and ends the software device: its threads, and the loop of the manager
 * thread, which serves clients.
 */
#include "devd/server.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "chan/place.h"
#include "devd/alg.h"
#include "devd/errand.h"
#include "devd/kept.h"
#include "devd/listen.h"
#include "devd/worker.h"

#define EVENTS 32
/* While there are clients, connections to be closed, or memory that clients have
 * kept: how often workers, errands and that memory are looked after. */
#define WATCH_MS 250
/* ... and while jobs are done, so that rates are those of the moment. */
#define BUSY_MS 100
/* While jobs wait for a quota: they go on in steps of this. */
#define QUOTA_MS 10
#define TICK (1 * WF_NS_PER_S)

/* -- configuration --------------------------------------------------------- */

void wf_devd_config_init(struct wf_devd_config *config)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	*config = (struct wf_devd_config){
		.workers = cpus < 1 ? 1 :
			   cpus > 8 ? 8 :
				      (unsigned int)cpus,
		.spin_us = 50,
		.first_cpu = -1,
		.depth = 256,
		.arena = 256u << 20,
		.client_channels = 64,
		.client_memory = 256u << 20,
		.clients = 256,
		.user_clients = 64,
		.user_channels = 128,
		.user_memory = 128u << 20,
	};
}

struct wf_devd_device_config *wf_devd_config_add(struct wf_devd_config *config,
						 const char *name,
						 int iommu_type)
{
	struct wf_devd_device_config *device;

	if (config->n_devices == WF_DEVD_DEVICES_MAX || !*name ||
	    strlen(name) >= WD_NAME_SIZE || strpbrk(name, ":/\n"))
		return NULL;
	for (unsigned int i = 0; i < config->n_devices; i++) {
		if (!strcmp(config->devices[i].name, name))
			return NULL;
	}
	device = &config->devices[config->n_devices++];
	*device = (struct wf_devd_device_config){
		.iommu_type = iommu_type,
		.node_id = -1,
		.instances = 256,
	};
	strcpy(device->name, name);
	return device;
}

void wf_devd_config_place(struct wf_devd_config *config,
			  char socket[WF_DEVD_SOCKET_SIZE])
{
	static_assert(WF_DEVD_SOCKET_SIZE == WF_CHAN_PLACE_SIZE, "the same");
	wf_chan_place_own(socket);
	config->socket = socket;
	config->makes_folder = true;
}

static bool is_sane(const struct wf_devd_config *config)
{
	return config->socket && config->socket[0] == '/' &&
	       config->n_devices && config->n_devices <= WF_DEVD_DEVICES_MAX &&
	       config->workers && config->workers <= WF_DEVD_WORKERS_MAX &&
	       config->depth >= WF_ACCEL_DEPTH_MIN &&
	       config->depth <= WF_ACCEL_DEPTH_MAX &&
	       !(config->depth & (config->depth - 1)) &&
	       config->arena / WF_DEVD_PAGE <= UINT32_MAX / 2;
}

/* -- making it ------------------------------------------------------------- */

static int watch(struct wf_devd *devd, int fd, enum wf_devd_source *source)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = source };

	return epoll_ctl(devd->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno :
								      0;
}

static int open_fds(struct wf_devd *devd)
{
	int err;

	devd->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (devd->epoll_fd < 0)
		return -errno;
	devd->inbox_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (devd->inbox_fd < 0) {
		err = -errno;
		goto err_epoll;
	}
	err = wf_devd_errands_open(&devd->errands, devd->inbox_fd);
	if (err)
		goto err_inbox;
	err = wf_devd_listen_open(devd);
	if (err)
		goto err_errands;
	devd->listener_source = WF_DEVD_LISTENER;
	devd->inbox_source = WF_DEVD_INBOX;
	err = watch(devd, devd->listen_fd, &devd->listener_source);
	if (!err)
		err = watch(devd, devd->inbox_fd, &devd->inbox_source);
	if (!err)
		return 0;
	wf_devd_listen_close(devd);
err_errands:
	wf_devd_errands_close(devd->errands);
err_inbox:
	close(devd->inbox_fd);
err_epoll:
	close(devd->epoll_fd);
	return err;
}

static void end_workers(struct wf_devd *devd, unsigned int n)
{
	while (n)
		wf_devd_worker_end(&devd->workers[--n]);
	free(devd->workers);
}

static int start_workers(struct wf_devd *devd)
{
	int first = devd->config.first_cpu, err;
	unsigned int i;

	devd->workers = calloc(devd->config.workers, sizeof(*devd->workers));
	if (!devd->workers)
		return -ENOMEM;
	for (i = 0; i < devd->config.workers; i++) {
		err = wf_devd_worker_start(&devd->workers[i], devd,
					   first < 0 ? -1 : first + (int)i);
		if (err) {
			end_workers(devd, i);
			return err;
		}
	}
	return 0;
}

int wf_devd_open(const struct wf_devd_config *config, struct wf_devd **opened)
{
	struct wf_devd *devd;
	int err;

	if (!is_sane(config))
		return -EINVAL;
	devd = calloc(1, sizeof(*devd));
	if (!devd)
		return -ENOMEM;
	devd->config = *config;
	devd->lock_fd = -1;
	wf_base_list_init(&devd->clients);
	wf_base_list_init(&devd->users);
	wf_base_list_init(&devd->kept);
	wf_base_list_init(&devd->inbox);
	pthread_mutex_init(&devd->inbox_lock, NULL);
	for (unsigned int i = 0; i < config->n_devices; i++) {
		devd->devices[i].config = config->devices[i];
		if (!devd->devices[i].config.algs)
			devd->devices[i].config.algs = wf_devd_alg_all();
	}
	err = wf_devd_arena_init(&devd->arena, config->arena);
	if (err)
		goto err_free;
	err = wf_devd_stats_open(devd);
	if (err)
		goto err_arena;
	wf_devd_job_guard();
	err = start_workers(devd);
	if (err)
		goto err_guard;
	err = open_fds(devd);
	if (err)
		goto err_workers;
	*opened = devd;
	return 0;

err_workers:
	end_workers(devd, config->workers);
err_guard:
	wf_devd_job_unguard();
	wf_devd_stats_close(devd);
err_arena:
	wf_devd_arena_fini(&devd->arena);
err_free:
	pthread_mutex_destroy(&devd->inbox_lock);
	free(devd);
	return err;
}

/* -- running it ------------------------------------------------------------ */

static void empty_inbox(struct wf_devd *devd)
{
	struct wf_list *first;
	uint64_t value;

	if (read(devd->inbox_fd, &value, sizeof(value)) < 0 && errno != EAGAIN)
		wf_warn("inbox: %s", strerror(errno));
	for (;;) {
		pthread_mutex_lock(&devd->inbox_lock);
		first = devd->inbox.next;
		if (first != &devd->inbox)
			wf_base_list_del(first);
		pthread_mutex_unlock(&devd->inbox_lock);
		if (first == &devd->inbox)
			return;
		wf_devd_client_reap(
			wf_container_of(first, struct wf_devd_chan, in_inbox));
	}
}

static void take_errands(struct wf_devd *devd)
{
	struct wf_devd_errand *errand;

	while ((errand = wf_devd_errand_next(devd->errands)))
		wf_devd_client_returned(devd, errand);
}

/* Without a descriptor for it the client stays at the door, and we must not
 * turn round it at full speed. */
static void accept_one(struct wf_devd *devd)
{
	int err = wf_devd_client_accept(devd);

	if (err != -EMFILE && err != -ENFILE && err != -ENOMEM)
		return;
	if (!devd->crowded)
		wf_warn("no room for more clients: %s", strerror(-err));
	devd->crowded = true;
	usleep(10000);
}

static void handle(struct wf_devd *devd, enum wf_devd_source *source)
{
	switch (*source) {
	case WF_DEVD_LISTENER:
		accept_one(devd);
		break;
	case WF_DEVD_INBOX:
		break; /* after the clients: reaping frees them */
	case WF_DEVD_CLIENT:
		wf_devd_client_serve((struct wf_devd_client *)(void *)source);
		break;
	}
}

/* A client has two descriptors in the set, and serving one may free it: an
 * event of the other in the same round is dropped. */
static void forget(struct epoll_event *events, int from, int n, void *source)
{
	for (int i = from; i < n; i++) {
		if (events[i].data.ptr == source)
			events[i].data.ptr = NULL;
	}
}

/* Does the work that nobody asks for. */
static void look_after(struct wf_devd *devd)
{
	uint64_t now = wf_base_clock_ns();

	for (unsigned int i = 0; i < devd->config.workers; i++)
		wf_devd_worker_watch(&devd->workers[i], now);
	if (devd->n_kept && now - devd->swept_at >= WATCH_MS * WF_NS_PER_MS) {
		wf_devd_kept_sweep(devd);
		devd->swept_at = now;
	}
	devd->busy = wf_devd_stats_flush(devd);
	if (wf_devd_user_refill(devd, now, &devd->waits)) {
		for (unsigned int i = 0; i < devd->config.workers; i++)
			wf_devd_worker_wake(&devd->workers[i]);
	}
	if (now - devd->ticked_at < TICK)
		return;
	devd->ticked_at = now;
	wf_devd_client_tick(devd);
	wf_devd_errands_hurry(devd->errands, now);
}

static int pause_of(const struct wf_devd *devd)
{
	if (!devd->n_clients && !devd->refusing && !devd->n_kept)
		return -1;
	return devd->waits ? QUOTA_MS : devd->busy ? BUSY_MS : WATCH_MS;
}

int wf_devd_run(struct wf_devd *devd)
{
	struct epoll_event events[EVENTS];
	int n;

	while (!atomic_load(&devd->stop)) {
		if (atomic_exchange(&devd->interrupted, false))
			return 1;
		n = epoll_wait(devd->epoll_fd, events, EVENTS, pause_of(devd));
		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n; i++) {
			void *source = events[i].data.ptr;

			if (!source)
				continue;
			forget(events, i + 1, n, source);
			handle(devd, source);
		}
		empty_inbox(devd);
		take_errands(devd);
		look_after(devd);
	}
	return 0;
}

static void wake(struct wf_devd *devd)
{
	const uint64_t one = 1;

	if (write(devd->inbox_fd, &one, sizeof(one)) < 0)
		return; /* it is full: the loop wakes anyway */
}

void wf_devd_stop(struct wf_devd *devd)
{
	atomic_store(&devd->stop, true);
	wake(devd);
}

void wf_devd_interrupt(struct wf_devd *devd)
{
	atomic_store(&devd->interrupted, true);
	wake(devd);
}

void wf_devd_stats(struct wf_devd *devd, struct wf_devd_stats *stats)
{
	*stats = (struct wf_devd_stats){
		.clients = devd->clients_seen,
		.channels = devd->chans_seen,
		.now_clients = devd->n_clients,
		.now_channels = devd->n_chans,
	};
	for (unsigned int i = 0; i < devd->config.workers; i++) {
		stats->jobs += devd->workers[i].jobs;
		stats->refused += devd->workers[i].refused;
		stats->faults += devd->workers[i].faults;
	}
}

void wf_devd_close(struct wf_devd *devd)
{
	struct wf_list *pos, *tmp;

	/* No new ones; then everybody out, and wait for their jobs. */
	wf_devd_listen_close(devd);
	wf_list_for_each (pos, tmp, &devd->clients)
		wf_devd_client_drop(
			wf_container_of(pos, struct wf_devd_client, link));
	while (devd->n_chans) {
		empty_inbox(devd);
		take_errands(devd);
		for (unsigned int i = 0; i < devd->config.workers; i++)
			wf_devd_worker_watch(&devd->workers[i],
					     wf_base_clock_ns());
		usleep(1000);
	}
	end_workers(devd, devd->config.workers);
	wf_devd_errands_close(devd->errands);
	wf_devd_client_forget_all(devd);
	close(devd->inbox_fd);
	close(devd->epoll_fd);
	wf_devd_job_unguard();
	wf_devd_stats_close(devd);
	wf_devd_arena_fini(&devd->arena);
	wf_devd_kept_free_all(devd);
	wf_devd_user_free_all(devd);
	pthread_mutex_destroy(&devd->inbox_lock);
	free(devd);
}
