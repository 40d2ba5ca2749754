/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles the memory accesses that the compiler reports. The provider is
 * compiled with -fsanitize=thread, and this file replaces that run-time
 * library: every atomic access is a scheduling point, and stores to shared
 * memory go through a store buffer as in x86 processors. An entry leaves the
 * buffer at random, by age, by a locked instruction, by a fence, by a call of
 * the kernel, or by any process's membarrier. Plain accesses keep their order
 * with those before them.
 */
#include <string.h>

#include "kernel.h"
#include "real.h"
#include "wrap.h"

/* A store leaves its processor within this time. */
#define OLD_NS (2 * SIM_US)

/* -- the buffer ------------------------------------------------------------- */

static void apply(struct sim_store *store)
{
	memmove((void *)store->addr, store->value, store->size);
}

static void shift(struct sim_task *task, unsigned int n)
{
	task->store_count -= n;
	memmove(task->stores, task->stores + n,
		task->store_count * sizeof(*task->stores));
	if (!task->store_count)
		sim.buffered--;
}

void sim_race_drain(struct sim_task *task)
{
	unsigned int n = task->store_count;

	if (!n)
		return;
	for (unsigned int i = 0; i < n; i++)
		apply(&task->stores[i]);
	shift(task, n);
}

void sim_race_drain_old(void)
{
	if (!sim.buffered)
		return;
	for (unsigned int i = 0; i < sim.task_count; i++) {
		struct sim_task *task = &sim.task[i];

		while (task->store_count &&
		       task->stores[0].at + OLD_NS <= sim.now) {
			apply(&task->stores[0]);
			shift(task, 1);
		}
	}
}

void sim_race_drain_all(void)
{
	for (unsigned int i = 0; i < sim.task_count; i++)
		sim_race_drain(&sim.task[i]);
}

static bool is_shared(const volatile void *addr)
{
	return sim.current && sim.current->proc &&
	       sim_memory_in_pool((uintptr_t)addr);
}

/* Fails on memory that this process has unmapped, or never had. */
static void check_mapped(const volatile void *addr)
{
	const struct sim_shared *shared = sim_memory_shared((uintptr_t)addr);

	if (!shared || !shared->maps[sim.current->proc->number])
		sim_fail("shared memory is touched that is not mapped: %s",
			 shared ? shared->name : "nobody's");
}

static void push(volatile void *addr, const void *value, uint32_t size)
{
	struct sim_task *task = sim.current;
	struct sim_store *store;

	if (task->store_count == SIM_BUFFERED) {
		apply(&task->stores[0]);
		shift(task, 1);
	}
	if (!task->store_count)
		sim.buffered++;
	store = &task->stores[task->store_count++];
	store->addr = (uintptr_t)addr;
	store->size = size;
	store->at = sim.now;
	memmove(store->value, value, size);
}

static void before_store(volatile void *addr)
{
	if (is_shared(addr))
		check_mapped(addr);
	sim_point();
}

static void store_word(volatile void *addr, const void *value, uint32_t size,
		       int order)
{
	before_store(addr);
	if (!is_shared(addr)) {
		memmove((void *)(uintptr_t)addr, value, size);
		return;
	}
	push(addr, value, size);
	if (order == __ATOMIC_SEQ_CST)
		sim_race_drain(sim.current);
	else if (sim_rng_one_in(&sim.sched, sim.s.drain_one_in)) {
		apply(&sim.current->stores[0]);
		shift(sim.current, 1);
	}
}

/* The newest of our own stores that others do not see yet, or memory. */
static void load_word(const volatile void *addr, void *value, uint32_t size)
{
	struct sim_task *task = sim.current;
	uintptr_t at = (uintptr_t)addr;

	sim_point();
	if (is_shared(addr)) {
		check_mapped(addr);
		for (unsigned int i = task->store_count; i--;) {
			const struct sim_store *s = &task->stores[i];

			if (s->addr == at && s->size == size) {
				memmove(value, s->value, size);
				return;
			}
			if (s->addr < at + size && at < s->addr + s->size) {
				sim_race_drain(task);
				break;
			}
		}
	}
	memmove(value, (const void *)(uintptr_t)addr, size);
}

static void before_locked(volatile void *addr)
{
	before_store(addr);
	if (sim.current)
		sim_race_drain(sim.current);
}

/* -- plain accesses --------------------------------------------------------- */

static inline void plain_write(void *addr)
{
	if (!sim_memory_in_pool((uintptr_t)addr) || !is_shared(addr))
		return;
	check_mapped(addr);
	sim_race_drain(sim.current);
}

static inline void plain_read(void *addr, size_t size)
{
	struct sim_task *task = sim.current;
	uintptr_t at = (uintptr_t)addr;

	if (!sim_memory_in_pool(at) || !is_shared(addr))
		return;
	check_mapped(addr);
	for (unsigned int i = 0; i < task->store_count; i++) {
		const struct sim_store *s = &task->stores[i];

		if (s->addr < at + size && at < s->addr + s->size) {
			sim_race_drain(task);
			return;
		}
	}
}

#define PLAIN(n)                                                               \
	void __tsan_read##n(void *addr);                                       \
	void __tsan_write##n(void *addr);                                      \
	void __tsan_unaligned_read##n(void *addr);                             \
	void __tsan_unaligned_write##n(void *addr);                            \
	void __tsan_volatile_read##n(void *addr);                              \
	void __tsan_volatile_write##n(void *addr);                             \
	void __tsan_read##n(void *addr)                                        \
	{                                                                      \
		plain_read(addr, n);                                           \
	}                                                                      \
	void __tsan_write##n(void *addr)                                       \
	{                                                                      \
		plain_write(addr);                                             \
	}                                                                      \
	void __tsan_unaligned_read##n(void *addr)                              \
	{                                                                      \
		plain_read(addr, n);                                           \
	}                                                                      \
	void __tsan_unaligned_write##n(void *addr)                             \
	{                                                                      \
		plain_write(addr);                                             \
	}                                                                      \
	void __tsan_volatile_read##n(void *addr)                               \
	{                                                                      \
		plain_read(addr, n);                                           \
	}                                                                      \
	void __tsan_volatile_write##n(void *addr)                              \
	{                                                                      \
		plain_write(addr);                                             \
	}

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_init(void);
void __tsan_func_entry(void *pc);
void __tsan_func_exit(void);
void __tsan_read_range(void *addr, size_t size);
void __tsan_write_range(void *addr, size_t size);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *pc)
{
	(void)pc;
}

void __tsan_func_exit(void)
{
}

void __tsan_read_range(void *addr, size_t size)
{
	plain_read(addr, size);
}

void __tsan_write_range(void *addr, size_t size)
{
	(void)size;
	plain_write(addr);
}

/* These are function calls, because -fno-builtin-memcpy keeps the compiler from
 * inlining them. */
void *__wrap_memcpy(void *to, const void *from, size_t len)
{
	plain_write(to);
	plain_read((void *)(uintptr_t)from, len);
	return memmove(to, from, len);
}

void *__wrap_memset(void *to, int byte, size_t len)
{
	plain_write(to);
	return real_memset(to, byte, len);
}

/* -- atomic accesses -------------------------------------------------------- */

#define RMW(n, type, name, expr)                                               \
	type __tsan_atomic##n##_##name(volatile type *addr, type value,        \
				       int order);                             \
	type __tsan_atomic##n##_##name(volatile type *addr, type value,        \
				       int order)                              \
	{                                                                      \
		type old;                                                      \
                                                                               \
		(void)order;                                                   \
		before_locked(addr);                                           \
		old = *addr;                                                   \
		*addr = (type)(expr);                                          \
		return old;                                                    \
	}

#define ATOMIC(n, type)                                                        \
	type __tsan_atomic##n##_load(const volatile type *addr, int order);    \
	void __tsan_atomic##n##_store(volatile type *addr, type value,         \
				      int order);                              \
	int __tsan_atomic##n##_compare_exchange_strong(                        \
		volatile type *addr, type *expected, type value, int order,    \
		int order_failed);                                             \
	int __tsan_atomic##n##_compare_exchange_weak(                          \
		volatile type *addr, type *expected, type value, int order,    \
		int order_failed);                                             \
	type __tsan_atomic##n##_compare_exchange_val(                          \
		volatile type *addr, type expected, type value, int order,     \
		int order_failed);                                             \
	type __tsan_atomic##n##_load(const volatile type *addr, int order)     \
	{                                                                      \
		type value;                                                    \
                                                                               \
		(void)order;                                                   \
		load_word(addr, &value, sizeof(value));                        \
		return value;                                                  \
	}                                                                      \
	void __tsan_atomic##n##_store(volatile type *addr, type value,         \
				      int order)                               \
	{                                                                      \
		store_word(addr, &value, sizeof(value), order);                \
	}                                                                      \
	int __tsan_atomic##n##_compare_exchange_strong(                        \
		volatile type *addr, type *expected, type value, int order,    \
		int order_failed)                                              \
	{                                                                      \
		(void)order;                                                   \
		(void)order_failed;                                            \
		before_locked(addr);                                           \
		if (*addr == *expected) {                                      \
			*addr = value;                                         \
			return 1;                                              \
		}                                                              \
		*expected = *addr;                                             \
		return 0;                                                      \
	}                                                                      \
	int __tsan_atomic##n##_compare_exchange_weak(                          \
		volatile type *addr, type *expected, type value, int order,    \
		int order_failed)                                              \
	{                                                                      \
		return __tsan_atomic##n##_compare_exchange_strong(             \
			addr, expected, value, order, order_failed);           \
	}                                                                      \
	type __tsan_atomic##n##_compare_exchange_val(                          \
		volatile type *addr, type expected, type value, int order,     \
		int order_failed)                                              \
	{                                                                      \
		__tsan_atomic##n##_compare_exchange_strong(                    \
			addr, &expected, value, order, order_failed);          \
		return expected;                                               \
	}                                                                      \
	RMW(n, type, exchange, value)                                          \
	RMW(n, type, fetch_add, old + value)                                   \
	RMW(n, type, fetch_sub, old - value)                                   \
	RMW(n, type, fetch_and, old &value)                                    \
	RMW(n, type, fetch_or, old | value)                                    \
	RMW(n, type, fetch_xor, old ^ value)

ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);

void __tsan_atomic_thread_fence(int order)
{
	sim_point();
	if (order == __ATOMIC_SEQ_CST && sim.current)
		sim_race_drain(sim.current);
}

void __tsan_atomic_signal_fence(int order)
{
	(void)order;
}
