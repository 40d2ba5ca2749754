/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adding up what the channels of devices have counted.
 */
#include "devd/stats.h"

#include <stdio.h>
#include <string.h>

#include "devd/server.h"

#define N_COUNTED (WF_DEVD_STAT_COUNT - WF_DEVD_STAT_FIRST)

#define X(name) #name,
static const char *const names[WF_DEVD_STAT_COUNT] = { WF_DEVD_STATS(X) };
#undef X

int wf_devd_stats_open_device(struct wf_devd *devd,
			      struct wf_devd_device *device)
{
	char name[sizeof(((struct wf_stats_page *)0)->name)];

	snprintf(name, sizeof(name), "%.30s:%.24s", devd->config.socket,
		 device->config.name);
	return wf_base_stats_open(&device->stats, "device", name, names,
				  WF_DEVD_STAT_COUNT);
}

int wf_devd_stats_open(struct wf_devd *devd)
{
	int err = 0;

	for (unsigned int i = 0; i < devd->config.n_devices && !err; i++)
		err = wf_devd_stats_open_device(devd, &devd->devices[i]);
	if (err)
		wf_devd_stats_close(devd);
	return err;
}

void wf_devd_stats_close(struct wf_devd *devd)
{
	for (unsigned int i = 0; i < devd->config.n_devices; i++)
		wf_base_stats_close(&devd->devices[i].stats);
}

static void add_up(const struct wf_devd_chan *chan, uint64_t *sums)
{
	for (int i = 0; i < N_COUNTED; i++)
		sums[i] += atomic_load_explicit(&chan->counts.n[i],
						memory_order_relaxed);
}

void wf_devd_stats_keep(struct wf_devd_chan *chan)
{
	add_up(chan, chan->device->counted);
}

/* As its client has rung, who may lie. */
static uint64_t waiting(const struct wf_devd_chan *chan)
{
	uint64_t jobs = atomic_load_explicit(
		&chan->counts.n[WF_DEVD_STAT_jobs - WF_DEVD_STAT_FIRST],
		memory_order_relaxed);
	uint16_t n = (uint16_t)(atomic_load_explicit(&chan->mmio->doorbell,
						     memory_order_relaxed) -
				jobs);

	return n <= chan->client->devd->config.depth ? n : 0;
}

static bool publish(struct wf_devd_device *device, const uint64_t *sums,
		    uint64_t jobs_waiting)
{
	struct wf_stats *stats = &device->stats;
	bool moved = wf_base_stats_get(stats, WF_DEVD_STAT_jobs) != sums[0];

	for (int i = 0; i < N_COUNTED; i++)
		wf_base_stats_set(stats, (unsigned int)(WF_DEVD_STAT_FIRST + i),
				  sums[i]);
	wf_base_stats_set(stats, WF_DEVD_STAT_channels, device->in_use);
	wf_base_stats_set(stats, WF_DEVD_STAT_opened, device->opened);
	wf_base_stats_set(stats, WF_DEVD_STAT_turned_away, device->turned_away);
	wf_base_stats_set(stats, WF_DEVD_STAT_memory, device->memory);
	wf_base_stats_set(stats, WF_DEVD_STAT_waiting, jobs_waiting);
	return moved;
}

bool wf_devd_stats_flush(struct wf_devd *devd)
{
	uint64_t sums[WF_DEVD_DEVICES_MAX][N_COUNTED];
	uint64_t wait[WF_DEVD_DEVICES_MAX] = { 0 };
	struct wf_list *pos, *tmp, *in, *in_tmp;
	bool moved = false;

	for (unsigned int i = 0; i < devd->config.n_devices; i++)
		memcpy(sums[i], devd->devices[i].counted, sizeof(sums[i]));
	wf_list_for_each (pos, tmp, &devd->clients) {
		struct wf_devd_client *client =
			wf_container_of(pos, struct wf_devd_client, link);

		wf_list_for_each (in, in_tmp, &client->chans) {
			struct wf_devd_chan *chan = wf_container_of(
				in, struct wf_devd_chan, in_client);
			size_t at = (size_t)(chan->device - devd->devices);

			add_up(chan, sums[at]);
			wait[at] += waiting(chan);
		}
	}
	for (unsigned int i = 0; i < devd->config.n_devices; i++)
		moved |= publish(&devd->devices[i], sums[i], wait[i]);
	return moved;
}
