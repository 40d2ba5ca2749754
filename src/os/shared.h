/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words in memory that several processes map. Every access to one goes through
 * these macros, so that the simulator can let another process run there, and
 * can keep stores back as a processor's store buffer does. In the provider they
 * are the operations of C11, with no instruction added.
 *
 * Both sides define, for @p, a pointer to an _Atomic integer of up to 8 bytes,
 * and @order, one of relaxed, acquire, release, acq_rel and seq_cst; each
 * argument is evaluated once:
 *
 * wf_shared_load(p, order)
 * wf_shared_store(p, value, order)
 * wf_shared_exchange(p, value, order): the value before
 * wf_shared_add(p, value, order): the value before
 * wf_shared_fence(order)
 *
 * and for @p, a pointer to a plain integer in such memory:
 *
 * wf_shared_load_plain(p, order)
 * wf_shared_store_plain(p, value, order)
 */
#ifndef WF_OS_SHARED_H
#define WF_OS_SHARED_H

#ifdef WEFT_SIM
#include "os/sim/shared.h"
#else
#include "os/linux/shared.h"
#endif

#endif
