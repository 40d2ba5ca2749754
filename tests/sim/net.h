/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulated network: nodes with an address each, and links that lose,
 * delay, duplicate and damage packets.
 */
#ifndef SIM_NET_H
#define SIM_NET_H

#include <netinet/in.h>

#include "sim.h"

#define SIM_NET_MTU 1500

struct in_addr sim_net_addr(const struct sim_node *node);
/* The address of its second interface, which exists if processes bind to any
 * address. */
struct in_addr sim_net_second(const struct sim_node *node);
/* NULL: nobody has it. */
struct sim_node *sim_net_node(struct in_addr addr);
/* The same for a process on @from, which also has a loopback. */
struct sim_node *sim_net_seen(struct sim_node *from, struct in_addr addr);
/* Whether a socket on @node may be bound to that address. */
bool sim_net_has(const struct sim_node *node, struct in_addr addr);
/* The source address of packets from @node to @to. */
struct in_addr sim_net_source(struct sim_node *node, struct in_addr to);
/* When a packet that @from sends to @to now will arrive, if no retransmission
 * is needed; SIM_NEVER: never. */
uint64_t sim_net_arrival(struct sim_node *from, struct in_addr to);
/* Packets from the first node to the second are lost until @until. */
void sim_net_cut(unsigned int from, unsigned int to, uint64_t until);

#endif
