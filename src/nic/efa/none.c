/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replaces this device if weft is built without the headers of libibverbs: no
 * EFA device is ever found.
 */
#include <errno.h>

#include "nic/efa/efa.h"

static int find(char *name, size_t room, struct wf_addr *addr)
{
	(void)name;
	(void)room;
	(void)addr;
	return -ENODEV;
}

static int open_none(const struct wf_nic_attr *attr, struct wf_nic **nic)
{
	(void)attr;
	(void)nic;
	return -ENODEV;
}

const struct wf_nic_ops wf_nic_efa_ops = {
	.name = "efa",
	.about = "EFA; this weft was built without the headers of libibverbs",
	.find = find,
	.open = open_none,
};
