/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts and an unreliable link between them, on one machine: two processes,
 * each in a network namespace of its own, joined by veth links and a third
 * process that carries frames between them as the rules say. It does what netem
 * would do where the kernel has none. Everything disappears with the processes.
 */
#ifndef WF_TESTS_COMMON_WIRE_H
#define WF_TESTS_COMMON_WIRE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define WIRE_HOSTS 2

/* In both directions. The rules may change while frames are carried. Rates in
 * parts per million. */
struct wire_rules {
	_Atomic uint32_t loss;
	_Atomic uint32_t duplicate;
	_Atomic uint32_t reorder; /* these are not delayed, or only a little */
	_Atomic uint32_t delay_us;
	_Atomic uint64_t rate;	     /* bytes per second; 0: no limit */
	_Atomic uint32_t queue;	     /* bytes that wait for the rate */
	_Atomic uint64_t down_until; /* of the monotonic clock, nanoseconds */
};

struct wire {
	struct wire_rules rules;
	_Atomic int state;	       /* result of the setup */
	_Atomic int ready[WIRE_HOSTS]; /* hosts that have their address */
	_Atomic int stop;
	_Atomic uint64_t carried;
	_Atomic uint64_t dropped;
	pid_t hosts[WIRE_HOSTS];
	pid_t carrier;
	char user[4096]; /* for the processes on the hosts, 64-aligned */
};

/* Runs @host in two processes with the addresses 10.99.0.1 and .2 and waits for
 * both. 0: both returned 0; 77: it cannot be done here, prints the reason;
 * otherwise 1. @mtu of the links. */
int wire_run(struct wire *wire, unsigned mtu,
	     int (*host)(struct wire *wire, int me));

/* In shared memory. NULL: none is left. */
struct wire *wire_create(void);

#endif
