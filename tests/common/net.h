/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts on one machine: network namespaces without a name, joined by two
 * links. Processes move from one to the other. Everything vanishes with the
 * last of them, however it ends.
 *
 * WEFT_TEST_NET=<MTU> makes weft_test_begin() call net_begin(). What
 * weft_test_fork() starts is then on the other host than who started it.
 */
#ifndef WEFT_TESTS_COMMON_NET_H
#define WEFT_TESTS_COMMON_NET_H

#include <stdbool.h>

#define NET_HOSTS 2

/* Exits 77 where there can be no hosts. */
void net_require(void);

/* Makes both hosts; the caller is on the first from now on. Exits 77 where it
 * is not allowed. Nothing happens when they are there. */
void net_begin(unsigned int mtu);

/* Whether there are hosts. */
bool net_is_on(void);

/* The calling thread goes to @host; its children will be there. */
void net_enter(int host);
int net_here(void);

/* Addresses of the first link, and of the second, "link1" in both. */
const char *net_addr(int host);
const char *net_addr6(int host);
const char *net_other_addr(int host);

/* Runs "ip" with these arguments on @host: must succeed. */
void net_ip(int host, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Packets that the host the caller is on has cut into fragments so far. */
unsigned long long net_fragments(void);

/* Bytes that went out by @link of the host the caller is on. */
unsigned long long net_sent(const char *link);

#endif
