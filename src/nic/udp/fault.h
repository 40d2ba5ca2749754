/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that are lost, duplicated, late, out of order or damaged on their way
 * to the socket, by seed and rate. It is between the NIC and the socket if a
 * test asked for it; it makes copies, so the NIC notices nothing.
 */
#ifndef WF_NIC_UDP_FAULT_H
#define WF_NIC_UDP_FAULT_H

#include "nic/open.h"
#include "os/types.h"

struct wf_udp_late {
	uint64_t at;
	uint64_t number; /* equal times leave in order */
	struct wf_addr to;
	size_t control_len;
	char control[64] __attribute__((aligned(8)));
	size_t len;
	uint8_t bytes[];
};

struct wf_udp_fault {
	struct wf_nic_fault rates;
	struct wf_nic_counters *counters;
	uint64_t random;
	uint64_t number;
	struct wf_udp_late **heap; /* the soonest first */
	size_t count;
	size_t room;
	int fd;
};

struct wf_udp_fault *wf_udp_fault_create(const struct wf_nic_fault *rates,
					 int fd,
					 struct wf_nic_counters *counters);
void wf_udp_fault_destroy(struct wf_udp_fault *fault);

/* One packet instead of sendmsg(). Of @control only that is used; or NULL. */
void wf_udp_fault_send(struct wf_udp_fault *fault, const struct wf_addr *to,
		       const struct msghdr *control, const struct iovec *iov,
		       int count, uint64_t now);

/* Sends what is due; returns when the next is, UINT64_MAX: none. */
uint64_t wf_udp_fault_run(struct wf_udp_fault *fault, uint64_t now);

#endif
