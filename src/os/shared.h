/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words in memory that several processes map. Every access to one goes through
 * these macros, which are the operations of C11: readers see that another
 * process is on the other side, and whatever has to know of each such access
 * (the simulator, a model, another memory order) has one place to stand in.
 *
 * @p is a pointer to an _Atomic integer of up to 8 bytes; @order is relaxed,
 * acquire, release, acq_rel or seq_cst. Each argument is evaluated once.
 */
#ifndef WF_OS_SHARED_H
#define WF_OS_SHARED_H

#include <stdatomic.h>

#define wf_shared_load(p, order) atomic_load_explicit(p, memory_order_##order)
#define wf_shared_store(p, value, order)                                       \
	atomic_store_explicit(p, value, memory_order_##order)

/* Both give the value before. */
#define wf_shared_exchange(p, value, order)                                    \
	atomic_exchange_explicit(p, value, memory_order_##order)
#define wf_shared_add(p, value, order)                                         \
	atomic_fetch_add_explicit(p, value, memory_order_##order)

#define wf_shared_fence(order) atomic_thread_fence(memory_order_##order)

/* For a pointer to a plain integer. The compiler's numbers for orders are those
 * of C11. */
#define wf_shared_load_plain(p, order) __atomic_load_n(p, memory_order_##order)
#define wf_shared_store_plain(p, value, order)                                 \
	__atomic_store_n(p, value, memory_order_##order)

#endif
