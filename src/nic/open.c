/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The devices, by name. No other file knows their names.
 */
#include "nic/open.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "nic/efa/efa.h"
#include "nic/ops.h"
#include "nic/tcp/tcp.h"
#include "nic/udp/udp.h"

/* The default first. */
static const struct wf_nic_ops *const devices[] = {
	&wf_nic_tcp_ops,
	&wf_nic_udp_ops,
	&wf_nic_efa_ops,
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

	if (!ops)
		return -ENODEV;
	/* Do not send in the clear instead. */
	if (attr->key_file && !ops->secure)
		return -ENOTSUP;
	return ops->open(attr, nic);
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

const char *wf_nic_device_encrypting(void)
{
	for (unsigned int i = 0; i < DEVICES; i++) {
		if (devices[i]->secure)
			return devices[i]->name;
	}
	return NULL;
}

int wf_nic_device_secure(const char *device, const char *key_file,
			 char why[WF_NIC_WHY])
{
	const struct wf_nic_ops *ops = find(device);

	if (ops && ops->secure)
		return ops->secure(key_file, why, WF_NIC_WHY);
	snprintf(why, WF_NIC_WHY,
		 "the device %s does not encrypt: set FI_WEFT_NIC=%s, or unset "
		 "the key file to send in the clear",
		 ops ? ops->name : device, wf_nic_device_encrypting());
	return -ENOTSUP;
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

int wf_nic_device_find(const char *device, char *name, size_t room,
		       struct wf_addr *addr)
{
	const struct wf_nic_ops *ops = find(device);

	return ops && ops->find ? ops->find(name, room, addr) : -ENODEV;
}

int wf_nic_device_way(const char *device, bool rings, char text[WF_NIC_WHY])
{
	const struct wf_nic_ops *ops = find(device);

	return ops && ops->way ? ops->way(rings, text, WF_NIC_WHY) : -ENODEV;
}

int wf_nic_port_open(const char *device, bool rings, struct wf_nic_port **port,
		     struct wf_addr *addr, int *fd)
{
	const struct wf_nic_ops *ops = find(device);
	int err = ops && ops->port_open ?
			  ops->port_open(rings, port, addr, fd) :
			  -ENODEV;

	if (!err)
		(*port)->ops = ops;
	return err;
}

void wf_nic_port_close(struct wf_nic_port *port)
{
	port->ops->port_close(port);
}

void wf_nic_port_forked(struct wf_nic_port *port)
{
	port->ops->port_forked(port);
}

int wf_nic_key_open(const char *device, void *addr, size_t len, unsigned access,
		    struct wf_nic_key **key, uint32_t *rkey)
{
	const struct wf_nic_ops *ops = find(device);
	int err = ops && ops->key_open ?
			  ops->key_open(addr, len, access, key, rkey) :
			  -EOPNOTSUPP;

	if (!err)
		(*key)->ops = ops;
	return err;
}

void *wf_nic_key_desc(const struct wf_nic_key *key)
{
	return key->desc;
}

void wf_nic_key_close(struct wf_nic_key *key)
{
	key->ops->key_close(key);
}
