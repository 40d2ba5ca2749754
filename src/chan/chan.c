/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requesting and releasing channels, and what drivers call on them. Owns
 * struct wf_chan_core; memory is memory.c's.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "chan/core.h"
#include "chan/devices.h"
#include "chan/soft.h"
#include "weft/wd_drv.h"

/* In a child: neither keep the device busy nor touch what the parent uses. */
static void in_child(struct wf_fork_watch *watch)
{
	struct wf_chan_core *core =
		wf_container_of(watch, struct wf_chan_core, watch);

	close(core->ch->fd);
	core->ch->fd = -1;
	if (core->event_fd >= 0)
		close(core->event_fd);
	if (core->kick_fd >= 0)
		close(core->kick_fd);
	core->event_fd = core->kick_fd = -1;
	core->foreign = true;
	/* Another thread may have held it. */
	pthread_mutex_init(&core->memory_lock, NULL);
}

/* -- request --------------------------------------------------------------- */

static const struct wf_chan_ops *ops_of(const struct uacce_dev_info *dev)
{
	switch (dev->kind) {
	case WD_DEV_SOFT:
		return &wf_chan_soft_ops;
	case WD_DEV_PLUGGED:
		return &wf_chan_plugged_ops;
	default:
		return &wf_chan_node_ops;
	}
}

static int open_device(struct wd_chan *ch)
{
	struct wf_chan_core *core = ch->core;
	int err;

	core->ops = ops_of(ch->dev_info);
	err = core->ops->open(ch);
	if (err)
		return err;
	snprintf(ch->dev_path, sizeof(ch->dev_path), "%s",
		 ch->dev_info->dev_path);
	core->watch.in_child = in_child;
	wf_base_fork_watch(&core->watch);
	return 0;
}

/* Devices of plug-ins have no descriptor to submit to, and to open one may take
 * seconds: only a program that names one wants it. */
static int drop_plugged(struct uacce_dev_info *list, int count)
{
	int kept = 0;

	for (int i = 0; i < count; i++) {
		if (list[i].kind != WD_DEV_PLUGGED)
			list[kept++] = list[i];
	}
	return kept;
}

/* Opens the first device that lets us in. If none does, the answer of the last
 * one is returned, unless one was busy: "busy" is the better answer. */
static int open_first(struct wd_chan *ch, const struct uacce_dev_info *list,
		      int count)
{
	struct wf_chan_core *core = ch->core;
	int err = -ENODEV, busy = 0;

	for (int i = 0; i < count; i++) {
		*core->own_info = list[i];
		ch->dev_info = core->own_info;
		err = open_device(ch);
		if (!err)
			return 0;
		if (err == -EBUSY)
			busy = err;
	}
	ch->dev_info = NULL;
	return busy ? busy : err;
}

static bool names(const struct uacce_dev_info *dev, const char *path)
{
	return !strcmp(dev->dev_path, path) || !strcmp(dev->name, path);
}

static int open_named(struct wd_chan *ch, const struct uacce_dev_info *list,
		      int count)
{
	struct uacce_dev_info dev;
	int err;

	for (int i = 0; i < count; i++) {
		if (names(&list[i], ch->dev_path))
			return open_first(ch, &list[i], 1);
	}
	/* A socket that no list knows. */
	err = wf_chan_soft_lookup(wf_chan_devices_sysfs(), ch->dev_path, &dev);
	return err ? err : open_first(ch, &dev, 1);
}

static int choose(struct wd_chan *ch)
{
	struct uacce_dev_info *list;
	int count, err, refused;

	ch->core->own_info = malloc(sizeof(*ch->core->own_info));
	if (!ch->core->own_info)
		return -ENOMEM;
	count = wf_chan_devices_list(ch->dev_path[0] ? NULL : ch->alg, &list,
				     &refused);
	if (count < 0)
		return count;
	if (ch->dev_path[0])
		err = open_named(ch, list, count);
	else
		err = open_first(ch, list, drop_plugged(list, count));
	wd_free_devices(list);
	/* Why there is none is the better answer. */
	return err == -ENODEV && refused ? refused : err;
}

static bool ends(const char *text, size_t size)
{
	return memchr(text, '\0', size);
}

int wd_request_channel(struct wd_chan *ch)
{
	struct wf_chan_core *core;
	int err;

	if (!ch || ch->core || !ends(ch->dev_path, sizeof(ch->dev_path)) ||
	    (ch->dev_info &&
	     !ends(ch->dev_info->dev_path, sizeof(ch->dev_info->dev_path))))
		return -EINVAL;
	core = calloc(1, sizeof(*core));
	if (!core)
		return -ENOMEM;
	core->ch = ch;
	core->event_fd = core->kick_fd = -1;
	pthread_mutex_init(&core->memory_lock, NULL);
	ch->core = core;
	ch->fd = -1;
	ch->ss_va = ch->ss_dma = NULL;
	ch->flags = 0;
	err = ch->dev_info ? open_device(ch) : choose(ch);
	if (!err)
		return 0;
	pthread_mutex_destroy(&core->memory_lock);
	free(core->own_info);
	free(core);
	ch->core = NULL;
	return err;
}

void wd_release_channel(struct wd_chan *ch)
{
	struct wf_chan_core *core = wf_chan_core_of(ch);

	if (!core)
		return;
	if (core->user)
		core->user_close(core->user);
	wd_drv_stop(ch);
	wf_base_fork_unwatch(&core->watch);
	wf_chan_memory_release(core);
	core->ops->close(ch);
	if (ch->fd >= 0)
		close(ch->fd);
	if (core->own_info)
		ch->dev_info = NULL;
	pthread_mutex_destroy(&core->memory_lock);
	free(core->own_info);
	free(core);
	ch->core = NULL;
	ch->fd = -1;
	ch->ss_va = ch->ss_dma = NULL;
	ch->flags = 0;
}

/* -- for drivers ----------------------------------------------------------- */

int wd_drv_start(struct wd_chan *ch)
{
	struct wf_chan_core *core = wf_chan_core_of(ch);
	int err;

	if (!core || core->stopped)
		return -EINVAL;
	if (core->foreign)
		return -ENODEV;
	if (atomic_exchange(&core->started, true))
		return -EINVAL;
	err = core->ops->start(ch);
	if (err)
		core->started = false;
	return err;
}

int wd_drv_stop(struct wd_chan *ch)
{
	struct wf_chan_core *core = wf_chan_core_of(ch);

	if (!core)
		return -EINVAL;
	if (core->foreign)
		return -ENODEV;
	if (atomic_exchange(&core->stopped, true))
		return 0;
	return core->ops->stop(ch);
}

int wd_drv_event_fd(struct wd_chan *ch)
{
	struct wf_chan_core *core = wf_chan_core_of(ch);

	if (!core)
		return -EINVAL;
	if (core->foreign)
		return -ENODEV;
	if (core->event_fd >= 0)
		return core->event_fd;
	return ch->fd >= 0 ? ch->fd : -EOPNOTSUPP; /* a plug-in's device */
}

int wd_drv_wait(struct wd_chan *ch, int timeout_ms)
{
	struct wf_chan_core *core = wf_chan_core_of(ch);

	if (!core)
		return -EINVAL;
	return core->foreign ? -ENODEV : core->ops->wait(ch, timeout_ms);
}

int wd_drv_kick(struct wd_chan *ch)
{
	struct wf_chan_core *core = wf_chan_core_of(ch);

	if (!core)
		return -EINVAL;
	return core->foreign ? -ENODEV : core->ops->kick(ch);
}

int wd_drv_alive(struct wd_chan *ch)
{
	struct wf_chan_core *core = wf_chan_core_of(ch);

	return core && !core->foreign && core->ops->alive(ch);
}
