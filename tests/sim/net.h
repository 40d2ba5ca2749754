/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulated network: nodes with an address each, links that lose, delay,
 * double and damage packets.
 */
#ifndef SIM_NET_H
#define SIM_NET_H

#include <netinet/in.h>

#include "sim.h"

#define SIM_NET_MTU 1500

struct in_addr sim_net_addr(const struct sim_node *node);
/* NULL: nobody has it. */
struct sim_node *sim_net_node(struct in_addr addr);
/* Packets from the first to the second vanish until @until. */
void sim_net_cut(unsigned int from, unsigned int to, uint64_t until);

#endif
