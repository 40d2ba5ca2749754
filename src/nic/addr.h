/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The address of a NIC as its device knows it: bytes that only the device
 * interprets. Two addresses are of the same NIC if their bytes are the same.
 * Devices write those that a struct wf_addr can hold (sockets, queue pairs of
 * EFA) as addr.c does, so that any user who has one can make the other.
 */
#ifndef WF_NIC_ADDR_H
#define WF_NIC_ADDR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"

#define WF_NIC_ADDR_MAX 64

struct wf_nic_addr {
	uint16_t len; /* 0: none */
	uint8_t bytes[WF_NIC_ADDR_MAX];
};

bool wf_nic_addr_equal(const struct wf_nic_addr *a,
		       const struct wf_nic_addr *b);
uint64_t wf_nic_addr_hash(const struct wf_nic_addr *addr);

/* Without the place that @from may state: it is no part of its identity. */
void wf_nic_addr_of_socket(struct wf_nic_addr *addr,
			   const struct wf_addr *from);
/* -EINVAL: it is not the address of a socket. */
int wf_nic_addr_to_socket(const struct wf_nic_addr *addr, struct wf_addr *to);

#endif
