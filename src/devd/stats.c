/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adding up what the channels of devices have counted.
 */
#include "devd/stats.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "devd/server.h"

#define N_COUNTED WF_DEVD_STAT_COUNTED

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

void wf_devd_stats_open_user(struct wf_devd *devd, struct wf_devd_user *user)
{
	char name[sizeof(((struct wf_stats_page *)0)->name)];

	if (user->stats.page)
		return;
	snprintf(name, sizeof(name), "%.30s:uid %lu", devd->config.socket,
		 (unsigned long)user->uid);
	if (wf_base_stats_open(&user->stats, "user", name, names,
			       WF_DEVD_STAT_COUNT))
		wf_info("no memory to count what user %lu does",
			(unsigned long)user->uid);
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
	add_up(chan, chan->client->user->counted);
}

/* From the client's doorbell, which may be false. */
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

static bool publish(struct wf_stats *stats,
		    const struct wf_devd_account *account)
{
	bool moved = wf_base_stats_get(stats, WF_DEVD_STAT_jobs) !=
		     account->counted[0];

	for (int i = 0; i < N_COUNTED; i++)
		wf_base_stats_set(stats, (unsigned int)(WF_DEVD_STAT_FIRST + i),
				  account->counted[i]);
	wf_base_stats_set(stats, WF_DEVD_STAT_channels, account->channels);
	wf_base_stats_set(stats, WF_DEVD_STAT_opened, account->opened);
	wf_base_stats_set(stats, WF_DEVD_STAT_turned_away,
			  account->turned_away);
	wf_base_stats_set(stats, WF_DEVD_STAT_memory, account->memory);
	wf_base_stats_set(stats, WF_DEVD_STAT_waiting, account->waiting);
	return moved;
}

static void start_sums(struct wf_devd *devd)
{
	struct wf_list *pos, *tmp;

	for (unsigned int i = 0; i < devd->config.n_devices; i++) {
		struct wf_devd_device *device = &devd->devices[i];

		device->account = (struct wf_devd_account){
			.channels = device->in_use,
			.opened = device->opened,
			.turned_away = device->turned_away,
			.memory = device->memory,
		};
		memcpy(device->account.counted, device->counted,
		       sizeof(device->counted));
	}
	wf_list_for_each (pos, tmp, &devd->users) {
		struct wf_devd_user *user =
			wf_container_of(pos, struct wf_devd_user, link);

		user->account = (struct wf_devd_account){
			.channels = user->chans,
			.opened = user->opened,
			.turned_away = user->turned_away,
			.memory = user->memory,
		};
		memcpy(user->account.counted, user->counted,
		       sizeof(user->counted));
	}
}

static void add_channel(struct wf_devd_account *account,
			const struct wf_devd_chan *chan)
{
	add_up(chan, account->counted);
	account->waiting += waiting(chan);
}

bool wf_devd_stats_flush(struct wf_devd *devd)
{
	struct wf_list *pos, *tmp, *in, *in_tmp;
	bool moved = false;

	start_sums(devd);
	wf_list_for_each (pos, tmp, &devd->clients) {
		struct wf_devd_client *client =
			wf_container_of(pos, struct wf_devd_client, link);

		wf_list_for_each (in, in_tmp, &client->chans) {
			struct wf_devd_chan *chan = wf_container_of(
				in, struct wf_devd_chan, in_client);

			add_channel(&chan->device->account, chan);
			add_channel(&client->user->account, chan);
		}
	}
	for (unsigned int i = 0; i < devd->config.n_devices; i++)
		moved |= publish(&devd->devices[i].stats,
				 &devd->devices[i].account);
	wf_list_for_each (pos, tmp, &devd->users) {
		struct wf_devd_user *user =
			wf_container_of(pos, struct wf_devd_user, link);

		if (user->stats.page)
			publish(&user->stats, &user->account);
	}
	return moved;
}
