/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Discovery: what a UACCE device says about itself in sysfs, and the list of
 * all devices of every kind. The root of sysfs is a parameter.
 */
#ifndef WF_CHAN_UACCE_H
#define WF_CHAN_UACCE_H

#include "weft/wd.h"

#define WF_CHAN_SYSFS_ENV "WEFT_SYSFS"
#define WF_CHAN_DEV_ENV "WEFT_DEV"

struct wf_chan_devices {
	struct uacce_dev_info *all;
	int count;
	int room;
	int refused; /* why a device process shows us none of its devices; 0 */
};

/* Appends a copy. -ENOMEM. */
int wf_chan_devices_add(struct wf_chan_devices *devices,
			const struct uacce_dev_info *dev);

/* Appends every device below @sysfs ("/sys") whose node lies in @dev ("/dev").
 * A device that says nothing sensible is left out. -ENOMEM. */
int wf_chan_uacce_scan(const char *sysfs, const char *dev,
		       struct wf_chan_devices *devices);

/* Distance from NUMA node @from to @to as @sysfs tells; 10 (local) if one of
 * them is unknown. */
int wf_chan_uacce_distance(const char *sysfs, int from, int to);

/* The node of the calling thread, -1 if unknown. */
int wf_chan_uacce_here(void);

#endif
