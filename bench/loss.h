/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that a network interface loses, by chance and before anything else
 * sees them: whatever protocol, one by one, whatever offloads would have made
 * of them. For benchmarks; needs root.
 */
#ifndef WF_BENCH_LOSS_H
#define WF_BENCH_LOSS_H

#include <stdint.h>

/* Of what arrives at @interface, @ppm of a million are lost until the returned
 * descriptor is closed; 0 loses none, but sends packets the same way. -errno. */
int loss_attach(const char *interface, uint32_t ppm);

#endif
