/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Software devices as discovery sees them.
 */
#ifndef WF_CHAN_SOFT_H
#define WF_CHAN_SOFT_H

#include "chan/uacce.h"

/* Appends the devices behind every socket of WEFT_DEVD (separated by colons),
 * or behind the user's own and root's (chan/place.h). Where nobody listens
 * there are none. -ENOMEM. */
int wf_chan_soft_scan(const char *sysfs, struct wf_chan_devices *devices);

/* The device that "socket:name" names. -ENODEV. */
int wf_chan_soft_lookup(const char *sysfs, const char *path,
			struct uacce_dev_info *dev);

#endif
