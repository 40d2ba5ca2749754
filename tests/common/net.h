/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts on one machine: unnamed network namespaces, joined by two links.
 * Processes can move from one to the other. Everything disappears with the last
 * process, however it ends.
 *
 * WEFT_TEST_NET=<MTU> makes weft_test_begin() call net_begin().
 * weft_test_fork() then starts processes on the other host.
 */
#ifndef WEFT_TESTS_COMMON_NET_H
#define WEFT_TESTS_COMMON_NET_H

#include <stdbool.h>

#define NET_HOSTS 2

/* Exits with 77 where hosts cannot be created. */
void net_require(void);

/* Creates both hosts; the caller is on the first one from now on. Exits with 77
 * if it is not permitted. Does nothing if the hosts exist. */
void net_begin(unsigned int mtu);

/* Whether the hosts exist. */
bool net_is_on(void);

/* Moves the calling thread to @host; its children will be there. */
void net_enter(int host);
int net_here(void);

/* Addresses of the first link, and of the second, "link1" in both. */
const char *net_addr(int host);
const char *net_addr6(int host);
const char *net_other_addr(int host);

/* Runs "ip" with these arguments on @host; it must succeed. */
void net_ip(int host, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Packets that the caller's host has fragmented so far. */
unsigned long long net_fragments(void);

/* Of the caller's host: one of the counters of TCP in /proc/net/netstat. */
unsigned long long net_tcp_count(const char *name);

/* Bytes that the caller's host has sent over @link. */
unsigned long long net_sent(const char *link);

#endif
