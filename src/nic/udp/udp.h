/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The software NIC over UDP, as whoever opens it sees it. Everything else goes
 * through nic.h.
 */
#ifndef WF_NIC_UDP_UDP_H
#define WF_NIC_UDP_UDP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "nic/counters.h"
#include "nic/nic.h"

/* What happens to packets on their way to the socket, for tests. In parts per
 * million; the same seed does the same. */
struct wf_nic_udp_fault {
	uint64_t seed;
	uint32_t loss;
	uint32_t duplicate;
	uint32_t reorder; /* held back for up to a millisecond */
	uint32_t corrupt; /* one bit; the NIC then checks payload too */
	uint32_t delay_us;
	uint32_t jitter_us; /* up to so much more */
	uint32_t mtu;	    /* larger packets vanish; 0: none do */
};

/* "loss=1%,reorder=25%,dup=0.5%,corrupt=10ppm,delay=50ms,jitter=1ms,seed=7",
 * "mtu=1280".
 * -EINVAL: says what is wrong in the log. */
int wf_nic_udp_fault_parse(const char *text, struct wf_nic_udp_fault *fault);

struct wf_nic_udp_attr {
	/* A bound UDP socket, which stays the caller's and is the NIC's alone
	 * to read until it is closed; -1: bind one to addr. */
	int fd;
	/* Port 0: any. With a socket of the caller's that is bound to any
	 * address: the one that peers are told, and see packets come from. */
	struct wf_addr addr;
	bool locked;	    /* calls come from several threads */
	bool thread;	    /* work in a thread of its own */
	bool attend;	    /* a thread steps in when nobody calls */
	bool payload_crc;   /* check payload beyond UDP's own sum */
	bool no_offload;    /* neither GSO nor GRO */
	uint32_t mtu;	    /* of the link; 0: ask the interface */
	uint32_t max_peers; /* with a handle, and as many without; 0: 4096 */
	/* A peer that computes does not answer, and is not dead. Silence alone
	 * of one that was connected makes it so after this time; 0: 15 minutes,
	 * as long as TCP tries. */
	uint64_t dead_ns;
	/* A connection that is not there after this time is given up, whatever
	 * the reason: nobody answers (UNRESP), or the network says that nobody
	 * is there (UNREACH); 0: 20 s. A silent process on this host has
	 * dead_ns instead, because the kernel tells when there is none. Of a
	 * peer that was connected, a closed port is its end at once, a host
	 * that cannot be reached after this time. */
	uint64_t connect_ns;
	const struct wf_nic_udp_fault *fault; /* NULL: none */
	struct wf_nic_counters *counters;     /* NULL: the NIC's own */
};

/* -EADDRINUSE and what else bind() says, -EINVAL, -ENOMEM. */
int wf_nic_udp_open(const struct wf_nic_udp_attr *attr, struct wf_nic **nic);

#endif
