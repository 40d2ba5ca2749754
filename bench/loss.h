/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that a network interface loses, at random and before anything else
 * sees them: of any protocol, one by one, without regard to offloads. For
 * benchmarks; needs root.
 */
#ifndef WF_BENCH_LOSS_H
#define WF_BENCH_LOSS_H

#include <stdint.h>

/* Loses @ppm of a million packets that arrive at @interface until the returned
 * descriptor is closed; 0 loses none, but packets take the same path.
 * -errno. */
int loss_attach(const char *interface, uint32_t ppm);

#endif
