/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The real side of os/shared.h.
 */
#ifndef WF_OS_LINUX_SHARED_H
#define WF_OS_LINUX_SHARED_H

#include <stdatomic.h>

#define wf_shared_load(p, order) atomic_load_explicit(p, memory_order_##order)
#define wf_shared_store(p, value, order)                                       \
	atomic_store_explicit(p, value, memory_order_##order)
#define wf_shared_exchange(p, value, order)                                    \
	atomic_exchange_explicit(p, value, memory_order_##order)
#define wf_shared_add(p, value, order)                                         \
	atomic_fetch_add_explicit(p, value, memory_order_##order)
#define wf_shared_fence(order) atomic_thread_fence(memory_order_##order)

/* The compiler's numbers for orders are those of C11. */
#define wf_shared_load_plain(p, order) __atomic_load_n(p, memory_order_##order)
#define wf_shared_store_plain(p, value, order)                                 \
	__atomic_store_n(p, value, memory_order_##order)

#endif
