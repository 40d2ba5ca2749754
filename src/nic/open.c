/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The devices, by name. No other file names one.
 */
#include "nic/open.h"

#include <errno.h>
#include <string.h>

#include "nic/ops.h"
#include "nic/tcp/tcp.h"
#include "nic/udp/udp.h"

/* The default first. */
static const struct wf_nic_ops *const devices[] = {
	&wf_nic_tcp_ops,
	&wf_nic_udp_ops,
};

#define DEVICES (sizeof(devices) / sizeof(devices[0]))

static const struct wf_nic_ops *find(const char *device)
{
	if (!device)
		return devices[0];
	for (unsigned int i = 0; i < DEVICES; i++) {
		if (!strcmp(devices[i]->name, device))
			return devices[i];
	}
	return NULL;
}

int wf_nic_open(const char *device, const struct wf_nic_attr *attr,
		struct wf_nic **nic)
{
	const struct wf_nic_ops *ops = find(device);

	return ops ? ops->open(attr, nic) : -ENODEV;
}

const char *wf_nic_device_name(unsigned int index)
{
	return index < DEVICES ? devices[index]->name : NULL;
}

const char *wf_nic_device_about(const char *device)
{
	const struct wf_nic_ops *ops = find(device);

	return ops ? ops->about : NULL;
}

unsigned int wf_nic_device_addrs(const char *device)
{
	const struct wf_nic_ops *ops = find(device);

	return ops && ops->addrs ? ops->addrs : 1;
}

int wf_nic_device_socket(const char *device)
{
	const struct wf_nic_ops *ops = find(device);

	return ops ? ops->socket : devices[0]->socket;
}
