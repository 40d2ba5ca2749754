/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads UACCE devices from sysfs, in both dialects. The contents are treated as
 * text from outside: bounded, and checked before use.
 */
#include "chan/uacce.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "chan/uacce_defs.h"

#define ATTR_SIZE 4096 /* a page: sysfs has no more */
#define LOCAL_DISTANCE 10

int wf_chan_devices_add(struct wf_chan_devices *devices,
			const struct uacce_dev_info *dev)
{
	struct uacce_dev_info *all;
	int room;

	if (devices->count == devices->room) {
		room = devices->room ? 2 * devices->room : 8;
		all = realloc(devices->all, (size_t)room * sizeof(*all));
		if (!all)
			return -ENOMEM;
		devices->all = all;
		devices->room = room;
	}
	devices->all[devices->count++] = *dev;
	return 0;
}

/* -- attributes ------------------------------------------------------------ */

/* The content without the newline at its end. */
static int read_text(int folder, const char *name, char *text, size_t size)
{
	ssize_t got;
	int fd;

	fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	got = read(fd, text, size - 1);
	close(fd);
	if (got < 0)
		return -EIO;
	while (got && (text[got - 1] == '\n' || text[got - 1] == ' '))
		got--;
	text[got] = '\0';
	return 0;
}

static int read_long(int folder, const char *name, long *value)
{
	char text[64], *end;
	int err;

	err = read_text(folder, name, text, sizeof(text));
	if (err)
		return err;
	errno = 0;
	*value = strtol(text, &end, 0);
	return errno || end == text || *end ? -EINVAL : 0;
}

static int read_int(int folder, const char *name, int *value)
{
	long number;
	int err = read_long(folder, name, &number);

	if (!err && (number < INT_MIN || number > INT_MAX))
		err = -EINVAL;
	if (!err)
		*value = (int)number;
	return err;
}

/* Whole lines, as many as fit. */
static int read_algs(int folder, char *algs)
{
	char text[ATTR_SIZE];
	size_t len;
	int err;

	err = read_text(folder, "algorithms", text, sizeof(text));
	if (err)
		return err;
	len = strlen(text);
	if (len >= WD_ALGS_SIZE) {
		len = WD_ALGS_SIZE - 1;
		while (len && text[len] != '\n')
			len--;
	}
	memcpy(algs, text, len);
	algs[len] = '\0';
	return 0;
}

/* -- dialects -------------------------------------------------------------- */

static int read_mainline(int folder, struct uacce_dev_info *dev)
{
	static const char *const sizes[] = {
		[UACCE_QFRT_MMIO] = "region_mmio_size",
		[UACCE_QFRT_DUS] = "region_dus_size",
	};
	long page = sysconf(_SC_PAGESIZE), size;
	int isolated = 0;

	dev->kind = WD_DEV_UACCE;
	dev->iommu_type = dev->flags & WF_UACCE_FLAG_SVA ?
				  WD_IOMMU_SVA :
				  WD_IOMMU_SHARE_DOMAIN;
	for (int i = 0; i <= UACCE_QFRT_DUS; i++) {
		dev->qfrs_offset[i] = (unsigned long)(i * page);
		/* Absent where the device has no such region. */
		if (!read_long(folder, sizes[i], &size) && size > 0)
			dev->qfrs_size[i] = (unsigned long)size;
	}
	read_int(folder, "device/numa_node", &dev->node_id);
	/* The kernel disabled it after too many errors. */
	if (!read_int(folder, "isolate", &isolated) && isolated)
		dev->available_instances = 0;
	return 0;
}

static int read_offsets(int folder, struct uacce_dev_info *dev)
{
	unsigned long *at = dev->qfrs_offset;
	char text[256], *word = text, *end;
	int i, err;

	err = read_text(folder, "qfrs_offset", text, sizeof(text));
	if (err)
		return err;
	for (i = 0; i < UACCE_QFRT_MAX; i++) {
		at[i] = strtoul(word, &end, 0);
		if (end == word)
			return -EINVAL;
		word = end;
	}
	/* Regions are in order; SS has the requested size. */
	for (i = 0; i < UACCE_QFRT_SS; i++) {
		if (at[i] == WF_UACCE_SEED_NO_REGION)
			continue;
		for (int next = i + 1; next < UACCE_QFRT_MAX; next++) {
			if (at[next] == WF_UACCE_SEED_NO_REGION)
				continue;
			if (at[next] <= at[i])
				return -EINVAL;
			dev->qfrs_size[i] = at[next] - at[i];
			break;
		}
	}
	if (at[UACCE_QFRT_SS] != WF_UACCE_SEED_NO_REGION)
		dev->qfrs_size[UACCE_QFRT_SS] = LONG_MAX;
	return 0;
}

static int read_seed(int folder, struct uacce_dev_info *dev)
{
	dev->kind = WD_DEV_UACCE_SEED;
	dev->iommu_type = WD_IOMMU_SHARE_DOMAIN;
	if (dev->flags & WF_UACCE_SEED_FLAG_NOIOMMU)
		dev->iommu_type = WD_IOMMU_NONE;
	else if ((dev->flags & WF_UACCE_SEED_FLAG_SVA) ==
		 WF_UACCE_SEED_FLAG_SVA)
		dev->iommu_type = WD_IOMMU_SVA;
	read_int(folder, "node_id", &dev->node_id);
	return read_offsets(folder, dev);
}

/* -- the list -------------------------------------------------------------- */

int wf_chan_uacce_here(void)
{
	unsigned int cpu, node;

	return getcpu(&cpu, &node) ? -1 : (int)node;
}

int wf_chan_uacce_distance(const char *sysfs, int from, int to)
{
	char path[PATH_MAX], text[ATTR_SIZE], *word = text, *end;
	int distance = LOCAL_DISTANCE;

	if (from < 0 || to < 0)
		return LOCAL_DISTANCE;
	snprintf(path, sizeof(path), "%s/devices/system/node/node%d/distance",
		 sysfs, from);
	if (read_text(AT_FDCWD, path, text, sizeof(text)))
		return LOCAL_DISTANCE;
	for (int i = 0; i <= to; i++) {
		distance = (int)strtol(word, &end, 10);
		if (end == word)
			return LOCAL_DISTANCE;
		word = end;
	}
	return distance;
}

static int read_device(const char *sysfs, const char *dev_root, int folder,
		       const char *name, struct uacce_dev_info *dev)
{
	struct stat st;
	int attrs, err;

	*dev = (struct uacce_dev_info){ .node_id = -1 };
	if (snprintf(dev->name, sizeof(dev->name), "%s", name) >=
		    (int)sizeof(dev->name) ||
	    snprintf(dev->dev_path, sizeof(dev->dev_path), "%s/%s", dev_root,
		     name) >= (int)sizeof(dev->dev_path))
		return -ENAMETOOLONG;
	if (stat(dev->dev_path, &st))
		return -errno;
	/* The folder distinguishes the dialects. */
	attrs = openat(folder, "attrs", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	if (attrs < 0)
		attrs = dup(folder);
	else
		dev->kind = WD_DEV_UACCE_SEED;
	if (attrs < 0)
		return -errno;
	err = read_int(attrs, "flags", &dev->flags);
	if (!err)
		err = read_algs(attrs, dev->algs);
	if (!err)
		err = read_int(attrs, "available_instances",
			       &dev->available_instances);
	if (!err)
		err = read_text(attrs, "api", dev->api, sizeof(dev->api));
	if (!err)
		err = dev->kind == WD_DEV_UACCE_SEED ?
			      read_seed(attrs, dev) :
			      read_mainline(attrs, dev);
	/* The seed's kernel states the distance itself. */
	if (!err && (dev->kind != WD_DEV_UACCE_SEED ||
		     read_int(attrs, "numa_distance", &dev->numa_dis)))
		dev->numa_dis = wf_chan_uacce_distance(
			sysfs, wf_chan_uacce_here(), dev->node_id);
	close(attrs);
	return err;
}

int wf_chan_uacce_scan(const char *sysfs, const char *dev_root,
		       struct wf_chan_devices *devices)
{
	struct uacce_dev_info dev;
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;
	int folder, err = 0;

	snprintf(path, sizeof(path), "%s/class/uacce", sysfs);
	dir = opendir(path);
	if (!dir)
		return 0; /* no such class: no such device */
	while (!err && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		folder = openat(dirfd(dir), entry->d_name,
				O_DIRECTORY | O_RDONLY | O_CLOEXEC);
		if (folder < 0)
			continue;
		err = read_device(sysfs, dev_root, folder, entry->d_name, &dev);
		close(folder);
		if (!err) {
			err = wf_chan_devices_add(devices, &dev);
		} else {
			wf_info("%s/%s is left out: %s", path, entry->d_name,
				strerror(-err));
			err = 0;
		}
	}
	closedir(dir);
	return err;
}
