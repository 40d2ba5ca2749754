/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of devices of every kind, best first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "chan/devices.h"
#include "chan/plugged.h"
#include "chan/soft.h"

static const char *or_default(const char *name, const char *fallback)
{
	const char *value = secure_getenv(name);

	return value && *value ? value : fallback;
}

const char *wf_chan_devices_sysfs(void)
{
	return or_default(WF_CHAN_SYSFS_ENV, "/sys");
}

int wd_has_alg(const struct uacce_dev_info *dev, const char *alg)
{
	const char *line = dev ? dev->algs : NULL;
	size_t len = alg ? strlen(alg) : 0;

	if (!len || strchr(alg, '\n'))
		return 0;
	while (line) {
		if (!strncmp(line, alg, len) &&
		    (line[len] == '\n' || !line[len]))
			return 1;
		line = strchr(line, '\n');
		if (line)
			line++;
	}
	return 0;
}

static int compare(int a, int b)
{
	return (a > b) - (a < b);
}

/* Hardware, then software. Those of plug-ins are for programs that want them. */
static int rank_of(const struct uacce_dev_info *dev)
{
	return dev->kind == WD_DEV_PLUGGED ? 2 : dev->kind == WD_DEV_SOFT;
}

static int by_merit(const void *left, const void *right)
{
	const struct uacce_dev_info *a = left, *b = right;
	int order;

	order = compare(a->available_instances <= 0,
			b->available_instances <= 0);
	if (!order)
		order = compare(rank_of(a), rank_of(b));
	if (!order)
		order = compare(a->numa_dis, b->numa_dis);
	/* A scenario that requires less of its user is better. */
	if (!order)
		order = compare(a->iommu_type, b->iommu_type);
	if (!order)
		order = compare(b->available_instances, a->available_instances);
	return order ? order : strcmp(a->name, b->name);
}

int wf_chan_devices_sort(struct wf_chan_devices *devices, const char *alg)
{
	int kept = 0;

	for (int i = 0; i < devices->count; i++) {
		if (!alg || wd_has_alg(&devices->all[i], alg))
			devices->all[kept++] = devices->all[i];
	}
	devices->count = kept;
	if (kept)
		qsort(devices->all, (size_t)kept, sizeof(devices->all[0]),
		      by_merit);
	return kept;
}

int wf_chan_devices_list(const char *alg, struct uacce_dev_info **list,
			 int *refused)
{
	const char *sysfs = wf_chan_devices_sysfs();
	struct wf_chan_devices devices = { 0 };
	int err;

	*list = NULL;
	err = wf_chan_uacce_scan(sysfs, or_default(WF_CHAN_DEV_ENV, "/dev"),
				 &devices);
	if (!err)
		err = wf_chan_soft_scan(sysfs, &devices);
	if (!err)
		err = wf_chan_plugged_scan(sysfs, &devices);
	*refused = devices.refused;
	if (err || !wf_chan_devices_sort(&devices, alg)) {
		free(devices.all);
		return err;
	}
	*list = devices.all;
	return devices.count;
}

int wd_list_devices(const char *alg, struct uacce_dev_info **list)
{
	int refused;

	return list ? wf_chan_devices_list(alg, list, &refused) : -EINVAL;
}

void wd_free_devices(struct uacce_dev_info *list)
{
	free(list);
}
