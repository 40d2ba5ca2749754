/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices of plug-ins: they have neither a node nor a socket, and the plug-in
 * makes their memory. They are added when plug-ins are loaded, and stay.
 */
#ifndef WF_CHAN_PLUGGED_H
#define WF_CHAN_PLUGGED_H

#include "chan/uacce.h"
#include "weft/wd_drv.h"

/* @dev stays the caller's and must stay. -EINVAL: it is not complete; -EEXIST:
 * the name is taken; -ENOSPC. Only one thread adds at a time. */
int wf_chan_plugged_add(const struct wd_drv_dev *dev);

/* Loads plug-ins. The layer above sets it; it is called before devices are
 * listed. */
extern void (*wf_chan_plugged_load)(void);

/* Appends them all. -ENOMEM. */
int wf_chan_plugged_scan(const char *sysfs, struct wf_chan_devices *devices);

#endif
