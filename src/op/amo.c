/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file decides which way an atomic operation goes, and has the two ways
 * that are not a single instruction on an aligned word: 16 bytes by
 * compare-and-swap, and the locks.
 */
#include "op/amo.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include "base/cpu.h"
#include "base/fork.h"
#include "base/lock.h"
#include "op/amo_table.h"
#include "os/inline.h"

static_assert(FI_MSWAP + 1 == WF_OP_AMO_DIFF, "ops of 2.x follow");
static_assert(FI_UINT128 + 1 == WF_OP_AMO_FLOAT16, "datatypes of 2.x follow");

static const uint8_t sizes[WF_OP_AMO_TYPES] = {
	[FI_INT8] = 1,
	[FI_UINT8] = 1,
	[FI_INT16] = 2,
	[FI_UINT16] = 2,
	[FI_INT32] = 4,
	[FI_UINT32] = 4,
	[FI_INT64] = 8,
	[FI_UINT64] = 8,
	[FI_FLOAT] = 4,
	[FI_DOUBLE] = 8,
	[FI_FLOAT_COMPLEX] = 8,
	[FI_DOUBLE_COMPLEX] = 16,
	[FI_LONG_DOUBLE] = sizeof(long double),
	[FI_LONG_DOUBLE_COMPLEX] = 2 * sizeof(long double),
	[FI_INT128] = 16,
	[FI_UINT128] = 16,
	[WF_OP_AMO_FLOAT16] = 2,
	[WF_OP_AMO_BFLOAT16] = 2,
	[WF_OP_AMO_FLOAT8_E4M3] = 1,
	[WF_OP_AMO_FLOAT8_E5M2] = 1,
};

/* op/serve.c counts elements by shifting. */
static_assert(!(sizeof(long double) & (sizeof(long double) - 1)), "a power");

static bool op_is_kind(unsigned int op, enum wf_op_amo_kind kind)
{
	switch (kind) {
	case WF_OP_AMO_WRITE:
		return op <= FI_BXOR || op == FI_ATOMIC_WRITE ||
		       op == WF_OP_AMO_DIFF;
	case WF_OP_AMO_FETCH:
		return op <= FI_ATOMIC_WRITE || op == WF_OP_AMO_DIFF;
	case WF_OP_AMO_COMPARE:
		return op >= FI_CSWAP && op <= FI_MSWAP;
	}
	return false;
}

bool wf_op_amo_valid(unsigned int op, unsigned int datatype,
		     enum wf_op_amo_kind kind)
{
	return op < WF_OP_AMO_OPS && datatype < WF_OP_AMO_TYPES &&
	       op_is_kind(op, kind) && wf_op_amo_table[op][datatype];
}

bool wf_op_amo_known(unsigned int op, unsigned int datatype,
		     uint32_t api_version)
{
	unsigned int ops = WF_OP_AMO_OPS, types = WF_OP_AMO_TYPES;

	if (FI_VERSION_LT(api_version, FI_VERSION(2, 0))) {
		ops = WF_OP_AMO_DIFF;
		types = WF_OP_AMO_FLOAT16;
	}
	if (FI_VERSION_LT(api_version, FI_VERSION(1, 13)))
		types = FI_INT128;
	return op < ops && datatype < types;
}

size_t wf_op_amo_size(unsigned int datatype)
{
	return datatype < WF_OP_AMO_TYPES ? sizes[datatype] : 0;
}

/*
 * Sixteen bytes in one step. ThreadSanitizer does not see into assembly; under
 * it the locks are taken, which it does see.
 */
#if defined(__has_feature)
#define HAS_TSAN __has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define HAS_TSAN 1
#else
#define HAS_TSAN 0
#endif

#if defined(__x86_64__) && !HAS_TSAN
#include <cpuid.h>

/* cmpxchg16b cannot load from read-only memory. An aligned load by movdqa is
 * atomic on processors with AVX (Intel SDM 9.1.1, AMD APM 7.3.2). */
static bool word16_ask(void)
{
	const unsigned int need = bit_CMPXCHG16B | bit_AVX;
	unsigned int eax, ebx, ecx = 0, edx;

	return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & need) == need;
}

static unsigned __int128 word16_load(const unsigned __int128 *at)
{
	long long value __attribute__((vector_size(16)));
	unsigned __int128 word;

	__asm__ volatile("movdqa %1, %0" : "=x"(value) : "m"(*at) : "memory");
	memcpy(&word, &value, sizeof(word));
	return word;
}

static bool word16_swap(unsigned __int128 *at, unsigned __int128 *old,
			unsigned __int128 new)
{
	uint64_t low = (uint64_t)*old, high = (uint64_t)(*old >> 64);
	bool done;

	__asm__ volatile("lock cmpxchg16b %1"
			 : "=@ccz"(done), "+m"(*at), "+a"(low), "+d"(high)
			 : "b"((uint64_t) new), "c"((uint64_t)(new >> 64))
			 : "memory");
	*old = (unsigned __int128)high << 64 | low;
	return done;
}
#else
static bool word16_ask(void)
{
	return false;
}

static unsigned __int128 word16_load(const unsigned __int128 *at)
{
	return *at;
}

static bool word16_swap(unsigned __int128 *at, unsigned __int128 *old,
			unsigned __int128 new)
{
	(void)old;
	*at = new;
	return true;
}
#endif

/* Asked once; threads that ask at the same time get the same answer. */
static bool word16_there(void)
{
	enum { UNKNOWN, NO, YES };
	WF_SAME_FOR_ALL static atomic_int answer = UNKNOWN;
	int is = atomic_load_explicit(&answer, memory_order_relaxed);

	if (wf_unlikely(is == UNKNOWN)) {
		is = word16_ask() ? YES : NO;
		atomic_store_explicit(&answer, is, memory_order_relaxed);
	}
	return is == YES;
}

/*
 * The locks are chosen by the cache line of the target, so that objects which
 * overlap share a lock. There are so many that two threads which need different
 * lines rarely meet at one lock. In a child of fork() all locks are free, because
 * the thread that held one does not exist there. A value that this thread was
 * writing may be half written in the child, like everything that other threads
 * of the parent were writing.
 */
#define LOCKS 64

struct line_lock {
	struct wf_lock lock;
} WF_ALIGNED(WF_LINE);

WF_PER_PROCESS static struct line_lock locks[LOCKS] = {
	[0 ... LOCKS - 1] = { .lock = { .real = true } }
};

static void free_locks(struct wf_fork_watch *watch);
WF_PER_PROCESS static struct wf_fork_watch watch = { .in_child = free_locks };
WF_PER_PROCESS static atomic_bool watched;

static void free_locks(struct wf_fork_watch *unused)
{
	(void)unused;
	for (size_t i = 0; i < LOCKS; i++)
		wf_base_lock_init(&locks[i].lock, true);
	/* The child's list of watches is empty: its own children need ours in
	 * it again. */
	atomic_store(&watched, false);
}

struct locked {
	struct wf_lock *first, *second; /* second may be NULL */
};

static struct locked lock_lines(const void *at, size_t size)
{
	size_t a = (uintptr_t)at / WF_LINE % LOCKS;
	size_t b = ((uintptr_t)at + size - 1) / WF_LINE % LOCKS;
	struct locked locked;

	if (wf_unlikely(!atomic_load_explicit(&watched, memory_order_acquire)))
		wf_base_fork_watch_once(&watch, &watched);
	/* The lower one first, or two of these wait for each other. */
	locked.first = &locks[a < b ? a : b].lock;
	locked.second = a == b ? NULL : &locks[a < b ? b : a].lock;
	wf_base_lock_take(locked.first);
	if (locked.second)
		wf_base_lock_take(locked.second);
	return locked;
}

static void unlock_lines(const struct locked *locked)
{
	if (locked->second)
		wf_base_lock_drop(locked->second);
	wf_base_lock_drop(locked->first);
}

/* One element that is not changed in place. */
struct element {
	unsigned int op, datatype;
	size_t size;
	void *target, *result;
	const void *operand, *compare;
};

union copy {
	unsigned __int128 word16;
	uint8_t bytes[WF_OP_AMO_SIZE_MAX];
};

static void change_copy(const struct element *e, union copy *copy)
{
	wf_op_amo_table[e->op][e->datatype](copy, e->operand, e->compare, NULL,
					    1);
}

static void run_word16(const struct element *e)
{
	union copy old, new;

	old.word16 = word16_load(e->target);
	do {
		new.word16 = old.word16;
		change_copy(e, &new);
	} while (new.word16 != old.word16 &&
		 !word16_swap(e->target, &old.word16, new.word16));
	if (e->result)
		memcpy(e->result, &old, sizeof(old.word16));
}

static void run_locked(const struct element *e)
{
	struct locked locked = lock_lines(e->target, e->size);
	union copy old, new;

	memcpy(&old, e->target, e->size);
	memcpy(&new, &old, e->size);
	change_copy(e, &new);
	if (memcmp(&new, &old, e->size) != 0)
		memcpy(e->target, &new, e->size);
	unlock_lines(&locked);
	if (e->result)
		memcpy(e->result, &old, e->size);
}

static bool is_aligned(const void *at, size_t size)
{
	return !((uintptr_t)at & (size - 1));
}

/* Kept out of wf_op_amo_run(), which is small without it. */
static __attribute__((noinline)) void run_copied(struct element *e,
						 size_t count)
{
	bool word16 =
		e->size == 16 && is_aligned(e->target, 16) && word16_there();

	for (size_t i = 0; i < count; i++) {
		if (word16)
			run_word16(e);
		else
			run_locked(e);
		e->target = (char *)e->target + e->size;
		if (e->operand)
			e->operand = (const char *)e->operand + e->size;
		if (e->compare)
			e->compare = (const char *)e->compare + e->size;
		if (e->result)
			e->result = (char *)e->result + e->size;
	}
}

void wf_op_amo_run(enum wf_op_amo_kind kind, unsigned int op,
		   unsigned int datatype, void *target, const void *operand,
		   const void *compare, void *result, size_t count)
{
	size_t size;

	assert(wf_op_amo_valid(op, datatype, kind));
	if (kind == WF_OP_AMO_WRITE)
		result = NULL;
	size = sizes[datatype];
	if (wf_likely(size <= WF_OP_AMO_NARROW && is_aligned(target, size))) {
		wf_op_amo_table[op][datatype](target, operand, compare, result,
					      count);
	} else {
		struct element e = {
			.op = op,
			.datatype = datatype,
			.size = size,
			.target = target,
			.operand = operand,
			.compare = compare,
			.result = result,
		};

		run_copied(&e, count);
	}
}
