/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Choosing among devices.
 */
#ifndef WF_CHAN_DEVICES_H
#define WF_CHAN_DEVICES_H

#include "chan/uacce.h"

/* Where sysfs is: WEFT_SYSFS or /sys. */
const char *wf_chan_devices_sysfs(void);

/* Drops those without @alg (NULL: none), sorts the rest as wd_list_devices()
 * says. How many are left. */
int wf_chan_devices_sort(struct wf_chan_devices *devices, const char *alg);

/* wd_list_devices(), and in *@refused why a device process shows none of its
 * devices (-EACCES, -EBUSY, -EPROTO ...), 0 if all do. */
int wf_chan_devices_list(const char *alg, struct uacce_dev_info **list,
			 int *refused);

#endif
