/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Channels to devices of plug-ins. There is nothing to map and nothing to ring:
 * the driver of the plug-in does the jobs, by its own means. A channel has
 * nothing but its memory.
 */
#include "chan/plugged.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "chan/core.h"

#define MOST 16
#define INSTANCES 4096 /* of channels there is no limit */

static const struct wd_drv_dev *devs[MOST];
static atomic_int count; /* those before it do not change */

void (*wf_chan_plugged_load)(void);

static bool fits(const char *text, size_t size)
{
	return text && *text && strlen(text) < size;
}

static const struct wd_drv_dev *find(const char *name)
{
	int n = atomic_load(&count);

	for (int i = 0; i < n; i++) {
		if (!strcmp(devs[i]->name, name))
			return devs[i];
	}
	return NULL;
}

int wf_chan_plugged_add(const struct wd_drv_dev *dev)
{
	int n = atomic_load(&count);

	if (!dev || dev->size < sizeof(*dev) ||
	    !fits(dev->name, WD_NAME_SIZE) || !fits(dev->api, WD_NAME_SIZE) ||
	    !fits(dev->algs, WD_ALGS_SIZE) || strchr(dev->name, '/') ||
	    !dev->open || !dev->reserve || !dev->release)
		return -EINVAL;
	if (find(dev->name))
		return -EEXIST;
	if (n == MOST)
		return -ENOSPC;
	devs[n] = dev;
	atomic_store(&count, n + 1);
	return 0;
}

int wf_chan_plugged_scan(const char *sysfs, struct wf_chan_devices *devices)
{
	int n, err = 0;

	if (wf_chan_plugged_load)
		wf_chan_plugged_load();
	n = atomic_load(&count);
	for (int i = 0; i < n && !err; i++) {
		struct uacce_dev_info dev = {
			.kind = WD_DEV_PLUGGED,
			.node_id = devs[i]->node ? devs[i]->node() : -1,
			.iommu_type = WD_IOMMU_SHARE_DOMAIN,
			.available_instances = INSTANCES,
		};

		dev.numa_dis = wf_chan_uacce_distance(
			sysfs, wf_chan_uacce_here(), dev.node_id);
		strcpy(dev.name, devs[i]->name);
		strcpy(dev.dev_path, devs[i]->name);
		strcpy(dev.api, devs[i]->api);
		strcpy(dev.algs, devs[i]->algs);
		err = wf_chan_devices_add(devices, &dev);
	}
	return err;
}

static int plugged_open(struct wd_chan *ch)
{
	const struct wd_drv_dev *dev = find(ch->dev_info->name);

	if (!dev)
		return -ENODEV;
	ch->core->plugged = dev;
	return dev->open();
}

/* The driver has released its jobs before: see core.h, user_close. */
static int plugged_stop(struct wd_chan *ch)
{
	(void)ch;
	return 0;
}

static void plugged_close(struct wd_chan *ch)
{
	(void)ch;
}

static int plugged_start(struct wd_chan *ch)
{
	(void)ch;
	return -EOPNOTSUPP;
}

static int plugged_wait(struct wd_chan *ch, int timeout_ms)
{
	(void)ch;
	(void)timeout_ms;
	return -EOPNOTSUPP;
}

static int plugged_kick(struct wd_chan *ch)
{
	(void)ch;
	return 0;
}

static bool plugged_alive(struct wd_chan *ch)
{
	return !ch->core->plugged->open();
}

static int plugged_reserve(struct wd_chan *ch, size_t size, void **va,
			   uint64_t *dma)
{
	return ch->core->plugged->reserve(size, va, dma);
}

static int plugged_share(struct wd_chan *owner, struct wd_chan *target)
{
	return owner->core->plugged == target->core->plugged ? 0 : -EINVAL;
}

const struct wf_chan_ops wf_chan_plugged_ops = {
	.open = plugged_open,
	.stop = plugged_stop,
	.close = plugged_close,
	.start = plugged_start,
	.wait = plugged_wait,
	.kick = plugged_kick,
	.alive = plugged_alive,
	.reserve = plugged_reserve,
	.share = plugged_share,
};
