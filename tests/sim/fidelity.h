/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provider relies on this behaviour of a kernel. The same assertions run on
 * the real kernel (sim-fidelity) and in a simulated process (weft-sim
 * --fidelity).
 */
#ifndef SIM_FIDELITY_H
#define SIM_FIDELITY_H

/* @addr: an address of this node, as text. Ends the process if something
 * differs. */
void fidelity_run(const char *addr);

/* The caller defines this function. */
__attribute__((noreturn)) void fidelity_differs(const char *what, int line);

#endif
