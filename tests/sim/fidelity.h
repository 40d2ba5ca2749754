/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the provider relies on of a kernel. The same assertions run on the real
 * one (sim-fidelity) and in a simulated process (weft-sim --fidelity).
 */
#ifndef SIM_FIDELITY_H
#define SIM_FIDELITY_H

/* An address of this node, as text. Ends the process if something differs. */
void fidelity_run(const char *addr);

/* Given by whoever runs it. */
__attribute__((noreturn)) void fidelity_differs(const char *what, int line);

#endif
